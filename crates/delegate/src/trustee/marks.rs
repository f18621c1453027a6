//! What a [recording](corelay_sync::trace) learns of a trustee: when it begins and ends, and each
//! pass that finds something. Of clients: [`channel::mark`](crate::wire).

use crate::context::serving::Serving;
use crate::object::shared::Shared;
use corelay_sync::trace::{self, Mark};

static BEGINS: Mark = Mark::new("trustee begins").with_arg("trustee");
static ENDS: Mark = Mark::new("trustee ends").with_arg("requests");
/// A look at the lanes that has found something to run.
static PASS: Mark = Mark::new("pass").with_arg("requests");

/// The trustee is about to serve. Its slot tells whom clients mean.
pub(crate) fn begin(trustee: &Shared) {
    trace::instant(&BEGINS, u64::from(trustee.number.get()));
}

/// The trustee has served all.
pub(crate) fn end(serving: &Serving) {
    trace::instant(&ENDS, serving.requests.get());
}

/// Runs `look`, which looks at lanes and says how much it has found there: for a recording a
/// span, where that is something.
pub(crate) fn pass(serving: &Serving, look: impl FnOnce() -> u32) -> u32 {
    let before = serving.requests.get();
    let mut span = trace::span(&PASS);
    let found = look();
    let requests = serving.requests.get() - before;
    match found {
        0 => span.discard(),
        _ => span.set(requests),
    }
    found
}
