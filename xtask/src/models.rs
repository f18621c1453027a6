//! `cargo xtask loom` and `cargo xtask shuttle`: every model, one process each.

use crate::binaries::{self, Binary, Checker, Outcome, Target, TestRun};
use crate::process::seconds;
use crate::steps::Verdict;
use crate::workspace::Workspace;
use anyhow::{Result, bail};
use std::process::Stdio;
use std::sync::Mutex;
use std::thread;
use std::time::{Duration, Instant};

/// A loom model beyond this is named as slow: the gate's time is for all of them.
const SLOW: Duration = Duration::from_secs(30);

/// A model that is still running then is stopped and has failed.
const LIMIT: Duration = Duration::from_secs(300);

/// How long loom explores each model in the long runs: there are hundreds of models, and two CPUs have to
/// be through with them in little more than an hour. The run says which were not explored to their end.
const DEEP: Duration = Duration::from_secs(20);

/// Executions between two looks at the clock in the long runs. By itself loom takes 20,000,
/// and long ones would then be stopped by the limit before it has looked.
const LOOK_EVERY: u32 = 1_000;

const BOUND: &str = "LOOM_MAX_PREEMPTIONS";

/// How models are run.
#[derive(Debug)]
struct Options<'a> {
    checker: Checker,
    /// Only models whose `crate::file::test` contains this.
    filter: Option<&'a str>,
    /// Also the models that are marked `#[ignore]`.
    with_ignored: bool,
    /// Variables for the test programs.
    environment: Vec<(&'static str, String)>,
    /// How often each model is run; shuttle draws other schedules each time.
    rounds: u32,
    /// After this time the checker stops exploring by itself: then the model has passed, but
    /// not completely.
    budget: Option<Duration>,
    /// After this time the program is stopped and the model has failed.
    limit: Option<Duration>,
}

impl<'a> Options<'a> {
    fn of_the_gate(checker: Checker, filter: Option<&'a str>) -> Self {
        Self {
            checker,
            filter,
            with_ignored: false,
            environment: Vec::new(),
            rounds: 1,
            budget: None,
            limit: Some(LIMIT),
        }
    }
}

/// Every loom model that the gate runs.
pub(crate) fn loom(workspace: &Workspace, filter: Option<&str>) -> Result<Verdict> {
    let mut options = Options::of_the_gate(Checker::Loom, filter);
    if std::env::var_os(BOUND).is_some() {
        // Whoever asks for another bound also has the time.
        options.limit = None;
    }
    let bound = preemptions();
    println!("loom: at most {bound} preemptions per execution");
    options.environment = vec![(BOUND, bound)];
    run(workspace, &options)
}

/// Every shuttle model that the gate runs.
pub(crate) fn shuttle(workspace: &Workspace, filter: Option<&str>) -> Result<Verdict> {
    run(workspace, &Options::of_the_gate(Checker::Shuttle, filter))
}

/// loom with one preemption more than the gate affords, ignored models included.
pub(crate) fn deep_loom(workspace: &Workspace) -> Result<Verdict> {
    let options = Options {
        with_ignored: true,
        environment: vec![
            (BOUND, "3".to_owned()),
            ("LOOM_MAX_DURATION", DEEP.as_secs().to_string()),
            ("LOOM_CHECKPOINT_INTERVAL", LOOK_EVERY.to_string()),
        ],
        budget: Some(DEEP),
        ..Options::of_the_gate(Checker::Loom, None)
    };
    run(workspace, &options)
}

/// shuttle with ten times the gate's schedules, ignored models included.
pub(crate) fn deep_shuttle(workspace: &Workspace) -> Result<Verdict> {
    let options = Options {
        with_ignored: true,
        rounds: 10,
        limit: None,
        ..Options::of_the_gate(Checker::Shuttle, None)
    };
    run(workspace, &options)
}

/// loom's bound: `$LOOM_MAX_PREEMPTIONS`, or 2, which the gate can afford.
pub(crate) fn preemptions() -> String {
    std::env::var(BOUND).unwrap_or_else(|_| "2".to_owned())
}

/// Builds models, and runs each in a process of its own.
fn run(workspace: &Workspace, options: &Options<'_>) -> Result<Verdict> {
    let name = options.checker.name();
    let mut targets = Vec::new();
    for member in workspace.members()? {
        for test in member.tests(&format!("{name}_"))? {
            // A filter that names a file spares building the others.
            let is_other = |filter: &str| filter.contains("::") && !filter.contains(&test);
            if !options.filter.is_some_and(is_other) {
                targets.push(Target::new(&member.folder, &test));
            }
        }
    }
    if targets.is_empty() {
        bail!("no crate has such a tests/{name}_*.rs: nothing is checked");
    }
    let start = Instant::now();
    let (root, into) = (&workspace.root, workspace.target.join(name));
    let built = binaries::build(root, &into, options.checker, &targets, Stdio::inherit())?;
    let Ok(binaries) = built else {
        bail!("the {name} tests do not build");
    };
    let (programs, time) = (binaries.len(), seconds(start.elapsed()));
    println!("{name}: {programs} programs built in {time}");
    let counts = run_all(&binaries, options)?;
    for line in &counts.remarks {
        println!("{name}: {line}");
    }
    if counts.passed + counts.failed == 0 {
        let filter = options.filter.unwrap_or_default();
        bail!("no {name} model matches `{filter}`: nothing is checked");
    }
    let note = counts.to_string();
    println!("{name}: {note}, in {}", seconds(start.elapsed()));
    Ok(Verdict::of(counts.failed == 0, note))
}

#[derive(Default)]
struct Counts {
    passed: usize,
    incomplete: usize,
    ignored: usize,
    failed: usize,
    /// Slow models and failed ones.
    remarks: Vec<String>,
}

