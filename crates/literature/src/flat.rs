//! Flat delegation on the thesis's request lines (its section "Asynchronous Flat Delegation"): each
//! thread is client and server, and a policy decides when it serves.
//!
//! | policy | a request is written | the member serves |
//! |---|---|---|
//! | [`Queue`](FlatPolicy::Queue) | from a pending queue | before it looks at its lines, when a queue is full |
//! | [`Blocked`](FlatPolicy::Blocked) | directly | while the next line is taken |
//! | [`FastPath`](FlatPolicy::FastPath) | directly; for its own objects it is run at once | while the next line is taken |
//! | [`Bound`](FlatPolicy::Bound) | as with the fast path | besides, after a number of requests |
//! | [`Doorbell`](FlatPolicy::Doorbell) | as with the fast path | besides, when another member has rung |
//!
//! With the fast path a member may be *greedy*: requests for its own objects never wait, so it does
//! not serve, while others wait for its lines. The bound and the doorbell cure that.
//!
//! To serve is one pass over all lines, as of a [`Server`]. We depart from the thesis in that a
//! member waits in [`Member::barrier`] until all members are there, and serves meanwhile; the thesis
//! does not say how its threads end.

use crate::delegation::{Client, Delegation, Served, Server};
use crate::lines::{Asked, AsyncLines, PairLines, Shape, ShapeError};
use crate::wait::Wait;
use corelay_sync::CachePadded;
use corelay_sync::facade::atomic::{AtomicBool, AtomicU64, Ordering};
use corelay_sync::facade::sync::Arc;
use std::fmt;

/// The rule by which a member of a flat team writes its requests and serves those of others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FlatPolicy {
    /// Requests wait in a queue, and the member serves before it looks at its lines.
    Queue,
    /// Requests are written directly, and the member serves while the next line is taken.
    Blocked,
    /// Requests are written directly and served as with `Blocked`, but those for the member's own
    /// objects run at once.
    FastPath,
    /// Requests go as with `FastPath`, and the member also serves after each such number of them, at
    /// least 1.
    Bound(u32),
    /// Requests go as with `FastPath`, and a member that waits for a line rings for its server, who
    /// looks at its doorbell at each request.
    Doorbell,
}

impl FlatPolicy {
    /// The lines and the queue of the policy, with `lines` request lines for each pair. The queue is
    /// twice as long, as in the thesis.
    fn shape(self, lines: usize) -> Result<Shape, ShapeError> {
        match self {
            Self::Queue => Shape::queue(lines, 2 * lines),
            _ => Shape::direct(lines),
        }
    }

    fn has_fast_path(self) -> bool {
        !matches!(self, Self::Queue | Self::Blocked)
    }
}

/// The bells and the barriers, which all members share.
struct Shared {
    /// A member's bell is rung by those who wait for its lines.
    bells: Box<[CachePadded<AtomicBool>]>,
    /// The number of barriers that each member has come to.
    barriers: Box<[CachePadded<AtomicU64>]>,
}

/// A team: the objects, to be looked at, and the place of each member.
pub type Team<T, C> = (AsyncLines<T, C>, Vec<Place<T, C>>);

/// The place of a member in a flat team. It is sent to the member's thread, which takes it.
pub struct Place<T, C: FnOnce(u64) = fn(u64)> {
    policy: FlatPolicy,
    index: usize,
    server: Server<PairLines<C>, T>,
    delegation: AsyncLines<T, C>,
    shared: Arc<Shared>,
    /// The member's counts as a client, by server, up to its last barrier.
    asked: Vec<Asked>,
}

/// A member of a flat team: a thread that owns objects, serves requests for them and makes requests
/// itself.
///
/// ```
/// use corelay_literature::{FlatPolicy, Member};
///
/// let (hits, team) = Member::team(FlatPolicy::Blocked, 4, 2, 2, |_| 0_u64).unwrap();
/// std::thread::scope(|s| {
///     for place in team {
///         s.spawn(move || {
///             let mut member = place.take();
///             for var in [0, 1, 0, 1] {
///                 member.issue(var, |hits: &mut u64| { *hits += 1; *hits }, |_| ());
///             }
///             member.barrier();
///         });
///     }
/// });
/// hits.inspect(|hits| assert_eq!(*hits, 4)).unwrap();
/// ```
pub struct Member<T, C: FnOnce(u64) = fn(u64)> {
    place: Place<T, C>,
    /// The member as a client. `None` before its first request and between barriers.
    client: Option<Client<PairLines<C>, T>>,
    /// Requests since the last time that the bound made it serve.
    requests: u32,
}

impl<T: Send, C: FnOnce(u64)> Member<T, C> {
    /// Makes a team of `members` members with `lines` request lines for each pair, and deals out the
    /// numbers of `objects` objects to the members in turn. Each makes its objects on its own thread,
    /// with `make`, which gets an object's number. Also returns the delegation, to
    /// [look](Delegation::inspect) at the objects.
    ///
    /// # Errors
    /// [`ShapeError`] if there cannot be so many lines.
    ///
    /// # Panics
    /// If `members` is 0, or a bound is.
    pub fn team(
        policy: FlatPolicy,
        lines: usize,
        members: usize,
        objects: usize,
        make: impl Fn(usize) -> T + Send + Sync + 'static,
    ) -> Result<Team<T, C>, ShapeError> {
        assert_ne!(policy, FlatPolicy::Bound(0), "a bound is at least 1");
        let shape = policy.shape(lines)?;
        let (delegation, servers) = Delegation::shaped(shape, members, members, objects, make);
        let shared = Arc::new(Shared {
            bells: (0..members).map(|_| CachePadded::default()).collect(),
            barriers: (0..members).map(|_| CachePadded::default()).collect(),
        });
        let place = |(index, server)| Place {
            policy,
            index,
            server,
            delegation: delegation.clone(),
            shared: Arc::clone(&shared),
            asked: vec![Asked::default(); members],
        };
        let team = servers.into_iter().enumerate().map(place).collect();
        Ok((delegation, team))
    }

