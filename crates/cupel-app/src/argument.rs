//! [`Argument`]: what a caller can set, by name, and [`Dialect`]: how a door writes it.

use std::fmt;

use cupel::config::CHAT_SETTINGS;

/// Declares the arguments, each with the name that a table or a JSON object has for it.
macro_rules! arguments {
    ($($(#[$doc:meta])* $variant:ident $name:literal,)*) => {
        /// What a caller can set. An error or a notice names the argument concerned, and a [`Dialect`]
        /// writes it in the words of the door.
        #[non_exhaustive]
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum Argument {
            $($(#[$doc])* $variant,)*
            /// A setting of the table `chat` of a policy, by its name in
            /// [`CHAT_SETTINGS`](cupel::config::CHAT_SETTINGS).
            Chat(&'static str),
        }

        impl Argument {
            /// Returns all arguments.
            pub fn all() -> impl Iterator<Item = Self> {
                let settings = CHAT_SETTINGS.iter().map(|it| Self::Chat(it.name()));
                [$(Self::$variant),*].into_iter().chain(settings)
            }

            /// Returns the name, such as `max_result`.
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $name,)*
                    Self::Chat(name) => name,
                }
            }
        }
    };
}

arguments! {
    /// The token limit.
    Budget "budget",
    /// The tokens to aim for.
    Target "target",
    /// The tokens reserved for the answer of the model.
    Reserve "reserve",
    /// The safety margin for estimated counts.
    Margin "margin",
    /// The tokens reserved for a kind of items.
    Slot "slot",
    /// The model, for its context window and its encoding.
    Model "model",
    /// The policy of a run.
    Policy "policy",
    /// The policies that are compared.
    Policies "policies",
    /// The question that the window is to answer.
    Query "query",
    /// The chat format.
    Shape "shape",
    /// The JSON pointer of the chat in its document.
    At "at",
    /// The token counter.
    Encoding "encoding",
    /// A token counter of the caller.
    Counter "counter",
    /// The factor for counted tokens.
    Factor "factor",
    /// The decisions of earlier requests.
    State "state",
    /// What summarizes dropped messages.
    Summarize "summarize",
    /// The most tokens of a summary.
    SummaryTokens "summary_tokens",
    /// One message or item, by position.
    Item "item",
    /// The smallest target of a sweep.
    From "from",
    /// The largest target of a sweep.
    To "to",
    /// The largest budget of a search for the least one.
    Ceiling "ceiling",
    /// How many tokens smaller a budget is.
    Slack "slack",
    /// The scorer of a search.
    Scorer "scorer",
    /// How many passages a search returns.
    Top "top",
}

impl Argument {
    /// Returns the key in a [`Config`](crate::Config): `budget`, `chat.max_result`.
    pub fn key(self) -> String {
        match self {
            Self::Chat(name) => format!("chat.{name}"),
            argument => argument.name().to_owned(),
        }
    }
}

/// Writes the name.
impl fmt::Display for Argument {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A question that the help of an error refers to.
#[non_exhaustive]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Question {
    /// Fit one chat, or many.
    Fit,
    /// Select from items.
    Select,
    /// Answer many requests.
    Batch,
    /// Show all budgets.
    Sweep,
    /// List the presets.
    Presets,
}

impl Question {
    /// Returns the name, such as `fit`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Fit => "fit",
            Self::Select => "select",
            Self::Batch => "batch",
            Self::Sweep => "sweep",
            Self::Presets => "presets",
        }
    }
}

/// How a door writes arguments and questions: `--shorten` on a command line, `shorten=` in Python.
///
/// Errors and notices are data. Their sentences are written once, in this crate, and ask the dialect for
/// every word that differs between doors, so that no door rewrites a sentence.
pub trait Dialect {
    /// Names an argument: `--shorten`.
    fn argument(&self, argument: Argument) -> String;

    /// Names an argument with a value: `--budget 8k`.
    fn with_value(&self, argument: Argument, value: &str) -> String;

    /// Names several values of one argument: `--policy agent --policy newest`.
    fn with_values(&self, argument: Argument, values: &[&str]) -> String {
        let values = values.iter().map(|value| self.with_value(argument, value));
        values.collect::<Vec<_>>().join(" ")
    }

    /// Names a question: `` `cupel fit` ``.
    fn question(&self, question: Question) -> String;
}

/// The names as they are: the dialect of a JSON document and of [`Display`](fmt::Display).
#[derive(Debug, Clone, Copy, Default)]
pub struct Plain;

impl Dialect for Plain {
    fn argument(&self, argument: Argument) -> String {
        format!("`{argument}`")
    }

    fn with_value(&self, argument: Argument, value: &str) -> String {
        format!("`{argument}` {value}")
    }

    fn question(&self, question: Question) -> String {
        format!("`{}`", question.name())
    }
}
