//! [`CountQuotaSlice`] and [`CountConstrainedKnapsackSlice`]: item counts per kind.
//!
//! Both commit the required items of every kind first, let another slicer choose from the
//! rest, and cut that choice down to the caps. They differ in who chooses and in what order the
//! caps see the choice.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use super::group::select_groups;
use super::{
    GroupScore, KnapsackSlice, QuotaConstraint, QuotaConstraintMode, QuotaPolicy, Refusal,
    Selection, Slicer, check_distinct, ranks_by_kind, slice_by_selection,
};
use crate::diagnostics::CountRequirementShortfall;
use crate::model::reported;
use crate::order::descending;
use crate::{ContextBudget, ContextItem, ContextKind, CupelError, ScoredItem, ScoredRef};

/// How many items of one kind there must and may be.
///
/// ```
/// use cupel::{ContextKind, CountQuotaEntry};
///
/// let entry = CountQuotaEntry::new(ContextKind::tool_output(), 1, 3)?;
/// assert_eq!((entry.require_count(), entry.cap_count()), (1, 3));
/// assert!(CountQuotaEntry::new(ContextKind::tool_output(), 2, 0).is_err());
/// # Ok::<(), cupel::CupelError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CountQuotaEntry {
    kind: ContextKind,
    require_count: usize,
    cap_count: usize,
}

impl CountQuotaEntry {
    /// At least `require_count` and at most `cap_count` items of `kind`. Zero and zero bars the kind.
    ///
    /// # Errors
    ///
    /// [`CupelError::SlicerConfig`] if more are required than allowed.
    pub fn new(
        kind: ContextKind,
        require_count: usize,
        cap_count: usize,
    ) -> Result<Self, CupelError> {
        let fault = |text: String| Err(CupelError::SlicerConfig(text));
        let name = kind.as_str();
        if cap_count == 0 && require_count > 0 {
            return fault(format!(
                "kind {name:?}: cap_count is 0 but require_count is {require_count}; a zero cap with a positive requirement can never be satisfied"
            ));
        }
        if require_count > cap_count {
            return fault(format!(
                "kind {name:?}: require_count ({require_count}) must be <= cap_count ({cap_count})"
            ));
        }
        Ok(Self {
            kind,
            require_count,
            cap_count,
        })
    }

    /// The kind.
    pub fn kind(&self) -> &ContextKind {
        &self.kind
    }

    /// The least number of items.
    pub fn require_count(&self) -> usize {
        self.require_count
    }

    /// The largest number of items.
    pub fn cap_count(&self) -> usize {
        self.cap_count
    }
}

/// What a count slicer does when a kind has fewer candidates than it requires.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum ScarcityBehavior {
    /// Take what is there and record a
    /// [`CountRequirementShortfall`](crate::CountRequirementShortfall).
    #[default]
    Degrade,
    /// Fail with [`CupelError::SlicerConfig`].
    Throw,
}

/// Guarantees and limits item counts per kind; an inner slicer chooses the rest.
///
/// Required items are taken whatever they cost (CQ-10), so they can exceed the target: the
/// pipeline's overflow strategy decides what happens then. Caps apply to what the inner slicer
/// chose, in the order it chose (CQ-17).
///
/// ```
/// use cupel::{ContextBudget, ContextItem, ContextKind, CountQuotaEntry, CountQuotaSlice};
/// use cupel::{GreedySlice, ScarcityBehavior, ScoredItem, Slicer};
///
/// let tool = |content: &str, score| -> Result<_, cupel::CupelError> {
///     let item = ContextItem::builder(content, 10).kind(ContextKind::tool_output()).build()?;
///     Ok(ScoredItem { item, score })
/// };
/// let sorted = [tool("first", 0.9)?, tool("second", 0.8)?, tool("third", 0.7)?];
/// let at_most_two = CountQuotaEntry::new(ContextKind::tool_output(), 0, 2)?;
/// let slicer = CountQuotaSlice::new(vec![at_most_two], GreedySlice, ScarcityBehavior::Degrade)?;
/// let kept = slicer.slice(&sorted, &ContextBudget::with_target(100, 100)?)?;
/// assert_eq!(kept.len(), 2);
/// # Ok::<(), cupel::CupelError>(())
/// ```
#[derive(Clone)]
pub struct CountQuotaSlice {
    counts: Counts,
    inner: Arc<dyn Slicer>,
}

