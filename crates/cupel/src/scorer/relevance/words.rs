//! Text analysis: from a text to lowercase words.

use std::borrow::Cow;

use unicode_normalization::UnicodeNormalization;
use unicode_normalization::char::canonical_combining_class;
use unicode_script::{Script, UnicodeScript};

/// The most characters of a word. The rest of a longer one, such as encoded data, is ignored: no
/// query repeats it, and each would be a term of its own.
const LONGEST: usize = 64;

/// The combining class of the marks that make another kana: か, が. Other marks are removed, so that
/// `Zoë` matches `zoe`; without these the word would be another one.
const KANA_VOICING: u8 = 8;

/// Calls `visit` with every word of a text, in order.
///
/// The text is normalized (NFKD), combining marks are removed, letters become lowercase. Words are runs of
/// letters and digits. In scripts without spaces, and in Hangul, words are pairs of characters (bigrams). An
/// identifier in camel case gives its parts and itself: `parseQuery` gives `parse`, `query`, `parsequery`.
/// Numbers joined by dots give their parts and themselves: `1.12` gives `1`, `12`, `1.12`.
pub(in crate::scorer) fn each_word(text: &str, mut visit: impl FnMut(&str)) {
    let text = normalize(text);
    let mut lowercase = String::new();
    let mut visit = |word: &str| {
        if word
            .bytes()
            .all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit())
        {
            return visit(word);
        }
        lowercase.clear();
        lowercase.extend(word.chars().flat_map(char::to_lowercase));
        visit(&lowercase);
    };
    // The start of the current chain of runs joined by dots, and its end so far: `1`, `1.12`,
    // `1.12.3`. A chain is visited as a word when the next run does not continue it.
    let mut chain = (0, 0);
    let mut at = 0;
    while let Some(start) = find_word(&text, at) {
        at = end_of_word(&text, start);
        if joins_digits(&text, chain.1, start) {
            chain.1 = at;
        } else {
            visit_chain(&text[chain.0..chain.1], &mut visit);
            chain = (start, at);
        }
        each_part(&text[start..at], &mut visit);
    }
    visit_chain(&text[chain.0..chain.1], &mut visit);
}

/// Visits a chain of runs joined by dots, unless it is very long.
fn visit_chain(chain: &str, visit: &mut impl FnMut(&str)) {
    if chain.contains('.') && chain.chars().count() <= LONGEST {
        visit(chain);
    }
}

/// Returns the text in normal form NFKD without combining marks, recomposed.
pub(crate) fn normalize(text: &str) -> Cow<'_, str> {
    if text.is_ascii() {
        return Cow::Borrowed(text);
    }
    let is_mark = |c| !matches!(canonical_combining_class(c), 0 | KANA_VOICING);
    // Composition restores Hangul syllables and voiced kana.
    Cow::Owned(text.nfkd().filter(|&c| !is_mark(c)).nfc().collect())
}

/// Returns the start of the next word from `at` on. ASCII is read by bytes; only at another
/// character does the search decode.
fn find_word(text: &str, at: usize) -> Option<usize> {
    let bytes = text.as_bytes();
    let skipped = bytes[at..]
        .iter()
        .position(|it| it.is_ascii_alphanumeric() || !it.is_ascii());
    let start = at + skipped?;
    if bytes[start].is_ascii() {
        return Some(start);
    }
    text[start..]
        .find(char::is_alphanumeric)
        .map(|offset| start + offset)
}

/// Returns the end of the word that starts at `start`.
fn end_of_word(text: &str, start: usize) -> usize {
    let bytes = text.as_bytes();
    let length = bytes[start..]
        .iter()
        .position(|byte| !byte.is_ascii_alphanumeric());
    let end = length.map_or(text.len(), |length| start + length);
    if bytes.get(end).is_none_or(u8::is_ascii) {
        return end;
    }
    text[end..]
        .find(|c: char| !c.is_alphanumeric())
        .map_or(text.len(), |offset| end + offset)
}

/// Returns whether one dot is between `end` and `start`, and a digit on either side of it.
fn joins_digits(text: &str, end: usize, start: usize) -> bool {
    let bytes = text.as_bytes();
    let is_digit = |byte: Option<&u8>| byte.is_some_and(u8::is_ascii_digit);
    let is_dot = start == end + 1 && bytes[end] == b'.';
    is_dot && is_digit(bytes[..end].last()) && is_digit(bytes.get(start))
}

