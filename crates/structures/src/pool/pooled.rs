//! An owned node.

use super::chunk::Chunk;
use super::heap;
use super::slot::{self, Slot, Vacant};
use std::fmt;
use std::marker::PhantomData;
use std::mem::ManuallyDrop;
use std::ops::{Deref, DerefMut};
use std::ptr::NonNull;

/// A value in a node of a [`Pool`](super::Pool), as a `Box` owns one on the heap.
///
/// It has the size of a pointer, has no lifetime, may go to other threads, and may outlive its pool. A
/// plain drop, by any thread, costs one exchange on a line of the heap it came from;
/// [`Session::free`](super::Session::free) costs less.
///
/// What is said of a node is said by functions, not methods, as those of `Box`: they are not in the way
/// of the value's.
///
/// ```
/// use corelay_structures::pool::{Pool, Pooled};
///
/// let session = Pool::new().session();
/// let mut node = session.alloc(String::from("one"));
/// node.push_str(", two");
/// assert_eq!(&*node, "one, two");
/// assert_eq!(Pooled::into_inner(node).len(), 8);
/// ```
pub struct Pooled<T> {
    /// A filled slot. Its type is left out: that of a cell would forbid `Pooled<&'static str>` to stand
    /// for a `Pooled<&'a str>`.
    slot: NonNull<()>,
    owns: PhantomData<T>,
}

// SAFETY: it owns the value and nothing else; its slot goes back through an inbox, from any thread.
unsafe impl<T: Send> Send for Pooled<T> {}
// SAFETY: a shared node gives shared references to the value, and nothing else.
unsafe impl<T: Sync> Sync for Pooled<T> {}

impl<T> Pooled<T> {
    /// The node of a slot that was just filled.
    #[inline(always)]
    pub(super) fn fill(slot: Vacant<T>, value: T) -> Self {
        Self {
            slot: slot.fill(value).cast(),
            owns: PhantomData,
        }
    }

    #[inline(always)]
    fn slot(&self) -> NonNull<Slot<T>> {
        self.slot.cast()
    }

    /// Drops the value and hands on its slot, also where the drop panics.
    #[inline(always)]
    pub(super) fn empty(node: Self, then: impl FnOnce(Vacant<T>)) {
        let node = ManuallyDrop::new(node);
        // SAFETY: a node's slot is filled and its own; the node ends here.
        unsafe { slot::empty(node.slot(), then) };
    }

    /// Moves the value out; with it comes its slot.
    #[inline(always)]
    pub(super) fn take(node: Self) -> (T, Vacant<T>) {
        let node = ManuallyDrop::new(node);
        // SAFETY: a node's slot is filled and its own; the node ends here.
        unsafe { slot::take(node.slot()) }
    }

    /// Moves the value out; the node goes back as by a plain drop.
    /// [`Session::take`](super::Session::take) costs less.
    ///
    /// ```
    /// use corelay_structures::pool::{Pool, Pooled};
    ///
    /// let node = Pool::new().session().alloc(7);
    /// assert_eq!(Pooled::into_inner(node), 7);
    /// ```
    #[inline]
    pub fn into_inner(node: Self) -> T {
        let (value, slot) = Self::take(node);
        heap::give_back(slot);
        value
    }

    /// Gives the node up for a pointer to its value, for structures whose nodes point at each other.
    ///
    /// Until [`from_raw`](Self::from_raw) makes a node of it again, the value is not dropped, and the
    /// memory of its heap is kept.
    ///
    /// ```
    /// use corelay_structures::pool::{Pool, Pooled};
    ///
    /// let session = Pool::new().session();
    /// let place = Pooled::into_raw(session.alloc(7));
    /// // SAFETY: it came from `into_raw`, and is used once.
    /// let node = unsafe { Pooled::from_raw(place) };
    /// assert_eq!(session.take(node), 7);
    /// ```
    #[inline(always)]
    #[must_use = "the node is lost without its pointer"]
    pub fn into_raw(node: Self) -> NonNull<T> {
        let node = ManuallyDrop::new(node);
        if cfg!(corelay_loom) {
            // loom's cells have something before their content.
            // SAFETY: a node's slot is filled and its own.
            let value = unsafe { Slot::value_mut(node.slot()) };
            // SAFETY: a slot is not at null.
            unsafe { NonNull::new_unchecked(value) }
        } else {
            // Not by way of a reference: the pointer stays good for the whole chunk.
            node.slot.cast()
        }
    }

    /// The node whose value is there.
    ///
    /// # Safety
    /// * `value` came from [`into_raw`](Self::into_raw) of a node of this type, itself or a copy of it:
    ///   a pointer that was made from a reference to the value does not reach the node around it.
    /// * It is used for this once, and neither it nor a reference is used from then on but through the
    ///   node.
    #[inline(always)]
    pub unsafe fn from_raw(value: NonNull<T>) -> Self {
        Self {
            // SAFETY: our caller's word.
            slot: unsafe { Chunk::slot_of_value(value) }.cast(),
            owns: PhantomData,
        }
    }
}

impl<T> Drop for Pooled<T> {
    #[inline]
    fn drop(&mut self) {
        // SAFETY: a node's slot is filled and its own; the node ends here.
        unsafe { slot::empty(self.slot(), heap::give_back) };
    }
}

impl<T> Deref for Pooled<T> {
    type Target = T;

    #[inline(always)]
    fn deref(&self) -> &T {
        // SAFETY: a node's slot is filled, and who writes it has the node for himself.
        let value = unsafe { Slot::value(self.slot()) };
        // SAFETY: as above.
        unsafe { &*value }
    }
}

impl<T> DerefMut for Pooled<T> {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: a node's slot is filled, and we have the node for ourselves.
        let value = unsafe { Slot::value_mut(self.slot()) };
        // SAFETY: as above.
        unsafe { &mut *value }
    }
}

impl<T> AsRef<T> for Pooled<T> {
    fn as_ref(&self) -> &T {
        self
    }
}

impl<T> AsMut<T> for Pooled<T> {
    fn as_mut(&mut self) -> &mut T {
        self
    }
}

impl<T: fmt::Debug> fmt::Debug for Pooled<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}
