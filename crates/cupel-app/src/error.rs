//! [`Error`]: what went wrong, as data. The sentences are here and nowhere else.

use std::fmt;

use cupel::CupelError;
use cupel::config::ConfigError;
use cupel_chat::{BudgetError, ChatError, FitError, Shape};

use crate::argument::{Argument, Dialect, Plain, Question};
use crate::input::Evidence;
use crate::text::{grouped, tokens};

/// Why a question has no answer: the fault with its values, and its place.
///
/// [`message`](Self::message), [`details`](Self::details) and [`help`](Self::help) write it in the words of
/// a door.
#[derive(Debug, Clone)]
pub struct Error {
    /// What is wrong.
    pub fault: Box<Fault>,
    /// Where it is, if it is in a text.
    pub place: Option<Place>,
    /// Which arguments are from a configuration; an error names them by their keys. Boxed, because few errors have it.
    pub(crate) configured: Option<Box<Configured>>,
}

/// The arguments whose values are from a configuration.
#[derive(Debug, Clone)]
pub(crate) struct Configured {
    /// The name of the configuration; `None` if the place of the error has it.
    pub(crate) name: Option<String>,
    pub(crate) arguments: Vec<Argument>,
}

/// Writes the arguments of a configuration by their keys, and the others as the door does: a caller that did not write
/// `--reserve` does not find it.
struct WithConfig<'e> {
    door: &'e dyn Dialect,
    configured: Option<&'e Configured>,
}

impl WithConfig<'_> {
    /// Returns a key, and the file unless the place of the error names it; `None` for an argument of the caller.
    fn of_config(&self, argument: Argument, key: &str) -> Option<String> {
        let configured = self.configured?;
        if !configured.arguments.contains(&argument) {
            return None;
        }
        Some(match &configured.name {
            Some(file) => format!("`{key}` in {file}"),
            None => format!("`{key}`"),
        })
    }
}

impl Dialect for WithConfig<'_> {
    fn argument(&self, argument: Argument) -> String {
        let key = self.of_config(argument, &argument.key());
        key.unwrap_or_else(|| self.door.argument(argument))
    }

    fn with_value(&self, argument: Argument, value: &str) -> String {
        // Sentences group the digits of numbers.
        let digits = value.replace(',', "");
        let literal = match digits.parse::<i64>() {
            Ok(_) => digits,
            Err(_) => format!("\"{value}\""),
        };
        let key = self.of_config(argument, &format!("{} = {literal}", argument.key()));
        key.unwrap_or_else(|| self.door.with_value(argument, value))
    }

    fn with_values(&self, argument: Argument, values: &[&str]) -> String {
        self.door.with_values(argument, values)
    }

    fn question(&self, question: Question) -> String {
        self.door.question(question)
    }
}

/// What can be done about an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum ErrorClass {
    /// What must stay is over the budget. A larger budget helps.
    OverBudget,
    /// The input or an argument is invalid.
    InvalidInput,
    /// The program is wrong.
    Internal,
}

impl ErrorClass {
    /// Returns the exit status of the command.
    pub fn exit_code(self) -> u8 {
        match self {
            Self::OverBudget => 1,
            Self::InvalidInput => 2,
            Self::Internal => 3,
        }
    }
}

/// A place in a text.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Place {
    /// The name of the text.
    pub file: String,
    /// The line, from 1; 0 for the whole text.
    pub line: usize,
    /// The column in characters, from 1.
    pub column: usize,
    /// The path of keys, such as `policy.scorer.entries[1]`; may be empty.
    pub path: String,
    /// The text of the line.
    pub source: Option<String>,
}

/// A part of the total that an error states, such as one mandatory message.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Detail {
    /// Its tokens.
    pub tokens: i64,
    /// What it is, such as `message 3 (tool)`.
    pub what: String,
}

/// An error in the place of an answer, in the words of a door.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ErrorAnswer {
    /// The error.
    pub error: ErrorObject,
    /// The `custom_id` of the request, if it has one and is one of many in a file.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(with = "serde_json::Value"))]
    pub custom_id: Option<serde_json::Value>,
}

