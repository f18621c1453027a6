//! Parcels: values that leave their trustees.
//!
//! The thread that takes the last handle apart places an order, and then announces the end of the
//! object as every last handle does. The trustee looks for an order where it would drop the value,
//! and moves the value into the order's parcel instead. An order that is dropped also tells its
//! parcel, so that nobody waits for a trustee that has ended.
//!
//! Locks guard the orders and the parcels. No user code runs inside them.

use super::handle::Handle;
use super::{Header, Object};
use corelay_sync::facade::sync::{Arc, Mutex};
use corelay_sync::wait::Token;
use std::mem::ManuallyDrop;
use std::sync::PoisonError;

/// The address of an object.
type Address = usize;

/// The orders for values of a trustee's objects.
pub(crate) struct Orders(Mutex<Placed>);

/// The orders that have been placed, by the objects' addresses. `None` once the trustee has dropped,
/// or is about to drop, all its values.
type Placed = Option<Vec<(Address, Box<dyn Order>)>>;

impl Orders {
    pub(crate) fn new() -> Self {
        Self(Mutex::new(Some(Vec::new())))
    }

    fn with_placed<R>(&self, f: impl FnOnce(&mut Placed) -> R) -> R {
        f(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Places an order, or drops it if the trustee takes none any more.
    fn place(&self, object: *mut Header, order: Box<dyn Order>) {
        let refused = self.with_placed(|placed| match placed {
            Some(placed) => {
                placed.push((object.addr(), order));
                None
            }
            None => Some(order),
        });
        drop(refused);
    }

    /// Takes the order for the value of `object`, if there is one.
    pub(crate) fn take(&self, object: *mut Header) -> Option<Box<dyn Order>> {
        self.with_placed(|placed| take_from(placed.as_mut()?, object))
    }

    /// Refuses orders from now on. Returns those that have been placed.
    pub(crate) fn close(&self) -> LastOrders {
        LastOrders(self.with_placed(Option::take).unwrap_or_default())
    }
}

/// The orders that a trustee has when it ends.
pub(crate) struct LastOrders(Vec<(Address, Box<dyn Order>)>);

impl LastOrders {
    /// Takes the order for the value of `object`, if there is one.
    pub(crate) fn take(&mut self, object: *mut Header) -> Option<Box<dyn Order>> {
        take_from(&mut self.0, object)
    }
}

fn take_from(
    orders: &mut Vec<(Address, Box<dyn Order>)>,
    object: *mut Header,
) -> Option<Box<dyn Order>> {
    let place = orders.iter().position(|&(of, _)| of == object.addr())?;
    Some(orders.swap_remove(place).1)
}

/// An order for an object's value.
pub(crate) trait Order: Send {
    /// Moves the value into the parcel. `is_poisoned` says whether a closure has panicked on it.
    ///
    /// # Safety
    /// The same as for [`Header::drop_value`], in place of which this is called, and the order is
    /// for this object.
    unsafe fn fill(self: Box<Self>, object: *mut Header, is_poisoned: bool);
}

/// The place for a value that a trustee sends.
pub(crate) struct Parcel<T> {
    /// The value, and whether it is poisoned.
    content: Mutex<Option<(T, bool)>>,
    /// An event that is set when the value has come, or when it will not come.
    pub(crate) is_settled: Token,
}

impl<T> Parcel<T> {
    /// Takes the value, and whether it is poisoned. `None` if the trustee has dropped it.
    pub(crate) fn open(&self) -> Option<(T, bool)> {
        let mut content = self.content.lock().unwrap_or_else(PoisonError::into_inner);
        content.take()
    }
}

/// The order for the value of an `Object<T>`. Its drop settles the parcel.
struct OrderOf<T>(Arc<Parcel<T>>);

impl<T: Send> Order for OrderOf<T> {
    unsafe fn fill(self: Box<Self>, object: *mut Header, is_poisoned: bool) {
        // SAFETY: the caller is the trustee, no request will use the value again, and the order is
        // for an `Object<T>`.
        let value = unsafe { Object::<T>::take_value(object) };
        let mut content = self
            .0
            .content
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        *content = Some((value, is_poisoned));
    }
}

impl<T> Drop for OrderOf<T> {
    fn drop(&mut self) {
        self.0.is_settled.notify();
    }
}

impl<T: Send + 'static> Handle<T> {
    /// Gives up the handle. If it was the last one, the object's trustee will send the value in the
    /// parcel.
    pub(crate) fn into_parcel(self) -> Option<Arc<Parcel<T>>> {
        let header = ManuallyDrop::new(self).header();
        // SAFETY: this handle is one of those that are counted, and goes away.
        if !unsafe { Header::release_quietly(header) } {
            return None;
        }
        let parcel = Arc::new(Parcel {
            content: Mutex::new(None),
            is_settled: Token::new(),
        });
        let order = Box::new(OrderOf(Arc::clone(&parcel)));
        // SAFETY: the object lives until its end is announced, below.
        unsafe { &*header }.trustee.orders.place(header, order);
        // SAFETY: no handle is left, and this call alone knows that.
        unsafe { Header::announce_end(header) };
        Some(parcel)
    }
}