impl CountQuotaSlice {
    /// Counts per kind, the slicer for the rest, and what to do when a requirement cannot be met.
    ///
    /// # Errors
    ///
    /// [`CupelError::SlicerConfig`] if a kind is listed twice or the inner slicer is a
    /// [`KnapsackSlice`], for which there is [`CountConstrainedKnapsackSlice`].
    pub fn new(
        entries: Vec<CountQuotaEntry>,
        inner: impl Slicer + 'static,
        scarcity: ScarcityBehavior,
    ) -> Result<Self, CupelError> {
        if inner.is_knapsack() {
            return Err(CupelError::SlicerConfig(
                "CountQuotaSlice does not support KnapsackSlice as the inner slicer in this version. Use GreedySlice as the inner slicer, or CountConstrainedKnapsackSlice."
                    .to_owned(),
            ));
        }
        Ok(Self {
            counts: Counts::new("CountQuotaSlice", entries, scarcity)?,
            inner: Arc::new(inner),
        })
    }

    /// The configured counts, in order.
    pub fn entries(&self) -> &[CountQuotaEntry] {
        &self.counts.entries
    }

    /// What happens when a requirement cannot be met.
    pub fn scarcity(&self) -> ScarcityBehavior {
        self.counts.scarcity
    }
}

impl fmt::Debug for CountQuotaSlice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CountQuotaSlice")
            .field("entries", &self.counts.entries)
            .field("inner", &"<dyn Slicer>")
            .field("scarcity", &self.counts.scarcity)
            .finish()
    }
}

impl Slicer for CountQuotaSlice {
    fn slice(
        &self,
        sorted: &[ScoredItem],
        budget: &ContextBudget,
    ) -> Result<Vec<ContextItem>, CupelError> {
        slice_by_selection(self, sorted, budget)
    }

    fn select(
        &self,
        ranked: &[ScoredRef<'_>],
        budget: &ContextBudget,
    ) -> Result<Selection, CupelError> {
        select_groups(self.inner.group_score(), ranked, budget, |ranked| {
            self.counts.select(ranked, budget, &self.inner, |_| ())
        })
    }

    fn group_score(&self) -> Option<GroupScore> {
        self.inner.group_score()
    }

    fn is_quota(&self) -> bool {
        self.inner.is_quota()
    }

    fn is_count_quota(&self) -> bool {
        true
    }

    fn count_cap_map(&self) -> HashMap<ContextKind, usize> {
        let mut caps = self.inner.count_cap_map();
        for entry in &self.counts.entries {
            let cap = caps.entry(entry.kind.clone()).or_insert(entry.cap_count);
            *cap = entry.cap_count.min(*cap);
        }
        caps
    }

    #[cfg(feature = "serde")]
    fn to_config(&self) -> Result<super::SlicerConfig, super::ConfigError> {
        let inner = self.inner.to_config();
        Ok(super::SlicerConfig::CountQuota {
            entries: self.counts.entries.clone(),
            scarcity: self.counts.scarcity,
            inner: inner.map_err(|error| error.within("inner"))?.into(),
        })
    }
}

impl QuotaPolicy for CountQuotaSlice {
    fn quota_constraints(&self) -> Vec<QuotaConstraint> {
        self.counts.constraints()
    }
}

/// Guarantees and limits item counts per kind; a knapsack chooses the rest.
///
/// As [`CountQuotaSlice`], with the knapsack's choice sorted by score before the caps see it, so
/// that a cap keeps the best (CCK-8).
///
/// ```
/// use cupel::{ContextKind, CountConstrainedKnapsackSlice, CountQuotaEntry, KnapsackSlice};
/// use cupel::{ScarcityBehavior, Slicer};
///
/// let one_to_three = CountQuotaEntry::new(ContextKind::tool_output(), 1, 3)?;
/// let slicer = CountConstrainedKnapsackSlice::new(
///     vec![one_to_three],
///     KnapsackSlice::new(1)?,
///     ScarcityBehavior::Degrade,
/// )?;
/// assert!(slicer.is_count_quota());
/// # Ok::<(), cupel::CupelError>(())
/// ```
#[derive(Clone)]
pub struct CountConstrainedKnapsackSlice {
    counts: Counts,
    knapsack: KnapsackSlice,
}

impl CountConstrainedKnapsackSlice {
    /// Counts per kind, the knapsack, and what to do when a requirement cannot be met.
    ///
    /// # Errors
    ///
    /// [`CupelError::SlicerConfig`] if a kind is listed twice.
    pub fn new(
        entries: Vec<CountQuotaEntry>,
        knapsack: KnapsackSlice,
        scarcity: ScarcityBehavior,
    ) -> Result<Self, CupelError> {
        Ok(Self {
            counts: Counts::new("CountConstrainedKnapsackSlice", entries, scarcity)?,
            knapsack,
        })
    }

