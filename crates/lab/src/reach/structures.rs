//! The targets of structures: a shared list, queue and stack against locks, and the literature's
//! structures against those of other crates.

use super::Bound::AtLeast;
use super::Term::{Best, Mops};
use super::{Bound, Target};
use corelay_lab_measure::workload::point::Point;

/// A structure's methods and targets. All of its methods are sampled in turn.
pub(crate) struct Row {
    /// The methods that are measured on two threads.
    pub methods: &'static [&'static str],
    /// The targets.
    pub targets: &'static [Target],
}

/// The method that is also measured on one thread alone, and the name of that run.
pub(crate) const ALONE: (&str, &str) = ("mutex", "one thread alone");

const THEN: super::Term = Mops("trust-then");
/// A target that is not demanded in one of the modes. The ratio is shown.
const SHOWN: Bound = AtLeast(0.0);

const fn near(what: &'static str, top: super::Term, bottom: super::Term, least: f64) -> Target {
    Target {
        what,
        top,
        bottom,
        near: AtLeast(least),
        far: SHOWN,
    }
}

const fn both(what: &'static str, top: super::Term, bottom: super::Term, least: f64) -> Target {
    Target {
        what,
        top,
        bottom,
        near: AtLeast(least),
        far: AtLeast(least),
    }
}

/// The queue: of its rivals, the best one stands against the crate's.
pub(crate) const QUEUE: Row = Row {
    methods: &[
        "mutex",
        "flat-combining",
        "trust-then",
        "two-lock",
        "michael-scott",
        "block-queue",
        "seg-queue",
    ],
    targets: &[
        near("queue: trust-then / mutex", THEN, Mops("mutex"), 4.0),
        near(
            "queue: trust-then / flat-combining",
            THEN,
            Mops("flat-combining"),
            2.0,
        ),
        both(
            "queue: block-queue / seg-queue",
            Mops("block-queue"),
            Mops("seg-queue"),
            1.0,
        ),
        both(
            "queue: trust-then / best direct one",
            THEN,
            Best(&["two-lock", "michael-scott", "block-queue", "seg-queue"]),
            0.0,
        ),
    ],
};

pub(crate) const STACK: Row = Row {
    methods: &[
        "mutex",
        "flat-combining",
        "trust-then",
        "treiber",
        "elimination",
    ],
    targets: &[
        near("stack: trust-then / mutex", THEN, Mops("mutex"), 4.0),
        near(
            "stack: trust-then / flat-combining",
            THEN,
            Mops("flat-combining"),
            2.0,
        ),
    ],
};

/// The sorted list of 1,024 nodes, with 30 % updates. The time to walk along it dwarfs a free
/// mutex, so one thread with a mutex stands for the plain list.
pub(crate) const LIST: Row = Row {
    methods: &["mutex", "trust-then", "lazy-list", "harris-michael"],
    targets: &[both(
        "list: trust-then / one thread alone",
        THEN,
        Mops(ALONE.1),
        0.95,
    )],
};

pub(crate) const HASH: Row = Row {
    methods: &[
        "mutex",
        "trust-then",
        "bucket-locks",
        "dashmap",
        "papaya",
        "scc",
    ],
    targets: &[both(
        "hash: bucket-locks / best crate",
        Mops("bucket-locks"),
        Best(&["dashmap", "papaya", "scc"]),
        1.0,
    )],
};

pub(crate) const SKIP_LIST: Row = Row {
    methods: &[
        "mutex",
        "trust-then",
        "optimistic",
        "crossbeam-skiplist",
        "scc-tree",
    ],
    targets: &[
        both(
            "skip-list: optimistic / crossbeam",
            Mops("optimistic"),
            Mops("crossbeam-skiplist"),
            1.0,
        ),
        // Not a skip list, but an ordered map: the ratio is shown.
        both(
            "skip-list: optimistic / scc-tree",
            Mops("optimistic"),
            Mops("scc-tree"),
            0.0,
        ),
    ],
};

/// Returns the point of `threads` threads that share one structure. One thread is a trustee, where
/// the method has one.
pub(crate) fn point(threads: usize) -> Point {
    Point {
        window: 256,
        ..Point::small(threads)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reach::Term;
    use corelay_lab_measure::method::named;
    use corelay_lab_measure::workload::operation::Workload;
    use corelay_lab_measure::workload::structure::seq::{
        ChainedMap, SkipList, SortedList, VecDeque,
    };
    use corelay_lab_measure::workload::structure::{SharedStructure, Structure};

    fn has_all<S: Structure>(row: &Row) {
        let known = SharedStructure::<S>::methods();
        for name in row.methods {
            assert!(named(&known, name).is_some_and(|m| m.is_ok()), "{name}");
        }
        for target in row.targets {
            let names = [target.top, target.bottom];
            for name in names.iter().flat_map(Term::methods) {
                assert!(*name == ALONE.1 || row.methods.contains(name), "{name}");
            }
        }
        assert!(row.methods.contains(&ALONE.0));
    }

    #[test]
    fn each_structure_has_the_methods_of_its_targets() {
        has_all::<VecDeque<u64>>(&QUEUE);
        has_all::<Vec<u64>>(&STACK);
        has_all::<SortedList<u64>>(&LIST);
        has_all::<ChainedMap<u64, u64>>(&HASH);
        has_all::<SkipList<u64, u64>>(&SKIP_LIST);
    }
}
