//! The cases in each way of delivery.

use crate::case::{self, Case};
use crate::exchange::{Answer, Connection, Delivery, Until};
use crate::normal::Numbers;
use crate::random::Random;
use crate::recorded::{self, Answers};
use crate::run::{self, Fleet};
use crate::server::Program;
use std::io::Write;
use std::time::{Duration, Instant};

/// Failures after which a test stops.
const ENOUGH: usize = 12;

/// Time after the first failure after which a test stops at the next.
const ENOUGH_TIME: Duration = Duration::from_secs(30);

/// Cases up to this length, in bytes, are split at each byte; longer ones at so many places.
const SPLITS: u64 = 32;

/// Cases that wait run side by side, so many at a time.
const SIDE_BY_SIDE: usize = 128;

/// `n` times what `CORELAY_STRESS` asks for (1 unless set).
pub(crate) fn scaled(n: u64) -> u64 {
    let factor = std::env::var("CORELAY_STRESS").map_or(1.0, |text| {
        text.parse::<f64>().expect("CORELAY_STRESS is a number")
    });
    ((n as f64 * factor) as u64).max(1)
}

/// The seed of the first random sequence: `CORELAY_SEED`, or 0.
pub(crate) fn first_seed() -> u64 {
    let seed = std::env::var("CORELAY_SEED").ok();
    seed.map_or(0, |seed| seed.parse().expect("CORELAY_SEED is a number"))
}

/// Says something although the test passes: the harness keeps what `eprintln!` writes.
pub(crate) fn say(text: &str) {
    let _ = std::io::stderr().write_all(format!("conformance: {text}\n").as_bytes());
}

/// The server under test: the one of this package, unless `CORELAY_CACHED` names another.
pub(crate) fn subject() -> Program {
    Program::subject()
}

/// Whether corelay-cached is known to answer this case differently: see `differs.txt`. Another
/// server has to answer all.
fn differs(case: &Case) -> bool {
    let mut names = include_str!("differs.txt").lines();
    std::env::var_os("CORELAY_CACHED").is_none() && names.any(|name| name == case.name)
}

/// The reference, or None after saying that it is missing.
pub(crate) fn reference() -> Option<Program> {
    let program = Program::reference();
    if program.is_none() {
        say("memcached 1.6.18 is not installed; its recorded answers are the reference");
    }
    program
}

/// Failures, with the names of their cases.
#[derive(Default)]
pub(crate) struct Failures {
    texts: Vec<String>,
    first: Option<Instant>,
}

impl Failures {
    /// Adds one. Returns whether there are enough, or whether a server that does not answer has
    /// cost enough time.
    pub(crate) fn add(&mut self, text: String) -> bool {
        let first = *self.first.get_or_insert_with(Instant::now);
        self.texts.push(text);
        self.texts.len() >= ENOUGH || first.elapsed() > ENOUGH_TIME
    }

    /// Panics if there are any.
    #[track_caller]
    pub(crate) fn report(self) {
        let count = self.texts.len();
        let note = if count >= ENOUGH { " or more" } else { "" };
        assert!(
            count == 0,
            "{count}{note} failures\n\n{}",
            self.texts.join("\n\n")
        );
    }
}

/// A failure in words: the case, what differs, what was sent.
pub(crate) fn failure(case: &Case, delivery: Delivery, error: &str) -> String {
    let mut input = case.shown();
    if input.len() > 1500 {
        input.truncate(input.floor_char_boundary(1500));
        input += "...\n";
    }
    let input = input.replace('\n', "\n    ");
    format!(
        "{} ({delivery:?}): {error}\n  sent:\n    {}",
        case.name,
        input.trim_end()
    )
}

/// The cases that need no time, and those that wait.
fn cases() -> (Vec<Case>, Vec<Case>) {
    case::all().into_iter().partition(|case| !case.waits())
}

#[test]
fn cases_that_differ_are_cases() {
    let cases = case::all();
    for name in include_str!("differs.txt").lines() {
        let is_name = !name.is_empty() && !name.starts_with('#');
        assert!(
            !is_name || cases.iter().any(|case| case.name == name),
            "{name}"
        );
    }
}

/// The cases that the subject has to answer as memcached does.
fn cases_of_subject() -> (Vec<Case>, Vec<Case>) {
    let (mut cases, mut waiting) = cases();
    cases.retain(|case| !differs(case));
    waiting.retain(|case| !differs(case));
    (cases, waiting)
}

/// The recorded answers to all cases.
fn recorded_answers(cases: &[Case]) -> Answers {
    let mut answers = Answers::new();
    let mut subjects: Vec<_> = cases
        .iter()
        .filter_map(|c| c.name.split(": ").next())
        .collect();
    subjects.dedup();
    for subject in subjects {
        answers.extend(recorded::read(subject));
    }
    answers
}

