//! Several versions, ordered by a [`Clock`] (after Larson and others, "High-Performance Concurrency
//! Control Mechanisms for Main-Memory Databases", VLDB 2011, the optimistic scheme).
//!
//! A transaction reads, of every record, the newest version that is older than the time at which it
//! began: a *snapshot*. A commit locks what it writes, draws its time, and installs versions of that
//! time before the old ones. A reader that meets a locked record waits: the commit may be of an
//! earlier time than its own, and waits for nothing itself.
//!
//! **Times are compared as bare numbers**, so no comparison is uncertain and no reader is given up.
//! That is sound because a commit draws a time *certainly* later than a reading of the clock that it
//! takes after its locks: it waits the boundary out. A reader that drew its time before the locks
//! has a smaller number, and does not see the commit anywhere. One that drew it after the locks
//! finds them, and sees all of the commit or nothing.
//!
//! | isolation | a commit checks | and before it answers |
//! |---|---|---|
//! | snapshot | nobody has replaced what it replaces since it began (the first committer wins) | |
//! | serializable | all that it has read is still the newest, and where it found nothing there still is nothing | |
//! | strictly serializable | the same | waits until every clock is past its time, also that at which it read |
//!
//! A serializable commit that writes must have read what is newest, so an old time only makes it
//! fail. A transaction that may write and meets a version newer than its time therefore *moves its
//! time* to now, if all that it has seen is still the newest; if not, it goes on at its old time, for
//! it may yet turn out to write nothing.
//!
//! Departures from the paper: versions are found through a lock in the record, not a transaction in
//! the version's word; so there are no commit dependencies, and nobody has to ask how another
//! transaction ends. Times move where the paper gives up (the extension of a snapshot: Riegel, Felber
//! and Fetzer, "A Lazy Snapshot Algorithm with Eager Validation", DISC 2006). A transaction that only
//! reads has nothing to check in any isolation: it is serialized at the time from which it reads.
//!
//! Old versions are cut off, by the commit that installs a newer one, behind the oldest time at
//! which a transaction still reads.

use super::sealed::Engine;
use super::{Protocol, awaited, check_all, check_view};
use crate::store::claim::Claim;
use crate::store::commit::{check_absences, removals};
use crate::store::record::{Head, Version};
use crate::store::stats::Reason;
use crate::store::work::{Read, Work};
use corelay_clock::{Clock, Logical, Time, is_exact};
use corelay_sync::facade::atomic::Ordering;

/// The most reads that a transaction looks at again to move its time. Each newer version that it meets
/// may make it look at all of them.
const MAX_READS_TO_MOVE: usize = 256;

/// The isolation of [`Mvcc`]'s transactions: how much they may see of each other.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Isolation {
    /// Each reads a snapshot, and of two that write the same row at the same time one is given up.
    /// Two that read each other's rows and write their own may both commit (*write skew*).
    Snapshot,
    /// As if transactions ran one after the other.
    #[default]
    Serializable,
    /// As if transactions ran one after the other, in an order in which a transaction that ended
    /// before another began comes before it.
    StrictlySerializable,
}

/// Multi-version concurrency control. Transactions that only read never abort, unless they sleep so
/// long that the memory of old versions reaches its limit.
#[derive(Debug, Default, Clone, Copy)]
pub struct Mvcc<C: Clock = Logical> {
    clock: C,
    isolation: Isolation,
}

impl<C: Clock> Mvcc<C> {
    /// The protocol, with times of `clock`: serializable.
    pub fn new(clock: C) -> Self {
        Self::with_isolation(clock, Isolation::default())
    }

    /// The protocol with another isolation.
    pub fn with_isolation(clock: C, isolation: Isolation) -> Self {
        Self { clock, isolation }
    }

    /// The isolation of this store's transactions.
    pub fn isolation(&self) -> Isolation {
        self.isolation
    }

    fn checks_reads(&self) -> bool {
        self.isolation > Isolation::Snapshot
    }

