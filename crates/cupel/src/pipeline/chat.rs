//! [`ChatSettings`]: how a policy treats a chat.

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
    /// The granularity of a cut in tokens. The tokens to remove are rounded up to a multiple of it,
    /// so that the windows of a growing chat share a longer prefix.
    pub step: Option<i64>,
    /// Whether messages that the provider rejects are dropped even if the chat fits: tool calls without a
    /// result, results without a call, twice or not right after it, two messages of one role in a row where
    /// roles must alternate, and messages before the first user turn in formats that start on one. Defaults to
    /// `false`: a chat that fits is not changed, and a warning names them.
    pub strict: bool,
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

impl Default for ChatSettings {
    fn default() -> Self {
        Self {
            pin: Vec::new(),
            keep_task: true,
            max_result: None,
            shorten: Shorten::default(),
            marker: None,
            step: None,
            strict: false,
        }
    }
}
