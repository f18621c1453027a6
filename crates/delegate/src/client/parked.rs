//! A request that waits for room without blocking its thread: a task holds it, and sends it when
//! it is let in.
//!
//! The task may move to another thread meanwhile. A thread sends by a client of its own, so the
//! request then waits for that one's window, at the place that its ticket gives it.

use super::connect::{NoClient, connect};
use super::kind::Kind;
use super::{Client, Patience, Refusal};
use crate::context::discard::wake;
use crate::context::events::WaitForRoom;
use crate::object::Header;
use crate::object::handle::Handle;
use crate::object::shared::Shared;
use crate::wire::Channel;
use crate::wire::waiters::Ticket;
use corelay_sync::facade::atomic::Ordering;
use corelay_sync::facade::sync::Arc;
use std::task::{Context, Poll, Waker};

/// A task's place among those that wait for room in a client's window.
struct Place {
    channel: Arc<Channel>,
    ticket: Ticket,
}

impl Place {
    /// Gives the place up, and lets in the tasks for which there is room then.
    fn leave(self) {
        // Under the waiters' lock: what the trustee had executed when it looked for tasks to let in
        // does not count as queued any more.
        let queued = || self.channel.queued();
        let (own, next) = self.channel.waiters.leave(self.ticket, queued);
        next.into_iter().for_each(wake);
        crate::context::discard::discard(own);
    }
}

/// A request of kind `K` on a `T` that has not been sent.
pub(crate) struct Parked<T, K: Kind<T>> {
    object: *mut Header,
    trustee: Arc<Shared>,
    /// Keeps the object. `None` for the trustee's registry, which lives as long as its trustee.
    _handle: Option<Handle<T>>,
    sent: Option<K::Sent>,
    place: Option<Place>,
    waiting: WaitForRoom,
}

// SAFETY: the object is only named, in a label; what else crosses threads is the user's values and
// counted references that may.
unsafe impl<T, K: Kind<T>> Send for Parked<T, K> where K::Sent: Send {}

impl<T, K: Kind<T>> Unpin for Parked<T, K> {}

impl<T, K: Kind<T>> Parked<T, K> {
    /// A request on an object that `handle` keeps.
    pub(crate) fn new(handle: Handle<T>, sent: K::Sent) -> Self {
        let trustee = Arc::clone(handle.trustee());
        let mut parked = Self::on_registry(handle.header(), trustee, sent);
        parked._handle = Some(handle);
        parked
    }

    /// A request on the trustee's registry.
    pub(crate) fn on_registry(object: *mut Header, trustee: Arc<Shared>, sent: K::Sent) -> Self {
        Self {
            object,
            trustee,
            _handle: None,
            sent: Some(sent),
            place: None,
            waiting: WaitForRoom::default(),
        }
    }

    /// Sends the request if it is its turn and there is room. Otherwise the task of `context` is
    /// woken when it may be.
    ///
    /// # Errors
    /// The trustee has been shut down; the closures have been dropped.
    ///
    /// # Panics
    /// When it is called again after it has been ready.
    pub(crate) fn poll(&mut self, context: &Context<'_>) -> Poll<Result<K::Receipt, Closed>> {
        let sent = self.sent.take().expect("not sent yet");
        let client = match connect(&self.trustee) {
            Ok(client) => client,
            Err(NoClient::Closed) => return Poll::Ready(Err(self.close(sent))),
            Err(NoClient::Nested(_)) => {
                // A task that is polled inside a delegated closure has to be polled elsewhere.
                self.sent = Some(sent);
                context.waker().wake_by_ref();
                return Poll::Pending;
            }
        };
        let place = &mut self.place;
        // SAFETY: the handle keeps the object, or it is the registry, which no trustee outlives.
        // The closures borrow nothing, as the makers of parked requests promise.
        match unsafe { client.send_in_turn::<T, K>(self.object, sent, place, context.waker()) } {
            Ok(receipt) => {
                self.waiting.end(&self.trustee);
                Poll::Ready(Ok(receipt))
            }
            Err((Refusal::Closed, sent)) => Poll::Ready(Err(self.close(sent))),
            Err((Refusal::Full, sent)) => {
                self.sent = Some(sent);
                self.waiting.begin(&self.trustee);
                Poll::Pending
            }
        }
    }

