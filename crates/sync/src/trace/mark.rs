//! What a kind of event is called.

/// A kind of event: its name, and what its numbers are called. A `static` beside the code that
/// records it, so that an event is told by one pointer.
///
/// Names are for people and for the UI that they are shown in, where events of one name have
/// one colour: few and short ones, not one for each object.
///
/// ```
/// use corelay_sync::trace::Mark;
///
/// static SORT: Mark = Mark::new("sort").with_args("words", "bytes");
/// assert_eq!(SORT.name(), "sort");
/// assert_eq!(SORT.args().collect::<Vec<_>>(), ["words", "bytes"]);
/// ```
#[derive(Debug)]
pub struct Mark {
    name: &'static str,
    /// Empty where there is no such number.
    args: [&'static str; 2],
}

impl Mark {
    /// Events of that name, without numbers.
    pub const fn new(name: &'static str) -> Self {
        Self {
            name,
            args: ["", ""],
        }
    }

    /// The events have a number: what it is called.
    pub const fn with_arg(self, name: &'static str) -> Self {
        self.with_args(name, "")
    }

    /// The events have two numbers: what they are called.
    pub const fn with_args(mut self, first: &'static str, second: &'static str) -> Self {
        self.args = [first, second];
        self
    }

    /// What the events are called.
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// What their numbers are called: none, one or two.
    pub fn args(&self) -> impl Iterator<Item = &'static str> {
        self.args.into_iter().filter(|name| !name.is_empty())
    }
}

/// The numbers of an event: made of nothing, of one or of two.
///
/// ```
/// use corelay_sync::trace::Args;
///
/// assert_eq!(Args::from(7).0, [7, 0]);
/// assert_eq!(Args::from((7, 8)).0, [7, 8]);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Args(pub [u64; 2]);

impl From<()> for Args {
    fn from((): ()) -> Self {
        Self::default()
    }
}

impl From<u64> for Args {
    fn from(only: u64) -> Self {
        Self([only, 0])
    }
}

impl From<(u64, u64)> for Args {
    fn from((first, second): (u64, u64)) -> Self {
        Self([first, second])
    }
}
