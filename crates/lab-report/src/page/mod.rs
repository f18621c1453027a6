//! The page: one HTML file that needs no other.
//!
//! Order matters: first the verdict, and in it first where delegation loses; then two
//! pictures that show most of it, throughput and latency; then all pictures; then what a doubting reader wants to check. The markup is XML-clean, which
//! lets a strict parser find any mistake in it.

pub mod figures;
mod latency;
pub mod machine;
pub mod parts;
pub mod shell;
mod tables;

use super::data::{self, MODES, Subject};
use super::latency::Group;
use super::method::{Form, Styles};
use super::verdict::{
    Advice, Comparison, Finding, Level, Need, Outcome, Section, Verdict, verdict,
};
use super::words::{self, html as prose};
use crate::plot::escape;
use corelay_lab_measure::schema::{Mode, Results};
use std::collections::BTreeMap;
use std::fmt::Write;

pub(super) fn html(results: &Results) -> String {
    let verdict = verdict(results);
    let styles = Styles::of(results.runs.iter().map(|r| r.method.as_str()));
    let subjects = Subject::all(results);
    let mut out = String::with_capacity(1 << 18);
    title(&mut out, results, &verdict);
    for section in &verdict.sections {
        told(&mut out, section, verdict.sections.len() > 1);
    }
    for told in &verdict.latency {
        latency::told(&mut out, told);
    }
    list(&mut out, "Please note", &verdict.notes);
    let groups = Group::all(results);
    latency::glance(&mut out, results, &groups, &styles);
    for (number, subject) in subjects.iter().enumerate() {
        pictures(&mut out, subject, number, results, &styles);
    }
    latency::pictures(&mut out, &groups, &styles);
    about(&mut out, results, &subjects, &styles);
    let made_by = shell::made_by(&results.command, &results.commit);
    shell::document(
        &name(results),
        &out,
        &made_by,
        &shell::Saved::samples("results.json", results),
    )
}

/// The file in a few words.
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

fn title(out: &mut String, results: &Results, verdict: &Verdict) {
    let where_ = data::own(results).map_or("here".to_owned(), |own| format!("for {own}"));
    let _ = write!(
        out,
        r#"<header><p class="brand">corelay</p><h1>Which way of sharing wins {}?</h1><p class="sub">{}</p><p class="headline">{}</p></header>"#,
        escape(&where_),
        escape(&name(results)),
        prose(&verdict.headline)
    );
}

