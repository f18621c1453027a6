//! The loop of a load thread.
//!
//! ```text
//! closed   a connection sends its next batch when the last one is answered
//! open     requests become due on a schedule; an idle connection sends those that are due, at most
//!          a batch; a request's latency counts from when it was due
//! ```
//!
//! The open loop never sleeps, as the system would wake it too late. The closed loop sleeps if no
//! answer is there, unless it is told to spin.

use super::address::Address;
use super::connection::{Asked, Book, Broken, Connection};
use super::draw::{Draw, Kind, Request};
use super::options::Options;
use super::request::Requests;
use super::tally::{Latencies, Tally};
use corelay_lab_measure::schema::cache::Counts;
use corelay_lab_measure::workload::schedule::Schedule;
use corelay_sync::facade::atomic::{AtomicBool, Ordering};
use mio::{Events, Poll, Token};
use std::collections::VecDeque;
use std::io;
use std::iter::Peekable;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Time without any answer after which a server counts as dead.
pub(super) const PATIENCE: Duration = Duration::from_secs(10);

/// The longest sleep of a load thread, so that it sees an interrupt and its own end in time.
const NAP: Duration = Duration::from_millis(20);

/// Bytes of the buffer for answers: they fit the second level of caches, and many batches fit them.
const INPUT: usize = 256 << 10;

/// The most bytes of a batch with which keys are filled.
const FILL_BYTES: usize = 64 << 10;

/// The most requests of such a batch.
const FILL_BATCH: usize = 32;

/// One load thread of one server: its connections, and what it asks for.
#[derive(Debug)]
pub(super) struct Driver {
    poll: Poll,
    connections: Vec<Connection>,
    input: Vec<u8>,
    output: Vec<u8>,
    book: Book,
    draw: Draw,
    options: Options,
    thread: usize,
    /// Blocks driven so far; each has a schedule of its own.
    blocks: u64,
}

/// What a load thread has done in a block.
#[derive(Clone, Debug)]
pub(super) struct Driven {
    pub(super) secs: f64,
    pub(super) counts: Counts,
    pub(super) latencies: Latencies,
    pub(super) cpu_s: Option<f64>,
    pub(super) waiting_s: f64,
}

/// The reason why a load thread ended early.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Stopped {
    Interrupted,
    /// A sentence about the server.
    Failed(String),
}

/// The source of a block's requests.
enum Source<'a> {
    Drawn(&'a mut Draw),
    /// Each key once: this one, and every so many after it, below the last.
    Fill {
        next: u64,
        step: u64,
        end: u64,
    },
}

impl Source<'_> {
    #[inline]
    fn next(&mut self) -> Option<Request> {
        match self {
            Self::Drawn(draw) => Some(draw.next()),
            Self::Fill { next, step, end } => {
                let key = *next;
                *next += *step;
                let kind = Kind::Refill;
                (key < *end).then_some(Request { kind, key })
            }
        }
    }
}

impl Driver {
    /// Opens the connections of load thread `thread`.
    ///
    /// # Errors
    /// A sentence about the server.
    pub(super) fn open(
        server: &Address,
        options: &Options,
        requests: &Arc<Requests>,
        thread: usize,
    ) -> Result<Self, String> {
        let poll = Poll::new().map_err(|e| format!("the system gives no event loop: {e}"))?;
        let all = options.connections;
        // The first threads have one connection more if they cannot have as many.
        let own = all / options.threads + usize::from(thread < all % options.threads);
        let mut connections = Vec::with_capacity(own);
        for token in 0..own {
            let open = || -> io::Result<Connection> {
                let mut stream = server.connect()?.into_polled()?;
                stream.register(poll.registry(), Token(token))?;
                Ok(Connection::new(stream, options.pipeline))
            };
            connections.push(open().map_err(|e| unreachable(server, &e))?);
        }
        Ok(Self {
            poll,
            connections,
            input: vec![0; INPUT],
            output: Vec::with_capacity(options.pipeline.max(FILL_BATCH) * 64),
            book: Book {
                requests: Arc::clone(requests),
                tally: Tally::default(),
                refusal: None,
                sets_missed: options.miss_set,
            },
            draw: Draw::new(options, thread),
            options: options.clone(),
            thread,
            blocks: 0,
        })
    }

    /// The first error that the server answered.
    pub(super) fn refusal(&self) -> Option<&str> {
        self.book.refusal.as_deref()
    }

