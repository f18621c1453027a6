//! Transfers from one object to another: three ways that work, and one that is refused.
//!
//! `cargo run -p corelay --example transfer`

use corelay::{Trust, Trustees};
use std::error::Error;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Takes `sum` from one account and has it added to another, of any trustee. A nested `post` does
/// not wait: it is sent when the closure has ended.
fn transfer(from: &Trust<u64>, to: &Trust<u64>, sum: u64) -> bool {
    let to = to.clone();
    from.apply(move |from| {
        let enough = *from >= sum;
        if enough {
            *from -= sum;
            to.post(move |to| *to += sum);
        }
        enough
    })
}

fn main() -> Result<(), Box<dyn Error>> {
    let trustees = Trustees::dedicated(2).start()?;

    // Best: the data that must be consistent is one object. Nobody ever sees half a transfer.
    let bank = trustees.entrust([100u64, 0]);
    bank.apply(|[a, b]| {
        *a -= 30;
        *b += 30;
    });
    assert_eq!(bank.apply(|accounts| *accounts), [70, 30]);
    println!("in one object: 70 and 30");

    // Two objects of one trustee: it runs the nested request before anybody else's, so again nobody
    // sees half a transfer.
    let (a, b) = (trustees.entrust_on(0, 100), trustees.entrust_on(0, 0));
    assert!(transfer(&a, &b, 30) && !transfer(&a, &b, 71));
    assert_eq!((a.apply(|a| *a), b.apply(|b| *b)), (70, 30));
    println!("in two objects of one trustee: 70 and 30");

    // Objects of two trustees: the sum is on its way for a moment, then it is there.
    let (a, b) = (trustees.entrust_on(0, 100), trustees.entrust_on(1, 0));
    assert!(transfer(&a, &b, 30));
    while b.apply(|b| *b) == 0 {
        println!("on its way from one trustee to the other");
    }
    assert_eq!((a.apply(|a| *a), b.apply(|b| *b)), (70, 30));
    println!("in two objects of two trustees: 70 and 30");

    // Wrong: a closure that waits. Its trustee could serve nobody meanwhile, not even the request
    // that the closure waits for. So the call panics, and says what to do instead.
    let waits = || a.apply(|_| b.apply(|b| *b += 1));
    let refused = catch_unwind(AssertUnwindSafe(waits)).expect_err("it must not wait");
    let message = refused
        .downcast_ref::<String>()
        .expect("the panic has a text");
    println!("and one that is refused:\n  {message}");
    assert!(message.contains("Trust::apply at ") && message.contains("is a leaf"));
    // The panic was the closure's, so its object is poisoned, like a mutex.
    assert!(a.is_poisoned() && !b.is_poisoned());
    a.clear_poison();
    assert_eq!((a.apply(|a| *a), b.apply(|b| *b)), (70, 30));
    Ok(())
}
