//! Sequential structures that threads share: lists, maps, queues, a heap, a cache.
//!
//! Each variable is a structure. At the start it holds a number of keys (`size`). Of the
//! operations, a percentage (`updates`) inserts or removes a key, in turn; the others read.
//!
//! | structure | module | read | insert | remove |
//! |---|---|---|---|---|
//! | `list`, `skip-list`, `tree` | [`list`], [`skip_list`], [`tree`] | look a key up | a key | a key |
//! | `hash` | [`hash`] | look a key up | a key | a key |
//! | `lru` | [`lru`] | use a key | a key; the one not used for longest goes | – |
//! | `queue` | [`queue`] | the front | at the back | the front |
//! | `stack` | [`stack`] | the top | at the top | the top |
//! | `heap` | [`heap`] | the largest | any number | the largest |
//!
//! Structures with keys draw them from twice as many as they hold, so about half of the look-ups
//! find their key. With several structures a key belongs to one of them: they are the parts
//! (shards) of one larger structure. The distribution of choices is that of the keys; the keys
//! that are chosen often are spread over parts, and over the whole of each.
//!
//! `lazy-list` is `list` with few updates: long reads that structures with many locks do side by
//! side, and a trustee one after the other.
//!
//! # What is checked
//! Each object counts its operations, and keeps the number and the sum of the keys that it should
//! hold. After a run the structure must hold just these; a sorted one must be sorted.
//!
//! A new structure takes a file with an implementation of [`Structure`], its `mod` and a line in
//! [`visit`] here, and a line in the table of `corelay bench`.

pub mod hash;
pub mod heap;
pub mod list;
pub mod lru;
pub mod queue;
pub(crate) mod rivals;
pub mod skip_list;
pub mod stack;
pub mod tree;

/// The structures.
pub use corelay_structures::seq;

use crate::method::{Entry, any};
use crate::schema::{Extra, Size};
use crate::workload::operation::{Operation, Workload};
use crate::workload::random::Random;
use std::fmt;
use std::marker::PhantomData;

/// The percentage of updates of `lazy-list` if `--updates` is not given.
pub const FEW_UPDATES: &str = "5";

/// The most keys in a structure.
pub const MAX_SIZE: u64 = 1 << 30;

/// A plain sequential structure of numbers.
pub trait Structure: Send + Sync + Sized + 'static {
    /// The name on the command line and in results.
    const NAME: &'static str;
    /// The size if `--size` is not given.
    const USUAL_SIZE: &'static str = "16384";
    /// The percentage of updates if `--updates` is not given.
    const USUAL_UPDATES: &'static str = "30";
    /// The name of the same workload with [`FEW_UPDATES`], if it has one.
    const NAME_IF_READ: Option<&'static str> = None;
    /// Memory for a key, in bytes, roughly.
    const BYTES_PER_KEY: u64;
    /// Whether operations name their key. Otherwise each insertion brings a new number.
    const HAS_KEYS: bool = true;
    /// Whether the structure removes keys itself when it is full. Then all updates insert.
    const EVICTS: bool = false;
    /// Whether a read changes the structure, so that no two threads may read at once.
    const READS_CHANGE: bool = false;
    /// Whether [`keys`](Self::keys) are in ascending order.
    const IS_SORTED: bool = false;

    /// An empty structure for about `size` keys.
    fn empty(size: usize) -> Self;

    /// Puts the first keys, which are in random order, into the one in which they are inserted.
    fn arrange(_keys: &mut [u64]) {}

    /// Structures that threads share without a lock or a trustee around them, as methods.
    fn rivals() -> Vec<Entry<SharedStructure<Self>>> {
        Vec::new()
    }

    /// All methods: those for any workload, and the rivals. Each implementation calls this module's
    /// function itself, so that their code is compiled once, here, and not in each crate that uses
    /// them.
    fn methods() -> Vec<Entry<SharedStructure<Self>>>;

    /// Reads a key, or the one that is next, without a change of the structure.
    fn look(&self, key: u64) -> Option<u64>;

    /// Reads a key, or the one that is next. Differs from [`look`](Self::look) only if
    /// [`READS_CHANGE`](Self::READS_CHANGE).
    fn read(&mut self, key: u64) -> Option<u64> {
        self.look(key)
    }

    /// Inserts a key, and enters into the ledger which keys came and went. Returns whether the key
    /// is new.
    fn insert(&mut self, key: u64, ledger: &mut Ledger) -> bool;

    /// Removes a key, or the one that is next, and enters it into the ledger.
    fn remove(&mut self, key: u64, ledger: &mut Ledger) -> Option<u64>;

    /// All keys.
    fn keys(&self) -> impl Iterator<Item = u64>;
}

/// The account of an object: its operations, and the keys that it should hold.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ledger {
    /// Operations so far.
    operations: u64,
    /// The number of the keys; of one client among several the difference that it made, modulo 2^64.
    keys: u64,
    /// The sum of the keys, modulo 2^64.
    sum: u64,
}

