//! Gepard (D17): delegation by fibres over the thesis's request lines, four for each pair of client
//! and server. A fibre writes its request on a free line, yields, and looks for its answer whenever
//! it runs again.
//!
//! The thesis's Gepard runs on libfiber; here the fibres are corelay's. On the command line `gepard`
//! has 64 fibres per client thread, `gepard:K` has K.

use super::servers::Servers;
use super::total;
use crate::method::contender::Parameters;
use crate::method::fibres::{DEFAULT_FIBRES, Processors, number};
use crate::method::{Build, Contender, Kind, Method};
use crate::schema::Trustee;
use crate::workload::operation::{Answer, Operation, Workload};
use crate::workload::point::Point;
use crate::workload::random::Client;
use corelay::fibre::yield_now;
use corelay_literature::{AsyncLines, PairLines, Shape};
use std::cell::{Cell, RefCell};
use std::ops::Range;
use std::rc::Rc;
use std::sync::Arc;

const NAME: &str = "gepard";

/// Request lines for each pair of client and server.
const LINES: usize = 4;

/// The method `gepard`.
pub const fn gepard<W: Workload>() -> Method<W> {
    let lines = match Shape::direct(LINES) {
        Ok(shape) => shape,
        Err(_) => panic!("four lines are within bounds"),
    };
    let build: Build<W> = |w, p, _| Gepard::start(w, p, store);
    Method {
        window: LINES,
        bytes_per_var: super::bytes_per_var::<W>(),
        lines,
        fibres: DEFAULT_FIBRES,
        parameters: Some(Parameters {
            forms: &[("gepard:K", "fibres per client thread; 64 by default")],
            read,
        }),
        ..Method::new(NAME, Kind::Dedicated, build)
    }
}

/// The method with as many fibres per client thread as `parameters` say.
fn read<W: Workload>(parameters: &str) -> Result<Method<W>, String> {
    Ok(Method {
        fibres: number(NAME, parameters)?,
        ..gepard()
    })
}

/// The place of a fibre's answer.
type Slot = Rc<Cell<Option<u64>>>;

/// The callback of a request, which stores its answer.
fn store(slot: Slot) -> impl FnOnce(u64) + 'static {
    move |answer| slot.set(Some(answer))
}

type Lines<T, C> = corelay_literature::Client<PairLines<C>, T>;

/// The lines of a client's fibres, in one slice.
struct Fibres<T, C: FnOnce(u64)> {
    /// Made by the fibre that runs first, and dropped by the one that ends last.
    lines: RefCell<Option<Lines<T, C>>>,
    /// Fibres that have not ended.
    left: Cell<usize>,
}

/// The lines, for fibres that all run on one thread.
struct OnOneThread<T, C: FnOnce(u64)>(Fibres<T, C>);

#[allow(
    unsafe_code,
    reason = "fibres of one processor share what need not be `Send`"
)]
// SAFETY: only the fibres of one processor touch the inside (`Gepard::client`), and they all run on
// its one thread. The lines are gone when the last of them ends.
unsafe impl<T, C: FnOnce(u64)> Send for OnOneThread<T, C> {}
#[allow(
    unsafe_code,
    reason = "fibres of one processor share what need not be `Send`"
)]
// SAFETY: as for `Send`.
unsafe impl<T, C: FnOnce(u64)> Sync for OnOneThread<T, C> {}

impl<T, C: FnOnce(u64)> Drop for OnOneThread<T, C> {
    /// Leaks the lines if a fibre has panicked, for this may be another thread.
    fn drop(&mut self) {
        std::mem::forget(self.0.lines.take());
    }
}

struct Gepard<W: Workload, C: FnOnce(u64), S> {
    workload: W,
    /// `None` after the end.
    crew: Option<Processors>,
    fibres: usize,
    delegation: AsyncLines<W::Object, C>,
    servers: Servers,
    /// Makes the callback of a request.
    store: S,
}

