//! The commit: lock, draw, validate, write, unlock.

use super::boxes;
use super::stats::Reason;
use super::tx::{Abort, Looks, Tx};
use super::word::Word;
use corelay_clock::{Clock, Time};

impl<C: Clock> Tx<'_, '_, C> {
    /// Commits. What was read only was there together at one moment, by the reads themselves.
    #[inline(always)]
    pub(super) fn commit(&mut self) -> Result<(), Abort> {
        if self.log.writes.is_empty() && !self.doomed {
            return Ok(());
        }
        self.commit_writes()
    }

    #[inline]
    fn commit_writes(&mut self) -> Result<(), Abort> {
        if self.doomed {
            return Err(Abort {
                why: super::tx::Why::Conflict,
            });
        }
        let newest = self.lock()?;
        if !self.is_alone && self.stm.serial().is_held() {
            return Err(self.give_up(Reason::Yielded));
        }
        let time = self.draw(newest);
        if !self.is_unchanged() {
            return Err(self.give_up(Reason::Validation));
        }
        self.write_back(time);
        Ok(())
    }

    /// Locks the write set: the newest time in it.
    #[inline(always)]
    fn lock(&mut self) -> Result<Time, Abort> {
        let domain = self.stm.domain();
        let mut newest = Time::ZERO;
        let mut is_ours = false;
        let odd = self.log.writes.as_mut_slice().iter_mut().position(|write| {
            let mut word = write.old;
            if word == Word::UNREAD {
                word = write.place.word_again();
                if word.is_locked() {
                    return true;
                }
            }
            if write.place.try_lock(word).is_err() {
                return true;
            }
            write.old = word;
            newest = newest.max(word.time());
            is_ours = write.place.domain() != domain;
            is_ours
        });
        odd.map_or(Ok(newest), |at| self.lock_slowly(at, is_ours))
    }

    /// Goes on at a variable that another commit has locked, or that is not of this domain; that one
    /// is locked already. In no order of the variables: nobody waits long while it holds a lock.
    #[cold]
    #[inline(never)]
    fn lock_slowly(&mut self, from: usize, mut is_ours: bool) -> Result<Time, Abort> {
        for at in from..self.log.writes.as_slice().len() {
            let write = &mut self.log.writes.as_mut_slice()[at];
            let mut looks = Looks::new(self.is_alone);
            while !std::mem::take(&mut is_ours) {
                let word = write.place.word_again();
                if write.old != Word::UNREAD && !word.is_same_version(write.old) {
                    self.unlock(at);
                    return Err(self.doom(Reason::Validation));
                }
                if !word.is_locked() && write.place.try_lock(word).is_ok() {
                    write.old = word;
                    break;
                }
                if !looks.again() {
                    self.unlock(at);
                    return Err(self.doom(Reason::Locked));
                }
            }
            self.adopt(at);
        }
        let times = self.log.writes.as_slice().iter();
        Ok(times
            .map(|write| write.old.time())
            .max()
            .unwrap_or(Time::ZERO))
    }

    /// A variable that nobody has written belongs to who does first.
    fn adopt(&mut self, at: usize) {
        let place = self.log.writes.as_slice()[at].place;
        if place.domain() == 0 {
            place.adopt(self.stm.domain());
        } else if place.domain() != self.stm.domain() {
            self.unlock(at + 1);
            self.stm.refuse(place);
        }
    }

    /// A time after those of all that is overwritten, so that no variable has one version twice.
    /// It need not be *certainly* after them: the proof uses of the versions of one variable only
    /// that they differ, and of the time that it was drawn while the locks were held.
    #[inline(always)]
    fn draw(&self, newest: Time) -> Time {
        loop {
            let time = self.stm.clock().announced_time(corelay_clock::Time::ZERO);
            if time > newest {
                return time;
            }
        }
    }

    /// What was read is still so, now that what is to be written is locked.
    #[inline(always)]
    fn is_unchanged(&self) -> bool {
        self.log.reads.iter().all(|(place, read)| {
            let word = place.word_again();
            word.is_still(read) || word.is_same_version(read) && self.has_locked(place, read)
        })
    }

    #[inline(always)]
    fn has_locked(&self, place: &super::place::Place, read: Word) -> bool {
        let mine = self.log.writes.find(place);
        mine.is_some_and(|write| write.old.is_still(read))
    }

    /// Each variable is unlocked as soon as it is written: who sees one new finds the others locked,
    /// or new.
    #[inline(always)]
    fn write_back(&mut self, time: Time) {
        if self.log.writes.has_boxes {
            self.take_old_boxes();
        }
        let mut awaited = false;
        for write in self.log.writes.as_slice() {
            awaited |= write.old.is_awaited();
            write.place.set_value(write.value);
            write.place.unlock(Word::written(time));
        }
        if awaited {
            self.wake();
        }
        if self.log.writes.has_boxes {
            self.retire_old_boxes();
        }
        self.log.writes.forget();
    }

    /// Remembers the boxes that are going to be replaced.
    #[cold]
    #[inline(never)]
    fn take_old_boxes(&mut self) {
        for write in self.log.writes.as_mut_slice() {
            if write.free.is_some() {
                // The second word of a box's value is not used.
                write.value[1] = write.place.own_value();
            }
        }
    }

    /// Behind the commit, while nothing is locked: what is freed then may run anything.
    #[cold]
    #[inline(never)]
    fn retire_old_boxes(&self) {
        let guard = crossbeam_epoch::pin();
        for write in self.log.writes.as_slice() {
            if let Some(free) = write.free {
                // SAFETY: the variable held it until this commit replaced it; readers load it
                // inside guards.
                unsafe { boxes::retire(write.value[1], free, &guard) };
            }
        }
    }

    #[cold]
    #[inline(never)]
    fn wake(&self) {
        for write in self.log.writes.as_slice() {
            if write.old.is_awaited() {
                self.stm
                    .sleepers()
                    .wake(std::ptr::from_ref(write.place).addr());
            }
        }
    }

    #[cold]
    #[inline(never)]
    fn give_up(&mut self, reason: Reason) -> Abort {
        self.unlock(self.log.writes.as_slice().len());
        self.doom(reason)
    }

    /// Gives the first `count` locks back, as they were.
    #[cold]
    fn unlock(&mut self, count: usize) {
        for write in &self.log.writes.as_slice()[..count] {
            write.place.unlock(write.old);
        }
    }
}
