//! corelay for C: `corelay.h`, and a shared and a static library.
//!
//! A program launches servers, and delegates functions to them instead of locking the data that the
//! functions work on. These are the calls of the thesis on asynchronous delegation, with handles
//! and error codes:
//!
//! | call | the thesis's | what it does |
//! |---|---|---|
//! | [`corelay_launch_servers`] | Launch_Servers(n) | starts `n` servers, numbered from 0 |
//! | [`corelay_client_thread_create`] | Client_Thread_Create(f, arg) | starts a thread whose requests are done, and whose callbacks have run, before it can be joined |
//! | [`corelay_delegate_async`] | Delegate_Async(s, cb, f, args...) | server `s` calls `f` with up to 6 words; `cb` gets the result later, on this thread |
//! | [`corelay_async_barrier`] | Async_Barrier() | waits for everything that this thread has delegated, and runs its callbacks |
//! | [`corelay_delegate()`] | Delegate(s, retval, f, args...) | the same as `corelay_delegate_async`, but waits for the result |
//! | [`corelay_delegate_ptr`], [`corelay_delegate_async_ptr`] | | `f` gets a pointer instead of words |
//! | [`corelay_poll`] | | runs the callbacks that are due, and does not wait |
//! | [`corelay_client_thread_join`] | | waits for the end of a client |
//! | [`corelay_count_servers`], [`corelay_shutdown_servers`] | | the number of servers; their end |
//! | [`corelay_strerror`], [`corelay_version`] | | the meaning of a status; the version of the library |
//!
//! `docs/guide/from-c.md` is the page for users: installation, a program, the rules.
//! `examples/fetch_add.c` is the thesis's benchmark. From Rust use `corelay` itself.
//!
//! # When not to use it
//! As for corelay in general: for data that threads seldom want at the same time, a mutex is
//! cheaper.
//!
//! # Guarantees
//! * **Order.** The requests of one thread to one server run in their order.
//! * **Accepted means executed**, once, even if the servers are shut down meanwhile. A callback
//!   runs once, on the thread that delegated.
//! * **Nothing unwinds** out of a call. A panic of the library is a defect, and becomes
//!   [`Status::Panicked`]. A delegated function or a callback may only be left by returning; if it
//!   is written in Rust, its panic aborts the process.
//! * **Handles are checked**: zero, stale and made-up ones give a status. So does NULL for a
//!   pointer that is needed. The program answers for all other pointers.
//! * **Leaves.** Inside a delegated function every call is refused except `corelay_count_servers`,
//!   `corelay_strerror` and `corelay_version`.
//!
//! # How it works
//! A server is a trustee of `corelay_delegate` with one object of no size. A request is a closure
//! of a function pointer and its words, with a callback of a function pointer and its `user`. A
//! request takes no allocation, no lock and no atomic read-modify-write.
//!
//! | file | idea |
//! |---|---|
//! | `servers` | launch and shutdown; how a thread finds the servers of a handle |
//! | `delegate` | the four ways to ask |
//! | `client` | client threads, barrier, poll |
//! | `status` | the result of every call |
//! | `handle`, `table` | checked integers, and the things that they stand for |
//! | `no_unwind` | panics end here |
//!
//! `cargo xtask header` writes `corelay.h` from these files, and `cargo xtask tidy` reports it if
//! it is out of date. The comments on the items below are the header's.

mod client;
mod delegate;
mod handle;
mod no_unwind;
mod servers;
mod status;
mod table;

pub use client::{
    Client, ClientFunction, corelay_async_barrier, corelay_client_thread_create,
    corelay_client_thread_join, corelay_poll,
};
pub use delegate::{
    CORELAY_MAX_WORDS, Callback, Function, PtrFunction, corelay_delegate, corelay_delegate_async,
    corelay_delegate_async_ptr, corelay_delegate_ptr,
};
pub use servers::{
    CORELAY_MAX_SERVERS, Servers, corelay_count_servers, corelay_launch_servers,
    corelay_shutdown_servers,
};
pub use status::{Status, corelay_strerror, corelay_version};
