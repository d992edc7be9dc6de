//! [`Explanation`]: everything a run decided about one candidate, as data and as text.

use std::fmt;

use super::sweep::intervals_above;
use crate::diagnostics::{Blocker, Excerpt, Grouped};
use crate::pipeline::{Choice, PreparedRun};
use crate::{
    ContextBudget, ContextItem, CupelError, Decision, Decisions, Pipeline, Retention, ScorePart,
};

/// What a run decided about one candidate, and why; see [`Pipeline::explain`].
///
/// Its `Display` writes the explanation as text.
#[non_exhaustive]
#[derive(Debug, Clone, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Explanation {
    /// The candidate's position in the input.
    pub index: usize,
    /// The candidate.
    pub item: ContextItem,
    /// The decision, and the stage that made it.
    pub decision: Decision,
    /// The candidate's score.
    #[cfg_attr(feature = "serde", serde(with = "crate::wire::float"))]
    #[cfg_attr(feature = "schema", schemars(with = "crate::schema::Float"))]
    pub score: f64,
    /// How the score is composed; `None` for a candidate that is not scored.
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "Option::is_none"))]
    pub parts: Option<ScorePart>,
    /// The candidate's rank, from 0; `None` for one that is not ranked.
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "Option::is_none"))]
    pub rank: Option<usize>,
    /// The number of ranked candidates.
    pub ranked: usize,
    /// The tokens of the window.
    pub tokens_used: i64,
    /// The tokens that the window does not use of its [limit](ContextBudget::window_limit); negative after an
    /// overflow.
    pub tokens_left: i64,
    /// The budget of the run.
    pub budget: ContextBudget,
    /// The candidates in the window instead of this one: the duplicate that stayed, the similar or newer
    /// item, the pinned items, the items of its kind that fill the count limit, or the selected items of lower rank
    /// that are [droppable](Retention::Droppable).
    pub displaced_by: Vec<usize>,
    /// The least number of tokens by which both limits of the budget must grow for the candidate to
    /// be selected; `None` if the budget is not the cause, or if more than 131,072 tokens are needed,
    /// or more than 2,048 for slicers that have to try budgets one by one.
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "Option::is_none"))]
    pub extra_tokens: Option<i64>,
    /// The ranges of targets, first and last, at which the candidate is included, from the least one
    /// above the target of the run. The search ends 131,072 tokens above that one; for slicers that
    /// have to try budgets one by one it ends there.
    pub included_at: Vec<(i64, i64)>,
    /// The least target above that of the run at which the candidate is included in full; `None` if it is
    /// not shortened, or if the target is too far away, as in `extra_tokens`.
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "Option::is_none"))]
    pub in_full_at: Option<i64>,
    /// The candidates next to this one in rank, better ones first.
    pub neighbors: Vec<Neighbor>,
}

/// A candidate next to another in rank.
#[non_exhaustive]
#[derive(Debug, Clone, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Neighbor {
    /// The candidate's position in the input.
    pub index: usize,
    /// Its rank, from 0.
    pub rank: usize,
    /// Its score.
    #[cfg_attr(feature = "serde", serde(with = "crate::wire::float"))]
    #[cfg_attr(feature = "schema", schemars(with = "crate::schema::Float"))]
    pub score: f64,
    /// Its tokens.
    pub tokens: i64,
    /// Whether it is in the window.
    pub included: bool,
}

/// How far above a target an explanation searches. Farther than a model's whole window the answer would
/// help nobody.
const SEARCHED: i64 = 1 << 17;

impl Pipeline {
    /// Explains what a run decides about the candidate at `index`: its score and the parts of the
    /// score, its rank, the stage that decided, the candidates included instead, and the budgets at
    /// which it is included.
    ///
    /// # Errors
    ///
    /// [`CupelError::PipelineConfig`] if `index` is out of range; otherwise as [`run`](Self::run).
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
    /// assert!(why.to_string().contains("included at a budget of 110\n"));
    /// # Ok::<(), CupelError>(())
    /// ```
    pub fn explain(
        &self,
        items: &[ContextItem],
        budget: &ContextBudget,
        index: usize,
    ) -> Result<Explanation, CupelError> {
        let prepared = PreparedRun::new(self, items)?;
        let decisions = prepared.decide(budget)?;
        let mut explanation = Explanation::new(&decisions, budget, index)?;
        let reason = decisions.exclusion(index);
        if reason.is_some_and(|reason| reason.is_for_lack_of_tokens())
            && let Some(extra) = least_growth(&prepared, budget, index, false)
        {
            let first = budget.target_tokens() + extra;
            let swept = budget.grown_by(extra);
            let swept = swept.and_then(|it| intervals_above(&prepared, &it, index, SEARCHED));
            explanation.extra_tokens = Some(extra);
            explanation.included_at = swept.map_or(vec![(first, first)], |it| it.intervals);
        }
        if decisions.view(index).is_some() {
            let growth = least_growth(&prepared, budget, index, true);
            explanation.in_full_at = growth.map(|growth| budget.target_tokens() + growth);
        }
        Ok(explanation)
    }
}

