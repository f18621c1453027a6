//! Delegation by fibres (D17): each client is a processor of fibres, and each fibre calls `apply` and
//! waits for its answer as if it had a thread to itself. Gepard does so over request lines, see
//! `literature::gepard`; here they use corelay's channel.
//!
//! While one fibre waits, the next runs. So a client has as many requests in flight as it has
//! fibres, in code that knows nothing of callbacks. On the command line `trust-fibre` has 64
//! fibres per client thread, `trust-fibre:K` has K.

use super::contender::Parameters;
use super::trust::{bytes_per_var, ended, entrusted, total, trustees};
use super::{Contender, Kind, Method, SetupLimit};
use crate::method::trust::Variables;
use crate::schema::Trustee;
use crate::workload::operation::{Aligned, Answer, Workload};
use crate::workload::point::Point;
use crate::workload::random::Client;
use corelay::Trustees;
use corelay::fibre::{Cluster, yield_now};
use corelay_sync::facade::atomic::{AtomicU64, Ordering};
use std::ops::Range;
use std::sync::Arc;

const NAME: &str = "trust-fibre";

/// Fibres per client thread, unless the method's name says otherwise.
pub(super) const DEFAULT_FIBRES: usize = 64;

/// Most fibres per client thread; a larger number is probably a typing error.
const MAX_FIBRES: usize = 10_000;

/// The method `trust-fibre`.
pub const fn method<W: Workload>() -> Method<W> {
    Method {
        window: DEFAULT_FIBRES,
        bytes_per_var: bytes_per_var::<W>(),
        fibres: DEFAULT_FIBRES,
        parameters: Some(Parameters {
            forms: &[("trust-fibre:K", "fibres per client thread; 64 by default")],
            read,
        }),
        ..Method::new(NAME, Kind::Dedicated, |w, p, setup_limit| {
            Ok(Box::new(Fibres::start(w, p, setup_limit)?))
        })
    }
}

/// The number of fibres per client thread in the parameters of the method called `name`.
///
/// # Errors
/// A clause that says how to write it.
pub(super) fn number(name: &str, parameters: &str) -> Result<usize, String> {
    let fibres = parameters.parse().ok();
    let fibres = fibres.filter(|n| (1..=MAX_FIBRES).contains(n));
    fibres.ok_or_else(|| {
        format!("write {name}:K, K fibres for each client thread, from 1 to {MAX_FIBRES}")
    })
}

/// The method with as many fibres per client thread as `parameters` say.
fn read<W: Workload>(parameters: &str) -> Result<Method<W>, String> {
    let fibres = number(NAME, parameters)?;
    Ok(Method {
        window: fibres,
        fibres,
        ..method()
    })
}

/// The fibres of `trust-fibre`, but they yield instead of calling a trustee, to measure the cost of
/// a switch. For targets only.
pub const YIELDS: Method = Method {
    name: "yield-fibre",
    build: |_, point, _| {
        Ok(Box::new(Yields {
            crew: Processors::start(point)?,
            done: AtomicU64::new(0),
        }))
    },
    ..method()
};

/// A processor of fibres for each client.
pub(super) struct Processors {
    clusters: Vec<Cluster>,
    pub(super) clients: Range<usize>,
    fibres: usize,
}

impl Processors {
    #[allow(unsafe_code, reason = "a cluster is started with a promise")]
    pub(super) fn start(point: &Point) -> Result<Self, String> {
        let clients = point.servers..point.threads;
        let cluster = |client: usize| {
            let cpu = point.placement.get(client).copied().flatten();
            let cluster = Cluster::builder().processors(1);
            let cluster = cluster.cpus(cpu.into_iter().collect());
            // SAFETY: the cluster's fibres run only the loops of this file and of `gepard`. These use
            // no thread-locals of their own, and wait in calls of trustees or yield, never inside a
            // thread-local's initialiser, destructor or scope. Users' code never runs on these
            // fibres.
            let cluster = unsafe { cluster.name(NAME).start() };
            cluster.map_err(|error| format!("a processor of fibres could not be started: {error}"))
        };
        Ok(Self {
            clusters: clients.clone().map(cluster).collect::<Result<_, _>>()?,
            clients,
            fibres: point.fibres,
        })
    }

