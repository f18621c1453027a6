//! Reclamation: a node that was unlinked is freed when no thread can be reading it any more.
//!
//! A thread [pins](Domain::pin) the structure's [`Domain`] for the time of one call, and follows
//! links only while it is pinned. The thread that unlinks a node [retires](Guard::retire) it. The
//! node is freed once every guard is gone that was there at that time: a later one cannot find the
//! node. While a thread is pinned, no address that it has read is used for another node, so a
//! compare-exchange cannot mistake a new node for an old one (ABA).
//!
//! `crossbeam-epoch` keeps this promise (epochs: Fraser, "Practical lock-freedom", 2004).
//! It has one collector for the whole process: a domain takes no memory, and a node may be freed
//! after its structure is gone, by any thread that pins.
//!
//! # In the models
//! The model checkers do not see the atomics of `crossbeam-epoch`, and its epochs would multiply
//! their schedules. So there the domain keeps retired nodes until the structure is dropped, and
//! knows the guards for which each of them waits. It checks the two duties of a structure:
//!
//! * a node is retired once;
//! * no link that a pinned thread reads leads to a node that may be freed by now.
//!
//! Like an epoch's, the guard of a pin that comes after a retirement sees what came before that.

use corelay_sync::facade::atomic::{AtomicPtr, Ordering};
use std::marker::PhantomData;
use std::ptr;

pub(crate) use domain::{Domain, Guard};

/// Makes constructors that are `const`, except under loom, whose atomics have no such constructor.
macro_rules! const_fn {
    ($($(#[$attr:meta])* $vis:vis fn $name:ident($($argument:ident: $type:ty),*) -> $of:ty $body:block)*) => {$(
        $(#[$attr])*
        #[cfg(not(corelay_loom))]
        $vis const fn $name($($argument: $type),*) -> $of $body

        $(#[$attr])*
        #[cfg(corelay_loom)]
        $vis fn $name($($argument: $type),*) -> $of $body
    )*};
}
pub(crate) use const_fn;

/// A link: an atomic pointer to a node, or to none, with one bit for a mark.
pub(crate) struct Atomic<T>(AtomicPtr<T>);

impl<T> Atomic<T> {
    const_fn! {
        /// A link to no node.
        #[inline]
        pub(crate) fn null() -> Self {
            Self(AtomicPtr::new(ptr::null_mut()))
        }
    }

    /// A link to `node`.
    #[inline]
    pub(crate) fn new(node: Shared<'_, T>) -> Self {
        Self(AtomicPtr::new(node.raw))
    }

    /// Reads the link.
    #[inline]
    pub(crate) fn load<'g>(&self, order: Ordering, guard: &'g Guard<'_>) -> Shared<'g, T> {
        guard.step();
        let node = Shared::from_raw(self.0.load(order));
        guard.check(node);
        node
    }

    /// Reads a link that no other thread writes, which takes no guard.
    #[inline]
    pub(crate) fn load_own(&self) -> Shared<'_, T> {
        // Relaxed: no other thread writes.
        Shared::from_raw(self.0.load(Ordering::Relaxed))
    }

    /// Sets the link.
    #[inline]
    pub(crate) fn store(&self, node: Shared<'_, T>, order: Ordering) {
        self.0.store(node.raw, order);
    }

    /// Sets the link to `new` if it is `current`, and says whether it was. It fails without
    /// synchronizing.
    #[inline]
    pub(crate) fn compare_exchange(
        &self,
        current: Shared<'_, T>,
        new: Shared<'_, T>,
        order: Ordering,
    ) -> bool {
        let Self(link) = self;
        // Relaxed: after a failure nothing is read through what the link has instead.
        link.compare_exchange(current.raw, new.raw, order, Ordering::Relaxed)
            .is_ok()
    }
}

/// What a link has: a pointer to a node, or to none, with a mark or without. It was read under a
/// guard that lives for `'g`, so a node that it points to is not freed before.
pub(crate) struct Shared<'g, T> {
    raw: *mut T,
    of: PhantomData<&'g T>,
}

impl<T> Clone for Shared<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Shared<'_, T> {}

impl<T> PartialEq for Shared<'_, T> {
    fn eq(&self, other: &Self) -> bool {
        self.raw == other.raw
    }
}

/// The bit of the mark. It is free in pointers to nodes, which have links, so their addresses are
/// even.
const MARK: usize = 1;

impl<'g, T> Shared<'g, T> {
    /// A link's content.
    #[inline]
    pub(crate) fn from_raw(raw: *mut T) -> Self {
        const { assert!(align_of::<T>() > MARK, "there is a bit for the mark") };
        let of = PhantomData;
        Self { raw, of }
    }

