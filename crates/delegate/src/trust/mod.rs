//! The handle to a delegated object, and its methods that send requests.

use self::send::{NotTaken, Panics};
use crate::client::apply_then::{ApplyThen, Post};
use crate::client::connect::{ClientRef, NoClient, connect, lookup};
use crate::client::suspend::here_and_client;
use crate::client::{Client, Patience, Refusal};
use crate::context::coroutine::may_not_wait;
use crate::context::thread::in_turn;
use crate::error::{CircularWait, Poisoned, TryApplyError, TryApplyThenError, TryPostError};
use crate::large::ByAddress;
use crate::object::handle::Handle;
use crate::object::shared::Shared;
use crate::object::{CLEARED, Header, POISONED};
use crate::operation::{Named, Operation, RequestName, TypeName};
use crate::request::label;
use corelay_sync::facade::atomic::Ordering;
use corelay_sync::facade::sync::Arc;
use corelay_sync::wait::NoSwitch;
use std::any::type_name;
use std::fmt;
use std::marker::PhantomData;
use std::panic::{Location, resume_unwind};

/// A handle to a value that a trustee owns.
///
/// Clones are handles to the same value. It is dropped, on its trustee, after the last
/// handle has gone and every request accepted before that has run. Requests touch no
/// shared count.
///
/// # What does not compile
/// A value that is not `Send` cannot be moved to a trustee
/// ([`Trustees::entrust_with`](crate::Trustees::entrust_with) builds it there):
/// ```compile_fail,E0277
/// # let trustees = corelay_delegate::Trustees::dedicated(1).start().unwrap();
/// trustees.entrust(std::rc::Rc::new(1));
/// ```
/// A reference into the value cannot leave its trustee:
/// ```compile_fail
/// # let trustees = corelay_delegate::Trustees::dedicated(1).start().unwrap();
/// let text = trustees.entrust(String::new());
/// let escaped: &str = text.apply(|text| text.as_str());
/// ```
/// A request that nobody waits for cannot borrow from the caller's frame:
/// ```compile_fail,E0373
/// # let trustees = corelay_delegate::Trustees::dedicated(1).start().unwrap();
/// # let hits = trustees.entrust(0u64);
/// let by = 3;
/// hits.apply_then(|h| *h += by, |()| ());
/// ```
/// One session cannot be used inside itself:
/// ```compile_fail
/// # use corelay_sync::{Session, Shared};
/// # let trustees = corelay_delegate::Trustees::dedicated(1).start().unwrap();
/// # let hits = trustees.entrust(0u64);
/// let mut session = hits.session();
/// session.apply(|_| session.apply(|h| *h += 1));
/// ```
///
/// `N` is the name that its requests have in reports: see [`request`](Self::request).
#[repr(C)]
pub struct Trust<T, N = TypeName> {
    handle: Handle<T>,
    /// The number of the trustee, or [`NO_TRUSTEE_NUMBER`].
    trustee_number: u32,
    name: PhantomData<fn() -> N>,
}

/// The number for an object whose address does not [fit](label::fits) a request's label. No client
/// is known for it, so that no request takes the fast path, which does not look.
const NO_TRUSTEE_NUMBER: u32 = u32::MAX;

// SAFETY: the value stays on its trustee; only closures and results cross threads, and each method
// asks for their `Send`.
unsafe impl<T, N> Send for Trust<T, N> {}
// SAFETY: as for `Send`; all methods work through a channel of the calling thread.
unsafe impl<T, N> Sync for Trust<T, N> {}

impl<T, N> Trust<T, N> {
    #[inline(always)]
    pub(crate) fn header(&self) -> *mut Header {
        self.handle.header()
    }

    /// The client of this thread for the object's trustee, if it has one.
    ///
    /// # Safety
    /// The same as for [`lookup`].
    #[inline(always)]
    pub(crate) unsafe fn known_client(&self) -> Option<&Client> {
        // SAFETY: the caller uses the client as `lookup` asks for.
        unsafe { lookup(self.trustee_number) }
    }

