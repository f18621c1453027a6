//! A box with memory from mimalloc, whatever the program's allocator is.

#![allow(
    unsafe_code,
    reason = "memory from another allocator than the program's"
)]

use super::nodes::{Node, Owned};
use mimalloc::MiMalloc;
use std::alloc::{GlobalAlloc, Layout, handle_alloc_error};
use std::mem::ManuallyDrop;
use std::ptr::NonNull;

const NODE: Layout = Layout::new::<Node>();

/// A node that owns its memory from mimalloc.
#[derive(Debug)]
pub(super) struct MiBox(NonNull<Node>);

// SAFETY: the box is its node's only owner, and mimalloc takes memory back in any thread.
unsafe impl Send for MiBox {}

impl MiBox {
    /// Moves a node into new memory from mimalloc.
    pub(super) fn new(node: Node) -> Self {
        // SAFETY: `NODE` is the layout of a node, whose size is not zero.
        let place = unsafe { MiMalloc.alloc(NODE) };
        let Some(place) = NonNull::new(place.cast::<Node>()) else {
            handle_alloc_error(NODE)
        };
        // SAFETY: `alloc` has just returned this memory for `NODE`, and nothing else points to
        // it.
        unsafe { place.write(node) };
        Self(place)
    }
}

impl Drop for MiBox {
    fn drop(&mut self) {
        // SAFETY: the memory is from `alloc` with this layout, and `self` is its only owner, for
        // `into_raw` forgets the box. Nodes own nothing that would have to be dropped.
        unsafe { MiMalloc.dealloc(self.0.as_ptr().cast(), NODE) };
    }
}

// SAFETY: the box is its node's only owner, and never moves it.
unsafe impl Owned for MiBox {
    fn into_raw(self) -> NonNull<Node> {
        ManuallyDrop::new(self).0
    }

    unsafe fn from_raw(node: NonNull<Node>) -> Self {
        Self(node)
    }
}
