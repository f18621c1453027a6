//! A shard's store: items by key, in bounded memory.
//!
//! | file | idea |
//! |---|---|
//! | `record` | an item as bytes |
//! | `log` | the segments in which records lie |
//! | `index` | where the record of a key is |
//! | `evict` | which items go when memory is full: S3-FIFO |
//! | `ghost` | fingerprints of items that have gone |
//! | `gone` | memory of items that were removed all at once |
//!
//! A store belongs to one thread and knows no time: each call is told the second. Seconds count from
//! wherever the caller likes; 0 as an expiry stands for never.

mod evict;
mod ghost;
mod gone;
mod index;
mod log;
mod record;

use self::evict::{Cleaning, Queues};
use self::ghost::Ghost;
use self::gone::Gone;
use self::index::{Index, Records, Slot};
use self::log::Log;
use self::record::{Draft, Value};
use foldhash::quality::RandomState;
use std::hash::BuildHasher;
use std::{fmt, io};

pub use self::record::Properties;

/// The hash of a key: all stores of a server share one function.
#[derive(Clone, Debug, Default)]
pub struct Hasher(RandomState);

impl Hasher {
    /// The hash of `key`.
    #[inline]
    pub fn hash(&self, key: &[u8]) -> u64 {
        self.0.hash_one(key)
    }
}

/// The counters of a store, since its start. All but the last are numbers of items.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Counts {
    /// Items that were written.
    pub written: u64,
    /// Items that were evicted to make room.
    pub evicted: u64,
    /// Items that were evicted and that nobody had asked for.
    pub evicted_unfetched: u64,
    /// Items whose memory was taken back because they had expired.
    pub reclaimed: u64,
    /// Items that were taken back and that nobody had asked for.
    pub expired_unfetched: u64,
    /// Items that were moved to free the rest of their segment.
    pub moved: u64,
    /// The work of requests: the bytes of the values that they copied or searched, and 64 for each entry of
    /// the index that they moved.
    pub work: u64,
}

/// There is no room for an item, and the store may not evict others, or the item is larger than all
/// of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Full;

impl fmt::Display for Full {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("no memory for the item")
    }
}

impl std::error::Error for Full {}

/// An item that was found.
#[derive(Clone, Copy, Debug)]
pub struct Item<'a> {
    /// The value.
    pub value: &'a [u8],
    /// Flags, expiry, cas and the rest.
    pub properties: Properties,
    /// Whether anybody had asked for it before.
    pub is_fetched: bool,
    /// The seconds since anybody had.
    pub idle: u32,
}

/// Items by key, in bounded memory, of one thread.
///
/// ```
/// use corelay_cached::store::{Hasher, Properties, Store};
///
/// let mut store = Store::new(Hasher::default(), 64 << 20, true)?;
/// let hash = store.hash(b"apple");
/// store.put(hash, b"apple", b"red", Properties::default(), 0)?;
/// assert_eq!(store.get(hash, b"apple", 1).unwrap().value, b"red");
/// assert!(store.remove(hash, b"apple"));
/// assert!(store.get(hash, b"apple", 2).is_none());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Store {
    hasher: Hasher,
    log: Log,
    index: Index,
    queues: Queues,
    ghost: Option<Ghost>,
    gone: Gone,
    cleaning: Option<Cleaning>,
    budget: usize,
    evicts: bool,
    cas: u64,
    counts: Counts,
    /// A record on its way to another segment.
    scratch: Vec<u8>,
}

/// The records of a log by location, for the index.
struct Keys<'a>(&'a Hasher, &'a Log);

impl Records for Keys<'_> {
    fn hash(&self, location: u32) -> u64 {
        self.0.hash(self.1.record(location).key())
    }

    fn prefetch(&self, location: u32) {
        self.1.prefetch(location);
    }
}

impl Store {
    /// Makes a store that takes up to `budget` bytes of memory for its items and all that belongs to
    /// them, 1 MiB at least. A store that is full evicts, or refuses if it does not `evict`.
    ///
    /// # Errors
    /// The system gives no memory.
    pub fn new(hasher: Hasher, budget: usize, evicts: bool) -> io::Result<Self> {
        let budget = budget.max(1 << 20);
        Ok(Self {
            hasher,
            log: Log::new(budget),
            index: Index::new()?,
            queues: Queues::default(),
            ghost: None,
            gone: Gone::default(),
            cleaning: None,
            budget,
            evicts,
            cas: 0,
            counts: Counts::default(),
            scratch: Vec::new(),
        })
    }

    /// The hash of `key`, which other calls want beside the key.
    #[inline]
    pub fn hash(&self, key: &[u8]) -> u64 {
        self.hasher.hash(key)
    }

    /// The number of items. Some may have expired.
    pub fn len(&self) -> usize {
        self.index.len()
    }

    /// Whether there are no items.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The bytes of memory that items and all that belongs to them take.
    pub fn bytes(&self) -> usize {
        self.log.bytes() + self.gone.bytes() + self.overhead()
    }

    /// Whether there is memory of a cleared store that has not gone back to the system yet.
    pub fn is_giving_back(&self) -> bool {
        self.gone.bytes() > 0
    }

