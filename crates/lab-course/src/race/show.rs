//! The output of the race: from counts to words, tables and pictures.

use super::measure::{Counted, Plan, lost};
use super::window::{self, Compiled, ListedInstruction, Window};
use crate::shown::{Guess, Part, Picture, Shown};
use corelay_lab_measure::measure::cost::Cost;
use corelay_lab_measure::measure::stats::{median, quantile};
use corelay_lab_measure::schema::Mode;
use corelay_lab_report::plot::{Bar, BarPlot, Medium, Scale, Style, grouped, significant};
use corelay_lab_report::table::grid::Grid;
use corelay_lab_report::words::{and, count, times};

/// The compare-and-exchange without and with a lock, as [`Cost::what`] names them.
const PLAIN: &str = "cmpxchg";
const LOCKED: &str = "lock cmpxchg";

/// Width of the picture, in SVG units.
const WIDTH: f64 = 720.0;

/// A drawing of two threads and one lost update.
const INTERLEAVING: &str = "\
thread A     number    thread B
load:  7        7
                7      load:  7
add:   8        7
                7      add:   8
store: 8        8
                8      store: 8, over A's";

/// Writes the outcome up as a step of the course. There are `costs` where they can be measured.
pub fn shown(
    plan: &Plan,
    counted: &[Counted],
    guess: Option<Guess>,
    compiled: &Compiled,
    costs: &[Cost],
) -> Shown {
    let mut shown = Shown::new(
        "race",
        "Race: several threads add one to the same number, in up to six variants",
    );
    let racy = counted.iter().find(|counted| !counted.variant.is_right);
    let share = racy.and_then(|racy| lost(plan, &racy.found));
    shown.guess = guess.map(|guess| Guess {
        measured: share,
        ..guess
    });
    shown.wrong = wrong(plan, counted);
    shown.parts.push(Part::Words(format!(
        "{} each add one {} times, all starting at the same moment. So the number must be {} in \
         the end. Each variant was run {}, in turn with the others.",
        count(plan.threads as u64, "thread", "threads"),
        grouped(plan.updates),
        grouped(plan.expected()),
        count(plan.rounds as u64, "time", "times"),
    )));
    shown.parts.push(Part::Table(table(plan, counted)));
    shown.parts.push(Part::Words(modes(counted)));
    let bars = bars(counted);
    if !bars.is_empty() {
        shown.parts.push(Part::Picture(Picture {
            name: "race-throughput".to_owned(),
            caption: "Updates per second, in millions: median and quartiles of the rounds"
                .to_owned(),
            draw: Box::new(move |medium| picture(&bars, medium)),
        }));
    }
    shown.parts.push(Part::Code {
        caption: "How an update is lost, time going down: two were made, and the number has gone \
                  from 7 to 8"
            .to_owned(),
        text: INTERLEAVING.to_owned(),
    });
    listings(&mut shown, compiled);
    if let Some((table, words)) = locked(costs) {
        shown.parts.push(Part::Table(table));
        shown.parts.push(Part::Words(words));
    }
    shown.look_at = look_at(plan, counted, racy.and(share));
    shown.figures = serde_json::json!({
        "threads": plan.threads,
        "updates": plan.updates,
        "expected": plan.expected(),
        "found": counted
            .iter()
            .map(|counted| (counted.variant.name.to_owned(), counted.found.clone().into()))
            .collect::<serde_json::Map<_, _>>(),
        "lost_percent": share,
    });
    shown.runs = counted.iter().map(|counted| counted.run.clone()).collect();
    shown
}

/// Describes what a locked instruction costs while no other thread uses the number.
fn locked(costs: &[Cost]) -> Option<(Grid, String)> {
    let of = |what: &str| costs.iter().find(|cost| cost.what == what);
    let (plain, locked) = (of(PLAIN)?, of(LOCKED)?);
    let row = |cost: &Cost| {
        vec![
            cost.what.to_owned(),
            significant(cost.cycles),
            significant(cost.ns),
        ]
    };
    let table = Grid {
        title: "One thread alone: an instruction after the other on one number".to_owned(),
        head: ["instruction", "cycles", "ns"].map(str::to_owned).into(),
        rows: costs.iter().map(row).collect(),
    };
    let ratio = locked.cycles / plain.cycles;
    let here = format!(
        "A locked compare-and-exchange takes {} cycles here and the plain one {}",
        significant(locked.cycles),
        significant(plain.cycles)
    );
    let judged = match ratio > 1.25 {
        true => format!(
            "{here}: the lock costs {} the time even if no other thread is there.",
            times(ratio)
        ),
        false => format!("{here}: the lock costs next to nothing if no other thread is there."),
    };
    let source =
        "The thesis on delegation has 18 and 6 cycles, for Intel Skylake (from Fog's tables).";
    Some((table, format!("{judged} {source}")))
}

