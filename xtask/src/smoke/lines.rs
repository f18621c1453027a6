//! `corelay model lines`, briefly: counts that are known, twice the same, and what does not fit
//! is marked.

use super::missing;
use serde_json::Value;

/// A machine of 8 hardware threads, on which the last number of clients has no room.
pub(super) const ARGS: &[&str] = &[
    "model",
    "lines",
    "--method",
    "atomic,mcs,ffwd,trust",
    "--machine",
    "2x4x1",
    "--clients",
    "4,64",
    "--json",
];

const WHAT: &str = "model: lines moved per operation";

/// Lines that each method moves for an operation of 4 clients, within this much. An addition
/// takes the word along; the others are worked out in crates/lines/tests/by_hand.rs, but for
/// ffwd, whose groups are not full here.
const MOVED: &[(&str, f64, f64)] = &[
    ("atomic", 1.0, 0.02),
    ("mcs", 6.0, 0.1),
    ("ffwd", 2.5, 0.7),
    ("trust", 3.0, 0.3),
];

const COUNTED: &[&str] = &["placement", "operations", "all", "fewest", "most"];

/// What is wrong with the outputs of two runs.
pub(super) fn complaints(first: &str, second: &str) -> Vec<String> {
    if first != second {
        return vec!["model lines: two runs differ".to_owned()];
    }
    let Ok(output) = serde_json::from_str::<Value>(first) else {
        return vec![format!("model lines: no JSON: {first}")];
    };
    let mut found = missing(
        &output,
        &["schema", "machine", "pin", "rows"],
        "model lines",
    );
    if output["what"] != WHAT {
        found.push(format!("model lines is headed {}", output["what"]));
    }
    for &(method, expected, within) in MOVED {
        let row = |clients: u64| {
            let rows = output["rows"].as_array().map_or(&[][..], Vec::as_slice);
            let is_it = |row: &&Value| row["method"] == method && row["clients"] == clients;
            rows.iter().find(is_it).cloned().unwrap_or_default()
        };
        let name = format!("model lines, {method}");
        let counted = row(4);
        found.extend(missing(&counted, COUNTED, &name));
        let by_distance = counted["all"]["moved"].as_object();
        let moved: u64 = by_distance.map_or(0, |by| by.values().filter_map(Value::as_u64).sum());
        let per_operation = moved as f64 / counted["operations"].as_f64().unwrap_or(f64::NAN);
        if (per_operation - expected).abs() > within || per_operation.is_nan() {
            found.push(format!("{name}: {per_operation} lines, not {expected}"));
        }
        if row(64).get("unavailable").is_none() {
            found.push(format!("{name}: 64 clients fit on 8 hardware threads"));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn output() -> Value {
        let row = |&(method, moved, _): &(&str, f64, f64)| {
            let across = (moved * 50.0) as u64;
            let moved = json!({"core": 0, "socket": across, "across": across});
            [
                json!({"method": method, "clients": 4, "placement": [], "operations": 100,
                       "all": {"moved": moved}, "fewest": 1, "most": 1}),
                json!({"method": method, "clients": 64, "unavailable": "65 threads"}),
            ]
        };
        let rows: Vec<Value> = MOVED.iter().flat_map(row).collect();
        json!({"schema": 1, "what": WHAT, "machine": "2x4x1", "pin": "sockets", "rows": rows})
    }

    #[test]
    fn known_counts_pass_and_others_are_found() {
        let good = output().to_string();
        assert_eq!(complaints(&good, &good), [""; 0]);
        assert!(complaints(&good, "{}")[0].contains("differ"));
        assert!(complaints("?", "?")[0].contains("no JSON"));
        let complaint = |spoil: fn(&mut Value)| {
            let mut output = output();
            spoil(&mut output);
            complaints(&output.to_string(), &output.to_string()).join("; ")
        };
        assert!(complaint(|o| o["what"] = json!("measured")).contains("headed"));
        let more = |o: &mut Value| o["rows"][0]["all"]["moved"]["core"] = json!(10);
        assert!(complaint(more).contains("atomic: 1.1 lines"));
        assert!(complaint(|o| o["rows"][2] = json!({})).contains("no `operations`"));
        assert!(complaint(|o| o["rows"][3] = json!({})).contains("mcs: 64 clients fit"));
    }
}
