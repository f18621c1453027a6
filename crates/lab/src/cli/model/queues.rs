//! `corelay model queues`: computes how full a client's pending queues are when it writes them out (D4).

use crate::cli::list::{List, Numbers, number};
use corelay_lab_report::exit::Exit;
use corelay_lab_report::model::queues::{Filled, Queues};
use corelay_lab_report::table::columns::columns;
use corelay_lab_report::words::{count, wrap};
use serde::Serialize;

/// The probability that all queues of a client can fill their request lines, by their length
///
/// A client draws servers at random, each of which has a queue. When the queue that it draws is full,
/// it moves up to one request for each line out of every queue. The thesis suggests that the
/// probability of filling all lines approaches 1 at queues of twice the lines. This is a simulation
/// with a fixed seed; it assumes that all lines have been answered by then.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Servers, each with a queue; the thesis has 16
    #[arg(long, allow_negative_numbers = true, value_name = "N", default_value_t = 16,
          value_parser = number(1..=1024))]
    servers: u64,

    /// Request lines of each pair of client and server
    #[arg(long, allow_negative_numbers = true, value_name = "N", default_value_t = 16,
          value_parser = number(1..=1024))]
    lines: u64,

    /// Lengths of the queues
    #[arg(long, allow_negative_numbers = true, value_name = "LIST",
          default_value = "2,4,8,16,24,32,48,64", value_parser = lengths)]
    length: List,

    /// Print JSON instead of the table
    #[arg(long)]
    json: bool,
}

fn lengths(text: &str) -> Result<List, String> {
    let bounds = 1..=1024;
    Numbers { bounds, word: None }.list(text)
}

/// A row of the output.
#[derive(Serialize)]
struct Row {
    servers: u64,
    lines: u64,
    length: u64,
    /// The probability that every queue can fill all its lines, 0 to 1.
    all: f64,
    /// The probability that one queue can.
    each: f64,
    /// The share of lines that find a request.
    filled: f64,
}

pub(super) fn run(args: &Args) -> Result<Exit, String> {
    let row = |&length: &u64| {
        let queues = Queues {
            servers: args.servers as usize,
            lines: args.lines as usize,
            length: length as usize,
        };
        let Filled { all, each, lines } = queues.filled();
        Row {
            servers: args.servers,
            lines: args.lines,
            length,
            all,
            each,
            filled: lines,
        }
    };
    let rows: Vec<Row> = args.length.0.iter().map(row).collect();
    let cells = |row: &Row| {
        [
            row.length.to_string(),
            format!("{:.1}", row.length as f64 / row.lines as f64),
            super::percent(row.all),
            super::percent(row.each),
            super::percent(row.filled),
        ]
    };
    let header = [
        "queue",
        "× lines",
        "all queues fill their lines",
        "a queue fills its lines",
        "lines that find a request",
    ];
    let double = Queues {
        servers: args.servers as usize,
        lines: args.lines as usize,
        length: 2 * args.lines as usize,
    };
    let text = format!(
        "model: {}, {} for each\n\n{}\n{}\n",
        count(args.servers, "server", "servers"),
        count(args.lines, "request line", "request lines"),
        columns(header, rows.iter().map(cells), 0),
        wrap(&judged(double.filled()), "", 96)
    );
    super::deliver(args.json, &rows, &text)
}

/// Compares what the thesis suggests for queues of twice the lines with the model.
fn judged(double: Filled) -> String {
    let percent = super::percent;
    let all = match double.all {
        all if all >= 0.9 => format!("the model agrees: it is {}", percent(all)),
        all => format!(
            "in the model it is {}, and what comes near to 1 is the share of lines that find a request, \
             {}",
            percent(all),
            percent(double.lines)
        ),
    };
    format!(
        "The thesis suggests, for 16 servers, that the probability of filling all lines approaches 1 near \
         queues of twice the lines: {all}."
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_thesis_is_judged_by_the_model() {
        let filled = |all| Filled {
            all,
            each: 0.95,
            lines: 0.97,
        };
        assert!(judged(filled(0.99)).contains("the model agrees: it is 99.00 %"));
        assert!(judged(filled(0.04)).contains("share of lines that find a request, 97.00 %"));
    }
}
