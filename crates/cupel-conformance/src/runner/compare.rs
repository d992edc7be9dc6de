//! Compares observations with expectations.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
};

use super::{
    invariants::invariants,
    words::{describe, labels, overflow, plain, reason, wanted},
};
use crate::{
    model::{Channel, Failure, Field, Observation, Report, Run, Selected, Task},
    vector::{
        Expected, ExpectedEntry, ExpectedError, ExpectedOverflow, ExpectedRun, ExpectedScore,
        ExpectedSelection, Vector,
    },
};

/// The reason of built-in slicers for an item that a count cap rejects.
const CAP_REASON: &str = "CountCapExceeded";

/// One difference between an expectation and an observation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mismatch {
    /// The field that differs, such as `excluded["too big"].reason`.
    pub field: String,
    /// The value the case, or a rule for every case, requires.
    pub expected: String,
    /// The observed value.
    pub got: String,
}

impl fmt::Display for Mismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            field,
            expected,
            got,
        } = self;
        write!(f, "{field}: expected {expected}, got {got}")
    }
}

/// The result of a comparison.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Comparison {
    /// How many expectations were compared, by channel. A channel the observation lacks is absent.
    pub compared: BTreeMap<Channel, usize>,
    /// Every difference.
    pub mismatches: Vec<Mismatch>,
}

/// Checks an observation against every expectation that can be compared.
///
/// # Errors
///
/// Returns every difference, never an empty list.
pub fn check(vector: &Vector, observation: &Observation) -> Result<(), Vec<Mismatch>> {
    let mismatches = compare(vector, observation).mismatches;
    if mismatches.is_empty() {
        Ok(())
    } else {
        Err(mismatches)
    }
}

/// Compares an observation with the expectations of a case and with the rules for every case.
///
/// The rules do not count as compared: every item occurs once, the report agrees with the
/// window, and so on.
pub fn compare(vector: &Vector, observation: &Observation) -> Comparison {
    let mut comparer = Comparer {
        task: &vector.task,
        epsilon: vector.epsilon,
        channel: vector.task.channel(),
        found: Comparison::default(),
    };
    comparer.observation(&vector.expected, observation);
    comparer
        .found
        .mismatches
        .extend(invariants(&vector.task, observation));
    comparer.found
}

struct Comparer<'a> {
    task: &'a Task,
    epsilon: f64,
    /// The channel of the expectations that are compared now.
    channel: Channel,
    found: Comparison,
}

