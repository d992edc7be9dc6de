//! TOML, with the position of every value.

use std::ops::Range;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::{MAX_DEPTH, syntax, too_deep, without_mark};
use crate::config::error::ConfigError;
use crate::config::tree::{Entry, Node, Value, duplicate_key_somewhere};

pub(super) fn parse(text: &str) -> Result<Node<'_>, ConfigError> {
    let body = without_mark(text);
    let reader = Reader {
        text,
        offset: body.start,
    };
    let body = &text[body];
    let table = DeTable::parse(body).map_err(|error| {
        let span = error.span().unwrap_or(0..0);
        let fault = match duplicate(body, &span) {
            // The parser does not name the table.
            Some(key) => duplicate_key_somewhere(key),
            None => syntax(error.message()),
        };
        fault.at(text, reader.span(&span))
    })?;
    let span = table.span();
    let value = reader.table(table.into_inner(), 0)?;
    Ok(Node { value, span })
}

/// Returns the key at `span` if the error there is that it is a duplicate: with an unused key in its
/// place the text can be parsed beyond it. The parser's errors have no kind.
fn duplicate<'a>(text: &'a str, span: &Range<usize>) -> Option<&'a str> {
    let key = text.get(span.clone()).filter(|key| !key.is_empty())?;
    let mut unused = "unused".to_owned();
    while text.contains(&unused) {
        unused.push('_');
    }
    let renamed = [&text[..span.start], &unused, &text[span.end..]].concat();
    let beyond = match DeTable::parse(&renamed) {
        Ok(_) => true,
        Err(error) => error.span()?.start > span.start + unused.len(),
    };
    beyond.then(|| key.trim_matches(['"', '\'']))
}

struct Reader<'a> {
    text: &'a str,
    /// Where the parsed text begins.
    offset: usize,
}

impl<'a> Reader<'a> {
    fn node(&self, value: Spanned<DeValue<'a>>, depth: usize) -> Result<Node<'a>, ConfigError> {
        let span = self.span(&value.span());
        if depth > MAX_DEPTH {
            return Err(too_deep().at(self.text, span));
        }
        let too_large = || syntax("number is too large").at(self.text, span.clone());
        let value = match value.into_inner() {
            DeValue::String(text) => Value::String(text),
            DeValue::Boolean(value) => Value::Bool(value),
            DeValue::Integer(number) => {
                let integer = i128::from_str_radix(number.as_str(), number.radix());
                Value::Integer(integer.map_err(|_| too_large())?)
            }
            DeValue::Float(number) => {
                let float: f64 = number.as_str().parse().map_err(|_| too_large())?;
                if float.is_infinite() && !number.as_str().contains("inf") {
                    return Err(too_large());
                }
                Value::Float(float)
            }
            DeValue::Datetime(time) => Value::String(time.to_string().into()),
            DeValue::Array(values) => {
                let nodes = values.into_iter();
                let nodes = nodes.map(|value| self.node(value, depth + 1));
                Value::Array(nodes.collect::<Result<_, _>>()?)
            }
            DeValue::Table(table) => self.table(table, depth)?,
        };
        Ok(Node { value, span })
    }

    fn table(&self, table: DeTable<'a>, depth: usize) -> Result<Value<'a>, ConfigError> {
        let mut entries = Vec::with_capacity(table.len());
        for (key, value) in table {
            let key_span = self.span(&key.span());
            entries.push(Entry {
                key: key.into_inner(),
                key_span,
                value: self.node(value, depth + 1)?,
            });
        }
        entries.sort_by_key(|entry| entry.key_span.start);
        Ok(Value::Object(entries))
    }

    fn span(&self, span: &Range<usize>) -> Range<usize> {
        span.start + self.offset..span.end + self.offset
    }
}
