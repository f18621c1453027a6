//! Transactions on threads and fibres: what they promise, under each clock.
//!
//! `CORELAY_STRESS=100 cargo test …` reads a hundred times as often.

#![cfg(not(any(corelay_loom, corelay_shuttle)))]

use corelay_clock::{Clock, Logical, Ordo, Skewed, SkewedBuilder};
use corelay_sync::counter;
use corelay_txn::tl2::{Stm, TVar, Value, atomically};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};
use std::thread;

/// `n` times what `CORELAY_STRESS` asks for (1 unless set).
fn scaled(n: u64) -> u64 {
    let factor = std::env::var("CORELAY_STRESS").map_or(1.0, |text| {
        text.parse::<f64>().expect("CORELAY_STRESS is a number")
    });
    ((n as f64 * factor) as u64).max(1)
}

fn skewed(skew: u64, boundary: u64, delay: u64) -> Skewed {
    SkewedBuilder {
        skew,
        step: 2,
        boundary,
        delay,
    }
    .build()
}

/// Writers keep all cells equal; readers look at all of them, in both orders, and every attempt is
/// judged, also those that will be aborted. Returns how many saw different values.
fn torn<C: Clock>(stm: &Stm<C>, cells: usize, reads: u64) -> u64 {
    let cells: Vec<TVar<u64>> = (0..cells).map(|_| TVar::new(0)).collect();
    let (stop, torn) = (AtomicBool::new(false), AtomicU64::new(0));
    thread::scope(|s| {
        for backwards in [false, true] {
            let (cells, stop, torn) = (&cells, &stop, &torn);
            s.spawn(move || {
                while !stop.load(Ordering::Relaxed) {
                    stm.atomically(|tx| {
                        let mut seen = None;
                        for at in 0..cells.len() {
                            let at = if backwards { cells.len() - 1 - at } else { at };
                            let value = tx.read(&cells[at])?;
                            if *seen.get_or_insert(value) != value {
                                torn.fetch_add(1, Ordering::Relaxed);
                            }
                            tx.write(&cells[at], value + 1)?;
                        }
                        Ok(())
                    });
                    thread::yield_now();
                }
            });
        }
        let mut last = 0;
        for read in 0..reads {
            last = stm.atomically(|tx| {
                let mut seen = None;
                for at in 0..cells.len() {
                    let at = if read % 2 == 0 {
                        at
                    } else {
                        cells.len() - 1 - at
                    };
                    let value = tx.read(&cells[at])?;
                    if *seen.get_or_insert(value) != value {
                        torn.fetch_add(1, Ordering::Relaxed);
                    }
                }
                let seen = seen.unwrap();
                if seen < last {
                    // Real time: a snapshot is not older than the one before.
                    torn.fetch_add(1, Ordering::Relaxed);
                }
                Ok(seen)
            });
        }
        stop.store(true, Ordering::Relaxed);
    });
    torn.into_inner()
}

fn never_torn<C: Clock>(clock: impl Fn() -> C) {
    assert_eq!(torn(&Stm::new(clock()), 2, scaled(60_000)), 0);
    assert_eq!(torn(&Stm::new(clock()), 16, scaled(20_000)), 0);
}

#[test]
fn snapshots_are_whole_by_the_counter() {
    never_torn(Logical::new);
}

#[test]
fn snapshots_are_whole_by_hardware_clocks() {
    if counter::usable() {
        // Some ten times what is measured between any two cores.
        never_torn(|| Ordo::with_boundary(5_000));
    }
}

#[test]
fn snapshots_are_whole_within_the_boundary() {
    for delay in [0, 20] {
        never_torn(|| skewed(7, 9, delay));
        never_torn(|| skewed(0, 2, delay));
    }
}

/// Beyond the boundary the same bodies fail, or they would see nothing.
#[test]
fn skew_beyond_the_boundary_is_seen() {
    let rounds = 1_000;
    let seen = (0..rounds).any(|round| {
        // More cells, and more delay, give the writers more time inside a reader's snapshot.
        let clock = skewed(100_000, 2, round % 3 * 20);
        torn(&Stm::new(clock), 32, 2_000) > 0
    });
    assert!(seen, "the tests would not notice a wrong clock");
}

