//! The methods that a report judges, from the lab's catalogue, and how the lines of a file are
//! drawn.

use crate::plot::Style;
pub(super) use corelay_lab_measure::method::Form;
use corelay_lab_measure::method::{self as catalogue, Entry, Kind};
use corelay_lab_measure::workload::structure::{Structure, Visitor, visit};
use std::sync::LazyLock;

/// A method that this report can judge.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Method {
    pub(super) name: &'static str,
    pub(super) form: Form,
    pub(super) kind: Kind,
    pub(super) what: &'static str,
    pub(super) style: Style,
}

/// Said instead of a form: a method that is drawn and never judged.
pub(super) const UNKNOWN: &str = "not known to this report";

/// Every method that this report can judge, in the order in which reports list them: the
/// catalogue's and structures that threads use directly, but methods that answer at once before the
/// others.
pub(super) static METHODS: LazyLock<Vec<Method>> = LazyLock::new(|| {
    let mut methods: Vec<Method> = catalogue::METHODS.iter().filter_map(judged).collect();
    visit(&mut Rivals(&mut methods));
    methods.sort_by_key(|m| matches!(m.form, Form::Later | Form::OneWay));
    methods
});

fn judged<W>(entry: &Entry<W>) -> Option<Method> {
    Some(Method {
        name: entry.name(),
        form: entry.form,
        kind: entry.method.kind(),
        what: entry.what,
        style: entry.compared?,
    })
}

/// Collects the structures that threads use directly.
struct Rivals<'a>(&'a mut Vec<Method>);

impl Visitor for Rivals<'_> {
    fn visit<S: Structure>(&mut self) {
        self.0.extend(S::rivals().iter().filter_map(judged));
    }
}

pub(crate) fn find(name: &str) -> Option<&'static Method> {
    METHODS.iter().find(|m| m.name == name)
}

/// Returns what a method promises, if this report can judge it.
pub(super) fn form(name: &str) -> Option<Form> {
    find(name).map(|m| m.form)
}

impl Method {
    /// Whether a call answers at once and waits for no other thread to serve it, as a lock does.
    pub(super) fn is_lock(&self) -> bool {
        self.form == Form::Waits && self.kind == Kind::Direct
    }
}

/// Whether a method runs the operations of any workload. The others are structures that threads use
/// directly.
pub(super) fn takes_any_workload(name: &str) -> bool {
    catalogue::METHODS.iter().any(|entry| entry.name() == name)
}

/// Returns a method's rank in lists: the order of [`METHODS`], then unknown methods by name.
pub(super) fn rank(name: &str) -> (usize, &str) {
    (
        METHODS
            .iter()
            .position(|m| m.name == name)
            .unwrap_or(METHODS.len()),
        name,
    )
}

/// The style of each method of a file. Unknown methods get spare styles in order of their names.
pub(crate) struct Styles {
    unknown: Vec<String>,
}

impl Styles {
    pub(crate) fn of<'a>(names: impl IntoIterator<Item = &'a str>) -> Self {
        let mut unknown: Vec<String> = names
            .into_iter()
            .filter(|n| find(n).is_none())
            .map(str::to_owned)
            .collect();
        unknown.sort();
        unknown.dedup();
        Self { unknown }
    }

    /// Returns the style of `method`. `variant` numbers further lines of the same method, which
    /// differ in a parameter.
    pub(crate) fn style(&self, method: &str, variant: usize) -> Style {
        let plain = match find(method) {
            Some(m) => m.style,
            None => unlike_all(self.unknown.iter().position(|s| s == method).unwrap_or(0)),
        };
        if variant == 0 {
            return plain;
        }
        let other = Style::spare(variant - 1);
        Style {
            marker: other.marker,
            dash: other.dash,
            ..plain
        }
    }

    pub(super) fn unknown(&self) -> &[String] {
        &self.unknown
    }
}

/// Returns the `n`-th spare style that does not have both colour and marker of a method in the
/// catalogue. A line of one point shows nothing else that tells the two apart.
fn unlike_all(n: usize) -> Style {
    let is_free = |style: &Style| {
        let alike = |m: &Method| m.style.colour == style.colour && m.style.marker == style.marker;
        !METHODS.iter().any(alike)
    };
    // There are enough for any `n`: spare styles recur, and some of them are free.
    let mut free = (0..).map(Style::spare).filter(is_free);
    free.nth(n).unwrap_or(Style::spare(n))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_methods_have_styles_of_their_own() {
        let styles = Styles::of(["mutex", "rcl", "h-synch", "rcl"]);
        assert_eq!(styles.unknown(), ["h-synch", "rcl"]);
        assert_ne!(styles.style("rcl", 0), styles.style("h-synch", 0));
        assert_ne!(styles.style("mutex", 0), styles.style("mutex", 1));
        for name in styles.unknown() {
            let own = styles.style(name, 0);
            for m in METHODS.iter() {
                let alike = m.style.colour == own.colour && m.style.marker == own.marker;
                assert!(!alike, "{name} and {} look alike", m.name);
            }
        }
        assert_eq!(form("rcl"), None);
    }
}
