//! Tests of the sentences of the figures after the slides on ffwd.

use super::*;

#[test]
fn both_tables_have_every_method_and_show_collapse() {
    // The mutex collapses with more threads; ffwd rises.
    let mops = |line: &str, threads: f64| match line {
        "mutex" => 64.0 / threads,
        "ffwd" => threads,
        _ => 1.0,
    };
    let outcome = outcome(&crate::best::FIGURE, 64, mops);
    let [any, most] = &*outcome.figure.tables else {
        panic!("two tables")
    };
    let row = |grid: &corelay_lab_report::table::grid::Grid, method: &str| {
        let row = grid.rows.iter().find(|row| row[0] == method).unwrap();
        row[1..4].join(" ").replace('\u{a0}', " ")
    };
    assert_eq!(any.rows.len(), crate::one_variable::METHODS.len() + 1);
    assert_eq!(row(any, "mutex"), "64.0 1 1.00 ×");
    assert_eq!(row(any, "ffwd"), "64.0 64 1.00 ×");
    assert_eq!(row(most, "mutex"), "1.00 64 1.00 ×");
    assert_eq!(row(most, "ffwd"), "64.0 64 64 ×");
}

#[test]
fn a_method_that_counts_wrong_is_said_to() {
    let right = said(&outcome(&crate::best::FIGURE, 4, |_, _| 1.0));
    assert!(
        right.contains("locking is right: right in 4 measurements"),
        "{right}"
    );
    let mut broken = outcome(&crate::best::FIGURE, 4, |_, _| 1.0);
    let rcl = |run: &&mut Run| run.params.extra.line.as_deref() == Some("rcl");
    broken.results.runs.iter_mut().find(rcl).unwrap().correct = false;
    let measured = corelay_lab_report::figure::measured::Measured::of(&broken);
    let here = |at: usize| (crate::best::FIGURE.printed[at].here)(&measured).unwrap();
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
    let told = said(&outcome(&crate::parallelism::FIGURE, 8, mops));
    for words in [
        "mutex: 1.00 × from 1 to 8; ffwd: 4.0 × from 1 to 4",
        "8.0 × as many threads at one lock give 1.00 ×: the throughput does not follow",
        "7.0 × as many clients of one server give 7.0 ×: the throughput follows",
    ] {
        assert!(told.contains(words), "`{words}` is missing in: {told}");
    }
    let told = said(&outcome(&crate::parallelism::FIGURE, 2, mops));
    assert!(told.contains("ffwd: one point"), "{told}");
}

#[test]
fn the_baseline_is_compared_both_ways() {
    let told = |alone: f64| {
        said(&outcome(&crate::one_variable::FIGURE, 4, |line, _| {
            if line == "alone" { alone } else { 10.0 }
        }))
    };
    let (fast, slow) = (told(1000.0), told(5.0));
    assert!(fast.contains("a lock between two threads: 100 ×"), "{fast}");
    assert!(
        fast.contains("sharing costs more than the other threads bring"),
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
    let outcome = outcome(&crate::structures::LAZY_LIST, 64, mops);
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