fn transfers_keep_the_sum<C: Clock>(stm: &Stm<C>) {
    const ACCOUNTS: usize = 8;
    let accounts: Vec<TVar<i64>> = (0..ACCOUNTS).map(|_| TVar::new(100)).collect();
    thread::scope(|s| {
        for thread in 0..3_usize {
            let accounts = &accounts;
            s.spawn(move || {
                let mut session = stm.session();
                for i in 0..scaled(10_000) as usize {
                    let from = &accounts[(i * 7 + thread) % ACCOUNTS];
                    let to = &accounts[(i * 3 + thread * 5 + 1) % ACCOUNTS];
                    if std::ptr::eq(from, to) {
                        continue;
                    }
                    if i % 2 == 0 {
                        session.atomically(|tx| {
                            tx.update(from, |a| a - 1)?;
                            tx.update(to, |a| a + 1)
                        });
                    } else {
                        stm.atomically(|tx| {
                            let (a, b) = (tx.read(from)?, tx.read(to)?);
                            tx.write(to, b + 1)?;
                            tx.write(from, a - 1)
                        });
                    }
                }
            });
        }
        for _ in 0..scaled(1_000) {
            let sum = stm.atomically(|tx| {
                let mut sum = 0;
                for account in &accounts {
                    sum += tx.read(account)?;
                }
                Ok(sum)
            });
            assert_eq!(sum, 100 * ACCOUNTS as i64);
        }
    });
    let sum: i64 = accounts.iter().map(TVar::load).sum();
    assert_eq!(sum, 100 * ACCOUNTS as i64);
}

#[test]
fn money_is_neither_made_nor_lost() {
    transfers_keep_the_sum(&Stm::new(Logical::new()));
    transfers_keep_the_sum(&Stm::new(skewed(7, 9, 5)));
    if counter::usable() {
        transfers_keep_the_sum(&Stm::new(Ordo::with_boundary(5_000)));
    }
}

/// With few attempts everybody falls back again and again, and all get through.
#[test]
fn who_is_aborted_too_often_runs_alone() {
    for attempts in [0, 1] {
        let stm = Stm::new(skewed(3, 5, 10)).with_attempts(attempts);
        transfers_keep_the_sum(&stm);
        assert_eq!(torn(&stm, 4, scaled(2_000)), 0);
    }
    let stm: Stm = Stm::default().with_attempts(0);
    let x = TVar::new(0_u64);
    // The first attempt fails, by another transaction inside it on another thread.
    let mut tries = 0;
    stm.atomically(|tx| {
        let value = tx.read(&x)?;
        tries += 1;
        if tries == 1 {
            thread::scope(|s| {
                s.spawn(|| stm.atomically(|tx| tx.update(&x, |x| x + 1)))
                    .join()
            })
            .unwrap();
        }
        tx.write(&x, value + 10)
    });
    assert_eq!((x.load(), tries), (11, 2));
    let stats = stm.stats();
    assert_eq!(
        (stats.validation, stats.fallback, stats.aborts()),
        (1, 1, 1)
    );
}

#[test]
fn a_queue_of_one_passes_everything_on() {
    let slot = TVar::new(None::<u64>);
    let stm: Stm = Stm::default();
    let n = scaled(2_000);
    thread::scope(|s| {
        for part in 0..2 {
            let (slot, stm) = (&slot, &stm);
            s.spawn(move || {
                for i in 0..n {
                    stm.atomically(|tx| {
                        let full = tx.read(slot)?.is_some();
                        tx.check(!full)?;
                        tx.write(slot, Some(i * 2 + part))
                    });
                }
            });
        }
        let mut sum = 0;
        for _ in 0..2 * n {
            sum += stm.atomically(|tx| {
                let value = tx.read(&slot)?.map_or_else(|| tx.retry(), Ok)?;
                tx.write(&slot, None)?;
                Ok(value)
            });
        }
        assert_eq!(sum, (0..2 * n).sum::<u64>());
    });
    assert_eq!(stm.sleeping(), 0);
}

