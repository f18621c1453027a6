//! Memory that no new transaction can reach, until it can be freed.

use super::slab::Class;
use std::any::Any;
use std::ptr::NonNull;

/// A block of memory that was taken out of a shared structure, and how to free it.
#[derive(Debug)]
pub(crate) struct Garbage {
    address: *mut (),
    /// The size of the block, in bytes, as far as its owner knows it.
    bytes: u32,
    /// The block's class, if it comes from the store's slabs; then `free` only drops what is in it.
    class: Option<Class>,
    free: unsafe fn(*mut ()),
}

impl Garbage {
    /// The block at `address`, which `free` frees.
    ///
    /// # Safety
    /// * `free(address)` may be called once, on any thread, after every transaction that is pinned
    ///   now has ended.
    /// * Nobody else frees the block.
    pub(crate) unsafe fn new(address: *mut (), bytes: usize, free: unsafe fn(*mut ())) -> Self {
        Self {
            address,
            bytes: u32::try_from(bytes).unwrap_or(u32::MAX),
            class: None,
            free,
        }
    }

    /// A `T` that was placed in the store's slabs.
    ///
    /// # Safety
    /// As for [`new`](Self::new); `value` was placed by a cache of the slabs that the block is
    /// given back to.
    pub(crate) unsafe fn placed<T>(value: *mut T) -> Self {
        unsafe fn drop_in_place<T>(address: *mut ()) {
            // SAFETY: by the duties of `placed`, nobody has the value any more.
            unsafe { address.cast::<T>().drop_in_place() };
        }
        unsafe fn free<T>(address: *mut ()) {
            // SAFETY: by the duties of `placed`, this is the box's address and nobody else frees it.
            drop(unsafe { Box::from_raw(address.cast::<T>()) });
        }
        let class = const { Class::of::<T>() };
        Self {
            address: value.cast(),
            bytes: const { size_of::<T>() as u32 },
            class,
            free: if class.is_some() {
                drop_in_place::<T>
            } else {
                free::<T>
            },
        }
    }

    /// A box that was taken apart by [`Box::into_raw`].
    ///
    /// # Safety
    /// As for [`new`](Self::new); `value` came from `Box::into_raw`.
    #[cfg(any(test, corelay_loom))]
    pub(crate) unsafe fn boxed<T: Send>(value: *mut T) -> Self {
        unsafe fn free<T>(address: *mut ()) {
            // SAFETY: by the duties of `boxed`, this is the box's address and nobody else frees it.
            drop(unsafe { Box::from_raw(address.cast::<T>()) });
        }
        // SAFETY: the caller keeps the duties.
        unsafe { Self::new(value.cast(), size_of::<T>(), free::<T>) }
    }

    pub(crate) fn bytes(&self) -> usize {
        self.bytes as usize
    }

    /// Frees the block, or drops what is in it; then returns the block, which is to be given back.
    ///
    /// # Safety
    /// Nobody has a reference into the block any more.
    pub(crate) unsafe fn free(self) -> Option<(Class, NonNull<u8>)> {
        // SAFETY: the caller's promise, and the promises of `new`.
        unsafe { (self.free)(self.address) };
        self.class.zip(NonNull::new(self.address.cast()))
    }
}

// SAFETY: `new` demands that any thread may free the block.
unsafe impl Send for Garbage {}

/// A pinned transaction: what it reaches in a shared structure is not freed before the guard ends.
///
/// # Safety
/// An implementation frees a retired block only after every guard has ended that existed when the
/// block was retired.
pub(crate) unsafe trait Guard {
    /// Frees `garbage` after every guard that exists now has ended.
    fn retire(&self, garbage: Garbage);
}

/// Drops the payload of a panic in the middle of a commit. The payload of a `panic!` is a text; any other
/// is leaked, for its destructor could do anything.
pub(crate) fn discard(payload: Box<dyn Any + Send>) {
    if !payload.is::<&'static str>() && !payload.is::<String>() {
        std::mem::forget(payload);
    }
}
