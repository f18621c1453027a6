//! A hot cache in a Tokio service. Tasks call `apply_async` and yield meanwhile, so no worker of
//! the runtime ever waits for a lock that another one holds.
//!
//! `cargo run -p corelay --example tokio_cache`

use corelay::{AsyncError, Trust, Trustees};
use std::collections::HashMap;
use std::error::Error;
use std::sync::Arc;

#[derive(Default)]
struct Cache {
    pages: HashMap<u32, Arc<str>>,
    found: u32,
    missed: u32,
}

/// The slow computation that the cache saves; the task does it, not the trustee.
async fn render(number: u32) -> Arc<str> {
    tokio::task::yield_now().await;
    format!("<h1>Page {number}</h1>").into()
}

/// Serves one request: looks in the cache, and computes the page if it is not there.
async fn page(cache: &Trust<Cache>, number: u32) -> Result<Arc<str>, AsyncError> {
    let found = cache.apply_async(move |cache| {
        let page = cache.pages.get(&number).cloned();
        match page {
            Some(_) => cache.found += 1,
            None => cache.missed += 1,
        }
        page
    });
    if let Some(page) = found.await? {
        return Ok(page);
    }
    let page = render(number).await;
    let ours = Arc::clone(&page);
    // Another task may have been quicker; the value that came first is kept.
    let kept =
        cache.apply_async(move |cache| Arc::clone(cache.pages.entry(number).or_insert(ours)));
    kept.await
}

fn main() -> Result<(), Box<dyn Error>> {
    // The trustee has a thread of its own, beside the runtime's: it must not be a worker, which has
    // tasks to run.
    let trustees = Trustees::dedicated(1).start()?;
    let cache = trustees.entrust(Cache::default());

    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .build()?;
    runtime.block_on(async {
        let service = |client: u32| {
            let cache = cache.clone();
            tokio::spawn(async move {
                for i in 0..100 {
                    let number = (client + i) % 10;
                    let page = page(&cache, number).await?;
                    assert_eq!(*page, *format!("<h1>Page {number}</h1>"));
                }
                Ok::<(), AsyncError>(())
            })
        };
        let clients: Vec<_> = (0..20).map(service).collect();
        for client in clients {
            client.await??;
        }
        Ok::<(), Box<dyn Error>>(())
    })?;

    let (pages, found, missed) = cache.apply(|c| (c.pages.len(), c.found, c.missed));
    println!("20 tasks asked 2000 times for {pages} pages: {found} found, {missed} rendered");
    assert_eq!((pages, found + missed), (10, 2000));
    assert!(
        (10..=200).contains(&missed),
        "each page at least once, at most once a task"
    );
    Ok(())
}
