//! A shard: a part of the keys, with the store that has their items. It runs operations and writes
//! their answers.

mod binary;
mod meta;

pub(crate) use self::meta::Meta;

use crate::protocol::binary::KeyCommand;
use crate::protocol::number;
use crate::protocol::text::Verb;
use crate::server::Settings;
use crate::server::clock::Clock;
use crate::statistics::{Counters, Hottest, Sampler};
use crate::store::{Hasher, Item, Properties, Store};
use std::io;
use std::sync::Arc;

/// An operation on one key, or on a whole shard.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Operation {
    /// Retrieve an item, with its cas; and set its expiry.
    Get {
        with_cas: bool,
        expiry: Option<u32>,
    },
    Store {
        verb: Verb,
        flags: u32,
        expiry: u32,
        is_quiet: bool,
    },
    Arithmetic {
        delta: u64,
        is_increment: bool,
        is_quiet: bool,
    },
    Touch {
        expiry: u32,
        is_quiet: bool,
    },
    Delete {
        is_quiet: bool,
    },
    /// Remove an item whose successor has been refused.
    Forget,
    /// Remove all items of the shard at that second.
    Flush {
        at: u32,
    },
    Meta(Meta),
    /// A command of the binary protocol.
    Binary {
        command: KeyCommand,
        is_quiet: bool,
    },
}

impl Operation {
    /// Whether it replaces an item whatever that is.
    pub(crate) fn replaces(self) -> bool {
        match self {
            Self::Store { verb, .. } => verb == Verb::Set,
            Self::Binary { command, .. } => command == KeyCommand::Store(Verb::Set),
            Self::Meta(command) => command == Meta::Set,
            _ => false,
        }
    }
}

/// An operation with its key and, if it writes, its value.
#[derive(Clone, Copy)]
pub(crate) struct Request<'a> {
    pub(crate) operation: Operation,
    pub(crate) hash: u64,
    pub(crate) key: &'a [u8],
    pub(crate) value: &'a [u8],
    /// The flags of a meta command, or the header and the extras of a binary one.
    pub(crate) words: &'a [u8],
}

/// A part of the keys.
pub(crate) struct Shard {
    pub(crate) store: Store,
    pub(crate) counters: Arc<Counters>,
    /// The largest [`item_size`].
    largest_item: usize,
    has_cas: bool,
    /// The second at which all items go.
    flush_at: Option<u32>,
    /// Samples of the keys that are asked for.
    sampler: Sampler,
}

/// The answer if there is no room for an item.
pub(crate) const NO_MEMORY: &str = "SERVER_ERROR out of memory storing object\r\n";
const STORED: &[u8] = b"STORED\r\n";
const NOT_STORED: &[u8] = b"NOT_STORED\r\n";
const EXISTS: &[u8] = b"EXISTS\r\n";
const NOT_FOUND: &[u8] = b"NOT_FOUND\r\n";
const NO_MEMORY_FOR_NUMBER: &[u8] = b"SERVER_ERROR out of memory in incr\r\n";
const NO_NUMBER: &[u8] = b"CLIENT_ERROR cannot increment or decrement non-numeric value\r\n";
const END_OF_LINE: &[u8] = b"\r\n";

/// The outcome of a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Written {
    Stored { cas: u64 },
    NotStored,
    Exists,
    NotFound,
    NoMemory,
}

impl Written {
    /// The answer of the text protocol.
    fn text(self) -> &'static [u8] {
        match self {
            Self::Stored { .. } => STORED,
            Self::NotStored => NOT_STORED,
            Self::Exists => EXISTS,
            Self::NotFound => NOT_FOUND,
            Self::NoMemory => NO_MEMORY.as_bytes(),
        }
    }
}

/// The reason why a number has not changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum NotAdded {
    Missing,
    NotNumber,
    /// The item has another cas.
    Exists,
    NoMemory,
}

