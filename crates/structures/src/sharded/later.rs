//! Batches that nobody waits for: their results go to a future or to a callback. They own their
//! items, because the caller goes on.

use super::handle::Sharded;
use super::panics::{Payload, discard, discard_all, keep_first};
use super::placement::Placement;
use corelay_delegate::{ApplyFuture, AsyncError};
use std::cell::RefCell;
use std::fmt;
use std::future::Future;
use std::panic::resume_unwind;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::vec;

/// The results of a shard's items, or a panic that has been caught on its trustee.
pub(super) type Results<R> = Result<Vec<R>, Payload>;

/// The results of a batch while they arrive.
struct Arrivals<R> {
    /// The shard of each item.
    places: Vec<usize>,
    /// The results of each shard.
    results: Vec<vec::IntoIter<R>>,
    /// The number of shards whose results are to come.
    missing: usize,
}

impl<R> Arrivals<R> {
    /// Groups items, which come with the numbers of their shards, all below `shards`.
    fn new<T>(
        items: impl Iterator<Item = (usize, T)>,
        shards: usize,
    ) -> (Self, impl Iterator<Item = (usize, Vec<T>)>) {
        let mut groups: Vec<Vec<T>> = (0..shards).map(|_| Vec::new()).collect();
        let (mut places, mut missing) = (Vec::with_capacity(items.size_hint().0), 0);
        for (shard, item) in items {
            places.push(shard);
            missing += usize::from(groups[shard].is_empty());
            groups[shard].push(item);
        }
        let arrivals = Self {
            places,
            results: (0..shards).map(|_| Vec::new().into_iter()).collect(),
            missing,
        };
        let groups = groups.into_iter().enumerate();
        (arrivals, groups.filter(|(_, group)| !group.is_empty()))
    }

    fn put(&mut self, shard: usize, results: Vec<R>) {
        self.results[shard] = results.into_iter();
        self.missing -= 1;
    }

    /// Drops the results that nobody takes. Their destructors may panic.
    fn discard(self) {
        discard_all(self.results.into_iter().flatten());
    }

    /// Takes all results, in the order of the items, if none is missing.
    fn take(&mut self) -> Option<Vec<R>> {
        if self.missing > 0 {
            return None;
        }
        let of_item = |shard: usize| self.results[shard].next().expect("a result for each item");
        Some(
            std::mem::take(&mut self.places)
                .into_iter()
                .map(of_item)
                .collect(),
        )
    }
}

/// The results of a batch, to be awaited: of [`Sharded::apply_many_async`], and of the batches of a
/// [`ShardedMap`](super::ShardedMap) that are named so.
///
/// The requests have been made already: they run whether or not the future is polled, and also if
/// it is dropped. The exception is a request for which a window had no room: the future makes it
/// when it is polled and has been let in, as
/// [`Trust::apply_async`](corelay_delegate::Trust::apply_async) says. Any executor will do, and any
/// thread.
///
/// # Panics
/// When it is polled again after it has given its result.
#[must_use = "the requests run anyway, but nobody gets the results"]
pub struct ManyFuture<R> {
    /// `None` once the result has been taken.
    arrivals: Option<Arrivals<R>>,
    futures: Vec<(usize, ApplyFuture<Results<R>>)>,
}

impl<R> Unpin for ManyFuture<R> {}

impl<R> Future for ManyFuture<R> {
    type Output = Result<Vec<R>, AsyncError>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let Self { arrivals, futures } = &mut *self;
        let here = arrivals
            .as_mut()
            .expect("corelay: a ManyFuture is polled after it has given its result");
        let mut failure = None;
        futures.retain_mut(|(shard, future)| match Pin::new(future).poll(context) {
            Poll::Pending => true,
            Poll::Ready(results) => {
                match results.and_then(|results| results.map_err(AsyncError::Panicked)) {
                    Ok(results) => here.put(*shard, results),
                    Err(error) => keep_first(&mut failure, error),
                }
                false
            }
        });
        if let Some(error) = failure {
            self.discard_rest();
            return Poll::Ready(Err(error));
        }
        let Some(results) = here.take() else {
            return Poll::Pending;
        };
        *arrivals = None;
        Poll::Ready(Ok(results))
    }
}

impl<R> ManyFuture<R> {
    /// Drops what has arrived and what may still arrive.
    fn discard_rest(&mut self) {
        if let Some(arrivals) = self.arrivals.take() {
            arrivals.discard();
            discard_all(self.futures.drain(..));
        }
    }
}

impl<R> Drop for ManyFuture<R> {
    fn drop(&mut self) {
        self.discard_rest();
    }
}

impl<R> fmt::Debug for ManyFuture<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ManyFuture")
            .field("missing", &self.futures.len())
            .finish_non_exhaustive()
    }
}

