//! Sessions: delegated objects as one of the ways of sharing.

use crate::client::apply_then::ApplyThen;
use crate::client::{Client, Patience};
use crate::context::state::Activity;
use crate::context::thread::in_leaf;
use crate::operation::{Named, RequestName, TypeName};
use crate::trust::{Trust, refuse_full, unwrap_answer};
use corelay_sync::wait::NoSwitch;
use corelay_sync::{Issue, Session, Shared};
use std::rc::Rc;

/// A thread's session with a [`Trust`]. It has looked up the thread's client once, so its
/// operations need not.
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
pub struct TrustSession<'a, T, N = TypeName> {
    trust: &'a Trust<T, N>,
    client: Rc<Client>,
}

impl<T: 'static, N: RequestName> Shared for Trust<T, N> {
    type Value = T;
    type Session<'a>
        = TrustSession<'a, T, N>
    where
        Self: 'a;

    /// Opens a session on this thread.
    ///
    /// # Panics
    /// When the trustee has been shut down; inside a delegated closure.
    #[track_caller]
    fn session(&self) -> TrustSession<'_, T, N> {
        TrustSession {
            trust: self,
            client: self.client("Trust::session"),
        }
    }
}

impl<T: 'static, N: RequestName> Session for TrustSession<'_, T, N> {
    type Value = T;

    /// Calls `f` and waits, like [`Trust::apply`].
    #[inline]
    #[track_caller]
    fn apply<R: Send, F: FnOnce(&mut T) -> R + Send>(&mut self, f: F) -> R {
        // A session may lie in a thread-local of a member, where a closure finds it.
        NoSwitch::refuse("Session::apply");
        // SAFETY: the handle keeps the object, and the call waits, so borrows last.
        let answer = unsafe {
            self.client
                .call_here::<T, Named<N, F>, R>(self.trust.header(), Named::new(f))
        };
        unwrap_answer(answer, Named::<N, F>::name)
    }
}

impl<T: 'static, N: RequestName> Issue for TrustSession<'_, T, N> {
    /// Sends `f`, like [`Trust::apply_then`].
    #[inline]
    #[track_caller]
    fn issue<R, F, C>(&mut self, f: F, then: C)
    where
        R: Send + 'static,
        F: FnOnce(&mut T) -> R + Send + 'static,
        C: FnOnce(R) + 'static,
    {
        let object = self.trust.header();
        NoSwitch::refuse("Session::issue");
        // SAFETY: the handle keeps the object; the bounds are `'static`, so the closures borrow
        // nothing.
        let result = unsafe {
            self.client.send::<T, ApplyThen<Named<N, F>, R, C>>(
                object,
                (Named::new(f), then),
                Patience::Wait,
            )
        };
        if let Err((refusal, _)) = result {
            refuse_full("Session::issue", Named::<N, F>::name(), refusal);
        }
    }

    /// Takes the answers that have come and runs their callbacks.
    ///
    /// # Panics
    /// Inside a callback.
    #[track_caller]
    fn reap(&mut self) {
        self.refuse_in_callback("Session::reap");
        self.client.flush();
        self.client.reap();
        self.client.thread.raise_held();
    }

    /// Waits until the thread's requests to this trustee are done and their callbacks have run.
    ///
    /// # Panics
    /// Inside a callback.
    #[track_caller]
    fn barrier(&mut self) {
        self.refuse_in_callback("Session::barrier");
        self.client.finish();
        self.client.thread.raise_held();
    }
}

impl<T, N> TrustSession<'_, T, N> {
    #[track_caller]
    fn refuse_in_callback(&self, call: &str) {
        NoSwitch::refuse(call);
        assert!(
            self.client.thread.activity() == Activity::Idle,
            "corelay: {call} inside a callback: the call that runs callbacks is under way"
        );
    }
}

impl<T, N> Drop for TrustSession<'_, T, N> {
    /// Finishes the client if this session has the last reference to it, since a session may
    /// outlive the thread's own one.
    fn drop(&mut self) {
        if Rc::strong_count(&self.client) > 1 {
            return;
        }
        let state = &self.client.thread;
        if in_leaf() || state.activity() != Activity::Idle {
            let client = Rc::clone(&self.client);
            state.adopt_orphan(client);
        } else {
            self.client.finish();
        }
    }
}
