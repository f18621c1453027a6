//! What every page of the lab has around its content: the head, the style sheets, hovering, and
//! the raw results with a button that saves them.

use crate::plot::{self, escape};
use serde::Serialize;

const CSS: &str = include_str!("page.css");
const JS: &str = include_str!("page.js");

/// What the page's button saves.
pub struct Saved<'a, T> {
    /// In words.
    pub what: &'a str,
    /// The file's name.
    pub file: &'a str,
    pub data: &'a T,
}

impl<'a, T> Saved<'a, T> {
    /// Samples as they were taken.
    pub fn samples(file: &'a str, data: &'a T) -> Self {
        Self {
            what: "the raw samples",
            file,
            data,
        }
    }
}

/// A page that needs no other file, and is well-formed XML.
///
/// `title` is a text, `body` and `made_by` are HTML.
pub fn document(
    title: &str,
    body: &str,
    made_by: &str,
    data: &Saved<'_, impl Serialize>,
) -> String {
    format!(
        r#"<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"/><meta name="viewport" content="width=device-width, initial-scale=1"/><meta name="color-scheme" content="light dark"/><title>{} – corelay</title><style>{}{CSS}</style></head><body><main>{body}</main><footer><p>{made_by} <button id="save" type="button" data-file="{}" hidden="hidden">Save {}</button></p></footer><div id="tip" role="status" hidden="hidden"></div><script type="application/json" id="results">{}</script><script>//<![CDATA[
{JS}
//]]></script></body></html>
"#,
        escape(title),
        plot::CSS,
        escape(data.file),
        escape(&format!("{} ({})", data.what, data.file)),
        json(data.data)
    )
}

/// From which command and commit a page is, as HTML.
pub fn made_by(command: &str, commit: &str) -> String {
    format!(
        "Made by <code>{}</code>, commit <code>{}</code>.",
        escape(command),
        escape(commit)
    )
}

/// Data as JSON that neither ends its script element nor upsets an XML parser.
fn json(data: &impl Serialize) -> String {
    // A number that JSON cannot carry becomes null; nothing else can fail here.
    let text = serde_json::to_string(data).unwrap_or_else(|_| "null".to_owned());
    text.replace('&', "\\u0026")
        .replace('<', "\\u003c")
        .replace('>', "\\u003e")
}
