//! Closures that make requests, on members that serve while they wait.

use crate::support::{POLICIES, each_team};
use corelay_delegate::{Member, Trustees, Trusts, barrier, poll};
use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Each closure posts on to the next member's object, for some hops, while all of them call.
#[test]
fn posts_of_closures_reach_every_member() {
    for policy in POLICIES {
        // Requests of closures wait in a queue as long as the window.
        let team = Trustees::flat(3).policy(policy).start().expect("threads");
        let members = team.len() as u64;
        let ring = team.entrust_all(vec![0u64; team.len()]);
        let done = Arc::new(AtomicU64::new(0));
        fn hop(ring: Trusts<u64>, done: Arc<AtomicU64>, at: usize, left: u32) {
            let next = ring.clone();
            ring[at].post(move |n| {
                *n += 1;
                if left == 0 {
                    done.fetch_add(1, Ordering::Release);
                } else {
                    let at = (at + 1) % next.len();
                    hop(next, done, at, left - 1);
                }
            });
        }
        let (starts, hops) = (20u64, 9u32);
        team.run(|me| {
            for _ in 0..starts {
                hop(ring.clone(), Arc::clone(&done), me.number(), hops);
                ring[(me.number() + 1) % ring.len()].apply(|n| *n += 0);
            }
            // `barrier` does not wait for requests of closures.
            while done.load(Ordering::Acquire) < members * starts {
                barrier().expect("no panic");
                poll();
                std::thread::yield_now();
            }
        });
        let sum: u64 = ring.iter().map(|object| object.apply(|n| *n)).sum();
        assert_eq!(sum, members * starts * u64::from(hops + 1), "{policy}");
    }
}

/// Nothing may wait inside a closure, also one that its own member runs at once.
#[test]
fn a_call_inside_a_closure_is_refused() {
    each_team(|team| {
        let objects = team.entrust_all(vec![0u64; team.len()]);
        let objects = &objects;
        team.run(|me| {
            for (to, object) in objects.iter().enumerate() {
                if to != me.number() {
                    continue;
                }
                let nested = catch_unwind(AssertUnwindSafe(|| {
                    object.apply(|_| objects[0].apply(|n| *n += 1));
                }));
                let payload = nested.expect_err("a closure is a leaf");
                let message = payload.downcast_ref::<String>().expect("a text");
                assert!(
                    message.contains("a delegated closure is a leaf"),
                    "{message}"
                );
            }
        });
    });
}

thread_local! {
    static ME: Cell<*const Member> = const { Cell::new(std::ptr::null()) };
}

/// A closure that its member runs at once has no pass beneath it, and may know its member, as
/// by a scoped thread-local.
#[test]
fn no_member_serves_inside_a_closure() {
    each_team(|team| {
        let own = team.entrust_on(0, 0u64);
        let (begun, asked) = (&AtomicU64::new(0), &AtomicU64::new(0));
        std::thread::scope(|s| {
            s.spawn(|| {
                while begun.load(Ordering::Acquire) == 0 {
                    std::thread::yield_now();
                }
                own.post(|_| ());
                asked.store(1, Ordering::Release);
            });
            team.run(|me| {
                if me.number() == 0 {
                    ME.set(me);
                    own.apply(|_| {
                        begun.store(1, Ordering::Release);
                        while asked.load(Ordering::Acquire) == 0 {
                            std::thread::yield_now();
                        }
                        // SAFETY: this runs inside the member's function.
                        let served = unsafe { &*ME.get() }.serve();
                        assert!(!served, "a closure inside a closure");
                    });
                }
            });
        });
    });
}
