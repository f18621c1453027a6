//! The rungs of the ladder: each a program of its own, in a file of its own.

mod balanced;
mod biglock;
mod delegated;
#[cfg(all(feature = "jemalloc", unix))]
mod jemalloc;
mod locked;
mod mimalloc;
mod padded;
mod partitioned;
mod percpu;
mod pool;
mod preallocated;
mod system;

#[cfg(all(feature = "jemalloc", unix))]
use super::elsewhere::Jemalloc;
use super::elsewhere::{BoxFrom, Mimalloc};
use super::heads::Heads;
use super::job::{Ended, Job, Pages};
use super::nodes::{List, Node, Owned};

/// A way to insert keys into a list.
#[derive(Clone, Copy, Debug)]
pub struct Rung {
    /// The name on the command line.
    pub name: &'static str,
    /// The new idea of the rung, in a line.
    pub idea: &'static str,
    /// The source, as it is compiled.
    pub source: &'static str,
    /// Whether the keys are cut into parts that threads take one after the other.
    pub(crate) takes_parts: bool,
    /// Whether there is room between the lists' heads.
    pub(crate) is_padded: bool,
    run: fn(&Job) -> Ended,
}

impl Rung {
    /// Runs the rung once.
    pub(crate) fn run(&self, job: &Job) -> Ended {
        (self.run)(job)
    }
}

macro_rules! rung {
    ($name:ident, $idea:literal, parts: $parts:literal, padded: $padded:literal) => {
        Rung {
            name: stringify!($name),
            idea: $idea,
            source: include_str!(concat!(stringify!($name), ".rs")),
            takes_parts: $parts,
            is_padded: $padded,
            run: $name::run,
        }
    };
}

/// All rungs, from the bottom to the top.
pub const RUNGS: &[Rung] = &[
    rung!(biglock, "one list, one lock", parts: false, padded: false),
    rung!(partitioned, "a list for each thread", parts: false, padded: false),
    rung!(preallocated, "all nodes made before", parts: false, padded: false),
    rung!(balanced, "parts: a free thread takes the next", parts: true, padded: false),
    rung!(padded, "room between the lists' heads", parts: true, padded: true),
    rung!(percpu, "a list for each CPU, under a lock", parts: true, padded: false),
    rung!(system, "padded, nodes from the system", parts: true, padded: true),
    rung!(mimalloc, "padded, nodes from mimalloc", parts: true, padded: true),
    #[cfg(all(feature = "jemalloc", unix))]
    rung!(jemalloc, "padded, nodes from jemalloc", parts: true, padded: true),
    rung!(pool, "padded, nodes from a pool", parts: true, padded: true),
    rung!(delegated, "one list, one thread that owns it", parts: false, padded: false),
];

/// One list under a lock, with keys in parts: beside the ladder.
pub(super) const LOCKED: Rung = Rung {
    name: "locked",
    idea: "one list, one lock, parts",
    source: include_str!("locked.rs"),
    takes_parts: true,
    is_padded: false,
    run: locked::run,
};

/// Like [`LOCKED`], with all nodes made before.
pub(super) const LOCKED_PREALLOCATED: Rung = Rung {
    name: "locked-preallocated",
    idea: "one list, one lock, parts, all nodes made before",
    run: locked::run_preallocated,
    ..LOCKED
};

/// Returns the rung of this name.
///
/// # Errors
/// A sentence that names the rungs of this build.
pub fn named(name: &str) -> Result<&'static Rung, String> {
    let known = RUNGS.iter().find(|rung| rung.name == name);
    known.ok_or_else(|| match name {
        "jemalloc" => {
            "this build has no rung `jemalloc`; on Unix, with `make` installed, `cargo run --release \
             --features jemalloc -- lab list` has it"
                .to_owned()
        }
        _ => format!("there is no rung `{name}`; name one of {}", names()),
    })
}

/// Returns the names of all rungs of this build, with commas between them.
pub fn names() -> String {
    let names: Vec<&str> = RUNGS.iter().map(|rung| rung.name).collect();
    names.join(", ")
}
