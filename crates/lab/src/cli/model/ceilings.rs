//! `corelay model ceilings`: computes the throughput that latency, links and cycles allow (F6).

use crate::cli::list::number;
use corelay_lab_compare::COMMIT;
use corelay_lab_measure::host::Host;
use corelay_lab_measure::machine;
use corelay_lab_measure::measure::mode::NEAR_FACTOR;
use corelay_lab_measure::measure::stats;
use corelay_lab_report::exit::Exit;
use corelay_lab_report::model::ceilings::{
    Ceilings, CoreBuffer, SOURCE_BUFFERS, cycles_each, links, processing,
};
use corelay_lab_report::plot::significant;
use corelay_lab_report::table::columns::columns;
use corelay_lab_report::words::wrap;
use corelay_topology::Order;
use serde::Serialize;
use std::fmt::Write;
use std::time::Duration;

/// Time for which the pair of CPUs is probed.
const PROBE_TIME: Duration = Duration::from_millis(500);

/// Million lines that a link carries per second in the slides: "300 cache lines per link".
const SOURCE_LINK_LINES: f64 = 300.0;

/// Cycles per operation of the slides' server: 55 Mops at 2.2 GHz.
const SOURCE_CYCLES: f64 = 40.0;

/// The throughput that latency, links and cycles allow: the ceilings of locks and of delegation
///
/// A calculator after the slides on ffwd ("why so slow?", "why isn't it even faster?"). If --rtt is
/// not given, the round trip between two CPUs (a line there and a line back) is measured here.
/// Values that cannot be measured are taken from the slides and marked as such.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Nanoseconds of a round trip between two cores [default: measured here]
    #[arg(long, allow_negative_numbers = true, value_name = "NS", value_parser = super::positive)]
    rtt: Option<f64>,

    /// Threads that make requests [default: one less than the number of CPUs]
    #[arg(long, allow_negative_numbers = true, value_name = "N", value_parser = number(1..=1 << 20))]
    clients: Option<u64>,

    /// Links between sockets that carry requests
    #[arg(long, allow_negative_numbers = true, value_name = "N", default_value_t = 1,
          value_parser = number(1..=1024))]
    links: u64,

    /// Million lines that a link carries per second; the default is the slides' value
    #[arg(long, allow_negative_numbers = true, value_name = "N", default_value_t = SOURCE_LINK_LINES,
          value_parser = super::positive)]
    link_lines: f64,

    /// GHz of the server's core [default: this machine's]
    #[arg(long, allow_negative_numbers = true, value_name = "N", value_parser = super::positive)]
    ghz: Option<f64>,

    /// Cycles that the server takes for an operation; the default is the slides' value
    #[arg(long, allow_negative_numbers = true, value_name = "N", default_value_t = SOURCE_CYCLES,
          value_parser = super::positive)]
    cycles: f64,

    /// Lines that the server's core can wait for at once; the default is a Broadwell's
    #[arg(long, allow_negative_numbers = true, value_name = "N",
          default_value_t = SOURCE_BUFFERS[0].entries, value_parser = super::positive)]
    fill_buffers: f64,

    /// Entries of the core's store buffer; the default is a Broadwell's
    #[arg(long, allow_negative_numbers = true, value_name = "N",
          default_value_t = SOURCE_BUFFERS[1].entries, value_parser = super::positive)]
    store_buffer: f64,

    /// Instructions in the core's reorder window; the default is a Broadwell's
    #[arg(long, allow_negative_numbers = true, value_name = "N",
          default_value_t = SOURCE_BUFFERS[2].entries, value_parser = super::positive)]
    window: f64,

    /// Stores of an operation at the server
    #[arg(long, allow_negative_numbers = true, value_name = "N",
          default_value_t = SOURCE_BUFFERS[1].each, value_parser = super::positive)]
    stores: f64,

    /// Instructions of an operation at the server; the default is assumed, not counted
    #[arg(long, allow_negative_numbers = true, value_name = "N",
          default_value_t = SOURCE_BUFFERS[2].each, value_parser = super::positive)]
    instructions: f64,

    /// Mops for which cycles and requests in flight are computed [default: what all clients reach]
    #[arg(long, allow_negative_numbers = true, value_name = "N", value_parser = super::positive)]
    mops: Option<f64>,

    /// Print JSON instead of the table
    #[arg(long)]
    json: bool,
}