/// Visits the words of one run of letters and digits.
fn each_part(run: &str, visit: &mut impl FnMut(&str)) {
    if run.is_ascii() {
        return each_segmented(run, visit);
    }
    let mut rest = run;
    while let Some(first) = rest.chars().next() {
        let is_pairs = is_unsegmented(first);
        let end = rest.find(|c| is_unsegmented(c) != is_pairs && !is_common(c));
        let (part, after) = rest.split_at(end.unwrap_or(rest.len()));
        if is_pairs {
            each_pair(part, visit);
        } else {
            each_segmented(part, visit);
        }
        rest = after;
    }
}

/// Visits every pair of adjacent characters, or the only character.
fn each_pair(part: &str, visit: &mut impl FnMut(&str)) {
    let starts: Vec<usize> = part
        .char_indices()
        .map(|(at, _)| at)
        .chain([part.len()])
        .collect();
    if let [start, end] = starts[..] {
        visit(&part[start..end]);
    }
    starts
        .windows(3)
        .for_each(|pair| visit(&part[pair[0]..pair[2]]));
}

/// Visits the parts of an identifier in camel case, then the whole word.
fn each_segmented(word: &str, visit: &mut impl FnMut(&str)) {
    let end = (word.len() > LONGEST)
        .then(|| word.char_indices().nth(LONGEST).map(|(at, _)| at))
        .flatten();
    let word = &word[..end.unwrap_or(word.len())];
    if end.is_none() && has_humps(word) {
        let mut start = 0;
        let mut before = None;
        let mut chars = word.char_indices().peekable();
        while let Some((at, c)) = chars.next() {
            let next = chars.peek().map(|&(_, next)| next);
            if before.is_some_and(|before| is_hump(before, c, next)) {
                visit(&word[start..at]);
                start = at;
            }
            before = Some(c);
        }
        if start > 0 {
            visit(&word[start..]);
        }
    }
    visit(word);
}

/// Returns whether a letter after the first may be uppercase.
fn has_humps(word: &str) -> bool {
    let mut rest = word.bytes().skip(1);
    rest.any(|byte| byte.is_ascii_uppercase() || !byte.is_ascii())
}

/// Returns whether a new part of an identifier in camel case starts at `c`: `parse|Query`, `HTTP|Server`.
fn is_hump(before: char, c: char, next: Option<char>) -> bool {
    c.is_uppercase() && (before.is_lowercase() || next.is_some_and(char::is_lowercase))
}

/// Returns whether a character belongs to a script that does not separate words, or to Hangul.
fn is_unsegmented(c: char) -> bool {
    !c.is_ascii()
        && matches!(
            c.script(),
            Script::Han
                | Script::Hiragana
                | Script::Katakana
                | Script::Hangul
                | Script::Bopomofo
                | Script::Thai
                | Script::Lao
                | Script::Khmer
                | Script::Myanmar
                | Script::Tibetan
        )
}

/// Returns whether a character continues the script before it, as the prolonged sound mark of Japanese does.
fn is_common(c: char) -> bool {
    !c.is_ascii() && matches!(c.script(), Script::Common | Script::Inherited)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<String> {
        let mut words = Vec::new();
        each_word(text, |word| words.push(word.to_owned()));
        words
    }

    #[test]
    fn words_are_runs_of_letters_and_digits() {
        assert_eq!(
            words("It's 5 o'clock, Zoë!"),
            ["it", "s", "5", "o", "clock", "zoe"]
        );
        assert_eq!(words("ﬁnd № ½ \u{1f600}"), ["find", "no", "1", "2"]);
        assert_eq!(words(""), [""; 0]);
    }

    #[test]
    fn identifiers_give_their_parts_and_themselves() {
        for (text, expected) in [
            ("parseQuery", &["parse", "query", "parsequery"][..]),
            ("HTTPServer2Go", &["http", "server2", "go", "httpserver2go"]),
            ("snake_case", &["snake", "case"]),
            ("src/main.rs", &["src", "main", "rs"]),
            ("v1.12.3-rc1", &["v1", "12", "3", "v1.12.3", "rc1"]),
            ("5.", &["5"]),
            ("OK", &["ok"]),
            ("Zürich", &["zurich"]),
            ("ПриветМир", &["привет", "мир", "приветмир"]),
        ] {
            assert_eq!(words(text), expected, "{text}");
        }
    }

    #[test]
    fn scripts_without_spaces_give_pairs() {
        for (text, expected) in [
            (
                "東京都に住む",
                &["東京", "京都", "都に", "に住", "住む"][..],
            ),
            ("猫", &["猫"]),
            ("データ", &["デー", "ータ"]),
            ("API設計", &["api", "設計"]),
            ("한국어", &["한국", "국어"]),
        ] {
            assert_eq!(words(text), expected, "{text}");
        }
    }

    #[test]
    fn the_end_of_a_very_long_word_is_ignored() {
        let long = "aB".repeat(100);
        assert_eq!(words(&long), ["ab".repeat(LONGEST / 2)]);
    }
}
