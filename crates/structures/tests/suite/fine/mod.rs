//! The lock-based structures: what each call promises, alone and beside other threads.

mod buckets;
mod drops;
mod histories;
mod keys;
mod queue;
mod sets;