impl<W, C, S> Gepard<W, C, S>
where
    W: Workload,
    C: FnOnce(u64) + 'static,
    S: Fn(Slot) -> C + Copy + Send + Sync + 'static,
{
    fn start(workload: W, point: &Point, store: S) -> Result<Box<dyn Contender>, String> {
        let clients = point.threads - point.servers;
        let make = move |_| workload.object();
        let (servers, vars) = (point.servers, point.vars as usize);
        let (delegation, servers) = AsyncLines::shaped(point.lines, servers, clients, vars, make);
        Ok(Box::new(Self {
            workload,
            crew: Some(Processors::start(point)?),
            fibres: point.fibres,
            delegation,
            servers: Servers::start(NAME, servers, point)?,
            store,
        }))
    }

    fn crew(&self) -> &Processors {
        let crew = self.crew.as_ref();
        crew.expect("the contender is not used after its end")
    }
}

/// Has the server of `var` run the operation, and yields until the answer is there.
fn call<T, C, O>(fibres: &Fibres<T, C>, var: usize, run: O, store: impl Fn(Slot) -> C) -> u64
where
    C: FnOnce(u64),
    O: FnOnce(&mut T) -> u64 + Send + 'static,
{
    /// Calls `f` with the lines, which nobody keeps over a yield.
    fn with<T, C: FnOnce(u64), R>(
        fibres: &Fibres<T, C>,
        f: impl FnOnce(&mut Lines<T, C>) -> R,
    ) -> R {
        let mut lines = fibres.lines.borrow_mut();
        f(lines.as_mut().expect("a fibre has made the lines"))
    }
    let slot = Slot::default();
    let mut request = (run, store(Rc::clone(&slot)));
    let line = loop {
        let (run, then) = request;
        match with(fibres, |lines| lines.try_issue(var, run, then)) {
            Ok(line) => break line,
            Err(back) => request = back,
        }
        yield_now();
    };
    loop {
        yield_now();
        // Another fibre never looks at this line before the answer is in the slot.
        with(fibres, |lines| lines.look(line));
        if let Some(answer) = slot.get() {
            return answer;
        }
    }
}

impl<W, C, S> Contender for Gepard<W, C, S>
where
    W: Workload,
    C: FnOnce(u64) + 'static,
    S: Fn(Slot) -> C + Copy + Send + Sync + 'static,
{
    fn clients(&self) -> Range<usize> {
        self.crew().clients.clone()
    }

    fn client(&self, client: Client) -> u64 {
        let _serving = self.servers.serve();
        let (workload, store, index) = (self.workload, self.store, client.index);
        let delegation = self.delegation.clone();
        let shared = Arc::new(OnOneThread(Fibres {
            lines: RefCell::new(None),
            left: Cell::new(self.fibres),
        }));
        self.crew().run(client, move |client| {
            let OnOneThread(fibres) = &*shared;
            fibres.lines.borrow_mut().get_or_insert_with(|| {
                let lines = delegation.client(index);
                lines.expect("a client runs on one thread")
            });
            let count = client.call_each(workload, |var, operation| {
                let run = move |object: &mut W::Object| operation.run(object).number();
                call(fibres, var, run, store)
            });
            fibres.left.set(fibres.left.get() - 1);
            if fibres.left.get() == 0 {
                drop(fibres.lines.borrow_mut().take());
            }
            count
        })
    }

    fn total(&self) -> Result<u64, String> {
        total(self.workload, &self.delegation)
    }

    fn end(&mut self) -> Vec<Trustee> {
        self.crew = None;
        self.servers.end().iter().map(Trustee::from).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::fetch_add::FetchAdd;

    #[test]
    fn number_of_fibres_is_parsed() {
        let read = |text: &str| gepard::<FetchAdd>().with_parameters(text);
        let four = read("gepard:4").unwrap().unwrap();
        assert_eq!(
            (four.name(), four.fibres, four.lines().lines()),
            ("gepard:4", 4, 4)
        );
        for wrong in ["0", "", "-1", "x", "10001"] {
            let why = read(&format!("gepard:{wrong}")).unwrap().unwrap_err();
            assert!(why.contains("1 to 10000"), "{why}");
        }
    }
}
