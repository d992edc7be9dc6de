//! [`ChoiceSlice`]: exact multiple-choice knapsack over the views of items.

use std::cmp::Reverse;
use std::ops::{ControlFlow, RangeInclusive};

use super::{Selection, Slicer, SweepVisitor, ViewChange, slice_by_select};
use crate::{ContextBudget, CupelError, ScoredRef};

/// Keeps each item in full, as one of its views, or not at all, with the highest total score that fits the
/// budget: the multiple-choice knapsack problem (Kellerer, Pferschy and Pisinger 2004, chapter 11).
///
/// An item in full has the value of its score, a view the score times
/// [`ContextView::value`](crate::ContextView::value). Values are counted in units of 10^-9, rounded down;
/// negative values count as 0. Among choices with the same total value, the one with fewer tokens wins;
/// then the first rank decides in which they differ: in full before views in their order, before not at all.
/// Items of zero tokens are always kept.
///
/// # Cost
///
/// The algorithm of Nemhauser and Ullmann (1969) keeps, for each suffix of the ranking, the pairs of tokens
/// and value that no other pair dominates. There are at most as many as the target has tokens, often far
/// fewer. A run examines at most [`state_limit`](Self::state_limit) pairs, 50,000,000 by default, and
/// fails with [`CupelError::TooManyStates`] beyond. 200 items with two views each within 8,000
/// tokens need at most 6,400,000.
///
/// ```
/// use cupel::{ChoiceSlice, ContextBudget, ContextItem, ContextView, ScoredItem, Slicer};
///
/// let passage = |text: &str, score| -> Result<_, cupel::CupelError> {
///     let item = ContextItem::builder(text, 100)
///         .view(ContextView::new(format!("{text}, extract"), 40).with_value(0.8))
///         .view(ContextView::new(format!("{text}, title"), 5).with_value(0.1))
///         .build()?;
///     Ok(ScoredItem { item, score })
/// };
/// let sorted = [passage("a", 0.9)?, passage("b", 0.8)?];
/// let contents = |budget| -> Result<Vec<String>, cupel::CupelError> {
///     let kept = ChoiceSlice::new().slice(&sorted, &ContextBudget::with_target(budget, budget)?)?;
///     Ok(kept.iter().map(|item| item.content().to_owned()).collect())
/// };
/// assert_eq!(contents(140)?, ["a", "b, extract"]);
/// assert_eq!(contents(139)?, ["a, extract", "b, extract"]); // 1.36, against 0.98 for "a" and "b, title"
/// # Ok::<(), cupel::CupelError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ChoiceSlice {
    state_limit: u64,
}

impl ChoiceSlice {
    const DEFAULT_STATE_LIMIT: u64 = 50_000_000;

    /// Creates a slicer with the default limit.
    pub fn new() -> Self {
        Self {
            state_limit: Self::DEFAULT_STATE_LIMIT,
        }
    }

    /// Sets the largest number of pairs of tokens and value that a run examines.
    ///
    /// # Errors
    ///
    /// [`CupelError::SlicerConfig`] if it is 0.
    pub fn with_state_limit(mut self, states: u64) -> Result<Self, CupelError> {
        if states == 0 {
            return Err(CupelError::SlicerConfig(
                "state_limit must be > 0".to_owned(),
            ));
        }
        self.state_limit = states;
        Ok(self)
    }

    /// Returns the largest number of pairs that a run examines.
    pub fn state_limit(&self) -> u64 {
        self.state_limit
    }
}

impl Default for ChoiceSlice {
    fn default() -> Self {
        Self::new()
    }
}

/// How an item may be kept. `view` is `None` for the item in full.
struct Form {
    view: Option<usize>,
    tokens: i64,
    value: i64,
}

