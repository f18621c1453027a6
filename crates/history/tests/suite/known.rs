//! Histories from the literature, and the classic mistakes.

use crate::support::{brute_force, history, refuted};
use corelay_history::model::queue::Operation::{Dequeue, Enqueue};
use corelay_history::model::queue::Output::{Dequeued, Enqueued};
use corelay_history::model::{counter, heap, lru, map, queue, register, set, stack};
use corelay_history::{Call, History, check};

const A: usize = 0;
const B: usize = 1;
const C: usize = 2;

type QueueHistory = History<queue::Operation<char>, queue::Output<char>>;

fn queue() -> queue::Queue<char> {
    queue::Queue::new()
}

/// Herlihy and Wing, "Linearizability: a correctness condition for concurrent objects"
/// (1990), section 2: the histories H1 to H4 of a queue.
mod herlihy_and_wing {
    use super::*;

    #[test]
    fn h1_overlapping_enqueues_come_out_in_either_order() {
        // E(x)A E(y)B Ok()B Ok()A D()B Ok(x)B D()A Ok(y)A E(z)A
        for [first, second] in [['x', 'y'], ['y', 'x']] {
            let mut h1: QueueHistory = history([
                (A, Enqueue('x'), 0..=3, Enqueued),
                (B, Enqueue('y'), 1..=2, Enqueued),
                (B, Dequeue, 4..=5, Dequeued(Some(first))),
                (A, Dequeue, 6..=7, Dequeued(Some(second))),
            ]);
            h1.push(A, Call::pending(Enqueue('z'), 8));
            check(&queue(), &h1).unwrap();
        }
    }

    #[test]
    fn h2_the_second_overtakes_the_first() {
        // E(x)A Ok()A E(y)B D()A Ok()B Ok(y)A
        let h2: QueueHistory = history([
            (A, Enqueue('x'), 0..=1, Enqueued),
            (B, Enqueue('y'), 2..=4, Enqueued),
            (A, Dequeue, 3..=5, Dequeued(Some('y'))),
        ]);
        let found = refuted(&queue(), &h2);
        assert_eq!(found.unexplained().1.operation(), &Dequeue);
    }

    #[test]
    fn h3_a_pending_enqueue_has_taken_effect() {
        // E(x)A D()B Ok(x)B
        let mut h3: QueueHistory = history([(B, Dequeue, 1..=2, Dequeued(Some('x')))]);
        assert!(check(&queue(), &h3).is_err());
        h3.push(A, Call::pending(Enqueue('x'), 0));
        check(&queue(), &h3).unwrap();
    }

    #[test]
    fn h4_one_value_is_dequeued_twice() {
        // E(x)A E(y)B Ok()A Ok()B D()A D()C Ok(y)A Ok(y)C
        let h4: QueueHistory = history([
            (A, Enqueue('x'), 0..=2, Enqueued),
            (B, Enqueue('y'), 1..=3, Enqueued),
            (A, Dequeue, 4..=6, Dequeued(Some('y'))),
            (C, Dequeue, 5..=7, Dequeued(Some('y'))),
        ]);
        let found = refuted(&queue(), &h4);
        // y went in once: no other value matters.
        assert!(
            !found
                .calls()
                .any(|(_, call)| call.operation() == &Enqueue('x'))
        );
    }
}

#[test]
fn a_stale_read() {
    use register::{Operation::*, Output::*};
    let register = register::Register::new(0);
    let read_of = |value, when| {
        history([
            (A, Write(1), 0..=1, Written),
            (A, Write(2), 2..=9, Written),
            (B, Read, 3..=4, Value(2)),
            (C, Read, when, Value(value)),
        ])
    };
    // The write of 2 is still pending, but another thread has read it.
    check(&register, &read_of(2, 5..=6)).unwrap();
    check(&register, &read_of(1, 4..=6)).unwrap();
    refuted(&register, &read_of(1, 5..=6));
    refuted(&register, &read_of(0, 2..=6));
}

