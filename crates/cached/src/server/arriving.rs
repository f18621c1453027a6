//! Values that have not come whole yet: all of a server's together have a bound, however many clients
//! begin to send one.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The bytes that there are for them at least. With much memory for items it is half of that.
const FEWEST: usize = 64 << 20;

/// The memory that a server has for values that have not come whole yet.
pub(crate) struct Arrivals {
    /// The bytes of all of them, with those that are still to come.
    bytes: Arc<AtomicUsize>,
    most: usize,
}

impl Arrivals {
    /// Makes it for a server with so many bytes for items.
    pub(crate) fn new(memory: usize) -> Self {
        Self {
            bytes: Arc::default(),
            most: (memory / 2).max(FEWEST),
        }
    }

    /// Takes memory for a value of `len` bytes. Returns `None` if there is none left.
    pub(crate) fn expect(&self, len: usize) -> Option<Arriving> {
        // Relaxed: a count by itself.
        let before = self.bytes.fetch_add(len, Ordering::Relaxed);
        let arriving = Arriving {
            all: Arc::clone(&self.bytes),
            len,
        };
        (before + len <= self.most).then_some(arriving)
    }
}

/// The memory of one value on its way, which others have again once this is dropped.
pub(crate) struct Arriving {
    all: Arc<AtomicUsize>,
    len: usize,
}

impl Drop for Arriving {
    fn drop(&mut self) {
        // Relaxed: as above.
        self.all.fetch_sub(self.len, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_beyond_the_bound_are_refused_until_others_are_gone() {
        let arrivals = Arrivals::new(0);
        let first = arrivals.expect(FEWEST - 10).unwrap();
        assert!(arrivals.expect(11).is_none());
        let second = arrivals.expect(10).unwrap();
        assert!(arrivals.expect(1).is_none());
        drop(first);
        assert!(arrivals.expect(FEWEST - 10).is_some());
        drop(second);
        assert!(arrivals.expect(FEWEST).is_some());
    }
}
