//! A member counts how often others waited for it while it did not serve.

use crate::support::POLICIES;
use crate::watch::watchdog;
use corelay_delegate::{Member, Team, Trustees, report::State};
use std::sync::Barrier;
use std::time::Duration;

/// Runs two members that begin together: number 0 does not serve before the other one, which waits
/// for it, has gone to sleep. Returns the rings that they have counted.
fn rings_of(team: Team, then: impl Fn(&Member) + Sync) -> Vec<u64> {
    let (asked, start, reporter) = (team.entrust_on(0, 0u64), Barrier::new(2), team.reporter());
    team.run(|me| {
        start.wait();
        if me.number() == 0 {
            // Blocks elsewhere.
            while reporter.report().trustees[1].state != State::Asleep {
                std::thread::sleep(Duration::from_millis(1));
            }
            then(me);
        } else {
            asked.apply(|n| *n += 1);
        }
    });
    assert_eq!(asked.apply(|n| *n), 1);
    team.shutdown().iter().map(|of| of.rings).collect()
}

#[test]
fn a_member_that_blocks_elsewhere_counts_rings() {
    let _watch = watchdog();
    for policy in POLICIES {
        let team = || Trustees::flat(2).policy(policy).start().expect("threads");
        // Heard at the function's end, or when it serves at last.
        for rings in [
            rings_of(team(), |_| ()),
            rings_of(team(), |me| _ = me.serve()),
        ] {
            assert!(rings[0] > 0, "{policy}: {rings:?}");
            assert_eq!(rings[1], 0, "{policy}: nobody has asked it for anything");
        }
    }
}

/// A thread that waits for the trustee's own loop, between functions, is not kept waiting by one.
#[test]
fn a_ring_between_functions_is_not_counted() {
    let _watch = watchdog();
    for policy in POLICIES {
        let team = Trustees::flat(1).policy(policy).start().expect("a thread");
        let asked = team.entrust(0u64);
        let slow = |n: &mut u64| {
            std::thread::sleep(Duration::from_millis(5));
            *n += 1;
        };
        for round in 1..=3 {
            asked.apply(slow); // rings
            team.run(|me| _ = me.serve());
            assert_eq!(asked.apply(|n| *n), round);
        }
        assert_eq!(team.shutdown()[0].rings, 0, "{policy}");
    }
}

/// A thread that waits for a dedicated trustee rings nowhere.
#[test]
fn dedicated_trustees_have_no_bell() {
    let trustees = Trustees::dedicated(1).start().expect("a thread");
    let slow = trustees.entrust(());
    slow.apply(|()| std::thread::sleep(Duration::from_millis(5)));
    assert_eq!(trustees.shutdown()[0].rings, 0);
}
