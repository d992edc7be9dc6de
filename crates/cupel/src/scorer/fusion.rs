//! [`FusionScorer`].

use std::fmt;
use std::sync::Arc;

use super::{Among, BuiltinScorer, ScorePart, Scorer, explained, position, scores, total_weight};
use crate::fast::parallel;
use crate::order::Ranked;
use crate::{ContextItem, CupelError, Query};

/// Combines several scorers whose scores are not on one scale.
///
/// A [`CompositeScorer`](crate::CompositeScorer) averages the scores as they are; a fusion first makes
/// them comparable, by one of three [methods](FusionMethod). Scores are in `[0, 1]`. A score of a child
/// that is not above zero, or NaN, counts as no score: it adds nothing, has no rank and takes no share.
///
/// Scores are compared as they are: two scores that differ in the last bit are not equal. The order of items
/// whose scores are nearly equal therefore depends on the order of the operations, which is this, in binary64
/// and from the left: `s = 0`, then for each child in the order of the entries `s = s + w * v`, with its weight
/// `w` and the comparable score `v` that the [method](FusionMethod) states; the score of the item is `s / W`,
/// where `W` is the sum of the weights in that order. Only items that take part in scoring are compared.
///
/// ```
/// use cupel::{ContextItem, FusionMethod, FusionScorer, PriorityScorer, ReflexiveScorer, Scorer};
///
/// let entries: Vec<(Box<dyn Scorer>, f64)> =
///     vec![(Box::new(ReflexiveScorer), 3.0), (Box::new(PriorityScorer), 1.0)];
/// let scorer = FusionScorer::new(FusionMethod::Sum, entries)?;
/// let items = [
///     ContextItem::builder("a", 1).future_relevance_hint(0.4).priority(1).build()?,
///     ContextItem::builder("b", 1).future_relevance_hint(0.2).priority(2).build()?,
/// ];
/// assert_eq!(scorer.score_all(&items)?, [0.75, 0.375 + 0.25]);
/// # Ok::<(), cupel::CupelError>(())
/// ```
pub struct FusionScorer {
    method: FusionMethod,
    scorers: Vec<Arc<dyn Scorer>>,
    weights: Vec<f64>,
    total_weight: f64,
    k: f64,
}

/// How a [`FusionScorer`] combines its children.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum FusionMethod {
    /// The weighted average of the children's scores, each divided by the child's greatest score.
    ///
    /// The comparable score is `score / greatest`, and exactly 1 for a score that equals the greatest, also
    /// if that is infinite. It is 0 without a score.
    #[default]
    Sum,
    /// The weighted average of `(k + 1) / (k + rank)`: reciprocal rank fusion (Cormack, Clarke and
    /// Büttcher 2009), divided by its greatest possible value. The best item of a child has rank 1; equal
    /// scores share a rank.
    ///
    /// The rank is 1 plus the number of items with a greater score. The comparable score is
    /// `(k + 1) / (k + rank)`, and 0 without a score.
    ReciprocalRank,
    /// An order of the items in which each child ranks its share of the tokens, in every prefix: stride
    /// scheduling (Waldspurger and Weihl 1995), where the clients are the children and the resource is
    /// tokens.
    ///
    /// Each step takes the best item not yet taken, by score and then by index, of the child whose taken
    /// tokens divided by its weight are fewest, the first child on a tie. The item at place `i` of `n`
    /// scores `(n - i) / n`, counted from 0. An item that no child scores gets 0.
    ///
    /// A child takes part as long as it scores an item that is not taken. The tokens of the items
    /// that it took are summed as integers, negative ones as 0, and divided by its weight in binary64; two
    /// quotients tie only if they are equal. `n` is the number of items that take part in scoring.
    ///
    /// The order does not depend on the budget.
    ///
    /// ```
    /// use cupel::{ContextItem, FusionMethod, FusionScorer, PriorityScorer, ReflexiveScorer, Scorer};
    ///
    /// let entries: Vec<(Box<dyn Scorer>, f64)> =
    ///     vec![(Box::new(ReflexiveScorer), 1.0), (Box::new(PriorityScorer), 1.0)];
    /// let scorer = FusionScorer::new(FusionMethod::Shares, entries)?;
    /// let items = [
    ///     ContextItem::builder("hinted", 30).future_relevance_hint(0.9).build()?,
    ///     ContextItem::builder("also hinted", 30).future_relevance_hint(0.8).build()?,
    ///     ContextItem::builder("urgent", 10).priority(9).build()?,
    ///     ContextItem::builder("less urgent", 10).priority(8).build()?,
    ///     ContextItem::builder("neither", 10).priority(7).build()?,
    /// ];
    /// // 30 tokens of the hinted, then the urgent ones until they have as many.
    /// assert_eq!(scorer.score_all(&items)?, [1.0, 0.4, 0.8, 0.6, 0.0]);
    /// # Ok::<(), cupel::CupelError>(())
    /// ```
    Shares,
}

