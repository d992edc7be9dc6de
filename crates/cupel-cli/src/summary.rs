//! The summary of a run on standard error.

use std::collections::BTreeMap;

use cupel::{Decisions, total_tokens};
use cupel_chat::Fitted;

use crate::budget::shown;
use crate::decision::Run;
use crate::output::{Output, style};
use crate::task::Task;
use crate::text::{counted, excerpt, grouped};

/// The summary of one run.
pub(crate) struct Summary<'r> {
    task: &'r Task,
    run: &'r Run<'r>,
    /// The trimmed chat, if the input is one.
    fitted: Option<&'r Fitted<'r>>,
}

impl<'r> Summary<'r> {
    pub(crate) fn new(task: &'r Task, run: &'r Run<'r>) -> Self {
        Self {
            task,
            run,
            fitted: None,
        }
    }

    pub(crate) fn of_chat(mut self, fitted: Option<&'r Fitted<'r>>) -> Self {
        self.fitted = fitted;
        self
    }

    pub(crate) fn write(&self, output: &mut Output) {
        let Self { task, run, fitted } = self;
        let tokens = fitted.map_or(run.decisions.tokens_used(), |fitted| fitted.tokens_after);
        let before = fitted.map_or(total_tokens(&task.items), |fitted| fitted.tokens_before);
        let (bold, quiet) = (style::HEADER, style::QUIET);
        let window = run.decisions.window();
        let kept = window.iter().filter(|index| **index < task.len()).count();
        output.note(format_args!(
            "{bold}kept {kept} of {}, {} of {} tokens{bold:#} ({}, {}, {}, policy {})",
            counted(task.len(), task.shape().unit()),
            grouped(tokens),
            grouped(before),
            shown(task.budget.window_limit(), &task.budget),
            task.counted_by(),
            task.shape(),
            task.policy.name,
        ));
        for line in shortened(*fitted) {
            output.note(format_args!("{quiet}  {line}{quiet:#}"));
        }
        for line in reasons(&run.decisions) {
            output.note(format_args!("{quiet}  {line}{quiet:#}"));
        }
        if let Some(overflow) = &run.overflow {
            output.note(format_args!(
                "  {} tokens over the budget; the policy accepts this",
                grouped(overflow.tokens_over_budget)
            ));
        }
        for shortfall in run.decisions.shortfalls() {
            output.note(format_args!(
                "  required {} of kind {}, found {}",
                shortfall.required_count, shortfall.kind, shortfall.satisfied_count
            ));
        }
        if let Some(unknown) = &task.unknown_model {
            output.note(format_args!("note: {unknown}"));
        }
    }
}

/// Returns a line about shortened messages and one about markers, where there are any.
fn shortened(fitted: Option<&Fitted<'_>>) -> Vec<String> {
    let Some(fitted) = fitted else {
        return Vec::new();
    };
    let mut lines = Vec::new();
    let shortened = &fitted.shortened;
    if !shortened.is_empty() {
        let saved = shortened.iter().map(|it| it.original_tokens - it.tokens);
        let indices: Vec<usize> = shortened.iter().map(|it| it.index).collect();
        lines.push(format!(
            "shortened {}, {} tokens less: {}",
            indices.len(),
            grouped(saved.sum()),
            ranges(&indices)
        ));
    }
    for marker in &fitted.markers {
        lines.push(format!(
            "added \"{}\" before {}",
            excerpt(&marker.text, 60),
            marker.before
        ));
    }
    lines
}

/// Returns one line per reason: how many candidates, why, and which.
fn reasons(decisions: &Decisions<'_>) -> Vec<String> {
    let mut reasons: BTreeMap<String, Vec<usize>> = BTreeMap::new();
    for index in decisions.excluded() {
        let reason = decisions.summary(index).unwrap_or_default();
        reasons.entry(reason).or_default().push(index);
    }
    let lines = reasons.into_iter().map(|(reason, mut indices)| {
        indices.sort_unstable();
        format!("dropped {}, {reason}: {}", indices.len(), ranges(&indices))
    });
    lines.collect()
}

/// Returns `1-3, 7` for 1, 2, 3 and 7, with at most ten ranges.
fn ranges(indices: &[usize]) -> String {
    const SHOWN: usize = 10;
    let mut runs: Vec<(usize, usize)> = Vec::new();
    for &index in indices {
        match runs.last_mut() {
            Some((_, last)) if *last + 1 == index => *last = index,
            _ => runs.push((index, index)),
        }
    }
    let shown = runs.iter().take(SHOWN).map(|(first, last)| {
        if first == last {
            first.to_string()
        } else {
            format!("{first}-{last}")
        }
    });
    let shown = shown.collect::<Vec<_>>().join(", ");
    if runs.len() > SHOWN {
        shown + ", ..."
    } else {
        shown
    }
}

#[cfg(test)]
mod tests {
    use super::ranges;

    #[test]
    fn consecutive_positions_are_a_range() {
        assert_eq!(ranges(&[]), "");
        assert_eq!(ranges(&[1, 2, 3, 7, 9, 10]), "1-3, 7, 9-10");
        let odd: Vec<usize> = (0..30).map(|n| 2 * n + 1).collect();
        assert_eq!(ranges(&odd), "1, 3, 5, 7, 9, 11, 13, 15, 17, 19, ...");
    }
}
