//! The end of a program that hangs or that nobody waits for any more.

use crate::messages::{Kind, fault};
use crate::table;
use std::process::abort;
use std::thread;
use std::time::Duration;

/// Time between two looks.
const LOOK: Duration = Duration::from_millis(100);
/// Looks without a returned call or a passed point after which the threads are said to hang. Looks are counted, and
/// not the time, so that a machine that sleeps is not taken for a table that hangs.
const LOOKS: u32 = 80;

/// Begins to watch.
pub fn begin(limit: Duration) {
    thread::spawn(move || {
        let (mut passed, mut looks, mut still) = (0, 0, 0);
        loop {
            thread::sleep(LOOK);
            looks += 1;
            if LOOK * looks > limit + Duration::from_secs(5) {
                abort();
            }
            let now = table::returned() + turns::passed();
            still = if now == passed { still + 1 } else { 0 };
            passed = now;
            if still == LOOKS {
                fault(
                    Kind::Hang,
                    "no call has returned for 8 s, and no thread has come to another lock operation",
                );
            }
        }
    });
}
