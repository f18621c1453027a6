//! A set of CPUs of any size.

use crate::cpulist::{self, CpuListError, MAX_CPUS};
use std::fmt;
use std::str::FromStr;

/// A set of CPU numbers below [`MAX_CPUS`], as large as its largest member needs.
///
/// The C library's fixed `cpu_set_t` ends at 1,024 CPUs; this one grows. It is read and
/// written as the kernel's list format.
///
/// ```
/// use corelay_topology::CpuSet;
///
/// let set: CpuSet = "0-3,2048".parse()?;
/// assert_eq!(set.len(), 5);
/// assert!(set.contains(2048) && !set.contains(4));
/// assert_eq!(set.to_string(), "0-3,2048");
/// # Ok::<(), corelay_topology::CpuListError>(())
/// ```
#[derive(Clone, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct CpuSet {
    /// Bit `c % 64` of word `c / 64`. The last word is never zero, so that equal sets have
    /// equal words.
    words: Vec<u64>,
}

impl CpuSet {
    /// The empty set.
    pub const fn new() -> Self {
        Self { words: Vec::new() }
    }

    /// Adds a CPU. Returns false if it was a member already.
    ///
    /// # Panics
    ///
    /// If `cpu` is [`MAX_CPUS`] or more.
    pub fn insert(&mut self, cpu: usize) -> bool {
        let added = !self.contains(cpu);
        self.insert_range(cpu, cpu);
        added
    }

    /// Removes a CPU. Returns false if it was no member.
    pub fn remove(&mut self, cpu: usize) -> bool {
        let removed = self.contains(cpu);
        if removed {
            self.words[cpu / 64] &= !(1 << (cpu % 64));
            self.trim();
        }
        removed
    }

    /// Whether `cpu` is a member.
    pub fn contains(&self, cpu: usize) -> bool {
        self.words
            .get(cpu / 64)
            .is_some_and(|word| word >> (cpu % 64) & 1 == 1)
    }

    /// The number of members.
    pub fn len(&self) -> usize {
        self.words
            .iter()
            .map(|word| word.count_ones() as usize)
            .sum()
    }

    /// Whether the set has no members.
    pub fn is_empty(&self) -> bool {
        self.words.is_empty()
    }

    /// The smallest member.
    pub fn first(&self) -> Option<usize> {
        self.iter().next()
    }

    /// The members in ascending order.
    pub fn iter(&self) -> impl Iterator<Item = usize> + '_ {
        self.words.iter().enumerate().flat_map(|(index, &word)| {
            std::iter::successors(Some(word), |rest| Some(rest & rest.wrapping_sub(1)))
                .take_while(|&rest| rest != 0)
                .map(move |rest| index * 64 + rest.trailing_zeros() as usize)
        })
    }

    /// The members of both sets.
    #[must_use]
    pub fn intersection(&self, other: &Self) -> Self {
        Self::from_words(
            self.words
                .iter()
                .zip(&other.words)
                .map(|(a, b)| a & b)
                .collect(),
        )
    }

    /// The members of either set.
    #[must_use]
    pub fn union(&self, other: &Self) -> Self {
        let (long, short) = if self.words.len() >= other.words.len() {
            (self, other)
        } else {
            (other, self)
        };
        let mut words = long.words.clone();
        for (word, more) in words.iter_mut().zip(&short.words) {
            *word |= more;
        }
        Self::from_words(words)
    }

    /// The members that `other` does not have.
    #[must_use]
    pub fn difference(&self, other: &Self) -> Self {
        let mut words = self.words.clone();
        for (word, less) in words.iter_mut().zip(&other.words) {
            *word &= !less;
        }
        Self::from_words(words)
    }

    /// Whether every member is also one of `other`.
    pub fn is_subset(&self, other: &Self) -> bool {
        self.difference(other).is_empty()
    }

    /// Adds `from..=to`, a word at a time: a garbage file may name huge ranges often.
    fn insert_range(&mut self, from: usize, to: usize) {
        assert!(
            to < MAX_CPUS,
            "CPU {to} is beyond the largest number supported, {}",
            MAX_CPUS - 1
        );
        if self.words.len() <= to / 64 {
            self.words.resize(to / 64 + 1, 0);
        }
        for index in from / 64..=to / 64 {
            let low = if index == from / 64 {
                u64::MAX << (from % 64)
            } else {
                u64::MAX
            };
            let high = if index == to / 64 {
                u64::MAX >> (63 - to % 64)
            } else {
                u64::MAX
            };
            self.words[index] |= low & high;
        }
    }

    fn from_words(words: Vec<u64>) -> Self {
        let mut set = Self { words };
        set.trim();
        set
    }

    fn trim(&mut self) {
        let used = self
            .words
            .iter()
            .rposition(|&word| word != 0)
            .map_or(0, |last| last + 1);
        self.words.truncate(used);
    }
}

impl FromStr for CpuSet {
    type Err = CpuListError;

    /// Reads the kernel's list format; an empty text is the empty set.
    fn from_str(text: &str) -> Result<Self, CpuListError> {
        let mut set = Self::new();
        for range in cpulist::ranges(text) {
            let (from, to) = range?;
            set.insert_range(from, to);
        }
        Ok(set)
    }
}

impl fmt::Display for CpuSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        cpulist::write_runs(f, self.iter())
    }
}

impl fmt::Debug for CpuSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{{{self}}}")
    }
}

impl FromIterator<usize> for CpuSet {
    fn from_iter<I: IntoIterator<Item = usize>>(cpus: I) -> Self {
        let mut set = Self::new();
        set.extend(cpus);
        set
    }
}

impl Extend<usize> for CpuSet {
    fn extend<I: IntoIterator<Item = usize>>(&mut self, cpus: I) {
        for cpu in cpus {
            self.insert(cpu);
        }
    }
}