/// The origin of a value.
#[derive(Clone, Copy, Serialize)]
#[serde(rename_all = "lowercase")]
enum From {
    /// Measured on this machine, now.
    Measured,
    /// Given on the command line.
    Given,
    /// Taken from the slides.
    Source,
    /// Reported by the kernel.
    System,
}

/// A value and its origin.
#[derive(Clone, Copy, Serialize)]
struct Value {
    value: f64,
    from: From,
}

/// The values that the ceilings are computed from. Round trips are in nanoseconds.
#[derive(Serialize)]
struct Inputs {
    rtt_ns: Option<Value>,
    /// The smallest round trip ever seen between the pair.
    smallest_rtt_ns: Option<f64>,
    clients: u64,
    links: u64,
    link_mlines: Value,
    ghz: Option<Value>,
    cycles: Value,
    /// Entries of the core's buffers: line-fill buffers, store buffer, reorder window.
    buffers: [Value; 3],
    /// Stores of an operation, and its instructions.
    stores: f64,
    instructions: f64,
}

impl Inputs {
    /// Returns the core's buffers with what an operation takes of them.
    fn core(&self) -> [CoreBuffer; 3] {
        let each = [1.0, self.stores, self.instructions];
        std::array::from_fn(|i| CoreBuffer {
            entries: self.buffers[i].value,
            each: each[i],
            ..SOURCE_BUFFERS[i]
        })
    }
}

/// The computed ceilings. Rates are in Mops.
#[derive(Default, Serialize)]
struct Results {
    lock_limit_mops: Option<f64>,
    per_client_mops: Option<f64>,
    clients_mops: Option<f64>,
    links_mops: f64,
    processing_mops: Option<f64>,
    /// Limits by the core's buffers: line-fill buffers, store buffer, reorder window.
    buffers_mops: Option<[f64; 3]>,
    /// The throughput that the next two values are computed for.
    at_mops: Option<f64>,
    cycles_per_operation: Option<f64>,
    in_flight: Option<f64>,
}

/// The output of `--json`.
#[derive(Serialize)]
struct Output {
    inputs: Inputs,
    ceilings: Results,
    #[serde(skip_serializing_if = "Option::is_none")]
    unavailable: Option<String>,
}

pub(super) fn run(args: &Args) -> Result<Exit, String> {
    let host = Host::look(COMMIT);
    let (mut smallest_rtt_ns, mut unavailable) = (None, None);
    let rtt_ns = match args.rtt {
        Some(value) => Some(Value {
            value,
            from: From::Given,
        }),
        None => {
            let mut rig = host.rig(&Order::CoresFirst, 0)?;
            let batches: Vec<f64> = rig
                .watch(PROBE_TIME)
                .into_iter()
                .filter(|reading| !reading.on_one_core)
                .flat_map(|reading| reading.batches)
                .collect();
            let median = stats::median(&batches);
            smallest_rtt_ns = rig.smallest_ns();
            unavailable = rig
                .no_probe()
                .map(|why| format!("round trip: {why}; give --rtt"));
            rig.save();
            median.map(|value| Value {
                value,
                from: From::Measured,
            })
        }
    };
    let one_less = host.machine.cpus.saturating_sub(1).max(1) as u64;
    let given_or_source = |value: f64, source: f64| Value {
        value,
        from: if value == source {
            From::Source
        } else {
            From::Given
        },
    };
    let entries = [args.fill_buffers, args.store_buffer, args.window];
    let given_ghz = args.ghz.map(|value| (value, From::Given));
    let ghz = given_ghz.or_else(|| machine::clock_ghz().map(|value| (value, From::System)));
    let inputs = Inputs {
        rtt_ns,
        smallest_rtt_ns,
        clients: args.clients.unwrap_or(one_less),
        links: args.links,
        link_mlines: given_or_source(args.link_lines, SOURCE_LINK_LINES),
        ghz: ghz.map(|(value, from)| Value { value, from }),
        cycles: given_or_source(args.cycles, SOURCE_CYCLES),
        buffers: std::array::from_fn(|i| given_or_source(entries[i], SOURCE_BUFFERS[i].entries)),
        stores: args.stores,
        instructions: args.instructions,
    };
    let output = Output {
        ceilings: ceilings(&inputs, args.mops),
        inputs,
        unavailable,
    };
    super::deliver(args.json, &output, &text(&output))
}

