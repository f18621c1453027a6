//! Delegation: a function with words, or with a pointer, on its way to a server.

use crate::no_unwind::{entered, wanted};
use crate::servers::{Server, Servers, on_server};
use crate::status::Status;
use corelay_delegate::border::{apply_then, post};
use corelay_delegate::{Trust, TryApplyError};
use std::ffi::c_void;

/// The most words that are delegated with a function.
pub const CORELAY_MAX_WORDS: usize = 6;

/// A function that is delegated with words: it gets a copy of as many as were given.
pub type Function = Option<unsafe extern "C" fn(words: *const u64) -> u64>;

/// A function that is delegated with a pointer.
pub type PtrFunction = Option<unsafe extern "C" fn(arg: *mut c_void) -> u64>;

/// Gets what a delegated function has returned: is called once, on the thread that delegated
/// it, inside a later call of this library.
pub type Callback = Option<unsafe extern "C" fn(user: *mut c_void, result: u64)>;

/// Has a server call `function` with a copy of `count` words, and waits for what it returns.
///
/// Status: CORELAY_OK, CORELAY_NULL, CORELAY_TOO_MANY_WORDS, CORELAY_BAD_HANDLE,
/// CORELAY_CLOSED, CORELAY_BAD_SERVER, CORELAY_NESTED.
///
/// # Safety
/// `words` points to `count` words, and may be NULL where that is 0; `result` is NULL or
/// points to where the result goes. `function` may be called with these words on the server's
/// thread, touches shared data only if all access to it is delegated to that server, and
/// returns: no longjmp, no pthread_exit, no exception leaves it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn corelay_delegate(
    servers: Servers,
    server: u32,
    function: Function,
    words: *const u64,
    count: usize,
    result: *mut u64,
) -> Status {
    entered(|| {
        wanted(result)?;
        let function = function.ok_or(Status::Null)?;
        let answer = on_server(servers, server, |trust| {
            with_words!(function, words, count, |call| apply(trust, call))
        })?;
        // SAFETY: not NULL, so the caller's.
        unsafe { result.write(answer) };
        Ok(())
    })
}

/// Has a server call `function` with a copy of `count` words, and goes on. Later `callback`
/// gets `user` and what the function has returned; where it is NULL nobody does. It is called
/// inside a later call on this thread: corelay_async_barrier, corelay_poll, a request. Where
/// many requests are in flight (256 to a server), the call waits and calls callbacks itself.
///
/// What one thread delegates to one server runs in that order.
///
/// Status: CORELAY_OK, CORELAY_NULL, CORELAY_TOO_MANY_WORDS, CORELAY_BAD_HANDLE,
/// CORELAY_CLOSED, CORELAY_BAD_SERVER, CORELAY_NESTED, CORELAY_FULL.
///
/// # Safety
/// As for corelay_delegate. `callback` may be called with `user` on this thread, and returns.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn corelay_delegate_async(
    servers: Servers,
    server: u32,
    callback: Callback,
    user: *mut c_void,
    function: Function,
    words: *const u64,
    count: usize,
) -> Status {
    entered(|| {
        let function = function.ok_or(Status::Null)?;
        on_server(servers, server, |trust| {
            with_words!(function, words, count, |call| issue(
                trust, call, callback, user
            ))
        })
    })
}

/// As corelay_delegate, for a function with a pointer.
///
/// Status: CORELAY_OK, CORELAY_NULL, CORELAY_BAD_HANDLE, CORELAY_CLOSED, CORELAY_BAD_SERVER,
/// CORELAY_NESTED.
///
/// # Safety
/// As for corelay_delegate. What `arg` points to is the function's to use; it may lie on the
/// caller's stack, since the call waits.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn corelay_delegate_ptr(
    servers: Servers,
    server: u32,
    function: PtrFunction,
    arg: *mut c_void,
    result: *mut u64,
) -> Status {
    entered(|| {
        wanted(result)?;
        let call = PtrCall(function.ok_or(Status::Null)?, arg);
        let answer = on_server(servers, server, |trust| apply(trust, call))?;
        // SAFETY: not NULL, so the caller's.
        unsafe { result.write(answer) };
        Ok(())
    })
}

