//! `corelay bench cache` as its users meet it, against small servers in this process.

use crate::program::{command, corelay, fine, is_refusal, refused, text};
use corelay_lab_measure::schema::{Results, Run};
use std::collections::HashMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

/// The way in which a server answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Nature {
    /// It stores what it is given.
    Stores,
    /// It does so, and sends each answer in pieces of this many bytes.
    Splits(usize),
    /// It refuses every set.
    Full,
    /// It gives every key the same value.
    Mixes,
    /// It closes a connection after so many requests.
    Closes(u64),
    /// It answers requests with something else.
    Babbles,
}

type Store = Arc<Mutex<HashMap<Vec<u8>, Vec<u8>>>>;

/// Starts a server. Returns its address; it ends with the process.
fn server(nature: Nature) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let store = Store::default();
    std::thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            let store = Arc::clone(&store);
            // The load may close its connections at any moment.
            std::thread::spawn(move || drop(serve(stream, nature, &store)));
        }
    });
    address
}

fn serve(stream: TcpStream, nature: Nature, store: &Store) -> std::io::Result<()> {
    stream.set_nodelay(true)?;
    let (mut input, mut output) = (BufReader::new(stream.try_clone()?), stream);
    for served in 0.. {
        let mut line = String::new();
        if input.read_line(&mut line)? == 0 {
            return Ok(());
        }
        let words: Vec<&str> = line.split_whitespace().collect();
        let answer = match words[..] {
            ["version"] => b"VERSION test\r\n".to_vec(),
            _ if nature == Nature::Closes(served) => return Ok(()),
            _ if nature == Nature::Babbles => b"220 smtp.example.org\r\n".to_vec(),
            ["get", key] => match store.lock().unwrap().get(key.as_bytes()) {
                Some(value) => {
                    let line = format!("VALUE {key} 0 {}\r\n", value.len());
                    [line.as_bytes(), value, b"\r\nEND\r\n"].concat()
                }
                None => b"END\r\n".to_vec(),
            },
            ["set", key, "0", "0", bytes] => {
                let mut value = vec![0; bytes.parse::<usize>().unwrap() + 2];
                input.read_exact(&mut value)?;
                assert!(value.ends_with(b"\r\n"));
                value.truncate(value.len() - 2);
                match nature {
                    Nature::Full => b"SERVER_ERROR out of memory\r\n".to_vec(),
                    _ => {
                        if nature == Nature::Mixes {
                            value.fill(b'A');
                        }
                        store.lock().unwrap().insert(key.as_bytes().to_vec(), value);
                        b"STORED\r\n".to_vec()
                    }
                }
            }
            _ => panic!("{line}"),
        };
        match nature {
            Nature::Splits(bytes) => {
                for piece in answer.chunks(bytes) {
                    output.write_all(piece)?;
                    std::thread::yield_now();
                }
            }
            _ => output.write_all(&answer)?,
        }
    }
    Ok(())
}

fn args<'a>(address: &'a str, flags: &'a str) -> Vec<&'a str> {
    let mut args = vec!["bench", "cache", "--server", address];
    args.extend(flags.split_whitespace());
    args
}

/// Measures a server for a short time; every answer has been checked by the program.
#[track_caller]
fn measured(nature: Nature, flags: &str) -> Run {
    let keys = if flags.contains("--keys") {
        ""
    } else {
        "--keys 200"
    };
    let flags = format!("--secs 0.2 --block 0.1 --connections 4 {flags} {keys} --json -");
    let output = corelay(&args(&server(nature), &flags));
    let results: Results = serde_json::from_str(&fine(&output)).unwrap();
    assert!(results.command.starts_with("corelay bench cache "));
    let [run] = &results.runs[..] else {
        panic!("{results:?}")
    };
    assert!(run.correct && run.workload == "cache" && run.samples.len() == 2);
    let cache = run.cache.as_ref().unwrap();
    assert_eq!(cache.version, "test");
    assert!(cache.counts.hits + cache.counts.misses + cache.counts.refused >= cache.counts.gets);
    assert!(cache.counts.sent > 0 && cache.counts.received > 0);
    for block in run.samples.iter().map(|s| s.cache.as_ref().unwrap()) {
        let l = block.latency_ns.unwrap();
        assert!(l.p50 <= l.p90 && l.p90 <= l.p99 && l.p99 <= l.p999 && l.p999 <= l.max);
    }
    run.clone()
}

