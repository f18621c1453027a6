//! The tables of TPC-C (clause 1.3), with keys as small structs. Amounts are in cents, rates in
//! hundredths of a percent, dates in seconds. Texts are padded with zeros.

#![expect(
    dead_code,
    reason = "columns that the specification stores and no transaction reads back"
)]

use super::super::engine::{Engine, Form};
use super::Shape;
use corelay_txn::store::OrderedKey;
use std::cmp::Reverse;

/// Districts of a warehouse.
pub(super) const DISTRICTS: u8 = 10;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct DistrictKey {
    pub(super) warehouse: u16,
    pub(super) district: u8,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct CustomerKey {
    pub(super) district: DistrictKey,
    pub(super) customer: u32,
}

/// A last name in a district.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct NameKey {
    pub(super) district: DistrictKey,
    pub(super) last: [u8; 16],
}

/// A payment, by the terminal at which it was made. Those of the beginning are of terminal 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct HistoryKey {
    pub(super) terminal: u32,
    pub(super) number: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct OrderKey {
    pub(super) district: DistrictKey,
    pub(super) order: u32,
}

/// An order of a customer: the newest ones first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct CustomerOrderKey {
    pub(super) customer: CustomerKey,
    pub(super) order: Reverse<u32>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct LineKey {
    pub(super) order: OrderKey,
    pub(super) line: u8,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct StockKey {
    pub(super) warehouse: u16,
    pub(super) item: u32,
}

/// Orders keys as tuples of their fields.
macro_rules! ordered {
    ($($key:ident($($field:ident: $type:ty),*);)*) => {
        $(
            impl OrderedKey for $key {
                const PREFIX_BITS: Option<u32> = <($($type,)*)>::PREFIX_BITS;

                #[inline]
                fn prefix(&self) -> u64 {
                    ($(self.$field,)*).prefix()
                }
            }
        )*
    };
}

ordered! {
    DistrictKey(warehouse: u16, district: u8);
    CustomerKey(district: DistrictKey, customer: u32);
    NameKey(district: DistrictKey, last: [u8; 16]);
    HistoryKey(terminal: u32, number: u64);
    OrderKey(district: DistrictKey, order: u32);
    CustomerOrderKey(customer: CustomerKey, order: Reverse<u32>);
    LineKey(order: OrderKey, line: u8);
    StockKey(warehouse: u16, item: u32);
}

#[derive(Clone)]
pub(super) struct Address {
    pub(super) street_1: [u8; 20],
    pub(super) street_2: [u8; 20],
    pub(super) city: [u8; 20],
    pub(super) state: [u8; 2],
    pub(super) zip: [u8; 9],
}

#[derive(Clone)]
pub(super) struct Warehouse {
    pub(super) name: [u8; 10],
    pub(super) address: Address,
    pub(super) tax: i64,
    pub(super) year_to_date: i64,
}

#[derive(Clone)]
pub(super) struct District {
    pub(super) name: [u8; 10],
    pub(super) address: Address,
    pub(super) tax: i64,
    pub(super) year_to_date: i64,
    pub(super) next_order: u32,
}

#[derive(Clone)]
pub(super) struct Customer {
    pub(super) first: [u8; 16],
    pub(super) middle: [u8; 2],
    pub(super) last: [u8; 16],
    pub(super) address: Address,
    pub(super) phone: [u8; 16],
    pub(super) since: u64,
    pub(super) has_good_credit: bool,
    pub(super) credit_limit: i64,
    pub(super) discount: i64,
    pub(super) balance: i64,
    pub(super) paid: i64,
    pub(super) payments: u32,
    pub(super) deliveries: u32,
    pub(super) data: [u8; 500],
}

#[derive(Clone)]
pub(super) struct History {
    pub(super) customer: CustomerKey,
    pub(super) district: DistrictKey,
    pub(super) date: u64,
    pub(super) amount: i64,
    pub(super) data: [u8; 24],
}

#[derive(Clone)]
pub(super) struct Order {
    pub(super) customer: u32,
    pub(super) entered: u64,
    pub(super) carrier: Option<u8>,
    pub(super) lines: u8,
    pub(super) is_local: bool,
}

#[derive(Clone)]
pub(super) struct Line {
    pub(super) item: u32,
    pub(super) supplier: u16,
    pub(super) delivered: Option<u64>,
    pub(super) quantity: u8,
    pub(super) amount: i64,
    pub(super) district_info: [u8; 24],
}

#[derive(Clone)]
pub(super) struct Item {
    pub(super) image: u32,
    pub(super) name: [u8; 24],
    pub(super) price: i64,
    pub(super) data: [u8; 50],
}

#[derive(Clone)]
pub(super) struct Stock {
    pub(super) quantity: i32,
    pub(super) districts: [[u8; 24]; DISTRICTS as usize],
    pub(super) year_to_date: i64,
    pub(super) orders: u32,
    pub(super) remote_orders: u32,
    pub(super) data: [u8; 50],
}

/// All tables. The orders' tables and the history are `None` where orders are not kept.
pub(in super::super) struct Tables<E: Engine> {
    pub(super) warehouses: E::Table<u16, Warehouse>,
    pub(super) districts: E::Table<DistrictKey, District>,
    pub(super) customers: E::Table<CustomerKey, Customer>,
    /// The customers of a last name, by their first names. Nobody moves or changes a name, so that
    /// a row has them all.
    pub(super) customers_by_name: E::Table<NameKey, Box<[u32]>>,
    pub(super) items: E::Table<u32, Item>,
    pub(super) stocks: E::Table<StockKey, Stock>,
    pub(super) kept: Option<Kept<E>>,
}

/// The tables that grow.
pub(in super::super) struct Kept<E: Engine> {
    pub(super) history: E::Table<HistoryKey, History>,
    pub(super) orders: E::Table<OrderKey, Order>,
    pub(super) orders_of_customers: E::Table<CustomerOrderKey, ()>,
    pub(super) new_orders: E::Table<OrderKey, ()>,
    pub(super) lines: E::Table<LineKey, Line>,
}

impl<E: Engine> Tables<E> {
    pub(super) fn new(engine: &mut E, shape: Shape) -> Self {
        let (warehouses, items) = (shape.warehouses as usize, shape.items() as usize);
        let districts = warehouses * usize::from(DISTRICTS);
        let customers = districts * shape.customers() as usize;
        let hashed = Form::Hashed;
        Self {
            warehouses: engine.table("warehouses", hashed(warehouses)),
            districts: engine.table("districts", hashed(districts)),
            customers: engine.table("customers", hashed(customers)),
            customers_by_name: engine.table(
                "customers_by_name",
                hashed(districts * shape.names() as usize),
            ),
            items: engine.table("items", hashed(items)),
            stocks: engine.table("stocks", hashed(warehouses * items)),
            kept: shape.keeps_orders().then(|| Kept {
                history: engine.table("history", hashed(2 * customers)),
                orders: engine.table("orders", hashed(2 * customers)),
                orders_of_customers: engine.table("orders_of_customers", Form::Sorted),
                new_orders: engine.table("new_orders", Form::Sorted),
                lines: engine.table("lines", Form::Sorted),
            }),
        }
    }
}

impl<E: Engine> Kept<E> {
    /// The tables of a workload that keeps orders.
    pub(super) fn of(tables: &Tables<E>) -> &Self {
        let kept = tables.kept.as_ref();
        kept.expect("transactions on orders are run where orders are kept")
    }
}
