//! [`NearDuplicateSlice`]: deduplication by similarity (Broder 1997) inside of a selection.
//!
//! Duplicates are removed from what the inner slicer chose, not before it chooses: a better item
//! that does not get into the window must not push out its copy. With three items of 20 tokens, a
//! budget of 40 and rank 1 similar to rank 0:
//!
//! ```text
//! round   offered   chosen   removed
//! 1       0 1 2     0 1      1, near-duplicate of 0
//! 2       0 2       0 2      none; the twin of 1 is still chosen, so 1 stays out
//! ```
//!
//! In a chain, where 1 is similar to 0 and 2 to 1 but not to 0, item 1 is removed and 2 stays: an
//! item that has a twin itself is no twin of others.
//!
//! The loop ends: each round but the last removes a group or releases one, a group is released at
//! most once, and so it is removed at most twice.

use std::collections::HashMap;
use std::sync::Arc;

use super::group::ranks_by_group;
use super::shingles::{Shingles, SimilarTexts};
use super::{LadderSlice, Refusal, Selection, Slicer, select_anywhere, slice_by_select};
use crate::diagnostics::ExclusionReason;
use crate::model::marks::key;
use crate::{ContextBudget, ContextKind, CupelError, Retention, ScoredRef};

/// Drops items that are similar to a better one in the window, and results that a newer result of the same
/// call supersedes; an inner slicer chooses among the rest.
///
/// - **Similar** are two items whose contents have a Jaccard similarity of word shingles (Broder 1997) of
///   at least the threshold. The one of better rank stays. All pairs at or above the threshold are found,
///   at any number of items (prefix filtering; Bayardo, Ma and Srikant 2007).
/// - **Results of the same call** are items with the same string in the metadata `cupel:call`, such as the
///   name of a tool and its arguments. The newest of those in the window stays, by timestamp, then by
///   position; their similarity does not matter.
///
/// The inner slicer chooses, the items with a twin in its choice are removed, and it chooses again from
/// the rest, until no kept item has one. An item whose twin is not in the window in the end is offered once
/// more.
///
/// A group (metadata `cupel:group`) is dropped only if every member has a twin outside of it. Items with the
/// metadata `cupel:mandatory`, `cupel:keep` or `cupel:late` are not dropped. Pinned items are not compared.
///
/// # Similarity
///
/// The words of a content are its longest runs of alphanumeric characters ([`char::is_alphanumeric`]),
/// each character in lowercase ([`char::to_lowercase`]). An alphanumeric character in `U+2E80..=U+9FFF`,
/// `U+F900..=U+FAFF` or `U+20000..=U+3FFFF` (ideographs, kana) ends the word before it and is one itself.
/// The shingles are the set of all sequences of `shingle_size` consecutive words; a content of fewer words has
/// one shingle, all its words, and one without words has none. The similarity is the number of common
/// shingles divided by the number of shingles of both together, in binary64, and 0 if there are none. It is
/// compared as it is: a similarity equal to the threshold counts.
///
/// # The choice
///
/// A candidate without a group is a group of one. The candidates that the inner slicer keeps are `K`; at first
/// no group is removed.
///
/// 1. The inner slicer chooses `K` among the candidates of the groups that are not removed, in rank order.
/// 2. Every candidate, kept or not, gets its twin or none, in rank order from the best. `better` is empty at first.
///    - A candidate with the metadata `cupel:mandatory`, `cupel:keep` or `cupel:late` has no twin.
///    - Otherwise, if the newest result in `K` of its call is newer than it and in another group, that is its
///      twin. A candidate without a timestamp is older than one with; equal times are ordered by the position in
///      the input.
///    - Otherwise its twin is the most similar candidate of `better` at or above the threshold, the one of the
///      better rank on a tie. Members of its own group and results of its own call are left out.
///    - Then a candidate of `K` is added to `better` if it has no twin, or if its group has several members.
/// 3. A group that is not removed and whose members all have a twin is removed. If there is one, all of them are
///    removed, and the procedure goes on at 1.
/// 4. A removed group with a member that has no twin now is offered again, each group once at most. If there
///    is one, all of them are, and the procedure goes on at 1.
/// 5. `K` is the choice. The members of removed groups have their twins as reasons.
///
/// So near-duplicates do not form chains: if `a` is like `b` and `b` is like `c`, but `a` is not like `c`, then
/// `b` is removed because of `a`, and `c` stays, because `b` is not in `better`.
///
/// ```
/// use cupel::{ChronologicalPlacer, ContextBudget, ContextItem, NearDuplicateSlice, Pipeline};
/// use cupel::{RankSlice, ReflexiveScorer};
///
/// let item = |content: &str, hint| {
///     ContextItem::builder(content, 20).future_relevance_hint(hint).build()
/// };
/// let items = [
///     item("The cat sat on the mat and looked at me, then it slept.", 0.9)?,
///     item("the cat sat on the mat and looked at me then it slept!", 0.8)?,
///     item("Dogs bark.", 0.7)?,
/// ];
/// let slicer = NearDuplicateSlice::new(RankSlice);
/// let pipeline = Pipeline::new(ReflexiveScorer, slicer, ChronologicalPlacer);
/// let report = pipeline.dry_run(&items, &ContextBudget::with_target(40, 40)?)?;
/// assert_eq!(report.included.len(), 2);
/// assert_eq!(report.excluded[0].reason.phrase(), "near-duplicate of another item: 100 % similar");
/// # Ok::<(), cupel::CupelError>(())
/// ```
#[derive(Debug, Clone)]
pub struct NearDuplicateSlice {
    inner: Arc<dyn Slicer>,
    threshold: f64,
    shingle_size: usize,
}

