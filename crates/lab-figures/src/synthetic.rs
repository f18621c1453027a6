//! Tests of the figures' sentences, on made-up data.

use super::declare::{Figure, Work};
use super::measure::{Pace, annotated};
use super::size::Size;
use corelay_lab_measure::schema::fibres::{FibreResult, MigrationChains};
use corelay_lab_measure::schema::{
    ClientCounts, ConflictCounts, Machine, Mode, ModeSummary, Params, Results, Run, SCHEMA, Sample,
    TimeOfParts, Trustee,
};
use corelay_lab_report::figure::outcome::{Outcome, place};

/// Makes the outcome of `figure` on so many CPUs, in mode near. `mops` is the throughput of a
/// line at x.
pub(super) fn outcome(figure: &Figure, cpus: usize, mops: impl Fn(&str, f64) -> f64) -> Outcome {
    let size = Size::test(cpus);
    let panels = (figure.panels)(&size);
    let mut runs = Vec::new();
    for panel in &panels {
        for line in &panel.lines {
            for cell in &line.cells {
                let mut run = run(mops(&line.label, cell.x));
                match &cell.work {
                    Work::Sharing(item) => {
                        run.params.threads = item.point.threads;
                        run.params.servers = item.point.servers;
                    }
                    Work::Fibres(item) => {
                        run.method = item.method.name().to_owned();
                        run.params.threads = item.spec.processors;
                    }
                    Work::Ordered(entrant) => {
                        run.method = entrant.method.name().to_owned();
                        run.params.threads = entrant.point.threads;
                    }
                    Work::Structure(of) => {
                        let (point, method, _) = of.point();
                        run.method = method.to_owned();
                        run.params.threads = point.threads;
                        run.params.extra = of.extra();
                        let mops = run.median_mops;
                        let summary = ModeSummary {
                            median_mops: mops,
                            n: 1,
                            q1_mops: mops,
                            q3_mops: mops,
                            latency_ns: None,
                            limit: None,
                        };
                        run.by_mode.insert(Mode::Near, summary);
                    }
                }
                place(&mut run, panel.key, &line.label, cell.x);
                runs.push(run);
            }
        }
    }
    let results = Results {
        schema: SCHEMA,
        machine: Machine {
            cpus,
            ..Machine::default()
        },
        commit: "c".to_owned(),
        command: "x".to_owned(),
        runs,
    };
    annotated(figure, &panels, Pace::SHORT, Vec::new(), results, None)
}

fn run(mops: f64) -> Run {
    Run {
        workload: "fetch-add".to_owned(),
        method: "m".to_owned(),
        params: Params::default(),
        correct: true,
        median_mops: mops,
        harmonic_mean_mops: mops,
        by_mode: Default::default(),
        samples: vec![Sample {
            mops,
            mode: Mode::Near,
            rtt_ns: Some(100.0),
            per_thread: vec![1],
            cpu_s: 0.0,
            latency_ns: None,
            arrivals: None,
            fibres: None,
            counts: None,
            picture: None,
        }],
        trustees: vec![Trustee {
            requests: 80,
            passes: 20,
            passes_with_work: 10,
            asked: Some(ClientCounts {
                polls: 4,
                ready: 1,
                pops: 10,
                failed_pops: 1,
                timed: 2,
                latency_ns: 1000,
                ..ClientCounts::default()
            }),
            ..Trustee::default()
        }],
        latency_ns: None,
        load: None,
        loads: None,
        not_installed: None,
        notes: Vec::new(),
    }
}

/// Returns the values measured beside the source's, and a figure's sentences, as one text.
pub(super) fn said(outcome: &Outcome) -> String {
    let beside = outcome.figure.beside.iter();
    let here = beside.map(|b| format!("{}: {}", b.what, b.here.as_deref().unwrap_or("?")));
    let said = outcome.figure.said.iter().cloned();
    let text: Vec<String> = here.chain(said).collect();
    text.join("\n").replace('\u{a0}', " ")
}

