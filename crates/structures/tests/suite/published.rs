//! Published values: loads without requests, updates by a trustee.

use crate::support::{block_on, dedicated, flat, on_both, panic_of};
use corelay_delegate::{AsyncError, barrier};
use corelay_history::model::counter::Operation::{FetchAdd, Read};
use corelay_history::model::counter::{Counter, Operation, Output};
use corelay_history::{History, Recorder, check};
use corelay_structures::published::{Published, Snapshot};
use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::Barrier;
use std::sync::atomic::{AtomicI64, Ordering};
use std::thread;

type Notes = Recorder<Operation, Output>;

fn add(by: i64) -> impl FnOnce(&mut i64) -> Output + Send + 'static {
    move |count| {
        *count += by;
        Output::Value(*count - by)
    }
}

/// A thread's calls, in each form.
fn calls(count: &Published<i64>, calls: usize) -> Notes {
    let notes = Rc::new(RefCell::new(Notes::new()));
    for n in 0..calls {
        let by = n as i64 % 5 + 1;
        let begin = |operation| notes.borrow_mut().invoke(operation);
        let end = |invocation, output| notes.borrow_mut().respond(invocation, output);
        match n % 5 {
            0 => {
                let invocation = begin(FetchAdd(by));
                end(invocation, count.update(add(by)));
            }
            1 => {
                let invocation = begin(FetchAdd(by));
                let output = block_on(count.update_async(add(by)));
                end(invocation, output.expect("nothing panics"));
            }
            2 => {
                let (invocation, later) = (begin(FetchAdd(by)), Rc::clone(&notes));
                count.update_then(add(by), move |output| {
                    later.borrow_mut().respond(invocation, output);
                });
            }
            _ => {
                let invocation = begin(Read);
                end(invocation, Output::Value(*count.load()));
            }
        }
    }
    barrier().expect("nothing panics");
    let notes = Rc::into_inner(notes).expect("no callback is left");
    notes.into_inner()
}

#[test]
fn loads_and_updates_are_linearizable() {
    let trustees = dedicated(1);
    let count = Published::new(&trustees, 0);
    let all = Barrier::new(3);
    let history: History<_, _> = thread::scope(|s| {
        let threads: Vec<_> = (0..3)
            .map(|_| {
                s.spawn(|| {
                    all.wait();
                    calls(&count, 150 * crate::stress())
                })
            })
            .collect();
        threads
            .into_iter()
            .map(|thread| thread.join().expect("no panic"))
            .collect()
    });
    check(&Counter::new(0), &history).unwrap();
}

#[test]
fn members_of_a_team_update_what_one_of_them_owns() {
    let team = flat(2);
    let count = Published::new(&team, 0);
    let notes = team.run(|_| calls(&count, 100));
    let history: History<_, _> = notes.into_iter().collect();
    check(&Counter::new(0), &history).unwrap();
}

#[test]
fn a_snapshot_stays_as_it_was() {
    on_both(|trustees| {
        let names = Published::new(trustees, vec!["a"]);
        let (before, kept) = (names.load(), Snapshot::into_arc(names.load()));
        names.store(vec!["b"]);
        assert_eq!(
            names.update(|names| {
                names.push("c");
                names.len()
            }),
            2
        );
        assert_eq!((&*before, &*kept), (&vec!["a"], &vec!["a"]));
        assert_eq!(*names.clone().load(), ["b", "c"]);
        assert_eq!(format!("{names:?}"), r#"Published(["b", "c"])"#);
    });
}

/// Counts its clones and destructors, and may panic in them.
#[derive(Debug)]
struct Fragile {
    alive: Arc<AtomicI64>,
    breaks_on: &'static str,
}

impl Fragile {
    fn new(alive: &Arc<AtomicI64>, breaks_on: &'static str) -> Self {
        alive.fetch_add(1, Ordering::Relaxed);
        let alive = Arc::clone(alive);
        Self { alive, breaks_on }
    }
}

impl Clone for Fragile {
    fn clone(&self) -> Self {
        assert!(self.breaks_on != "clone", "it breaks in clone");
        Self::new(&self.alive, self.breaks_on)
    }
}

impl Drop for Fragile {
    fn drop(&mut self) {
        self.alive.fetch_sub(1, Ordering::Relaxed);
        assert!(
            self.breaks_on != "drop" || thread::panicking(),
            "it breaks in drop"
        );
    }
}

#[test]
fn a_panic_leaves_the_value_as_it_was() {
    on_both(|trustees| {
        let alive = Arc::new(AtomicI64::new(0));
        let value = Published::new(trustees, Fragile::new(&alive, "nothing"));
        let text = panic_of(|| {
            value.update(|value| {
                value.breaks_on = "drop";
                panic!("it breaks in f")
            })
        });
        assert_eq!(
            (&*text, value.load().breaks_on),
            ("it breaks in f", "nothing")
        );
        let failed = block_on(value.update_async(|_| panic!("it breaks in f")));
        assert!(matches!(failed, Err(AsyncError::Panicked(_))));
        let text = panic_of(|| {
            // A member runs its own request at once.
            value.update_then(|_| panic!("it breaks in f"), |()| unreachable!());
            barrier().unwrap();
        });
        assert!(text.contains("it breaks in f"), "{text}");

        value.store(Fragile::new(&alive, "clone"));
        assert_eq!(panic_of(|| value.update(|_| ())), "it breaks in clone");
        value.store(Fragile::new(&alive, "drop"));
        let text = panic_of(|| value.store(Fragile::new(&alive, "nothing")));
        assert_eq!(
            (&*text, value.load().breaks_on),
            ("it breaks in drop", "nothing")
        );
        value.update(|value| value.breaks_on = "nothing");
        assert_eq!(alive.load(Ordering::Relaxed), 1);
    });
}

#[test]
fn loads_work_where_updates_are_refused() {
    let trustees = dedicated(1);
    let (count, other) = (Published::new(&trustees, 1), trustees.entrust(2));
    let inside = count.clone();
    let text = panic_of(|| other.apply(|_| inside.update(|_| ())));
    assert!(text.contains("a delegated closure is a leaf"), "{text}");
    let (inside, other) = (count.clone(), trustees.entrust(2));
    assert_eq!(other.apply(move |other| *other + *inside.load()), 3);
    trustees.shutdown();
    let text = panic_of(|| count.update(|count| *count += 1));
    assert!(text.contains("shut down"), "{text}");
    let late = block_on(count.update_async(|count| *count += 1));
    assert!(matches!(late, Err(AsyncError::Closed)));
    assert_eq!(*count.load(), 1);
}
