//! `corelay bench ycsb` and `tpcc`: transactions on the tables of a database.

use super::common::Listed;
use super::history::HistoryArgs;
use super::ordered::{self, Common, Methods, Plan};
use crate::cli::list::number;
use corelay_lab_bench::ordered::database::{tpcc, ycsb};
use corelay_lab_bench::ordered::method::{Entry, methods};
use corelay_lab_bench::ordered::spec::{Bench, Isolation, isolation_name};
use corelay_lab_report::exit::Exit;

/// The only method without transactions.
const DASHMAP: &str = "dashmap";

/// Transactions of requests to the rows of one table
///
/// A row has ten fields of 100 bytes, and a request touches one of them. An update adds 1 to a number,
/// so that the sum of all is checked at the end. The rows of a transaction differ; a row that is drawn
/// twice is replaced by the next one. Requests are drawn in the loop. DBx1000, a C++ engine with the
/// same tables, drops a request whose row is drawn twice, copies each row that is read, and overwrites a
/// field where this workload adds to it.
#[derive(Debug, clap::Args)]
pub(super) struct Ycsb {
    /// Methods to compare, or `all`; all but `dashmap` if not given
    #[arg(long, value_name = "LIST", value_parser = ycsb_methods, help = help(YCSB, "; all but dashmap if not given"))]
    method: Option<Methods>,

    /// Mixes of requests: A (half update), B (1 in 20 updates), C (all read), E (scans of 1 to 100 rows,
    /// 1 in 20 inserts), F (half read and update what they have read)
    #[arg(long, value_name = "LIST", default_value = "A", value_parser = mixes)]
    mix: Mixes,

    /// Rows in the table
    #[arg(long, allow_negative_numbers = true, value_name = "N", default_value_t = 1 << 17,
          value_parser = number(1..=1 << 30))]
    rows: u64,

    /// Requests in a transaction; `dashmap` needs 1
    #[arg(long, allow_negative_numbers = true, value_name = "N", default_value_t = 16,
          value_parser = number(1..=256))]
    requests: u64,

    /// Skew of the choice of rows, by Zipf's law: from 0 (uniform) to below 1
    #[arg(long, allow_negative_numbers = true, value_name = "θ", default_value = "0.9", value_parser = theta)]
    theta: f64,

    #[command(flatten)]
    history: HistoryArgs,

    #[command(flatten)]
    store: StoreArgs,

    #[command(flatten)]
    common: Common,
}

/// The five transactions of TPC-C, its consistency conditions checked at the end
///
/// Rows, keys and inputs are those of TPC-C, revision 5.11; terminals neither type nor think, and
/// deliveries are not queued. All twelve consistency conditions are checked after the last sample.
///
/// `--mix payment-neworder` is what DBx1000, a C++ engine, runs: half Payment, half New-Order, without
/// insertions into orders, order lines, new orders and history, without orders that are undone, and
/// without an item twice in an order. Both choose 60 % of the customers by last name. DBx1000 copies
/// each row that it reads and writes rows in place; here rows are read in place, and copied when they
/// are written.
#[derive(Debug, clap::Args)]
pub(super) struct Tpcc {
    /// Methods to compare, or `all`
    #[arg(long, value_name = "LIST", default_value = "all", value_parser = tpcc_methods, help = help(TPCC, ""))]
    method: Methods,

    /// Mix of transactions: `full` (New-Order 45 %, Payment 43 %, the others 4 % each) or
    /// `payment-neworder` (half each, and nothing is inserted)
    #[arg(long, value_name = "MIX", default_value = "full")]
    mix: tpcc::Mix,

    /// Warehouses; thread i works for warehouse i modulo their number
    #[arg(long, allow_negative_numbers = true, value_name = "N", default_value_t = 1,
          value_parser = number(1..=u64::from(u16::MAX)))]
    warehouses: u64,

    /// Divide the numbers of items, customers and orders by this; 1 is the specification's size
    #[arg(long, allow_negative_numbers = true, value_name = "N", default_value_t = 1,
          value_parser = number(1..=100))]
    shrink: u64,

    #[command(flatten)]
    store: StoreArgs,

    #[command(flatten)]
    common: Common,
}

/// The flags of methods that are stores.
#[derive(Debug, clap::Args)]
struct StoreArgs {
    /// Isolation of `mvcc` methods: snapshot, serializable, or strict (serializable in the order of
    /// real time); others are serializable [default: serializable]
    #[arg(long, value_name = "LEVEL", value_parser = isolation)]
    isolation: Option<Isolation>,
}

#[derive(Clone, Debug)]
struct Mixes(Vec<ycsb::Mix>);