fn ceilings(inputs: &Inputs, mops: Option<f64>) -> Results {
    let clients = inputs.clients as usize;
    let of = |clients| {
        inputs.rtt_ns.map(|rtt| Ceilings {
            rtt_ns: rtt.value,
            clients,
        })
    };
    let ghz = inputs.ghz.map(|ghz| ghz.value);
    let clients_mops = of(clients).map(Ceilings::one_in_flight);
    let at_mops = mops.or(clients_mops);
    Results {
        lock_limit_mops: of(1).map(Ceilings::lock_handover),
        per_client_mops: of(1).map(Ceilings::one_in_flight),
        clients_mops,
        links_mops: links(inputs.links, inputs.link_mlines.value),
        processing_mops: ghz.map(|ghz| processing(ghz, inputs.cycles.value)),
        buffers_mops: of(clients).map(|of| inputs.core().map(|buffer| of.of_core(buffer))),
        at_mops,
        cycles_per_operation: ghz.zip(at_mops).map(|(ghz, mops)| cycles_each(ghz, mops)),
        in_flight: of(clients)
            .zip(at_mops)
            .map(|(of, mops)| of.in_flight_for(mops)),
    }
}

fn text(output: &Output) -> String {
    let Output {
        inputs, ceilings, ..
    } = output;
    let mut text = String::new();
    let from = |value: Option<Value>| match value.map(|value| value.from) {
        Some(From::Measured) => "measured here",
        Some(From::Given) => "given",
        Some(From::Source) => "from the source, not measured here",
        Some(From::System) => "from the system",
        None => "unavailable",
    };
    let figure = |value: Option<f64>| value.map_or("–".to_owned(), significant);
    let value = |value: Option<Value>| figure(value.map(|value| value.value));
    let smallest = match inputs.smallest_rtt_ns {
        Some(ns) => format!("; near is up to {} ns here", significant(NEAR_FACTOR * ns)),
        None => String::new(),
    };
    let values = format!(
        "round trip {} ns ({}{smallest}), clients {}, links {} of {} M lines/s ({}), {} GHz ({}), \
         {} cycles per operation ({})",
        value(inputs.rtt_ns),
        from(inputs.rtt_ns),
        inputs.clients,
        inputs.links,
        value(Some(inputs.link_mlines)),
        from(Some(inputs.link_mlines)),
        value(inputs.ghz),
        from(inputs.ghz),
        value(Some(inputs.cycles)),
        from(Some(inputs.cycles)),
    );
    let _ = writeln!(text, "{}\n", wrap(&values, "", 96));
    let row = |what: &str, how: &str, here, source: &str| {
        [
            what.to_owned(),
            how.to_owned(),
            figure(here),
            source.to_owned(),
        ]
    };
    let at = figure(ceilings.at_mops);
    let mut rows = vec![
        row(
            "a lock whose line moves at each handover, Mops",
            "1 / one-way latency",
            ceilings.lock_limit_mops,
            "14 (70 ns)",
        ),
        row(
            "a client with one request in flight, Mops",
            "1 / round trip",
            ceilings.per_client_mops,
            "2.5 (400 ns)",
        ),
        row(
            "all clients, each with one, Mops",
            "clients / round trip",
            ceilings.clients_mops,
            "300 (120)",
        ),
        row(
            "what the links carry, Mops",
            "links × lines per second",
            Some(ceilings.links_mops),
            "300+ a link",
        ),
        row(
            "what a server processes, Mops",
            "rate / cycles",
            ceilings.processing_mops,
            "55 (40 cycles)",
        ),
        row(
            &format!("cycles per operation at {at} Mops"),
            "rate / Mops",
            ceilings.cycles_per_operation,
            "40 (55 Mops)",
        ),
        row(
            &format!("requests in flight for {at} Mops"),
            "Mops × round trip",
            ceilings.in_flight,
            "120 (300 Mops)",
        ),
    ];
    let slides = Ceilings {
        rtt_ns: 400.0,
        clients: 120,
    };
    for (i, (buffer, source)) in inputs.core().into_iter().zip(SOURCE_BUFFERS).enumerate() {
        rows.push(row(
            &format!("a server's {} ({}), Mops", buffer.name, buffer.entries),
            &format!("entries / {} / one-way latency", buffer.each),
            ceilings.buffers_mops.map(|mops| mops[i]),
            &format!("{} (model)", significant(slides.of_core(source))),
        ));
    }
    text += &format!(
        "{}\n",
        columns(["ceiling", "formula", "here", "the source"], rows, 2)
    );
    let sizes = match inputs
        .buffers
        .iter()
        .all(|entries| matches!(entries.from, From::Source))
    {
        true => {
            "The core's buffers are a Broadwell's (the slides' largest machine), not measured here: \
                 `--fill-buffers`, `--store-buffer`, `--window`."
        }
        false => "The core's buffers are as given.",
    };
    let why = format!(
        "The slides ask why they see 55 Mops where clients and links allow 300, and suspect the \
         server's buffers. {sizes}"
    );
    let _ = writeln!(text, "{}", wrap(&why, "", 96));
    if let Some(sentence) = &output.unavailable {
        let _ = writeln!(text, "unavailable: {sentence}");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_slides_values_give_the_slides_figures() {
        let value = |value| Value {
            value,
            from: From::Given,
        };
        let inputs = Inputs {
            rtt_ns: Some(value(400.0)),
            smallest_rtt_ns: None,
            clients: 120,
            links: 1,
            link_mlines: value(300.0),
            ghz: Some(value(2.2)),
            cycles: value(40.0),
            buffers: [10.0, 42.0, 192.0].map(value),
            stores: 3.0,
            instructions: 40.0,
        };
        let at_once = ceilings(&inputs, None);
        assert_eq!(at_once.per_client_mops, Some(2.5));
        assert_eq!(at_once.clients_mops, Some(300.0));
        assert_eq!(at_once.in_flight, Some(120.0));
        assert_eq!(at_once.links_mops, 300.0);
        assert_eq!(at_once.processing_mops, Some(55.0));
        assert_eq!(at_once.buffers_mops, Some([50.0, 70.0, 24.0]));
        let seen = ceilings(&inputs, Some(55.0));
        assert_eq!(seen.cycles_per_operation, Some(40.0));
        let lock = Inputs {
            rtt_ns: Some(value(140.0)),
            ..inputs
        };
        assert!((ceilings(&lock, None).lock_limit_mops.unwrap() - 14.3).abs() < 0.1);
    }

    #[test]
    fn unknown_inputs_give_no_ceiling() {
        let inputs = Inputs {
            rtt_ns: None,
            smallest_rtt_ns: None,
            clients: 1,
            links: 2,
            link_mlines: Value {
                value: 300.0,
                from: From::Source,
            },
            ghz: None,
            cycles: Value {
                value: 40.0,
                from: From::Source,
            },
            buffers: [10.0, 42.0, 192.0].map(|value| Value {
                value,
                from: From::Source,
            }),
            stores: 3.0,
            instructions: 40.0,
        };
        let out = ceilings(&inputs, None);
        assert_eq!(
            (out.lock_limit_mops, out.in_flight, out.processing_mops),
            (None, None, None)
        );
        assert_eq!(out.links_mops, 600.0);
    }
}