#[test]
fn the_knee_of_a_line_is_found() {
    let knee_at_16 = |_: &str, n: f64| if n <= 16.0 { n } else { 14.0 };
    let told = said(&outcome(&super::request_lines::FIGURE, 56, knee_at_16));
    assert!(told.contains("naming: 16\n"), "{told}");
    assert!(told.contains("64 have 0.88 × of what 16 have"), "{told}");
    assert!(!told.contains("The source's 16 is for"), "{told}");
    let told = said(&outcome(&super::request_lines::FIGURE, 2, |_, n| {
        n.min(4.0)
    }));
    assert!(
        told.contains("naming: 4\n") && told.contains("with 1 client and 1 server"),
        "{told}"
    );
}

#[test]
fn the_fall_beyond_the_peak_is_explained_only_if_there_is_one() {
    let falls = |_: &str, n: f64| if n <= 16.0 { n } else { 8.0 };
    let told = said(&outcome(&super::request_lines::FIGURE, 56, falls));
    assert!(
        told.contains(
            "From 16 to 64 lines throughput falls to 0.50 ×. Meanwhile grow: the lines that"
        ),
        "{told}"
    );
    assert!(
        !told.contains("latency of a request in ns from"),
        "it is the same: {told}"
    );
    let told = said(&outcome(&super::request_lines::FIGURE, 56, |_, n| n));
    assert!(told.contains("there is no fall to explain"), "{told}");
    // 500 ns at 64 Mops by 40 clients.
    assert!(
        told.contains("outstanding at a client: 0.800 on average with 64 lines"),
        "{told}"
    );
}

#[test]
fn hyperthreads_are_judged_both_ways() {
    let told = |one: f64| {
        said(&outcome(&super::hyperthreads::FIGURE, 8, |line, _| {
            if line == "one core" { one } else { 10.0 }
        }))
    };
    assert!(
        told(20.0).contains("20.0 Mops on one core and 10.0 on two"),
        "{}",
        told(20.0)
    );
    assert!(
        told(20.0).contains("one core is better") && told(5.0).contains("two cores are better")
    );
}

#[test]
fn the_rule_of_two_n_is_judged() {
    let rule = |at: f64| {
        let outcome = outcome(&super::saturation::EIGHT, 56, |_, length| length.min(at));
        said(&outcome)
    };
    let told = rule(16.0);
    assert!(
        told.contains("cease: 16, 2.0 × the request lines"),
        "{told}"
    );
    assert!(told.contains("rule of 2 N holds"), "{told}");
    let told = rule(48.0);
    assert!(
        told.contains("cease: 48, 6.0 ×") && told.contains("does not hold"),
        "{told}"
    );
}

#[test]
fn the_leading_method_is_named() {
    // The lines are ahead until locks win, as in the source.
    let as_there = |line: &str, vars: f64| match line {
        "async-lines:16x32" => 600.0,
        "atomic" => vars / 100.0,
        _ => 1.0,
    };
    let told = said(&outcome(&super::fetch_add::FIGURE, 56, as_there));
    assert!(told.contains("all others up to: 32 Ki variables"), "{told}");
    // Sentences about locks must not be said of corelay's own method, though it is the fastest.
    let behind = |line: &str, _: f64| match line {
        "trust-then" => 3.0,
        "atomic" => 2.0,
        _ => 1.0,
    };
    for (cpus, contend) in [(2, "2 threads contend here"), (64, "")] {
        let told = said(&outcome(&super::fetch_add::FIGURE, cpus, behind));
        assert!(told.contains("nowhere: another is ahead"), "{told}");
        assert!(
            told.contains("On one variable `atomic` does 2.00"),
            "{told}"
        );
        assert_eq!(told.contains("contend here"), cpus < 56, "{told}");
        assert!(told.contains(contend), "{told}");
        assert!(
            told.contains("variables `trust-then` is ahead.\n"),
            "{told}"
        );
    }

    let lock_from_64 = |line: &str, vars: f64| match line {
        "mcs" if vars >= 64.0 => 80.0,
        "ffwd" => 55.0,
        _ => 1.0,
    };
    let told = said(&outcome(&super::many_variables::FIGURE, 56, lock_from_64));
    assert!(told.contains("locks from: 64 (mcs)"), "{told}");
    let told = said(&outcome(&super::many_variables::FIGURE, 56, |_, _| 1.0));
    assert!(told.contains("locks from: nowhere here"), "{told}");
    assert!(!told.contains("loses"), "{told}");
}