impl NearDuplicateSlice {
    /// The metadata key that identifies the call of a result.
    pub const CALL: &str = key::CALL;

    /// Drops near-duplicates from what `inner` chooses: a similarity of 0.8, shingles of 3 words.
    pub fn new(inner: impl Slicer + 'static) -> Self {
        Self {
            inner: Arc::new(inner),
            threshold: 0.8,
            shingle_size: 3,
        }
    }

    /// Sets the least similarity of near-duplicates, and the number of words per shingle. Default to 0.8
    /// and 3.
    ///
    /// # Errors
    ///
    /// [`CupelError::SlicerConfig`] if the threshold is not above 0 and at most 1, or the size is not from 1 to 64.
    pub fn with_similarity(
        mut self,
        threshold: f64,
        shingle_size: usize,
    ) -> Result<Self, CupelError> {
        if !(threshold > 0.0 && threshold <= 1.0) {
            return Err(CupelError::SlicerConfig(format!(
                "threshold ({threshold}) must be in (0.0, 1.0]"
            )));
        }
        if !(1..=64).contains(&shingle_size) {
            return Err(CupelError::SlicerConfig(
                "a shingle must have 1 to 64 words".to_owned(),
            ));
        }
        (self.threshold, self.shingle_size) = (threshold, shingle_size);
        Ok(self)
    }
}

/// The better item in the window: the reason why another one is out.
#[derive(Clone, Copy)]
struct Twin {
    rank: usize,
    /// `None` for a newer result of the same call.
    similarity: Option<f64>,
}

impl Twin {
    fn reason(self, ranked: &[ScoredRef<'_>]) -> ExclusionReason {
        let content = ranked[self.rank].item.content().to_owned();
        match self.similarity {
            Some(similarity) => ExclusionReason::NearDuplicate {
                similar_to: content,
                similarity,
            },
            None => ExclusionReason::Superseded {
                superseded_by: content,
            },
        }
    }
}

/// Returns the newest of the included results of each call, by rank.
pub(super) fn newest_results<'a>(
    ranked: &[ScoredRef<'a>],
    is_included: impl Fn(usize) -> bool,
) -> HashMap<&'a str, usize> {
    let mut newest: HashMap<&str, usize> = HashMap::new();
    for (rank, scored) in ranked.iter().enumerate() {
        if let Some(call) = scored.item.call().filter(|_| is_included(rank)) {
            let newest = newest.entry(call).or_insert(rank);
            if recency(scored) > recency(&ranked[*newest]) {
                *newest = rank;
            }
        }
    }
    newest
}

/// Returns a key that is greater for newer candidates.
fn recency(scored: &ScoredRef<'_>) -> impl Ord + use<> {
    (scored.item.timestamp(), scored.position)
}

/// What the comparison of candidates needs to know of them.
struct Candidates<'r, 'a> {
    ranked: &'r [ScoredRef<'a>],
    shingles: Shingles,
    calls: Vec<Option<&'a str>>,
    is_mandatory: Vec<bool>,
    /// The members of each group, and the group of each candidate.
    groups: Vec<Vec<usize>>,
    group_of: Vec<usize>,
}

