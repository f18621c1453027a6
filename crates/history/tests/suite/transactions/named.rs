//! Each anomaly in a history written by hand, forbidden at some levels and allowed at the weaker.

use corelay_history::Call;
use corelay_history::transactions::{
    History, Kind, Level, Operation, Operation::*, Outcome, Outcome::*, check,
};
use std::ops::RangeInclusive;

type Op = Operation<&'static str>;

/// A history of transactions of threads 0, 1, 2 and so on, all of which overlap.
fn concurrent<const N: usize>(transactions: [(Outcome, Vec<Op>); N]) -> History<&'static str> {
    let mut history = History::new();
    for (thread, (outcome, operations)) in transactions.into_iter().enumerate() {
        history.push(thread, Call::returned(operations, 0..=9, outcome));
    }
    history
}

/// A history of committed transactions, each with its time.
fn timed<const N: usize>(
    transactions: [(RangeInclusive<u64>, Vec<Op>); N],
) -> History<&'static str> {
    let mut history = History::new();
    for (thread, (when, operations)) in transactions.into_iter().enumerate() {
        history.push(thread, Call::returned(operations, when, Committed));
    }
    history
}

/// The kinds of anomalies that a level finds.
fn kinds(history: &History<&'static str>, level: Level) -> Vec<Kind> {
    match check(history, level) {
        Ok(_) => Vec::new(),
        Err(found) => found.counts().map(|(kind, _)| kind).collect(),
    }
}

/// Checks that exactly these levels find anomalies, of exactly these kinds.
#[track_caller]
fn found(history: &History<&'static str>, expected: &[(Level, &[Kind])]) {
    for level in Level::ALL {
        let expected = expected.iter().find(|(at, _)| *at == level);
        let expected = expected.map_or(&[][..], |(_, kinds)| *kinds);
        assert_eq!(kinds(history, level), expected, "{level}");
    }
}

/// Checks that each level from `weakest` on finds just this kind, and the weaker ones nothing.
#[track_caller]
fn found_from(history: &History<&'static str>, weakest: Level, kind: Kind) {
    for level in Level::ALL {
        let without_time =
            weakest == Level::StrongSnapshotIsolation && level == Level::Serializable;
        let forbids = level as u8 >= weakest as u8 && !without_time;
        let expected: &[Kind] = if forbids { &[kind] } else { &[] };
        assert_eq!(kinds(history, level), expected, "{level}");
        assert_eq!(level.forbids(kind), forbids, "{level}");
    }
}

#[test]
fn garbage_read() {
    let history = concurrent([(Committed, vec![Read("x", Some(7))])]);
    found_from(&history, Level::ReadUncommitted, Kind::Garbage);
    let history = concurrent([
        (Committed, vec![Append("x", 1)]),
        (Committed, vec![ReadList("x", vec![1, 7])]),
    ]);
    found_from(&history, Level::ReadUncommitted, Kind::Garbage);
}

#[test]
fn duplicate_value() {
    let history = concurrent([
        (Committed, vec![Append("x", 1)]),
        (Committed, vec![ReadList("x", vec![1, 1])]),
    ]);
    found_from(&history, Level::ReadUncommitted, Kind::Duplicate);
}

#[test]
fn own_write_unseen() {
    for operations in [
        vec![Write("x", 1), Read("x", None)],
        vec![Write("x", 1), Write("x", 2), Read("x", Some(1))],
        vec![Append("x", 1), ReadList("x", vec![])],
        vec![Append("x", 1), Append("x", 2), ReadList("x", vec![2, 1])],
        vec![Append("x", 1), Append("x", 2), ReadList("x", vec![1])],
        // Seen before it was made.
        vec![Read("x", Some(1)), Write("x", 1)],
        vec![ReadList("x", vec![1]), Append("x", 1)],
    ] {
        let history = concurrent([(Committed, operations)]);
        found_from(&history, Level::ReadUncommitted, Kind::Internal);
    }
    let history = concurrent([
        (Committed, vec![Write("x", 2)]),
        (Committed, vec![Write("x", 1), Read("x", Some(2))]),
    ]);
    found_from(&history, Level::ReadUncommitted, Kind::Internal);
}

