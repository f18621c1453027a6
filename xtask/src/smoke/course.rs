//! The course, small: every step and its page, a table that is checked, two results side by side.

use super::{TOP, check, check_page, complaints_about_no_run, lab, missing};
use anyhow::Result;
use serde_json::Value;
use std::path::Path;

const REPORT: &[&str] = &["lab", "--report", "course", "--yes", "--small"];

/// The steps, and what each must have left.
const STEPS: &[&str] = &["race", "list", "why", "timeline", "hash"];

/// The rungs and ways that must have a run.
const METHODS: &[(&str, &[&str])] = &[
    (
        "course-race",
        &["mutex", "spin", "cas", "atomic", "delegated"],
    ),
    (
        "course-list",
        &[
            "biglock",
            "partitioned",
            "preallocated",
            "balanced",
            "padded",
            "system",
            "mimalloc",
            "pool",
            "delegated",
        ],
    ),
];

/// What is wrong with it.
pub(super) fn run(program: &Path, dir: &Path) -> Result<Vec<String>> {
    let mut found = Vec::new();
    let ended = lab(program, dir, REPORT)?;
    print!("{}", ended.output);
    if !ended.good() {
        found.push(format!("{}: {}", REPORT.join(" "), ended.how()));
        return Ok(found);
    }
    found.extend(check(&dir.join("course/results.json"), complaints)?);
    found.extend(check_page(&dir.join("course/index.html"))?);
    let beside = ["plot", "course/results.json", "course/results.json"];
    let ended = lab(program, dir, &beside)?;
    if !ended.good() {
        found.push(format!("{}: {}", beside.join(" "), ended.output));
    }
    for args in [
        &["lab", "hash", "--init", "table"][..],
        &["lab", "hash", "--check", "table", "--no-measure"],
    ] {
        let ended = lab(program, dir, args)?;
        if !ended.good() {
            found.push(format!("{}: {}", args.join(" "), ended.output));
        }
    }
    Ok(found)
}

fn complaints(results: &Value) -> Vec<String> {
    let mut found = missing(results, TOP, "course");
    let runs = results["runs"].as_array().map_or(&[][..], Vec::as_slice);
    for (workload, methods) in METHODS {
        for method in *methods {
            let is_it = |run: &&Value| run["workload"] == *workload && run["method"] == *method;
            found.extend(complaints_about_no_run(
                runs.iter().find(is_it),
                workload,
                method,
            ));
        }
    }
    let told = results["course"].as_array().map_or(&[][..], Vec::as_slice);
    for step in STEPS {
        match told.iter().find(|told| told["step"] == *step) {
            None => found.push(format!("course: no step {step}")),
            Some(told) if told["wrong"] != serde_json::json!([]) => {
                found.push(format!("course: {step}: {}", told["wrong"]));
            }
            Some(_) => {}
        }
    }
    found
}