/// Returns the forms of an item, preferred ones first; none for a negative token count.
fn forms(scored: &ScoredRef<'_>) -> Vec<Form> {
    let item = scored.item;
    if item.tokens() < 0 {
        return Vec::new();
    }
    let full = Form {
        view: None,
        tokens: item.tokens(),
        value: units(scored.score),
    };
    let views = item.views().iter().enumerate().map(|(index, view)| Form {
        view: Some(index),
        tokens: view.tokens(),
        value: units(scored.score * view.value().unwrap_or_default()),
    });
    std::iter::once(full).chain(views).collect()
}

/// Returns a value in units of 10^-9, or 0 for a negative one or NaN.
#[expect(
    clippy::cast_possible_truncation,
    reason = "large values saturate and NaN becomes 0; positive ones are rounded down"
)]
fn units(value: f64) -> i64 {
    ((value * 1e9) as i64).max(0)
}

/// An item that is kept, and the kept items after it: a linked list whose tails are shared by many pairs.
struct Node {
    rank: usize,
    view: Option<usize>,
    next: Option<u32>,
}

/// A choice from a suffix of the ranking.
#[derive(Clone, Copy)]
struct Point {
    tokens: i64,
    value: i128,
    /// The first kept item.
    node: Option<u32>,
}

/// The undominated choices from the whole ranking, in ascending order of tokens and of value.
struct Front {
    points: Vec<Point>,
    nodes: Vec<Node>,
}

impl Front {
    /// Goes from the last rank to the first. Of equal pairs the first is kept, so a pair has the preferred
    /// form of its first rank, and with it the preferred choice of the others. A choice whose suffix
    /// is dominated is dominated itself, so no solution is lost.
    ///
    /// A capacity of 4, and two items `tokens:value`: `a` is 3:4 in full and 1:2 as its view, `b` is 2:3.
    ///
    /// ```text
    /// no item   0:0
    /// b         0:0, 2:3
    /// a, b      0:0, 1:2 (view), 2:3 (b), 3:5 (view and b); 3:4 (a) is dominated by 3:5; a and b need 5
    /// ```
    ///
    /// The last pair is the solution for the capacity, the others are those for smaller ones.
    fn new(ranked: &[ScoredRef<'_>], capacity: i64, limit: u64) -> Result<Self, CupelError> {
        struct Extended {
            point: Point,
            view: Option<usize>,
            is_kept: bool,
        }
        let too_many = || CupelError::TooManyStates { limit };
        let mut nodes: Vec<Node> = Vec::new();
        let mut points = vec![Point {
            tokens: 0,
            value: 0,
            node: None,
        }];
        let mut examined: u64 = 0;
        let mut extended: Vec<Extended> = Vec::new();
        for (rank, scored) in ranked.iter().enumerate().rev() {
            extended.clear();
            for form in forms(scored) {
                let room = capacity.saturating_sub(form.tokens);
                let fitting = points.iter().take_while(|point| point.tokens <= room);
                extended.extend(fitting.map(|point| Extended {
                    point: Point {
                        tokens: point.tokens + form.tokens,
                        value: point.value + i128::from(form.value),
                        node: point.node,
                    },
                    view: form.view,
                    is_kept: true,
                }));
            }
            // Not keeping the item comes last, because it is the least preferred of equal pairs.
            extended.extend(points.drain(..).map(|point| Extended {
                point,
                view: None,
                is_kept: false,
            }));
            examined += extended.len() as u64;
            if examined > limit {
                return Err(too_many());
            }
            // Stable, and fast: these are a few sorted runs.
            extended.sort_by_key(|extended| {
                let Point { tokens, value, .. } = extended.point;
                (tokens, Reverse(value))
            });
            // In this order a pair is dominated if an earlier one has as much value. The first pair has none before
            // it, so that it is kept even with a value of 0.
            let mut best = -1;
            for Extended {
                mut point,
                view,
                is_kept,
            } in extended.drain(..)
            {
                if point.value <= best {
                    continue;
                }
                best = point.value;
                if is_kept {
                    let node = u32::try_from(nodes.len()).map_err(|_| too_many())?;
                    let next = point.node.replace(node);
                    nodes.push(Node { rank, view, next });
                }
                points.push(point);
            }
        }
        Ok(Self { points, nodes })
    }

    /// Returns the kept ranks of a choice with their views, in ascending order.
    fn kept(&self, point: &Point) -> impl Iterator<Item = (usize, Option<usize>)> + '_ {
        let node = |index: u32| &self.nodes[index as usize];
        let nodes = std::iter::successors(point.node.map(node), move |kept| kept.next.map(node));
        nodes.map(|kept| (kept.rank, kept.view))
    }
}

