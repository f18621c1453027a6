//! The event loop of a thread: its sockets, its shard, and the requests of other threads.

use super::clock::Clock;
use super::connection::{Connection, Outcome};
use super::reader::{MOST_OUTPUT, MOST_WORK, Mode, Reader};
use super::service::{Client, Peer, Service};
use super::slow::Watch;
use super::stream::{Listener, Stream};
use super::turn::{SPARE, Spare};
use crate::batch::Batch;
use crate::shard::Shard;
use crate::statistics::Counters;
use corelay::Member;
use mio::unix::SourceFd;
use mio::{Events, Interest, Poll, Token, Waker};
use std::cell::RefCell;
use std::io::{self, ErrorKind, Write};
use std::ops::Range;
use std::os::fd::AsRawFd;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// The bytes that are read at once.
const BUFFER: usize = 64 << 10;
/// The bytes of records that are searched in a turn of the loop to take back what has expired. If they are
/// small and all have expired, a turn takes about 60 µs.
const RECLAIM: usize = 16 << 10;
/// The number of such turns in a second, at least. A large shard has more, and is searched in a minute.
const RECLAIMS: usize = 256;
/// The time that clients have at the end to send the rest of a command, and to take their answers.
const GRACE: Duration = Duration::from_secs(5);

/// The most clients that are looked at in a turn for those that have been idle for too long.
const CHECKED: usize = 256;
/// The most clients that are taken in at a time.
const ACCEPTED: usize = 256;

/// The time after which an idle loop tries again to accept a connection that the system refused.
const RETRY: Duration = Duration::from_millis(20);

const TOO_MANY: &[u8] = b"ERROR Too many open connections\r\n";

/// The token of all listening sockets: each of them is tried then.
const LISTENER: Token = Token(usize::MAX);
const WAKE: Token = Token(usize::MAX - 1);
const ENDING: Token = Token(usize::MAX - 2);

/// A batch that has come back, for a connection of this thread.
struct Returned {
    place: usize,
    generation: u64,
    shard: usize,
    batch: Box<Batch>,
}

/// One thread of a server.
pub(crate) struct EventLoop<'a> {
    me: &'a Member,
    service: &'a Service,
    clock: Clock,
    counters: &'a Counters,
    poll: Poll,
    /// The sockets that clients come from, until the server ends.
    listeners: Vec<Listener>,
    /// Whether the system has refused a connection, for lack of file descriptors perhaps. Nothing tells
    /// when it would not any more, since another thread may close one. So each turn of the loop tries
    /// again, and an idle loop makes a turn after [`RETRY`].
    is_refused: bool,
    /// Connections by place.
    connections: Vec<Option<Connection>>,
    free: Vec<usize>,
    generation: u64,
    /// Connections with something left to do.
    queued: Vec<usize>,
    returned: Rc<RefCell<Vec<Returned>>>,
    buffer: Box<[u8]>,
    out: Vec<u8>,
    spare: Spare,
    /// The last second in which the clock's work was done, and what is left of it.
    second: u32,
    reclaims: usize,
    /// The places whose clients may have been idle for too long.
    unchecked: Range<usize>,
    /// The time at which connections are closed whatever they wait for: set once the server ends.
    deadline: Option<Instant>,
    /// Whether this thread has told the others that it has no connections any more.
    has_left: bool,
}

