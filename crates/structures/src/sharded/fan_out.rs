//! Requests to several shards at once, and one wait for all of them. The requests borrow from the
//! caller's frame.
//!
//! All but one are sent as `try_apply_async`, and the last one as `apply`, which waits; so is one for
//! which the window has no room. A member of a flat team runs its own shard's work by an `apply` of
//! its own, at once: [`Own`] says when.
//!
//! **Nobody uses the frame after it.** A request has the addresses of its [`Job`] in a [`Sent`],
//! which is dropped when the request has run, or is dropped unrun because its shard is poisoned or
//! its trustee has ended. That sets the job's token. [`Wait`] does not end, neither by return nor
//! by panic, before the tokens of all jobs that were sent are set. Its future may be lost before,
//! if a callback panics in the call that sends; so the future says how a request ended, but never
//! when.
//!
//! **How it waits.** By an `apply` of nothing on the same shard: requests of one thread to one
//! object run in order. Such a call suspends a fibre, serves on a member, and sleeps elsewhere. Two
//! cases are left. A fibre that migrates may come to another thread, whose requests are ordered by
//! themselves: the token wakes it. And in a launched closure the call may be refused, because its
//! shard's holder waits for that closure: then a barrier has the request itself refused.

use super::panics::{Payload, caught, discard, keep_first};
use corelay_delegate::TryApplyAsyncError::{Closed, Full, Nested};
use corelay_delegate::{ApplyFuture, AsyncError, Poisoned, Trust, TryApplyError, barrier};
use corelay_sync::wait::{self, Call, NoSwitch, Token};
use std::cell::Cell;
use std::future::Future;
use std::panic::resume_unwind;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};

/// One request's part of the caller's frame.
struct Job<'a, W, F> {
    /// The work for the shard, until the request takes it.
    work: Cell<Option<W>>,
    run: &'a F,
    /// Whether `run` has returned.
    has_run: Cell<bool>,
    /// Set when the request does not use the job any more.
    done: Token,
}

impl<W, F> Job<'_, W, F> {
    /// Runs the job at `job` on its shard.
    ///
    /// # Safety
    /// `job` points to a job of this type, which stays until this has returned. Nobody else uses
    /// its work, nor `has_run` until `done` is set.
    unsafe fn run<S>(job: *const (), shard: &mut S)
    where
        F: Fn(&mut S, W),
    {
        // SAFETY: the caller passes a job of this type, which stays meanwhile.
        let job = unsafe { &*job.cast::<Self>() };
        if let Some(work) = job.work.take() {
            (job.run)(shard, work);
            job.has_run.set(true);
        }
    }
}

/// A job on its way to its shard, whose type has no lifetimes. Its drop sets the job's token.
struct Sent<S> {
    job: *const (),
    done: *const Token,
    /// [`Job::run`] for the job's type.
    run: unsafe fn(*const (), &mut S),
}

// SAFETY: one thread at a time has it, and `fan_out` asks that the work may be sent and the
// function shared.
unsafe impl<S> Send for Sent<S> {}

impl<S> Sent<S> {
    fn new<W, F: Fn(&mut S, W)>(job: &Job<'_, W, F>) -> Self {
        Self {
            job: (&raw const *job).cast(),
            done: &raw const job.done,
            run: Job::<'_, W, F>::run::<S>,
        }
    }

    #[inline]
    fn run(self, shard: &mut S) {
        // SAFETY: `new` took the function for the job's type. The token is not set before `self` is
        // dropped, so `Wait` keeps the job, and leaves its cells alone.
        unsafe { (self.run)(self.job, shard) }
    }
}

impl<S> Drop for Sent<S> {
    fn drop(&mut self) {
        // SAFETY: the token is not set yet, so `Wait` keeps the job that has it.
        unsafe { &*self.done }.notify();
    }
}

/// The wait for the jobs that have been sent. It does not end before they are done.
struct Wait<'a, S, W, F> {
    jobs: &'a [(&'a Trust<S>, Job<'a, W, F>)],
    /// The futures of the jobs that have been sent, but for calls that waited and those lost to a
    /// panic.
    futures: Vec<Option<ApplyFuture<()>>>,
    /// The number of jobs that have been sent, or perhaps sent.
    sent: usize,
    call: Call,
    /// The first panic of a call that was made meanwhile. It is raised when all is done.
    panic: Option<Payload>,
}

impl<S: 'static, W, F: Fn(&mut S, W)> Wait<'_, S, W, F> {
    fn send(&mut self) {
        for (shard, job) in self.jobs {
            // Counted before: the call may panic after the request has been accepted.
            self.sent += 1;
            let sent = Sent::new(job);
            let run = move |shard: &mut S| sent.run(shard);
            let future = self.try_call(|| match shard.try_apply_async(run) {
                Ok(future) => Some(future),
                // The call makes room and waits, or panics with the reason.
                Err(Full(run) | Nested(run) | Closed(run)) => {
                    shard.apply(run);
                    None
                }
            });
            self.futures.push(future.flatten());
        }
    }

