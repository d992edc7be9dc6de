//! [`QuotaSlice`]: percentage shares per kind.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use super::count::{fall_short, required};
use super::group::select_groups;
use super::{
    QuotaConstraint, QuotaConstraintMode, QuotaPolicy, Selection, Slicer, chain, check_distinct,
    check_no_ladder, ranks_by_kind, select_anywhere, slice_by_select,
};
use crate::model::{floor_tokens, saturate};
use crate::{ContextBudget, ContextKind, CupelError, ScoredRef};

/// The least and the largest share of the target for one kind, in percent.
///
/// ```
/// use cupel::{ContextKind, QuotaEntry};
///
/// let entry = QuotaEntry::new(ContextKind::memory(), 10.0, 30.0)?;
/// assert_eq!((entry.require(), entry.cap()), (10.0, 30.0));
/// assert!(QuotaEntry::new(ContextKind::memory(), 40.0, 30.0).is_err());
/// # Ok::<(), cupel::CupelError>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct QuotaEntry {
    kind: ContextKind,
    require: f64,
    cap: f64,
}

impl QuotaEntry {
    /// Requires at least `require` and allows at most `cap` percent for `kind`.
    ///
    /// # Errors
    ///
    /// [`CupelError::SlicerConfig`] if a number is outside `[0, 100]` or `require` is above `cap`.
    pub fn new(kind: ContextKind, require: f64, cap: f64) -> Result<Self, CupelError> {
        let fault = |text: String| Err(CupelError::SlicerConfig(text));
        if !(0.0..=100.0).contains(&require) {
            return fault(format!("require ({require}) must be in [0.0, 100.0]"));
        }
        if !(0.0..=100.0).contains(&cap) {
            return fault(format!("cap ({cap}) must be in [0.0, 100.0]"));
        }
        if require > cap {
            return fault(format!("require ({require}) must be <= cap ({cap})"));
        }
        Ok(Self { kind, require, cap })
    }

    /// Returns the kind.
    pub fn kind(&self) -> &ContextKind {
        &self.kind
    }

    /// Returns the least share.
    pub fn require(&self) -> f64 {
        self.require
    }

    /// Returns the largest share.
    pub fn cap(&self) -> f64 {
        self.cap
    }
}

/// Divides the target among kinds; an inner slicer chooses within each share.
///
/// A kind gets its required share plus a part of what is left, in proportion to the tokens its
/// candidates have, up to its cap (QUOTA-12). Kinds without an entry require 0 % and are capped at
/// 100 %. The share of a required kind without candidates stays unused (QUOTA-8).
///
/// The inner slicer sees one kind at a time. Of a count slicer inside only the entry of that kind
/// applies. A required kind without candidates or without budget falls short with 0 items (R150).
///
/// ```
/// use cupel::{ContextBudget, ContextItem, ContextKind, GreedySlice, QuotaEntry, QuotaSlice};
/// use cupel::{ScoredItem, Slicer};
///
/// let scored = |content: &str, kind, score| -> Result<_, cupel::CupelError> {
///     Ok(ScoredItem { item: ContextItem::builder(content, 40).kind(kind).build()?, score })
/// };
/// let sorted = [
///     scored("chat 1", ContextKind::message(), 0.9)?,
///     scored("chat 2", ContextKind::message(), 0.8)?,
///     scored("fact", ContextKind::memory(), 0.1)?,
/// ];
/// let half = QuotaEntry::new(ContextKind::memory(), 50.0, 100.0)?;
/// let slicer = QuotaSlice::new(vec![half], GreedySlice)?;
/// let kept = slicer.slice(&sorted, &ContextBudget::with_target(80, 80)?)?;
/// assert!(kept.iter().any(|item| item.content() == "fact"));
/// # Ok::<(), cupel::CupelError>(())
/// ```
#[derive(Debug, Clone)]
pub struct QuotaSlice {
    quotas: Vec<QuotaEntry>,
    inner: Arc<dyn Slicer>,
}

impl QuotaSlice {
    /// Creates a slicer from shares per kind and the slicer that chooses within them.
    ///
    /// # Errors
    ///
    /// [`CupelError::SlicerConfig`] if a kind is listed twice, the required shares add up to
    /// more than 100, or the inner slicer is or wraps a [`LadderSlice`](crate::LadderSlice).
    pub fn new(quotas: Vec<QuotaEntry>, inner: impl Slicer + 'static) -> Result<Self, CupelError> {
        check_no_ladder("QuotaSlice", &inner)?;
        check_distinct(quotas.iter().map(QuotaEntry::kind))?;
        let sum = quotas.iter().fold(0.0, |sum, quota| sum + quota.require);
        if sum > 100.0 {
            return Err(CupelError::SlicerConfig(format!(
                "sum of require percentages ({sum}) must not exceed 100.0"
            )));
        }
        Ok(Self {
            quotas,
            inner: Arc::new(inner),
        })
    }

