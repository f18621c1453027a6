//! The page of overlaid files, and its pictures.
//!
//! Up to `LINES_PER_PICTURE` lines share one picture, with a colour for each file and a marker
//! for each line. More lines get a small picture each, with a line for each file.

use super::chart::Point;
use super::lay::{FileLabel, MergedLine, Overlay, Overlays};
use super::verdict::{Verdict, reading};
use crate::page::parts::{self, notes};
use crate::page::shell;
use crate::plot::{
    self, Halo, LinePlot, Marker, Medium, Scale, Series, Style, short_count, significant,
};
use crate::words::{count, prose};
use maud::{Markup, PreEscaped, html};

/// The most lines of one picture.
pub(crate) const LINES_PER_PICTURE: usize = 3;

/// Width of a picture that stands alone, in units.
const WIDE_WIDTH: f64 = 720.0;
const SMALL_WIDTH: f64 = 520.0;

/// A colour for each file.
const COLOURS: [&str; super::lay::MAX_FILES] = [
    "c-trust", "c-blue", "c-green", "c-violet", "c-gold", "c-rose", "c-brown", "c-grey",
];

/// Dashes and markers of lines. Their numbers have no common divisor, so that there are as many
/// looks as pairs of them.
const DASHES: [&str; 3] = ["", "7 4", "2 4"];
const MARKERS: [Marker; 10] = [
    Marker::Circle,
    Marker::Box,
    Marker::Up,
    Marker::Diamond,
    Marker::Ring,
    Marker::Down,
    Marker::Cross,
    Marker::Square,
    Marker::Plus,
    Marker::Bar,
];

/// Returns the dash and the marker of the page's `n`-th line.
fn look(n: usize) -> (&'static str, Marker) {
    (DASHES[n % DASHES.len()], MARKERS[n % MARKERS.len()])
}

/// A picture of overlaid lines, with a name for its file.
#[derive(Clone, Debug)]
pub struct Picture {
    /// The picture's name for files and ids: letters, digits and hyphens.
    pub name: String,
    /// The line that the picture shows, if there are too many for one picture.
    caption: String,
    plot: Drawing,
}

