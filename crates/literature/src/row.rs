//! A row of values that is made by the thread that it belongs to, once.
//!
//! The kernel puts memory on the node of the thread that touches it first. So a server makes its
//! objects and response lines, and a client its request lines, each on its own thread (the thesis,
//! its description of memory placement).
//!
//! # Proof sketch
//! The pointer is null, or it is that of a boxed slice of `len` values, which the row owns. `make`
//! sets it once, as only one thread at a time calls it, and `drop` alone frees it.

use corelay_sync::facade::atomic::{AtomicPtr, Ordering};
use std::fmt;
use std::marker::PhantomData;
use std::ptr;

/// A row of `len` values, empty until a thread has made them.
pub(crate) struct Row<T> {
    first: AtomicPtr<T>,
    len: usize,
    /// The row owns its values: it is as `Send` and `Sync` as they are.
    values: PhantomData<T>,
}

impl<T> Row<T> {
    /// Returns a row for `len` values that nobody has made yet.
    pub(crate) fn of(len: usize) -> Self {
        Self {
            first: AtomicPtr::new(ptr::null_mut()),
            len,
            values: PhantomData,
        }
    }

    /// The number of values that the row has or will have.
    #[inline(always)]
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// The values, once they are made.
    #[inline(always)]
    pub(crate) fn get(&self) -> Option<&[T]> {
        // Acquire: pairs with the Release in `make`; the values are there.
        let first = self.first.load(Ordering::Acquire);
        if first.is_null() {
            return None;
        }
        // SAFETY: `make` has set the pointer to `len` values, which stay until the row is dropped.
        Some(unsafe { std::slice::from_raw_parts(first, self.len) })
    }

    /// Makes the values on this thread, unless they are there. `make` gets each one's index.
    ///
    /// # Safety
    /// No two threads call this at the same time, and what an earlier caller did happens before
    /// this call.
    pub(crate) unsafe fn make(&self, make: impl FnMut(usize) -> T) {
        if self.get().is_none() {
            let values: Box<[T]> = (0..self.len).map(make).collect();
            let first = Box::into_raw(values).cast();
            // Release: pairs with the Acquire in `get`; publishes the values.
            self.first.store(first, Ordering::Release);
        }
    }
}

/// Four rows in a cache line.
#[derive(Debug)]
#[repr(align(64))]
struct FourRows<T>([Row<T>; 4]);

/// A row for each client. The pointers lie on cache lines that nothing else shares: the server reads
/// them at every pass.
#[derive(Debug)]
pub(crate) struct Rows<T> {
    fours: Box<[FourRows<T>]>,
    rows: usize,
}

impl<T> Rows<T> {
    /// Returns `rows` rows for `len` values each.
    pub(crate) fn of(rows: usize, len: usize) -> Self {
        let four = |_| FourRows(std::array::from_fn(|_| Row::of(len)));
        Self {
            fours: (0..rows.div_ceil(4)).map(four).collect(),
            rows,
        }
    }

    /// The number of rows.
    pub(crate) fn len(&self) -> usize {
        self.rows
    }

    /// The row of client `index`.
    #[inline(always)]
    pub(crate) fn at(&self, index: usize) -> &Row<T> {
        &self.fours[index / 4].0[index % 4]
    }

    /// The values of the rows that are made.
    #[inline(always)]
    pub(crate) fn made(&self) -> impl Iterator<Item = &[T]> {
        (0..self.rows).filter_map(|index| self.at(index).get())
    }
}

impl<T> Drop for Row<T> {
    fn drop(&mut self) {
        // Relaxed: nobody else has the row any more.
        let first = self.first.load(Ordering::Relaxed);
        if !first.is_null() {
            let values = ptr::slice_from_raw_parts_mut(first, self.len);
            // SAFETY: `make` set the pointer to a boxed slice of `len` values, and nobody uses them
            // any more.
            drop(unsafe { Box::from_raw(values) });
        }
    }
}

impl<T> fmt::Debug for Row<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Row")
            .field("len", &self.len)
            .finish_non_exhaustive()
    }
}
