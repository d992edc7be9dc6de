//! Many budgets, one scoring pass.

use std::borrow::Cow;
use std::cell::OnceCell;

use super::classify::{Classes, classify};
use super::ledger::Ledger;
use super::positions::Positions;
use super::{Policy, deduplicate, place, score, slice, sort};
use crate::scorer::explained;
use crate::{ContextBudget, ContextItem, CupelError, ScorePart, ScoredRef};

/// The part of a run that does not depend on the budget, done once: classes, scores, copies, and
/// the ranking if it is asked for.
pub(crate) struct PreparedRun<'a> {
    policy: &'a Policy,
    ledger: Ledger<'a>,
    classes: Classes,
    candidates: Positions,
    ranked: OnceCell<Positions>,
}

impl<'a> PreparedRun<'a> {
    pub(crate) fn new(policy: &'a Policy, items: &'a [ContextItem]) -> Result<Self, CupelError> {
        let mut ledger = Ledger::new(items)?;
        let classes = classify(&mut ledger);
        score::score(&mut ledger, policy.scorer(), &classes)?;
        let mut candidates = classes.scoreable.clone();
        if policy.deduplication() && deduplicate::deduplicate(&mut ledger, &candidates) > 0 {
            candidates.retain(|candidate| !ledger.is_excluded(candidate));
        }
        Ok(Self {
            policy,
            ledger,
            classes,
            candidates,
            ranked: OnceCell::new(),
        })
    }

    /// The candidates a run with this budget selects: pinned, then by rank. They are not placed.
    pub(crate) fn select(&self, budget: &ContextBudget) -> Result<Vec<usize>, CupelError> {
        let effective = self.effective(budget)?;
        let sliced = self.slice(&effective)?;
        let pinned = self.classes.pinned.iter().copied();
        let merged: Vec<usize> = pinned.chain(sliced.kept.iter()).collect();
        let strategy = self.policy.overflow_strategy();
        let merge = place::merge(&self.ledger, &merged, budget, strategy)?;
        Ok(merge.kept.into_owned())
    }

    /// Whether a run with this budget selects the candidate.
    pub(crate) fn selects(
        &self,
        candidate: usize,
    ) -> impl Fn(&ContextBudget) -> Result<bool, CupelError> {
        let index = self.candidates.iter().position(|c| c == candidate);
        let list = self.ledger.unsorted(&self.candidates);
        let prepared = index.and_then(|index| self.policy.slicer().prepare(&list, index));
        move |budget| match &prepared {
            // There is no overflow then, or nothing left for the slicer.
            Some(is_chosen) => Ok(is_chosen(&self.effective(budget)?)),
            None => Ok(self.select(budget)?.contains(&candidate)),
        }
    }

    fn effective(&self, budget: &ContextBudget) -> Result<ContextBudget, CupelError> {
        Ok(budget.effective(self.classes.pinned_tokens(budget)?))
    }

    fn slice(&self, effective: &ContextBudget) -> Result<slice::Sliced, CupelError> {
        let (slicer, ranked) = (self.policy.slicer(), || Cow::Borrowed(self.ranked()));
        slice::slice(&self.ledger, slicer, &self.candidates, ranked, effective)
    }

    /// What a run with this budget decides about every candidate.
    pub(crate) fn decide(&self, budget: &ContextBudget) -> Result<Ledger<'a>, CupelError> {
        let mut ledger = self.ledger.clone();
        ledger.kind_quotas = self.policy.slicer().is_quota();
        let effective = self.effective(budget)?;
        let sliced = self.slice(&effective)?;
        let without_pinned = budget.effective(0);
        let sliced = sliced.write(&mut ledger, &self.candidates, &effective, &without_pinned);
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
        let ranked = || sort::sort(&self.ledger, &self.candidates);
        self.ranked.get_or_init(ranked)
    }

    /// What the slicer sees.
    pub(crate) fn scored(&self) -> Vec<ScoredRef<'a>> {
        self.ledger.scored(self.ranked().iter())
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
