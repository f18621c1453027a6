//! How a thread or a fibre waits for the lock.
//!
//! ```text
//!  spin ─────────> publish a closure ───> poll ───> yield ───> sleep
//!  5–10 µs                               1 µs      64 ×        until run, or woken
//! ```
//! A spinning thread looks at the lock only, with growing pauses: while it pauses, the holder may
//! enter again and again without a transfer. So a closure is published only if the lock has been held
//! at each look. Then its thread polls its own record for a while, and leaves the lock's line to the
//! holder. At last it looks at both, whichever ends the wait first, and yields in between.
//!
//! **Oversubscription.** If the holder has been preempted, or there are more threads than CPUs,
//! spinning is in vain. A waiter notices that by its yields: one that takes long has let another
//! thread run. From then on the lock's waiters spin for a shorter time and yield 16 times before they
//! publish, until a yield returns at once.
//!
//! **Waits below callbacks.** A thread that waits polls its sources, and these run callbacks, one of
//! which may wait for the same lock. A scheduler runs callbacks between its fibres, too. The waiter
//! below cannot go on before the callback has ended, even if it has been woken or granted the lock. So
//! a callback does not join the queue behind it, but has an empty closure run: all closures are run
//! whenever the lock is left. And a waiter that may lie below a callback is not granted the lock.

use super::owner;
use super::record::{Published, Record};
use super::sleeper::{Chosen, Sleeper};
use super::word::{APPLIES, Word};
use crate::combining::Operation;
use corelay_sync::Backoff;
use corelay_sync::facade::atomic::Ordering;
use corelay_sync::facade::cell::UnsafeCell;
use corelay_sync::facade::{MODEL, hint, thread};
use corelay_sync::wait::{Call, NoSwitch, Token, has_context, has_sources, is_on_thread, wait_in};
use std::time::{Duration, Instant};

/// The pauses before the first look. On the reference machine a pause takes 10 to 20 ns, so they take
/// about as long as the transfer of a line that a look costs the holder.
const PAUSES: u32 = 8;

/// Rounds of pauses of a spin, each twice as long as the one before: 8, 16 … 256 pauses. Serving a
/// published closure costs the holder 0.5 µs if it is far, and a spin lets it work undisturbed for
/// ten times as long.
const ROUNDS: u32 = 6;

/// Rounds of a spin where other threads, or fibres, want the CPU.
const CROWDED_ROUNDS: u32 = 3;

/// The times that a thread yields where other threads want the CPU, before it publishes a closure.
const CROWDED_YIELDS: u32 = 16;

/// The pauses in which a thread polls the record that it has published. A holder that runs serves it
/// meanwhile, unless the section takes longer than a microsecond.
const POLLS: u32 = 64;

/// A yield that takes longer has let another thread run. On the reference machine one that has not
/// takes 0.5 µs, and one that has takes at least 2.7 µs.
const LONE_YIELD: Duration = Duration::from_micros(1);

/// The times that a thread yields before it sleeps. If nothing else runs on its CPU, they take about
/// as long as sleeping and being woken.
const YIELDS: u32 = if MODEL { 0 } else { 64 };

/// The end of a wait in which a thread stays awake.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Awake {
    /// It has entered.
    Entered,
    /// It need not enter.
    Done,
    /// It has looked often enough, and shall sleep.
    Spent,
}

impl Word {
    /// Has the closure of `record` run, here or on another thread, and returns when it has been.
    ///
    /// # Panics
    /// If the running code may not wait, or holds the lock.
    ///
    /// # Safety
    /// The record is fresh, and stays where it is until this returns.
    pub(super) unsafe fn apply(&self, record: &Record, call: Call) {
        self.refuse(owner::current(), call);
        if self.spin(APPLIES) {
            // SAFETY: this thread has entered; nobody has run the closure, for the record is fresh
            // (the caller's duty).
            unsafe { record.run() };
            // SAFETY: this thread has entered.
            unsafe { self.release() };
            return;
        }
        // SAFETY: the record is fresh, and stays until the end of this function (the caller's duties),
        // which waits until it is done. If this thread sleeps, it does so until the token has been set.
        unsafe { record.publish(&self.published) };
        if self.poll(record) {
            return;
        }
        match self.linger(APPLIES, yields(), || record.is_done()) {
            // SAFETY: this thread has entered. The record is done, or is in the list: whoever takes a
            // record runs it before leaving.
            Awake::Entered => unsafe { self.serve() },
            Awake::Done => {}
            Awake::Spent => self.sleep_until_done(record, call),
        }
    }

    #[cold]
    fn sleep_until_done(&self, record: &Record, call: Call) {
        let token = Token::new();
        if !record.sleep_on(&token) {
            return;
        }
        if self.sleeps(APPLIES) {
            // SAFETY: this thread has entered; as in `apply`. The record's token is set in here, if
            // no other thread is about to.
            unsafe { self.serve() };
        }
        // No cancellation ends it, for the holder uses this frame.
        let _ = wait_in(call, &token);
    }

