//! Byte pair encoding of long runs in overlapping windows.
//!
//! A text is split into pre-tokens by a regular expression, and each pre-token is merged by itself
//! (byte pair encoding, Sennrich et al. 2016). Almost all pre-tokens are words. A run such as a
//! megabyte of one letter is one pre-token, and merging it with a heap takes O(n log n) steps that
//! miss the cache: 3 microseconds per byte at 20 MB.
//!
//! The windows rest on one property: a token sequence is the encoding of its text if every two adjacent
//! tokens are the encoding of their own text. If a merge crossed the boundary between two tokens in the whole
//! text, it would also do so in the text of these two alone. So two windows that share a token can be joined at
//! its start: each adjacent pair occurs in one of the two encodings.
//!
//! ```text
//! run        aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa...
//! window 1   |aaaaaaaa|aaaaaaaa|aaaa|             its end cuts the last token
//! window 2            |aaaaaaaa|aaaaaaaa|aaaa|    starts at a token of window 1
//! joined     |aaaaaaaa|aaaaaaaa|aaaaaaaa|...      the token at the start of 2 is in both
//! ```
//!
//! If the first token of window 2 is another one, the end of window 1 reached back to the cut:
//! window 1 is encoded again at twice the length.

use std::ops::Range;

use tiktoken::CoreBpe;

use super::Encoding;

/// The bytes of a window. Larger than the longest token (128 bytes), because a pre-token that is a
/// token is not merged. Larger windows are slower: 4,096 bytes take twice the time per byte.
const WINDOW: usize = 512;

/// The minimum bytes of a run that is encoded in windows. A window ends in the run, with at least `WINDOW`
/// bytes of the run before and after its end, and shorter runs gain nothing.
const LONG: usize = 4 * WINDOW;

/// The tokens at the end of a window that the next window encodes again. The cut at the end of a window
/// usually changes the last few tokens only. If it changes more, the window is encoded again at twice the
/// length.
const OVERLAP: usize = 16;

/// Counts the tokens of `text`, which are those of the encoding without windows.
pub(super) fn count(bpe: &CoreBpe, encoding: Encoding, text: &str) -> usize {
    let runs = long_runs(text, encoding);
    if runs.is_empty() {
        return bpe.count(text);
    }
    // Returns the end of a window at `wanted` or later: inside of a long run, or the end of the text. A cut
    // between runs could move a boundary of a pre-token.
    let end_from = |wanted: usize| {
        let run = runs.iter().find(|run| wanted + WINDOW < run.end);
        let end = run.map_or(text.len(), |run| wanted.max(run.start + WINDOW));
        (0..=end)
            .rfind(|&end| text.is_char_boundary(end))
            .unwrap_or(0)
    };
    // `count` has the tokens before `start`, and `tokens` is the encoding of `start..end`.
    let (mut start, mut end) = (0, end_from(0));
    let mut tokens = bpe.encode(&text[..end]);
    let mut count = 0;
    while end < text.len() {
        let (kept, cut) = last_cut(bpe, text, &tokens, end);
        let next_end = end_from(cut + WINDOW);
        // Repeated text, such as one letter, is encoded once: the same bytes that start with the
        // same token have the same tokens.
        if text[start..end] == text[cut..next_end] && tokens[0] == tokens[kept] {
            count += kept;
            (start, end) = (cut, next_end);
            continue;
        }
        let next = bpe.encode(&text[cut..next_end]);
        if next.first() == tokens.get(kept) {
            count += kept;
            (start, end, tokens) = (cut, next_end, next);
        } else {
            end = end_from(end + (end - start));
            tokens = bpe.encode(&text[start..end]);
        }
    }
    count + tokens.len()
}

/// Returns the number of tokens before the cut and its byte: the start of one of the last tokens,
/// at a character boundary.
fn last_cut(bpe: &CoreBpe, text: &str, tokens: &[u32], end: usize) -> (usize, usize) {
    let (mut kept, mut cut) = (tokens.len(), end);
    while tokens.len() - kept < OVERLAP && end - cut < WINDOW / 2 || !text.is_char_boundary(cut) {
        kept -= 1;
        cut -= bpe.decode(&tokens[kept..=kept]).len();
    }
    (kept, cut)
}

/// Characters whose runs the pre-tokenizer never splits.
///
/// The regular expressions of `o200k_base` and `cl100k_base` match letters, punctuation and white
/// space greedily, so a run of one class is inside one match. A cut in such a run moves no boundary
/// of a pre-token. Digits are not here: they are split in threes from the left, which a cut would
/// shift.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Class {
    Lower,
    Upper,
    /// Letters without case that are nowhere combining: Han, Kana, Hangul.
    Caseless,
    Punctuation,
    Whitespace(char),
}

