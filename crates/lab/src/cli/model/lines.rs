//! `corelay model lines`: counts the cache lines moved per operation, on simulated machines.

use super::picture;
use crate::cli::list::{self, List, Numbers, number};
use corelay_lab_measure::schema::SCHEMA;
use corelay_lab_report::exit::Exit;
use corelay_lab_report::output;
use corelay_lab_report::table::columns::columns;
use corelay_lab_report::words;
use corelay_lines::{Count, Counts, Machine, Method, MethodError, Setup, Workload};
use corelay_topology::{Order, Topology};
use serde::Serialize;
use std::collections::HashSet;
use std::fmt::Write;
use std::path::PathBuf;
use std::time::Duration;

/// The heading of every output of this command.
pub(super) const HEADING: &str = "model: lines moved per operation";

/// The most clients that a run may have.
const MOST_CLIENTS: u64 = 256;

/// Count the cache lines that methods move per operation, on a simulated machine
///
/// The source code that corelay ships runs on a simulated machine, in lock step and always with the
/// same result. Every cache line that moves is counted, by distance; nothing is timed. All clients
/// share one number or one structure; delegation has a server thread more.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Methods to count, or `all`
    #[arg(long, value_name = "LIST", default_value = "all", value_parser = methods, help = method_help())]
    method: Methods,

    /// What the clients share
    #[arg(long, value_name = "WORKLOAD", default_value_t = Workload::FetchAdd, value_parser = str::parse::<Workload>, help = workload_help())]
    workload: Workload,

    /// Entries that the structure begins with [default: 1024]
    #[arg(long, allow_negative_numbers = true, value_name = "N", value_parser = number(1..=Workload::MAX_SIZE.into()))]
    size: Option<u64>,

    /// Sockets x cores of a socket x hardware threads of a core, at most 512 threads in all
    #[arg(long, value_name = "SxCxT", default_value = "4x16x2", value_parser = str::parse::<Machine>)]
    machine: Machine,

    /// Threads that make requests, without the server
    #[arg(long, allow_negative_numbers = true, value_name = "LIST", default_value = "2^0..2^5", value_parser = clients)]
    clients: List,

    /// Operations counted for each client [default: 64, or 512 for methods whose clients do not wait]
    #[arg(long, allow_negative_numbers = true, value_name = "N", value_parser = number(1..=100_000))]
    ops: Option<u64>,

    /// Steps of computation in each operation, where the object is; moving a line takes one step
    #[arg(long, allow_negative_numbers = true, value_name = "N", default_value_t = 1,
          value_parser = number(0..=1000))]
    work: u64,

    /// Placement of threads, servers first: cores-first, fill-node, sockets, or CPUs such as 0,2-5
    #[arg(long, value_name = "ORDER", default_value_t = Order::Sockets)]
    pin: Order,

    /// Write a picture of the totals over the number of clients to this file
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,

    /// Print the counts as JSON instead of the table
    #[arg(long)]
    json: bool,
}

/// The methods on the command line: all of them that serve the workload, or those that are named.
#[derive(Clone, Debug)]
enum Methods {
    All,
    Named(Vec<Method>),
}

impl Methods {
    /// The methods to count.
    ///
    /// # Errors
    /// A sentence that names `--method`, if one is named that does not serve the workload.
    fn serving(&self, workload: Workload) -> Result<Vec<Method>, String> {
        let serves = |method: &Method| method.serves(workload);
        let named = match self {
            Self::All => return Ok(Method::ALL.into_iter().filter(serves).collect()),
            Self::Named(named) => named,
        };
        match named.iter().find(|method| !serves(method)) {
            None => Ok(named.clone()),
            Some(method) => Err(format!(
                "--method {method}: this method has no operations of --workload {workload}; leave \
                 it out, or give --workload {}",
                Workload::FetchAdd
            )),
        }
    }
}

fn method_help() -> String {
    format!(
        "Methods to count: {}; or `all`. With parameters, as in `bench fetch-add`: async-lines:N, \
         async-lines:NxL, async-lines:N-direct",
        Method::ALL.map(Method::name).join(", ")
    )
}

fn workload_help() -> String {
    let names = Workload::ALL.map(Workload::name).join(", ");
    format!(
        "What the clients share: {names}. `{}` and `{}` count {} only",
        Method::Atomic,
        Method::TrustPost,
        Workload::FetchAdd
    )
}

fn methods(text: &str) -> Result<Methods, String> {
    if text.trim() == "all" {
        return Ok(Methods::All);
    }
    let read = |name: &str| name.parse().map_err(|error: MethodError| error.to_string());
    list::named(text, &Method::ALL, |method| method.name(), read).map(Methods::Named)
}

