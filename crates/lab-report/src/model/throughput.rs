//! What so many servers and clients do together (SPEC D9).
//!
//! ```text
//!  Mops                     servers' capacity  Ns·Ts
//!    │                    ·
//!    │         ╱╲      ·      throughput = min(Ns·Ts, Nc·Tc)
//!    │       ╱    ╲ ·
//!    │     ╱      · ╲
//!    │   ╱     ·      ╲       clients' production  Nc·Tc,  Nc = threads − Ns
//!    │ ╱    ·           ╲
//!    └──────────────────── servers among all threads
//! ```
//! The thesis calls it a rule of thumb ("Asynchronous Dedicated Delegation", the equation of
//! its throughput): left of the peak the servers are the bound, right of it the clients. It
//! takes as given that both work at the same time, so it is a model of *asynchronous*
//! delegation. A client that waits for each answer takes turns with its server, their times
//! add up, and the model says too much.
//!
//! # Which side was the bound
//! [`Fit`] takes `Ts` from a run that its servers bound and `Tc` from one that its clients
//! bound, and believes neither without proof. A run was bound by its servers where *the same
//! clients, or fewer, have done more* in another run: they were not the reason. The other way
//! round for clients. A run alone proves nothing, however it was set up.

use serde::Serialize;

/// How the threads are divided.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Split {
    /// Threads that serve.
    pub servers: usize,
    /// Threads that ask.
    pub clients: usize,
}

/// Who sets the pace.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Side {
    /// The servers.
    Servers,
    /// The clients.
    Clients,
}

/// The law: what one server and one client can do, in Mops.
///
/// ```
/// use corelay_lab_report::model::throughput::{Law, Side, Split};
///
/// let law = Law { ts: 40.0, tc: 20.0 };
/// let split = |servers, clients| Split { servers, clients };
/// assert_eq!(law.mops(split(1, 55)), 40.0);
/// assert_eq!((law.mops(split(40, 16)), law.bound(split(40, 16))), (320.0, Side::Clients));
/// // Of 56 threads 19 serve best: a third, since a server is worth two clients.
/// assert_eq!(law.best(56).servers, 19);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Law {
    /// What a server can execute, in Mops.
    pub ts: f64,
    /// What a client can ask for, in Mops.
    pub tc: f64,
}

impl Law {
    /// `min(Ns·Ts, Nc·Tc)`, in Mops.
    pub fn mops(self, split: Split) -> f64 {
        let Split { servers, clients } = split;
        (servers as f64 * self.ts).min(clients as f64 * self.tc)
    }

    /// Whose term is the smaller one.
    pub fn bound(self, split: Split) -> Side {
        if split.servers as f64 * self.ts <= split.clients as f64 * self.tc {
            Side::Servers
        } else {
            Side::Clients
        }
    }

    /// Servers among `threads` at which both sides do the same, in general between two whole
    /// numbers: the equilibrium.
    ///
    /// ```
    /// use corelay_lab_report::model::throughput::Law;
    ///
    /// // Servers that take three times as long: three quarters of the threads have to serve.
    /// assert_eq!(Law { ts: 10.0, tc: 10.0 }.equilibrium(8), 4.0);
    /// assert_eq!(Law { ts: 10.0 / 3.0, tc: 10.0 }.equilibrium(8), 6.0);
    /// ```
    pub fn equilibrium(self, threads: usize) -> f64 {
        threads as f64 * self.tc / (self.ts + self.tc)
    }

    /// The division of `threads` that does most; of two that do the same, the one with fewer
    /// servers.
    ///
    /// # Panics
    /// With fewer than 2 threads: there is no server and client among them.
    pub fn best(self, threads: usize) -> Split {
        let more = |best: Split, split| {
            if self.mops(split) > self.mops(best) {
                split
            } else {
                best
            }
        };
        let best = splits(threads).reduce(more);
        best.expect("a division takes 2 threads")
    }

    /// The whole curve: Mops of every division of `threads`, by the number of servers, to be
    /// drawn over measured points.
    ///
    /// ```
    /// use corelay_lab_report::model::throughput::Law;
    ///
    /// let curve: Vec<_> = Law { ts: 3.0, tc: 2.0 }.curve(4).collect();
    /// assert_eq!(curve, [(1, 3.0), (2, 4.0), (3, 2.0)]);
    /// ```
    pub fn curve(self, threads: usize) -> impl Iterator<Item = (usize, f64)> {
        splits(threads).map(move |split| (split.servers, self.mops(split)))
    }

