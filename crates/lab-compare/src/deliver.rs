//! The output of a comparison: a page, the raw results, and a verdict.

use crate::COMMIT;
use crate::survey::{Contest, Surveyed};
use corelay_lab_measure::host::Host;
use corelay_lab_measure::schema::Results;
use corelay_lab_measure::workload::operation::Workload;
use corelay_lab_report as report;
use corelay_lab_report::exit::{self, Exit};
use corelay_lab_report::output::{self, Target};
use std::path::PathBuf;
use std::time::Duration;

/// The duration of a comparison, and the destinations of its output.
#[derive(Debug)]
pub struct Delivery {
    /// Whether to take a quarter of a minute instead of a whole one, with fewer points.
    pub quick: bool,
    /// The folder for `index.html` and `results.json`.
    pub out: PathBuf,
    /// Whether to print the results as JSON instead of the verdict.
    pub json: bool,
    /// Whether to print the whole verdict, and not only what to use.
    pub verbose: bool,
}

impl Delivery {
    /// The default of [`out`](Self::out).
    pub const OUT: &str = "corelay-report";

    /// Measures `contest`, then writes the page and the results and prints the verdict.
    ///
    /// # Errors
    /// A sentence that names the place that cannot be written, or what the system refused.
    pub fn run<W: Workload>(&self, contest: &Contest<W>) -> Result<Exit, String> {
        self.run_on(|host, whole| contest.survey(host, whole))
    }

    /// Does the same as [`run`](Self::run), and measures `beside` in an eighth of the time.
    ///
    /// # Errors
    /// The same as for [`run`](Self::run).
    pub fn run_beside<W: Workload, V: Workload>(
        &self,
        contest: &Contest<W>,
        beside: &Contest<V>,
    ) -> Result<Exit, String> {
        self.run_on(|host, whole| {
            let mut surveyed = contest.survey(host, whole * 7 / 8)?;
            if !surveyed.interrupted {
                surveyed.add(beside.survey(host, whole / 8)?);
            }
            Ok(surveyed)
        })
    }

    fn run_on(
        &self,
        survey: impl FnOnce(&Host, Duration) -> Result<Surveyed, String>,
    ) -> Result<Exit, String> {
        let (page, data) = self.targets()?;
        let whole = Duration::from_secs(if self.quick { 15 } else { 60 });
        let Surveyed {
            results,
            interrupted,
        } = survey(&Host::look(COMMIT), whole)?;
        self.deliver(page, data, &results)?;
        let wrong = results.runs.iter().any(|run| !run.correct);
        Ok(exit::measured(&results, wrong, interrupted))
    }

    fn deliver(&self, page: Target, data: Target, results: &Results) -> Result<(), String> {
        let mut json = serde_json::to_string_pretty(results).map_err(|e| e.to_string())?;
        json.push('\n');
        let verdict = report::verdict(results);
        // Said before anything is written, so that it is said even if nothing can be.
        output::say(&match (self.json, self.verbose) {
            (true, _) => json.clone(),
            (false, true) => verdict.to_string(),
            (false, false) => verdict.answer(),
        })?;
        data.write(json.as_bytes())
            .and_then(|()| page.write(report::html(results).as_bytes()))
            .map_err(|error| output::unwritable(&self.out, &error))?;
        if self.json {
            return Ok(());
        }
        let more = if self.verbose {
            ""
        } else {
            "Why, and all else: --verbose, or the page. "
        };
        let page = self.out.join("index.html");
        output::say(&format!("\n{more}The page is {}\n", page.display()))
    }

    /// Opens the page and the raw results, before anything is measured.
    fn targets(&self) -> Result<(Target, Target), String> {
        output::folder(&self.out)?;
        let open = |name| {
            Target::open(&self.out.join(name))
                .map_err(|error| output::unwritable(&self.out, &error))
        };
        Ok((open("index.html")?, open("results.json")?))
    }
}
