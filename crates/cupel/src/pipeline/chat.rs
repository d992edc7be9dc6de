//! [`ChatSettings`]: how a policy treats a chat, and [`CHAT_SETTINGS`], the table of the settings.

use std::collections::BTreeMap;

#[cfg(feature = "serde")]
use crate::config::registry::{Field, Literal, Shape, TOKENS, default, optional};

/// How a policy treats a chat. The crate `cupel-chat` reads it; a run over items ignores it.
///
/// ```
/// use cupel::{ChatSettings, ChronologicalPlacer, GreedySlice, Policy, RecencyScorer, Shorten};
///
/// let mut chat = ChatSettings::default();
/// assert!(chat.keep_task && chat.shorten == Shorten::All);
/// chat.max_result = Some(2_000);
/// let policy = Policy::new(RecencyScorer, GreedySlice, ChronologicalPlacer);
/// let policy = policy.to_builder().chat(chat).build()?;
/// assert_eq!(policy.chat().max_result, Some(2_000));
/// # Ok::<(), cupel::CupelError>(())
/// ```
#[non_exhaustive]
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(
    clippy::struct_excessive_bools,
    reason = "each is one setting, independent of the others"
)]
pub struct ChatSettings {
    /// Messages that are always kept: positions (`3`), ranges (`3-5`) and roles (`role:user`).
    pub pin: Vec<String>,
    /// Whether the first user turn is mandatory. Read by policies with a ladder. Defaults to `true`.
    pub keep_task: bool,
    /// The most tokens of any tool result. Longer results are shortened even if the chat fits.
    pub max_result: Option<i64>,
    /// Which texts a ladder may shorten. Defaults to [`Shorten::All`].
    pub shorten: Shorten,
    /// The text in the place of dropped messages; `{n}` is their number. The empty text turns the
    /// marker off. By default a marker stands only where a user turn would otherwise follow another one or
    /// a tool result. Read by policies with a ladder.
    pub marker: Option<String>,
    /// Whether messages that the provider rejects are dropped even if the chat fits: tool calls without a
    /// result, results without a call, twice or not right after it, two messages of one role in a row where
    /// roles must alternate, and messages before the first user turn in formats that start on one. Defaults to
    /// `false`: a chat that fits is not changed, and a warning names them.
    pub strict: bool,
    /// Whether the cuts of a chat that grows are found by replaying it, instead of choosing each window anew. Then
    /// they are rare and deep, so that a provider's prompt cache reuses the prefix, and the window is a function of
    /// the request, the budget, the policy and the counter. Read by policies with a ladder. Defaults to `false`.
    pub replay: bool,
    /// Whether a window gets the breakpoints of the provider's prompt cache: `cache_control` of Anthropic, `cachePoint`
    /// of Bedrock. Other formats have none. Defaults to `false`.
    pub cache_breakpoints: bool,
    /// How the results of a tool are treated, by its name, or by the beginning of names before a `*`. See
    /// [`results_of`](Self::results_of). Read by policies with a ladder.
    pub tool_results: BTreeMap<String, ToolResults>,
}

impl ChatSettings {
    /// Returns how the results of a tool are treated, if a setting names it. The name itself comes before a pattern, and
    /// a longer pattern before a shorter one.
    ///
    /// ```
    /// use cupel::{ChatSettings, ToolResults};
    ///
    /// let mut chat = ChatSettings::default();
    /// chat.tool_results.insert("browser_*".to_owned(), ToolResults::ShortenFirst);
    /// chat.tool_results.insert("browser_wait".to_owned(), ToolResults::Never);
    /// assert_eq!(chat.results_of("browser_click"), Some(ToolResults::ShortenFirst));
    /// assert_eq!(chat.results_of("browser_wait"), Some(ToolResults::Never));
    /// assert_eq!(chat.results_of("read"), None);
    /// ```
    pub fn results_of(&self, tool: &str) -> Option<ToolResults> {
        if let Some(exact) = self.tool_results.get(tool) {
            return Some(*exact);
        }
        let patterns = self.tool_results.iter();
        let patterns = patterns.filter(|(pattern, _)| ToolResults::is_for(pattern, tool));
        let longest = patterns.max_by_key(|(pattern, _)| pattern.len());
        longest.map(|(_, results)| *results)
    }
}

