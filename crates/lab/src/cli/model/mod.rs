//! `corelay model`: computes the models of the sources (papers, a thesis, slides).

mod ceilings;
mod contention;
mod footprint;
mod lines;
mod picture;
mod queues;
mod residency;
mod throughput;

use crate::cli::list::{List, Numbers};
use corelay_lab_measure::workload::point::MAX_VARS;
use corelay_lab_report::exit::Exit;
use corelay_lab_report::output;
use serde::Serialize;

/// Compute the sources' models with this machine's values: how the figures should look
#[derive(Debug, clap::Args)]
#[command(
    subcommand_value_name = "MODEL",
    subcommand_help_heading = "Models",
    disable_help_subcommand = true
)]
pub(super) struct Args {
    #[command(subcommand)]
    model: Model,
}

#[derive(Debug, clap::Subcommand)]
enum Model {
    Throughput(throughput::Args),
    Contention(contention::Args),
    Residency(residency::Args),
    Footprint(footprint::Args),
    Ceilings(ceilings::Args),
    Queues(queues::Args),
    Lines(lines::Args),
}

pub(super) fn run(args: Args) -> Result<Exit, String> {
    match args.model {
        Model::Throughput(args) => throughput::run(&args),
        Model::Contention(args) => contention::run(&args),
        Model::Residency(args) => residency::run(&args),
        Model::Footprint(args) => footprint::run(&args),
        Model::Ceilings(args) => ceilings::run(&args),
        Model::Queues(args) => queues::run(&args),
        Model::Lines(args) => lines::run(args),
    }
}

/// Prints the output of a model, as JSON or as text.
fn deliver(is_json: bool, output: &impl Serialize, text: &str) -> Result<Exit, String> {
    if is_json {
        let json = serde_json::to_string_pretty(output).map_err(|error| error.to_string())?;
        output::say(&(json + "\n"))?;
    } else {
        output::say(text)?;
    }
    Ok(Exit::Fine)
}

/// Parses `--vars`.
fn vars(text: &str) -> Result<List, String> {
    let bounds = 1..=MAX_VARS;
    Numbers { bounds, word: None }.list(text)
}

/// Parses a number above 0, at most 10^9, that need not be whole.
fn positive(text: &str) -> Result<f64, String> {
    match text.trim().parse::<f64>() {
        Ok(number) if number > 0.0 && number <= 1e9 => Ok(number),
        _ => Err("give a number above 0, at most 10^9".to_owned()),
    }
}

/// Formats a share of 0 to 1 in percent, with two decimal places like the sources' figures.
fn percent(share: f64) -> String {
    match share * 100.0 {
        0.0 => "0 %".to_owned(),
        p if p < 0.005 => format!("{p:.1e} %"),
        p => format!("{p:.2} %"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_have_two_places_like_the_sources() {
        assert_eq!(percent(0.08979), "8.98 %");
        assert_eq!(percent(0.0), "0 %");
        assert_eq!(percent(1.0), "100.00 %");
        assert_eq!(percent(1e-7), "1.0e-5 %");
    }

    #[test]
    fn positive_refuses_all_but_numbers_above_0() {
        assert_eq!(positive(" 2.5 "), Ok(2.5));
        for text in ["0", "-1", "", "NaN", "inf", "1e10", "fast"] {
            assert!(positive(text).is_err(), "{text}");
        }
    }
}