    /// Adds the bytes that somebody has looked at to [`Counts::work`].
    pub(crate) fn add_work(&mut self, bytes: usize) {
        self.counts.work += bytes as u64;
    }

    /// The bytes of memory of the index.
    pub fn index_bytes(&self) -> usize {
        self.index.bytes()
    }

    fn overhead(&self) -> usize {
        // A store that evicts will have a ghost queue for its items: its memory is kept back for it.
        let ghost = match &self.ghost {
            _ if !self.evicts => 0,
            None => Ghost::bytes_for(self.len()),
            Some(ghost) => ghost.bytes().max(Ghost::bytes_for(self.len())),
        };
        self.index.bytes() + ghost
    }

    /// The counters.
    #[inline]
    pub fn counts(&self) -> Counts {
        self.counts
    }

    /// Sets the number that the next cas comes after, so that several stores of a server draw
    /// different numbers. To be called before the first write.
    pub fn count_cas_from(&mut self, number: u64) {
        self.cas = number;
    }

    /// Draws the number that the next write may have as its cas.
    pub fn next_cas(&mut self) -> u64 {
        self.cas += 1;
        self.cas
    }

    /// Begins to load the group of the index that a look-up by `hash` reads into the cache.
    #[inline]
    pub fn prefetch_index(&self, hash: u64) {
        self.index.prefetch(hash);
    }

    /// Begins to load the item into the cache, if there seems to be one.
    #[inline]
    pub fn prefetch_item(&self, hash: u64) {
        self.index.find(hash, |location| {
            self.log.prefetch(location);
            true
        });
    }

    #[inline]
    fn find(&self, hash: u64, key: &[u8]) -> Option<Slot> {
        self.index
            .find(hash, |location| self.log.record(location).key() == key)
    }

    /// Finds the entry of `key`, unless it has expired: then it is removed.
    #[inline]
    fn find_fresh(&mut self, hash: u64, key: &[u8], now: u32) -> Option<(Slot, u32)> {
        let slot = self.find(hash, key)?;
        let location = self.index.location(slot);
        if is_expired(self.log.record(location).expiry(), now) {
            self.remove_expired(hash, slot, location);
            self.end_if_dead(self.log.segment_of(location));
            return None;
        }
        Some((slot, location))
    }

    #[cold]
    fn remove_expired(&mut self, hash: u64, slot: Slot, location: u32) {
        self.counts.reclaimed += 1;
        let is_fetched = self.log.record(location).is_fetched();
        self.counts.expired_unfetched += u64::from(!is_fetched);
        self.index.remove(hash, slot);
        self.log.retire(location);
    }

