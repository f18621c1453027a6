//! Structures that threads share: the best of delegation and its best rival (F4), where delegation
//! loses first (F5).

use crate::plot::{grouped, significant};
use crate::table::grid::Grid;
use crate::words;
use corelay_lab_measure::method::{Form, Kind, METHODS, named};
use corelay_lab_measure::schema::{Mode, Results, Run, Size};
use std::collections::{BTreeMap, BTreeSet};

/// Makes a table of all runs, and then tables of the best at any number of threads and at the most.
pub fn of(results: &Results) -> String {
    let grids = best(results);
    let grids: Vec<String> = grids.iter().map(Grid::to_string).collect();
    format!("{}\n{}", super::of(results), grids.join("\n"))
}

/// Makes the tables of the best: one for any number of threads, and one for the most, if there are
/// several numbers.
pub fn best(results: &Results) -> Vec<Grid> {
    // Under a load the throughput is that of the arrivals.
    let runs = || results.runs.iter().filter(|run| run.load.is_none());
    let threads: BTreeSet<usize> = runs().map(|run| run.params.threads).collect();
    let Some(&most) = threads.last() else {
        return Vec::new();
    };
    let mut asked = vec![(format!("The best with {most} threads"), most)];
    if threads.len() > 1 {
        asked.insert(0, ("The best with any number of threads".to_owned(), 0));
    }
    let grids = asked
        .into_iter()
        .map(|(title, least)| grid(title, runs().filter(|run| run.params.threads >= least)));
    grids.filter(|grid| !grid.rows.is_empty()).collect()
}

/// A number of keys and of shards, a share of updates, and a mode, whose figures are compared.
type Place = (u64, u64, u64, Mode);

/// The fastest run of a side, with its Mops.
#[derive(Clone, Copy)]
struct Fastest<'a> {
    run: &'a Run,
    mops: f64,
}

/// The fastest of delegation, and the fastest of the others.
#[derive(Clone, Copy, Default)]
struct Sides<'a> {
    delegation: Option<Fastest<'a>>,
    rival: Option<Fastest<'a>>,
}

