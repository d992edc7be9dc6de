//! [`GroupSlice`]: items that are kept or dropped together.

use std::collections::HashMap;
use std::fmt;
use std::ops::RangeInclusive;
use std::sync::Arc;

use super::{
    PreparedChoice, Refusal, Selection, Slicer, TargetSweep, Unsorted, slice_by_selection,
};
use crate::diagnostics::ExclusionReason;
use crate::model::reported;
use crate::order::descending;
use crate::{ContextBudget, ContextItem, ContextKind, CupelError, ScoredItem, ScoredRef};

/// Keeps or drops the items of a group together; an inner slicer chooses among the groups.
///
/// An item names its group under the metadata key `cupel:group`; items with the same text there,
/// compared exactly, are one group, and an item without it is a group by itself. The inner slicer
/// sees each group as one candidate:
///
/// - its tokens are the members' tokens added up; a group beyond the 64-bit range is not offered;
/// - its score is the members' best, or their mean or sum ([`GroupScore`]), and its rank follows
///   from it, ties by the rank of the best member;
/// - its kind is that of its largest member, so that a call and its long result use up the share
///   of tool outputs, and it counts as one item;
/// - everything else is its best member's.
///
/// Where every group has one item the choice is the inner slicer's own. Inside [`QuotaSlice`] and
/// [`CountQuotaSlice`] this slicer means the same as around them: groups are made before kinds are
/// told apart, so no share or cap takes a group apart.
///
/// Slicers see what the stages before them leave. A pinned member is in whatever happens; the rest
/// of its group is a group that costs its own tokens. Deduplication takes copies out of groups:
/// switch it off where a group must stay whole. [`OverflowStrategy::Truncate`] cuts item by item,
/// which matters only where required counts exceed the target.
///
/// [`QuotaSlice`]: crate::QuotaSlice
/// [`CountQuotaSlice`]: crate::CountQuotaSlice
/// [`OverflowStrategy::Truncate`]: crate::OverflowStrategy::Truncate
///
/// ```
/// use cupel::{ChronologicalPlacer, ContextBudget, ContextItem, GreedySlice, GroupSlice};
/// use cupel::{Pipeline, ReflexiveScorer};
///
/// let item = |content: &str, tokens, hint, group: &str| {
///     ContextItem::builder(content, tokens)
///         .future_relevance_hint(hint)
///         .meta(GroupSlice::KEY, group)
///         .build()
/// };
/// let items = [
///     item("call", 12, 0.5, "a")?,
///     item("result", 800, 0.9, "a")?,
///     item("answer", 30, 0.4, "b")?,
/// ];
/// let pipeline = Pipeline::new(ReflexiveScorer, GroupSlice::new(GreedySlice), ChronologicalPlacer);
/// let report = pipeline.dry_run(&items, &ContextBudget::with_target(100, 100)?)?;
/// assert_eq!(report.included[0].item.content(), "answer");
/// assert_eq!(
///     report.excluded[1].reason.to_string(),
///     "GroupExcluded: its group of 2 items (812 tokens) did not fit, 70 available"
/// );
/// # Ok::<(), cupel::CupelError>(())
/// ```
#[derive(Clone)]
pub struct GroupSlice {
    inner: Arc<dyn Slicer>,
    score: GroupScore,
}

/// What a group scores.
///
/// ```
/// use cupel::{GreedySlice, GroupScore, GroupSlice};
///
/// assert_eq!(GroupSlice::new(GreedySlice).score(), GroupScore::Max);
/// assert_eq!(GroupSlice::new(GreedySlice).with_score(GroupScore::Mean).score(), GroupScore::Mean);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum GroupScore {
    /// The best score of its members.
    #[default]
    Max,
    /// The mean of their scores.
    Mean,
    /// The sum of their scores.
    Sum,
}

impl GroupScore {
    /// `scores` holds at least one.
    fn of(self, scores: &[f64]) -> f64 {
        let sum = || scores[1..].iter().fold(scores[0], |sum, score| sum + score);
        match self {
            Self::Max => scores[1..].iter().fold(scores[0], |best, &score| {
                if descending(score, best).is_lt() {
                    score
                } else {
                    best
                }
            }),
            Self::Mean => sum() / scores.len() as f64,
            Self::Sum => sum(),
        }
    }
}

impl GroupSlice {
    /// The metadata key that names an item's group.
    pub const KEY: &str = "cupel:group";

    /// Groups, of which `inner` chooses; a group scores as its best member.
    pub fn new(inner: impl Slicer + 'static) -> Self {
        Self {
            inner: Arc::new(inner),
            score: GroupScore::default(),
        }
    }

