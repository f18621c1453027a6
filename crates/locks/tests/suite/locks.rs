//! The test bodies, each for all locks.

use crate::common::{
    Lock, for_all_locks, for_combining_locks, for_waiting_locks, tests_of, where_nothing_may_wait,
};
use corelay_sync::{Session, Shared};
use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Barrier};
use std::thread;

for_all_locks!({
    every_increment_counts: u64,
    more_threads_than_cpus: u64,
    results_and_borrows: Vec<String>,
    panic_releases: Vec<u32>,
    panic_lets_waiters_in: u64,
    drops_once: Counted,
    many_locks_in_one_thread: [u64; 7],
    nests_on_different_locks: u64,
    value_without_size: (),
    value_of_wide_alignment: Wide,
    works_in_late_destructors: u64,
    waiters_are_served_across_rounds: (usize, u64),
    a_wait_is_refused_where_nothing_may_wait: u64,
    a_refused_wait_leaves_the_queue_as_it_was: u64,
});

fn add<L: Lock<u64>>(threads: usize, times: usize) {
    add_to(L::make(0), threads, times);
}

/// Each of `threads` threads adds one `times` times; every answer is given once.
pub(crate) fn add_to<L: Lock<u64>>(lock: L, threads: usize, times: usize) {
    let start = Barrier::new(threads);
    let mut seen: Vec<u64> = thread::scope(|s| {
        let work = || {
            let mut session = lock.session();
            start.wait();
            let add = |n: &mut u64| {
                *n += 1;
                *n
            };
            (0..times).map(|_| session.apply(add)).collect::<Vec<_>>()
        };
        let threads: Vec<_> = (0..threads).map(|_| s.spawn(work)).collect();
        threads
            .into_iter()
            .flat_map(|t| {
                let seen = t.join().unwrap();
                assert!(
                    seen.is_sorted(),
                    "a thread sees its own operations in order"
                );
                seen
            })
            .collect()
    });
    seen.sort_unstable();
    let total = (threads * times) as u64;
    assert!(seen.into_iter().eq(1..=total));
    assert_eq!(lock.unmake(), total);
}

fn every_increment_counts<L: Lock<u64>>() {
    add::<L>(2, 50_000);
    add::<L>(3, 5_000);
}

fn more_threads_than_cpus<L: Lock<u64>>() {
    let cpus = thread::available_parallelism().map_or(1, usize::from);
    add::<L>(cpus + 4, 100);
}

fn results_and_borrows<L: Lock<Vec<String>>>() {
    let mut lock = L::make(vec![String::from("a")]);
    let suffix = String::from("b");
    let mut copies = Vec::new();
    let longest = lock.session().apply(|v| {
        v.push(v[0].clone() + &suffix);
        copies.extend(v.iter().cloned());
        v.iter().max_by_key(|s| s.len()).cloned()
    });
    assert_eq!(longest.as_deref(), Some("ab"));
    assert_eq!(copies, ["a", "ab"]);
    lock.value_mut().push(suffix);
    assert_eq!(lock.unmake(), ["a", "ab", "b"]);
}

fn panic_releases<L: Lock<Vec<u32>>>() {
    let lock = L::make(vec![]);
    let mut session = lock.session();
    let caught = catch_unwind(AssertUnwindSafe(|| {
        session.apply(|v| {
            v.push(1);
            if v.len() == 1 {
                std::panic::panic_any("half way");
            }
        });
    }));
    assert_eq!(caught.unwrap_err().downcast_ref(), Some(&"half way"));
    // Not poisoned: the value is as the panic left it, for this session and for others.
    session.apply(|v| v.push(2));
    drop(session);
    thread::scope(|s| {
        s.spawn(|| lock.session().apply(|v| v.push(3)));
    });
    assert_eq!(lock.unmake(), [1, 2, 3]);
}

/// Every third closure panics while others wait for the lock that it holds.
fn panic_lets_waiters_in<L: Lock<u64>>() {
    const TIMES: u64 = 300;
    let lock = L::make(0);
    let panics = AtomicUsize::new(0);
    thread::scope(|s| {
        for _ in 0..3 {
            s.spawn(|| {
                let mut session = lock.session();
                for turn in 0..TIMES {
                    let result = catch_unwind(AssertUnwindSafe(|| {
                        session.apply(|n| {
                            *n += 1;
                            if turn % 3 == 0 {
                                // It unwinds without the panic hook, so nothing is printed.
                                std::panic::resume_unwind(Box::new(()));
                            }
                        });
                    }));
                    panics.fetch_add(result.is_err().into(), Ordering::Relaxed);
                }
            });
        }
    });
    assert_eq!(panics.into_inner(), 300);
    assert_eq!(lock.unmake(), 3 * TIMES);
}

