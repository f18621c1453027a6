//! Dropping what is left in a structure.

/// Drops what is left. If a drop panics, drops the others before it passes that on.
pub(crate) fn exhaust<I: Iterator>(left: I) {
    struct Left<I: Iterator>(I);
    impl<I: Iterator> Drop for Left<I> {
        fn drop(&mut self) {
            self.0.by_ref().for_each(drop);
        }
    }
    Left(left).0.by_ref().for_each(drop);
}