    /// Sets each of the thread's share of the keys once.
    pub(super) fn fill(&mut self, interrupted: &AtomicBool) -> Result<Driven, Stopped> {
        let longest = self.book.requests.longest();
        let source = Source::Fill {
            next: self.thread as u64,
            step: self.options.threads as u64,
            end: self.options.keys,
        };
        Block {
            pipeline: (FILL_BYTES / longest).clamp(1, FILL_BATCH),
            source,
            open: None,
            poll: &mut self.poll,
            connections: &mut self.connections,
            input: &mut self.input,
            output: &mut self.output,
            book: &mut self.book,
            spin: self.options.spin,
            start: Instant::now(),
            in_flight: 0,
            waiting_ns: 0,
        }
        .run(Duration::ZERO, None, interrupted)
    }

    /// Drives the load for `length` after `settle`, which is not counted.
    pub(super) fn drive(
        &mut self,
        settle: Duration,
        length: Duration,
        interrupted: &AtomicBool,
    ) -> Result<Driven, Stopped> {
        let seed = self.options.seed ^ (self.thread as u64 + 1).rotate_left(40);
        let open = self.options.load.map(|load| {
            let per_second = load / self.options.threads as f64;
            let seed = seed ^ self.blocks.rotate_left(20);
            Open {
                schedule: Schedule::poisson(per_second, seed).peekable(),
                due: VecDeque::new(),
                idle: VecDeque::new(),
            }
        });
        self.blocks += 1;
        Block {
            pipeline: self.options.pipeline,
            source: Source::Drawn(&mut self.draw),
            spin: self.options.spin || open.is_some(),
            open,
            poll: &mut self.poll,
            connections: &mut self.connections,
            input: &mut self.input,
            output: &mut self.output,
            book: &mut self.book,
            start: Instant::now(),
            in_flight: 0,
            waiting_ns: 0,
        }
        .run(settle, Some(length), interrupted)
    }
}

/// The arrivals of an open loop.
struct Open {
    schedule: Peekable<Schedule>,
    /// The moments at which requests were due that have not been sent.
    due: VecDeque<u64>,
    /// Connections that have nothing to send.
    idle: VecDeque<usize>,
}

/// A block under way.
struct Block<'a> {
    pipeline: usize,
    source: Source<'a>,
    open: Option<Open>,
    poll: &'a mut Poll,
    connections: &'a mut [Connection],
    input: &'a mut [u8],
    output: &'a mut Vec<u8>,
    book: &'a mut Book,
    spin: bool,
    start: Instant,
    in_flight: usize,
    waiting_ns: u64,
}

/// The counts at a moment of a block, up to which they hold.
struct Mark {
    at_ns: u64,
    cpu_s: Option<f64>,
}

