//! Flat delegation: threads that are clients and trustees at once (thesis, "Asynchronous Flat
//! Delegation").
//!
//! | file | idea |
//! |---|---|
//! | `team` | members, from start to shutdown; giving them work |
//! | `member` | a thread that serves while it waits |
//! | `seat` | what others may do to a member: give it work, ring, wake it |
//! | `own` | requests of a member to objects of its own |
//! | `policy/` | when a member that does not wait serves |
//!
//! A member is a [trustee](crate::trustee) that is given a function to run now and then. While
//! the function runs, the trustee's passes are made by the calls of this crate inside it:
//! wherever one waits, and where the policy says so. Before and after, the thread is a trustee
//! like any other. So all promises of dedicated trustees hold; only how soon a request runs
//! depends on what the member's function does.

pub(crate) mod member;
pub(crate) mod own;
pub(crate) mod policy;
pub(crate) mod seat;
mod team;

pub use member::Member;
pub use policy::{ParsePolicyError, Policy};
pub use team::{Team, TeamBuilder};
