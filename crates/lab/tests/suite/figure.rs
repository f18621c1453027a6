//! `corelay figure` and `corelay plot` as their users meet them.

use crate::page;
use crate::program::{self, corelay, refused};
use corelay_lab_figures::FIGURES;
use corelay_lab_figures::declare::Figure;
use corelay_lab_measure::schema::Results;
use corelay_lab_report::figure::measured::Measured;
use corelay_lab_report::figure::outcome::Outcome;

#[track_caller]
fn fine(args: &[&str]) -> String {
    program::fine(&corelay(args))
}

#[test]
fn bad_input_gets_one_sentence() {
    refused(&["figure"], &["NAME"]);
    refused(&["figure", "juggling"], &["`juggling`", "--list"]);
    refused(
        &["figure", "satuation-16"],
        &["did you mean `saturation-16`"],
    );
    refused(&["figure", "--all", "order"], &["--all"]);
    refused(&["figure", "--list", "--all"], &["--list", "--all"]);
    refused(&["figure", "order", "--secs", "0"], &["--secs"]);
    refused(&["figure", "order", "--samples", "0"], &["--samples"]);
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("file");
    std::fs::write(&file, "hello").unwrap();
    let name = file.to_str().unwrap();
    refused(&["figure", "order", "--out", name], &["--out", name]);
    refused(&["plot"], &["FILE"]);
    refused(&["plot", name], &[name, "no JSON", "line 1, column 1"]);
    refused(&["plot", "no-such-file.json"], &["no-such-file.json"]);
    let nine = [&["plot"][..], &[name; 9]].concat();
    refused(&nine, &["at most 8"]);
}

#[test]
fn the_list_names_every_figure_with_its_source_and_needs() {
    let list = fine(&["figure", "--list"]);
    for figure in FIGURES {
        assert!(list.contains(figure.name), "{}", figure.name);
    }
    assert!(
        list.contains("thesis")
            && list.contains("ffwd")
            && list.contains("chapter")
            && list.contains("CPUs")
    );
    let json: serde_json::Value =
        serde_json::from_str(&fine(&["figure", "--list", "--json", "--short"])).unwrap();
    let listed = json.as_array().unwrap();
    assert_eq!(listed.len(), FIGURES.len());
    assert!(listed.iter().all(|figure| figure["seconds"].is_number()));
}

/// Figures over variables, with counters, of fibres, of the machine's clocks, and of a structure.
const OFTEN: &[&str] = &["order", "saturation-4", "offsets", "yield", "stack"];

/// A pace that says nothing but whether everything works.
const PACE: &[&str] = &["--short", "--secs", "0.001", "--samples", "2"];

fn often() -> Vec<&'static Figure> {
    let chosen = FIGURES.iter().filter(|f| OFTEN.contains(&f.name));
    let chosen: Vec<&Figure> = chosen.collect();
    assert_eq!(chosen.len(), OFTEN.len());
    chosen
}

#[test]
fn figures_are_right_and_leave_whole_pages() {
    are_right(&often(), &[OFTEN, PACE].concat());
}

#[test]
#[ignore = "two seconds for each of them; the gate has four"]
fn all_figures_are_right_and_leave_whole_pages() {
    let all: Vec<&Figure> = FIGURES.iter().collect();
    are_right(&all, &[&["--all"], PACE].concat());
}

#[test]
#[ignore = "it takes as long as the short figures do"]
fn short_figures_are_right_and_leave_whole_pages() {
    are_right(&often(), &[OFTEN, &["--short"]].concat());
}

/// The keys of a figure's description.
const ABOUT: &[&str] = &[
    "name", "title", "source", "there", "panels", "beside", "said",
];

