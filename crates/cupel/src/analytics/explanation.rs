//! Why is this item in, or out?

use std::fmt;

use super::sweep::least_growth;
use crate::diagnostics::Excerpt;
use crate::pipeline::{Ledger, PreparedRun};
use crate::{
    ContextBudget, ContextItem, CupelError, ExclusionReason, InclusionReason, Pipeline,
    PipelineStage, ScorePart,
};

/// Everything a run has to say about one candidate; see [`Pipeline::explain`].
///
/// Its `Display` is the explanation as text.
#[non_exhaustive]
#[derive(Debug, Clone, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct Explanation {
    /// The candidate's position in the input.
    pub index: usize,
    /// The candidate.
    pub item: ContextItem,
    /// What was decided, and where.
    pub decision: Decision,
    /// The score it was judged by.
    #[cfg_attr(feature = "serde", serde(with = "crate::wire::float"))]
    pub score: f64,
    /// How the score came about; `None` for a candidate that is not scored.
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "Option::is_none"))]
    pub parts: Option<ScorePart>,
    /// Its rank among the ranked candidates, from 0; `None` for one that is not ranked.
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "Option::is_none"))]
    pub rank: Option<usize>,
    /// The number of ranked candidates.
    pub ranked: usize,
    /// The tokens of the window.
    pub tokens_used: i64,
    /// The tokens left of the target.
    pub tokens_left: i64,
    /// The candidates that took its place: the copy that stayed, the pinned items, the items of
    /// its kind that fill the cap, or the selected items that rank behind it.
    pub displaced_by: Vec<usize>,
    /// By how many tokens both limits of the budget would have to grow at least for it to be
    /// selected; `None` if room is not what it lacks, or if it takes more than 131,072 tokens, or 2,048
    /// for slicers whose budgets have to be tried one by one.
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "Option::is_none"))]
    pub extra_tokens: Option<i64>,
    /// The candidates next to it in rank, better ones first.
    pub neighbours: Vec<Neighbour>,
}

/// What was decided about a candidate.
#[derive(Debug, Clone, PartialEq)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize),
    serde(tag = "decision", rename_all = "snake_case")
)]
pub enum Decision {
    /// It is in the window.
    Included {
        /// Its position in the window, from 0.
        position: usize,
        /// Why.
        reason: InclusionReason,
    },
    /// It is not.
    Excluded {
        /// The stage that decided.
        stage: PipelineStage,
        /// Why.
        reason: ExclusionReason,
    },
}

/// What a run decides about one of its candidates; see [`Pipeline::verdicts`].
#[non_exhaustive]
#[derive(Debug, Clone, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct Verdict {
    /// What was decided, and where.
    pub decision: Decision,
    /// The score it was judged by.
    #[cfg_attr(feature = "serde", serde(with = "crate::wire::float"))]
    pub score: f64,
    /// How the score came about; `None` for a candidate that is not scored.
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "Option::is_none"))]
    pub parts: Option<ScorePart>,
    /// Its rank among the ranked candidates, from 0; `None` for one that is not ranked.
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "Option::is_none"))]
    pub rank: Option<usize>,
    /// The candidate of the same content that stayed, if this one is a copy.
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "Option::is_none"))]
    pub copy_of: Option<usize>,
}

/// A candidate next to another in rank.
#[derive(Debug, Clone, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct Neighbour {
    /// The candidate's position in the input.
    pub index: usize,
    /// Its rank, from 0.
    pub rank: usize,
    /// Its score.
    #[cfg_attr(feature = "serde", serde(with = "crate::wire::float"))]
    pub score: f64,
    /// Its tokens.
    pub tokens: i64,
    /// Whether it is in the window.
    pub included: bool,
}