#[test]
fn filled_server_hits_always() {
    for (nature, flags) in [
        (Nature::Stores, "--pipeline 1"),
        (
            Nature::Stores,
            "--pipeline 7 --value-size 0..3000 --zipf 0 --hot 0.5",
        ),
        (
            Nature::Stores,
            "--threads 2 --pin none --key-size 250 --get-ratio 0.5",
        ),
        (Nature::Stores, "--value-size 300000 --keys 20"),
        (Nature::Splits(1), "--pipeline 3"),
        (Nature::Splits(7), "--value-size 1..100 --spin"),
        (Nature::Stores, "--load 2000 --idle-connections 3"),
    ] {
        let run = measured(nature, &format!("{flags} --warmup"));
        let cache = run.cache.unwrap();
        let filled = cache.filled.unwrap();
        assert_eq!((filled.stored, filled.refused), (run.params.vars, 0));
        let counts = cache.counts;
        assert_eq!((counts.misses, counts.hits), (0, counts.gets), "{flags}");
        assert!(counts.gets > 0 && counts.refused == 0 && counts.wrong == 0);
    }
}

#[test]
fn only_gets_or_only_sets() {
    let counts = measured(Nature::Stores, "--get-ratio 1")
        .cache
        .unwrap()
        .counts;
    assert_eq!((counts.sets, counts.hits), (0, 0));
    assert!(counts.gets > 0 && counts.misses == counts.gets);
    let counts = measured(Nature::Stores, "--get-ratio 0")
        .cache
        .unwrap()
        .counts;
    assert!(counts.sets > 0 && counts.gets == 0);
}

#[test]
fn misses_are_set_and_scans_counted_apart() {
    let flags = "--get-ratio 1 --miss-set --scan-every 50 --scan-length 5 --pipeline 4";
    let counts = measured(Nature::Stores, flags).cache.unwrap().counts;
    assert!(counts.scans > 0 && counts.refills > 0 && counts.sets == 0);
    // A key is missed once, or by each connection that asked before it was set.
    assert!(counts.misses <= 200 * 4 * 4 && counts.hits > 0);
}

#[test]
fn refused_sets_are_errors_with_a_note() {
    let run = measured(Nature::Full, "--get-ratio 0.5 --warmup");
    let cache = run.cache.unwrap();
    let filled = cache.filled.unwrap();
    assert_eq!((filled.stored, filled.refused), (0, 200));
    assert!(cache.counts.refused > 0 && cache.counts.refused == cache.counts.sets);
    let refusal = cache.first_refusal.unwrap();
    assert_eq!(refusal, "SERVER_ERROR out of memory");
    assert!(run.notes.iter().any(|note| note.contains(&refusal)));
}

#[test]
fn wrong_values_are_a_wrong_result() {
    let address = server(Nature::Mixes);
    let flags = "--secs 0.1 --block 0.1 --keys 50 --warmup";
    let output = corelay(&args(&address, flags));
    assert_eq!(output.status.code(), Some(1), "{}", text(&output.stderr));
    assert!(text(&output.stdout).contains("WRONG values"));
}

/// It says one sentence that contains each of `words`, and exits with 1.
#[track_caller]
fn failed(args: &[&str], words: &[&str]) {
    let output = corelay(args);
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{args:?}: {said}");
    assert_eq!(said.lines().count(), 1, "{args:?}: {said}");
    assert!(said.starts_with("error: "), "{said}");
    for word in words {
        assert!(said.contains(word), "`{word}` is missing in: {said}");
    }
}

#[test]
fn servers_that_fail_get_one_sentence() {
    let closed = TcpListener::bind("127.0.0.1:0").unwrap();
    let nowhere = closed.local_addr().unwrap().to_string();
    drop(closed);
    failed(&args(&nowhere, ""), &[&nowhere, "cannot be reached"]);
    failed(&args("/nonexistent/socket", ""), &["/nonexistent/socket"]);
    let closes = server(Nature::Closes(100));
    failed(
        &args(&closes, "--secs 5"),
        &[&closes, "closed a connection"],
    );
    let babbles = server(Nature::Babbles);
    failed(&args(&babbles, ""), &[&babbles, "220 smtp.example.org"]);
    let stranger = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = stranger.local_addr().unwrap().to_string();
    let greets = std::thread::spawn(move || {
        let (mut stream, _) = stranger.accept().unwrap();
        stream.write_all(b"SSH-2.0-test\r\n").unwrap();
        // Until the load has gone.
        let _ = stream.read_to_end(&mut Vec::new());
    });
    failed(
        &args(&address, ""),
        &[&address, "SSH-2.0-test", "memcached"],
    );
    greets.join().unwrap();
    failed(
        &["bench", "cache", "--start", "sh -c 'echo lost >&2; exit 4'"],
        &["lost", "4"],
    );
}

