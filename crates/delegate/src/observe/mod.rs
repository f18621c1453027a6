//! The notes that a trustee and its clients take for [reports](crate::report).

pub(crate) mod counts;
mod dice;
pub(crate) mod roster;
pub(crate) mod sampler;

use std::time::Duration;

/// The state of a trustee.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
#[non_exhaustive]
pub enum State {
    /// The trustee serves, or looks for something to serve.
    Awake,
    /// The trustee sleeps until there is something to serve. A member of a flat team also wakes for
    /// the answer that its function waits for.
    Asleep,
    /// The trustee runs the requests that it has accepted and then ends. A hosted trustee may
    /// become awake again.
    Closing,
    /// The trustee has ended. Its values have been dropped, and its counts are complete.
    ShutDown,
}

pub(crate) fn ratio(part: u64, whole: u64) -> Option<f64> {
    (whole > 0).then(|| part as f64 / whole as f64)
}

pub(crate) fn mean(total: Duration, n: u64) -> Option<Duration> {
    (n > 0).then(|| Duration::from_nanos((total.as_nanos() / u128::from(n)) as u64))
}

/// Reads a time in nanoseconds; a missing one is none.
#[cfg(feature = "serde")]
pub(crate) fn nanos<'de, D: serde::Deserializer<'de>>(from: D) -> Result<Duration, D::Error> {
    let nanos = <Option<u64> as serde::Deserialize>::deserialize(from)?;
    Ok(Duration::from_nanos(nanos.unwrap_or(0)))
}
