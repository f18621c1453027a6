//! Transactions that sleep until a variable that they have read changes, on threads and on fibres.

use super::{message, promise, scaled};
use corelay_txn::tl2::{Stm, TVar};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::thread;

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
    let cluster = crate::promise::cluster(2);
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
                    // Other fibres run transactions on this thread meanwhile.
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

/// A sleeper on a variable that nobody has written is not left asleep by another domain's write.
#[test]
fn a_variable_slept_on_belongs_to_the_sleepers_domain() {
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
        // Time for the sleeper to set the bit.
        thread::sleep(std::time::Duration::from_millis(50));
        let refused = message(catch_unwind(AssertUnwindSafe(|| {
            other.atomically(|tx| tx.write(&x, 1));
        })));
        assert!(refused.contains("use one `Stm`"), "{refused}");
        stm.atomically(|tx| tx.write(&x, 2));
        assert_eq!(sleeper.join().unwrap(), 2);
    });
}

/// A sleeper on very many variables leaves them all, in a number of steps proportional to their
/// number.
#[test]
fn many_variables_are_slept_on() {
    const SLEEPERS: usize = 20_000;
    let stm: Stm = Stm::default();
    let vars: Vec<TVar<u64>> = (0..SLEEPERS).map(|_| TVar::new(0)).collect();
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
        while stm.sleeping() < SLEEPERS {
            thread::yield_now();
        }
        stm.atomically(|tx| tx.write(&vars[SLEEPERS - 1], 7));
        assert_eq!(sleeper.join().unwrap(), 7);
    });
    assert_eq!(stm.sleeping(), 0);
}

/// A cancellation ends the sleep of a `retry`: nothing is written, the table is empty, and dumps
/// name the place of the transaction.
#[test]
fn a_retry_is_cancelled() {
    use corelay_fibre::{Cancelled, State};
    let cluster = promise::cluster(1);
    let stm: Arc<Stm> = Arc::default();
    let vars = Arc::new([TVar::new(0_u64), TVar::new(0)]);
    for round in 0..20 {
        let fibre = cluster.spawn({
            let (stm, vars) = (Arc::clone(&stm), Arc::clone(&vars));
            move || {
                stm.atomically(|tx| {
                    tx.write(&vars[1], 1)?;
                    let is_set = tx.read(&vars[0])? > 0;
                    tx.check(is_set)
                });
            }
        });
        if round % 2 == 0 {
            // Otherwise the cancellation comes before the sleep, or as it begins.
            let (call, at) = loop {
                if let State::Waiting { call, at, .. } = cluster.dump().fibres[0].state {
                    break (call, at);
                }
                thread::yield_now();
            };
            assert_eq!(call, "a transaction's `retry`");
            assert!(at.file().ends_with("sleep.rs"), "{at}");
        }
        fibre.fibre().cancel();
        assert!(fibre.join().unwrap_err().is::<Cancelled>());
        assert_eq!(stm.sleeping(), 0);
    }
    // The variables are as before, and other transactions use them.
    stm.atomically(|tx| tx.write(&vars[0], 1));
    assert_eq!((vars[0].load(), vars[1].load()), (1, 0));
}

/// A cancellation ends the wait for a transaction that runs alone, too.
#[test]
fn a_transaction_that_gives_way_is_cancelled() {
    use corelay_fibre::{Cancelled, Semaphore, State};
    let cluster = promise::cluster(1);
    let stm: Arc<Stm> = Arc::new(Stm::default().with_attempts(0));
    let x = Arc::new(TVar::new(0_u64));
    let (is_alone, go_on) = (Arc::new(Semaphore::new(0)), Arc::new(Semaphore::new(0)));
    let alone = cluster.spawn({
        let (stm, x) = (Arc::clone(&stm), Arc::clone(&x));
        let (is_alone, go_on) = (Arc::clone(&is_alone), Arc::clone(&go_on));
        move || {
            let mut attempts = 0;
            stm.atomically(|tx| {
                let value = tx.read(&x)?;
                attempts += 1;
                if attempts == 1 {
                    // A conflict: it runs alone afterwards.
                    let (stm, theirs) = (Arc::clone(&stm), Arc::clone(&x));
                    let other = move || stm.atomically(|tx| tx.write(&theirs, 7));
                    corelay_fibre::spawn(other).join().unwrap();
                    tx.write(&x, 8)
                } else {
                    is_alone.release();
                    go_on.acquire();
                    tx.write(&x, value + 1)
                }
            });
        }
    });
    is_alone.acquire();
    let writer = cluster.spawn({
        let (stm, x) = (Arc::clone(&stm), Arc::clone(&x));
        move || stm.atomically(|tx| tx.write(&x, 9))
    });
    while !cluster.dump().fibres.iter().any(|seat| {
        matches!(seat.state, State::Waiting { call: "a transaction that gives way to another", at, .. }
            if at.file().ends_with("sleep.rs"))
    }) {
        thread::yield_now();
    }
    writer.fibre().cancel();
    assert!(writer.join().unwrap_err().is::<Cancelled>());
    assert_eq!(stm.sleeping(), 0);
    go_on.release();
    alone.join().unwrap();
    assert_eq!(x.load(), 8);
}
