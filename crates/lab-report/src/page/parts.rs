//! The contents that pages of the lab share: sentences, tables of words, pictures.

use crate::table::grid::Grid;
use crate::words::prose;
use maud::{Markup, PreEscaped, html};

/// Renders sentences under a title, with names in backquotes; nothing if there are no sentences.
pub fn notes(title: &str, sentences: &[String]) -> Markup {
    html! {
        @if !sentences.is_empty() {
            h2 { (title) }
            ul.prose {
                @for sentence in sentences { li { (prose(sentence)) } }
            }
        }
    }
}

/// Renders tables, side by side if there is room.
pub(crate) fn tables(grids: impl Iterator<Item = Grid>) -> Markup {
    html! {
        div.grids {
            @for grid in grids { (table(&grid)) }
        }
    }
}

/// Renders a table whose first column names its rows.
pub fn table(grid: &Grid) -> Markup {
    html! {
        div.scroll {
            table.runs {
                caption { span { (grid.title) } }
                thead {
                    tr {
                        @for (i, head) in grid.head.iter().enumerate() {
                            th class=[(i > 0).then_some("num")] { (head) }
                        }
                    }
                }
                tbody {
                    @for row in &grid.rows {
                        tr {
                            @for (i, cell) in row.iter().enumerate() {
                                @if i == 0 { th { (cell) } } @else { td.num { (cell) } }
                            }
                        }
                    }
                }
            }
        }
    }
}

/// Renders a picture, drawn as SVG, under its caption, if it has one.
pub fn picture(caption: &str, svg: &str) -> Markup {
    html! {
        figure {
            @if !caption.is_empty() { figcaption { (caption) } }
            (scrolled(svg))
        }
    }
}

/// Renders a drawn picture in a frame that scrolls if the page is too narrow for it.
pub(crate) fn scrolled(svg: &str) -> Markup {
    html! { div.scroll { (PreEscaped(svg)) } }
}
