//! A wait that can be interrupted: by a cancellation, by a deadline; and be looked at.
//!
//! Who waits is taken out of what it waits in by whoever wakes it, without a word about that to
//! anybody else. Interrupting is rare, so it pays for what that takes:
//!
//! | the fibre | who meddles (one at a time) |
//! |---|---|
//! | W(waiting = record); stops | W(meddler = 1); heavy; R(waiting) |
//! | its processor: W(publishing = fibre); light; R(record.asked) | W(record.asked); heavy |
//! | 0: publishes, W(publishing = null). Else the fibre is made ready | waits while any processor is publishing it |
//! | | takes the waiter out, if it is there, and wakes it |
//! | goes on: W(waiting = null); light; R(meddler), waits while 1 | W(meddler = 0) |
//!
//! **Why the record lives.** It lies in the fibre's frame. Either the meddler reads that the fibre
//! does not wait any more, or the fibre finds a meddler and stays until that is done.
//!
//! **Why no interruption is lost.** If the processor has not seen `asked`, the meddler sees that it is
//! publishing, and takes the waiter out behind that; where it does not find it, somebody else has
//! woken it. A cancellation also stays with the fibre, and its next wait does not begin.
//!
//! **Where the light barrier is none.** The fibre and its processor pass it between a store and a load;
//! what is loaded is 0 only where the barrier is asymmetric, whose light side is no instruction. Where
//! it is not, `meddler` and `cancelled` are [`FENCED`] at rest, which sends who reads it to its fence and
//! to a second look.

use crate::cluster::Shared;
use crate::header::{Header, HeaderRef};
use crate::processor::Processor;
use crate::switch::{self, Runnable, Running, suspend};
use crate::waiter::Waiter;
use corelay_sync::facade::atomic::{AtomicU8, Ordering};
use corelay_sync::wait::{self, Token};
use corelay_sync::{Backoff, barrier};
use std::fmt;
use std::panic::Location;
use std::ptr;
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

/// Why a wait has ended without what it waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Interrupted {
    /// The time has come.
    TimedOut,
    /// The fibre has been [cancelled](crate::Fibre::cancel).
    Cancelled,
}

impl fmt::Display for Interrupted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::TimedOut => "the time is over",
            Self::Cancelled => "the fibre has been cancelled",
        })
    }
}

impl std::error::Error for Interrupted {}

const NOT: u8 = 0;
const TIMED_OUT: u8 = 1;
const CANCELLED: u8 = 2;
/// Beside them: who reads it must fence before it relies on that.
const FENCED: u8 = 4;

/// What `cancelled` and `meddler` of a header are at first: so the fibre and its processor, which read
/// them anyway, need not ask whether the barrier is asymmetric.
pub(crate) fn at_rest() -> u8 {
    if barrier::is_asymmetric() {
        NOT
    } else {
        FENCED
    }
}

/// `meddler` while somebody meddles.
const MEDDLES: u8 = 1;

fn meaning(why: u8) -> Result<(), Interrupted> {
    match why {
        NOT => Ok(()),
        TIMED_OUT => Err(Interrupted::TimedOut),
        _ => Err(Interrupted::Cancelled),
    }
}

/// Takes a waiter, by its [word](Waiter::word_of), out of what it waits in: `None` where it is not
/// there.
type Remove<'a> = dyn Fn(*mut u8) -> Option<Waiter> + 'a;

/// What a fibre says of its wait, in its own frame.
pub(crate) struct Record<'a> {
    call: &'static str,
    at: &'static Location<'static>,
    /// Takes the waiter with this word out of what it waits in, where it still is.
    remove: &'a Remove<'a>,
    /// What who meddles wants: the processor looks at it.
    asked: AtomicU8,
    /// Why it has ended, if the waiter was not woken: written by who took it out, or did not
    /// publish it.
    why: AtomicU8,
    /// No cancellation ends it.
    is_sure: bool,
    /// Number of its deadline; 0 where there is none.
    deadline: u64,
}

/// In place of a record: the fibre has ended.
const ENDED: *mut () = ptr::without_provenance_mut(1);

impl Header {
    pub(crate) fn is_cancelled(&self) -> bool {
        // Relaxed: a flag that carries nothing.
        self.cancelled.load(Ordering::Relaxed) == CANCELLED
    }