/// Lists the faults: a right variant that has lost an update, or any variant with more updates than
/// were made.
fn wrong(plan: &Plan, counted: &[Counted]) -> Vec<String> {
    let expected = plan.expected();
    let mut wrong = Vec::new();
    for counted in counted {
        let name = counted.variant.name;
        if let Some(failure) = &counted.failure {
            wrong.push(format!("`{name}`: {failure}."));
        }
        let is_fine = |found: u64| match counted.variant.is_right {
            true => found == expected,
            false => found <= expected,
        };
        if let Some(found) = counted.found.iter().find(|&&found| !is_fine(found)) {
            wrong.push(format!(
                "`{name}`: {} updates were made, and the number is {}.",
                grouped(expected),
                grouped(*found)
            ));
        }
    }
    wrong
}

/// Returns the throughputs of the rounds that count.
fn mops(counted: &Counted) -> Vec<f64> {
    let samples = counted.run.samples.iter();
    let kept = samples.filter(|sample| sample.mode != Mode::Discarded && sample.mops > 0.0);
    kept.map(|sample| sample.mops).collect()
}

fn table(plan: &Plan, counted: &[Counted]) -> Grid {
    let row = |counted: &Counted| {
        let mops = mops(counted);
        let figure = |value: Option<f64>| value.map_or("–".to_owned(), significant);
        let quartiles = [0.25, 0.75].map(|q| figure(quantile(&mops, q)));
        let exact = counted.found.iter().filter(|&&n| n == plan.expected());
        let share = lost(plan, &counted.found);
        vec![
            format!("{}: {}", counted.variant.name, counted.variant.what),
            format!("{} of {}", exact.count(), counted.found.len()),
            counted
                .found
                .iter()
                .min()
                .map_or("–".to_owned(), |found| grouped(*found)),
            share.map_or("–".to_owned(), percent),
            figure(median(&mops)),
            quartiles.join("–"),
        ]
    };
    Grid {
        title: format!("The number must be {}", grouped(plan.expected())),
        head: [
            "variant",
            "times right",
            "least",
            "lost, %",
            "Mops",
            "quartiles",
        ]
        .map(str::to_owned)
        .into(),
        rows: counted.iter().map(row).collect(),
    }
}

/// Formats a share so that one lost update in a million does not look like none.
fn percent(share: f64) -> String {
    match share {
        0.0 => "0".to_owned(),
        share if share.abs() < 0.001 => "< 0.001".to_owned(),
        share => significant(share),
    }
}

fn modes(counted: &[Counted]) -> String {
    let samples = || counted.iter().flat_map(|counted| &counted.run.samples);
    let of = |mode| samples().filter(|sample| sample.mode == mode).count() as u64;
    let seen = [
        (Mode::Near, "while the first two CPUs were near"),
        (Mode::Far, "while the first two CPUs were far"),
        (Mode::Unknown, "with nothing known of how far the CPUs were"),
    ];
    let seen = seen.map(|(mode, words)| (of(mode), words));
    let kept: u64 = seen.iter().map(|(n, _)| n).sum();
    let sentences: Vec<String> = seen
        .iter()
        .filter(|(n, _)| *n > 0)
        .map(|(n, words)| format!("{n} {words}"))
        .collect();
    let mut text = match sentences.is_empty() {
        true => "No round has a figure".to_owned(),
        false => format!("Figures are of {kept} rounds: {}", and(&sentences)),
    };
    match of(Mode::Discarded) {
        0 => text.push('.'),
        n => text.push_str(&format!(
            "; {n} were left out, as the distance changed meanwhile (their numbers count all the \
             same)."
        )),
    }
    text
}

/// A bar: the variant's name, whether it was right, and median and quartiles.
type Drawn = (String, bool, f64, (f64, f64));

