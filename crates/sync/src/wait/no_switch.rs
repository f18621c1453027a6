//! Guards around code that must not be suspended, so that waits there are refused.

use super::Call;
use super::local::with_local;
use std::marker::PhantomData;
use std::panic::Location;

/// A guard that marks code on this thread which must not be suspended: a delegated closure, a read
/// section, an unwinding. A wait that would suspend it panics instead, and names the code (see
/// [`NoSwitch::refuse`]).
///
/// Guards nest; the innermost is the one reported.
///
/// ```
/// use corelay_sync::wait::NoSwitch;
///
/// assert_eq!(NoSwitch::active(), None);
/// let name = "increment";
/// // SAFETY: dropped below, before `name` ends.
/// let guard = unsafe { NoSwitch::enter(&name, |name| name) };
/// assert_eq!(NoSwitch::active(), Some("increment"));
/// drop(guard);
/// assert_eq!(NoSwitch::active(), None);
/// ```
pub struct NoSwitch<'a> {
    outer: Entry,
    _of_this_thread: PhantomData<(&'a (), *const ())>,
}

/// The name of the code that a guard marks, as a function and its argument.
#[derive(Clone, Copy)]
pub(super) struct Entry {
    data: *const (),
    name: Option<unsafe fn(*const ()) -> &'static str>,
}

/// The entry where no guard lives.
pub(super) const NOTHING: Entry = Entry {
    data: std::ptr::null(),
    name: None,
};

/// The entry of the innermost guard on this thread, or [`NOTHING`].
// Without a destructor it can be used as long as the thread runs; loom takes it away earlier.
#[inline]
fn current() -> Entry {
    with_local(|local| local.no_switch.get()).unwrap_or(NOTHING)
}

#[inline]
fn set(entry: Entry) {
    with_local(|local| local.no_switch.set(entry));
}

impl<'a> NoSwitch<'a> {
    /// Forbids waiting on this thread until the guard is dropped. `name(data)` gives the code's
    /// name; it is called only to refuse a wait.
    ///
    /// # Safety
    /// The guard is dropped (not forgotten), on this thread, before `data` ends, and before every
    /// guard that was entered earlier.
    #[inline]
    pub unsafe fn enter<T>(data: &'a T, name: fn(&'a T) -> &'static str) -> Self {
        // SAFETY: a reference is a pointer, so the two function types have one ABI. The pointer is
        // the reference `data`, which lives as long as the guard: `enter`'s caller drops the guard
        // first.
        let name = unsafe {
            std::mem::transmute::<fn(&'a T) -> &'static str, unsafe fn(*const ()) -> &'static str>(
                name,
            )
        };
        let innermost = Entry {
            data: std::ptr::from_ref(data).cast(),
            name: Some(name),
        };
        let outer = current();
        set(innermost);
        Self {
            outer,
            _of_this_thread: PhantomData,
        }
    }

    /// Whether code runs here that must not wait.
    #[inline(always)]
    pub fn is_active() -> bool {
        current().name.is_some()
    }

    /// The name of the running code that must not wait, if there is any.
    pub fn active() -> Option<&'static str> {
        let Entry { data, name } = current();
        // SAFETY: the guard that set them is alive, as the caller of `enter` promised.
        name.map(|name| unsafe { name(data) })
    }

    /// Panics if a wait is forbidden here. Every call of corelay that has to wait calls this first.
    ///
    /// # Panics
    /// Inside a guard. The message names the refused call, its place and the running code.
    ///
    /// ```should_panic
    /// use corelay_sync::wait::NoSwitch;
    ///
    /// #[track_caller]
    /// fn take_a_nap() {
    ///     NoSwitch::refuse("taking a nap");
    ///     std::thread::park();
    /// }
    ///
    /// let name = "increment";
    /// // SAFETY: dropped at the end, before `name` ends.
    /// let _guard = unsafe { NoSwitch::enter(&name, |name| name) };
    /// take_a_nap(); // taking a nap at src/main.rs:12:1 inside increment: …
    /// ```
    #[track_caller]
    #[inline]
    pub fn refuse(call: &str) {
        if Self::is_active() {
            Self::refuse_if_active(call, Location::caller());
        }
    }

    /// Panics as [`refuse`](Self::refuse) does, for a call that knows its place.
    ///
    /// # Panics
    /// Inside a guard, as [`refuse`](Self::refuse) does.
    #[inline]
    pub fn refuse_at(call: Call) {
        if Self::is_active() {
            Self::refuse_if_active(call.name, call.at);
        }
    }

    /// Out of line, so that a call that may wait only looks at one word.
    #[track_caller]
    #[cold]
    fn refuse_if_active(call: &str, at: &Location<'_>) {
        if let Some(running) = Self::active() {
            panic!("corelay: {call} at {at} inside {running}: this code may not wait")
        }
    }
}

impl Drop for NoSwitch<'_> {
    #[inline]
    fn drop(&mut self) {
        set(self.outer);
    }
}
