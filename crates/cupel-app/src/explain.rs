//! The question `explain`: why each message or item is in or out, or everything about one.

use cupel::{ContextBudget, ContextKind, Decisions, ExclusionReason, Explanation, InclusionReason};
use cupel_chat::{Cut, Warning};
use serde::Serialize;

use crate::error::Error;
use crate::prepared::Prepared;
use crate::run::write_score;

/// Why each message or item is in or out.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ExplainAnswer {
    /// The name of the policy.
    pub policy: String,
    /// The limits.
    pub budget: ContextBudget,
    /// The request overhead: the tokens of tools and parameters.
    pub overhead: i64,
    /// The tokens of the window, with its markers.
    pub tokens_used: i64,
    /// The window in order, then the other candidates, best score first.
    pub candidates: Vec<ExplainedCandidate>,
    /// What the provider may reject in the window.
    pub warnings: Vec<Warning>,
}

/// A message or an item, and what was decided about it.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ExplainedCandidate {
    /// Its position.
    pub index: usize,
    /// Whether it is in the window.
    pub included: bool,
    /// The role of a message as written, or the kind of an item.
    pub role: String,
    /// Its kind.
    pub kind: ContextKind,
    /// Its tokens in the window, or as they were read if it is out.
    pub tokens: i64,
    /// Its score; a string if it is not finite.
    #[serde(serialize_with = "write_score")]
    #[cfg_attr(feature = "schema", schemars(with = "cupel::schema::Float"))]
    pub score: f64,
    /// Why it is in or out.
    pub reason: Reason,
    /// The cut that shortened or dropped it, if the policy has a replay.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cut: Option<Cut>,
    /// The message with the newer result that supersedes its own, if it is shortened.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub superseded_by: Option<usize>,
}

/// Why a candidate is in or out.
#[derive(Debug, Clone, Serialize)]
#[serde(untagged)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum Reason {
    /// Why it is in.
    In(InclusionReason),
    /// Why it is out.
    Out(ExclusionReason),
}

/// Everything about one message or item: an [`Explanation`] whose tokens include the markers of the window and
/// whose ranks count from 1.
#[derive(Debug, Clone, Serialize)]
#[serde(transparent)]
pub struct ExplainOneAnswer(Explanation);

/// The schema of an [`Explanation`], except that ranks count from 1.
#[cfg(feature = "schema")]
impl schemars::JsonSchema for ExplainOneAnswer {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "ExplainOneAnswer".into()
    }

    fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
        use serde_json::Value;

        fn count_from_1(properties: Option<&mut Value>) {
            let rank = properties.and_then(|it| it.pointer_mut("/rank/description"));
            if let Some(Value::String(text)) = rank {
                *text = text.replace("from 0", "from 1");
            }
        }

        let mut schema = Explanation::json_schema(generator);
        let summary = "Everything about one message or item. Ranks count from 1, positions from 0.";
        schema.insert("description".to_owned(), summary.into());
        count_from_1(schema.get_mut("properties"));
        let neighbor = generator.definitions_mut().get_mut("Neighbor");
        count_from_1(neighbor.and_then(|it| it.get_mut("properties")));
        schema
    }
}

impl Prepared {
    /// Explains why each message or item is in or out.
    ///
    /// # Errors
    ///
    /// [`Fault::Fit`](crate::Fault::Fit) and [`Fault::Run`](crate::Fault::Run).
    pub fn explain(&self) -> Result<ExplainAnswer, Error> {
        let decisions = self.decide()?;
        let window = decisions.window().iter().copied();
        let all = window.chain(decisions.excluded());
        let all = all.filter(|&index| index < self.len());
        Ok(ExplainAnswer {
            policy: self.setting.policy.name.clone(),
            budget: self.budget().clone(),
            overhead: self.overhead(),
            tokens_used: self.tokens_of(&decisions),
            candidates: all
                .filter_map(|it| self.explained(&decisions, it))
                .collect(),
            warnings: self.warnings(&decisions),
        })
    }

    /// Returns what was decided about a candidate; `None` if the run has none at this position.
    fn explained(&self, decisions: &Decisions<'_>, index: usize) -> Option<ExplainedCandidate> {
        let item = decisions.item(index);
        let reason = match self.inclusion(decisions, index) {
            Some(reason) => Reason::In(reason),
            None => Reason::Out(decisions.exclusion(index)?),
        };
        Some(ExplainedCandidate {
            index,
            included: matches!(reason, Reason::In(_)),
            role: self.label(index),
            kind: item.kind().clone(),
            tokens: item.tokens(),
            score: decisions.score(index),
            cut: self.cut(index),
            superseded_by: match reason {
                Reason::In(InclusionReason::Shortened { .. }) => self.superseded_by(index),
                _ => None,
            },
            reason,
        })
    }

    /// Explains everything about one message or item. The tokens of the window include its markers.
    ///
    /// # Errors
    ///
    /// [`Fault::OutOfRange`](crate::Fault::OutOfRange), [`Fault::Fit`](crate::Fault::Fit) and
    /// [`Fault::Run`](crate::Fault::Run).
    pub fn explain_item(&self, index: usize) -> Result<Explanation, Error> {
        self.check_index(index)?;
        let tokens = self.tokens_of(&self.decide()?);
        let mut explanation = self
            .pipeline()
            .explain(self.items(), self.budget(), index)?;
        let markers = tokens - explanation.tokens_used;
        explanation.tokens_used += markers;
        explanation.tokens_left -= markers;
        if !self.has_other_budgets() {
            explanation.extra_tokens = None;
            explanation.included_at.clear();
            explanation.in_full_at = None;
        }
        Ok(explanation)
    }
}

impl From<Explanation> for ExplainOneAnswer {
    /// Counts ranks from 1, as texts for people do.
    fn from(mut explanation: Explanation) -> Self {
        explanation.rank = explanation.rank.map(|rank| rank + 1);
        for neighbor in &mut explanation.neighbors {
            neighbor.rank += 1;
        }
        Self(explanation)
    }
}
