//! A crew: long-lived threads, each pinned to its CPU, that run jobs together.
//!
//! Starting a thread, its first page faults and its move to its CPU take longer than a short
//! sample. So the lab starts its threads once and wakes them for each sample. Between jobs they
//! sleep and take no CPU.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::RecvTimeoutError;
use std::sync::{Arc, mpsc};
use std::thread::JoinHandle;
use std::time::Duration;

/// A closure that a member runs.
type Job = Box<dyn FnOnce() + Send>;

/// Threads that wait for jobs; thread `i` runs on the `i`-th CPU of a placement.
#[derive(Debug, Default)]
pub struct Crew {
    members: Vec<Member>,
}

/// One thread of the crew.
#[derive(Debug)]
struct Member {
    // Dropping the sender ends the thread.
    jobs: Option<mpsc::Sender<Job>>,
    thread: Option<JoinHandle<()>>,
    cpu: Option<usize>,
    note: Option<String>,
}

/// The result of a member's job: the job's value, or the message of its panic.
pub(crate) type JobResult<R> = Result<R, String>;

impl Crew {
    /// Starts one thread for each entry of `placement`, pinned if the entry names a CPU.
    ///
    /// # Errors
    /// The system gives no more threads.
    pub(crate) fn new(placement: &[Option<usize>]) -> std::io::Result<Self> {
        let mut crew = Self::default();
        crew.grow(placement)?;
        Ok(crew)
    }

    /// Adds threads until there is one for each entry of `placement`. Threads that exist
    /// keep their CPUs.
    ///
    /// # Errors
    /// The system gives no more threads. The crew keeps the threads started until then.
    pub(crate) fn grow(&mut self, placement: &[Option<usize>]) -> std::io::Result<()> {
        for (i, &cpu) in placement.iter().enumerate().skip(self.members.len()) {
            self.members.push(Member::spawn(i, cpu)?);
        }
        Ok(())
    }

    /// Number of threads.
    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.members.len()
    }

    /// The CPU that thread `i` is pinned to; `None` if it is not pinned.
    pub fn cpu(&self, i: usize) -> Option<usize> {
        self.members.get(i).and_then(|m| m.cpu)
    }

    /// The reasons why threads among the first `threads` could not be pinned as asked, a sentence
    /// for each such thread.
    pub fn notes(&self, threads: usize) -> impl Iterator<Item = &str> {
        self.members
            .iter()
            .take(threads)
            .filter_map(|m| m.note.as_deref())
    }

    /// Starts `job(i)` on each thread `i` of `members` and returns at once;
    /// [`Running::join`] waits for the results.
    ///
    /// # Panics
    /// `members` names a thread that the crew does not have.
    pub fn start<R, F>(&self, members: std::ops::Range<usize>, job: F) -> Running<R>
    where
        R: Send + 'static,
        F: Fn(usize) -> R + Send + Sync + 'static,
    {
        let job = Arc::new(job);
        let answers = members.map(|i| {
            let (send, answer) = mpsc::channel();
            let job = Arc::clone(&job);
            let work = move || {
                let outcome = catch_unwind(AssertUnwindSafe(|| job(i)));
                // Drop before sending: with the last result, the caller may own the job's data.
                drop(job);
                // The receiver is gone only if the caller has dropped `Running`.
                let _ = send.send(outcome.map_err(|payload| message(&*payload)));
            };
            let member = &self.members[i];
            let jobs = member
                .jobs
                .as_ref()
                .expect("a member has its sender until it is dropped");
            jobs.send(Box::new(work))
                .expect("a member lives as long as its sender");
            answer
        });
        Running {
            answers: answers.collect(),
        }
    }
}

/// Jobs that were started on several members.
#[derive(Debug)]
pub struct Running<R> {
    answers: Vec<mpsc::Receiver<JobResult<R>>>,
}

impl<R> Running<R> {
    /// Waits for all jobs; their results, in the order of the threads.
    pub fn join(self) -> Vec<JobResult<R>> {
        self.join_with(Duration::MAX, || {})
    }

    /// Waits for all jobs, and calls `tick` whenever it has waited for another `nap`.
    pub(crate) fn join_with(self, nap: Duration, tick: impl Fn()) -> Vec<JobResult<R>> {
        let lost = || Err("the thread ended without an answer".to_owned());
        let join = |answer: &mpsc::Receiver<_>| loop {
            match answer.recv_timeout(nap) {
                Ok(result) => break result,
                Err(RecvTimeoutError::Timeout) => tick(),
                Err(RecvTimeoutError::Disconnected) => break lost(),
            }
        };
        self.answers.iter().map(join).collect()
    }
}

impl Member {
    fn spawn(i: usize, cpu: Option<usize>) -> std::io::Result<Self> {
        let (jobs, inbox) = mpsc::channel::<Job>();
        let (tell_pinned, pinned) = mpsc::channel();
        let thread = std::thread::Builder::new()
            .name(format!("crew-{i}"))
            .spawn(move || {
                let result = cpu.map(corelay_topology::pin_current_thread);
                let _ = tell_pinned.send(result);
                for job in inbox {
                    job();
                }
            })?;
        let (cpu, note) = match pinned.recv() {
            Ok(Some(Ok(()))) => (cpu, None),
            Ok(Some(Err(error))) => (None, Some(format!("thread {i} is not pinned: {error}"))),
            Ok(None) | Err(_) => (None, None),
        };
        Ok(Self {
            jobs: Some(jobs),
            thread: Some(thread),
            cpu,
            note,
        })
    }
}

impl Drop for Member {
    fn drop(&mut self) {
        self.jobs = None;
        if let Some(thread) = self.thread.take() {
            // Jobs catch their panics, so joining the thread cannot report one.
            let _ = thread.join();
        }
    }
}

/// The message of a panic.
pub fn message(payload: &(dyn std::any::Any + Send)) -> String {
    payload
        .downcast_ref::<&str>()
        .map(|s| (*s).to_owned())
        .or_else(|| payload.downcast_ref::<String>().cloned())
        .unwrap_or_else(|| "a panic without a message".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_come_in_order() {
        let crew = Crew::new(&[None, None, None]).unwrap();
        for _ in 0..3 {
            let got: Vec<_> = crew.start(0..3, |i| i * 10).join().into_iter().collect();
            assert_eq!(got, [Ok(0), Ok(10), Ok(20)]);
        }
        assert_eq!(crew.start(1..3, |i| i).join(), [Ok(1), Ok(2)]);
    }

    #[test]
    fn a_panic_is_an_answer_and_the_thread_lives_on() {
        let crew = Crew::new(&[None]).unwrap();
        let outcome = crew.start(0..1, |_| -> u32 { panic!("by design") }).join();
        assert_eq!(outcome, [Err("by design".to_owned())]);
        assert_eq!(crew.start(0..1, |i| i).join(), [Ok(0)]);
    }

    #[test]
    fn a_cpu_that_does_not_exist_is_reported_not_silent() {
        let crew = Crew::new(&[Some(1 << 20)]).unwrap();
        assert_eq!(crew.cpu(0), None);
        assert_eq!(crew.notes(1).count(), 1);
        assert_eq!(crew.start(0..1, |i| i).join(), [Ok(0)]);
    }
}
