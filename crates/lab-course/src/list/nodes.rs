//! A doubly linked list whose nodes may come from anywhere: each from an allocator, all from one
//! array, or from a pool.

#![allow(
    unsafe_code,
    reason = "links in both directions have no owner that the compiler could follow"
)]

use corelay_structures::pool::Pooled;
use std::marker::PhantomData;
use std::ptr::{self, NonNull};

/// A key between two links: 24 bytes.
#[derive(Debug)]
pub(crate) struct Node {
    prev: *mut Node,
    next: *mut Node,
    key: u64,
}

// SAFETY: only the list that owns a node follows its links. A list is sent with all its nodes,
// and the links of a node without a list mean nothing.
unsafe impl Send for Node {}

impl Node {
    /// Makes a node that is in no list.
    pub(crate) fn new(key: u64) -> Self {
        Self {
            prev: ptr::null_mut(),
            next: ptr::null_mut(),
            key,
        }
    }
}

/// An owner of one node.
///
/// # Safety
/// From `into_raw` to `from_raw` the node stays where it is, and only the holder of the pointer
/// touches it.
pub(crate) unsafe trait Owned: Sized {
    /// Gives the node away as a pointer.
    fn into_raw(self) -> NonNull<Node>;

    /// Takes the node back.
    ///
    /// # Safety
    /// `node` is from `into_raw` of the same type, and was not taken back before.
    unsafe fn from_raw(node: NonNull<Node>) -> Self;
}

// SAFETY: a box is its node's only owner, and does not move it.
unsafe impl Owned for Box<Node> {
    fn into_raw(self) -> NonNull<Node> {
        NonNull::from(Box::leak(self))
    }

    unsafe fn from_raw(node: NonNull<Node>) -> Self {
        // SAFETY: the caller promises that `node` is from `into_raw`, which leaked a box, and
        // that this is the only time it is taken back.
        unsafe { Self::from_raw(node.as_ptr()) }
    }
}

// SAFETY: a mutable borrow is exclusive and keeps the node from being moved.
unsafe impl Owned for &mut Node {
    fn into_raw(self) -> NonNull<Node> {
        NonNull::from(self)
    }

    unsafe fn from_raw(mut node: NonNull<Node>) -> Self {
        // SAFETY: the caller promises that `node` is from `into_raw` of this type. So the mutable
        // borrow given there still lasts, and its only other copy was the pointer.
        unsafe { node.as_mut() }
    }
}

// SAFETY: the handle is its node's only owner, and the pool does not move nodes.
unsafe impl Owned for Pooled<Node> {
    fn into_raw(self) -> NonNull<Node> {
        Self::into_raw(self)
    }

    unsafe fn from_raw(node: NonNull<Node>) -> Self {
        // SAFETY: the caller promises that `node` is from `into_raw` of a pool's handle, and that
        // this is the only time it is taken back.
        unsafe { Self::from_raw(node) }
    }
}

/// A doubly linked list that owns its nodes. Its size is half a cache line, so two heads side by
/// side share one.
#[derive(Debug)]
#[repr(align(32))]
pub(crate) struct List<N: Owned> {
    first: *mut Node,
    last: *mut Node,
    len: u64,
    nodes: PhantomData<N>,
}

// SAFETY: a list is sent with all its nodes, which nothing else can reach.
unsafe impl<N: Owned + Send> Send for List<N> {}

/// Size of a list's head in bytes.
pub const HEAD: usize = size_of::<List<Box<Node>>>();

impl<N: Owned> Default for List<N> {
    fn default() -> Self {
        Self {
            first: ptr::null_mut(),
            last: ptr::null_mut(),
            len: 0,
            nodes: PhantomData,
        }
    }
}

impl<N: Owned> List<N> {
    /// Makes `node` the first of the list.
    ///
    /// Never inlined. In an inlined copy the compiler would keep the head in registers for the
    /// whole loop, which an ordinary use of a list does not allow, and false sharing would not
    /// show.
    #[inline(never)]
    pub(crate) fn push(&mut self, node: N) {
        let raw = node.into_raw().as_ptr();
        // SAFETY: `into_raw` gave the node to this list, and no other reference to it exists.
        let node = unsafe { &mut *raw };
        node.prev = ptr::null_mut();
        node.next = self.first;
        // SAFETY: `first` is null or a node that `push` gave to this list, which alone touches
        // it.
        match unsafe { self.first.as_mut() } {
            Some(first) => first.prev = raw,
            None => self.last = raw,
        }
        self.first = raw;
        self.len += 1;
    }

