//! Rows of spans over time: the work of each thread.
//!
//! Spans that are wide enough to be seen are drawn one by one, with their names if these fit.
//! Narrower spans are drawn together, column by column: in the colour of the kind that took most
//! of the column's time, the paler the less of it was taken. So the size of a picture depends on
//! its width and not on the number of events.

use super::svg::Frame;
use super::{LETTER, LETTER_WIDTH, Medium, SMALL_LETTER_WIDTH, Scale, escape, trimmed};
use std::collections::BTreeMap;
use std::fmt::Write;

/// A picture of rows of spans, over one stretch of time or several.
#[derive(Clone, Debug)]
pub struct Timeline<'a> {
    /// The id, unique in its page.
    pub(crate) id: String,
    /// A title of one line, drawn only in a file of its own.
    pub(crate) title: String,
    /// A description in words, for readers who cannot see the picture.
    pub(crate) description: String,
    /// The kinds of spans, the most important first.
    pub(crate) kinds: Vec<Kind<'a>>,
    /// A row for each thread, from top to bottom.
    pub(crate) rows: Vec<Row>,
    /// Stretches of time, drawn below each other. Each marks those after it.
    pub(crate) panels: Vec<Panel>,
    /// Notes for the reader, in lines below the picture.
    pub(crate) notes: Vec<String>,
    /// Width in units.
    pub(crate) width: f64,
}

/// A kind of span or instant.
#[derive(Clone, Debug)]
pub struct Kind<'a> {
    /// The kind's name in the legend.
    pub(crate) name: &'a str,
    /// Class of `plot.css` that sets the colour.
    pub(crate) colour: &'static str,
    /// Whether it has no length, and is drawn as a tick below the spans.
    pub(crate) is_instant: bool,
}

/// A row of the picture: the spans of one thread.
#[derive(Clone, Debug, Default)]
pub struct Row {
    /// The thread's name.
    pub(crate) label: String,
    /// Spans and instants by their beginnings, a span before those that lie in it. In
    /// nanoseconds.
    pub(crate) spans: Vec<Span>,
    /// A time without data, from and to, and the reason, which hovering shows.
    pub(crate) gap: Option<(u64, u64, String)>,
}

/// A span of time in a row, or an instant.
#[derive(Clone, Copy, Debug)]
pub struct Span {
    /// Index of the kind.
    pub(crate) kind: usize,
    /// The beginning, in nanoseconds.
    pub(crate) from: u64,
    /// The end; `None` for an instant.
    pub(crate) to: Option<u64>,
    /// Number of spans that it lies in.
    pub(crate) depth: usize,
}

/// A stretch of time, drawn as one picture of rows.
#[derive(Clone, Debug)]
pub struct Panel {
    /// The text above the panel.
    pub(crate) caption: String,
    /// The beginning, in nanoseconds.
    pub(crate) from: u64,
    /// The end, in nanoseconds, later than the beginning.
    pub(crate) to: u64,
    /// Whether to leave out rows in which nothing begins or ends in this time.
    pub(crate) only_busy: bool,
}

/// Height of each lane of nested spans in a row, and height of its instants.
const LANE: f64 = 15.0;
const TICKS: f64 = 7.0;
/// Space between rows.
const ROW_GAP: f64 = 9.0;
/// Largest depth with a lane of its own; deeper spans are drawn on the last lane.
const MAX_DEPTH: usize = 3;
/// Least width, in units, of a span that is drawn by itself.
const MIN_WIDTH: f64 = 3.0;
/// Longest names of rows, in letters.
const MAX_NAME_LETTERS: usize = 18;

