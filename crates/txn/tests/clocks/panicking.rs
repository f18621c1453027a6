//! A clock that panics at its k-th call, for every k: the call in progress is undone or done, and
//! others go on.

use super::Named;
use corelay_clock::{Clock, Order, Skewed, SkewedBuilder, Time};
use corelay_txn::oplog::{OpLog, Operation, Remap, ReverseMap};
use corelay_txn::rlu::{Domain, Rlu, RluList};
use corelay_txn::tl2::{Stm, TVar, Value};
use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::thread;

/// A clock that counts its calls, and panics at one.
struct Brittle {
    clock: Skewed,
    /// Calls until the one that panics; below zero, none does.
    left: AtomicI64,
    panics: AtomicU64,
}

#[derive(Clone)]
struct Shared(Arc<Brittle>);

impl Shared {
    fn new(calls: i64) -> Self {
        let with = SkewedBuilder {
            skew: 30,
            step: 5,
            boundary: 35,
            delay: 2,
        };
        Self(Arc::new(Brittle {
            clock: with.build(),
            left: AtomicI64::new(calls),
            panics: AtomicU64::new(0),
        }))
    }

    fn call(&self) -> &Skewed {
        if self.0.left.fetch_sub(1, Ordering::SeqCst) == 0 {
            self.0.panics.fetch_add(1, Ordering::SeqCst);
            // Without the message of the panic hook.
            resume_unwind(Box::new("the clock"));
        }
        &self.0.clock
    }

    /// Stops the clock from panicking. Returns whether it has panicked.
    fn mend(&self) -> bool {
        self.0.left.store(-1, Ordering::SeqCst);
        self.0.panics.load(Ordering::SeqCst) > 0
    }
}

impl Clock for Shared {
    fn now(&self) -> Time {
        self.call().now()
    }
    fn read_time(&self) -> Time {
        self.call().read_time()
    }
    fn commit_time(&self, floor: Time) -> Time {
        self.call().commit_time(floor)
    }
    fn announced_time(&self, floor: Time) -> Time {
        self.call().announced_time(floor)
    }
    fn after(&self, t: Time) -> Time {
        self.call().after(t)
    }
    fn update_time(&self) -> Time {
        self.call().update_time()
    }
    fn wait_out(&self, t: Time) {
        self.call().wait_out(t);
    }
    fn cmp(&self, a: Time, b: Time) -> Order {
        self.call().cmp(a, b)
    }
    fn is_before(&self, a: Time, b: Time) -> bool {
        self.call().is_before(a, b)
    }
    fn horizon(&self, t: Time) -> Time {
        self.call().horizon(t)
    }
    fn boundary(&self) -> u64 {
        self.call().boundary()
    }
    fn met_beyond(&self, seen: Time, now: Time) {
        self.call().met_beyond(seen, now);
    }
}

/// Runs `scenario` with a clock that panics at its first call, at its second, and so on until the
/// scenario ends without a panic.
fn at_every_call(scenario: impl Fn(&Shared)) {
    for call in 0.. {
        let clock = Shared::new(call);
        scenario(&clock);
        if !clock.mend() {
            assert!(call > 5, "{call} calls: nothing was tested");
            return;
        }
    }
}

/// Whether the scenario ended; any panic is the clock's.
fn got_through(step: impl FnOnce()) -> bool {
    match catch_unwind(AssertUnwindSafe(step)) {
        Ok(()) => true,
        Err(panic) => {
            assert_eq!(panic.downcast_ref::<&str>(), Some(&"the clock"));
            false
        }
    }
}

/// A boxed value that counts its instances.
struct Counted(Arc<AtomicI64>);

impl Counted {
    fn new(live: &Arc<AtomicI64>) -> Self {
        live.fetch_add(1, Ordering::SeqCst);
        Self(Arc::clone(live))
    }
}

