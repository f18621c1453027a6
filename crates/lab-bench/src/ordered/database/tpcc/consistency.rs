//! The consistency conditions (clause 3.3.2), and what the terminals have counted.
//!
//! All tables are read in small transactions while no client runs; the conditions are then checked
//! on what was found.

use super::super::contender::Procedure;
use super::super::engine::{Engine, Transaction};
use super::super::host::Session;
use super::populate::PAID;
use super::schema::{
    CustomerKey, CustomerOrderKey, DISTRICTS, DistrictKey, HistoryKey, Kept, LineKey, OrderKey,
    StockKey, Tables,
};
use super::{Shape, Terminal, Tpcc};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow::Continue;
use std::ops::Range;

/// Keys that one transaction looks at.
const BATCH: u64 = 100;

/// The rows and sums that the conditions compare.
#[derive(Clone, Default)]
pub(super) struct Found {
    /// Year-to-date amounts of the warehouses.
    warehouses: BTreeMap<u16, i64>,
    districts: BTreeMap<DistrictKey, District>,
    customers: BTreeMap<CustomerKey, Account>,
    orders: BTreeMap<OrderKey, Order>,
    new_orders: BTreeSet<OrderKey>,
    lines: BTreeMap<OrderKey, Lines>,
    /// Sums of the payments, by customer and by district.
    paid: BTreeMap<CustomerKey, i64>,
    received: BTreeMap<DistrictKey, i64>,
    stock: Stock,
}

#[derive(Clone, Copy)]
struct District {
    year_to_date: i64,
    next_order: u32,
}

#[derive(Clone, Copy)]
struct Account {
    balance: i64,
    paid: i64,
    deliveries: usize,
}

#[derive(Clone, Copy)]
struct Order {
    customer: u32,
    is_delivered: bool,
    lines: u64,
}

/// The lines of an order.
#[derive(Clone, Copy, Default)]
struct Lines {
    count: u64,
    delivered: u64,
    /// The sum of the delivered lines.
    amount: i64,
}

/// Sums over all stocks.
#[derive(Clone, Copy, Default)]
struct Stock {
    quantity: i64,
    orders: u64,
}

/// A look at some keys.
enum Look {
    Warehouse(u16),
    District(DistrictKey),
    /// Customers with their orders.
    Customers(DistrictKey, Range<u64>, bool),
    NewOrders(DistrictKey),
    /// The lines of orders.
    Lines(DistrictKey, Range<u64>),
    /// Payments of a terminal.
    Payments(u32, Range<u64>),
    Stocks(u16, Range<u64>),
}

impl Procedure<Tpcc> for Look {
    type Answer = Found;

    fn is_read_only(&self) -> bool {
        true
    }

    fn run<E: Engine>(
        &self,
        tx: &mut impl Transaction<E>,
        tables: &Tables<E>,
    ) -> Result<Found, E::Stop> {
        let mut found = Found::default();
        match self {
            Self::Warehouse(warehouse) => {
                let row = tx.read(&tables.warehouses, warehouse, |row| row.year_to_date)?;
                found
                    .warehouses
                    .extend(row.map(|amount| (*warehouse, amount)));
            }
            Self::District(key) => {
                let row = tx.read(&tables.districts, key, |row| District {
                    year_to_date: row.year_to_date,
                    next_order: row.next_order,
                })?;
                found.districts.extend(row.map(|row| (*key, row)));
            }
            Self::Customers(district, customers, has_orders) => {
                found.see_customers(tx, tables, *district, customers.clone())?;
                if *has_orders {
                    found.see_orders(tx, Kept::of(tables), *district, customers)?;
                }
            }
            &Self::NewOrders(district) => {
                let order = |order| OrderKey { district, order };
                let (first, last) = (order(0), order(u32::MAX));
                tx.scan(&Kept::of(tables).new_orders, &first, &last, |key, ()| {
                    found.new_orders.insert(*key);
                    Continue(())
                })?;
            }
            Self::Lines(district, orders) => {
                let line = |order: u64, line| LineKey {
                    order: OrderKey {
                        district: *district,
                        order: order as u32,
                    },
                    line,
                };
                let (first, last) = (line(orders.start, 0), line(orders.end - 1, u8::MAX));
                tx.scan(&Kept::of(tables).lines, &first, &last, |key, row| {
                    let lines = found.lines.entry(key.order).or_default();
                    lines.count += 1;
                    if row.delivered.is_some() {
                        lines.delivered += 1;
                        lines.amount += row.amount;
                    }
                    Continue(())
                })?;
            }
            Self::Payments(terminal, numbers) => {
                for number in numbers.clone() {
                    let key = HistoryKey {
                        terminal: *terminal,
                        number,
                    };
                    let row = tx.read(&Kept::of(tables).history, &key, |row| {
                        (row.customer, row.district, row.amount)
                    })?;
                    if let Some((customer, district, amount)) = row {
                        *found.paid.entry(customer).or_default() += amount;
                        *found.received.entry(district).or_default() += amount;
                    }
                }
            }
            Self::Stocks(warehouse, items) => {
                for item in items.clone() {
                    let key = StockKey {
                        warehouse: *warehouse,
                        item: item as u32,
                    };
                    let row =
                        tx.read(&tables.stocks, &key, |row| (row.year_to_date, row.orders))?;
                    let (quantity, orders) = row.unwrap_or_default();
                    found.stock.quantity += quantity;
                    found.stock.orders += u64::from(orders);
                }
            }
        }
        Ok(found)
    }
}