/// The reference's answers to cases that do not wait.
fn ask_reference(program: &Program, cases: &[Case]) -> Answers {
    let mut fleet = Fleet::start(program.clone()).expect("the reference starts");
    let mut answers = Answers::new();
    for case in cases {
        let answer = fleet.run(case, Delivery::Whole);
        let answer = answer.unwrap_or_else(|error| {
            panic!(
                "the reference fails: {}",
                failure(case, Delivery::Whole, &error)
            )
        });
        answers.insert(case.name.clone(), answer);
    }
    answers
}

/// Checks the subject's answers to all cases, each delivered in these ways.
fn check(deliveries: impl Fn(&Case) -> Vec<Delivery>) {
    let program = subject();
    let (cases, _) = cases_of_subject();
    let wanted = recorded_answers(&cases);
    check_program(program, &cases, &wanted, deliveries);
}

fn check_program(
    program: Program,
    cases: &[Case],
    wanted: &Answers,
    deliveries: impl Fn(&Case) -> Vec<Delivery>,
) {
    let mut fleet = Fleet::start(program).expect("the server starts");
    let mut failures = Failures::default();
    'cases: for case in cases {
        let Some(wanted) = wanted.get(&case.name) else {
            failures.add(format!("{}: no answer is recorded", case.name));
            continue;
        };
        for delivery in deliveries(case) {
            if let Err(error) = fleet.check(case, delivery, wanted) {
                if failures.add(failure(case, delivery, &error)) {
                    break 'cases;
                }
                break;
            }
        }
    }
    failures.report();
}

/// The places at which a case is split: all, or random ones if it is long.
fn splits(case: &Case) -> Vec<Delivery> {
    let length = case.length();
    if case.whole {
        return Vec::new();
    }
    let places = if case.own { 3 } else { scaled(SPLITS) };
    if length as u64 <= places {
        return (1..length).map(Delivery::SplitAt).collect();
    }
    let mut random = Random::new(length as u64);
    let place = |_| Delivery::SplitAt(1 + random.below(length as u64 - 1) as usize);
    (0..places).map(place).collect()
}

fn bytewise(case: &Case) -> Vec<Delivery> {
    match case.length() {
        _ if case.whole => Vec::new(),
        0..=4096 => vec![Delivery::Bytes],
        _ => (0..3).map(Delivery::Random).collect(),
    }
}

#[test]
fn cases_in_one_write() {
    check(|_| vec![Delivery::Whole]);
}

/// Keys lie in several shards, so that most answers come from other threads.
#[test]
fn cases_in_one_write_on_three_threads() {
    let (mut cases, _) = cases_of_subject();
    // It tells the number of threads.
    cases.retain(|case| case.name != "misc: statistics that everybody reads");
    let wanted = recorded_answers(&cases);
    let program = subject().with(&["-t", "3"]);
    check_program(program, &cases, &wanted, |_| vec![Delivery::Whole]);
}

#[test]
fn cases_split_at_each_byte() {
    check(splits);
}

#[test]
fn cases_byte_by_byte() {
    check(bytewise);
}

#[test]
fn cases_pipelined() {
    let program = subject();
    let (mut cases, _) = cases_of_subject();
    let wanted = recorded_answers(&cases);
    cases.retain(|case| {
        let fits =
            !case.own && !case.open && !case.closes && !case.whole && case.segments.len() == 1;
        fits && wanted.get(&case.name).is_some_and(|answer| !answer.closed)
    });
    let mut fleet = Fleet::start(program).expect("the server starts");
    let mut failures = Failures::default();
    let mut random = Random::new(1);
    for round in 0..scaled(4) {
        // Shuffled, so that each case follows many others.
        for at in (1..cases.len()).rev() {
            cases.swap(at, random.below(at as u64 + 1) as usize);
        }
        let size = [1000, 20, 7, 3][round as usize % 4];
        for group in cases.chunks(size) {
            let delivery = match round % 2 {
                0 => Delivery::Whole,
                _ => Delivery::Random(random.next()),
            };
            if let Err(error) = check_group(&mut fleet, group, &wanted, delivery)
                && failures.add(error)
            {
                return failures.report();
            }
        }
    }
    failures.report();
}

