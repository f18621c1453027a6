//! Runs a peer's program: flags in, one line of JSON out.

use super::Error;
use super::child::{self, Stopped};
use crate::fibres::spec::{Bench, Length, Spec};
use corelay_lab_measure::schema::fibres::{FibreResult, PerFibre};
use corelay_sync::facade::atomic::AtomicBool;
use serde::Deserialize;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

/// Time that a program may take beyond the measurement: it starts, gives up after 5 s without
/// progress, and may have to wait on a busy machine.
const GRACE: Duration = Duration::from_secs(60);

/// Time that one leader of transfer may take; in Go, which preempts every 10 ms, it takes about
/// 35 ms.
const LEADER_LIMIT: Duration = Duration::from_millis(500);

/// Time that one operation of another benchmark may take.
const OPERATION_LIMIT: Duration = Duration::from_micros(100);

/// The JSON line that a program prints.
#[derive(Debug, Deserialize)]
struct Output {
    peer: String,
    version: String,
    bench: String,
    processors: usize,
    fibres: usize,
    operations: u64,
    wall_s: f64,
    cpu_s: f64,
    completed: bool,
    per_fibre: Vec<u64>,
    per_processor: Option<Vec<u64>>,
    fibre_migrations: Option<u64>,
    data_migrations: Option<u64>,
    rechecks: Option<u64>,
    note: String,
}

/// Runs the program of the peer `name` and checks its result.
pub(super) fn run(
    name: &str,
    program: &Path,
    spec: &Spec,
    interrupted: &AtomicBool,
) -> Result<FibreResult, Error> {
    command(
        name,
        &mut Command::new(program),
        spec,
        limit(spec),
        interrupted,
    )
}

/// Runs a command with the flags of `spec` and checks its result.
fn command(
    name: &str,
    command: &mut Command,
    spec: &Spec,
    limit: Duration,
    interrupted: &AtomicBool,
) -> Result<FibreResult, Error> {
    let failed = |status: String, message: String| Error::Failed { status, message };
    let ended = match child::run(command.args(flags(spec)), limit, interrupted) {
        Ok(ended) => ended,
        Err(Stopped::System(error)) => {
            return Err(failed("it did not start".to_owned(), error.to_string()));
        }
        Err(Stopped::TooLong) => return Err(Error::Hung { after: limit }),
        Err(Stopped::Interrupted) => return Err(Error::Interrupted),
    };
    if !ended.status.success() {
        return Err(failed(ended.status.to_string(), ended.stderr));
    }
    read(name, &ended.stdout, spec).map_err(Error::Unusable)
}

/// The flags that tell a program the parameters of the run.
fn flags(spec: &Spec) -> Vec<String> {
    let mut flags = Vec::new();
    let mut add = |flag: &str, value: &dyn ToString| {
        flags.extend([format!("--{flag}"), value.to_string()]);
    };
    add("bench", &spec.bench.name());
    add("processors", &spec.processors);
    add("fibres", &spec.fibres);
    add("seed", &spec.seed);
    match spec.length {
        Length::Time(time) => add("secs", &time.as_secs_f64()),
        Length::Iterations(n) => add("iterations", &n),
    }
    match spec.bench {
        Bench::Yield => {}
        Bench::Cycle { ring } => add("ring", &ring),
        Bench::Churn { spots } => add("semaphores", &spots),
        Bench::Locality {
            spots,
            words,
            touches,
            share,
        } => {
            add("spots", &spots);
            add("words", &words);
            add("touches", &touches);
            add("share", if share { &"on" } else { &"off" });
        }
        Bench::Transfer { flavour } => add("flavour", &flavour.name()),
    }
    flags
}

/// The time limit of a run.
fn limit(spec: &Spec) -> Duration {
    let work = match (spec.bench, spec.length) {
        (_, Length::Time(time)) => time,
        (Bench::Transfer { .. }, Length::Iterations(n)) => times(LEADER_LIMIT, n),
        (_, Length::Iterations(n)) => {
            times(OPERATION_LIMIT, n.saturating_mul(spec.all_fibres() as u64))
        }
    };
    work.saturating_add(GRACE)
}