    /// A pointer to no node.
    #[inline]
    pub(crate) fn null() -> Self {
        Self::from_raw(ptr::null_mut())
    }

    /// A pointer to a node that is to be linked.
    #[inline]
    pub(crate) fn new(node: Box<T>) -> Self {
        Self::from_raw(Box::into_raw(node))
    }

    /// Whether this points to no node.
    #[inline]
    pub(crate) fn is_null(self) -> bool {
        self.unmarked().raw.is_null()
    }

    #[inline]
    pub(crate) fn is_marked(self) -> bool {
        self.raw.addr() & MARK != 0
    }

    #[inline]
    pub(crate) fn marked(self) -> Self {
        Self::from_raw(self.raw.map_addr(|address| address | MARK))
    }

    #[inline]
    pub(crate) fn unmarked(self) -> Self {
        Self::from_raw(self.raw.map_addr(|address| address & !MARK))
    }

    /// The pointer, with its mark.
    #[inline]
    pub(crate) fn raw(self) -> *mut T {
        self.raw
    }

    /// The node, if this points to one.
    ///
    /// # Safety
    /// This was read from a structure's link under the guard that it borrows, or else the caller
    /// keeps the node from being freed. No thread borrows the node mutably.
    #[inline]
    pub(crate) unsafe fn as_ref(self) -> Option<&'g T> {
        // SAFETY: the node is not freed while the guard lives, by the domain's promise, or before
        // the caller does it, and is not borrowed mutably (the caller's duty).
        unsafe { self.unmarked().raw.as_ref() }
    }

    /// Takes the node back, if this points to one.
    ///
    /// # Safety
    /// Only the caller can reach the node, and it is not retired.
    #[inline]
    pub(crate) unsafe fn into_box(self) -> Option<Box<T>> {
        let node = self.unmarked().raw;
        if node.is_null() {
            return None;
        }
        // SAFETY: `new` made the node, as every node, in a box, and the caller alone has it.
        Some(unsafe { Box::from_raw(node) })
    }
}

/// Frees a retired node by `free`. A panic of a drop is not passed on: it would come out of a call
/// that happens to collect, for another structure perhaps. The panic hook has told of it.
///
/// # Safety
/// `free` may be called on the node, which nobody else has.
unsafe fn end<T>(node: *mut T, free: unsafe fn(*mut T)) {
    let free = std::panic::AssertUnwindSafe(|| {
        // SAFETY: the caller's duty.
        unsafe { free(node) };
    });
    if let Err(why) = std::panic::catch_unwind(free) {
        // To drop it could panic again.
        std::mem::forget(why);
    }
}

/// Frees a node, and drops what is in it.
///
/// # Safety
/// The node is a box that nobody else has.
unsafe fn free_box<T>(node: *mut T) {
    // SAFETY: the caller's duty.
    drop(unsafe { Box::from_raw(node) });
}

#[cfg(not(any(corelay_loom, corelay_shuttle)))]
mod domain {
    use super::{Shared, end, free_box};
    use std::marker::PhantomData;

    /// The nodes of one structure, as far as reclamation is concerned.
    pub(crate) struct Domain;

    impl Domain {
        pub(crate) const fn new() -> Self {
            Self
        }

        /// Pins: nodes that are retired from now on are not freed while the guard lives.
        #[inline]
        pub(crate) fn pin(&self) -> Guard<'_> {
            Guard(crossbeam_epoch::pin(), PhantomData)
        }
    }

    /// A thread's permission to follow the links of a structure. It stays on its thread.
    pub(crate) struct Guard<'d>(crossbeam_epoch::Guard, PhantomData<&'d Domain>);

    impl Guard<'_> {
        /// Frees `node`, and drops what is in it, once no thread can be reading it.
        ///
        /// # Safety
        /// The caller has unlinked the node: no thread that pins from now on can find it. It is
        /// retired once. What its drop drops is `Send` and `'static`, because that may happen on
        /// any thread, after the structure is gone.
        #[inline]
        pub(crate) unsafe fn retire<T>(&self, node: Shared<'_, T>) {
            // SAFETY: it is unlinked, and retired once (the caller's duties); every node is a box.
            unsafe { self.retire_by(node, free_box) };
        }

        /// Calls `free` on `node` once no thread can be reading it.
        ///
        /// # Safety
        /// As for [`Self::retire`]; and `free` may be called on a node that nobody else has.
        #[inline]
        pub(crate) unsafe fn retire_by<T>(&self, node: Shared<'_, T>, free: unsafe fn(*mut T)) {
            let node = node.unmarked().raw;
            // SAFETY: once no thread can be reading the node, nobody else has it: it is unlinked,
            // and retired once (the caller's duties).
            let free = move || unsafe { end(node, free) };
            // SAFETY: the function borrows nothing, and may run on any thread at any later time
            // (the caller's duty).
            unsafe { self.0.defer_unchecked(free) };
        }

        #[inline(always)]
        pub(super) fn step(&self) {}

        #[inline(always)]
        pub(super) fn check<T>(&self, _node: Shared<'_, T>) {}
    }
}