impl FusionScorer {
    /// The constant `k` of reciprocal rank fusion in the paper that introduced it.
    pub const DEFAULT_K: f64 = 60.0;

    /// Creates the fusion of scorers with their weights, combined in list order.
    ///
    /// # Errors
    ///
    /// [`CupelError::ScorerConfig`] if there is no entry, a weight is not positive and
    /// finite, or the sum of the weights is not finite.
    pub fn new(
        method: FusionMethod,
        entries: Vec<(Box<dyn Scorer>, f64)>,
    ) -> Result<Self, CupelError> {
        let total_weight = total_weight(&entries)?;
        let (scorers, weights): (Vec<_>, Vec<_>) = entries.into_iter().unzip();
        Ok(Self {
            method,
            scorers: scorers.into_iter().map(Arc::from).collect(),
            weights,
            total_weight,
            k: Self::DEFAULT_K,
        })
    }

    /// Sets the constant of [`FusionMethod::ReciprocalRank`]. A larger one favors the first ranks less.
    /// Defaults to 60.
    ///
    /// # Errors
    ///
    /// [`CupelError::ScorerConfig`] if `k` is negative or not finite.
    pub fn with_k(mut self, k: f64) -> Result<Self, CupelError> {
        super::check_weight(k, || "k".to_owned())?;
        self.k = k;
        Ok(self)
    }

    /// Combines one column of scores per child. Items that do not take part get 0.0.
    fn fuse(&self, mut columns: Vec<Vec<f64>>, items: &[ContextItem], among: Among) -> Vec<f64> {
        for column in &mut columns {
            let others = column.iter_mut().zip(items);
            let others = others.filter(|(_, item)| !among.includes(item));
            others.for_each(|(score, _)| *score = f64::NAN);
        }
        if self.method == FusionMethod::Shares {
            let turns = self.take_turns(&columns, items);
            let count = items.iter().filter(|item| among.includes(item)).count();
            let scores = turns.iter().map(|turn| score_of_turn(*turn, count));
            return scores.collect();
        }
        let mut sums = vec![0.0; items.len()];
        for (column, weight) in columns.into_iter().zip(&self.weights) {
            for (sum, (value, _)) in sums.iter_mut().zip(self.comparable(&column)) {
                *sum += weight * value;
            }
        }
        sums.into_iter()
            .map(|sum| sum / self.total_weight)
            .collect()
    }

    /// Returns the scores of one child in `[0, 1]`, each with what it was computed from.
    fn comparable(&self, column: &[f64]) -> Vec<(f64, Basis)> {
        if self.method == FusionMethod::ReciprocalRank {
            let rank = |rank: Option<usize>| match rank {
                Some(rank) => ((self.k + 1.0) / (self.k + rank as f64), Basis::Rank(rank)),
                None => (0.0, Basis::None),
            };
            return ranks(column).into_iter().map(rank).collect();
        }
        let max = column.iter().fold(0.0, |max, &score| f64::max(max, score));
        let relative = |&score: &f64| match score {
            _ if !has_score(score) => (0.0, Basis::None),
            // An infinite maximum divided by itself is NaN.
            _ if score == max => (1.0, Basis::Max(max)),
            _ => (score / max, Basis::Max(max)),
        };
        column.iter().map(relative).collect()
    }