#[test]
fn own_write_seen() {
    let history = concurrent([
        (Committed, vec![Append("x", 9)]),
        (
            Committed,
            vec![
                ReadList("x", vec![9]),
                Append("x", 1),
                ReadList("x", vec![9, 1]),
                Append("x", 2),
                ReadList("x", vec![9, 1, 2]),
                Read("y", None),
                Write("y", 1),
                Read("y", Some(1)),
                Write("y", 2),
                Read("y", Some(2)),
            ],
        ),
    ]);
    found(&history, &[]);
}

/// Two writers, whose writes of two keys are in different orders.
#[test]
fn g0_dirty_write() {
    let lists = concurrent([
        (Committed, vec![Append("x", 1), Append("y", 1)]),
        (Committed, vec![Append("x", 2), Append("y", 2)]),
        (
            Committed,
            vec![ReadList("x", vec![1, 2]), ReadList("y", vec![2, 1])],
        ),
    ]);
    found_from(&lists, Level::ReadUncommitted, Kind::G0);
    // In one list.
    let torn = concurrent([
        (Committed, vec![Append("x", 1), Append("x", 3)]),
        (Committed, vec![Append("x", 2)]),
        (Committed, vec![ReadList("x", vec![1, 2, 3])]),
    ]);
    found_from(&torn, Level::ReadUncommitted, Kind::G0);
    // Registers tell their order by who read what before writing.
    let registers = concurrent([
        (
            Committed,
            vec![Write("x", 1), Read("y", Some(2)), Write("y", 1)],
        ),
        (
            Committed,
            vec![Read("x", Some(1)), Write("x", 2), Write("y", 2)],
        ),
    ]);
    found_from(&registers, Level::ReadUncommitted, Kind::G0);
}

#[test]
fn g1a_aborted_read() {
    let history = concurrent([
        (Aborted, vec![Write("x", 1)]),
        (Committed, vec![Read("x", Some(1))]),
    ]);
    found_from(&history, Level::ReadCommitted, Kind::G1a);
    let history = concurrent([
        (Aborted, vec![Append("x", 1)]),
        (Committed, vec![Append("x", 2)]),
        (Committed, vec![ReadList("x", vec![1, 2])]),
    ]);
    found_from(&history, Level::ReadCommitted, Kind::G1a);
}

/// A transaction of unknown outcome whose write was read has committed.
#[test]
fn unknown_outcome() {
    let mut history = concurrent([(Committed, vec![Read("x", Some(1))])]);
    history.push(1, Call::pending(vec![Write("x", 1), Write("y", 1)], 5));
    history.push(1, Call::pending(vec![Read("y", None), Write("z", 1)], 5));
    found(&history, &[]);
    assert_eq!(
        check(&history, Level::StrictSerializable)
            .unwrap()
            .committed,
        2
    );
    // So its other writes have happened too.
    history.push(
        2,
        Call::returned(vec![Read("x", Some(1)), Read("y", None)], 0..=9, Committed),
    );
    found_from(&history, Level::SnapshotIsolation, Kind::GSingle);
    // It may have committed long after it began, but not before.
    let mut history = timed([(0..=1, vec![Read("x", Some(1))])]);
    history.push(1, Call::pending(vec![Write("x", 1)], 5));
    found_from(&history, Level::StrongSnapshotIsolation, Kind::G1cRealtime);
}

#[test]
fn g1b_intermediate_read() {
    let history = concurrent([
        (Committed, vec![Write("x", 1), Write("x", 2)]),
        (Committed, vec![Read("x", Some(1))]),
    ]);
    found_from(&history, Level::ReadCommitted, Kind::G1b);
    let history = concurrent([
        (Committed, vec![Append("x", 1), Append("x", 2)]),
        (Committed, vec![ReadList("x", vec![1])]),
        (Committed, vec![ReadList("x", vec![1, 2])]),
    ]);
    found_from(&history, Level::ReadCommitted, Kind::G1b);
}