fn clients(text: &str) -> Result<List, String> {
    Numbers {
        bounds: 1..=MOST_CLIENTS,
        word: None,
    }
    .list(text)
}

/// The output of `--json`.
#[derive(Serialize)]
pub(super) struct Output {
    pub(super) schema: u32,
    pub(super) what: &'static str,
    pub(super) workload: &'static str,
    /// Entries that the structure begins with; none for a number.
    pub(super) size: Option<u32>,
    pub(super) machine: String,
    pub(super) pin: String,
    pub(super) work: u64,
    pub(super) rows: Vec<Row>,
}

/// The result of one method with so many clients.
#[derive(Serialize)]
pub(super) struct Row {
    pub(super) method: String,
    pub(super) clients: u64,
    #[serde(flatten)]
    pub(super) result: CountResult,
}

/// The counts of a row, or the reason why there are none.
#[derive(Serialize)]
#[serde(untagged)]
pub(super) enum CountResult {
    Counted {
        /// Hardware thread of the server, if there is one, then of each client.
        placement: Vec<usize>,
        /// Operations of all clients together.
        operations: u64,
        /// Events of all threads.
        all: Events,
        /// Events of the server, if there is one.
        server: Option<Events>,
        /// Operations of the client that made the fewest.
        fewest: u64,
        /// Operations of the client that made the most.
        most: u64,
    },
    Unavailable {
        unavailable: String,
    },
}

/// Counts of events on cache lines, and of sleeps.
#[derive(Clone, Copy, Serialize)]
pub(super) struct Events {
    /// Lines that came from another cache.
    pub(super) moved: ByDistance,
    /// Writes before which copies in other caches had to go, by the distance of the farthest.
    claimed: ByDistance,
    /// Lines that no cache had.
    from_memory: u64,
    sleeps: u64,
}

/// Counts of events by distance.
#[derive(Clone, Copy, Serialize)]
pub(super) struct ByDistance {
    /// Between hardware threads of one core.
    core: u64,
    /// Between cores of one socket.
    socket: u64,
    /// Between sockets.
    across: u64,
}

impl From<[u64; 3]> for ByDistance {
    fn from([core, socket, across]: [u64; 3]) -> Self {
        Self {
            core,
            socket,
            across,
        }
    }
}

impl ByDistance {
    pub(super) fn total(self) -> u64 {
        self.core + self.socket + self.across
    }
}

#[cfg(test)]
impl Events {
    pub(super) fn from_moved(moved: [u64; 3]) -> Self {
        Counts {
            moved,
            ..Counts::default()
        }
        .into()
    }
}

impl From<Counts> for Events {
    fn from(counts: Counts) -> Self {
        Self {
            moved: counts.moved.into(),
            claimed: counts.claimed.into(),
            from_memory: counts.from_memory,
            sleeps: counts.sleeps,
        }
    }
}

pub(super) fn run(args: Args) -> Result<Exit, String> {
    let machine = args.machine;
    let topology = Topology::regular(machine.sockets(), machine.cores(), machine.threads());
    let order = topology.sequence(&args.pin);
    let order = order.map_err(|error| format!("--pin {}: {error}", args.pin))?;
    let distinct: HashSet<_> = order.iter().collect();
    if order.is_empty() || distinct.len() < order.len() {
        let pin = &args.pin;
        return Err(format!(
            "--pin {pin}: this model needs a hardware thread of its own for each thread; name each \
             CPU once, or give an order other than `none`"
        ));
    }
    let size = args.size()?;
    let methods = args.method.serving(args.workload)?;
    args.fits(&methods, order.len())?;
    let svg = match &args.svg {
        Some(path) => Some(output::open_beside("--svg", path)?),
        None => None,
    };
    let mut pairs = Vec::new();
    for &method in &methods {
        pairs.extend(args.clients.0.iter().map(|&clients| (method, clients)));
    }
    let steps = pairs.len() as u64;
    let progress = output::progress(steps, Duration::from_secs(1 + steps));
    let mut rows = Vec::new();
    for (method, clients) in pairs {
        progress.set_message(method.name());
        rows.push(Row {
            method: method.name(),
            clients,
            result: count(method, clients as usize, size, &args, &order),
        });
        progress.inc(1);
    }
    progress.finish_and_clear();
    let output = Output {
        schema: SCHEMA,
        what: HEADING,
        workload: args.workload.name(),
        size,
        machine: machine.to_string(),
        pin: args.pin.to_string(),
        work: args.work,
        rows,
    };
    if let Some((target, path)) = svg.zip(args.svg.as_ref()) {
        let svg = picture::picture(&output);
        let written = target.write(svg.as_bytes());
        written.map_err(|why| output::unwritable_file("--svg", path, &why))?;
    }
    super::deliver(
        args.json,
        &output,
        &text(&output, args.workload, machine, &order),
    )
}

