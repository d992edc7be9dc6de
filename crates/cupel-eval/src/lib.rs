//! Measures the policies of [`cupel`].
//!
//! - **Evidence** ([`Evaluation`]): how much of the marked evidence of a question a policy keeps.
//! - **Search** ([`Tuning`]): tries a grid of values for the numbers of a policy document and reports the best
//!   setting on other transcripts.
//! - **Replay** ([`replay()`]): trims the history before each answer of recorded agent runs and measures the
//!   windows.
//! - **Criteria** ([`criteria()`]): trims conversations to a share of their size and measures what the window keeps of
//!   the criterion of a good answer.
//!
//! Every value is an [`Estimate`]: it has a 95 % bootstrap interval. The measures themselves are pure functions
//! in [`recall`] and [`metric`]. `docs/relevance.md` and `docs/agents.md` of the repository define them.
//!
//! The crate takes texts, parsed chats and any [`Policy`](cupel::Policy), also one with a custom strategy, and
//! returns typed answers that implement `Serialize`. It reads no file, prints nothing and reads no clock. A long
//! call reports its [`Progress`] to an observer, which can stop it. With the feature `rayon` it uses all cores;
//! results are the same bit for bit.
//!
//! ```
//! use cupel::{ChronologicalPlacer, ContextItem, Policy, RankSlice, Scorer};
//! use cupel_chat::Encoding;
//! use cupel_eval::{Dataset, EvalPolicy, Evaluation, Measure, unobserved};
//!
//! /// Prefers short items.
//! struct Brevity;
//!
//! impl Scorer for Brevity {
//!     fn score(&self, item: &ContextItem, _all: &[ContextItem]) -> f64 {
//!         1.0 / item.tokens() as f64
//!     }
//! }
//!
//! let questions = r#"{"items": [{"content": "The keys are on the fridge.", "tokens": 8}, {"content": "Hi!", "tokens": 2}],
//!     "questions": [{"query": "Where are the keys?", "evidence": [0]}]}"#.replace('\n', " ");
//! let dataset = Dataset::parse("questions", &questions, &Encoding::O200k)?;
//! let brief = EvalPolicy::new("brief", Policy::new(Brevity, RankSlice, ChronologicalPlacer));
//! let evaluation = Evaluation::run(&dataset, &[brief], &[8, 10], &mut unobserved)?;
//! assert_eq!(evaluation.mean(0, Measure::Items(8)), Some(0.0));
//! assert_eq!(evaluation.mean(0, Measure::Items(10)), Some(1.0));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod bootstrap;
mod conversation;
mod criteria;
mod dataset;
mod evidence;
pub mod metric;
mod parallel;
mod price;
mod progress;
pub mod recall;
mod replay;
mod runs;
mod search;
mod tally;

pub use bootstrap::{Estimate, SAMPLES};
pub use conversation::{
    CONVERSATION_FORMAT, Conversation, ConversationError, CriterionProblem, Term, criterion_recall,
    parse_conversations, words,
};
pub use criteria::{CriteriaError, CriteriaReport, CriteriaRow, InvalidShare, Share, criteria};
pub use dataset::{
    Dataset, DatasetError, DatasetProblem, DatasetSize, LINE_FORMAT, Question, Transcript,
};
pub use evidence::{
    Comparison, ComparisonColumn, ComparisonRow, EvalError, EvalPolicy, Evaluation, EvidenceReport,
    Measure,
};
pub use price::{Billing, InvalidPrices, Prices};
pub use progress::{Progress, Stopped, unobserved};
pub use replay::{Method, ReplayError, ReplayReport, ReplayRow, replay};
pub use runs::{RunsError, parse_runs};
pub use search::{
    Axis, Grid, GridError, Objective, Overlap, Setting, Trial, TuneError, Tuned, Tuning,
};
pub use tally::{CriteriaMeasure, Estimates, Measures, ReplayMeasure};

/// Compiles and runs the example of the README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
