//! Many calls, and a look at the table when all threads are done.

use crate::alone::{LONGEST, answers, repeated};
use crate::crew::{few, many, noisy};
use crate::messages::{Kind, fault};
use crate::quiet;
use crate::table::Table;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Instant;
use turns::Dice;

/// Checks threads with keys of their own, whose every answer is known. Neighbouring keys belong
/// to different threads.
pub fn disjoint() {
    const EACH: u64 = 3_000;
    let began = Instant::now();
    for threads in [few(), many()] {
        for capacity in [1, 16_384] {
            if began.elapsed() > 2 * LONGEST {
                return;
            }
            let table = Table::with_capacity(capacity);
            let key = |n: u64, thread: usize| n * threads as u64 + thread as u64;
            noisy(threads, |thread, meeting| {
                meeting.wait();
                for key in (0..EACH).map(|n| key(n, thread)) {
                    answers(
                        &format!("insert({key}, {})", key + 1),
                        table.insert(key, key + 1),
                        None,
                    );
                }
            });
            let all = 0..EACH * threads as u64;
            let mut plain: BTreeMap<u64, u64> = all.map(|key| (key, key + 1)).collect();
            quiet::is(&table, &plain);
            noisy(threads, |thread, meeting| {
                meeting.wait();
                for n in 0..EACH {
                    let key = key(n, thread);
                    let own = Some(key + 1);
                    match n % 2 {
                        0 => answers(&format!("remove({key})"), table.remove(key), own),
                        _ => answers(&format!("get({key})"), table.get(key), own),
                    }
                }
            });
            plain.retain(|key, _| key / threads as u64 % 2 == 1);
            quiet::is(&table, &plain);
        }
    }
}

/// Checks threads that insert the same keys in the same order, and then remove them. Which thread
/// is first is open. But for each key one insertion found nothing, each replaced value was
/// answered once, and one removal took the last value out.
///
/// Takes a few keys, many times, so that threads meet at a key; and many keys, which make a table
/// grow.
pub fn overlapping() {
    let mut round = 0;
    repeated(20, 2 * LONGEST, || {
        same_keys(few(), 40, [1, 64][round % 2], 12);
        same_keys(many(), 1, [1, 2_048][round % 2], 400);
        round += 1;
    });
}

fn same_keys(threads: usize, rounds: usize, capacity: usize, keys: u64) {
    let tables: Vec<Table> = (0..rounds)
        .map(|_| Table::with_capacity(capacity))
        .collect();
    let value = |thread: usize, key: u64| (thread as u64 + 1) << 32 | key;
    let olds = noisy(threads, |thread, meeting| {
        let round = |table: &Table| {
            meeting.wait();
            let insert = |key| table.insert(key, value(thread, key));
            (0..keys).map(insert).collect::<Vec<_>>()
        };
        tables.iter().map(round).collect::<Vec<_>>()
    });
    let last = |(round, table): (usize, &Table)| {
        quiet::keys_are(table, &(0..keys).collect());
        let last = |key: u64| {
            let olds = || olds.iter().map(|olds| olds[round][key as usize]);
            let mut account = Account::new(key);
            (0..threads).for_each(|thread| account.put_in(value(thread, key)));
            olds().for_each(|old| account.answered(old));
            let last = table.get(key);
            account.left(last);
            account.inserts_that_found_nothing(olds().filter(Option::is_none).count());
            last
        };
        (0..keys).map(last).collect::<Vec<_>>()
    };
    let last: Vec<_> = tables.iter().enumerate().map(last).collect();
    let taken = noisy(threads, |_, meeting| {
        let round = |table: &Table| {
            meeting.wait();
            (0..keys).map(|key| table.remove(key)).collect::<Vec<_>>()
        };
        tables.iter().map(round).collect::<Vec<_>>()
    });
    for (round, table) in tables.iter().enumerate() {
        for key in 0..keys {
            let out = taken.iter().filter_map(|taken| taken[round][key as usize]);
            let (out, last) = (out.collect::<Vec<_>>(), last[round][key as usize]);
            if out != Vec::from_iter(last) {
                let what = format!(
                    "all threads remove key {key}, once each, and are answered {out:?}: \
                     its value {last:?} should come out once"
                );
                fault(Kind::Answer, &what);
            }
        }
        quiet::keys_are(table, &BTreeSet::new());
    }
}