// One benchmark of each kind, at any size. All of a kind have the same methods.
pub(super) const YCSB: Bench = Bench::Ycsb {
    shape: ycsb::Shape {
        mix: ycsb::Mix::A,
        rows: 1,
        requests: 1,
        theta: 0.0,
    },
    isolation: Isolation::Serializable,
    tape: None,
};
pub(super) const TPCC: Bench = Bench::Tpcc {
    shape: tpcc::Shape {
        mix: tpcc::Mix::Full,
        warehouses: 1,
        shrink: 1,
    },
    isolation: Isolation::Serializable,
};

pub(super) fn listed(bench: Bench) -> Vec<Listed> {
    let all = ordered::listed(bench).into_iter();
    all.map(|method| Listed {
        default: method.name != DASHMAP,
        ..method
    })
    .collect()
}

fn help(bench: Bench, default: &str) -> String {
    ordered::help(bench) + default
}

fn ycsb_methods(text: &str) -> Result<Methods, String> {
    ordered::read(YCSB, text)
}

fn tpcc_methods(text: &str) -> Result<Methods, String> {
    ordered::read(TPCC, text)
}

fn mixes(text: &str) -> Result<Mixes, String> {
    let mut mixes = Vec::new();
    for mix in text.split(',') {
        let mix = mix.trim().parse()?;
        if !mixes.contains(&mix) {
            mixes.push(mix);
        }
    }
    Ok(Mixes(mixes))
}

fn theta(text: &str) -> Result<f64, String> {
    let wrong = || format!("`{text}` is not a number from 0 (uniform) to below 1");
    let theta: f64 = text.trim().parse().map_err(|_| wrong())?;
    (0.0..1.0)
        .contains(&theta)
        .then_some(theta)
        .ok_or_else(wrong)
}

fn isolation(text: &str) -> Result<Isolation, String> {
    let all = [
        Isolation::Snapshot,
        Isolation::Serializable,
        Isolation::StrictlySerializable,
    ];
    let found = all.into_iter().find(|&level| isolation_name(level) == text);
    found.ok_or_else(|| {
        format!("there is no isolation `{text}`; name snapshot, serializable or strict")
    })
}

pub(super) fn ycsb(args: &Ycsb) -> Result<Exit, String> {
    let default = || methods(YCSB).iter().filter(|entry| entry.name() != DASHMAP);
    let methods = args.method.clone();
    let methods = methods.unwrap_or_else(|| Methods(default().copied().collect()));
    if methods.0.iter().any(|entry| entry.name() == DASHMAP) {
        if args.requests > 1 {
            return Err(format!(
                "--requests {}: {DASHMAP} has no transactions, so a transaction of it is one request; give \
                 --requests 1, or leave {DASHMAP} out",
                args.requests
            ));
        }
        if args.mix.0.contains(&ycsb::Mix::E) {
            return Err(format!(
                "--mix E: {DASHMAP} keeps no order, so it cannot scan; leave {DASHMAP} out"
            ));
        }
        if args.mix.0.contains(&ycsb::Mix::F) {
            return Err(format!(
                "--mix F: {DASHMAP} has no transactions, so others may write between a read and the update; \
                 leave {DASHMAP} out"
            ));
        }
    }
    let isolation = args.store.isolation(&methods.0)?;
    if args.history.is_asked() && args.mix.0.contains(&ycsb::Mix::E) {
        return Err(
            "--history with --mix E: which rows a scan has found absent cannot be recorded; name one of \
             the mixes A, B, C, F"
                .to_owned(),
        );
    }
    let tape = args.history.tape();
    let bench = |&mix: &ycsb::Mix| Bench::Ycsb {
        shape: ycsb::Shape {
            mix,
            rows: args.rows,
            requests: args.requests as usize,
            theta: args.theta,
        },
        isolation,
        tape,
    };
    let benches: Vec<Bench> = args.mix.0.iter().map(bench).collect();
    args.common.run_plan(&Plan {
        history: tape.map(|tape| (&args.history, tape)),
        ..Plan::of(&methods, &benches)
    })
}

pub(super) fn tpcc(args: &Tpcc) -> Result<Exit, String> {
    let bench = Bench::Tpcc {
        shape: tpcc::Shape {
            mix: args.mix,
            warehouses: args.warehouses as u16,
            shrink: args.shrink as u32,
        },
        isolation: args.store.isolation(&args.method.0)?,
    };
    args.common.run(&args.method, &[bench])
}

impl StoreArgs {
    fn isolation(&self, methods: &[Entry]) -> Result<Isolation, String> {
        let has_levels = |entry: &Entry| entry.name().starts_with("mvcc");
        match self.isolation {
            Some(level) if !methods.iter().any(has_levels) => Err(format!(
                "--isolation {}: only mvcc methods have levels of isolation; name one of them, or leave \
                 out --isolation",
                isolation_name(level)
            )),
            level => Ok(level.unwrap_or_default()),
        }
    }
}
