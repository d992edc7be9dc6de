//! The laws of scorers.

use cupel::{ContextItem, Scorer, StrategyRole};

use super::{Law, LawViolation, described, excerpt};

/// Checks that the scorer keeps its laws on these items.
///
/// Scores are compared bit by bit, so `0.0` differs from `-0.0`. All NaN values are equal.
///
/// ```
/// use cupel::{ContextItem, CupelError, Scorer};
/// use cupel_testing::fixture::item;
/// use cupel_testing::laws::{Law, check_scorer};
///
/// struct Rounded;
///
/// impl Scorer for Rounded {
///     fn score(&self, item: &ContextItem, _all_items: &[ContextItem]) -> f64 {
///         item.tokens() as f64 / 10.0
///     }
///
///     fn score_all(&self, items: &[ContextItem]) -> Result<Vec<f64>, CupelError> {
///         Ok(items.iter().map(|item| (item.tokens() / 10) as f64).collect())
///     }
/// }
///
/// assert_eq!(check_scorer(&Rounded, &[item("a", 20)]), Ok(()));
///
/// let violation = check_scorer(&Rounded, &[item("a", 20), item("b", 5)]).unwrap_err();
/// assert_eq!(violation.law(), Law::BatchEqualsSingle);
/// assert_eq!(violation.finding(), "item 1 scores 0.0 with `score_all` and 0.5 with `score`");
/// ```
///
/// # Errors
///
/// Returns the first violation.
pub fn check_scorer(
    scorer: &(impl Scorer + ?Sized),
    items: &[ContextItem],
) -> Result<(), LawViolation> {
    let broken = |law, finding| {
        let input = described(items, with_tokens);
        LawViolation::new(StrategyRole::Scorer, law, finding, input)
    };
    let score_all = || {
        let batch = scorer.score_all(items);
        let batch =
            batch.map_err(|error| broken(Law::Answers, format!("`score_all` failed: {error}")))?;
        if batch.len() == items.len() {
            return Ok(batch);
        }
        let finding = format!("{} scores for {} items", batch.len(), items.len());
        Err(broken(Law::OneScorePerItem, finding))
    };
    let score_each =
        || -> Vec<f64> { items.iter().map(|item| scorer.score(item, items)).collect() };

    let batch = Column("`score_all`", score_all()?);
    let batch_again = Column("`score_all` again", score_all()?);
    let single = Column("`score`", score_each());
    let single_again = Column("`score` again", score_each());
    let equal = [
        (Law::Repeatable, &batch, &batch_again),
        (Law::Repeatable, &single, &single_again),
        (Law::BatchEqualsSingle, &batch, &single),
    ];
    for (law, left, right) in equal {
        if let Some(difference) = left.difference(right) {
            return Err(broken(law, difference));
        }
    }
    Ok(())
}

/// Scores, and the call that returned them.
struct Column(&'static str, Vec<f64>);

impl Column {
    fn difference(&self, other: &Self) -> Option<String> {
        let Self(from, scores) = self;
        let Self(other_from, others) = other;
        let mut pairs = scores.iter().zip(others).enumerate();
        let differs = |(_, (score, other)): &(usize, (&f64, &f64))| {
            score.to_bits() != other.to_bits() && !(score.is_nan() && other.is_nan())
        };
        let (position, (score, other)) = pairs.find(differs)?;
        Some(format!(
            "item {position} scores {score:?} with {from} and {other:?} with {other_from}"
        ))
    }
}

fn with_tokens(item: &ContextItem) -> String {
    format!("{} ({} tokens)", excerpt(item.content()), item.tokens())
}
