//! Sixty-four fibres of one thread share a table that a trustee owns. Each waits for its answers as
//! if it were a thread, and their requests travel together.

use corelay::Trustees;
use corelay::fibre::Cluster;
use std::collections::HashMap;

const FIBRES: u64 = 64;
const EACH: u64 = 100;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let trustees = Trustees::dedicated(1).start()?;
    let words = trustees.entrust(HashMap::new());

    // SAFETY: nothing waits inside a thread-local's initialiser or scope: the fibres format strings
    // and call the trustee.
    let fibres = unsafe { Cluster::start(1) }?;
    let all: Vec<_> = (0..FIBRES)
        .map(|fibre| {
            let words = words.clone();
            fibres.spawn(move || {
                let mut own = 0;
                for i in 0..EACH {
                    let word = format!("{}", (fibre + i) % 10);
                    // Borrows from the fibre's frame; the others run until the answer has come.
                    own += words.apply(|words| {
                        let count = words.entry(word.clone()).or_insert(0u64);
                        *count += 1;
                        u64::from(*count == 1)
                    });
                }
                own
            })
        })
        .collect();
    let mut first = 0;
    for fibre in all {
        first += fibre.join().expect("no fibre panics");
    }

    assert_eq!(first, 10, "each word was new to one fibre");
    let total: u64 = words.apply(|words| words.values().sum());
    assert_eq!(total, FIBRES * EACH);
    println!("{FIBRES} fibres have counted {total} words");
    Ok(())
}
