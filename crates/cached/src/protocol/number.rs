//! Numbers as memcached reads them: as C's `strtoull` and `strtoll` do, up to a white space.

/// Whether C's `isspace` holds.
fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t'..=b'\r')
}

/// The sign and the digits at the beginning of `text`, after white space: whether there is a minus,
/// the number, and whether nothing but a white space follows. `None` if there are no digits or too
/// many.
fn read(text: &[u8]) -> Option<(bool, u64)> {
    let blank = text.iter().take_while(|&&byte| is_space(byte)).count();
    let text = &text[blank..];
    let (is_negative, digits) = match text.first()? {
        b'-' => (true, &text[1..]),
        b'+' => (false, &text[1..]),
        _ => (false, text),
    };
    let len = digits
        .iter()
        .take_while(|byte| byte.is_ascii_digit())
        .count();
    let ends = digits.get(len).is_none_or(|&byte| is_space(byte));
    if len == 0 || !ends {
        return None;
    }
    let mut number = 0u64;
    for digit in &digits[..len] {
        number = number
            .checked_mul(10)?
            .checked_add(u64::from(digit - b'0'))?;
    }
    Some((is_negative, number))
}

/// An unsigned number of 64 bits.
#[inline]
pub(crate) fn u64(text: &[u8]) -> Option<u64> {
    // Nearly all are short and plain.
    if (1..=18).contains(&text.len()) && text.iter().all(u8::is_ascii_digit) {
        let digit = |number, byte: &u8| number * 10 + u64::from(byte - b'0');
        return Some(text.iter().fold(0, digit));
    }
    let (is_negative, number) = read(text)?;
    // As in C, a minus negates; memcached takes what is then no negative number.
    let number = if is_negative {
        number.wrapping_neg()
    } else {
        number
    };
    (!is_negative || (number as i64) >= 0).then_some(number)
}

/// An unsigned number of 32 bits.
#[inline]
pub(crate) fn u32(text: &[u8]) -> Option<u32> {
    u32::try_from(u64(text)?).ok()
}

/// A signed number of 64 bits.
#[inline]
pub(crate) fn i64(text: &[u8]) -> Option<i64> {
    let (is_negative, number) = read(text)?;
    if is_negative {
        (number <= i64::MIN.unsigned_abs()).then(|| number.wrapping_neg() as i64)
    } else {
        i64::try_from(number).ok()
    }
}

/// A signed number of 32 bits.
#[inline]
pub(crate) fn i32(text: &[u8]) -> Option<i32> {
    i32::try_from(i64(text)?).ok()
}

/// An expiry: the lowest 32 bits of a signed number of 64, as memcached takes it.
#[inline]
pub(crate) fn expiry(text: &[u8]) -> Option<i32> {
    i64(text).map(|number| number as i32)
}

/// Appends `number` in decimal.
#[inline]
pub(crate) fn write(out: &mut Vec<u8>, mut number: u64) {
    let mut digits = [0; 20];
    let mut at = digits.len();
    loop {
        at -= 1;
        digits[at] = b'0' + (number % 10) as u8;
        number /= 10;
        if number == 0 {
            break;
        }
    }
    out.extend_from_slice(&digits[at..]);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_read_as_c_reads_them() {
        assert_eq!(u64(b"18446744073709551615"), Some(u64::MAX));
        assert_eq!(u64(b"18446744073709551616"), None);
        assert_eq!(u64(b" 12 x"), Some(12));
        assert_eq!(u64(b"+7"), Some(7));
        assert_eq!(
            (u64(b""), u64(b"x"), u64(b"1x"), u64(b"-"), u64(b"-1")),
            Default::default()
        );
        assert_eq!(u64(b"-18446744073709551615"), Some(1));
        assert_eq!(
            (u32(b"4294967295"), u32(b"4294967296")),
            (Some(u32::MAX), None)
        );
        assert_eq!((i32(b"-5"), i32(b"2147483648")), (Some(-5), None));
        assert_eq!(i64(b"-9223372036854775808"), Some(i64::MIN));
        assert_eq!(i64(b"9223372036854775808"), None);
    }

    #[test]
    fn numbers_are_written_in_decimal() {
        for number in [0, 9, 10, 12_345, u64::MAX] {
            let mut out = Vec::new();
            write(&mut out, number);
            assert_eq!(out, number.to_string().as_bytes());
        }
    }
}
