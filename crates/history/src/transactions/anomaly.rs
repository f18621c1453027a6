//! Anomalies as they are found, and as they are shown.

use super::graph::Dependency;
use super::index::{Index, Transaction};
use super::level::{Kind, Level};
use super::operation::{Operation, Outcome};
use crate::counterexample::Bar;
use crate::timeline;
use std::collections::BTreeMap;
use std::error::Error;
use std::fmt::{self, Debug};

/// The most anomalies of a kind that are kept; more are only counted.
pub(super) const KEPT: usize = 16;
/// The most anomalies that are printed.
const PRINTED: usize = 3;
/// The most operations of a transaction, and values of a list, that are shown.
const SHOWN: usize = 8;

/// The anomalies of a level that are found in a history.
pub(super) struct Found<'i, K> {
    index: &'i Index<'i, K>,
    anomalies: Anomalies<K>,
}

impl<'i, K: Clone> Found<'i, K> {
    pub(super) fn new(index: &'i Index<'i, K>, level: Level) -> Self {
        Self {
            index,
            anomalies: Anomalies {
                level,
                counts: BTreeMap::new(),
                kept: Vec::new(),
            },
        }
    }

    /// Adds an anomaly of these transactions, if the level forbids it. `what` calls them T1, T2 and
    /// so on.
    pub(super) fn add(&mut self, kind: Kind, nodes: &[usize], what: impl FnOnce() -> String) {
        self.add_cycle(kind, nodes, || (what(), Vec::new()));
    }

    /// Adds an anomaly with the edges between its transactions.
    pub(super) fn add_cycle(
        &mut self,
        kind: Kind,
        nodes: &[usize],
        what: impl FnOnce() -> (String, Vec<Step>),
    ) {
        if !self.anomalies.level.forbids(kind) {
            return;
        }
        let count = self.anomalies.counts.entry(kind).or_default();
        *count += 1;
        if *count > KEPT {
            return;
        }
        let bar = |(n, node): (usize, &usize)| {
            let node = &self.index.nodes[*node];
            Bar {
                thread: node.thread,
                number: node.number + 1,
                call: node.call.clone(),
                text: format!("T{}", n + 1),
                cut: false,
            }
        };
        let (what, steps) = what();
        self.anomalies.kept.push(Anomaly {
            kind,
            bars: nodes.iter().enumerate().map(bar).collect(),
            steps,
            what,
        });
    }

    pub(super) fn into_anomalies(mut self) -> Result<(), Anomalies<K>> {
        self.anomalies.kept.sort_by_key(|a| (a.kind, a.bars.len()));
        match self.anomalies.counts.is_empty() {
            true => Ok(()),
            false => Err(self.anomalies),
        }
    }
}

/// The anomalies for which a history violates a level. Its `Debug` is its `Display`, so that
/// `unwrap` shows the pictures.
#[derive(Clone, PartialEq, Eq)]
pub struct Anomalies<K = u64> {
    level: Level,
    counts: BTreeMap<Kind, usize>,
    kept: Vec<Anomaly<K>>,
}

impl<K> Anomalies<K> {
    /// The level that is violated.
    pub fn level(&self) -> Level {
        self.level
    }

    /// The kinds that were found, the gravest first, each with the number of anomalies.
    ///
    /// Of the transactions of a *knot*, each of which must come before each other, a cycle of the
    /// gravest kind is found, not all cycles. So the numbers are lower bounds.
    pub fn counts(&self) -> impl Iterator<Item = (Kind, usize)> {
        self.counts.iter().map(|(kind, count)| (*kind, *count))
    }

    /// The anomalies, the gravest first; of each kind no more than 16.
    pub fn iter(&self) -> impl Iterator<Item = &Anomaly<K>> {
        self.kept.iter()
    }

    /// The gravest anomaly.
    pub fn worst(&self) -> &Anomaly<K> {
        &self.kept[0]
    }
}

/// Transactions that show that a history violates a level.
///
/// `Display` prints a picture: the transactions, the reasons for their order, and a line for each
/// thread, time to the right.
/// ```text
/// G2-item (write skew)
///
/// T1  transaction 1 of thread 0: read "x" -> absent, write "y" 1
/// T2  transaction 1 of thread 1: read "y" -> absent, write "x" 1
///
/// T1 -rw("x")-> T2: T1 did `read "x" -> absent`, which T2 overwrote by `write "x" 1`.
/// T2 -rw("y")-> T1: T2 did `read "y" -> absent`, which T1 overwrote by `write "y" 1`.
///
/// thread 0  |- T1 -----|
/// thread 1    |- T2 -----|
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Anomaly<K = u64> {
    pub(super) kind: Kind,
    pub(super) bars: Vec<Bar<Vec<Operation<K>>, Outcome>>,
    pub(super) steps: Vec<Step>,
    /// A sentence; empty for a cycle, whose steps say it all.
    what: String,
}

