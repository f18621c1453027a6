//! `corelay reach` without an area: all areas in one run, one table, and a picture of each.

use super::ledger::{Ledger, Row};
use super::{Area, Args};
use corelay_lab_compare::COMMIT;
use corelay_lab_measure::host::Host;
use corelay_lab_measure::measure::stats::Interval;
use corelay_lab_measure::method::{Marker, Style};
use corelay_lab_measure::schema::Machine;
use corelay_lab_report::exit::Exit;
use corelay_lab_report::output;
use corelay_lab_report::plot::{Bar, BarPlot, Medium, Scale, significant};
use corelay_lab_report::words::count;
use std::fmt::Write;
use std::path::Path;
use std::time::{Duration, Instant};

/// The minutes that all areas take by default; the areas' shares add up to them.
pub(super) const MINUTES: u64 = 42;

/// The area that is measured last, and gets the time that the others leave over.
const LAST: Area = Area::ALL[Area::ALL.len() - 1];

/// Measures all areas, and writes the table and the pictures into `args.out`.
pub(super) fn run(args: &Args, host: &Host) -> Result<Exit, String> {
    let cannot = |error: std::io::Error| format!("--out: {}: {error}", args.out.display());
    std::fs::create_dir_all(&args.out).map_err(cannot)?;
    let mut worst = Exit::Fine;
    let mut refused = Vec::new();
    let end = Instant::now() + Duration::from_secs(60 * args.minutes);
    for area in Area::ALL {
        output::say(&format!("\n== {}\n", area.name()))?;
        args.ledger.begin(area.name());
        let mut time = area.share(args.minutes);
        if area == LAST {
            time = time.max(end.saturating_duration_since(Instant::now()));
        }
        let part = Args {
            limit: area.limit(time),
            ..args.clone()
        };
        match part.area(area, host) {
            Ok(Exit::Interrupted) => return Ok(Exit::Interrupted),
            Ok(Exit::Fine) => {}
            Ok(exit) => worst = exit,
            Err(why) => {
                output::say(&format!("{why}\n"))?;
                refused.push((area.name(), why));
                worst = Exit::Wrong;
            }
        }
    }
    for area in Area::ALL {
        let rows = args.ledger.rows(area.name());
        if let Some(picture) = picture(area.name(), &rows) {
            let file = args.out.join(format!("{}.svg", area.name()));
            std::fs::write(file, picture).map_err(cannot)?;
        }
    }
    let page = page(&args.ledger, &host.machine, args.minutes, &refused);
    std::fs::write(args.out.join("README.md"), page).map_err(cannot)?;
    output::say(&format!("\n{}", summary(&args.ledger)))?;
    output::say(&format!("The table is in {}\n", shown(&args.out)))?;
    Ok(worst)
}

fn shown(folder: &Path) -> String {
    folder.join("README.md").display().to_string()
}

/// How many targets of an area are met, missed and not seen.
fn counts(rows: &[Row]) -> [usize; 3] {
    let of = |met: Option<bool>| rows.iter().filter(|row| row.is_met() == met).count();
    [of(Some(true)), of(Some(false)), of(None)]
}

/// The table of all areas, for a terminal.
fn summary(ledger: &Ledger) -> String {
    let mut text = format!(
        "{:12} {:>5} {:>7} {:>9}\n",
        "area", "met", "missed", "not seen"
    );
    for area in Area::ALL {
        let [met, missed, unseen] = counts(&ledger.rows(area.name()));
        let _ = writeln!(text, "{:12} {met:>5} {missed:>7} {unseen:>9}", area.name());
    }
    text
}

/// The page: the machine, the table of all areas, and each area's targets.
fn page(ledger: &Ledger, machine: &Machine, minutes: u64, refused: &[(&str, String)]) -> String {
    let mut text = format!(
        "# What corelay reaches\n\n\
         Made by `corelay reach --minutes {minutes}` (`cargo xtask reach`) of commit `{COMMIT}`, on {}: \
         {}, {}{}, kernel {}. Each target is a bound on a ratio, or on a figure, and met \
         if the worse end of its 95 % interval meets it. *Near* and *far* are the two latencies between \
         CPUs that a machine may have; one that occurred too seldom is *not seen*.\n\n\
         | area | met | missed | not seen |\n|---|---|---|---|\n",
        machine.model,
        count(machine.cpus as u64, "CPU", "CPUs"),
        count(machine.packages as u64, "socket", "sockets"),
        machine
            .hypervisor
            .as_ref()
            .map_or(String::new(), |name| format!(" ({name})")),
        machine.kernel,
    );
    for area in Area::ALL {
        let [met, missed, unseen] = counts(&ledger.rows(area.name()));
        let name = area.name();
        let _ = writeln!(text, "| [{name}](#{name}) | {met} | {missed} | {unseen} |");
    }
    for area in Area::ALL {
        let (name, rows) = (area.name(), ledger.rows(area.name()));
        let _ = write!(text, "\n## {name}\n\n");
        for (_, why) in refused.iter().filter(|(of, _)| *of == name) {
            let _ = write!(text, "It could not be measured: {why}.\n\n");
        }
        if rows.iter().any(|row| row.value.is_some()) {
            let _ = write!(
                text,
                "![How far each target of {name} is met]({name}.svg)\n\n"
            );
        }
        if !rows.is_empty() {
            text += "| target | at | mode | bound | measured | |\n|---|---|---|---|---|---|\n";
        }
        for row in &rows {
            let _ = writeln!(
                text,
                "| {} | {} | {} | {} {} | {} | {} |",
                row.what.replace('|', "/"),
                row.at.replace('|', "/"),
                row.mode,
                row.bound,
                row.unit,
                row.value.map_or(String::new(), value),
                verdict(row)
            );
        }
    }
    text
}

