//! Values that do not fit into words: boxes, freed when nobody can be reading them.
//!
//! A variable holds the only long-lived pointer to its box. A commit puts a new one in its place
//! and hands the old one to epoch reclamation (Fraser, 2004; `crossbeam-epoch`): whoever has loaded
//! the old pointer did so inside a [`Guard`], and it is freed when all guards of that time are gone.

use super::Value;
use crossbeam_epoch::Guard;

/// Frees a box, given its pointer as a word.
pub(super) type Free = unsafe fn(u64);

/// The word of a new box.
pub(super) fn make<T>(value: T) -> u64 {
    Box::into_raw(Box::new(value)).expose_provenance() as u64
}

/// # Safety
/// Made by [`make`] of the same type; nobody reads it any more; once.
pub(super) unsafe fn free<T>(word: u64) {
    let pointer = std::ptr::with_exposed_provenance_mut::<T>(word as usize);
    // SAFETY: by the caller.
    drop(unsafe { Box::from_raw(pointer) });
}

/// # Safety
/// Made by [`make`] of the same type, and found in the variable, or still the caller's own, while
/// `guard` lived.
pub(super) unsafe fn get<T: Value>(word: u64, _guard: &Guard) -> &T {
    let pointer = std::ptr::with_exposed_provenance::<T>(word as usize);
    // SAFETY: by the caller; boxes are not written after they are made.
    unsafe { &*pointer }
}

/// Frees a box when nobody can be reading it.
///
/// # Safety
/// As [`free`], but for readers inside guards; no variable holds it any more.
pub(super) unsafe fn retire(word: u64, free: Free, guard: &Guard) {
    // SAFETY: by the caller, and all guards of now are gone when it is run.
    let free_it = move || unsafe { free(word) };
    // SAFETY: who enters a guard from now on does not find the box. Values are `Send` and
    // `'static`, so any thread may free them at any time.
    unsafe { guard.defer_unchecked(free_it) };
}
