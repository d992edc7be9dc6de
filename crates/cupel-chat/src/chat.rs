//! [`Chat`]: a conversation in any format.

use chrono::{DateTime, Utc};
use cupel::{ContextItem, ContextKind, ContextSource, GroupSlice, total_tokens};
use serde::Serialize;
use serde_json::Value;

use crate::candidates::SessionMemory;
use crate::error::{ChatError, Kind, Place};
use crate::groups::Groups;
use crate::layout::{Layout, Piece};
use crate::message::{ContentPart, ParsedMessage, Role};
use crate::shape::{Shape, annotate, detect, read, type_of};
use crate::tokens::{TokenCounter, cost};
use crate::views::Questions;

/// A conversation. Kept messages are written back byte for byte.
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
    pub(crate) messages: Vec<ParsedMessage>,
    pub(crate) groups: Groups,
    /// The items of [`Shape::Items`], and whether they state their tokens.
    items: Vec<(ContextItem, bool)>,
    pub(crate) questions: Questions,
}

/// One message of a chat.
#[derive(Debug, Clone, Copy)]
pub struct Message<'a> {
    chat: &'a Chat,
    index: usize,
}

/// A tool call; see [`Message::calls`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct ToolCall<'a> {
    /// The id that its result refers to.
    pub id: &'a str,
    /// The name of the tool.
    pub name: &'a str,
    /// The arguments, usually JSON.
    pub arguments: &'a str,
}

impl Chat {
    /// Parses a chat. Detects the format if `shape` is `None`.
    ///
    /// # Errors
    ///
    /// [`ChatError`] with the position and the path of the invalid value; also if the format is ambiguous
    /// or unknown.
    pub fn parse(text: &str, shape: Option<Shape>) -> Result<Self, ChatError> {
        Self::parse_at(text, "", shape)
    }

    /// Parses a chat inside another document. `at` is the JSON pointer
    /// ([RFC 6901](https://www.rfc-editor.org/rfc/rfc6901)) of the request or of its list of messages.
    ///
    /// [`write`](Self::write) and [`Fitted::to_json`](crate::Fitted::to_json) return the whole document
    /// with another list. Some documents need no pointer: lines of OpenAI and Anthropic batches, states
    /// of `LangGraph`, runs of tau-bench and trajectories of SWE-agent.
    ///
    /// # Errors
    ///
    /// As [`parse`](Self::parse); also if there is nothing at the pointer. The error names the
    /// [`pointers`](ChatError::pointers) of lists that were found.
    ///
    /// ```
    /// use cupel_chat::Chat;
    ///
    /// let log = r#"{"id": 7, "request": {"model": "gpt-4o", "messages": [{"role": "user", "content": "Hi"}]}}"#;
    /// let chat = Chat::parse_at(log, "/request", None)?;
    /// assert_eq!((chat.model(), &*chat.message(0).path()), (Some("gpt-4o"), "request.messages[0]"));
    /// let error = Chat::parse(log, None).unwrap_err();
    /// assert_eq!(error.pointers, ["/request/messages"]);
    /// # Ok::<(), cupel_chat::ChatError>(())
    /// ```
    pub fn parse_at(text: &str, at: &str, shape: Option<Shape>) -> Result<Self, ChatError> {
        let layout = Layout::find(text, at, shape)?;
        for path in OUTPUT_LIMITS.iter().chain([&WINDOW_LIMIT]) {
            limit(&layout, path)?;
        }
        let mut values: Vec<Value> = Vec::with_capacity(layout.len());
        for index in 0..layout.len() {
            values.push(layout.value(index)?);
        }
        let is_detected = shape.is_none();
        let shape = match shape {
            Some(shape) => shape,
            None => detect(&layout, &values)?,
        };
        let mut messages = Vec::with_capacity(values.len());
        let mut items = Vec::new();
        for (index, value) in values.into_iter().enumerate() {
            let message = match (&value, shape.format().read_string) {
                (Value::String(text), Some(read_string)) if layout.is_text => Ok(read_string(text)),
                (value, _) => read(shape, value),
            };
            let mut message = message.map_err(|fault| {
                let error = layout.fault(index, &fault.field, fault.message);
                error.kind(fault.kind)
            })?;
            if layout.transcript.is_some() {
                annotate(shape, &layout.record(index), &mut message);
            }
            messages.push(if shape.is_chat() {
                message
            } else {
                let item = item(value, 0).map_err(|text| layout.fault(index, "", text))?;
                let message = ParsedMessage::new(Role::Other, item.0.kind().as_str());
                items.push(item);
                message
            });
        }
        if let Some(link) = shape.format().link {
            link(&mut messages);
        }
        if is_detected {
            check_types(shape, &layout, &messages)?;
        }
        (shape.format().check_order)(&messages)
            .map_err(|(index, fault)| layout.fault(index, &fault.field, fault.message))?;
        Ok(Self {
            groups: Groups::new(shape, &messages, continues(shape, &layout)),
            questions: Questions::new(&messages),
            shape,
            layout,
            messages,
            items,
        })
    }