impl Comparer<'_> {
    fn observation(&mut self, expected: &Expected, observation: &Observation) {
        match (expected, observation) {
            (Expected::Error(expected), Observation::Failed(failure)) => {
                self.error(expected, failure);
            }
            (Expected::Scores(expected), Observation::Scores(scores)) => {
                self.scores(expected, scores);
            }
            (Expected::Selected(expected), Observation::Selected(selected)) => {
                self.selected(expected, selected);
            }
            (Expected::Placed(expected), Observation::Placed(order)) => {
                let got = labels(self.task, order.iter().copied());
                self.equal("order", expected, &got);
            }
            (Expected::Ran(expected), Observation::Ran(run)) => self.ran(expected, run),
            (expected, got) => {
                let got = describe(self.task, got);
                self.differ("result", wanted(expected), got);
            }
        }
    }

    fn error(&mut self, expected: &ExpectedError, failure: &Failure) {
        let Failure {
            at_construction,
            code,
            message,
        } = failure;
        self.count();
        if expected.at_construction {
            self.that(
                *at_construction,
                "error",
                "an error at construction",
                || format!("{code} while running: {message}"),
            );
        }
        if let Some(wanted) = &expected.code {
            self.that(code == wanted, "error.code", wanted, || {
                format!("{code}: {message}")
            });
        }
        for part in &expected.contains {
            self.that(
                message.contains(part),
                "error.message",
                &format!("a text with {part:?}"),
                || format!("{message:?}"),
            );
        }
    }

    fn scores(&mut self, expected: &[ExpectedScore], scores: &[f64]) {
        let count = self.task.item_count();
        self.that(
            scores.len() == count,
            "scores",
            &format!("{count} of them"),
            || format!("{} of them", scores.len()),
        );
        for ExpectedScore { label, score } in expected {
            let found = (0..count)
                .find(|index| self.task.label(*index) == label)
                .and_then(|index| scores.get(index));
            if let Some(got) = found {
                self.score(&format!("score[{label:?}]"), *score, *got);
            }
        }
    }

    fn selected(&mut self, expected: &ExpectedSelection, selected: &Selected) {
        let kept = labels(self.task, selected.kept.iter().copied());
        if let Some(wanted) = &expected.selected {
            let wanted: BTreeSet<_> = wanted.iter().map(String::as_str).collect();
            self.equal("selected", &wanted, &kept.iter().copied().collect());
        }
        if let Some(wanted) = &expected.emitted {
            self.equal("emitted", wanted, &kept);
        }
        self.channel = Channel::Shortfalls;
        if let (Some(wanted), Some(got)) = (&expected.shortfall_count, &selected.shortfalls) {
            self.equal("shortfall_count", wanted, &got.len());
        }
        if let (Some(wanted), Some(got)) = (&expected.cap_excluded_count, &selected.cap_rejected) {
            self.equal("cap_excluded_count", wanted, &got.len());
        }
    }

    fn ran(&mut self, expected: &ExpectedRun, run: &Run) {
        if let Some(wanted) = &expected.output {
            let got = labels(self.task, run.output.iter().copied());
            self.equal("output", wanted, &got);
        }
        if let Some(report) = &run.report {
            self.report(expected, report);
        }
        self.channel = Channel::Overflow;
        if let (Some(wanted), Some(got)) = (&expected.overflow, &run.overflow) {
            let got = got.as_ref().map(|overflow| ExpectedOverflow {
                tokens_over_budget: overflow.tokens_over_budget,
                labels: labels(self.task, overflow.items.iter().copied())
                    .into_iter()
                    .map(str::to_owned)
                    .collect(),
            });
            self.that(
                *wanted == got,
                "overflow",
                &overflow(wanted.as_ref()),
                || overflow(got.as_ref()),
            );
        }
    }

    fn report(&mut self, expected: &ExpectedRun, report: &Report) {
        self.channel = Channel::Report;
        if let Some(wanted) = &expected.included {
            let lines = report.included.iter().map(|line| Line {
                index: line.index,
                score: line.score,
                reason: &line.reason,
                fields: None,
            });
            self.lines("included", wanted, &lines.collect::<Vec<_>>());
        }
        if let Some(wanted) = &expected.excluded {
            let lines = report.excluded.iter().map(|line| Line {
                index: line.index,
                score: line.score,
                reason: &line.reason,
                fields: Some(&line.fields),
            });
            self.lines("excluded", wanted, &lines.collect::<Vec<_>>());
        }
        if let Some(wanted) = &expected.total_candidates {
            self.equal("total_candidates", wanted, &report.total_candidates);
        }
        if let Some(wanted) = &expected.total_tokens_considered {
            self.equal(
                "total_tokens_considered",
                wanted,
                &report.total_tokens_considered,
            );
        }
        if let Some(wanted) = &expected.shortfalls {
            self.equal("shortfalls", wanted, &report.shortfalls);
        }
        if let Some(wanted) = &expected.shortfall_count {
            self.equal("shortfall_count", wanted, &report.shortfalls.len());
        }
        if let Some(wanted) = &expected.cap_excluded_count {
            let capped = report
                .excluded
                .iter()
                .filter(|line| line.reason == CAP_REASON);
            self.equal("cap_excluded_count", wanted, &capped.count());
        }
        let Some(events) = &report.events else {
            return;
        };
        self.channel = Channel::Events;
        if let Some(wanted) = &expected.stages {
            let got: Vec<_> = events
                .iter()
                .filter(|event| event.message.is_none())
                .map(|event| (event.stage.clone(), event.item_count))
                .collect();
            self.equal("stages", wanted, &got);
        }
        if let Some(wanted) = &expected.item_events {
            let got: Vec<_> = events
                .iter()
                .filter_map(|event| Some((event.stage.clone(), reason(event.message.as_ref()?))))
                .collect();
            self.equal("item_events", wanted, &got);
        }
    }

    /// Compares two lists of report lines: the items, then line by line.
    fn lines(&mut self, list: &str, expected: &[ExpectedEntry], got: &[Line<'_>]) {
        let wanted: Vec<_> = expected.iter().map(|line| line.label.as_str()).collect();
        let items = labels(self.task, got.iter().map(|line| line.index));
        if wanted != items {
            return self.differ(list, format!("{wanted:?}"), format!("{items:?}"));
        }
        self.count();
        for (wanted, got) in expected.iter().zip(got) {
            let line = format!("{list}[{:?}]", wanted.label);
            self.score(&format!("{line}.score"), wanted.score, got.score);
            self.that(
                wanted.reason == got.reason,
                &format!("{line}.reason"),
                &wanted.reason,
                || got.reason.to_owned(),
            );
            for (name, wanted) in &wanted.fields {
                let got = got.fields.and_then(|fields| fields.get(name));
                self.that(
                    got == Some(wanted),
                    &format!("{line}.{name}"),
                    &plain(wanted),
                    || got.map_or_else(|| "nothing".to_owned(), plain),
                );
            }
        }
    }

    fn score(&mut self, field: &str, expected: f64, got: f64) {
        let epsilon = self.epsilon;
        let wanted = if expected.is_finite() {
            format!("{expected:?} (less than {epsilon:e} away)")
        } else {
            format!("{expected:?}")
        };
        self.that(
            score_matches(expected, got, epsilon),
            field,
            &wanted,
            || format!("{got:?}"),
        );
    }

    fn equal<E: fmt::Debug + PartialEq<G>, G: fmt::Debug>(
        &mut self,
        field: &str,
        expected: &E,
        got: &G,
    ) {
        self.that(expected == got, field, &format!("{expected:?}"), || {
            format!("{got:?}")
        });
    }

    fn that(&mut self, holds: bool, field: &str, expected: &str, got: impl FnOnce() -> String) {
        if holds {
            self.count();
        } else {
            self.differ(field, expected.to_owned(), got());
        }
    }

    fn count(&mut self) {
        *self.found.compared.entry(self.channel).or_default() += 1;
    }

    fn differ(&mut self, field: &str, expected: String, got: String) {
        self.count();
        self.found.mismatches.push(Mismatch {
            field: field.to_owned(),
            expected,
            got,
        });
    }
}

/// Returns whether a score is strictly less than `epsilon` away from the expected one, or the same
/// non-finite value.
fn score_matches(expected: f64, got: f64, epsilon: f64) -> bool {
    if expected.is_nan() {
        got.is_nan()
    } else if expected.is_infinite() {
        got == expected
    } else {
        (got - expected).abs() < epsilon
    }
}

/// A line of a report.
struct Line<'a> {
    index: usize,
    score: f64,
    reason: &'a str,
    /// The fields of the reason; `None` for an included item.
    fields: Option<&'a BTreeMap<String, Field>>,
}
