//! Any bytes: commands with changes in them, and noise. The server answers or closes the connection, it
//! serves others, says nothing on its standard error, and takes no memory that stays.
//!
//! `CORELAY_STRESS=10 cargo test …` makes ten times as many connections.

mod support;

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::{Index, select};
use proptest::test_runner::{TestError, TestRunner};
use std::cell::RefCell;
use std::io::{ErrorKind, Read};
use std::net::Shutdown;
use std::time::{Duration, Instant};
use support::{HANG, Server, is_timeout, shown};

/// Commands of every kind, whole and right.
const COMMANDS: &[&str] = &[
    "get a\r\n",
    "get a b c dd eee nothing\r\n",
    "gets a b\r\n",
    "gat 100 a b\r\n",
    "gats 0 a\r\n",
    "set a 5 0 5\r\nhello\r\n",
    "set b 0 0 2 noreply\r\n10\r\n",
    "add c 1 100 0\r\n\r\n",
    "replace a 0 0 4\r\n\r\n\r\n\r\n",
    "append a 0 0 3\r\nmor\r\n",
    "prepend a 0 0 3 noreply\r\npre\r\n",
    "cas a 0 0 1 1\r\nx\r\n",
    "incr b 1\r\n",
    "decr b 18446744073709551615 noreply\r\n",
    "touch a 1000\r\n",
    "delete a\r\n",
    "delete b 0 noreply\r\n",
    "flush_all\r\n",
    "flush_all 2 noreply\r\n",
    "mg a v k f t s c h l O123 q\r\n",
    "mg YQ== b k v N30 R30 T30\r\n",
    "ms a 5 c F3 T100 MS O77\r\nhello\r\n",
    "ms YQ== 3 b I C1 q\r\nxyz\r\n",
    "ms c 1 MA\r\ny\r\n",
    "md a q I T30 C5\r\n",
    "ma b N0 J13 D5 MD v t c\r\n",
    "me a\r\n",
    "mn\r\n",
    "version\r\n",
    "verbosity 1\r\n",
    "stats\r\n",
    "stats items\r\n",
    "cache_memlimit 64\r\n",
    "quit\r\n",
    "GET / HTTP/1.1\r\n\r\n",
];

/// Numbers at the edges of 31, 32, 63 and 64 bits, and of the server's own limits.
const NUMBERS: &[&str] = &[
    "0",
    "-1",
    "1",
    "00",
    "+1",
    "250",
    "251",
    "2047",
    "2048",
    "65536",
    "66000",
    "1048576",
    "2147483645",
    "2147483646",
    "2147483647",
    "2147483648",
    "4294967295",
    "4294967296",
    "4294967301",
    "9223372036854775807",
    "9223372036854775808",
    "18446744073709551615",
    "18446744073709551616",
    "-9223372036854775808",
    "999999999999999999999999999",
    "1e3",
    "0x10",
];

