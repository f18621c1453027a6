//! A shard: a part of the keys, with the store that has their items. It runs operations and writes
//! their answers.

mod meta;

pub(crate) use self::meta::Meta;

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
    /// Remove all items of the shard at that second.
    Flush {
        at: u32,
    },
    Meta(Meta),
}

/// An operation with its key and, if it writes, its value.
#[derive(Clone, Copy)]
pub(crate) struct Request<'a> {
    pub(crate) operation: Operation,
    pub(crate) hash: u64,
    pub(crate) key: &'a [u8],
    pub(crate) value: &'a [u8],
    /// The flags of a meta command.
    pub(crate) words: &'a [u8],
}

/// A part of the keys.
pub(crate) struct Shard {
    pub(crate) store: Store,
    pub(crate) counters: Arc<Counters>,
    /// The most bytes of a key and its value.
    largest_item: usize,
    has_cas: bool,
    /// The second at which all items go.
    flush_at: Option<u32>,
    /// Samples of the keys that are asked for.
    sampler: Sampler,
}

const STORED: &[u8] = b"STORED\r\n";
const NOT_STORED: &[u8] = b"NOT_STORED\r\n";
const EXISTS: &[u8] = b"EXISTS\r\n";
const NOT_FOUND: &[u8] = b"NOT_FOUND\r\n";
const NO_MEMORY: &[u8] = b"SERVER_ERROR out of memory storing object\r\n";
const NO_MEMORY_FOR_NUMBER: &[u8] = b"SERVER_ERROR out of memory in incr\r\n";
const NO_NUMBER: &[u8] = b"CLIENT_ERROR cannot increment or decrement non-numeric value\r\n";
const END_OF_LINE: &[u8] = b"\r\n";

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
            Operation::Get { with_cas, expiry } => self.get(request, with_cas, expiry, now, out),
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
                let answer = self.write(request, verb, properties, now);
                // As in memcached, this error is answered in any case.
                if !is_quiet || answer == NO_MEMORY {
                    out.extend_from_slice(answer);
                }
            }
            Operation::Arithmetic {
                delta,
                is_increment,
                is_quiet,
            } => {
                let before = out.len();
                let has_room = self.add(request, delta, is_increment, now, out);
                if is_quiet && has_room {
                    out.truncate(before);
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
                    Err(_) => NO_MEMORY,
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
            Operation::Flush { at } => {
                self.flush_at = Some(at);
                self.flush_if_due(now);
            }
            Operation::Meta(command) => self.meta(command, request, clock, out),
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

    fn get(
        &mut self,
        request: &Request<'_>,
        with_cas: bool,
        expiry: Option<u32>,
        now: u32,
        out: &mut Vec<u8>,
    ) {
        let reclaimed = self.store.counts().reclaimed;
        let found = self.store.get(request.hash, request.key, now);
        if let Some(item) = &found {
            write_value(out, request.key, item, with_cas);
        }
        let is_there = found.is_some();
        let counters = &self.counters;
        if !is_there && self.store.counts().reclaimed > reclaimed {
            counters.get_expired.add(1);
        }
        let Some(expiry) = expiry else {
            counters.get_hits.count_if(is_there);
            counters.get_misses.count_if(!is_there);
            return;
        };
        counters.touch_hits.count_if(is_there);
        counters.touch_misses.count_if(!is_there);
        // An item that finds no room for an expiry keeps the one that it has.
        let _ = self.store.touch(request.hash, request.key, expiry, now);
    }

    fn write(
        &mut self,
        request: &Request<'_>,
        verb: Verb,
        properties: Properties,
        now: u32,
    ) -> &'static [u8] {
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
                self.store.get(hash, key, now);
                NOT_STORED
            }
            (Verb::Replace | Verb::Append | Verb::Prepend, None) => NOT_STORED,
            (Verb::Cas(_), None) => {
                self.counters.cas_misses.add(1);
                NOT_FOUND
            }
            (Verb::Cas(expected), Some(old)) if old.properties.cas != expected || !self.has_cas => {
                self.counters.cas_badval.add(1);
                EXISTS
            }
            (Verb::Append | Verb::Prepend, Some(old)) => {
                let properties = renewed(old.properties);
                let parts = if verb == Verb::Append {
                    [old.value, value]
                } else {
                    [value, old.value]
                };
                let joined = parts.concat();
                if joined.len() + key.len() > self.largest_item {
                    return NOT_STORED;
                }
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
    ) -> &'static [u8] {
        let properties = Properties {
            cas: self.next_cas(),
            ..properties
        };
        let Request { hash, key, .. } = *request;
        match self.store.put(hash, key, value, properties, now) {
            Ok(()) => STORED,
            Err(_) => {
                // Whatever was there is out of date.
                self.store.remove(hash, key);
                self.counters.store_no_memory.add(1);
                NO_MEMORY
            }
        }
    }

    /// Adds to a number. Returns false if there was no room for the longer one.
    fn add(
        &mut self,
        request: &Request<'_>,
        delta: u64,
        is_increment: bool,
        now: u32,
        out: &mut Vec<u8>,
    ) -> bool {
        let Request { hash, key, .. } = *request;
        let [hits, misses] = self.counters.of_arithmetic(is_increment);
        let Some(item) = self.store.get(hash, key, now) else {
            misses.add(1);
            out.extend_from_slice(NOT_FOUND);
            return true;
        };
        // What follows the value in memcached ends the number.
        let Some(old) = number::u64(item.value) else {
            out.extend_from_slice(NO_NUMBER);
            return true;
        };
        hits.add(1);
        let new = if is_increment {
            old.wrapping_add(delta)
        } else {
            old.saturating_sub(delta)
        };
        let (len, properties) = (item.value.len(), item.properties);
        let begin = out.len();
        number::write(out, new);
        let mut digits = out[begin..].to_vec();
        // A number that has become shorter keeps its length.
        digits.resize(digits.len().max(len), b' ');
        let properties = if digits.len() > len {
            renewed(properties)
        } else {
            properties
        };
        let properties = Properties {
            cas: self.next_cas(),
            ..properties
        };
        if self.store.put(hash, key, &digits, properties, now).is_err() {
            out.truncate(begin);
            out.extend_from_slice(NO_MEMORY_FOR_NUMBER);
            return false;
        }
        self.store.get(hash, key, now); // a use
        out.extend_from_slice(END_OF_LINE);
        true
    }
}

/// The properties of an item that takes the place of an older one: it is not stale.
fn renewed(old: Properties) -> Properties {
    Properties {
        is_stale: false,
        is_won: false,
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
