//! Prints the verdict on a terminal.

use super::{Answer, Finding, Need, Section, Standing, Verdict};
use crate::table::grid::Grid;
use crate::words::{self, wrap};
use corelay_lab_measure::schema::Mode;
use std::fmt::{self, Write};

/// Columns of a line of the whole verdict. It fits every terminal and still reads as prose.
const WIDTH: usize = 88;
/// Columns of a line of the answer.
const ANSWER_WIDTH: usize = 80;
/// Lines of the answer. With those that name the page it fills a terminal of 25 lines at most.
const ANSWER_LINES: usize = 23;
/// Columns of a method's name in the answer's legend.
const LEGEND_WIDTH: usize = 14;
/// Columns of a level's name: `beyond caches (1,048,576)`.
const LEVEL_WIDTH: usize = 25;

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.answer())?;
        for section in &self.sections {
            write!(f, "{section}")?;
        }
        for grid in &self.best {
            write!(f, "\n{grid}")?;
        }
        for latency in &self.latency {
            writeln!(
                f,
                "\nLATENCY UNDER LOAD, {}",
                latency.subject.to_uppercase()
            )?;
            list(
                f,
                "Counted from the moment at which an operation was due",
                &latency.sentences,
            )?;
        }
        list(f, "Please note", &self.notes)?;
        list(f, "Unavailable", &self.unavailable)
    }
}

impl Verdict {
    /// Returns the answer alone: at most three sentences and a table for each workload.
    pub fn answer(&self) -> String {
        let answers: Vec<String> = self.answers.iter().map(Answer::to_string).collect();
        answers.join("\n")
    }
}

impl fmt::Display for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = String::new();
        for sentence in &self.sentences {
            writeln!(text, "{}", wrap(sentence, "", ANSWER_WIDTH))?;
        }
        if let Some(table) = &self.table {
            writeln!(text, "\n{}", table.title)?;
            write_words(&mut text, table)?;
            for (at, what) in &self.elsewhere {
                writeln!(
                    text,
                    "{}",
                    wrap(&format!("{at}: {what}."), "", ANSWER_WIDTH)
                )?;
            }
            writeln!(text, "{}", wrap(&self.reading, "", ANSWER_WIDTH))?;
        }
        f.write_str(&text)?;
        let legend = self.legend.iter().map(|(name, what)| {
            let first = format!("  {name:<LEGEND_WIDTH$} ");
            wrap(what, &first, ANSWER_WIDTH)
        });
        let legend: Vec<String> = legend.collect();
        let mut room = ANSWER_LINES.saturating_sub(text.lines().count());
        let lines = |entries: &[String]| entries.iter().map(|e| e.lines().count()).sum::<usize>();
        for (at, entry) in legend.iter().enumerate() {
            // The others, or the line that says where they are.
            let others = lines(&legend[at + 1..]).min(1);
            if lines(&legend[at..=at]) + others > room {
                return writeln!(f, "  `corelay methods` explains the other names.");
            }
            room -= lines(&legend[at..=at]);
            writeln!(f, "{entry}")?;
        }
        Ok(())
    }
}

impl fmt::Display for Section {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "\n{}, BY NUMBER OF VARIABLES",
            self.subject.to_uppercase()
        )?;
        for standing in [Standing::Loses, Standing::Wins, Standing::TooClose] {
            let groups = self.grouped(standing);
            if groups.is_empty() {
                continue;
            }
            writeln!(f, "\n{}. {}", standing.title(), standing.reading())?;
            for (comparison, levels) in groups {
                writeln!(f, "{}", wrap(comparison.title(), "  ", WIDTH))?;
                for (level, findings) in levels {
                    let first = format!("    {:<LEVEL_WIDTH$} ", level.to_string());
                    writeln!(f, "{}", wrap(&ratios(&findings), &first, WIDTH))?;
                }
            }
        }
        if !self.advice.is_empty() {
            writeln!(f, "\nThe fastest methods, by need")?;
        }
        for advice in &self.advice {
            writeln!(f, "  {}", advice.level)?;
            for need in Need::met(&self.advice) {
                let first = format!("    {:<26}", need.words());
                writeln!(f, "{}", wrap(&advice.lines(need).join("; "), &first, WIDTH))?;
            }
        }
        list(f, "Why", &self.why)?;
        list(f, "About this workload", &self.notes)
    }
}

/// Writes a table of words in columns.
fn write_words(f: &mut impl Write, table: &Grid) -> fmt::Result {
    let lines: Vec<&Vec<String>> = std::iter::once(&table.head).chain(&table.rows).collect();
    let letters = |text: &str| text.chars().count();
    let width = |column: usize| lines.iter().map(|line| letters(&line[column])).max();
    let widths: Vec<usize> = (0..table.head.len()).filter_map(width).collect();
    for line in lines {
        let cells = line.iter().zip(&widths);
        let cells = cells.map(|(cell, &width)| format!("{cell:<width$}"));
        writeln!(f, "{}", cells.collect::<Vec<_>>().join("  ").trim_end())?;
    }
    Ok(())
}

/// Formats the findings of one level and comparison, mode by mode, with their intervals.
fn ratios(findings: &[&Finding]) -> String {
    let one = |finding: &&Finding| {
        let mode = match finding.mode {
            Mode::Unknown => String::new(),
            mode => format!("{} ", words::mode(mode)),
        };
        format!("{mode}{finding} ({})", finding.interval())
    };
    findings.iter().map(one).collect::<Vec<_>>().join("; ")
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_answer_fits_a_terminal_and_explains_the_names_for_which_there_is_room() {
        let told = |rows: usize, names: usize, what: &'static str| {
            let table = Grid {
                title: "What to use here".to_owned(),
                head: vec!["variables".to_owned()],
                rows: vec![vec!["1".to_owned()]; rows],
            };
            let answer = Answer {
                sentences: vec!["x ".repeat(60), "y ".repeat(100), "z ".repeat(60)],
                table: Some(table),
                reading: "r ".repeat(70),
                elsewhere: vec![("async code".to_owned(), "a ".repeat(70)); 2],
                legend: vec![("name".to_owned(), what); names],
                ..Answer::default()
            };
            answer.to_string()
        };
        let long = "a lock that is described in so many words that they do not fit in one line";
        for names in 0..12 {
            for what in ["a lock", long] {
                let text = told(6, names, what);
                assert!(text.lines().count() <= ANSWER_LINES, "{text}");
                assert_eq!(
                    text.matches("  name").count() < names,
                    text.contains("corelay methods"),
                    "{text}"
                );
            }
        }
        assert!(told(3, 3, "a lock").ends_with("a lock\n"));
        assert!(told(3, 12, "a lock").ends_with("other names.\n"));
    }
}