#[test]
fn fibres_sleep_in_retry_and_transactions_may_wait() {
    const FIBRES: usize = 40;
    let cluster = corelay_fibre::Cluster::start(2).unwrap();
    let stm: Arc<Stm> = Arc::default();
    let turn = Arc::new(TVar::new(0_usize));
    let fibres: Vec<_> = (0..FIBRES)
        .rev()
        .map(|i| {
            let (stm, turn) = (Arc::clone(&stm), Arc::clone(&turn));
            // Far more fibres than threads wait, each for the one that is started after it.
            cluster.spawn(move || {
                stm.atomically(|tx| {
                    let at = tx.read(&turn)?;
                    // Others run transactions on this thread meanwhile.
                    corelay_fibre::yield_now();
                    tx.check(at == i)?;
                    tx.write(&turn, i + 1)
                });
            })
        })
        .collect();
    for fibre in fibres {
        fibre.join().unwrap();
    }
    assert_eq!(turn.load(), FIBRES);
    assert_eq!(stm.sleeping(), 0);
}

#[test]
fn alternatives_are_taken_back_as_a_whole() {
    let (a, b, c) = (
        TVar::new(1_u64),
        TVar::new(2_u64),
        TVar::new(String::from("c")),
    );
    let got = atomically(|tx| {
        tx.write(&a, 10)?;
        tx.write(&c, "outer".into())?;
        tx.or_else(
            |tx| {
                assert_eq!(tx.read(&a)?, 10);
                tx.write(&a, 11)?;
                tx.write(&b, 12)?;
                tx.write(&c, "first".into())?;
                tx.or_else(|tx| tx.retry(), |tx| tx.retry())
            },
            |tx| {
                assert_eq!((tx.read(&a)?, tx.read(&b)?), (10, 2));
                assert_eq!(tx.read(&c)?, "outer");
                tx.or_else(
                    |tx| {
                        tx.write(&b, 20)?;
                        tx.update(&c, |c| c + " second")?;
                        Ok('x')
                    },
                    |tx| tx.retry(),
                )
            },
        )
    });
    assert_eq!((got, a.load(), b.load()), ('x', 10, 20));
    assert_eq!(c.load(), "outer second");
}

#[test]
fn many_variables_are_found_again() {
    let vars: Vec<TVar<u64>> = (0..300).map(TVar::new).collect();
    atomically(|tx| {
        for (i, var) in vars.iter().enumerate() {
            tx.update(var, |v| v * 2)?;
            assert_eq!(tx.read(&vars[i / 2])?, i as u64 / 2 * 2);
        }
        tx.or_else(
            |tx| {
                for var in &vars {
                    tx.write(var, 0)?;
                }
                assert_eq!(tx.read(&vars[299])?, 0);
                tx.retry()
            },
            |_| Ok(()),
        )?;
        for (i, var) in vars.iter().enumerate() {
            assert_eq!(tx.read(var)?, 2 * i as u64);
        }
        Ok(())
    });
    assert_eq!(vars.iter().map(TVar::load).sum::<u64>(), 300 * 299);
}

/// Values that count how many of them live.
mod live {
    use super::*;

    pub(super) static LIVE: AtomicI64 = AtomicI64::new(0);

    pub(super) struct Live(pub(super) u64);
    impl Live {
        pub(super) fn new(n: u64) -> Self {
            LIVE.fetch_add(1, Ordering::Relaxed);
            Self(n)
        }
    }
    impl Clone for Live {
        fn clone(&self) -> Self {
            Self::new(self.0)
        }
    }
    impl Drop for Live {
        fn drop(&mut self) {
            LIVE.fetch_sub(1, Ordering::Relaxed);
        }
    }
    impl Value for Live {}
}