fn times(each: Duration, n: u64) -> Duration {
    each.saturating_mul(u32::try_from(n).unwrap_or(u32::MAX))
}

/// Reads a program's output and checks it against the parameters, as far as possible.
fn read(name: &str, output: &str, spec: &Spec) -> Result<FibreResult, String> {
    let line: Output = serde_json::from_str(output.trim())
        .map_err(|error| format!("its output is not the expected line: {error}"))?;
    let ran = (&*line.peer, &*line.bench, line.processors, line.fibres);
    let asked = (name, spec.bench.name(), spec.processors, spec.all_fibres());
    if ran != asked {
        return Err(format!("it ran {ran:?}, and was asked for {asked:?}"));
    }
    if !(line.cpu_s.is_finite() && line.cpu_s >= 0.0) {
        return Err(format!("it says that it used {} s of CPU time", line.cpu_s));
    }
    if let Length::Time(time) = spec.length
        && line.wall_s < time.as_secs_f64() * 0.99
    {
        let (took, time) = (line.wall_s, time.as_secs_f64());
        return Err(format!("it ended after {took} s instead of {time} s"));
    }
    let about = [line.peer, line.version].join(" ");
    let outcome = FibreResult {
        operations: line.operations,
        wall_s: line.wall_s,
        cpu_s: line.cpu_s,
        per_fibre: PerFibre::of(line.per_fibre),
        per_processor: line.per_processor,
        fibre_migrations: line.fibre_migrations,
        data_migrations: line.data_migrations,
        chains: None,
        rechecks: line.rechecks,
        completed: line.completed,
        note: Some(match line.note.is_empty() {
            true => about,
            false => [about, line.note].join(": "),
        }),
    };
    spec.check_result(&outcome)?;
    Ok(outcome)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fibres::spec::Flavour;

    fn spec(bench: Bench, length: Length) -> Spec {
        Spec {
            bench,
            processors: 2,
            fibres: 4,
            length,
            seed: 9,
            chains: false,
        }
    }

    const SECOND: Length = Length::Time(Duration::from_secs(1));

    #[test]
    fn parameters_become_flags() {
        let shown = |bench, length| flags(&spec(bench, length)).join(" ");
        let common = |bench: &str| format!("--bench {bench} --processors 2 --fibres 4 --seed 9");
        assert_eq!(
            shown(Bench::Cycle { ring: 5 }, Length::Iterations(7)),
            common("cycle") + " --iterations 7 --ring 5"
        );
        assert_eq!(
            shown(Bench::Yield, Length::Time(Duration::from_millis(250))),
            common("yield") + " --secs 0.25"
        );
        assert_eq!(
            shown(Bench::Churn { spots: 2 }, SECOND),
            common("churn") + " --secs 1 --semaphores 2"
        );
        let locality = Bench::Locality {
            spots: 2,
            words: 64,
            touches: 3,
            share: true,
        };
        assert_eq!(
            shown(locality, SECOND),
            common("locality") + " --secs 1 --spots 2 --words 64 --touches 3 --share on"
        );
        let flavour = Flavour::Park;
        assert_eq!(
            shown(Bench::Transfer { flavour }, Length::Iterations(7)),
            common("transfer") + " --iterations 7 --flavour park"
        );
    }

    #[test]
    fn time_limit_exceeds_the_measured_time() {
        let yields = |length| limit(&spec(Bench::Yield, length));
        assert_eq!(yields(SECOND), Duration::from_secs(61));
        assert_eq!(yields(Length::Iterations(10_000)), Duration::from_secs(64));
        assert!(yields(Length::Iterations(u64::MAX)) > Duration::from_secs(86_400));
    }

    /// The output of a program after 1 s of yields.
    const RIGHT: &str = r#"{"peer":"made-up","version":"1.2","bench":"yield","processors":2,
        "fibres":4,"operations":10,"wall_s":1.0,"cpu_s":2.0,"completed":true,
        "per_fibre":[1,2,3,4],"per_processor":null,"note":""}"#;

    fn judged(line: &str) -> Result<FibreResult, String> {
        read("made-up", line, &spec(Bench::Yield, SECOND))
    }

    #[test]
    fn output_is_read() {
        let outcome = judged(RIGHT).unwrap();
        assert_eq!((outcome.operations, outcome.per_fibre.median), (10, 2));
        assert_eq!(outcome.per_processor, None);
        assert_eq!(outcome.note.as_deref(), Some("made-up 1.2"));
        let noted = judged(&RIGHT.replace(r#""note":"""#, r#""note":"slow""#)).unwrap();
        assert_eq!(noted.note.as_deref(), Some("made-up 1.2: slow"));
    }

    #[test]
    fn contradictory_output_is_refused() {
        for (from, to, words) in [
            ("\"operations\":10", "\"operations\":11", "sum up to 10"),
            ("[1,2,3,4]", "[1,2,7]", "3 fibres instead of 4"),
            ("[1,2,3,4]", "[-1,4,3,4]", "not the expected line"),
            ("\"completed\":true", "\"completed\":false", "not completed"),
            ("\"wall_s\":1.0", "\"wall_s\":0.5", "0.5 s instead of 1 s"),
            ("\"cpu_s\":2.0", "\"cpu_s\":-2.0", "-2 s of CPU time"),
            ("\"bench\":\"yield\"", "\"bench\":\"cycle\"", "\"cycle\""),
            ("\"processors\":2", "\"processors\":3", "3, 4)"),
            ("\"peer\":\"made-up\"", "\"peer\":\"go\"", "\"go\""),
            ("null", "[9,0]", "processors sum up to 9"),
            ("{\"peer", "hello {\"peer", "not the expected line"),
        ] {
            let line = RIGHT.replacen(from, to, 1);
            assert_ne!(line, RIGHT, "{from} is not in the line");
            let why = judged(&line).unwrap_err();
            assert!(why.contains(words), "{to}: {why}");
        }
        assert!(judged("").unwrap_err().contains("not the expected line"));
    }

    #[cfg(unix)]
    fn sh(script: &str, limit: Duration, interrupted: bool) -> Result<FibreResult, Error> {
        let spec = spec(Bench::Yield, SECOND);
        let mut sh = Command::new("sh");
        let interrupted = AtomicBool::new(interrupted);
        command(
            "made-up",
            sh.args(["-c", script]),
            &spec,
            limit,
            &interrupted,
        )
    }

    #[cfg(unix)]
    #[test]
    fn every_way_to_end_has_its_error() {
        const LONG: Duration = Duration::from_secs(60);
        let right = sh(&format!("echo '{RIGHT}'"), LONG, false);
        assert_eq!(right.unwrap().operations, 10);
        // The flags come after the script, as its arguments from `$0` on.
        let echoed = sh("[ \"$0 $1\" = '--bench yield' ] || exit 1", LONG, false);
        assert!(matches!(echoed, Err(Error::Unusable(_))), "{echoed:?}");
        let failed = sh("echo 'it is stuck' >&2; exit 3", LONG, false).unwrap_err();
        assert_eq!(
            failed.to_string(),
            "its program failed (exit status: 3): it is stuck"
        );
        let killed = sh("kill -9 $$", LONG, false).unwrap_err();
        assert!(killed.to_string().contains("signal: 9"), "{killed}");
        let hung = sh("exec sleep 10000", Duration::ZERO, false).unwrap_err();
        assert!(matches!(hung, Error::Hung { .. }), "{hung}");
        let stopped = sh("exec sleep 10000", LONG, true).unwrap_err();
        assert_eq!(stopped, Error::Interrupted);
        let rubbish = sh("echo rubbish", LONG, false).unwrap_err();
        assert!(matches!(rubbish, Error::Unusable(_)), "{rubbish}");
    }

    #[test]
    fn missing_program_has_failed() {
        let spec = spec(Bench::Yield, SECOND);
        let gone = Path::new("/nonexistent/program");
        let error = run("made-up", gone, &spec, &AtomicBool::new(false)).unwrap_err();
        assert!(matches!(error, Error::Failed { .. }), "{error}");
    }
}
