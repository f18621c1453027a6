//! `Comparison`: what its user says of a structure.

use crate::COMMIT;
use crate::flags::{self, Asked};
use crate::survey::{self, Contest};
use corelay_lab_measure::host::Host;
use corelay_lab_measure::method::{any, any_on_schedule};
use corelay_lab_measure::schema::Results;
use corelay_lab_measure::workload::operation::{Answer, Workload};
use corelay_lab_measure::workload::own::Own;
use corelay_lab_measure::workload::point::MAX_VARS;
use corelay_lab_measure::workload::random::Random;
use corelay_lab_measure::workload::{fetch_add, latency};
use corelay_lab_report::exit::{self, Exit};
use corelay_lab_report::output;
use std::marker::PhantomData;
use std::process::ExitCode;
use std::time::Duration;

/// A comparison of the ways of sharing on a structure of yours, by one operation on it.
///
/// Every method that takes any code goes through it: six locks, an actor behind channels
/// (one call at a time, and 64 outstanding), an actor on Tokio, and delegation by `apply`,
/// `apply_then` and `post`. Atomics do not, for they do single instructions.
///
/// ```no_run
/// use std::collections::BTreeMap;
///
/// fn main() -> std::process::ExitCode {
///     corelay_lab_compare::Comparison::of("word count", BTreeMap::<u64, u64>::new)
///         .operation(|words, random| *words.entry(random.below(1000)).or_insert(0) += 1)
///         .counted(|words| words.values().sum())
///         .run() // --quick, --out, --json
/// }
/// ```
///
/// The closures are copied to where they run, so what they capture has to be `Copy`:
/// numbers, and references to what lives as long as the program (`Box::leak` makes one).
///
/// Figures of a build without `--release` say nothing.
pub struct Comparison<T, M> {
    name: &'static str,
    make: M,
    object: PhantomData<fn() -> T>,
}

impl<T, M> Comparison<T, M>
where
    T: Send + 'static,
    M: Fn() -> T + Copy + Send + Sync + 'static,
{
    /// Of objects that `make` makes: one for each variable of a point, on a line of its
    /// own, for each method anew. Reports call the workload `name`.
    ///
    /// # Panics
    /// Where `name` is empty or that of a workload of the lab, whose results mean something
    /// else.
    pub fn of(name: &'static str, make: M) -> Self {
        assert!(
            !["", fetch_add::NAME, latency::NAME].contains(&name),
            "a comparison needs a name of its own, not `{name}`"
        );
        Self {
            name,
            make,
            object: PhantomData,
        }
    }

    /// The operation that every client does again and again, on a variable chosen at
    /// random: what a caller would do under a lock. It answers with a number or with `()`,
    /// and draws what it needs from random numbers that travel with it.
    pub fn operation<F, A>(self, operation: F) -> Ready<T, M, F, A>
    where
        F: Fn(&mut T, &mut Random) -> A + Copy + Send + Sync + 'static,
        A: Answer,
    {
        Ready {
            own: Own {
                name: self.name,
                make: self.make,
                operation,
                counted: None,
                check: None,
                answer: PhantomData,
            },
            vars: None,
        }
    }
}

/// A [`Comparison`] with its operation: it can be [`run`](Self::run).
pub struct Ready<T, M, F, A> {
    own: Own<T, M, F, A>,
    vars: Option<Vec<u64>>,
}

/// Numbers of variables: where all threads meet, and where they seldom do.
const VARS: &[u64] = &[1, 8, 64];
const QUICK_VARS: &[u64] = &[1, 64];

