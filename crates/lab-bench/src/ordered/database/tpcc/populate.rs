//! The rows of the beginning (clause 4.3.3.1).

use super::super::contender::Procedure;
use super::super::engine::{Engine, Transaction};
use super::random::{C_LOAD, data, digits, last_name, letters, name, within};
use super::schema::{
    Address, Customer, CustomerKey, CustomerOrderKey, DISTRICTS, District, DistrictKey, History,
    HistoryKey, Item, Kept, Line, LineKey, NameKey, Order, OrderKey, Stock, StockKey, Tables,
    Warehouse,
};
use super::{Shape, Tpcc, today};
use corelay_lab_measure::workload::random::Random;
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// A customer's payments before the beginning, in cents.
pub(super) const PAID: i64 = 1_000;

/// Some rows that one transaction inserts.
pub(super) enum Rows {
    Item(u32, Item),
    Warehouse(u16, Warehouse),
    Stock(StockKey, Box<Stock>),
    District(DistrictKey, District),
    Customer(CustomerKey, Box<Customer>),
    Name(NameKey, Box<[u32]>),
    History(HistoryKey, History),
    Order(OrderKey, Order, Vec<Line>),
}

impl Procedure<Tpcc> for Rows {
    type Answer = ();

    fn run<E: Engine>(
        &self,
        tx: &mut impl Transaction<E>,
        tables: &Tables<E>,
    ) -> Result<(), E::Stop> {
        let is_new = match self {
            Self::Item(key, row) => tx.insert(&tables.items, *key, row.clone()),
            Self::Warehouse(key, row) => tx.insert(&tables.warehouses, *key, row.clone()),
            Self::Stock(key, row) => tx.insert(&tables.stocks, *key, (**row).clone()),
            Self::District(key, row) => tx.insert(&tables.districts, *key, row.clone()),
            Self::Customer(key, row) => tx.insert(&tables.customers, *key, (**row).clone()),
            Self::Name(key, row) => tx.insert(&tables.customers_by_name, *key, row.clone()),
            Self::History(key, row) => tx.insert(&Kept::of(tables).history, *key, row.clone()),
            Self::Order(key, row, lines) => {
                insert_order(tx, Kept::of(tables), *key, row, lines.iter().cloned())
            }
        }?;
        assert!(is_new, "the keys of the beginning differ");
        Ok(())
    }
}

/// Inserts an order with its lines. Returns whether all are new.
pub(super) fn insert_order<E: Engine>(
    tx: &mut impl Transaction<E>,
    kept: &Kept<E>,
    key: OrderKey,
    order: &Order,
    lines: impl Iterator<Item = Line>,
) -> Result<bool, E::Stop> {
    let customer = CustomerKey {
        district: key.district,
        customer: order.customer,
    };
    let of_customer = CustomerOrderKey {
        customer,
        order: Reverse(key.order),
    };
    let mut is_new = tx.insert(&kept.orders, key, order.clone())?;
    is_new &= tx.insert(&kept.orders_of_customers, of_customer, ())?;
    if order.carrier.is_none() {
        is_new &= tx.insert(&kept.new_orders, key, ())?;
    }
    for (line, number) in lines.zip(1..) {
        let key = LineKey {
            order: key,
            line: number,
        };
        is_new &= tx.insert(&kept.lines, key, line)?;
    }
    Ok(is_new)
}

/// Makes all rows, and gives them to `insert`.
pub(super) fn populate(
    shape: Shape,
    mut insert: impl FnMut(Rows) -> Result<(), String>,
) -> Result<(), String> {
    let mut random = Random::new(1);
    for number in 1..=shape.items() {
        insert(Rows::Item(number, item(&mut random)))?;
    }
    let mut payments = 0..;
    for number in 1..=shape.warehouses {
        let per_district = i64::from(shape.customers()) * PAID;
        let warehouse = Warehouse {
            name: letters(&mut random, 6),
            address: address(&mut random),
            tax: random.below(2001) as i64,
            year_to_date: i64::from(DISTRICTS) * per_district,
        };
        insert(Rows::Warehouse(number, warehouse))?;
        for item in 1..=shape.items() {
            let key = StockKey {
                warehouse: number,
                item,
            };
            insert(Rows::Stock(key, Box::new(stock(&mut random))))?;
        }
        for district in 1..=DISTRICTS {
            let key = DistrictKey {
                warehouse: number,
                district,
            };
            let district = District {
                name: letters(&mut random, 6),
                address: address(&mut random),
                tax: random.below(2001) as i64,
                year_to_date: per_district,
                next_order: shape.customers() + 1,
            };
            insert(Rows::District(key, district))?;
            customers(&mut random, key, shape, &mut payments, &mut insert)?;
            if shape.keeps_orders() {
                orders(&mut random, key, shape, &mut insert)?;
            }
        }
    }
    Ok(())
}

