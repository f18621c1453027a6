//! The ways of a request besides the fast one, out of its way.
//!
//! A request of [`Trust`] that takes the fast way is written where it is made, with nothing to
//! undo and nothing to keep for later. Whatever stands against that, a limit, a client still to
//! be made, a trustee that sleeps, is a call at its end, to here.

use crate::channel::client::{Client, Patience, Place};
use crate::channel::label::Label;
use crate::channel::request::Then;
use crate::channel::word::Position;
use crate::future::ApplyFuture;
use crate::nested;
use crate::thread::NoClient;
use crate::trust::{Trust, refuse, refuse_full};

impl<T> Trust<T> {
    /// Where an [`apply_then`](Self::apply_then) goes that takes the fast way.
    #[inline(always)]
    pub(crate) fn place_then<R, F, C>(&self) -> Option<(&Client, Place<'_>)>
    where
        F: FnOnce(&mut T) -> R,
        C: FnOnce(R),
    {
        // SAFETY: the request is written next, or the client is not used; no user code runs before.
        let client = unsafe { self.known_client() }?;
        let label = Then::<T, F, R>::label_of_fitting(self.header());
        Some((client, client.place_then::<T, F, R, C>(label)?))
    }

    /// Where a request without a callback goes, of that label and so many units, that takes the
    /// fast way.
    #[inline(always)]
    pub(crate) fn place(&self, label: Option<Label>, units: usize) -> Option<(&Client, Place<'_>)> {
        // SAFETY: as in `place_then`.
        let client = unsafe { self.known_client() }?;
        Some((client, client.place(label, units)?))
    }

    /// [`apply_then`](Self::apply_then) where it cannot take the fast way.
    #[cold]
    #[inline(never)]
    #[track_caller]
    pub(crate) fn apply_then_slowly<R, F, C>(&self, f: F, then: C)
    where
        T: 'static,
        R: Send + 'static,
        F: FnOnce(&mut T) -> R + Send + 'static,
        C: FnOnce(R) + 'static,
    {
        // SAFETY: this handle keeps the object; nothing borrows.
        match self.with_client((f, then), |client, (f, then)| unsafe {
            client.issue_slowly::<T, F, R, C>(self.header(), f, then, Patience::Wait)
        }) {
            Ok(Ok(())) => {}
            Ok(Err((refusal, ..))) => refuse_full::<F>("Trust::apply_then", refusal),
            Err((NoClient::Nested(_), (f, then))) => {
                if let Err((refusal, ..)) = nested::apply_then(self, f, then) {
                    refuse_full::<F>("Trust::apply_then", refusal);
                }
            }
            Err((why, _)) => refuse::<F>("Trust::apply_then", &why),
        }
    }

    /// [`apply_async`](Self::apply_async) where it cannot take the fast way.
    #[cold]
    #[inline(never)]
    #[track_caller]
    pub(crate) fn apply_async_slowly<R, F>(&self, f: F) -> ApplyFuture<R>
    where
        R: Send + 'static,
        F: FnOnce(&mut T) -> R + Send + 'static,
    {
        // SAFETY: this handle keeps the object; nothing borrows.
        match self.with_client(f, |client, f| unsafe {
            client.ask_slowly::<T, F, R>(self.header(), f, Patience::Wait)
        }) {
            Ok(Ok(future)) => future,
            Ok(Err((refusal, _))) => refuse_full::<F>("Trust::apply_async", refusal),
            Err((why, _)) => refuse::<F>("Trust::apply_async", &why),
        }
    }

    /// [`post`](Self::post) where it cannot take the fast way.
    #[cold]
    #[inline(never)]
    #[track_caller]
    pub(crate) fn post_slowly<F>(&self, f: F)
    where
        T: 'static,
        F: FnOnce(&mut T) + Send + 'static,
    {
        // SAFETY: this handle keeps the object; nothing borrows.
        match self.with_client(f, |client, f| unsafe {
            client.post_slowly::<T, F>(self.header(), f, Patience::Wait)
        }) {
            Ok(Ok(())) => {}
            Ok(Err((refusal, _))) => refuse_full::<F>("Trust::post", refusal),
            Err((NoClient::Nested(_), f)) => {
                if let Err((refusal, _)) = nested::post(self, f) {
                    refuse_full::<F>("Trust::post", refusal);
                }
            }
            Err((why, _)) => refuse::<F>("Trust::post", &why),
        }
    }

    /// The trustee sleeps or has ended, and has to hear of the request just written at `at`.
    ///
    /// # Safety
    /// That is an [`apply_then`](Self::apply_then) with these types, the client's newest request.
    #[cold]
    #[inline(never)]
    #[track_caller]
    pub(crate) unsafe fn rouse_for_then<R, F, C>(&self, client: &Client, at: Position)
    where
        F: FnOnce(&mut T) -> R,
        C: FnOnce(R),
    {
        // SAFETY: the caller's duty.
        if let Err((refusal, ..)) = unsafe { client.rouse_or_retract_then::<T, F, R, C>(at) } {
            refuse_full::<F>("Trust::apply_then", refusal);
        }
    }

    /// As [`rouse_for_then`](Self::rouse_for_then).
    ///
    /// # Safety
    /// That is an [`apply_async`](Self::apply_async) of the future, with these types, the client's
    /// newest request.
    #[cold]
    #[inline(never)]
    #[track_caller]
    pub(crate) unsafe fn rouse_for_async<R, F>(
        &self,
        client: &Client,
        at: Position,
        future: ApplyFuture<R>,
    ) -> ApplyFuture<R>
    where
        F: FnOnce(&mut T) -> R,
    {
        // SAFETY: the caller's duties.
        match unsafe { client.rouse_or_retract_ask::<T, F, R>(at, future) } {
            Ok(future) => future,
            Err((refusal, _)) => refuse_full::<F>("Trust::apply_async", refusal),
        }
    }

    /// As [`rouse_for_then`](Self::rouse_for_then).
    ///
    /// # Safety
    /// That is a [`post`](Self::post) with these types, the client's newest request.
    #[cold]
    #[inline(never)]
    #[track_caller]
    pub(crate) unsafe fn rouse_for_post<F: FnOnce(&mut T)>(&self, client: &Client, at: Position) {
        // SAFETY: the caller's duties.
        if let Err((refusal, _)) = unsafe { client.rouse_or_retract_post::<T, F>(at) } {
            refuse_full::<F>("Trust::post", refusal);
        }
    }
}

#[cfg(all(test, not(any(corelay_loom, corelay_shuttle))))]
mod tests {
    use crate::{Trustees, barrier};
    use std::cell::Cell;
    use std::rc::Rc;

    #[test]
    fn every_call_finds_its_way_without_a_slot() {
        let trustees = Trustees::dedicated(1).start().expect("a thread");
        // As if its address fitted no label.
        let t = trustees.entrust(0).without_a_slot();
        let (seen, add) = (Rc::new(Cell::new(0)), |n: &mut u32| {
            *n += 1;
            *n
        });
        let note = || {
            let seen = Rc::clone(&seen);
            move |n| seen.set(seen.get() + n)
        };
        t.apply_then(add, note());
        assert!(t.try_apply_then(add, note()).is_ok());
        t.post(|n| *n += 1);
        assert!(t.try_post(|n| *n += 1).is_ok());
        drop(t.apply_async(add));
        assert!(t.try_apply_async(add).is_ok());
        assert_eq!((t.apply(add), t.try_apply(add).ok()), (7, Some(8)));
        barrier().expect("all well");
        assert_eq!(seen.get(), 1 + 2);
        trustees.shutdown();
        assert!(t.try_post(|_| ()).is_err());
    }
}
