//! Meta commands.

use super::{NO_MEMORY, NO_NUMBER, NotAdded, Request, Shard, item_size, renewed};
use crate::protocol::meta::{self, Flags};
use crate::protocol::number;
use crate::server::clock::Clock;
use crate::store::{Item, Properties};
use base64::prelude::{BASE64_STANDARD, Engine};

/// A meta command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Meta {
    Get,
    Set,
    Delete,
    Arithmetic,
    Debug,
}

/// An item as the flags of a command tell of it.
struct Told<'a> {
    item: Item<'a>,
    key: &'a [u8],
    /// Whether the key is told in base64.
    is_binary: bool,
    expiry: Expiry,
}

/// The second at which an item expires, while the flags of a command are gone through in their order, as
/// memcached does.
#[derive(Clone, Copy)]
struct Expiry {
    second: u32,
    /// The second that the flag `T` sets.
    touched: Option<u32>,
    /// The second that the flag `N` sets, if the item is new.
    vivified: Option<u32>,
}

impl Expiry {
    /// Begins with the second of an item: none if it is new.
    fn begin(flags: &Flags, item: Option<u32>, clock: &Clock) -> Self {
        let vivified = flags.vivify.filter(|_| item.is_none());
        Self {
            second: item.unwrap_or(0),
            touched: flags.expiry.map(|expiry| clock.expiry(expiry)),
            vivified: vivified.map(|expiry| clock.expiry(expiry)),
        }
    }

    fn pass(&mut self, name: u8) {
        let set = match name {
            b'T' => self.touched,
            b'N' => self.vivified,
            _ => None,
        };
        self.second = set.unwrap_or(self.second);
    }

    /// The second after all flags.
    fn after(mut self, words: &[u8]) -> u32 {
        meta::each(words).for_each(|(name, _)| self.pass(name));
        self.second
    }
}

impl Shard {
    /// Runs a meta command, whose flags have been read once without an error.
    pub(super) fn meta(
        &mut self,
        command: Meta,
        request: &Request<'_>,
        clock: &Clock,
        out: &mut Vec<u8>,
    ) {
        let flags = meta::read(request.words).unwrap_or_default();
        match command {
            Meta::Get => self.meta_get(request, &flags, clock, out),
            Meta::Set => self.meta_set(request, &flags, clock, out),
            Meta::Delete => self.meta_delete(request, &flags, clock, out),
            Meta::Arithmetic => self.meta_arithmetic(request, &flags, clock, out),
            Meta::Debug => self.meta_debug(request, clock, out),
        }
    }

