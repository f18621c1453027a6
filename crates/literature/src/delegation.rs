//! Objects behind a protocol: the safe interface of all protocols.

use crate::footprint::Footprint;
use crate::objects::Objects;
use crate::seats::Seats;
use crate::wait::Wait;
use corelay_sync::CachePadded;
use corelay_sync::facade::atomic::{AtomicBool, Ordering};
use corelay_sync::facade::cell::UnsafeCell;
use corelay_sync::facade::sync::Arc;
use std::fmt;

pub(crate) mod sealed {
    /// Keeps [`Protocol`](super::Protocol) inside this crate.
    pub trait Sealed {}
}

/// The lines between one server and its clients. Implemented by this crate's protocols alone.
///
/// # Safety
/// * A request is executed inside [`pass`](Self::pass), and once.
/// * Whatever its client did before it asked happens before the execution. The execution happens
///   before whatever the client does once it has the answer.
/// * If [`is_quiet`](Self::is_quiet) is true, every execution happens before what its caller does
///   next.
pub unsafe trait Protocol: Send + Sync + Sized + sealed::Sealed {
    /// The parameters of the protocol.
    #[doc(hidden)]
    type Setting: Copy + Default;

    /// The server's own state.
    #[doc(hidden)]
    type Server: Send;

    /// A client's own state.
    #[doc(hidden)]
    type Client;

    /// Returns the places of the lines between one server and this number of clients. Each side
    /// makes its own lines.
    #[doc(hidden)]
    fn new(setting: Self::Setting, clients: usize) -> Self;

    /// Makes the server's lines on this thread, and the state of a server that has served nothing
    /// yet.
    ///
    /// # Safety
    /// This is called on the server's thread, and there is no other state of this server.
    #[doc(hidden)]
    unsafe fn server(&self) -> Self::Server;

    /// Makes the request lines of client `index` on this thread, unless they are there, and the
    /// client's state. Another thread may have been this client before.
    ///
    /// # Safety
    /// Until this state is dropped, no other thread is client `index` of these lines. Whatever the
    /// previous client `index` did happens before this call.
    #[doc(hidden)]
    unsafe fn client(&self, index: usize) -> Self::Client;

    /// Waits until everything that the client has asked for is done, before the client goes. Does
    /// nothing for protocols whose clients wait for each answer.
    ///
    /// # Safety
    /// `client` was made for these lines, and is not used afterwards.
    #[doc(hidden)]
    unsafe fn leave(&self, _client: &mut Self::Client) {}

    /// Looks at every request line once, and executes the requests it finds.
    ///
    /// # Safety
    /// `server` is the only state that was made for these lines. The objects of the requests are
    /// alive, and nobody else touches them meanwhile.
    #[doc(hidden)]
    unsafe fn pass(&self, server: &mut Self::Server) -> Work;

    /// Whether no request of any client is on its way.
    ///
    /// # Safety
    /// Nobody is a client of these lines, and whatever clients did happens before this call.
    #[doc(hidden)]
    unsafe fn is_quiet(&self) -> bool;

    /// The bytes that these lines and the states of both sides take.
    #[doc(hidden)]
    fn footprint(&self) -> Footprint;
}

/// A protocol whose clients wait for each answer.
///
/// # Safety
/// [`call`](Self::call) returns when its request has been executed, and not before.
pub unsafe trait Blocking: Protocol {
    /// Sends a request for `operation` on `object`, waits, and returns the answer.
    ///
    /// # Safety
    /// `client` was made for these lines, requests about `object` are executed by their server
    /// alone, and that server has made its lines.
    #[doc(hidden)]
    unsafe fn call<T, O>(
        &self,
        client: &mut Self::Client,
        object: &UnsafeCell<T>,
        operation: O,
    ) -> u64
    where
        O: FnOnce(&mut T) -> u64 + Send;
}

/// The counts of one [pass](Protocol::pass): see [`Served`].
#[doc(hidden)]
#[derive(Clone, Copy, Debug, Default)]
pub struct Work {
    pub(crate) requests: u64,
    pub(crate) batches: u64,
}

