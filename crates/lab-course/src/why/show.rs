//! The output of `why`: tables, the stacked bar, and sentences about the figures.

use super::Watched;
use super::split::Split;
use crate::guess::Question;
use crate::list::climb::Climbed;
use crate::list::job::Ended;
use crate::list::show::efficiency;
use crate::list::usage::Usage;
use crate::printed::{self, Printed};
use crate::shown::{Guess, Part, Picture, Shown};
use corelay_lab_measure::measure::counters::Counters;
use corelay_lab_measure::measure::stats::median;
use corelay_lab_measure::schema::Mode;
use corelay_lab_report::plot::{StackPlot, grouped, percent, significant};
use corelay_lab_report::table::grid::Grid;
use corelay_lab_report::words::{count, times};
use serde_json::json;

/// The question that is asked before the step.
pub const QUESTION: Question = Question {
    text: "Each thread has its own list and asks the system's allocator for its nodes (`partitioned`): \
           how much of the threads' time goes into allocation and page faults?",
    unit: "%",
};

const WIDTH: f64 = 860.0;

impl Watched {
    /// Writes the watched runs up as a step of the course.
    pub fn shown(self, mut guess: Guess) -> Shown {
        let splits = self.splits();
        let of = |name: &str| {
            splits
                .iter()
                .find(|(known, _)| *known == name)
                .map(|(_, s)| *s)
        };
        guess.measured = of("partitioned").map(|split| 100.0 * split.nodes / split.whole());
        let mut shown = Shown::new("why", "Why it does not scale: where the threads' time goes");
        shown.parts.push(Part::Words(
            "The rungs of the ladder again, watched: waiting for locks and the making of nodes are \
             timed (one node in 37), and the kernel is asked what it has counted. The rest of \
             a thread's time for a key, as far as a lone thread needs less, went into cache lines that \
             another core had taken: falsely shared ones, or those that the rung shares on purpose, \
             such as the head of the one list."
                .to_owned(),
        ));
        shown.parts.push(Part::Table(self.figures()));
        shown.parts.push(Part::Table(split_table(&splits)));
        shown.parts.push(Part::Picture(picture(&splits)));
        shown.parts.push(Part::Table(self.counts()));
        if let Err(why) = Counters::misses() {
            shown.parts.push(Part::Words(format!(
                "Cache misses: unavailable ({why}). Lines taken by other cores can be timed here, not \
                 counted."
            )));
        }
        let share = of("partitioned").map(|split| split.nodes / split.whole());
        let printed: Vec<Printed> = share.map(printed::allocation).into_iter().collect();
        shown
            .parts
            .extend(printed::table(&printed).map(Part::Table));
        shown.look_at = self.look_at(&splits);
        shown
            .look_at
            .extend(printed.iter().map(|printed| printed.sentence.clone()));
        let wrong = |c: &Climbed| format!("`{}`: {}", c.point.rung.name, c.run.notes.join("; "));
        let all = || self.rungs.iter().flatten();
        shown.wrong = all().filter(|c| !c.run.correct).map(wrong).collect();
        let split = |(name, split): &(&str, Split)| ((*name).to_owned(), json!(split));
        let splits: serde_json::Map<_, _> = splits.iter().map(split).collect();
        shown.figures = json!({
            "mode": self.mode,
            "ns_of_a_thread_per_key": splits,
            "printed": printed,
        });
        shown.guess = Some(guess);
        shown.runs = all().map(|climbed| climbed.run.clone()).collect();
        shown
    }

    fn splits(&self) -> Vec<(&'static str, Split)> {
        let split = |[alone, together]: &[Climbed; 2]| {
            let (alone, together) = (middle(alone, self.mode)?, middle(together, self.mode)?);
            Some(Split::of(together, alone))
        };
        let each = self.rungs.iter();
        each.filter_map(|both| Some((both[0].point.rung.name, split(both)?)))
            .collect()
    }

    fn threads(&self) -> usize {
        self.rungs.first().map_or(1, |both| both[1].point.threads)
    }