    /// Returns for every item the child that takes it and its place in the order.
    fn take_turns(&self, columns: &[Vec<f64>], items: &[ContextItem]) -> Vec<Option<Turn>> {
        let mut turns: Vec<Option<Turn>> = vec![None; items.len()];
        let rankings = columns.iter().map(|column| ranking(column));
        let mut clients: Vec<Client> = rankings
            .map(|ranking| Client {
                waiting: ranking.into_iter(),
                tokens: 0,
            })
            .collect();
        let mut place = 0;
        loop {
            let mut next: Option<(usize, usize, f64)> = None;
            for (child, client) in clients.iter_mut().enumerate() {
                let pass = client.tokens as f64 / self.weights[child];
                if next.is_some_and(|(_, _, least)| pass >= least) {
                    continue;
                }
                if let Some(index) = client.best(|index| turns[index].is_none()) {
                    next = Some((child, index, pass));
                }
            }
            let Some((child, index, _)) = next else {
                return turns;
            };
            turns[index] = Some(Turn { child, place });
            clients[child].tokens += u128::try_from(items[index].tokens()).unwrap_or(0);
            place += 1;
        }
    }
}

/// What a child's part of a fused score is computed from.
#[derive(Clone, Copy)]
enum Basis {
    /// The child's score is not above 0.
    None,
    /// Its greatest score.
    Max(f64),
    /// The item's rank.
    Rank(usize),
}

/// Which child took an item, and at which place.
#[derive(Clone, Copy)]
struct Turn {
    child: usize,
    place: usize,
}

/// A child with the items it has not considered yet and the tokens it took.
struct Client {
    waiting: std::vec::IntoIter<usize>,
    tokens: u128,
}

impl Client {
    /// Returns the best item that is free, and forgets those before it.
    fn best(&mut self, is_free: impl Fn(usize) -> bool) -> Option<usize> {
        while let Some(&index) = self.waiting.as_slice().first() {
            if is_free(index) {
                return Some(index);
            }
            self.waiting.next();
        }
        None
    }
}

fn score_of_turn(turn: Option<Turn>, count: usize) -> f64 {
    turn.map_or(0.0, |turn| (count - turn.place) as f64 / count as f64)
}

fn has_score(score: f64) -> bool {
    score > 0.0
}

/// Returns the indices of the scores above zero, highest first, ties by index.
fn ranking(column: &[f64]) -> Vec<usize> {
    let scored = column.iter().enumerate();
    let scored = scored.filter(|(_, score)| has_score(**score));
    let mut ranked: Vec<Ranked> = scored.map(|(at, score)| Ranked::new(*score, at)).collect();
    parallel::sort(&mut ranked);
    ranked.into_iter().map(Ranked::position).collect()
}

/// Returns the ranks of the scores above zero, from 1. Equal scores share the first rank of them.
fn ranks(column: &[f64]) -> Vec<Option<usize>> {
    let mut ranks = vec![None; column.len()];
    let mut last = (f64::NAN, 0);
    for (place, index) in ranking(column).into_iter().enumerate() {
        if column[index] != last.0 {
            last = (column[index], place + 1);
        }
        ranks[index] = Some(last.1);
    }
    ranks
}

impl fmt::Debug for FusionScorer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FusionScorer")
            .field("method", &self.method)
            .field("weights", &self.weights)
            .finish_non_exhaustive()
    }
}

impl Scorer for FusionScorer {
    fn score(&self, item: &ContextItem, all_items: &[ContextItem]) -> f64 {
        let Some(own) = position(item, all_items) else {
            return 0.0;
        };
        let column = |scorer: &Arc<dyn Scorer>| {
            let scores = all_items.iter().map(|other| scorer.score(other, all_items));
            scores.collect()
        };
        let columns = self.scorers.iter().map(column).collect();
        self.fuse(columns, all_items, Among::All)[own]
    }

    fn builtin(&self) -> Option<&dyn BuiltinScorer> {
        Some(self)
    }

    fn children(&self) -> Vec<&dyn Scorer> {
        super::as_children(&self.scorers)
    }

