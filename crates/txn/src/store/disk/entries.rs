//! The newest version of each entry of a table, in memory that is filled from front to back.
//!
//! Recovery looks up as many keys as the log has records, and each look misses the cache. So an
//! entry is one piece, found by one more look, and [`Entries::prefetch`] lets several misses
//! overlap.
//!
//! ```text
//! slot     high bits of the hash: u16 | place + 1: u48; 0 if it is free
//! place    chunk: u28 | byte in the chunk: u20
//! entry    hash: u64 | epoch: u64 | order: u64 | length of key: u32 | length of value: u32
//!          | room: u64 | key | value | the rest of the room
//! ```

use corelay_sync::prefetch_read;

const HEADER: usize = 40;
/// The bytes of a chunk, in which every entry begins.
const CHUNK: usize = 1 << 20;
/// The length of a value that was removed.
const REMOVED: u32 = u32::MAX;

#[derive(Debug, Default)]
pub(super) struct Entries {
    /// A power of two of them, at most half used.
    slots: Vec<u64>,
    used: usize,
    chunks: Vec<Vec<u8>>,
}

/// An entry's fields.
struct View<'a> {
    hash: u64,
    time: (u64, u64),
    key: &'a [u8],
    value: Option<&'a [u8]>,
    room: usize,
}

impl Entries {
    /// Fetches the slot of a hash.
    pub(super) fn prefetch(&self, hash: u64) {
        if let Some(slot) = self.slots.get(self.home(hash)) {
            prefetch_read(slot);
        }
    }

    /// Fetches the entry of a hash, if there is one at its first slot.
    pub(super) fn prefetch_entry(&self, hash: u64) {
        if let Some(&slot) = self.slots.get(self.home(hash))
            && slot != 0
        {
            let (chunk, at) = place(slot);
            let start = &self.chunks[chunk][at..];
            // Most entries are not longer than two or three lines.
            for line in 0..3 {
                prefetch_read(start.as_ptr().wrapping_add(64 * line));
            }
        }
    }

    /// Makes `value` the version of `key`, unless there is one that is newer than `time`.
    pub(super) fn apply(&mut self, hash: u64, key: &[u8], time: (u64, u64), value: Option<&[u8]>) {
        if self.used * 2 >= self.slots.len() {
            self.grow();
        }
        let mut index = self.home(hash);
        while self.slots[index] != 0 {
            let slot = self.slots[index];
            let (chunk, at) = place(slot);
            if tag(slot) == hash >> 48 && self.view(chunk, at).key == key {
                let view = self.view(chunk, at);
                if view.time > time {
                    return;
                }
                let (room, end) = (view.room, at + HEADER + key.len());
                let length = value.map_or(0, <[u8]>::len);
                if length <= room {
                    let bytes = &mut self.chunks[chunk];
                    write_header(&mut bytes[at..at + HEADER], time, key.len(), value, room);
                    bytes[end..end + length].copy_from_slice(value.unwrap_or_default());
                } else {
                    // Twice the room, so that what is left behind is bounded.
                    self.slots[index] = self.add(hash, key, time, value, length.max(2 * room));
                }
                return;
            }
            index = (index + 1) & (self.slots.len() - 1);
        }
        let room = value.map_or(0, <[u8]>::len);
        self.slots[index] = self.add(hash, key, time, value, room);
        self.used += 1;
    }

    /// The entries that are there, as keys and values.
    pub(super) fn iter(&self) -> impl Iterator<Item = (&[u8], &[u8])> {
        let used = self.slots.iter().filter(|slot| **slot != 0);
        used.filter_map(|&slot| {
            let (chunk, at) = place(slot);
            let view = self.view(chunk, at);
            Some((view.key, view.value?))
        })
    }

    fn home(&self, hash: u64) -> usize {
        hash as usize & self.slots.len().wrapping_sub(1)
    }

