//! Snapshots, made while commits go on.

use crate::faulty::{Faulty, Plan};
use crate::history::{Run, lazy, recover, state_after};
use corelay_txn::store::disk::{OpenError, Options, SnapshotError};
use std::sync::Arc;

#[test]
fn snapshot_replaces_the_log_before_it() {
    let storage = Faulty::default();
    let options = Options {
        segment_size: 100,
        ..lazy()
    };
    let (mut run, _) = Run::open(&storage, &options).unwrap();
    for _ in 0..10 {
        run.commit().unwrap().wait().unwrap();
    }
    let disk = Arc::clone(&run.disk);
    assert!(disk.report().log_files >= 5);
    let mut snapshot = disk.snapshot().unwrap();
    assert!(matches!(disk.snapshot(), Err(SnapshotError::Busy)));
    run.fill(&mut snapshot).unwrap();
    let report = snapshot.finish().unwrap();
    assert!(report.removed_files >= 4 && report.entries > 0);
    assert_eq!(disk.report().log_files, 1);
    for _ in 0..3 {
        run.commit().unwrap().wait().unwrap();
    }
    drop((run, disk));
    let (commits, recovered) = recover(&storage.image()).unwrap();
    assert_eq!(commits, 13);
    assert_eq!(recovered.snapshot.unwrap().epoch, report.epoch);
    assert!(recovered.commits < 13, "most of them are in the snapshot");
}

#[test]
fn snapshot_of_a_store_without_commits_is_empty() {
    let storage = Faulty::default();
    for _ in 0..3 {
        let (run, _) = Run::open(&storage, &lazy()).unwrap();
        run.disk.snapshot().unwrap().finish().unwrap();
    }
    assert_eq!(recover(&storage.image()).unwrap().0, 0);
}

#[test]
fn snapshots_and_reopening_alternate() {
    let storage = Faulty::default();
    for round in 0..10 {
        let (mut run, _) = Run::open(&storage, &lazy()).unwrap();
        assert_eq!(run.next, 3 * round);
        let disk = Arc::clone(&run.disk);
        run.commit().unwrap().wait().unwrap();
        let mut snapshot = disk.snapshot().unwrap();
        drop(run.commit().unwrap());
        run.fill(&mut snapshot).unwrap();
        drop(run.commit().unwrap());
        snapshot.finish().unwrap();
    }
    let snapshots = |name: &&String| name.starts_with("snapshot");
    assert_eq!(storage.image().keys().filter(snapshots).count(), 1);
    assert_eq!(recover(&storage.image()).unwrap().0, 30);
}

/// The state at the beginning of the snapshot, at its end, and mixtures.
#[test]
fn fuzzy_snapshot_and_log_make_the_exact_state() {
    for fuzz in 0..8_u32 {
        let storage = Faulty::default();
        let (mut run, _) = Run::open(&storage, &lazy()).unwrap();
        for _ in 0..9 {
            drop(run.commit().unwrap());
        }
        let disk = Arc::clone(&run.disk);
        let mut snapshot = disk.snapshot().unwrap();
        let before = run.state.clone();
        for _ in 0..4 {
            drop(run.commit().unwrap());
        }
        let after = std::mem::replace(&mut run.state, before.clone());
        // Each entry as it was before or after the commits.
        for (index, (key, value)) in (0..).zip(&after) {
            if fuzz >> (index % 3) & 1 == 1 {
                run.state.insert(key.clone(), value.clone());
            }
        }
        for (index, key) in (0..).zip(before.keys()) {
            if !after.contains_key(key) && fuzz >> (index % 3) & 1 == 0 {
                run.state.remove(key);
            }
        }
        run.fill(&mut snapshot).unwrap();
        snapshot.finish().unwrap();
        drop((run, disk));
        assert_eq!(recover(&storage.image()).unwrap().0, 13);
    }
}

