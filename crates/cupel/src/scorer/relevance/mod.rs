//! Scorers that know the question (feature `relevance`).
//!
//! | file | content |
//! |---|---|
//! | `words.rs` | text analysis: from a text to words |
//! | `lists.rs` | word lists |
//! | `index.rs` | the inverted index, shared from query to query |
//! | `question.rs` | the terms of a query, and what it asks for |
//! | `evaluate.rs` | from matches to scores: kernels, boosts, parts |
//! | `bm25.rs`, `neighbor.rs`, `conversation.rs` | the scorers |

mod bm25;
mod conversation;
mod evaluate;
mod index;
mod lists;
mod neighbor;
mod question;
mod sequence;
mod words;

pub use bm25::RelevanceScorer;
pub use conversation::ConversationScorer;
pub use neighbor::NeighborScorer;
#[cfg(feature = "embeddings")]
pub(super) use words::{each_word, normalize};

use evaluate::{Method, Record};
use sequence::Sequence;

use super::{Among, BuiltinScorer, ScorePart};
use crate::{ContextItem, CupelError, Query};

/// Returns one of all scores, 0.0 if there is none.
fn score_one(scorer: &impl BuiltinScorer, item: &ContextItem, items: &[ContextItem]) -> f64 {
    let scores = scorer.score_among(items, Among::All);
    let own = super::position(item, items);
    own.zip(scores.ok())
        .map_or(0.0, |(own, scores)| scores[own])
}

/// Explains all scores, in the order of the input.
fn explain(
    method: &Method<'_>,
    record: &Record,
    sequence: &Sequence<'_>,
    name: &str,
) -> Vec<ScorePart> {
    let places = 0..sequence.items().len();
    let parts = places
        .map(|place| method.explain(record, place, name))
        .collect();
    sequence.in_input_order(parts, ScorePart::new(name, 0.0))
}

/// Returns the query of a scorer, or an error that says how to give it one.
fn required<'q>(query: Option<&'q Query>, scorer: &'static str) -> Result<&'q Query, CupelError> {
    query.ok_or(CupelError::MissingQuery { scorer })
}
