//! The handout's page: what there is, then each step, then the machine.

use super::{Handout, Told};
use crate::shown::{Guess, Part, Shown};
use corelay_lab_report::page::parts::{notes, table};
use corelay_lab_report::page::{machine, shell};
use corelay_lab_report::plot::{Place, escape, significant};
use corelay_lab_report::words::{count, html as prose};
use std::fmt::Write;

pub(super) fn html(handout: &Handout) -> String {
    let results = &handout.results;
    let mut out = String::with_capacity(1 << 16);
    title(&mut out, handout);
    alarm(&mut out, handout);
    contents(&mut out, handout);
    for (number, told) in handout.course.iter().enumerate() {
        let _ = write!(
            out,
            r#"<section class="step" id="step-{}"><h2>{}. {}</h2>"#,
            escape(told.step),
            number + 1,
            escape(name(told))
        );
        match &told.outcome {
            Ok(shown) => step(&mut out, shown),
            Err(why) => boxed(&mut out, "This step could not be run", [why]),
        }
        out.push_str("</section>");
    }
    out.push_str(r#"<section class="step" id="machine"><h2>The machine</h2>"#);
    out.push_str(&machine::facts(&results.machine, results));
    out.push_str("</section>");
    let made_by = shell::made_by(&results.command, &results.commit);
    let saved = shell::Saved {
        what: "all that was measured",
        file: "results.json",
        data: handout,
    };
    shell::document(
        "Sharing between cores, step by step",
        &out,
        &made_by,
        &saved,
    )
}

/// What a step is called: its title, or its name where it has not come to that.
fn name(told: &Told) -> &str {
    match &told.outcome {
        Ok(shown) => &shown.title,
        Err(_) => told.step,
    }
}

fn title(out: &mut String, handout: &Handout) {
    let machine = &handout.results.machine;
    let model = match &*machine.model {
        "" => "unknown processor",
        model => model,
    };
    let _ = write!(
        out,
        r#"<header><p class="brand">corelay lab</p><h1>Sharing between cores, step by step</h1><p class="sub">{}, run with {} on {}.</p></header>"#,
        count(handout.course.len() as u64, "step", "steps"),
        count(machine.cpus as u64, "CPU", "CPUs"),
        escape(model)
    );
}

/// What is wrong is said before anything else, too.
fn alarm(out: &mut String, handout: &Handout) {
    let sentence = |told: &Told| match &told.outcome {
        Err(_) => format!("Step `{}` could not be run.", told.step),
        Ok(_) => format!(
            "In step `{}` a check has found something wrong: its figures are not to be trusted.",
            told.step
        ),
    };
    let wrong = handout.course.iter().filter(|told| !told.is_right());
    let sentences: Vec<String> = wrong.map(sentence).collect();
    if !sentences.is_empty() {
        boxed(out, "Not all of it is right", &sentences);
    }
}

fn boxed<'a>(out: &mut String, title: &str, sentences: impl IntoIterator<Item = &'a String>) {
    let _ = write!(
        out,
        r#"<div class="alarm" role="alert"><h3>{}</h3><ul class="prose">"#,
        escape(title)
    );
    for sentence in sentences {
        let _ = write!(out, "<li>{}</li>", prose(sentence));
    }
    out.push_str("</ul></div>");
}

fn contents(out: &mut String, handout: &Handout) {
    out.push_str(r#"<nav><h2>Contents</h2><ol class="prose">"#);
    for told in &handout.course {
        let _ = write!(
            out,
            r##"<li><a href="#step-{}">{}</a></li>"##,
            escape(told.step),
            escape(name(told))
        );
    }
    out.push_str(r##"</ol><p class="fine">and <a href="#machine">the machine</a></p></nav>"##);
}

fn step(out: &mut String, shown: &Shown) {
    if !shown.is_right() {
        let title = "A check has found this wrong, so do not trust the rest of the step";
        boxed(out, title, &shown.wrong);
    }
    if let Some(guess) = &shown.guess {
        guessed(out, guess);
    }
    for part in &shown.parts {
        match part {
            Part::Words(words) => {
                let _ = write!(out, "<p>{}</p>", prose(words));
            }
            Part::Table(grid) => table(out, grid),
            Part::Picture(picture) => {
                let _ = write!(
                    out,
                    "<figure><figcaption>{}</figcaption>{}</figure>",
                    escape(&picture.caption),
                    (picture.draw)(Place::Page)
                );
            }
            Part::Code { caption, text } => {
                let _ = write!(
                    out,
                    r#"<h3>{}</h3><pre tabindex="0">{}</pre>"#,
                    prose(caption),
                    escape(text.trim_end())
                );
            }
        }
    }
    notes(out, "What to look at", &shown.look_at);
}

/// The guess and the figure, side by side.
fn guessed(out: &mut String, guess: &Guess) {
    let value = |value: Option<f64>, none: &str| match value {
        Some(value) => format!("{} {}", significant(value), guess.unit),
        None => none.to_owned(),
    };
    let _ = write!(
        out,
        r#"<div class="guess"><p>{}</p><div>the guess<b>{}</b></div><div>here it was<b>{}</b></div></div>"#,
        prose(&guess.question),
        escape(&value(guess.guessed, "none")),
        escape(&value(guess.measured, "not to be had"))
    );
}