impl Shard {
    /// Makes the shard of that number, without items, which takes up to `budget` bytes: see
    /// [`Store::new`].
    pub(crate) fn new(
        number: usize,
        hasher: Hasher,
        budget: usize,
        settings: &Settings,
        counters: Arc<Counters>,
    ) -> io::Result<Self> {
        let mut store = Store::new(hasher, budget, settings.evicts)?;
        // No two shards have the same cas numbers, and one alone has memcached's.
        store.count_cas_from((number as u64) << 48);
        Ok(Self {
            store,
            counters,
            largest_item: settings.largest_item,
            has_cas: settings.has_cas,
            flush_at: None,
            sampler: Sampler::default(),
        })
    }

    /// The cas of the next write.
    fn next_cas(&mut self) -> u64 {
        if self.has_cas {
            self.store.next_cas()
        } else {
            0
        }
    }

    /// Runs a request at the clock's second, and appends its answer to `out`.
    #[inline]
    pub(crate) fn run(&mut self, request: &Request<'_>, clock: &Clock, out: &mut Vec<u8>) {
        let now = clock.now();
        if self.flush_at.is_some() {
            self.flush_if_due(now);
        }
        self.counters.requests.add(1);
        self.sampler.note(request.hash, request.key);
        match request.operation {
            Operation::Get { with_cas, expiry } => {
                let write = |item: &Item<'_>| write_value(out, request.key, item, with_cas);
                self.get(request, expiry, now, write);
            }
            Operation::Store {
                verb,
                flags,
                expiry,
                is_quiet,
            } => {
                let properties = Properties {
                    flags,
                    expiry,
                    ..Properties::default()
                };
                let written = self.write(request, verb, properties, now);
                // As in memcached, this error is answered in any case.
                if !is_quiet || written == Written::NoMemory {
                    out.extend_from_slice(written.text());
                }
            }
            Operation::Arithmetic {
                delta,
                is_increment,
                is_quiet,
            } => {
                let added = self.add(request, delta, is_increment, 0, None, now);
                if added == Err(NotAdded::Missing) {
                    self.count_missing_number(is_increment);
                }
                match added {
                    Err(NotAdded::NoMemory) => out.extend_from_slice(NO_MEMORY_FOR_NUMBER),
                    _ if is_quiet => {}
                    Ok((new, _)) => {
                        number::write(out, new);
                        out.extend_from_slice(END_OF_LINE);
                    }
                    Err(NotAdded::NotNumber) => out.extend_from_slice(NO_NUMBER),
                    Err(NotAdded::Missing | NotAdded::Exists) => out.extend_from_slice(NOT_FOUND),
                }
            }
            Operation::Touch { expiry, is_quiet } => {
                let touched = self.store.touch(request.hash, request.key, expiry, now);
                let answer = match touched {
                    Ok(true) => {
                        self.store.get(request.hash, request.key, now);
                        self.counters.touch_hits.add(1);
                        b"TOUCHED\r\n"
                    }
                    Ok(false) => {
                        self.counters.touch_misses.add(1);
                        NOT_FOUND
                    }
                    Err(_) => NO_MEMORY.as_bytes(),
                };
                if !is_quiet {
                    out.extend_from_slice(answer);
                }
            }
            Operation::Delete { is_quiet } => {
                let found = self.store.peek(request.hash, request.key, now).is_some();
                self.store.remove(request.hash, request.key);
                self.counters.delete_hits.count_if(found);
                self.counters.delete_misses.count_if(!found);
                if !is_quiet {
                    out.extend_from_slice(if found { b"DELETED\r\n" } else { NOT_FOUND });
                }
            }
            Operation::Forget => {
                self.store.remove(request.hash, request.key);
            }
            Operation::Flush { at } => {
                // As in memcached, the next number is another one.
                self.next_cas();
                self.flush_at = Some(at);
                self.flush_if_due(now);
            }
            Operation::Meta(command) => self.meta(command, request, clock, out),
            Operation::Binary { command, is_quiet } => {
                self.binary(command, is_quiet, request, clock, out);
            }
        }
    }

