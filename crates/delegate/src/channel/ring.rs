//! The memory of a channel: its three rings, allocated and grown together.

use corelay_sync::facade::Shadow;
use std::alloc::{Layout, alloc, dealloc, handle_alloc_error};

/// Longest request kept in the ring itself: 2 words of header and 25 of captures (200 B).
/// Longer or over-aligned captures are boxed. On the reference machine a boxed 80-byte
/// capture costs several times an inline one, since it is freed on another thread.
pub(crate) const MAX_CAPTURE_WORDS: usize = 25;

/// Longest answer kept in the ring itself, in words. Longer ones are boxed.
pub(crate) const MAX_ANSWER_WORDS: usize = 8;

/// Words behind the end of a ring, so that a record that begins before the end never
/// has to be split: the units it covers at the beginning of the next lap stay unused.
const SLACK: usize = 2 + MAX_CAPTURE_WORDS;

/// Units that are never given to ordinary requests: the jump into a larger ring takes
/// [`JUMP_UNITS`], and the carry of [`Position`](super::word::Position) one.
pub(crate) const SPARE: usize = JUMP_UNITS + 1;

/// Units of a jump record.
pub(crate) const JUMP_UNITS: usize = 3;

/// Units of the first ring. With it a channel takes less than 4 KiB.
pub(crate) const FIRST_UNITS: usize = if corelay_sync::facade::MODEL { 16 } else { 64 };

/// The callback ring has this many units per unit of the other two.
pub(crate) const CALLBACK_FACTOR: usize = 4;

/// A request ring, an answer ring of as many units (8 bytes each), and the client's own
/// callback ring of [`CALLBACK_FACTOR`] times as many.
///
/// An answer takes no more units than its request, a callback no more than
/// [`CALLBACK_FACTOR`] times as many, and all are freed in order when the client has
/// reaped them: room for a request is room for its answer and its callback.
pub(crate) struct Rings {
    requests: *mut u64,
    answers: *mut u64,
    callbacks: *mut u64,
    mask: u32,
    requests_shadow: Shadow,
    answers_shadow: Shadow,
}

impl Rings {
    /// `units` must be a power of two.
    pub(crate) fn new(units: usize) -> Box<Self> {
        assert!(units.is_power_of_two() && units < 1 << 30);
        Box::new(Self {
            requests: allocate(units),
            answers: allocate(units),
            callbacks: allocate(units * CALLBACK_FACTOR),
            mask: units as u32 - 1,
            requests_shadow: Shadow::new(units + SLACK),
            answers_shadow: Shadow::new(units + SLACK),
        })
    }

    /// Units of either ring.
    #[inline(always)]
    pub(crate) fn units(&self) -> u32 {
        self.mask + 1
    }

    /// Where the request at `cursor` lies.
    #[inline(always)]
    pub(crate) fn request(&self, cursor: u32) -> *mut u64 {
        // SAFETY: masked by the ring's size, so inside its allocation.
        unsafe { self.requests.add((cursor & self.mask) as usize) }
    }

    /// Where the answer at `cursor` lies.
    #[inline(always)]
    pub(crate) fn answer(&self, cursor: u32) -> *mut u64 {
        // SAFETY: masked by the ring's size, so inside its allocation.
        unsafe { self.answers.add((cursor & self.mask) as usize) }
    }

    /// Where the callback at `cursor` lies.
    #[inline(always)]
    pub(crate) fn callback(&self, cursor: u32) -> *mut u64 {
        let mask = self.mask * CALLBACK_FACTOR as u32 + (CALLBACK_FACTOR as u32 - 1);
        // SAFETY: masked by the ring's size, so inside its allocation.
        unsafe { self.callbacks.add((cursor & mask) as usize) }
    }

    /// Tells the model that the calling side owns these units of the request ring now.
    #[inline(always)]
    pub(crate) fn touch_request(&self, cursor: u32, units: usize) {
        self.requests_shadow.write((cursor & self.mask) as usize, units);
    }

    /// Tells the model that the calling side owns these units of the answer ring now.
    #[inline(always)]
    pub(crate) fn touch_answer(&self, cursor: u32, units: usize) {
        self.answers_shadow.write((cursor & self.mask) as usize, units);
    }
}

impl Drop for Rings {
    fn drop(&mut self) {
        let units = self.units() as usize;
        // SAFETY: allocated in `new` with this layout; nobody uses the rings any more.
        unsafe { dealloc(self.requests.cast(), layout(units)) };
        // SAFETY: as above.
        unsafe { dealloc(self.answers.cast(), layout(units)) };
        // SAFETY: as above.
        unsafe { dealloc(self.callbacks.cast(), layout(units * CALLBACK_FACTOR)) };
    }
}

fn layout(units: usize) -> Layout {
    let bytes = (units + SLACK) * 8;
    Layout::from_size_align(bytes, 64).expect("a ring is far smaller than the address space")
}

fn allocate(units: usize) -> *mut u64 {
    let layout = layout(units);
    // SAFETY: the layout is not empty.
    let memory = unsafe { alloc(layout) };
    if memory.is_null() {
        handle_alloc_error(layout);
    }
    memory.cast()
}
