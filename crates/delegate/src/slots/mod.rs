//! A slot: where a trustee leaves a result, and a task its waker.
//!
//! ```text
//!                         poll                      poll with another waker
//!             EMPTY ─────────────────► WAITING ─────────────────► EMPTY
//!               │                        │
//!    complete ──┤                        ├── complete: the waker is the trustee's now
//!               ▼                        ▼
//!      DONE or FAULTED        DONE or FAULTED ── waker read ──► the same, with TAKEN
//!
//!   dropped:  WAITING ──► EMPTY ──► ABANDONED ── complete: the slot is the trustee's now
//! ```
//! The future makes the steps of the first line and ABANDONED, the trustee all others. It
//! completes by one exchange, and what stood there before says whose the slot is.
//!
//! **Nobody uses a slot that has been given back.** After its exchange the trustee touches
//! the slot in two cases only. It found ABANDONED: the future is gone, and the trustee gives
//! the slot back. Or it found WAITING: then it reads the waker and says TAKEN, and the
//! future, which knows that it has left a waker, gives the slot back after TAKEN only. In all
//! other cases the future does, once it has seen DONE or FAULTED.
//!
//! **No waker is lost, and none is woken too late.** Waker and result are each written before
//! the exchange that announces them, and the exchanges of one word are ordered: either the
//! trustee's comes second and finds WAITING, or the future's does and finds the result. Where
//! a poll brings another waker, the old one is taken back first; if the result has come by
//! then, the poll takes it.

pub(crate) mod pool;

use crate::catch::guarded;
use corelay_sync::facade::Shadow;
use corelay_sync::facade::atomic::{AtomicUsize, Ordering};
use corelay_sync::{Backoff, prefetch_write};
use std::any::Any;
use std::ptr::NonNull;
use std::task::Waker;

type Payload = Box<dyn Any + Send>;

const EMPTY: usize = 0;
const WAITING: usize = 1;
const ABANDONED: usize = 2;
/// The result lies in the words.
pub(crate) const DONE: usize = 4;
/// A boxed payload lies in the first word.
pub(crate) const FAULTED: usize = 5;
/// Beside one of the two: the trustee has read the waker.
const TAKEN: usize = 8;

/// A state word, and behind it the words of the result: one, or as many as the slot's class
/// has. Reached by raw pointers only.
#[repr(C)]
pub(crate) struct ResultSlot {
    state: AtomicUsize,
    shadow: Shadow,
    words: [u64; 1],
}

/// Units of a slot's shadow: they stand for words and waker in the models.
const WORDS: usize = 0;
const WAKER: usize = 1;

/// Bytes in front of a slot's words.
pub(super) const HEAD: usize = std::mem::offset_of!(ResultSlot, words);

/// A slot that has been taken from a pool and not been given back.
#[derive(Clone, Copy)]
pub(crate) struct SlotPtr(pub(super) NonNull<ResultSlot>);

impl SlotPtr {
    /// Makes a slot in a pool's memory.
    ///
    /// # Safety
    /// `at` points at room for a slot that nobody uses.
    pub(super) unsafe fn make(at: NonNull<ResultSlot>) {
        let slot = ResultSlot {
            state: AtomicUsize::new(EMPTY),
            shadow: Shadow::new(2),
            words: [0],
        };
        // SAFETY: the caller's duty.
        unsafe { at.write(slot) };
    }

    /// Undoes [`make`](Self::make).
    ///
    /// # Safety
    /// Nobody knows the slot any more.
    pub(super) unsafe fn unmake(self) {
        self.shadow().write(WORDS, 1);
        self.shadow().write(WAKER, 1);
        // SAFETY: the caller's duty. Of consequence in the models only.
        unsafe { self.0.drop_in_place() };
    }

    #[inline(always)]
    fn state(&self) -> &AtomicUsize {
        // SAFETY: it has not been given back, so its chunk is there.
        unsafe { &(*self.0.as_ptr()).state }
    }