/// Returns the least growth of both limits of `budget` at which `candidate` is selected, in any form or
/// in full; `None` if it is more than [`SEARCHED`] tokens, or more than 2,048 for a slicer that has to
/// be tried at each budget.
fn least_growth(
    prepared: &PreparedRun<'_>,
    budget: &ContextBudget,
    candidate: usize,
    in_full: bool,
) -> Option<i64> {
    // One run per budget is slower by orders of magnitude than a sweep, and 2,048 of them are about
    // what someone waits for.
    const FARTHEST_ONE_BY_ONE: i64 = 1 << 11;
    // A knapsack's table grows with the span, so small spans are tried first. All of them together
    // cost at most twice the last one.
    let mut span: i64 = 1 << 10;
    while span <= SEARCHED {
        let Some(swept) = intervals_above(prepared, budget, candidate, span) else {
            return (0..=FARTHEST_ONE_BY_ONE).find(|&growth| {
                let budget = budget.grown_by(growth);
                let choice = budget.and_then(|budget| prepared.select(&budget).ok());
                choice.is_some_and(|Choice { kept, shortened }| {
                    let is_wanted_form = !in_full || shortened.view(candidate).is_none();
                    is_wanted_form && kept.contains(&candidate)
                })
            });
        };
        let forms = swept.forms().into_iter();
        let mut wanted = forms.filter(|(_, _, view)| !in_full || view.is_none());
        if let Some((first, _, _)) = wanted.next() {
            return Some(first - budget.target_tokens());
        }
        span *= 2;
    }
    None
}

impl Explanation {
    /// Explains a candidate of a finished run.
    fn new(
        decisions: &Decisions<'_>,
        budget: &ContextBudget,
        index: usize,
    ) -> Result<Self, CupelError> {
        let Some(decision) = decisions.get(index) else {
            return Err(CupelError::no_candidate(index, decisions.items().len()));
        };
        Ok(Self {
            index,
            item: decisions.items()[index].clone(),
            decision,
            score: decisions.score(index),
            parts: decisions.score_parts()?.swap_remove(index),
            rank: decisions.rank(index),
            ranked: decisions.ranking().len(),
            tokens_used: decisions.tokens_used(),
            tokens_left: budget
                .window_limit()
                .saturating_sub(decisions.tokens_used()),
            budget: budget.clone(),
            displaced_by: displaced_by(decisions, index),
            extra_tokens: None,
            included_at: Vec::new(),
            in_full_at: None,
            neighbors: neighbors(decisions, index),
        })
    }
}

fn displaced_by(decisions: &Decisions<'_>, index: usize) -> Vec<usize> {
    let items = decisions.items();
    let Some(reason) = decisions.exclusion(index) else {
        return Vec::new();
    };
    let takes_tokens = |candidate: &usize| {
        decisions.position(*candidate).is_some() && decisions.item(*candidate).tokens() > 0
    };
    let ranked = decisions.ranking().iter().copied();
    match reason.blocker() {
        Blocker::Survivor => decisions.copy_of(index).into_iter().collect(),
        Blocker::OtherItem => {
            let is_other = |candidate: &usize| {
                let content = Some(items[*candidate].content());
                decisions.position(*candidate).is_some() && content == reason.content()
            };
            ranked.filter(is_other).take(1).collect()
        }
        Blocker::Pinned => {
            let pinned = (0..items.len()).filter(|&candidate| items[candidate].pinned());
            pinned.filter(takes_tokens).collect()
        }
        Blocker::SameKind => {
            let of_kind = |candidate: &usize| items[*candidate].kind() == items[index].kind();
            ranked.filter(of_kind).filter(takes_tokens).collect()
        }
        Blocker::LowerRanks => {
            let behind = ranked.skip_while(|candidate| *candidate != index);
            // A mandatory item is in every window. It took the place of nothing, whatever its rank.
            let is_droppable = |candidate: &usize| {
                let retention = items[*candidate].retention();
                retention == Retention::Droppable
            };
            behind.filter(takes_tokens).filter(is_droppable).collect()
        }
    }
}

