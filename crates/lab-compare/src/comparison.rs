//! `Comparison`: the description of a user's structure that a comparison measures.

use crate::COMMIT;
use crate::flags::{self, Asked};
use crate::survey::{self, Contest, compared};
use corelay_lab_measure::host::Host;
use corelay_lab_measure::method::any;
use corelay_lab_measure::schema::Results;
use corelay_lab_measure::workload::operation::{Answer, Workload};
use corelay_lab_measure::workload::own::UserWorkload;
use corelay_lab_measure::workload::point::MAX_VARS;
use corelay_lab_measure::workload::random::{Choice, Random};
use corelay_lab_measure::workload::{fetch_add, latency};
use corelay_lab_report::exit::{self, Exit};
use corelay_lab_report::output;
use std::marker::PhantomData;
use std::process::ExitCode;
use std::time::Duration;

/// A comparison of the ways of sharing a structure of yours, measured with one operation on it.
///
/// Every method that can run any closure takes part: eight locks, three more that combine, an actor
/// behind channels (one call at a time, and 64 outstanding), an actor on Tokio, and delegation by
/// `apply`, `apply_then` and `post`. Atomics do not take part, because they only do single instructions.
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
/// The closures are copied to the threads that run them, so everything that they capture has to
/// be `Copy`: numbers, and references to values that live as long as the program (`Box::leak`
/// makes one).
///
/// Figures of a build without `--release` say nothing about a release build.
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
    /// Starts a comparison of objects made by `make`: for each method anew, one for each variable
    /// of a point, on a cache line of its own. Reports call the workload `name`.
    ///
    /// # Panics
    /// If `name` is empty, or is the name of one of the lab's own workloads: its results would be
    /// mistaken for theirs.
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

    /// Sets the operation that every client repeats on a variable chosen at random: the work that
    /// a caller would do under a lock. It returns a number or `()`, and draws what it needs from
    /// random numbers that travel with it.
    pub fn operation<F, A>(self, operation: F) -> Ready<T, M, F, A>
    where
        F: Fn(&mut T, &mut Random) -> A + Copy + Send + Sync + 'static,
        A: Answer,
    {
        Ready {
            own: UserWorkload {
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

/// A [`Comparison`] with its operation: ready to [`run`](Self::run).
pub struct Ready<T, M, F, A> {
    own: UserWorkload<T, M, F, A>,
    vars: Option<Vec<u64>>,
}

/// Numbers of variables: one where all threads meet, others where they seldom do.
const VARS: &[u64] = &[1, 8, 64];
const QUICK_VARS: &[u64] = &[1, 64];

impl<T, M, F, A> Ready<T, M, F, A>
where
    UserWorkload<T, M, F, A>: Workload<Object = T>,
{
    /// Sets a function that returns the number of operations an object has seen. All objects
    /// together must have seen as many as the clients have done. A method that loses one gets no
    /// figure.
    #[must_use]
    pub fn counted(mut self, counted: fn(&T) -> u64) -> Self {
        self.own.counted = Some(counted);
        self
    }

    /// Sets a check of every object at the end; its error is a sentence that says what is wrong.
    /// A method that breaks the check gets no figure.
    #[must_use]
    pub fn check(mut self, check: fn(&T) -> Result<(), String>) -> Self {
        self.own.check = Some(check);
        self
    }

    /// Sets the numbers of variables to measure with, instead of 1, 8 and 64. The objects of all
    /// methods exist at the same time, about a dozen for each variable.
    ///
    /// # Panics
    /// If there is none, or one is 0 or above 2^32.
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

    /// Reads the flags of `corelay compare` (`--quick`, `--out DIR`, `--json`) from the command
    /// line, measures, and leaves the same results: a page and the raw data in a folder, the
    /// verdict on the terminal. Meant as the last expression of `main`.
    pub fn run(self) -> ExitCode {
        let ended = flags::read(std::env::args_os().skip(1)).and_then(|asked| match asked {
            Asked::Compare(delivery) => delivery.run(&self.contest(delivery.quick)),
            Asked::Help => output::say(&flags::help(self.own.name)).map(|()| Exit::Fine),
        });
        exit::end(ended)
    }

    /// Measures for about `time`, without reading the command line. Pass the results to
    /// [`report::html`](corelay_lab_report::html) and
    /// [`report::verdict`](corelay_lab_report::verdict()). Less than half a minute means fewer
    /// points. From this call on, the first Ctrl-C ends measuring early and the second ends the
    /// program.
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
    /// A sentence that says what the system refused, such as threads.
    pub fn measure(self, time: Duration) -> Result<Results, String> {
        let quick = time < survey::QUICK_BELOW;
        Ok(self
            .contest(quick)
            .survey(&Host::look(COMMIT), time)?
            .results)
    }

    fn contest(self, quick: bool) -> Contest<UserWorkload<T, M, F, A>> {
        let usual = if quick { QUICK_VARS } else { VARS };
        let vars = self.vars.unwrap_or_else(|| usual.to_vec());
        Contest {
            workload: self.own,
            entries: compared(any()),
            vars_of_fewer: vars.clone(),
            vars,
            choice: Choice::Uniform,
            latency: true,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use corelay_lab_measure::measure::plan::Item;
    use corelay_lab_measure::measure::rig::Rig;
    use corelay_lab_measure::measure::session::{Session, Timing};
    use corelay_lab_measure::method::{Entry, SetupLimit};
    use corelay_lab_measure::schema::Run;
    use corelay_lab_measure::workload::point::Point;

    /// Measures one sample of each method, and one under load of each that can run on a schedule.
    /// No time limit stops it.
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
        let methods = contest.entries.iter().map(|entry| (entry.method, None));
        let under_load = contest.entries.iter().filter_map(Entry::on_schedule);
        let under_load = under_load
            .flat_map(|entry| [(entry.method, Some(100_000)), (entry.generator, Some(1))]);
        for (method, load) in methods.chain(under_load) {
            let (point, notes) = (point(load), Vec::new());
            let item = Item {
                method,
                point,
                notes,
            };
            session.add(item, &SetupLimit::default()).unwrap();
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
                // Each of the four choices has a quarter of the operations, give or take eight
                // standard deviations.
                let off = |&n: &u64| (n.abs_diff(all / 4)).pow(2) > 64 * (all / 5 + 1);
                match tallies.iter().position(off) {
                    Some(i) => Err(format!("tally {i} of {tallies:?}")),
                    None => Ok(()),
                }
            });
        let contest = tallies.contest(true);
        assert!(!contest.entries.is_empty());
        for run in runs(&contest) {
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
            // A scheduled client's slice may end before its first operation.
            let fine = run.method.starts_with("generator") || run.load.is_some() && done <= 2;
            assert!(fine || !run.correct && !run.notes.is_empty(), "{run:?}");
        }
    }
}
