//! Ports for servers.

use socket2::{Domain, Socket, Type};
use std::io;
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::ops::Range;
use std::sync::atomic::{AtomicU32, Ordering};

/// The ports of servers: below those that Linux gives to clients.
const PORTS: Range<u16> = 20_000..32_000;

/// A port that nothing listens on. While this lives no other test takes it, in this process or in
/// another one: it has the UDP port of that number, which the server does not use.
pub(crate) struct Port {
    pub(crate) number: u16,
    _udp: UdpSocket,
}

impl Port {
    /// Takes another port at each call.
    pub(crate) fn take() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let first = std::process::id().wrapping_mul(331);
        let port = |_| {
            // Relaxed: the number only has to be unique.
            let nth = first.wrapping_add(NEXT.fetch_add(1, Ordering::Relaxed));
            let number = PORTS.start + (nth % PORTS.len() as u32) as u16;
            let _udp = UdpSocket::bind((Ipv4Addr::LOCALHOST, number)).ok()?;
            try_bind(number).ok()?;
            Some(Self { number, _udp })
        };
        let free = (0..PORTS.len()).find_map(port);
        free.expect("one of many ports is free")
    }
}

/// Sees whether anybody listens on a port. It does not listen itself: a process that another thread starts
/// meanwhile has the socket, too, until it runs its program, and would accept connections.
fn try_bind(number: u16) -> io::Result<()> {
    let socket = Socket::new(Domain::IPV4, Type::STREAM, None)?;
    socket.set_reuse_address(true)?;
    socket.bind(&SocketAddr::from((Ipv4Addr::LOCALHOST, number)).into())
}
