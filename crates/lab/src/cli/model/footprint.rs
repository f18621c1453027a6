//! `corelay model footprint`: computes how much of the caches delegation itself takes (D23).

use crate::cli::list::number;
use corelay_lab_report::exit::Exit;
use corelay_lab_report::model::footprint::{
    Pair, SOURCE_BYTES, SOURCE_PAIRS, async_lines, ffwd, product_filled, product_first, rcl,
};
use corelay_lab_report::plot::grouped;
use corelay_lab_report::table::columns::columns;
use corelay_lab_report::words;
use corelay_literature::Shape;
use serde::Serialize;
use std::fmt::Write;

/// The cache memory that delegation itself takes, from the sizes of the types in this program
///
/// Shows for each channel the bytes of a pair of client and server, and the bytes of a core that
/// runs a server and a client, as in the thesis's runs: the server's half of its pairs with all
/// clients, and the client's half of its pairs with all servers.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Number of servers
    #[arg(long, allow_negative_numbers = true, value_name = "N", default_value_t = SOURCE_PAIRS.0 as u64,
          value_parser = number(1..=1024))]
    servers: u64,

    /// Number of clients
    #[arg(long, allow_negative_numbers = true, value_name = "N", default_value_t = SOURCE_PAIRS.1 as u64,
          value_parser = number(1..=1024))]
    clients: u64,

    /// Request lines and pending queue of async-lines: N, NxL or N-direct
    #[arg(long, value_name = "SHAPE", default_value_t = Shape::DEFAULT)]
    lines: Shape,

    /// Requests in flight that the rings of corelay's own channel have grown for
    #[arg(long, allow_negative_numbers = true, value_name = "N", default_value_t = 256,
          value_parser = number(1..=65_536))]
    window: u64,

    /// Print JSON instead of the table
    #[arg(long)]
    json: bool,
}

/// The output of `--json`.
#[derive(Serialize)]
struct Output {
    servers: usize,
    clients: usize,
    channels: Vec<Channel>,
    /// Bytes of a core in the thesis.
    source_bytes: [usize; 2],
    source_servers: usize,
    source_clients: usize,
}

/// The footprint of a channel, in bytes.
#[derive(Serialize)]
struct Channel {
    name: String,
    pair: Pair,
    /// Bytes of a server with all clients.
    server: f64,
    /// Bytes of a client of all servers.
    client: f64,
    /// Bytes of a core with a server and a client.
    core: f64,
}

/// The default limit of a ring in corelay's own channel, in bytes.
const RING_BYTES: usize = 64 << 10;

pub(super) fn run(args: &Args) -> Result<Exit, String> {
    let (servers, clients) = (args.servers as usize, args.clients as usize);
    let window = args.window as usize;
    let (lines, queue) = (args.lines.lines(), args.lines.pending());
    let shape = match queue {
        Some(queue) => format!("async-lines:{lines}x{queue}"),
        None => format!("async-lines:{lines}-direct"),
    };
    let channels = [
        ("ffwd".to_owned(), ffwd(clients)),
        ("rcl".to_owned(), rcl()),
        (shape, async_lines(args.lines)),
        (
            format!("flat-lines:blockedx{lines}"),
            async_lines(direct(args.lines)),
        ),
        ("corelay, a request".to_owned(), product_first()),
        (
            format!("corelay, {window} in flight"),
            product_filled(window, RING_BYTES),
        ),
    ];
    let output = Output {
        servers,
        clients,
        channels: channels
            .into_iter()
            .map(|(name, pair)| Channel {
                name,
                pair,
                server: pair.of_server(clients),
                client: pair.of_client(servers),
                core: pair.of_core(servers, clients),
            })
            .collect(),
        source_bytes: SOURCE_BYTES,
        source_servers: SOURCE_PAIRS.0,
        source_clients: SOURCE_PAIRS.1,
    };
    super::deliver(args.json, &output, &text(&output))
}

/// The same lines without a queue, as the policy `blocked` has them.
fn direct(shape: Shape) -> Shape {
    Shape::direct(shape.lines()).unwrap_or(shape)
}

fn text(output: &Output) -> String {
    let bytes = |bytes: f64| grouped(bytes.round() as u64);
    let row = |channel: &Channel| {
        let Pair {
            both,
            server,
            client,
        } = channel.pair;
        [
            channel.name.clone(),
            bytes(both),
            bytes(server),
            bytes(client),
            bytes(channel.server),
            bytes(channel.client),
            bytes(channel.core),
        ]
    };
    let header = [
        "bytes of a pair:",
        "lines of both",
        "server's own",
        "client's own",
        "| of a server",
        "of a client",
        "of a core",
    ];
    let mut text = format!("{}\n", columns(header, output.channels.iter().map(row), 1));
    let (servers, clients) = (output.servers, output.clients);
    let _ = writeln!(
        text,
        "A server has {}, a client has {}, and a core runs one of each. Objects are not counted.",
        words::count(clients as u64, "client", "clients"),
        words::count(servers as u64, "server", "servers"),
    );
    let core = |is: fn(&str) -> bool| {
        let channel = output.channels.iter().find(|channel| is(&channel.name));
        channel.map_or(0.0, |channel| channel.core)
    };
    let queued = core(|name| name.starts_with("async-lines"));
    let saved = queued - core(|name| name.starts_with("flat-lines"));
    let _ = writeln!(
        text,
        "The policy `blocked` of flat delegation writes requests straight into lines: that saves {} bytes \
         of a core.",
        bytes(saved)
    );
    let _ = writeln!(
        text,
        "The thesis says about {} KB for a core, with {} servers and {} clients, 16 lines and \
         queues of 32:\n{} or {} bytes, by either meaning of KB. It does not say what it counts.",
        output.source_bytes[0] / 1000,
        output.source_servers,
        output.source_clients,
        grouped(output.source_bytes[0] as u64),
        grouped(output.source_bytes[1] as u64),
    );
    text
}