impl<'a> EventLoop<'a> {
    /// Makes the loop of `me`, which accepts connections from `listeners`.
    pub(crate) fn new(
        me: &'a Member,
        service: &'a Service,
        mut listeners: Vec<Listener>,
    ) -> io::Result<Self> {
        let poll = Poll::new()?;
        let registry = poll.registry();
        for listener in &mut listeners {
            registry.register(listener.source(), LISTENER, Interest::READABLE)?;
        }
        let wake = me.wake_fd()?.as_raw_fd();
        registry.register(&mut SourceFd(&wake), WAKE, Interest::READABLE)?;
        service.ending.wakes(Waker::new(registry, ENDING)?);
        Ok(Self {
            me,
            service,
            clock: service.clock.clone(),
            counters: &service.counters[me.number()],
            poll,
            listeners,
            is_refused: false,
            connections: Vec::new(),
            free: Vec::new(),
            generation: 0,
            queued: Vec::new(),
            returned: Rc::default(),
            buffer: vec![0; BUFFER].into(),
            out: Vec::with_capacity(BUFFER),
            spare: Vec::new(),
            second: 0,
            reclaims: 0,
            unchecked: 0..0,
            deadline: None,
            has_left: false,
        })
    }

    /// Runs until the server has ended: until all its connections are closed, and no other thread has
    /// requests for this one's shard.
    pub(crate) fn run(mut self) -> io::Result<()> {
        let mut events = Events::with_capacity(256);
        let mut was_busy = false;
        loop {
            // Whoever had something to do will soon have more, as a rule, and looks before it prepares to
            // sleep. That costs all threads more than a look.
            let dozing = if was_busy {
                corelay::poll();
                None
            } else {
                self.me.doze()?
            };
            let is_idle = dozing.is_some()
                && self.queued.is_empty()
                && self.reclaims == 0
                && self.unchecked.is_empty()
                && self.returned.borrow().is_empty();
            let timeout = if is_idle {
                self.longest_sleep()
            } else {
                Some(Duration::ZERO)
            };
            match self.poll.poll(&mut events, timeout) {
                Err(error) if error.kind() != ErrorKind::Interrupted => return Err(error),
                _ => {}
            }
            drop(dozing);
            // An event is of a connection that was there when it came, not of a later one in its place.
            let newest = self.generation;
            self.clock.tick();
            if self.second != self.clock.now() {
                self.work_of_a_second();
            }
            if self.service.ending.has_begun() && self.end() {
                return Ok(());
            }
            if self.is_refused {
                self.accept();
            }
            self.reclaim();
            self.close_idle();
            was_busy = !events.is_empty() || !self.returned.borrow().is_empty();
            self.take_returned();
            for place in std::mem::take(&mut self.queued) {
                if let Some(connection) = &mut self.connections[place] {
                    connection.is_queued = false;
                    self.go_on(place);
                }
            }
            for event in &events {
                match event.token() {
                    WAKE | ENDING => {}
                    LISTENER => self.accept(),
                    Token(place) => {
                        let connection = self.connections[place].as_mut();
                        let Some(connection) = connection.filter(|c| c.generation <= newest) else {
                            continue;
                        };
                        connection.may_read |= event.is_readable();
                        connection.is_ending |= event.is_read_closed();
                        self.go_on(place);
                    }
                }
            }
        }
    }

    /// The longest time that the loop may sleep while nothing happens. `None` is for ever.
    fn longest_sleep(&self) -> Option<Duration> {
        const SECOND: Duration = Duration::from_secs(1);
        if self.service.ending.has_begun() {
            // At first there is something to do: it may have begun before this loop could be woken.
            let is_new = self.deadline.is_none();
            return Some(if is_new {
                Duration::ZERO
            } else {
                Duration::from_millis(20)
            });
        }
        if self.is_refused {
            return Some(RETRY);
        }
        let has_idle = self.service.settings.idle_timeout.is_some()
            && self.connections.len() > self.free.len();
        let shard = &self.service.shards[self.me.number()];
        let has_work = has_idle
            || self.counters.curr_items.get() > 0
            || shard.apply(|shard| shard.store.is_giving_back());
        has_work.then_some(SECOND)
    }

    /// Does what is to be done once a second.
    fn work_of_a_second(&mut self) {
        self.second = self.clock.now();
        let (own, clock) = (self.me.number(), &self.clock);
        let hottest = &self.service.hottest[own];
        let bytes = self.service.shards[own].apply(|shard| {
            shard.second(clock, hottest);
            shard.store.bytes()
        });
        self.reclaims = RECLAIMS.max(bytes / 60 / RECLAIM);
        self.unchecked = 0..self.connections.len();
    }