    /// Divides a client among its fibres, each of which runs `work`; returns the number of their
    /// operations.
    ///
    /// The crew's thread sleeps meanwhile; it is pinned to the same CPU as its processor.
    pub(super) fn run(
        &self,
        client: Client,
        work: impl FnOnce(Client) -> u64 + Clone + Send + 'static,
    ) -> u64 {
        let cluster = &self.clusters[client.index];
        let start = |client: Client| {
            let work = work.clone();
            cluster.spawn(move || work(client))
        };
        let fibres: Vec<_> = client.split(self.fibres).map(start).collect();
        let done = fibres.into_iter().map(|fibre| fibre.join());
        done.map(|done| done.expect("no fibre panics")).sum()
    }
}

struct Fibres<W: Workload> {
    workload: W,
    /// `None` after the end. Handles are dropped before their trustees.
    crew: Option<Processors>,
    variables: Arc<Variables<W>>,
    /// `None` after the end.
    trustees: Option<Trustees>,
}

impl<W: Workload> Fibres<W> {
    fn start(workload: W, point: &Point, setup_limit: &SetupLimit) -> Result<Self, String> {
        let trustees = trustees(point, false)?;
        Ok(Self {
            workload,
            crew: Some(Processors::start(point)?),
            variables: Arc::new(entrusted(&trustees, workload, point, setup_limit)?),
            trustees: Some(trustees),
        })
    }
}

impl<W: Workload> Fibres<W> {
    fn crew(&self) -> &Processors {
        self.crew
            .as_ref()
            .expect("the contender is not used after its end")
    }
}

impl<W: Workload> Contender for Fibres<W> {
    fn clients(&self) -> Range<usize> {
        self.crew().clients.clone()
    }

    fn client(&self, client: Client) -> u64 {
        let (variables, workload) = (Arc::clone(&self.variables), self.workload);
        self.crew().run(client, move |client| {
            client.call_each(workload, |var, operation| {
                variables[var].apply(Aligned::request(operation)).number()
            })
        })
    }

    fn total(&self) -> Result<u64, String> {
        total(self.workload, &self.variables)
    }

    fn end(&mut self) -> Vec<Trustee> {
        // The clients are gone, so the processors have nothing to run.
        self.crew = None;
        self.variables = Arc::default();
        ended(&mut self.trustees)
    }
}

struct Yields {
    crew: Processors,
    done: AtomicU64,
}

impl Contender for Yields {
    fn clients(&self) -> Range<usize> {
        self.crew.clients.clone()
    }

    fn client(&self, client: Client) -> u64 {
        let done = self.crew.run(client, |client| {
            client.drive(|_| {
                yield_now();
                0
            })
        });
        // Relaxed: read after the clients have been joined.
        self.done.fetch_add(done, Ordering::Relaxed);
        done
    }

    fn total(&self) -> Result<u64, String> {
        // Relaxed: the clients have been joined.
        Ok(self.done.load(Ordering::Relaxed))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::fetch_add::FetchAdd;

    #[test]
    fn number_of_fibres_is_parsed() {
        let method = method::<FetchAdd>();
        let read = |text: &str| method.with_parameters(text);
        let four = read("trust-fibre:4").unwrap().unwrap();
        assert_eq!(
            (four.name(), four.fibres, four.window(256)),
            ("trust-fibre:4", 4, 4)
        );
        for wrong in ["0", "", "-1", "x", "10001", "4x4"] {
            let why = read(&format!("trust-fibre:{wrong}")).unwrap().unwrap_err();
            assert!(why.contains("1 to 10000"), "{why}");
        }
        assert!(read("trust-fibre").is_none() && read("trust:4").is_none());
    }
}
