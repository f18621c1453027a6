//! The ledger of a run: every target that was judged, for the table and the pictures at its end.

use crate::reach::{Bound, Judgement};
use corelay_lab_measure::measure::stats::Interval;
use corelay_lab_report::words;
use std::cell::RefCell;
use std::rc::Rc;

/// A target that was judged.
#[derive(Clone, Debug)]
pub(super) struct Row {
    pub(super) area: &'static str,
    /// The point at which it was measured; empty if the area has one point.
    pub(super) at: String,
    pub(super) what: String,
    /// `near` or `far`; empty if the mode does not matter.
    pub(super) mode: &'static str,
    pub(super) bound: Bound,
    /// The measured value; `None` if there were too few blocks of the mode.
    pub(super) value: Option<Interval>,
    /// The unit of value and bound; empty for a ratio.
    pub(super) unit: &'static str,
}

/// The rows of a run, in the order in which they were judged.
#[derive(Clone, Debug, Default)]
pub(super) struct Ledger(Rc<RefCell<Pages>>);

#[derive(Debug, Default)]
struct Pages {
    area: &'static str,
    at: String,
    rows: Vec<Row>,
}

impl Ledger {
    /// Begins an area.
    pub(super) fn begin(&self, area: &'static str) {
        let mut pages = self.0.borrow_mut();
        pages.area = area;
        pages.at.clear();
    }

    /// Says at which point the next rows were measured.
    pub(super) fn at(&self, point: &str) {
        point.clone_into(&mut self.0.borrow_mut().at);
    }

    /// Adds judgements.
    pub(super) fn judged(&self, judgements: &[Judgement]) {
        for judged in judgements {
            self.add(
                judged.what,
                words::mode(judged.mode),
                judged.bound,
                judged.ratio,
                "",
            );
        }
    }

    /// Adds a target that is not a ratio, or not of a mode.
    pub(super) fn single(&self, what: &str, bound: Bound, value: f64, unit: &'static str) {
        let value = Interval {
            low: value,
            ratio: value,
            high: value,
        };
        self.add(what, "", bound, Some(value), unit);
    }

    fn add(
        &self,
        what: &str,
        mode: &'static str,
        bound: Bound,
        value: Option<Interval>,
        unit: &'static str,
    ) {
        let mut pages = self.0.borrow_mut();
        let row = Row {
            area: pages.area,
            at: pages.at.clone(),
            what: what.to_owned(),
            mode,
            bound,
            value,
            unit,
        };
        pages.rows.push(row);
    }

    /// The rows of an area.
    pub(super) fn rows(&self, area: &str) -> Vec<Row> {
        let pages = self.0.borrow();
        let of_area = pages.rows.iter().filter(|row| row.area == area);
        of_area.cloned().collect()
    }
}

impl Row {
    /// Whether the target is met; `None` if it was not seen.
    pub(super) fn is_met(&self) -> Option<bool> {
        self.value.map(|value| self.bound.is_met_by(value))
    }

    /// The value by its bound, so that more is better and 1 is the bound.
    pub(super) fn score(&self) -> Option<Interval> {
        let Interval { low, ratio, high } = self.value?;
        Some(match self.bound {
            Bound::AtLeast(least) => Interval {
                low: low / least,
                ratio: ratio / least,
                high: high / least,
            },
            Bound::AtMost(most) => Interval {
                low: most / high,
                ratio: most / ratio,
                high: most / low,
            },
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use corelay_lab_measure::schema::Mode;

    #[test]
    fn rows_are_kept_by_area_and_scored_alike() {
        let ledger = Ledger::default();
        ledger.begin("flat");
        ledger.at("2 threads");
        let judged = |bound, ratio| Judgement {
            what: "a / b",
            mode: Mode::Far,
            bound,
            ratio,
            blocks: 30,
            best: None,
        };
        let value = |low, ratio, high| Some(Interval { low, ratio, high });
        ledger.judged(&[
            judged(Bound::AtLeast(2.0), value(1.0, 3.0, 4.0)),
            judged(Bound::AtMost(2.0), value(0.5, 1.0, 2.0)),
            judged(Bound::AtMost(2.0), None),
        ]);
        ledger.begin("store");
        ledger.single("aborts", Bound::AtMost(0.1), 0.05, "");
        let flat = ledger.rows("flat");
        let met: Vec<_> = flat.iter().map(Row::is_met).collect();
        assert_eq!(met, [Some(false), Some(true), None]);
        assert_eq!((flat[0].at.as_str(), flat[0].mode), ("2 threads", "far"));
        let score = |row: &Row| row.score().map(|s| (s.low, s.ratio, s.high));
        assert_eq!(score(&flat[0]), Some((0.5, 1.5, 2.0)));
        assert_eq!(score(&flat[1]), Some((1.0, 2.0, 4.0)));
        assert_eq!(score(&flat[2]), None);
        let store = &ledger.rows("store")[0];
        assert_eq!((store.at.as_str(), store.is_met()), ("", Some(true)));
    }
}