/// What is wrong, where, and what to do.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ErrorObject {
    /// What is wrong, in one sentence.
    pub message: String,
    /// The exit status of the command: 1 if what must stay is over the budget, 2 if the input or an argument is
    /// invalid, 3 for an internal error.
    #[cfg_attr(feature = "schema", schemars(range(min = 1, max = 3)))]
    pub exit_code: u8,
    /// The name of the text that the error is in.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// What it is, for programs: `InvalidConfig` for a configuration such as `cupel.toml`, the name of the engine's
    /// error such as `ScorerConfig`; `None` for others.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub code: Option<&'static str>,
    /// The line, from 1; `None` for the whole text.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(range(min = 1)))]
    pub line: Option<usize>,
    /// The column in characters, from 1; `None` for the whole text.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(range(min = 1)))]
    pub column: Option<usize>,
    /// The path of keys, such as `policy.scorer.entries[1]`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// What the message sums up, each with its tokens, such as `1,310 message 3 (tool)`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub details: Vec<String>,
    /// What to do.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub help: Option<String>,
}

impl ErrorObject {
    /// Creates an error without a place, details and help.
    pub fn new(message: impl Into<String>, exit_code: u8) -> Self {
        Self {
            message: message.into(),
            exit_code,
            code: None,
            file: None,
            line: None,
            column: None,
            path: None,
            details: Vec::new(),
            help: None,
        }
    }

    /// Sets the place.
    pub fn at(mut self, place: &Place) -> Self {
        self.file = Some(place.file.clone());
        // A line of 0 stands for the whole text.
        let is_in_line = place.line > 0;
        self.line = is_in_line.then_some(place.line);
        self.column = is_in_line.then_some(place.column);
        self.path = Some(place.path.clone()).filter(|path| !path.is_empty());
        self
    }

    /// Sets the details.
    pub fn with_details(mut self, details: &[Detail]) -> Self {
        let details = details.iter();
        let details = details.map(|it| format!("{} {}", grouped(it.tokens), it.what));
        self.details = details.collect();
        self
    }
}

/// A kind of input that a question does not take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unexpected {
    /// A chat.
    Chat,
    /// A list of items.
    Items,
    /// A list without elements.
    EmptyList,
    /// One item of a list.
    OneItem,
    /// One message of a chat.
    OneMessage,
}

impl Unexpected {
    fn name(self) -> &'static str {
        match self {
            Self::Chat => "a chat",
            Self::Items => "a list of items",
            Self::EmptyList => "an empty list",
            Self::OneItem => "an item",
            Self::OneMessage => "a message",
        }
    }
}