/// A change of some bytes.
#[derive(Clone, Debug)]
enum Change {
    Replace(Index, u8),
    Insert(Index, Vec<u8>),
    Remove(Index, Index),
    Repeat(Index, usize),
    /// Puts another number in the place of one of the words.
    Number(Index, &'static str),
    End(Index),
}

impl Change {
    fn apply(&self, bytes: &mut Vec<u8>) {
        if bytes.is_empty() {
            return;
        }
        match self {
            Self::Replace(at, byte) => *at.get_mut(bytes) = *byte,
            Self::Insert(at, more) => {
                let at = at.index(bytes.len());
                bytes.splice(at..at, more.iter().copied());
            }
            Self::Remove(at, to) => {
                let [at, to] = [at, to].map(|index| index.index(bytes.len()));
                bytes.drain(at.min(to)..at.max(to));
            }
            Self::Repeat(at, times) => {
                let at = at.index(bytes.len());
                let part = bytes[at..].to_vec();
                bytes.extend(part.repeat(*times));
            }
            Self::Number(word, number) => {
                let mut words: Vec<&[u8]> = bytes.split(|&byte| byte == b' ').collect();
                let word = word.index(words.len());
                words[word] = number.as_bytes();
                *bytes = words.join(&b' ');
            }
            Self::End(at) => bytes.truncate(at.index(bytes.len())),
        }
    }
}

fn change() -> impl Strategy<Value = Change> {
    let odd = prop_oneof![any::<u8>(), select(&b" \r\n\0\t\x80-+09aZ"[..]),];
    prop_oneof![
        3 => (any::<Index>(), odd.clone()).prop_map(|(at, byte)| Change::Replace(at, byte)),
        2 => (any::<Index>(), vec(odd, 1..20)).prop_map(|(at, more)| Change::Insert(at, more)),
        2 => any::<(Index, Index)>().prop_map(|(at, to)| Change::Remove(at, to)),
        1 => (any::<Index>(), select(&[1usize, 30, 3000][..]))
            .prop_map(|(at, times)| Change::Repeat(at, times)),
        4 => (any::<Index>(), select(NUMBERS)).prop_map(|(at, number)| Change::Number(at, number)),
        1 => any::<Index>().prop_map(Change::End),
    ]
}

/// A packet of the binary protocol, whose lengths need not be right.
fn packet() -> impl Strategy<Value = Vec<u8>> {
    let lengths = select(
        &[
            0u32,
            1,
            8,
            20,
            24,
            250,
            251,
            65_535,
            1 << 20,
            1 << 31,
            u32::MAX,
        ][..],
    );
    (
        0u8..0x50,
        any::<[u8; 2]>(),
        0u8..30,
        lengths,
        any::<bool>(),
        vec(any::<u8>(), 0..60),
    )
        .prop_map(|(opcode, key, extras, length, is_right, body)| {
            let key = if is_right { [0, 1] } else { key };
            let length = if is_right { body.len() as u32 } else { length };
            let mut packet = vec![0x80, opcode, key[0], key[1], extras, 0, 0, 0];
            packet.extend(length.to_be_bytes());
            packet.extend([0; 12]);
            packet.extend(body);
            packet
        })
}

/// The bytes that a connection sends, in parts.
fn input() -> impl Strategy<Value = (Vec<u8>, Vec<usize>)> {
    let command = || select(COMMANDS).prop_map(|command| command.as_bytes().to_vec());
    let changed = (command(), vec(change(), 1..4)).prop_map(|(mut bytes, changes)| {
        changes.iter().for_each(|change| change.apply(&mut bytes));
        bytes
    });
    let part = prop_oneof![
        4 => command(),
        8 => changed,
        1 => vec(any::<u8>(), 0..300),
        2 => packet(),
    ];
    let bytes = vec(part, 1..12).prop_map(|parts| parts.concat());
    (bytes, vec(1usize..60, 0..12))
}

/// Sends the bytes, ends the input, and reads what is answered. `None` if the server says something
/// else, or does not close.
fn send(server: &Server, bytes: &[u8], parts: &[usize]) -> Option<Vec<u8>> {
    let mut client = server.connect();
    let mut stream = client.0.try_clone().expect("a handle");
    let short = Duration::from_millis(20);
    stream.set_read_timeout(Some(short)).expect("not zero");
    std::thread::scope(|scope| {
        let answer = scope.spawn(move || {
            let (begin, mut answer) = (Instant::now(), Vec::new());
            let mut buffer = [0; 4096];
            while server.is_silent() && begin.elapsed() < HANG {
                match stream.read(&mut buffer) {
                    Ok(0) => return Some(answer),
                    Ok(n) => answer.extend_from_slice(&buffer[..n]),
                    Err(error) if is_timeout(&error) => {}
                    Err(error) if error.kind() == ErrorKind::Interrupted => {}
                    Err(_) => return Some(answer),
                }
            }
            None
        });
        let mut rest = bytes;
        for &part in parts {
            let (now, later) = rest.split_at(part.min(rest.len()));
            client.try_send(now);
            rest = later;
            // A short pause makes it two reads.
            std::thread::sleep(Duration::from_micros(200));
        }
        client.try_send(rest);
        let _ = client.0.shutdown(Shutdown::Write);
        answer.join().expect("it does not panic")
    })
}

/// Asks every thread for something, by a few connections.
fn is_well(server: &mut Server) -> bool {
    if !server.is_running() {
        return false;
    }
    let server = &*server;
    let ask = || {
        let answer = send(server, b"set well 0 0 2\r\nhi\r\nget well\r\nmn\r\n", &[]);
        answer.is_some_and(|answer| answer == b"STORED\r\nVALUE well 0 2\r\nhi\r\nEND\r\nMN\r\n")
    };
    (0..4).all(|_| ask())
}

#[test]
fn any_bytes_are_answered_or_end_their_connection() {
    let factor = std::env::var("CORELAY_STRESS").map_or(1.0, |text| {
        text.parse::<f64>().expect("CORELAY_STRESS is a number")
    });
    let config = ProptestConfig {
        cases: ((300.0 * factor) as u32).max(1),
        max_shrink_iters: 100,
        failure_persistence: None,
        ..ProptestConfig::default()
    };
    let flags = ["-t", "3", "-m", "8", "-I", "64k"];
    let server = RefCell::new(Server::start_heard(&flags));
    assert!(is_well(&mut server.borrow_mut()));
    #[cfg(target_os = "linux")]
    let [before, _] = server.borrow().memory();
    let result = TestRunner::new(config).run(&input(), |(bytes, parts)| {
        let mut server = server.borrow_mut();
        let is_closed = send(&server, &bytes, &parts).is_some();
        if is_closed && is_well(&mut server) && server.is_silent() {
            return Ok(());
        }
        // A smaller input is looked for with a server that is well.
        *server = Server::start_heard(&flags);
        Err(TestCaseError::fail("the server is not well"))
    });
    if let Err(TestError::Fail(why, (bytes, parts))) = &result {
        panic!("{why} after {}, in parts of {parts:?}", shown(bytes));
    }
    result.expect("no input is rejected");
    #[cfg(target_os = "linux")]
    {
        let [now, most] = server.borrow().memory();
        assert!(
            most < before + (32 << 20),
            "{before} bytes at first, then {now}, {most} at most"
        );
    }
}
