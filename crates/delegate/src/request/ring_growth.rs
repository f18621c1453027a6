//! The growth of rings: a record that tells the trustee, and an entry in the callback queue that
//! tells the client, where the next record lies.

use super::label::Label;
use super::reaper::{Reaped, Reaper};
use super::track::Track;
use super::{CALLBACK_HEAD, Cursors, FaultCheck, Reap, Vtable, write_label};
use crate::wire::ring::{GROWTH_UNITS, Rings};
use crate::wire::word::{Position, growth_step};
use corelay_sync::facade::memory;

/// Units of the entry in the callback queue.
pub(crate) const CALLBACK_UNITS: usize = CALLBACK_HEAD + 1;

/// The amount that the record adds to a position.
pub(crate) const STEP: u64 = growth_step(GROWTH_UNITS);

pub(crate) static VTABLE: Vtable = Vtable {
    run,
    discard: |_| (),
    fault: None,
    launch: None,
    step: STEP,
    answer_units: 0,
    name: || "a move to larger rings",
};

/// Writes the record that moves the trustee to `larger` rings.
///
/// # Safety
/// `record` points at [`GROWTH_UNITS`] writable words.
pub(crate) unsafe fn write_request(record: *mut u64, larger: *mut Rings) {
    // SAFETY: the caller promises `GROWTH_UNITS` writable words; the label takes the first.
    unsafe { write_label(record, Label::RING_GROWTH) };
    memory::write(record.wrapping_add(1), 1);
    // SAFETY: the caller promises `GROWTH_UNITS` writable words; this is the second.
    unsafe { record.wrapping_add(1).cast::<*mut Rings>().write(larger) };
}

/// Writes the entry that moves the client to `larger` rings.
///
/// # Safety
/// `entry` points at [`CALLBACK_UNITS`] writable words.
pub(crate) unsafe fn write_callback(entry: *mut u64, at: Position, larger: *mut Rings) {
    // SAFETY: the caller promises `CALLBACK_UNITS` writable words; this is the first.
    unsafe { entry.cast::<Reap>().write(reap) };
    // SAFETY: the caller promises `CALLBACK_UNITS` writable words; this is the second.
    unsafe { entry.wrapping_add(1).write(at.0) };
    // SAFETY: the caller promises `CALLBACK_UNITS` writable words; this is the third.
    unsafe {
        entry
            .wrapping_add(CALLBACK_HEAD)
            .cast::<*mut Rings>()
            .write(larger)
    };
}

unsafe fn run(record: *mut u64, at: Cursors, track: &Track, _stop: u32) -> Cursors {
    memory::read(record.wrapping_add(1), 1);
    // SAFETY: `write_request` has written the second word, since this runs by its label's vtable.
    let larger = unsafe { record.wrapping_add(1).cast::<*mut Rings>().read() };
    track.move_to(larger);
    Cursors {
        request: at.request.after(STEP),
        answer: at.answer,
    }
}

unsafe fn reap(reaper: &Reaper, reaped: Reaped, _tail: Position, _check: FaultCheck) -> Reaped {
    let entry = reaper.callbacks.at(reaped.callback());
    // SAFETY: `write_callback` has written the word, since this runs by the entry's reap function.
    let larger = unsafe {
        entry
            .wrapping_add(CALLBACK_HEAD)
            .cast::<*mut Rings>()
            .read()
    };
    let next = reaped.after(CALLBACK_UNITS, 0);
    reaper.set_reaped(next);
    reaper.move_to(larger);
    next
}
