//! Dedicated trustees: threads that do nothing else.

mod entrust;

use crate::context::discard::discard;
use crate::context::events;
use crate::context::member::wait_for_end;
use crate::context::serving::Serving;
use crate::context::thread::{in_leaf, in_turn};
use crate::error::{BarrierError, CircularWait, Faults};
use crate::metrics::Metrics;
use crate::object::registry::Registry;
use crate::object::shared::{Settings, Shared};
use crate::object::{Header, Object};
use crate::policy::{MAX_BOUND, Policy};
use crate::trustee::Trustee;
use crate::trustee::spawn::{MAX_WINDOW, StartError};
use crate::wire::ring::FIRST_UNITS;
use crate::wire::word::Position;
use corelay_sync::Backoff;
use corelay_sync::facade::MODEL;
use corelay_sync::facade::atomic::AtomicUsize;
use corelay_sync::facade::sync::Arc;
use corelay_sync::facade::thread::JoinHandle;
use corelay_sync::wait::{Host, NoSwitch};
use std::fmt;
use std::time::Duration;

/// A set of running trustees, with the threads on which they serve. Values are entrusted to them by
/// it, and [`shutdown`](Self::shutdown) ends them.
///
/// ```
/// use corelay_delegate::{Trustees, barrier};
///
/// let trustees = Trustees::dedicated(1).start()?;
/// let hits = trustees.entrust(0u64);
/// assert_eq!(hits.apply(|h| { *h += 1; *h }), 1);
/// hits.post(|h| *h += 1);
/// barrier().unwrap();
/// assert_eq!(hits.apply(|h| *h), 2);
/// # Ok::<(), corelay_delegate::StartError>(())
/// ```
pub struct Trustees {
    pub(crate) members: Vec<TrusteeHandle>,
    /// The number of turns that `entrust` has taken, by which it picks the next trustee.
    pub(crate) next: AtomicUsize,
}

// SAFETY: only the trustee follows `home`; the rest may be shared by its types.
unsafe impl Send for TrusteeHandle {}
// SAFETY: only the trustee follows `home`; the rest may be shared by its types.
unsafe impl Sync for TrusteeHandle {}

/// A running trustee as [`Trustees`] keeps it: shared state, registry and thread.
pub(crate) struct TrusteeHandle {
    pub(crate) shared: Arc<Shared>,
    /// The trustee's registry of objects: itself an object, alive until the trustee has ended.
    pub(crate) home: *mut Object<Registry>,
    thread: Option<JoinHandle<()>>,
}

impl Trustees {
    /// Returns settings for `n` trustees, each on a thread of its own. Nothing happens before
    /// [`start`](Builder::start).
    pub fn dedicated(n: usize) -> Builder {
        Builder {
            n,
            window: 256,
            batch: 128,
            ring_bytes: 64 << 10,
            spin: Duration::from_micros(100),
            name: String::from("trustee"),
            cpus: Vec::new(),
            origin: Position::new(0, 0),
            policy: None,
            observe: false,
            slow: Duration::from_millis(1),
            stack_size: None,
            host: None,
        }
    }

    /// The number of trustees.
    #[allow(clippy::len_without_is_empty)] // There is always one.
    pub fn len(&self) -> usize {
        self.members.len()
    }

    /// The counters of each trustee, as it last published them: when idle, every 64 passes with
    /// work, and at its end. For complete figures see [`shutdown`](Self::shutdown), for more of
    /// them [`report`](Self::report).
    pub fn metrics(&self) -> Vec<Metrics> {
        self.members
            .iter()
            .map(|member| member.shared.counters.load())
            .collect()
    }

    /// Ends the trustees, after they have served every accepted request and dropped their values.
    /// Returns the counters of each. Later requests are refused as `Closed`. Callbacks that a
    /// thread has not run yet stay with it.
    ///
    /// The trustees' threads have ended then. A member of a flat team, which serves while it waits,
    /// does not wait for the destructors of thread-locals on these threads: they may still make
    /// requests to it.
    ///
    /// ```
    /// # use corelay_delegate::{Trustees, TryPostError};
    /// let trustees = Trustees::dedicated(1).start().unwrap();
    /// let hits = trustees.entrust(0u64);
    /// (0..10).for_each(|_| hits.post(|h| *h += 1));
    /// let counted = trustees.shutdown(); // all ten have run
    /// assert!(counted[0].requests >= 10);
    /// assert!(matches!(hits.try_post(|h| *h += 1), Err(TryPostError::Closed(_))));
    /// ```
    ///
    /// # Panics
    /// Inside a delegated closure, and inside a closure launched on one of these trustees. Inside
    /// another launched closure that one of these trustees waits for: the trustees end by
    /// themselves then.
    #[track_caller]
    pub fn shutdown(mut self) -> Vec<Metrics> {
        NoSwitch::refuse("Trustees::shutdown");
        assert!(
            !(in_turn() && self.members.iter().any(|member| owns(&member.shared))),
            "corelay: Trustees::shutdown inside a closure launched on one of them, for whose end it \
             would wait; drop them instead"
        );
        if let Some(ring) = self.end() {
            panic!("{ring}");
        }
        self.metrics()
    }

