//! The program as an operator uses it: its end, its sockets, its flags, and what it tells.

mod support;

use std::io::{BufReader, Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;
use support::{HANG, Lines, PROGRAM, Port, Server, wait_until};

/// The program with arguments.
fn program(arguments: &[&str]) -> Command {
    let mut command = Command::new(PROGRAM);
    command.args(arguments).stdin(Stdio::null());
    command
}

/// A process that ends with this.
struct Killed(Child);

impl Drop for Killed {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// All that has come is answered, idle clients do not keep the server, and nobody is let in any more.
#[test]
#[cfg_attr(
    corelay_tsan,
    ignore = "the sanitizer keeps signals from sleeping threads"
)]
fn sigterm_answers_what_has_come_and_ends() {
    for threads in ["1", "3"] {
        let mut server = Server::start(&["-t", threads]);
        let mut idle = server.connect_lines();
        assert_eq!(idle.ask("mn"), "MN");
        let mut within = server.connect_lines();
        within.send("set late 0 0 4\r\nab");
        let mut busy = server.connect_lines();
        let sets: String = (0..2000)
            .map(|n| format!("set key{n} 0 0 5\r\n{n:05}\r\nget key{n}\r\n"))
            .collect();
        busy.send(&sets);
        // From the first answer on the server has the connection, and bytes of it.
        assert_eq!(busy.line(), "STORED");
        server.terminate();
        let rest = busy.rest();
        let answers = String::from_utf8(rest).unwrap();
        let stored = answers.matches("STORED\r\n").count() + 1;
        assert_eq!((stored, answers.matches("END\r\n").count()), (2000, 2000));
        assert_eq!(idle.rest(), b"");
        wait_until("the port's end", || {
            TcpStream::connect(("127.0.0.1", server.address.port())).is_err()
        });
        within.send("cd\r\n");
        assert_eq!(within.line(), "STORED");
        assert_eq!(within.rest(), b"");
        assert_eq!(server.ended(), Some(0));
    }
}

/// Clients that neither send nor read do not keep the server for ever.
#[test]
#[cfg_attr(
    corelay_tsan,
    ignore = "the sanitizer keeps signals from sleeping threads"
)]
fn sigterm_does_not_wait_for_ever() {
    let mut server = Server::start(&["-t", "2"]);
    let mut client = server.connect_lines();
    client.send("set never 0 0 4\r\nab");
    assert_eq!(server.connect_lines().ask("mn"), "MN");
    server.terminate();
    assert_eq!(server.ended(), Some(0));
}

#[test]
fn a_client_ends_the_server_if_the_flag_allows_it() {
    let server = Server::start(&["-t", "2"]);
    assert_eq!(
        server.connect_lines().ask("shutdown"),
        "ERROR: shutdown not enabled"
    );
    let mut server = Server::start(&["-t", "2", "-A"]);
    server.connect_lines().send("shutdown\r\n");
    assert_eq!(server.ended(), Some(0));
}

#[test]
fn several_addresses_are_listened_on() {
    let other = Port::take();
    let own = format!("127.0.0.3:{}", other.number);
    let server = Server::start(&["-t", "2", "-l", "127.0.0.1,127.0.0.2", "-l", &own]);
    let port = server.address.port();
    let mut client = server.connect_lines();
    assert_eq!(client.ask("set a 0 0 1\r\nx"), "STORED");
    let addresses = [
        format!("127.0.0.1:{port}"),
        format!("127.0.0.2:{port}"),
        own,
    ];
    for (n, address) in addresses.iter().enumerate() {
        let mut client = Lines(BufReader::new(TcpStream::connect(address).unwrap()));
        assert_eq!(client.lines("get a"), ["VALUE a 0 1", "x"]);
        let told = client.statistic("stats conns", &format!("listen{n}:addr"));
        assert_eq!(told, format!("tcp:{address}"));
    }
    let inter = client.statistic("stats settings", "inter");
    assert_eq!(inter, "127.0.0.1,127.0.0.2,127.0.0.3");
}

