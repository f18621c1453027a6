//! Steps one after the other, also after one has failed, and a summary at the end.

use crate::process::seconds;
use crate::workspace::Workspace;
use anyhow::Result;
use std::time::Instant;

/// How a command or a step came out, with a note for the summary.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    Passed(String),
    /// Something was found or failed; it has been printed.
    Failed(String),
    /// It cannot run on this machine, and why. That is no success.
    NotDone(String),
}

impl Verdict {
    pub(crate) fn of(is_good: bool, note: impl ToString) -> Self {
        match is_good {
            true => Self::Passed(note.to_string()),
            false => Self::Failed(note.to_string()),
        }
    }

    pub(crate) fn is_good(&self) -> bool {
        matches!(self, Self::Passed(_))
    }

    fn words(&self) -> (&str, &str) {
        match self {
            Self::Passed(note) => ("ok", note),
            Self::Failed(note) => ("FAILED", note),
            Self::NotDone(why) => ("NOT DONE", why),
        }
    }
}

pub(crate) type Step = fn(&Workspace) -> Result<Verdict>;

/// Runs every step; good if each is.
pub(crate) fn run<'a>(
    workspace: &Workspace,
    steps: impl IntoIterator<Item = &'a (&'a str, Step)>,
) -> Verdict {
    let start = Instant::now();
    let mut summary = String::new();
    let mut is_good = true;
    for (name, step) in steps {
        println!("\n==> {name}");
        let begun = Instant::now();
        let verdict = step(workspace).unwrap_or_else(|error| {
            println!("{name}: {error:#}");
            Verdict::Failed(format!("{error:#}"))
        });
        let time = seconds(begun.elapsed());
        let (word, note) = verdict.words();
        println!("<== {name}: {word} in {time}");
        summary += &format!("{name:10} {word:8} {time:>9}  {note}\n");
        is_good &= verdict.is_good();
    }
    let verdict = Verdict::of(is_good, "");
    let (word, time) = (verdict.words().0, seconds(start.elapsed()));
    println!("\n==> summary\n{summary}{:10} {word:8} {time:>9}", "all");
    verdict
}

#[test]
fn every_step_must_pass() {
    let (_dir, workspace) = crate::workspace::fake(&[]);
    let passed: (&str, Step) = ("passed", |_| Ok(Verdict::of(true, "")));
    let error: (&str, Step) = ("error", |_| anyhow::bail!("it broke"));
    let not_done: (&str, Step) = ("not done", |_| Ok(Verdict::NotDone("why".to_owned())));
    assert!(run(&workspace, &[passed]).is_good());
    assert!(!run(&workspace, &[error, passed]).is_good());
    assert!(!run(&workspace, &[passed, not_done]).is_good());
}
