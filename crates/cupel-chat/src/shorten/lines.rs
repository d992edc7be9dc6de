//! Text: whole lines from the beginning and the end, and the identifiers of the lines between.
//!
//! Logs and listings say what they are at the beginning and how it ended at the end. Of a log with
//! 400 lines a level may keep
//!
//! ```text
//! compiling cupel v1.3.0                                       60 % of the text: the beginning
//! [320 lines omitted, including 05:19:21, src/fit.rs]          one marker per gap
//! error[E0308]: mismatched types                               lines with errors, the last ones
//! [70 lines omitted]
//! test result: FAILED                                          40 %: the end
//! ```
//!
//! Identifiers of omitted lines are named in the marker of their gap, because a later call may need
//! them. Texts of less than four lines, and of lines so long that few would fit, are cut by
//! characters.

use std::borrow::Cow;
use std::collections::HashSet;
use std::ops::Range;

use super::binary::thousands;
use super::identifiers::{self, SHORT};
use super::search::{Limit, boundary};

/// Texts with fewer lines are cut by characters: a beginning, a marker and an end are three lines.
const FEW_LINES: usize = 4;

/// The percent of the kept text that is taken from the beginning; the rest is from the end.
/// Slightly more than half, because the beginning has headers and the command; the end has the
/// outcome.
const HEAD: usize = 60;

/// The percent of the kept text that lines with errors take at most, from the last one backward. A
/// log of nothing but errors still keeps its beginning and its end.
const ERRORS: usize = 30;

/// The longest text that a search tries, in multiples of the bytes that the level usually has. Only texts of
/// repeated characters have tokens that are eight times as long as estimated, and a bound keeps the renderings
/// of the search small.
const LONG_TOKENS: usize = 8;

/// The usual bytes of an identifier in a marker. It is the first guess of a search and decides how
/// many counts it takes, not what it finds.
const NAME: usize = 16;

/// The most bytes by which a cut moves back to white space. Words are shorter; a longer run without white space
/// is cut where the room ends.
const WORD: usize = 40;

/// What the room is used for, in percent.
///
/// A result keeps its text in two thirds of the room. A text of the model or of a user keeps half,
/// and the other half names identifiers of what is gone; its errors are not lines of a log.
#[derive(Debug, Clone, Copy)]
pub(super) struct Shares {
    /// The text itself. The rest is for identifiers of the omitted part.
    text: i64,
    /// Lines with errors.
    errors: usize,
}

impl Shares {
    pub(super) const RESULT: Self = Self {
        text: 65,
        errors: ERRORS,
    };
    pub(super) const PROSE: Self = Self {
        text: 50,
        errors: 0,
    };
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Unit {
    Lines,
    Characters,
}

/// A text, its lines and its identifiers. Built once for all levels: finding them reads the whole
/// text, and a level reads only what it keeps.
#[derive(Debug)]
pub(super) struct Text<'t> {
    content: Cow<'t, str>,
    /// The lines with their line breaks.
    lines: Vec<Range<usize>>,
    /// The distinct identifiers at their first occurrences.
    identifiers: Vec<Range<usize>>,
    /// The lines with errors.
    errors: Vec<usize>,
}

impl<'t> Text<'t> {
    pub(super) fn new(text: Cow<'t, str>) -> Self {
        let mut lines = Vec::new();
        let mut end = 0;
        for line in text.split_inclusive('\n') {
            end += line.len();
            lines.push(end - line.len()..end);
        }
        Self {
            errors: find_errors(&text, &lines),
            identifiers: identifiers::find(&text),
            lines,
            content: text,
        }
    }

    /// Returns the shortened text as `finish` writes it.
    pub(super) fn shorten(
        &self,
        limit: Limit<'_>,
        shares: Shares,
        finish: &dyn Fn(&str) -> String,
    ) -> Option<String> {
        // A string inside of JSON is longer as JSON than as a value, and it is the JSON that
        // counts.
        if self.content.len() <= limit.bytes() * 4 {
            let whole = finish(&self.content);
            if limit.holds(&whole) {
                return Some(whole);
            }
        }
        let by_lines =
            (self.lines.len() >= FEW_LINES).then(|| self.cut(limit, finish, shares, Unit::Lines));
        by_lines
            .flatten()
            .or_else(|| self.cut(limit, finish, shares, Unit::Characters))
    }

