//! Runs policies on questions with marked evidence, and compares their measures.

use std::ops::ControlFlow;

use cupel::{ContextBudget, ContextItem, CupelError, Decisions, Policy};
use serde::{Serialize, Serializer};

use crate::bootstrap::{Estimate, Resamples};
use crate::dataset::{Dataset, DatasetSize, Question, Transcript};
use crate::parallel;
use crate::progress::{Progress, Stopped};
use crate::recall::{items_kept, recall_at, tokens_kept};

/// A policy and its name in answers.
#[derive(Debug, Clone)]
pub struct EvalPolicy {
    /// The name.
    pub name: String,
    /// The policy. Its strategies need not be serializable.
    pub policy: Policy,
}

impl EvalPolicy {
    /// Names a policy.
    pub fn new(name: impl Into<String>, policy: Policy) -> Self {
        let name = name.into();
        Self { name, policy }
    }
}

/// Why an evaluation has no result.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum EvalError {
    /// There is no budget to evaluate at.
    #[error("there is no budget")]
    NoBudget,
    /// A budget is not positive.
    #[error("invalid budget {0}: expected at least 1 token")]
    InvalidBudget(i64),
    /// A policy fails.
    #[error("line {line} of {dataset}: {policy}: {error}")]
    Run {
        /// The name of the policy.
        policy: String,
        /// The name of the data set.
        dataset: String,
        /// The line of the transcript, from 1.
        line: usize,
        /// The failure.
        error: CupelError,
    },
    /// The observer stopped the evaluation.
    #[error(transparent)]
    Stopped(#[from] Stopped),
}

/// A measure: the mean of a share over questions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Measure {
    /// The evidence items that are kept at a budget.
    Items(i64),
    /// The evidence tokens that are kept at a budget.
    Tokens(i64),
    /// The evidence items among the first `k` of the ranking.
    RecallAt(usize),
}

/// The values of `k` for recall at `k`.
const RANKS: [usize; 4] = [5, 10, 25, 50];

impl Measure {
    /// Returns all measures at these budgets, in the order of the tables.
    pub fn all(budgets: &[i64]) -> Vec<Self> {
        let items = budgets.iter().copied().map(Self::Items);
        let tokens = budgets.iter().copied().map(Self::Tokens);
        items
            .chain(tokens)
            .chain(RANKS.map(Self::RecallAt))
            .collect()
    }

    /// Returns the name in JSON and CSV.
    pub fn name(self) -> &'static str {
        match self {
            Self::Items(_) => "items_kept",
            Self::Tokens(_) => "tokens_kept",
            Self::RecallAt(_) => "recall_at",
        }
    }

    /// Returns the budget or the rank.
    pub fn at(self) -> i64 {
        match self {
            Self::Items(budget) | Self::Tokens(budget) => budget,
            Self::RecallAt(k) => i64::try_from(k).unwrap_or(i64::MAX),
        }
    }
}

/// The measures of policies on the questions of a data set.
#[derive(Debug)]
pub struct Evaluation {
    names: Vec<String>,
    dataset: DatasetSize,
    measures: Vec<Measure>,
    samples: Resamples,
    /// By transcript, which is the unit of the bootstrap: questions about one transcript are not independent.
    sums: Vec<Sums>,
}

/// The sums over the questions of a transcript.
#[derive(Debug)]
struct Sums {
    questions: usize,
    /// By policy, then by measure.
    shares: Vec<Vec<f64>>,
}

impl Evaluation {
    /// Runs the policies on every question at every budget. A policy that reads a query gets each question's.
    ///
    /// The observer is called after every few transcripts. If it breaks, the evaluation stops.
    ///
    /// # Errors
    ///
    /// No budget, or one below 1; the first failure of a policy in the order of the transcripts;
    /// [`EvalError::Stopped`].
    pub fn run(
        dataset: &Dataset,
        policies: &[EvalPolicy],
        budgets: &[i64],
        observe: &mut dyn FnMut(Progress) -> ControlFlow<()>,
    ) -> Result<Self, EvalError> {
        let names = policies.iter().map(|policy| policy.name.clone()).collect();
        let policy = |position: usize| Ok(policies[position].policy.clone());
        Self::run_each(dataset, names, &policy, budgets, observe)
    }

