//! Batches: the requests of one read of a connection to one shard, which travel together.

use crate::server::clock::Clock;
use crate::server::{MOST_OUTPUT, MOST_WORK};
use crate::shard::{Operation, Request, Shard};

/// The requests whose items are loaded into the cache together.
const LOADED: usize = 64;

/// A request without its key, value and flags, which lie in the batch's bytes.
struct Packed {
    operation: Operation,
    hash: u64,
    key: u32,
    value: u32,
    words: u32,
}

/// Requests on their way to a shard, and answers on their way back.
#[derive(Default)]
pub(crate) struct Batch {
    requests: Vec<Packed>,
    /// Keys, values and flags, one after the other.
    bytes: Vec<u8>,
    /// The requests that have been run, and where the bytes of the next one begin.
    ran: usize,
    at: usize,
    answers: Vec<u8>,
    /// The end of each answer.
    ends: Vec<usize>,
    /// The answers that have been taken.
    taken: usize,
}

impl Batch {
    /// Adds a request.
    pub(crate) fn push(&mut self, request: &Request<'_>) {
        self.requests.push(Packed {
            operation: request.operation,
            hash: request.hash,
            key: request.key.len() as u32,
            value: request.value.len() as u32,
            words: request.words.len() as u32,
        });
        self.bytes.extend_from_slice(request.key);
        self.bytes.extend_from_slice(request.value);
        self.bytes.extend_from_slice(request.words);
    }

    /// Whether all requests have been run.
    pub(crate) fn is_done(&self) -> bool {
        self.ran == self.requests.len()
    }

    /// The bytes that the batch takes.
    pub(crate) fn len(&self) -> usize {
        self.bytes.len() + self.requests.len() * size_of::<Packed>()
    }

    /// Begins to load the index and the items of the next requests into the cache.
    fn prefetch(&self, shard: &Shard) {
        let next = &self.requests[self.ran..];
        let next = &next[..next.len().min(LOADED)];
        for request in next {
            shard.store.prefetch_index(request.hash);
        }
        if next.len() > 1 {
            for request in next {
                shard.store.prefetch_item(request.hash);
            }
        }
    }

    /// Runs requests until all are done, their answers take much memory, or others should have their turn.
    pub(crate) fn run(&mut self, shard: &mut Shard, clock: &Clock) {
        let (before, work_limit) = (self.ran, shard.store.counts().work + MOST_WORK);
        while let Some(packed) = self.requests.get(self.ran) {
            if self.answers.len() > MOST_OUTPUT || shard.store.counts().work >= work_limit {
                break;
            }
            if (self.ran - before).is_multiple_of(LOADED) {
                self.prefetch(shard);
            }
            let key = self.at + packed.key as usize;
            let value = key + packed.value as usize;
            let words = value + packed.words as usize;
            let request = Request {
                operation: packed.operation,
                hash: packed.hash,
                key: &self.bytes[self.at..key],
                value: &self.bytes[key..value],
                words: &self.bytes[value..words],
            };
            shard.run(&request, clock, &mut self.answers);
            self.ends.push(self.answers.len());
            self.at = words;
            self.ran += 1;
        }
        shard.counters.batches.add(1);
        shard.counters.delegated.add((self.ran - before) as u64);
        shard.publish();
    }

    /// Takes the next answer. `None` if that request has not been run.
    pub(crate) fn take(&mut self) -> Option<&[u8]> {
        let end = *self.ends.get(self.taken)?;
        let begin = match self.taken {
            0 => 0,
            n => self.ends[n - 1],
        };
        self.taken += 1;
        Some(&self.answers[begin..end])
    }

    /// Forgets everything, and returns the bytes of memory that it keeps.
    pub(crate) fn clear(&mut self) -> usize {
        self.forget_answers();
        self.requests.clear();
        self.bytes.clear();
        (self.ran, self.at) = (0, 0);
        self.requests.capacity() * size_of::<Packed>()
            + self.bytes.capacity()
            + self.answers.capacity()
            + self.ends.capacity() * size_of::<usize>()
    }

    /// Forgets the answers that have been taken, before the batch goes on its way again.
    pub(crate) fn forget_answers(&mut self) {
        self.answers.clear();
        self.ends.clear();
        self.taken = 0;
    }
}
