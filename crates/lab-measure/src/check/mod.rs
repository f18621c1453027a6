//! Whether each structure, shared by each method, is linearizable: random histories, recorded and
//! checked.
//!
//! The clients of [`Recorded`] are [workers](crate::workload::worker), so each method of the
//! catalogue runs them as it runs any workload; a method that is added there is checked, too. The
//! concurrent structures, the rivals of the plain ones, have a method of their own, [`DIRECT`].
//! Tests and `corelay lab check` call the same body, [`Checker::check`].
//!
//! ```text
//!   Structure × Method ─► Contender ─┐
//!                                    ├─► Round: a history of one object ─► Kind::judge
//!   seed ─► actions of each client ──┘      (all clients at once)          (corelay-history)
//! ```
//!
//! The same seed gives the same actions, but not the same history: the machine chooses who meets
//! whom. A right history proves nothing about those that did not occur; so a check says how many of
//! its calls overlapped another one.
//!
//! | module | idea |
//! |---|---|
//! | `structure` | the structures |
//! | `action` | requests to them, and replies |
//! | `kind` | kinds of structures: the choice of actions, and the model |
//! | `round` | the making of one history |
//! | `worker` | clients that record |
//! | `direct` | concurrent structures without a method |

mod action;
mod direct;
mod kind;
mod round;
mod structure;
#[cfg(test)]
mod tests;
mod worker;

pub use direct::NAME as DIRECT;
pub use structure::{STRUCTURES, Structure};
pub use worker::Recorded;

use crate::measure::crew::Crew;
use crate::measure::slice;
use crate::method::{
    Contender, Entry, Form, Kind as MethodKind, Method, Schedule, SetupLimit, any, flat,
};
use crate::workload::point::Point;
use crate::workload::random::{Choice, Distribution, Random};
pub(crate) use action::Action;
use action::Reply;
use corelay_history::History;
use corelay_sync::facade::atomic::{AtomicBool, Ordering};
use kind::Verdict;
use round::Round;
use serde::Serialize;
use std::sync::Arc;
use worker::Board;

/// Trustees of dedicated delegation.
pub const SERVERS: usize = 1;

/// Objects of a contender. Each history has an object of its own, so a check with more histories
/// sets its method up again.
const OBJECTS: u64 = 256;

/// The methods that are checked, in the order of tables: all that answer to several threads, those forms of delegation
/// that the catalogue leaves out, and the one of concurrent structures.
pub fn methods() -> Vec<Entry<Recorded>> {
    let mut methods: Vec<Entry<Recorded>> = any();
    methods.retain(|entry| entry.form != Form::OneWay && entry.method.kind() != MethodKind::Alone);
    let checked = |method, form, what| Entry {
        method,
        form,
        what,
        compared: None,
        schedule: Schedule::Never("is checked only"),
    };
    methods.extend([
        checked(
            flat::waiting(),
            Form::Waits,
            "corelay's flat delegation, one call at a time (`apply`)",
        ),
        direct::entry(),
    ]);
    methods
}

/// Whether `structure` is shared by `method`: a plain structure by any but `direct`, a concurrent
/// one by that alone.
pub fn is_pair(structure: &Structure, method: &Method<Recorded>) -> bool {
    structure.is_concurrent() == (method.name() == DIRECT)
}

/// The size of a check.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Plan {
    /// All threads, trustees and actors included.
    pub threads: usize,
    /// Operations of each client in a history. What the last one reads at the end comes on top.
    pub operations: usize,
    /// Histories of each pair.
    pub histories: u64,
    /// The seed of the clients' actions.
    pub seed: u64,
}

/// The histories of one structure shared by one method, and what the checker said of them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Checked {
    /// The structure's name.
    pub structure: &'static str,
    /// The method's name.
    pub method: &'static str,
    /// Histories recorded.
    pub histories: u64,
    /// Their calls.
    pub calls: u64,
    /// The calls during which another one was in flight.
    pub overlapping: u64,
    /// Histories that no order explains.
    pub wrong: u64,
    /// Histories on which the checker gave up: they may be right or wrong.
    pub undecided: u64,
    /// The shortest counterexample.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub counterexample: Option<Counterexample>,
    /// A sentence that says why the pair was not checked to the end: a client panicked, or calls
    /// were lost.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failure: Option<String>,
}

impl Checked {
    /// Whether nothing wrong was found.
    pub fn is_right(&self) -> bool {
        self.wrong == 0 && self.failure.is_none()
    }
}

/// The few calls of a history that no order explains. The lesser of two is easier to read.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Counterexample {
    /// The number of states that were possible before the calls.
    pub states: usize,
    /// The number of the calls.
    pub calls: usize,
    /// A picture of them.
    pub picture: String,
}

/// The threads that make histories, and the size of a check.
#[derive(Debug)]
pub struct Checker {
    plan: Plan,
    crew: Crew,
    board: &'static Board,
}

