//! Tests of overlaid results: the looks of their lines, the verdict, and the page.

use super::chart::{Key, Point};
use super::lay::{FileLabel, MergedLine, Overlay, Overlays};
use super::page;
use crate::figure::outcome::Axis;
use crate::figure::quantity::Better;
use corelay_lab_measure::schema::Mode;

/// Makes points over 1, 8 and 64 variables, with quartiles 2 % around them.
fn points(ys: [f64; 3]) -> Vec<Point> {
    let point = |(x, y): (f64, f64)| Point {
        x,
        y,
        spread: (0.98 * y, 1.02 * y),
        n: 9,
    };
    let xs = [1.0, 8.0, 64.0].into_iter();
    xs.zip(ys).map(point).collect()
}

/// Makes an overlay of throughput, of lines with a name and their values in each file.
fn overlay(what: &str, lines: &[(&str, &[[f64; 3]])]) -> Overlay {
    let line = |(label, files): &(&str, &[[f64; 3]])| MergedLine {
        label: (*label).to_owned(),
        files: files.iter().map(|ys| points(*ys)).collect(),
    };
    let lines: Vec<MergedLine> = lines.iter().map(line).collect();
    Overlay {
        key: Key {
            what: what.to_owned(),
            axis: Axis::vars(),
            quantity: "million operations per second".to_owned(),
            better: Better::Higher,
        },
        modes: vec![Mode::Near; lines[0].files.len()],
        lines,
    }
}

fn laid(overlays: Vec<Overlay>) -> Overlays {
    let file = |(letter, _): (char, &Mode)| FileLabel {
        letter,
        file: format!("{letter}.json"),
        machine: "made up".to_owned(),
        commit: "c".to_owned(),
        command: "x".to_owned(),
    };
    Overlays {
        files: ('A'..).zip(&overlays[0].modes).map(file).collect(),
        overlays,
        notes: Vec::new(),
    }
}

/// Three lines of two files: the second is faster with one, slower with one, level with one.
fn mixed() -> Overlay {
    let (slow, fast) = ([10.0; 3], [10.0, 20.0, 30.0]);
    let level = [10.1, 9.9, 10.0];
    overlay(
        "fetch-add",
        &[
            ("mutex", &[slow, fast]),
            ("mcs", &[[15.0; 3], slow]),
            ("clh", &[slow, level]),
        ],
    )
}

/// Returns the verdict on the first picture.
fn verdict_on(overlay: Overlay) -> Vec<String> {
    let mut pictures = laid(vec![overlay]).verdict().pictures;
    let plain = |sentence: String| sentence.replace('\u{a0}', " ");
    pictures.remove(0).1.into_iter().map(plain).collect()
}

#[test]
fn a_method_looks_alike_in_all_pictures_of_the_page() {
    let named = |what, labels: &[&'static str]| {
        let files: &[[f64; 3]] = &[[10.0; 3], [20.0; 3]];
        let lines: Vec<_> = labels.iter().map(|label| (*label, files)).collect();
        overlay(what, &lines)
    };
    let laid = laid(vec![
        named("one", &["mutex", "mcs"]),
        named("two", &["mcs", "clh", "mutex"]),
        named("many", &["clh", "mutex", "mcs", "trust"]),
    ]);
    let pictures = page::all_pictures(&laid);
    let looks: Vec<_> = pictures.iter().flat_map(page::Picture::looks).collect();
    assert_eq!(looks.len(), 9);
    for (name, look) in &looks {
        let mut all = looks.iter();
        assert!(
            all.all(|(other, its)| (name == other) == (look == its)),
            "{looks:?}"
        );
    }
}

#[test]
fn the_verdict_names_the_faster_file_for_each_method() {
    let laid = laid(vec![mixed()]);
    let headline = laid.verdict().headline.replace('\u{a0}', " ");
    assert_eq!(
        headline,
        "Of 9 points, A is faster at 3 (1.5 × in the median, 1.5 × at most), B is faster at 2 \
         (2.5 × in the median, 3.0 × at most) and no difference can be measured at 4."
    );
    assert_eq!(
        verdict_on(mixed()),
        [
            "A is faster with `mcs` everywhere (1.5 ×).",
            "B is faster with `mutex` at 8 to 64 (2.0 to 3.0 ×).",
            "No measurable difference with `clh`.",
        ]
    );
}

#[test]
fn the_verdict_on_equal_files_is_no_measurable_difference() {
    let mut level = overlay("fetch-add", &[("clh", &[[10.0; 3], [12.0, 10.3, 9.8]])]);
    // Quartiles that overlap hide a fifth.
    level.lines[0].files[1][0].spread = (9.0, 13.0);
    let headline = laid(vec![level]).verdict().headline;
    assert_eq!(
        headline,
        "No measurable difference between A and B at any of 3 points."
    );
}

#[test]
fn few_differences_are_as_many_as_two_runs_of_one_program_have() {
    let same: Vec<String> = (0..9).map(|n| format!("same-{n}")).collect();
    for (alike, said) in [(4, false), (5, true)] {
        let mut lines: Vec<(&str, &[[f64; 3]])> = vec![("mcs", &[[10.0; 3], [12.0, 10.0, 10.0]])];
        lines.extend(
            same[..alike]
                .iter()
                .map(|name| (name.as_str(), &[[10.0; 3]; 2][..])),
        );
        let headline = laid(vec![overlay("fetch-add", &lines)]).verdict().headline;
        assert_eq!(headline.contains("differ at as many"), said, "{headline}");
    }
}

#[test]
fn the_file_of_less_latency_is_faster() {
    let mut latency = mixed();
    latency.key.better = Better::Lower;
    let said = verdict_on(latency);
    assert!(said[0].starts_with("A is faster with `mutex`"), "{said:?}");
    assert!(said[1].starts_with("B is faster with `mcs`"), "{said:?}");
}

#[test]
fn too_few_samples_other_modes_and_counters_are_not_judged() {
    let mut few = mixed();
    for line in &mut few.lines {
        line.files[0].iter_mut().for_each(|point| point.n = 4);
    }
    assert!(verdict_on(few)[0].starts_with("Not judged"));
    let (mut far, mut counter) = (mixed(), mixed());
    far.modes[1] = Mode::Far;
    counter.key.better = Better::Neither;
    assert!(laid(vec![far, counter]).verdict().pictures.is_empty());
}

#[test]
fn the_verdict_on_one_file_is_between_its_methods() {
    let one = overlay(
        "fetch-add",
        &[
            ("mutex", &[[20.0, 10.0, 10.0]]),
            ("mcs", &[[10.0, 12.0, 15.0]]),
            ("trust-then", &[[90.0; 3]]),
        ],
    );
    assert_eq!(
        verdict_on(one)[..2],
        [
            "Fastest for any code, answer at once: `mutex` at 1; `mcs` at 8 to 64.",
            "Fastest for any code, answer later: `trust-then` everywhere.",
        ]
    );
}

#[test]
fn the_page_leads_with_its_verdict_and_has_the_ratios() {
    let page = page::html(&laid(vec![mixed()]), "corelay plot", "c");
    let at = |text: &str| page.find(text).unwrap_or_else(|| panic!("no {text}"));
    assert!(at("Of 9 points, A is faster") < at("<table"));
    assert!(at("A is faster with <code") < at("<svg class=\"plot\""));
    assert!(at("<svg class=\"plot\"") < at("B / A</th>"));
    assert!(page.contains("<th>mutex</th><td class=\"num\">64</td>"));
    assert!(page.contains("3.0\u{a0}×</td>"));
}
