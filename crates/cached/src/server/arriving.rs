//! Values that have not come whole yet: what has come of all of a server's together has a bound, however many
//! clients begin to send one.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The bytes that there are for them at least. With much memory for items it is half of that.
const FEWEST: usize = 64 << 20;
/// The bytes of each value that do not count, so that long values do not keep short ones out.
const FREE: usize = 64 << 10;

/// The memory that a server has for values that have not come whole yet.
pub(crate) struct Arrivals {
    /// The bytes of all of them that have come.
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

    /// Begins a value of which nothing has come.
    pub(crate) fn begin(&self) -> Arriving {
        Arriving {
            all: Arc::clone(&self.bytes),
            most: self.most,
            taken: 0,
        }
    }
}

/// The memory of one value on its way, which others have again once this is dropped.
pub(crate) struct Arriving {
    all: Arc<AtomicUsize>,
    most: usize,
    taken: usize,
}

impl Arriving {
    /// Takes memory for `len` bytes of the value in all. Returns false if there is none left.
    #[must_use]
    pub(crate) fn grow_to(&mut self, len: usize) -> bool {
        let more = len.saturating_sub(FREE + self.taken);
        let add = |all: usize| Some(all + more).filter(|&all| all <= self.most);
        // Relaxed: a count by itself.
        let has_grown = more == 0
            || self
                .all
                .fetch_update(Ordering::Relaxed, Ordering::Relaxed, add)
                .is_ok();
        if has_grown {
            self.taken += more;
        }
        has_grown
    }
}

impl Drop for Arriving {
    fn drop(&mut self) {
        // Relaxed: as above.
        self.all.fetch_sub(self.taken, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_beyond_the_bound_are_refused_until_others_are_gone() {
        let arrivals = Arrivals::new(0);
        let mut first = arrivals.begin();
        assert!(first.grow_to(1_000_000));
        assert!(first.grow_to(FREE + FEWEST - 10));
        let mut second = arrivals.begin();
        assert!(second.grow_to(FREE), "short values find room");
        assert!(second.grow_to(FREE + 10));
        assert!(!second.grow_to(FREE + 11));
        drop(first);
        assert!(second.grow_to(FREE + FEWEST));
        drop(second);
        assert!(arrivals.begin().grow_to(FREE + FEWEST));
    }
}
