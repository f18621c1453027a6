//! The interface of the test bodies to a lock, beyond `Shared`, and the list of all locks.

use corelay_sync::Shared;
use corelay_sync::wait::{CodeName, NoSwitch};
use std::sync::PoisonError;

/// A lock that the test bodies can make.
#[allow(dead_code, reason = "not every test file needs all of it")]
pub(crate) trait Lock<T>: Shared<Value = T> + Send + Sync {
    fn make(value: T) -> Self;
    fn unmake(self) -> T;
    fn value_mut(&mut self) -> &mut T;
}

/// A substitute for a delegated closure: nothing may wait inside.
#[allow(dead_code, reason = "not every test file needs all of it")]
pub(crate) fn where_nothing_may_wait<R>(f: impl FnOnce() -> R) -> R {
    let name = CodeName::fixed(&"a test");
    // SAFETY: the guard is dropped at the end of this frame, even by a panic, and before `name`.
    let _guard = unsafe { NoSwitch::enter(&name) };
    f()
}

/// Silences the panics of these refusals, of which there are thousands, in as many executions.
#[cfg(corelay_loom)]
#[allow(dead_code, reason = "not every test file needs it")]
pub(crate) fn silence_refusals() {
    use std::sync::Once;

    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let hook = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            let refusal = |text: &String| text.ends_with("this code may not wait");
            if !info.payload().downcast_ref().is_some_and(refusal) {
                hook(info);
            }
        }));
    });
}

/// A combining lock that the test bodies can make.
#[allow(dead_code, reason = "not every test file needs it")]
pub(crate) trait Combines<T>: Lock<T> {
    fn make_with_limit(value: T, limit: u32) -> Self;
}

impl<T: Send, C: corelay_locks::Combiner> Combines<T> for corelay_locks::Combining<C, T>
where
    Self: Lock<T>,
{
    fn make_with_limit(value: T, limit: u32) -> Self {
        Self::with_limit(value, limit)
    }
}

macro_rules! make {
    ($lock:ident) => {
        impl<T: Send> Lock<T> for corelay_locks::$lock<T> {
            fn make(value: T) -> Self {
                Self::new(value)
            }
            fn unmake(self) -> T {
                self.into_inner()
            }
            fn value_mut(&mut self) -> &mut T {
                self.get_mut()
            }
        }
    };
}

make!(StdMutex);
#[cfg(not(any(corelay_loom, corelay_shuttle)))]
make!(ParkingLot);
make!(Tas);
make!(Ttas);
make!(Ticket);
make!(Mcs);
make!(Clh);
make!(CcSynch);
make!(DsmSynch);
make!(FlatCombining);

impl<T: Send> Lock<T> for corelay_locks::Adaptive<T> {
    fn make(value: T) -> Self {
        Self::new(value)
    }
    fn unmake(self) -> T {
        self.into_inner().unwrap_or_else(PoisonError::into_inner)
    }
    fn value_mut(&mut self) -> &mut T {
        self.get_mut().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Makes a module for each lock, with one `#[test]` for each body; `body: Value` names a function
/// `fn body<L: Lock<Value>>()` beside the call.
#[allow(unused_macros, reason = "not every test file needs it")]
macro_rules! for_all_locks {
    ($bodies:tt) => {
        for_waiting_locks!($bodies);
        for_combining_locks!($bodies);
        tests_of!(adaptive Adaptive $bodies);
    };
}
#[allow(unused_imports, reason = "not every test file needs it")]
pub(crate) use for_all_locks;

/// As [`for_all_locks`], for the locks inside which a thread may wait for another lock.
#[allow(unused_macros, reason = "not every test file needs it")]
macro_rules! for_waiting_locks {
    ($bodies:tt) => {
        tests_of!(std_mutex StdMutex $bodies);
        #[cfg(not(any(corelay_loom, corelay_shuttle)))]
        tests_of!(parking_lot ParkingLot $bodies);
        tests_of!(tas Tas $bodies);
        tests_of!(ttas Ttas $bodies);
        tests_of!(ticket Ticket $bodies);
        tests_of!(mcs Mcs $bodies);
        tests_of!(clh Clh $bodies);
    };
}
#[allow(unused_imports, reason = "not every test file needs it")]
pub(crate) use for_waiting_locks;

/// As [`for_all_locks`], for the combining locks.
#[allow(unused_macros, reason = "not every test file needs it")]
macro_rules! for_combining_locks {
    ($bodies:tt) => {
        tests_of!(cc_synch CcSynch $bodies);
        tests_of!(dsm_synch DsmSynch $bodies);
        tests_of!(flat_combining FlatCombining $bodies);
    };
}
#[allow(unused_imports, reason = "not every test file needs it")]
pub(crate) use for_combining_locks;

/// The module of one lock.
macro_rules! tests_of {
    ($module:ident $lock:ident { $($body:ident: $value:ty),* $(,)? }) => {
        mod $module {
            #[allow(unused_imports)]
            use super::*;
            $(
                #[test]
                fn $body() {
                    super::$body::<corelay_locks::$lock<$value>>();
                }
            )*
        }
    };
}
pub(crate) use tests_of;
