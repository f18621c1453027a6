//! `corelay figure`: the sources' figures, made again on this machine.

use crate::cli::list::{number, secs};
use corelay_lab_compare::COMMIT;
use corelay_lab_figures::FIGURES;
use corelay_lab_figures::declare::Figure;
use corelay_lab_figures::measure::{self, Pace};
use corelay_lab_figures::size::{ORDER, Size};
use corelay_lab_measure::host::Host;
use corelay_lab_report::exit::Exit;
use corelay_lab_report::figure::outcome::Outcome;
use corelay_lab_report::figure::page;
use corelay_lab_report::output::{self, Target};
use corelay_lab_report::words::wrap;
use serde::Serialize;
use std::fmt::Write;
use std::path::PathBuf;
use std::time::Duration;

/// Make the sources' figures again on this machine
///
/// Each is measured for as long as the source does: samples of three seconds, ten for each point,
/// whose harmonic mean is drawn. That takes minutes to an hour a figure; `--short` is a smoke
/// pass. Leaves a page (NAME.html) and the raw results (NAME.json) of each in a folder.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Figures to make
    #[arg(value_name = "NAME", conflicts_with_all = ["list", "all"],
          required_unless_present_any = ["list", "all"])]
    names: Vec<String>,

    /// Name the figures: what each shows, its source, the CPUs it needs, and how long it takes
    #[arg(long)]
    list: bool,

    /// Make all of them, and a page that leads to them (index.html)
    #[arg(long, conflicts_with = "list")]
    all: bool,

    /// A smoke pass: a few short samples of fewer points
    #[arg(long)]
    short: bool,

    /// Length of a sample in seconds; fractions are allowed [default: the source's 3]
    #[arg(long, allow_negative_numbers = true, value_name = "S", value_parser = secs)]
    secs: Option<f64>,

    /// Samples of each point [default: the source's 10]
    #[arg(long, allow_negative_numbers = true, value_name = "N", value_parser = number(1..=100_000))]
    samples: Option<u64>,

    /// Folder for pages and results; made if it is not there
    #[arg(long, value_name = "DIR", default_value = "corelay-figures")]
    out: PathBuf,

    /// Print the results (or the list) as JSON instead of tables
    #[arg(long)]
    json: bool,
}

/// Where a figure's page and results go.
struct Places {
    page: Target,
    data: Target,
}

pub(super) fn run(args: &Args) -> Result<Exit, String> {
    let named = args
        .names
        .iter()
        .map(|name| corelay_lab_figures::named(name));
    let figures: Vec<&Figure> = match args.list || args.all {
        true => FIGURES.iter().collect(),
        false => named.collect::<Result<_, _>>()?,
    };
    if args.list {
        return args.list();
    }
    output::folder(&args.out)?;
    let places = figures.iter().map(|figure| args.places(figure.name));
    let places: Vec<Places> = places.collect::<Result<_, _>>()?;
    let index = match args.all {
        true => Some(args.open("index.html")?),
        false => None,
    };
    let host = Host::look(COMMIT);
    let size = Size::of(&host, args.short)?;
    let outcomes = args.measure(&host, &size, figures.iter().copied().zip(places))?;
    if let Some(index) = index {
        let page = page::index(&outcomes);
        let write = index.write(page.as_bytes());
        write.map_err(|error| output::unwritable(&args.out, &error))?;
    }
    args.say(&outcomes, figures.len())?;
    let runs = outcomes.iter().flat_map(|outcome| &outcome.results.runs);
    let wrong = runs.into_iter().any(|run| !run.correct);
    Ok(match (wrong, host.is_interrupted()) {
        (true, _) => Exit::Wrong,
        (false, true) => Exit::Interrupted,
        (false, false) => Exit::Fine,
    })
}

impl Args {
    fn pace(&self) -> Pace {
        let pace = if self.short {
            Pace::SHORT
        } else {
            Pace::SOURCE
        };
        Pace {
            secs: self.secs.unwrap_or(pace.secs),
            samples: self.samples.unwrap_or(pace.samples),
        }
    }

    fn open(&self, name: &str) -> Result<Target, String> {
        Target::open(&self.out.join(name)).map_err(|error| output::unwritable(&self.out, &error))
    }

    fn places(&self, name: &str) -> Result<Places, String> {
        Ok(Places {
            page: self.open(&format!("{name}.html"))?,
            data: self.open(&format!("{name}.json"))?,
        })
    }

