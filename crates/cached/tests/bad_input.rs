//! Bad input: each gets one clear error, harms nobody else, and takes no memory that stays.

mod support;

use std::process::{Command, Output, Stdio};
use std::time::Instant;
use support::{HANG, PROGRAM, Port, Server, shown};

const BAD_FORMAT: &str = "CLIENT_ERROR bad command line format\r\n";
const TOO_LARGE: &str = "SERVER_ERROR object too large for cache\r\n";
const NO_MEMORY: &str = "SERVER_ERROR out of memory storing object\r\n";

/// Runs the program, which must end by itself.
#[track_caller]
fn run(flags: &[&str]) -> Output {
    let mut command = Command::new(PROGRAM);
    command.args(flags);
    run_to_end(command)
}

#[track_caller]
fn run_to_end(mut command: Command) -> Output {
    command.stdin(Stdio::null());
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("the program starts");
    let begin = Instant::now();
    while child.try_wait().expect("it is our child").is_none() {
        if begin.elapsed() > HANG {
            let _ = child.kill();
            panic!("it serves: {command:?}");
        }
        std::thread::sleep(std::time::Duration::from_millis(2));
    }
    child.wait_with_output().expect("it has ended")
}

/// Sets and gets on a connection of its own.
#[track_caller]
fn demand_service(server: &Server) {
    let mut client = server.connect();
    for n in 0..20 {
        client.ask(format!("set other{n} 0 0 5\r\nhello\r\n"), "STORED\r\n");
        let answer = format!("VALUE other{n} 0 5\r\nhello\r\nEND\r\n");
        client.ask(format!("get other{n}\r\n"), answer);
    }
}

#[test]
fn a_line_without_an_end_closes_its_connection() {
    let server = Server::start(&["-t", "2"]);
    for begin in ["", "set ", "gat 0 ", "mg "] {
        let mut client = server.connect();
        client.send(begin);
        // The server may close before all is sent.
        let mut sent = 0;
        while sent < 1 << 20 && client.try_send(&[b'x'; 4096]) {
            sent += 4096;
        }
        let said = client.read_to_close();
        assert!(said.is_empty(), "{begin}: {}", shown(&said));
    }
    demand_service(&server);
}

