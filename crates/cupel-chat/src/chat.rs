//! [`Chat`]: a conversation of any shape.

use chrono::{DateTime, Utc};
use cupel::{ContextItem, ContextKind, ContextSource, GroupSlice, total_tokens};
use serde_json::Value;

use crate::error::{ChatError, Place};
use crate::layout::Layout;
use crate::read;
use crate::shape::{Shape, detect};
use crate::threads::Threads;
use crate::tokens::{TokenCounter, cost};
use crate::turn::{Role, Turn};

/// A conversation, read without loss: whatever is kept of it is written back to the byte.
///
/// ```
/// use cupel_chat::{Chat, Encoding, Role, Shape};
///
/// let text = r#"{"model": "gpt-4o", "messages": [
///   {"role": "system", "content": "Be brief."},
///   {"role": "user", "content": "Hello!", "x-my-id": 12345678901234567890}
/// ]}"#;
/// let chat = Chat::parse(text, None)?;
/// assert_eq!((chat.shape(), chat.len()), (Shape::OpenAi, 2));
/// assert_eq!(chat.message(1).role(), Role::User);
/// assert_eq!(chat.tokens(&Encoding::O200k), 16); // 3 + 1 + 3, 3 + 1 + 2, and 3
/// assert_eq!(chat.write(&[0, 1]), text);
/// # Ok::<(), cupel_chat::ChatError>(())
/// ```
#[derive(Debug, Clone)]
pub struct Chat {
    pub(crate) shape: Shape,
    pub(crate) layout: Layout,
    pub(crate) turns: Vec<Turn>,
    pub(crate) threads: Threads,
    /// The items of [`Shape::Items`], and whether they say how many tokens they have.
    items: Vec<(ContextItem, bool)>,
}

/// One message of a chat.
#[derive(Debug, Clone, Copy)]
pub struct Message<'a> {
    chat: &'a Chat,
    index: usize,
}

impl Chat {
    /// Reads a chat. Without a `shape` it is found out.
    ///
    /// # Errors
    ///
    /// [`ChatError`] with the place and the path of what is wrong; also if the shape is not clear, or
    /// is none that is known.
    pub fn parse(text: &str, shape: Option<Shape>) -> Result<Self, ChatError> {
        let layout = Layout::find(text)?;
        let mut values: Vec<Value> = Vec::with_capacity(layout.len());
        for index in 0..layout.len() {
            let value = serde_json::from_str(layout.json(index));
            values.push(value.map_err(|error| layout.fault(index, "", error.to_string()))?);
        }
        let shape = match shape {
            Some(shape) => shape,
            None => detect(&layout, &values)?,
        };
        let mut turns = Vec::with_capacity(values.len());
        let mut items = Vec::new();
        for (index, value) in values.into_iter().enumerate() {
            let turn = match &value {
                Value::String(text) if layout.is_text => Ok(read::responses::said(text)),
                value => read::turn(shape, value),
            };
            let turn = turn.map_err(|(field, message)| layout.fault(index, &field, message))?;
            turns.push(if shape == Shape::Items {
                let item = item(value, 0).map_err(|message| layout.fault(index, "", message))?;
                let turn = Turn::new(Role::Other, item.0.kind().as_str());
                items.push(item);
                turn
            } else {
                turn
            });
        }
        Ok(Self {
            threads: Threads::new(shape, &turns, continues(&layout)),
            shape,
            layout,
            turns,
            items,
        })
    }

    /// What the messages look like.
    pub fn shape(&self) -> Shape {
        self.shape
    }

    /// The number of messages.
    pub fn len(&self) -> usize {
        self.layout.len()
    }

    /// Whether there are no messages.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The model the request names, if any.
    pub fn model(&self) -> Option<&str> {
        self.layout.field("model").and_then(Value::as_str)
    }