    /// Measures one figure after the other; each is whole on the disk before the next begins.
    fn measure<'a>(
        &self,
        host: &Host,
        size: &Size,
        figures: impl ExactSizeIterator<Item = (&'a Figure, Places)>,
    ) -> Result<Vec<Outcome>, String> {
        let pace = self.pace();
        let mut rig = host.rig(&ORDER, size.threads)?;
        let mut outcomes = Vec::with_capacity(figures.len());
        for (figure, places) in figures {
            let (slices, time) = measure::expected(figure, size, pace);
            let bar = output::progress(slices, time);
            bar.set_message(figure.name);
            let outcome = measure::measure(figure, size, pace, host, &mut rig, &|| bar.inc(1));
            bar.finish_and_clear();
            rig.save();
            let write = places
                .data
                .write(json(&outcome)?.as_bytes())
                .and_then(|()| places.page.write(page::html(&outcome).as_bytes()));
            write.map_err(|error| output::unwritable(&self.out, &error))?;
            if !self.json {
                output::say(&format!("{}\n", page::text(&outcome)))?;
            }
            outcomes.push(outcome);
            if host.is_interrupted() {
                break;
            }
        }
        Ok(outcomes)
    }

    /// The last words: where the pages are, or the results themselves.
    fn say(&self, outcomes: &[Outcome], asked: usize) -> Result<(), String> {
        if self.json {
            return output::say(&match outcomes {
                [one] if asked == 1 => json(one)?,
                all => json(&all)?,
            });
        }
        let page = match outcomes {
            _ if self.all => self.out.join("index.html"),
            [one] => self.out.join(format!("{}.html", one.figure.name)),
            _ => return output::say(&format!("The pages are in {}\n", self.out.display())),
        };
        output::say(&format!("The page is {}\n", page.display()))
    }

    fn list(&self) -> Result<Exit, String> {
        let host = Host::look(COMMIT);
        let size = Size::of(&host, self.short)?;
        let listed: Vec<Listed> = FIGURES
            .iter()
            .map(|figure| Listed::of(figure, &size, self.pace()))
            .collect();
        if self.json {
            output::say(&json(&listed)?)?;
            return Ok(Exit::Fine);
        }
        let mut text = String::new();
        for figure in &listed {
            let first = format!("{:15} ", figure.name);
            let _ = writeln!(text, "{}", wrap(figure.title, &first, 96));
            let source = format!("{}; {}", figure.source, figure.needs);
            let _ = writeln!(text, "{}", wrap(&source, &" ".repeat(16), 96));
        }
        let seconds = listed.iter().map(|figure| figure.seconds).sum();
        let all = duration(seconds);
        let _ = writeln!(text, "\nAll of them take about {all}.");
        output::say(&text)?;
        Ok(Exit::Fine)
    }
}

/// A figure in the list.
#[derive(Serialize)]
struct Listed {
    name: &'static str,
    title: &'static str,
    source: String,
    /// CPUs without which nothing can be measured, and from which on it is whole.
    least_cpus: usize,
    whole_cpus: usize,
    cpus: usize,
    /// Why nothing of it can be measured here.
    unavailable: Option<String>,
    /// How long it takes here.
    seconds: f64,
    #[serde(skip)]
    needs: String,
}

impl Listed {
    fn of(figure: &Figure, size: &Size, pace: Pace) -> Self {
        let seconds = measure::expected(figure, size, pace).1.as_secs_f64();
        let unavailable = measure::obstacle(figure, size);
        let needs = match &unavailable {
            Some(why) => format!("not here: {why}"),
            None if size.cpus < figure.whole => format!(
                "whole from {} CPUs on, with {} a part of it; about {}",
                figure.whole,
                size.cpus,
                duration(seconds)
            ),
            None => format!("needs {} CPUs; about {}", figure.whole, duration(seconds)),
        };
        Self {
            name: figure.name,
            title: figure.title,
            source: figure.source.name(),
            least_cpus: figure.least,
            whole_cpus: figure.whole,
            cpus: size.cpus,
            unavailable,
            seconds,
            needs,
        }
    }
}

/// Seconds as a person says them.
fn duration(seconds: f64) -> String {
    match Duration::from_secs_f64(seconds).as_secs() {
        0..90 => format!("{} s", seconds.ceil()),
        90..5400 => format!("{} min", (seconds / 60.0).round()),
        _ => format!("{:.1} h", seconds / 3600.0),
    }
}

fn json(data: &impl Serialize) -> Result<String, String> {
    let mut text = serde_json::to_string_pretty(data).map_err(|error| error.to_string())?;
    text.push('\n');
    Ok(text)
}