    #[inline(always)]
    fn shadow(&self) -> &Shadow {
        // SAFETY: as above.
        unsafe { &(*self.0.as_ptr()).shadow }
    }

    /// The words, for whoever owns them now.
    #[inline(always)]
    pub(crate) fn words(self) -> *mut u64 {
        self.shadow().write(WORDS, 1);
        // SAFETY: as above. A raw pointer, so that it stands for all words of the class.
        unsafe { (&raw mut (*self.0.as_ptr()).words).cast() }
    }

    /// The first word as a link, while the slot lies in a pool.
    #[inline(always)]
    pub(super) fn link(self) -> *mut *mut ResultSlot {
        self.words().cast()
    }

    /// Fetches the line that its result goes into.
    #[inline(always)]
    pub(crate) fn prefetch(self) {
        prefetch_write(self.0.as_ptr());
    }

    /// A request will complete it.
    #[inline(always)]
    pub(crate) fn begin(self) {
        // Relaxed: the request publishes it, to the trustee and to whoever gets the future.
        self.state().store(EMPTY, Ordering::Relaxed);
    }

    /// The result has been there from the beginning.
    pub(crate) fn begin_completed(self, state: usize) {
        // Relaxed: nobody else knows the slot yet.
        self.state().store(state, Ordering::Relaxed);
    }

    /// The trustee's last step: what it has written is the future's. `state` is [`DONE`] or
    /// [`FAULTED`]; `discard` drops what lies in the words.
    ///
    /// # Safety
    /// Called once, by the trustee of the request; the words hold what `state` says and
    /// `discard` takes.
    ///
    /// # Errors
    /// The panic of the waker, or of the result's destructor, for the caller to discard.
    #[inline(always)]
    pub(crate) unsafe fn complete(
        self,
        state: usize,
        discard: unsafe fn(*mut u64),
    ) -> Result<(), Payload> {
        // Release: pairs with the Acquire of `Waiter::poll` and of the exchanges that fail
        // there; publishes the result. Acquire: pairs with their Release; the waker, or the
        // slot itself, is ours.
        let before = self.state().swap(state, Ordering::AcqRel);
        if before == EMPTY {
            return Ok(());
        }
        // SAFETY: the caller's duties.
        unsafe { self.settle(before, state, discard) }
    }

    /// Wakes the task, or drops the result that nobody wants.
    ///
    /// # Safety
    /// As [`complete`](Self::complete), which has found `before`.
    #[inline(never)]
    unsafe fn settle(
        self,
        before: usize,
        state: usize,
        drop_result: unsafe fn(*mut u64),
    ) -> Result<(), Payload> {
        if before == WAITING {
            self.shadow().read(WAKER, 1);
            // SAFETY: the future has left it, and does not touch it before TAKEN.
            let waker = unsafe { pool::waker_of(self).read() };
            // Release: pairs with the Acquire of `Waiter::await_taken`; we are done with the
            // slot.
            self.state().store(state | TAKEN, Ordering::Release);
            guarded(|| waker.wake())
        } else {
            debug_assert_eq!(before, ABANDONED);
            // SAFETY: the caller's duty; the future is gone.
            let result = guarded(|| unsafe { drop_result(self.words()) });
            // SAFETY: the future is gone.
            unsafe { pool::give_back(self) };
            result
        }
    }
}

/// The future's side of a slot.
pub(crate) struct Waiter {
    slot: SlotPtr,
    /// A waker of ours lies in the slot, or the trustee has it.
    has_waker: bool,
}

impl Waiter {
    pub(crate) fn new(slot: SlotPtr) -> Self {
        Self {
            slot,
            has_waker: false,
        }
    }

    /// A poll has left a waker.
    pub(crate) fn has_waker(&self) -> bool {
        self.has_waker
    }

    pub(crate) fn slot(&self) -> SlotPtr {
        self.slot
    }

