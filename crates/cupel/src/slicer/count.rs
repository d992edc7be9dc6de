//! [`CountQuotaSlice`] and [`CountConstrainedKnapsackSlice`]: item counts per kind.
//!
//! Both commit the required items of every kind first, let another slicer choose from the
//! rest, and apply the caps to that choice. They differ in the slicer that chooses and in the order
//! in which caps are applied.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use super::group::select_groups;
use super::{
    KnapsackSlice, QuotaConstraint, QuotaConstraintMode, QuotaPolicy, Refusal, Selection, Slicer,
    check_distinct, check_no_ladder, ranks_by_kind, select_anywhere, slice_by_select,
};
use crate::diagnostics::CountRequirementShortfall;
use crate::model::saturate;
use crate::order::descending;
use crate::{ContextBudget, ContextKind, CupelError, ScoredRef};

/// The least and the largest number of items of one kind.
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
    /// Requires at least `require_count` and allows at most `cap_count` items of `kind`. Two zeros
    /// exclude the kind.
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

    /// Returns the kind.
    pub fn kind(&self) -> &ContextKind {
        &self.kind
    }

    /// Returns the least number of items.
    pub fn require_count(&self) -> usize {
        self.require_count
    }

    /// Returns the largest number of items.
    pub fn cap_count(&self) -> usize {
        self.cap_count
    }
}

/// What a count slicer does if a kind has fewer candidates than required.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum ScarcityBehavior {
    /// Keep the candidates there are and record a
    /// [`CountRequirementShortfall`](crate::CountRequirementShortfall).
    #[default]
    Degrade,
    /// Fail with [`CupelError::SlicerConfig`].
    Throw,
}

/// Guarantees and limits item counts per kind; an inner slicer chooses the rest.
///
/// Required items are kept at any size (CQ-10), so they can exceed the target; the pipeline's
/// overflow strategy then applies. Caps apply to the inner slicer's choice, in the order of that
/// choice (CQ-17).
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
    /// Creates a slicer from counts per kind, the slicer for the rest, and the behavior if a requirement
    /// is not met.
    ///
    /// # Errors
    ///
    /// [`CupelError::SlicerConfig`] if a kind is listed twice, the inner slicer is or wraps a
    /// [`LadderSlice`](crate::LadderSlice), or it is a [`KnapsackSlice`], for which there is
    /// [`CountConstrainedKnapsackSlice`].
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
        check_no_ladder("CountQuotaSlice", &inner)?;
        Ok(Self {
            counts: Counts::new("CountQuotaSlice", entries, scarcity)?,
            inner: Arc::new(inner),
        })
    }

    /// Returns the configured counts, in order.
    pub fn entries(&self) -> &[CountQuotaEntry] {
        &self.counts.entries
    }

    /// Returns the behavior if a requirement is not met.
    pub fn scarcity(&self) -> ScarcityBehavior {
        self.counts.scarcity
    }
}

impl fmt::Debug for CountQuotaSlice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CountQuotaSlice")
            .field("entries", &self.counts.entries)
            .field("inner", &self.inner)
            .field("scarcity", &self.counts.scarcity)
            .finish()
    }
}

impl Slicer for CountQuotaSlice {
    slice_by_select!();
    select_anywhere!();

    fn inner(&self) -> Option<&dyn Slicer> {
        Some(&self.inner)
    }