    /// The version of a record that a transaction sees whose newest version is not older than the
    /// transaction's time.
    ///
    /// A commit that writes is going to be given up if it has not read what is newest. So a
    /// transaction that may write moves its time to now instead, if all that it has seen is still so.
    #[cold]
    #[inline(never)]
    fn read_past(
        &self,
        claim: &Claim<'_>,
        work: &mut Work,
        head: &Head,
        newest: *mut Version,
    ) -> *mut Version {
        let may_move =
            self.checks_reads() && !work.is_read_only && work.reads.len() <= MAX_READS_TO_MOVE;
        if !may_move {
            return visible(newest, work.time);
        }
        let removals = removals(work);
        let now = self.clock.read_time().raw();
        let view = check_view(work).and_then(|()| check_absences(work, removals));
        if view.is_err() {
            return visible(newest, work.time);
        }
        work.time = now;
        claim.read_since(now);
        visible(awaited(head).version(), now)
    }
}

/// The version of a chain that a transaction of `time` sees; null if the record was not there.
#[inline(always)]
fn visible(mut version: *mut Version, time: u64) -> *mut Version {
    // SAFETY: the transaction is pinned, and its time protects from cutting what it may see.
    while let Some(newer) = unsafe { version.as_ref() } {
        if newer.stamp() < time {
            break;
        }
        // Acquire: pairs with the Release of `unlock` that published the successor.
        version = newer.prev.load(Ordering::Acquire);
    }
    version
}

impl<C: Clock + 'static> Protocol for Mvcc<C> {}

#[expect(private_interfaces, reason = "the trait is sealed")]
impl<C: Clock + 'static> Engine for Mvcc<C> {
    const NAME: &'static str = "mvcc";
    const KEEPS: bool = true;

    #[inline(always)]
    fn begin(&self, claim: &Claim<'_>, work: &mut Work) {
        work.time = self.clock.read_time().raw();
        claim.read_since(work.time);
    }

    #[inline(always)]
    fn read(
        &self,
        claim: &Claim<'_>,
        work: &mut Work,
        head: &Head,
    ) -> Result<*mut Version, Reason> {
        let newest = awaited(head).version();
        let mut seen = newest;
        // SAFETY: the transaction is pinned, and has just found the version in its record.
        if unsafe { newest.as_ref() }.is_some_and(|version| version.stamp() >= work.time) {
            seen = self.read_past(claim, work, head, newest);
        }
        if self.checks_reads() {
            work.reads.push(Read { head, seen });
        }
        Ok(seen)
    }

    #[inline(always)]
    fn may_replace(&self, work: &Work, newest: *mut Version) -> Result<(), Reason> {
        // SAFETY: the transaction is pinned and has locked the record whose version this is.
        match unsafe { newest.as_ref() } {
            Some(version) if !self.checks_reads() && version.stamp() >= work.time => {
                Err(Reason::Version)
            }
            _ => Ok(()),
        }
    }

    #[inline(always)]
    fn stamp(&self, _work: &Work, _order: u64) -> u64 {
        let floor = if is_exact(&self.clock) {
            Time::ZERO
        } else {
            // Not `now`, which may be drawn before the locks are seen.
            self.clock.announced_time(Time::ZERO)
        };
        self.clock.announced_time(floor).raw()
    }

    #[inline(always)]
    fn check_reads(&self, work: &mut Work, _stamp: u64) -> Result<(), Reason> {
        check_all(work)
    }

    fn checks_absences(&self, is_read_only: bool) -> bool {
        self.checks_reads() && !is_read_only
    }

    #[inline(always)]
    fn check_read_only(&self, _work: &mut Work) -> Result<(), Reason> {
        Ok(())
    }

    fn oldest(&self, claim: &Claim<'_>) -> u64 {
        // A transaction that begins later reads at a later number than this.
        let latest = self.clock.horizon(self.clock.read_time()).raw();
        claim.pins().oldest(latest)
    }

    fn settle(&self, stamp: u64) {
        if self.isolation == Isolation::StrictlySerializable {
            self.clock.wait_out(Time::from_raw(stamp));
        }
    }
}