    /// Closes connections that have been idle for too long, some in each turn.
    fn close_idle(&mut self) {
        let Some(limit) = self.service.settings.idle_timeout else {
            self.unchecked = 0..0;
            return;
        };
        let next = self.unchecked.end.min(self.unchecked.start + CHECKED);
        let checked = self.unchecked.start..next;
        self.unchecked.start = next;
        for place in checked {
            let Some(connection) = &self.connections[place] else {
                continue;
            };
            let idle = self.second.saturating_sub(connection.client.last_active());
            let is_served = connection.turn.as_ref().is_some_and(|turn| turn.away > 0);
            let is_served = is_served || connection.is_queued;
            if !is_served && Duration::from_secs(idle.into()) > limit {
                self.counters.idle_kicks.add(1);
                self.close(place);
            }
        }
    }

    /// Takes back some memory of items that have expired, a part in each turn.
    fn reclaim(&mut self) {
        if self.reclaims == 0 {
            return;
        }
        let now = self.clock.now();
        let has_more = self.service.shards[self.me.number()].apply(|shard| {
            let has_more = shard.store.reclaim(RECLAIM, now);
            shard.publish();
            has_more
        });
        self.reclaims = if has_more { self.reclaims - 1 } else { 0 };
    }

    /// Goes on with the end of the server. Returns whether all threads are done.
    fn end(&mut self) -> bool {
        let deadline = *self.deadline.get_or_insert_with(|| {
            // New clients find nobody, and old ones are looked at once more.
            self.listeners.clear();
            self.queued = (0..self.connections.len()).collect();
            for connection in self.connections.iter_mut().flatten() {
                connection.is_queued = true;
                connection.may_read = true;
                connection.is_last = true;
            }
            Instant::now() + GRACE
        });
        if Instant::now() >= deadline {
            (0..self.connections.len()).for_each(|place| self.close(place));
        }
        if !self.has_left && self.connections.iter().all(Option::is_none) {
            self.has_left = true;
            self.service.ending.leave();
        }
        self.service.ending.is_over()
    }

    fn accept(&mut self) {
        self.is_refused = false;
        for listener in 0..self.listeners.len() {
            self.accept_from(listener);
        }
    }

    fn accept_from(&mut self, listener: usize) {
        for _ in 0..ACCEPTED {
            let listener = &self.listeners[listener];
            match listener.accept() {
                Ok((stream, peer)) => self.welcome(stream, peer, listener.address()),
                Err(error) => match error.kind() {
                    ErrorKind::WouldBlock => return,
                    ErrorKind::Interrupted | ErrorKind::ConnectionAborted => {}
                    _ => {
                        self.is_refused = true;
                        return;
                    }
                },
            }
        }
        // Others have their turn before the rest.
        self.is_refused = true;
    }

    /// Takes a new client in, or turns it away if there are too many.
    fn welcome(&mut self, mut stream: Stream, peer: Peer, listening: Peer) {
        let service = self.service;
        // Relaxed: a count by itself. Several threads may exceed it for a moment.
        let before = service.connections.fetch_add(1, Ordering::Relaxed);
        if before >= service.settings.connections {
            // Its socket is empty and takes so few bytes. An encrypted client cannot be told.
            let _ = stream.write(TOO_MANY);
            return self.turn_away();
        }
        if let Some(tls) = &service.settings.tls {
            match stream.encrypted(tls) {
                Ok(encrypted) => stream = encrypted,
                Err(_) => return self.turn_away(),
            }
        }
        let place = self.free.pop().unwrap_or_else(|| {
            self.connections.push(None);
            self.connections.len() - 1
        });
        // The system may watch no more sockets.
        if stream.register(self.poll.registry(), Token(place)).is_err() {
            self.free.push(place);
            return self.turn_away();
        }
        self.generation += 1;
        self.counters.total_connections.add(1);
        let client = Arc::new(Client::new(
            stream.number(),
            peer,
            listening,
            self.clock.now(),
        ));
        service.set_client(self.me.number(), place, Some(Arc::clone(&client)));
        if service.settings.verbosity > 1 {
            // An error has nobody to be told to.
            let _ = writeln!(io::stderr(), "corelay-cached: a client: {peer}");
        }
        let mode = Mode::of_new_connection(service);
        self.connections[place] = Some(Connection::new(stream, self.generation, client, mode));
    }

