//! The lab's models from the outside: figures that the sources have.

use super::{TOP, lab, missing};
use anyhow::Result;
use serde_json::Value;
use std::path::Path;

/// Models whose figures the sources have, and where in their JSON these figures stand.
type Figures = &'static [(&'static str, f64)];
const MODELS: &[(&str, Figures)] = &[
    (
        "contention --threads 56 --vars 2^14,2^19,16",
        &[
            ("/0/probability", 0.0898),
            ("/1/probability", 0.002_933),
            ("/2/fewest_contending", 41.0),
        ],
    ),
    (
        "residency --servers 16 --l2 983040 --l3 39424000 --vars 2^18",
        &[
            ("/l2/capacity", 245_760.0),
            ("/shares/0/in_l2", 0.9375),
            ("/shares/0/from_memory", 0.0),
        ],
    ),
    (
        "footprint --servers 16 --clients 40 --lines 16x32",
        &[
            ("/source_bytes", 93_000.0),
            ("/channels/1/pair/both", 64.0),
            ("/channels/2/pair/both", 1280.0),
        ],
    ),
    (
        "ceilings --rtt 400 --clients 120 --ghz 2.2",
        &[
            ("/ceilings/clients_mops", 300.0),
            ("/ceilings/in_flight", 120.0),
            ("/ceilings/processing_mops", 55.0),
        ],
    ),
    (
        "throughput --ts 40 --tc 20 --threads 56",
        &[
            ("/model/best/servers", 19.0),
            ("/model/points/0/model", 40.0),
            ("/model/points/54/model", 20.0),
        ],
    ),
];

/// The model that measures, briefly, where there are two CPUs.
const THROUGHPUT: &str = "throughput --threads 2 --samples 10 --secs 0.02";

/// Each model as JSON, with the figures that it must have.
pub(super) fn run(program: &Path, dir: &Path) -> Result<Vec<String>> {
    let mut found = Vec::new();
    let said = |line: &str| {
        let args: Vec<_> = ["model"].into_iter().chain(line.split(' ')).collect();
        let ended = lab(program, dir, &[&args[..], &["--json"]].concat())?;
        let read = serde_json::from_str::<Value>(&ended.output);
        anyhow::Ok(match read {
            Ok(said) if ended.good() => Ok(said),
            Ok(_) => Err(format!("model {line}: {}", ended.how())),
            Err(_) => Err(format!("model {line}: no JSON: {}", ended.output)),
        })
    };
    for (line, figures) in MODELS {
        match said(line)? {
            Ok(said) => found.extend(complaints_about_model(line, &said, figures)),
            Err(complaint) => found.push(complaint),
        }
    }
    if std::thread::available_parallelism().is_ok_and(|cpus| cpus.get() >= 2) {
        match said(THROUGHPUT)? {
            Ok(said) => found.extend(complaints_about_throughput(&said)),
            Err(complaint) => found.push(complaint),
        }
    }
    Ok(found)
}

/// Figures within a hundredth of what they must be.
fn complaints_about_model(line: &str, said: &Value, figures: Figures) -> Vec<String> {
    let off = |&&(place, wanted): &&(&str, f64)| {
        let figure = said.pointer(place).and_then(Value::as_f64);
        !figure.is_some_and(|figure| (figure - wanted).abs() <= 0.01 * wanted)
    };
    let told = |(place, wanted): &(&str, f64)| {
        format!(
            "model {line}: {place} is {} and not {wanted}",
            said.pointer(place).unwrap_or(&Value::Null)
        )
    };
    figures.iter().filter(off).map(told).collect()
}

/// All runs are right, and the division that there is has been compared with a law.
fn complaints_about_throughput(said: &Value) -> Vec<String> {
    let mut found = missing(said, TOP, THROUGHPUT);
    let runs = said["runs"].as_array().map_or(&[][..], Vec::as_slice);
    if runs.len() != 4 || runs.iter().any(|run| run["correct"] != true) {
        found.push(format!("model {THROUGHPUT}: not four runs that are right"));
    }
    let is_kept = |run: &Value| {
        let samples = run["samples"].as_array().map_or(&[][..], Vec::as_slice);
        samples.iter().any(|sample| sample["mode"] != "discarded")
    };
    // Where the machine left a run without a figure, there is nothing to compare.
    let has_figures = runs.iter().all(is_kept);
    let has_law = said["model"]["law_from"] == "fitted";
    if has_figures && !(has_law && said["model"]["points"][0]["residual"].is_number()) {
        found.push(format!(
            "model {THROUGHPUT}: no residual: {}",
            said["model"]
        ));
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn figures_of_models_are_looked_at() {
        let said = json!([{"p": 0.0898}, {"p": 1}]);
        let complaints = |figures| complaints_about_model("m", &said, figures).join("; ");
        assert_eq!(complaints(&[("/0/p", 0.09), ("/1/p", 1.0)]), "");
        assert!(complaints(&[("/1/p", 2.0)]).contains("is 1 and not 2"));
        assert!(complaints(&[("/2/p", 0.0)]).contains("is null"));
    }

    #[test]
    fn a_measured_law_is_looked_at() {
        let run = json!({"correct": true, "samples": [{"mode": "far"}]});
        let good = json!({
            "schema": 1, "machine": {}, "commit": "c", "command": "x",
            "runs": [run, run, run, run],
            "model": {"law_from": "fitted", "points": [{"residual": -0.1}]},
        });
        assert_eq!(complaints_about_throughput(&good), [""; 0]);
        let complaint = |spoil: fn(&mut Value)| {
            let mut said = good.clone();
            spoil(&mut said);
            complaints_about_throughput(&said).join("; ")
        };
        assert!(complaint(|s| s["runs"][1]["correct"] = json!(false)).contains("right"));
        assert!(complaint(|s| s["model"]["law_from"] = json!("unknown")).contains("residual"));
        assert!(complaint(|s| s["model"]["points"] = json!([])).contains("residual"));
        let nothing_kept = |s: &mut Value| {
            s["runs"][2]["samples"] = json!([{"mode": "discarded"}]);
            s["model"]["law_from"] = json!("unknown");
        };
        assert_eq!(complaint(nothing_kept), "");
    }
}