#[test]
fn the_peak_moves_with_the_work() {
    let peak = |line: &str, servers: f64| match line {
        "add" => 30.0 - (servers - 7.0).abs(),
        _ => 30.0 - (servers - 28.0).abs(),
    };
    let told = said(&outcome(&super::fast_slow::FIGURE, 56, peak));
    assert!(
        told.contains("7 for the addition, 28 for the square root"),
        "{told}"
    );
    let told = said(&outcome(&super::fast_slow::FIGURE, 2, |_, _| 1.0));
    assert!(
        told.contains("servers at the highest throughput: ?"),
        "{told}"
    );
}

#[test]
fn both_tables_have_every_method_and_show_collapse() {
    // The mutex collapses with more threads; ffwd rises.
    let mops = |line: &str, threads: f64| match line {
        "mutex" => 64.0 / threads,
        "ffwd" => threads,
        _ => 1.0,
    };
    let outcome = outcome(&super::best::FIGURE, 64, mops);
    let [any, most] = &*outcome.figure.tables else {
        panic!("two tables")
    };
    let row = |grid: &corelay_lab_report::table::grid::Grid, method: &str| {
        let row = grid.rows.iter().find(|row| row[0] == method).unwrap();
        row[1..4].join(" ").replace('\u{a0}', " ")
    };
    assert_eq!(any.rows.len(), super::one_variable::METHODS.len() + 1);
    assert_eq!(row(any, "mutex"), "64.0 1 1.00 ×");
    assert_eq!(row(any, "ffwd"), "64.0 64 1.00 ×");
    assert_eq!(row(most, "mutex"), "1.00 64 1.00 ×");
    assert_eq!(row(most, "ffwd"), "64.0 64 64 ×");
}

#[test]
fn a_method_that_counts_wrong_is_said_to() {
    let right = said(&outcome(&super::best::FIGURE, 4, |_, _| 1.0));
    assert!(
        right.contains("locking is right: right in 4 measurements"),
        "{right}"
    );
    let mut broken = outcome(&super::best::FIGURE, 4, |_, _| 1.0);
    let rcl = |run: &&mut Run| run.params.extra.line.as_deref() == Some("rcl");
    broken.results.runs.iter_mut().find(rcl).unwrap().correct = false;
    let measured = corelay_lab_report::figure::measured::Measured::of(&broken);
    let here = |at: usize| (super::best::FIGURE.printed[at].here)(&measured).unwrap();
    assert!(
        here(2).contains("wrong in 1 of 4 measurements"),
        "{}",
        here(2)
    );
    assert!(here(3).starts_with("right in"), "{}", here(3));
}

#[test]
fn delegation_shows_its_servers_and_clients_in_parallel() {
    let mops = |line: &str, x: f64| if line == "ffwd" { 5.0 * x } else { 10.0 };
    let told = said(&outcome(&super::parallelism::FIGURE, 8, mops));
    for words in [
        "mutex: 1.00 × from 1 to 8; ffwd: 4.0 × from 1 to 4",
        "8.0 × as many threads at one lock give 1.00 ×: the throughput does not follow",
        "7.0 × as many clients of one server give 7.0 ×: the throughput follows",
    ] {
        assert!(told.contains(words), "`{words}` is missing in: {told}");
    }
    let told = said(&outcome(&super::parallelism::FIGURE, 2, mops));
    assert!(told.contains("ffwd: one point"), "{told}");
}

