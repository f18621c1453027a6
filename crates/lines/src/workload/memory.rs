//! Memory of a structure outside the shared object itself. Each access is reported to the machine.

use corelay_sync::facade::memory;
use std::cell::Cell;

/// A plain value in memory. A get counts as a load, a set as a store.
#[derive(Default)]
pub(super) struct Plain<T>(Cell<T>);

impl<T: Copy> Plain<T> {
    pub(super) fn get(&self) -> T {
        memory::read(self.0.as_ptr(), 1);
        self.0.get()
    }

    pub(super) fn set(&self, value: T) {
        memory::write(self.0.as_ptr(), 1);
        self.0.set(value);
    }
}

/// Words in a line. An array's memory begins at a line, so that the counts are always the same.
#[derive(Default)]
#[repr(align(64))]
struct Line([Plain<u64>; WORDS]);

const WORDS: usize = 8;

/// An array of words, eight to a line.
pub(super) struct Words(Box<[Line]>);

impl Words {
    /// An array of at least `len` words, all of them 0.
    pub(super) fn new(len: u32) -> Self {
        let lines = (len as usize).div_ceil(WORDS);
        let words = Self((0..lines).map(|_| Line::default()).collect());
        (0..len).for_each(|index| words.at(index).set(0));
        words
    }

    pub(super) fn at(&self, index: u32) -> &Plain<u64> {
        let index = index as usize;
        &self.0[index / WORDS].0[index % WORDS]
    }
}
