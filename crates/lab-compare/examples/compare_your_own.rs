//! Compares the ways of sharing a structure of your own. Replace the cache with yours.
//!
//! `cargo run --release -p corelay-lab-compare --example compare_your_own -- --quick`

use corelay_lab_compare::Comparison;
use std::process::ExitCode;

/// A cache of the numbers used last: a plain sequential type, with no thought of threads.
struct Lru {
    room: usize,
    used_last: Vec<u64>,
    touches: u64,
}

impl Lru {
    /// Brings `key` to the front. Returns whether it was there, as 1 or 0.
    fn touch(&mut self, key: u64) -> u64 {
        let found = self.used_last.iter().position(|&k| k == key);
        self.used_last
            .truncate(self.room - usize::from(found.is_none()));
        found.map(|at| self.used_last.remove(at));
        self.used_last.insert(0, key);
        self.touches += 1;
        u64::from(found.is_some())
    }
}

fn main() -> ExitCode {
    let new = || Lru {
        room: 8,
        used_last: Vec::with_capacity(8),
        touches: 0,
    };
    let holds = |cache: &Lru| match cache.used_last.len() {
        0..=8 => Ok(()),
        n => Err(format!("{n} keys in a cache for 8")),
    };
    Comparison::of("lru cache", new)
        .operation(|cache, random| cache.touch(random.below(12)))
        .counted(|cache| cache.touches)
        .check(holds)
        .run()
}
