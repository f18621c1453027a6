//! `corelay compare`: compares all methods on this machine within a minute.

use super::bench::{self, common::vars, structure::check_memory};
use super::list::{List, number};
use corelay_lab_compare::{Contest, Delivery};
use corelay_lab_measure::workload::fetch_add;
use corelay_lab_measure::workload::random::Choice;
use corelay_lab_measure::workload::structure::{
    MAX_SIZE, SharedStructure, Structure, Visitor, visit,
};
use corelay_lab_report::exit::Exit;
use std::path::PathBuf;

/// Compare all methods on this machine, and say which to use where
///
/// Takes about a minute, or a quarter of it with --quick. Needs no special rights. Writes a page
/// (index.html) and the raw results (results.json) into a folder. Unless another load is named, it
/// measures fetch-add, async code, and (not with --quick, for want of time) a map of 100,000 keys.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Workload: fetch-add, or a structure, such as queue, hash or lazy-list
    #[arg(long, value_name = "NAME", default_value = fetch_add::NAME, value_parser = comparable)]
    workload: String,

    /// Keys in each structure at the start; if operations name keys, these are drawn from twice as many
    ///
    /// If it is not given, a structure has its usual size, as in `bench`.
    #[arg(long, allow_negative_numbers = true, value_name = "N", value_parser = number(1..=MAX_SIZE))]
    size: Option<u64>,

    /// Percentage of operations on a structure that insert or remove, in turn; the others read
    ///
    /// If it is not given, a structure has its usual share, as in `bench`.
    #[arg(long, allow_negative_numbers = true, value_name = "N", value_parser = number(0..=100))]
    updates: Option<u64>,

    /// Numbers of shared variables, or of structures that share the keys (shards), each with its own
    /// lock or trustee
    ///
    /// If it is not given, they range from 1 to 2^20 variables, or from 1 to 16 structures.
    #[arg(long, visible_alias = "shards", allow_negative_numbers = true, value_name = "LIST", value_parser = vars)]
    vars: Option<List>,

    /// Distribution of the chosen variables, or of a structure's keys: `uniform`, or `zipf:θ` such as `zipf:0.99`
    #[arg(long, value_name = "DIST", default_value_t)]
    dist: Choice,

    /// Take a quarter of a minute: fewer points are measured
    #[arg(long)]
    quick: bool,

    /// Folder for index.html and results.json; created if missing
    #[arg(long, value_name = "DIR", default_value = Delivery::OUT)]
    out: PathBuf,

    /// Print the results as JSON instead of the verdict
    #[arg(long)]
    json: bool,

    /// Print the whole verdict: where delegation loses and wins, why, and latencies
    #[arg(long, conflicts_with = "json")]
    verbose: bool,
}

pub(crate) fn run(args: Args) -> Result<Exit, String> {
    let delivery = Delivery {
        quick: args.quick,
        out: args.out,
        json: args.json,
        verbose: args.verbose,
    };
    let vars = args.vars.map(|List(vars)| vars);
    if args.workload == fetch_add::NAME {
        let flags = [("--size", args.size), ("--updates", args.updates)];
        if let Some((flag, _)) = flags.into_iter().find(|(_, value)| value.is_some()) {
            return Err(format!(
                "{flag}: {} has no keys; name a structure, such as --workload hash",
                fetch_add::NAME
            ));
        }
        // Filling the map for each method takes longer than a part of the quick measurement.
        let has_map = vars.is_none() && args.dist == Choice::default() && !args.quick;
        let contest = Contest::usual(args.quick).on(vars).choosing(args.dist);
        return match has_map {
            true => delivery.run_beside(&contest, &Contest::map()),
            false => delivery.run(&contest),
        };
    }
    let mut structure = Compare {
        delivery,
        name: args.workload,
        size: args.size,
        updates: args.updates,
        vars,
        choice: args.dist,
        ended: None,
    };
    visit(&mut structure);
    let Compare { ended, name, .. } = structure;
    ended.unwrap_or_else(|| Err(format!("there is no structure `{name}`")))
}

/// Compares the methods on the structure of this name.
struct Compare {
    delivery: Delivery,
    name: String,
    /// The size and the percentage of updates, if they are not the usual ones.
    size: Option<u64>,
    updates: Option<u64>,
    /// The numbers of structures that share the keys, if they are not the usual ones.
    vars: Option<Vec<u64>>,
    choice: Choice,
    ended: Option<Result<Exit, String>>,
}

impl Compare {
    /// Compares the methods on this workload, with the sizes and the shares that were asked for.
    fn on<S: Structure>(&mut self, mut workload: SharedStructure<S>) -> Result<Exit, String> {
        workload.size = self.size.unwrap_or(workload.size);
        workload.updates = self.updates.unwrap_or(workload.updates);
        let contest = Contest::of_structure(workload, self.delivery.quick);
        let contest = contest.on(self.vars.take()).choosing(self.choice);
        check_memory(&workload, contest.vars())?;
        self.delivery.run(&contest)
    }
}

impl Visitor for Compare {
    fn visit<S: Structure>(&mut self) {
        if let Some(workload) = SharedStructure::<S>::usual(&self.name) {
            self.ended = Some(self.on(workload));
        }
    }
}

/// Parses the name of a workload that can be compared.
fn comparable(name: &str) -> Result<String, String> {
    struct Names(Vec<&'static str>);
    impl Visitor for Names {
        fn visit<S: Structure>(&mut self) {
            self.0.push(S::NAME);
            self.0.extend(S::NAME_IF_READ);
        }
    }
    let mut names = Names(vec![fetch_add::NAME]);
    visit(&mut names);
    let Names(names) = names;
    if names.contains(&name) {
        return Ok(name.to_owned());
    }
    let names = names.join(", ");
    Err(match bench::workloads().iter().any(|known| known == name) {
        true => {
            format!("`{name}` has no verdict, see `corelay bench {name}`; compare takes {names}")
        }
        false => format!("there is no workload `{name}`; compare takes {names}"),
    })
}
