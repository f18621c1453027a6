//! Tasks that wait for room in a full window, under loom: none is forgotten. A wake-up that is lost
//! is a deadlock, which loom reports.

use crate::model::{Flag, model, scene, trustees, unexplored};
use corelay_delegate::{ApplyFuture, ClientGuard, Trust, Trustees};
use corelay_sync::facade::thread;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};

struct Raise(Flag);

impl Wake for Raise {
    fn wake(self: Arc<Self>) {
        self.0.raise();
    }
}

/// A task that waits for one future.
struct Task<R> {
    future: ApplyFuture<R>,
    woken: Flag,
}

impl<R> Task<R> {
    fn new(future: ApplyFuture<R>) -> Self {
        let woken = Flag::new();
        Self { future, woken }
    }

    fn poll(&mut self) -> Option<R> {
        self.woken = Flag::new();
        let waker = Waker::from(Arc::new(Raise(self.woken.clone())));
        match Pin::new(&mut self.future).poll(&mut Context::from_waker(&waker)) {
            Poll::Ready(result) => Some(result.unwrap()),
            Poll::Pending => None,
        }
    }

    /// Waits after a poll that was in vain.
    fn finish(mut self) -> R {
        loop {
            self.woken.wait();
            if let Some(result) = self.poll() {
                return result;
            }
        }
    }

    fn run(mut self) -> R {
        self.poll().unwrap_or_else(|| self.finish())
    }
}

/// A trustee with a window of two, and a value on it.
fn entrusted() -> (Trustees, Trust<u64>) {
    let trustees = trustees();
    let value = trustees.entrust(0u64);
    (trustees, value)
}

/// Two requests: as many as the window takes.
fn fill(value: &Trust<u64>) {
    value.post(|n| *n += 1);
    value.post(|n| *n += 1);
}

fn end(trustees: Trustees, value: Trust<u64>) {
    drop(value);
    drop(ClientGuard::new());
    trustees.shutdown();
}

#[test]
fn task_without_room_is_let_in() {
    scene(|| {
        let (trustees, value) = unexplored(entrusted);
        unexplored(|| fill(&value));
        let seen = Task::new(value.apply_async(|n| *n)).run();
        assert_eq!(seen, 2);
        unexplored(|| end(trustees, value));
    });
}

/// The trustee may have executed the request of a task that was let in, and looked for the next task,
/// before the client's thread has taken the first one out.
#[test]
fn tasks_take_turns_in_a_window_of_one() {
    scene(|| {
        let (trustees, value) = unexplored(|| {
            let trustees = Trustees::dedicated(1).window(1).start().unwrap();
            let value = trustees.entrust(0u64);
            (trustees, value)
        });
        unexplored(|| value.post(|n| *n += 1));
        let mut tasks = [(); 2].map(|()| Task::new(value.apply_async(|n| *n)));
        let seen = tasks.each_mut().map(Task::poll);
        for (task, seen) in tasks.into_iter().zip(seen) {
            assert_eq!(seen.unwrap_or_else(|| task.finish()), 1);
        }
        unexplored(|| end(trustees, value));
    });
}

/// More tasks than the window has room for, and those that are let in go without using it.
#[test]
fn dropped_tasks_let_the_next_one_in() {
    scene(|| {
        let (trustees, value) = unexplored(entrusted);
        unexplored(|| fill(&value));
        let mut dropped = [(); 2].map(|()| Task::new(value.apply_async(|_| ())));
        let mut last = Task::new(value.apply_async(|n| *n));
        for task in &mut dropped {
            task.poll();
        }
        let done = last.poll();
        drop(dropped);
        assert_eq!(done.unwrap_or_else(|| last.finish()), 2);
        unexplored(|| end(trustees, value));
    });
}

#[test]
fn task_outlives_the_client_that_it_waited_for() {
    model(|| {
        let (trustees, value) = unexplored(entrusted);
        let of_thread = value.clone();
        let thread = thread::spawn(move || {
            unexplored(|| fill(&of_thread));
            let mut task = Task::new(of_thread.apply_async(|n| *n));
            let done = task.poll();
            drop(ClientGuard::new());
            (task, done)
        });
        let (task, done) = thread.join().unwrap();
        assert_eq!(done.unwrap_or_else(|| task.finish()), 2);
        unexplored(|| end(trustees, value));
    });
}
