//! [`ContextItem`] and its builder.

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::sync::Arc;

use chrono::{DateTime, Utc};

use super::marks::key;
use super::tag::Tags;
use super::view::finish_views;
use super::{ContextKind, ContextSource, ContextView, KnownKind, Marks, number};
use crate::CupelError;
use crate::fast::hash::hash;
use crate::fast::tag_key::TagKey;

/// A candidate for the context window: a message, a document, tool output, a memory.
///
/// An item is an immutable, reference-counted handle: a clone shares the content, and a run never copies
/// it. Two items are equal if all their fields are equal; [`is_same`](Self::is_same) compares handles.
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
    /// The fields that every run reads, so that a pass over a list of items does not follow the handles.
    inline: Inline,
    fields: Arc<Fields>,
}

#[derive(Clone, Copy)]
struct Inline {
    tokens: i64,
    content_hash: u64,
    /// Encoded as in [`number`], like `time`.
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
    /// By level, largest first.
    views: Vec<ContextView>,
    /// Boxed, because most items have none.
    marks: Option<Box<Marks>>,
}

impl ContextItem {
    /// Creates a builder from the content and its token count.
    pub fn builder(content: impl Into<String>, tokens: i64) -> ContextItemBuilder {
        ContextItemBuilder::new(content, tokens)
    }

    fn new(fields: Fields) -> Self {
        Self {
            inline: Inline {
                tokens: fields.tokens,
                content_hash: hash(&fields.content),
                priority: number::inline(fields.priority),
                time: number::inline_time(fields.timestamp),
                kind: fields.kind.known(),
                pinned: fields.pinned,
            },
            fields: Arc::new(fields),
        }
    }

    /// Returns the item with another content, which must not be empty, for itself and for its views.
    pub(crate) fn with_content(&self, content: &str) -> Self {
        let mut fields = (*self.fields).clone();
        content.clone_into(&mut fields.content);
        for view in &mut fields.views {
            view.set_content(content);
        }
        Self::new(fields)
    }

    /// Creates a builder with all fields of this item.
    pub fn to_builder(&self) -> ContextItemBuilder {
        ContextItemBuilder((*self.fields).clone())
    }

    /// Returns the content.
    pub fn content(&self) -> &str {
        &self.fields.content
    }

    /// Returns the token count as the caller gave it. The pipeline does not count tokens.
    pub fn tokens(&self) -> i64 {
        self.inline.tokens
    }

    /// Returns the kind.
    pub fn kind(&self) -> &ContextKind {
        &self.fields.kind
    }

    /// Returns the source.
    pub fn source(&self) -> &ContextSource {
        &self.fields.source
    }

    /// Returns the priority. Higher is more important.
    pub fn priority(&self) -> Option<i64> {
        match self.inline.priority {
            number::ABSENT => None,
            number::OUT_OF_LINE => self.fields.priority,
            priority => Some(priority),
        }
    }

    /// Returns the tags, in order and with duplicates.
    pub fn tags(&self) -> &[String] {
        self.fields.tags.texts()
    }

    /// Returns the caller's own data.
    ///
    /// A run reads these entries, and the key that a [`MetadataKeyScorer`](crate::MetadataKeyScorer) is given.
    /// A program states the first five as [`Marks`] instead:
    ///
    /// | key | read by |
    /// |---|---|
    /// | `cupel:call` | `NearDuplicateSlice`, `LadderSlice`: results of the same call |
    /// | `cupel:group` | `GroupSlice`, `LadderSlice`, `NearDuplicateSlice`: items that stay together |
    /// | `cupel:keep`, `cupel:mandatory`, `cupel:late` | `LadderSlice`, `NearDuplicateSlice`: items that stay, or stay longer |
    /// | `cupel:shorten_first` | `LadderSlice`: items that are shortened before others |
    /// | `cupel:level` | `LadderSlice`: the level that an item was shortened to |
    /// | `cupel:query` | the relevance scorers: the item that is the query |
    /// | `cupel:session` | `NeighborScorer`, `ConversationScorer`: items that may be neighbors |
    /// | `cupel:speaker` | `ConversationScorer`: who says it |
    /// | `cupel:trust` | `MetadataTrustScorer`: a score |
    /// | `cupel:vector` | `EmbeddingScorer`, `DiversitySlice`: an embedding |
    pub fn metadata(&self) -> &HashMap<String, String> {
        &self.fields.metadata
    }

