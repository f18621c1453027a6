//! Counted references to objects.

use super::shared::Shared;
use super::{Header, Object};
use corelay_sync::facade::sync::Arc;
use std::ptr::NonNull;

/// A counted reference to an object. The object is dropped, on its trustee, after the last one.
pub(crate) struct Handle<T>(NonNull<Object<T>>);

impl<T> Handle<T> {
    /// Takes over the handle that `object` was made with.
    ///
    /// # Safety
    /// `object` lives, and the caller owns one of the handles that are counted.
    pub(crate) unsafe fn from_raw(object: *mut Object<T>) -> Self {
        Self(NonNull::new(object).expect("from a box"))
    }

    #[inline(always)]
    pub(crate) fn header(&self) -> *mut Header {
        self.0.as_ptr().cast()
    }

    /// The object's trustee.
    pub(crate) fn trustee(&self) -> &Arc<Shared> {
        // SAFETY: the object lives while this handle does.
        unsafe { &(*self.header()).trustee }
    }
}

impl<T> Clone for Handle<T> {
    fn clone(&self) -> Self {
        // SAFETY: the object lives while this handle does.
        unsafe { &*self.header() }.retain();
        Self(self.0)
    }
}

impl<T> Drop for Handle<T> {
    fn drop(&mut self) {
        // SAFETY: this handle is one of those that are counted, and goes away.
        unsafe { Header::release(self.header()) };
    }
}
