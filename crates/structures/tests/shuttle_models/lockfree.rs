//! The lock-free structures under shuttle: random schedules of more threads than loom can afford.
//!
//! The domain of the models sees a node that is retired twice, and a link that leads to a node that
//! may be freed.

use crate::schedules;
use corelay_structures::lockfree::{BlockQueue, HarrisList, MsQueue, TreiberStack};
use shuttle::sync::Arc;
use shuttle::sync::atomic::{AtomicUsize, Ordering};
use shuttle::thread;
use std::ops::Range;

const SCHEDULES: usize = 5_000;
const THREADS: usize = 4;

/// A value that counts how many of its kind live.
struct Counted {
    number: usize,
    live: Arc<AtomicUsize>,
}

impl Counted {
    fn new(number: usize, live: &Arc<AtomicUsize>) -> Self {
        live.fetch_add(1, Ordering::SeqCst);
        let live = Arc::clone(live);
        Self { number, live }
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.live.fetch_sub(1, Ordering::SeqCst);
    }
}

/// Each thread pushes three values and pops two. No value is lost or comes twice; what one thread
/// pops of another's is in the order that `is_in_order` says; what is left is dropped.
fn values_go_round<S: Default + Send + Sync + 'static>(
    push: fn(&S, Counted),
    pop: fn(&S) -> Option<Counted>,
    is_in_order: fn(&[usize]) -> bool,
) {
    schedules::model(SCHEDULES, move || {
        let live = Arc::new(AtomicUsize::new(0));
        let shared = Arc::new(S::default());
        let work = |numbers: Range<usize>| {
            let (shared, live) = (Arc::clone(&shared), Arc::clone(&live));
            move || {
                let mut popped = Vec::new();
                for number in numbers {
                    push(&shared, Counted::new(number, &live));
                    if number % 3 > 0 {
                        popped.extend(pop(&shared).map(|value| value.number));
                    }
                }
                popped
            }
        };
        let threads: Vec<_> = (0..THREADS)
            .map(|thread| thread::spawn(work(thread * 3..thread * 3 + 3)))
            .collect();
        let mut all = Vec::new();
        for thread in threads {
            let popped = thread.join().unwrap();
            for from in 0..THREADS {
                let of_one: Vec<_> = popped.iter().copied().filter(|n| n / 3 == from).collect();
                assert!(is_in_order(&of_one), "{popped:?}");
            }
            all.extend(popped);
        }
        let last = pop(&shared).expect("more was pushed than popped");
        all.push(last.number);
        drop(last);
        let left = THREADS * 3 - all.len();
        all.sort_unstable();
        all.dedup();
        assert_eq!(all.len() + left, THREADS * 3);
        assert_eq!(live.load(Ordering::SeqCst), left);
        drop(shared);
        assert_eq!(live.load(Ordering::SeqCst), 0);
    });
}

#[test]
fn ms_queue() {
    values_go_round::<MsQueue<_>>(MsQueue::push, MsQueue::pop, |popped| popped.is_sorted());
}

/// With blocks of one slot and of two.
#[test]
fn block_queue() {
    type OneSlot = BlockQueue<Counted, 1>;
    values_go_round::<OneSlot>(OneSlot::push, OneSlot::pop, |popped| popped.is_sorted());
    type TwoSlots = BlockQueue<Counted, 2>;
    values_go_round::<TwoSlots>(TwoSlots::push, TwoSlots::pop, |popped| popped.is_sorted());
}

#[test]
fn treiber_stack() {
    type Plain = TreiberStack<Counted, 0>;
    values_go_round::<Plain>(Plain::push, Plain::pop, |_| true);
}

/// With one slot, because the choice among several is not the same in each run.
#[test]
fn treiber_stack_with_elimination() {
    type OneSlot = TreiberStack<Counted, 1>;
    values_go_round::<OneSlot>(OneSlot::push, OneSlot::pop, |_| true);
}

/// Threads insert and remove the same few keys: what they were told adds up to what is there.
#[test]
fn harris_list() {
    schedules::model(SCHEDULES, || {
        let list = Arc::new(HarrisList::from_iter([2_usize]));
        let threads: Vec<_> = (0..THREADS)
            .map(|thread| {
                let list = Arc::clone(&list);
                thread::spawn(move || {
                    let mut balance = [0_i32; 5];
                    for step in 0..4 {
                        let key = (thread + step * step) % 5;
                        if (thread + step) % 2 == 0 {
                            balance[key] += i32::from(list.insert(key));
                        } else {
                            balance[key] -= i32::from(list.remove(&key));
                        }
                        list.contains(&(4 - key));
                    }
                    balance
                })
            })
            .collect();
        let mut balance = [0, 0, 1, 0, 0];
        for thread in threads {
            let of_one = thread.join().unwrap();
            balance
                .iter_mut()
                .zip(of_one)
                .for_each(|(sum, it)| *sum += it);
        }
        let found = [0, 1, 2, 3, 4].map(|key| i32::from(list.contains(&key)));
        assert_eq!(balance, found);
        assert_eq!(list.len(), balance.iter().filter(|&&it| it == 1).count());
    });
}