    /// Returns the time at which the item was created.
    pub fn timestamp(&self) -> Option<DateTime<Utc>> {
        match self.inline.time {
            number::ABSENT => None,
            number::OUT_OF_LINE => self.fields.timestamp,
            time => Some(DateTime::from_timestamp_nanos(time)),
        }
    }

    /// Returns the caller's estimate of future relevance, by convention in `[0, 1]`.
    pub fn future_relevance_hint(&self) -> Option<f64> {
        self.fields.future_relevance_hint
    }

    /// Returns whether the item skips scoring and slicing and is always included.
    pub fn pinned(&self) -> bool {
        self.inline.pinned
    }

    /// Returns the token count before the content was shortened, by the caller or by
    /// [`as_view`](Self::as_view).
    pub fn original_tokens(&self) -> Option<i64> {
        self.fields.original_tokens
    }

    /// Returns the shorter forms that the item offers, by level, largest first.
    pub fn views(&self) -> &[ContextView] {
        &self.fields.views
    }

    /// Returns the item with the content and the tokens of the view at `index` of
    /// [`views`](Self::views). Its [`original_tokens`](Self::original_tokens) are the tokens of this
    /// item, and it has no views. Returns `None` if there is no such view.
    pub fn as_view(&self, index: usize) -> Option<Self> {
        let view = self.views().get(index)?;
        let full = &*self.fields;
        // Field by field: a clone of all fields would copy the long content.
        Some(Self::new(Fields {
            content: view.content().to_owned(),
            tokens: view.tokens(),
            kind: full.kind.clone(),
            source: full.source.clone(),
            priority: full.priority,
            tags: full.tags.clone(),
            metadata: full.metadata.clone(),
            timestamp: full.timestamp,
            future_relevance_hint: full.future_relevance_hint,
            pinned: full.pinned,
            original_tokens: Some(full.tokens),
            views: Vec::new(),
            marks: full.marks.clone(),
        }))
    }

    /// Returns what the caller of a run told its strategies about the item, if anything.
    pub fn marks(&self) -> Option<&Marks> {
        self.fields.marks.as_deref()
    }

    /// Returns whether both handles point to the same item, as [`Arc::ptr_eq`].
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

    /// Returns whether a run scores this item: it is not pinned and its token count is not negative.
    pub(crate) fn is_scored(&self) -> bool {
        !self.inline.pinned && self.inline.tokens >= 0
    }

    /// Returns an item that represents a group: this one with other tokens, another kind, and without
    /// views and group.
    pub(crate) fn representative(&self, tokens: i64, kind: &ContextKind) -> Self {
        let mut fields = (*self.fields).clone();
        fields.tokens = tokens;
        fields.kind = kind.clone();
        fields.metadata.remove(key::GROUP);
        if let Some(marks) = &mut fields.marks {
            marks.group = None;
        }
        fields.views.clear();
        Self {
            inline: Inline {
                tokens,
                kind: kind.known(),
                ..self.inline
            },
            fields: Arc::new(fields),
        }
    }

    /// Returns the hash of the content, keyed per process.
    pub(crate) fn content_hash(&self) -> u64 {
        self.inline.content_hash
    }

    /// Returns the same item with another content hash.
    #[cfg(test)]
    pub(crate) fn with_content_hash(mut self, hash: u64) -> Self {
        self.inline.content_hash = hash;
        self
    }

    /// Returns the first word of the first tag's key, for a prefetch.
    pub(crate) fn first_tag_word(&self) -> u64 {
        self.tag_keys().first().map_or(0, |key| key.folded()[0])
    }

    /// Returns one key per tag, in order.
    pub(crate) fn tag_keys(&self) -> &[TagKey] {
        self.fields.tags.keys()
    }

    /// Returns the priority, encoded as in [`number`].
    pub(crate) fn priority_number(&self) -> i64 {
        self.inline.priority
    }

