//! Thread-locals of the machine's threads.

#![forbid(unsafe_code)]

use crate::system;
use std::any::Any;
use std::cell::RefCell;
use std::fmt;
use std::rc::Rc;

/// A thread-local of the machine's threads, like `std::thread::LocalKey`. Outside of a machine it
/// is a thread-local of the process's thread.
///
/// ```
/// use corelay_coherence::{LocalKey, Machine, run, spawn};
/// use std::cell::Cell;
///
/// static NUMBER: LocalKey<Cell<u64>> = LocalKey::new(|| Cell::new(1));
/// let main = || {
///     NUMBER.with(|number| number.set(2));
///     spawn(|| NUMBER.with(|number| assert_eq!(number.get(), 1))).join().unwrap();
///     NUMBER.with(|number| assert_eq!(number.get(), 2));
/// };
/// // SAFETY: nothing there uses a thread-local of `std`.
/// unsafe { run(Machine::new(1, 2, 1).unwrap(), vec![0, 1], main) };
/// ```
pub struct LocalKey<T: 'static> {
    init: fn() -> T,
}

/// The error of using a thread-local that has been dropped already, because its thread ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AccessError;

impl fmt::Display for AccessError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the thread-local has been dropped already")
    }
}

impl std::error::Error for AccessError {}

/// The thread-locals of one thread, in the order of their first use.
#[derive(Default)]
pub(crate) struct Locals(RefCell<Vec<Local>>);

struct Local {
    /// The address of the key.
    key: usize,
    /// `None` once it has been dropped.
    value: Option<Rc<dyn Any>>,
    /// Whether it stays until the thread is gone, as a thread-local of `std` without a destructor
    /// does.
    has_no_destructor: bool,
}

thread_local! {
    static OUTSIDE: Rc<Locals> = Rc::default();
}

impl<T: 'static> LocalKey<T> {
    /// A thread-local with the initial value `init()`. It must be a static: its address identifies
    /// it.
    pub const fn new(init: fn() -> T) -> Self {
        Self { init }
    }

    /// Runs `f` on this thread's value.
    ///
    /// # Panics
    /// If the value has been dropped already.
    pub fn with<R>(&'static self, f: impl FnOnce(&T) -> R) -> R {
        match self.try_with(f) {
            Ok(result) => result,
            Err(error) => panic!("{error}"),
        }
    }

    /// Runs `f` on this thread's value.
    ///
    /// # Errors
    /// If the value has been dropped already.
    pub fn try_with<R>(&'static self, f: impl FnOnce(&T) -> R) -> Result<R, AccessError> {
        let locals = match system::locals() {
            Some(locals) => locals,
            None => OUTSIDE.try_with(Rc::clone).map_err(|_| AccessError)?,
        };
        let key = std::ptr::from_ref(self).addr();
        let value = match locals.find(key) {
            Some(value) => value?,
            None => {
                // The list is not borrowed meanwhile: initialising one thread-local may use
                // another.
                let value: Rc<dyn Any> = Rc::new((self.init)());
                locals.0.borrow_mut().push(Local {
                    key,
                    value: Some(Rc::clone(&value)),
                    has_no_destructor: !std::mem::needs_drop::<T>(),
                });
                value
            }
        };
        let value = value.downcast_ref().expect("a key is of one type");
        Ok(f(value))
    }
}

impl Locals {
    fn find(&self, key: usize) -> Option<Result<Rc<dyn Any>, AccessError>> {
        let all = self.0.borrow();
        let found = all.iter().find(|local| local.key == key)?;
        Some(found.value.clone().ok_or(AccessError))
    }

    /// Drops the values that have a destructor, the youngest first, including those that are
    /// created meanwhile.
    pub(crate) fn drop_all(&self) {
        let next = || {
            let mut all = self.0.borrow_mut();
            let mut live = all
                .iter_mut()
                .rev()
                .filter(|local| !local.has_no_destructor);
            live.find_map(|local| local.value.take())
        };
        while let Some(value) = next() {
            // The list is not borrowed: destructors use other thread-locals.
            drop(value);
        }
    }
}

impl<T> fmt::Debug for LocalKey<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LocalKey").finish_non_exhaustive()
    }
}
