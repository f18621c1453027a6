//! Requests made inside delegated closures.
//!
//! A closure is a leaf and must not wait, and sending may have to: for room, or for a trustee
//! that is ending. So `post` and `apply_then` from inside go into a queue of the thread, which
//! its trustee drains when the closure has ended. It never waits for room there either: what
//! finds none stays queued while the trustee goes on serving, so trustees that post into each
//! other's full windows come apart again.
//!
//! The queue is bounded by the window of the request's trustee. Its order is kept: behind a
//! request without room the others wait too. A request to an object of this very trustee needs
//! no channel and is run here.
//!
//! What is queued holds a handle to its object. A request whose trustee ends before there was
//! room is dropped unrun.
//!
//! **Trustees that end together do end.** One that ends sends the rest of its queue beyond
//! every window, so it waits for no room. It may have to wait for the end of another one, which
//! has closed between our look and our request: only that one knows whether it has run it. It
//! had not closed when we looked, and we had: whoever waits so closed earlier than whom it
//! waits for, by the barriers of `Trustee::close`, and there is no circle of such.
//!
//! A hosted trustee that is CLOSING may [open again](crate::trustee::hosted), and so it gets nothing
//! and loses nothing: one that serves waits until it knows, which it does without the one that waits;
//! one that is CLOSING itself keeps the request, and one that has closed drops it. What the
//! destructors of values ask for after that is sent when the trustee has said that it is gone:
//! it may wait for room then, since no trustee waits for it.

use super::connect::{connect, for_each_client};
use crate::client::kind::Kind;
use crate::client::{Patience, Refusal};
use crate::context::holds::DeferredRequest;
use crate::context::leaf::Leaf;
use crate::context::serving::Serving;
use crate::context::thread::state;
use crate::object::Header;
use crate::object::handle::Handle;
use corelay_sync::facade::thread_local;
use std::cell::RefCell;
use std::collections::VecDeque;

/// A request that waits for its closure to end.
trait Nested {
    /// Sends it, or runs it where the object is this thread's own. False where there is no
    /// room; it is to be asked again then.
    fn send(&mut self, serving: Option<&Serving>, patience: Patience) -> bool;

    /// The object, where that is one of `serving`'s own and held: it has to wait.
    fn waits_for(&self, serving: &Serving) -> Option<*mut Header>;
}

/// A request that waits for its object.
struct HeldBack(Box<dyn Nested>);

impl DeferredRequest for HeldBack {
    fn run(&mut self, serving: &Serving) {
        // One of this trustee's own objects: there is always room.
        self.0.send(Some(serving), Patience::Inside);
    }
}

thread_local! {
    static QUEUE: RefCell<VecDeque<Box<dyn Nested>>> = const { RefCell::new(VecDeque::new()) };
}

/// A kind of request that may be made inside a delegated closure.
pub(crate) trait Nests<T>: Kind<T, Receipt = ()> {
    /// Runs the request on the thread's own trustee.
    ///
    /// # Safety
    /// `object` is an `Object<T>` of `serving`'s, alive; no closure runs.
    unsafe fn run_here(serving: &Serving, object: *mut Header, sent: Self::Sent);
}

/// A request of kind `K` in the queue.
struct Queued<T, K: Kind<T>> {
    handle: Handle<T>,
    sent: Option<K::Sent>,
}

/// Queues a request; gives it back where the queue is full or the trustee has ended.
///
/// # Safety
/// Nothing borrows.
pub(crate) unsafe fn push<T, K: Nests<T>>(
    handle: &Handle<T>,
    sent: K::Sent,
) -> Result<(), (Option<Refusal>, K::Sent)> {
    if let Err(refusal) = room(handle) {
        return Err((Some(refusal), sent));
    }
    let queued: Box<dyn Nested + '_> = Box::new(Queued::<T, K> {
        handle: handle.clone(),
        sent: Some(sent),
    });
    // SAFETY: only the lifetime changes, and nothing borrows, by the caller.
    let queued = unsafe { std::mem::transmute::<Box<dyn Nested + '_>, Box<dyn Nested>>(queued) };
    QUEUE.with(|queue| queue.borrow_mut().push_back(queued));
    Serving::with_current(|serving| serving.nested.set(true));
    Ok(())
}

fn room<T>(handle: &Handle<T>) -> Result<(), Refusal> {
    let trustee = handle.trustee();
    let own = Serving::with_current(|serving| serving.owns(trustee)) == Some(true);
    if !own && trustee.is_closed() {
        return Err(Refusal::Closed);
    }
    let queued = QUEUE.with(|queue| queue.borrow().len());
    // What a trustee runs while it is CLOSING has been accepted, and perhaps it can send nothing.
    let is_closing = Serving::with_current(|serving| serving.is_closing.get()) == Some(true);
    if queued >= trustee.settings.window as usize && !is_closing {
        return Err(Refusal::Full);
    }
    Ok(())
}

