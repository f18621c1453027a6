//! Makes the page of a result file anew, and prints its answer:
//! `cargo run --release -p corelay-lab-report --example page -- corelay-report/results.json page.html`

use corelay_lab_measure::schema::Results;
use std::error::Error;

fn main() -> Result<(), Box<dyn Error>> {
    let mut args = std::env::args().skip(1);
    let (Some(results), Some(page)) = (args.next(), args.next()) else {
        return Err("usage: page RESULTS.json PAGE.html".into());
    };
    let results: Results = serde_json::from_str(&std::fs::read_to_string(results)?)?;
    std::fs::write(page, corelay_lab_report::html(&results))?;
    print!("{}", corelay_lab_report::verdict(&results).answer());
    Ok(())
}
