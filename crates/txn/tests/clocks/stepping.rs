//! Clocks that step, as on a host that moves virtual CPUs to cores with other offsets.

use super::{Named, scaled};
use corelay_clock::{Clock, Skewed, SkewedBuilder};
use corelay_txn::oplog::{Add, Change, Multiset, OpLog};
use corelay_txn::rlu::{Domain, RluList, Session};
use corelay_txn::tl2::{Stm, TVar};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;

/// Steps within the boundary.
fn within() -> Vec<Skewed> {
    stepping(40, 45)
}

/// Steps beyond the boundary: a few times as far, and a thousand times.
fn beyond() -> Vec<Skewed> {
    let (few, many) = (stepping(120, 45), stepping(50_000, 45));
    few.into_iter().chain(many).collect()
}

fn stepping(skew: u64, boundary: u64) -> Vec<Skewed> {
    let clock = |(every, delay)| {
        let with = SkewedBuilder {
            skew,
            step: 2,
            boundary,
            delay,
        };
        with.build().stepping(every)
    };
    [(17, 0), (300, 5), (5_000, 0)]
        .into_iter()
        .map(clock)
        .collect()
}

const ACCOUNTS: usize = 32;
const EACH: u64 = 100;

/// Threads move amounts between accounts and look at all of them, in transactions that write and in
/// transactions that only read. Returns how many of the latter saw a wrong sum.
fn transfers(stm: &Stm<Skewed>, rounds: u64) -> u64 {
    let accounts: Vec<TVar<u64>> = (0..ACCOUNTS).map(|_| TVar::new(EACH)).collect();
    let audits = TVar::new(0_u64);
    let torn = AtomicU64::new(0);
    thread::scope(|s| {
        for id in 0..3 {
            let (accounts, audits, torn) = (&accounts, &audits, &torn);
            s.spawn(move || {
                for round in 0..rounds {
                    let from = (id + round as usize) % ACCOUNTS;
                    let to = (id + 3 * round as usize + 1) % ACCOUNTS;
                    stm.atomically(|tx| {
                        tx.update(&accounts[from], |cents| cents.wrapping_sub(1))?;
                        tx.update(&accounts[to], |cents| cents.wrapping_add(1))
                    });
                    // It commits, so the sum that it has read is right.
                    let sum = stm.atomically(|tx| {
                        tx.update(audits, |n| n + 1)?;
                        let mut sum = 0_u64;
                        for account in accounts {
                            sum = sum.wrapping_add(tx.read(account)?);
                        }
                        Ok(sum)
                    });
                    assert_eq!(sum, EACH * ACCOUNTS as u64, "a torn commit");
                    let seen = stm.atomically(|tx| {
                        let mut sum = 0_u64;
                        for (at, account) in accounts.iter().enumerate() {
                            if at == ACCOUNTS / 2 {
                                // Gives other threads time to write after this read.
                                thread::yield_now();
                            }
                            sum = sum.wrapping_add(tx.read(account)?);
                        }
                        Ok(sum)
                    });
                    torn.fetch_add(u64::from(seen != sum), Ordering::Relaxed);
                }
            });
        }
    });
    let sum = accounts
        .iter()
        .fold(0_u64, |sum, account| sum.wrapping_add(account.load()));
    assert_eq!(sum, EACH * ACCOUNTS as u64, "an update was lost");
    assert_eq!(audits.load(), 3 * rounds, "an update was lost");
    torn.into_inner()
}

#[test]
fn tl2_is_right_while_clocks_step_within_the_boundary() {
    let _named = Named::new("TL2 on a stepping clock");
    for clock in within() {
        let stm = Stm::new(clock);
        assert_eq!(transfers(&stm, scaled(3_000)), 0, "{stm:?}");
        assert_eq!(stm.stats().beyond, 0, "{stm:?}");
    }
}

/// Beyond the boundary no transaction that commits a write has seen a torn state. One that only
/// reads may, until the clock is caught; from then on none does.
#[test]
fn tl2_catches_clocks_that_step_beyond_the_boundary_and_loses_nothing() {
    let _named = Named::new("TL2 on a stepping clock");
    for clock in beyond() {
        let stm = Stm::new(clock);
        while stm.stats().beyond == 0 {
            transfers(&stm, 300);
        }
        assert_eq!(
            transfers(&stm, scaled(3_000)),
            0,
            "torn behind its catch: {stm:?}"
        );
    }
}