fn grid<'a>(title: String, runs: impl Iterator<Item = &'a Run>) -> Grid {
    let mut places: BTreeMap<Place, Sides<'a>> = BTreeMap::new();
    for run in runs.filter(|run| run.correct) {
        let Some(delegates) = delegates(&run.method) else {
            continue;
        };
        let extra = &run.params.extra;
        let size = match extra.size {
            Some(Size::Keys(keys)) => keys,
            _ => continue,
        };
        for (&mode, summary) in &run.by_mode {
            let place = (size, extra.updates.unwrap_or(0), run.params.vars, mode);
            let sides = places.entry(place).or_default();
            let side = match delegates {
                true => &mut sides.delegation,
                false => &mut sides.rival,
            };
            let mops = summary.median_mops;
            if side.is_none_or(|known| mops > known.mops) {
                *side = Some(Fastest { run, mops });
            }
        }
    }
    let both = |(place, sides): (Place, Sides<'a>)| Some((place, sides.delegation?, sides.rival?));
    let mut rows: Vec<_> = places.into_iter().filter_map(both).collect();
    let ratio = |ours: &Fastest<'_>, rival: &Fastest<'_>| ours.mops / rival.mops;
    rows.sort_by(|(_, a, b), (_, c, d)| ratio(a, b).total_cmp(&ratio(c, d)));
    let row = |((size, updates, vars, mode), ours, rival): (Place, Fastest<'_>, Fastest<'_>)| {
        let mut row = vec![
            grouped(size),
            format!("{updates} %"),
            grouped(vars),
            words::mode(mode).to_owned(),
        ];
        for Fastest { run, mops } in [ours, rival] {
            let threads = run.params.threads.to_string();
            row.extend([run.method.clone(), significant(mops), threads]);
        }
        row.push(words::times(ratio(&ours, &rival)));
        row
    };
    Grid {
        title: format!(
            "{title} (medians): delegation with answers, and what is fastest without it; where \
             delegation loses most stands first"
        ),
        head: [
            "size",
            "updates",
            "shards",
            "mode",
            "delegation",
            "Mops",
            "threads",
            "rival",
            "Mops",
            "threads",
            "delegation ÷ rival",
        ]
        .map(str::to_owned)
        .into(),
        rows: rows.into_iter().map(row).collect(),
    }
}

/// Whether a method delegates; `None` if it has no rival: it gives no answers, or shares nothing.
fn delegates(method: &str) -> Option<bool> {
    let Some(Ok(known)) = named(&METHODS, method) else {
        // A structure that threads use directly.
        return Some(false);
    };
    let entry = METHODS.iter().find(|entry| entry.name() == known.name());
    let has_answers = entry.is_none_or(|entry| entry.form != Form::OneWay);
    let is_compared = has_answers && known.kind() != Kind::Alone;
    is_compared.then_some(matches!(known.kind(), Kind::Dedicated | Kind::Flat))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::synthetic::Recipe;
    use corelay_lab_measure::schema::Extra;

    /// Runs of a list and of its rival, which beats delegation with many threads only.
    fn list() -> Results {
        let mops = |method: &str| match method {
            "lazy-list" => (60.0, 60.0),
            "trust-then" => (40.0, 40.0),
            "trust-post" | "alone" => (999.0, 999.0),
            "mutex" => (20.0, 20.0),
            _ => (1.0, 1.0),
        };
        let mut results = Recipe {
            threads: vec![2, 4],
            vars: vec![1],
            modes: vec![Mode::Near],
            methods: vec![
                "mutex",
                "lazy-list",
                "trust-then",
                "trust-post",
                "alone",
                "ffwd",
            ],
            mops,
            noise: 0.0,
            ..Recipe::default()
        }
        .make();
        results
            .runs
            .retain(|run| run.method != "lazy-list" || run.params.threads == 4);
        let more = |updates| {
            let mut runs = results.runs.clone();
            for run in &mut runs {
                run.params.extra = Extra {
                    size: Some(Size::Keys(1024)),
                    updates: Some(updates),
                    ..Extra::default()
                };
            }
            runs
        };
        let (mut few, many) = (more(5), more(100));
        few.extend(many.into_iter().filter(|run| run.method != "lazy-list"));
        Results {
            runs: few,
            ..results
        }
    }

    #[test]
    fn losing_places_stand_first_and_methods_without_answers_are_left_out() {
        let grids = best(&list());
        assert_eq!(grids.len(), 2);
        assert!(grids[0].title.contains("any number of threads"));
        assert!(grids[1].title.contains("with 4 threads"));
        for grid in &grids {
            let rows: Vec<Vec<&str>> = grid
                .rows
                .iter()
                .map(|row| row.iter().map(String::as_str).collect())
                .collect();
            let [loses, wins] = &*rows else {
                panic!("{grid}");
            };
            assert_eq!(loses[..5], ["1,024", "5 %", "1", "near", "trust-then"]);
            assert_eq!(loses[7], "lazy-list");
            assert_eq!(loses[10], "0.67\u{a0}×");
            assert_eq!(
                (wins[1], wins[4], wins[7]),
                ("100 %", "trust-then", "mutex")
            );
            assert_eq!(wins[10], "2.0\u{a0}×");
        }
    }

    #[test]
    fn runs_under_a_load_are_left_out() {
        let mut results = list();
        for run in &mut results.runs {
            run.load = Some(Default::default());
        }
        assert_eq!(best(&results), []);
    }

    #[test]
    fn methods_with_parameters_are_known() {
        assert_eq!(delegates("async-lines:4x8"), Some(true));
        assert_eq!(delegates("flat-queue"), Some(true));
        assert_eq!(delegates("trust-post"), None);
        for rival in ["tokio", "mutex", "cc-synch", "two-lock"] {
            assert_eq!(delegates(rival), Some(false));
        }
    }
}