#[test]
fn a_unix_socket_takes_the_place_of_the_port() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("socket");
    let name = path.to_str().unwrap();
    // What a server that was killed has left is no obstacle.
    drop(std::os::unix::net::UnixListener::bind(&path).unwrap());
    let port = Port::take().number;
    let arguments = [
        "-t",
        "2",
        "-s",
        name,
        "-a",
        "750",
        "-A",
        "-p",
        &port.to_string(),
    ];
    let mut child = Killed(program(&arguments).spawn().unwrap());
    wait_until("the start", || UnixStream::connect(&path).is_ok());
    let mode = std::fs::metadata(&path).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o750);
    let mut clients: Vec<_> = (0..8)
        .map(|_| Lines(BufReader::new(UnixStream::connect(&path).unwrap())))
        .collect();
    assert_eq!(clients[0].ask("set a 0 0 1\r\nx"), "STORED");
    for client in &mut clients {
        assert_eq!(client.lines("get a"), ["VALUE a 0 1", "x"]);
    }
    assert!(TcpStream::connect(("127.0.0.1", port)).is_err());
    let client = &mut clients[0];
    assert_eq!(client.statistic("stats settings", "tcpport"), "0");
    assert_eq!(client.statistic("stats settings", "domain_socket"), name);
    assert_eq!(client.statistic("stats settings", "inter"), "NULL");
    assert_eq!(client.statistic("stats conns", "listen0:addr"), "unix");
    // A second server does not take it away.
    let second = program(&["-s", name]).output().unwrap();
    let error = String::from_utf8(second.stderr).unwrap();
    assert!(error.contains("in use") && error.contains(name), "{error}");
    assert_eq!(second.status.code(), Some(1));
    clients[0].send("shutdown\r\n");
    assert_eq!(child.0.wait().unwrap().code(), Some(0));
    assert!(!path.exists());
}

/// A certificate for `localhost` with its key, as files, and the certificate.
fn certificate(folder: &std::path::Path) -> (String, rustls::pki_types::CertificateDer<'static>) {
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let [chain, key] = ["chain.pem", "key.pem"].map(|name| folder.join(name));
    std::fs::write(&chain, made.cert.pem()).unwrap();
    std::fs::write(&key, made.signing_key.serialize_pem()).unwrap();
    let options = format!(
        "ssl_chain_cert={},ssl_key={}",
        chain.display(),
        key.display()
    );
    (options, made.cert.der().clone())
}

type Tls = rustls::StreamOwned<rustls::ClientConnection, TcpStream>;

/// Connects a client that trusts only this certificate.
fn encrypted(port: u16, certificate: &rustls::pki_types::CertificateDer<'static>) -> Lines<Tls> {
    let mut roots = rustls::RootCertStore::empty();
    roots.add(certificate.clone()).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    let name = "localhost".try_into().unwrap();
    let session = rustls::ClientConnection::new(Arc::new(config), name).unwrap();
    let socket = TcpStream::connect(("127.0.0.1", port)).unwrap();
    socket.set_read_timeout(Some(HANG)).unwrap();
    Lines(BufReader::new(rustls::StreamOwned::new(session, socket)))
}

