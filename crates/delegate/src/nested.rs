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

use crate::channel::client::{Client, Patience, Refusal};
use crate::held::Deferred;
use crate::leaf::Leaf;
use crate::object::Header;
use crate::serving::Serving;
use crate::thread::{connect, for_each_client, state};
use crate::trust::Trust;
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
struct Waits(Box<dyn Nested>);

impl Deferred for Waits {
    fn run(&mut self, serving: &Serving) {
        // One of this trustee's own objects: there is always room.
        self.0.send(Some(serving), Patience::Inside);
    }
}

thread_local! {
    static QUEUE: RefCell<VecDeque<Box<dyn Nested>>> = const { RefCell::new(VecDeque::new()) };
}

struct Post<T, F> {
    trust: Trust<T>,
    f: Option<F>,
}

struct Then<T, F, C> {
    trust: Trust<T>,
    request: Option<(F, C)>,
}

/// Queues a `post`; gives it back where the queue is full or the trustee has ended.
pub(crate) fn post<T, F>(trust: &Trust<T>, f: F) -> Result<(), (Refusal, F)>
where
    T: 'static,
    F: FnOnce(&mut T) + Send + 'static,
{
    match room(trust) {
        Ok(()) => push(Box::new(Post {
            trust: trust.clone(),
            f: Some(f),
        })),
        Err(refusal) => return Err((refusal, f)),
    }
    Ok(())
}

/// Queues an `apply_then`; gives it back as [`post`] does.
pub(crate) fn apply_then<T, R, F, C>(trust: &Trust<T>, f: F, then: C) -> Result<(), (Refusal, F, C)>
where
    T: 'static,
    R: Send + 'static,
    F: FnOnce(&mut T) -> R + Send + 'static,
    C: FnOnce(R) + 'static,
{
    match room(trust) {
        Ok(()) => push(Box::new(Then {
            trust: trust.clone(),
            request: Some((f, then)),
        })),
        Err(refusal) => return Err((refusal, f, then)),
    }
    Ok(())
}

fn room<T>(trust: &Trust<T>) -> Result<(), Refusal> {
    let trustee = trust.trustee();
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

fn push(request: Box<dyn Nested>) {
    QUEUE.with(|queue| queue.borrow_mut().push_back(request));
    Serving::with_current(|serving| serving.nested.set(true));
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
            serving.holds.defer_nested(object, Box::new(Waits(request)));
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
fn discard<Q>(request: Q) {
    let _leaf = Leaf::enter_discarded();
    crate::discard::discard(request);
}

impl<T, F> Nested for Post<T, F>
where
    F: FnOnce(&mut T) + Send + 'static,
{
    fn send(&mut self, serving: Option<&Serving>, patience: Patience) -> bool {
        let Some(f) = self.f.take() else { return true };
        if let Some(serving) = own(&self.trust, serving) {
            // SAFETY: ours; the handle keeps it, and no closure runs.
            let result = unsafe { serving.run_here::<T, F, ()>(self.trust.header(), f) };
            if let Err(payload) = result {
                discard(payload);
            }
            return true;
        }
        // SAFETY: the handle keeps the object; nothing borrows.
        let sent = with_client(&self.trust, f, patience, |client, f| unsafe {
            client.post::<T, F>(self.trust.header(), f, patience)
        });
        self.f = keep(sent);
        self.f.is_none()
    }

    fn waits_for(&self, serving: &Serving) -> Option<*mut Header> {
        held(&self.trust, serving)
    }
}

impl<T, R, F, C> Nested for Then<T, F, C>
where
    R: Send + 'static,
    F: FnOnce(&mut T) -> R + Send + 'static,
    C: FnOnce(R) + 'static,
{
    fn send(&mut self, serving: Option<&Serving>, patience: Patience) -> bool {
        let Some((f, then)) = self.request.take() else {
            return true;
        };
        if let Some(serving) = own(&self.trust, serving) {
            // SAFETY: ours; the handle keeps it, and no closure runs.
            match unsafe { serving.run_here::<T, F, R>(self.trust.header(), f) } {
                Ok(answer) => {
                    let _leaf = Leaf::enter_callbacks();
                    serving.contain(|| then(answer));
                }
                Err(payload) => {
                    discard(payload);
                    discard(then);
                }
            }
            return true;
        }
        let sent = with_client(&self.trust, (f, then), patience, |client, (f, then)| {
            // SAFETY: the handle keeps the object; nothing borrows.
            unsafe { client.issue::<T, F, R, C>(self.trust.header(), f, then, patience) }
                .map_err(|(refusal, f, then)| (refusal, (f, then)))
        });
        self.request = keep(sent);
        self.request.is_none()
    }

    fn waits_for(&self, serving: &Serving) -> Option<*mut Header> {
        held(&self.trust, serving)
    }
}

/// The thread's trustee, if the object is its own and its values live.
fn own<'a, T>(trust: &Trust<T>, serving: Option<&'a Serving>) -> Option<&'a Serving> {
    serving.filter(|serving| serving.owns(trust.trustee()))
}

/// See [`Nested::waits_for`].
fn held<T>(trust: &Trust<T>, serving: &Serving) -> Option<*mut Header> {
    let object = trust.header();
    (serving.owns(trust.trustee()) && serving.is_held(object)).then_some(object)
}

/// Sends a request, or gives it back.
fn with_client<T, Q>(
    trust: &Trust<T>,
    request: Q,
    patience: Patience,
    call: impl FnOnce(&Client, Q) -> Result<(), (Refusal, Q)>,
) -> Result<(), (Refusal, Q)> {
    // Where nobody may wait, a trustee that has closed gets nothing: see the module's page.
    let trustee = trust.trustee();
    if patience == Patience::Inside && trustee.is_closing() {
        if Serving::with_current(|serving| serving.is_closing.get()) == Some(true) {
            return Err((Refusal::Full, request));
        }
        trustee.wait_until_decided();
    }
    let is_last = patience == Patience::Last;
    if patience.is_trustees() && trustee.is_closed() || is_last && trustee.is_closing() {
        return Err((Refusal::Closed, request));
    }
    match connect(trustee) {
        Ok(client) => call(&client, request),
        Err(_) => Err((Refusal::Closed, request)),
    }
}

/// What is to be sent again.
fn keep<Q>(sent: Result<(), (Refusal, Q)>) -> Option<Q> {
    match sent {
        Ok(()) => None,
        Err((Refusal::Full, request)) => Some(request),
        Err((Refusal::Closed, request)) => {
            discard(request);
            None
        }
    }
}
