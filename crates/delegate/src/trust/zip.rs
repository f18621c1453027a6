//! Closures over two values of one trustee.
//!
//! A request to both is a request to the first value whose closure looks the second one up. The
//! trustee runs one closure at a time, so nobody else has a reference to the second value. A
//! launched closure would, so trustees with a host are refused.

use super::Trust;
use super::send::Panics;
use crate::catch::guarded;
use crate::client::apply_async::ApplyAsync;
use crate::client::apply_then::{ApplyThen, Post};
use crate::client::future::ApplyFuture;
use crate::context::serving::{PartnerPoisoned, Serving};
use crate::error::TryApplyError;
use crate::object::{Header, Object};
use crate::operation::Operation;
use std::any::type_name;
use std::fmt;
use std::panic::resume_unwind;

/// Two values of one trustee, to which one closure has access. It is made by [`Trust::zip`].
///
/// A panic of a closure poisons both values, and a closure is refused if one of them is poisoned.
/// Requests keep their order with the thread's other requests to the trustee.
pub struct Zip<T, U> {
    first: Trust<T>,
    second: Trust<U>,
}

/// The reason why [`Trust::zip`] refused two values.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ZipError {
    /// The values belong to two trustees, which have these names.
    Apart(String, String),
    /// Both handles are of one value.
    Same,
    /// The trustee, which has this name, has a [host](crate::Builder::host): launched closures may
    /// hold one of the values while others are served.
    Hosted(String),
}

impl fmt::Display for ZipError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Apart(first, second) => write!(
                f,
                "the values belong to two trustees, {first} and {second}; entrust them to one by \
                 Trustees::entrust_on"
            ),
            Self::Same => f.write_str("both handles are of one value"),
            Self::Hosted(name) => write!(
                f,
                "{name} has a host, so launched closures may hold one of the values"
            ),
        }
    }
}

impl std::error::Error for ZipError {}

impl<T> Trust<T> {
    /// Both values, for closures that take the two at once, without others in between: a transfer
    /// between accounts, say. Works anywhere, and asks no trustee.
    ///
    /// ```
    /// # use corelay_delegate::{Trustees, ZipError};
    /// let trustees = Trustees::dedicated(2).start()?;
    /// let orders = trustees.entrust(vec![7, 9]);
    /// let total = trustees.entrust_on(orders.trustee(), 0); // by the same trustee
    /// let both = orders.zip(&total)?;
    /// let left = both.apply(|orders, total| {
    ///     *total += orders.pop().unwrap_or(0);
    ///     orders.len()
    /// });
    /// assert_eq!((left, total.apply(|total| *total)), (1, 9));
    ///
    /// let elsewhere = trustees.entrust_on(1 - orders.trustee(), 0);
    /// assert!(matches!(orders.zip(&elsewhere), Err(ZipError::Apart(..))));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`ZipError`].
    pub fn zip<U>(&self, other: &Trust<U>) -> Result<Zip<T, U>, ZipError> {
        let (first, second) = (self.shared(), other.shared());
        if first.number.get() != second.number.get() {
            return Err(ZipError::Apart(first.name.clone(), second.name.clone()));
        }
        if self.header() == other.header() {
            return Err(ZipError::Same);
        }
        if first.settings.host.is_some() {
            return Err(ZipError::Hosted(first.name.clone()));
        }
        Ok(Zip {
            first: self.clone(),
            second: other.clone(),
        })
    }
}

/// A closure on both values, as an operation on the first one. It has the closure's name.
struct OnBoth<U, F, K> {
    second: *mut Object<U>,
    f: F,
    /// What keeps the second value, if the caller does not wait.
    _keeps: K,
}

impl<U, F, K> OnBoth<U, F, K> {
    /// # Safety
    /// The operation is run on another object of the same trustee, which has no host. The caller
    /// waits, or `keeps` is a handle to the second value.
    unsafe fn new(second: &Trust<U>, f: F, keeps: K) -> Self {
        Self {
            second: second.header().cast(),
            f,
            _keeps: keeps,
        }
    }
}

impl<T, U, R, F: FnOnce(&mut T, &mut U) -> R, K> Operation<T, R> for OnBoth<U, F, K> {
    /// Runs the closure. Unwinds if it panics, or if the second value is poisoned.
    fn run(self, first: &mut T) -> R {
        let Self { second, f, _keeps } = self;
        let header = second.cast::<Header>();
        let poisoned = Serving::with_current(|serving| serving.is_poisoned(header));
        if poisoned.expect("a trustee runs the closure") {
            refuse(f);
        }
        // SAFETY: the object is alive, this is its trustee, and no other closure runs here or holds
        // it, as the caller of `new` has promised.
        let second = unsafe { Object::value(second) };
        guarded(|| f(first, second)).unwrap_or_else(|payload| {
            Serving::with_current(|serving| {
                serving.poison_too(header, type_name::<F>, &*payload);
            });
            resume_unwind(payload)
        })
    }

