//! Commands of the binary protocol.

use super::{NotAdded, Request, Shard, Written};
use crate::protocol::binary::{Answer, Head, KeyCommand, Status, write_error, write_miss};
use crate::protocol::number;
use crate::protocol::text::Verb;
use crate::server::clock::Clock;
use crate::store::{Item, Properties};

impl Shard {
    /// Runs a command whose header and extras are the request's words. A quiet one answers an error, or
    /// an item.
    pub(super) fn binary(
        &mut self,
        command: KeyCommand,
        is_quiet: bool,
        request: &Request<'_>,
        clock: &Clock,
        out: &mut Vec<u8>,
    ) {
        let Some(head) = Head::read(request.words) else {
            return;
        };
        let now = clock.now();
        let header = &head.header;
        let mut number = [0; 8];
        let done = match command {
            KeyCommand::Get { with_key, touches } => {
                let expiry = touches.then(|| clock.unsigned_expiry(head.time()));
                let key = if with_key { request.key } else { &[] };
                let write = |item: &Item<'_>| write_item(&head, key, item, item.value, out);
                let is_there = self.get(request, expiry, now, write);
                match (is_there || is_quiet, with_key) {
                    (true, _) => {}
                    (false, true) => write_miss(key, header, out),
                    (false, false) => write_error(Status::NotFound, header, out),
                }
                return;
            }
            KeyCommand::Touch => {
                let expiry = Some(clock.unsigned_expiry(head.time()));
                let write = |item: &Item<'_>| write_item(&head, &[], item, &[], out);
                if !self.get(request, expiry, now, write) {
                    write_error(Status::NotFound, header, out);
                }
                return;
            }
            KeyCommand::Store(verb) => self
                .binary_store(verb, &head, request, clock)
                .map(|cas| (cas, &[][..])),
            KeyCommand::Delete => self
                .binary_delete(&head, request, now)
                .map(|()| (0, &[][..])),
            KeyCommand::Arithmetic { is_increment } => self
                .binary_add(is_increment, &head, request, clock)
                .map(|(new, cas)| {
                    number = new.to_be_bytes();
                    (cas, &number[..])
                }),
        };
        match done {
            Ok(_) if is_quiet => {}
            Ok((cas, value)) => {
                let answer = Answer {
                    value,
                    cas,
                    ..Answer::default()
                };
                answer.write(header, out);
            }
            Err(status) => write_error(status, header, out),
        }
    }

    /// Writes a value. Returns the item's cas.
    fn binary_store(
        &mut self,
        verb: Verb,
        head: &Head<'_>,
        request: &Request<'_>,
        clock: &Clock,
    ) -> Result<u64, Status> {
        let now = clock.now();
        let cas = if self.has_cas { head.header.cas } else { 0 };
        let joins = matches!(verb, Verb::Append | Verb::Prepend);
        let verb = match cas {
            0 => verb,
            _ if !joins => Verb::Cas(cas),
            _ => {
                let old = self.store.peek(request.hash, request.key, now);
                if old.is_some_and(|old| old.properties.cas != cas) {
                    self.counters.cmd_set.add(1);
                    return Err(Status::Exists);
                }
                verb
            }
        };
        let (flags, expiry) = head.stored();
        let properties = Properties {
            flags,
            expiry: clock.unsigned_expiry(expiry),
            ..Properties::default()
        };
        match (self.write(request, verb, properties, now), verb) {
            (Written::Stored { cas }, _) => Ok(cas),
            (Written::NotStored, Verb::Add) | (Written::Exists, _) => Err(Status::Exists),
            (Written::NotStored, Verb::Replace) | (Written::NotFound, _) => Err(Status::NotFound),
            (Written::NotStored, _) => Err(Status::NotStored),
            (Written::NoMemory, _) => Err(Status::NoMemory),
        }
    }

    fn binary_delete(
        &mut self,
        head: &Head<'_>,
        request: &Request<'_>,
        now: u32,
    ) -> Result<(), Status> {
        let Request { hash, key, .. } = *request;
        let cas = head.header.cas;
        match self.store.peek(hash, key, now) {
            Some(old) if cas != 0 && cas != old.properties.cas => Err(Status::Exists),
            Some(_) => {
                self.store.remove(hash, key);
                self.counters.delete_hits.add(1);
                Ok(())
            }
            None => {
                self.counters.delete_misses.add(1);
                Err(Status::NotFound)
            }
        }
    }

    /// Adds to a number, or creates it. Returns the number and the item's cas.
    fn binary_add(
        &mut self,
        is_increment: bool,
        head: &Head<'_>,
        request: &Request<'_>,
        clock: &Clock,
    ) -> Result<(u64, u64), Status> {
        let (delta, initial) = head.counted();
        let added = self.add(
            request,
            delta,
            is_increment,
            head.header.cas,
            None,
            clock.now(),
        );
        match (added, initial) {
            (Ok(added), _) => Ok(added),
            (Err(NotAdded::Missing), None) => {
                self.count_missing_number(is_increment);
                Err(Status::NotFound)
            }
            (Err(NotAdded::Missing), Some((initial, expiry))) => {
                let properties = Properties {
                    expiry: clock.unsigned_expiry(expiry),
                    ..Properties::default()
                };
                let mut digits = Vec::new();
                number::write(&mut digits, initial);
                match self.put(request, &digits, properties, clock.now()) {
                    Written::Stored { cas } => Ok((initial, cas)),
                    _ => Err(Status::NoMemory),
                }
            }
            (Err(NotAdded::Exists), _) => Err(Status::Exists),
            (Err(NotAdded::NotNumber), _) => Err(Status::NotNumber),
            (Err(NotAdded::NoMemory), _) => Err(Status::NoMemory),
        }
    }
}

/// Appends the answer with an item: its flags as extras, and its cas.
#[inline]
fn write_item(head: &Head<'_>, key: &[u8], item: &Item<'_>, value: &[u8], out: &mut Vec<u8>) {
    let answer = Answer {
        extras: &item.properties.flags.to_be_bytes(),
        key,
        value,
        cas: item.properties.cas,
    };
    answer.write(&head.header, out);
}
