//! The catalogue of runtimes whose fibres run the benchmarks.

use super::migrate::Mobility;
use super::own;
use super::spec::{Length, Spec, nothing_in_time};
use crate::peer::{self, PEERS, Peer};
use corelay_lab_measure::schema::fibres::FibreResult;
use corelay_sync::facade::atomic::AtomicBool;
use std::sync::LazyLock;
use std::time::Duration;

/// Time in which fibres get a CPU, however busy the machine is. A fibre of `locality` has an
/// operation only once another one has woken it, so a shorter run may have none.
const LONG_ENOUGH: Duration = Duration::from_secs(1);

/// The reason why a method has no figure.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Failure {
    /// The runtime is not on this machine: a clause that names what is missing.
    NotInstalled(String),
    /// The run failed, hung, or gave a wrong result: one sentence.
    Wrong(String),
}

/// A runtime of fibres that the benchmarks run on.
#[derive(Clone, Copy, Debug)]
pub struct Method {
    name: &'static str,
    what: &'static str,
    kind: Kind,
}

#[derive(Clone, Copy, Debug)]
enum Kind {
    /// corelay's fibres.
    Corelay(Mobility),
    /// A program of another runtime.
    Peer(&'static Peer),
    /// A function that a test supplies.
    #[cfg(test)]
    Fake(fn(&Spec) -> Result<FibreResult, Failure>),
}

/// The catalogue of runtimes, in the order of tables: corelay's, then the [peers](crate::peer).
pub static METHODS: LazyLock<Vec<Method>> = LazyLock::new(|| {
    let mut methods = vec![
        Method {
            name: "corelay",
            what: "corelay's fibres, which stay on the thread where they first run",
            kind: Kind::Corelay(Mobility::Stays),
        },
        Method {
            name: "corelay-migrating",
            what: "corelay's fibres, which may continue on another thread",
            kind: Kind::Corelay(Mobility::Migrates),
        },
    ];
    methods.extend(PEERS.iter().map(Method::peer));
    methods
});

impl From<peer::Error> for Failure {
    fn from(error: peer::Error) -> Self {
        match error {
            peer::Error::NotInstalled(what) => Self::NotInstalled(what),
            error => Self::Wrong(error.to_string()),
        }
    }
}

impl Method {
    fn peer(peer: &'static Peer) -> Self {
        Self {
            name: peer.name(),
            what: peer.what(),
            kind: Kind::Peer(peer),
        }
    }

    /// The method called `name`.
    ///
    /// ```
    /// use corelay_lab_bench::fibres::method::Method;
    /// assert_eq!(Method::named("corelay").unwrap().name(), "corelay");
    /// assert!(Method::named("magic").unwrap_err().contains("`magic`"));
    /// ```
    ///
    /// # Errors
    /// A clause that says that there is no such method.
    pub fn named(name: &str) -> Result<Self, String> {
        let found = METHODS.iter().find(|method| method.name == name).copied();
        found.ok_or_else(|| format!("there is no method `{name}`"))
    }

    /// The name on the command line and in results.
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// A description of the runtime, in a clause.
    pub fn what(&self) -> &'static str {
        self.what
    }

    /// Whether the fibres are corelay's own.
    pub fn is_own(&self) -> bool {
        matches!(self.kind, Kind::Corelay(_))
    }

    /// Builds the program of a peer, if the method needs one.
    ///
    /// # Errors
    /// The reason why the method cannot be run.
    pub(crate) fn prepare(&self) -> Result<(), Failure> {
        match self.kind {
            Kind::Corelay(_) => Ok(()),
            Kind::Peer(peer) => Ok(peer.prepare()?),
            #[cfg(test)]
            Kind::Fake(_) => Ok(()),
        }
    }

    /// Runs the benchmark once, on the CPUs of the calling thread, and checks the result. If a run
    /// was short and nothing was done in it, it is run again, for a second. Ends early when
    /// `interrupted` is set.
    ///
    /// # Errors
    /// The reason why there is no figure.
    pub fn run(&self, spec: &Spec, interrupted: &AtomicBool) -> Result<FibreResult, Failure> {
        let did_nothing = |outcome: &FibreResult| outcome.completed && outcome.operations == 0;
        let mut outcome = self.run_once(spec, interrupted)?;
        if did_nothing(&outcome)
            && let Length::Time(time) = spec.length
            && time < LONG_ENOUGH
        {
            let length = Length::Time(LONG_ENOUGH);
            outcome = self.run_once(&Spec { length, ..*spec }, interrupted)?;
        }
        match did_nothing(&outcome) {
            true => Err(Failure::Wrong(nothing_in_time(&outcome))),
            false => Ok(outcome),
        }
    }

    /// Runs the benchmark once and checks the result, in which nothing may have been done.
    fn run_once(&self, spec: &Spec, interrupted: &AtomicBool) -> Result<FibreResult, Failure> {
        let outcome = match self.kind {
            Kind::Corelay(mobility) => {
                own::run(spec, mobility, interrupted).map_err(Failure::Wrong)?
            }
            Kind::Peer(peer) => peer.run(spec, interrupted)?,
            #[cfg(test)]
            Kind::Fake(run) => run(spec)?,
        };
        spec.check_result(&outcome).map_err(Failure::Wrong)?;
        Ok(outcome)
    }

    /// A method that a test makes up.
    #[cfg(test)]
    pub(crate) fn fake(name: &'static str, run: fn(&Spec) -> Result<FibreResult, Failure>) -> Self {
        let (what, kind) = ("made up", Kind::Fake(run));
        Self { name, what, kind }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fibres::spec::Bench;
    use corelay_lab_measure::schema::fibres::PerFibre;

    fn run(method: fn(&Spec) -> Result<FibreResult, Failure>) -> Result<FibreResult, Failure> {
        let spec = Spec {
            bench: Bench::Yield,
            processors: 2,
            fibres: 4,
            length: Length::Time(Duration::from_millis(10)),
            seed: 1,
            chains: false,
        };
        Method::fake("made up", method).run(&spec, &AtomicBool::new(false))
    }

    /// A result in which each of the four fibres has done `each` operations.
    fn result(spec: &Spec, each: u64) -> FibreResult {
        let Length::Time(time) = spec.length else {
            unreachable!("the run ends by time")
        };
        FibreResult {
            operations: 4 * each,
            wall_s: time.as_secs_f64(),
            per_fibre: PerFibre::of(vec![each; 4]),
            completed: true,
            ..FibreResult::default()
        }
    }

    #[test]
    fn short_run_in_which_nothing_was_done_is_repeated_for_a_second() {
        let late = run(|spec| {
            let is_short = spec.length != Length::Time(LONG_ENOUGH);
            Ok(result(spec, if is_short { 0 } else { 2 }))
        });
        assert_eq!(late.map(|r| (r.operations, r.wall_s)), Ok((8, 1.0)));
        let prompt = run(|spec| Ok(result(spec, 1)));
        assert_eq!(prompt.map(|r| (r.operations, r.wall_s)), Ok((4, 0.01)));
        let idle = run(|spec| Ok(result(spec, 0)));
        let why = "wrong result: 0 operations in 1 s";
        assert_eq!(idle, Err(Failure::Wrong(why.to_owned())));
    }
}
