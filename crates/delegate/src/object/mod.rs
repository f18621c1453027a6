//! Objects: values with the data that their trustee keeps about them.
//!
//! ```text
//!  0      16        20     24        32       40      44       45        46   48
//!  +------+---------+------+---------+--------+-------+--------+---------+----+------
//!  | node | handles | weak | trustee | vtable | index | poison | is held |    | value
//!  +------+---------+------+---------+--------+-------+--------+---------+----+------
//! ```
//! A value of up to 16 bytes shares the header's line; one that is aligned to 64 begins
//! on a line of its own, at 64. Requests touch neither count.
//!
//! **Life.** The last handle to go pushes `node` into the trustee's inbox. The trustee
//! takes it, executes every request that any client had published by then (the push
//! released, and the take acquired, everything that happened before the last handle went
//! away), and only then drops the value, or sends it in a [`parcel`] to the thread that took the
//! last handle apart. At shutdown all values are dropped first.
//!
//! **Memory.** `weak` counts the shares in the object's memory: one for each
//! [`Weak`](crate::Weak), and one for the handles and the trustee together. The trustee gives that
//! one up after it has dropped the value; if the trustee has ended, the last handle does. Whoever
//! gives up the last share frees the memory.

pub(crate) mod handle;
pub(crate) mod left_cpu;
pub(crate) mod number;
pub(crate) mod parcel;
pub(crate) mod registry;
pub(crate) mod shared;
pub(crate) mod thread;

use self::shared::Shared;
use crate::wire::inbox::{News, Node};
use corelay_sync::facade::Shadow;
use corelay_sync::facade::atomic::{AtomicU8, AtomicU32, Ordering};
use corelay_sync::facade::cell::{Cell, UnsafeCell};
use corelay_sync::facade::sync::Arc;
use std::any::type_name;
use std::mem::ManuallyDrop;

/// The part of an object that is the same for all types. It begins with the node, from which the
/// trustee finds the object.
#[repr(C)]
pub(crate) struct Header {
    pub(crate) node: Node,
    handles: AtomicU32,
    weak: AtomicU32,
    pub(crate) trustee: Arc<Shared>,
    vtable: &'static ObjectVtable,
    /// The index in the trustee's registry. Only the trustee uses it.
    pub(crate) registry_index: Cell<u32>,
    /// The object's state of poison: [`HEALTHY`], [`POISONED`] or [`CLEARED`].
    pub(crate) poison: AtomicU8,
    /// Whether a launched closure holds the object. Only the trustee uses it.
    pub(crate) is_held: Cell<bool>,
    /// Stands for the object's memory in the models: each use of the object reads it, and freeing
    /// the object writes it.
    memory: Shadow,
}

/// The most handles, and the most shares in the memory. A count that could overflow belongs to a
/// program that leaks them; then the process is aborted, as `Arc` does.
const MAX_COUNT: u32 = u32::MAX / 2;

/// No closure has panicked on the object.
pub(crate) const HEALTHY: u8 = 0;
/// A closure has panicked: requests are refused.
pub(crate) const POISONED: u8 = 1;
/// The user has cleared the poison; the trustee has not noticed yet.
pub(crate) const CLEARED: u8 = 2;

/// The functions of an object that depend on the value's type.
struct ObjectVtable {
    type_name: fn() -> &'static str,
    drop_value: unsafe fn(*mut Header),
    free: unsafe fn(*mut Header),
}

/// A value with its header, in memory of its own.
#[repr(C, align(64))]
pub(crate) struct Object<T> {
    header: Header,
    value: UnsafeCell<ManuallyDrop<T>>,
}

