//! The verdict on overlaid results: which file is faster with which method, where, and by how
//! much.
//!
//! Each point of a line is judged by itself. A file leads there if its quartiles lie apart from
//! those of the next best file and its median is at least `LEAST` times as good. Points of fewer
//! than `MIN_SAMPLES` samples are not judged, nor counters, of which neither more nor less is
//! better.

use super::chart::Point;
use super::lay::{MergedLine, Overlay, Overlays};
use crate::figure::quantity::Better;
use crate::method;
use crate::plot::short_count;
use crate::verdict::{MIN_SAMPLES, Need};
use crate::words::{self, and, code, count, times};
use corelay_lab_measure::measure::stats::quantile;
use std::cmp::{Ordering, Reverse};

/// Least ratio of two medians that counts as a difference.
const LEAST: f64 = 1.05;

/// Share of the points at which two runs of one program on one machine were called different:
/// between 4 and 6 % of 276 to 296 points of `corelay compare` on two virtual CPUs.
const BY_CHANCE: f64 = 0.06;

/// The verdict on overlaid results.
#[derive(Clone, Debug, Default)]
pub struct Verdict {
    /// The answer, over all pictures.
    pub headline: String,
    /// The subject of each picture that is judged, with sentences about it.
    pub pictures: Vec<(String, Vec<String>)>,
}

/// Explains how differences were judged.
pub fn reading() -> String {
    format!(
        "A file counts as faster at a point if its quartiles lie apart from the others' and its \
         median is at least {:.0} % better. Points of fewer than {MIN_SAMPLES} samples are not \
         judged. Repeat both runs before you rely on a small difference.",
        100.0 * (LEAST - 1.0)
    )
}

/// The leader of the files at a point of a line.
#[derive(Clone, Copy)]
struct Lead {
    x: f64,
    /// The leading file and how many times as good it is as the next one; `None` if there is no
    /// measurable difference.
    file: Option<(usize, f64)>,
}

impl Overlays {
    /// Judges all pictures.
    pub fn verdict(&self) -> Verdict {
        let judged = self.overlays.iter().filter(|overlay| overlay.is_judged());
        if let [file] = &*self.files {
            let pictures = judged.map(|overlay| (overlay.title(), overlay.fastest()));
            let pictures = pictures.filter(|(_, sentences)| !sentences.is_empty());
            return Verdict {
                headline: format!(
                    "One file alone, {}: the verdict is between its methods.",
                    file.letter
                ),
                pictures: pictures.collect(),
            };
        }
        let letter = |file: usize| self.files[file].letter;
        let mut all: Vec<Lead> = Vec::new();
        let mut pictures = Vec::new();
        for overlay in judged {
            let leads: Vec<(&MergedLine, Vec<Lead>)> = overlay
                .lines
                .iter()
                .map(|line| (line, line.leads(overlay.key.better)))
                .collect();
            all.extend(leads.iter().flat_map(|(_, leads)| leads));
            pictures.push((overlay.title(), sentences(&leads, &letter)));
        }
        Verdict {
            headline: self.headline(&all),
            pictures,
        }
    }

    /// Sums up all points.
    fn headline(&self, all: &[Lead]) -> String {
        let letters: Vec<String> = self.files.iter().map(|f| f.letter.to_string()).collect();
        let points = count(all.len() as u64, "point", "points");
        let apart = all.iter().filter(|lead| lead.file.is_some()).count();
        if all.is_empty() {
            return "The files share no point at which one could be called faster.".to_owned();
        }
        if apart == 0 {
            return format!(
                "No measurable difference between {} at any of {points}.",
                and(&letters)
            );
        }
        let mut parts = Vec::new();
        for (file, letter) in letters.iter().enumerate() {
            let ahead = all.iter().filter_map(|lead| lead.file);
            let ahead: Vec<f64> = ahead.filter(|(f, _)| *f == file).map(|(_, r)| r).collect();
            let most = ahead.iter().copied().fold(1.0, f64::max);
            let Some(middle) = quantile(&ahead, 0.5) else {
                continue;
            };
            let by = match ahead.len() {
                1 => times(most),
                _ => format!("{} in the median, {} at most", times(middle), times(most)),
            };
            parts.push((
                ahead.len(),
                format!("{letter} is faster at {} ({by})", ahead.len()),
            ));
        }
        parts.sort_by_key(|(n, _)| Reverse(*n));
        let mut parts: Vec<String> = parts.into_iter().map(|(_, part)| part).collect();
        if apart < all.len() {
            let level = all.len() - apart;
            parts.push(format!("no difference can be measured at {level}"));
        }
        let chance = if (apart as f64) <= BY_CHANCE * all.len() as f64 {
            " Two runs of one program differ at as many."
        } else {
            ""
        };
        format!("Of {points}, {}.{chance}", and(&parts))
    }
}

