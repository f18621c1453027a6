//! Memory of items that were removed all at once, which goes back to the system part by part: that takes
//! the system a quarter of a second for each gigabyte or so, for which no request should wait.

use memmap2::MmapMut;

/// The bytes that go back at a time.
const PART: usize = 1 << 20;

/// Memory that nothing leads to any more.
#[derive(Default)]
pub(super) struct Gone {
    /// Each with the bytes that it takes.
    memory: Vec<(MmapMut, usize)>,
    bytes: usize,
}

impl Gone {
    /// The bytes that are still there.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Adds memory that takes so many bytes.
    pub(super) fn add(&mut self, memory: MmapMut, bytes: usize) {
        self.memory.push((memory, bytes));
        self.bytes += bytes;
    }

    /// Gives a part back to the system. Returns false if nothing was there.
    pub(super) fn give_back(&mut self) -> bool {
        let before = self.bytes;
        while let Some((memory, bytes)) = self.memory.pop() {
            drop(memory);
            self.bytes -= bytes;
            if before - self.bytes >= PART {
                break;
            }
        }
        self.bytes < before
    }
}
