//! The targets of the course (L1, L6): the top of the ladder beside its bottom, and the pool beside
//! the system's allocator.

use super::Bound::AtLeast;
use super::{Figure, Target};
use corelay_lab_course::list::climb::Point;
use corelay_lab_course::list::job::Pages;
use corelay_lab_course::list::ladder::PADDING;
use corelay_lab_course::list::rungs;

/// Keys of each thread: some milliseconds of the quickest rung.
const SHARE: usize = 2_000_000;

/// Parts of a thread: the source's four leave the others waiting for up to a quarter of a thread's
/// work; the sweep of `lab list` finds no price of sixteen.
const PARTS: usize = 16;

/// A rung at a point, and the name that targets know it by.
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
        top: Figure::Mops(of[0]),
        bottom: Figure::Mops(of[1]),
        near: AtLeast(least),
        far: AtLeast(least),
    }
}

/// What is promised.
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

/// Seconds that the whole course may take with `--yes`.
pub(crate) const LONGEST: f64 = 180.0;

/// Everything that is measured, by name.
pub(crate) fn points() -> Vec<(&'static str, Point)> {
    let point = |&(name, rung, threads, pages): &(&'static str, &str, usize, Pages)| {
        let point = Point {
            rung: rungs::named(rung).expect("the table names rungs"),
            threads,
            share: SHARE,
            parts: PARTS * threads,
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
    fn targets_speak_of_contenders() {
        let names: Vec<_> = points().into_iter().map(|(name, _)| name).collect();
        for target in TARGETS {
            for name in target.top.methods().iter().chain(target.bottom.methods()) {
                assert!(names.contains(name), "{name}");
            }
        }
    }
}