    /// Reads messages of any type that serializes to the messages of a format: those of a client
    /// library, or your own.
    ///
    /// [`Fitted::kept`](crate::Fitted::kept) and [`Fitted::shortened`](crate::Fitted::shortened) say by
    /// position what to send, so that the messages need not be read back from JSON.
    ///
    /// # Errors
    ///
    /// [`ChatError`] if a message does not serialize or is not one of the format.
    ///
    /// ```
    /// use cupel::ContextBudget;
    /// use cupel_chat::{Chat, Encoding, Shape, default_policy};
    ///
    /// #[derive(serde::Serialize)]
    /// struct Turn {
    ///     role: &'static str,
    ///     content: String,
    /// }
    /// let turn = |role, content: &str| Turn { role, content: content.repeat(9) };
    /// let turns = [turn("user", "One? "), turn("assistant", "Two. "), turn("user", "Three? ")];
    /// let chat = Chat::from_messages(&turns, Shape::OpenAi)?;
    /// let budget = ContextBudget::with_target(60, 60)?;
    /// let fitted = chat.fit(&default_policy(), &budget, &Encoding::O200k)?;
    /// let window: Vec<&Turn> = fitted.kept.iter().map(|&index| &turns[index]).collect();
    /// assert_eq!(window.len(), 2);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn from_messages<T: Serialize>(messages: &[T], shape: Shape) -> Result<Self, ChatError> {
        let text = serde_json::to_string(messages).map_err(|error| {
            ChatError::new("", 0, format!("cannot be written as JSON: {error}"))
        })?;
        Self::parse(&text, Some(shape))
    }

    /// Returns the format.
    pub fn shape(&self) -> Shape {
        self.shape
    }

    /// Returns the number of messages.
    pub fn len(&self) -> usize {
        self.layout.len()
    }

    /// Returns whether there are no messages.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the JSON pointer that it was parsed at; empty for a whole text.
    pub fn parsed_at(&self) -> &str {
        &self.layout.at
    }

    /// Returns the JSON pointer (RFC 6901) of the list of messages in the document; `None` if the messages
    /// are not the elements of one list, as in a transcript or a text with one message per line.
    ///
    /// ```
    /// let chat = cupel_chat::Chat::parse(r#"{"messages": [{"role": "user", "content": "Hi"}]}"#, None)?;
    /// assert_eq!(chat.list_pointer(), Some("/messages"));
    /// # Ok::<(), cupel_chat::ChatError>(())
    /// ```
    pub fn list_pointer(&self) -> Option<&str> {
        self.layout.list_pointer()
    }

    /// Returns the model that the request names.
    pub fn model(&self) -> Option<&str> {
        let keys = ["model", "modelId"];
        keys.iter().find_map(|key| self.layout.field(key)?.as_str())
    }

    /// Returns the field of the request that limits the tokens of the answer, and the limit.
    ///
    /// ```
    /// use cupel_chat::Chat;
    ///
    /// let chat = Chat::parse(r#"{"max_completion_tokens": 500, "messages": []}"#, None)?;
    /// assert_eq!(chat.output_limit(), Some(("max_completion_tokens", 500)));
    /// # Ok::<(), cupel_chat::ChatError>(())
    /// ```
    pub fn output_limit(&self) -> Option<(&'static str, i64)> {
        OUTPUT_LIMITS.iter().find_map(|path| self.limit(path))
    }

    /// Returns the field of the request that limits the context window, and the limit: `options.num_ctx` of
    /// Ollama, which drops what exceeds it.
    pub fn window_limit(&self) -> Option<(&'static str, i64)> {
        self.limit(WINDOW_LIMIT)
    }

    fn limit(&self, path: &'static str) -> Option<(&'static str, i64)> {
        // An invalid one is an error of the parser.
        let tokens = limit(&self.layout, path).ok()??;
        Some((path, tokens))
    }

    /// Returns the message at a position.
    ///
    /// # Panics
    ///
    /// If `index` is out of range.
    pub fn message(&self, index: usize) -> Message<'_> {
        assert!(index < self.len(), "there are {} messages", self.len());
        Message { chat: self, index }
    }

    /// Returns all messages in order.
    pub fn messages(&self) -> impl Iterator<Item = Message<'_>> {
        (0..self.len()).map(|index| self.message(index))
    }

    /// Returns the question of the chat, which is the query of policies that have none: the text of the last user
    /// turn.
    ///
    /// ```
    /// use cupel_chat::Chat;
    ///
    /// let chat = Chat::parse(r#"[{"role": "user", "content": "Where are the keys?"}]"#, None)?;
    /// assert_eq!(chat.question().as_deref(), Some("Where are the keys?"));
    /// # Ok::<(), cupel_chat::ChatError>(())
    /// ```
    pub fn question(&self) -> Option<String> {
        let last = self.last_user_turn().filter(|_| self.shape.is_chat());
        last.map(|last| self.message(last).text())
    }

    /// Returns one item per message, in order, with its kind, tokens, timestamp, the metadata `role`,
    /// and its group.
    ///
    /// Mandatory messages are pinned. If every message has a timestamp, the items have these;
    /// otherwise the position counts as seconds, so that [`RecencyScorer`](cupel::RecencyScorer) ranks
    /// later messages higher.
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
        self.counted_items(counter, &SessionMemory::default())
    }

    /// Returns the items. Tokens and items that a session remembers are not computed again.
    fn counted_items(
        &self,
        counter: &dyn TokenCounter,
        memory: &SessionMemory,
    ) -> Vec<ContextItem> {
        if !self.shape.is_chat() {
            let counted = |(index, (known, counted)): (usize, &(ContextItem, bool))| {
                let value = || serde_json::from_str(self.layout.json(index)).ok();
                let tokens = || counter.count(known.content());
                let anew = (!counted).then(|| item(value()?, tokens()).ok()).flatten();
                anew.map_or_else(|| known.clone(), |(item, _)| item)
            };
            return self.items.iter().enumerate().map(counted).collect();
        }
        let mandatory = self.mandatory().unwrap_or_default();
        let timed = self.messages.iter().all(|message| message.time.is_some());
        let mut items = Vec::with_capacity(self.len());
        for (index, message) in self.messages.iter().enumerate() {
            let position = i64::try_from(index).unwrap_or(i64::MAX);
            let time = message.time.filter(|_| timed);
            let time = time.or_else(|| DateTime::from_timestamp(position, 0));
            let time = time.unwrap_or(DateTime::<Utc>::MIN_UTC);
            let group = self.groups.group(index);
            let group = (self.groups.members(group).len() > 1).then_some(group);
            let pinned = mandatory.contains(&index);
            if let Some(known) = memory.originals.get(index)
                && known.pinned() == pinned
                && known.timestamp() == Some(time)
                && known_group(known) == group
            {
                items.push(known.clone());
                continue;
            }
            let tokens = memory.tokens.get(index).copied();
            let tokens = tokens.unwrap_or_else(|| cost::message(self.shape, message, counter));
            let mut item = ContextItem::builder(message.text(), tokens)
                .kind(kind(message))
                .meta("role", &message.label)
                .timestamp(time)
                .pinned(pinned);
            if message.role() == Role::Tool {
                item = item.source(source(ContextSource::TOOL));
            }
            if let Some(group) = group {
                item = item.meta(GroupSlice::KEY, group.to_string());
            }
            // `build` fails for empty content only, and a message's text is never empty.
            items.extend(item.build());
        }
        items
    }

    /// Returns the request overhead: the tokens of `system`, `instructions`, tool definitions, and the
    /// start of the answer.
    pub fn overhead(&self, counter: &dyn TokenCounter) -> i64 {
        cost::overhead(self.shape, &self.layout, counter)
    }

    /// Returns everything in the request that costs tokens: the [`items`](Self::items), then the request
    /// overhead as one pinned item of the kind `Request`, unless it is 0.
    ///
    /// Counting is most of the work. [`fit_candidates`](Self::fit_candidates) and the
    /// [`policy`](Self::policy) of the chat accept the same candidates any number of times.
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
        self.counted_candidates(counter, &SessionMemory::default())
    }

    /// Returns the candidates. Tokens and items that a session remembers are not computed again.
    pub(crate) fn counted_candidates(
        &self,
        counter: &dyn TokenCounter,
        memory: &SessionMemory,
    ) -> Vec<ContextItem> {
        let mut candidates = self.counted_items(counter, memory);
        let overhead = self.overhead(counter);
        if overhead > 0 {
            let request = ContextItem::builder("[request overhead]", overhead).pinned(true);
            let kind = ContextKind::new("Request").unwrap_or_default();
            candidates.extend(request.kind(kind).build());
        }
        candidates
    }

    /// Returns the tokens of the whole request.
    pub fn tokens(&self, counter: &dyn TokenCounter) -> i64 {
        total_tokens(&self.candidates(counter))
    }

    /// Returns the text with the messages `kept`; the rest of the text is unchanged.
    ///
    /// # Panics
    ///
    /// If a position is out of range or the positions are not in ascending order.
    pub fn write(&self, kept: &[usize]) -> String {
        let ascend = kept.windows(2).all(|pair| pair[0] < pair[1]);
        assert!(ascend, "positions must be in ascending order");
        let pieces: Vec<Piece<'_>> = kept.iter().map(|&index| Piece::Original(index)).collect();
        self.layout.write(&pieces)
    }
}

