//! What a message, and what stands around the messages, costs.

use serde_json::Value;

use super::{TokenCounter, image};
use crate::layout::Layout;
use crate::read::anthropic;
use crate::shape::Shape;
use crate::turn::{Piece, Turn};

/// What every message costs beside its role and content, and what the answer's head costs: OpenAI's
/// published recipe, taken for everybody.
const PER_MESSAGE: i64 = 3;
const PER_NAME: i64 = 1;
const REPLY: i64 = 3;
/// What a tool call costs beside its name and arguments.
const PER_CALL: i64 = 3;
/// What cannot be seen from outside.
const AUDIO: i64 = 500;
const FILE: i64 = 1_500;
/// Encrypted reasoning: four bytes of it for a token.
const CIPHER_BYTES: usize = 4;

/// The tokens of one message.
pub(crate) fn message(shape: Shape, turn: &Turn, counter: &dyn TokenCounter) -> i64 {
    let name = if turn.named { PER_NAME } else { 0 };
    sum([
        PER_MESSAGE,
        name,
        counter.count(&turn.label),
        pieces(shape, turn, counter),
    ])
}

fn pieces(shape: Shape, turn: &Turn, counter: &dyn TokenCounter) -> i64 {
    sum(turn.pieces.iter().map(|piece| match piece {
        Piece::Text(text) => counter.count(text),
        Piece::Call(name, arguments) => {
            sum([PER_CALL, counter.count(name), counter.count(arguments)])
        }
        Piece::Image(image) => image::tokens(shape, *image),
        Piece::Audio => AUDIO,
        Piece::File => FILE,
        Piece::Cipher(bytes) => i64::try_from(bytes.div_ceil(CIPHER_BYTES)).unwrap_or(i64::MAX),
    }))
}

/// The tokens of what goes along with any choice of messages: the answer's head, the instructions and
/// the tools, whose definitions count as they are written, without white space.
pub(crate) fn envelope(shape: Shape, layout: &Layout, counter: &dyn TokenCounter) -> i64 {
    if shape == Shape::Items {
        return 0;
    }
    let mut tokens = vec![REPLY];
    for key in ["tools", "functions"] {
        if let Some(value @ Value::Array(_)) = layout.field(key) {
            tokens.push(counter.count(&value.to_string()));
        }
    }
    for key in ["system", "instructions"] {
        if let Some(turn) = layout
            .field(key)
            .and_then(|value| anthropic::system(value).ok())
        {
            tokens.push(message(shape, &turn, counter));
        }
    }
    sum(tokens)
}

fn sum(tokens: impl IntoIterator<Item = i64>) -> i64 {
    tokens
        .into_iter()
        .fold(0, |sum, tokens| sum.saturating_add(tokens.max(0)))
}
