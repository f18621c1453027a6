//! User code whose panic is caught on its trustee, raised at its caller, and poisons nothing.

use corelay_delegate::{ApplyFuture, AsyncError};
use std::any::Any;
use std::fmt;
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::pin::Pin;
use std::task::{Context, Poll};

pub(crate) type Payload = Box<dyn Any + Send>;

/// Runs user code, and catches its panic.
#[inline]
pub(crate) fn caught<R>(f: impl FnOnce() -> R) -> Result<R, Payload> {
    catch_unwind(AssertUnwindSafe(f))
}

/// The result of user code, or its panic, which goes on here.
#[inline]
pub(crate) fn raised<R>(result: Result<R, Payload>) -> R {
    result.unwrap_or_else(|payload| resume_unwind(payload))
}

/// The result of a call that is named `…_async`, to be awaited.
///
/// The request has been made already: it runs whether or not the future is polled, and also if it
/// is dropped. If the window had no room, the future makes it when it is polled and has been let in,
/// as [`Trust::apply_async`](corelay_delegate::Trust::apply_async) says. Any executor will do, and
/// any thread. A panic of user code comes as [`AsyncError::Panicked`].
///
/// # Panics
/// When it is polled again after it has given its result.
#[must_use = "the request runs anyway, but nobody gets its result"]
pub struct CallFuture<R>(ApplyFuture<Result<R, Payload>>);

impl<R> CallFuture<R> {
    /// The future of a request that runs its user code by [`caught`].
    #[inline]
    pub(crate) fn new(result: ApplyFuture<Result<R, Payload>>) -> Self {
        Self(result)
    }
}

impl<R> Future for CallFuture<R> {
    type Output = Result<R, AsyncError>;

    #[inline]
    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let polled = Pin::new(&mut self.0).poll(context);
        polled.map(|result| result.and_then(|result| result.map_err(AsyncError::Panicked)))
    }
}

impl<R> fmt::Debug for CallFuture<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CallFuture").finish_non_exhaustive()
    }
}
