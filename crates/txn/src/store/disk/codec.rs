//! Keys and values as bytes.

use super::error::EncodeError;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::fmt;

/// How a table's keys and values become bytes, and bytes keys and values.
///
/// A codec is chosen where the types are known, and used where only the table is. Keys must have equal
/// bytes if they are equal, and only then: the log knows a record by the bytes of its key.
pub struct Codec<K, V> {
    /// Appends a key's bytes.
    pub encode_key: fn(&K, &mut Vec<u8>) -> Result<(), EncodeError>,
    /// Appends a value's bytes.
    pub encode_value: fn(&V, &mut Vec<u8>) -> Result<(), EncodeError>,
    /// Makes a key of its bytes, all of them.
    pub decode_key: fn(&[u8]) -> Result<K, DecodeError>,
    /// Makes a value of its bytes, all of them.
    pub decode_value: fn(&[u8]) -> Result<V, DecodeError>,
    /// The names of the two types. A table on disk opens only with the tag that it was made with.
    pub tag: fn() -> String,
}

impl<K, V> Codec<K, V>
where
    K: Serialize + DeserializeOwned,
    V: Serialize + DeserializeOwned,
{
    /// The codec of types that `serde` knows: the postcard format.
    ///
    /// ```
    /// # use corelay_txn::store::disk::Codec;
    /// let codec = Codec::<u64, String>::postcard();
    /// let mut bytes = Vec::new();
    /// (codec.encode_value)(&"six".into(), &mut bytes).unwrap();
    /// assert_eq!((codec.decode_value)(&bytes).unwrap(), "six");
    /// assert!((codec.decode_key)(&bytes).is_err());
    /// ```
    pub const fn postcard() -> Self {
        Self {
            encode_key: encode::<K>,
            encode_value: encode::<V>,
            decode_key: decode::<K>,
            decode_value: decode::<V>,
            tag: tag::<K, V>,
        }
    }
}

fn encode<T: Serialize>(value: &T, bytes: &mut Vec<u8>) -> Result<(), EncodeError> {
    struct Append<'a>(&'a mut Vec<u8>);
    impl postcard::ser_flavors::Flavor for Append<'_> {
        type Output = ();
        #[inline(always)]
        fn try_push(&mut self, byte: u8) -> postcard::Result<()> {
            self.0.push(byte);
            Ok(())
        }
        #[inline(always)]
        fn try_extend(&mut self, bytes: &[u8]) -> postcard::Result<()> {
            self.0.extend_from_slice(bytes);
            Ok(())
        }
        fn finalize(self) -> postcard::Result<()> {
            Ok(())
        }
    }
    let encoded = postcard::serialize_with_flavor(value, Append(bytes));
    encoded.map_err(|error| EncodeError::Refused(error.to_string()))
}

fn decode<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, DecodeError> {
    match postcard::take_from_bytes(bytes) {
        Ok((value, [])) => Ok(value),
        Ok(_) => Err(DecodeError("there are bytes left over".to_owned())),
        Err(error) => Err(DecodeError(error.to_string())),
    }
}

fn tag<K, V>() -> String {
    let (key, value) = (std::any::type_name::<K>(), std::any::type_name::<V>());
    format!("{key} -> {value}")
}

impl<K, V> Clone for Codec<K, V> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<K, V> Copy for Codec<K, V> {}

impl<K, V> fmt::Debug for Codec<K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Codec").field(&(self.tag)()).finish()
    }
}

/// The bytes of a key or value are not those of its type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DecodeError(String);

impl DecodeError {
    /// An error of a codec of your own. `why` says what is wrong with the bytes.
    ///
    /// ```
    /// use corelay_txn::store::{Codec, DecodeError};
    ///
    /// let codec = Codec::<u64, String> {
    ///     decode_value: |bytes| {
    ///         let text = String::from_utf8(bytes.to_vec());
    ///         text.map_err(|error| DecodeError::new(error.to_string()))
    ///     },
    ///     ..Codec::postcard()
    /// };
    /// let error = (codec.decode_value)(&[0xFF]).unwrap_err();
    /// assert!(error.to_string().contains("invalid utf-8"));
    /// ```
    pub fn new(why: impl Into<String>) -> Self {
        Self(why.into())
    }
}

impl fmt::Display for DecodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the bytes are not of this type: {}", self.0)
    }
}

impl std::error::Error for DecodeError {}
