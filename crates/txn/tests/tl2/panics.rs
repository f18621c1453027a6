//! Misuse panics with one sentence, and no panic leaves anything behind.

use super::message;
use corelay_txn::tl2::{Stm, TVar, atomically};
use std::panic::{AssertUnwindSafe, catch_unwind};

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
    // In a transaction that runs alone, a transaction of a session inside would wait for itself.
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
