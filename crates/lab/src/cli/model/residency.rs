//! `corelay model residency`: how much of the data the caches hold (D22).

use crate::cli::list::{List, number};
use corelay_lab_compare::COMMIT;
use corelay_lab_measure::host::Host;
use corelay_lab_measure::schema::CacheLevel;
use corelay_lab_report::exit::Exit;
use corelay_lab_report::model::residency::{VAR_BYTES, capacity, from_memory, resident};
use corelay_lab_report::plot::{bytes, grouped};
use corelay_lab_report::table::columns::columns;
use serde::Serialize;
use std::fmt::Write;

/// How much of the shared variables the caches hold, and how much comes from memory
///
/// P = min(1, cache / (64 · variables)) is the chance that a variable chosen at random is in the
/// cache. The thesis calls it the probability of finding it in DRAM; that is 1 − P. Delegated
/// variables lie in the L2 of their own server, so there are as many L2s as servers; all threads
/// share the L3s. Nothing else is in the caches here: see `model footprint` for what is.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Shared variables, of 64 bytes each
    #[arg(long, allow_negative_numbers = true, value_name = "LIST", default_value = "2^10..2^24", value_parser = super::vars)]
    vars: List,

    /// Servers, each with an L2 of its own
    #[arg(long, allow_negative_numbers = true, value_name = "N", default_value_t = 1, value_parser = number(1..=1024))]
    servers: u64,

    /// Bytes of a server's L2, instead of this machine's
    #[arg(long, allow_negative_numbers = true, value_name = "BYTES", value_parser = number(1..=1 << 40))]
    l2: Option<u64>,

    /// Bytes of all L3 together, instead of this machine's
    #[arg(long, allow_negative_numbers = true, value_name = "BYTES", value_parser = number(1..=1 << 40))]
    l3: Option<u64>,

    /// Print JSON instead of the table
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Said {
    l2: Option<Cache>,
    l3: Option<Cache>,
    shares: Vec<Share>,
}

/// A level, as far as it holds the variables.
#[derive(Serialize)]
struct Cache {
    /// All instances that do.
    bytes: u64,
    /// Variables that fit: where its mark stands.
    capacity: u64,
    /// This machine's, or given.
    measured: bool,
}

/// Shares of the variables, 0 to 1.
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
    let of_servers = |cache: &CacheLevel| cache.bytes * args.servers.min(cache.instances as u64);
    let of_all = |cache: &CacheLevel| cache.bytes * cache.instances as u64;
    let given = args.l2.map(|bytes| bytes * args.servers);
    let l2 = cache(given, level(2).map(of_servers));
    let l3 = cache(args.l3, level(3).map(of_all));
    let last = l3.as_ref().or(l2.as_ref());
    let share = |&vars: &u64| Share {
        vars,
        bytes: vars * VAR_BYTES,
        in_l2: l2.as_ref().map(|cache| resident(cache.bytes, vars)),
        in_l3: l3.as_ref().map(|cache| resident(cache.bytes, vars)),
        from_memory: last.map(|cache| from_memory(cache.bytes, vars)),
    };
    let shares = args.vars.0.iter().map(share).collect();
    let said = Said { l2, l3, shares };
    super::deliver(args.json, &said, &text(&said, args.servers))
}

fn cache(given: Option<u64>, found: Option<u64>) -> Option<Cache> {
    let bytes = given.or(found)?;
    Some(Cache {
        bytes,
        capacity: capacity(bytes),
        measured: given.is_none(),
    })
}

fn text(said: &Said, servers: u64) -> String {
    let mut text = String::new();
    let l2 = match servers {
        1 => "L2 of 1 server".to_owned(),
        _ => format!("L2 of {servers} servers"),
    };
    for (name, cache) in [(l2.as_str(), &said.l2), ("L3, all of it", &said.l3)] {
        let _ = match cache {
            Some(cache) => writeln!(
                text,
                "{name}: {} ({}), holds {} variables",
                bytes(cache.bytes),
                if cache.measured {
                    "this machine's"
                } else {
                    "given"
                },
                grouped(cache.capacity)
            ),
            None => writeln!(text, "{name}: unavailable, the system names none"),
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
    text + &format!("{}\n", columns(header, said.shares.iter().map(row), 0))
}
