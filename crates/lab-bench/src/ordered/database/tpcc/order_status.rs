//! The transaction Order-Status (clause 2.6).

use super::super::contender::Procedure;
use super::super::engine::{Engine, Transaction};
use super::payment::Who;
use super::random::within;
use super::schema::{CustomerOrderKey, DISTRICTS, DistrictKey, Kept, LineKey, OrderKey, Tables};
use super::{Shape, Tpcc};
use corelay_lab_measure::workload::random::Random;
use std::cmp::Reverse;
use std::ops::ControlFlow::{Break, Continue};

/// A question for a customer's last order.
pub(super) struct OrderStatus(Who);

impl OrderStatus {
    pub(super) fn draw(random: &mut Random, shape: Shape, home: u16) -> Self {
        let district = DistrictKey {
            warehouse: home,
            district: within(random, 1, DISTRICTS.into()) as u8,
        };
        Self(Who::draw(random, shape, district))
    }
}

impl Procedure<Tpcc> for OrderStatus {
    /// The sum of the order's lines.
    type Answer = i64;

    fn is_read_only(&self) -> bool {
        true
    }

    fn run<E: Engine>(
        &self,
        tx: &mut impl Transaction<E>,
        tables: &Tables<E>,
    ) -> Result<i64, E::Stop> {
        let kept = Kept::of(tables);
        let customer = self.0.find(tx, tables)?;
        let balance = tx.read(&tables.customers, &customer, |row| {
            std::hint::black_box((row.first, row.middle, row.last));
            row.balance
        })?;
        balance.expect("the customer is there");
        let mut last = None;
        let of_customer = |order| CustomerOrderKey {
            customer,
            order: Reverse(order),
        };
        let (newest, oldest) = (of_customer(u32::MAX), of_customer(0));
        tx.scan(&kept.orders_of_customers, &newest, &oldest, |key, ()| {
            last = Some(key.order.0);
            Break(())
        })?;
        let Some(order) = last else {
            return Ok(0);
        };
        let order = OrderKey {
            district: customer.district,
            order,
        };
        let found = tx.read(&kept.orders, &order, |row| {
            std::hint::black_box((row.entered, row.carrier));
        })?;
        found.expect("an order of a customer is there");
        let line = |line| LineKey { order, line };
        let mut sum = 0;
        tx.scan(&kept.lines, &line(0), &line(u8::MAX), |_, row| {
            std::hint::black_box((row.item, row.supplier, row.quantity, row.delivered));
            sum += row.amount;
            Continue(())
        })?;
        Ok(sum)
    }
}
