//! The few calls that no order explains.

use crate::history::Call;
use crate::timeline;
use std::fmt;

/// A call of a counterexample.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Bar<O, R> {
    pub(crate) thread: usize,
    /// The call's number in its thread, from 1.
    pub(crate) number: usize,
    pub(crate) call: Call<O, R>,
    /// The call in words.
    pub(crate) text: String,
    /// Whether the call was in flight when the part begins, and may have taken effect before.
    pub(crate) cut: bool,
}

/// The states that were possible before the calls of a counterexample.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Start {
    pub(crate) states: Vec<String>,
    /// Whether the counterexample begins where the history does, so there is one state.
    pub(crate) whole: bool,
}

/// The few calls that no order explains, with the possible states before them.
///
/// Its `Display` is a picture: a line for each thread, time to the right.
/// ```text
/// not linearizable: nothing explains `read -> 0` (call 2 of thread 1)
///
/// thread 0  |- write 1 ---------------------------|
/// thread 1     |- read -> 1 -|   |- read -> 0 -|      <- not explained
///
/// The state was 0 at first.
/// ```
/// Calls that are missing from the picture make no difference: whether or not they took effect, the
/// rest is not explained. Each call in it does make a difference: without its output and its return
/// there would be an explanation. (If trying that would take too long, there are more calls than
/// needed; no more than the last 40 are drawn.)
///
/// If many calls precede, the picture begins in the middle of the history, and lists the possible
/// states at that point, or their number if they are many or long: *none* of them leads to an
/// explanation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Counterexample<O, R> {
    bars: Vec<Bar<O, R>>,
    unexplained: usize,
    key: Option<String>,
    /// The operations of calls that are left out, and could take effect at any time. They make no
    /// difference.
    open: Vec<String>,
    left_out: usize,
    start: Start,
}

impl<O, R> Counterexample<O, R> {
    pub(crate) fn new(
        bars: Vec<Bar<O, R>>,
        unexplained: usize,
        key: Option<String>,
        open: Vec<String>,
        left_out: usize,
        start: Start,
    ) -> Self {
        Self {
            bars,
            unexplained,
            key,
            open,
            left_out,
            start,
        }
    }

    /// The calls, each with its thread, in the order of their invocations.
    ///
    /// ```
    /// use corelay_history::model::queue::{Operation, Output, Queue};
    /// use corelay_history::{Call, Failure, History, check};
    ///
    /// let mut history = History::new();
    /// history.push(0, Call::returned(Operation::Enqueue(1), 0..=1, Output::Enqueued));
    /// history.push(0, Call::returned(Operation::Enqueue(2), 2..=3, Output::Enqueued));
    /// history.push(1, Call::returned(Operation::Dequeue, 4..=5, Output::Dequeued(Some(2))));
    /// let Err(Failure::NotLinearizable(found)) = check(&Queue::new(), &history) else {
    ///     panic!("the queue overtakes");
    /// };
    /// // That 2 was enqueued does not matter: 1 is first.
    /// let calls: Vec<_> = found.calls().map(|(_, call)| call.operation()).collect();
    /// assert_eq!(calls, [&Operation::Enqueue(1), &Operation::Dequeue]);
    /// assert_eq!(found.unexplained().0, 1);
    /// ```
    pub fn calls(&self) -> impl Iterator<Item = (usize, &Call<O, R>)> {
        self.bars.iter().map(|bar| (bar.thread, &bar.call))
    }

    /// The call, with its thread, whose output nothing explains.
    pub fn unexplained(&self) -> (usize, &Call<O, R>) {
        let bar = &self.bars[self.unexplained];
        (bar.thread, &bar.call)
    }

    /// The possible states before these calls; exactly one if the calls are the history's first.
    pub fn states(&self) -> &[String] {
        &self.start.states
    }
}

/// The most calls that are drawn.
const DRAWN: usize = 40;
/// The most states that are named; more are only counted.
const NAMED: usize = 8;
/// The longest state, in characters, that is named.
const LONG: usize = 60;

impl<O, R> fmt::Display for Counterexample<O, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let culprit = &self.bars[self.unexplained];
        write!(
            f,
            "not linearizable: nothing explains `{}` (call {} of thread {}",
            culprit.text, culprit.number, culprit.thread
        )?;
        if let Some(key) = &self.key {
            write!(f, "; key {key}")?;
        }
        writeln!(f, ")\n")?;
        // The last calls, and the one that is not explained.
        let skipped = self.bars.len().saturating_sub(DRAWN).min(self.unexplained);
        let drawn = &self.bars[skipped..self.bars.len().min(skipped + DRAWN)];
        f.write_str(&timeline::draw(drawn, Some(self.unexplained - skipped)))?;
        if drawn.len() < self.bars.len() {
            writeln!(
                f,
                "\n{} of {} calls are drawn.",
                drawn.len(),
                self.bars.len()
            )?;
        }
        writeln!(f)?;
        let states = &self.start.states;
        let named = states.len() <= NAMED && states.iter().all(|s| s.chars().count() <= LONG);
        match (self.start.whole, named) {
            (true, true) => writeln!(f, "The state was {} at first.", states.join(", "))?,
            (true, false) => writeln!(f, "The history begins here.")?,
            (false, true) => writeln!(
                f,
                "The state before these calls: one of {}. None leads to an explanation.",
                states.join(", ")
            )?,
            (false, false) => writeln!(
                f,
                "The state before these calls: one of {} that were possible. None leads to an \
                 explanation.",
                states.len()
            )?,
        }
        if self.bars.iter().any(|bar| bar.cut) {
            writeln!(
                f,
                "A call that begins with `..` may have taken effect before."
            )?;
        }
        let of = if self.key.is_some() {
            " of this key"
        } else {
            ""
        };
        match self.left_out {
            0 => {}
            1 => write!(f, "1 other call{of} is left out")?,
            n => write!(f, "{n} other calls{of} are left out")?,
        }
        if !self.open.is_empty() && self.open.len() <= NAMED {
            let open: Vec<String> = self.open.iter().map(|text| format!("`{text}`")).collect();
            write!(
                f,
                "; whether {} took effect makes no difference",
                open.join(", ")
            )?;
        }
        if self.left_out > 0 {
            writeln!(f, ".")?;
        }
        Ok(())
    }
}
