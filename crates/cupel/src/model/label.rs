//! [`ContextKind`] and [`ContextSource`]: open enumerations over strings.

use std::cmp::Ordering;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::str::FromStr;
use std::sync::Arc;

use crate::CupelError;

/// A borrowed string that compares and hashes ignoring ASCII case.
#[derive(Clone, Copy)]
pub(crate) struct Folded<'a>(pub(crate) &'a str);

impl PartialEq for Folded<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.0.eq_ignore_ascii_case(other.0)
    }
}

impl Eq for Folded<'_> {}

impl Hash for Folded<'_> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        for byte in self.0.bytes() {
            state.write_u8(byte.to_ascii_lowercase());
        }
        state.write_u8(0xff);
    }
}

/// A string that compares and hashes ignoring ASCII case and keeps its spelling.
#[derive(Clone)]
enum Label {
    Known(&'static str),
    Custom(Arc<str>),
}

impl Label {
    /// Returns `None` if the text is empty or whitespace.
    fn new(text: String) -> Option<Self> {
        (!text.trim().is_empty()).then(|| Self::Custom(text.into()))
    }

    #[track_caller]
    fn from_static(text: &'static str) -> Self {
        assert!(!text.trim().is_empty(), "a name must not be blank");
        Self::Known(text)
    }

    fn as_str(&self) -> &str {
        match self {
            Self::Known(text) => text,
            Self::Custom(text) => text,
        }
    }
}

impl PartialEq for Label {
    fn eq(&self, other: &Self) -> bool {
        Folded(self.as_str()) == Folded(other.as_str())
    }
}

impl Eq for Label {}

impl Hash for Label {
    fn hash<H: Hasher>(&self, state: &mut H) {
        Folded(self.as_str()).hash(state);
    }
}

impl PartialOrd for Label {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Label {
    fn cmp(&self, other: &Self) -> Ordering {
        let folded = |byte: u8| byte.to_ascii_lowercase();
        let (left, right) = (self.as_str().bytes(), other.as_str().bytes());
        left.map(folded).cmp(right.map(folded))
    }
}

impl fmt::Debug for Label {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.as_str().fmt(f)
    }
}

/// Implements the traits that both label types share.
macro_rules! label_traits {
    ($type:ident, $default:expr) => {
        impl Default for $type {
            fn default() -> Self {
                Self(Label::Known($default))
            }
        }

        impl fmt::Display for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.pad(self.as_str())
            }
        }

        impl AsRef<str> for $type {
            fn as_ref(&self) -> &str {
                self.as_str()
            }
        }

        impl FromStr for $type {
            type Err = CupelError;

            fn from_str(text: &str) -> Result<Self, CupelError> {
                Self::new(text)
            }
        }

        #[cfg(feature = "serde")]
        impl serde::Serialize for $type {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(self.as_str())
            }
        }

        #[cfg(feature = "serde")]
        impl<'de> serde::Deserialize<'de> for $type {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                Self::new(String::deserialize(deserializer)?).map_err(serde::de::Error::custom)
            }
        }
    };
}

/// The kind of an item: a message, a document, tool output, or a custom kind.
///
/// Kinds compare, order and hash ignoring ASCII case (ENUM-3) and keep their spelling.
///
/// ```
/// use cupel::ContextKind;
///
/// let kind = ContextKind::new("toolOUTPUT")?;
/// assert_eq!(kind, ContextKind::tool_output());
/// assert_eq!(kind.as_str(), "toolOUTPUT");
/// assert!(ContextKind::new("  ").is_err());
/// # Ok::<(), cupel::CupelError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ContextKind(Label);

impl ContextKind {
    /// A chat message. This is the default.
    pub const MESSAGE: &str = "Message";
    /// A document or file.
    pub const DOCUMENT: &str = "Document";
    /// The output of a tool.
    pub const TOOL_OUTPUT: &str = "ToolOutput";
    /// A stored memory or fact.
    pub const MEMORY: &str = "Memory";
    /// A system prompt.
    pub const SYSTEM_PROMPT: &str = "SystemPrompt";

    /// Creates a kind with any name.
    ///
    /// # Errors
    ///
    /// [`CupelError::EmptyKind`] if the name is empty or whitespace.
    pub fn new(value: impl Into<String>) -> Result<Self, CupelError> {
        Label::new(value.into())
            .map(Self)
            .ok_or(CupelError::EmptyKind)
    }

    /// Creates a kind from a name in the source code, without an allocation.
    ///
    /// # Panics
    ///
    /// Panics if the name is empty or whitespace. Use [`new`](Self::new) for names that are input.
    ///
    /// ```
    /// use cupel::ContextKind;
    ///
    /// let ticket = ContextKind::from_static("Ticket");
    /// assert_eq!(format!("[{ticket:<8}]"), "[Ticket  ]");
    /// ```
    #[must_use]
    #[track_caller]
    pub fn from_static(name: &'static str) -> Self {
        Self(Label::from_static(name))
    }

    /// Returns the [`MESSAGE`](Self::MESSAGE) kind.
    #[must_use]
    pub fn message() -> Self {
        Self(Label::Known(Self::MESSAGE))
    }

