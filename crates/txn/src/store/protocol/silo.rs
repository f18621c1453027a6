//! Silo: optimistic concurrency control without a shared clock (Tu, Zheng, Kohler, Liskov and
//! Madden, "Speedy Transactions in Multicore In-Memory Databases", SOSP 2013, §4).
//!
//! A commit locks what it writes, then looks whether what it has read is unchanged and not locked:
//! at the moment between the two everything was as it saw it. Its identifier is larger than those
//! of all versions that it replaces. (The paper's is also larger than those that it has read.)

use super::sealed::Engine;
use super::{Protocol, check_all, settled};
use crate::store::claim::Claim;
use crate::store::record::{Head, Version};
use crate::store::stats::Reason;
use crate::store::work::{Read, Work};

/// Silo's protocol. Serializable; strictly, since a commit takes effect between its locks and its
/// answer.
#[derive(Debug, Default, Clone, Copy)]
pub struct Silo;

impl Protocol for Silo {}

#[expect(private_interfaces, reason = "the trait is sealed")]
impl Engine for Silo {
    const NAME: &'static str = "silo";
    const SEES_MIXED: bool = true;

    #[inline(always)]
    fn begin(&self, claim: &Claim<'_>, _work: &mut Work) {
        claim.read_since(crate::store::pins::NO_TIME);
    }

    #[inline(always)]
    fn read(
        &self,
        _claim: &Claim<'_>,
        work: &mut Work,
        head: &Head,
    ) -> Result<*mut Version, Reason> {
        let seen = settled(head)?.version();
        work.reads.push(Read { head, seen });
        Ok(seen)
    }

    #[inline(always)]
    fn stamp(&self, _work: &Work, order: u64) -> u64 {
        order
    }

    #[inline(always)]
    fn check_reads(&self, work: &mut Work, _stamp: u64) -> Result<(), Reason> {
        check_all(work)
    }

    #[inline(always)]
    fn check_read_only(&self, work: &mut Work) -> Result<(), Reason> {
        // One read alone took place at its own moment.
        if work.reads.len() + work.absences.len() <= 1 {
            return Ok(());
        }
        check_all(work)
    }
}
