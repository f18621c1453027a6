//! The mode of a sample: whether two CPUs were near or far meanwhile.
//!
//! A round trip is compared with the smallest one that this pair of CPUs has *ever* had, as two
//! cores, for the length of a sample (shorter ones do not count, see [`super::rig::Rig::watch`]).
//! A small state file keeps it between invocations, because a machine can stay far for longer
//! than one invocation lasts. Samples taken while the two CPUs are hardware threads of one core
//! are neither near nor far, and are discarded.

use crate::schema::Mode;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::PathBuf;

/// A round trip of at most this many times the smallest ever seen is near. The two modes of the
/// reference machine differ by a factor of 4.6; noise within a mode stays below 1.3.
pub const NEAR_FACTOR: f64 = 2.0;

/// The distance between two CPUs at one moment.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Distance {
    /// Their round trip, in nanoseconds.
    pub rtt_ns: f64,
    /// Whether the two CPUs are hardware threads of one core.
    pub(crate) on_one_core: bool,
}

/// The distances measured right before and right after a sample.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bracket {
    /// The distance before the sample.
    pub(crate) before: Distance,
    /// The distance after the sample.
    pub(crate) after: Distance,
}

impl Bracket {
    /// The larger of the two round trips, in nanoseconds.
    pub fn larger_ns(self) -> f64 {
        self.before.rtt_ns.max(self.after.rtt_ns)
    }

    /// Whether the CPUs were hardware threads of one core before or after the sample.
    pub(crate) fn is_on_one_core(self) -> bool {
        self.before.on_one_core || self.after.on_one_core
    }
}

/// The mode of a sample. It is decided when all samples are taken, so that the smallest round
/// trip of the whole session is known.
pub fn tag(bracket: Option<Bracket>, smallest_ns: Option<f64>) -> Mode {
    let (Some(bracket), Some(smallest)) = (bracket, smallest_ns) else {
        return Mode::Unknown;
    };
    let near = |distance: Distance| distance.rtt_ns <= NEAR_FACTOR * smallest;
    match (near(bracket.before), near(bracket.after)) {
        _ if bracket.is_on_one_core() => Mode::Discarded,
        (true, true) => Mode::Near,
        (false, false) => Mode::Far,
        _ => Mode::Discarded,
    }
}

/// The smallest round trips ever seen, by machine and pair of CPUs, with their state file.
///
/// A file that is missing, damaged or not writable is no error: only the round trips of this
/// invocation count then.
#[derive(Debug)]
pub(crate) struct RttMemory {
    file: Option<PathBuf>,
    machine: String,
    smallest: Smallest,
}

/// The contents of the state file.
#[derive(Debug, Default, Serialize, Deserialize)]
struct Smallest {
    /// Smallest round trips in nanoseconds, by machine and pair (`a-b`).
    smallest_of_two_cores_ns: BTreeMap<String, BTreeMap<String, f64>>,
}

impl RttMemory {
    /// The memory of `machine`, read from the user's state folder.
    pub(crate) fn open(machine: &str) -> Self {
        Self::open_at(state_file("rtt.json"), machine)
    }

    /// The memory of `machine`, read from `file`; empty and never saved without one.
    pub(crate) fn open_at(file: Option<PathBuf>, machine: &str) -> Self {
        let text = file.as_ref().and_then(|f| std::fs::read_to_string(f).ok());
        let smallest = text
            .and_then(|t| serde_json::from_str(&t).ok())
            .unwrap_or_default();
        Self {
            file,
            machine: machine.to_owned(),
            smallest,
        }
    }

    /// The smallest round trip of a pair so far, in nanoseconds.
    pub(crate) fn smallest(&self, pair: (usize, usize)) -> Option<f64> {
        let ns = *self
            .smallest
            .smallest_of_two_cores_ns
            .get(&self.machine)?
            .get(&key(pair))?;
        // Without this check a damaged file would make every sample far for ever.
        (ns.is_finite() && ns >= 1.0).then_some(ns)
    }

    /// Takes a new round trip into account; returns the smallest one including it.
    pub(crate) fn learn(&mut self, pair: (usize, usize), ns: f64) -> Option<f64> {
        if ns.is_finite() && ns >= 1.0 && self.smallest(pair).is_none_or(|old| ns < old) {
            let pairs = self
                .smallest
                .smallest_of_two_cores_ns
                .entry(self.machine.clone())
                .or_default();
            pairs.insert(key(pair), ns);
        }
        self.smallest(pair)
    }