/// Sends cases in one request, the cache emptied after each. A case whose answer depends on the
/// clock is not compared.
fn check_group(
    fleet: &mut Fleet,
    group: &[Case],
    wanted: &Answers,
    delivery: Delivery,
) -> Result<(), String> {
    let mut request = Vec::new();
    for (nth, case) in group.iter().enumerate() {
        request.extend(run::resolve(&case.segments[0].pieces, &Numbers::default()));
        request.extend(run::sentinel(nth).0);
        request.extend_from_slice(b"flush_all\r\n");
    }
    let names = || {
        let names: Vec<_> = group
            .iter()
            .take(30)
            .map(|case| case.name.as_str())
            .collect();
        names.join(", ")
    };
    fleet.reset()?;
    let (ask, end) = run::sentinel(group.len());
    let answer = Connection::open(fleet.address()).and_then(|mut connection| {
        connection.exchange(&request, &ask, delivery, Until::Sentinel(&end))
    });
    let answer = answer
        .map_err(|error| fleet.explain(format!("pipelined {delivery:?} {}: {error}", names())))?;
    let mut rest = answer.bytes.as_slice();
    for (nth, case) in group.iter().enumerate() {
        let end = [run::sentinel(nth).1.as_slice(), b"OK\r\n"].concat();
        let Some(at) = rest.windows(end.len()).position(|part| part == end) else {
            let error = "no answer to the sentinel after it";
            return Err(failure(
                case,
                delivery,
                &format!("pipelined with {}: {error}", names()),
            ));
        };
        let bytes = Numbers::default().text(&rest[..at], &case.stats);
        rest = &rest[at + end.len()..];
        let answer = Answer {
            bytes,
            closed: false,
        };
        let wanted = &wanted[&case.name];
        if answer != *wanted && !case.retry {
            let error = format!(
                "pipelined with {}: {}",
                names(),
                run::differ(wanted, &answer)
            );
            return Err(failure(case, delivery, &error));
        }
    }
    Ok(())
}

/// Runs cases that wait, side by side, and returns their answers.
fn run_waiting(
    program: &Program,
    cases: &[&Case],
    delivery: Delivery,
) -> Vec<Result<Answer, String>> {
    let shared = program.start(&[]).expect("the server starts");
    let one = |case: &Case| {
        if !case.own {
            return run::run(shared.address(), case, delivery);
        }
        let own = program.start(&case.flags)?;
        run::run(own.address(), case, delivery)
    };
    let mut answers = Vec::new();
    for group in cases.chunks(SIDE_BY_SIDE) {
        std::thread::scope(|scope| {
            let threads: Vec<_> = group.iter().map(|case| scope.spawn(|| one(case))).collect();
            answers.extend(
                threads
                    .into_iter()
                    .map(|t| t.join().expect("it does not panic")),
            );
        });
    }
    answers
}

#[test]
fn cases_that_wait() {
    let program = subject();
    let (_, cases) = cases_of_subject();
    let recorded = recorded_answers(&cases);
    let mut failures = Failures::default();
    for delivery in [Delivery::Whole, Delivery::Bytes] {
        check_waiting(&program, &cases, &recorded, delivery, &mut failures);
    }
    failures.report();
}

/// Checks cases that wait. Those that fail are tried once more: a slow machine may have let a
/// moment pass.
fn check_waiting(
    program: &Program,
    cases: &[Case],
    wanted: &Answers,
    delivery: Delivery,
    failures: &mut Failures,
) {
    let mut left: Vec<&Case> = cases.iter().collect();
    for is_last in [false, true] {
        let answers = run_waiting(program, &left, delivery);
        let mut again = Vec::new();
        for (case, answer) in left.iter().zip(answers) {
            let wanted = wanted.get(&case.name);
            let error = match (answer, wanted) {
                (Ok(answer), Some(wanted)) if answer == *wanted => continue,
                (Ok(answer), Some(wanted)) => run::differ(wanted, &answer),
                (Ok(_), None) => "no answer is recorded".to_owned(),
                (Err(error), _) => error,
            };
            if is_last {
                failures.add(failure(case, delivery, &error));
            }
            again.push(*case);
        }
        left = again;
        if left.is_empty() {
            return;
        }
    }
}

#[test]
fn recorded_answers_are_the_references() {
    let Some(program) = reference() else { return };
    let (cases, waiting) = cases();
    if recorded::is_wanted() {
        // Those of cases that are not selected are kept.
        let mut answers = match std::env::var_os("CORELAY_CASE") {
            Some(_) => recorded_answers(&cases),
            None => Answers::new(),
        };
        answers.extend(ask_reference(&program, &cases));
        let more = run_waiting(
            &program,
            &waiting.iter().collect::<Vec<_>>(),
            Delivery::Whole,
        );
        for (case, answer) in waiting.iter().zip(more) {
            answers.insert(case.name.clone(), answer.expect("the reference answers"));
        }
        recorded::write(&answers);
    }
    let recorded = recorded_answers(&[cases.as_slice(), &waiting].concat());
    check_program(program.clone(), &cases, &recorded, |_| {
        vec![Delivery::Whole]
    });
    let mut failures = Failures::default();
    check_waiting(
        &program,
        &waiting,
        &recorded,
        Delivery::Whole,
        &mut failures,
    );
    failures.report();
    // The reference itself must not depend on how the input is split: in the long run only.
    if scaled(1) > 1 || recorded::is_wanted() {
        check_program(program.clone(), &cases, &recorded, splits);
        check_program(program, &cases, &recorded, bytewise);
    }
}