    /// Asks the member that owns object `var` for `operation`, and serves others as the policy says.
    /// `then` gets the answer, once, inside this or a later call of this member.
    ///
    /// # Panics
    /// If there is no object of that number, or with the panic of a callback: see [`Client::issue`]. A
    /// panic of the operation aborts the process, on the fast path, too.
    #[inline]
    pub fn issue<O>(&mut self, var: usize, operation: O, then: C)
    where
        O: FnOnce(&mut T) -> u64 + Send + 'static,
    {
        match self.place.policy {
            FlatPolicy::Bound(bound) => {
                self.requests += 1;
                if self.requests >= bound {
                    self.requests = 0;
                    self.place.server.pass();
                }
            }
            FlatPolicy::Doorbell => {
                // Relaxed: the bell carries nothing, and who waits rings again.
                let bell = &self.place.shared.bells[self.place.index];
                if bell.load(Ordering::Relaxed) {
                    self.place.server.pass();
                    bell.store(false, Ordering::Relaxed);
                }
            }
            _ => {}
        }
        let Place {
            policy,
            index,
            server,
            delegation,
            shared,
            ..
        } = &mut self.place;
        // The member is a client from here on, also on the fast path: nobody inspects objects then.
        let client = self.client.get_or_insert_with(|| {
            let client = delegation.client(*index);
            client.expect("a member is the only client of its number")
        });
        let mut operation = operation;
        if policy.has_fast_path() {
            // SAFETY: the client has a seat.
            match unsafe { server.run_own(var, operation) } {
                Ok(answer) => return then(answer),
                Err(anothers) => operation = anothers,
            }
        }
        client.issue_meanwhile(var, operation, then, |blocked_by| {
            if *policy == FlatPolicy::Doorbell {
                // Relaxed: the bell carries nothing.
                shared.bells[blocked_by].store(true, Ordering::Relaxed);
            }
            server.pass() > 0
        });
    }

    /// Waits until all members are here and all requests of all members are executed, and serves
    /// meanwhile. All members call it equally often; a member that ends calls it last.
    ///
    /// # Panics
    /// As for [`Client::flush`].
    pub fn barrier(&mut self) {
        let Place {
            index,
            server,
            shared,
            asked: sums,
            ..
        } = &mut self.place;
        let mut wait = Wait::new();
        // Its own requests first.
        while let Some(client) = &mut self.client {
            if client.is_done() {
                let asked = sums.iter_mut().zip(client.asked());
                asked.for_each(|(sum, asked)| *sum += asked);
                self.client = None;
            } else if (server.pass() > 0) | client.flush() {
                wait = Wait::new();
            } else {
                wait.again();
            }
        }
        let mine = &shared.barriers[*index];
        // Relaxed: only this member writes it.
        let round = mine.load(Ordering::Relaxed) + 1;
        // Release: pairs with the Acquire below; the answers to this member were seen before.
        mine.store(round, Ordering::Release);
        let mut wait = Wait::new();
        // Acquire: pairs with the Release above; nobody has a request on its way any more.
        let is_here = |barriers: &CachePadded<AtomicU64>| barriers.load(Ordering::Acquire) >= round;
        while !shared.barriers.iter().all(is_here) {
            if server.pass() > 0 {
                wait = Wait::new();
            } else {
                wait.again();
            }
        }
    }

    /// Serves once, and looks at the answers and the queues once. Returns whether anything has moved.
    ///
    /// # Panics
    /// As for [`Client::flush`].
    pub fn poll(&mut self) -> bool {
        let has_served = self.place.server.pass() > 0;
        self.client.as_mut().is_some_and(Client::flush) | has_served
    }

    /// Comes to a last [`barrier`](Self::barrier), as all members do, and gives the place back. A
    /// thread may take it again.
    pub fn leave(mut self) -> Place<T, C> {
        self.barrier();
        self.place
    }

    /// The member's counts as a server.
    pub fn served(&self) -> Served {
        self.place.served()
    }
}

impl<T: Send, C: FnOnce(u64)> Place<T, C> {
    /// Takes the place. The first to do so makes the response lines and objects on its thread. Until
    /// then, others wait who ask for its objects; if the place is dropped, they wait for ever.
    ///
    /// # Panics
    /// As for [`Server::begin`].
    pub fn take(mut self) -> Member<T, C> {
        self.server.begin();
        Member {
            client: None,
            requests: 0,
            place: self,
        }
    }

    /// The counts of the members at this place as servers.
    pub fn served(&self) -> Served {
        self.server.served()
    }

    /// Their counts as clients, by server, up to the last barrier. Operations on the fast path are
    /// not counted.
    pub fn asked(&self) -> &[Asked] {
        &self.asked
    }
}

impl<T, C: FnOnce(u64)> fmt::Debug for Place<T, C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Place")
            .field("policy", &self.policy)
            .field("index", &self.index)
            .finish_non_exhaustive()
    }
}

impl<T, C: FnOnce(u64)> fmt::Debug for Member<T, C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Member")
            .field("place", &self.place)
            .finish_non_exhaustive()
    }
}
