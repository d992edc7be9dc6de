//! Text: the lines that a reader would keep, and the identifiers of the others.
//!
//! The kind of a text ([`kinds`](super::kinds)) says which lines come first. As many as fit are kept. Of a test run
//! with 400 lines a level may keep
//!
//! ```text
//! running 211 tests                                            the beginning
//! …                                                            a gap
//! E   AssertionError: expected 3 uploads, got 1                why a test failed
//! [395 lines omitted, including helper_12, src/fit.rs]         the largest gap: what is gone in all
//! FAILED tests/test_upload.py::test_retry                      the end
//! 1 failed, 210 passed in 3.2s
//! ```
//!
//! One marker is enough, because each costs as much as half of a line. In a text with line numbers the numbers show
//! the gaps. Identifiers of omitted lines are named in the marker, because a later call may need them. Texts of less
//! than four parts, and of parts so long that few would fit, are cut by characters.

use std::borrow::Cow;
use std::cmp::Reverse;
use std::collections::HashSet;
use std::convert::identity;
use std::ops::Range;
use std::sync::OnceLock;

use super::binary::thousands;
use super::identifiers::{self, SHORT};
use super::kinds::Kind;
use super::lines::{self, Lines, Part};
use super::query::Query;
use super::search::{Limit, boundary};

/// Texts with fewer parts are cut by characters: a beginning, a marker and an end are three lines.
const FEW_PARTS: usize = 4;

/// The percent of the kept text that is taken from the beginning, if it is cut by characters; the rest is from the
/// end. Slightly more than half, because the beginning has headers and the command; the end has the outcome.
const HEAD: usize = 60;

/// The percent of the room that names of identifiers in the marker take at most, unless the text leaves more. A name
/// without its line says little, but a third of the room has more names than lines.
const NAMES: i64 = 20;

/// How many lines that do not fit are skipped for shorter ones. One long line in the order should not leave the rest
/// of the room empty; without a bound, each try would read all lines of the text.
const SKIPPED: usize = 4;

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

/// The mark of a gap that has no marker.
const GAP: &str = "…";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Unit {
    Parts,
    Characters,
}

/// A text, its parts and its identifiers. Built once for all levels: finding them reads the whole
/// text, and a level reads only what it keeps.
#[derive(Debug)]
pub(super) struct Text<'t> {
    content: Cow<'t, str>,
    kind: &'static Kind,
    /// The lines or sentences, with the white space after each.
    parts: Vec<Range<usize>>,
    is_numbered: bool,
    /// The distinct identifiers at their first occurrences, if the marker names them.
    identifiers: Vec<Range<usize>>,
    query: Query,
    /// The parts, the most useful ones first. Found when the text is first cut by parts.
    order: OnceLock<Vec<usize>>,
}

impl<'t> Text<'t> {
    pub(super) fn new(content: Cow<'t, str>, query: &Query, kinds: &'static [Kind]) -> Self {
        let mut parts = lines::split(&content, Part::Line);
        let is_numbered = lines::is_numbered(&content, &parts);
        let kind = Kind::of(Lines::new(&content, &parts, is_numbered), kinds);
        if kind.part != Part::Line {
            parts = lines::split(&content, kind.part);
        }
        Self {
            kind,
            parts,
            is_numbered: is_numbered && kind.part == Part::Line,
            identifiers: if kind.has_names {
                identifiers::find(&content)
            } else {
                Vec::new()
            },
            query: query.clone(),
            order: OnceLock::new(),
            content,
        }
    }