impl<T> Object<T> {
    const VTABLE: &'static ObjectVtable = &ObjectVtable {
        type_name: type_name::<T>,
        drop_value: Self::drop_value,
        free: Self::free,
    };

    /// Allocates an object with one handle.
    pub(crate) fn new(value: T, trustee: Arc<Shared>) -> *mut Self {
        let mut value = ManuallyDrop::new(value);
        // SAFETY: `value` is never dropped nor used again, since it is a `ManuallyDrop`.
        unsafe { Self::take_from(&raw mut value, trustee) }
    }

    /// Allocates an object with one handle. Its value is copied from `source` straight to the heap,
    /// without going over the stack.
    ///
    /// # Safety
    /// There is a value at `source`, and nobody uses it again.
    pub(crate) unsafe fn take_from(
        source: *mut ManuallyDrop<T>,
        trustee: Arc<Shared>,
    ) -> *mut Self {
        let object = Box::into_raw(Box::<Self>::new_uninit()).cast::<Self>();
        let header = Header {
            node: Node::new(News::Retire),
            handles: AtomicU32::new(1),
            weak: AtomicU32::new(1),
            trustee,
            vtable: Self::VTABLE,
            registry_index: Cell::new(0),
            poison: AtomicU8::new(HEALTHY),
            is_held: Cell::new(false),
            memory: Shadow::new(1),
        };
        // SAFETY: the box has room for an `Object<T>`.
        let place = unsafe { &raw mut (*object).header };
        // SAFETY: the box has room for the header, and nobody else knows it yet.
        unsafe { place.write(header) };
        // SAFETY: the box has room for an `Object<T>`.
        let place = unsafe { &raw mut (*object).value };
        #[cfg(not(corelay_loom))]
        // SAFETY: the caller gives up the value at `source`; the box has room for it, and the cell
        // is its value, transparently.
        unsafe {
            place.copy_from_nonoverlapping(source.cast(), 1)
        };
        #[cfg(corelay_loom)]
        // SAFETY: as for the copy above. Loom's cell has more in it; values are small there.
        unsafe {
            place.write(UnsafeCell::new(source.read()))
        };
        object
    }

    /// The object's value, for the trustee that owns it.
    ///
    /// # Safety
    /// The object is alive, its value has not been dropped, and the caller is its trustee
    /// with no other reference to the value.
    #[inline(always)]
    pub(crate) unsafe fn value<'a>(this: *mut Self) -> &'a mut T {
        // SAFETY: the caller keeps the object alive.
        let cell = unsafe { &(*this).value };
        // SAFETY: the caller is the trustee and has no other reference to the value.
        cell.with_mut(|value| unsafe { &mut *value })
    }

    /// Moves the value out, in place of dropping it.
    ///
    /// # Safety
    /// The same as for [`Header::drop_value`], and the header is that of an `Object<T>`.
    pub(crate) unsafe fn take_value(header: *mut Header) -> T {
        // SAFETY: the caller is the trustee, and no request will use the value again.
        let value = unsafe { Self::value(header.cast()) };
        // SAFETY: the same reference, for which a `ManuallyDrop<T>` has the same layout. The value
        // has not been dropped, and the caller uses it no more.
        unsafe { std::ptr::read(value) }
    }

    unsafe fn drop_value(header: *mut Header) {
        // SAFETY: the vtable that has this function is that of an `Object<T>`, whose first field is
        // the header.
        let cell = unsafe { &(*header.cast::<Self>()).value };
        // SAFETY: only the trustee calls this, when no request will use the value again.
        let value = cell.with_mut(|value| unsafe { &mut *value });
        // SAFETY: `Header::drop_value` is called once per object, so the value has not been
        // dropped.
        unsafe { ManuallyDrop::drop(value) };
    }

    unsafe fn free(header: *mut Header) {
        // SAFETY: `take_from` made the address by `Box::into_raw`, and the caller is the last to
        // know it.
        drop(unsafe { Box::from_raw(header.cast::<Self>()) });
    }
}