#[test]
fn two_readers_see_two_writes_in_different_orders() {
    use register::{Operation::*, Output::*};
    let wrong = history([
        (0, Write(1), 0..=9, Written),
        (1, Write(2), 0..=9, Written),
        (2, Read, 1..=2, Value(1)),
        (2, Read, 3..=4, Value(2)),
        (3, Read, 1..=2, Value(2)),
        (3, Read, 3..=4, Value(1)),
    ]);
    refuted(&register::Register::new(0), &wrong);
}

#[test]
fn two_threads_win_one_compare_exchange() {
    use register::{Operation::*, Output::*};
    let take = |by| CompareExchange {
        current: 0,
        new: by,
    };
    let race = |both| {
        history([
            (A, take(1), 0..=3, Exchanged(true)),
            (B, take(2), 1..=4, Exchanged(both)),
        ])
    };
    check(&register::Register::new(0), &race(false)).unwrap();
    refuted(&register::Register::new(0), &race(true));
}

#[test]
fn a_lost_update() {
    use counter::{Operation::*, Output::*};
    let counter = counter::Counter::new(0);
    let wrong = history([
        (A, FetchAdd(1), 0..=2, Value(0)),
        (B, FetchAdd(1), 1..=3, Value(0)),
    ]);
    refuted(&counter, &wrong);
    // Only a later read sees it.
    let later = |count: i64| {
        history([
            (A, Add(1), 0..=2, Added),
            (B, Add(1), 1..=3, Added),
            (C, AddFetch(1), 4..=5, Value(count + 1)),
            (C, Read, 6..=7, Value(count + 1)),
        ])
    };
    check(&counter, &later(2)).unwrap();
    refuted(&counter, &later(1));
}

#[test]
fn a_value_that_is_dequeued_twice_or_never_went_in() {
    let take = |first, second| -> QueueHistory {
        history([
            (A, Enqueue('x'), 0..=1, Enqueued),
            (A, Dequeue, 2..=4, Dequeued(first)),
            (B, Dequeue, 3..=5, Dequeued(second)),
        ])
    };
    check(&queue(), &take(Some('x'), None)).unwrap();
    check(&queue(), &take(None, Some('x'))).unwrap();
    refuted(&queue(), &take(Some('x'), Some('x')));
    refuted(&queue(), &take(Some('x'), Some('y')));
    refuted(&queue(), &take(None, None));
}

/// A pop reads the top `a` and below it `b`; meanwhile another thread pops both and pushes
/// `a` again; the first finds its `a` on top still, and makes `b` the top.
#[test]
fn the_stack_of_the_aba_problem() {
    use stack::{Operation::*, Output::*};
    let then = |top| {
        history([
            (A, Push('b'), 0..=1, Pushed),
            (A, Push('a'), 2..=3, Pushed),
            (A, Pop, 4..=11, Popped(Some('a'))),
            (B, Pop, 5..=6, Popped(Some('a'))),
            (B, Pop, 7..=8, Popped(Some('b'))),
            (B, Push('a'), 9..=10, Pushed),
            (B, Pop, 12..=13, Popped(top)),
        ])
    };
    check(&stack::Stack::new(), &then(None)).unwrap();
    let found = refuted(&stack::Stack::new(), &then(Some('b')));
    assert_eq!(found.unexplained().1.output(), Some(&Popped(Some('b'))));
}

#[test]
fn two_threads_insert_one_key_into_a_set() {
    use set::Operation::*;
    let set = set::Set::new();
    let race = |second, then| {
        history([
            (A, Insert(7), 0..=3, true),
            (B, Insert(7), 1..=4, second),
            (C, Contains(7), 5..=6, true),
            (B, Remove(7), 5..=8, true),
            (A, Remove(7), 6..=9, then),
            (C, Contains(7), 10..=11, false),
        ])
    };
    check(&set, &race(false, false)).unwrap();
    refuted(&set, &race(true, false));
    refuted(&set, &race(false, true));
    let picture = refuted(&set, &race(true, false)).to_string();
    assert!(picture.contains("`insert 7 -> true`"), "{picture}");
}