    /// Removes the first node.
    pub(crate) fn pop(&mut self) -> Option<N> {
        let raw = NonNull::new(self.first)?;
        // SAFETY: `first` is a node that `push` gave to this list, which alone touches it.
        self.first = unsafe { raw.as_ref() }.next;
        // SAFETY: links lead to nodes of this list, which alone touches them, or are null.
        match unsafe { self.first.as_mut() } {
            Some(first) => first.prev = ptr::null_mut(),
            None => self.last = ptr::null_mut(),
        }
        self.len -= 1;
        // SAFETY: the pointer is from `into_raw` in `push`, and the list has just dropped its
        // only link to the node.
        Some(unsafe { N::from_raw(raw) })
    }

    /// Appends all nodes of another list without walking them.
    pub(crate) fn append(&mut self, mut other: Self) {
        let (first, last) = (other.first, other.last);
        let len = std::mem::take(&mut other.len);
        (other.first, other.last) = (ptr::null_mut(), ptr::null_mut());
        // SAFETY: `first` is null or a node of `other`, whose links were cleared above.
        let Some(head) = (unsafe { first.as_mut() }) else {
            return;
        };
        head.prev = self.last;
        // SAFETY: `last` is null or a node of this list, which alone touches it.
        match unsafe { self.last.as_mut() } {
            Some(end) => end.next = first,
            None => self.first = first,
        }
        self.last = last;
        self.len += len;
    }

    /// Calls `visit` with each key from the first to the last, and checks the links back.
    ///
    /// # Errors
    /// A sentence that says which link or length is wrong.
    pub(crate) fn walk(&self, mut visit: impl FnMut(u64)) -> Result<(), String> {
        let (mut at, mut before, mut seen) = (self.first, ptr::null_mut(), 0);
        // SAFETY: links lead to nodes of this list, which alone touches them, or are null.
        while let Some(node) = unsafe { at.as_ref() } {
            if node.prev != before {
                return Err(format!(
                    "the link back of node {seen} does not lead to the one before"
                ));
            }
            if seen == self.len {
                return Err(format!("there are more than {} nodes", self.len));
            }
            visit(node.key);
            (before, at, seen) = (at, node.next, seen + 1);
        }
        if before != self.last || seen != self.len {
            return Err(format!(
                "the list has {} nodes, and {seen} are linked",
                self.len
            ));
        }
        Ok(())
    }
}

impl<N: Owned> Drop for List<N> {
    fn drop(&mut self) {
        while self.pop().is_some() {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys<N: Owned>(list: &List<N>) -> Vec<u64> {
        let mut keys = Vec::new();
        list.walk(|key| keys.push(key)).unwrap();
        keys
    }

    #[test]
    fn a_head_is_half_a_line() {
        assert_eq!((HEAD, size_of::<Node>()), (32, 24));
    }

    #[test]
    fn pushes_pops_and_appends_keep_the_order() {
        let list = |keys: std::ops::Range<u64>| {
            let mut list = List::default();
            keys.for_each(|key| list.push(Box::new(Node::new(key))));
            list
        };
        let mut all = list(0..3);
        assert_eq!(keys(&all), [2, 1, 0]);
        all.append(list(3..5));
        all.append(list(0..0));
        assert_eq!(keys(&all), [2, 1, 0, 4, 3]);
        let mut none = list(0..0);
        none.append(list(7..9));
        assert_eq!((keys(&none), none.len), (vec![8, 7], 2));
        let popped: Vec<u64> = std::iter::from_fn(|| all.pop()).map(|n| n.key).collect();
        assert_eq!(popped, [2, 1, 0, 4, 3]);
        assert!(all.len == 0 && keys(&all).is_empty());
        all.push(Box::new(Node::new(9)));
        assert_eq!(keys(&all), [9]);
    }

    #[test]
    fn nodes_of_an_array_can_be_used_again() {
        let mut array = [1, 2, 3].map(Node::new);
        for _ in 0..2 {
            let mut list = List::default();
            array.iter_mut().for_each(|node| list.push(node));
            assert_eq!(keys(&list), [3, 2, 1]);
        }
    }

    #[test]
    fn a_broken_link_is_found() {
        let mut array = [1, 2, 3].map(Node::new);
        let second = ptr::from_mut(&mut array[1]);
        let mut list = List::default();
        array.iter_mut().for_each(|node| list.push(node));
        // SAFETY: nothing else uses the array during this write.
        unsafe { (*second).prev = ptr::null_mut() };
        assert!(list.walk(|_| {}).unwrap_err().contains("node 1"));
        list.len = 2;
        assert!(list.walk(|_| {}).is_err());
        list.len = 3;
    }
}