    /// Enters for a guard of `owner`. A fibre that is cancelled meanwhile unwinds.
    ///
    /// # Panics
    /// If the running code may not wait, or holds the lock.
    #[cold]
    #[inline(never)]
    pub(super) fn enter(&self, owner: usize, call: Call) {
        self.refuse(owner, call);
        // Looked up before the wait, after which a fibre may be on another thread.
        let is_callback = is_on_thread();
        let yields = yields();
        let may_be_granted = !has_context() && !has_sources();
        let mut losses = 0;
        loop {
            if self.spin(owner) || self.linger(owner, yields, || false) == Awake::Entered {
                return;
            }
            if is_callback {
                self.await_leave(call);
                continue;
            }
            let sleeper = Sleeper::new(losses);
            self.enqueue(sleeper.clone());
            if self.sleeps(owner) {
                // If it has been woken as well, its leaving the lock wakes the next.
                sleeper.leave();
                return;
            }
            match (wait_in(call, &sleeper.token), sleeper.leave()) {
                (Err(cancelled), chosen) => {
                    debug_assert_ne!(chosen, Chosen::Granted, "a fibre is only woken");
                    // Another sleeper needs the wake-up.
                    if chosen == Chosen::Woken && self.sleeps(APPLIES) {
                        // SAFETY: this thread has entered.
                        unsafe { self.serve() };
                    }
                    cancelled.unwind();
                }
                (Ok(()), Chosen::Granted) => {
                    self.is_granted_to(owner);
                    return;
                }
                (Ok(()), _) => losses += u32::from(may_be_granted),
            }
        }
    }

    /// Waits until the lock is left, or is free.
    fn await_leave(&self, call: Call) {
        let nothing = UnsafeCell::new(());
        let mut published = Published::new(Operation::new(&nothing, |()| ()));
        // SAFETY: the record is fresh, and in a local that stays here.
        unsafe { self.apply(published.place(), call) };
    }

    /// Panics if the running code may not wait, or if `owner`, which runs here, has a guard.
    fn refuse(&self, owner: usize, call: Call) {
        NoSwitch::refuse_at(call);
        if self.is_held_by(owner) {
            refuse_nested(call);
        }
    }

    /// Looks at the lock for a while: with growing pauses, and then, if other threads want the CPU, with
    /// yields. Returns true if it has entered.
    // Not inlined: it looks at thread-locals, after waits too. See `corelay_sync::wait`.
    #[inline(never)]
    fn spin(&self, owner: usize) -> bool {
        if MODEL {
            return false;
        }
        let is_crowded = self.is_cpu_wanted();
        let rounds = match is_crowded {
            // On one CPU nobody leaves the lock meanwhile.
            _ if Backoff::new().is_yielding() => 0,
            true => CROWDED_ROUNDS,
            false => ROUNDS,
        };
        let has_entered = (0..rounds).any(|round| {
            for _ in 0..PAUSES << round {
                hint::spin_loop();
            }
            self.look_and_enter(owner)
        });
        let yields = CROWDED_YIELDS.min(yields());
        has_entered || is_crowded && self.linger(owner, yields, || false) == Awake::Entered
    }

    /// Polls `record`, which has been published, for as long as a holder needs that runs. Returns
    /// whether it is done.
    fn poll(&self, record: &Record) -> bool {
        if MODEL || has_context() {
            return record.is_done();
        }
        if self.is_cpu_wanted() {
            self.yield_and_notice();
            return record.is_done();
        }
        (0..POLLS).any(|_| {
            hint::spin_loop();
            record.is_done()
        })
    }

    /// Whether something else could run here while this thread spins.
    fn is_cpu_wanted(&self) -> bool {
        // Relaxed: a hint.
        self.crowded.load(Ordering::Relaxed) || has_context() || Backoff::new().is_yielding()
    }

    /// Yields, and notes whether another thread has run meanwhile.
    fn yield_and_notice(&self) {
        let start = Instant::now();
        thread::yield_now();
        let is_crowded = start.elapsed() > LONE_YIELD;
        // Relaxed, both: a hint. Written only if it changes, for the holder uses the line.
        if self.crowded.load(Ordering::Relaxed) != is_crowded {
            self.crowded.store(is_crowded, Ordering::Relaxed);
        }
    }

    /// Looks at the lock, and whether the wait `is_done`, for as long as it would take to sleep and to
    /// be woken. Yields `yields` times in between.
    fn linger(&self, owner: usize, mut yields: u32, is_done: impl Fn() -> bool) -> Awake {
        loop {
            if is_done() {
                return Awake::Done;
            }
            if self.look_and_enter(owner) {
                return Awake::Entered;
            }
            if yields == 0 {
                return Awake::Spent;
            }
            yields -= 1;
            self.yield_and_notice();
        }
    }
}

/// The times that the running code yields before it sleeps: a fibre lets others run by sleeping.
fn yields() -> u32 {
    if has_context() { 0 } else { YIELDS }
}

#[cold]
fn refuse_nested(call: Call) -> ! {
    panic!(
        "corelay: {} at {}, while this thread or fibre has a guard of that lock: drop it before, or \
         use the guard",
        call.name, call.at
    )
}
