//! `cargo xtask loom` and `cargo xtask shuttle`: every model, one process each.

use crate::Verdict;
use crate::binaries::{self, Binary, Checker, Outcome, Target};
use crate::process::seconds;
use crate::workspace::Workspace;
use anyhow::{Result, bail};
use std::time::{Duration, Instant};

/// A loom model beyond this is named as slow: the gate's time is for all of them.
const SLOW: Duration = Duration::from_secs(30);

/// A model of the gate that is still running then is stopped and has failed.
const LIMIT: Duration = Duration::from_secs(300);

/// How models are run.
#[derive(Debug)]
pub(crate) struct Options<'a> {
    pub(crate) checker: Checker,
    /// Only models whose `crate::file::test` contains this.
    pub(crate) filter: Option<&'a str>,
    /// Also the models that are marked `#[ignore]`.
    pub(crate) with_ignored: bool,
    /// Variables for the test programs.
    pub(crate) environment: Vec<(&'static str, String)>,
    /// How often each model is run; shuttle draws other schedules each time.
    pub(crate) rounds: u32,
    /// The checker stops exploring after this time by itself: then the model has passed,
    /// but not completely.
    pub(crate) budget: Option<Duration>,
    /// Then the program is stopped and the model has failed.
    pub(crate) limit: Option<Duration>,
}

/// Every loom model that the gate runs.
pub(crate) fn loom(workspace: &Workspace, filter: Option<&str>) -> Result<Verdict> {
    // Who asks for another bound also has the time.
    let limit = std::env::var_os("LOOM_MAX_PREEMPTIONS")
        .is_none()
        .then_some(LIMIT);
    let preemptions = preemptions();
    println!("loom: at most {preemptions} preemptions per execution");
    run(
        workspace,
        &Options {
            checker: Checker::Loom,
            filter,
            with_ignored: false,
            environment: vec![("LOOM_MAX_PREEMPTIONS", preemptions)],
            rounds: 1,
            budget: None,
            limit,
        },
    )
}

/// loom's bound: `$LOOM_MAX_PREEMPTIONS`, or 2, which the gate can afford.
pub(crate) fn preemptions() -> String {
    std::env::var("LOOM_MAX_PREEMPTIONS").unwrap_or_else(|_| "2".to_owned())
}

/// Every shuttle model that the gate runs.
pub(crate) fn shuttle(workspace: &Workspace, filter: Option<&str>) -> Result<Verdict> {
    run(
        workspace,
        &Options {
            checker: Checker::Shuttle,
            filter,
            with_ignored: false,
            environment: Vec::new(),
            rounds: 1,
            budget: None,
            limit: Some(LIMIT),
        },
    )
}

/// Builds and runs models one by one.
pub(crate) fn run(workspace: &Workspace, options: &Options<'_>) -> Result<Verdict> {
    let name = options.checker.name();
    let mut targets = Vec::new();
    for member in workspace.members()? {
        for test in member.tests(&format!("{name}_"))? {
            // A filter that names a file spares building the others.
            let other = |filter: &str| filter.contains("::") && !filter.contains(&test);
            if !options.filter.is_some_and(other) {
                targets.push(Target::new(&member, &test));
            }
        }
    }
    if targets.is_empty() {
        bail!("no crate has such a tests/{name}_*.rs: nothing is checked");
    }
    let start = Instant::now();
    let binaries = binaries::build(workspace, options.checker, &targets)?;
    println!(
        "{name}: {} programs built in {}",
        binaries.len(),
        seconds(start.elapsed())
    );

    let mut counts = Counts::default();
    for binary in &binaries {
        run_binary(binary, options, &mut counts)?;
    }
    let Counts {
        passed,
        incomplete,
        ignored,
        failed,
        slow,
    } = counts;
    println!(
        "{name}: {passed} passed, {incomplete} of them not to their end, {} failed, {ignored} \
         ignored, in {}",
        failed.len(),
        seconds(start.elapsed())
    );
    for (model, time) in slow {
        println!("{name}: slow: {model} took {}", seconds(time));
    }
    for model in &failed {
        println!("{name}: FAILED: {model}");
    }
    if passed == 0 && failed.is_empty() {
        match options.filter {
            Some(filter) => bail!("no {name} model matches `{filter}`"),
            None => bail!("no {name} model ran: nothing is checked"),
        }
    }
    Ok(Verdict::of(failed.is_empty()))
}

