//! Recorded transactions, and histories in files.

use crate::support::scaled;
use corelay_history::Call;
use corelay_history::transactions::{
    Access, History, Kind, Level, Operation::*, Outcome::*, Plan, Recorder, check, usable,
};
use std::collections::BTreeMap;
use std::sync::Mutex;

/// Transactions of four threads on a map behind a lock; `release` lets go of it between operations.
fn recorded(transactions: usize, lists: bool, release: bool) -> History {
    let plan = Plan {
        transactions,
        ..Plan::default()
    };
    let store: Mutex<BTreeMap<u64, Vec<u64>>> = Mutex::default();
    let mut recorders: Vec<Recorder> = (0..plan.threads)
        .map(|_| Recorder::with_capacity(plan.transactions))
        .collect();
    std::thread::scope(|s| {
        for (recorder, program) in recorders.iter_mut().zip(plan.programs()) {
            let store = &store;
            s.spawn(move || {
                for accesses in program {
                    recorder.begin();
                    let mut map = store.lock().unwrap();
                    for access in accesses {
                        match access {
                            Access::Read(key) => {
                                let list = map.get(&key).cloned().unwrap_or_default();
                                recorder.note(match lists {
                                    true => ReadList(key, list),
                                    false => Read(key, list.last().copied()),
                                });
                            }
                            Access::Write(key) => {
                                let value = recorder.fresh();
                                recorder.note(match lists {
                                    true => Append(key, value),
                                    false => Write(key, value),
                                });
                                map.entry(key).or_default().push(value);
                            }
                        }
                        if release {
                            drop(map);
                            std::thread::yield_now();
                            map = store.lock().unwrap();
                        }
                    }
                    drop(map);
                    recorder.end(Committed);
                }
            });
        }
    });
    recorders.into_iter().collect()
}

#[test]
fn a_locked_store_is_strictly_serializable() {
    for lists in [true, false] {
        let history = recorded(500, lists, false);
        let checked = check(&history, Level::StrictSerializable).unwrap();
        assert_eq!(checked.committed, 2_000);
        assert!(checked.real_time >= 1_996, "{checked:?}");
    }
}

#[test]
fn a_store_that_lets_go_is_not() {
    // On a single CPU a thread may come through all the same.
    let found = (0..20).any(|_| check(&recorded(500, true, true), Level::ReadCommitted).is_err());
    assert!(found);
}

/// With `CORELAY_STRESS=20` and `--release --nocapture`: how long 100,000 transactions take.
#[test]
fn long_histories_are_checked() {
    for (lists, release) in [(true, false), (false, false), (true, true), (false, true)] {
        let history = recorded(scaled(5_000) / 4, lists, release);
        let model = if lists { "lists" } else { "registers" };
        let kind = if release { "wrong" } else { "right" };
        for level in [
            Level::SnapshotIsolation,
            Level::Serializable,
            Level::StrictSerializable,
        ] {
            let start = std::time::Instant::now();
            let checked = check(&history, level);
            println!(
                "{} transactions, {kind} {model}, {level}: {:?}",
                history.len(),
                start.elapsed()
            );
            assert!(release || checked.is_ok(), "{checked:?}");
        }
    }
}

#[test]
fn retries_are_aborted_attempts() {
    let mut recorder = Recorder::new();
    recorder.begin();
    let mut values = Vec::new();
    for _ in 0..3 {
        recorder.retry();
        let value = recorder.fresh();
        recorder.write("x", value);
        values.push(value);
    }
    recorder.end(CommittedAt(7));
    recorder.begin();
    recorder.read("x", Some(values[2]));
    // Left open, as by a panic.
    recorder.begin();
    recorder.read("x", Some(values[1]));
    recorder.end(Committed);
    let history: History<&str> = [recorder].into_iter().collect();
    let calls = history.calls_of(0);
    let outcomes: Vec<_> = calls.iter().map(|call| call.output().copied()).collect();
    assert_eq!(
        outcomes,
        [
            Some(Aborted),
            Some(Aborted),
            Some(CommittedAt(7)),
            None,
            Some(Committed)
        ]
    );
    assert_eq!(calls[0].invoked(), calls[2].invoked());
    assert!(calls[0].ended() <= calls[2].ended());
    // The last one reads what an attempt wrote.
    let anomalies = check(&history, Level::ReadCommitted).unwrap_err();
    assert_eq!(anomalies.worst().kind(), Kind::G1a);
}

