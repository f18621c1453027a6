//! Figures, briefly, and results laid over each other.

use super::{RUN, TOP, check, check_page, lab, missing, seconds};
use anyhow::Result;
use serde_json::Value;
use std::path::Path;

/// Two figures, briefly: one over variables, one with counters.
const FIGURES: &[&str] = &[
    "figure",
    "order",
    "saturation-4",
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
    for name in &FIGURES[1..3] {
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
    if runs.is_empty() && list(&figure["missing"]).is_empty() {
        found.push("figure: no runs, and no word why".to_owned());
    }
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
    }
}
