//! Helpers for tests of protocols on real threads.

use std::sync::atomic::{AtomicBool, Ordering};

/// `n` times what `CORELAY_STRESS` asks for (1 unless set).
pub(crate) fn stressed(n: usize) -> usize {
    let factor = std::env::var("CORELAY_STRESS").map_or(1.0, |text| {
        text.parse::<f64>().expect("CORELAY_STRESS is a number")
    });
    (n as f64 * factor) as usize
}

/// Stops servers when it is dropped, even if the test fails.
#[allow(dead_code, reason = "not every test file needs all of it")]
pub(crate) struct Stop<'a>(pub(crate) &'a AtomicBool);

impl Drop for Stop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Release);
    }
}
