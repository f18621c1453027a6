//! Threads that insert, unlink and look at ranges.

use super::{Bound, Rows, pin};
use corelay_sync::facade::atomic::{AtomicBool, Ordering};
use corelay_sync::facade::sync::Arc;
use corelay_sync::facade::thread;

/// A generator of numbers that are random enough.
fn random(mut state: u64) -> impl FnMut(u64) -> u64 {
    move |below| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state % below
    }
}

fn rounds() -> u64 {
    let factor = std::env::var("CORELAY_STRESS").ok();
    20_000 * factor.map_or(1, |factor| factor.parse().expect("a number"))
}

/// Keys that are multiples of 8 are always present. Every range has them all, in order and without
/// duplicates, and each lookup finds its key.
fn churn<const N: usize>(keys: u64) {
    let rows = Arc::new(Rows::<u64, N>::new());
    for key in (0..keys).step_by(8) {
        rows.insert(key, &pin());
    }
    let is_over = Arc::new(AtomicBool::new(false));
    let writer = move |rows: &Rows<u64, N>, seed| {
        let mut random = random(seed);
        for _ in 0..rounds() {
            let guard = pin();
            // A window in which most keys come and go, so that nodes are split and merged.
            let key = random(keys);
            if !key.is_multiple_of(8) {
                if random(2) == 0 {
                    rows.insert(key, &guard);
                } else {
                    rows.remove(&key, &guard);
                }
            }
            // Whole stretches go at once.
            if random(64) == 0 {
                let from = random(keys);
                let is_insert = random(2) == 0;
                for key in (from..(from + 100).min(keys)).filter(|key| key % 8 != 0) {
                    match is_insert {
                        true => rows.insert(key, &guard),
                        false => rows.remove(&key, &guard),
                    };
                }
            }
        }
    };
    let reader = move |rows: &Rows<u64, N>, is_over: &AtomicBool, seed| {
        let mut random = random(seed);
        while !is_over.load(Ordering::Relaxed) {
            let guard = pin();
            let key = random(keys) / 8 * 8;
            assert!(rows.has(&key, &guard));
            let to = (key + random(200)).min(keys - 1);
            let (mut forward, mut backward) = (Vec::new(), Vec::new());
            let mut range = rows
                .0
                .range(Bound::Included(&key), Bound::Included(&to), &guard);
            while let Some(leaf) = range.next() {
                forward.extend(leaf.records.iter().map(|row| row.0));
            }
            let mut range = rows
                .0
                .range(Bound::Included(&key), Bound::Included(&to), &guard);
            while let Some(leaf) = range.next_back() {
                backward.extend(leaf.records.iter().rev().map(|row| row.0));
            }
            backward.reverse();
            for found in [forward, backward] {
                assert!(found.is_sorted_by(|a, b| a < b), "{found:?}");
                assert!(found.iter().all(|found| (key..=to).contains(found)));
                let fixed = found.iter().filter(|key| *key % 8 == 0).copied();
                assert!(fixed.eq((key..=to).step_by(8)), "{key} {to} {found:?}");
            }
        }
    };
    let writers: Vec<_> = (1..=3)
        .map(|seed| {
            let rows = Arc::clone(&rows);
            thread::spawn(move || writer(&rows, seed * 7919))
        })
        .collect();
    let readers: Vec<_> = (1..=2)
        .map(|seed| {
            let (rows, is_over) = (Arc::clone(&rows), Arc::clone(&is_over));
            thread::spawn(move || reader(&rows, &is_over, seed * 104_729))
        })
        .collect();
    let ended: Vec<_> = writers.into_iter().map(|writer| writer.join()).collect();
    // Relaxed: it only ends the readers.
    is_over.store(true, Ordering::Relaxed);
    let readers = readers.into_iter().map(|reader| reader.join());
    ended
        .into_iter()
        .chain(readers)
        .for_each(|ended| ended.expect("no thread panics"));
    let guard = pin();
    rows.check(&guard);
    let fixed: Vec<u64> = rows
        .all(&guard)
        .into_iter()
        .filter(|key| key % 8 == 0)
        .collect();
    assert!(fixed.into_iter().eq((0..keys).step_by(8)));
}

#[test]
fn what_is_always_there_is_always_found() {
    churn::<2>(256);
    churn::<4>(1024);
    churn::<32>(4096);
}

/// Producers append, consumers take the first one: each key is taken once, in order for each
/// producer.
#[test]
fn a_queue_of_threads_hands_over_each_key_once() {
    let rows = Arc::new(Rows::<(u64, u64), 4>::new());
    let each = rounds() / 4;
    let producers: Vec<_> = (0..2)
        .map(|producer| {
            let rows = Arc::clone(&rows);
            thread::spawn(move || {
                for number in 0..each {
                    assert!(rows.insert((number, producer), &pin()));
                }
            })
        })
        .collect();
    let consume = move |rows: &Rows<(u64, u64), 4>| {
        let mut taken = Vec::new();
        while (taken.len() as u64) < each {
            let guard = pin();
            let unbounded = Bound::<&(u64, u64)>::Unbounded;
            let mut range = rows.0.range(unbounded, unbounded, &guard);
            let first =
                std::iter::from_fn(|| range.next()).find_map(|leaf| leaf.records.first().copied());
            match first {
                Some(row) if rows.remove(&row.0, &guard) => taken.push(row.0),
                Some(_) => {}
                None => thread::yield_now(),
            }
        }
        taken
    };
    let consumers: Vec<_> = (0..2)
        .map(|_| {
            let rows = Arc::clone(&rows);
            thread::spawn(move || consume(&rows))
        })
        .collect();
    producers
        .into_iter()
        .for_each(|producer| producer.join().expect("no thread panics"));
    let taken = consumers
        .into_iter()
        .map(|consumer| consumer.join().expect("no thread panics"));
    let taken: Vec<_> = taken.flatten().collect();
    let mut sorted = taken;
    sorted.sort_unstable();
    assert!(
        sorted
            .into_iter()
            .eq((0..each).flat_map(|number| [(number, 0), (number, 1)]))
    );
    let guard = pin();
    let counts = rows.check(&guard);
    assert!(counts.iter().sum::<usize>() <= 12, "{counts:?}");
}
