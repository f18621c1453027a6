//! The pictures of a figure: one for each panel and quantity. They have lines if the axis has
//! several places, bars if it has one.

use crate::figure::measured::Measured;
use crate::figure::outcome::Drawing;
use crate::figure::outcome::{Axis, Curve, Outcome, PrintedMark};
use crate::figure::quantity::{Quantity, Value};
use crate::mean::Outside;
use crate::method::{self, Styles};
use crate::model::contention;
use crate::page::figures::{WIDTH, between_integers, cache_marks};
use crate::page::parts::picture;
use crate::plot::{
    Bar, BarPlot, Halo, LinePlot, Mark, Marker, Medium, Point, Scale, Series, Shade, Style,
    short_count, significant, trimmed,
};
use crate::words::{self, prose};
use maud::{Markup, html};
use std::collections::BTreeMap;

/// Draws all pictures in one mode of the machine.
pub(super) fn all(measured: &Measured<'_>, styles: &Styles) -> Markup {
    // Counters are over all modes, so they are drawn only once.
    let here = |q: &&Quantity| q.is_by_mode() || is_usual(measured);
    html! {
        @for panel in measured.panels() {
            @let pictures: Vec<Markup> = panel
                .quantities
                .iter()
                .filter(here)
                .filter_map(|&q| Some(picture(&upper(q.label()), &draw(measured, panel, q, styles)?)))
                .collect();
            @if !pictures.is_empty() {
                h3 { (panel.title) " · " (measured.mode_words()) }
                div class="figures own" {
                    @for picture in pictures { (picture) }
                }
                @for sentence in outside(measured, panel) { p.fine { (prose(&sentence)) } }
            }
        }
    }
}

/// Draws the first picture of a figure, with an id that is unique among several figures.
pub(super) fn first(measured: &Measured<'_>, number: usize, styles: &Styles) -> Option<String> {
    let mut panels = measured.panels().iter();
    panels.find_map(|panel| {
        let mut quantities = panel.quantities.iter();
        let panel = Drawing {
            title: measured.outcome().figure.title.clone(),
            ..panel.clone()
        };
        let svg = quantities.find_map(|&quantity| draw(measured, &panel, quantity, styles))?;
        // Ids are made of the panel's key, and panels of different figures share keys.
        Some(svg.replace(
            &format!("\"{}-", panel.key),
            &format!("\"f{number}-{}-", panel.key),
        ))
    })
}

/// Names the points of a panel whose mean lies outside the band of its quartiles, and says why.
fn outside(measured: &Measured<'_>, panel: &Drawing) -> Vec<String> {
    let mut found: BTreeMap<Outside, Vec<String>> = BTreeMap::new();
    // All quantities of a mode follow from the same samples; the first one shows the band.
    let quantity = panel.quantities.iter().find(|q| q.is_by_mode());
    for line in &panel.lines {
        let mut places: BTreeMap<Outside, Vec<String>> = BTreeMap::new();
        for (x, value) in quantity.map_or(Vec::new(), |q| measured.points(&panel.key, line, *q)) {
            if let Some(side) = quantity.and_then(|q| q.outside(&value)) {
                places.entry(side).or_default().push(short_count(x));
            }
        }
        for (side, xs) in places {
            let words = format!("{} at {}", words::code(line), words::and(&xs));
            found.entry(side).or_default().push(words);
        }
    }
    let sentence = |(side, points): (Outside, Vec<String>)| {
        let axis = &panel.axis.label;
        let points = words::and(&points);
        format!(
            "The harmonic mean lies outside the quartiles for {points} ({axis}): {}.",
            side.why()
        )
    };
    found.into_iter().map(sentence).collect()
}

fn is_usual(measured: &Measured<'_>) -> bool {
    Measured::of(measured.outcome()).mode() == measured.mode()
}

fn upper(text: &str) -> String {
    let mut letters = text.chars();
    letters
        .next()
        .map_or(String::new(), |c| c.to_uppercase().chain(letters).collect())
}

/// A line and its points.
type LinePoints<'a> = (&'a str, Vec<(f64, Value)>);

/// Makes the styles of the lines of a page, so that a line looks alike in all of its pictures.
pub(super) fn styles<'a>(outcomes: impl IntoIterator<Item = &'a Outcome>) -> Styles {
    let panels = outcomes.into_iter().flat_map(|o| &o.figure.panels);
    Styles::of(panels.flat_map(|panel| panel.lines.iter().map(String::as_str)))
}

