//! Members whose channels come and go while they serve inside other calls.

use crate::support::{POLICIES, each_team};
use corelay_delegate::{ClientGuard, Trust, Trustees};
use corelay_sync::{Session, Shared};
use std::sync::Mutex;

/// A guard ends a member's channels during its function; one in a callback does not.
#[test]
fn a_guard_ends_a_members_channels_unless_in_a_callback() {
    each_team(|team| {
        let rounds = 20u64;
        let objects = team.entrust_all(vec![0u64; 2 * team.len()]);
        let objects = &objects;
        team.run(|_| {
            for _ in 0..rounds {
                let _guard = ClientGuard::new();
                let mut session = objects[0].session();
                for object in objects {
                    let next = object.clone();
                    object.post(|n| *n += 1);
                    let then = move |()| {
                        let _guard = ClientGuard::new();
                        next.apply(|n| *n += 1);
                    };
                    object.apply_then(|n| *n += 1, then);
                    drop(ClientGuard::new());
                    session.apply(|n| *n += 1);
                }
            }
        });
        let members = team.len() as u64;
        for (number, object) in objects.iter().enumerate() {
            let by_session = if number == 0 { 2 * members } else { 0 };
            let all = members * rounds * (3 + by_session);
            assert_eq!(object.apply(|n| *n), all);
        }
    });
}

/// Closures that a waiting member serves make requests to trustees that it does not know yet, and
/// that may be ending.
#[test]
fn served_closures_use_trustees_that_come_and_go() {
    for policy in POLICIES {
        let team = Trustees::flat(3).policy(policy).start().expect("threads");
        let objects = team.entrust_all([0u64; 3]);
        let others: Mutex<Vec<(Trustees, Trust<u64>)>> = Mutex::default();
        let objects = &objects;
        team.run(|me| {
            for round in 0..20 {
                let dedicated = Trustees::dedicated(1).start().expect("a thread");
                let far = dedicated.entrust(0u64);
                others.lock().expect("well").push((dedicated, far.clone()));
                for object in objects {
                    let far = far.clone();
                    object.post(move |_| _ = far.try_post(|n| *n += 1));
                }
                if round % 4 == 0 {
                    objects[me.number()].apply(|_| ());
                }
                if round % 3 == 2 {
                    let old = others.lock().expect("well").pop();
                    drop(old);
                }
            }
        });
    }
}