impl Ledger {
    /// Enters a key that came.
    #[inline(always)]
    pub fn came(&mut self, key: u64) {
        self.keys = self.keys.wrapping_add(1);
        self.sum = self.sum.wrapping_add(key);
    }

    /// Enters a key that went.
    #[inline(always)]
    pub fn went(&mut self, key: u64) {
        self.keys = self.keys.wrapping_sub(1);
        self.sum = self.sum.wrapping_sub(key);
    }

    /// Adds the ledger of another client of the same structures.
    fn add(&mut self, other: Self) {
        self.operations += other.operations;
        self.keys = self.keys.wrapping_add(other.keys);
        self.sum = self.sum.wrapping_add(other.sum);
    }
}

/// A shared object: a structure and its ledger.
#[derive(Debug)]
pub struct Kept<S> {
    structure: S,
    ledger: Ledger,
}

/// An operation on a structure.
#[derive(Clone, Copy, Debug)]
pub struct Access {
    kind: Kind,
    key: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Read,
    Insert,
    Remove,
}

impl<S: Structure> Operation<Kept<S>> for Access {
    type Answer = u64;

    #[inline]
    fn run(self, object: &mut Kept<S>) -> u64 {
        let (structure, ledger) = (&mut object.structure, &mut object.ledger);
        ledger.operations += 1;
        match self.kind {
            Kind::Read => structure.read(self.key).unwrap_or(0),
            Kind::Insert => structure.insert(self.key, ledger).into(),
            Kind::Remove => structure.remove(self.key, ledger).unwrap_or(0),
        }
    }
}

/// The workload: structures of one kind.
pub struct SharedStructure<S> {
    /// The workload's name.
    name: &'static str,
    /// Keys in each structure at the start, at least 1.
    pub size: u64,
    /// Percentage of operations that insert or remove.
    pub updates: u64,
    structure: PhantomData<fn() -> S>,
}

// Not derived: a derive would ask the same of the structure.
impl<S> Clone for SharedStructure<S> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<S> Copy for SharedStructure<S> {}
impl<S> PartialEq for SharedStructure<S> {
    fn eq(&self, other: &Self) -> bool {
        let of = |workload: &Self| (workload.name, workload.size, workload.updates);
        of(self) == of(other)
    }
}

impl<S: Structure> fmt::Debug for SharedStructure<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct(S::NAME)
            .field("size", &self.size)
            .field("updates", &self.updates)
            .finish()
    }
}

impl<S: Structure> SharedStructure<S> {
    /// Structures of `size` keys, at least 1, of whose operations `updates` percent update.
    pub fn new(size: u64, updates: u64) -> Self {
        Self {
            name: S::NAME,
            size,
            updates,
            structure: PhantomData,
        }
    }

    /// The same workload by its other name, if it has one.
    #[must_use]
    pub fn if_read(self) -> Self {
        Self {
            name: S::NAME_IF_READ.unwrap_or(S::NAME),
            ..self
        }
    }

    /// The usual workload of this name, if it is one of this structure.
    pub fn usual(name: &str) -> Option<Self> {
        let number = |text: &str| {
            text.parse()
                .expect("the usual size and updates are numbers")
        };
        let of = |updates| Self::new(number(S::USUAL_SIZE), number(updates));
        match name {
            _ if name == S::NAME => Some(of(S::USUAL_UPDATES)),
            _ if Some(name) == S::NAME_IF_READ => Some(of(FEW_UPDATES).if_read()),
            _ => None,
        }
    }

    /// The keys at the start, in the order in which they are inserted: every second possible key. A
    /// tree that gets them in their random order, which is always the same, has a depth of some
    /// 2 ln n.
    fn keys(self) -> Vec<u64> {
        let mut keys: Vec<u64> = (0..self.size).map(|n| 2 * n).collect();
        let mut random = Random::new(self.size);
        for last in (1..keys.len()).rev() {
            keys.swap(last, random.below(last as u64 + 1) as usize);
        }
        S::arrange(&mut keys);
        keys
    }

    /// Number of possible keys of a structure.
    fn range(self) -> u64 {
        2 * self.size
    }

    /// Memory for the keys of a structure, in bytes, roughly.
    pub fn bytes(self) -> u64 {
        S::BYTES_PER_KEY.saturating_mul(self.size)
    }
}

impl<S: Structure> Workload for SharedStructure<S> {
    type Object = Kept<S>;
    type Operation = Access;