    fn meta_get(&mut self, request: &Request<'_>, flags: &Flags, clock: &Clock, out: &mut Vec<u8>) {
        let Request { hash, key, .. } = *request;
        let now = clock.now();
        let old = self.store.peek(hash, key, now);
        let expiry = Expiry::begin(flags, old.map(|item| item.properties.expiry), clock);
        let mut new = None;
        if old.is_none() && flags.vivify.is_some() {
            let properties = Properties {
                cas: self.next_cas(),
                expiry: expiry.after(request.words),
                is_won: true,
                ..Properties::default()
            };
            if self.store.put(hash, key, &[], properties, now).is_err() {
                self.forget_without_memory(request);
                out.extend_from_slice(NO_MEMORY.as_bytes());
                return;
            }
            new = Some(Item {
                value: &[],
                properties,
                is_fetched: false,
                idle: 0,
            });
        }
        let is_new = new.is_some();
        let Some(item) = new.or_else(|| self.store.peek(hash, key, now)) else {
            // As in memcached, a retrieval that sets the expiry counts as that.
            match flags.expiry {
                Some(_) => self.counters.touch_misses.add(1),
                None => self.counters.get_misses.add(1),
            }
            if !flags.is_quiet {
                write_missing(b"EN", request, flags, out);
            }
            return;
        };
        let before = item.properties;
        let mut wins = is_new;
        if let Some(recache) = flags.recache {
            let mut expiry = expiry;
            let names = meta::each(request.words).map(|(name, _)| name);
            names
                .take_while(|&name| name != b'R')
                .for_each(|name| expiry.pass(name));
            let soon = expiry.second != 0 && expiry.second < clock.expiry(recache);
            wins |= soon && !before.is_won;
        }
        let had_token = before.is_won && !is_new;
        wins |= before.is_stale && !had_token;
        if flags.wants_value {
            out.extend_from_slice(b"VA ");
            number::write(out, item.value.len() as u64);
        } else {
            out.extend_from_slice(b"HD");
        }
        let told = Told {
            item,
            key,
            is_binary: before.is_binary,
            expiry,
        };
        told.write(request.words, now, out);
        for (mark, is_set) in [(b" Z", had_token), (b" X", before.is_stale), (b" W", wins)] {
            if is_set {
                out.extend_from_slice(mark);
            }
        }
        out.extend_from_slice(b"\r\n");
        if flags.wants_value {
            out.extend_from_slice(item.value);
            out.extend_from_slice(b"\r\n");
        }
        if flags.expiry.is_some() {
            self.counters.touch_hits.add(1);
            // An item that finds no room for an expiry keeps the one that it has.
            let _ = self
                .store
                .touch(hash, key, expiry.after(request.words), now);
        } else {
            self.counters.get_hits.add(1);
        }
        if wins && !is_new {
            let win = |properties: &mut Properties| properties.is_won = true;
            // Without room for the mark another client may win, too.
            let _ = self.store.rewrite(hash, key, now, win);
        }
        if !flags.is_unnoticed {
            self.store.get(hash, key, now);
        }
    }

    fn meta_set(&mut self, request: &Request<'_>, flags: &Flags, clock: &Clock, out: &mut Vec<u8>) {
        let Request {
            hash, key, value, ..
        } = *request;
        let now = clock.now();
        self.counters.cmd_set.add(1);
        let mut properties = Properties {
            flags: flags.flags,
            expiry: flags.expiry.map_or(0, |expiry| clock.expiry(expiry)),
            is_binary: flags.is_binary,
            ..Properties::default()
        };
        let old = self.store.peek(hash, key, now);
        let mode = flags.mode.unwrap_or(b'S');
        let mut joined = None;
        let code: &[u8] = match (mode, old, flags.cas) {
            (b'E', Some(_), _) => {
                self.store.count_use(hash, key, now);
                b"NS"
            }
            (b'R', None, None) => b"NS",
            (b'S' | b'R', None, Some(_)) => {
                self.counters.cas_misses.add(1);
                b"NF"
            }
            (b'S' | b'R', Some(old), Some(cas)) if old.properties.cas != cas => {
                if flags.invalidates && cas < old.properties.cas {
                    properties.expiry = old.properties.expiry;
                    properties.is_stale = true;
                    properties.is_won = old.properties.is_won;
                    b"HD"
                } else {
                    self.counters.cas_badval.add(1);
                    b"EX"
                }
            }
            (b'A' | b'P', None, _) => b"NS",
            (b'A' | b'P', Some(old), Some(cas)) if old.properties.cas != cas => b"EX",
            (b'A' | b'P', Some(old), _) => {
                properties = renewed(old.properties);
                let len = old.value.len() + value.len();
                if item_size(key, len, properties.flags) > self.largest_item {
                    b"NS"
                } else {
                    let parts = if mode == b'A' {
                        [old.value, value]
                    } else {
                        [value, old.value]
                    };
                    joined = Some(parts.concat());
                    b"HD"
                }
            }
            (_, _, cas) => {
                self.counters.cas_hits.count_if(cas.is_some());
                b"HD"
            }
        };
        if code == b"HD" {
            let value = joined.as_deref().unwrap_or(value);
            properties.cas = self.next_cas();
            if self.store.put(hash, key, value, properties, now).is_err() {
                self.forget_without_memory(request);
                out.extend_from_slice(NO_MEMORY.as_bytes());
                return;
            }
            if flags.is_quiet {
                return;
            }
        }
        out.extend_from_slice(code);
        for (name, token) in meta::each(request.words) {
            match name {
                b'O' => write_token(out, b'O', token),
                b'k' => write_key(out, key, flags.is_binary),
                b'c' => {
                    out.extend_from_slice(b" c");
                    number::write(out, if code == b"HD" { properties.cas } else { 0 });
                }
                _ => {}
            }
        }
        out.extend_from_slice(b"\r\n");
    }

