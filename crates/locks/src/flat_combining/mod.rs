//! Flat combining (Hendler, Incze, Shavit and Tzafrir, SPAA 2010, section 2).
//!
//! A thread that finds the lock held publishes its request in a *record* of its own. The records
//! form a list. The combiner walks it and runs the requests that it finds; it is whichever thread
//! takes the lock, a plain test-and-test-and-set lock.
//!
//! ```text
//!  held?   head ──> [record of session 3] ──> [record of session 1] ──> [record of session 2]
//!                    request                   none                      request; sleeps
//! ```
//! A record stays in the list between requests, so that asking again writes one line only. The
//! combiner removes a record in which it has found no request for many passes, and its session links
//! it again when it next asks. The first record of the list stays, since others link theirs to it.
//!
//! We depart from the paper in four ways. A thread that finds the lock free runs its own request
//! without publishing it, so a session that never waits has no record. The records of sessions that
//! have ended are freed, by the next pass or with the lock. A combiner walks the list once, and runs
//! at most `limit` requests of threads that spin. And a waiter that has spun for long goes to sleep;
//! the combiner runs the requests of all sleepers that it finds, and walks again for those that it has
//! missed. After several times the limit the last one [leads](crate::combining::asleep) in its place,
//! if it can.
//!
//! # Proof sketch
//! *One at a time.* Requests run, and links of linked records change, only in the thread that holds
//! `held`.
//! *No sleeper is forgotten.* A thread that goes to sleep says so in its record (S1), counts itself
//! in `sleeps` (S2), passes the heavy barrier, and looks at `held` (S3); if the lock is free, it
//! takes it and runs its own request. A combiner reads `sleeps` (C1), walks, frees the lock (C2),
//! passes the light barrier, and reads `sleeps` again (C3); if it has changed, the combiner tries to
//! take the lock and walks again. If C1 sees S2, the walk sees S1 and serves the sleeper. If only C3
//! sees it, the combiner walks again, or another thread holds the lock and will look as it did. If
//! C3 does not, then by the barriers S3 sees C2 or a later holder's `held`, to which the same
//! applies.
//! A combiner that is relieved frees the lock (C2) and does not look at `sleeps` again (C3), but wakes
//! a thread afterwards, which then takes the lock or finds a later holder. Either begins after C2. So a
//! sleeper that has seen the relieved one's `held` at S3 is seen by the other's C3 at the latest.
//! *Nobody sleeps by a free lock while it spins.* A waiter that spins looks at `held` itself.

mod record;

use crate::combining::asleep::{Asleep, PATIENCE};
use crate::combining::{Combiner, Combining, Request};
use crate::session::sealed::Sealed;
use crate::turn::Turn;
use corelay_sync::facade::atomic::{AtomicBool, AtomicPtr, AtomicU32, Ordering};
use corelay_sync::wait::Call;
use corelay_sync::{CachePadded, barrier};
use record::{Found, Record, Seat};
use std::ptr::{self, NonNull};

/// Passes after which a record without requests is removed from the list. By then the walks past it
/// have cost about as much as linking it again.
const IDLE: u32 = if corelay_sync::facade::MODEL { 0 } else { 64 };

/// A waiter looks at the lock at every so many looks at its own record. Each look at the lock takes its
/// line from the combiner, which then waits for it; and mostly the combiner will run the request
/// anyway.
///
/// Two threads that add to one number, round trips of a line of 500 ns: 4.6 Mops with 1, 9.8 with 16,
/// 10.0 with 64 (medians of 47 samples of 8 ms).
const LOOKS: u32 = if corelay_sync::facade::MODEL { 1 } else { 16 };

/// A value behind a flat-combining lock.
///
/// The source: Hendler, Incze, Shavit and Tzafrir, "Flat combining and the
/// synchronization-parallelism tradeoff" (SPAA 2010), section 2.
///
/// **Fairness.** None among threads that spin: a pass runs the requests of the sessions first that
/// joined the list last. A thread that has been passed over for about a microsecond goes to sleep,
/// and the pass that then begins, at the latest, runs its request. So no waiter starves.
///
/// **The limit.** A thread that combines walks along the list once, runs up to the limit of closures
/// of threads that spin, and frees the lock for those that it has left. It runs the closures of all
/// threads that sleep; after four times the limit one of these goes on, with [an
/// exception](Combining#how-a-thread-waits).
///
/// **A panic** reaches the caller whose closure it was; the others do not notice.
///
/// **Memory.** A session that had to wait has a record of 128 bytes or so, until it ends. So open a
/// session once and keep it, rather than one for each call.
///
/// ```
/// use corelay_sync::{Session, Shared};
///
/// let lock = corelay_locks::FlatCombining::new(vec![1]);
/// assert_eq!(lock.session().apply(|v| { v.push(2); v.len() }), 2);
/// ```
pub type FlatCombining<T> = Combining<FlatCombiningWord, T>;