/// The counts of a server since it was made: the work that it did, and the passes that it took.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Served {
    /// Requests executed.
    pub requests: u64,
    /// Times that answers were written. Each time, the lines that the answers lie on move to the
    /// clients that wait for them. [`Ffwd`](crate::Ffwd) answers up to 15 clients at a time, the
    /// other protocols one request.
    pub batches: u64,
    /// Passes over all request lines.
    pub passes: u64,
    /// Passes that found a request; their share of all passes is the server's saturation.
    pub passes_with_work: u64,
}

/// Objects that are shared by protocol `P`: see [`Ffwd`](crate::Ffwd).
///
/// The numbers of servers and clients are fixed. The code that makes a delegation gets the servers,
/// and runs them on threads of its own. A thread becomes a client by [`client`](Self::client), and
/// its place is free again when the [`Client`] is dropped.
pub struct Delegation<P: Protocol, T> {
    inner: Arc<Inner<P, T>>,
}

struct Inner<P: Protocol, T> {
    /// The lines of each server.
    lines: Box<[P]>,
    objects: Objects<T>,
    seats: Seats,
    /// Makes the object of a number.
    make: Box<dyn Fn(usize) -> T + Send + Sync>,
}

// SAFETY: only requests touch an object, which the one server of its lines executes one after the
// other (`Server` is not shared, and there is one); or `inspect` does, while there are no requests.
// Either may run on any thread, so the object has to be `Send` and need not be `Sync`.
unsafe impl<P: Protocol, T: Send> Sync for Inner<P, T> {}

impl<P: Protocol, T> Delegation<P, T> {
    /// Deals out the numbers of `objects` objects to this number of servers in turn, with lines for
    /// this number of clients.
    ///
    /// The servers do nothing until they are [run](Server::run). Then each makes its objects on its
    /// own thread, with `make`, which gets an object's number.
    ///
    /// # Panics
    /// If `servers` is 0, or if there are 2<sup>32</sup> servers or objects.
    pub fn new(
        servers: usize,
        clients: usize,
        objects: usize,
        make: impl Fn(usize) -> T + Send + Sync + 'static,
    ) -> (Self, Vec<Server<P, T>>) {
        Self::with(P::Setting::default(), servers, clients, objects, make)
    }

    /// Makes a delegation as `new` does, with parameters for the protocol.
    pub(crate) fn with(
        setting: P::Setting,
        servers: usize,
        clients: usize,
        objects: usize,
        make: impl Fn(usize) -> T + Send + Sync + 'static,
    ) -> (Self, Vec<Server<P, T>>) {
        assert!(servers > 0, "objects need a server; ask for one at least");
        let inner = Arc::new(Inner {
            lines: (0..servers).map(|_| P::new(setting, clients)).collect(),
            objects: Objects::new(servers, objects),
            seats: Seats::new(clients),
            make: Box::new(make),
        });
        let server = |index| Server {
            state: None,
            served: Served::default(),
            index,
            inner: Arc::clone(&inner),
        };
        let servers = (0..servers).map(server).collect();
        (Self { inner }, servers)
    }

    /// Makes client `index`, counted from 0, with its request lines, if it is the first of this
    /// index. `None` while another client has this index.
    ///
    /// # Panics
    /// If there are no lines for a client of that number.
    pub fn client(&self, index: usize) -> Option<Client<P, T>> {
        self.inner.seats.take(index).then(|| {
            // SAFETY: we have the seat, which is given back when the state is gone; its previous
            // owner released it to us.
            let state = |lines: &P| CachePadded::new(unsafe { lines.client(index) });
            Client {
                states: self.inner.lines.iter().map(state).collect(),
                seat: TakenSeat {
                    index,
                    inner: Arc::clone(&self.inner),
                },
            }
        })
    }

    /// The lines of a server.
    #[cfg(test)]
    pub(crate) fn lines(&self, server: usize) -> &P {
        &self.inner.lines[server]
    }