    fn close(&mut self, sent: K::Sent) -> Closed {
        if let Some(place) = self.place.take() {
            place.leave();
        }
        drop(sent);
        Closed
    }
}

impl<T, K: Kind<T>> Drop for Parked<T, K> {
    fn drop(&mut self) {
        if let Some(place) = self.place.take() {
            place.leave();
        }
    }
}

/// The outcome of a request that does not wait for room.
pub(crate) enum Outcome<T, K: Kind<T>> {
    Sent(K::Receipt),
    /// There was no room; the request can be sent later.
    Parked(Parked<T, K>),
    /// The trustee has been shut down, and the closures have been dropped.
    Closed,
}

/// The trustee has been shut down before a request was accepted.
pub(crate) struct Closed;

impl Client {
    /// Sends a request if there is room for it and for all tasks that came before it. Otherwise
    /// enters the task of `waker` among those that wait, at `place`.
    ///
    /// # Safety
    /// The same as for [`send`](Self::send).
    unsafe fn send_in_turn<T, K: Kind<T>>(
        &self,
        object: *mut Header,
        sent: K::Sent,
        place: &mut Option<Place>,
        waker: &Waker,
    ) -> Result<K::Receipt, (Refusal, K::Sent)> {
        // SAFETY: the caller keeps the same duties.
        let sent = match unsafe { self.try_in_turn::<T, K>(object, sent, place) } {
            Err((Refusal::Full, sent)) => sent,
            ended => return ended,
        };
        self.enter_waiters(place, waker);
        // Room may have been made before the task was entered, and nobody would wake it.
        // SAFETY: the caller keeps the same duties.
        unsafe { self.try_in_turn::<T, K>(object, sent, place) }
    }

    /// Sends a request if there is room for it and for all tasks that came before it.
    ///
    /// # Safety
    /// The same as for [`send`](Self::send).
    unsafe fn try_in_turn<T, K: Kind<T>>(
        &self,
        object: *mut Header,
        sent: K::Sent,
        place: &mut Option<Place>,
    ) -> Result<K::Receipt, (Refusal, K::Sent)> {
        let ticket = place.as_ref().map(|place| place.ticket);
        // SAFETY: the caller keeps the same duties.
        let receipt = unsafe { self.send_behind::<T, K>(object, sent, ticket) }?;
        if let Some(place) = place.take() {
            place.leave();
        }
        Ok(receipt)
    }

    /// Sends a request unless it would take the room of a task that came before `ticket`, or of any
    /// that waits if that is `None`.
    ///
    /// # Safety
    /// The same as for [`send`](Self::send).
    pub(crate) unsafe fn send_behind<T, K: Kind<T>>(
        &self,
        object: *mut Header,
        sent: K::Sent,
        ticket: Option<Ticket>,
    ) -> Result<K::Receipt, (Refusal, K::Sent)> {
        let ahead = self.waiters().ahead(ticket);
        // SAFETY: the caller keeps the same duties.
        unsafe { self.send_slowly::<T, K>(object, sent, Patience::Park { ahead }) }
    }

    fn enter_waiters(&self, place: &mut Option<Place>, waker: &Waker) {
        let waker = waker.clone();
        // Relaxed: only the order of the numbers counts.
        let next = || Ticket(self.trustee.tickets.fetch_add(1, Ordering::Relaxed));
        let ticket = place.as_ref().map_or_else(next, |place| place.ticket);
        let elsewhere = place.take_if(|place| !Arc::ptr_eq(&place.channel, &self.owned));
        let old = self.waiters().enter(ticket, waker);
        *place = Some(Place {
            channel: Arc::clone(&self.owned),
            ticket,
        });
        if let Some(place) = elsewhere {
            place.leave();
        }
        crate::context::discard::discard(old);
    }
}
