//! Tests of the page: well formed, self-contained, escaped, in the right order.

use super::*;

#[test]
fn every_page_is_well_formed_and_needs_nothing_else() {
    for Case { name, page, .. } in CASES.iter() {
        let tree = parsed(page);
        let mut ids = BTreeMap::new();
        for node in tree.descendants().filter(roxmltree::Node::is_element) {
            let tag = node.tag_name().name();
            assert!(
                !matches!(tag, "link" | "img" | "iframe" | "object" | "image" | "use"),
                "{name}: {tag}"
            );
            for attribute in node.attributes() {
                let loads = matches!(attribute.name(), "src" | "href" | "srcset" | "action");
                assert!(
                    !loads && !attribute.name().starts_with("on"),
                    "{name}: {attribute:?}"
                );
            }
            if let Some(id) = node.attribute("id") {
                *ids.entry(id.to_owned()).or_insert(0) += 1;
            }
            // An empty element must be written with an end tag, or HTML leaves it open.
            let void = matches!(tag, "meta" | "br" | "rect");
            let range = node.range();
            assert!(
                void || !page[range.clone()].ends_with("/>"),
                "{name}: {}",
                &page[range]
            );
        }
        assert!(
            ids.values().all(|&n| n == 1),
            "{name}: an id occurs twice: {ids:?}"
        );
        for outside in ["http:", "https:", "url(", "@import", "//cdn"] {
            let text = page.replace("//<![CDATA[", "").replace("//]]>", "");
            assert!(!text.contains(outside), "{name}: {outside}");
        }
    }
}

#[test]
fn every_picture_stands_alone() {
    for Case { name, results, .. } in CASES.iter() {
        let svg = picture(results);
        let tree = roxmltree::Document::parse(&svg).unwrap_or_else(|e| panic!("{name}: {e}"));
        let root = tree.root_element();
        assert_eq!(
            root.tag_name().namespace(),
            Some("http://www.w3.org/2000/svg"),
            "{name}"
        );
        assert!(root.attribute("viewBox").is_some() && root.attribute("role") == Some("img"));
        assert!(!svg.contains("NaN") && !svg.contains("inf"), "{name}");
    }
}

#[test]
fn points_are_reached_by_keyboard() {
    for Case { name, page, .. } in CASES.iter() {
        let tree = parsed(page);
        let of_class = |class: &'static str| {
            let nodes = tree.descendants();
            nodes.filter(move |node| node.attribute("class") == Some(class))
        };
        // The script takes a point's text from its title, and focuses what the point draws.
        for point in of_class("pt") {
            let mut children = point.children();
            let title = children.next().and_then(|node| node.text());
            assert!(title.is_some_and(|text| !text.is_empty()), "{name}");
            assert!(children.next().is_some(), "{name}: nothing can be focused");
            let place = |axis| point.attribute(axis).and_then(|at| at.parse::<f64>().ok());
            assert!(place("data-x").is_some() && place("data-y").is_some());
        }
        let is_told = page.contains("from point to point with the arrow keys");
        assert_eq!(is_told, of_class("pt").next().is_some(), "{name}");
        // An image hides its parts from assistive technology.
        for part in [
            "'tabindex', '0'",
            "'aria-label', text",
            "'role', 'group'",
            "'focus'",
        ] {
            assert!(page.contains(part), "{name}: {part}");
        }
    }
}

#[test]
fn letters_of_pictures_are_ten_pixels_high() {
    for Case { name, page, .. } in CASES.iter() {
        let tree = parsed(page);
        let plots = tree.descendants();
        for plot in plots.filter(|node| node.attribute("class") == Some("plot")) {
            let units = plot.attribute("viewBox").unwrap().split(' ').nth(2);
            let units = format!("--units:{}", units.unwrap());
            assert_eq!(plot.attribute("style"), Some(&*units), "{name}");
            let frame = plot.parent().and_then(|node| node.attribute("class"));
            assert_eq!(frame, Some("scroll"), "{name}: the page would scroll");
        }
    }
    // The divisors of the least width are the smallest letters of the pictures' stylesheet.
    let (wide, narrow) = crate::plot::CSS.split_once("@media (max-width").unwrap();
    for (style, least) in [(wide, 11.5), (narrow, 14.2)] {
        let sizes = style.split("font-size:").skip(1);
        let sizes = sizes.map(|rest| rest.split_once("px").unwrap().0.parse::<f64>().unwrap());
        assert_eq!(sizes.fold(f64::INFINITY, f64::min), least);
        assert!(CASES[0].page.contains(&format!("*10px/{least})")));
    }
}

