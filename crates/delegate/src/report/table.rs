//! A report as text for people.

use crate::report::{
    ClientObserved, ClientReport, ClosureReport, HeldReport, ObjectReport, Places, Report, State,
    TrusteeObserved, TrusteeReport, TypeReport,
};
use std::fmt;
use std::time::Duration;

/// The text for a missing figure.
const NONE: &str = "–";

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for trustee in &self.trustees {
            write!(f, "{trustee}")?;
        }
        match self.nodes {
            Some(1) => writeln!(f, "memory: one node"),
            Some(nodes) => writeln!(f, "memory: {nodes} nodes"),
            None => writeln!(f, "memory: the system does not say on how many nodes"),
        }
    }
}

impl fmt::Display for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Awake => "awake",
            Self::Asleep => "asleep",
            Self::Closing => "closing",
            Self::ShutDown => "shut down",
        })
    }
}

impl fmt::Display for TrusteeReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.name, self.state)?;
        if let Some(cpu) = self.cpu {
            write!(f, ", pinned to CPU {cpu}")?;
        }
        writeln!(f, "{}", OnNode(self.node))?;
        self.work(f)?;
        self.property(f)?;
        self.customers(f)?;
        match &self.observed {
            Some(observed) => self.slowest(observed, f),
            None => writeln!(
                f,
                "  not observed (Builder::observe): no ready rate, no failed pops, no \
                 latency, no slowest closures"
            ),
        }
    }
}

impl TrusteeReport {
    fn work(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let counted = &self.metrics;
        writeln!(
            f,
            "  {} requests in {} batches ({} each); of {} passes {} found work; {} sleeps, \
             {} rings, {} panics",
            counted.requests,
            counted.batches,
            figure(self.requests_per_batch(), ""),
            counted.passes,
            percent(self.saturation()),
            counted.sleeps,
            counted.rings,
            counted.panics,
        )
    }

    fn property(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.objects_owned() {
            0 => writeln!(f, "  owns nothing")?,
            1 => writeln!(f, "  owns 1 object")?,
            n => writeln!(f, "  owns {n} objects")?,
        }
        for object in &self.objects {
            writeln!(f, "    {object}")?;
        }
        for of_type in &self.unnamed {
            writeln!(f, "    {of_type}")?;
        }
        if !self.held.is_empty() {
            writeln!(f, "  held by launched closures: {}", self.held.len())?;
        }
        for held in &self.held {
            writeln!(f, "    {held}")?;
        }
        Ok(())
    }

    fn slowest(&self, observed: &TrusteeObserved, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if observed.gone != ClientObserved::default() {
            writeln!(f, "    those that have gone: {}", observed.gone)?;
        }
        writeln!(
            f,
            "  slowest closures, by samples: {} of {} requests were timed",
            observed.samples, self.metrics.requests
        )?;
        for closure in &observed.slowest {
            writeln!(f, "    {closure}")?;
        }
        Ok(())
    }

    fn customers(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let gone = match self.gone {
            0 => String::new(),
            n => format!("; {n} have gone"),
        };
        writeln!(
            f,
            "  clients: {}, each with a window of {}{gone}",
            self.clients.len(),
            self.window
        )?;
        let wide = |client: &ClientReport| shown(client).chars().count();
        let width = self.clients.iter().map(wide).max().unwrap_or(0);
        for client in &self.clients {
            write!(
                f,
                "    {:width$}  {:>6} queued",
                shown(client),
                client.queued
            )?;
            if let Some(observed) = &client.observed {
                write!(f, ", {observed}")?;
            }
            write!(f, "{}", OnNode(client.node))?;
            if let Some(places) = &client.places {
                write!(f, "; rings: {places}")?;
            }
            writeln!(f)?;
        }
        Ok(())
    }
}

/// A client's name, in quotes.
fn shown(client: &ClientReport) -> String {
    match &client.name {
        Some(name) => format!("{name:?}"),
        None => String::from("without a name"),
    }
}

impl fmt::Display for ObjectReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{:?}, {}{}",
            self.name,
            self.type_name,
            OnNode(self.node)
        )
    }
}

impl fmt::Display for HeldReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)?;
        match &self.waits_for[..] {
            [] => Ok(()),
            all => write!(f, ", waits for {}", all.join(", ")),
        }
    }
}

impl fmt::Display for TypeReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} without a name, {}", self.count, self.type_name)?;
        match &self.places {
            Some(places) => write!(f, "; of {}: {places}", places.asked),
            None => Ok(()),
        }
    }
}

impl fmt::Display for Places {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut unknown = self.asked;
        for (i, (node, count)) in self.by_node.iter().enumerate() {
            write!(f, "{}{count} on node {node}", if i > 0 { ", " } else { "" })?;
            unknown -= count;
        }
        match (unknown, self.by_node.is_empty()) {
            (0, _) => Ok(()),
            (_, true) => write!(f, "nobody knows where"),
            (n, false) => write!(f, ", of {n} nobody knows"),
        }
    }
}

/// A memory node that is shown as ", node 1", or as nothing if it is unknown.
struct OnNode(Option<usize>);

impl fmt::Display for OnNode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(node) => write!(f, ", node {node}"),
            None => Ok(()),
        }
    }
}

