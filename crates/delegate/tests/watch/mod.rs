//! Ends a process in which a test hangs.

use std::io::Write;
use std::panic::Location;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::Duration;

/// Ends the process, with the test's name, if a test hangs.
pub(crate) struct Watchdog(#[expect(dead_code, reason = "its drop is what counts")] Sender<()>);

/// Watches the calling test until the guard is dropped.
#[track_caller]
pub(crate) fn watchdog() -> Watchdog {
    let (alive, over): (_, Receiver<()>) = channel();
    let place = Location::caller();
    let test = std::thread::current().name().unwrap_or("a test").to_owned();
    std::thread::spawn(move || {
        if over.recv_timeout(Duration::from_secs(scaled(120).max(120)))
            == Err(RecvTimeoutError::Timeout)
        {
            // Not `eprintln!`, whose text the harness would keep to itself.
            let text = format!("\n{test} ({place}) hangs\n");
            let _ = std::io::stderr().write_all(text.as_bytes());
            std::process::abort();
        }
    });
    Watchdog(alive)
}

/// `n` times what `CORELAY_STRESS` asks for (1 unless set).
pub(crate) fn scaled(n: u64) -> u64 {
    let factor = std::env::var("CORELAY_STRESS").map_or(1.0, |text| {
        text.parse::<f64>().expect("CORELAY_STRESS is a number")
    });
    ((n as f64 * factor) as u64).max(1)
}