impl Timeline<'_> {
    /// Draws the picture.
    pub(crate) fn svg(&self, medium: Medium) -> String {
        let mut y = if medium == Medium::File { 48.0 } else { 16.0 };
        let mut body = String::new();
        if medium == Medium::File {
            let most = ((self.width - 16.0) / (0.62 * 16.0)) as usize;
            let title = shortened(&self.title, most);
            let _ = write!(
                body,
                r#"<text class="name" x="8" y="26">{}</text>"#,
                escape(&title)
            );
        }
        self.legend(&mut body, &mut y);
        for (n, panel) in self.panels.iter().enumerate() {
            self.panel(&mut body, &mut y, panel, &self.panels[n + 1..]);
        }
        for note in &self.notes {
            y += LETTER + 4.0;
            let _ = write!(body, r#"<text x="8" y="{y:.1}">{}</text>"#, escape(note));
        }
        let frame = Frame {
            id: &self.id,
            title: &self.title,
            description: &self.description,
            width: self.width,
            height: y + 14.0,
        };
        frame.around(&body, medium)
    }

    fn left(&self) -> f64 {
        let longest = self.rows.iter().map(|row| row.label.chars().count()).max();
        16.0 + longest.unwrap_or(0).min(MAX_NAME_LETTERS) as f64 * LETTER_WIDTH
    }

    fn legend(&self, body: &mut String, y: &mut f64) {
        let mut x = 8.0;
        for kind in &self.kinds {
            let Kind { name, colour, .. } = kind;
            let (tick, rounding) = if kind.is_instant { (3.0, 0) } else { (14.0, 2) };
            let width = 22.0 + (name.chars().count() as f64 + 1.5) * LETTER_WIDTH;
            if x + width > self.width && x > 8.0 {
                x = 8.0;
                *y += LETTER + 6.0;
            }
            let _ = write!(
                body,
                r#"<g class="{colour}"><rect class="bar" x="{:.1}" y="{:.1}" width="{tick}" height="11" rx="{rounding}"></rect></g><text x="{:.1}" y="{:.1}">{}</text>"#,
                x + (14.0 - tick),
                *y - 10.0,
                x + 19.0,
                *y,
                escape(name)
            );
            x += width;
        }
        *y += 14.0;
    }

    fn panel(&self, body: &mut String, y: &mut f64, panel: &Panel, others: &[Panel]) {
        let (left, right) = (self.left(), self.width - 12.0);
        let axis = Axis {
            from: panel.from,
            per_unit: (panel.to - panel.from).max(1) as f64 / (right - left),
            left,
            right,
        };
        *y += LETTER + 6.0;
        let _ = write!(
            body,
            r#"<text x="{left:.1}" y="{:.1}">{}</text>"#,
            *y,
            escape(&panel.caption)
        );
        *y += 8.0;
        let top = *y;
        let shown: Vec<&Row> = self.rows.iter().filter(|row| row.is_shown(panel)).collect();
        let rows: f64 = shown.iter().map(|row| row.height() + ROW_GAP).sum();
        let bottom = top + rows;
        for other in others {
            let (from, to) = (axis.clamped(other.from), axis.clamped(other.to));
            let width = (to - from).max(1.5);
            let _ = write!(
                body,
                r#"<rect class="shade" x="{from:.1}" y="{top:.1}" width="{width:.1}" height="{rows:.1}"><title>{}</title></rect>"#,
                escape(&other.caption)
            );
        }
        axis.draw(body, top, bottom, panel.to);
        for row in shown {
            let label = shortened(&row.label, MAX_NAME_LETTERS);
            let _ = write!(
                body,
                r#"<text class="value" x="{:.1}" y="{:.1}" text-anchor="end">{}</text>"#,
                left - 8.0,
                *y + LANE - 3.0,
                escape(&label)
            );
            self.row(body, *y, row, axis, panel);
            *y += row.height() + ROW_GAP;
        }
        *y = bottom + LETTER + 8.0;
    }

    fn row(&self, body: &mut String, top: f64, row: &Row, axis: Axis, panel: &Panel) {
        let lanes = row.lanes();
        let floor = top + lanes as f64 * LANE;
        let _ = write!(
            body,
            r#"<path class="grid" d="M{:.1} {floor:.1}H{:.1}"></path>"#,
            axis.left, axis.right
        );
        if let Some((from, to, why)) = &row.gap
            && *to > panel.from
            && *from < panel.to
        {
            let (from, to) = (axis.clamped(*from), axis.clamped(*to));
            let _ = write!(
                body,
                r#"<rect class="shade" x="{from:.1}" y="{top:.1}" width="{:.1}" height="{:.1}"><title>{}</title></rect>"#,
                to - from,
                floor - top,
                escape(why)
            );
            if why.chars().count() as f64 * SMALL_LETTER_WIDTH + 8.0 <= to - from {
                let _ = write!(
                    body,
                    r#"<text class="small" x="{:.1}" y="{:.1}">{}</text>"#,
                    from + 4.0,
                    top + LANE - 3.5,
                    escape(why)
                );
            }
        }
        let mut narrow: Vec<Columns> = vec![Columns::default(); lanes];
        let mut instants = Columns::default();
        let reaches =
            |span: &&Span| span.from <= panel.to && span.to.unwrap_or(span.from) >= panel.from;
        for span in row.spans.iter().filter(reaches) {
            let lane = span.depth.min(lanes - 1);
            let from = axis.clamped(span.from);
            let Some(end) = span.to else {
                instants.add(from - axis.left, span.kind, 1.0);
                continue;
            };
            let to = axis.clamped(end);
            if to - from >= MIN_WIDTH {
                self.wide(body, (from, to), top + lane as f64 * LANE, span, end);
            } else {
                narrow[lane].spread(from - axis.left, to - axis.left, span.kind);
            }
        }
        for (lane, columns) in narrow.iter().enumerate() {
            for run in columns.runs() {
                let (x, width) = (axis.left + run.column as f64, run.columns as f64);
                let _ = write!(
                    body,
                    r#"<g class="{}"><rect class="bar" style="opacity:{}" x="{x:.0}" y="{:.1}" width="{width:.0}" height="{:.1}"><title>{} × {}</title></rect></g>"#,
                    self.kinds[run.kind].colour,
                    OPACITIES[run.shade],
                    top + lane as f64 * LANE,
                    LANE - 2.0,
                    run.count,
                    escape(self.kinds[run.kind].name)
                );
            }
        }
        for run in instants.runs() {
            let _ = write!(
                body,
                r#"<g class="{}"><rect class="bar" x="{:.1}" y="{:.1}" width="{:.1}" height="{TICKS:.1}"><title>{} × {}</title></rect></g>"#,
                self.kinds[run.kind].colour,
                axis.left + run.column as f64 - 0.2,
                floor + 1.0,
                run.columns as f64 + 0.4,
                run.count,
                escape(self.kinds[run.kind].name)
            );
        }
    }

    /// Draws a span by itself.
    fn wide(&self, body: &mut String, (from, to): (f64, f64), y: f64, span: &Span, end: u64) {
        let Kind { name, colour, .. } = &self.kinds[span.kind];
        let width = to - from;
        let _ = write!(
            body,
            r#"<g class="{colour}"><rect class="bar" x="{from:.1}" y="{y:.1}" width="{width:.1}" height="{:.1}" rx="1.5"><title>{}: {}</title></rect>"#,
            LANE - 2.0,
            escape(name),
            duration(end - span.from)
        );
        if name.chars().count() as f64 * SMALL_LETTER_WIDTH + 8.0 <= width {
            let _ = write!(
                body,
                r#"<text class="small" style="fill:var(--paper)" x="{:.1}" y="{:.1}">{}</text>"#,
                from + 4.0,
                y + LANE - 4.5,
                escape(name)
            );
        }
        body.push_str("</g>");
    }
}

