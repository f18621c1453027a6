//! A process with a store that is killed at random under load.
//!
//! The killed process is this test program again: it runs [`child`], which other runs skip.

use crate::killed::run_and_kill;
use crate::opening::TempDir;
use corelay_clock::Logical;
use corelay_txn::store::disk::Options;
use corelay_txn::store::{Mvcc, Occ, Protocol, Silo, Store, TicToc};
use std::io::Write;
use std::path::Path;

const ACCOUNTS: u64 = 64;
const CENTS: i64 = 100;
const THREADS: u64 = 3;

const DIR: &str = "CORELAY_KEPT_TEST_DIR";
const PROTOCOL: &str = "CORELAY_KEPT_TEST_PROTOCOL";

fn options() -> Options {
    Options {
        segment_size: 64 << 10,
        ..Options::default()
    }
}

#[test]
#[ignore = "the process that is killed: `kills_leave_the_bank_whole` starts it"]
fn child() {
    let (Some(dir), Ok(protocol)) = (std::env::var_os(DIR), std::env::var(PROTOCOL)) else {
        return;
    };
    let dir = Path::new(&dir);
    match &*protocol {
        "silo" => bank(Silo, dir),
        "tictoc" => bank(TicToc, dir),
        "occ" => bank(Occ::new(Logical::new()), dir),
        _ => bank(Mvcc::new(Logical::new()), dir),
    }
}

/// Transfers by several threads, each of which counts its own, and snapshots beside them.
fn bank<P: Protocol>(protocol: P, dir: &Path) {
    let store = Store::open_with(protocol, dir, &options()).unwrap();
    let accounts = store.kept_table::<u64, i64>("accounts").unwrap();
    let by_money = store.kept_ordered::<(i64, u64), ()>("by money").unwrap();
    let counts = store.kept_table::<u64, u64>("counts").unwrap();
    let init = store.transact(|tx| {
        for id in 0..ACCOUNTS {
            if tx.insert(&accounts, id, CENTS)? {
                tx.insert(&by_money, (CENTS, id), ())?;
            }
        }
        Ok(())
    });
    init.unwrap();
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            let (store, accounts, by_money, counts) = (&store, &accounts, &by_money, &counts);
            scope.spawn(move || {
                let mut random = u64::from(std::process::id()) + thread;
                loop {
                    random = random
                        .wrapping_mul(6_364_136_223_846_793_005)
                        .wrapping_add(1);
                    let from = (random >> 33) % ACCOUNTS;
                    let to = (from + 1 + (random >> 50) % (ACCOUNTS - 1)) % ACCOUNTS;
                    let transfer = store.transact_durable(|tx| {
                        for (id, cents) in [(from, -7), (to, 7)] {
                            let had = tx.get(accounts, &id)?.unwrap();
                            tx.put(accounts, id, had + cents)?;
                            assert!(tx.remove(by_money, &(had, id))?);
                            tx.insert(by_money, (had + cents, id), ())?;
                        }
                        let count = tx.get(counts, &thread)?.unwrap_or(0) + 1;
                        tx.put(counts, thread, count)?;
                        Ok(count)
                    });
                    let (count, durable) = transfer.unwrap();
                    if count % 8 == 0 {
                        durable.wait().unwrap();
                        let line = format!("{thread} {count}\n");
                        std::io::stdout().write_all(line.as_bytes()).unwrap();
                    }
                }
            });
        }
        loop {
            store.snapshot().unwrap();
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
    });
}

/// Checks a bank: no money is lost, the index is that of the accounts, and what was answered is there.
fn check<P: Protocol>(protocol: P, dir: &Path, answered: &[u64]) {
    let store = Store::open_with(protocol, dir, &options()).unwrap();
    let accounts = store.kept_ordered::<u64, i64>("accounts").unwrap();
    let by_money = store.kept_ordered::<(i64, u64), ()>("by money").unwrap();
    let counts = store.kept_table::<u64, u64>("counts").unwrap();
    let (rows, index) = store
        .read_only(|tx| Ok((tx.rows(&accounts, ..)?, tx.rows(&by_money, ..)?)))
        .unwrap();
    assert!(rows.is_empty() || rows.len() as u64 == ACCOUNTS);
    let money: i64 = rows.iter().map(|(_, cents)| cents).sum();
    assert_eq!(money, rows.len() as i64 * CENTS, "half a transfer");
    let mut wanted: Vec<_> = rows.into_iter().map(|(id, cents)| (cents, id)).collect();
    wanted.sort_unstable();
    assert!(
        wanted
            .into_iter()
            .eq(index.into_iter().map(|(key, ())| key))
    );
    for (thread, &answered) in (0..).zip(answered) {
        let count = store.read_only(|tx| tx.get(&counts, &thread)).unwrap();
        let count = count.unwrap_or(0);
        assert!(
            count >= answered,
            "{answered} was answered, {count} is there"
        );
    }
}

#[test]
fn kills_leave_the_bank_whole() {
    for protocol in ["silo", "tictoc", "occ", "mvcc"] {
        let dir = TempDir::new(&format!("kept-killed-{protocol}"));
        let mut answered = [0; THREADS as usize];
        let environment = [(DIR, dir.0.as_os_str()), (PROTOCOL, protocol.as_ref())];
        let kills = crate::stress();
        run_and_kill("kept::killed::child", &environment, kills, |lines| {
            for (thread, count) in lines {
                answered[thread as usize] = count;
            }
            match protocol {
                "silo" => check(Silo, &dir.0, &answered),
                "tictoc" => check(TicToc, &dir.0, &answered),
                "occ" => check(Occ::new(Logical::new()), &dir.0, &answered),
                _ => check(Mvcc::new(Logical::new()), &dir.0, &answered),
            }
        });
    }
}