#[test]
fn damaged_snapshot_or_log_that_it_needs_is_found() {
    let storage = Faulty::default();
    let (mut run, _) = Run::open(&storage, &lazy()).unwrap();
    let disk = Arc::clone(&run.disk);
    for _ in 0..5 {
        run.commit().unwrap().wait().unwrap();
    }
    let mut snapshot = disk.snapshot().unwrap();
    // The snapshot sees this commit, so it needs the log of it.
    drop(run.commit().unwrap());
    run.fill(&mut snapshot).unwrap();
    assert_eq!(snapshot.finish().unwrap().removed_files, 1);
    drop((run, disk));
    let image = storage.image();
    for (name, bytes) in &image {
        for at in 0..bytes.len() {
            let mut image = image.clone();
            image.get_mut(name).unwrap()[at] ^= 4;
            match recover(&image) {
                Err(OpenError::Damaged { .. }) => {}
                Err(OpenError::Version { .. }) if name == "identity" => {}
                other => panic!("{name} {at}: {other:?}"),
            }
            let image = image.into_iter().map(|(name, mut bytes)| {
                if name.starts_with("log") {
                    bytes.truncate(at);
                }
                (name, bytes)
            });
            if name.starts_with("log") {
                let error = recover(&image.collect()).unwrap_err();
                assert!(matches!(error, OpenError::Damaged { .. }), "{error}");
            }
        }
    }
}

#[test]
fn whole_log_replaces_a_damaged_snapshot() {
    let storage = Faulty::default();
    let (mut run, _) = Run::open(&storage, &lazy()).unwrap();
    let disk = Arc::clone(&run.disk);
    let mut snapshot = disk.snapshot().unwrap();
    for _ in 0..5 {
        drop(run.commit().unwrap());
    }
    run.fill(&mut snapshot).unwrap();
    snapshot.finish().unwrap();
    drop((run, disk));
    let image = storage.image();
    let is_snapshot = |name: &&String| name.starts_with("snapshot");
    let name = image.keys().find(is_snapshot).unwrap();
    for at in 0..image[name].len() {
        let mut image = image.clone();
        image.get_mut(name).unwrap()[at] ^= 4;
        let (commits, report) = recover(&image).unwrap();
        assert_eq!((commits, report.snapshot), (5, None));
        assert_eq!(report.notes.len(), 1, "{:?}", report.notes);
        // It proves that the commits were durable, though it is damaged.
        let newest = image.keys().rfind(|name| name.starts_with("log")).unwrap();
        let mut image = image.clone();
        image.get_mut(newest).unwrap().truncate(60);
        let options = Options {
            salvage: true,
            ..lazy()
        };
        if at >= 56 {
            continue;
        }
        let salvaged = Faulty::new(&image);
        let (mut run, _) = Run::open(&salvaged, &options).unwrap();
        assert_eq!(run.next, 0);
        run.commit().unwrap().wait().unwrap();
        drop(run);
        assert_eq!(recover(&salvaged.image()).unwrap().0, 1);
    }
}

#[test]
fn power_cut_at_every_step_of_a_snapshot_leaves_everything() {
    let prepare = |storage: &Faulty| {
        let (mut run, _) = Run::open(storage, &lazy()).unwrap();
        for _ in 0..5 {
            run.commit().unwrap().wait().unwrap();
        }
        let disk = Arc::clone(&run.disk);
        let mut snapshot = disk.snapshot().unwrap();
        run.fill(&mut snapshot).unwrap();
        snapshot.finish().unwrap();
        run.commit().unwrap().wait().unwrap();
        run
    };
    let mut random = 7_u64;
    let mut choose = |n: usize| {
        random = random
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (random >> 33) as usize % n
    };
    for off_after in 0.. {
        let storage = Faulty::default();
        let run = prepare(&storage);
        storage.plan(Plan {
            off_after: Some(off_after),
            ..Plan::default()
        });
        let disk = Arc::clone(&run.disk);
        let finished = disk.snapshot().and_then(|mut snapshot| {
            run.fill(&mut snapshot)?;
            snapshot.finish()
        });
        for image in [storage.image(), storage.cut(&mut choose)] {
            let (commits, _) = recover(&image).unwrap_or_else(|why| panic!("{off_after}: {why}"));
            assert_eq!(commits, 6, "{off_after}");
        }
        if finished.is_ok() {
            break;
        }
    }
    assert_eq!(state_after(0).len(), 0);
}
