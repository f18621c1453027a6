//! `corelay bench fetch-add`, and the throughput of any other workload that is one operation on
//! shared objects.

use super::common::{self, Common, Listed, names};
use crate::cli::list::{self, List};
use corelay_lab_compare::COMMIT;
use corelay_lab_measure::host::Host;
use corelay_lab_measure::measure::plan::Item;
use corelay_lab_measure::method::{Entry, Method, named};
use corelay_lab_measure::workload::operation::Workload;
use corelay_lab_measure::workload::structure;
use corelay_lab_report::exit::Exit;
use corelay_lab_report::table;

#[derive(Debug, clap::Args)]
pub(crate) struct Args<W: Workload> {
    /// Methods to compare, or `all`
    #[arg(long, value_name = "LIST", default_value = "all", value_parser = methods::<W>, help = method_help::<W>())]
    method: Methods<W>,

    /// Shared variables
    #[arg(long, allow_negative_numbers = true, value_name = "LIST", default_value = "1,64,2^10", value_parser = common::vars)]
    vars: List,

    #[command(flatten)]
    common: Common,
}

#[derive(Clone, Debug)]
pub(super) struct Methods<W>(pub(super) Vec<Method<W>>);

fn all<W: Workload>() -> Vec<Method<W>> {
    W::methods().iter().map(|entry| entry.method).collect()
}

pub(super) fn method_help<W: Workload>() -> String {
    let all = all::<W>();
    let forms = all.iter().flat_map(Method::forms);
    let forms: Vec<String> = forms
        .map(|(form, what)| format!("{form} ({what})"))
        .collect();
    format!(
        "Methods to compare: {}; or `all`. With parameters: {}",
        names(all.iter()),
        forms.join(", ")
    )
}

pub(super) fn methods<W: Workload>(text: &str) -> Result<Methods<W>, String> {
    let name_of = |method: &Method<W>| method.name().to_owned();
    let read = |name: &str| {
        let found = named(&W::methods(), name);
        found.unwrap_or_else(|| {
            let unknown = || format!("there is no method `{name}` for this workload");
            Err(structure::why_only(name).unwrap_or_else(unknown))
        })
    };
    list::named(text, &all(), name_of, read).map(Methods)
}

pub(super) fn listed<W: Workload>() -> Vec<Listed> {
    let listed = |entry: &Entry<W>| Listed {
        name: entry.name(),
        what: entry.what,
        default: true,
        compared: entry.compared.is_some(),
    };
    W::methods().iter().map(listed).collect()
}

pub(super) fn run<W: Workload + Default>(args: &Args<W>) -> Result<Exit, String> {
    let (common, methods) = (&args.common, &args.method.0);
    common.team.check_threads(methods.iter())?;
    let host = Host::look(COMMIT);
    let mut items = Vec::new();
    for noted in common.points(&host, &args.vars)? {
        items.extend(methods.iter().map(|&method| {
            let (mut point, mut notes) = (noted.point.clone(), noted.notes.clone());
            notes.extend(point.even_out(&method));
            Item {
                method,
                point,
                notes,
            }
        }));
    }
    let mut opened = common.team.open(&host, &items)?;
    let runs = common.measure(W::default(), &mut opened.rig, items)?;
    let wrong = common::has_wrong(&runs);
    opened.deliver(&host, runs, wrong, table::of)
}
