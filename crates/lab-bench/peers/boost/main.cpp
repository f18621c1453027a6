// The five benchmarks of fibres on Boost.Fiber.
//
// Equivalent: Boost has no semaphore. Seat and Semaphore below are made of what Boost's own
// mutex is made of: a spinlock that `suspend` gives back after the switch, and `schedule`.
//
// The scheduler is shared_work with sleeping workers, on one processor round_robin. On two CPUs
// and Boost 1.74 shared_work took 0.4 (cycle, 2 rings) to 1.0 (yield) of work_stealing's time,
// and ends `transfer` in the yielding flavour, which work_stealing does not; work_stealing on
// one processor looks for ever for another one to steal from. Both may leave a fibre behind
// for long; workers that spin instead of sleeping were slower with either.
//
// Not the same: all processors take fibres from one queue behind one mutex, and a push wakes
// nobody, so that `transfer` need not complete in the parking flavour.

#include <boost/fiber/all.hpp>
#include <boost/version.hpp>

#include <deque>

#include "frame.hpp"

namespace fibers = boost::fibers;
using fibers::context;

void Run::report(bool completed) const {
    std::printf(
        "{\"peer\":\"boost\",\"version\":\"%d.%d.%d\",\"bench\":\"%s\",\"processors\":%llu,"
        "\"fibres\":%llu,\"operations\":%llu,\"wall_s\":%.9f,\"cpu_s\":%.9f,\"completed\":%s",
        BOOST_VERSION / 100000, BOOST_VERSION / 100 % 1000, BOOST_VERSION % 100,
        plan.bench.c_str(), (unsigned long long)plan.processors, (unsigned long long)plan.crew(),
        (unsigned long long)sum(tallies, &Tally::operations), wall_, cpu_,
        completed ? "true" : "false");
    print("per_fibre", tallies);
    if (plan.bench == "locality") {
        print("per_processor", by_processor);
        std::printf(",\"fibre_migrations\":%llu,\"data_migrations\":%llu",
                    (unsigned long long)sum(tallies, &Tally::migrations),
                    (unsigned long long)sum(tallies, &Tally::data_migrations));
    }
    if (plan.bench == "transfer")
        std::printf(",\"rechecks\":%llu", (unsigned long long)sum(tallies, &Tally::rechecks));
    std::printf(",\"note\":\"\"}\n");
}

// The one-seat binary semaphore.
class alignas(128) Seat {
    fibers::detail::spinlock lock_{};
    bool posted_ = false;
    context* waiter_ = nullptr;

public:
    void wait() {
        fibers::detail::spinlock_lock lock{lock_};
        if (posted_) {
            posted_ = false;
            return;
        }
        context* me = context::active();
        waiter_ = me;
        me->suspend(lock);
    }

    void post() {
        fibers::detail::spinlock_lock lock{lock_};
        context* waiter = waiter_;
        if (waiter == nullptr) {
            posted_ = true;
            return;
        }
        waiter_ = nullptr;
        lock.unlock();
        context::active()->schedule(waiter);
    }
};

// A counting semaphore: first in, first out, handing over directly.
class alignas(128) Semaphore {
    fibers::detail::spinlock lock_{};
    u64 count_ = 0;
    std::deque<context*> waiters_{};

public:
    void wait() {
        fibers::detail::spinlock_lock lock{lock_};
        if (count_ > 0) {
            --count_;
            return;
        }
        context* me = context::active();
        waiters_.push_back(me);
        me->suspend(lock);
    }

    void post() {
        fibers::detail::spinlock_lock lock{lock_};
        if (waiters_.empty()) {
            ++count_;
            return;
        }
        context* waiter = waiters_.front();
        waiters_.pop_front();
        lock.unlock();
        context::active()->schedule(waiter);
    }
};

static thread_local u64 this_processor = 0;

// Never inlined: a fibre may be on another thread after a switch, and the compiler may keep a
// thread-local's address over it.
[[gnu::noinline]] static u64 processor() {
    asm volatile("");
    return this_processor;
}

static void use_scheduler(u64 processors) {
    if (processors == 1)
        fibers::use_scheduling_algorithm<fibers::algo::round_robin>();
    else
        fibers::use_scheduling_algorithm<fibers::algo::shared_work>(/* suspend */ true);
}

// Starts the processors, each with its share of the fibres, which wait until all of them are
// there; sees the run through. Never returns.
static void run_all(Run& run, const std::function<void(u64)>& body,
                    const std::function<void()>& end) {
    const u64 p = run.plan.processors, t = run.plan.crew();
    std::atomic<u64> ready{0};
    std::vector<Seat> gates(t);
    std::vector<Seat> ends(p);
    for (u64 me = 0; me < p; ++me) {
        std::thread([&, me] {
            this_processor = me;
            use_scheduler(p);
            for (u64 fibre = me; fibre < t; fibre += p) {
                fibers::fiber(fibers::launch::post, [&, fibre] {
                    ready.fetch_add(1);
                    gates[fibre].wait();
                    body(fibre);
                    run.leave();
                }).detach();
            }
            // The thread's own fibre sleeps, and the thread runs the others.
            ends[me].wait();
        }).detach();
    }
    while (ready.load() < t) std::this_thread::sleep_for(std::chrono::milliseconds{1});
    run.watch([&] { for (Seat& gate : gates) gate.post(); }, end);
}

static void cycle(Run& run) {
    const u64 rings = run.plan.fibres;
    std::vector<Seat> seats(run.plan.crew());
    for (u64 fibre = 0; fibre < rings; ++fibre) seats[fibre].post();
    run_all(
        run,
        [&](u64 fibre) {
            Seat& mine = seats[fibre];
            Seat& next = seats[(fibre + rings) % seats.size()];
            do {
                mine.wait();
                next.post();
            } while (!run.counted(fibre));
        },
        [&] { for (Seat& seat : seats) seat.post(); });
}

