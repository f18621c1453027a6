//! The program `corelay-cached`.

use corelay_cached::server::{Settings, serve};

fn main() -> std::io::Result<()> {
    let number = |name: &str, usual: usize| {
        let mut args = std::env::args();
        let value = args.find(|arg| arg == name).and_then(|_| args.next());
        value.map_or(usual, |value| value.parse().expect("a number"))
    };
    serve(&Settings {
        address: ([127, 0, 0, 1], number("-p", 11211) as u16).into(),
        threads: number("-t", 4),
        memory: number("-m", 64) << 20,
        largest_item: 1 << 20,
        evicts: true,
    })
}
