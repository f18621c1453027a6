//! The log of a shard: the memory in which its records lie, one behind the other, in segments.

use super::record::{Draft, Record, Value};
use corelay_sync::prefetch_read;
use memmap2::MmapMut;
use std::io;

/// The share of a segment above which a value lies outside of the log, in memory of its own.
const LARGE: usize = 8;
/// The bytes of memory outside of the log come in pages.
const PAGE: usize = 4096;

/// The queue that a segment's items belong to: see [`super::evict`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Queue {
    /// New items, of which most are seldom asked for.
    Small,
    /// Items that have been asked for.
    Main,
}

/// A search of a segment for expired records, which may be interrupted.
#[derive(Clone, Copy)]
pub(super) struct Search {
    /// The bytes that have been searched.
    pub(super) at: u32,
    /// No record that is searched and still there expires before this second.
    pub(super) earliest_expiry: u32,
}

impl Search {
    /// The search of a segment from its begin.
    const BEGIN: Self = Self {
        at: 0,
        earliest_expiry: u32::MAX,
    };
}

/// Memory for records, with what is known of them.
struct Segment {
    bytes: MmapMut,
    /// The number from which the records' cas numbers count.
    base: u64,
    /// The bytes that have been written.
    written: u32,
    /// The bytes of records that the index knows.
    live: u32,
    /// The bytes that have been written, here and outside.
    charge: usize,
    /// No record expires before this second.
    earliest_expiry: u32,
    search: Search,
    queue: Queue,
    /// Nothing more will be written.
    is_closed: bool,
}

impl Segment {
    /// The bytes of memory that it takes, or will take once it has been written.
    fn resident(&self) -> usize {
        if self.is_closed {
            pages(self.written as usize)
        } else {
            self.bytes.len()
        }
    }
}

/// Segments, and values outside of them.
pub(super) struct Log {
    /// The segments by number. `None` is free.
    segments: Vec<Option<Segment>>,
    free: Vec<u32>,
    /// The binary logarithm of a segment's bytes.
    segment_bits: u32,
    /// Records begin at multiples of this power of two, so that 32 bits say where.
    unit_bits: u32,
    /// The values outside of the log, by number.
    large: Vec<Option<MmapMut>>,
    free_large: Vec<u32>,
    /// The bytes of memory of segments and of values outside of them.
    bytes: usize,
}

/// The bytes of pages for a value of `len` bytes.
fn pages(len: usize) -> usize {
    len.next_multiple_of(PAGE)
}

impl Log {
    /// Makes a log for `budget` bytes, without segments. A segment has a 256th of the budget,
    /// between 64 KiB and 8 MiB, so that there are enough of them to choose from.
    pub(super) fn new(budget: usize) -> Self {
        let segment = (budget / 256).clamp(64 << 10, 8 << 20).next_power_of_two();
        // Twice the budget, for segments on their way.
        let bits = (2 * budget).next_power_of_two().ilog2();
        Self {
            segments: Vec::new(),
            free: Vec::new(),
            segment_bits: segment.ilog2(),
            unit_bits: bits.saturating_sub(32),
            large: Vec::new(),
            free_large: Vec::new(),
            bytes: 0,
        }
    }

    pub(super) fn segment_bytes(&self) -> usize {
        1 << self.segment_bits
    }

    /// The bytes that segments and values outside of them take.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Whether a value of that many bytes lies outside of the log.
    pub(super) fn is_large(&self, len: usize) -> bool {
        len > self.segment_bytes() / LARGE
    }

    /// The bytes of memory that a large value takes.
    pub(super) fn large_size(len: usize) -> usize {
        pages(len)
    }

    /// The number of segments that may be begun before locations have no more bits for another one.
    pub(super) fn segments_left(&self) -> usize {
        let most = 1_usize << (32 + self.unit_bits - self.segment_bits);
        most - (self.segments.len() - self.free.len())
    }

    /// Begins a segment, whose records' cas numbers count from `base`.
    ///
    /// # Errors
    /// The system gives no memory, or there are as many segments as locations can tell apart.
    pub(super) fn begin_segment(&mut self, queue: Queue, base: u64) -> io::Result<u32> {
        if self.segments_left() == 0 {
            return Err(io::ErrorKind::OutOfMemory.into());
        }
        let segment = Segment {
            bytes: MmapMut::map_anon(self.segment_bytes())?,
            base,
            written: 0,
            live: 0,
            charge: 0,
            earliest_expiry: u32::MAX,
            search: Search::BEGIN,
            queue,
            is_closed: false,
        };
        self.bytes += segment.resident();
        let number = self.free.pop().unwrap_or_else(|| {
            self.segments.push(None);
            self.segments.len() as u32 - 1
        });
        self.segments[number as usize] = Some(segment);
        Ok(number)
    }

