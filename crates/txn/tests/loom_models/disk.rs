//! Epochs of the store's log under loom: every interleaving of the shipped source (up to the
//! preemption bound) with every permitted stale read.
//!
//! The buffers of a slot lie in loom's `UnsafeCell`, which finds it if the log thread and a
//! committer use one at the same time.

use corelay_txn::store::disk::Records;
use corelay_txn::store::disk::model::{LogThread, Model};
use loom::sync::Arc;
use loom::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use loom::thread;

fn model(f: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.max_branches = 20_000;
    builder.check(f);
}

fn records() -> Records {
    use corelay_txn::store::disk::TableId;
    let mut records = Records::new();
    records.remove(TableId::default(), |_| Ok(())).unwrap();
    records
}

fn start() -> (Arc<Model>, LogThread) {
    let (model, log_thread) = Model::new();
    (Arc::new(model), log_thread)
}

/// A committer, while the log thread closes two epochs.
#[test]
fn closed_epoch_has_all_its_commits() {
    model(|| {
        let (model, mut log_thread) = start();
        let committer = thread::spawn({
            let model = Arc::clone(&model);
            move || {
                let mut writer = model.writer();
                [10, 11].map(|order| writer.enter().unwrap().commit(order, &records()).epoch())
            }
        });
        let mut closed = vec![log_thread.close(), log_thread.close()];
        let epochs = committer.join().unwrap();
        closed.push(log_thread.close());
        for (epoch, order) in epochs.into_iter().zip(10..) {
            for (orders, number) in closed.iter().zip(1..) {
                assert_eq!(orders.contains(&order), number == epoch);
            }
        }
    });
}

/// Two committers write the same record, under its lock. The log thread opens an epoch meanwhile.
#[test]
fn later_writer_is_not_in_an_older_epoch() {
    model(|| {
        let (model, mut log_thread) = start();
        let lock = Arc::new(AtomicBool::new(false));
        let committer = |order| {
            let model = Arc::clone(&model);
            let lock = Arc::clone(&lock);
            move || {
                let mut writer = model.writer();
                if lock.swap(true, Ordering::Acquire) {
                    return None;
                }
                let entered = writer.enter().unwrap();
                let epoch = entered.epoch();
                lock.store(false, Ordering::Release);
                drop(entered.commit(order, &records()));
                Some(epoch)
            }
        };
        let (first, second) = (committer(1), committer(2));
        let seen = Arc::new(AtomicU64::new(0));
        let other = thread::spawn({
            let seen = Arc::clone(&seen);
            move || {
                let epoch = first();
                seen.store(epoch.unwrap_or(0), Ordering::Release);
            }
        });
        let closer = thread::spawn(move || log_thread.close());
        let before = seen.load(Ordering::Acquire);
        let epoch = second();
        assert!(epoch.is_none_or(|epoch| epoch >= before), "an older epoch");
        other.join().unwrap();
        closer.join().unwrap();
    });
}

/// T reads a record, which U overwrites. If T has not seen U's lock, U is not in an older epoch.
#[test]
fn writer_of_what_was_read_is_not_in_an_older_epoch() {
    model(|| {
        let (model, mut log_thread) = start();
        let lock = Arc::new(AtomicBool::new(false));
        let writer = thread::spawn({
            let (model, lock) = (Arc::clone(&model), Arc::clone(&lock));
            move || {
                let mut writer = model.writer();
                lock.swap(true, Ordering::Acquire);
                let entered = writer.enter().unwrap();
                entered.epoch()
            }
        });
        let reader = thread::spawn({
            let model = Arc::clone(&model);
            move || {
                let mut writer = model.writer();
                let entered = writer.enter().unwrap();
                let is_valid = !lock.load(Ordering::Acquire);
                is_valid.then(|| entered.epoch())
            }
        });
        log_thread.close();
        let (written, read) = (writer.join().unwrap(), reader.join().unwrap());
        if let Some(read) = read {
            assert!(written >= read, "{written} overwrote what {read} has read");
        }
    });
}

/// A thread that asks sees what was published as durable before.
#[test]
fn durable_epoch_publishes_what_was_done() {
    model(|| {
        let (model, mut log_thread) = start();
        let mut writer = model.writer();
        let handle = writer.enter().unwrap().commit(1, &records());
        let is_written = Arc::new(AtomicBool::new(false));
        let logger = thread::spawn({
            let is_written = Arc::clone(&is_written);
            move || {
                log_thread.close();
                is_written.store(true, Ordering::Relaxed);
                log_thread.publish(1);
            }
        });
        if handle.is_durable() {
            assert!(is_written.load(Ordering::Relaxed));
        }
        logger.join().unwrap();
        assert!(handle.is_durable());
    });
}

/// A log thread that goes to sleep is woken by the committer, or has seen the commit.
#[test]
fn sleeping_log_thread_misses_no_commit() {
    model(|| {
        let (model, log_thread) = start();
        let committer = thread::spawn({
            let model = Arc::clone(&model);
            move || {
                let mut writer = model.writer();
                let entered = writer.enter().unwrap();
                let wakes = entered.wakes();
                drop(entered.commit(1, &records()));
                wakes
            }
        });
        let sleeps = log_thread.would_sleep();
        let wakes = committer.join().unwrap();
        assert!(wakes || !sleeps, "it would sleep for ever");
    });
}

/// A committer while the store is closed: it is refused, or its bytes are taken.
#[test]
fn last_epoch_has_all_commits_that_were_not_refused() {
    model(|| {
        let (model, mut log_thread) = start();
        let committer = thread::spawn({
            let model = Arc::clone(&model);
            move || {
                let mut writer = model.writer();
                let entered = writer.enter();
                entered.is_ok_and(|entered| entered.commit(7, &records()).epoch() == 1)
            }
        });
        let orders = log_thread.close_last();
        assert_eq!(orders == [7], committer.join().unwrap());
    });
}

/// A writer takes over the slot that another thread's writer has left.
#[test]
fn slot_is_used_again() {
    model(|| {
        let (model, mut log_thread) = start();
        let commit = |model: &Model, order| {
            let mut writer = model.writer();
            drop(writer.enter().unwrap().commit(order, &records()));
        };
        let other = thread::spawn({
            let model = Arc::clone(&model);
            move || commit(&model, 1)
        });
        commit(&model, 2);
        other.join().unwrap();
        let mut orders = log_thread.close();
        orders.sort_unstable();
        assert_eq!(orders, [1, 2]);
    });
}
