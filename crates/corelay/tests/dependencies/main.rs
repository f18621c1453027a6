//! Well-known crates on fibres: which of them keep the promise of `Cluster::start`, which break it,
//! and why. The guide's page on fibres has the list; each line of it has a test here.

#![cfg(not(any(corelay_loom, corelay_shuttle)))]

use corelay::fibre::{Cluster, Semaphore, spawn};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::thread::Result;

mod blocking;
mod harmless;
mod initialisers;
mod scopes;

/// A cluster of one processor: its fibres share one thread.
fn cluster() -> Cluster {
    // SAFETY: some tests break the promise, each where it does no harm, and says why.
    unsafe { Cluster::start(1) }.expect("there are threads")
}

/// The call by which a body waits in the middle.
type Wait<'a> = &'a dyn Fn();

/// Runs two bodies as two fibres of one processor: `first` until it waits; then `second` until it
/// waits or ends; then `first` to its end, and `second` to its own.
fn interleaved<A: Send + 'static, B: Send + 'static>(
    first: impl FnOnce(Wait) -> A + Send + 'static,
    second: impl FnOnce(Wait) -> B + Send + 'static,
) -> (Result<A>, Result<B>) {
    fn begin<R: Send + 'static>(
        body: impl FnOnce(Wait) -> R + Send + 'static,
    ) -> impl FnOnce() -> Result<R> {
        let (inside, door) = (Arc::new(Semaphore::new(0)), Arc::new(Semaphore::new(0)));
        let (tell, go_on) = (Arc::clone(&inside), Arc::clone(&door));
        let fibre = spawn(move || {
            let result = catch_unwind(AssertUnwindSafe(|| {
                body(&|| {
                    tell.release();
                    go_on.acquire();
                })
            }));
            tell.release();
            result
        });
        inside.acquire();
        move || {
            door.release();
            fibre.join().and_then(|result| result)
        }
    }
    let both = cluster().spawn(|| {
        let first = begin(first);
        let second = begin(second);
        (first(), second())
    });
    both.join().expect("panics are caught")
}

/// Runs `body` as each of eight fibres of one processor.
fn eight<R: Send + 'static>(body: fn(u64) -> R) -> Vec<R> {
    let cluster = cluster();
    let fibres: Vec<_> = (0..8).map(|i| cluster.spawn(move || body(i))).collect();
    let results = fibres.into_iter().map(|fibre| fibre.join());
    results.map(|r| r.expect("no panic")).collect()
}
