//! Figures in columns, for the terminal.

use comfy_table::{CellAlignment, ContentArrangement, Row, Table, presets};

/// Makes a table without lines, as wide as it needs. The first `words` columns are aligned to the
/// left, the others to the right.
pub fn columns<R: Into<Row>>(
    head: impl Into<Row>,
    rows: impl IntoIterator<Item = R>,
    words: usize,
) -> Table {
    let mut table = Table::new();
    table
        .load_style(presets::NOTHING)
        .set_content_arrangement(ContentArrangement::Disabled)
        .set_header(head)
        .add_rows(rows);
    for column in table.column_iter_mut().skip(words) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    table
}
