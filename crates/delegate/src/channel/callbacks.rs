//! The client's own queue of callbacks, in the order of their requests.
//!
//! ```text
//!          reaped                                          end        limit
//!            v                                              v           v
//!  |  free   [reap][position][callback …][reap][position]…   |   free   | one entry |
//! ```
//! Not a ring: at its end the entries move to the front, a few KiB now and then, so that
//! they lie without gaps and their addresses need no arithmetic. Nobody else sees them.
//! Entries do not move while callbacks run: a callback that finds no room is treated as
//! one that finds the window full.

use super::reap::Reaped;
use super::request::CALLBACK_HEAD;
use super::ring::MAX_CALLBACK_WORDS;
use std::alloc::{Layout, alloc, dealloc, handle_alloc_error};
use std::cell::Cell;

/// Units of the longest entry.
const LONGEST: u32 = (CALLBACK_HEAD + MAX_CALLBACK_WORDS) as u32;

/// Units at first.
pub(super) const FIRST_UNITS: u32 = 128;

/// A queue of callbacks. Where its oldest entry lies is in [`Reaped`].
pub(super) struct Callbacks {
    memory: Cell<*mut u64>,
    units: Cell<u32>,
    end: Cell<u32>,
}

impl Callbacks {
    pub(super) fn new() -> Self {
        Self {
            memory: Cell::new(allocate(FIRST_UNITS)),
            units: Cell::new(FIRST_UNITS),
            end: Cell::new(0),
        }
    }

    /// Where the next entry goes.
    #[inline(always)]
    pub(super) fn end(&self) -> u32 {
        self.end.get()
    }

    /// Sets where the next entry goes: behind one just written, or before one taken back.
    #[inline(always)]
    pub(super) fn set_end(&self, end: u32) {
        self.end.set(end);
    }

    /// True where any entry fits at the end.
    #[inline(always)]
    pub(super) fn has_room(&self) -> bool {
        self.end.get() <= self.units.get() - LONGEST
    }

    /// The entry at `offset`.
    #[inline(always)]
    pub(super) fn at(&self, offset: u32) -> *mut u64 {
        // SAFETY: offsets end before the queue does.
        unsafe { self.memory.get().add(offset as usize) }
    }

    /// True where everything has been reaped.
    #[inline(always)]
    pub(super) fn is_empty(&self, reaped: Reaped) -> bool {
        reaped.callback() == self.end.get()
    }

    /// Moves the entries to the front, into more memory where they take more than half of
    /// it. Returns how far they moved. Not while callbacks run.
    pub(super) fn make_room(&self, reaped: Reaped) -> u32 {
        let from = reaped.callback();
        let used = self.end.get() - from;
        let (old, old_units) = (self.memory.get(), self.units.get());
        let needed = used + LONGEST;
        if from == 0 && self.has_room() {
            return 0;
        }
        if needed * 2 > old_units {
            let units = units_for(used);
            self.memory.set(allocate(units));
            self.units.set(units);
        }
        // SAFETY: inside the old memory.
        let entries = unsafe { old.add(from as usize) };
        // SAFETY: both hold `used` units; the two may overlap.
        unsafe { entries.copy_to(self.memory.get(), used as usize) };
        if self.memory.get() != old {
            // SAFETY: allocated with this layout, and not used any more.
            unsafe { dealloc(old.cast(), layout(old_units)) };
        }
        self.end.set(used);
        from
    }
}

impl Drop for Callbacks {
    fn drop(&mut self) {
        // SAFETY: allocated with this layout. Its entries have been reaped.
        unsafe { dealloc(self.memory.get().cast(), layout(self.units.get())) };
    }
}

/// Units of a queue that has had to grow for `used` of them: at least twice as much, so that
/// entries seldom move.
pub(super) fn units_for(used: u32) -> u32 {
    ((used + LONGEST) * 2).next_power_of_two()
}

/// Units of a queue that has grown from its first to hold `used`.
pub(super) fn grown(used: u32) -> u32 {
    let mut units = FIRST_UNITS;
    // It grows where the next entry might not fit, behind as many as do.
    while used > units - LONGEST {
        units = units_for(units - LONGEST + 1);
    }
    units
}

/// What a queue takes.
pub(super) fn bytes(units: u32) -> usize {
    layout(units).size()
}

fn layout(units: u32) -> Layout {
    Layout::array::<u64>(units as usize).expect("far smaller than the address space")
}

fn allocate(units: u32) -> *mut u64 {
    let layout = layout(units);
    // SAFETY: the layout is not empty.
    let memory = unsafe { alloc(layout) };
    if memory.is_null() {
        handle_alloc_error(layout);
    }
    memory.cast()
}