/// What is wrong, with its values.
#[non_exhaustive]
#[derive(Debug, Clone)]
pub enum Fault {
    /// A text is not UTF-8: its first invalid byte, and whether it starts as UTF-16 does.
    NotUtf8 {
        /// The byte.
        byte: u8,
        /// Whether the text is UTF-16.
        is_utf16: bool,
    },
    /// A text has nothing but white space; `is_line` tells whether it is one line of a file.
    EmptyText {
        /// Whether it is one line of a file.
        is_line: bool,
    },
    /// A chat cannot be read.
    Chat {
        /// The fault.
        error: ChatError,
        /// Whether the text is a JSON array.
        is_array: bool,
    },
    /// A document cannot be read.
    Document(ConfigError),
    /// Items or requests cannot be read, and the text does not look like JSON.
    DocumentOrJson(ConfigError),
    /// A policy in the place of a chat or items.
    PolicyAsInput {
        /// The name of the text.
        name: String,
    },
    /// A chat or items in the place of a policy.
    NotAPolicy(Unexpected),
    /// Requests, one per line, in the place of items.
    RequestLines,
    /// A chat that is not JSON.
    ChatNotJson {
        /// The key that tells that it is a chat.
        key: String,
    },
    /// Text without structure.
    PlainText,
    /// A list of items where a chat is needed.
    NeedsChat {
        /// What needs a chat, such as `a session`.
        what: &'static str,
        /// What the input is.
        got: Unexpected,
    },
    /// A chat where items are needed.
    NeedsItems {
        /// What tells that it is a chat.
        evidence: Evidence,
    },
    /// A single item or message in the place of a request.
    NotARequest(Unexpected),
    /// An argument for chats with a list of items.
    ForChats(Argument),
    /// An argument that only a ladder follows, with a policy without one.
    NeedsLadder {
        /// The argument.
        argument: Argument,
        /// The name of the policy.
        policy: String,
    },
    /// An unknown policy.
    UnknownPolicy(ConfigError),
    /// A policy that cannot be built.
    Policy(String),
    /// A policy that reads a query, without one.
    NeedsQuery {
        /// The name of the policy.
        policy: String,
    },
    /// A scorer that cannot be built by its name alone.
    Scorer {
        /// The name.
        name: String,
        /// What is wrong.
        problem: String,
    },
    /// Fewer than two policies to compare.
    OnePolicy {
        /// Whether the input is a chat.
        is_chat: bool,
    },
    /// An amount of tokens that cannot be read.
    Amount(Argument, BudgetError),
    /// A percentage without a model.
    ShareNeedsModel(Argument, String),
    /// A percentage of the window of an unknown model.
    ShareOfUnknownModel(Argument, String, String),
    /// No budget for items.
    NoBudget,
    /// No budget for a chat, and why its model does not give one; `None` if it names none.
    NoModelBudget(Option<String>),
    /// A field of the request reserves the whole window for the answer.
    NothingLeft {
        /// The field.
        field: String,
        /// Its tokens.
        tokens: i64,
        /// The window, such as `window of gpt-4o (128,000)`.
        window: String,
    },
    /// An amount above the budget.
    AboveBudget(Argument, i64, i64),
    /// A share in percent that is not between 0 and 100.
    Percent(Argument, f64),
    /// Two arguments of which one may be given.
    Exclude(Argument, Argument),
    /// A limit of summaries out of range, and the largest one.
    SummaryTokens(i64, i64),
    /// A summary without text.
    EmptySummary,
    /// A factor for counts that is not usable.
    Factor(String),
    /// An unknown encoding.
    Encoding(String),
    /// A policy document that a configuration names and that cannot be read.
    PolicyFile(String),
    /// An unknown model.
    UnknownModel(String),
    /// A position out of range.
    OutOfRange {
        /// The position.
        index: usize,
        /// The number of messages or items.
        len: usize,
        /// The format of the input.
        shape: Shape,
    },
    /// A range that ends before it starts.
    EmptyRange {
        /// The start.
        from: i64,
        /// The end.
        to: i64,
    },
    /// A percentage quota changes with the budget, so that no item is marginal.
    QuotaHasNoMargin,
    /// A chat cannot be fitted.
    Fit(FitError),
    /// A run failed.
    Run(CupelError),
    /// An error of the program itself, which the input did not cause.
    Internal(String),
}

impl Error {
    /// Creates an error without a place.
    pub fn new(fault: Fault) -> Self {
        Self {
            fault: Box::new(fault),
            place: None,
            configured: None,
        }
    }

    /// Returns an internal error.
    pub fn internal(error: impl fmt::Display) -> Self {
        Self::new(Fault::Internal(error.to_string()))
    }

    /// Sets the place.
    pub fn at(mut self, place: Place) -> Self {
        self.place = Some(place);
        self
    }

    /// Sets the place unless there is one.
    pub fn or_at(mut self, place: impl FnOnce() -> Place) -> Self {
        self.place.get_or_insert_with(place);
        self
    }

    /// Names the arguments that are from a configuration.
    pub(crate) fn configured(mut self, configured: Configured) -> Self {
        self.configured = Some(Box::new(configured));
        self
    }

    fn dialect<'e>(&'e self, door: &'e dyn Dialect) -> WithConfig<'e> {
        let configured = self.configured.as_deref();
        WithConfig { door, configured }
    }

