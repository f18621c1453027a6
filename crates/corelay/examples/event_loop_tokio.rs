//! A service whose threads are trustees, each with a Tokio runtime of its own: it counts words.
//!
//! It does what `event_loop_mio` does, with a task for each connection. On each thread one more task
//! serves the requests of the others, and sleeps on the member's file descriptor like any task that
//! waits for a socket.
//!
//! `cargo run --release -p corelay --example event_loop_tokio`

use corelay::{Member, Trust, Trustees};
use std::collections::HashMap;
use std::error::Error;
use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher};
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use tokio::io::unix::AsyncFd;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Interest};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::Builder;
use tokio::task::{LocalSet, spawn_local, yield_now};

const THREADS: usize = 2;
const CLIENTS: usize = 8;
const WORDS: [&str; 3] = ["apple", "pear", "plum"];
const ROUNDS: usize = 100;

/// The counts of the words that one thread owns.
type Counts = HashMap<String, u64>;

/// The service as all its threads know it.
struct Service {
    listener: std::net::TcpListener,
    /// One for each thread, on which it lies.
    counts: Vec<Trust<Counts>>,
    has_ended: AtomicBool,
}

/// The task that makes a runtime's thread a trustee: it serves others and runs callbacks, lets the
/// other tasks run, and sleeps only if there is nothing left.
async fn serve_others(me: &Member, service: &Service) -> io::Result<()> {
    // SAFETY: the thread keeps the descriptor open until it ends, and runs this task.
    let wake = unsafe { AsyncFd::register_with_interest(me.wake_fd()?, Interest::READABLE)? };
    while !service.has_ended.load(Ordering::Acquire) {
        match me.doze()? {
            None => yield_now().await,
            Some(dozing) => {
                wake.readable().await?.clear_ready();
                drop(dozing);
            }
        }
    }
    Ok(())
}

impl Service {
    /// One thread's life: its runtime runs until the service ends.
    fn run(self: &Arc<Self>, me: &Member) -> io::Result<()> {
        let runtime = Builder::new_current_thread().enable_io().build()?;
        let tasks = LocalSet::new();
        let listener = self.listener.try_clone()?;
        let service = Arc::clone(self);
        tasks.block_on(&runtime, async move {
            spawn_local(Arc::clone(&service).accept(TcpListener::from_std(listener)?));
            serve_others(me, &service).await
        })
    }

    async fn accept(self: Arc<Self>, listener: TcpListener) -> io::Result<()> {
        loop {
            let (stream, _) = listener.accept().await?;
            spawn_local(Arc::clone(&self).talk(stream));
        }
    }

    /// Answers a client's lines until it goes.
    async fn talk(self: Arc<Self>, stream: TcpStream) -> io::Result<()> {
        let (reader, mut writer) = stream.into_split();
        let mut lines = BufReader::new(reader).lines();
        while let Some(word) = lines.next_line().await? {
            // At once if the word is this thread's own; otherwise other tasks run meanwhile.
            let n = self.owner(&word).apply_async(move |counts| {
                let count = counts.entry(word).or_default();
                *count += 1;
                *count
            });
            let n = n.await.expect("the team serves");
            writer.write_all(format!("{n}\n").as_bytes()).await?;
        }
        Ok(())
    }

    fn owner(&self, word: &str) -> &Trust<Counts> {
        let hash = BuildHasherDefault::<DefaultHasher>::default().hash_one(word);
        &self.counts[hash as usize % self.counts.len()]
    }
}

/// A client: sends all words again and again. Returns the sum of the answers.
async fn client(address: std::net::SocketAddr) -> io::Result<u64> {
    let (reader, mut writer) = TcpStream::connect(address).await?.into_split();
    let mut answers = BufReader::new(reader).lines();
    let mut sum = 0;
    for _ in 0..ROUNDS {
        for word in WORDS {
            writer.write_all(format!("{word}\n").as_bytes()).await?;
            let answer = answers.next_line().await?.expect("an answer");
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
    let service = Arc::new(Service {
        listener,
        counts: team.entrust_all(vec![Counts::new(); THREADS]).to_vec(),
        has_ended: AtomicBool::new(false),
    });
    let sum = std::thread::scope(|s| {
        let served = s.spawn(|| team.run(|me| service.run(me)));
        let runtime = Builder::new_current_thread().enable_io().build()?;
        let sum = runtime.block_on(async {
            let clients: Vec<_> = (0..CLIENTS)
                .map(|_| tokio::spawn(client(address)))
                .collect();
            let mut sum = 0;
            for client in clients {
                sum += client.await.expect("no client panics")?;
            }
            io::Result::Ok(sum)
        });
        service.has_ended.store(true, Ordering::Release);
        service.counts.iter().for_each(|counts| counts.post(|_| ())); // wakes the loops
        let served = served.join().expect("no loop panics");
        served.into_iter().collect::<io::Result<Vec<()>>>()?;
        sum
    })?;
    // Each word has been counted from 1 to CLIENTS * ROUNDS, and each number was told to one client.
    let n = (CLIENTS * ROUNDS) as u64;
    assert_eq!(sum, WORDS.len() as u64 * n * (n + 1) / 2);
    println!(
        "{CLIENTS} clients sent {} words to {THREADS} threads",
        WORDS.len() as u64 * n
    );
    Ok(())
}
