//! The page: one HTML file that needs no other.
//!
//! The order matters. The verdict comes first, and in it first where delegation loses. Then come
//! the two most telling pictures, throughput and latency, then all pictures, then details for a
//! doubting reader. The markup is well-formed XML, so a strict parser finds any mistake in it.

pub(crate) mod figures;
mod latency;
pub mod machine;
pub mod parts;
pub mod shell;
mod tables;

use super::data::{self, MODES, Subject};
use super::latency::Group;
use super::method::{Form, Styles};
use super::model::lines;
use super::verdict::{
    Advice, Answer, Comparison, Finding, Level, Need, Section, Standing, Verdict, verdict,
};
use super::words::{self, prose};
use corelay_lab_measure::schema::{Mode, Results};
use maud::{Markup, PreEscaped, html};
use std::collections::BTreeMap;

pub(super) fn html(results: &Results) -> String {
    let verdict = verdict(results);
    let styles = Styles::of(results.runs.iter().map(|r| r.method.as_str()));
    let subjects = Subject::all(results);
    let groups = Group::all(results);
    let body = html! {
        (title(results, &verdict))
        @if !verdict.sections.is_empty() {
            details {
                summary { "Where delegation loses, where it wins, and why" }
                @for section in &verdict.sections {
                    (verdict_section(section, verdict.sections.len() > 1))
                }
                @if !verdict.best.is_empty() {
                    section.wide {
                        h2 { "The best of delegation, and its best rival" }
                        @for grid in &verdict.best { (parts::table(grid)) }
                    }
                }
            }
        }
        @if !verdict.latency.is_empty() {
            details {
                summary { "Latency under load, in words" }
                @for latency in &verdict.latency { (latency::verdict(latency)) }
            }
        }
        (list("Please note", &verdict.notes))
        (latency::glance(results, &groups, &styles))
        @for (number, subject) in subjects.iter().enumerate() {
            (pictures(subject, number, results, &styles))
        }
        (latency::pictures(&groups, &styles))
        (about(results, &subjects, &styles))
    };
    let made_by = shell::made_by(&results.command, &results.commit);
    let saved = shell::Saved::samples("results.json", results);
    shell::document(&name(results), &body, &made_by, &saved)
}

/// Returns the file's subject in a few words.
fn name(results: &Results) -> String {
    let model = if results.machine.model.is_empty() {
        "unknown processor"
    } else {
        &results.machine.model
    };
    let cpus = words::count(results.machine.cpus as u64, "CPU", "CPUs");
    match data::own(results) {
        Some(own) => format!("{own}, shared between {cpus} on {model}"),
        None => format!("Sharing between {cpus} on {model}"),
    }
}

fn title(results: &Results, verdict: &Verdict) -> Markup {
    let where_ = data::own(results).map_or("here".to_owned(), |own| format!("for {own}"));
    html! {
        header {
            p.brand { "corelay" }
            h1 { "Which way of sharing wins " (where_) "?" }
            p.sub { (name(results)) }
            @for answer in &verdict.answers { (self::answer(answer)) }
        }
    }
}

/// Renders what to use: sentences, a table, and what its names mean.
fn answer(answer: &Answer) -> Markup {
    html! {
        div.answer {
            @for sentence in &answer.sentences { p.headline { (prose(sentence)) } }
            @if let Some(table) = &answer.table {
                h2 { (table.title) }
                div.scroll {
                    table {
                        thead { tr { @for head in &table.head { th { (head) } } } }
                        tbody {
                            @for row in &table.rows {
                                tr { @for cell in row { td { (cell) } } }
                            }
                        }
                    }
                }
                @for (at, what) in &answer.elsewhere {
                    p.elsewhere { b { (at) ":" } " " (prose(what)) "." }
                }
                p.fine { (prose(&answer.reading)) }
                dl.names {
                    @for (name, what) in &answer.legend {
                        dt { code { (name) } }
                        dd { (prose(what)) }
                    }
                }
            }
        }
    }
}

fn verdict_section(section: &Section, several: bool) -> Markup {
    let cards = [
        (Standing::Loses, "loses"),
        (Standing::Wins, "wins"),
        (Standing::TooClose, "close"),
    ];
    let cards = cards.map(|(standing, class)| (standing, class, section.grouped(standing)));
    let reservations = if several {
        "About this workload"
    } else {
        "What these figures do not say"
    };
    html! {
        section.verdict {
            p.subject { (section.subject) }
            div.cards {
                @for (standing, class, groups) in cards.iter().filter(|(.., groups)| !groups.is_empty()) {
                    div class={ "card " (class) } {
                        h2 { (standing.title()) }
                        p { (standing.reading()) }
                        @for (comparison, levels) in groups { (ratios(*comparison, levels)) }
                    }
                }
            }
            @if !section.findings.is_empty() {
                p.fine {
                    "In brackets: 95 % intervals. Methods that promise different things are ranked apart, or the comparison says that it is not like with like."
                }
            }
            (advice(&section.advice))
            (list("Why", &section.why))
            (list(reservations, &section.notes))
        }
    }
}

/// Renders one comparison as a table: a row for each level, a column for each mode.
fn ratios(comparison: Comparison, levels: &BTreeMap<&Level, Vec<&Finding>>) -> Markup {
    let of = |mode: Mode| levels.values().flatten().any(|f| f.mode == mode);
    let modes: Vec<Mode> = MODES.into_iter().filter(|m| of(*m)).collect();
    html! {
        h3 { (prose(comparison.title())) }
        table {
            @if modes != [Mode::Unknown] {
                thead {
                    tr {
                        th { "variables" }
                        @for mode in &modes { th { (words::mode(*mode)) } }
                    }
                }
            }
            tbody {
                @for (level, findings) in levels {
                    tr {
                        th { (level.to_string()) }
                        @for mode in &modes {
                            td {
                                @if let Some(f) = findings.iter().find(|f| f.mode == *mode) {
                                    (prose(&f.to_string())) " " small { "(" (f.interval()) ")" }
                                }
                            }
                        }
                    }
                }
            }
        }
    }
}

