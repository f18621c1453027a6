//! A slot: memory in which a trustee leaves a result, and a task its waker.
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
//! The future makes the steps of the first line and ABANDONED, the trustee all others. It completes
//! by one exchange, and the value that stood there before says whose the slot is.
//!
//! **Nobody uses a slot that has been given back.** After its exchange the trustee touches the slot
//! in two cases only. It found ABANDONED: the future is gone, and the trustee gives the slot back.
//! Or it found WAITING: then it reads the waker and stores TAKEN, and the future, which knows that
//! it has left a waker, gives the slot back after TAKEN only. In all other cases the future gives
//! it back, once it has seen DONE or FAULTED.
//!
//! **No waker is lost, and none is woken too late.** Waker and result are each written before the
//! exchange that announces them, and the exchanges of one word are ordered: either the trustee's
//! comes second and finds WAITING, or the future's does and finds the result. A poll with another
//! waker takes the old one back first; if the result has come by then, the poll takes it.

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
/// The state of a slot whose result lies in its words.
pub(crate) const DONE: usize = 4;
/// The state of a slot whose request has failed: the address of a boxed payload lies in its first
/// word.
pub(crate) const FAULTED: usize = 5;
/// A bit that is set beside [`DONE`] or [`FAULTED`] when the trustee has read the waker.
const TAKEN: usize = 8;

/// A state word, followed by the words of the result: one, or as many as the slot's class has. It
/// is reached by raw pointers only.
#[repr(C)]
pub(crate) struct ResultSlot {
    state: AtomicUsize,
    shadow: Shadow,
    words: [u64; 1],
}

/// Unit of a slot's shadow that stands for its words in the models.
const WORDS: usize = 0;
/// Unit of a slot's shadow that stands for its waker in the models.
const WAKER: usize = 1;

/// Bytes in front of a slot's words.
pub(super) const HEAD: usize = std::mem::offset_of!(ResultSlot, words);

/// A pointer to a slot that has been taken from a pool and not been given back.
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
        // SAFETY: the caller has room for a slot at `at` that nobody uses.
        unsafe { at.write(slot) };
    }

    /// Ends a slot that [`make`](Self::make) has made, before its pool frees the memory.
    ///
    /// # Safety
    /// Nobody knows the slot any more.
    pub(super) unsafe fn unmake(self) {
        self.shadow().write(WORDS, 1);
        self.shadow().write(WAKER, 1);
        // SAFETY: nobody knows the slot any more, as the caller promises. Of consequence in the
        // models only.
        unsafe { self.0.drop_in_place() };
    }

    #[inline(always)]
    fn state(&self) -> &AtomicUsize {
        // SAFETY: a slot that has not been given back lies in a chunk that is there.
        unsafe { &(*self.0.as_ptr()).state }
    }

    #[inline(always)]
    fn shadow(&self) -> &Shadow {
        // SAFETY: a slot that has not been given back lies in a chunk that is there.
        unsafe { &(*self.0.as_ptr()).shadow }
    }

    /// The address of the slot's words. Only their present owner uses them.
    #[inline(always)]
    pub(crate) fn words(self) -> *mut u64 {
        self.shadow().write(WORDS, 1);
        // SAFETY: a slot that has not been given back lies in a chunk that is there. A raw pointer,
        // so that it stands for all words of the class.
        unsafe { (&raw mut (*self.0.as_ptr()).words).cast() }
    }

    /// The address of the first word, which is a link to the next slot while the slot lies in a
    /// pool.
    #[inline(always)]
    pub(super) fn link(self) -> *mut *mut ResultSlot {
        self.words().cast()
    }

    /// Prefetches the line of the slot for writing.
    #[inline(always)]
    pub(crate) fn prefetch(self) {
        prefetch_write(self.0.as_ptr());
    }

    /// Makes the slot empty, for a request that will complete it.
    #[inline(always)]
    pub(crate) fn begin(self) {
        // Relaxed: the request publishes it to the trustee, and the future's sender to the thread
        // that gets the future.
        self.state().store(EMPTY, Ordering::Relaxed);
    }

    /// Makes the slot complete from the beginning, in `state`. The caller has written the result.
    #[inline]
    pub(crate) fn begin_completed(self, state: usize) {
        // Relaxed: nobody else knows the slot yet.
        self.state().store(state, Ordering::Relaxed);
    }

    /// Returns [`DONE`] or [`FAULTED`] if the result is there and no waker was left: then words and
    /// slot belong to the caller, who is the future.
    #[inline(always)]
    pub(crate) fn completed(self) -> Option<usize> {
        // Acquire: pairs with the Release of `complete`; publishes the result.
        let state = self.state().load(Ordering::Acquire);
        (state >= DONE).then_some(state)
    }

    /// Completes the slot and wakes the task that waits for it. This is the trustee's last step for
    /// the request: from then on the result belongs to the future. If the future has gone, drops
    /// the result and gives the slot back. `state` is [`DONE`] or [`FAULTED`]; `discard` drops the
    /// result in the words.
    ///
    /// # Safety
    /// Called once, by the trustee of the request; the words hold what `state` says and `discard`
    /// takes.
    ///
    /// # Errors
    /// The panic of the waker, or of the result's destructor, for the caller to discard.
    #[inline(always)]
    pub(crate) unsafe fn complete(
        self,
        state: usize,
        discard: unsafe fn(*mut u64),
    ) -> Result<(), Payload> {
        // Release: pairs with the Acquire of `Waiter::poll` and of the exchanges that fail there;
        // publishes the result. Acquire: pairs with their Release; the waker, or the slot itself,
        // is the trustee's now.
        let before = self.state().swap(state, Ordering::AcqRel);
        if before == EMPTY {
            return Ok(());
        }
        // SAFETY: the caller is the trustee of the request and calls this once; `before` is from
        // the exchange above.
        unsafe { self.settle(before, state, discard) }
    }

    /// Does the rest of [`complete`](Self::complete) for the state `before`: wakes the task, or
    /// drops the result of an abandoned slot.
    ///
    /// # Safety
    /// The caller is [`complete`](Self::complete), whose exchange has found `before`.
    #[inline(never)]
    unsafe fn settle(
        self,
        before: usize,
        state: usize,
        drop_result: unsafe fn(*mut u64),
    ) -> Result<(), Payload> {
        if before == WAITING {
            self.shadow().read(WAKER, 1);
            // SAFETY: the future has written the waker before WAITING, and does not touch it before
            // TAKEN.
            let waker = unsafe { pool::waker_of(self).read() };
            // Release: pairs with the Acquire of `Waiter::await_taken`; the trustee is done with
            // the slot.
            self.state().store(state | TAKEN, Ordering::Release);
            guarded(|| waker.wake())
        } else {
            debug_assert_eq!(before, ABANDONED);
            // SAFETY: the words hold what `drop_result` takes, as the caller of `complete`
            // promises, and the future is gone.
            let result = guarded(|| unsafe { drop_result(self.words()) });
            // SAFETY: the future is gone, so the trustee is the slot's only user.
            unsafe { pool::give_back(self) };
            result
        }
    }
}