    fn item(&self, location: u32, now: u32) -> Item<'_> {
        let record = self.log.record(location);
        Item {
            value: self.log.value(record.value()),
            properties: record.properties(self.log.base(self.log.segment_of(location))),
            is_fetched: record.is_fetched(),
            idle: record.idle(now),
        }
    }

    /// Finds an item, and counts the use. The result tells of the uses before.
    #[inline]
    pub fn get(&mut self, hash: u64, key: &[u8], now: u32) -> Option<Item<'_>> {
        let (_, location) = self.find_fresh(hash, key, now)?;
        let before = self.log.record(location);
        let (is_fetched, idle) = (before.is_fetched(), before.idle(now));
        record::note_use(self.log.record_mut(location), now);
        Some(Item {
            is_fetched,
            idle,
            ..self.item(location, now)
        })
    }

    /// Finds an item without counting a use.
    pub fn peek(&mut self, hash: u64, key: &[u8], now: u32) -> Option<Item<'_>> {
        let (_, location) = self.find_fresh(hash, key, now)?;
        Some(self.item(location, now))
    }

    /// Counts a use of an item that it does not tell of, but for the time.
    pub fn count_use(&mut self, hash: u64, key: &[u8], now: u32) {
        if let Some((_, location)) = self.find_fresh(hash, key, now) {
            let is_fetched = self.log.record(location).is_fetched();
            let record = self.log.record_mut(location);
            record::set_use(record, is_fetched, now);
            record::count_use(record);
        }
    }

    /// Writes an item, in place of the one of that key if there is one. All properties are the
    /// caller's.
    ///
    /// # Errors
    /// There is no room. Whatever was there is there still.
    ///
    /// # Panics
    /// If the key is empty or longer than 250 bytes.
    pub fn put(
        &mut self,
        hash: u64,
        key: &[u8],
        value: &[u8],
        properties: Properties,
        now: u32,
    ) -> Result<(), Full> {
        assert!(
            (1..=250).contains(&key.len()),
            "corelay: a key of {} bytes; 1 to 250 are allowed",
            key.len()
        );
        self.counts.work += value.len() as u64;
        self.clean_a_little(value.len() + key.len(), now);
        let mut draft = Draft {
            key,
            value: Value::Inline(value),
            properties,
            // Where nothing is evicted there may be no room to add that later.
            may_expire: !self.evicts,
            accessed: now,
            uses: 0,
            is_fetched: false,
        };
        // The slot is good until something is evicted.
        let queue = match self.find(hash, key) {
            None => self.queue_for_new(hash),
            Some(slot) => {
                let location = self.index.location(slot);
                draft.uses = self.log.record(location).uses();
                if self.log.overwrite(location, &draft) {
                    self.counts.written += 1;
                    return Ok(());
                }
                self.log.queue(self.log.segment_of(location))
            }
        };
        if self.log.is_large(value.len()) {
            self.make_room_for_large(Log::large_size(value.len()), now)?;
            draft.value = Value::Large {
                number: self.log.keep_large(value).map_err(|_| Full)?,
                len: value.len() as u32,
            };
        }
        let written = self.append(queue, &draft, now);
        let location = match written {
            Ok(location) => location,
            Err(full) => {
                if let Value::Large { number, .. } = draft.value {
                    self.log.free_large(number);
                }
                return Err(full);
            }
        };
        // Making room may have removed the old item, or moved it.
        let linked = match self.find(hash, key) {
            Some(slot) => {
                let old = self.index.location(slot);
                self.index.relocate(hash, slot, location);
                self.retire(old);
                Ok(0)
            }
            None => {
                let keys = Keys(&self.hasher, &self.log);
                self.index.insert(hash, location, &keys)
            }
        };
        let Ok(moved) = linked else {
            self.retire(location);
            return Err(Full);
        };
        self.counts.work += 64 * moved as u64;
        self.counts.written += 1;
        Ok(())
    }

    /// Sets the second at which an item expires. Returns whether there is one.
    ///
    /// # Errors
    /// There is no room for an item with an expiry. The old one is there still.
    pub fn touch(&mut self, hash: u64, key: &[u8], expiry: u32, now: u32) -> Result<bool, Full> {
        let Some((_, location)) = self.find_fresh(hash, key, now) else {
            return Ok(false);
        };
        if record::set_expiry(self.log.record_mut(location), expiry) {
            self.log.note_expiry(location, expiry);
            return Ok(true);
        }
        self.rewrite(hash, key, now, |properties| properties.expiry = expiry)
    }

    /// Changes an item's properties. Returns whether there is one.
    ///
    /// # Errors
    /// There is no room for the changed item. The old one is there still.
    pub fn rewrite(
        &mut self,
        hash: u64,
        key: &[u8],
        now: u32,
        change: impl FnOnce(&mut Properties),
    ) -> Result<bool, Full> {
        let Some(item) = self.peek(hash, key, now) else {
            return Ok(false);
        };
        let (mut properties, value) = (item.properties, item.value.to_vec());
        change(&mut properties);
        self.update(hash, key, &value, properties, now)?;
        Ok(true)
    }

    /// Writes an item whose predecessor is there, and remembers what that one tells of its uses. Counts one
    /// that is not told.
    ///
    /// # Errors
    /// There is no room. The old item is there still.
    pub fn update(
        &mut self,
        hash: u64,
        key: &[u8],
        value: &[u8],
        properties: Properties,
        now: u32,
    ) -> Result<(), Full> {
        let old = self.peek(hash, key, now);
        let (is_fetched, idle) = old.map_or((false, 0), |item| (item.is_fetched, item.idle));
        self.put(hash, key, value, properties, now)?;
        if let Some(slot) = self.find(hash, key) {
            let record = self.log.record_mut(self.index.location(slot));
            record::set_use(record, is_fetched, now.wrapping_sub(idle));
            record::count_use(record);
        }
        Ok(())
    }

    /// Removes an item. Returns whether there was one.
    pub fn remove(&mut self, hash: u64, key: &[u8]) -> bool {
        let Some(slot) = self.find(hash, key) else {
            return false;
        };
        let location = self.index.location(slot);
        self.index.remove(hash, slot);
        self.retire(location);
        true
    }

    /// Forgets a record that nothing leads to any more.
    fn retire(&mut self, location: u32) {
        self.log.retire(location);
        self.end_if_dead(self.log.segment_of(location));
    }

    /// Removes all items. Their memory goes back to the system with the next calls of
    /// [`reclaim`](Self::reclaim), or once other items need it.
    ///
    /// # Errors
    /// The system gives no memory for an empty index. Nothing has been removed.
    pub fn clear(&mut self) -> io::Result<()> {
        if self.log.bytes() == 0 {
            return Ok(()); // and nothing is in the index
        }
        let index = std::mem::replace(&mut self.index, Index::new()?);
        for groups in index.into_memory() {
            let bytes = groups.len();
            self.gone.add(groups, bytes);
        }
        let log = std::mem::replace(&mut self.log, Log::new(self.budget));
        for (memory, bytes) in log.into_memory() {
            self.gone.add(memory, bytes);
        }
        self.queues = Queues::default();
        self.cleaning = None;
        self.ghost = None;
        Ok(())
    }
}

/// Whether an item with that expiry has expired.
#[inline]
fn is_expired(expiry: u32, now: u32) -> bool {
    expiry != 0 && expiry <= now
}

impl fmt::Debug for Store {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Store")
            .field("items", &self.len())
            .field("bytes", &self.bytes())
            .field("budget", &self.budget)
            .finish_non_exhaustive()
    }
}
