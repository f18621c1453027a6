//! A server that answers memcached's requests without a cache: it counts lines and sends canned bytes.
//! It shows what `corelay bench cache` itself can do.
//!
//! ```text
//! cargo build --release -p corelay-lab-bench --example canned
//! corelay bench cache --start target/release/examples/canned --get-ratio 1 --pipeline 16
//! corelay bench cache --start 'target/release/examples/canned --hit' --get-ratio 1 --pipeline 16
//! ```
//! Every get misses; with `--hit` it finds a value of 32 bytes, the same for all keys, so that the load
//! counts wrong values. Sets are not understood.

use mio::net::{TcpListener, TcpStream};
use mio::{Events, Interest, Poll, Token};
use std::io::{self, ErrorKind, Read, Write};

const LISTENER: Token = Token(usize::MAX);

fn main() -> io::Result<()> {
    let args: Vec<String> = std::env::args().collect();
    let port = args
        .iter()
        .position(|arg| arg == "-p")
        .map(|at| &args[at + 1]);
    let port: u16 = port.and_then(|port| port.parse().ok()).expect("-p PORT");
    let hits = args.iter().any(|arg| arg == "--hit");
    let mut listener = TcpListener::bind(([127, 0, 0, 1], port).into())?;
    let (mut poll, mut events) = (Poll::new()?, Events::with_capacity(1024));
    poll.registry()
        .register(&mut listener, LISTENER, Interest::READABLE)?;
    let mut streams: Vec<Option<TcpStream>> = Vec::new();
    let (mut input, mut output) = (vec![0; 1 << 16], Vec::with_capacity(1 << 20));
    loop {
        match poll.poll(&mut events, None) {
            Err(error) if error.kind() == ErrorKind::Interrupted => continue,
            other => other?,
        }
        for event in &events {
            if event.token() == LISTENER {
                while let Ok((mut stream, _)) = listener.accept() {
                    stream.set_nodelay(true)?;
                    let token = Token(streams.len());
                    poll.registry()
                        .register(&mut stream, token, Interest::READABLE)?;
                    streams.push(Some(stream));
                }
                continue;
            }
            let at = event.token().0;
            let Some(stream) = &mut streams[at] else {
                continue;
            };
            match stream.read(&mut input) {
                Ok(0) => streams[at] = None,
                Ok(read) => {
                    answer(&input[..read], hits, &mut output);
                    if stream.write_all(&output).is_err() {
                        streams[at] = None;
                    }
                    output.clear();
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                Err(_) => streams[at] = None,
            }
        }
    }
}

/// Appends an answer to each whole line of `input`, which no read splits here.
fn answer(input: &[u8], hits: bool, output: &mut Vec<u8>) {
    if input.starts_with(b"version") {
        output.extend_from_slice(b"VERSION canned\r\n");
        return;
    }
    let mut rest = input;
    while let Some(end) = memchr::memchr(b'\n', rest) {
        if hits {
            output.extend_from_slice(b"VALUE ");
            output.extend_from_slice(&rest[4..end - 1]);
            output.extend_from_slice(b" 0 32\r\nABCDEFGHIJKLMNOPABCDEFGHIJKLMNOP\r\nEND\r\n");
        } else {
            output.extend_from_slice(b"END\r\n");
        }
        rest = &rest[end + 1..];
    }
}