    /// The fibre begins a wait: who meddles finds the record from now on.
    #[inline(always)]
    fn announce(&self, record: &Record<'_>) {
        // Release: pairs with the Acquire of `record`; publishes it.
        let waiting = ptr::from_ref(record).cast_mut().cast();
        self.waiting.store(waiting, Ordering::Release);
    }

    /// The fibre goes on, or has ended: `waiting` says which.
    #[inline(always)]
    fn leave(&self, waiting: *mut ()) {
        // Relaxed: who meddles reads it behind its barrier.
        self.waiting.store(waiting, Ordering::Relaxed);
        // Pairs with the heavy barrier of `meddle`, where the meddler is 0.
        barrier::compiler_only();
        // Acquire: pairs with the Release of `meddle`: what it read of the record comes before.
        if self.meddler.load(Ordering::Acquire) != 0 {
            self.leave_slowly();
        }
    }

    #[cold]
    #[inline(never)]
    fn leave_slowly(&self) {
        // Pairs with the heavy barrier of `meddle`.
        barrier::light();
        let mut backoff = Backoff::new();
        // Acquire: as above.
        while self.meddler.load(Ordering::Acquire) == MEDDLES {
            backoff.wait();
        }
    }

    /// The fibre has ended: from here on nobody looks at its cluster.
    pub(crate) fn leave_for_good(&self) {
        self.leave(ENDED);
    }

    /// Keeps the fibre from leaving its wait, and others from meddling.
    fn hold(&self) {
        let mut backoff = Backoff::new();
        // Acquire: pairs with the Release of `let_go`: one at a time.
        while self
            .meddler
            .compare_exchange(at_rest(), MEDDLES, Ordering::Acquire, Ordering::Relaxed)
            .is_err()
        {
            backoff.wait();
        }
    }

    fn let_go(&self) {
        // Release: pairs with the Acquire of `leave` and `hold`.
        self.meddler.store(at_rest(), Ordering::Release);
    }

