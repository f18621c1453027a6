//! The page and the verdict on made-up results.

use super::synthetic::{ALL, Recipe, small_machine, summed_up};
use super::verdict::{Comparison, Need, Outcome};
use super::{html, picture, verdict};
use crate::schema::{Mode, Results};
use std::collections::BTreeMap;
use std::sync::LazyLock;

/// What all tests read: results of every kind, their pages and verdicts, made once.
struct Dish {
    name: &'static str,
    results: Results,
    page: String,
    verdict: super::Verdict,
}

static MENU: LazyLock<Vec<Dish>> = LazyLock::new(|| {
    let dish = |(name, results): (&'static str, Results)| {
        let (page, verdict) = (html(&results), verdict(&results));
        Dish { name, results, page, verdict }
    };
    menu().into_iter().map(dish).collect()
});

/// Results of every kind that a page must survive.
fn menu() -> Vec<(&'static str, Results)> {
    let mut menu = vec![
        ("small", Recipe::default().cook()),
        ("no-far", Recipe { modes: vec![Mode::Near], ..Recipe::default() }.cook()),
        ("one-cpu", one_cpu()),
        ("empty", Results { runs: Vec::new(), ..Recipe::default().cook() }),
        ("few-samples", Recipe { samples: 2, ..Recipe::default() }.cook()),
        ("single-point", Recipe { vars: vec![64], ..Recipe::default() }.cook()),
        ("partial", partial()),
        ("strangers", strangers()),
        ("hostile", hostile()),
        ("big", big()),
    ];
    let scaling = Recipe { vars: vec![64], threads: vec![2, 4, 8, 16], cpus: 16, ..Recipe::default() };
    menu.push(("over-threads", scaling.cook()));
    menu
}

fn one_cpu() -> Results {
    let mut results = Recipe { cpus: 1, modes: vec![Mode::Unknown], ..Recipe::default() }.cook();
    results.machine.rtt_min_ns = None;
    results
}

/// Interrupted: the last third was never run, and one method has only discarded samples.
fn partial() -> Results {
    let mut results = Recipe::default().cook();
    results.runs.truncate(results.runs.len() * 2 / 3);
    let last = results.runs.last_mut().unwrap();
    last.samples.iter_mut().for_each(|s| s.mode = Mode::Discarded);
    *last = summed_up(last.clone());
    results
}

/// Methods and a workload that no report knows.
fn strangers() -> Results {
    let mut methods = ALL.to_vec();
    methods.extend(["rcl", "flat-combining"]);
    let mut results = Recipe { methods, ..Recipe::default() }.cook();
    let mut others = Recipe { methods: vec!["cc-synch", "mutex", "trust"], ..Recipe::default() }.cook().runs;
    others.iter_mut().for_each(|r| {
        r.workload = "queue".into();
        r.params.dist = String::new();
    });
    results.runs.extend(others);
    // The same method at the same point with another window is a line of its own.
    let mut narrow = results.runs.iter().find(|r| r.method == "trust-then").unwrap().clone();
    narrow.params.window = 4;
    results.runs.push(narrow);
    results
}

/// Text that tries to be markup, and numbers that are none.
fn hostile() -> Results {
    let mut results = Recipe { methods: vec!["<b>`x`&\"'</script>", "trust"], ..Recipe::default() }.cook();
    results.machine.model = "</title><script>alert(1)</script>".into();
    results.machine.unavailable = vec!["<img src=x>".into(), "]]>".into()];
    results.command = "corelay \u{1b}[31m <!-- ]]> -->".into();
    results.runs[0].notes = vec!["<i>note</i>".into()];
    results.runs[0].workload = "a\0b".into();
    results.runs[1].params.secs = 0.0;
    results.runs[2].correct = false;
    results.runs[3].by_mode.get_mut(&Mode::Near).unwrap().median_mops = f64::NAN;
    results.runs[4].samples[0].mops = f64::INFINITY;
    results.runs[5].params.vars = 0;
    results.runs[6].samples.clear();
    results.runs[7].samples[0].per_thread.clear();
    results
}

fn big() -> Results {
    Recipe {
        cpus: 56,
        threads: vec![8, 56],
        vars: (0..=21).step_by(3).map(|p| 1 << p).collect(),
        samples: 6,
        ..Recipe::default()
    }
    .cook()
}

