//! An exercise (L8): make a hash table scale. It begins with one big lock, and what comes of it
//! is built, checked, measured and marked.
//!
//! ```text
//!   start/ ──────► DIR (--init), a cargo project; the reader changes src/lib.rs
//!                   │ path dependency `yours`
//!   harness/ ─┐     ▼                ┌─► told.jsonl      stages, and the fault that ended them
//!   start/  ──┼─► a folder that goes ┤   history.jsonl   calls, judged by corelay-history
//!   reference ┘   away: two programs └─► samples.jsonl   slices of time, by turns
//! ```
//!
//! | file | idea |
//! |---|---|
//! | `start/` | what `--init` writes |
//! | `reference.rs` | the answer; `--init` does not write it |
//! | `mutants/` | wrong answers, each with one fault; the tests show that each is caught for it |
//! | `harness/check/` | the program that checks a table |
//! | `harness/scale.rs` | the program that measures tables |
//! | `project` | the folders: what `--init` writes, what is asked of a project |
//! | [`run`] | building and running, within limits |
//! | `fault` | what can be wrong with an answer |
//! | `scaling` | what was measured |
//! | [`mark`] | the mark and its reasons |
//! | `exercise` | what is shown of it all |
//!
//! The answer runs in processes of its own, which are stopped, with all that they have started,
//! when they take or print too much. That keeps mistakes away from the lab, not malice: an answer
//! can do whatever its author can.

#![forbid(unsafe_code)]

pub(crate) mod exercise;
pub(crate) mod fault;
pub mod mark;
pub(crate) mod project;
pub mod run;
pub(crate) mod scaling;

pub use exercise::{Exercise, QUESTION};
pub use project::init;