    fn lines(&self) -> Lines<'_> {
        Lines::new(&self.content, &self.parts, self.is_numbered)
    }

    /// Returns the shortened text as `finish` writes it.
    pub(super) fn shorten(
        &self,
        limit: Limit<'_>,
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
        let by_parts =
            (self.parts.len() >= FEW_PARTS).then(|| self.cut(limit, finish, Unit::Parts));
        by_parts
            .flatten()
            .or_else(|| self.cut(limit, finish, Unit::Characters))
    }

    /// Keeps a part of the text and names identifiers of the rest. `None` if the parts are too long
    /// to keep whole ones.
    fn cut(&self, limit: Limit<'_>, finish: &dyn Fn(&str) -> String, unit: Unit) -> Option<String> {
        let max = self.content.len().min(limit.bytes() * LONG_TOKENS);
        let keep = |bytes| match unit {
            Unit::Parts => self.keep_parts(bytes),
            Unit::Characters => self.keep_ends(bytes),
        };
        let part = limit.percent(100 - NAMES);
        let kept = |bytes| {
            keep(bytes)
                .iter()
                .map(ExactSizeIterator::len)
                .sum::<usize>()
        };
        // Whole parts would use less than half of the room: they are too long.
        if unit == Unit::Parts && kept(part.bytes()) * 2 < part.bytes() {
            return None;
        }
        // If all identifiers fit into the room beside the text, one search over the length of the
        // text is enough, and the text may use what the names leave.
        // Each name has `, ` before it.
        let names: usize = self.identifiers.iter().map(|name| name.len() + 2).sum();
        if names <= limit.bytes() - part.bytes() {
            let found = limit.largest(max, limit.bytes() - names, 0, keep, |kept| {
                let mut named = self.omitted(kept, limit);
                named.sort_unstable_by_key(|name| name.start);
                finish(&self.render(unit, kept, &named))
            });
            if let Some((_, text)) = found {
                return Some(text);
            }
        }
        // Otherwise the text gets its share first, and then as many names as fit.
        let found = part.largest(max, part.bytes(), 0, keep, |kept| {
            finish(&self.render(unit, kept, &[]))
        });
        let kept = keep(found.map_or(0, |(bytes, _)| bytes));
        let omitted = self.omitted(&kept, limit);
        let guess = (limit.bytes() - part.bytes()) / NAME;
        let found = limit.largest(omitted.len(), guess, part.level, identity, |count| {
            // Chosen by usefulness, written in the order of the text.
            let mut named = omitted[..*count].to_vec();
            named.sort_unstable_by_key(|name| name.start);
            finish(&self.render(unit, &kept, &named))
        });
        found.map(|(_, text)| text)
    }

    /// Keeps the most useful parts, together at most `bytes`.
    fn keep_parts(&self, bytes: usize) -> Vec<Range<usize>> {
        let order = self
            .order
            .get_or_init(|| self.kind.order(self.lines(), &self.query));
        let mut kept = Vec::new();
        let (mut room, mut skipped) = (bytes, 0);
        for &part in order {
            let range = self.lines().unaligned(part);
            if let Some(left) = room.checked_sub(range.len()) {
                room = left;
                kept.push(range);
            } else if skipped < SKIPPED {
                skipped += 1;
            } else {
                break;
            }
        }
        kept.sort_unstable_by_key(|range| range.start);
        kept
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
        if self.identifiers.is_empty() {
            return Vec::new();
        }
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

    /// Writes the kept ranges. The marker takes the place of the largest gap, and other gaps have a short mark; if
    /// lines are numbered, the numbers show these.
    fn render(&self, unit: Unit, kept: &[Range<usize>], names: &[Range<usize>]) -> String {
        let starts = kept.iter().map(|range| range.start);
        let ends = kept.iter().map(|range| range.end);
        let gaps = [0]
            .into_iter()
            .chain(ends)
            .zip(starts.chain([self.content.len()]));
        let gaps: Vec<Range<usize>> = gaps.map(|(start, end)| start..end).collect();
        let is_gap = |gap: &&Range<usize>| kept.is_empty() || !self.is_blank((*gap).clone());
        let marked = gaps.iter().filter(is_gap);
        let largest = marked
            .clone()
            .max_by_key(|gap| (gap.len(), Reverse(gap.start)));
        let count = marked.map(|gap| self.count(unit, gap.clone())).sum();
        let mut output = String::new();
        for (index, gap) in gaps.iter().enumerate() {
            let is_inner = !output.is_empty() && index < kept.len();
            if largest == Some(gap) {
                self.mark(&mut output, unit, gap.clone(), count, names);
            } else if is_inner && !self.is_numbered {
                self.join(&mut output, gap.clone());
            }
            if let Some(range) = kept.get(index) {
                output.push_str(&self.content[range.clone()]);
            }
        }
        if gaps.last().is_some_and(|gap| !gap.is_empty()) {
            output.truncate(output.trim_end().len());
        }
        output
    }

    /// Returns whether a gap has no text beside the numbers of lines. Such a gap is not marked.
    fn is_blank(&self, gap: Range<usize>) -> bool {
        let gap = self.content[gap].trim();
        let number = |line| lines::number(line).is_some_and(|(_, body)| body.trim().is_empty());
        gap.is_empty() || self.is_numbered && gap.lines().all(number)
    }

    /// Returns how much a gap has of the unit.
    fn count(&self, unit: Unit, gap: Range<usize>) -> usize {
        match (unit, self.kind.part) {
            (Unit::Characters, _) => self.content[gap].chars().count(),
            (Unit::Parts, Part::Line) => self.parts_in(gap).count(),
            (Unit::Parts, Part::Sentence) => {
                let lines = self.lines();
                self.parts_in(gap)
                    .filter(|&part| !lines.is_blank(part))
                    .count()
            }
        }
    }

    /// Returns the parts that end in a gap.
    fn parts_in(&self, gap: Range<usize>) -> Range<usize> {
        let end_by = |byte| self.parts.partition_point(|part| part.end <= byte);
        end_by(gap.start)..end_by(gap.end)
    }

    /// Writes the mark of a gap without a marker; of blank lines, one.
    fn join(&self, output: &mut String, gap: Range<usize>) {
        let end = if self.starts_line(gap.end) { "\n" } else { " " };
        if !self.is_blank(gap.clone()) {
            output.extend([GAP, end]);
        } else if !gap.is_empty() {
            output.push_str(end);
        }
    }

    fn starts_line(&self, byte: usize) -> bool {
        byte == 0 || byte == self.content.len() || self.content[..byte].ends_with('\n')
    }

    /// Writes the marker of a gap, on a line of its own if the gap is whole lines.
    fn mark(
        &self,
        output: &mut String,
        unit: Unit,
        gap: Range<usize>,
        count: usize,
        names: &[Range<usize>],
    ) {
        if !output.is_empty() && !output.ends_with(char::is_whitespace) {
            output.push(' ');
        }
        let noun = match (unit, self.kind.part) {
            (Unit::Characters, _) => "character",
            (Unit::Parts, Part::Line) => "line",
            (Unit::Parts, Part::Sentence) => "sentence",
        };
        let plural = if count == 1 { "" } else { "s" };
        output.extend(["[", &thousands(count), " ", noun, plural, " omitted"]);
        if !names.is_empty() {
            let names = names.iter().map(|name| &self.content[name.clone()]);
            let names: Vec<&str> = names.collect();
            output.extend([", including ", &names.join(", ")]);
        }
        output.push(']');
        let starts_line = self.starts_line(gap.start);
        if starts_line && (self.starts_line(gap.end) || self.is_numbered) {
            output.push('\n');
        } else if !self.content[gap.end..].starts_with(char::is_whitespace) {
            output.push(' ');
        }
    }
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
