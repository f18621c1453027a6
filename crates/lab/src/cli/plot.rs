//! `corelay plot`: overlays the results of several machines or commits.

use corelay_lab_compare::COMMIT;
use corelay_lab_measure::host::command_line;
use corelay_lab_report::exit::Exit;
use corelay_lab_report::output::{self, Target};
use corelay_lab_report::overlay::lay::{MAX_FILES, Overlays, lay};
use corelay_lab_report::overlay::page;
use corelay_lab_report::overlay::read::read;
use corelay_lab_report::overlay::verdict::reading;
use corelay_lab_report::plot::Medium;
use corelay_lab_report::words::wrap;
use std::fmt::Write;
use std::path::PathBuf;

/// Overlay the results of several machines or commits
///
/// Takes files written by `compare` (results.json), `bench --json` and `figure`; a file may hold
/// several figures, as `figure --json` prints them. Draws the workloads and axes that all files
/// have in common, in a colour for each file, and names each file's machine and commit. Writes a
/// page (index.html) and each picture (SVG) into a folder.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Files of results to overlay
    #[arg(value_name = "FILE", required = true)]
    files: Vec<PathBuf>,

    /// Folder for the page and the pictures; created if missing
    #[arg(long, value_name = "DIR", default_value = "corelay-plot")]
    out: PathBuf,

    /// Print the overlaid results as JSON instead of tables
    #[arg(long)]
    json: bool,
}

pub(super) fn run(args: &Args) -> Result<Exit, String> {
    if args.files.len() > MAX_FILES {
        return Err(format!(
            "FILE: {} files are given, and a picture can show at most {MAX_FILES}",
            args.files.len(),
        ));
    }
    let inputs: Vec<_> = args
        .files
        .iter()
        .map(|file| read(file))
        .collect::<Result<_, _>>()?;
    let laid = lay(&inputs)?;
    output::folder(&args.out)?;
    args.write(&laid)?;
    if args.json {
        let json = serde_json::to_string_pretty(&laid.json()).map_err(|e| e.to_string())?;
        output::say(&format!("{json}\n"))?;
        return Ok(Exit::Fine);
    }
    output::say(&text(&laid))?;
    let page = args.out.join("index.html");
    output::say(&format!("The page is {}\n", page.display()))?;
    Ok(Exit::Fine)
}

impl Args {
    fn write(&self, laid: &Overlays) -> Result<(), String> {
        let write = |name: &str, content: &str| {
            let target = Target::open(&self.out.join(name));
            let written = target.and_then(|target| target.write(content.as_bytes()));
            written.map_err(|error| output::unwritable(&self.out, &error))
        };
        for picture in page::all_pictures(laid) {
            write(&format!("{}.svg", picture.name), &picture.svg(Medium::File))?;
        }
        write("index.html", &page::html(laid, &command_line(), COMMIT))
    }
}

fn text(laid: &Overlays) -> String {
    let mut text = String::new();
    for label in &laid.files {
        let _ = writeln!(
            text,
            "{}: {}, commit {} ({})",
            label.letter, label.machine, label.commit, label.file
        );
    }
    for note in &laid.notes {
        let _ = writeln!(text, "{}", wrap(note, "! ", 96));
    }
    let verdict = laid.verdict();
    let _ = writeln!(text, "\n{}", wrap(&verdict.headline, "", 96));
    for (title, sentences) in &verdict.pictures {
        let _ = writeln!(text, "\n{}", wrap(title, "", 96));
        for sentence in sentences {
            let _ = writeln!(text, "{}", wrap(sentence, "- ", 96));
        }
    }
    if !verdict.pictures.is_empty() {
        let _ = writeln!(text, "\n{}", wrap(&reading(), "", 96));
    }
    for overlay in &laid.overlays {
        let _ = writeln!(text, "\n{}", overlay.grid(&laid.files));
    }
    text
}
