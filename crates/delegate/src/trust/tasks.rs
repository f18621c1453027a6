//! The handle's methods for tasks, which give futures and block no thread.

use super::Trust;
use super::send::NotTaken;
use crate::client::Patience;
use crate::client::apply_async::ApplyAsync;
use crate::client::apply_then::Post;
use crate::client::future::ApplyFuture;
use crate::client::post_async::PostFuture;
use crate::error::TryApplyAsyncError;
use crate::operation::{Named, RequestName};

impl<T, N: RequestName> Trust<T, N> {
    /// Sends `f` and goes on. The future gives its result, to any task on any thread.
    ///
    /// The call itself makes the request, which runs even if the future is never polled or is
    /// dropped, and if this thread never calls corelay again: the trustee stores the result and
    /// wakes the task.
    ///
    /// **A full window blocks nobody.** The request then waits in the future, which sends it when it
    /// is polled and has been let in: first polled, first served, among the tasks of a thread and
    /// wherever they move. A future that is dropped before that has never run its closure, and holds
    /// nobody up. Calls that block their thread do not wait for such tasks.
    ///
    /// When [`barrier`](crate::barrier) returns, the request has been executed, if it had been sent. It
    /// does not report a panic of `f`: the future does, as [`AsyncError`](crate::AsyncError).
    ///
    /// ```
    /// # use corelay_delegate::{AsyncError, Trustees};
    /// async fn two(hits: &corelay_delegate::Trust<u64>) -> Result<u64, AsyncError> {
    ///     let first = hits.apply_async(|h| { *h += 1; *h }); // sent by now
    ///     let second = hits.apply_async(|h| { *h += 1; *h });
    ///     Ok(first.await? + second.await?)
    /// }
    /// # use std::{future::Future, pin::pin, task::{Context, Poll, Waker}};
    /// # fn block_on<O>(task: impl Future<Output = O>) -> O {
    /// #     let mut task = pin!(task);
    /// #     loop {
    /// #         let polled = task.as_mut().poll(&mut Context::from_waker(Waker::noop()));
    /// #         if let Poll::Ready(output) = polled { return output; }
    /// #         std::thread::yield_now();
    /// #     }
    /// # }
    /// let trustees = Trustees::dedicated(1).start().unwrap();
    /// let hits = trustees.entrust(0u64);
    /// assert_eq!(block_on(two(&hits)).unwrap(), 1 + 2);
    /// ```
    ///
    /// A result of one word, or a larger one in a box, takes 32 bytes of the thread's pool
    /// while its future lives, one of up to 7 words 80 bytes. Pools grow with the futures
    /// that a thread has at a time, by 4 KiB, and end with their thread and the last future.
    ///
    /// Inside a callback no answers are taken, so if the window is full there the request waits for its
    /// own answer, and the thread with it.
    ///
    /// # Errors
    /// The future gives an [`AsyncError`](crate::AsyncError): `f` has panicked, the value is poisoned,
    /// or the trustee has been shut down.
    ///
    /// # Panics
    /// Inside a delegated closure.
    #[inline]
    #[track_caller]
    pub fn apply_async<R, F>(&self, f: F) -> ApplyFuture<R>
    where
        T: 'static,
        R: Send + 'static,
        F: FnOnce(&mut T) -> R + Send + 'static,
    {
        // SAFETY: the bounds are `'static`, so the closure borrows nothing.
        unsafe { self.send_or_park::<ApplyAsync<Named<N, F>, R>, _>(Named::new(f)) }
    }

    /// Sends `f` as [`apply_async`](Self::apply_async) does, but gives it back if the request
    /// cannot be taken now.
    ///
    /// # Errors
    /// [`TryApplyAsyncError`].
    ///
    /// # Panics
    /// With the panic of a callback that this call has run, after the request has been
    /// accepted.
    #[inline]
    pub fn try_apply_async<R, F>(&self, f: F) -> Result<ApplyFuture<R>, TryApplyAsyncError<F>>
    where
        R: Send + 'static,
        F: FnOnce(&mut T) -> R + Send + 'static,
    {
        // SAFETY: the bounds are `'static`, so the closure borrows nothing.
        let sent =
            unsafe { self.try_send::<ApplyAsync<Named<N, F>, R>>(Named::new(f), Patience::Try) };
        sent.map_err(|(why, Named { f, .. })| match why {
            NotTaken::Full => TryApplyAsyncError::Full(f),
            NotTaken::Closed => TryApplyAsyncError::Closed(f),
            NotTaken::Nested => TryApplyAsyncError::Nested(f),
        })
    }

    /// Sends `f` as [`post`](Self::post) does, without blocking the thread: if the window is full, the
    /// future waits for room. It is ready when the request has been accepted.
    ///
    /// ```
    /// # use corelay_delegate::{AsyncError, Trust};
    /// async fn note(log: &Trust<Vec<String>>, line: String) -> Result<(), AsyncError> {
    ///     log.post_async(|log| log.push(line)).await
    /// }
    /// ```
    ///
    /// The order in which tasks get room is that of [`apply_async`](Self::apply_async).
    ///
    /// # Errors
    /// The future gives [`AsyncError::Closed`](crate::AsyncError::Closed) when the trustee has been
    /// shut down. The next [`barrier`](crate::barrier) of the thread that sent it reports a panic of `f`.
    ///
    /// # Panics
    /// Never. Inside a delegated closure the request waits until that has ended, as for `post`.
    #[inline]
    #[track_caller]
    pub fn post_async<F>(&self, f: F) -> PostFuture<T, F, N>
    where
        T: 'static,
        F: FnOnce(&mut T) + Send + 'static,
    {
        // SAFETY: the bounds are `'static`, so the closure borrows nothing.
        unsafe { self.send_or_park::<Post<Named<N, F>>, _>(Named::new(f)) }
    }
}
