//! Steps one after the other, also after one has failed, and a summary at the end.

use crate::process::seconds;
use crate::workspace::Workspace;
use anyhow::Result;
use std::time::Instant;

/// How a command or a step came out, with a note for the summary. What was found or failed has
/// been printed.
#[derive(Debug)]
pub(crate) struct Verdict {
    pub(crate) is_good: bool,
    pub(crate) note: String,
}

impl Verdict {
    pub(crate) fn of(is_good: bool, note: impl ToString) -> Self {
        let note = note.to_string();
        Self { is_good, note }
    }
}

/// The context of an error in what a step needs of this machine. Then the step is not done,
/// which is no success either.
pub(crate) const CANNOT_RUN: &str = "it cannot run here";

pub(crate) type Step = fn(&Workspace) -> Result<Verdict>;

/// Runs every step; good if each is.
pub(crate) fn run<'a>(
    workspace: &Workspace,
    steps: impl IntoIterator<Item = &'a (&'a str, Step)>,
) -> Verdict {
    let start = Instant::now();
    let mut summary = String::new();
    let mut all = ("ok", true);
    for (name, step) in steps {
        println!("\n==> {name}");
        let begun = Instant::now();
        let (word, note) = match step(workspace) {
            Ok(verdict) if verdict.is_good => ("ok", verdict.note),
            Ok(verdict) => ("FAILED", verdict.note),
            Err(error) if error.to_string() == CANNOT_RUN => ("NOT DONE", format!("{error:#}")),
            Err(error) => ("FAILED", format!("{error:#}")),
        };
        let time = seconds(begun.elapsed());
        println!("<== {name}: {word} in {time} {note}");
        summary += &format!("{name:10} {word:8} {time:>9}  {note}\n");
        if word != "ok" {
            all = ("FAILED", false);
        }
    }
    let (word, is_good) = all;
    let time = seconds(start.elapsed());
    println!("\n==> summary\n{summary}{:10} {word:8} {time:>9}", "all");
    Verdict::of(is_good, "")
}

#[test]
fn every_step_must_pass() {
    let (_dir, workspace) = crate::workspace::fake(&[]);
    let passed: (&str, Step) = ("passed", |_| Ok(Verdict::of(true, "")));
    let failed: (&str, Step) = ("failed", |_| Ok(Verdict::of(false, "")));
    let error: (&str, Step) = ("error", |_| anyhow::bail!("it broke"));
    let not_done: (&str, Step) = ("not done", |_| anyhow::bail!(CANNOT_RUN));
    assert!(run(&workspace, &[passed]).is_good);
    for bad in [failed, error, not_done] {
        assert!(!run(&workspace, &[bad, passed]).is_good);
    }
}
