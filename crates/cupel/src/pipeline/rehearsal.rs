//! Many budgets, one scoring pass.

use super::classify::{Classes, classify};
use super::ledger::Ledger;
use super::positions::Positions;
use super::{Policy, deduplicate, place, score, slice, sort};
use crate::error::StrategyRole;
use crate::scorer::explained;
use crate::slicer::{PreparedSlice, check_distinct_positions};
use crate::{ContextBudget, ContextItem, CupelError, ScorePart, ScoredRef};

/// The part of a run that does not depend on the budget, done once: classes, scores, ranking.
pub(crate) struct Rehearsal<'a> {
    policy: &'a Policy,
    ledger: Ledger<'a>,
    classes: Classes,
    ranked: Positions,
    prepared: Option<PreparedSlice<'a>>,
}

impl<'a> Rehearsal<'a> {
    pub(crate) fn new(policy: &'a Policy, items: &'a [ContextItem]) -> Result<Self, CupelError> {
        let mut ledger = Ledger::new(items)?;
        let classes = classify(&mut ledger);
        score::score(&mut ledger, policy.scorer(), &classes)?;
        let mut candidates = classes.scoreable.clone();
        if policy.deduplication() && deduplicate::deduplicate(&mut ledger, &candidates) > 0 {
            candidates.retain(|candidate| !ledger.is_excluded(candidate));
        }
        let ranked = sort::sort(&ledger, &candidates);
        let prepared = policy.slicer().prepare(&ledger.scored(ranked.iter()));
        Ok(Self {
            policy,
            ledger,
            classes,
            ranked,
            prepared,
        })
    }

    /// The candidates a run with this budget selects: pinned, then by rank. They are not placed.
    pub(crate) fn select(&self, budget: &ContextBudget) -> Result<Vec<usize>, CupelError> {
        let effective = budget.effective(self.classes.pinned_tokens(budget)?);
        let kept = match &self.prepared {
            Some(prepared) => {
                let mut ranks = prepared(&effective);
                check_distinct_positions(&ranks, self.ranked.len(), StrategyRole::Slicer)?;
                ranks.sort_unstable();
                ranks.into_iter().map(|rank| self.ranked.at(rank)).collect()
            }
            None => self.slice(&effective)?.kept,
        };
        let pinned = self.classes.pinned.iter().copied();
        let merged: Vec<usize> = pinned.chain(kept.iter()).collect();
        let strategy = self.policy.overflow_strategy();
        let merge = place::merge(&self.ledger, &merged, budget, strategy)?;
        Ok(merge.kept.into_owned())
    }

    fn slice(&self, effective: &ContextBudget) -> Result<slice::Sliced, CupelError> {
        let (slicer, ranked) = (self.policy.slicer(), &self.ranked);
        slice::slice(&self.ledger, slicer, ranked, Some(ranked), effective)
    }

    /// What a run with this budget decides about every candidate.
    pub(crate) fn decide(&self, budget: &ContextBudget) -> Result<Ledger<'a>, CupelError> {
        let mut ledger = self.ledger.clone();
        let effective = budget.effective(self.classes.pinned_tokens(budget)?);
        let sliced = self.slice(&effective)?;
        let without_pinned = budget.effective(0);
        let sliced = sliced.write(&mut ledger, &self.ranked, &effective, &without_pinned);
        let pinned = self.classes.pinned.iter().copied();
        let merged: Vec<usize> = pinned.chain(sliced.iter()).collect();
        place::place(&mut ledger, self.policy, &merged, budget, |_| ())?;
        Ok(ledger)
    }

    /// The window of a run with this budget.
    pub(crate) fn window(&self, budget: &ContextBudget) -> Result<Vec<usize>, CupelError> {
        place::arrange(&self.ledger, self.policy, &self.select(budget)?)
    }

    pub(crate) fn pinned(&self) -> &[usize] {
        &self.classes.pinned
    }

    /// The candidates in the order the slicer sees them.
    pub(crate) fn ranked(&self) -> &Positions {
        &self.ranked
    }

    /// What the slicer sees.
    pub(crate) fn scored(&self) -> Vec<ScoredRef<'a>> {
        self.ledger.scored(self.ranked.iter())
    }

    pub(crate) fn score(&self, candidate: usize) -> f64 {
        self.ledger.score(candidate)
    }

    /// How every candidate's score comes about; `None` for one that is not scored.
    pub(crate) fn explain_scores(&self) -> Result<Vec<Option<ScorePart>>, CupelError> {
        let mut parts = vec![None; self.items().len()];
        if self.classes.scoreable.len() > 0 {
            let items = score::scoreable_items(self.items());
            let explained = explained(self.policy.scorer(), &items)?;
            for (candidate, part) in self.classes.scoreable.iter().zip(explained) {
                parts[candidate] = Some(part);
            }
        }
        Ok(parts)
    }

    pub(crate) fn policy(&self) -> &'a Policy {
        self.policy
    }

    pub(crate) fn items(&self) -> &'a [ContextItem] {
        self.ledger.items()
    }

    /// The exact tokens of the pinned items.
    pub(crate) fn pinned_tokens(&self) -> i128 {
        self.classes.total_pinned_tokens()
    }
}
