//! Taking a value back from its trustee.

use super::Trust;
use crate::context::member::wait_for;
use crate::context::thread::in_turn;
use crate::error::describe;
use corelay_sync::facade::sync::Arc;
use corelay_sync::wait::{Call, NoSwitch};
use std::fmt;

/// The reason why [`Trust::into_inner`] did not give a sound value.
pub enum IntoInnerError<T> {
    /// There are other handles. This one has been dropped.
    Shared,
    /// A closure has panicked on the value, which is here.
    Poisoned(T),
    /// The trustee was shut down first, and has dropped the value.
    Closed,
    /// The call was made inside a delegated or launched closure, or a section of code that may not
    /// wait. The handle is here.
    Nested(Trust<T>),
}

describe!(IntoInnerError<T>,
    Self::Shared => "there are other handles to the value",
    Self::Poisoned(..) => "the value is poisoned: a closure has panicked on it",
    Self::Closed => "the trustee has been shut down",
    Self::Nested(..) => "called inside a delegated closure, where nothing may wait",
);

impl<T> Trust<T> {
    /// Takes the value back if this is its last handle. Waits until every request has run that was
    /// accepted before. Of several threads that call this for the same value, with no other handle
    /// left, exactly one gets it, as from [`Arc::into_inner`](std::sync::Arc::into_inner).
    ///
    /// On a fibre others run meanwhile; such a wait cannot be interrupted. A member of a flat team
    /// serves meanwhile.
    ///
    /// ```
    /// # use corelay_delegate::{IntoInnerError, Trust, Trustees};
    /// let trustees = Trustees::dedicated(1).start()?;
    /// let log = trustees.entrust(Vec::new());
    /// let other = log.clone();
    /// log.post(|log| log.push("posted"));
    /// assert!(matches!(Trust::into_inner(other), Err(IntoInnerError::Shared)));
    /// assert_eq!(Trust::into_inner(log)?, ["posted"]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`IntoInnerError`], which has the value if it is poisoned.
    ///
    /// # Panics
    /// Never.
    #[track_caller]
    pub fn into_inner(this: Self) -> Result<T, IntoInnerError<T>>
    where
        T: Send + 'static,
    {
        // A launched closure may hold the value that it would wait for, perhaps through others.
        if NoSwitch::is_active() || in_turn() {
            return Err(IntoInnerError::Nested(this));
        }
        let trustee = Arc::clone(this.shared());
        let parcel = this.handle.into_parcel().ok_or(IntoInnerError::Shared)?;
        let waited = wait_for(Call::new("Trust::into_inner"), &trustee, &parcel.is_settled);
        debug_assert!(waited.is_ok(), "only launched closures close rings");
        match parcel.open() {
            Some((value, false)) => Ok(value),
            Some((value, true)) => Err(IntoInnerError::Poisoned(value)),
            None => {
                // The trustee takes no orders any more, but may still be dropping values.
                trustee.wait_until_gone();
                Err(IntoInnerError::Closed)
            }
        }
    }
}
