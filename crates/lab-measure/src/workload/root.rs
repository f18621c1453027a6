//! Fetch and square root: the slower of the thesis's two delegated functions (D10, its section
//! "Client and Server Production Rates").
//!
//! The thesis takes one root. Here it is a parameter: on a machine of two CPUs there is one
//! server and one client, and what moves the balance between them is the work per operation.

use crate::workload::operation::{Operation, Workload};
use crate::workload::random::Random;

/// The name in results.
pub const NAME: &str = "fetch-root";

/// The workload: each operation adds one and takes `ROOTS` square roots, one of the other.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct FetchRoot<const ROOTS: u32>;

/// A number, how often it was changed, and what came of it.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Rooted {
    count: u64,
    root: f64,
}

/// Adds one, takes the roots, and answers with the root before.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AddRoot<const ROOTS: u32>;

impl<const ROOTS: u32> Operation<Rooted> for AddRoot<ROOTS> {
    type Answer = u64;

    #[inline(always)]
    fn run(self, rooted: &mut Rooted) -> u64 {
        let old = rooted.root;
        rooted.count = rooted.count.wrapping_add(1);
        // Each needs the one before: 13 to 19 cycles a root on current cores. Without the sum
        // all roots would soon be 1.
        let roots = 0..ROOTS;
        rooted.root = roots.fold(rooted.count as f64, |x, _| (x + 2.0).sqrt());
        old.to_bits()
    }
}

impl<const ROOTS: u32> Workload for FetchRoot<ROOTS> {
    type Object = Rooted;
    type Operation = AddRoot<ROOTS>;

    fn name(self) -> &'static str {
        NAME
    }

    fn object(self) -> Rooted {
        Rooted::default()
    }

    fn operations(self, _: Random) -> impl FnMut() -> AddRoot<ROOTS> + Send + 'static {
        || AddRoot
    }

    fn check(self, rooted: &Rooted) -> Result<u64, String> {
        Ok(rooted.count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn roots_are_taken_of_each_other_and_operations_counted() {
        let mut rooted = FetchRoot::<2>.object();
        assert_eq!(AddRoot::<2>.run(&mut rooted), 0f64.to_bits());
        let two = (3f64.sqrt() + 2.0).sqrt();
        assert_eq!(AddRoot::<2>.run(&mut rooted), two.to_bits());
        assert_eq!(FetchRoot::<2>.check(&rooted), Ok(2));
    }
}
