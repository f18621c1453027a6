//! A lock in the place of `std::sync::Mutex`: `apply` for sections that any thread may run, `lock` for
//! those that must stay on their own.
//!
//! `cargo run -p corelay --example adaptive`

use corelay::locks::Adaptive;
use std::thread;

static HITS: Adaptive<Vec<u32>> = Adaptive::new(Vec::new());

fn main() {
    thread::scope(|s| {
        for id in 0..4 {
            s.spawn(move || {
                for _ in 0..1000 {
                    HITS.apply(|hits| hits.push(id)); // here, or on the thread that holds the lock
                }
                let hits = HITS.lock().expect("no section panics"); // here
                println!("thread {id} is done, at {} hits", hits.len());
            });
        }
    });
    let hits = HITS.lock().expect("no section panics");
    assert_eq!(hits.len(), 4000);
}
