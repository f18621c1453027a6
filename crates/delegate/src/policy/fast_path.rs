//! `fast-path`: serve only while waiting, as `blocked` does, but run requests to own objects at
//! once (thesis, "Direct Write Fast Path").
//!
//! This makes the greedy client: a member that asks mostly itself hardly ever blocks, so the
//! others, which wait for it, serve each other and never get on.

use super::Schedule;
use super::bell::Bell;

pub(crate) struct FastPath;

impl Schedule for FastPath {
    fn is_direct(&self) -> bool {
        true
    }

    #[inline(always)]
    fn is_due(&self, _requests: u32, _own: bool, _bell: &Bell) -> bool {
        false
    }
}
