//! The kinds of texts, and which of their lines a reader would keep.
//!
//! A kind has streams: lists of lines, the most useful ones first, each with a share of the room. They are merged by
//! weighted fair queueing (Demers, Keshav and Shenker 1989): the next line comes from the stream that has used the
//! least of its share. With lines of equal length, a log whose lines 4 and 7 of 9 have errors is read in the order
//!
//! ```text
//! errors    30 %   7 4
//! beginning 40 %   0 1 2 3 ...      merged: 7 0 8 1 4 6 2 5 3
//! end       30 %   8 7 6 ...
//! ```
//!
//! A form keeps a prefix of this order, so that a lower level keeps a part of what a higher one keeps.
//!
//! The rules know the shapes of outputs, not single programs: a line of a compiler error, a verdict of a test run, a
//! path with a line number.

use std::cmp::Reverse;
use std::collections::{HashMap, HashSet};
use std::fmt;

use super::errors;
use super::lines::{Lines, Part};
use super::query::{Query, words_of};

/// Returns lines of a text, the most useful ones first.
type Pick = fn(Lines<'_>, &Query) -> Vec<usize>;

/// A kind of text.
pub(super) struct Kind {
    name: &'static str,
    /// Whether a text is of this kind. The first kind of a table that says so is taken, or the last one.
    is: fn(Lines<'_>) -> bool,
    pub(super) part: Part,
    /// Whether the marker names identifiers of omitted lines. In source code, almost none is a value that a call
    /// repeats, and what a test run or a compiler says is in its errors: there the room is worth more as lines.
    pub(super) has_names: bool,
    /// Shares in percent, and lists of lines. Lines of no list come last.
    streams: &'static [(usize, Pick)],
}

impl fmt::Debug for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

/// The kinds of tool results. Specific ones come first: a test run shows source code, and a listing may have tabs.
pub(super) static OF_RESULTS: [Kind; 10] = [
    Kind {
        name: "numbered source code",
        is: |lines| lines.is_numbered,
        ..SOURCE
    },
    Kind {
        name: "diff",
        is: |lines| has(lines, &["@@ -"], starts_line),
        part: Part::Line,
        has_names: false,
        streams: &[(40, changes), (30, matches), (30, files_of_diff)],
    },
    Kind {
        name: "test output",
        is: |lines| has(lines, &VERDICTS, starts_line) || has(lines, &COUNTED, follows_digit),
        part: Part::Line,
        has_names: false,
        streams: &[(70, failures), (30, last)],
    },
    Kind {
        name: "compiler output",
        is: |lines| has(lines, &["error["], starts_line) || has(lines, &DIAGNOSTICS, follows_place),
        part: Part::Line,
        has_names: false,
        streams: &[(70, diagnostics), (30, last)],
    },
    Kind {
        name: "search results",
        is: |lines| lines.mostly(60, |line| found_in(line).is_some()),
        part: Part::Line,
        has_names: true,
        streams: &[(50, matches), (25, one_per_file), (25, first)],
    },
    Kind {
        name: "source code",
        is: |lines| lines.mostly(60, is_code),
        ..SOURCE
    },
    Kind {
        name: "directory listing",
        is: |lines| lines.mostly(80, is_entry),
        part: Part::Line,
        has_names: true,
        streams: &[(40, matches), (40, first), (20, last)],
    },
    Kind {
        name: "table",
        is: |lines| lines.mostly(80, is_row),
        part: Part::Line,
        has_names: true,
        streams: &[(20, header), (40, matches), (25, first), (15, last)],
    },
    Kind {
        name: "prose in long lines",
        is: |lines| lines.mostly(50, |line| line.len() > LONG_LINE),
        ..PROSE
    },
    Kind {
        name: "log",
        is: |_| true,
        part: Part::Line,
        has_names: true,
        streams: &[
            (30, errors_from_last),
            (20, matches),
            (30, first),
            (20, last),
        ],
    },
];

/// The kinds of texts of users and of the model.
pub(super) static OF_TEXTS: [Kind; 1] = [PROSE];

const SOURCE: Kind = Kind {
    name: "source code",
    is: |_| true,
    part: Part::Line,
    has_names: false,
    streams: &[(40, matches), (30, declarations), (30, first)],
};

/// Sentences with words that were not said before come before others: they name what the others talk about.
const PROSE: Kind = Kind {
    name: "prose",
    is: |_| true,
    part: Part::Sentence,
    has_names: true,
    streams: &[(50, first), (20, new), (30, last)],
};

/// The bytes of a line of prose. Lines of logs and of code are shorter.
const LONG_LINE: usize = 160;

/// The lines of a stream that are left, and how much it has used.
struct Stream<L> {
    share: usize,
    used: usize,
    lines: L,
}

impl Kind {
    /// Returns the kind of a text.
    pub(super) fn of(lines: Lines<'_>, kinds: &'static [Self]) -> &'static Self {
        let kind = kinds.iter().find(|kind| (kind.is)(lines));
        kind.unwrap_or(&kinds[kinds.len() - 1])
    }

    /// Returns the lines of a text, the most useful ones first, without blank ones.
    pub(super) fn order(&self, lines: Lines<'_>, query: &Query) -> Vec<usize> {
        let mut is_done: Vec<bool> = lines.indices().map(|line| lines.is_blank(line)).collect();
        let is_own = |line: &usize| lines.is_own(*line);
        let streams = self.streams.iter().map(|(share, list)| Stream {
            share: *share,
            used: 0,
            lines: list(lines, query).into_iter().filter(is_own),
        });
        let mut streams: Vec<_> = streams.collect();
        let mut order = Vec::new();
        // Compares `used / share` without a division. The first one of equal streams is taken.
        let least_used = |streams: &[Stream<_>]| {
            let compare = |a: &usize, b: &usize| {
                let (a, b) = (&streams[*a], &streams[*b]);
                (a.used * b.share).cmp(&(b.used * a.share))
            };
            (0..streams.len()).min_by(compare)
        };
        while let Some(next) = least_used(&streams) {
            let stream = &mut streams[next];
            match stream.lines.find(|&line| !is_done[line]) {
                Some(line) => {
                    is_done[line] = true;
                    stream.used += lines.ranges[line].len();
                    order.push(line);
                }
                None => drop(streams.remove(next)),
            }
        }
        order.extend(lines.indices().filter(|&line| !is_done[line]));
        order
    }
}

// How kinds are recognized.

/// Returns whether the sampled lines have one of some texts at a place that what is before it allows.
///
/// The texts are searched in all lines at once, which takes a fifth of the time of line after line.
fn has(lines: Lines<'_>, texts: &[&str], follows: fn(&str) -> bool) -> bool {
    lines.sample_texts().iter().any(|sample| {
        let found = |text: &&str| {
            let mut places = sample.match_indices(*text);
            places.any(|(at, _)| follows(&sample[..at]))
        };
        texts.iter().any(found)
    })
}

/// How a line begins that says how a test run went.
const VERDICTS: [&str; 6] = [
    "test result: ",
    "--- FAIL: ",
    "--- PASS: ",
    "FAIL\t",
    "ok  \t",
    "FAILED (",
];

/// What a line counts that says how a test run went, as in `1 failed, 3 passed in 0.2s`.
const COUNTED: [&str; 4] = [" passed", " failed", " passing", " failing"];

/// What is said of the place of an error, as in `main.c:12:5: error: expected ;` and
/// `app.ts(3,7): error TS2322: ...`.
const DIAGNOSTICS: [&str; 3] = [": error", ": warning", ": fatal error"];

fn starts_line(before: &str) -> bool {
    let line = before.trim_end_matches(' ');
    line.is_empty() || line.ends_with('\n')
}

fn follows_digit(before: &str) -> bool {
    before.ends_with(|c: char| c.is_ascii_digit())
}

/// Returns whether a text ends with a place: a path with a line number, as opposed to a time of day.
fn follows_place(before: &str) -> bool {
    let near = &before.as_bytes()[before.len().saturating_sub(LONGEST_PLACE)..];
    let place = near
        .rsplit(u8::is_ascii_whitespace)
        .next()
        .unwrap_or_default();
    let ends = place
        .last()
        .is_some_and(|byte| byte.is_ascii_digit() || *byte == b')');
    ends && place.iter().any(u8::is_ascii_alphabetic)
}

/// The bytes of a place that are read. Without a limit, a text without white space would be read again for each error.
const LONGEST_PLACE: usize = 256;

/// Returns the file that a search found a line in: the path before the number of the line, as in
/// `src/fit.rs:12:fn fit() {`. Lines around a match have `-` instead of `:`. A path has a letter, a time has none.
fn found_in(line: &str) -> Option<&str> {
    let mut marks = line.match_indices([':', '-']);
    let (end, _) = marks.find(|(at, mark)| {
        let rest = &line[at + mark.len()..];
        let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
        digits > 0 && rest[digits..].starts_with(mark)
    })?;
    let path = &line[..end];
    let is_path = path.contains(char::is_alphabetic) && !path.contains(' ');
    is_path.then_some(path)
}

/// Returns whether a line looks like code: it ends with a bracket or a separator, is a comment, a declaration or an
/// assignment.
fn is_code(line: &str) -> bool {
    let line = line.trim();
    line.ends_with(['{', '}', ';', ':', '(', ')', ',', '[', ']'])
        || line.starts_with(['#', '@'])
        || line.starts_with("//")
        || line
            .split_once('=')
            .is_some_and(|(name, value)| name.ends_with(' ') && value.starts_with(' '))
        || is_declaration(line)
}

/// Returns whether a line declares or imports something, in many languages: by its first word.
fn is_declaration(line: &str) -> bool {
    let line = line.trim_start();
    let is_letter = |byte: u8| byte.is_ascii_lowercase() || byte == b'#';
    let end = line.bytes().position(|byte| !is_letter(byte));
    let word = &line[..end.unwrap_or(line.len())];
    #[rustfmt::skip]
    let is_keyword = matches!(
        word,
        "import" | "from" | "use" | "using" | "require" | "#include" | "package" | "module" | "namespace"
        | "def" | "async" | "class" | "fn" | "pub" | "function" | "func" | "interface" | "struct" | "enum"
        | "impl" | "trait" | "type" | "export" | "public" | "private" | "protected" | "static" | "abstract"
        | "const"
    );
    // A decorator or an attribute belongs to the declaration below it.
    is_keyword || line.starts_with('@') || line.starts_with("#[")
}

/// Returns whether a line names a file: one word, or a line of `ls -l` or `tree`.
fn is_entry(line: &str) -> bool {
    let line = line.trim();
    let is_mode = |byte: &u8| b"-dlbcpsrwxStT".contains(byte);
    !line.contains(char::is_whitespace)
        || line.starts_with("total ")
        || line.starts_with(['├', '└', '│'])
        || line.len() > 10 && line.as_bytes()[..10].iter().all(is_mode)
}

/// Returns whether a line has columns: separated by tabs or `|`, or two gaps of two spaces.
fn is_row(line: &str) -> bool {
    let line = line.trim();
    line.contains(['\t', '|']) || line.split("  ").filter(|cell| !cell.is_empty()).count() > 2
}

// The lists of streams.

fn first(lines: Lines<'_>, _: &Query) -> Vec<usize> {
    lines.indices().collect()
}

fn last(lines: Lines<'_>, _: &Query) -> Vec<usize> {
    lines.indices().rev().collect()
}

/// The first two lines: the names of columns, and a rule below.
fn header(lines: Lines<'_>, _: &Query) -> Vec<usize> {
    lines.indices().take(2).collect()
}

/// Lines with errors, the last ones first: after earlier ones the program went on.
fn errors_from_last(lines: Lines<'_>, _: &Query) -> Vec<usize> {
    let mut found = errors::find(lines.text, lines.ranges);
    found.reverse();
    found
}

/// The lines of a test run that say why a test failed, then those that say which.
fn failures(lines: Lines<'_>, query: &Query) -> Vec<usize> {
    let places = REASONS
        .iter()
        .flat_map(|word| lines.text.match_indices(word));
    let line = |(at, _)| lines.ranges.partition_point(|line| line.end <= at);
    let mut order: Vec<usize> = places.map(line).collect();
    order.sort_unstable();
    order.dedup();
    order.extend(errors_from_last(lines, query));
    order
}

/// What lines have that say why a test failed.
const REASONS: [&str; 9] = [
    "\nE  ",
    "assert",
    "Assert",
    "Error",
    "Exception",
    "panicked",
    "xpected",
    "left:",
    "right:",
];

/// Lines with errors of a compiler, each with the lines below it, which show the place. The first errors come first:
/// later ones often follow from them.
fn diagnostics(lines: Lines<'_>, _: &Query) -> Vec<usize> {
    let errors = errors::find(lines.text, lines.ranges);
    let end = lines.ranges.len();
    errors
        .into_iter()
        .flat_map(|line| line..(line + 1 + PLACE).min(end))
        .collect()
}

/// The lines below an error that show its place: `--> src/fit.rs:12:5`, a rule, the line of code, and what is wrong
/// with it.
const PLACE: usize = 4;

fn changes(lines: Lines<'_>, _: &Query) -> Vec<usize> {
    lines.with(|line| line.starts_with(['+', '-']) && !is_file_of_diff(line))
}

fn files_of_diff(lines: Lines<'_>, _: &Query) -> Vec<usize> {
    lines.with(is_file_of_diff)
}

fn is_file_of_diff(line: &str) -> bool {
    ["+++ ", "--- ", "@@ -"]
        .iter()
        .any(|start| line.starts_with(start))
}

/// The first line that was found in each file.
fn one_per_file(lines: Lines<'_>, _: &Query) -> Vec<usize> {
    let mut files = HashSet::new();
    let is_first =
        |&line: &usize| found_in(lines.body(line)).is_some_and(|file| files.insert(file));
    lines.indices().filter(is_first).collect()
}

fn declarations(lines: Lines<'_>, _: &Query) -> Vec<usize> {
    lines.with(is_declaration)
}

/// Sentences by the number of words that are new in them, per byte. Those of the question are not new.
///
/// A greedy choice would count again after each sentence, which takes quadratic time. Words are new where a reader
/// first meets them.
fn new(lines: Lines<'_>, query: &Query) -> Vec<usize> {
    let mut known = HashSet::new();
    let density = |line: usize| {
        let text = lines.body(line);
        let new = words_of(text)
            .filter(|word| !query.has(word) && known.insert(*word))
            .count();
        new * DENSITY_SCALE / (text.len() + 1)
    };
    let density: Vec<usize> = lines.indices().map(density).collect();
    sorted(&density)
}

/// New words are counted per this many bytes, so that a density is an integer.
const DENSITY_SCALE: usize = 1 << 16;

/// How far a word of the question reaches: the lines before and after it are about it too. Of the lines that later
/// edits quote in recorded sessions, 30 % are within three lines of the best match, and 8 % of all lines are quoted.
const REACH: usize = 4;

/// Lines near words of the question, the best ones first.
///
/// A word is worth the logarithm of the lines per line that has it (inverse document frequency, Spärck Jones 1972),
/// twice if it looks like a name in code. A line is worth its words and those of the lines around it, less with the
/// distance.
fn matches(lines: Lines<'_>, query: &Query) -> Vec<usize> {
    if query.is_empty() {
        return Vec::new();
    }
    // The lines that have a word, and the last one of them.
    let mut counts: HashMap<&str, (usize, usize)> = HashMap::new();
    let mut found: Vec<(usize, &str)> = Vec::new();
    for line in lines.indices() {
        for word in words_of(lines.body(line)).filter(|word| query.has(word)) {
            let (count, last) = counts.entry(word).or_insert((0, usize::MAX));
            if *last != line {
                (*count, *last) = (*count + 1, line);
                found.push((line, word));
            }
        }
    }
    let mut own = vec![0; lines.ranges.len()];
    for (line, word) in found {
        let (count, _) = counts[word];
        let bits = (lines.ranges.len() / count).ilog2() as usize;
        own[line] += if is_name(word) { 2 * bits } else { bits };
    }
    let near = |line: usize| {
        let around = line.saturating_sub(REACH)..(line + REACH + 1).min(own.len());
        around
            .map(|it| own[it] * (REACH + 1 - it.abs_diff(line)))
            .sum()
    };
    let worth: Vec<usize> = lines.indices().map(near).collect();
    let mut order = sorted(&worth);
    order.retain(|&line| worth[line] > 0);
    order
}

/// Returns whether a word is a name in code: `snake_case`, `camelCase`, `v2`.
fn is_name(word: &str) -> bool {
    let is_mark = |c: char| c == '_' || c.is_uppercase() || c.is_ascii_digit();
    word.chars().skip(1).any(is_mark)
}

/// Returns the lines by their worth, among equal ones the first ones first.
fn sorted(worth: &[usize]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..worth.len()).collect();
    order.sort_by_key(|&line| Reverse(worth[line]));
    order
}

