//! Transfers between accounts by several threads: no cent is lost, and every sum is right.

use corelay_clock::{Clock, Logical, Ordo};
use corelay_txn::store::{Isolation, Mvcc, Occ, Protocol, Silo, Store, Table, TicToc};

const ACCOUNTS: u64 = 16;
const CENTS: i64 = 100;

fn rounds() -> u64 {
    let stress = std::env::var("CORELAY_STRESS").ok();
    2_000 * stress.and_then(|s| s.parse().ok()).unwrap_or(1)
}

fn bank<P: Protocol>(protocol: P) {
    let store = Store::new(protocol);
    let accounts: Table<u64, i64> = store.table("accounts").unwrap();
    store
        .transact(|tx| (0..ACCOUNTS).try_for_each(|id| tx.put(&accounts, id, CENTS)))
        .unwrap();
    let total = |tx: &mut corelay_txn::store::Tx<'_, P>| {
        let mut sum = 0;
        for id in 0..ACCOUNTS {
            sum += tx.get(&accounts, &id)?.unwrap_or(0);
        }
        Ok(sum)
    };
    std::thread::scope(|s| {
        for thread in 0..4_u64 {
            let (store, accounts, total) = (&store, &accounts, &total);
            s.spawn(move || {
                let mut random = thread + 1;
                let mut draw = |below: u64| {
                    random = random
                        .wrapping_mul(6_364_136_223_846_793_005)
                        .wrapping_add(thread | 1);
                    (random >> 33) % below
                };
                for round in 0..rounds() {
                    let (from, to, cents) = (draw(ACCOUNTS), draw(ACCOUNTS), draw(50) as i64);
                    store
                        .transact(|tx| {
                            // An account without money is removed, and made again when it gets some.
                            let left = tx.get(accounts, &from)?.unwrap_or(0) - cents;
                            if left == 0 {
                                tx.remove(accounts, &from)?;
                            } else {
                                tx.put(accounts, from, left)?;
                            }
                            if !tx.update(accounts, &to, |has| *has += cents)? {
                                tx.insert(accounts, to, cents)?;
                            }
                            Ok(())
                        })
                        .unwrap();
                    if round % 8 == 0 {
                        assert_eq!(store.transact(total).unwrap(), ACCOUNTS as i64 * CENTS);
                        assert_eq!(store.read_only(total).unwrap(), ACCOUNTS as i64 * CENTS);
                    }
                }
            });
        }
    });
    assert_eq!(store.transact(total).unwrap(), ACCOUNTS as i64 * CENTS);
}

#[test]
fn silo() {
    bank(Silo);
}

#[test]
fn tictoc() {
    bank(TicToc);
}

fn with_clock<C: Clock + 'static>(clock: impl Fn() -> C) {
    bank(Occ::new(clock()));
    for isolation in [
        Isolation::Snapshot,
        Isolation::Serializable,
        Isolation::StrictlySerializable,
    ] {
        bank(Mvcc::with_isolation(clock(), isolation));
    }
}

#[test]
fn with_the_counter() {
    with_clock(Logical::new);
}

#[test]
fn with_ordo() {
    match Ordo::shared() {
        Ok(clock) => with_clock(|| clock),
        Err(why) => println!("{why}"),
    }
}
