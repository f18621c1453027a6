//! What pages of the lab have in common inside: lists of sentences and tables of words.

use crate::plot::escape;
use crate::table::grid::Grid;
use crate::words::html as prose;
use std::fmt::Write;

/// Sentences under a title, with names between backquotes; nothing where there are none.
pub fn notes(out: &mut String, title: &str, sentences: &[String]) {
    if sentences.is_empty() {
        return;
    }
    let _ = write!(out, r#"<h2>{}</h2><ul class="prose">"#, escape(title));
    for sentence in sentences {
        let _ = write!(out, "<li>{}</li>", prose(sentence));
    }
    out.push_str("</ul>");
}

/// Tables beside each other where there is room.
pub fn tables(out: &mut String, grids: impl Iterator<Item = Grid>) {
    out.push_str(r#"<div class="grids">"#);
    grids.for_each(|grid| table(out, &grid));
    out.push_str("</div>");
}

/// A table whose first column names its rows.
pub fn table(out: &mut String, grid: &Grid) {
    let _ = write!(
        out,
        r#"<div class="scroll"><table class="runs"><caption>{}</caption><thead><tr>"#,
        escape(&grid.title)
    );
    for (i, head) in grid.head.iter().enumerate() {
        let class = if i == 0 { "" } else { r#" class="num""# };
        let _ = write!(out, "<th{class}>{}</th>", escape(head));
    }
    out.push_str("</tr></thead><tbody>");
    for row in &grid.rows {
        out.push_str("<tr>");
        for (i, cell) in row.iter().enumerate() {
            let cell = escape(cell);
            let _ = match i {
                0 => write!(out, "<th>{cell}</th>"),
                _ => write!(out, r#"<td class="num">{cell}</td>"#),
            };
        }
        out.push_str("</tr>");
    }
    out.push_str("</tbody></table></div>");
}
