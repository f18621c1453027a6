// The five benchmarks of fibres on libfibre ("Fred": Karsten and Barghi, "User-level Threading: Have
// Your Cake and Eat It Too", SIGMETRICS 2020).
//
// Equivalent: its binary semaphore (LockedSemaphore) is the seat, its FredSemaphore is first in,
// first out and hands over directly; Fred::yield.
//
// The processors are the workers of a cluster of their own, without the one that the program begins
// on, which only watches. libfibre deals out new fibres to the workers in turn.
//
// Not the same: a yield lets only fibres of the same processor run. It neither steals nor wakes, so
// that `transfer` need not complete in the yielding flavour.

#include "libfibre/fibre.h"

#include "../cpp/frame.hpp"

static const char* peer_name() { return "libfibre"; }

// It has no number.
static std::string peer_version() { return "unnumbered"; }

class alignas(128) Seat {
    LockedSemaphore<WorkerLock, true> semaphore_{};

public:
    void wait() { semaphore_.P(); }
    void post() { semaphore_.V(); }
};

class alignas(128) Semaphore {
    FredSemaphore semaphore_{};

public:
    void wait() { semaphore_.P(); }
    void post() { semaphore_.V(); }
};

#include "../cpp/benches.hpp"

static void let_others_run() { Fred::yield(); }

static std::atomic<u64> processors_seen{0};

// Never inlined: a fibre may be on another thread after a switch, and the compiler may keep a
// thread-local's address over it.
[[gnu::noinline]] static u64 processor() {
    asm volatile("");
    static thread_local const u64 mine = processors_seen.fetch_add(1);
    return mine;
}

// What a fibre is started with.
struct Start {
    Run* run;
    const std::function<void(u64)>* body;
    std::atomic<u64>* ready;
    Seat* gate;
    u64 fibre;
};

static void start(Start* start) {
    start->ready->fetch_add(1);
    start->gate->wait();
    (*start->body)(start->fibre);
    start->run->leave();
}

static void run_all(Run& run, const std::function<void(u64)>& body,
                    const std::function<void()>& end) {
    FibreInit();
    const u64 t = run.plan.crew();
    Cluster crew;
    crew.addWorkers(run.plan.processors);
    std::atomic<u64> ready{0};
    std::vector<Seat> gates(t);
    std::vector<Start> starts(t);
    for (u64 fibre = 0; fibre < t; ++fibre) {
        starts[fibre] = Start{&run, &body, &ready, &gates[fibre], fibre};
        Fibre* made = new Fibre(crew);
        made->run(start, &starts[fibre]);
        made->detach();
    }
    while (ready.load() < t) std::this_thread::sleep_for(std::chrono::milliseconds{1});
    run.watch([&] { for (Seat& gate : gates) gate.post(); }, end);
}
