//! [`Source`]: a text with a name, and places in it.

use cupel::config::{ConfigError, Document, Format, PolicyConfig, Position};
use cupel_chat::{Chat, Shape};

use crate::error::{Error, Fault, Place, Unexpected};

/// A text and where it is from.
#[derive(Debug, Clone)]
pub struct Source {
    /// The name in errors and answers, such as that of a file. Its extension tells JSON, TOML and YAML apart.
    pub name: String,
    /// The text, without a byte order mark.
    pub text: String,
    /// The line of the file, from 1, if the text is one line of it.
    pub line: Option<usize>,
    /// Whether the bytes start with a byte order mark.
    pub had_byte_order_mark: bool,
}

impl Source {
    /// Creates a source from a text.
    pub fn new(name: impl Into<String>, text: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            text: text.into(),
            line: None,
            had_byte_order_mark: false,
        }
    }

    /// Decodes the bytes of a file.
    ///
    /// # Errors
    ///
    /// [`Fault::NotUtf8`] and [`Fault::EmptyText`].
    pub fn from_bytes(name: impl Into<String>, bytes: Vec<u8>) -> Result<Self, Error> {
        let mut source = Self::new(name, "");
        source.had_byte_order_mark = bytes.starts_with(BYTE_ORDER_MARK);
        source.text = decode(&source.name, 1, bytes)?;
        if source.text.trim().is_empty() {
            let place = Place {
                file: source.name,
                ..Place::default()
            };
            return Err(Error::new(Fault::EmptyText { is_line: false }).at(place));
        }
        Ok(source)
    }

    /// Decodes one line of a file; lines count from 1.
    ///
    /// # Errors
    ///
    /// [`Fault::NotUtf8`] and [`Fault::EmptyText`].
    pub fn line(name: impl Into<String>, line: usize, bytes: Vec<u8>) -> Result<Self, Error> {
        let name = name.into();
        let text = decode(&name, line, bytes)?;
        if text.trim().is_empty() {
            return Err(Fault::EmptyText { is_line: true }.into());
        }
        Ok(Self {
            name,
            text,
            line: Some(line),
            had_byte_order_mark: false,
        })
    }

    /// Reads the text as a policy document.
    ///
    /// # Errors
    ///
    /// [`Fault::NotAPolicy`] for a chat or items, else [`Fault::Document`].
    pub fn policy(&self) -> Result<PolicyConfig, Error> {
        Document::parse(&self.text, self.format())
            .and_then(|document| document.policy_config())
            .map_err(|error| self.not_a_policy().unwrap_or_else(|| self.fault(error)))
    }

    /// Returns every fault of the text as a policy document.
    pub fn policy_faults(&self) -> Vec<Error> {
        let faults = match Document::parse(&self.text, self.format()) {
            Ok(document) => document.policy_faults(),
            Err(error) => vec![error],
        };
        if let (false, Some(error)) = (faults.is_empty(), self.not_a_policy()) {
            return vec![error];
        }
        faults.into_iter().map(|fault| self.fault(fault)).collect()
    }

    /// Returns the error of a chat or a list of items in the place of a policy.
    fn not_a_policy(&self) -> Option<Error> {
        let chat = Chat::parse(&self.text, None).ok();
        let chat = chat.filter(|chat| !chat.is_empty())?;
        let got = match chat.shape() {
            Shape::Items => Unexpected::Items,
            _ => Unexpected::Chat,
        };
        Some(Error::new(Fault::NotAPolicy(got)).at(self.whole()))
    }

    /// Returns the format by the extension of the name, else by the text.
    pub fn format(&self) -> Format {
        Format::of_path(&self.name).unwrap_or_else(|| Format::of_text(&self.text))
    }

    /// Returns a fault of the text with its place.
    pub fn fault(&self, error: ConfigError) -> Error {
        let place = self.place_of(&error);
        Error::new(Fault::Document(error)).at(place)
    }

    pub(crate) fn place_of(&self, error: &ConfigError) -> Place {
        let path = error.path();
        match error.position() {
            Some(position) => self.place(position.line, position.column, path),
            None => Place {
                file: self.name.clone(),
                path,
                ..Place::default()
            },
        }
    }

    /// Returns the place of the text as a whole.
    pub fn whole(&self) -> Place {
        Place {
            file: self.name.clone(),
            line: self.line.unwrap_or(0),
            column: 1,
            ..Place::default()
        }
    }

    /// Returns the place of the whole file, even if the text is one line of it.
    pub(crate) fn whole_file(&self) -> Place {
        Place {
            file: self.name.clone(),
            ..Place::default()
        }
    }

    /// Returns a place in the text; line and column count from 1.
    pub fn place(&self, line: usize, column: usize, path: String) -> Place {
        Place {
            file: self.name.clone(),
            line: line + self.line.unwrap_or(1) - 1,
            column,
            path,
            source: self.text.lines().nth(line - 1).map(str::to_owned),
        }
    }
}

const BYTE_ORDER_MARK: &[u8] = "\u{feff}".as_bytes();

/// Decodes UTF-8 with or without a byte order mark. The text starts at `first_line` of the file.
fn decode(name: &str, first_line: usize, bytes: Vec<u8>) -> Result<String, Error> {
    let error = match String::from_utf8(bytes) {
        Ok(text) => {
            return Ok(match text.strip_prefix('\u{feff}') {
                Some(rest) => rest.to_owned(),
                None => text,
            });
        }
        Err(error) => error,
    };
    let valid = error.utf8_error().valid_up_to();
    let bytes = error.into_bytes();
    let before = String::from_utf8_lossy(&bytes[..valid]);
    let position = Position::of(&before, valid..valid);
    let fault = Fault::NotUtf8 {
        byte: bytes.get(valid).copied().unwrap_or_default(),
        is_utf16: bytes.starts_with(&[0xff, 0xfe]) || bytes.starts_with(&[0xfe, 0xff]),
    };
    Err(Error::new(fault).at(Place {
        file: name.to_owned(),
        line: position.line - 1 + first_line,
        column: position.column,
        ..Place::default()
    }))
}
