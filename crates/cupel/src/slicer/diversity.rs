//! [`DiversitySlice`]: maximal marginal relevance (Carbonell and Goldstein 1998) with lazy
//! evaluation of gains (Minoux 1978).
//!
//! The gain of an item falls when a similar one is taken, and never rises. So a gain that was
//! computed earlier is an upper bound, and if the greatest bound is up to date, no other item can
//! have a greater gain. With lambda 0.5, scores 0.9, 0.8 and 0.7, and the first two items equal:
//!
//! ```text
//! take 0   gain 0.45
//! next 1   bound 0.40, computed before 0 was taken: now 0.40 - 0.5 * 1 = -0.10, back into the heap
//! next 2   bound 0.35: now 0.35, up to date and greatest: take it
//! next 1   bound -0.10 is old again: compared with 2 only
//! ```

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::shingles::Shingles;
use super::{Refusal, Selection, Slicer, slice_by_select};
use crate::diagnostics::{Excerpt, ExclusionReason};
use crate::order::Ranked;
use crate::{ContextBudget, CupelError, ScoredRef, vector};

/// Takes relevant items that differ from those taken before: maximal marginal relevance (Carbonell and
/// Goldstein 1998).
///
/// The marginal gain of an item is `lambda * score - (1 - lambda) * similarity`, where the similarity is that to
/// the most similar item taken before. Each step takes the item of the greatest gain that still fits, the better ranked
/// one on a tie. Items of zero tokens are kept while the target is positive. Gains only fall, so most are not
/// computed again (lazy greedy; Minoux 1978).
///
/// Scores should be in `[0, 1]`, as similarities are. An item that does not fit any more is excluded with
/// [`ExclusionReason::Redundant`], if it is similar to one in the window.
///
/// ```
/// use cupel::{ContextBudget, ContextItem, DiversitySlice, ScoredItem, Similarity, Slicer};
///
/// let scored = |content: &str, score| -> Result<_, cupel::CupelError> {
///     Ok(ScoredItem { item: ContextItem::builder(content, 10).build()?, score })
/// };
/// let sorted = [
///     scored("the order was shipped on Monday", 0.9)?,
///     scored("The order was shipped on Monday!", 0.8)?,
///     scored("the refund is on its way", 0.7)?,
/// ];
/// let slicer = DiversitySlice::new(0.5, Similarity::Shingles)?;
/// let kept = slicer.slice(&sorted, &ContextBudget::with_target(20, 20)?)?;
/// assert_eq!(kept[1].content(), "the refund is on its way");
/// # Ok::<(), cupel::CupelError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct DiversitySlice {
    lambda: f64,
    similarity: Similarity,
    shingle_size: usize,
}

/// How a [`DiversitySlice`] compares items.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Similarity {
    /// The Jaccard similarity of word shingles (Broder 1997).
    #[default]
    Shingles,
    /// The cosine similarity, at least 0, of the vectors in the metadata `cupel:vector`. An item without one is
    /// similar to none.
    Vectors,
}

impl DiversitySlice {
    /// Creates a slicer that weighs relevance by `lambda` and novelty by `1 - lambda`.
    ///
    /// # Errors
    ///
    /// [`CupelError::SlicerConfig`] if `lambda` is not from 0 to 1.
    pub fn new(lambda: f64, similarity: Similarity) -> Result<Self, CupelError> {
        if !(0.0..=1.0).contains(&lambda) {
            return Err(CupelError::SlicerConfig(format!(
                "lambda ({lambda}) must be in [0.0, 1.0]"
            )));
        }
        Ok(Self {
            lambda,
            similarity,
            shingle_size: 3,
        })
    }

    /// Sets the number of words per shingle. Defaults to 3.
    ///
    /// # Errors
    ///
    /// [`CupelError::SlicerConfig`] if it is not from 1 to 64.
    pub fn with_shingle_size(mut self, words: usize) -> Result<Self, CupelError> {
        if !(1..=64).contains(&words) {
            return Err(CupelError::SlicerConfig(
                "a shingle must have 1 to 64 words".to_owned(),
            ));
        }
        self.shingle_size = words;
        Ok(self)
    }

    fn gain(&self, score: f64, similarity: f64) -> f64 {
        self.lambda * score - (1.0 - self.lambda) * similarity
    }
}

/// The items in a form that can be compared.
enum Comparison {
    Shingles(Shingles),
    Vectors(Vec<Option<Vec<f32>>>),
}

