//! What is refused, and in which words.

use super::open;
use crate::faulty::{Faulty, Plan};
use crate::history::lazy;
use crate::opening::TempDir;
use corelay_txn::store::disk::MAX_KEY;
use corelay_txn::store::{
    Codec, DecodeError, EncodeError, OpenError, Reason, Silo, SnapshotError, Store, Table,
    TableError,
};
use serde::{Deserialize, Serialize};
use std::fs;
use std::hash::RandomState;

/// A codec of words that refuses the word `"refused"` and cannot read the word `"odd"`.
fn picky() -> Codec<String, String> {
    let encode = |word: &String, bytes: &mut Vec<u8>| {
        if word == "refused" {
            return Err(EncodeError::Refused("as told".to_owned()));
        }
        bytes.extend_from_slice(word.as_bytes());
        Ok(())
    };
    let good = Codec::<String, String>::postcard();
    Codec {
        encode_key: encode,
        encode_value: encode,
        decode_key: |bytes| Ok(String::from_utf8_lossy(bytes).into_owned()),
        decode_value: |bytes| match bytes {
            b"odd" => Err(DecodeError::new("it is odd")),
            _ => Ok(String::from_utf8_lossy(bytes).into_owned()),
        },
        ..good
    }
}

type Words = corelay_txn::store::HashTable<String, String, RandomState>;

fn words(store: &Store, codec: Codec<String, String>) -> Result<Words, TableError> {
    store.kept_table_with("words", 0, RandomState::new(), codec)
}

fn put(store: &Store, table: &Words, key: &str, word: &str) -> Result<(), Reason> {
    let put = store.transact(|tx| tx.put(table, key.to_owned(), word.to_owned()));
    put.map_err(|abort| abort.reason())
}

#[test]
fn store_in_memory_keeps_nothing() {
    let store = Store::new(Silo);
    let error = store.kept_table::<u8, u8>("a").unwrap_err();
    assert_eq!(error, TableError::NoDirectory("a".into()));
    assert!(error.to_string().contains("Store::open"), "{error}");
    assert!(matches!(store.snapshot(), Err(SnapshotError::InMemory)));
    assert!(store.recovered().is_none() && store.disk_failure().is_none());
    assert!(store.report().disk.is_none());
}

#[test]
#[should_panic(expected = "make the store by `Store::open`")]
fn store_in_memory_has_no_handles() {
    let _ = Store::new(Silo).transact_durable(|_| Ok(()));
}

#[test]
fn tables_of_the_wrong_kind_or_types_are_refused() {
    let storage = Faulty::default();
    let store = open(Silo, &storage, &lazy());
    let numbers = store.kept_table::<u8, u32>("numbers").unwrap();
    let exists = TableError::Exists("numbers".into());
    assert_eq!(store.kept_table::<u8, u32>("numbers").unwrap_err(), exists);
    assert_eq!(
        store.kept_ordered::<u8, u32>("numbers").unwrap_err(),
        exists
    );
    assert_eq!(store.table::<u8, u32>("numbers").unwrap_err(), exists);
    store.table::<u8, u32>("cache").unwrap();
    let exists = TableError::Exists("cache".into());
    assert_eq!(store.kept_table::<u8, u32>("cache").unwrap_err(), exists);
    store.transact(|tx| tx.put(&numbers, 1, 1)).unwrap();
    drop(store);

    let store = open(Silo, &storage, &lazy());
    let error = store.table::<u8, u32>("numbers").unwrap_err();
    assert_eq!(error, TableError::OnDisk("numbers".into()));
    let error = store.existing::<Table<u8, u32>>("numbers").unwrap_err();
    assert_eq!(error, TableError::OnDisk("numbers".into()));
    assert!(error.to_string().contains("open it by"), "{error}");
    let error = store.kept_table::<u8, String>("numbers").unwrap_err();
    let said = error.to_string();
    assert!(
        said.contains("holds u8 -> u32") && said.contains("String"),
        "{said}"
    );
    let long = "n".repeat(70_000);
    let error = store.kept_table::<u8, u32>(&long).unwrap_err();
    assert!(matches!(error, TableError::TooLong(_)));
    assert!(error.to_string().len() < 200, "{error}");
    // None of it has done harm.
    let numbers = store.kept_table::<u8, u32>("numbers").unwrap();
    assert_eq!(store.read_only(|tx| tx.get(&numbers, &1)).unwrap(), Some(1));
}

