//! The durable side of the store: what is answered as durable is there after a crash, and what is
//! there is a prefix of the history.
#![cfg(not(any(corelay_loom, corelay_shuttle)))]

#[path = "disk/faulty.rs"]
mod faulty;
#[path = "disk/history.rs"]
mod history;

#[path = "disk/cuts.rs"]
mod cuts;
#[path = "disk/failures.rs"]
mod failures;
#[path = "disk/handles.rs"]
mod handles;
#[path = "disk/kept/mod.rs"]
mod kept;
#[path = "disk/killed.rs"]
mod killed;
#[path = "disk/opening.rs"]
mod opening;
#[path = "disk/snapshots.rs"]
mod snapshots;

/// How often the long tests do what they do: the number in `CORELAY_STRESS`, or 1.
fn stress() -> u32 {
    let number = std::env::var("CORELAY_STRESS");
    number.ok().and_then(|text| text.parse().ok()).unwrap_or(1)
}
