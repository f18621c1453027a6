//! Commits of the store beside the thread that closes epochs of its log, under shuttle: what is put
//! together from the log is what is in memory, and no commit is in an older epoch than one that it
//! depends on.

use super::store_views::by_every_protocol;
use crate::model_rows::{Rows, rows};
use crate::schedules;
use corelay_txn::store::disk::model::{LogThread, LoggedRecord, Model};
use corelay_txn::store::{Codec, Protocol, Store};
use shuttle::sync::Arc;
use shuttle::sync::atomic::{AtomicU64, Ordering};
use shuttle::thread;

const SCHEDULES: usize = 2_000;

/// Runs `f` in schedules in which threads have priorities that change a few times (Burckhardt and
/// others, "A Randomized Scheduler with Probabilistic Guarantees of Finding Bugs", ASPLOS 2010). Finds
/// what needs one thread to stand still while others do much.
fn model(f: impl Fn() + Send + Sync + 'static) {
    shuttle::check_pct(f, schedules::asked_or(SCHEDULES), 3);
}

/// A store with a table of rows whose numbers are below 128, and so of one byte.
struct World<P: Protocol> {
    store: Store<P>,
    rows: Rows<u64>,
}

/// The value of each row by the log, after some epochs.
fn replayed(epochs: &[Vec<LoggedRecord>], keys: u64) -> Vec<Option<u64>> {
    let newest = |key: u64| {
        let epochs = epochs.iter().enumerate();
        let records = epochs.flat_map(|(epoch, records)| records.iter().map(move |r| (epoch, r)));
        let of_key = records.filter(|(_, (_, bytes, _))| **bytes == [key as u8]);
        let newest = of_key.max_by_key(|(epoch, (order, ..))| (*epoch, *order));
        newest.and_then(|(_, (.., value))| Some(value.as_ref()?[0].into()))
    };
    (0..keys).map(newest).collect()
}

/// Runs a function on each of some threads, while another one closes epochs. Returns the epochs.
fn run<P: Protocol>(
    protocol: P,
    threads: u64,
    body: impl Fn(&World<P>, u64) + Send + Sync + 'static,
) -> (Arc<World<P>>, Vec<Vec<LoggedRecord>>) {
    let (model, mut log_thread): (_, LogThread) = Model::new();
    let store = Store::logged(protocol, &model);
    let rows = rows(&store);
    store.log(&rows, Codec::postcard());
    let world = Arc::new(World { store, rows });
    let body = Arc::new(body);
    let at_work = Arc::new(AtomicU64::new(threads));
    let committers: Vec<_> = (0..threads)
        .map(|thread| {
            let (world, body) = (Arc::clone(&world), Arc::clone(&body));
            let at_work = Arc::clone(&at_work);
            thread::spawn(move || {
                body(&world, thread);
                at_work.fetch_sub(1, Ordering::SeqCst);
            })
        })
        .collect();
    let mut epochs = Vec::new();
    while at_work.load(Ordering::SeqCst) > 0 {
        epochs.push(log_thread.close_with_records());
        thread::yield_now();
    }
    for committer in committers {
        committer.join().unwrap();
    }
    epochs.push(log_thread.close_with_records());
    (world, epochs)
}

by_every_protocol![
    last_writer_is_last_in_the_log,
    copies_are_not_kept_without_their_originals
];

/// Threads write, and remove, the same two rows without reading them.
fn last_writer_is_last_in_the_log<P: Protocol>(protocol: fn() -> P) {
    model(move || {
        let (world, epochs) = run(protocol(), 3, |World { store, rows }, thread| {
            for number in 0..2 {
                let write = store.transact(|tx| {
                    for row in 0..2 {
                        match (thread, number) {
                            (2, 0) => drop(tx.remove(rows, &row)?),
                            _ => tx.put(rows, row, thread * 2 + number)?,
                        }
                    }
                    Ok(())
                });
                write.unwrap();
            }
        });
        let World { store, rows } = &*world;
        // By a transaction that writes: one that only reads may be at an earlier time.
        let last = store.transact(|tx| {
            tx.put(rows, 9, 9)?;
            Ok(vec![tx.get(rows, &0)?, tx.get(rows, &1)?])
        });
        assert_eq!(replayed(&epochs, 2), last.unwrap());
    });
}

/// A thread counts in the first row; each of the others copies the row before its own.
fn copies_are_not_kept_without_their_originals<P: Protocol>(protocol: fn() -> P) {
    const ROWS: u64 = 3;
    model(move || {
        let (_, epochs) = run(protocol(), ROWS, |World { store, rows }, thread| {
            for _ in 0..3 {
                let step = store.transact(|tx| {
                    let next = match thread {
                        0 => tx.get(rows, &0)?.unwrap_or(0) + 1,
                        _ => tx.get(rows, &(thread - 1))?.unwrap_or(0),
                    };
                    tx.put(rows, thread, next)
                });
                step.unwrap();
            }
        });
        for end in 0..=epochs.len() {
            let rows = replayed(&epochs[..end], ROWS);
            let rows: Vec<_> = rows.into_iter().map(|row| row.unwrap_or(0)).collect();
            assert!(
                rows.is_sorted_by(|before, after| before >= after),
                "{rows:?}"
            );
        }
    });
}