#[test]
fn rows_that_cannot_be_written_end_their_transaction() {
    let storage = Faulty::default();
    let store = open(Silo, &storage, &lazy());
    let table = words(&store, picky()).unwrap();
    put(&store, &table, "a", "one").unwrap();
    assert_eq!(put(&store, &table, "a", "refused"), Err(Reason::Encoding));
    assert_eq!(put(&store, &table, "refused", "b"), Err(Reason::Encoding));
    let long = "k".repeat(MAX_KEY + 1);
    assert_eq!(put(&store, &table, &long, "b"), Err(Reason::TooLarge));
    let report = store.report();
    assert_eq!(report.aborts.by(Reason::Encoding), 2);
    assert_eq!(report.tables[0].aborts.by(Reason::TooLarge), 1);
    let row = |key: &str| store.read_only(|tx| tx.get(&table, key)).unwrap();
    assert_eq!((row("a").as_deref(), row("refused")), (Some("one"), None));
    put(&store, &table, "a", "two").unwrap();
    drop((store, table));
    let store = open(Silo, &storage, &lazy());
    let table = words(&store, picky()).unwrap();
    let row = store.read_only(|tx| tx.get(&table, "a")).unwrap();
    assert_eq!(row.as_deref(), Some("two"));
}

#[test]
fn rows_that_cannot_be_read_stay_on_disk() {
    let mended = Codec {
        decode_value: |bytes| Ok(String::from_utf8_lossy(bytes).into_owned()),
        ..picky()
    };
    let storage = Faulty::default();
    let store = open(Silo, &storage, &lazy());
    let table = words(&store, mended).unwrap();
    put(&store, &table, "a", "odd").unwrap();
    drop((store, table));
    let store = open(Silo, &storage, &lazy());
    for _ in 0..2 {
        let error = words(&store, picky()).unwrap_err();
        assert!(matches!(error, TableError::Unreadable { .. }));
        let said = error.to_string();
        assert!(
            said.contains("a row:")
                && said.contains("it is odd")
                && said.contains("they stay there"),
            "{said}"
        );
    }
    let same = Codec {
        decode_key: |_| Ok("always".to_owned()),
        decode_value: |_| Ok(String::new()),
        ..picky()
    };
    let table = words(&store, mended).unwrap();
    put(&store, &table, "b", "two").unwrap();
    drop((store, table));
    let store = open(Silo, &storage, &lazy());
    let said = words(&store, same).unwrap_err().to_string();
    assert!(said.contains("two keys are equal"), "{said}");
    store.snapshot().unwrap();
    drop(store);
    let store = open(Silo, &storage, &lazy());
    let table = words(&store, mended).unwrap();
    let row = store.read_only(|tx| tx.get(&table, "a")).unwrap();
    assert_eq!(row.as_deref(), Some("odd"));
}

#[test]
fn tables_that_do_not_open_keep_no_memory() {
    type Row = (String, [[u64; 25]; 4]);
    const ROWS: u64 = 2_000;
    let storage = Faulty::default();
    let store = open(Silo, &storage, &lazy());
    let table = store.kept_table::<u64, Row>("rows").unwrap();
    let row = |key: u64| (format!("row {key}"), [[key; 25]; 4]);
    let put = store.transact(|tx| (0..ROWS).try_for_each(|key| tx.put(&table, key, row(key))));
    put.unwrap();
    drop((store, table));
    let store = open(Silo, &storage, &lazy());
    let good = Codec::<u64, Row>::postcard();
    let bad = Codec {
        decode_value: |bytes| match (Codec::<u64, Row>::postcard().decode_value)(bytes) {
            Ok((name, _)) if name == "row 1234" => Err(DecodeError::new("not this one")),
            row => row,
        },
        ..good
    };
    for round in 0..16 {
        let opened = match round % 2 {
            0 => store.kept_ordered_with("rows", bad).map(drop),
            _ => {
                let opened = store.kept_table_with("rows", 0, RandomState::new(), bad);
                opened.map(drop)
            }
        };
        assert!(matches!(opened, Err(TableError::Unreadable { .. })));
    }
    let rows = ROWS * size_of::<[[u64; 25]; 4]>() as u64;
    let memory = store.report().memory;
    assert!(memory < 8 * rows, "{memory} bytes for {rows}");
    let table = store.kept_ordered_with("rows", good).unwrap();
    let rows = store.read_only(|tx| tx.rows(&table, ..)).unwrap();
    assert!(rows.into_iter().eq((0..ROWS).map(|key| (key, row(key)))));
}