    /// The configured counts, in order.
    pub fn entries(&self) -> &[CountQuotaEntry] {
        &self.counts.entries
    }

    /// What happens when a requirement cannot be met.
    pub fn scarcity(&self) -> ScarcityBehavior {
        self.counts.scarcity
    }
}

impl fmt::Debug for CountConstrainedKnapsackSlice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CountConstrainedKnapsackSlice")
            .field("entries", &self.counts.entries)
            .field("knapsack", &self.knapsack)
            .field("scarcity", &self.counts.scarcity)
            .finish()
    }
}

impl Slicer for CountConstrainedKnapsackSlice {
    fn slice(
        &self,
        sorted: &[ScoredItem],
        budget: &ContextBudget,
    ) -> Result<Vec<ContextItem>, CupelError> {
        slice_by_selection(self, sorted, budget)
    }

    fn select(
        &self,
        ranked: &[ScoredRef<'_>],
        budget: &ContextBudget,
    ) -> Result<Selection, CupelError> {
        self.counts
            .select(ranked, budget, &self.knapsack, |chosen| {
                chosen.sort_by(|&a, &b| descending(ranked[a].score, ranked[b].score));
            })
    }

    fn is_count_quota(&self) -> bool {
        true
    }

    fn count_cap_map(&self) -> HashMap<ContextKind, usize> {
        let caps = self.counts.entries.iter();
        caps.map(|entry| (entry.kind.clone(), entry.cap_count))
            .collect()
    }

    #[cfg(feature = "serde")]
    fn to_config(&self) -> Result<super::SlicerConfig, super::ConfigError> {
        Ok(super::SlicerConfig::CountConstrainedKnapsack {
            entries: self.counts.entries.clone(),
            scarcity: self.counts.scarcity,
            knapsack: self.knapsack.data(),
        })
    }
}

impl QuotaPolicy for CountConstrainedKnapsackSlice {
    fn quota_constraints(&self) -> Vec<QuotaConstraint> {
        self.counts.constraints()
    }
}

/// What both count slicers share.
#[derive(Clone)]
struct Counts {
    /// The slicer's name, for its scarcity error.
    slicer: &'static str,
    entries: Vec<CountQuotaEntry>,
    scarcity: ScarcityBehavior,
}

impl Counts {
    fn new(
        slicer: &'static str,
        entries: Vec<CountQuotaEntry>,
        scarcity: ScarcityBehavior,
    ) -> Result<Self, CupelError> {
        check_distinct(entries.iter().map(CountQuotaEntry::kind))?;
        Ok(Self {
            slicer,
            entries,
            scarcity,
        })
    }