impl Block<'_> {
    /// Runs the block: `settle` without counting, then `length`, or until the source is empty; then
    /// waits for the answers in flight.
    fn run(
        mut self,
        settle: Duration,
        length: Option<Duration>,
        interrupted: &AtomicBool,
    ) -> Result<Driven, Stopped> {
        self.book.tally.reset();
        let mut from = Mark::now(0);
        let mut is_settled = settle.is_zero();
        let settle_ns = settle.as_nanos() as u64;
        let end_ns = length.map_or(u64::MAX, |length| settle_ns + length.as_nanos() as u64);
        let mut ended: Option<(Mark, Counts)> = None;
        let mut events = Events::with_capacity(1024);
        let (mut heard_ns, mut before_ns) = (0, 0);
        for at in 0..self.connections.len() {
            self.turn(at, 0)?;
        }
        loop {
            let is_over = ended.is_some() || self.is_exhausted();
            if is_over && self.in_flight == 0 {
                break;
            }
            let wait = match self.spin && ended.is_none() {
                true => Duration::ZERO,
                false => NAP,
            };
            match self.poll.poll(&mut events, Some(wait)) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(failed(format!("the event loop failed: {error}"))),
                Ok(()) => {}
            }
            let mut answers = 0;
            for event in &events {
                let at = event.token().0;
                if event.is_writable() {
                    let flushed = self.connections[at].flush();
                    flushed.map_err(|broken| self.broken(&broken))?;
                }
                if event.is_readable() || event.is_read_closed() || event.is_error() {
                    answers += self.heard(at, event.is_read_closed(), ended.is_none())?;
                }
            }
            let now_ns = self.now_ns();
            if answers > 0 || self.in_flight == 0 {
                heard_ns = now_ns;
            } else if now_ns - heard_ns > PATIENCE.as_nanos() as u64 {
                return Err(failed(format!(
                    "the server has not answered {} requests for {} s",
                    self.in_flight,
                    PATIENCE.as_secs()
                )));
            }
            if events.is_empty() && self.spin && ended.is_none() {
                self.waiting_ns += now_ns - before_ns;
            }
            before_ns = now_ns;
            // Relaxed: the flag carries no data.
            if interrupted.load(Ordering::Relaxed) {
                return Err(Stopped::Interrupted);
            }
            if !is_settled && now_ns >= settle_ns {
                is_settled = true;
                self.book.tally.reset();
                self.waiting_ns = 0;
                from = Mark::now(now_ns);
            }
            if ended.is_none() && now_ns >= end_ns {
                self.leave_unserved(now_ns);
                ended = Some((Mark::now(now_ns), self.book.tally.counts));
            }
            if ended.is_none() {
                self.arrive(now_ns)?;
            }
        }
        let (to, counts) = ended.unwrap_or_else(|| {
            let now_ns = self.now_ns();
            (Mark::now(now_ns), self.book.tally.counts)
        });
        Ok(Driven {
            secs: (to.at_ns - from.at_ns) as f64 * 1e-9,
            counts,
            latencies: self.book.tally.latencies(),
            cpu_s: to.cpu_s.zip(from.cpu_s).map(|(to, from)| to - from),
            waiting_s: self.waiting_ns as f64 * 1e-9,
        })
    }

    /// Whether nothing is left to ask for.
    fn is_exhausted(&self) -> bool {
        matches!(self.source, Source::Fill { next, end, .. } if next >= end)
    }

    fn now_ns(&self) -> u64 {
        self.start.elapsed().as_nanos() as u64
    }

    /// Receives what a connection has; then sends its next batch, if the last one is answered and
    /// `goes_on`. Returns the number of answers.
    #[inline]
    fn heard(&mut self, at: usize, to_end: bool, goes_on: bool) -> Result<usize, Stopped> {
        let (mut now_ns, start) = (0, self.start);
        let answers = self.connections[at].receive(self.input, to_end, self.book, || {
            now_ns = start.elapsed().as_nanos() as u64;
            now_ns
        });
        let answers = answers.map_err(|broken| self.broken(&broken))?;
        self.in_flight -= answers;
        if answers > 0 && goes_on && self.connections[at].in_flight() == 0 {
            self.turn(at, now_ns)?;
        }
        Ok(answers)
    }

    /// Sends the next batch of a connection that has none in flight. The answers of the last one were
    /// read at `now_ns`.
    #[inline]
    fn turn(&mut self, at: usize, now_ns: u64) -> Result<(), Stopped> {
        let connection = &mut self.connections[at];
        self.output.clear();
        let mut room = self.pipeline;
        while let Some(key) = connection.missed.pop() {
            let kind = Kind::Refill;
            let request = Request { kind, key };
            let asked = Asked {
                request,
                since_ns: now_ns,
            };
            connection.ask(asked, &self.book.requests, self.output);
            room = room.saturating_sub(1);
        }
        for _ in 0..room {
            let since_ns = match &mut self.open {
                None => now_ns,
                Some(open) => match open.due.pop_front() {
                    Some(due_ns) => due_ns,
                    None => break,
                },
            };
            let Some(request) = self.source.next() else {
                break;
            };
            connection.ask(
                Asked { request, since_ns },
                &self.book.requests,
                self.output,
            );
        }
        if self.output.is_empty() {
            if let Some(open) = &mut self.open {
                open.idle.push_back(at);
            }
            return Ok(());
        }
        self.in_flight += connection.in_flight();
        let sent = connection.send(self.output, &mut self.book.tally);
        sent.map_err(|broken| self.broken(&broken))
    }

    /// Lets requests arrive that are due by `now_ns`, and has idle connections send them.
    fn arrive(&mut self, now_ns: u64) -> Result<(), Stopped> {
        let Some(open) = &mut self.open else {
            return Ok(());
        };
        while let Some(due_ns) = open.schedule.next_if(|due_ns| *due_ns <= now_ns) {
            open.due.push_back(due_ns);
        }
        while let Some(open) = &mut self.open
            && !open.due.is_empty()
            && let Some(at) = open.idle.pop_front()
        {
            self.turn(at, now_ns)?;
        }
        Ok(())
    }

    /// Counts the requests that were due and not sent. Their latency is at least the time that they have
    /// waited; leaving them out would flatter a slow server.
    fn leave_unserved(&mut self, now_ns: u64) {
        let Some(open) = &mut self.open else { return };
        let tally = &mut self.book.tally;
        tally.counts.unserved += open.due.len() as u64;
        open.due
            .drain(..)
            .for_each(|due_ns| tally.record(now_ns.saturating_sub(due_ns)));
    }

    /// Says why a connection broke.
    fn broken(&self, broken: &Broken) -> Stopped {
        let said = match &self.book.refusal {
            Some(line) => format!("; it had said `{line}`"),
            None => String::new(),
        };
        failed(match broken {
            Broken::Closed => format!("the server closed a connection{said}"),
            Broken::Garbage(line) => {
                format!("the server sent `{line}`, which is no answer to what was asked{said}")
            }
            Broken::System(error) => format!("a connection failed: {error}{said}"),
        })
    }
}

