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
/// use corelay_sync::wait::{CodeName, NoSwitch};
///
/// assert_eq!(NoSwitch::active(), None);
/// let name = CodeName::fixed(&"increment");
/// // SAFETY: dropped below, before `name` ends.
/// let guard = unsafe { NoSwitch::enter(&name) };
/// assert_eq!(NoSwitch::active(), Some("increment"));
/// drop(guard);
/// assert_eq!(NoSwitch::active(), None);
/// ```
pub struct NoSwitch<'a> {
    outer: Entry,
    _of_this_thread: PhantomData<(&'a (), *const ())>,
}

/// The name of the code that a [`NoSwitch`] marks: a function, and the data from which it makes the
/// name.
///
/// If the name is known when the program is compiled, so is its address:
/// ```
/// use corelay_sync::wait::{CodeName, NoSwitch};
///
/// // SAFETY: dropped below; the name is a constant.
/// let guard = unsafe { NoSwitch::enter(const { &CodeName::fixed(&"increment") }) };
/// assert_eq!(NoSwitch::active(), Some("increment"));
/// drop(guard);
/// ```
#[derive(Clone, Copy, Debug)]
pub struct CodeName<'a> {
    data: *const (),
    name: unsafe fn(*const ()) -> &'static str,
    _of_data: PhantomData<&'a ()>,
}

impl<'a> CodeName<'a> {
    /// The name that `name(data)` makes. It is called only to refuse a wait.
    #[inline]
    pub const fn new<T>(data: &'a T, name: fn(&'a T) -> &'static str) -> Self {
        // SAFETY: a reference is a pointer, so the two function types have one ABI. The pointer is
        // the reference `data`, which lives as long as this name.
        let name = unsafe {
            std::mem::transmute::<fn(&'a T) -> &'static str, unsafe fn(*const ()) -> &'static str>(
                name,
            )
        };
        Self {
            data: std::ptr::from_ref(data).cast(),
            name,
            _of_data: PhantomData,
        }
    }

    /// The name `name`.
    pub const fn fixed(name: &'a &'static str) -> Self {
        Self::new(name, |name| name)
    }
}

/// The name of the code that the innermost guard marks. One word, since each delegated closure
/// writes it twice.
pub(super) type Entry = *const CodeName<'static>;

/// The entry where no guard lives.
pub(super) const NOTHING: Entry = std::ptr::null();

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
    /// Forbids waiting on this thread until the guard is dropped.
    ///
    /// # Safety
    /// The guard is dropped (not forgotten), on this thread, before `name` ends, and before every
    /// guard that was entered earlier.
    #[inline]
    pub unsafe fn enter(name: &'a CodeName<'a>) -> Self {
        let outer = current();
        set(std::ptr::from_ref(name).cast());
        Self {
            outer,
            _of_this_thread: PhantomData,
        }
    }

    /// Whether code runs here that must not wait.
    #[inline(always)]
    pub fn is_active() -> bool {
        !current().is_null()
    }

    /// The name of the running code that must not wait, if there is any.
    pub fn active() -> Option<&'static str> {
        // SAFETY: the guard that set it is alive, and so is the name, as the caller of `enter`
        // promised.
        let name = unsafe { current().as_ref() }?;
        // SAFETY: `CodeName::new` paired the function with its data, which lives as long as the name.
        Some(unsafe { (name.name)(name.data) })
    }

    /// Panics if a wait is forbidden here. Every call of corelay that has to wait calls this first.
    ///
    /// # Panics
    /// Inside a guard. The message names the refused call, its place and the running code.
    ///
    /// ```should_panic
    /// use corelay_sync::wait::{CodeName, NoSwitch};
    ///
    /// #[track_caller]
    /// fn take_a_nap() {
    ///     NoSwitch::refuse("taking a nap");
    ///     std::thread::park();
    /// }
    ///
    /// let name = CodeName::fixed(&"increment");
    /// // SAFETY: dropped at the end, before `name` ends.
    /// let _guard = unsafe { NoSwitch::enter(&name) };
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
