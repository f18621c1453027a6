//! Handles that do not keep their value alive.

use super::Trust;
use crate::object::handle::Handle;
use crate::object::{Header, Object};
use std::any::type_name;
use std::fmt;
use std::ptr::NonNull;

/// A handle to a value that a trustee owns, which does not keep the value alive, as
/// [`std::sync::Weak`] for an `Arc`. It is made by [`Trust::downgrade`].
///
/// It keeps the memory in which the value lay, but nothing of the trustee's thread.
///
/// ```
/// # use corelay_delegate::{Trust, Trustees};
/// let trustees = Trustees::dedicated(1).start()?;
/// let cache = trustees.entrust(vec![1, 2]);
/// let weak = Trust::downgrade(&cache);
/// assert_eq!(weak.upgrade().map(|cache| cache.apply(|cache| cache.len())), Some(2));
/// drop(cache);
/// assert!(weak.upgrade().is_none());
/// # Ok::<(), corelay_delegate::StartError>(())
/// ```
pub struct Weak<T>(NonNull<Object<T>>);

// SAFETY: the value stays on its trustee, as for `Trust`, and the counts are atomic.
unsafe impl<T> Send for Weak<T> {}
// SAFETY: as for `Send`.
unsafe impl<T> Sync for Weak<T> {}

impl<T> Weak<T> {
    /// A handle to the value, or `None` if the last one has gone. Works anywhere, and asks no
    /// trustee.
    ///
    /// Requests through the handle are refused if the trustee has been shut down, as through any
    /// other.
    pub fn upgrade(&self) -> Option<Trust<T>> {
        if !self.object().retain_if_any() {
            return None;
        }
        // SAFETY: the handle has just been counted, so the object lives.
        Some(Trust::new(unsafe { Handle::from_raw(self.0.as_ptr()) }))
    }

    /// Whether two handles are of the same value, as [`std::sync::Weak::ptr_eq`].
    pub fn ptr_eq(&self, other: &Self) -> bool {
        self.0 == other.0
    }

    fn header(&self) -> *mut Header {
        self.0.as_ptr().cast()
    }

    fn object(&self) -> &Header {
        // SAFETY: this handle has a share in the object's memory.
        unsafe { &*self.header() }
    }
}

impl<T> Trust<T> {
    /// A handle to the same value that does not keep it alive.
    pub fn downgrade(this: &Self) -> Weak<T> {
        let object = NonNull::new(this.header()).expect("from a box");
        // SAFETY: this handle keeps the object alive.
        unsafe { object.as_ref() }.retain_memory();
        Weak(object.cast())
    }
}

impl<T> Clone for Weak<T> {
    fn clone(&self) -> Self {
        self.object().retain_memory();
        Self(self.0)
    }
}

impl<T> Drop for Weak<T> {
    fn drop(&mut self) {
        // SAFETY: this handle has a share, which goes away with it.
        unsafe { Header::release_memory(self.header()) };
    }
}

impl<T> fmt::Debug for Weak<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Weak<{}>", type_name::<T>())
    }
}
