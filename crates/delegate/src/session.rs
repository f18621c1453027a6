//! Delegated objects as one of the ways of sharing.

use crate::channel::client::{Client, Patience};
use crate::flat::own;
use crate::thread::state;
use crate::trust::{Trust, raise, refuse_full, unwrap_answer};
use corelay_sync::wait::NoSwitch;
use corelay_sync::{Issue, Session, Shared};
use std::rc::Rc;

/// A thread's session with a [`Trust`]: its channel, looked up once.
///
/// ```
/// use corelay_delegate::Trustees;
/// use corelay_sync::{Issue, Session, Shared};
///
/// let trustees = Trustees::dedicated(1).start().unwrap();
/// let hits = trustees.entrust(0u64);
/// let mut session = hits.session();
/// assert_eq!(session.apply(|h| { *h += 1; *h }), 1);
/// session.issue(|h| *h, |n| assert_eq!(n, 1));
/// session.barrier(); // the callback has run
/// ```
pub struct TrustSession<'a, T> {
    trust: &'a Trust<T>,
    /// `None` where this thread's member runs the requests itself.
    client: Option<Rc<Client>>,
}

impl<T: 'static> Shared for Trust<T> {
    type Value = T;
    type Session<'a>
        = TrustSession<'a, T>
    where
        Self: 'a;

    /// # Panics
    /// When the trustee has been shut down; inside a delegated closure.
    #[track_caller]
    fn session(&self) -> TrustSession<'_, T> {
        TrustSession {
            trust: self,
            client: self.client("Trust::session"),
        }
    }
}

impl<T: 'static> Session for TrustSession<'_, T> {
    type Value = T;

    /// As [`Trust::apply`].
    #[inline]
    #[track_caller]
    fn apply<R: Send, F: FnOnce(&mut T) -> R + Send>(&mut self, f: F) -> R {
        let object = self.trust.header();
        match &self.client {
            // SAFETY: the handle keeps the object; the call waits.
            Some(client) => unwrap_answer(unsafe { client.call_here::<T, F, R>(object, f) }),
            None => {
                NoSwitch::refuse("Session::apply");
                // SAFETY: ours, and no closure runs; the handle keeps the object.
                unsafe { own::call::<T, F, R>(object, f) }.unwrap_or_else(|payload| raise(payload))
            }
        }
    }
}

impl<T: 'static> Issue for TrustSession<'_, T> {
    /// As [`Trust::apply_then`].
    #[inline]
    #[track_caller]
    fn issue<R, F, C>(&mut self, f: F, then: C)
    where
        R: Send + 'static,
        F: FnOnce(&mut T) -> R + Send + 'static,
        C: FnOnce(R) + 'static,
    {
        let object = self.trust.header();
        let result = match &self.client {
            // SAFETY: the handle keeps the object; nothing borrows.
            Some(client) => unsafe { client.issue::<T, F, R, C>(object, f, then, Patience::Wait) },
            None => {
                NoSwitch::refuse("Session::issue");
                // SAFETY: ours, and no closure runs; the handle keeps the object.
                unsafe { own::issue::<T, F, R, C>(object, f, then) }
            }
        };
        if let Err((refusal, ..)) = result {
            refuse_full::<F>("Session::issue", refusal);
        }
    }

    /// # Panics
    /// Inside a callback.
    #[track_caller]
    fn reap(&mut self) {
        let Some(client) = self.client_outside("Session::reap") else {
            return own::reap(false);
        };
        client.flush();
        client.reap();
        client.thread.raise_held();
    }

    /// # Panics
    /// Inside a callback.
    #[track_caller]
    fn barrier(&mut self) {
        let Some(client) = self.client_outside("Session::barrier") else {
            return own::reap(true);
        };
        client.finish();
        client.thread.raise_held();
    }
}

impl<T> TrustSession<'_, T> {
    #[track_caller]
    fn client_outside(&self, call: &str) -> Option<&Client> {
        assert!(
            !state().is_some_and(|state| state.in_callback()),
            "corelay: {call} inside a callback: the call that runs callbacks is under way"
        );
        self.client.as_deref()
    }
}

impl<T> Drop for TrustSession<'_, T> {
    /// A session may outlive its thread's own hold on the client; the last one finishes.
    fn drop(&mut self) {
        let Some(client) = &self.client else { return };
        if Rc::strong_count(client) > 1 {
            return;
        }
        if client.thread.in_callback() {
            client.thread.adopt_orphan(Rc::clone(client));
        } else {
            client.finish();
        }
    }
}
