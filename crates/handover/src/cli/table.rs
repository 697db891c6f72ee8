//! Columns for people.

use super::style::{Paint, painted};

/// Lines of cells, each column as wide as its widest cell. Cells must be harmless already.
#[derive(Debug, Default)]
pub struct Table {
    rows: Vec<Vec<Cell>>,
}

/// What stands in one place of a table.
#[derive(Debug)]
pub struct Cell {
    text: String,
    paint: Option<Paint>,
}

impl Cell {
    /// A cell in that colour, if any.
    pub fn painted(text: impl Into<String>, paint: Option<Paint>) -> Self {
        let text = text.into();
        Self { text, paint }
    }

    /// How many places of a terminal's line it takes up.
    fn width(&self) -> usize {
        unicode_width::UnicodeWidthStr::width(self.text.as_str())
    }
}

impl From<String> for Cell {
    fn from(text: String) -> Self {
        Self { text, paint: None }
    }
}

impl Table {
    /// A table under these headings.
    pub fn new<const N: usize>(headings: [&str; N]) -> Self {
        let mut table = Self::default();
        table.row(headings.map(str::to_owned));
        table
    }

    /// A table without headings, for names and what stands behind them.
    pub fn plain() -> Self {
        Self::default()
    }

    /// Adds a line.
    pub fn row<const N: usize>(&mut self, cells: [impl Into<Cell>; N]) {
        self.cells(cells.into_iter().map(Into::into).collect());
    }

    /// Adds a line of as many cells as there happen to be.
    pub fn cells(&mut self, cells: Vec<Cell>) {
        self.rows.push(cells);
    }

    /// The text, one line a row; every line starts with `indent`.
    pub fn render(&self, indent: &str) -> String {
        let columns = self.rows.iter().map(Vec::len).max().unwrap_or(0);
        let width = |column: usize| {
            let cells = self.rows.iter().filter_map(|row| row.get(column));
            cells.map(Cell::width).max().unwrap_or(0)
        };
        let widths: Vec<usize> = (0..columns).map(width).collect();
        let mut text = String::new();
        for row in &self.rows {
            // No spaces at the end of a line.
            let filled = row.iter().rposition(|cell| !cell.text.is_empty());
            let filled = filled.map_or(0, |last| last + 1);
            if filled > 0 {
                text.push_str(indent);
            }
            for (place, (cell, width)) in row.iter().zip(&widths).take(filled).enumerate() {
                text.push_str(&painted(&cell.text, cell.paint));
                if place + 1 < filled {
                    text.push_str(&" ".repeat(width - cell.width() + 2));
                }
            }
            text.push('\n');
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_stand_under_each_other_whatever_the_script_and_colour() {
        let mut table = Table::new(["A", "B", "C"]);
        table.row(["漢字".to_owned(), "é".to_owned(), String::new()]);
        table.row([
            Cell::painted("x", Some("31")),
            "yy".to_owned().into(),
            "z".to_owned().into(),
        ]);
        insta::assert_snapshot!(table.render("  ").replace('\u{1b}', "ESC"), @"
          A     B   C
          漢字  é
          ESC[31mxESC[0m     yy  z
        ");
    }
}