    /// Sets what a group scores.
    pub fn with_score(mut self, score: GroupScore) -> Self {
        self.score = score;
        self
    }

    /// What a group scores.
    pub fn score(&self) -> GroupScore {
        self.score
    }
}

impl fmt::Debug for GroupSlice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GroupSlice")
            .field("inner", &"<dyn Slicer>")
            .field("score", &self.score)
            .finish()
    }
}

impl Slicer for GroupSlice {
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
        select_groups(Some(self.score), ranked, budget, |ranked| {
            self.inner.select(ranked, budget)
        })
    }

    fn select_unsorted(&self, list: &Unsorted<'_>, budget: &ContextBudget) -> Option<Vec<usize>> {
        if has_groups(list) {
            return None;
        }
        self.inner.select_unsorted(list, budget)
    }

    fn prepare<'a>(&'a self, list: &Unsorted<'_>, wanted: usize) -> Option<PreparedChoice<'a>> {
        if !has_groups(list) {
            return self.inner.prepare(list, wanted);
        }
        let order = list.ranked();
        let rank = order.iter().position(|&index| index == wanted)?;
        let ranked = order
            .iter()
            .map(|&index| list.scored(list.positions[index]));
        let ranked: Vec<ScoredRef<'_>> = ranked.collect();
        let Some(groups) = Groups::find(self.score, &ranked) else {
            return self.inner.prepare(list, wanted);
        };
        let is_wanted = |group: &Group| group.members.contains(&rank);
        let wanted = groups.offered.iter().position(is_wanted)?;
        let candidates = groups.candidates(&ranked);
        let items: Vec<ContextItem> = candidates.iter().map(|group| group.item.clone()).collect();
        let scores: Vec<f64> = candidates.iter().map(|group| group.score).collect();
        let positions: Vec<u32> = (0..).take(items.len()).collect();
        self.inner
            .prepare(&Unsorted::new(&items, &scores, &positions), wanted)
    }

    fn sweep(&self, ranked: &[ScoredRef<'_>], targets: RangeInclusive<i64>) -> Option<TargetSweep> {
        let Some(groups) = Groups::find(self.score, ranked) else {
            return self.inner.sweep(ranked, targets);
        };
        let first = *targets.start();
        let known = self.inner.sweep(&groups.candidates(ranked), targets)?;
        let mut sweep = TargetSweep::new(first);
        for (target, changes) in known.steps() {
            let changes = changes.iter().map(|&group| &groups.offered[group as usize]);
            for &rank in changes.flat_map(|group| &group.members) {
                sweep.toggle(rank, target);
            }
        }
        if let Some((target, error)) = known.failure() {
            sweep.fail(*target, error.clone());
        }
        Some(sweep)
    }

    fn is_knapsack(&self) -> bool {
        self.inner.is_knapsack()
    }

    fn is_quota(&self) -> bool {
        self.inner.is_quota()
    }

    fn is_count_quota(&self) -> bool {
        self.inner.is_count_quota()
    }

    fn count_cap_map(&self) -> HashMap<ContextKind, usize> {
        self.inner.count_cap_map()
    }

    fn group_score(&self) -> Option<GroupScore> {
        Some(self.score)
    }

    #[cfg(feature = "serde")]
    fn to_config(&self) -> Result<super::SlicerConfig, super::ConfigError> {
        let inner = self.inner.to_config();
        Ok(super::SlicerConfig::Group {
            score: self.score,
            inner: inner.map_err(|error| error.within("inner"))?.into(),
        })
    }
}

