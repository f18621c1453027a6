//! The time of all threads for a key, in parts that add up.
//!
//! ```text
//!   thread 0   ├─ inserts ─┼ makes nodes ┼ waits ┼─ inserts ─┤
//!   thread 1   ├─ inserts ──┼ makes nodes ┼ inserts ┤ is done: waits for thread 0
//!              └────────────── wall ──────────────┘
//! ```
//!
//! The whole is threads × wall. Waiting for locks, making nodes and being done early are
//! measured; the rest went into inserting. Of that, *work* is the time that a lone thread needs
//! for as many keys. The excess, with no lock to wait for and no node to make, goes into cache
//! lines that other cores have taken.

use crate::list::job::Ended;
use serde::Serialize;

/// Nanoseconds of a thread for each key, by cause.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Split {
    /// Time to insert a key, as a lone thread needs it.
    pub(crate) work: f64,
    /// Time spent waiting for locks.
    pub(crate) locks: f64,
    /// Time spent making nodes: the allocator and its page faults.
    pub(crate) nodes: f64,
    /// Time in which the thread is done, or has not begun, while others insert.
    pub(crate) stragglers: f64,
    /// Time spent inserting beyond `work`: waits for cache lines that other cores have taken.
    pub(crate) lines: f64,
}

impl Split {
    /// Splits the time of a run, compared with a run of one thread.
    pub(crate) fn of(run: &Ended, alone: &Ended) -> Self {
        let keys = run.keys().max(1) as f64;
        let wall = run.wall();
        let ns = |times: &mut dyn Iterator<Item = std::time::Duration>| {
            times.map(|time| time.as_nanos() as f64).sum::<f64>() / keys
        };
        let locks = ns(&mut run.laps.iter().map(|lap| lap.waited));
        let busy = ns(&mut run.laps.iter().map(|lap| lap.end - lap.begin));
        // The time is estimated from one node in 37, so the estimate may exceed what there was.
        let nodes = ns(&mut run.laps.iter().map(|lap| lap.made)).min((busy - locks).max(0.0));
        let all = wall.as_nanos() as f64 * run.laps.len() as f64 / keys;
        let inserting = (busy - locks - nodes).max(0.0);
        let work = match alone.laps.is_empty() || std::ptr::eq(run, alone) {
            true => inserting,
            false => Self::of(alone, alone).work.min(inserting),
        };
        Self {
            work,
            locks,
            nodes,
            stragglers: (all - busy).max(0.0),
            lines: inserting - work,
        }
    }

    /// Returns the sum of all parts.
    pub(crate) fn whole(self) -> f64 {
        self.values().iter().sum()
    }

    /// Returns the parts in the order in which they are drawn.
    pub(crate) fn values(self) -> [f64; 5] {
        [
            self.work,
            self.locks,
            self.nodes,
            self.stragglers,
            self.lines,
        ]
    }

    /// Names and colours of the values.
    pub(crate) const KINDS: [(&str, &str); 5] = [
        ("inserting", "c-blue"),
        ("lock wait", "c-trust"),
        ("allocation and faults", "c-gold"),
        ("stragglers", "c-violet"),
        ("shared lines", "c-rose"),
    ];

    /// Returns the largest loss and its share of the whole; `None` if it is less than a tenth.
    pub(crate) fn worst(self) -> Option<(&'static str, f64)> {
        let lost = self.values().into_iter().zip(Self::KINDS).skip(1);
        let most = lost.max_by(|a, b| a.0.total_cmp(&b.0))?;
        let share = most.0 / self.whole();
        (share >= 0.1).then_some((most.1.0, share))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::list::job::Lap;
    use std::time::{Duration, Instant};

    #[test]
    fn nothing_takes_no_time() {
        let nothing = Ended::default();
        assert_eq!(Split::of(&nothing, &nothing).whole(), 0.0);
    }

    fn run(laps: &[(u64, u64, u64, u64, u64)]) -> Ended {
        let zero = Instant::now();
        let ns = Duration::from_nanos;
        let lap = |&(begin, end, keys, waited, made): &(u64, u64, u64, u64, u64)| Lap {
            begin: zero + ns(begin),
            end: zero + ns(end),
            keys,
            parts: 1,
            waited: ns(waited),
            made: ns(made),
            usage: None,
            misses: None,
        };
        Ended {
            laps: laps.iter().map(lap).collect(),
            passes: 1,
            fault: None,
        }
    }

    #[test]
    fn the_parts_add_up_to_all_threads_time() {
        let alone = run(&[(0, 1_000, 100, 0, 200)]);
        let two = run(&[(0, 3_000, 100, 500, 300), (100, 2_000, 100, 400, 100)]);
        let split = Split::of(&two, &alone);
        assert!(
            (split.whole() - 2.0 * 3_000.0 / 200.0).abs() < 1e-9,
            "{split:?}"
        );
        assert_eq!((split.work, split.locks, split.nodes), (8.0, 4.5, 2.0));
        assert_eq!(split.stragglers, (1_000.0 + 100.0) / 200.0);
        assert_eq!(
            split.lines,
            (3_000.0 + 1_900.0 - 900.0 - 400.0) / 200.0 - 8.0
        );
        assert_eq!(split.worst().unwrap().0, "shared lines");
    }

    #[test]
    fn a_lone_thread_loses_nothing_to_others() {
        let alone = run(&[(0, 1_000, 100, 0, 200)]);
        let split = Split::of(&alone, &alone);
        assert_eq!(split.values(), [8.0, 0.0, 2.0, 0.0, 0.0]);
        assert_eq!(split.worst(), Some(("allocation and faults", 0.2)));
        // Being faster than a lone thread is not a negative loss.
        let quick = run(&[(0, 100, 100, 0, 0)]);
        assert_eq!(
            Split::of(&quick, &alone).values(),
            [1.0, 0.0, 0.0, 0.0, 0.0]
        );
    }
}
