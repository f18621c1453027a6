//! Launched closures, which may wait, in coroutines of their trustee's thread, and hold their
//! object meanwhile. This file launches them, [`handle`] waits for their results.
//!
//! A trustee whose thread has a [`Host`](corelay_sync::wait::Host) runs its loop as a coroutine. A
//! [launch](crate::client::launch) is a request that, when it is run, marks its object as held and
//! spawns another coroutine. Between two passes the loop gives
//! [turns](crate::context::thread::turn) to those that are ready. A request to a held object is
//! deferred, by `lane/deferred.rs`: the lanes notice where they notice poison, which costs nothing
//! while no object is poisoned or held. When the closure has ended, the loop runs the deferred
//! requests, in order; a launch among them holds the object anew.
//!
//! ```text
//!           launch                closure ends             deferred requests have run
//!    FREE ─────────► HELD, runs ──────────────► HELD, ended ───────────► FREE
//!                      ▲                            │
//!                      └────── a launch among them ─┘
//! ```
//! **Clients.** A launched closure is a client of its own, with channels of its own: a deferred
//! request of one closure keeps no answer from another, and its callbacks run inside its own calls.
//! While a launched closure runs, its thread's table of clients is hidden, as in a delegated
//! closure, so that each call takes its slow path and finds out which clients it is to use. A wait
//! inside such a call suspends the coroutine, and the trustee's loop finds out when the wait is
//! over.

pub(crate) mod handle;

use self::handle::LaunchHandle;
use crate::client::connect::NoClient;
use crate::client::launch::Launch;
use crate::client::{Patience, Refusal};
use crate::error::TryLaunchError;
use crate::operation::{Named, RequestName};
use crate::trust::send::NotTaken;
use crate::trust::{Trust, refuse, refuse_full};
use corelay_sync::wait::NoSwitch;
use std::panic::Location;

impl<T, N: RequestName> Trust<T, N> {
    /// Has `f` run in a coroutine of the trustee's thread, where it may wait; the handle gives its
    /// result.
    ///
    /// While it runs, it holds the value: other requests to the value wait, in order, and the
    /// trustee serves its other objects. `f` may call whatever it likes: other trustees, other
    /// objects of its own one, locks, channels and sleep of fibres; what blocks a thread blocks the
    /// trustee. It is a client of its own. When [`barrier`](crate::barrier) returns, the closures
    /// that this thread has launched have ended.
    ///
    /// The trustee needs a [host](crate::Builder::host), which has coroutines, such as
    /// `corelay::fibre::host`; the program that starts it promises where launched closures do not
    /// wait.
    ///
    /// Answers of [`apply_then`](Self::apply_then) and of calls of fibres come to a client in
    /// order: after a request that waits for a held value they wait too, and if the window is full
    /// of them, so does the next request. Calls of plain threads, futures and launches do not wait.
    ///
    /// Closures that would wait for each other in a ring, by [`apply`](Self::apply),
    /// [`join`](crate::LaunchHandle::join), [`barrier`](crate::barrier) or in full windows, do not
    /// hang: one of those waits, or one of the requests that are waited for, is refused with a
    /// [`CircularWait`](crate::CircularWait) that names the values of the ring. `apply` panics with
    /// it. Waits by other means are not seen: for a future, a lock, a channel of fibres.
    ///
    /// # Panics
    /// When the trustee has no host, or has been shut down; inside a delegated closure; inside a
    /// callback when the window is full and the channel is in use. With the panic of a callback that
    /// this call has run, after the request has been accepted: the handle is lost then.
    #[track_caller]
    pub fn launch<R, F>(&self, f: F) -> LaunchHandle<R>
    where
        T: 'static,
        R: Send + 'static,
        F: FnOnce(&mut T) -> R + Send + 'static,
    {
        match self.launch_by(f, Patience::Wait) {
            Ok(handle) => handle,
            Err(TryLaunchError::Full(_)) => {
                refuse_full("Trust::launch", Named::<N, F>::name(), Refusal::Full)
            }
            Err(TryLaunchError::Closed(_)) => {
                refuse_full("Trust::launch", Named::<N, F>::name(), Refusal::Closed)
            }
            Err(TryLaunchError::Nested(_)) => {
                let running = NoSwitch::active().unwrap_or("a delegated closure");
                refuse(
                    "Trust::launch",
                    Named::<N, F>::name(),
                    &NoClient::Nested(running),
                )
            }
            Err(TryLaunchError::Unhosted(_)) => panic!(
                "corelay: Trust::launch of {} at {}: {} has no host, so nothing can wait on its \
                 thread; start it with Trustees::dedicated(n).host(unsafe {{ corelay::fibre::host() }})",
                Named::<N, F>::name(),
                Location::caller(),
                self.shared().name,
            ),
        }
    }

    /// Launches `f` as [`launch`](Self::launch) does, but gives it back if it cannot be taken now.
    ///
    /// # Errors
    /// [`TryLaunchError`].
    ///
    /// # Panics
    /// With the panic of a callback that this call has run, after the request has been accepted.
    pub fn try_launch<R, F>(&self, f: F) -> Result<LaunchHandle<R>, TryLaunchError<F>>
    where
        T: 'static,
        R: Send + 'static,
        F: FnOnce(&mut T) -> R + Send + 'static,
    {
        self.launch_by(f, Patience::Try)
    }

    fn launch_by<R, F>(
        &self,
        f: F,
        patience: Patience,
    ) -> Result<LaunchHandle<R>, TryLaunchError<F>>
    where
        F: FnOnce(&mut T) -> R,
    {
        let trustee = self.shared();
        if trustee.settings.host.is_none() {
            return Err(TryLaunchError::Unhosted(f));
        }
        // SAFETY: the callers' bounds are `'static`, so the closure borrows nothing.
        let sent = unsafe { self.try_send::<Launch<Named<N, F>, R>>(Named::new(f), patience) };
        match sent {
            Ok((future, number)) => Ok(LaunchHandle::new(future, number, trustee)),
            Err((NotTaken::Full, Named { f, .. })) => Err(TryLaunchError::Full(f)),
            Err((NotTaken::Closed, Named { f, .. })) => Err(TryLaunchError::Closed(f)),
            Err((NotTaken::Nested, Named { f, .. })) => Err(TryLaunchError::Nested(f)),
        }
    }
}
