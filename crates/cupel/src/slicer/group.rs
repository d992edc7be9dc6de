//! [`GroupSlice`]: items that are kept or dropped together.

use std::collections::HashMap;
use std::ops::{ControlFlow, RangeInclusive};
use std::sync::Arc;

use super::{
    LadderSlice, Refusal, Selection, Slicer, SweepVisitor, ViewChange, select_anywhere,
    slice_by_select,
};
use crate::diagnostics::ExclusionReason;
use crate::error::{ContractViolation, StrategyRole};
use crate::model::marks::key;
use crate::model::saturate;
use crate::order::descending;
use crate::{ContextBudget, ContextItem, ContextKind, CupelError, ScoredRef};

/// Keeps or drops the items of a group together; an inner slicer chooses among the groups.
///
/// The metadata key `cupel:group` names an item's group. Items with the same string there, compared
/// exactly, are one group; an item without it is a group by itself. The inner slicer sees each
/// group as one candidate:
///
/// - its tokens are the sum of the members' tokens; a group beyond the 64-bit range is not offered;
/// - its score is the members' best, or their mean or sum ([`GroupScore`]), and its rank follows
///   from it, ties by the rank of the best member;
/// - its kind is that of its largest member, so that a call and its long result count toward the
///   share of tool outputs, and it counts as one item;
/// - it has no views;
/// - everything else is its best member's.
///
/// A [`LadderSlice`] keeps groups together itself, and shortens their members. Around one, or a slicer that
/// wraps one, this slicer passes the members on, in the order of their groups' scores.
///
/// If every group has one item, the choice is the inner slicer's own. Inside [`QuotaSlice`] and
/// [`CountQuotaSlice`] this slicer has the same effect as around them: items are grouped before they
/// are divided by kind, so no share or cap splits a group.
///
/// Slicers see the candidates that earlier stages leave. A pinned member is always included; the rest
/// of its group is a group that costs its own tokens. Deduplication removes copies from groups:
/// disable it if a group must stay whole. [`OverflowStrategy::Truncate`] cuts item by item, which
/// matters only if required counts exceed the target.
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
///     "GroupExcluded: its group of 2 items (812 tokens) does not fit, 70 available"
/// );
/// # Ok::<(), cupel::CupelError>(())
/// ```
#[derive(Debug, Clone)]
pub struct GroupSlice {
    inner: Arc<dyn Slicer>,
    score: GroupScore,
}

/// How a group is scored.
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
    /// Combines scores; there is at least one.
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
    pub const KEY: &str = key::GROUP;

    /// Chooses among groups with `inner`. The score of a group defaults to its best member's.
    pub fn new(inner: impl Slicer + 'static) -> Self {
        Self {
            inner: Arc::new(inner),
            score: GroupScore::default(),
        }
    }

    /// Sets how a group is scored.
    pub fn with_score(mut self, score: GroupScore) -> Self {
        self.score = score;
        self
    }

    /// Returns how a group is scored.
    pub fn score(&self) -> GroupScore {
        self.score
    }

    /// Lets a ladder choose from the members of the groups, best group first.
    fn select_members(
        &self,
        kind: Option<&ContextKind>,
        ranked: &[ScoredRef<'_>],
        budget: &ContextBudget,
    ) -> Result<Selection, CupelError> {
        let Some(groups) = Groups::find(self.score, ranked) else {
            return self.inner.select_in(kind, ranked, budget);
        };
        // A ladder keeps the groups together itself. Groups too large for a sum of tokens come last: the ladder
        // may shorten their members.
        let groups = groups.offered.iter().chain(&groups.too_large);
        let ranks: Vec<usize> = groups.flat_map(|group| group.members.clone()).collect();
        let members: Vec<_> = ranks.iter().map(|&rank| ranked[rank]).collect();
        let chosen = self.inner.select_in(kind, &members, budget)?;
        let mut selection = Selection::default();
        let kept = selection.adopt(chosen, &ranks)?;
        selection.extend(kept);
        Ok(selection)
    }
}

impl Slicer for GroupSlice {
    slice_by_select!();
    select_anywhere!();

    fn inner(&self) -> Option<&dyn Slicer> {
        Some(&self.inner)
    }

    fn with_ladder(&self, ladder: LadderSlice) -> Option<Arc<dyn Slicer>> {
        Some(Arc::new(Self {
            inner: self.inner.with_ladder(ladder)?,
            ..*self
        }))
    }