impl<'a> Message<'a> {
    /// Returns its position in the chat.
    pub fn index(self) -> usize {
        self.index
    }

    /// Returns its role.
    pub fn role(self) -> Role {
        self.chat.messages[self.index].role()
    }

    /// Returns the role or type as written.
    pub fn label(&self) -> &str {
        &self.chat.messages[self.index].label
    }

    /// Returns its text: strings, tool calls as `name(arguments)`, placeholders such as `[image]`.
    pub fn text(self) -> String {
        match self.chat.items.get(self.index) {
            Some((item, _)) => item.content().to_owned(),
            None => self.chat.messages[self.index].text(),
        }
    }

    /// Returns its tool calls in order.
    ///
    /// ```
    /// use cupel_chat::{Chat, Shape};
    ///
    /// let chat = Chat::parse(r#"[{"role": "assistant", "content": [
    ///   {"type": "tool_use", "id": "c1", "name": "weather", "input": {"city": "Paris"}}
    /// ]}]"#, Some(Shape::Anthropic))?;
    /// let call = chat.message(0).calls().next().unwrap();
    /// assert_eq!((call.id, call.name, call.arguments), ("c1", "weather", r#"{"city":"Paris"}"#));
    /// # Ok::<(), cupel_chat::ChatError>(())
    /// ```
    pub fn calls(self) -> impl Iterator<Item = ToolCall<'a>> {
        let message = &self.chat.messages[self.index];
        let calls = message.parts.iter().filter_map(|part| match part {
            ContentPart::Call(name, arguments) => Some((name, arguments)),
            _ => None,
        });
        let calls = message.calls.iter().zip(calls);
        calls.map(|(id, (name, arguments))| ToolCall {
            id,
            name,
            arguments,
        })
    }

    /// Returns the ids of the tool calls whose results it contains.
    pub fn results(self) -> &'a [String] {
        &self.chat.messages[self.index].results
    }

    /// Returns whether it is a user message with content other than tool results.
    pub fn is_user_turn(self) -> bool {
        self.chat.messages[self.index].is_user_turn()
    }

    /// Returns the position of the first message of its group: the messages that are kept or dropped
    /// together with it.
    ///
    /// ```
    /// use cupel_chat::Chat;
    ///
    /// let chat = Chat::parse(r#"[
    ///   {"role": "user", "content": "Weather?"},
    ///   {"role": "assistant", "tool_calls": [{"id": "c1", "function": {"name": "now", "arguments": "{}"}}]},
    ///   {"role": "tool", "tool_call_id": "c1", "content": "12 degrees"}
    /// ]"#, None)?;
    /// let groups: Vec<usize> = chat.messages().map(|message| message.group()).collect();
    /// assert_eq!(groups, [0, 1, 1]);
    /// # Ok::<(), cupel_chat::ChatError>(())
    /// ```
    pub fn group(self) -> usize {
        self.chat.groups.group(self.index)
    }

    /// Returns the time that it states.
    pub fn time(self) -> Option<DateTime<Utc>> {
        self.chat.messages[self.index].time
    }

    /// Returns its JSON as written.
    pub fn json(self) -> &'a str {
        self.chat.layout.json(self.index)
    }

    /// Returns its position in the text.
    pub fn place(self) -> Place {
        self.chat.layout.place(self.index)
    }

    /// Returns its path in the request, such as `messages[3]`.
    pub fn path(self) -> String {
        self.chat.layout.path_of(self.index, "")
    }
}

