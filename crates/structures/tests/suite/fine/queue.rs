//! The queue against `VecDeque`, and values that pass through it.

use crate::{cases, stress};
use corelay_structures::fine::TwoLockQueue;
use proptest::prelude::*;
use std::collections::VecDeque;

proptest! {
    #![proptest_config(cases(64))]

    #[test]
    fn it_answers_like_a_queue_of_std(calls in proptest::collection::vec(any::<Option<u8>>(), 0..80)) {
        let (queue, mut model) = (TwoLockQueue::new(), VecDeque::new());
        for call in calls {
            if let Some(value) = call {
                queue.push(value);
                model.push_back(value);
            } else {
                prop_assert_eq!(queue.pop(), model.pop_front());
            }
            prop_assert_eq!(queue.is_empty(), model.is_empty());
        }
    }
}

/// Three threads enqueue and three dequeue: every value comes out once, and those of one thread in
/// their order.
#[test]
fn values_come_out_once_and_in_order() {
    let each = 2_000 * stress();
    let queue = TwoLockQueue::new();
    let seen: Vec<Vec<(usize, usize)>> = std::thread::scope(|s| {
        let queue = &queue;
        for thread in 0..3 {
            s.spawn(move || (0..each).for_each(|n| queue.push((thread, n))));
        }
        let take = |_| {
            s.spawn(move || {
                let mut seen = Vec::new();
                while seen.len() < each {
                    match queue.pop() {
                        Some(value) => seen.push(value),
                        None => std::thread::yield_now(),
                    }
                }
                seen
            })
        };
        let threads: Vec<_> = (0..3).map(take).collect();
        threads
            .into_iter()
            .map(|thread| thread.join().unwrap())
            .collect()
    });
    for seen in &seen {
        for thread in 0..3 {
            assert!(seen.iter().filter(|value| value.0 == thread).is_sorted());
        }
    }
    let mut all = seen.concat();
    all.sort_unstable();
    assert!(
        all.into_iter()
            .eq((0..3).flat_map(|thread| (0..each).map(move |n| (thread, n))))
    );
    assert!(queue.is_empty());
}

#[test]
fn values_may_borrow() {
    let text = String::from("a b c");
    let queue: TwoLockQueue<&str> = text.split(' ').collect();
    assert_eq!(queue.pop(), Some("a"));
}
