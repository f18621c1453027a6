//! A member that waits serves, and sleeps if there is nothing to serve.

use crate::support::{POLICIES, each_team};
use crate::toy::Toy;
use corelay_delegate::{Policy, Trustees, barrier};
use std::cell::Cell;
use std::sync::Barrier;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

thread_local! {
    /// Callbacks that have run on this thread.
    static HEARD: Cell<u64> = const { Cell::new(0) };
}

/// Every member makes requests to every other one, of every kind; nothing is lost.
#[test]
fn every_kind_of_request_between_all_members_is_answered() {
    each_team(|team| {
        let rounds = 60u64;
        let objects = team.entrust_all(vec![0u64; 2 * team.len()]);
        let heard = AtomicU64::new(0);
        team.run(|_| {
            for round in 0..rounds {
                for object in &objects {
                    match round % 3 {
                        0 => object.post(|n| *n += 1),
                        1 => object.apply_then(|n| *n += 1, |()| HEARD.set(HEARD.get() + 1)),
                        _ => object.apply(|n| *n += 1),
                    }
                }
            }
            barrier().expect("no panic");
            heard.fetch_add(HEARD.take(), Ordering::Relaxed);
        });
        let members = team.len() as u64;
        for object in &objects {
            assert_eq!(object.apply(|n| *n), members * rounds);
        }
        let all = members * rounds / 3 * objects.len() as u64;
        assert_eq!(heard.load(Ordering::Relaxed), all);
    });
}

/// Calls in a ring: each waits for the next one, and all serve.
#[test]
fn a_ring_of_calls_between_members_completes() {
    each_team(|team| {
        let objects = team.entrust_all(vec![0u64; team.len()]);
        team.run(|me| {
            let next = &objects[(me.number() + 1) % objects.len()];
            for _ in 0..100 {
                next.apply(|n| *n += 1);
            }
        });
        assert!(objects.iter().all(|object| object.apply(|n| *n) == 100));
    });
}

/// A member sleeps in a long wait; requests of others wake it.
#[test]
fn a_member_that_sleeps_is_woken_to_serve() {
    for policy in POLICIES {
        let team = Trustees::flat(2).policy(policy).start().expect("threads");
        let (slow, quick) = (team.entrust_on(1, 0u64), team.entrust_on(0, 0u64));
        let (slow, quick) = (&slow, &quick);
        std::thread::scope(|s| {
            // From outside: member 0 waits for member 1, which is busy for long.
            s.spawn(|| {
                for _ in 0..5 {
                    std::thread::sleep(Duration::from_millis(3));
                    quick.apply(|n| *n += 1);
                }
            });
            team.run(|me| {
                if me.number() == 0 {
                    slow.apply(|n| {
                        std::thread::sleep(Duration::from_millis(30));
                        *n += 1;
                    });
                }
            });
        });
        assert_eq!((slow.apply(|n| *n), quick.apply(|n| *n)), (1, 5));
    }
}

/// A member that does not wait serves in `Member::serve` and in `poll`.
#[test]
fn serve_and_poll_serve_requests() {
    for policy in POLICIES {
        let team = Trustees::flat(2).policy(policy).start().expect("threads");
        let asked = team.entrust_on(0, 0u64);
        let (start, seen) = (Barrier::new(2), AtomicU64::new(0));
        team.run(|me| {
            start.wait();
            if me.number() == 1 {
                for _ in 0..100 {
                    asked.apply(|n| *n += 1);
                }
                seen.store(1, Ordering::Release);
            } else {
                let mut turn = 0;
                while seen.load(Ordering::Acquire) == 0 {
                    turn += 1;
                    if turn % 2 == 0 {
                        me.serve();
                    } else {
                        corelay_delegate::poll();
                    }
                }
            }
        });
        assert_eq!(asked.apply(|n| *n), 100);
    }
}

/// The greedy client: under the policies that cure it, a member that asks only itself serves the
/// others.
#[test]
fn bounded_policies_make_a_greedy_member_serve() {
    let cures = [
        Policy::Queue,
        Policy::Blocked,
        Policy::Bound(64),
        Policy::Doorbell,
        Policy::Adaptive,
    ];
    for policy in cures {
        let team = Trustees::flat(2).policy(policy).start().expect("threads");
        let hot = team.entrust_on(0, 0u64);
        let done = AtomicU64::new(0);
        team.run(|me| {
            if me.number() == 0 {
                // For ever, if the victim is starved.
                while done.load(Ordering::Acquire) == 0 {
                    hot.post(|n| *n += 1);
                }
            } else {
                for _ in 0..10 {
                    hot.apply(|n| *n += 1);
                }
                done.store(1, Ordering::Release);
            }
        });
    }
}

/// The greedy member starves others as long as it goes on.
#[test]
fn fast_path_lets_a_greedy_member_starve_others() {
    let team = Trustees::flat(2).policy(Policy::FastPath);
    let team = team.start().expect("threads");
    let hot = team.entrust_on(0, 0u64);
    let (start, answered) = (Barrier::new(2), AtomicU64::new(0));
    team.run(|me| {
        // Before its function a member serves.
        start.wait();
        if me.number() == 0 {
            start.wait();
            for _ in 0..100_000 {
                hot.post(|n| *n += 1);
            }
            // Had it served even once, one request would have been answered by now or be under way;
            // it was made before.
            assert_eq!(answered.load(Ordering::Acquire), 0);
        } else {
            hot.apply_then(|n| *n += 1, |()| ());
            start.wait();
            barrier().expect("no panic");
            answered.store(1, Ordering::Release);
        }
    });
    assert_eq!(hot.apply(|n| *n), 100_001);
}

/// In coroutines too, whose scheduler does not know of members.
#[test]
fn coroutines_of_members_call_each_other() {
    each_team(|team| {
        let objects = team.entrust_all(vec![0u64; team.len()]);
        team.run(|_| {
            let toy = Toy::new();
            for _ in 0..4 {
                let objects = objects.clone();
                toy.add(move || {
                    for _ in 0..5 {
                        objects.iter().for_each(|object| object.apply(|n| *n += 1));
                    }
                });
            }
            toy.run();
        });
        let all = 20 * team.len() as u64;
        assert!(objects.iter().all(|object| object.apply(|n| *n) == all));
    });
}
