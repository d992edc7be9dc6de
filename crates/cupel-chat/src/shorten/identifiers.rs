//! Identifiers: the values that a later tool call is likely to repeat.

use std::collections::HashSet;
use std::ops::Range;

/// The characters of an identifier.
const LENGTH: std::ops::RangeInclusive<usize> = 4..=80;

/// The characters from which on a word in capitals is an identifier.
const CAPITALS: usize = 5;

/// Returns whether the word looks like an identifier, a path, an address or a date: 4 to 80
/// characters without white space, with a digit, `@` or `/`, or all capitals.
pub(super) fn is_identifier(word: &str) -> bool {
    if word.len() > 4 * LENGTH.end() {
        return false;
    }
    let (mut length, mut marked, mut capitals) = (0, false, true);
    for c in word.chars() {
        if c.is_whitespace() {
            return false;
        }
        length += 1;
        marked |= c.is_ascii_digit() || c == '@' || c == '/';
        capitals &= c.is_ascii_uppercase() || c == '_';
    }
    LENGTH.contains(&length) && (marked || capitals && length >= CAPITALS)
}

/// Finds the distinct identifiers of a text, each at its first occurrence.
pub(super) fn find(text: &str) -> Vec<Range<usize>> {
    let mut found = Vec::new();
    let mut known = HashSet::new();
    for word in words(text) {
        if is_identifier(&text[word.clone()]) && known.insert(&text[word.clone()]) {
            found.push(word);
        }
    }
    found
}

/// What may stand around an identifier in a sentence.
const PUNCTUATION: [char; 7] = ['.', ':', '!', '?', '-', '#', '$'];

/// Splits a text at white space, quotes, brackets and the like, without punctuation at the ends.
fn words(text: &str) -> impl Iterator<Item = Range<usize>> {
    let separates = |c: char| {
        c.is_whitespace()
            || matches!(
                c,
                '"' | '\''
                    | '`'
                    | '('
                    | ')'
                    | '['
                    | ']'
                    | '{'
                    | '}'
                    | '<'
                    | '>'
                    | ','
                    | ';'
                    | '|'
                    | '*'
                    | '='
                    | '\\'
            )
    };
    let mut end = 0;
    text.split_inclusive(separates).map(move |piece| {
        end += piece.len();
        let word = piece.strip_suffix(separates).unwrap_or(piece);
        let trimmed = word.trim_start_matches(PUNCTUATION);
        let start = end - piece.len() + word.len() - trimmed.len();
        start..start + trimmed.trim_end_matches(PUNCTUATION).len()
    })
}