#[test]
fn the_baseline_is_compared_both_ways() {
    let told = |alone: f64| {
        said(&outcome(&super::one_variable::FIGURE, 4, |line, _| {
            if line == "alone" { alone } else { 10.0 }
        }))
    };
    let (fast, slow) = (told(1000.0), told(5.0));
    assert!(fast.contains("a lock between two threads: 100 ×"), "{fast}");
    assert!(
        fast.contains("one thread alone is the fastest way"),
        "{fast}"
    );
    assert!(
        slow.contains("here sharing pays") && slow.contains("by 2.0 ×"),
        "{slow}"
    );
}

#[test]
fn structures_have_the_best_of_delegation_beside_its_rival() {
    let mops = |line: &str, threads: f64| match line {
        "lazy-list" => threads,
        "trust-then" => 20.0,
        "mutex" => 30.0 / threads,
        _ => 0.5,
    };
    let outcome = outcome(&super::structures::LAZY_LIST, 64, mops);
    let [any, most, _alone] = &*outcome.figure.tables else {
        panic!("three tables")
    };
    for table in [any, most] {
        let [row] = &*table.rows else {
            panic!("{table}")
        };
        assert_eq!(row[..2], ["1,024", "5 %"]);
        assert_eq!(
            (&*row[4], &*row[7], &*row[9]),
            ("trust-then", "lazy-list", "64")
        );
    }
    let told = said(&outcome);
    assert!(told.contains("`lazy-list` with 64.0 Mops at 64"), "{told}");
}

#[test]
fn fibres_are_ranked_and_poor_scaling_shows() {
    // corelay is twice as fast as Tokio on two processors. Neither gains from the second.
    let mops = |line: &str, p: f64| match line {
        "corelay-migrating" => 50.0 * p,
        "tokio" => 50.0,
        _ => 10.0 * p,
    };
    let outcome = outcome(&super::chapter::cycle::FIGURE, 2, mops);
    let told = said(&outcome);
    let first = "on 2 processors `corelay-migrating` is fastest, with 10.0 ns an operation; \
                 `corelay-migrating` takes 0.50 × the time of `tokio`; fibres that stay take \
                 5.0 × the time of those that migrate.";
    assert!(told.contains(first), "{told}");
    assert!(told.contains("`tokio` 2.0 ×"), "{told}");
    assert!(told.contains("and `corelay-migrating` 1.00 ×."), "{told}");
    assert!(told.contains("tokio 1.00 ×"), "{told}");
    let [table] = &*outcome.figure.tables else {
        panic!("one table")
    };
    let row = |method: &str| table.rows.iter().find(|row| row[0] == method).unwrap();
    assert_eq!(row("corelay-migrating")[1..], ["10.0", "10.0"]);
    assert_eq!(row("tokio")[1..], ["20.0", "20.0"]);
}

#[test]
fn a_table_says_why_there_is_no_figure() {
    let mut outcome = outcome(&super::chapter::transfer::FIGURE, 2, |_, _| 1.0);
    for run in &mut outcome.results.runs {
        match &*run.method {
            "go" => {
                run.not_installed = Some("there is no `go`".to_owned());
                run.samples.clear();
            }
            "tokio" => {
                run.samples[0].mops = 0.0;
                run.samples[0].fibres =
                    Some(corelay_lab_measure::schema::fibres::FibreResult::default());
            }
            "may" => run.correct = false,
            _ => {}
        }
    }
    let measured = corelay_lab_report::figure::measured::Measured::of(&outcome);
    let table = (super::chapter::transfer::FIGURE.tables)(&measured);
    let cell = |method: &str| &table[0].rows.iter().find(|row| row[0] == method).unwrap()[1];
    assert_eq!(cell("go"), "not installed");
    assert_eq!(cell("tokio"), "did not complete");
    assert_eq!(cell("may"), "wrong");
    assert_eq!(cell("corelay"), "1.00");
    let said = (super::chapter::transfer::FIGURE.words)(&measured);
    assert!(
        said[0].contains("2 processors `tokio` did not complete"),
        "{said:?}"
    );
}