    /// Returns what the error is, for programs: `InvalidConfig` for a value of a [`Config`](crate::Config), otherwise
    /// the name of the engine's error, if it is one.
    pub fn code(&self) -> Option<&'static str> {
        let is_config = self.configured.as_ref().is_some_and(|configured| {
            let is_from_it = |argument| configured.arguments.contains(&argument);
            configured.name.is_none() || self.argument().is_some_and(is_from_it)
        });
        if is_config {
            return Some("InvalidConfig");
        }
        match &*self.fault {
            Fault::Run(error) | Fault::Fit(FitError::Policy(error)) => Some(error.code()),
            Fault::Document(error) | Fault::DocumentOrJson(error) => error.code(),
            _ => None,
        }
    }

    /// Returns the class.
    pub fn class(&self) -> ErrorClass {
        match &*self.fault {
            Fault::Fit(error) => of_fit(error),
            Fault::Run(error) => of_run(error),
            Fault::Internal(_) => ErrorClass::Internal,
            _ => ErrorClass::InvalidInput,
        }
    }

    /// Returns the error as it is written in the place of an answer.
    pub fn answer(&self, dialect: &dyn Dialect) -> ErrorAnswer {
        let object = ErrorObject::new(self.message(dialect), self.class().exit_code());
        let object = object.with_details(&self.details());
        let object = match &self.place {
            Some(place) => object.at(place),
            None => object,
        };
        ErrorAnswer {
            error: ErrorObject {
                help: self.help(dialect),
                code: self.code(),
                ..object
            },
            custom_id: None,
        }
    }

    /// Returns the argument concerned, if there is one.
    pub fn argument(&self) -> Option<Argument> {
        Some(match &*self.fault {
            Fault::ForChats(argument)
            | Fault::NeedsLadder { argument, .. }
            | Fault::Amount(argument, _)
            | Fault::ShareNeedsModel(argument, _)
            | Fault::ShareOfUnknownModel(argument, ..)
            | Fault::Percent(argument, _)
            | Fault::Exclude(argument, _)
            | Fault::AboveBudget(argument, ..) => *argument,
            Fault::SummaryTokens(..) => Argument::SummaryTokens,
            Fault::EmptySummary => Argument::Summarize,
            Fault::UnknownPolicy(_) | Fault::Policy(_) | Fault::PolicyFile(_) => Argument::Policy,
            Fault::NeedsQuery { .. } => Argument::Query,
            Fault::Scorer { .. } => Argument::Scorer,
            Fault::OnePolicy { .. } => Argument::Policies,
            Fault::NoBudget | Fault::NoModelBudget(_) | Fault::NothingLeft { .. } => {
                Argument::Budget
            }
            Fault::Factor(_) => Argument::Factor,
            Fault::Encoding(_) => Argument::Encoding,
            Fault::UnknownModel(_) => Argument::Model,
            Fault::OutOfRange { .. } => Argument::Item,
            Fault::EmptyRange { .. } => Argument::From,
            _ => return None,
        })
    }

    /// Returns what is wrong, in one sentence.
    pub fn message(&self, dialect: &dyn Dialect) -> String {
        let sentence = self.sentence(dialect);
        match self.subject() {
            Some(argument) => {
                let argument = self.dialect(dialect).argument(argument);
                format!("{argument}: {sentence}")
            }
            None => sentence,
        }
    }

    /// Returns the argument whose value is at fault, if [`message`](Self::message) starts with it. A door that
    /// shows it in another place writes the [`sentence`](Self::sentence) alone.
    pub fn subject(&self) -> Option<Argument> {
        match &*self.fault {
            Fault::Amount(argument, _)
            | Fault::Percent(argument, _)
            | Fault::Exclude(argument, _) => Some(*argument),
            Fault::Factor(_) => Some(Argument::Factor),
            Fault::SummaryTokens(..) => Some(Argument::SummaryTokens),
            Fault::EmptySummary => Some(Argument::Summarize),
            Fault::Encoding(_) => Some(Argument::Encoding),
            _ => None,
        }
    }

    /// Returns what is wrong with an option whose value alone, or together with another one, is not valid.
    fn option_sentence(&self, dialect: &dyn Dialect) -> String {
        match &*self.fault {
            Fault::AboveBudget(argument, amount, budget) => {
                let given = dialect.with_value(*argument, &grouped(*amount));
                match argument {
                    Argument::Slack => format!("{given} is greater than the budget"),
                    _ => format!("{given} exceeds the budget of {}", grouped(*budget)),
                }
            }
            Fault::Percent(_, percent) => {
                format!("expected a percentage from 0 to 100, got {percent}")
            }
            Fault::Exclude(_, other) => {
                format!("cannot be given with {}", dialect.argument(*other))
            }
            Fault::SummaryTokens(tokens, most) => {
                format!("expected 1 to {} tokens, got {tokens}", grouped(*most))
            }
            _ => String::new(),
        }
    }

    /// Returns what is wrong without the name of the [`subject`](Self::subject).
    pub fn sentence(&self, dialect: &dyn Dialect) -> String {
        let dialect = &self.dialect(dialect);
        match &*self.fault {
            Fault::NotUtf8 { byte, .. } => format!("byte 0x{byte:02x} is not UTF-8"),
            Fault::EmptyText { is_line: true } => "the line is empty".to_owned(),
            Fault::EmptyText { is_line: false } => "the file is empty".to_owned(),
            Fault::Chat { error, .. } => error.sentence(),
            Fault::Document(error) | Fault::DocumentOrJson(error) | Fault::UnknownPolicy(error) => {
                error.message().to_owned()
            }
            Fault::PolicyAsInput { .. } => "this is a policy, not a chat or items".to_owned(),
            Fault::NotAPolicy(got) => format!("this is {}, not a policy", got.name()),
            Fault::RequestLines => "these are requests, one per line, not items".to_owned(),
            Fault::ChatNotJson { key } => {
                format!("a chat must be JSON; this text is not, and has `{key}`")
            }
            Fault::PlainText => "this is plain text, not a chat".to_owned(),
            Fault::NeedsChat { what, got } => {
                format!("{what} needs a chat, and this is {}", got.name())
            }
            Fault::NeedsItems { evidence } => {
                let evidence = evidence.describe(dialect);
                format!("this is a chat (it has {evidence}), not a list of items")
            }
            Fault::NotARequest(got) => format!("this is {}, not a request", got.name()),
            Fault::ForChats(argument) => {
                let argument = dialect.argument(*argument);
                format!("{argument} applies to chats, and this is a list of items")
            }
            Fault::NeedsLadder { argument, policy } => {
                let argument = dialect.argument(*argument);
                format!(
                    "{argument} needs a policy with the slicer `ladder`, and the policy {policy} has another"
                )
            }
            Fault::NeedsQuery { policy } => format!("the policy {policy} needs a query"),
            Fault::Scorer { name, problem } => {
                format!("{}: {problem}", dialect.with_value(Argument::Scorer, name))
            }
            Fault::OnePolicy { .. } => "there is only one policy to compare".to_owned(),
            Fault::Amount(_, error) => error.to_string(),
            Fault::ShareNeedsModel(argument, value) => {
                let given = dialect.with_value(*argument, value);
                format!("{given}: a percentage needs a model")
            }
            Fault::ShareOfUnknownModel(argument, value, problem) => {
                format!("{}: {problem}", dialect.with_value(*argument, value))
            }
            Fault::NoBudget => "missing budget".to_owned(),
            Fault::NoModelBudget(None) => "missing budget: the chat names no model".to_owned(),
            Fault::NoModelBudget(Some(problem)) => format!("missing budget: {problem}"),
            Fault::NothingLeft {
                field,
                tokens,
                window,
            } => format!(
                "`{field}` of the request ({}) leaves nothing of the {window}",
                grouped(*tokens)
            ),
            Fault::AboveBudget(..)
            | Fault::Percent(..)
            | Fault::Exclude(..)
            | Fault::SummaryTokens(..) => self.option_sentence(dialect),
            Fault::EmptySummary => "the summary is empty".to_owned(),
            Fault::Policy(problem)
            | Fault::Factor(problem)
            | Fault::Encoding(problem)
            | Fault::PolicyFile(problem)
            | Fault::UnknownModel(problem)
            | Fault::Internal(problem) => problem.clone(),
            Fault::OutOfRange { index, .. } => {
                let given = dialect.with_value(Argument::Item, &index.to_string());
                format!("{given} is out of range")
            }
            Fault::EmptyRange { from, to } => format!(
                "{} is greater than {}",
                dialect.with_value(Argument::From, &from.to_string()),
                dialect.with_value(Argument::To, &to.to_string())
            ),
            Fault::QuotaHasNoMargin => {
                "a percentage quota changes with the budget, so no item is marginal".to_owned()
            }
            Fault::Fit(FitError::TooLarge {
                shape,
                available,
                needed,
                ..
            }) => format!(
                "mandatory {}s need {} tokens, {} over the budget of {}",
                shape.unit(),
                grouped(*needed),
                grouped(needed.saturating_sub(*available)),
                grouped(*available)
            ),
            Fault::Fit(error) => error.to_string(),
            Fault::Run(error) => error.to_string(),
        }
    }

    /// Returns what the message sums up.
    pub fn details(&self) -> Vec<Detail> {
        let Fault::Fit(FitError::TooLarge {
            shape,
            overhead,
            messages,
            ..
        }) = &*self.fault
        else {
            return Vec::new();
        };
        let messages = messages.iter().map(|message| Detail {
            tokens: message.tokens,
            what: format!("{} {} ({})", shape.unit(), message.index, message.role),
        });
        let overhead = (*overhead > 0).then(|| Detail {
            tokens: *overhead,
            what: "request overhead and marker".to_owned(),
        });
        messages.chain(overhead).collect()
    }

    /// Returns how to fix it, if there is something to say.
    #[expect(clippy::too_many_lines, reason = "a table with one row per fault")]
    pub fn help(&self, dialect: &dyn Dialect) -> Option<String> {
        let dialect = &self.dialect(dialect);
        Some(match &*self.fault {
            Fault::NotUtf8 { is_utf16: true, .. } => {
                "the file is UTF-16: convert it with `iconv -f UTF-16 -t UTF-8`".to_owned()
            }
            Fault::NotUtf8 { .. } => "save the file as UTF-8".to_owned(),
            Fault::EmptyText { is_line: true } => "each line holds one request".to_owned(),
            Fault::EmptyText { is_line: false } => FORMATS_AND_POLICIES.to_owned(),
            Fault::Chat { error, is_array } => return chat_help(error, *is_array, dialect),
            Fault::Document(error) => format!("did you mean `{}`?", error.suggestion()?),
            Fault::DocumentOrJson(error) => match error.suggestion() {
                Some(name) => format!("did you mean `{name}`?"),
                None => FORMATS.to_owned(),
            },
            Fault::PlainText => FORMATS.to_owned(),
            Fault::PolicyAsInput { name } => {
                let policy = dialect.with_value(Argument::Policy, name);
                format!("name the chat, and add {policy}")
            }
            Fault::NotAPolicy(Unexpected::Chat) => {
                format!("{} fits a chat", dialect.question(Question::Fit))
            }
            Fault::NotAPolicy(_) => {
                format!("{} selects from items", dialect.question(Question::Select))
            }
            Fault::RequestLines => {
                let batch = dialect.question(Question::Batch);
                format!("{batch} answers many requests")
            }
            Fault::ChatNotJson { .. } => "convert it first, such as with `yq -o json`".to_owned(),
            Fault::NeedsItems { .. } => {
                let fit = dialect.question(Question::Fit);
                format!("{fit} fits a chat into a budget")
            }
            Fault::NotARequest(got) => {
                let (question, unit) = match got {
                    Unexpected::OneMessage => (Question::Fit, "message"),
                    _ => (Question::Select, "item"),
                };
                let question = dialect.question(question);
                format!("each line holds one request; {question} reads one {unit} per line")
            }
            Fault::ForChats(Argument::Chat("pin")) => {
                "pin an item with its field \"pinned\"".to_owned()
            }
            Fault::ForChats(argument) => format!("remove {}", dialect.argument(*argument)),
            Fault::NeedsLadder { .. } => {
                let policy = dialect.with_value(Argument::Policy, "agent");
                format!("use {policy} or single, or leave the option out")
            }
            Fault::UnknownPolicy(error) => {
                let list = dialect.question(Question::Presets);
                match error.suggestion() {
                    Some(near) => format!("did you mean `{near}`? {list} shows all presets"),
                    None => format!("{list} shows the presets; name a file by its path"),
                }
            }
            Fault::Exclude(argument, other) => {
                let names = [*argument, *other].map(|it| dialect.argument(it));
                format!("remove {} or {}", names[0], names[1])
            }
            Fault::EmptySummary => {
                "it stands for the dropped messages: it needs at least one word".to_owned()
            }
            Fault::NeedsQuery { .. } => {
                let query = dialect.with_value(Argument::Query, "TEXT");
                format!("add {query}, or `query` in the request document")
            }
            Fault::Scorer { .. } => {
                let policy = dialect.with_value(Argument::Policy, "FILE");
                format!("{policy} names a scorer with fields")
            }
            Fault::OnePolicy { is_chat } => {
                let names = if *is_chat {
                    ["agent", "newest"]
                } else {
                    ["chat", "rag"]
                };
                let others = dialect.with_values(Argument::Policies, &names);
                format!("name two or more: {others}")
            }
            Fault::PolicyFile(_) => {
                "name a preset, or a path relative to the directory of the configuration".to_owned()
            }
            Fault::ShareNeedsModel(..) => {
                format!(
                    "add {}, or give tokens such as 8k",
                    dialect.argument(Argument::Model)
                )
            }
            Fault::NoBudget => format!(
                "add {}, or \"budget\": {{\"max_tokens\": 8000}} to a request",
                dialect.with_value(Argument::Budget, "8k")
            ),
            Fault::NoModelBudget(_) => format!(
                "add {}, or {} for the context window of that model",
                dialect.with_value(Argument::Budget, "8k"),
                dialect.with_value(Argument::Model, "NAME")
            ),
            Fault::NothingLeft { .. } => format!(
                "add {} for the request, or {} for the answer",
                dialect.with_value(Argument::Budget, "8k"),
                dialect.with_value(Argument::Reserve, "1k")
            ),
            Fault::AboveBudget(Argument::Slack, _, budget) => {
                format!("give at most the budget, {}", grouped(*budget))
            }
            Fault::AboveBudget(argument, ..) => {
                let (amount, budget) = (argument, Argument::Budget);
                let (amount, budget) = (dialect.argument(*amount), dialect.argument(budget));
                format!("lower {amount} or raise {budget}")
            }
            Fault::OutOfRange { len, shape, .. } => match len.checked_sub(1) {
                Some(last) => format!("positions start at 0; the last is {last}"),
                None => format!("the input has no {}s", shape.unit()),
            },
            Fault::EmptyRange { .. } => {
                format!(
                    "give the smaller budget to {}",
                    dialect.argument(Argument::From)
                )
            }
            Fault::QuotaHasNoMargin => {
                let sweep = dialect.question(Question::Sweep);
                format!("use a policy without a quota slicer, or see all budgets with {sweep}")
            }
            Fault::Fit(FitError::TooLarge {
                shape,
                available,
                needed,
                ..
            }) => format!(
                "raise the budget by {}, or shorten these {}s",
                tokens(needed.saturating_sub(*available)),
                shape.unit()
            ),
            Fault::Fit(FitError::Policy(error)) | Fault::Run(error) => return run_help(error),
            Fault::Internal(_) => "internal error; please report it".to_owned(),
            _ => return None,
        })
    }
}

