//! Stacked bars: the parts of a whole, a row for each whole.
//!
//! ```text
//!   biglock      ▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▒▒▒▒▒▒▒▒▒▒░░░  212
//!   partitioned  ▇▇▒▒▒▒▒▒▒▒▒▒░                    61
//!                ■ inserting ▒ allocation ░ …
//! ```

use super::svg::Frame;
use super::{LETTER, LETTER_WIDTH, Medium, Scale, escape, significant, trimmed};
use std::fmt::Write;

/// A picture of stacked horizontal bars, from zero.
#[derive(Clone, Debug)]
pub struct StackPlot<'a> {
    /// The id, unique in its page.
    pub id: String,
    /// A title of one line, drawn only in a file of its own.
    pub title: String,
    /// A description in words, for readers who cannot see the picture.
    pub description: String,
    /// Name and unit of the values.
    pub label: &'a str,
    /// The parts of the bars from left to right: name and colour class.
    pub kinds: Vec<(&'a str, &'static str)>,
    /// The bars from top to bottom: a name, and a value of each part, not negative.
    pub bars: Vec<(String, Vec<f64>)>,
    /// Width in units.
    pub width: f64,
}

const ROW: f64 = LETTER + 13.0;
const THICK: f64 = 17.0;

impl StackPlot<'_> {
    /// Draws the picture.
    pub fn svg(&self, medium: Medium) -> String {
        let names = self.bars.iter().map(|(name, _)| name.chars().count());
        let top = if medium == Medium::File { 42.0 } else { 8.0 };
        let left = 14.0 + names.max().unwrap_or(0) as f64 * LETTER_WIDTH;
        let right = self.width - 7.0 * LETTER_WIDTH;
        let bottom = top + self.bars.len() as f64 * ROW;
        let wholes = self
            .bars
            .iter()
            .map(|(_, values)| values.iter().sum::<f64>());
        let scale = Scale::Linear {
            low: 0.0,
            high: wholes.fold(0.0, f64::max).max(f64::MIN_POSITIVE),
        };
        let x = |value: f64| left + scale.clamped(value) * (right - left);
        let mut body = String::new();
        if medium == Medium::File {
            let _ = write!(
                body,
                r#"<text class="name" x="8" y="26">{}</text>"#,
                escape(&self.title)
            );
        }
        for tick in scale.ticks() {
            let x = x(tick);
            let _ = write!(
                body,
                r#"<path class="grid" d="M{x:.1} {top:.1}V{bottom:.1}"></path><text class="small" x="{x:.1}" y="{:.1}" text-anchor="middle">{}</text>"#,
                bottom + LETTER + 1.0,
                trimmed(tick)
            );
        }
        for (nth, (name, values)) in self.bars.iter().enumerate() {
            let y = top + (nth as f64 + 0.5) * ROW;
            self.bar(&mut body, (name, values), y, left, x);
        }
        let _ = write!(
            body,
            r#"<path class="axis" d="M{left:.1} {top:.1}V{bottom:.1}"></path><text x="{:.1}" y="{:.1}" text-anchor="middle">{}</text>"#,
            f64::midpoint(left, right),
            bottom + 2.0 * LETTER + 8.0,
            escape(self.label)
        );
        let height = self.legend(&mut body, bottom + 3.0 * LETTER + 14.0);
        let frame = Frame {
            id: &self.id,
            title: &self.title,
            description: &self.description,
            width: self.width,
            height,
        };
        frame.around(&body, medium)
    }

    fn bar(
        &self,
        body: &mut String,
        (name, values): (&str, &[f64]),
        y: f64,
        left: f64,
        x: impl Fn(f64) -> f64,
    ) {
        let _ = write!(
            body,
            r#"<text x="{:.1}" y="{:.1}" text-anchor="end">{}</text>"#,
            left - 8.0,
            y + 4.5,
            escape(name)
        );
        let mut before = 0.0;
        for ((kind, colour), value) in self.kinds.iter().zip(values) {
            let (from, to) = (x(before), x(before + value));
            before += value;
            if to - from < 0.05 {
                continue;
            }
            let tip = format!("{name}: {kind} {}", significant(*value));
            let _ = write!(
                body,
                r#"<g class="s {colour}"><g class="pt" data-x="{:.1}" data-y="{y:.1}"><title>{}</title><path class="bar" d="M{from:.1} {:.1}H{to:.1}v{THICK:.1}H{from:.1}z"></path></g></g>"#,
                f64::midpoint(from, to),
                escape(&tip),
                y - THICK / 2.0
            );
        }
        let _ = write!(
            body,
            r#"<text class="value" x="{:.1}" y="{:.1}">{}</text>"#,
            x(before) + 8.0,
            y + 4.5,
            significant(before)
        );
    }

    /// Draws the legend in as many lines as it takes. Returns its lower edge.
    fn legend(&self, body: &mut String, top: f64) -> f64 {
        let (mut x, mut y) = (14.0, top);
        for (name, colour) in &self.kinds {
            let wide = 26.0 + name.chars().count() as f64 * LETTER_WIDTH;
            if x > 14.0 && x + wide > self.width {
                (x, y) = (14.0, y + LETTER + 7.0);
            }
            let _ = write!(
                body,
                r#"<g class="{colour}"><path class="bar" d="M{x:.1} {:.1}h12v12h-12z"></path></g><text x="{:.1}" y="{y:.1}">{}</text>"#,
                y - 10.5,
                x + 18.0,
                escape(name)
            );
            x += wide;
        }
        y + 14.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_of_each_bar_is_drawn_to_scale() {
        let plot = StackPlot {
            id: "why".to_owned(),
            title: "<why>".to_owned(),
            description: String::new(),
            label: "ns",
            kinds: vec![("useful", "c-blue"), ("lost & waited", "c-gold")],
            bars: vec![
                ("a".to_owned(), vec![10.0, 30.0]),
                ("b".to_owned(), vec![20.0, 0.0]),
            ],
            width: 600.0,
        };
        for medium in [Medium::Page, Medium::File] {
            let svg = plot.svg(medium);
            roxmltree::Document::parse(&svg).expect("well-formed");
            assert!(svg.contains("a: lost &amp; waited 30.0"), "{svg}");
            assert!(!svg.contains("b: lost"), "nothing is drawn of nothing");
            // A point without a shape could not have the keyboard's focus.
            assert!(!svg.contains("</title></g>"), "{svg}");
        }
        let none = StackPlot {
            bars: vec![],
            ..plot
        };
        roxmltree::Document::parse(&none.svg(Medium::File)).expect("well-formed");
    }
}