#[test]
fn fresh_values_differ() {
    let mut recorders = [Recorder::<u64>::new(), Recorder::new()];
    let mut values: Vec<u64> = Vec::new();
    for n in 0..5_000 {
        values.push(recorders[n % 2].fresh());
    }
    values.sort_unstable();
    assert!(values[0] > 0 && values.windows(2).all(|pair| pair[0] < pair[1]));
}

/// Transactions of each outcome, of which threads 0 and 1 begin at the same stamp.
fn some(lists: bool) -> History {
    let mut history = History::new();
    let (write, read) = match lists {
        true => (Append(1, 7), ReadList(1, vec![7])),
        false => (Write(1, 7), Read(1, Some(7))),
    };
    let absent = if lists {
        ReadList(2, vec![])
    } else {
        Read(2, None)
    };
    history.push(0, Call::returned(vec![write, absent], 0..=4, Committed));
    history.push(0, Call::pending(vec![read.clone()], 5));
    let aborted = if lists { Append(1, 8) } else { Write(1, 8) };
    history.push(0, Call::returned(vec![aborted], 6..=7, Aborted));
    history.push(1, Call::returned(vec![read], 0..=9, CommittedAt(3)));
    history
}

#[test]
fn a_saved_history_is_loaded() {
    let mut file = Vec::new();
    some(false).write(&mut file).unwrap();
    assert_eq!(History::read(&file[..]).unwrap(), some(false));
    let text = String::from_utf8(file).unwrap();
    assert!(
        text.ends_with(
            "{\"thread\":1,\"operation\":[{\"Read\":[1,7]}],\"invoked\":0,\
             \"returned\":[9,{\"CommittedAt\":3}]}\n"
        ),
        "{text}"
    );
}

fn edn(history: &History) -> String {
    let mut bytes = Vec::new();
    history.write_edn(&mut bytes).unwrap();
    String::from_utf8(bytes).unwrap()
}

#[test]
fn histories_for_elle() {
    // The transaction after one of unknown outcome has a process of its own.
    assert_eq!(
        edn(&some(true)),
        "{:index 0, :type :invoke, :process 0, :f :txn, :value [[:append 1 7] [:r 2 nil]]}\n\
         {:index 1, :type :invoke, :process 1, :f :txn, :value [[:r 1 nil]]}\n\
         {:index 2, :type :ok, :process 0, :f :txn, :value [[:append 1 7] [:r 2 []]]}\n\
         {:index 3, :type :invoke, :process 0, :f :txn, :value [[:r 1 nil]]}\n\
         {:index 4, :type :invoke, :process 2, :f :txn, :value [[:append 1 8]]}\n\
         {:index 5, :type :fail, :process 2, :f :txn, :value [[:append 1 8]]}\n\
         {:index 6, :type :ok, :process 1, :f :txn, :value [[:r 1 [7]]]}\n\
         {:index 7, :type :info, :process 0, :f :txn, :value [[:r 1 nil]]}\n"
    );
    assert!(edn(&some(false)).starts_with(
        "{:index 0, :type :invoke, :process 0, :f :txn, :value [[:w 1 7] [:r 2 nil]]}\n"
    ));
    assert!(edn(&some(false)).contains("[[:w 1 7] [:r 2 nil]]}\n{:index 3"));
}

