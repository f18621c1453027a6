//! Trustees of both kinds, and a small executor.

use corelay_delegate::{Policy, Team, Trustees};
use std::any::Any;
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::task::{Context, Poll, Waker};

pub(crate) fn dedicated(n: usize) -> Trustees {
    Trustees::dedicated(n).start().expect("there are threads")
}

pub(crate) fn flat(n: usize) -> Team {
    Trustees::flat(n).start().expect("there are threads")
}

/// Runs `test` with dedicated trustees on this thread, then with flat teams on a member: with the
/// usual policy, and with the one by which requests to a member's own objects travel.
pub(crate) fn on_both(test: impl Fn(&Trustees) + Sync) {
    for n in [1, 2] {
        test(&dedicated(n));
        for policy in [Policy::Adaptive, Policy::Queue] {
            let team = Trustees::flat(n).policy(policy).start();
            let team = team.expect("there are threads");
            team.run(|me| {
                if me.number() == 0 {
                    test(&team);
                }
            });
        }
    }
}

pub(crate) fn block_on<F: Future>(future: F) -> F::Output {
    let mut future = pin!(future);
    loop {
        let polled = future
            .as_mut()
            .poll(&mut Context::from_waker(Waker::noop()));
        if let Poll::Ready(output) = polled {
            return output;
        }
        corelay_delegate::poll();
        std::thread::yield_now();
    }
}

/// Runs `f`, which must panic, and returns the message.
pub(crate) fn panic_of<R>(f: impl FnOnce() -> R) -> String {
    let Err(payload) = catch_unwind(AssertUnwindSafe(f)) else {
        panic!("no panic");
    };
    message(&*payload)
}

pub(crate) fn message(payload: &(dyn Any + Send)) -> String {
    let text = payload
        .downcast_ref::<&str>()
        .map(|text| (*text).to_owned());
    text.or_else(|| payload.downcast_ref().cloned())
        .expect("a message")
}
