//! JSON: the beginning of the document with its shape, and values of the rest by key.
//!
//! Four forms are tried, each smaller and less complete than the one before. The document
//! `{"rows": [{"id": "W-101", "log": LONG}, {"id": "W-102"}, {"id": "W-103"}], "total": 3}`, with a
//! string of 900 characters as LONG, becomes
//!
//! ```text
//! 1. without white space:
//! {"rows":[{"id":"W-101","log":LONG},{"id":"W-102"},{"id":"W-103"}],"total":3}
//! 2. all fields, with long strings cut as texts:
//! {"rows":[{"id":"W-101","log":"start [9 lines omitted] end"},{"id":"W-102"},...],"total":3}
//! 3. the beginning in whole rows, then values by key:
//! {"rows":[{"id":"W-101","log":"start [840 characters omitted]"}],
//!  "_omitted":{"_shortened":"984 characters","id":["W-102","W-103"],"total":3}}
//! 4. values by key:
//! {"_shortened":"984 characters","id":["W-101","W-102","W-103"],"total":3}
//! ```
//!
//! The values are those that a later call is likely to repeat: ids first. Form 3 keeps rows whole,
//! because a value without its row may be taken for a value of another one.

use std::borrow::Cow;
use std::convert::identity;
use std::ops::Range;

use super::binary::thousands;
use super::document::{Document, Listed, Node, unquoted};
use super::kinds;
use super::search::Limit;
use super::text::{Text, cut_before};

/// Up to this level there is room for values by key only: a beginning of 50 tokens would show about
/// one row and take the room of the ids of all others.
const BY_KEY: i64 = 100;

/// The percent of the room for the beginning of the document. The other half is for values of the
/// rest: the beginning shows the shape, the values are what later calls need.
const HEAD: i64 = 50;

/// The tokens to which a long string is cut at least; below, fields are omitted. A marker such as
/// `[1,234 characters omitted]` costs about seven, so less would say little but that.
const LEAST_STRING: i64 = 20;

/// The bytes of a long string that stay where fields are omitted: most of a line, enough to tell
/// what kind of text it is.
const ABRIDGED: usize = 60;

/// The values that are tried one by one after the first one that does not fit. Each costs a count
/// of the whole rendering.
const NEXT: usize = 12;

/// The level up to which they are tried. Above, a value is a small part of the room, and a count
/// takes long.
const FEW: i64 = 200;

impl Document {
    /// Returns the document within the limit.
    pub(super) fn shorten(&self, limit: Limit<'_>) -> Option<String> {
        // A text of more than four times the estimated length is not counted: its tokens would have
        // to be four times as long as those the estimate comes from.
        if self.minified.len() <= limit.bytes() * 4 && limit.holds(&self.minified) {
            return Some(self.minified.clone());
        }
        self.with_cut_strings(limit)
            .or_else(|| self.abridged().with_head(limit))
            .or_else(|| self.by_key(limit))
    }

