//! Commits of the store beside the thread that closes epochs of its log, under loom.

use super::store_views::model;
use crate::model_rows::{Rows, rows};
use corelay_clock::Logical;
use corelay_txn::store::disk::model::{LoggedRecord, Model};
use corelay_txn::store::{Codec, Mvcc, Protocol, Silo, Store};
use loom::sync::Arc;
use loom::thread;

const X: u64 = 1;
const Y: u64 = 2;

/// The number, of one byte, that some epochs have for a row.
fn logged(epochs: &[Vec<LoggedRecord>], key: u64) -> Option<u8> {
    let mut records = epochs.iter().flatten();
    let (.., value) = records.rfind(|(_, bytes, _)| **bytes == [key as u8])?;
    Some(value.as_ref()?[0])
}

/// One transaction copies a row that another one changes. If it copies the old row, it comes before the
/// change, also in the log.
fn overwriter_is_not_in_an_older_epoch<P: Protocol>(
    protocol: impl Fn() -> P + Send + Sync + 'static,
) {
    model(move || {
        let (log, mut log_thread) = Model::new();
        let store = Store::logged(protocol(), &log);
        let rows: Rows<u64> = rows(&store);
        store.log(&rows, Codec::postcard());
        store.transact(|tx| tx.put(&rows, X, 1)).unwrap();
        let world = Arc::new((store, rows));
        let copier = Arc::clone(&world);
        let copier = thread::spawn(move || {
            let (store, rows) = &*copier;
            let copy = store.transact(|tx| {
                let x = tx.get(rows, &X)?.unwrap();
                tx.put(rows, Y, 10 + x)
            });
            copy.unwrap();
        });
        let changer = thread::spawn(move || {
            let (store, rows) = &*world;
            store.transact(|tx| tx.put(rows, X, 2)).unwrap();
        });
        let first = log_thread.close_with_records();
        copier.join().unwrap();
        changer.join().unwrap();
        let epochs = [first, log_thread.close_with_records()];
        let is_changed = logged(&epochs[..1], X) == Some(2);
        let is_copied = logged(&epochs[..1], Y).is_some();
        match logged(&epochs, Y) {
            Some(11) => assert!(is_copied || !is_changed, "the change without the copy"),
            Some(12) => assert!(is_changed || !is_copied, "the copy without the change"),
            other => panic!("{other:?} is no copy"),
        }
    });
}

#[test]
fn overwriter_silo() {
    overwriter_is_not_in_an_older_epoch(|| Silo);
}

#[test]
fn overwriter_mvcc() {
    overwriter_is_not_in_an_older_epoch(|| Mvcc::new(Logical::new()));
}
