//! Harmonic means that lie outside the quartiles beside them, and the reason in a sentence.
//!
//! A harmonic mean of throughput counts the time of each operation, so one slow sample among many
//! weighs as much as it took. Quartiles do not see it. A reader who is not told of it takes the two
//! for a mistake.

use crate::plot::significant;
use corelay_lab_measure::schema::{Mode, Run};

/// The sign of a mean outside its quartiles, in a table.
pub(crate) const SIGN: &str = "†";

/// The side of the quartiles on which a harmonic mean of throughput lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Outside {
    /// The mean is slower than the slower quartile.
    Slower,
    /// The mean is faster than the faster quartile.
    Faster,
}

impl Outside {
    /// Places a mean of throughput beside quartiles. Compares them as they are shown, so that
    /// rounding errors of equal samples do not count.
    pub(crate) fn of(mean: f64, (low, high): (f64, f64)) -> Option<Self> {
        let differs = |bound: f64| significant(bound) != significant(mean);
        match mean {
            mean if mean < low && differs(low) => Some(Self::Slower),
            mean if mean > high && differs(high) => Some(Self::Faster),
            _ => None,
        }
    }

    /// Places a run's mean over all kept samples beside the quartiles of all its modes.
    pub(crate) fn of_run(run: &Run) -> Option<Self> {
        let kept = run.by_mode.iter();
        let kept = kept.filter(|(mode, summary)| **mode != Mode::Discarded && summary.n > 0);
        let (low, high) = kept.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), (_, s)| {
            (low.min(s.q1_mops), high.max(s.q3_mops))
        });
        // Without quartiles there is nothing to lie outside of.
        let has_both = run.correct && low <= high && run.harmonic_mean_mops > 0.0;
        has_both.then(|| Self::of(run.harmonic_mean_mops, (low, high)))?
    }

    /// Returns the reason.
    pub(crate) fn why(self) -> &'static str {
        match self {
            Self::Slower => "a harmonic mean is pulled down by a few slow samples",
            Self::Faster => "a few fast samples pull the mean up",
        }
    }

    /// Explains the sign of a table in which means of these kinds occur; `None` without any.
    pub(crate) fn footnote(kinds: impl IntoIterator<Item = Self>) -> Option<String> {
        let mut kinds: Vec<Self> = kinds.into_iter().collect();
        kinds.sort();
        kinds.dedup();
        let why: Vec<&str> = kinds.iter().map(|kind| kind.why()).collect();
        let why = why.join(", or ");
        (!kinds.is_empty())
            .then(|| format!("{SIGN} The harmonic mean lies outside the quartiles: {why}."))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_mean_shown_outside_its_quartiles_counts() {
        assert_eq!(Outside::of(3.0, (4.0, 5.0)), Some(Outside::Slower));
        assert_eq!(Outside::of(6.0, (4.0, 5.0)), Some(Outside::Faster));
        for mean in [4.0, 4.5, 5.0, 4.0 - 1e-12, 5.0 + 1e-12] {
            assert_eq!(Outside::of(mean, (4.0, 5.0)), None);
        }
        assert_eq!(Outside::footnote([]), None);
        let both = [Outside::Faster, Outside::Slower, Outside::Faster];
        let said = Outside::footnote(both).unwrap();
        assert_eq!(said.matches("slow samples").count(), 1);
        assert_eq!(said.matches("fast samples").count(), 1);
    }
}
