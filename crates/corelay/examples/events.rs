//! Events of corelay for a subscriber of `tracing`: `cargo run --example events --features tracing`.
//!
//! A program would have `tracing_subscriber::fmt().init()`. This subscriber is small enough to be
//! read, and the example checks what it is told.

use corelay::{Trustees, barrier, name};
use std::fmt::{Debug, Write};
use std::sync::Mutex;
use tracing::field::{Field, Visit};
use tracing::{Event, Metadata, Subscriber, span};

static LINES: Mutex<Vec<String>> = Mutex::new(Vec::new());

/// A subscriber that prints events of corelay, one a line.
struct Printer;

/// A line that is being written: the fields of an event.
struct Line(String);

impl Visit for Line {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        let _ = write!(self.0, " {}={value:?}", field.name());
    }
}

impl Subscriber for Printer {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.is_event() && metadata.target().starts_with("corelay::")
    }

    fn event(&self, event: &Event<'_>) {
        let metadata = event.metadata();
        let mut line = Line(format!("{} {}:", metadata.level(), metadata.target()));
        event.record(&mut line);
        println!("{}", line.0);
        LINES.lock().expect("nobody panics").push(line.0);
    }

    fn new_span(&self, _: &span::Attributes<'_>) -> span::Id {
        span::Id::from_u64(1) // corelay has events only
    }

    fn record(&self, _: &span::Id, _: &span::Record<'_>) {}

    fn record_follows_from(&self, _: &span::Id, _: &span::Id) {}

    fn enter(&self, _: &span::Id) {}

    fn exit(&self, _: &span::Id) {}
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    tracing::subscriber::set_global_default(Printer)?;
    let trustees = Trustees::dedicated(1).name("owner").window(4).start()?;
    let stock = trustees.entrust(8u32).named("stock");
    let checkout = stock.request(name!("checkout"));

    // More requests than the window takes: this thread waits for room.
    checkout.post(|_| std::thread::sleep(std::time::Duration::from_millis(1)));
    (0..8).for_each(|_| checkout.post(|stock| *stock = stock.checked_sub(1).expect("in stock")));
    barrier()?;
    // One too many: the closure panics.
    checkout.post(|stock| *stock = stock.checked_sub(1).expect("in stock"));
    assert!(barrier().is_err());

    let lines = LINES.lock().expect("nobody panics");
    assert!(lines[0].starts_with("DEBUG corelay::wait_for_room:"));
    let last = lines.last().expect("at least two");
    assert!(last.starts_with("ERROR corelay::poisoned:"), "{last}");
    assert!(last.contains(r#"object="\"stock\" (u32)" closure="checkout" panic="in stock""#));
    Ok(())
}
