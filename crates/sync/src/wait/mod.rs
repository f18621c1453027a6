//! The waiting seam: how the code on this thread waits, and who takes its answers meanwhile.
//!
//! Code that waits (a delegated call, a lock that parks) does not know whether it runs on a thread
//! or on a fibre. It makes a [`Token`], hands it to whoever will have the answer, and calls
//! [`wait`]. The current [`Context`] does the rest:
//!
//! * A plain thread spins, polls its [`Source`]s, yields, and sleeps on its [`Sleeper`].
//! * A scheduler of fibres or coroutines installs its own context with [`enter`], suspends the
//!   waiting coroutine and runs another. It polls the thread's sources when it is idle
//!   ([`poll_sources`]) and sleeps on the thread's [`Sleeper`], so that answers wake it.
//!
//! If the waiting thread itself finds out that the wait is over, as with the answers of a channel,
//! a cheaper [`SuspensionPoint`] replaces the token: see [`here`].
//!
//! A thread that has an event loop sleeps there instead, and is woken through a file descriptor:
//! [`Sleeper::begin_sleep`].
//!
//! Each wait carries a [`Call`]: its name, its place, and whether a cancellation may end it.
//!
//! Where code must not be suspended (inside a delegated closure, a read section), a [`NoSwitch`]
//! guard turns a wait into a panic that names the running code. A coroutine that waits in a
//! destructor while it unwinds is suspended like any other, and its panic is [set
//! aside](set_panic_aside) meanwhile.

#[cfg(any(unix, corelay_loom, corelay_shuttle))]
mod alarm;
mod aside;
mod call;
mod context;
mod local;
mod no_switch;
mod sanitizer;
mod sleeper;
mod source;
mod suspend;
mod token;

pub use aside::set_panic_aside;
pub use call::{Call, Cancelled};
pub use context::{
    Context, Host, OnThread, Task, blocking, enter, give_turn, has_context, has_ready,
    is_on_thread, on_thread, running, spawn, wait, wait_in, wait_until,
};
pub use local::{scheduler, set_scheduler};
pub use no_switch::{CodeName, NoSwitch};
pub use sleeper::Sleeper;
pub use source::{Registration, Source, has_sources, poll_sources, register};
pub use suspend::{CoroutineState, Errand, Here, Stop, SuspensionPoint, Yielder, here};
pub use token::Token;
