//! Lines with errors.

use std::ops::Range;

/// Returns the lines that have a word of an error.
pub(super) fn find(text: &str, lines: &[Range<usize>]) -> Vec<usize> {
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