impl Checker {
    /// Starts the threads.
    ///
    /// # Errors
    /// A sentence, if the system gives fewer threads.
    pub fn new(plan: Plan) -> Result<Self, String> {
        let threads = plan.threads;
        let crew = Crew::new(&vec![None; threads]).map_err(|error| {
            format!("--threads: the system gave fewer than {threads} threads: {error}")
        })?;
        // A workload is copied into threads, which do not say when they end. The leak is some bytes
        // for each check of a program's life.
        let board = Box::leak(Box::default());
        Ok(Self { plan, crew, board })
    }

    /// Records and checks the histories of a pair, until Ctrl-C; calls `tick` after each.
    ///
    /// # Errors
    /// A sentence, if the method cannot be set up.
    pub fn check(
        &self,
        structure: &'static Structure,
        method: Method<Recorded>,
        interrupted: &AtomicBool,
        mut tick: impl FnMut(),
    ) -> Result<Checked, String> {
        let mut checked = Checked {
            structure: structure.name,
            method: method.name(),
            ..Checked::default()
        };
        let mut seeds = Random::new(self.plan.seed);
        // Relaxed: the flag carries no data.
        let is_over = |checked: &Checked| {
            let is_done = checked.histories == self.plan.histories || checked.failure.is_some();
            is_done || interrupted.load(Ordering::Relaxed)
        };
        while !is_over(&checked) {
            let objects = OBJECTS.min(self.plan.histories - checked.histories);
            let mut contender = self.contender(structure, method, objects)?;
            for var in 0..objects as usize {
                if is_over(&checked) {
                    break;
                }
                match self.record(structure, &contender, var, seeds.next()) {
                    Ok(history) => checked.add(structure, &history),
                    Err(why) => checked.failure = Some(why),
                }
                tick();
            }
            // Jobs drop the contender before they send their result, so this is its only owner.
            let _ = Arc::get_mut(&mut contender).map(|contender| contender.end());
        }
        Ok(checked)
    }

    /// Sets the method up with so many objects.
    fn contender(
        &self,
        structure: &'static Structure,
        method: Method<Recorded>,
        objects: u64,
    ) -> Result<Arc<dyn Contender>, String> {
        let mut point = Point {
            servers: SERVERS,
            vars: objects,
            ..Point::small(self.plan.threads)
        };
        point.adjust(&method);
        point.window = method.window_at(&point);
        let board = self.board;
        let workload = Recorded { structure, board };
        let contender = method.build(workload, &point, &SetupLimit::default());
        Ok(Arc::from(contender?))
    }

    /// Records one history, of the object number `var`.
    fn record(
        &self,
        structure: &Structure,
        contender: &Arc<dyn Contender>,
        var: usize,
        seed: u64,
    ) -> Result<History<Action, Reply>, String> {
        let clients = contender.clients().len();
        let operations = self.plan.operations;
        let round = Round::new(var, structure.kind, clients, operations, seed);
        let round = Arc::new(round);
        self.board.put(Some(Arc::clone(&round)));
        // Clients choose their operations by the round, and end by themselves.
        let (draw, never) = (
            Distribution::new(Choice::Uniform, 1, seed),
            AtomicBool::new(false),
        );
        let ran = slice::run(&self.crew, contender, &draw, None, 0, None, &never);
        self.board.put(None);
        ran.map_err(|panic| format!("a client panicked: {panic}"))?;
        round.history(operations)
    }
}

impl Checked {
    /// Adds a history and what its kind says of it.
    fn add(&mut self, structure: &Structure, history: &History<Action, Reply>) {
        self.histories += 1;
        self.calls += history.len() as u64;
        self.overlapping += overlapping(history);
        match structure.kind.judge(history) {
            Verdict::Right => {}
            Verdict::GaveUp => self.undecided += 1,
            Verdict::Wrong(found) => {
                self.wrong += 1;
                let shortest = self.counterexample.take().into_iter();
                self.counterexample = shortest.chain([found]).min();
            }
        }
    }
}

/// The number of calls during which another one was in flight.
fn overlapping(history: &History<Action, Reply>) -> u64 {
    let ended = |at: Option<u64>| at.unwrap_or(u64::MAX);
    let spans = history.calls();
    let mut spans: Vec<_> = spans
        .map(|(_, call)| (call.invoked(), ended(call.ended())))
        .collect();
    spans.sort_unstable();
    let mut overlap = vec![false; spans.len()];
    // The call that ends last of those before.
    let mut last = 0;
    for at in 1..spans.len() {
        if spans[at].0 <= spans[last].1 {
            (overlap[at], overlap[last]) = (true, true);
        }
        if spans[at].1 > spans[last].1 {
            last = at;
        }
    }
    overlap.into_iter().map(u64::from).sum()
}
