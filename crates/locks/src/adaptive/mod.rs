//! The lock for programs that do not want to choose.
//!
//! | file | idea |
//! |---|---|
//! | this one | the value, and the calls |
//! | [guard](self::guard) | the right to use the value, as `std`'s guard is |
//! | [word](self::word) | who holds the lock, who waits, and how it is left |
//! | [waiting](self::waiting) | how a thread or a fibre waits |
//! | [record](self::record) | a closure that waits to be run |
//! | [sleeper](self::sleeper) | a caller of `lock` that sleeps |
//! | [owner](self::owner) | names for threads and fibres |
//!
//! It combines as flat combining does (Hendler, Incze, Shavit and Tzafrir 2010), but a closure is
//! published only after a spin in vain, and in the frame of its caller.
//! `docs/design/0018-adaptive-lock.md` has the reasons and the measurements.

mod guard;
mod owner;
mod record;
mod sleeper;
mod waiting;
mod word;

use crate::combining::{Operation, name_of};
use crate::session::sealed::Sealed;
use crate::session::{Exclusive, LockSession};
use corelay_sync::Shared;
use corelay_sync::facade::cell::UnsafeCell;
use corelay_sync::wait::{Call, NoSwitch};
pub use guard::AdaptiveGuard;
use record::Published;
use std::fmt;
use std::mem;
use std::panic::{RefUnwindSafe, UnwindSafe};
use std::sync::{LockResult, PoisonError, TryLockError, TryLockResult};
use word::{Held, Word};