    /// Writes the file, if that is possible. Smaller round trips that another invocation has
    /// saved meanwhile are kept.
    pub(crate) fn save(&mut self) {
        let Some(file) = self.file.clone() else {
            return;
        };
        let theirs = Self::open_at(Some(file.clone()), &self.machine).smallest;
        for (machine, pairs) in theirs.smallest_of_two_cores_ns {
            let ours = self
                .smallest
                .smallest_of_two_cores_ns
                .entry(machine)
                .or_default();
            for (pair, ns) in pairs {
                let kept = ours.entry(pair).or_insert(ns);
                *kept = kept.min(ns);
            }
        }
        let Ok(text) = serde_json::to_string_pretty(&self.smallest) else {
            return;
        };
        let Some(folder) = file.parent() else { return };
        // If the file cannot be written, the next invocation only lacks these round trips.
        let _ = std::fs::create_dir_all(folder)
            .and_then(|()| tempfile::NamedTempFile::new_in(folder))
            .and_then(|temp| std::fs::write(temp.path(), text).map(|()| temp))
            .and_then(|temp| temp.persist(&file).map_err(|e| e.error));
    }
}

fn key((a, b): (usize, usize)) -> String {
    format!("{}-{}", a.min(b), a.max(b))
}

/// The path of a state file: `$XDG_STATE_HOME/corelay/<name>`, or the same under
/// `~/.local/state`. `None` if neither folder is known.
pub fn state_file(name: &str) -> Option<PathBuf> {
    let absolute = |name| {
        std::env::var_os(name)
            .map(PathBuf::from)
            .filter(|p| p.is_absolute())
    };
    let folder =
        absolute("XDG_STATE_HOME").or_else(|| Some(absolute("HOME")?.join(".local/state")))?;
    Some(folder.join("corelay").join(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sample_has_a_mode_if_both_probes_agree() {
        let distance = |rtt_ns| Distance {
            rtt_ns,
            on_one_core: false,
        };
        let bracket = |before, after| {
            Some(Bracket {
                before: distance(before),
                after: distance(after),
            })
        };
        assert_eq!(tag(bracket(110.0, 123.0), Some(108.0)), Mode::Near);
        assert_eq!(tag(bracket(110.0, 510.0), Some(108.0)), Mode::Discarded);
        assert_eq!(tag(None, None), Mode::Unknown);
    }

    const PAIR: (usize, usize) = (1, 0);

    #[test]
    fn smallest_round_trip_is_kept_between_invocations() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("deep/er/rtt.json");
        let mut first = RttMemory::open_at(Some(file.clone()), "m");
        assert_eq!(first.smallest(PAIR), None);
        assert_eq!(first.learn(PAIR, 120.0), Some(120.0));
        assert_eq!(first.learn(PAIR, 500.0), Some(120.0));
        // Another invocation saves a smaller one in between.
        let mut second = RttMemory::open_at(Some(file.clone()), "m");
        second.learn((0, 1), 110.0);
        second.save();
        first.save();
        let mut third = RttMemory::open_at(Some(file.clone()), "m");
        assert_eq!(third.smallest(PAIR), Some(110.0));
        assert_eq!(third.learn(PAIR, 115.0), Some(110.0));
        assert_eq!(
            RttMemory::open_at(Some(file), "another machine").smallest(PAIR),
            None
        );
    }

    #[test]
    fn damaged_or_unwritable_file_is_no_error() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("rtt.json");
        std::fs::write(&file, r#"{"smallest_of_two_cores_ns": {"m": {"0-1": -3}}}"#).unwrap();
        let mut memory = RttMemory::open_at(Some(file.clone()), "m");
        assert_eq!(memory.smallest(PAIR), None);
        assert_eq!(memory.learn(PAIR, 200.0), Some(200.0));
        std::fs::write(&file, "not json").unwrap();
        assert_eq!(
            RttMemory::open_at(Some(file.clone()), "m").smallest(PAIR),
            None
        );
        // A file where a folder should be.
        let mut memory = RttMemory::open_at(Some(file.join("rtt.json")), "m");
        memory.learn(PAIR, 1e3);
        memory.save();
        assert_eq!(memory.smallest(PAIR), Some(1e3));
    }

    #[test]
    fn probes_that_disagree_discard_the_sample() {
        let distance = |rtt_ns, on_one_core| Distance {
            rtt_ns,
            on_one_core,
        };
        let bracket = |before, after| tag(Some(Bracket { before, after }), Some(100.0));
        let tag = |b, a| bracket(distance(b, false), distance(a, false));
        assert_eq!(tag(200.0, 200.0), Mode::Near);
        assert_eq!(tag(201.0, 201.0), Mode::Far);
        assert_eq!(tag(201.0, 110.0), Mode::Discarded);
        assert_eq!(tag(110.0, 201.0), Mode::Discarded);
        for (before, after) in [(true, false), (false, true), (true, true)] {
            let (before, after) = (distance(110.0, before), distance(110.0, after));
            assert_eq!(bracket(before, after), Mode::Discarded);
        }
    }
}