/// As corelay_delegate_async, for a function with a pointer.
///
/// Status: CORELAY_OK, CORELAY_NULL, CORELAY_BAD_HANDLE, CORELAY_CLOSED, CORELAY_BAD_SERVER,
/// CORELAY_NESTED, CORELAY_FULL.
///
/// # Safety
/// As for corelay_delegate_async. What `arg` points to is the function's to use until it has
/// returned, which the callback or a barrier tells.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn corelay_delegate_async_ptr(
    servers: Servers,
    server: u32,
    callback: Callback,
    user: *mut c_void,
    function: PtrFunction,
    arg: *mut c_void,
) -> Status {
    entered(|| {
        let call = PtrCall(function.ok_or(Status::Null)?, arg);
        on_server(servers, server, |trust| issue(trust, call, callback, user))
    })
}

type WordsFunction = unsafe extern "C" fn(words: *const u64) -> u64;
type ArgFunction = unsafe extern "C" fn(arg: *mut c_void) -> u64;

/// What a server is to do.
trait Call: Send + 'static {
    fn run(self) -> u64;
}

/// `W` is as many words as there are: so many that they are known when this is compiled.
struct WordsCall<W> {
    words: W,
    function: WordsFunction,
}

impl<W: Copy> WordsCall<W> {
    /// # Safety
    /// `words` points to a `W`. With these words `function` may be called on the server's
    /// thread.
    #[inline(always)]
    unsafe fn new(function: WordsFunction, words: *const u64) -> Self {
        // SAFETY: the caller's duty.
        let words = unsafe { words.cast::<W>().read() };
        Self { words, function }
    }
}

impl<W: Send + 'static> Call for WordsCall<W> {
    #[inline(always)]
    fn run(self) -> u64 {
        let words = std::ptr::from_ref(&self.words).cast();
        // SAFETY: the duty of whoever delegated it.
        unsafe { (self.function)(words) }
    }
}

struct PtrCall(ArgFunction, *mut c_void);

// SAFETY: whoever delegates it leaves what it points to to the server's thread.
unsafe impl Send for PtrCall {}

impl Call for PtrCall {
    #[inline(always)]
    fn run(self) -> u64 {
        // SAFETY: the duty of whoever delegated it.
        unsafe { (self.0)(self.1) }
    }
}

/// Makes a call of `$count` words and does something with it. One word is no array: with its
/// function it travels in registers.
macro_rules! with_words {
    ($function:ident, $words:ident, $count:ident, |$call:ident| $body:expr) => {
        with_words!(@ $function, $words, $count, $call, $body,
            1 u64, 2 [u64; 2], 3 [u64; 3], 4 [u64; 4], 5 [u64; 5], 6 [u64; 6])
    };
    (@ $function:ident, $words:ident, $count:ident, $call:ident, $body:expr,
        $($n:literal $W:ty),*) => {
        match $count {
            0 => {
                // SAFETY: there is nothing to be read; the rest is the program's duty.
                let $call = unsafe { WordsCall::<()>::new($function, $words) };
                $body
            }
            $($n => {
                wanted($words)?;
                // SAFETY: not NULL, so as many words by the duty of the program.
                let $call = unsafe { WordsCall::<$W>::new($function, $words) };
                $body
            })*
            _ => Err(Status::TooManyWords),
        }
    };
}
use with_words;

/// Waits for the result of `call`.
#[inline(always)]
fn apply(trust: &Trust<Server>, call: impl Call) -> Result<u64, Status> {
    trust
        .try_apply(move |_| call.run())
        .map_err(|error| match error {
            // C has no launches, in which alone a wait can be circular.
            TryApplyError::Nested(_) | TryApplyError::Circular(_) => Status::Nested,
            TryApplyError::Closed(_) => Status::Closed,
            // Of functions that cannot unwind.
            TryApplyError::Poisoned => Status::Panicked,
        })
}

/// Asks for `call` and goes on.
#[inline(always)]
fn issue(
    trust: &Trust<Server>,
    call: impl Call,
    callback: Callback,
    user: *mut c_void,
) -> Result<(), Status> {
    let asked = match callback {
        // SAFETY: the duty of whoever delegated it.
        Some(callback) => apply_then(
            trust,
            move |_| call.run(),
            move |n| unsafe {
                callback(user, n);
            },
        ),
        None => post(trust, move |_| {
            call.run();
        }),
    };
    asked.map_err(Status::from)
}
