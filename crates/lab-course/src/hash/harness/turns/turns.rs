//! Threads that run one at a time, and give way to each other at points.
//!
//! ```text
//!            begin                     the lock is taken
//!   Done ─────────────► Ready ◄──────────────────────► Waiting
//!    ▲                  │  ▲                    a lock was released
//!    └──────────────────┘  │ its next point
//!      finish              ▼
//!                         Away   waits in a way that the points do not see, or takes long
//! ```
//!
//! One of the threads that are ready has the turn: the one of highest priority. Locks are only
//! tried, so a thread that waits for one passes the turn on. A thread that has the turn and
//! reaches no point for a while (it waits for a channel, say, or other programs have its CPU) is
//! taken to be away: the others go on, and it comes back at its next point. So no table hangs
//! because of this scheduler.

use crate::path::Kind;
use crate::policy::{At, Choice, Policy};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};

/// The turn while all threads are done, waiting or away.
const NOBODY: usize = usize::MAX;
/// Time without a point after which the thread that has the turn is taken to be away.
const AWAY: Duration = Duration::from_millis(4);
/// Times that a thread without the turn looks for it, and yields, before it sleeps.
const LOOKS: usize = 8;
/// Time for a yield above which other programs have the CPUs, and get them with each yield.
const CROWDED: Duration = Duration::from_micros(300);
/// Waits without looks after that. A thread that sleeps is soon given a CPU when it is woken.
const WAITS_CROWDED: usize = 400;
/// Time for which all threads may wait for locks before it is called a deadlock.
const DEADLOCK: Duration = Duration::from_secs(4);

/// Waits in which threads sleep at once, because the machine is crowded.
static CROWDED_FOR: AtomicUsize = AtomicUsize::new(0);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Status {
    Ready,
    Waiting,
    Away,
    Done,
}

#[derive(Debug)]
struct Seat {
    status: Status,
    priority: i64,
    thread: Option<Thread>,
}

#[derive(Debug)]
struct State {
    seats: Vec<Seat>,
    policy: Policy,
    /// The lowest and the highest priority so far.
    low: i64,
    high: i64,
    /// The time since when every thread has waited for a lock.
    stuck: Option<Instant>,
}

/// Threads that take turns, in rounds.
#[derive(Debug)]
pub struct Turns {
    turn: AtomicUsize,
    /// Points passed in this round.
    steps: AtomicU64,
    state: Mutex<State>,
    /// Called if all threads wait for each other's locks.
    deadlock: fn() -> !,
    spins: usize,
}

impl Turns {
    /// Makes turns for so many threads. `deadlock` is called if all of them wait for locks.
    pub fn new(threads: usize, deadlock: fn() -> !) -> Self {
        let seat = |_| Seat {
            status: Status::Away,
            priority: 0,
            thread: None,
        };
        let cpus = thread::available_parallelism().map_or(1, usize::from);
        Self {
            turn: AtomicUsize::new(NOBODY),
            steps: AtomicU64::new(0),
            state: Mutex::new(State {
                seats: (0..threads).map(seat).collect(),
                policy: Policy::new(crate::Dice::new(0), threads, 0, 0),
                low: 0,
                high: 0,
                stuck: None,
            }),
            deadlock,
            spins: if cpus > 1 { 10 } else { 1 },
        }
    }

    /// Ends a thread's part of the round. Returns true to the last thread, which may look at the
    /// round, and then calls [`Self::begin`]. The others come back in the next round, when it is
    /// their turn.
    pub fn finish(&self, me: usize) -> bool {
        let mut state = self.with_turn(me);
        state.seats[me].status = Status::Done;
        state.seats[me].thread = Some(thread::current());
        if state.seats.iter().all(|seat| seat.status == Status::Done) {
            return true;
        }
        self.pass_on(&mut state);
        drop(state);
        self.wait(me);
        false
    }

    /// Begins a round, and returns to the caller when it is its turn.
    pub fn begin(&self, me: usize, policy: Policy) {
        let mut state = self.state();
        state.policy = policy;
        self.steps.store(0, Ordering::SeqCst);
        (state.low, state.high) = (0, 1 << 20);
        for at in 0..state.seats.len() {
            let priority = 1 + state.policy.dice().below(1 << 20) as i64;
            state.seats[at].priority = priority;
            state.seats[at].status = Status::Ready;
        }
        if state.policy.is_late() {
            state.seats[0].priority = 0;
        }
        self.pass_on(&mut state);
        drop(state);
        self.wait(me);
    }

    /// Leaves for ever.
    pub fn leave(&self, me: usize) {
        let mut state = self.with_turn(me);
        state.seats[me].status = Status::Done;
        self.pass_on(&mut state);
    }

    /// Returns the number of points that were passed in this round.
    pub fn steps(&self) -> u64 {
        self.steps.load(Ordering::SeqCst)
    }

    /// Passes a point.
    pub(crate) fn point(&self, me: usize, at: At) {
        let mut state = self.with_turn(me);
        self.steps.fetch_add(1, Ordering::SeqCst);
        state.stuck = None;
        if at.kind == Kind::After {
            state.wake();
        }
        match state.policy.choose(me, at) {
            Choice::Stay => {}
            Choice::Last => {
                state.low -= 1;
                state.seats[me].priority = state.low;
            }
            Choice::Other => state.raise_another(me),
        }
        if state.best() == Some(me) {
            return;
        }
        self.pass_on(&mut state);
        drop(state);
        self.wait(me);
    }

