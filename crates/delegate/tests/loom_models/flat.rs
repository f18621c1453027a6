//! Members of flat teams, which serve while they wait, under loom: see `channel` for how.
//!
//! In the models a member that waits goes to sleep at its first look in vain. Only excerpts are
//! explored: the members' functions, from a point shortly before the threads meet.

use crate::model::{Flag, excerpt, explored, long_excerpt, scene, trustees};
use corelay_delegate::{ClientGuard, Doorbell, Dozer, Jobs, Policy, Team, Trust, Trustees};
use corelay_sync::barrier;
use corelay_sync::facade::atomic::{AtomicUsize, Ordering};
use corelay_sync::facade::sync::Arc;
use corelay_sync::facade::thread;

fn team(members: usize, policy: Policy) -> Team {
    let team = Trustees::flat(members).policy(policy).window(2);
    team.start().unwrap()
}

/// Ends the team of a model.
fn end(team: Team) {
    drop(ClientGuard::new());
    team.shutdown();
}

/// Both members wait for each other, and may be asleep when a request comes.
#[test]
fn members_that_call_each_other_are_answered() {
    excerpt(|| {
        let team = team(2, Policy::FastPath);
        let objects = team.entrust_all([1u64, 2]);
        let met = Flag::new();
        let call = |from: usize| objects[1 - from].apply(|n| *n);
        let answers = team.run(|me| {
            if me.number() == 0 {
                met.wait();
                call(0)
            } else {
                explored(|| {
                    met.raise();
                    call(1)
                })
            }
        });
        assert_eq!(answers, [2, 1]);
        drop(objects);
        end(team);
    });
}

/// The trustee that the member waits for waits in turn for the request that the member is to run,
/// and for nothing else: a wake-up that is lost is a deadlock.
#[test]
fn a_member_that_dozes_is_woken_by_a_request() {
    long_excerpt(|| {
        let (team, dedicated) = (team(1, Policy::FastPath), trustees());
        let (slow, quick) = (dedicated.entrust(0u64), team.entrust(0u64));
        let (met, done) = (Flag::new(), Flag::new());
        let (meet, raise) = (met.clone(), done.clone());
        let outside = thread::spawn(move || {
            quick.post(|_| ());
            meet.wait();
            quick.post(move |_| raise.raise());
            drop(quick);
            drop(ClientGuard::new());
        });
        team.run(|_| {
            slow.apply(|_| ());
            let done = done.clone();
            explored(|| {
                met.raise();
                slow.apply(move |_| done.wait());
            });
        });
        outside.join().unwrap();
        drop(slow);
        end(team);
        dedicated.shutdown();
    });
}

/// The work of members is visible when the run is over, though nobody has waited for it, and again
/// at the end of the next run.
#[test]
fn a_run_is_over_when_all_is_done() {
    long_excerpt(|| {
        let team = team(2, Policy::FastPath);
        let objects = team.entrust_all([0u64, 0]);
        let done: Arc<[AtomicUsize; 3]> = Arc::default();
        let add = |which: usize| {
            let done = done.clone();
            // Relaxed: the model asks whether it is ordered before the caller's look.
            move || _ = done[which].fetch_add(1, Ordering::Relaxed)
        };
        let run = || {
            team.run(|me| {
                if me.number() == 0 {
                    let (ran, heard) = (add(0), add(1));
                    objects[1].apply_then(move |_| ran(), move |()| heard());
                } else {
                    add(2)();
                }
            });
        };
        run();
        explored(|| {
            run();
            for count in done.iter() {
                assert_eq!(count.load(Ordering::Relaxed), 2);
            }
        });
        drop(objects);
        end(team);
    });
}

/// Requests of closures that a member serves, to the trustee that the member waits for.
fn closures_send_after_the_call(warm: bool, ask: fn(&Trust<u64>)) {
    excerpt(move || {
        let (team, dedicated) = (team(1, Policy::FastPath), trustees());
        let (far, near) = (dedicated.entrust(0u64), team.entrust(false));
        let met = Flag::new();
        let (meet, on, to) = (met.clone(), far.clone(), near.clone());
        let outside = thread::spawn(move || {
            to.post(|_| ());
            meet.wait();
            to.post(move |has_called| {
                if *has_called {
                    ask(&on);
                }
            });
            drop(to);
            drop(ClientGuard::new());
        });
        team.run(|_| {
            if warm {
                far.apply(|_| ());
            }
            explored(|| {
                met.raise();
                near.apply(|has_called| *has_called = true);
                // The call is sent before anything else is served.
                assert_eq!(far.apply(|n| std::mem::replace(n, 1)), 0);
            });
        });
        outside.join().unwrap();
        drop((far, near));
        end(team);
        dedicated.shutdown();
    });
}

/// The post does not overtake the call.
#[test]
fn a_post_of_a_served_closure_runs_after_the_call() {
    closures_send_after_the_call(true, |far| {
        far.post(|n| {
            assert_eq!(*n, 1, "overtaken");
            *n += 1;
        });
    });
}

