//! The mark of an answer, and the reasons for it.

use super::fault::Fault;
use super::run::Checked;
use super::scaling::Measured;
use corelay_lab_report::plot::{grouped, significant};
use corelay_lab_report::words::times;
use serde::Serialize;

/// Points for a table in which the check found no fault.
pub(crate) const NO_FAULT_POINTS: u32 = 3;
/// Further points for a table that also scales as the reference does.
pub(crate) const SCALING_POINTS: u32 = 7;
/// Part of the way from the start's throughput to the reference's that earns all points for
/// scaling.
const ALL_POINTS_AT: f64 = 0.8;
/// Least ratio of the reference to the start. Below it, throughput cannot tell answers apart.
const MIN_REFERENCE_GAIN: f64 = 1.2;

/// The rule by which points are given, in sentences.
pub const RUBRIC: &str = "\
A table in which a fault is found gets 0 points, whatever its speed: if it does not build, hangs, \
panics or answers wrongly. A table in which no fault is found gets 3 of 10; that does not prove \
that it has none. The other 7 are for its throughput on as many threads as there are \
CPUs: none at the start's throughput, all from 80 % of the way from there to the reference's, and \
in proportion between. If scaling cannot be measured (one CPU, or CPUs that other programs use), \
the mark is out of 3.";

/// The mark of an answer: points, and the reasons for them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Mark {
    /// Points that the answer gets.
    pub(crate) points: u32,
    /// The most points possible.
    pub(crate) of: u32,
    /// A sentence for each part of the mark.
    pub(crate) reasons: Vec<String>,
}

/// The measured scaling of an answer, or the reason that there is none.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Scaling<'a> {
    /// Scaling was not measured, because `--no-measure` was given.
    NotAsked,
    /// Scaling cannot be measured, because there is only one CPU.
    OneCpu,
    /// The figures. The answer is `yours`.
    Measured(&'a Measured),
}

/// Marks an answer by its check and its scaling.
pub(crate) fn mark(checked: &Result<Checked, Fault>, scaling: Scaling<'_>) -> Mark {
    let checked = match checked {
        Ok(checked) => checked,
        Err(fault) => {
            return Mark {
                points: 0,
                of: NO_FAULT_POINTS + SCALING_POINTS,
                reasons: vec![format!(
                    "0 of {}: {fault}",
                    NO_FAULT_POINTS + SCALING_POINTS
                )],
            };
        }
    };
    let found = format!(
        "{NO_FAULT_POINTS} of {NO_FAULT_POINTS}: no fault was found. {}",
        looked_for(checked)
    );
    match scaled(scaling) {
        Ok((points, why)) => Mark {
            points: NO_FAULT_POINTS + points,
            of: NO_FAULT_POINTS + SCALING_POINTS,
            reasons: vec![found, format!("{points} of {SCALING_POINTS}: {why}")],
        },
        Err(why) => Mark {
            points: NO_FAULT_POINTS,
            of: NO_FAULT_POINTS,
            reasons: vec![found, format!("Scaling has no points: {why}")],
        },
    }
}

/// Says what a check has looked for.
fn looked_for(checked: &Checked) -> String {
    let how = match checked.is_plain {
        false => "took turns at its lock operations",
        true => {
            "took turns at its calls (not at its lock operations: it builds with the real `std` \
             alone, so rare faults are seldom found)"
        }
    };
    format!(
        "The check looked for keys that are there twice, lost or left over, and for wrong answers \
         and counts; it looked up keys that were just inserted or removed, {} times, while other \
         threads wrote; and it looked for an order that explains the answers in {} rounds ({} \
         calls) of threads that {how}, and in {} rounds ({} calls) of threads that ran at the same \
         time.",
        grouped(checked.lookups as u64),
        grouped(checked.turn_rounds as u64),
        grouped(checked.turn_calls as u64),
        grouped(checked.rounds as u64),
        grouped(checked.calls as u64),
    )
}

/// Returns the points for scaling and the reason, or the reason that there are none.
fn scaled(scaling: Scaling<'_>) -> Result<(u32, String), String> {
    let measured = match scaling {
        Scaling::NotAsked => return Err("it was not measured (--no-measure).".to_owned()),
        Scaling::OneCpu => return Err("it is unavailable on one CPU.".to_owned()),
        Scaling::Measured(measured) => measured,
    };
    if measured.is_busy() {
        return Err(format!(
            "other programs had the CPUs in {} of {} blocks; try again when the machine is idle.",
            measured.blocks - measured.free,
            measured.blocks
        ));
    }
    let threads = measured.threads();
    let of = |who| measured.of(who, threads).unwrap_or(0.0);
    let (yours, start, reference) = (of("yours"), of("start"), of("reference"));
    if start <= 0.0 || reference < MIN_REFERENCE_GAIN * start {
        return Err(format!(
            "on {threads} threads the reference itself is only {} as fast as the start here, \
             which tells no answers apart.",
            times(reference / start)
        ));
    }
    let way = ((yours - start) / (reference - start)).max(0.0);
    let points = (f64::from(SCALING_POINTS) * (way / ALL_POINTS_AT).min(1.0)).round();
    let place = match way {
        0.0 => "no faster than the start".to_owned(),
        way if way >= 1.0 => "as fast as the reference, or faster".to_owned(),
        way => format!(
            "{:.0} % of the way from the start to the reference",
            way * 100.0
        ),
    };
    let why = format!(
        "on {threads} threads it does {} Mops, the start {}, the reference {}: {place}.",
        significant(yours),
        significant(start),
        significant(reference)
    );
    Ok((points as u32, why))
}