fn draw(
    measured: &Measured<'_>,
    panel: &Drawing,
    quantity: Quantity,
    styles: &Styles,
) -> Option<String> {
    let lines: Vec<LinePoints<'_>> = panel
        .lines
        .iter()
        .map(|line| (line.as_str(), measured.points(&panel.key, line, quantity)))
        .filter(|(_, points)| !points.is_empty())
        .collect();
    let mut xs: Vec<f64> = lines
        .iter()
        .flat_map(|(_, p)| p.iter().map(|p| p.0))
        .collect();
    xs.sort_by(f64::total_cmp);
    xs.dedup();
    match &*xs {
        [] => None,
        [_] => Some(bars(measured, panel, quantity, &lines, styles)),
        _ => Some(plot(measured, panel, quantity, &lines, &xs, styles)),
    }
}

fn id(measured: &Measured<'_>, panel: &Drawing, quantity: Quantity) -> String {
    let mode = words::mode(measured.mode()).replace(' ', "-");
    format!("{}-{mode}-{quantity:?}", panel.key)
}

fn plot(
    measured: &Measured<'_>,
    panel: &Drawing,
    quantity: Quantity,
    lines: &[LinePoints<'_>],
    xs: &[f64],
    styles: &Styles,
) -> String {
    let about = &measured.outcome().figure;
    let (first, last) = (xs[0], xs[xs.len() - 1]);
    let here = |key: &str| key == panel.key;
    let mut series: Vec<Series> = Vec::new();
    // Signs and curves come first, so that the measured lines lie on top.
    let signs = about.drawn.iter().filter(|sign| here(&sign.panel));
    if quantity == Quantity::Throughput {
        series.extend(signs.clone().filter_map(|sign| level(sign, first, last)));
    }
    let curves = about.curves.iter();
    let curves = curves.filter(|curve| here(&curve.panel) && curve.quantity == quantity);
    series.extend(curves.map(curve));
    series.extend(lines.iter().map(|(label, points)| {
        Series {
            label: (*label).to_owned(),
            style: style(styles, label),
            points: points
                .iter()
                .map(|p| point(label, panel, quantity, p))
                .collect(),
            faint: false,
        }
    }));
    let places = signs.filter(|sign| sign.mops.is_none());
    let mut marks: Vec<Mark> = places
        .map(|sign| Mark {
            x: sign.x.0,
            label: sign.label.clone(),
        })
        .collect();
    let over_vars = panel.axis.label == Axis::VARS;
    if over_vars {
        marks.extend(cache_marks(measured.machine()));
    }
    let threads = measured.outcome().results.runs.first();
    let threads = threads.map_or(1, |run| run.params.threads);
    let chance = |vars: f64| between_integers(vars, |v| contention::probability(threads, v));
    let y = scale(quantity, &series);
    LinePlot {
        id: id(measured, panel, quantity),
        title: format!("{}: {}", panel.title, quantity.label()),
        description: Series::left_to_right(&series),
        x_label: &panel.axis.label,
        y_label: y_label(quantity, y),
        x: if panel.axis.log {
            Scale::Log {
                low: first,
                high: last,
            }
        } else {
            Scale::Linear {
                low: first,
                high: last,
            }
        },
        x_ticks: if over_vars { Vec::new() } else { xs.to_vec() },
        y,
        series,
        marks,
        shade: (over_vars && quantity == Quantity::Throughput).then_some(Shade {
            label: "chance that two threads meet (shaded)",
            probability: &chance,
        }),
        width: WIDTH,
        room: (0, 0),
    }
    .svg(Medium::Page)
}

/// Returns a method's own style. Labels that are no method's name are drawn solid, because dashes
/// mark the sources and the models.
fn style(styles: &Styles, label: &str) -> Style {
    let style = styles.style(label, 0);
    let dash = if method::find(label).is_some() {
        style.dash
    } else {
        ""
    };
    Style { dash, ..style }
}

/// Makes the level of a printed value, as far as it lies over this axis.
fn level(sign: &PrintedMark, first: f64, last: f64) -> Option<Series> {
    let (from, to) = (sign.x.0.max(first), sign.x.1.min(last));
    let points = [(from, sign.mops?), (to, sign.mops?)];
    (from < to).then(|| grey(sign.label.clone(), "1 4", &points))
}

fn curve(curve: &Curve) -> Series {
    grey(format!("model: {}", curve.label), "8 4", &curve.points)
}

/// Makes a grey line, for values that were not measured here.
fn grey(label: String, dash: &'static str, points: &[(f64, f64)]) -> Series {
    let points = points.iter().map(|&(x, y)| Point {
        x,
        y,
        spread: (y, y),
        tip: format!("{label}\n{}", significant(y)),
        halo: Halo::None,
    });
    Series {
        points: points.collect(),
        label,
        style: Style {
            colour: "c-grey",
            marker: Marker::Bar,
            dash,
            bold: false,
        },
        faint: false,
    }
}

fn scale(quantity: Quantity, series: &[Series]) -> Scale {
    if quantity.is_share() {
        return Scale::Linear {
            low: 0.0,
            high: 1.0,
        };
    }
    let points = series.iter().flat_map(|s| &s.points);
    Scale::for_values(points.flat_map(|p| [p.y, p.spread.0, p.spread.1]))
}

/// Returns the label of the axis: unit and spacing. The caption names the quantity.
fn y_label(quantity: Quantity, y: Scale) -> &'static str {
    let log = matches!(y, Scale::Log { .. });
    match quantity {
        Quantity::Throughput if log => "Mops, logarithmic",
        Quantity::Throughput => "Mops",
        Quantity::PerThread if log => "Mops / thread, logarithmic",
        Quantity::PerThread => "Mops / thread",
        Quantity::Aborts | Quantity::Uncertain if log => "per 1,000 operations, logarithmic",
        Quantity::Aborts | Quantity::Uncertain => "per 1,000 operations",
        Quantity::PerSecond if log => "operations / second, logarithmic",
        Quantity::PerSecond => "operations / second",
        Quantity::ScalabilityUs if log => "µs × processors / operation, logarithmic",
        Quantity::ScalabilityUs => "µs × processors / operation",
        Quantity::Scalability if log => "ns × processors / operation, logarithmic",
        Quantity::Scalability => "ns × processors / operation",
        Quantity::Latency if log => "ns, logarithmic",

        Quantity::Latency => "ns",
        Quantity::Saturation | Quantity::Ready | Quantity::FailedPops | Quantity::FailedPushes => {
            "share, 0 to 1"
        }
        Quantity::Batch | Quantity::Outstanding => "requests",
        Quantity::LocalLoads | Quantity::RemoteLoads => "loads per operation",
    }
}