#[test]
fn incompatible_orders() {
    let history = concurrent([
        (Committed, vec![Append("x", 1)]),
        (Committed, vec![Append("x", 2)]),
        (Committed, vec![ReadList("x", vec![1, 2])]),
        (Committed, vec![ReadList("x", vec![2])]),
    ]);
    found_from(&history, Level::ReadCommitted, Kind::IncompatibleOrder);
}

/// The example of Elle's documentation.
#[test]
fn g1c_circular_information_flow() {
    let history = concurrent([
        (Committed, vec![Write("x", 1), Read("y", Some(1))]),
        (Committed, vec![Write("y", 1), Read("x", Some(1))]),
    ]);
    found_from(&history, Level::ReadCommitted, Kind::G1c);
    let history = concurrent([
        (Committed, vec![Append("x", 1), ReadList("y", vec![1])]),
        (Committed, vec![Append("x", 2), Append("y", 1)]),
        (Committed, vec![ReadList("x", vec![1, 2])]),
    ]);
    found_from(&history, Level::ReadCommitted, Kind::G1c);
}

#[test]
fn non_repeatable_read() {
    let history = concurrent([
        (Committed, vec![Write("x", 1)]),
        (Committed, vec![Write("x", 2)]),
        (Committed, vec![Read("x", Some(1)), Read("x", Some(2))]),
    ]);
    found_from(&history, Level::SnapshotIsolation, Kind::NonRepeatableRead);
    // If the order of the versions is known, there is a cycle as well.
    let history = concurrent([
        (Committed, vec![Append("x", 1)]),
        (
            Committed,
            vec![ReadList("x", vec![]), ReadList("x", vec![1])],
        ),
    ]);
    let both: &[Kind] = &[Kind::NonRepeatableRead, Kind::GSingle];
    found(
        &history,
        &[
            (Level::SnapshotIsolation, both),
            (Level::StrongSnapshotIsolation, both),
            (Level::Serializable, both),
            (Level::StrictSerializable, both),
        ],
    );
}

#[test]
fn lost_update() {
    let history = concurrent([
        (Committed, vec![Read("x", None), Write("x", 1)]),
        (Committed, vec![Read("x", None), Write("x", 2)]),
    ]);
    found_from(&history, Level::SnapshotIsolation, Kind::LostUpdate);
    let history = concurrent([
        (Committed, vec![ReadList("x", vec![]), Append("x", 1)]),
        (Committed, vec![ReadList("x", vec![]), Append("x", 2)]),
        (Committed, vec![ReadList("x", vec![1, 2])]),
    ]);
    found_from(&history, Level::SnapshotIsolation, Kind::LostUpdate);
}

/// A reader sees one write of a transaction and misses the other.
#[test]
fn g_single_read_skew() {
    let history = concurrent([
        (Committed, vec![Write("x", 1), Write("y", 1)]),
        (Committed, vec![Read("x", None), Read("y", Some(1))]),
    ]);
    found_from(&history, Level::SnapshotIsolation, Kind::GSingle);
    let history = concurrent([
        (Committed, vec![Append("x", 1), Append("y", 1)]),
        (
            Committed,
            vec![ReadList("x", vec![]), ReadList("y", vec![1])],
        ),
    ]);
    found_from(&history, Level::SnapshotIsolation, Kind::GSingle);
}

/// Two readers see two independent writes in different orders ("long fork").
#[test]
fn g_nonadjacent_long_fork() {
    let history = concurrent([
        (Committed, vec![Write("x", 1)]),
        (Committed, vec![Write("y", 1)]),
        (Committed, vec![Read("x", Some(1)), Read("y", None)]),
        (Committed, vec![Read("x", None), Read("y", Some(1))]),
    ]);
    found_from(&history, Level::SnapshotIsolation, Kind::GNonadjacent);
}

#[test]
fn g2_item_write_skew() {
    let history = concurrent([
        (Committed, vec![Read("x", None), Write("y", 1)]),
        (Committed, vec![Read("y", None), Write("x", 1)]),
    ]);
    found_from(&history, Level::Serializable, Kind::G2Item);
    let history = concurrent([
        (Committed, vec![ReadList("x", vec![]), Append("y", 1)]),
        (Committed, vec![ReadList("y", vec![]), Append("x", 1)]),
    ]);
    found_from(&history, Level::Serializable, Kind::G2Item);
}