impl Pipeline {
    /// Explains what a run decides about the candidate at `index`: its rank and score, the parts of
    /// the score, the stage that decided, what took its place, how much more budget it needs.
    ///
    /// # Errors
    ///
    /// [`CupelError::PipelineConfig`] if there is no such candidate; otherwise as
    /// [`run`](Self::run).
    ///
    /// ```
    /// use cupel::*;
    ///
    /// let scorer = CompositeScorer::builder()
    ///     .add(ReflexiveScorer, 3.0)
    ///     .add(KindScorer::with_default_weights(), 1.0)
    ///     .build()?;
    /// let pipeline = Pipeline::new(scorer, GreedySlice, ChronologicalPlacer);
    /// let items = [
    ///     ContextItem::builder("short", 20).future_relevance_hint(0.5).build()?,
    ///     ContextItem::builder("long", 90).future_relevance_hint(0.9).build()?,
    /// ];
    /// let budget = ContextBudget::with_target(100, 100)?;
    /// let why = pipeline.explain(&items, &budget, 1)?;
    /// assert_eq!(why.rank, Some(0));
    /// assert_eq!(why.displaced_by, [0]); // denser
    /// assert_eq!(why.extra_tokens, Some(10));
    /// println!("{why}");
    /// # Ok::<(), CupelError>(())
    /// ```
    pub fn explain(
        &self,
        items: &[ContextItem],
        budget: &ContextBudget,
        index: usize,
    ) -> Result<Explanation, CupelError> {
        let Some(item) = items.get(index) else {
            return Err(CupelError::PipelineConfig(format!(
                "there is no candidate {index}; there are {}",
                items.len()
            )));
        };
        let prepared = PreparedRun::new(self.policy(), items)?;
        let ledger = prepared.decide(budget)?;
        let window = ledger.window();
        let position = window.iter().position(|&candidate| candidate == index);
        let decision = Decision::of(&ledger, index, position);
        let rank = prepared.ranked().iter().position(|c| c == index);
        let is_in = |candidate: &usize| window.contains(candidate);
        let tokens_used: i128 = window.iter().map(|&c| i128::from(items[c].tokens())).sum();
        let tokens_left = i128::from(budget.target_tokens()) - tokens_used;
        Ok(Explanation {
            index,
            item: item.clone(),
            displaced_by: displaced_by(&ledger, &prepared, &decision, index),
            extra_tokens: match &decision {
                Decision::Excluded {
                    reason:
                        ExclusionReason::BudgetExceeded { .. }
                        | ExclusionReason::PinnedOverride { .. }
                        | ExclusionReason::GroupExcluded { .. },
                    ..
                } => least_growth(&prepared, budget, index),
                _ => None,
            },
            decision,
            score: prepared.score(index),
            parts: prepared.explain_scores()?.swap_remove(index),
            rank,
            ranked: prepared.ranked().len(),
            tokens_used: crate::model::reported(tokens_used),
            tokens_left: crate::model::reported(tokens_left),
            neighbours: neighbours(&prepared, rank, is_in),
        })
    }
}

impl Pipeline {
    /// What a run decides about every candidate, by its position in `items`: the answers of
    /// [`dry_run`](Self::dry_run) for callers that keep data beside their items, with the parts of
    /// every score.
    ///
    /// # Errors
    ///
    /// As [`run`](Self::run).
    ///
    /// ```
    /// use cupel::*;
    ///
    /// let pipeline = Pipeline::new(ReflexiveScorer, GreedySlice, ChronologicalPlacer);
    /// let items = [
    ///     ContextItem::builder("long", 90).future_relevance_hint(0.3).build()?,
    ///     ContextItem::builder("short", 20).future_relevance_hint(0.9).build()?,
    /// ];
    /// let verdicts = pipeline.verdicts(&items, &ContextBudget::with_target(100, 100)?)?;
    /// assert!(matches!(verdicts[0].decision, Decision::Excluded { .. }));
    /// assert!(matches!(verdicts[1].decision, Decision::Included { position: 0, .. }));
    /// assert_eq!(verdicts[1].rank, Some(0));
    /// # Ok::<(), CupelError>(())
    /// ```
    pub fn verdicts(
        &self,
        items: &[ContextItem],
        budget: &ContextBudget,
    ) -> Result<Vec<Verdict>, CupelError> {
        let prepared = PreparedRun::new(self.policy(), items)?;
        let ledger = prepared.decide(budget)?;
        let mut positions = vec![None; items.len()];
        for (position, &candidate) in ledger.window().iter().enumerate() {
            positions[candidate] = Some(position);
        }
        let mut ranks = vec![None; items.len()];
        for (rank, candidate) in prepared.ranked().iter().enumerate() {
            ranks[candidate] = Some(rank);
        }
        let parts = prepared.explain_scores()?.into_iter();
        let verdicts = parts.enumerate().map(|(index, parts)| Verdict {
            decision: Decision::of(&ledger, index, positions[index]),
            score: prepared.score(index),
            parts,
            rank: ranks[index],
            copy_of: ledger.survivor(index),
        });
        Ok(verdicts.collect())
    }
}

