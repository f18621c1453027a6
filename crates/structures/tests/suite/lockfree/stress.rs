//! Many threads, many calls.

use crate::stress;
use corelay_structures::lockfree::{BlockQueue, HarrisList, MsQueue, TreiberStack};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

const THREADS: usize = 4;

/// Each thread pushes and pops. Values come out whole, each once, and `is_in_order` holds of what
/// one thread pops of another's.
fn values_go_round<S: Sync>(
    shared: &S,
    push: fn(&S, Box<usize>),
    pop: fn(&S) -> Option<Box<usize>>,
    is_in_order: fn(&[usize]) -> bool,
) {
    let each = 5_000 * stress();
    let all: Vec<Vec<usize>> = thread::scope(|s| {
        let threads: Vec<_> = (0..THREADS)
            .map(|thread| {
                s.spawn(move || {
                    let mut mine = Vec::new();
                    for n in 0..each {
                        push(shared, Box::new(thread * each + n));
                        // In some rounds the structure grows, in others it is emptied.
                        for _ in 0..n / 100 % 3 {
                            mine.extend(pop(shared).map(|value| *value));
                        }
                    }
                    mine
                })
            })
            .collect();
        threads.into_iter().map(|t| t.join().unwrap()).collect()
    });
    let mut seen = vec![false; THREADS * each];
    let rest = std::iter::from_fn(|| pop(shared).map(|value| *value));
    for popped in all.into_iter().chain([rest.collect()]) {
        for from in 0..THREADS {
            let of_one = popped.iter().copied().filter(|value| value / each == from);
            assert!(is_in_order(&of_one.collect::<Vec<_>>()));
        }
        for value in popped {
            assert!(
                !std::mem::replace(&mut seen[value], true),
                "{value} comes twice"
            );
        }
    }
    assert!(seen.iter().all(|&seen| seen), "a value is lost");
}

#[test]
fn ms_queue() {
    values_go_round(&MsQueue::new(), MsQueue::push, MsQueue::pop, |popped| {
        popped.is_sorted()
    });
}

#[test]
fn block_queue() {
    fn go_round<const SLOTS: usize>() {
        let queue = BlockQueue::<_, SLOTS>::with_slots();
        values_go_round(&queue, BlockQueue::push, BlockQueue::pop, |popped| {
            popped.is_sorted()
        });
    }
    go_round::<1>();
    go_round::<3>();
    go_round::<63>();
}

#[test]
fn treiber_stack() {
    fn go_round<const SLOTS: usize>() {
        let stack = TreiberStack::<_, SLOTS>::with_slots();
        values_go_round(&stack, TreiberStack::push, TreiberStack::pop, |_| true);
    }
    go_round::<0>();
    go_round::<4>();
}

/// Threads insert and remove the same few keys: what they were told adds up to what is there.
/// Meanwhile a key that nobody removes is always found, behind nodes that come and go.
#[test]
fn harris_list() {
    const KEYS: usize = 16;
    let list = HarrisList::from_iter([KEYS.to_string()]);
    let keys: Vec<_> = (0..=KEYS).map(|key| format!("{key:02}")).collect();
    let balance: Vec<_> = keys.iter().map(|_| AtomicUsize::new(0)).collect();
    thread::scope(|s| {
        for thread in 0..THREADS {
            let (list, keys, balance) = (&list, &keys, &balance);
            s.spawn(move || {
                for n in 0..5_000 * stress() {
                    let key = (n * 7 + n / 3 * thread) % KEYS;
                    if (n + thread) % 2 == 0 {
                        if list.insert(keys[key].clone()) {
                            balance[key].fetch_add(1, Ordering::SeqCst);
                        }
                    } else if list.remove(&keys[key]) {
                        // May be below zero for a moment: the thread that inserted counts later.
                        balance[key].fetch_sub(1, Ordering::SeqCst);
                    }
                    assert!(list.contains(&keys[KEYS]));
                }
            });
        }
    });
    for (key, balance) in keys[..KEYS].iter().zip(&balance) {
        assert_eq!(
            usize::from(list.contains(key)),
            balance.load(Ordering::SeqCst)
        );
    }
    let mut last = None;
    list.for_each(|key| assert!(last.replace(key.clone()) < Some(key.clone())));
}
