//! The flags `--history` and `--history-limit`: a file with what transactions have read and written.

use crate::cli::list::number;
use corelay_lab_bench::ordered::database::{Tape, Taped};
use corelay_lab_measure::schema::Run;
use corelay_lab_report::output::{self, Target};
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

/// The flags.
#[derive(Debug, clap::Args)]
pub(super) struct HistoryArgs {
    /// Record what transactions read and write, judge it, and write it to a file: `.json` for
    /// corelay-history, `.edn` for the Elle checker (`--model rw-register`). For one contender: a single
    /// method, mix and number of threads
    #[arg(long, value_name = "FILE")]
    history: Option<PathBuf>,

    /// Attempts of transactions that are recorded, from the first one on; later ones are not
    /// [default: 20000]
    #[arg(long, allow_negative_numbers = true, value_name = "N", requires = "history",
          value_parser = number(1..=1_000_000))]
    history_limit: Option<u64>,
}

/// The form of the file.
#[derive(Clone, Copy, Debug)]
enum Form {
    Json,
    Edn,
}

/// The file, opened before anything is measured.
pub(super) struct HistoryFile {
    path: PathBuf,
    form: Form,
    target: Target,
}

impl HistoryArgs {
    /// Whether a history is to be recorded.
    pub(super) fn is_asked(&self) -> bool {
        self.history.is_some()
    }

    /// Returns a tape to record on, if asked for. It lives as long as the program.
    pub(super) fn tape(&self) -> Option<&'static Tape> {
        let limit = self.history_limit.unwrap_or(20_000);
        self.history
            .as_ref()
            .map(|_| &*Box::leak(Box::new(Tape::new(limit))))
    }

    /// Opens the file for the history of the only one of `contenders`.
    ///
    /// # Errors
    /// A sentence that names the flag at fault.
    pub(super) fn open(
        &self,
        contenders: usize,
        json: Option<&Path>,
    ) -> Result<Option<HistoryFile>, String> {
        let Some(path) = &self.history else {
            return Ok(None);
        };
        let shown = path.display();
        let form = match path.extension().and_then(OsStr::to_str) {
            Some("json") => Form::Json,
            Some("edn") => Form::Edn,
            _ => {
                return Err(format!(
                    "--history {shown}: the name tells the form; let it end in .json or .edn"
                ));
            }
        };
        if contenders > 1 {
            return Err(format!(
                "--history {shown} is for one contender, and there are {contenders}; name one --method, \
                 one --mix, one number of --threads and one --boundary-scale"
            ));
        }
        if json.is_some_and(|json| output::is_same_place(json, path)) {
            return Err(format!(
                "--history {shown} and --json are the same file; name two"
            ));
        }
        Ok(Some(HistoryFile {
            path: path.clone(),
            form,
            target: output::open_beside("--history", path)?,
        }))
    }
}

impl HistoryFile {
    /// Writes the history, and notes in the run what was found.
    ///
    /// # Errors
    /// A sentence, if the file cannot be written.
    pub(super) fn deliver(self, tape: &Tape, runs: &mut [Run]) -> Result<(), String> {
        let Self { path, form, target } = self;
        let Some(Taped {
            history,
            found,
            anomalies,
        }) = tape.take()
        else {
            let missing = format!("{}: no history, as no run has ended", path.display());
            runs.iter_mut()
                .for_each(|run| run.notes.push(missing.clone()));
            return Ok(());
        };
        let written = target.write_with(|out| match form {
            Form::Json => history.write(out),
            Form::Edn => history.write_edn(out),
        });
        written.map_err(|error| output::unwritable_file("--history", &path, &error))?;
        if let Some(run) = runs.first_mut() {
            run.notes.push(found);
            run.notes.extend(anomalies);
        }
        Ok(())
    }
}