    /// Runs `call` with this thread's client for the object's trustee. Gives the request back if
    /// there can be none. `call` is a method of the client, which enters the thread's
    /// [`Activity`](crate::context::state::Activity) before it runs user code.
    #[inline(always)]
    pub(crate) fn with_client<Q, A>(
        &self,
        request: Q,
        call: impl FnOnce(&Client, Q) -> A,
    ) -> Result<A, (NoClient, Q)> {
        // SAFETY: used inside `call` only, a method of the client, which runs user code inside an
        // activity only.
        match unsafe { self.known_client() } {
            Some(client) => Ok(call(client, request)),
            None => self.with_new_client(request, call),
        }
    }

    /// [`with_client`](Self::with_client) for a thread that has no client yet. Not inlined, so that
    /// the fast path has nothing to drop.
    #[cold]
    #[inline(never)]
    fn with_new_client<Q, A>(
        &self,
        request: Q,
        call: impl FnOnce(&Client, Q) -> A,
    ) -> Result<A, (NoClient, Q)> {
        match self.connect() {
            Ok(client) => {
                let answer = call(&client, request);
                client.raise_held();
                Ok(answer)
            }
            Err(why) => Err((why, request)),
        }
    }

    /// The state of the object's trustee.
    pub(crate) fn shared(&self) -> &Arc<Shared> {
        self.handle.trustee()
    }

    #[cold]
    fn connect(&self) -> Result<ClientRef, NoClient> {
        connect(self.shared())
    }

    /// This thread's client for the object's trustee, made if need be. Returns `None` if the thread
    /// can have none, or only a temporary one.
    ///
    /// # Safety
    /// The same as for [`lookup`].
    #[cold]
    #[inline(never)]
    unsafe fn lasting_client(&self) -> Option<&Client> {
        let _ = self.connect().ok()?;
        // SAFETY: the caller uses the client as `lookup` asks for.
        unsafe { self.known_client() }
    }

    /// Runs `f` on the value and waits for the result, suspending the coroutine that runs here or
    /// blocking the thread. Gives `f` back with the reason if it cannot run.
    #[track_caller]
    #[inline(always)]
    fn call<R, F>(&self, f: F) -> Result<std::thread::Result<R>, (NoClient, F)>
    where
        F: Operation<T, R>,
    {
        if const { ByAddress::<F, R>::IS_BETTER } {
            self.call_by_address(f)
        } else {
            self.call_by_value(f)
        }
    }

    /// [`call`](Self::call) for a closure and a result that may lie in several frames.
    #[track_caller]
    #[inline(always)]
    fn call_by_value<R, F>(&self, f: F) -> Result<std::thread::Result<R>, (NoClient, F)>
    where
        F: Operation<T, R>,
    {
        // Looked up once, and not inlined: a fibre that migrates may have come here from another
        // thread, by another call in the same function.
        // SAFETY: `call_suspending` uses the client until it suspends the coroutine, and `call`
        // uses it for one call, which enters an activity before it runs user code: as `lookup` asks.
        let (here, client) = unsafe { here_and_client(self.trustee_number) };
        if let Some(here) = here
            // SAFETY: `call_suspending` uses the client until it suspends the coroutine, as
            // `lookup` asks for.
            && let Some(client) = client.or_else(|| unsafe { self.lasting_client() })
        {
            // SAFETY: this handle keeps the object, and the call waits. Nothing has suspended the
            // coroutine since `here` was found.
            let answer = unsafe { client.call_suspending(here, self.header(), f) };
            return answer.map_err(|f| (NoClient::Closed, f));
        }
        // SAFETY: this handle keeps the object, and the call waits, so borrows last.
        let call = |client: &Client, f| unsafe { client.call::<T, F, R>(self.header(), f) };
        let answer = match client {
            Some(client) => call(client, f),
            None => match refuse_to_wait() {
                Err(why) => return Err((why, f)),
                Ok(()) => self.with_new_client(f, call)?,
            },
        };
        answer.map_err(|f| (NoClient::Closed, f))
    }