/// How the results of a tool are treated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ToolResults {
    /// A newer one never supersedes an older one: pages, cursors, waits.
    Never,
    /// The newest one with the same path supersedes the others, whatever the other arguments are and whether or not a
    /// write was seen; without a path, the newest one with the same arguments.
    ByPath,
    /// They are shortened before other results, after superseded ones.
    ShortenFirst,
    /// They are not shortened or superseded, and dropped last: a plan, a list of tasks.
    Keep,
}

impl ToolResults {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Never, Self::ByPath, Self::ShortenFirst, Self::Keep];
    /// Their names, in the same order.
    pub const NAMES: &[&str] = &["never", "by_path", "shorten_first", "keep"];

    /// Returns the name.
    pub fn name(self) -> &'static str {
        Self::NAMES[self as usize]
    }

    /// Returns the one of that name.
    pub fn find(name: &str) -> Option<Self> {
        let position = Self::NAMES.iter().position(|known| *known == name)?;
        Some(Self::ALL[position])
    }

    /// Returns whether the name of a setting, which may end with `*`, is that of a tool.
    pub fn is_for(name: &str, tool: &str) -> bool {
        match name.strip_suffix('*') {
            Some(start) => tool.starts_with(start),
            None => tool == name,
        }
    }
}

/// Which texts of a chat a ladder may shorten.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Shorten {
    /// None: messages are kept whole or dropped.
    Off,
    /// Old tool results and old assistant texts.
    Old,
    /// Also the task and the results of the newest step, if dropping everything else is not enough.
    #[default]
    All,
}

impl Shorten {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Off, Self::Old, Self::All];
    /// Their names, in the same order.
    pub const NAMES: &[&str] = &["off", "old", "all"];

    /// Returns the name.
    pub fn name(self) -> &'static str {
        Self::NAMES[self as usize]
    }

    /// Returns the one of that name.
    pub fn find(name: &str) -> Option<Self> {
        let position = Self::NAMES.iter().position(|known| *known == name)?;
        Some(Self::ALL[position])
    }
}

impl Default for ChatSettings {
    fn default() -> Self {
        Self {
            pin: Vec::new(),
            keep_task: true,
            max_result: None,
            shorten: Shorten::default(),
            marker: None,
            strict: false,
            replay: false,
            cache_breakpoints: false,
            tool_results: BTreeMap::new(),
        }
    }
}

/// A setting as the readers of policy documents, command lines and keyword arguments see it.
///
/// A setting is a field of [`ChatSettings`], its default there, and a row of [`CHAT_SETTINGS`]. The reader, the
/// writer and the schema of the table `chat` of a policy document follow from the row, and so do the option of the
/// command and the keyword argument of the Python package.
#[cfg(feature = "serde")]
#[non_exhaustive]
#[derive(Debug, Clone, Copy)]
pub struct ChatSetting {
    /// The field of the table `chat`: name, values, default and description.
    pub field: Field,
    /// What a caller asks for with it, in one line: the help of an option.
    pub help: &'static str,
    /// Whether it is one of the few that most callers need. The short help of a command has these only.
    pub is_common: bool,
    /// Whether only a policy with a ladder follows it.
    pub needs_ladder: bool,
    /// Returns the value of the setting in settings, for reading and for writing.
    pub value: fn(&mut ChatSettings) -> ChatValue<'_>,
}