    fn name(self) -> &'static str {
        self.name
    }

    fn object(self) -> Kept<S> {
        let mut ledger = Ledger::default();
        let mut structure = S::empty(self.size as usize);
        for key in self.keys() {
            structure.insert(key, &mut ledger);
        }
        Kept { structure, ledger }
    }

    fn methods() -> Vec<Entry<Self>> {
        S::methods()
    }

    fn operations(self, mut random: Random) -> impl FnMut() -> Access + Send + 'static {
        let mut is_insert = random.below(2) == 0;
        move || {
            let kind = if random.below(100) >= self.updates {
                Kind::Read
            } else {
                // In turn, so that a queue neither grows nor runs dry.
                is_insert = S::EVICTS || !is_insert;
                if is_insert {
                    Kind::Insert
                } else {
                    Kind::Remove
                }
            };
            let key = random.next();
            Access { kind, key }
        }
    }

    /// With keys, a choice is that of a key of one of the structures.
    fn choices(self, vars: u64) -> u64 {
        match S::HAS_KEYS {
            true => vars.saturating_mul(self.range()),
            false => vars,
        }
    }

    fn requests(
        self,
        choices: u64,
        random: Random,
    ) -> impl FnMut(usize) -> (usize, Access) + Send + 'static {
        let range = self.range();
        let (vars, mut next) = (choices / range, self.operations(random));
        move |choice| {
            let access = next();
            if !S::HAS_KEYS {
                return (choice, access);
            }
            // A single structure needs no choosing, for any method.
            let choice = choice as u64;
            let (var, rank) = match vars {
                1 => (0, choice),
                vars => (choice % vars, choice / vars),
            };
            let key = spread(rank, range);
            (var as usize, Access { key, ..access })
        }
    }

    fn check(self, object: &Kept<S>) -> Result<u64, String> {
        judge::<S>([object.structure.keys()], object.ledger)
    }

    fn extra(self) -> Extra {
        Extra {
            size: Some(Size::Keys(self.size)),
            updates: Some(self.updates),
            ..Extra::default()
        }
    }
}

/// The methods that take any workload, and the rivals of this structure.
fn methods<S: Structure>() -> Vec<Entry<SharedStructure<S>>> {
    let mut methods = any();
    if !S::READS_CHANGE {
        rivals::share_reads(&mut methods);
    }
    methods.extend(S::rivals());
    methods
}

/// The number of operations, if the keys of all structures together are those of the ledger, and
/// each structure that should be sorted is.
fn judge<S: Structure>(
    structures: impl IntoIterator<Item: IntoIterator<Item = u64>>,
    ledger: Ledger,
) -> Result<u64, String> {
    let mut found = Ledger {
        operations: ledger.operations,
        ..Ledger::default()
    };
    for keys in structures {
        let mut last = 0;
        for key in keys {
            if S::IS_SORTED && key < last {
                return Err(format!("the {} is not sorted", S::NAME));
            }
            last = key;
            found.came(key);
        }
    }
    if found != ledger {
        return Err(format!(
            "the {} holds {} keys with a sum of {}, and should hold {} with {}",
            S::NAME,
            found.keys,
            found.sum,
            ledger.keys,
            ledger.sum
        ));
    }
    Ok(found.operations)
}

/// A computation for any structure.
pub trait Visitor {
    /// Runs the computation for `S`.
    fn visit<S: Structure>(&mut self);
}

/// Runs `visitor` for each structure.
pub fn visit(visitor: &mut impl Visitor) {
    visitor.visit::<seq::SortedList<u64>>();
    visitor.visit::<seq::VecDeque<u64>>();
    visitor.visit::<Vec<u64>>();
    visitor.visit::<seq::ChainedMap<u64, u64>>();
    visitor.visit::<seq::SkipList<u64, u64>>();
    visitor.visit::<seq::SearchTree<u64, u64>>();
    visitor.visit::<seq::BinaryHeap<u64>>();
    visitor.visit::<seq::LruCache<u64, u64>>();
}

/// The workloads of this module that the method called `name` alone takes, if it does not take any
/// workload.
pub fn only_for(name: &str) -> Vec<&'static str> {
    struct Workloads<'a>(&'a str, Vec<&'static str>);
    impl Visitor for Workloads<'_> {
        fn visit<S: Structure>(&mut self) {
            if S::rivals().iter().any(|rival| rival.name() == self.0) {
                self.1.push(S::NAME);
                self.1.extend(S::NAME_IF_READ);
            }
        }
    }
    let mut workloads = Workloads(name, Vec::new());
    visit(&mut workloads);
    workloads.1
}

/// A sentence that says why the method called `name` does not fit other workloads than those of
/// [`only_for`], if there are some.
pub fn why_only(name: &str) -> Option<String> {
    let workloads = only_for(name);
    let names = workloads.join(", ");
    let why = match name {
        rivals::SHARDED => "it divides a structure by the key that each operation names",
        _ => "it is a structure of its own",
    };
    (!workloads.is_empty()).then(|| format!("`{name}` does not fit: {why}; it is for {names}"))
}

/// The key of a rank: the same keys in another order, so that the ranks that Zipf's law prefers
/// are no neighbours.
fn spread(rank: u64, range: u64) -> u64 {
    // A prime larger than any range, so that no two ranks get one key. By the golden ratio of 2^32,
    // so that neighbours get far apart (Knuth, "The Art of Computer Programming", volume 3, 6.4).
    const STEP: u64 = 2_654_435_761;
    const { assert!(2 * MAX_SIZE < STEP) };
    rank * STEP % range
}

#[cfg(test)]
mod tests;
