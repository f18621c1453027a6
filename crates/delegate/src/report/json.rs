//! The form of a report in JSON, and in other formats by `serde`: each part says once of which values
//! it consists.

use crate::report::{
    ClientObserved, ClientReport, ClosureReport, HeldReport, ObjectReport, Places, Report, State,
    TrusteeObserved, TrusteeReport, TypeReport,
};
use std::borrow::Cow;
use std::fmt::{Arguments, Write};
use std::time::Duration;

impl Report {
    /// The report in one line of JSON. Fields are named as in the structs, and a missing value is
    /// `null`; times are in nanoseconds, and their names end in `_ns`; shares are from 0 to 1.
    ///
    /// ```text
    /// Report   { nodes, trustees: [Trustee] }
    /// Trustee  { name, state: awake|asleep|closing|shut_down, cpu, node,
    ///            metrics: { requests, batches, passes, passes_with_work, sleeps, rings,
    ///                       panics },
    ///            saturation, requests_per_batch, objects: [{ name, type_name, node }],
    ///            unnamed: [{ type_name, count, places: Places }],
    ///            held: [{ name, waits_for: [name] }], clients: [Client], gone, window,
    ///            observed: null | { samples,
    ///              slowest: [{ name, samples, mean_ns, total_ns, longest_ns }], gone: Observed } }
    /// Client   { name, queued, node, places: Places, observed: Observed }
    /// Observed null | { polls, ready, ready_rate, pops, failed_pops, failed_pushes, waits,
    ///                   latencies, latency_mean_ns, latency_total_ns, latency_longest_ns }
    /// Places   null | { asked, by_node: [[node, count]] }
    /// ```
    pub fn to_json(&self) -> String {
        let mut text = String::new();
        self.node().write(&mut text);
        text
    }
}

/// A value of a report, or of a part of it, as JSON knows values.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Node<'a> {
    Null,
    Count(u64),
    Share(f64),
    Text(&'a str),
    List(Vec<Node<'a>>),
    Object(Vec<(&'static str, Node<'a>)>),
}

/// A part of a report.
pub(super) trait Part {
    /// The values that the part consists of.
    fn node(&self) -> Node<'_>;
}

impl Node<'_> {
    /// Writes the value as JSON.
    fn write(&self, to: &mut String) {
        match self {
            Self::Null => to.push_str("null"),
            Self::Count(number) => plain(to, format_args!("{number}")),
            // Shares are quotients of counts with a nonzero divisor, so they are finite.
            Self::Share(number) => plain(to, format_args!("{number:?}")),
            Self::Text(text) => quote(to, text),
            Self::List(items) => list(to, ['[', ']'], items, |to, item| item.write(to)),
            Self::Object(fields) => list(to, ['{', '}'], fields, |to, (name, value)| {
                quote(to, name);
                to.push(':');
                value.write(to);
            }),
        }
    }
}

/// Writes items between two brackets, with commas.
fn list<I>(to: &mut String, brackets: [char; 2], items: &[I], write: impl Fn(&mut String, &I)) {
    to.push(brackets[0]);
    for (i, item) in items.iter().enumerate() {
        if i > 0 {
            to.push(',');
        }
        write(to, item);
    }
    to.push(brackets[1]);
}

/// Writes formatted text. Writing into a string does not fail.
fn plain(to: &mut String, what: Arguments<'_>) {
    let _ = to.write_fmt(what);
}

/// Writes a string in quotes, with quotes, backslashes and control characters escaped (RFC 8259,
/// section 7).
fn quote(to: &mut String, text: &str) {
    to.push('"');
    for c in text.chars() {
        match c {
            '"' => to.push_str("\\\""),
            '\\' => to.push_str("\\\\"),
            '\u{8}' => to.push_str("\\b"),
            '\t' => to.push_str("\\t"),
            '\n' => to.push_str("\\n"),
            '\u{c}' => to.push_str("\\f"),
            '\r' => to.push_str("\\r"),
            c if c < ' ' => plain(to, format_args!("\\u{:04x}", u32::from(c))),
            c => to.push(c),
        }
    }
    to.push('"');
}

impl Part for String {
    fn node(&self) -> Node<'_> {
        Node::Text(self)
    }
}

impl Part for Cow<'static, str> {
    fn node(&self) -> Node<'_> {
        Node::Text(self)
    }
}

impl Part for u32 {
    fn node(&self) -> Node<'_> {
        Node::Count(u64::from(*self))
    }
}

impl Part for u64 {
    fn node(&self) -> Node<'_> {
        Node::Count(*self)
    }
}

impl Part for usize {
    fn node(&self) -> Node<'_> {
        Node::Count(*self as u64)
    }
}

fn share(share: Option<f64>) -> Node<'static> {
    share.map_or(Node::Null, Node::Share)
}

/// Nanoseconds: 584 years at most.
fn nanos(time: Duration) -> Node<'static> {
    Node::Count(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX))
}

impl<P: Part> Part for Option<P> {
    fn node(&self) -> Node<'_> {
        self.as_ref().map_or(Node::Null, Part::node)
    }
}

