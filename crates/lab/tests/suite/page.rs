//! The pages that the program leaves: whole, well-formed, and complete without a network.

use roxmltree::{Document, Node, ParsingOptions};
use std::path::Path;

/// A page with pictures in it is longer than this, in bytes.
const WITH_PICTURES: usize = 12_000;

/// Reads a page, and checks it.
#[track_caller]
pub(crate) fn whole(path: &Path) -> String {
    let page = std::fs::read_to_string(path).unwrap();
    let found = complaints(&page);
    assert!(found.is_empty(), "{}: {found:?}", path.display());
    page
}

/// Reads a page that has pictures, and checks it.
#[track_caller]
pub(crate) fn with_pictures(path: &Path) -> String {
    let page = whole(path);
    assert!(page.contains("<svg"), "{}: no picture", path.display());
    let bytes = page.len();
    assert!(bytes > WITH_PICTURES, "{}: {bytes} bytes", path.display());
    page
}

/// Every id of a page, in order.
pub(crate) fn ids(page: &str) -> Vec<String> {
    let options = ParsingOptions {
        allow_dtd: true,
        ..Default::default()
    };
    let document = Document::parse_with_options(page, options).unwrap();
    let ids = document
        .descendants()
        .filter_map(|node| node.attribute("id"));
    ids.map(str::to_owned).collect()
}

/// The faults of a page, one sentence each.
fn complaints(page: &str) -> Vec<String> {
    let options = ParsingOptions {
        allow_dtd: true,
        ..Default::default()
    };
    let document = match Document::parse_with_options(page, options) {
        Ok(document) => document,
        Err(error) => return vec![error.to_string()],
    };
    let mut found = Vec::new();
    let mut ids = ids(page);
    ids.sort_unstable();
    let twice = ids.windows(2).filter(|two| two[0] == two[1]);
    found.extend(twice.map(|two| format!("the id {} stands there twice", two[0])));
    found.extend(document.descendants().flat_map(fetches));
    let styles = page.split("url(").skip(1);
    let outside = styles.filter(|style| !is_inside(style.trim_start_matches(['"', '\''])));
    found.extend(outside.map(|style| format!("url({}", style.split(')').next().unwrap_or(style))));
    if page.contains("@import") {
        found.push("a style sheet is imported".to_owned());
    }
    found
}

/// The addresses that a browser fetches because of an element. Links that a reader may follow
/// are none.
fn fetches(node: Node<'_, '_>) -> Vec<String> {
    let is_link = node.tag_name().name() == "a";
    let names = |name: &str| name == "src" || name == "href" && !is_link;
    let sources = node
        .attributes()
        .filter(|attribute| names(attribute.name()));
    let outside = sources.filter(|source| !is_inside(source.value()));
    outside.map(|source| source.value().to_owned()).collect()
}

/// Whether an address is a part of the page.
fn is_inside(address: &str) -> bool {
    address.starts_with("data:") || address.starts_with('#')
}

#[test]
fn pages_that_fetch_are_found() {
    let page = |extra: &str| format!("<html><svg></svg>{extra}</html>");
    for good in [
        "<a href=\"https://e.org\">x</a>",
        "<img src=\"data:x\"/>",
        "<p style=\"clip-path:url(#clip)\"></p>",
    ] {
        assert_eq!(complaints(&page(good)), [""; 0], "{good}");
    }
    for bad in [
        "<script src=\"https://e.org/x.js\"></script>",
        "<link rel=\"stylesheet\" href=\"x.css\"/>",
        "<img src=\"x.png\"/>",
        "<iframe src=\"x.html\"></iframe>",
        "<style>@import 'x'</style>",
        "<style>a{background:url(x.png)}</style>",
        "<p id=\"a\"></p><p id=\"a\"></p>",
        "<p>",
    ] {
        assert_eq!(complaints(&page(bad)).len(), 1, "{bad}");
    }
}