    fn meta_delete(
        &mut self,
        request: &Request<'_>,
        flags: &Flags,
        clock: &Clock,
        out: &mut Vec<u8>,
    ) {
        let Request { hash, key, .. } = *request;
        let now = clock.now();
        let old = self.store.peek(hash, key, now).map(|item| item.properties);
        let code: &[u8] = match old {
            None => {
                self.counters.delete_misses.add(1);
                b"NF"
            }
            Some(old) if flags.cas.is_some_and(|cas| cas != old.cas) => b"EX",
            Some(_) if flags.invalidates => {
                let cas = self.next_cas();
                let stale = |properties: &mut Properties| {
                    if let Some(expiry) = flags.expiry {
                        properties.expiry = clock.expiry(expiry);
                    }
                    properties.is_stale = true;
                    properties.is_won = false;
                    properties.cas = cas;
                };
                let marked = self.store.rewrite(hash, key, now, stale);
                if marked.is_err() {
                    self.forget_without_memory(request);
                }
                b"HD"
            }
            Some(_) => {
                self.store.remove(hash, key);
                self.counters.delete_hits.add(1);
                b"HD"
            }
        };
        if code == b"HD" && flags.is_quiet {
            return;
        }
        write_missing(code, request, flags, out);
    }

    fn meta_arithmetic(
        &mut self,
        request: &Request<'_>,
        flags: &Flags,
        clock: &Clock,
        out: &mut Vec<u8>,
    ) {
        let Request { hash, key, .. } = *request;
        let now = clock.now();
        let is_increment = !matches!(flags.mode, Some(b'D' | b'-'));
        let old = self.store.peek(hash, key, now);
        let was_there = old.is_some();
        let old_properties = old.map(|item| item.properties).unwrap_or_default();
        let expiry = Expiry::begin(flags, old.map(|item| item.properties.expiry), clock);
        let after = expiry.after(request.words);
        let cas = flags.cas.unwrap_or(0);
        let added = self.add(request, flags.delta, is_increment, cas, Some(after), now);
        let mut properties = old_properties;
        let new = match added {
            Ok((new, cas)) => {
                properties.cas = cas;
                new
            }
            Err(NotAdded::Missing) => {
                self.count_missing_number(is_increment);
                if flags.vivify.is_none() {
                    write_missing(b"NF", request, flags, out);
                    return;
                }
                let mut digits = Vec::new();
                number::write(&mut digits, flags.initial);
                properties = Properties {
                    cas: self.next_cas(),
                    expiry: after,
                    ..Properties::default()
                };
                if self.store.put(hash, key, &digits, properties, now).is_err() {
                    self.forget_without_memory(request);
                    out.extend_from_slice(NO_MEMORY.as_bytes());
                    return;
                }
                flags.initial
            }
            Err(NotAdded::Exists) => {
                write_missing(b"EX", request, flags, out);
                return;
            }
            Err(NotAdded::NotNumber) => {
                out.extend_from_slice(NO_NUMBER);
                return;
            }
            Err(NotAdded::NoMemory) => {
                out.extend_from_slice(NO_MEMORY.as_bytes());
                return;
            }
        };
        let mut digits = Vec::new();
        number::write(&mut digits, new);
        // As in memcached, the answer to a new number is not left out.
        if flags.is_quiet && was_there {
            return;
        }
        if flags.wants_value {
            out.extend_from_slice(b"VA ");
            number::write(out, digits.len() as u64);
        } else {
            out.extend_from_slice(b"HD");
        }
        // It may have expired at once.
        let nothing = Item {
            value: &digits,
            properties,
            is_fetched: false,
            idle: 0,
        };
        let written = self.store.peek(hash, key, now).unwrap_or(nothing);
        let told = Told {
            item: written,
            key,
            is_binary: flags.is_binary,
            expiry,
        };
        told.write(request.words, now, out);
        out.extend_from_slice(b"\r\n");
        if flags.wants_value {
            out.extend_from_slice(&digits);
            out.extend_from_slice(b"\r\n");
        }
    }

