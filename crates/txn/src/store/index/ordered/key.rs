//! The keys of ordered tables, and their first 64 bits.

use std::cmp::Reverse;
use std::sync::Arc;

/// A key of an ordered table.
///
/// An index compares keys by [`prefix`](Self::prefix) first, a number that lies beside the pointer
/// to the record, and looks at a record only if two prefixes are equal. The default, 0 for all
/// keys, is right and slow.
///
/// If a key is looked up in a borrowed form (`str` for `String`), both forms have the same order
/// and the same prefixes.
///
/// An implementation that breaks its promises makes lookups and ranges wrong, or endless, but never
/// unsafe.
///
/// ```
/// use corelay_txn::store::OrderedKey;
///
/// #[derive(PartialEq, Eq, PartialOrd, Ord)]
/// struct Order {
///     district: u8,
///     number: u32,
/// }
///
/// impl OrderedKey for Order {
///     const PREFIX_BITS: Option<u32> = <(u8, u32)>::PREFIX_BITS;
///
///     fn prefix(&self) -> u64 {
///         (self.district, self.number).prefix()
///     }
/// }
///
/// assert_eq!(Order::PREFIX_BITS, Some(40));
/// assert!(Order { district: 1, number: 9 }.prefix() < Order { district: 2, number: 3 }.prefix());
/// ```
pub trait OrderedKey: Ord {
    /// `Some(n)` if keys with equal prefixes are equal, and only the highest `n` bits of a prefix
    /// are ever set, `n` in `0..=64`. Then an index never looks at a record to compare keys, and a
    /// tuple packs its next field into the bits that remain.
    const PREFIX_BITS: Option<u32> = None;

    /// A number that grows with the key: `a <= b` implies `a.prefix() <= b.prefix()`.
    fn prefix(&self) -> u64 {
        0
    }
}

/// The prefix of several fields, the first in the highest bits.
struct Packed {
    prefix: u64,
    /// The bits used; `None` behind a field whose prefix does not determine it.
    used: Option<u32>,
}

impl Packed {
    const fn new() -> Self {
        Self {
            prefix: 0,
            used: Some(0),
        }
    }

    /// Adds a field in the bits that remain. Returns whether any remain after it.
    #[inline(always)]
    fn push<T: OrderedKey + ?Sized>(&mut self, field: &T) -> bool {
        // Where nothing remains, the shift has no result.
        if let Some(used) = self.used {
            self.prefix |= field.prefix().checked_shr(used).unwrap_or(0);
            self.used = both(self.used, T::PREFIX_BITS);
        }
        self.used.is_some()
    }
}

/// The bits of two fields together, if they determine both fields.
const fn both(first: Option<u32>, second: Option<u32>) -> Option<u32> {
    match (first, second) {
        (Some(first), Some(second)) if first.saturating_add(second) <= 64 => Some(first + second),
        _ => None,
    }
}

macro_rules! integers {
    ($($unsigned:ident $signed:ident,)*) => { $(
        impl OrderedKey for $unsigned {
            const PREFIX_BITS: Option<u32> = Some($unsigned::BITS);

            #[inline(always)]
            fn prefix(&self) -> u64 {
                (*self as u64) << (64 - $unsigned::BITS)
            }
        }

        impl OrderedKey for $signed {
            const PREFIX_BITS: Option<u32> = Some($signed::BITS);

            #[inline(always)]
            fn prefix(&self) -> u64 {
                // The negative ones first.
                (*self ^ $signed::MIN).cast_unsigned().prefix()
            }
        }
    )* };
}
integers!(u8 i8, u16 i16, u32 i32, u64 i64, usize isize,);

impl OrderedKey for u128 {
    #[inline(always)]
    fn prefix(&self) -> u64 {
        (*self >> 64) as u64
    }
}

impl OrderedKey for i128 {
    #[inline(always)]
    fn prefix(&self) -> u64 {
        (*self ^ Self::MIN).cast_unsigned().prefix()
    }
}

