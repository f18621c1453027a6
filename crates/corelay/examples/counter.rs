//! One counter, three ways to make a request: wait for the answer, want none, or take it later.
//!
//! `cargo run -p corelay --example counter`

use corelay::Trustees;
use std::cell::Cell;
use std::error::Error;
use std::rc::Rc;
use std::thread;

fn main() -> Result<(), Box<dyn Error>> {
    let trustees = Trustees::dedicated(1).start()?; // a thread that owns objects
    let hits = trustees.entrust(0u64); // a handle to one of them

    thread::scope(|s| {
        for thread in 1..=3 {
            let hits = &hits;
            s.spawn(move || {
                let largest = Rc::new(Cell::new(0));
                for _ in 0..1000 {
                    hits.apply(|h| *h += 1); // waits for the answer, as with a lock
                    hits.post(|h| *h += 1); // wants none, and goes on at once
                    let largest = Rc::clone(&largest); // callbacks stay on their thread
                    let count = |h: &mut u64| {
                        *h += 1;
                        *h
                    };
                    hits.apply_then(count, move |n| largest.set(n)); // takes it later
                }
                corelay::barrier().expect("no closure panics"); // all callbacks have run
                println!("thread {thread} counted up to {}", largest.get());
                assert!(largest.get() >= 3000, "its own are among them");
            });
        }
    });

    let all = hits.apply(|h| *h);
    println!("{all} hits by 3 threads, none lost, and no lock taken");
    assert_eq!(all, 9000);

    drop(hits);
    let counted = &trustees.shutdown()[0];
    println!(
        "the trustee ran {} closures in {} batches",
        counted.requests, counted.batches
    );
    assert!(counted.requests > 9000 && counted.panics == 0);
    Ok(())
}