#[test]
fn boxes_are_freed() {
    use live::{LIVE, Live};
    let vars: Vec<TVar<Live>> = (0..4).map(|n| TVar::new(Live::new(n))).collect();
    let most = AtomicI64::new(0);
    let each = scaled(50_000);
    thread::scope(|s| {
        for _ in 0..2 {
            s.spawn(|| {
                for i in 0..each as usize {
                    let caught = catch_unwind(AssertUnwindSafe(|| {
                        atomically(|tx| {
                            let n = tx.read(&vars[i % 4])?.0;
                            tx.write(&vars[(i + 1) % 4], Live::new(n))?;
                            // Written twice, and taken back.
                            tx.write(&vars[(i + 1) % 4], Live::new(n + 1))?;
                            tx.or_else(
                                |tx| {
                                    tx.write(&vars[(i + 1) % 4], Live::new(0))?;
                                    tx.retry()
                                },
                                |_| Ok(()),
                            )?;
                            if i % 1_000 == 0 {
                                std::panic::resume_unwind(Box::new("over"));
                            }
                            Ok(())
                        });
                    }));
                    assert_eq!(caught.is_err(), i % 1_000 == 0);
                    most.fetch_max(LIVE.load(Ordering::Relaxed), Ordering::Relaxed);
                }
            });
        }
    });
    let most = most.into_inner();
    // Nothing is freed while a thread that is reading a box does not run, so the bound is wide.
    assert!(
        most < each as i64 * 3 / 2,
        "{most} live at once, of {} written: they are not freed on the way",
        2 * each
    );
    drop(vars);
    for _ in 0..10_000 {
        crossbeam_epoch::pin().flush();
        if LIVE.load(Ordering::Relaxed) == 0 {
            return;
        }
        thread::yield_now();
    }
    panic!("{} were never freed", LIVE.load(Ordering::Relaxed));
}

#[test]
fn nodes_live_as_long_as_they_are_read() {
    struct Node {
        value: u64,
        next: TVar<Option<Arc<Node>>>,
    }
    let head: TVar<Option<Arc<Node>>> = TVar::new(None);
    let stm: Stm = Stm::default();
    thread::scope(|s| {
        s.spawn(|| {
            for value in 0..scaled(5_000) {
                stm.atomically(|tx| {
                    let old = tx.read(&head)?;
                    // Two nodes at most, both of one value or neighbours.
                    let next = old.map(|node| {
                        Arc::new(Node {
                            value: node.value,
                            next: TVar::new(None),
                        })
                    });
                    tx.write(
                        &head,
                        Some(Arc::new(Node {
                            value: value + 1,
                            next: TVar::new(next),
                        })),
                    )
                });
            }
        });
        for _ in 0..scaled(5_000) {
            stm.atomically(|tx| {
                let mut at = tx.read(&head)?;
                let mut last = None;
                while let Some(node) = at {
                    let node = tx.keep(node);
                    assert!(last.is_none_or(|last| last == node.value + 1));
                    last = Some(node.value);
                    at = tx.read(&node.next)?;
                }
                Ok(())
            });
        }
    });
}

fn message(result: thread::Result<()>) -> String {
    let payload = result.expect_err("it panics");
    payload
        .downcast_ref::<String>()
        .cloned()
        .or_else(|| payload.downcast_ref::<&str>().map(ToString::to_string))
        .expect("a sentence")
}