impl OrderedKey for bool {
    const PREFIX_BITS: Option<u32> = Some(1);

    #[inline(always)]
    fn prefix(&self) -> u64 {
        u64::from(*self) << 63
    }
}

impl OrderedKey for char {
    const PREFIX_BITS: Option<u32> = u32::PREFIX_BITS;

    #[inline(always)]
    fn prefix(&self) -> u64 {
        u32::from(*self).prefix()
    }
}

macro_rules! tuples {
    ($(($($name:ident $index:tt),*))*) => { $(
        impl<$($name: OrderedKey),*> OrderedKey for ($($name,)*) {
            const PREFIX_BITS: Option<u32> = {
                let bits = Some(0);
                $(let bits = both(bits, $name::PREFIX_BITS);)*
                bits
            };

            #[inline(always)]
            fn prefix(&self) -> u64 {
                #[allow(unused_mut)]
                let mut packed = Packed::new();
                $(packed.push(&self.$index);)*
                packed.prefix
            }
        }
    )* };
}
tuples! {
    ()
    (A 0)
    (A 0, B 1)
    (A 0, B 1, C 2)
    (A 0, B 1, C 2, D 3)
    (A 0, B 1, C 2, D 3, E 4)
    (A 0, B 1, C 2, D 3, E 4, F 5)
}

impl<T: OrderedKey, const N: usize> OrderedKey for [T; N] {
    const PREFIX_BITS: Option<u32> = match (T::PREFIX_BITS, N as u64) {
        (_, 0) => Some(0),
        (Some(bits), length) => match (bits as u64).checked_mul(length) {
            Some(all @ 0..=64) => Some(all as u32),
            _ => None,
        },
        (None, _) => None,
    };

    #[inline(always)]
    fn prefix(&self) -> u64 {
        self[..].prefix()
    }
}

/// A shorter slice has zeros in place of what it lacks.
impl<T: OrderedKey> OrderedKey for [T] {
    #[inline]
    fn prefix(&self) -> u64 {
        let mut packed = Packed::new();
        // At most 64 elements, for the sake of those that have no bits.
        let _ = self.iter().take(64).all(|element| packed.push(element));
        packed.prefix
    }
}

impl OrderedKey for str {
    #[inline]
    fn prefix(&self) -> u64 {
        match self.as_bytes().first_chunk() {
            Some(first) => u64::from_be_bytes(*first),
            None => self.as_bytes().prefix(),
        }
    }
}

macro_rules! delegated {
    ($(($($generics:tt)*) $name:ty => $to:ty,)*) => { $(
        impl<$($generics)*> OrderedKey for $name {
            const PREFIX_BITS: Option<u32> = <$to>::PREFIX_BITS;

            #[inline(always)]
            fn prefix(&self) -> u64 {
                <$to>::prefix(self)
            }
        }
    )* };
}
delegated! {
    () String => str,
    (T: OrderedKey) Vec<T> => [T],
    (T: OrderedKey + ?Sized) &T => T,
    (T: OrderedKey + ?Sized) Box<T> => T,
    (T: OrderedKey + ?Sized) Arc<T> => T,
}

/// The first bit says whether there is a value.
impl<T: OrderedKey> OrderedKey for Option<T> {
    const PREFIX_BITS: Option<u32> = both(Some(1), T::PREFIX_BITS);

    #[inline(always)]
    fn prefix(&self) -> u64 {
        match self {
            Some(value) => 1 << 63 | value.prefix() >> 1,
            None => 0,
        }
    }
}

impl<T: OrderedKey> OrderedKey for Reverse<T> {
    const PREFIX_BITS: Option<u32> = T::PREFIX_BITS;

    #[inline(always)]
    fn prefix(&self) -> u64 {
        // The bits that are never set are not set here either.
        let unused = match T::PREFIX_BITS {
            Some(bits) => u64::MAX.checked_shr(bits).unwrap_or(0),
            None => 0,
        };
        !(self.0.prefix() | unused)
    }
}
