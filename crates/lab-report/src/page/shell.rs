//! The frame of every page: the head, the style sheets, the script that shows the figures of a
//! point for pointer and keyboard, and the raw results with a button that saves them.

use crate::plot;
use maud::{DOCTYPE, Markup, PreEscaped, html};
use serde::Serialize;

const CSS: &str = include_str!("page.css");
const JS: &str = include_str!("page.js");

/// The data that the page's button saves.
pub struct Saved<'a, T> {
    /// A description for the button.
    pub what: &'a str,
    /// The file's name.
    pub file: &'a str,
    /// The content of the file.
    pub data: &'a T,
}

impl<'a, T> Saved<'a, T> {
    /// Makes the button save `data` as `file`, under the name "the raw samples".
    pub(crate) fn samples(file: &'a str, data: &'a T) -> Self {
        Self {
            what: "the raw samples",
            file,
            data,
        }
    }
}

/// The mark of a point that has figures to show.
const POINT: &str = r#"class="pt""#;

/// Tags that XML closes and maud does not.
const META: PreEscaped<&str> = PreEscaped(
    r#"<meta charset="utf-8"/><meta name="viewport" content="width=device-width, initial-scale=1"/><meta name="color-scheme" content="light dark"/>"#,
);

/// Renders a page that needs no other file and is well-formed XML.
pub fn document(
    title: &str,
    body: &Markup,
    made_by: &Markup,
    data: &Saved<'_, impl Serialize>,
) -> String {
    let page = html! {
        (DOCTYPE) "\n"
        html lang="en" {
            head {
                (META)
                title { (title) " – corelay" }
                style { (PreEscaped(plot::CSS)) (PreEscaped(CSS)) }
            }
            body {
                main { (body) }
                footer {
                    @if body.0.contains(POINT) {
                        p {
                            "For the figures of a point, point at it; or go to a picture with Tab, and from point to point with the arrow keys."
                        }
                    }
                    p {
                        (made_by) " "
                        button id="save" type="button" data-file=(data.file) hidden="hidden" {
                            "Save " (data.what) " (" (data.file) ")"
                        }
                    }
                }
                // A focused point has a label of its own, so its figures are not said twice.
                div id="tip" aria-hidden="true" hidden="hidden" {}
                script type="application/json" id="results" { (PreEscaped(json(data.data))) }
                script { (PreEscaped("//<![CDATA[\n")) (PreEscaped(JS)) (PreEscaped("\n//]]>")) }
            }
        }
        "\n"
    };
    plot::without_forbidden(page.into_string())
}

/// Renders the command and the commit that made a page.
pub fn made_by(command: &str, commit: &str) -> Markup {
    html! { "Made by " code { (command) } ", commit " code { (commit) } "." }
}

/// Serializes data as JSON that neither ends its script element nor upsets an XML parser.
fn json(data: &impl Serialize) -> String {
    // A number that JSON cannot carry becomes null; nothing else can fail here.
    let text = serde_json::to_string(data).unwrap_or_else(|_| "null".to_owned());
    text.replace('&', "\\u0026")
        .replace('<', "\\u003c")
        .replace('>', "\\u003e")
}
