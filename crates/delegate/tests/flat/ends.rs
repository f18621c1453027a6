//! The end of a run, and of a team.

use crate::support::{POLICIES, each_team};
use crate::watch::watchdog;
use corelay_delegate::{Trust, TrustSession, Trustees, TryPostError};
use corelay_sync::{Session, Shared};
use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// A member whose function has ended serves until all have.
#[test]
fn members_that_have_ended_serve_the_others() {
    each_team(|team| {
        let objects = team.entrust_all(vec![0u64; team.len()]);
        team.run(|me| {
            if me.number() + 1 == objects.len() {
                std::thread::sleep(Duration::from_millis(2));
                for _ in 0..100 {
                    objects.iter().for_each(|object| object.apply(|n| *n += 1));
                }
            }
        });
        assert!(objects.iter().all(|object| object.apply(|n| *n) == 100));
    });
}

/// The requests of a function are done when the run is over, and their callbacks have run.
#[test]
fn a_run_ends_after_its_requests_and_callbacks() {
    each_team(|team| {
        let objects = team.entrust_all(vec![0u64; team.len()]);
        let heard = std::sync::Arc::new(AtomicU64::new(0));
        team.run(|_| {
            for object in &objects {
                object.post(|n| *n += 1);
                let hear = std::sync::Arc::clone(&heard);
                let count = move |()| _ = hear.fetch_add(1, Ordering::Relaxed);
                object.apply_then(|n| *n += 1, count);
            }
        });
        let members = team.len() as u64;
        assert_eq!(heard.load(Ordering::Relaxed), members * members);
        assert!(
            objects
                .iter()
                .all(|object| object.apply(|n| *n) == 2 * members)
        );
    });
}

#[test]
fn a_team_runs_again_and_again() {
    for policy in POLICIES {
        let team = Trustees::flat(3).policy(policy).start().expect("threads");
        let sum = team.entrust(0usize);
        for round in 1..=20 {
            let numbers = team.run(|me| {
                let number = me.number();
                sum.apply(|sum| *sum += number);
                me.number()
            });
            assert_eq!(numbers, [0, 1, 2]);
            assert_eq!(sum.apply(|sum| *sum), 3 * round);
        }
    }
}

/// Two threads give a team work: one after the other.
#[test]
fn runs_of_two_threads_take_turns() {
    let team = Trustees::flat(2).start().expect("threads");
    let inside = AtomicU64::new(0);
    std::thread::scope(|s| {
        for who in 1..=2u64 {
            let (team, inside) = (&team, &inside);
            s.spawn(move || {
                for _ in 0..20 {
                    team.run(|_| {
                        let other = inside.fetch_add(who << 32 | 1, Ordering::AcqRel);
                        assert_ne!(other >> 32, 3 - who, "the other one's run is not over");
                        std::thread::yield_now();
                        inside.fetch_sub(who << 32 | 1, Ordering::AcqRel);
                    });
                }
            });
        }
    });
}

#[test]
fn handles_outlive_their_team() {
    let team = Trustees::flat(2).start().expect("threads");
    let left = team.entrust(7u32);
    let counted = team.shutdown();
    assert_eq!(counted.len(), 2);
    assert!(matches!(
        left.try_post(|_| ()),
        Err(TryPostError::Closed(_))
    ));
}

/// The destructors of entrusted values run on members, each once.
#[test]
fn values_are_dropped_once() {
    static DROPPED: AtomicU64 = AtomicU64::new(0);
    struct Counted;
    impl Drop for Counted {
        fn drop(&mut self) {
            DROPPED.fetch_add(1, Ordering::Relaxed);
        }
    }
    for policy in POLICIES {
        DROPPED.store(0, Ordering::Relaxed);
        let team = Trustees::flat(3).policy(policy).start().expect("threads");
        let kept = team.entrust_all([Counted, Counted, Counted]);
        team.run(|me| {
            for _ in 0..10 {
                let mine = me.entrust(Counted);
                mine.post(|_| ());
                let others = kept[(me.number() + 1) % 3].clone();
                others.post(|_| ());
                drop(mine);
            }
        });
        drop(kept);
        team.shutdown();
        assert_eq!(DROPPED.load(Ordering::Relaxed), 33, "{policy}");
    }
}

