//! A shared library with fibres that migrate: `cargo test` loads it.
//!
//! In a shared library the address of a thread-local is the result of a call, which a compiler
//! keeps if it can. On a fibre that has moved to another thread that address is the wrong one. So
//! corelay uses none of its own across a wait.

use corelay_fibre::{BinarySemaphore, Cluster, current, processor, yield_now};
use std::sync::Arc;

/// Passes tokens around a ring of fibres that migrate, and yields. Returns the number of passes, or
/// 0 if something went wrong.
#[unsafe(no_mangle)]
pub extern "C" fn corelay_fibre_rings(fibres: usize, rounds: usize) -> usize {
    // SAFETY: nothing here waits inside a thread-local's initialiser or scope.
    let Ok(cluster) = (unsafe { Cluster::start(2) }) else {
        return 0;
    };
    let seats: Vec<_> = (0..fibres).map(|i| BinarySemaphore::new(i < 4)).collect();
    let seats = Arc::new(seats);
    let spawn = |i: usize| {
        let seats = Arc::clone(&seats);
        // SAFETY: nothing that must stay on a thread is held over a wait.
        let builder = unsafe { cluster.fibre().migrating() };
        builder.spawn(move || {
            let own = current().map(|fibre| fibre.id());
            let mut passes = 0;
            for _ in 0..rounds {
                seats[i].wait();
                seats[(i + 1) % seats.len()].post();
                yield_now();
                let is_here = processor().is_some_and(|number| number < 2);
                let is_itself = current().map(|fibre| fibre.id()) == own;
                passes += usize::from(is_here && is_itself);
            }
            passes
        })
    };
    let fibres: Result<Vec<_>, _> = (0..fibres).map(spawn).collect();
    let Ok(fibres) = fibres else { return 0 };
    // A post that finds a post is dropped, so some fibres may wait for ever: the last round wakes
    // them.
    while !fibres.iter().all(|fibre| fibre.is_finished()) {
        seats.iter().for_each(BinarySemaphore::post);
        std::thread::yield_now();
    }
    fibres
        .into_iter()
        .map(|fibre| fibre.join().unwrap_or(0))
        .sum()
}