    /// The message at a position.
    ///
    /// # Panics
    ///
    /// If there is none.
    pub fn message(&self, index: usize) -> Message<'_> {
        assert!(index < self.len(), "there are {} messages", self.len());
        Message { chat: self, index }
    }

    /// All messages in order.
    pub fn messages(&self) -> impl Iterator<Item = Message<'_>> {
        (0..self.len()).map(|index| self.message(index))
    }

    /// The messages as candidates, one each, in order: with their kind, their tokens, a timestamp, the
    /// metadata `role` and `index`, and the group they are kept or dropped with.
    ///
    /// What has to be kept is pinned. Timestamps are the messages' own if all have one, else seconds
    /// that count the position, so that [`RecencyScorer`](cupel::RecencyScorer) ranks later messages
    /// higher.
    ///
    /// ```
    /// use cupel_chat::{Chat, Encoding};
    ///
    /// let chat = Chat::parse(r#"[
    ///   {"role": "user", "content": "Weather?"},
    ///   {"role": "assistant", "tool_calls": [{"id": "c1", "function": {"name": "now", "arguments": "{}"}}]},
    ///   {"role": "tool", "tool_call_id": "c1", "content": "12 degrees"}
    /// ]"#, None)?;
    /// let items = chat.items(&Encoding::O200k);
    /// assert_eq!(items[2].content(), "12 degrees");
    /// assert_eq!(items[1].metadata()["cupel:group"], items[2].metadata()["cupel:group"]);
    /// assert!(items[0].pinned() && !items[1].pinned());
    /// # Ok::<(), cupel_chat::ChatError>(())
    /// ```
    pub fn items(&self, counter: &dyn TokenCounter) -> Vec<ContextItem> {
        if self.shape == Shape::Items {
            let counted = |(index, (known, counted)): (usize, &(ContextItem, bool))| {
                let value = || serde_json::from_str(self.layout.json(index)).ok();
                let tokens = || counter.count(known.content());
                let anew = (!counted).then(|| item(value()?, tokens()).ok()).flatten();
                anew.map_or_else(|| known.clone(), |(item, _)| item)
            };
            return self.items.iter().enumerate().map(counted).collect();
        }
        let pinned = self.must_keep().unwrap_or_default();
        let timed = self.turns.iter().all(|turn| turn.time.is_some());
        let mut items = Vec::with_capacity(self.len());
        for (index, turn) in self.turns.iter().enumerate() {
            let tokens = cost::message(self.shape, turn, counter);
            let position = i64::try_from(index).unwrap_or(i64::MAX);
            let time = turn.time.filter(|_| timed);
            let time = time.or_else(|| DateTime::from_timestamp(position, 0));
            let mut item = ContextItem::builder(turn.text(), tokens)
                .kind(kind(turn))
                .meta("role", &turn.label)
                .meta("index", index.to_string())
                .timestamp(time.unwrap_or(DateTime::<Utc>::MIN_UTC))
                .pinned(pinned.contains(&index));
            if turn.role() == Role::Tool {
                item = item.source(source(ContextSource::TOOL));
            }
            let group = self.threads.group(index);
            if self.threads.members(group).len() > 1 {
                item = item.meta(GroupSlice::KEY, group.to_string());
            }
            // A message's text is never empty, which is all an item asks for.
            items.extend(item.build());
        }
        items
    }

    /// The tokens of what goes along with any choice of messages: `system`, `instructions`, tool
    /// definitions, and the head of the answer.
    pub fn overhead(&self, counter: &dyn TokenCounter) -> i64 {
        cost::envelope(self.shape, &self.layout, counter)
    }

    /// Everything that takes room in a request: the [`items`](Self::items), and after them, if it costs
    /// tokens, what goes along with any choice of them, as one pinned item of the kind `Request`.
    ///
    /// Counting is most of the work; [`fit_candidates`](Self::fit_candidates) and a
    /// [`policy`](Self::policy) of the chat can be asked about the same candidates many times.
    ///
    /// ```
    /// use cupel_chat::{Chat, Encoding};
    ///
    /// let chat = Chat::parse(r#"{"system": "Be brief.", "messages": [{"role": "user", "content": "Hello!"}]}"#, None)?;
    /// let candidates = chat.candidates(&Encoding::O200k);
    /// assert_eq!(candidates[0].content(), "Hello!");
    /// assert_eq!(candidates[1].kind().as_str(), "Request");
    /// assert_eq!(candidates[1].tokens(), chat.overhead(&Encoding::O200k));
    /// # Ok::<(), cupel_chat::ChatError>(())
    /// ```
    pub fn candidates(&self, counter: &dyn TokenCounter) -> Vec<ContextItem> {
        let mut candidates = self.items(counter);
        let overhead = self.overhead(counter);
        if overhead > 0 {
            let around = ContextItem::builder("[around the messages]", overhead).pinned(true);
            let kind = ContextKind::new("Request").unwrap_or_default();
            candidates.extend(around.kind(kind).build());
        }
        candidates
    }

    /// The tokens of the whole request.
    pub fn tokens(&self, counter: &dyn TokenCounter) -> i64 {
        total_tokens(&self.candidates(counter))
    }

    /// The text with these messages and no others, everything around them as it was.
    ///
    /// # Panics
    ///
    /// If a position does not exist or they do not ascend.
    pub fn write(&self, kept: &[usize]) -> String {
        let ascend = kept.windows(2).all(|pair| pair[0] < pair[1]);
        assert!(ascend, "the positions ascend");
        self.layout.write(kept)
    }
}

impl Message<'_> {
    /// Its position in the chat.
    pub fn index(self) -> usize {
        self.index
    }

    /// Who speaks.
    pub fn role(self) -> Role {
        self.chat.turns[self.index].role()
    }

    /// The role, or the type, as it is written.
    pub fn label(&self) -> &str {
        &self.chat.turns[self.index].label
    }

    /// What there is to read: texts, tool calls as `name(arguments)`, `[image]` and the like for the rest.
    pub fn text(self) -> String {
        match self.chat.items.get(self.index) {
            Some((item, _)) => item.content().to_owned(),
            None => self.chat.turns[self.index].text(),
        }
    }

    /// The message as it is written.
    pub fn json(&self) -> &str {
        self.chat.layout.json(self.index)
    }

    /// Where it stands in the text.
    pub fn place(self) -> Place {
        self.chat.layout.place(self.index)
    }

    /// Its path in the document, such as `messages[3]`.
    pub fn path(self) -> String {
        self.chat.layout.path_of(self.index, "")
    }
}

/// Whether the request goes on where another one ended.
fn continues(layout: &Layout) -> bool {
    let is_set = |key: &&str| layout.field(key).is_some_and(|value| !value.is_null());
    ["previous_response_id", "conversation"].iter().any(is_set)
}

/// An item, and whether it says how many tokens it has; if not, it has `tokens`.
fn item(mut value: Value, tokens: i64) -> Result<(ContextItem, bool), String> {
    let counted = value.get("tokens").is_some();
    if let (Value::Object(fields), false) = (&mut value, counted) {
        fields.insert("tokens".to_owned(), tokens.into());
    }
    let item = serde_json::from_value(value).map_err(|error| error.to_string())?;
    Ok((item, counted))
}

fn kind(turn: &Turn) -> ContextKind {
    match turn.role() {
        Role::System => ContextKind::system_prompt(),
        Role::Tool => ContextKind::tool_output(),
        Role::User if !turn.results.is_empty() && !turn.speaks => ContextKind::tool_output(),
        _ => ContextKind::message(),
    }
}

fn source(name: &str) -> ContextSource {
    ContextSource::new(name).unwrap_or_default()
}