    /// Makes the table of throughput, speed-up, efficiency and spread.
    fn figures(&self) -> Grid {
        let threads = self.threads();
        let row = |[alone, together]: &[Climbed; 2]| {
            let (one, all) = (alone.best(self.mode), together.best(self.mode));
            let speed_up = one
                .zip(all)
                .map(|(one, all)| all.median_mops / one.median_mops);
            let spread = all.map(|s| (s.q3_mops - s.q1_mops) / s.median_mops);
            let or = |text: Option<String>| text.unwrap_or_else(|| "–".to_owned());
            vec![
                alone.point.rung.name.to_owned(),
                or(one.map(|s| significant(s.median_mops))),
                or(all.map(|s| significant(s.median_mops))),
                or(speed_up.map(times)),
                or(speed_up.map(|s| efficiency(s, threads))),
                or(spread.map(percent)),
            ]
        };
        let on = |n: usize| format!("Mops, {}", count(n as u64, "thread", "threads"));
        Grid {
            title: "Watched, and so a little slower than in the ladder".to_owned(),
            head: vec![
                "rung".to_owned(),
                on(1),
                on(threads),
                "speed-up".to_owned(),
                "efficiency".to_owned(),
                "spread".to_owned(),
            ],
            rows: self.rungs.iter().map(row).collect(),
        }
    }

    /// Makes the table of the kernel's counts, and of the processor's if there are any.
    fn counts(&self) -> Grid {
        let row = |[_, together]: &[Climbed; 2]| {
            let mut row = vec![together.point.rung.name.to_owned()];
            let Some(run) = middle(together, self.mode) else {
                row.extend(std::iter::repeat_n("–".to_owned(), 7));
                return row;
            };
            let unavailable = || "unavailable".to_owned();
            let usage = run
                .laps
                .iter()
                .map(|lap| lap.usage)
                .collect::<Option<Vec<Usage>>>();
            let usage = usage.map(|all| {
                let mut sum = Usage::default();
                all.into_iter().for_each(|own| sum += own);
                sum
            });
            let of = |n: fn(Usage) -> u64| usage.map_or_else(unavailable, |sum| grouped(n(sum)));
            row.push(of(|sum| sum.minor_faults));
            row.push(of(|sum| sum.major_faults));
            row.push(of(|sum| sum.voluntary));
            row.push(of(|sum| sum.involuntary));
            let waited: f64 = run.laps.iter().map(|lap| lap.waited.as_secs_f64()).sum();
            row.push(significant(1e3 * waited));
            row.push(significant(1e3 * gap(run)));
            let misses: Option<Vec<u64>> = run.laps.iter().map(|lap| lap.misses).collect();
            row.push(misses.map_or_else(unavailable, |all| grouped(all.iter().sum())));
            row
        };
        Grid {
            title: format!(
                "Counted in the middle run with {}",
                count(self.threads() as u64, "thread", "threads")
            ),
            head: [
                "rung",
                "minor faults",
                "major faults",
                "switches, voluntary",
                "involuntary",
                "lock wait, ms",
                "straggler gap, ms",
                "cache misses",
            ]
            .map(str::to_owned)
            .to_vec(),
            rows: self.rungs.iter().map(row).collect(),
        }
    }

