//! Whole flat teams under shuttle: see `channel` for how. Members make requests to each
//! other at random, of every kind, while they serve.

use crate::schedules::{asked_or, model};
use corelay_delegate::{
    ClientGuard, Policy, Trust, Trustees, TryApplyThenError, TryPostError, barrier, poll,
};
use corelay_sync::Futex;
use shuttle::rand::{Rng, thread_rng};
use shuttle::sync::Arc;
use shuttle::sync::atomic::{AtomicU64, Ordering};
use shuttle::thread;
use std::cell::Cell;
use std::collections::BTreeMap;
use std::rc::Rc;

/// Schedules per test, unless the environment says.
const SCHEDULES: usize = 500;

const POLICIES: [Policy; 6] = [
    Policy::Queue,
    Policy::Blocked,
    Policy::FastPath,
    Policy::Bound(3),
    Policy::Doorbell,
    Policy::Adaptive,
];

/// The traces of each client's requests.
#[derive(Default)]
struct Log {
    /// The next sequence number of each client.
    next: BTreeMap<usize, u64>,
    /// Requests that closures have made.
    nested: u64,
}

impl Log {
    /// Takes the request number `n` of `client`: no earlier, no later, once.
    fn take(&mut self, client: usize, n: u64) -> u64 {
        let next = self.next.entry(client).or_default();
        assert_eq!(*next, n, "client {client} was overtaken, or heard twice");
        *next += 1;
        n
    }
}

/// The state that all threads of a model share.
struct Stage {
    logs: Vec<Trust<Log>>,
    /// Requests that closures have made, and that were taken.
    nested: AtomicU64,
    /// Callbacks of these: those to come, and those that have run.
    owed: AtomicU64,
    heard: AtomicU64,
}

/// A thread that makes requests.
struct Asker {
    stage: Arc<Stage>,
    name: usize,
    /// The number of the next request, by log.
    next: Vec<Cell<u64>>,
    /// Answers that callbacks have brought, by log.
    heard: Vec<Rc<Cell<u64>>>,
    /// Callbacks that are to come.
    owed: Cell<u64>,
}

impl Asker {
    fn new(stage: &Arc<Stage>, name: usize) -> Self {
        let logs = stage.logs.len();
        Self {
            stage: stage.clone(),
            name,
            next: vec![Cell::new(0); logs],
            heard: (0..logs).map(|_| Rc::default()).collect(),
            owed: Cell::new(0),
        }
    }

    /// Makes a request to the log `to`, of a random kind.
    fn ask(&self, to: usize) {
        let n = self.next[to].replace(self.next[to].get() + 1);
        let (log, name) = (&self.stage.logs[to], self.name);
        let take = move |log: &mut Log| log.take(name, n);
        match thread_rng().gen_range(0..5u32) {
            0 => log.post(move |log| _ = take(log)),
            1 => assert_eq!(log.apply(take), n),
            2 | 3 => {
                let heard = Rc::clone(&self.heard[to]);
                self.owed.set(self.owed.get() + 1);
                let then = move |answer| {
                    assert_eq!(answer, n);
                    heard.set(heard.get() + 1);
                };
                log.apply_then(take, then);
            }
            _ => {
                let (stage, on) = (self.stage.clone(), (to + 1) % self.next.len());
                log.post(move |log| {
                    take(log);
                    post_on(&stage, on);
                });
            }
        }
    }

    /// Makes some requests; all are done when it returns.
    fn work(&self, requests: u64) {
        for _ in 0..requests {
            self.ask(thread_rng().gen_range(0..self.next.len()));
            if thread_rng().gen_ratio(1, 8) {
                poll();
            }
        }
        barrier().unwrap();
        let heard: u64 = self.heard.iter().map(|heard| heard.get()).sum();
        assert_eq!(heard, self.owed.get(), "a callback was lost, or ran twice");
    }
}

/// Makes a request to the log `on` from inside a closure, if the queue takes it.
fn post_on(stage: &Arc<Stage>, on: usize) {
    let log = &stage.logs[on];
    let add = |count: &AtomicU64| _ = count.fetch_add(1, Ordering::Relaxed);
    if thread_rng().gen_bool(0.5) {
        match log.try_post(|log| log.nested += 1) {
            Ok(()) => add(&stage.nested),
            Err(TryPostError::Full(_)) => {}
            Err(other) => panic!("{other}"),
        }
    } else {
        let hear = stage.clone();
        match log.try_apply_then(|log| log.nested += 1, move |()| add(&hear.heard)) {
            Ok(()) => [&stage.nested, &stage.owed].into_iter().for_each(add),
            Err(TryApplyThenError::Full(..)) => {}
            Err(other) => panic!("{other}"),
        }
    }
}