    fn view(&self, chunk: usize, at: usize) -> View<'_> {
        let bytes = &self.chunks[chunk][at..];
        let (header, data) = bytes.split_at(HEADER);
        let long = |at: usize| u64::from_le_bytes(header[at..at + 8].try_into().expect("8 bytes"));
        let word = |at: usize| u32::from_le_bytes(header[at..at + 4].try_into().expect("4 bytes"));
        let (key, rest) = data.split_at(word(24) as usize);
        let length = word(28);
        View {
            hash: long(0),
            time: (long(8), long(16)),
            key,
            value: (length != REMOVED).then(|| &rest[..length as usize]),
            room: long(32) as usize,
        }
    }

    /// Appends an entry. Returns its slot.
    fn add(
        &mut self,
        hash: u64,
        key: &[u8],
        time: (u64, u64),
        value: Option<&[u8]>,
        room: usize,
    ) -> u64 {
        let bytes = HEADER + key.len() + room;
        let fits = |chunk: &Vec<u8>| chunk.capacity() - chunk.len() >= bytes && chunk.len() < CHUNK;
        if !self.chunks.last().is_some_and(fits) {
            self.chunks.push(Vec::with_capacity(bytes.max(CHUNK)));
        }
        let index = self.chunks.len() - 1;
        let chunk = &mut self.chunks[index];
        let at = chunk.len();
        let value_at = at + HEADER + key.len();
        chunk.resize(at + HEADER, 0);
        chunk[at..at + 8].copy_from_slice(&hash.to_le_bytes());
        write_header(&mut chunk[at..], time, key.len(), value, room);
        chunk.extend_from_slice(key);
        chunk.extend_from_slice(value.unwrap_or_default());
        chunk.resize(value_at + room, 0);
        let place = (index * CHUNK + at) as u64;
        hash >> 48 << 48 | (place + 1)
    }

    fn grow(&mut self) {
        let size = (self.slots.len() * 2).max(16);
        let old = std::mem::replace(&mut self.slots, vec![0; size]);
        for slot in old.into_iter().filter(|slot| *slot != 0) {
            let (chunk, at) = place(slot);
            let mut index = self.home(self.view(chunk, at).hash);
            while self.slots[index] != 0 {
                index = (index + 1) & (size - 1);
            }
            self.slots[index] = slot;
        }
    }
}

fn tag(slot: u64) -> u64 {
    slot >> 48
}

/// The chunk of a slot that is used, and the byte in it.
fn place(slot: u64) -> (usize, usize) {
    let place = (slot & ((1 << 48) - 1)) as usize - 1;
    (place / CHUNK, place % CHUNK)
}

/// Writes the header of an entry, except for its hash.
fn write_header(
    header: &mut [u8],
    time: (u64, u64),
    key: usize,
    value: Option<&[u8]>,
    room: usize,
) {
    let value = value.map_or(REMOVED, |value| value.len() as u32);
    header[8..16].copy_from_slice(&time.0.to_le_bytes());
    header[16..24].copy_from_slice(&time.1.to_le_bytes());
    header[24..28].copy_from_slice(&(key as u32).to_le_bytes());
    header[28..32].copy_from_slice(&value.to_le_bytes());
    header[32..40].copy_from_slice(&(room as u64).to_le_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::HashMap;

    proptest! {
        #[test]
        fn newest_version_wins(
            records in prop::collection::vec(
                (0..40_u8, 0..50_u64, prop::option::of(0..300_usize)), 0..200),
            // Few hashes, so that keys meet in a slot.
            hashes in 1..20_u64,
        ) {
            let mut entries = Entries::default();
            let mut model = HashMap::new();
            for (number, (key, epoch, length)) in records.into_iter().enumerate() {
                let value = length.map(|length| vec![number as u8; length]);
                let (key, time) = (vec![key; key.into()], (epoch, 0));
                let hash = (key.len() as u64 % hashes).wrapping_mul(0x9E37_79B9_7F4A_7C15);
                entries.prefetch(hash);
                entries.prefetch_entry(hash);
                entries.apply(hash, &key, time, value.as_deref());
                let latest = model.entry(key).or_insert((time, value.clone()));
                if latest.0 <= time {
                    *latest = (time, value);
                }
            }
            let mut found: Vec<_> = entries.iter().map(|(k, v)| (k.to_vec(), v.to_vec())).collect();
            let mut wanted: Vec<_> = model
                .into_iter()
                .filter_map(|(key, (_, value))| Some((key, value?)))
                .collect();
            found.sort();
            wanted.sort();
            prop_assert_eq!(found, wanted);
        }
    }

    #[test]
    fn large_entries_have_chunks_of_their_own() {
        let mut entries = Entries::default();
        for number in 0..10_u8 {
            let value = vec![number; CHUNK - 100 + 50 * usize::from(number)];
            entries.apply(number.into(), &[number], (1, 1), Some(&value));
        }
        assert_eq!(entries.iter().count(), 10);
        assert!(
            entries
                .iter()
                .all(|(key, value)| value.iter().all(|byte| *byte == key[0]))
        );
    }
}
