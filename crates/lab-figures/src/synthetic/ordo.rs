//! Tests of the sentences of the figures after the slides on Ordo.

use super::*;

#[test]
fn offsets_stand_beside_the_sources() {
    use corelay_lab_report::figure::offsets::{Offsets, Sample};
    let (figure, size) = (&crate::ordo::offsets::FIGURE, Size::test(3));
    let told = |cpus: Vec<usize>, ns: fn(usize, usize, f64) -> f64| {
        let sample = |more: f64| {
            let cell = |i: usize, j: usize| (i != j).then(|| ns(i, j, more));
            let n = cpus.len();
            Sample {
                offsets_ns: (0..n)
                    .map(|i| (0..n).map(|j| cell(i, j)).collect())
                    .collect(),
                step_ns: 10.0,
                boundary_ns: 200.0 + more,
                ticks_per_ns: Some(2.0),
                took_s: 0.1,
            }
        };
        let offsets = Offsets {
            samples: [20.0, 0.0, 50.0].map(sample).into(),
            cpus,
            rounds: 1_000,
        };
        let results = Results {
            schema: SCHEMA,
            machine: Machine {
                core_ghz: Some(3.0),
                ..Machine::default()
            },
            commit: "c".to_owned(),
            command: "x".to_owned(),
            runs: Vec::new(),
        };
        let panels = (figure.panels)(&size);
        let none = Vec::new();
        crate::measure::annotated(figure, &panels, Pace::SHORT, none, results, Some(offsets))
    };
    // The counter of CPU 7 is 40 ns ahead; a cache line takes 100 ns.
    let outcome = told(vec![0, 1, 7], |i, j, more| {
        let ahead = |k: usize| if k == 2 { 40.0 } else { 0.0 };
        100.0 + ahead(j) - ahead(i) + more
    });
    let text = said(&outcome);
    for words in [
        "offset of a pair, ns: 60.0 and 140",
        "ORDO_BOUNDARY, ns: 200 to 250 by sample, with a margin (500 ticks of the counter, about 750 \
         cycles of a core at 3.00 GHz)",
        "Ticks are what the clocks count, and exact.",
        "up to 1.8 × its smallest",
        "Of all 6 ordered pairs the largest is from CPU 1 to CPU 7, 140 ns (280 ticks",
        "between CPU 1 and CPU 7, by 80.0 ns in",
        "ahead.",
    ] {
        assert!(text.contains(words), "`{words}` is missing in: {text}");
    }
    let [table] = &*outcome.figure.tables else {
        panic!("one table")
    };
    assert_eq!(
        table.head[4..],
        ["smallest, in ticks", "in cycles at 3.00 GHz"]
    );
    assert_eq!(table.rows[1], ["0 → 7", "140", "160", "190", "280", "420"]);
    let page = corelay_lab_report::figure::page::html(&outcome);
    assert_eq!(page.matches("class=\"cell\"").count(), 6);
    assert!(corelay_lab_report::figure::page::text(&outcome).contains("Xeon 70 and 276"));
    let index = corelay_lab_report::figure::page::index(&[outcome]);
    assert!(index.contains("class=\"cell\"") && !index.contains("Nothing was measured"));

    // With many pairs the table has the largest; a difference within a step is named as such.
    let outcome = told((0..20).collect(), |i, j, more| {
        50.0 + (i * 20 + j) as f64 / 400.0 + more
    });
    let table = &outcome.figure.tables[0];
    assert!(table.title.contains("the 24 largest of 380"), "{table}");
    assert_eq!(table.rows[0][0], "19 → 18");
    assert!(said(&outcome).contains("of one of its steps."));
}