/// Checks inserts, removals and lookups of a few keys, in any order.
pub fn mixed() {
    let mut round = 0;
    repeated(10, 2 * LONGEST, || {
        everything(few(), 20, [1, 64][round % 2], 2, 50);
        everything(many(), 1, [1, 64][round % 2], 8, 2_000);
        round += 1;
    });
}

/// A call: its key, the value it put in, and the value it returned.
type Done = (u64, Option<u64>, Option<u64>);

/// Runs the calls of [`mixed`], in which each value is put in once.
fn everything(threads: usize, rounds: usize, capacity: usize, keys: u64, each: u64) {
    let tables: Vec<Table> = (0..rounds)
        .map(|_| Table::with_capacity(capacity))
        .collect();
    let done = noisy(threads, |thread, meeting| {
        let mut dice = Dice::new(thread as u64);
        let round = |table: &Table| {
            meeting.wait();
            let call = |n| call(table, &mut dice, keys, (thread as u64 + 1) << 32 | n);
            (0..each).filter_map(call).collect::<Vec<Done>>()
        };
        tables.iter().map(round).collect::<Vec<_>>()
    });
    for (round, table) in tables.iter().enumerate() {
        let left = table.keys().into_iter().filter(|key| *key < keys);
        quiet::keys_are(table, &left.collect());
        for key in 0..keys {
            let all = || done.iter().flat_map(|done| &done[round]);
            let of_key = || all().filter(|one| one.0 == key);
            let mut account = Account::new(key);
            of_key()
                .filter_map(|one| one.1)
                .for_each(|value| account.put_in(value));
            of_key().for_each(|one| account.answered(one.2));
            account.left(table.get(key));
        }
    }
}

fn call(table: &Table, dice: &mut Dice, keys: u64, number: u64) -> Option<Done> {
    let key = dice.below(keys);
    // The value names its key, so that the value of another key is recognised.
    let value = number * keys + key;
    match dice.below(3) {
        0 => Some((key, Some(value), table.insert(key, value))),
        1 => Some((key, None, table.remove(key))),
        _ => {
            let got = table.get(key)?;
            if got % keys != key {
                let what = format!("get({key}) answers the value of key {}", got % keys);
                fault(Kind::Value, &what);
            }
            None
        }
    }
}

/// The account of a key's values: each is put in once, and then either leaves once or is there.
struct Account {
    key: u64,
    inside: BTreeSet<u64>,
}

impl Account {
    fn new(key: u64) -> Self {
        let inside = BTreeSet::new();
        Self { key, inside }
    }

    fn put_in(&mut self, value: u64) {
        self.inside.insert(value);
    }

    fn answered(&mut self, value: Option<u64>) {
        if let Some(value) = value
            && !self.inside.remove(&value)
        {
            let key = self.key;
            let what = format!(
                "the value {value} of key {key} was answered as the old one twice, or never put in"
            );
            fault(Kind::Answer, &what);
        }
    }

    /// Takes the value that is there in the end. No other may remain.
    fn left(&mut self, value: Option<u64>) {
        let key = self.key;
        if let Some(value) = value
            && !self.inside.remove(&value)
        {
            let what = format!(
                "get({key}) answers {value}, which had been replaced or removed, or was never put in"
            );
            fault(Kind::Value, &what);
        }
        if let Some(value) = self.inside.first() {
            let what = format!(
                "the value {value} of key {key} was put in, no insert or remove has answered it since, and it is not there"
            );
            fault(Kind::Lost, &what);
        }
    }

    fn inserts_that_found_nothing(&self, n: usize) {
        if n != 1 {
            let key = self.key;
            let what = format!(
                "{n} inserts of key {key} have answered that it was not there, and one should"
            );
            fault(Kind::Answer, &what);
        }
    }
}