    /// [`DONE`] or [`FAULTED`] where the result is there: words and slot are the caller's
    /// then. Otherwise `waker` will be woken.
    #[inline]
    pub(crate) fn poll(&mut self, waker: &Waker) -> Option<usize> {
        // Acquire: pairs with the Release of `complete`; publishes the result.
        match self.slot.state().load(Ordering::Acquire) {
            state @ (EMPTY | WAITING) => self.poll_slowly(state, waker),
            _ if self.has_waker => Some(self.await_taken()),
            state => Some(state),
        }
    }

    #[inline(never)]
    fn poll_slowly(&mut self, state: usize, waker: &Waker) -> Option<usize> {
        if state == EMPTY {
            return self.leave_waker(waker.clone());
        }
        self.slot.shadow().read(WAKER, 1);
        // SAFETY: written by us; the trustee only reads it.
        if unsafe { &*pool::waker_of(self.slot) }.will_wake(waker) {
            return None;
        }
        // A waker's clone and drop are user code: nothing has been changed yet, and nothing
        // is left to be done when `_old` goes.
        let new = waker.clone();
        match self.take_waker() {
            Ok(_old) => self.leave_waker(new),
            Err(state) => Some(state),
        }
    }

    /// Leaves a waker for the trustee, or finds the result there.
    fn leave_waker(&mut self, waker: Waker) -> Option<usize> {
        let place = pool::waker_of(self.slot);
        self.slot.shadow().write(WAKER, 1);
        // SAFETY: the slot is ours and empty: nobody looks at the place before WAITING.
        unsafe { place.write(waker) };
        // Release: pairs with the Acquire of `complete`; publishes the waker.
        // Acquire: as in `poll`.
        let left = self.slot.state().compare_exchange(
            EMPTY,
            WAITING,
            Ordering::Release,
            Ordering::Acquire,
        );
        match left {
            Ok(_) => {
                self.has_waker = true;
                None
            }
            Err(state) => {
                // SAFETY: written above, and never announced.
                drop(unsafe { place.read() });
                Some(state)
            }
        }
    }

    /// Takes our waker back; where the result has come first, its state.
    fn take_waker(&mut self) -> Result<Waker, usize> {
        // Relaxed: the waker is our own. Acquire is left to `await_taken`.
        let taken = self.slot.state().compare_exchange(
            WAITING,
            EMPTY,
            Ordering::Relaxed,
            Ordering::Relaxed,
        );
        if taken.is_err() {
            return Err(self.await_taken());
        }
        self.has_waker = false;
        self.slot.shadow().read(WAKER, 1);
        // SAFETY: ours again: the trustee finds EMPTY.
        Ok(unsafe { pool::waker_of(self.slot).read() })
    }

    /// The trustee has completed the slot and is about to take our waker out of it: waits
    /// until it has.
    fn await_taken(&mut self) -> usize {
        let mut backoff = Backoff::new();
        loop {
            // Acquire: pairs with the Release of `SlotPtr::settle`.
            let state = self.slot.state().load(Ordering::Acquire);
            if state & TAKEN != 0 {
                self.has_waker = false;
                return state & !TAKEN;
            }
            backoff.wait();
        }
    }

    /// The future goes away: leaves the slot to the trustee; or, where the result is there,
    /// says its state: then words and slot are the caller's. The waker is to be dropped
    /// last: it is user code.
    pub(crate) fn abandon(&mut self) -> (Option<usize>, Option<Waker>) {
        let mut waker = None;
        if self.has_waker {
            match self.take_waker() {
                Ok(taken) => waker = Some(taken),
                Err(state) => return (Some(state), None),
            }
        }
        // Release: pairs with the Acquire of `complete`; we are done with the slot.
        // Acquire: as in `poll`.
        let before = self.slot.state().swap(ABANDONED, Ordering::AcqRel);
        ((before != EMPTY).then_some(before), waker)
    }
}