/// The figure `rlu` on two threads, with the ticks of copying, locking, ordering and waiting out of
/// 1,000 on Ordo, and twice the ordering on one clock. A timed operation takes 100 ns more.
fn rlu_with_parts(ordo: [u64; 4]) -> Outcome {
    let figure = &crate::ordo::rlu::FIGURE;
    let mops = |line: &str, threads: f64| match line.ends_with("-timed") {
        true => threads / 0.3,
        false => threads / 0.2,
    };
    let mut outcome = outcome(figure, 2, mops);
    for run in &mut outcome.results.runs {
        if run.method.ends_with("-timed") {
            let [copying, locking, ordering, waiting] = ordo;
            let of_one_clock = 1 + u64::from(run.method == "rlu-logical-timed");
            let parts = TimeOfParts {
                copying,
                locking,
                ordering: ordering * of_one_clock,
                waiting,
                whole: 1_000,
            };
            run.samples[0].counts = Some(ConflictCounts {
                parts,
                ..ConflictCounts::default()
            });
        }
    }
    let (panels, results) = ((figure.panels)(&Size::test(2)), outcome.results);
    annotated(figure, &panels, Pace::SHORT, Vec::new(), results, None)
}

#[test]
fn the_largest_part_of_read_log_update_is_named() {
    let outcome = rlu_with_parts([200, 100, 50, 20]);
    let told = said(&outcome);
    for words in [
        "on 2 threads: on Ordo copying takes 20 %, locking takes 10 %, ordering takes 5.0 %, waiting \
         takes 2.0 % and the rest takes 63 %; on one clock copying",
        "As on the slides, copying and locking come before the two others; copying is the larger.",
        "takes 30.0 ns an operation on one clock and 15.0 on Ordo.",
        "an operation of `rlu-ordo` 1.5 × as long.",
    ] {
        assert!(told.contains(words), "`{words}` is missing in: {told}");
    }
    let [stack] = &*outcome.figure.stacks else {
        panic!("one stack")
    };
    let names: Vec<&str> = stack.bars.iter().map(|(name, _)| &**name).collect();
    let expected = [
        "rlu-logical, 2 %",
        "rlu-ordo, 2 %",
        "rlu-logical, 40 %",
        "rlu-ordo, 40 %",
    ];
    assert_eq!(names, expected);
    let ordo: Vec<f64> = stack.bars[1].1.iter().map(|ns| ns.round()).collect();
    assert_eq!(ordo, [60.0, 30.0, 15.0, 6.0, 189.0]);
    let page = corelay_lab_report::figure::page::html(&outcome);
    assert!(page.contains("rlu-ordo, 40 %: copying 60.0"));
    assert!(
        corelay_lab_report::figure::page::text(&outcome).contains("ns of a thread per operation")
    );

    // The opposite: little is copied, and readers or the clock take the time.
    let told = said(&rlu_with_parts([20, 30, 50, 400]));
    assert!(
        told.contains("Other than on the slides, waiting for readers takes more"),
        "{told}"
    );
    let told = said(&rlu_with_parts([20, 30, 300, 40]));
    assert!(
        told.contains("Other than on the slides, being ordered takes more"),
        "{told}"
    );
    let told = said(&rlu_with_parts([20, 90, 30, 40]));
    assert!(told.contains("locking is the larger"), "{told}");
    // Without times nothing is said of parts.
    let none = rlu_with_parts([0; 4]);
    assert!(none.figure.stacks.iter().all(|stack| stack.bars.len() == 4));
    let plain = said(&self::outcome(&crate::ordo::rlu::FIGURE, 2, |_, n| n));
    assert!(!plain.contains("copying"), "{plain}");
}

