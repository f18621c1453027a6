//! Tests of latency under load, on the page and in words.

use super::*;
use crate::table;
use corelay_lab_measure::schema::Run;

fn told(results: &Results) -> Vec<String> {
    let latency = verdict(results).latency;
    latency.into_iter().flat_map(|l| l.sentences).collect()
}

/// The answer of a file that has nothing but these results' loads.
fn alone(mut results: Results) -> String {
    results.runs.retain(|run| run.load.is_some());
    verdict(&results).answers.remove(0).sentences.remove(0)
}

#[track_caller]
fn sentence(told: &[String], start: &str) -> String {
    let found = told.iter().find(|s| s.starts_with(start));
    let found = found.unwrap_or_else(|| panic!("{start} is missing: {told:#?}"));
    found.replace('\u{a0}', " ")
}

#[test]
fn the_faster_answer_is_named_for_each_load_and_mode() {
    let told = told(&loaded(&[Mode::Near, Mode::Far]));
    // The mutex takes 60 ns and a call of trust 210, at every load that both bear.
    let waiting = sentence(&told, "Waiting, near: ");
    assert!(waiting.contains("`trust` takes 3.5"), "{waiting}");
    assert!(
        waiting.contains("of `mutex` at 10 k–2 M operations"),
        "{waiting}"
    );
    assert!(sentence(&told, "Waiting, far: ").contains("`trust` takes"));
    // Tokio is saturated before a million.
    let later = sentence(&told, "Later, near: ");
    assert!(
        later.contains("`trust-then` takes only 0.097–0.12 ×"),
        "{later}"
    );
    assert!(
        later.contains("of `tokio` at 10 k–100 k operations"),
        "{later}"
    );
    let light = sentence(&told, "Light load, near: ");
    assert!(
        light.contains("`mutex` 0.06") && light.contains("at 10 k"),
        "{light}"
    );
    let borne = sentence(&told, "Borne, near: ");
    assert!(borne.contains("`trust` 2 M,"), "{borne}");
    let generator = "`trust-then` 5 M (then the load's generator was the limit)";
    assert!(borne.contains(generator), "{borne}");
    assert!(
        sentence(&told, "CPU used: ").contains("`mutex` 0.90"),
        "{told:?}"
    );
    let headline = alone(loaded(&[Mode::Near]));
    assert!(
        headline.contains("against the best lock or channel, `trust` loses at every load"),
        "{headline}"
    );
}

#[test]
fn a_flat_team_with_lower_latency_is_named() {
    let quick = |method: &str| match method {
        "flat-adaptive" => (1e8, 30.0),
        m => small_loads(m),
    };
    let mut results = Recipe::default().make();
    results.runs.extend(under_load(&[Mode::Near], quick));
    let later = sentence(&told(&results), "Later (near): ");
    assert!(later.contains("`flat-adaptive` takes only"), "{later}");
    let headline = alone(results);
    let wins = "; `flat-adaptive` wins at every load";
    assert!(headline.contains(wins), "{headline}");
}

#[test]
fn a_fast_trust_wins() {
    let quick = |method: &str| match method {
        "trust" => (1.2e7, 20.0),
        m => small_loads(m),
    };
    let mut results = Recipe::default().make();
    results.runs.extend(under_load(&[Mode::Near], quick));
    let waiting = sentence(&told(&results), "Waiting (near): ");
    assert!(waiting.contains("`trust` takes only 0.3"), "{waiting}");
}

#[test]
fn a_machine_that_bears_no_load_is_reported() {
    let mut results = Recipe::default().make();
    results
        .runs
        .extend(under_load(&[Mode::Near], |_| (5_000.0, 1e6)));
    let told = told(&results);
    assert!(sentence(&told, "Borne (near): ").contains("`mutex` none"));
    assert!(!told.iter().any(|s| s.starts_with("Waiting")), "{told:?}");
    // A client that waited longer than it had a CPU shared that CPU.
    let crowd = |run: &mut Run| {
        if let Some(load) = &mut run.load {
            load.cpus = load.waiting_cpus / 2.0;
        }
    };
    let mut crowded = loaded(&[Mode::Near]);
    crowded.runs.iter_mut().for_each(crowd);
    assert!(
        self::told(&crowded)
            .iter()
            .any(|s| s.starts_with("Other programs: "))
    );
    // If there are more threads than CPUs, they may have shared with each other.
    crowded.machine.cpus = 2;
    crowded
        .runs
        .iter_mut()
        .for_each(|run| run.params.threads = 8);
    let told = self::told(&crowded);
    assert!(
        told.iter()
            .any(|s| s.starts_with("More threads than CPUs: "))
    );
    assert!(
        !told.iter().any(|s| s.starts_with("Other programs")),
        "{told:?}"
    );
    let table = table::latency::of(&crowded);
    assert!(
        table.contains("More threads than CPUs took turns"),
        "{table}"
    );
    assert!(!table.contains("Other programs"), "{table}");
}

#[test]
fn latency_over_load_is_the_second_picture_and_marks_loads_not_borne() {
    let page = html(&loaded(&[Mode::Near, Mode::Far]));
    let second = page.split("<svg class=\"plot\"").nth(2).unwrap();
    let (second, _) = second.split_once("</figure>").unwrap();
    assert!(
        second.starts_with(" id=\"glance-p99\""),
        "{}",
        &second[..80]
    );
    assert!(second.contains("million operations offered per second"));
    // Circles mark saturated methods, a square the method whose generator was the limit.
    let halo = |shape: &str| second.matches(&format!("<{shape} class=\"halo\"")).count();
    assert_eq!((halo("circle"), halo("path")), (8, 1));
    assert!(second.contains("saturated") && second.contains("generator-limited"));
    // Only the lines of five methods, mutex and trust-then among them, reach the side of the labels.
    let leads = |class: &str| second.matches(&format!("class=\"{class}\"")).count();
    assert_eq!((leads("lead"), leads("lead away")), (5, 4));
    // Throughput is judged without these runs.
    let sections = verdict(&loaded(&[Mode::Near])).sections;
    assert_eq!(sections.len(), 1);
    assert!(!page.contains("Pictures: latency, uniform"));
}

#[test]
fn a_file_of_loads_alone_has_a_verdict() {
    let mut results = loaded(&[Mode::Near]);
    results.runs.retain(|run| run.load.is_some());
    let told = verdict(&results).answer();
    assert!(told.starts_with("In p99 latency on 1 variable"), "{told}");
    assert!(html(&results).contains("id=\"glance-p99\""));
}

#[test]
fn a_run_under_load_survives_json_also_with_fields_to_come() {
    for run in under_load(&[Mode::Near, Mode::Far], small_loads) {
        let mut json = serde_json::to_value(&run).unwrap();
        assert_eq!(serde_json::from_value::<Run>(json.clone()).unwrap(), run);
        for key in ["p50", "p99", "p999", "max"] {
            assert!(json["latency_ns"][key].is_u64(), "{json}");
        }
        for place in [
            "/load",
            "/latency_ns",
            "/samples/0/arrivals",
            "/by_mode/near",
        ] {
            json.pointer_mut(place).unwrap()["of-later-days"] = true.into();
        }
        assert_eq!(serde_json::from_value::<Run>(json).unwrap(), run);
    }
    // A run of the throughput workload has no latency.
    let json = serde_json::to_value(&Recipe::default().make().runs[0]).unwrap();
    assert!(json.get("load").is_none() && json.get("latency_ns").is_none());
}
