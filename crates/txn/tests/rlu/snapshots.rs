//! A section sees all of a commit or nothing of it.

use super::{Body, Random, on_every_clock, scaled};
use corelay_clock::{Clock, Skewed, SkewedBuilder};
use corelay_txn::rlu::{Domain, Rlu};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

const CELLS: usize = 8;
const READERS: u64 = 2;
const WRITERS: u64 = 2;

/// Cells of which every commit changes two or all, keeping their sum.
struct Bank<C: Clock> {
    domain: Domain<C>,
    cells: Vec<Rlu<[u64; 3], C>>,
}

impl<C: Clock> Bank<C> {
    fn new(clock: C, deferral: usize) -> Self {
        let domain = Domain::with_deferral(clock, deferral);
        let cells = (0..CELLS).map(|_| domain.cell([100; 3])).collect();
        Self { domain, cells }
    }

    /// Reads until `sections` snapshots are taken or one is torn. Returns how many were torn.
    fn run(&self, sections: u64) -> u64 {
        let stop = AtomicBool::new(false);
        let torn = AtomicU64::new(0);
        std::thread::scope(|s| {
            for id in 0..WRITERS {
                let stop = &stop;
                s.spawn(move || self.write(id, stop));
            }
            let readers: Vec<_> = (0..READERS)
                .map(|id| {
                    let (stop, torn) = (&stop, &torn);
                    s.spawn(move || self.read(id, sections / READERS, stop, torn))
                })
                .collect();
            for reader in readers {
                reader.join().unwrap();
            }
            stop.store(true, Ordering::Relaxed);
        });
        torn.into_inner()
    }

    fn write(&self, id: u64, stop: &AtomicBool) {
        let mut random = Random::new(id + 100);
        let mut session = self.domain.session();
        while !stop.load(Ordering::Relaxed) {
            let (from, to) = (random.below(CELLS as u64), random.below(CELLS as u64));
            let all = random.below(4) == 0;
            session.write(|section| {
                if all {
                    // Each cell gives one to the next, all the way round.
                    for at in 0..CELLS {
                        let next = &self.cells[(at + 1) % CELLS];
                        for cell in section.try_lock(&self.cells[at])? {
                            *cell = cell.wrapping_sub(1);
                        }
                        for cell in section.try_lock(next)? {
                            *cell = cell.wrapping_add(1);
                        }
                    }
                    return Ok(());
                }
                for cell in section.try_lock(&self.cells[from as usize])? {
                    *cell = cell.wrapping_sub(1);
                }
                for cell in section.try_lock(&self.cells[to as usize])? {
                    *cell = cell.wrapping_add(1);
                }
                Ok(())
            });
            // Readers should also find the cells at rest sometimes.
            if random.below(8) == 0 {
                std::thread::yield_now();
            }
        }
    }

    fn read(&self, id: u64, sections: u64, stop: &AtomicBool, torn: &AtomicU64) {
        let mut random = Random::new(id);
        let mut session = self.domain.session();
        for _ in 0..sections {
            if stop.load(Ordering::Relaxed) {
                return;
            }
            let first = random.below(CELLS as u64) as usize;
            let sum = session.read(|section| {
                let mut sum = 0_u64;
                for at in 0..CELLS {
                    let value = section.get(&self.cells[(first + at) % CELLS]);
                    if value[0] != value[1] || value[1] != value[2] {
                        return u64::MAX;
                    }
                    sum = sum.wrapping_add(value[0]);
                    if at == CELLS / 2 && id == 0 && random.below(64) == 0 {
                        std::thread::yield_now();
                    }
                }
                sum
            });
            if sum != 100 * CELLS as u64 {
                torn.fetch_add(1, Ordering::Relaxed);
            }
        }
    }
}

#[test]
fn a_section_sees_all_of_a_commit_or_nothing() {
    struct Sums;
    impl Body for Sums {
        fn run<C: Clock + 'static>(&self, name: &str, make: impl Fn() -> C) {
            for deferral in [1, 4] {
                let bank = Bank::new(make(), deferral);
                let mut torn = bank.run(scaled(8_000));
                // On a busy machine its readers may have ended before a writer had a turn.
                while bank.domain.stats().commits == 0 {
                    torn += bank.run(scaled(8_000));
                }
                assert_eq!(torn, 0, "{name}, deferral {deferral}");
                let stats = bank.domain.stats();
                assert!(stats.commits > 0 && stats.syncs > 0, "{name}: {stats:?}");
            }
        }
    }
    on_every_clock(&Sums);
}

/// Holds with any boundary. (`mutants.toml` shows that such clocks tear snapshots if commits do not
/// look which sections they overtake.)
#[test]
fn beyond_the_boundary_no_snapshot_is_torn() {
    let with = SkewedBuilder {
        skew: 3_000,
        step: 1,
        boundary: 4,
        delay: 0,
    };
    for _ in 0..20 {
        let bank: Bank<Skewed> = Bank::new(with.build(), 1);
        assert_eq!(bank.run(scaled(2_000)), 0);
    }
}