    /// Takes the failures of threads that have ended, or of clients that were dropped, before a
    /// [`barrier`](crate::barrier) reported them: of a scoped thread that posted and returned, for
    /// instance. They are kept until they are taken.
    ///
    /// ```
    /// # use corelay_delegate::{ClientGuard, Trustees};
    /// let trustees = Trustees::dedicated(1).start()?;
    /// let stock = trustees.entrust(3u32);
    /// std::thread::scope(|s| {
    ///     s.spawn(|| {
    ///         let _client = ClientGuard::new(); // its drop waits for what the thread has sent
    ///         stock.post(|_| panic!("dropped a crate"));
    ///     });
    /// });
    /// assert_eq!(trustees.failures().unwrap_err().message(), "dropped a crate");
    /// assert!(trustees.failures().is_ok());
    /// # Ok::<(), corelay_delegate::StartError>(())
    /// ```
    ///
    /// # Errors
    /// The number of such failures, and the first one.
    pub fn failures(&self) -> Result<(), BarrierError> {
        let mut all = Faults::default();
        for member in &self.members {
            if let Some(failures) = member.shared.take_failures(false) {
                discard(all.merge(failures));
            }
        }
        all.into_error().map_or(Ok(()), Err)
    }

    /// Ends the trustees, and waits for each that does not wait for this closure. Returns the ring
    /// that the first of the others would have closed.
    fn end(&mut self) -> Option<CircularWait> {
        let mut first = None;
        for member in &self.members {
            if member.thread.is_some() {
                member.shared.close();
            }
        }
        for member in &mut self.members {
            if let Some(thread) = member.thread.take() {
                if in_leaf() || in_turn() && (owns(&member.shared) || NoSwitch::is_active()) {
                    // A closure that drops its own trustees, or may not be suspended, cannot wait
                    // for them; they end by themselves.
                    continue;
                }
                match wait_for_end(&member.shared) {
                    // Destructors of thread-locals there may still make requests to this thread,
                    // which does not serve in a join: the thread ends by itself.
                    Ok(true) => continue,
                    Ok(false) => {}
                    Err(ring) => {
                        events::refused_circular(&ring);
                        first.get_or_insert(ring);
                        continue;
                    }
                }
                if thread.join().is_err() {
                    // A trustee never unwinds; requests that it has not answered may borrow.
                    std::process::abort();
                }
            }
        }
        first
    }
}

impl Drop for Trustees {
    fn drop(&mut self) {
        // Trustees that would wait for this closure end by themselves.
        let _ = self.end();
        for member in &self.members {
            discard(member.shared.take_failures(true));
        }
    }
}

impl fmt::Debug for Trustees {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list()
            .entries(self.members.iter().map(|m| &m.shared.name))
            .finish()
    }
}

/// Whether `trustee` serves on the calling thread.
fn owns(trustee: &Shared) -> bool {
    Serving::with_current(|serving| serving.owns(trustee)) == Some(true)
}

/// A registry on its way to the thread of its trustee.
struct Home(*mut Object<Registry>);

// SAFETY: only the trustee follows the address.
unsafe impl Send for Home {}

