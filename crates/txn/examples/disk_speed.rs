//! The speed of the store's log: commits per second, what a commit costs its thread, and recovery.
//!
//! `cargo run --release -p corelay-txn --example disk_speed -- DIR [SECONDS]`

use corelay_txn::store::disk::{Disk, Durable, Options, Records, Storage, StorageFile, TableId};
use std::collections::VecDeque;
use std::hint::black_box;
use std::io::{self, Read};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

const KEYS: u64 = 1_000_000;

fn record(records: &mut Records, table: TableId, key: u64, value: &[u8; 100]) {
    records.clear();
    let put = records.put(
        table,
        |bytes| {
            bytes.extend_from_slice(&key.to_le_bytes());
            Ok(())
        },
        |bytes| {
            bytes.extend_from_slice(value);
            Ok(())
        },
    );
    put.expect("it is small");
}

fn key(number: u64) -> u64 {
    number.wrapping_mul(0x9E37_79B9_7F4A_7C15) % KEYS
}

/// Commits of `threads` threads that each have `window` handles outstanding.
fn commits(dir: &Path, threads: u64, window: usize, time: Duration) {
    let _ = std::fs::remove_dir_all(dir);
    let (disk, _) = Disk::open(dir, &Options::default()).expect("the directory opens");
    let table = disk.table("t", "").expect("one tag");
    let order = AtomicU64::new(1);
    let start = Instant::now();
    let total = AtomicU64::new(0);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                let mut writer = disk.writer();
                let mut records = Records::new();
                let mut outstanding = VecDeque::<Durable>::new();
                let mut count = 0;
                while start.elapsed() < time {
                    let number = order.fetch_add(1, Ordering::Relaxed);
                    record(&mut records, table, key(number), &[7; 100]);
                    writer.admit().expect("the disk works");
                    let entered = writer.enter().expect("the disk works");
                    outstanding.push_back(entered.commit(number, &records));
                    if outstanding.len() >= window {
                        let oldest = outstanding.pop_front().expect("there are some");
                        oldest.wait().expect("the disk works");
                        count += 1;
                    }
                }
                total.fetch_add(count, Ordering::Relaxed);
            });
        }
    });
    let seconds = start.elapsed().as_secs_f64();
    let report = disk.report();
    let writes = report.epochs.max(1);
    println!(
        "{threads} threads, window {window}: {:.0} commits/s, {:.1} commits a write, {:.0} writes/s \
         of {:.0} µs (longest {:.0} µs), {:.1} MB/s",
        total.load(Ordering::Relaxed) as f64 / seconds,
        report.commits as f64 / writes as f64,
        writes as f64 / seconds,
        report.write_time.as_secs_f64() * 1e6 / writes as f64,
        report.longest_write.as_secs_f64() * 1e6,
        report.bytes as f64 / 1e6 / seconds,
    );
}

/// A disk that is infinitely fast and forgets everything.
struct Nowhere;

impl Storage for Nowhere {
    fn list(&self) -> io::Result<Vec<String>> {
        Ok(Vec::new())
    }
    fn open(&self, _: &str) -> io::Result<(Box<dyn Read + Send>, u64)> {
        Err(io::ErrorKind::NotFound.into())
    }
    fn create(&self, _: &str) -> io::Result<Box<dyn StorageFile>> {
        Ok(Box::new(Self))
    }
    fn mend(&self, _: &str, _: u64, _: &[u8]) -> io::Result<()> {
        Ok(())
    }
    fn rename(&self, _: &str, _: &str) -> io::Result<()> {
        Ok(())
    }
    fn remove(&self, _: &str) -> io::Result<()> {
        Ok(())
    }
    fn sync(&self) -> io::Result<()> {
        Ok(())
    }
}

impl StorageFile for Nowhere {
    fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        black_box(bytes);
        Ok(())
    }
    fn sync(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Nanoseconds of a commit on its own thread: to encode it, and to enter, hand over and leave.
fn cost(rounds: u64) {
    let (disk, _) = Disk::open_in(Arc::new(Nowhere), &Options::default()).expect("it opens");
    let table = disk.table("t", "").expect("one tag");
    let mut writer = disk.writer();
    let mut records = Records::new();
    let start = Instant::now();
    for number in 0..rounds {
        record(&mut records, table, key(number), black_box(&[7; 100]));
        black_box(&records);
    }
    let encode = start.elapsed();
    let start = Instant::now();
    for number in 0..rounds {
        writer.admit().expect("the disk works");
        let entered = writer.enter().expect("the disk works");
        drop(black_box(entered.commit(number, &records)));
    }
    let commit = start.elapsed();
    let start = Instant::now();
    for _ in 0..rounds {
        let entered = writer.enter().expect("the disk works");
        black_box(&entered);
    }
    let enter = start.elapsed();
    let each = |time: Duration| time.as_secs_f64() * 1e9 / rounds as f64;
    println!(
        "on the committing thread: encode {:.1} ns, admit, enter and commit {:.1} ns, of which \
         enter and leave {:.1} ns",
        each(encode),
        each(commit),
        each(enter)
    );
}

fn recovery(dir: &Path, commits: u64) {
    let _ = std::fs::remove_dir_all(dir);
    {
        let (disk, _) = Disk::open(dir, &Options::default()).expect("the directory opens");
        let table = disk.table("t", "").expect("one tag");
        let mut writer = disk.writer();
        let mut records = Records::new();
        for number in 0..commits {
            record(&mut records, table, key(number), &[7; 100]);
            writer.admit().expect("the disk works");
            drop(
                writer
                    .enter()
                    .expect("the disk works")
                    .commit(number, &records),
            );
        }
    }
    for _ in 0..3 {
        let (disk, recovered) = Disk::open(dir, &Options::default()).expect("it opens");
        let seconds = recovered.time.as_secs_f64();
        println!(
            "recovery: {:.0} MB, {} commits, {} entries in {seconds:.2} s: {:.0} MB/s",
            recovered.bytes as f64 / 1e6,
            recovered.commits,
            recovered.tables[0].entries().count(),
            recovered.bytes as f64 / 1e6 / seconds,
        );
        drop(disk);
    }
}

fn main() {
    let mut arguments = std::env::args().skip(1);
    let Some(dir) = arguments.next() else {
        eprintln!("usage: disk_speed DIR [SECONDS]; DIR is removed");
        std::process::exit(2);
    };
    let seconds = arguments
        .next()
        .map_or(2.0, |text| text.parse().expect("seconds"));
    let (dir, time) = (Path::new(&dir), Duration::from_secs_f64(seconds));
    cost(20_000_000.min((seconds * 1e7) as u64));
    for (threads, window) in [(1, 1), (2, 1), (2, 64), (2, 1000), (1, 1000)] {
        commits(dir, threads, window, time);
    }
    recovery(dir, (seconds * 3e6) as u64);
    let _ = std::fs::remove_dir_all(dir);
}
