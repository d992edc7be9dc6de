//! [`ContextItem`] and its builder.

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::sync::Arc;

use chrono::{DateTime, Utc};

use super::tag::Tags;
use super::{ContextKind, ContextSource, KnownKind, number};
use crate::CupelError;
use crate::fast::hash::hash;
use crate::fast::tag_key::TagKey;

/// One candidate for the context window: a message, a document, a tool's output, a memory.
///
/// An item is an immutable handle: cloning it costs a counter, and a run never copies its text. Two items are equal if all their fields are; whether two
/// handles are the same item is what [`is_same`](Self::is_same) tells.
///
/// ```
/// use cupel::{ContextItem, ContextKind};
///
/// let item = ContextItem::builder("The build is green.", 6)
///     .kind(ContextKind::tool_output())
///     .tag("ci")
///     .build()?;
/// assert_eq!(item.tokens(), 6);
/// assert_eq!(item.tags(), ["ci"]);
/// assert_eq!(item.source().as_str(), "Chat");
/// # Ok::<(), cupel::CupelError>(())
/// ```
#[derive(Clone)]
pub struct ContextItem {
    /// What every run looks at, beside the handle: a pass over a list of items stays in that list.
    quick: Quick,
    fields: Arc<Fields>,
}

#[derive(Clone, Copy)]
struct Quick {
    tokens: i64,
    content_hash: u64,
    /// See [`number`], as the time.
    priority: i64,
    time: i64,
    kind: Option<KnownKind>,
    pinned: bool,
}

#[derive(Clone, PartialEq)]
struct Fields {
    content: String,
    tokens: i64,
    kind: ContextKind,
    source: ContextSource,
    priority: Option<i64>,
    tags: Tags,
    metadata: HashMap<String, String>,
    timestamp: Option<DateTime<Utc>>,
    future_relevance_hint: Option<f64>,
    pinned: bool,
    original_tokens: Option<i64>,
}

impl ContextItem {
    /// Starts an item from its text and token count; see [`ContextItemBuilder`].
    pub fn builder(content: impl Into<String>, tokens: i64) -> ContextItemBuilder {
        ContextItemBuilder::new(content, tokens)
    }

    /// Returns the item with another content, which must not be empty.
    pub(crate) fn with_content(&self, content: &str) -> Self {
        let fields = Fields {
            content: content.to_owned(),
            ..(*self.fields).clone()
        };
        let content_hash = hash(content);
        Self {
            quick: Quick {
                content_hash,
                ..self.quick
            },
            fields: Arc::new(fields),
        }
    }

    /// A builder that holds all fields of this item.
    pub fn to_builder(&self) -> ContextItemBuilder {
        ContextItemBuilder((*self.fields).clone())
    }

    /// The text.
    pub fn content(&self) -> &str {
        &self.fields.content
    }

    /// The token count as the caller gave it; the pipeline never counts tokens itself.
    pub fn tokens(&self) -> i64 {
        self.quick.tokens
    }

    /// What the item is.
    pub fn kind(&self) -> &ContextKind {
        &self.fields.kind
    }

    /// Where it came from.
    pub fn source(&self) -> &ContextSource {
        &self.fields.source
    }

    /// The caller's priority; higher is more important.
    pub fn priority(&self) -> Option<i64> {
        match self.quick.priority {
            number::ABSENT => None,
            number::ELSEWHERE => self.fields.priority,
            priority => Some(priority),
        }
    }

    /// The tags, in order and with repeats.
    pub fn tags(&self) -> &[String] {
        self.fields.tags.texts()
    }

    /// Returns the caller's own data.
    ///
    /// Three strategies read an entry: [`GroupSlice`](crate::GroupSlice) reads `cupel:group`,
    /// [`MetadataTrustScorer`](crate::MetadataTrustScorer) reads `cupel:trust`, and
    /// [`MetadataKeyScorer`](crate::MetadataKeyScorer) reads the key it is given. Nothing else in a
    /// run reads metadata.
    pub fn metadata(&self) -> &HashMap<String, String> {
        &self.fields.metadata
    }

    /// When the item was made or seen.
    pub fn timestamp(&self) -> Option<DateTime<Utc>> {
        match self.quick.time {
            number::ABSENT => None,
            number::ELSEWHERE => self.fields.timestamp,
            time => Some(DateTime::from_timestamp_nanos(time)),
        }
    }