    /// Panics if a job has not run to its end, or if a call has panicked meanwhile.
    fn finish(mut self) {
        self.wait();
        let mut failure = None;
        for ((shard, job), future) in self.jobs.iter().zip(std::mem::take(&mut self.futures)) {
            if !job.has_run.get()
                && let Some(future) = future
                && let Err(error) = self.outcome(future, shard)
            {
                keep_first(&mut failure, error);
            }
        }
        let panic = self.panic.take();
        if let Some(error) = failure {
            discard(panic);
            match error {
                AsyncError::Panicked(payload) => resume_unwind(payload),
                AsyncError::Poisoned => panic!("{Poisoned}"),
                other => panic!("{other}"),
            }
        }
        if let Some(payload) = panic {
            resume_unwind(payload);
        }
    }

    /// The outcome of a job that is done: its future is complete, or about to be.
    #[cold]
    fn outcome(&mut self, mut future: ApplyFuture<()>, shard: &Trust<S>) -> Result<(), AsyncError> {
        let mut context = Context::from_waker(Waker::noop());
        loop {
            match Pin::new(&mut future).poll(&mut context) {
                Poll::Ready(outcome) => return outcome,
                Poll::Pending => self.try_call(|| pass(shard)),
            };
        }
    }
}

impl<S, W, F> Wait<'_, S, W, F> {
    /// Waits until no job is used any more.
    fn wait(&mut self) {
        for (shard, job) in &self.jobs[..self.sent] {
            while !job.done.is_set() {
                self.try_call(|| pass(shard));
                // Not cancellable, so it does not fail.
                let _ = wait::wait_in(self.call, &job.done);
            }
        }
    }

    /// Runs `call`, and keeps the panic with which it ends.
    #[inline]
    fn try_call<R>(&mut self, call: impl FnOnce() -> R) -> Option<R> {
        caught(call)
            .map_err(|payload| keep_first(&mut self.panic, payload))
            .ok()
    }
}

impl<S, W, F> Drop for Wait<'_, S, W, F> {
    fn drop(&mut self) {
        self.wait();
    }
}

/// Waits until the shard has run what this thread has sent it.
fn pass<S>(shard: &Trust<S>) {
    if let Err(TryApplyError::Circular(_)) = shard.try_apply(|_| ()) {
        // The job would wait in the same ring. Waited for by a barrier, it is refused. Other
        // failures that the barrier reports are lost, but the caller panics anyway.
        let _ = barrier();
    }
}

/// The shards that have work.
pub(super) struct Work<'a, S, W> {
    /// The shard that this thread owns.
    pub(super) own: Option<(&'a Trust<S>, W)>,
    /// The shard of another thread whose request is sent last.
    pub(super) last: Option<(&'a Trust<S>, W)>,
    pub(super) others: Vec<(&'a Trust<S>, W)>,
}

/// The time at which the caller serves its own shard.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Own {
    /// Before the request to the last shard, which is then an `apply`. On two shards there is no
    /// other request. The last shard begins later, but a call that waits is cheaper than a future
    /// and a wait for it: right for short work.
    BeforeTheLast,
    /// After all requests, so that the other shards work meanwhile.
    Last,
}

/// Runs `run` on each shard with its work, all at the same time, and waits for all.
///
/// # Panics
/// With the panic of `run`, when the other shards are done; it poisons that shard. If a shard is
/// poisoned or its trustee has been shut down. Inside a delegated closure.
#[inline]
pub(super) fn fan_out<S, W, F>(call: Call, work: Work<'_, S, W>, order: Own, run: &F)
where
    S: 'static,
    W: Send,
    F: Fn(&mut S, W) + Sync,
{
    NoSwitch::refuse_at(call);
    let Work {
        mut others,
        own,
        mut last,
    } = work;
    if order == Own::Last && own.is_some() {
        others.extend(last.take());
    }
    let job = |(shard, work)| {
        let job = Job {
            work: Cell::new(Some(work)),
            run,
            has_run: Cell::new(false),
            done: Token::new(),
        };
        (shard, job)
    };
    let jobs: Vec<_> = others.into_iter().map(job).collect();
    let mut wait = Wait {
        jobs: &jobs,
        futures: Vec::with_capacity(jobs.len()),
        sent: 0,
        call,
        panic: None,
    };
    wait.send();
    for (shard, work) in [own, last].into_iter().flatten() {
        wait.try_call(|| shard.apply(|shard| run(shard, work)));
    }
    wait.finish();
}
