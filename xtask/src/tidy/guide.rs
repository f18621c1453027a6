//! Each link of the guide's pages in rustdoc has a label that `links.md` leads elsewhere: the page's
//! own definition is a path in the repository, which leads nowhere in rustdoc.

use super::Finding;
use crate::source::line_of;
use crate::workspace::{self, Workspace};
use anyhow::Result;
use pulldown_cmark::{Event, LinkType, Options, Parser, Tag};
use std::collections::BTreeSet;

const MODULE: &str = "crates/corelay/src/guide/mod.rs";
const LINKS: &str = "crates/corelay/src/guide/links.md";
const PAGES: &str = "docs/guide";

pub(super) fn check(workspace: &Workspace) -> Result<Vec<Finding>> {
    if !workspace.root.join(MODULE).exists() {
        return Ok(Vec::new());
    }
    let module = workspace::read(&workspace.root.join(MODULE))?;
    let links = workspace::read(&workspace.root.join(LINKS))?;
    let mut unused: BTreeSet<_> = labels(&links).collect();
    let known = unused.clone();
    let mut findings = Vec::new();
    let files = module.split('"').filter(|part| part.ends_with(".md"));
    let pages = files.map(|file| file.trim_start_matches("../../guide/"));
    for page in pages.filter(|page| !page.contains('/') && *page != "links.md") {
        let path = workspace.root.join(PAGES).join(page);
        let text = workspace::read(&path)?;
        for label in labels(&text) {
            unused.remove(&label);
            if !known.contains(&label) {
                let what = format!("[{label}] has no definition in {LINKS}");
                findings.push(Finding::error(workspace.shown(&path), what));
            }
        }
        for (line, link) in without_label(&text) {
            let place = format!("{}:{line}", workspace.shown(&path));
            let what = format!("the link {link} needs a label, for its way from rustdoc");
            findings.push(Finding::error(place, what));
        }
    }
    for label in unused {
        let what = format!("no page has a link [{label}]; remove it");
        findings.push(Finding::error(LINKS, what));
    }
    Ok(findings)
}

/// The labels that a page defines.
fn labels(text: &str) -> impl Iterator<Item = String> {
    let parser = Parser::new_ext(text, Options::ENABLE_TABLES);
    let definitions = parser.reference_definitions().iter();
    let labels: Vec<_> = definitions.map(|(label, _)| label.to_owned()).collect();
    labels.into_iter()
}

/// Links to other files that have their destination beside their text.
fn without_label(text: &str) -> impl Iterator<Item = (usize, String)> {
    let parser = Parser::new_ext(text, Options::ENABLE_TABLES).into_offset_iter();
    parser.filter_map(|(event, range)| match event {
        Event::Start(
            Tag::Link {
                link_type: LinkType::Inline,
                dest_url,
                ..
            }
            | Tag::Image {
                link_type: LinkType::Inline,
                dest_url,
                ..
            },
        ) if !dest_url.contains("://") && !dest_url.starts_with('#') => {
            Some((line_of(text, range.start), dest_url.into_string()))
        }
        _ => None,
    })
}

#[test]
fn links_that_lead_nowhere_from_rustdoc_are_found() {
    let finds = |page: &str, links: &str, wanted: &[&str]| {
        let module = "include_str!(\"links.md\")\npage!(pub mod start, \"start.md\");\n";
        let files = [
            (MODULE, module),
            (LINKS, links),
            ("docs/guide/start.md", page),
        ];
        super::assert_finds(check, &files, wanted);
    };
    let page = "[a][next] [b](#here) [c](https://example.org)\n\n[next]: next.md\n";
    finds(page, "[next]: crate::guide::next\n", &[]);
    finds(page, "", &["start.md: [next] has no definition"]);
    finds(
        "",
        "[next]: crate::guide::next\n",
        &["no page has a link [next]"],
    );
    finds(
        "[a](next.md)\n",
        "",
        &["start.md:1: the link next.md needs a label"],
    );
}
