//! `corelay bench fetch-add`: throughput.

use super::common::{self, Common, names};
use crate::cli::list::{self, List};
use corelay_lab_compare::COMMIT;
use corelay_lab_measure::host::Host;
use corelay_lab_measure::measure::plan::Item;
use corelay_lab_measure::method::literature::lines;
use corelay_lab_measure::method::{METHODS, Method, fibres};
use corelay_lab_report::exit::Exit;
use corelay_lab_report::table;

/// Throughput: add one to 64-byte variables chosen at random, as fast as it goes
///
/// Lists are written `1,2,4`, `1..8` (both ends belong to it) or `2^0..2^20` (every power).
/// One sample of each contender is taken in turn, then again one of each, so that all meet
/// the machine in the same moods.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Methods to compare, or `all`
    #[arg(long, value_name = "LIST", default_value = "all", value_parser = methods, help = method_help())]
    method: Methods,

    /// Shared variables
    #[arg(long, allow_negative_numbers = true, value_name = "LIST", default_value = "1,64,2^10", value_parser = common::vars)]
    vars: List,

    #[command(flatten)]
    common: Common,
}

#[derive(Clone, Debug)]
struct Methods(Vec<Method>);

fn method_help() -> String {
    format!(
        "Methods to compare, of {}; or `all`. With parameters: async-lines:N (request lines per \
         client and server; 16 if not said), async-lines:NxL (and a pending queue of L; 2N if \
         not said), async-lines:N-direct (no queue), trust-fibre:K (fibres of each client; 64 if \
         not said)",
        names(METHODS.iter())
    )
}

fn methods(text: &str) -> Result<Methods, String> {
    let named =
        |name: &str| match lines::with_parameters(name).or_else(|| fibres::with_parameters(name)) {
            Some(read) => read,
            None => Method::named(name).ok_or_else(|| format!("there is no method `{name}`")),
        };
    list::named(text, METHODS, |method| method.name().to_owned(), named).map(Methods)
}

pub(crate) fn run(args: Args) -> Result<Exit, String> {
    let (common, methods) = (&args.common, &args.method.0);
    common.check_threads(methods.iter())?;
    let host = Host::look(COMMIT);
    let mut items = Vec::new();
    for place in common.places(&host, &args.vars)? {
        items.extend(methods.iter().map(|&method| {
            let (mut point, mut notes) = (place.point.clone(), place.notes.clone());
            notes.extend(point.even_out(&method));
            Item {
                method,
                point,
                notes,
            }
        }));
    }
    let mut bench = common.open(&host, &items)?;
    let runs = common.measure(&mut bench.rig, items)?;
    common.deliver(&host, bench, runs, table::of)
}
