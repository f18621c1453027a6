//! Protocols of the literature whose clients wait for each answer.

use super::servers::Servers;
use super::{bytes_per_var, total};
use crate::method::{Build, Contender, Kind, Method};
use crate::schema::Trustee;
use crate::workload::operation::{Answer, Operation, Workload};
use crate::workload::point::Point;
use crate::workload::random::Client;
use crate::workload::root::FetchRoot;
use corelay_literature::{Blocking, Delegation, FfwdLines, RclLines};
use std::ops::Range;

/// The method `ffwd`.
pub const fn ffwd<W: Workload>() -> Method<W> {
    method("ffwd", |w, p, _| {
        Waiting::<W, FfwdLines>::start("ffwd", w, p)
    })
}

/// The method `ffwd` of fetch-add, but each operation takes `ROOTS` square roots.
pub fn rooted<const ROOTS: u32>() -> Method {
    ffwd().built_by(|_, p, setup_limit| (ffwd().build)(FetchRoot::<ROOTS>, p, setup_limit))
}

/// The method `rcl`.
pub const fn rcl<W: Workload>() -> Method<W> {
    method("rcl", |w, p, _| Waiting::<W, RclLines>::start("rcl", w, p))
}

const fn method<W: Workload>(name: &'static str, build: Build<W>) -> Method<W> {
    Method {
        bytes_per_var: bytes_per_var::<W>(),
        ..Method::new(name, Kind::Dedicated, build)
    }
}

struct Waiting<W: Workload, P: Blocking> {
    workload: W,
    clients: Range<usize>,
    delegation: Delegation<P, W::Object>,
    servers: Servers,
}

impl<W: Workload, P: Blocking + 'static> Waiting<W, P> {
    fn start(name: &str, workload: W, point: &Point) -> Result<Box<dyn Contender>, String> {
        let clients = point.servers..point.threads;
        let make = move |_| workload.object();
        let vars = point.vars as usize;
        let (delegation, servers) = Delegation::new(point.servers, clients.len(), vars, make);
        Ok(Box::new(Self {
            workload,
            clients,
            delegation,
            servers: Servers::start(name, servers, point)?,
        }))
    }
}

impl<W: Workload, P: Blocking> Contender for Waiting<W, P> {
    fn clients(&self) -> Range<usize> {
        self.clients.clone()
    }

    fn client(&self, client: Client) -> u64 {
        let _serving = self.servers.serve();
        let mut asking = self.delegation.client(client.index);
        let asking = asking.as_mut().expect("a client runs on one thread");
        client.call_each(self.workload, |var, operation| {
            asking.apply(var, move |object| operation.run(object).number())
        })
    }

    fn total(&self) -> Result<u64, String> {
        total(self.workload, &self.delegation)
    }

    fn end(&mut self) -> Vec<Trustee> {
        self.servers.end().iter().map(Trustee::from).collect()
    }
}
