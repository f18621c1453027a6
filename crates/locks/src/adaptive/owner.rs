//! Names for threads and fibres, by which a lock knows whose guard it is held by.
//!
//! A name is the address of something that the thread or the fibre has for itself: no two that live
//! at once have the same.

#![forbid(unsafe_code)]

use super::word::APPLIES;
use corelay_sync::facade::thread_local;
use corelay_sync::wait;
use std::ptr;

thread_local! {
    /// Eight bytes, so that its address is neither [`APPLIES`] nor 0.
    static THREAD: u64 = const { 0 };
}

/// The name of the fibre that runs here, or else of the thread. [`APPLIES`], which names nobody,
/// late in the end of a thread of a model.
#[inline]
pub(super) fn current() -> usize {
    match wait::running() {
        Some(fibre) => fibre.addr().get(),
        None => THREAD
            .try_with(|thread| ptr::from_ref(thread).addr())
            .unwrap_or(APPLIES),
    }
}
