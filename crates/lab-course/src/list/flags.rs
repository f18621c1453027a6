//! The parts of the ladder in any combination, and what each of them gains with all else equal.
//!
//! The source switches its fixes by flags of the compiler, and adds one after the other. A fix may
//! gain little below the others and much beside them, so here each is also added and left out by
//! itself. A combination is a rung of the ladder whose other parts are switched off: each thread has
//! an equal share in the place of parts, or no bytes lie between the heads.

use super::climb::{Climb, Climbed, Point, Seconds};
use super::job::Pages;
use super::ladder::{PADDING, PARTS_OF_A_THREAD, usual};
use super::rungs::{self, Rung};
use super::size;
use super::words::compare;
use crate::list::show::efficiency;
use crate::shown::{Part as Piece, Shown};
use corelay_lab_measure::measure::rig::Rig;
use corelay_lab_measure::schema::Mode;
use corelay_lab_report::plot::significant;
use corelay_lab_report::table::grid::Grid;
use corelay_lab_report::words::{count, times};
use serde_json::json;
use std::cmp::Ordering;
use std::fmt;
use std::str::FromStr;

/// A part of the ladder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    Partitioned,
    Preallocated,
    Balanced,
    Padded,
}

/// Each part, with its letter in the source's names and its meaning.
const PARTS: [(Part, char, &str); 4] = [
    (Part::Partitioned, 'p', "a list for each thread"),
    (Part::Preallocated, 'm', "nodes made before"),
    (Part::Balanced, 'l', "keys in parts"),
    (Part::Padded, 'a', "room between the heads"),
];

/// A combination of parts of the ladder.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Flags {
    is_on: [bool; 4],
}

/// The name of the combination without any part, as the source has it.
const NONE: &str = "none";

impl Flags {
    fn has(self, part: Part) -> bool {
        self.is_on[part as usize]
    }

    /// Returns the combination with this part beside its own; `None` if it has it already.
    fn with(mut self, part: Part) -> Option<Self> {
        let is_new = !self.has(part);
        self.is_on[part as usize] = true;
        is_new.then_some(self)
    }

    fn rung(self) -> &'static Rung {
        let on_the_ladder = |name| rungs::named(name).expect("it is a rung");
        match (self.has(Part::Partitioned), self.has(Part::Preallocated)) {
            (true, true) => on_the_ladder("padded"),
            (true, false) => on_the_ladder("system"),
            (false, true) => &rungs::LOCKED_PREALLOCATED,
            (false, false) => &rungs::LOCKED,
        }
    }
}

impl FromStr for Flags {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut flags = Self::default();
        if text == NONE {
            return Ok(flags);
        }
        if text.is_empty() {
            return Err("a combination is missing; `none` has no part".to_owned());
        }
        for letter in text.chars() {
            let known = PARTS.iter().find(|(_, known, _)| *known == letter);
            let Some((part, ..)) = known else {
                return Err(format!(
                    "`{text}` has the letter `{letter}`; combine p, m, l and a, as in `pml`"
                ));
            };
            flags = flags
                .with(*part)
                .ok_or_else(|| format!("`{text}` has `{letter}` twice"))?;
        }
        match flags.has(Part::Padded) && !flags.has(Part::Partitioned) {
            true => Err(format!(
                "`{text}` has room between the heads (a) of one list; add p, so that there are several"
            )),
            false => Ok(flags),
        }
    }
}

/// Writes the letters of the parts, in the source's order.
impl fmt::Display for Flags {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let on = PARTS.iter().filter(|(part, ..)| self.has(*part));
        let name: String = on.map(|(_, letter, _)| *letter).collect();
        f.pad(if name.is_empty() { NONE } else { &name })
    }
}

/// The combinations to measure, and the size of the runs.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The combinations, in the order of the table.
    pub flags: Vec<Flags>,
    /// Numbers of threads, ascending.
    pub threads: Vec<usize>,
    /// Keys of each thread.
    pub share: usize,
    /// The length of a run in the place of a number of keys, if it is given.
    pub seconds: Option<Seconds>,
    /// The memory that is touched before the timed phase.
    pub pages: Pages,
    /// Samples of each point.
    pub rounds: usize,
}