#[test]
#[cfg_attr(
    corelay_tsan,
    ignore = "the sanitizer keeps signals from sleeping threads"
)]
fn connections_are_encrypted() {
    let folder = tempfile::tempdir().unwrap();
    let (options, first) = certificate(folder.path());
    let mut server = Server::start(&["-t", "2", "-m", "256", "-Z", "-o", &options]);
    let mut client = encrypted(server.address.port(), &first);
    // Many records in both directions, through sockets that take less at a time.
    let value = "0123456789abcdef".repeat(60_000);
    for key in 0..8 {
        let set = format!("set key{key} 0 0 {}\r\n{value}", value.len());
        assert_eq!(client.ask(&set), "STORED");
    }
    client.send("get key0 key1 key2 key3 key4 key5 key6 key7\r\n");
    let mut answer = Vec::new();
    for key in 0..8 {
        assert_eq!(client.line(), format!("VALUE key{key} 0 {}", value.len()));
        answer.resize(value.len() + 2, 0);
        client.0.read_exact(&mut answer).unwrap();
        assert!(answer.starts_with(value.as_bytes()));
    }
    assert_eq!(client.line(), "END");
    assert_eq!(client.statistic("stats settings", "ssl_enabled"), "yes");
    // Who does not encrypt is told nothing.
    let mut plain = server.connect_lines();
    plain.send("version\r\n");
    let mut told = Vec::new();
    let _ = plain.0.read_to_end(&mut told);
    assert!(!told.starts_with(b"VERSION"), "{}", told.escape_ascii());
    // A new certificate is for new connections.
    let (_, second) = certificate(folder.path());
    assert_eq!(client.ask("refresh_certs"), "OK");
    assert_eq!(encrypted(server.address.port(), &second).ask("mn"), "MN");
    std::fs::write(folder.path().join("key.pem"), "no key").unwrap();
    let answer = client.ask("refresh_certs");
    assert!(answer.starts_with("SERVER_ERROR"), "{answer}");
    assert_eq!(encrypted(server.address.port(), &second).ask("mn"), "MN");
    server.terminate();
    assert_eq!(client.rest(), b"");
    assert_eq!(server.ended(), Some(0));
}

#[test]
fn an_idle_client_is_let_go() {
    let server = Server::start(&["-t", "1", "-o", "idle_timeout=3"]);
    let (mut idle, mut busy) = (server.connect_lines(), server.connect_lines());
    assert_eq!(idle.ask("mn"), "MN");
    let mut has_gone = false;
    idle.0
        .get_mut()
        .set_read_timeout(Some(Duration::from_millis(50)))
        .unwrap();
    wait_until("the idle client's end", || {
        assert_eq!(busy.ask("mn"), "MN");
        has_gone |= matches!(idle.0.get_mut().read(&mut [0; 8]), Ok(0));
        has_gone
    });
    assert_eq!(busy.statistic("stats", "idle_kicks"), "1");
}

/// A client whose commands wait for their turn is not idle, though the server reads nothing from it.
#[test]
fn a_client_whose_work_is_put_off_is_not_idle() {
    const REQUESTS: usize = 6_000;
    let server = Server::start(&["-t", "1", "-o", "idle_timeout=1"]);
    let mut client = server.connect();
    client.send("set large 0 0 1000000\r\n");
    client.send(vec![b'x'; 1_000_000]);
    client.ask("\r\n", "STORED\r\n");
    // Some seconds of work.
    client.ask("md large I\r\n".repeat(REQUESTS), "HD\r\n".repeat(REQUESTS));
    let mut lines = server.connect_lines();
    assert_eq!(lines.statistic("stats", "idle_kicks"), "0");
}

/// A client that takes a long answer slowly is not idle.
#[test]
fn a_slow_reader_is_not_idle() {
    let server = Server::start(&["-t", "1", "-I", "64m", "-m", "256", "-o", "idle_timeout=1"]);
    let mut client = server.connect_lines();
    let value = vec![b'x'; 16 << 20];
    client.send(format!("set large 0 0 {}\r\n", value.len()));
    client.send(&value);
    assert_eq!(client.ask(""), "STORED");
    client.send("get large\r\n");
    assert_eq!(client.line(), format!("VALUE large 0 {}", value.len()));
    let mut part = vec![0; value.len() / 16];
    for _ in 0..16 {
        std::thread::sleep(Duration::from_millis(250));
        client.0.read_exact(&mut part).unwrap();
    }
    assert_eq!(
        (client.line().as_str(), client.line().as_str()),
        ("", "END")
    );
}

