//! `corelay bench`: measures one workload, with a flag for each parameter.

mod cache;
pub(crate) mod common;
mod database;
mod fibres;
mod history;
mod kept;
mod latency;
mod ordered;
mod raytrace;
mod recover;
pub(crate) mod structure;
mod throughput;

use clap::Args as _;
use common::{Catalogue, Listed};
use corelay_lab_measure::workload::fetch_add::FetchAdd;
use corelay_lab_measure::workload::raytrace::Raytrace;
use corelay_lab_measure::workload::structure::FEW_UPDATES;
use corelay_lab_measure::workload::structure::seq::{
    BinaryHeap, ChainedMap, LruCache, SearchTree, SkipList, SortedList, VecDeque,
};
use corelay_lab_report::exit::Exit;
use corelay_lab_report::output;
use std::ffi::OsString;

/// Measure one workload, with a flag for each parameter
#[derive(Debug, clap::Args)]
#[command(
    arg_required_else_help = false,
    subcommand_value_name = "WORKLOAD",
    subcommand_help_heading = "Workloads",
    disable_help_subcommand = true
)]
pub(crate) struct Args {
    /// List the methods of all workloads, or of the one that is named, and measure nothing
    #[arg(long, global = true)]
    list: bool,

    /// Print the list as JSON
    #[arg(long, requires = "list")]
    json: bool,

    #[command(subcommand)]
    workload: Option<Workload>,
}