/// The anomaly of a read-only transaction (Fekete, O'Neil, O'Neil 2004).
#[test]
fn g2_item_seen_by_a_reader() {
    let history = concurrent([
        (Committed, vec![Write("savings", 20)]),
        (
            Committed,
            vec![
                Read("savings", None),
                Read("checking", None),
                Write("checking", 11),
            ],
        ),
        (
            Committed,
            vec![Read("savings", Some(20)), Read("checking", None)],
        ),
    ]);
    found_from(&history, Level::Serializable, Kind::G2Item);
}

#[test]
fn g0_realtime() {
    let history = timed([
        (0..=1, vec![Append("x", 1)]),
        (2..=3, vec![Append("x", 2)]),
        (0..=9, vec![ReadList("x", vec![2, 1])]),
    ]);
    found_from(&history, Level::StrongSnapshotIsolation, Kind::G0Realtime);
}

/// A read of a write that had not begun.
#[test]
fn g1c_realtime() {
    let history = timed([
        (0..=1, vec![Read("x", Some(1))]),
        (2..=3, vec![Write("x", 1)]),
    ]);
    found_from(&history, Level::StrongSnapshotIsolation, Kind::G1cRealtime);
}

#[test]
fn g_single_realtime_stale_read() {
    let stale = |read| timed([(0..=1, vec![Write("x", 1)]), (read, vec![Read("x", None)])]);
    found_from(
        &stale(2..=3),
        Level::StrongSnapshotIsolation,
        Kind::GSingleRealtime,
    );
    // Equal stamps are overlap.
    found(&stale(1..=3), &[]);
}

/// The versions of a register that nobody read before writing it have an order in real time.
/// Two writes that nobody has read before he wrote, at the same time. The second one's value is read
/// after the first has ended, so the first was replaced by it.
#[test]
fn version_that_is_read_late_follows_what_was_there() {
    let history = timed([
        (0..=5, vec![Write("x", 1), Write("y", 1)]),
        (0..=6, vec![Read("x", None), Write("y", 2)]),
        (7..=8, vec![Read("y", Some(2))]),
    ]);
    found_from(
        &history,
        Level::StrongSnapshotIsolation,
        Kind::GSingleRealtime,
    );
    let text = check(&history, Level::StrictSerializable)
        .unwrap_err()
        .to_string();
    assert!(
        text.contains("was there before somebody began that knew"),
        "{text}"
    );
}

#[test]
fn stale_read_of_blind_writes() {
    let mut history = timed([
        (0..=1, vec![Write("x", 1)]),
        (2..=3, vec![Write("x", 2)]),
        (4..=5, vec![Read("x", Some(1))]),
    ]);
    found_from(
        &history,
        Level::StrongSnapshotIsolation,
        Kind::GSingleRealtime,
    );
    // The first write may have happened late, but a reader had seen it.
    history = timed([
        (0..=9, vec![Write("x", 1)]),
        (0..=1, vec![Read("x", Some(1))]),
        (2..=3, vec![Write("x", 2)]),
        (4..=5, vec![Read("x", Some(1))]),
    ]);
    found_from(
        &history,
        Level::StrongSnapshotIsolation,
        Kind::GSingleRealtime,
    );
    history = timed([
        (0..=9, vec![Write("x", 1)]),
        (2..=3, vec![Write("x", 2)]),
        (4..=5, vec![Read("x", Some(1))]),
    ]);
    found(&history, &[]);
}

/// A long fork whose second reader need not see the first write, had that not ended before.
#[test]
fn g_nonadjacent_realtime() {
    let history = timed([
        (0..=9, vec![Read("x", None), Read("y", Some(1))]),
        (0..=1, vec![Write("x", 1)]),
        (2..=9, vec![Read("y", None)]),
        (0..=9, vec![Write("y", 1)]),
    ]);
    let kind = Kind::GNonadjacentRealtime;
    found_from(&history, Level::StrongSnapshotIsolation, kind);
}

