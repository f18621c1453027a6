//! Client threads, and what a client does besides delegating.

use crate::handle::{Handle, Kind};
use crate::no_unwind::{entered, wanted};
use crate::servers::refuse_nested;
use crate::status::Status;
use crate::table::{Absent, Table};
use corelay_delegate::border::refused_here;
use corelay_delegate::{ClientGuard, barrier, poll};
use std::cell::Cell;
use std::ffi::c_void;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::{Builder, JoinHandle};

/// A client thread, from corelay_client_thread_create. Zero is none.
pub type Client = u64;

/// What a client thread runs.
pub type ClientFunction = Option<unsafe extern "C" fn(arg: *mut c_void) -> *mut c_void>;

/// Bytes, of address space: what C programs are used to.
const STACK: usize = 8 << 20;

/// A pointer that the program hands from thread to thread.
struct Handed(*mut c_void);

// SAFETY: what it points to is the program's duty.
unsafe impl Send for Handed {}

/// Those that nobody has joined; `None` while a thread is being made.
static CLIENTS: Mutex<Table<Option<JoinHandle<Handed>>>> = Mutex::new(Table::new(Kind::Client));

thread_local! {
    /// The handle of this client thread.
    static OWN: Cell<Client> = const { Cell::new(0) };
}

fn clients() -> MutexGuard<'static, Table<Option<JoinHandle<Handed>>>> {
    // As `launched`.
    CLIENTS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Creates a client thread, which runs `function` with `arg`. Whatever it has delegated is
/// done, and its callbacks have run, before it can be joined. Its stack takes 8 MiB.
///
/// Any thread may delegate, also those that the program creates otherwise; they need a
/// corelay_async_barrier where others rely on their callbacks.
///
/// Status: CORELAY_OK, CORELAY_NULL, CORELAY_NO_THREAD, CORELAY_NESTED.
///
/// # Safety
/// `client` is NULL or points to where the handle goes; the thread may run before it is there.
/// `function` may be called with `arg` on another thread, and returns.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn corelay_client_thread_create(
    client: *mut Client,
    function: ClientFunction,
    arg: *mut c_void,
) -> Status {
    entered(|| {
        wanted(client)?;
        let function = function.ok_or(Status::Null)?;
        refuse_nested()?;
        let arg = Handed(arg);
        let handle = create(move |handle| {
            let arg = arg;
            OWN.set(handle.0);
            let all_done = ClientGuard::new();
            // SAFETY: the duty of whoever created the client.
            let result = Handed(unsafe { function(arg.0) });
            // The barrier, while the thread-locals of the program's are alive.
            drop(all_done);
            result
        })?;
        // SAFETY: not NULL, so the caller's.
        unsafe { client.write(handle.0) };
        Ok(())
    })
}

fn create(run: impl FnOnce(Handle) -> Handed + Send + 'static) -> Result<Handle, Status> {
    let mut clients = clients();
    let handle = clients.insert(None).map_err(|_| Status::NoThread)?;
    let thread = Builder::new()
        .name("client".into())
        .stack_size(STACK)
        .spawn(move || run(handle));
    match thread {
        Ok(thread) => {
            let made = clients.get_mut(handle).expect("nobody else has the handle");
            *made = Some(thread);
            Ok(handle)
        }
        Err(_) => {
            let _ = clients.remove(handle);
            Err(Status::NoThread)
        }
    }
}

/// Waits for the end of a client thread and of all that it has delegated, and gives what its
/// function has returned. Any other thread may join it, once.
///
/// Status: CORELAY_OK, CORELAY_NULL, CORELAY_BAD_HANDLE, CORELAY_JOINED,
/// CORELAY_JOINS_ITSELF, CORELAY_NESTED.
///
/// # Safety
/// `result` is NULL or points to where the result goes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn corelay_client_thread_join(
    client: Client,
    result: *mut *mut c_void,
) -> Status {
    entered(|| {
        wanted(result)?;
        refuse_nested()?;
        if client != 0 && client == OWN.get() {
            return Err(Status::JoinsItself);
        }
        // Not locked while it waits.
        let thread = clients()
            .remove(Handle(client))
            .map_err(|absent| match absent {
                Absent::Stale => Status::Joined,
                Absent::MadeUp => Status::BadHandle,
            })?;
        let Handed(answer) = thread
            .and_then(|thread| thread.join().ok())
            .ok_or(Status::Panicked)?;
        // SAFETY: not NULL, so the caller's.
        unsafe { result.write(answer) };
        Ok(())
    })
}

/// Waits until everything that this thread has delegated is done and its callbacks have run,
/// also what those have delegated.
///
/// Status: CORELAY_OK, CORELAY_NESTED, CORELAY_IN_CALLBACK.
#[unsafe(no_mangle)]
pub extern "C" fn corelay_async_barrier() -> Status {
    entered(|| {
        refused_here()?;
        // Failures are panics, which C functions do not have.
        barrier().map_err(|_| Status::Panicked)
    })
}

/// Calls the callbacks of what has been answered to this thread; does not wait.
///
/// Status: CORELAY_OK, CORELAY_NESTED, CORELAY_IN_CALLBACK.
#[unsafe(no_mangle)]
pub extern "C" fn corelay_poll() -> Status {
    entered(|| {
        refused_here()?;
        poll();
        Ok(())
    })
}
