//! A Tokio service that counts its visitors by page. Tasks await the map, and never hold up a
//! worker of the runtime, as a mutex around a map would.
//!
//! `cargo run -p corelay --example sharded_map_tokio`

use corelay::structures::sharded::ShardedMap;
use corelay::{AsyncError, Trustees};
use std::error::Error;

/// Serves one request. Returns how often the page has been visited.
async fn visit(visits: ShardedMap<String, u64>, page: String) -> Result<u64, AsyncError> {
    let add = |n: &mut u64| {
        *n += 1;
        *n
    };
    let counted = visits.update_or_insert_async(page, add, 1).await?;
    Ok(counted.unwrap_or(1)) // the first one
}

fn main() -> Result<(), Box<dyn Error>> {
    // The trustee has a thread of its own, beside the runtime's.
    let trustees = Trustees::dedicated(1).start()?;
    let visits = ShardedMap::new(&trustees);
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .build()?;
    runtime.block_on(async {
        let request = |n| visit(visits.clone(), format!("/page/{}", n % 10));
        let tasks: Vec<_> = (0..1000).map(|n| tokio::spawn(request(n))).collect();
        let mut most = 0;
        for task in tasks {
            most = most.max(task.await??);
        }
        assert_eq!(most, 100, "each page's visits are counted one by one");

        let pages = || (0..10).map(|n| format!("/page/{n}"));
        let counts = visits.get_many_async(pages()).await?; // all pages at once
        for (page, count) in pages().zip(&counts) {
            println!("{page}: {} visits", count.unwrap_or(0));
        }
        assert_eq!(counts, [Some(100); 10]);
        Ok::<(), Box<dyn Error>>(())
    })
}