#[derive(Default)]
struct Counts {
    passed: usize,
    incomplete: usize,
    ignored: usize,
    failed: Vec<String>,
    slow: Vec<(String, Duration)>,
}

fn run_binary(binary: &Binary, options: &Options<'_>, counts: &mut Counts) -> Result<()> {
    let name = options.checker.name();
    let file = format!("{}::{}", binary.target.folder, binary.target.name);
    let tests = binary.tests()?;
    if tests.is_empty() {
        println!("{name} {file}: no test in it");
        counts.failed.push(format!("{file} has no test"));
    }
    for test in &tests {
        let model = format!("{file}::{test}");
        if options.filter.is_some_and(|filter| !model.contains(filter)) {
            continue;
        }
        let start = Instant::now();
        let mut run = binary.run(
            test,
            options.with_ignored,
            &options.environment,
            options.limit,
        )?;
        for _ in 1..options.rounds {
            if run.outcome == Outcome::Passed {
                run = binary.run(
                    test,
                    options.with_ignored,
                    &options.environment,
                    options.limit,
                )?;
            }
        }
        let time = start.elapsed();
        println!("{name} {model} {}: {}", seconds(time), run.closing_line());
        match run.outcome {
            Outcome::Passed => {
                counts.passed += 1;
                if options.budget.is_some_and(|budget| time >= budget) {
                    println!("{name} {model}: not all of its executions were explored");
                    counts.incomplete += 1;
                }
            }
            Outcome::Ignored => counts.ignored += 1,
            Outcome::Failed | Outcome::TimedOut | Outcome::Absent => {
                println!("{}", run.ended.output);
                counts.failed.push(model.clone());
            }
        }
        if options.checker == Checker::Loom && options.budget.is_none() && time > SLOW {
            counts.slow.push((model, time));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Runs a program that lists the test `t` and otherwise does `run`.
    fn counts(run: &str, options: &Options<'_>) -> Counts {
        let list = "if [ \"$1\" = --list ]; then echo 't: test'; exit; fi";
        let (_dir, binary) = binaries::scripted(&format!("{list}\n{run}"));
        let mut counts = Counts::default();
        run_binary(&binary, options, &mut counts).unwrap();
        counts
    }

    fn options(checker: Checker, rounds: u32, budget: Option<Duration>) -> Options<'static> {
        Options {
            checker,
            filter: None,
            with_ignored: false,
            environment: Vec::new(),
            rounds,
            budget,
            limit: None,
        }
    }

    const PASS: &str = "echo 'test result: ok. 1 passed; 0 failed; 0 ignored'";

    #[test]
    fn models_pass_or_fail() {
        let plain = options(Checker::Loom, 1, None);
        assert_eq!(counts(PASS, &plain).passed, 1);
        assert_eq!(counts("exit 101", &plain).failed, ["locks::loom_x::t"]);
        let elsewhere = Options {
            filter: Some("mcs"),
            ..options(Checker::Loom, 1, None)
        };
        assert_eq!(counts(PASS, &elsewhere).passed, 0);
    }

    #[test]
    fn a_model_that_hangs_fails() {
        let limit = Some(Duration::from_millis(200));
        let hasty = Options {
            limit,
            ..options(Checker::Loom, 1, None)
        };
        assert_eq!(
            counts("exec sleep 1000", &hasty).failed,
            ["locks::loom_x::t"]
        );
    }

    #[test]
    fn a_program_without_tests_fails() {
        let (_dir, binary) = binaries::scripted("exit 0");
        let mut counts = Counts::default();
        run_binary(&binary, &options(Checker::Loom, 1, None), &mut counts).unwrap();
        assert_eq!(counts.failed, ["locks::loom_x has no test"]);
    }

    #[test]
    fn a_model_that_used_its_budget_up_is_incomplete() {
        let all = options(Checker::Loom, 1, Some(Duration::from_secs(100)));
        assert_eq!(counts(PASS, &all).incomplete, 0);
        let short = options(Checker::Loom, 1, Some(Duration::ZERO));
        assert_eq!(counts(PASS, &short).incomplete, 1);
    }

    #[test]
    fn every_round_must_pass() {
        let third = format!("echo x >> rounds; [ $(wc -l < rounds) -lt 3 ] && {PASS}");
        assert_eq!(
            counts(&third, &options(Checker::Shuttle, 2, None)).passed,
            1
        );
        assert_eq!(
            counts(&third, &options(Checker::Shuttle, 3, None))
                .failed
                .len(),
            1
        );
    }
}
