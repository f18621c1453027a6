//! `docs/sources.md` maps every id of the sources to the module that answers it.

use super::Finding;
use crate::workspace::{self, Workspace};
use anyhow::Result;
use std::collections::BTreeMap;

const FILE: &str = "docs/sources.md";

/// The ids: letter and how many.
const IDS: &[(char, u32)] = &[('D', 26), ('F', 8), ('C', 8), ('O', 11), ('L', 9), ('X', 7)];

/// What the module column says before there is one.
const NOT_YET: &str = "not yet";

/// The states a row can have.
const STATES: &[&str] = &["works", "partly", "later"];

pub(super) fn check(workspace: &Workspace) -> Result<Vec<Finding>> {
    let path = workspace.root.join(FILE);
    if !path.is_file() {
        return Ok(vec![Finding::error(
            FILE,
            "is missing; it maps every id to its module",
        )]);
    }
    let text = workspace::read(&path)?;
    let mut findings = Vec::new();
    let mut seen = BTreeMap::new();
    for (index, line) in text.lines().enumerate() {
        let Some(row) = Row::read(line) else { continue };
        let place = format!("{FILE}:{}", index + 1);
        if let Some(first) = seen.insert(row.id.to_owned(), index + 1) {
            let what = format!("{} has a row in line {first} already; keep one", row.id);
            findings.push(Finding::error(place.clone(), what));
        }
        findings.extend(
            row.check(workspace)
                .map(|what| Finding::error(place.clone(), what)),
        );
    }
    for (letter, count) in IDS {
        for number in 1..=*count {
            let id = format!("{letter}{number}");
            if !seen.contains_key(&id) {
                findings.push(Finding::error(FILE, format!("{id} has no row; add one")));
            }
        }
    }
    Ok(findings)
}

/// `| D1 | what | module | command | state, departures |`
struct Row<'a> {
    id: &'a str,
    modules: &'a str,
    command: &'a str,
    state: &'a str,
}

impl<'a> Row<'a> {
    fn read(line: &'a str) -> Option<Self> {
        let cells: Vec<&str> = line
            .trim()
            .strip_prefix('|')?
            .strip_suffix('|')?
            .split('|')
            .map(str::trim)
            .collect();
        let id = *cells.first()?;
        let letter = id.chars().next()?;
        let known = IDS.iter().any(|(l, _)| *l == letter);
        let numbered = id.len() > 1 && id[1..].bytes().all(|byte| byte.is_ascii_digit());
        if !known || !numbered {
            return None;
        }
        let cell = |index: usize| cells.get(index).copied().unwrap_or("");
        Some(Self {
            id,
            modules: cell(2),
            command: cell(3),
            state: cell(4),
        })
    }

    fn check(&self, workspace: &Workspace) -> Option<String> {
        let id = self.id;
        let state = self
            .state
            .split([',', ';', ':', '.', ' '])
            .next()
            .unwrap_or("");
        if !STATES.contains(&state) {
            return Some(format!(
                "{id} has the state `{}`; begin it with works, partly or later",
                self.state
            ));
        }
        let modules: Vec<&str> = quoted(self.modules).collect();
        if let Some(gone) = modules
            .iter()
            .find(|module| !workspace.root.join(module).exists())
        {
            return Some(format!(
                "{id} names {gone}, which does not exist; correct it"
            ));
        }
        if modules.is_empty() && self.modules != NOT_YET {
            return Some(format!(
                "{id} names no module; give `crates/…` or write {NOT_YET}"
            ));
        }
        if state == "later" {
            return None;
        }
        if modules.is_empty() {
            return Some(format!("{id} is said to work, but names no module"));
        }
        if quoted(self.command).next().is_none() {
            return Some(format!("{id} is said to work, but no command shows it"));
        }
        None
    }
}

/// The parts between backticks.
fn quoted(cell: &str) -> impl Iterator<Item = &str> {
    cell.split('`').skip(1).step_by(2)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every id as `later`, with the row of D1 replaced.
    fn with_d1(row: &str) -> Vec<String> {
        let mut table =
            String::from("| id | what | module | command | state |\n|---|---|---|---|---|\n");
        for (letter, count) in IDS {
            for number in 1..=*count {
                let id = format!("{letter}{number}");
                if id == "D1" {
                    table += &format!("{row}\n");
                } else {
                    table += &format!("| {id} | w | not yet | – | later |\n");
                }
            }
        }
        super::super::findings(check, &[(FILE, &table), ("crates/locks/src/mcs.rs", "")])
    }

    #[test]
    fn a_good_map_is_silent() {
        assert_eq!(
            with_d1("| D1 | w | `crates/locks/src/mcs.rs` | `cargo test` | works |"),
            [""; 0]
        );
        assert_eq!(with_d1("| D1 | w | not yet | – | later |"), [""; 0]);
    }

    #[test]
    fn holes_are_found() {
        let complaint = |row: &str| with_d1(row).join("\n");
        assert!(complaint("").contains("D1 has no row"));
        let twice = "| D1 | w | not yet | – | later |\n| D1 | w | not yet | – | later |";
        assert!(complaint(twice).contains("already"));
        assert!(
            complaint("| D1 | w | `crates/gone.rs` | `x` | works |").contains("does not exist")
        );
        assert!(complaint("| D1 | w | not yet | `x` | works |").contains("names no module"));
        assert!(complaint("| D1 | w | | – | later |").contains("write not yet"));
        let row = "| D1 | w | `crates/locks/src/mcs.rs` | – | works |";
        assert!(complaint(row).contains("no command shows it"));
        assert!(complaint("| D1 | w | not yet | – | |").contains("begin it with"));
        assert!(super::super::findings(check, &[])[0].contains("is missing"));
    }
}
