//! Threads count words in one map, which two trustees share: no lock around it, and none inside.
//!
//! `cargo run -p corelay --example sharded_map`

use corelay::{StartError, Trustees, structures::sharded::ShardedMap};

fn main() -> Result<(), StartError> {
    let trustees = Trustees::dedicated(2).start()?;
    let words = ShardedMap::new(&trustees); // a shard for each trustee
    std::thread::scope(|s| {
        for text in ["to be or not to be", "to do is to be", "do be do be do"] {
            let words = words.clone(); // a handle to the same map
            s.spawn(move || {
                for word in text.split(' ') {
                    words.update_or_insert(word, |n| *n += 1, 1); // atomic on its key
                }
            });
        }
    });
    words.for_each(|word, n| println!("{n} × {word}"));
    let counts = words.get_many(["be", "do", "to"]); // asks both shards, waits once
    assert_eq!(counts, [Some(5), Some(4), Some(4)]);
    Ok(())
}