    fn run_boxed(self: Box<Self>, first: &mut T) -> R {
        self.run(first)
    }

    fn name() -> &'static str {
        type_name::<F>()
    }
}

/// Drops `f` and unwinds, for a second value that is poisoned.
#[cold]
fn refuse<F>(f: F) -> ! {
    // First, because a destructor that panics while this unwinds would end the process.
    Serving::with_current(|serving| serving.contain(|| drop(f)));
    resume_unwind(Box::new(PartnerPoisoned))
}

impl<T, U> Zip<T, U> {
    /// Runs `f` on both values and waits for its result, as [`Trust::apply`] does.
    ///
    /// # Panics
    /// The same as for [`Trust::apply`].
    #[track_caller]
    pub fn apply<R, F>(&self, f: F) -> R
    where
        R: Send,
        F: FnOnce(&mut T, &mut U) -> R + Send,
    {
        self.first.apply_operation(self.waiting(f))
    }

    /// Runs `f` on both values and waits, but gives `f` back if it cannot run, as
    /// [`Trust::try_apply`] does.
    ///
    /// # Errors
    /// [`TryApplyError`].
    ///
    /// # Panics
    /// With the panic of `f`, which poisons both values.
    pub fn try_apply<R, F>(&self, f: F) -> Result<R, TryApplyError<F>>
    where
        R: Send,
        F: FnOnce(&mut T, &mut U) -> R + Send,
    {
        let answer = self.first.try_apply_operation(self.waiting(f));
        answer.map_err(|error| error.map(|OnBoth { f, .. }| f))
    }

    /// Sends `f` and goes on. `then` gets its result later, on this thread, as
    /// [`Trust::apply_then`] has it.
    ///
    /// # Panics
    /// The same as for [`Trust::apply_then`].
    #[track_caller]
    pub fn apply_then<R, F, C>(&self, f: F, then: C)
    where
        T: 'static,
        U: 'static,
        R: Send + 'static,
        F: FnOnce(&mut T, &mut U) -> R + Send + 'static,
        C: FnOnce(R) + 'static,
    {
        let operation = self.keeping(f);
        // SAFETY: the bounds are `'static`, so the closures borrow nothing.
        unsafe {
            self.first
                .send::<ApplyThen<OnBoth<U, F, _>, R, C>, Panics>((operation, then))
        }
    }

    /// Sends `f` without wanting an answer, as [`Trust::post`] does.
    ///
    /// # Panics
    /// The same as for [`Trust::post`].
    #[track_caller]
    pub fn post<F>(&self, f: F)
    where
        T: 'static,
        U: 'static,
        F: FnOnce(&mut T, &mut U) + Send + 'static,
    {
        // SAFETY: the bounds are `'static`, so the closure borrows nothing.
        unsafe {
            self.first
                .send::<Post<OnBoth<U, F, _>>, Panics>(self.keeping(f))
        }
    }

    /// Sends `f` and goes on. The future gives its result, as that of [`Trust::apply_async`].
    ///
    /// # Errors
    /// The same as for [`Trust::apply_async`].
    ///
    /// # Panics
    /// Inside a delegated closure.
    #[track_caller]
    pub fn apply_async<R, F>(&self, f: F) -> ApplyFuture<R>
    where
        T: 'static,
        U: 'static,
        R: Send + 'static,
        F: FnOnce(&mut T, &mut U) -> R + Send + 'static,
    {
        // SAFETY: the bounds are `'static`, so the closure borrows nothing.
        unsafe {
            self.first
                .send_or_park::<ApplyAsync<OnBoth<U, F, _>, R>, _>(self.keeping(f))
        }
    }

    /// The operation for a request that the caller waits for.
    fn waiting<F>(&self, f: F) -> OnBoth<U, F, ()> {
        // SAFETY: `zip` has found two objects of one trustee without a host. The caller waits, and
        // this handle keeps the second one.
        unsafe { OnBoth::new(&self.second, f, ()) }
    }

    /// The operation for a request that nobody waits for. It has a handle of its own to the second
    /// value, because it may have to wait for room where no other request shows the value.
    fn keeping<F>(&self, f: F) -> OnBoth<U, F, Trust<U>> {
        // SAFETY: `zip` has found two objects of one trustee without a host, and the clone keeps the
        // second one.
        unsafe { OnBoth::new(&self.second, f, self.second.clone()) }
    }

    /// Whether a closure has panicked on one of the values and nobody has cleared that.
    pub fn is_poisoned(&self) -> bool {
        self.first.is_poisoned() || self.second.is_poisoned()
    }
}

impl<T, U> Clone for Zip<T, U> {
    fn clone(&self) -> Self {
        Self {
            first: self.first.clone(),
            second: self.second.clone(),
        }
    }
}

impl<T, U> fmt::Debug for Zip<T, U> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Zip of {:?} and {:?}", self.first, self.second)
    }
}