impl Header {
    /// The name of the value's type.
    pub(crate) fn type_name(&self) -> &'static str {
        (self.vtable.type_name)()
    }

    /// Counts one more handle.
    #[inline]
    pub(crate) fn retain(&self) {
        // Relaxed: the new handle comes from one that is alive.
        abort_beyond(self.handles.fetch_add(1, Ordering::Relaxed));
    }

    /// Counts one more handle, unless none is left. Returns whether there is one more.
    pub(crate) fn retain_if_any(&self) -> bool {
        // Relaxed: a share in the memory is all that the caller has seen of the object, and requests
        // through the new handle are ordered by their own means.
        let mut handles = self.handles.load(Ordering::Relaxed);
        while handles > 0 {
            // Relaxed: as above.
            match self.handles.compare_exchange_weak(
                handles,
                handles + 1,
                Ordering::Relaxed,
                Ordering::Relaxed,
            ) {
                Ok(before) => {
                    abort_beyond(before);
                    return true;
                }
                Err(now) => handles = now,
            }
        }
        false
    }

    /// Counts one handle less. If none is left, announces the object to its trustee, which drops
    /// the value, or gives the memory up if the trustee has ended.
    ///
    /// # Safety
    /// `this` is alive through the handle that goes away with this call.
    #[inline]
    pub(crate) unsafe fn release(this: *mut Self) {
        // SAFETY: the caller has a handle, which goes away.
        if unsafe { Self::release_quietly(this) } {
            // SAFETY: the count has just reached zero, and the object lives until it is announced.
            unsafe { Self::announce_end(this) };
        }
    }

    /// Counts one handle less. Returns whether none is left: then the caller is to
    /// [announce](Self::announce_end) that.
    ///
    /// # Safety
    /// The same as for [`release`](Self::release).
    #[inline]
    pub(crate) unsafe fn release_quietly(this: *mut Self) -> bool {
        // SAFETY: the handle that goes away keeps the object alive.
        let header = unsafe { &*this };
        header.memory.read(0, 1);
        // Release: pairs with the Acquire in `announce_end`; publishes what was done through this
        // handle, requests above all.
        header.handles.fetch_sub(1, Ordering::Release) == 1
    }

    /// Announces to the trustee that the object's last handle has gone.
    ///
    /// # Safety
    /// `this` is alive, no handle is left, and this is called once.
    #[cold]
    pub(crate) unsafe fn announce_end(this: *mut Self) {
        // SAFETY: the caller has found the object alive, and only this function gives it away.
        let header = unsafe { &*this };
        // Acquire: pairs with the Release of every other handle's departure. A load, not a
        // fence: loom and ThreadSanitizer follow it.
        header.handles.load(Ordering::Acquire);
        // Once pushed, the object may be gone at any time; its trustee must not be.
        let trustee = Arc::clone(&header.trustee);
        // SAFETY: alive until the push. A raw pointer, so that it stands for the whole object.
        let node = unsafe { &raw const (*this).node };
        // SAFETY: the node is pushed only here, once, and the object stays until the trustee has
        // taken it.
        if unsafe { trustee.inbox.push(node) } {
            trustee.rouse_if_needed();
        } else {
            // The trustee has ended and has dropped the value.
            // SAFETY: this was the last handle, whose share the trustee has left to it.
            unsafe { Self::release_memory(this) };
        }
    }

    /// Drops the value, on its trustee.
    ///
    /// # Safety
    /// The caller is the trustee; no request will touch the value again; called once.
    pub(crate) unsafe fn drop_value(this: *mut Self) {
        // SAFETY: the object is alive: only the trustee frees it, after this.
        let header = unsafe { &*this };
        header.memory.read(0, 1);
        let drop_value = header.vtable.drop_value;
        // SAFETY: the caller is the trustee, calls this once, and no request will touch the value
        // again.
        unsafe { drop_value(this) };
    }

    /// Counts one more share in the object's memory.
    pub(crate) fn retain_memory(&self) {
        // Relaxed: the new share comes from one that the caller has.
        abort_beyond(self.weak.fetch_add(1, Ordering::Relaxed));
    }

    /// Gives up a share in the object's memory. Frees the memory if it was the last one.
    ///
    /// # Safety
    /// The caller has a share and does not use it again. If it is that of the handles and the
    /// trustee, no handle is left and the value has been dropped.
    pub(crate) unsafe fn release_memory(this: *mut Self) {
        // SAFETY: the caller's share keeps the memory.
        let header = unsafe { &*this };
        header.memory.read(0, 1);
        // Acquire: pairs with the Release below, of every other share. A single share needs no
        // exchange, since nobody is left who could add one.
        if header.weak.load(Ordering::Acquire) != 1 {
            // Release: pairs with the loads; publishes that this share is done with the memory.
            if header.weak.fetch_sub(1, Ordering::Release) != 1 {
                return;
            }
            // Acquire: as above. A load, not a fence: loom and ThreadSanitizer follow it.
            header.weak.load(Ordering::Acquire);
        }
        header.memory.write(0, 1);
        let free = header.vtable.free;
        // SAFETY: the value has been dropped, since the handles and the trustee have no share any
        // more, and nobody else knows the object.
        unsafe { free(this) };
    }
}

/// Aborts the process if a count that was `before` could overflow.
#[inline]
fn abort_beyond(before: u32) {
    if before > MAX_COUNT {
        std::process::abort();
    }
}
