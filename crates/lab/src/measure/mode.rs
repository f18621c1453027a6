//! Near or far: which distance the machine had during a sample.
//!
//! The yardstick is the smallest round trip that this pair of CPUs has *ever* had for the
//! length of a sample (shorter flashes do not count: [`super::probe::Reading`]), kept
//! from one invocation to the next in a small state file, because a machine can stay far
//! for longer than one invocation lasts.

use crate::schema::Mode;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::PathBuf;

/// A round trip of at most this many times the smallest ever seen is near. The two modes
/// of the reference machine lie a factor of 4.6 apart, noise within one below 1.3.
pub const NEAR_FACTOR: f64 = 2.0;

/// Round trips right before and right after a sample, in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bracket {
    /// Before.
    pub before_ns: f64,
    /// After.
    pub after_ns: f64,
}

impl Bracket {
    /// The larger of the two.
    pub fn larger_ns(self) -> f64 {
        self.before_ns.max(self.after_ns)
    }
}

/// The mode of a sample: decided when all is measured, so that the smallest round trip of
/// the whole session counts.
///
/// ```
/// use corelay_lab::{measure::mode::{Bracket, tag}, schema::Mode};
/// let near = Bracket { before_ns: 110.0, after_ns: 123.0 };
/// let moved = Bracket { before_ns: 110.0, after_ns: 510.0 };
/// assert_eq!(tag(Some(near), Some(108.0)), Mode::Near);
/// assert_eq!(tag(Some(moved), Some(108.0)), Mode::Discarded);
/// assert_eq!(tag(None, None), Mode::Unknown);
/// ```
pub fn tag(bracket: Option<Bracket>, smallest_ns: Option<f64>) -> Mode {
    let (Some(bracket), Some(smallest)) = (bracket, smallest_ns) else {
        return Mode::Unknown;
    };
    let near = |ns: f64| ns <= NEAR_FACTOR * smallest;
    match (near(bracket.before_ns), near(bracket.after_ns)) {
        (true, true) => Mode::Near,
        (false, false) => Mode::Far,
        _ => Mode::Discarded,
    }
}

/// The smallest round trips ever seen, by machine and pair.
///
/// A file that is missing, foreign or unwritable is no error: the yardstick is then the
/// smallest round trip of this invocation.
#[derive(Debug)]
pub struct Memory {
    file: Option<PathBuf>,
    machine: String,
    seen: Seen,
}

#[derive(Debug, Default, Serialize, Deserialize)]
struct Seen {
    /// Machine → pair (`a-b`) → nanoseconds.
    smallest_rtt_ns: BTreeMap<String, BTreeMap<String, f64>>,
}

impl Memory {
    /// What is remembered about `machine`, from the user's state folder.
    pub fn open(machine: &str) -> Self {
        Self::open_at(state_file(), machine)
    }

    /// The same from a given file, or from nowhere.
    pub fn open_at(file: Option<PathBuf>, machine: &str) -> Self {
        let text = file.as_ref().and_then(|f| std::fs::read_to_string(f).ok());
        let seen = text
            .and_then(|t| serde_json::from_str(&t).ok())
            .unwrap_or_default();
        Self {
            file,
            machine: machine.to_owned(),
            seen,
        }
    }

    /// The smallest round trip of a pair so far, in nanoseconds.
    pub fn smallest(&self, pair: (usize, usize)) -> Option<f64> {
        let ns = *self
            .seen
            .smallest_rtt_ns
            .get(&self.machine)?
            .get(&key(pair))?;
        // A damaged file must not make every sample far for ever.
        (ns.is_finite() && ns >= 1.0).then_some(ns)
    }

    /// Takes a new reading into account and returns the smallest including it.
    pub fn learn(&mut self, pair: (usize, usize), ns: f64) -> Option<f64> {
        if ns.is_finite() && ns >= 1.0 && self.smallest(pair).is_none_or(|old| ns < old) {
            let pairs = self
                .seen
                .smallest_rtt_ns
                .entry(self.machine.clone())
                .or_default();
            pairs.insert(key(pair), ns);
        }
        self.smallest(pair)
    }

