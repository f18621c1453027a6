//! The errors of this crate, an enum for each operation. Each gives back the closures that were not
//! consumed.

use std::any::Any;
use std::fmt;

/// The payload of a request that reached a poisoned object: a closure has panicked on the object
/// before. [`Trust::clear_poison`](crate::Trust::clear_poison) makes it usable again.
///
/// ```
/// # use corelay_delegate::{Poisoned, Trustees, barrier};
/// # let trustees = Trustees::dedicated(1).start().unwrap();
/// let hits = trustees.entrust(0u64);
/// hits.post(|_| panic!("out of order"));
/// assert!(!barrier().unwrap_err().into_first().is::<Poisoned>()); // the panic itself
/// hits.post(|h| *h += 1); // is not run any more
/// assert!(barrier().unwrap_err().into_first().is::<Poisoned>());
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Poisoned;

impl fmt::Display for Poisoned {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(
            "corelay: the object is poisoned, a closure has panicked on it; \
             Trust::clear_poison makes it usable again",
        )
    }
}

impl std::error::Error for Poisoned {}

/// The ring that a wait of a launched closure would have closed: the wait was refused instead.
///
/// Its text names the objects that the closures of the ring hold: by their types, and by their
/// [names](crate::Trust::set_name) if they have any.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CircularWait {
    objects: Vec<String>,
}

impl CircularWait {
    pub(crate) fn new(objects: Vec<String>) -> Self {
        Self { objects }
    }

    /// The objects that the closures of the ring hold. The first belongs to the closure whose wait
    /// was refused, and each next one to the closure that the one before it waits for.
    pub fn objects(&self) -> impl Iterator<Item = &str> {
        self.objects.iter().map(String::as_str)
    }
}

impl fmt::Display for CircularWait {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("corelay: launched closures would wait for each other in a ring: ")?;
        for object in &self.objects {
            write!(f, "{object} -> ")?;
        }
        f.write_str(self.objects.first().map_or("nobody", String::as_str))
    }
}

impl std::error::Error for CircularWait {}

/// The reason why [`Trust::try_apply`](crate::Trust::try_apply) did not run the closure. The
/// variants give it back unless the trustee has dropped it.
pub enum TryApplyError<F> {
    /// A closure has panicked on the object before. The trustee dropped this one.
    Poisoned,
    /// The call was made inside a launched closure, for an object whose holder waits for this
    /// closure, or waits in vain for this closure's thread. The trustee dropped the closure.
    Circular(CircularWait),
    /// The call was made inside a delegated closure, where nothing may wait, or inside a section of
    /// a launched closure that may not be suspended.
    Nested(F),
    /// The trustee has been shut down.
    Closed(F),
}

impl<F> TryApplyError<F> {
    /// The same error with another closure to give back.
    pub(crate) fn map<G>(self, f: impl FnOnce(F) -> G) -> TryApplyError<G> {
        match self {
            Self::Poisoned => TryApplyError::Poisoned,
            Self::Circular(ring) => TryApplyError::Circular(ring),
            Self::Nested(closure) => TryApplyError::Nested(f(closure)),
            Self::Closed(closure) => TryApplyError::Closed(f(closure)),
        }
    }
}

/// The reason why [`Trust::try_apply_then`](crate::Trust::try_apply_then) did not take the request.
/// Gives both closures back.
pub enum TryApplyThenError<F, C> {
    /// The window is full: as many requests as it allows are in flight, or, inside a delegated
    /// closure, wait to be sent.
    Full(F, C),
    /// The trustee has been shut down.
    Closed(F, C),
}

/// The reason why [`Trust::try_post`](crate::Trust::try_post) did not take the request. Gives the
/// closure back.
pub enum TryPostError<F> {
    /// The window is full: as many requests as it allows are in flight, or, inside a delegated
    /// closure, wait to be sent.
    Full(F),
    /// The trustee has been shut down.
    Closed(F),
}

/// The reason why [`Trust::try_apply_async`](crate::Trust::try_apply_async) did not take the
/// request.
pub enum TryApplyAsyncError<F> {
    /// The window is full: as many requests as it allows are in flight.
    Full(F),
    /// The call was made inside a delegated closure.
    Nested(F),
    /// The trustee has been shut down.
    Closed(F),
}

/// The reason why [`Trust::try_launch`](crate::Trust::try_launch) did not take the closure, which
/// it gives back.
pub enum TryLaunchError<F> {
    /// The window is full: as many requests as it allows are in flight.
    Full(F),
    /// The call was made inside a delegated closure.
    Nested(F),
    /// The trustee has been shut down.
    Closed(F),
    /// The trustee has no [host](crate::Builder::host): nothing can wait on its thread.
    Unhosted(F),
}

/// The reason why an [`ApplyFuture`](crate::ApplyFuture), or a
/// [`LaunchHandle`](crate::LaunchHandle), has no result.
#[non_exhaustive]
pub enum AsyncError {
    /// The closure panicked with this payload.
    Panicked(Box<dyn Any + Send>),
    /// A closure has panicked on the object before. The trustee dropped this one.
    Poisoned,
    /// Launched closures would have waited for each other in a ring: this join was refused, or the
    /// closure was dropped on the trustee.
    Circular(CircularWait),
    /// The trustee was shut down before it accepted the request. The closure has been dropped.
    Closed,
}