/// A traversal that was on a removed node when its successor was inserted before it misses a key
/// that was there all the time.
#[test]
fn a_set_that_loses_sight_of_a_key() {
    use set::Operation::*;
    let seen = |found| {
        history([
            (A, Insert(2), 0..=1, true),
            (B, Insert(1), 2..=5, true),
            (C, Contains(2), 3..=6, found),
        ])
    };
    check(&set::Set::new(), &seen(true)).unwrap();
    refuted(&set::Set::new(), &seen(false));
}

#[test]
fn a_heap_whose_greatest_value_waits() {
    use heap::{Operation::*, Output::*};
    let heap = heap::Heap::new();
    let pops = |[first, second]: [Option<u32>; 2], pushed| {
        history([
            (A, Push(5), 0..=1, Pushed),
            (A, Push(9), 2..=pushed, Pushed),
            (B, Pop, 4..=6, Value(first)),
            (B, Pop, 7..=8, Value(second)),
        ])
    };
    check(&heap, &pops([Some(9), Some(5)], 3)).unwrap();
    refuted(&heap, &pops([Some(5), Some(9)], 3));
    // The greater value comes while the first pop lasts.
    check(&heap, &pops([Some(5), Some(9)], 5)).unwrap();
    refuted(&heap, &pops([Some(5), Some(5)], 5));
    refuted(&heap, &pops([Some(5), None], 5));
    check(&heap, &pops([Some(5), None], 9)).unwrap();
}

#[test]
fn a_heap_holds_equal_values_and_peeking_leaves_them() {
    use heap::{Operation::*, Output::*};
    let peeks = |last| {
        history([
            (A, Push(3), 0..=2, Pushed),
            (B, Push(3), 1..=3, Pushed),
            (A, Peek, 4..=5, Value(Some(3))),
            (A, Pop, 6..=7, Value(Some(3))),
            (B, Pop, 6..=8, Value(Some(3))),
            (A, Peek, 9..=10, Value(last)),
        ])
    };
    check(&heap::Heap::new(), &peeks(None)).unwrap();
    let found = refuted(&heap::Heap::new(), &peeks(Some(3)));
    assert!(found.to_string().contains("`peek -> 3`"), "{found}");
}

#[test]
fn an_lru_map_evicts_what_was_used_least_recently() {
    use lru::{Operation::*, Output::*};
    let lru = lru::Lru::new(std::num::NonZeroUsize::new(2).unwrap());
    let evicts = |use_of_a, out| {
        history([
            (A, Insert('a', 1), 0..=1, Value(None)),
            (A, Insert('b', 2), 2..=3, Value(None)),
            (B, use_of_a, 4..=6, Value(Some(1))),
            (A, Push('c', 3), 5..=7, Entry(Some(out))),
        ])
    };
    // The get found `a`, so it came before the push, and `b` goes.
    check(&lru, &evicts(Get('a'), ('b', 2))).unwrap();
    refuted(&lru, &evicts(Get('a'), ('a', 1)));
    check(&lru, &evicts(Peek('a'), ('a', 1))).unwrap();
    refuted(&lru, &evicts(Peek('a'), ('b', 2)));
    let found = refuted(&lru, &evicts(Get('a'), ('c', 3)));
    assert!(found.to_string().contains("push 'c' 3 -> 'c' 3"), "{found}");
}