    /// Writes the file, if it can be written. What another invocation has learnt
    /// meanwhile is kept.
    pub fn save(&mut self) {
        let Some(file) = self.file.clone() else {
            return;
        };
        let theirs = Self::open_at(Some(file.clone()), &self.machine).seen;
        for (machine, pairs) in theirs.smallest_rtt_ns {
            let ours = self.seen.smallest_rtt_ns.entry(machine).or_default();
            for (pair, ns) in pairs {
                let kept = ours.entry(pair).or_insert(ns);
                *kept = kept.min(ns);
            }
        }
        let Ok(text) = serde_json::to_string_pretty(&self.seen) else {
            return;
        };
        let Some(folder) = file.parent() else { return };
        // Failing to remember costs the next invocation its yardstick, nothing else.
        let _ = std::fs::create_dir_all(folder)
            .and_then(|()| tempfile::NamedTempFile::new_in(folder))
            .and_then(|temp| std::fs::write(temp.path(), text).map(|()| temp))
            .and_then(|temp| temp.persist(&file).map_err(|e| e.error));
    }
}

fn key((a, b): (usize, usize)) -> String {
    format!("{}-{}", a.min(b), a.max(b))
}

/// `$XDG_STATE_HOME/corelay/rtt.json`, or the same under `~/.local/state`.
fn state_file() -> Option<PathBuf> {
    let absolute = |name| {
        std::env::var_os(name)
            .map(PathBuf::from)
            .filter(|p| p.is_absolute())
    };
    let folder =
        absolute("XDG_STATE_HOME").or_else(|| Some(absolute("HOME")?.join(".local/state")))?;
    Some(folder.join("corelay/rtt.json"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAIR: (usize, usize) = (1, 0);

    #[test]
    fn the_smallest_is_kept_between_invocations() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("deep/er/rtt.json");
        let mut first = Memory::open_at(Some(file.clone()), "m");
        assert_eq!(first.smallest(PAIR), None);
        assert_eq!(first.learn(PAIR, 120.0), Some(120.0));
        assert_eq!(first.learn(PAIR, 500.0), Some(120.0));
        // Another invocation saves something smaller in between.
        let mut second = Memory::open_at(Some(file.clone()), "m");
        second.learn((0, 1), 110.0);
        second.save();
        first.save();
        let mut third = Memory::open_at(Some(file.clone()), "m");
        assert_eq!(third.smallest(PAIR), Some(110.0));
        assert_eq!(third.learn(PAIR, 115.0), Some(110.0));
        assert_eq!(
            Memory::open_at(Some(file), "another machine").smallest(PAIR),
            None
        );
    }

    #[test]
    fn a_damaged_or_unwritable_file_is_no_error() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("rtt.json");
        std::fs::write(&file, r#"{"smallest_rtt_ns": {"m": {"0-1": -3}}}"#).unwrap();
        let mut memory = Memory::open_at(Some(file.clone()), "m");
        assert_eq!(memory.smallest(PAIR), None);
        assert_eq!(memory.learn(PAIR, 200.0), Some(200.0));
        std::fs::write(&file, "not json").unwrap();
        assert_eq!(
            Memory::open_at(Some(file.clone()), "m").smallest(PAIR),
            None
        );
        // A file where a folder should be.
        let mut memory = Memory::open_at(Some(file.join("rtt.json")), "m");
        memory.learn(PAIR, 1e3);
        memory.save();
        assert_eq!(memory.smallest(PAIR), Some(1e3));
    }

    #[test]
    fn probes_that_disagree_discard_the_sample() {
        let tag = |b, a| {
            tag(
                Some(Bracket {
                    before_ns: b,
                    after_ns: a,
                }),
                Some(100.0),
            )
        };
        assert_eq!(tag(200.0, 200.0), Mode::Near);
        assert_eq!(tag(201.0, 201.0), Mode::Far);
        assert_eq!(tag(201.0, 110.0), Mode::Discarded);
        assert_eq!(tag(110.0, 201.0), Mode::Discarded);
    }
}