    /// [`call`](Self::call) for a large closure or result. Not inlined, so that these are in no
    /// frame of a caller.
    #[track_caller]
    #[inline(never)]
    fn call_by_address<R, F>(&self, f: F) -> Result<std::thread::Result<R>, (NoClient, F)>
    where
        F: Operation<T, R>,
    {
        let mut request = ByAddress::new(f);
        let outcome = self
            .call_by_value(request.operation())
            .map_err(|(why, _)| why);
        // SAFETY: a call says `Ok(Ok(()))` if its closure has returned, and gives it back otherwise
        // only if it has not been run.
        unsafe { request.finish(outcome) }
    }

    /// Runs an operation on the value and waits, as [`apply`](Self::apply) does.
    #[inline(always)]
    #[track_caller]
    fn apply_operation<R, O: Operation<T, R>>(&self, operation: O) -> R {
        match self.call(operation) {
            Ok(answer) => unwrap_answer(Ok::<_, O>(answer), O::name),
            Err((why, _)) => refuse("Trust::apply", O::name(), &why),
        }
    }

    /// Runs an operation on the value and waits, as [`try_apply`](Self::try_apply) does.
    #[inline(always)]
    fn try_apply_operation<R, O>(&self, operation: O) -> Result<R, TryApplyError<O>>
    where
        O: Operation<T, R>,
    {
        let answer = match self.call(operation) {
            Ok(answer) => answer,
            Err((NoClient::Closed, operation)) => return Err(TryApplyError::Closed(operation)),
            Err((NoClient::Nested(_), operation)) => return Err(TryApplyError::Nested(operation)),
        };
        answer.map_err(|payload| {
            if payload.is::<Poisoned>() {
                return TryApplyError::Poisoned;
            }
            match payload.downcast() {
                Ok(ring) => TryApplyError::Circular(*ring),
                Err(payload) => resume_unwind(payload),
            }
        })
    }
}

impl<T, N: RequestName> Trust<T, N> {
    /// Runs `f` on the value and waits for its result.
    ///
    /// `f` may borrow from the caller's frame. The calling thread spins for a few microseconds,
    /// then yields, then sleeps. If a scheduler of fibres runs the caller, the caller is suspended
    /// instead, and others run on its thread; such a wait cannot be interrupted.
    ///
    /// ```
    /// # use corelay_delegate::Trustees;
    /// let trustees = Trustees::dedicated(1).start()?;
    /// let words = trustees.entrust(Vec::new());
    /// let text = String::from("borrowed");
    /// let n = words.apply(|words| {
    ///     words.push(text.len());
    ///     words.len()
    /// });
    /// assert_eq!(n, 1);
    /// # Ok::<(), corelay_delegate::StartError>(())
    /// ```
    ///
    /// # Panics
    /// With the panic of `f`, which poisons the value. When the value is poisoned, when the trustee
    /// has been shut down, and inside a delegated closure: a closure is a leaf. In a launched
    /// closure also inside a section that may not be suspended, such as one of RLU.
    #[inline]
    #[track_caller]
    pub fn apply<R, F>(&self, f: F) -> R
    where
        R: Send,
        F: FnOnce(&mut T) -> R + Send,
    {
        self.apply_operation(Named::<N, F>::new(f))
    }

