// Flags, the clock and the watch of a run, random numbers, and the line of JSON at the end.
//
// The program that includes this has the functions declared here.

#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <sys/resource.h>
#include <unistd.h>

using u64 = std::uint64_t;
using steady = std::chrono::steady_clock;

// How long a run may go without progress, or take to end once stop is set.
constexpr std::chrono::seconds PATIENCE{5};

// How many times stop posts each semaphore of churn.
constexpr int LAST_POSTS = 10'000;

// Which runtime this is.
static const char* peer_name();
static std::string peer_version();

// What to run, from the flags.
struct Plan {
    std::string bench;
    u64 processors = 1;
    u64 fibres = 0;  // t; for cycle rings
    double secs = 0;
    u64 iterations = 0;  // per fibre; for transfer in all
    u64 ring = 5, semaphores = 0, spots = 0, words = 2, touches = 2, seed = 1;
    bool share = false, parking = true;

    static Plan from_args(int argc, char** argv) {
        try {
            return parse(argc, argv);
        } catch (const std::exception& why) {
            std::fprintf(stderr, "%s\n", why.what());
            std::exit(2);
        }
    }

    // How many fibres run.
    u64 crew() const { return bench == "cycle" ? ring * fibres : fibres; }

private:
    [[noreturn]] static void refuse(const std::string& why) { throw std::runtime_error(why); }

    static Plan parse(int argc, char** argv) {
        Plan plan;
        for (int i = 1; i < argc; i += 2) {
            const std::string flag = argv[i];
            if (i + 1 == argc) refuse(flag + " has no value");
            const std::string value = argv[i + 1];
            const auto bad = [&] { refuse(flag + " does not take \"" + value + "\""); };
            const auto count = [&](u64& into) {
                char* end = nullptr;
                into = std::strtoull(value.c_str(), &end, 10);
                if (value.empty() || *end != 0 || value[0] == '-') bad();
            };
            const auto either = [&](bool& into, const char* yes, const char* no) {
                if (value != yes && value != no) bad();
                into = value == yes;
            };
            if (flag == "--bench") plan.bench = value;
            else if (flag == "--processors") count(plan.processors);
            else if (flag == "--fibres") count(plan.fibres);
            else if (flag == "--secs") {
                char* end = nullptr;
                plan.secs = std::strtod(value.c_str(), &end);
                if (value.empty() || *end != 0) bad();
            }
            else if (flag == "--iterations") count(plan.iterations);
            else if (flag == "--ring") count(plan.ring);
            else if (flag == "--semaphores") count(plan.semaphores);
            else if (flag == "--spots") count(plan.spots);
            else if (flag == "--words") count(plan.words);
            else if (flag == "--touches") count(plan.touches);
            else if (flag == "--seed") count(plan.seed);
            else if (flag == "--share") either(plan.share, "on", "off");
            else if (flag == "--flavour") either(plan.parking, "park", "yield");
            else refuse("there is no flag " + flag);
        }
        plan.complete();
        return plan;
    }

    // Fills in what was left out and refuses what cannot run.
    void complete() {
        const bool timed = secs > 0, counted = iterations > 0;
        if (processors < 1 || fibres < 1) refuse("--processors and --fibres have to be at least 1");
        if (timed == counted) refuse("give --secs or --iterations, above 0, and not both");
        if ((bench == "churn" || bench == "locality") && counted) refuse(bench + " takes --secs");
        if (bench == "cycle") {
            if (ring < 1) refuse("a ring has at least 1 fibre");
        } else if (bench == "churn") {
            if (semaphores == 0) semaphores = std::max<u64>(1, fibres / 2);
            if (fibres < semaphores + processors)
                refuse("churn needs " + std::to_string(semaphores) + " + " +
                       std::to_string(processors) + " fibres or more, and has " +
                       std::to_string(fibres));
        } else if (bench == "locality") {
            if (spots == 0) spots = fibres > processors ? fibres - processors : 0;
            if (spots < 1 || spots >= fibres || words < 1)
                refuse("locality needs words, and fewer spots than fibres");
        } else if (bench == "transfer") {
            if (processors < 2 || fibres < 2)
                refuse("transfer needs 2 processors and 2 fibres or more");
            if (timed) refuse("transfer takes --iterations");
        } else if (bench != "yield") {
            refuse("there is no benchmark \"" + bench + "\"");
        }
    }
};

template <typename T>
struct alignas(128) Aligned {
    T v{};
};

// A count of one writer. Relaxed: it orders nothing, and is read in the end after `left`.
struct Count {
    std::atomic<u64> n{0};
    u64 get() const { return n.load(std::memory_order_relaxed); }
    u64 add_one() {
        const u64 sum = get() + 1;
        n.store(sum, std::memory_order_relaxed);
        return sum;
    }
};

// What one fibre, or one processor, did.
struct alignas(128) Tally {
    Count operations, migrations, data_migrations, rechecks;
};

