//! The calls of a round, chosen before it begins.

use crate::keys::Keys;
use crate::record::Ask;
use crate::table::Table;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use turns::Dice;

/// The most keys of a round, besides new ones.
const HOT: u64 = 3;

/// A round: the table, the calls of each thread, and the numbers of the keys that they name.
pub struct Round {
    pub table: Arc<Table>,
    pub asks: Vec<Vec<Ask>>,
    pub numbers: BTreeSet<u64>,
}

/// The theme of a round.
#[derive(Clone, Copy, Debug)]
enum Theme {
    /// Every thread does everything to a few keys.
    Everything,
    /// New keys make the table grow; they are looked up at once, and so are keys that stay.
    Growth,
    /// One thread replaces values; the others look.
    Replace,
    /// All threads insert the same new keys.
    SameNew,
    /// One thread inserts and removes a key; the others look, or do the same to another key.
    InAndOut,
}

/// The choice of a round's calls.
pub struct Plan<'a> {
    dice: &'a mut Dice,
    keys: Keys,
    threads: usize,
    theme: Theme,
    /// Numbers of keys that threads meet at.
    hot: Vec<u64>,
    /// Numbers of keys that are in the table and that no call of the round changes.
    stay: Vec<u64>,
    /// Numbers of new keys, by the thread that inserts them.
    new: Vec<Vec<u64>>,
    /// The first number that is not used yet.
    pub fresh: u64,
    /// Numbers of all keys that are named.
    pub numbers: BTreeSet<u64>,
    value: u64,
}

impl<'a> Plan<'a> {
    pub fn new(
        dice: &'a mut Dice,
        keys: Keys,
        content: &BTreeMap<u64, u64>,
        fresh: u64,
        threads: usize,
    ) -> Self {
        let theme = match dice.below(12) {
            0..3 => Theme::Everything,
            3..7 => Theme::Growth,
            7..9 => Theme::Replace,
            9..10 => Theme::SameNew,
            _ => Theme::InAndOut,
        };
        let mut fresh = fresh;
        let mut hot = Vec::new();
        for _ in 0..1 + dice.below(HOT) {
            // A key that is there, one that was there, or a new one.
            let there = content.range(dice.below(fresh + 1)..).next();
            hot.push(match (dice.below(4), there) {
                (0 | 1, Some((&number, _))) => number,
                (2, _) if fresh > 0 => dice.below(fresh),
                _ => {
                    fresh += 1;
                    fresh - 1
                }
            });
        }
        let mut stay = Vec::new();
        for _ in 0..4 {
            let near = fresh.saturating_sub(1 + dice.below(4));
            let from = if dice.one_in(3) {
                near
            } else {
                dice.below(fresh + 1)
            };
            stay.extend(content.range(from..).next().map(|(&number, _)| number));
        }
        stay.retain(|number| !hot.contains(number));
        let value = (dice.next() >> 24) << 16;
        Self {
            dice,
            keys,
            threads,
            theme,
            hot,
            stay,
            new: vec![Vec::new(); threads],
            fresh,
            numbers: BTreeSet::new(),
            value,
        }
    }

    /// Chooses the calls of each thread.
    pub fn asks(&mut self) -> Vec<Vec<Ask>> {
        let most = match self.theme {
            Theme::Replace => 6,
            Theme::SameNew => 5,
            _ => 8,
        };
        // Many threads have a call or two each.
        let most = most.min(1 + 40 / self.threads as u64);
        let each = 1 + self.dice.below(most);
        for thread in 0..self.threads {
            if matches!(self.theme, Theme::SameNew) && thread > 0 {
                self.new[thread] = self.new[0].clone();
                continue;
            }
            let number = each.min(1 + self.dice.below(5));
            self.new[thread] = (self.fresh..self.fresh + number).collect();
            self.fresh += number;
        }
        let mut asks = Vec::new();
        for thread in 0..self.threads {
            let mut own = self.new[thread].clone().into_iter();
            let ask = |nth: u64| self.ask(thread, nth, &mut own);
            asks.push((0..each).map(ask).collect());
        }
        asks
    }

    fn ask(&mut self, thread: usize, nth: u64, own: &mut impl Iterator<Item = u64>) -> Ask {
        self.value += 1;
        let value = self.value;
        let hot = self.hot[self.dice.below(self.hot.len() as u64) as usize];
        let first = self.hot[0];
        match (self.theme, thread, self.dice.below(6)) {
            (Theme::Everything, _, 0) => self.remove(hot),
            (Theme::Everything, _, 1 | 2) => self.get(hot),
            (Theme::Everything, _, 3) => self.look(),
            (Theme::Everything, ..) => self.insert(hot, value),

            (Theme::Growth, _, 0..3) => match own.next() {
                Some(new) => self.insert(new, value),
                None => self.look(),
            },
            (Theme::Growth, _, 3 | 4) => self.look(),
            (Theme::Growth, ..) => match self.dice.below(4) {
                0 => self.remove(hot),
                1 => self.insert(hot, value),
                _ => self.get(hot),
            },

            (Theme::Replace | Theme::InAndOut, 1.., 1..) if nth == 0 => self.get(first),

            (Theme::Replace, 0, 0) if nth > 0 => self.get(first),
            (Theme::Replace, 0, _) => self.insert(first, value),
            (Theme::Replace, _, 0) => self.get(hot),
            (Theme::Replace, ..) => self.get(first),

            (Theme::SameNew, ..) => match own.next() {
                Some(new) => self.insert(new, value),
                None if self.dice.one_in(2) => self.remove(first),
                None => self.look(),
            },

            (Theme::InAndOut, 0, _) if nth % 2 == 0 => self.insert(first, value),
            (Theme::InAndOut, 0, _) => self.remove(first),
            (Theme::InAndOut, _, 0) => self.remove(hot),
            (Theme::InAndOut, _, 1) => self.insert(hot, value),
            (Theme::InAndOut, _, 2) => match own.next() {
                Some(new) => self.insert(new, value),
                None => self.look(),
            },
            (Theme::InAndOut, ..) => self.get(first),
        }
    }

    /// Looks up a new key of any thread, or one that stays.
    fn look(&mut self) -> Ask {
        let thread = self.dice.below(self.threads as u64) as usize;
        let new = &self.new[thread];
        if !new.is_empty() && self.dice.one_in(2) {
            let number = new[self.dice.below(new.len() as u64) as usize];
            return self.get(number);
        }
        match self.stay.is_empty() {
            true => self.get(self.hot[0]),
            false => {
                let number = self.stay[self.dice.below(self.stay.len() as u64) as usize];
                self.get(number)
            }
        }
    }

    fn key(&mut self, number: u64) -> u64 {
        self.numbers.insert(number);
        self.keys.of(number)
    }

    fn get(&mut self, number: u64) -> Ask {
        Ask::Get(self.key(number))
    }

    fn insert(&mut self, number: u64, value: u64) -> Ask {
        Ask::Insert(self.key(number), value)
    }

    fn remove(&mut self, number: u64) -> Ask {
        Ask::Remove(self.key(number))
    }
}