/// Sends what has been queued, as far as there is room. Outside of closures.
#[cold]
pub(crate) fn drain(serving: &Serving) {
    send_all(Some(serving), Patience::Inside);
    let left = QUEUE.with(|queue| !queue.borrow().is_empty());
    serving.nested.set(left);
}

/// As [`drain`], of a trustee that ends: nothing is left.
pub(crate) fn send_last(serving: &Serving) {
    send_all(Some(serving), Patience::Last);
    serving.nested.set(false);
}

/// The thread's trustee has ended: sends what the destructors of its values have asked for
/// behind [`send_last`], waiting for room.
pub(crate) fn finish() {
    send_all(None, Patience::Hold);
}

fn send_all(serving: Option<&Serving>, patience: Patience) {
    // Not borrowed while something is sent: what runs here may queue more.
    while let Some(mut request) = QUEUE.with(|queue| queue.borrow_mut().pop_front()) {
        if let Some(serving) = serving
            && let Some(object) = request.waits_for(serving)
        {
            serving
                .holds
                .defer_nested(object, Box::new(HeldBack(request)));
            continue;
        }
        if !request.send(serving, patience) {
            QUEUE.with(|queue| queue.borrow_mut().push_front(request));
            return;
        }
    }
}

/// True where there is something to be taken or sent that there was not at the last look: the
/// thread has been answered, or there is room.
pub(crate) fn have_others_gone_on() -> bool {
    let mut some = false;
    for_each_client(|client| some |= client.has_gone_on());
    some
}

/// Takes the answers to what closures have asked for, and runs the callbacks, as leaves: a
/// trustee that waited in one would not serve.
pub(crate) fn take_answers(serving: &Serving) {
    for_each_client(|client| {
        let _leaf = Leaf::enter_callbacks();
        client.catch_up();
    });
    if let Some(payload) = state().and_then(|state| state.take_held()) {
        serving.count_panic();
        discard(payload);
    }
}

/// True where answers are still to come, or room for what is queued.
pub(crate) fn waits_for_others(serving: &Serving) -> bool {
    let mut waits = serving.nested.get();
    for_each_client(|client| waits |= client.has_callbacks());
    waits
}

/// Drops a request that will not run, or what it has left, as a leaf: a member is perhaps serving.
pub(crate) fn discard<Q>(request: Q) {
    let _leaf = Leaf::enter_discarded();
    crate::context::discard::discard(request);
}

/// Runs the callback of a request that has run here.
pub(crate) fn run_callback(serving: &Serving, callback: impl FnOnce()) {
    let _leaf = Leaf::enter_callbacks();
    serving.contain(callback);
}

impl<T, K: Nests<T>> Nested for Queued<T, K> {
    fn send(&mut self, serving: Option<&Serving>, patience: Patience) -> bool {
        let Some(sent) = self.sent.take() else {
            return true;
        };
        if let Some(serving) = own(&self.handle, serving) {
            // SAFETY: ours; the handle keeps the object, and no closure runs.
            unsafe { K::run_here(serving, self.handle.header(), sent) };
            return true;
        }
        match send::<T, K>(&self.handle, sent, patience) {
            Ok(()) => true,
            Err((Refusal::Full, sent)) => {
                self.sent = Some(sent);
                false
            }
            Err((Refusal::Closed, sent)) => {
                discard(sent);
                true
            }
        }
    }

    fn waits_for(&self, serving: &Serving) -> Option<*mut Header> {
        let object = self.handle.header();
        (serving.owns(self.handle.trustee()) && serving.is_held(object)).then_some(object)
    }
}

/// The thread's trustee, if the object is its own and its values live.
fn own<'a, T>(handle: &Handle<T>, serving: Option<&'a Serving>) -> Option<&'a Serving> {
    serving.filter(|serving| serving.owns(handle.trustee()))
}

/// Sends a request, or gives it back.
fn send<T, K: Nests<T>>(
    handle: &Handle<T>,
    sent: K::Sent,
    patience: Patience,
) -> Result<(), (Refusal, K::Sent)> {
    // Where nobody may wait, a trustee that has closed gets nothing: see the module's page.
    let trustee = handle.trustee();
    if patience == Patience::Inside && trustee.is_closing() {
        if Serving::with_current(|serving| serving.is_closing.get()) == Some(true) {
            return Err((Refusal::Full, sent));
        }
        trustee.wait_until_decided();
    }
    let is_last = patience == Patience::Last;
    if patience.is_trustees() && trustee.is_closed() || is_last && trustee.is_closing() {
        return Err((Refusal::Closed, sent));
    }
    match connect(trustee) {
        // SAFETY: the handle keeps the object; nothing borrows, by `push`.
        Ok(client) => unsafe { client.send::<T, K>(handle.header(), sent, patience) },
        Err(_) => Err((Refusal::Closed, sent)),
    }
}
