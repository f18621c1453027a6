//! A box whose memory is from mimalloc, whatever the program's allocator is.

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

/// A node of its own, from mimalloc.
#[derive(Debug)]
pub(super) struct MiBox(NonNull<Node>);

// SAFETY: it is its node's only owner, and mimalloc takes memory back in any thread.
unsafe impl Send for MiBox {}

impl MiBox {
    /// Moves a node there.
    pub(super) fn new(node: Node) -> Self {
        // SAFETY: a node has a size.
        let place = unsafe { MiMalloc.alloc(NODE) };
        let Some(place) = NonNull::new(place.cast::<Node>()) else {
            handle_alloc_error(NODE)
        };
        // SAFETY: it is room for a node, and nobody else's.
        unsafe { place.write(node) };
        Self(place)
    }
}

impl Drop for MiBox {
    fn drop(&mut self) {
        // SAFETY: it is from `alloc` with this layout, this is its only owner, and nodes own nothing.
        unsafe { MiMalloc.dealloc(self.0.as_ptr().cast(), NODE) };
    }
}

// SAFETY: the box is its node's only owner, and does not move it.
unsafe impl Owned for MiBox {
    fn into_raw(self) -> NonNull<Node> {
        ManuallyDrop::new(self).0
    }

    unsafe fn from_raw(node: NonNull<Node>) -> Self {
        Self(node)
    }
}