    fn turn_away(&mut self) {
        self.counters.rejected_connections.add(1);
        // Relaxed: as above.
        self.service.connections.fetch_sub(1, Ordering::Relaxed);
    }

    fn close(&mut self, place: usize) {
        let Some(mut connection) = self.connections[place].take() else {
            return;
        };
        connection.stream.end();
        drop(connection);
        // Relaxed: as above.
        self.service.connections.fetch_sub(1, Ordering::Relaxed);
        self.service.set_client(self.me.number(), place, None);
        self.free.push(place);
    }

    /// Does what can be done for a connection now, and closes it at its end.
    fn go_on(&mut self, place: usize) {
        let is_alive = self.advance(place);
        if let Some(connection) = &mut self.connections[place] {
            connection.tell_state();
            if connection.turn.is_none()
                && let Some(watch) = connection.watch.take()
            {
                let limit = self.service.settings.slow.unwrap_or(Duration::MAX);
                let is_slow = watch.end(limit, &connection.client);
                self.counters.slow_requests.count_if(is_slow);
            }
        }
        if !is_alive {
            self.close(place);
        }
    }

    /// Reads, does and writes, as far as it goes without waiting. Returns false at the connection's
    /// end.
    fn advance(&mut self, place: usize) -> bool {
        let Some(connection) = &mut self.connections[place] else {
            return true;
        };
        if connection.has_output() {
            let before = connection.kept();
            if !connection.write_kept() {
                return false;
            }
            if connection.kept() < before {
                connection.client.note_activity(self.clock.now());
            }
        }
        if connection.has_output() {
            return true;
        }
        match &connection.turn {
            None => {}
            Some(turn) if turn.away > 0 => return true,
            // Its answers have waited for the output before them.
            Some(_) => return self.answer(place),
        }
        // What is left of the last read comes first.
        let left = connection.input.len();
        self.buffer[..left].copy_from_slice(&connection.input);
        let mut filled = left;
        let may_read = connection.may_read || connection.is_ending;
        if may_read && !connection.has_gone && left < BUFFER {
            match connection.read(&mut self.buffer[left..]) {
                Outcome::Some(n) => {
                    filled += n;
                    // A socket that has given less than was asked for is empty.
                    connection.may_read =
                        filled == BUFFER || connection.is_last || connection.stream.is_encrypted();
                    connection.client.note_activity(self.clock.now());
                    self.counters.bytes_read.add(n as u64);
                }
                Outcome::Later => connection.may_read = false,
                Outcome::Gone => connection.has_gone = true,
            }
        }
        let input = &self.buffer[..filled];
        self.out.clear();
        let service = self.service;
        if service.settings.slow.is_some() && connection.watch.is_none() {
            connection.watch = Some(Watch::begin(input));
        }
        let own = self.me.number();
        let Connection { mode, turn, .. } = &mut *connection;
        let (clock, out, spare) = (&self.clock, &mut self.out, &mut self.spare);
        let (done, is_full) = service.shards[own].apply(|shard| {
            let work_limit = shard.store.counts().work + MOST_WORK;
            let mut reader = Reader {
                shard,
                work_limit,
                own,
                shards: service.shards.len(),
                hasher: &service.hasher,
                clock,
                service,
                out,
                turn,
                spare,
            };
            let read = (reader.read(mode, input), reader.is_full());
            shard.publish();
            read
        });
        connection.keep_input(&input[done..]);
        self.counters.bytes_written.add(self.out.len() as u64);
        if !self.out.is_empty() && !connection.write(&self.out) {
            return false;
        }
        if self.out.capacity() > 2 * MOST_OUTPUT {
            self.out = Vec::with_capacity(BUFFER); // a large item was in it
        }
        if connection.turn.is_some() {
            self.send(place);
            return true;
        }
        if connection.has_gone && !is_full {
            // Nothing more comes, and what is left is no command. What is to be sent still goes.
            connection.mode = Mode::End;
        }
        let is_done = matches!(connection.mode, Mode::End) || connection.may_end();
        if is_done && !connection.has_output() {
            return false;
        }
        // Only if something was done: a part of a line waits for the rest.
        let may_read = connection.may_read || connection.is_ending || connection.has_gone;
        if (may_read || done > 0 && done < filled) && !connection.has_output() {
            self.queue(place);
        }
        true
    }

