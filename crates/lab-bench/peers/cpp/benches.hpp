// The five benchmarks, on the means of the program that includes this: Seat, Semaphore,
// let_others_run, processor and run_all.

#pragma once

#include "frame.hpp"

// Tells the CPU that a loop waits.
static void pause_briefly() {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    asm volatile("yield");
#endif
}

// The number of the processor that the calling fibre runs on.
static u64 processor();
// Lets other fibres of the processor run.
static void let_others_run();
// Starts the processors with all fibres, which wait until all of them are there; sees the run
// through. Never returns.
static void run_all(Run& run, const std::function<void(u64)>& body,
                    const std::function<void()>& end);

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
            do let_others_run();
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
struct alignas(128) Sitting {
    Seat seat;
    Data* data = nullptr;
};

static void locality(Run& run) {
    const Plan& plan = run.plan;
    std::vector<Data> arrays(plan.fibres);
    std::vector<Sitting> contexts(plan.fibres);
    std::vector<Aligned<std::atomic<Sitting*>>> spots(plan.spots);
    for (u64 i = 0; i < plan.fibres; ++i) {
        arrays[i].words = std::vector<Count>(plan.words);
        contexts[i].data = &arrays[i];
    }
    Sitting closed;
    run_all(
        run,
        [&](u64 fibre) {
            Random random(plan.seed, fibre);
            Sitting& mine = contexts[fibre];
            u64 before = processor();
            for (;;) {
                Data* data = mine.data;
                data->touch(plan.touches, random);
                std::atomic<Sitting*>& spot = spots[random.below(spots.size())].v;
                Sitting* who = spot.load(std::memory_order_acquire);
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
                Sitting* who = spot.v.exchange(&closed);
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
                            pause_briefly();
                    run.tallies[fibre].operations.add_one();
                    leader.v.store(random.below(t), std::memory_order_release);
                    if (run.plan.parking) wake_others();
                    continue;
                }
                let_others_run();
                const u64 index = mine.load(std::memory_order_relaxed);
                if (run.leads.v.load(std::memory_order_acquire) == index) {
                    run.tallies[fibre].rechecks.add_one();
                    continue;
                }
                mine.store(index + 1, std::memory_order_release);
                if (run.plan.parking) seats[fibre].wait();
                else let_others_run();
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