#[test]
fn offsets_stand_beside_the_sources() {
    use corelay_lab_report::figure::offsets::{Offsets, Sample};
    let (figure, size) = (&super::ordo::offsets::FIGURE, Size::test(3));
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
        super::measure::annotated(figure, &panels, Pace::SHORT, none, results, Some(offsets))
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
    let figure = &super::ordo::rlu::FIGURE;
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
    let plain = said(&self::outcome(&super::ordo::rlu::FIGURE, 2, |_, n| n));
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
        let figure = &super::ordo::timestamping::FIGURE;
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
    assert!(told(&super::ordo::rlu::FIGURE).contains(physical_to_logical));
    assert!(told(&super::ordo::database::FIGURE).contains(physical_to_logical));
    assert!(told(&super::ordo::boundary::FIGURE).contains(physical_to_logical));
    let oplog = told(&super::ordo::oplog::FIGURE);
    assert!(oplog.contains("physical timestamping") && !oplog.contains(physical_to_logical));
}

/// The words and tables of the figure `yield` on `cpus`, with so many chains.
fn yield_with(cpus: usize, chains: MigrationChains) -> Outcome {
    let figure = &super::chapter::yield_::FIGURE;
    let mut outcome = outcome(figure, cpus, |_, p| p);
    for run in &mut outcome.results.runs {
        run.samples[0].fibres = Some(FibreResult {
            completed: true,
            chains: (run.params.extra.panel.as_deref() == Some("chains")).then_some(chains),
            ..FibreResult::default()
        });
    }
    let (panels, results) = ((figure.panels)(&Size::test(cpus)), outcome.results);
    annotated(figure, &panels, Pace::SHORT, Vec::new(), results, None)
}

#[test]
fn migrations_that_set_off_others_are_told_from_those_that_do_not() {
    let found = |migrations, chains, over_s| MigrationChains {
        within_us: 100.0,
        over_s,
        migrations,
        chains,
        alone: 1,
        median: 2,
        longest: 9,
        most_fibres: 3,
        most_processors: 4,
    };
    // 100 in a second: by chance 1 % would follow another one within 100 µs.
    let outcome = yield_with(4, found(100, 20, 1.0));
    let told = said(&outcome);
    for words in [
        "A fibre for each of 4 processors: of 100 migrations of fibres of `corelay-migrating`, 80 % \
         followed another one within 100 µs, and 1.0 % would by chance.",
        "The longest chain has 9 migrations, of 3 fibres on 4 processors. So, as the chapter says, a \
         migration sets off others.",
    ] {
        assert!(told.contains(words), "`{words}` is missing in: {told}");
    }
    assert!(!told.contains("short by nature"), "{told}");
    let [methods, chains] = &*outcome.figure.tables else {
        panic!("two tables")
    };
    assert_eq!(methods.head.len(), 3, "{methods}");
    let row = ["4", "100", "20", "1", "2", "9", "3", "4", "80 %", "1.0 %"];
    assert_eq!(
        chains.rows.last().unwrap().join("|").replace('\u{a0}', " "),
        row.join("|")
    );

    let told = said(&yield_with(2, found(100, 99, 1.0)));
    assert!(
        told.contains("does not set off others here. On 2 processors chains are short"),
        "{told}"
    );
    // A migration each 20 µs.
    let told = said(&yield_with(4, found(50_000, 500, 1.0)));
    assert!(told.contains("They are so frequent"), "{told}");
    let told = said(&yield_with(4, found(0, 0, 1.0)));
    assert!(
        told.contains("migrated, so nothing was shuffled around"),
        "{told}"
    );
    // Nothing migrates on one CPU, and nothing is said.
    assert!(!said(&yield_with(1, found(0, 0, 1.0))).contains("A fibre for each"));
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
    let figure = &super::ordo::boundary::FIGURE;
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

    let figure = &super::ordo::timestamping::FIGURE;
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
