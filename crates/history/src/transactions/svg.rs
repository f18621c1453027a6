//! An anomaly as a picture for a browser: the transactions below each other in the order of the
//! cycle, the reasons as arrows between them, and beside them the time that each took.

use super::anomaly::{Anomaly, Step};
use super::graph::Dependency;
use std::fmt::{Debug, Write};

const WIDTH: usize = 980;
/// The left edge of the boxes, and their width.
const BOX: (usize, usize) = (48, 500);
/// The left edge of the time lines, and their width.
const TIME: (usize, usize) = (590, 350);
const TOP: usize = 76;
const LINE: usize = 19;
/// The most characters of a line of a box, and of a reason.
const COLUMNS: (usize, usize) = (60, 68);

const STYLE: &str = "\
text{font:14px system-ui,sans-serif;fill:#222}
.mono{font:13px ui-monospace,monospace}.title{font-size:18px;font-weight:600}
.name,.label{font-weight:600}.dim{fill:#6a6a6a}
.box{fill:#f5f7fa;stroke:#8a97a6}.bar{fill:#c9d6e6;stroke:#5d7896}.tick{stroke:#dde2e8}
.edge{fill:none;stroke-width:2}";

/// The colour of a dependency, and its dashes.
fn stroke(dependency: Dependency) -> (&'static str, &'static str) {
    match dependency {
        Dependency::Ww | Dependency::WwRealTime => ("#8a5a00", "none"),
        Dependency::Wr => ("#1769aa", "none"),
        Dependency::Rw | Dependency::RwRealTime => ("#b3261e", "7 4"),
        Dependency::RealTime => ("#5f6368", "2 4"),
    }
}

impl<K: Debug> Anomaly<K> {
    /// Draws the anomaly as a file for a browser (SVG).
    ///
    /// ```
    /// use corelay_history::Call;
    /// use corelay_history::transactions::{History, Level, Operation::*, Outcome::*, check};
    ///
    /// let mut history = History::new();
    /// history.push(0, Call::returned(vec![Read("x", None), Write("y", 1)], 0..=5, Committed));
    /// history.push(1, Call::returned(vec![Read("y", None), Write("x", 1)], 1..=4, Committed));
    /// let anomalies = check(&history, Level::Serializable).unwrap_err();
    /// assert!(anomalies.worst().to_svg().starts_with("<svg"));
    /// ```
    pub fn to_svg(&self) -> String {
        let mut page = Page::default();
        let mut y = TOP;
        let mut rows = Vec::new();
        for transaction in 0..self.bars.len() {
            let height = self.draw_box(&mut page, transaction, y);
            rows.push((y, height));
            y += height;
            let next = self.steps.iter().find(|step| step.from == transaction);
            if let Some(step) = next {
                y = match step.to > transaction {
                    true => page.arrow_down(step, y),
                    false => page.arrow_back(step, y, rows[step.to].0),
                };
            } else {
                y += LINE;
            }
        }
        for line in wrap(self.what(), COLUMNS.1) {
            y += LINE;
            page.text(BOX.0, y, "", &line);
        }
        y += LINE;
        self.draw_times(&mut page, &rows, y);
        let mut svg = String::new();
        put(
            &mut svg,
            format_args!(
                "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{WIDTH}\" height=\"{y}\" \
                 viewBox=\"0 0 {WIDTH} {y}\" role=\"img\">\n<title>{}</title>\n<style>{STYLE}\
                 </style>\n<rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n",
                escaped(&self.kind.to_string())
            ),
        );
        svg.push_str(&page.body);
        svg.push_str("</svg>\n");
        svg
    }

    /// Draws the box of a transaction at `y`, and returns its height.
    fn draw_box(&self, page: &mut Page, transaction: usize, y: usize) -> usize {
        let bar = &self.bars[transaction];
        let operations = self.operations(transaction);
        let lines: Vec<String> = operations
            .iter()
            .flat_map(|text| wrap(text, COLUMNS.0))
            .collect();
        let height = LINE * (lines.len() + 1) + 14;
        page.put(format_args!(
            "<rect class=\"box\" x=\"{}\" y=\"{y}\" width=\"{}\" height=\"{height}\" rx=\"6\"/>\n",
            BOX.0, BOX.1
        ));
        page.text(BOX.0 + 12, y + LINE + 2, "name", &bar.text);
        let whose = format!(
            "transaction {} of thread {}{}",
            bar.number,
            bar.thread,
            self.ending(transaction)
        );
        page.text(BOX.0 + 44, y + LINE + 2, "dim", &whose);
        for (n, line) in lines.iter().enumerate() {
            page.text(BOX.0 + 12, y + LINE * (n + 2) + 3, "mono", line);
        }
        height
    }

    /// Draws the time of each transaction beside its box. Only the order of begins and ends is shown.
    fn draw_times(&self, page: &mut Page, rows: &[(usize, usize)], bottom: usize) {
        page.text(BOX.0, 36, "title", &self.kind.to_string());
        page.text(
            TIME.0,
            TOP - 14,
            "dim",
            "time, by the order of begins and ends →",
        );
        let calls = self.bars.iter().map(|bar| &bar.call);
        let mut stamps: Vec<u64> = calls
            .flat_map(|call| std::iter::once(call.invoked()).chain(call.ended()))
            .collect();
        stamps.sort_unstable();
        stamps.dedup();
        let column = |stamp: u64| {
            let rank = stamps.partition_point(|other| *other < stamp);
            TIME.0 + TIME.1 * rank / stamps.len().max(2)
        };
        for stamp in &stamps {
            page.put(format_args!(
                "<path class=\"tick\" d=\"M{0} {1}V{2}\"/>\n",
                column(*stamp),
                TOP - 4,
                bottom - LINE
            ));
        }
        for (bar, (y, height)) in self.bars.iter().zip(rows) {
            let from = column(bar.call.invoked());
            let to = bar.call.ended().map_or(TIME.0 + TIME.1, column);
            let y = y + height / 2 - 12;
            page.put(format_args!(
                "<rect class=\"bar\" x=\"{from}\" y=\"{y}\" width=\"{}\" height=\"24\" rx=\"4\"/>\n",
                (to - from).max(4)
            ));
            page.text(from + 6, y + 17, "name", &bar.text);
        }
    }
}

#[derive(Default)]
struct Page {
    body: String,
}

impl Page {
    fn put(&mut self, what: std::fmt::Arguments<'_>) {
        put(&mut self.body, what);
    }

    fn text(&mut self, x: usize, y: usize, class: &str, text: &str) {
        let text = escaped(text);
        self.put(format_args!(
            "<text class=\"{class}\" x=\"{x}\" y=\"{y}\">{text}</text>\n"
        ));
    }

    /// Draws an arrow from a box that ends at `y` to the next; returns where that begins.
    fn arrow_down(&mut self, step: &Step, y: usize) -> usize {
        let x = BOX.0 + 24;
        let to = self.reason(step, y, x + 20, "") + 8;
        self.arrow(
            step.dependency,
            &format!("M{x} {y}V{}", to - 9),
            (x, to),
            true,
        );
        to
    }

    /// Draws an arrow from the last box, which ends at `y`, to the side of one that begins at `top`;
    /// returns where its text ends.
    fn arrow_back(&mut self, step: &Step, y: usize, top: usize) -> usize {
        let (x, to) = (BOX.0 + 24, top + 20);
        let path = format!(
            "M{x} {y}v14q0 10-10 10H{}q-12 0-12-12V{}q0-12 12-12H{}",
            30,
            to + 12,
            BOX.0 - 9
        );
        self.arrow(step.dependency, &path, (BOX.0, to), false);
        self.reason(step, y, x + 20, &format!(" back to T{}", step.to + 1))
    }

    fn arrow(&mut self, dependency: Dependency, path: &str, (x, y): (usize, usize), down: bool) {
        let (colour, dashes) = stroke(dependency);
        self.put(format_args!(
            "<path class=\"edge\" stroke=\"{colour}\" stroke-dasharray=\"{dashes}\" d=\"{path}\"/>\n"
        ));
        let head = if down { "l-5-10h10z" } else { "l-10-5v10z" };
        self.put(format_args!(
            "<path fill=\"{colour}\" d=\"M{x} {y}{head}\"/>\n"
        ));
    }

    /// Writes the reason of a step below `y`, and returns where it ends.
    fn reason(&mut self, step: &Step, mut y: usize, x: usize, more: &str) -> usize {
        y += LINE + 2;
        let (colour, _) = stroke(step.dependency);
        self.put(format_args!(
            "<text class=\"label\" x=\"{x}\" y=\"{y}\" style=\"fill:{colour}\">{}{more}</text>\n",
            escaped(&step.label())
        ));
        for line in wrap(&step.why, COLUMNS.1) {
            y += LINE;
            self.text(x, y, "", &line);
        }
        y + 6
    }
}

fn put(to: &mut String, what: std::fmt::Arguments<'_>) {
    to.write_fmt(what).expect("a String takes everything");
}

/// The text in lines of at most so many characters, unless a word is longer.
fn wrap(text: &str, columns: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        match lines.last_mut() {
            Some(line) if line.chars().count() + 1 + word.chars().count() <= columns => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}

fn escaped(text: &str) -> String {
    let text = text.replace('&', "&amp;").replace('<', "&lt;");
    text.replace('>', "&gt;")
}
