//! The lock-based structures under shuttle: random schedules of more threads than loom can afford.

use crate::fine_sets::{Set, for_each_set};
use crate::schedules;
use corelay_structures::fine::TwoLockQueue;
use shuttle::rand::{Rng, thread_rng};
use shuttle::sync::Arc;
use shuttle::thread;

const SCHEDULES: usize = 500;

for_each_set!({ threads_leave_what_they_say: u64 });

/// For each key, the calls that say that they added it, less those that say that they removed it,
/// are one if it is there at the end, and else none.
fn threads_leave_what_they_say<S: Set<u64>>() {
    schedules::model(SCHEDULES, || {
        let set = Arc::new(S::make());
        let threads: Vec<_> = (0..4)
            .map(|_| {
                let set = Arc::clone(&set);
                thread::spawn(move || {
                    let mut kept = [0; 4];
                    for _ in 0..8 {
                        let key = thread_rng().gen_range(0..4);
                        match thread_rng().gen_range(0..3) {
                            0 => kept[key] += i32::from(set.add(key as u64)),
                            1 => kept[key] -= i32::from(set.take(&(key as u64))),
                            _ => drop(set.has(&(key as u64))),
                        }
                    }
                    kept
                })
            })
            .collect();
        let threads = threads.into_iter().map(|thread| thread.join().unwrap());
        let kept = threads.fold([0; 4], |all, kept| {
            [0, 1, 2, 3].map(|key| all[key] + kept[key])
        });
        let keys = set.keys();
        for (key, kept) in (0..).zip(kept) {
            assert_eq!(kept, i32::from(keys.contains(&key)), "{key}: {keys:?}");
        }
    });
}

#[test]
fn values_come_out_once_and_in_order() {
    schedules::model(SCHEDULES, || {
        let queue = Arc::new(TwoLockQueue::new());
        let threads: Vec<_> = (0..5)
            .map(|thread| {
                let queue = Arc::clone(&queue);
                thread::spawn(move || {
                    let push = |n| queue.push((thread, n));
                    match thread {
                        0..3 => {
                            (0..4).for_each(push);
                            Vec::new()
                        }
                        _ => [(); 6]
                            .map(|()| queue.pop())
                            .into_iter()
                            .flatten()
                            .collect(),
                    }
                })
            })
            .collect();
        let mut seen = Vec::new();
        for thread in threads {
            let theirs = thread.join().unwrap();
            for other in 0..3 {
                assert!(theirs.iter().filter(|value| value.0 == other).is_sorted());
            }
            seen.extend(theirs);
        }
        seen.extend(std::iter::from_fn(|| queue.pop()));
        seen.sort_unstable();
        assert!(
            seen.into_iter()
                .eq((0..3).flat_map(|thread| (0..4).map(move |n| (thread, n))))
        );
    });
}
