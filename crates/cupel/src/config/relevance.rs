//! The parts of the scorers that know the question, as data.

use super::data::{Data, Fields, as_str, object, unknown_choice};
use super::define::data_record;
use super::error::ConfigError;
use super::registry::{
    Literal, NOT_NEGATIVE, POSITIVE, Record, Shape, Spec, UNIT, default, optional,
};
use super::tree::Node;
use crate::{Language, NearKernel, QuestionRules, RawValue, WideKernel};

pub(super) const QUERY: Spec = optional(Shape::Query);
pub(super) const LANGUAGE: Spec =
    default(Shape::Choice(Language::NAMES), Literal::String("english"));
pub(super) const K1: Spec = default(NOT_NEGATIVE, Literal::Number(0.9));
pub(super) const B: Spec = default(UNIT, Literal::Number(0.5));
pub(super) const SESSIONS: Spec = default(Shape::Bool, Literal::Bool(false));

impl Data for Language {
    fn read(node: &Node<'_>, _: Shape) -> Result<Self, ConfigError> {
        let name = as_str(node)?;
        Self::from_name(name).ok_or_else(|| unknown_choice(name, Self::NAMES))
    }

    fn write(&self) -> RawValue {
        RawValue::Text(self.name().to_owned())
    }
}

data_record! {
    NEAR "near" "How matches reach the items next to them." => NearKernel {
        forward = default(UNIT, Literal::Number(0.6)),
            "The share of a match that the next item gets.";
        backward = default(UNIT, Literal::Number(0.4)),
            "The share of a match that the previous item gets.";
    }
}

data_record! {
    WIDE "wide" "How passages reach their items." => WideKernel {
        weight = default(NOT_NEGATIVE, Literal::Number(0.5)),
            "The most that a passage adds; the best match has 1.";
        decay = default(UNIT, Literal::Number(0.97)),
            "The share that remains with each item of distance.";
        power = default(Shape::Integer(1, 16), Literal::Integer(3)),
            "The power of the scores.";
    }
}

data_record! {
    QUESTION "question" "How a question is read." => QuestionRules {
        word_weight = default(NOT_NEGATIVE, Literal::Number(0.2)),
            "The weight of words such as `summarize`.";
        answer_boost = default(POSITIVE, Literal::Number(1.3)),
            "The factor for a time or a number if the question asks for one.";
        speaker_boost = default(POSITIVE, Literal::Number(1.5)),
            "The factor for speakers named in the question.";
        broad_weight = default(NOT_NEGATIVE, Literal::Number(2.0)),
            "The weight of `wide` for a question about a whole topic.";
    }
}

/// What stands in for the scorers without the feature `relevance`: their rows are read and written like
/// all others, and building one fails.
#[cfg(not(feature = "relevance"))]
pub(super) mod without {
    use super::{ConfigError, Language, NearKernel, QuestionRules, WideKernel};
    use crate::config::ScorerConfig;
    use crate::{ContextItem, CupelError, Query, Scorer};

    /// Defines a scorer that cannot be built: its name in documents, and the types of its fields.
    macro_rules! without {
        ($($Scorer:ident $name:literal ($($field:ty),+);)+) => {$(
            pub(in crate::config) enum $Scorer {}

            impl $Scorer {
                #[allow(
                    clippy::too_many_arguments,
                    reason = "as many as the row of the strategy has fields"
                )]
                pub(in crate::config) fn from_config($(_: $field),+) -> Result<Self, ConfigError> {
                    let text = concat!("the scorer `", $name, "` needs the feature `relevance` of cupel");
                    Err(ConfigError::invalid(CupelError::ScorerConfig(text.to_owned())))
                }
            }

            impl Scorer for $Scorer {
                fn score(&self, _: &ContextItem, _: &[ContextItem]) -> f64 {
                    match *self {}
                }
            }
        )+};
    }

    without! {
        RelevanceScorer "relevance" (Option<Query>, Language, f64, f64);
        NeighborScorer "neighbor" (Box<ScorerConfig>, NearKernel, WideKernel, bool);
        ConversationScorer "conversation"
            (Option<Query>, Language, f64, f64, NearKernel, WideKernel, bool, QuestionRules);
    }
}