impl Slicer for ChoiceSlice {
    slice_by_select!();

    #[cfg(feature = "serde")]
    fn to_config(&self) -> Result<super::SlicerConfig, super::ConfigError> {
        let is_default = self.state_limit == Self::DEFAULT_STATE_LIMIT;
        Ok(super::SlicerConfig::Choice {
            state_limit: (!is_default).then_some(self.state_limit),
        })
    }

    fn select(
        &self,
        ranked: &[ScoredRef<'_>],
        budget: &ContextBudget,
    ) -> Result<Selection, CupelError> {
        let mut selection = Selection::default();
        if budget.target_tokens() <= 0 {
            return Ok(selection);
        }
        let front = Front::new(ranked, budget.target_tokens(), self.state_limit)?;
        for (rank, view) in front.points.last().into_iter().flat_map(|p| front.kept(p)) {
            selection.push(rank);
            if let Some(view) = view {
                selection.shorten(rank, view);
            }
        }
        Ok(selection)
    }

    /// The undominated choices for the last target are the solutions for all smaller ones.
    fn sweep(
        &self,
        ranked: &[ScoredRef<'_>],
        targets: RangeInclusive<i64>,
        visitor: &mut dyn SweepVisitor,
    ) -> Option<ControlFlow<()>> {
        /// The largest number of choices times items.
        const MOST_VISITS: usize = 1 << 27;
        let (first, last) = targets.into_inner();
        let first = first.max(1);
        if last < first {
            return Some(ControlFlow::Continue(()));
        }
        let front = Front::new(ranked, last, self.state_limit).ok()?;
        if front.points.len().saturating_mul(ranked.len()) > MOST_VISITS {
            return None;
        }
        // The last choice that fits the first target, and all larger ones.
        let larger = front.points.partition_point(|point| point.tokens <= first);
        let mut is_kept = vec![false; ranked.len()];
        let mut views = vec![None; ranked.len()];
        for point in &front.points[larger.saturating_sub(1)..] {
            let mut leaving = is_kept.clone();
            let mut entering: Vec<usize> = Vec::new();
            let mut changes: Vec<ViewChange> = Vec::new();
            for (rank, view) in front.kept(point) {
                if !std::mem::replace(&mut leaving[rank], false) {
                    entering.push(rank);
                    (is_kept[rank], views[rank]) = (true, None);
                }
                if std::mem::replace(&mut views[rank], view) != view {
                    changes.push((rank, view));
                }
            }
            for (rank, is_leaving) in leaving.into_iter().enumerate() {
                if is_leaving {
                    is_kept[rank] = false;
                    entering.push(rank);
                }
            }
            let flow = visitor.change(point.tokens.max(first), &entering, &changes);
            if flow.is_break() {
                return Some(flow);
            }
        }
        Some(ControlFlow::Continue(()))
    }
}

#[cfg(feature = "serde")]
impl ChoiceSlice {
    pub(crate) fn from_config(state_limit: Option<u64>) -> Result<Self, super::ConfigError> {
        let slicer = Self::new();
        let limit = state_limit.unwrap_or(slicer.state_limit);
        let slicer = slicer.with_state_limit(limit);
        slicer.map_err(crate::config::invalid_in("state_limit"))
    }
}
