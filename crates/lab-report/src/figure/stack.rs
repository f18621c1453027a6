//! Stacked bars of a figure: the parts of some wholes.

use super::outcome::About;
use crate::plot::{Medium, StackPlot, significant};
use crate::table::grid::Grid;
use serde::{Deserialize, Serialize};

/// Bars that show the parts of some wholes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Stack {
    /// The subject of the bars, in a few words.
    pub title: String,
    /// Name and unit of the values.
    pub label: String,
    /// The names of the parts, from left to right. The last one is what is left of the whole.
    pub kinds: Vec<String>,
    /// The bars from top to bottom: a name, and a value of each part, not negative.
    pub bars: Vec<(String, Vec<f64>)>,
}

/// The colours of parts, in order. What is left is grey.
const COLOURS: [&str; 6] = ["c-blue", "c-gold", "c-green", "c-rose", "c-violet", "c-sky"];

impl Stack {
    /// Makes the table of the values, with the wholes.
    pub(super) fn grid(&self) -> Grid {
        let row = |(name, values): &(String, Vec<f64>)| {
            let whole = values.iter().sum::<f64>();
            let values = values.iter().copied().chain([whole]).map(significant);
            std::iter::once(name.clone()).chain(values).collect()
        };
        let head = [""].into_iter().chain(self.kinds.iter().map(|k| &**k));
        Grid {
            title: format!("{} ({})", self.title, self.label),
            head: head.chain(["all"]).map(str::to_owned).collect(),
            rows: self.bars.iter().map(row).collect(),
        }
    }

    fn svg(&self, id: String, width: f64) -> String {
        let last = self.kinds.len().saturating_sub(1);
        let kind = |(nth, name): (usize, &'_ String)| match nth {
            nth if nth == last => (name.clone(), "c-grey"),
            nth => (name.clone(), COLOURS[nth % COLOURS.len()]),
        };
        let kinds: Vec<(String, &'static str)> = self.kinds.iter().enumerate().map(kind).collect();
        let words = self.bars.iter().map(|(name, values)| {
            let part = |((kind, _), value): (&(String, _), &f64)| {
                format!("{kind} {}", significant(*value))
            };
            let parts: Vec<String> = kinds.iter().zip(values).map(part).collect();
            format!("{name}: {}.", parts.join(", "))
        });
        StackPlot {
            id,
            title: self.title.clone(),
            description: words.collect::<Vec<_>>().join(" "),
            label: &self.label,
            kinds: kinds.iter().map(|(name, c)| (name.as_str(), *c)).collect(),
            bars: self.bars.clone(),
            width,
        }
        .svg(Medium::Page)
    }
}

/// Draws the stacked bars of a figure: a caption and a picture for each.
pub(super) fn pictures(about: &About, width: f64) -> Vec<(&str, String)> {
    let picture = |(nth, stack): (usize, &'_ Stack)| stack.svg(format!("stack-{nth}"), width);
    let drawn = about.stacks.iter().enumerate().map(picture);
    let titles = about.stacks.iter().map(|stack| &*stack.title);
    titles.zip(drawn).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_has_the_parts_and_the_wholes() {
        let stack = Stack {
            title: "parts".to_owned(),
            label: "ns".to_owned(),
            kinds: ["copying", "the rest"].map(str::to_owned).into(),
            bars: vec![("a".to_owned(), vec![10.0, 30.0])],
        };
        let grid = stack.grid();
        assert_eq!(grid.head, ["", "copying", "the rest", "all"]);
        assert_eq!(grid.rows, [["a", "10.0", "30.0", "40.0"]]);
        let about = About {
            stacks: vec![stack],
            ..About::default()
        };
        let [(title, svg)] = &*pictures(&about, 600.0) else {
            panic!("one picture")
        };
        assert_eq!(*title, "parts");
        assert!(svg.contains("a: copying 10.0") && svg.contains("c-grey"));
        assert!(svg.contains("id=\"stack-0"), "{svg}");
    }
}
