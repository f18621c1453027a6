//! The log cut at every byte, its bytes changed, and the power cut at every step.

use crate::faulty::{Faulty, Image, Plan};
use crate::history::{Run, lazy, recover, recover_with};
use corelay_txn::store::disk::{OpenError, Options};
use proptest::prelude::*;
use std::sync::Arc;

/// A log of a few epochs in a few files, and the number of commits up to the end of each epoch.
fn short_run(options: &Options) -> (Image, Vec<u64>) {
    let storage = Faulty::default();
    let (mut run, _) = Run::open(&storage, options).unwrap();
    let mut ends = vec![0];
    for size in [1, 3, 2, 4, 1] {
        for _ in 1..size {
            drop(run.commit().unwrap());
        }
        run.commit().unwrap().wait().unwrap();
        ends.push(run.next);
    }
    let image = storage.image();
    drop(run);
    (image, ends)
}

fn newest_log(image: &Image) -> String {
    image
        .keys()
        .rfind(|name| name.starts_with("log-"))
        .unwrap()
        .clone()
}

#[test]
fn log_cut_at_every_byte_opens_to_a_prefix() {
    let (image, ends) = short_run(&lazy());
    let name = newest_log(&image);
    let length = image[&name].len();
    let mut seen = Vec::new();
    for at in 0..=length {
        let mut image = image.clone();
        image.get_mut(&name).unwrap().truncate(at);
        let (commits, report) = recover(&image).unwrap();
        assert!(ends.contains(&commits), "not the end of an epoch");
        if !seen.contains(&commits) {
            // The whole frame is there, and nothing after it.
            assert!(report.dropped.is_none() || at < 57, "{at} {report:?}");
            seen.push(commits);
        } else if at != 56 {
            let dropped = report.dropped.expect("something was cut off");
            assert!(dropped.bytes > 0);
        }
    }
    assert_eq!(seen, ends);
}

#[test]
fn what_was_cut_off_is_gone_for_good() {
    let (image, ends) = short_run(&lazy());
    let name = newest_log(&image);
    let length = image[&name].len();
    for at in (0..=length).step_by(5) {
        let mut image = image.clone();
        image.get_mut(&name).unwrap().truncate(at);
        let storage = Faulty::new(&image);
        let (mut run, _) = Run::open(&storage, &lazy()).unwrap();
        let before = run.next;
        assert!(ends.contains(&before));
        run.commit().unwrap().wait().unwrap();
        drop(run);
        let (commits, report) = recover(&storage.image()).unwrap();
        assert_eq!(commits, before + 1);
        assert_eq!(report.dropped, None);
    }
}

#[test]
fn changed_byte_is_found() {
    let options = Options {
        segment_size: 300,
        ..lazy()
    };
    let (image, ends) = short_run(&options);
    assert!(image.len() > 3, "several log files");
    let newest = newest_log(&image);
    for (name, bytes) in &image {
        for at in 0..bytes.len() {
            for flip in [1 << (at % 8), 0xff] {
                let mut image = image.clone();
                image.get_mut(name).unwrap()[at] ^= flip;
                let salvaged = recover_with(
                    &image,
                    &Options {
                        salvage: true,
                        ..options
                    },
                );
                match recover_with(&image, &options) {
                    // Only an end that may be torn is dropped without being asked.
                    Ok((commits, report)) => {
                        assert_eq!(*name, newest, "{at}");
                        assert_eq!(commits, ends[ends.len() - 2]);
                        assert!(report.dropped.is_some());
                        assert_eq!(salvaged.unwrap().0, commits);
                    }
                    Err(OpenError::Damaged { .. }) if name == "identity" => {}
                    Err(OpenError::Version { .. }) if name == "identity" => {}
                    Err(OpenError::Damaged { .. }) => {
                        let (commits, report) = salvaged.unwrap();
                        assert!(ends[..ends.len() - 1].contains(&commits));
                        assert!(report.dropped.unwrap().is_kept);
                    }
                    Err(error) => panic!("{error}"),
                }
            }
        }
    }
}

#[test]
fn missing_file_is_found() {
    let options = Options {
        segment_size: 1,
        ..lazy()
    };
    let (image, _) = short_run(&options);
    let logs: Vec<_> = image.keys().filter(|n| n.starts_with("log-")).collect();
    assert!(logs.len() >= 4);
    for name in &logs[..logs.len() - 1] {
        let mut image = image.clone();
        image.remove(*name);
        let error = recover(&image).unwrap_err();
        assert!(matches!(error, OpenError::Damaged { .. }), "{error}");
    }
}