fn told(out: &mut String, section: &Section, several: bool) {
    let _ = write!(
        out,
        r#"<section class="verdict"><p class="subject">{}</p>"#,
        escape(&section.subject)
    );
    out.push_str(r#"<div class="cards">"#);
    for (outcome, class) in [
        (Outcome::Loses, "loses"),
        (Outcome::Wins, "wins"),
        (Outcome::TooClose, "close"),
    ] {
        let groups = section.grouped(outcome);
        if groups.is_empty() {
            continue;
        }
        let _ = write!(
            out,
            r#"<div class="card {class}"><h2>{}</h2><p>{}</p>"#,
            outcome.title(),
            outcome.reading()
        );
        for (comparison, levels) in groups {
            ratios(out, comparison, &levels);
        }
        out.push_str("</div>");
    }
    out.push_str("</div>");
    if !section.findings.is_empty() {
        out.push_str(r#"<p class="fine">In brackets: 95 % intervals. Methods that promise different things are ranked apart, or the comparison says that it is not like with like.</p>"#);
    }
    advice(out, &section.advice);
    list(out, "Why", &section.why);
    let reservations = if several {
        "About this workload"
    } else {
        "What these figures do not say"
    };
    list(out, reservations, &section.notes);
    out.push_str("</section>");
}

/// One comparison as a table: a row per level, a column per mode.
fn ratios(out: &mut String, comparison: Comparison, levels: &BTreeMap<&Level, Vec<&Finding>>) {
    let _ = write!(out, "<h3>{}</h3><table>", prose(comparison.title()));
    let of = |mode: Mode| levels.values().flatten().any(|f| f.mode == mode);
    let modes: Vec<Mode> = MODES.into_iter().filter(|m| of(*m)).collect();
    if modes != [Mode::Unknown] {
        out.push_str("<thead><tr><th>variables</th>");
        for mode in &modes {
            let _ = write!(out, "<th>{}</th>", words::mode(*mode));
        }
        out.push_str("</tr></thead>");
    }
    out.push_str("<tbody>");
    for (level, findings) in levels {
        let _ = write!(out, "<tr><th>{}</th>", escape(&level.to_string()));
        for mode in &modes {
            match findings.iter().find(|f| f.mode == *mode) {
                Some(f) => {
                    let _ = write!(
                        out,
                        "<td>{} <small>({})</small></td>",
                        prose(&f.to_string()),
                        f.interval()
                    );
                }
                None => out.push_str("<td></td>"),
            }
        }
        out.push_str("</tr>");
    }
    out.push_str("</tbody></table>");
}

fn advice(out: &mut String, advice: &[Advice]) {
    if advice.is_empty() {
        return;
    }
    out.push_str(r#"<h2>What to use here</h2><div class="scroll"><table class="advice"><thead><tr><th>variables</th>"#);
    let needs = Need::met(advice);
    for need in &needs {
        let _ = write!(out, "<th>{}</th>", need.words());
    }
    out.push_str("</tr></thead><tbody>");
    for a in advice {
        let _ = write!(out, "<tr><th>{}</th>", escape(&a.level.to_string()));
        for &need in &needs {
            let _ = write!(
                out,
                r#"<td data-need="{}">{}</td>"#,
                need.words(),
                a.lines(need)
                    .iter()
                    .map(|l| prose(l))
                    .collect::<Vec<_>>()
                    .join("<br/>")
            );
        }
        out.push_str("</tr>");
    }
    out.push_str("</tbody></table></div>");
}

fn list(out: &mut String, title: &str, sentences: &[String]) {
    if sentences.is_empty() {
        return;
    }
    let _ = write!(out, r#"<h2>{title}</h2><ul class="prose">"#);
    for sentence in sentences {
        // A leading word with a colon is what the sentence is about.
        let text = match sentence.split_once(": ") {
            Some((about, rest)) if about.len() < 26 => {
                format!("<b>{}.</b> {}", prose(about), prose(&upper(rest)))
            }
            _ => prose(sentence),
        };
        let _ = write!(out, "<li>{text}</li>");
    }
    out.push_str("</ul>");
}

fn upper(text: &str) -> String {
    let mut letters = text.chars();
    letters
        .next()
        .map_or(String::new(), |c| c.to_uppercase().chain(letters).collect())
}

fn pictures(
    out: &mut String,
    subject: &Subject<'_>,
    number: usize,
    results: &Results,
    styles: &Styles,
) {
    let rows = figures::rows(subject, number, &results.machine, styles);
    if rows.is_empty() {
        return;
    }
    let _ = write!(
        out,
        r#"<section class="wide"><h2>Pictures: {}</h2>"#,
        escape(&subject.name())
    );
    let atomic = subject.has(Form::Instruction);
    let again = if atomic {
        "<code>atomic</code> and <code>mutex</code> are"
    } else {
        "<code>mutex</code> is"
    };
    let _ = write!(
        out,
        r#"<p class="fine">Lines are medians, bands quartiles; point at a line for its figures. {again} drawn again, pale, beside methods that answer later.</p>"#
    );
    for row in rows {
        let _ = write!(
            out,
            r#"<h3>{}</h3><div class="figures">"#,
            escape(&row.heading)
        );
        for figure in row.figures {
            let _ = write!(
                out,
                "<figure><figcaption>{}</figcaption>{}</figure>",
                escape(&figure.caption),
                figure.svg
            );
        }
        out.push_str("</div>");
    }
    let (seen, drawn) = (subject.modes(), data::drawn_modes(&subject.runs));
    for mode in [Mode::Near, Mode::Far]
        .into_iter()
        .filter(|m| !drawn.contains(m))
    {
        if !drawn.contains(&Mode::Unknown) {
            let how = if seen.contains(&mode) {
                "seen too rarely for a picture; its figures stand in the table of all runs."
            } else {
                "not seen in this run."
            };
            let _ = write!(out, r#"<p class="unseen">{}: {how}</p>"#, words::mode(mode));
        }
    }
    if subject.vars().len() > 1 && results.machine.cpus != 1 {
        let left_out = if atomic {
            " <code>atomic</code> is left out: it does one instruction, not any code."
        } else {
            ""
        };
        let _ = write!(
            out,
            r#"<h2>Who wins where</h2><p class="fine">The fastest method at each number of variables, with its Mops; ± counts those that cannot be told from it.{left_out}</p>"#
        );
        out.push_str(&tables::winners(subject, styles));
    }
    let threads = subject.main_threads(results.machine.cpus);
    if let Some(table) = threads.and_then(|t| tables::ceilings(subject, t)) {
        out.push_str(r#"<h2>What the round trip allows</h2><p class="fine">Models from the probed round trip, with what was measured beside them. They are yardsticks, not bounds: a lock that keeps its line for several operations in a row passes the first, requests that overlap or travel together pass the second.</p>"#);
        out.push_str(&table);
    }
    out.push_str("</section>");
}

fn about(out: &mut String, results: &Results, subjects: &[Subject<'_>], styles: &Styles) {
    out.push_str(r#"<section><h2>The machine</h2>"#);
    out.push_str(&machine::facts(&results.machine, results));
    out.push_str("</section>");
    if results.runs.is_empty() {
        return;
    }
    out.push_str("<section>");
    list(out, "How it was measured", &machine::how(results));
    out.push_str("<h2>The methods</h2>");
    out.push_str(&machine::methods(results, styles));
    out.push_str(r#"</section><section class="wide"><h2>All runs</h2><p class="fine">Mops: million operations per second of wall time. Per CPU used: divided by the CPUs that were busy, trustees counted.</p>"#);
    for subject in subjects {
        if subjects.len() > 1 {
            let _ = write!(out, "<h3>{}</h3>", escape(&subject.name()));
        }
        out.push_str(&tables::runs(subject, styles));
    }
    out.push_str("</section>");
}
