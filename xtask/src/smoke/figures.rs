//! Figures, briefly, and results laid over each other.

use super::{RUN, TOP, check, check_page, lab, missing, seconds};
use anyhow::Result;
use serde_json::Value;
use std::path::Path;

/// Three figures, briefly: one over variables, one with counters, one of the machine's clocks.
const FIGURES: &[&str] = &[
    "figure",
    "order",
    "saturation-4",
    "offsets",
    "--short",
    "--out",
    "figures",
];

/// What a figure's file has beside results.
const FIGURE: &[&str] = &[
    "name", "title", "source", "there", "panels", "beside", "said",
];

/// Figures leave a file and a page each, and can be laid over each other.
pub(super) fn run(program: &Path, dir: &Path) -> Result<Vec<String>> {
    let ended = lab(program, dir, FIGURES)?;
    print!("{}", ended.output);
    println!("smoke: {} took {}", FIGURES.join(" "), seconds(ended.time));
    if !ended.good() {
        return Ok(vec![format!("{}: {}", FIGURES.join(" "), ended.how())]);
    }
    let mut complaints = Vec::new();
    for name in &FIGURES[1..4] {
        let data = dir.join(format!("figures/{name}.json"));
        complaints.extend(check(&data, complaints_about_figure)?);
        complaints.extend(check_page(&dir.join(format!("figures/{name}.html")))?);
    }
    let file = format!("figures/{}.json", FIGURES[1]);
    let over = ["plot", &file, &file, "--out", "over"];
    let ended = lab(program, dir, &over)?;
    if ended.good() {
        complaints.extend(check_page(&dir.join("over/index.html"))?);
    } else {
        complaints.push(format!("{}: {}", over.join(" "), ended.how()));
    }
    Ok(complaints)
}

/// Every line of every panel has a right run, or the figure says why not.
fn complaints_about_figure(outcome: &Value) -> Vec<String> {
    let mut found = missing(outcome, TOP, "figure");
    let figure = &outcome["figure"];
    found.extend(missing(figure, FIGURE, "figure"));
    let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
    let runs = list(&outcome["runs"]);
    for run in &runs {
        let name = format!("run {} at {}", run["method"], run["params"]["x"]);
        found.extend(missing(run, RUN, &name));
        if run["correct"] != true {
            found.push(format!("{name}: not correct"));
        }
    }
    let samples = list(&figure["offsets"]["samples"]);
    if runs.is_empty() && samples.is_empty() && list(&figure["missing"]).is_empty() {
        found.push("figure: no runs, and no word why".to_owned());
    }
    found.extend(complaints_about_offsets(figure, &samples));
    for panel in list(&figure["panels"]).iter().filter(|_| !runs.is_empty()) {
        for line in list(&panel["lines"]) {
            let is_of = |run: &&Value| {
                run["params"]["panel"] == panel["key"] && run["params"]["line"] == line
            };
            if !runs.iter().any(|run| is_of(&run)) {
                found.push(format!("figure: no run of {line} in {}", panel["key"]));
            }
        }
    }
    found
}

/// Every ordered pair of CPUs has an offset in every sample, and none is above the boundary.
fn complaints_about_offsets(figure: &Value, samples: &[Value]) -> Vec<String> {
    let cpus = figure["offsets"]["cpus"].as_array().map_or(0, Vec::len);
    let mut found = Vec::new();
    for (number, sample) in samples.iter().enumerate() {
        let rows = sample["offsets_ns"].as_array().into_iter().flatten();
        let all: Vec<f64> = rows
            .filter_map(Value::as_array)
            .flatten()
            .filter_map(Value::as_f64)
            .collect();
        if cpus < 2 || all.len() != cpus * (cpus - 1) {
            found.push(format!("figure: sample {number} has not every pair"));
        }
        let boundary = sample["boundary_ns"].as_f64().unwrap_or(0.0);
        if all.iter().any(|&ns| ns > boundary) {
            found.push(format!(
                "figure: sample {number} has an offset beyond its boundary"
            ));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::super::tests::results;
    use super::*;
    use serde_json::json;

    #[test]
    fn figures_are_looked_at() {
        let mut good = results();
        let mut run = good["runs"][0].clone();
        run["params"] = json!({"panel": "length", "line": "4 lines", "x": 2.0});
        good["runs"] = json!([run]);
        good["figure"] = json!({
            "name": "saturation-4", "title": "t", "source": "s", "there": "m", "beside": [],
            "said": [], "missing": [], "panels": [{"key": "length", "lines": ["4 lines"]}],
        });
        assert_eq!(complaints_about_figure(&good), [""; 0]);
        let complaint = |spoil: fn(&mut Value)| {
            let mut outcome = good.clone();
            spoil(&mut outcome);
            complaints_about_figure(&outcome).join("; ")
        };
        assert!(complaint(|o| o["runs"][0]["correct"] = json!(false)).contains("not correct"));
        assert!(complaint(|o| o["runs"][0]["params"]["line"] = json!("x")).contains("no run of"));
        assert!(complaint(|o| o["runs"] = json!([])).contains("no word why"));
        assert!(
            complaint(|o| _ = o["figure"].as_object_mut().unwrap().remove("said")).contains("said")
        );

        let mut good = good.clone();
        good["runs"] = json!([]);
        good["figure"]["offsets"] = json!({
            "cpus": [0, 1],
            "samples": [{"offsets_ns": [[null, 40.0], [-3.0, null]], "boundary_ns": 50.0}],
        });
        assert_eq!(complaints_about_figure(&good), [""; 0]);
        let complaint = |spoil: fn(&mut Value)| {
            let mut outcome = good.clone();
            spoil(&mut outcome["figure"]["offsets"]);
            complaints_about_figure(&outcome).join("; ")
        };
        let pair = |o: &mut Value| o["samples"][0]["offsets_ns"][1][0] = json!(null);
        assert!(complaint(pair).contains("not every pair"));
        assert!(complaint(|o| o["samples"][0]["boundary_ns"] = json!(39)).contains("beyond"));
        assert!(complaint(|o| o["samples"] = json!([])).contains("no word why"));
    }
}
