//! Everything at once, at random.

use crate::support::{Rng, Tally, Token, scaled, start, watchdog};
use corelay_delegate::{BarrierError, ClientGuard, Trust, Trustees, barrier, poll};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

/// The counters that all threads of a run share.
#[derive(Clone, Default)]
struct Books(Arc<Counts>);

#[derive(Default)]
struct Counts {
    accepted: AtomicU64,
    awaited: AtomicU64,
    ran: AtomicU64,
    /// Requests that ran and panicked, without a waiting caller.
    panicked: AtomicU64,
    /// Requests with a waiting caller that reached poison.
    refused: AtomicU64,
    /// Other requests that reached poison or panicked, as the barriers say.
    failed: AtomicU64,
}

fn add(counter: &AtomicU64, n: u64) {
    counter.fetch_add(n, Ordering::Relaxed);
}

fn get(counter: &AtomicU64) -> u64 {
    counter.load(Ordering::Relaxed)
}

type Object = Trust<(u64, Token)>;

/// A request that counts itself, and panics if it is `bad`.
fn work(
    books: &Books,
    tally: &Tally,
    bad: bool,
) -> impl FnOnce(&mut (u64, Token)) -> Token + Send + 'static {
    let (books, token) = (books.clone(), tally.token());
    move |value| {
        add(&books.0.ran, 1);
        value.0 += 1;
        if bad {
            add(&books.0.panicked, 1);
            panic!("at random");
        }
        token
    }
}

/// Makes one step at random. The next barrier counts failures of posts.
fn step(rng: &mut Rng, objects: &mut Vec<Object>, all: &[Object], books: &Books, tally: &Tally) {
    let t = objects[rng.below(objects.len() as u64) as usize].clone();
    let bad = rng.below(200) == 0;
    let f = work(books, tally, bad);
    match rng.below(12) {
        0..3 => {
            add(&books.0.accepted, 1);
            t.post(move |value| drop(f(value)));
        }
        3..6 => {
            add(&books.0.accepted, 1);
            let (books, token, again) = (books.clone(), tally.token(), t.clone());
            let more = rng.below(8) == 0;
            let inner = more.then(|| work(&books, tally, false));
            t.apply_then(f, move |answer| {
                drop((answer, token));
                if let Some(inner) = inner {
                    add(&books.0.accepted, 1);
                    again.post(move |value| drop(inner(value)));
                }
            });
        }
        6..8 => {
            add(&books.0.awaited, 1);
            match catch_unwind(AssertUnwindSafe(|| t.try_apply(f))) {
                Ok(Ok(answer)) => drop(answer),
                Ok(Err(_)) => add(&books.0.refused, 1),
                // Its caller has been told.
                Err(_) => drop(books.0.panicked.fetch_sub(1, Ordering::Relaxed)),
            }
        }
        8 => {
            if t.try_post(move |value| drop(f(value))).is_ok() {
                add(&books.0.accepted, 1);
            }
        }
        9 => t.clear_poison(),
        10 => {
            let other = &all[rng.below(all.len() as u64) as usize];
            objects.push(other.clone());
            objects.swap_remove(0);
        }
        _ => poll(),
    }
}

fn settle(result: Result<(), BarrierError>, books: &Books) {
    if let Err(error) = result {
        add(&books.0.failed, error.count());
    }
}

/// Nothing is lost, nothing happens twice: each accepted request ran, or was refused by poison;
/// each that ran to its end was answered; each token that was made was dropped.
#[test]
fn everything_at_random() {
    let _watch = watchdog();
    for (window, batch, origin) in [
        (256, 64, 0),
        (1, 1, u32::MAX - 50),
        (7, 3, u32::MAX - 500),
        (3, 64, 5),
        (40, 2, u32::MAX),
    ] {
        let builder = Trustees::dedicated(2)
            .window(window)
            .batch(batch)
            .origin(origin, origin);
        let trustees = start(builder);
        let (books, tally) = (Books::default(), Tally::new());
        let shared: Vec<Object> = (0..6)
            .map(|_| trustees.entrust((0, tally.token())))
            .collect();
        thread::scope(|s| {
            for client in 0..4u64 {
                let (shared, books, tally) = (shared.clone(), books.clone(), tally.clone());
                s.spawn(move || {
                    let mut rng = Rng::new(client + 10);
                    let mut objects = shared.clone();
                    for _ in 0..scaled(4) {
                        for _ in 0..300 {
                            step(&mut rng, &mut objects, &shared, &books, &tally);
                        }
                        settle(barrier(), &books);
                        if rng.below(2) == 0 {
                            drop(ClientGuard::new());
                        }
                    }
                    settle(barrier(), &books);
                });
            }
        });
        let counts = &books.0;
        let (ran, refused, failed) = (get(&counts.ran), get(&counts.refused), get(&counts.failed));
        let asked = get(&counts.accepted) + get(&counts.awaited);
        // A request without a waiting caller that panicked counts as run and as failed.
        assert_eq!(ran + refused + failed, asked + get(&counts.panicked));
        shared.iter().for_each(Trust::clear_poison);
        assert_eq!(
            shared.iter().map(|t| t.apply(|value| value.0)).sum::<u64>(),
            ran
        );
        drop(shared);
        trustees.shutdown();
        tally.assert_all_dropped(tally.made());
    }
}
