//! The page of a figure: one HTML file that needs no other. First the source's printed values
//! beside ours and what there is to say, then the pictures, then the tables, then the machine.

mod heat;
mod picture;

use super::measured::Measured;
use super::offsets::Offsets;
use super::outcome::{About, Outcome};
use super::quantity::Quantity;
use super::tables as grids;
use crate::page::parts::{notes, tables};
use crate::page::{machine, shell};
use crate::plot::{escape, grouped, trimmed};
use crate::words::{self, count, html as prose};
use std::fmt::Write;

/// The page about a figure that was measured.
pub fn html(outcome: &Outcome) -> String {
    let (about, results) = (&outcome.figure, &outcome.results);
    let mut out = String::with_capacity(1 << 16);
    title(&mut out, outcome);
    notes(&mut out, "Please note", &about.missing);
    beside(&mut out, about);
    let modes = Measured::in_all_modes(outcome);
    let usual = Measured::of(outcome);
    if !results.runs.is_empty() {
        let told = format!("What was measured here ({})", usual.mode_words());
        notes(&mut out, &told, &about.said);
        tables(&mut out, about.tables.iter().cloned());
        out.push_str(r#"<section class="wide">"#);
        for measured in &modes {
            picture::all(&mut out, measured);
        }
        out.push_str("</section><section><h2>In figures</h2>");
        for measured in &modes {
            let _ = write!(out, "<h3>{}</h3>", escape(&measured.mode_words()));
            let panels = measured.panels().iter();
            tables(
                &mut out,
                panels.flat_map(|panel| grids::of(measured, panel)),
            );
        }
        out.push_str("</section>");
        how(&mut out, about);
    } else if let Some(offsets) = &about.offsets {
        notes(&mut out, "What was measured here", &about.said);
        out.push_str(r#"<section class="wide"><div class="figures own">"#);
        if let Some(svg) = heat::svg(about, "offsets") {
            let _ = write!(
                out,
                "<figure><figcaption>How far the column's counter may be ahead of the row's, in ns</figcaption>{svg}</figure>"
            );
        }
        out.push_str("</div></section>");
        tables(&mut out, about.tables.iter().cloned());
        how_offsets(&mut out, about, offsets);
    }
    out.push_str("<section><h2>The machine</h2>");
    out.push_str(&machine::facts(&results.machine, results));
    out.push_str("</section>");
    let made_by = shell::made_by(&results.command, &results.commit);
    let file = format!("{}.json", about.name);
    shell::document(
        &about.title,
        &out,
        &made_by,
        &shell::Saved::samples(&file, outcome),
    )
}

fn title(out: &mut String, outcome: &Outcome) {
    let (about, machine) = (&outcome.figure, &outcome.results.machine);
    let model = match &*machine.model {
        "" => "unknown processor",
        model => model,
    };
    let _ = write!(
        out,
        r#"<header><p class="brand">corelay figure {}</p><h1>{}</h1><p class="sub">After {}, made again with {} on {}. The source's machine: {}.</p></header>"#,
        escape(&about.name),
        escape(&about.title),
        escape(&about.source),
        count(machine.cpus as u64, "CPU", "CPUs"),
        escape(model),
        escape(&about.there),
    );
}

/// The source's printed values are facts about its machine: they stand beside ours and are named
/// as the source's.
fn beside(out: &mut String, about: &About) {
    if about.beside.is_empty() {
        return;
    }
    let _ = write!(
        out,
        r#"<h2>The source and this machine</h2><div class="scroll"><table><thead><tr><th></th><th>the source, on {}</th><th>here</th></tr></thead><tbody>"#,
        escape(&about.there)
    );
    for beside in &about.beside {
        let here = beside.here.as_deref().unwrap_or("this machine cannot say");
        let _ = write!(
            out,
            "<tr><th>{}</th><td>{}</td><td>{}</td></tr>",
            escape(&beside.what),
            escape(&beside.there),
            escape(here)
        );
    }
    out.push_str("</tbody></table></div>");
}

/// What is drawn of fibres alone.
const FIBRES: [Quantity; 2] = [Quantity::Scalability, Quantity::ScalabilityUs];

fn how(out: &mut String, about: &About) {
    let quantities = about.panels.iter().flat_map(|panel| &panel.quantities);
    // What is counted in leaders has no length.
    let length = match quantities.clone().any(|q| *q == Quantity::PerSecond) {
        true => String::new(),
        false => format!(" of {} s", trimmed(about.secs)),
    };
    let mut sentences = vec![
        format!(
            "{}{length} for each point, taken in turn; throughput is their harmonic mean, as in \
             the thesis, and bands are quartiles.",
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
            "A sample of fibres begins anew, with a cluster or a program of its own, kept to as \
             many CPUs as processors: one node without SMT siblings first, then with them, then \
             further nodes."
                .to_owned(),
        );
    }
    notes(out, "How it was measured", &sentences);
}

fn how_offsets(out: &mut String, about: &About, offsets: &Offsets) {
    let sentences = [
        format!(
            "{}, one after the other, of {} rounds for each ordered pair of CPUs, or, if that is \
             earlier, of {} s and at least 1,000 rounds; disjoint pairs at the same time. In a \
             round one CPU writes its counter into a line, the other waits for it and reads its own.",
            count(offsets.samples.len() as u64, "calibration", "calibrations"),
            grouped(offsets.rounds),
            trimmed(about.secs)
        ),
        "What counts is the smallest difference of all rounds: whatever comes in between makes it \
         larger. The boundary is the largest of all pairs and a quarter of it, or a step of the \
         counter if that is more."
            .to_owned(),
    ];
    notes(out, "How it was measured", &sentences);
}

/// The page that leads to those of all figures, with the first picture of each.
pub fn index(outcomes: &[Outcome]) -> String {
    let mut out = String::with_capacity(1 << 16);
    let machine = outcomes.first().map(|outcome| &outcome.results.machine);
    let model = machine.map_or("", |machine| &machine.model);
    let cpus = machine.map_or(0, |machine| machine.cpus as u64);
    let _ = write!(
        out,
        r#"<header><p class="brand">corelay figure --all</p><h1>The sources' figures, made again</h1><p class="sub">With {} on {}. Each page has the source's printed values beside what was measured.</p></header><section class="wide"><div class="figures own">"#,
        count(cpus, "CPU", "CPUs"),
        escape(model)
    );
    for (number, outcome) in outcomes.iter().enumerate() {
        let about = &outcome.figure;
        let name = escape(&about.name);
        let _ = write!(
            out,
            r#"<figure><h3><a href="{name}.html">{name}</a></h3><figcaption>{}</figcaption>"#,
            escape(&about.title)
        );
        let picture = picture::first(&Measured::of(outcome), number)
            .or_else(|| heat::svg(about, &format!("f{number}-offsets")));
        match (picture, about.missing.first()) {
            (Some(svg), _) => out.push_str(&svg),
            (None, Some(why)) => {
                let _ = write!(out, r#"<p class="unseen">{}</p>"#, prose(why));
            }
            (None, None) => out.push_str(r#"<p class="unseen">Nothing was measured.</p>"#),
        }
        out.push_str("</figure>");
    }
    out.push_str("</div></section>");
    let made_by = outcomes.first().map_or(String::new(), |outcome| {
        shell::made_by(&outcome.results.command, &outcome.results.commit)
    });
    shell::document(
        "The sources' figures",
        &out,
        &made_by,
        &shell::Saved::samples("figures.json", &outcomes),
    )
}

/// What the terminal says of a figure.
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
        for grid in grids.chain(about.tables.iter().cloned()) {
            let _ = writeln!(text, "{grid}");
        }
    } else if !outcome.is_empty() {
        for grid in &about.tables {
            let _ = writeln!(text, "{grid}");
        }
    }
    if !about.beside.is_empty() {
        let row = |beside: &super::outcome::Beside| {
            let here = beside.here.as_deref().unwrap_or("this machine cannot say");
            vec![beside.what.clone(), beside.there.clone(), here.to_owned()]
        };
        let _ = writeln!(text, "The source, on {}:", about.there);
        for beside in about.beside.iter().map(row) {
            let told = format!("{}: {}. Here: {}.", beside[0], beside[1], beside[2]);
            let _ = writeln!(text, "{}", words::wrap(&told, "= ", 96));
        }
        text.push('\n');
    }
    for sentence in &about.said {
        let _ = writeln!(text, "{}", words::wrap(sentence, "- ", 96));
    }
    text
}
