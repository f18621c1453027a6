//! The handle to a sharded structure: making one, and its shards one by one.

use super::collection::Collection;
use super::fan_out::{Own, Work, fan_out};
use super::placement::{ByHash, ByRange, Placement};
use corelay_delegate::{Trust, Trustees};
use corelay_sync::facade::thread_local;
use corelay_sync::wait::Call;
use std::borrow::Borrow;
use std::fmt;
use std::ops::RangeBounds;
use std::sync::Arc;

/// A structure that is split into shards, each of them a value of type `S` that a trustee owns. `P`
/// says which shard a key belongs to: [`ByHash`] or [`ByRange`].
///
/// Clones are handles to the same structure. See the [module's page](super) for what calls on
/// several shards mean while others write.
///
/// ```
/// use corelay_delegate::Trustees;
/// use corelay_structures::sharded::Sharded;
/// use std::collections::BTreeMap;
///
/// let trustees = Trustees::dedicated(2).start()?;
/// let tree = Sharded::by_range(&trustees, [10, 20, 30], |_| BTreeMap::new()); // four shards
/// for (key, value) in [(7, "seven"), (23, "twenty-three"), (40, "forty")] {
///     tree.shard_of(&key).post(move |shard| drop(shard.insert(key, value)));
/// }
/// let found = tree.shard_of(&23).apply(|shard| shard.get(&23).copied());
/// assert_eq!(found, Some("twenty-three"));
///
/// let mut in_order = Vec::new();
/// tree.for_each_shard_in(5..30, |shard| in_order.extend(shard.range(5..30).map(|(key, _)| *key)));
/// assert_eq!(in_order, [7, 23]);
/// # Ok::<(), corelay_delegate::StartError>(())
/// ```
pub struct Sharded<S, P = ByHash> {
    parts: Arc<Parts<S, P>>,
}

struct Parts<S, P> {
    shards: Box<[Trust<S>]>,
    /// The [thread](this_thread) of each shard's trustee.
    threads: Box<[usize]>,
    placement: P,
}

impl<S: Send + 'static> Sharded<S> {
    /// Splits a structure by the hashes of its keys, into as many shards as there are trustees.
    /// `make` makes each, given its number.
    ///
    /// ```
    /// use corelay_delegate::Trustees;
    /// use corelay_structures::sharded::Sharded;
    /// use std::collections::HashSet;
    ///
    /// let trustees = Trustees::dedicated(2).start()?;
    /// let seen = Sharded::by_hash(&trustees, |_| HashSet::new());
    /// let is_new = |word| seen.shard_of(word).apply(|shard| shard.insert(String::from(word)));
    /// assert_eq!(["a", "b", "a"].map(is_new), [true, true, false]);
    /// assert_eq!(seen.len(), 2);
    /// # Ok::<(), corelay_delegate::StartError>(())
    /// ```
    ///
    /// # Panics
    /// Inside a delegated closure.
    #[track_caller]
    pub fn by_hash(trustees: &Trustees, make: impl FnMut(usize) -> S) -> Self {
        Self::with_placement(trustees, trustees.len(), ByHash::new(), make)
    }
}

impl<S: Send + 'static, K: Ord> Sharded<S, ByRange<K>> {
    /// Splits a structure by ranges of its keys: there is one shard more than `splits`, each of
    /// which is the least key of its shard. `make` makes each shard, given its number.
    ///
    /// Well chosen splits give all shards the same work; they do not move later.
    ///
    /// # Panics
    /// If the splits do not ascend; inside a delegated closure.
    #[track_caller]
    pub fn by_range(
        trustees: &Trustees,
        splits: impl IntoIterator<Item = K>,
        make: impl FnMut(usize) -> S,
    ) -> Self {
        let placement = ByRange::new(splits);
        Self::with_placement(trustees, placement.shards(), placement, make)
    }
}

impl<S: Send + 'static, P> Sharded<S, P> {
    /// Splits a structure into a number of shards, by any placement. Shard `i` goes to trustee
    /// `i % trustees.len()`. `make` makes each shard, given its number.
    ///
    /// # Panics
    /// If `shards` is 0, or more than fit into memory; inside a delegated closure.
    #[track_caller]
    pub fn with_placement(
        trustees: &Trustees,
        shards: usize,
        placement: P,
        mut make: impl FnMut(usize) -> S,
    ) -> Self {
        assert!(
            shards > 0,
            "corelay: a structure of 0 shards has no room for any key; give at least 1"
        );
        let mut all = Vec::new();
        if let Err(why) = all.try_reserve_exact(shards) {
            panic!("corelay: {shards} shards do not fit into memory ({why}); give fewer");
        }
        let entrust = |shard| trustees.entrust_on(shard % trustees.len(), make(shard));
        all.extend((0..shards).map(entrust));
        let shards = all.into_boxed_slice();
        let threads = shards.iter().map(|shard| shard.apply(|_| this_thread()));
        let parts = Parts {
            threads: threads.collect(),
            shards,
            placement,
        };
        Self {
            parts: Arc::new(parts),
        }
    }
}

impl<S, P> Sharded<S, P> {
    /// The shard of `key`. With it a caller uses the key in every form that delegation has:
    /// [`apply`](Trust::apply), which suspends a fibre, [`apply_then`](Trust::apply_then),
    /// [`apply_async`](Trust::apply_async), [`post`](Trust::post), [`launch`](Trust::launch), and
    /// those that begin with `try_`.
    #[inline]
    pub fn shard_of<Q: ?Sized>(&self, key: &Q) -> &Trust<S>
    where
        P: Placement<Q>,
    {
        &self.parts.shards[self.parts.placement.place(key, self.parts.shards.len())]
    }

