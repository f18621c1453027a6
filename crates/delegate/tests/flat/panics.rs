//! A member that panics does not hang the rest.

use crate::support::each_team;
use corelay_delegate::{Trustees, barrier};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicU64, Ordering};

#[test]
fn a_members_panic_reaches_the_caller_and_the_others_go_on() {
    each_team(|team| {
        let objects = team.entrust_all(vec![0u64; team.len()]);
        let ended = AtomicU64::new(0);
        let run = catch_unwind(AssertUnwindSafe(|| {
            team.run(|me| {
                for round in 0..50 {
                    if me.number() == 0 && round == 20 {
                        resume_unwind(Box::new("by design"));
                    }
                    for object in &objects {
                        object.apply_then(|n| *n += 1, |()| ());
                    }
                }
                barrier().expect("no closure panics");
                ended.fetch_add(1, Ordering::Relaxed);
            })
        }));
        let payload = run.expect_err("member 0 has");
        assert_eq!(payload.downcast_ref(), Some(&"by design"));
        let others = team.len() as u64 - 1;
        assert_eq!(ended.load(Ordering::Relaxed), others);
        for object in &objects {
            assert_eq!(object.apply(|n| *n), 50 * others + 20);
        }
        // The team is as good as before.
        assert_eq!(team.run(|me| me.number()).len(), team.len());
    });
}

/// A callback that nobody waited for panics at the end of the function.
#[test]
fn a_late_callbacks_panic_reaches_the_caller() {
    let team = Trustees::flat(2).start().expect("threads");
    let other = team.entrust_on(1, 0u64);
    let run = catch_unwind(AssertUnwindSafe(|| {
        team.run(|me| {
            if me.number() == 0 {
                other.apply_then(|n| *n += 1, |()| resume_unwind(Box::new("late")));
            }
        })
    }));
    assert_eq!(run.expect_err("it has").downcast_ref(), Some(&"late"));
    team.run(|_| barrier().expect("nothing is left of it"));
}

/// Failures that nobody asked about do not reach the next run.
#[test]
fn failures_do_not_reach_the_next_run() {
    let team = Trustees::flat(2).start().expect("threads");
    let other = team.entrust_on(1, 0u64);
    let own = team.entrust_on(0, 0u64);
    team.run(|me| {
        if me.number() == 0 {
            other.post(|_| resume_unwind(Box::new("unheard")));
            own.post(|_| resume_unwind(Box::new("unheard")));
        }
    });
    team.run(|_| barrier().expect("nothing is left of it"));
}

/// A payload whose destructor panics, of a callback that nobody has waited for.
#[test]
fn a_second_panic_is_dropped() {
    struct Payload;
    impl Drop for Payload {
        fn drop(&mut self) {
            resume_unwind(Box::new("a payload's own"));
        }
    }
    let team = Trustees::flat(2).start().expect("threads");
    let other = team.entrust_on(1, 0u64);
    let run = catch_unwind(AssertUnwindSafe(|| {
        team.run(|me| {
            if me.number() == 0 {
                other.apply_then(|n| *n += 1, |()| resume_unwind(Box::new(Payload)));
                resume_unwind(Box::new("the function's"));
            }
        })
    }));
    let payload = run.expect_err("it has");
    assert_eq!(payload.downcast_ref(), Some(&"the function's"));
    team.run(|_| barrier().expect("nothing is left of it"));
}
