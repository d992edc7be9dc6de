//! Text on a terminal: widths, excerpts, numbers, tables, bars, and characters that a terminal does not show.

pub(crate) use cupel_app::{grouped, grouped_count};
use std::borrow::Cow;
use std::fmt::Write as _;
use std::ops::RangeInclusive;

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

/// Invisible characters besides the control characters: `Default_Ignorable_Code_Point` of Unicode 16, which includes
/// the bidirectional controls, and the separators of lines, paragraphs and annotations. In ascending order.
///
/// They hide text or show it in another order than it has ("Trojan Source", Boucher and Anderson 2021), and terminals
/// disagree on their width. The variation selectors U+FE00 to U+FE0F are missing: nearly every emoji has one.
const INVISIBLE: [RangeInclusive<char>; 16] = [
    '\u{ad}'..='\u{ad}',
    '\u{34f}'..='\u{34f}',
    '\u{61c}'..='\u{61c}',
    '\u{115f}'..='\u{1160}',
    '\u{17b4}'..='\u{17b5}',
    '\u{180b}'..='\u{180f}',
    '\u{200b}'..='\u{200f}',
    '\u{2028}'..='\u{202e}',
    '\u{2060}'..='\u{206f}',
    '\u{3164}'..='\u{3164}',
    '\u{feff}'..='\u{feff}',
    '\u{ffa0}'..='\u{ffa0}',
    '\u{fff0}'..='\u{fffb}',
    '\u{1bca0}'..='\u{1bca3}',
    '\u{1d173}'..='\u{1d17a}',
    '\u{e0000}'..='\u{e0fff}',
];

/// Returns whether a character is a control character, which may change the state of a terminal, or invisible.
fn is_unprintable(c: char) -> bool {
    c.is_control() || (!c.is_ascii() && INVISIBLE.iter().any(|range| range.contains(&c)))
}

/// Replaces a character that a terminal does not show as it is. The result has the width of a character.
pub(crate) fn printable(c: char) -> char {
    match c {
        '\t' => ' ',
        c if is_unprintable(c) => char::REPLACEMENT_CHARACTER,
        c => c,
    }
}

/// Escapes the characters that a terminal does not show as they are: `\u{202e}`, `\n`.
pub(crate) fn escaped(text: &str) -> Cow<'_, str> {
    escaped_except(text, |_| None)
}

/// Escapes a text as [`escaped`] does, except line ends and the sequences of [`STYLES`].
pub(crate) fn escaped_styled(text: &str) -> Cow<'_, str> {
    escaped_except(text, |rest| {
        let kept = std::iter::once(&"\n").chain(&STYLES);
        kept.copied().find(|kept| rest.starts_with(kept))
    })
}

/// The control sequences (ECMA-48, SGR) of the styles of this command and of its command line parser: reset, bold,
/// dimmed, underlined, and the colors in use. None hides a text or moves the cursor.
const STYLES: [&str; 9] = [
    "\u{1b}[0m",
    "\u{1b}[1m",
    "\u{1b}[2m",
    "\u{1b}[4m",
    "\u{1b}[31m",
    "\u{1b}[32m",
    "\u{1b}[33m",
    "\u{1b}[34m",
    "\u{1b}[36m",
];

/// Escapes a text. `kept` returns the start of a text that stays as it is.
fn escaped_except(text: &str, kept: impl Fn(&str) -> Option<&'static str>) -> Cow<'_, str> {
    if !text.contains(is_unprintable) {
        return text.into();
    }
    let mut escaped = String::with_capacity(text.len() + 16);
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        if !is_unprintable(c) {
            escaped.push(c);
        } else if let Some(kept) = kept(rest) {
            escaped.push_str(kept);
            rest = &rest[kept.len()..];
            continue;
        } else {
            match c {
                '\n' => escaped.push_str("\\n"),
                c => {
                    let _ = write!(escaped, "{}", c.escape_unicode());
                }
            }
        }
        rest = &rest[c.len_utf8()..];
    }
    escaped.into()
}

