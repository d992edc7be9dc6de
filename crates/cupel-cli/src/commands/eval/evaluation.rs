//! Runs policies on questions with marked evidence and sums their measures.

use cupel::config::PolicyConfig;
use cupel::{ContextBudget, ContextItem, CupelError, Decisions, Policy};
use rayon::prelude::*;

use super::bootstrap::{Estimate, Resamples};
use super::dataset::{Dataset, Question, Transcript};
use super::recall::{items_kept, recall_at, tokens_kept};
use cupel_app::Place;

use crate::failure::{Exit, Failure};
use crate::output::Output;
use crate::progress::Meter;
use crate::task::Named;
use crate::text::{counted, grouped_count};

/// A policy as data. Every transcript builds its own, so that a scorer indexes each transcript once.
#[derive(Debug, Clone)]
pub(super) struct EvalPolicy {
    pub(super) name: String,
    pub(super) config: PolicyConfig,
}

impl EvalPolicy {
    /// Finds the policy of that name.
    pub(super) fn find(name: &str) -> Result<Self, Failure> {
        Ok(Self {
            name: name.to_owned(),
            config: Named::find(name)?.config()?,
        })
    }

    fn build(&self) -> Result<Policy, CupelError> {
        self.config
            .build()
            .map_err(|error| CupelError::PipelineConfig(error.to_string()))
    }
}

/// A measure: the mean of a share over questions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Measure {
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
    pub(super) fn all(budgets: &[i64]) -> Vec<Self> {
        let items = budgets.iter().copied().map(Self::Items);
        let tokens = budgets.iter().copied().map(Self::Tokens);
        items
            .chain(tokens)
            .chain(RANKS.map(Self::RecallAt))
            .collect()
    }

    /// Returns the name in JSON and CSV.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Items(_) => "items_kept",
            Self::Tokens(_) => "tokens_kept",
            Self::RecallAt(_) => "recall_at",
        }
    }

    /// Returns the budget or the rank.
    pub(super) fn at(self) -> i64 {
        match self {
            Self::Items(budget) | Self::Tokens(budget) => budget,
            Self::RecallAt(k) => i64::try_from(k).unwrap_or(i64::MAX),
        }
    }
}

/// The results of policies on a data set.
pub(super) struct Evaluation {
    measures: Vec<Measure>,
    samples: Resamples,
    /// By transcript.
    sums: Vec<Sums>,
}

/// The sums over the questions of a transcript.
struct Sums {
    questions: usize,
    /// By policy, then by measure.
    shares: Vec<Vec<f64>>,
}

impl Evaluation {
    /// Runs the policies on every question, on all cores. Reports progress on a terminal.
    pub(super) fn run(
        dataset: &Dataset,
        policies: &[EvalPolicy],
        budgets: &[i64],
        output: &mut Output,
    ) -> Result<Self, Failure> {
        let measures = Measure::all(budgets);
        let run = Run {
            policies,
            budgets: budgets.iter().map(|&tokens| budget(tokens)).collect(),
            measures: &measures,
        };
        let mut meter = Meter::new(output);
        let transcripts = &dataset.transcripts;
        let mut sums = Vec::with_capacity(transcripts.len());
        for chunk in transcripts.chunks(rayon::current_num_threads()) {
            let chunk: Vec<Result<Sums, Failure>> = chunk
                .par_iter()
                .map(|transcript| {
                    let sums = run.transcript(transcript);
                    sums.map_err(|error| failure(&error, dataset, transcript))
                })
                .collect();
            // The first error in the order of the transcripts.
            for transcript in chunk {
                sums.push(transcript?);
            }
            meter.update(output, || {
                let done = grouped_count(sums.len());
                format!("{done} of {}", counted(transcripts.len(), "transcript"))
            });
        }
        meter.clear(output);
        Ok(Self {
            samples: Resamples::new(sums.len()),
            measures,
            sums,
        })
    }

    pub(super) fn measures(&self) -> &[Measure] {
        &self.measures
    }

    /// Returns the mean over all questions.
    pub(super) fn mean(&self, policy: usize, measure: Measure) -> f64 {
        let all: Vec<usize> = (0..self.sums.len()).collect();
        self.mean_of(&all, policy, self.position(measure))
            .unwrap_or_default()
    }

    /// Returns the mean over all questions with its interval over transcripts.
    pub(super) fn estimate(&self, policy: usize, measure: Measure) -> Option<Estimate> {
        let measure = self.position(measure);
        self.samples
            .estimate(|drawn| self.mean_of(drawn, policy, measure))
    }

    /// Returns the difference of two policies, `policy` less `other`, with its interval. The samples are paired.
    pub(super) fn difference(
        &self,
        policy: usize,
        other: usize,
        measure: Measure,
    ) -> Option<Estimate> {
        let measure = self.position(measure);
        self.samples.estimate(|drawn| {
            let mean = |policy| self.mean_of(drawn, policy, measure);
            Some(mean(policy)? - mean(other)?)
        })
    }

    fn position(&self, measure: Measure) -> usize {
        let position = self.measures.iter().position(|known| *known == measure);
        position.expect("the measure of this evaluation")
    }

    /// Returns the mean over the questions of the drawn transcripts.
    fn mean_of(&self, drawn: &[usize], policy: usize, measure: usize) -> Option<f64> {
        let (mut sum, mut questions) = (0.0, 0);
        for &transcript in drawn {
            let sums = &self.sums[transcript];
            sum += sums.shares[policy][measure];
            questions += sums.questions;
        }
        (questions > 0).then(|| sum / questions as f64)
    }
}

/// Returns a budget without a reserve.
fn budget(tokens: i64) -> ContextBudget {
    ContextBudget::with_target(tokens, tokens).expect("a positive number of tokens")
}

fn failure(error: &CupelError, dataset: &Dataset, transcript: &Transcript) -> Failure {
    Failure::from(error.clone()).or_at(|| Place {
        file: dataset.name.clone(),
        line: transcript.line,
        column: 1,
        ..Place::default()
    })
}

/// What is run on each transcript.
struct Run<'a> {
    policies: &'a [EvalPolicy],
    budgets: Vec<ContextBudget>,
    measures: &'a [Measure],
}

impl Run<'_> {
    fn transcript(&self, transcript: &Transcript) -> Result<Sums, CupelError> {
        let tokens: Vec<i64> = transcript.items.iter().map(ContextItem::tokens).collect();
        let shares = self.policies.iter().map(|policy| {
            let policy = policy.build()?;
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
                let questions = questions.par_iter().map(|question| {
                    let asked = policy.with_query(&*question.query);
                    Ok(shares(question, &windows(&asked)?))
                });
                let shares: Vec<Result<_, CupelError>> = questions.collect();
                shares.into_iter().collect::<Result<_, CupelError>>()?
            } else {
                // The windows are the same for all questions.
                let windows = windows(&policy)?;
                let shares = questions.iter().map(|question| shares(question, &windows));
                shares.collect()
            };
            let sum = |measure: usize| by_question.iter().map(|shares| shares[measure]).sum();
            Ok((0..self.measures.len()).map(sum).collect())
        });
        Ok(Sums {
            questions: transcript.questions.len(),
            shares: shares.collect::<Result<_, CupelError>>()?,
        })
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
                is_kept[item] = decisions.view(item).is_none();
            }
            (budget.target_tokens(), is_kept)
        });
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
        let evidence = &question.evidence;
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