/// Cuts a range in batches.
fn batches(range: Range<u64>) -> impl Iterator<Item = Range<u64>> {
    let Range { start, end } = range;
    let batch = move |from: u64| from..(from + BATCH).min(end);
    (start..end).step_by(BATCH as usize).map(batch)
}

impl Found {
    fn see_customers<E: Engine>(
        &mut self,
        tx: &mut impl Transaction<E>,
        tables: &Tables<E>,
        district: DistrictKey,
        customers: Range<u64>,
    ) -> Result<(), E::Stop> {
        for customer in customers {
            let key = CustomerKey {
                district,
                customer: customer as u32,
            };
            let row = tx.read(&tables.customers, &key, |row| Account {
                balance: row.balance,
                paid: row.paid,
                deliveries: row.deliveries as usize,
            })?;
            self.customers.extend(row.map(|row| (key, row)));
        }
        Ok(())
    }

    fn see_orders<E: Engine>(
        &mut self,
        tx: &mut impl Transaction<E>,
        kept: &Kept<E>,
        district: DistrictKey,
        customers: &Range<u64>,
    ) -> Result<(), E::Stop> {
        let of = |customer: u64, order| CustomerOrderKey {
            customer: CustomerKey {
                district,
                customer: customer as u32,
            },
            order: Reverse(order),
        };
        let mut keys = Vec::new();
        let (first, last) = (of(customers.start, u32::MAX), of(customers.end - 1, 0));
        tx.scan(&kept.orders_of_customers, &first, &last, |key, ()| {
            keys.push(*key);
            Continue(())
        })?;
        for key in keys {
            let order = OrderKey {
                district,
                order: key.order.0,
            };
            let row = tx.read(&kept.orders, &order, |row| Order {
                customer: row.customer,
                is_delivered: row.carrier.is_some(),
                lines: row.lines.into(),
            })?;
            self.orders.extend(row.map(|row| (order, row)));
        }
        Ok(())
    }

    /// Looks at all tables.
    pub(super) fn look(
        shape: Shape,
        terminals: &[&Terminal],
        session: &mut impl Session<Tpcc>,
    ) -> Self {
        let mut all = Self::default();
        let mut see = |look: Look| all.merge(session.run(&look).unwrap_or_default());
        for warehouse in 1..=shape.warehouses {
            see(Look::Warehouse(warehouse));
            for items in batches(1..u64::from(shape.items()) + 1) {
                see(Look::Stocks(warehouse, items));
            }
        }
        for district in districts(shape) {
            see(Look::District(district));
            for customers in batches(1..u64::from(shape.customers()) + 1) {
                see(Look::Customers(district, customers, shape.keeps_orders()));
            }
        }
        if !shape.keeps_orders() {
            return all;
        }
        let opening = u64::from(shape.customers()) * districts(shape).count() as u64;
        let payments = terminals.iter().map(|t| (t.number, t.payments));
        for (terminal, payments) in payments.chain([(0, opening)]) {
            for numbers in batches(0..payments) {
                see(Look::Payments(terminal, numbers));
            }
        }
        let orders = terminals
            .iter()
            .map(|terminal| terminal.orders)
            .sum::<u64>();
        for district in districts(shape) {
            see(Look::NewOrders(district));
            // More than there are in any district.
            for orders in batches(0..u64::from(shape.customers()) + orders + BATCH) {
                see(Look::Lines(district, orders));
            }
        }
        all
    }