/// The future's side of a slot: it polls for the result and leaves a waker.
pub(crate) struct Waiter {
    slot: SlotPtr,
    /// Whether the slot holds a waker of this future, or the trustee has taken it.
    has_waker: bool,
}

impl Waiter {
    /// The side of a future that has left a waker, or has not.
    #[inline(always)]
    pub(crate) fn new(slot: SlotPtr, has_waker: bool) -> Self {
        Self { slot, has_waker }
    }

    /// Whether a poll has left a waker.
    pub(crate) fn has_waker(&self) -> bool {
        self.has_waker
    }

    pub(crate) fn slot(&self) -> SlotPtr {
        self.slot
    }

    /// Returns [`DONE`] or [`FAULTED`] if the result is there: then words and slot belong to the
    /// caller. Otherwise returns `None`, and the trustee will wake `waker`.
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
        // SAFETY: this future has written the waker; the trustee only reads it.
        if unsafe { &*pool::waker_of(self.slot) }.will_wake(waker) {
            return None;
        }
        // A waker's clone and drop are user code: nothing has been changed yet, and nothing is left
        // to be done when `_old` goes.
        let new = waker.clone();
        match self.take_waker() {
            Ok(_old) => self.leave_waker(new),
            Err(state) => Some(state),
        }
    }

    /// Leaves a waker for the trustee and returns `None`. Returns the state if the result has come
    /// first.
    fn leave_waker(&mut self, waker: Waker) -> Option<usize> {
        let place = pool::waker_of(self.slot);
        self.slot.shadow().write(WAKER, 1);
        // SAFETY: the slot is EMPTY, so it is this future's: the trustee looks at the place after
        // WAITING only.
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
                // SAFETY: the write above filled it, and the failed exchange never announced it.
                drop(unsafe { place.read() });
                Some(state)
            }
        }
    }

    /// Takes this future's waker back. Returns the state if the result has come first.
    fn take_waker(&mut self) -> Result<Waker, usize> {
        // Relaxed: the waker is this future's own. Acquire is left to `await_taken`.
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
        // SAFETY: the exchange made the slot EMPTY, so the trustee does not read the waker.
        Ok(unsafe { pool::waker_of(self.slot).read() })
    }

    /// Waits until the trustee has taken the waker out of a slot that it has completed.
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

    /// Gives the slot up when the future is dropped: leaves it to the trustee, or returns its state
    /// if the result is there; then words and slot are the caller's. The caller drops the waker
    /// last, since that is user code.
    #[inline]
    pub(crate) fn abandon(&mut self) -> (Option<usize>, Option<Waker>) {
        let mut waker = None;
        if self.has_waker {
            match self.take_waker() {
                Ok(taken) => waker = Some(taken),
                Err(state) => return (Some(state), None),
            }
        }
        // Release: pairs with the Acquire of `complete`; the future is done with the slot.
        // Acquire: as in `poll`.
        let before = self.slot.state().swap(ABANDONED, Ordering::AcqRel);
        ((before != EMPTY).then_some(before), waker)
    }
}
