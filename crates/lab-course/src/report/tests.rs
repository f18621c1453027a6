use super::*;
use crate::guess::Question;
use crate::shown::{Part, Picture};
use corelay_lab_measure::schema::{Machine, Mode, ModeSummary, Params, SCHEMA, Sample};
use corelay_lab_report::overlay::lay::lay;
use corelay_lab_report::overlay::{page as overlaid, read::read};
use corelay_lab_report::plot::Medium;
use corelay_lab_report::table::grid::Grid;
use std::collections::BTreeMap;
use std::path::Path;

fn run(workload: &str, method: &str, threads: usize, vars: u64, mops: f64) -> Run {
    let summary = ModeSummary {
        median_mops: mops,
        n: 1,
        q1_mops: mops,
        q3_mops: mops,
        latency_ns: None,
        limit: None,
    };
    Run {
        workload: workload.to_owned(),
        method: method.to_owned(),
        params: Params {
            threads,
            vars,
            ..Params::default()
        },
        correct: true,
        median_mops: mops,
        harmonic_mean_mops: mops,
        by_mode: BTreeMap::from([(Mode::Near, summary)]),
        samples: vec![Sample {
            mops,
            mode: Mode::Near,
            rtt_ns: None,
            per_thread: vec![1],
            cpu_s: 0.0,
            latency_ns: None,
            arrivals: None,
            fibres: None,
            counts: None,
            picture: None,
            cache: None,
        }],
        trustees: vec![],
        latency_ns: None,
        load: None,
        loads: None,
        not_installed: None,
        cache: None,
        notes: vec![],
    }
}

/// A step with one of everything, full of letters that XML escapes.
fn everything() -> Shown {
    let question = Question {
        text: "Is a < b & `c`?",
        unit: "%",
    };
    let mut guess = question.unasked();
    guess.guessed = Some(5.0);
    guess.measured = Some(45.0);
    let mut shown = Shown::new("race", "Race <of> threads & co");
    shown.guess = Some(guess);
    shown.look_at = vec!["See `a<b>`.".to_owned()];
    shown.wrong = vec!["`mutex` has lost <3> & more.".to_owned()];
    shown.figures = serde_json::json!({"lost_percent": 45.0});
    shown.runs = vec![run("course-race", "mutex", 2, 1, 40.0)];
    shown.parts = vec![
        Part::Words("Words & `more<T>`".to_owned()),
        Part::Table(Grid {
            title: "T < U".to_owned(),
            head: vec!["way".to_owned(), "Mops".to_owned()],
            rows: vec![vec!["<a>".to_owned(), "1 & 2".to_owned()]],
        }),
        Part::Picture(Picture {
            name: "race-it".to_owned(),
            caption: "Bars & whiskers".to_owned(),
            draw: Box::new(|medium| {
                assert_eq!(medium, Medium::Page);
                r#"<svg class="plot" id="race-it"></svg>"#.to_owned()
            }),
        }),
        Part::Code {
            caption: "Of `lost`".to_owned(),
            text: "let a: &Vec<u8>;\n".to_owned(),
        },
    ];
    shown
}

fn handout(course: Vec<CourseStep>) -> Handout {
    let runs = course.iter().flat_map(|told| told.runs().to_vec());
    Handout {
        results: Results {
            schema: SCHEMA,
            machine: Machine {
                cpus: 2,
                ..Machine::default()
            },
            commit: "c".to_owned(),
            command: "corelay lab --report <dir>".to_owned(),
            runs: runs.collect(),
        },
        course,
    }
}

fn two() -> Handout {
    let failed = CourseStep {
        step: "list",
        outcome: Err("--threads: there is only <one>".to_owned()),
    };
    let race = CourseStep {
        step: "race",
        outcome: Ok(everything()),
    };
    handout(vec![race, failed])
}

#[test]
fn the_page_is_whole_and_needs_no_other() {
    let html = two().html();
    let xml = roxmltree::Document::parse_with_options(
        &html,
        roxmltree::ParsingOptions {
            allow_dtd: true,
            ..Default::default()
        },
    );
    let xml = xml.unwrap_or_else(|error| panic!("{error}"));
    let mut ids: Vec<&str> = xml
        .descendants()
        .filter_map(|n| n.attribute("id"))
        .collect();
    let all = ids.len();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), all, "an id stands there twice");
    for node in xml.descendants() {
        for name in ["href", "src"] {
            if let Some(target) = node.attribute(name) {
                let own = target.strip_prefix('#').expect("an outside resource");
                assert!(ids.contains(&own), "{target} leads nowhere");
            }
        }
    }
    for outside in ["http://", "https://", "url(", "@import"] {
        assert!(!html.contains(outside), "{outside}");
    }
    let text: String = xml.descendants().filter_map(|n| n.text()).collect();
    for word in [
        "1. Race <of> threads & co",
        "2. list",
        "5.00 %",
        "45.0 %",
        "more<T>",
        "let a: &Vec<u8>;",
        "Bars & whiskers",
        "1 & 2",
        "a<b>",
        "corelay lab --report <dir>",
    ] {
        assert!(text.contains(word), "`{word}` is missing");
    }
}

