//! Texts that the command reads: files and standard input.

use std::io::Read as _;
use std::path::Path;

use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use cupel::config::{ConfigError, Document, Format, PolicyConfig, Position};
use cupel_chat::{Chat, Shape};

use crate::embed;
use crate::failure::{Exit, Failure, Place};

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

/// A text and its origin.
#[derive(Debug)]
pub(crate) struct Source {
    /// The file name as given on the command line.
    pub(crate) name: String,
    pub(crate) text: String,
    /// The line of the file, from 1, if the text is one line of it.
    pub(crate) line: Option<usize>,
    /// Whether the file starts with a byte order mark, which the text does not have.
    pub(crate) had_byte_order_mark: bool,
}

impl Source {
    /// Reads a file, or standard input for `-`.
    pub(crate) fn read(path: &Path) -> Result<Self, Failure> {
        if let Some((name, text)) = embed::input(path) {
            return Self::new(name, text.into_bytes());
        }
        let read = if path == Path::new("-") {
            let mut bytes = Vec::new();
            let read = std::io::stdin().lock().read_to_end(&mut bytes);
            read.map(|_| bytes)
        } else {
            std::fs::read(path)
        };
        let bytes = read.map_err(|error| Failure::io("read", path, &error))?;
        Self::new(name(path), bytes)
    }

    fn new(name: String, bytes: Vec<u8>) -> Result<Self, Failure> {
        let had_byte_order_mark = bytes.starts_with("\u{feff}".as_bytes());
        let text = decode(&name, 1, bytes)?;
        if text.trim().is_empty() {
            return Err(Failure::input("the file is empty").in_file(&name).help(
                "chats and items are JSON, one object per line too; requests and policies are also TOML or YAML",
            ));
        }
        Ok(Self {
            name,
            text,
            line: None,
            had_byte_order_mark,
        })
    }

    /// Returns one line of a file as a text.
    pub(crate) fn line(name: &str, line: usize, bytes: Vec<u8>) -> Result<Self, Failure> {
        let text = decode(name, line, bytes)?;
        if text.trim().is_empty() {
            return Err(Failure::input("the line is empty").help("each line holds one request"));
        }
        Ok(Self {
            name: name.to_owned(),
            text,
            line: Some(line),
            had_byte_order_mark: false,
        })
    }

    /// Reads the text as a policy document.
    pub(crate) fn policy(&self) -> Result<PolicyConfig, Failure> {
        Document::parse(&self.text, self.format())
            .and_then(|document| document.policy_config())
            .map_err(|error| self.not_a_policy().unwrap_or_else(|| self.failure(&error)))
    }

    /// Returns the failure of a chat or a list of items in the place of a policy.
    fn not_a_policy(&self) -> Option<Failure> {
        let chat = Chat::parse(&self.text, None).ok();
        let chat = chat.filter(|chat| !chat.is_empty())?;
        let (what, command) = match chat.shape() {
            Shape::Items => ("a list of items", "`cupel select` selects from items"),
            _ => ("a chat", "`cupel fit` fits a chat"),
        };
        let failure = Failure::input(format!("this is {what}, not a policy"));
        Some(failure.at(self.whole()).help(command))
    }

    /// Returns every fault of the text as a policy document.
    pub(crate) fn policy_faults(&self) -> Vec<Failure> {
        let faults = match Document::parse(&self.text, self.format()) {
            Ok(document) => document.policy_faults(),
            Err(error) => vec![error],
        };
        if let (false, Some(failure)) = (faults.is_empty(), self.not_a_policy()) {
            return vec![failure];
        }
        faults.iter().map(|fault| self.failure(fault)).collect()
    }

    /// Returns the format by the file extension, else by the text.
    pub(crate) fn format(&self) -> Format {
        Format::of_path(&self.name).unwrap_or_else(|| Format::of_text(&self.text))
    }

    /// Returns a fault of the text with its place.
    pub(crate) fn failure(&self, error: &ConfigError) -> Failure {
        let failure = Failure::new(Exit::Input, error.message());
        let failure = match error.suggestion() {
            Some(name) => failure.help(format!("did you mean `{name}`?")),
            None => failure,
        };
        let path = error.path();
        let place = match error.position() {
            Some(position) => self.place(position.line, position.column, path),
            None => Place {
                file: self.name.clone(),
                path,
                ..Place::default()
            },
        };
        failure.at(place)
    }

    /// Returns the place of the text as a whole.
    pub(crate) fn whole(&self) -> Place {
        Place {
            file: self.name.clone(),
            line: self.line.unwrap_or(0),
            column: 1,
            ..Place::default()
        }
    }

    /// Returns a place in the text; line and column count from 1.
    pub(crate) fn place(&self, line: usize, column: usize, path: String) -> Place {
        Place {
            file: self.name.clone(),
            line: line + self.line.unwrap_or(1) - 1,
            column,
            path,
            source: self.text.lines().nth(line - 1).map(str::to_owned),
        }
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

/// Decodes UTF-8 with or without a byte order mark. The text starts at `first_line` of the file.
fn decode(name: &str, first_line: usize, bytes: Vec<u8>) -> Result<String, Failure> {
    match String::from_utf8(bytes) {
        Ok(text) => Ok(match text.strip_prefix('\u{feff}') {
            Some(rest) => rest.to_owned(),
            None => text,
        }),
        Err(error) => {
            let valid = error.utf8_error().valid_up_to();
            let bytes = error.into_bytes();
            let before = String::from_utf8_lossy(&bytes[..valid]);
            let position = Position::of(&before, valid..valid);
            let failure = Failure::input(format!(
                "byte 0x{:02x} is not UTF-8",
                bytes.get(valid).copied().unwrap_or_default()
            ));
            let utf16 = bytes.starts_with(&[0xff, 0xfe]) || bytes.starts_with(&[0xfe, 0xff]);
            Err(failure
                .at(Place {
                    file: name.to_owned(),
                    line: position.line - 1 + first_line,
                    column: position.column,
                    ..Place::default()
                })
                .help(if utf16 {
                    "the file is UTF-16: convert it with `iconv -f UTF-16 -t UTF-8`"
                } else {
                    "save the file as UTF-8"
                }))
        }
    }
}