/// Makes a function `const`, except in the models, whose atomics cannot be made in constants.
macro_rules! const_fn {
    ($(#[$attr:meta])* $vis:vis const fn $($rest:tt)*) => {
        #[cfg(not(any(corelay_loom, corelay_shuttle)))]
        $(#[$attr])* $vis const fn $($rest)*
        #[cfg(any(corelay_loom, corelay_shuttle))]
        $(#[$attr])* $vis fn $($rest)*
    };
}
use const_fn;

/// A lock for people who do not want to choose: `std::sync::Mutex`, and combining.
///
/// [`lock`](Self::lock) gives a guard, for sections that must run on the calling thread.
/// [`apply`](Self::apply) takes a closure, which another thread may run that holds the lock anyway:
/// then the value stays in that thread's cache, and no thread waits for another to wake up.
///
/// ```
/// use corelay_locks::Adaptive;
///
/// static HITS: Adaptive<Vec<u32>> = Adaptive::new(Vec::new());
///
/// std::thread::scope(|s| {
///     for id in 0..3 {
///         s.spawn(move || HITS.apply(|hits| hits.push(id))); // on any thread
///         s.spawn(move || HITS.lock().unwrap().push(id)); // on this one
///     }
/// });
/// assert_eq!(HITS.lock().unwrap().len(), 6);
/// ```
///
/// # Cost
/// If the lock is free, a call takes one compare-and-swap to enter, and a plain store to leave.
///
/// # What a closure may rely on
/// * **Its thread is any thread** or fibre that uses the lock, so closure and result are `Send`.
///   Thread-locals inside are those of the thread that runs it, and some may be gone if that thread
///   is ending. The stack is that thread's too: if fibres use the lock, it may be as small as theirs.
/// * **Nothing may wait inside**, since others wait behind it: a wait inside panics and names the
///   closure, wherever it runs. A free lock can still be entered. A section that waits uses
///   [`lock`](Self::lock), whose guard may be held over any wait.
///
/// # How a thread waits
/// It spins for five to ten microseconds with growing pauses. If yields have lately let other threads
/// run, as they do when there are more threads than CPUs, it spins for one microsecond and yields
/// instead. Then it publishes its closure, polls, yields, and sleeps. A fibre spins for one
/// microsecond, and is suspended instead of yielding. Whoever leaves the lock, by the end of a closure or by
/// dropping a guard, runs the closures that have been published, and then wakes one caller of `lock`
/// that sleeps.
///
/// A thread that has been woken may be busy with other code: with a callback that it runs while it
/// waits, or with another fibre. Then the sleepers behind it wait until it, or another thread, has
/// entered and left the lock. A callback itself is not held up so: it may wait for the lock that its
/// thread waits for.
///
/// # Fairness
/// None among threads that spin. A published closure runs when the lock is next left; but a thread
/// that has run 64 closures leaves those of spinning threads to the next one. A thread that sleeps in
/// `lock`, and has been woken and overtaken eight times, is handed the lock, unless it is one that may
/// be busy with other code: a thread of fibres, or a client of trustees.
///
/// # Panic
/// A panic in a closure reaches the caller of `apply` whose closure it was, and nobody else. It
/// *poisons* the lock, as does a panic of a thread that has a guard: then [`lock`](Self::lock),
/// [`try_lock`](Self::try_lock), [`get_mut`](Self::get_mut) and [`into_inner`](Self::into_inner)
/// return an error with the value inside, as `std` has it, and `apply` panics. A
/// [session](corelay_sync::Session) ignores the mark, as the sessions of all locks do. A fibre that
/// is cancelled under a guard unwinds, and so poisons too.
///
/// A closure may run on a thread that unwinds already. Then a guard taken inside, of this type or of
/// `std`, does not poison its lock, since no guard can tell the two panics apart.
///
/// # Nesting
/// `lock` or `apply` under a guard of the *same* lock, on the same thread or fibre, panics instead
/// of waiting for ever; so it does inside a closure of the same lock. A deadlock of several locks is
/// not detected.
///
/// # Cancellation
/// A cancelled fibre stops waiting in `lock`, and unwinds. No cancellation ends an `apply`, for
/// another thread may be running the closure.
///
/// # Layout
/// Word and value share one 64-byte line if the value has up to 24 bytes. The lock owns no heap memory
/// while nobody waits. A caller of `lock` that sleeps has some, until it has been woken; if it is
/// cancelled, until the lock is next left.
///
/// ```
/// assert_eq!(size_of::<corelay_locks::Adaptive<[u64; 3]>>(), 64);
/// ```
// 64 bytes: the line of x86-64 and of most aarch64 machines, as for `Lock`.
#[repr(C, align(64))]
pub struct Adaptive<T: ?Sized> {
    word: Word,
    value: UnsafeCell<T>,
}

// SAFETY: one thread at a time reaches the value, as `Word` promises. It may be any thread, so the
// value has to be `Send` and need not be `Sync`.
unsafe impl<T: ?Sized + Send> Sync for Adaptive<T> {}
// SAFETY: it owns the value. What else it owns are marks that nobody uses any more: whoever waits
// borrows the lock.
unsafe impl<T: ?Sized + Send> Send for Adaptive<T> {}

// A value that a panic has left half done is marked.
impl<T: ?Sized> UnwindSafe for Adaptive<T> {}
impl<T: ?Sized> RefUnwindSafe for Adaptive<T> {}

impl<T> Adaptive<T> {
    const_fn! {
        /// Wraps `value`; the lock is free.
        ///
        /// ```
        /// static HITS: corelay_locks::Adaptive<u64> = corelay_locks::Adaptive::new(5);
        /// assert_eq!(HITS.apply(|hits| *hits), 5);
        /// ```
        pub const fn new(value: T) -> Self {
            Self {
                word: Word::new(),
                value: UnsafeCell::new(value),
            }
        }
    }

    /// Takes the value out: nobody else can hold the lock now.
    ///
    /// # Errors
    /// If the lock is poisoned; the value is in the error.
    pub fn into_inner(self) -> LockResult<T> {
        let is_poisoned = self.is_poisoned();
        marked(is_poisoned, self.value.into_inner())
    }
}

impl<T: ?Sized> Adaptive<T> {
    /// Waits until nobody holds the lock, and takes it. A fibre that is cancelled meanwhile unwinds.
    ///
    /// ```
    /// let lock = corelay_locks::Adaptive::new(vec![1]);
    /// lock.lock().unwrap().push(2);
    /// assert_eq!(*lock.lock().unwrap(), [1, 2]);
    /// ```
    ///
    /// # Errors
    /// If the lock is poisoned; the guard is in the error.
    ///
    /// # Panics
    /// If this thread or fibre has a guard of this lock. In a place where nothing may wait (inside a
    /// closure of a combining lock, inside a delegated closure), if the lock is taken: see
    /// [`NoSwitch`].
    #[inline]
    #[track_caller]
    pub fn lock(&self) -> LockResult<AdaptiveGuard<'_, T>> {
        let owner = owner::current();
        if !self.word.try_enter(owner) {
            self.word.enter(owner, Call::new(WAIT).cancellable());
        }
        self.guard()
    }

    /// Takes the lock if nobody holds it.
    ///
    /// ```
    /// let lock = corelay_locks::Adaptive::new(1);
    /// let guard = lock.try_lock().unwrap();
    /// assert!(lock.try_lock().is_err());
    /// drop(guard);
    /// assert_eq!(*lock.try_lock().unwrap(), 1);
    /// ```
    ///
    /// # Errors
    /// If the lock is taken, or poisoned; then the guard is in the error.
    #[inline]
    pub fn try_lock(&self) -> TryLockResult<AdaptiveGuard<'_, T>> {
        if !self.word.try_enter(owner::current()) {
            return Err(TryLockError::WouldBlock);
        }
        Ok(self.guard()?)
    }

    /// The guard of the calling thread, which has entered.
    #[inline]
    fn guard(&self) -> LockResult<AdaptiveGuard<'_, T>> {
        // SAFETY: both callers have just entered.
        let guard = unsafe { AdaptiveGuard::new(self) };
        marked(self.is_poisoned(), guard)
    }

    /// Runs `f` with the value, and returns its result; `f` runs here or on another thread that uses
    /// the lock. It may borrow from the caller's frame.
    ///
    /// ```
    /// let lock = corelay_locks::Adaptive::new(String::from("a"));
    /// let suffix = String::from("b");
    /// assert_eq!(lock.apply(|text| { text.push_str(&suffix); text.len() }), 2);
    /// ```
    /// A closure that must stay on its thread does not compile:
    /// ```compile_fail,E0277
    /// let lock = corelay_locks::Adaptive::new(0);
    /// let mine = std::rc::Rc::new(1);
    /// lock.apply(|n| *n += *mine);
    /// ```
    ///
    /// # Panics
    /// With the panic of `f`. If the lock is poisoned. If this thread or fibre has a guard of this
    /// lock. In a place where nothing may wait, if the lock is taken: see [`NoSwitch`].
    #[inline]
    #[track_caller]
    pub fn apply<R: Send, F: FnOnce(&mut T) -> R + Send>(&self, f: F) -> R {
        let word = &self.word;
        let result = self.run(|value| (!word.is_poisoned()).then(|| f(value)));
        match result {
            Some(result) => result,
            None => refuse_poisoned(),
        }
    }

    /// Runs `f` with the value, poisoned or not.
    #[inline]
    #[track_caller]
    fn run<R: Send, F: FnOnce(&mut T) -> R + Send>(&self, f: F) -> R {
        if !self.word.try_enter(word::APPLIES) {
            return self.combine(f);
        }
        // SAFETY: this thread has just entered.
        let held = unsafe { Held::new(&self.word) };
        let result = self.value.with_mut(|value| {
            // SAFETY: the guard is dropped at the end of this frame, on this thread, for the code
            // below cannot be suspended; and the name is a constant.
            let _leaf = unsafe { NoSwitch::enter(name_of::<F>()) };
            // SAFETY: the lock is held, so this is the only reference to the value; `f` cannot keep
            // it, for it must accept any lifetime.
            f(unsafe { &mut *value })
        });
        held.leave();
        result
    }

    /// Waits until `f` has been run, here or elsewhere.
    #[cold]
    #[inline(never)]
    #[track_caller]
    fn combine<R: Send, F: FnOnce(&mut T) -> R + Send>(&self, f: F) -> R {
        let call = Call::new(WAIT);
        // Only the words go to another thread by this reference: `T` may have to stay on this one.
        let word = &self.word;
        let operation = Operation::new(&self.value, |value| poisoning(word, f, value));
        let mut published = Published::new(operation);
        // SAFETY: the record is fresh, and in a local that stays here.
        unsafe { self.word.apply(published.place(), call) };
        published.into_result()
    }

    /// The value, without locking: `&mut self` proves that nobody else has the lock.
    ///
    /// # Errors
    /// If the lock is poisoned; the value is in the error.
    pub fn get_mut(&mut self) -> LockResult<&mut T> {
        let is_poisoned = self.is_poisoned();
        let value = self.value.with_mut(|value| {
            // SAFETY: `&mut self` excludes every holder, and the result borrows from it.
            unsafe { &mut *value }
        });
        marked(is_poisoned, value)
    }

    /// Whether a section has panicked. If other threads use the lock, the answer may be out of date.
    ///
    /// ```
    /// let lock = corelay_locks::Adaptive::new(0);
    /// let apply = || lock.apply(|_| std::panic::resume_unwind(Box::new(())));
    /// assert!(std::panic::catch_unwind(apply).is_err());
    /// assert!(lock.is_poisoned());
    /// lock.clear_poison();
    /// assert!(lock.lock().is_ok());
    /// ```
    #[inline]
    pub fn is_poisoned(&self) -> bool {
        self.word.is_poisoned()
    }

    /// Removes the mark of a section that has panicked, once the value is in order again.
    pub fn clear_poison(&self) {
        self.word.clear_poison();
    }
}