impl Comparison {
    fn new(slicer: &DiversitySlice, ranked: &[ScoredRef<'_>]) -> Result<Self, CupelError> {
        Ok(match slicer.similarity {
            Similarity::Shingles => {
                let contents = ranked.iter().map(|scored| scored.item.content());
                Self::Shingles(Shingles::new(contents, slicer.shingle_size))
            }
            Similarity::Vectors => {
                let vectors = ranked.iter().map(|scored| vector::of_item(scored.item));
                let vectors: Vec<_> = vectors.collect::<Result<_, _>>()?;
                check_lengths(ranked, &vectors)?;
                Self::Vectors(vectors)
            }
        })
    }

    fn similarity(&self, a: usize, b: usize) -> f64 {
        match self {
            Self::Shingles(shingles) => shingles.similarity(a, b),
            Self::Vectors(vectors) => match (&vectors[a], &vectors[b]) {
                (Some(a), Some(b)) => vector::cosine(a, b),
                _ => 0.0,
            },
        }
    }
}

/// Fails if two items have vectors of different lengths.
fn check_lengths(ranked: &[ScoredRef<'_>], vectors: &[Option<Vec<f32>>]) -> Result<(), CupelError> {
    let with_vector = ranked.iter().zip(vectors);
    let mut lengths =
        with_vector.filter_map(|(it, vector)| Some((it.item, vector.as_ref()?.len())));
    let Some((first, length)) = lengths.next() else {
        return Ok(());
    };
    match lengths.find(|(_, other)| *other != length) {
        None => Ok(()),
        Some((item, other)) => Err(CupelError::InvalidVector(format!(
            "{} has {length} numbers in metadata `{}`, and {} has {other}; give all items one length",
            Excerpt(first.content()),
            vector::KEY,
            Excerpt(item.content()),
        ))),
    }
}

/// What is known of an item that is not taken. It was compared with the first `with` of the taken
/// items, so that each pair is compared at most once.
#[derive(Clone, Copy, Default)]
struct Compared {
    /// How many of the taken items it was compared with.
    with: usize,
    /// The most similar of them, with the similarity; `None` if it is similar to none.
    nearest: Option<(usize, f64)>,
}

impl Slicer for DiversitySlice {
    slice_by_select!();

    fn reads_content(&self) -> bool {
        self.similarity == Similarity::Shingles
    }

    #[cfg(feature = "serde")]
    fn to_config(&self) -> Result<super::SlicerConfig, super::ConfigError> {
        Ok(super::SlicerConfig::Diversity {
            lambda: self.lambda,
            similarity: self.similarity,
            shingle_size: self.shingle_size,
        })
    }

    fn select(
        &self,
        ranked: &[ScoredRef<'_>],
        budget: &ContextBudget,
    ) -> Result<Selection, CupelError> {
        let mut remaining = i128::from(budget.target_tokens());
        // Otherwise items of zero tokens would be kept in an empty window.
        if remaining <= 0 {
            return Ok(Selection::default());
        }
        let items = Comparison::new(self, ranked)?;
        let mut compared = vec![Compared::default(); ranked.len()];
        let gain = |rank: usize, compared: &Compared| {
            let similarity = compared.nearest.map_or(0.0, |(_, similarity)| similarity);
            self.gain(ranked[rank].score, similarity)
        };
        let mut taken: Vec<usize> = Vec::new();
        let mut selection = Selection::default();
        // Greatest gain first. A gain may be out of date, and then it is too great.
        let mut waiting: BinaryHeap<Reverse<Ranked>> = (0..ranked.len())
            .map(|rank| Reverse(Ranked::new(gain(rank, &compared[rank]), rank)))
            .collect();
        while let Some(Reverse(next)) = waiting.pop() {
            let rank = next.position();
            let tokens = i128::from(ranked[rank].item.tokens());
            let own = &mut compared[rank];
            // What does not fit now never will: the room only shrinks. So it is not put back.
            if tokens > remaining {
                if let Some((nearest, similarity)) = own.nearest {
                    let reason = ExclusionReason::Redundant {
                        gain: gain(rank, own),
                        similar_to: ranked[nearest].item.content().to_owned(),
                        similarity,
                    };
                    selection.refuse(rank, Refusal::Because(reason));
                }
            } else if own.with == taken.len() {
                selection.push(rank);
                taken.push(rank);
                remaining -= tokens;
            } else {
                for &other in &taken[own.with..] {
                    let similarity = items.similarity(other, rank);
                    if similarity > own.nearest.map_or(0.0, |(_, most)| most) {
                        own.nearest = Some((other, similarity));
                    }
                }
                own.with = taken.len();
                waiting.push(Reverse(Ranked::new(gain(rank, own), rank)));
            }
        }
        Ok(selection)
    }
}

#[cfg(feature = "serde")]
impl DiversitySlice {
    pub(crate) fn from_config(
        lambda: f64,
        similarity: Similarity,
        shingle_size: usize,
    ) -> Result<Self, super::ConfigError> {
        let slicer = Self::new(lambda, similarity).map_err(crate::config::invalid_in("lambda"))?;
        let slicer = slicer.with_shingle_size(shingle_size);
        slicer.map_err(crate::config::invalid_in("shingle_size"))
    }
}