impl<S: 'static, P> Sharded<S, P> {
    /// Runs `f` on items and the shards of their keys as [`apply_many`](Self::apply_many) does, but
    /// goes on at once. The future gives the results, in the order of the items.
    ///
    /// If `f` panics, the future gives that panic, and the shard is poisoned.
    ///
    /// # Panics
    /// The same as for [`Trust::apply_async`](corelay_delegate::Trust::apply_async).
    #[track_caller]
    pub fn apply_many_async<T, Q, R>(
        &self,
        items: impl IntoIterator<Item = T>,
        key: impl Fn(&T) -> &Q,
        f: impl Fn(&mut S, T) -> R + Send + Sync + 'static,
    ) -> ManyFuture<R>
    where
        P: Placement<Q>,
        Q: ?Sized,
        T: Send + 'static,
        R: Send + 'static,
    {
        let shards = self.shards().len();
        let place = |item| (self.placement().place(key(&item), shards), item);
        self.many_async(items.into_iter().map(place), in_turn(f))
    }

    /// Runs `f` on items and the shards of their keys as [`apply_many`](Self::apply_many) does, but
    /// goes on at once. `then` gets the results later, on this thread, in the order of the items.
    /// If there are no items, it runs at once.
    ///
    /// ```
    /// use corelay_delegate::{Trustees, barrier};
    /// use corelay_structures::sharded::Sharded;
    /// use std::collections::HashMap;
    ///
    /// let trustees = Trustees::dedicated(2).start().unwrap();
    /// let lengths = Sharded::by_hash(&trustees, |_| HashMap::new());
    /// let insert = |shard: &mut HashMap<_, _>, word: &'static str| shard.insert(word, word.len());
    /// lengths.apply_many_then(["a", "bc", "a"], |word| *word, insert, |before| {
    ///     assert_eq!(before, [None, None, Some(1)]);
    /// });
    /// barrier().unwrap(); // the callback has run
    /// ```
    ///
    /// If `f` panics, `then` is dropped, the next [`barrier`](corelay_delegate::barrier) reports
    /// it, and the shard is poisoned.
    ///
    /// # Panics
    /// The same as for [`Trust::apply_then`](corelay_delegate::Trust::apply_then).
    #[track_caller]
    pub fn apply_many_then<T, Q, R>(
        &self,
        items: impl IntoIterator<Item = T>,
        key: impl Fn(&T) -> &Q,
        f: impl Fn(&mut S, T) -> R + Send + Sync + 'static,
        then: impl FnOnce(Vec<R>) + 'static,
    ) where
        P: Placement<Q>,
        Q: ?Sized,
        T: Send + 'static,
        R: Send + 'static,
    {
        let shards = self.shards().len();
        let place = |item| (self.placement().place(key(&item), shards), item);
        self.many_then(items.into_iter().map(place), in_turn(f), then);
    }

    /// Runs `run` on the items of each shard, whose numbers they come with.
    #[track_caller]
    pub(super) fn many_async<T: Send + 'static, R: Send + 'static>(
        &self,
        items: impl Iterator<Item = (usize, T)>,
        run: impl Fn(&mut S, Vec<T>) -> Results<R> + Send + Sync + 'static,
    ) -> ManyFuture<R> {
        let (arrivals, groups) = Arrivals::new(items, self.shards().len());
        let run = Arc::new(run);
        let mut futures = Vec::with_capacity(arrivals.missing);
        for (shard, items) in groups {
            let run = Arc::clone(&run);
            let future = self.shards()[shard].apply_async(move |value| run(value, items));
            futures.push((shard, future));
        }
        ManyFuture {
            arrivals: Some(arrivals),
            futures,
        }
    }

    /// Runs `run` on the items of each shard, whose numbers they come with, and later `then`.
    #[track_caller]
    pub(super) fn many_then<T: Send + 'static, R: Send + 'static>(
        &self,
        items: impl Iterator<Item = (usize, T)>,
        run: impl Fn(&mut S, Vec<T>) -> Results<R> + Send + Sync + 'static,
        then: impl FnOnce(Vec<R>) + 'static,
    ) {
        let (mut arrivals, groups) = Arrivals::new(items, self.shards().len());
        if let Some(nothing) = arrivals.take() {
            return then(nothing);
        }
        // `None` after the last result, or the first panic.
        let gathered = Rc::new(RefCell::new(Some((arrivals, then))));
        let run = Arc::new(run);
        for (shard, items) in groups {
            let (run, gathered) = (Arc::clone(&run), Rc::clone(&gathered));
            self.shards()[shard].apply_then(
                move |value| run(value, items),
                move |results| arrived(&gathered, shard, results),
            );
        }
    }
}

/// Puts the results of a shard to the others, and runs `then` if they are the last.
fn arrived<R>(
    gathered: &RefCell<Option<(Arrivals<R>, impl FnOnce(Vec<R>))>>,
    shard: usize,
    results: Results<R>,
) {
    let mut here = gathered.borrow_mut();
    let results = match results {
        Ok(results) => results,
        Err(payload) => {
            let rest = here.take();
            drop(here);
            // Now: a destructor's panic while this one is raised would end the process.
            if let Some((arrivals, then)) = rest {
                arrivals.discard();
                discard(then);
            }
            resume_unwind(payload)
        }
    };
    let Some((arrivals, _)) = &mut *here else {
        return discard_all(results);
    };
    arrivals.put(shard, results);
    if let Some(all) = arrivals.take()
        && let Some((_, then)) = here.take()
    {
        drop(here);
        then(all);
    }
}

/// Runs `f` on each item in turn.
fn in_turn<S, T, R>(f: impl Fn(&mut S, T) -> R) -> impl Fn(&mut S, Vec<T>) -> Results<R> {
    move |shard, items| Ok(items.into_iter().map(|item| f(shard, item)).collect())
}