// CPU time of the whole process, in seconds.
inline double cpu_s() {
    rusage usage{};
    getrusage(RUSAGE_SELF, &usage);
    const auto seconds = [](const timeval& t) { return t.tv_sec + t.tv_usec * 1e-6; };
    return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

// One run: when it began and ended, who still runs, what was done.
struct Run {
    const Plan plan;
    const u64 limit;
    std::vector<Tally> tallies;
    std::vector<Tally> by_processor;
    Aligned<std::atomic<u64>> leads;
    Aligned<std::atomic<bool>> stop;
    // Fibres that run, and one more until the end is noted.
    Aligned<std::atomic<u64>> left;

    explicit Run(const Plan& plan)
        : plan(plan),
          limit(plan.iterations > 0 ? plan.iterations : ~u64{0}),
          tallies(plan.crew()),
          by_processor(plan.processors) {
        left.v = plan.crew() + 1;
    }

    // Counts an operation; whether it was this fibre's last.
    bool counted(u64 fibre) {
        const u64 count = tallies[fibre].operations.add_one();
        return stopped() || count >= limit;
    }

    // Relaxed: the flag carries nothing.
    bool stopped() const { return stop.v.load(std::memory_order_relaxed); }

    // A fibre ends; true for the last one.
    bool leave() {
        if (left.v.fetch_sub(1, std::memory_order_acq_rel) != 2) return false;
        stamp();
        left.v.fetch_sub(1, std::memory_order_release);
        return true;
    }

    // Notes when the run ended; only the first note counts.
    void stamp() {
        if (stamped_.exchange(true)) return;
        wall_ = std::chrono::duration<double>(steady::now() - began_).count();
        cpu_ = cpu_s() - cpu_began_;
    }

    // Lets the fibres go, looks every 100 ms (a run by iterations, every 5), sets stop, lets
    // `end` wake who waits, waits for all to leave, and reports.
    void watch(const std::function<void()>& go, const std::function<void()>& end) {
        const bool timed = plan.secs > 0;
        const std::chrono::milliseconds look{timed ? 100 : 5};
        const auto until =
            std::chrono::duration_cast<steady::duration>(std::chrono::duration<double>(plan.secs));
        began_ = steady::now();
        cpu_began_ = cpu_s();
        go();
        u64 seen = ~u64{0};
        auto since = steady::now();
        while (left.v.load(std::memory_order_acquire) > 0) {
            const auto rest = until - (steady::now() - began_);
            std::this_thread::sleep_for(timed ? std::min<steady::duration>(look, rest) : look);
            if (timed && steady::now() - began_ >= until) break;
            const u64 now = done();
            if (now != seen) {
                seen = now;
                since = steady::now();
            } else if (steady::now() - since > PATIENCE && plan.bench == "transfer") {
                // A result: some fibre never ran. The leader spins, so this cannot be stopped,
                // unless it is through, and only the end did not reach all.
                stamp();
                report(leads.v.load() > limit);
                std::fflush(stdout);
                _exit(0);
            } else if (steady::now() - since > PATIENCE) {
                give_up("made no progress");
            }
        }
        if (timed) stamp();
        stop.v = true;
        end();
        since = steady::now();
        while (left.v.load(std::memory_order_acquire) > 0) {
            std::this_thread::sleep_for(std::chrono::milliseconds{1});
            if (steady::now() - since > PATIENCE) give_up("did not end once it was told to stop");
        }
        report(true);
        // Threads of the runtime may sleep for good; the process ends without asking them.
        std::fflush(stdout);
        _exit(0);
    }

private:
    steady::time_point began_{};
    double cpu_began_ = 0, wall_ = 0, cpu_ = 0;
    std::atomic<bool> stamped_{false};

    u64 done() const {
        u64 sum = leads.v.load(std::memory_order_relaxed);
        for (const Tally& tally : tallies) sum += tally.operations.get();
        return sum;
    }

    [[noreturn]] void give_up(const char* what) const {
        std::fprintf(stderr, "%s %s within %d s: %llu fibres are left\n", plan.bench.c_str(), what,
                     int(PATIENCE.count()), (unsigned long long)(left.v.load() - 1));
        _exit(3);
    }

    static u64 sum(const std::vector<Tally>& tallies, Count Tally::*of) {
        u64 sum = 0;
        for (const Tally& tally : tallies) sum += (tally.*of).get();
        return sum;
    }

    static void print(const char* name, const std::vector<Tally>& tallies) {
        std::printf(",\"%s\":[", name);
        const char* comma = "";
        for (const Tally& tally : tallies) {
            std::printf("%s%llu", comma, (unsigned long long)tally.operations.get());
            comma = ",";
        }
        std::printf("]");
    }

    void report(bool completed) const {
        std::printf(
            "{\"peer\":\"%s\",\"version\":\"%s\",\"bench\":\"%s\",\"processors\":%llu,"
            "\"fibres\":%llu,\"operations\":%llu,\"wall_s\":%.9f,\"cpu_s\":%.9f,\"completed\":%s",
            peer_name(), peer_version().c_str(),
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
};

// Marsaglia's xorshift64; the same in all programs.
class Random {
    u64 x;

public:
    // Of one fibre: splitmix64 of seed and number, so that neighbours differ.
    Random(u64 seed, u64 fibre) {
        u64 z = (seed + fibre + 1) * 0x9E3779B97F4A7C15;
        z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9;
        z = (z ^ (z >> 27)) * 0x94D049BB133111EB;
        x = (z ^ (z >> 31)) | 1;
    }

    u64 below(u64 n) {
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
        return x % n;
    }
};