fn bars(counted: &[Counted]) -> Vec<Drawn> {
    let bar = |counted: &Counted| {
        let mops = mops(counted);
        let (name, is_right) = (counted.variant.name, counted.run.correct);
        let label = match is_right {
            true => name.to_owned(),
            false => format!("{name} (wrong)"),
        };
        let spread = (quantile(&mops, 0.25)?, quantile(&mops, 0.75)?);
        Some((label, is_right, median(&mops)?, spread))
    };
    counted.iter().filter_map(bar).collect()
}

fn picture(bars: &[Drawn], medium: Medium) -> String {
    let most = bars.iter().map(|bar| bar.3.1).fold(0.0, f64::max);
    let bar = |(label, is_right, value, spread): &Drawn| Bar {
        label: label.clone(),
        style: Style {
            colour: if *is_right { "c-blue" } else { "c-grey" },
            ..Style::spare(0)
        },
        value: *value,
        spread: *spread,
        tip: format!(
            "{label}\n{} Mops, from {} to {}",
            significant(*value),
            significant(spread.0),
            significant(spread.1)
        ),
    };
    let words = |(label, _, value, _): &Drawn| format!("{label} {}", significant(*value));
    let plot = BarPlot {
        id: "race-throughput".to_owned(),
        title: "Counting in one number".to_owned(),
        description: format!(
            "Mops: {}.",
            bars.iter().map(words).collect::<Vec<_>>().join(", ")
        ),
        label: "updates per second, Mops",
        // The axis starts at zero, because bars are compared by their lengths.
        scale: Scale::Linear {
            low: 0.0,
            high: most * 1.04,
        },
        bars: bars.iter().map(bar).collect(),
        width: WIDTH,
    };
    plot.svg(medium)
}

fn listings(shown: &mut Shown, compiled: &Compiled) {
    let mut listing = |caption: &str, lines: &Result<Vec<ListedInstruction>, String>| match lines {
        Ok(lines) => shown.parts.push(Part::Code {
            caption: caption.to_owned(),
            text: window::marked(lines),
        }),
        Err(why) => shown.parts.push(Part::Words(format!("{caption}: {why}."))),
    };
    listing(
        "The increment of `lost` (and, inside its lock, of `spin`), as this program was compiled",
        &compiled.lost,
    );
    let of = |lines: &Result<Vec<ListedInstruction>, String>| match lines {
        Ok(lines) => window::window(lines),
        Err(_) => Window::Unknown,
    };
    let window = of(&compiled.lost);
    // The shorter form is shown only if it differs from the other.
    if matches!(of(&compiled.without_an_answer), Window::Inside(_))
        && !matches!(window, Window::Inside(_))
    {
        listing(
            "The same if nobody uses the old number (not run here): one instruction, and no better",
            &compiled.without_an_answer,
        );
    }
    listing("The increment of `atomic`", &compiled.atomic);
    let Ok(lines) = &compiled.lost else {
        shown.parts.push(Part::Words(
            "In words: the increment of `lost` loads the number into a register, adds one there, \
             and stores the register. A store of another thread between the load and the store is \
             overwritten. The increment of `atomic` keeps the cache line (or tries again) until it \
             has stored."
                .to_owned(),
        ));
        return;
    };
    if window == Window::Unknown && lines.iter().any(|line| line.touch == window::Touch::Call) {
        shown.parts.push(Part::Words(
            "This program was built without optimising: load and store are functions that are \
             called, and the window is between the two calls. Build it with `--release` to see it \
             on the instructions."
                .to_owned(),
        ));
    }
}