    /// Runs `f` and waits as [`apply`](Self::apply) does, but gives `f` back if it cannot run.
    ///
    /// ```
    /// # use corelay_delegate::{Trustees, TryApplyError};
    /// let trustees = Trustees::dedicated(1).start().unwrap();
    /// let hits = trustees.entrust(0u64);
    /// assert_eq!(hits.try_apply(|h| *h).unwrap(), 0);
    /// trustees.shutdown();
    /// match hits.try_apply(|h| { *h += 1; *h }) {
    ///     Err(TryApplyError::Closed(f)) => assert_eq!(f(&mut 6), 7),
    ///     other => panic!("{other:?}"),
    /// }
    /// ```
    ///
    /// # Errors
    /// [`TryApplyError`].
    ///
    /// # Panics
    /// With the panic of `f`, which poisons the value.
    #[inline]
    pub fn try_apply<R, F>(&self, f: F) -> Result<R, TryApplyError<F>>
    where
        R: Send,
        F: FnOnce(&mut T) -> R + Send,
    {
        let answer = self.try_apply_operation(Named::<N, F>::new(f));
        answer.map_err(|error| error.map(|Named { f, .. }| f))
    }

    /// Sends `f` and goes on. `then` gets its result later, on this thread.
    ///
    /// The request runs even if this thread never calls corelay again. The callback runs inside a
    /// later call of this thread: [`poll`](crate::poll), [`barrier`](crate::barrier), or a request;
    /// a busy client looks for answers once in a third of the window, and at least once in 128
    /// requests. If the window is full, the call waits and runs callbacks.
    ///
    /// ```
    /// # use corelay_delegate::{Trustees, barrier};
    /// # use std::{cell::Cell, rc::Rc};
    /// let trustees = Trustees::dedicated(1).start().unwrap();
    /// let hits = trustees.entrust(0u64);
    /// let seen = Rc::new(Cell::new(0));
    /// let note = Rc::clone(&seen);
    /// hits.apply_then(|h| { *h += 1; *h }, move |n| note.set(n));
    /// barrier().unwrap();
    /// assert_eq!(seen.get(), 1);
    /// ```
    ///
    /// Inside a delegated closure the request waits until that has ended; its callback then
    /// runs on the trustee's thread.
    ///
    /// Inside a callback no answers are taken, so if the window is full the request waits for its
    /// own answer instead, and its callback runs after the present one. Requests keep their order
    /// then, but callbacks do not.
    ///
    /// # Panics
    /// When the trustee has been shut down; inside a callback when the window is full and as many
    /// callbacks wait as it takes requests; inside a delegated closure when as many requests wait
    /// for its end. With the panic of a callback that this call has run, after the request has been
    /// accepted.
    #[inline]
    #[track_caller]
    pub fn apply_then<R, F, C>(&self, f: F, then: C)
    where
        T: 'static,
        R: Send + 'static,
        F: FnOnce(&mut T) -> R + Send + 'static,
        C: FnOnce(R) + 'static,
    {
        // SAFETY: the bounds are `'static`, so the closures borrow nothing.
        unsafe { self.send::<ApplyThen<Named<N, F>, R, C>, Panics>((Named::new(f), then)) }
    }

    /// Sends `f` as [`apply_then`](Self::apply_then) does, but gives both closures back if the
    /// request cannot be taken now.
    ///
    /// ```
    /// # use corelay_delegate::{Trustees, TryApplyThenError, barrier};
    /// # let trustees = Trustees::dedicated(1).start().unwrap();
    /// let hits = trustees.entrust(0u64);
    /// match hits.try_apply_then(|h| *h, |n| println!("{n} hits")) {
    ///     Ok(()) => {}
    ///     Err(TryApplyThenError::Full(f, then)) => hits.apply_then(f, then), // waits
    ///     Err(error) => panic!("{error}"),
    /// }
    /// barrier().unwrap();
    /// ```
    ///
    /// # Errors
    /// [`TryApplyThenError`].
    ///
    /// # Panics
    /// With the panic of a callback that this call has run, after the request has been
    /// accepted.
    #[inline]
    pub fn try_apply_then<R, F, C>(&self, f: F, then: C) -> Result<(), TryApplyThenError<F, C>>
    where
        T: 'static,
        R: Send + 'static,
        F: FnOnce(&mut T) -> R + Send + 'static,
        C: FnOnce(R) + 'static,
    {
        // SAFETY: the bounds are `'static`, so the closures borrow nothing.
        let sent = unsafe {
            self.try_send::<ApplyThen<Named<N, F>, R, C>>((Named::new(f), then), Patience::Try)
        };
        sent.map_err(|(why, (Named { f, .. }, then))| match why {
            NotTaken::Full => TryApplyThenError::Full(f, then),
            NotTaken::Closed | NotTaken::Nested => TryApplyThenError::Closed(f, then),
        })
    }

