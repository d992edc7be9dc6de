//! Text on a terminal: widths, excerpts, numbers, tables, bars.

use std::fmt::Write as _;

use unicode_width::{UnicodeWidthChar as _, UnicodeWidthStr as _};

/// Returns the columns that a printed character takes.
pub(crate) fn char_width(c: char) -> usize {
    printable(c).width().unwrap_or(0)
}

/// Returns the columns that a printed text takes.
pub(crate) fn width(text: &str) -> usize {
    text.width()
}

/// Returns a text on one line, at most `columns` wide. A longer text ends in `...`.
pub(crate) fn excerpt(text: &str, columns: usize) -> String {
    let mut line = String::new();
    let mut taken = 0;
    for word in text.split_whitespace() {
        if !line.is_empty() {
            line.push(' ');
            taken += 1;
        }
        for c in word.chars() {
            line.push(printable(c));
            taken += char_width(c);
        }
        if taken > columns {
            return cut(&line, columns);
        }
    }
    line
}

fn cut(line: &str, columns: usize) -> String {
    let room = columns.saturating_sub(3);
    let mut kept = String::new();
    let mut taken = 0;
    for c in line.chars() {
        taken += char_width(c);
        if taken > room {
            break;
        }
        kept.push(c);
    }
    kept.truncate(kept.trim_end().len());
    kept.push_str("...");
    kept
}

/// Replaces a control character, which could change the state of a terminal.
pub(crate) fn printable(c: char) -> char {
    match c {
        '\t' => ' ',
        c if c.is_control() => char::REPLACEMENT_CHARACTER,
        c => c,
    }
}

/// Formats a number with thousands separators: `12,345`.
pub(crate) fn grouped(number: i64) -> String {
    let digits = number.unsigned_abs().to_string();
    let mut text = String::from(if number < 0 { "-" } else { "" });
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// Formats a count with its noun: `1 item`, `2 items`.
pub(crate) fn counted(count: usize, one: &str) -> String {
    let number = grouped(i64::try_from(count).unwrap_or(i64::MAX));
    format!("{number} {one}{}", if count == 1 { "" } else { "s" })
}

/// Formats a score with four decimals.
pub(crate) fn score(score: f64) -> String {
    format!("{score:.4}")
}

/// Draws `part` of `whole` as a bar of `columns`.
pub(crate) fn bar(part: i64, whole: i64, columns: usize) -> String {
    let share = if whole > 0 {
        (part as f64 / whole as f64).clamp(0.0, 1.0)
    } else {
        0.0
    };
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "between 0 and the number of columns"
    )]
    let filled = (share * columns as f64).round() as usize;
    let mut bar = "█".repeat(filled);
    bar.push_str(&"░".repeat(columns - filled));
    bar
}

/// A table; the last column has no width limit.
pub(crate) struct Table {
    headers: &'static [Column],
    rows: Vec<Vec<String>>,
}

/// A column of a table.
pub(crate) struct Column {
    pub(crate) header: &'static str,
    pub(crate) right: bool,
}

/// Returns a left-aligned column.
pub(crate) const fn left(header: &'static str) -> Column {
    Column {
        header,
        right: false,
    }
}

/// Returns a right-aligned column.
pub(crate) const fn right(header: &'static str) -> Column {
    Column {
        header,
        right: true,
    }
}

impl Table {
    pub(crate) fn new(headers: &'static [Column]) -> Self {
        Self {
            headers,
            rows: Vec::new(),
        }
    }

    pub(crate) fn row(&mut self, cells: Vec<String>) {
        debug_assert_eq!(cells.len(), self.headers.len());
        self.rows.push(cells);
    }

    /// Returns the header and each row as a line.
    pub(crate) fn lines(&self) -> Vec<String> {
        let widths: Vec<usize> = (0..self.headers.len())
            .map(|column| {
                let cells = self.rows.iter().map(|row| width(&row[column]));
                cells
                    .max()
                    .unwrap_or(0)
                    .max(width(self.headers[column].header))
            })
            .collect();
        let header = self.headers.iter().map(|column| column.header);
        let header = self.line(&header.collect::<Vec<_>>(), &widths);
        let rows = self.rows.iter().map(|row| {
            let cells: Vec<&str> = row.iter().map(String::as_str).collect();
            self.line(&cells, &widths)
        });
        std::iter::once(header).chain(rows).collect()
    }

    fn line(&self, cells: &[&str], widths: &[usize]) -> String {
        let mut line = String::new();
        for ((cell, column), columns) in cells.iter().zip(self.headers).zip(widths) {
            let padding = columns - width(cell);
            let (before, after) = if column.right {
                (padding, 0)
            } else {
                (0, padding)
            };
            let _ = write!(line, "{}{cell}{}  ", " ".repeat(before), " ".repeat(after));
        }
        line.truncate(line.trim_end().len());
        line
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_excerpt_is_one_line_that_fits() {
        assert_eq!(excerpt("one\n  two", 20), "one two");
        assert_eq!(excerpt("one two three", 10), "one two...");
        assert_eq!(excerpt("a\u{1b}[31mb", 20), "a\u{fffd}[31mb");
        assert_eq!(excerpt("漢字漢字漢字", 8), "漢字...");
        // A combining mark takes no column.
        assert_eq!(excerpt("e\u{301}e\u{301}", 2), "e\u{301}e\u{301}");
    }

    #[test]
    fn thousands_are_separated() {
        assert_eq!(grouped(0), "0");
        assert_eq!(grouped(999), "999");
        assert_eq!(grouped(1_000), "1,000");
        assert_eq!(grouped(i64::MIN), "-9,223,372,036,854,775,808");
    }

    #[test]
    fn a_bar_is_full_when_the_whole_is_used_or_exceeded() {
        assert_eq!(bar(0, 10, 4), "░░░░");
        assert_eq!(bar(5, 10, 4), "██░░");
        assert_eq!(bar(99, 10, 4), "████");
        assert_eq!(bar(1, 0, 4), "░░░░");
    }

    #[test]
    fn columns_are_aligned_by_width() {
        let mut table = Table::new(const { &[left("kind"), right("tokens"), left("text")] });
        table.row(vec!["漢".into(), "7".into(), "a".into()]);
        table.row(vec!["Message".into(), "1,000".into(), "b".into()]);
        assert_eq!(
            table.lines(),
            [
                "kind     tokens  text",
                "漢            7  a",
                "Message   1,000  b",
            ]
        );
    }
}
