//! Prefixes of keys.

use super::OrderedKey;
use proptest::prelude::*;
use std::cmp::Reverse;
use std::sync::Arc;

/// Prefixes grow with the keys, and determine them if they say so.
fn is_lawful<K: OrderedKey>(a: &K, b: &K) {
    match a.cmp(b) {
        std::cmp::Ordering::Less => assert!(a.prefix() <= b.prefix()),
        std::cmp::Ordering::Equal => assert!(a.prefix() == b.prefix()),
        std::cmp::Ordering::Greater => assert!(a.prefix() >= b.prefix()),
    }
    if let Some(bits) = K::PREFIX_BITS {
        assert_eq!(a == b, a.prefix() == b.prefix());
        let unused = u64::MAX.checked_shr(bits).unwrap_or(0);
        assert_eq!((a.prefix() | b.prefix()) & unused, 0);
    }
}

macro_rules! lawful {
    ($($name:ident: $key:ty,)*) => {
        proptest! { $(
            #[test]
            fn $name(a: $key, b: $key) {
                is_lawful(&a, &b);
                is_lawful(&a, &a);
                is_lawful(&Some(&a), &Some(&b));
                is_lawful(&None, &Some(&b));
                is_lawful(&Reverse(&a), &Reverse(&b));
                is_lawful(&(7_u8, &a), &(7_u8, &b));
                is_lawful(&(&a, &b), &(&a, &a));
                is_lawful(&[&a, &b], &[&a, &a]);
            }
        )* }
    };
}
lawful! {
    u8_is_lawful: u8, i8_is_lawful: i8, u16_is_lawful: u16, i16_is_lawful: i16,
    u32_is_lawful: u32, i32_is_lawful: i32, u64_is_lawful: u64, i64_is_lawful: i64,
    u128_is_lawful: u128, i128_is_lawful: i128, usize_is_lawful: usize, isize_is_lawful: isize,
    bool_is_lawful: bool, char_is_lawful: char, string_is_lawful: String,
    bytes_are_lawful: Vec<u8>, signed_vectors_are_lawful: Vec<i16>, array_is_lawful: [i8; 5],
    long_array_is_lawful: [u32; 3], unit_is_lawful: (), units_are_lawful: Vec<()>,
    pair_is_lawful: (u32, i32), tuple_is_lawful: (u8, u16, i32), wide_tuple_is_lawful: (u64, u64),
    string_first_is_lawful: (String, u8), option_is_lawful: Option<u32>,
    reverse_is_lawful: (Reverse<u16>, Option<i8>),
}

#[test]
fn short_fields_are_packed() {
    assert_eq!((1_u32, 2_u32).prefix(), 1 << 32 | 2);
    assert_eq!(<(u32, u32)>::PREFIX_BITS, Some(64));
    assert_eq!((1_u8, 2_u16, 3_u32).prefix(), 1 << 56 | 2 << 40 | 3 << 8);
    assert_eq!(<(u8, u16, u32)>::PREFIX_BITS, Some(56));
    assert_eq!((1_u32, 1_u64 << 32).prefix(), 1 << 32 | 1);
    assert_eq!(<(u32, u64)>::PREFIX_BITS, None);
    assert_eq!(<(String, u8)>::PREFIX_BITS, None);
}

#[test]
fn borrowed_forms_have_the_same_prefix() {
    let text = "a longer text".to_owned();
    assert_eq!(text.prefix(), text.as_str().prefix());
    assert_eq!(text.prefix(), text.as_bytes().prefix());
    assert_eq!(text.prefix(), Arc::<str>::from(text.as_str()).prefix());
    assert_eq!([1_u8, 2].prefix(), vec![1_u8, 2].prefix());
}
