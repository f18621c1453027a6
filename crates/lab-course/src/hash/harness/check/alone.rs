//! One thread alone, whose every answer is compared with that of a plain map.

use crate::keys::Keys;
use crate::messages::{Kind, fault};
use crate::quiet;
use crate::table::Table;
use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};
use turns::Dice;

/// Capacities that tables are made with.
pub const CAPACITIES: [usize; 10] = [0, 1, 1, 2, 3, 4, 8, 16, 64, 1_000];

/// Keys of the largest table. Some faults begin where a number no longer fits 16 bits.
const MANY: u64 = 70_000;

/// Time for each way to check, if the table is slow.
pub const LONGEST: Duration = Duration::from_secs(1);

/// Checks tables in different ways. Most take little time, and faults of one thread are the
/// easiest to understand.
pub fn all(dice: &mut Dice) {
    answer_by_answer(dice);
    repeated(1_200, LONGEST, || short(dice));
    repeated(6, LONGEST, || cycles(dice));
    for keys in [Keys::Dense, Keys::any(dice, true)] {
        large(keys, dice);
    }
}

/// Does some work so many times, or until a time is over. A table may be slow and correct.
pub fn repeated(times: usize, longest: Duration, mut work: impl FnMut()) {
    let began = Instant::now();
    for _ in 0..times {
        work();
        if began.elapsed() > longest {
            break;
        }
    }
}

/// Reports a wrong answer.
pub fn answers(call: &str, got: Option<u64>, right: Option<u64>) {
    if got != right {
        wrong_answer(call, got, right);
    }
}

#[cold]
fn wrong_answer(call: &str, got: Option<u64>, right: Option<u64>) -> ! {
    fault(
        Kind::Answer,
        &format!("{call} answers {got:?} and should answer {right:?}"),
    )
}

/// A table and a plain map that get the same calls.
struct Both {
    table: Table,
    plain: BTreeMap<u64, u64>,
}

impl Both {
    fn new(capacity: usize) -> Self {
        Self {
            table: Table::with_capacity(capacity),
            plain: BTreeMap::new(),
        }
    }

    fn insert(&mut self, key: u64, value: u64) {
        let right = self.plain.insert(key, value);
        let got = self.table.insert(key, value);
        if got != right {
            wrong_answer(&format!("insert({key}, {value})"), got, right);
        }
    }

    fn get(&self, key: u64) {
        let right = self.plain.get(&key).copied();
        let got = self.table.get(key);
        if got != right {
            wrong_answer(&format!("get({key})"), got, right);
        }
    }

    fn remove(&mut self, key: u64) {
        let right = self.plain.remove(&key);
        let got = self.table.remove(key);
        if got != right {
            wrong_answer(&format!("remove({key})"), got, right);
        }
    }

    fn len(&self) {
        quiet::len_is(&self.table, self.plain.len());
    }

    fn content(&self) {
        quiet::is(&self.table, &self.plain);
    }
}

/// Keys are small, far apart, or equal in their lower halves, and there are more of them than the
/// table was made for.
fn answer_by_answer(dice: &mut Dice) {
    for capacity in [0, 1, 16, 1_000] {
        let mut both = Both::new(capacity);
        let far: Vec<u64> = (0..500).map(|_| dice.next()).collect();
        for value in 0..6_000 {
            let key = match dice.below(10) {
                0..6 => dice.below(100),
                6..8 => dice.below(400) << 32,
                8 => far[dice.below(500) as usize],
                _ => u64::MAX - dice.below(3),
            };
            match dice.below(4) {
                0 => both.get(key),
                1 => both.remove(key),
                _ => both.insert(key, value),
            }
        }
        both.content();
    }
}

/// A few calls on a small table, with keys that are often in one place.
fn short(dice: &mut Dice) {
    let keys = Keys::any(dice, false);
    let number = dice.of(&[2, 4, 8, 16, 32]);
    let (inserts, removes) = (1 + dice.below(4), 1 + dice.below(3));
    let mut both = Both::new(dice.of(&CAPACITIES));
    for _ in 0..20 + dice.below(100) {
        let key = keys.of(dice.below(number));
        match dice.below(inserts + removes + 2) {
            0 | 1 => both.get(key),
            n if n < 2 + inserts => {
                both.insert(key, value(dice));
                both.get(key);
            }
            _ => {
                both.remove(key);
                both.get(key);
            }
        }
        if dice.one_in(8) {
            both.len();
        }
    }
    both.len();
    both.content();
}

/// Returns a value that a table may have given a meaning of its own.
fn value(dice: &mut Dice) -> u64 {
    match dice.below(8) {
        0 => dice.of(&[0, 0, u64::MAX, u64::MAX - 1, 1 << 32, 1 << 63]),
        1 => dice.next(),
        _ => dice.below(1_000),
    }
}

/// Tables that are filled and emptied again and again, with ever new keys or with the same.
fn cycles(dice: &mut Dice) {
    let keys = Keys::any(dice, false);
    let batch = dice.of(&[3, 12, 30, 100]);
    let (new, keep) = (dice.one_in(2), dice.below(3));
    let mut both = Both::new(dice.of(&CAPACITIES));
    let mut first = 0;
    for _ in 0..(30_000 / batch).min(1_500) {
        for number in first..first + batch {
            both.insert(keys.of(number), number);
            both.get(keys.of(first + dice.below(number - first + 1)));
        }
        both.len();
        for number in (first..first + batch).skip(keep as usize) {
            both.remove(keys.of(number));
        }
        if new {
            for number in first..first + keep {
                both.remove(keys.of(number));
            }
            first += batch;
        }
        both.get(keys.of(first));
    }
    both.content();
}

/// A table that gets many keys, and loses all but a few of them.
fn large(keys: Keys, dice: &mut Dice) {
    let mut both = Both::new(dice.of(&CAPACITIES));
    let began = Instant::now();
    let mut number = 0;
    while number < MANY && began.elapsed() < LONGEST {
        both.insert(keys.of(number), !number);
        both.get(keys.of(number));
        both.get(keys.of(dice.below(number + 1)));
        number += 1;
    }
    both.len();
    let listed: BTreeSet<u64> = both.table.keys().into_iter().collect();
    let right: BTreeSet<u64> = both.plain.keys().copied().collect();
    quiet::are(&listed, &right);
    let mut left = number;
    while left > 100 && began.elapsed() < 2 * LONGEST {
        left -= 1;
        both.remove(keys.of(left));
        both.get(keys.of(dice.below(number)));
        if left.is_power_of_two() {
            both.len();
        }
    }
    if left <= 100 {
        both.content();
    }
}