impl Row {
    fn lanes(&self) -> usize {
        let spans = self.spans.iter().filter(|span| span.to.is_some());
        let deepest = spans.map(|span| span.depth).max();
        deepest.unwrap_or(0).min(MAX_DEPTH) + 1
    }

    fn is_shown(&self, panel: &Panel) -> bool {
        let inside = |at: u64| panel.from <= at && at <= panel.to;
        let begins_or_ends = |span: &Span| inside(span.from) || span.to.is_some_and(inside);
        !panel.only_busy || self.spans.iter().any(begins_or_ends)
    }

    fn height(&self) -> f64 {
        self.lanes() as f64 * LANE + TICKS
    }
}

/// Converts time to place.
#[derive(Clone, Copy)]
struct Axis {
    from: u64,
    /// Nanoseconds of a unit.
    per_unit: f64,
    left: f64,
    right: f64,
}

impl Axis {
    fn clamped(self, ns: u64) -> f64 {
        let x = self.left + ns.saturating_sub(self.from) as f64 / self.per_unit;
        x.min(self.right)
    }

    /// Draws lines across the picture, with times since the beginning of the panel.
    fn draw(self, body: &mut String, top: f64, bottom: f64, to: u64) {
        let (unit, name) = unit(to - self.from);
        let high = (to - self.from) as f64 / unit;
        for tick in (Scale::Linear { low: 0.0, high }).ticks() {
            let x = self.left + tick * unit / self.per_unit;
            let text = format!("{} {name}", trimmed(tick));
            let half = text.chars().count() as f64 * LETTER_WIDTH / 2.0;
            let _ = write!(
                body,
                r#"<path class="grid" d="M{x:.1} {top:.1}V{bottom:.1}"></path><text class="small" x="{:.1}" y="{:.1}" text-anchor="middle">{text}</text>"#,
                x.min(self.right - half),
                bottom + LETTER - 2.0
            );
        }
        let _ = write!(
            body,
            r#"<path class="axis" d="M{:.1} {top:.1}V{bottom:.1}"></path>"#,
            self.left
        );
    }
}