/// The request does not take the call's line.
#[test]
fn a_request_of_a_served_closure_leaves_the_line_to_the_call() {
    closures_send_after_the_call(true, |far| {
        far.apply_then(
            |n| {
                assert_eq!(*n, 1, "overtaken");
                *n += 1;
            },
            |()| (),
        );
    });
}

/// A member that asks only itself, and a thread that rings. The last request is served at the end
/// of the function.
#[test]
fn the_doorbell_is_heard_or_the_function_ends() {
    excerpt(|| {
        let team = team(1, Policy::Doorbell);
        let (own, hot) = (team.entrust(0u64), team.entrust(0u64));
        let met = Flag::new();
        let (meet, victim) = (met.clone(), hot.clone());
        let outside = thread::spawn(move || {
            victim.apply(|_| ());
            meet.wait();
            assert_eq!(victim.apply(|n| std::mem::replace(n, 1)), 0);
            drop(victim);
            drop(ClientGuard::new());
        });
        team.run(|_| {
            explored(|| {
                met.raise();
                for _ in 0..2 {
                    own.post(|n| *n += 1);
                }
                assert_eq!(own.apply(|n| *n), 2);
            });
        });
        outside.join().unwrap();
        assert_eq!(hot.apply(|n| *n), 1);
        drop((own, hot));
        end(team);
    });
}

/// A waiting thread makes a request, rings, and rings once more after the barrier of its sleep. A
/// request that the pass after an earlier ring does not find has a ring after it.
#[test]
fn no_ring_is_lost() {
    scene(|| {
        let bell = Arc::new(Doorbell::default());
        let asked = Arc::new(AtomicUsize::new(0));
        // Relaxed: as at the store, so that only the bell orders the two.
        let hears_of_it = || bell.hear() && asked.load(Ordering::Relaxed) == 1;
        bell.ring();
        let (ringer, ask) = (bell.clone(), asked.clone());
        let waits = thread::spawn(move || {
            ask.store(1, Ordering::Relaxed);
            ringer.ring();
            barrier::heavy();
            ringer.ring();
        });
        let heard = hears_of_it();
        waits.join().unwrap();
        assert!(heard || hears_of_it());
    });
}

/// One client comes to look at the state when its request has been served already, finds the member
/// about to doze, and wakes a thread that does not sleep yet. Another one then finds it awake, and
/// relies on that. `doze` is the member's way to sleep.
fn early_wake_up(doze: fn(&Dozer, &dyn Fn() -> bool)) {
    scene(move || {
        let member = Arc::new(Dozer::default());
        let asked = Arc::new(AtomicUsize::new(0));
        let roused = member.clone();
        let served = thread::spawn(move || roused.rouse());
        let (roused, ask) = (member.clone(), asked.clone());
        let asks = thread::spawn(move || {
            // Relaxed: the barriers order it, as they do in `Shared::doze`.
            ask.store(1, Ordering::Relaxed);
            roused.rouse();
        });
        let is_asked = || asked.load(Ordering::Relaxed) == 1;
        while !is_asked() {
            doze(&member, &is_asked);
        }
        served.join().unwrap();
        asks.join().unwrap();
    });
}

#[test]
fn an_early_wake_up_is_not_lost_for_a_second_client() {
    early_wake_up(|member, is_asked| member.doze(is_asked));
}

#[test]
fn an_early_wake_up_is_not_lost_in_an_event_loop() {
    early_wake_up(|member, is_asked| member.doze_in_loop(is_asked));
}

/// The work of jobs is visible to a thread that has waited for them, though it has not slept.
#[test]
fn the_end_of_jobs_publishes_their_work() {
    scene(|| {
        let jobs = Arc::new(Jobs::new(1));
        let done = Arc::new(AtomicUsize::new(0));
        let (ended, count) = (jobs.clone(), done.clone());
        let thread = thread::spawn(move || {
            count.store(1, Ordering::Relaxed);
            ended.end();
        });
        jobs.wait();
        assert_eq!(done.load(Ordering::Relaxed), 1);
        thread.join().unwrap();
    });
}

/// The same for a thread that finds the round over at its first look: it has learned of the end
/// before, by something that orders nothing.
#[test]
fn the_end_of_jobs_publishes_their_work_to_a_late_waiter() {
    scene(|| {
        let jobs = Arc::new(Jobs::new(1));
        let done: Arc<[AtomicUsize; 2]> = Arc::default();
        let (ended, count) = (jobs.clone(), done.clone());
        let thread = thread::spawn(move || {
            count[0].store(1, Ordering::Relaxed);
            ended.end();
            count[1].store(1, Ordering::Relaxed);
        });
        while done[1].load(Ordering::Relaxed) == 0 {
            thread::yield_now();
        }
        jobs.wait();
        assert_eq!(done[0].load(Ordering::Relaxed), 1);
        thread.join().unwrap();
    });
}
