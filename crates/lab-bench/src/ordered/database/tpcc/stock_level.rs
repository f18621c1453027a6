//! The transaction Stock-Level (clause 2.8).

use super::super::contender::Procedure;
use super::super::engine::{Engine, Transaction};
use super::Tpcc;
use super::random::within;
use super::schema::{DISTRICTS, DistrictKey, Kept, LineKey, OrderKey, StockKey, Tables};
use corelay_lab_measure::workload::random::Random;
use std::ops::ControlFlow::Continue;

/// The number of a district's last orders that are looked at.
const ORDERS: u32 = 20;

/// A question for the items of the last orders of which few are left.
pub(super) struct StockLevel {
    district: DistrictKey,
    threshold: i32,
}

impl StockLevel {
    /// A question of a terminal, which always asks for the same district.
    pub(super) fn draw(random: &mut Random, home: u16, terminal: u32) -> Self {
        Self {
            district: DistrictKey {
                warehouse: home,
                district: (terminal % u32::from(DISTRICTS)) as u8 + 1,
            },
            threshold: within(random, 10, 20) as i32,
        }
    }
}

impl Procedure<Tpcc> for StockLevel {
    /// The number of items.
    type Answer = u64;

    fn is_read_only(&self) -> bool {
        true
    }

    fn run<E: Engine>(
        &self,
        tx: &mut impl Transaction<E>,
        tables: &Tables<E>,
    ) -> Result<u64, E::Stop> {
        let district = self.district;
        let next = tx.read(&tables.districts, &district, |row| row.next_order)?;
        let next = next.expect("the district is there");
        let line = |order, line| LineKey {
            order: OrderKey { district, order },
            line,
        };
        let mut items = Vec::with_capacity(300);
        let first = line(next.saturating_sub(ORDERS), 0);
        tx.scan(
            &Kept::of(tables).lines,
            &first,
            &line(next - 1, u8::MAX),
            |_, row| {
                items.push(row.item);
                Continue(())
            },
        )?;
        items.sort_unstable();
        items.dedup();
        let mut few = 0;
        for item in items {
            let key = StockKey {
                warehouse: district.warehouse,
                item,
            };
            let left = tx.read(&tables.stocks, &key, |row| row.quantity)?;
            few += u64::from(left.expect("the stock is there") < self.threshold);
        }
        Ok(few)
    }
}
