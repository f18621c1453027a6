//! Giving values to trustees.
//!
//! A value becomes an [`Object`](crate::object::Object), made on its trustee by a request to the
//! trustee's registry, which lists all its objects.

use crate::catch::guarded;
use crate::client::Refusal;
use crate::client::apply_async::ApplyAsync;
use crate::client::connect::{NoClient, connect};
use crate::client::future::ApplyFuture;
use crate::client::parked::{Outcome, Parked};
use crate::dedicated::{TrusteeHandle, Trustees};
use crate::large::is_large;
use crate::object::registry::Registry;
use crate::object::shared::Shared;
use crate::trust::many::Trusts;
use crate::trust::{Trust, refuse, refuse_to_wait, unwrap_answer};
use corelay_sync::facade::atomic::Ordering;
use corelay_sync::facade::sync::Arc;
use std::any::type_name;
use std::mem::ManuallyDrop;
use std::panic::resume_unwind;

/// The bytes of values that [`Trustees::entrust_all`] sends to a trustee in one request.
const SHIPMENT_BYTES: usize = 64 << 10;
/// The least that one value counts of [`SHIPMENT_BYTES`].
const SMALL_BYTES: usize = 64;

impl Trustees {
    /// Gives `value` to the next trustee in turn, and returns the handle. The value moves to memory
    /// that its trustee allocates.
    ///
    /// ```
    /// # use corelay_delegate::Trustees;
    /// let trustees = Trustees::dedicated(1).start()?;
    /// let words = trustees.entrust(vec!["one"]);
    /// assert_eq!(words.apply(|words| words.len()), 1);
    /// # Ok::<(), corelay_delegate::StartError>(())
    /// ```
    ///
    /// # Panics
    /// Inside a delegated closure.
    #[track_caller]
    pub fn entrust<T: Send + 'static>(&self, value: T) -> Trust<T> {
        self.entrust_value(self.turn(), value)
    }

    /// Entrusts each of `values`, like [`entrust`](Self::entrust), with one round trip for many of
    /// them (up to 64 KiB of values per trustee) instead of one each. The handles come in the order
    /// of the values, as one that is indexed: clone it for each thread.
    ///
    /// ```
    /// # use corelay_delegate::Trustees;
    /// let trustees = Trustees::dedicated(2).start()?;
    /// let counters = trustees.entrust_all((0..10_000u64).map(|i| i * i));
    /// assert_eq!(counters.len(), 10_000);
    /// assert_eq!(counters[300].apply(|n| *n), 90_000);
    /// # Ok::<(), corelay_delegate::StartError>(())
    /// ```
    ///
    /// # Panics
    /// Inside a delegated closure; with the panic of `values`. Values entrusted before that
    /// are dropped on their trustees.
    #[track_caller]
    pub fn entrust_all<T: Send + 'static>(&self, values: impl IntoIterator<Item = T>) -> Trusts<T> {
        // A trustee serves nobody else while it takes a shipment in: about a thousand small values,
        // a tenth of a millisecond.
        let per_trustee = SHIPMENT_BYTES / size_of::<T>().clamp(SMALL_BYTES, SHIPMENT_BYTES);
        let mut values = values.into_iter().fuse();
        let mut handles = Vec::with_capacity(values.size_hint().0);
        loop {
            let mut shipments: Vec<Vec<T>> = self.members.iter().map(|_| Vec::new()).collect();
            let mut turns = Vec::new();
            for value in values.by_ref().take(per_trustee * self.members.len()) {
                let trustee = self.turn();
                shipments[trustee].push(value);
                turns.push(trustee);
            }
            if turns.is_empty() {
                return handles.into_iter().collect();
            }
            let mut adopted = Vec::with_capacity(shipments.len());
            for (trustee, shipment) in shipments.into_iter().enumerate() {
                adopted.push(self.ship(trustee, shipment).into_iter());
            }
            let next = |&trustee: &usize| adopted[trustee].next();
            handles.extend(turns.iter().filter_map(next));
        }
    }

    /// Entrusts `value` to the trustee with number `trustee`, of `0..len`. Requests of a thread to
    /// the objects of one trustee run in the order in which it made them.
    ///
    /// ```
    /// # use corelay_delegate::Trustees;
    /// let trustees = Trustees::dedicated(2).start()?;
    /// let text = trustees.entrust_on(1, String::new());
    /// assert_eq!(format!("{text:?}"), "Trust<alloc::string::String> of trustee-1");
    /// # Ok::<(), corelay_delegate::StartError>(())
    /// ```
    ///
    /// # Panics
    /// When `trustee` is not below `len`; inside a delegated closure.
    #[track_caller]
    pub fn entrust_on<T: Send + 'static>(&self, trustee: usize, value: T) -> Trust<T> {
        self.entrust_value(trustee, value)
    }

    /// Entrusts `value` as [`entrust`](Self::entrust) does, without blocking the thread. The future
    /// gives the handle. If it is dropped, so is the value.
    ///
    /// ```
    /// # use corelay_delegate::{AsyncError, Trust, Trustees};
    /// async fn stock(trustees: &Trustees) -> Result<Trust<Vec<u32>>, AsyncError> {
    ///     trustees.entrust_async(vec![1, 2]).await
    /// }
    /// ```
    ///
    /// # Errors
    /// The future gives [`AsyncError::Closed`](crate::AsyncError::Closed) when the trustee has been
    /// shut down.
    ///
    /// # Panics
    /// Inside a delegated closure.
    #[track_caller]
    pub fn entrust_async<T: Send + 'static>(&self, value: T) -> ApplyFuture<Trust<T>> {
        let member = &self.members[self.turn()];
        let trustee = Arc::clone(&member.shared);
        let adopt = move |registry: &mut Registry| {
            let handle = Trust::new(registry.adopt(value, &trustee));
            enlist(&trustee, std::slice::from_ref(&handle));
            handle
        };
        member.register_async("Trustees::entrust_async", adopt)
    }

    /// Has the next trustee in turn build a value, which therefore need not be `Send`.
    ///
    /// It is built on the trustee's stack, several times over without optimisation: for values of
    /// some hundred KiB see [`Builder::stack_size`](crate::Builder::stack_size).
    ///
    /// ```
    /// # use corelay_delegate::Trustees;
    /// use std::rc::Rc;
    /// let trustees = Trustees::dedicated(1).start().unwrap();
    /// let shared = trustees.entrust_with(|| Rc::new(7)); // an Rc never leaves its thread
    /// assert_eq!(shared.apply(|rc| **rc), 7);
    /// ```
    ///
    /// # Panics
    /// With the panic of `build`; inside a delegated closure.
    #[track_caller]
    pub fn entrust_with<T: 'static>(&self, build: impl FnOnce() -> T + Send) -> Trust<T> {
        self.entrust_to(self.turn(), build)
    }

    /// Has the trustee with number `trustee` build a value, like
    /// [`entrust_with`](Self::entrust_with).
    ///
    /// # Panics
    /// The same as for [`entrust_on`](Self::entrust_on) and [`entrust_with`](Self::entrust_with).
    #[track_caller]
    pub fn entrust_with_on<T: 'static>(
        &self,
        trustee: usize,
        build: impl FnOnce() -> T + Send,
    ) -> Trust<T> {
        self.entrust_to(trustee, build)
    }

    #[track_caller]
    fn entrust_value<T: Send + 'static>(&self, trustee: usize, value: T) -> Trust<T> {
        if const { !is_large::<T>() } {
            return self.build_on(trustee, move || value);
        }
        // The trustee copies the value out of this frame.
        let mut offered = Offered {
            value: ManuallyDrop::new(value),
            is_taken: false,
        };
        let offer = &mut offered;
        let member = self.member(trustee);
        let trustee = Arc::clone(&member.shared);
        member.register("Trustees::entrust", move |registry| {
            // SAFETY: the value is taken once, and `is_taken` keeps this frame from dropping it.
            let handle = unsafe { registry.adopt_from(&raw mut offer.value, &trustee) };
            let handle = Trust::new(handle);
            offer.is_taken = true;
            enlist(&trustee, std::slice::from_ref(&handle));
            handle
        })
    }

    #[track_caller]
    fn entrust_to<T, F>(&self, trustee: usize, build: F) -> Trust<T>
    where
        T: 'static,
        F: FnOnce() -> T + Send,
    {
        if const { is_large::<F>() } {
            let build: Box<dyn FnOnce() -> T + Send + '_> = Box::new(build);
            self.build_on(trustee, build)
        } else {
            self.build_on(trustee, build)
        }
    }

    #[track_caller]
    fn build_on<T: 'static>(&self, trustee: usize, build: impl FnOnce() -> T + Send) -> Trust<T> {
        let member = self.member(trustee);
        let trustee = Arc::clone(&member.shared);
        // A panic of `build` must not poison the registry, so it comes back as a value.
        let built = member.register("Trustees::entrust", move |registry| {
            let adopted = if const { is_large::<T>() } {
                // The value leaves the stack as soon as it is built.
                let built = guarded(|| {
                    let mut place = Box::<ManuallyDrop<T>>::new_uninit();
                    // SAFETY: the box has room for a `T`: `ManuallyDrop<T>` has the same layout.
                    unsafe { place.as_mut_ptr().cast::<T>().write(build()) };
                    place
                });
                // SAFETY: the value has been built, and is taken once; the box does not drop it.
                built.map(|mut place| unsafe { registry.adopt_from(place.as_mut_ptr(), &trustee) })
            } else {
                guarded(build).map(|value| registry.adopt(value, &trustee))
            };
            let adopted = adopted.map(Trust::new);
            adopted.inspect(|handle| enlist(&trustee, std::slice::from_ref(handle)))
        });
        built.unwrap_or_else(|payload| resume_unwind(payload))
    }

    #[track_caller]
    fn member(&self, number: usize) -> &TrusteeHandle {
        let member = self.members.get(number);
        member.unwrap_or_else(|| panic!("corelay: trustee {number} of {}", self.members.len()))
    }

    #[track_caller]
    fn ship<T: Send + 'static>(&self, trustee: usize, values: Vec<T>) -> Vec<Trust<T>> {
        if values.is_empty() {
            return Vec::new();
        }
        let member = &self.members[trustee];
        let trustee = Arc::clone(&member.shared);
        member.register("Trustees::entrust_all", move |registry| {
            let (len, mut values) = (values.len(), values);
            // SAFETY: zero is no more than the capacity. The values stay where they are, and the
            // vector drops none.
            unsafe { values.set_len(0) };
            let place = values.as_mut_ptr().cast::<ManuallyDrop<T>>();
            let adopt = |i| {
                // SAFETY: `i` is below the number of values.
                let place = unsafe { place.add(i) };
                // SAFETY: each value is taken once, and the vector drops none.
                Trust::new(unsafe { registry.adopt_from(place, &trustee) })
            };
            let handles: Vec<_> = (0..len).map(adopt).collect();
            enlist(&trustee, &handles);
            handles
        })
    }

    fn turn(&self) -> usize {
        // Relaxed: which trustee is next orders nothing.
        self.next.fetch_add(1, Ordering::Relaxed) % self.members.len()
    }
}