    /// Closes a segment: nothing more will be written to it, and the rest of its memory is free.
    pub(super) fn close_segment(&mut self, number: u32) {
        self.bytes -= self.segment(number).resident();
        self.segment_mut(number).is_closed = true;
        self.bytes += self.segment(number).resident();
    }

    /// Frees a segment, to whose records nothing leads any more.
    pub(super) fn end_segment(&mut self, number: u32) {
        debug_assert_eq!(self.segment(number).live, 0);
        self.bytes -= self.segment(number).resident();
        self.segments[number as usize] = None;
        self.free.push(number);
    }

    #[inline]
    fn segment(&self, number: u32) -> &Segment {
        self.segments[number as usize]
            .as_ref()
            .expect("a segment in use")
    }

    fn segment_mut(&mut self, number: u32) -> &mut Segment {
        self.segments[number as usize]
            .as_mut()
            .expect("a segment in use")
    }

    pub(super) fn base(&self, number: u32) -> u64 {
        self.segment(number).base
    }

    pub(super) fn queue(&self, number: u32) -> Queue {
        self.segment(number).queue
    }

    pub(super) fn written(&self, number: u32) -> u32 {
        self.segment(number).written
    }

    pub(super) fn live(&self, number: u32) -> u32 {
        self.segment(number).live
    }

    /// Whether a segment is closed and has no record any more that the index knows.
    pub(super) fn is_dead(&self, number: u32) -> bool {
        let segment = self.segment(number);
        segment.is_closed && segment.live == 0
    }

    pub(super) fn earliest_expiry(&self, number: u32) -> u32 {
        self.segment(number).earliest_expiry
    }

    /// The search for expired records that goes on in a segment.
    pub(super) fn search(&self, number: u32) -> Search {
        self.segment(number).search
    }

    /// Interrupts a search, or ends it if it has come to the end of the segment.
    pub(super) fn set_search(&mut self, number: u32, search: Search) {
        let segment = self.segment_mut(number);
        segment.search = search;
        if search.at >= segment.written {
            segment.earliest_expiry = search.earliest_expiry;
            segment.search = Search::BEGIN;
        }
    }

    /// Notes that a record there expires at `second`; 0 if it does not.
    pub(super) fn note_expiry(&mut self, location: u32, second: u32) {
        if second != 0 {
            let segment = self.segment_of(location);
            let segment = self.segment_mut(segment);
            segment.earliest_expiry = segment.earliest_expiry.min(second);
            // The search may be past that record.
            let search = &mut segment.search;
            search.earliest_expiry = search.earliest_expiry.min(second);
        }
    }

    /// The bytes that a segment takes and that have not been written.
    pub(super) fn rest(&self, number: u32) -> usize {
        let segment = self.segment(number);
        segment.resident().saturating_sub(segment.written as usize)
    }

    /// The memory of all segments and of values outside of them, each with the bytes that it takes, once
    /// nothing leads to it any more.
    pub(super) fn into_memory(self) -> impl Iterator<Item = (MmapMut, usize)> {
        let segments = self.segments.into_iter().flatten();
        let segments = segments.map(|segment| {
            let resident = segment.resident();
            (segment.bytes, resident)
        });
        let large = self.large.into_iter().flatten();
        segments.chain(large.map(|value| {
            let resident = pages(value.len());
            (value, resident)
        }))
    }

