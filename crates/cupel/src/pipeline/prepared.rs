//! [`Prepared`]: the state of a run between stages 4 and 5. [`PreparedRun`]: one preparation finished
//! for many budgets.

use std::cell::OnceCell;

use super::classify::Classes;
use super::ledger::Ledger;
use super::positions::Positions;
use super::shortened::Shortened;
use super::stages::Trace;
use super::{Decisions, Policy, Recording, finish, place, prepare, slice, sort};
use crate::{ContextBudget, ContextItem, CupelError, NullTraceCollector, ScoredRef};

/// A run after stages 1 to 4. Sorting happens when the ranking is first needed: some slicers need none.
#[derive(Clone)]
pub(super) struct Prepared<'a> {
    ledger: Ledger<'a>,
    /// The pinned candidates; the scoreable ones have been moved to `candidates`.
    classes: Classes,
    /// The scoreable candidates without duplicates, in input order.
    candidates: Positions,
    ranked: OnceCell<Positions>,
}

impl<'a> Prepared<'a> {
    pub(super) fn new(ledger: Ledger<'a>, classes: Classes, candidates: Positions) -> Self {
        Self {
            ledger,
            classes,
            candidates,
            ranked: OnceCell::new(),
        }
    }

    /// Runs stages 1 to 4 without a trace.
    pub(super) fn of(policy: &Policy, items: &'a [ContextItem]) -> Result<Self, CupelError> {
        let mut collector = NullTraceCollector;
        let mut trace = Trace::disabled(&mut collector);
        prepare(policy, items, None, &mut trace)
    }

    /// Returns what a run with this budget decides about every candidate.
    pub(super) fn decide(
        &self,
        policy: &Policy,
        budget: &ContextBudget,
    ) -> Result<Decisions<'a>, CupelError> {
        let mut collector = NullTraceCollector;
        let mut trace = Trace::disabled(&mut collector);
        let (prepared, recording) = (self.clone(), Recording::EveryCandidate);
        let ledger = finish(prepared, policy, budget, recording, &mut trace)?;
        Ok(Decisions::new(ledger, policy, budget))
    }

    /// Returns the budget that the pinned items leave for slicing.
    pub(super) fn effective(&self, budget: &ContextBudget) -> Result<ContextBudget, CupelError> {
        Ok(budget.effective(self.classes.pinned_tokens(budget)?))
    }

    /// Returns the candidates by rank.
    pub(super) fn ranked(&self) -> &Positions {
        let ranked = || sort::sort(&self.ledger, &self.candidates);
        self.ranked.get_or_init(ranked)
    }

    pub(super) fn slice(
        &self,
        policy: &Policy,
        effective: &ContextBudget,
    ) -> Result<slice::Sliced, CupelError> {
        let (slicer, ranked) = (policy.slicer(), || self.ranked());
        slice::slice(&self.ledger, slicer, &self.candidates, ranked, effective)
    }

    /// Returns the ledger, the pinned candidates, the others, and their ranking if it was needed.
    pub(super) fn into_parts(self) -> (Ledger<'a>, Vec<usize>, Positions, Option<Positions>) {
        let ranked = self.ranked.into_inner();
        (self.ledger, self.classes.pinned, self.candidates, ranked)
    }
}

/// What a run selects. It is not placed.
#[derive(Clone, Default, PartialEq)]
pub(crate) struct Choice {
    /// The selected candidates: pinned, then by rank.
    pub(crate) kept: Vec<usize>,
    /// Those of them that are kept as views. May have others, which the overflow strategy dropped.
    pub(crate) shortened: Shortened,
}

/// Stages 1 to 4 done once, for questions about many budgets. The policy's overflow observer is not
/// called.
pub(crate) struct PreparedRun<'a> {
    policy: &'a Policy,
    prepared: Prepared<'a>,
}

impl<'a> PreparedRun<'a> {
    pub(crate) fn new(policy: &'a Policy, items: &'a [ContextItem]) -> Result<Self, CupelError> {
        Ok(Self {
            policy,
            prepared: Prepared::of(policy, items)?,
        })
    }

    /// Returns what a run with this budget selects.
    pub(crate) fn select(&self, budget: &ContextBudget) -> Result<Choice, CupelError> {
        let effective = self.prepared.effective(budget)?;
        let sliced = self.prepared.slice(self.policy, &effective)?;
        let pinned = self.pinned().iter().copied();
        let merged: Vec<usize> = pinned.chain(sliced.kept.iter()).collect();
        let merge = self.merge(&sliced.shortened, &merged, budget)?;
        Ok(Choice {
            kept: merge.kept.into_owned(),
            shortened: sliced.shortened,
        })
    }

    /// Fails as a run with this budget does if its slicer selects nothing: the pinned items must fit
    /// the window, and must not overflow the target where that is an error.
    pub(crate) fn check_pinned(&self, budget: &ContextBudget) -> Result<(), CupelError> {
        self.prepared.effective(budget)?;
        self.merge(&Shortened::default(), self.pinned(), budget)?;
        Ok(())
    }

    fn merge<'m>(
        &self,
        shortened: &Shortened,
        merged: &'m [usize],
        budget: &ContextBudget,
    ) -> Result<place::Merge<'m>, CupelError> {
        let strategy = self.policy.overflow_strategy();
        place::merge(&self.prepared.ledger, shortened, merged, budget, strategy)
    }

    /// Returns what a run with this budget decides about every candidate.
    pub(crate) fn decide(&self, budget: &ContextBudget) -> Result<Decisions<'a>, CupelError> {
        self.prepared.decide(self.policy, budget)
    }

    /// Returns the window of a run with this budget: what it selects, in order.
    pub(crate) fn window(&self, budget: &ContextBudget) -> Result<Choice, CupelError> {
        let Choice { kept, shortened } = self.select(budget)?;
        let kept = place::arrange(&self.prepared.ledger, &shortened, self.policy, &kept)?;
        Ok(Choice { kept, shortened })
    }

    pub(crate) fn pinned(&self) -> &[usize] {
        &self.prepared.classes.pinned
    }

    /// Returns the candidates in the order the slicer gets them.
    pub(crate) fn ranked(&self) -> &Positions {
        self.prepared.ranked()
    }

    /// Returns the list the slicer gets.
    pub(crate) fn scored(&self) -> Vec<ScoredRef<'a>> {
        self.prepared.ledger.scored(self.ranked().iter())
    }

    pub(crate) fn score(&self, candidate: usize) -> f64 {
        self.prepared.ledger.score(candidate)
    }

    pub(crate) fn policy(&self) -> &'a Policy {
        self.policy
    }

    pub(crate) fn items(&self) -> &'a [ContextItem] {
        self.prepared.ledger.items()
    }

    /// Returns the exact tokens of the pinned items.
    pub(crate) fn pinned_tokens(&self) -> i128 {
        self.prepared.classes.total_pinned_tokens()
    }
}