/// A value that counts its drops.
struct Counted(Arc<AtomicUsize>);

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

fn drops_once<L: Lock<Counted>>() {
    let drops = Arc::new(AtomicUsize::new(0));
    let dropped = || drops.load(Ordering::Relaxed);
    let counted = || Counted(drops.clone());

    drop(L::make(counted()));
    assert_eq!(dropped(), 1, "with its lock");

    let lock = L::make(counted());
    lock.session().apply(|c| *c = counted());
    assert_eq!(dropped(), 2, "replaced in a closure");

    let capture = counted();
    let result = lock.session().apply(|_| capture);
    assert_eq!(dropped(), 2, "moved through a closure");
    drop(result);
    assert_eq!(dropped(), 3);

    let capture = counted();
    let unwound = catch_unwind(AssertUnwindSafe(|| {
        lock.session().apply(|_| {
            let _inside = capture;
            std::panic::resume_unwind(Box::new(()));
        });
    }));
    assert!(unwound.is_err());
    assert_eq!(dropped(), 4, "captured by a closure that panics");

    let value = lock.unmake();
    assert_eq!(dropped(), 4, "taken out");
    drop(value);
    assert_eq!(dropped(), 5);
}

fn many_locks_in_one_thread<L: Lock<[u64; 7]>>() {
    let locks: Vec<L> = (0..1_000).map(|_| L::make([0; 7])).collect();
    thread::scope(|s| {
        for stride in [1, 7, 333] {
            let locks = &locks;
            s.spawn(move || {
                // A session for each visit, as a thread with random access would have.
                for i in 0..10 * locks.len() {
                    locks[i * stride % locks.len()]
                        .session()
                        .apply(|a| a[6] += 1);
                }
                // All of them are open at once, too.
                let mut sessions: Vec<_> = locks.iter().map(Shared::session).collect();
                for session in &mut sessions {
                    session.apply(|a| a[0] += 1);
                }
            });
        }
    });
    let sums = locks
        .into_iter()
        .map(L::unmake)
        .fold([0; 7], |mut sums, a| {
            sums.iter_mut().zip(a).for_each(|(sum, n)| *sum += n);
            sums
        });
    assert_eq!(sums, [3_000, 0, 0, 0, 0, 0, 30_000]);
}

fn nests_on_different_locks<L: Lock<u64>>() {
    fn descend<L: Lock<u64>>(locks: &[L]) {
        if let Some((first, rest)) = locks.split_first() {
            first.session().apply(|n| {
                descend(rest);
                *n += 1;
            });
        }
    }
    // Deeper than any store of nodes that a thread has.
    let locks: Vec<L> = (0..100).map(|_| L::make(0)).collect();
    thread::scope(|s| {
        for _ in 0..3 {
            s.spawn(|| (0..20).for_each(|_| descend(&locks)));
        }
    });
    assert!(locks.into_iter().all(|lock| lock.unmake() == 60));
}

fn value_without_size<L: Lock<()>>() {
    let lock = L::make(());
    assert_eq!(lock.session().apply(|()| 7), 7);
}

#[repr(align(4096))]
struct Wide(u8);

fn value_of_wide_alignment<L: Lock<Wide>>() {
    let lock = L::make(Wide(1));
    let offset = lock.session().apply(|wide| {
        wide.0 += 1;
        std::ptr::from_mut(wide).addr() % 4096
    });
    assert_eq!(offset, 0);
    assert_eq!(lock.unmake().0, 2);
}

