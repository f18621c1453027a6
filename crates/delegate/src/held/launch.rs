//! Launching a closure by a handle.

use super::handle::LaunchHandle;
use crate::channel::client::{Patience, Refusal};
use crate::error::TryLaunchError;
use crate::thread::NoClient;
use crate::trust::{Trust, refuse, refuse_full};
use corelay_sync::wait::NoSwitch;
use std::any::type_name;
use std::panic::Location;

impl<T> Trust<T> {
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
    /// `corelay::fibre::host`; whoever starts it promises where launched closures do not wait.
    ///
    /// Answers to one client come in order, those of [`apply_then`](Self::apply_then) and of calls of
    /// fibres: behind a request that waits for a held value they wait too, and where the window
    /// ends there, so does the next request. Lone calls, futures and launches do not.
    ///
    /// Closures that would wait for each other in a ring, by [`apply`](Self::apply),
    /// [`join`](crate::LaunchHandle::join), [`barrier`](crate::barrier) or in full windows, are told
    /// instead: one of those waits, or one of the requests that are waited for, is refused with a
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
            Err(TryLaunchError::Full(_)) => refuse_full::<F>("Trust::launch", Refusal::Full),
            Err(TryLaunchError::Closed(_)) => refuse_full::<F>("Trust::launch", Refusal::Closed),
            Err(TryLaunchError::Nested(_)) => {
                let running = NoSwitch::active().unwrap_or("a delegated closure");
                refuse::<F>("Trust::launch", &NoClient::Nested(running))
            }
            Err(TryLaunchError::Unhosted(_)) => panic!(
                "corelay: Trust::launch of {} at {}: {} has no host, so nothing can wait on its \
                 thread; start it with Trustees::dedicated(n).host(unsafe {{ corelay::fibre::host() }})",
                type_name::<F>(),
                Location::caller(),
                self.trustee().name,
            ),
        }
    }

    /// As [`launch`](Self::launch), giving the closure back where it cannot be taken now.
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
        let trustee = self.trustee();
        if trustee.settings.host.is_none() {
            return Err(TryLaunchError::Unhosted(f));
        }
        // SAFETY: this handle keeps the object; nothing borrows, by the callers' bounds.
        match self.with_client(f, |client, f| unsafe {
            client.launch::<T, F, R>(self.header(), f, patience)
        }) {
            Ok(Ok((future, number))) => Ok(LaunchHandle::new(future, number, trustee)),
            Ok(Err((Refusal::Full, f))) => Err(TryLaunchError::Full(f)),
            Ok(Err((Refusal::Closed, f))) | Err((NoClient::Closed, f)) => {
                Err(TryLaunchError::Closed(f))
            }
            Err((NoClient::Nested(_), f)) => Err(TryLaunchError::Nested(f)),
        }
    }
}
