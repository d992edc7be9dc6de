//! The laws of slicers.

use cupel::{ContextBudget, CupelError, ScoredItem, Slicer, StrategyRole};

use super::{BadEntry, Law, LawViolation, borrowed, described, distinct, positions, with_score};

/// Checks that the slicer keeps its laws on this list and budget, on an empty list, and on a target of zero.
///
/// A slicer may return an error if `slice` and `select` return the same one, but not for an empty
/// list or a target of zero.
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
/// Returns the first violation.
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
    ContextBudget::with_target(budget.max_tokens(), 0).expect("`max_tokens` is not negative")
}

/// A slicer and one input.
struct Trial<'a, S: ?Sized> {
    slicer: &'a S,
    sorted: &'a [ScoredItem],
    budget: &'a ContextBudget,
}

/// The kept ranks, or the slicer's error.
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

    /// Returns the answer of `select`, and its debug text, because NaN in the notes is not equal to itself.
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

    /// Returns the kept ranks if they break no law by themselves.
    fn kept(
        &self,
        ranks: Result<Vec<usize>, BadEntry>,
        method: &str,
    ) -> Result<Vec<usize>, LawViolation> {
        let ranks = ranks.map_err(|entry| {
            let law = match entry {
                BadEntry::Unknown(_) => Law::Subset,
                BadEntry::Repeated(_) => Law::NoRepeats,
            };
            self.broken(law, entry.finding(method))
        })?;
        if self.must_be_empty() && !ranks.is_empty() {
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
                described_answer(from_slice),
                described_answer(from_select)
            );
            return Err(self.broken(Law::SelectEqualsSlice, finding));
        }
        if self.must_be_empty() && from_slice.is_err() {
            let finding = format!("`slice` {}", described_answer(from_slice));
            return Err(self.broken(Law::NothingFromNothing, finding));
        }
        Ok(())
    }

    /// Returns the sorted ranks, each replaced by the first rank of the same item.
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

    fn must_be_empty(&self) -> bool {
        self.sorted.is_empty() || self.budget.target_tokens() == 0
    }

    fn not_repeatable(&self, method: &str) -> Result<(), LawViolation> {
        let finding = format!("the second call of {method} gave a different answer");
        Err(self.broken(Law::Repeatable, finding))
    }

    fn broken(&self, law: Law, finding: String) -> LawViolation {
        let target = self.budget.target_tokens();
        let input = format!("target {target}, {}", described(self.sorted, with_score));
        LawViolation::new(StrategyRole::Slicer, law, finding, input)
    }
}

fn described_answer(answer: &Answer) -> String {
    match answer {
        Ok(ranks) => format!("kept ranks {ranks:?}"),
        Err(error) => format!("failed: {error}"),
    }
}