    /// What the fibre waits for: `Err` where it has ended.
    ///
    /// # Safety
    /// Behind [`hold`](Self::hold) and a heavy barrier; the record is not used behind
    /// [`let_go`](Self::let_go).
    unsafe fn record(&self) -> Result<Option<&Record<'_>>, ()> {
        // Acquire: pairs with the Release of `announce`; shows the record.
        let waiting = self.waiting.load(Ordering::Acquire);
        if waiting == ENDED {
            return Err(());
        }
        // SAFETY: null, or a record that stays until there is no meddler.
        Ok(unsafe { waiting.cast::<Record<'_>>().as_ref() })
    }

    /// Runs `f` with the record of the fibre's wait, while the fibre cannot leave it: `None` where
    /// it does not wait. Not at all where it has ended.
    fn meddle(&self, f: impl FnOnce(Option<&Record<'_>>)) {
        self.hold();
        // Pairs with the light barrier of `leave`.
        barrier::heavy();
        // SAFETY: just so.
        if let Ok(record) = unsafe { self.record() } {
            f(record);
        }
        self.let_go();
    }
}

/// What a look at a fibre has found.
pub(crate) enum Seen {
    Ended,
    DoesNotWait,
    Waits {
        call: &'static str,
        at: &'static Location<'static>,
        has_deadline: bool,
    },
}

/// Looks at some fibres, for one barrier.
pub(crate) fn look(fibres: &[HeaderRef]) -> Vec<Seen> {
    // Two who look hold several each.
    static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
    let _one = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    for fibre in fibres {
        fibre.hold();
    }
    // Pairs with the light barrier of `leave`.
    barrier::heavy();
    let seen = |fibre: &HeaderRef| {
        // SAFETY: held, behind the barrier.
        let seen = match unsafe { fibre.record() } {
            Err(()) => Seen::Ended,
            Ok(None) => Seen::DoesNotWait,
            Ok(Some(record)) => Seen::Waits {
                call: record.call,
                at: record.at,
                has_deadline: record.deadline != 0,
            },
        };
        fibre.let_go();
        seen
    };
    fibres.iter().map(seen).collect()
}

/// Cancels a fibre: its wait ends, and every other one that it begins.
pub(crate) fn cancel(fibre: &HeaderRef) {
    fibre.meddle(|record| {
        // Relaxed: ordered by the barriers, of `meddle` or of `interrupt`.
        fibre.cancelled.store(CANCELLED, Ordering::Relaxed);
        if let Some(record) = record {
            interrupt(fibre, record, CANCELLED);
        } else {
            // It may be about to begin a wait: see `publish`, which looks behind `waiting`.
            barrier::heavy();
            // SAFETY: held, by `meddle`.
            if let Ok(Some(record)) = unsafe { fibre.record() } {
                interrupt(fibre, record, CANCELLED);
            }
        }
    });
}

/// Ends the wait of a fibre whose deadline of this number has come, if it still waits there.
pub(crate) fn time_out(fibre: &HeaderRef, deadline: u64) {
    fibre.meddle(|record| {
        if let Some(record) = record.filter(|record| record.deadline == deadline) {
            interrupt(fibre, record, TIMED_OUT);
        }
    });
}

/// By who meddles.
fn interrupt(fibre: &HeaderRef, record: &Record<'_>, why: u8) {
    // Relaxed: ordered by the barrier.
    record.asked.store(why, Ordering::Relaxed);
    // Pairs with the light barrier of the processor, between `publishing` and its look at `asked`.
    barrier::heavy();
    // SAFETY: the fibre has not ended, so its cluster lives.
    let shared: &Shared = unsafe { &*fibre.cluster };
    for processor in &shared.processors {
        let mut backoff = Backoff::new();
        // Acquire: pairs with the Release of the processor: the wait has been published.
        while processor.publishing.load(Ordering::Acquire) == fibre.as_ptr().as_ptr() {
            backoff.wait();
        }
    }
    // Not there: woken by another one, or not published, because the processor has seen it.
    let word = Waiter::word_of(fibre.as_ptr());
    if let Some(waiter) = (record.remove)(word) {
        // Relaxed: published by the wake-up.
        record.why.store(why, Ordering::Relaxed);
        waiter.wake();
    }
}

/// What ends a wait before its time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Limit {
    /// A cancellation.
    None,
    /// That, or a deadline.
    Until(Instant),
    /// Nothing: others rely on its end. A cancellation stays with the fibre, for its next wait; and
    /// who meddles is told that there is nobody to be taken out.
    Uncancelled,
}

/// As [`block_within`], until a cancellation.
///
/// # Errors
/// As there.
///
/// # Panics
/// As there.
#[track_caller]
#[inline(always)]
pub(crate) fn block(
    call: &'static str,
    remove: &Remove<'_>,
    publish: impl FnOnce(Waiter) -> Option<Waiter>,
) -> Result<(), Interrupted> {
    block_within(Limit::None, call, remove, publish)
}

/// As [`block_within`], where nothing ends it early.
///
/// # Panics
/// As there.
#[track_caller]
#[inline(always)]
pub(crate) fn block_surely(call: &'static str, publish: impl FnOnce(Waiter) -> Option<Waiter>) {
    let ended = block_within(Limit::Uncancelled, call, &|_| None, publish);
    debug_assert_eq!(ended, Ok(()));
}

/// Waits until the waiter that `publish` gets has been woken. `publish` gives it back where there is
/// nothing to wait for any more; on a fibre it runs when that has stopped already. `remove` takes
/// the waiter out again where it still waits: it is called by others, at any time during the wait.
///
/// # Errors
/// The wait was interrupted, and the waiter taken out by `remove` or never published.
///
/// # Panics
/// Where nothing may wait, naming `call`.
#[track_caller]
#[inline(always)]
pub(crate) fn block_within(
    limit: Limit,
    call: &'static str,
    remove: &Remove<'_>,
    publish: impl FnOnce(Waiter) -> Option<Waiter>,
) -> Result<(), Interrupted> {
    let Some(running) = switch::may_stop(call) else {
        return block_thread(limit, remove, publish);
    };
    let record = Record {
        call,
        at: Location::caller(),
        remove,
        asked: AtomicU8::new(NOT),
        why: AtomicU8::new(NOT),
        is_sure: limit == Limit::Uncancelled,
        deadline: match limit {
            Limit::Until(_) => running.shared().timers.number(),
            Limit::None | Limit::Uncancelled => 0,
        },
    };
    running.announce(&record);
    if let Limit::Until(deadline) = limit {
        // Its time can come, which finds it, before the fibre has stopped: what it wants is seen
        // then.
        running.set_deadline(deadline, record.deadline);
    }
    let at = &record;
    // SAFETY: it may be stopped.
    unsafe {
        suspend(running, |processor, fibre| {
            at.publish(processor, fibre, publish)
        })
    };
    running.leave(ptr::null_mut());
    if let Limit::Until(deadline) = limit {
        running.shared().timers.remove(deadline, record.deadline);
    }
    // Relaxed: shown by the wake-up; nobody meddles any more.
    meaning(record.why.load(Ordering::Relaxed))
}

impl Running {
    #[cold]
    fn set_deadline(self, deadline: Instant, number: u64) {
        let shared = self.shared();
        shared.timers.add(deadline, number, self.into());
        shared.clockwork.wake_if_asleep();
    }
}

impl Record<'_> {
    /// The fibre has stopped: publishes its waiter, or has it go on where it has been interrupted
    /// before. By its processor.
    #[inline(always)]
    fn publish(
        &self,
        processor: &Processor,
        fibre: Runnable,
        publish: impl FnOnce(Waiter) -> Option<Waiter>,
    ) {
        let header = fibre.header();
        let place = ptr::from_ref(header).cast_mut();
        // Relaxed: who meddles reads it behind its barrier.
        processor.publishing.store(place, Ordering::Relaxed);
        // Pairs with the heavy barriers of `interrupt` and `cancel`, where both words are 0.
        barrier::compiler_only();
        // Relaxed: ordered by the barriers.
        let asked = self.asked.load(Ordering::Relaxed);
        let why = asked | header.cancelled.load(Ordering::Relaxed);
        if why == NOT {
            published(processor, publish(Waiter::fibre(fibre)));
        } else {
            self.publish_or_not(processor, fibre, publish);
        }
    }

