//! Reader-writer locks: of the standard library, and of the crate `parking_lot`.
//!
//! A workload's operation may change its object, so the methods of this file take the lock for
//! writing. Structures whose reads change nothing have methods of the same names whose readers
//! share the lock (`workload::structure::rivals`).

use super::lock::Locks;
use super::unread::Unread;
use super::{Kind, Method};
use crate::workload::operation::Workload;
use corelay_sync::{Session, Shared};
use std::sync::{PoisonError, RwLock};

/// The name of the standard library's lock.
pub(crate) const STD: &str = "rwlock";

/// The name of `parking_lot`'s lock.
pub(crate) const PARKING_LOT: &str = "parking-lot-rwlock";

/// The method `rwlock`.
pub(super) const fn std<W: Workload>() -> Method<W> {
    method::<_, RwLock<_>>(STD)
}

/// The method `parking-lot-rwlock`.
pub(super) const fn parking_lot<W: Workload>() -> Method<W> {
    method::<_, parking_lot::RwLock<_>>(PARKING_LOT)
}

const fn method<W: Workload, L: ReadWrite<Value = Unread<W::Object>>>(
    name: &'static str,
) -> Method<W> {
    let method = Method::new(name, Kind::Direct, |workload, point, _| {
        Ok(Locks::boxed(workload, point, |object| {
            Written(L::new(Unread::new(object)))
        }))
    });
    method.taking(size_of::<Written<L>>() as u64)
}

/// A reader-writer lock around a value. A panic does not poison it.
pub(crate) trait ReadWrite: Send + Sync + 'static {
    /// The type of the value.
    type Value;

    /// Wraps `value`; the lock is free.
    fn new(value: Self::Value) -> Self;

    /// Runs `f` on the value, which other readers share.
    fn read<R>(&self, f: impl FnOnce(&Self::Value) -> R) -> R;

    /// Runs `f` with exclusive access to the value.
    fn write<R>(&self, f: impl FnOnce(&mut Self::Value) -> R) -> R;
}

impl<T: Send + Sync + 'static> ReadWrite for RwLock<T> {
    type Value = T;

    fn new(value: T) -> Self {
        Self::new(value)
    }

    #[inline(always)]
    fn read<R>(&self, f: impl FnOnce(&T) -> R) -> R {
        f(&self.read().unwrap_or_else(PoisonError::into_inner))
    }

    #[inline(always)]
    fn write<R>(&self, f: impl FnOnce(&mut T) -> R) -> R {
        f(&mut self.write().unwrap_or_else(PoisonError::into_inner))
    }
}

impl<T: Send + Sync + 'static> ReadWrite for parking_lot::RwLock<T> {
    type Value = T;

    fn new(value: T) -> Self {
        Self::new(value)
    }

    #[inline(always)]
    fn read<R>(&self, f: impl FnOnce(&T) -> R) -> R {
        f(&self.read())
    }

    #[inline(always)]
    fn write<R>(&self, f: impl FnOnce(&mut T) -> R) -> R {
        f(&mut self.write())
    }
}

/// A reader-writer lock that is only taken for writing, on cache lines of its own.
#[repr(align(64))]
struct Written<L>(L);

impl<T, L: ReadWrite<Value = Unread<T>>> Shared for Written<L> {
    type Value = T;
    type Session<'a> = WriteSession<'a, L>;

    #[inline(always)]
    fn session(&self) -> WriteSession<'_, L> {
        WriteSession(&self.0)
    }
}

/// A thread's access to a lock that is only taken for writing.
struct WriteSession<'a, L>(&'a L);

impl<T, L: ReadWrite<Value = Unread<T>>> Session for WriteSession<'_, L> {
    type Value = T;

    #[inline(always)]
    fn apply<R: Send, F: FnOnce(&mut T) -> R + Send>(&mut self, f: F) -> R {
        self.0.write(|value| f(value.get_mut()))
    }
}
