//! `corelay methods`: explains the methods that the lab compares.

use corelay_lab_measure::method::{Form, METHODS};
use corelay_lab_measure::workload::structure::{Structure, Visitor, visit};
use corelay_lab_report::exit::Exit;
use corelay_lab_report::{output, words};
use std::collections::BTreeMap;
use std::fmt::Write;

/// Columns of a line.
const WIDTH: usize = 80;

/// Explain the methods: what each name stands for, and what it promises
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Methods to explain; all if none is named
    #[arg(value_name = "METHOD")]
    names: Vec<String>,
}

/// A method's promise, name and description.
type Line = (Form, &'static str, &'static str);

pub(super) fn run(args: &Args) -> Result<Exit, String> {
    let all = all();
    let unknown = |name: &&String| all.iter().all(|(_, known, _)| known != name);
    if let Some(name) = args.names.iter().find(unknown) {
        return Err(format!(
            "there is no method `{name}`; `corelay methods` lists them"
        ));
    }
    let asked = |name| args.names.is_empty() || args.names.iter().any(|asked| asked == name);
    let mut by_form: BTreeMap<Form, Vec<&Line>> = BTreeMap::new();
    for line in all.iter().filter(|(_, name, _)| asked(*name)) {
        by_form.entry(line.0).or_default().push(line);
    }
    let width = all.iter().map(|(_, name, _)| name.len()).max().unwrap_or(0);
    let mut text = String::new();
    for (form, lines) in by_form {
        let gap = if text.is_empty() { "" } else { "\n" };
        let _ = writeln!(text, "{gap}{}", form.words());
        for (_, name, what) in lines {
            let first = format!("  {name:<width$}  ");
            let _ = writeln!(text, "{}", words::wrap(what, &first, WIDTH));
        }
    }
    output::say(&text)?;
    Ok(Exit::Fine)
}

/// The methods of the catalogue, then the structures that threads use directly.
fn all() -> Vec<Line> {
    struct Rivals(Vec<Line>);
    impl Visitor for Rivals {
        fn visit<S: Structure>(&mut self) {
            for rival in S::rivals() {
                let line = (rival.form, rival.name(), rival.what);
                if !self.0.contains(&line) {
                    self.0.push(line);
                }
            }
        }
    }
    let catalogue = METHODS.iter();
    let catalogue = catalogue.map(|entry| (entry.form, entry.name(), entry.what));
    let mut rivals = Rivals(catalogue.collect());
    visit(&mut rivals);
    rivals.0
}