fn failed(why: String) -> Stopped {
    Stopped::Failed(why)
}

/// Says that a connection to `server` could not be opened.
pub(super) fn unreachable(server: &Address, error: &io::Error) -> String {
    let advice = match error.raw_os_error() {
        // EMFILE
        Some(24) => "; this process may open no more files (ulimit -n)",
        _ => "",
    };
    format!("{server} cannot be reached: {error}{advice}")
}

impl Mark {
    fn now(at_ns: u64) -> Self {
        Self {
            at_ns,
            cpu_s: thread_cpu_s(),
        }
    }
}

/// CPU time that this thread has used so far, in seconds; `None` if the system does not say.
#[cfg(unix)]
fn thread_cpu_s() -> Option<f64> {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Some(time.tv_sec as f64 + time.tv_nsec as f64 * 1e-9)
}

/// CPU time that this thread has used so far, in seconds; `None` if the system does not say.
#[cfg(not(unix))]
fn thread_cpu_s() -> Option<f64> {
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Write};
    use std::net::TcpListener;

    /// A server with one connection that takes `pause` for each `get`, and finds nothing.
    fn slow_server(pause: Duration) -> Address {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = Address::Tcp(listener.local_addr().unwrap());
        std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let mut buffer = [0; 4096];
            while let Ok(read @ 1..) = stream.read(&mut buffer) {
                for _ in buffer[..read].iter().filter(|byte| **byte == b'\n') {
                    std::thread::sleep(pause);
                    // The load may have gone.
                    let _ = stream.write_all(b"END\r\n");
                }
            }
        });
        address
    }

    fn drive(options: &Options, server: &Address, blocks: usize) -> Vec<Driven> {
        let requests = Arc::new(Requests::new(options.key_size, options.value_size));
        let mut driver = Driver::open(server, options, &requests, 0).unwrap();
        let length = Duration::from_millis(100);
        let mut block = || driver.drive(Duration::ZERO, length, &AtomicBool::new(false));
        (0..blocks).map(|_| block().unwrap()).collect()
    }

    const PAUSE: Duration = Duration::from_millis(5);

    /// The most requests that the server can have answered.
    fn most(driven: &Driven) -> u64 {
        (driven.secs / PAUSE.as_secs_f64()) as u64 + 1
    }

    #[test]
    fn open_loop_counts_waiting_requests_and_their_time() {
        let options = Options {
            connections: 1,
            get_ratio: 1.0,
            load: Some(10_000.0),
            ..Options::default()
        };
        for driven in drive(&options, &slow_server(PAUSE), 2) {
            // Some 1,000 were due.
            let Counts { gets, unserved, .. } = driven.counts;
            assert!(
                gets <= most(&driven) && unserved > 100,
                "{gets} of {unserved}"
            );
            let latency = Latencies::percentiles([&driven.latencies]).unwrap();
            // Half of all have waited for about half of the block.
            assert!(latency.p50 > 20_000_000, "{latency:?}");
            assert!(driven.secs >= 0.1);
        }
    }

    #[test]
    fn closed_loop_has_a_batch_in_flight() {
        let options = Options {
            connections: 1,
            pipeline: 4,
            get_ratio: 1.0,
            ..Options::default()
        };
        for driven in drive(&options, &slow_server(PAUSE), 2) {
            let Counts {
                gets,
                misses,
                unserved,
                ..
            } = driven.counts;
            assert!(gets <= most(&driven) && gets == misses && unserved == 0);
            let latency = Latencies::percentiles([&driven.latencies]).unwrap();
            assert!(latency.max >= 4 * PAUSE.as_nanos() as u64, "{latency:?}");
        }
    }

    #[test]
    fn interrupt_ends_a_block() {
        let options = Options {
            connections: 1,
            ..Options::default()
        };
        let requests = Arc::new(Requests::new(options.key_size, options.value_size));
        let mut driver = Driver::open(&slow_server(PAUSE), &options, &requests, 0).unwrap();
        let flag = AtomicBool::new(true);
        let outcome = driver.drive(Duration::ZERO, Duration::from_secs(3600), &flag);
        assert_eq!(outcome.unwrap_err(), Stopped::Interrupted);
    }
}
