//! Futures: a result that a trustee leaves in a slot, and the task that it wakes.
//!
//! The request itself is a record in the ring of its own kind, see
//! [`ApplyAsyncRecord`](crate::client::apply_async). [`slots`](crate::slots) says which side may
//! touch result and waker, and when. The thread that sent the request has no part in what follows.

use super::connect::flush_clients;
use super::kind::Kind;
use super::parked::{Closed, Outcome, Parked};
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

    /// Completes the slot with `result`: the trustee's last step for the request.
    ///
    /// # Safety
    /// The slot is from [`ApplyFuture::new`] for the same `R`. Called once, by the trustee of the
    /// request.
    #[inline(always)]
    pub(crate) unsafe fn complete(slot: SlotPtr, result: R) {
        // SAFETY: the caller is the trustee of the request and completes the slot once.
        unsafe { Self::write(slot, result) };
        // SAFETY: the caller is the trustee of the request, and the result has been written above.
        unsafe { Self::announce(slot) };
    }

    /// Writes the result: the first half of [`complete`](Self::complete).
    ///
    /// # Safety
    /// The same as for [`complete`](Self::complete).
    #[inline(always)]
    pub(crate) unsafe fn write(slot: SlotPtr, result: R) {
        // SAFETY: `ApplyFuture::new` took a slot of the class for `R`, whose words are the
        // trustee's until the slot is complete.
        unsafe { Packed::<R, LARGE_WORDS>::write(slot.words(), result) };
    }

    /// Hands the result to the future: the second half of [`complete`](Self::complete).
    ///
    /// # Safety
    /// The same as for [`complete`](Self::complete); [`write`](Self::write) has been called.
    #[inline(always)]
    pub(crate) unsafe fn announce(slot: SlotPtr) {
        // SAFETY: the caller is the trustee of the request and calls this once, after `write`.
        settled(unsafe { slot.complete(DONE, Self::discard) });
    }

    /// Completes the slot with a fault: the trustee's last step for the request.
    ///
    /// # Safety
    /// The same as for [`complete`](Self::complete).
    pub(crate) unsafe fn fail(slot: SlotPtr, payload: Payload) {
        // SAFETY: a box takes one word, which every slot has, and which is the trustee's until the
        // slot is complete.
        unsafe { Packed::<Payload, 1>::write(slot.words(), payload) };
        // SAFETY: the caller is the trustee of the request and completes the slot once; the payload
        // is written.
        settled(unsafe { slot.complete(FAULTED, SlotResult::<Payload>::discard_payload) });
    }

    /// Drops a result of type `R` that nobody takes.
    ///
    /// # Safety
    /// `words` holds a result that nobody takes.
    unsafe fn discard(words: *mut u64) {
        // SAFETY: the caller promises a result that nobody takes.
        unsafe { Packed::<R, LARGE_WORDS>::discard(words) };
    }
}

/// Counts the panic of a waker or a result's destructor, if there was one, and drops its payload as
/// user code.
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
    /// Drops a boxed payload that nobody takes.
    ///
    /// # Safety
    /// `words` holds a payload that nobody takes.
    unsafe fn discard_payload(words: *mut u64) {
        // SAFETY: the caller promises a payload that nobody takes.
        drop(unsafe { Packed::<Payload, 1>::read(words) });
    }
}

/// The result of [`Trust::apply_async`](crate::Trust::apply_async), to be awaited.
///
/// If there was room in the window, the request has been made already: it runs whether or not the
/// future is polled, and also if it is dropped. If there was none, the future makes the request when
/// it is polled and there is room.
///
/// Any executor will do, and any thread: the future is `Send` if `R` is, and the trustee itself
/// wakes the task. Polling never blocks the thread.
///
/// # Panics
/// When it is polled again after it has given its result.
#[must_use = "a request that waits for room is lost with its future; use `post` where the result does not matter"]
pub struct ApplyFuture<R> {
    state: State<R>,
}

/// The state of a future. Each variant has one pointer or nothing, so that a future moves in two
/// registers: in memory its parts would be written one by one and read as a whole, which stalls.
enum State<R> {
    /// The request has been sent, and the result comes into the slot.
    Sent(SlotPtr),
    /// The same, and a [`Waiter`] has left a waker in the slot.
    Watched(SlotPtr),
    /// The request waits for room. Boxed twice, so that the future takes two words. The future's
    /// drop drops it, so that a state is overwritten without a look at the old one.
    Parked(ManuallyDrop<Box<Box<dyn Resend<R>>>>),
    /// The trustee was shut down before it took the request.
    Closed,
    /// The result has been given.
    Ended,
}

