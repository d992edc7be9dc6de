//! The laws of slicers.

use cupel::{ContextBudget, CupelError, ScoredItem, Slicer, StrategyRole};

use super::{Law, LawViolation, Stray, borrowed, described, distinct, positions, with_score};

/// Whether the slicer keeps its laws on this list and budget, on no items, and on a target of zero.
///
/// A slicer may fail, if `slice` and `select` fail alike; but not where there is nothing to choose.
///
/// ```
/// use cupel::{ContextBudget, ContextItem, CupelError, ScoredItem, Slicer};
/// use cupel_testing::fixture::scored;
/// use cupel_testing::laws::{Law, check_slicer};
///
/// struct Everything;
///
/// impl Slicer for Everything {
///     fn slice(
///         &self,
///         sorted: &[ScoredItem],
///         _budget: &ContextBudget,
///     ) -> Result<Vec<ContextItem>, CupelError> {
///         Ok(sorted.iter().map(|scored| scored.item.clone()).collect())
///     }
/// }
///
/// let sorted = [scored("a", 60, 0.9), scored("b", 60, 0.8)];
/// let budget = ContextBudget::with_target(100, 100)?;
/// let violation = check_slicer(&Everything, &sorted, &budget).unwrap_err();
/// assert_eq!(violation.law(), Law::WithinTarget);
/// assert_eq!(violation.finding(), "`slice` kept 120 tokens");
/// # Ok::<(), CupelError>(())
/// ```
///
/// # Errors
///
/// The first law that is broken.
pub fn check_slicer(
    slicer: &(impl Slicer + ?Sized),
    sorted: &[ScoredItem],
    budget: &ContextBudget,
) -> Result<(), LawViolation> {
    let without_target = without_target(budget);
    for (sorted, budget) in [(sorted, budget), (&[], budget), (sorted, &without_target)] {
        let trial = Trial {
            slicer,
            sorted,
            budget,
        };
        trial.check()?;
    }
    Ok(())
}

fn without_target(budget: &ContextBudget) -> ContextBudget {
    ContextBudget::with_target(budget.max_tokens(), 0).expect("no ceiling is below zero")
}

/// A slicer with one input.
struct Trial<'a, S: ?Sized> {
    slicer: &'a S,
    sorted: &'a [ScoredItem],
    budget: &'a ContextBudget,
}

/// The ranks a slicer keeps, or why it cannot choose.
type Answer = Result<Vec<usize>, CupelError>;

impl<S: Slicer + ?Sized> Trial<'_, S> {
    fn check(&self) -> Result<(), LawViolation> {
        let from_slice = self.slice()?;
        if from_slice != self.slice()? {
            return self.not_repeatable("`slice`");
        }
        let (from_select, text) = self.select()?;
        if text != self.select()?.1 {
            return self.not_repeatable("`select`");
        }
        self.check_agreement(&from_slice, &from_select)
    }

    fn slice(&self) -> Result<Answer, LawViolation> {
        const METHOD: &str = "`slice`";
        match self.slicer.slice(self.sorted, self.budget) {
            Err(error) => Ok(Err(error)),
            Ok(items) => self.kept(positions(self.sorted, &items), METHOD).map(Ok),
        }
    }

    /// The answer of `select`, and its remarks with it as a text: they may hold NaN, which equals
    /// nothing.
    fn select(&self) -> Result<(Answer, String), LawViolation> {
        const METHOD: &str = "`select`";
        let selection = self.slicer.select(&borrowed(self.sorted), self.budget);
        let text = format!("{selection:?}");
        match selection {
            Err(error) => Ok((Err(error), text)),
            Ok(selection) => {
                let ranks = distinct(selection.kept(), self.sorted.len());
                Ok((Ok(self.kept(ranks, METHOD)?), text))
            }
        }
    }

    /// The kept ranks, if they are lawful by themselves.
    fn kept(
        &self,
        ranks: Result<Vec<usize>, Stray>,
        method: &str,
    ) -> Result<Vec<usize>, LawViolation> {
        let ranks = ranks.map_err(|stray| {
            let law = match stray {
                Stray::Unknown(_) => Law::Subset,
                Stray::Repeated(_) => Law::NoRepeats,
            };
            self.broken(law, stray.told_of(method))
        })?;
        if self.is_nothing() && !ranks.is_empty() {
            let finding = format!("{method} kept {} items", ranks.len());
            return Err(self.broken(Law::NothingFromNothing, finding));
        }
        let tokens = ranks.iter().map(|&rank| self.sorted[rank].item.tokens());
        let tokens: i128 = tokens.map(i128::from).sum();
        if tokens > self.budget.target_tokens().into() && !self.slicer.is_count_quota() {
            let finding = format!("{method} kept {tokens} tokens");
            return Err(self.broken(Law::WithinTarget, finding));
        }
        Ok(ranks)
    }

    fn check_agreement(
        &self,
        from_slice: &Answer,
        from_select: &Answer,
    ) -> Result<(), LawViolation> {
        let agree = match (from_slice, from_select) {
            (Ok(left), Ok(right)) => self.handles(left) == self.handles(right),
            (Err(left), Err(right)) => left == right,
            _ => false,
        };
        if !agree {
            let finding = format!(
                "`slice` {}, `select` {}",
                told(from_slice),
                told(from_select)
            );
            return Err(self.broken(Law::SelectEqualsSlice, finding));
        }
        if self.is_nothing() && from_slice.is_err() {
            let finding = format!("`slice` {}", told(from_slice));
            return Err(self.broken(Law::NothingFromNothing, finding));
        }
        Ok(())
    }

    /// The ranks in order, each as the first rank that holds the same item.
    fn handles(&self, ranks: &[usize]) -> Vec<usize> {
        let first = |&rank: &usize| {
            let item = &self.sorted[rank].item;
            let mut offered = self.sorted.iter();
            offered.position(|scored| scored.item.is_same(item))
        };
        let mut handles: Vec<usize> = ranks.iter().filter_map(first).collect();
        handles.sort_unstable();
        handles
    }

    fn is_nothing(&self) -> bool {
        self.sorted.is_empty() || self.budget.target_tokens() == 0
    }

    fn not_repeatable(&self, method: &str) -> Result<(), LawViolation> {
        let finding = format!("{method} gave another answer the second time");
        Err(self.broken(Law::Repeatable, finding))
    }

    fn broken(&self, law: Law, finding: String) -> LawViolation {
        let target = self.budget.target_tokens();
        let input = format!("target {target}, {}", described(self.sorted, with_score));
        LawViolation::new(StrategyRole::Slicer, law, finding, input)
    }
}

fn told(answer: &Answer) -> String {
    match answer {
        Ok(ranks) => format!("kept ranks {ranks:?}"),
        Err(error) => format!("failed: {error}"),
    }
}
