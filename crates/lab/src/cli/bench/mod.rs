//! `corelay bench`: one workload with every knob.

mod common;
mod fetch_add;
mod fibres;
mod latency;
mod ordered;

use corelay_lab_report::exit::Exit;
use std::ffi::OsString;

/// Measure one workload with every knob
#[derive(Debug, clap::Args)]
#[command(
    arg_required_else_help = false,
    subcommand_value_name = "WORKLOAD",
    subcommand_help_heading = "Workloads",
    disable_help_subcommand = true
)]
pub(crate) struct Args {
    #[command(subcommand)]
    workload: Workload,
}

#[derive(Debug, clap::Subcommand)]
enum Workload {
    FetchAdd(fetch_add::Args),
    Latency(latency::Args),
    Cycle(fibres::Cycle),
    Yield(fibres::Yield),
    Churn(fibres::Churn),
    Locality(fibres::Locality),
    Transfer(fibres::Transfer),
    Timestamp(ordered::Timestamp),
    RluList(ordered::RluList),
    RluHash(ordered::RluHash),
    StmTransfer(ordered::StmTransfer),
    StmRead(ordered::StmRead),
    OplogRmap(ordered::OplogRmap),
    #[command(external_subcommand)]
    Unknown(Vec<OsString>),
}

pub(crate) fn run(args: Args) -> Result<Exit, String> {
    match args.workload {
        Workload::FetchAdd(args) => fetch_add::run(args),
        Workload::Latency(args) => latency::run(args),
        Workload::Cycle(args) => fibres::cycle(&args),
        Workload::Yield(args) => fibres::yield_(&args),
        Workload::Churn(args) => fibres::churn(&args),
        Workload::Locality(args) => fibres::locality(&args),
        Workload::Transfer(args) => fibres::transfer(&args),
        Workload::Timestamp(args) => ordered::timestamp(&args),
        Workload::RluList(args) => ordered::rlu_list(&args),
        Workload::RluHash(args) => ordered::rlu_hash(&args),
        Workload::StmTransfer(args) => ordered::stm_transfer(&args),
        Workload::StmRead(args) => ordered::stm_read(&args),
        Workload::OplogRmap(args) => ordered::oplog_rmap(&args),
        Workload::Unknown(words) => {
            let name = words.first().map(|name| name.to_string_lossy());
            Err(format!(
                "there is no workload `{}`; there are fetch-add, latency, cycle, yield, churn, locality, \
                 transfer, timestamp, rlu-list, rlu-hash, stm-transfer, stm-read and oplog-rmap",
                name.unwrap_or_default()
            ))
        }
    }
}
