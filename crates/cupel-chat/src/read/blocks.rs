//! Content: a text, or a list of blocks. All shapes share one table of block types.

use serde_json::{Map, Value};

use super::{Fault, fault, join, object, optional, plain, text};
use crate::shape::kind_of;
use crate::tokens::image;
use crate::turn::{Image, Piece, Turn};

/// Reads the content of a message: a text, a list of blocks, or nothing.
pub(super) fn content(turn: &mut Turn, value: Option<&Value>, path: &str) -> Result<(), Fault> {
    match value {
        None | Some(Value::Null) => Ok(()),
        Some(Value::String(text)) => {
            turn.say(text);
            Ok(())
        }
        Some(Value::Array(blocks)) => {
            for (index, value) in blocks.iter().enumerate() {
                block(turn, value, &format!("{path}[{index}]"))?;
            }
            Ok(())
        }
        Some(other) => fault(
            path,
            format!(
                "must be a text or a list of content blocks, not {}",
                kind_of(other)
            ),
        ),
    }
}

fn block(turn: &mut Turn, value: &Value, path: &str) -> Result<(), Fault> {
    if let Value::String(text) = value {
        turn.say(text);
        return Ok(());
    }
    let fields = object(value, path)?;
    match text(fields, "type", path)? {
        "text" | "input_text" | "output_text" | "summary_text" | "reasoning_text" => {
            turn.say(text(fields, "text", path)?);
        }
        "refusal" => turn.say(text(fields, "refusal", path)?),
        "thinking" => turn.say(text(fields, "thinking", path)?),
        "redacted_thinking" => {
            turn.speaks = true;
            let cipher = text(fields, "data", path)?;
            turn.pieces.push(Piece::Cipher(cipher.len()));
        }
        "image_url" | "input_image" | "image" => {
            turn.speaks = true;
            turn.pieces.push(Piece::Image(picture(fields)));
        }
        "input_audio" | "audio" => {
            turn.speaks = true;
            turn.pieces.push(Piece::Audio);
        }
        "file" | "input_file" | "document" => document(turn, fields, path)?,
        "tool_use" | "tool_call" => {
            let name = text(fields, "name", path)?;
            let arguments = fields.get("input").or_else(|| fields.get("args"));
            turn.call(text(fields, "id", path)?, name, plain(arguments));
        }
        "tool_result" => {
            turn.results
                .push(text(fields, "tool_use_id", path)?.to_owned());
            let spoke = turn.speaks;
            content(turn, fields.get("content"), &join(path, "content"))?;
            turn.speaks = spoke;
        }
        // What is not known is counted as it is written.
        _ => turn.say(&value.to_string()),
    }
    Ok(())
}

fn document(turn: &mut Turn, fields: &Map<String, Value>, path: &str) -> Result<(), Fault> {
    turn.speaks = true;
    for key in ["title", "context", "filename"] {
        if let Some(text) = optional(fields, key, path)? {
            turn.say(text);
        }
    }
    let source = fields.get("source").and_then(Value::as_object);
    match source
        .and_then(|source| source.get("type"))
        .and_then(Value::as_str)
    {
        Some("text") => turn.say(&plain(source.and_then(|source| source.get("data")))),
        Some("content") => {
            let inner = source.and_then(|source| source.get("content"));
            content(turn, inner, &join(path, "source.content"))?;
        }
        _ => turn.pieces.push(Piece::File),
    }
    Ok(())
}

/// What a block tells about its image: the detail that is asked for, and the size if the image itself
/// is there.
fn picture(fields: &Map<String, Value>) -> Image {
    let text = |value: Option<&'_ Value>| value.and_then(Value::as_str).map(str::to_owned);
    let nested = fields.get("image_url").and_then(Value::as_object);
    let source = fields.get("source").and_then(Value::as_object);
    let detail = text(fields.get("detail")).or_else(|| text(nested?.get("detail")));
    let url = text(fields.get("image_url"))
        .or_else(|| text(nested?.get("url")))
        .or_else(|| text(fields.get("url")));
    let data = text(source.and_then(|source| source.get("data")))
        .or_else(|| text(fields.get("data")))
        .or_else(|| text(fields.get("base64")))
        .or_else(|| {
            let url = url?;
            Some(
                url.strip_prefix("data:")?
                    .split_once(";base64,")?
                    .1
                    .to_owned(),
            )
        });
    Image {
        size: data.and_then(|data| image::size(&data)),
        low_detail: detail.as_deref() == Some("low"),
    }
}
