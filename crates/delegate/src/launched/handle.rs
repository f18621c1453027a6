//! Handles to launched closures, by which callers wait for the results.

use crate::client::future::ApplyFuture;
use crate::context::coroutine::Waits;
use crate::context::events;
use crate::context::member::{Event, wait_for};
use crate::error::{AsyncError, CircularWait};
use crate::object::shared::Shared;
use crate::wire::LaunchId;
use corelay_sync::facade::sync::Arc;
use corelay_sync::wait::{Call, NoSwitch, Token};
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};

/// The result of [`Trust::launch`](crate::Trust::launch): to be [joined](Self::join), or awaited.
///
/// The closure runs whether or not anybody waits for it, and also if the handle is dropped.
///
/// # Panics
/// When it is polled again after it has given its result.
#[must_use = "nobody hears of a panic of the closure where the handle is dropped"]
pub struct LaunchHandle<R> {
    future: ApplyFuture<R>,
    number: LaunchId,
    trustee: Arc<Shared>,
}

impl<R> LaunchHandle<R> {
    pub(crate) fn new(future: ApplyFuture<R>, number: LaunchId, trustee: &Arc<Shared>) -> Self {
        Self {
            future,
            number,
            trustee: Arc::clone(trustee),
        }
    }

    /// Waits until the closure has ended, and gives its result. On a fibre, and in another launched
    /// closure, others run meanwhile; such a wait cannot be interrupted.
    ///
    /// # Errors
    /// The closure has panicked; the object was poisoned; the closure waits, perhaps through
    /// others, for the closure that joins it; or it has not run because that would have closed a
    /// ring of waits.
    ///
    /// # Panics
    /// Inside a delegated closure.
    #[track_caller]
    pub fn join(mut self) -> Result<R, AsyncError> {
        let call = Call::new("LaunchHandle::join");
        NoSwitch::refuse_at(call);
        let ended = std::sync::Arc::new(Event(Token::new()));
        let waker = Waker::from(std::sync::Arc::clone(&ended));
        let mut joins: Option<Option<Waits>> = None;
        loop {
            let polled = Pin::new(&mut self.future).poll(&mut Context::from_waker(&waker));
            if let Poll::Ready(result) = polled {
                return result;
            }
            match &joins {
                None => match Waits::join(self.number, &waker).transpose() {
                    Ok(waits) => joins = Some(waits),
                    Err(ring) => return Err(refused(ring)),
                },
                Some(waits) => {
                    if let Some(ring) = waits.as_ref().and_then(Waits::refusal) {
                        // Ends the wait, as the graph knows it.
                        drop(joins);
                        return Err(refused(ring));
                    }
                }
            }
            if let Err(ring) = wait_for(call, &self.trustee, &ended.0) {
                drop(joins);
                return Err(refused(ring));
            }
        }
    }
}

/// The error of a join that was refused, after it has been told of.
fn refused(ring: CircularWait) -> AsyncError {
    events::refused_circular(&ring);
    AsyncError::Circular(ring)
}

impl<R> Future for LaunchHandle<R> {
    type Output = Result<R, AsyncError>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        Pin::new(&mut self.future).poll(context)
    }
}

impl<R> fmt::Debug for LaunchHandle<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LaunchHandle").finish_non_exhaustive()
    }
}
