//! The sizes at which a table grows, as far as its locks tell.
//!
//! An insertion that passes more points than others does something special, and mostly grows the
//! table. Rounds that begin just below such a size see it at work.

use crate::keys::Keys;
use crate::table::Table;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};
use turns::Dice;

/// Numbers of keys up to which sizes are looked for.
const MOST: u64 = 9_000;
const MOST_IN_ONE_PLACE: u64 = 300;
/// Sizes above this one take long to reach, and are chosen seldom.
const LARGE: u64 = 1_500;
/// Time after which no more sizes are looked for, for each way to make a table.
const LONGEST: Duration = Duration::from_millis(40);

/// A way to make a table, and the numbers of keys after which an insertion is special.
#[derive(Clone, Debug)]
pub struct Start {
    pub capacity: usize,
    pub keys: Keys,
    /// Sizes by the number of points of the insertion there. What happens at one size alone, say
    /// at the 200th growth, is as likely to be chosen as what happens at many.
    sizes: Vec<Vec<u64>>,
}

impl Start {
    /// Finds the sizes for a capacity and a kind of keys.
    pub fn find(capacity: usize, keys: Keys, is_spread: bool) -> Self {
        let table = Table::with_capacity(capacity);
        let most = if is_spread { MOST } else { MOST_IN_ONE_PLACE };
        let began = Instant::now();
        let mut points = Vec::new();
        turns::counted(|| {
            for number in 0..most {
                let before = turns::passed();
                table.insert(keys.of(number), number);
                points.push(turns::passed() - before);
                // A table may be slow.
                if began.elapsed() > LONGEST {
                    break;
                }
            }
        });
        let mut sorted = points.clone();
        sorted.sort_unstable();
        let usual = sorted[sorted.len() / 2];
        let mut sizes: BTreeMap<u64, Vec<u64>> = BTreeMap::new();
        for (size, &points) in (0..).zip(&points).filter(|(_, points)| **points > usual) {
            sizes.entry(points).or_default().push(size);
        }
        Self {
            capacity,
            keys,
            sizes: sizes.into_values().collect(),
        }
    }

    /// Chooses how many keys a table has before a round.
    pub fn size(&self, dice: &mut Dice) -> u64 {
        match dice.below(8) {
            0 => dice.below(6),
            1 => dice.below(80),
            2 => dice.of(&[
                3, 4, 7, 8, 12, 14, 15, 16, 24, 28, 31, 32, 48, 56, 64, 96, 128,
            ]),
            _ if self.sizes.is_empty() => {
                let power = 1 << dice.below(8);
                (power * dice.of(&[3, 3, 4, 4, 4, 2]) / 4_u64).saturating_sub(dice.below(3))
            }
            n => {
                let group = &self.sizes[dice.below(self.sizes.len() as u64) as usize];
                // Small sizes are quicker to reach.
                let among = match n {
                    3..6 => group.len().min(12),
                    6 => group.len().min(100),
                    _ => group.len(),
                };
                let size = group[dice.below(among as u64) as usize];
                match size > LARGE && !dice.one_in(6) {
                    true => dice.below(200),
                    false => size.saturating_sub(dice.below(3)),
                }
            }
        }
    }
}
