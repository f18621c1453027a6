//! The records of a commit in the log: one for each entry that was written or removed.
//!
//! ```text
//! commit   order: u64 | length of the records: u32 | record …
//! record   table << 1 | is removed: u32 | length of key: u32 | length of value: u32 | key | value
//! ```
//! Numbers are little-endian.

use super::error::EncodeError;

/// The longest key, in bytes.
pub const MAX_KEY: usize = 1 << 20;

/// The longest value, in bytes.
pub const MAX_VALUE: usize = 64 << 20;

/// The most bytes that a transaction may write, its records' 12-byte headers included.
pub const MAX_TRANSACTION: usize = 1 << 30;

/// The memory that is kept from one transaction to the next, in bytes: a few pieces of a snapshot.
const KEPT: usize = 4 << 20;

const RECORD_HEADER: usize = 12;
pub(super) const COMMIT_HEADER: usize = 12;

/// The number of a table in the log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TableId(pub(super) u32);

/// The records of one transaction, encoded. Clear and use it again for the next one, so that it
/// need not be allocated.
///
/// ```
/// # use corelay_txn::store::disk::{Codec, Records, TableId};
/// # fn commit(table: TableId) -> Result<(), corelay_txn::store::disk::EncodeError> {
/// let codec = Codec::<u64, String>::postcard();
/// let mut records = Records::new();
/// records.put(
///     table,
///     |bytes| (codec.encode_key)(&7, bytes),
///     |bytes| (codec.encode_value)(&"seven".into(), bytes),
/// )?;
/// records.remove(table, |bytes| (codec.encode_key)(&8, bytes))?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, Default)]
pub struct Records {
    bytes: Vec<u8>,
}

impl Records {
    /// No records.
    pub const fn new() -> Self {
        Self { bytes: Vec::new() }
    }

    /// Removes all records, and keeps the memory for the next ones, unless it is very much.
    #[inline]
    pub fn clear(&mut self) {
        self.bytes.clear();
        if self.bytes.capacity() > KEPT {
            self.bytes.shrink_to(KEPT);
        }
    }

    /// Whether nothing is recorded.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// The records' bytes.
    #[inline]
    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Records that the entry of a key has a value now. `key` and `value` append their bytes.
    ///
    /// # Errors
    /// If the key, the value or the transaction is [too large](EncodeError::TooLarge), or by `key`
    /// or `value`. The record is not added then.
    #[inline]
    pub fn put(
        &mut self,
        table: TableId,
        key: impl FnOnce(&mut Vec<u8>) -> Result<(), EncodeError>,
        value: impl FnOnce(&mut Vec<u8>) -> Result<(), EncodeError>,
    ) -> Result<(), EncodeError> {
        self.add(table.0 << 1, key, value)
    }

    /// Records that there is no entry of a key any more. `key` appends its bytes.
    ///
    /// # Errors
    /// As for [`put`](Self::put).
    #[inline]
    pub fn remove(
        &mut self,
        table: TableId,
        key: impl FnOnce(&mut Vec<u8>) -> Result<(), EncodeError>,
    ) -> Result<(), EncodeError> {
        self.add(table.0 << 1 | 1, key, |_| Ok(()))
    }

    #[inline]
    fn add(
        &mut self,
        table: u32,
        key: impl FnOnce(&mut Vec<u8>) -> Result<(), EncodeError>,
        value: impl FnOnce(&mut Vec<u8>) -> Result<(), EncodeError>,
    ) -> Result<(), EncodeError> {
        let start = self.bytes.len();
        let added = self.try_add(start, table, key, value);
        if added.is_err() {
            self.bytes.truncate(start);
        }
        added
    }

    #[inline]
    fn try_add(
        &mut self,
        start: usize,
        table: u32,
        key: impl FnOnce(&mut Vec<u8>) -> Result<(), EncodeError>,
        value: impl FnOnce(&mut Vec<u8>) -> Result<(), EncodeError>,
    ) -> Result<(), EncodeError> {
        let bytes = &mut self.bytes;
        bytes.extend_from_slice(&[0; RECORD_HEADER]);
        let key_at = bytes.len();
        key(bytes)?;
        let value_at = bytes.len();
        let key_length = limited("key", value_at - key_at, MAX_KEY)?;
        value(bytes)?;
        let value_length = limited("value", bytes.len() - value_at, MAX_VALUE)?;
        limited("transaction", bytes.len(), MAX_TRANSACTION)?;
        let header = &mut bytes[start..key_at];
        header[0..4].copy_from_slice(&table.to_le_bytes());
        header[4..8].copy_from_slice(&key_length.to_le_bytes());
        header[8..12].copy_from_slice(&value_length.to_le_bytes());
        Ok(())
    }
}

#[inline]
fn limited(what: &'static str, bytes: usize, limit: usize) -> Result<u32, EncodeError> {
    if bytes > limit {
        return Err(EncodeError::TooLarge { what, bytes, limit });
    }
    Ok(bytes as u32)
}

/// Appends a commit to the bytes of its epoch.
#[inline]
pub(super) fn append_commit(epoch: &mut Vec<u8>, order: u64, records: &[u8]) {
    epoch.reserve(COMMIT_HEADER + records.len());
    epoch.extend_from_slice(&order.to_le_bytes());
    epoch.extend_from_slice(&(records.len() as u32).to_le_bytes());
    epoch.extend_from_slice(records);
}

/// A record, as it is read from the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Record<'a> {
    pub(super) order: u64,
    pub(super) table: u32,
    pub(super) key: &'a [u8],
    /// `None` if the entry was removed.
    pub(super) value: Option<&'a [u8]>,
}

/// Calls `each` for every record of an epoch's commits. `None` if the bytes are not commits.
pub(super) fn for_each<'a>(mut epoch: &'a [u8], mut each: impl FnMut(Record<'a>)) -> Option<()> {
    while !epoch.is_empty() {
        let order = u64::from_le_bytes(take_array(&mut epoch)?);
        let length = u32::from_le_bytes(take_array(&mut epoch)?);
        let mut records = take(&mut epoch, length)?;
        while !records.is_empty() {
            let table = u32::from_le_bytes(take_array(&mut records)?);
            let key = u32::from_le_bytes(take_array(&mut records)?);
            let value = u32::from_le_bytes(take_array(&mut records)?);
            let key = take(&mut records, key)?;
            let value = take(&mut records, value)?;
            each(Record {
                order,
                table: table >> 1,
                key,
                value: (table & 1 == 0).then_some(value),
            });
        }
    }
    Some(())
}

pub(super) fn take<'a>(bytes: &mut &'a [u8], length: u32) -> Option<&'a [u8]> {
    let (taken, rest) = bytes.split_at_checked(length as usize)?;
    *bytes = rest;
    Some(taken)
}

pub(super) fn take_array<const N: usize>(bytes: &mut &[u8]) -> Option<[u8; N]> {
    let (taken, rest) = bytes.split_first_chunk()?;
    *bytes = rest;
    Some(*taken)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_of_a_large_transaction_is_given_back() {
        let mut records = Records::new();
        for length in [KEPT / 2, 3 * KEPT, 3 * KEPT] {
            let append = |bytes: &mut Vec<u8>| {
                bytes.resize(bytes.len() + length, 0);
                Ok(())
            };
            records.put(TableId(1), |_| Ok(()), append).unwrap();
        }
        records.clear();
        assert!(records.bytes.capacity() <= KEPT);
    }
}