    fn queue(&mut self, place: usize) {
        if let Some(connection) = &mut self.connections[place]
            && !connection.is_queued
        {
            connection.is_queued = true;
            self.queued.push(place);
        }
    }

    /// Sends the batches of a connection's turn to their shards.
    fn send(&mut self, place: usize) {
        let Some(connection) = &mut self.connections[place] else {
            return;
        };
        let generation = connection.generation;
        let Some(turn) = &mut connection.turn else {
            return;
        };
        for (shard, mut batch) in turn.leave() {
            let (returned, clock) = (Rc::clone(&self.returned), self.clock.clone());
            let run = move |shard: &mut Shard| {
                batch.run(shard, &clock);
                batch
            };
            let take = move |batch| {
                returned.borrow_mut().push(Returned {
                    place,
                    generation,
                    shard,
                    batch,
                });
            };
            self.service.shards[shard].apply_then(run, take);
        }
    }

    /// Takes the batches that have come back, and answers those connections that have all of them.
    fn take_returned(&mut self) {
        let returned = std::mem::take(&mut *self.returned.borrow_mut());
        for Returned {
            place,
            generation,
            shard,
            batch,
        } in returned
        {
            let Some(Some(connection)) = self.connections.get_mut(place) else {
                continue;
            };
            if connection.generation != generation {
                continue;
            }
            let Some(turn) = &mut connection.turn else {
                continue;
            };
            turn.come_back(shard, batch);
            if turn.away == 0 {
                self.go_on(place);
            }
        }
    }

    /// Sends the answers of a turn all of whose batches have come back, as far as they go. Batches that
    /// are not done go to their shards again. Returns false at the connection's end.
    fn answer(&mut self, place: usize) -> bool {
        loop {
            let Some(connection) = &mut self.connections[place] else {
                return true;
            };
            let Some(turn) = &mut connection.turn else {
                return self.advance(place);
            };
            self.out.clear();
            let is_done = turn.assemble(&mut self.out, MOST_OUTPUT);
            if is_done
                && let Some(mut turn) = connection.turn.take()
                && turn.clear()
                && self.spare.len() < SPARE
            {
                self.spare.push(turn);
            }
            self.counters.bytes_written.add(self.out.len() as u64);
            if !self.out.is_empty() && !connection.write(&self.out) {
                return false;
            }
            if connection.has_output() {
                return true; // goes on when the socket has room
            }
            self.send(place);
            let turn = self.connections[place]
                .as_ref()
                .and_then(|c| c.turn.as_ref());
            if turn.is_some_and(|turn| turn.away > 0) {
                return true;
            }
        }
    }
}

impl Drop for EventLoop<'_> {
    /// Lets the other threads end if this one has failed.
    fn drop(&mut self) {
        if !self.has_left {
            let _ = self.service.ending.begin();
            self.service.ending.leave();
        }
    }
}