impl TrusteeHandle {
    /// Runs `f` on the trustee's registry. `f` must not panic: that would poison the registry.
    #[track_caller]
    fn register<R, F: FnOnce(&mut Registry) -> R>(&self, call: &str, f: F) -> R {
        let client = match refuse_to_wait().and_then(|()| connect(&self.shared)) {
            Ok(client) => client,
            Err(why) => refuse(call, type_name::<F>(), &why),
        };
        // SAFETY: the registry lives until its trustee has ended, and the call waits, so borrows
        // last.
        let answer = unsafe { client.call::<Registry, _, _>(self.home.cast(), f) };
        let result = unwrap_answer(answer, type_name::<F>);
        client.raise_held();
        result
    }
}

impl TrusteeHandle {
    /// Has the trustee run `f` on its registry later. `f` must not panic.
    #[track_caller]
    fn register_async<R, F>(&self, call: &str, f: F) -> ApplyFuture<R>
    where
        R: Send + 'static,
        F: FnOnce(&mut Registry) -> R + Send + 'static,
    {
        type Adoption<F, R> = Outcome<Registry, ApplyAsync<F, R>>;
        let (home, trustee) = (self.home.cast(), &self.shared);
        let client = match connect(trustee) {
            Ok(client) => client,
            Err(NoClient::Closed) => return Adoption::<F, R>::Closed.into(),
            Err(why) => refuse(call, type_name::<F>(), &why),
        };
        // SAFETY: the registry lives until its trustee has ended; the closure borrows nothing.
        let sent = unsafe { client.send_behind::<Registry, ApplyAsync<F, R>>(home, f, None) };
        ApplyFuture::from(match sent {
            Ok(future) => Adoption::Sent(future),
            Err((Refusal::Closed, _)) => Adoption::Closed,
            Err((Refusal::Full, f)) => {
                Adoption::Parked(Parked::on_registry(home, Arc::clone(trustee), f))
            }
        })
    }
}

/// A value that is offered to a trustee and still lies in the caller's frame. The caller drops it
/// unless the trustee has taken it.
struct Offered<T> {
    value: ManuallyDrop<T>,
    is_taken: bool,
}

impl<T> Drop for Offered<T> {
    fn drop(&mut self) {
        if !self.is_taken {
            // SAFETY: nobody has taken the value, and it is not used again.
            unsafe { ManuallyDrop::drop(&mut self.value) };
        }
    }
}

/// Adds new objects to their trustee's list for reports.
fn enlist<T>(trustee: &Shared, handles: &[Trust<T>]) {
    let objects = handles.iter().map(|handle| handle.header().addr());
    trustee.roster.adopt(type_name::<T>(), objects);
}
