//! The text and pictures of anomalies.

use corelay_history::Call;
use corelay_history::transactions::{Anomaly, History, Level, Operation::*, Outcome::*, check};

fn write_skew() -> History<&'static str> {
    let mut history = History::new();
    history.push(
        0,
        Call::returned(vec![Read("x", None), Write("y", 1)], 0..=5, Committed),
    );
    history.push(
        1,
        Call::returned(vec![Read("y", None), Write("x", 1)], 1..=4, Committed),
    );
    history
}

/// A cycle through lists and real time, with a long transaction.
fn stale() -> History<&'static str> {
    let mut history = History::new();
    for n in 1..=12 {
        history.push(
            0,
            Call::returned(vec![Append("<a&b>", n)], 10 * n..=10 * n + 5, Committed),
        );
    }
    let mut reads: Vec<_> = vec![ReadList("<a&b>", (1..=11).collect())];
    reads.extend(std::iter::repeat_n(Read("k", None), 9));
    history.push(1, Call::returned(reads, 130..=140, Committed));
    history.push(
        2,
        Call::returned(
            vec![ReadList("<a&b>", (1..=12).collect())],
            3..=150,
            Committed,
        ),
    );
    history
}

#[test]
fn a_cycle_in_words() {
    let error = check(&write_skew(), Level::StrictSerializable).unwrap_err();
    assert_eq!(
        error.to_string(),
        "not strictly serializable: 1 G2-item (write skew)\n\
         \n\
         G2-item (write skew)\n\
         \n\
         T1  transaction 1 of thread 0: read \"x\" -> absent, write \"y\" 1\n\
         T2  transaction 1 of thread 1: read \"y\" -> absent, write \"x\" 1\n\
         \n\
         T1 -rw(\"x\")-> T2: T1 did `read \"x\" -> absent`, which is before T2's `write \"x\" 1`.\n\
         T2 -rw(\"y\")-> T1: T2 did `read \"y\" -> absent`, which is before T1's `write \"y\" 1`.\n\
         \n\
         thread 0  |- T1 -----|\n\
         thread 1    |- T2 -|\n"
    );
    // What `unwrap` prints.
    assert_eq!(format!("{error:?}"), error.to_string());
}

#[test]
fn long_transactions_are_shortened() {
    let error = check(&stale(), Level::StrictSerializable).unwrap_err();
    let text = error.to_string();
    assert!(
        text.contains("read \"<a&b>\" -> [1, 2, .., 8, 9, 10, 11], and 9 more\n"),
        "{text}"
    );
    assert!(text.contains("-real time-> T"), "{text}");
}

/// With `CORELAY_PICTURES=DIR` the pictures are kept, to be looked at.
#[test]
fn pictures() {
    let keep = |name: &str, anomaly: &Anomaly<&'static str>| {
        let svg = anomaly.to_svg();
        assert!(
            svg.starts_with("<svg") && svg.ends_with("</svg>\n"),
            "{svg}"
        );
        assert_eq!(svg.matches("<text").count(), svg.matches("</text>").count());
        assert!(!svg.contains("<a&b>"), "{svg}");
        if let Some(dir) = std::env::var_os("CORELAY_PICTURES") {
            std::fs::write(std::path::Path::new(&dir).join(name), svg).unwrap();
        }
    };
    let anomalies = check(&write_skew(), Level::Serializable).unwrap_err();
    keep("skew.svg", anomalies.worst());
    let anomalies = check(&stale(), Level::StrictSerializable).unwrap_err();
    keep("stale.svg", anomalies.worst());
    let mut fork = History::new();
    let threads = [
        vec![Write("x", 1)],
        vec![Read("x", Some(1)), Read("y", None)],
        vec![Write("y", 1)],
        vec![Read("x", None), Read("y", Some(1))],
    ];
    for (n, operations) in threads.into_iter().enumerate() {
        let from = n as u64;
        fork.push(n, Call::returned(operations, from..=9 - from, Committed));
    }
    let anomalies = check(&fork, Level::SnapshotIsolation).unwrap_err();
    keep("fork.svg", anomalies.worst());
    let mut dirty = History::new();
    dirty.push(0, Call::returned(vec![Write("x", 1)], 0..=4, Aborted));
    dirty.push(
        1,
        Call::returned(vec![Read("x", Some(1))], 2..=6, Committed),
    );
    let anomalies = check(&dirty, Level::ReadCommitted).unwrap_err();
    keep("dirty.svg", anomalies.worst());
    assert_eq!(anomalies.worst().transactions().count(), 2);
}
