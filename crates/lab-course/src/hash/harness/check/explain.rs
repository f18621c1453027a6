//! Whether one order of calls of a key explains their answers.
//!
//! A search with memory, after Wing and Gong (1993) and Lowe (2017), of one key: a table is
//! linearizable if each of its keys is (Herlihy and Wing, 1990). The lab judges a history that has
//! no explanation here once more, and shows it.

use crate::record::{Ask, Call};
use std::collections::HashSet;

/// The most calls of a key that [`explains`] takes.
pub const MOST_CALLS: usize = 128;

/// Steps of a search after which it is given up. Few calls need so many, and only if they all
/// overlap.
const PATIENCE: usize = 300_000;

/// Whether some order of these calls of one key explains their answers, if the key had the value
/// `initial` before. `None` if the search takes too long.
pub fn explains(initial: Option<u64>, calls: &[Call]) -> Option<bool> {
    assert!(calls.len() <= MOST_CALLS, "the rounds are small");
    let mut search = Search {
        calls,
        dead: HashSet::new(),
        steps: 0,
    };
    let found = search.goes_on(0, initial);
    (found || search.steps < PATIENCE).then_some(found)
}

struct Search<'a> {
    calls: &'a [Call],
    /// Sets of calls and the value after them, from which no order goes on.
    dead: HashSet<(u128, Option<u64>)>,
    steps: usize,
}

impl Search<'_> {
    /// Whether an order of the calls that are not in the set `done` explains them.
    fn goes_on(&mut self, mut done: u128, value: Option<u64>) -> bool {
        let calls = self.calls;
        loop {
            self.steps += 1;
            let left = || (0..calls.len()).filter(|n| done & (1 << n) == 0);
            // A call is next only if no other one had ended before it began.
            let Some(end) = left().map(|n| calls[n].returned).min() else {
                return true;
            };
            let fits = |n: &usize| calls[*n].invoked < end && calls[*n].answer == value;
            // A call that fits and changes nothing may as well be next.
            let changes_nothing = |n: &usize| after(value, &calls[*n]) == value;
            if let Some(n) = left().filter(fits).find(changes_nothing) {
                done |= 1 << n;
                continue;
            }
            if self.steps >= PATIENCE || self.dead.contains(&(done, value)) {
                return false;
            }
            for n in left().filter(fits) {
                if self.goes_on(done | (1 << n), after(value, &calls[n])) {
                    return true;
                }
            }
            self.dead.insert((done, value));
            return false;
        }
    }
}

/// Returns the value after a call.
fn after(value: Option<u64>, call: &Call) -> Option<u64> {
    match call.ask {
        Ask::Get(_) => value,
        Ask::Insert(_, new) => Some(new),
        Ask::Remove(_) => None,
    }
}
