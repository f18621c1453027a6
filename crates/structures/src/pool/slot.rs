//! A slot: the place of a value, or of the link to the next vacant slot.
//!
//! [`Vacant`] is the right to a slot that has no value, and [`Chain`] a list of such rights. Each slot
//! has at most one of them, or one [`Pooled`](super::Pooled), or lies in one inbox: who holds it is
//! alone with the slot. Rights are not dropped; a lost one is a slot that is never used again.

use corelay_sync::facade::cell::UnsafeCell;
use corelay_sync::prefetch_write;
// Not the facade's: a chain is one thread's at a time, and moves as a whole.
use std::cell::Cell;
use std::mem::ManuallyDrop;
use std::ptr::NonNull;

/// The rest of a chain.
pub(super) type Link<T> = Option<NonNull<Slot<T>>>;

#[repr(C)]
union Content<T> {
    /// While the slot is vacant, and in a chain.
    next: Link<T>,
    /// While it is filled.
    value: ManuallyDrop<T>,
}

/// As large as its value, and at least a link. Lies in a chunk, from where it never moves.
#[repr(transparent)]
pub(super) struct Slot<T>(UnsafeCell<Content<T>>);

impl<T> Slot<T> {
    /// What the model checker's cell has beside its content has to be made; ordinarily a slot is made
    /// of memory as it comes.
    pub(super) fn new() -> Self {
        Self(UnsafeCell::new(Content { next: None }))
    }

    /// The value, to be read.
    ///
    /// # Safety
    /// The slot is filled, and nobody writes or empties it while the pointer is used.
    #[inline(always)]
    pub(super) unsafe fn value(slot: NonNull<Self>) -> *const T {
        // SAFETY: filled, so its chunk lives.
        let slot = unsafe { slot.as_ref() };
        slot.0.with(|content| content.cast())
    }

    /// The value, to be written.
    ///
    /// # Safety
    /// The slot is filled, and nobody else uses it while the pointer is used.
    #[inline(always)]
    pub(super) unsafe fn value_mut(slot: NonNull<Self>) -> *mut T {
        // SAFETY: filled, so its chunk lives.
        let slot = unsafe { slot.as_ref() };
        slot.0.with_mut(|content| content.cast())
    }

    /// The link of a vacant slot.
    ///
    /// # Safety
    /// The slot is vacant, in a chain that the caller holds.
    #[inline(always)]
    unsafe fn next(slot: NonNull<Self>) -> Link<T> {
        // SAFETY: a slot that somebody holds lies in a living chunk.
        let slot = unsafe { slot.as_ref() };
        slot.0.with(|content| {
            let next = content.cast::<Link<T>>();
            // SAFETY: the caller holds it; in a chain it has a link.
            unsafe { next.read() }
        })
    }

    /// Sets the link of a vacant slot.
    ///
    /// # Safety
    /// The slot is vacant, and the caller holds it.
    #[inline(always)]
    pub(super) unsafe fn set_next(slot: NonNull<Self>, next: Link<T>) {
        // SAFETY: a slot that somebody holds lies in a living chunk.
        let slot = unsafe { slot.as_ref() };
        slot.0.with_mut(|content| {
            let place = content.cast::<Link<T>>();
            // SAFETY: the caller holds it; it has room for a link.
            unsafe { place.write(next) }
        });
    }

    /// Under a model checker: nobody else uses the slot now or later.
    pub(super) fn ends(&self) {
        self.0.with_mut(|_| ());
    }
}

/// The right to a slot without a value.
#[must_use = "a lost slot is never used again"]
pub(super) struct Vacant<T>(NonNull<Slot<T>>);

impl<T> Vacant<T> {
    /// The right to `slot`.
    ///
    /// # Safety
    /// The slot lies in a living chunk, has no value, and nobody else holds it.
    #[inline(always)]
    pub(super) unsafe fn new(slot: NonNull<Slot<T>>) -> Self {
        Self(slot)
    }

