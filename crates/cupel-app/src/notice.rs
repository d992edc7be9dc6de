//! [`Notice`]: settings without effect and guesses, as data.

use cupel::ContextKind;
use cupel_chat::{Shape, Warning};

use crate::argument::{Argument, Dialect};
use crate::counter::Estimated;
use crate::text::grouped;

/// What may be unexpected about an answer: a setting without effect, or a guess.
#[non_exhaustive]
#[derive(Debug, Clone)]
pub enum Notice {
    /// No scorer of the policies reads the query.
    UnreadQuery {
        /// The names of the policies.
        policies: Vec<String>,
    },
    /// A preset for items runs over a chat.
    PresetForItems {
        /// The preset.
        preset: String,
        /// The presets for chats.
        for_chats: Vec<&'static str>,
    },
    /// The format has no breakpoints of a prompt cache.
    NoBreakpoints(Shape),
    /// A setting names tools that no message calls.
    UnusedTools {
        /// The names.
        tools: Vec<String>,
        /// A tool with a similar name to the first of them.
        near: Option<String>,
    },
    /// No candidate has a kind that a slot or a quota names.
    UnusedKind {
        /// `message` or `item`.
        unit: &'static str,
        /// The kind.
        kind: ContextKind,
        /// The tokens that are reserved for it; `None` if it has a quota.
        reserved: Option<i64>,
        /// A kind with a similar name.
        near: Option<String>,
    },
    /// The policy ranks by time, and no item has a timestamp.
    NoTimes,
    /// The policy reads hints, and some are outside of 0 to 1.
    HintsOutOfRange {
        /// How many.
        count: usize,
        /// The position of the first of these items.
        index: usize,
        /// Its hint.
        hint: f64,
    },
    /// No message has a role, so that a list is read as items.
    NoRole,
    /// The search is for words, and the scorer does not read them.
    ScorerIgnoresQuery {
        /// The scorer.
        scorer: String,
    },
    /// Why the tokens of the model are estimated.
    Estimated(Estimated),
    /// What the provider may reject in the window.
    Window(Warning),
}

impl Notice {
    /// Returns the notice in the words of a door.
    pub fn message(&self, dialect: &dyn Dialect) -> String {
        match self {
            Self::UnreadQuery { policies } => format!(
                "{} has no effect: no scorer of the policy {} reads it",
                dialect.argument(Argument::Query),
                policies.join(" or ")
            ),
            Self::PresetForItems { preset, for_chats } => format!(
                "the preset {preset} is for items: it may drop the task and the newest step of a chat; presets for chats are {}",
                for_chats.join(", ")
            ),
            Self::NoBreakpoints(shape) => {
                let with = Shape::ALL
                    .into_iter()
                    .filter(|it| it.has_cache_breakpoints());
                let with: Vec<&str> = with.map(Shape::name).collect();
                format!(
                    "{} has no effect: the format {shape} has no breakpoints; {} have",
                    dialect.argument(Argument::Chat("cache_breakpoints")),
                    with.join(" and ")
                )
            }
            Self::UnusedTools { tools, near } => {
                let hint = near
                    .as_ref()
                    .map_or_else(String::new, |name| format!("; did you mean `{name}`?"));
                let them = if tools.len() > 1 { "them" } else { "it" };
                format!(
                    "{} has no effect for `{}`: no message calls {them}{hint}",
                    dialect.argument(Argument::Chat("tool_results")),
                    tools.join("`, `")
                )
            }
            Self::UnusedKind {
                unit,
                kind,
                reserved,
                near,
            } => {
                let use_of_it = match reserved {
                    Some(tokens) => format!("for which {} tokens are reserved", grouped(*tokens)),
                    None => "which has a quota".to_owned(),
                };
                let near = near.as_ref();
                let hint =
                    near.map_or_else(String::new, |name| format!("; did you mean `{name}`?"));
                format!("no {unit} has the kind `{kind}`, {use_of_it}{hint}")
            }
            Self::NoTimes => {
                "no item has a timestamp, by which the policy ranks: all items are equally old"
                    .to_owned()
            }
            Self::HintsOutOfRange { count, index, hint } => {
                let more = match count - 1 {
                    0 => String::new(),
                    1 => " (and 1 more)".to_owned(),
                    more => format!(" (and {} more)", grouped(i64::try_from(more).unwrap_or(i64::MAX))),
                };
                format!(
                    "a future_relevance_hint counts from 0 to 1, and items[{index}] has {hint:?}{more}: lower ones count as 0, higher ones as 1, others as none; scale them, or give their ranks"
                )
            }
            Self::NoRole => {
                "the element at position 0 has no `role`: the list is read as items, not as the messages of a chat"
                    .to_owned()
            }
            Self::ScorerIgnoresQuery { scorer } => {
                format!("the scorer {scorer} does not read the question")
            }
            Self::Estimated(why) => why.to_string(),
            Self::Window(warning) => warning.to_string(),
        }
    }
}