    fn look_at(&self, splits: &[(&'static str, Split)]) -> Vec<String> {
        let mut sentences = Vec::new();
        for (name, split) in splits {
            if let Some((what, share)) = split.worst() {
                sentences.push(format!(
                    "`{name}` loses most to {what}: {} of its threads' time.",
                    percent(share)
                ));
            }
        }
        let named = |name: &str| {
            self.rungs
                .iter()
                .find(|both| both[1].point.rung.name == name)
        };
        let faults = |name: &str| {
            let run = middle(&named(name)?[1], self.mode)?;
            let usage: Option<Vec<Usage>> = run.laps.iter().map(|lap| lap.usage).collect();
            let faults: u64 = usage?.iter().map(|usage| usage.minor_faults).sum();
            Some((faults, run.keys()))
        };
        if let Some((faults_here, keys)) = faults("partitioned") {
            let before = faults("preallocated").map(|(faults, _)| faults);
            sentences.extend(page_faults(faults_here, keys, before));
        }
        let waits = |name: &str| {
            let run = middle(&named(name)?[1], self.mode)?;
            let usage: Option<Vec<Usage>> = run.laps.iter().map(|lap| lap.usage).collect();
            Some(usage?.iter().map(|usage| usage.voluntary).sum::<u64>())
        };
        let speed_up = named("biglock").and_then(|[alone, together]| {
            let mops = |climbed: &Climbed| climbed.mops(self.mode);
            Some(mops(together)? / mops(alone)?)
        });
        if let (Some(sleeps), Some(speed_up)) = (waits("biglock"), speed_up) {
            sentences.extend(lock_sleeps(sleeps, speed_up));
        }
        sentences
    }
}

/// Says what the page faults of `partitioned` come from, `faults` of them for so many keys. `before` is
/// their number where nodes are made before.
fn page_faults(faults: u64, keys: u64, before: Option<u64>) -> Option<String> {
    let each = keys.checked_div(faults)?;
    let beside = match before {
        Some(before) if before < faults / 2 => " `preallocated` has touched its pages before.",
        Some(_) => " `preallocated` has as many here: its pages were not touched before, either.",
        None => "",
    };
    Some(format!(
        "Why is `partitioned` busy in the kernel? Its allocator asks for memory as it goes, and the kernel \
         gives each page when it is first touched: {} page faults, one for {} keys.{beside}",
        grouped(faults),
        grouped(each)
    ))
}

/// Says what the sleeps of threads that wait for the lock of `biglock` do, if there were any.
fn lock_sleeps(sleeps: u64, speed_up: f64) -> Option<String> {
    if sleeps == 0 {
        return None;
    }
    let sleeps = grouped(sleeps);
    Some(match speed_up < 1.0 {
        true => format!(
            "Why does `biglock` become slower with more threads, and not merely no faster? A thread that \
             waits long for the lock sleeps ({sleeps} times here), and each sleep goes through the kernel \
             and back. Also, the lock, the head and the newest node are in another core's cache each time \
             that the lock changes hands."
        ),
        false => format!(
            "Threads of `biglock` that waited long for the lock slept {sleeps} times, each time through the \
             kernel and back, and yet all together were {} as fast as one: they share the work outside the \
             lock.",
            times(speed_up)
        ),
    })
}

/// Returns the time from the first thread's end to the last one's, in seconds.
fn gap(run: &Ended) -> f64 {
    let ends = || run.laps.iter().map(|lap| lap.end);
    let both = ends().min().zip(ends().max());
    both.map_or(0.0, |(first, last)| (last - first).as_secs_f64())
}

/// Returns the median run of those in a mode, or of all if there is none.
fn middle(climbed: &Climbed, mode: Mode) -> Option<&Ended> {
    let mode = climbed.mode_of(mode)?;
    let runs: Vec<&Ended> = climbed
        .ended
        .iter()
        .filter(|(m, _)| *m == mode)
        .map(|(_, e)| e)
        .collect();
    let middle = median(&runs.iter().map(|run| run.mops()).collect::<Vec<_>>())?;
    let far = |run: &&&Ended| (run.mops() - middle).abs();
    runs.iter()
        .min_by(|a, b| far(a).total_cmp(&far(b)))
        .copied()
}

fn split_table(splits: &[(&'static str, Split)]) -> Grid {
    let mut head = vec!["rung".to_owned()];
    head.extend(Split::KINDS.map(|(name, _)| name.to_owned()));
    head.push("all".to_owned());
    let row = |(name, split): &(&str, Split)| {
        let mut row = vec![(*name).to_owned()];
        row.extend(split.values().map(significant));
        row.push(significant(split.whole()));
        row
    };
    Grid {
        title: "Nanoseconds of a thread for each key, in the middle run".to_owned(),
        head,
        rows: splits.iter().map(row).collect(),
    }
}

fn picture(splits: &[(&'static str, Split)]) -> Picture {
    let bars: Vec<(String, Vec<f64>)> = splits
        .iter()
        .map(|(name, split)| ((*name).to_owned(), split.values().to_vec()))
        .collect();
    let description = splits.iter().filter_map(|(name, split)| {
        let (what, share) = split.worst()?;
        Some(format!("{name}: {} lost to {what}. ", percent(share)))
    });
    let description: String = description.collect();
    Picture {
        name: "why".to_owned(),
        caption: "Where the time of all threads goes".to_owned(),
        draw: Box::new(move |place| {
            StackPlot {
                id: "why".to_owned(),
                title: "Where the time of all threads goes".to_owned(),
                description: description.clone(),
                label: "nanoseconds of a thread for each key",
                kinds: Split::KINDS.to_vec(),
                bars: bars.clone(),
                width: WIDTH,
            }
            .svg(place)
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn faults_and_sleeps_are_explained_by_what_was_seen() {
        let seen = page_faults(2_000, 400_000, Some(10)).unwrap();
        assert!(
            seen.contains("one for 200 keys") && seen.contains("pages before"),
            "{seen}"
        );
        let untouched = page_faults(2_000, 400_000, Some(1_900)).unwrap();
        assert!(untouched.contains("as many here"), "{untouched}");
        assert_eq!(page_faults(0, 400_000, None), None);
        assert!(lock_sleeps(7, 0.3).unwrap().contains("slower with more"));
        let faster = lock_sleeps(7, 1.4).unwrap();
        assert!(
            faster.contains("1.4") && !faster.contains("slower"),
            "{faster}"
        );
        assert_eq!(lock_sleeps(0, 0.3), None);
    }
}