/// Readers count a list in which writers move nodes in pairs. A reader sees both changes of a
/// commit or neither.
fn moves(clock: Skewed, reads: u64, deferral: usize) -> corelay_txn::rlu::Stats {
    let domain = Domain::with_deferral(clock, deferral);
    let list: RluList<Skewed, u64, u64> = RluList::new_in(&domain);
    let cell = domain.cell(0_u64);
    let fill = |session: &mut Session<Skewed>| {
        session.write(|section| {
            for key in 0..4 {
                list.insert(section, 10 * key, key)?;
            }
            Ok(())
        });
    };
    fill(&mut domain.session());
    let stop = AtomicBool::new(false);
    let (mut torn, mut older) = (0, 0);
    thread::scope(|s| {
        for id in 0..2 {
            let (domain, list, cell, stop) = (&domain, &list, &cell, &stop);
            s.spawn(move || {
                let mut session = domain.session();
                let mut turn: u64 = 0;
                while !stop.load(Ordering::Relaxed) {
                    let key = 2 * (turn % 2) + id;
                    turn += 1;
                    session.write(|section| {
                        *section.try_lock(cell)? += 1;
                        // One node goes when another comes: there are always four.
                        if list.remove(section, &(10 * key))?.is_some() {
                            list.insert(section, 10 * key + 5, key).map(drop)
                        } else {
                            list.remove(section, &(10 * key + 5))?;
                            list.insert(section, 10 * key, key).map(drop)
                        }
                    });
                    if turn.is_multiple_of(8) {
                        thread::yield_now();
                    }
                }
            });
        }
        let mut session = domain.session();
        let mut last = 0;
        // It is asserted below, because the writers go on until they are stopped. On a busy machine
        // they may have had no turn yet.
        while session.stats().copies < reads / 20 || domain.stats().commits < reads {
            let (before, keys, after) = session.read(|section| {
                let before = *section.get(&cell);
                // Gives other threads time to commit after this read.
                thread::yield_now();
                let keys: Vec<u64> = list.iter(section).map(|(key, _)| key / 10).collect();
                (before, keys, *section.get(&cell))
            });
            torn += u64::from((keys, after) != (vec![0, 1, 2, 3], before));
            older += u64::from(before < last);
            last = before;
        }
        stop.store(true, Ordering::Relaxed);
    });
    let stats = domain.stats();
    assert_eq!((torn, older), (0, 0), "torn, older than before: {stats:?}");
    stats
}

#[test]
fn rlu_never_tears_however_clocks_step() {
    let _named = Named::new("RLU on a stepping clock");
    for deferral in [1, 4] {
        for clock in within() {
            assert_eq!(moves(clock, scaled(2_000), deferral).beyond, 0);
        }
        let stats = beyond()
            .into_iter()
            .map(|clock| moves(clock, scaled(2_000), deferral));
        assert!(
            stats.map(|stats| stats.beyond).sum::<u64>() > 0,
            "no step was noticed"
        );
    }
}

/// All updates commute, so no time is drawn, and a wrong clock does no harm.
#[test]
fn oplog_counts_right_however_clocks_step() {
    let _named = Named::new("OpLog on a stepping clock");
    for clock in within().into_iter().chain(beyond()) {
        let hits = OpLog::new(0_i64, &clock);
        let words = OpLog::new(Multiset::new(), &clock);
        let each = scaled(2_000) as i64;
        thread::scope(|s| {
            for id in 0..3_u64 {
                let (hits, words) = (&hits, &words);
                s.spawn(move || {
                    let (mut hits, mut words) = (hits.session(), words.session());
                    for round in 0..each {
                        hits.update(Add(2));
                        words.update(Change::add(id));
                        words.update(Change::add(9));
                        words.update(Change::remove(id));
                        if round % 500 == 0 {
                            hits.read(|&n| assert!(n % 2 == 0 && n >= 2 * round));
                        }
                    }
                });
            }
        });
        assert_eq!(hits.read(|&n| n), 6 * each);
        let counts = words.read(|words| (words.count(&0), words.count(&9)));
        assert_eq!(counts, (0, 3 * each));
    }
}

/// Updates whose order matters are neither lost nor doubled, each session's own order is kept, and
/// the clock is caught.
#[test]
fn oplog_loses_nothing_where_order_matters_and_catches_the_clock() {
    use corelay_txn::oplog::Operation;
    struct Say(u64, u64);
    impl Operation<Vec<(u64, u64)>> for Say {
        fn apply(self, said: &mut Vec<(u64, u64)>) {
            said.push((self.0, self.1));
        }
    }
    let _named = Named::new("OpLog on a stepping clock");
    let each = scaled(500);
    let run = |clock: &Skewed| {
        let log = OpLog::new(Vec::new(), clock);
        thread::scope(|s| {
            for id in 0..3 {
                let log = &log;
                s.spawn(move || {
                    let mut session = log.session();
                    for n in 0..each {
                        session.update(Say(id, n));
                        if n % 8 == id {
                            session.read(|said| assert!(said.contains(&(id, n))));
                        }
                    }
                });
            }
        });
        let said = log.read(Vec::clone);
        assert_eq!(said.len() as u64, 3 * each);
        for id in 0..3 {
            let of_one = said.iter().filter(|(by, _)| *by == id).map(|&(_, n)| n);
            assert_eq!(of_one.count() as u64, each);
        }
        log.stats().beyond
    };
    for clock in within() {
        assert_eq!(run(&clock), 0, "{clock:?}");
        clock.now();
    }
    let caught: u64 = beyond().iter().map(run).sum();
    assert!(caught > 0, "no step was noticed");
}