/// The words of [`FlatCombining`]: whether the lock is held, and the list of records.
#[derive(Debug)]
pub struct FlatCombiningWord {
    /// It has lines of its own: holders write it all the time, and waiters read it.
    held: CachePadded<AtomicBool>,
    head: AtomicPtr<Record>,
    /// How often a waiter has gone to sleep.
    sleeps: AtomicU32,
}

impl Default for FlatCombiningWord {
    fn default() -> Self {
        Self {
            held: CachePadded::new(AtomicBool::new(false)),
            head: AtomicPtr::new(ptr::null_mut()),
            sleeps: AtomicU32::new(0),
        }
    }
}

impl Drop for FlatCombiningWord {
    fn drop(&mut self) {
        // Relaxed: the sessions borrow the lock, so all that they did comes before.
        let mut at = NonNull::new(self.head.load(Ordering::Relaxed));
        while let Some(record) = at {
            // SAFETY: it is in the list, which is this thread's alone now.
            at = NonNull::new(unsafe { record.as_ref() }.next());
            // SAFETY: its session has ended, since sessions borrow the lock, or has been forgotten
            // and is not used any more; and the list is this thread's alone.
            unsafe { record::free(record) };
        }
    }
}

impl Sealed for FlatCombiningWord {}

// SAFETY: see the module's proof sketch. A request runs in `lead`, before it or in `Record::serve`.
unsafe impl Combiner for FlatCombiningWord {
    type Seat = Seat;

    const WAIT: &'static str = "waiting for a `FlatCombining` lock";

    #[inline]
    #[track_caller]
    unsafe fn apply(&self, seat: &mut Seat, request: Request, limit: u32) {
        // SAFETY: the operation stays, and nobody has run it (the caller's duties).
        if !unsafe { self.try_apply(seat, request, limit) } {
            // SAFETY: as above; a failed `try_apply` has not run it.
            unsafe { self.publish(seat, request, limit) };
        }
    }

    #[inline]
    unsafe fn try_apply(&self, _seat: &mut Seat, request: Request, limit: u32) -> bool {
        let entered = self.try_enter();
        if entered {
            // SAFETY: this thread holds the lock, so no other request runs; nobody has run this one
            // (the caller's duty).
            unsafe { request.run() };
            // SAFETY: this thread holds the lock.
            unsafe { self.lead(limit, 1) };
        }
        entered
    }
}

impl FlatCombiningWord {
    #[inline]
    fn try_enter(&self) -> bool {
        // Acquire: pairs with the Release in `lead`; this thread sees what the last holder did.
        // Relaxed: a loser has read nothing that counts.
        self.held
            .compare_exchange(false, true, Ordering::Acquire, Ordering::Relaxed)
            .is_ok()
    }

    /// Publishes `request` and waits until it has been run, by this thread or another.
    ///
    /// # Safety
    /// The request's operation stays until this returns; nobody has run it. The seat is the calling
    /// thread's.
    #[cold]
    #[inline(never)]
    #[track_caller]
    unsafe fn publish(&self, seat: &mut Seat, request: Request, limit: u32) {
        let call = Call::new(Self::WAIT);
        let record = seat.record();
        // SAFETY: the session has not retired its record, so nobody has freed it.
        let record = unsafe { record.as_ref() };
        // SAFETY: it is this session's record, and a session asks for one request after another. The
        // operation stays (the caller's duty).
        if !unsafe { record.ask(request) } {
            record.link(&self.head);
        }
        let mut turn = Turn::new();
        let mut looks = 0_u32;
        while record.found() != Found::Idle {
            looks += 1;
            // Relaxed: only a hint that an exchange may succeed.
            if looks.is_multiple_of(LOOKS) && !self.held.load(Ordering::Relaxed) && self.try_enter()
            {
                // SAFETY: this thread holds the lock, and the record is its own.
                unsafe { self.lead_with(record, limit) };
                return;
            }
            if turn.is_over() {
                self.sleep(record, limit, call);
                return;
            }
            turn.wait(1);
        }
    }

    /// Sleeps until the request of `record` has been run; if nobody else is there, runs it.
    #[cold]
    #[inline(never)]
    fn sleep(&self, record: &Record, limit: u32, call: Call) {
        let asleep = Asleep::new();
        if !record.sleep_on(&asleep) {
            return;
        }
        // Release: pairs with the Acquire at the begin of `lead`; a combiner that sees this count
        // finds the sleeper in the record.
        self.sleeps.fetch_add(1, Ordering::Release);
        // Pairs with the light barrier of `lead`.
        barrier::heavy();
        // Relaxed: ordered by the barrier; only a hint that an exchange may succeed.
        if !self.held.load(Ordering::Relaxed) && self.try_enter() {
            // SAFETY: this thread holds the lock, and the record is its own.
            unsafe { self.lead_with(record, limit) };
        }
        // If it is to lead and another thread has the lock, that one does.
        if asleep.wait(call) && self.try_enter() {
            // SAFETY: this thread holds the lock.
            unsafe { self.lead(limit, 0) };
        }
    }