fn customers(
    random: &mut Random,
    district: DistrictKey,
    shape: Shape,
    payments: &mut impl Iterator<Item = u64>,
    mut insert: impl FnMut(Rows) -> Result<(), String>,
) -> Result<(), String> {
    let mut by_name: BTreeMap<_, Vec<_>> = BTreeMap::new();
    for customer in 1..=shape.customers() {
        // Each name has one customer at least.
        let last = match customer - 1 {
            number if number < shape.names() => number,
            _ => name(random, C_LOAD, shape.names()),
        };
        let row = self::customer(random, last_name(last));
        let key = CustomerKey { district, customer };
        by_name
            .entry(row.last)
            .or_default()
            .push((row.first, customer));
        insert(Rows::Customer(key, Box::new(row)))?;
        if let Some(number) = payments.next().filter(|_| shape.keeps_orders()) {
            let key_of_payment = HistoryKey {
                terminal: 0,
                number,
            };
            let payment = History {
                customer: key,
                district,
                date: today(),
                amount: PAID,
                data: letters(random, 12),
            };
            insert(Rows::History(key_of_payment, payment))?;
        }
    }
    for (last, mut customers) in by_name {
        customers.sort_unstable();
        let numbers = customers.iter().map(|&(_, customer)| customer).collect();
        insert(Rows::Name(NameKey { district, last }, numbers))?;
    }
    Ok(())
}

fn orders(
    random: &mut Random,
    district: DistrictKey,
    shape: Shape,
    mut insert: impl FnMut(Rows) -> Result<(), String>,
) -> Result<(), String> {
    let mut customers: Vec<u32> = (1..=shape.customers()).collect();
    for place in (1..customers.len()).rev() {
        customers.swap(place, random.below(place as u64 + 1) as usize);
    }
    for (order, customer) in (1..).zip(customers) {
        let is_delivered = order <= shape.delivered();
        let order_row = Order {
            customer,
            entered: today(),
            carrier: is_delivered.then(|| within(random, 1, 10) as u8),
            lines: within(random, 5, 15) as u8,
            is_local: true,
        };
        let line = |_| Line {
            item: within(random, 1, shape.items().into()) as u32,
            supplier: district.warehouse,
            delivered: is_delivered.then(today),
            quantity: 5,
            amount: match is_delivered {
                true => 0,
                false => within(random, 1, 999_999) as i64,
            },
            district_info: letters(random, 24),
        };
        let lines = (0..order_row.lines).map(line).collect();
        insert(Rows::Order(OrderKey { district, order }, order_row, lines))?;
    }
    Ok(())
}

fn item(random: &mut Random) -> Item {
    Item {
        image: within(random, 1, 10_000) as u32,
        name: letters(random, 14),
        price: within(random, 100, 10_000) as i64,
        data: data(random),
    }
}

fn stock(random: &mut Random) -> Stock {
    Stock {
        quantity: within(random, 10, 100) as i32,
        districts: std::array::from_fn(|_| letters(random, 24)),
        year_to_date: 0,
        orders: 0,
        remote_orders: 0,
        data: data(random),
    }
}

fn customer(random: &mut Random, last: [u8; 16]) -> Customer {
    Customer {
        first: letters(random, 8),
        middle: *b"OE",
        last,
        address: address(random),
        phone: digits(random),
        since: today(),
        has_good_credit: random.below(10) > 0,
        credit_limit: 5_000_000,
        discount: random.below(5001) as i64,
        balance: -PAID,
        paid: PAID,
        payments: 1,
        deliveries: 0,
        data: letters(random, 300),
    }
}

fn address(random: &mut Random) -> Address {
    let mut zip = [b'1'; 9];
    zip[..4].copy_from_slice(&digits::<4>(random));
    Address {
        street_1: letters(random, 10),
        street_2: letters(random, 10),
        city: letters(random, 10),
        state: letters(random, 2),
        zip,
    }
}