#[test]
fn pictures_contain_no_number_that_is_none_and_labels_keep_apart() {
    for Case { name, page, .. } in CASES.iter() {
        let tree = parsed(page);
        for svg in tree
            .descendants()
            .filter(|n| n.attribute("class") == Some("plot"))
        {
            let labels: Vec<f64> = svg
                .descendants()
                .filter(|n| {
                    n.attribute("class") == Some("label") && n.attribute("text-anchor").is_none()
                })
                .map(|n| n.attribute("y").unwrap().parse().unwrap())
                .collect();
            for (i, a) in labels.iter().enumerate() {
                assert!(
                    labels[..i].iter().all(|b| (a - b).abs() >= 15.0),
                    "{name}: {labels:?}"
                );
            }
            for node in svg.descendants() {
                for a in node.attributes() {
                    assert!(
                        !a.value().contains("NaN") && !a.value().contains("inf"),
                        "{name}: {a:?}"
                    );
                }
            }
        }
    }
}

#[test]
fn the_verdict_comes_first_and_its_losing_side_before_its_winning_side() {
    let page = html(&Recipe::default().make());
    let at = |text: &str| {
        page.find(text)
            .unwrap_or_else(|| panic!("{text} is missing"))
    };
    assert!(at("class=\"headline\"") < at("Where delegation loses"));
    assert!(at("Where delegation loses") < at("Where delegation wins"));
    assert!(at("Where delegation wins") < at("<svg class=\"plot\""));
    assert!(at("<svg class=\"plot\"") < at("The machine"));
    let text = verdict(&Recipe::default().make()).to_string();
    assert!(
        text.find("Where delegation loses").unwrap() < text.find("Where delegation wins").unwrap()
    );
}

#[test]
fn lines_moved_on_larger_machines_are_labelled_as_a_model() {
    let page = html(&Recipe::default().make());
    let (_, section) = page.split_once("<h2>On a larger machine</h2>").unwrap();
    assert!(section.starts_with("<p class=\"fine\">A model, not measured here"));
    let row = "<th>ticket</th><td class=\"num\">4.21</td><td class=\"num\">14.8</td>\
               <td class=\"num\">66.3</td>";
    assert!(section.contains(row), "{section}");
    // A mutex is no source of corelay's.
    assert!(!section.contains("<th>mutex</th><td class=\"num\">"));
    let mut own = Recipe::default().make();
    own.runs
        .iter_mut()
        .for_each(|run| run.workload = "a map of one's own".to_owned());
    assert!(!html(&own).contains("On a larger machine"));
}

#[test]
fn embedded_results_are_the_results() {
    for Case {
        name,
        results,
        page,
        ..
    } in CASES.iter().filter(|d| d.name != "hostile")
    {
        let (_, rest) = page.split_once("id=\"results\">").unwrap();
        let (json, _) = rest.split_once("</script>").unwrap();
        let plain = serde_json::to_string(results).unwrap();
        assert!(
            json == plain,
            "{name}: nothing in these results needs an escape"
        );
        serde_json::from_str::<Results>(json).unwrap_or_else(|e| panic!("{name}: {e}"));
    }
}

#[test]
fn lengths_of_samples_are_rounded() {
    let mut results = Recipe::default().make();
    results.runs[0].params.secs = 0.009_283_097;
    assert!(html(&results).contains(" of 50 ms and 9.28 ms were taken"));
}

#[test]
fn hostile_text_stays_text() {
    let page = html(&hostile());
    for markup in ["<script>alert", "<img", "<i>note", "<b>`x`", "<!-- ]]>"] {
        assert!(!page.contains(markup), "{markup}");
    }
    assert!(page.contains("&lt;script&gt;alert(1)"));
}