/// A write skew with a third transaction in it, which ended before the first began.
#[test]
fn g2_item_realtime() {
    let history = timed([
        (2..=9, vec![Read("x", None)]),
        (0..=9, vec![Write("x", 1), Read("y", None)]),
        (0..=1, vec![Write("y", 1)]),
    ]);
    found_from(&history, Level::StrictSerializable, Kind::G2ItemRealtime);
}

/// Many readers of a version, and many writers that might have overwritten it.
#[test]
fn many_readers_and_writers() {
    let mut history = concurrent([(Committed, vec![Read("x", None), Write("x", 0)])]);
    for n in 1..30 {
        history.push(1, Call::returned(vec![Read("x", None)], 0..=9, Committed));
        history.push(2, Call::returned(vec![Write("x", n)], 0..=9, Committed));
    }
    found(&history, &[]);
    let mut skewed = history.clone();
    skewed.push(
        3,
        Call::returned(vec![Write("x", 30), Write("y", 1)], 0..=9, Committed),
    );
    skewed.push(
        3,
        Call::returned(vec![Read("y", Some(1)), Read("x", None)], 0..=9, Committed),
    );
    found_from(&skewed, Level::SnapshotIsolation, Kind::GSingle);
    let anomalies = check(&skewed, Level::Serializable).unwrap_err();
    assert_eq!(anomalies.worst().steps().len(), 2, "{anomalies}");
    let mut skewed = history.clone();
    skewed.push(
        3,
        Call::returned(vec![Read("x", None), Write("y", 1)], 0..=9, Committed),
    );
    skewed.push(
        3,
        Call::returned(vec![Read("y", None), Write("x", 30)], 0..=9, Committed),
    );
    found_from(&skewed, Level::Serializable, Kind::G2Item);
    // One that reads and writes, and thus does not precede itself.
    history.push(
        3,
        Call::returned(vec![Write("y", 1), Write("x", 31)], 0..=9, Committed),
    );
    history.push(
        4,
        Call::returned(
            vec![Read("y", Some(1)), Read("x", Some(0))],
            0..=9,
            Committed,
        ),
    );
    found(&history, &[]);
    // Many that do both.
    for n in 40..60 {
        history.push(
            3,
            Call::returned(vec![Read("x", None), Write("x", n)], 0..=9, Committed),
        );
    }
    found_from(&history, Level::SnapshotIsolation, Kind::LostUpdate);
}

/// The store's own order of versions, where reads do not tell it.
#[test]
fn places_of_commits() {
    let history = |x1: Outcome, x2: Outcome| {
        let mut history = timed([(2..=3, vec![Write("x", 2)])]);
        history.push(1, Call::returned(vec![Write("x", 1)], 0..=1, x1));
        let mut writes = history;
        writes.push(
            2,
            Call::returned(vec![Read("x", Some(2)), Write("x", 3)], 4..=5, x2),
        );
        writes
    };
    found(&history(Committed, Committed), &[]);
    found(&history(CommittedAt(1), CommittedAt(2)), &[]);
    // 3 is before 1, though it came after it.
    let wrong = history(CommittedAt(2), CommittedAt(1));
    found_from(&wrong, Level::StrongSnapshotIsolation, Kind::G0Realtime);
    // Two keys in different orders.
    let history = concurrent([
        (CommittedAt(1), vec![Write("x", 1)]),
        (CommittedAt(2), vec![Write("x", 2), Write("y", 2)]),
        (Committed, vec![Read("x", Some(1)), Read("y", Some(2))]),
    ]);
    found_from(&history, Level::SnapshotIsolation, Kind::GSingle);
}

#[test]
#[should_panic(expected = "value 1 is written to key \"x\" a second time")]
fn values_must_differ() {
    let history = concurrent([
        (Aborted, vec![Write("x", 1)]),
        (Committed, vec![Write("x", 1)]),
    ]);
    let _ = check(&history, Level::Serializable);
}

#[test]
#[should_panic(expected = "key \"x\" is used as a register and as a list")]
fn keys_keep_their_kind() {
    let history = concurrent([(Committed, vec![Write("x", 1), ReadList("x", vec![])])]);
    let _ = check(&history, Level::Serializable);
}