/// Errors are told before the terminal is left.
#[test]
fn a_daemon_that_cannot_start_says_so() {
    for (arguments, error) in [
        (
            &["-d", "-p", "0", "-P", "/nonexistent/number"][..],
            "/nonexistent/number",
        ),
        (
            &["-d", "-p", "0", "-m", "64", "-Y", "/nonexistent"],
            "/nonexistent",
        ),
    ] {
        let output = program(arguments).output().unwrap();
        let told = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(1), "{told}");
        assert!(told.contains(error), "{told}");
    }
    if nix::unistd::geteuid().is_root() {
        let output = program(&["-d", "-p", "0", "-u", "no such user"]).output();
        assert_eq!(output.unwrap().status.code(), Some(1));
    }
}

/// Whoever is started as root leaves all of root's groups behind, and its Unix socket is its own.
#[cfg(target_os = "linux")]
#[test]
fn a_user_has_no_groups_of_roots() {
    let folder = tempfile::tempdir().unwrap();
    let is_there = nix::unistd::User::from_name("nobody").is_ok_and(|user| user.is_some());
    if !nix::unistd::geteuid().is_root() || !is_there {
        return;
    }
    std::fs::set_permissions(folder.path(), std::fs::Permissions::from_mode(0o777)).unwrap();
    let path = folder.path().join("socket");
    // As a shell of root's has it.
    let mut command = Command::new("setpriv");
    command.args(["--groups=0", PROGRAM, "-u", "nobody", "-A", "-s"]);
    let Ok(child) = command.arg(&path).spawn() else {
        return; // there is no such program
    };
    let mut child = Killed(child);
    wait_until("the start", || UnixStream::connect(&path).is_ok());
    let nobody = nix::unistd::User::from_name("nobody").unwrap().unwrap();
    let status = || std::fs::read_to_string(format!("/proc/{}/status", child.0.id())).unwrap();
    let line = |name: &str| {
        let status = status();
        let line = status.lines().find_map(|line| line.strip_prefix(name));
        line.unwrap()
            .split_whitespace()
            .map(str::to_owned)
            .collect::<Vec<_>>()
    };
    wait_until("the change of the user", || {
        line("Uid:") == vec![nobody.uid.to_string(); 4]
    });
    assert!(!line("Groups:").contains(&"0".to_owned()), "{}", status());
    use std::os::unix::fs::MetadataExt;
    assert_eq!(std::fs::metadata(&path).unwrap().uid(), nobody.uid.as_raw());
    let mut client = Lines(BufReader::new(UnixStream::connect(&path).unwrap()));
    client.send("shutdown\r\n");
    assert_eq!(child.0.wait().unwrap().code(), Some(0));
}

#[test]
fn prometheus_gets_the_statistics() {
    let port = Port::take();
    let at = format!("127.0.0.1:{}", port.number);
    let server = Server::start(&["-t", "2", "--metrics", &at]);
    let mut client = server.connect_lines();
    assert_eq!(client.ask("set \"a\" 0 0 1\r\nx"), "STORED");
    for _ in 0..2000 {
        client.lines("get \"a\"");
    }
    let get = |path: &str| {
        let mut stream = TcpStream::connect(&at).unwrap();
        stream.set_read_timeout(Some(HANG)).unwrap();
        write!(stream, "GET {path} HTTP/1.1\r\nHost: here\r\n\r\n").unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        let length = format!("Content-Length: {}", body.len());
        assert!(head.contains(&length), "{head}");
        (head.lines().next().unwrap().to_owned(), body.to_owned())
    };
    assert_eq!(get("/").0, "HTTP/1.1 404 Not Found");
    let mut page = String::new();
    wait_until("the hot key", || {
        page = get("/metrics").1;
        page.contains("cached_hot_key_requests_per_second{shard=")
    });
    let wanted = "cached_commands_total{command=\"get\",status=\"hit\"} 2000";
    assert!(page.lines().any(|line| line == wanted), "{page}");
    let mut names = std::collections::HashSet::new();
    for line in page.lines() {
        if let Some(kind) = line.strip_prefix("# TYPE ") {
            assert!(names.insert(kind.to_owned()), "{kind} is there twice");
        } else if !line.starts_with("# HELP cached_") {
            let (name, number) = line.rsplit_once(' ').unwrap();
            assert!(number.parse::<u64>().is_ok(), "{line}");
            let name = name.split('{').next().unwrap();
            let is_declared = names
                .iter()
                .any(|kind| kind.split(' ').next() == Some(name));
            assert!(is_declared, "{line}");
        }
    }
    // Somebody who asks too much does not keep others from asking.
    let mut slow = TcpStream::connect(&at).unwrap();
    let _ = slow.write_all(&vec![b'x'; 20_000]);
    assert_eq!(get("/metrics").0, "HTTP/1.1 200 OK");
}

