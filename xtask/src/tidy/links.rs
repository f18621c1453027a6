//! Every relative link in a Markdown file leads somewhere, anchors included.

use super::Finding;
use crate::source::line_of;
use crate::workspace::{self, Workspace};
use anyhow::Result;
use pulldown_cmark::{Event, Options, Parser, Tag, TagEnd};
use std::collections::BTreeMap;
use std::path::{Component, Path, PathBuf};

pub(super) fn check(workspace: &Workspace) -> Result<Vec<Finding>> {
    let mut pages = BTreeMap::new();
    for path in workspace::files_below(&workspace.root, "md")? {
        let page = Page::read(&workspace::read(&path)?);
        pages.insert(path, page);
    }
    let mut findings = Vec::new();
    for (path, page) in &pages {
        for (line, link) in &page.links {
            if let Some(what) = broken(path, link, &pages, &workspace.root) {
                let place = format!("{}:{line}", workspace.shown(path));
                findings.push(Finding::error(place, format!("the link {link} {what}")));
            }
        }
    }
    Ok(findings)
}

/// The links of a Markdown file, and the anchors that others may link to.
#[derive(Debug, Default)]
struct Page {
    links: Vec<(usize, String)>,
    anchors: Vec<String>,
}

impl Page {
    fn read(text: &str) -> Self {
        let mut page = Self::default();
        let mut heading = None;
        let options = Options::ENABLE_TABLES | Options::ENABLE_FOOTNOTES;
        for (event, range) in Parser::new_ext(text, options).into_offset_iter() {
            let line = line_of(text, range.start);
            match event {
                Event::Start(Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. }) => {
                    page.links.push((line, dest_url.into_string()));
                }
                Event::Html(html) | Event::InlineHtml(html) => {
                    let links = attributes(&html, "src").chain(attributes(&html, "href"));
                    page.links.extend(links.map(|link| (line, link)));
                    page.anchors.extend(attributes(&html, "id"));
                }
                Event::Start(Tag::Heading { .. }) => heading = Some(String::new()),
                Event::End(TagEnd::Heading(_)) => {
                    let anchor = heading.take().map(|text| anchor(&text));
                    page.anchors.extend(anchor);
                }
                Event::Text(text) | Event::Code(text) => {
                    if let Some(heading) = &mut heading {
                        heading.push_str(&text);
                    }
                }
                _ => {}
            }
        }
        page
    }
}

fn attributes(html: &str, name: &str) -> impl Iterator<Item = String> {
    let start = format!("{name}=\"");
    let parts = html.split(&start).skip(1);
    let values = parts.filter_map(|rest| Some(rest.split_once('"')?.0.to_owned()));
    values.collect::<Vec<_>>().into_iter()
}

/// The anchor that GitHub gives a heading.
fn anchor(heading: &str) -> String {
    let kept = |c: &char| c.is_alphanumeric() || "-_ ".contains(*c);
    let kept = heading
        .to_lowercase()
        .chars()
        .filter(kept)
        .collect::<String>();
    kept.replace(' ', "-")
}

/// Says what is wrong with a link, if something is.
fn broken(
    from: &Path,
    link: &str,
    pages: &BTreeMap<PathBuf, Page>,
    root: &Path,
) -> Option<&'static str> {
    if link.contains("://") || link.starts_with("mailto:") || link.starts_with("data:") {
        return None;
    }
    let (file, anchor) = link.split_once('#').unwrap_or((link, ""));
    let target = match file {
        "" => from.to_owned(),
        file => normal(&from.parent()?.join(file.replace("%20", " "))),
    };
    if !target.starts_with(root) {
        return Some("leaves the repository; use a full address");
    }
    if !target.exists() {
        return Some("leads nowhere; correct or remove it");
    }
    let anchors = &pages.get(&target)?.anchors;
    let is_known = anchor.is_empty() || anchors.iter().any(|known| known == anchor);
    (!is_known).then_some("names no heading there; correct the part after #")
}

/// The path without `.` and `..`.
fn normal(path: &Path) -> PathBuf {
    path.components().fold(PathBuf::new(), |mut normal, part| {
        match part {
            Component::CurDir => {}
            Component::ParentDir => _ = normal.pop(),
            part => normal.push(part),
        }
        normal
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn readme(text: &str, wanted: &[&str]) {
        let guide = ("docs/guide/a.md", "# Quick start, in `ten` lines\n");
        super::super::assert_finds(check, &[("README.md", text), guide], wanted);
    }

    #[test]
    fn good_links_are_silent() {
        let text = "# Top\n[a](docs/guide/a.md) [b](docs/guide/a.md#quick-start-in-ten-lines)\n\
                    [c](#top) [d](https://example.org/x) [e](docs/) <img src=\"docs/guide/a.md\">\n\
                    `[f](nowhere)` [g][ref]\n\n[ref]: docs/guide/a.md\n\n```\n[h](nowhere)\n```\n";
        readme(text, &[]);
    }

    #[test]
    fn links_that_lead_nowhere_are_found() {
        for link in [
            "[a](gone.md)",
            "![a](gone.png)",
            "<img src=\"gone.png\">",
            "[a]\n\n[a]: gone",
        ] {
            readme(&format!("1\n\n{link}\n"), &["README.md:3: the link gone"]);
        }
        readme("[a](docs/guide/a.md#gone)", &["names no heading"]);
        readme("[a](../elsewhere.md)", &["leaves the repository"]);
    }
}