#[test]
fn every_page_is_well_formed_and_needs_nothing_else() {
    for Dish { name, page, .. } in MENU.iter() {
        let options = roxmltree::ParsingOptions { allow_dtd: true, ..Default::default() };
        let tree = roxmltree::Document::parse_with_options(page, options)
            .unwrap_or_else(|e| panic!("{name}: {e}"));
        let mut ids = BTreeMap::new();
        for node in tree.descendants().filter(roxmltree::Node::is_element) {
            let tag = node.tag_name().name();
            assert!(!matches!(tag, "link" | "img" | "iframe" | "object" | "image" | "use"), "{name}: {tag}");
            for attribute in node.attributes() {
                let loads = matches!(attribute.name(), "src" | "href" | "srcset" | "action");
                assert!(!loads && !attribute.name().starts_with("on"), "{name}: {attribute:?}");
            }
            if let Some(id) = node.attribute("id") {
                *ids.entry(id.to_owned()).or_insert(0) += 1;
            }
            // An empty element must be written with an end tag, or HTML leaves it open.
            let void = matches!(tag, "meta" | "br" | "rect");
            let range = node.range();
            assert!(void || !page[range.clone()].ends_with("/>"), "{name}: {}", &page[range]);
        }
        assert!(ids.values().all(|&n| n == 1), "{name}: an id occurs twice: {ids:?}");
        for outside in ["http:", "https:", "url(", "@import", "//cdn"] {
            let text = page.replace("//<![CDATA[", "").replace("//]]>", "");
            assert!(!text.contains(outside), "{name}: {outside}");
        }
    }
}

#[test]
fn every_picture_stands_alone() {
    for Dish { name, results, .. } in MENU.iter() {
        let svg = picture(results);
        let tree = roxmltree::Document::parse(&svg).unwrap_or_else(|e| panic!("{name}: {e}"));
        let root = tree.root_element();
        assert_eq!(root.tag_name().namespace(), Some("http://www.w3.org/2000/svg"), "{name}");
        assert!(root.attribute("viewBox").is_some() && root.attribute("role") == Some("img"));
        assert!(!svg.contains("NaN") && !svg.contains("inf"), "{name}");
    }
}

#[test]
fn pictures_contain_no_number_that_is_none_and_labels_keep_apart() {
    for Dish { name, page, .. } in MENU.iter() {
        let options = roxmltree::ParsingOptions { allow_dtd: true, ..Default::default() };
        let tree = roxmltree::Document::parse_with_options(page, options).unwrap();
        for svg in tree.descendants().filter(|n| n.attribute("class") == Some("plot")) {
            let labels: Vec<f64> = svg
                .descendants()
                .filter(|n| n.attribute("class") == Some("label") && n.attribute("text-anchor").is_none())
                .map(|n| n.attribute("y").unwrap().parse().unwrap())
                .collect();
            for (i, a) in labels.iter().enumerate() {
                assert!(labels[..i].iter().all(|b| (a - b).abs() >= 15.0), "{name}: {labels:?}");
            }
            for node in svg.descendants() {
                for a in node.attributes() {
                    assert!(!a.value().contains("NaN") && !a.value().contains("inf"), "{name}: {a:?}");
                }
            }
        }
    }
}

#[test]
fn the_verdict_comes_first_and_its_losing_side_before_its_winning_side() {
    let page = html(&Recipe::default().cook());
    let at = |text: &str| page.find(text).unwrap_or_else(|| panic!("{text} is missing"));
    assert!(at("class=\"headline\"") < at("Where delegation loses"));
    assert!(at("Where delegation loses") < at("Where delegation wins"));
    assert!(at("Where delegation wins") < at("<svg class=\"plot\""));
    assert!(at("<svg class=\"plot\"") < at("The machine"));
    let text = verdict(&Recipe::default().cook()).to_string();
    assert!(text.find("Where delegation loses").unwrap() < text.find("Where delegation wins").unwrap());
}

#[test]
fn embedded_results_are_the_results() {
    for Dish { name, results, page, .. } in MENU.iter().filter(|d| d.name != "hostile") {
        let (_, rest) = page.split_once("id=\"results\">").unwrap();
        let (json, _) = rest.split_once("</script>").unwrap();
        let plain = serde_json::to_string(results).unwrap();
        assert!(json == plain, "{name}: nothing in these results needs an escape");
        serde_json::from_str::<Results>(json).unwrap_or_else(|e| panic!("{name}: {e}"));
    }
}

#[test]
fn hostile_text_stays_text() {
    let page = html(&hostile());
    for markup in ["<script>alert", "<img", "<i>note", "<b>`x`", "<!-- ]]>"] {
        assert!(!page.contains(markup), "{markup}");
    }
    assert!(page.contains("&lt;script&gt;alert(1)"));
}