    /// Keeps a part of the text and names identifiers of the rest. `None` if the lines are too long
    /// to keep whole ones.
    fn cut(
        &self,
        limit: Limit<'_>,
        finish: &dyn Fn(&str) -> String,
        shares: Shares,
        unit: Unit,
    ) -> Option<String> {
        let max = self.content.len().min(limit.bytes() * LONG_TOKENS);
        let keep = |bytes| match unit {
            Unit::Lines => self.keep_lines(bytes, shares),
            Unit::Characters => self.keep_ends(bytes),
        };
        let part = limit.percent(shares.text);
        let kept = |bytes| {
            keep(bytes)
                .iter()
                .map(ExactSizeIterator::len)
                .sum::<usize>()
        };
        // Whole lines would use less than half of the room: the lines are too long.
        if unit == Unit::Lines && kept(part.bytes()) * 2 < part.bytes() {
            return None;
        }
        // If all identifiers fit into the room beside the text, one search over the length of the
        // text is enough, and the text may use what the names leave.
        // Each name has `, ` before it.
        let names: usize = self.identifiers.iter().map(|name| name.len() + 2).sum();
        if names <= limit.bytes() - part.bytes() {
            let found = limit.largest(max, limit.bytes() - names, 0, |bytes| {
                let kept = keep(bytes);
                let mut named = self.omitted(&kept, limit);
                named.sort_unstable_by_key(|name| name.start);
                finish(&self.render(&kept, &named))
            });
            if let Some((_, text)) = found {
                return Some(text);
            }
        }
        // Otherwise the text gets its share first, and then as many names as fit.
        let found = part.largest(max, part.bytes(), 0, |bytes| {
            finish(&self.render(&keep(bytes), &[]))
        });
        let kept = keep(found.map_or(0, |(bytes, _)| bytes));
        let omitted = self.omitted(&kept, limit);
        let guess = (limit.bytes() - part.bytes()) / NAME;
        let found = limit.largest(omitted.len(), guess, part.level, |count| {
            // Chosen by usefulness, written in the order of the text.
            let mut named = omitted[..count].to_vec();
            named.sort_unstable_by_key(|name| name.start);
            finish(&self.render(&kept, &named))
        });
        found.map(|(_, text)| text)
    }

    /// Keeps lines of at most `bytes` in all: the last errors, the beginning, the end.
    fn keep_lines(&self, bytes: usize, shares: Shares) -> Vec<Range<usize>> {
        // The last errors first: after earlier ones the program went on.
        let mut kept = Vec::new();
        let mut room = bytes * shares.errors / 100;
        for &line in self.errors.iter().rev() {
            let length = self.lines[line].len();
            if length <= room {
                room -= length;
                kept.push(line);
            }
            if room == 0 {
                break;
            }
        }
        kept.reverse();
        let used: usize = kept.iter().map(|&line| self.lines[line].len()).sum();
        let is_kept = |line: usize| kept.binary_search(&line).is_ok();
        let take = |lines: &mut dyn Iterator<Item = usize>, mut room: usize| {
            let mut taken = Vec::new();
            for line in lines {
                // A line with an error was paid for above.
                let length = if is_kept(line) {
                    0
                } else {
                    self.lines[line].len()
                };
                if length > room {
                    break;
                }
                room -= length;
                taken.push(line);
            }
            (taken, room)
        };
        let rest = bytes - used;
        let (head, left) = take(&mut (0..self.lines.len()), rest * HEAD / 100);
        // What the beginning could not use, because its next line is too long, goes to the end.
        let (tail, _) = take(
            &mut (head.len()..self.lines.len()).rev(),
            rest - rest * HEAD / 100 + left,
        );
        kept.extend(head.into_iter().chain(tail));
        kept.sort_unstable();
        kept.dedup();
        join(kept.into_iter().map(|line| self.lines[line].clone()))
    }

    /// Keeps the beginning and the end, together at most `bytes`.
    fn keep_ends(&self, bytes: usize) -> Vec<Range<usize>> {
        let text = &*self.content;
        let room = bytes * HEAD / 100;
        let (head, tail) = match text.len().checked_sub(bytes).filter(|&omitted| omitted > 0) {
            Some(omitted) => (cut_before(text, room), cut_after(text, room + omitted)),
            None => (text.len(), text.len()),
        };
        let ends = [0..head, tail.max(head)..text.len()];
        ends.into_iter().filter(|end| !end.is_empty()).collect()
    }

    /// Returns the identifiers outside `kept` that do not occur inside, as many as can fit; those
    /// of at most [`SHORT`] characters last.
    ///
    /// The order is that of usefulness, because the search takes a prefix of the list.
    fn omitted(&self, kept: &[Range<usize>], limit: Limit<'_>) -> Vec<Range<usize>> {
        let visible: HashSet<&str> = kept
            .iter()
            .map(|part| &self.content[part.clone()])
            .flat_map(|part| identifiers::find(part).into_iter().map(|word| &part[word]))
            .collect();
        let is_omitted = |word: &&Range<usize>| !visible.contains(&self.content[(*word).clone()]);
        let is_short = |word: &&Range<usize>| word.len() <= SHORT;
        let long = self.identifiers.iter().filter(|word| !is_short(word));
        let short = self.identifiers.iter().filter(is_short);
        let most = usize::try_from(limit.level).unwrap_or(0);
        long.chain(short)
            .filter(is_omitted)
            .take(most)
            .cloned()
            .collect()
    }

