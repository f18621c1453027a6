//! The transaction New-Order (clause 2.4).

use super::super::contender::Procedure;
use super::super::engine::{Engine, Transaction};
use super::populate::insert_order;
use super::random::{self, within};
use super::schema::{CustomerKey, DISTRICTS, DistrictKey, Line, Order, OrderKey, StockKey, Tables};
use super::{Shape, Tpcc, other_warehouse, today};
use corelay_lab_measure::workload::random::Random;

/// An order that is entered.
pub(super) struct NewOrder {
    customer: CustomerKey,
    pub(super) lines: Vec<Entered>,
    date: u64,
    /// Whether the last item does not exist, so that the order is undone.
    pub(super) is_wrong: bool,
}

/// A line of an order.
#[derive(Clone, Copy)]
pub(super) struct Entered {
    item: u32,
    supplier: u16,
    pub(super) quantity: u8,
}

impl NewOrder {
    pub(super) fn draw(random: &mut Random, shape: Shape, home: u16) -> Self {
        let district = DistrictKey {
            warehouse: home,
            district: within(random, 1, DISTRICTS.into()) as u8,
        };
        let customer = random::customer(random, shape.customers());
        let mut lines = Vec::with_capacity(15);
        for _ in 0..within(random, 5, 15) {
            let item = random::item(random, shape.items());
            let is_remote = random.below(100) == 0;
            let entered = Entered {
                item,
                supplier: match is_remote {
                    true => other_warehouse(random, shape, home),
                    false => home,
                },
                quantity: within(random, 1, 10) as u8,
            };
            // As the peer does it: no item twice in an order.
            let is_twice = |other: &Entered| other.item == item;
            if shape.keeps_orders() || !lines.iter().any(is_twice) {
                lines.push(entered);
            }
        }
        // One in a hundred has a last item that does not exist, and is undone.
        let is_wrong = shape.keeps_orders() && random.below(100) == 0;
        if is_wrong && let Some(last) = lines.last_mut() {
            last.item = shape.items() + 1;
        }
        Self {
            customer: CustomerKey { district, customer },
            lines,
            date: today(),
            is_wrong,
        }
    }
}

impl Procedure<Tpcc> for NewOrder {
    type Answer = ();

    fn run<E: Engine>(
        &self,
        tx: &mut impl Transaction<E>,
        tables: &Tables<E>,
    ) -> Result<(), E::Stop> {
        let Self {
            customer,
            lines,
            date,
            ..
        } = self;
        let district = customer.district;
        if !E::UNDOES {
            for line in lines {
                if tx.read(&tables.items, &line.item, |_| ())?.is_none() {
                    return tx.give_up();
                }
            }
        }
        let home = tx.read(&tables.warehouses, &district.warehouse, |row| row.tax)?;
        let buyer = tx.read(&tables.customers, customer, |row| {
            (row.discount, row.last, row.has_good_credit)
        })?;
        let place = tx.update(&tables.districts, &district, |row| {
            row.next_order += 1;
            (row.next_order - 1, row.tax)
        })?;
        let home_tax = home.expect("the warehouse is there");
        let (discount, ..) = buyer.expect("the customer is there");
        let (number, tax) = place.expect("the district is there");

        let is_local = lines.iter().all(|line| line.supplier == district.warehouse);
        let (mut made, mut total) = (Vec::with_capacity(lines.len()), 0);
        for line in lines {
            let price = tx.read(&tables.items, &line.item, |row| row.price)?;
            let Some(price) = price else {
                return tx.give_up();
            };
            let key = StockKey {
                warehouse: line.supplier,
                item: line.item,
            };
            let quantity = i32::from(line.quantity);
            let info = tx.update(&tables.stocks, &key, |row| {
                row.quantity -= quantity;
                if row.quantity < 10 {
                    row.quantity += 91;
                }
                row.year_to_date += i64::from(quantity);
                row.orders += 1;
                row.remote_orders += u32::from(line.supplier != district.warehouse);
                row.districts[usize::from(district.district) - 1]
            })?;
            let amount = price * i64::from(quantity);
            total += amount;
            made.push(Line {
                item: line.item,
                supplier: line.supplier,
                delivered: None,
                quantity: line.quantity,
                amount,
                district_info: info.expect("the stock is there"),
            });
        }
        std::hint::black_box(total * (10_000 - discount) * (10_000 + home_tax + tax));
        if let Some(kept) = &tables.kept {
            let order = Order {
                customer: customer.customer,
                entered: *date,
                carrier: None,
                lines: lines.len() as u8,
                is_local,
            };
            let key = OrderKey {
                district,
                order: number,
            };
            let is_new = insert_order(tx, kept, key, &order, made.into_iter())?;
            // Some stores show a transaction what never existed at one moment, and run it again.
            if !is_new {
                return tx.give_up();
            }
        }
        Ok(())
    }
}