impl Args {
    /// The size of the structure; none for a number.
    ///
    /// # Errors
    /// A sentence that names `--size`, if a number has been given one.
    fn size(&self) -> Result<Option<u32>, String> {
        match (self.workload.has_size(), self.size) {
            (true, size) => Ok(Some(size.map_or(Workload::SIZE, |size| size as u32))),
            (false, None) => Ok(None),
            (false, Some(size)) => Err(format!(
                "--size {size}: --workload {} has no entries; leave --size out, or give a structure",
                self.workload
            )),
        }
    }

    /// Checks that at least one method fits with the fewest clients.
    ///
    /// # Errors
    /// A sentence that names `--clients`.
    fn fits(&self, methods: &[Method], places: usize) -> Result<(), String> {
        let servers = methods.iter().map(|method| method.servers()).min();
        let clients = self.clients.0.iter().min();
        let threads = servers.unwrap_or(0) + clients.map_or(0, |&clients| clients as usize);
        if threads <= places {
            return Ok(());
        }
        Err(format!(
            "--clients: no method fits: at least {} are needed, and --machine {} has {} with --pin {}; \
             give fewer clients or a larger machine",
            hardware_threads(threads),
            self.machine,
            words::count(places as u64, "place", "places"),
            self.pin,
        ))
    }
}

fn hardware_threads(number: usize) -> String {
    words::count(number as u64, "hardware thread", "hardware threads")
}

/// Counts one method, if each of its threads gets a hardware thread of its own in `order`.
fn count(
    method: Method,
    clients: usize,
    size: Option<u32>,
    args: &Args,
    order: &[usize],
) -> CountResult {
    let threads = method.servers() + clients;
    if threads > order.len() {
        return CountResult::Unavailable {
            unavailable: format!("{threads} threads on {}", hardware_threads(order.len())),
        };
    }
    let setup = Setup {
        machine: args.machine,
        places: order[..threads].to_vec(),
        workload: args.workload,
        size: size.unwrap_or(0),
        operations: args.ops.unwrap_or(method.operations()),
        work: args.work,
    };
    let Count {
        operations,
        all,
        server,
        fewest,
        most,
    } = setup.count(method);
    CountResult::Counted {
        placement: setup.places,
        operations,
        all: all.into(),
        server: (method.servers() > 0).then(|| server.into()),
        fewest,
        most,
    }
}

fn text(output: &Output, workload: Workload, machine: Machine, order: &[usize]) -> String {
    let mut text = format!("{HEADING}\nworkload {workload}: {}", workload.describe());
    if let Some(size) = output.size {
        let entries = words::count(size.into(), "entry", "entries");
        let _ = write!(text, "; {entries} at the beginning");
    }
    text.push('\n');
    let first: Vec<String> = order.iter().take(8).map(usize::to_string).collect();
    let more = if order.len() > 8 { ", …" } else { "" };
    let _ = writeln!(
        text,
        "machine {machine}: {} of {} with {} each\n\
         threads placed by {}, servers first: {}{more}\n",
        words::count(machine.sockets() as u64, "socket", "sockets"),
        words::count(machine.cores() as u64, "core", "cores"),
        hardware_threads(machine.threads()),
        output.pin,
        first.join(", "),
    );
    let head = [
        "method",
        "clients",
        "core",
        "socket",
        "across",
        "total",
        "claims",
        "server's total",
        "server's claims",
        "sleeps",
    ];
    let table = columns(head, output.rows.iter().map(cells), 1);
    let _ = writeln!(
        text,
        "{table}\n\
         core, socket, across: lines that came from a hardware thread of the same core, of the same \
         socket, of another socket\n\
         claims: writes before which copies in other caches had to go\n\
         server's total, server's claims: the server's share of the total and of the claims\n\
         All counts are per operation."
    );
    let mut too_many: Vec<(u64, &str, Vec<&str>)> = Vec::new();
    for row in &output.rows {
        let CountResult::Unavailable { unavailable } = &row.result else {
            continue;
        };
        let same = |(clients, why, _): &&mut (u64, &str, Vec<&str>)| {
            *clients == row.clients && why == unavailable
        };
        match too_many.iter_mut().find(same) {
            Some((.., methods)) => methods.push(&row.method),
            None => too_many.push((row.clients, unavailable, vec![&row.method])),
        }
    }
    for (clients, why, methods) in too_many {
        let methods = methods.join(", ");
        let _ = writeln!(
            text,
            "{} not fit ({why}): {methods}",
            words::count(clients, "client does", "clients do")
        );
    }
    text
}