/// Types that serialize, and that the format cannot read: the first row says so, and not the next
/// opening.
#[test]
fn rows_that_cannot_be_read_back_are_refused() {
    #[derive(Debug, Clone, Serialize, Deserialize)]
    #[serde(untagged)]
    enum Untagged {
        Number(u32),
    }
    #[derive(Debug, Clone, Serialize, Deserialize)]
    struct Skips {
        #[serde(skip_serializing_if = "Option::is_none")]
        first: Option<u32>,
        second: u32,
    }
    let storage = Faulty::default();
    let store = open(Silo, &storage, &lazy());
    let untagged = store.kept_table::<u8, Untagged>("untagged").unwrap();
    let put = store.transact(|tx| tx.put(&untagged, 1, Untagged::Number(1)));
    let abort = put.unwrap_err();
    assert_eq!(abort.reason(), Reason::Encoding);
    assert!(abort.to_string().contains("read back"), "{abort}");
    let skips = store.kept_table::<u8, Skips>("skips").unwrap();
    let put = |first| store.transact(|tx| tx.put(&skips, 1, Skips { first, second: 7 }));
    put(Some(1)).unwrap();
    assert_eq!(put(None).unwrap_err().reason(), Reason::Encoding);
    drop((store, untagged, skips));
    let store = open(Silo, &storage, &lazy());
    let skips = store.kept_table::<u8, Skips>("skips").unwrap();
    let row = store.read_only(|tx| tx.with(&skips, &1, |row| (row.first, row.second)));
    assert_eq!(row.unwrap(), Some((Some(1), 7)));
}

#[test]
fn directory_in_use_is_refused_in_words() {
    let dir = TempDir::new("kept-in-use");
    let store = Store::open(Silo, &dir.0).unwrap();
    let error = Store::open(Silo, &dir.0).unwrap_err();
    assert!(matches!(error, OpenError::InUse { .. }), "{error}");
    drop(store);
    drop(Store::open(Silo, &dir.0).unwrap());
    let file = TempDir::new("kept-file");
    fs::write(&file.0, "text").unwrap();
    let error = Store::open(Silo, &file.0).unwrap_err();
    assert!(matches!(error, OpenError::Io { .. }), "{error}");
    fs::remove_file(&file.0).unwrap();
}

/// A disk that has failed refuses writes to kept tables. All else goes on.
#[test]
fn failed_disk_refuses_writes_and_nothing_else() {
    let storage = Faulty::default();
    let store = open(Silo, &storage, &lazy());
    let kept = store.kept_table::<u8, u32>("kept").unwrap();
    let cache = store.table::<u8, u32>("cache").unwrap();
    let (_, first) = store.transact_durable(|tx| tx.put(&kept, 1, 1)).unwrap();
    first.wait().unwrap();
    storage.plan(Plan {
        sync_fails_from: Some(0),
        ..Plan::default()
    });
    let (_, second) = store.transact_durable(|tx| tx.put(&kept, 1, 2)).unwrap();
    assert!(second.wait().is_err());
    assert!(store.disk_failure().unwrap().io_error().is_some());
    let refused = store.transact(|tx| {
        tx.put(&cache, 1, 1)?;
        tx.put(&kept, 1, 3)
    });
    assert_eq!(refused.unwrap_err().reason(), Reason::Disk);
    assert_eq!(store.report().aborts.by(Reason::Disk), 1);
    store.transact(|tx| tx.put(&cache, 2, 2)).unwrap();
    // What was committed in memory is still seen; what was refused is not.
    let rows = store.read_only(|tx| {
        let cached = (tx.get(&cache, &1)?, tx.get(&cache, &2)?);
        Ok((tx.get(&kept, &1)?, cached))
    });
    assert_eq!(rows.unwrap(), (Some(2), (None, Some(2))));
    assert!(store.snapshot().is_err());
    let (_, read) = store.transact_durable(|tx| tx.get(&kept, &1)).unwrap();
    assert!(read.wait().is_err());
}
