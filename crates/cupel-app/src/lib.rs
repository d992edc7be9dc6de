//! Typed questions about chats and context items, and typed answers: the layer between the libraries
//! [`cupel`] and [`cupel_chat`] and their doors, the command, the Python package and servers.
//!
//! A door makes a [`Source`] and [`Options`] from the arguments of its caller, asks a question by calling a method,
//! and shows the answer:
//!
//! | question | answer |
//! |---|---|
//! | [`Prepared::fit`] | [`Fit`], [`FitAnswer`]: the input with what fits the budget |
//! | [`PreparedSession::fit`] | the same, turn by turn |
//! | [`fit_request`], [`Conversations`] | the same for the requests of a log, and what each reuses of the one before |
//! | [`Prepared::run`] | [`SelectAnswer`]: the selected items |
//! | [`Prepared::explain`], [`Prepared::explain_item`] | [`ExplainAnswer`]: why each is in or out |
//! | [`Prepared::sweep`], [`Prepared::min_budget`] | [`SweepAnswer`], [`MinBudgetAnswer`]: other budgets |
//! | [`Prepared::compare`], [`Prepared::marginal`] | [`CompareAnswer`], [`MarginalAnswer`]: other policies, a smaller budget |
//! | [`search`] | [`SearchAnswer`]: the passages that match a question |
//! | [`count`] | [`CountAnswer`]: tokens |
//! | [`models`] | [`ModelAnswer`]: the known models |
//!
//! [`ask`] answers most of them by name, for doors with one path for all questions.
//!
//! An [`Error`] as JSON is an [`ErrorAnswer`]; [`answers_schema`] is the JSON Schema of all of them.
//!
//! Every question about a window is a method of a [`Prepared`], so that all of them show the same window. The
//! crate does no IO, reads no clock and has no global state.
//!
//! ```
//! use cupel_app::{Options, Prepared, Scope, Source};
//!
//! let chat = r#"{"model": "gpt-4o", "seed": 12345678901234567890123, "messages": [
//!   {"role": "user", "content": "Hello!"},
//!   {"role": "assistant", "content": "Hello! What can I do for you today?"},
//!   {"role": "user", "content": "What is 2 + 2?"}
//! ]}"#;
//! let mut options = Options::default();
//! options.budget.budget = Some("34".into());
//! let prepared = Prepared::new(Source::new("chat.json", chat), &options, Scope::OneBudget)?;
//! let fit = prepared.fit()?;
//! assert_eq!(fit.answer().kept, [0, 2]);
//! assert!(fit.text()?.contains("12345678901234567890123"));
//! # Ok::<(), cupel_app::Error>(())
//! ```

mod argument;
mod batch;
mod budget;
mod compare;
mod config;
mod count;
mod counter;
mod error;
mod explain;
mod fit;
mod hints;
mod input;
mod kinds;
mod models;
mod notice;
mod options;
mod policy;
mod precedence;
mod prepared;
mod questions;
mod run;
mod schema;
mod search;
mod source;
mod summary;
mod sweep;
mod text;
mod times;
mod windows;

pub use argument::{Argument, Dialect, Plain, Question};
pub use batch::{Continued, Conversations, FittedRequest, fit_request};
pub use budget::{Amount, BudgetOptions, BudgetOrigin, OriginReserve, budget_of};
pub use compare::{CompareAnswer, ComparedPolicy, Difference, LostItem, MarginalAnswer};
pub use config::{CONFIG, Config, EffectiveValue, LoadPolicy, ValueOrigin, config_schema};
pub use count::{CountAnswer, Counted, count, count_text, counter_of_model};
pub use counter::{CounterName, CounterOptions, Counters, Estimated};
pub use error::{Detail, Error, ErrorAnswer, ErrorClass, ErrorObject, Fault, Place, Unexpected};
pub use explain::{ExplainAnswer, ExplainOneAnswer, ExplainedCandidate, Reason};
pub use fit::{
    DroppedEntry, Fit, FitAnswer, Session, SessionAnswer, ShortenedEntry, WindowMessage,
};
pub use hints::{hints_of_scores, hints_out_of_range};
pub use input::{Class, Classified, Evidence, Form, Input};
pub use models::{ModelAnswer, models};
pub use notice::Notice;
pub use options::{ChatOptions, Options, ReadOptions, check_ladder};
pub use policy::{NamedPolicy, find_config};
pub use precedence::UsedConfig;
pub use prepared::{Content, Prepared, PreparedSession, Scope, Setting, Variant, enough};
pub use questions::*;
pub use run::{Overflow, Run, SelectAnswer};
#[cfg(feature = "schema")]
pub use schema::Answer;
pub use schema::answers_schema;
pub use search::{Passage, SearchAnswer, scorer_named, search, term, words};
pub use source::Source;
pub use summary::{DroppedMessages, SUMMARY_TOKENS};
pub use sweep::{MinBudget, MinBudgetAnswer, Observer, SweepAnswer};
pub use text::{grouped, grouped_count};
pub use times::{missing_times, no_times};
pub use windows::for_each_window;
