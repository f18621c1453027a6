//! The transaction Delivery (clause 2.7): the oldest order of each district that waits, in one
//! transaction. There is no queue in front of it.

use super::super::contender::Procedure;
use super::super::engine::{Engine, Transaction};
use super::random::within;
use super::schema::{CustomerKey, DISTRICTS, DistrictKey, Kept, LineKey, OrderKey, Tables};
use super::{Tpcc, today};
use corelay_lab_measure::workload::random::Random;
use std::ops::ControlFlow::Break;

/// A delivery.
pub(super) struct Delivery {
    warehouse: u16,
    carrier: u8,
    date: u64,
}

impl Delivery {
    pub(super) fn draw(random: &mut Random, home: u16) -> Self {
        Self {
            warehouse: home,
            carrier: within(random, 1, 10) as u8,
            date: today(),
        }
    }
}

impl Procedure<Tpcc> for Delivery {
    type Answer = ();

    fn run<E: Engine>(
        &self,
        tx: &mut impl Transaction<E>,
        tables: &Tables<E>,
    ) -> Result<(), E::Stop> {
        let kept = Kept::of(tables);
        for district in 1..=DISTRICTS {
            let district = DistrictKey {
                warehouse: self.warehouse,
                district,
            };
            let order = |order| OrderKey { district, order };
            let mut oldest = None;
            tx.scan(&kept.new_orders, &order(0), &order(u32::MAX), |&key, ()| {
                oldest = Some(key);
                Break(())
            })?;
            let Some(key) = oldest else {
                continue;
            };
            tx.remove(&kept.new_orders, &key)?;
            let order = tx.update(&kept.orders, &key, |row| {
                row.carrier = Some(self.carrier);
                (row.customer, row.lines)
            })?;
            let (customer, lines) = order.expect("an order that waits is there");
            let mut sum = 0;
            for line in 1..=lines {
                let key = LineKey { order: key, line };
                let amount = tx.update(&kept.lines, &key, |row| {
                    row.delivered = Some(self.date);
                    row.amount
                })?;
                sum += amount.expect("the lines of an order are there");
            }
            let customer = CustomerKey { district, customer };
            let is_there = tx.update(&tables.customers, &customer, |row| {
                row.balance += sum;
                row.deliveries += 1;
            })?;
            is_there.expect("the customer is there");
        }
        Ok(())
    }
}