/// The data of a picture.
#[derive(Clone, Debug)]
struct Drawing {
    overlay: Overlay,
    letters: Vec<char>,
    /// The dash and the marker of each line, the same in all pictures of the page.
    looks: Vec<(&'static str, Marker)>,
    width: f64,
    y: Scale,
}

/// Makes all pictures of an overlay, with the looks of the page's `methods`.
fn pictures(
    overlay: &Overlay,
    number: usize,
    files: &[FileLabel],
    methods: &[&str],
) -> Vec<Picture> {
    let letters: Vec<char> = files.iter().map(|label| label.letter).collect();
    let look_of = |line: &MergedLine| {
        let place = methods.iter().position(|label| *label == line.label);
        look(place.unwrap_or(0))
    };
    let points = overlay
        .lines
        .iter()
        .flat_map(|line| line.files.iter().flatten());
    // All pictures share one vertical axis, so that they compare by eye.
    let y = Scale::for_values(points.flat_map(|p| [p.y, p.spread.0, p.spread.1]));
    let picture = |lines: &[MergedLine], name: String, caption: String, width| Picture {
        name,
        caption,
        plot: Drawing {
            overlay: Overlay {
                lines: lines.to_vec(),
                ..overlay.clone()
            },
            letters: letters.clone(),
            looks: lines.iter().map(look_of).collect(),
            width,
            y,
        },
    };
    let name = format!("{number:02}-{}", slug(&overlay.title()));
    if overlay.lines.len() <= LINES_PER_PICTURE {
        return vec![picture(&overlay.lines, name, String::new(), WIDE_WIDTH)];
    }
    let small = |line: &MergedLine| {
        let name = format!("{name}-{}", slug(&line.label));
        picture(
            std::slice::from_ref(line),
            name,
            line.label.clone(),
            SMALL_WIDTH,
        )
    };
    overlay.lines.iter().map(small).collect()
}

/// Turns a text into letters, digits and hyphens.
fn slug(text: &str) -> String {
    let mut out = String::new();
    for c in text.chars() {
        if c.is_ascii_alphanumeric() {
            out.push(c.to_ascii_lowercase());
        } else if !out.is_empty() && !out.ends_with('-') {
            out.push('-');
        }
    }
    out.trim_end_matches('-').to_owned()
}

impl Picture {
    /// Returns the lines' names with their looks.
    #[cfg(test)]
    pub(super) fn looks(&self) -> Vec<(&str, (&'static str, Marker))> {
        let lines = self.plot.overlay.lines.iter();
        let labels = lines.map(|line| line.label.as_str());
        labels.zip(self.plot.looks.iter().copied()).collect()
    }

    /// Draws the picture as SVG.
    pub fn svg(&self, medium: Medium) -> String {
        let Drawing {
            overlay,
            letters,
            looks,
            width,
            y,
        } = &self.plot;
        let several = overlay.lines.len() > 1;
        let mut series = Vec::new();
        for (line, &(dash, marker)) in overlay.lines.iter().zip(looks) {
            for (file, points) in line.files.iter().enumerate() {
                let letter = letters[file];
                let label = match several {
                    true => format!("{letter} {}", line.label),
                    false => letter.to_string(),
                };
                series.push(Series {
                    points: points.iter().map(|p| point(&label, overlay, p)).collect(),
                    label,
                    style: Style {
                        colour: COLOURS[file % COLOURS.len()],
                        marker,
                        dash,
                        bold: false,
                    },
                    faint: false,
                });
            }
        }
        series.retain(|s| !s.points.is_empty());
        let mut xs: Vec<f64> = series
            .iter()
            .flat_map(|s| s.points.iter().map(|p| p.x))
            .collect();
        xs.sort_by(f64::total_cmp);
        xs.dedup();
        let (first, last) = match &*xs {
            [first, .., last] => (*first, *last),
            [one] => (*one, one * 2.0),
            [] => (1.0, 2.0),
        };
        let axis = &overlay.key.axis;
        let log = matches!(y, Scale::Log { .. });
        let y_label = match log {
            true => format!("{}, logarithmic", overlay.key.quantity),
            false => overlay.key.quantity.clone(),
        };
        let title = match self.caption.is_empty() {
            true => overlay.title(),
            false => format!("{}: {}", overlay.title(), self.caption),
        };
        let plot = LinePlot {
            id: self.name.clone(),
            title,
            description: description(&series),
            x_label: &axis.label,
            y_label: &y_label,
            x: match axis.log {
                true => Scale::Log {
                    low: first,
                    high: last,
                },
                false => Scale::Linear {
                    low: first,
                    high: last,
                },
            },
            x_ticks: if xs.len() <= 10 { xs } else { Vec::new() },
            y: *y,
            series,
            marks: Vec::new(),
            shade: None,
            width: *width,
            room: (0, 0),
        };
        plot.svg(medium)
    }
}

fn point(label: &str, overlay: &Overlay, p: &Point) -> crate::plot::Point {
    crate::plot::Point {
        x: p.x,
        y: p.y,
        spread: p.spread,
        tip: format!(
            "{label}\n{} {}\n{}\nfrom {} to {}",
            short_count(p.x),
            overlay.key.axis.label,
            significant(p.y),
            significant(p.spread.0),
            significant(p.spread.1)
        ),
        halo: Halo::None,
    }
}

fn description(series: &[Series]) -> String {
    let one = |s: &Series| {
        let (first, last) = (s.points.first()?, s.points.last()?);
        let (first, last) = (significant(first.y), significant(last.y));
        Some(format!("{} from {first} to {last}", s.label))
    };
    let ends: Vec<String> = series.iter().filter_map(one).collect();
    format!("From left to right: {}.", ends.join("; "))
}

/// Returns all pictures, for files of their own.
pub fn all_pictures(laid: &Overlays) -> Vec<Picture> {
    let (overlays, methods) = (laid.overlays.iter().enumerate(), laid.methods());
    overlays
        .flat_map(|(number, overlay)| pictures(overlay, number + 1, &laid.files, &methods))
        .collect()
}

/// Renders the page of overlaid results. `command` and `commit` say what made the page.
pub fn html(laid: &Overlays, command: &str, commit: &str) -> String {
    let (methods, verdict) = (laid.methods(), laid.verdict());
    let body = html! {
        header {
            p.brand { "corelay plot" }
            h1 { "Results overlaid" }
            p.sub { (count(laid.files.len() as u64, "file of results", "files of results")) }
            p.headline { (prose(&verdict.headline)) }
        }
        div.scroll {
            table.legend {
                thead {
                    tr { th {} th { "machine" } th { "commit" } th { "command" } th { "file" } }
                }
                tbody {
                    @for (number, label) in laid.files.iter().enumerate() {
                        tr {
                            th { (PreEscaped(swatch(number))) (label.letter) }
                            td { (label.machine) }
                            td { code { (label.commit) } }
                            td { code { (label.command) } }
                            td { (label.file) }
                        }
                    }
                }
            }
        }
        (notes("Please note", &laid.notes))
        (judged(&verdict, laid.files.len()))
        section.wide {
            @for (number, overlay) in laid.overlays.iter().enumerate() {
                h2 { (overlay.title()) }
                div class="figures own" {
                    @for picture in pictures(overlay, number + 1, &laid.files, &methods) {
                        (parts::picture(&picture.caption, &picture.svg(Medium::Page)))
                    }
                }
                (parts::table(&overlay.grid(&laid.files)))
            }
        }
    };
    let made_by = shell::made_by(command, commit);
    let saved = shell::Saved {
        what: "the drawn points",
        file: "overlays.json",
        data: &laid.json(),
    };
    shell::document("Results overlaid", &body, &made_by, &saved)
}

/// Renders the verdict on each picture.
fn judged(verdict: &Verdict, files: usize) -> Markup {
    html! {
        @if !verdict.pictures.is_empty() {
            h2 { @if files > 1 { "Which file is faster where" } @else { "Which method is faster where" } }
            ul.prose {
                @for (title, sentences) in &verdict.pictures {
                    li {
                        b { (title) }
                        @for sentence in sentences { div { (prose(sentence)) } }
                    }
                }
            }
            p.fine { (reading()) }
        }
    }
}

/// Draws the colour of a file.
fn swatch(number: usize) -> String {
    plot::swatch(Style {
        colour: COLOURS[number % COLOURS.len()],
        marker: Marker::Circle,
        dash: "",
        bold: false,
    })
}

impl Overlays {
    /// Returns the names of all lines, in the order in which they first occur.
    fn methods(&self) -> Vec<&str> {
        let mut methods: Vec<&str> = Vec::new();
        for line in self.overlays.iter().flat_map(|overlay| &overlay.lines) {
            if !methods.contains(&&*line.label) {
                methods.push(&line.label);
            }
        }
        methods
    }

    /// Returns files, notes and overlaid points as JSON.
    pub fn json(&self) -> serde_json::Value {
        let overlay = |overlay: &Overlay| {
            serde_json::json!({
                "title": overlay.title(),
                "axis": overlay.key.axis,
                "quantity": overlay.key.quantity,
                "lines": overlay.lines,
            })
        };
        let overlays: Vec<_> = self.overlays.iter().map(overlay).collect();
        serde_json::json!({"files": self.files, "notes": self.notes, "overlays": overlays})
    }
}

#[cfg(test)]
mod tests {
    use super::look;

    #[test]
    fn thirty_lines_look_different() {
        for n in 0..30 {
            assert!((0..n).all(|m| look(m) != look(n)), "{n}");
        }
    }
}
