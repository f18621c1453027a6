//! A read-mostly value: any thread reads a snapshot without asking anybody, and a trustee makes the
//! updates, one after the other.
//!
//! ```
//! use corelay_delegate::Trustees;
//! use corelay_structures::published::Published;
//!
//! let trustees = Trustees::dedicated(1).start()?;
//! let routes = Published::new(&trustees, vec!["/"]);
//! let before = routes.load(); // no request
//! routes.update(|routes| routes.push("/about")); // on the trustee, on a copy
//! assert_eq!(*routes.load(), ["/", "/about"]);
//! assert_eq!(*before, ["/"]); // a snapshot stays as it was
//! # Ok::<(), corelay_delegate::StartError>(())
//! ```
//!
//! # When not to use it
//! * Updates are frequent, or the value is large: each update clones it. A value that threads mostly
//!   change belongs behind a [`Trust`] alone, or a lock.
//! * One thread makes all updates: `arc-swap` by itself needs no trustee.
//!
//! # Guarantees
//! * **Linearizable.** An update takes effect when its copy is published, between its call and its
//!   answer. Whoever has the answer, or has heard of it, loads that value or a newer one.
//! * **No update is lost.** The trustee makes them one after the other, each on a copy of the value
//!   that the one before has left.
//! * **Loads** ask no trustee, take no lock and never wait. They work anywhere, inside delegated
//!   closures and after the trustee has been shut down, too.
//! * **Panic.** If the closure of an update or the value's `clone` panics, the copy is dropped, the
//!   value stays as it was, and the caller gets the panic. Nothing is poisoned. If the destructor of
//!   an older value panics, the caller gets that panic, and the new value is published.
//! * **Waiting.** `update` and `store` suspend a fibre, serve on a member of a flat team, and block
//!   any other thread. Inside a delegated closure they panic with a message that names them.
//! * **Memory.** An older value lives as long as its snapshots, and is dropped by the last of them or
//!   by the trustee. The value itself is dropped after the last handle.
//! * **Idle cost.** None.
//!
//! # How it works
//! The value is in an `arc_swap::ArcSwap`, in which a load is a few instructions on the reader's own
//! cache lines (<https://docs.rs/arc-swap>, "internal"). The trustee owns the right to replace it, so
//! an update needs no loop of comparing and swapping and never runs its closure twice.

use crate::caught::{CallFuture, caught, raised};
use arc_swap::{ArcSwap, Guard};
use corelay_delegate::{Trust, Trustees};
use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

/// A handle to a value that is read without requests and updated by a trustee. Clones are handles to
/// the same value. See the [module](self).
pub struct Published<T> {
    newest: Arc<ArcSwap<T>>,
    /// The right to replace the value.
    writer: Trust<Arc<ArcSwap<T>>>,
}

/// A value as it was when it was [loaded](Published::load).
///
/// Snapshots are meant to be short-lived: a thread can hold some eight of them at the full speed, and
/// further ones cost a shared count. Keep one for longer as an [`Arc`](Self::into_arc).
pub struct Snapshot<T>(Guard<Arc<T>>);

impl<T: Send + Sync + 'static> Published<T> {
    /// Publishes `value`. One of `trustees` will make the updates.
    ///
    /// # Panics
    /// The same as for [`Trustees::entrust`].
    #[track_caller]
    pub fn new(trustees: &Trustees, value: T) -> Self {
        let newest = Arc::new(ArcSwap::from_pointee(value));
        let writer = trustees.entrust(Arc::clone(&newest));
        Self { newest, writer }
    }

    /// The value as it is now, without a request.
    #[inline]
    pub fn load(&self) -> Snapshot<T> {
        Snapshot(self.newest.load())
    }

    /// Replaces the value, and waits until that is seen by every [`load`](Self::load).
    ///
    /// # Panics
    /// With the panic of the older value's destructor. Inside a delegated closure, and when the
    /// trustee has been shut down.
    #[track_caller]
    pub fn store(&self, value: T) {
        let value = Arc::new(value);
        raised(
            self.writer
                .apply(move |newest| caught(|| newest.store(value))),
        );
    }
}

impl<T: Clone + Send + Sync + 'static> Published<T> {
    /// Runs `f` on a copy of the value, publishes the copy, and gives the result of `f`.
    ///
    /// # Panics
    /// With the panic of `f` or of the value's `clone`, after which the value is as it was; with that of
    /// the older value's destructor. Inside a delegated closure, and when the trustee has been shut
    /// down.
    #[track_caller]
    pub fn update<R: Send>(&self, f: impl FnOnce(&mut T) -> R + Send) -> R {
        raised(self.writer.apply(|newest| caught(|| replace(newest, f))))
    }

    /// Updates the value as [`update`](Self::update) does, but goes on at once. `then` gets the result
    /// later, on this thread, as in [`Trust::apply_then`]. If user code panics, `then` is dropped, and
    /// the call that would have run it raises the panic.
    ///
    /// ```
    /// # use corelay_delegate::{Trustees, barrier};
    /// # use corelay_structures::published::Published;
    /// # let trustees = Trustees::dedicated(1).start().unwrap();
    /// let limits = Published::new(&trustees, [10, 20]);
    /// limits.update_then(|limits| limits[0] += 1, |()| ());
    /// barrier().unwrap(); // it has been published
    /// assert_eq!(*limits.load(), [11, 20]);
    /// ```
    ///
    /// # Panics
    /// The same as for [`Trust::apply_then`].
    #[track_caller]
    pub fn update_then<R: Send + 'static>(
        &self,
        f: impl FnOnce(&mut T) -> R + Send + 'static,
        then: impl FnOnce(R) + 'static,
    ) {
        self.writer.apply_then(
            |newest| caught(|| replace(newest, f)),
            |result| then(raised(result)),
        );
    }

    /// Updates the value as [`update`](Self::update) does, but goes on at once. The future gives the
    /// result.
    ///
    /// # Panics
    /// The same as for [`Trust::apply_async`].
    #[track_caller]
    pub fn update_async<R: Send + 'static>(
        &self,
        f: impl FnOnce(&mut T) -> R + Send + 'static,
    ) -> CallFuture<R> {
        CallFuture::new(
            self.writer
                .apply_async(|newest| caught(|| replace(newest, f))),
        )
    }
}

/// Publishes a copy of the newest value, changed by `f`. Only the trustee calls it, so nobody else
/// publishes meanwhile.
fn replace<T: Clone, R>(newest: &ArcSwap<T>, f: impl FnOnce(&mut T) -> R) -> R {
    let mut copy = T::clone(&newest.load());
    let result = f(&mut copy);
    newest.store(Arc::new(copy));
    result
}

impl<T> Clone for Published<T> {
    fn clone(&self) -> Self {
        Self {
            newest: Arc::clone(&self.newest),
            writer: self.writer.clone(),
        }
    }
}

impl<T: fmt::Debug + Send + Sync + 'static> fmt::Debug for Published<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Published").field(&*self.load()).finish()
    }
}

impl<T> Snapshot<T> {
    /// The value, to be kept for long, or shared.
    pub fn into_arc(this: Self) -> Arc<T> {
        Guard::into_inner(this.0)
    }
}

impl<T> Deref for Snapshot<T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        &self.0
    }
}

impl<T: fmt::Debug> fmt::Debug for Snapshot<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&**self, f)
    }
}