    /// Returns all fields, with long strings shortened as text to equal shares of the room. Strings
    /// that need less leave their room to longer ones (max-min fairness by progressive filling,
    /// Bertsekas and Gallager 1992, section 6.5.2).
    ///
    /// With a room of 90 tokens and strings of 10, 50 and 200: the first gets 90 / 3 = 30 and needs
    /// 10, the second gets 80 / 2 = 40 and is cut to it, the third gets the last 40.
    fn with_cut_strings(&self, limit: Limit<'_>) -> Option<String> {
        let spans = &self.long_strings;
        let long: usize = spans.iter().map(ExactSizeIterator::len).sum();
        let is_large = self.minified.len() - long > limit.bytes() * 4;
        if spans.is_empty() || is_large || spans.len() > limit.bytes() {
            return None;
        }
        // The fields around the strings cost what the document with empty strings costs.
        let mut strings = vec![r#""""#.to_owned(); spans.len()];
        let mut room = limit.level - limit.counter.count_once(&self.with_strings(&strings));
        let mut order: Vec<usize> = (0..spans.len()).collect();
        order.sort_by_key(|&index| spans[index].len());
        for (done, index) in order.into_iter().enumerate() {
            let level = room / i64::try_from(spans.len() - done).unwrap_or(i64::MAX);
            let share = limit.with_level(level);
            if level < LEAST_STRING {
                return None;
            }
            let whole = &self.minified[spans[index].clone()];
            strings[index] = if share.holds(whole) {
                whole.to_owned()
            } else {
                self.texts()[index].shorten(share, &quote)?
            };
            room -= limit.counter.count_once(&strings[index]);
        }
        // Tokens may merge across the quotes, so the sum of the parts is an estimate. The whole
        // decides.
        let text = self.with_strings(&strings);
        limit.holds(&text).then_some(text)
    }

    /// Writes the document with other long strings.
    fn with_strings(&self, strings: &[String]) -> String {
        let mut output = String::new();
        let mut end = 0;
        for (span, string) in self.long_strings.iter().zip(strings) {
            output.extend([&self.minified[end..span.start], string]);
            end = span.end;
        }
        output.push_str(&self.minified[end..]);
        output
    }

    fn texts(&self) -> &[Text<'static>] {
        let text = |span: &Range<usize>| {
            Text::new(
                Cow::Owned(self.value(span)),
                &self.query,
                &kinds::OF_RESULTS,
            )
        };
        self.texts
            .get_or_init(|| self.long_strings.iter().map(text).collect())
    }

    /// Returns the value of a string; as written if an escaped surrogate has no pair.
    fn value(&self, span: &Range<usize>) -> String {
        let string = &self.minified[span.clone()];
        serde_json::from_str(string).unwrap_or_else(|_| unquoted(string).to_owned())
    }

    /// Returns the document with only the beginnings of long strings.
    fn abridged(&self) -> &Self {
        if self.long_strings.is_empty() {
            return self;
        }
        self.abridged.get_or_init(|| {
            let abridge = |span: &Range<usize>| {
                let value = self.value(span);
                let (start, rest) = value.split_at(cut_before(&value, ABRIDGED));
                let omitted = thousands(rest.chars().count());
                quote(&format!("{start} [{omitted} characters omitted]"))
            };
            let strings: Vec<String> = self.long_strings.iter().map(abridge).collect();
            let text = self.with_strings(&strings);
            Box::new(
                Self::parse(&text, self.characters, &self.query).expect("strings replace strings"),
            )
        })
    }

    /// Returns the beginning of the document and values of the rest.
    fn with_head(&self, limit: Limit<'_>) -> Option<String> {
        if limit.level <= BY_KEY {
            return None;
        }
        // The search is over bytes, in which tokens are nearly linear; the cut is the last
        // permitted place at or before that byte.
        let half = limit.percent(HEAD);
        let cut = |bytes: usize| {
            let after = self
                .cuts
                .partition_point(|&node| self.nodes[node].start <= bytes);
            after.checked_sub(1).map(|index| self.cuts[index])
        };
        let (bytes, _) = half.largest(self.minified.len(), half.bytes(), 0, cut, |node| {
            node.map_or_else(String::new, |node| self.head(node, &[]))
        })?;
        let node = cut(bytes)?;
        // A cut before the first field or element keeps an empty container: the values alone say
        // more.
        if node <= 1 {
            return None;
        }
        let from = self.nodes[node].start;
        let rest: Vec<&Listed> = self
            .values
            .iter()
            .filter(|value| value.span.start >= from)
            .collect();
        largest_list(limit, half.level, &rest, |values| self.head(node, values))
    }

    /// Returns values by key.
    fn by_key(&self, limit: Limit<'_>) -> Option<String> {
        let values: Vec<&Listed> = self.values.iter().collect();
        largest_list(limit, 0, &values, |values| self.list_values(values))
    }

    /// Writes the document up to a node, and the values under `_omitted`.
    ///
    /// Every container that is open at the cut is closed, from the inside out, so that the result
    /// is JSON. The values go into the outermost one: as a last field of an object, as a last
    /// element of an array.
    fn head(&self, node: usize, values: &[&Listed]) -> String {
        let mut output = self.minified[..self.nodes[node].start]
            .trim_end_matches(',')
            .to_owned();
        let mut parent = self.nodes[node].parent;
        while let Some(container) = parent {
            let Node {
                parent: outer,
                is_object,
                ..
            } = self.nodes[container];
            if outer.is_none() {
                if output.len() > 1 {
                    output.push(',');
                }
                let list = self.list_values(values);
                if is_object {
                    output.extend([r#""_omitted":"#, &list]);
                } else {
                    output.extend([r#"{"_omitted":"#, &list, "}"]);
                }
            }
            output.push(if is_object { '}' } else { ']' });
            parent = outer;
        }
        output
    }

    /// Writes values as an object of lists by key, in the order of the document.
    fn list_values(&self, values: &[&Listed]) -> String {
        // The values come by usefulness. A reader expects the order of the document: keys by their
        // first value here, values of a key by position.
        let mut first = vec![usize::MAX; self.keys.len()];
        for value in values {
            let start = &mut first[value.key];
            *start = value.span.start.min(*start);
        }
        let mut sorted = values.to_vec();
        sorted.sort_unstable_by_key(|value| (first[value.key], value.span.start));
        let bytes: usize = values.iter().map(|value| value.span.len() + 1).sum();
        let mut output = String::with_capacity(bytes + 64);
        let characters = thousands(self.characters);
        output.extend([r#"{"_shortened":""#, &characters, r#" characters""#]);
        for group in sorted.chunk_by(|a, b| a.key == b.key) {
            let is_list = group.len() > 1;
            output.extend([",", &self.keys[group[0].key], ":"]);
            for (index, value) in group.iter().enumerate() {
                let before = match index {
                    0 if is_list => "[",
                    0 => "",
                    _ => ",",
                };
                output.extend([before, &self.minified[value.span.clone()]]);
            }
            if is_list {
                output.push(']');
            }
        }
        output.push('}');
        output
    }
}

/// Returns the rendering of as many values as fit, in their order.
fn largest_list(
    limit: Limit<'_>,
    base: i64,
    values: &[&Listed],
    render: impl Fn(&[&Listed]) -> String,
) -> Option<String> {
    // A value costs at least one token.
    let most = usize::try_from(limit.level).unwrap_or(0).min(values.len());
    let (count, mut text) = limit.largest(most, most / 4, base, identity, |count| {
        render(&values[..*count])
    })?;
    // The next value may be longer than the room that is left, and a later one short enough.
    let mut chosen = values[..count].to_vec();
    let next = if limit.level <= FEW { NEXT } else { 0 };
    for value in values.iter().skip(count + 1).take(next) {
        chosen.push(value);
        let more = render(&chosen);
        if limit.counter.count_once(&more) <= limit.level {
            text = more;
        } else {
            chosen.pop();
        }
    }
    Some(text)
}

/// Writes a JSON string.
pub(super) fn quote(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}
