//! The pool under shuttle: random schedules of more threads than loom can afford.

use crate::schedules;
use corelay_structures::pool::{Pool, Pooled};
use shuttle::sync::atomic::{AtomicUsize, Ordering};
use shuttle::sync::{Arc, Mutex};
use shuttle::thread;

const SCHEDULES: usize = 2_000;

/// A value that counts how many of its kind live, and can tell whether it is whole.
struct Counted {
    live: Arc<AtomicUsize>,
    number: usize,
    again: usize,
}

impl Counted {
    fn new(live: &Arc<AtomicUsize>, number: usize) -> Self {
        live.fetch_add(1, Ordering::SeqCst);
        Self {
            live: Arc::clone(live),
            number,
            again: !number,
        }
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        assert_eq!(self.number, !self.again, "two in one slot");
        self.live.fetch_sub(1, Ordering::SeqCst);
    }
}

/// Five threads put nodes into a basket and take others' out, free or drop them, end their session
/// and begin another. The pool ends before the last nodes.
#[test]
fn nodes_go_round() {
    schedules::model(SCHEDULES, || {
        let live = Arc::new(AtomicUsize::new(0));
        let basket = Arc::new(Mutex::new(Vec::<Pooled<Counted>>::new()));
        let pool = Pool::with_chunk(2);
        let threads: Vec<_> = (0..5)
            .map(|thread| {
                let (live, basket, pool) = (live.clone(), basket.clone(), pool.clone());
                thread::spawn(move || {
                    let mut session = pool.session();
                    for round in 0..4 {
                        let node = session.alloc(Counted::new(&live, thread * 10 + round));
                        let other = {
                            let mut basket = basket.lock().unwrap();
                            basket.push(node);
                            let at = (thread + round) % basket.len();
                            (round > 0).then(|| basket.swap_remove(at))
                        };
                        match (other, round) {
                            (Some(node), 1) => drop(node),
                            (Some(node), 2) => {
                                session.free(node);
                                session = pool.session();
                            }
                            (Some(node), _) => drop(session.take(node)),
                            (None, _) => {}
                        }
                    }
                })
            })
            .collect();
        for thread in threads {
            thread.join().unwrap();
        }
        let stats = pool.stats();
        assert!(stats.slots <= 2 * stats.heaps * 5, "{stats:?}");
        drop(pool);
        let left = basket.lock().unwrap().len();
        assert_eq!(live.load(Ordering::SeqCst), left);
        basket.lock().unwrap().clear();
        assert_eq!(live.load(Ordering::SeqCst), 0);
    });
}
