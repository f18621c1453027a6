//! Tests of the sentences of the figures after the scheduler chapter.

use super::*;

#[test]
fn fibres_are_ranked_and_poor_scaling_shows() {
    // corelay is twice as fast as Tokio on two processors. Neither gains from the second.
    let mops = |line: &str, p: f64| match line {
        "corelay-migrating" => 50.0 * p,
        "tokio" => 50.0,
        _ => 10.0 * p,
    };
    let outcome = outcome(&crate::chapter::cycle::FIGURE, 2, mops);
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
    let mut outcome = outcome(&crate::chapter::transfer::FIGURE, 2, |_, _| 1.0);
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
    let table = (crate::chapter::transfer::FIGURE.tables)(&measured);
    let cell = |method: &str| &table[0].rows.iter().find(|row| row[0] == method).unwrap()[1];
    assert_eq!(cell("go"), "not installed");
    assert_eq!(cell("tokio"), "did not complete");
    assert_eq!(cell("may"), "wrong");
    assert_eq!(cell("corelay"), "1.00");
    let said = (crate::chapter::transfer::FIGURE.words)(&measured);
    assert!(
        said[0].contains("2 processors `tokio` did not complete"),
        "{said:?}"
    );
}

/// The words and tables of the figure `yield` on `cpus`, with so many chains.
fn yield_with(cpus: usize, chains: MigrationChains) -> Outcome {
    let figure = &crate::chapter::yield_::FIGURE;
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