#[test]
fn misuse_gets_one_sentence_and_leaves_nothing_behind() {
    let stm: Stm = Stm::default();
    let other: Stm = Stm::default();
    let x = TVar::new(1_u64);
    let said = |misuse: &dyn Fn()| {
        let said = message(catch_unwind(AssertUnwindSafe(misuse)));
        // Everything goes on as before.
        stm.atomically(|tx| tx.update(&x, |x| x + 1));
        said
    };
    assert!(said(&|| stm.atomically(|tx| tx.retry())).contains("`retry` with nothing read"));
    let write_zero = || stm.atomically(|tx| tx.write(&x, 0));
    let nested = said(&|| {
        stm.atomically(|_| {
            write_zero();
            Ok(())
        })
    });
    assert!(
        nested.contains("`atomically` inside `atomically`"),
        "{nested}"
    );
    assert!(said(&|| other.atomically(|tx| tx.read(&x).map(drop))).contains("use one `Stm`"));
    assert!(said(&|| other.atomically(|tx| tx.write(&x, 0))).contains("use one `Stm`"));
    // In a transaction that runs alone, one of a session inside would wait for itself.
    let alone: Stm = Stm::default().with_attempts(0);
    let y = TVar::new(0_u64);
    let mut tries = 0;
    let waits_for_itself = message(catch_unwind(AssertUnwindSafe(|| {
        alone.atomically(|tx| {
            let value = tx.read(&y)?;
            tries += 1;
            alone.session().atomically(|tx| tx.update(&y, |y| y + 1));
            tx.write(&y, value + 1)
        });
    })));
    assert!(
        waits_for_itself.contains("runs alone"),
        "{waits_for_itself}"
    );
    // The token was given back.
    alone.atomically(|tx| tx.update(&y, |y| y + 1));
    assert_eq!((x.load(), tries), (5, 2));
    // Domains may nest.
    other.atomically(|_| {
        write_zero();
        Ok(())
    });
    assert_eq!(x.load(), 0);
}

#[test]
fn a_panic_writes_nothing_and_goes_on() {
    let x = TVar::new(1_u64);
    let result = catch_unwind(AssertUnwindSafe(|| {
        atomically(|tx| {
            tx.write(&x, 2)?;
            if tx.read(&x)? == 2 {
                std::panic::resume_unwind(Box::new("over"));
            }
            Ok(())
        });
    }));
    assert_eq!(message(result), "over");
    assert_eq!(x.load(), 1);
    atomically(|tx| tx.write(&x, 3));
    assert_eq!(x.load(), 3);
}

/// A closure that hides a conflict does not get to commit what it made of it.
#[test]
fn an_abort_that_is_hidden_aborts_all_the_same() {
    let stm: Stm = Stm::default();
    let (x, y) = (TVar::new(0_u64), TVar::new(0_u64));
    let mut tries = 0;
    stm.atomically(|tx| {
        tries += 1;
        tx.read(&x)?;
        if tries == 1 {
            let step = || {
                stm.atomically(|tx| {
                    tx.update(&x, |x| x + 1)?;
                    tx.update(&y, |y| y + 1)
                })
            };
            thread::scope(|s| s.spawn(step).join()).unwrap();
            assert!(tx.read(&y).is_err());
            assert!(tx.read(&x).is_err());
        }
        tx.write(&y, 7)
    });
    assert_eq!((tries, y.load()), (2, 7));
    assert_eq!(stm.stats().version, 1);
}

/// Only what the clock could not say is uncertain: not what was certainly written later.
#[test]
fn uncertain_is_what_the_clock_left_open() {
    /// Meets something newer three times, and then what it has met; or is aborted there.
    fn counted<C: Clock>(stm: &Stm<C>, is_aborted: bool) -> (u64, u64, u64) {
        let (x, y) = (TVar::new(0_u64), TVar::new(0_u64));
        let mut session = stm.session();
        // The session has no time yet: everything is certainly after it.
        stm.atomically(|tx| tx.write(&x, 1));
        session.atomically(|tx| tx.read(&x));
        for n in 2..4 {
            stm.atomically(|tx| tx.write(&x, n));
            session.atomically(|tx| tx.read(&x));
        }
        let mut tries = 0;
        session.atomically(|tx| {
            tries += 1;
            tx.read(&y)?;
            if tries == 1 && is_aborted {
                let write = || {
                    stm.atomically(|tx| {
                        tx.write(&x, 4)?;
                        tx.write(&y, 4)
                    });
                };
                thread::scope(|s| s.spawn(write).join()).unwrap();
            }
            tx.read(&x)
        });
        let stats = stm.stats();
        assert_eq!(stats.aborts(), u64::from(is_aborted));
        assert_eq!(
            stats.uncertain + stats.resampled_uncertain,
            stats.uncertain_comparisons()
        );
        (stats.resampled, stats.resampled_uncertain, stats.uncertain)
    }
    let wide = || Stm::new(skewed(0, 1_000, 0));
    assert_eq!(counted(&Stm::new(Logical::new()), false), (3, 0, 0));
    // Also the last look is uncertain, at what was written a while ago.
    assert_eq!(counted(&wide(), false), (4, 3, 0));
    let (_, _, aborted) = counted(&Stm::new(Logical::new()), true);
    assert_eq!(aborted, 0);
    let (_, _, aborted) = counted(&wide(), true);
    assert_eq!(aborted, 1);
}