impl fmt::Debug for AsyncError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl fmt::Display for AsyncError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Panicked(payload) => {
                write!(f, "the closure panicked: {}", payload_message(&**payload))
            }
            Self::Poisoned => f.write_str("the object is poisoned"),
            Self::Circular(ring) => fmt::Display::fmt(ring, f),
            Self::Closed => f.write_str("the trustee has been shut down"),
        }
    }
}

impl std::error::Error for AsyncError {}

/// Describes each variant of an error by a text, for `Display` and `Debug`.
macro_rules! describe {
    ($type:ident<$($p:ident),*>, $($variant:pat => $text:literal),* $(,)?) => {
        impl<$($p),*> fmt::Debug for $type<$($p),*> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(self, f)
            }
        }
        impl<$($p),*> fmt::Display for $type<$($p),*> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(match self { $($variant => $text),* })
            }
        }
        impl<$($p),*> std::error::Error for $type<$($p),*> {}
    };
}

pub(crate) use describe;

describe!(TryApplyError<F>,
    Self::Poisoned => "the object is poisoned",
    Self::Circular(..) => "launched closures would wait for each other in a ring",
    Self::Nested(..) => "called inside a delegated closure, where nothing may wait",
    Self::Closed(..) => "the trustee has been shut down",
);
describe!(TryApplyThenError<F, C>,
    Self::Full(..) => "the window is full",
    Self::Closed(..) => "the trustee has been shut down",
);
describe!(TryApplyAsyncError<F>,
    Self::Full(..) => "the window is full",
    Self::Nested(..) => "called inside a delegated closure",
    Self::Closed(..) => "the trustee has been shut down",
);
describe!(TryLaunchError<F>,
    Self::Full(..) => "the window is full",
    Self::Nested(..) => "called inside a delegated closure",
    Self::Closed(..) => "the trustee has been shut down",
    Self::Unhosted(..) => "the trustee has no host, so nothing can wait on its thread",
);
describe!(TryPostError<F>,
    Self::Full(..) => "the window is full",
    Self::Closed(..) => "the trustee has been shut down",
);

/// The failures that [`barrier`](crate::barrier) reports: requests of this thread that ended
/// without their closure's result since the last barrier. See there for an example.
pub struct BarrierError {
    first: Box<dyn Any + Send>,
    count: u64,
}

impl BarrierError {
    pub(crate) fn new(first: Box<dyn Any + Send>, count: u64) -> Self {
        Self { first, count }
    }

    /// Counts the failures of `later` too. Returns their payload, which is not kept, for the caller
    /// to discard.
    pub(crate) fn merge(&mut self, later: Self) -> Box<dyn Any + Send> {
        self.count += later.count;
        later.first
    }

    /// The number of requests that panicked, reached a poisoned object, or were refused because
    /// launched closures would have waited for each other in a ring.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// The first panic's payload, or [`Poisoned`], or a [`CircularWait`].
    pub fn into_first(self) -> Box<dyn Any + Send> {
        self.first
    }

    /// The first panic's message, or a text that says what else went wrong.
    pub fn message(&self) -> &str {
        payload_message(&*self.first)
    }
}

/// Failures of requests that nobody waits for, until a barrier takes them.
#[derive(Default)]
pub(crate) struct Faults {
    first: Option<Box<dyn Any + Send>>,
    count: u64,
}

impl Faults {
    /// Counts a failure and keeps its payload, if it `is_first` or the earliest so far. Returns
    /// the payload that is not kept, for the caller to discard.
    pub(crate) fn add(
        &mut self,
        payload: Box<dyn Any + Send>,
        is_first: bool,
    ) -> Option<Box<dyn Any + Send>> {
        self.count += 1;
        match self.first {
            Some(_) if !is_first => Some(payload),
            _ => self.first.replace(payload),
        }
    }

    /// Counts the failures of `later`, too. Returns `later` if it has a payload that is not kept, for
    /// the caller to discard.
    pub(crate) fn merge(&mut self, mut later: Self) -> Option<Self> {
        self.count += later.count;
        if self.first.is_none() {
            self.first = later.first.take();
        }
        later.first.is_some().then_some(later)
    }

    /// The report of a barrier, if there is anything to report.
    pub(crate) fn into_error(self) -> Option<BarrierError> {
        let first = self.first.unwrap_or_else(|| Box::new(Poisoned));
        (self.count > 0).then(|| BarrierError::new(first, self.count))
    }
}

impl fmt::Debug for BarrierError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl fmt::Display for BarrierError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} delegated request(s) failed; the first: {}",
            self.count,
            self.message()
        )
    }
}

impl std::error::Error for BarrierError {}

/// The text of a panic payload.
pub(crate) fn payload_message(payload: &(dyn Any + Send)) -> &str {
    if let Some(text) = payload.downcast_ref::<&str>() {
        text
    } else if let Some(text) = payload.downcast_ref::<String>() {
        text
    } else if payload.is::<Poisoned>() {
        "the object is poisoned"
    } else if payload.is::<CircularWait>() {
        "launched closures would wait for each other in a ring"
    } else {
        "a panic whose payload is no text"
    }
}
