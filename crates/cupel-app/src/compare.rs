//! The questions `compare` and `marginal`: the windows of other policies, and of a smaller budget.

use cupel::{ContextItem, Decisions};
use serde::Serialize;

use crate::argument::Argument;
use crate::error::{Error, Fault};
use crate::notice::Notice;
use crate::policy::NamedPolicy;
use crate::prepared::Prepared;

/// The windows of several policies, and where they differ.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CompareAnswer {
    /// One entry per policy.
    pub variants: Vec<ComparedPolicy>,
    /// The messages or items that are not the same in all windows.
    pub diffs: Vec<Difference>,
    /// A query that no policy reads.
    #[serde(skip)]
    pub notices: Vec<Notice>,
}

/// The window of one policy.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ComparedPolicy {
    /// The name of the policy.
    pub policy: String,
    /// The positions of the window, in its order.
    pub selected: Vec<usize>,
    /// The messages or items in it that are shortened, in ascending order.
    pub shortened: Vec<usize>,
    /// Its tokens, with its markers.
    pub tokens: i64,
}

/// A message or an item that is in some windows only, or shortened in some.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Difference {
    /// Its position.
    pub index: usize,
    /// The item.
    pub item: ContextItem,
    /// Whether it is in the window of each policy.
    pub included: Vec<bool>,
    /// Its tokens in the window of each policy; `None` where it is out. Fewer than those of the item if it is
    /// shortened.
    pub tokens: Vec<Option<i64>>,
}

/// What a smaller budget loses.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct MarginalAnswer {
    /// How many tokens smaller the budget is.
    pub slack: i64,
    /// What the smaller budget does not include, in the order of the window.
    pub lost: Vec<LostItem>,
}

/// A message or an item that a smaller budget does not include.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LostItem {
    /// Its position.
    pub index: usize,
    /// The item.
    pub item: ContextItem,
}

impl Prepared {
    /// Compares the windows of two or more policies, or of one with the request's own.
    ///
    /// # Errors
    ///
    /// [`Fault::OnePolicy`], and those of [`variant`](Self::variant) and [`decide_with`](Self::decide_with).
    pub fn compare(&self, policies: Vec<NamedPolicy>) -> Result<CompareAnswer, Error> {
        let variants = self.compared(policies)?;
        let decided = variants.iter().map(|variant| self.decide_with(variant));
        let decided = decided.collect::<Result<Vec<Decisions<'_>>, _>>()?;
        let names = variants.iter().map(|variant| &variant.policy);
        let notices = self.unread_by(names).into_iter().collect();
        let compared = variants.iter().zip(&decided).map(|(variant, decisions)| {
            let kept = self.kept(decisions).into_iter();
            let window = decisions.window().iter().copied();
            ComparedPolicy {
                policy: variant.policy.name.clone(),
                selected: window.filter(|&index| index < self.len()).collect(),
                shortened: kept.filter(|&it| decisions.view(it).is_some()).collect(),
                tokens: self.tokens_with(variant, decisions),
            }
        });
        // Forms are compared by tokens and text, because the same view has another index in another policy.
        let differs = |index: &usize| {
            let mut forms = decided.iter().map(|decisions| form(decisions, *index));
            let first = forms.next();
            forms.any(|other| Some(other) != first)
        };
        let diffs = (0..self.len()).filter(differs).map(|index| {
            let forms = decided.iter().map(|decisions| form(decisions, index));
            let tokens: Vec<Option<i64>> = forms.map(|form| form.map(|it| it.0)).collect();
            Difference {
                index,
                item: self.items()[index].clone(),
                included: tokens.iter().map(Option::is_some).collect(),
                tokens,
            }
        });
        Ok(CompareAnswer {
            variants: compared.collect(),
            diffs: diffs.collect(),
            notices,
        })
    }

    /// Returns what a budget loses that is `slack` tokens smaller.
    ///
    /// # Errors
    ///
    /// [`Fault::AboveBudget`], [`Fault::QuotaHasNoMargin`], [`Fault::Fit`] and [`Fault::Run`].
    pub fn marginal(&self, slack: i64) -> Result<MarginalAnswer, Error> {
        let budget = self.budget();
        let max = budget.max_tokens();
        if slack > max {
            return Err(Fault::AboveBudget(Argument::Slack, slack, max).into());
        }
        if self.pipeline().policy().slicer().is_quota() {
            return Err(Fault::QuotaHasNoMargin.into());
        }
        let target = (budget.target_tokens() - slack).max(0);
        let smaller = budget.with_limits(max - slack, target)?;
        let is_kept = self.included_within(&smaller)?;
        let decisions = self.decide()?;
        let window = decisions.window().iter().copied();
        let lost = window.filter(|&index| !is_kept[index]);
        Ok(MarginalAnswer {
            slack,
            lost: lost
                .map(|index| LostItem {
                    index,
                    item: self.items()[index].clone(),
                })
                .collect(),
        })
    }
}

/// Returns how a window has a candidate: the tokens and the text of its kept form; `None` if it is out.
fn form<'d>(decisions: &'d Decisions<'_>, index: usize) -> Option<(i64, &'d str)> {
    decisions.inclusion(index)?;
    let item = decisions.item(index);
    Some((item.tokens(), item.content()))
}