/// Locks are taken in destructors of thread-locals that were made before and after the thread's
/// first lock, whatever order they run in.
fn works_in_late_destructors<L: Lock<u64> + 'static>() {
    struct AtExit(Box<dyn FnMut()>);
    impl Drop for AtExit {
        fn drop(&mut self) {
            (self.0)();
        }
    }
    thread_local! {
        static EARLY: RefCell<Option<AtExit>> = const { RefCell::new(None) };
        static LATE: RefCell<Option<AtExit>> = const { RefCell::new(None) };
    }
    let locks = Arc::new([L::make(0), L::make(0)]);
    let visit = {
        let locks = Arc::clone(&locks);
        move || {
            let [outer, inner] = &*locks;
            for _ in 0..10 {
                outer.session().apply(|n| {
                    inner.session().apply(|n| *n += 1);
                    *n += 1;
                });
            }
        }
    };
    let threads: Vec<_> = (0..2)
        .map(|_| {
            let visit = visit.clone();
            thread::spawn(move || {
                EARLY.set(Some(AtExit(Box::new(visit.clone()))));
                visit();
                LATE.set(Some(AtExit(Box::new(visit))));
            })
        })
        .collect();
    threads.into_iter().for_each(|t| t.join().unwrap());
    drop(visit);
    let [outer, inner] = Arc::into_inner(locks).expect("all visitors are gone");
    assert_eq!((outer.unmake(), inner.unmake()), (60, 60));
}

/// Threads come and go while the lock stays: a round's last holder leaves it free, and nothing of
/// the threads that are gone is used any more.
fn waiters_are_served_across_rounds<L: Lock<(usize, u64)>>() {
    let lock = L::make((0, 0));
    for round in 1..=100 {
        thread::scope(|s| {
            for _ in 0..3 {
                s.spawn(|| {
                    lock.session().apply(|(inside, total)| {
                        *inside += 1;
                        *total += 1;
                        assert_eq!(*inside, 1, "two threads inside");
                        thread::yield_now();
                        *inside -= 1;
                    });
                });
            }
        });
        assert_eq!(lock.session().apply(|(_, total)| *total), 3 * round);
    }
}

/// The text of the panic with which `apply` on a taken lock is refused, and the call's line.
fn refusal<L: Lock<u64>>(lock: &L) -> (String, u32) {
    let mut session = lock.session();
    let mut line = 0;
    let refused = catch_unwind(AssertUnwindSafe(|| {
        where_nothing_may_wait(|| {
            line = line!() + 1;
            session.apply(|n| *n += 1_000);
        });
    }));
    (*refused.unwrap_err().downcast().unwrap(), line)
}

fn a_wait_is_refused_where_nothing_may_wait<L: Lock<u64>>() {
    let lock = L::make(0);
    // A free lock is no wait.
    where_nothing_may_wait(|| lock.session().apply(|n| *n += 1));
    let (text, line) = lock.session().apply(|n| {
        *n += 1;
        refusal(&lock)
    });
    let name = std::any::type_name::<L>().to_lowercase();
    let named = text
        .split('`')
        .nth(1)
        .is_some_and(|lock| name.contains(&lock.to_lowercase()));
    assert!(named, "{text} names {name}");
    let place = format!("{}:{line}:", file!());
    assert!(text.contains(&place), "{place} in {text}");
    assert!(
        text.ends_with("inside a test: this code may not wait"),
        "{text}"
    );
    // The lock is as it was, in this thread and in others, with and without the guard.
    where_nothing_may_wait(|| lock.session().apply(|n| *n += 1));
    thread::scope(|s| {
        s.spawn(|| lock.session().apply(|n| *n += 1));
    });
    assert_eq!(lock.unmake(), 4);
}

/// A thread that may not wait comes and goes between those that queue: they are served as if the
/// refused call had never been made.
fn a_refused_wait_leaves_the_queue_as_it_was<L: Lock<u64>>() {
    const TIMES: u64 = 500;
    let lock = L::make(0);
    let entered = thread::scope(|s| {
        for _ in 0..2 {
            s.spawn(|| {
                let mut session = lock.session();
                (0..TIMES).for_each(|_| session.apply(|n| *n += 1));
            });
        }
        let comes_and_goes = s.spawn(|| {
            let mut session = lock.session();
            let mut enter = || where_nothing_may_wait(|| session.apply(|n| *n += 1));
            let mut entered = || catch_unwind(AssertUnwindSafe(&mut enter)).is_ok();
            (0..TIMES).filter(|_| entered()).count() as u64
        });
        comes_and_goes.join().unwrap()
    });
    assert_eq!(lock.unmake(), 2 * TIMES + entered);
}
