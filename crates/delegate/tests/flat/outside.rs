//! Threads that are no members make requests too, and members make requests to trustees outside
//! their team.

use crate::support::each_team;
use corelay_delegate::{Trustees, barrier};

#[test]
fn outside_threads_are_clients() {
    each_team(|team| {
        let objects = team.entrust_all(vec![0u64; team.len()]);
        let objects = &objects;
        std::thread::scope(|s| {
            for _ in 0..2 {
                s.spawn(|| {
                    for _ in 0..30 {
                        for object in objects {
                            object.post(|n| *n += 1);
                            object.apply(|n| *n += 1);
                        }
                    }
                });
            }
            team.run(|_| {
                for _ in 0..30 {
                    objects.iter().for_each(|object| object.apply(|n| *n += 1));
                }
            });
        });
        let each = 2 * 60 + team.len() as u64 * 30;
        assert!(objects.iter().all(|object| object.apply(|n| *n) == each));
    });
}

#[test]
fn members_are_clients_of_other_trustees() {
    let dedicated = Trustees::dedicated(1).start().expect("a thread");
    let other = Trustees::flat(2).start().expect("threads");
    let (far, near) = (dedicated.entrust(0u64), other.entrust(0u64));
    each_team(|team| {
        let before = (far.apply(|n| *n), near.apply(|n| *n));
        let own = team.entrust(0u64);
        team.run(|_| {
            for _ in 0..50 {
                far.apply(|n| *n += 1);
                near.apply_then(|n| *n += 1, |()| ());
                own.apply(|n| *n += 1);
            }
            barrier().expect("no panic");
        });
        let more = 50 * team.len() as u64;
        assert_eq!(far.apply(|n| *n), before.0 + more);
        assert_eq!(near.apply(|n| *n), before.1 + more);
        assert_eq!(own.apply(|n| *n), more);
    });
}