    /// How far `mops` lies from the model, as a share of it: −0.25 is a quarter less.
    ///
    /// ```
    /// use corelay_lab_report::model::throughput::{Law, Split};
    ///
    /// let law = Law { ts: 2.0, tc: 8.0 };
    /// assert_eq!(law.residual(Split { servers: 2, clients: 1 }, 3.0), -0.25);
    /// ```
    pub fn residual(self, split: Split, mops: f64) -> f64 {
        mops / self.mops(split) - 1.0
    }
}

/// Every division of `threads` with a server and a client, fewest servers first.
///
/// ```
/// use corelay_lab_report::model::throughput::splits;
///
/// assert_eq!(splits(56).count(), 55);
/// assert_eq!(splits(1).count(), 0);
/// ```
pub fn splits(threads: usize) -> impl Iterator<Item = Split> {
    (1..threads).map(move |servers| Split {
        servers,
        clients: threads - servers,
    })
}

/// What both sides do beside carrying requests: rounds of
/// [`compute`](corelay_lab_measure::workload::slow::compute) for each.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Work {
    /// In every delegated operation.
    pub server: u32,
    /// Before every request.
    pub client: u32,
}

/// A run that was measured.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Observed {
    /// How the threads were divided.
    pub split: Split,
    /// What they did.
    pub work: Work,
    /// What came of it, in Mops.
    pub mops: f64,
}

/// Others must have done so many times as much before one side is cleared: beyond what
/// chance does to a median.
pub const PROOF: f64 = 1.25;

impl Observed {
    /// How many times as much clients that were no more and had no less to do have done in
    /// one of `all`: above 1, the servers were the bound here.
    fn clients_did(&self, all: &[Self]) -> f64 {
        let cleared = all.iter().filter(|other| {
            other.split.clients <= self.split.clients && other.work.client >= self.work.client
        });
        cleared.fold(0.0, |most, other| other.mops.max(most)) / self.mops
    }

    /// The same of servers.
    fn servers_did(&self, all: &[Self]) -> f64 {
        let cleared = all.iter().filter(|other| {
            other.split.servers <= self.split.servers && other.work.server >= self.work.server
        });
        cleared.fold(0.0, |most, other| other.mops.max(most)) / self.mops
    }

    /// Who is proved by `all` to have been the bound of this run; `None` where nobody is.
    ///
    /// ```
    /// use corelay_lab_report::model::throughput::{Observed, Side, Split, Work};
    ///
    /// let split = Split { servers: 1, clients: 1 };
    /// let run = |server, mops| Observed { split, work: Work { server, client: 0 }, mops };
    /// let (slow, plain) = (run(500, 1.0), run(0, 80.0));
    /// // The client has asked for 80 times as much where the server had less to do.
    /// assert_eq!(slow.bound(&[slow, plain]), Some(Side::Servers));
    /// assert_eq!(plain.bound(&[slow, plain]), None);
    /// ```
    pub fn bound(&self, all: &[Self]) -> Option<Side> {
        let (clients_did, servers_did) = (self.clients_did(all), self.servers_did(all));
        if clients_did.max(servers_did) < PROOF {
            None
        } else if clients_did >= servers_did {
            Some(Side::Servers)
        } else {
            Some(Side::Clients)
        }
    }
}

/// `Ts` and `Tc` as far as some runs tell, and the runs they are from.
///
/// ```
/// use corelay_lab_report::model::throughput::{Fit, Law, Observed, Split, Work};
///
/// let work = Work::default();
/// let run = |servers, mops| {
///     let split = Split { servers, clients: 8 - servers };
///     Observed { split, work, mops }
/// };
/// let runs: Vec<_> = Law { ts: 30.0, tc: 10.0 }.curve(8).map(|(s, mops)| run(s, mops)).collect();
/// let law = Fit::of(&runs, work).law().unwrap();
/// assert_eq!((law.ts, law.tc), (30.0, 10.0));
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Fit {
    /// Mops of one server, and the run.
    pub server: Option<(f64, Observed)>,
    /// Mops of one client, and the run.
    pub client: Option<(f64, Observed)>,
}