#[test]
fn elles_histories_are_read() {
    for lists in [true, false] {
        let text = edn(&some(lists));
        let read: History = History::read_edn(&text).unwrap();
        assert_eq!((read.threads(), read.len()), (3, 4));
        // What is read back is what was written, but for stamps and threads.
        assert_eq!(edn(&read), text);
        let vector: History = History::read_edn(&format!("[{text}]")).unwrap();
        assert_eq!(vector, read);
    }
    // `histories/paper-example.edn` of Elle's repository, where it is found wanting: its second
    // and third transactions observe each other's absence.
    let text = "{:index 2 :type :invoke, :value [[:append 255 8] [:r 253 nil]]}
        {:index 3 :type :ok,     :value [[:append 255 8] [:r 253 [1 3 4]]]} ; a comment";
    let history: History = History::read_edn(text).unwrap();
    let operations = vec![Append(255, 8), ReadList(253, vec![1, 3, 4])];
    assert_eq!(
        history.calls_of(0),
        [Call::returned(operations, 0..=1, Committed)]
    );
    let strings: History<String> =
        History::read_edn("{:type :invoke :value [[:w :x 1] [:w \"y\" 1]]}").unwrap();
    let operations = strings.calls_of(0)[0].operation();
    assert_eq!(
        *operations,
        [Write("x".to_owned(), 1), Write("y".to_owned(), 1)]
    );
}

#[test]
fn wrong_notation_is_refused() {
    for (text, line, what) in [
        ("{:type :invoke", 1, "the text ends before `}`"),
        ("\n\n]", 3, "`]` is no value"),
        ("{:type :invoke}", 1, "has no vector of operations"),
        (
            "{:type :ok, :process 1, :value []}",
            1,
            "process 1 ends what it has not begun",
        ),
        (
            "{:type :invoke, :value [[:r 1]]}",
            1,
            "is no operation of a list or register",
        ),
        (
            "{:type :invoke, :value [[:cas 1 2]]}",
            1,
            "is no operation of a list or register",
        ),
        (
            "{:type :invoke, :value [[:w 1 -2]]}",
            1,
            "is no operation of a list or register",
        ),
        (
            "{:type :invoke, :value [[:w :x 2]]}",
            1,
            "invalid type: string \"x\"",
        ),
        ("{:type :sleep, :value []}", 1, "\":sleep\" is no :type"),
        ("{:type :invoke, :value [\"x]}", 1, "a string does not end"),
        (&"[".repeat(100), 1, "nested too deeply"),
    ] {
        let error = History::<u64>::read_edn(text).unwrap_err();
        assert_eq!(error.line, line, "{text}");
        assert!(error.to_string().contains(what), "{text}: {error}");
    }
}

#[test]
fn what_elle_cannot_read_is_refused() {
    let error = |history: History<Vec<u64>>| history.write_edn(Vec::new()).unwrap_err().to_string();
    let one = |operations| {
        let mut history = History::new();
        history.push(0, Call::returned(operations, 0..=1, Committed));
        history
    };
    let (x, y) = (vec![1], vec![2]);
    let both = one(vec![Write(x.clone(), 1), Append(y, 1)]);
    assert!(error(both).contains("not both in one history"));
    assert!(error(one(vec![Write(x, 1)])).contains("key [1] is neither"));
    let mut large: History = History::new();
    large.push(
        0,
        Call::returned(vec![Write(1, u64::MAX)], 0..=1, Committed),
    );
    let error = large.write_edn(Vec::new()).unwrap_err().to_string();
    assert!(error.contains("is greater than"), "{error}");
}

#[test]
fn a_history_from_a_file_is_looked_at() {
    let mut history = some(false);
    assert_eq!(usable(&history), Ok(()));
    history.push(
        1,
        Call::returned(vec![Read(1, None), Write(1, 7)], 8..=9, Aborted),
    );
    let unusable = usable(&history).unwrap_err();
    assert_eq!((unusable.thread, unusable.transaction), (1, 1));
    assert_eq!(
        unusable.to_string(),
        "transaction 2 of thread 1: value 7 is written to key 1 a second time; give each write of a \
         key a value of its own"
    );
}
