//! Delegation as in the literature, by `corelay-literature`, to be measured beside corelay's own.
//!
//! * `ffwd`: one request in flight per client; 15 clients are answered at once.
//! * `rcl`: remote core locking: one request in flight per client, answered in its own line; an
//!   operation's captures stay in the client's frame.
//! * `async-lines`: N request lines per client and server, and a queue before them; answers come
//!   to a callback, as for `trust-then`. With parameters `async-lines:N`, `async-lines:NxL` and
//!   `async-lines:N-direct`.
//! * `flat-lines`: the same lines, and each thread is client and server, by the thesis's policies.
//! * `gepard`: four such lines for each pair, and fibres that wait for their answers.
//!
//! The variables are dealt out to the servers in turn. An operation travels as the papers'
//! requests do: a function pointer, a pointer to the variable, and the operation's captures as
//! words (none for fetch-add); the answer is a word.

pub mod blocking;
pub mod flat;
mod gepard;
pub mod lines;
mod servers;

pub use blocking::{ffwd, rcl};
pub use flat::flat_lines;
pub use gepard::gepard;
pub use lines::async_lines;

use crate::workload::operation::{LINE_BYTES, Workload};
use corelay_literature::{Delegation, Protocol};

/// Bytes per variable: the lines of its object, and the word that locates it.
const fn bytes_per_var<W: Workload>() -> u64 {
    let object = size_of::<W::Object>().next_multiple_of(LINE_BYTES);
    (object + size_of::<u64>()) as u64
}

/// The sum of the workload's checks over all objects, for
/// [`total`](crate::method::Contender::total).
fn total<W: Workload, P: Protocol>(
    workload: W,
    delegation: &Delegation<P, W::Object>,
) -> Result<u64, String> {
    let mut total = Ok(0);
    let looked = delegation.inspect(|object| {
        if let Ok(sum) = total {
            total = workload.check(object).map(|seen| sum + seen);
        }
    });
    looked.map_err(|busy| busy.to_string()).and(total)
}
