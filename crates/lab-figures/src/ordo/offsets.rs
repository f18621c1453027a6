//! Upper bounds of the offset between the clocks of two CPUs, for every ordered pair (O1). The
//! boundary is the largest of them.

use super::units;
use crate::declare::{Drawn, Figure, Printed, Source};
use corelay_clock::Fitness;
use corelay_lab_report::figure::measured::Measured;
use corelay_lab_report::figure::offsets::{Offsets, Pair};
use corelay_lab_report::plot::significant;
use corelay_lab_report::table::grid::Grid;
use corelay_lab_report::words::{count, times};

pub(crate) const FIGURE: Figure = Figure {
    name: "offsets",
    title: "How far apart are the clocks of two CPUs?",
    source: Source::Ordo("Offset between clocks"),
    least: 2,
    whole: 4,
    fewer: "a second socket is missing, to which offsets are largest.",
    offsets: true,
    unavailable,
    printed: &[
        Printed {
            what: "smallest and largest offset of a pair, ns",
            there: "Xeon 70 and 276, Xeon Phi 90 and 270, ARM 100 and 1,100, AMD 93 and 203",
            here: |m| {
                let (least, most) = ends(offsets(m)?)?;
                let [low, high] = [least.least, most.least];
                let units = units::of(m).beside(high);
                Some(format!("{} and {}{units}", ns(low), ns(high)))
            },
            drawn: Drawn::Nowhere,
        },
        Printed {
            what: "ORDO_BOUNDARY, ns",
            there: "the largest offset: Xeon 276, Xeon Phi 270, ARM 1,100, AMD 203",
            here: |m| {
                let (low, high) = boundaries(offsets(m)?)?;
                let units = units::of(m).beside(high);
                Some(match ns(low) == ns(high) {
                    true => format!("{}, with a margin{units}", ns(low)),
                    false => format!(
                        "{} to {} by sample, with a margin{units}",
                        ns(low),
                        ns(high)
                    ),
                })
            },
            drawn: Drawn::Nowhere,
        },
        Printed {
            what: "the same again",
            there: "consistent, even after reboots and after a period of time",
            here: |m| {
                let pairs = offsets(m)?.pairs();
                let by = pairs.iter().filter(|pair| pair.least > 0.0);
                let by = by.map(|pair| pair.most / pair.least);
                let most = by.max_by(f64::total_cmp)?;
                Some(format!(
                    "a pair's largest sample is up to {} its smallest",
                    times(most)
                ))
            },
            drawn: Drawn::Nowhere,
        },
    ],
    tables,
    words,
    ..Figure::PLAIN
};

fn unavailable() -> Option<String> {
    let fitness = Fitness::probe();
    fitness.verdict().err().map(|unfit| unfit.to_string())
}

fn offsets<'a>(m: &Measured<'a>) -> Option<&'a Offsets> {
    m.outcome().figure.offsets.as_ref()
}

fn ns(value: f64) -> String {
    significant(value)
}

/// Returns the pairs with the smallest and the largest offset.
fn ends(offsets: &Offsets) -> Option<(Pair, Pair)> {
    let pairs = offsets.pairs();
    let by = |a: &&Pair, b: &&Pair| a.least.total_cmp(&b.least);
    Some((*pairs.iter().min_by(by)?, *pairs.iter().max_by(by)?))
}

/// Returns the smallest and the largest boundary among the samples.
fn boundaries(offsets: &Offsets) -> Option<(f64, f64)> {
    let all = || offsets.samples.iter().map(|sample| sample.boundary_ns);
    Some((all().min_by(f64::total_cmp)?, all().max_by(f64::total_cmp)?))
}

/// The most rows of a table of pairs.
const MAX_ROWS: usize = 24;

/// Makes the table of pairs; if there are too many, of those with the largest offsets.
fn tables(m: &Measured<'_>) -> Vec<Grid> {
    let Some(offsets) = offsets(m) else {
        return Vec::new();
    };
    let mut pairs = offsets.pairs();
    let all = pairs.len();
    let mut title = format!(
        "Offsets over {}, in ns: how far the second CPU's counter may be ahead of the first one's",
        count(offsets.samples.len() as u64, "sample", "samples")
    );
    if all > MAX_ROWS {
        pairs.sort_by(|a, b| b.least.total_cmp(&a.least));
        pairs.truncate(MAX_ROWS);
        title += &format!(" (the {MAX_ROWS} largest of {all})");
    }
    let units = units::of(m);
    let (has_ticks, has_cycles) = (units.ticks_per_ns.is_some(), units.core_ghz.is_some());
    let mut head = ["CPUs", "smallest", "median", "largest"]
        .map(str::to_owned)
        .to_vec();
    head.extend(has_ticks.then(|| "smallest, in ticks".to_owned()));
    head.extend(has_cycles.then(|| format!("in {}", units.cycles_head())));
    let row = |pair: &Pair| {
        let Pair { from, to, .. } = pair;
        let ns = [pair.least, pair.median, pair.most].map(ns);
        std::iter::once(format!("{from} → {to}"))
            .chain(ns)
            .chain(units.ticks(pair.least))
            .chain(units.cycles(pair.least))
            .collect()
    };
    vec![Grid {
        title,
        head,
        rows: pairs.iter().map(row).collect(),
    }]
}

fn words(m: &Measured<'_>) -> Vec<String> {
    let Some(offsets) = offsets(m) else {
        return Vec::new();
    };
    [largest(m, offsets), directions(offsets), units::meaning(m)]
        .into_iter()
        .flatten()
        .collect()
}

fn largest(m: &Measured<'_>, offsets: &Offsets) -> Option<String> {
    let (_, most) = ends(offsets)?;
    Some(format!(
        "Of all {} the largest is from CPU {} to CPU {}, {} ns{}. Each is the sum of the \
         counters' offset and the travel time of a cache line, so it exceeds the offset.",
        count(
            offsets.pairs().len() as u64,
            "ordered pair",
            "ordered pairs"
        ),
        most.from,
        most.to,
        ns(most.least),
        units::of(m).beside(most.least)
    ))
}

/// Compares the two directions of a pair, which tells about the counters themselves: the offset
/// adds to one direction and subtracts from the other.
fn directions(offsets: &Offsets) -> Option<String> {
    let pairs = offsets.asymmetry_ns().into_iter();
    let (one, other, apart) = pairs.max_by(|a, b| a.2.total_cmp(&b.2))?;
    let step = offsets.samples.first()?.step_ns;
    let mut said = format!(
        "Within a sample the two directions differ most between CPU {one} and CPU {other}, by {} ns in \
         the median. If a cache line took as long both ways, the counter of CPU {other} \
         would be half of that ahead",
        ns(apart)
    );
    if apart / 2.0 <= step {
        said += &format!(
            ", which is not more than the {} ns of one of its steps",
            ns(step)
        );
    }
    Some(said + ".")
}