#[test]
fn a_part_of_a_line_waits_for_the_rest() {
    let server = Server::start(&["-t", "2"]);
    let mut client = server.connect();
    for byte in b"set key 0 0 5\r\nhel" {
        client.send([*byte]);
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
    demand_service(&server);
    client.ask("lo\r\n", "STORED\r\n");
    client.ask("get key\r\n", "VALUE key 0 5\r\nhello\r\nEND\r\n");
}

#[test]
fn lengths_that_do_not_fit_are_refused() {
    let server = Server::start(&["-t", "2"]);
    let mut client = server.connect();
    client.ask("set key 0 0 3\r\nold\r\n", "STORED\r\n");
    let lengths = [
        "-1",
        "-2147483648",
        "2147483646",
        "2147483647",
        "2147483648",
        "4294967295",
        "4294967296",
        "4294967301", // 5 with 32 bits
        "9223372036854775808",
        "18446744073709551615",
        "18446744073709551616",
        "18446744073709551621",
        "99999999999999999999999999999999",
        "5x",
        "x",
    ];
    for length in lengths {
        for line in [
            format!("set key 0 0 {length}"),
            format!("add new 0 0 {length}"),
            format!("append key 0 0 {length}"),
            format!("cas key 0 0 {length} 1"),
            format!("ms key {length}"),
        ] {
            client.ask(format!("{line}\r\nmn\r\n"), format!("{BAD_FORMAT}MN\r\n"));
        }
    }
    client.ask("get key new\r\n", "VALUE key 0 3\r\nold\r\nEND\r\n");
    demand_service(&server);
}

#[test]
fn items_beyond_the_largest_size_are_refused_and_their_bytes_skipped() {
    for (flag, largest) in [("1k", 1 << 10), ("1m", 1 << 20), ("4m", 4 << 20)] {
        let server = Server::start(&["-t", "2", "-I", flag]);
        let mut client = server.connect();
        // The sum has the key and a header of 59 bytes.
        for (length, is_stored) in [
            (largest - 62, true),
            (largest - 61, false),
            (largest, false),
        ] {
            let value = vec![b'v'; length];
            for line in [
                format!("set key 0 0 {length}\r\n"),
                format!("add ke2 0 0 {length}\r\n"),
                format!("ms ke3 {length}\r\n"),
            ] {
                client.send(&line);
                client.send(&value);
                let answer = match (is_stored, line.starts_with("ms")) {
                    (true, true) => "HD\r\n",
                    (true, false) => "STORED\r\n",
                    (false, _) => TOO_LARGE,
                };
                client.ask("\r\nmn\r\n", format!("{answer}MN\r\n"));
            }
            client.ask("delete ke2 noreply\r\nmn\r\n", "MN\r\n");
        }
        demand_service(&server);
    }
}

#[test]
fn a_value_of_another_length_than_announced_is_refused() {
    let server = Server::start(&["-t", "2"]);
    let mut client = server.connect();
    client.ask("set key 0 0 3\r\nold\r\n", "STORED\r\n");
    // Five bytes and an end of line are read; what follows them is read as commands.
    let refused = "CLIENT_ERROR bad data chunk\r\n";
    client.ask(
        "set key 0 0 3\r\nlonge\r\nmn\r\n",
        format!("{refused}ERROR\r\nMN\r\n"),
    );
    client.ask(
        "set key 0 0 7\r\nshort\r\nxybogus\r\nmn\r\n",
        format!("{refused}ERROR\r\nMN\r\n"),
    );
    client.ask("get key\r\n", "VALUE key 0 3\r\nold\r\nEND\r\n");
}

#[test]
fn keys_that_are_too_long_are_refused() {
    let server = Server::start(&["-t", "2"]);
    let mut client = server.connect();
    let (longest, long) = ("k".repeat(250), "k".repeat(251));
    client.ask(format!("set {longest} 0 0 1\r\nx\r\n"), "STORED\r\n");
    for line in [
        "get {}",
        "gets a {} b",
        "delete {}",
        "incr {} 1",
        "touch {} 0",
        "mg {} v",
        "md {}",
    ] {
        client.ask(
            line.replace("{}", &long) + "\r\nmn\r\n",
            format!("{BAD_FORMAT}MN\r\n"),
        );
    }
    client.ask(
        format!("set {long} 0 0 1\r\nmn\r\n"),
        format!("{BAD_FORMAT}MN\r\n"),
    );
    client.ask(
        format!("get {longest}\r\n"),
        format!("VALUE {longest} 0 1\r\nx\r\nEND\r\n"),
    );
}

#[test]
fn flags_out_of_range_are_named() {
    for (flag, name, value) in [
        ("-m", "--memory-limit", "0"),
        ("-m", "--memory-limit", "-1"),
        ("-m", "--memory-limit", "16777217"),
        ("-m", "--memory-limit", "18446744073709551615"),
        ("-m", "--memory-limit", "much"),
        ("-c", "--conn-limit", "0"),
        ("-c", "--conn-limit", "4294967296"),
        ("-t", "--threads", "0"),
        ("-t", "--threads", "257"),
        ("-p", "--port", "65536"),
        ("-p", "--port", "x"),
        ("-U", "--udp-port", "11211"),
        ("-I", "--max-item-size", "0"),
        ("-I", "--max-item-size", "1025m"),
        ("-I", "--max-item-size", "18446744073709551615m"),
        ("-I", "--max-item-size", "k"),
        ("-I", "--max-item-size", "\u{e4}"),
    ] {
        // Nothing may be harmed if the flag is taken by mistake.
        let port = Port::take();
        let output = run(&["-p", &port.number.to_string(), flag, value]);
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{flag} {value}: {said}");
        assert!(
            said.contains(name) && said.contains(value),
            "{flag} {value}: {said}"
        );
        assert!(output.stdout.is_empty());
    }
}

#[test]
fn a_port_in_use_is_refused() {
    let server = Server::start(&["-t", "2"]);
    let port = server.address.port().to_string();
    for threads in ["1", "2"] {
        let output = run(&["-t", threads, "-p", &port]);
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{said}");
        assert!(said.contains("in use") && said.contains(&port), "{said}");
        assert_eq!(said.lines().count(), 1, "{said}");
    }
    demand_service(&server);
}

#[test]
fn connections_beyond_the_limit_are_told_so() {
    const MOST: usize = 10;
    const TOO_MANY: &str = "ERROR Too many open connections\r\n";
    for threads in ["1", "3"] {
        let server = Server::start(&["-t", threads, "-c", &MOST.to_string()]);
        // The connection by which the start was seen may still count.
        let mut clients = Vec::new();
        support::wait_until("all connections are accepted", || {
            let mut client = server.connect();
            let is_accepted = client.try_send(b"mn\r\n") && {
                let mut answer = [0; 4];
                let read = std::io::Read::read_exact(&mut client.0, &mut answer);
                read.is_ok() && answer == *b"MN\r\n"
            };
            if is_accepted {
                clients.push(client);
            }
            clients.len() == MOST
        });
        for _ in 0..50 {
            let said = server.connect().read_to_close();
            assert_eq!(String::from_utf8_lossy(&said), TOO_MANY);
        }
        for client in &mut clients {
            client.ask("mn\r\n", "MN\r\n");
        }
        // Once one has gone another one may come.
        clients.pop();
        support::wait_until("a connection is accepted", || {
            let mut client = server.connect();
            client.try_send(b"quit\r\n") && client.read_to_close().is_empty()
        });
        for client in &mut clients {
            client.ask("mn\r\n", "MN\r\n");
        }
    }
}

/// Tests of the server's memory, files and CPU time, which Linux's `/proc` tells.
#[cfg(target_os = "linux")]
mod resources {
    use super::*;
    use std::io::{ErrorKind, Read, Write};
    use std::net::Shutdown;
    use std::time::Duration;
    use support::Client;

    /// Memory that a server may take beside its items without a reason: buffers of its threads, and
    /// what an allocator keeps.
    const SLACK: usize = 24 << 20;

    #[test]
    fn bodies_that_never_come_take_no_memory() {
        const LENGTH: usize = 1_000_000;
        let server = Server::start(&["-t", "2", "-m", "8"]);
        demand_service(&server);
        let [before, _] = server.memory();
        let mut clients: Vec<_> = (0..200).map(|_| server.connect()).collect();
        for (n, client) in clients.iter_mut().enumerate() {
            client.send(format!("mn\r\nset key{n} 0 0 {LENGTH}\r\n"));
            client.demand("MN\r\n");
        }
        // All of them have been read once a later connection is answered by each thread.
        (0..8).for_each(|_| demand_service(&server));
        let [_, most] = server.memory();
        assert!(most < before + SLACK, "{before} bytes before, then {most}");
        // Half of a value, and the end: nothing is stored.
        for client in &mut clients[..20] {
            client.send(vec![b'x'; LENGTH / 2]);
            client.0.shutdown(Shutdown::Write).unwrap();
            assert_eq!(client.read_to_close(), b"");
        }
        let keys: String = (0..20).map(|n| format!(" key{n}")).collect();
        server.connect().ask(format!("get{keys}\r\n"), "END\r\n");
    }

    #[test]
    #[cfg_attr(
        any(corelay_tsan, corelay_asan),
        ignore = "the sanitizer keeps memory that was freed"
    )]
    fn values_on_their_way_take_bounded_memory() {
        const LENGTH: usize = 1_000_000;
        const MOST: usize = 64 << 20;
        let server = Server::start(&["-t", "2", "-m", "8"]);
        let mut owner = server.connect();
        let [before, _] = server.memory();
        let mut clients: Vec<_> = (0..200).map(|_| server.connect()).collect();
        for (n, client) in clients.iter_mut().enumerate() {
            owner.ask(format!("set key{n} 0 0 3\r\nold\r\n"), "STORED\r\n");
            client.send(format!("set key{n} 0 0 {LENGTH}\r\n"));
            client.send(vec![b'x'; LENGTH - 1]);
        }
        let mut refused = 0;
        for (n, client) in clients.iter_mut().enumerate() {
            client.send("x\r\nmn\r\n");
            let mut first = [0; 6];
            client.0.read_exact(&mut first).unwrap();
            if first == *b"STORED" {
                client.demand("\r\nMN\r\n");
            } else {
                assert_eq!(first, NO_MEMORY.as_bytes()[..6]);
                client.demand(&NO_MEMORY[6..]);
                client.demand("MN\r\n");
                // What could not be replaced is out of date.
                owner.ask(format!("get key{n}\r\n"), "END\r\n");
                refused += 1;
            }
        }
        assert!((1..200).contains(&refused), "{refused} refused");
        let [_, most] = server.memory();
        assert!(
            most < before + MOST + 200 * (64 << 10) + SLACK,
            "{before} bytes before, then {most}"
        );
        owner.send(format!("set key 0 0 {LENGTH}\r\n"));
        owner.send(vec![b'x'; LENGTH]);
        owner.ask("\r\n", "STORED\r\n");
    }

    /// A value that has only been announced keeps no other one out.
    #[test]
    fn values_that_are_announced_take_nobody_elses_memory() {
        let server = Server::start(&["-t", "2"]);
        let announce = |n: usize| {
            let mut client = server.connect();
            client.ask("mn\r\n", "MN\r\n");
            client.send(format!("set large{n} 0 0 1000000\r\n"));
            client
        };
        let clients: Vec<_> = (0..200).map(announce).collect();
        let mut other = server.connect();
        other.send("set key 0 0 300000\r\n");
        other.send(vec![b'x'; 299_999]);
        demand_service(&server);
        other.ask("x\r\n", "STORED\r\n");
        drop(clients);
    }

    #[test]
    fn too_large_items_take_no_memory() {
        const LENGTH: usize = 100_000_000;
        let server = Server::start(&["-t", "2", "-m", "8"]);
        demand_service(&server);
        let [before, _] = server.memory();
        let mut client = server.connect();
        client.send(format!("set key 0 0 {LENGTH}\r\n"));
        let part = vec![b'x'; 1_000_000];
        for _ in 0..LENGTH / part.len() {
            client.send(&part);
        }
        client.ask("\r\nmn\r\n", format!("{TOO_LARGE}MN\r\n"));
        let [_, most] = server.memory();
        assert!(most < before + SLACK, "{before} bytes before, then {most}");
    }

    /// Sends as long as the server takes something.
    fn send_all_it_takes(client: &mut Client, bytes: &[u8]) -> usize {
        client.0.set_nonblocking(true).unwrap();
        let (mut sent, mut last) = (0, Instant::now());
        while last.elapsed() < Duration::from_millis(300) && sent < bytes.len() {
            match client.0.write(&bytes[sent..]) {
                Ok(n) => {
                    sent += n;
                    last = Instant::now();
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    std::thread::sleep(Duration::from_millis(5));
                }
                Err(error) => panic!("{error}"),
            }
        }
        client.0.set_nonblocking(false).unwrap();
        sent
    }

    #[test]
    #[cfg_attr(
        any(corelay_tsan, corelay_asan),
        ignore = "the sanitizer keeps memory that was freed"
    )]
    fn answers_that_nobody_reads_take_bounded_memory() {
        const VALUE: usize = 500_000;
        const CLIENTS: usize = 8;
        for threads in ["1", "3"] {
            let server = Server::start(&["-t", threads, "-m", "64"]);
            let mut client = server.connect();
            for key in 0..8 {
                client.send(format!("set key{key} 0 0 {VALUE}\r\n"));
                client.send(vec![b'x'; VALUE]);
                client.ask("\r\n", "STORED\r\n");
            }
            demand_service(&server);
            let [before, _] = server.memory();
            // Some hundreds of gigabytes would be asked for: of all shards, of one, and in one line.
            let all = "get key0 key1 key2 key3 key4 key5 key6 key7\r\n";
            let each: String = (0..8).map(|n| format!("get key{n}\r\n")).collect();
            let commands = [
                all.repeat(20_000),
                each.repeat(20_000),
                "get key0\r\n".repeat(100_000),
                format!("get{}\r\n", " key0".repeat(200_000)),
            ];
            for round in 0..3 {
                let mut clients: Vec<_> = (0..CLIENTS).map(|_| server.connect()).collect();
                for (n, client) in clients.iter_mut().enumerate() {
                    send_all_it_takes(client, commands[n % 4].as_bytes());
                    demand_service(&server);
                }
                // For each: the answers of one batch of each shard, and what is being sent.
                let bound = CLIENTS * 5 * (VALUE + (256 << 10)) + SLACK;
                let [_, most] = server.memory();
                assert!(
                    most < before + bound,
                    "{before} bytes before, then {most} in round {round}"
                );
            }
            demand_service(&server);
        }
    }

    /// One line with 64 MB of keys, and then the same with a client that reads late.
    #[test]
    #[cfg_attr(
        any(corelay_tsan, corelay_asan),
        ignore = "the sanitizer keeps memory that was freed"
    )]
    fn a_line_of_64_megabytes_of_keys_takes_bounded_memory() {
        const LINE: usize = 64 << 20;
        const KEY: usize = 120;
        for threads in ["1", "3"] {
            let server = Server::start(&["-t", threads, "-m", "8"]);
            // One key in a thousand is there.
            let key = |n: usize| format!("{n:0KEY$}");
            let mut client = server.connect();
            client.ask(format!("set {} 0 0 2\r\nhi\r\n", key(7)), "STORED\r\n");
            let keys: String = (0..1000).map(|n| format!(" {}", key(n))).collect();
            let times = LINE / keys.len();
            let answer = format!("VALUE {} 0 2\r\nhi\r\n", key(7)).repeat(times) + "END\r\nMN\r\n";
            let [before, _] = server.memory();
            for is_late in [false, true] {
                let mut client = server.connect();
                let mut reader = Client(client.0.try_clone().unwrap());
                std::thread::scope(|scope| {
                    scope.spawn(|| {
                        if is_late {
                            std::thread::sleep(Duration::from_millis(300));
                        }
                        reader.demand(&answer);
                    });
                    client.send("get");
                    for _ in 0..times {
                        client.send(&keys);
                    }
                    client.send("\r\nmn\r\n");
                    demand_service(&server);
                });
            }
            let [_, most] = server.memory();
            assert!(most < before + SLACK, "{before} bytes before, then {most}");
        }
    }

    #[test]
    fn clients_that_go_in_the_middle_leave_nothing_behind() {
        const MOST: usize = 60;
        let server = Server::start(&["-t", "3", "-m", "64", "-c", &MOST.to_string()]);
        let mut client = server.connect();
        client.send("set key 0 0 900000\r\n");
        client.send(vec![b'x'; 900_000]);
        client.ask("\r\n", "STORED\r\n");
        drop(client);
        let mut files = 0;
        support::wait_until("the first connections are closed", || {
            let before = files;
            files = server.files();
            before == files
        });
        for round in 0..20 {
            let mut clients: Vec<_> = (0..MOST / 2).map(|_| server.connect()).collect();
            for (n, client) in clients.iter_mut().enumerate() {
                let command = match n % 5 {
                    0 => "get key key key key key key key key key key\r\n".repeat(50),
                    1 => "get key\r\n".repeat(50),
                    2 => "set key2 0 0 900000\r\nxx".to_owned(),
                    3 => "get key other".to_owned(),
                    _ => "get other\r\n".repeat(500),
                };
                // Whether it is refused for those of the last round does not matter.
                client.try_send(command.as_bytes());
                if round % 2 == 0 {
                    let _ = client.0.shutdown(Shutdown::Write);
                }
            }
            // What they have not read makes it a reset.
        }
        support::wait_until("all connections are closed", || server.files() <= files);
        // All that may be there can be there again.
        let mut clients: Vec<_> = (0..MOST).map(|_| server.connect()).collect();
        for client in &mut clients {
            client.ask("mn\r\n", "MN\r\n");
        }
    }

    #[test]
    fn a_full_file_table_neither_spins_nor_ends_the_service() {
        for threads in ["1", "3"] {
            let server = Server::start_with_limit("-n 40", &["-t", threads]);
            // Linux connects them before the server accepts them.
            let mut waiting: Vec<_> = (0..100).map(|_| server.connect()).collect();
            for client in &mut waiting {
                client.send("mn\r\n");
                client.0.set_nonblocking(true).unwrap();
            }
            let (mut served, mut last) = (Vec::new(), Instant::now());
            while served.is_empty() || last.elapsed() < Duration::from_millis(500) {
                assert!(last.elapsed() < HANG, "no connection is served");
                let before = waiting.len();
                serve(&mut waiting, &mut served);
                if waiting.len() < before {
                    last = Instant::now();
                }
                std::thread::sleep(Duration::from_millis(5));
            }
            assert!(!waiting.is_empty(), "no connection waits");
            let (begin, cpu) = (Instant::now(), server.cpu_time());
            std::thread::sleep(Duration::from_secs(1));
            let (wall, cpu) = (begin.elapsed(), server.cpu_time() - cpu);
            assert!(cpu < wall / 3, "{cpu:?} of CPU time in {wall:?}");
            for client in &mut served {
                client.0.set_nonblocking(false).unwrap();
                client.ask("mn\r\n", "MN\r\n");
            }
            // Those that go make room.
            support::wait_until("all connections are served", || {
                served.clear();
                serve(&mut waiting, &mut served);
                waiting.is_empty()
            });
            drop(served);
            demand_service(&server);
        }
    }

    /// The server raises its limit of files to what `-c` needs, as far as the system allows.
    #[test]
    fn as_many_clients_as_allowed_find_files() {
        let server = Server::start_with_limit("-Sn 64", &["-t", "2", "-c", "210"]);
        let mut clients: Vec<_> = (0..200).map(|_| server.connect()).collect();
        for client in &mut clients {
            client.ask("mn\r\n", "MN\r\n");
        }
    }

    #[test]
    fn a_file_table_without_room_for_the_threads_is_an_error() {
        for files in [8, 10, 12, 14] {
            let port = Port::take();
            let number = port.number.to_string();
            let mut command = Command::new("sh");
            let script = format!("ulimit -n {files}; exec \"$@\"");
            command.args(["-c", &script, "sh", PROGRAM, "-t", "4", "-p", &number]);
            let output = run_to_end(command);
            let said = String::from_utf8_lossy(&output.stderr);
            assert_eq!(output.status.code(), Some(1), "{files} files: {said}");
            assert!(said.contains("open files"), "{said}");
            assert_eq!(said.lines().count(), 1, "{said}");
        }
    }

    /// Moves the connections that have been answered.
    fn serve(waiting: &mut Vec<Client>, served: &mut Vec<Client>) {
        for mut client in std::mem::take(waiting) {
            let mut answer = [0; 4];
            match client.0.read(&mut answer) {
                Ok(4) if answer == *b"MN\r\n" => served.push(client),
                Err(error) if error.kind() == ErrorKind::WouldBlock => waiting.push(client),
                other => panic!("{other:?} {}", shown(&answer)),
            }
        }
    }
}