    fn merge(&mut self, more: Self) {
        self.warehouses.extend(more.warehouses);
        self.districts.extend(more.districts);
        self.customers.extend(more.customers);
        self.orders.extend(more.orders);
        self.new_orders.extend(more.new_orders);
        self.lines.extend(more.lines);
        let paid = more.paid.into_iter();
        paid.for_each(|(key, amount)| *self.paid.entry(key).or_default() += amount);
        let received = more.received.into_iter();
        received.for_each(|(key, amount)| *self.received.entry(key).or_default() += amount);
        self.stock.quantity += more.stock.quantity;
        self.stock.orders += more.stock.orders;
    }

    /// Checks the conditions.
    ///
    /// # Errors
    /// The first one that does not hold.
    pub(super) fn check(&self, shape: Shape, terminals: &[&Terminal]) -> Result<(), String> {
        for warehouse in 1..=shape.warehouses {
            self.check_warehouse(warehouse)?;
        }
        self.check_terminals(shape, terminals)?;
        for district in districts(shape) {
            let found = self.districts.get(&district);
            let found = found.ok_or_else(|| format!("{district:?} is missing"))?;
            self.check_customers(shape, district)?;
            if shape.keeps_orders() {
                self.check_orders(shape, district, *found)?;
                self.check_lines(district)?;
            }
        }
        Ok(())
    }

    /// Condition 1.
    fn check_warehouse(&self, warehouse: u16) -> Result<(), String> {
        let amount = self.warehouses.get(&warehouse).copied();
        let of_warehouse = self.districts.range(in_warehouse(warehouse));
        let sum = of_warehouse.map(|(_, found)| found.year_to_date).sum();
        holds(1, amount == Some(sum), || {
            format!("warehouse {warehouse} has received {amount:?}, and its districts {sum}")
        })
    }

    /// Checks that the tables have everything that the terminals committed, once.
    fn check_terminals(&self, shape: Shape, terminals: &[&Terminal]) -> Result<(), String> {
        let sum = |of: fn(&Terminal) -> i64| terminals.iter().map(|t| of(t)).sum::<i64>();
        let opening = i64::from(shape.customers()) * districts(shape).count() as i64;
        let received: i64 = self.warehouses.values().sum();
        let orders = self.districts.values();
        let orders: i64 = orders.map(|found| i64::from(found.next_order) - 1).sum();
        let counts = [
            ("misjudged orders", sum(|t| t.misjudged as i64), 0),
            ("payments", received, opening * PAID + sum(|t| t.paid)),
            ("order numbers", orders, opening + sum(|t| t.orders as i64)),
            (
                "ordered items",
                self.stock.orders as i64,
                sum(|t| t.lines as i64),
            ),
            (
                "ordered quantity",
                self.stock.quantity,
                sum(|t| t.quantity as i64),
            ),
        ];
        let wrong = counts
            .iter()
            .find(|(_, found, committed)| found != committed);
        wrong.map_or(Ok(()), |(what, found, committed)| {
            Err(format!("{what}: {found} found, {committed} committed"))
        })
    }

    /// Conditions 8 to 10 and 12 of a district.
    fn check_customers(&self, shape: Shape, district: DistrictKey) -> Result<(), String> {
        let mut delivered: BTreeMap<CustomerKey, i64> = BTreeMap::new();
        for (key, order) in self.orders.range(orders_of(district)) {
            let customer = order.customer;
            let amount = self.lines.get(key).map_or(0, |lines| lines.amount);
            *delivered
                .entry(CustomerKey { district, customer })
                .or_default() += amount;
        }
        for customer in 1..=shape.customers() {
            let key = CustomerKey { district, customer };
            let account = self.customers.get(&key);
            let account = account.ok_or_else(|| format!("{key:?} is missing"))?;
            let delivered = delivered.get(&key).copied().unwrap_or(0);
            let Account { balance, paid, .. } = *account;
            holds(12, balance + paid == delivered, || {
                format!("{key:?}: balance {balance} + paid {paid}, but delivered {delivered}")
            })?;
            if shape.keeps_orders() {
                let history = self.paid.get(&key).copied().unwrap_or(0);
                holds(10, balance == delivered - history, || {
                    format!("{key:?}: balance {balance}, delivered {delivered}, history {history}")
                })?;
            }
        }
        if !shape.keeps_orders() {
            return Ok(());
        }
        let received = self.received.get(&district).copied();
        let amount = self
            .districts
            .get(&district)
            .map(|found| found.year_to_date);
        // With condition 1, this is also condition 8: that of whole warehouses.
        holds(9, amount == received, || {
            format!("{district:?} has received {amount:?}, and its history has {received:?}")
        })
    }