#[test]
fn a_certain_stamp_stands_beside_a_compared_one() {
    let told = |certain: f64| {
        let mops = |line: &str, threads: f64| match line {
            "ordo-now" => threads * 100.0,
            "ordo-cmp" => threads * 50.0,
            "ordo-after-other" => threads * 1e3 / certain,
            _ => threads,
        };
        let figure = &crate::ordo::timestamping::FIGURE;
        let mut outcome = outcome(figure, 2, mops);
        for run in &mut outcome.results.runs {
            run.samples[0].per_thread = vec![1_000];
            run.samples[0].counts = Some(ConflictCounts {
                uncertain: 900 * u64::from(run.method == "ordo-cmp"),
                ..ConflictCounts::default()
            });
        }
        let (panels, results) = ((figure.panels)(&Size::test(2)), outcome.results);
        let none = Vec::new();
        said(&annotated(
            figure,
            &panels,
            Pace::SHORT,
            none,
            results,
            None,
        ))
    };
    let text = told(120.0);
    for words in [
        "(`ordo-after-other`) takes a thread 120 ns, 12 × the 10.0 ns of the mere draw (`ordo-now`)",
        "(`ordo-cmp`): 20.0 ns, and the clock left the order open in 90 % of",
        "So it pays to compare",
    ] {
        assert!(text.contains(words), "`{words}` is missing in: {text}");
    }
    assert!(told(15.0).contains("So here nothing is saved by comparing instead."));
}

#[test]
fn pages_say_which_class_a_structure_is_of() {
    let told = |figure: &Figure| said(&outcome(figure, 2, |_, n| n));
    let physical_to_logical = "physical to logical timestamping";
    assert!(told(&crate::ordo::rlu::FIGURE).contains(physical_to_logical));
    assert!(told(&crate::ordo::database::FIGURE).contains(physical_to_logical));
    assert!(told(&crate::ordo::boundary::FIGURE).contains(physical_to_logical));
    let oplog = told(&crate::ordo::oplog::FIGURE);
    assert!(oplog.contains("physical timestamping") && !oplog.contains(physical_to_logical));
}

/// Gives each run with a boundary its ticks, at two in a nanosecond.
fn with_ticks(mut outcome: Outcome, figure: &Figure, cpus: usize, ghz: Option<f64>) -> Outcome {
    for run in &mut outcome.results.runs {
        let scale = match figure.name {
            "boundary" => run.params.extra.x.unwrap(),
            _ => 1.0,
        };
        run.params.extra.boundary_ns = Some(200.0 * scale);
        run.params.extra.boundary_ticks = Some((400.0 * scale) as u64);
    }
    outcome.results.machine.core_ghz = ghz;
    let (panels, results) = ((figure.panels)(&Size::test(cpus)), outcome.results);
    annotated(figure, &panels, Pace::SHORT, Vec::new(), results, None)
}

#[test]
fn ticks_stand_beside_nanoseconds_and_cycles_where_they_are_known() {
    let figure = &crate::ordo::boundary::FIGURE;
    let told = |ghz| said(&with_ticks(outcome(figure, 2, |_, _| 1.0), figure, 2, ghz));
    let both = told(Some(3.0));
    for words in [
        "is 200 ns (400 ticks of the counter, about 600 cycles of a core at 3.00 GHz).",
        "in cycles: 50.0 to 3,200 ticks of the counter, 75.0 to 4,800 cycles at 3.00 GHz",
    ] {
        assert!(both.contains(words), "`{words}` is missing in: {both}");
    }
    let ticks = told(None);
    assert!(
        ticks.contains("is 200 ns (400 ticks of the counter)."),
        "{ticks}"
    );
    assert!(ticks.contains("3,200 ticks of the counter\n"), "{ticks}");

    let figure = &crate::ordo::timestamping::FIGURE;
    let drawn = outcome(figure, 2, |_, threads| 100.0 * threads);
    let [table] = &*with_ticks(drawn, figure, 2, Some(3.0))
        .figure
        .tables
        .clone()
    else {
        panic!("one table")
    };
    assert_eq!(
        table.head[1..],
        ["ns", "ticks of the counter", "cycles at 3.00 GHz"]
    );
    let row = table
        .rows
        .iter()
        .find(|row| row[0] == "ordo-after-other")
        .unwrap();
    assert_eq!(row[1..], ["10.0", "20.0", "30.0"]);
    assert_eq!(table.rows.len(), 10, "each method once: {table}");
}