#[test]
fn delegation_that_loses_is_said_to_lose() {
    let verdict = verdict(&Recipe::default().cook());
    let section = &verdict.sections[0];
    let waiting: Vec<_> =
        section.findings.iter().filter(|f| f.comparison == Comparison::Waiting).collect();
    assert!(!waiting.is_empty() && waiting.iter().all(|f| f.outcome() == Outcome::Loses));
    assert!(waiting.iter().all(|f| f.rival == "ttas"), "the strongest rival is named");
    let few = waiting.iter().find(|f| f.mode == Mode::Near && f.level.vars == [1, 2]).unwrap();
    let truth = 13.5 / 60.0;
    assert!(few.ratio.low < few.ratio.ratio && few.ratio.ratio < few.ratio.high);
    assert!((few.ratio.ratio / truth).ln().abs() < 0.5, "{few:?}");
    assert!(verdict.headline.starts_with("Waiting for each answer, delegation loses to"), "{}", verdict.headline);
    assert!(section.why.iter().any(|w| w.starts_with("One client:")));
    assert!(section.why.iter().any(|w| w.starts_with("No contention:")));
}

#[test]
fn delegation_that_wins_is_said_to_win() {
    let mops = |m: &str| if m == "trust" { (500.0, 500.0) } else { small_machine(m) };
    let verdict = verdict(&Recipe { mops, modes: vec![Mode::Near], ..Recipe::default() }.cook());
    let section = &verdict.sections[0];
    let waiting = section.findings.iter().filter(|f| f.comparison == Comparison::Waiting);
    assert!(waiting.clone().count() > 0 && waiting.clone().all(|f| f.outcome() == Outcome::Wins));
    assert!(verdict.headline.contains("delegation beats the best lock or channel everywhere."));
    assert!(!section.why.iter().any(|w| w.starts_with("One client:")), "an explanation of a loss that is none");
    assert!(section.advice.iter().all(|a| a.lines(Need::AnswerNow) == ["`trust`"]));
}

#[test]
fn a_tie_is_too_close_to_call() {
    let mops = |m: &str| match m {
        "trust" | "ttas" => (50.0, 50.0),
        m => (small_machine(m).0 / 10.0, small_machine(m).1 / 10.0),
    };
    let recipe = Recipe { mops, modes: vec![Mode::Near], noise: 0.2, ..Recipe::default() };
    let verdict = verdict(&recipe.cook());
    let section = &verdict.sections[0];
    let close = section
        .findings
        .iter()
        .filter(|f| f.comparison == Comparison::Waiting && f.outcome() == Outcome::TooClose);
    assert!(close.count() > 0, "{:?}", section.findings);
    assert!(verdict.to_string().contains("Too close to call"));
    let advice = section.advice.iter().map(|a| a.lines(Need::AnswerNow).join("; ")).collect::<Vec<_>>();
    assert!(advice.iter().any(|a| a == "`trust` or `ttas`" || a == "`ttas` or `trust`"), "{advice:?}");
}

#[test]
fn like_is_compared_with_like() {
    for Dish { name, verdict, .. } in MENU.iter() {
        for finding in verdict.sections.iter().flat_map(|s| &s.findings) {
            let later = ["channel-pipelined", "tokio"].contains(&finding.rival.as_str());
            assert_eq!(later, finding.comparison == Comparison::Later, "{name}: {finding:?}");
            assert!(!finding.rival.starts_with("trust"), "{name}: delegation is no rival of itself");
            let crossed = finding.comparison.title().starts_with("Not like with like");
            let same = matches!(finding.comparison, Comparison::Waiting | Comparison::Later);
            assert_ne!(crossed, same);
        }
    }
}

#[test]
fn a_mode_that_did_not_occur_is_not_seen() {
    let results = Recipe { modes: vec![Mode::Near], ..Recipe::default() }.cook();
    let told = verdict(&results);
    assert!(told.sections[0].notes.iter().any(|n| n.starts_with("Far: not seen.")));
    assert!(told.sections[0].findings.iter().all(|f| f.mode == Mode::Near));
    assert!(html(&results).contains("far: not seen in this run"));
    let both = verdict(&Recipe::default().cook());
    assert!(!both.to_string().contains("not seen"));
}

#[test]
fn modes_are_never_mixed() {
    // Delegation has only far samples, locks only near ones: nothing can be compared.
    let mut results = Recipe::default().cook();
    for run in &mut results.runs {
        let keep = if run.method.starts_with("trust") { Mode::Far } else { Mode::Near };
        run.samples.retain(|s| s.mode == keep);
        *run = summed_up(run.clone());
    }
    let verdict = verdict(&results);
    assert!(verdict.sections[0].findings.is_empty());
    assert!(verdict.headline.starts_with("Too little was measured"));
}

#[test]
fn one_cpu_is_told_and_not_judged() {
    let told = verdict(&one_cpu());
    assert!(told.headline.starts_with("One CPU"));
    assert!(told.sections.iter().all(|s| s.findings.is_empty() && s.advice.is_empty()));
    assert!(html(&one_cpu()).contains("<svg class=\"plot\""), "figures are drawn all the same");
}

#[test]
fn nothing_measured_is_said_so() {
    let nothing = Results { runs: Vec::new(), ..Recipe::default().cook() };
    assert!(verdict(&nothing).to_string().starts_with("Nothing was measured"));
}

