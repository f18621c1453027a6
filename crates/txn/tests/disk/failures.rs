//! Disks that fail: from there on the store takes no more commits, and answers none as durable.

use crate::faulty::{Faulty, Plan};
use crate::history::{Run, lazy, recover};
use corelay_txn::store::disk::SnapshotError;

/// Commits until the store refuses. Returns how many were answered as durable.
fn commit_until_refused(run: &mut Run) -> u64 {
    let mut durable = run.next;
    let mut failed = Vec::new();
    for _ in 0..100 {
        let (Some(first), Some(second)) = (run.commit(), run.commit()) else {
            break;
        };
        match second.wait() {
            Ok(()) => {
                assert!(failed.is_empty(), "durable after a failure");
                assert!(first.is_durable() && second.is_durable());
                durable = run.next;
            }
            Err(_) => failed.push(second),
        }
    }
    assert!(!failed.is_empty() && run.commit().is_none(), "it goes on");
    let failure = run.disk.failure().unwrap();
    assert!(failure.io_error().is_some(), "{failure}");
    assert!(run.writer.admit().is_err() && run.writer.enter().is_err());
    assert!(matches!(run.disk.snapshot(), Err(SnapshotError::Failed(_))));
    for handle in failed {
        assert!(!handle.is_durable());
        assert!(handle.wait().is_err());
    }
    durable
}

#[test]
fn full_disk_stops_the_store() {
    for full_after in (57..2000).step_by(37) {
        let storage = Faulty::default();
        let (mut run, _) = Run::open(&storage, &lazy()).unwrap();
        storage.plan(Plan {
            full_after: Some(full_after),
            ..Plan::default()
        });
        let answered = commit_until_refused(&mut run);
        drop(run);
        let (commits, _) = recover(&storage.image()).unwrap();
        assert!(commits >= answered);
    }
}

#[test]
fn failed_synchronization_is_not_tried_again() {
    for from in 0..8 {
        let storage = Faulty::default();
        let (mut run, _) = Run::open(&storage, &lazy()).unwrap();
        let first = storage.syncs();
        storage.plan(Plan {
            sync_fails_from: Some(first + from),
            ..Plan::default()
        });
        let answered = commit_until_refused(&mut run);
        drop(run);
        assert_eq!(storage.syncs(), first + from + 1, "tried again");
        let (commits, _) = recover(&storage.image()).unwrap();
        assert!(commits >= answered);
        // What was not synchronized is gone after a power cut, and nothing else.
        let (commits, _) = recover(&storage.cut(|_| 0)).unwrap();
        assert_eq!(commits, answered);
    }
}

#[test]
fn failed_snapshot_leaves_the_store_as_it_is() {
    for from in 0..6 {
        let storage = Faulty::default();
        let (mut run, _) = Run::open(&storage, &lazy()).unwrap();
        run.commit().unwrap().wait().unwrap();
        let disk = std::sync::Arc::clone(&run.disk);
        let mut snapshot = disk.snapshot().unwrap();
        run.fill(&mut snapshot).unwrap();
        // The log itself does not write now.
        storage.plan(Plan {
            full_after: Some(from * 40),
            ..Plan::default()
        });
        assert!(snapshot.finish().is_err());
        storage.plan(Plan::default());
        let names: Vec<_> = storage.image().into_keys().collect();
        assert!(!names.iter().any(|name| name.contains("snap")), "{names:?}");
        run.commit().unwrap().wait().unwrap();
        let mut snapshot = disk.snapshot().unwrap();
        run.fill(&mut snapshot).unwrap();
        snapshot.finish().unwrap();
    }
}