#[cfg(test)]
mod tests {
    use super::super::fault::Kind;
    use super::super::scaling::Median;
    use super::*;

    const NO_FAULT: Result<Checked, Fault> = Ok(Checked {
        rounds: 1,
        calls: 24_000,
        turn_rounds: 2_000,
        turn_calls: 30_000,
        lookups: 5_000,
        is_plain: false,
    });

    /// Returns medians on two threads.
    fn measured(yours: f64, start: f64, reference: f64) -> Measured {
        let median = |(who, mops): (&str, f64)| Median {
            who: who.to_owned(),
            threads: 2,
            mops,
        };
        let all = [("yours", yours), ("start", start), ("reference", reference)];
        Measured {
            medians: all.map(median).into(),
            blocks: 15,
            free: 15,
            ..Measured::default()
        }
    }

    #[test]
    fn speed_counts_between_the_start_and_the_reference() {
        for (yours, points) in [
            (1.0, 3),
            (5.0, 3),
            (5.1, 3),
            (7.0, 5),
            (9.0, 7),
            (11.0, 8),
            (13.0, 10),
            (15.0, 10),
            (40.0, 10),
        ] {
            let measured = measured(yours, 5.0, 15.0);
            let mark = mark(&NO_FAULT, Scaling::Measured(&measured));
            assert_eq!((mark.points, mark.of), (points, 10), "{yours}: {mark:?}");
            assert!(mark.reasons[0].contains("no fault was found"));
            assert!(mark.reasons[1].contains("on 2 threads"), "{mark:?}");
        }
    }

    #[test]
    fn what_was_looked_for_is_said() {
        let mark = mark(&NO_FAULT, Scaling::NotAsked);
        for words in [
            "30,000 calls",
            "24,000 calls",
            "5,000 times",
            "at its lock operations, and",
        ] {
            assert!(mark.reasons[0].contains(words), "{mark:?}");
        }
        let plain = NO_FAULT.map(|checked| Checked {
            is_plain: true,
            ..checked
        });
        let said = &super::mark(&plain, Scaling::NotAsked).reasons[0];
        assert!(said.contains("not at its lock operations"), "{said}");
        assert!(!said.contains("right") && !said.contains("correct"));
    }

    #[test]
    fn a_wrong_table_gets_no_points_whatever_its_speed() {
        let fault = Fault {
            kind: Kind::Duplicates,
            stage: None,
            what: "key 7 is twice in keys()".to_owned(),
            listing: None,
        };
        let measured = measured(40.0, 5.0, 15.0);
        let mark = mark(&Err(fault), Scaling::Measured(&measured));
        assert_eq!((mark.points, mark.of), (0, 10));
        assert!(mark.reasons[0].contains("key 7"), "{mark:?}");
    }

    #[test]
    fn without_scaling_figures_the_mark_is_of_three() {
        let mut busy = measured(10.0, 5.0, 15.0);
        busy.free = 2;
        let flat = measured(5.5, 5.0, 5.5);
        for (scaling, word) in [
            (Scaling::NotAsked, "--no-measure"),
            (Scaling::OneCpu, "unavailable on one CPU"),
            (Scaling::Measured(&busy), "13 of 15 blocks"),
            (Scaling::Measured(&flat), "1.10\u{a0}×"),
        ] {
            let mark = mark(&NO_FAULT, scaling);
            assert_eq!((mark.points, mark.of), (3, 3));
            assert!(mark.reasons[1].contains(word), "{mark:?}");
        }
    }

    /// The README that `--init` writes has the same text, word for word.
    #[test]
    fn the_readme_has_the_rubric_word_for_word() {
        let readme = include_str!("start/README.md");
        let words = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(words(readme).contains(&words(RUBRIC)));
        for number in [
            NO_FAULT_POINTS.to_string(),
            SCALING_POINTS.to_string(),
            "80 %".to_owned(),
        ] {
            assert!(RUBRIC.contains(&number));
        }
        assert!((ALL_POINTS_AT - 0.8).abs() < 1e-9);
    }
}