/// Escapes the characters of a JSON text that a terminal does not show as they are. The value stays the same: outside
/// of strings, JSON has none of them but line ends.
pub(crate) fn escaped_json(json: &str) -> Cow<'_, str> {
    let is_escaped = |c| is_unprintable(c) && c != '\n';
    if !json.contains(is_escaped) {
        return json.into();
    }
    let mut escaped = String::with_capacity(json.len() + 16);
    for c in json.chars() {
        if is_escaped(c) {
            for unit in c.encode_utf16(&mut [0; 2]) {
                let _ = write!(escaped, "\\u{unit:04x}");
            }
        } else {
            escaped.push(c);
        }
    }
    escaped.into()
}

/// Formats a count with its noun: `1 item`, `2 items`.
pub(crate) fn counted(count: usize, one: &str) -> String {
    let number = grouped_count(count);
    format!("{number} {one}{}", if count == 1 { "" } else { "s" })
}

/// Returns the words of an identifier: `recency` for `RecencyScorer`, `pinned exceeds budget`.
pub(crate) fn words(identifier: &str) -> String {
    let identifier = identifier.strip_suffix("Scorer").unwrap_or(identifier);
    let mut words = String::new();
    for c in identifier.chars() {
        if c.is_uppercase() && !words.is_empty() {
            words.push(' ');
        }
        words.extend(c.to_lowercase());
    }
    words
}

