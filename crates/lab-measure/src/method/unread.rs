//! `Unread`: a value that is reached by exclusive references only.

/// A value that threads may share because a shared reference to it reaches nothing.
///
/// A reader-writer lock asks that its value is `Sync`. Objects of workloads need not be, if each
/// operation takes the lock for writing.
pub(super) struct Unread<T>(T);

#[allow(unsafe_code, reason = "the language has no such type yet")]
// SAFETY: no function of this module takes `&Unread<T>`, and the field is private. So threads that
// share the reference cannot reach the value; an exclusive reference moves it, which is `Send`.
unsafe impl<T: Send> Sync for Unread<T> {}

impl<T> Unread<T> {
    /// Wraps `value`.
    pub(super) const fn new(value: T) -> Self {
        Self(value)
    }

    /// The value.
    pub(super) const fn get_mut(&mut self) -> &mut T {
        &mut self.0
    }
}