#[cfg(any(corelay_loom, corelay_shuttle))]
mod domain {
    use super::{Shared, end, free_box};
    use corelay_sync::facade::atomic::{AtomicUsize, Ordering, fence};
    use std::mem;
    // Not the checkers' mutex: it is no part of the protocol, and makes no schedules.
    use std::sync::{Mutex, MutexGuard};

    /// The retired nodes of one structure, and the guards for which they wait.
    pub(crate) struct Domain {
        state: Mutex<State>,
        steps: AtomicUsize,
    }

    struct State {
        next: u64,
        guards: Vec<u64>,
        retired: Vec<Retired>,
    }

    struct Retired {
        node: *mut (),
        /// Frees it. Called when nobody can have the node.
        free: Box<dyn FnOnce()>,
        waits_for: Vec<u64>,
    }

    impl Domain {
        const_fn! {
            pub(crate) fn new() -> Self {
                let state = State {
                    next: 0,
                    guards: Vec::new(),
                    retired: Vec::new(),
                };
                Self {
                    state: Mutex::new(state),
                    steps: AtomicUsize::new(0),
                }
            }
        }

        fn state(&self) -> MutexGuard<'_, State> {
            self.state
                .lock()
                .expect("nothing panics while it is locked")
        }

        pub(crate) fn pin(&self) -> Guard<'_> {
            let mut state = self.state();
            let number = state.next;
            state.next += 1;
            state.guards.push(number);
            if !state.retired.is_empty() {
                // SeqCst: pairs with the fence in `retire`; what was unlinked is not found.
                fence(Ordering::SeqCst);
            }
            Guard(self, number)
        }
    }

    impl Drop for Domain {
        fn drop(&mut self) {
            let retired = std::mem::take(&mut self.state().retired);
            for Retired { free, .. } in retired {
                // It was retired, and the structure is gone, so that nobody can have it.
                free();
            }
        }
    }

    pub(crate) struct Guard<'d>(&'d Domain, u64);

    impl Guard<'_> {
        /// # Safety
        /// As in ordinary builds.
        pub(crate) unsafe fn retire<T>(&self, node: Shared<'_, T>) {
            // SAFETY: the caller's duties; every node is a box.
            unsafe { self.retire_by(node, free_box) };
        }

        /// # Safety
        /// As in ordinary builds.
        pub(crate) unsafe fn retire_by<'n, T>(&self, node: Shared<'n, T>, free: unsafe fn(*mut T)) {
            // SeqCst: pairs with the fence in `pin`, which thus comes after the node was unlinked.
            fence(Ordering::SeqCst);
            let raw = node.unmarked().raw;
            // SAFETY: called when nobody else has the node, which is retired once.
            let free = move || unsafe { end(raw, free) };
            let free: Box<dyn FnOnce() + 'n> = Box::new(free);
            // SAFETY: it borrows nothing, and may be called at any later time (the caller's duty).
            let free: Box<dyn FnOnce()> = unsafe { mem::transmute(free) };
            let node = raw.cast();
            let mut state = self.0.state();
            let is_retired = state.retired.iter().any(|retired| retired.node == node);
            if !is_retired {
                let waits_for = state.guards.clone();
                let retired = Retired {
                    node,
                    free,
                    waits_for,
                };
                state.retired.push(retired);
            }
            drop(state);
            assert!(!is_retired, "a node is retired twice");
        }

        /// Lets other threads run before a link is read. Loom remembers only the last access of each
        /// word, so a thread that reads a link and then changes it hides that another one has read
        /// it. Writes to one word hide nothing.
        pub(super) fn step(&self) {
            // Relaxed: it orders nothing.
            self.0.steps.store(0, Ordering::Relaxed);
        }

        /// Panics if `node` may be freed by now.
        pub(super) fn check<T>(&self, node: Shared<'_, T>) {
            let node = node.unmarked().raw.cast();
            let state = self.0.state();
            let mut freed = state.retired.iter().filter(|it| it.waits_for.is_empty());
            let is_freed = freed.any(|retired| retired.node == node);
            drop(state);
            assert!(!is_freed, "a link leads to a node that may be freed");
        }
    }

    impl Drop for Guard<'_> {
        fn drop(&mut self) {
            let mut state = self.0.state();
            state.guards.retain(|&it| it != self.1);
            for retired in &mut state.retired {
                retired.waits_for.retain(|&it| it != self.1);
            }
        }
    }
}
