//! Flat delegation: threads that are clients and trustees at once (thesis, "Asynchronous Flat
//! Delegation").
//!
//! | file | idea |
//! |---|---|
//! | `team` | members, from start to shutdown; giving them work |
//! | `member` | a thread that serves while it waits |
//! | `doze` | a member that sleeps in an event loop of its own |
//! | `job` | its function, and the wait for all members |
//!
//! Outside of this directory are the [policies](crate::policy), the way in which calls find out
//! that their thread is a [member](crate::context::member), and requests (`client/own.rs`) of a
//! member to objects of its own.
//!
//! A member is a [trustee](crate::trustee) that is given a function to run now and then. While the
//! function runs, the trustee's passes are made by the calls of this crate inside it: wherever one
//! waits, and whenever the policy says so. Before and after, the thread is a trustee like any
//! other. So all promises of dedicated trustees hold; only how soon a request runs depends on what
//! the member's function does.

#[cfg(any(unix, corelay_loom, corelay_shuttle))]
mod doze;
pub(crate) mod job;
pub(crate) mod member;
mod team;

#[cfg(any(unix, corelay_loom, corelay_shuttle))]
pub use doze::Dozing;
pub use member::Member;
pub use team::{Team, TeamBuilder};