    /// As [`publish`](Self::publish), where one of the words is not 0.
    #[cold]
    #[inline(never)]
    fn publish_or_not(
        &self,
        processor: &Processor,
        fibre: Runnable,
        publish: impl FnOnce(Waiter) -> Option<Waiter>,
    ) {
        // Pairs with the heavy barriers of `interrupt` and `cancel`.
        barrier::light();
        // Relaxed: ordered by the barriers.
        let asked = self.asked.load(Ordering::Relaxed);
        let why = asked | fibre.header().cancelled.load(Ordering::Relaxed);
        let waiter = Waiter::fibre(fibre);
        let rest = if why & !FENCED == NOT || self.is_sure {
            publish(waiter)
        } else {
            // Relaxed: who meddles does not find the waiter.
            self.why.store(why & !FENCED, Ordering::Relaxed);
            Some(waiter)
        };
        published(processor, rest);
    }
}

/// The wait has been published: but for a waiter that is given back, which goes on.
#[inline(always)]
fn published(processor: &Processor, back: Option<Waiter>) {
    // Release: pairs with the Acquire of `interrupt`.
    processor
        .publishing
        .store(ptr::null_mut(), Ordering::Release);
    if let Some(Ok(fibre)) = back.map(Waiter::into_fibre) {
        processor.make_ready_again(fibre);
    }
}

/// As a thread waits; it cannot be cancelled.
#[cold]
fn block_thread(
    limit: Limit,
    remove: &Remove<'_>,
    publish: impl FnOnce(Waiter) -> Option<Waiter>,
) -> Result<(), Interrupted> {
    let token = Token::new();
    let waiter = Waiter::thread(&token);
    let word = waiter.as_word();
    if publish(waiter).is_some() {
        return Ok(());
    }
    if let Limit::Until(deadline) = limit
        && !wait::wait_until(&token, deadline)
        && let Some(waiter) = remove(word)
    {
        // Nobody else has it, so the token is never set.
        let _ = waiter.into_word();
        return Err(Interrupted::TimedOut);
    }
    // Woken, or about to be: the token lies in this frame.
    wait::wait(&token);
    Ok(())
}

/// Goes on with an unwinding that ends the fibre, where the call that was interrupted has no other
/// way to say so.
#[cold]
pub(crate) fn unwind(_: Interrupted) -> ! {
    std::panic::resume_unwind(Box::new(Cancelled))
}

/// The payload with which a cancelled fibre ends: what [`join`](crate::JoinHandle::join) returns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Cancelled;

impl fmt::Display for Cancelled {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Interrupted::Cancelled.fmt(f)
    }
}

impl std::error::Error for Cancelled {}
