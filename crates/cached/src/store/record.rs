//! Records: an item as bytes of a segment.
//!
//! ```text
//! byte  0      1        2..5       5..8       8..
//!       │ bits │ key's  │ accessed │ cas      │ value's length, 1 to 5 bytes of 7 bits each
//!       │      │ length │ seconds  │ less the │ [expiry, 4] [client flags, 4] [extension, 9]
//!       │      │        │          │ base's   │ key, value
//! ```
//! Fields in brackets are there if a bit says so, so an ordinary item takes 9 bytes besides its key
//! and its value. The cas is a number that each write of a shard draws; a record has its distance
//! from the number at which its segment was begun.

/// The times that an item has been asked for since it was last looked at for eviction, up to 3.
const USES: u8 = 0b11;
/// The item has been asked for at least once.
const FETCHED: u8 = 1 << 2;
const HAS_EXPIRY: u8 = 1 << 3;
const HAS_FLAGS: u8 = 1 << 4;
/// The value lies outside of the log: the record has its number, 4 bytes, in its place.
const IS_LARGE: u8 = 1 << 5;
/// The key was given in base64.
const IS_BINARY: u8 = 1 << 6;
const IS_EXTENDED: u8 = 1 << 7;

/// The byte of an extension that says that the item is stale.
const STALE: u8 = 1;
/// The byte of an extension that says that a client has been told to renew the item.
const WON: u8 = 2;

/// The bytes before the value's length.
const FIXED: usize = 8;

/// The properties of an item besides its key and value.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Properties {
    /// The client's flags.
    pub flags: u32,
    /// The second at which the item expires; 0 if it does not.
    pub expiry: u32,
    /// The number that changes with every write.
    pub cas: u64,
    /// Whether the item is stale (meta commands).
    pub is_stale: bool,
    /// Whether a client has been told to renew the item (meta commands).
    pub is_won: bool,
    /// Whether the key was given in base64 (meta commands).
    pub is_binary: bool,
}

/// A record that has been read: where its parts are.
#[derive(Clone, Copy, Debug)]
pub(super) struct Record<'a> {
    bytes: &'a [u8],
    key: usize,
    value: usize,
    value_len: u32,
}

/// The place of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Value<'a> {
    /// The value itself.
    Inline(&'a [u8]),
    /// The number of a value outside of the log, and its length.
    Large { number: u32, len: u32 },
}

impl Value<'_> {
    fn len(&self) -> u32 {
        match *self {
            Self::Inline(bytes) => bytes.len() as u32,
            Self::Large { len, .. } => len,
        }
    }

    /// The bytes that it takes in the record.
    fn size(&self) -> usize {
        match self {
            Self::Inline(bytes) => bytes.len(),
            Self::Large { .. } => 4,
        }
    }
}

fn read_u24(bytes: &[u8]) -> u32 {
    u32::from_le_bytes([bytes[0], bytes[1], bytes[2], 0])
}

fn read_u32(bytes: &[u8]) -> u32 {
    u32::from_le_bytes(bytes[..4].try_into().expect("four bytes"))
}

/// The bytes that a length takes.
fn length_size(len: u32) -> usize {
    (32 - (len | 1).leading_zeros()).div_ceil(7) as usize
}

/// The lowest 24 bits of a second, in which a record keeps when it was last used.
fn short(second: u32) -> u32 {
    second & 0xff_ffff
}

impl<'a> Record<'a> {
    /// Reads the record at the beginning of `bytes`.
    #[inline]
    pub(super) fn read(bytes: &'a [u8]) -> Self {
        let bits = bytes[0];
        let mut at = FIXED;
        let mut value_len = u32::from(bytes[at] & 0x7f);
        let mut shift = 7;
        while bytes[at] >= 0x80 {
            at += 1;
            value_len |= u32::from(bytes[at] & 0x7f) << shift;
            shift += 7;
        }
        at += 1;
        at += usize::from(bits & HAS_EXPIRY != 0) * 4;
        at += usize::from(bits & HAS_FLAGS != 0) * 4;
        at += usize::from(bits & IS_EXTENDED != 0) * 9;
        let value = at + usize::from(bytes[1]);
        Self {
            bytes,
            key: at,
            value,
            value_len,
        }
    }

    fn has(&self, bit: u8) -> bool {
        self.bytes[0] & bit != 0
    }