    /// Runs the request of `own`, unless another thread has, and then leads.
    ///
    /// # Safety
    /// The calling thread holds the lock. `own` is the record of its session, which waits.
    unsafe fn lead_with(&self, own: &Record, limit: u32) {
        let mut run = 0;
        if own.found() != Found::Idle {
            // SAFETY: this thread holds the lock, and has found a request there.
            if let Some(asleep) = unsafe { own.serve() } {
                // SAFETY: `serve` has returned it, and it has not been woken yet.
                unsafe { Asleep::wake(asleep) };
            }
            run = 1;
        }
        // SAFETY: this thread holds the lock.
        unsafe { self.lead(limit, run) };
    }

    /// Runs the requests in the list and frees the lock. This thread has `run` some requests already.
    /// It runs those of threads that spin up to `limit` in all, and those of all that sleep, until it
    /// is relieved.
    ///
    /// # Safety
    /// The calling thread holds the lock.
    #[inline]
    unsafe fn lead(&self, limit: u32, mut run: u32) {
        loop {
            // Acquire: pairs with the Release in `sleep`; the walk finds the sleepers that are
            // counted.
            let sleeps = self.sleeps.load(Ordering::Acquire);
            // Acquire: pairs with the Release of `link`; the records are initialised.
            let first = self.head.load(Ordering::Acquire);
            let heir = NonNull::new(first).and_then(|first| {
                // SAFETY: this thread holds the lock, and `first` is the list's first record.
                unsafe { self.walk(first, limit, &mut run) }
            });
            // Release: pairs with the Acquire in `try_enter`; publishes what the requests did.
            self.held.store(false, Ordering::Release);
            if let Some(heir) = heir {
                // Not before: it must not find this thread in the lock.
                // SAFETY: `walk` has returned it: it can lead, and has not been woken.
                unsafe { Asleep::wake_to_lead(heir) };
                return;
            }
            // Pairs with the heavy barrier of `sleep`.
            barrier::light();
            // Relaxed: ordered by the barrier. The walk that follows reads it again.
            if self.sleeps.load(Ordering::Relaxed) == sleeps || !self.try_enter() {
                return;
            }
        }
    }

    /// Walks along the list once, for [`lead`](Self::lead). Returns the sleeper that shall relieve this
    /// thread: the last one that can, so that no pass leaves out the sleepers at the list's end.
    ///
    /// # Safety
    /// The calling thread holds the lock, and `first` is the list's first record.
    unsafe fn walk(
        &self,
        first: NonNull<Record>,
        limit: u32,
        run: &mut u32,
    ) -> Option<NonNull<Asleep>> {
        let mut heir = None;
        let mut before: Option<&Record> = None;
        let mut at = Some(first);
        while let Some(place) = at {
            // SAFETY: it is in the list, where only the holder of the lock frees records, and then
            // goes on behind it.
            let record = unsafe { place.as_ref() };
            // Read now, since the record may be unlinked and gone below.
            at = NonNull::new(record.next());
            let found = record.found();
            let is_served = match found {
                Found::Asks => *run < limit,
                Found::Sleeps => true,
                Found::Idle | Found::Retired => false,
            };
            if is_served {
                // SAFETY: this thread holds the lock, and has found a request here.
                let asleep = unsafe { record.serve() };
                *run = run.saturating_add(1);
                if let Some(asleep) = asleep {
                    // SAFETY: its frame stays until it is woken, at the earliest below.
                    let can_lead = unsafe { asleep.as_ref() }.can_lead();
                    let is_heir = can_lead && *run / PATIENCE >= limit;
                    let woken = if is_heir {
                        heir.replace(asleep)
                    } else {
                        Some(asleep)
                    };
                    if let Some(woken) = woken {
                        // SAFETY: `serve` has returned it, and it has not been woken yet.
                        unsafe { Asleep::wake(woken) };
                    }
                }
            }
            let is_superfluous = match found {
                Found::Asks | Found::Sleeps => false,
                // SAFETY: this thread holds the lock.
                Found::Idle => IDLE < unsafe { record.pass_over() },
                Found::Retired => true,
            };
            let is_unlinked = match before {
                // SAFETY: this thread holds the lock, and the record is behind `before`.
                Some(before) if is_superfluous => unsafe { before.unlink(place) },
                _ => false,
            };
            if !is_unlinked {
                before = Some(record);
            }
        }
        heir
    }
}