    /// As [`run`](Self::run), with policies that are built anew for every transcript. A scorer that indexes items
    /// keeps its last indexes. Thousands of policies that live as long as the evaluation would keep thousands of
    /// them.
    pub(crate) fn run_each(
        dataset: &Dataset,
        names: Vec<String>,
        policy: &(dyn Fn(usize) -> Result<Policy, CupelError> + Sync),
        budgets: &[i64],
        observe: &mut dyn FnMut(Progress) -> ControlFlow<()>,
    ) -> Result<Self, EvalError> {
        let budgets = ascending(budgets)?;
        let measures = Measure::all(&budgets);
        let budgets = budgets.into_iter().map(|tokens| {
            let budget = ContextBudget::with_target(tokens, tokens);
            budget.map_err(|_| EvalError::InvalidBudget(tokens))
        });
        let run = Run {
            budgets: budgets.collect::<Result<_, _>>()?,
            measures: &measures,
        };
        let sums = |transcript: &Transcript| {
            let shares = names.iter().enumerate().map(|(position, name)| {
                let shares = policy(position).and_then(|policy| run.sums(&policy, transcript));
                shares.map_err(|error| EvalError::Run {
                    policy: name.clone(),
                    dataset: dataset.name().to_owned(),
                    line: transcript.line,
                    error,
                })
            });
            Ok::<_, EvalError>(Sums {
                questions: transcript.questions.len(),
                shares: shares.collect::<Result<_, _>>()?,
            })
        };
        // A chunk has one transcript per thread only, because the questions of a transcript run in parallel, too.
        let sums = parallel::map_observed(dataset.transcripts(), 1, observe, sums)?;
        Ok(Self {
            samples: Resamples::new(sums.len()),
            dataset: dataset.size(),
            names,
            measures,
            sums,
        })
    }

    /// Returns the measures in the order of the answer.
    pub fn measures(&self) -> &[Measure] {
        &self.measures
    }

    /// Returns the mean over all questions; `None` if the policy or the measure is not evaluated.
    pub fn mean(&self, policy: usize, measure: Measure) -> Option<f64> {
        let all: Vec<usize> = (0..self.sums.len()).collect();
        self.mean_of(&all, policy, self.position(measure)?)
    }

    /// Returns the mean over all questions with its interval over transcripts.
    pub fn estimate(&self, policy: usize, measure: Measure) -> Option<Estimate> {
        let measure = self.position(measure)?;
        self.samples
            .estimate(|drawn| self.mean_of(drawn, policy, measure))
    }

    /// Returns the difference of two policies, `policy` less `other`, with its interval. The samples are paired.
    pub fn difference(&self, policy: usize, other: usize, measure: Measure) -> Option<Estimate> {
        let measure = self.position(measure)?;
        self.samples.estimate(|drawn| {
            let mean = |policy| self.mean_of(drawn, policy, measure);
            Some(mean(policy)? - mean(other)?)
        })
    }

    /// Returns the results of all policies, and the differences of the first one to the others.
    pub fn report(&self) -> EvidenceReport {
        let own = self.names.iter().enumerate().map(|(position, policy)| {
            let estimate = |&measure| self.estimate(position, measure);
            ComparisonColumn {
                policy: policy.clone(),
                minus: None,
                estimates: self.measures.iter().map(estimate).collect(),
            }
        });
        let others = self.names.iter().enumerate().skip(1);
        let differences = others.map(|(position, other)| {
            let difference = |&measure| self.difference(0, position, measure);
            ComparisonColumn {
                policy: self.names[0].clone(),
                minus: Some(other.clone()),
                estimates: self.measures.iter().map(difference).collect(),
            }
        });
        EvidenceReport {
            dataset: self.dataset.clone(),
            results: Comparison {
                measures: self.measures.clone(),
                columns: own.chain(differences).collect(),
            },
        }
    }

    fn position(&self, measure: Measure) -> Option<usize> {
        self.measures.iter().position(|known| *known == measure)
    }

    /// Returns the mean over the questions of the drawn transcripts.
    fn mean_of(&self, drawn: &[usize], policy: usize, measure: usize) -> Option<f64> {
        let (mut sum, mut questions) = (0.0, 0);
        for &transcript in drawn {
            let sums = &self.sums[transcript];
            sum += sums.shares.get(policy)?[measure];
            questions += sums.questions;
        }
        (questions > 0).then(|| sum / questions as f64)
    }
}

/// Returns budgets in order, each once.
pub(crate) fn ascending(budgets: &[i64]) -> Result<Vec<i64>, EvalError> {
    let mut budgets = budgets.to_vec();
    budgets.sort_unstable();
    budgets.dedup();
    match budgets.first() {
        None => Err(EvalError::NoBudget),
        Some(&least) if least < 1 => Err(EvalError::InvalidBudget(least)),
        Some(_) => Ok(budgets),
    }
}

/// The results of policies on a data set.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct EvidenceReport {
    /// The data set.
    #[serde(flatten)]
    pub dataset: DatasetSize,
    /// The results.
    pub results: Comparison,
}

/// The measures of policies, and the differences of the first one to the others, as a table. Serialized, it is the
/// list of its [`rows`](Self::rows).
#[derive(Debug, Clone, PartialEq)]
pub struct Comparison {
    /// The lines of the table.
    pub measures: Vec<Measure>,
    /// The columns of the table: policies, then differences.
    pub columns: Vec<ComparisonColumn>,
}