/// Opacity of a column of which spans take less than a quarter, a half, three quarters, or more.
const OPACITIES: [&str; 4] = [".3", ".5", ".7", ".9"];

/// Spans too narrow to be seen, by columns of one unit: for each kind, the share of the column
/// that it takes, and their number.
#[derive(Clone, Default)]
struct Columns(BTreeMap<usize, BTreeMap<usize, (f64, u64)>>);

/// Neighbouring columns with the same kind and strength, drawn as one.
struct Run {
    column: usize,
    columns: usize,
    kind: usize,
    shade: usize,
    count: u64,
}

impl Columns {
    fn add(&mut self, at: f64, kind: usize, share: f64) {
        let column = self.0.entry(at as usize).or_default();
        let (taken, count) = column.entry(kind).or_default();
        *taken += share;
        *count += 1;
    }

    /// Adds a span from `from` to `to` to the columns that it touches, with its share of each.
    fn spread(&mut self, from: f64, to: f64, kind: usize) {
        for column in from as usize..=to as usize {
            let (begin, end) = (column as f64, column as f64 + 1.0);
            let share = to.min(end) - from.max(begin);
            // A span that ends at a column's beginning does not reach into it.
            if share > 0.0 || from >= begin {
                self.add(begin, kind, share);
            }
        }
    }

    fn runs(&self) -> Vec<Run> {
        let mut runs: Vec<Run> = Vec::new();
        for (&column, kinds) in &self.0 {
            let most = kinds.iter().max_by(|a, b| a.1.0.total_cmp(&b.1.0));
            let Some((&kind, &(_, count))) = most else {
                continue;
            };
            let taken: f64 = kinds.values().map(|(share, _)| share).sum();
            let shade = ((taken * 4.0) as usize).min(OPACITIES.len() - 1);
            match runs.last_mut() {
                Some(run)
                    if run.column + run.columns == column
                        && (run.kind, run.shade) == (kind, shade) =>
                {
                    run.columns += 1;
                    run.count += count;
                }
                _ => runs.push(Run {
                    column,
                    columns: 1,
                    kind,
                    shade,
                    count,
                }),
            }
        }
        runs
    }
}

/// Formats a length of time: `1.5 ms`.
pub fn duration(ns: u64) -> String {
    let (unit, name) = unit(ns);
    let value = ns as f64 / unit;
    let decimals = match value {
        v if v >= 100.0 || name == "ns" => 0,
        v if v >= 10.0 => 1,
        _ => 2,
    };
    let text = format!("{value:.decimals$}");
    let text = match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.'),
        false => &text,
    };
    format!("{text} {name}")
}

