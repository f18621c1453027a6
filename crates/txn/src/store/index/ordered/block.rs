//! The contents of a node: an array of entries that never changes after it was published.

use super::Record;
use super::node::Node;
use crate::store::garbage::Garbage;
use corelay_sync::facade::Shadow;
use std::mem::MaybeUninit;
use std::ops::Range;
use std::ptr;

/// The contents of a node, for up to `N` entries.
///
/// Entry `i` of a leaf is a record; entry `i` of an inner node is a child. Every reference to a
/// published block lives within a guard's life; see [`Node`].
#[repr(C)]
pub(super) struct Block<R: Record, const N: usize> {
    /// The prefix of the first key that is too high for this node: that of its right sibling's low
    /// key. `u64::MAX` if there is no sibling. 0 if the node is dead, so that nobody stays.
    high_prefix: u64,
    /// The right sibling, or null; if the node is dead, the node that has taken its range over.
    right: *const Node<R, N>,
    len: u16,
    /// 0 for a leaf.
    level: u8,
    is_dead: bool,
    shadow: Shadow,
    /// The first `len` are initialised.
    prefixes: [MaybeUninit<u64>; N],
    /// The first `len` are initialised: `*const R` in a leaf, `*const Node<R, N>` elsewhere.
    pointers: [MaybeUninit<*const ()>; N],
}

impl<R: Record, const N: usize> Block<R, N> {
    /// A block without entries. It has the level, and the end, of `like`.
    pub(super) fn like(like: &Self) -> Box<Self> {
        Self::with(like.level, like.high_prefix, like.right, false)
    }

    /// The contents of the only node of a level.
    pub(super) fn alone(level: u8) -> Box<Self> {
        Self::with(level, u64::MAX, ptr::null(), false)
    }

    /// The contents of a node whose range `heir` has taken over.
    pub(super) fn dead(level: u8, heir: &Node<R, N>) -> Box<Self> {
        Self::with(level, 0, heir, true)
    }

    fn with(level: u8, high_prefix: u64, right: *const Node<R, N>, is_dead: bool) -> Box<Self> {
        const { assert!(N >= 2 && N < 1 << 15) };
        let mut block = Box::<Self>::new_uninit();
        let place = block.as_mut_ptr();
        macro_rules! set {
            ($($field:ident),*) => { $(
                // SAFETY: the place is in the box, which is this function's own.
                let field = unsafe { &raw mut (*place).$field };
                // SAFETY: as above; the field is not initialised yet.
                unsafe { field.write($field) };
            )* };
        }
        let (len, shadow) = (0, Shadow::new(1));
        shadow.write(0, 1);
        set!(high_prefix, right, len, level, is_dead, shadow);
        // SAFETY: every field is set but the two arrays, which need not be.
        unsafe { block.assume_init() }
    }

    /// Adds an entry. The pointer's type is as the level demands.
    pub(super) fn push(&mut self, prefix: u64, pointer: *const ()) {
        let at = usize::from(self.len);
        self.prefixes[at].write(prefix);
        self.pointers[at].write(pointer);
        self.len += 1;
    }

    /// Adds entries of `from`, a block of the same level.
    pub(super) fn append(&mut self, from: &Self, range: Range<usize>) {
        debug_assert!(range.end <= from.len());
        let to = self.len()..self.len() + range.len();
        self.prefixes[to.clone()].copy_from_slice(&from.prefixes[range.clone()]);
        self.pointers[to.clone()].copy_from_slice(&from.pointers[range]);
        self.len = to.end as u16;
    }

    /// Has the block end where `right` begins.
    pub(super) fn end_at(&mut self, high_prefix: u64, right: *const Node<R, N>) {
        (self.high_prefix, self.right) = (high_prefix, right);
    }

    #[inline(always)]
    pub(super) fn len(&self) -> usize {
        usize::from(self.len)
    }

    #[inline(always)]
    pub(super) fn level(&self) -> u8 {
        self.level
    }

    #[inline(always)]
    pub(super) fn is_leaf(&self) -> bool {
        self.level == 0
    }

    #[inline(always)]
    pub(super) fn is_dead(&self) -> bool {
        self.is_dead
    }

    #[inline(always)]
    pub(super) fn high_prefix(&self) -> u64 {
        self.high_prefix
    }

    /// The right sibling; of a dead node, the node that has taken its range over.
    #[inline(always)]
    pub(super) fn right(&self) -> Option<&Node<R, N>> {
        // SAFETY: the sibling, or the heir, was alive when this block was the node's contents. The
        // guard under which the block is read is older than that, or than the block's end as
        // contents, so it keeps the node.
        unsafe { self.right.as_ref() }
    }

    #[inline(always)]
    pub(super) fn prefixes(&self) -> &[u64] {
        // SAFETY: `push` and `append` have initialised `len` entries.
        unsafe { std::slice::from_raw_parts(self.prefixes.as_ptr().cast(), self.len()) }
    }

    /// The pointers of the entries. Their type is as the level says.
    #[inline(always)]
    pub(super) fn pointers(&self) -> &[*const ()] {
        // SAFETY: `push` and `append` have initialised `len` entries.
        unsafe { std::slice::from_raw_parts(self.pointers.as_ptr().cast(), self.len()) }
    }

    /// Child `at` of an inner node.
    #[inline(always)]
    pub(super) fn child(&self, at: usize) -> &Node<R, N> {
        debug_assert!(!self.is_leaf());
        // SAFETY: the level says that this is a node. It was alive when this block was contents, as
        // a dead one is in no parent; so the guard keeps it.
        unsafe { &*self.pointers()[at].cast() }
    }

    /// Record `at` of a leaf.
    #[inline(always)]
    pub(super) fn record(&self, at: usize) -> &R {
        self.records()[at]
    }

    /// The records of a leaf, in the order of their keys.
    #[inline(always)]
    pub(super) fn records(&self) -> &[&R] {
        assert!(self.is_leaf());
        let pointers: *const [*const ()] = self.pointers();
        // SAFETY: the level says that these are records. `insert` demands that they live until they
        // are unlinked and the guards of that time have ended: ours is one if a record of this
        // block was unlinked. A reference has the form of a pointer.
        unsafe { &*(pointers as *const [&R]) }
    }

    /// The key of entry `at`. `None` if the child has no lower bound.
    #[inline(always)]
    pub(super) fn key(&self, at: usize) -> Option<&R::Key> {
        match self.is_leaf() {
            true => Some(self.record(at).key()),
            false => self.child(at).low(),
        }
    }

    /// Tells the model checker that this thread reads the block now.
    #[inline(always)]
    pub(super) fn is_read(&self) {
        self.shadow.read(0, 1);
    }

    /// The block as garbage.
    ///
    /// # Safety
    /// The block came from a box, no node has it as its contents any more, and nobody else retires
    /// it.
    pub(super) unsafe fn garbage(&self) -> Garbage {
        unsafe fn free<R: Record, const N: usize>(block: *mut ()) {
            // SAFETY: by the duties of `garbage`.
            drop(unsafe { Box::from_raw(block.cast::<Block<R, N>>()) });
        }
        let address = ptr::from_ref(self).cast_mut().cast();
        // SAFETY: the caller promises that nobody finds the block from now on. A block has only
        // numbers and pointers, which any thread may drop.
        unsafe { Garbage::new(address, size_of::<Self>(), free::<R, N>) }
    }
}

impl<R: Record, const N: usize> Drop for Block<R, N> {
    fn drop(&mut self) {
        self.shadow.write(0, 1);
    }
}
