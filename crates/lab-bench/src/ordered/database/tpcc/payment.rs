//! The transaction Payment (clause 2.5).

use super::super::contender::Procedure;
use super::super::engine::{Engine, Transaction};
use super::random::{self, C_RUN, last_name, text, within};
use super::schema::{CustomerKey, DISTRICTS, DistrictKey, History, HistoryKey, NameKey, Tables};
use super::{Shape, Tpcc, other_warehouse, today};
use corelay_lab_measure::workload::random::Random;
use std::io::Write;

/// A payment.
pub(super) struct Payment {
    district: DistrictKey,
    who: Who,
    pub(super) amount: i64,
    key: HistoryKey,
    date: u64,
}

/// How a customer is found.
#[derive(Clone, Copy)]
pub(super) enum Who {
    Number(CustomerKey),
    Name(NameKey),
}

impl Who {
    /// A customer of a district: 60 % by last name.
    pub(super) fn draw(random: &mut Random, shape: Shape, district: DistrictKey) -> Self {
        match random.below(100) {
            0..60 => Self::Name(NameKey {
                district,
                last: last_name(random::name(random, C_RUN, shape.names())),
            }),
            _ => Self::Number(CustomerKey {
                district,
                customer: random::customer(random, shape.customers()),
            }),
        }
    }

    /// The customer's key. Of those with the same last name it is the middle one by first name.
    pub(super) fn find<E: Engine>(
        self,
        tx: &mut impl Transaction<E>,
        tables: &Tables<E>,
    ) -> Result<CustomerKey, E::Stop> {
        let key = match self {
            Self::Number(key) => return Ok(key),
            Self::Name(key) => key,
        };
        let customer = tx.read(&tables.customers_by_name, &key, |all| {
            all[all.len().div_ceil(2) - 1]
        })?;
        Ok(CustomerKey {
            district: key.district,
            customer: customer.expect("there are customers of each name"),
        })
    }
}

impl Payment {
    pub(super) fn draw(random: &mut Random, shape: Shape, home: u16, key: HistoryKey) -> Self {
        let mut any = |warehouse| DistrictKey {
            warehouse,
            district: within(random, 1, DISTRICTS.into()) as u8,
        };
        let district = any(home);
        let elsewhere = any(home).district;
        // 15 % of the customers come from another warehouse, if there is one.
        let of_customer = match random.below(100) {
            0..85 => district,
            _ => DistrictKey {
                warehouse: other_warehouse(random, shape, home),
                district: elsewhere,
            },
        };
        Self {
            district,
            who: Who::draw(random, shape, of_customer),
            amount: within(random, 100, 500_000) as i64,
            key,
            date: today(),
        }
    }
}

impl Procedure<Tpcc> for Payment {
    type Answer = ();

    fn run<E: Engine>(
        &self,
        tx: &mut impl Transaction<E>,
        tables: &Tables<E>,
    ) -> Result<(), E::Stop> {
        let Self {
            district,
            amount,
            date,
            ..
        } = *self;
        let warehouse = tx.update(&tables.warehouses, &district.warehouse, |row| {
            row.year_to_date += amount;
            (row.name, row.address.clone())
        })?;
        let place = tx.update(&tables.districts, &district, |row| {
            row.year_to_date += amount;
            (row.name, row.address.clone())
        })?;
        let (warehouse, _) = warehouse.expect("the warehouse is there");
        let (place, _) = place.expect("the district is there");
        let customer = self.who.find(tx, tables)?;
        let is_there = tx.update(&tables.customers, &customer, |row| {
            row.balance -= amount;
            row.paid += amount;
            row.payments += 1;
            // The peer leaves this out, too.
            if tables.kept.is_some() && !row.has_good_credit {
                note(&mut row.data, customer, district, amount);
            }
        })?;
        is_there.expect("the customer is there");
        if let Some(kept) = &tables.kept {
            let payment = History {
                customer,
                district,
                date,
                amount,
                data: text(&[&warehouse[..], b"    ", &place[..]].concat()),
            };
            let is_new = tx.insert(&kept.history, self.key, payment)?;
            assert!(is_new, "a terminal counts its payments");
        }
        Ok(())
    }
}

/// Puts a payment at the beginning of a customer's data, and cuts off its end.
fn note(data: &mut [u8; 500], customer: CustomerKey, district: DistrictKey, amount: i64) {
    let old = *data;
    let mut rest = &mut data[..];
    let done = write!(
        rest,
        "{} {} {} {} {} {amount}|",
        customer.customer,
        customer.district.district,
        customer.district.warehouse,
        district.district,
        district.warehouse,
    );
    done.expect("a few numbers are shorter than the data");
    let length = rest.len();
    rest.copy_from_slice(&old[..length]);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notes_of_bad_payers_push_older_data_out() {
        let mut data = [b'x'; 500];
        let district = DistrictKey {
            warehouse: 7,
            district: 3,
        };
        let customer = CustomerKey {
            district,
            customer: 42,
        };
        note(&mut data, customer, district, 1234);
        assert!(data.starts_with(b"42 3 7 3 7 1234|xx"));
        note(&mut data, customer, district, 5);
        assert!(data.starts_with(b"42 3 7 3 7 5|42 3 7 3 7 1234|xx"));
    }
}