/// The figures of the combinations.
#[derive(Debug)]
pub struct Combined {
    points: Vec<(Flags, Climbed)>,
    most: usize,
    mode: Mode,
    seconds: Option<Seconds>,
}

/// The gain of a part beside some others.
#[derive(Clone, Copy, Debug)]
struct Gain {
    part: Part,
    without: Flags,
    with: Flags,
    /// Throughput without the part, and with it.
    mops: (f64, f64),
}

impl Plan {
    /// Returns the largest number of threads.
    pub fn most(&self) -> usize {
        self.threads.iter().copied().max().unwrap_or(1)
    }

    /// Returns the number of runs that measuring takes, warm-up included.
    pub fn runs(&self) -> usize {
        let before = if self.seconds.is_some() { 2 } else { 1 };
        (self.rounds + before) * self.flags.len() * self.threads.len()
    }

    fn point(&self, flags: Flags, threads: usize) -> Point {
        Point {
            rung: flags.rung(),
            threads,
            share: self.share,
            parts: match flags.has(Part::Balanced) {
                true => PARTS_OF_A_THREAD * threads,
                false => threads,
            },
            equal_shares: !flags.has(Part::Balanced),
            padding: if flags.has(Part::Padded) { PADDING } else { 0 },
            pages: self.pages,
            neighbour: false,
            watched: false,
        }
    }

    /// Measures the combinations; `None` if an interrupt came before each point had a sample.
    pub fn measure(
        &self,
        rig: &mut Rig,
        cpus: &[Option<usize>],
        tick: impl FnMut(&str),
    ) -> Option<Combined> {
        let flags = self.flags.iter();
        let each = flags.flat_map(|&flags| self.threads.iter().map(move |&n| (flags, n)));
        let each: Vec<(Flags, usize)> = each.collect();
        let points = each.iter().map(|&(flags, n)| self.point(flags, n));
        let mut climb = Climb::new(points.collect(), cpus).lasting(self.seconds);
        if !climb.measure(rig, self.rounds, tick) {
            return None;
        }
        let mut all = climb.finish(rig);
        let mode = usual(&all);
        for (climbed, (flags, _)) in all.iter_mut().zip(&each) {
            climbed.run.workload += "-flags";
            climbed.run.method = flags.to_string();
        }
        Some(Combined {
            points: each.into_iter().map(|(flags, _)| flags).zip(all).collect(),
            most: self.most(),
            mode,
            seconds: self.seconds,
        })
    }
}

impl Combined {
    /// Writes the figures up like a step of the course.
    pub fn shown(self) -> Shown {
        let mut shown = Shown::new("list", "The parts of the ladder, each with and without");
        let first = self.points.first().map(|(_, climbed)| climbed);
        let parts = PARTS.map(|(_, letter, meaning)| format!("`{letter}`: {meaning}"));
        shown.parts = vec![
            Piece::Words(size::what(first, self.seconds, self.mode)),
            Piece::Words(format!(
                "The parts: {}. `none` has one list, one lock, and nodes from the system's allocator.",
                parts.join("; ")
            )),
            Piece::Table(self.table()),
        ];
        let runs = self.points.iter();
        let runs = runs.map(|(flags, climbed)| (flags.to_string(), climbed));
        let lengths = size::lengths(self.seconds, runs);
        shown.parts.extend(lengths.map(Piece::Table));
        let gains = self.gains();
        if !gains.is_empty() {
            shown
                .parts
                .push(Piece::Table(gains_table(&gains, self.most)));
        }
        shown.look_at = PARTS
            .iter()
            .filter_map(|part| sentence(*part, &gains))
            .collect();
        let all = || self.points.iter();
        let wrong = |(flags, climbed): &(Flags, Climbed)| {
            (!climbed.run.correct).then(|| format!("`{flags}`: {}", climbed.run.notes.join("; ")))
        };
        shown.wrong = all().filter_map(wrong).collect();
        let gain = |gain: &Gain| {
            json!({
                "part": PARTS[gain.part as usize].1,
                "without": gain.without.to_string(),
                "with": gain.with.to_string(),
                "gain": gain.mops.1 / gain.mops.0,
            })
        };
        let told: Vec<_> = gains.iter().map(gain).collect();
        shown.figures = json!({ "mode": self.mode, "gains": told });
        shown.runs = all().map(|(_, climbed)| climbed.run.clone()).collect();
        shown
    }