    /// Sends `f` without wanting an answer. The next [`barrier`](crate::barrier) reports a panic of
    /// `f`.
    ///
    /// ```
    /// # let trustees = corelay_delegate::Trustees::dedicated(1).start().unwrap();
    /// let log = trustees.entrust(Vec::new());
    /// log.post(|log| log.push("begun"));
    /// log.post(|log| log.push("done"));
    /// assert_eq!(log.apply(|log| log.join(", ")), "begun, done"); // in the order sent
    /// ```
    ///
    /// # Panics
    /// The same as for [`apply_then`](Self::apply_then).
    #[inline]
    #[track_caller]
    pub fn post<F>(&self, f: F)
    where
        T: 'static,
        F: FnOnce(&mut T) + Send + 'static,
    {
        // SAFETY: the bounds are `'static`, so the closure borrows nothing.
        unsafe { self.send::<Post<Named<N, F>>, Panics>(Named::new(f)) }
    }

    /// Sends `f` as [`post`](Self::post) does, but gives it back if the request cannot be taken
    /// now.
    ///
    /// ```
    /// # use corelay_delegate::{Trustees, TryPostError};
    /// # let trustees = Trustees::dedicated(1).start().unwrap();
    /// let hits = trustees.entrust(0u64);
    /// let lost = match hits.try_post(|h| *h += 1) {
    ///     Ok(()) => 0,
    ///     Err(TryPostError::Full(_)) => 1, // rather than wait
    ///     Err(error) => panic!("{error}"),
    /// };
    /// assert_eq!(hits.apply(|h| *h) + lost, 1);
    /// ```
    ///
    /// # Errors
    /// [`TryPostError`].
    ///
    /// # Panics
    /// The same as for [`try_apply_then`](Self::try_apply_then).
    #[inline]
    pub fn try_post<F>(&self, f: F) -> Result<(), TryPostError<F>>
    where
        T: 'static,
        F: FnOnce(&mut T) + Send + 'static,
    {
        // SAFETY: the bounds are `'static`, so the closure borrows nothing.
        let sent = unsafe { self.try_send::<Post<Named<N, F>>>(Named::new(f), Patience::Try) };
        sent.map_err(|(why, Named { f, .. })| match why {
            NotTaken::Full => TryPostError::Full(f),
            NotTaken::Closed | NotTaken::Nested => TryPostError::Closed(f),
        })
    }
}

impl<T> Trust<T> {
    pub(crate) fn new(handle: Handle<T>) -> Self {
        let fits = label::fits(handle.header());
        let trustee_number = if fits {
            handle.trustee().number.get()
        } else {
            NO_TRUSTEE_NUMBER
        };
        Self {
            handle,
            trustee_number,
            name: PhantomData,
        }
    }

    #[cfg(all(test, not(any(corelay_loom, corelay_shuttle))))]
    pub(crate) fn without_a_trustee_number(mut self) -> Self {
        self.trustee_number = NO_TRUSTEE_NUMBER;
        self
    }