impl<'r, 'a> Candidates<'r, 'a> {
    fn new(ranked: &'r [ScoredRef<'a>], shingle_size: usize) -> Self {
        let contents = ranked.iter().map(|scored| scored.item.content());
        let groups = ranks_by_group(ranked);
        let mut group_of = vec![0; ranked.len()];
        for (group, members) in groups.iter().enumerate() {
            for &rank in members {
                group_of[rank] = group;
            }
        }
        let is_mandatory = |rank: usize| ranked[rank].item.retention() > Retention::Droppable;
        Self {
            ranked,
            shingles: Shingles::new(contents, shingle_size),
            calls: ranked.iter().map(|scored| scored.item.call()).collect(),
            is_mandatory: (0..ranked.len()).map(is_mandatory).collect(),
            groups,
            group_of,
        }
    }

    /// Returns for every candidate its twin among the kept ones.
    fn twins(&self, is_kept: &[bool], threshold: f64) -> Vec<Option<Twin>> {
        let newest = newest_results(self.ranked, |rank| is_kept[rank]);
        let mut better = SimilarTexts::new(&self.shingles, threshold);
        let mut twins = Vec::with_capacity(self.ranked.len());
        for (rank, &group) in self.group_of.iter().enumerate() {
            let newer = self.calls[rank].and_then(|call| newest.get(call)).copied();
            let newer = newer.filter(|&newer| {
                self.group_of[newer] != group
                    && recency(&self.ranked[newer]) > recency(&self.ranked[rank])
            });
            let is_comparable = |other: usize| {
                let is_same_call =
                    self.calls[rank].is_some() && self.calls[rank] == self.calls[other];
                self.group_of[other] != group && !is_same_call
            };
            // A newer result wins over a similar text: it says what is true now, not just the same.
            let twin = match newer {
                _ if self.is_mandatory[rank] => None,
                Some(rank) => Some(Twin {
                    rank,
                    similarity: None,
                }),
                None => better
                    .find(rank, is_comparable)
                    .map(|(rank, similarity)| Twin {
                        rank,
                        similarity: Some(similarity),
                    }),
            };
            // An item with a twin will be removed and must not remove others. A member of a larger
            // group may stay all the same, because of the other members.
            if is_kept[rank] && (twin.is_none() || self.groups[group].len() > 1) {
                better.insert(rank);
            }
            twins.push(twin);
        }
        twins
    }
}

impl Slicer for NearDuplicateSlice {
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

    fn reads_content(&self) -> bool {
        true
    }

    #[cfg(feature = "serde")]
    fn to_config(&self) -> Result<super::SlicerConfig, super::ConfigError> {
        let inner = self.inner.to_config();
        Ok(super::SlicerConfig::NearDuplicates {
            threshold: self.threshold,
            shingle_size: self.shingle_size,
            inner: inner.map_err(|error| error.within("inner"))?.into(),
        })
    }

    fn select_in(
        &self,
        kind: Option<&ContextKind>,
        ranked: &[ScoredRef<'_>],
        budget: &ContextBudget,
    ) -> Result<Selection, CupelError> {
        let candidates = Candidates::new(ranked, self.shingle_size);
        let groups = &candidates.groups;
        // By group.
        let mut is_removed = vec![false; groups.len()];
        let mut was_released = vec![false; groups.len()];
        loop {
            let is_offered = |rank: &usize| !is_removed[candidates.group_of[*rank]];
            let offered: Vec<usize> = (0..ranked.len()).filter(is_offered).collect();
            let list: Vec<ScoredRef<'_>> = offered.iter().map(|&rank| ranked[rank]).collect();
            let chosen = self.inner.select_in(kind, &list, budget)?;
            let mut selection = Selection::default();
            let kept = selection.adopt(chosen, &offered)?;
            let mut is_kept = vec![false; ranked.len()];
            for &rank in &kept {
                is_kept[rank] = true;
            }
            selection.extend(kept);

            let twins = candidates.twins(&is_kept, self.threshold);
            let has_twins =
                |group: &usize| groups[*group].iter().all(|&rank| twins[rank].is_some());
            let found = (0..groups.len()).filter(|&group| !is_removed[group]);
            let found: Vec<usize> = found.filter(has_twins).collect();
            let lost = (0..groups.len()).filter(|&group| is_removed[group] && !was_released[group]);
            // Removing a group frees tokens, and the next choice may drop the very item that it was
            // a copy of. Such a group is offered once more; only once, or two copies could
            // alternate forever.
            let lost: Vec<usize> = lost.filter(|group| !has_twins(group)).collect();
            if !found.is_empty() {
                for group in found {
                    is_removed[group] = true;
                }
            } else if !lost.is_empty() {
                for group in lost {
                    (is_removed[group], was_released[group]) = (false, true);
                }
            } else {
                for (rank, twin) in twins.iter().enumerate() {
                    if let Some(twin) = twin.filter(|_| is_removed[candidates.group_of[rank]]) {
                        selection.refuse(rank, Refusal::Because(twin.reason(ranked)));
                    }
                }
                return Ok(selection);
            }
        }
    }
}

#[cfg(feature = "serde")]
impl NearDuplicateSlice {
    pub(crate) fn from_config(
        threshold: f64,
        shingle_size: usize,
        inner: Box<super::SlicerConfig>,
    ) -> Result<Self, super::ConfigError> {
        let slicer = Self::new(inner.into_inner()?).with_similarity(threshold, shingle_size);
        slicer.map_err(super::ConfigError::invalid)
    }
}