/// The settings of trustees to be started, from [`Trustees::dedicated`] to [`start`](Self::start).
///
/// ```
/// use corelay_delegate::{StartError, Trustees};
/// use std::time::Duration;
///
/// let trustees = Trustees::dedicated(2)
///     .window(1024) // requests in flight per client and trustee
///     .ring_bytes(256 << 10) // room for them
///     .spin(Duration::from_millis(1)) // of polling before an idle trustee sleeps
///     .name("owner")
///     .start()?;
/// assert_eq!(format!("{trustees:?}"), r#"["owner-0", "owner-1"]"#);
///
/// let refused = Trustees::dedicated(1).window(0).start();
/// assert!(matches!(refused, Err(StartError::Window(0))));
/// # Ok::<(), StartError>(())
/// ```
#[derive(Clone, Debug)]
#[must_use = "trustees run once started"]
pub struct Builder {
    n: usize,
    window: usize,
    batch: usize,
    ring_bytes: usize,
    spin: Duration,
    name: String,
    cpus: Vec<usize>,
    origin: Position,
    /// The policy, if these are the members of a flat team.
    pub(crate) policy: Option<Policy>,
    observe: bool,
    slow: Duration,
    stack_size: Option<usize>,
    host: Option<Host>,
}

impl Builder {
    /// Sets the requests in flight per client and trustee: `1..=65_536`, ordinarily 256.
    pub fn window(mut self, requests: usize) -> Self {
        self.window = requests;
        self
    }

    /// Sets how many requests of one client a trustee runs before it answers them and turns to the
    /// next: `1..=65_536`, ordinarily 128. Fewer if they are longer than the shortest.
    pub fn batch(mut self, requests: usize) -> Self {
        self.batch = requests;
        self
    }

    /// Sets the bytes up to which a client's request ring grows: 512 to 2^30, rounded up to a power
    /// of two, ordinarily 64 KiB. The answer ring takes as many; the callbacks that wait take up to
    /// 288 B for each request of the window, rounded up to a power of two.
    pub fn ring_bytes(mut self, bytes: usize) -> Self {
        self.ring_bytes = bytes;
        self
    }

    /// Sets how long an idle trustee polls before it sleeps: ordinarily 100 µs.
    pub fn spin(mut self, budget: Duration) -> Self {
        self.spin = budget;
        self
    }

