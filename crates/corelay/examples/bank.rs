//! A bank that is kept on disk: accounts, an ordered index of their owners, and transfers that are
//! answered when they are on disk.
//!
//! `cargo run -p corelay --example bank -- --dir DIR`: with a directory, the bank is there again next time.

use corelay::txn::store::{Abort, Durable, OrderedTable, Reason, Silo, Store, Table, Tx};
use std::error::Error;
use std::ops::ControlFlow::Continue;
use std::path::{Path, PathBuf};

/// An account's number.
type Number = u64;

struct Bank {
    store: Store<Silo>,
    /// The cents of each account.
    cents: Table<Number, i64>,
    /// The owner and number of each account, in this order: a person's accounts are a range.
    by_owner: OrderedTable<(String, Number), ()>,
}

impl Bank {
    /// Opens the bank in a directory, or founds it there.
    fn open(dir: &Path) -> Result<Self, Box<dyn Error>> {
        let store = Store::open(Silo, dir)?;
        if let Some(dropped) = store.recovered().and_then(|found| found.dropped.as_ref()) {
            // It was never answered as durable.
            println!("after a crash: {dropped}");
        }
        let cents = store.kept_table("cents")?;
        let by_owner = store.kept_ordered("by owner")?;
        Ok(Self {
            store,
            cents,
            by_owner,
        })
    }

    /// Opens an account, unless there is one of this number.
    fn add(&self, number: Number, owner: &str, cents: i64) -> Result<bool, Abort> {
        self.store.transact(|tx| {
            let is_new = tx.insert(&self.cents, number, cents)?;
            if is_new {
                tx.insert(&self.by_owner, (owner.to_owned(), number), ())?;
            }
            Ok(is_new)
        })
    }

    /// Moves money, unless that leaves a debt. The handle says when the transfer is on disk.
    fn transfer(&self, from: Number, to: Number, cents: i64) -> Result<Durable, Abort> {
        let transfer = |tx: &mut Tx<'_, Silo>| {
            let take = |has: &mut i64| {
                *has -= cents;
                *has >= 0
            };
            // Both accounts must be there. An abort undoes what was written before it.
            let is_covered = tx.update_with(&self.cents, &from, take)? == Some(true);
            if !is_covered || !tx.update(&self.cents, &to, |has| *has += cents)? {
                return tx.abort();
            }
            Ok(())
        };
        let ((), durable) = self.store.transact_durable(transfer)?;
        Ok(durable)
    }

    /// All that a person has. Nobody can open another account for them meanwhile.
    fn wealth(&self, owner: &str) -> Result<i64, Abort> {
        self.store.transact(|tx| {
            let mut numbers = Vec::new();
            let all = (owner.to_owned(), 0)..=(owner.to_owned(), Number::MAX);
            tx.range(&self.by_owner, all, |(_, number), ()| {
                numbers.push(*number);
                Continue::<()>(())
            })?;
            let mut sum = 0;
            for number in numbers {
                sum += tx.get(&self.cents, &number)?.unwrap_or(0);
            }
            Ok(sum)
        })
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args_os().skip_while(|argument| argument != "--dir");
    let given = arguments.nth(1).map(PathBuf::from);
    let temporary = || std::env::temp_dir().join(format!("corelay-bank-{}", std::process::id()));
    let dir = given.clone().unwrap_or_else(temporary);

    let bank = Bank::open(&dir)?;
    for (number, owner) in [(1, "ada"), (2, "bob"), (3, "ada")] {
        if bank.add(number, owner, 100)? {
            println!("account {number} of {owner} is opened with 100 cents");
        }
    }
    let before = bank.wealth("ada")? + bank.wealth("bob")?;

    // Threads that wait at the same time share one write to the disk.
    std::thread::scope(|scope| {
        for (from, to) in [(1, 2), (2, 3), (3, 1)] {
            let bank = &bank;
            scope.spawn(move || {
                for _ in 0..100 {
                    match bank.transfer(from, to, 7) {
                        Ok(durable) => durable.wait().expect("the disk works"),
                        // There is too little in the account.
                        Err(abort) => assert_eq!(abort.reason(), Reason::Explicit),
                    }
                }
            });
        }
    });
    let after = bank.wealth("ada")? + bank.wealth("bob")?;
    assert_eq!(before, after);
    println!(
        "ada has {}, bob has {}",
        bank.wealth("ada")?,
        bank.wealth("bob")?
    );

    // A snapshot replaces the log, so that it does not grow for ever.
    let snapshot = bank.store.snapshot()?;
    println!(
        "{} rows in a snapshot of {} bytes",
        snapshot.entries, snapshot.bytes
    );
    println!("{}", bank.store.report());

    // Closed and opened again, as after the end of the process.
    drop(bank);
    let bank = Bank::open(&dir)?;
    assert_eq!(bank.wealth("ada")? + bank.wealth("bob")?, after);
    println!(
        "opened again: ada has {}, bob has {}",
        bank.wealth("ada")?,
        bank.wealth("bob")?
    );
    drop(bank);
    if given.is_none() {
        std::fs::remove_dir_all(&dir)?;
    }
    Ok(())
}