    /// Does what is to be done once a second.
    pub(crate) fn second(&mut self, clock: &Clock, hottest: &Hottest) {
        self.sampler.tell(hottest);
        self.flush_if_due(clock.now());
        self.publish();
    }

    /// Makes the figures of the store known to all threads.
    pub(crate) fn publish(&self) {
        let (counters, counts) = (&self.counters, self.store.counts());
        counters.curr_items.set(self.store.len() as u64);
        counters.bytes.set(self.store.bytes() as u64);
        counters.hash_bytes.set(self.store.index_bytes() as u64);
        counters.total_items.set(counts.written);
        counters.evictions.set(counts.evicted);
        counters.evicted_unfetched.set(counts.evicted_unfetched);
        counters.reclaimed.set(counts.reclaimed);
        counters.expired_unfetched.set(counts.expired_unfetched);
        counters.moved.set(counts.moved);
    }

    #[cold]
    fn flush_if_due(&mut self, now: u32) {
        if self.flush_at.is_some_and(|at| at <= now) && self.store.clear().is_ok() {
            self.flush_at = None;
        }
    }

    /// Hands an item to `write`, and sets its expiry. Returns whether there is one.
    #[inline]
    fn get(
        &mut self,
        request: &Request<'_>,
        expiry: Option<u32>,
        now: u32,
        write: impl FnOnce(&Item<'_>),
    ) -> bool {
        let reclaimed = self.store.counts().reclaimed;
        let found = self.store.get(request.hash, request.key, now);
        if let Some(item) = &found {
            write(item);
        }
        let is_there = found.is_some();
        let counters = &self.counters;
        if !is_there && self.store.counts().reclaimed > reclaimed {
            counters.get_expired.add(1);
        }
        let Some(expiry) = expiry else {
            counters.get_hits.count_if(is_there);
            counters.get_misses.count_if(!is_there);
            return is_there;
        };
        counters.touch_hits.count_if(is_there);
        counters.touch_misses.count_if(!is_there);
        // An item that finds no room for an expiry keeps the one that it has.
        let _ = self.store.touch(request.hash, request.key, expiry, now);
        is_there
    }

    fn write(
        &mut self,
        request: &Request<'_>,
        verb: Verb,
        properties: Properties,
        now: u32,
    ) -> Written {
        self.counters.cmd_set.add(1);
        let Request {
            hash, key, value, ..
        } = *request;
        if verb == Verb::Set {
            return self.put(request, value, properties, now);
        }
        let old = self.store.peek(hash, key, now);
        match (verb, old) {
            (Verb::Add, Some(_)) => {
                // As in memcached, that counts as a use.
                self.store.count_use(hash, key, now);
                Written::NotStored
            }
            (Verb::Replace | Verb::Append | Verb::Prepend, None) => Written::NotStored,
            (Verb::Cas(_), None) => {
                self.counters.cas_misses.add(1);
                Written::NotFound
            }
            (Verb::Cas(expected), Some(old)) if old.properties.cas != expected || !self.has_cas => {
                self.counters.cas_badval.add(1);
                Written::Exists
            }
            (Verb::Append | Verb::Prepend, Some(old)) => {
                let properties = renewed(old.properties);
                let len = old.value.len() + value.len();
                if item_size(key, len, properties.flags) > self.largest_item {
                    return Written::NotStored;
                }
                let parts = if verb == Verb::Append {
                    [old.value, value]
                } else {
                    [value, old.value]
                };
                let joined = parts.concat();
                self.put(request, &joined, properties, now)
            }
            (verb, _) => {
                self.counters
                    .cas_hits
                    .count_if(matches!(verb, Verb::Cas(_)));
                self.put(request, value, properties, now)
            }
        }
    }

    /// Writes an item with a new cas.
    fn put(
        &mut self,
        request: &Request<'_>,
        value: &[u8],
        properties: Properties,
        now: u32,
    ) -> Written {
        let cas = self.next_cas();
        let properties = Properties { cas, ..properties };
        let Request { hash, key, .. } = *request;
        match self.store.put(hash, key, value, properties, now) {
            Ok(()) => Written::Stored { cas },
            Err(_) => {
                self.forget_without_memory(request);
                Written::NoMemory
            }
        }
    }

    /// Removes an item that there is no room to replace or to change: it is out of date.
    #[cold]
    fn forget_without_memory(&mut self, request: &Request<'_>) {
        self.store.remove(request.hash, request.key);
        self.counters.store_no_memory.add(1);
    }

    /// Adds to a number, if its item has this `cas`, or that is 0, and sets its expiry if one is given. Returns
    /// the new number and cas.
    fn add(
        &mut self,
        request: &Request<'_>,
        delta: u64,
        is_increment: bool,
        cas: u64,
        expiry: Option<u32>,
        now: u32,
    ) -> Result<(u64, u64), NotAdded> {
        let Request { hash, key, .. } = *request;
        let item = self.store.peek(hash, key, now).ok_or(NotAdded::Missing)?;
        // As in memcached, that nothing is no number is seen before the cas.
        if cas != 0 && cas != item.properties.cas && !item.value.is_empty() {
            return Err(NotAdded::Exists);
        }
        // A zero ends the number, as C's strings end.
        let text = item
            .value
            .split(|&byte| byte == 0)
            .next()
            .unwrap_or_default();
        let (len, properties) = (item.value.len(), item.properties);
        let old = number::u64(text);
        self.store.add_work(len);
        let old = old.ok_or(NotAdded::NotNumber)?;
        let [hits, _] = self.counters.of_arithmetic(is_increment);
        hits.add(1);
        let new = if is_increment {
            old.wrapping_add(delta)
        } else {
            old.saturating_sub(delta)
        };
        let mut digits = Vec::new();
        number::write(&mut digits, new);
        let is_longer = digits.len() > len;
        // A number that has become shorter keeps its length.
        digits.resize(digits.len().max(len), b' ');
        let cas = self.next_cas();
        let properties = Properties {
            cas,
            // As in memcached, an item that makes room for a longer one keeps its own.
            expiry: expiry.filter(|_| !is_longer).unwrap_or(properties.expiry),
            ..properties
        };
        let written = if is_longer {
            self.store.put(hash, key, &digits, renewed(properties), now)
        } else {
            self.store.update(hash, key, &digits, properties, now)
        };
        written.map_err(|_| NotAdded::NoMemory)?;
        Ok((new, cas))
    }

    fn count_missing_number(&self, is_increment: bool) {
        let [_, misses] = self.counters.of_arithmetic(is_increment);
        misses.add(1);
    }
}

/// The bytes of an item as memcached counts them. By these it is too large.
pub(crate) fn item_size(key: &[u8], value: usize, flags: u32) -> usize {
    const HEADER: usize = 59;
    const FLAGS: usize = 4;
    key.len() + value + HEADER + if flags == 0 { 0 } else { FLAGS }
}

/// The properties of an item that takes the place of a shorter one, which leaves its marks behind, as in
/// memcached.
fn renewed(old: Properties) -> Properties {
    Properties {
        is_stale: false,
        is_won: false,
        is_binary: false,
        ..old
    }
}

/// Appends the answer with an item.
#[inline]
fn write_value(out: &mut Vec<u8>, key: &[u8], item: &Item<'_>, with_cas: bool) {
    out.reserve(key.len() + item.value.len() + 64);
    out.extend_from_slice(b"VALUE ");
    out.extend_from_slice(key);
    out.push(b' ');
    number::write(out, u64::from(item.properties.flags));
    out.push(b' ');
    number::write(out, item.value.len() as u64);
    if with_cas {
        out.push(b' ');
        number::write(out, item.properties.cas);
    }
    out.extend_from_slice(END_OF_LINE);
    out.extend_from_slice(item.value);
    out.extend_from_slice(END_OF_LINE);
}
