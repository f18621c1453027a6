//! Every relative link in a Markdown file leads somewhere, anchors included.

use super::Finding;
use crate::source::line_of;
use crate::workspace::{self, Workspace};
use anyhow::Result;
use pulldown_cmark::{Event, Options, Parser, Tag, TagEnd};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

pub(super) fn check(workspace: &Workspace) -> Result<Vec<Finding>> {
    let is_markdown = |path: &Path| path.extension().is_some_and(|e| e == "md");
    let mut pages = BTreeMap::new();
    for path in workspace::files_below(&workspace.root, &is_markdown)? {
        pages.insert(path.clone(), Page::read(&workspace::read(&path)?));
    }
    let mut findings = Vec::new();
    for (path, page) in &pages {
        for (line, link) in &page.links {
            if let Some(what) = broken(path, link, &pages, workspace) {
                let place = format!("{}:{line}", workspace.shown(path));
                findings.push(Finding::error(place, what));
            }
        }
    }
    Ok(findings)
}

/// A Markdown file: where it points to and what can be pointed at.
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
                    for name in ["src=\"", "href=\""] {
                        page.links
                            .extend(attributes(&html, name).map(|link| (line, link)));
                    }
                    page.anchors.extend(attributes(&html, "id=\""));
                }
                Event::Start(Tag::Heading { .. }) => heading = Some(String::new()),
                Event::End(TagEnd::Heading(_)) => {
                    page.anchors
                        .extend(heading.take().map(|text| anchor(&text)));
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
    html.split(name)
        .skip(1)
        .filter_map(|rest| Some(rest.split_once('"')?.0.to_owned()))
        .collect::<Vec<_>>()
        .into_iter()
}

/// The anchor that GitHub gives a heading.
fn anchor(heading: &str) -> String {
    heading
        .to_lowercase()
        .chars()
        .filter_map(|c| match c {
            ' ' => Some('-'),
            c if c.is_alphanumeric() || c == '-' || c == '_' => Some(c),
            _ => None,
        })
        .collect()
}

/// Says what is wrong with a link, where something is.
fn broken(
    from: &Path,
    link: &str,
    pages: &BTreeMap<PathBuf, Page>,
    workspace: &Workspace,
) -> Option<String> {
    let elsewhere =
        link.contains("://") || link.starts_with("mailto:") || link.starts_with("data:");
    if elsewhere {
        return None;
    }
    let (file, anchor) = link.split_once('#').unwrap_or((link, ""));
    let target = if file.is_empty() {
        from.to_owned()
    } else {
        normal(&from.parent()?.join(file.replace("%20", " ")))
    };
    if !target.starts_with(&workspace.root) {
        return Some(format!(
            "the link {link} leaves the repository; use a full address"
        ));
    }
    if !target.exists() {
        return Some(format!(
            "the link {link} leads nowhere; correct or remove it"
        ));
    }
    let page = pages.get(&target)?;
    let known = anchor.is_empty() || page.anchors.iter().any(|known| known == anchor);
    (!known).then(|| format!("the link {link} names no heading there; correct the part after #"))
}

/// The path without `.` and `..`.
fn normal(path: &Path) -> PathBuf {
    let mut parts = PathBuf::new();
    for part in path.components() {
        match part {
            std::path::Component::CurDir => {}
            std::path::Component::ParentDir => {
                parts.pop();
            }
            part => parts.push(part),
        }
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    fn readme(text: &str) -> Vec<String> {
        let guide = "# Quick start, in `ten` lines\n";
        super::super::findings(check, &[("README.md", text), ("docs/guide/a.md", guide)])
    }

    #[test]
    fn good_links_are_silent() {
        let text = "# Top\n[a](docs/guide/a.md) [b](docs/guide/a.md#quick-start-in-ten-lines)\n\
                    [c](#top) [d](https://example.org/x) [e](docs/) <img src=\"docs/guide/a.md\">\n\
                    `[f](nowhere)` [g][ref]\n\n[ref]: docs/guide/a.md\n\n```\n[h](nowhere)\n```\n";
        assert_eq!(readme(text), [""; 0]);
    }

    #[test]
    fn links_that_lead_nowhere_are_found() {
        for link in [
            "[a](gone.md)",
            "![a](gone.png)",
            "<img src=\"gone.png\">",
            "[a]\n\n[a]: gone",
        ] {
            let found = readme(&format!("first\n\n{link}\n"));
            assert_eq!(found.len(), 1, "{link}");
            assert!(
                found[0].starts_with("README.md:3: the link gone"),
                "{found:?}"
            );
        }
        assert!(readme("[a](docs/guide/a.md#gone)")[0].contains("names no heading"));
        assert!(readme("[a](../elsewhere.md)")[0].contains("leaves the repository"));
    }
}