impl Overlay {
    /// Whether one file can be called better than another here.
    fn is_judged(&self) -> bool {
        let same_mode = self.modes.iter().all(|mode| *mode == self.modes[0]);
        self.key.better != Better::Neither && same_mode
    }

    /// Names the fastest methods of a single file, for each need; without regard to needs, if the
    /// lines are no methods.
    fn fastest(&self) -> Vec<String> {
        let is_known = |line: &&MergedLine| method::find(line.method()).is_some();
        let all: Vec<&MergedLine> = self.lines.iter().collect();
        if !self.lines.iter().any(|line| is_known(&line)) {
            return self.fastest_of(&all, "Fastest").into_iter().collect();
        }
        let mut said: Vec<String> = Vec::new();
        for need in [Need::AnswerNow, Need::AnswerLater, Need::NoAnswer] {
            let fits = need.candidates();
            let lines = self
                .lines
                .iter()
                .filter(|line| fits.contains(&line.method()));
            said.extend(self.fastest_of(
                &lines.collect::<Vec<_>>(),
                &format!("Fastest for {}", need.words()),
            ));
        }
        said
    }

    /// Names the best of `lines` at each place.
    fn fastest_of(&self, lines: &[&MergedLine], about: &str) -> Option<String> {
        // The lines take the part of files.
        let merged = MergedLine {
            label: String::new(),
            files: lines.iter().map(|line| line.files[0].clone()).collect(),
        };
        let xs = merged.xs();
        let best = |x: &f64| {
            let places = merged.at(*x);
            let better = self.key.better;
            let (first, point) = places.iter().max_by(|a, b| better.order(a.1.y, b.1.y))?;
            let level = places
                .iter()
                .filter(|(n, other)| n != first && better.lead(*point, *other).is_none());
            Some((lines[*first].label.as_str(), level.count()))
        };
        let mut parts: Vec<(&str, Vec<f64>, usize)> = Vec::new();
        for (x, (name, level)) in xs.iter().filter_map(|x| Some((*x, best(x)?))) {
            match parts.iter_mut().find(|(known, ..)| *known == name) {
                Some((_, at, most)) => {
                    at.push(x);
                    *most = level.max(*most);
                }
                None => parts.push((name, vec![x], level)),
            }
        }
        let part = |(name, at, level): &(&str, Vec<f64>, usize)| {
            let others = match level {
                0 => String::new(),
                n => format!(", level with up to {}", count(*n as u64, "other", "others")),
            };
            format!("{} {}{others}", code(name), places(at, &xs))
        };
        let parts: Vec<String> = parts.iter().map(part).collect();
        (!parts.is_empty()).then(|| format!("{about}: {}.", parts.join("; ")))
    }
}

impl MergedLine {
    /// Returns the method of the line, without the parameters of a variant.
    fn method(&self) -> &str {
        self.label.split(',').next().unwrap_or_default()
    }

    /// Returns all places, in order.
    fn xs(&self) -> Vec<f64> {
        let mut xs: Vec<f64> = self.files.iter().flatten().map(|p| p.x).collect();
        xs.sort_by(f64::total_cmp);
        xs.dedup();
        xs
    }

    /// Returns the points at x that can be judged, with the numbers of their files.
    fn at(&self, x: f64) -> Vec<(usize, Point)> {
        let fits = |p: &&Point| p.x == x && p.n >= MIN_SAMPLES;
        let point = |points: &Vec<Point>| points.iter().find(fits).copied();
        let files = self.files.iter().enumerate();
        files
            .filter_map(|(file, points)| Some((file, point(points)?)))
            .collect()
    }

    /// Finds the leading file at each place that at least two files have.
    fn leads(&self, better: Better) -> Vec<Lead> {
        let lead = |x: f64| {
            let mut places = self.at(x);
            // The best first.
            places.sort_by(|a, b| better.order(b.1.y, a.1.y));
            let [(file, best), (_, next), ..] = *places else {
                return None;
            };
            let ratio = better.lead(best, next);
            Some(Lead {
                x,
                file: ratio.map(|ratio| (file, ratio)),
            })
        };
        self.xs().into_iter().filter_map(lead).collect()
    }
}

