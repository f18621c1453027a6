//! `corelay model residency`: computes how much of the data the caches hold (D22).

use crate::cli::list::{List, number};
use corelay_lab_compare::COMMIT;
use corelay_lab_measure::host::Host;
use corelay_lab_measure::schema::CacheLevel;
use corelay_lab_report::exit::Exit;
use corelay_lab_report::model::residency::{
    VAR_BYTES, capacity, from_memory, knee, left, resident,
};
use corelay_lab_report::plot::{bytes, grouped};
use corelay_lab_report::table::columns::columns;
use serde::Serialize;
use std::fmt::Write;

/// The share of the shared variables that the caches hold, and the share that comes from memory
///
/// P = min(1, cache / (64 · variables)) is the probability that a variable chosen at random is in
/// the cache. The thesis calls P the probability of finding the variable in DRAM, which is 1 − P.
/// Delegated variables lie in the L2 of their own server, so there are as many L2s as servers; all
/// threads share the L3s, which hold other lines than the L2s (unless they are inclusive). What
/// delegation itself keeps in a server's core (--footprint) takes the L1 first and then its part of
/// the L2; `model footprint` computes it. A knee is the first power of two of variables that no longer
/// fits, where throughput begins to fall.
///
/// The thesis's machine: --servers 16 --l1 32768 --l2 1048576 --l3 40370176 --footprint 95232
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Shared variables, of 64 bytes each
    #[arg(long, allow_negative_numbers = true, value_name = "LIST", default_value = "2^10..2^24", value_parser = super::vars)]
    vars: List,

    /// Servers, each with an L2 of its own
    #[arg(long, allow_negative_numbers = true, value_name = "N", default_value_t = 1, value_parser = number(1..=1024))]
    servers: u64,

    /// Bytes of a server's L1 [default: this machine's]
    #[arg(long, allow_negative_numbers = true, value_name = "BYTES", value_parser = number(1..=1 << 40))]
    l1: Option<u64>,

    /// Bytes of a server's L2 [default: this machine's]
    #[arg(long, allow_negative_numbers = true, value_name = "BYTES", value_parser = number(1..=1 << 40))]
    l2: Option<u64>,

    /// Bytes of all L3s together [default: this machine's]
    #[arg(long, allow_negative_numbers = true, value_name = "BYTES", value_parser = number(1..=1 << 40))]
    l3: Option<u64>,

    /// Bytes that delegation itself keeps in the caches of a server's core
    #[arg(long, allow_negative_numbers = true, value_name = "BYTES", default_value_t = 0, value_parser = number(0..=1 << 40))]
    footprint: u64,

    /// Print JSON instead of the table
    #[arg(long)]
    json: bool,
}

/// The output of `--json`.
#[derive(Serialize)]
struct Output {
    l2: Option<Cache>,
    l3: Option<Cache>,
    /// Both together.
    all: Option<Cache>,
    shares: Vec<Share>,
}

/// The caches of one level that hold the variables.
#[derive(Serialize)]
struct Cache {
    /// Bytes of these caches together.
    bytes: u64,
    /// The number of variables that fit.
    capacity: u64,
    /// The first power of two of variables that does not fit.
    knee: u64,
    /// Whether the size is this machine's, not given on the command line.
    measured: bool,
}

/// The shares of `vars` variables that the caches hold, 0 to 1.
#[derive(Serialize)]
struct Share {
    vars: u64,
    bytes: u64,
    in_l2: Option<f64>,
    in_l3: Option<f64>,
    from_memory: Option<f64>,
}

pub(super) fn run(args: &Args) -> Result<Exit, String> {
    let host = Host::look(COMMIT);
    let level = |number: u32| {
        let levels = &host.machine.caches;
        levels
            .iter()
            .find(|cache| cache.level == number && cache.bytes > 0)
    };
    let l1 = args.l1.or(level(1).map(|cache| cache.bytes)).unwrap_or(0);
    let for_variables = |l2: u64| left(l2, l1, args.footprint);
    let of_servers =
        |cache: &CacheLevel| for_variables(cache.bytes) * args.servers.min(cache.instances as u64);
    let of_all = |cache: &CacheLevel| cache.bytes * cache.instances as u64;
    let given = args.l2.map(|bytes| for_variables(bytes) * args.servers);
    let l2 = cache(given, level(2).map(of_servers));
    let l3 = cache(args.l3, level(3).map(of_all));
    let all = together(&l2, &l3);
    let share = |&vars: &u64| Share {
        vars,
        bytes: vars * VAR_BYTES,
        in_l2: l2.as_ref().map(|cache| resident(cache.bytes, vars)),
        in_l3: l3.as_ref().map(|cache| resident(cache.bytes, vars)),
        from_memory: all.as_ref().map(|cache| from_memory(cache.bytes, vars)),
    };
    let shares = args.vars.0.iter().map(share).collect();
    let output = Output {
        l2,
        l3,
        all,
        shares,
    };
    super::deliver(args.json, &output, &text(&output, args.servers))
}

fn cache(given: Option<u64>, found: Option<u64>) -> Option<Cache> {
    let measured = given.is_none();
    let bytes = given.or(found)?;
    Some(Cache {
        measured,
        ..Cache::of(bytes)
    })
}

/// The caches that there are, as one.
fn together(l2: &Option<Cache>, l3: &Option<Cache>) -> Option<Cache> {
    let both: Vec<&Cache> = [l2, l3].into_iter().flatten().collect();
    (!both.is_empty()).then(|| Cache {
        measured: both.iter().all(|cache| cache.measured),
        ..Cache::of(both.iter().map(|cache| cache.bytes).sum())
    })
}

impl Cache {
    fn of(bytes: u64) -> Self {
        Self {
            bytes,
            capacity: capacity(bytes),
            knee: knee(bytes),
            measured: false,
        }
    }
}

fn text(output: &Output, servers: u64) -> String {
    let mut text = String::new();
    let l2 = match servers {
        1 => "L2 of 1 server".to_owned(),
        _ => format!("L2 of {servers} servers"),
    };
    let caches = [
        (l2.as_str(), &output.l2),
        ("all L3s", &output.l3),
        ("together", &output.all),
    ];
    for (name, cache) in caches {
        let _ = match cache {
            Some(cache) => writeln!(
                text,
                "{name}: {} for variables ({}), holds {} variables; knee at {}",
                bytes(cache.bytes),
                if cache.measured {
                    "this machine's"
                } else {
                    "given"
                },
                grouped(cache.capacity),
                grouped(cache.knee)
            ),
            None => writeln!(text, "{name}: unavailable, because the system names none"),
        };
    }
    let share = |share: Option<f64>| share.map_or("–".to_owned(), super::percent);
    let row = |s: &Share| {
        [
            grouped(s.vars),
            bytes(s.bytes),
            share(s.in_l2),
            share(s.in_l3),
            share(s.from_memory),
        ]
    };
    let header = ["variables", "data", "in L2", "in L3", "from memory"];
    text + &format!("{}\n", columns(header, output.shares.iter().map(row), 0))
}
