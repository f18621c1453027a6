//! `exit` ends the process with its code, wherever it is called and whatever is under way.

#[cfg(not(any(corelay_loom, corelay_shuttle)))]
#[path = "exit/runner.rs"]
mod runner;
#[cfg(not(any(corelay_loom, corelay_shuttle)))]
#[path = "exit/scenes.rs"]
mod scenes;
#[cfg(not(any(corelay_loom, corelay_shuttle)))]
#[path = "../../sync/tests/toy/mod.rs"]
#[allow(dead_code, reason = "each test file uses a part")]
mod toy;
#[cfg(not(any(corelay_loom, corelay_shuttle)))]
#[path = "watch/mod.rs"]
#[allow(dead_code, reason = "each test file uses a part")]
mod watch;

fn main() {
    #[cfg(not(any(corelay_loom, corelay_shuttle)))]
    runner::run(scenes::ALL);
}