impl<T, M, F, A> Ready<T, M, F, A>
where
    Own<T, M, F, A>: Workload<Object = T>,
{
    /// How many operations an object has seen, by its own account. All objects together
    /// must have seen as many as the clients have done; a method that loses one has no
    /// figure.
    #[must_use]
    pub fn counted(mut self, counted: fn(&T) -> u64) -> Self {
        self.own.counted = Some(counted);
        self
    }

    /// What holds for every object at the end, or a sentence that says what is wrong with
    /// it; a method that breaks it has no figure.
    #[must_use]
    pub fn check(mut self, check: fn(&T) -> Result<(), String>) -> Self {
        self.own.check = Some(check);
        self
    }

    /// The numbers of variables to measure with, instead of 1, 8 and 64. Objects of all
    /// methods are there at the same time, a dozen for each variable.
    ///
    /// # Panics
    /// Where there is none, or one is 0 or above 2^32.
    #[must_use]
    pub fn vars(mut self, vars: impl IntoIterator<Item = u64>) -> Self {
        let mut vars: Vec<u64> = vars.into_iter().collect();
        vars.sort_unstable();
        vars.dedup();
        assert!(
            !vars.is_empty() && vars.iter().all(|v| (1..=MAX_VARS).contains(v)),
            "numbers of variables are at least 1 and at most 2^32, not {vars:?}"
        );
        self.vars = Some(vars);
        self
    }

    /// Reads the flags of `corelay compare` (`--quick`, `--out DIR`, `--json`) from the
    /// command line, measures, and leaves the same behind: a page and the raw results in a
    /// folder, the verdict on the terminal. To be the end of `main`.
    pub fn run(self) -> ExitCode {
        let ended = flags::read(std::env::args_os().skip(1)).and_then(|asked| match asked {
            Asked::Compare(delivery) => delivery.run(&self.contest(delivery.quick)),
            Asked::Help => output::say(&flags::help(self.own.name)).map(|()| Exit::Fine),
        });
        exit::end(ended)
    }

    /// Measures for about so long, without looking at the command line. The results are
    /// what [`report::html`](corelay_lab_report::html) and
    /// [`report::verdict`](corelay_lab_report::verdict()) read; less than half a minute means fewer
    /// points. From here on Ctrl-C ends measuring early, and a second one the program.
    ///
    /// ```
    /// use corelay_lab_compare::{Comparison, verdict};
    /// use std::{collections::VecDeque, time::Duration};
    ///
    /// let results = Comparison::of("queue", VecDeque::new)
    ///     .operation(|queue, random| {
    ///         queue.push_back(random.next());
    ///         queue.pop_front().unwrap_or(0)
    ///     })
    ///     .check(|queue| queue.is_empty().then_some(()).ok_or("it has grown".to_owned()))
    ///     .vars([1])
    ///     .measure(Duration::from_secs(1))?;
    /// assert!(results.runs.iter().all(|run| run.correct));
    /// println!("{}", verdict(&results));
    /// # Ok::<(), String>(())
    /// ```
    ///
    /// # Errors
    /// A sentence that says what the system did not give (threads).
    pub fn measure(self, time: Duration) -> Result<Results, String> {
        let quick = time < survey::QUICK;
        Ok(self
            .contest(quick)
            .survey(&Host::look(COMMIT), time)?
            .results)
    }

    fn contest(self, quick: bool) -> Contest<Own<T, M, F, A>> {
        let usual = if quick { QUICK_VARS } else { VARS };
        let vars = self.vars.unwrap_or_else(|| usual.to_vec());
        Contest {
            workload: self.own,
            methods: any().to_vec(),
            on_schedule: any_on_schedule().to_vec(),
            vars_of_fewer: vars.clone(),
            vars,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use corelay_lab_measure::measure::plan::Item;
    use corelay_lab_measure::measure::rig::Rig;
    use corelay_lab_measure::measure::session::{Session, Timing};
    use corelay_lab_measure::method::Patience;
    use corelay_lab_measure::schema::Run;
    use corelay_lab_measure::workload::point::Point;
    use corelay_lab_measure::workload::random::Choice;

    /// One sample of each method, and of each that can on a schedule, with nobody to look
    /// at the clock.
    fn runs<W: Workload>(contest: &Contest<W>) -> Vec<Run> {
        let point = |load| Point {
            threads: 3,
            servers: 1,
            vars: 2,
            window: 8,
            load,
            lines: Default::default(),
            fibres: 0,
            choice: Choice::Uniform,
            seed: 1,
            placement: vec![None; 3].into(),
        };
        let mut rig = Rig::new(&[None; 3], &[], "test", Default::default()).unwrap();
        let mut session = Session::of(contest.workload);
        let timing = Timing::of(Duration::from_millis(2));
        let methods = contest.methods.iter().map(|&method| (method, None));
        let under_load = contest
            .on_schedule
            .iter()
            .flat_map(|entry| [(entry.method, Some(100_000)), (entry.generator, Some(1))]);
        for (method, load) in methods.chain(under_load) {
            let (point, notes) = (point(load), Vec::new());
            let item = Item {
                method,
                point,
                notes,
            };
            session.add(item, &Patience::default()).unwrap();
        }
        session.round(&mut rig, timing, None, || {});
        session.finish(&rig, timing)
    }

    #[test]
    fn every_method_does_the_operation_with_its_random_numbers_and_counts_it() {
        let tallies = Comparison::of("tallies", || [0u64; 4])
            .operation(|tallies, random| {
                let tally = &mut tallies[random.below(4) as usize];
                *tally += 1;
                *tally
            })
            .counted(|tallies| tallies.iter().sum())
            .check(|tallies| {
                let all: u64 = tallies.iter().sum();
                // Each is a quarter of them, give or take eight times the spread.
                let off = |&n: &u64| (n.abs_diff(all / 4)).pow(2) > 64 * (all / 5 + 1);
                match tallies.iter().position(off) {
                    Some(i) => Err(format!("tally {i} of {tallies:?}")),
                    None => Ok(()),
                }
            });
        let runs = runs(&tallies.contest(true));
        assert_eq!(runs.len(), 13 + 2 * 11);
        for run in runs {
            assert!(run.correct, "{run:?}");
            assert_eq!(run.workload, "tallies");
        }
    }

    #[test]
    fn an_operation_may_have_no_answer_and_capture_numbers() {
        let step = 3;
        let sums = Comparison::of("sums", move || step)
            .operation(move |sum, _| *sum += step)
            .counted(|sum| sum / 3 - 1);
        assert!(runs(&sums.contest(true)).iter().all(|run| run.correct));
    }

    #[test]
    fn an_operation_that_panics_ends_its_methods_and_nothing_else() {
        let once = Comparison::of("once", || 0u64).operation(|n, _| {
            *n += 1;
            assert!(*n < 2, "by design");
        });
        for run in runs(&once.contest(true)) {
            let done: u64 = run.samples.iter().flat_map(|s| &s.per_thread).sum();
            // A client on a schedule may find its slice over before it has begun.
            let fine = run.method.starts_with("generator") || run.load.is_some() && done <= 2;
            assert!(fine || !run.correct && !run.notes.is_empty(), "{run:?}");
        }
    }
}
