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

#include "../cpp/frame.hpp"

namespace fibers = boost::fibers;
using fibers::context;

static const char* peer_name() { return "boost"; }

static std::string peer_version() {
    return std::to_string(BOOST_VERSION / 100000) + "." +
           std::to_string(BOOST_VERSION / 100 % 1000) + "." + std::to_string(BOOST_VERSION % 100);
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

#include "../cpp/benches.hpp"

static void let_others_run() { boost::this_fiber::yield(); }

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

// Each processor gets its share of the fibres.
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