    /// Returns the timestamp, encoded as in [`number`].
    pub(crate) fn time_number(&self) -> i64 {
        self.inline.time
    }

    /// Returns the timestamp in seconds since 1970 and nanoseconds, at least 10^9 in a leap second.
    pub(crate) fn seconds_and_nanos(&self) -> Option<(i64, u32)> {
        match self.inline.time {
            number::ABSENT => None,
            number::OUT_OF_LINE => {
                let time = self.fields.timestamp?;
                Some((time.timestamp(), time.timestamp_subsec_nanos()))
            }
            time => Some(number::seconds_and_nanos(time)),
        }
    }

    /// Returns the kind if the specification defines it.
    pub(crate) fn known_kind(&self) -> Option<KnownKind> {
        self.inline.kind
    }

    /// Returns the address that all handles of this item share and no other live item has.
    pub(crate) fn identity(&self) -> usize {
        Arc::as_ptr(&self.fields).addr()
    }
}

/// Compares all fields. The hash is compared first, because it is inline.
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
        let mut debug = f.debug_struct(name);
        debug
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
            .field("original_tokens", &self.original_tokens);
        if !self.views.is_empty() {
            debug.field("views", &self.views);
        }
        if let Some(marks) = &self.marks {
            debug.field("marks", marks);
        }
        debug.finish()
    }
}

/// Builds a [`ContextItem`]. Settings have the specification's defaults.
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
    /// Creates a builder from the content and its token count.
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
            views: Vec::new(),
            marks: None,
        })
    }

    pub(super) fn marks_mut(&mut self) -> &mut Marks {
        self.0.marks.get_or_insert_default()
    }

    /// Sets the kind. Defaults to `Message`.
    pub fn kind(mut self, kind: ContextKind) -> Self {
        self.0.kind = kind;
        self
    }

    /// Sets the source. Defaults to `Chat`.
    pub fn source(mut self, source: ContextSource) -> Self {
        self.0.source = source;
        self
    }

    /// Sets the priority. Higher is more important.
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

    /// Sets the time at which the item was created.
    pub fn timestamp(mut self, timestamp: DateTime<Utc>) -> Self {
        self.0.timestamp = Some(timestamp);
        self
    }

    /// Sets the caller's estimate of future relevance. Any value is valid.
    pub fn future_relevance_hint(mut self, hint: f64) -> Self {
        self.0.future_relevance_hint = Some(hint);
        self
    }

    /// Sets whether the item is always included. Defaults to `false`.
    pub fn pinned(mut self, pinned: bool) -> Self {
        self.0.pinned = pinned;
        self
    }

    /// Sets the token count before the caller shortened the content.
    pub fn original_tokens(mut self, tokens: i64) -> Self {
        self.0.original_tokens = Some(tokens);
        self
    }

    /// Adds a view: a shorter form of the item.
    pub fn view(mut self, view: ContextView) -> Self {
        self.0.views.push(view);
        self
    }

    /// Replaces the views.
    pub fn views(mut self, views: Vec<ContextView>) -> Self {
        self.0.views = views;
        self
    }

    /// Builds the item.
    ///
    /// # Errors
    ///
    /// Returns [`CupelError::EmptyContent`] if the content is empty. Whitespace is valid content. Returns
    /// [`CupelError::InvalidView`] if a view has no content, has negative tokens or not fewer than the
    /// item, has a value outside `[0, 1]`, or has the level of another view.
    pub fn build(mut self) -> Result<ContextItem, CupelError> {
        if self.0.content.is_empty() {
            return Err(CupelError::EmptyContent);
        }
        finish_views(&mut self.0.views, self.0.tokens)?;
        Ok(ContextItem::new(self.0))
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

    #[test]
    fn the_hash_is_that_of_the_content() {
        let hash = |content: &str, tokens| {
            let item = ContextItem::builder(content, tokens).build().unwrap();
            item.content_hash()
        };
        assert_eq!(hash("a", 1), hash("a", 2));
        assert_ne!(hash("a", 1), hash("b", 1));
    }
}
