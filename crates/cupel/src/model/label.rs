//! [`ContextKind`] and [`ContextSource`]: open enumerations over strings.

use std::cmp::Ordering;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::str::FromStr;
use std::sync::Arc;

use crate::CupelError;

/// A borrowed text that compares and hashes without regard to ASCII case.
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

/// A text that compares and hashes without regard to ASCII case and keeps its spelling.
#[derive(Clone)]
enum Label {
    Known(&'static str),
    Custom(Arc<str>),
}

impl Label {
    /// `None` if the text is empty or only white space.
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

/// The traits both label types share.
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

/// What an item is: a message, a document, a tool's output, or a kind of your own.
///
/// Kinds compare, order and hash without regard to ASCII case (ENUM-3) and keep
/// the spelling they were given.
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
    /// A conversational message; the default.
    pub const MESSAGE: &str = "Message";
    /// A document or file.
    pub const DOCUMENT: &str = "Document";
    /// What a tool returned.
    pub const TOOL_OUTPUT: &str = "ToolOutput";
    /// A stored memory or fact.
    pub const MEMORY: &str = "Memory";
    /// An instruction at system level.
    pub const SYSTEM_PROMPT: &str = "SystemPrompt";

    /// A kind of any name.
    ///
    /// # Errors
    ///
    /// [`CupelError::EmptyKind`] if the name is empty or only white space.
    pub fn new(value: impl Into<String>) -> Result<Self, CupelError> {
        Label::new(value.into())
            .map(Self)
            .ok_or(CupelError::EmptyKind)
    }

    /// Creates a kind from a name in the source code, without an allocation.
    ///
    /// # Panics
    ///
    /// If the name is empty or only white space. Use [`new`](Self::new) for names that are input.
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

    /// [`MESSAGE`](Self::MESSAGE).
    #[must_use]
    pub fn message() -> Self {
        Self(Label::Known(Self::MESSAGE))
    }

    /// [`SYSTEM_PROMPT`](Self::SYSTEM_PROMPT).
    #[must_use]
    pub fn system_prompt() -> Self {
        Self(Label::Known(Self::SYSTEM_PROMPT))
    }

    /// [`DOCUMENT`](Self::DOCUMENT).
    #[must_use]
    pub fn document() -> Self {
        Self(Label::Known(Self::DOCUMENT))
    }

    /// [`TOOL_OUTPUT`](Self::TOOL_OUTPUT).
    #[must_use]
    pub fn tool_output() -> Self {
        Self(Label::Known(Self::TOOL_OUTPUT))
    }

    /// [`MEMORY`](Self::MEMORY).
    #[must_use]
    pub fn memory() -> Self {
        Self(Label::Known(Self::MEMORY))
    }

    /// The name as it was given.
    pub fn as_str(&self) -> &str {
        self.0.as_str()
    }
}

label_traits!(ContextKind, Self::MESSAGE);

/// A kind of the specification, as a number.
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
    /// Which of the specification's kinds this is, whatever its spelling.
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

/// The text that is not a [`ContextKind`]: empty or only white space.
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
    /// The offending text.
    pub fn input(&self) -> &str {
        &self.0
    }
}

/// Where an item came from: a chat, a tool, retrieval, or a source of your own.
///
/// Sources compare, order and hash without regard to ASCII case (ENUM-9) and keep
/// the spelling they were given.
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
    /// A user's chat; the default.
    pub const CHAT: &str = "Chat";
    /// A tool or function call.
    pub const TOOL: &str = "Tool";
    /// Retrieval.
    pub const RAG: &str = "Rag";

    /// A source of any name.
    ///
    /// # Errors
    ///
    /// [`CupelError::EmptySource`] if the name is empty or only white space.
    pub fn new(value: impl Into<String>) -> Result<Self, CupelError> {
        Label::new(value.into())
            .map(Self)
            .ok_or(CupelError::EmptySource)
    }

    /// Creates a source from a name in the source code, without an allocation.
    ///
    /// # Panics
    ///
    /// If the name is empty or only white space. Use [`new`](Self::new) for names that are input.
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

    /// [`CHAT`](Self::CHAT).
    #[must_use]
    pub fn chat() -> Self {
        Self(Label::Known(Self::CHAT))
    }

    /// [`TOOL`](Self::TOOL).
    #[must_use]
    pub fn tool() -> Self {
        Self(Label::Known(Self::TOOL))
    }

    /// [`RAG`](Self::RAG).
    #[must_use]
    pub fn rag() -> Self {
        Self(Label::Known(Self::RAG))
    }

    /// The name as it was given.
    pub fn as_str(&self) -> &str {
        self.0.as_str()
    }
}

label_traits!(ContextSource, Self::CHAT);