    /// Conditions 2 to 5 and 11 of a district.
    fn check_orders(
        &self,
        shape: Shape,
        district: DistrictKey,
        found: District,
    ) -> Result<(), String> {
        let last = found.next_order - 1;
        let orders = self.orders.range(orders_of(district));
        let new: BTreeSet<u32> = self
            .new_orders
            .range(orders_of(district))
            .map(|key| key.order)
            .collect();
        let most = orders.clone().next_back().map(|(key, _)| key.order);
        let is_last = |most: Option<u32>| most.is_none_or(|most| most == last);
        holds(
            2,
            most == Some(last) && is_last(new.last().copied()),
            || {
                format!(
                    "{district:?}: last order {most:?}, last new one {:?}, next {}",
                    new.last(),
                    last + 1
                )
            },
        )?;
        let span = new
            .first()
            .zip(new.last())
            .map_or(0, |(first, last)| last - first + 1);
        holds(3, new.len() == span as usize, || {
            format!("{district:?}: {} new orders, of {span} numbers", new.len())
        })?;
        let of_orders: u64 = orders.clone().map(|(_, order)| order.lines).sum();
        let lines = self.lines.range(orders_of(district));
        let count: u64 = lines.map(|(_, lines)| lines.count).sum();
        holds(4, of_orders == count, || {
            format!("{district:?}: orders of {of_orders} lines, but {count} lines")
        })?;
        let wrong = orders
            .clone()
            .find(|(key, order)| order.is_delivered == new.contains(&key.order));
        holds(5, wrong.is_none(), || {
            format!(
                "{:?} is delivered and new, or neither",
                wrong.map(|(key, _)| key)
            )
        })?;
        let customer = |customer| CustomerKey { district, customer };
        let customers = self.customers.range(customer(0)..=customer(u32::MAX));
        let deliveries: usize = customers.map(|(_, account)| account.deliveries).sum();
        let delivered = shape.delivered() as usize + deliveries;
        let (all, new) = (orders.count(), new.len());
        // The specification's 2,100 are those of the beginning.
        holds(11, all - new == delivered, || {
            format!("{district:?}: {all} orders, {new} new, {delivered} delivered")
        })
    }

    /// Conditions 6 and 7 of a district.
    fn check_lines(&self, district: DistrictKey) -> Result<(), String> {
        for (key, order) in self.orders.range(orders_of(district)) {
            let lines = self.lines.get(key).copied().unwrap_or_default();
            holds(6, order.lines == lines.count, || {
                format!("{key:?} of {} lines has {}", order.lines, lines.count)
            })?;
            let delivered = if order.is_delivered { order.lines } else { 0 };
            holds(7, delivered == lines.delivered, || {
                format!(
                    "{key:?}: {} of {} lines delivered",
                    lines.delivered, order.lines
                )
            })?;
        }
        Ok(())
    }
}

fn holds(condition: u32, holds: bool, what: impl FnOnce() -> String) -> Result<(), String> {
    match holds {
        true => Ok(()),
        false => Err(format!("condition {condition} does not hold: {}", what())),
    }
}

fn districts(shape: Shape) -> impl Iterator<Item = DistrictKey> + Clone {
    (1..=shape.warehouses).flat_map(|warehouse| {
        (1..=DISTRICTS).map(move |district| DistrictKey {
            warehouse,
            district,
        })
    })
}

fn in_warehouse(warehouse: u16) -> std::ops::RangeInclusive<DistrictKey> {
    let district = |district| DistrictKey {
        warehouse,
        district,
    };
    district(0)..=district(u8::MAX)
}