    /// The shards, in the order of their numbers.
    #[inline]
    pub fn shards(&self) -> &[Trust<S>] {
        &self.parts.shards
    }

    pub(super) fn placement(&self) -> &P {
        &self.parts.placement
    }

    /// Whether this thread owns that shard, as a member of a flat team.
    #[inline]
    pub(super) fn is_own(&self, shard: usize) -> bool {
        self.parts.threads[shard] == this_thread()
    }

    /// Runs `f` on one shard after the other, in the order of their numbers, and waits for each.
    /// `f` may borrow from the caller's frame.
    ///
    /// # Panics
    /// The same as for [`Trust::apply`]. Later shards are not visited then.
    #[track_caller]
    pub fn for_each_shard(&self, mut f: impl FnMut(&mut S) + Send) {
        for shard in self.shards() {
            shard.apply(&mut f);
        }
    }

    /// Runs `f` on all shards at the same time, and waits once. The results come in the order of
    /// the shards.
    ///
    /// ```
    /// # use corelay_delegate::Trustees;
    /// # use corelay_structures::sharded::Sharded;
    /// let trustees = Trustees::dedicated(2).start()?;
    /// let hits = Sharded::by_hash(&trustees, |shard| shard as u64);
    /// assert_eq!(hits.map_shards(|hits| *hits), [0, 1]);
    /// # Ok::<(), corelay_delegate::StartError>(())
    /// ```
    ///
    /// # Panics
    /// The same as for [`Trust::apply`]. The other shards are visited all the same.
    #[track_caller]
    pub fn map_shards<R: Send>(&self, f: impl Fn(&mut S) -> R + Sync) -> Vec<R>
    where
        S: 'static,
    {
        let mut results: Vec<Option<R>> = self.shards().iter().map(|_| None).collect();
        let call = Call::new("Sharded::map_shards");
        let work = results.iter_mut().enumerate();
        self.fan_out(call, work, Own::Last, &|shard, result| {
            *result = Some(f(shard));
        });
        results.into_iter().flatten().collect()
    }

    /// Runs `run` on some shards, each with its work, at the same time. The caller's own shard, if
    /// it is among them, is served on this thread.
    #[inline]
    pub(super) fn fan_out<W: Send>(
        &self,
        call: Call,
        work: impl Iterator<Item = (usize, W)>,
        order: Own,
        run: &(impl Fn(&mut S, W) + Sync),
    ) where
        S: 'static,
    {
        let (mut own, mut last, mut others) = (None, None, Vec::new());
        for (shard, work) in work {
            let trust = &self.parts.shards[shard];
            let place = if self.is_own(shard) {
                &mut own
            } else {
                &mut last
            };
            others.extend(place.replace((trust, work)));
        }
        fan_out(call, Work { others, own, last }, order, run);
    }
}

impl<S, K> Sharded<S, ByRange<K>> {
    /// Runs `f` on the shards that may have keys in `range`, one after the other, in the order of
    /// their keys, and waits for each. `f` may borrow from the caller's frame. So what it takes
    /// from each shard in order is in order over all of them.
    ///
    /// # Panics
    /// The same as for [`Trust::apply`]. Later shards are not visited then.
    #[track_caller]
    pub fn for_each_shard_in<Q>(&self, range: impl RangeBounds<Q>, mut f: impl FnMut(&mut S) + Send)
    where
        K: Borrow<Q> + Ord,
        Q: Ord + ?Sized,
    {
        for place in self.placement().places(&range) {
            self.shards()[place].apply(&mut f);
        }
    }
}

impl<S: Collection + 'static, P> Sharded<S, P> {
    /// The number of elements of all shards: the sum of their lengths, each at a moment of its own.
    ///
    /// # Panics
    /// The same as for [`Trust::apply`].
    #[track_caller]
    pub fn len(&self) -> usize {
        self.map_shards(|shard| shard.len()).into_iter().sum()
    }

    /// Whether all shards were empty, each at a moment of its own.
    ///
    /// # Panics
    /// The same as for [`Trust::apply`].
    #[track_caller]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Clears each shard. Elements that others insert meanwhile into a shard already cleared stay.
    ///
    /// # Panics
    /// The same as for [`Trust::apply`]. The other shards are cleared all the same.
    #[track_caller]
    pub fn clear(&self) {
        self.map_shards(|shard| shard.clear());
    }
}

impl<S, P> Clone for Sharded<S, P> {
    fn clone(&self) -> Self {
        Self {
            parts: Arc::clone(&self.parts),
        }
    }
}

impl<S, P> fmt::Debug for Sharded<S, P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sharded")
            .field("shards", &self.shards())
            .finish_non_exhaustive()
    }
}

/// A number for the thread that runs here, which no other thread has at the same time. A thread
/// that takes another for itself, because a fibre has come from there, only asks its shards in
/// another order.
#[inline]
fn this_thread() -> usize {
    thread_local! {
        static HERE: std::cell::Cell<u8> = const { std::cell::Cell::new(0) };
    }
    HERE.try_with(|here| std::ptr::from_ref(here).addr())
        .unwrap_or(0)
}
