//! Operations that must happen together, and in one order, go into one request.
//!
//! A trustee runs requests one after the other, but between two requests of a client it may run
//! another client's. So a critical section that is cut into several requests is no critical section
//! any more.
//!
//! `cargo run -p corelay --example critical_section`

use corelay::{Trust, Trustees};
use std::error::Error;
use std::thread;

/// The seats of a hall, and a record of what was sold, in the order of the seats.
#[derive(Default)]
struct Office {
    next: u32,
    sold: Vec<(u32, &'static str)>,
}

/// Wrong: looks in one request, and acts on what it saw in another.
fn look(office: &Trust<Office>) -> u32 {
    office.apply(|office| office.next)
}
fn take(office: &Trust<Office>, seat: u32, who: &'static str) {
    office.apply(|office| {
        office.next = seat + 1;
        office.sold.push((seat, who));
    });
}

/// Right: the whole section is one request.
fn sell(office: &Trust<Office>, who: &'static str) -> u32 {
    office.apply(|office| {
        let seat = office.next;
        office.next += 1;
        office.sold.push((seat, who));
        seat
    })
}

fn main() -> Result<(), Box<dyn Error>> {
    let trustees = Trustees::dedicated(1).start()?;

    // Two clients, each with the other's request in between: both get the same seat.
    let office = trustees.entrust(Office::default());
    let (hers, his) = (look(&office), look(&office));
    take(&office, hers, "Ada");
    take(&office, his, "Bob");
    println!("cut into two requests, Ada has seat {hers} and Bob has seat {his}");
    assert_eq!(hers, his);

    // As one request there is no in between, whatever the threads do.
    let office = trustees.entrust(Office::default());
    thread::scope(|s| {
        for who in ["Ada", "Bob", "Eve"] {
            let office = &office;
            s.spawn(move || {
                let seats: Vec<u32> = (0..100).map(|_| sell(office, who)).collect();
                assert!(
                    seats.is_sorted_by(|a, b| a < b),
                    "one client's order is kept"
                );
            });
        }
    });
    let sold = office.apply(|office| std::mem::take(&mut office.sold));
    println!(
        "as one request, {} seats are sold, each once, and written down in order",
        sold.len()
    );
    assert!(sold.iter().map(|(seat, _)| *seat).eq(0..300));
    Ok(())
}
