//! Names of requests, in reports and in messages.

use crate::promise_03_futures::block_on;
use crate::support::{one, panic_of, start, watchdog};
use corelay_delegate::{
    RequestName, Trust, Trustees, TryApplyAsyncError, TryApplyError, TryApplyThenError,
    TryPostError, barrier, name,
};
use corelay_sync::{Issue, Session, Shared};

/// The message of a call that a request makes inside itself, where it may not wait: it has the
/// request's name.
fn inside(t: &Trust<String>) -> impl FnOnce(&mut String) + Send + 'static {
    let t = t.clone();
    move |said| *said = panic_of(|| t.apply(|_| ()))
}

#[test]
fn each_kind_of_request_has_the_given_name() {
    let _watch = watchdog();
    let trustees = one();
    let t = trustees.entrust(String::new());
    let said = || t.apply(std::mem::take);
    let inside = || inside(&t);

    t.request(name!("by apply")).apply(inside());
    assert!(said().contains("inside by apply:"));
    t.request(name!("by try_apply"))
        .try_apply(inside())
        .unwrap();
    assert!(said().contains("inside by try_apply:"));
    t.request(name!("by then")).apply_then(inside(), |()| ());
    assert!(said().contains("inside by then:"));
    let then = t.request(name!("by try_then"));
    assert!(then.try_apply_then(inside(), |()| ()).is_ok());
    assert!(said().contains("inside by try_then:"));
    t.request(name!("by post")).post(inside());
    assert!(said().contains("inside by post:"));
    assert!(t.request(name!("by try_post")).try_post(inside()).is_ok());
    assert!(said().contains("inside by try_post:"));
    block_on(t.request(name!("by async")).apply_async(inside())).unwrap();
    assert!(said().contains("inside by async:"));
    let future = t.request(name!("by try_async")).try_apply_async(inside());
    block_on(future.unwrap()).unwrap();
    assert!(said().contains("inside by try_async:"));
    block_on(t.request(name!("by post_async")).post_async(inside())).unwrap();
    assert!(said().contains("inside by post_async:"));

    t.request(name!("by session")).session().apply(inside());
    assert!(said().contains("inside by session:"));
    let issuing = t.request(name!("by issue"));
    let mut session = issuing.session();
    session.issue(inside(), |()| ());
    session.barrier();
    assert!(said().contains("inside by issue:"));
    barrier().unwrap();
}

/// Large closures travel by address, in a closure of corelay's own.
#[test]
fn a_large_request_has_its_own_name() {
    let _watch = watchdog();
    let trustees = one();
    let t = trustees.entrust(String::new());
    let large = || {
        let (ballast, inside) = ([1u8; 64 << 10], inside(&t));
        move |said: &mut String| {
            std::hint::black_box(&ballast);
            inside(said);
        }
    };
    t.request(name!("large")).apply(large());
    assert!(t.apply(std::mem::take).contains("inside large:"));
    t.request(name!("large session")).session().apply(large());
    assert!(t.apply(std::mem::take).contains("inside large session:"));
    t.apply(large());
    let said = t.apply(std::mem::take);
    assert!(
        said.contains("a_large_request_has_its_own_name::"),
        "{said}"
    );
}

#[test]
fn a_refused_request_is_named_and_given_back() {
    let _watch = watchdog();
    let trustees = one();
    let t = trustees.entrust(1u32);
    let clone = t.request(name!("late")).clone();
    trustees.shutdown();
    for message in [
        panic_of(|| clone.apply(|n| *n)),
        panic_of(|| clone.post(|_| ())),
        panic_of(|| clone.apply_then(|_| (), |()| ())),
    ] {
        assert!(
            message.contains("the trustee has been shut down"),
            "{message}"
        );
    }
    let message = panic_of(|| clone.post(|_| ()));
    assert!(message.contains("Trust::post of late at "), "{message}");
    let add = |n: &mut u32| {
        *n += 1;
        *n
    };
    assert!(matches!(clone.try_apply(add), Err(TryApplyError::Closed(f)) if f(&mut 6) == 7));
    assert!(matches!(
        clone.try_apply_then(add, |_| ()),
        Err(TryApplyThenError::Closed(f, _)) if f(&mut 6) == 7
    ));
    assert!(matches!(
        clone.try_apply_async(add),
        Err(TryApplyAsyncError::Closed(f)) if f(&mut 6) == 7
    ));
    let mut posted = false;
    if let Err(TryPostError::Closed(f)) = clone.try_post(|n| *n += 1) {
        f(&mut 1);
        posted = true;
    }
    assert!(posted);
}

/// Requests of one name are one row, whatever their closures are, and the closure's type does not
/// occur.
#[test]
fn a_report_has_the_given_name() {
    let _watch = watchdog();
    struct Checkout;
    impl RequestName for Checkout {
        const NAME: &'static str = "checkout";
    }
    let trustees = start(Trustees::dedicated(1).observe(true));
    let t = trustees.entrust(0u64);
    let rows = || {
        let report = trustees.report();
        let observed = report.trustees[0].observed.clone().expect("by the builder");
        observed.slowest.into_iter().map(|closure| closure.name)
    };
    while !rows().any(|name| name == "checkout") || !rows().any(|name| name == "refund") {
        t.request(Checkout).post(|n| *n += 1);
        t.request(Checkout).apply(|n| *n += 1);
        t.request(name!("refund")).apply(|n| *n -= 2);
    }
    assert_eq!(rows().filter(|name| *name == "checkout").count(), 1);
    assert!(
        rows().all(|name| !name.contains("a_report_has")),
        "{:?}",
        rows().collect::<Vec<_>>()
    );
    assert!(trustees.report().to_string().contains(": checkout\n"));
    assert!(
        trustees
            .report()
            .to_json()
            .contains(r#"{"name":"checkout","#)
    );
    barrier().unwrap();
}

/// A name is no part of the layout, and an empty one stands for the closure's type.
#[test]
fn a_named_handle_is_the_handle() {
    let _watch = watchdog();
    let trustees = one();
    let t = trustees.entrust(String::new());
    let named = t.request(name!(concat!("a", "b")));
    assert_eq!(size_of_val(&t), size_of_val(named));
    assert_eq!(format!("{t:?}"), format!("{named:?}"));
    named.apply(inside(&t));
    assert!(t.apply(std::mem::take).contains("inside ab:"));
    t.request(name!("")).apply(inside(&t));
    assert!(t.apply(std::mem::take).contains("named_requests::inside"));
}
