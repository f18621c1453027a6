//! The future of a request that wants no answer: it is ready when the request has been accepted.

use super::apply_then::Post;
use super::parked::{Closed, Outcome};
use crate::error::AsyncError;
use crate::operation::{Named, RequestName, TypeName};
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

/// The acceptance of a request of [`Trust::post_async`](crate::Trust::post_async), to be awaited.
///
/// If there was room in the window, the request has been accepted already. If there was none, the
/// future makes the request when it is polled and there is room; it is lost if the future is
/// dropped before.
///
/// # Panics
/// When it is polled again after it has been ready.
#[must_use = "a request that waits for room is lost with its future"]
pub struct PostFuture<T, F: FnOnce(&mut T), N: RequestName = TypeName> {
    outcome: Option<Outcome<T, Post<Named<N, F>>>>,
}

impl<T, F: FnOnce(&mut T), N: RequestName> From<Outcome<T, Post<Named<N, F>>>>
    for PostFuture<T, F, N>
{
    #[inline(always)]
    fn from(outcome: Outcome<T, Post<Named<N, F>>>) -> Self {
        let outcome = Some(outcome);
        Self { outcome }
    }
}

impl<T, F: FnOnce(&mut T), N: RequestName> Unpin for PostFuture<T, F, N> {}

impl<T, F: FnOnce(&mut T), N: RequestName> Future for PostFuture<T, F, N> {
    type Output = Result<(), AsyncError>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let outcome = self
            .outcome
            .as_mut()
            .expect("corelay: a PostFuture is polled after it has been ready");
        let accepted = match outcome {
            Outcome::Sent(()) => Ok(()),
            Outcome::Closed => Err(Closed),
            Outcome::Parked(parked) => match parked.poll(context) {
                Poll::Ready(accepted) => accepted,
                Poll::Pending => return Poll::Pending,
            },
        };
        self.outcome = None;
        Poll::Ready(accepted.map_err(|Closed| AsyncError::Closed))
    }
}

impl<T, F: FnOnce(&mut T), N: RequestName> fmt::Debug for PostFuture<T, F, N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let is_accepted = matches!(self.outcome, None | Some(Outcome::Sent(())));
        f.debug_struct("PostFuture")
            .field("is_accepted", &is_accepted)
            .finish_non_exhaustive()
    }
}
