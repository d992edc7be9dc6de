//! Identifiers: the values that a later tool call is likely to repeat.
//!
//! Of `Moved order #W-1093 of user mia_li_3668 to /srv/mail at 05:19:21, total 12` these are
//! `W-1093`, `mia_li_3668`, `/srv/mail` and `05:19:21`: words with a digit, `@` or `/`, without the
//! punctuation around them. `12` is too short, and `Moved` has none of the marks. The rule knows no
//! language and no tool, so that it works on any result.

use std::collections::HashSet;
use std::ops::Range;

/// The characters of an identifier. Shorter ones are counts and list numbers, of which a text has
/// many; longer ones are data. A UUID has 36 and a SHA-256 digest 64.
const LENGTH: std::ops::RangeInclusive<usize> = 4..=80;

/// The most characters of a short identifier. Short ones come after the longer ones: they are mostly amounts,
/// times and years.
pub(super) const SHORT: usize = 5;

/// The characters from which on a word in capitals is an identifier, such as `ECONNRESET`. Shorter
/// ones are mostly abbreviations: HTTP, JSON.
const CAPITALS: usize = 5;

/// Returns whether the word looks like an identifier, a path, an address or a date: 4 to 80
/// characters without white space, with a digit, `@` or `/`, or all capitals.
pub(super) fn is_identifier(word: &str) -> bool {
    // A character has at most four bytes: this is cheaper than counting the characters of a
    // megabyte.
    if word.len() > 4 * LENGTH.end() {
        return false;
    }
    let is_marked = |byte: u8| byte.is_ascii_digit() || byte == b'@' || byte == b'/';
    let is_capital = |byte: u8| byte.is_ascii_uppercase() || byte == b'_';
    let is_shaped = word.bytes().any(is_marked)
        || word.len() >= CAPITALS
            && word.bytes().all(is_capital)
            && word.bytes().any(|byte| byte != b'_');
    is_shaped && LENGTH.contains(&word.chars().count()) && !word.contains(char::is_whitespace)
}

/// The identifiers after which the search ends: more than the markers of a text can name. It bounds
/// the memory of the table for a text of millions of numbers.
const MOST: usize = 8_192;

/// The properties of a byte in a word, as bits: the OR over a word says whether any byte is a mark,
/// and whether any byte is not a capital.
const SEPARATOR: u8 = 1;
const MARK: u8 = 2;
const NOT_CAPITAL: u8 = 4;

/// The properties of each byte. One pass with a table takes a nanosecond per byte; tests of
/// characters take ten.
const PROPERTIES: [u8; 256] = {
    let mut properties = [NOT_CAPITAL; 256];
    let mut byte = 0u8;
    loop {
        properties[byte as usize] = match byte {
            0..=b' '
            | b'"'
            | b'\''
            | b'`'
            | b'('
            | b')'
            | b'['
            | b']'
            | b'{'
            | b'}'
            | b'<'
            | b'>'
            | b','
            | b';'
            | b'|'
            | b'*'
            | b'='
            | b'\\' => SEPARATOR,
            b'0'..=b'9' | b'@' | b'/' => MARK | NOT_CAPITAL,
            b'A'..=b'Z' | b'_' => 0,
            _ => NOT_CAPITAL,
        };
        if byte == u8::MAX {
            break properties;
        }
        byte += 1;
    }
};

/// Finds the first [`MOST`] distinct identifiers of a text, each at its first occurrence.
pub(super) fn find(text: &str) -> Vec<Range<usize>> {
    let mut found = Vec::new();
    let mut known = HashSet::new();
    let (mut start, mut properties) = (0, 0);
    for (at, byte) in text.bytes().chain([b' ']).enumerate() {
        let property = PROPERTIES[usize::from(byte)];
        if property != SEPARATOR {
            properties |= property;
            continue;
        }
        let may_be = properties & MARK != 0 || properties == 0;
        if may_be && at - start >= *LENGTH.start() {
            let word = trim(text, start..at);
            if is_identifier(&text[word.clone()]) && known.insert(&text[word.clone()]) {
                found.push(word);
                if found.len() == MOST {
                    break;
                }
            }
        }
        (start, properties) = (at + 1, 0);
    }
    found
}

/// Returns a word without the punctuation around it.
fn trim(text: &str, word: Range<usize>) -> Range<usize> {
    let punctuation = ['.', ':', '!', '?', '-', '#', '$'];
    let trimmed = text[word.clone()].trim_start_matches(punctuation);
    let start = word.end - trimmed.len();
    start..start + trimmed.trim_end_matches(punctuation).len()
}
