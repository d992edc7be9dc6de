//! Texts that the command reads: files and standard input.

use std::io::Read as _;
use std::path::Path;

use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use cupel_app::{ReadOptions, Source};
use cupel_chat::Shape;

use crate::failure::Failure;

/// How a chat is read.
#[derive(Debug, Default, Args)]
#[command(next_help_heading = "Input")]
pub(crate) struct ReadArgs {
    /// Chat format (detected by default)
    #[arg(long, value_name = "SHAPE", value_parser = shape(), hide_possible_values = true, long_help = shape_help())]
    pub(crate) shape: Option<Shape>,

    /// JSON pointer of the chat in the document: /request/body
    #[arg(long, value_name = "POINTER", value_parser = pointer)]
    pub(crate) at: Option<String>,
}

/// Returns the help of `--shape`.
fn shape_help() -> String {
    let names = Shape::ALL.map(Shape::name).join(", ");
    format!("Chat format, detected by default: {names}")
}

/// Parses a chat format.
fn shape() -> impl TypedValueParser<Value = Shape> {
    PossibleValuesParser::new(Shape::ALL.map(Shape::name)).try_map(|name| name.parse())
}

/// Parses a JSON pointer.
fn pointer(text: &str) -> Result<String, &'static str> {
    if text.is_empty() || text.starts_with('/') {
        Ok(text.to_owned())
    } else {
        Err("a JSON pointer starts with `/`, such as `/history`")
    }
}

impl ReadArgs {
    pub(crate) fn options(&self) -> ReadOptions {
        ReadOptions {
            shape: self.shape,
            at: self.at.clone(),
        }
    }
}

/// Reads a file, or standard input for `-`.
pub(crate) fn read(path: &Path) -> Result<Source, Failure> {
    let read = if path == Path::new("-") {
        let mut bytes = Vec::new();
        let read = std::io::stdin().lock().read_to_end(&mut bytes);
        read.map(|_| bytes)
    } else {
        std::fs::read(path)
    };
    let bytes = read.map_err(|error| Failure::io("read", path, &error))?;
    Ok(Source::from_bytes(name(path), bytes)?)
}

/// Fails if an option other than `-o` names the input as the file that it writes. The input is the only copy of the
/// chat, and nothing of it would be left: a state or a page has another content. `-o` may name it.
pub(crate) fn check_output(
    input: &Path,
    option: &str,
    output: Option<&Path>,
) -> Result<(), Failure> {
    let Some(output) = output else {
        return Ok(());
    };
    match (input.canonicalize(), output.canonicalize()) {
        (Ok(read), Ok(written)) if read == written => Err(Failure::input(format!(
            "{option} names the input, which it would replace"
        ))
        .in_file(&name(output))
        .help("name another file")),
        // A file that does not exist yet is not the input.
        _ => Ok(()),
    }
}

/// Returns the display name of a file.
pub(crate) fn name(path: &Path) -> String {
    if path == Path::new("-") {
        "standard input".to_owned()
    } else {
        path.display().to_string()
    }
}
