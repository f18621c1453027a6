//! Many handles as one.

use super::Trust;
use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

/// The handles to many values, in a row: a slice of [`Trust`]s that is cloned as one handle. It is
/// made by [`Trustees::entrust_all`](crate::Trustees::entrust_all), or collected.
///
/// ```
/// # use corelay_delegate::Trustees;
/// let trustees = Trustees::dedicated(2).start()?;
/// let shards = trustees.entrust_all([0; 8]); // spread over the trustees
/// let theirs = shards.clone(); // counts one handle, not eight
/// std::thread::spawn(move || theirs[3].apply(|hits| *hits += 1)).join().unwrap();
/// assert_eq!(shards.iter().map(|hits| hits.apply(|hits| *hits)).sum::<i32>(), 1);
/// # Ok::<(), corelay_delegate::StartError>(())
/// ```
pub struct Trusts<T>(Arc<[Trust<T>]>);

impl<T> Deref for Trusts<T> {
    type Target = [Trust<T>];

    fn deref(&self) -> &[Trust<T>] {
        &self.0
    }
}

impl<T> FromIterator<Trust<T>> for Trusts<T> {
    fn from_iter<I: IntoIterator<Item = Trust<T>>>(handles: I) -> Self {
        Self(handles.into_iter().collect())
    }
}

impl<'a, T> IntoIterator for &'a Trusts<T> {
    type Item = &'a Trust<T>;
    type IntoIter = std::slice::Iter<'a, Trust<T>>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl<T> IntoIterator for Trusts<T> {
    type Item = Trust<T>;
    type IntoIter = std::vec::IntoIter<Trust<T>>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter().cloned().collect::<Vec<_>>().into_iter()
    }
}

impl<T> Clone for Trusts<T> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<T> fmt::Debug for Trusts<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(&self.0[..]).finish()
    }
}