    /// This handle, with a name for the requests that are made by it. Reports and messages have the
    /// name instead of the type of the closure, which is seldom more than `main::{{closure}}`.
    ///
    /// The name is part of the handle's type. It takes no room in a request and no time: neither is
    /// there any for requests without a name. Requests of one name are one row of a report, however
    /// many closures have it. A clone of the result has the name, too.
    ///
    /// ```
    /// # use corelay_delegate::{Trustees, name};
    /// let trustees = Trustees::dedicated(1).observe(true).start()?;
    /// let stock = trustees.entrust(0u32).named("stock"); // the object's name
    /// # while !trustees.report().to_string().contains(": restock") {
    /// let n = stock.request(name!("restock")).apply(|s| { *s += 1; *s });
    /// assert_eq!(stock.request(name!("count")).apply(|s| *s), n);
    /// # }
    /// println!("{}", trustees.report()); // has rows for "restock" and "count"
    /// # Ok::<(), corelay_delegate::StartError>(())
    /// ```
    #[inline(always)]
    pub fn request<N: RequestName>(&self, name: N) -> &Trust<T, N> {
        let _ = name;
        // SAFETY: the layout is that of C, and a name takes no room in it, so all handles to a `T`
        // have one layout.
        unsafe { &*(&raw const *self).cast() }
    }

    /// Names the object and returns the handle. [`Trustees::report`](crate::Trustees::report) shows
    /// the name.
    ///
    /// ```
    /// # let trustees = corelay_delegate::Trustees::dedicated(1).start().unwrap();
    /// let hits = trustees.entrust(0u64).named("hits");
    /// assert!(trustees.report().to_string().contains("\"hits\", u64"));
    /// # drop(hits);
    /// ```
    pub fn named(self, name: &str) -> Self {
        self.set_name(name);
        self
    }

    /// Gives the object a name, or another one. The object keeps it until it is dropped, whatever
    /// becomes of this handle. Works anywhere, inside delegated closures too, and makes no request
    /// to the trustee. An object without a name takes no room for it.
    pub fn set_name(&self, name: &str) {
        let roster = &self.shared().roster;
        roster.name(self.header().addr(), type_name::<T>(), name);
    }

    /// Whether two handles are of the same value, as `Arc::ptr_eq`. Works anywhere, and asks no trustee.
    ///
    /// ```
    /// # use corelay_delegate::{Trust, Trustees};
    /// # let trustees = Trustees::dedicated(1).start().unwrap();
    /// let (hits, misses) = (trustees.entrust(0u64), trustees.entrust(0u64));
    /// assert!(Trust::ptr_eq(&hits, &hits.clone()));
    /// assert!(!Trust::ptr_eq(&hits, &misses));
    /// ```
    pub fn ptr_eq(this: &Self, other: &Self) -> bool {
        std::ptr::eq(this.header(), other.header())
    }

    /// The number of the trustee that owns the value, of those that were started together: from 0, as
    /// [`Trustees::entrust_on`](crate::Trustees::entrust_on) takes it and
    /// [`Member::number`](crate::Member::number) gives it. Works anywhere, and asks no trustee.
    ///
    /// ```
    /// # let trustees = corelay_delegate::Trustees::dedicated(2).start().unwrap();
    /// let orders = trustees.entrust(Vec::<u32>::new());
    /// let totals = trustees.entrust_on(orders.trustee(), 0u64); // by the same thread
    /// assert_eq!(totals.trustee(), orders.trustee());
    /// ```
    pub fn trustee(&self) -> usize {
        self.shared().settings.index
    }

    /// Whether a closure has panicked on the value and nobody has cleared that.
    pub fn is_poisoned(&self) -> bool {
        // SAFETY: the object lives as long as this handle.
        let poison = unsafe { &(*self.header()).poison };
        // Relaxed: users of the value learn of each other's work through requests.
        poison.load(Ordering::Relaxed) == POISONED
    }

    /// Makes a poisoned value usable again: requests that reach it from now on run. Call it when
    /// you know that the value is in order, or how to mend it.
    ///
    /// ```
    /// # use corelay_delegate::barrier;
    /// # let trustees = corelay_delegate::Trustees::dedicated(1).start().unwrap();
    /// let stock = trustees.entrust(3u32);
    /// stock.post(|_| panic!("dropped a crate"));
    /// assert!(barrier().is_err());
    /// assert!(stock.is_poisoned());
    /// stock.clear_poison();
    /// assert_eq!(stock.apply(|s| *s), 3);
    /// ```
    pub fn clear_poison(&self) {
        // SAFETY: the object lives as long as this handle.
        let poison = unsafe { &(*self.header()).poison };
        // Relaxed: users of the value learn of each other's work through requests. The trustee
        // counts poisoned objects, so it makes the last step.
        let _ = poison.compare_exchange(POISONED, CLEARED, Ordering::Relaxed, Ordering::Relaxed);
    }
}

