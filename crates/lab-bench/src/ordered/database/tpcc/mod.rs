//! `tpcc`: the five transactions of TPC-C (revision 5.11) on its nine tables.
//!
//! | module | contents |
//! |---|---|
//! | `schema` | tables, keys and rows |
//! | `random` | `NURand`, last names, texts |
//! | `populate` | the rows of the beginning |
//! | `new_order`, `payment`, `order_status`, `delivery`, `stock_level` | the transactions |
//! | `consistency` | the consistency conditions, checked after each run |
//!
//! A client is a terminal with a home warehouse. Departures from the specification: terminals
//! neither type nor think, deliveries are not queued, texts have a fixed room, and the customers of
//! a last name are a row of an index table.
//!
//! The mix `payment-neworder` is what DBx1000 runs (`benchmarks/tpcc_txn.cpp`), so that figures
//! compare: half Payment, half New-Order, without the insertions into orders, lines, new orders and
//! history, without the order in a hundred that is undone, and without an item twice in an order. The
//! peer copies each row that it reads; here a transaction reads in place, and a row that it writes is
//! copied.

mod consistency;
mod delivery;
mod new_order;
mod order_status;
mod payment;
mod populate;
mod random;
mod schema;
mod stock_level;

use super::contender::Work;
use super::engine::Engine;
use super::host::Session;
use corelay_lab_measure::method::SetupLimit;
use corelay_lab_measure::workload::random::Random;
use delivery::Delivery;
use new_order::NewOrder;
use order_status::OrderStatus;
use payment::Payment;
use schema::{DISTRICTS, HistoryKey, Tables};
use std::fmt;
use std::str::FromStr;
use std::time::{SystemTime, UNIX_EPOCH};
use stock_level::StockLevel;

/// A mix of transactions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mix {
    /// All five: New-Order 45 %, Payment 43 %, the others 4 % each.
    Full,
    /// The mix of DBx1000: half Payment, half New-Order, nothing inserted.
    PaymentNewOrder,
}

impl fmt::Display for Mix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Full => "full",
            Self::PaymentNewOrder => "payment-neworder",
        })
    }
}

impl FromStr for Mix {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let all = [Self::Full, Self::PaymentNewOrder];
        let found = all.into_iter().find(|mix| mix.to_string() == text);
        found.ok_or_else(|| format!("there is no mix `{text}`; name `full` or `payment-neworder`"))
    }
}

/// The parameters of `tpcc`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Shape {
    /// The mix of transactions.
    pub mix: Mix,
    /// Number of warehouses.
    pub warehouses: u16,
    /// The divisor of the numbers of items, customers and orders: 1 is the specification's size.
    pub shrink: u32,
}

impl Shape {
    /// Items, and stocks of each warehouse.
    fn items(self) -> u32 {
        100_000 / self.shrink
    }

    /// Customers of each district, and as many orders.
    fn customers(self) -> u32 {
        3_000 / self.shrink
    }

    /// Different last names.
    fn names(self) -> u32 {
        1_000 / self.shrink
    }

    /// Orders of a district that have been delivered at the beginning.
    fn delivered(self) -> u32 {
        self.customers() / 10 * 7
    }

    /// An estimate of the bytes that all tables take.
    pub(crate) fn bytes(self) -> u64 {
        let (districts, customers) = (u64::from(DISTRICTS), u64::from(self.customers()));
        let per_order = if self.keeps_orders() { 2_500 } else { 0 };
        let per_customer = 1_000 + per_order;
        let items = u64::from(self.items());
        let per_warehouse = items * 500 + districts * customers * per_customer;
        u64::from(self.warehouses) * per_warehouse + items * 200
    }

    /// Whether orders and payments are kept.
    fn keeps_orders(self) -> bool {
        self.mix == Mix::Full
    }
}

/// The workload.
#[derive(Clone, Copy)]
pub(super) struct Tpcc(Shape);

impl Tpcc {
    pub(super) fn new(shape: Shape) -> Self {
        Self(shape)
    }
}

/// The date, in seconds.
fn today() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| since.as_secs())
}

/// A warehouse other than `home`, if there is one.
fn other_warehouse(random: &mut Random, shape: Shape, home: u16) -> u16 {
    let others = u64::from(shape.warehouses) - 1;
    match random.below(others) as u16 {
        _ if others == 0 => home,
        other if other + 1 < home => other + 1,
        other => other + 2,
    }
}

/// A client, and sums over its transactions that have committed.
#[derive(Default)]
pub(super) struct Terminal {
    number: u32,
    payments: u64,
    paid: i64,
    orders: u64,
    lines: u64,
    quantity: u64,
    /// Orders that were undone although all their items exist, or the other way round.
    misjudged: u64,
}

impl Terminal {
    fn enter(&mut self, order: &NewOrder, session: &mut impl Session<Tpcc>) {
        let is_done = session.run(order).is_some();
        self.misjudged += u64::from(is_done == order.is_wrong);
        if is_done {
            self.orders += 1;
            self.lines += order.lines.len() as u64;
            let quantities = order.lines.iter().map(|line| u64::from(line.quantity));
            self.quantity += quantities.sum::<u64>();
        }
    }

    fn pay(&mut self, payment: &Payment, session: &mut impl Session<Tpcc>) {
        if session.run(payment).is_some() {
            self.payments += 1;
            self.paid += payment.amount;
        }
    }
}

impl Work for Tpcc {
    type Tables<E: Engine> = Tables<E>;
    type Terminal = Terminal;

    fn tables<E: Engine>(self, engine: &mut E) -> Tables<E> {
        Tables::new(engine, self.0)
    }

    fn populate(self, session: &mut impl Session<Self>, limit: &SetupLimit) -> Result<(), String> {
        populate::populate(self.0, |rows| {
            session.run(&rows);
            limit.check()
        })
    }

    fn terminal(self, index: usize, _: usize) -> Terminal {
        Terminal {
            // Payments of the beginning have the number 0.
            number: index as u32 + 1,
            ..Terminal::default()
        }
    }

    fn transact(
        self,
        terminal: &mut Terminal,
        random: u64,
        session: &mut impl Session<Self>,
    ) -> u64 {
        let shape = self.0;
        let random = &mut Random::new(random);
        let home = ((terminal.number - 1) % u32::from(shape.warehouses)) as u16 + 1;
        let payment = HistoryKey {
            terminal: terminal.number,
            number: terminal.payments,
        };
        let percent = random.below(100);
        match (shape.mix, percent) {
            (Mix::Full, 0..45) | (Mix::PaymentNewOrder, 0..50) => {
                terminal.enter(&NewOrder::draw(random, shape, home), session);
            }
            (Mix::Full, 45..88) | (Mix::PaymentNewOrder, _) => {
                terminal.pay(&Payment::draw(random, shape, home, payment), session);
            }
            (Mix::Full, 88..92) => {
                let sum = session.run(&OrderStatus::draw(random, shape, home));
                return sum.unwrap_or_default() as u64;
            }
            (Mix::Full, 92..96) => {
                session.run(&Delivery::draw(random, home));
            }
            (Mix::Full, _) => {
                let few = session.run(&StockLevel::draw(random, home, terminal.number));
                return few.unwrap_or_default();
            }
        }
        0
    }

    fn check(
        self,
        terminals: &[&Terminal],
        session: &mut impl Session<Self>,
    ) -> Result<(), String> {
        consistency::Found::look(self.0, terminals, session).check(self.0, terminals)
    }
}
