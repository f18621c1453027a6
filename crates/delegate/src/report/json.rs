//! A report as JSON, without a library for it.

use crate::report::{
    ClientObserved, ClientReport, ClosureReport, HeldReport, ObjectReport, Places, Report, State,
    TrusteeObserved, TrusteeReport, TypeReport,
};
use std::fmt::Write;
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
    ///              slowest: [{ name, samples, mean_ns, longest_ns }], gone: Observed } }
    /// Client   { name, queued, node, places: Places, observed: Observed }
    /// Observed null | { polls, ready, ready_rate, failed_pops, waits, latencies,
    ///                   latency_mean_ns, latency_longest_ns }
    /// Places   null | { asked, by_node: [[node, count]] }
    /// ```
    pub fn to_json(&self) -> String {
        let mut json = Json::default();
        self.write(&mut json);
        json.text
    }
}

/// A JSON text under construction.
#[derive(Default)]
struct Json {
    text: String,
}

/// A value that can be written as JSON.
trait Value {
    fn write(&self, to: &mut Json);
}

impl Json {
    /// Writes items between two brackets, with commas.
    fn list<V: Value>(&mut self, brackets: [char; 2], items: impl IntoIterator<Item = V>) {
        self.text.push(brackets[0]);
        for (i, item) in items.into_iter().enumerate() {
            if i > 0 {
                self.text.push(',');
            }
            item.write(self);
        }
        self.text.push(brackets[1]);
    }

    fn object(&mut self, fields: &[(&str, &dyn Value)]) {
        self.list(['{', '}'], fields);
    }

    /// Writes formatted text. Writing into a string does not fail.
    fn plain(&mut self, what: std::fmt::Arguments<'_>) {
        let _ = self.text.write_fmt(what);
    }
}

impl Value for &(&str, &dyn Value) {
    fn write(&self, to: &mut Json) {
        self.0.write(to);
        to.text.push(':');
        self.1.write(to);
    }
}

impl Value for str {
    /// Writes a string in quotes, with quotes, backslashes and control characters escaped (RFC
    /// 8259, section 7).
    fn write(&self, to: &mut Json) {
        to.text.push('"');
        for c in self.chars() {
            match c {
                '"' => to.text.push_str("\\\""),
                '\\' => to.text.push_str("\\\\"),
                '\n' => to.text.push_str("\\n"),
                c if c < ' ' => to.plain(format_args!("\\u{:04x}", u32::from(c))),
                c => to.text.push(c),
            }
        }
        to.text.push('"');
    }
}

impl Value for String {
    fn write(&self, to: &mut Json) {
        self.as_str().write(to);
    }
}

impl Value for &str {
    fn write(&self, to: &mut Json) {
        (**self).write(to);
    }
}

macro_rules! numbers {
    ($($number:ty),*) => { $(
        impl Value for $number {
            fn write(&self, to: &mut Json) {
                to.plain(format_args!("{self}"));
            }
        }
    )* };
}

// Shares are quotients of counts with a nonzero divisor, so they are finite.
numbers!(u32, u64, usize, f64);

impl Value for Duration {
    fn write(&self, to: &mut Json) {
        to.plain(format_args!("{}", self.as_nanos()));
    }
}

impl<V: Value> Value for Option<V> {
    fn write(&self, to: &mut Json) {
        match self {
            Some(value) => value.write(to),
            None => to.text.push_str("null"),
        }
    }
}

impl<V: Value> Value for Vec<V> {
    fn write(&self, to: &mut Json) {
        to.list(['[', ']'], self);
    }
}

impl<V: Value> Value for &V {
    fn write(&self, to: &mut Json) {
        (**self).write(to);
    }
}

impl Value for (usize, usize) {
    fn write(&self, to: &mut Json) {
        to.list(['[', ']'], [self.0, self.1]);
    }
}

impl Value for State {
    fn write(&self, to: &mut Json) {
        let name = match self {
            Self::Awake => "awake",
            Self::Asleep => "asleep",
            Self::Closing => "closing",
            Self::ShutDown => "shut_down",
        };
        name.write(to);
    }
}