#[cfg(test)]
mod tests {
    use super::super::lines::split;
    use super::*;

    #[test]
    fn streams_are_merged_by_their_shares() {
        // The example at the head of this file: nine lines of equal length.
        let text = "a b c\n".repeat(9);
        let ranges = split(&text, Part::Line);
        let kind = Kind {
            streams: &[(30, |_, _| vec![7, 4]), (40, first), (30, last)],
            ..SOURCE
        };
        let order = kind.order(Lines::new(&text, &ranges, false), &Query::default());
        assert_eq!(order, [7, 0, 8, 1, 4, 6, 2, 5, 3]);
    }

    #[test]
    fn every_line_with_text_is_ordered_once() {
        let text = "one\n\n  \nerror: two\nthree";
        let ranges = split(text, Part::Line);
        for kind in OF_RESULTS.iter().chain(&OF_TEXTS) {
            let mut order = kind.order(Lines::new(text, &ranges, false), &Query::default());
            order.sort_unstable();
            assert_eq!(order, [0, 3, 4], "{kind:?}");
        }
    }

    #[test]
    fn kinds_are_recognized_by_their_lines() {
        let cases = [
            (
                "numbered source code",
                "  9\tfn a() {\n 10\t    b();\n 11\t}\n",
            ),
            ("numbered source code", "9:fn a() {\n12-    b();\n13-}\n"),
            (
                "diff",
                "diff --git a/a b/a\n--- a/a\n+++ b/a\n@@ -1,2 +1,2 @@\n-a\n+b\n",
            ),
            (
                "test output",
                "test a ... ok\n\ntest result: ok. 1 passed; 0 failed\n",
            ),
            (
                "test output",
                "FAILED tests/a.py\n==== 1 failed, 2 passed in 0.2s ====\n",
            ),
            (
                "test output",
                "Ran 3 tests in 0.1s\n\nFAILED (failures=1)\n",
            ),
            (
                "compiler output",
                "main.c:12:5: error: expected ';'\n   12 |     a()\n",
            ),
            ("compiler output", "src/a.ts(3,7): error TS2322: Type 'a'\n"),
            (
                "search results",
                "src/a.rs:1:use b;\nsrc/a.rs-2-use c;\nc:/d.rs:3:use d;\n",
            ),
            (
                "source code",
                "def a():\n    b = 3\n    return b\n\nclass C:\n",
            ),
            ("directory listing", "src/a.rs\nsrc/b.rs\nCargo.toml\n"),
            (
                "directory listing",
                "total 8\n-rw-r--r-- 1 root root 9 Nov 19 10:00 a b\n",
            ),
            ("table", "NAME    STATUS   AGE\na       Running  3d\n"),
            (
                "prose in long lines",
                &"The lines of prose are long. ".repeat(9),
            ),
            (
                "log",
                "12:30:01 started\n12:30:02: error: lost connection\n12:30:05 stopped\n",
            ),
            ("log", "I looked at it\nand it is good\n"),
        ];
        for (name, text) in cases {
            let ranges = split(text, Part::Line);
            let is_numbered = super::super::lines::is_numbered(text, &ranges);
            let kind = Kind::of(Lines::new(text, &ranges, is_numbered), &OF_RESULTS);
            assert_eq!(kind.name, name, "{text}");
        }
    }

