//! `corelay bench kept`: transactions that are on disk before they are answered.

use super::common::Listed;
use super::ordered::{self, Common, Methods, Plan};
use crate::cli::list::{List, Numbers, number};
use corelay_lab_bench::ordered::kept::{self, Shape};
use corelay_lab_bench::ordered::spec::Bench;
use corelay_lab_report::exit::Exit;
use std::path::{Path, PathBuf};

/// Small transactions on rows that are kept on disk, each on disk before it is answered
///
/// A transaction adds 1 to a number in some rows, and reads them for that. It counts when it would
/// survive a loss of power. At the end each store is closed and opened again, and the sum of all numbers
/// is checked. Every method has the fastest setting of its crate that keeps this promise. Crates with one
/// writer at a time sync once for each transaction; `…-grouped` methods gather the transactions of all
/// threads that wait, and commit them in one. `sled-flush` is the exception: what it promises is less.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Methods to compare, or `all`
    #[arg(long, value_name = "LIST", default_value = "all", value_parser = methods, help = ordered::help(any()))]
    method: Methods,

    /// Rows in the table
    #[arg(long, allow_negative_numbers = true, value_name = "N", default_value_t = 10_000,
          value_parser = number(1..=1 << 26))]
    rows: u64,

    /// Bytes of a row
    #[arg(long, allow_negative_numbers = true, value_name = "N", default_value_t = 100,
          value_parser = number(8..=65_536))]
    bytes: u64,

    /// Rows that a transaction reads and writes; they differ
    #[arg(long, allow_negative_numbers = true, value_name = "N", default_value_t = 2,
          value_parser = number(1..=256))]
    requests: u64,

    /// Transactions that a thread has outstanding, by corelay's stores and the `…-grouped` methods; the others
    /// wait for each
    #[arg(long, allow_negative_numbers = true, value_name = "LIST", default_value = "1", value_parser = windows)]
    window: List,

    /// Folder for the stores, which each make one of their own there and remove it at the end; it must be
    /// on a disk [default: the system's folder for temporary files]
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,

    #[command(flatten)]
    common: Common,
}

/// The benchmark at any size.
fn any() -> Bench {
    Bench::Kept {
        shape: Shape {
            rows: 1,
            bytes: 8,
            requests: 1,
        },
        dir: Path::new(""),
    }
}

pub(super) fn listed() -> Vec<Listed> {
    ordered::listed(any())
}

fn methods(text: &str) -> Result<Methods, String> {
    ordered::read(any(), text)
}

fn windows(text: &str) -> Result<List, String> {
    let (bounds, word) = (1..=65_536, None);
    Numbers { bounds, word }.list(text)
}

/// Checks the folder of `--dir`. Returns it for the rest of the program: a leak of one path.
pub(super) fn folder(dir: Option<&Path>) -> Result<&'static Path, String> {
    let dir = dir.map_or_else(std::env::temp_dir, Path::to_owned);
    kept::check_folder(&dir).map_err(|why| format!("--dir {}: {why}", dir.display()))?;
    Ok(Box::leak(dir.into_boxed_path()))
}

pub(super) fn run(args: &Args) -> Result<Exit, String> {
    let dir = folder(args.dir.as_deref())?;
    let bench = Bench::Kept {
        shape: Shape {
            rows: args.rows,
            bytes: args.bytes as usize,
            requests: args.requests as usize,
        },
        dir,
    };
    args.common.run_plan(&Plan {
        windows: &args.window.0,
        ..Plan::of(&args.method, &[bench])
    })
}