fn point(label: &str, panel: &Drawing, quantity: Quantity, (x, value): &(f64, Value)) -> Point {
    let place = format!("{} {}", short_count(*x), panel.axis.label);
    Point {
        x: *x,
        y: value.middle,
        spread: value.spread,
        tip: format!("{label}\n{place}\n{}", tip(quantity, value)),
        halo: Halo::None,
    }
}

fn tip(quantity: Quantity, value: &Value) -> String {
    let middle = quantity.words(value.middle);
    match value.n {
        0 => format!("{}: {middle}", quantity.head()),
        n => {
            let outside = quantity.outside(value).map_or(String::new(), |outside| {
                format!("\noutside the quartiles: {}", outside.why())
            });
            format!(
                "harmonic mean {middle} {}\nquartiles {} to {}, n = {n}{outside}",
                quantity.head(),
                significant(value.spread.0),
                significant(value.spread.1)
            )
        }
    }
}

fn bars(
    measured: &Measured<'_>,
    panel: &Drawing,
    quantity: Quantity,
    lines: &[LinePoints<'_>],
    styles: &Styles,
) -> String {
    let bar = |(label, points): &LinePoints<'_>| {
        let (_, value) = points.first()?;
        Some(Bar {
            label: (*label).to_owned(),
            style: styles.style(label, 0),
            value: value.middle,
            spread: value.spread,
            tip: format!("{label}\n{}", tip(quantity, value)),
        })
    };
    let bars: Vec<Bar> = lines.iter().filter_map(bar).collect();
    let bar_words: Vec<String> = bars
        .iter()
        .map(|bar| format!("{} {}", bar.label, significant(bar.value)))
        .collect();
    let x = lines.first().and_then(|(_, points)| points.first());
    let place = x.map_or(String::new(), |(x, _)| {
        format!(
            "{} ({}: {})",
            quantity.head(),
            panel.axis.label,
            trimmed(*x)
        )
    });
    let scale = if quantity.is_share() {
        Scale::Linear {
            low: 0.0,
            high: 1.0,
        }
    } else {
        Scale::for_values(bars.iter().flat_map(|b| [b.value, b.spread.0, b.spread.1]))
    };
    BarPlot {
        id: id(measured, panel, quantity),
        title: format!("{}: {}", panel.title, quantity.label()),
        description: format!("{}.", bar_words.join(", ")),
        label: &place,
        scale,
        bars,
        width: WIDTH,
    }
    .svg(Medium::Page)
}
