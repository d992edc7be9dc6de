//! TOML, with the place of every value.

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::{DEEPEST, syntax, too_deep, without_mark};
use crate::config::error::ConfigError;
use crate::config::tree::{Entry, Node, Value, stands_twice};

pub(super) fn parse(text: &str) -> Result<Node<'_>, ConfigError> {
    let reader = Reader {
        text,
        offset: without_mark(text).start,
    };
    let table = DeTable::parse(&text[without_mark(text)]).map_err(|error| {
        let span = reader.span(&error.span().unwrap_or(0..0));
        match (error.message(), text.get(span.clone())) {
            // The parser does not say in which table.
            ("duplicate key", Some(key)) => stands_twice(key.trim_matches(['"', '\''])),
            (message, _) => syntax(message),
        }
        .at(text, span)
    })?;
    let span = table.span();
    let value = reader.map(table.into_inner(), 0)?;
    Ok(Node { value, span })
}

struct Reader<'a> {
    text: &'a str,
    /// Where the text that was read begins.
    offset: usize,
}

impl<'a> Reader<'a> {
    fn node(&self, value: Spanned<DeValue<'a>>, depth: usize) -> Result<Node<'a>, ConfigError> {
        let span = self.span(&value.span());
        if depth > DEEPEST {
            return Err(too_deep().at(self.text, span));
        }
        let too_large = || syntax("a number that is too large").at(self.text, span.clone());
        let value = match value.into_inner() {
            DeValue::String(text) => Value::Text(text),
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
            DeValue::Datetime(time) => Value::Text(time.to_string().into()),
            DeValue::Array(values) => {
                let nodes = values.into_iter();
                let nodes = nodes.map(|value| self.node(value, depth + 1));
                Value::List(nodes.collect::<Result<_, _>>()?)
            }
            DeValue::Table(table) => self.map(table, depth)?,
        };
        Ok(Node { value, span })
    }

    fn map(&self, table: DeTable<'a>, depth: usize) -> Result<Value<'a>, ConfigError> {
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
        Ok(Value::Map(entries))
    }

    fn span(&self, span: &std::ops::Range<usize>) -> std::ops::Range<usize> {
        span.start + self.offset..span.end + self.offset
    }
}
