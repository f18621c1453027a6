//! Keys that were just inserted, looked up while the table grows.
//!
//! Writers insert keys in a known order and say how far they are; some remove each key again
//! after a while. Every answer is known:
//!
//! ```text
//!   keys of a writer   ░░░░░░░░░ removed │▒ being removed│████ there ████│▒ being inserted│   new
//!                                     taken           taking         inserted        inserting
//! ```

use crate::alone::CAPACITIES;
use crate::crew::noisy;
use crate::keys::Keys;
use crate::messages::{Kind, fault};
use crate::quiet;
use crate::table::Table;
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};
use turns::Dice;

/// Checks tables for a time. Returns the number of lookups.
pub fn all(time: Duration, dice: &mut Dice) -> u64 {
    let began = Instant::now();
    let mut lookups = 0;
    let mut nth = 0;
    while began.elapsed() < time || nth < 4 {
        let case = Case {
            writers: 1 + dice.below(2) as usize,
            readers: 1 + dice.below(2) as usize,
            keys: Keys::any(dice, true),
            // Large tables grow more often; small ones begin anew more often.
            each: match nth % 4 {
                0 => 20 + dice.below(180),
                1 => 200 + dice.below(1_800),
                2 => 30 + dice.below(60),
                _ => 3_000 + dice.below(9_000),
            },
            window: dice.of(&[u64::MAX, u64::MAX, u64::MAX, 1, 7, 60]),
            capacity: dice.of(&CAPACITIES),
            seed: dice.next(),
        };
        let tables = (6_000 / case.each).clamp(1, 60) as usize;
        lookups += case.check(tables);
        nth += 1;
    }
    lookups
}

struct Case {
    writers: usize,
    readers: usize,
    keys: Keys,
    /// Keys of each writer.
    each: u64,
    /// Keys of a writer that are there at the same time.
    window: u64,
    capacity: usize,
    seed: u64,
}

/// How far a writer is. All numbers only grow.
#[derive(Default)]
struct Progress {
    inserting: AtomicU64,
    inserted: AtomicU64,
    taking: AtomicU64,
    taken: AtomicU64,
}

impl Case {
    fn check(&self, tables: usize) -> u64 {
        let threads = self.writers + self.readers;
        let make = |_| {
            let progress: Vec<Progress> = (0..self.writers).map(|_| Progress::default()).collect();
            let table = Table::with_capacity(self.capacity);
            (table, progress, AtomicUsize::new(0))
        };
        let tables: Vec<_> = (0..tables).map(make).collect();
        let lookups = noisy(threads, |thread, meeting| {
            let mut dice = Dice::new(self.seed.wrapping_add(thread as u64));
            let mut lookups = 0;
            for (table, progress, done) in &tables {
                meeting.wait();
                if thread < self.writers {
                    lookups += self.write(table, thread, &progress[thread], &mut dice);
                    done.fetch_add(1, Ordering::SeqCst);
                    continue;
                }
                while done.load(Ordering::SeqCst) < self.writers {
                    let writer = dice.below(self.writers as u64) as usize;
                    self.read(table, writer, &progress[writer], &mut dice);
                    lookups += 1;
                }
            }
            lookups
        });
        for (table, progress, _) in &tables {
            let mut right = BTreeSet::new();
            for (writer, progress) in progress.iter().enumerate() {
                let taken = progress.taken.load(Ordering::SeqCst);
                right.extend((taken..self.each).map(|number| self.key(writer, number)));
            }
            quiet::keys_are(table, &right);
        }
        lookups.into_iter().sum()
    }

    /// Neighbouring keys belong to different writers.
    fn key(&self, writer: usize, number: u64) -> u64 {
        self.keys.of(number * self.writers as u64 + writer as u64)
    }

    fn write(&self, table: &Table, writer: usize, at: &Progress, dice: &mut Dice) -> u64 {
        let there = |number: u64| {
            let key = self.key(writer, number);
            let got = table.get(key);
            if got != Some(!key) {
                missing(key, got, "the thread that had inserted it");
            }
        };
        for number in 0..self.each {
            let key = self.key(writer, number);
            at.inserting.store(number + 1, Ordering::SeqCst);
            let old = table.insert(key, !key);
            if old.is_some() {
                crate::alone::answers(&format!("the first insert of {key}"), old, None);
            }
            at.inserted.store(number + 1, Ordering::SeqCst);
            there(number);
            let oldest = (number + 1).saturating_sub(self.window);
            if dice.one_in(3) {
                there(oldest + dice.below(number + 1 - oldest));
            }
            if number + 1 > self.window {
                let number = number - self.window;
                let key = self.key(writer, number);
                at.taking.store(number + 1, Ordering::SeqCst);
                let old = table.remove(key);
                if old != Some(!key) {
                    crate::alone::answers(&format!("remove({key})"), old, Some(!key));
                }
                at.taken.store(number + 1, Ordering::SeqCst);
            }
        }
        self.each
    }

    fn read(&self, table: &Table, writer: usize, at: &Progress, dice: &mut Dice) {
        let (taken, inserted) = (
            at.taken.load(Ordering::SeqCst),
            at.inserted.load(Ordering::SeqCst),
        );
        let number = match dice.below(8) {
            0..3 => inserted.saturating_sub(1),
            3..5 => inserted.saturating_sub(1 + dice.below(12)),
            5 => inserted + dice.below(3),
            6 => taken.saturating_sub(1 + dice.below(4)),
            _ => dice.below(inserted + 1),
        };
        let key = self.key(writer, number);
        let got = table.get(key);
        let (inserting, taking) = (
            at.inserting.load(Ordering::SeqCst),
            at.taking.load(Ordering::SeqCst),
        );
        match got {
            Some(value) if value != !key => {
                let what = format!("get({key}) answers {value}, which was never its value");
                fault(Kind::Value, &what);
            }
            Some(_) if number < taken => {
                let what = format!("get({key}) finds a key that had been removed before");
                fault(Kind::Surplus, &what);
            }
            Some(_) if number >= inserting => {
                let what = format!("get({key}) finds a key that is not inserted yet");
                fault(Kind::Surplus, &what);
            }
            None if number < inserted && number >= taking => {
                missing(key, got, "another thread, after its insertion had returned");
            }
            _ => {}
        }
    }
}

#[cold]
fn missing(key: u64, got: Option<u64>, who: &str) -> ! {
    let what = format!("get({key}) answers {got:?} to {who}");
    fault(Kind::Lost, &what)
}
