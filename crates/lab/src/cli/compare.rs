//! `corelay compare`: compares all methods on this machine within a minute.

use super::bench;
use corelay_lab_compare::{Contest, Delivery};
use corelay_lab_measure::workload::fetch_add;
use corelay_lab_measure::workload::structure::{SharedStructure, Structure, Visitor, visit};
use corelay_lab_report::exit::Exit;
use std::path::PathBuf;

/// Compare all methods on this machine, and say which to use where
///
/// Takes about a minute, or a quarter of it with --quick. Needs no special rights. Writes a page
/// (index.html) and the raw results (results.json) into a folder.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Workload: fetch-add, or a structure of its usual size, such as queue, hash or lazy-list
    #[arg(long, value_name = "NAME", default_value = fetch_add::NAME, value_parser = comparable)]
    workload: String,

    /// Take a quarter of a minute: fewer points are measured
    #[arg(long)]
    quick: bool,

    /// Folder for index.html and results.json; created if missing
    #[arg(long, value_name = "DIR", default_value = Delivery::OUT)]
    out: PathBuf,

    /// Print the results as JSON instead of the verdict
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: Args) -> Result<Exit, String> {
    let delivery = Delivery {
        quick: args.quick,
        out: args.out,
        json: args.json,
    };
    if args.workload == fetch_add::NAME {
        return delivery.run(&Contest::usual(args.quick));
    }
    let mut structure = Compare {
        delivery,
        name: args.workload,
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
    ended: Option<Result<Exit, String>>,
}

impl Visitor for Compare {
    fn visit<S: Structure>(&mut self) {
        if let Some(workload) = SharedStructure::<S>::usual(&self.name) {
            let contest = Contest::of_structure(workload, self.delivery.quick);
            self.ended = Some(self.delivery.run(&contest));
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
