//! Panics of user code on several shards: the caller gets the first, and the others are dropped.

pub(super) use crate::caught::{Payload, caught};

/// Drops a value whose destructor may panic, and drops that panic as well.
#[cold]
pub(super) fn discard<T>(value: T) {
    // The payload of a destructor's panic has a destructor, too: it is forgotten.
    if let Err(payload) = caught(|| drop(value)) {
        std::mem::forget(payload);
    }
}

/// Drops values one by one, each as [`discard`] does.
#[cold]
pub(super) fn discard_all<T>(values: impl IntoIterator<Item = T>) {
    values.into_iter().for_each(discard);
}

/// Puts `next` into `first` if that is empty, and drops it otherwise.
#[cold]
pub(super) fn keep_first<E>(first: &mut Option<E>, next: E) {
    match first {
        None => *first = Some(next),
        Some(_) => discard(next),
    }
}

/// The values of all results, or the first of their errors. The rest is dropped, with panics
/// caught.
pub(super) fn all_or_first<R, E>(
    results: impl ExactSizeIterator<Item = Result<R, E>>,
) -> Result<Vec<R>, E> {
    let (mut values, mut first) = (Vec::with_capacity(results.len()), None);
    for result in results {
        match result {
            Ok(value) => values.push(value),
            Err(error) => keep_first(&mut first, error),
        }
    }
    match first {
        None => Ok(values),
        Some(error) => {
            discard_all(values);
            Err(error)
        }
    }
}