static void yield(Run& run) {
    run_all(
        run,
        [&](u64 fibre) {
            do boost::this_fiber::yield();
            while (!run.counted(fibre));
        },
        [] {});
}

static void churn(Run& run) {
    std::vector<Semaphore> semaphores(run.plan.semaphores);
    run_all(
        run,
        [&](u64 fibre) {
            Random random(run.plan.seed, fibre);
            bool first = fibre < semaphores.size();
            do {
                Semaphore& semaphore = semaphores[random.below(semaphores.size())];
                if (!first) semaphore.post();
                first = false;
                semaphore.wait();
            } while (!run.counted(fibre));
        },
        [&] {
            for (Semaphore& semaphore : semaphores)
                for (int i = 0; i < LAST_POSTS; ++i) semaphore.post();
        });
}

// An array of locality: the words, and the processor that touched them last. With sharing,
// several fibres may have one array, and losing an increment is part of the benchmark.
struct alignas(128) Data {
    std::vector<Count> words;
    std::atomic<u64> last{~u64{0}};

    void touch(u64 touches, Random& random) {
        for (u64 i = 0; i < touches; ++i) words[random.below(words.size())].add_one();
    }
};

// Where a fibre of locality sits, and what it takes when it goes on.
struct alignas(128) Context {
    Seat seat;
    Data* data = nullptr;
};

static void locality(Run& run) {
    const Plan& plan = run.plan;
    std::vector<Data> arrays(plan.fibres);
    std::vector<Context> contexts(plan.fibres);
    std::vector<Aligned<std::atomic<Context*>>> spots(plan.spots);
    for (u64 i = 0; i < plan.fibres; ++i) {
        arrays[i].words = std::vector<Count>(plan.words);
        contexts[i].data = &arrays[i];
    }
    Context closed;
    run_all(
        run,
        [&](u64 fibre) {
            Random random(plan.seed, fibre);
            Context& mine = contexts[fibre];
            u64 before = processor();
            for (;;) {
                Data* data = mine.data;
                data->touch(plan.touches, random);
                std::atomic<Context*>& spot = spots[random.below(spots.size())].v;
                Context* who = spot.load(std::memory_order_acquire);
                // acq_rel: who finds me finds what I wrote, and I what it wrote.
                while (who != &closed &&
                       !spot.compare_exchange_weak(who, &mine, std::memory_order_acq_rel,
                                                   std::memory_order_acquire)) {
                }
                if (who == &closed) return;
                if (who != nullptr) {
                    if (plan.share) who->data = data;
                    who->seat.post();
                }
                mine.seat.wait();
                if (run.stopped()) return;
                data = mine.data;
                const u64 now = processor();
                run.counted(fibre);
                run.by_processor[now].operations.add_one();
                if (now != before) run.tallies[fibre].migrations.add_one();
                before = now;
                const u64 last = data->last.load(std::memory_order_relaxed);
                if (last != now) {
                    data->last.store(now, std::memory_order_relaxed);
                    if (last != ~u64{0}) run.tallies[fibre].data_migrations.add_one();
                }
            }
        },
        [&] {
            for (auto& spot : spots) {
                Context* who = spot.v.exchange(&closed);
                if (who != nullptr) who->seat.post();
            }
        });
}

static void transfer(Run& run) {
    const u64 t = run.plan.fibres;
    const u64 nobody = ~u64{0};
    std::vector<Seat> seats(t);
    std::vector<Aligned<std::atomic<u64>>> indices(t);
    Aligned<std::atomic<u64>> leader;
    leader.v = Random(run.plan.seed, t).below(t);
    run_all(
        run,
        [&](u64 fibre) {
            Random random(run.plan.seed, fibre);
            std::atomic<u64>& mine = indices[fibre].v;
            const auto wake_others = [&] {
                for (u64 other = 0; other < t; ++other)
                    if (other != fibre) seats[other].post();
            };
            for (;;) {
                const u64 now = leader.v.load(std::memory_order_acquire);
                if (now == nobody) return;
                if (now == fibre) {
                    const u64 index = run.leads.v.load(std::memory_order_relaxed) + 1;
                    mine.store(index, std::memory_order_relaxed);
                    run.leads.v.store(index, std::memory_order_release);
                    if (index > run.limit) {
                        run.stamp();
                        leader.v.store(nobody, std::memory_order_release);
                        wake_others();
                        return;
                    }
                    for (auto& other : indices)
                        while (other.v.load(std::memory_order_acquire) != index)
                            cpu_relax();
                    run.tallies[fibre].operations.add_one();
                    leader.v.store(random.below(t), std::memory_order_release);
                    if (run.plan.parking) wake_others();
                    continue;
                }
                boost::this_fiber::yield();
                const u64 index = mine.load(std::memory_order_relaxed);
                if (run.leads.v.load(std::memory_order_acquire) == index) {
                    run.tallies[fibre].rechecks.add_one();
                    continue;
                }
                mine.store(index + 1, std::memory_order_release);
                if (run.plan.parking) seats[fibre].wait();
                else boost::this_fiber::yield();
            }
        },
        [] {});
}

int main(int argc, char** argv) {
    Run run{Plan::from_args(argc, argv)};
    const std::string& bench = run.plan.bench;
    if (bench == "cycle") cycle(run);
    else if (bench == "yield") yield(run);
    else if (bench == "churn") churn(run);
    else if (bench == "locality") locality(run);
    else transfer(run);
}
