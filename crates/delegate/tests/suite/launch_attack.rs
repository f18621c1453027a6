//! Launches at random, on many objects of several trustees, among all other requests: no run hangs,
//! and each closure runs once or is refused as part of a ring.

use crate::support::{Rng, scaled, start, watchdog};
use crate::toy;
use corelay_delegate::{
    AsyncError, CircularWait, ClientGuard, LaunchHandle, Trust, Trustees, TryApplyError, barrier,
};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Counters of all closures of a run.
#[derive(Clone, Default)]
struct Books(Arc<Counts>);

#[derive(Default)]
struct Counts {
    accepted: AtomicU64,
    ran: AtomicU64,
    dropped: AtomicU64,
    rings: AtomicU64,
}

/// Counts a closure that is dropped, run or not.
struct Token(Books);

impl Drop for Token {
    fn drop(&mut self) {
        add(&self.0.0.dropped);
    }
}

fn add(counter: &AtomicU64) {
    counter.fetch_add(1, Ordering::Relaxed);
}

fn get(counter: &AtomicU64) -> u64 {
    counter.load(Ordering::Relaxed)
}

impl Books {
    /// A closure that counts itself.
    fn work(&self) -> impl FnOnce(&mut u64) + Send + 'static {
        add(&self.0.accepted);
        let (books, token) = (self.clone(), Token(self.clone()));
        move |value| {
            let _token = token;
            *value += 1;
            add(&books.0.ran);
        }
    }

    fn join(&self, handle: LaunchHandle<()>) {
        match handle.join() {
            Ok(()) => {}
            Err(AsyncError::Circular(_)) => add(&self.0.rings),
            Err(other) => panic!("{other}"),
        }
    }

    fn barrier(&self) {
        if let Err(failed) = barrier() {
            assert!(failed.into_first().is::<CircularWait>());
            add(&self.0.rings);
        }
    }
}

/// The acts of launched closures and of clients.
#[derive(Clone)]
struct Attack {
    objects: Arc<Vec<Trust<u64>>>,
    books: Books,
}

impl Attack {
    /// Makes some steps at random; launches inside launches up to `depth`.
    fn steps(&self, rng: &mut Rng, steps: u64, depth: u64) {
        let mut handles = Vec::new();
        for _ in 0..steps {
            let object = &self.objects[rng.below(self.objects.len() as u64) as usize];
            let work = self.books.work();
            match rng.below(12) {
                0 | 1 => match object.try_apply(work) {
                    Ok(()) => {}
                    Err(TryApplyError::Circular(_)) => add(&self.books.0.rings),
                    Err(other) => panic!("{other:?}"),
                },
                2 => {
                    let called = catch_unwind(AssertUnwindSafe(|| object.apply(work)));
                    if let Err(payload) = called {
                        let text = payload.downcast::<String>().expect("a text");
                        assert!(text.contains("in a ring"), "{text}");
                        add(&self.books.0.rings);
                    }
                }
                3 | 4 => object.post(work),
                5 | 6 => object.apply_then(work, |()| ()),
                7 => drop(object.apply_async(work)),
                8 => {
                    drop(work);
                    self.books.barrier();
                }
                9 if !handles.is_empty() => {
                    drop(work);
                    let handle = rng.below(handles.len() as u64) as usize;
                    self.books.join(handles.swap_remove(handle));
                }
                _ if depth > 0 => {
                    let (attack, mut rng) = (self.clone(), Rng::new(rng.below(u64::MAX)));
                    let handle = object.launch(move |value| {
                        let steps = rng.below(6);
                        attack.steps(&mut rng, steps, depth - 1);
                        work(value);
                    });
                    handles.push(handle);
                    if handles.len() > 4 {
                        handles.clear();
                    }
                }
                _ => object.post(work),
            }
        }
    }
}

fn attack(trustees: usize, clients: u64, window: usize, seed: u64) -> u64 {
    let all = start(
        Trustees::dedicated(trustees)
            .host(toy::host())
            .window(window),
    );
    let objects = (0..6).map(|i| all.entrust_on(i % trustees, 0)).collect();
    let attack = Attack {
        objects: Arc::new(objects),
        books: Books::default(),
    };
    std::thread::scope(|s| {
        for client in 0..clients {
            let attack = attack.clone();
            s.spawn(move || {
                let _client = ClientGuard::new();
                attack.steps(&mut Rng::new(seed * 100 + client), 60, 3);
                attack.books.barrier();
            });
        }
    });
    all.shutdown();
    let Counts {
        accepted,
        ran,
        dropped,
        rings,
    } = &*attack.books.0;
    assert_eq!(get(accepted), get(dropped), "seed {seed}");
    assert!(get(ran) <= get(accepted) && get(ran) > 0, "seed {seed}");
    get(rings)
}

#[test]
fn launches_at_random_end() {
    let _watch = watchdog();
    let mut rings = 0;
    for seed in 0..scaled(6) {
        for (trustees, clients, window) in [(1, 1, 256), (1, 2, 4), (2, 3, 8), (3, 3, 256)] {
            rings += attack(trustees, clients, window, seed);
        }
    }
    assert!(rings > 0, "random waits make rings");
}
