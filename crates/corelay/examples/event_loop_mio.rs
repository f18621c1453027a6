//! A service whose threads are trustees with event loops, by mio: it counts words.
//!
//! A client sends a word in a line, and is told how often anyone has sent it. Each thread accepts
//! connections, and owns the counts of a part of the words. A request for a word of another thread
//! travels there, and its answer comes back to the thread of the connection. A thread with nothing
//! to do sleeps in mio's `poll`, for sockets, requests and answers alike.
//!
//! `cargo run --release -p corelay --example event_loop_mio`

use corelay::{Member, Trust, Trustees};
use mio::net::{TcpListener, TcpStream};
use mio::unix::SourceFd;
use mio::{Events, Interest, Poll, Token};
use std::cell::RefCell;
use std::collections::HashMap;
use std::error::Error;
use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher};
use std::io::{self, BufRead, BufReader, ErrorKind, Read, Write};
use std::os::fd::AsRawFd;
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

const THREADS: usize = 2;
const CLIENTS: usize = 8;
const WORDS: [&str; 3] = ["apple", "pear", "plum"];
const ROUNDS: usize = 100;

const LISTENER: Token = Token(0);
const WAKE: Token = Token(1);
const FIRST_CONNECTION: usize = 2;

/// The counts of the words that one thread owns.
type Counts = HashMap<String, u64>;

/// A client's connection, and the bytes of a line that has not ended.
struct Connection {
    stream: TcpStream,
    line: Vec<u8>,
}

/// The service as all its threads know it.
struct Service {
    listener: std::net::TcpListener,
    /// One for each thread, on which it lies.
    counts: Vec<Trust<Counts>>,
    has_ended: AtomicBool,
}

impl Service {
    /// One thread's life: it waits for all that may come, and does it.
    fn serve(&self, me: &Member) -> io::Result<()> {
        let mut poll = Poll::new()?;
        let mut listener = TcpListener::from_std(self.listener.try_clone()?);
        let registry = poll.registry().try_clone()?;
        registry.register(&mut listener, LISTENER, Interest::READABLE)?;
        let wake = me.wake_fd()?.as_raw_fd();
        registry.register(&mut SourceFd(&wake), WAKE, Interest::READABLE)?;

        let mut connections = HashMap::new();
        let mut next = FIRST_CONNECTION;
        let mut events = Events::with_capacity(64);
        while !self.has_ended.load(Ordering::Acquire) {
            // Serves others and runs callbacks. Only if there is nothing left may the loop sleep.
            let dozing = me.doze()?;
            let timeout = dozing.is_none().then_some(Duration::ZERO);
            poll.poll(&mut events, timeout)?;
            drop(dozing);
            for event in &events {
                match event.token() {
                    WAKE => {} // that was for `doze`
                    LISTENER => {
                        while let Some(mut stream) = ready(listener.accept())? {
                            registry.register(&mut stream.0, Token(next), Interest::READABLE)?;
                            let (stream, line) = (stream.0, Vec::new());
                            let connection = Rc::new(RefCell::new(Connection { stream, line }));
                            connections.insert(next, connection);
                            next += 1;
                        }
                    }
                    Token(number) => {
                        if self.read(&connections[&number])? {
                            connections.remove(&number);
                        }
                    }
                }
            }
        }
        Ok(())
    }

    /// Reads what has come, and asks for the count of each word. Returns whether the client is gone.
    fn read(&self, connection: &Rc<RefCell<Connection>>) -> io::Result<bool> {
        let mut bytes = [0; 1024];
        loop {
            let read = connection.borrow_mut().stream.read(&mut bytes);
            let Some(n) = ready(read)? else {
                return Ok(false);
            };
            if n == 0 {
                return Ok(true);
            }
            for &byte in &bytes[..n] {
                if byte != b'\n' {
                    connection.borrow_mut().line.push(byte);
                    continue;
                }
                let line = std::mem::take(&mut connection.borrow_mut().line);
                let word = String::from_utf8_lossy(&line).into_owned();
                let answer = Rc::clone(connection);
                // Runs at once if the word is this thread's own. Otherwise the callback runs here, in
                // a later `doze`.
                self.owner(&word).apply_then(
                    move |counts| {
                        let count = counts.entry(word).or_default();
                        *count += 1;
                        *count
                    },
                    move |n| {
                        let answered = writeln!(answer.borrow_mut().stream, "{n}");
                        answered.expect("a short answer finds room");
                    },
                );
            }
        }
    }

    fn owner(&self, word: &str) -> &Trust<Counts> {
        let hash = BuildHasherDefault::<DefaultHasher>::default().hash_one(word);
        &self.counts[hash as usize % self.counts.len()]
    }
}

/// The result of a system call, or `None` if it would have waited.
fn ready<T>(result: io::Result<T>) -> io::Result<Option<T>> {
    match result {
        Err(error) if error.kind() == ErrorKind::WouldBlock => Ok(None),
        result => result.map(Some),
    }
}

/// A client: sends all words again and again. Returns the sum of the answers.
fn client(address: std::net::SocketAddr) -> io::Result<u64> {
    let mut stream = std::net::TcpStream::connect(address)?;
    let mut answers = BufReader::new(stream.try_clone()?).lines();
    let mut sum = 0;
    for _ in 0..ROUNDS {
        for word in WORDS {
            writeln!(stream, "{word}")?;
            let answer = answers.next().expect("an answer")?;
            sum += answer.parse::<u64>().expect("a number");
        }
    }
    Ok(sum)
}

fn main() -> Result<(), Box<dyn Error>> {
    let listener = std::net::TcpListener::bind("127.0.0.1:0")?;
    listener.set_nonblocking(true)?;
    let address = listener.local_addr()?;
    let team = Trustees::flat(THREADS).name("loop").start()?;
    let service = Service {
        listener,
        counts: team.entrust_all(vec![Counts::new(); THREADS]).to_vec(),
        has_ended: AtomicBool::new(false),
    };
    let sums = std::thread::scope(|s| {
        let served = s.spawn(|| team.run(|me| service.serve(me)));
        let clients: Vec<_> = (0..CLIENTS)
            .map(|_| s.spawn(move || client(address)))
            .collect();
        let sums: io::Result<Vec<_>> = clients
            .into_iter()
            .map(|client| client.join().expect("no client panics"))
            .collect();
        service.has_ended.store(true, Ordering::Release);
        service.counts.iter().for_each(|counts| counts.post(|_| ())); // wakes the loops
        let served = served.join().expect("no loop panics");
        served.into_iter().collect::<io::Result<Vec<()>>>()?;
        sums
    })?;
    // Each word has been counted from 1 to CLIENTS * ROUNDS, and each number was told to one client.
    let n = (CLIENTS * ROUNDS) as u64;
    assert_eq!(
        sums.iter().sum::<u64>(),
        WORDS.len() as u64 * n * (n + 1) / 2
    );
    println!(
        "{CLIENTS} clients sent {} words to {THREADS} threads",
        WORDS.len() as u64 * n
    );
    Ok(())
}