/// The choice of `select` among the groups of `ranked`, expanded; its choice from `ranked` as it is
/// where there is nothing to group, or nobody to ask for it.
pub(super) fn select_groups(
    score: Option<GroupScore>,
    ranked: &[ScoredRef<'_>],
    budget: &ContextBudget,
    select: impl FnOnce(&[ScoredRef<'_>]) -> Result<Selection, CupelError>,
) -> Result<Selection, CupelError> {
    match score.and_then(|score| Groups::find(score, ranked)) {
        Some(groups) => {
            let chosen = select(&groups.candidates(ranked))?;
            groups.expand(chosen, budget)
        }
        None => select(ranked),
    }
}

fn group_of(item: &ContextItem) -> Option<&str> {
    item.metadata().get(GroupSlice::KEY).map(String::as_str)
}

fn has_groups(list: &Unsorted<'_>) -> bool {
    list.iter().any(|scored| group_of(scored.item).is_some())
}

/// A ranked list in groups, at least one of them with several members.
struct Groups {
    /// By score, ties by the rank of the best member.
    offered: Vec<Group>,
    /// What no budget has room for.
    too_large: Vec<Group>,
}

struct Group {
    /// Ascending ranks.
    members: Vec<usize>,
    tokens: i128,
    score: f64,
    /// What the inner slicer sees in place of several members.
    candidate: Option<ContextItem>,
}

impl Groups {
    /// `None` if every group has one member.
    fn find(score: GroupScore, ranked: &[ScoredRef<'_>]) -> Option<Self> {
        let mut by_name: HashMap<&str, usize> = HashMap::new();
        let mut members: Vec<Vec<usize>> = Vec::with_capacity(ranked.len());
        for (rank, scored) in ranked.iter().enumerate() {
            let group = match group_of(scored.item) {
                Some(name) => *by_name.entry(name).or_insert(members.len()),
                None => members.len(),
            };
            match members.get_mut(group) {
                Some(members) => members.push(rank),
                None => members.push(vec![rank]),
            }
        }
        if members.len() == ranked.len() {
            return None;
        }
        let groups = members
            .into_iter()
            .map(|members| Group::new(score, members, ranked));
        let (mut offered, too_large): (Vec<_>, Vec<_>) =
            groups.partition(|group| group.tokens <= i128::from(i64::MAX));
        offered.sort_by(|a, b| descending(a.score, b.score));
        Some(Self { offered, too_large })
    }

    /// The groups as the inner slicer sees them.
    fn candidates<'a>(&'a self, ranked: &[ScoredRef<'a>]) -> Vec<ScoredRef<'a>> {
        let candidate = |group: &'a Group| {
            let best = ranked[group.members[0]];
            let item = group.candidate.as_ref().unwrap_or(best.item);
            ScoredRef::new(item, group.score, best.position)
        };
        self.offered.iter().map(candidate).collect()
    }

    /// A choice of groups as a choice of their members. What was said about a group is said about
    /// each; a group of several that found no room says so itself.
    fn expand(self, chosen: Selection, budget: &ContextBudget) -> Result<Selection, CupelError> {
        chosen.check(self.offered.len())?;
        let mut selection = Selection::default();
        let mut silent = vec![true; self.offered.len()];
        let mut left = i128::from(budget.target_tokens());
        for &group in chosen.kept() {
            silent[group] = false;
            left -= self.offered[group].tokens;
            selection.extend(self.offered[group].members.iter().copied());
        }
        let (refusals, shortfalls) = chosen.into_remarks();
        for (group, refusal) in refusals {
            silent[group] = false;
            self.offered[group].refuse(&mut selection, &refusal);
        }
        for shortfall in shortfalls {
            selection.fall_short(shortfall);
        }
        let unlucky = self.offered.iter().zip(silent);
        let unlucky = unlucky.filter_map(|(group, silent)| silent.then_some(group));
        for group in unlucky.chain(&self.too_large) {
            if group.candidate.is_some() {
                let reason = ExclusionReason::GroupExcluded {
                    group_size: group.members.len(),
                    group_tokens: reported(group.tokens),
                    available_tokens: reported(left),
                };
                group.refuse(&mut selection, &Refusal::Because(reason));
            }
        }
        Ok(selection)
    }
}

impl Group {
    fn new(score: GroupScore, members: Vec<usize>, ranked: &[ScoredRef<'_>]) -> Self {
        let all = || members.iter().map(|&rank| &ranked[rank]);
        let tokens: i128 = all().map(|scored| i128::from(scored.item.tokens())).sum();
        let candidate = (members.len() > 1).then(|| {
            let first = ranked[members[0]].item;
            let largest = all().fold(first, |largest, scored| {
                if scored.item.tokens() > largest.tokens() {
                    scored.item
                } else {
                    largest
                }
            });
            first.stand_in(reported(tokens), largest.kind(), GroupSlice::KEY)
        });
        Self {
            tokens,
            score: score.of(&all().map(|scored| scored.score).collect::<Vec<_>>()),
            candidate,
            members,
        }
    }

    /// Says of every member why the group was refused. A count cap names the item's kind in the
    /// report, and of a group it is the candidate's that counted.
    fn refuse(&self, selection: &mut Selection, refusal: &Refusal) {
        let refusal = match (&self.candidate, refusal) {
            (Some(candidate), Refusal::CountCap { cap, count }) => {
                Refusal::Because(ExclusionReason::CountCapExceeded {
                    kind: candidate.kind().as_str().to_owned(),
                    cap: *cap,
                    count: *count,
                })
            }
            _ => refusal.clone(),
        };
        for &rank in &self.members {
            selection.refuse(rank, refusal.clone());
        }
    }
}
