//! Token counts of texts that share most of their pieces.
//!
//! The search for the longest form of a text counts forms that differ by a line, so that most lines are counted many
//! times. A text is cut into pieces where its tokenization certainly has a boundary, and the counts of the last pieces
//! are remembered by their names:
//!
//! ```text
//! running 211 tests⏎              1 piece, known from the form before
//! E   AssertionError: expected⏎   known
//! [395 lines omitted]⏎            new: counted
//! ```
//!
//! A pre-token, of which tokens are parts, matches the regular expression of the encoding from where the one before
//! ends, so that a text may be cut where a pre-token certainly starts. In `o200k_base` and `cl100k_base` that is
//!
//! - after a line break, if neither a slash (`[\r\n/]*`) nor white space with another line break (`\s*[\r\n]+`) follows;
//! - before a space after a character that is none: no pre-token has a space behind its first character;
//! - before a quotation mark after a letter or a digit: these pre-tokens end there.
//!
//! The last two occur more often than they help, so only those after punctuation and before `",` are used: the ends of
//! sentences and of JSON strings.

use std::cell::RefCell;

use super::Encoding;
use super::memory::{Name, keys};

/// The pieces that a thread remembers, with 24 bytes each: the lines of some texts. A power of two.
const REMEMBERED: usize = 4_096;

/// The most bytes of a piece that is remembered. Longer ones are rarely those of another text.
const LONG: usize = 512;

/// The fewest bytes of a piece, the last one aside. The name of a shorter one takes as long as counting it.
const SHORT: usize = 16;

thread_local! {
    /// Direct-mapped by name: a new piece replaces another one. An entry that was never set has no tokens.
    static COUNTS: RefCell<Vec<(Name, i64)>> = const { RefCell::new(Vec::new()) };
}

/// Counts the tokens of `text`, which are those that `count` returns for it.
pub(super) fn count(encoding: Encoding, text: &str, count: impl Fn(&str) -> i64) -> i64 {
    // The boundaries are those of the regular expressions of OpenAI.
    if !matches!(encoding, Encoding::O200k | Encoding::Cl100k) {
        return count(text);
    }
    let keys = keys();
    COUNTS.with_borrow_mut(|known| {
        if known.is_empty() {
            known.resize(REMEMBERED, (Name::default(), 0));
        }
        let (mut tokens, mut start) = (0_i64, 0);
        let mut add = |piece: &str| {
            if piece.len() > LONG || piece.is_empty() {
                tokens += count(piece);
                return;
            }
            let name = Name::of_short(piece, keys, encoding as u64);
            let entry = &mut known[name.slot(REMEMBERED)];
            if entry.1 == 0 || entry.0 != name {
                *entry = (name, count(piece));
            }
            tokens += entry.1;
        };
        let bytes = text.as_bytes();
        let mut at = SHORT;
        while let Some(byte) = bytes.get(at) {
            let cut = match byte {
                b'\n' => at + 1,
                b' ' | b'"' => at,
                _ => {
                    at += 1;
                    continue;
                }
            };
            at += 1;
            if is_boundary(text, cut) {
                add(&text[start..cut]);
                (start, at) = (cut, cut + SHORT);
            }
        }
        add(&text[start..]);
        tokens
    })
}

/// Returns whether a pre-token certainly starts at a place after the first byte.
fn is_boundary(text: &str, at: usize) -> bool {
    let bytes = text.as_bytes();
    let before = bytes[at - 1];
    match bytes.get(at..) {
        Some([b' ', ..]) if before != b'\n' => matches!(before, b'.' | b'!' | b'?' | b':' | b';'),
        Some([b'"', b',', ..]) if before != b'\n' => before.is_ascii_alphanumeric(),
        Some(rest) if before == b'\n' => {
            let spaces = rest.iter().take_while(|byte| matches!(byte, b' ' | b'\t'));
            let next = text[at + spaces.count()..].chars().next();
            next.is_some_and(|next| next != '/' && !next.is_whitespace())
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    /// Lines, sentences and JSON with what may stand around the boundaries.
    fn text() -> impl Strategy<Value = String> {
        let word = prop_oneof![
            "[a-zA-Z0-9_]{1,14}",
            "\\PC{0,6}",
            prop::sample::select(&[
                "'s", "don't", "é", "中文", "e\u{301}", "12345", "…", ")", "/", "//"
            ])
            .prop_map(String::from),
        ];
        let mark = prop::sample::select(&[
            "\n",
            "\n\n",
            "\r\n",
            "\n  ",
            "\n\t",
            "\n/",
            " \n",
            "\n \n",
            "\n\u{a0}",
            "\u{2028}",
            ". ",
            "! ",
            "? ",
            ": ",
            "; ",
            ".  ",
            " ",
            "  ",
            "\",\"",
            "\",",
            "\"",
            ",",
            "\":\"",
            "; \n",
            ".\n",
            ");\n",
            ");\n/",
            "\n…\n",
            "\n\u{85}\n",
        ]);
        vec((word, mark), 0..60).prop_map(|pieces| {
            pieces
                .into_iter()
                .flat_map(|(word, mark)| [word, mark.to_owned()])
                .collect()
        })
    }

    fn tokens_of(encoding: Encoding, text: &str) -> i64 {
        i64::try_from(encoding.bpe().unwrap().count(text)).unwrap()
    }

    #[test]
    fn a_text_has_the_tokens_of_its_pieces() {
        let cases = cupel_conformance::testing::cases(300);
        let config = ProptestConfig {
            cases,
            failure_persistence: None,
            ..ProptestConfig::default()
        };
        let pieces = std::cell::Cell::new(0);
        proptest::test_runner::TestRunner::new(config)
            .run(&text(), |text| {
                for encoding in [Encoding::O200k, Encoding::Cl100k] {
                    let plain = |piece: &str| {
                        pieces.set(pieces.get() + 1);
                        tokens_of(encoding, piece)
                    };
                    let expected = tokens_of(encoding, &text);
                    // Twice: new, and from memory.
                    prop_assert_eq!(count(encoding, &text, plain), expected, "{}", encoding);
                    prop_assert_eq!(count(encoding, &text, plain), expected, "{}", encoding);
                }
                Ok(())
            })
            .unwrap_or_else(|error| panic!("{error}"));
        assert!(pieces.get() > 4 * cases as usize, "{}", pieces.get());
    }

    #[test]
    fn a_piece_is_counted_once() {
        let lines = "one line of the output\nanother line: it is longer\n[12 lines omitted]\n";
        let counted = std::cell::Cell::new(0);
        let words = |piece: &str| {
            counted.set(counted.get() + 1);
            i64::try_from(piece.split_whitespace().count()).unwrap()
        };
        assert_eq!(count(Encoding::O200k, lines, words), 13);
        assert_eq!(count(Encoding::O200k, &lines[..50], words), 10);
        assert_eq!(counted.get(), 3);
    }
}