/// Measures `figures`, which `args` name, and checks the file and the page of each.
fn are_right(figures: &[&Figure], args: &[&str]) {
    let folder = tempfile::tempdir().unwrap();
    let out = ["--out", folder.path().to_str().unwrap()];
    // Others' programs have tests of their own: here nothing is found that could build them.
    let output = program::alone(&[&["figure"], args, &out].concat());
    let said = program::fine(&output);
    let is_all = args.contains(&"--all");
    let index = is_all.then(|| page::whole(&folder.path().join("index.html")));
    let cpus = std::thread::available_parallelism().map_or(1, |n| n.get());
    for figure in figures {
        assert!(said.contains(figure.title), "{}", figure.name);
        if let Some(index) = &index {
            assert!(index.contains(&format!("{}.html", figure.name)));
        }
        let file = folder.path().join(format!("{}.json", figure.name));
        let data = std::fs::read_to_string(file).unwrap();
        let outcome: Outcome = serde_json::from_str(&data).unwrap();
        // Whoever reads results reads a figure's too.
        let results: Results = serde_json::from_str(&data).unwrap();
        assert_eq!(outcome.results, results);
        assert!(
            results.runs.iter().all(|run| run.correct),
            "{}",
            figure.name
        );
        let written: serde_json::Value = serde_json::from_str(&data).unwrap();
        for key in ABOUT {
            assert!(
                written["figure"].get(key).is_some(),
                "{}: {key}",
                figure.name
            );
        }
        let about = &outcome.figure;
        assert_eq!(about.beside.len(), figure.printed.len());
        let path = folder.path().join(format!("{}.html", figure.name));
        let page = match outcome.is_empty() {
            true => page::whole(&path),
            false => page::with_pictures(&path),
        };
        assert!(page.contains(&about.there), "{}", figure.name);
        // What has no contenders has a square of all pairs, or says why not.
        if let Some(offsets) = &about.offsets {
            let n = offsets.cpus.len();
            assert_eq!(page.matches("class=\"cell\"").count(), n * (n - 1));
            assert!(about.beside.iter().all(|beside| beside.here.is_some()));
            assert!(said.contains("how far the second CPU's counter"), "{said}");
            assert_eq!(offsets.samples.len() as u64, about.samples);
            for sample in &offsets.samples {
                let cells = sample.offsets_ns.iter().flatten();
                assert_eq!(cells.clone().count(), n * n);
                let all: Vec<f64> = cells.flatten().copied().collect();
                assert_eq!(all.len(), n * (n - 1));
                assert!(all.iter().all(|&ns| ns <= sample.boundary_ns));
            }
        }
        assert!(!figure.offsets || about.offsets.is_some() || results.runs.is_empty());
        if outcome.is_empty() {
            assert!(!about.missing.is_empty(), "{}", figure.name);
            continue;
        }
        let measured = Measured::of(&outcome);
        for panel in &about.panels {
            for line in &panel.lines {
                let runs = measured.runs(&panel.key, line);
                assert!(!runs.is_empty(), "{line} of {}", figure.name);
            }
        }
        let is_marked = about.missing.iter().any(|why| why.contains("to be whole"));
        assert_eq!(is_marked, cpus < figure.whole, "{}", figure.name);
        let is_of_fibres = results
            .runs
            .iter()
            .any(|run| run.method == "corelay-migrating");
        assert_eq!(
            page.contains("not installed"),
            is_of_fibres,
            "{}",
            figure.name
        );
    }
}

#[test]
fn results_are_laid_over_each_other() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let (a, b, other) = (path("a.json"), path("b.json"), path("other.json"));
    let bench = |file: &str, vars: &str| {
        let flags = [
            "--method",
            "mutex,atomic",
            "--threads",
            "1",
            "--secs",
            "0.001",
        ];
        let rest = ["--samples", "2", "--vars", vars, "--json", file];
        fine(&[&["bench", "fetch-add"][..], &flags, &rest].concat());
    };
    bench(&a, "1,8,64");
    bench(&b, "1,8,64");
    bench(&other, "1");
    // Another machine.
    let text = std::fs::read_to_string(&b).unwrap();
    let mut results: Results = serde_json::from_str(&text).unwrap();
    results.machine.model = "Model B".to_owned();
    results.commit = "0123456789ab".to_owned();
    std::fs::write(&b, serde_json::to_string(&results).unwrap()).unwrap();

    let out = path("out");
    let said = fine(&["plot", &a, &b, "--out", &out]);
    assert!(
        said.contains("B: Model B") && said.contains("B / A"),
        "{said}"
    );
    let html = page::with_pictures(&folder.path().join("out/index.html"));
    assert!(html.contains("Model B") && html.contains("0123456789ab"));
    let pictures = std::fs::read_dir(&out).unwrap().flatten();
    let svg = pictures.filter(|e| e.path().extension().is_some_and(|e| e == "svg"));
    assert!(svg.count() >= 1);
    let json = fine(&["plot", &a, &b, "--out", &out, "--json"]);
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(
        json["files"][1]["machine"]
            .as_str()
            .unwrap()
            .split(',')
            .next(),
        Some("Model B")
    );
    assert_eq!(
        json["overlays"][0]["lines"][0]["files"]
            .as_array()
            .unwrap()
            .len(),
        2
    );

    // A file that is cut, and one of something else.
    let cut = path("cut.json");
    std::fs::write(&cut, &text[..text.len() / 2]).unwrap();
    refused(
        &["plot", &a, &cut, "--out", &out],
        &["cut.json", "cut short", "line"],
    );
    let figure = path("figure");
    let pace = ["--short", "--secs", "0.001", "--samples", "2"];
    let two = ["figure", "flat-policies", "order", "--json"];
    let list = fine(&[&two[..], &["--out", &figure], &pace].concat());
    let figure = path("figure/flat-policies.json");
    // A list of figures is read, too: here the file has one of them.
    let printed = path("printed.json");
    std::fs::write(&printed, list).unwrap();
    fine(&["plot", &printed, &figure, "--out", &out]);
    refused(
        &["plot", &a, &figure, "--out", &out],
        &["a.json", "flat-policies.json", "incomparable"],
    );
}
