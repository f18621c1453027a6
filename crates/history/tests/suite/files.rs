//! Histories in files.

use crate::support::history;
use corelay_history::model::register::{Operation, Output};
use corelay_history::{Call, History, ReadError, transactions};
use serde_json::json;

type Registers = History<Operation<u32>, Output<u32>>;

fn some() -> Registers {
    let mut some: Registers = history([
        (0, Operation::Write(7), 1..=u64::MAX, Output::Written),
        (2, Operation::Read, 2..=3, Output::Value(7)),
    ]);
    let exchange = Operation::CompareExchange { current: 7, new: 8 };
    some.push(2, Call::pending(exchange, 3));
    some
}

fn written(history: &Registers) -> String {
    let mut bytes = Vec::new();
    history.write(&mut bytes).unwrap();
    String::from_utf8(bytes).unwrap()
}

fn read(text: &str) -> Result<Registers, ReadError> {
    History::read(text.as_bytes())
}

#[track_caller]
fn error(text: &str) -> String {
    let error = read(text).expect_err("not a history").to_string();
    assert!(!error.contains('\n'), "{error}");
    error
}

#[test]
fn a_saved_history_is_loaded() {
    let file = tempfile::NamedTempFile::new().unwrap();
    some().save(file.path()).unwrap();
    assert_eq!(Registers::load(file.path()).unwrap(), some());
    assert_eq!(
        std::fs::read_to_string(file.path()).unwrap(),
        "{\"format\":\"corelay-history\",\"version\":1,\"threads\":3,\"calls\":3}\n\
         {\"thread\":0,\"operation\":{\"Write\":7},\"invoked\":1,\"returned\":[18446744073709551615,\"Written\"]}\n\
         {\"thread\":2,\"operation\":\"Read\",\"invoked\":2,\"returned\":[3,{\"Value\":7}]}\n\
         {\"thread\":2,\"operation\":{\"CompareExchange\":{\"current\":7,\"new\":8}},\"invoked\":3}\n"
    );
    let mut empty = Registers::new();
    assert_eq!(read(&written(&empty)).unwrap(), empty);
    empty.push(1, Call::pending(Operation::Read, 0));
    assert_eq!(read(&written(&empty)).unwrap(), empty);
}

/// Wherever the file ends, the line at which it does is named.
#[test]
fn a_file_that_is_cut_names_the_line() {
    let whole = written(&some());
    // Without its last line feed it is whole still.
    assert_eq!(read(&whole[..whole.len() - 1]).unwrap(), some());
    for end in 0..whole.len() - 1 {
        let text = &whole[..end];
        // Where just the line feed is missing, the next line is.
        let missing = usize::from(whole[end..].starts_with('\n'));
        let line = text.matches('\n').count() + 1 + missing;
        let error = error(text);
        assert!(
            error.starts_with(&format!("line {line}: ")),
            "{end}: {error}"
        );
        assert!(line == 1 || error.contains("cut off"), "{end}: {error}");
    }
}

#[test]
fn a_file_without_a_history_is_refused() {
    for foreign in [
        "",
        "\n",
        "hello",
        "{}",
        "[1]",
        "{\"format\":\"csv\",\"version\":1}\n",
        "\0\u{1}",
    ] {
        assert!(
            error(foreign).starts_with("line 1: this is no history"),
            "{foreign:?}"
        );
    }
    let newer = written(&some()).replace("\"version\":1", "\"version\":2");
    assert!(
        error(&newer).starts_with("line 1: the history is of version 2"),
        "{newer}"
    );
    // Bytes that are no text.
    let mut bytes = written(&some()).into_bytes();
    let third = bytes
        .iter()
        .enumerate()
        .filter(|(_, b)| **b == b'\n')
        .nth(1)
        .unwrap()
        .0;
    bytes[third + 3] = 0xff;
    let error = Registers::read(&bytes[..]).unwrap_err().to_string();
    assert!(error.starts_with("line 3: "), "{error}");
}

#[test]
fn a_line_that_is_wrong_is_named() {
    let good = written(&some());
    for (from, to, line, word) in [
        ("\"Read\"", "\"Dequeue\"", 3, "Dequeue"),
        (
            "\"returned\":[3",
            "\"returned\":[1",
            3,
            "before it was invoked",
        ),
        ("\"thread\":0", "\"thread\":3", 2, "not one of 3"),
        (
            "\"invoked\":3",
            "\"invoked\":1",
            4,
            "after a call invoked at 2",
        ),
        ("\"invoked\":3", "\"at\":3", 4, "at"),
        ("\"calls\":3", "\"calls\":2", 4, "no more than 3 lines"),
        ("\"calls\":3", "\"calls\":\"3\"", 1, "string"),
        ("\"threads\":3", "\"threads\":999999999999", 1, "threads"),
        ("{\"thread\":0", "\n{\"thread\":0", 2, "EOF"),
    ] {
        let bad = good.replacen(from, to, 1);
        let error = error(&bad);
        assert!(
            error.starts_with(&format!("line {line}: ")),
            "{to}: {error}"
        );
        assert!(error.contains(word), "{to}: {error}");
        assert!(!error.contains("column"), "{to}: {error}");
    }
    let missing = Registers::load("/no/such/file").unwrap_err();
    assert!(
        matches!(missing, ReadError::Io { line: 0, .. }),
        "{missing}"
    );
}

/// The thread without calls, too, and the call that never returned.
#[test]
fn a_history_is_a_value_for_serde() {
    let value = serde_json::to_value(some()).unwrap();
    let written = json!([
        [{ "operation": { "Write": 7 }, "invoked": 1, "returned": [u64::MAX, "Written"] }],
        [],
        [
            { "operation": "Read", "invoked": 2, "returned": [3, { "Value": 7 }] },
            { "operation": { "CompareExchange": { "current": 7, "new": 8 } }, "invoked": 3 },
        ],
    ]);
    assert_eq!(value, written);
    assert_eq!(serde_json::from_value::<Registers>(value).unwrap(), some());
    let text = serde_json::to_string(&some()).unwrap();
    assert_eq!(serde_json::from_str::<Registers>(&text).unwrap(), some());
    let silent: Registers = serde_json::from_value(json!([[], []])).unwrap();
    assert_eq!((silent.threads(), silent.len()), (2, 0));
}

#[test]
fn a_value_that_is_no_history_is_refused() {
    let refused = |value| {
        serde_json::from_value::<Registers>(value)
            .unwrap_err()
            .to_string()
    };
    let read = |invoked, returned| json!({ "operation": "Read", "invoked": invoked, "returned": returned });
    let late = refused(json!([[read(5, json!([4, { "Value": 0 }]))]]));
    assert_eq!(late, "the call returned at 4, before it was invoked at 5");
    let unordered = refused(json!([[], [read(5, json!(null)), read(4, json!(null))]]));
    assert_eq!(
        unordered,
        "thread 1 invoked this at 4, after a call invoked at 5"
    );
    let other = refused(json!([[{ "operation": "Read", "invoked": 1, "output": 3 }]]));
    assert!(other.contains("unknown field `output`"), "{other}");
}

#[test]
fn a_history_of_transactions_is_a_value_for_serde() {
    let mut recorder = transactions::Recorder::new();
    recorder.begin();
    recorder.read(3u64, None);
    recorder.write(4, 17);
    recorder.end(transactions::Outcome::Committed);
    recorder.begin();
    let history: transactions::History = [recorder].into_iter().collect();
    let text = serde_json::to_string(&history).unwrap();
    assert_eq!(
        serde_json::from_str::<transactions::History>(&text).unwrap(),
        history
    );
}
