//! `corelay machine`: what machine this is and how far apart its CPUs are.

use crate::cli::host::Host;
use crate::cli::{Exit, output};
use crate::measure::mode::NEAR_FACTOR;
use crate::measure::stats;
use corelay_topology::Order;
use serde::Serialize;
use std::fmt::Write;
use std::time::Duration;

/// How long the pair is probed: the modes of a virtual machine last seconds.
const PROBE_TIME: Duration = Duration::from_secs(2);

/// Show the machine: CPUs, caches, nodes, quota, and the round trip between two CPUs
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Print JSON instead of text
    #[arg(long)]
    json: bool,
}

/// The round trip between a pair of CPUs over a while.
#[derive(Debug, Serialize)]
struct RoundTrip {
    /// The pair.
    cpus: (usize, usize),
    /// Smallest ever seen, in nanoseconds.
    smallest_ns: f64,
    /// Median, in nanoseconds.
    median_ns: f64,
    /// Share of the time at most twice the smallest ever seen, 0..=1.
    near_share: f64,
    /// Histogram.
    histogram: Vec<Bin>,
}

/// Round trips of `from_ns..to_ns`.
#[derive(Debug, Serialize)]
struct Bin {
    from_ns: f64,
    to_ns: f64,
    /// Share of the time, 0..=1.
    share: f64,
}

pub(crate) fn run(args: Args) -> Result<Exit, String> {
    let host = Host::look();
    let mut rig = host.rig(&Order::CoresFirst, 0)?;
    let reading = rig.probe(PROBE_TIME);
    let round_trip = rig.pair().zip(rig.smallest_ns()).zip(reading);
    let round_trip = round_trip.map(|((pair, smallest), r)| RoundTrip::new(pair, smallest, &r.batches));
    rig.save();
    let results = host.results(&rig, Vec::new());
    let text = if args.json {
        #[derive(Serialize)]
        struct Output<'a> {
            schema: u32,
            #[serde(flatten)]
            machine: &'a crate::schema::Machine,
            round_trip: Option<RoundTrip>,
        }
        let (schema, machine) = (results.schema, &results.machine);
        let json = serde_json::to_string_pretty(&Output { schema, machine, round_trip });
        json.map_err(|error| error.to_string())? + "\n"
    } else {
        text(&host, &results.machine, round_trip.as_ref())
    };
    output::print(text.as_bytes()).map_err(|error| error.to_string())?;
    Ok(if rig.is_interrupted() { Exit::Interrupted } else { Exit::Fine })
}

fn text(host: &Host, machine: &crate::schema::Machine, round_trip: Option<&RoundTrip>) -> String {
    let mut text = format!("{} ({}), Linux {}\n", machine.model, machine.arch, machine.kernel);
    text = text.replace("Linux unknown", std::env::consts::OS);
    let hypervisor = machine.hypervisor.as_deref().unwrap_or("none seen");
    let _ = writeln!(text, "hypervisor: {hypervisor}");
    if let Some(clock) = &host.facts.clock_source {
        let _ = writeln!(text, "clock source: {clock}");
    }
    let _ = write!(text, "{}", host.topology);
    if let Some(round_trip) = round_trip {
        round_trip.write(&mut text);
    }
    // The topology has said its own.
    for sentence in machine.unavailable.iter().filter(|s| !host.topology.unavailable().contains(s)) {
        let _ = writeln!(text, "unavailable: {sentence}");
    }
    text
}

impl RoundTrip {
    /// Each batch weighs as much as it lasted: a share is a share of time.
    fn new(cpus: (usize, usize), smallest_ns: f64, batches: &[f64]) -> Self {
        let total: f64 = batches.iter().sum();
        let share = |inside: &dyn Fn(f64) -> bool| {
            batches.iter().filter(|&&ns| inside(ns)).sum::<f64>() / total
        };
        // Steps of the fourth root of two from the smallest; the last bin takes all above
        // 32 times it (a thread that lost its CPU).
        let edge = |i: usize| smallest_ns * (i as f64 / 4.0).exp2();
        let last = 20;
        let bins = (0..=last).map(|i| {
            let (from_ns, to_ns) = (edge(i), if i == last { f64::MAX } else { edge(i + 1) });
            Bin { from_ns, to_ns, share: share(&|ns| from_ns <= ns && ns < to_ns) }
        });
        Self {
            cpus,
            smallest_ns,
            median_ns: stats::median(batches).unwrap_or(f64::NAN),
            near_share: share(&|ns| ns <= NEAR_FACTOR * smallest_ns),
            histogram: bins.filter(|bin| bin.share > 0.0).collect(),
        }
    }

    fn write(&self, text: &mut String) {
        let (a, b) = self.cpus;
        let _ = writeln!(
            text,
            "round trip between CPUs {a} and {b} over {} s: median {:.0} ns, smallest ever {:.0} ns",
            PROBE_TIME.as_secs(),
            self.median_ns,
            self.smallest_ns,
        );
        for bin in &self.histogram {
            let to = if bin.to_ns == f64::MAX { "∞".to_owned() } else { format!("{:.0}", bin.to_ns) };
            let mode = if bin.to_ns <= NEAR_FACTOR * self.smallest_ns * 1.001 { "near" } else { "far" };
            let width = (bin.share * 40.0).round() as usize;
            let (from, percent) = (bin.from_ns, bin.share * 100.0);
            let bar = "█".repeat(width);
            let _ = writeln!(text, "  {from:>6.0} – {to:<6} ns {percent:>5.1} %  {mode:4} {bar}");
        }
        let near = self.near_share * 100.0;
        let _ = writeln!(text, "  near {near:.1} % of the time, far {:.1} %", 100.0 - near);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_shares_of_time() {
        let trip = RoundTrip::new((0, 1), 100.0, &[100.0, 100.0, 100.0, 500.0, 1e6]);
        let sum: f64 = trip.histogram.iter().map(|b| b.share).sum();
        assert!((sum - 1.0).abs() < 1e-9);
        let far = trip.histogram.iter().find(|b| b.from_ns <= 500.0 && 500.0 < b.to_ns).unwrap();
        assert!((far.share - 500.0 / 1_000_800.0).abs() < 1e-9);
        assert!((trip.near_share - 300.0 / 1_000_800.0).abs() < 1e-9);
        let mut text = String::new();
        trip.write(&mut text);
        assert!(text.contains("∞"));
    }
}