#[test]
fn statistics_tell_of_connections_and_shards() {
    let server = Server::start(&["-t", "2"]);
    let mut clients: Vec<_> = (0..4).map(|_| server.connect_lines()).collect();
    for client in &mut clients {
        assert_eq!(client.ask("mn"), "MN");
    }
    clients[1].send("set half 0 0 100\r\nabc");
    let peer = clients[1].0.get_ref().local_addr().unwrap();
    let client = &mut clients[0];
    wait_until("the value's beginning", || {
        let lines = client.lines("stats conns");
        let addr = format!(":addr tcp:{peer}");
        let number = lines.iter().find_map(|line| line.strip_suffix(&addr));
        let state = format!("{}:state conn_nread", number.unwrap());
        lines.contains(&state)
    });
    assert_eq!(client.statistic("stats", "curr_connections"), "4");
    for n in 0..100 {
        assert_eq!(client.ask(&format!("set key{n} 0 0 1\r\nx")), "STORED");
    }
    let of = |lines: &[String], name: &str| -> u64 {
        let number = |n| {
            let prefix = format!("STAT shard:{n}:{name} ");
            let value = lines.iter().find_map(|line| line.strip_prefix(&prefix));
            value.unwrap().parse::<u64>().unwrap()
        };
        number(0) + number(1)
    };
    let lines = client.lines("stats shards");
    assert_eq!(
        (of(&lines, "requests"), of(&lines, "curr_items")),
        (100, 100)
    );
    let delegated = of(&lines, "delegated");
    assert!((1..100).contains(&delegated), "{lines:?}");
}

/// Statistics count what all commands before them have done, whichever shard did it.
#[test]
fn statistics_wait_for_the_commands_before_them() {
    let server = Server::start(&["-t", "3"]);
    let mut client = server.connect_lines();
    for round in 1..=50 {
        let mut text = String::new();
        for n in 0..20 {
            text += &format!("set key{n} 0 0 1\r\nx\r\n");
        }
        client.send(text + "stats\r\nmn\r\n");
        let mut sets = 0;
        loop {
            let line = client.line();
            if let Some(n) = line.strip_prefix("STAT cmd_set ") {
                sets = n.parse().unwrap();
            }
            if line == "MN" {
                break;
            }
        }
        assert_eq!(sets, 20 * round);
    }
}

/// A client whose one packet is seconds of work lets others have their turn meanwhile.
#[test]
fn a_client_with_much_work_lets_others_have_their_turn() {
    const REQUESTS: usize = 4_000;
    for threads in ["1", "2"] {
        let server = Server::start(&["-t", threads]);
        let (mut busy, mut other) = (server.connect(), server.connect());
        busy.send("set large 0 0 1000000\r\n");
        busy.send(vec![b'x'; 1_000_000]);
        busy.ask("\r\n", "STORED\r\n");
        let is_served = (0..10).any(|_| {
            busy.send("md large I\r\n".repeat(REQUESTS));
            other.ask("mn\r\n", "MN\r\n");
            // All of the answers are 16 kB.
            let mut answers = vec![0; 4 * REQUESTS];
            busy.0.set_nonblocking(true).unwrap();
            let n = busy.0.read(&mut answers).unwrap_or(0);
            busy.0.set_nonblocking(false).unwrap();
            busy.demand(&"HD\r\n".repeat(REQUESTS)[n..]);
            n < answers.len()
        });
        assert!(is_served, "the other client waited for all of it");
    }
}

