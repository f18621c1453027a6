//! Chains of migrations (C3): whether one migration makes "every fibre … shuffle around", as the
//! chapter says of as many fibres as processors.

use super::{MIGRATING, most};
use crate::declare::{FigureLine, Panel, Work};
use crate::size::Size;
use corelay_lab_bench::fibres::method::METHODS;
use corelay_lab_bench::fibres::spec::Bench;
use corelay_lab_measure::schema::Run;
use corelay_lab_measure::schema::fibres::MigrationChains;
use corelay_lab_report::figure::measured::Measured;
use corelay_lab_report::figure::outcome::Axis;
use corelay_lab_report::figure::quantity::Quantity::Scalability;
use corelay_lab_report::plot::{grouped, percent};
use corelay_lab_report::table::grid::Grid;
use corelay_lab_report::words::{code, count};

/// The key of the panel.
const KEY: &str = "chains";

/// Makes the panel of a fibre for each processor whose migrations are noted; `None` if there is one
/// CPU, where nothing migrates.
pub(super) fn panel(size: &Size) -> Option<Panel> {
    let method = *METHODS.iter().find(|method| method.name() == MIGRATING)?;
    let processors = size.processors_from(2);
    let cells = processors.into_iter().map(|p| {
        let mut cell = size.fibres(method, Bench::Yield, p, p, KEY);
        if let Work::Fibres(item) = &mut cell.work {
            item.spec.chains = true;
        }
        cell
    });
    let line = FigureLine::new(MIGRATING, cells);
    (!line.cells.is_empty()).then(|| Panel {
        key: KEY,
        title: "1 fibre per processor, which notes its migrations",
        axis: Axis::linear("processors"),
        quantities: &[Scalability],
        lines: vec![line],
    })
}

/// The chains of all samples of a run.
struct Found {
    processors: usize,
    samples: Vec<MigrationChains>,
}

impl Found {
    fn of(run: &Run) -> Option<Self> {
        let samples = run.samples.iter().filter_map(|s| s.fibres.as_ref()?.chains);
        let samples: Vec<MigrationChains> = samples.collect();
        (!samples.is_empty()).then_some(Self {
            processors: run.params.threads,
            samples,
        })
    }

    fn sum(&self, of: fn(&MigrationChains) -> u64) -> u64 {
        self.samples.iter().map(of).sum()
    }

    fn most(&self, of: fn(&MigrationChains) -> u64) -> u64 {
        self.samples.iter().map(of).max().unwrap_or(0)
    }

    /// The share of migrations that followed another one in their chain; `None` if there were none.
    fn followers(&self) -> Option<f64> {
        let all = self.sum(|found| found.migrations);
        let followers = self.sum(MigrationChains::followers);
        (all > 0).then(|| followers as f64 / all as f64)
    }

    /// The share that would have followed by chance, over all migrations of all samples.
    fn by_chance(&self) -> f64 {
        let all = self.sum(|found| found.migrations) as f64;
        let of = |found: &MigrationChains| found.by_chance() * found.migrations as f64;
        self.samples.iter().map(of).sum::<f64>() / all.max(1.0)
    }

    fn row(&self) -> Vec<String> {
        let followers = self.followers().map_or("–".to_owned(), percent);
        vec![
            self.processors.to_string(),
            grouped(self.sum(|found| found.migrations)),
            grouped(self.sum(|found| found.chains)),
            grouped(self.sum(|found| found.alone)),
            grouped(self.most(|found| found.median)),
            grouped(self.most(|found| found.longest)),
            self.most(|found| found.most_fibres).to_string(),
            self.most(|found| found.most_processors).to_string(),
            followers,
            percent(self.by_chance()),
        ]
    }
}

fn all(m: &Measured<'_>) -> Vec<Found> {
    let runs = m.runs(KEY, MIGRATING).into_iter();
    runs.filter_map(|(_, run)| Found::of(run)).collect()
}

/// Makes the table of chains by processors, if any were noted.
pub(super) fn table(m: &Measured<'_>) -> Option<Grid> {
    let head = [
        "processors",
        "migrations",
        "chains",
        "of one",
        "median",
        "longest",
        "fibres",
        "processors of one chain",
        "followed another",
        "by chance",
    ];
    let rows: Vec<Vec<String>> = all(m).iter().map(Found::row).collect();
    (!rows.is_empty()).then(|| Grid {
        title:
            "Chains of migrations with a fibre for each processor, over all samples; the longest \
                median, and the most fibres and processors of a chain"
                .to_owned(),
        head: head.map(str::to_owned).into(),
        rows,
    })
}

/// How much more often than by chance a migration has to follow another one, to be called set off by
/// it: ten percentage points.
const MORE: f64 = 0.1;

/// Returns the share of migrations that followed another one, beside that by chance.
pub(super) fn here(m: &Measured<'_>) -> Option<String> {
    let found = all(m).pop()?;
    Some(match found.followers() {
        None => "no fibre migrated".to_owned(),
        Some(followers) => format!(
            "{} of the migrations follow another one; by chance {} would",
            percent(followers),
            percent(found.by_chance())
        ),
    })
}

/// Says whether a migration sets off others, at the most processors.
pub(super) fn words(m: &Measured<'_>) -> Option<String> {
    most(m, KEY)?;
    let found = all(m).pop()?;
    let p = count(found.processors as u64, "processor", "processors");
    let within = found.samples.first()?.within_us;
    let Some(followers) = found.followers() else {
        return Some(format!(
            "A fibre for each of {p}: no fibre of {} migrated, so nothing was shuffled around.",
            code(MIGRATING)
        ));
    };
    let chance = found.by_chance();
    let verdict = if followers > chance + MORE {
        "So, as the chapter says, a migration sets off others."
    } else if chance > 0.5 {
        "They are so frequent that most follow another one in any case, so this does not tell \
         whether one sets off others."
    } else {
        "So, other than the chapter says, a migration does not set off others here."
    };
    let short = match found.processors {
        2 => {
            " On 2 processors chains are short by nature: with two fibres one further migration can \
             part them again."
        }
        _ => "",
    };
    Some(format!(
        "A fibre for each of {p}: of {} of fibres of {}, {} followed another one within {within} µs, and {} \
         would by chance. The longest chain has {}, of {} on {}. {verdict}{short}",
        count(
            found.sum(|found| found.migrations),
            "migration",
            "migrations"
        ),
        code(MIGRATING),
        percent(followers),
        percent(chance),
        count(found.most(|found| found.longest), "migration", "migrations"),
        count(found.most(|found| found.most_fibres), "fibre", "fibres"),
        count(
            found.most(|found| found.most_processors),
            "processor",
            "processors"
        ),
    ))
}