    fn meta_debug(&mut self, request: &Request<'_>, clock: &Clock, out: &mut Vec<u8>) {
        let now = clock.now();
        let Some(item) = self.store.peek(request.hash, request.key, now) else {
            out.extend_from_slice(b"EN\r\n");
            return;
        };
        let Properties { expiry, cas, .. } = item.properties;
        out.extend_from_slice(b"ME ");
        if item.properties.is_binary {
            out.extend_from_slice(BASE64_STANDARD.encode(request.key).as_bytes());
        } else {
            out.extend_from_slice(request.key);
        }
        let ttl = if expiry == 0 {
            String::from("-1")
        } else {
            format!("-{}", expiry - now)
        };
        let fetched = if item.is_fetched { "yes" } else { "no" };
        let size = item.value.len() + request.key.len();
        let text = format!(
            " exp={ttl} la={} cas={cas} fetch={fetched} cls=1 size={size}\r\n",
            item.idle
        );
        out.extend_from_slice(text.as_bytes());
    }
}

impl Told<'_> {
    /// Appends what the flags ask for, in their order.
    fn write(&self, words: &[u8], now: u32, out: &mut Vec<u8>) {
        let item = &self.item;
        let mut expiry = self.expiry;
        for (name, token) in meta::each(words) {
            expiry.pass(name);
            let mut tell = |number: u64| {
                out.extend_from_slice(&[b' ', name]);
                number::write(out, number);
            };
            match name {
                b's' => tell(item.value.len() as u64),
                b't' if expiry.second == 0 => out.extend_from_slice(b" t-1"),
                // One that is over counts down from 2^32, as in memcached.
                b't' => tell(u64::from(expiry.second.wrapping_sub(now))),
                b'c' => tell(item.properties.cas),
                b'f' => tell(u64::from(item.properties.flags)),
                b'l' => tell(u64::from(item.idle)),
                b'h' => tell(u64::from(item.is_fetched)),
                b'O' => write_token(out, b'O', token),
                b'k' => write_key(out, self.key, self.is_binary),
                _ => {}
            }
        }
    }
}

/// Appends an answer without an item: a code, and the flags that say what was asked.
fn write_missing(code: &[u8], request: &Request<'_>, flags: &Flags, out: &mut Vec<u8>) {
    out.extend_from_slice(code);
    for (name, token) in meta::each(request.words) {
        match name {
            b'O' => write_token(out, b'O', token),
            b'k' => write_key(out, request.key, flags.is_binary),
            _ => {}
        }
    }
    out.extend_from_slice(b"\r\n");
}

fn write_token(out: &mut Vec<u8>, name: u8, token: &[u8]) {
    out.extend_from_slice(&[b' ', name]);
    out.extend_from_slice(token);
}

fn write_key(out: &mut Vec<u8>, key: &[u8], is_binary: bool) {
    out.extend_from_slice(b" k");
    if is_binary {
        out.extend_from_slice(BASE64_STANDARD.encode(key).as_bytes());
        out.extend_from_slice(b" b");
    } else {
        out.extend_from_slice(key);
    }
}
