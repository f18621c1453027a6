//! Stamps order what different threads do: by the hardware's counter if there is one, and by the
//! shared one in a child process.

#![cfg(not(any(corelay_loom, corelay_shuttle)))]

use corelay_sync::{Backoff, CachePadded, TickSource, ticks, ticks_source};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::thread;

#[test]
fn stamps_of_one_thread_never_decrease() {
    thread::scope(|s| {
        for _ in 0..4 {
            s.spawn(|| {
                let mut last = ticks();
                for turn in 0..50_000 {
                    let now = ticks();
                    assert!(last <= now, "{last} then {now}");
                    last = now;
                    if turn % 1_000 == 0 {
                        // The thread may move to another CPU now.
                        thread::yield_now();
                    }
                }
            });
        }
    });
}

/// Two threads hand a stamp to and fro; the receiver takes a later one.
#[test]
fn a_stamp_handed_over_is_not_later_than_the_receivers() {
    const TURNS: u64 = 20_000;
    let stamp = AtomicU64::new(ticks());
    let turn = AtomicU64::new(0);
    let backward: Vec<(u64, u64)> = thread::scope(|s| {
        let hand_over = |me| {
            let (stamp, turn) = (&stamp, &turn);
            // Collected, not asserted: the other thread waits for its turn.
            let mut backward = Vec::new();
            for mine in (me..TURNS).step_by(2) {
                let mut backoff = Backoff::new();
                // Acquire: pairs with the Release below; the stamp is there.
                while turn.load(Ordering::Acquire) != mine {
                    backoff.wait();
                }
                let now = ticks();
                // Relaxed, both: the turn is this thread's.
                let earlier = stamp.load(Ordering::Relaxed);
                backward.extend((earlier > now).then_some((earlier, now)));
                stamp.store(ticks(), Ordering::Relaxed);
                // Release: pairs with the Acquire above.
                turn.store(mine + 1, Ordering::Release);
            }
            backward
        };
        let threads = [0, 1].map(|me| s.spawn(move || hand_over(me)));
        threads
            .into_iter()
            .flat_map(|t| t.join().unwrap())
            .collect()
    });
    assert_eq!(backward, []);
}

/// The same over all CPUs: the thread that holds the lock adds a stamp to the chain.
#[test]
fn stamps_never_decrease_along_a_chain_of_threads() {
    let threads = thread::available_parallelism().map_or(2, |n| n.get().max(2));
    let last = Mutex::new(ticks());
    thread::scope(|s| {
        for _ in 0..threads {
            s.spawn(|| {
                for _ in 0..5_000 {
                    let mut last = last.lock().unwrap();
                    let now = ticks();
                    assert!(*last <= now, "{last} then {now}");
                    *last = now;
                }
            });
        }
    });
}

/// One thread writes a word and the other reads it, at about the same time and without any order
/// between them. The stamps around the accesses must allow for the value read.
#[test]
fn stamps_enclose_loads_and_stores() {
    const ROUNDS: usize = 40_000;

    #[derive(Default)]
    struct Round {
        word: CachePadded<AtomicU64>,
        arrived: CachePadded<AtomicUsize>,
    }
    impl Round {
        /// Meets the other thread: both return at about the same time, this one after `pauses` more
        /// pauses.
        fn meet(&self, fetch: bool, pauses: usize) {
            if fetch {
                // The line is in this core's cache now. So the other's access takes long, and a
                // stamp that does not wait for it is found out.
                self.word.fetch_add(0, Ordering::Relaxed);
            }
            // Relaxed: only to start together.
            self.arrived.fetch_add(1, Ordering::Relaxed);
            let mut backoff = Backoff::new();
            while self.arrived.load(Ordering::Relaxed) < 2 {
                backoff.wait();
            }
            (0..pauses).for_each(|_| std::hint::spin_loop());
        }
    }

    let rounds: Vec<Round> = (0..ROUNDS).map(|_| Round::default()).collect();
    let rounds = || rounds.iter().enumerate();
    let (written, read): (Vec<_>, Vec<_>) = thread::scope(|s| {
        let writer = s.spawn(|| {
            let write = |(n, round): (usize, &Round)| {
                round.meet(n % 2 == 0, n / 2 % 8);
                let begin = ticks();
                // Relaxed: the stamps must order this.
                round.word.store(1, Ordering::Relaxed);
                (begin, ticks())
            };
            rounds().map(write).collect()
        });
        let reader = s.spawn(|| {
            let read = |(n, round): (usize, &Round)| {
                round.meet(n % 2 == 1, n / 16 % 8);
                let begin = ticks();
                // Relaxed: the stamps must order this.
                let seen = round.word.load(Ordering::Relaxed);
                (begin, seen, ticks())
            };
            rounds().map(read).collect()
        });
        (writer.join().unwrap(), reader.join().unwrap())
    });
    for (write, read) in written.into_iter().zip(read) {
        let (write_begin, write_end) = write;
        let (read_begin, seen, read_end) = read;
        if seen == 1 {
            assert!(
                write_begin <= read_end,
                "seen before it was written: {write:?} {read:?}"
            );
        } else {
            assert!(
                read_begin <= write_end,
                "missed though it was there: {write:?} {read:?}"
            );
        }
    }
}

#[test]
fn the_shared_counter_keeps_the_same_promise() {
    if std::env::var_os("CORELAY_SHARED_TICKS").is_some() {
        // This is the child, which runs by the shared counter.
        let TickSource::SharedCounter { because } = ticks_source() else {
            panic!(
                "the variable is set, but stamps come from {}",
                ticks_source()
            );
        };
        assert!(!because.is_empty());
        assert!(ticks() < ticks(), "no two stamps are equal");
        return;
    }
    let output = std::process::Command::new(std::env::current_exe().unwrap())
        .env("CORELAY_SHARED_TICKS", "1")
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stdout)
    );
}
