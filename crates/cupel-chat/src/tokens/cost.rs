//! The tokens of messages and of the request overhead.
//!
//! [`part`] has one line per kind of content; `shape/blocks.rs` maps block types to these kinds.

use serde_json::Value;

use super::TokenCounter;
use crate::cache::without_marks;
use crate::layout::Layout;
use crate::message::{ContentPart, ParsedMessage};
use crate::shape::{RequestField, Shape};

/// The overhead of a message beside its role and content, and of the start of the answer. The numbers
/// are those of the OpenAI Cookbook ("How to count tokens with tiktoken"), used for every format.
const PER_MESSAGE: i64 = 3;
const PER_NAME: i64 = 1;
const REPLY: i64 = 3;
/// The overhead of a tool call beside its name and arguments.
const PER_CALL: i64 = 3;
/// Fixed estimates: the request does not show the length of a recording or the pages of a file.
const AUDIO: i64 = 500;
const FILE: i64 = 1_500;
/// Bytes of encrypted reasoning per token, an estimate: only the length of the text is known.
const ENCRYPTED_BYTES: usize = 4;

/// Returns the tokens of one message.
pub(crate) fn message(shape: Shape, message: &ParsedMessage, counter: &dyn TokenCounter) -> i64 {
    let parts = message
        .parts
        .iter()
        .map(|content| part(shape, content, counter));
    sum([PER_MESSAGE, counter.count(&message.label)]
        .into_iter()
        .chain(parts))
}

/// Returns the tokens of one part of a message.
fn part(shape: Shape, part: &ContentPart, counter: &dyn TokenCounter) -> i64 {
    match part {
        ContentPart::Text(text) => counter.count(text),
        ContentPart::Name(name) => sum([PER_NAME, counter.count(name)]),
        ContentPart::Call(name, arguments) => {
            sum([PER_CALL, counter.count(name), counter.count(arguments)])
        }
        ContentPart::Image(image) => (shape.format().image_tokens)(*image),
        ContentPart::Audio => AUDIO,
        ContentPart::File => FILE,
        ContentPart::Encrypted(bytes) => {
            i64::try_from(bytes.div_ceil(ENCRYPTED_BYTES)).unwrap_or(i64::MAX)
        }
    }
}

/// Returns the request overhead: the start of the answer and the fields of the request that cost tokens.
pub(crate) fn overhead(shape: Shape, layout: &Layout, counter: &dyn TokenCounter) -> i64 {
    if !shape.is_chat() {
        return 0;
    }
    let fields = shape.format().request_fields.iter();
    let fields = fields.map(|field| match *field {
        RequestField::Json(key) => match layout.field(key) {
            // Breakpoints of the prompt cache are no part of the prompt.
            Some(value @ (Value::Array(_) | Value::Object(_))) => {
                counter.count(&without_marks(&value.to_string()))
            }
            _ => 0,
        },
        RequestField::Prompt(key, read) => {
            let prompt = layout.field(key).filter(|value| !value.is_null());
            let prompt = prompt.and_then(|value| read(value).ok());
            prompt.map_or(0, |prompt| message(shape, &prompt, counter))
        }
    });
    sum(fields.chain([REPLY]))
}

fn sum(tokens: impl IntoIterator<Item = i64>) -> i64 {
    tokens
        .into_iter()
        .fold(0, |sum, tokens| sum.saturating_add(tokens.max(0)))
}
