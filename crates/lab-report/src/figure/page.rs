//! The page of a figure: one HTML file that needs no other. It has the source's printed values
//! beside ours and the words first, then the pictures, the tables and the machine.

mod heat;
mod picture;

use super::measured::Measured;
use super::offsets::Offsets;
use super::outcome::{About, Outcome};
use super::quantity::Quantity;
use super::stack;
use super::tables as grids;
use crate::method::Styles;
use crate::page::figures::WIDTH;
use crate::page::parts::{notes, picture as drawn, scrolled, tables};
use crate::page::{machine, shell};
use crate::plot::{grouped, trimmed};
use crate::words::{self, code, count, prose};
use corelay_lab_measure::schema::Run;
use maud::{Markup, html};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

/// Renders the page of a measured figure.
pub fn html(outcome: &Outcome) -> String {
    let (about, results) = (&outcome.figure, &outcome.results);
    let measured = match &about.offsets {
        _ if !results.runs.is_empty() => of_runs(outcome),
        Some(offsets) => of_offsets(about, offsets),
        None => html! {},
    };
    let body = html! {
        (title(outcome))
        (notes("Please note", &about.missing))
        (beside(about))
        (measured)
        section {
            h2 { "The machine" }
            (machine::facts(&results.machine, results))
        }
    };
    let made_by = shell::made_by(&results.command, &results.commit);
    let file = format!("{}.json", about.name);
    let saved = shell::Saved::samples(&file, outcome);
    shell::document(&about.title, &body, &made_by, &saved)
}

/// Renders the part about runs.
fn of_runs(outcome: &Outcome) -> Markup {
    let about = &outcome.figure;
    let modes = Measured::in_all_modes(outcome);
    let usual = Measured::of(outcome);
    let styles = picture::styles([outcome]);
    let title = format!("What was measured here ({})", usual.mode_words());
    html! {
        (notes(&title, &about.said))
        (tables(about.tables.iter().cloned()))
        @if !about.stacks.is_empty() {
            section.wide {
                div class="figures own" {
                    @for (title, svg) in stack::pictures(about, WIDTH) { (drawn(title, &svg)) }
                }
            }
        }
        section.wide {
            @for measured in &modes { (picture::all(measured, &styles)) }
        }
        section {
            h2 { "In figures" }
            @for measured in &modes {
                h3 { (measured.mode_words()) }
                (tables(measured.panels().iter().flat_map(|panel| grids::of(measured, panel))))
            }
            (tables(about.stacks.iter().map(stack::Stack::grid)))
        }
        (notes("How it was measured", &how(outcome)))
    }
}

/// Renders the part about calibrations.
fn of_offsets(about: &About, offsets: &Offsets) -> Markup {
    let caption = "How far the column's counter may be ahead of the row's, in ns";
    html! {
        (notes("What was measured here", &about.said))
        section.wide {
            div class="figures own" {
                @if let Some(svg) = heat::svg(about, "offsets") { (drawn(caption, &svg)) }
            }
        }
        (tables(about.tables.iter().cloned()))
        (notes("How it was measured", &how_offsets(about, offsets)))
    }
}

fn title(outcome: &Outcome) -> Markup {
    let (about, machine) = (&outcome.figure, &outcome.results.machine);
    let model = match &*machine.model {
        "" => "unknown processor",
        model => model,
    };
    html! {
        header {
            p.brand { "corelay figure " (about.name) }
            h1 { (about.title) }
            p.sub {
                "After " (about.source) ", measured again with "
                (count(machine.cpus as u64, "CPU", "CPUs")) " on " (model)
                ". The source's machine: " (about.there) "."
            }
        }
    }
}

/// Renders the source's printed values beside ours. They are facts about the source's machine and
/// are marked as the source's.
fn beside(about: &About) -> Markup {
    html! {
        @if !about.beside.is_empty() {
            h2 { "The source and this machine" }
            div.scroll {
                table {
                    thead {
                        tr { th {} th { "the source, on " (about.there) } th { "here" } }
                    }
                    tbody {
                        @for beside in &about.beside {
                            tr {
                                th { (beside.what) }
                                td { (beside.there) }
                                td { (beside.here.as_deref().unwrap_or("not available on this machine")) }
                            }
                        }
                    }
                }
            }
        }
    }
}