    /// The numbers of all segments in use.
    pub(super) fn numbers(&self) -> impl Iterator<Item = u32> + '_ {
        let segments = self.segments.iter().zip(0..);
        segments.filter_map(|(segment, number)| segment.as_ref().map(|_| number))
    }

    /// The number of the segment in which a record lies.
    #[inline]
    pub(super) fn segment_of(&self, location: u32) -> u32 {
        ((u64::from(location) << self.unit_bits) >> self.segment_bits) as u32
    }

    #[inline]
    fn offset(&self, location: u32) -> usize {
        let at = u64::from(location) << self.unit_bits;
        at as usize & (self.segment_bytes() - 1)
    }

    /// The location of the record at `offset` of a segment.
    pub(super) fn location(&self, segment: u32, offset: u32) -> u32 {
        let at = (u64::from(segment) << self.segment_bits) | u64::from(offset);
        (at >> self.unit_bits) as u32
    }

    /// The bytes from one record to the next, if that one has so many.
    pub(super) fn step(&self, size: usize) -> u32 {
        size.next_multiple_of(1 << self.unit_bits) as u32
    }

    #[inline]
    pub(super) fn record(&self, location: u32) -> Record<'_> {
        let segment = self.segment(self.segment_of(location));
        Record::read(&segment.bytes[self.offset(location)..])
    }

    /// The bytes from the record on.
    #[inline]
    pub(super) fn record_mut(&mut self, location: u32) -> &mut [u8] {
        let (segment, offset) = (self.segment_of(location), self.offset(location));
        &mut self.segment_mut(segment).bytes[offset..]
    }

    #[inline]
    pub(super) fn prefetch(&self, location: u32) {
        let segment = self.segment(self.segment_of(location));
        let offset = self.offset(location);
        prefetch_read(&segment.bytes[offset]);
        let second = (offset + 64).min(segment.bytes.len() - 1);
        prefetch_read(&segment.bytes[second]);
    }

    /// Writes a record at the end of a segment. Returns `None` if it does not fit. A segment is
    /// full, too, when its records have values outside of as many bytes as it has itself, so that
    /// all segments that are evicted free about as much.
    pub(super) fn append(&mut self, number: u32, draft: &Draft<'_>) -> Option<u32> {
        let segment = self.segment(number);
        let at = segment.written;
        let size = draft.size(segment.base);
        let is_full = segment.is_closed || segment.charge >= self.segment_bytes();
        if is_full || at as usize + size > self.segment_bytes() {
            return None;
        }
        let outside = match draft.value {
            Value::Inline(_) => 0,
            Value::Large { len, .. } => pages(len as usize),
        };
        let step = self.step(size);
        let location = self.location(number, at);
        let segment = self.segment_mut(number);
        draft.write(&mut segment.bytes[at as usize..], segment.base);
        // The last record of a segment may end before its step does.
        segment.written = (at + step).min(segment.bytes.len() as u32);
        segment.live += step;
        segment.charge += step as usize + outside;
        self.note_expiry(location, draft.properties.expiry);
        Some(location)
    }

    /// Writes another record in the place of one that has as many bytes. Returns false, and does
    /// nothing, if it has not.
    pub(super) fn overwrite(&mut self, location: u32, draft: &Draft<'_>) -> bool {
        let base = self.base(self.segment_of(location));
        let old = self.record(location);
        let is_large = |value| matches!(value, Value::Large { .. });
        if is_large(old.value()) || is_large(draft.value) || old.size() != draft.size(base) {
            return false;
        }
        draft.write(self.record_mut(location), base);
        self.note_expiry(location, draft.properties.expiry);
        true
    }

    /// Notes that nothing leads to the record any more, and frees its value if that is outside.
    pub(super) fn retire(&mut self, location: u32) {
        let record = self.record(location);
        let step = self.step(record.size());
        if let Value::Large { number, .. } = record.value() {
            self.free_large(number);
        }
        self.unlink(location, step);
    }

    /// Notes that nothing leads to a record of `step` bytes any more, because it lies elsewhere now.
    pub(super) fn unlink(&mut self, location: u32, step: u32) {
        let number = self.segment_of(location);
        self.segment_mut(number).live -= step;
    }

    /// Keeps a large value, and returns its number.
    ///
    /// # Errors
    /// The system gives no memory.
    pub(super) fn keep_large(&mut self, value: &[u8]) -> io::Result<u32> {
        let mut memory = MmapMut::map_anon(value.len())?;
        memory.copy_from_slice(value);
        let number = self.free_large.pop().unwrap_or_else(|| {
            self.large.push(None);
            self.large.len() as u32 - 1
        });
        self.large[number as usize] = Some(memory);
        self.bytes += pages(value.len());
        Ok(number)
    }

    pub(super) fn free_large(&mut self, number: u32) {
        let memory = self.large[number as usize].take();
        self.bytes -= pages(memory.expect("a value that is there").len());
        self.free_large.push(number);
    }

    /// The bytes of a value.
    #[inline]
    pub(super) fn value<'a>(&'a self, value: Value<'a>) -> &'a [u8] {
        match value {
            Value::Inline(bytes) => bytes,
            Value::Large { number, .. } => self.large[number as usize]
                .as_ref()
                .expect("a value that is there"),
        }
    }
}
