//! Transactions under shuttle: random schedules of more threads than loom can afford.
//!
//! `RUSTFLAGS="--cfg corelay_shuttle" cargo test -p corelay-txn --release --test shuttle_tl2`
//!
//! `CORELAY_SHUTTLE_ITERATIONS` says how many schedules each test draws. A failing one is
//! printed, to be replayed with `shuttle::replay`.

use crate::schedules;
use corelay_clock::{Clock, Logical, Skewed, SkewedBuilder};
use corelay_txn::tl2::{Stm, TVar};
use shuttle::sync::Arc;
use shuttle::thread;

const SCHEDULES: usize = 300;

pub(crate) fn skewed() -> Skewed {
    SkewedBuilder {
        skew: 7,
        step: 2,
        boundary: 9,
        delay: 3,
    }
    .build()
}

/// Four writers keep three cells equal, two readers look at every attempt.
fn whole<C: Clock + 'static>(clock: fn() -> C) {
    schedules::model(SCHEDULES, move || {
        let world = Arc::new((Stm::new(clock()), [0; 3].map(|zero: u64| TVar::new(zero))));
        let threads: Vec<_> = (0..6)
            .map(|thread| {
                let world = Arc::clone(&world);
                thread::spawn(move || {
                    let (stm, cells) = &*world;
                    for _ in 0..2 {
                        stm.atomically(|tx| {
                            let first = tx.read(&cells[0])?;
                            for cell in cells {
                                assert_eq!(tx.read(cell)?, first, "torn");
                                if thread < 4 {
                                    tx.write(cell, first + 1)?;
                                }
                            }
                            Ok(())
                        });
                    }
                })
            })
            .collect();
        threads.into_iter().for_each(|t| t.join().unwrap());
        assert!(world.1.iter().all(|cell| cell.load() == 8));
    });
}

#[test]
fn snapshots_are_whole_by_the_counter() {
    whole(Logical::new);
}

#[test]
fn snapshots_are_whole_within_the_boundary() {
    whole(skewed);
}

/// Three threads put, three take, through one slot: nobody sleeps for ever.
#[test]
fn every_sleeper_is_woken() {
    schedules::model(SCHEDULES, || {
        let world = Arc::new((Stm::<Logical>::default(), TVar::new(None::<u64>)));
        let threads: Vec<_> = (0..6)
            .map(|thread| {
                let world = Arc::clone(&world);
                thread::spawn(move || {
                    let (stm, slot) = &*world;
                    stm.atomically(|tx| {
                        let full = tx.read(slot)?.is_some();
                        tx.check(full == (thread % 2 == 0))?;
                        tx.write(slot, (!full).then_some(thread))
                    });
                })
            })
            .collect();
        threads.into_iter().for_each(|t| t.join().unwrap());
        assert_eq!((world.1.load(), world.0.sleeping()), (None, 0));
    });
}