/// Memory is bounded by the number of variables, not of reads.
#[test]
fn reading_one_variable_for_ever_takes_no_memory() {
    let (x, y) = (TVar::new(1_u64), TVar::new(2_u64));
    let sum = atomically(|tx| {
        let mut sum = 0;
        for _ in 0..100_000 {
            sum += tx.read(&x)? + tx.read(&y)?;
        }
        assert!(format!("{tx:?}").len() < 2_000_000);
        Ok(sum)
    });
    assert_eq!(sum, 300_000);
}

/// Boxed values whose drop may panic: one made and dropped twice would be freed twice.
mod loud {
    use super::*;
    use std::collections::HashSet;
    use std::sync::Mutex;

    /// Those that live, and how many drops are going to panic.
    #[derive(Default)]
    pub(super) struct Watch {
        live: Mutex<HashSet<u64>>,
        next: AtomicU64,
        pub(super) loud: AtomicI64,
    }

    impl Watch {
        pub(super) fn make(self: &Arc<Self>) -> Loud {
            let id = self.next.fetch_add(1, Ordering::Relaxed);
            self.live.lock().unwrap().insert(id);
            Loud {
                id,
                by: Arc::clone(self),
            }
        }

        pub(super) fn lives(&self, id: u64) -> bool {
            self.live.lock().unwrap().contains(&id)
        }
    }

    pub(super) struct Loud {
        pub(super) id: u64,
        by: Arc<Watch>,
    }

    impl Clone for Loud {
        /// The same one, seen again: not one more that lives.
        fn clone(&self) -> Self {
            Self {
                id: self.id | SEEN,
                by: Arc::clone(&self.by),
            }
        }
    }

    pub(super) const SEEN: u64 = 1 << 63;

    impl Drop for Loud {
        fn drop(&mut self) {
            if self.id & SEEN != 0 {
                return;
            }
            let lived = self.by.live.lock().unwrap().remove(&self.id);
            if !lived {
                eprintln!("{} was dropped twice", self.id);
                std::process::abort();
            }
            if !thread::panicking() && self.by.loud.fetch_sub(1, Ordering::Relaxed) > 0 {
                std::panic::resume_unwind(Box::new("loud"));
            }
        }
    }

    impl Value for Loud {}
}

/// What an attempt in vain wanted to write is dropped once, also where dropping it panics.
#[test]
fn a_panic_of_a_drop_drops_nothing_twice() {
    let watch = Arc::new(loud::Watch::default());
    let (x, y, z) = (
        TVar::new(watch.make()),
        TVar::new(watch.make()),
        TVar::new(0_u64),
    );
    let stm: Stm = Stm::default();
    let said = message(catch_unwind(AssertUnwindSafe(|| {
        stm.atomically(|tx| {
            tx.write(&x, watch.make())?;
            tx.write(&y, watch.make())?;
            tx.read(&z)?;
            thread::scope(|s| {
                s.spawn(|| stm.atomically(|tx| tx.update(&z, |z| z + 1)));
            });
            watch.loud.store(1, Ordering::Relaxed);
            tx.update(&z, |z| z + 1)
        });
    })));
    assert_eq!((&*said, z.load()), ("loud", 1));
    assert!(watch.lives(x.load().id & !loud::SEEN));
    // The thread's log is as good as new.
    stm.atomically(|tx| tx.write(&x, watch.make()));
}