/// Quantities that only figures of fibres have.
const FIBRES: [Quantity; 2] = [Quantity::Scalability, Quantity::ScalabilityUs];

/// The samples of a point in the thesis (D16).
const SOURCE_SAMPLES: usize = 10;

fn how(outcome: &Outcome) -> Vec<String> {
    let about = &outcome.figure;
    let quantities = about.panels.iter().flat_map(|panel| &panel.quantities);
    // Samples that count leaders have no fixed length.
    let length = match quantities.clone().any(|q| *q == Quantity::PerSecond) {
        true => String::new(),
        false => format!(" of {} s", trimmed(about.secs)),
    };
    let mut sentences = vec![
        format!(
            "{}{length} for each point, taken in turn; throughput is their harmonic mean, as in \
             the thesis, and bands are quartiles. A few slow samples pull a harmonic mean down, \
             also below the quartiles.",
            count(about.samples, "sample", "samples"),
        ),
        "Each sample is bracketed by a probe of the round trip and counts as near or far; those \
         around which the probe disagrees, or finds both CPUs on one core, are left out."
            .to_owned(),
    ];
    if !quantities.clone().all(|q| q.is_by_mode()) {
        sentences.push(
            "Counters (latency, saturation, ready, failed pops, requests per pass, aborts, uncertain) are \
             over all samples of a point, near and far together."
                .to_owned(),
        );
    }
    if quantities.clone().any(|q| FIBRES.contains(q)) {
        sentences.push(
            "Each sample of fibres starts a new cluster or program, kept to as many CPUs as it has \
             processors: one node without SMT siblings first, then its siblings, then further \
             nodes."
                .to_owned(),
        );
    }
    sentences.extend(few_samples(outcome));
    sentences.extend(rounded(outcome));
    sentences
}

/// Says how many points have fewer samples than the source's ten in a mode that is drawn.
fn few_samples(outcome: &Outcome) -> Option<String> {
    let modes = Measured::in_all_modes(outcome);
    let right = outcome.results.runs.iter().filter(|run| run.correct);
    let of = |run: &Run| {
        let in_mode = |measured: &Measured<'_>| {
            let samples = run.samples.iter();
            samples.filter(|s| s.mode == measured.mode()).count()
        };
        modes.iter().map(in_mode).collect::<Vec<_>>()
    };
    let points: Vec<usize> = right.flat_map(of).filter(|n| *n > 0).collect();
    let few = points.iter().filter(|n| **n < SOURCE_SAMPLES);
    let fewest = few.clone().min()?;
    Some(format!(
        "{} of {} have fewer than the source's ten samples in their mode; the fewest have {fewest}.",
        few.count(),
        count(points.len() as u64, "point", "points"),
    ))
}

/// Says for each method where the number of variables or servers had to be rounded (D18).
fn rounded(outcome: &Outcome) -> Option<String> {
    let mut by_method: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for run in &outcome.results.runs {
        let notes = run.notes.iter().map(String::as_str);
        let notes = notes.filter(|note| note.contains("rounded") || note.contains("reduced"));
        by_method.entry(&run.method).or_default().extend(notes);
    }
    let each = by_method.iter().filter(|(_, notes)| !notes.is_empty());
    let each: Vec<String> = each
        .map(|(method, notes)| {
            let notes: Vec<&str> = notes.iter().copied().collect();
            format!("{}: {}", code(method), notes.join("; "))
        })
        .collect();
    (!each.is_empty()).then(|| format!("Rounded, as in the thesis: {}.", each.join(". ")))
}