#[test]
fn a_fault_is_boxed_on_top_and_at_its_step() {
    let html = two().html();
    let xml = roxmltree::Document::parse_with_options(
        &html,
        roxmltree::ParsingOptions {
            allow_dtd: true,
            ..Default::default()
        },
    );
    let xml = xml.unwrap();
    let is_box = |n: &roxmltree::Node<'_, '_>| n.attribute("class") == Some("alarm");
    let boxes: Vec<String> = xml
        .descendants()
        .filter(is_box)
        .map(|n| n.descendants().filter_map(|n| n.text()).collect())
        .collect();
    assert_eq!(boxes.len(), 3, "{boxes:?}");
    assert!(boxes[0].contains("race") && boxes[0].contains("list"));
    assert!(boxes[1].contains("has lost <3> & more"));
    assert!(boxes[2].contains("could not be run") && boxes[2].contains("only <one>"));
    let mut fine = everything();
    fine.wrong.clear();
    let fine = handout(vec![CourseStep {
        step: "race",
        outcome: Ok(fine),
    }]);
    assert!(!fine.html().contains(r#"class="alarm""#));
}

#[test]
fn the_file_has_the_results_and_what_the_steps_say() {
    let handout = two();
    let json = handout.json().unwrap();
    let results: Results = serde_json::from_str(&json).unwrap();
    assert_eq!(results, handout.results);
    let value: serde_json::Value = serde_json::from_str(&json).unwrap();
    let course = value["course"].as_array().unwrap();
    assert_eq!(course[0]["step"], "race");
    assert_eq!(course[0]["guess"]["guessed"], 5.0);
    assert_eq!(course[0]["figures"]["lost_percent"], 45.0);
    assert_eq!(course[0]["wrong"].as_array().unwrap().len(), 1);
    // The runs stand in `runs` already.
    assert!(course[0].get("runs").is_none());
    assert_eq!(course[1]["failed"], "--threads: there is only <one>");
}

/// Two readers have run the course, on machines of different size.
#[test]
fn two_handouts_lie_over_each_other() {
    let folder = tempfile::tempdir().unwrap();
    let write = |path: &Path, threads: &[usize], mops: f64| {
        let mut shown = Shown::new("race", "Race");
        shown.runs = vec![
            run("course-race", "mutex", 2, 1, mops),
            run("course-race", "atomic", 2, 1, 2.0 * mops),
        ];
        // Steps may count something as variables, or nothing.
        for &threads in threads {
            let mops = mops / threads as f64;
            shown
                .runs
                .push(run("course-list", "one lock", threads, 0, mops));
            shown
                .runs
                .push(run("course-hash", "one lock", threads, 64, mops));
            shown
                .runs
                .push(run("course-hash", "a lock each", threads, 64, 9.0));
        }
        let told = CourseStep {
            step: "race",
            outcome: Ok(shown),
        };
        std::fs::write(path, handout(vec![told]).json().unwrap()).unwrap();
    };
    let [a, b] = ["a.json", "b.json"].map(|name| folder.path().join(name));
    write(&a, &[1, 2], 40.0);
    write(&b, &[1], 20.0);
    let laid = lay(&[read(&a).unwrap(), read(&b).unwrap()]).unwrap();
    let told: Vec<_> = laid
        .overlays
        .iter()
        .map(|o| (o.key.what.as_str(), o.key.axis.label.as_str()))
        .collect();
    let over_threads = |what| (what, "threads");
    assert_eq!(
        told,
        ["course-race", "course-list", "course-hash"].map(over_threads)
    );
    let race = laid.overlays[0].grid(&laid.files);
    assert_eq!(race.head[2..], ["A", "B", "B / A"]);
    let mutex = race.rows.iter().find(|row| row[0] == "mutex").unwrap();
    assert_eq!(mutex[1..4], ["2", "40.0", "20.0"]);
    // A has a point that B lacks.
    let list = &laid.overlays[1].lines[0];
    assert_eq!(list.files.iter().map(Vec::len).collect::<Vec<_>>(), [2, 1]);
    let html = overlaid::html(&laid, "corelay plot", "c");
    for what in ["course-race", "course-list", "course-hash"] {
        assert!(html.contains(&format!("<h2>{what} · ")), "{what}");
    }
    assert!(overlaid::all_pictures(&laid).len() >= 3);
}