impl Better {
    /// Orders two values, the worse one first.
    fn order(self, a: f64, b: f64) -> Ordering {
        match self {
            Self::Lower => b.total_cmp(&a),
            Self::Higher | Self::Neither => a.total_cmp(&b),
        }
    }

    /// Returns how many times as good as `next` the value is.
    fn factor(self, value: f64, next: f64) -> f64 {
        match self {
            Self::Lower => next / value,
            Self::Higher | Self::Neither => value / next,
        }
    }

    /// Returns how many times as good as `next` the best point is; `None` if the difference cannot
    /// be measured.
    fn lead(self, best: Point, next: Point) -> Option<f64> {
        let ratio = self.factor(best.y, next.y);
        let is_apart = best.spread.0 > next.spread.1 || best.spread.1 < next.spread.0;
        (is_apart && ratio >= LEAST && ratio.is_finite()).then_some(ratio)
    }
}

/// Says for each file with which lines it leads, and which lines show no difference.
fn sentences(leads: &[(&MergedLine, Vec<Lead>)], letter: &impl Fn(usize) -> char) -> Vec<String> {
    let files = leads.first().map_or(0, |(line, _)| line.files.len());
    let mut said = Vec::new();
    for file in 0..files {
        let mut lines: Vec<(f64, String)> = Vec::new();
        for (line, leads) in leads {
            let ahead = leads.iter().filter_map(|lead| {
                let (leader, ratio) = lead.file?;
                (leader == file).then_some((lead.x, ratio))
            });
            let (at, ratios): (Vec<f64>, Vec<f64>) = ahead.unzip();
            let most = ratios.iter().copied().fold(0.0, f64::max);
            let least = ratios.iter().copied().fold(f64::INFINITY, f64::min);
            if at.is_empty() {
                continue;
            }
            let all: Vec<f64> = leads.iter().map(|lead| lead.x).collect();
            let by = match words::ratio_digits(least) == words::ratio_digits(most) {
                true => times(most),
                false => format!("{} to {}", words::ratio_digits(least), times(most)),
            };
            let words = format!("{} {} ({by})", code(&line.label), places(&at, &all));
            lines.push((most, words));
        }
        lines.sort_by(|a, b| b.0.total_cmp(&a.0));
        let lines: Vec<String> = lines.into_iter().map(|(_, words)| words).collect();
        if !lines.is_empty() {
            said.push(format!(
                "{} is faster with {}.",
                letter(file),
                lines.join("; ")
            ));
        }
    }
    let level = leads
        .iter()
        .filter(|(_, leads)| !leads.is_empty() && leads.iter().all(|lead| lead.file.is_none()));
    let level: Vec<String> = level.map(|(line, _)| code(&line.label)).collect();
    if !level.is_empty() {
        said.push(format!("No measurable difference with {}.", and(&level)));
    }
    let alone = leads.iter().filter(|(_, leads)| leads.is_empty());
    let alone: Vec<String> = alone.map(|(line, _)| code(&line.label)).collect();
    if alone.len() == leads.len() {
        said.push("Not judged: too few samples, or lines of one file only.".to_owned());
    } else if !alone.is_empty() {
        said.push(format!(
            "Not judged, because of too few samples or in one file only: {}.",
            and(&alone)
        ));
    }
    said
}

/// Formats places of a line: `everywhere`, `at 1–64 and 4 Ki`. Neighbours among `all` become
/// ranges.
fn places(at: &[f64], all: &[f64]) -> String {
    if at.len() == all.len() && all.len() > 1 {
        return "everywhere".to_owned();
    }
    let index = |x: &f64| all.iter().position(|other| other == x).unwrap_or(0);
    let mut ranges: Vec<(usize, usize)> = Vec::new();
    for i in at.iter().map(index) {
        match ranges.last_mut() {
            Some((_, end)) if *end + 1 == i => *end = i,
            _ => ranges.push((i, i)),
        }
    }
    let word = |(from, to): &(usize, usize)| match from == to {
        true => short_count(all[*from]),
        false => format!("{} to {}", short_count(all[*from]), short_count(all[*to])),
    };
    format!("at {}", and(&ranges.iter().map(word).collect::<Vec<_>>()))
}
