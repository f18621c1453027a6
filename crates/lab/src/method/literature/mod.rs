//! Delegation as the literature has it, by `corelay-literature`: the product is measured
//! beside it.
//!
//! * `ffwd`: one request in flight per client; 15 clients are answered at once.
//!
//! The variables are spread over the servers in turn. A variable's operation travels as the
//! papers' requests do: a function pointer, a pointer to the variable, and the operation's
//! captures (for fetch-add none) as words; the answer is a word.

mod blocking;
mod servers;

pub(crate) use blocking::ffwd;
