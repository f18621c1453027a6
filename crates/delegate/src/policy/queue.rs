//! `queue`: serve, then publish the batch (thesis, "Pending Request Queue").
//!
//! The ring is the queue: requests wait in it until their batch is published. Of the thesis's
//! policies it gave the most throughput there.

use super::Schedule;
use super::bell::Bell;

pub(crate) struct Queue;

impl Schedule for Queue {
    fn is_direct(&self) -> bool {
        false
    }

    #[inline(always)]
    fn is_due(&self, _requests: u32, _own: bool, _bell: &Bell) -> bool {
        true
    }
}