    #[inline]
    pub(super) fn key(&self) -> &'a [u8] {
        &self.bytes[self.key..self.value]
    }

    pub(super) fn value_len(&self) -> u32 {
        self.value_len
    }

    #[inline]
    pub(super) fn value(&self) -> Value<'a> {
        if self.has(IS_LARGE) {
            return Value::Large {
                number: read_u32(&self.bytes[self.value..]),
                len: self.value_len,
            };
        }
        Value::Inline(&self.bytes[self.value..self.value + self.value_len as usize])
    }

    /// The number of bytes of the record.
    pub(super) fn size(&self) -> usize {
        if self.has(IS_LARGE) {
            self.value + 4
        } else {
            self.value + self.value_len as usize
        }
    }

    /// The bytes of the record.
    pub(super) fn bytes(&self) -> &'a [u8] {
        &self.bytes[..self.size()]
    }

    /// The second at which the item expires; 0 if it does not.
    #[inline]
    pub(super) fn expiry(&self) -> u32 {
        if self.has(HAS_EXPIRY) {
            // First of the fields in brackets, behind the length.
            read_u32(&self.bytes[FIXED + length_size(self.value_len)..])
        } else {
            0
        }
    }

    pub(super) fn uses(&self) -> u8 {
        self.bytes[0] & USES
    }

    pub(super) fn is_fetched(&self) -> bool {
        self.has(FETCHED)
    }

    /// The seconds between the last use and `now`: none if that use was of a later second, as the request of
    /// a thread whose clock is behind finds it.
    pub(super) fn idle(&self, now: u32) -> u32 {
        let idle = short(now.wrapping_sub(read_u24(&self.bytes[2..])));
        if idle < 1 << 23 { idle } else { 0 }
    }

    /// The properties of a record in a segment that was begun at the number `base`.
    pub(super) fn properties(&self, base: u64) -> Properties {
        let mut at = FIXED + length_size(self.value_len);
        let mut properties = Properties {
            is_binary: self.has(IS_BINARY),
            cas: base + u64::from(read_u24(&self.bytes[5..])),
            ..Properties::default()
        };
        if self.has(HAS_EXPIRY) {
            properties.expiry = read_u32(&self.bytes[at..]);
            at += 4;
        }
        if self.has(HAS_FLAGS) {
            properties.flags = read_u32(&self.bytes[at..]);
            at += 4;
        }
        if self.has(IS_EXTENDED) {
            properties.is_stale = self.bytes[at] & STALE != 0;
            properties.is_won = self.bytes[at] & WON != 0;
            let cas = &self.bytes[at + 1..at + 9];
            properties.cas = u64::from_le_bytes(cas.try_into().expect("eight bytes"));
        }
        properties
    }
}

/// A record to be written.
#[derive(Clone, Copy, Debug)]
pub(super) struct Draft<'a> {
    pub(super) key: &'a [u8],
    pub(super) value: Value<'a>,
    pub(super) properties: Properties,
    /// Whether the record has the field of an expiry although the item does not expire.
    pub(super) may_expire: bool,
    /// The second of the last use.
    pub(super) accessed: u32,
    pub(super) uses: u8,
    pub(super) is_fetched: bool,
}

impl Draft<'_> {
    fn has_expiry(&self) -> bool {
        self.may_expire || self.properties.expiry != 0
    }

    fn is_extended(&self, base: u64) -> bool {
        let Properties {
            cas,
            is_stale,
            is_won,
            ..
        } = self.properties;
        is_stale || is_won || cas < base || cas - base > 0xff_ffff
    }

    /// The number of bytes that the record takes in a segment that was begun at the number `base`.
    pub(super) fn size(&self, base: u64) -> usize {
        FIXED
            + length_size(self.value.len())
            + usize::from(self.has_expiry()) * 4
            + usize::from(self.properties.flags != 0) * 4
            + usize::from(self.is_extended(base)) * 9
            + self.key.len()
            + self.value.size()
    }

    /// Writes the record to the beginning of `bytes`, which have [`size`](Self::size) bytes at
    /// least.
    pub(super) fn write(&self, bytes: &mut [u8], base: u64) {
        let Properties {
            flags, expiry, cas, ..
        } = self.properties;
        let is_extended = self.is_extended(base);
        let mut bits = self.uses & USES;
        let mut set = |bit: u8, is_set: bool| bits |= if is_set { bit } else { 0 };
        set(FETCHED, self.is_fetched);
        set(HAS_EXPIRY, self.has_expiry());
        set(HAS_FLAGS, flags != 0);
        set(IS_LARGE, matches!(self.value, Value::Large { .. }));
        set(IS_BINARY, self.properties.is_binary);
        set(IS_EXTENDED, is_extended);
        bytes[0] = bits;
        bytes[1] = self.key.len() as u8;
        bytes[2..5].copy_from_slice(&self.accessed.to_le_bytes()[..3]);
        let distance = if is_extended { 0 } else { cas - base };
        bytes[5..8].copy_from_slice(&distance.to_le_bytes()[..3]);
        let mut at = FIXED;
        let mut put = |field: &[u8]| {
            bytes[at..at + field.len()].copy_from_slice(field);
            at += field.len();
        };
        let mut left = self.value.len();
        while left >= 0x80 {
            put(&[left as u8 | 0x80]);
            left >>= 7;
        }
        put(&[left as u8]);
        if self.has_expiry() {
            put(&expiry.to_le_bytes());
        }
        if flags != 0 {
            put(&flags.to_le_bytes());
        }
        if is_extended {
            let stale = u8::from(self.properties.is_stale) * STALE;
            put(&[stale | (u8::from(self.properties.is_won) * WON)]);
            put(&cas.to_le_bytes());
        }
        put(self.key);
        match self.value {
            Value::Inline(value) => put(value),
            Value::Large { number, .. } => put(&number.to_le_bytes()),
        }
    }
}

