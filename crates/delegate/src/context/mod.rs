//! The state that corelay keeps for a thread: its clients, its trustee, whether user code runs,
//! whether it may wait.
//!
//! | file | idea |
//! |---|---|
//! | `thread` | the clients of a thread, and where their table is hidden |
//! | `state` | the state that they share; the [activity](state::Activity) that the thread is in |
//! | `exit` | whether the process exits |
//! | `serving` | the trustee that serves on this thread |
//! | `leaf` | code that may not wait |
//! | `local` | what every request to an object of its own looks at, in one thread-local |
//! | `discard` | dropping the user's values |
//! | `events` | events for subscribers of `tracing`, if there are any |
//! | `member` | a thread that serves while it waits |
//! | `coroutine`, `holds` | launched closures: their lives and waits, and the objects that they hold |

pub(crate) mod coroutine;
pub(crate) mod discard;
#[cfg_attr(feature = "tracing", path = "events/traced.rs")]
#[cfg_attr(not(feature = "tracing"), path = "events/silent.rs")]
pub(crate) mod events;
mod exit;
pub(crate) mod holds;
pub(crate) mod leaf;
mod local;
pub(crate) mod member;
pub(crate) mod serving;
pub(crate) mod state;
pub(crate) mod thread;
