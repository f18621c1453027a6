//! `blocked`: serve only where a request finds no room, or an answer is waited for (thesis,
//! "Direct Write Serve When Blocked").
//!
//! Its own objects' requests go through its own ring, so a member that asks only itself
//! blocks on itself, and serves all. The thesis writes each request out at once; here the
//! channel's batches stay, since the head tells of every request anyway.

use super::{Schedule, Seat};

pub(crate) struct Blocked;

impl Schedule for Blocked {
    fn is_direct(&self) -> bool {
        false
    }

    #[inline(always)]
    fn is_due(&self, _requests: u32, _own: bool, _seat: &Seat) -> bool {
        false
    }
}