/// Returns the group of an item that was made of a message.
fn known_group(item: &ContextItem) -> Option<usize> {
    item.metadata().get(GroupSlice::KEY)?.parse().ok()
}

/// Fails for a block or an item of an unknown type, in a chat whose format was not named.
fn check_types(shape: Shape, layout: &Layout, messages: &[ParsedMessage]) -> Result<(), ChatError> {
    for (index, message) in messages.iter().enumerate() {
        if let Some((field, kind)) = &message.unknown {
            let message = format!(
                "unknown type `{kind}`; the nearest format is {shape}, which counts it as its JSON if you name it"
            );
            return Err(layout.fault(index, field, message).kind(Kind::Unknown));
        }
    }
    Ok(())
}

/// The fields that limit the tokens of the answer, one per provider. A field comes before an older name of
/// it.
const OUTPUT_LIMITS: [&str; 7] = [
    "max_completion_tokens",
    "max_output_tokens",
    "max_tokens",
    "maxOutputTokens",
    "generationConfig.maxOutputTokens",
    "inferenceConfig.maxTokens",
    "options.num_predict",
];

/// The field that limits the context window.
const WINDOW_LIMIT: &str = "options.num_ctx";

/// Returns whether a field of the request is or holds a limit.
pub(crate) fn is_limit(field: &str) -> bool {
    let mut paths = OUTPUT_LIMITS.iter().chain([&WINDOW_LIMIT]);
    paths.any(|path| path.split('.').next() == Some(field))
}

