//! Closures over two values of one trustee.
//!
//! A request to both is a request to the first value whose closure looks the second one up. The
//! trustee runs one closure at a time, so nobody else has a reference to the second value. A
//! launched closure would, so trustees with a host are refused.

use super::Trust;
use crate::catch::guarded;
use crate::client::future::ApplyFuture;
use crate::context::serving::{PartnerPoisoned, Serving};
use crate::error::TryApplyError;
use crate::object::{Header, Object};
use std::any::type_name;
use std::fmt;
use std::marker::PhantomData;
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

/// The second value of a pair, as a closure on the first one carries it.
struct Partner<U> {
    object: *mut Header,
    value: PhantomData<fn(&mut U)>,
}

// SAFETY: the trustee alone follows the address, and the value is on its thread.
unsafe impl<U> Send for Partner<U> {}

impl<U> Partner<U> {
    fn of(trust: &Trust<U>) -> Self {
        Self {
            object: trust.header(),
            value: PhantomData,
        }
    }

    /// Runs `f` on both values. Unwinds if it panics, or if the second value is poisoned.
    ///
    /// # Safety
    /// Called on the trustee of both values by a closure on the first one, which is another object
    /// than the second. A handle keeps that alive, and no launched closure holds it.
    unsafe fn run<T, R, F>(self, first: &mut T, f: F) -> R
    where
        F: FnOnce(&mut T, &mut U) -> R,
    {
        let poisoned = Serving::with_current(|serving| serving.is_poisoned(self.object));
        if poisoned.expect("a trustee runs the closure") {
            refuse(f);
        }
        // SAFETY: the object is alive, this is its trustee, and no other closure runs here or holds
        // it, as the caller promises.
        let second = unsafe { Object::value(self.object.cast::<Object<U>>()) };
        match guarded(|| f(first, second)) {
            Ok(result) => result,
            Err(payload) => {
                Serving::with_current(|serving| {
                    serving.poison_too(self.object, type_name::<F>, &*payload);
                });
                resume_unwind(payload)
            }
        }
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
        let partner = Partner::of(&self.second);
        // SAFETY: `zip` has found two objects of one trustee without a host; this handle keeps the
        // second one while the call waits.
        self.first.apply(|first| unsafe { partner.run(first, f) })
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
        let partner = Partner::of(&self.second);
        let mut kept = Some(f);
        let lent = &mut kept;
        let answer = self.first.try_apply(move |first| {
            let f = lent.take().expect("a closure runs once");
            // SAFETY: as in `apply`.
            unsafe { partner.run(first, f) }
        });
        answer
            .map_err(|error| error.map(drop))
            .map_err(|error| error.map(|()| kept.take().expect("what did not run is still here")))
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
        self.first.apply_then(self.closure(f), then);
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
        self.first.post(self.closure(f));
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
        self.first.apply_async(self.closure(f))
    }

    /// The closure on the first value for a request that nobody waits for. It has a handle of its
    /// own to the second value, because it may have to wait for room where no other request shows
    /// it.
    fn closure<R, F>(&self, f: F) -> impl FnOnce(&mut T) -> R + Send + 'static
    where
        T: 'static,
        U: 'static,
        F: FnOnce(&mut T, &mut U) -> R + Send + 'static,
    {
        let second = self.second.clone();
        // SAFETY: `zip` has found two objects of one trustee without a host; `second` keeps the
        // second one.
        move |first| unsafe { Partner::of(&second).run(first, f) }
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