/// The results of one policy, or of one difference.
#[derive(Debug, Clone, PartialEq)]
pub struct ComparisonColumn {
    /// The policy.
    pub policy: String,
    /// The policy that is subtracted.
    pub minus: Option<String>,
    /// By measure; `None` without questions.
    pub estimates: Vec<Option<Estimate>>,
}

/// One value of a [`Comparison`].
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ComparisonRow<'a> {
    /// The name of the measure.
    pub measure: &'static str,
    /// The budget or the rank.
    pub at: i64,
    /// The policy.
    pub policy: &'a str,
    /// The policy that is subtracted.
    pub minus: Option<&'a str>,
    /// The value.
    #[serde(flatten)]
    pub estimate: Estimate,
}

impl Comparison {
    /// Returns one row per measure and column that has a value.
    pub fn rows(&self) -> impl Iterator<Item = ComparisonRow<'_>> {
        let measures = self.measures.iter().enumerate();
        measures.flat_map(move |(position, &measure)| {
            self.columns.iter().filter_map(move |column| {
                Some(ComparisonRow {
                    measure: measure.name(),
                    at: measure.at(),
                    policy: &column.policy,
                    minus: column.minus.as_deref(),
                    estimate: column.estimates.get(position).copied().flatten()?,
                })
            })
        })
    }
}

impl Serialize for Comparison {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.rows())
    }
}

#[cfg(feature = "schema")]
impl schemars::JsonSchema for Comparison {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Comparison".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
        <Vec<ComparisonRow<'_>>>::json_schema(generator)
    }
}

/// What is run on each transcript.
struct Run<'a> {
    budgets: Vec<ContextBudget>,
    measures: &'a [Measure],
}

impl Run<'_> {
    /// Returns the sum of each measure over the questions of a transcript.
    fn sums(&self, policy: &Policy, transcript: &Transcript) -> Result<Vec<f64>, CupelError> {
        let tokens: Vec<i64> = transcript.items.iter().map(ContextItem::tokens).collect();
        let windows = |policy: &Policy| {
            let decisions = policy.decide_each(&transcript.items, &self.budgets)?;
            Ok::<_, CupelError>(Windows::of(&self.budgets, &decisions))
        };
        let shares = |question: &Question, windows: &Windows| {
            let share = |&measure| windows.share(measure, question, &tokens);
            self.measures.iter().map(share).collect::<Vec<f64>>()
        };
        let questions = &transcript.questions;
        let by_question: Vec<Vec<f64>> = if policy.needs_query() {
            let by_question = parallel::map(questions, |question| {
                let with_query = policy.with_query(question.query());
                Ok(shares(question, &windows(&with_query)?))
            });
            by_question.into_iter().collect::<Result<_, CupelError>>()?
        } else {
            // The windows are the same for all questions.
            let windows = windows(policy)?;
            let shares = questions.iter().map(|question| shares(question, &windows));
            shares.collect()
        };
        let sum = |measure: usize| by_question.iter().map(|shares| shares[measure]).sum();
        Ok((0..self.measures.len()).map(sum).collect())
    }
}

/// The windows of one policy at all budgets, and its ranking.
struct Windows {
    /// Each budget, and whether each item is kept in full.
    kept: Vec<(i64, Vec<bool>)>,
    /// The rank of each item; pinned items come first. `None` for one that was excluded before ranking.
    ranks: Vec<Option<usize>>,
}

impl Windows {
    fn of(budgets: &[ContextBudget], decisions: &[Decisions<'_>]) -> Self {
        let kept = budgets.iter().zip(decisions).map(|(budget, decisions)| {
            let mut is_kept = vec![false; decisions.items().len()];
            for &item in decisions.window() {
                // A shortened item may lack the evidence, so only items in full count.
                is_kept[item] = decisions.view(item).is_none();
            }
            (budget.target_tokens(), is_kept)
        });
        // The ranking does not depend on the budget, so the first one holds for all.
        let first = &decisions[0];
        let pinned = (0..first.items().len()).filter(|&item| first.items()[item].pinned());
        let mut ranks = vec![None; first.items().len()];
        for (rank, item) in pinned.chain(first.ranking().iter().copied()).enumerate() {
            ranks[item] = Some(rank);
        }
        Self {
            kept: kept.collect(),
            ranks,
        }
    }

    fn share(&self, measure: Measure, question: &Question, tokens: &[i64]) -> f64 {
        let evidence = question.evidence();
        let kept = |budget: i64| {
            let kept = self.kept.iter().find(|(known, _)| *known == budget);
            &kept.expect("a window per budget").1
        };
        match measure {
            Measure::Items(budget) => items_kept(evidence, kept(budget)),
            Measure::Tokens(budget) => tokens_kept(evidence, kept(budget), tokens, budget),
            Measure::RecallAt(k) => recall_at(evidence, &self.ranks, k),
        }
    }
}