impl Decision {
    fn of(ledger: &Ledger<'_>, index: usize, position: Option<usize>) -> Self {
        match (ledger.reason(index), ledger.stage_of_exclusion(index)) {
            (Some(reason), Some(stage)) if position.is_none() => Self::Excluded { stage, reason },
            _ => Self::Included {
                position: position.unwrap_or_default(),
                reason: ledger.inclusion(index),
            },
        }
    }
}

fn displaced_by(
    ledger: &Ledger<'_>,
    prepared: &PreparedRun<'_>,
    decision: &Decision,
    index: usize,
) -> Vec<usize> {
    let items = prepared.items();
    let Decision::Excluded { reason, .. } = decision else {
        return Vec::new();
    };
    let selected =
        |candidate: &usize| ledger.window().contains(candidate) && items[*candidate].tokens() > 0;
    let ranked = prepared.ranked().iter();
    match reason {
        ExclusionReason::Deduplicated { .. } => ledger.survivor(index).into_iter().collect(),
        ExclusionReason::PinnedOverride { .. } => {
            prepared.pinned().iter().copied().filter(selected).collect()
        }
        ExclusionReason::CountCapExceeded { .. } => {
            let of_kind = |candidate: &usize| items[*candidate].kind() == items[index].kind();
            ranked.filter(of_kind).filter(selected).collect()
        }
        _ => {
            let behind = ranked.skip_while(|candidate| *candidate != index);
            behind.filter(selected).collect()
        }
    }
}

fn neighbours(
    prepared: &PreparedRun<'_>,
    rank: Option<usize>,
    is_in: impl Fn(&usize) -> bool,
) -> Vec<Neighbour> {
    const EACH_SIDE: usize = 2;
    let Some(own) = rank else { return Vec::new() };
    let ranked = prepared.ranked();
    let last = (own + EACH_SIDE).min(ranked.len() - 1);
    (own.saturating_sub(EACH_SIDE)..=last)
        .filter(|&rank| rank != own)
        .map(|rank| (rank, ranked.at(rank)))
        .map(|(rank, index)| Neighbour {
            index,
            rank,
            score: prepared.score(index),
            tokens: prepared.items()[index].tokens(),
            included: is_in(&index),
        })
        .collect()
}

/// The explanation as text.
impl fmt::Display for Explanation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (index, tokens) = (self.index, self.item.tokens());
        writeln!(
            f,
            "candidate {index}, {tokens} tokens: {}",
            Excerpt(self.item.content())
        )?;
        match &self.decision {
            Decision::Included { position, reason } => {
                writeln!(
                    f,
                    "  in, item {} of the window: {}",
                    position + 1,
                    reason.name()
                )?;
            }
            Decision::Excluded { stage, reason } => {
                writeln!(f, "  out at {}: {reason}", stage.name())?;
            }
        }
        if let Some(rank) = self.rank {
            writeln!(f, "  rank {} of {}", rank + 1, self.ranked)?;
        }
        writeln!(
            f,
            "  the window holds {} tokens, {} are left of the target",
            self.tokens_used, self.tokens_left
        )?;
        if !self.displaced_by.is_empty() {
            const SHOWN: usize = 8;
            let shown = self.displaced_by.iter().take(SHOWN);
            let shown: Vec<String> = shown.map(usize::to_string).collect();
            write!(f, "  displaced by candidate {}", shown.join(", "))?;
            match self.displaced_by.len().saturating_sub(SHOWN) {
                0 => writeln!(f)?,
                more => writeln!(f, " and {more} more")?,
            }
        }
        if let Some(extra) = self.extra_tokens {
            writeln!(f, "  in with {extra} tokens more")?;
        }
        match &self.parts {
            Some(parts) => parts.write(f, 1)?,
            None => writeln!(f, "  score {}", self.score)?,
        }
        for neighbour in &self.neighbours {
            let Neighbour {
                index,
                rank,
                score,
                tokens,
                included,
            } = neighbour;
            let verdict = if *included { "in" } else { "out" };
            writeln!(
                f,
                "  rank {}: candidate {index}, {tokens} tokens, score {score:.6}, {verdict}",
                rank + 1
            )?;
        }
        Ok(())
    }
}