fn how_offsets(about: &About, offsets: &Offsets) -> [String; 2] {
    [
        format!(
            "{}, one after the other, of {} rounds for each ordered pair of CPUs, or, if that is \
             earlier, of {} s and at least 1,000 rounds; disjoint pairs at the same time. In a \
             round one CPU writes its counter into a cache line; the other waits for the write and \
             reads its own counter.",
            count(offsets.samples.len() as u64, "calibration", "calibrations"),
            grouped(offsets.rounds),
            trimmed(about.secs)
        ),
        "The smallest difference of all rounds counts: any disturbance only makes it \
         larger. The boundary is the largest of all pairs and a quarter of it, or a step of the \
         counter if that is more."
            .to_owned(),
    ]
}

/// Renders the page that links to those of all figures, with the first picture of each.
pub fn index(outcomes: &[Outcome]) -> String {
    let machine = outcomes.first().map(|outcome| &outcome.results.machine);
    let model = machine.map_or("", |machine| &machine.model);
    let cpus = machine.map_or(0, |machine| machine.cpus as u64);
    let styles = picture::styles(outcomes);
    let body = html! {
        header {
            p.brand { "corelay figure --all" }
            h1 { "The sources' figures, measured again" }
            p.sub {
                "With " (count(cpus, "CPU", "CPUs")) " on " (model)
                ". Each page has the source's printed values beside the measured ones."
            }
        }
        section.wide {
            div class="figures own" {
                @for (number, outcome) in outcomes.iter().enumerate() { (entry(outcome, number, &styles)) }
            }
        }
    };
    let made_by = outcomes.first().map_or(html! {}, |outcome| {
        shell::made_by(&outcome.results.command, &outcome.results.commit)
    });
    let saved = shell::Saved::samples("figures.json", &outcomes);
    shell::document("The sources' figures", &body, &made_by, &saved)
}

/// Renders a figure's entry in the index.
fn entry(outcome: &Outcome, number: usize, styles: &Styles) -> Markup {
    let about = &outcome.figure;
    let picture = picture::first(&Measured::of(outcome), number, styles)
        .or_else(|| heat::svg(about, &format!("f{number}-offsets")));
    html! {
        figure {
            h3 { a href={ (about.name) ".html" } { (about.name) } }
            figcaption { (about.title) }
            @match (picture, about.missing.first()) {
                (Some(svg), _) => { (scrolled(&svg)) }
                (None, Some(why)) => { p.unseen { (prose(why)) } }
                (None, None) => { p.unseen { "Nothing was measured." } }
            }
        }
    }
}

/// Prints a figure for the terminal.
pub fn text(outcome: &Outcome) -> String {
    let about = &outcome.figure;
    let mut text = format!(
        "{}: {}\nAfter {}.\n\n",
        about.name, about.title, about.source
    );
    for sentence in &about.missing {
        let _ = writeln!(text, "{}", words::wrap(sentence, "! ", 96));
    }
    let measured = Measured::of(outcome);
    if !outcome.results.runs.is_empty() {
        let _ = writeln!(text, "Samples: {}\n", measured.mode_words());
        let panels = measured.panels().iter();
        let grids = panels.flat_map(|panel| grids::of(&measured, panel));
        let stacks = about.stacks.iter().map(stack::Stack::grid);
        for grid in grids.chain(about.tables.iter().cloned()).chain(stacks) {
            let _ = writeln!(text, "{grid}");
        }
    } else if !outcome.is_empty() {
        for grid in &about.tables {
            let _ = writeln!(text, "{grid}");
        }
    }
    if !about.beside.is_empty() {
        let row = |beside: &super::outcome::PrintedValue| {
            let here = beside
                .here
                .as_deref()
                .unwrap_or("not available on this machine");
            vec![beside.what.clone(), beside.there.clone(), here.to_owned()]
        };
        let _ = writeln!(text, "The source, on {}:", about.there);
        for beside in about.beside.iter().map(row) {
            let sentence = format!("{}: {}. Here: {}.", beside[0], beside[1], beside[2]);
            let _ = writeln!(text, "{}", words::wrap(&sentence, "= ", 96));
        }
        text.push('\n');
    }
    for sentence in &about.said {
        let _ = writeln!(text, "{}", words::wrap(sentence, "- ", 96));
    }
    text
}
