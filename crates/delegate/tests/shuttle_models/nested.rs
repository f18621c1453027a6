//! Requests made inside delegated closures, with many trustees and small windows, under
//! shuttle: see `channel` for how.

use crate::schedules::model;
use corelay_delegate::{ClientGuard, Trust, Trustees, TryApplyThenError, TryPostError, barrier};
use shuttle::rand::{Rng, thread_rng};
use shuttle::sync::Arc;
use shuttle::sync::atomic::{AtomicUsize, Ordering};
use shuttle::thread;

/// Schedules per test, unless the environment says.
const SCHEDULES: usize = 1_000;

/// A token that counts itself, from its making to its end: queued requests must neither be lost nor
/// leak.
struct Token(Arc<Tally>);

#[derive(Default)]
struct Tally {
    alive: AtomicUsize,
    /// Requests that closures have made, and those that have run.
    asked: AtomicUsize,
    ran: AtomicUsize,
    /// Callbacks that are to come, and those that have run.
    owed: AtomicUsize,
    heard: AtomicUsize,
}

impl Token {
    fn new(tally: &Arc<Tally>) -> Self {
        tally.alive.fetch_add(1, Ordering::Relaxed);
        Self(tally.clone())
    }
}

impl Drop for Token {
    fn drop(&mut self) {
        self.0.alive.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Goes on from trustee to trustee, at random.
fn hop(objects: &Arc<Vec<Trust<()>>>, tally: &Arc<Tally>, left: u32) {
    if left == 0 {
        return;
    }
    let to = thread_rng().gen_range(0..objects.len());
    let (token, next, count) = (Token::new(tally), objects.clone(), tally.clone());
    let run = move |_: &mut ()| {
        count.ran.fetch_add(1, Ordering::Relaxed);
        hop(&next, &count, left - 1);
        drop(token);
    };
    let taken = if thread_rng().gen_bool(0.5) {
        match objects[to].try_post(run) {
            Ok(()) => true,
            Err(TryPostError::Full(_) | TryPostError::Closed(_)) => false,
        }
    } else {
        let token = Token::new(tally);
        let hear = move |()| _ = token.0.heard.fetch_add(1, Ordering::Relaxed);
        match objects[to].try_apply_then(run, hear) {
            Ok(()) => {
                tally.owed.fetch_add(1, Ordering::Relaxed);
                true
            }
            Err(TryApplyThenError::Full(..) | TryApplyThenError::Closed(..)) => false,
        }
    };
    if taken {
        tally.asked.fetch_add(1, Ordering::Relaxed);
    }
}

/// Chains of requests through `n` trustees; those end while chains are under way, or after.
fn chains(n: usize, window: usize, clients: usize, ends_early: bool) {
    let trustees = Trustees::dedicated(n).window(window).start().unwrap();
    let tally = Arc::new(Tally::default());
    let objects = Arc::new(trustees.entrust_all(vec![(); n]).to_vec());
    let threads: Vec<_> = (0..clients)
        .map(|_| {
            let (objects, tally) = (objects.clone(), tally.clone());
            thread::spawn(move || {
                let _guard = ClientGuard::new();
                for _ in 0..3 {
                    let start = thread_rng().gen_range(0..objects.len());
                    let (next, count) = (objects.clone(), tally.clone());
                    objects[start].post(move |()| hop(&next, &count, 5));
                }
                barrier().unwrap();
            })
        })
        .collect();
    for thread in threads {
        thread.join().unwrap();
    }
    let count = |count: &AtomicUsize| count.load(Ordering::Relaxed);
    if !ends_early {
        while count(&tally.ran) != count(&tally.asked) || count(&tally.heard) != count(&tally.owed)
        {
            thread::yield_now();
        }
    }
    drop(objects);
    drop(ClientGuard::new());
    trustees.shutdown();
    assert!(count(&tally.ran) <= count(&tally.asked));
    assert!(count(&tally.heard) <= count(&tally.owed));
    assert_eq!(count(&tally.alive), 0, "what was not run was dropped");
}

#[test]
fn two_trustees_with_room_for_one() {
    model(SCHEDULES, || chains(2, 1, 2, false));
}

#[test]
fn four_trustees_with_room_for_two() {
    model(SCHEDULES, || chains(4, 2, 3, false));
}

#[test]
fn trustees_end_amid_nested_requests() {
    model(SCHEDULES, || chains(2, 1, 2, true));
}

#[test]
fn many_trustees_end_amid_nested_requests() {
    model(SCHEDULES, || chains(6, 2, 4, true));
}
