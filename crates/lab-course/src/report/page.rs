//! The handout's page: the contents, then each step, then the machine.

use super::{CourseStep, Handout};
use crate::shown::{Guess, Part, Shown};
use corelay_lab_report::page::parts::{notes, picture, table};
use corelay_lab_report::page::{machine, shell};
use corelay_lab_report::plot::{Medium, significant};
use corelay_lab_report::words::{count, prose};
use maud::{Markup, html};

pub(super) fn html(handout: &Handout) -> String {
    let results = &handout.results;
    let body = html! {
        (title(handout))
        (alarm(handout))
        (contents(handout))
        @for (number, run) in handout.course.iter().enumerate() {
            section.step id={ "step-" (run.step) } {
                h2 { (number + 1) ". " (name(run)) }
                @match &run.outcome {
                    Ok(shown) => { (step(shown)) }
                    Err(why) => { (boxed("This step could not be run", [why])) }
                }
            }
        }
        section.step id="machine" {
            h2 { "The machine" }
            (machine::facts(&results.machine, results))
        }
    };
    let made_by = shell::made_by(&results.command, &results.commit);
    let saved = shell::Saved {
        what: "all that was measured",
        file: "results.json",
        data: handout,
    };
    let title = "Sharing between cores, step by step";
    shell::document(title, &body, &made_by, &saved)
}

/// Returns a step's title, or its name if it was not run.
fn name(run: &CourseStep) -> &str {
    match &run.outcome {
        Ok(shown) => &shown.title,
        Err(_) => run.step,
    }
}

fn title(handout: &Handout) -> Markup {
    let machine = &handout.results.machine;
    let model = match &*machine.model {
        "" => "unknown processor",
        model => model,
    };
    html! {
        header {
            p.brand { "corelay lab" }
            h1 { "Sharing between cores, step by step" }
            p.sub {
                (count(handout.course.len() as u64, "step", "steps")) ", run with "
                (count(machine.cpus as u64, "CPU", "CPUs")) " on " (model) "."
            }
        }
    }
}

/// Renders the warning on top of the page: the steps that failed a check or could not be run.
fn alarm(handout: &Handout) -> Markup {
    let sentence = |run: &CourseStep| match &run.outcome {
        Err(_) => format!("Step `{}` could not be run.", run.step),
        Ok(_) => format!(
            "In step `{}` a check has found something wrong: its figures are not to be trusted.",
            run.step
        ),
    };
    let wrong = handout.course.iter().filter(|run| !run.is_right());
    let sentences: Vec<String> = wrong.map(sentence).collect();
    html! {
        @if !sentences.is_empty() { (boxed("Not all of it is right", &sentences)) }
    }
}

fn boxed<'a>(title: &str, sentences: impl IntoIterator<Item = &'a String>) -> Markup {
    html! {
        div.alarm role="alert" {
            h3 { (title) }
            ul.prose {
                @for sentence in sentences { li { (prose(sentence)) } }
            }
        }
    }
}

fn contents(handout: &Handout) -> Markup {
    html! {
        nav {
            h2 { "Contents" }
            ol.prose {
                @for run in &handout.course {
                    li { a href={ "#step-" (run.step) } { (name(run)) } }
                }
            }
            p.fine { "and " a href="#machine" { "the machine" } }
        }
    }
}

fn step(shown: &Shown) -> Markup {
    html! {
        @if !shown.is_right() {
            (boxed(
                "A check has found this wrong, so do not trust the rest of the step",
                &shown.wrong,
            ))
        }
        @for guess in shown.ballpark.iter().chain(&shown.guess) { (guessed(guess)) }
        @for part in &shown.parts {
            @match part {
                Part::Words(words) => { p { (prose(words)) } }
                Part::Table(grid) => { (table(grid)) }
                Part::Picture(drawn) => { (picture(&drawn.caption, &(drawn.draw)(Medium::Page))) }
                Part::Code { caption, text } => {
                    h3 { (prose(caption)) }
                    pre tabindex="0" { (text.trim_end()) }
                }
            }
        }
        (notes("What to look at", &shown.look_at))
    }
}

/// Shows the guess and the figure side by side.
fn guessed(guess: &Guess) -> Markup {
    let value = |value: Option<f64>, none: &str| match value {
        Some(value) => format!("{} {}", significant(value), guess.unit),
        None => none.to_owned(),
    };
    html! {
        div.guess {
            p { (prose(&guess.question)) }
            div { "the guess" b { (value(guess.guessed, "none")) } }
            div { "here it was" b { (value(guess.measured, "not available")) } }
        }
    }
}