/// The memory of removed items goes back to the system, though nobody asks for anything.
#[test]
#[cfg_attr(
    any(corelay_tsan, corelay_asan),
    ignore = "the sanitizer keeps memory that was freed"
)]
fn the_memory_of_a_flushed_server_goes_back() {
    let server = Server::start(&["-t", "3", "-m", "128"]);
    let mut client = server.connect_lines();
    let [before, _] = server.memory();
    let value = "x".repeat(1_000);
    for n in 0..60_000 {
        client.send(format!("set key{n} 0 0 1000 noreply\r\n{value}\r\n"));
    }
    assert_eq!(client.ask("mn"), "MN");
    let [full, _] = server.memory();
    assert!(full > before + (50 << 20), "{before} bytes, then {full}");
    assert_eq!(client.ask("flush_all"), "OK");
    drop(client);
    wait_until("the memory has gone back", || {
        server.memory()[0] < before + (20 << 20)
    });
}

/// A full server that evicts nothing, a client of it, and the number of its items: `key0` and so on.
fn full_server() -> (Server, Lines, usize) {
    let server = Server::start(&["-t", "1", "-m", "2", "-M"]);
    let mut client = server.connect_lines();
    let mut items = 0;
    while client.ask(&format!("set key{items} 0 0 10\r\n0123456789")) == "STORED" {
        items += 1;
    }
    (server, client, items)
}

/// An item gets an expiry although a full server that evicts nothing has no room for more.
#[test]
fn items_of_a_full_server_can_be_touched() {
    let (_server, mut client, items) = full_server();
    for n in 0..items {
        let touched = match n % 3 {
            0 => client.ask(&format!("touch key{n} 1000")),
            1 => client.ask(&format!("mg key{n} T1000")),
            _ => client.lines(&format!("gat 1000 key{n}"))[0].clone(),
        };
        assert!(
            ["TOUCHED", "HD"].contains(&&*touched) || touched.starts_with("VALUE"),
            "{touched}"
        );
        let told = client.ask(&format!("mg key{n} t"));
        assert!(told.starts_with("HD t9") || told == "HD t1000", "{told}");
    }
}

/// An item that should be marked, where there is no room for the mark, goes instead of being served as it
/// was.
#[test]
fn what_is_invalidated_without_memory_is_not_fresh() {
    let (_server, mut client, items) = full_server();
    let mut gone = 0;
    for n in 0..items {
        assert_eq!(client.ask(&format!("md key{n} I")), "HD");
        let told = client.ask(&format!("mg key{n} s"));
        assert!(told == "EN" || told.contains(" X"), "{n}: {told}");
        gone += usize::from(told == "EN");
    }
    assert!(gone > 0, "there was room for all marks");
}

/// Items go when they expire, though nobody asks for them.
#[test]
fn expired_items_give_their_memory_back() {
    let server = Server::start(&["-t", "2"]);
    let mut client = server.connect_lines();
    for n in 0..500 {
        assert_eq!(client.ask(&format!("set key{n} 0 1 1\r\nx")), "STORED");
    }
    assert_eq!(client.ask("set stays 0 0 1\r\nx"), "STORED");
    wait_until("the items' end", || {
        client.statistic("stats", "curr_items") == "1"
    });
    assert_eq!(client.statistic("stats", "reclaimed"), "500");
    assert_eq!(client.statistic("stats", "expired_unfetched"), "500");
}

