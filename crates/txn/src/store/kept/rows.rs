//! How the rows of a kept table are written: into the log, and into a snapshot.

use crate::store::disk::{
    Codec, DecodeError, EncodeError, Records, Snapshot, SnapshotError, TableId,
};
use crate::store::record::{Head, Record, Row, Version};
use corelay_sync::facade::MODEL;
use corelay_sync::facade::atomic::{AtomicU32, Ordering};

/// The rows of a kept table, by its types, for those who have only pointers.
pub(crate) trait Keep: Send + Sync {
    /// Records that the row of `head` is the one of `version` from now on, or that there is none.
    ///
    /// # Safety
    /// `head` is the head of a record of this table, by a pointer to the whole record, and `version`
    /// a version of this table or null. Both live during the call.
    unsafe fn log(
        &self,
        head: *const Head,
        version: *mut Version,
        records: &mut Records,
    ) -> Result<(), EncodeError>;

    /// Puts the row into a snapshot, if there is one in `version`.
    ///
    /// # Safety
    /// As for [`log`](Self::log).
    unsafe fn save(
        &self,
        head: *const Head,
        version: *mut Version,
        snapshot: &mut Snapshot<'_>,
    ) -> Result<(), SnapshotError>;
}

/// The rows that are read back before they are logged, for each table that is opened. What the format
/// cannot read is mostly a matter of the types: so the first transaction says it, and not the next
/// opening, when the rows are lost.
const READ_BACK: u32 = 64;

/// The rows of one kept table.
pub(super) struct Rows<K, V> {
    table: TableId,
    codec: Codec<K, V>,
    /// The rows that were read back.
    read_back: AtomicU32,
}

impl<K, V> Rows<K, V> {
    pub(super) fn new(table: TableId, codec: Codec<K, V>) -> Self {
        Self {
            table,
            codec,
            read_back: AtomicU32::new(0),
        }
    }

    /// Whether the row that is about to be logged is one of the first.
    fn is_read_back(&self) -> bool {
        if MODEL {
            return false;
        }
        // Relaxed, both: a few more or less do not matter.
        let count = self.read_back.load(Ordering::Relaxed);
        if count < READ_BACK {
            self.read_back.store(count + 1, Ordering::Relaxed);
        }
        count < READ_BACK
    }
}

/// Encodes `item`, and decodes it again if `is_read_back`.
#[inline]
fn encode<T>(
    item: &T,
    bytes: &mut Vec<u8>,
    encode: fn(&T, &mut Vec<u8>) -> Result<(), EncodeError>,
    decode: fn(&[u8]) -> Result<T, DecodeError>,
    is_read_back: bool,
) -> Result<(), EncodeError> {
    let start = bytes.len();
    encode(item, bytes)?;
    if is_read_back && let Err(error) = decode(&bytes[start..]) {
        let why = format!("it cannot be read back: {error}");
        return Err(EncodeError::Refused(why));
    }
    Ok(())
}

/// # Safety
/// As for [`Keep::log`], of a table with these types.
unsafe fn row<'r, K, V>(head: *const Head, version: *mut Version) -> (&'r K, Option<&'r V>) {
    // SAFETY: the caller promises a record of these types, whose head is its first field by
    // `repr(C)`.
    let record = unsafe { &*head.cast::<Record<K, V>>() };
    // SAFETY: the caller promises a version of this table, or null.
    (record.key(), unsafe { Row::<V>::value(version) })
}

impl<K, V> Keep for Rows<K, V>
where
    K: Send + Sync + 'static,
    V: Send + Sync + 'static,
{
    unsafe fn log(
        &self,
        head: *const Head,
        version: *mut Version,
        records: &mut Records,
    ) -> Result<(), EncodeError> {
        let codec = &self.codec;
        // SAFETY: the caller keeps the duties.
        let (key, value) = unsafe { row::<K, V>(head, version) };
        let is_read_back = value.is_some() && self.is_read_back();
        let (encode_key, decode_key) = (codec.encode_key, codec.decode_key);
        let (encode_value, decode_value) = (codec.encode_value, codec.decode_value);
        let key = |bytes: &mut Vec<u8>| encode(key, bytes, encode_key, decode_key, is_read_back);
        match value {
            Some(value) => records.put(self.table, key, |bytes| {
                encode(value, bytes, encode_value, decode_value, is_read_back)
            }),
            None => records.remove(self.table, key),
        }
    }

    unsafe fn save(
        &self,
        head: *const Head,
        version: *mut Version,
        snapshot: &mut Snapshot<'_>,
    ) -> Result<(), SnapshotError> {
        // SAFETY: the caller keeps the duties.
        let (key, value) = unsafe { row::<K, V>(head, version) };
        let Some(value) = value else { return Ok(()) };
        let key = |bytes: &mut Vec<u8>| (self.codec.encode_key)(key, bytes);
        let value = |bytes: &mut Vec<u8>| (self.codec.encode_value)(value, bytes);
        snapshot.put(self.table, key, value)
    }
}