    /// Writes the kept parts and a marker with its identifiers for each gap.
    fn render(&self, kept: &[Range<usize>], identifiers: &[Range<usize>]) -> String {
        let mut output = String::new();
        let mut end = 0;
        let mut named = identifiers.iter().peekable();
        let last = self.content.len()..self.content.len();
        for part in kept.iter().chain([&last]) {
            if end < part.start {
                let names: Vec<&str> = std::iter::from_fn(|| {
                    named
                        .next_if(|word| word.start < part.start)
                        .map(|word| &self.content[word.clone()])
                })
                .collect();
                self.mark(&mut output, end..part.start, &names);
            }
            output.push_str(&self.content[part.clone()]);
            end = part.end;
        }
        output
    }

    /// Writes the marker of a gap, on a line of its own if the gap is whole lines.
    fn mark(&self, output: &mut String, gap: Range<usize>, names: &[&str]) {
        let starts_line = gap.start == 0 || self.content[..gap.start].ends_with('\n');
        let ends_line = gap.end == self.content.len() || self.content[..gap.end].ends_with('\n');
        let omitted = &self.content[gap.clone()];
        let (count, unit) = if starts_line && ends_line {
            let before = |byte| self.lines.partition_point(|line| line.start < byte);
            (before(gap.end) - before(gap.start), "line")
        } else {
            (omitted.chars().count(), "character")
        };
        if !starts_line && !output.ends_with(char::is_whitespace) {
            output.push(' ');
        }
        let plural = if count == 1 { "" } else { "s" };
        output.extend(["[", &thousands(count), " ", unit, plural, " omitted"]);
        if !names.is_empty() {
            output.extend([", including ", &names.join(", ")]);
        }
        output.push(']');
        if starts_line && ends_line {
            output.push('\n');
        } else if !self.content[gap.end..].starts_with(char::is_whitespace) {
            output.push(' ');
        }
        if gap.end == self.content.len() {
            output.truncate(output.trim_end().len());
        }
    }
}

/// Returns the lines that have a word of an error.
fn find_errors(text: &str, lines: &[Range<usize>]) -> Vec<usize> {
    let bytes = text.as_bytes();
    let mut errors = Vec::new();
    let mut at = 0;
    while at < bytes.len() {
        if has_error_word(bytes, at) {
            let line = lines.partition_point(|line| line.end <= at);
            errors.push(line);
            at = lines[line].end;
        } else {
            at += 1;
        }
    }
    errors
}

/// Returns whether the byte is the rare letter of a word of an error.
///
/// Each word is searched by its rarest letter, `x` of `exception` or `k` of `panicked`, so that
/// most bytes cost one comparison. The offset is the position of that letter in the word.
fn has_error_word(bytes: &[u8], at: usize) -> bool {
    let words: &[(usize, &str)] = match bytes[at] {
        b'x' | b'X' => &[(1, "exception")],
        b'k' | b'K' => &[(5, "panicked"), (8, "traceback")],
        b'f' | b'F' => &[(0, "failed"), (0, "fatal")],
        b'o' | b'O' => &[(3, "error")],
        _ => return false,
    };
    words.iter().any(|(offset, word)| {
        let start = at.checked_sub(*offset);
        let found = start.and_then(|start| bytes.get(start..start + word.len()));
        found.is_some_and(|found| found.eq_ignore_ascii_case(word.as_bytes()))
    })
}

/// Joins adjacent ranges.
fn join(ranges: impl Iterator<Item = Range<usize>>) -> Vec<Range<usize>> {
    let mut joined: Vec<Range<usize>> = Vec::new();
    for range in ranges {
        match joined.last_mut() {
            Some(last) if last.end == range.start => last.end = range.end,
            _ => joined.push(range),
        }
    }
    joined
}

/// Returns where to cut at or before a byte: at white space if some is near, else between two
/// characters that do not combine.
pub(super) fn cut_before(text: &str, byte: usize) -> usize {
    let end = boundary(text, byte);
    let near = boundary(text, end.saturating_sub(WORD));
    if let Some(space) = text[near..end].rfind(char::is_whitespace) {
        return near + space;
    }
    let mut places = (near..=end).rev().filter(|&at| text.is_char_boundary(at));
    places.find(|&at| !is_torn(text, at)).unwrap_or(end)
}

/// Returns where to start at or after a byte, by the same rules.
fn cut_after(text: &str, byte: usize) -> usize {
    let start = boundary(text, byte);
    let near = boundary(text, start + WORD);
    if let Some(space) = text[start..near].find(char::is_whitespace) {
        return start + space;
    }
    let mut places = (start..=near).filter(|&at| text.is_char_boundary(at));
    places.find(|&at| !is_torn(text, at)).unwrap_or(start)
}

/// Returns whether a cut would separate characters that combine: marks, joiners, variation
/// selectors and skin tones.
fn is_torn(text: &str, at: usize) -> bool {
    let combines = |c: char| {
        matches!(c,
            '\u{300}'..='\u{36f}' | '\u{200d}' | '\u{20d0}'..='\u{20ff}' | '\u{fe00}'..='\u{fe0f}'
            | '\u{1f3fb}'..='\u{1f3ff}' | '\u{e0100}'..='\u{e01ef}')
    };
    text[at..].chars().next().is_some_and(combines) || text[..at].ends_with('\u{200d}')
}
