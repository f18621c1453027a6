//! The coherence counter: the caches that have each line, and the cost of getting it.
//!
//! Each place has a cache of its own that never runs out of room. A line is in one of four states
//! there (MESI):
//!
//! | state | other copies | reading | writing |
//! |---|---|---|---|
//! | Modified | none | nothing happens | nothing happens |
//! | Exclusive | none | nothing happens | becomes Modified, which nobody needs to know |
//! | Shared | perhaps | nothing happens | the others' go: a *claim* |
//! | Invalid | perhaps | the line *moves* here, all copies become Shared | the line *moves* here, the others' go: where they were Shared, that is a claim too |
//!
//! A line moves from the nearest copy; if there is none it comes from memory. A claim is as far as
//! the farthest copy that has to go.
//!
//! Siblings share their core's caches on most machines. Here each has its own, which changes
//! nothing beyond the core: a line that one of them has is never fetched from farther away than the
//! other. So the counts within a core are of lines that pass from sibling to sibling, which costs
//! next to nothing.

#![forbid(unsafe_code)]

use crate::machine::{Distance, Machine};
use rustc_hash::FxHashMap;
use std::ops::{Add, AddAssign, Sub};

/// Bytes of a line.
pub const LINE: usize = 64;

const WORDS: usize = Machine::MAX_PLACES / 64;

/// A set of places.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Places([u64; WORDS]);

impl Places {
    fn of(place: usize) -> Self {
        let mut places = Self::default();
        places.insert(place);
        places
    }

    fn insert(&mut self, place: usize) {
        self.0[place / 64] |= 1 << (place % 64);
    }

    fn contains(&self, place: usize) -> bool {
        self.0[place / 64] >> (place % 64) & 1 == 1
    }

    fn is_empty(&self) -> bool {
        self.0 == [0; WORDS]
    }

    fn meets(&self, other: &Self) -> bool {
        self.0.iter().zip(other.0).any(|(a, b)| a & b != 0)
    }

    fn without(mut self, other: &Self) -> Self {
        for (a, b) in self.0.iter_mut().zip(other.0) {
            *a &= !b;
        }
        self
    }
}

/// A line's state in a cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// The only copy, written.
    Modified,
    /// The only copy, as in memory.
    Exclusive,
    /// Others may have copies.
    Shared,
    /// No copy.
    Invalid,
}

/// The events of a place, above all those by which it gets lines. All fields are counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Lines that came from another cache: within a core, within a socket, across sockets.
    pub moved: [u64; 3],
    /// Writes for which copies in other caches had to go, by the distance of the farthest.
    pub claimed: [u64; 3],
    /// Lines that no cache had.
    pub from_memory: u64,
    /// Times that a thread there slept.
    pub sleeps: u64,
}

impl Counts {
    /// Lines that came from other caches, at whatever distance.
    pub fn lines(&self) -> u64 {
        self.moved.iter().sum()
    }

    /// Claims, at whatever distance.
    pub fn claims(&self) -> u64 {
        self.claimed.iter().sum()
    }
}

impl Add for Counts {
    type Output = Self;

    fn add(mut self, other: Self) -> Self {
        self += other;
        self
    }
}

impl AddAssign for Counts {
    fn add_assign(&mut self, other: Self) {
        for distance in 0..3 {
            self.moved[distance] += other.moved[distance];
            self.claimed[distance] += other.claimed[distance];
        }
        self.from_memory += other.from_memory;
        self.sleeps += other.sleeps;
    }
}

impl Sub for Counts {
    type Output = Self;

    fn sub(mut self, other: Self) -> Self {
        for distance in 0..3 {
            self.moved[distance] -= other.moved[distance];
            self.claimed[distance] -= other.claimed[distance];
        }
        self.from_memory -= other.from_memory;
        self.sleeps -= other.sleeps;
        self
    }
}

/// The state of a line that some place has, or has had.
#[derive(Clone, Debug, Default)]
struct LineState {
    holders: Places,
    /// Whether there is one holder, which has the line Modified or Exclusive.
    owned: bool,
    modified: bool,
}

/// The caches of a machine.
///
/// ```
/// use corelay_coherence::{Caches, Machine, State};
///
/// let mut caches = Caches::new(Machine::new(2, 1, 1).unwrap());
/// caches.write(0, 7); // from memory
/// caches.read(1, 7); // moves from place 0
/// assert_eq!(caches.state(0, 7), State::Shared);
/// caches.write(0, 7); // claims it back
/// let [first, second] = caches.counts() else { unreachable!() };
/// assert_eq!((first.claimed, second.moved), ([0, 0, 1], [0, 0, 1]));
/// ```
#[derive(Clone, Debug)]
pub struct Caches {
    lines: FxHashMap<usize, LineState>,
    counts: Vec<Counts>,
    /// For each place, the places of its core and those of its socket.
    near: Vec<[Places; 2]>,
}

impl Caches {
    /// Empty caches.
    pub fn new(machine: Machine) -> Self {
        let within = |place, most| {
            let mut near = Places::of(place);
            let others = (0..machine.places()).filter(|&other| other != place);
            others
                .filter(|&other| machine.distance(place, other) <= most)
                .for_each(|other| near.insert(other));
            near
        };
        let near = |place| [Distance::Core, Distance::Socket].map(|most| within(place, most));
        Self {
            lines: FxHashMap::default(),
            counts: vec![Counts::default(); machine.places()],
            near: (0..machine.places()).map(near).collect(),
        }
    }