fn look_at(plan: &Plan, counted: &[Counted], share: Option<f64>) -> Vec<String> {
    let mut sentences = Vec::new();
    match share {
        None => {}
        Some(_) if plan.threads == 1 => sentences.push(
            "One thread alone loses nothing, with or without a lock: run it with `--threads 2`."
                .to_owned(),
        ),
        Some(0.0) => sentences.push(
            "No update was lost this time. That does not make `lost` right: the window was there \
             each time, and no thread came into it. On one CPU a thread has to be stopped inside the \
             window, which takes many updates (`--updates`)."
                .to_owned(),
        ),
        Some(share) => sentences.push(format!(
            "`lost` has lost {} % of the updates, and the share will differ next time. No update \
             failed and nothing was reported: a lost update shows only in the sum.",
            percent(share)
        )),
    }
    let median_of = |name: &str| {
        let counted = counted
            .iter()
            .find(|counted| counted.variant.name == name)?;
        median(&mops(counted)).filter(|_| counted.run.correct || !counted.variant.is_right)
    };
    if let (Some(atomic), Some(cas)) = (median_of("atomic"), median_of("cas"))
        && plan.threads > 1
    {
        sentences.push(format!(
            "`cas` tries again if another thread was faster, `atomic` always succeeds: \
             {} and {} Mops.",
            significant(cas),
            significant(atomic)
        ));
    }
    if let (Some(mutex), Some(spin)) = (median_of("mutex"), median_of("spin")) {
        sentences.push(format!(
            "`mutex` and `spin` make the same promise and wait in different ways: {} and {} Mops. \
             With more threads than CPUs the holder may not be running: try `--threads 8`.",
            significant(mutex),
            significant(spin)
        ));
    }
    if let Some(delegated) = median_of("delegated") {
        sentences.push(format!(
            "`delegated` has no lock and no atomic number: one of the threads owns the number. \
             The others send it their updates, many at a time, and do not wait for answers: {} Mops.",
            significant(delegated)
        ));
    }
    sentences.push(
        "Read the sources: `corelay lab race --source`, a file each. `spin` has the same \
         increment as `lost`, but only one thread at a time is in the window."
            .to_owned(),
    );
    sentences
}

#[cfg(test)]
mod tests {
    use super::super::measure::tests::{PLAN, broken, count};
    use super::super::{QUESTION, VARIANTS};
    use super::*;

    fn of(counted: &[Counted]) -> Shown {
        shown(
            &PLAN,
            counted,
            Some(QUESTION.unasked()),
            &window::compiled(),
            &[],
        )
    }

    #[test]
    fn a_lock_is_said_to_cost_only_if_it_does() {
        let told = |lock: f64| {
            let cost = |what, cycles| Cost {
                what,
                ns: cycles / 4.0,
                cycles,
            };
            let (table, words) = locked(&[cost(PLAIN, 6.0), cost(LOCKED, lock)]).unwrap();
            assert_eq!(table.rows[1][..2], [LOCKED.to_owned(), significant(lock)]);
            words.replace('\u{a0}', " ")
        };
        assert!(
            told(18.0).contains("costs 3.0 × the time"),
            "{}",
            told(18.0)
        );
        assert!(told(6.5).contains("next to nothing"), "{}", told(6.5));
        assert_eq!(locked(&[]), None);
    }

    #[test]
    fn the_step_shows_what_was_counted() {
        let mut counted = count(&VARIANTS);
        // Pretends that a quarter of the updates was lost.
        counted[0].found = vec![PLAN.expected() / 4 * 3; 3];
        let shown = of(&counted);
        assert!(shown.is_right(), "{:?}", shown.wrong);
        assert_eq!(shown.guess.as_ref().unwrap().measured, Some(25.0));
        assert_eq!(shown.figures["lost_percent"], 25.0);
        assert_eq!(shown.runs.len(), VARIANTS.len());
        let text = shown.to_string();
        assert!(text.contains("lost has lost 25.0 %"), "{text}");
        assert!(text.contains("from 7 to 8"), "{text}");
        for variant in VARIANTS {
            assert!(text.contains(variant.name), "{text}");
        }
        for picture in shown.pictures() {
            let svg = (picture.draw)(Medium::File);
            roxmltree::Document::parse(&svg).unwrap();
        }
        assert_eq!(shown.pictures().count(), 1);
    }

    #[test]
    fn a_right_variant_that_loses_updates_is_reported() {
        let wrong = of(&count(&broken())).wrong;
        assert_eq!(wrong.len(), 2, "{wrong:?}");
        assert!(wrong[0].contains("`drops`: 6,000 updates were made, and the number is 5,997"));
        assert!(wrong[1].contains("`panics`") && wrong[1].contains("by design"));
        // The wrong variant may lose updates, but not have more than were made.
        let mut racy = count(&VARIANTS[..1]);
        racy[0].found = vec![1, PLAN.expected()];
        assert!(of(&racy).is_right());
        racy[0].found = vec![PLAN.expected() + 1];
        assert!(!of(&racy).is_right());
    }

    #[test]
    fn a_race_without_losses_is_not_called_right() {
        let mut counted = count(&VARIANTS[..1]);
        counted[0].found = vec![PLAN.expected(); 3];
        assert!(of(&counted).look_at[0].contains("does not make `lost` right"));
        counted[0].found = Vec::new();
        assert_eq!(of(&counted).guess.unwrap().measured, None);
        assert_eq!(percent(1e-7), "< 0.001");
    }
}