    /// Sets the name of the trustees' threads; a number follows it.
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.name = name.into();
        self
    }

    /// Pins the first trustee to the first CPU of the list, and so on. Trustees beyond the
    /// list's end are not pinned.
    pub fn pin(mut self, cpus: impl IntoIterator<Item = usize>) -> Self {
        self.cpus = cpus.into_iter().collect();
        self
    }

    /// Observes the trustees and their clients more closely, for [`Trustees::report`]: how often
    /// answers were ready, requests without room, latencies, the slowest closures. Off by default.
    /// Latencies and closures are sampled, and nothing is done per request: the lab's targets allow
    /// it 3 % of the throughput of `apply_then`. [`crate::report`] says what is measured, and how
    /// often.
    ///
    /// ```
    /// # use corelay_delegate::{Trustees, barrier};
    /// let trustees = Trustees::dedicated(1).observe(true).start()?;
    /// let hits = trustees.entrust(0u64);
    /// (0..1000).for_each(|_| hits.apply_then(|h| *h += 1, |()| ()));
    /// barrier().unwrap();
    /// let client = &trustees.report().trustees[0].clients[0];
    /// assert!(client.observed.unwrap().ready > 0); // the answers came at some time
    /// # Ok::<(), corelay_delegate::StartError>(())
    /// ```
    pub fn observe(mut self, observe: bool) -> Self {
        self.observe = observe;
        self
    }

    /// Sets the time from which a closure is slow, ordinarily 1 ms: a subscriber of `tracing` is told
    /// of it. Closures are timed by samples, and only if the trustees are [observed](Self::observe).
    ///
    /// ```
    /// # use corelay_delegate::Trustees;
    /// # use std::time::Duration;
    /// let slow = Duration::from_micros(200);
    /// let trustees = Trustees::dedicated(1).observe(true).slow(slow).start()?;
    /// # Ok::<(), corelay_delegate::StartError>(())
    /// ```
    #[cfg(feature = "tracing")]
    pub fn slow(mut self, from: Duration) -> Self {
        self.slow = from;
        self
    }

    /// Sets the origin of positions to `cursor` units and `count` requests instead of 0. For tests
    /// of the wrap.
    #[doc(hidden)]
    pub fn origin(mut self, cursor: u32, count: u32) -> Self {
        self.origin = Position::new(cursor, count);
        self
    }

    /// Runs the trustees' loops as coroutines of `host`, so that closures that wait can run beside
    /// them: see [`Trust::launch`](crate::Trust::launch). With corelay's fibres it is `unsafe {
    /// corelay::fibre::host() }`, whose caller promises where launched closures do not wait.
    /// Closures then run on the stacks that the host gives.
    ///
    /// Ordinarily there is none, and launches are refused. Members of a flat team have none.
    pub fn host(mut self, host: Host) -> Self {
        self.host = Some(host);
        self
    }

    /// Sets the bytes of each trustee's stack, ordinarily as many as the standard library gives a
    /// thread (2 MiB). On [hosted](Self::host) trustees each launched closure's stack has as many,
    /// too, and 256 KiB otherwise. They are address space: memory is taken where it is touched.
    ///
    /// A stack has to hold what closures and destructors keep in their frames, and each value that
    /// a closure returns or [`entrust_with`](Trustees::entrust_with) builds: unoptimised builds
    /// have several copies of that, six at most, besides those that the closure itself makes. The
    /// caller boxes captures of more than 4 KiB, and values of [`entrust`](Trustees::entrust) that
    /// large go from frame to heap: neither takes anything of the trustee's stack.
    ///
    /// ```
    /// # use corelay_delegate::Trustees;
    /// let trustees = Trustees::dedicated(1).stack_size(64 << 20).start()?;
    /// let table = trustees.entrust_with(|| [0u32; 1 << 20]); // built there
    /// assert_eq!(table.apply(|table| table.len()), 1 << 20);
    /// # Ok::<(), corelay_delegate::StartError>(())
    /// ```
    pub fn stack_size(mut self, bytes: usize) -> Self {
        self.stack_size = Some(bytes);
        self
    }

    /// Starts the trustees.
    ///
    /// # Errors
    /// [`StartError`]; no thread is left running then.
    pub fn start(self) -> Result<Trustees, StartError> {
        if self.n == 0 {
            return Err(StartError::NoTrustees);
        }
        if !(1..=MAX_WINDOW).contains(&self.window) {
            return Err(StartError::Window(self.window));
        }
        if !(1..=MAX_WINDOW).contains(&self.batch) {
            return Err(StartError::Batch(self.batch));
        }
        if !(FIRST_UNITS * 8..=1 << 30).contains(&self.ring_bytes) {
            return Err(StartError::RingBytes(self.ring_bytes));
        }
        if let Some(Policy::Bound(n)) = self.policy
            && !(1..=MAX_BOUND).contains(&n)
        {
            return Err(StartError::Bound(n));
        }
        let mut trustees = Trustees {
            members: Vec::new(),
            next: AtomicUsize::new(0),
        };
        for i in 0..self.n {
            trustees.members.push(self.start_one(i)?);
        }
        Ok(trustees)
    }

    /// The settings of trustee `i`.
    pub(crate) fn settings(&self, i: usize) -> Settings {
        let can_spin = !MODEL && !Backoff::new().is_yielding();
        // A member serves while it waits, and soon.
        let looks = if self.policy.is_some() { 4 } else { 128 };
        Settings {
            index: i,
            window: self.window as u32,
            batch: self.batch as u32,
            spin: self.spin,
            looks: if can_spin { looks } else { 1 },
            ring_units: (self.ring_bytes / 8).next_power_of_two() as u32,
            origin: self.origin,
            policy: self.policy,
            observe: self.observe,
            slow: self.slow,
            cpu: self.cpus.get(i).copied(),
            stack_size: self.stack_size,
            host: self.host,
        }
    }

    fn start_one(&self, i: usize) -> Result<TrusteeHandle, StartError> {
        let settings = self.settings(i);
        let name = format!("{}-{i}", self.name);
        let shared = Arc::new(Shared::new(settings, name.clone()));
        let home = Object::new(Registry::default(), Arc::clone(&shared));
        let trustee = Arc::clone(&shared);
        let for_thread = Home(home);
        let thread = crate::trustee::spawn::spawn(name, &shared.settings, move || {
            let for_thread = for_thread;
            let Settings {
                host, stack_size, ..
            } = trustee.settings;
            let run = move || Trustee::new(trustee, for_thread.0).run();
            match host {
                None => run(),
                Some(host) => crate::trustee::spawn::host(host, stack_size, run),
            }
        });
        match thread {
            Ok(thread) => Ok(TrusteeHandle {
                shared,
                home,
                thread: Some(thread),
            }),
            Err(error) => {
                // SAFETY: the thread has not started, so nobody else knows the registry, whose
                // value is there.
                unsafe { Header::drop_value(home.cast()) };
                // SAFETY: the value has been dropped, and nobody else knows the registry.
                unsafe { Header::release_memory(home.cast()) };
                Err(error)
            }
        }
    }
}