impl Value for Report {
    fn write(&self, to: &mut Json) {
        to.object(&[("nodes", &self.nodes), ("trustees", &self.trustees)]);
    }
}

impl Value for TrusteeReport {
    fn write(&self, to: &mut Json) {
        to.object(&[
            ("name", &self.name),
            ("state", &self.state),
            ("cpu", &self.cpu),
            ("node", &self.node),
            ("metrics", &self.metrics),
            ("saturation", &self.saturation()),
            ("requests_per_batch", &self.requests_per_batch()),
            ("objects", &self.objects),
            ("unnamed", &self.unnamed),
            ("held", &self.held),
            ("clients", &self.clients),
            ("gone", &self.gone),
            ("window", &self.window),
            ("observed", &self.observed),
        ]);
    }
}

impl Value for crate::Metrics {
    fn write(&self, to: &mut Json) {
        to.object(&[
            ("requests", &self.requests),
            ("batches", &self.batches),
            ("passes", &self.passes),
            ("passes_with_work", &self.passes_with_work),
            ("sleeps", &self.sleeps),
            ("rings", &self.rings),
            ("panics", &self.panics),
        ]);
    }
}

impl Value for ObjectReport {
    fn write(&self, to: &mut Json) {
        to.object(&[
            ("name", &self.name),
            ("type_name", &self.type_name),
            ("node", &self.node),
        ]);
    }
}

impl Value for HeldReport {
    fn write(&self, to: &mut Json) {
        to.object(&[("name", &self.name), ("waits_for", &self.waits_for)]);
    }
}

impl Value for TypeReport {
    fn write(&self, to: &mut Json) {
        to.object(&[
            ("type_name", &self.type_name),
            ("count", &self.count),
            ("places", &self.places),
        ]);
    }
}

impl Value for Places {
    fn write(&self, to: &mut Json) {
        to.object(&[("asked", &self.asked), ("by_node", &self.by_node)]);
    }
}

impl Value for ClientReport {
    fn write(&self, to: &mut Json) {
        to.object(&[
            ("name", &self.name),
            ("queued", &self.queued),
            ("node", &self.node),
            ("places", &self.places),
            ("observed", &self.observed),
        ]);
    }
}

impl Value for ClientObserved {
    fn write(&self, to: &mut Json) {
        let longest = (self.latencies > 0).then_some(self.latency_longest);
        to.object(&[
            ("polls", &self.polls),
            ("ready", &self.ready),
            ("ready_rate", &self.ready_rate()),
            ("failed_pops", &self.failed_pops),
            ("waits", &self.waits),
            ("latencies", &self.latencies),
            ("latency_mean_ns", &self.latency_mean()),
            ("latency_longest_ns", &longest),
        ]);
    }
}

impl Value for TrusteeObserved {
    fn write(&self, to: &mut Json) {
        to.object(&[
            ("samples", &self.samples),
            ("slowest", &self.slowest),
            ("gone", &self.gone),
        ]);
    }
}

impl Value for ClosureReport {
    fn write(&self, to: &mut Json) {
        to.object(&[
            ("name", &self.name),
            ("samples", &self.samples),
            ("mean_ns", &self.mean()),
            ("longest_ns", &self.longest),
        ]);
    }
}

#[cfg(all(test, not(any(corelay_loom, corelay_shuttle))))]
mod tests {
    use super::*;

    #[test]
    fn strings_are_escaped() {
        let mut json = Json::default();
        "a \"b\" \\ \n\t\u{1} ü ∀".write(&mut json);
        assert_eq!(json.text, r#""a \"b\" \\ \n\u0009\u0001 ü ∀""#);
    }

    #[test]
    fn lists_and_missing_values() {
        let mut json = Json::default();
        let places = Places {
            asked: 3,
            by_node: vec![(0, 1), (2, 1)],
        };
        vec![Some(places), None].write(&mut json);
        assert_eq!(json.text, r#"[{"asked":3,"by_node":[[0,1],[2,1]]},null]"#);
    }
}