const _: () = assert!(size_of::<ApplyFuture<u64>>() == 2 * size_of::<usize>());

/// A parked request whose result, an `R`, goes to a future.
trait Resend<R> {
    fn poll(&mut self, context: &Context<'_>) -> Poll<Result<ApplyFuture<R>, Closed>>;
}

impl<T, R, K: Kind<T, Receipt = ApplyFuture<R>>> Resend<R> for Parked<T, K> {
    fn poll(&mut self, context: &Context<'_>) -> Poll<Result<ApplyFuture<R>, Closed>> {
        self.poll(context)
    }
}

// SAFETY: one thread at a time holds the future, and `slots` says when that thread may use the
// slot; only an `R`, a waker and a payload cross threads with it, and a parked request, whose
// closure is `Send` because its method asks for that.
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
                // SAFETY: the slot has the class for `R`, and nobody else knows it yet.
                unsafe { Packed::<R, LARGE_WORDS>::write(slot.words(), result) };
                slot.begin_completed(DONE);
            }
            Err(payload) => {
                // SAFETY: every slot has a word for the box, and nobody else knows it yet.
                unsafe { Packed::<Payload, 1>::write(slot.words(), payload) };
                slot.begin_completed(FAULTED);
            }
        }
        Self::of(slot)
    }

    fn of(slot: SlotPtr) -> Self {
        Self {
            state: State::Sent(slot),
        }
    }

    /// Gives the slot back, since the request was not taken.
    pub(crate) fn retract(self) {
        if let State::Sent(slot) = ManuallyDrop::new(self).state {
            // SAFETY: no request knows the slot, and the future is forgotten, so nobody else uses
            // it.
            unsafe { pool::give_back(slot) };
        }
    }

    /// Takes the result and gives the slot back.
    ///
    /// # Safety
    /// The slot is complete with that state, and nobody else will use it.
    #[inline(always)]
    unsafe fn take(slot: SlotPtr, state: usize) -> Result<R, AsyncError> {
        let result = if state == DONE {
            // SAFETY: the slot is complete with DONE, as the caller promises, so it holds an `R`.
            Ok(unsafe { Packed::<R, LARGE_WORDS>::read(slot.words()) })
        } else {
            debug_assert_eq!(state, FAULTED);
            // SAFETY: the slot is complete with FAULTED, as the caller promises, so it holds a
            // payload.
            Err(unsafe { Packed::<Payload, 1>::read(slot.words()) })
        };
        // SAFETY: the caller promises that nobody else will use the slot.
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

impl<T, R, K> From<Outcome<T, K>> for ApplyFuture<R>
where
    T: 'static,
    R: 'static,
    K: Kind<T, Receipt = Self> + 'static,
{
    /// The future of a request that was just made.
    #[inline(always)]
    fn from(outcome: Outcome<T, K>) -> Self {
        let state = match outcome {
            Outcome::Sent(future) => return future,
            Outcome::Parked(parked) => State::Parked(ManuallyDrop::new(Box::new(Box::new(parked)))),
            Outcome::Closed => State::Closed,
        };
        Self { state }
    }
}

impl<R> ApplyFuture<R> {
    /// Polls a future that has no result yet, or that has left a waker.
    #[inline(never)]
    fn poll_slowly(&mut self, context: &mut Context<'_>) -> Poll<Result<R, AsyncError>> {
        let (slot, had_waker) = match self.state {
            State::Sent(slot) => (slot, false),
            State::Watched(slot) => (slot, true),
            _ => return self.poll_unsent(context),
        };
        let mut polling = Polling {
            waiter: Waiter::new(slot, had_waker),
            state: &mut self.state,
        };
        let polled = polling.waiter.poll(context.waker());
        drop(polling);
        let Some(state) = polled else {
            if !had_waker {
                hurry();
            }
            return Poll::Pending;
        };
        self.state = State::Ended;
        // SAFETY: `poll` says that the slot is complete, and the future has forgotten it.
        Poll::Ready(unsafe { Self::take(slot, state) })
    }

    /// Polls a future whose request has not been sent, or that has given its result.
    #[cold]
    fn poll_unsent(&mut self, context: &mut Context<'_>) -> Poll<Result<R, AsyncError>> {
        match &mut self.state {
            State::Parked(parked) => match parked.poll(context) {
                Poll::Ready(sent) => {
                    let state = State::Closed;
                    *self = sent.unwrap_or_else(|Closed| Self { state });
                    return Pin::new(self).poll(context);
                }
                Poll::Pending => return Poll::Pending,
            },
            State::Closed => {}
            State::Sent(_) | State::Watched(_) => unreachable!("asked by `poll_slowly`"),
            State::Ended => {
                panic!("corelay: an ApplyFuture is polled after it has given its result")
            }
        }
        self.state = State::Ended;
        Poll::Ready(Err(AsyncError::Closed))
    }
}

/// A future's waiter at work. Its drop notes whether the slot has a waker, also when a waker has
/// panicked.
struct Polling<'a, R> {
    waiter: Waiter,
    state: &'a mut State<R>,
}

