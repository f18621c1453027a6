//! Futures: a result that a trustee leaves in a slot, and the task that it wakes.
//!
//! | file | idea |
//! |---|---|
//! | `slot` | who may touch result and waker, and when |
//! | `pool` | where slots come from, and how they get back |
//!
//! The request itself is a record in the ring of its own kind, see
//! [`Ask`](crate::client::apply_async). The thread that asked has no part in what follows.

use super::connect::flush_clients;
use crate::context::discard::discard;
use crate::context::member::serve_once;
use crate::context::serving::Serving;
use crate::error::{AsyncError, Poisoned};
use crate::request::Packed;
use crate::slots::pool::{self, Class, LARGE_WORDS, Pools};
use crate::slots::{DONE, FAULTED, SlotPtr, Waiter};
use std::any::Any;
use std::fmt;
use std::future::Future;
use std::marker::PhantomData;
use std::mem::ManuallyDrop;
use std::pin::Pin;
use std::task::{Context, Poll};

type Payload = Box<dyn Any + Send>;

/// A result of type `R` in a slot.
pub(crate) struct SlotResult<R>(PhantomData<R>);

impl<R> SlotResult<R> {
    const CLASS: Class = Class::of(Packed::<R, LARGE_WORDS>::WORDS);

    /// The trustee's last step: the request has ended with `result`.
    ///
    /// # Safety
    /// The slot is from [`ApplyFuture::new`] for the same `R`. Called once, by the trustee
    /// of the request.
    #[inline(always)]
    pub(crate) unsafe fn complete(slot: SlotPtr, result: R) {
        // SAFETY: the caller's duties.
        unsafe { Self::write(slot, result) };
        // SAFETY: as above, and written.
        unsafe { Self::announce(slot) };
    }

    /// The first half of [`complete`](Self::complete): the result is there.
    ///
    /// # Safety
    /// As there.
    #[inline(always)]
    pub(crate) unsafe fn write(slot: SlotPtr, result: R) {
        // SAFETY: of that class; the words are the trustee's until the slot is complete.
        unsafe { Packed::<R, LARGE_WORDS>::write(slot.words(), result) };
    }

    /// The second half: the future may take it.
    ///
    /// # Safety
    /// As there, after [`write`](Self::write).
    #[inline(always)]
    pub(crate) unsafe fn announce(slot: SlotPtr) {
        // SAFETY: the caller's duties.
        settled(unsafe { slot.complete(DONE, Self::discard) });
    }

    /// The trustee's last step: the request has faulted.
    ///
    /// # Safety
    /// As [`complete`](Self::complete).
    pub(crate) unsafe fn fail(slot: SlotPtr, payload: Payload) {
        // SAFETY: a box takes one word, which every slot has.
        unsafe { Packed::<Payload, 1>::write(slot.words(), payload) };
        // SAFETY: the caller's duties.
        settled(unsafe { slot.complete(FAULTED, SlotResult::<Payload>::discard_payload) });
    }

    /// # Safety
    /// `words` holds a result.
    unsafe fn discard(words: *mut u64) {
        // SAFETY: the caller's duty.
        unsafe { Packed::<R, LARGE_WORDS>::discard(words) };
    }
}

/// A slot is complete. What its waker or a destructor threw is counted, and dropped as user code.
#[inline(always)]
fn settled(result: Result<(), Payload>) {
    if let Err(payload) = result {
        count_and_discard(payload);
    }
}

#[cold]
fn count_and_discard(payload: Payload) {
    Serving::with_current(Serving::count_panic);
    discard(payload);
}

impl SlotResult<Payload> {
    /// # Safety
    /// `words` holds a payload.
    unsafe fn discard_payload(words: *mut u64) {
        // SAFETY: the caller's duty.
        drop(unsafe { Packed::<Payload, 1>::read(words) });
    }
}

/// The result of [`Trust::apply_async`](crate::Trust::apply_async), to be awaited.
///
/// The request has been made already: it runs whether or not the future is polled, and also
/// if it is dropped. Any executor will do, and any thread: the future is `Send` where `R` is,
/// and the trustee itself wakes the task.
///
/// # Panics
/// When it is polled again after it has given its result.
#[must_use = "the request runs anyway; use `post` where the result does not matter"]
pub struct ApplyFuture<R> {
    /// `None` once the result has been taken.
    waiter: Option<Waiter>,
    _result: PhantomData<R>,
}

// SAFETY: the slot may be used by whatever thread holds the future, see `slot`; all that
// crosses threads with it is an `R`, a waker and a payload.
unsafe impl<R: Send> Send for ApplyFuture<R> {}
// SAFETY: a shared reference gives access to nothing.
unsafe impl<R: Send> Sync for ApplyFuture<R> {}

impl<R> Unpin for ApplyFuture<R> {}