    /// The caller's guess at future relevance, by convention in `[0, 1]`.
    pub fn future_relevance_hint(&self) -> Option<f64> {
        self.fields.future_relevance_hint
    }

    /// Whether the item bypasses scoring and slicing and is always included.
    pub fn pinned(&self) -> bool {
        self.quick.pinned
    }

    /// The token count before the caller shortened the text.
    pub fn original_tokens(&self) -> Option<i64> {
        self.fields.original_tokens
    }

    /// Whether both handles are one and the same item, not merely equal ones.
    ///
    /// ```
    /// use cupel::ContextItem;
    ///
    /// let item = ContextItem::builder("a", 1).build()?;
    /// let twin = ContextItem::builder("a", 1).build()?;
    /// assert!(item.is_same(&item.clone()));
    /// assert!(!item.is_same(&twin));
    /// assert_eq!(item, twin);
    /// # Ok::<(), cupel::CupelError>(())
    /// ```
    pub fn is_same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.fields, &other.fields)
    }

    /// Whether a run scores this item: it is not pinned and its token count is valid.
    pub(crate) fn is_scored(&self) -> bool {
        !self.quick.pinned && self.quick.tokens >= 0
    }

    /// An item that stands for several: this one with other tokens, another kind, and without the
    /// metadata entry that is `used_up`.
    pub(crate) fn stand_in(&self, tokens: i64, kind: &ContextKind, used_up: &str) -> Self {
        let mut fields = (*self.fields).clone();
        fields.tokens = tokens;
        fields.kind = kind.clone();
        fields.metadata.remove(used_up);
        Self {
            quick: Quick {
                tokens,
                kind: kind.known(),
                ..self.quick
            },
            fields: Arc::new(fields),
        }
    }

    /// Returns the counter that [`clone`](Clone::clone) raises, for a prefetch.
    pub(crate) fn reference_count(&self) -> u64 {
        Arc::strong_count(&self.fields) as u64
    }

    /// Returns the hash of the content in this process.
    pub(crate) fn content_hash(&self) -> u64 {
        self.quick.content_hash
    }

    /// Returns the same item, as if its content had another hash.
    #[cfg(test)]
    pub(crate) fn with_content_hash(mut self, hash: u64) -> Self {
        self.quick.content_hash = hash;
        self
    }

    /// Returns a word of the first tag's key, for a prefetch.
    pub(crate) fn first_tag_word(&self) -> u64 {
        self.tag_keys().first().map_or(0, |key| key.folded()[0])
    }

    /// Returns a key per tag, in their order.
    pub(crate) fn tag_keys(&self) -> &[TagKey] {
        self.fields.tags.keys()
    }

    /// The priority as a [`number`].
    pub(crate) fn priority_number(&self) -> i64 {
        self.quick.priority
    }

    /// The timestamp as a [`number`].
    pub(crate) fn time_number(&self) -> i64 {
        self.quick.time
    }

    /// The timestamp in seconds since 1970 and nanoseconds beyond, of which a leap second has more.
    pub(crate) fn seconds_and_nanos(&self) -> Option<(i64, u32)> {
        match self.quick.time {
            number::ABSENT => None,
            number::ELSEWHERE => {
                let time = self.fields.timestamp?;
                Some((time.timestamp(), time.timestamp_subsec_nanos()))
            }
            time => Some(number::seconds_and_nanos(time)),
        }
    }

    /// The kind, if it is one of the specification's.
    pub(crate) fn known_kind(&self) -> Option<KnownKind> {
        self.quick.kind
    }

    /// What tells this item's handles from those of every other living item.
    pub(crate) fn identity(&self) -> usize {
        Arc::as_ptr(&self.fields).addr()
    }
}

/// Equal if all fields are.
impl PartialEq for ContextItem {
    fn eq(&self, other: &Self) -> bool {
        self.content_hash() == other.content_hash() && self.fields == other.fields
    }
}

impl fmt::Debug for ContextItem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.fields.debug(f, "ContextItem")
    }
}