/// A commit may come to free what others have replaced, and that may panic: what it has written
/// itself is the variable's by then, or nobody's.
#[test]
fn a_panic_of_what_others_left_frees_nothing_that_is_held() {
    let watch = Arc::new(loud::Watch::default());
    let x = TVar::new(watch.make());
    let stm: Stm = Stm::default();
    let mut panics = 0;
    for round in 0..20_000 {
        if round % 1_000 == 999 {
            watch.loud.store(1, Ordering::Relaxed);
        }
        let written = catch_unwind(AssertUnwindSafe(|| {
            stm.atomically(|tx| tx.write(&x, watch.make()));
        }));
        panics += u32::from(written.is_err());
        let now = x.load().id;
        assert!(now & loud::SEEN != 0 && watch.lives(now & !loud::SEEN));
    }
    assert!(panics > 0, "nothing was freed on the way");
    watch.loud.store(0, Ordering::Relaxed);
}

/// A panic of an alternative that the closure catches takes back what the alternative has written.
#[test]
fn an_alternative_that_panics_is_taken_back() {
    let (x, y) = (TVar::new(0_u64), TVar::new(0_u64));
    let stm: Stm = Stm::default();
    stm.atomically(|tx| {
        tx.write(&x, 1)?;
        for _ in 0..2 {
            let caught = catch_unwind(AssertUnwindSafe(|| {
                tx.or_else(
                    |tx| {
                        tx.write(&x, 2)?;
                        tx.write(&y, 2)?;
                        std::panic::resume_unwind(Box::new("over"))
                    },
                    |_| Ok(()),
                )
            }));
            assert!(caught.is_err());
            assert_eq!((tx.read(&x)?, tx.read(&y)?), (1, 0));
        }
        Ok(())
    });
    assert_eq!((x.load(), y.load()), (1, 0));
}

/// Who sleeps on a variable that nobody has written is not left asleep by another domain's write.
#[test]
fn a_variable_that_is_slept_on_belongs_to_the_sleeper() {
    let (stm, other) = (Stm::default(), Stm::default());
    let (stm, other): (&Stm, &Stm) = (&stm, &other);
    let x = TVar::new(0_u64);
    thread::scope(|s| {
        let sleeper = s.spawn(|| {
            stm.atomically(|tx| {
                let value = tx.read(&x)?;
                tx.check(value > 0)?;
                Ok(value)
            })
        });
        while stm.stats().retry == 0 || stm.sleeping() == 0 {
            thread::yield_now();
        }
        // Time to set the bit.
        thread::sleep(std::time::Duration::from_millis(50));
        let refused = message(catch_unwind(AssertUnwindSafe(|| {
            other.atomically(|tx| tx.write(&x, 1));
        })));
        assert!(refused.contains("use one `Stm`"), "{refused}");
        stm.atomically(|tx| tx.write(&x, 2));
        assert_eq!(sleeper.join().unwrap(), 2);
    });
}

/// Where the boundary is wider than the clock is old, everything is uncertain, and goes on.
#[test]
fn nobody_waits_for_a_boundary_without_end() {
    if counter::usable() {
        let stm = Stm::new(Ordo::with_boundary(u64::MAX));
        let x = TVar::new(0_u64);
        for _ in 0..10 {
            stm.atomically(|tx| tx.update(&x, |x| x + 1));
        }
        assert_eq!(x.load(), 10);
    }
}

/// Who has slept on very many variables leaves them all, and in no more than their number of steps.
#[test]
fn many_variables_are_slept_on() {
    const MANY: usize = 20_000;
    let stm: Stm = Stm::default();
    let vars: Vec<TVar<u64>> = (0..MANY).map(|_| TVar::new(0)).collect();
    thread::scope(|s| {
        let sleeper = s.spawn(|| {
            stm.atomically(|tx| {
                let mut sum = 0;
                for var in &vars {
                    sum += tx.read(var)?;
                }
                tx.check(sum > 0)?;
                Ok(sum)
            })
        });
        while stm.sleeping() < MANY {
            thread::yield_now();
        }
        stm.atomically(|tx| tx.write(&vars[MANY - 1], 7));
        assert_eq!(sleeper.join().unwrap(), 7);
    });
    assert_eq!(stm.sleeping(), 0);
}
