//! Whose fibres run the benchmarks.

use super::migrate::Mobility;
use super::own;
use super::spec::{Outcome, Spec};
use corelay_sync::facade::atomic::AtomicBool;

/// Why a method has no figure.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Failure {
    /// It is not there: what it is built from is missing on this machine, and what.
    NotInstalled(String),
    /// It failed, hung, or came out wrong: one sentence.
    Wrong(String),
}

/// A runtime of fibres, by name.
#[derive(Clone, Copy, Debug)]
pub struct Method {
    /// On the command line and in results.
    pub name: &'static str,
    prepare: fn() -> Result<(), Failure>,
    run: fn(&Spec, &AtomicBool) -> Result<Outcome, Failure>,
}

/// All of them, in the order of tables.
pub static METHODS: &[Method] = &[
    Method {
        name: "corelay",
        prepare: || Ok(()),
        run: |spec, interrupted| {
            own::run(spec, Mobility::Stays, interrupted).map_err(Failure::Wrong)
        },
    },
    Method {
        name: "corelay-migrating",
        prepare: || Ok(()),
        run: |spec, interrupted| {
            own::run(spec, Mobility::Migrates, interrupted).map_err(Failure::Wrong)
        },
    },
];

impl Method {
    /// The method of that name.
    ///
    /// # Errors
    /// A clause that says that there is none.
    pub fn named(name: &str) -> Result<Self, String> {
        let found = METHODS.iter().find(|method| method.name == name).copied();
        found.ok_or_else(|| format!("there is no method `{name}`"))
    }

    /// Builds what has to be built before the first run.
    ///
    /// # Errors
    /// Why it cannot be run.
    pub fn prepare(&self) -> Result<(), Failure> {
        (self.prepare)()
    }

    /// Runs the benchmark once, on the CPUs of the calling thread; ends early once
    /// `interrupted` is set, if it can. What came of it has been [judged](Spec::judge).
    ///
    /// # Errors
    /// Why there is no figure.
    pub fn run(&self, spec: &Spec, interrupted: &AtomicBool) -> Result<Outcome, Failure> {
        let outcome = (self.run)(spec, interrupted)?;
        spec.judge(&outcome).map_err(Failure::Wrong)?;
        Ok(outcome)
    }
}