impl std::fmt::Display for Counts {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (passed, incomplete) = (self.passed, self.incomplete);
        write!(
            f,
            "{passed} passed, {incomplete} of them not to their end, "
        )?;
        write!(f, "{} failed, {} ignored", self.failed, self.ignored)
    }
}

/// Runs the models of all programs: each takes one CPU, so that there are as many at a time.
fn run_all(binaries: &[Binary], options: &Options<'_>) -> Result<Counts> {
    let mut counts = Counts::default();
    let mut models = Vec::new();
    for binary in binaries {
        let file = format!("{}::{}", binary.target.folder, binary.target.name);
        let tests = binary.tests()?;
        if tests.is_empty() {
            counts.failed += 1;
            counts.remarks.push(format!("FAILED: {file} has no test"));
        }
        let named = tests
            .into_iter()
            .map(|test| (format!("{file}::{test}"), test));
        let is_chosen = |model: &str| options.filter.is_none_or(|filter| model.contains(filter));
        let chosen = named.filter(|(model, _)| is_chosen(model));
        models.extend(chosen.map(|(model, test)| (binary, model, test)));
    }
    let (counts, models) = (Mutex::new(counts), Mutex::new(models.into_iter()));
    let next = || models.lock().expect("no thread panics").next();
    let work = || {
        while let Some((binary, model, test)) = next() {
            let start = Instant::now();
            let run = run_model(binary, &test, options)?;
            let mut counts = counts.lock().expect("no thread panics");
            counts.add(&model, &run, start.elapsed(), options);
        }
        anyhow::Ok(())
    };
    let cpus = thread::available_parallelism().map_or(1, |cpus| cpus.get());
    thread::scope(|scope| {
        let threads: Vec<_> = (0..cpus).map(|_| scope.spawn(work)).collect();
        let mut ended = threads.into_iter().map(|thread| thread.join());
        ended.try_for_each(|ended| ended.expect("no thread panics"))
    })?;
    Ok(counts.into_inner().expect("no thread panics"))
}

/// Runs a model as often as `options` say, until it fails.
fn run_model(binary: &Binary, test: &str, options: &Options<'_>) -> Result<TestRun> {
    let (with_ignored, environment) = (options.with_ignored, &options.environment);
    let once = || binary.run(test, with_ignored, environment, options.limit);
    let mut run = once()?;
    for _ in 1..options.rounds {
        if run.outcome == Outcome::Passed {
            run = once()?;
        }
    }
    Ok(run)
}

impl Counts {
    /// Adds a model that took `time`, and says how it came out.
    fn add(&mut self, model: &str, run: &TestRun, time: Duration, options: &Options<'_>) {
        let name = options.checker.name();
        println!("{name} {model} {}: {}", seconds(time), run.closing_line());
        match run.outcome {
            Outcome::Passed => {
                self.passed += 1;
                if options.budget.is_some_and(|budget| time >= budget) {
                    println!("{name} {model}: not all of its executions were explored");
                    self.incomplete += 1;
                }
            }
            Outcome::Ignored => self.ignored += 1,
            Outcome::Failed | Outcome::TimedOut | Outcome::Absent => {
                println!("{}", run.ended.output);
                self.failed += 1;
                self.remarks.push(format!("FAILED: {model}"));
            }
        }
        if options.checker == Checker::Loom && options.budget.is_none() && time > SLOW {
            let slow = format!("slow: {model} took {}", seconds(time));
            self.remarks.push(slow);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PASS: &str = "echo 'test result: ok. 1 passed; 0 failed; 0 ignored'";

    /// Runs a program that lists the test `t` and otherwise does `run`.
    fn counts(run: &str, change: impl FnOnce(&mut Options<'_>)) -> Counts {
        let list = "if [ \"$1\" = --list ]; then echo 't: test'; exit; fi";
        let (_dir, binary) = binaries::scripted(&format!("{list}\n{run}"));
        let mut options = Options::of_the_gate(Checker::Loom, None);
        change(&mut options);
        run_all(&[binary], &options).unwrap()
    }

    #[test]
    fn models_pass_or_fail() {
        assert_eq!(counts(PASS, |_| ()).passed, 1);
        let failed = counts("exit 101", |_| ());
        assert_eq!(failed.failed, 1);
        assert_eq!(failed.remarks, ["FAILED: locks::loom_x::t"]);
        assert_eq!(counts(PASS, |o| o.filter = Some("mcs")).passed, 0);
    }

    #[test]
    fn a_model_that_hangs_fails() {
        let limit = Some(Duration::from_millis(200));
        let hung = counts("exec sleep 1000", |o| o.limit = limit);
        assert_eq!(hung.failed, 1);
    }

    #[test]
    fn a_program_without_tests_fails() {
        let (_dir, binary) = binaries::scripted("exit 0");
        let options = Options::of_the_gate(Checker::Loom, None);
        let counts = run_all(&[binary], &options).unwrap();
        assert_eq!(counts.remarks, ["FAILED: locks::loom_x has no test"]);
    }

    #[test]
    fn a_model_that_used_its_budget_up_is_incomplete() {
        let of = |seconds| counts(PASS, |o| o.budget = Some(Duration::from_secs(seconds)));
        assert_eq!((of(100).incomplete, of(0).incomplete), (0, 1));
    }

    #[test]
    fn every_round_must_pass() {
        let third = format!("echo x >> rounds; [ $(wc -l < rounds) -lt 3 ] && {PASS}");
        assert_eq!(counts(&third, |o| o.rounds = 2).passed, 1);
        assert_eq!(counts(&third, |o| o.rounds = 3).failed, 1);
    }
}