impl<T, N> Clone for Trust<T, N> {
    fn clone(&self) -> Self {
        Self {
            handle: self.handle.clone(),
            trustee_number: self.trustee_number,
            name: PhantomData,
        }
    }
}

impl<T, N> fmt::Debug for Trust<T, N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Trust<{}> of {}", type_name::<T>(), self.shared().name)
    }
}

/// Returns the result of a call, or resumes the panic of its closure.
#[inline(always)]
#[track_caller]
pub(crate) fn unwrap_answer<R, F>(
    answer: Result<std::thread::Result<R>, F>,
    name: fn() -> &'static str,
) -> R {
    match answer {
        Ok(Ok(result)) => result,
        Ok(Err(payload)) => raise(payload),
        Err(_) => refuse_full("Trust::apply", name(), Refusal::Closed),
    }
}

#[cold]
#[track_caller]
fn raise(payload: Box<dyn std::any::Any + Send>) -> ! {
    if payload.is::<Poisoned>() {
        panic!("{Poisoned}");
    }
    if let Some(ring) = payload.downcast_ref::<CircularWait>() {
        panic!("{ring}");
    }
    resume_unwind(payload)
}

/// Fails if a call [may not wait](may_not_wait) here.
#[cold]
#[inline(never)]
pub(crate) fn refuse_to_wait() -> Result<(), NoClient> {
    match NoSwitch::active() {
        Some(running) if may_not_wait() => Err(NoClient::Nested(running)),
        _ => Ok(()),
    }
}

/// Panics with a message that says why this thread cannot be a client now.
#[cold]
#[track_caller]
pub(crate) fn refuse(call: &str, closure: &str, why: &NoClient) -> ! {
    match why {
        NoClient::Nested(running) if in_turn() => panic!(
            "corelay: {call} at {} inside {running}: this code may not wait",
            Location::caller()
        ),
        NoClient::Nested(running) => panic!(
            "corelay: {call} at {} inside {running}: a delegated closure is a leaf and may \
             not wait; use post or apply_then, or return what is to be done",
            Location::caller()
        ),
        NoClient::Closed => refuse_full(call, closure, Refusal::Closed),
    }
}

#[cold]
#[track_caller]
pub(crate) fn refuse_full(call: &str, closure: &str, refusal: Refusal) -> ! {
    let at = Location::caller();
    match refusal {
        Refusal::Full => panic!(
            "corelay: {call} of {closure} at {at}: inside a callback or a delegated closure, \
             and the queue for what finds no room there is full; use the try_ form or a \
             larger window"
        ),
        Refusal::Closed => {
            panic!("corelay: {call} of {closure} at {at}: the trustee has been shut down")
        }
    }
}

impl<T, N> Trust<T, N> {
    /// The client of this thread for the object's trustee, for a session.
    #[track_caller]
    pub(crate) fn client(&self, call: &str) -> std::rc::Rc<Client> {
        match self.connect() {
            Ok(client) => {
                client.raise_held();
                std::rc::Rc::clone(&client)
            }
            Err(why) => refuse(call, type_name::<T>(), &why),
        }
    }
}

// At the end, so that rustdoc shows the methods above before those of these files.
pub(crate) mod claim;
pub(crate) mod into_inner;
pub(crate) mod many;
#[doc(hidden)]
pub mod no_unwind;
pub(crate) mod send;
pub(crate) mod session;
mod tasks;
pub(crate) mod timed;
pub(crate) mod weak;
pub(crate) mod zip;
