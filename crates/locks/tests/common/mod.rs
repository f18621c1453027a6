//! The interface of the test bodies to a lock, beyond `Shared`, and the list of all locks.

use corelay_sync::Shared;
use corelay_sync::wait::NoSwitch;

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
    let name = "a test";
    // SAFETY: the guard is dropped at the end of this frame, even by a panic, and before `name`.
    let _guard = unsafe { NoSwitch::enter(&name, |name| name) };
    f()
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
make!(Ttas);
make!(Ticket);
make!(Mcs);
make!(Clh);

/// Makes a module for each lock, with one `#[test]` for each body; `body: Value` names a function
/// `fn body<L: Lock<Value>>()` beside the call.
macro_rules! for_all_locks {
    ($bodies:tt) => {
        for_all_locks!(std_mutex StdMutex $bodies);
        #[cfg(not(any(corelay_loom, corelay_shuttle)))]
        for_all_locks!(parking_lot ParkingLot $bodies);
        for_all_locks!(ttas Ttas $bodies);
        for_all_locks!(ticket Ticket $bodies);
        for_all_locks!(mcs Mcs $bodies);
        for_all_locks!(clh Clh $bodies);
    };
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
pub(crate) use for_all_locks;
