//! Handles: waited for on threads and fibres, and awaited.

use crate::faulty::Faulty;
use crate::history::{Run, lazy, records, recover};
use corelay_txn::store::disk::{Disk, Durable, Options};
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

#[test]
fn handles_are_send_and_static() {
    fn check<T: Send + Sync + Clone + Unpin + 'static>() {}
    check::<Durable>();
}

/// A thread as a waker.
struct Unpark(std::thread::Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

fn block_on<T>(future: impl Future<Output = T>) -> T {
    let mut future = pin!(future);
    let waker = Waker::from(Arc::new(Unpark(std::thread::current())));
    let mut context = Context::from_waker(&waker);
    loop {
        match future.as_mut().poll(&mut context) {
            Poll::Ready(value) => return value,
            Poll::Pending => std::thread::park(),
        }
    }
}

#[test]
fn handle_can_be_awaited() {
    let (mut run, _) = Run::open(&Faulty::default(), &lazy()).unwrap();
    for _ in 0..10 {
        let handle = run.commit().unwrap();
        block_on(async { handle.clone().await }).unwrap();
        assert!(handle.is_durable());
    }
}

#[test]
fn dropped_future_is_forgotten() {
    let (mut run, _) = Run::open(&Faulty::default(), &lazy()).unwrap();
    let handle = run.commit().unwrap();
    let mut context = Context::from_waker(Waker::noop());
    // It asks for the epoch, and may be ready at the second look.
    let mut future = Box::pin(handle.clone());
    for _ in 0..2 {
        let _ = future.as_mut().poll(&mut context);
    }
    drop(future);
    handle.wait().unwrap();
}

#[test]
fn handle_outlives_the_store() {
    let (mut run, _) = Run::open(&Faulty::default(), &lazy()).unwrap();
    let handle = run.commit().unwrap();
    let Run {
        disk, mut writer, ..
    } = run;
    drop(disk);
    // Closing has written it.
    handle.wait().unwrap();
    assert!(writer.admit().unwrap_err().is_closed());
    assert!(writer.enter().unwrap_err().is_closed());
}

#[test]
fn epochs_end_without_waiters_after_the_interval() {
    let options = Options {
        epoch_interval: Duration::from_millis(1),
        ..Options::default()
    };
    let (mut run, _) = Run::open(&Faulty::default(), &options).unwrap();
    for pause in [0, 5] {
        // The log thread sleeps until it is woken, after the pause.
        std::thread::sleep(Duration::from_millis(pause));
        let handle = run.commit().unwrap();
        while !handle.is_durable() {
            std::thread::sleep(Duration::from_micros(100));
        }
    }
}

#[test]
fn aborted_commit_leaves_nothing() {
    let storage = Faulty::default();
    let (mut run, _) = Run::open(&storage, &lazy()).unwrap();
    drop(run.commit().unwrap());
    drop(run.writer.enter().unwrap());
    run.writer.seen().wait().unwrap();
    drop(run);
    let (commits, report) = recover(&storage.image()).unwrap();
    assert_eq!((commits, report.commits), (1, 1));
}

#[test]
fn large_epochs_end_early_and_make_writers_wait() {
    let storage = Faulty::default();
    let (disk, _) = Disk::open_in(Arc::new(storage.clone()), &lazy()).unwrap();
    let table = disk.table("left", "bytes").unwrap();
    let mut records = corelay_txn::store::disk::Records::new();
    let large = vec![1; 1 << 20];
    let mut writer = disk.writer();
    for key in 0..40_u8 {
        records.clear();
        let put = records.put(
            table,
            |bytes| {
                bytes.push(key);
                Ok(())
            },
            |bytes| {
                bytes.extend_from_slice(&large);
                Ok(())
            },
        );
        put.unwrap();
        writer.admit().unwrap();
        drop(writer.enter().unwrap().commit(u64::from(key), &records));
    }
    // Nobody has waited for a handle, and the interval is long.
    assert!(disk.durable_epoch() > 0);
    drop(disk);
    let (disk, recovered) = Disk::open_in(Arc::new(storage), &lazy()).unwrap();
    assert_eq!(recovered.tables[0].entries().count(), 40);
    drop(disk);
}

#[test]
fn slots_of_writers_are_used_again() {
    let (run, _) = Run::open(&Faulty::default(), &lazy()).unwrap();
    for number in 0..1000 {
        let mut writer = run.disk.writer();
        let handle = writer
            .enter()
            .unwrap()
            .commit(number, &records(run.tables, number));
        drop(writer);
        if number % 100 == 0 {
            handle.wait().unwrap();
        }
    }
}

#[test]
fn threads_and_fibres_wait() {
    let storage = Faulty::default();
    let (run, _) = Run::open(&storage, &lazy()).unwrap();
    let (disk, tables) = (Arc::clone(&run.disk), run.tables);
    let order = Arc::new(AtomicU64::new(0));
    let work = move |rounds: u64| {
        let mut writer = disk.writer();
        for _ in 0..rounds {
            let number = order.fetch_add(1, Ordering::Relaxed);
            let handle = writer
                .enter()
                .unwrap()
                .commit(number, &records(tables, number));
            handle.wait().unwrap();
        }
    };
    // SAFETY: the fibres wait in handles only, and not inside thread-locals.
    let cluster = unsafe { corelay_fibre::Cluster::start(2) }.unwrap();
    let fibres: Vec<_> = (0..8)
        .map(|_| {
            let work = work.clone();
            cluster.spawn(move || work(50))
        })
        .collect();
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| work(50));
        }
    });
    for fibre in fibres {
        fibre.join().unwrap();
    }
    let report = run.disk.report();
    assert_eq!(report.commits, 11 * 50);
    assert!(report.epochs <= 11 * 50);
}