/// Counts a use of the record at the beginning of `bytes`, at the second `now`. Writes only what
/// changes, since the line may be clean.
#[inline]
pub(super) fn note_use(bytes: &mut [u8], now: u32) {
    let bits = bytes[0];
    let used = bits | FETCHED;
    let used = used + u8::from(used & USES != USES);
    if used != bits {
        bytes[0] = used;
    }
    let now = &now.to_le_bytes()[..3];
    if bytes[2..5] != *now {
        bytes[2..5].copy_from_slice(now);
    }
}

/// Counts a use of the record at the beginning of `bytes` that it does not tell of.
pub(super) fn count_use(bytes: &mut [u8]) {
    bytes[0] += u8::from(bytes[0] & USES != USES);
}

/// Sets whether the record at the beginning of `bytes` has been asked for, and the second of its
/// last use.
pub(super) fn set_use(bytes: &mut [u8], is_fetched: bool, accessed: u32) {
    bytes[0] = bytes[0] & !FETCHED | if is_fetched { FETCHED } else { 0 };
    bytes[2..5].copy_from_slice(&accessed.to_le_bytes()[..3]);
}

/// Writes `expiry` into the record at the beginning of `bytes`. Returns false if it has no such field
/// and needs one.
pub(super) fn set_expiry(bytes: &mut [u8], expiry: u32) -> bool {
    let record = Record::read(bytes);
    let at = FIXED + length_size(record.value_len());
    if !record.has(HAS_EXPIRY) {
        return expiry == 0;
    }
    bytes[at..at + 4].copy_from_slice(&expiry.to_le_bytes());
    true
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_record_reads_as_it_was_written(
            key in prop::collection::vec(any::<u8>(), 1..=250),
            len in prop_oneof![0usize..300, 16_000usize..17_000],
            large in prop::option::of((any::<u32>(), any::<u32>())),
            (flags, expiry) in (prop_oneof![Just(0), any::<u32>()], prop_oneof![Just(0), any::<u32>()]),
            (base, cas) in (0u64..1 << 60, prop_oneof![0u64..1 << 26, any::<u64>()]),
            (is_stale, is_won, is_binary, is_fetched, may_expire) in any::<(bool, bool, bool, bool, bool)>(),
            (uses, accessed, later) in (0u8..4, any::<u32>(), 0u32..1 << 24),
        ) {
            let value = vec![7; len];
            let value = match large {
                Some((number, len)) => Value::Large { number, len },
                None => Value::Inline(&value),
            };
            let cas = base.saturating_add(cas);
            let properties = Properties { flags, expiry, cas, is_stale, is_won, is_binary };
            let draft = Draft { key: &key, value, properties, may_expire, accessed, uses, is_fetched };
            let size = draft.size(base);
            let mut bytes = vec![0xaa; size + 1];
            draft.write(&mut bytes, base);
            prop_assert_eq!(bytes[size], 0xaa);
            let record = Record::read(&bytes);
            prop_assert_eq!(record.size(), size);
            prop_assert_eq!(record.key(), &key[..]);
            prop_assert_eq!(record.value(), value);
            prop_assert_eq!(record.expiry(), expiry);
            prop_assert_eq!(record.properties(base), properties);
            prop_assert_eq!((record.uses(), record.is_fetched()), (uses, is_fetched));
            let now = accessed.wrapping_add(later);
            prop_assert_eq!(record.idle(now), if later < 1 << 23 { later } else { 0 });
            note_use(&mut bytes, now);
            let record = Record::read(&bytes);
            prop_assert_eq!((record.uses(), record.is_fetched()), ((uses + 1).min(3), true));
            prop_assert_eq!(record.idle(now), 0);
            prop_assert_eq!((record.size(), record.properties(base)), (size, properties));
        }
    }
}