    /// The state of line number `line` at `place`.
    pub fn state(&self, place: usize, line: usize) -> State {
        match self.lines.get(&line) {
            Some(found) if found.holders.contains(place) => match found {
                LineState { modified: true, .. } => State::Modified,
                LineState { owned: true, .. } => State::Exclusive,
                _ => State::Shared,
            },
            _ => State::Invalid,
        }
    }

    /// Whether `place` may read the line, or write it, without any event being counted.
    pub fn has(&self, place: usize, line: usize, to_write: bool) -> bool {
        match self.state(place, line) {
            State::Modified | State::Exclusive => true,
            State::Shared => !to_write,
            State::Invalid => false,
        }
    }

    /// Counts a read of the line by `place`, which then has the line.
    pub fn read(&mut self, place: usize, line: usize) {
        let found = self.lines.entry(line).or_default();
        if found.holders.contains(place) {
            return;
        }
        let counts = &mut self.counts[place];
        if found.holders.is_empty() {
            counts.from_memory += 1;
            found.owned = true;
        } else {
            counts.moved[nearest(&self.near[place], &found.holders) as usize] += 1;
            found.owned = false;
            found.modified = false;
        }
        found.holders.insert(place);
    }

    /// Counts a write of the line by `place`, or a prefetch for writing; `place` then has the only
    /// copy.
    pub fn write(&mut self, place: usize, line: usize) {
        let found = self.lines.entry(line).or_default();
        let own = Places::of(place);
        let others = found.holders.without(&own);
        let counts = &mut self.counts[place];
        if !found.holders.contains(place) {
            if others.is_empty() {
                counts.from_memory += 1;
            } else {
                counts.moved[nearest(&self.near[place], &others) as usize] += 1;
            }
        }
        if !others.is_empty() && !found.owned {
            counts.claimed[farthest(&self.near[place], &others) as usize] += 1;
        }
        *found = LineState {
            holders: own,
            owned: true,
            modified: true,
        };
    }

    /// Counts that a thread at `place` sleeps.
    pub(crate) fn count_sleep(&mut self, place: usize) {
        self.counts[place].sleeps += 1;
    }

    /// The counts of each place so far.
    pub fn counts(&self) -> &[Counts] {
        &self.counts
    }
}

fn nearest([core, socket]: &[Places; 2], holders: &Places) -> Distance {
    if core.meets(holders) {
        Distance::Core
    } else if socket.meets(holders) {
        Distance::Socket
    } else {
        Distance::Across
    }
}

fn farthest([core, socket]: &[Places; 2], holders: &Places) -> Distance {
    if !holders.without(socket).is_empty() {
        Distance::Across
    } else if !holders.without(core).is_empty() {
        Distance::Socket
    } else {
        Distance::Core
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two sockets of two cores with two threads each. Place 0: its sibling is 4, its
    /// neighbour 1, and 2 and 3 are in the other socket.
    fn caches() -> Caches {
        Caches::new(Machine::new(2, 2, 2).unwrap())
    }

    #[test]
    fn states_go_as_mesi_says() {
        use State::{Exclusive, Invalid, Modified, Shared};
        let mut caches = caches();
        let states = |caches: &Caches| [0, 1, 2].map(|place| caches.state(place, 9));
        assert_eq!(states(&caches), [Invalid, Invalid, Invalid]);
        caches.read(0, 9);
        assert_eq!(states(&caches), [Exclusive, Invalid, Invalid]);
        caches.write(0, 9);
        assert_eq!(states(&caches), [Modified, Invalid, Invalid]);
        caches.read(1, 9);
        assert_eq!(states(&caches), [Shared, Shared, Invalid]);
        caches.write(2, 9);
        assert_eq!(states(&caches), [Invalid, Invalid, Modified]);
        caches.read(0, 9);
        caches.read(1, 9);
        caches.write(1, 9);
        assert_eq!(states(&caches), [Invalid, Modified, Invalid]);
        // Another line has nothing to do with it.
        assert_eq!(caches.state(1, 10), Invalid);
    }

    #[test]
    fn each_step_is_counted_at_its_distance() {
        let mut caches = caches();
        caches.write(0, 9);
        // A line that is owned elsewhere comes with the right to write it.
        caches.write(4, 9);
        caches.write(0, 9);
        caches.write(1, 9);
        caches.write(2, 9);
        // From the nearest of 2 and, later, 0.
        caches.read(0, 9);
        caches.read(4, 9);
        caches.read(1, 9);
        // All four copies: 2 is farthest from 1. From 1 to 0: the sibling's is gone.
        caches.write(1, 9);
        caches.write(0, 9);
        let counts = |moved, claimed, from_memory| Counts {
            moved,
            claimed,
            from_memory,
            sleeps: 0,
        };
        assert_eq!(
            caches.counts()[..5],
            [
                counts([1, 1, 1], [0, 0, 0], 1),
                counts([0, 2, 0], [0, 0, 1], 0),
                counts([0, 0, 1], [0, 0, 0], 0),
                counts([0, 0, 0], [0, 0, 0], 0),
                counts([2, 0, 0], [0, 0, 0], 0),
            ]
        );
    }

    #[test]
    fn writing_a_shared_line_without_a_copy_moves_and_claims_it() {
        let mut caches = caches();
        for place in [1, 4, 2] {
            caches.read(place, 9);
        }
        caches.write(0, 9);
        let Counts { moved, claimed, .. } = caches.counts()[0];
        // From the sibling, but the copy across has to go too.
        assert_eq!((moved, claimed), ([1, 0, 0], [0, 0, 1]));
        caches.write(0, 9);
        assert_eq!(caches.counts()[0].claims(), 1);
    }
}
