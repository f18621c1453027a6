//! The orders in which threads take CPUs, as a value of a command line.

use crate::cpulist::{self, CpuListError, MAX_CPUS};
use std::fmt;
use std::str::FromStr;

/// The order in which threads take the CPUs of a [`Topology`](crate::Topology).
///
/// Written as on a command line:
///
/// | text | order | source |
/// |---|---|---|
/// | `none` | not pinned | |
/// | `cores-first` | one CPU of each physical core, then the siblings | |
/// | `fill-node` | one NUMA node without siblings, then its siblings, then further nodes | the C∀ scheduler's benchmarks |
/// | `sockets` | round-robin over packages: 0, 14, 1, 15, … | the thesis on asynchronous delegation |
/// | `3,0,8-11` | as listed | |
///
/// ```
/// use corelay_topology::Order;
///
/// assert_eq!("fill-node".parse(), Ok(Order::FillNode));
/// assert_eq!("3,0,8-11".parse(), Ok(Order::Explicit(vec![3, 0, 8, 9, 10, 11])));
/// assert_eq!(Order::Explicit(vec![3, 0, 8, 9]).to_string(), "3,0,8-9");
/// assert!("5-2".parse::<Order>().is_err());
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub enum Order {
    /// Threads are left to the scheduler.
    None,
    /// One CPU of each physical core first, faster cores before slower ones and neighbours
    /// (package, node, last-level cache) together; then the second CPU of each core, and
    /// so on.
    #[default]
    CoresFirst,
    /// The fewest NUMA nodes that suffice. It starts at the node with the most usable cores (the
    /// lowest number if several have), first without SMT siblings, then with them; then it takes
    /// the nearest node in the same way, and so on.
    FillNode,
    /// One CPU from each package in turn, cores before siblings.
    Sockets,
    /// The listed CPUs in this order; a CPU may occur more than once.
    Explicit(Vec<usize>),
}

impl Order {
    /// The names that [`FromStr`] understands, for help texts; a list of CPUs is the other form.
    pub const NAMES: [&str; 4] = ["none", "cores-first", "fill-node", "sockets"];
}

impl fmt::Display for Order {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::None => f.write_str("none"),
            Self::CoresFirst => f.write_str("cores-first"),
            Self::FillNode => f.write_str("fill-node"),
            Self::Sockets => f.write_str("sockets"),
            Self::Explicit(cpus) => cpulist::write_runs(f, cpus.iter().copied()),
        }
    }
}

impl FromStr for Order {
    type Err = OrderError;

    fn from_str(text: &str) -> Result<Self, OrderError> {
        match text.trim() {
            "none" => Ok(Self::None),
            "cores-first" => Ok(Self::CoresFirst),
            "fill-node" => Ok(Self::FillNode),
            "sockets" => Ok(Self::Sockets),
            // A word is a misspelt name; anything else is a malformed list.
            word if word.starts_with(char::is_alphabetic) => {
                Err(OrderError::UnknownName(word.to_owned()))
            }
            list => explicit(list).map(Self::Explicit).map_err(OrderError::List),
        }
    }
}

fn explicit(list: &str) -> Result<Vec<usize>, CpuListError> {
    let mut cpus = Vec::new();
    for range in cpulist::ranges(list) {
        let (from, to) = range?;
        if cpus.len() + (to - from + 1) > MAX_CPUS {
            return Err(CpuListError::TooLong);
        }
        cpus.extend(from..=to);
    }
    if cpus.is_empty() {
        Err(CpuListError::Empty)
    } else {
        Ok(cpus)
    }
}

/// The reason why a text is no [`Order`].
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum OrderError {
    /// A word that names no order.
    UnknownName(String),
    /// A list of CPUs that is wrong.
    List(CpuListError),
}

impl fmt::Display for OrderError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::UnknownName(name) => write!(
                f,
                "`{name}` is no order of placement; there are {}, and lists of CPUs such as 0,2-5",
                Order::NAMES.join(", ")
            ),
            Self::List(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for OrderError {}
