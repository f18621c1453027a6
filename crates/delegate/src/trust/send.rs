//! The way in which a handle sends a request, whatever its kind.
//!
//! A request that finds a place at once is written where it is made, with nothing to undo and
//! nothing to keep for later. Every obstacle, such as a limit, a client still to be made or a
//! trustee that sleeps, is a call at the request's end, out of its way.

use crate::client::connect::NoClient;
use crate::client::kind::Kind;
use crate::client::parked::{Outcome, Parked};
use crate::client::{Client, Patience, Refusal, Reservation};
use crate::request::label::Label;
use crate::trust::{Trust, refuse, refuse_full};
use crate::wire::word::Position;

/// The way in which a caller learns that its request is not taken: by a panic, or by a value.
pub(crate) trait Sender {
    /// The type that the sender's call returns.
    type Returned<X>;

    /// Whether a request made inside a delegated closure waits for the closure's end.
    const NESTS: bool;

    /// The return value for a request that is taken.
    fn taken<X>(receipt: X) -> Self::Returned<X>;

    /// The return value for a refused request of the method `call`, with a closure of type
    /// `closure`.
    #[track_caller]
    fn refused<X>(call: &str, closure: &str, refusal: Refusal) -> Self::Returned<X>;

    /// The return value if this thread cannot be a client.
    #[track_caller]
    fn no_client<X>(call: &str, closure: &str, why: &NoClient) -> Self::Returned<X>;
}

/// The [`Sender`] that panics if its request is not taken.
pub(crate) struct Panics;

impl Sender for Panics {
    type Returned<X> = X;

    const NESTS: bool = true;

    #[inline(always)]
    fn taken<X>(receipt: X) -> X {
        receipt
    }

    #[cold]
    #[track_caller]
    fn refused<X>(call: &str, closure: &str, refusal: Refusal) -> X {
        refuse_full(call, closure, refusal)
    }

    #[cold]
    #[track_caller]
    fn no_client<X>(call: &str, closure: &str, why: &NoClient) -> X {
        refuse(call, closure, why)
    }
}

/// The reason why a request that is given back was not taken.
pub(crate) enum NotTaken {
    Full,
    Closed,
    Nested,
}

impl From<Refusal> for NotTaken {
    fn from(refusal: Refusal) -> Self {
        match refusal {
            Refusal::Full => Self::Full,
            Refusal::Closed => Self::Closed,
        }
    }
}

impl<T, N> Trust<T, N> {
    /// Sends a request, by the fast path if it finds a place at once. `S` says what the caller
    /// gets, and what happens to a request that is not taken.
    ///
    /// # Safety
    /// The closures borrow nothing.
    #[inline(always)]
    #[track_caller]
    pub(crate) unsafe fn send<K: Kind<T>, S: Sender>(
        &self,
        sent: K::Sent,
    ) -> S::Returned<K::Receipt> {
        let Some((client, place)) = self.reserve::<K>() else {
            // SAFETY: the caller says that the closures borrow nothing.
            return unsafe { self.send_slowly::<K, S>(sent) };
        };
        let at = place.at;
        // SAFETY: nothing has been sent since `reserve`; this handle keeps the object; the closures
        // borrow nothing, as the caller says.
        let (receipt, is_awake) = unsafe { client.write::<T, K>(place, sent) };
        if is_awake {
            return S::taken(receipt);
        }
        // SAFETY: `write` has written the newest request at `at` and returned this receipt.
        unsafe { self.rouse::<K, S>(client, at, receipt) }
    }

    /// Sends a request as [`send`](Self::send) does, but parks it if there is no room. Returns the
    /// future `A` of the outcome, which is made where the outcome is known: an outcome that went
    /// through memory would be read as soon as it is written, which stalls.
    ///
    /// # Safety
    /// The closures borrow nothing.
    #[inline(always)]
    #[track_caller]
    pub(crate) unsafe fn send_or_park<K, A>(&self, sent: K::Sent) -> A
    where
        K: Kind<T>,
        A: From<Outcome<T, K>>,
    {
        let Some((client, place)) = self.reserve::<K>() else {
            // SAFETY: the caller says that the closures borrow nothing.
            return unsafe { self.send_or_park_slowly::<K, A>(sent) };
        };
        let at = place.at;
        // SAFETY: nothing has been sent since `reserve`; this handle keeps the object; the closures
        // borrow nothing, as the caller says.
        let (receipt, is_awake) = unsafe { client.write::<T, K>(place, sent) };
        if is_awake {
            return Outcome::Sent(receipt).into();
        }
        // SAFETY: `write` has written the newest request at `at` and returned this receipt.
        unsafe { Self::rouse_or_drop::<K, A>(client, at, receipt) }
    }

    /// [`rouse`](Self::rouse) for [`send_or_park`](Self::send_or_park).
    ///
    /// # Safety
    /// The same as for [`Client::rouse_or_take_back`].
    #[cold]
    #[inline(never)]
    unsafe fn rouse_or_drop<K, A>(client: &Client, at: Position, receipt: K::Receipt) -> A
    where
        K: Kind<T>,
        A: From<Outcome<T, K>>,
    {
        // SAFETY: the caller's newest request is of kind `K`, at `at`, with this receipt.
        let sent = unsafe { client.rouse_or_take_back::<T, K>(at, receipt) };
        sent.map_or(Outcome::Closed, Outcome::Sent).into()
    }

