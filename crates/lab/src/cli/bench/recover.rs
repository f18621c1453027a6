//! `corelay bench recover`: opening a store that has a log of some size.

use super::common::Listed;
use super::kept::folder;
use super::ordered::{self, Common, Methods};
use crate::cli::list::number;
use corelay_lab_bench::ordered::kept::LogShape;
use corelay_lab_bench::ordered::spec::Bench;
use corelay_lab_report::exit::Exit;
use std::path::{Path, PathBuf};

/// The method that is measured if none is named: recovery hardly depends on the protocol.
const DEFAULT: &str = "silo";

/// Open a store that has a log of some size, again and again: MB of the log per second
///
/// The log inserts all rows, then updates random ones until it is long enough. An opening reads the log and
/// fills the table; closing is not counted. A sample is one opening, whatever `--secs` says. At the end all
/// updates in the log must be in the table.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Methods to compare, or `all`
    #[arg(long, value_name = "LIST", default_value = DEFAULT, value_parser = methods, help = ordered::help(any()))]
    method: Methods,

    /// Rows in the table
    #[arg(long, allow_negative_numbers = true, value_name = "N", default_value_t = 500_000,
          value_parser = number(1..=1 << 26))]
    rows: u64,

    /// Bytes of a row
    #[arg(long, allow_negative_numbers = true, value_name = "N", default_value_t = 100,
          value_parser = number(8..=65_536))]
    bytes: u64,

    /// Size of the log in MB (10^6 bytes), or a little more
    #[arg(long, allow_negative_numbers = true, value_name = "MB", default_value_t = 200,
          value_parser = number(1..=100_000))]
    log: u64,

    /// Ask the system to forget the files before each opening, so that they are read from the disk; only on
    /// Linux
    #[arg(long)]
    cold: bool,

    /// Folder for the stores, which each make one of their own there and remove it at the end; it must be
    /// on a disk [default: the system's folder for temporary files]
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,

    #[command(flatten)]
    common: Common,
}

/// The benchmark at any size.
fn any() -> Bench {
    Bench::Recover {
        shape: LogShape {
            rows: 1,
            bytes: 8,
            log_bytes: 1,
            is_cold: false,
        },
        dir: Path::new(""),
    }
}

pub(super) fn listed() -> Vec<Listed> {
    let all = ordered::listed(any()).into_iter();
    all.map(|method| Listed {
        default: method.name == DEFAULT,
        ..method
    })
    .collect()
}

fn methods(text: &str) -> Result<Methods, String> {
    ordered::read(any(), text)
}

pub(super) fn run(args: &Args) -> Result<Exit, String> {
    if args.cold && !cfg!(target_os = "linux") {
        return Err("--cold: only Linux can be asked to forget files; leave it out".to_owned());
    }
    let bench = Bench::Recover {
        shape: LogShape {
            rows: args.rows,
            bytes: args.bytes as usize,
            log_bytes: args.log * 1_000_000,
            is_cold: args.cold,
        },
        dir: folder(args.dir.as_deref())?,
    };
    args.common.run(&args.method, &[bench])
}