fn cells(row: &Row) -> Vec<String> {
    let mut cells = vec![row.method.clone(), row.clients.to_string()];
    match &row.result {
        CountResult::Unavailable { .. } => cells.resize(10, "–".to_owned()),
        CountResult::Counted {
            operations,
            all,
            server,
            ..
        } => {
            let figure = |events: u64| format!("{:.2}", events as f64 / *operations as f64);
            let ByDistance {
                core,
                socket,
                across,
            } = all.moved;
            let events = [core, socket, across, all.moved.total(), all.claimed.total()];
            cells.extend(events.map(figure));
            match server {
                Some(server) => {
                    cells.extend([server.moved, server.claimed].map(|by| figure(by.total())));
                }
                None => cells.extend([String::new(), String::new()]),
            }
            cells.push(figure(all.sleeps));
        }
    }
    cells
}

#[cfg(test)]
mod tests {
    use super::*;
    use corelay_lab_report::model::lines as stored;

    /// Counts the lines that a method moves per operation of fetch-add, with the first `threads` places
    /// of a machine.
    fn moved(method: &str, machine: &str, threads: usize) -> f64 {
        let method: Method = method.parse().unwrap();
        let machine: Machine = machine.parse().unwrap();
        let topology = Topology::regular(machine.sockets(), machine.cores(), machine.threads());
        let order = topology.sequence(&Order::Sockets).unwrap();
        let setup = Setup {
            machine,
            places: order[..threads].to_vec(),
            workload: Workload::FetchAdd,
            size: 0,
            operations: method.operations(),
            work: 1,
        };
        let count = setup.count(method);
        count.per_operation(count.all.moved.into_iter().sum())
    }

    #[test]
    fn the_stored_counts_are_those_of_the_simulator() {
        for (name, lines) in stored::MOVED {
            for (cpus, lines) in stored::CPUS.into_iter().zip(lines) {
                // Without optimisation, 128 CPUs take more than a minute.
                if cfg!(debug_assertions) && cpus > 32 {
                    continue;
                }
                let now = moved(name, stored::MACHINE, cpus);
                assert!(
                    (now - lines).abs() < 0.02 + 0.01 * lines,
                    "{name} moves {now:.2} lines on {cpus} CPUs, and model/lines.rs of the report \
                     says {lines}; correct it there"
                );
            }
        }
    }

    #[test]
    fn the_stored_counts_of_request_lines_are_those_of_the_simulator() {
        let (machine, clients) = stored::REQUEST_LINES_MACHINE;
        let all = stored::REQUEST_LINES
            .into_iter()
            .zip(stored::BY_REQUEST_LINES);
        for (lines, stored) in all {
            let now = moved(&format!("async-lines:{lines}"), machine, clients + 1);
            assert!(
                (now - stored).abs() < 0.05,
                "{lines} lines move {now:.2}, not {stored}"
            );
        }
    }

    #[test]
    fn names_are_read_once_each() {
        let read = |text| methods(text)?.serving(Workload::FetchAdd);
        assert_eq!(
            read(" mcs , ttas,mcs").unwrap(),
            [Method::Mcs, Method::Ttas]
        );
        assert_eq!(read("all").unwrap(), Method::ALL);
        for (text, word) in [
            ("", "empty"),
            ("mcs,", "missing"),
            ("mcs,all", "alone"),
            ("magic", "`magic`"),
            ("mutex", "not corelay's own"),
        ] {
            assert!(read(text).unwrap_err().contains(word), "{text}");
        }
    }

    #[test]
    fn all_means_those_that_serve_the_workload() {
        let serving = |text, workload| methods(text).unwrap().serving(workload);
        for workload in Workload::ALL {
            let all = serving("all", workload).unwrap();
            assert!(all.iter().all(|method| method.serves(workload)));
            assert_eq!(serving("cc-synch", workload), Ok(vec![Method::CcSynch]));
        }
        let error = serving("mcs,atomic", Workload::List).unwrap_err();
        for word in ["--method atomic", "--workload list", "fetch-add"] {
            assert!(error.contains(word), "{error}");
        }
    }
}