/// Returns the tokens in a field of the request, by its path. `null`, 0 and negative numbers, such as the -1
/// and -2 of Ollama, set no limit.
///
/// # Errors
///
/// [`ChatError`] if the field holds anything but a whole number of tokens: a limit that cannot be read must
/// not count as none.
fn limit(layout: &Layout, path: &str) -> Result<Option<i64>, ChatError> {
    let mut keys = path.split('.');
    let field = keys.next().and_then(|key| layout.field(key));
    let value = keys.try_fold(field, |value, key| value.map(|value| value.get(key)));
    let Some(value) = value.flatten().filter(|value| !value.is_null()) else {
        return Ok(None);
    };
    match value.as_i64().or_else(|| whole(value.as_f64()?)) {
        Some(tokens) => Ok(Some(tokens).filter(|tokens| *tokens > 0)),
        None => {
            let most = i64::MAX;
            let mut message = format!("must be a whole number of tokens, at most {most}");
            if !value.is_number() {
                message = format!("{message}, not {}", type_of(value));
            }
            Err(layout.field_fault(path, message))
        }
    }
}

/// Returns a number such as `4096.0` as an integer.
fn whole(number: f64) -> Option<i64> {
    // Above 2^53 a number with a fraction part is not exact.
    const EXACT: f64 = 9_007_199_254_740_992.0;
    #[expect(clippy::cast_possible_truncation, reason = "it is whole and in range")]
    (number.fract() == 0.0 && number.abs() <= EXACT).then_some(number as i64)
}

/// Returns whether the request continues one that the provider stores.
fn continues(shape: Shape, layout: &Layout) -> bool {
    let is_set = |key: &&str| layout.field(key).is_some_and(|value| !value.is_null());
    shape.format().continued_by.iter().any(is_set)
}

/// Reads an item, which gets `tokens` if it does not state its own, and returns whether it does.
fn item(mut value: Value, tokens: i64) -> Result<(ContextItem, bool), String> {
    let counted = value.get("tokens").is_some();
    if let (Value::Object(fields), false) = (&mut value, counted) {
        fields.insert("tokens".to_owned(), tokens.into());
    }
    let item = serde_json::from_value(value).map_err(|error| error.to_string())?;
    Ok((item, counted))
}

fn kind(message: &ParsedMessage) -> ContextKind {
    match message.role() {
        Role::System => ContextKind::system_prompt(),
        Role::Tool => ContextKind::tool_output(),
        Role::User if !message.results.is_empty() && !message.has_own_content => {
            ContextKind::tool_output()
        }
        // A message that contains the results of its own calls.
        Role::Assistant if !message.results.is_empty() => ContextKind::tool_output(),
        _ => ContextKind::message(),
    }
}

fn source(name: &str) -> ContextSource {
    ContextSource::new(name).unwrap_or_default()
}
