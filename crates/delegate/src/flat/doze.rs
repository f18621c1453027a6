//! Members with event loops of their own: a member sleeps where its loop waits for sockets and
//! timers, and is woken there through a file descriptor.
//!
//! A member that dozes shows DOZING, like a trustee that sleeps, and its thread's
//! [sleeper](corelay_sync::wait::Sleeper) shows that the thread sleeps in a loop. So the proofs of
//! [`Shared::doze`](crate::object::shared::Shared::doze) hold, for requests and for answers. Only the
//! last step differs: whoever wakes the member makes the file descriptor readable.
//!
//! While the member is awake nobody rings: clients see AWAKE, and trustees that answer it see an
//! awake sleeper.

use super::member::Member;
use crate::client::connect::flush_clients;
use crate::client::poll::{refuse, run_callbacks};
use crate::context::member::Serve;
use std::io;

impl Member {
    /// The file descriptor by which this member is woken while its function waits in an event loop
    /// of its own, such as `epoll`, mio, a Tokio runtime or `io_uring`. The loop watches it for
    /// reading, level-triggered or edge-triggered. The member reads it itself, when a [`Dozing`]
    /// ends.
    ///
    /// It belongs to the thread, and stays open until the thread has ended. For how to use it see
    /// [`doze`](Self::doze).
    ///
    /// # Errors
    /// The system gives no more file descriptors.
    #[cfg(not(any(corelay_loom, corelay_shuttle)))]
    pub fn wake_fd(&self) -> io::Result<std::os::fd::BorrowedFd<'_>> {
        self.sleeper.wake_fd()
    }

    /// Serves the requests of others, runs the callbacks of this member's own requests that have
    /// been answered, and asks whether the member may sleep. To be called by the function's event
    /// loop each time round.
    ///
    /// `None` says that there was something to do: the loop looks at its sockets without waiting,
    /// and calls again. Otherwise nothing is left, and the loop may wait for as long as the
    /// [`Dozing`] lives: the first request or answer makes [`wake_fd`](Self::wake_fd) readable. When
    /// the wait is over the loop drops it. From then on requests cost their senders no system call
    /// again.
    ///
    /// A call serves each client's batch at most once, so sockets get their turn, too. It makes one
    /// system call if it finds nothing: the barrier that tells the other CPUs that this member
    /// sleeps.
    ///
    /// ```
    /// # #[cfg(target_os = "linux")] {
    /// use corelay_delegate::{Member, Trustees};
    /// use std::os::fd::AsRawFd;
    ///
    /// /// Serves until somebody has counted to 3, and sleeps in `poll` meanwhile.
    /// fn event_loop(me: &Member) -> std::io::Result<()> {
    ///     let mut fds = [libc::pollfd {
    ///         fd: me.wake_fd()?.as_raw_fd(),
    ///         events: libc::POLLIN,
    ///         revents: 0,
    ///     }];
    ///     let hits = HITS.get_or_init(|| me.entrust(0u64));
    ///     while hits.apply(|n| *n) < 3 {
    ///         let dozing = me.doze()?;
    ///         let timeout = if dozing.is_some() { -1 } else { 0 };
    ///         // SAFETY: the array has one element, and outlives the call.
    ///         unsafe { libc::poll(fds.as_mut_ptr(), 1, timeout) };
    ///         drop(dozing); // awake again; sockets would be read here
    ///     }
    ///     Ok(())
    /// }
    ///
    /// # use corelay_delegate::Trust;
    /// # use std::sync::OnceLock;
    /// static HITS: OnceLock<Trust<u64>> = OnceLock::new();
    /// let team = Trustees::flat(1).start()?;
    /// std::thread::scope(|s| {
    ///     s.spawn(|| team.run(|me| event_loop(me).expect("a file descriptor")));
    ///     let hits = HITS.wait();
    ///     (0..3).for_each(|_| hits.apply(|n| *n += 1));
    /// });
    /// # }
    /// # Ok::<(), corelay_delegate::StartError>(())
    /// ```
    ///
    /// # Errors
    /// The system gives no more file descriptors.
    ///
    /// # Panics
    /// Inside a delegated closure or a callback, and while a [`Dozing`] of this member lives. With
    /// the panic of a callback, after all callbacks that could run have run.
    #[track_caller]
    pub fn doze(&self) -> io::Result<Option<Dozing<'_>>> {
        refuse("Member::doze");
        assert!(
            !self.is_dozing.get(),
            "corelay: Member::doze while the member dozes: drop the last Dozing first"
        );
        let has_served = self.pass(true) > 0;
        // A callback is something to do, too: it may have made what the loop looks at.
        if run_callbacks() || has_served {
            return Ok(None);
        }
        // Callbacks may have made requests.
        flush_clients();
        let begun = self.shared.begin_doze(&self.sleeper, || {
            // After the sleeper's barrier.
            if self.pass(true) > 0 || self.trustee.borrow().has_answers() {
                return true;
            }
            self.trustee.borrow_mut().count_sleep();
            false
        });
        let dozing = || {
            self.is_dozing.set(true);
            Dozing(self)
        };
        Ok(begun?.then(dozing))
    }

    /// Waits until the member is woken, in the place of an event loop.
    #[cfg(any(corelay_loom, corelay_shuttle))]
    #[doc(hidden)]
    pub fn wait_in_loop(&self) {
        self.sleeper.wait_in_loop();
    }
}

/// The time in which a member's event loop may wait: see [`Member::doze`]. The loop drops it when
/// it is awake.
///
/// A call of corelay that sleeps meanwhile makes [`Member::wake_fd`] readable, so that the loop
/// comes round again.
#[derive(Debug)]
#[must_use = "the member counts as awake once this is dropped"]
pub struct Dozing<'a>(&'a Member);

impl Drop for Dozing<'_> {
    fn drop(&mut self) {
        let member = self.0;
        member.sleeper.end_sleep();
        member.shared.end_doze();
        member.is_dozing.set(false);
    }
}