/// Runs `members` that make so many requests each, with those of `outside` threads.
fn run(members: usize, window: usize, outside: usize, requests: u64) {
    let policy = POLICIES[thread_rng().gen_range(0..POLICIES.len())];
    let team = Trustees::flat(members).policy(policy).window(window);
    let team = team.start().unwrap();
    let logs = team
        .entrust_all((0..members).map(|_| Log::default()))
        .to_vec();
    let stage = Arc::new(Stage {
        logs,
        nested: AtomicU64::new(0),
        owed: AtomicU64::new(0),
        heard: AtomicU64::new(0),
    });
    let threads: Vec<_> = (0..outside)
        .map(|number| {
            let stage = stage.clone();
            thread::spawn(move || {
                let _guard = ClientGuard::new();
                Asker::new(&stage, members + number).work(requests);
            })
        })
        .collect();
    // Requests made, by member and log.
    let made = team.run(|me| {
        let asker = Asker::new(&stage, me.number());
        // Some end early, and serve the others.
        asker.work(requests / (1 + me.number() as u64 % 3));
        asker.next.iter().map(Cell::get).collect::<Vec<_>>()
    });
    for thread in threads {
        thread.join().unwrap();
    }
    for (to, log) in stage.logs.iter().enumerate() {
        for (member, made) in made.iter().enumerate() {
            let next = log.apply(move |log| log.next.get(&member).copied());
            assert_eq!(next.unwrap_or(0), made[to]);
        }
    }
    // Requests of closures may have been under way when the run was over.
    let count = |count: &AtomicU64| count.load(Ordering::Relaxed);
    let ran = |log: &Trust<Log>| log.apply(|log| log.nested);
    while stage.logs.iter().map(ran).sum::<u64>() != count(&stage.nested)
        || count(&stage.heard) != count(&stage.owed)
    {
        thread::yield_now();
    }
    drop(stage);
    drop(ClientGuard::new());
    team.shutdown();
}

#[test]
fn two_members_in_a_window_of_two() {
    model(SCHEDULES, || run(2, 2, 1, 12));
}

#[test]
fn two_members_in_a_window_of_one() {
    model(SCHEDULES, || run(2, 1, 0, 10));
}

#[test]
fn three_members_and_two_outside() {
    model(SCHEDULES, || run(3, 2, 2, 8));
}

#[test]
fn eight_members() {
    model(SCHEDULES, || run(8, 2, 1, 6));
}

#[test]
fn sixteen_members() {
    model(SCHEDULES, || run(16, 3, 0, 4));
}

/// A member serves requests that closures of a trustee have made to it, while it ends that trustee
/// and waits.
#[test]
fn a_member_serves_while_it_ends_trustees() {
    model(SCHEDULES, || {
        let policy = POLICIES[thread_rng().gen_range(0..POLICIES.len())];
        let team = Trustees::flat(1).policy(policy).start().unwrap();
        team.run(|me| {
            let mine = me.entrust(0u64);
            let dedicated = Trustees::dedicated(1).start().unwrap();
            let (far, to) = (dedicated.entrust(0u64), mine.clone());
            far.post(move |_| to.post(|n| *n += 1));
            dedicated.shutdown();
            assert_eq!(mine.apply(|n| *n), 1);
        });
        team.shutdown();
    });
}

/// Two threads make requests to a member that dozes, one of them perhaps for a request that is done
/// already: the other one must not be lost after that one's wake-up.
#[test]
fn a_member_that_dozes_is_woken_by_each_client() {
    let dozes = || {
        let team = Trustees::flat(1).policy(Policy::FastPath).start().unwrap();
        let dedicated = Trustees::dedicated(1).start().unwrap();
        let (slow, quick) = (dedicated.entrust(0u64), team.entrust(0u64));
        let (asked, over) = (Arc::new(Futex::new(0)), Arc::new(Futex::new(0)));
        let threads = [0, 1].map(|_| {
            let (quick, raise, over) = (quick.clone(), asked.clone(), over.clone());
            thread::spawn(move || {
                quick.post(move |_| {
                    raise.word().fetch_add(1, Ordering::Relaxed);
                    raise.wake_all();
                });
                // Its end would be news, which wakes the member too.
                while over.word().load(Ordering::Relaxed) == 0 {
                    over.wait(0, None);
                }
            })
        });
        team.run(|_| {
            let asked = asked.clone();
            slow.apply(move |_| {
                loop {
                    match asked.word().load(Ordering::Relaxed) {
                        2 => break,
                        seen => asked.wait(seen, None),
                    }
                }
            });
        });
        over.word().store(1, Ordering::Relaxed);
        over.wake_all();
        for thread in threads {
            thread.join().unwrap();
        }
        drop((slow, quick));
        drop(ClientGuard::new());
        dedicated.shutdown();
        team.shutdown();
    };
    // Three threads that stand still at the right moment: schedules with few changes find it.
    shuttle::check_pct(dozes, asked_or(20 * SCHEDULES), 3);
}
