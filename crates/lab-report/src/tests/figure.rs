//! Tests of a figure's page on made-up results.

use super::*;
use crate::figure::outcome::{About, Axis, Drawing, Outcome, place};
use crate::figure::page;
use crate::figure::quantity::Quantity;
use corelay_lab_measure::schema::Run;

/// Makes a figure of two panels with lines of these names, at two places each.
fn two_panels(lines: [&[&str]; 2]) -> Outcome {
    let made = Recipe {
        vars: vec![1],
        methods: vec!["mutex"],
        ..Recipe::default()
    };
    let mut results = made.make();
    let run = results.runs.remove(0);
    let mut panels = Vec::new();
    for (key, lines) in ["left", "right"].into_iter().zip(lines) {
        panels.push(Drawing {
            key: key.to_owned(),
            title: format!("The {key} panel"),
            axis: Axis::linear("servers"),
            quantities: vec![Quantity::Throughput],
            lines: lines.iter().map(|line| (*line).to_owned()).collect(),
        });
        for line in lines {
            for x in [1.0, 2.0] {
                let mut run = run.clone();
                place(&mut run, key, line, x);
                results.runs.push(run);
            }
        }
    }
    let figure = About {
        name: "made-up".to_owned(),
        panels,
        ..About::default()
    };
    Outcome { figure, results }
}

#[test]
fn a_line_looks_alike_in_all_panels_of_a_figure() {
    let outcome = two_panels([&["2 servers", "mutex"], &["1 server", "2 servers"]]);
    let page = page::html(&outcome);
    let tree = parsed(&page);
    let mut looks: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    let series = tree.descendants().filter(|node| {
        let class = node.attribute("class");
        class.is_some_and(|class| class.starts_with("s "))
    });
    for node in series {
        let label = node
            .children()
            .find(|child| child.attribute("class") == Some("label"));
        let label = label.and_then(|label| label.text()).unwrap();
        looks
            .entry(label)
            .or_default()
            .extend(node.attribute("class"));
    }
    assert!(looks["2 servers"].len() > 1, "{looks:?}");
    for classes in looks.values() {
        assert!(
            classes.iter().all(|class| *class == classes[0]),
            "{looks:?}"
        );
    }
    assert_ne!(looks["1 server"][0], looks["2 servers"][0]);
}

/// Makes all samples but the first equal, and the first `slow` times as fast.
fn with_a_slow_sample(run: &mut Run, slow: f64) {
    for sample in &mut run.samples {
        (sample.mode, sample.mops) = (Mode::Near, 50.0);
    }
    run.samples[0].mops = 50.0 * slow;
    *run = summed_up(run.clone());
}

#[test]
fn a_mean_outside_its_quartiles_is_explained() {
    let said = "outside the quartiles";
    let mut outcome = two_panels([&["2 servers"], &["mutex"]]);
    assert!(!page::html(&outcome).contains(said));
    with_a_slow_sample(&mut outcome.results.runs[1], 0.01);
    let page = page::html(&outcome);
    let sentence = "outside the quartiles for <code>2 servers</code> at 2 (servers): a harmonic \
                    mean is pulled down by a few slow samples.";
    assert!(page.contains(sentence), "{page}");
    assert!(page.contains("\noutside the quartiles: a harmonic mean"));

    let mut results = Recipe::default().make();
    assert!(!html(&results).contains(said));
    with_a_slow_sample(&mut results.runs[0], 0.01);
    let page = html(&results);
    assert!(page.contains(said) && page.contains("†</abbr>"));
    assert!(crate::table::of(&results).contains(said));
}

#[test]
fn few_samples_and_rounding_are_said() {
    let mut outcome = two_panels([&["mutex"], &["ttas"]]);
    for run in &mut outcome.results.runs {
        let one = run.samples[0].clone();
        run.samples = vec![one; 10];
        run.samples.iter_mut().for_each(|s| s.mode = Mode::Near);
        *run = summed_up(run.clone());
    }
    let page = page::html(&outcome);
    assert!(!page.contains("fewer than the source") && !page.contains("Rounded"));
    let run = &mut outcome.results.runs[2];
    run.samples.truncate(7);
    *run = summed_up(run.clone());
    run.notes.push("servers reduced from 16 to 4".to_owned());
    let page = page::html(&outcome);
    for said in [
        "1 of 4 points have fewer than the source's ten samples",
        "the fewest have 7",
        "Rounded, as in the thesis: <code",
        ": servers reduced from 16 to 4.",
    ] {
        assert!(page.contains(said), "{said}");
    }
}