    /// Returns the [`SYSTEM_PROMPT`](Self::SYSTEM_PROMPT) kind.
    #[must_use]
    pub fn system_prompt() -> Self {
        Self(Label::Known(Self::SYSTEM_PROMPT))
    }

    /// Returns the [`DOCUMENT`](Self::DOCUMENT) kind.
    #[must_use]
    pub fn document() -> Self {
        Self(Label::Known(Self::DOCUMENT))
    }

    /// Returns the [`TOOL_OUTPUT`](Self::TOOL_OUTPUT) kind.
    #[must_use]
    pub fn tool_output() -> Self {
        Self(Label::Known(Self::TOOL_OUTPUT))
    }

    /// Returns the [`MEMORY`](Self::MEMORY) kind.
    #[must_use]
    pub fn memory() -> Self {
        Self(Label::Known(Self::MEMORY))
    }

    /// Returns the name with its original spelling.
    pub fn as_str(&self) -> &str {
        self.0.as_str()
    }
}

label_traits!(ContextKind, Self::MESSAGE);

/// A kind that the specification defines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum KnownKind {
    Message,
    Document,
    ToolOutput,
    Memory,
    SystemPrompt,
}

impl KnownKind {
    pub(crate) const ALL: [Self; 5] = [
        Self::Message,
        Self::Document,
        Self::ToolOutput,
        Self::Memory,
        Self::SystemPrompt,
    ];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Message => ContextKind::MESSAGE,
            Self::Document => ContextKind::DOCUMENT,
            Self::ToolOutput => ContextKind::TOOL_OUTPUT,
            Self::Memory => ContextKind::MEMORY,
            Self::SystemPrompt => ContextKind::SYSTEM_PROMPT,
        }
    }
}

impl ContextKind {
    /// Returns the kind of the specification that this is, ignoring ASCII case.
    pub(crate) fn known(&self) -> Option<KnownKind> {
        let mut kinds = KnownKind::ALL.into_iter();
        kinds.find(|kind| Folded(kind.name()) == Folded(self.as_str()))
    }
}

impl TryFrom<&str> for ContextKind {
    type Error = ParseContextKindError;

    fn try_from(value: &str) -> Result<Self, Self::Error> {
        Self::new(value).map_err(|_| ParseContextKindError(value.to_owned()))
    }
}

/// The error of parsing a [`ContextKind`] from text that is empty or whitespace.
///
/// ```
/// use cupel::ContextKind;
///
/// let error = ContextKind::try_from(" ").unwrap_err();
/// assert_eq!(error.to_string(), r#"invalid context kind: " ""#);
/// assert_eq!(error.input(), " ");
/// ```
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("invalid context kind: {0:?}")]
pub struct ParseContextKindError(String);

impl ParseContextKindError {
    /// Returns the text that could not be parsed.
    pub fn input(&self) -> &str {
        &self.0
    }
}

/// The source of an item: a chat, a tool, retrieval, or a custom source.
///
/// Sources compare, order and hash ignoring ASCII case (ENUM-9) and keep their spelling.
///
/// ```
/// use cupel::ContextSource;
///
/// assert_eq!(ContextSource::new("RAG")?, ContextSource::rag());
/// assert_eq!(ContextSource::default(), ContextSource::chat());
/// # Ok::<(), cupel::CupelError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ContextSource(Label);

impl ContextSource {
    /// A chat. This is the default.
    pub const CHAT: &str = "Chat";
    /// A tool or function call.
    pub const TOOL: &str = "Tool";
    /// Retrieval-augmented generation.
    pub const RAG: &str = "Rag";

    /// Creates a source with any name.
    ///
    /// # Errors
    ///
    /// [`CupelError::EmptySource`] if the name is empty or whitespace.
    pub fn new(value: impl Into<String>) -> Result<Self, CupelError> {
        Label::new(value.into())
            .map(Self)
            .ok_or(CupelError::EmptySource)
    }

    /// Creates a source from a name in the source code, without an allocation.
    ///
    /// # Panics
    ///
    /// Panics if the name is empty or whitespace. Use [`new`](Self::new) for names that are input.
    ///
    /// ```
    /// use cupel::ContextSource;
    ///
    /// assert_eq!(ContextSource::from_static("Mail").as_str(), "Mail");
    /// ```
    #[must_use]
    #[track_caller]
    pub fn from_static(name: &'static str) -> Self {
        Self(Label::from_static(name))
    }

    /// Returns the [`CHAT`](Self::CHAT) source.
    #[must_use]
    pub fn chat() -> Self {
        Self(Label::Known(Self::CHAT))
    }

    /// Returns the [`TOOL`](Self::TOOL) source.
    #[must_use]
    pub fn tool() -> Self {
        Self(Label::Known(Self::TOOL))
    }

    /// Returns the [`RAG`](Self::RAG) source.
    #[must_use]
    pub fn rag() -> Self {
        Self(Label::Known(Self::RAG))
    }

    /// Returns the name with its original spelling.
    pub fn as_str(&self) -> &str {
        self.0.as_str()
    }
}

label_traits!(ContextSource, Self::CHAT);
