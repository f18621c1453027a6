//! The POSIX mutex (D17): the thesis's lock, of the C library. The standard library's mutex, the
//! method `mutex`, is another one on Linux.

use super::lock::Locks;
use super::{Kind, Method};
use crate::workload::operation::Workload;
use corelay_sync::{Session, Shared};
use std::cell::UnsafeCell;
use std::marker::PhantomData;

/// The method `pthread-mutex`.
pub(crate) const fn mutex<W: Workload>() -> Method<W> {
    Method {
        bytes_per_var: size_of::<PthreadMutex<W::Object>>() as u64,
        ..Method::new("pthread-mutex", Kind::Direct, |w, p, _| {
            Ok(Locks::boxed(w, p, PthreadMutex::new))
        })
    }
}

/// A value behind a `pthread_mutex_t`, on cache lines of its own.
#[repr(align(64))]
struct PthreadMutex<T> {
    mutex: UnsafeCell<libc::pthread_mutex_t>,
    value: UnsafeCell<T>,
}

// SAFETY: the mutex is made for threads; the value is touched by its owner alone, and goes from
// thread to thread.
#[allow(unsafe_code, reason = "the C library's mutex guards the value")]
unsafe impl<T: Send> Sync for PthreadMutex<T> {}

impl<T> PthreadMutex<T> {
    fn new(value: T) -> Self {
        Self {
            // It may move until it is locked for the first time.
            mutex: UnsafeCell::new(libc::PTHREAD_MUTEX_INITIALIZER),
            value: UnsafeCell::new(value),
        }
    }
}

impl<T> Drop for PthreadMutex<T> {
    #[allow(unsafe_code, reason = "the C library's mutex guards the value")]
    fn drop(&mut self) {
        // SAFETY: nobody has the mutex any more.
        unsafe { libc::pthread_mutex_destroy(self.mutex.get()) };
    }
}

impl<T> Shared for PthreadMutex<T> {
    type Value = T;

    type Session<'a>
        = PthreadSession<'a, T>
    where
        T: 'a;

    fn session(&self) -> PthreadSession<'_, T> {
        PthreadSession {
            lock: self,
            thread: PhantomData,
        }
    }
}

/// A thread's access to a value behind a POSIX mutex.
struct PthreadSession<'a, T> {
    lock: &'a PthreadMutex<T>,
    thread: PhantomData<*const ()>,
}

impl<T> Session for PthreadSession<'_, T> {
    type Value = T;

    #[allow(unsafe_code, reason = "the C library's mutex guards the value")]
    fn apply<R: Send, F: FnOnce(&mut T) -> R + Send>(&mut self, f: F) -> R {
        /// Unlocks, also if the closure panics.
        struct Locked(*mut libc::pthread_mutex_t);
        impl Drop for Locked {
            fn drop(&mut self) {
                // SAFETY: this thread has locked the mutex. (The operations of workloads do not
                // leave their thread.)
                unsafe { libc::pthread_mutex_unlock(self.0) };
            }
        }
        let mutex = self.lock.mutex.get();
        // SAFETY: the mutex is initialised and does not move while it is borrowed.
        let refused = unsafe { libc::pthread_mutex_lock(mutex) };
        assert_eq!(
            refused, 0,
            "a mutex that is not locked by this thread can be locked"
        );
        let locked = Locked(mutex);
        // SAFETY: this thread has the mutex.
        let result = f(unsafe { &mut *self.lock.value.get() });
        drop(locked);
        result
    }
}
