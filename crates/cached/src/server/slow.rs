//! Slow requests.

use super::service::Client;
use std::io::Write;
use std::time::{Duration, Instant};

/// The bytes of a slow request that are told.
const TOLD: usize = 80;

/// The time of the requests of one read, from then until their answers are written.
pub(crate) struct Watch {
    began: Instant,
    /// The beginning of what was read.
    what: Vec<u8>,
}

impl Watch {
    /// Begins when `input` has been read.
    pub(crate) fn begin(input: &[u8]) -> Box<Self> {
        let line = input.split(|&byte| byte == b'\n').next().unwrap_or(input);
        Box::new(Self {
            began: Instant::now(),
            what: line[..line.len().min(TOLD)].trim_ascii_end().to_vec(),
        })
    }

    /// Writes a line on standard error if that took longer than `limit`. Returns whether it did.
    pub(crate) fn end(&self, limit: Duration, client: &Client) -> bool {
        let time = self.began.elapsed();
        let is_slow = time > limit;
        if is_slow {
            // An error has nobody to be told to.
            let _ = writeln!(
                std::io::stderr(),
                "corelay-cached: slow: {time:?} for \"{}\" and what came with it, {}",
                self.what.escape_ascii(),
                client.peer
            );
        }
        is_slow
    }
}