impl Class {
    fn of(c: char, encoding: Encoding) -> Option<Self> {
        Some(match c {
            'a'..='z' => Self::Lower,
            // `cl100k_base` does not split at a change of case.
            'A'..='Z' if encoding == Encoding::Cl100k => Self::Lower,
            'A'..='Z' => Self::Upper,
            '\u{3041}'..='\u{3096}'
            | '\u{30a1}'..='\u{30fa}'
            | '\u{4e00}'..='\u{9fa5}'
            | '\u{ac00}'..='\u{d7a3}' => Self::Caseless,
            ' ' | '\t' | '\n' => Self::Whitespace(c),
            _ if c.is_ascii_punctuation() => Self::Punctuation,
            _ => return None,
        })
    }

    /// Returns whether the pre-token of a run starts at the same byte wherever the run is cut,
    /// given the characters around the run.
    fn is_cut_safely(self, before: Option<char>, after: Option<char>) -> bool {
        match self {
            Self::Lower | Self::Caseless | Self::Punctuation => true,
            // In `o200k_base`, a letter without case is in the pre-token of the capitals after it only if a small
            // letter follows them, and a cut would take that letter away.
            Self::Upper => before.is_none_or(|c| c.is_ascii()),
            // A pre-token of punctuation, and one of white space, includes the line breaks after it.
            Self::Whitespace('\n') => {
                before.is_none_or(|c| c.is_ascii_alphanumeric())
                    && after.is_none_or(|c| !c.is_whitespace())
            }
            // A pre-token that ends on a line break includes the white space before it.
            Self::Whitespace(_) => ![before, after].iter().flatten().any(|c| c.is_whitespace()),
        }
    }
}

/// Finds the runs of one class that are long and may be cut.
fn long_runs(text: &str, encoding: Encoding) -> Vec<Range<usize>> {
    let mut runs = Vec::new();
    // The classes are those of the regular expressions of OpenAI.
    if text.len() < LONG || !matches!(encoding, Encoding::O200k | Encoding::Cl100k) {
        return runs;
    }
    let mut close = |run: Range<usize>, class: Option<Class>, after: Option<char>| {
        let before = text[..run.start].chars().next_back();
        if run.len() >= LONG && class.is_some_and(|class| class.is_cut_safely(before, after)) {
            runs.push(run);
        }
    };
    let (mut class, mut start) = (None, 0);
    for (at, c) in text.char_indices() {
        let next = Class::of(c, encoding);
        if next != class {
            close(start..at, class, Some(c));
            (class, start) = (next, at);
        }
    }
    close(start..text.len(), class, None);
    runs
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    const WINDOWED: [Encoding; 2] = [Encoding::O200k, Encoding::Cl100k];

    /// Runs of every class, and what may stand between them.
    fn text() -> impl Strategy<Value = String> {
        let long = prop_oneof![
            "[a-z]{1,3}".prop_map(|unit| unit.repeat(6_000 / unit.len())),
            "[a-z]{3000,4000}",
            "[A-Z]{3000,4000}",
            "[a-zA-Z]{3000,4000}",
            "[ぁ-んァ-ヶ一-龠가-힣]{1000,2000}",
            "[(){};=<>/*\"'`|&^%$#@!~,.:?_+-]{3000,4000}",
            "[-=_*/]".prop_map(|unit| unit.repeat(5_000)),
            prop::sample::select(&[" ", "\t", "\n", "\r\n", " \n"])
                .prop_map(|unit| unit.repeat(4_000)),
        ];
        let short = prop_oneof![
            "\\PC{0,12}",
            "[a-zA-Z0-9中é'/ \n\t\r=]{0,6}",
            prop::sample::select(&["'s", "中", "A", "\n", " ", "", "/", "e\u{301}"])
                .prop_map(String::from),
        ];
        let pieces = vec(prop_oneof![2 => short, 1 => long], 0..6);
        pieces.prop_map(|pieces| pieces.concat())
    }

    #[test]
    fn windows_do_not_change_the_count() {
        let cases = cupel_conformance::testing::cases(200);
        let config = ProptestConfig {
            cases,
            failure_persistence: None,
            ..ProptestConfig::default()
        };
        let windowed = std::cell::Cell::new(0);
        proptest::test_runner::TestRunner::new(config)
            .run(&text(), |text| {
                for encoding in WINDOWED {
                    let bpe = encoding.bpe().unwrap();
                    let runs = long_runs(&text, encoding).len();
                    windowed.set(windowed.get() + runs);
                    let expected = bpe.count(&text);
                    prop_assert_eq!(count(bpe, encoding, &text), expected, "{}", encoding);
                }
                Ok(())
            })
            .unwrap_or_else(|error| panic!("{error}"));
        assert!(
            windowed.get() > cases as usize / 4,
            "{} long runs",
            windowed.get()
        );
    }

    #[test]
    fn a_window_is_longer_than_the_longest_token() {
        for encoding in WINDOWED {
            let bpe = encoding.bpe().unwrap();
            let tokens = 0..u32::try_from(bpe.vocab_size()).unwrap();
            let longest = tokens.map(|token| bpe.decode(&[token]).len()).max();
            assert_eq!(longest, Some(128), "{encoding}");
        }
    }
}
