//! The footprint of a channel is the memory that it takes: the bytes in use are counted.

#![cfg(not(any(corelay_loom, corelay_shuttle)))]

mod counting;

use corelay_delegate::report::{Footprint, Traffic};
use corelay_delegate::{ClientGuard, Trust, Trustees, barrier};
use counting::in_use;
use std::sync::atomic::{AtomicBool, Ordering};

/// A client's place in tables and in the list that reports are made of, and the trustee's
/// vector of lanes, which has room for several.
const AROUND: i64 = 1_500;

/// The bytes of a client that makes as many requests as it may, to a trustee that stands still,
/// once it has its answers. The rings that it grew out of are gone then.
fn taken(window: usize, ring_bytes: usize, ask: impl Fn(&Trust<u64>) -> bool + Sync) -> i64 {
    let trustees = Trustees::dedicated(1).window(window).ring_bytes(ring_bytes);
    let trustees = trustees.start().unwrap();
    let count = trustees.entrust(0_u64);
    let [begun, is_asked, is_counted] = [const { AtomicBool::new(false) }; 3];
    let wait = |for_it: &AtomicBool| {
        while !for_it.load(Ordering::Acquire) {
            std::thread::yield_now();
        }
    };
    std::thread::scope(|s| {
        let holder = s.spawn(|| {
            count.apply(|_| {
                begun.store(true, Ordering::Release);
                wait(&is_asked);
            });
            // The thread keeps its channel as long.
            wait(&is_counted);
        });
        wait(&begun);
        let client = s.spawn(|| {
            let _client = ClientGuard::new();
            let before = in_use();
            while ask(&count) {}
            is_asked.store(true, Ordering::Release);
            barrier().unwrap();
            let taken = in_use() - before;
            is_counted.store(true, Ordering::Release);
            taken
        });
        let taken = client.join().unwrap();
        // A scope waits for closures, a join also for what a thread's end frees: it must not be
        // counted by the next call.
        holder.join().unwrap();
        taken
    })
}

#[test]
fn a_channel_takes_as_much_as_its_footprint_says() {
    let near = |what: &str, taken: i64, said: Footprint| {
        let said = said.total() as i64;
        let more = taken - said;
        assert!(
            (0..AROUND).contains(&more),
            "{what}: {taken} bytes, said {said}"
        );
    };
    let one = |count: &Trust<u64>| {
        count.post(|count| *count += 1);
        false
    };
    near("a request", taken(256, 64 << 10, one), Footprint::first());

    let small = |count: &Trust<u64>| {
        let (word, seen) = (std::hint::black_box(1_u64), std::hint::black_box(2_u64));
        let add = move |count: &mut u64| *count + word;
        let then = move |count: u64| _ = std::hint::black_box(count + seen);
        count.try_apply_then(add, then).is_ok()
    };
    let words = Traffic {
        captures: 1,
        answer: 1,
        callback: 1,
    };
    for (window, ring_bytes) in [
        (256, 64 << 10),
        (16, 64 << 10),
        (1000, 4096),
        (1024, 64 << 10),
    ] {
        near(
            &format!("a window of {window} in {ring_bytes} bytes"),
            taken(window, ring_bytes, small),
            Footprint::filled(window, ring_bytes, words),
        );
    }

    let large = |count: &Trust<u64>| {
        let (words, seen) = (
            std::hint::black_box([1_u64; 25]),
            std::hint::black_box([2_u64; 16]),
        );
        let add = move |count: &mut u64| *count + words[3];
        let then = move |count: u64| _ = std::hint::black_box(count + seen[3]);
        count.try_apply_then(add, then).is_ok()
    };
    let filled = Footprint::filled(256, 64 << 10, Traffic::MOST);
    near(
        "a window of the largest",
        taken(256, 64 << 10, large),
        filled,
    );
    assert!(Footprint::most(256, 64 << 10).total() >= filled.total());
}