    /// The bytes that each server and all its clients keep for one another: lines and their own
    /// state, but not the objects.
    ///
    /// ```
    /// use corelay_literature::Ffwd;
    ///
    /// let (hits, _) = Ffwd::new(1, 15, 1, |_| 0_u64);
    /// let server = hits.footprint();
    /// // A line of 64 bytes for each client, two lines for all of them.
    /// assert_eq!((server.requests, server.responses), (15 * 64, 128));
    /// ```
    pub fn footprint(&self) -> Footprint {
        self.inner.lines[0].footprint()
    }

    /// Calls `look` with every object, in the order of their numbers. There must be no client and
    /// no request on its way, and every server must have made its objects.
    ///
    /// # Errors
    /// [`Busy`] if there is a client or a request, or if a server has not made its objects.
    pub fn inspect(&self, look: impl FnMut(&T)) -> Result<(), Busy> {
        let _seats = self.inner.seats.take_all().ok_or(Busy)?;
        // SAFETY: we have all seats, so nobody is a client, and taking them acquired what clients
        // did.
        let is_quiet = |lines: &P| unsafe { lines.is_quiet() };
        if !self.inner.lines.iter().all(is_quiet) {
            return Err(Busy);
        }
        let mut look = look;
        for object in self.inner.objects.all().ok_or(Busy)? {
            object.with(|object| {
                // SAFETY: no request is on its way, and nobody can make one while we have the
                // seats; whatever was executed happened before.
                look(unsafe { &*object });
            });
        }
        Ok(())
    }
}

/// The error of [`Delegation::inspect`]: a client exists, or has gone while requests were on their
/// way, or a server has not made its objects yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Busy;

impl fmt::Display for Busy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a client exists, a request is on its way, or a server has not begun")
    }
}

impl std::error::Error for Busy {}

/// The server's half of a delegation: the thread that has it owns the server's objects.
pub struct Server<P: Protocol, T> {
    /// `None` until the server has made its lines and objects.
    state: Option<P::Server>,
    served: Served,
    index: usize,
    inner: Arc<Inner<P, T>>,
}

impl<P: Protocol, T: Send> Server<P, T> {
    /// Makes the server's response lines and its objects, unless they are there. The memory lies on
    /// the node of the thread that calls this, which should be the thread that runs the server.
    ///
    /// [`pass`](Self::pass) and [`run`](Self::run) do this first; until then, clients wait.
    ///
    /// # Panics
    /// With the panic of the code that makes an object.
    pub fn begin(&mut self) {
        if self.state.is_none() {
            let inner = &*self.inner;
            // SAFETY: there is one `Server` for each of the lines, which we have, and it has no
            // state yet.
            let state = unsafe { inner.lines[self.index].server() };
            // SAFETY: this is the server of that row. (The lines come first: a client that finds
            // an object finds them, too.)
            unsafe { inner.objects.make(self.index, &inner.make) };
            self.state = Some(state);
        }
    }

    /// Looks at every request line once, and executes the requests it finds. Returns their number.
    ///
    /// # Panics
    /// As for [`begin`](Self::begin), at the first call.
    pub fn pass(&mut self) -> u64 {
        if self.state.is_none() {
            self.begin();
        }
        let Some(state) = &mut self.state else {
            unreachable!("the server has begun");
        };
        // SAFETY: there is one `Server` for each of the lines, and this is it. Requests about its
        // row of objects come by its lines only, and the objects live as long as it does.
        let work = unsafe { self.inner.lines[self.index].pass(state) };
        self.served.requests += work.requests;
        self.served.batches += work.batches;
        self.served.passes += 1;
        self.served.passes_with_work += u64::from(work.requests > 0);
        work.requests
    }

    /// Serves until `stop` is true and everything that was asked for before has been executed.
    ///
    /// A client that asks after that waits for ever, so stop when all clients are gone.
    ///
    /// # Panics
    /// As for [`begin`](Self::begin), at the first call.
    pub fn run(&mut self, stop: &AtomicBool) {
        let mut wait = Wait::new();
        loop {
            // Acquire: pairs with the Release of the thread that sets it; the pass below sees what
            // was asked for before that.
            let is_last = stop.load(Ordering::Acquire);
            if self.pass() > 0 {
                wait = Wait::new();
            } else if is_last {
                return;
            } else {
                wait.again();
            }
        }
    }