/// The name of the wait, in dumps and in panics where nothing may wait.
const WAIT: &str = "waiting for an `Adaptive` lock";

/// `value`, in an error if the lock is poisoned.
#[inline]
fn marked<V>(is_poisoned: bool, value: V) -> LockResult<V> {
    if is_poisoned {
        Err(PoisonError::new(value))
    } else {
        Ok(value)
    }
}

/// Runs `f`, and marks the lock if it unwinds.
#[inline]
fn poisoning<T: ?Sized, R>(word: &Word, f: impl FnOnce(&mut T) -> R, value: &mut T) -> R {
    struct Bomb<'a>(&'a Word);
    impl Drop for Bomb<'_> {
        fn drop(&mut self) {
            self.0.poison();
        }
    }
    let bomb = Bomb(word);
    let result = f(value);
    mem::forget(bomb);
    result
}

#[cold]
#[track_caller]
fn refuse_poisoned() -> ! {
    panic!(
        "corelay: an `Adaptive` lock is poisoned, for a section has panicked: look at the value by \
         `lock`, and then call `clear_poison`"
    )
}

impl<T> Sealed for Adaptive<T> {}

impl<T> Exclusive for Adaptive<T> {
    type Value = T;

    #[inline]
    #[track_caller]
    fn exclusively<R: Send>(&self, f: impl FnOnce(&mut T) -> R + Send) -> R {
        self.run(f)
    }
}

impl<T> Shared for Adaptive<T> {
    type Value = T;
    type Session<'a>
        = LockSession<'a, Self>
    where
        Self: 'a;

    #[inline(always)]
    fn session(&self) -> LockSession<'_, Self> {
        LockSession::new(self)
    }
}

impl<T: Default> Default for Adaptive<T> {
    fn default() -> Self {
        Self::new(T::default())
    }
}

impl<T> From<T> for Adaptive<T> {
    fn from(value: T) -> Self {
        Self::new(value)
    }
}

/// Shows the value if the lock is free, as `std` does.
impl<T: ?Sized + fmt::Debug> fmt::Debug for Adaptive<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut lock = f.debug_struct("Adaptive");
        match self.try_lock() {
            Ok(guard) => lock.field("data", &&*guard),
            Err(TryLockError::Poisoned(poisoned)) => lock.field("data", &&**poisoned.get_ref()),
            Err(TryLockError::WouldBlock) => lock.field("data", &format_args!("<locked>")),
        };
        lock.field("poisoned", &self.is_poisoned());
        lock.finish_non_exhaustive()
    }
}
