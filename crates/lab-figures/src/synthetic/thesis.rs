//! Tests of the sentences of the figures after the thesis on delegation.

use super::*;

#[test]
fn the_knee_of_a_line_is_found() {
    let knee_at_16 = |_: &str, n: f64| if n <= 16.0 { n } else { 14.0 };
    let told = said(&outcome(&crate::request_lines::FIGURE, 56, knee_at_16));
    assert!(told.contains("naming: 16\n"), "{told}");
    assert!(told.contains("64 have 0.88 × of what 16 have"), "{told}");
    assert!(!told.contains("The source's 16 is for"), "{told}");
    let told = said(&outcome(&crate::request_lines::FIGURE, 2, |_, n| {
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
    let told = said(&outcome(&crate::request_lines::FIGURE, 56, falls));
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
    let told = said(&outcome(&crate::request_lines::FIGURE, 56, |_, n| n));
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
        said(&outcome(&crate::hyperthreads::FIGURE, 8, |line, _| {
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
        let outcome = outcome(&crate::saturation::EIGHT, 56, |_, length| length.min(at));
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
    let told = said(&outcome(&crate::fetch_add::FIGURE, 56, as_there));
    assert!(told.contains("all others up to: 32 Ki variables"), "{told}");
    // Sentences about locks must not be said of corelay's own method, though it is the fastest.
    let behind = |line: &str, _: f64| match line {
        "trust-then" => 3.0,
        "atomic" => 2.0,
        _ => 1.0,
    };
    for (cpus, contend) in [(2, "2 threads contend here"), (64, "")] {
        let told = said(&outcome(&crate::fetch_add::FIGURE, cpus, behind));
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
    let told = said(&outcome(&crate::many_variables::FIGURE, 56, lock_from_64));
    assert!(told.contains("locks from: 64 (mcs)"), "{told}");
    let told = said(&outcome(&crate::many_variables::FIGURE, 56, |_, _| 1.0));
    assert!(told.contains("locks from: nowhere here"), "{told}");
    assert!(!told.contains("loses"), "{told}");
}

#[test]
fn the_peak_moves_with_the_work() {
    let peak = |line: &str, servers: f64| match line {
        "add" => 30.0 - (servers - 7.0).abs(),
        _ => 30.0 - (servers - 28.0).abs(),
    };
    let told = said(&outcome(&crate::fast_slow::FIGURE, 56, peak));
    assert!(
        told.contains("7 for the addition, 28 for the square root"),
        "{told}"
    );
    let told = said(&outcome(&crate::fast_slow::FIGURE, 2, |_, _| 1.0));
    assert!(
        told.contains("servers at the highest throughput: ?"),
        "{told}"
    );
}
