//! Clocks that are wrong: they panic at any call, give absurd times, or step.
//!
//! These properties must hold whatever the clock does: no thread waits for ever, nothing stays
//! locked, and no promise that does not depend on the clock is broken.
//!
//! `CORELAY_STRESS=100 cargo test …` reads a hundred times as often.

#![cfg(not(any(corelay_loom, corelay_shuttle)))]

#[path = "clocks/absurd.rs"]
mod absurd;
#[path = "clocks/panicking.rs"]
mod panicking;
#[path = "clocks/stepping.rs"]
mod stepping;

use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread;
use std::time::Duration;

/// `n` times the factor in `CORELAY_STRESS` (1 unless set).
fn scaled(n: u64) -> u64 {
    let factor = std::env::var("CORELAY_STRESS").map_or(1.0, |text| {
        text.parse::<f64>().expect("CORELAY_STRESS is a number")
    });
    ((n as f64 * factor) as u64).max(1)
}

/// Ends the process with a message if a test hangs. Nothing else depends on the time.
struct Named(#[expect(dead_code, reason = "its drop tells the thread")] Sender<()>);

impl Named {
    fn new(hang: &'static str) -> Self {
        let (tell, told) = mpsc::channel::<()>();
        thread::spawn(move || {
            if told.recv_timeout(Duration::from_secs(300)) == Err(RecvTimeoutError::Timeout) {
                eprintln!("hangs: {hang}");
                std::process::abort();
            }
        });
        Self(tell)
    }
}
