//! An exercise (L8): make a hash table scale. The reader starts from one big lock; the answer is
//! built, checked, measured and marked.
//!
//! ```text
//!   start/ ──────► DIR (--init), a cargo project; the reader changes lib.rs
//!                   │ path dependency `yours`
//!   harness/ ─┐     ▼                ┌─► messages.jsonl  stages, and the fault that ended them
//!   start/  ──┼─► a folder that goes ┤   history.jsonl   calls, judged by corelay-history
//!   reference ┘   away: two programs └─► samples.jsonl   slices of time, by turns
//! ```
//!
//! | file | idea |
//! |---|---|
//! | `start/` | what `--init` writes |
//! | `reference.rs` | the answer; `--init` does not write it |
//! | `mutants/` | wrong answers, each with one fault; the tests show that each is caught for it |
//! | `designs/` | correct answers of other designs; the tests show that none is refused |
//! | `set` | the two sets and the tests of the check |
//! | `harness/check/` | the program that checks a table |
//! | `harness/std/`, `harness/core/` | the `std` and `core` that an answer is checked with |
//! | `harness/turns/` | the points in their locks, and what threads do there |
//! | `harness/scale.rs` | the program that measures tables |
//! | `files` | the files that are written |
//! | `project` | the folders: the start that `--init` writes, the rules for a project, the build |
//! | [`run`] | building and running, within limits |
//! | `fault` | the faults that an answer can have |
//! | `scaling` | the measured throughput |
//! | [`mark`] | the mark and its reasons |
//! | `exercise` | the exercise as a step, and as the check of a project |
//!
//! # How rare faults are found
//!
//! An answer is built with a crate in the place of `std` that has all of it, and other locks and
//! atomics: they wrap the real ones, and pass a *point* before a lock is taken, after it was
//! released, and before an atomic operation. In most rounds only one thread runs, and the points
//! are where it gives way: at random ones (PCT: Burckhardt and others, ASPLOS 2010), at chosen
//! ones of a call, and at those on a path that few calls take, such as the path of every 200th
//! growth. Rounds begin with as many keys as there were when an insertion last took such a path.
//! So the schedule, not the number of CPUs, decides what is found. The answer is measured with
//! the real `std`.
//!
//! What passes no points opens no windows: channels, `Once`, `Barrier`, and the counts of `Arc`.
//! Threads that wait for these are left to the system. Finding no fault is no proof, and the mark
//! says what was looked for.
//!
//! The answer runs in processes of its own. They are stopped, with all processes that they
//! started, when they take too long or print too much. That protects the lab from mistakes, not
//! from malice: an answer can do whatever its author can.

#![forbid(unsafe_code)]

pub(crate) mod exercise;
pub(crate) mod fault;
pub(crate) mod files;
pub mod mark;
pub(crate) mod project;
pub mod run;
pub(crate) mod scaling;
#[cfg(test)]
mod set;

pub use exercise::{Exercise, QUESTION};
pub use project::init;