    /// Returns the configured shares, in order.
    pub fn quotas(&self) -> &[QuotaEntry] {
        &self.quotas
    }

    /// Lets the inner slicer choose within the share of each kind.
    fn share_out(
        &self,
        within: Option<&ContextKind>,
        ranked: &[ScoredRef<'_>],
        budget: &ContextBudget,
    ) -> Result<Selection, CupelError> {
        let mut selection = Selection::default();
        if ranked.is_empty() || budget.target_tokens() <= 0 {
            return Ok(selection);
        }
        let partitions = ranks_by_kind(ranked);
        let masses: Vec<_> = partitions
            .iter()
            .map(|(kind, ranks)| (*kind, token_sum(ranks, ranked)))
            .collect();
        let budgets = self.distribute(&masses, budget.target_tokens());
        let mut ran = HashSet::new();
        for ((kind, ranks), (target, cap)) in partitions.iter().zip(budgets) {
            if target <= 0 {
                continue;
            }
            ran.insert(*kind);
            let part: Vec<_> = ranks.iter().map(|&rank| ranked[rank]).collect();
            let limits = ContextBudget::limits(cap, target);
            let chosen = self.inner.select_in(Some(*kind), &part, &limits)?;
            let kept = selection.adopt(chosen, ranks)?;
            selection.extend(kept);
        }
        self.add_absent(within, &ran, &mut selection)?;
        Ok(selection)
    }

    /// Adds the shortfalls of required kinds whose partition did not run, and sorts all shortfalls by
    /// the entries of the count slicers (R150).
    fn add_absent(
        &self,
        within: Option<&ContextKind>,
        ran: &HashSet<&ContextKind>,
        selection: &mut Selection,
    ) -> Result<(), CupelError> {
        let mut levels = Vec::new();
        for slicer in chain(&self.inner) {
            let Some((entries, scarcity)) = slicer.counts() else {
                continue;
            };
            let mut absent = Selection::default();
            for entry in required(entries, within) {
                if !ran.contains(entry.kind()) {
                    fall_short(slicer.slicer_name(), scarcity, entry, 0, &mut absent)?;
                }
            }
            selection.add_shortfalls(levels.len(), absent);
            levels.push(entries);
        }
        selection.sort_shortfalls(|level, kind| {
            let mut entries = levels.get(level)?.iter();
            entries.position(|entry| entry.kind().as_str() == kind)
        });
        Ok(())
    }

    /// Returns the budget of every kind: its share as target, its cap as maximum.
    ///
    /// Each kind gets what it requires. The rest of the target is divided in proportion to the tokens of the
    /// candidates of each kind. A target of 1,000, and tool outputs with 20 to 60 percent:
    ///
    /// ```text
    /// kind          candidates   required   of the other 800    cap     budget
    /// Message       3,000          0        600 (3/4)           1,000   600
    /// ToolOutput    1,000        200        200 (1/4)             600   400
    /// ```
    fn distribute(&self, masses: &[(&ContextKind, i128)], target: i64) -> Vec<(i64, i64)> {
        let share = |percent: f64| floor_tokens(percent / 100.0 * target as f64);
        let shares: HashMap<&ContextKind, (i64, i64)> = self
            .quotas
            .iter()
            .map(|quota| (&quota.kind, (share(quota.require), share(quota.cap))))
            .collect();
        let limits = |kind: &ContextKind| shares.get(kind).copied().unwrap_or((0, target));

        // Also of kinds without candidates: what they require stays free.
        let required: i128 = shares.values().map(|share| i128::from(share.0)).sum();
        let unassigned = (i128::from(target) - required).max(0);
        // A kind whose cap is what it requires takes no part in the division.
        let shared_mass: i128 = masses
            .iter()
            .filter(|(kind, _)| {
                let (require, cap) = limits(kind);
                cap > require
            })
            .map(|(_, mass)| mass)
            .sum();
        masses
            .iter()
            .map(|&(kind, mass)| {
                let (require, cap) = limits(kind);
                let proportional = if shared_mass > 0 && cap > require {
                    proportion(unassigned, mass, shared_mass)
                } else {
                    0
                };
                let budget = saturate(i128::from(require) + proportional).min(cap);
                (budget, cap)
            })
            .collect()
    }
}

impl Slicer for QuotaSlice {
    slice_by_select!();
    select_anywhere!();

