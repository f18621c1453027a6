//! The targets of the course (L1, L6): the last rungs of the ladder against the first, and the pool
//! against the system's allocator.

use super::Bound::AtLeast;
use super::{Target, Term};
use corelay_lab_course::list::climb::Point;
use corelay_lab_course::list::job::Pages;
use corelay_lab_course::list::ladder::PADDING;
use corelay_lab_course::list::rungs;

/// Keys of each thread. The fastest rung inserts them in some milliseconds.
const SHARE: usize = 2_000_000;

/// Parts of each thread's keys. With the source's four, a thread may wait for a quarter of another
/// thread's work; sixteen cost nothing, as the sweep of `lab list` shows.
const PARTS: usize = 16;

/// The measured rungs: the name that targets use, the rung, its threads, and its memory.
const CONTENDERS: &[(&str, &str, usize, Pages)] = &[
    ("biglock", "biglock", 2, Pages::Touched),
    ("padded on 1", "padded", 1, Pages::Touched),
    ("padded", "padded", 2, Pages::Touched),
    ("pool on 1", "pool", 1, Pages::Touched),
    ("pool", "pool", 2, Pages::Touched),
    ("system on 1", "system", 1, Pages::Touched),
    ("system", "system", 2, Pages::Touched),
    ("pool, recycled", "pool", 2, Pages::Recycled),
    ("system, recycled", "system", 2, Pages::Recycled),
];

const fn target(what: &'static str, of: [&'static str; 2], least: f64) -> Target {
    Target {
        what,
        top: Term::Mops(of[0]),
        bottom: Term::Mops(of[1]),
        near: AtLeast(least),
        far: AtLeast(least),
    }
}

/// The targets of the course.
pub(crate) const TARGETS: &[Target] = &[
    target("padded, 2 threads / 1", ["padded", "padded on 1"], 1.8),
    target("pool, 2 threads / 1", ["pool", "pool on 1"], 1.8),
    target("padded / biglock", ["padded", "biglock"], 5.0),
    target("pool / biglock", ["pool", "biglock"], 5.0),
    target("pool / system, 1 thread", ["pool on 1", "system on 1"], 2.0),
    target("pool / system", ["pool", "system"], 2.0),
    target(
        "pool / system, recycled",
        ["pool, recycled", "system, recycled"],
        2.0,
    ),
];

/// The most seconds that the whole course may take with `--yes`.
pub(crate) const MAX_SECONDS: f64 = 180.0;

/// Returns the points that are measured, each with the name that targets use.
pub(crate) fn points() -> Vec<(&'static str, Point)> {
    let point = |&(name, rung, threads, pages): &(&'static str, &str, usize, Pages)| {
        let point = Point {
            rung: rungs::named(rung).expect("the table names rungs"),
            threads,
            share: SHARE,
            parts: PARTS * threads,
            equal_shares: false,
            padding: PADDING,
            pages,
            neighbour: false,
            watched: false,
        };
        (name, point)
    };
    CONTENDERS.iter().map(point).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets_name_measured_points() {
        let names: Vec<_> = points().into_iter().map(|(name, _)| name).collect();
        for target in TARGETS {
            for name in target.top.methods().iter().chain(target.bottom.methods()) {
                assert!(names.contains(name), "{name}");
            }
        }
    }
}