impl<P: Part> Part for Vec<P> {
    fn node(&self) -> Node<'_> {
        Node::List(self.iter().map(Part::node).collect())
    }
}

impl Part for (usize, usize) {
    fn node(&self) -> Node<'_> {
        Node::List(vec![self.0.node(), self.1.node()])
    }
}

impl Part for State {
    fn node(&self) -> Node<'_> {
        Node::Text(match self {
            Self::Awake => "awake",
            Self::Asleep => "asleep",
            Self::Closing => "closing",
            Self::ShutDown => "shut_down",
        })
    }
}

impl Part for Report {
    fn node(&self) -> Node<'_> {
        Node::Object(vec![
            ("nodes", self.nodes.node()),
            ("trustees", self.trustees.node()),
        ])
    }
}

impl Part for TrusteeReport {
    fn node(&self) -> Node<'_> {
        Node::Object(vec![
            ("name", self.name.node()),
            ("state", self.state.node()),
            ("cpu", self.cpu.node()),
            ("node", self.node.node()),
            ("metrics", self.metrics.node()),
            ("saturation", share(self.saturation())),
            ("requests_per_batch", share(self.requests_per_batch())),
            ("objects", self.objects.node()),
            ("unnamed", self.unnamed.node()),
            ("held", self.held.node()),
            ("clients", self.clients.node()),
            ("gone", self.gone.node()),
            ("window", self.window.node()),
            ("observed", self.observed.node()),
        ])
    }
}

impl Part for crate::Metrics {
    fn node(&self) -> Node<'_> {
        Node::Object(vec![
            ("requests", self.requests.node()),
            ("batches", self.batches.node()),
            ("passes", self.passes.node()),
            ("passes_with_work", self.passes_with_work.node()),
            ("sleeps", self.sleeps.node()),
            ("rings", self.rings.node()),
            ("panics", self.panics.node()),
        ])
    }
}

impl Part for ObjectReport {
    fn node(&self) -> Node<'_> {
        Node::Object(vec![
            ("name", self.name.node()),
            ("type_name", self.type_name.node()),
            ("node", self.node.node()),
        ])
    }
}

impl Part for HeldReport {
    fn node(&self) -> Node<'_> {
        Node::Object(vec![
            ("name", self.name.node()),
            ("waits_for", self.waits_for.node()),
        ])
    }
}

impl Part for TypeReport {
    fn node(&self) -> Node<'_> {
        Node::Object(vec![
            ("type_name", self.type_name.node()),
            ("count", self.count.node()),
            ("places", self.places.node()),
        ])
    }
}

impl Part for Places {
    fn node(&self) -> Node<'_> {
        Node::Object(vec![
            ("asked", self.asked.node()),
            ("by_node", self.by_node.node()),
        ])
    }
}

impl Part for ClientReport {
    fn node(&self) -> Node<'_> {
        Node::Object(vec![
            ("name", self.name.node()),
            ("queued", self.queued.node()),
            ("node", self.node.node()),
            ("places", self.places.node()),
            ("observed", self.observed.node()),
        ])
    }
}

impl Part for ClientObserved {
    fn node(&self) -> Node<'_> {
        let longest = (self.latencies > 0).then_some(self.latency_longest);
        Node::Object(vec![
            ("polls", self.polls.node()),
            ("ready", self.ready.node()),
            ("ready_rate", share(self.ready_rate())),
            ("pops", self.pops.node()),
            ("failed_pops", self.failed_pops.node()),
            ("failed_pushes", self.failed_pushes.node()),
            ("waits", self.waits.node()),
            ("latencies", self.latencies.node()),
            (
                "latency_mean_ns",
                self.latency_mean().map_or(Node::Null, nanos),
            ),
            ("latency_total_ns", nanos(self.latency_total)),
            ("latency_longest_ns", longest.map_or(Node::Null, nanos)),
        ])
    }
}

impl Part for TrusteeObserved {
    fn node(&self) -> Node<'_> {
        Node::Object(vec![
            ("samples", self.samples.node()),
            ("slowest", self.slowest.node()),
            ("gone", self.gone.node()),
        ])
    }
}

impl Part for ClosureReport {
    fn node(&self) -> Node<'_> {
        Node::Object(vec![
            ("name", self.name.node()),
            ("samples", self.samples.node()),
            ("mean_ns", nanos(self.mean())),
            ("total_ns", nanos(self.total)),
            ("longest_ns", nanos(self.longest)),
        ])
    }
}

#[cfg(all(test, not(any(corelay_loom, corelay_shuttle))))]
mod tests {
    use super::*;

    #[test]
    fn strings_are_escaped() {
        let mut text = String::new();
        quote(&mut text, "a \"b\" \\ \n\t\u{1} ü ∀");
        assert_eq!(text, r#""a \"b\" \\ \n\t\u0001 ü ∀""#);
    }

    #[test]
    fn lists_and_missing_values() {
        let mut text = String::new();
        let places = Places {
            asked: 3,
            by_node: vec![(0, 1), (2, 1)],
        };
        vec![Some(places), None].node().write(&mut text);
        assert_eq!(text, r#"[{"asked":3,"by_node":[[0,1],[2,1]]},null]"#);
    }
}