impl<R> Drop for Polling<'_, R> {
    #[inline(always)]
    fn drop(&mut self) {
        let slot = self.waiter.slot();
        *self.state = if self.waiter.has_waker() {
            State::Watched(slot)
        } else {
            State::Sent(slot)
        };
    }
}

impl<R> Future for ApplyFuture<R> {
    type Output = Result<R, AsyncError>;

    #[inline(always)]
    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        if let State::Sent(slot) = self.state
            && let Some(state) = slot.completed()
        {
            self.state = State::Ended;
            // SAFETY: the slot is complete and never had a waker, so nobody else will use it, and
            // the future has forgotten it.
            return Poll::Ready(unsafe { Self::take(slot, state) });
        }
        self.poll_slowly(context)
    }
}

/// Publishes the requests of this thread, since one of them may be the awaited one: the trustee
/// would find it by itself, a little later. A member serves, since the request may be to itself.
#[inline(never)]
fn hurry() {
    flush_clients();
    serve_once();
}

impl<R> Drop for ApplyFuture<R> {
    #[inline(always)]
    fn drop(&mut self) {
        if !matches!(self.state, State::Ended) {
            self.drop_unfinished();
        }
    }
}

impl<R> ApplyFuture<R> {
    #[cold]
    #[inline(never)]
    fn drop_unfinished(&mut self) {
        let mut waiter = match &mut self.state {
            State::Sent(slot) => Waiter::new(*slot, false),
            State::Watched(slot) => Waiter::new(*slot, true),
            State::Parked(parked) => {
                // SAFETY: the future is being dropped, and drops its request only here.
                unsafe { ManuallyDrop::drop(parked) };
                return;
            }
            State::Closed | State::Ended => return,
        };
        let (state, _waker) = waiter.abandon();
        if let Some(state) = state {
            // SAFETY: `abandon` says that the slot is complete, and the future is gone.
            drop(unsafe { Self::take(waiter.slot(), state) });
        }
    }
}

impl<R> fmt::Debug for ApplyFuture<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ApplyFuture")
            .field(
                "is_sent",
                &matches!(self.state, State::Sent(_) | State::Watched(_)),
            )
            .finish_non_exhaustive()
    }
}

/// Slots without a trustee, for the models.
#[cfg(any(corelay_loom, corelay_shuttle))]
pub mod checked {
    use super::{ApplyFuture, Pools, SlotPtr, SlotResult};

    /// A thread's pools. Dropping it ends the thread's part.
    #[derive(Default)]
    pub struct Owner(Pools);

    /// The trustee's side of a slot, as a request has it.
    pub struct Request<R>(SlotPtr, std::marker::PhantomData<R>);

    // SAFETY: as for `ApplyFuture`: only an `R`, a waker and a payload cross threads with it.
    unsafe impl<R: Send> Send for Request<R> {}

    impl Owner {
        /// A future and the request that will complete it.
        pub fn request<R>(&self) -> (ApplyFuture<R>, Request<R>) {
            let (future, slot) = ApplyFuture::new(&self.0);
            (future, Request(slot, std::marker::PhantomData))
        }
    }

    impl<R> Request<R> {
        /// Completes the slot, as the trustee does.
        pub fn complete(self, result: R) {
            // SAFETY: `request` made the slot for an `R`, and `self` is consumed, so it is
            // completed once.
            unsafe { SlotResult::complete(self.0, result) }
        }
    }
}