    #[test]
    fn sentences_with_the_most_new_words_per_byte_come_first() {
        let text =
            "Potsdam has a palace. Leipzig has a church. Potsdam has a palace and it is old. ";
        let ranges = split(text, Part::Sentence);
        let lines = Lines::new(text, &ranges, false);
        assert_eq!(new(lines, &Query::default()), [0, 1, 2]);
        let words = super::super::query::Words::of(["Where is a palace? Potsdam!"].into_iter());
        let query = Query {
            turn: words.into(),
            ..Query::default()
        };
        assert_eq!(new(lines, &query), [1, 0, 2]);
    }

    #[test]
    fn the_lists_of_a_text_are_as_long_as_the_text_at_most_a_few_times() {
        // Every line is an error, a match and a declaration.
        let text = "pub error[E1]: name_1 failed: expected left: right:\n".repeat(2_000);
        let ranges = split(&text, Part::Line);
        let lines = Lines::new(&text, &ranges, false);
        let words = super::super::query::Words::of(["name_1"].into_iter());
        let query = Query {
            turn: words.into(),
            ..Query::default()
        };
        for kind in OF_RESULTS.iter().chain(&OF_TEXTS) {
            let lengths = kind
                .streams
                .iter()
                .map(|(_, list)| list(lines, &query).len());
            let length: usize = lengths.sum();
            assert!(length <= 8 * ranges.len(), "{kind:?}: {length}");
        }
    }
}
