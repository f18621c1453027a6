//! The catalogue of methods for reports: the form, style and description of each.
//!
//! Methods promise different things, and a figure without the promise misleads: `trust-post` has
//! no answer at all, `trust-then` answers later, `trust` answers at once. Only methods of one
//! [`Form`] are ranked against each other. A comparison across forms says that it is one.

use crate::plot::{Marker, Style};

/// The answer that a caller gets, and its time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Form {
    /// The answer before the call returns, but only for operations that the hardware has an
    /// instruction for.
    Instruction,
    /// The answer before the call returns, for any section of code.
    Waits,
    /// The answer later, by a callback or a reply that is collected, with many requests in
    /// flight.
    Later,
    /// No answer.
    OneWay,
    /// A method that this report does not know: drawn, never judged.
    Unknown,
}

impl Form {
    /// Returns the form in a few words.
    pub(super) fn words(self) -> &'static str {
        match self {
            Form::Instruction => "one instruction",
            Form::Waits => "waits for each answer",
            Form::Later => "answers come later",
            Form::OneWay => "no answer",
            Form::Unknown => "unknown to this report",
        }
    }
}

/// One entry of the catalogue.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Method {
    pub(super) name: &'static str,
    pub(super) form: Form,
    pub(super) what: &'static str,
    style: Style,
}

const fn style(colour: &'static str, marker: Marker, dash: &'static str) -> Style {
    Style {
        colour,
        marker,
        dash,
        bold: false,
    }
}

/// Makes the style of corelay's own delegation: one colour, drawn bold.
const fn ours(marker: Marker, dash: &'static str) -> Style {
    Style {
        colour: "c-trust",
        marker,
        dash,
        bold: true,
    }
}

/// Every method that this report can judge, in the order in which reports list them.
pub(super) const METHODS: &[Method] = &[
    Method {
        name: "atomic",
        form: Form::Instruction,
        style: style("c-black", Marker::Square, ""),
        what: "the hardware's fetch-and-add: only for operations that are one instruction",
    },
    Method {
        name: "mutex",
        form: Form::Waits,
        style: style("c-blue", Marker::Box, ""),
        what: "the standard library's mutex around each variable",
    },
    Method {
        name: "parking-lot",
        form: Form::Waits,
        style: style("c-sky", Marker::Diamond, "6 3"),
        what: "parking_lot's mutex around each variable",
    },
    Method {
        name: "ttas",
        form: Form::Waits,
        style: style("c-green", Marker::Up, ""),
        what: "a test-and-test-and-set spin lock with back-off",
    },
    Method {
        name: "ticket",
        form: Form::Waits,
        style: style("c-gold", Marker::Down, "6 3"),
        what: "a fair spin lock: tickets served in order",
    },
    Method {
        name: "mcs",
        form: Form::Waits,
        style: style("c-rose", Marker::Plus, ""),
        what: "a fair queue lock: each waiter spins on its own line",
    },
    Method {
        name: "clh",
        form: Form::Waits,
        style: style("c-brown", Marker::Cross, "2 3"),
        what: "a fair queue lock: each waiter spins on its predecessor's line",
    },
    Method {
        name: "channel",
        form: Form::Waits,
        style: style("c-violet", Marker::Ring, ""),
        what: "an actor behind a crossbeam channel, one call at a time",
    },
    Method {
        name: "trust",
        form: Form::Waits,
        style: ours(Marker::Circle, ""),
        what: "corelay's delegation, one call at a time (`apply`)",
    },
    Method {
        name: "channel-pipelined",
        form: Form::Later,
        style: style("c-violet", Marker::Box, "6 3"),
        what: "the same actor with 64 calls outstanding and replies",
    },
    Method {
        name: "tokio",
        form: Form::Later,
        style: style("c-grey", Marker::Diamond, ""),
        what: "an actor on Tokio (mpsc and oneshot) with 64 tasks",
    },
    Method {
        name: "trust-then",
        form: Form::Later,
        style: ours(Marker::Up, ""),
        what: "corelay's delegation with a callback per answer (`apply_then`)",
    },
    Method {
        name: "trust-post",
        form: Form::OneWay,
        style: ours(Marker::Down, "7 4"),
        what: "corelay's delegation without answers (`post`)",
    },
    Method {
        name: "flat-adaptive",
        form: Form::Later,
        style: ours(Marker::Diamond, "2 2"),
        what: "corelay's flat delegation: every thread is client and trustee (`apply_then`)",
    },
];

pub(crate) fn find(name: &str) -> Option<&'static Method> {
    METHODS.iter().find(|m| m.name == name)
}

/// Returns the form of a method; [`Form::Unknown`] if it is not in the catalogue.
pub(super) fn form(name: &str) -> Form {
    find(name).map_or(Form::Unknown, |m| m.form)
}

/// Whether the method is corelay's own delegation and not a rival.
pub(super) fn is_ours(name: &str) -> bool {
    find(name).is_some_and(|m| m.style.colour == "c-trust")
}

/// Returns a method's rank in lists: the catalogue's order, then unknown methods by name.
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
    fn names_are_unique_and_styles_differ_without_colour_inside_a_form() {
        for (i, a) in METHODS.iter().enumerate() {
            for b in &METHODS[..i] {
                assert_ne!(a.name, b.name);
                let alike = a.style.marker == b.style.marker && a.style.dash == b.style.dash;
                assert!(
                    a.form != b.form || !alike,
                    "{} and {} look alike",
                    a.name,
                    b.name
                );
            }
        }
    }

    #[test]
    fn unknown_methods_have_styles_of_their_own() {
        let styles = Styles::of(["mutex", "rcl", "flat-combining", "rcl"]);
        assert_eq!(styles.unknown(), ["flat-combining", "rcl"]);
        assert_ne!(styles.style("rcl", 0), styles.style("flat-combining", 0));
        assert_ne!(styles.style("mutex", 0), styles.style("mutex", 1));
        for name in styles.unknown() {
            let own = styles.style(name, 0);
            for m in METHODS {
                let alike = m.style.colour == own.colour && m.style.marker == own.marker;
                assert!(!alike, "{name} and {} look alike", m.name);
            }
        }
        assert_eq!(form("rcl"), Form::Unknown);
        assert!(is_ours("trust-post") && !is_ours("channel") && !is_ours("rcl"));
    }
}