/// Formats ranges of budgets: `272 to 280, 301`, at most four of them.
pub(crate) fn budget_ranges(ranges: &[(i64, i64)]) -> String {
    const SHOWN: usize = 4;
    let shown = ranges.iter().take(SHOWN).map(|&(from, to)| {
        if from == to {
            grouped(from)
        } else {
            format!("{} to {}", grouped(from), grouped(to))
        }
    });
    let shown = shown.collect::<Vec<_>>().join(", ");
    match ranges.len().saturating_sub(SHOWN) {
        0 => shown,
        more => format!("{shown} and {} more", counted(more, "range")),
    }
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

/// A table that fits a number of columns.
pub(crate) struct Table {
    headers: Vec<Column>,
    rows: Vec<Vec<String>>,
    gives: &'static [Give],
}

/// A column of a table.
#[derive(Clone)]
pub(crate) struct Column {
    header: String,
    right: bool,
}

/// How a column makes room in a table that is too wide.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Give {
    /// Its texts are cut, to no less than this width.
    Cut(&'static str, usize),
    /// It is left out.
    Omit(&'static str),
}

/// The columns between two cells.
const GAP: usize = 2;

/// Returns a left-aligned column.
pub(crate) fn left(header: impl Into<String>) -> Column {
    Column {
        header: header.into(),
        right: false,
    }
}

/// Returns a right-aligned column.
pub(crate) fn right(header: impl Into<String>) -> Column {
    Column {
        header: header.into(),
        right: true,
    }
}

impl Table {
    /// Creates a table. If it is too wide, its columns make room in the order of `gives`.
    pub(crate) fn new(headers: impl Into<Vec<Column>>, gives: &'static [Give]) -> Self {
        Self {
            headers: headers.into(),
            rows: Vec::new(),
            gives,
        }
    }

    pub(crate) fn row(&mut self, cells: Vec<String>) {
        debug_assert_eq!(cells.len(), self.headers.len());
        self.rows.push(cells);
    }

    /// Returns the header and each row as a line of at most `columns`.
    pub(crate) fn lines(&self, columns: usize) -> Vec<String> {
        let widths = self.widths(columns);
        let header: Vec<&str> = self.headers.iter().map(|column| &*column.header).collect();
        let header = self.line(&header, &widths, columns);
        let rows = self.rows.iter().map(|row| {
            let cells: Vec<&str> = row.iter().map(String::as_str).collect();
            self.line(&cells, &widths, columns)
        });
        std::iter::once(header).chain(rows).collect()
    }

    /// Returns the width of each column; `None` for one that is left out.
    fn widths(&self, columns: usize) -> Vec<Option<usize>> {
        let full: Vec<usize> = self
            .headers
            .iter()
            .enumerate()
            .map(|(column, header)| {
                let cells = self.rows.iter().map(|row| width(&row[column]));
                cells.max().unwrap_or(0).max(width(&header.header))
            })
            .collect();
        let mut widths: Vec<Option<usize>> = full.iter().copied().map(Some).collect();
        let total = |widths: &[Option<usize>]| {
            let shown = widths.iter().flatten();
            let shown = shown.map(|width| width + GAP).sum::<usize>();
            shown.saturating_sub(GAP)
        };
        for give in self.gives {
            let excess = total(&widths).saturating_sub(columns);
            if excess == 0 {
                break;
            }
            match *give {
                Give::Cut(name, least) => {
                    if let Some(width) = self.position(name).and_then(|at| widths[at].as_mut()) {
                        *width = width.saturating_sub(excess).max(least.min(*width));
                    }
                }
                Give::Omit(name) => {
                    if let Some(at) = self.position(name) {
                        widths[at] = None;
                    }
                }
            }
        }
        // An omitted column may leave more room than was missing.
        for give in self.gives {
            let Give::Cut(name, _) = *give else { continue };
            let spare = columns.saturating_sub(total(&widths));
            if let Some(at) = self.position(name) {
                widths[at] = widths[at].map(|width| (width + spare).min(full[at]));
            }
        }
        widths
    }

    fn position(&self, name: &str) -> Option<usize> {
        self.headers.iter().position(|column| column.header == name)
    }

    fn line(&self, cells: &[&str], widths: &[Option<usize>], columns: usize) -> String {
        let mut line = String::new();
        for ((cell, column), columns) in cells.iter().zip(&self.headers).zip(widths) {
            let Some(columns) = *columns else { continue };
            let cell = excerpt(cell, columns);
            let padding = columns.saturating_sub(width(&cell));
            let (before, after) = if column.right {
                (padding, 0)
            } else {
                (0, padding)
            };
            let _ = write!(line, "{}{cell}{}  ", " ".repeat(before), " ".repeat(after));
        }
        line.truncate(line.trim_end().len());
        if width(&line) > columns {
            line = cut(&line, columns);
        }
        line
    }
}

/// Breaks a text at spaces into lines of at most `columns`; all lines but the first start with
/// `indent` spaces. A longer word has a line of its own. Styles do not count.
pub(crate) fn wrap(text: &str, columns: usize, indent: usize) -> Vec<String> {
    let words = text.trim_start_matches(' ');
    let mut line = " ".repeat(text.len() - words.len());
    let mut taken = line.len();
    let mut is_empty = true;
    let mut lines = Vec::new();
    for word in words.split(' ') {
        let word_width = width(&anstream::adapter::strip_str(word).to_string());
        if !is_empty && taken + 1 + word_width > columns {
            lines.push(std::mem::replace(&mut line, " ".repeat(indent)));
            taken = indent;
            is_empty = true;
        }
        if !is_empty {
            line.push(' ');
            taken += 1;
        }
        line.push_str(word);
        taken += word_width;
        is_empty = false;
    }
    lines.push(line);
    lines
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
    fn invisible_characters_are_replaced_in_an_excerpt() {
        // Bidirectional controls, zero-width characters, C0, DEL, C1, separators, tags.
        for c in "\u{202e}\u{2066}\u{200f}\u{200b}\u{200d}\u{feff}\u{ad}\u{7}\u{7f}\u{9b}\u{85}\u{2028}\u{2029}\u{e0041}\u{e0100}".chars() {
            assert!(is_unprintable(c), "{c:?}");
            // Separators are also white space.
            let shown = excerpt(&format!("a{c}b"), 20);
            assert!(["a\u{fffd}b", "a b"].contains(&&*shown), "{c:?}: {shown:?}");
            assert!(!escaped(&c.to_string()).contains(c), "{c:?}");
            assert!(!escaped_json(&c.to_string()).contains(c), "{c:?}");
        }
        // Letters and marks of any script, and the selector of an emoji.
        for c in "a é e\u{301} 漢 א ي ❤\u{fe0f} \u{600} \u{fffd}".chars() {
            assert!(!is_unprintable(c), "{c:?}");
        }
    }

    #[test]
    fn the_ranges_of_invisible_characters_are_in_order() {
        let ends = INVISIBLE
            .iter()
            .flat_map(|range| [*range.start(), *range.end()]);
        assert!(ends.is_sorted());
    }

    #[test]
    fn escapes_keep_only_the_styles_of_the_command() {
        assert_eq!(
            escaped("a\nb\u{202e}\u{1b}[31m"),
            "a\\nb\\u{202e}\\u{1b}[31m"
        );
        let style = crate::output::style::ERROR;
        let text = format!("{style}a{style:#}\n\u{1b}[8mhidden\u{1b}]0;title\u{7}");
        let expected = format!("{style}a{style:#}\n\\u{{1b}}[8mhidden\\u{{1b}}]0;title\\u{{7}}");
        assert_eq!(escaped_styled(&text), expected);
        assert!(matches!(escaped("plain"), Cow::Borrowed("plain")));
    }

    #[test]
    fn escaped_json_has_the_same_value() {
        let text = "{\n  \"a\u{202e}\": \"\u{7f}\u{e0041}\"\n}";
        let escaped = escaped_json(text);
        assert_eq!(escaped, "{\n  \"a\\u202e\": \"\\u007f\\udb40\\udc41\"\n}");
        let value: serde_json::Value = serde_json::from_str(&escaped).expect("JSON");
        assert_eq!(
            value,
            serde_json::from_str::<serde_json::Value>(text).expect("JSON")
        );
    }

    #[test]
    fn identifiers_are_words() {
        assert_eq!(words("RecencyScorer"), "recency");
        assert_eq!(words("MetadataTrustScorer"), "metadata trust");
        assert_eq!(words("PinnedExceedsBudget"), "pinned exceeds budget");
    }

    #[test]
    fn ranges_of_budgets_are_listed() {
        assert_eq!(
            budget_ranges(&[(272, 280), (1_301, 1_301)]),
            "272 to 280, 1,301"
        );
        let many = [(1, 1), (3, 3), (5, 5), (7, 7), (9, 9)];
        assert_eq!(budget_ranges(&many), "1, 3, 5, 7 and 1 range more");
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
        let mut table = Table::new([left("kind"), right("tokens"), left("text")], &[]);
        table.row(vec!["漢".into(), "7".into(), "a".into()]);
        table.row(vec!["Message".into(), "1,000".into(), "b".into()]);
        assert_eq!(
            table.lines(80),
            [
                "kind     tokens  text",
                "漢            7  a",
                "Message   1,000  b",
            ]
        );
    }

    #[test]
    fn columns_make_room_in_order() {
        const GIVES: &[Give] = &[
            Give::Cut("text", 8),
            Give::Omit("score"),
            Give::Cut("text", 4),
        ];
        let mut table = Table::new([right("#"), right("score"), left("text")], GIVES);
        table.row(vec!["1".into(), "0.5".into(), "one two three".into()]);
        let row = |columns| table.lines(columns).swap_remove(1);
        assert_eq!(row(23), "1    0.5  one two three");
        assert_eq!(row(20), "1    0.5  one two...");
        assert_eq!(row(18), "1    0.5  one t...");
        // Without the score there is room for the text again.
        assert_eq!(row(17), "1  one two three");
        assert_eq!(row(10), "1  one...");
        assert_eq!(row(4), "1...");
    }

    #[test]
    fn text_is_wrapped_at_spaces() {
        assert_eq!(wrap("one two three", 80, 2), ["one two three"]);
        assert_eq!(wrap("one two three", 7, 2), ["one two", "  three"]);
        assert_eq!(wrap("unbreakable one", 5, 2), ["unbreakable", "  one"]);
        assert_eq!(wrap("  one two", 5, 4), ["  one", "    two"]);
        assert_eq!(wrap("\u{1b}[1mone\u{1b}[0m two", 7, 2).len(), 1);
    }
}