    fn kinds(&self) -> Vec<ContextKind> {
        let own = self.counts.entries.iter().map(|entry| entry.kind.clone());
        own.chain(self.inner.kinds()).collect()
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

    fn select_in(
        &self,
        kind: Option<&ContextKind>,
        ranked: &[ScoredRef<'_>],
        budget: &ContextBudget,
    ) -> Result<Selection, CupelError> {
        select_groups(self.group_score(), ranked, budget, |ranked| {
            let inner = &self.inner;
            self.counts.select(kind, ranked, budget, inner, |_| ())
        })
    }

    fn counts(&self) -> Option<(&[CountQuotaEntry], ScarcityBehavior)> {
        Some((&self.counts.entries, self.counts.scarcity))
    }
}

impl QuotaPolicy for CountQuotaSlice {
    fn quota_constraints(&self) -> Vec<QuotaConstraint> {
        self.counts.constraints()
    }
}

/// Guarantees and limits item counts per kind; a knapsack chooses the rest.
///
/// As [`CountQuotaSlice`], but the knapsack's choice is sorted by score before caps apply, so that a
/// cap keeps the best (CCK-8).
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
    /// Creates a slicer from counts per kind, the knapsack, and the behavior if a requirement is not
    /// met.
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

    /// Returns the configured counts, in order.
    pub fn entries(&self) -> &[CountQuotaEntry] {
        &self.counts.entries
    }

    /// Returns the behavior if a requirement is not met.
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
    slice_by_select!();
    select_anywhere!();

    fn kinds(&self) -> Vec<ContextKind> {
        let entries = self.counts.entries.iter();
        entries.map(|entry| entry.kind.clone()).collect()
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
        let (cell_limit, memory_limit) = self.knapsack.limits();
        Ok(super::SlicerConfig::CountConstrainedKnapsack {
            entries: self.counts.entries.clone(),
            scarcity: self.counts.scarcity,
            bucket_size: self.knapsack.bucket_size(),
            cell_limit,
            memory_limit,
        })
    }

    fn select_in(
        &self,
        kind: Option<&ContextKind>,
        ranked: &[ScoredRef<'_>],
        budget: &ContextBudget,
    ) -> Result<Selection, CupelError> {
        let best_first = |chosen: &mut Vec<usize>| {
            chosen.sort_by(|&a, &b| descending(ranked[a].score, ranked[b].score));
        };
        let knapsack = &self.knapsack;
        self.counts
            .select(kind, ranked, budget, knapsack, best_first)
    }

    fn counts(&self) -> Option<(&[CountQuotaEntry], ScarcityBehavior)> {
        Some((&self.counts.entries, self.counts.scarcity))
    }
}

impl QuotaPolicy for CountConstrainedKnapsackSlice {
    fn quota_constraints(&self) -> Vec<QuotaConstraint> {
        self.counts.constraints()
    }
}

/// The counts per kind of both count slicers.
#[derive(Debug, Clone)]
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

    /// Commits the required items, lets `inner` choose from the rest, reorders its choice and applies
    /// the caps in that order.
    fn select(
        &self,
        kind: Option<&ContextKind>,
        ranked: &[ScoredRef<'_>],
        budget: &ContextBudget,
        inner: &dyn Slicer,
        reorder: impl FnOnce(&mut Vec<usize>),
    ) -> Result<Selection, CupelError> {
        let mut selection = Selection::default();
        if ranked.is_empty() || budget.target_tokens() <= 0 {
            return Ok(selection);
        }
        let mut counts = self.commit_required(kind, ranked, &mut selection)?;

        let mut committed = vec![false; ranked.len()];
        let mut committed_tokens = 0;
        for &rank in selection.kept() {
            committed[rank] = true;
            committed_tokens += i128::from(ranked[rank].item.tokens());
        }
        let rest: Vec<usize> = (0..ranked.len()).filter(|&rank| !committed[rank]).collect();
        let part: Vec<_> = rest.iter().map(|&rank| ranked[rank]).collect();
        // Required items are committed even beyond the target; then nothing is left for the others.
        let left = saturate((i128::from(budget.target_tokens()) - committed_tokens).max(0));
        let part_budget = ContextBudget::limits(budget.max_tokens(), left.min(budget.max_tokens()));
        let mut chosen = inner.select_in(kind, &part, &part_budget)?;
        chosen.lower_shortfalls();
        let mut chosen = selection.adopt(chosen, &rest)?;

        reorder(&mut chosen);
        let caps: HashMap<&ContextKind, usize> = self
            .entries
            .iter()
            .map(|entry| (&entry.kind, entry.cap_count))
            .collect();
        for rank in chosen {
            let kind = ranked[rank].item.kind();
            // Committed items count toward the cap of their kind.
            let count = counts.entry(kind).or_default();
            match caps.get(kind) {
                Some(&cap) if *count >= cap => {
                    // The inner slicer may have kept it as a view, which is not kept now.
                    selection.refuse(rank, Refusal::CountCap { cap, count: *count });
                    selection.forget_view(rank);
                }
                _ => {
                    *count += 1;
                    selection.push(rank);
                }
            }
        }
        Ok(selection)
    }

    /// Keeps the best required items of every entry, in the order of the entries. Returns the number
    /// kept of each kind.
    fn commit_required<'a>(
        &'a self,
        kind: Option<&ContextKind>,
        ranked: &[ScoredRef<'a>],
        selection: &mut Selection,
    ) -> Result<HashMap<&'a ContextKind, usize>, CupelError> {
        let mut candidates: HashMap<_, _> = ranks_by_kind(ranked).into_iter().collect();
        let mut counts = HashMap::new();
        for entry in required(&self.entries, kind) {
            let mut best = candidates.remove(&entry.kind).unwrap_or_default();
            // A caller of `slice` may pass a list that is not sorted. Of equal scores the first is kept.
            best.sort_by(|&a, &b| descending(ranked[a].score, ranked[b].score));
            best.truncate(entry.require_count);
            counts.insert(&entry.kind, best.len());
            if best.len() < entry.require_count {
                fall_short(self.slicer, self.scarcity, entry, best.len(), selection)?;
            }
            selection.extend(best);
        }
        Ok(counts)
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

/// Returns the entries that require an item, of the partition's kind alone inside a partition.
pub(super) fn required<'e>(
    entries: &'e [CountQuotaEntry],
    partition: Option<&ContextKind>,
) -> impl Iterator<Item = &'e CountQuotaEntry> {
    entries.iter().filter(move |entry| {
        entry.require_count > 0 && partition.is_none_or(|kind| *kind == entry.kind)
    })
}

/// Records that an entry of a count slicer is not met, or fails.
pub(super) fn fall_short(
    slicer: &str,
    scarcity: ScarcityBehavior,
    entry: &CountQuotaEntry,
    satisfied: usize,
    selection: &mut Selection,
) -> Result<(), CupelError> {
    let (kind, required) = (&entry.kind, entry.require_count);
    match scarcity {
        ScarcityBehavior::Throw => Err(CupelError::SlicerConfig(format!(
            "{slicer}: candidate pool for kind '{kind}' has {satisfied} items but RequireCount is {required}."
        ))),
        ScarcityBehavior::Degrade => {
            let shortfall = CountRequirementShortfall::new(kind.as_str(), required, satisfied);
            selection.fall_short(shortfall);
            Ok(())
        }
    }
}

#[cfg(feature = "serde")]
impl CountQuotaSlice {
    pub(crate) fn from_config(
        entries: Vec<CountQuotaEntry>,
        scarcity: ScarcityBehavior,
        inner: Box<super::SlicerConfig>,
    ) -> Result<Self, super::ConfigError> {
        let inner = inner.into_inner()?;
        check_no_ladder("CountQuotaSlice", &inner).map_err(crate::config::refused_in(
            "inner",
            "count_quota does not accept a ladder inside; use the ladder alone, or greedy inside of count_quota",
        ))?;
        let has_knapsack = inner.is_knapsack();
        Self::new(entries, inner, scarcity).map_err(|error| {
            if has_knapsack {
                crate::config::refused_in(
                    "inner",
                    "count_quota does not accept a knapsack inside; use greedy, or count_constrained_knapsack instead of count_quota",
                )(error)
            } else {
                crate::config::invalid_in("entries")(error)
            }
        })
    }
}

#[cfg(feature = "serde")]
impl CountConstrainedKnapsackSlice {
    pub(crate) fn from_config(
        entries: Vec<CountQuotaEntry>,
        scarcity: ScarcityBehavior,
        bucket_size: i64,
        cell_limit: Option<u64>,
        memory_limit: Option<usize>,
    ) -> Result<Self, super::ConfigError> {
        let knapsack = KnapsackSlice::from_config(bucket_size, cell_limit, memory_limit)?;
        Self::new(entries, knapsack, scarcity).map_err(crate::config::invalid_in("entries"))
    }
}
