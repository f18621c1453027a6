//! Requests with a deadline, which is the time until which the trustee may begin them.

use super::Trust;
use super::claim::Claim;
use crate::client::apply_async::ApplyAsync;
use crate::client::future::ApplyFuture;
use crate::context::member::block_on;
use crate::error::AsyncError;
use crate::operation::{Named, RequestName, TypeName};
use corelay_sync::wait::{Call, NoSwitch};
use futures_timer::Delay;
use std::fmt;
use std::future::Future;
use std::panic::resume_unwind;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

/// The reason why a request with a deadline has no result.
#[non_exhaustive]
pub enum TimeoutError<F> {
    /// The time was up before the trustee began the closure. It has not run and never will; it is
    /// here.
    NotRun(F),
    /// The time was up after the trustee had begun the closure. It runs to its end, and its result
    /// is dropped.
    Running,
    /// The request has ended without a result, in time.
    Failed(AsyncError),
}

impl<F> fmt::Debug for TimeoutError<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl<F> fmt::Display for TimeoutError<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotRun(_) => {
                f.write_str("the time was up before the closure began; it has not run")
            }
            Self::Running => f.write_str("the time was up while the closure ran"),
            Self::Failed(error) => fmt::Display::fmt(error, f),
        }
    }
}

impl<F> std::error::Error for TimeoutError<F> {}

impl<T, N: RequestName> Trust<T, N> {
    /// Runs `f` on the value and waits for its result as [`apply`](Self::apply) does, for `limit` at
    /// most. The error says whether `f` has run.
    ///
    /// The closure goes through memory of its own, and a long wait through a timer's thread, so a
    /// call takes longer than `apply`.
    ///
    /// ```
    /// # use corelay_delegate::{TimeoutError, Trustees};
    /// # use std::time::Duration;
    /// let trustees = Trustees::dedicated(1).start()?;
    /// let hits = trustees.entrust(0u64);
    /// let add = |hits: &mut u64| *hits += 1;
    /// let (go_on, held) = std::sync::mpsc::channel::<()>();
    /// hits.post(move |_| held.recv().unwrap()); // keeps the trustee
    /// match hits.apply_timeout(Duration::from_millis(1), add) {
    ///     Err(TimeoutError::NotRun(add)) => add(&mut 7), // does without the shared value
    ///     other => panic!("{other:?}"),
    /// }
    /// go_on.send(())?;
    /// assert_eq!(hits.apply(|hits| *hits), 0);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`TimeoutError`].
    ///
    /// # Panics
    /// With the panic of `f`, if it comes in time. Inside a delegated closure.
    #[track_caller]
    pub fn apply_timeout<R, F>(&self, limit: Duration, f: F) -> Result<R, TimeoutError<F>>
    where
        T: 'static,
        R: Send + 'static,
        F: FnOnce(&mut T) -> R + Send + 'static,
    {
        let call = Call::new("Trust::apply_timeout");
        NoSwitch::refuse_at(call);
        let answer = block_on(
            call,
            self.shared(),
            self.apply_async_until(Delay::new(limit), f),
        );
        match answer {
            Err(TimeoutError::Failed(AsyncError::Panicked(payload))) => resume_unwind(payload),
            other => other,
        }
    }

    /// Sends `f` as [`apply_async`](Self::apply_async) does. The future gives its result, or an
    /// error once `deadline` is ready, which says whether `f` has run.
    ///
    /// A future that is dropped before the trustee has begun `f` takes the closure back, too: it
    /// never runs.
    ///
    /// The deadline is any future, such as Tokio's `sleep`. It is first polled with this future. Inside a
    /// callback, if the window is full, the call itself waits for the request to run, as that of
    /// `apply_async` does, whatever the deadline.
    ///
    /// ```
    /// # use corelay_delegate::{TimeoutError, Trust};
    /// async fn order(stock: &Trust<u32>, timer: impl Future<Output = ()>) -> Option<u32> {
    ///     match stock.apply_async_until(timer, |stock| { *stock -= 1; *stock }).await {
    ///         Ok(left) => Some(left),
    ///         Err(TimeoutError::NotRun(_)) => None, // nothing has been ordered
    ///         Err(error) => panic!("{error}"),
    ///     }
    /// }
    /// ```
    ///
    /// # Errors
    /// The future gives a [`TimeoutError`].
    ///
    /// # Panics
    /// Inside a delegated closure.
    #[track_caller]
    pub fn apply_async_until<R, F, D>(&self, deadline: D, f: F) -> TimedFuture<R, F, D, N>
    where
        T: 'static,
        R: Send + 'static,
        F: FnOnce(&mut T) -> R + Send + 'static,
        D: Future<Output = ()>,
    {
        let claim = Claim::new(Named::new(f));
        let theirs = claim.share();
        // SAFETY: the bounds are `'static`, so the closure borrows nothing.
        let request = unsafe { self.send_or_park::<ApplyAsync<Claim<Named<N, F>>, _>, _>(theirs) };
        TimedFuture {
            request,
            claim,
            deadline: Box::pin(deadline),
        }
    }
}

/// The result of [`Trust::apply_async_until`], to be awaited.
///
/// # Panics
/// When it is polled again after it has given its result.
#[must_use = "a future that is dropped takes its closure back"]
pub struct TimedFuture<R, F, D, N: RequestName = TypeName> {
    request: ApplyFuture<Option<R>>,
    claim: Claim<Named<N, F>>,
    deadline: Pin<Box<D>>,
}

impl<R, F, D: Future<Output = ()>, N: RequestName> Future for TimedFuture<R, F, D, N> {
    type Output = Result<R, TimeoutError<F>>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        match Pin::new(&mut self.request).poll(context) {
            Poll::Ready(Ok(result)) => {
                let result =
                    result.expect("only this future takes the closure back, and then ends");
                return Poll::Ready(Ok(result));
            }
            Poll::Ready(Err(error)) => return Poll::Ready(Err(TimeoutError::Failed(error))),
            Poll::Pending => {}
        }
        if self.deadline.as_mut().poll(context).is_pending() {
            return Poll::Pending;
        }
        Poll::Ready(Err(match self.claim.take() {
            Some(Named { f, .. }) => TimeoutError::NotRun(f),
            None => TimeoutError::Running,
        }))
    }
}

impl<R, F, D, N: RequestName> Drop for TimedFuture<R, F, D, N> {
    fn drop(&mut self) {
        drop(self.claim.take());
    }
}

impl<R, F, D, N: RequestName> fmt::Debug for TimedFuture<R, F, D, N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TimedFuture").finish_non_exhaustive()
    }
}