/// The formats of chats, items and requests.
const FORMATS: &str =
    "chats and items are JSON, one object per line too; requests are also TOML or YAML";
const FORMATS_AND_POLICIES: &str = "chats and items are JSON, one object per line too; requests and policies are also TOML or YAML";

fn of_fit(error: &FitError) -> ErrorClass {
    match error {
        FitError::TooLarge { .. } => ErrorClass::OverBudget,
        FitError::Policy(error) => of_run(error),
        _ => ErrorClass::InvalidInput,
    }
}

fn of_run(error: &CupelError) -> ErrorClass {
    match error {
        CupelError::PinnedExceedsBudget { .. }
        | CupelError::MandatoryExceedsBudget { .. }
        | CupelError::Overflow { .. } => ErrorClass::OverBudget,
        // A strategy returned a candidate that it was not given.
        CupelError::Contract { .. } => ErrorClass::Internal,
        _ => ErrorClass::InvalidInput,
    }
}

fn run_help(error: &CupelError) -> Option<String> {
    Some(match error {
        CupelError::PinnedExceedsBudget {
            pinned_tokens,
            available,
        } => format!(
            "raise the budget by {} or unpin items",
            tokens(pinned_tokens.saturating_sub(*available))
        ),
        CupelError::Overflow {
            merged_tokens,
            target_tokens,
        } => format!(
            "raise the target by {}, or set \"overflow_strategy\" to \"truncate\" or \"proceed\"",
            tokens(merged_tokens.saturating_sub(*target_tokens))
        ),
        CupelError::MandatoryExceedsBudget {
            needed_tokens,
            available,
        } => format!(
            "raise the budget by {} or mark fewer items as mandatory",
            tokens(needed_tokens.saturating_sub(*available))
        ),
        CupelError::TableTooLarge { .. } | CupelError::TableOverLimit { .. } => {
            "raise \"bucket_size\" of the knapsack, or use the greedy slicer".to_owned()
        }
        // A run has this error only for a required count that cannot be met: settings were checked before,
        // and other failures have variants of their own.
        CupelError::SlicerConfig(_) => {
            "lower \"require_count\" of the kind, or set \"scarcity\" to \"degrade\"".to_owned()
        }
        _ => return None,
    })
}

