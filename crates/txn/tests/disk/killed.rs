//! A process that is killed at random under load. Another one that finds its store in use.
//!
//! The killed process is this test program again: it runs [`child`], which other runs skip.

use crate::opening::TempDir;
use corelay_txn::store::disk::{Disk, Options, Records};
use std::collections::HashMap;
use std::ffi::OsStr;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

const DIR: &str = "CORELAY_DISK_TEST_DIR";
const THREADS: u64 = 2;
const ENTRIES: u64 = 16;

/// Starts this test program again, with the test `child` alone.
fn start(child: &str, environment: &[(&str, &OsStr)]) -> Child {
    let program = std::env::current_exe().unwrap();
    Command::new(program)
        .args(["--exact", child, "--ignored", "--nocapture"])
        .envs(environment.iter().copied())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap()
}

/// Starts the child so many times, and kills it each time when it has said some lines, each of a
/// thread's number and what was answered to that. Calls `check` with the lines after each kill.
pub(crate) fn run_and_kill(
    child: &str,
    environment: &[(&str, &OsStr)],
    kills: u32,
    mut check: impl FnMut(Vec<(u64, u64)>),
) {
    let mut random = u64::from(std::process::id());
    for round in 0..kills {
        let mut child = start(child, environment);
        random = random
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        let wanted = (random >> 58) as usize + 1;
        let mut answered = Vec::new();
        for line in BufReader::new(child.stdout.take().unwrap()).lines() {
            let line = line.unwrap();
            let mut words = line.split(' ').map(str::parse::<u64>);
            if let (Some(Ok(thread)), Some(Ok(number))) = (words.next(), words.next()) {
                answered.push((thread, number));
                if answered.len() == wanted {
                    // What it still says is read too.
                    child.kill().unwrap();
                }
            }
        }
        child.wait().unwrap();
        assert!(
            answered.len() >= wanted,
            "round {round}: the process ended by itself"
        );
        check(answered);
    }
}

fn options() -> Options {
    Options {
        segment_size: 64 << 10,
        ..Options::default()
    }
}

/// Each thread's commits write all its entries with one number, so that half of one is seen.
#[test]
#[ignore = "the process that is killed: `random_kills_lose_nothing_that_was_answered` starts it"]
fn child() {
    let Some(dir) = std::env::var_os(DIR) else {
        return;
    };
    let (disk, recovered) = Disk::open(Path::new(&dir), &options()).unwrap();
    let table = disk.table("numbers", "u64 -> u64").unwrap();
    let start = recovered.tables.first().map_or(0, |table| {
        let numbers = table.entries().map(|(_, value)| word(value));
        numbers.max().unwrap_or(0)
    });
    let order = Arc::new(AtomicU64::new(1));
    let newest: Vec<_> = (0..THREADS).map(|_| AtomicU64::new(0)).collect();
    println!("ready");
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            let (disk, order, newest) = (&disk, &order, &newest);
            scope.spawn(move || {
                let mut writer = disk.writer();
                let mut records = Records::new();
                for number in start + 1.. {
                    records.clear();
                    for entry in 0..ENTRIES {
                        let key = (thread * ENTRIES + entry).to_le_bytes();
                        put(&mut records, table, &key, number);
                    }
                    writer.admit().unwrap();
                    let entered = writer.enter().unwrap();
                    let order = order.fetch_add(1, Ordering::Relaxed);
                    // The main thread's snapshot sees what is installed.
                    newest[thread as usize].store(number, Ordering::SeqCst);
                    let handle = entered.commit(order, &records);
                    if number % 8 == 0 {
                        handle.wait().unwrap();
                        let line = format!("{thread} {number}\n");
                        std::io::stdout().write_all(line.as_bytes()).unwrap();
                    }
                }
            });
        }
        // Fuzzy snapshots: the entries of one thread may have different numbers.
        loop {
            let mut snapshot = disk.snapshot().unwrap();
            for thread in 0..THREADS {
                for entry in 0..ENTRIES {
                    let number = newest[thread as usize].load(Ordering::SeqCst).max(start);
                    if number > 0 {
                        let key = (thread * ENTRIES + entry).to_le_bytes();
                        let put = snapshot.put(table, bytes(&key), bytes(&number.to_le_bytes()));
                        put.unwrap();
                    }
                }
            }
            snapshot.finish().unwrap();
            std::thread::sleep(Duration::from_millis(3));
        }
    });
}

fn put(records: &mut Records, table: corelay_txn::store::disk::TableId, key: &[u8], number: u64) {
    let value = number.to_le_bytes();
    records.put(table, bytes(key), bytes(&value)).unwrap();
}

use crate::history::raw as bytes;

fn word(bytes: &[u8]) -> u64 {
    u64::from_le_bytes(bytes.try_into().unwrap())
}

#[test]
fn random_kills_lose_nothing_that_was_answered() {
    let dir = TempDir::new("killed");
    let mut answered = HashMap::new();
    let environment = [(DIR, dir.0.as_os_str())];
    run_and_kill(
        "killed::child",
        &environment,
        3 * crate::stress(),
        |lines| {
            answered.extend(lines);
            let (disk, recovered) = Disk::open(&dir.0, &options()).unwrap();
            let entries: HashMap<_, _> = recovered.tables[0].entries().collect();
            drop(disk);
            for thread in 0..THREADS {
                let numbers = (0..ENTRIES).map(|entry| {
                    let key = (thread * ENTRIES + entry).to_le_bytes();
                    entries.get(&key[..]).map(|value| word(value))
                });
                let mut numbers: Vec<_> = numbers.collect();
                numbers.dedup();
                assert_eq!(numbers.len(), 1, "half a transaction");
                let number = numbers[0].unwrap_or(0);
                let answered = answered.get(&thread).copied().unwrap_or(0);
                assert!(
                    number >= answered,
                    "{answered} was answered, {number} is there"
                );
            }
        },
    );
}

#[test]
fn directory_in_use_by_another_process_is_refused() {
    let dir = TempDir::new("two");
    let mut child = start("killed::child", &[(DIR, dir.0.as_os_str())]);
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    while lines.next().unwrap().unwrap() != "ready" {}
    let error = Disk::open(&dir.0, &options()).unwrap_err();
    let said = error.to_string();
    let wanted = format!("is in use by another process (pid {})", child.id());
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(said.contains(&wanted), "{said}");
    Disk::open(&dir.0, &options()).unwrap();
}
