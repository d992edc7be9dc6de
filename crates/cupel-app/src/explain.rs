//! The question `explain`: why each message or item is in or out, or everything about one.

use std::ops::ControlFlow;

use cupel::{ContextBudget, ContextKind, Decisions, ExclusionReason, Explanation, InclusionReason};
use cupel_chat::{Cut, Warning};
use serde::{Serialize, Serializer};

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

/// Everything about one message or item. As JSON, the fields of the explanation are its own.
#[derive(Debug, Clone, Serialize)]
pub struct ExplainOneAnswer {
    /// The explanation. The tokens of the window include its markers; as JSON, ranks count from 1.
    #[serde(flatten, serialize_with = "write_explanation")]
    pub explanation: Explanation,
    /// The cut that shortened or dropped the message, if the policy has a replay.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cut: Option<Cut>,
    /// The message with the newer result that supersedes its own, if it is shortened.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub superseded_by: Option<usize>,
    /// The ranges of targets, first and last, above that of the run that include a shortened message in full, if the
    /// policy has a replay.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub in_full: Vec<(i64, i64)>,
}

/// The schema of an [`Explanation`] whose ranks count from 1, with the other fields.
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
        let cut = generator.subschema_for::<Cut>();
        if let Some(properties) = schema.get_mut("properties").and_then(Value::as_object_mut) {
            let ranges = properties.get("included_at").cloned().unwrap_or_default();
            let mut add = |name: &str, mut schema: Value, description: &str| {
                schema["description"] = description.into();
                properties.insert(name.to_owned(), schema);
            };
            let of_cut =
                "The cut that shortened or dropped the message, if the policy has a replay.";
            add("cut", cut.into(), of_cut);
            let of_newer =
                "The message with the newer result that supersedes its own, if it is shortened.";
            let position = serde_json::json!({"type": "integer", "format": "uint", "minimum": 0});
            add("superseded_by", position, of_newer);
            let of_full = "The ranges of targets, first and last, above that of the run that include a shortened message in full, if the policy has a replay.";
            add("in_full", ranges, of_full);
        }
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

    /// Explains everything about one message or item.
    ///
    /// # Errors
    ///
    /// [`Fault::OutOfRange`](crate::Fault::OutOfRange), [`Fault::Fit`](crate::Fault::Fit) and
    /// [`Fault::Run`](crate::Fault::Run).
    pub fn explain_item(&self, index: usize) -> Result<ExplainOneAnswer, Error> {
        self.check_index(index)?;
        let decisions = self.decide()?;
        let tokens = self.tokens_of(&decisions);
        let mut explanation = self
            .pipeline()
            .explain(self.items(), self.budget(), index)?;
        let markers = tokens - explanation.tokens_used;
        explanation.tokens_used += markers;
        explanation.tokens_left -= markers;
        let mut in_full = Vec::new();
        if self.has_replay() {
            in_full = self.add_growth(&decisions, &mut explanation)?;
        }
        let is_short = matches!(
            self.inclusion(&decisions, index),
            Some(InclusionReason::Shortened { .. })
        );
        Ok(ExplainOneAnswer {
            cut: self.cut(index),
            superseded_by: self.superseded_by(index).filter(|_| is_short),
            explanation,
            in_full,
        })
    }

    /// Adds the budgets above the own one that include a message, found by a replay at each. Returns those that include
    /// it in full.
    fn add_growth(
        &self,
        decisions: &Decisions<'_>,
        explanation: &mut Explanation,
    ) -> Result<Vec<(i64, i64)>, Error> {
        let (index, target) = (explanation.index, self.budget().target_tokens());
        explanation.extra_tokens = None;
        explanation.included_at.clear();
        explanation.in_full_at = None;
        let included = self.inclusion(decisions, index);
        let is_short = matches!(included, Some(InclusionReason::Shortened { .. }));
        let top = self.enough();
        if top <= target || (included.is_some() && !is_short) {
            return Ok(Vec::new());
        }
        let mut go_on = |_| ControlFlow::Continue(());
        let swept = self.swept(target + 1..=top, &mut go_on)?;
        let item = &swept.items[index];
        if is_short {
            let forms = item.forms().into_iter();
            let in_full = forms.filter(|(.., view)| view.is_none());
            let in_full: Vec<(i64, i64)> = in_full.map(|(from, to, _)| (from, to)).collect();
            explanation.in_full_at = in_full.first().map(|(from, _)| *from);
            return Ok(in_full);
        }
        explanation.included_at.clone_from(&item.intervals);
        let first = item.intervals.first();
        explanation.extra_tokens = first.map(|(from, _)| from - target);
        Ok(Vec::new())
    }
}

/// Writes ranks that count from 1, as texts for people do.
fn write_explanation<S: Serializer>(
    explanation: &Explanation,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    let mut explanation = explanation.clone();
    explanation.rank = explanation.rank.map(|rank| rank + 1);
    for neighbor in &mut explanation.neighbors {
        neighbor.rank += 1;
    }
    explanation.serialize(serializer)
}