    /// Where it is.
    #[inline(always)]
    pub(super) fn slot(&self) -> NonNull<Slot<T>> {
        self.0
    }

    /// Puts the value in: the slot is filled, and the caller's.
    #[inline(always)]
    pub(super) fn fill(self, value: T) -> NonNull<Slot<T>> {
        // SAFETY: about to be filled, and nobody else holds it.
        let place = unsafe { Slot::value_mut(self.0) };
        // SAFETY: a slot has room for a value, aligned for it.
        unsafe { place.write(value) };
        self.0
    }
}

/// Drops the value of a slot and hands on the right to it, also where the drop panics.
///
/// # Safety
/// The slot is filled, and the caller's, who gives it up.
#[inline(always)]
pub(super) unsafe fn empty<T>(slot: NonNull<Slot<T>>, then: impl FnOnce(Vacant<T>)) {
    struct Then<T, F: FnOnce(Vacant<T>)> {
        slot: NonNull<Slot<T>>,
        then: Option<F>,
    }
    impl<T, F: FnOnce(Vacant<T>)> Drop for Then<T, F> {
        #[inline(always)]
        fn drop(&mut self) {
            if let Some(then) = self.then.take() {
                then(Vacant(self.slot));
            }
        }
    }
    let then = Then {
        slot,
        then: Some(then),
    };
    // SAFETY: our caller's word.
    let value = unsafe { Slot::value_mut(slot) };
    // SAFETY: filled, and not used again: from here on the slot is vacant.
    unsafe { value.drop_in_place() };
    drop(then);
}

/// Moves the value out of a slot; with it comes the right to the slot.
///
/// # Safety
/// As [`empty`].
#[inline(always)]
pub(super) unsafe fn take<T>(slot: NonNull<Slot<T>>) -> (T, Vacant<T>) {
    // SAFETY: our caller's word.
    let value = unsafe { Slot::value_mut(slot) };
    // SAFETY: filled, and not used again: from here on the slot is vacant.
    let value = unsafe { value.read() };
    (value, Vacant(slot))
}

/// Vacant slots, linked through themselves; the last one in comes out first.
pub(super) struct Chain<T>(Cell<Link<T>>);

impl<T> Chain<T> {
    pub(super) const fn new() -> Self {
        Self(Cell::new(None))
    }

    /// The chain that begins with `first`.
    ///
    /// # Safety
    /// Every slot that is reached from it is vacant, and nobody else holds one of them.
    pub(super) unsafe fn from_link(first: Link<T>) -> Self {
        Self(Cell::new(first))
    }

    #[inline(always)]
    pub(super) fn push(&self, slot: Vacant<T>) {
        // SAFETY: the right to it is in our hands.
        unsafe { Slot::set_next(slot.0, self.0.get()) };
        self.0.set(Some(slot.0));
    }

    #[inline(always)]
    pub(super) fn pop(&self) -> Option<Vacant<T>> {
        let first = self.0.get()?;
        // SAFETY: the chain holds the right to each of its slots.
        let next = unsafe { Slot::next(first) };
        if let Some(next) = next {
            // The next to be used: where others have freed it, its line is far away.
            prefetch_write(next.as_ptr());
        }
        self.0.set(next);
        Some(Vacant(first))
    }

    /// How many there are; looks at each.
    pub(super) fn count(&self) -> usize {
        let mut count = 0;
        let mut link = self.0.get();
        while let Some(slot) = link {
            count += 1;
            // SAFETY: the chain holds the right to each of its slots.
            link = unsafe { Slot::next(slot) };
        }
        count
    }

    /// Takes over the slots of `other`; its own are in no chain any more, so it has none.
    pub(super) fn replace_empty(&self, other: Self) {
        debug_assert!(self.0.get().is_none(), "slots would be lost");
        self.0.set(other.0.get());
    }
}
