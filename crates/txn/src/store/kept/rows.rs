//! How the rows of a kept table are written: into the log, and into a snapshot.

use crate::store::disk::{Codec, EncodeError, Records, Snapshot, SnapshotError, TableId};
use crate::store::record::{Head, Record, Row, Version};

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

/// The rows of one kept table.
pub(super) struct Rows<K, V> {
    pub(super) table: TableId,
    pub(super) codec: Codec<K, V>,
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
        let Codec {
            encode_key,
            encode_value,
            ..
        } = self.codec;
        // SAFETY: the caller keeps the duties.
        let (key, value) = unsafe { row::<K, V>(head, version) };
        let key = |bytes: &mut Vec<u8>| encode_key(key, bytes);
        match value {
            Some(value) => records.put(self.table, key, |bytes| encode_value(value, bytes)),
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
