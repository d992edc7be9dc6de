//! Trims chats to a token budget: provider messages as items and back, groups, token counting.
//!
//! [`Chat::parse`] reads OpenAI Chat, OpenAI Responses, Anthropic Messages and LangChain messages, and
//! plain items. [`Chat::fit`] trims the chat to a budget: it shortens old tool results, then drops the oldest
//! messages. [`Fitted::to_json`] writes the result, which is a valid request for its provider; what is not
//! shortened stays byte for byte. [`Fitter`] does so turn by turn and keeps the prefix stable.
//!
//! ```
//! use cupel::ContextBudget;
//! use cupel_chat::{Chat, Encoding, default_policy, parse_budget};
//!
//! let forecast = "12 degrees and rain, wind from the west; ".repeat(40);
//! let text = format!(r#"{{"model": "gpt-4o", "messages": [
//!   {{"role": "system", "content": "You are a helpful assistant."}},
//!   {{"role": "user", "content": "What is the weather in Paris?"}},
//!   {{"role": "assistant", "content": null, "tool_calls": [
//!     {{"id": "a", "type": "function", "function": {{"name": "weather", "arguments": "{{}}"}}}}]}},
//!   {{"role": "tool", "tool_call_id": "a", "content": "{forecast}"}},
//!   {{"role": "assistant", "content": "Rain in Paris."}},
//!   {{"role": "user", "content": "And in Oslo?"}}
//! ]}}"#);
//! let chat = Chat::parse(&text, None)?;
//! let tokens = parse_budget("200", None)?;
//! let budget = ContextBudget::with_target(tokens, tokens)?;
//! let fitted = chat.fit(&default_policy(), &budget, &Encoding::O200k)?;
//! // The long result is shortened, and everything stays.
//! assert_eq!(fitted.kept, [0, 1, 2, 3, 4, 5]);
//! assert_eq!(fitted.shortened[0].index, 3);
//! assert!(fitted.tokens_before > 400 && fitted.tokens_after <= 200);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod budget;
mod cache;
mod candidates;
mod chat;
mod chats;
mod error;
mod fit;
mod fitter;
mod gaps;
mod groups;
mod layout;
mod marker;
mod marks;
mod message;
mod models;
mod pins;
mod pointer;
mod policies;
mod replay;
mod rules;
mod scan;
mod sent;
mod shape;
mod shorten;
mod splice;
mod superseded;
mod sweep;
mod tokens;
mod views;
mod warning;

pub use budget::{
    BudgetError, BudgetProblem, DEFAULT_RESERVE, DefaultBudget, DefaultBudgetError, parse_budget,
};
pub use cache::{CacheBreakpoint, CacheMark, CachePlace};
pub use candidates::Candidates;
pub use chat::{Chat, Message, ToolCall};
pub use chats::Chats;
pub use error::{ChatError, Place};
pub use fit::{Dropped, FitError, Fitted, FittedMessage, MandatoryMessage, Shortened};
pub use fitter::{FitState, Fitter, InvalidState, Rebuilt, Reuse, SessionWindow};
pub use marker::Marker;
pub use message::Role;
pub use models::{INPUT_LIMITS_SOURCE, MODELS, MODELS_AS_OF, Model, UnknownModel};
pub use policies::{default_policy, newest_policy, single_policy};
pub use replay::{Cut, Cuts};
pub use sent::Sent;
pub use shape::{Shape, UnknownShape, is_request_field};
pub use sweep::ChatSweep;
pub use tokens::{
    Calibration, Encoding, Heuristic, InvalidFactor, InvalidUsage, MissingVocabulary, Scaled,
    TokenCounter, UnknownEncoding, Vocabularies, provide_vocabularies,
};
pub use warning::{Warning, WarningKind};

/// Compiles and runs the example of the README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
