//! Stores that are kept on disk.

mod bad_input;
mod crashes;
mod handles;
mod killed;
mod rows;
mod snapshots;
mod users_code;
mod wakers;

use crate::faulty::Faulty;
use corelay_txn::store::disk::Options;
use corelay_txn::store::{OrderedTable, Protocol, Store, Table};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::Duration;

/// Makes a test of each function, by every protocol. The function gets a way to make the protocol, for
/// stores that are opened again.
macro_rules! by_every_protocol {
    ($($name:ident),* $(,)?) => {$(
        mod $name {
            use corelay_clock::{Clock, Logical, Ordo};
            use corelay_txn::store::{Mvcc, Occ, Silo, TicToc};
            #[test]
            fn silo() { super::$name(|| Silo); }
            #[test]
            fn tictoc() { super::$name(|| TicToc); }
            #[test]
            fn occ() { super::$name(|| Occ::new(Logical::new())); }
            #[test]
            fn mvcc() { super::$name(|| Mvcc::new(Logical::new())); }
            #[test]
            fn mvcc_ordo() {
                let Ok(ordo) = Ordo::shared() else { return };
                let boundary = ordo.boundary();
                super::$name(|| Mvcc::new(Ordo::with_boundary(boundary)));
            }
        }
    )*};
}
use by_every_protocol;

/// Tells other threads that it is over when it is dropped, also by a panic.
struct Over<'a>(&'a AtomicBool);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Ends the process with a message if `body` hangs. Nothing else depends on the time.
fn ends(name: &'static str, body: impl FnOnce()) {
    let (tell, told) = mpsc::channel::<()>();
    std::thread::spawn(move || {
        if told.recv_timeout(Duration::from_secs(120)) == Err(RecvTimeoutError::Timeout) {
            eprintln!("hangs: {name}");
            std::process::abort();
        }
    });
    body();
    drop(tell);
}

/// Opens a store in a made-up storage.
fn open<P: Protocol>(protocol: P, storage: &Faulty, options: &Options) -> Store<P> {
    Store::open_in(protocol, Arc::new(storage.clone()), options).unwrap()
}

/// The rows of a table by hash whose keys are below 256.
fn rows_of<P: Protocol>(store: &Store<P>, table: &Table<u8, u32>) -> BTreeMap<u8, u32> {
    let rows = store.read_only(|tx| {
        let mut rows = BTreeMap::new();
        for key in 0..=u8::MAX {
            if let Some(row) = tx.get(table, &key)? {
                rows.insert(key, row);
            }
        }
        Ok(rows)
    });
    rows.unwrap()
}

/// The rows of an ordered table.
fn ordered_rows<P: Protocol>(store: &Store<P>, table: &OrderedTable<u8, u32>) -> BTreeMap<u8, u32> {
    let rows = store.read_only(|tx| tx.rows(table, ..));
    rows.unwrap().into_iter().collect()
}
