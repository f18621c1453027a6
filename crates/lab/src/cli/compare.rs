//! `corelay compare`: the main job, within a minute.

use crate::cli::Exit;
use crate::cli::output::{self, Target};
use crate::comparison::sweep;
use crate::comparison::{Contest, Surveyed};
use crate::method::{self, ON_SCHEDULE};
use crate::report;
use crate::schema::Results;
use crate::workload::fetch_add::FetchAdd;
use crate::workload::operation::Workload;
use std::path::PathBuf;
use std::time::Duration;

/// Compare all methods on this machine, and say which to use where
///
/// Takes about a minute (with --quick a quarter of it), needs no special rights, and
/// leaves a page (index.html) and the raw results (results.json) in a folder.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// A quarter of a minute, fewer points
    #[arg(long)]
    quick: bool,

    /// Folder for index.html and results.json; made if it is not there
    #[arg(long, value_name = "DIR", default_value = "corelay-report")]
    out: PathBuf,

    /// Print the results as JSON instead of the verdict
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &Args) -> Result<Exit, String> {
    let [vars, vars_of_fewer] = sweep::vars(args.quick);
    args.run(&Contest {
        workload: FetchAdd,
        methods: method::usual().to_vec(),
        on_schedule: ON_SCHEDULE.to_vec(),
        vars: vars.to_vec(),
        vars_of_fewer: vars_of_fewer.to_vec(),
    })
}

impl Args {
    /// Fewer points are wanted.
    pub(crate) fn quick(&self) -> bool {
        self.quick
    }

    /// Measures, and leaves page, results and verdict behind.
    pub(crate) fn run<W: Workload>(&self, contest: &Contest<W>) -> Result<Exit, String> {
        let (page, data) = self.targets()?;
        let whole = Duration::from_secs(if self.quick { 15 } else { 60 });
        let Surveyed {
            results,
            interrupted,
        } = contest.survey(whole)?;
        self.deliver(page, data, &results)?;
        let wrong = results.runs.iter().any(|run| !run.correct);
        Ok(match (wrong, interrupted) {
            (true, _) => Exit::Wrong,
            (false, true) => Exit::Interrupted,
            (false, false) => Exit::Fine,
        })
    }

    fn deliver(&self, page: Target, data: Target, results: &Results) -> Result<(), String> {
        let mut json = serde_json::to_string_pretty(results).map_err(|e| e.to_string())?;
        json.push('\n');
        data.write(json.as_bytes())
            .and_then(|()| page.write(report::html(results).as_bytes()))
            .map_err(|error| output::unwritable(&self.out, &error))?;
        if self.json {
            return output::say(&json);
        }
        let page = self.out.join("index.html");
        output::say(&format!(
            "{}\nThe page is {}\n",
            report::verdict(results),
            page.display()
        ))
    }

    /// The page and the raw results, opened before anything is measured.
    fn targets(&self) -> Result<(Target, Target), String> {
        output::folder(&self.out)?;
        let open = |name| {
            Target::open(&self.out.join(name))
                .map_err(|error| output::unwritable(&self.out, &error))
        };
        Ok((open("index.html")?, open("results.json")?))
    }
}
