//! Answers from several threads: in order, whole, however many bytes they have and however slowly the
//! client reads.

mod support;

use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};
use std::time::Duration;
use support::Server;

/// The flags of a server with three threads.
const FLAGS: [&str; 4] = ["-t", "3", "-m", "256"];

fn value(key: usize, len: usize) -> Vec<u8> {
    key.to_string().bytes().cycle().take(len).collect()
}

/// Reads `wanted`, in small pieces and with pauses if `is_slow`.
#[track_caller]
fn demand(stream: &mut TcpStream, wanted: &[u8], is_slow: bool) {
    let mut at = 0;
    let mut buffer = vec![0; 100_000];
    while at < wanted.len() {
        let most = buffer.len().min(wanted.len() - at);
        let n = stream.read(&mut buffer[..most]);
        let n = n.expect("the answer comes");
        assert!(
            n > 0,
            "the server closes after {at} bytes of {}",
            wanted.len()
        );
        assert!(
            buffer[..n] == wanted[at..at + n],
            "differs after {at} bytes"
        );
        at += n;
        if is_slow {
            std::thread::sleep(Duration::from_millis(2));
        }
    }
}

fn answer(keys: impl Iterator<Item = usize>, len: usize) -> Vec<u8> {
    let mut answer = Vec::new();
    for key in keys {
        answer.extend(format!("VALUE key{key} 0 {len}\r\n").bytes());
        answer.extend(value(key, len));
        answer.extend(b"\r\n");
    }
    answer.extend(b"END\r\n");
    answer
}

#[test]
fn large_answers_from_several_threads_come_whole_and_in_order() {
    const KEYS: usize = 200;
    let server = Server::start(&FLAGS);
    let mut stream = server.connect().0;
    for len in [10, 30_000] {
        for key in 0..KEYS {
            write!(stream, "set key{key} 0 0 {len} noreply\r\n").unwrap();
            stream.write_all(&value(key, len)).unwrap();
            stream.write_all(b"\r\n").unwrap();
        }
        let keys: String = (0..KEYS).map(|key| format!(" key{key}")).collect();
        for is_slow in [false, true] {
            // All keys in one line; then each in a line of its own, pipelined.
            write!(stream, "get{keys}\r\nmn\r\n").unwrap();
            if is_slow {
                std::thread::sleep(Duration::from_millis(100));
            }
            demand(&mut stream, &answer(0..KEYS, len), is_slow);
            demand(&mut stream, b"MN\r\n", is_slow);
            let lines: String = (0..KEYS).map(|key| format!("get key{key}\r\n")).collect();
            stream.write_all(lines.as_bytes()).unwrap();
            for key in 0..KEYS {
                demand(&mut stream, &answer(key..key + 1, len), is_slow);
            }
        }
    }
}

/// The client sends nothing more, and reads only then.
#[test]
fn answers_come_whole_after_the_end_of_input() {
    const LEN: usize = 900_000;
    let server = Server::start(&FLAGS);
    let mut stream = server.connect().0;
    for key in 0..8 {
        write!(stream, "set key{key} 0 0 {LEN} noreply\r\n").unwrap();
        stream.write_all(&value(key, LEN)).unwrap();
        stream.write_all(b"\r\n").unwrap();
    }
    write!(stream, "get key0 key1 key2 key3 key4 key5 key6 key7\r\n").unwrap();
    stream.shutdown(Shutdown::Write).unwrap();
    std::thread::sleep(Duration::from_millis(200));
    demand(&mut stream, &answer(0..8, LEN), true);
    assert_eq!(stream.read(&mut [0]).unwrap(), 0);
}