/// Makes the table of workloads. A line has the variant's name, the type of its flags, the function
/// that runs it, and an expression that lists its methods.
macro_rules! workloads {
    ($($(#[$what:meta])* $name:ident($args:ty) => $run:expr, $listed:expr;)*) => {
        #[derive(Debug, clap::Subcommand)]
        enum Workload {
            $($(#[$what])* $name($args),)*
            #[command(external_subcommand)]
            Unknown(Vec<OsString>),
        }

        impl Workload {
            fn run(&self) -> Result<Exit, String> {
                match self {
                    $(Self::$name(args) => $run(args),)*
                    Self::Unknown(words) => {
                        let name = words.first().map(|name| name.to_string_lossy());
                        let name = name.unwrap_or_default();
                        Err(format!("there is no workload `{name}`; name one of {}", all()))
                    }
                }
            }
        }

        impl Workload {
            /// Returns the workload's place in the table; `None` if it is not there.
            fn place(&self) -> Option<usize> {
                let is = [$(matches!(self, Self::$name(_)),)*];
                is.iter().position(|is| *is)
            }
        }

        /// Returns the methods of each workload, in the order of the table.
        fn listed() -> Vec<Vec<Listed>> {
            vec![$($listed,)*]
        }
    };
}

workloads! {
    /// Throughput: add one to 64-byte variables chosen at random, as fast as it goes
    ///
    /// Lists are written `1,2,4`, `1..8` (with both ends) or `2^0..2^20` (every power). The
    /// contenders are sampled in turn, one sample of each, until all samples are taken. So all of
    /// them meet the same modes of the machine.
    FetchAdd(throughput::Args<FetchAdd>) => throughput::run, throughput::listed::<FetchAdd>();
    /// Throughput of a sorted linked list: look up, insert and remove keys
    List(structure::Args<SortedList<u64>>) => structure::run, structure::listed::<SortedList<u64>>();
    /// Throughput of a sorted linked list with few updates, where a trustee loses
    ///
    /// Its look-ups are long, and structures with many locks do them side by side.
    #[command(mut_arg("updates", |arg| arg.default_value(FEW_UPDATES)))]
    LazyList(structure::Args<SortedList<u64>>) => structure::run_if_read, structure::listed::<SortedList<u64>>();
    /// Throughput of a FIFO queue: insert at the back, remove at the front
    Queue(structure::Args<VecDeque<u64>>) => structure::run, structure::listed::<VecDeque<u64>>();
    /// Throughput of a stack: insert and remove at the top
    Stack(structure::Args<Vec<u64>>) => structure::run, structure::listed::<Vec<u64>>();
    /// Throughput of a hash table with chains: look up, insert and remove keys
    Hash(structure::Args<ChainedMap<u64, u64>>) => structure::run, structure::listed::<ChainedMap<u64, u64>>();
    /// Throughput of a skip list: look up, insert and remove keys
    SkipList(structure::Args<SkipList<u64, u64>>) => structure::run, structure::listed::<SkipList<u64, u64>>();
    /// Throughput of an unbalanced search tree: look up, insert and remove keys
    Tree(structure::Args<SearchTree<u64, u64>>) => structure::run, structure::listed::<SearchTree<u64, u64>>();
    /// Throughput of a priority queue: insert random numbers, remove the largest
    Heap(structure::Args<BinaryHeap<u64>>) => structure::run, structure::listed::<BinaryHeap<u64>>();
    /// Throughput of an LRU cache: look up keys, insert keys where old ones go
    Lru(structure::Args<LruCache<u64, u64>>) => structure::run, structure::listed::<LruCache<u64, u64>>();
    Raytrace(raytrace::Args) => raytrace::run, throughput::listed::<Raytrace>();
    Latency(latency::Args) => latency::run, latency::listed();
    Cycle(fibres::Cycle) => fibres::cycle, fibres::listed();
    Yield(fibres::Yield) => fibres::yield_, fibres::listed();
    Churn(fibres::Churn) => fibres::churn, fibres::listed();
    Locality(fibres::Locality) => fibres::locality, fibres::listed();
    Transfer(fibres::Transfer) => fibres::transfer, fibres::listed();
    Timestamp(ordered::Timestamp) => ordered::timestamp, ordered::listed(ordered::TIMESTAMP);
    RluList(ordered::RluList) => ordered::rlu_list, ordered::listed(ordered::LIST);
    RluHash(ordered::RluHash) => ordered::rlu_hash, ordered::listed(ordered::LIST);
    StmTransfer(ordered::StmTransfer) => ordered::stm_transfer, ordered::listed(ordered::TRANSFER);
    StmRead(ordered::StmRead) => ordered::stm_read, ordered::listed(ordered::TRANSFER);
    OplogRmap(ordered::OplogRmap) => ordered::oplog_rmap, ordered::listed(ordered::RMAP);
    Ycsb(database::Ycsb) => database::ycsb, database::listed(database::YCSB);
    Tpcc(database::Tpcc) => database::tpcc, database::listed(database::TPCC);
    #[command(mut_arg("secs", |arg| arg.default_value("0.5")))]
    Kept(kept::Args) => kept::run, kept::listed();
    #[command(mut_arg("threads", |arg| arg.default_value("1").hide(true)))]
    Recover(recover::Args) => recover::run, recover::listed();
    Cache(cache::Args) => cache::run, cache::listed();
}

/// Returns the names of the workloads on the command line.
pub(crate) fn workloads() -> Vec<String> {
    let command = Args::augment_args(clap::Command::new("bench"));
    let workloads = command.get_subcommands();
    workloads.map(|one| one.get_name().to_owned()).collect()
}

/// Formats the names of the workloads for a sentence: `a, b and c`.
fn all() -> String {
    let names = workloads();
    match names.split_last() {
        Some((last, others)) => format!("{} and {last}", others.join(", ")),
        None => String::new(),
    }
}

pub(crate) fn run(args: Args) -> Result<Exit, String> {
    match args.workload {
        Some(workload) => match workload.place() {
            Some(place) if args.list => list(Some(place), args.json),
            _ => workload.run(),
        },
        None if args.list => list(None, args.json),
        None => Err(format!("bench needs a workload: {}; or --list", all())),
    }
}

/// Lists the methods of the workload at that place of the table, or of all.
fn list(place: Option<usize>, json: bool) -> Result<Exit, String> {
    let each = workloads().into_iter().zip(listed()).enumerate();
    let all: Vec<Catalogue> = each
        .filter(|(at, _)| place.is_none_or(|place| *at == place))
        .map(|(_, one)| one)
        .map(|(workload, methods)| Catalogue { workload, methods })
        .collect();
    let text = match json {
        true => serde_json::to_string_pretty(&all).map_err(|e| e.to_string())? + "\n",
        false => all
            .iter()
            .map(Catalogue::text)
            .collect::<Vec<_>>()
            .join("\n"),
    };
    output::say(&text)?;
    Ok(Exit::Fine)
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;
    use corelay_lab_measure::method::METHODS;
    use corelay_lab_measure::workload::operation::{Operation, Workload as Operations};
    use corelay_lab_measure::workload::random::Random;

    /// A workload that counts random numbers, as a contributor would add it.
    #[derive(Clone, Copy, Debug, Default)]
    struct Histogram;

    #[derive(Clone, Copy, Debug)]
    struct Count(usize);

    impl Operation<[u64; 8]> for Count {
        type Answer = u64;

        fn run(self, buckets: &mut [u64; 8]) -> u64 {
            buckets[self.0] += 1;
            buckets[self.0]
        }
    }

    impl Operations for Histogram {
        type Object = [u64; 8];
        type Operation = Count;

        fn name(self) -> &'static str {
            "histogram"
        }

        fn object(self) -> [u64; 8] {
            [0; 8]
        }

        fn operations(self, mut random: Random) -> impl FnMut() -> Count + Send + 'static {
            move || Count(random.below(8) as usize)
        }

        fn check(self, buckets: &[u64; 8]) -> Result<u64, String> {
            Ok(buckets.iter().sum())
        }
    }

    /// A table with the one line that CONTRIBUTING.md adds.
    mod table {
        use super::*;

        workloads! {
            /// Count random numbers in buckets
            Histogram(throughput::Args<Histogram>) => throughput::run, throughput::listed::<Histogram>();
        }

        #[derive(Debug, Parser)]
        pub(super) struct Bench {
            #[command(subcommand)]
            workload: Workload,
        }

        impl Bench {
            pub(super) fn run(&self) -> Result<Exit, String> {
                let is_known = matches!(self.workload, Workload::Histogram(_));
                assert_eq!(self.workload.place(), is_known.then_some(0));
                self.workload.run()
            }
        }

        pub(super) fn names() -> Vec<&'static str> {
            let of = listed().into_iter().flatten();
            of.map(|method| method.name).collect()
        }
    }

    #[test]
    fn a_line_of_the_table_makes_a_command() {
        let line =
            "bench histogram --method mutex,trust --threads 2 --vars 3 --samples 10 --secs 0.01";
        let bench = table::Bench::parse_from(line.split(' '));
        assert_eq!(bench.run(), Ok(Exit::Fine));
        let refused = table::Bench::parse_from(["bench", "magic"]).run();
        assert!(refused.unwrap_err().contains("`magic`"));
        // Every method can run this workload, except the one that is a single instruction.
        let names = table::names();
        assert!(
            METHODS
                .iter()
                .all(|m| names.contains(&m.name()) || m.name() == "atomic")
        );
        let line = "    Histogram(throughput::Args<Histogram>) => throughput::run, \
                    throughput::listed::<Histogram>();";
        let text = include_str!("../../../../../CONTRIBUTING.md");
        assert!(text.contains(line), "CONTRIBUTING.md lacks: {line}");
    }

    #[test]
    fn every_workload_lists_its_methods() {
        assert_eq!(workloads().len(), listed().len());
        for methods in listed() {
            assert!(methods.iter().any(|method| method.default));
            assert!(methods.iter().all(|method| !method.what.is_empty()));
        }
    }
}