#[test]
fn store_opens_many_times() {
    let storage = Faulty::default();
    for round in 0..50 {
        let (mut run, report) = Run::open(&storage, &lazy()).unwrap();
        assert_eq!(run.next, 2 * round);
        assert_eq!(report.dropped, None);
        drop(run.commit().unwrap());
        drop(run.commit().unwrap());
        // Closing writes them.
    }
    let (commits, report) = recover(&storage.image()).unwrap();
    assert_eq!((commits, report.commits), (100, 100));
}

/// Commits in epochs of `sizes`, with a snapshot after some, until the power is off. Returns how
/// many commits were answered as durable.
fn run_until_off(storage: &Faulty, options: &Options, sizes: &[(u8, bool)]) -> u64 {
    let Ok((mut run, _)) = Run::open(storage, options) else {
        return 0;
    };
    let mut durable = run.next;
    for &(size, with_snapshot) in sizes {
        let mut last = None;
        for _ in 0..size {
            last = run.commit();
        }
        if last.is_some_and(|last| last.wait().is_ok()) {
            durable = run.next;
        }
        let disk = Arc::clone(&run.disk);
        if with_snapshot && let Ok(mut snapshot) = disk.snapshot() {
            // Fuzzy: the state goes on while it is read.
            let _ = run.commit();
            if run.fill(&mut snapshot).is_ok() && snapshot.finish().is_ok() {
                // What it has seen is durable.
                durable = run.next;
            }
        }
    }
    durable
}

fn small(segment_size: u64) -> Options {
    Options {
        segment_size,
        ..lazy()
    }
}

#[test]
fn power_cut_at_every_step_leaves_a_prefix_with_all_that_was_answered() {
    let sizes = [(2, false), (1, true), (3, false), (2, true), (1, false)];
    let mut random = 1_u64;
    let mut choose = |n: usize| {
        random = random
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (random >> 33) as usize % n
    };
    for off_after in 0.. {
        let storage = Faulty::default();
        storage.plan(Plan {
            off_after: Some(off_after),
            ..Plan::default()
        });
        let answered = run_until_off(&storage, &small(200), &sizes);
        for image in [
            storage.cut(&mut choose),
            storage.cut(&mut choose),
            storage.image(),
        ] {
            let (commits, _) = recover(&image).unwrap_or_else(|why| panic!("{off_after}: {why}"));
            assert!(commits >= answered, "{off_after}: {commits} of {answered}");
        }
        if answered == 11 {
            return;
        }
    }
}

#[test]
fn power_cut_while_opening_leaves_the_prefix() {
    let (image, _) = short_run(&small(300));
    let name = newest_log(&image);
    let mut torn = image.clone();
    let length = torn[&name].len() - 3;
    torn.get_mut(&name).unwrap().truncate(length);
    let (wanted, _) = recover(&torn).unwrap();
    let mut choose = |n: usize| n / 2;
    for off_after in 0.. {
        let storage = Faulty::new(&torn);
        storage.plan(Plan {
            off_after: Some(off_after),
            ..Plan::default()
        });
        let opened = Run::open(&storage, &small(300)).is_ok();
        for image in [storage.cut(&mut choose), storage.image()] {
            assert_eq!(recover(&image).unwrap().0, wanted, "{off_after}");
        }
        if opened {
            return;
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(100 * crate::stress()) })]
    #[test]
    fn crash_at_random_leaves_a_prefix(
        sizes in prop::collection::vec((0..5_u8, any::<bool>()), 1..8),
        off_after in 0..6000_u64,
        segment_size in prop::sample::select(vec![1_u64, 150, 400, 1 << 20]),
        choices in prop::collection::vec(any::<u16>(), 40),
        again in 0..2000_u64,
    ) {
        let mut choices = choices.into_iter().cycle();
        let mut choose = |n: usize| choices.next().unwrap() as usize % n;
        let storage = Faulty::default();
        let plan = |off_after| Plan { off_after: Some(off_after), ..Plan::default() };
        storage.plan(plan(off_after));
        let answered = run_until_off(&storage, &small(segment_size), &sizes);
        let image = storage.cut(&mut choose);
        let (commits, _) = recover(&image).unwrap();
        prop_assert!(commits >= answered);
        // And once more, also while it opens.
        let storage = Faulty::new(&image);
        storage.plan(plan(again));
        let answered = run_until_off(&storage, &small(segment_size), &sizes).max(commits);
        let (commits, _) = recover(&storage.cut(&mut choose)).unwrap();
        prop_assert!(commits >= answered);
    }
}