impl Clone for Counted {
    fn clone(&self) -> Self {
        Self::new(&self.0)
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

impl Value for Counted {}

#[test]
fn tl2_locks_nothing_and_leaks_nothing_whichever_call_of_its_clock_panics() {
    let _named = Named::new("a variable stays locked, or the token held");
    at_every_call(|clock| {
        let live = Arc::new(AtomicI64::new(0));
        let stm = Stm::new(clock.clone()).with_attempts(0);
        let (x, y, boxed) = (
            TVar::new(10_u64),
            TVar::new(10_u64),
            TVar::new(Counted::new(&live)),
        );
        let transfer = || {
            stm.atomically(|tx| {
                tx.update(&x, |x| x - 1)?;
                tx.update(&y, |y| y + 1)?;
                tx.read(&boxed)?;
                tx.write(&boxed, Counted::new(&live))
            });
        };
        let elsewhere = |step: &(dyn Fn() + Sync)| {
            thread::scope(|s| s.spawn(|| got_through(step)).join().unwrap());
        };
        // Two threads in turn, so that times are uncertain.
        for _ in 0..2 {
            got_through(transfer);
            elsewhere(&transfer);
        }
        // A transaction that is overtaken, and then runs alone.
        got_through(|| {
            let mut overtaken = false;
            stm.atomically(|tx| {
                tx.read(&x)?;
                if !std::mem::replace(&mut overtaken, true) {
                    elsewhere(&transfer);
                }
                tx.update(&y, |y| y)
            });
        });
        // A transaction that sleeps.
        thread::scope(|s| {
            let (before, stm, x) = (x.load(), &stm, &x);
            let sleeper = s.spawn(move || {
                got_through(|| {
                    stm.atomically(|tx| {
                        let is_new = tx.read(x)? != before;
                        tx.check(is_new)
                    });
                })
            });
            got_through(transfer);
            clock.mend();
            transfer();
            sleeper.join().unwrap();
        });
        clock.mend();
        elsewhere(&transfer);
        let sum = stm.atomically(|tx| Ok(tx.read(&x)? + tx.read(&y)?));
        assert_eq!(sum, 20);
        assert_eq!(stm.sleeping(), 0);
        for _ in 0..10_000 {
            if live.load(Ordering::SeqCst) == 1 {
                return;
            }
            crossbeam_epoch::pin().flush();
            thread::yield_now();
        }
        panic!("{} values instead of one", live.load(Ordering::SeqCst));
    });
}

#[test]
fn rlu_tears_nothing_whichever_call_of_its_clock_panics() {
    let _named = Named::new("a section, or a journal, is waited for");
    for deferral in [1, 2] {
        at_every_call(|clock| {
            let domain = Domain::with_deferral(clock.clone(), deferral);
            let (a, b) = (domain.cell(10_u64), domain.cell(10_u64));
            let list: RluList<Shared, u64> = RluList::new_in(&domain);
            let (mut one, mut other) = (domain.session(), domain.session());
            let (a, b): (&Rlu<u64, Shared>, &Rlu<u64, Shared>) = (&a, &b);
            let sum = |session: &mut corelay_txn::rlu::Session<Shared>| {
                let sum = session.read(|section| section.get(a) + section.get(b));
                assert_eq!(sum, 20, "torn");
            };
            let transfer = |session: &mut corelay_txn::rlu::Session<Shared>| {
                session.write(|section| {
                    *section.try_lock(a)? -= 1;
                    *section.try_lock(b)? += 1;
                    Ok(())
                });
            };
            for round in 0..3 {
                got_through(|| transfer(&mut one));
                thread::scope(|s| s.spawn(|| got_through(|| sum(&mut other))).join().unwrap());
                got_through(|| one.write(|section| list.insert(section, round, ()).map(drop)));
                got_through(|| transfer(&mut other));
                got_through(|| one.write(|section| list.remove(section, &round).map(drop)));
            }
            let commits = domain.stats().commits;
            got_through(|| drop(one));
            // The session unwinds, from a panic of the clock or another.
            let unwinds = catch_unwind(AssertUnwindSafe(|| {
                let mut other = other;
                transfer(&mut other);
                resume_unwind(Box::new("another"));
            }));
            unwinds.unwrap_err();
            clock.mend();
            // Both slots are free for other sessions, with their counts.
            let (mut one, mut other) = (domain.session(), domain.session());
            assert!(one.stats().commits + other.stats().commits >= commits);
            transfer(&mut one);
            one.sync();
            transfer(&mut other);
            other.sync();
            sum(&mut one);
            let kept = one.read(|section| list.iter(section).count());
            assert!(kept <= 3);
        });
    }
}

/// An operation whose order matters between any two.
struct Say(u64);

impl Operation<Vec<u64>> for Say {
    fn apply(self, said: &mut Vec<u64>) {
        said.push(self.0);
    }
}

#[test]
fn oplog_is_neither_poisoned_nor_torn_whichever_call_of_its_clock_panics() {
    let _named = Named::new("a log stays busy, or the gate closed");
    at_every_call(|clock| {
        let log = OpLog::with_capacity(2, Vec::new(), clock.clone()).unwrap();
        let mut said = Vec::new();
        {
            let (mut one, mut other) = (log.session(), log.session());
            for n in 0..4 {
                if got_through(|| one.update(Say(2 * n))) {
                    said.push(2 * n);
                }
                let is_said = thread::scope(|s| {
                    let say = || got_through(|| other.update(Say(2 * n + 1)));
                    s.spawn(say).join().unwrap()
                });
                if is_said {
                    said.push(2 * n + 1);
                }
                got_through(|| drop(log.read(Vec::clone)));
            }
        }
        clock.mend();
        let all = log.read(Vec::clone);
        // Each update that returned, in order; each that did not, once or not at all, anywhere.
        let returned: Vec<u64> = all.iter().copied().filter(|n| said.contains(n)).collect();
        assert_eq!(returned, said, "of {all:?}");
        let once: BTreeSet<&u64> = all.iter().collect();
        assert_eq!(once.len(), all.len(), "{all:?}");
        log.session().update(Say(100));
        assert_eq!(log.read(|all| all.last().copied()), Some(100));
    });
}

#[test]
fn a_reverse_map_is_whole_whichever_call_of_its_clock_panics() {
    let _named = Named::new("a log stays busy, or the gate closed");
    at_every_call(|clock| {
        let map = OpLog::new(ReverseMap::new(), clock.clone());
        let (mut one, mut other) = (map.session(), map.session());
        for page in 0..3 {
            got_through(|| one.update(Remap::Add(page, 1)));
            got_through(|| other.update(Remap::Add(page, 2)));
            got_through(|| one.update(Remap::Remove(page, 2)));
            got_through(|| drop(map.read(Clone::clone)));
        }
        clock.mend();
        other.update(Remap::Add(7, 2));
        assert!(map.read(|map| map.mappings(&7).eq(&[2])));
    });
}
