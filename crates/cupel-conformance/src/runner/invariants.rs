//! Rules for every answer, independent of the expectations of a case.

use std::cmp::Ordering;

use super::{
    compare::Mismatch,
    words::{label, labels},
};
use crate::model::{Observation, Report, Task};

/// Returns every rule the observation breaks.
pub(super) fn invariants(task: &Task, observation: &Observation) -> Vec<Mismatch> {
    let mut rules = Rules {
        task,
        broken: Vec::new(),
    };
    match observation {
        Observation::Scores(_) | Observation::Failed(_) => {}
        Observation::Selected(selected) => {
            rules.distinct("selected", &selected.kept);
            if let Some(rejected) = &selected.cap_rejected {
                rules.distinct("cap_rejected", rejected);
            }
        }
        Observation::Placed(order) => rules.all_once("order", order),
        Observation::Ran(run) => {
            rules.distinct("output", &run.output);
            if let Some(report) = &run.report {
                rules.report(&run.output, report);
            }
            if let Some(Some(overflow)) = &run.overflow {
                rules.distinct("overflow", &overflow.items);
            }
        }
    }
    rules.broken
}

struct Rules<'a> {
    task: &'a Task,
    broken: Vec<Mismatch>,
}

impl Rules<'_> {
    fn report(&mut self, output: &[usize], report: &Report) {
        let included: Vec<_> = report.included.iter().map(|line| line.index).collect();
        if included != output {
            self.broken(
                "included",
                format!("the window {:?}", labels(self.task, output.iter().copied())),
                format!("{:?}", labels(self.task, included.iter().copied())),
            );
        }

        let excluded = report.excluded.iter().map(|line| line.index);
        let both: Vec<_> = included.iter().copied().chain(excluded).collect();
        self.all_once("included and excluded", &both);

        if report.total_candidates != both.len() {
            self.broken(
                "total_candidates",
                format!("{}, the length of both lists", both.len()),
                report.total_candidates.to_string(),
            );
        }
        let sum: i128 = both.iter().map(|index| self.tokens(*index)).sum();
        // A sum beyond 64 bits cannot be reported, so it is not compared.
        if i64::try_from(sum).is_ok_and(|sum| sum != report.total_tokens_considered) {
            self.broken(
                "total_tokens_considered",
                format!("{sum}, the sum over both lists"),
                report.total_tokens_considered.to_string(),
            );
        }

        for pair in report.excluded.windows(2) {
            if descending(pair[0].score, pair[1].score) == Ordering::Greater {
                let line = |at: usize| {
                    let name = label(self.task, pair[at].index);
                    format!("{name:?} ({:?})", pair[at].score)
                };
                let (expected, got) = (
                    "scores descending, NaN last".to_owned(),
                    format!("{} before {}", line(0), line(1)),
                );
                self.broken("excluded", expected, got);
            }
        }
    }

    fn tokens(&self, index: usize) -> i128 {
        match self.task {
            Task::Score { items, .. } | Task::Run { items, .. } => items.get(index),
            Task::Slice { items, .. } | Task::Place { items, .. } => {
                items.get(index).map(|scored| &scored.item)
            }
        }
        .map_or(0, |item| item.tokens.into())
    }

    /// Every index names an item, and none twice.
    fn distinct(&mut self, list: &str, indices: &[usize]) -> Vec<usize> {
        let count = self.task.item_count();
        let mut times = vec![0_usize; count];
        for index in indices {
            match times.get_mut(*index) {
                Some(times) => *times += 1,
                None => self.broken(
                    list,
                    format!("positions below {count}, the number of items"),
                    format!("position {index}"),
                ),
            }
        }
        for (index, times) in times.iter().enumerate().filter(|(_, times)| **times > 1) {
            let name = label(self.task, index);
            let (expected, got) = (
                "every item at most once".to_owned(),
                format!("{name:?} {times} times"),
            );
            self.broken(list, expected, got);
        }
        times
    }

    /// Every item exactly once.
    fn all_once(&mut self, list: &str, indices: &[usize]) {
        let times = self.distinct(list, indices);
        let absent: Vec<_> = (0..times.len())
            .filter(|index| times[*index] == 0)
            .collect();
        if !absent.is_empty() {
            let names = labels(self.task, absent);
            let (expected, got) = ("every item".to_owned(), format!("none of {names:?}"));
            self.broken(list, expected, got);
        }
    }

    fn broken(&mut self, field: &str, expected: String, got: String) {
        self.broken.push(Mismatch {
            field: field.to_owned(),
            expected,
            got,
        });
    }
}

/// The order of scores in a report: high before low, NaN last.
fn descending(first: f64, second: f64) -> Ordering {
    second
        .partial_cmp(&first)
        .unwrap_or_else(|| first.is_nan().cmp(&second.is_nan()))
}
