//! The event loop of a thread: its sockets, its shard, and the requests of other threads.

use super::clock::Clock;
use super::connection::{Connection, Outcome};
use super::reader::{Mode, Reader};
use crate::batch::Batch;
use crate::shard::Shard;
use crate::store::Hasher;
use corelay::{Member, Trust};
use mio::net::TcpListener;
use mio::unix::SourceFd;
use mio::{Events, Interest, Poll, Token};
use std::cell::RefCell;
use std::io::{self, ErrorKind, Write};
use std::os::fd::AsRawFd;
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

/// The bytes that are read at once.
const BUFFER: usize = 64 << 10;
/// The bytes of answers that are sent at once, when they come from other shards.
const MOST_OUTPUT: usize = 256 << 10;

/// The time after which an idle loop tries again to accept a connection that the system refused.
const RETRY: Duration = Duration::from_millis(20);

const TOO_MANY: &[u8] = b"ERROR Too many open connections\r\n";

const LISTENER: Token = Token(usize::MAX);
const WAKE: Token = Token(usize::MAX - 1);

/// The parts of a server that all threads know.
pub(crate) struct Service {
    pub(crate) shards: Vec<Trust<Shard>>,
    pub(crate) hasher: Hasher,
    pub(crate) clock: Clock,
    pub(crate) largest_item: usize,
    pub(crate) may_flush: bool,
    /// The number of connections of all threads.
    pub(crate) connections: AtomicUsize,
    pub(crate) most_connections: usize,
    pub(crate) is_ending: AtomicBool,
}

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
    poll: Poll,
    listener: TcpListener,
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
}

impl<'a> EventLoop<'a> {
    /// Makes the loop of `me`, which accepts connections from `listener`.
    pub(crate) fn new(
        me: &'a Member,
        service: &'a Service,
        listener: std::net::TcpListener,
    ) -> io::Result<Self> {
        let poll = Poll::new()?;
        let mut listener = TcpListener::from_std(listener);
        let registry = poll.registry();
        registry.register(&mut listener, LISTENER, Interest::READABLE)?;
        let wake = me.wake_fd()?.as_raw_fd();
        registry.register(&mut SourceFd(&wake), WAKE, Interest::READABLE)?;
        Ok(Self {
            me,
            service,
            clock: service.clock.clone(),
            poll,
            listener,
            is_refused: false,
            connections: Vec::new(),
            free: Vec::new(),
            generation: 0,
            queued: Vec::new(),
            returned: Rc::default(),
            buffer: vec![0; BUFFER].into(),
            out: Vec::with_capacity(BUFFER),
        })
    }

    /// Runs until the service ends.
    pub(crate) fn run(mut self) -> io::Result<()> {
        let mut events = Events::with_capacity(256);
        while !self.service.is_ending.load(Ordering::Acquire) {
            let dozing = self.me.doze()?;
            let is_idle =
                dozing.is_some() && self.queued.is_empty() && self.returned.borrow().is_empty();
            let timeout = match is_idle {
                false => Some(Duration::ZERO),
                true => self.is_refused.then_some(RETRY),
            };
            match self.poll.poll(&mut events, timeout) {
                Err(error) if error.kind() != ErrorKind::Interrupted => return Err(error),
                _ => {}
            }
            drop(dozing);
            self.clock.tick();
            self.take_returned();
            for place in std::mem::take(&mut self.queued) {
                if let Some(connection) = &mut self.connections[place] {
                    connection.is_queued = false;
                    self.go_on(place);
                }
            }
            if self.is_refused {
                self.accept();
            }
            for event in &events {
                match event.token() {
                    WAKE => {}
                    LISTENER => self.accept(),
                    Token(place) => {
                        let Some(connection) = self.connections[place].as_mut() else {
                            continue;
                        };
                        connection.may_read |= event.is_readable();
                        connection.is_ending |= event.is_read_closed();
                        self.go_on(place);
                    }
                }
            }
        }
        Ok(())
    }

    fn accept(&mut self) {
        self.is_refused = false;
        loop {
            let mut stream = match self.listener.accept() {
                Ok((stream, _)) => stream,
                Err(error) => match error.kind() {
                    ErrorKind::WouldBlock => return,
                    ErrorKind::Interrupted | ErrorKind::ConnectionAborted => continue,
                    _ => {
                        self.is_refused = true;
                        return;
                    }
                },
            };
            let _ = stream.set_nodelay(true);
            // Relaxed: a count by itself. Several threads may exceed it for a moment.
            let before = self.service.connections.fetch_add(1, Ordering::Relaxed);
            if before >= self.service.most_connections {
                let _ = stream.write(TOO_MANY);
                self.service.connections.fetch_sub(1, Ordering::Relaxed);
                continue;
            }
            let place = self.free.pop().unwrap_or_else(|| {
                self.connections.push(None);
                self.connections.len() - 1
            });
            let interest = Interest::READABLE | Interest::WRITABLE;
            let registry = self.poll.registry();
            if registry
                .register(&mut stream, Token(place), interest)
                .is_err()
            {
                // The system watches no more sockets: the client is let go.
                self.close(place);
                continue;
            }
            self.generation += 1;
            self.connections[place] = Some(Connection::new(stream, self.generation));
        }
    }

    fn close(&mut self, place: usize) {
        // Relaxed: as above.
        self.service.connections.fetch_sub(1, Ordering::Relaxed);
        self.connections[place] = None;
        self.free.push(place);
    }

    /// Does what can be done for a connection now, and closes it at its end.
    fn go_on(&mut self, place: usize) {
        let is_alive = self.advance(place);
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
        if connection.has_output() && !connection.write_kept() {
            return false;
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
        let mut has_gone = false;
        // What is left of the last read comes first.
        let left = connection.input.len();
        self.buffer[..left].copy_from_slice(&connection.input);
        let mut filled = left;
        if (connection.may_read || connection.is_ending) && left < BUFFER {
            match connection.read(&mut self.buffer[left..]) {
                Outcome::Some(n) => {
                    filled += n;
                    connection.may_read = filled == BUFFER;
                }
                Outcome::Later => connection.may_read = false,
                Outcome::Gone => has_gone = true,
            }
        }
        let input = &self.buffer[..filled];
        self.out.clear();
        let service = self.service;
        let own = self.me.number();
        let Connection { mode, turn, .. } = &mut *connection;
        let (clock, out) = (&self.clock, &mut self.out);
        let (done, is_full) = service.shards[own].apply(|shard| {
            let mut reader = Reader {
                shard,
                own,
                shards: service.shards.len(),
                hasher: &service.hasher,
                clock,
                largest_item: service.largest_item,
                may_flush: service.may_flush,
                out,
                turn,
            };
            (reader.read(mode, input), reader.is_full())
        });
        connection.keep_input(&input[done..]);
        if !self.out.is_empty() && !connection.write(&self.out) {
            return false;
        }
        if connection.turn.is_some() {
            self.send(place);
            return true;
        }
        if has_gone && !is_full {
            // Nothing more comes, and what is left is no command. What is to be sent still goes.
            connection.mode = Mode::End;
        }
        if matches!(connection.mode, Mode::End) && !connection.has_output() {
            return false;
        }
        // Only if something was done: a part of a line waits for the rest.
        let may_read = connection.may_read || connection.is_ending;
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
            if is_done {
                connection.turn = None;
            }
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