    fn mops(&self, flags: Flags, threads: usize) -> Option<f64> {
        let mut points = self.points.iter();
        let of = points.find(|(own, c)| *own == flags && c.point.threads == threads)?;
        of.1.mops(self.mode)
    }

    fn table(&self) -> Grid {
        let mut threads: Vec<usize> = self.points.iter().map(|(_, c)| c.point.threads).collect();
        threads.sort_unstable();
        threads.dedup();
        let mut flags: Vec<Flags> = self.points.iter().map(|(flags, _)| *flags).collect();
        flags.dedup();
        let on = |n: &usize| format!("Mops, {}", count(*n as u64, "thread", "threads"));
        let mut head = vec!["parts".to_owned()];
        head.extend(threads.iter().map(on));
        head.extend(["speed-up", "efficiency"].map(str::to_owned));
        let row = |flags: &Flags| {
            let mops = |n| self.mops(*flags, n);
            let or = |text: Option<String>| text.unwrap_or_else(|| "–".to_owned());
            let both = mops(self.most).zip(mops(1)).filter(|_| self.most > 1);
            let speed_up = both.map(|(all, one)| all / one);
            let mut row = vec![flags.to_string()];
            row.extend(threads.iter().map(|&n| or(mops(n).map(significant))));
            row.push(or(speed_up.map(times)));
            row.push(or(speed_up.map(|s| efficiency(s, self.most))));
            row
        };
        Grid {
            title: "Keys inserted per microsecond (Mops), by the parts that are switched on"
                .to_owned(),
            head,
            rows: flags.iter().map(row).collect(),
        }
    }

    /// Returns the gain of each part beside the others, with the most threads.
    fn gains(&self) -> Vec<Gain> {
        let mut gains = Vec::new();
        for (part, ..) in PARTS {
            for &(without, ref climbed) in &self.points {
                let gain = |with: Flags| {
                    let mops = self.mops(without, self.most)?;
                    Some(Gain {
                        part,
                        without,
                        with,
                        mops: (mops, self.mops(with, self.most)?),
                    })
                };
                let is_most = climbed.point.threads == self.most;
                let with = without.with(part).filter(|_| is_most);
                gains.extend(with.and_then(gain));
            }
        }
        gains
    }
}

fn gains_table(gains: &[Gain], most: usize) -> Grid {
    let row = |gain: &Gain| {
        let (_, letter, meaning) = PARTS[gain.part as usize];
        vec![
            format!("{letter}: {meaning}"),
            gain.without.to_string(),
            gain.with.to_string(),
            significant(gain.mops.0),
            significant(gain.mops.1),
            times(gain.mops.1 / gain.mops.0),
        ]
    };
    Grid {
        title: format!(
            "Each part with all else equal, {}",
            count(most as u64, "thread", "threads")
        ),
        head: [
            "part",
            "without",
            "with",
            "Mops without",
            "Mops with",
            "gain",
        ]
        .map(str::to_owned)
        .to_vec(),
        rows: gains.iter().map(row).collect(),
    }
}