#[test]
fn silent_server_is_given_up() {
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = silent.local_addr().unwrap().to_string();
    failed(&args(&address, ""), &[&address, "not answered for 10 s"]);
}

#[test]
fn bad_input_gets_one_sentence() {
    let refused = |flags: &str, words: &[&str]| {
        refused(&args("127.0.0.1:1", flags), words);
    };
    refused("--connections 0", &["--connections"]);
    refused(
        "--connections 2 --threads 3",
        &["--threads 3", "--connections 2"],
    );
    refused("--pipeline 0", &["--pipeline"]);
    refused("--get-ratio 1.5", &["--get-ratio", "0 and 1"]);
    refused("--get-ratio 0 --miss-set", &["--get-ratio 0", "--miss-set"]);
    refused("--keys 0", &["--keys"]);
    refused("--keys 70000 --key-size 4", &["--key-size 4", "at least 5"]);
    refused("--key-size 251", &["--key-size", "1..=250"]);
    refused("--value-size 9..3", &["--value-size", "reversed"]);
    refused("--value-size big", &["--value-size", "`big`"]);
    refused("--zipf -1", &["--zipf"]);
    refused("--load 0", &["--load"]);
    refused("--secs 1 --block 2", &["--block 2", "--secs 1"]);
    refused("--scan-every 5", &["--scan-length"]);
    refused(
        "--scan-every 5 --scan-length 5",
        &["--scan-every", "--miss-set"],
    );
    refused("--hot 2", &["--hot"]);
    refused("--pin cores-first", &["--pin", "none"]);
    refused("--server-cpu x", &["--server-cpu"]);
    refused("--pin 1 --server-cpu 60000", &["--server-cpu", "60000"]);
    refused("--start memcached", &["--start", "--server"]);
    refused("--against 'x", &["'x", "closing"]);
    let nothing = ["bench", "cache"];
    is_refusal(&corelay(&nothing), &nothing, &["--server", "--start"]);
    let nowhere = ["bench", "cache", "--server", "localhost"];
    is_refusal(&corelay(&nowhere), &nowhere, &["--server", "`localhost`"]);
    let missing = ["bench", "cache", "--start", "/nonexistent/memcached"];
    is_refusal(&corelay(&missing), &missing, &["/nonexistent/memcached"]);
}

#[test]
fn list_names_the_workload() {
    let state = tempfile::tempdir().unwrap();
    let listed = command(state.path())
        .args(["bench", "cache", "--list"])
        .output();
    assert!(fine(&listed.unwrap()).contains("memcached"));
}

/// Tests two servers in turns, if memcached is installed.
#[test]
fn servers_take_turns() {
    let memcached = "memcached -u root -l 127.0.0.1 -U 0 -t 1";
    if std::process::Command::new("memcached")
        .arg("-V")
        .output()
        .is_err()
    {
        return eprintln!("memcached is not installed");
    }
    let flags = "--keys 100 --warmup --secs 0.4 --block 0.1 --pin none --json -";
    let mut args = vec![
        "bench",
        "cache",
        "--start",
        memcached,
        "--against",
        memcached,
    ];
    args.extend(flags.split(' '));
    let results: Results = serde_json::from_str(&fine(&corelay(&args))).unwrap();
    let [first, second] = &results.runs[..] else {
        panic!("{results:?}")
    };
    assert_eq!((first.method.as_str(), first.samples.len()), (memcached, 4));
    assert_eq!(second.method, format!("{memcached} (2)"));
    assert_eq!(second.samples.len(), 4);
    let (cache, other) = (
        first.cache.as_ref().unwrap(),
        second.cache.as_ref().unwrap(),
    );
    assert!(cache.server != other.server && other.against.is_empty());
    // A mode that both have met has a ratio; that depends on the machine.
    for ratio in &cache.against {
        assert!(ratio.low <= ratio.ratio && ratio.ratio <= ratio.high && ratio.blocks > 0);
        assert_eq!(ratio.of, second.method);
    }
    if cfg!(target_os = "linux") {
        assert!(cache.resident_bytes > Some(1 << 20) && cache.peak_bytes >= cache.resident_bytes);
        let of = |run: &Run| run.samples[0].cache.as_ref().unwrap().server_cpu_s;
        assert!(of(first) > Some(0.0) && of(second) > Some(0.0));
    }
    // Both have been ended.
    for server in [&cache.server, &other.server] {
        assert!(TcpStream::connect(server).is_err(), "{server}");
    }
}
