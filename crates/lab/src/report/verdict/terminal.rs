//! The verdict on a terminal.

use super::{Need, Outcome, Section, Verdict, ratios};
use crate::report::words::wrap;
use std::fmt;

/// Columns of a line: fits every terminal and still reads as prose.
const WIDTH: usize = 88;

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}", wrap(&self.headline, "", WIDTH))?;
        for section in &self.sections {
            write!(f, "{section}")?;
        }
        list(f, "Please note", &self.notes)
    }
}

impl fmt::Display for Section {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "\n{}", self.subject.to_uppercase())?;
        for (outcome, title) in [
            (Outcome::Loses, "Where delegation loses"),
            (Outcome::Wins, "Where delegation wins"),
            (Outcome::TooClose, "Too close to call"),
        ] {
            let groups = self.grouped(outcome);
            if groups.is_empty() {
                continue;
            }
            writeln!(f, "\n{title}")?;
            for (comparison, levels) in groups {
                writeln!(f, "{}", wrap(comparison.title(), "  ", WIDTH))?;
                for (level, findings) in levels {
                    writeln!(f, "{}", wrap(&format!("{level}: {}", ratios(&findings)), "    - ", WIDTH))?;
                }
            }
        }
        if !self.advice.is_empty() {
            writeln!(f, "\nWhat to use here")?;
        }
        for advice in &self.advice {
            writeln!(f, "  {}", advice.level)?;
            for need in Need::ALL {
                let first = format!("    {:<26}", need.words());
                writeln!(f, "{}", wrap(&advice.words(need), &first, WIDTH))?;
            }
        }
        list(f, "Why", &self.why)?;
        list(f, "About this workload", &self.notes)
    }
}

fn list(f: &mut fmt::Formatter<'_>, title: &str, sentences: &[String]) -> fmt::Result {
    if sentences.is_empty() {
        return Ok(());
    }
    writeln!(f, "\n{title}")?;
    for sentence in sentences {
        writeln!(f, "{}", wrap(sentence, "  - ", WIDTH))?;
    }
    Ok(())
}