fn chat_help(error: &ChatError, is_array: bool, dialect: &dyn Dialect) -> Option<String> {
    match &error.pointers[..] {
        [] if error.is_many() => {
            let one = if is_array {
                let first = dialect.with_value(Argument::At, "/0");
                format!("{first} names the first one")
            } else {
                "`sed -n 1p` prints the first one".to_owned()
            };
            let fit = dialect.question(Question::Fit);
            Some(format!("{fit} reads them all; {one}"))
        }
        [] if error.is_ambiguous() => Some(format!(
            "name it with {}",
            dialect.argument(Argument::Shape)
        )),
        [] => None,
        pointers => {
            let places = pointers.iter();
            let places = places.map(|pointer| dialect.with_value(Argument::At, pointer));
            let places = places.collect::<Vec<_>>().join(" or ");
            Some(format!("name the place of the chat: {places}"))
        }
    }
}

/// Writes the message with the plain names of arguments.
impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message(&Plain))
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match &*self.fault {
            Fault::Chat { error, .. } => Some(error),
            Fault::Document(error) | Fault::DocumentOrJson(error) | Fault::UnknownPolicy(error) => {
                Some(error)
            }
            Fault::Fit(error) => Some(error),
            Fault::Run(error) => Some(error),
            _ => None,
        }
    }
}

impl From<Fault> for Error {
    fn from(fault: Fault) -> Self {
        Self::new(fault)
    }
}

impl From<CupelError> for Error {
    fn from(error: CupelError) -> Self {
        Self::new(Fault::Run(error))
    }
}

impl From<FitError> for Error {
    fn from(error: FitError) -> Self {
        Self::new(Fault::Fit(error))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_the_sentence_after_its_subject() {
        let amount = cupel_chat::parse_budget("x", None).unwrap_err();
        let factor = "expected a number above 0".to_owned();
        let subjects = [
            (
                Fault::Amount(Argument::Reserve, amount),
                Some("`reserve`: "),
            ),
            (Fault::Factor(factor), Some("`factor`: ")),
            (Fault::NoBudget, None),
        ];
        for (fault, subject) in subjects {
            let error = Error::new(fault);
            assert_eq!(error.subject().is_some(), subject.is_some());
            let sentence = error.sentence(&Plain);
            assert_eq!(
                error.message(&Plain),
                subject.unwrap_or_default().to_owned() + &sentence
            );
        }
    }
}
