//! `corelay bench latency`: measures how long an operation takes under load.

use super::common::{self, Common, Listed, NotedPoint, names};
use crate::cli::list::{self, List, Numbers};
use corelay_lab_compare::COMMIT;
use corelay_lab_measure::host::Host;
use corelay_lab_measure::measure::load::{self, LADDER};
use corelay_lab_measure::measure::plan::Item;
use corelay_lab_measure::measure::rig::Rig;
use corelay_lab_measure::method::{Entry, METHODS, OnSchedule};
use corelay_lab_measure::workload::fetch_add::FetchAdd;
use corelay_lab_measure::workload::latency::MAX_LOAD;
use corelay_lab_report::exit::Exit;
use corelay_lab_report::output;
use corelay_lab_report::table;
use std::time::Duration;

/// Latency under load: the operations of fetch-add, but arriving on a schedule
///
/// Operations arrive at random moments that are fixed beforehand (a Poisson process for each
/// client), whether or not earlier operations are done. Latency counts from the moment at which an
/// operation was due, so an operation that waited after a slow one shows it. A load that was not
/// borne is marked, with its limit: the method, or the generator of the load. The CPU time used
/// includes the generators, which spin until the next arrival, alike for every method.
///
/// Lists are written `1,2,4`, `1..8` (with both ends) or `10^3..10^7` (every power).
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Methods to compare, or `all`
    #[arg(long, value_name = "LIST", default_value_t = usual(), value_parser = methods, help = method_help())]
    method: Methods,

    /// Operations per second that arrive at all clients together; `sweep` raises the load of each
    /// method to the first that it does not bear
    #[arg(long, allow_negative_numbers = true, value_name = "LIST", default_value = "sweep", value_parser = loads)]
    load: Loads,

    /// Shared variables
    #[arg(long, allow_negative_numbers = true, value_name = "LIST", default_value = "1", value_parser = common::vars)]
    vars: List,

    #[command(flatten)]
    common: Common,
}

#[derive(Clone, Debug)]
struct Methods(Vec<OnSchedule>);

impl std::fmt::Display for Methods {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let names: Vec<&str> = self.0.iter().map(|m| m.method.name()).collect();
        f.write_str(&names.join(","))
    }
}

/// Returns the methods that are measured if `--method` is not given.
fn usual() -> Methods {
    let usual = METHODS.iter().filter(|m| m.is_usual_on_schedule());
    Methods(usual.filter_map(Entry::on_schedule).collect())
}

/// Returns every method that can run operations on a schedule.
fn all() -> Vec<OnSchedule> {
    METHODS.iter().filter_map(Entry::on_schedule).collect()
}

fn method_help() -> String {
    let all = all();
    let forms = all.iter().flat_map(|m| m.method.forms());
    let forms: Vec<&str> = forms.map(|(form, _)| *form).collect();
    format!(
        "Methods to compare: {}; or `all`. With parameters, as in `bench fetch-add`: {}",
        names(all.iter().map(|m| &m.method)),
        forms.join(", ")
    )
}

fn methods(text: &str) -> Result<Methods, String> {
    let name_of = |m: &OnSchedule| m.method.name().to_owned();
    let read = |name: &str| OnSchedule::named(&METHODS, name);
    list::named(text, &all(), name_of, read).map(Methods)
}

/// The loads to measure, as `--load` gives them.
#[derive(Clone, Debug)]
enum Loads {
    /// Rising loads, up to the first that a method does not bear.
    Sweep,
    /// A list of loads, in operations per second.
    List(List),
}

fn loads(text: &str) -> Result<Loads, String> {
    if text.trim() == "sweep" {
        return Ok(Loads::Sweep);
    }
    let numbers = Numbers {
        bounds: 1..=MAX_LOAD,
        word: None,
    };
    numbers.list(text).map(Loads::List)
}

pub(super) fn listed() -> Vec<Listed> {
    let can = METHODS.iter().filter(|entry| entry.on_schedule().is_some());
    can.map(|entry| {
        let usual = entry.is_usual_on_schedule();
        Listed {
            name: entry.name(),
            what: entry.what,
            default: usual,
            compared: usual && entry.compared.is_some(),
        }
    })
    .collect()
}

pub(super) fn run(args: &Args) -> Result<Exit, String> {
    let (common, methods) = (&args.common, &args.method.0);
    common
        .team
        .check_threads(methods.iter().map(|m| &m.method))?;
    let host = Host::look(COMMIT);
    let points = common.points(&host, &args.vars)?;
    let each = |point: &NotedPoint| args.items(point, &vec![vec![1]; methods.len()]);
    let samples: Vec<Item> = points.iter().flat_map(each).collect();
    let mut opened = common.team.open(&host, &samples)?;
    let items = args.all_items(&mut opened.rig, &points);
    let runs = common.measure(FetchAdd, &mut opened.rig, items)?;
    let runs = load::conclude(methods, runs);
    let wrong = common::has_wrong(&runs);
    opened.deliver(&host, runs, wrong, table::latency::of)
}

impl Args {
    /// Returns the items of one point: each method at its loads, and the load generators alone.
    fn items(&self, point: &NotedPoint, loads: &[Vec<u64>]) -> Vec<Item> {
        load::items(&self.method.0, &point.point, &point.notes, loads)
    }

    /// Returns the items of all points. For a sweep, raises the load of each method first, to find
    /// the loads that it bears.
    fn all_items(&self, rig: &mut Rig, points: &[NotedPoint]) -> Vec<Item> {
        let methods = &self.method.0;
        let steps = match self.load {
            Loads::Sweep => (points.len() * methods.len() * LADDER.len()) as u64,
            Loads::List(_) => 0,
        };
        let bar = output::progress(steps, Duration::from_millis(20).mul_f64(steps as f64));
        bar.set_message("finding loads");
        let mut items = Vec::new();
        for noted in points {
            let loads = match &self.load {
                Loads::List(list) => vec![list.0.clone(); methods.len()],
                Loads::Sweep => {
                    let (point, tick) = (&noted.point, || bar.inc(1));
                    load::climb(FetchAdd, rig, methods, point, LADDER, None, tick)
                }
            };
            items.extend(self.items(noted, &loads));
        }
        bar.finish_and_clear();
        items
    }
}