#[test]
#[cfg_attr(
    corelay_tsan,
    ignore = "the sanitizer keeps signals from sleeping threads"
)]
fn a_daemon_writes_its_number_and_takes_it_back() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("number");
    let port = Port::take();
    let (name, port) = (file.to_str().unwrap(), port.number.to_string());
    let status = program(&["-d", "-t", "2", "-P", name, "-p", &port]).status();
    assert_eq!(status.unwrap().code(), Some(0));
    let mut number = String::new();
    wait_until("the file", || {
        number = std::fs::read_to_string(&file).unwrap_or_default();
        number.ends_with('\n')
    });
    let daemon = nix::unistd::Pid::from_raw(number.trim().parse().unwrap());
    wait_until("the start", || {
        TcpStream::connect(format!("127.0.0.1:{port}")).is_ok()
    });
    nix::sys::signal::kill(daemon, nix::sys::signal::Signal::SIGTERM).unwrap();
    wait_until("the file's end", || !file.exists());
    wait_until("the process's end", || {
        nix::sys::signal::kill(daemon, None).is_err()
            // In a container nobody may be there to ask for its exit code.
            || std::fs::read_to_string(format!("/proc/{daemon}/stat"))
                .is_ok_and(|stat| stat.contains(") Z "))
    });
}

#[test]
fn bad_flags_get_one_clear_error() {
    let folder = tempfile::tempdir().unwrap();
    let users = folder.path().join("users");
    std::fs::write(&users, "ann:red\nbob\n").unwrap();
    let users = users.to_str().unwrap();
    let missing = folder.path().join("missing");
    let missing = missing.to_str().unwrap();
    let pair = format!("ssl_chain_cert={missing},ssl_key={missing}");
    for (arguments, code, error) in [
        (
            &["-Z"][..],
            1,
            "-Z needs -o ssl_chain_cert=FILE,ssl_key=FILE",
        ),
        (&["-Z", "-o", &pair], 1, missing),
        (&["-o", "ssl_key=x"], 1, "are for -Z"),
        (&["-o", "bogus=1"], 2, "there is no option `bogus`"),
        (&["-o", "idle_timeout=x"], 2, "idle_timeout=SECONDS"),
        (&["-Y", missing], 1, missing),
        (&["-Y", users], 1, "line 2: `name:password` is expected"),
        (&["-m", "0"], 2, "--memory-limit"),
        (&["-t", "0"], 2, "--threads"),
        (&["-c", "0"], 2, "--conn-limit"),
        (&["-I", "5g"], 2, "1k to 1024m"),
        (&["-m", "8", "-I", "5m"], 1, "half of -m"),
        (&["-a", "999"], 2, "in octal"),
        (&["-U", "11211"], 2, "--udp-port"),
        (&["-s", "/nonexistent/socket"], 1, "/nonexistent/socket"),
        (
            &["-P", "/nonexistent/number", "-p", "0"],
            1,
            "/nonexistent/number",
        ),
        (&["-l", "192.0.2.1"], 1, "192.0.2.1"),
        (&["-l", "127.0.0.1:x"], 1, "-l 127.0.0.1:x: after the colon"),
        (&["-l", "127.0.0.1,127.0.0.1"], 1, "in use"),
        (&["-l", "127.0.0.1:0,127.0.0.1:65536"], 1, "127.0.0.1:65536"),
        (
            &["-l", "no.such.name.invalid"],
            1,
            "-l no.such.name.invalid",
        ),
        (&["--metrics", "192.0.2.1:1", "-p", "0"], 1, "192.0.2.1:1"),
        (&["--slow", "0"], 2, "--slow"),
        (&["stray"], 2, "stray"),
    ] {
        let output = program(arguments).output().unwrap();
        let told = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(code), "{arguments:?}: {told}");
        assert!(told.contains(error), "{arguments:?}: {told}");
        if code == 1 {
            assert_eq!(told.lines().count(), 1, "{told}");
        }
    }
}