#[test]
fn a_run_inside_a_member_is_refused() {
    let team = Trustees::flat(1).start().expect("a thread");
    let refused = catch_unwind(AssertUnwindSafe(|| team.run(|_| team.run(|_| ()))));
    let payload = refused.expect_err("it waits for itself");
    let message = payload.downcast_ref::<&str>().expect("a text");
    assert!(message.contains("inside a member's function"), "{message}");
}

/// A member serves requests that closures of a trustee have made to it, while it ends that trustee
/// and waits.
#[test]
fn a_member_serves_while_it_ends_trustees() {
    for policy in POLICIES {
        let run = Trustees::flat(1).policy(policy).run(|me| {
            for _ in 0..50 {
                let mine = me.entrust(0u64);
                let dedicated = Trustees::dedicated(1).start().expect("a thread");
                let (far, to) = (dedicated.entrust(0u64), mine.clone());
                far.apply(move |_| to.post(|n| *n += 1));
                dedicated.shutdown();
                assert_eq!(mine.apply(|n| *n), 1);
            }
        });
        run.expect("a thread");
    }
}

thread_local! {
    static LATE: RefCell<Option<AddsLate>> = const { RefCell::new(None) };
}

/// Kept by a trustee's thread: makes one more request at the thread's very end.
struct AddsLate(Trust<u64>);

impl Drop for AddsLate {
    fn drop(&mut self) {
        self.0.apply(|n| *n += 1);
    }
}

/// Thread-locals of a trustee make requests to the member that ends it, when nothing but them is
/// left of its thread. The member waits neither for that thread nor for those requests.
#[test]
fn a_member_does_not_wait_for_thread_locals_of_a_trustee_it_ends() {
    let _watch = watchdog();
    for policy in POLICIES {
        let run = Trustees::flat(1).policy(policy).run(|me| {
            for round in 1..=10u32 {
                let mine = me.entrust(0u64);
                let dedicated = Trustees::dedicated(2).start().expect("threads");
                for trustee in 0..2 {
                    let late = AddsLate(mine.clone());
                    let far = dedicated.entrust_on(trustee, ());
                    far.apply(move |()| LATE.set(Some(late)));
                }
                if round.is_multiple_of(2) {
                    drop(dedicated);
                } else {
                    dedicated.shutdown();
                }
                // Perhaps not yet.
                while mine.apply(|n| *n) < 2 {
                    me.serve();
                }
            }
        });
        run.expect("a thread");
    }
}

thread_local! {
    static KEPT: RefCell<Option<AsksLate>> = const { RefCell::new(None) };
}

/// A session of a member with its own object, which makes a request when the member's thread ends.
struct AsksLate {
    session: TrustSession<'static, u64>,
    refused: &'static AtomicU64,
}

impl Drop for AsksLate {
    fn drop(&mut self) {
        let asked = catch_unwind(AssertUnwindSafe(|| self.session.apply(|n| *n)));
        let payload = asked.expect_err("the object is gone");
        let message = payload.downcast_ref::<String>().expect("a text");
        let refused = message.contains("has been shut down");
        self.refused.store(u64::from(refused), Ordering::Release);
    }
}

#[test]
fn a_session_may_outlive_runs_and_its_member() {
    for policy in POLICIES {
        let refused: &'static AtomicU64 = Box::leak(Box::default());
        let team = Trustees::flat(1).policy(policy).start().expect("a thread");
        team.run(|me| {
            let trust: &'static Trust<u64> = Box::leak(Box::new(me.entrust(5)));
            let session = trust.session();
            KEPT.set(Some(AsksLate { session, refused }));
        });
        team.run(|_| {
            KEPT.with_borrow_mut(|kept| {
                let kept = kept.as_mut().expect("from the first run");
                assert_eq!(kept.session.apply(|n| *n), 5);
            });
        });
        team.shutdown();
        assert_eq!(refused.load(Ordering::Acquire), 1, "{policy}");
    }
}
