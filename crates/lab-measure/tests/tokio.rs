//! Delegation's futures on a runtime that is not ours: tokio's, with several threads.

use corelay::{AsyncError, Trustees};

/// A runtime that moves tasks between its threads.
fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(4)
        .build()
        .expect("there are threads")
}

#[test]
fn futures_complete_on_tokio() {
    const TASKS: u64 = 32;
    const REQUESTS: u64 = 200;
    let runtime = runtime();
    let trustees = Trustees::dedicated(2).start().unwrap();
    let objects = [trustees.entrust_on(0, 0u64), trustees.entrust_on(1, 0u64)];
    runtime.block_on(async {
        let tasks: Vec<_> = (0..TASKS)
            .map(|task| {
                let objects = objects.clone();
                tokio::spawn(async move {
                    for i in 0..REQUESTS {
                        // Two at once, of which each may find the task on another thread.
                        let [first, second] = objects.each_ref().map(|object| {
                            object.apply_async(move |n| {
                                *n += 1;
                                (task, i, vec![i; 3])
                            })
                        });
                        assert_eq!(first.await?, (task, i, vec![i; 3]));
                        if i % 3 == 0 {
                            tokio::task::yield_now().await;
                        }
                        assert_eq!(second.await?.1, i);
                    }
                    Ok::<_, AsyncError>(())
                })
            })
            .collect();
        for task in tasks {
            task.await.unwrap().unwrap();
        }
        for object in &objects {
            assert_eq!(object.apply_async(|n| *n).await.unwrap(), TASKS * REQUESTS);
        }
    });
}

#[test]
fn an_aborted_task_abandons_its_future() {
    let runtime = runtime();
    let trustees = Trustees::dedicated(1).start().unwrap();
    let object = trustees.entrust(0u64);
    let (open, closed) = std::sync::mpsc::channel::<()>();
    object.post(move |_| closed.recv().unwrap());
    let waiting = {
        let object = object.clone();
        runtime.spawn(async move { object.apply_async(|n| *n += 1).await })
    };
    runtime.block_on(async {
        tokio::task::yield_now().await;
        waiting.abort();
        // Ended by the abort, whether it had asked before or not.
        assert!(waiting.await.unwrap_err().is_cancelled());
        let next = object.apply_async(|n| *n);
        open.send(()).unwrap();
        assert!(next.await.unwrap() <= 1);
    });
}
