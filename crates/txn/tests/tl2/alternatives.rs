//! Alternatives, which are taken back as a whole, and their effect on the write set.

use corelay_txn::tl2::{Stm, TVar, atomically};
use std::panic::{AssertUnwindSafe, catch_unwind};

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

/// If the closure catches a panic of an alternative, the alternative's writes are taken back.
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