/// A reason why a transaction of an anomaly comes before another.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Step {
    /// The number of the transaction that comes first, from 0, among
    /// [those of the anomaly](Anomaly::transactions).
    pub from: usize,
    /// The number of the one that comes after it.
    pub to: usize,
    /// The kind of dependency.
    pub dependency: Dependency,
    /// The key, as its `Debug` prints it; `None` for real time.
    pub key: Option<String>,
    /// The reason, as a sentence.
    pub why: String,
}

impl Step {
    /// The dependency in short, such as `rw("x")`.
    pub(super) fn label(&self) -> String {
        match &self.key {
            Some(key) => format!("{}({key})", self.dependency),
            None => self.dependency.to_string(),
        }
    }
}

impl<K> Anomaly<K> {
    /// The kind of anomaly.
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// The transactions, each with its thread. Those of a cycle come in its order.
    pub fn transactions(&self) -> impl Iterator<Item = (usize, &Transaction<K>)> {
        self.bars.iter().map(|bar| (bar.thread, &bar.call))
    }

    /// The edges of the cycle. The last one leads to the first transaction. Empty if the anomaly is
    /// no cycle.
    pub fn steps(&self) -> &[Step] {
        &self.steps
    }

    /// A sentence that says what is wrong. Empty for a cycle, where the [steps](Self::steps) say it.
    pub fn what(&self) -> &str {
        &self.what
    }
}

impl<K: Debug> Anomaly<K> {
    /// The operations of a transaction in words: if they are many, those of the keys of the cycle.
    pub(super) fn operations(&self, transaction: usize) -> Vec<String> {
        let all = self.bars[transaction].call.operation();
        let matters = |operation: &Operation<K>| {
            let key = format!("{:?}", operation.key());
            let mut steps = self.steps.iter();
            steps.any(|step| step.key.as_ref() == Some(&key))
        };
        let some = |operation: &&Operation<K>| all.len() <= SHOWN || matters(operation);
        let mut shown: Vec<String> = all.iter().filter(some).take(SHOWN).map(shorten).collect();
        if shown.len() < all.len() {
            shown.push(format!("and {} more", all.len() - shown.len()));
        }
        shown
    }

    /// The way in which a transaction ended, unless it has committed.
    pub(super) fn ending(&self, transaction: usize) -> &'static str {
        match self.bars[transaction].call.output() {
            Some(Outcome::Aborted) => ", aborted",
            Some(Outcome::Committed | Outcome::CommittedAt(_)) => "",
            None => ", outcome unknown",
        }
    }
}

/// The operation in words, without the middle of a long list.
pub(super) fn shorten<K: Debug>(operation: &Operation<K>) -> String {
    match operation {
        Operation::ReadList(key, values) if values.len() > SHOWN => {
            let text = |values: &[u64]| {
                let texts: Vec<String> = values.iter().map(u64::to_string).collect();
                texts.join(", ")
            };
            let (first, last) = (&values[..2], &values[values.len() - SHOWN / 2..]);
            format!("read {key:?} -> [{}, .., {}]", text(first), text(last))
        }
        other => other.to_string(),
    }
}

impl<K: Debug> fmt::Display for Anomaly<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}\n", self.kind)?;
        for (n, bar) in self.bars.iter().enumerate() {
            writeln!(
                f,
                "{}  transaction {} of thread {}{}: {}",
                bar.text,
                bar.number,
                bar.thread,
                self.ending(n),
                self.operations(n).join(", ")
            )?;
        }
        writeln!(f)?;
        if !self.what.is_empty() {
            writeln!(f, "{}", self.what)?;
        }
        for step in &self.steps {
            let (from, to) = (&self.bars[step.from].text, &self.bars[step.to].text);
            writeln!(f, "{from} -{}-> {to}: {}", step.label(), step.why)?;
        }
        write!(f, "\n{}", timeline::draw(&self.bars, None))
    }
}

impl<K: Debug> fmt::Display for Anomalies<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let counts = self.counts().map(|(kind, count)| format!("{count} {kind}"));
        let counts: Vec<String> = counts.collect();
        writeln!(f, "not {}: {}", self.level, counts.join(", "))?;
        // One of each kind.
        let of_kinds = self.kept.chunk_by(|a, b| a.kind == b.kind);
        for of_kind in of_kinds.take(PRINTED) {
            write!(f, "\n{}", of_kind[0])?;
        }
        if self.counts.len() > PRINTED {
            writeln!(f, "\nThe first {PRINTED} kinds are shown.")?;
        }
        Ok(())
    }
}

impl<K: Debug> Debug for Anomalies<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl<K: Debug> Error for Anomalies<K> {}