impl Fields {
    fn debug(&self, f: &mut fmt::Formatter<'_>, name: &str) -> fmt::Result {
        f.debug_struct(name)
            .field("content", &self.content)
            .field("tokens", &self.tokens)
            .field("kind", &self.kind)
            .field("source", &self.source)
            .field("priority", &self.priority)
            .field("tags", &self.tags.texts())
            .field(
                "metadata",
                &self.metadata.iter().collect::<BTreeMap<_, _>>(),
            )
            .field("timestamp", &self.timestamp)
            .field("future_relevance_hint", &self.future_relevance_hint)
            .field("pinned", &self.pinned)
            .field("original_tokens", &self.original_tokens)
            .finish()
    }
}

/// Builds a [`ContextItem`]; every setter has the specification's default.
///
/// ```
/// use cupel::{ContextItemBuilder, ContextKind};
///
/// let item = ContextItemBuilder::new("Be brief.", 3)
///     .kind(ContextKind::system_prompt())
///     .pinned(true)
///     .meta("cupel:trust", "1.0")
///     .build()?;
/// assert!(item.pinned());
/// # Ok::<(), cupel::CupelError>(())
/// ```
#[derive(Clone)]
pub struct ContextItemBuilder(Fields);

impl ContextItemBuilder {
    /// Starts an item from its text and token count.
    pub fn new(content: impl Into<String>, tokens: i64) -> Self {
        Self(Fields {
            content: content.into(),
            tokens,
            kind: ContextKind::default(),
            source: ContextSource::default(),
            priority: None,
            tags: Tags::default(),
            metadata: HashMap::new(),
            timestamp: None,
            future_relevance_hint: None,
            pinned: false,
            original_tokens: None,
        })
    }

    /// Sets what the item is; `Message` unless set.
    pub fn kind(mut self, kind: ContextKind) -> Self {
        self.0.kind = kind;
        self
    }

    /// Sets where it came from; `Chat` unless set.
    pub fn source(mut self, source: ContextSource) -> Self {
        self.0.source = source;
        self
    }

    /// Sets the priority; higher is more important.
    pub fn priority(mut self, priority: i64) -> Self {
        self.0.priority = Some(priority);
        self
    }

    /// Replaces the tags.
    pub fn tags(mut self, tags: Vec<String>) -> Self {
        self.0.tags = tags.into();
        self
    }

    /// Adds one tag.
    pub fn tag(mut self, tag: impl Into<String>) -> Self {
        self.0.tags.push(tag.into());
        self
    }

    /// Replaces the metadata.
    pub fn metadata(mut self, metadata: HashMap<String, String>) -> Self {
        self.0.metadata = metadata;
        self
    }

    /// Sets one metadata entry.
    pub fn meta(mut self, key: impl Into<String>, value: impl Into<String>) -> Self {
        self.0.metadata.insert(key.into(), value.into());
        self
    }

    /// Sets when the item was made or seen.
    pub fn timestamp(mut self, timestamp: DateTime<Utc>) -> Self {
        self.0.timestamp = Some(timestamp);
        self
    }

    /// Sets the caller's guess at future relevance; any value is legal.
    pub fn future_relevance_hint(mut self, hint: f64) -> Self {
        self.0.future_relevance_hint = Some(hint);
        self
    }

    /// Sets whether the item is always included.
    pub fn pinned(mut self, pinned: bool) -> Self {
        self.0.pinned = pinned;
        self
    }

    /// Sets the token count before the caller shortened the text.
    pub fn original_tokens(mut self, tokens: i64) -> Self {
        self.0.original_tokens = Some(tokens);
        self
    }

    /// Finishes the item.
    ///
    /// # Errors
    ///
    /// [`CupelError::EmptyContent`] if the text is empty; white space is content.
    pub fn build(self) -> Result<ContextItem, CupelError> {
        if self.0.content.is_empty() {
            return Err(CupelError::EmptyContent);
        }
        let fields = self.0;
        Ok(ContextItem {
            quick: Quick {
                tokens: fields.tokens,
                content_hash: hash(&fields.content),
                priority: number::held(fields.priority),
                time: number::held_time(fields.timestamp),
                kind: fields.kind.known(),
                pinned: fields.pinned,
            },
            fields: Arc::new(fields),
        })
    }
}

impl fmt::Debug for ContextItemBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.debug(f, "ContextItemBuilder")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_handle_takes_48_bytes() {
        assert_eq!(std::mem::size_of::<ContextItem>(), 48);
    }
}