impl Fit {
    /// From those of `all` in which a side had the wanted work and is proved to have been the
    /// bound; of several, from the one with the best proof.
    pub fn of(all: &[Observed], work: Work) -> Self {
        let best = |side, fits: &dyn Fn(&Observed) -> bool, proof: &dyn Fn(&Observed) -> f64| {
            let bound = all.iter().filter(|run| fits(run));
            let bound = bound.filter(|run| run.bound(all) == Some(side));
            bound.max_by(|a, b| proof(a).total_cmp(&proof(b))).copied()
        };
        let server = best(
            Side::Servers,
            &|run| run.work.server == work.server,
            &|run| run.clients_did(all),
        );
        let client = best(
            Side::Clients,
            &|run| run.work.client == work.client,
            &|run| run.servers_did(all),
        );
        Self {
            server: server.map(|run| (run.mops / run.split.servers as f64, run)),
            client: client.map(|run| (run.mops / run.split.clients as f64, run)),
        }
    }

    /// The law, where both sides are known.
    pub fn law(&self) -> Option<Law> {
        let ((ts, _), (tc, _)) = self.server.zip(self.client)?;
        Some(Law { ts, tc })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(servers: usize, clients: usize, work: (u32, u32), mops: f64) -> Observed {
        Observed {
            split: Split { servers, clients },
            work: Work {
                server: work.0,
                client: work.1,
            },
            mops,
        }
    }

    #[test]
    fn the_peak_is_at_the_equilibrium() {
        for (ts, tc) in [(40.0, 16.0), (16.0, 40.0), (1.0, 1.0), (0.5, 30.0)] {
            let law = Law { ts, tc };
            for threads in [2, 3, 16, 56] {
                let best = law.best(threads);
                assert!((best.servers as f64 - law.equilibrium(threads)).abs() <= 1.0);
                let most = law.curve(threads).map(|(_, mops)| mops);
                assert_eq!(most.fold(0.0, f64::max), law.mops(best));
                // Left of it servers are the bound, right of it clients.
                for split in splits(threads) {
                    let side = law.bound(split);
                    let left = split.servers as f64 <= law.equilibrium(threads);
                    assert_eq!(side == Side::Servers, left, "{law:?} {split:?}");
                }
            }
        }
    }

    /// The thesis: "as Thput_server decreases, N_server must increase".
    #[test]
    fn slower_servers_move_the_peak_to_more_of_them() {
        let best = |ts| Law { ts, tc: 20.0 }.best(56).servers;
        assert!(best(60.0) < best(20.0) && best(20.0) < best(5.0));
    }

    /// Two CPUs: one division, so that work has to say which side was the bound.
    #[test]
    fn two_runs_and_a_third_without_work_tell_both_sides() {
        let plain = run(1, 1, (0, 0), 80.0);
        let slow_server = run(1, 1, (500, 0), 1.0);
        let slow_client = run(1, 1, (0, 500), 0.9);
        let both = run(1, 1, (500, 500), 0.85);
        let work = both.work;
        let fit = Fit::of(&[plain, slow_server, slow_client, both], work);
        assert_eq!(fit.server.unwrap().1, slow_server);
        assert_eq!(fit.client.unwrap().1, slow_client);
        let law = fit.law().unwrap();
        assert_eq!((law.ts, law.tc), (1.0, 0.9));
        assert!((law.residual(both.split, both.mops) + 0.0556).abs() < 1e-4);
        // Without the third nothing is proved.
        assert_eq!(
            Fit::of(&[slow_server, slow_client, both], work),
            Fit::default()
        );
        assert_eq!(Fit::of(&[plain], plain.work), Fit::default());
    }

    #[test]
    fn a_fit_takes_the_wanted_work_only() {
        let plain = run(1, 1, (0, 0), 80.0);
        let slow_server = run(1, 1, (500, 0), 1.1);
        let fit = Fit::of(
            &[plain, slow_server],
            Work {
                server: 100,
                client: 0,
            },
        );
        assert_eq!(fit.server, None);
    }

    /// Differences that chance makes prove nothing.
    #[test]
    fn nearly_the_same_is_no_proof() {
        let runs = [run(1, 3, (0, 0), 50.0), run(2, 2, (0, 0), 55.0)];
        assert_eq!(runs[0].bound(&runs), None);
        let runs = [runs[0], run(2, 2, (0, 0), 100.0)];
        assert_eq!(runs[0].bound(&runs), Some(Side::Servers));
        assert_eq!(runs[1].bound(&runs), None);
    }
}