fn orders_of(district: DistrictKey) -> std::ops::RangeInclusive<OrderKey> {
    let order = |order| OrderKey { district, order };
    order(0)..=order(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::super::super::contender::Work;
    use super::super::super::engine::plain::Plain;
    use super::super::super::host::{Host, Locked, locked};
    use super::super::{Mix, Shape, Terminal, Tpcc};
    use super::*;
    use corelay_lab_measure::method::SetupLimit;
    use corelay_locks::StdMutex;

    const SHAPE: Shape = Shape {
        mix: Mix::Full,
        warehouses: 2,
        shrink: 100,
    };

    /// Runs a few hundred transactions; what is then found.
    fn run(shape: Shape) -> (Found, [Terminal; 2]) {
        let work = Tpcc::new(shape);
        let host: Locked<Tpcc, StdMutex<Plain>> = locked(work);
        let mut session = Host::<Tpcc>::session(&host);
        work.populate(&mut session, &SetupLimit::default()).unwrap();
        let mut terminals = [work.terminal(0, 2), work.terminal(1, 2)];
        for random in 0..500_u64 {
            for terminal in &mut terminals {
                work.transact(
                    terminal,
                    random.wrapping_mul(0x9e37_79b9_7f4a_7c15),
                    &mut session,
                );
            }
        }
        let found = Found::look(shape, &terminals.each_ref(), &mut session);
        (found, terminals)
    }

    #[test]
    fn tables_are_consistent_after_every_mix() {
        for mix in [Mix::Full, Mix::PaymentNewOrder] {
            let shape = Shape { mix, ..SHAPE };
            let (found, terminals) = run(shape);
            assert_eq!(found.check(shape, &terminals.each_ref()), Ok(()));
            assert!(terminals.iter().all(|t| t.orders > 100 && t.payments > 100));
            let has_orders = shape.keeps_orders();
            assert_eq!(found.orders.len() > 2 * 10 * 30, has_orders);
        }
    }

    #[test]
    fn population_has_the_numbers_of_the_specification() {
        let whole = Shape { shrink: 1, ..SHAPE };
        let numbers = (whole.items(), whole.customers(), whole.names());
        assert_eq!(
            (numbers, whole.delivered()),
            ((100_000, 3_000, 1_000), 2_100)
        );
    }

    /// Each fault is found by its condition.
    #[test]
    fn every_condition_can_fail() {
        let (good, terminals) = run(SHAPE);
        let district = DistrictKey {
            warehouse: 2,
            district: 10,
        };
        let customer = CustomerKey {
            district,
            customer: 30,
        };
        let order = OrderKey { district, order: 1 };
        let new = *good.new_orders.range(orders_of(district)).nth(1).unwrap();
        let finds = |wanted: &str, spoil: &dyn Fn(&mut Found)| {
            let mut bad = good.clone();
            spoil(&mut bad);
            let said = bad.check(SHAPE, &terminals.each_ref()).unwrap_err();
            assert!(said.contains(wanted), "{wanted}: {said}");
        };
        finds("condition 1 ", &|f| *f.warehouses.get_mut(&2).unwrap() += 1);
        finds("order numbers", &|f| {
            f.districts.get_mut(&district).unwrap().next_order += 1;
        });
        finds("condition 2 ", &|f| {
            let last = f.districts[&district].next_order - 1;
            f.orders.remove(&OrderKey {
                district,
                order: last,
            });
        });
        finds("condition 3 ", &|f| {
            f.new_orders.remove(&new);
            f.orders.get_mut(&new).unwrap().is_delivered = true;
        });
        finds("condition 4 ", &|f| {
            f.lines.get_mut(&order).unwrap().count += 1
        });
        finds("condition 5 ", &|f| {
            f.orders.get_mut(&new).unwrap().is_delivered = true
        });
        finds("condition 6 ", &|f| {
            let next = OrderKey { district, order: 2 };
            f.lines.get_mut(&order).unwrap().count += 1;
            f.lines.get_mut(&next).unwrap().count -= 1;
        });
        finds("condition 7 ", &|f| {
            f.lines.get_mut(&order).unwrap().delivered -= 1
        });
        finds("condition 9 ", &|f| {
            *f.received.get_mut(&district).unwrap() -= 1
        });
        finds("condition 10 ", &|f| {
            *f.paid.get_mut(&customer).unwrap() += 1
        });
        finds("condition 11 ", &|f| {
            f.customers.get_mut(&customer).unwrap().deliveries += 1;
        });
        finds("condition 12 ", &|f| {
            f.customers.get_mut(&customer).unwrap().paid += 1
        });
        finds("payments", &|f| {
            *f.warehouses.get_mut(&2).unwrap() += 1;
            f.districts.get_mut(&district).unwrap().year_to_date += 1;
        });
        finds("ordered items", &|f| f.stock.orders -= 1);
        finds("ordered quantity", &|f| f.stock.quantity -= 1);
    }
}
