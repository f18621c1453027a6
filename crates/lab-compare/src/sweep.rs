//! The points that `compare` visits.
//!
//! | machine | threads | variables of fetch-add |
//! |---|---|---|
//! | at most 2 CPUs | 2 | 1 … 2^20, every power of 8 |
//! | more | all CPUs | the same |
//! | | 2, a quarter and half of them | 1, 64, 2^14 |
//!
//! Of a structure there are 1, 4 and 16, which share the keys. A user may ask for other numbers.
//!
//! A quarter of the threads, at least 1, are trustees in methods that have trustees, but no more
//! than there are variables (D18). The quick sweep takes fewer variables.
//!
//! Latency is measured with all threads on the fewest variables, where most of them meet. The load rises up
//! to the first that a method does not bear. On one CPU latency is not measured.

use super::Contest;
use corelay_lab_measure::host::Host;
use corelay_lab_measure::measure::plan::Item;
use corelay_lab_measure::workload::point::Point;
use corelay_lab_measure::workload::random::Choice;
use corelay_topology::Order;

/// Numbers of variables at the most threads. At 64 bytes each, the last ones exceed most caches.
const VARS: &[u64] = &[1, 8, 64, 512, 1 << 12, 1 << 15, 1 << 17, 1 << 20];
const QUICK_VARS: &[u64] = &[1, 64, 1 << 12, 1 << 18];

/// Numbers of variables at fewer threads.
const VARS_OF_FEWER: &[u64] = &[1, 64, 1 << 14];
const QUICK_VARS_OF_FEWER: &[u64] = &[1, 1 << 12];

/// Numbers of structures that share the keys. Each takes its time to fill.
const SHARDS: &[u64] = &[1, 4, 16];
const FEWER_SHARDS: &[u64] = &[1, 4];

/// Loads in operations per second, closer together where most methods saturate.
const LOADS: &[u64] = &[
    10_000,
    100_000,
    300_000,
    1_000_000,
    2_000_000,
    5_000_000,
    10_000_000,
    20_000_000,
    50_000_000,
    200_000_000,
    1_000_000_000,
];
const QUICK_LOADS: &[u64] = &[
    100_000,
    1_000_000,
    3_000_000,
    10_000_000,
    30_000_000,
    300_000_000,
];

/// Returns the numbers of variables of fetch-add: at the most threads, and at fewer.
pub(super) fn vars(quick: bool) -> [&'static [u64]; 2] {
    if quick {
        [QUICK_VARS, QUICK_VARS_OF_FEWER]
    } else {
        [VARS, VARS_OF_FEWER]
    }
}

/// Returns the numbers of structures: at the most threads, and at fewer.
pub(super) fn shards(quick: bool) -> [&'static [u64]; 2] {
    [if quick { FEWER_SHARDS } else { SHARDS }, FEWER_SHARDS]
}

/// Returns the point at which latency is measured, notes on its placement, and its loads.
pub(super) fn latency<W>(
    host: &Host,
    quick: bool,
    contest: &Contest<W>,
) -> Result<(Point, Vec<String>, &'static [u64]), String> {
    let threads = host.topology.parallelism().max(2);
    let placement = host.place(&Order::CoresFirst, threads)?;
    let loads = if quick { QUICK_LOADS } else { LOADS };
    let fewest = contest.vars.iter().copied().min().unwrap_or(1);
    Ok((
        point(threads, fewest, contest.choice, placement.cpus()),
        placement.notes().to_vec(),
        loads,
    ))
}

fn point(threads: usize, vars: u64, choice: Choice, cpus: &[Option<usize>]) -> Point {
    Point {
        threads,
        servers: (threads / 4).max(1),
        vars,
        window: 256,
        load: None,
        lines: Default::default(),
        fibres: 0,
        choice,
        seed: 1,
        placement: cpus.into(),
    }
}

/// Builds all points of a contest, with the methods of one point next to each other.
pub(super) fn of<W: Copy>(
    host: &Host,
    quick: bool,
    contest: &Contest<W>,
) -> Result<Vec<Item<W>>, String> {
    let (mut items, threads) = (Vec::new(), threads(host.topology.parallelism(), quick));
    for &threads_here in &threads {
        let placement = host.place(&Order::CoresFirst, threads_here)?;
        let most = threads.last() == Some(&threads_here);
        let vars = if most {
            &contest.vars
        } else {
            &contest.vars_of_fewer
        };
        for &vars in vars {
            let point = point(threads_here, vars, contest.choice, placement.cpus());
            items.extend(contest.entries.iter().map(|entry| Item {
                method: entry.method,
                point: point.clone(),
                notes: placement.notes().to_vec(),
            }));
        }
    }
    Ok(items)
}

/// Returns the numbers of threads to measure on so many CPUs, ascending.
fn threads(cpus: usize, quick: bool) -> Vec<usize> {
    let all = cpus.max(2);
    let mut threads = if quick {
        vec![2]
    } else {
        vec![2, all / 4, all / 2]
    };
    threads.retain(|&t| (2..all).contains(&t));
    threads.dedup();
    threads.push(all);
    threads
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_cpus_have_one_number_of_threads() {
        assert_eq!(threads(1, false), [2]);
        assert_eq!(threads(2, false), [2]);
        assert_eq!(threads(2, true), [2]);
    }

    #[test]
    fn many_cpus_have_several() {
        assert_eq!(threads(4, false), [2, 4]);
        assert_eq!(threads(16, false), [2, 4, 8, 16]);
        assert_eq!(threads(128, false), [2, 32, 64, 128]);
        assert_eq!(threads(128, true), [2, 128]);
        assert!((1..300).all(|n| threads(n, false).is_sorted_by(|a, b| a < b)));
    }
}