#[test]
fn too_few_samples_are_drawn_but_not_compared() {
    let results = Recipe { samples: 2, ..Recipe::default() }.cook();
    let told = verdict(&results);
    assert!(told.sections[0].findings.is_empty());
    assert!(told.to_string().contains("fewer than 5 samples"));
    assert!(html(&results).contains("class=\"line\""));
}

#[test]
fn an_interrupted_run_says_what_is_missing() {
    let told = verdict(&partial());
    assert!(told.to_string().contains("Incomplete:"));
    assert!(!told.sections[0].findings.is_empty(), "what is there is judged");
    assert!(!verdict(&Recipe::default().cook()).to_string().contains("Incomplete:"));
}

#[test]
fn strangers_are_drawn_and_not_judged() {
    let results = strangers();
    let told = verdict(&results);
    assert!(told.notes.iter().any(|n| n.contains("`flat-combining`") && n.contains("not judged")));
    assert_eq!(told.sections.len(), 2, "an unknown workload has its own section");
    let findings = told.sections.iter().flat_map(|s| &s.findings);
    assert!(findings.clone().all(|f| f.rival != "rcl" && f.rival != "cc-synch"));
    let page = html(&results);
    for line in ["flat-combining</text>", "cc-synch</text>", "trust-then, window 4</text>"] {
        assert!(page.contains(line), "{line}");
    }
}

#[test]
fn wrong_results_have_no_figure() {
    let mut results = Recipe::default().cook();
    for run in results.runs.iter_mut().filter(|r| r.method == "ttas") {
        run.correct = false;
    }
    let told = verdict(&results);
    assert!(told.notes.iter().any(|n| n.contains("wrong final count") && n.contains("`ttas`")));
    assert!(told.sections[0].findings.iter().all(|f| f.rival != "ttas"));
    let page = html(&results);
    assert!(page.contains("wrong result: no figure"));
    assert!(!page.contains(">ttas</text>"), "a wrong method is not drawn");

    results.runs.iter_mut().for_each(|r| r.correct = false);
    assert!(verdict(&results).headline.starts_with("Nothing can be said"));
    assert!(html(&results).contains("wrong result: no figure"));
}

#[test]
fn a_wrong_run_makes_no_point_of_its_own() {
    // A check that failed on 3 variables, which nobody else was measured on.
    let mut results = Recipe { modes: vec![Mode::Near], ..Recipe::default() }.cook();
    let mut wrong = results.runs[0].clone();
    (wrong.correct, wrong.params.vars) = (false, 3);
    results.runs.push(wrong);
    assert!(!verdict(&results).to_string().contains("Incomplete"));
    assert!(verdict(&results).sections[0].findings.iter().all(|f| !f.level.vars.contains(&3)));
}

#[test]
fn the_models_are_used_only_where_they_hold() {
    let uniform = Recipe::default().cook();
    let mut skewed = uniform.clone();
    skewed.runs.iter_mut().for_each(|r| r.params.dist = "zipf:0.9".into());
    assert!(html(&uniform).contains("class=\"shade\"") && html(&uniform).contains(">L2 1 MiB<"));
    assert!(!html(&skewed).contains("class=\"shade\""));
    assert!(verdict(&skewed).to_string().contains("assume uniform choice"));
    let why = verdict(&uniform).sections[0].why.join(" ");
    assert!(why.contains("100\u{a0}% on 1 variable") && why.contains("50\u{a0}% on 2 variables"), "{why}");
    assert!(why.contains("L3 holds 50\u{a0}%"), "{why}");
}

#[test]
fn the_same_results_give_the_same_page() {
    let results = Recipe::default().cook();
    assert_eq!(html(&results), html(&results));
    assert_eq!(verdict(&results), verdict(&results));
}

#[test]
fn the_terminal_gets_lines_that_fit() {
    for Dish { name, verdict, .. } in MENU.iter() {
        let text = verdict.to_string();
        assert!(!text.contains('`'), "{name}");
        for line in text.lines() {
            assert!(line.chars().count() <= 100, "{name}: {line}");
        }
    }
}

/// `cargo test -p corelay-lab --lib -- --ignored pages_to_look_at`, then open the files.
#[test]
#[ignore = "writes pages for a person to look at"]
fn pages_to_look_at() {
    let folder = std::env::temp_dir().join("corelay-pages");
    std::fs::create_dir_all(&folder).unwrap();
    for Dish { name, results, page, verdict } in MENU.iter() {
        std::fs::write(folder.join(format!("{name}.html")), page).unwrap();
        std::fs::write(folder.join(format!("{name}.svg")), picture(results)).unwrap();
        std::fs::write(folder.join(format!("{name}.txt")), verdict.to_string()).unwrap();
    }
    println!("{}", folder.display());
}