fn neighbors(decisions: &Decisions<'_>, index: usize) -> Vec<Neighbor> {
    const EACH_SIDE: usize = 2;
    let Some(own) = decisions.rank(index) else {
        return Vec::new();
    };
    let ranked = decisions.ranking();
    let last = (own + EACH_SIDE).min(ranked.len() - 1);
    let ranks = (own.saturating_sub(EACH_SIDE)..=last).filter(|&rank| rank != own);
    let neighbor = |rank: usize| Neighbor {
        index: ranked[rank],
        rank,
        score: decisions.score(ranked[rank]),
        tokens: decisions.items()[ranked[rank]].tokens(),
        included: decisions.position(ranked[rank]).is_some(),
    };
    ranks.map(neighbor).collect()
}

/// Writes the explanation as text.
impl fmt::Display for Explanation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (index, tokens) = (self.index, self.item.tokens());
        let content = Excerpt(self.item.content());
        writeln!(f, "candidate {index}, {tokens} tokens: {content}")?;
        match &self.decision {
            Decision::Included { position, reason } => {
                let (place, why) = (position + 1, reason.phrase());
                writeln!(f, "  included at place {place} of the window: {why}")?;
            }
            Decision::Excluded { stage, reason } => {
                writeln!(f, "  excluded by {stage}: {reason}")?;
            }
        }
        if let Some(rank) = self.rank {
            writeln!(f, "  rank {} of {}", rank + 1, self.ranked)?;
        }
        self.write_limit(f)?;
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
        self.write_budgets(f)?;
        match &self.parts {
            Some(parts) => parts.write(f, 1)?,
            None => writeln!(f, "  score {}", self.score)?,
        }
        for neighbor in &self.neighbors {
            let rank = neighbor.rank + 1;
            let Neighbor {
                index,
                score,
                tokens,
                included,
                ..
            } = neighbor;
            let state = if *included { "included" } else { "excluded" };
            writeln!(
                f,
                "  rank {rank}: candidate {index}, {tokens} tokens, score {score:.6}, {state}"
            )?;
        }
        Ok(())
    }
}

impl Explanation {
    /// Writes how much of its limit the window uses.
    fn write_limit(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (used, limit) = (self.tokens_used, self.budget.window_limit());
        write!(
            f,
            "  the window uses {} of {}",
            Grouped(used),
            Grouped(limit)
        )?;
        let (target, max) = (self.budget.target_tokens(), self.budget.max_tokens());
        if limit < target {
            let name = if target == max { "target" } else { "budget" };
            let (max, reserve) = (Grouped(max), Grouped(self.budget.output_reserve()));
            write!(f, " ({name} {max} less reserve {reserve})")?;
        }
        writeln!(f)
    }

    /// Writes the budgets at which the candidate is included.
    fn write_budgets(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const SHOWN: usize = 4;
        if let Some(budget) = self.in_full_at {
            writeln!(f, "  in full at a budget of {}", Grouped(budget))?;
        }
        let Some(&(first, _)) = self.included_at.first() else {
            return Ok(());
        };
        let end = first.saturating_add(SEARCHED);
        if self.included_at == [(first, first)] {
            let budget = Grouped(first);
            return writeln!(
                f,
                "  included at a budget of {budget}; larger budgets were not searched"
            );
        }
        if self.included_at == [(first, end)] {
            return writeln!(f, "  included at a budget of {}", Grouped(first));
        }
        let shown = self.included_at.iter().take(SHOWN);
        let shown = shown.map(|&(from, to)| match to {
            _ if to == end => format!("{} and above", Grouped(from)),
            _ if to == from => Grouped(from).to_string(),
            _ => format!("{} to {}", Grouped(from), Grouped(to)),
        });
        let shown: Vec<String> = shown.collect();
        write!(f, "  included at budgets of {}", shown.join(", "))?;
        match self.included_at.len().saturating_sub(SHOWN) {
            0 => writeln!(f),
            more => writeln!(f, " and {more} more ranges"),
        }
    }
}