impl<R> ApplyFuture<R> {
    /// A future and the slot that its trustee will complete.
    #[inline(always)]
    pub(crate) fn new(pools: &Pools) -> (Self, SlotPtr) {
        let slot = pools.take(SlotResult::<R>::CLASS);
        slot.begin();
        (Self::of(slot), slot)
    }

    /// A future whose request has ended already.
    pub(crate) fn ready(pools: &Pools, result: Result<R, Payload>) -> Self {
        let slot = pools.take(SlotResult::<R>::CLASS);
        match result {
            Ok(result) => {
                // SAFETY: of that class, and ours alone.
                unsafe { Packed::<R, LARGE_WORDS>::write(slot.words(), result) };
                slot.begin_completed(DONE);
            }
            Err(payload) => {
                // SAFETY: as above.
                unsafe { Packed::<Payload, 1>::write(slot.words(), payload) };
                slot.begin_completed(FAULTED);
            }
        }
        Self::of(slot)
    }

    fn of(slot: SlotPtr) -> Self {
        Self {
            waiter: Some(Waiter::new(slot)),
            _result: PhantomData,
        }
    }

    /// Its request was not taken: gives the slot back.
    pub(crate) fn retract(self) {
        if let Some(waiter) = &ManuallyDrop::new(self).waiter {
            // SAFETY: no request knows it, and the future has been forgotten.
            unsafe { pool::give_back(waiter.slot()) };
        }
    }

    /// Takes the result and gives the slot back.
    ///
    /// # Safety
    /// The slot is complete with that state, and nobody else will use it.
    #[inline(always)]
    unsafe fn take(slot: SlotPtr, state: usize) -> Result<R, AsyncError> {
        let result = if state == DONE {
            // SAFETY: complete, by the caller.
            Ok(unsafe { Packed::<R, LARGE_WORDS>::read(slot.words()) })
        } else {
            debug_assert_eq!(state, FAULTED);
            // SAFETY: as above.
            Err(unsafe { Packed::<Payload, 1>::read(slot.words()) })
        };
        // SAFETY: the caller's duty.
        unsafe { pool::give_back(slot) };
        result.map_err(|payload| {
            if payload.is::<Poisoned>() {
                return AsyncError::Poisoned;
            }
            match payload.downcast() {
                Ok(ring) => AsyncError::Circular(*ring),
                Err(payload) => AsyncError::Panicked(payload),
            }
        })
    }
}

impl<R> Future for ApplyFuture<R> {
    type Output = Result<R, AsyncError>;

    #[inline(always)]
    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let waiter = self
            .waiter
            .as_mut()
            .expect("corelay: an ApplyFuture is polled after it has given its result");
        let had_waker = waiter.has_waker();
        let Some(state) = waiter.poll(context.waker()) else {
            if !had_waker {
                hurry();
            }
            return Poll::Pending;
        };
        let slot = waiter.slot();
        self.waiter = None;
        // SAFETY: complete, and forgotten by us.
        Poll::Ready(unsafe { Self::take(slot, state) })
    }
}

/// Where this is the thread that asked, what it has not published yet is looked for at once. The
/// trustee would find it by itself, a little later. And a member may have been asked itself.
#[inline(never)]
fn hurry() {
    flush_clients();
    serve_once();
}

impl<R> Drop for ApplyFuture<R> {
    #[inline]
    fn drop(&mut self) {
        if let Some(waiter) = self.waiter.take() {
            drop_unfinished::<R>(waiter);
        }
    }
}

#[cold]
fn drop_unfinished<R>(mut waiter: Waiter) {
    let (state, _waker) = waiter.abandon();
    if let Some(state) = state {
        // SAFETY: complete, and the future is gone.
        drop(unsafe { ApplyFuture::<R>::take(waiter.slot(), state) });
    }
}

impl<R> fmt::Debug for ApplyFuture<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ApplyFuture")
            .field("is_taken", &self.waiter.is_none())
            .finish_non_exhaustive()
    }
}

/// Slots without a trustee, for the models.
#[cfg(any(corelay_loom, corelay_shuttle))]
pub mod checked {
    use super::{ApplyFuture, Pools, SlotPtr, SlotResult};

    /// A thread's pools; the thread ends when it is dropped.
    #[derive(Default)]
    pub struct Owner(Pools);

    /// What a request knows.
    pub struct Request<R>(SlotPtr, std::marker::PhantomData<R>);

    // SAFETY: as `ApplyFuture`.
    unsafe impl<R: Send> Send for Request<R> {}

    impl Owner {
        /// A future and the request that will complete it.
        pub fn request<R>(&self) -> (ApplyFuture<R>, Request<R>) {
            let (future, slot) = ApplyFuture::new(&self.0);
            (future, Request(slot, std::marker::PhantomData))
        }
    }

    impl<R> Request<R> {
        /// The trustee's part.
        pub fn complete(self, result: R) {
            // SAFETY: from `request`, and consumed.
            unsafe { SlotResult::complete(self.0, result) }
        }
    }
}