    fn inner(&self) -> Option<&dyn Slicer> {
        Some(&self.inner)
    }

    /// The inner slicer never sees the whole list.
    fn is_knapsack(&self) -> bool {
        false
    }

    fn is_quota(&self) -> bool {
        true
    }

    fn kinds(&self) -> Vec<ContextKind> {
        let own = self.quotas.iter().map(|quota| quota.kind.clone());
        own.chain(self.inner.kinds()).collect()
    }

    #[cfg(feature = "serde")]
    fn to_config(&self) -> Result<super::SlicerConfig, super::ConfigError> {
        let inner = self.inner.to_config();
        Ok(super::SlicerConfig::Quota {
            quotas: self.quotas.clone(),
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
            self.share_out(kind, ranked, budget)
        })
    }
}

impl QuotaPolicy for QuotaSlice {
    fn quota_constraints(&self) -> Vec<QuotaConstraint> {
        let constraint = |quota: &QuotaEntry| QuotaConstraint {
            kind: quota.kind.clone(),
            mode: QuotaConstraintMode::Percentage,
            require: quota.require,
            cap: quota.cap,
        };
        self.quotas.iter().map(constraint).collect()
    }
}

fn token_sum(ranks: &[usize], ranked: &[ScoredRef<'_>]) -> i128 {
    let tokens = ranks.iter().map(|&rank| ranked[rank].item.tokens());
    tokens.map(i128::from).sum()
}

/// Returns `floor(amount * part / whole)`, exactly.
///
/// `amount` is below 2^63 and `whole` positive. If the product exceeds 128 bits, the quotient comes
/// from shift-and-subtract division.
fn proportion(amount: i128, part: i128, whole: i128) -> i128 {
    if let Some(product) = amount.checked_mul(part) {
        return product.div_euclid(whole);
    }
    let times = amount.saturating_mul(part.div_euclid(whole));
    let part = part.rem_euclid(whole);
    let (mut quotient, mut rest) = (0, 0);
    for bit in (0..i64::BITS).rev() {
        quotient *= 2;
        rest *= 2;
        if amount >> bit & 1 == 1 {
            rest += part;
        }
        while rest >= whole {
            rest -= whole;
            quotient += 1;
        }
    }
    times.saturating_add(quotient)
}

#[cfg(feature = "serde")]
impl QuotaSlice {
    pub(crate) fn from_config(
        quotas: Vec<QuotaEntry>,
        inner: Box<super::SlicerConfig>,
    ) -> Result<Self, super::ConfigError> {
        let inner = inner.into_inner()?;
        check_no_ladder("QuotaSlice", &inner).map_err(crate::config::refused_in(
            "inner",
            "quota does not accept a ladder inside; use the ladder alone, or greedy inside of quota",
        ))?;
        Self::new(quotas, inner).map_err(crate::config::invalid_in("quotas"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::GreedySlice;

    // proves: QUOTA-10, QUOTA-11
    #[test]
    fn a_kind_whose_cap_is_its_share_has_no_part_in_the_rest() {
        let (memory, message) = (ContextKind::memory(), ContextKind::message());
        let half = QuotaEntry::new(memory.clone(), 50.0, 50.0).unwrap();
        let slicer = QuotaSlice::new(vec![half], GreedySlice).unwrap();
        // Half of the target is left for the messages, whatever the mass of the memory.
        for mass in [-100, 0, 100] {
            let masses = [(&memory, mass), (&message, 100)];
            assert_eq!(slicer.distribute(&masses, 100), [(50, 50), (50, 100)]);
        }
    }

    // proves: R068, QUOTA-11
    #[test]
    fn a_proportion_is_exact_beyond_128_bits() {
        let huge = i128::from(i64::MAX);
        let whole = huge * 5_000_000_000;
        assert_eq!(proportion(huge, whole, whole), huge);
        assert_eq!(proportion(huge, whole / 5, whole), huge / 5);
        assert_eq!(proportion(huge, whole - 1, whole), huge - 1);
        assert_eq!(proportion(7, 2, 3), 4);
        assert_eq!(proportion(huge, whole * 2, whole), huge * 2);
        assert_eq!(proportion(huge, -whole, whole), -huge);
    }
}