/// The value of a setting, by its type.
#[cfg(feature = "serde")]
#[derive(Debug, PartialEq)]
pub enum ChatValue<'a> {
    /// Something that is done or not.
    Switch(&'a mut bool),
    /// A number of tokens, at least 1.
    Tokens(&'a mut Option<i64>),
    /// A text; the empty text turns off what is done without one.
    Text(&'a mut Option<String>),
    /// Messages: positions, ranges and roles.
    Messages(&'a mut Vec<String>),
    /// Which texts are shortened.
    Shorten(&'a mut Shorten),
    /// How the results of tools are treated, by name.
    Tools(&'a mut BTreeMap<String, ToolResults>),
}

#[cfg(feature = "serde")]
impl ChatSetting {
    /// Returns the name.
    pub fn name(&self) -> &'static str {
        self.field.name
    }

    /// Returns the setting of that name.
    pub fn find(name: &str) -> Option<&'static Self> {
        CHAT_SETTINGS.iter().find(|it| it.field.name == name)
    }
}

#[cfg(feature = "serde")]
impl ChatValue<'_> {
    /// Takes the value of the same setting in other settings.
    pub fn copy_from(self, other: ChatValue<'_>) {
        match (self, other) {
            (Self::Switch(to), ChatValue::Switch(from)) => *to = *from,
            (Self::Tokens(to), ChatValue::Tokens(from)) => *to = *from,
            (Self::Text(to), ChatValue::Text(from)) => to.clone_from(from),
            (Self::Messages(to), ChatValue::Messages(from)) => to.clone_from(from),
            (Self::Shorten(to), ChatValue::Shorten(from)) => *to = *from,
            (Self::Tools(to), ChatValue::Tools(from)) => to.clone_from(from),
            // Values of two settings; one setting has one type.
            _ => {}
        }
    }
}

/// The settings, in the order in which documents and helps list them.
#[cfg(feature = "serde")]
pub static CHAT_SETTINGS: [ChatSetting; 9] = [
    ChatSetting {
        field: default(Shape::Array(&Shape::Label, 0), Literal::EmptyArray).named(
            "pin",
            "Messages that are always kept: positions (\"3\"), ranges (\"3-5\") and roles (\"role:user\").",
        ),
        help: "Messages that always stay: 0,3-5,role:system",
        is_common: true,
        needs_ladder: false,
        value: |chat| ChatValue::Messages(&mut chat.pin),
    },
    ChatSetting {
        field: default(Shape::Bool, Literal::Bool(true)).named(
            "keep_task",
            "Whether a ladder always keeps the first user turn.",
        ),
        help: "Always keep the task, the first user turn",
        is_common: false,
        needs_ladder: true,
        value: |chat| ChatValue::Switch(&mut chat.keep_task),
    },
    ChatSetting {
        field: optional(TOKENS).named(
            "max_result",
            "The most tokens of a tool result; longer ones are shortened even if the chat fits.",
        ),
        help: "Shorten every tool result to this, even if all fits",
        is_common: true,
        needs_ladder: false,
        value: |chat| ChatValue::Tokens(&mut chat.max_result),
    },
    ChatSetting {
        field: default(Shape::Choice(Shorten::NAMES), Literal::String("all")).named(
            "shorten",
            "Which texts a ladder may shorten: none, old ones, or also the task and the newest step's results.",
        ),
        help: "Texts that may be shortened: off, old or all",
        is_common: true,
        needs_ladder: true,
        value: |chat| ChatValue::Shorten(&mut chat.shorten),
    },
    ChatSetting {
        field: optional(Shape::String).named(
            "marker",
            "The text in the place of dropped messages, where {n} is their number; empty for none. By default a marker stands only where a user turn would otherwise follow another one or a tool result.",
        ),
        help: "Text in the place of dropped messages; off for none",
        is_common: false,
        needs_ladder: true,
        value: |chat| ChatValue::Text(&mut chat.marker),
    },
    ChatSetting {
        field: default(Shape::Bool, Literal::Bool(false)).named(
            "strict",
            "Whether messages that the provider rejects are dropped even if the chat fits.",
        ),
        help: "Drop what the provider rejects, even if all fits",
        is_common: true,
        needs_ladder: false,
        value: |chat| ChatValue::Switch(&mut chat.strict),
    },
    ChatSetting {
        field: default(Shape::Bool, Literal::Bool(false)).named(
            "replay",
            "Whether the cuts of a growing chat are found by replaying it: rare and deep, so that a prompt cache reuses the prefix.",
        ),
        help: "Cut rarely and deeply, so that a prompt cache can reuse the prefix",
        is_common: false,
        needs_ladder: true,
        value: |chat| ChatValue::Switch(&mut chat.replay),
    },
    ChatSetting {
        field: default(Shape::Bool, Literal::Bool(false)).named(
            "cache_breakpoints",
            "Whether a window gets the breakpoints of the provider's prompt cache, in the formats anthropic and bedrock.",
        ),
        help: "Set breakpoints of the prompt cache (Anthropic, Bedrock)",
        is_common: false,
        needs_ladder: false,
        value: |chat| ChatValue::Switch(&mut chat.cache_breakpoints),
    },
    ChatSetting {
        field: default(
            Shape::ByString(&Shape::Choice(ToolResults::NAMES)),
            Literal::EmptyObject,
        )
        .named(
            "tool_results",
            "How the results of a tool are treated, by its name, which may end with *: never superseded, superseded by_path, shortened first (shorten_first), or kept whole and dropped last (keep).",
        ),
        help: "Treat the results of a tool: never, by_path, shorten_first, keep",
        is_common: false,
        needs_ladder: true,
        value: |chat| ChatValue::Tools(&mut chat.tool_results),
    },
];