/// A tag that XML closes and maud does not.
const BREAK: PreEscaped<&str> = PreEscaped("<br/>");

fn advice(advice: &[Advice]) -> Markup {
    let needs = Need::met(advice);
    html! {
        @if !advice.is_empty() {
            h2 { "The fastest methods, by need" }
            div.scroll {
                table.advice {
                    thead {
                        tr {
                            th { "variables" }
                            @for need in &needs { th { (need.words()) } }
                        }
                    }
                    tbody {
                        @for a in advice {
                            tr {
                                th { (a.level.to_string()) }
                                @for &need in &needs {
                                    td data-need=(need.words()) {
                                        @for (i, line) in a.lines(need).iter().enumerate() {
                                            @if i > 0 { (BREAK) }
                                            (prose(line))
                                        }
                                    }
                                }
                            }
                        }
                    }
                }
            }
        }
    }
}

fn list(title: &str, sentences: &[String]) -> Markup {
    // A leading word with a colon names the sentence's subject.
    let about = |sentence: &String| match sentence.split_once(": ") {
        Some((about, rest)) if about.len() < 26 => {
            html! { b { (prose(about)) "." } " " (prose(&upper(rest))) }
        }
        _ => prose(sentence),
    };
    html! {
        @if !sentences.is_empty() {
            h2 { (title) }
            ul.prose {
                @for sentence in sentences { li { (about(sentence)) } }
            }
        }
    }
}

fn upper(text: &str) -> String {
    let mut letters = text.chars();
    letters
        .next()
        .map_or(String::new(), |c| c.to_uppercase().chain(letters).collect())
}

fn pictures(subject: &Subject<'_>, number: usize, results: &Results, styles: &Styles) -> Markup {
    let rows = figures::rows(subject, number, &results.machine, styles);
    if rows.is_empty() {
        return html! {};
    }
    let atomic = subject.has(Form::Instruction);
    let threads = subject.main_threads(results.machine.cpus);
    html! {
        section.wide {
            h2 { "Pictures: " (subject.name()) }
            p.fine {
                "Lines are medians, bands quartiles; point at a line for its figures. "
                @if atomic { code { "atomic" } " and " code { "mutex" } " are" } @else { code { "mutex" } " is" }
                " drawn again, pale, beside methods that answer later."
            }
            @for row in rows {
                h3 { (row.heading) }
                div.figures {
                    @for figure in row.figures { (parts::picture(&figure.caption, &figure.svg)) }
                }
            }
            (unseen(subject))
            @if subject.vars().len() > 1 && results.machine.cpus != 1 {
                h2 { "Which method wins where" }
                p.fine {
                    "The fastest method at each number of variables, with its Mops; ± counts the methods that cannot be told from it."
                    @if atomic {
                        " " code { "atomic" } " is left out: it does one instruction, not any code."
                    }
                }
                (tables::winners(subject, styles))
            }
            @if let Some(table) = threads.and_then(|t| tables::ceilings(subject, t)) {
                h2 { "What the round trip allows" }
                p.fine {
                    "Models from the probed round trip, beside the measured values. They are yardsticks, not bounds: a lock that keeps its line for several operations in a row exceeds the first; requests that overlap or travel together exceed the second."
                }
                (table)
            }
            @if let Some(grid) = tables::lines_moved(subject) {
                h2 { "On a larger machine" }
                p.fine {
                    "A model, not measured here: corelay's own source ran in lock step on a simulated machine of 4 sockets of 16 cores with 2 hardware threads each (" code { (lines::MACHINE) } "), with one thread on each of 8, 32 or 128 CPUs; where a method delegates, one of these threads is the trustee. Lines that moved from cache to cache were counted, and nothing was timed. A method scales badly if its operations move many lines, and worse if they move more with every CPU. " code { "corelay model lines" } " counts other machines and methods."
                }
                (parts::table(&grid))
            }
        }
    }
}

/// Names the modes without a picture, and the reason.
fn unseen(subject: &Subject<'_>) -> Markup {
    let (seen, drawn) = (subject.modes(), data::drawn_modes(&subject.runs));
    let missing = |mode: &Mode| !drawn.contains(mode) && !drawn.contains(&Mode::Unknown);
    html! {
        @for mode in [Mode::Near, Mode::Far].into_iter().filter(missing) {
            p.unseen {
                (words::mode(mode)) ": "
                @if seen.contains(&mode) {
                    "seen too rarely for a picture; its figures stand in the table of all runs."
                } @else {
                    "not seen in this run."
                }
            }
        }
    }
}

fn about(results: &Results, subjects: &[Subject<'_>], styles: &Styles) -> Markup {
    html! {
        section {
            h2 { "The machine" }
            (machine::facts(&results.machine, results))
        }
        @if !results.runs.is_empty() {
            section {
                (list("How it was measured", &machine::how(results)))
                h2 { "The methods" }
                (machine::methods(results, styles))
            }
            section.wide {
                h2 { "All runs" }
                p.fine {
                    "Mops: million operations per second of wall time. Per CPU used: divided by the CPUs that were busy, trustees counted."
                }
                @for subject in subjects {
                    @if subjects.len() > 1 { h3 { (subject.name()) } }
                    (tables::runs(subject, styles))
                }
            }
        }
    }
}
