//! The lines of a text, or its sentences.

use std::ops::Range;

/// What a text is divided into. A part is kept whole or not at all, as long as parts fit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Part {
    Line,
    /// A sentence, at most a line. The lines of prose are paragraphs, and few of them would fit.
    Sentence,
}

/// The fewest bytes of a sentence. Shorter ones are numbers of lists, as in `1. Berlin`, and abbreviations.
const SHORTEST: usize = 16;

/// How many parts are read to find out what a text is: these from the beginning, and half as many from the end,
/// where a test run and a compiler say how it went.
const SAMPLE: usize = 200;

/// The most digits of a line number. Numbers of ten digits are times.
const MOST_DIGITS: usize = 6;

/// The parts of a text, with the white space after each.
#[derive(Debug, Clone, Copy)]
pub(super) struct Lines<'t> {
    pub(super) text: &'t str,
    pub(super) ranges: &'t [Range<usize>],
    /// Whether the lines begin with their numbers.
    pub(super) is_numbered: bool,
}

impl<'t> Lines<'t> {
    pub(super) fn new(text: &'t str, ranges: &'t [Range<usize>], is_numbered: bool) -> Self {
        Self {
            text,
            ranges,
            is_numbered,
        }
    }

    /// Returns the range of a line, without the spaces before its number: they align numbers that are not kept.
    pub(super) fn unaligned(self, line: usize) -> Range<usize> {
        let range = self.ranges[line].clone();
        let text = &self.text[range.clone()];
        let aligned = if self.is_numbered && number(text).is_some() {
            text.len() - text.trim_start_matches(' ').len()
        } else {
            0
        };
        range.start + aligned..range.end
    }

    pub(super) fn indices(self) -> Range<usize> {
        0..self.ranges.len()
    }

    /// Returns a line without its number and without white space at its end.
    pub(super) fn body(self, line: usize) -> &'t str {
        let line = self.text[self.ranges[line].clone()].trim_end();
        let numbered = if self.is_numbered { number(line) } else { None };
        numbered.map_or(line, |(_, body)| body)
    }

    /// Returns whether a line has no text. Such a line is not worth its tokens.
    pub(super) fn is_blank(self, line: usize) -> bool {
        self.body(line).trim_start().is_empty()
    }

    /// Returns whether a line has a number, if lines have numbers. A line without one is not of the file: it is the
    /// message of the tool around it.
    pub(super) fn is_own(self, line: usize) -> bool {
        !self.is_numbered || number(&self.text[self.ranges[line].clone()]).is_some()
    }

    /// Returns the lines with a property, in order.
    pub(super) fn with(self, is: impl Fn(&str) -> bool) -> Vec<usize> {
        let is = |&line: &usize| is(self.body(line));
        self.indices().filter(is).collect()
    }

    /// Returns whether at least this percentage of the sampled lines has a property, blank lines aside.
    pub(super) fn mostly(self, percent: usize, mut is: impl FnMut(&str) -> bool) -> bool {
        let lines = self.sample().filter(|&line| !self.is_blank(line));
        let (mut all, mut with) = (0, 0);
        for line in lines {
            all += 1;
            with += usize::from(is(self.body(line)));
        }
        with > 0 && with * 100 >= all * percent
    }

    fn sample(self) -> impl Iterator<Item = usize> {
        let [start, end] = self.sampled();
        start.chain(end)
    }

    /// Returns the sampled lines as two texts.
    pub(super) fn sample_texts(self) -> [&'t str; 2] {
        self.sampled().map(|lines| {
            let ranges = &self.ranges[lines];
            let text = ranges.first().zip(ranges.last());
            text.map_or("", |(first, last)| &self.text[first.start..last.end])
        })
    }

    fn sampled(self) -> [Range<usize>; 2] {
        let end = self.ranges.len();
        let start = end.min(SAMPLE);
        [0..start, start.max(end.saturating_sub(SAMPLE / 2))..end]
    }
}

/// Divides a text; the ranges cover it.
pub(super) fn split(text: &str, part: Part) -> Vec<Range<usize>> {
    let mut ranges = Vec::new();
    let mut end = 0;
    for line in text.split_inclusive('\n') {
        let mut start = end;
        end += line.len();
        if part == Part::Sentence {
            for at in sentence_starts(line) {
                let at = end - line.len() + at;
                if at - start >= SHORTEST {
                    ranges.push(start..at);
                    start = at;
                }
            }
        }
        ranges.push(start..end);
    }
    ranges
}

/// Returns where sentences or clauses start in a line, the first one aside: after punctuation and a space, or after
/// the wide punctuation of Chinese and Japanese, which has no space after it.
fn sentence_starts(line: &str) -> impl Iterator<Item = usize> {
    // What came before: whether the last character beside spaces is punctuation, and whether there was a space.
    let (mut is_over, mut is_spaced) = (false, false);
    line.char_indices().filter_map(move |(at, c)| {
        if c == ' ' {
            is_spaced = true;
            return None;
        }
        let is_start = is_over && is_spaced;
        let is_wide = matches!(c, '。' | '！' | '？');
        is_over = is_wide || matches!(c, '.' | '!' | '?' | ':' | ';');
        is_spaced = is_wide;
        is_start.then_some(at)
    })
}

/// Returns the number that a line begins with, and the rest of the line, as `cat -n`, editors and `grep -n` write
/// them: `   12\tfn main() {`, `12→fn main() {`, `12: fn main() {`, `12-fn main() {`, `12 | fn main() {`.
pub(super) fn number(line: &str) -> Option<(u64, &str)> {
    let line = line.trim_start_matches(' ');
    let digits = line.bytes().take_while(u8::is_ascii_digit).count();
    let number = line[..digits]
        .parse()
        .ok()
        .filter(|_| digits <= MOST_DIGITS)?;
    let marks = ["\t", "→", ":", "-", " |", "|"];
    let rest = marks
        .iter()
        .find_map(|mark| line[digits..].strip_prefix(mark))?;
    Some((number, rest))
}

/// Returns whether most lines begin with their numbers: these must ascend, as times of day and dates do not.
pub(super) fn is_numbered(text: &str, ranges: &[Range<usize>]) -> bool {
    let mut last = None;
    Lines::new(text, ranges, false).mostly(51, |line| {
        let number = number(line).map(|(number, _)| number);
        let ascends = number > last;
        last = last.max(number);
        ascends
    })
}