    fn with_query(&self, query: &Query) -> Option<Arc<dyn Scorer>> {
        Some(Arc::new(Self {
            scorers: super::with_query_in(&self.scorers, query)?,
            weights: self.weights.clone(),
            ..*self
        }))
    }

    /// The parts of an average are the children's comparable scores, whose contributions add up to the
    /// score. Of [`FusionMethod::Shares`] the child that took the item contributes the score.
    fn explain_all(&self, items: &[ContextItem]) -> Result<Vec<ScorePart>, CupelError> {
        let explain = |scorer: &Arc<dyn Scorer>| explained(scorer, items);
        let children: Result<Vec<Vec<ScorePart>>, _> = self.scorers.iter().map(explain).collect();
        let children = children?;
        let scores = |parts: &Vec<ScorePart>| parts.iter().map(|part| part.score).collect();
        let columns: Vec<Vec<f64>> = children.iter().map(scores).collect();
        let fused = self.fuse(columns.clone(), items, Among::All);
        let mut parts: Vec<ScorePart> = fused
            .into_iter()
            .map(|score| ScorePart::new(self.scorer_name(), score))
            .collect();
        if self.method == FusionMethod::Shares {
            let turns = self.take_turns(&columns, items);
            for (child, column) in children.into_iter().enumerate() {
                for ((outer, turn), part) in parts.iter_mut().zip(&turns).zip(column) {
                    outer.parts.push(match turn {
                        Some(turn) if turn.child == child => {
                            let place = format!("place {} of {}", turn.place + 1, items.len());
                            let name = format!("{} {place}", part.scorer);
                            let mut taken = ScorePart::new(name, outer.score);
                            taken.contribution = Some(outer.score);
                            taken.with_parts(vec![part])
                        }
                        _ => part,
                    });
                }
            }
            return Ok(parts);
        }
        let weighted = columns.iter().zip(&self.weights);
        for ((column, weight), child) in weighted.zip(children) {
            let comparable = self.comparable(column).into_iter();
            for ((outer, (value, basis)), part) in parts.iter_mut().zip(comparable).zip(child) {
                let name = match basis {
                    Basis::None => format!("{} not above 0", part.scorer),
                    Basis::Max(max) => format!("{} / {max}", part.scorer),
                    Basis::Rank(rank) => format!("{} rank {rank}", part.scorer),
                };
                let relative = ScorePart::new(name, value).with_weight(weight / self.total_weight);
                outer.parts.push(relative.with_parts(vec![part]));
            }
        }
        Ok(parts)
    }

    #[cfg(feature = "serde")]
    fn to_config(&self) -> Result<super::ScorerConfig, super::ConfigError> {
        Ok(super::ScorerConfig::Fusion {
            entries: super::entries_to_config(&self.scorers, &self.weights)?,
            method: self.method,
            k: self.k,
        })
    }
}

impl BuiltinScorer for FusionScorer {
    fn score_among(&self, items: &[ContextItem], among: Among) -> Result<Vec<f64>, CupelError> {
        let column = |scorer: &Arc<dyn Scorer>| scores(scorer, items, among);
        let columns: Result<Vec<Vec<f64>>, _> = self.scorers.iter().map(column).collect();
        Ok(self.fuse(columns?, items, among))
    }
}

#[cfg(feature = "serde")]
impl FusionScorer {
    pub(crate) fn from_config(
        entries: Vec<crate::config::ScorerEntry>,
        method: FusionMethod,
        k: f64,
    ) -> Result<Self, super::ConfigError> {
        let entries = super::entries_from_config(entries)?;
        let scorer = Self::new(method, entries).map_err(crate::config::invalid_in("entries"))?;
        scorer.with_k(k).map_err(crate::config::invalid_in("k"))
    }
}

#[cfg(test)]
mod tests {
    use cupel_conformance::testing::Random;

    use super::*;
    use crate::{PriorityScorer, ReflexiveScorer};

    const METHODS: [FusionMethod; 3] = [
        FusionMethod::Sum,
        FusionMethod::ReciprocalRank,
        FusionMethod::Shares,
    ];