    /// Commits what is required, lets `inner` choose from the rest, puts its choice in the
    /// order the caps are to see it, and applies the caps.
    fn select(
        &self,
        ranked: &[ScoredRef<'_>],
        budget: &ContextBudget,
        inner: &dyn Slicer,
        reorder: impl FnOnce(&mut Vec<usize>),
    ) -> Result<Selection, CupelError> {
        let mut selection = Selection::default();
        if ranked.is_empty() || budget.target_tokens() <= 0 {
            return Ok(selection);
        }
        let mut counts = self.commit_required(ranked, &mut selection)?;

        let mut committed = vec![false; ranked.len()];
        let mut committed_tokens = 0;
        for &rank in selection.kept() {
            committed[rank] = true;
            committed_tokens += i128::from(ranked[rank].item.tokens());
        }
        let rest: Vec<usize> = (0..ranked.len()).filter(|&rank| !committed[rank]).collect();
        let part: Vec<_> = rest.iter().map(|&rank| ranked[rank]).collect();
        let left = reported((i128::from(budget.target_tokens()) - committed_tokens).max(0));
        let part_budget = ContextBudget::limits(budget.max_tokens(), left.min(budget.max_tokens()));
        let chosen = inner.select(&part, &part_budget)?;
        let mut chosen = selection.adopt(chosen, &rest)?;

        reorder(&mut chosen);
        let caps: HashMap<&ContextKind, usize> = self
            .entries
            .iter()
            .map(|entry| (&entry.kind, entry.cap_count))
            .collect();
        for rank in chosen {
            let kind = ranked[rank].item.kind();
            let count = counts.entry(kind).or_default();
            match caps.get(kind) {
                Some(&cap) if *count >= cap => {
                    selection.refuse(rank, Refusal::CountCap { cap, count: *count });
                }
                _ => {
                    *count += 1;
                    selection.push(rank);
                }
            }
        }
        Ok(selection)
    }

    /// Keeps the best required items of every entry, in the order of the entries; returns how
    /// many there are of each kind.
    fn commit_required<'a>(
        &'a self,
        ranked: &[ScoredRef<'a>],
        selection: &mut Selection,
    ) -> Result<HashMap<&'a ContextKind, usize>, CupelError> {
        let mut candidates: HashMap<_, _> = ranks_by_kind(ranked).into_iter().collect();
        let mut counts = HashMap::new();
        for entry in self.entries.iter().filter(|entry| entry.require_count > 0) {
            let mut best = candidates.remove(&entry.kind).unwrap_or_default();
            best.sort_by(|&a, &b| descending(ranked[a].score, ranked[b].score));
            best.truncate(entry.require_count);
            counts.insert(&entry.kind, best.len());
            if best.len() < entry.require_count {
                self.fall_short(entry, best.len(), selection)?;
            }
            selection.extend(best);
        }
        Ok(counts)
    }

    fn fall_short(
        &self,
        entry: &CountQuotaEntry,
        satisfied: usize,
        selection: &mut Selection,
    ) -> Result<(), CupelError> {
        let (slicer, kind, required) = (self.slicer, &entry.kind, entry.require_count);
        match self.scarcity {
            ScarcityBehavior::Throw => Err(CupelError::SlicerConfig(format!(
                "{slicer}: candidate pool for kind '{kind}' has {satisfied} items but RequireCount is {required}."
            ))),
            ScarcityBehavior::Degrade => {
                selection.fall_short(CountRequirementShortfall::new(
                    kind.as_str(),
                    required,
                    satisfied,
                ));
                Ok(())
            }
        }
    }

    fn constraints(&self) -> Vec<QuotaConstraint> {
        let constraint = |entry: &CountQuotaEntry| QuotaConstraint {
            kind: entry.kind.clone(),
            mode: QuotaConstraintMode::Count,
            require: entry.require_count as f64,
            cap: entry.cap_count as f64,
        };
        self.entries.iter().map(constraint).collect()
    }
}