    /// Runs an operation on the object of that number, if it is this server's. Otherwise gives the
    /// operation back. The server has begun.
    ///
    /// # Safety
    /// The caller keeps a seat, so that nobody inspects the objects.
    ///
    /// # Panics
    /// If there is no object of that number. A panic of the operation aborts the process, as those of
    /// requests do.
    #[inline(always)]
    pub(crate) unsafe fn run_own<O>(&mut self, var: usize, operation: O) -> Result<u64, O>
    where
        O: FnOnce(&mut T) -> u64,
    {
        if self.inner.objects.server_of(var) != self.index {
            return Err(operation);
        }
        let (_, object) = self.inner.objects.at(var);
        let unwinding = AbortGuard;
        let answer = object.with_mut(|object| {
            // SAFETY: this is the object's server: requests about it are executed inside `pass`
            // alone, which nobody calls while the server is borrowed. Nobody inspects it (the
            // caller's duty).
            operation(unsafe { &mut *object })
        });
        std::mem::forget(unwinding);
        Ok(answer)
    }

    /// The counts of what it has done so far.
    pub fn served(&self) -> Served {
        self.served
    }
}

/// Aborts the process when it is dropped.
struct AbortGuard;

impl Drop for AbortGuard {
    fn drop(&mut self) {
        std::process::abort();
    }
}

/// A client's state with each server.
type States<P> = [CachePadded<<P as Protocol>::Client>];

/// A thread's access to the objects, as one client. It may be sent to another thread; a client of
/// [`AsyncLines`](crate::AsyncLines) only if its callbacks may.
pub struct Client<P: Protocol, T> {
    /// The state for each server, dropped before the seat is free. It is written at every call, in
    /// lines that nothing else shares.
    states: Box<States<P>>,
    seat: TakenSeat<P, T>,
}

impl<P: Protocol, T> Client<P, T> {
    /// The lines and the states by server, and the objects.
    #[inline(always)]
    pub(crate) fn parts(&mut self) -> (&[P], &mut States<P>, &Objects<T>) {
        let Inner { lines, objects, .. } = &*self.seat.inner;
        (lines, &mut self.states, objects)
    }
}

impl<P: Protocol, T> Drop for Client<P, T> {
    fn drop(&mut self) {
        let (lines, states, _) = self.parts();
        for (lines, state) in lines.iter().zip(states) {
            // SAFETY: `client` made the state for these lines, and it is dropped now.
            unsafe { lines.leave(state) };
        }
    }
}

struct TakenSeat<P: Protocol, T> {
    index: usize,
    inner: Arc<Inner<P, T>>,
}

impl<P: Protocol, T> Drop for TakenSeat<P, T> {
    fn drop(&mut self) {
        self.inner.seats.leave(self.index);
    }
}

impl<P: Blocking, T> Client<P, T> {
    /// Has the server of object `var` run `operation` on it, and waits for the answer.
    ///
    /// It waits as long as that server does not [run](Server::run).
    ///
    /// # Panics
    /// If there is no object of that number. A panic of the operation aborts the process.
    #[inline]
    pub fn apply<O>(&mut self, var: usize, operation: O) -> u64
    where
        O: FnOnce(&mut T) -> u64 + Send,
    {
        let (lines, states, objects) = self.parts();
        let (server, object) = objects.at(var);
        // SAFETY: `client` made the state for these lines, and the object is in their server's row,
        // which the server has made after its lines.
        unsafe { lines[server].call(&mut states[server], object, operation) }
    }
}

/// Another handle to the same objects.
impl<P: Protocol, T> Clone for Delegation<P, T> {
    fn clone(&self) -> Self {
        Self {
            inner: Arc::clone(&self.inner),
        }
    }
}

impl<P: Protocol, T> fmt::Debug for Delegation<P, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Delegation").finish_non_exhaustive()
    }
}

impl<P: Protocol, T> fmt::Debug for Server<P, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Server")
            .field("served", &self.served)
            .finish_non_exhaustive()
    }
}

impl<P: Protocol, T> fmt::Debug for Client<P, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client")
            .field("index", &self.seat.index)
            .finish_non_exhaustive()
    }
}