    fn fusion(method: FusionMethod) -> FusionScorer {
        let entries: Vec<(Box<dyn Scorer>, f64)> = vec![
            (Box::new(ReflexiveScorer), 0.6),
            (Box::new(PriorityScorer), 0.4),
        ];
        FusionScorer::new(method, entries).unwrap()
    }

    fn items(random: &mut Random, count: usize) -> Vec<ContextItem> {
        let item = |index| {
            ContextItem::builder(format!("{index}"), random.within(0..=50))
                .future_relevance_hint(random.within(0..=9) as f64 / 9.0)
                .priority(random.within(0..=20))
                .build()
                .unwrap()
        };
        (0..count).map(item).collect()
    }

    #[test]
    fn contributions_add_up_to_the_score() {
        let mut random = Random::new(3);
        for method in METHODS {
            let scorer = fusion(method);
            for count in [0, 1, 2, 30] {
                let items = items(&mut random, count);
                let scores = scorer.score_all(&items).unwrap();
                for (part, score) in scorer.explain_all(&items).unwrap().iter().zip(scores) {
                    assert_eq!(part.score.to_bits(), score.to_bits());
                    assert!((0.0..=1.0).contains(&score));
                    let sum: f64 = part.parts.iter().filter_map(|part| part.contribution).sum();
                    assert!((sum - score).abs() < 1e-12, "{part}");
                }
            }
        }
    }

    #[test]
    fn an_explanation_names_maximum_rank_and_place() {
        let item = |hint, priority| {
            let item = ContextItem::builder("x", 10).future_relevance_hint(hint);
            item.priority(priority).build().unwrap()
        };
        let items = [item(0.5, 1), item(0.25, 2)];
        let text = |method| fusion(method).explain(&items, 1).unwrap().to_string();
        assert_eq!(
            text(FusionMethod::Sum),
            "FusionScorer 0.700000\n  ReflexiveScorer / 0.5 0.500000 x 0.600000 = 0.300000\n    \
             ReflexiveScorer 0.250000\n  PriorityScorer / 1 1.000000 x 0.400000 = 0.400000\n    \
             PriorityScorer 1.000000\n"
        );
        assert_eq!(
            text(FusionMethod::ReciprocalRank),
            "FusionScorer 0.990323\n  ReflexiveScorer rank 2 0.983871 x 0.600000 = 0.590323\n    \
             ReflexiveScorer 0.250000\n  PriorityScorer rank 1 1.000000 x 0.400000 = 0.400000\n    \
             PriorityScorer 1.000000\n"
        );
        assert_eq!(
            text(FusionMethod::Shares),
            "FusionScorer 0.500000\n  ReflexiveScorer 0.250000\n  \
             PriorityScorer place 2 of 2 0.500000\n    PriorityScorer 1.000000\n"
        );
        let first = fusion(FusionMethod::Sum).explain(&items, 0).unwrap();
        assert_eq!(first.parts[1].scorer, "PriorityScorer not above 0");
    }

    #[test]
    fn each_child_has_its_share_of_every_prefix() {
        let mut random = Random::new(4);
        let items = items(&mut random, 400);
        let scorer = fusion(FusionMethod::Shares);
        let columns: Vec<Vec<f64>> = scorer
            .scorers
            .iter()
            .map(|child| child.score_all(&items).unwrap())
            .collect();
        let turns = scorer.take_turns(&columns, &items);
        let mut order: Vec<(Turn, i64)> = turns
            .iter()
            .zip(&items)
            .filter_map(|(turn, item)| Some(((*turn)?, item.tokens())))
            .collect();
        order.sort_unstable_by_key(|(turn, _)| turn.place);
        let largest = 50.0;
        let mut tokens = [0.0, 0.0];
        // At the end a child may have no item left.
        for (turn, cost) in &order[..order.len() / 2] {
            tokens[turn.child] += *cost as f64;
            let total: f64 = tokens.iter().sum();
            assert!((tokens[0] - 0.6 * total).abs() <= largest, "{tokens:?}");
        }
    }
}
