//! Code of other crates that waits by a token waits as a fibre here, and leaves the fibre's own
//! affairs alone.

mod common;

use common::KINDS;
use corelay_fibre::{Cluster, StartError, State, current, is_cancelled, park, yield_now};
use corelay_sync::wait::{Token, wait};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

#[test]
fn a_cancellation_does_not_end_it_nor_block_the_thread() {
    for kind in KINDS {
        let cluster = Cluster::start(1).unwrap();
        let token = Arc::new(Token::new());
        let theirs = Arc::clone(&token);
        let waiter = kind.spawn(&cluster, move || {
            current().unwrap().cancel();
            wait(&theirs);
            assert!(theirs.is_set() && is_cancelled());
        });
        // On the same processor, so that it hangs where the wait blocks the thread.
        let notifier = kind.spawn(&cluster, move || {
            for _ in 0..10 {
                yield_now();
            }
            token.notify();
        });
        notifier.join().unwrap();
        waiter.join().unwrap();
    }
}

#[test]
fn an_unpark_that_comes_meanwhile_is_kept() {
    for kind in KINDS {
        let cluster = Cluster::start(1).unwrap();
        let token = Arc::new(Token::new());
        let began = Arc::new(AtomicBool::new(false));
        let (theirs, begins) = (Arc::clone(&token), Arc::clone(&began));
        let waiter = kind.spawn(&cluster, move || {
            begins.store(true, Ordering::Release);
            wait(&theirs);
            // Returns at once.
            park();
        });
        let fibre = waiter.fibre().clone();
        let notifier = kind.spawn(&cluster, move || {
            while !began.load(Ordering::Acquire) {
                yield_now();
            }
            fibre.unpark();
            yield_now();
            token.notify();
        });
        notifier.join().unwrap();
        waiter.join().unwrap();
    }
}

#[test]
fn the_dump_says_that_it_waits() {
    let cluster = Cluster::start(1).unwrap();
    let token = Arc::new(Token::new());
    let theirs = Arc::clone(&token);
    let waiter = cluster.spawn(move || wait(&theirs));
    while !matches!(cluster.dump().fibres[0].state, State::Waiting { .. }) {
        std::thread::yield_now();
    }
    token.notify();
    waiter.join().unwrap();
}

#[test]
fn a_cpu_that_is_not_there_is_said() {
    let refused = Cluster::builder()
        .processors(2)
        .cpus(vec![0, 1 << 20])
        .start();
    let why = refused.unwrap_err();
    assert!(
        matches!(why, StartError::Pin { cpu, .. } if cpu == 1 << 20),
        "{why}"
    );
    assert!(why.to_string().starts_with("a processor on CPU 1048576: "));
}
