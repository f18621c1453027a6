//! The choice of the points at which one thread gives way to another.

use crate::dice::Dice;
use crate::path::{Kind, Rarity};

/// The most points of a call after which the others are let run, in case the call waits for them.
const PATIENCE: u32 = 4_000;

/// The point of a thread.
#[derive(Clone, Copy, Debug)]
pub(crate) struct At {
    pub(crate) kind: Kind,
    pub(crate) rarity: Rarity,
    /// The number of the thread's call, in its round.
    pub(crate) call: u32,
    /// The number of the point, in its call.
    pub(crate) nth: u32,
}

/// The step that a thread takes at a point.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Choice {
    /// Go on.
    Stay,
    /// Stop until every other thread is done or waits.
    Last,
    /// Let any other thread go first.
    Other,
}

/// The way in which a round's points are chosen.
#[derive(Debug)]
pub struct Policy {
    dice: Dice,
    /// Points of the round at which the thread there goes last, ascending: the change points of
    /// PCT (Burckhardt and others, ASPLOS 2010).
    changes: Vec<u64>,
    /// Points of calls at which their thread goes last: the thread, its call, and the point.
    /// Most calls are short, and a growth is long; so this finds the points of short calls that
    /// the change points miss.
    holds: Vec<(usize, u32, u32)>,
    /// One in so many points lets another thread go first; 0 for none.
    others: u64,
    /// One in so many ends of calls does; 0 for none.
    ends: u64,
    /// One in so many points on a rare path makes its thread go last; 0 for none.
    rare: u64,
    /// Whether the first thread begins when the others have made a call each. They may keep
    /// something of what they saw, which the first one then changes.
    is_late: bool,
    step: u64,
}

impl Policy {
    /// Chooses a way for a round of so many threads and calls that will have about `steps` points.
    pub fn new(mut dice: Dice, threads: usize, calls: usize, steps: u64) -> Self {
        let steps = steps.max(8);
        let (mut changes, mut holds) = (Vec::new(), Vec::new());
        let (mut others, mut ends) = (0, dice.of(&[0, 2, 3, 6]));
        match dice.below(8) {
            // Many small steps.
            0 => others = dice.of(&[2, 4, 8]),
            1 => others = dice.of(&[8, 16, 64]),
            2..6 => holds.extend((0..1 + dice.below(3)).map(|_| {
                let thread = dice.below(threads.max(1) as u64) as usize;
                let call = dice.below(calls.max(1) as u64) as u32;
                let points = dice.of(&[3, 6, 12]);
                (thread, call, 1 + dice.below(points) as u32)
            })),
            // Few changes, anywhere.
            _ => {
                let number = dice.below(4);
                changes.extend((0..number).map(|_| 1 + dice.below(steps)));
                changes.sort_unstable();
                changes.dedup();
            }
        }
        if dice.one_in(16) {
            ends = 1;
        }
        let rare = dice.of(&[0, 1, 2, 2, 4]);
        let is_late = dice.one_in(4);
        Self {
            dice,
            changes,
            holds,
            others,
            ends,
            rare,
            is_late,
            step: 0,
        }
    }

    /// Whether the first thread begins after the others' first calls.
    pub(crate) fn is_late(&self) -> bool {
        self.is_late
    }

    pub(crate) fn dice(&mut self) -> &mut Dice {
        &mut self.dice
    }

    /// Chooses for the thread at a point.
    pub(crate) fn choose(&mut self, thread: usize, at: At) -> Choice {
        let At {
            kind,
            rarity,
            call,
            nth,
        } = at;
        self.step += 1;
        if self.holds.contains(&(thread, call, nth)) {
            return Choice::Last;
        }
        let is_change = self.changes.first().is_some_and(|&at| at <= self.step);
        if is_change {
            self.changes.remove(0);
            return Choice::Last;
        }
        let one_in = |dice: &mut Dice, n: u64| n > 0 && dice.one_in(n);
        match kind {
            Kind::Call if self.is_late && thread > 0 && call == 1 => Choice::Last,
            Kind::Spin => Choice::Last,
            _ if nth > PATIENCE && nth % 64 == 0 => Choice::Last,
            Kind::Call if one_in(&mut self.dice, self.ends) => Choice::Other,
            Kind::Call => Choice::Stay,
            // The others would mostly run into the lock.
            Kind::Inside if !self.dice.one_in(4) => Choice::Stay,
            _ if rarity == Rarity::Rare && one_in(&mut self.dice, self.rare) => Choice::Last,
            _ if rarity == Rarity::Uncommon && one_in(&mut self.dice, 8 * self.rare) => {
                Choice::Last
            }
            _ if one_in(&mut self.dice, self.others) => Choice::Other,
            _ => Choice::Stay,
        }
    }
}
