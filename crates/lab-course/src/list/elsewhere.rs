//! A box with memory from an allocator beside the program's: mimalloc or jemalloc.

#![allow(
    unsafe_code,
    reason = "memory from another allocator than the program's"
)]

use super::nodes::{Node, Owned};
use mimalloc::MiMalloc;
use std::alloc::{GlobalAlloc, Layout, handle_alloc_error};
use std::marker::PhantomData;
use std::mem::ManuallyDrop;
use std::ptr::NonNull;

const NODE: Layout = Layout::new::<Node>();

/// An allocator beside the program's. It takes memory back in any thread.
///
/// # Safety
/// `alloc` returns null, or memory of the layout `NODE` that nothing else uses until `free`.
pub(super) unsafe trait Allocator {
    /// Returns memory for a node, or null.
    fn alloc() -> *mut u8;

    /// Takes the memory of a node back.
    ///
    /// # Safety
    /// `memory` is from `alloc` of the same allocator, and was not given back before.
    unsafe fn free(memory: *mut u8);
}

/// The allocator mimalloc.
#[derive(Debug)]
pub(super) struct Mimalloc;

// SAFETY: mimalloc gives a block to one owner until it is freed.
unsafe impl Allocator for Mimalloc {
    fn alloc() -> *mut u8 {
        // SAFETY: `NODE` is the layout of a node, whose size is not zero.
        unsafe { MiMalloc.alloc(NODE) }
    }

    unsafe fn free(memory: *mut u8) {
        // SAFETY: the caller promises memory from `alloc`, which has asked for this layout.
        unsafe { MiMalloc.dealloc(memory, NODE) };
    }
}

/// The allocator jemalloc, by its names with a prefix.
#[cfg(all(feature = "jemalloc", unix))]
#[derive(Debug)]
pub(super) struct Jemalloc;

#[cfg(all(feature = "jemalloc", unix))]
// jemalloc aligns each block to its size class: 16 bytes or more for a node of 24.
const _: () = assert!(NODE.align() <= 16 && NODE.size() >= 16);

// SAFETY: jemalloc gives a block to one owner until it is freed.
#[cfg(all(feature = "jemalloc", unix))]
unsafe impl Allocator for Jemalloc {
    fn alloc() -> *mut u8 {
        // SAFETY: the size of a node is not zero, and no flags are given.
        unsafe { tikv_jemalloc_sys::mallocx(NODE.size(), 0) }.cast()
    }

    unsafe fn free(memory: *mut u8) {
        // SAFETY: the caller promises memory from `alloc`, which has asked for this size without
        // flags.
        unsafe { tikv_jemalloc_sys::sdallocx(memory.cast(), NODE.size(), 0) };
    }
}

/// A node that owns its memory from the allocator `A`.
#[derive(Debug)]
pub(super) struct BoxFrom<A: Allocator> {
    node: NonNull<Node>,
    from: PhantomData<A>,
}

// SAFETY: the box is its node's only owner, and the allocator takes memory back in any thread.
unsafe impl<A: Allocator> Send for BoxFrom<A> {}

impl<A: Allocator> BoxFrom<A> {
    /// Moves a node into new memory from the allocator.
    pub(super) fn new(node: Node) -> Self {
        let Some(place) = NonNull::new(A::alloc().cast::<Node>()) else {
            handle_alloc_error(NODE)
        };
        // SAFETY: `alloc` has just returned this memory for a node, and nothing else points to
        // it.
        unsafe { place.write(node) };
        Self {
            node: place,
            from: PhantomData,
        }
    }
}

impl<A: Allocator> Drop for BoxFrom<A> {
    fn drop(&mut self) {
        // SAFETY: the memory is from `alloc`, and `self` is its only owner, for `into_raw` forgets
        // the box. Nodes own nothing that would have to be dropped.
        unsafe { A::free(self.node.as_ptr().cast()) };
    }
}

// SAFETY: the box is its node's only owner, and never moves it.
unsafe impl<A: Allocator> Owned for BoxFrom<A> {
    fn into_raw(self) -> NonNull<Node> {
        ManuallyDrop::new(self).node
    }

    unsafe fn from_raw(node: NonNull<Node>) -> Self {
        Self {
            node,
            from: PhantomData,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::nodes::List;
    use super::*;

    fn nodes_come_and_go<A: Allocator + 'static>() {
        let list = std::thread::spawn(|| {
            let mut list: List<BoxFrom<A>> = List::default();
            (0..10_000).for_each(|key| list.push(BoxFrom::new(Node::new(key))));
            list
        });
        // The nodes are freed by another thread than made them.
        let list = list.join().unwrap();
        let mut sum = 0;
        list.walk(|key| sum += key).unwrap();
        assert_eq!(sum, 9_999 * 10_000 / 2);
        drop(list);
        super::super::memory::free_memory();
        drop(BoxFrom::<A>::new(Node::new(1)));
    }

    #[test]
    fn nodes_of_each_allocator_are_freed_in_another_thread() {
        nodes_come_and_go::<Mimalloc>();
        #[cfg(all(feature = "jemalloc", unix))]
        nodes_come_and_go::<Jemalloc>();
    }
}