    /// Passes the turn on, because the thread waits for a lock. Returns when it may try again.
    pub(crate) fn waits(&self, me: usize) {
        let mut state = self.with_turn(me);
        state.seats[me].status = Status::Waiting;
        if state.best().is_none() {
            // A thread that is away may have the lock, or nobody will ever release it.
            let stuck = *state.stuck.get_or_insert_with(Instant::now);
            let is_away = |seat: &Seat| seat.status == Status::Away;
            if state.seats.iter().any(is_away) {
                state.stuck = None;
            } else if stuck.elapsed() > DEADLOCK {
                (self.deadlock)();
            }
            state.wake();
            // The next to try is another one.
            state.low -= 1;
            state.seats[me].priority = state.low;
            drop(state);
            match stuck.elapsed() > AWAY {
                true => thread::sleep(Duration::from_micros(200)),
                false => thread::yield_now(),
            }
            state = self.with_turn(me);
        }
        self.pass_on(&mut state);
        drop(state);
        self.wait(me);
    }

    /// Says that the thread will wait in a way that the points do not see.
    pub(crate) fn goes_away(&self, me: usize) {
        let mut state = self.with_turn(me);
        state.seats[me].status = Status::Away;
        self.pass_on(&mut state);
    }

    /// Takes part again, if the thread was taken to be away.
    pub(crate) fn come_back(&self, me: usize) {
        if self.turn.load(Ordering::SeqCst) == me {
            return;
        }
        let mut state = self.state();
        if self.turn.load(Ordering::SeqCst) == me {
            return;
        }
        state.seats[me].status = Status::Ready;
        state.seats[me].thread = Some(thread::current());
        if self.turn.load(Ordering::SeqCst) == NOBODY {
            self.pass_on(&mut state);
        }
        drop(state);
        self.wait(me);
    }

    /// Returns the state when the thread has the turn. It keeps the turn while it has the state.
    fn with_turn(&self, me: usize) -> MutexGuard<'_, State> {
        loop {
            self.come_back(me);
            let state = self.state();
            if self.turn.load(Ordering::SeqCst) == me {
                return state;
            }
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state
            .lock()
            .unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    fn pass_on(&self, state: &mut State) {
        if state.best().is_none() {
            state.wake();
        }
        let next = state.best().unwrap_or(NOBODY);
        self.turn.store(next, Ordering::SeqCst);
        if let Some(thread) = state.seats.get(next).and_then(|seat| seat.thread.as_ref()) {
            thread.unpark();
        }
    }

    fn wait(&self, me: usize) {
        let is_mine = || self.turn.load(Ordering::SeqCst) == me;
        // Relaxed: a guess about what else runs on the machine.
        let crowded = CROWDED_FOR.load(Ordering::Relaxed);
        if crowded > 0 {
            CROWDED_FOR.store(crowded - 1, Ordering::Relaxed);
        } else {
            for _ in 0..LOOKS {
                let began = Instant::now();
                for _ in 0..self.spins {
                    if is_mine() {
                        return;
                    }
                    std::hint::spin_loop();
                }
                thread::yield_now();
                if began.elapsed() > CROWDED {
                    CROWDED_FOR.store(WAITS_CROWDED, Ordering::Relaxed);
                    break;
                }
            }
        }
        let (mut steps, mut since) = (self.steps(), Instant::now());
        while !is_mine() {
            thread::park_timeout(AWAY);
            if steps != self.steps() {
                (steps, since) = (self.steps(), Instant::now());
            } else if since.elapsed() >= AWAY {
                self.go_on_without_the_one_that_has_the_turn(me);
                since = Instant::now();
            }
        }
    }

    fn go_on_without_the_one_that_has_the_turn(&self, me: usize) {
        let mut state = self.state();
        // The caller may have been slow to wake when it had the turn.
        if state.seats[me].status == Status::Away {
            state.seats[me].status = Status::Ready;
        }
        let turn = self.turn.load(Ordering::SeqCst);
        match state.seats.get_mut(turn) {
            // A thread that is done and has the turn prepares the next round.
            Some(seat) if seat.status == Status::Done => {}
            Some(seat) if seat.status == Status::Ready && turn != me => {
                seat.status = Status::Away;
                self.pass_on(&mut state);
            }
            Some(_) if turn == me => {}
            _ => self.pass_on(&mut state),
        }
    }
}

impl State {
    /// Returns the thread that is ready and has the highest priority.
    fn best(&self) -> Option<usize> {
        let ready = |at: &usize| self.seats[*at].status == Status::Ready;
        let all = (0..self.seats.len()).filter(ready);
        all.max_by_key(|&at| self.seats[at].priority)
    }

    /// Lets all threads that wait for a lock try again.
    fn wake(&mut self) {
        for seat in &mut self.seats {
            if seat.status == Status::Waiting {
                seat.status = Status::Ready;
            }
        }
    }

    fn raise_another(&mut self, me: usize) {
        let threads = self.seats.len() as u64;
        if threads > 1 {
            let other = (me as u64 + 1 + self.policy.dice().below(threads - 1)) % threads;
            self.high += 1;
            self.seats[other as usize].priority = self.high;
        }
    }
}
