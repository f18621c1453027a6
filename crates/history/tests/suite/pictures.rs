//! The text and picture that are printed for a failure.

use crate::support::{history, refuted};
use corelay_history::model::queue::{self, Operation::*, Output::*};
use corelay_history::model::{map, register};
use corelay_history::{Call, check};

#[test]
fn a_queue_that_overtakes() {
    let wrong = history([
        (0, Enqueue(1), 0..=3, Enqueued),
        (2, Enqueue(2), 4..=6, Enqueued),
        (1, Dequeue, 5..=8, Dequeued(Some(2))),
        (0, Enqueue(7), 5..=9, Enqueued),
    ]);
    let error = check(&queue::Queue::new(), &wrong).unwrap_err();
    assert_eq!(
        error.to_string(),
        "not linearizable: nothing explains `dequeue -> 2` (call 1 of thread 1)\n\
         \n\
         thread 0  |- enqueue 1 -|\n\
         thread 1                  |- dequeue -> 2 -|  <- not explained\n\
         \n\
         The state was [] at first.\n\
         2 other calls are left out; whether `enqueue 2`, `enqueue 7` took effect makes no difference.\n"
    );
    // What `unwrap` prints.
    assert_eq!(format!("{error:?}"), error.to_string());
}

#[test]
fn a_key_of_a_map() {
    use map::Operation::*;
    let mut wrong = history([
        (0, Insert("a", 1), 0..=1, None),
        (0, Insert("b", 1), 2..=3, None),
        (1, Remove("b"), 2..=9, Some(1)),
        (0, Get("b"), 4..=5, None),
        (0, Get("b"), 6..=7, Some(1)),
    ]);
    wrong.push(1, Call::pending(Get("b"), 12));
    assert_eq!(
        refuted(&map::Map::new(), &wrong).to_string(),
        "not linearizable: nothing explains `get \"b\" -> 1` (call 4 of thread 0; key \"b\")\n\
         \n\
         thread 0  |- insert \"b\" 1 -> none -| |- get \"b\" -> none -| |- get \"b\" -> 1 -|  \
         <- not explained\n\
         \n\
         The state was None at first.\n\
         2 other calls of this key are left out; whether `remove \"b\"` took effect makes no difference.\n"
    );
}

/// If many calls precede, the picture begins in the middle of the history.
#[test]
fn a_late_mistake() {
    use register::{Operation::*, Output::*};
    let mut wrong = history([]);
    for n in 0..100 {
        wrong.push(
            0,
            Call::returned(Write(n % 2), 10 * n..=10 * n + 5, Written),
        );
        wrong.push(
            1,
            Call::returned(Read, 10 * n + 6..=10 * n + 8, Value(n % 2)),
        );
    }
    wrong.push(0, Call::returned(Write(0), 1_000..=1_010, Written));
    wrong.push(2, Call::returned(Read, 1_011..=1_012, Value(1)));
    assert_eq!(
        refuted(&register::Register::new(0), &wrong).to_string(),
        "not linearizable: nothing explains `read -> 1` (call 1 of thread 2)\n\
         \n\
         thread 0  |- write 0 -|\n\
         thread 2                |- read -> 1 -|  <- not explained\n\
         \n\
         The state before these calls: one of 0, 1. None leads to an explanation.\n\
         200 other calls are left out.\n"
    );
}
