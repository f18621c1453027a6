//! The first question to a server: whether it speaks the protocol at all.

use super::address::Address;
use super::connection::first_line;
use super::drive::{PATIENCE, unreachable};
use std::io::{ErrorKind, Read, Write};
use std::time::Instant;

/// Asks the server for its version.
///
/// # Errors
/// A sentence about the server.
pub(super) fn version(server: &Address) -> Result<String, String> {
    let mut stream = server.connect().map_err(|e| unreachable(server, &e))?;
    let system = |error: std::io::Error| match error.kind() {
        ErrorKind::WouldBlock | ErrorKind::TimedOut => silent(server),
        ErrorKind::ConnectionReset | ErrorKind::BrokenPipe => closed(server),
        _ => format!("{server}: the connection failed: {error}"),
    };
    stream.limit(PATIENCE).map_err(system)?;
    stream.write_all(b"version\r\n").map_err(system)?;
    let (mut said, mut buffer, since) = (Vec::new(), [0; 512], Instant::now());
    while !said.contains(&b'\n') && said.len() < 4096 {
        match stream.read(&mut buffer) {
            Ok(0) if said.is_empty() => return Err(closed(server)),
            Ok(0) => break,
            Ok(read) => said.extend_from_slice(&buffer[..read]),
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(system(error)),
        }
        if since.elapsed() > PATIENCE {
            return Err(silent(server));
        }
    }
    let line = first_line(&said);
    match line.strip_prefix("VERSION ") {
        Some(version) => Ok(version.to_owned()),
        None => Err(format!(
            "{server} answered `{line}` when asked for its version; it does not speak memcached's text \
             protocol"
        )),
    }
}

fn silent(server: &Address) -> String {
    format!(
        "{server} has not answered for {} s; it does not speak memcached's text protocol, or is stuck",
        PATIENCE.as_secs()
    )
}

fn closed(server: &Address) -> String {
    format!("{server} closed the connection when asked for its version")
}