    #[cfg(feature = "serde")]
    fn to_config(&self) -> Result<super::SlicerConfig, super::ConfigError> {
        let inner = self.inner.to_config();
        Ok(super::SlicerConfig::Group {
            score: self.score,
            inner: inner.map_err(|error| error.within("inner"))?.into(),
        })
    }

    fn select_in(
        &self,
        kind: Option<&ContextKind>,
        ranked: &[ScoredRef<'_>],
        budget: &ContextBudget,
    ) -> Result<Selection, CupelError> {
        if self.inner.ladder().is_some() {
            return self.select_members(kind, ranked, budget);
        }
        select_groups(Some(self.score), ranked, budget, |ranked| {
            self.inner.select_in(kind, ranked, budget)
        })
    }

    fn select_unsorted(
        &self,
        candidates: &[ScoredRef<'_>],
        budget: &ContextBudget,
    ) -> Option<Vec<usize>> {
        let has_group = |scored: &ScoredRef<'_>| scored.item.group().is_some();
        if candidates.iter().any(has_group) {
            return None;
        }
        self.inner.select_unsorted(candidates, budget)
    }

    fn sweep(
        &self,
        ranked: &[ScoredRef<'_>],
        targets: RangeInclusive<i64>,
        visitor: &mut dyn SweepVisitor,
    ) -> Option<ControlFlow<()>> {
        let Some(groups) = Groups::find(self.score, ranked) else {
            return self.inner.sweep(ranked, targets, visitor);
        };
        // A ladder is given the members in another order (`select_members`). Its sweep is not mapped back, so the
        // caller runs at single targets.
        if self.inner.ladder().is_some() {
            return None;
        }
        let mut expand = Expand {
            groups: &groups,
            members: Vec::new(),
            views: Vec::new(),
            visitor,
        };
        let candidates = groups.candidates(ranked);
        self.inner.sweep(&candidates, targets, &mut expand)
    }

    fn group_score(&self) -> Option<GroupScore> {
        Some(self.score)
    }
}

/// Turns changes of groups into changes of their members. A group of several has no views.
struct Expand<'a> {
    groups: &'a Groups,
    members: Vec<usize>,
    views: Vec<ViewChange>,
    visitor: &'a mut dyn SweepVisitor,
}

impl SweepVisitor for Expand<'_> {
    fn change(&mut self, target: i64, ranks: &[usize], views: &[ViewChange]) -> ControlFlow<()> {
        let members = |group: usize| &self.groups.offered[group].members;
        self.members.clear();
        self.members
            .extend(ranks.iter().flat_map(|&group| members(group)));
        self.views.clear();
        // A view is one of a candidate that is a group by itself.
        let single = |&(group, view): &ViewChange| (members(group)[0], view);
        self.views.extend(views.iter().map(single));
        self.visitor.change(target, &self.members, &self.views)
    }

    fn fail(&mut self, target: i64, error: CupelError) {
        self.visitor.fail(target, error);
    }
}

/// Returns the choice of `select` among the groups of `ranked`, expanded to their members. Without
/// groups, or without a score for them, it is the choice from `ranked` itself.
pub(super) fn select_groups(
    score: Option<GroupScore>,
    ranked: &[ScoredRef<'_>],
    budget: &ContextBudget,
    select: impl FnOnce(&[ScoredRef<'_>]) -> Result<Selection, CupelError>,
) -> Result<Selection, CupelError> {
    match score.and_then(|score| Groups::find(score, ranked)) {
        Some(groups) => {
            let chosen = select(&groups.candidates(ranked))?;
            groups.expand(chosen, ranked, budget)
        }
        None => select(ranked),
    }
}

/// Returns the ranks of each group, by the rank of its best member. A candidate without a group is one of its
/// own.
pub(super) fn ranks_by_group(ranked: &[ScoredRef<'_>]) -> Vec<Vec<usize>> {
    let mut by_name: HashMap<&str, usize> = HashMap::new();
    let mut groups: Vec<Vec<usize>> = Vec::new();
    // The first member of a group is its best one, so groups are found in the order of their best members.
    for (rank, scored) in ranked.iter().enumerate() {
        let group = match scored.item.group() {
            Some(name) => *by_name.entry(name).or_insert(groups.len()),
            None => groups.len(),
        };
        match groups.get_mut(group) {
            Some(members) => members.push(rank),
            None => groups.push(vec![rank]),
        }
    }
    groups
}

/// A ranked list in groups, at least one of which has several members.
struct Groups {
    /// By score, ties by the rank of the best member.
    offered: Vec<Group>,
    /// Groups that no budget has room for.
    too_large: Vec<Group>,
}

struct Group {
    /// Ascending ranks.
    members: Vec<usize>,
    tokens: i128,
    score: f64,
    /// The item that the inner slicer sees in place of several members.
    candidate: Option<ContextItem>,
}

impl Groups {
    /// Returns `None` if every group has one member.
    fn find(score: GroupScore, ranked: &[ScoredRef<'_>]) -> Option<Self> {
        let members = ranks_by_group(ranked);
        if members.len() == ranked.len() {
            return None;
        }
        let groups = members
            .into_iter()
            .map(|members| Group::new(score, members, ranked));
        let (mut offered, too_large): (Vec<_>, Vec<_>) =
            groups.partition(|group| group.tokens <= i128::from(i64::MAX));
        // A stable sort: groups with equal scores stay in the order of their best members.
        offered.sort_by(|a, b| descending(a.score, b.score));
        Some(Self { offered, too_large })
    }

    /// Returns the groups as the inner slicer sees them.
    fn candidates<'a>(&'a self, ranked: &[ScoredRef<'a>]) -> Vec<ScoredRef<'a>> {
        let candidate = |group: &'a Group| {
            let best = ranked[group.members[0]];
            let item = group.candidate.as_ref().unwrap_or(best.item);
            ScoredRef::new(item, group.score, best.position)
        };
        self.offered.iter().map(candidate).collect()
    }

    /// Turns a choice of groups into a choice of their members. A refusal of a group is repeated for
    /// each member. A group of several that did not fit is refused with
    /// [`ExclusionReason::GroupExcluded`].
    fn expand(
        self,
        mut chosen: Selection,
        ranked: &[ScoredRef<'_>],
        budget: &ContextBudget,
    ) -> Result<Selection, CupelError> {
        chosen.check(self.offered.len())?;
        let mut selection = Selection::default();
        let mut unexplained = vec![true; self.offered.len()];
        let mut left = i128::from(budget.target_tokens());
        for &group in chosen.kept() {
            unexplained[group] = false;
            left -= self.offered[group].tokens;
            selection.extend(self.offered[group].members.iter().copied());
        }
        for (position, &(group, view)) in chosen.views().iter().enumerate() {
            let group = &self.offered[group];
            let rank = group.members[0];
            let shortened = match group.candidate {
                // A group of several has no views.
                Some(_) => None,
                None => ranked[rank].item.views().get(view),
            };
            let Some(shortened) = shortened else {
                return Err(CupelError::Contract {
                    strategy: StrategyRole::Slicer,
                    violation: ContractViolation::UnknownView { position },
                });
            };
            left += group.tokens - i128::from(shortened.tokens());
            selection.shorten(rank, view);
        }
        selection.take_shortfalls(&mut chosen);
        for (group, refusal) in chosen.into_remarks().0 {
            unexplained[group] = false;
            self.offered[group].refuse(&mut selection, &refusal);
        }
        let unfit = self.offered.iter().zip(unexplained);
        let unfit = unfit.filter_map(|(group, unexplained)| unexplained.then_some(group));
        for group in unfit.chain(&self.too_large) {
            if group.candidate.is_some() {
                let reason = ExclusionReason::GroupExcluded {
                    group_size: group.members.len(),
                    group_tokens: saturate(group.tokens),
                    available_tokens: saturate(left),
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
            first.representative(saturate(tokens), largest.kind())
        });
        Self {
            tokens,
            score: score.of(&all().map(|scored| scored.score).collect::<Vec<_>>()),
            candidate,
            members,
        }
    }

    /// Refuses every member. A count cap names the kind that was counted: the group's, not the
    /// member's.
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

#[cfg(feature = "serde")]
impl GroupSlice {
    pub(crate) fn from_config(
        score: GroupScore,
        inner: Box<super::SlicerConfig>,
    ) -> Result<Self, super::ConfigError> {
        let inner = inner.into_inner()?;
        Ok(Self::new(inner).with_score(score))
    }
}
