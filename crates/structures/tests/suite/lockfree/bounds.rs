//! Which structures may be sent to, and shared by, threads.

use corelay_structures::lockfree::{
    BlockQueue, HarrisList, IntoIter, IntoKeys, IntoValues, MsQueue, TreiberStack,
};
use std::cell::Cell;
use std::panic::{RefUnwindSafe, UnwindSafe};
use std::rc::Rc;

/// Says of types whether they have a trait, where a bound could only say that they do. A type's own
/// constant comes before a trait's.
macro_rules! each_is {
    ($trait:path: $($type:ty => $is:literal),* $(,)?) => {{
        struct Probe<T>(std::marker::PhantomData<T>);
        #[allow(dead_code, reason = "not used if all have the trait")]
        trait IsNot {
            const IS: bool = false;
        }
        impl<T> IsNot for Probe<T> {}
        #[allow(dead_code, reason = "the other one is used if this is not")]
        impl<T: $trait> Probe<T> {
            const IS: bool = true;
        }
        $(assert_eq!(<Probe<$type>>::IS, $is, "{}", stringify!($type));)*
    }};
}

/// `Cell` may be sent, not shared; a guard of std may be shared, not sent; `Rc` neither.
type Guard = std::sync::MutexGuard<'static, u8>;

#[test]
fn they_are_sent_if_values_are() {
    each_is!(Send:
        BlockQueue<Cell<u8>> => true, BlockQueue<Rc<u8>> => false, BlockQueue<Guard> => false,
        MsQueue<Cell<u8>> => true, MsQueue<Rc<u8>> => false, MsQueue<Guard> => false,
        TreiberStack<Cell<u8>> => true, TreiberStack<Rc<u8>> => false,
        TreiberStack<Guard> => false,
        HarrisList<Cell<u8>> => true, HarrisList<Rc<u8>> => false, HarrisList<Guard> => false,
        IntoIter<Cell<u8>> => true, IntoIter<Rc<u8>> => false,
        IntoValues<Cell<u8>, 1> => true, IntoValues<Rc<u8>, 1> => false,
        IntoKeys<Cell<u8>> => true, IntoKeys<Rc<u8>> => false,
    );
}

#[test]
fn they_are_shared_if_values_are_sent() {
    each_is!(Sync:
        BlockQueue<Cell<u8>> => true, BlockQueue<Rc<u8>> => false, BlockQueue<Guard> => false,
        MsQueue<Cell<u8>> => true, MsQueue<Rc<u8>> => false, MsQueue<Guard> => false,
        TreiberStack<Cell<u8>> => true, TreiberStack<Rc<u8>> => false,
        TreiberStack<Guard> => false,
        HarrisList<u8> => true, HarrisList<Rc<u8>> => false, HarrisList<Guard> => false,
        // Several threads may compare with a key at once.
        HarrisList<Cell<u8>> => false,
        IntoIter<Cell<u8>> => false, IntoIter<Guard> => true,
        IntoKeys<Cell<u8>> => false, IntoKeys<Guard> => true,
    );
}

#[test]
fn they_may_be_used_after_a_panic() {
    each_is!(UnwindSafe:
        BlockQueue<Cell<u8>> => true, MsQueue<Cell<u8>> => true, TreiberStack<Cell<u8>> => true,
    );
    each_is!(RefUnwindSafe:
        BlockQueue<Cell<u8>> => true,
        MsQueue<Cell<u8>> => true, TreiberStack<Cell<u8>> => true,
        HarrisList<u8> => true, HarrisList<Cell<u8>> => false,
    );
}