#[test]
fn an_lru_map_that_grows_beyond_its_capacity() {
    use lru::{Operation::*, Output::*};
    let lru = lru::Lru::new(std::num::NonZeroUsize::new(1).unwrap());
    let then = |rest: [_; 2]| {
        history([
            (A, Push('a', 1), 0..=3, Entry(None)),
            (B, Push('b', 2), 1..=4, Entry(Some(('a', 1)))),
            (A, Push('b', 3), 5..=6, Entry(Some(('b', 2)))),
            (A, Insert('b', 4), 7..=8, Value(Some(3))),
            (A, PopLru, 9..=10, Entry(rest[0])),
            (B, PopLru, 11..=12, Entry(rest[1])),
            (B, Remove('a'), 13..=14, Value(None)),
        ])
    };
    check(&lru, &then([Some(('b', 4)), None])).unwrap();
    refuted(&lru, &then([Some(('a', 1)), None]));
    refuted(&lru, &then([Some(('b', 4)), Some(('a', 1))]));
    refuted(&lru, &then([None, None]));
}

#[test]
fn keys_are_checked_by_themselves() {
    use map::Operation::*;
    let mut history = history([
        (A, Insert("x", 1), 0..=1, None),
        (A, Insert("y", 1), 2..=3, None),
        (B, Get("x"), 2..=3, Some(1)),
        (B, Remove("y"), 4..=5, Some(1)),
        (C, Get("y"), 6..=7, None),
    ]);
    check(&map::Map::new(), &history).unwrap();
    // Wrong for both keys; what went wrong first is told, of its key alone.
    history.push(C, Call::returned(Get("x"), 8..=9, None));
    history.push(A, Call::returned(Get("y"), 10..=11, Some(7)));
    let found = refuted(&map::Map::new(), &history);
    assert_eq!(
        found.unexplained(),
        (C, &Call::returned(Get("x"), 8..=9, None))
    );
    let keys = found.calls().map(|(_, call)| call.operation());
    assert!(
        keys.into_iter()
            .all(|o| matches!(o, Insert("x", _) | Get("x") | Remove("x")))
    );
    assert!(found.to_string().contains("key \"x\""), "{found}");
}

/// 200 threads on 200 keys at once: in one piece that would be more than the search takes.
#[test]
fn partition_makes_the_impossible_possible() {
    use map::Operation::*;
    let mut wide = History::new();
    for key in 0..200 {
        wide.push(key, Call::returned(Insert(key, key), 0..=9, None));
        wide.push(key, Call::returned(Get(key), 10..=19, Some(key)));
    }
    check(&map::Map::new(), &wide).unwrap();
}

#[test]
fn equal_stamps_overlap_between_threads_and_are_order_within_one() {
    use register::{Operation::*, Output::*};
    let read = |thread| {
        history([
            (A, Write(1), 3..=3, Written),
            (thread, Read, 3..=3, Value(0)),
        ])
    };
    check(&register::Register::new(0), &read(B)).unwrap();
    refuted(&register::Register::new(0), &read(A));
}

/// Each key is right by itself, and one order explains the whole: in it B's insertion of 0
/// follows that of 1, which is invoked at the very stamp at which the first returns.
#[test]
fn equal_stamps_within_a_thread_are_no_order_between_keys() {
    use map::Operation::*;
    let going_on = |[b_ended, b_next]: [u64; 2], [c_ended, c_next]: [u64; 2]| {
        history([
            (A, Remove(1), 0..=30, Some(1)),
            (B, Insert(0, 1), 0..=b_ended, None),
            (B, Insert(1, 1), b_next..=40, Some(1)),
            (C, Insert(1, 1), 0..=10, None),
            (C, Get(1), 11..=c_ended, None),
            (C, Get(0), c_next..=50, None),
        ])
    };
    let map = map::Map::new();
    let tied = going_on([20, 20], [20, 20]);
    check(&map, &tied).unwrap();
    assert!(brute_force(&map, &tied));
    // Pulled apart, whichever thread goes on first.
    for (b, c) in [
        ([20, 21], [20, 21]),
        ([18, 19], [20, 21]),
        ([20, 21], [18, 19]),
    ] {
        let apart = going_on(b, c);
        assert!(!brute_force(&map, &apart));
        refuted(&map, &apart);
    }
    // What gives way is the order of different keys only.
    let one_key = history([(B, Insert(0, 1), 0..=20, None), (B, Get(0), 20..=40, None)]);
    refuted(&map, &one_key);
}