fn unit(ns: u64) -> (f64, &'static str) {
    match ns {
        0..1_000 => (1.0, "ns"),
        1_000..1_000_000 => (1e3, "µs"),
        1_000_000..1_000_000_000 => (1e6, "ms"),
        _ => (1e9, "s"),
    }
}

fn shortened(text: &str, most: usize) -> String {
    if text.chars().count() <= most {
        return text.to_owned();
    }
    let mut short: String = text.chars().take(most - 1).collect();
    short.push('…');
    short
}

#[cfg(test)]
mod tests {
    use super::*;

    fn picture(spans: Vec<Span>, to: u64) -> String {
        let timeline = Timeline {
            id: "t".to_owned(),
            title: "a <title>".to_owned(),
            description: String::new(),
            kinds: vec![
                Kind {
                    name: "pass",
                    colour: "c-trust",
                    is_instant: false,
                },
                Kind {
                    name: "wake",
                    colour: "c-rose",
                    is_instant: true,
                },
            ],
            rows: vec![Row {
                label: "owner-0".to_owned(),
                spans,
                gap: None,
            }],
            panels: vec![Panel {
                caption: "all".to_owned(),
                from: 0,
                to,
                only_busy: false,
            }],
            notes: vec!["a & b".to_owned()],
            width: 1000.0,
        };
        let svg = timeline.svg(Medium::File);
        roxmltree::Document::parse(&svg).expect("well-formed");
        svg
    }

    fn span(from: u64, to: u64, depth: usize) -> Span {
        Span {
            kind: 0,
            from,
            to: Some(to),
            depth,
        }
    }

    #[test]
    fn wide_spans_have_names_and_tips_and_lie_in_lanes() {
        let svg = picture(vec![span(0, 900, 0), span(100, 600, 1)], 1_000);
        assert!(svg.contains("<title>pass: 900 ns</title>"), "{svg}");
        assert!(svg.contains("<title>pass: 500 ns</title>"));
        assert_eq!(svg.matches(">pass</text>").count(), 3, "legend and both");
        let instant = Span {
            kind: 1,
            from: 5,
            to: None,
            depth: 0,
        };
        assert!(picture(vec![instant], 1_000).contains("1 × wake"));
    }

    #[test]
    fn a_picture_of_many_events_stays_small() {
        let many = |n: u64| (0..n).map(|i| span(i * 10, i * 10 + 4, 0)).collect();
        let (some, more) = (
            picture(many(10_000), 100_000),
            picture(many(200_000), 2_000_000),
        );
        assert!(more.len() < some.len() * 2, "{} {}", some.len(), more.len());
        assert!(more.contains("opacity:.5"), "two fifths are taken");
        let counted: u64 = more
            .split(" × pass")
            .filter_map(|before| before.rsplit_once('>')?.1.parse::<u64>().ok())
            .sum();
        // A span that lies across the border of two columns is counted in both.
        assert!((200_000..202_000).contains(&counted), "{counted}");
    }

    #[test]
    fn columns_share_and_join() {
        let mut columns = Columns::default();
        columns.spread(0.5, 2.0, 0);
        columns.spread(1.0, 1.1, 1);
        let runs = columns.runs();
        let seen: Vec<_> = runs
            .iter()
            .map(|r| (r.column, r.columns, r.kind, r.shade))
            .collect();
        assert_eq!(seen, [(0, 1, 0, 2), (1, 1, 0, 3)]);
    }

    #[test]
    fn durations_read_well() {
        let words = [
            0,
            999,
            1_000,
            1_530,
            10_000,
            123_456,
            1_500_000,
            2_000_000_000,
        ];
        let texts = words.map(duration).join("; ");
        assert_eq!(
            texts,
            "0 ns; 999 ns; 1 µs; 1.53 µs; 10 µs; 123 µs; 1.5 ms; 2 s"
        );
    }
}
