//! Random inputs (clauses 2.1.6 and 4.3.2).

use corelay_lab_measure::workload::random::Random;

/// The constants C of `NURand`. That of last names differs between loading and running by 66, which
/// clause 2.1.6.1 allows (65 to 119, but not 96 or 112).
pub(super) const C_LOAD: u64 = 157;
pub(super) const C_RUN: u64 = 223;
const C_CUSTOMER: u64 = 259;
const C_ITEM: u64 = 7911;

/// A number from `least` to `most`, both included.
#[inline]
pub(super) fn within(random: &mut Random, least: u64, most: u64) -> u64 {
    least + random.below(most - least + 1)
}

/// A number from `least` to `most`, some of which are much more likely than others.
pub(super) fn nu_rand(random: &mut Random, a: u64, c: u64, least: u64, most: u64) -> u64 {
    let drawn = within(random, 0, a) | within(random, least, most);
    (drawn + c) % (most - least + 1) + least
}

/// A customer of a district.
pub(super) fn customer(random: &mut Random, customers: u32) -> u32 {
    nu_rand(random, 1023, C_CUSTOMER, 1, customers.into()) as u32
}

/// An item.
pub(super) fn item(random: &mut Random, items: u32) -> u32 {
    nu_rand(random, 8191, C_ITEM, 1, items.into()) as u32
}

/// The number of a last name.
pub(super) fn name(random: &mut Random, c: u64, names: u32) -> u32 {
    nu_rand(random, 255, c, 0, u64::from(names) - 1) as u32
}

/// A last name by its number, 0 to 999 (clause 4.3.2.3).
pub(super) fn last_name(number: u32) -> [u8; 16] {
    const SYLLABLES: [&str; 10] = [
        "BAR", "OUGHT", "ABLE", "PRI", "PRES", "ESE", "ANTI", "CALLY", "ATION", "EING",
    ];
    let digits = [number / 100, number / 10 % 10, number % 10];
    let syllables = digits.map(|digit| SYLLABLES[digit as usize]);
    text(syllables.concat().as_bytes())
}

/// A text, padded with zeros or cut.
pub(super) fn text<const N: usize>(from: &[u8]) -> [u8; N] {
    let mut text = [0; N];
    let length = from.len().min(N);
    text[..length].copy_from_slice(&from[..length]);
    text
}

/// Random letters and digits, at least so many.
pub(super) fn letters<const N: usize>(random: &mut Random, least: usize) -> [u8; N] {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789 -";
    let length = within(random, least as u64, N as u64) as usize;
    let mut text = [0; N];
    for eight in text[..length].chunks_mut(8) {
        let bytes = random.next().to_le_bytes();
        for (letter, byte) in eight.iter_mut().zip(bytes) {
            *letter = LETTERS[usize::from(byte % 64)];
        }
    }
    text
}

/// Random digits.
pub(super) fn digits<const N: usize>(random: &mut Random) -> [u8; N] {
    std::array::from_fn(|_| b'0' + random.below(10) as u8)
}

/// Random letters, in a tenth of the cases with "ORIGINAL" in them.
pub(super) fn data(random: &mut Random) -> [u8; 50] {
    let mut data: [u8; 50] = letters(random, 26);
    if random.below(10) == 0 {
        let place = random.below(26 - 8 + 1) as usize;
        data[place..place + 8].copy_from_slice(b"ORIGINAL");
    }
    data
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn last_names_are_those_of_the_specification() {
        assert_eq!(&last_name(371)[..], b"PRICALLYOUGHT\0\0\0");
        assert_eq!(&last_name(40)[..], b"BARPRESBAR\0\0\0\0\0\0");
        assert_eq!(&last_name(777)[..], b"CALLYCALLYCALLY\0");
    }

    #[test]
    fn nu_rand_covers_its_range_unevenly() {
        let mut random = Random::new(1);
        let mut seen = vec![0_u32; 1000];
        for _ in 0..1_000_000 {
            seen[name(&mut random, C_RUN, 1000) as usize] += 1;
        }
        assert!(seen.iter().all(|&n| n > 0));
        seen.sort_unstable();
        // 255 has all low bits set, as half of the low bytes have many: the most frequent tenth of
        // the names is drawn more than three times as often as in an even draw.
        let top: u32 = seen[900..].iter().sum();
        assert!((300_000..600_000).contains(&top), "{top}");
        for most in [1, 30, 3000] {
            let all = (0..200_000).map(|_| customer(&mut random, most));
            let (least, largest) = all.fold((u32::MAX, 0), |(l, m), n| (l.min(n), m.max(n)));
            assert_eq!((least, largest), (1, most));
        }
    }

    #[test]
    fn texts_have_their_lengths() {
        let mut random = Random::new(2);
        let length = |text: &[u8]| text.iter().take_while(|&&byte| byte > 0).count();
        let lengths: Vec<usize> = (0..1000)
            .map(|_| length(&letters::<24>(&mut random, 14)))
            .collect();
        let bounds = (lengths.iter().min(), lengths.iter().max());
        assert_eq!(bounds, (Some(&14), Some(&24)));
        let has_word = |data: [u8; 50]| data.windows(8).any(|part| part == b"ORIGINAL");
        let words = (0..10_000).filter(|_| has_word(data(&mut random))).count();
        assert!((800..1200).contains(&words), "{words}");
    }
}
