//! Every method at a tiny size, and stores that lose something.

use super::contender::{Keeper, Shape};
use super::{Build, LogShape, build};
use crate::ordered::method::methods;
use crate::ordered::spec::Bench;
use crate::ordered::tests::{assert_caught, measure};
use corelay_lab_measure::method::{Kind, Method};
use corelay_lab_measure::schema::Mode;
use std::fs;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

fn bench() -> Bench {
    Bench::Kept {
        shape: Shape {
            rows: 5,
            bytes: 24,
            requests: 2,
        },
        dir: Box::leak(std::env::temp_dir().into_boxed_path()),
    }
}

#[test]
fn openings_find_all_updates_of_the_log() {
    for is_cold in [false, cfg!(target_os = "linux")] {
        let bench = Bench::Recover {
            shape: LogShape {
                rows: 40,
                bytes: 9,
                log_bytes: 100_000,
                is_cold,
            },
            dir: Box::leak(std::env::temp_dir().into_boxed_path()),
        };
        let all: Vec<_> = methods(bench).iter().map(|entry| entry.method).collect();
        for run in measure(bench, &all, 2) {
            assert!(run.correct, "{run:?}");
            // Only one thread opens stores: at least once in each sample.
            assert!(run.samples.iter().all(|s| s.per_thread.len() == 1));
            assert!(
                run.samples.iter().all(|s| s.per_thread[0] >= 100),
                "{run:?}"
            );
        }
    }
}

#[test]
fn every_method_finds_all_additions_after_a_new_start() {
    for threads in [1, 3] {
        let all: Vec<_> = methods(bench()).iter().map(|entry| entry.method).collect();
        for run in measure(bench(), &all, threads) {
            assert!(run.correct, "{run:?}");
            assert!(run.by_mode[&Mode::Unknown].median_mops > 0.0);
            assert!(run.latency_ns.unwrap().p50 > 0);
        }
    }
}

/// A store in memory that writes its sum to a file: too little of it.
struct Forgets {
    file: PathBuf,
    rows: Mutex<u64>,
    /// The additions that are left out of the file.
    lost: u64,
}

impl Forgets {
    fn open(dir: &Path, lost: u64) -> Self {
        let file = dir.join("sum");
        let sum = fs::read_to_string(&file)
            .ok()
            .and_then(|sum| sum.parse().ok());
        Self {
            file,
            rows: Mutex::new(sum.unwrap_or(0)),
            lost,
        }
    }
}

impl Drop for Forgets {
    fn drop(&mut self) {
        let sum = self.rows.lock().unwrap().saturating_sub(self.lost);
        fs::write(&self.file, sum.to_string()).unwrap();
    }
}

impl Keeper for Forgets {
    type Pending = bool;

    fn fill(&self, _: Range<u64>, _: usize) -> Result<(), String> {
        Ok(())
    }

    fn add(&self, rows: &[u64]) -> Result<bool, String> {
        let mut sum = self.rows.lock().unwrap();
        *sum += rows.len() as u64;
        Ok(self.lost == 2 && *sum > 100)
    }

    fn wait(&self, is_broken: bool) -> Result<(), String> {
        match is_broken {
            true => Err("the disk has failed".to_owned()),
            false => Ok(()),
        }
    }

    fn sum(&self) -> Result<u64, String> {
        Ok(*self.rows.lock().unwrap())
    }
}

#[test]
fn additions_that_a_new_start_does_not_find_and_failures_have_no_figure() {
    let method = |build| Method::new("broken", Kind::Direct, build);
    let whole: Build =
        |spec, point, limit| build(spec, point, limit, |dir, _| Ok(Forgets::open(dir, 0)));
    let lost: Build =
        |spec, point, limit| build(spec, point, limit, |dir, _| Ok(Forgets::open(dir, 1)));
    let fails: Build =
        |spec, point, limit| build(spec, point, limit, |dir, _| Ok(Forgets::open(dir, 2)));
    let runs = measure(bench(), &[method(whole), method(lost), method(fails)], 2);
    assert!(runs[0].correct, "{:?}", runs[0]);
    assert_caught(&runs[1], "after a new start");
    assert_caught(&runs[2], "the disk has failed");
}