fn verdict(row: &Row) -> &'static str {
    match row.is_met() {
        Some(true) => "met",
        Some(false) => "**missed**",
        None => "not seen",
    }
}

fn value(Interval { low, ratio, high }: Interval) -> String {
    let middle = significant(ratio);
    match low == high {
        true => middle,
        false => format!("{middle} [{}, {}]", significant(low), significant(high)),
    }
}

/// The least and the most that a picture shows of a value by its bound.
const SHOWN: [f64; 2] = [0.1, 100.0];

/// A picture of an area: each target's value by its bound. `None` if nothing was seen.
fn picture(area: &str, rows: &[Row]) -> Option<String> {
    let bar = |row: &Row| {
        let score = row.score()?;
        let is_met = row.is_met()?;
        let [low, value, high] = [score.low, score.ratio, score.high].map(|by| {
            if by.is_finite() {
                by.clamp(SHOWN[0], SHOWN[1])
            } else {
                SHOWN[1]
            }
        });
        let at = match row.at.is_empty() {
            true => String::new(),
            false => format!("{}: ", row.at),
        };
        Some(Bar {
            label: format!("{at}{} {}", row.what, row.mode)
                .trim_end()
                .to_owned(),
            style: match is_met {
                true => Style::of("c-green", Marker::Circle, ""),
                false => Style::of("c-rose", Marker::Cross, ""),
            },
            value,
            spread: (low, high),
            tip: format!("{}, bound {}", verdict(row).trim_matches('*'), row.bound),
        })
    };
    let bars: Vec<Bar> = rows.iter().filter_map(bar).collect();
    if bars.is_empty() {
        return None;
    }
    let ends = bars
        .iter()
        .flat_map(|bar| [bar.spread.0, bar.spread.1, 1.0]);
    let (low, high) = ends.fold((1.0_f64, 1.0_f64), |(low, high), end| {
        (low.min(end), high.max(end))
    });
    let longest = bars.iter().map(|bar| bar.label.chars().count()).max();
    let plot = BarPlot {
        id: format!("reach-{area}"),
        title: format!("{area}: how far each target is met"),
        description: "For each target the measured value by its bound, with its 95 % interval. \
                      More is better, and 1 is the bound."
            .to_owned(),
        label: "measured by bound, 1 is the bound, more is better",
        scale: Scale::Log {
            low: low / 1.25,
            high: high * 1.25,
        },
        bars,
        width: 480.0 + 9.0 * longest.unwrap_or(0) as f64,
    };
    Some(plot.svg(Medium::File))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reach::Bound;

    fn ledger() -> Ledger {
        let ledger = Ledger::default();
        ledger.begin("flat");
        ledger.at("2 threads");
        ledger.single("adaptive | best", Bound::AtLeast(0.95), 1.2, "");
        ledger.single("memory", Bound::AtMost(100.0), 400.0, "bytes");
        ledger
    }

    #[test]
    fn the_page_has_every_target_once() {
        let refused = [("store", "there is no disk".to_owned())];
        let page = page(&ledger(), &Machine::default(), 42, &refused);
        assert!(page.contains("| [flat](#flat) | 1 | 1 | 0 |"), "{page}");
        assert!(
            page.contains("| adaptive / best | 2 threads |  | >= 0.95  | 1.20 | met |"),
            "{page}"
        );
        assert!(
            page.contains("| memory | 2 threads |  | <= 100 bytes | 400 | **missed** |"),
            "{page}"
        );
        assert!(
            page.contains("It could not be measured: there is no disk."),
            "{page}"
        );
        assert_eq!(page.matches(".svg").count(), 1);
        assert!(summary(&ledger()).contains("flat             1       1         0"));
    }

    #[test]
    fn a_picture_shows_values_by_their_bounds() {
        let picture = picture("flat", &ledger().rows("flat")).unwrap();
        assert!(picture.starts_with("<svg xmlns"));
        assert!(picture.contains("c-green") && picture.contains("c-rose"));
        assert_eq!(super::picture("flat", &[]), None);
    }

    #[test]
    fn the_areas_shares_fill_the_time() {
        let seconds: u64 = Area::ALL.into_iter().map(Area::seconds).sum();
        assert!(seconds <= MINUTES * 60, "{seconds}");
        assert!(
            Area::ALL
                .into_iter()
                .all(|area| area.limit(area.share(5)) >= 1)
        );
    }
}
