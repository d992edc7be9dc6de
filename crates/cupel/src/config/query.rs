//! A [`Query`] as data.

use super::data::{Data, Fields, object};
use super::define::data_record;
use super::error::ConfigError;
use super::registry::{Literal, POSITIVE, Record, Shape, default, required};
use super::tree::{Node, Value};
use crate::{Query, RawValue};

const A_QUERY_TEXT: &Shape = &Shape::Record(&QUERY_TEXT);

/// Several texts of a query.
pub(super) const QUERY_TEXTS: Shape = Shape::Array(A_QUERY_TEXT, 1);

struct QueryText {
    text: String,
    weight: f64,
}

data_record! {
    QUERY_TEXT "query_text" "A text of a query, with its weight." => QueryText {
        text = required(Shape::String),
            "The text.";
        weight = default(POSITIVE, Literal::Number(1.0)),
            "The weight, relative to the other texts.";
    }
}

/// One text is a string, several are an array.
impl Data for Query {
    fn read(node: &Node<'_>, _: Shape) -> Result<Self, ConfigError> {
        if let Value::String(text) = &node.value {
            return Ok(Self::new(&**text));
        }
        let texts = Vec::<QueryText>::read(node, QUERY_TEXTS)?;
        let texts = texts.into_iter();
        Ok(texts.fold(Self::default(), |query, it| query.and(it.text, it.weight)))
    }

    fn write(&self) -> RawValue {
        let texts = self.texts().map(|(text, weight)| QueryText {
            text: text.to_owned(),
            weight,
        });
        let texts: Vec<QueryText> = texts.collect();
        match &texts[..] {
            [QueryText { text, weight: 1.0 }] => text.write(),
            _ => texts.write(),
        }
    }
}