impl fmt::Display for ClientObserved {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} polls ({} ready), {} failed pops, {} failed pushes, {} waits, latency {} (longest {}, of {} timed)",
            self.polls,
            percent(self.ready_rate()),
            self.failed_pops,
            self.failed_pushes,
            self.waits,
            time(self.latency_mean()),
            time((self.latencies > 0).then_some(self.latency_longest)),
            self.latencies,
        )
    }
}

impl fmt::Display for ClosureReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{:>9}, longest {:>9}, {:>7} samples: {}",
            time(Some(self.mean())),
            time(Some(self.longest)),
            self.samples,
            self.name
        )
    }
}

fn figure(value: Option<f64>, unit: &str) -> String {
    value.map_or_else(|| NONE.to_owned(), |value| format!("{value:.1}{unit}"))
}

fn percent(share: Option<f64>) -> String {
    figure(share.map(|share| share * 100.0), " %")
}

/// A time with three digits or so: `1.23µs`.
fn time(time: Option<Duration>) -> String {
    let Some(time) = time else {
        return NONE.to_owned();
    };
    match time.as_nanos() {
        0..1_000 => format!("{time:?}"),
        _ => format!("{time:.1?}"),
    }
}

#[cfg(all(test, not(any(corelay_loom, corelay_shuttle))))]
pub(super) mod tests {
    use super::*;
    use crate::Metrics;

    pub(in crate::report) fn trustee() -> TrusteeReport {
        TrusteeReport {
            name: "owner-0".into(),
            state: State::Awake,
            cpu: Some(3),
            node: Some(1),
            metrics: Metrics {
                requests: 300,
                batches: 100,
                passes: 400,
                passes_with_work: 100,
                sleeps: 2,
                rings: 4,
                panics: 1,
            },
            objects: vec![ObjectReport {
                name: "hits \"of\" the day".into(),
                type_name: "u64".into(),
                node: Some(1),
            }],
            unnamed: vec![TypeReport {
                type_name: "bool".into(),
                count: 20,
                places: Some(Places {
                    asked: 16,
                    by_node: vec![(0, 3), (1, 12)],
                }),
            }],
            held: vec![
                HeldReport {
                    name: "\"stock\" (u64)".into(),
                    waits_for: vec!["\"log\" (u8)".into(), "bool".into()],
                },
                HeldReport {
                    name: "u32".into(),
                    waits_for: Vec::new(),
                },
            ],
            clients: vec![
                ClientReport {
                    name: Some("front".into()),
                    queued: 7,
                    node: Some(0),
                    places: Some(Places {
                        asked: 3,
                        by_node: vec![(0, 3)],
                    }),
                    observed: Some(ClientObserved {
                        polls: 8,
                        ready: 2,
                        pops: 6,
                        failed_pops: 3,
                        failed_pushes: 5,
                        waits: 4,
                        latencies: 2,
                        latency_total: Duration::from_micros(3),
                        latency_longest: Duration::from_micros(2),
                    }),
                },
                ClientReport {
                    name: None,
                    queued: 0,
                    node: None,
                    places: None,
                    observed: Some(ClientObserved::default()),
                },
            ],
            gone: 5,
            window: 256,
            observed: Some(TrusteeObserved {
                samples: 2,
                slowest: vec![ClosureReport {
                    name: "main::{{closure}}".into(),
                    samples: 2,
                    total: Duration::from_nanos(900),
                    longest: Duration::from_nanos(1_500),
                }],
                gone: ClientObserved::default(),
            }),
        }
    }

    #[test]
    fn a_full_report_is_shown() {
        let report = Report {
            nodes: Some(2),
            trustees: vec![trustee()],
        };
        let expected = r#"owner-0: awake, pinned to CPU 3, node 1
  300 requests in 100 batches (3.0 each); of 400 passes 25.0 % found work; 2 sleeps, 4 rings, 1 panics
  owns 21 objects
    "hits \"of\" the day", u64, node 1
    20 without a name, bool; of 16: 3 on node 0, 12 on node 1, of 1 nobody knows
  held by launched closures: 2
    "stock" (u64), waits for "log" (u8), bool
    u32
  clients: 2, each with a window of 256; 5 have gone
    "front"              7 queued, 8 polls (25.0 % ready), 3 failed pops, 5 failed pushes, 4 waits, latency 1.5µs (longest 2.0µs, of 2 timed), node 0; rings: 3 on node 0
    without a name       0 queued, 0 polls (– ready), 0 failed pops, 0 failed pushes, 0 waits, latency – (longest –, of 0 timed)
  slowest closures, by samples: 2 of 300 requests were timed
        450ns, longest     1.5µs,       2 samples: main::{{closure}}
memory: 2 nodes
"#;
        assert_eq!(report.to_string(), expected);
    }

    #[test]
    fn missing_figures_are_said_to_be_missing() {
        let mut silent = trustee();
        silent.observed = None;
        silent.metrics = Metrics::default();
        silent.objects.clear();
        silent.unnamed.clear();
        let mut report = Report {
            nodes: Some(1),
            trustees: vec![silent],
        };
        let text = report.to_string();
        assert!(text.contains("not observed (Builder::observe)"), "{text}");
        assert!(text.contains("(– each)") && text.contains("– found work"));
        assert!(text.contains("  owns nothing\n"));
        assert!(text.ends_with("memory: one node\n"));
        report.nodes = None;
        assert!(report.to_string().contains("the system does not say"));
    }
}
