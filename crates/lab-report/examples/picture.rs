//! Draws the main picture of a result file as a stand-alone SVG, like the README's:
//! `cargo run --release -p corelay-lab-report --example picture -- corelay-report/results.json > docs/report.svg`

use corelay_lab_measure::schema::Results;
use std::error::Error;

fn main() -> Result<(), Box<dyn Error>> {
    let path = std::env::args()
        .nth(1)
        .ok_or("usage: picture RESULTS.json")?;
    let results: Results = serde_json::from_str(&std::fs::read_to_string(path)?)?;
    println!("{}", corelay_lab_report::picture(&results));
    Ok(())
}
