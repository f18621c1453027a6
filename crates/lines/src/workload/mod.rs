//! The workloads: an object that clients share, and the operations that they make on it.

mod chain;
mod hash;
mod list;
mod memory;
mod number;
mod queue;
mod stack;

use corelay_coherence::pause;
pub(crate) use hash::Hash;
pub(crate) use list::List;
pub(crate) use queue::Queue;
pub(crate) use stack::Stack;
use std::cell::Cell;
use std::fmt;
use std::str::FromStr;

/// The number of values that a queue or a stack of `size` has room for, and of keys from which the
/// clients of a set choose: so half of the keys are in the set.
fn room(size: u32) -> u32 {
    2 * size
}

/// The object that all clients share, and its operations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Workload {
    /// A 64-bit number, to which clients add 1.
    FetchAdd,
    /// A sorted list of keys, each in a node of its own; 30 % updates.
    List,
    /// A FIFO queue in a ring buffer. A client puts a value and takes one in turn.
    Queue,
    /// A stack in an array. A client puts a value and takes one in turn.
    Stack,
    /// A hash table with as many buckets as keys, each key in a node of its own; 30 % updates.
    Hash,
}

impl Workload {
    /// All workloads.
    pub const ALL: [Self; 5] = [
        Self::FetchAdd,
        Self::List,
        Self::Queue,
        Self::Stack,
        Self::Hash,
    ];

    /// The usual size of a structure: the entries of the list of the ffwd slides.
    pub const SIZE: u32 = 1024;

    /// The largest size. With it a warm-up of the list follows some 500 million links.
    pub const MAX_SIZE: u32 = 16_384;

    /// The workload's name on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Self::FetchAdd => "fetch-add",
            Self::List => "list",
            Self::Queue => "queue",
            Self::Stack => "stack",
            Self::Hash => "hash",
        }
    }

    /// The object and its operations in a few words.
    pub const fn describe(self) -> &'static str {
        match self {
            Self::FetchAdd => "one number, to which each operation adds 1",
            Self::List => "one sorted list, 70 % lookups, 15 % insertions, 15 % removals",
            Self::Queue => "one ring buffer, put and take in turn",
            Self::Stack => "one array, put and take in turn",
            Self::Hash => "as many buckets as keys, 70 % lookups, 15 % insertions, 15 % removals",
        }
    }

    /// Whether the workload is a structure, which has a size.
    pub const fn has_size(self) -> bool {
        !matches!(self, Self::FetchAdd)
    }
}

impl fmt::Display for Workload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Workload {
    type Err = WorkloadError;

    fn from_str(text: &str) -> Result<Self, WorkloadError> {
        let found = Self::ALL.into_iter().find(|one| one.name() == text);
        found.ok_or_else(|| WorkloadError(text.to_owned()))
    }
}

/// The name of no [`Workload`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorkloadError(String);

impl fmt::Display for WorkloadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = Workload::ALL.map(Workload::name).join(", ");
        write!(f, "`{}` is not a workload; give one of {names}", self.0)
    }
}

impl std::error::Error for WorkloadError {}

/// The shared object of a workload.
pub(crate) trait Object: Send + 'static {
    /// The choice that a client makes for an operation. Its closure captures it.
    type Request: Send + 'static;

    /// An object with `size` entries.
    fn new(size: u32) -> Self;

    /// Operations that all clients together make before counting begins, at least: enough that they
    /// have used most of the memory.
    fn warm_up(size: u32) -> u64;

    /// Chooses the next operation of `client`.
    fn choose(client: &mut Client) -> Self::Request;

    /// Does an operation. The method decides on which thread.
    fn serve(&mut self, request: Self::Request) -> u64;

    /// The number of operations that were done.
    ///
    /// # Panics
    /// If the object is damaged.
    fn served(&self) -> u64;
}

/// A client's own state: it chooses the operations.
pub(crate) struct Client {
    random: u64,
    room: u32,
    made: u64,
}

impl Client {
    /// Client number `number` of an object that begins with `size` entries.
    pub(crate) fn new(number: usize, size: u32) -> Self {
        Self {
            random: number as u64,
            room: room(size),
            made: 0,
        }
    }

    /// The closure of this client's next operation. It first pauses for the steps of an operation,
    /// so that other threads find it under way.
    pub(crate) fn operation<O: Object>(
        &mut self,
    ) -> impl FnOnce(&mut O) -> u64 + Send + 'static + use<O> {
        let request = O::choose(self);
        self.made += 1;
        move |object| {
            (0..WORK.get()).for_each(|_| pause());
            object.serve(request)
        }
    }

    /// The number of keys and of values from which this client chooses.
    fn room(&self) -> u32 {
        self.room
    }

    /// The number of operations before this one.
    fn made(&self) -> u64 {
        self.made
    }

    /// A number below `bound`, by chance (splitmix64: Steele, Lea and Flood, OOPSLA 2014).
    fn below(&mut self, bound: u32) -> u32 {
        self.random = self.random.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.random;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^= mixed >> 31;
        (((mixed >> 32) * u64::from(bound)) >> 32) as u32
    }
}

thread_local! {
    /// Steps that an operation takes. The closure does not capture it: its size is part of what is
    /// counted.
    static WORK: Cell<u64> = const { Cell::new(1) };
}

/// Sets how many steps an operation takes on this thread's machine: see
/// [`Setup::work`](crate::Setup).
pub(crate) fn set_work(steps: u64) {
    WORK.set(steps);
}

#[cfg(test)]
mod tests {
    use super::*;
    use corelay_coherence::{Counts, Machine, counts, restart_counts, spawn};
    use corelay_locks::Ttas;
    use corelay_sync::{Session, Shared};
    use std::rc::Rc;

    /// Serves requests behind a `Ttas`, one after the other, each at a place of two. The object was
    /// made at the first one. Returns for each request how many lines moved, and how many were
    /// claimed.
    pub(super) fn in_turn<O: Object>(
        size: u32,
        requests: impl IntoIterator<Item = (usize, O::Request)>,
    ) -> Vec<(u64, u64)> {
        let (places, requests): (Vec<_>, Vec<_>) = requests.into_iter().unzip();
        let main = move || {
            let lock = Rc::new(Ttas::new(O::new(size)));
            let serve = |request| {
                let lock = Rc::clone(&lock);
                restart_counts();
                let thread = spawn(move || lock.session().apply(|object| object.serve(request)));
                thread.join().unwrap();
                let all = counts().into_iter().fold(Counts::default(), |a, b| a + b);
                (all.lines(), all.claims())
            };
            requests.into_iter().map(serve).collect()
        };
        // SAFETY: the lock takes no thread-local of `std`.
        #[allow(unsafe_code)]
        unsafe {
            corelay_coherence::run(Machine::new(1, 2, 1).unwrap(), places, main)
        }
    }

    #[test]
    fn names_are_read_and_others_refused_with_the_list() {
        for one in Workload::ALL {
            assert_eq!(one.name().parse(), Ok(one));
        }
        let error = "tree".parse::<Workload>().unwrap_err().to_string();
        assert!(error.contains("`tree`") && error.contains("fetch-add, list, queue, stack, hash"));
    }

    #[test]
    fn numbers_by_chance_reach_all_below_the_bound() {
        let mut client = Client::new(3, 1);
        let mut seen = [0; 10];
        (0..1000).for_each(|_| seen[client.below(10) as usize] += 1);
        assert!(
            seen.iter().all(|&times| (50..200).contains(&times)),
            "{seen:?}"
        );
    }
}