    /// Sends a request that finds no place at once, or parks it.
    ///
    /// # Safety
    /// The closures borrow nothing.
    #[cold]
    #[inline(never)]
    #[track_caller]
    unsafe fn send_or_park_slowly<K, A>(&self, sent: K::Sent) -> A
    where
        K: Kind<T>,
        A: From<Outcome<T, K>>,
    {
        // SAFETY: this handle keeps the object; the closures borrow nothing, as the caller says.
        let outcome = self.with_client(sent, |client, sent| unsafe {
            client.send_behind::<T, K>(self.header(), sent, None)
        });
        A::from(match outcome {
            Ok(Ok(receipt)) => Outcome::Sent(receipt),
            Ok(Err((Refusal::Full, sent))) => {
                Outcome::Parked(Parked::new(self.handle.clone(), sent))
            }
            Ok(Err((Refusal::Closed, _))) | Err((NoClient::Closed, _)) => Outcome::Closed,
            Err((why @ NoClient::Nested(_), sent)) => {
                // SAFETY: the caller says that the closures borrow nothing.
                match unsafe { K::nest(&self.handle, sent) } {
                    Ok(receipt) => Outcome::Sent(receipt),
                    Err((Some(Refusal::Closed), _)) => Outcome::Closed,
                    Err((Some(Refusal::Full), sent)) => {
                        Outcome::Parked(Parked::new(self.handle.clone(), sent))
                    }
                    Err((None, _)) => refuse(K::CALL, K::closure(), &why),
                }
            }
        })
    }

    #[inline(always)]
    fn reserve<K: Kind<T>>(&self) -> Option<(&Client, Reservation<'_>)> {
        // SAFETY: the request is written next, or the client is not used; no user code runs before.
        let client = unsafe { self.known_client() }?;
        let label = Label::of_fitting(K::VTABLE, self.header());
        Some((client, client.reserve::<T, K>(label)?))
    }

    /// Sends a request that finds no place at once: makes a client, waits for room, or queues the
    /// request for the end of the delegated closure that runs here.
    ///
    /// # Safety
    /// The closures borrow nothing.
    #[cold]
    #[inline(never)]
    #[track_caller]
    unsafe fn send_slowly<K: Kind<T>, S: Sender>(&self, sent: K::Sent) -> S::Returned<K::Receipt> {
        // SAFETY: this handle keeps the object; the closures borrow nothing, as the caller says.
        match self.with_client(sent, |client, sent| unsafe {
            client.send_slowly::<T, K>(self.header(), sent, Patience::Wait)
        }) {
            Ok(Ok(receipt)) => S::taken(receipt),
            Ok(Err((refusal, _))) => S::refused(K::CALL, K::closure(), refusal),
            Err((why @ NoClient::Nested(_), sent)) if S::NESTS => {
                // SAFETY: the caller says that the closures borrow nothing.
                let nested = unsafe { K::nest(&self.handle, sent) };
                match nested {
                    Ok(receipt) => S::taken(receipt),
                    Err((Some(refusal), _)) => S::refused(K::CALL, K::closure(), refusal),
                    Err((None, _)) => S::no_client(K::CALL, K::closure(), &why),
                }
            }
            Err((why, _)) => S::no_client(K::CALL, K::closure(), &why),
        }
    }

    /// Rouses the trustee, which sleeps or has ended, for the newest request, at `at`.
    ///
    /// # Safety
    /// The same as for [`Client::rouse_or_take_back`].
    #[cold]
    #[inline(never)]
    #[track_caller]
    unsafe fn rouse<K: Kind<T>, S: Sender>(
        &self,
        client: &Client,
        at: Position,
        receipt: K::Receipt,
    ) -> S::Returned<K::Receipt> {
        // SAFETY: the caller's newest request is of kind `K`, at `at`, with this receipt.
        match unsafe { client.rouse_or_take_back::<T, K>(at, receipt) } {
            Ok(receipt) => S::taken(receipt),
            Err((refusal, _)) => S::refused(K::CALL, K::closure(), refusal),
        }
    }

    /// Sends a request, with as much patience as `patience` says if there is no room. Gives the
    /// request back with the reason if it is not taken.
    ///
    /// # Safety
    /// The closures borrow nothing.
    #[inline]
    pub(crate) unsafe fn try_send<K: Kind<T>>(
        &self,
        sent: K::Sent,
        patience: Patience,
    ) -> Result<K::Receipt, (NotTaken, K::Sent)> {
        // SAFETY: this handle keeps the object; the closures borrow nothing, as the caller says.
        match self.with_client(sent, |client, sent| unsafe {
            client.send::<T, K>(self.header(), sent, patience)
        }) {
            Ok(sent) => sent.map_err(|(refusal, sent)| (refusal.into(), sent)),
            Err((NoClient::Closed, sent)) => Err((NotTaken::Closed, sent)),
            Err((NoClient::Nested(_), sent)) => {
                // SAFETY: the caller says that the closures borrow nothing.
                let nested = unsafe { K::nest(&self.handle, sent) };
                nested.map_err(|(why, sent)| (why.map_or(NotTaken::Nested, NotTaken::from), sent))
            }
        }
    }
}

#[cfg(all(test, not(any(corelay_loom, corelay_shuttle))))]
mod tests {
    use crate::{Trustees, barrier};
    use std::cell::Cell;
    use std::rc::Rc;

    #[test]
    fn requests_without_a_trustee_number_take_the_slow_path() {
        let trustees = Trustees::dedicated(1).start().expect("a thread");
        // As if the object's address fitted no label.
        let t = trustees.entrust(0).without_a_trustee_number();
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