/// Says what a part gains if it is the first beside `p`, and if it is the last; `None` if that was
/// not measured.
fn sentence((part, letter, meaning): (Part, char, &str), gains: &[Gain]) -> Option<String> {
    let own = || gains.iter().filter(|gain| gain.part == part);
    let ratio = |gain: &Gain| gain.mops.1 / gain.mops.0;
    let first = own()
        .find(|gain| gain.without.to_string() == "p")
        .map(ratio)?;
    let last = own()
        .find(|gain| gain.with.to_string() == "pmla")
        .map(ratio)?;
    let what = match (compare(first, 1.0), compare(last, 1.0)) {
        (Ordering::Greater, Ordering::Greater) => "It gains in both places.",
        (Ordering::Equal, Ordering::Greater) => {
            "By itself it gains nothing: what it mends shows only when the other parts are there."
        }
        (Ordering::Greater, Ordering::Equal) => {
            "It gains by itself; beside all the others it makes no difference."
        }
        (Ordering::Equal, Ordering::Equal) => "It makes no difference here.",
        (Ordering::Less, Ordering::Greater) => {
            "It costs by itself and gains beside the others: the order of the fixes matters."
        }
        (Ordering::Greater, Ordering::Less) => {
            "It gains by itself and costs beside the others: the order of the fixes matters."
        }
        (Ordering::Less, _) | (_, Ordering::Less) => "It costs here more than it gains.",
    };
    Some(format!(
        "`{letter}` ({meaning}): added to `p`, it makes the program {} as fast; added last, to the others of \
         `pmla`, {}. {what}",
        times(first),
        times(last)
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    fn flags(text: &str) -> Flags {
        text.parse().unwrap()
    }

    /// Every combination that there is.
    fn all() -> Vec<Flags> {
        let any = (0..16_u8).map(|bits| Flags {
            is_on: std::array::from_fn(|part| bits >> part & 1 == 1),
        });
        any.filter(|flags| flags.to_string().parse() == Ok(*flags))
            .collect()
    }

    #[test]
    fn letters_come_in_any_order_and_are_named_if_wrong() {
        for (text, name) in [("none", "none"), ("p", "p"), ("amlp", "pmla"), ("lm", "ml")] {
            assert_eq!(flags(text).to_string(), name);
        }
        assert_eq!(all().len(), 12);
        for (text, word) in [
            ("", "missing"),
            ("px", "`x`"),
            ("pp", "twice"),
            ("ma", "add p"),
            ("NONE", "`N`"),
        ] {
            let error = text.parse::<Flags>().unwrap_err();
            assert!(error.contains(word), "{text}: {error}");
        }
    }

    fn measured(pages: Pages) -> Combined {
        let plan = Plan {
            flags: all(),
            threads: vec![1, 3],
            share: 1_000,
            seconds: None,
            pages,
            rounds: 1,
        };
        let mut rig = Rig::new(&[None; 3], &[], "test", Arc::default()).unwrap();
        plan.measure(&mut rig, &[None; 3], |_| {}).unwrap()
    }

    #[test]
    fn each_combination_is_right_and_has_equal_shares_unless_balanced() {
        for pages in [Pages::Touched, Pages::Untouched, Pages::Recycled] {
            let combined = measured(pages);
            assert_eq!(combined.points.len(), 24);
            for (flags, climbed) in &combined.points {
                assert!(climbed.run.correct, "{flags}: {:?}", climbed.run.notes);
                assert_eq!(climbed.run.method, flags.to_string());
                for (_, run) in &climbed.ended {
                    assert_eq!(run.laps.len(), climbed.point.threads);
                    let is_equal =
                        |lap: &crate::list::job::Lap| (lap.keys, lap.parts) == (1_000, 1);
                    let balanced = flags.has(Part::Balanced);
                    assert!(balanced || run.laps.iter().all(is_equal), "{flags}");
                }
            }
            let shown = combined.shown();
            // Each of m and l is added to 6 combinations; p to 4, and a to those 4 that have p.
            assert_eq!(
                shown.figures["gains"].as_array().unwrap().len(),
                6 + 6 + 4 + 4
            );
            assert_eq!(shown.look_at.len(), 3, "{:?}", shown.look_at);
        }
    }

    #[test]
    fn a_sentence_says_what_the_gains_say() {
        let told = |first: f64, last: f64| {
            let gain = |without, with, ratio| Gain {
                part: Part::Padded,
                without: flags(without),
                with: flags(with),
                mops: (100.0, 100.0 * ratio),
            };
            sentence(
                PARTS[3],
                &[gain("p", "pa", first), gain("pml", "pmla", last)],
            )
            .unwrap()
        };
        for (first, last, word) in [
            (2.0, 3.0, "in both places"),
            (1.0, 3.0, "By itself it gains nothing"),
            (3.0, 1.0, "makes no difference."),
            (1.0, 1.0, "no difference here"),
            (0.5, 2.0, "costs by itself"),
            (2.0, 0.5, "costs beside"),
            (0.5, 0.5, "costs here more"),
            (1.0, 0.5, "costs here more"),
        ] {
            let text = told(first, last);
            assert!(text.contains(word), "{first}, {last}: {text}");
        }
        assert!(told(1.0, 3.0).contains("1.0"), "{}", told(1.0, 3.0));
        assert_eq!(sentence(PARTS[1], &[]), None);
    }
}
