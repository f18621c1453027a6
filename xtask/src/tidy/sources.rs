//! `docs/sources.md` maps every id of the sources to the module that answers it.

use super::Finding;
use crate::workspace::{self, Workspace};
use anyhow::Result;
use std::collections::BTreeMap;
use std::path::Path;

const FILE: &str = "docs/sources.md";

/// The ids: letter and how many.
const IDS: &[(char, u32)] = &[('D', 26), ('F', 8), ('C', 8), ('O', 11), ('L', 9), ('X', 7)];

/// The entry of the module column while there is no module.
const NOT_YET: &str = "not yet";

/// The states a row can have.
const STATES: &[&str] = &["works", "partly", "later"];

pub(super) fn check(workspace: &Workspace) -> Result<Vec<Finding>> {
    let path = workspace.root.join(FILE);
    if !path.is_file() {
        let what = "is missing; it maps every id to its module";
        return Ok(vec![Finding::error(FILE, what)]);
    }
    let text = workspace::read(&path)?;
    let mut findings = Vec::new();
    let mut lines: BTreeMap<String, Option<usize>> = ids().map(|id| (id, None)).collect();
    for (line, text) in (1..).zip(text.lines()) {
        let cells: Vec<&str> = text.trim().split('|').map(str::trim).collect();
        let ["", id, row @ .., ""] = cells.as_slice() else {
            continue;
        };
        let Some(first) = lines.get_mut(*id) else {
            continue;
        };
        let mut found = |what| {
            let place = format!("{FILE}:{line}");
            findings.push(Finding::error(place, format!("{id} {what}")));
        };
        match first.replace(line) {
            Some(first) => found(format!("has a row in line {first} already; keep one")),
            None => complaint(row, &workspace.root).into_iter().for_each(found),
        }
    }
    let missing = lines.iter().filter(|(_, line)| line.is_none());
    let finding = |(id, _)| Finding::error(FILE, format!("{id} has no row; add one"));
    findings.extend(missing.map(finding));
    Ok(findings)
}

fn ids() -> impl Iterator<Item = String> {
    let of = |(letter, count): &(char, u32)| {
        let letter = *letter;
        (1..=*count).map(move |number| format!("{letter}{number}"))
    };
    IDS.iter().flat_map(of)
}

/// Says what is wrong with a row `| D1 | what | modules | commands | state, departures |`, given
/// without its id.
fn complaint(row: &[&str], root: &Path) -> Option<String> {
    let cell = |index: usize| row.get(index).copied().unwrap_or_default();
    let (modules, commands, state) = (cell(1), cell(2), cell(3));
    let word = state.split([',', ';', ':', '.', ' ']).next()?;
    if !STATES.contains(&word) {
        return Some(format!(
            "has the state `{state}`; begin it with works, partly or later"
        ));
    }
    if let Some(gone) = quoted(modules).find(|module| !root.join(module).exists()) {
        return Some(format!("names {gone}, which does not exist; correct it"));
    }
    let (has_module, works) = (quoted(modules).next().is_some(), word != "later");
    if !has_module && modules != NOT_YET {
        let what = format!("names no module; give `crates/…` or write {NOT_YET}");
        return Some(what);
    }
    if works && !has_module {
        return Some("is said to work, but names no module".to_owned());
    }
    if works && quoted(commands).next().is_none() {
        return Some("is said to work, but no command shows it".to_owned());
    }
    None
}

/// The parts between backticks.
fn quoted(cell: &str) -> impl Iterator<Item = &str> {
    cell.split('`').skip(1).step_by(2)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every id as `later`, with the row of D1 replaced.
    #[track_caller]
    fn with_d1(row: &str, wanted: &[&str]) {
        let later = |id: &String| format!("| {id} | w | not yet | – | later |\n");
        let others: String = ids().filter(|id| id != "D1").map(|id| later(&id)).collect();
        let table = format!("| id | what | module |\n|---|---|---|\n{row}\n{others}");
        let files = [(FILE, table.as_str()), ("crates/locks/src/mcs.rs", "")];
        super::super::assert_finds(check, &files, wanted);
    }

    #[test]
    fn a_good_map_is_silent() {
        with_d1(
            "| D1 | w | `crates/locks/src/mcs.rs` | `cargo test` | works |",
            &[],
        );
        with_d1("| D1 | w | not yet | – | later |", &[]);
    }

    #[test]
    fn holes_are_found() {
        with_d1("", &["D1 has no row"]);
        let twice = "| D1 | w | not yet | – | later |\n| D1 | w | not yet | – | later |";
        with_d1(
            twice,
            &["docs/sources.md:4: D1 has a row in line 3 already"],
        );
        with_d1(
            "| D1 | w | `crates/gone.rs` | `x` | works |",
            &["does not exist"],
        );
        with_d1("| D1 | w | not yet | `x` | works |", &["names no module"]);
        with_d1("| D1 | w | | – | later |", &["write not yet"]);
        let row = "| D1 | w | `crates/locks/src/mcs.rs` | – | works |";
        with_d1(row, &["no command shows it"]);
        with_d1("| D1 | w | not yet | – | |", &["begin it with"]);
        super::super::assert_finds(check, &[], &["is missing"]);
    }
}
