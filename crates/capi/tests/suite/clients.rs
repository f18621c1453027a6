//! Client threads: their ends, and who may join them.

use crate::support::*;
use corelay_capi::*;
use std::cell::{Cell, RefCell};
use std::ffi::c_void;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

/// The work of a client: to ask, and to ask again in each callback.
struct Chain {
    servers: Servers,
    n: u64,
    got: Got,
}

const LINKS: u64 = 500;

/// A value with a destructor.
struct Token;

impl Drop for Token {
    fn drop(&mut self) {}
}

thread_local!(static HERE: Token = const { Token });

extern "C" fn ask_again(arg: *mut c_void, result: u64) {
    let chain: *mut Chain = arg.cast();
    let alive = HERE.try_with(|_| ()).is_ok();
    unsafe {
        (*chain).got.push(if alive { result } else { 0 });
        if result < LINKS {
            ask(chain);
        }
    }
}

unsafe fn ask(chain: *mut Chain) {
    let (servers, n) = unsafe { ((*chain).servers, &raw mut (*chain).n) };
    let asked = unsafe { increment_then(servers, 0, n, Some(ask_again), chain.cast()) };
    assert_eq!(asked, Status::Ok);
}

/// Returns without a barrier.
extern "C" fn ask_and_leave(arg: *mut c_void) -> *mut c_void {
    unsafe { ask(arg.cast()) };
    // Made late, it would be dropped early.
    HERE.with(|_| ());
    arg
}

/// Callbacks find the client's thread-locals alive.
#[test]
fn a_join_implies_a_barrier() {
    let servers = Launched::new(1);
    let mut chain = Chain {
        servers: servers.0,
        n: 0,
        got: Got::new(),
    };
    let client = create(ask_and_leave, user(&mut chain)).expect("a thread");
    assert_eq!(join(client), Ok(user(&mut chain)));
    assert_eq!(chain.n, LINKS);
    assert!(chain.got.into_iter().eq(1..=LINKS));
}

/// The callbacks of a thread that the program created run at its end, too, when its thread-locals
/// are dropped.
#[test]
fn other_threads_are_clients() {
    let servers = Launched::new(1);
    let mut chain = Chain {
        servers: servers.0,
        n: 0,
        got: Got::new(),
    };
    let to = user(&mut chain) as usize;
    let thread = thread::spawn(move || unsafe { ask(to as *mut Chain) });
    thread.join().expect("an end in order");
    assert_eq!((chain.n, chain.got.len() as u64), (LINKS, LINKS));
}

/// A value that makes a call after the other thread-locals of its thread have gone: those made last
/// go first.
#[test]
fn calls_work_to_a_threads_very_end() {
    struct Late {
        open: Cell<Servers>,
        closed: Cell<Servers>,
    }
    static SAID: AtomicU64 = AtomicU64::new(0);
    impl Drop for Late {
        fn drop(&mut self) {
            let closed = delegate(self.closed.get(), 0, answer, &[]);
            let open = delegate(self.open.get(), 0, answer, &[]);
            if (closed, open) == (Err(Status::Closed), Ok(42)) {
                SAID.fetch_add(1, Ordering::Relaxed);
            }
        }
    }
    thread_local! {
        static LATE: Late = const { Late { open: Cell::new(0), closed: Cell::new(0) } };
    }
    let servers = Launched::new(1);
    let open = servers.0;
    thread::spawn(move || {
        let closed = launch(1).expect("a thread");
        LATE.with(|late| {
            late.open.set(open);
            late.closed.set(closed);
        });
        for servers in [open, closed] {
            assert_eq!(delegate(servers, 0, answer, &[]), Ok(42));
        }
        assert_eq!(corelay_shutdown_servers(closed), Status::Ok);
    })
    .join()
    .expect("an end in order");
    assert_eq!(SAID.load(Ordering::Relaxed), 1);
}

/// Callbacks at a thread's end are callbacks, too: nothing in them waits for callbacks, and what
/// the call around them uses stays, whatever they shut down.
#[test]
fn callbacks_at_a_threads_very_end_are_callbacks() {
    #[derive(Default)]
    struct Late {
        old: Servers,
        new: Servers,
        said: Vec<Status>,
    }
    extern "C" fn replace(user: *mut c_void, _: u64) {
        let late: &mut Late = unsafe { &mut *user.cast() };
        late.said.extend([corelay_async_barrier(), corelay_poll()]);
        assert_eq!(corelay_shutdown_servers(late.old), Status::Ok);
        late.new = launch(1).expect("a thread");
        assert_eq!(delegate(late.new, 0, answer, &[]), Ok(42));
    }
    impl Drop for Late {
        fn drop(&mut self) {
            self.old = launch(1).expect("a thread");
            let mut n = 0;
            let (old, to) = (self.old, user(self));
            let asked = unsafe { increment_then(old, 0, &raw mut n, Some(replace), to) };
            assert_eq!((asked, n), (Status::Ok, 1));
            assert_eq!(self.said, [Status::InCallback; 2]);
            assert_eq!(corelay_shutdown_servers(self.new), Status::Ok);
            ENDED.fetch_add(1, Ordering::Relaxed);
        }
    }
    static ENDED: AtomicU64 = AtomicU64::new(0);
    thread_local!(static LATE: RefCell<Late> = RefCell::default());
    let thread = thread::spawn(|| {
        LATE.with(|_| ());
        // Made later, the library's thread-locals go first.
        assert_eq!(corelay_poll(), Status::Ok);
    });
    thread.join().expect("an end in order");
    assert_eq!(ENDED.load(Ordering::Relaxed), 1);
}

#[test]
fn a_client_is_joined_once() {
    let client = create(give_back, null_mut()).expect("a thread");
    // Any thread may join it.
    let joined = thread::spawn(move || join(client).map(|result| result as usize));
    assert_eq!(joined.join().expect("no panic"), Ok(0));
    assert_eq!(join(client), Err(Status::Joined));
    let other = create(give_back, null_mut()).expect("a thread");
    assert_eq!(join(client), Err(Status::Joined));
    // Two threads join at a time: one of them succeeds.
    let both = [(); 2].map(|()| thread::spawn(move || join(other).is_ok()));
    let joined = both.map(|thread| thread.join().expect("no panic"));
    assert_eq!(joined.iter().filter(|&&joined| joined).count(), 1);
}

#[test]
fn a_client_cannot_join_itself() {
    static OWN: AtomicU64 = AtomicU64::new(0);
    extern "C" fn join_itself(_: *mut c_void) -> *mut c_void {
        loop {
            match OWN.load(Ordering::Relaxed) {
                0 => thread::yield_now(),
                own => return join(own).expect_err("itself") as usize as *mut c_void,
            }
        }
    }
    let client = create(join_itself, null_mut()).expect("a thread");
    OWN.store(client, Ordering::Relaxed);
    assert_eq!(
        join(client),
        Ok(Status::JoinsItself as usize as *mut c_void)
    );
}

#[test]
fn null_is_refused() {
    let client = create(give_back, null_mut()).expect("a thread");
    let mut none = 0;
    let refused = unsafe {
        [
            corelay_client_thread_create(null_mut(), Some(give_back), null_mut()),
            corelay_client_thread_create(&raw mut none, None, null_mut()),
            corelay_client_thread_join(client, null_mut()),
        ]
    };
    assert_eq!((refused, none), ([Status::Null; 3], 0));
    assert_eq!(join(client), Ok(null_mut()), "and may still be joined");
}
