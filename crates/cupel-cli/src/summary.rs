//! The summary of a run on standard error.

use std::collections::BTreeMap;

use cupel::{ContextBudget, CountRequirementShortfall, total_tokens};
use cupel_chat::{Fitted, SessionWindow, Shape, UnknownModel};

use crate::budget::shown;
use crate::decision::Run;
use crate::output::{Output, style};
use crate::task::{SessionTask, Task};
use crate::text::{counted, excerpt, grouped};

/// The settings of a run that its summary names.
pub(crate) struct Header<'r> {
    pub(crate) shape: Shape,
    /// The number of messages or items.
    pub(crate) len: usize,
    pub(crate) budget: &'r ContextBudget,
    pub(crate) policy: &'r str,
    pub(crate) counted_by: String,
    pub(crate) unknown_model: Option<&'r UnknownModel>,
}

/// The summary of one run.
pub(crate) struct Summary<'r> {
    header: Header<'r>,
    kept: usize,
    tokens: i64,
    total: i64,
    /// The dropped candidates by reason.
    dropped: BTreeMap<String, Vec<usize>>,
    /// The trimmed chat, if the input is one.
    fitted: Option<&'r Fitted<'r>>,
    /// The tokens over the budget that the policy accepts.
    overflow: Option<i64>,
    shortfalls: &'r [CountRequirementShortfall],
    /// What a session adds.
    session: Vec<String>,
}

impl<'r> Summary<'r> {
    /// Returns the summary of a run; `fitted` is the trimmed chat, if it is one.
    pub(crate) fn of_run(task: &'r Task, run: &'r Run<'r>, fitted: Option<&'r Fitted<'r>>) -> Self {
        let decisions = &run.decisions;
        let mut dropped: BTreeMap<String, Vec<usize>> = BTreeMap::new();
        for index in decisions.excluded() {
            let reason = decisions.summary(index).unwrap_or_default();
            dropped.entry(reason).or_default().push(index);
        }
        let window = decisions.window().iter();
        Self {
            header: task.header(),
            kept: window.filter(|index| **index < task.len()).count(),
            tokens: fitted.map_or(decisions.tokens_used(), |fitted| fitted.tokens_after),
            total: fitted.map_or(total_tokens(&task.items), |fitted| fitted.tokens_before),
            dropped,
            fitted,
            overflow: run.overflow.as_ref().map(|it| it.tokens_over_budget),
            shortfalls: decisions.shortfalls(),
            session: Vec::new(),
        }
    }

    /// Returns the summary of a window of a session.
    pub(crate) fn of_session(task: &'r SessionTask, window: &'r SessionWindow<'r>) -> Self {
        let fitted = &window.fitted;
        let mut dropped: BTreeMap<String, Vec<usize>> = BTreeMap::new();
        for message in &fitted.dropped {
            let reason = message.reason.summary();
            dropped.entry(reason).or_default().push(message.index);
        }
        let mut session = Vec::new();
        if let Some(reuse) = &window.reuse {
            let change = match reuse.first_changed {
                Some(index) => format!("; first change at message {index}"),
                None => String::new(),
            };
            session.push(format!(
                "reused {} of {} tokens of the window before ({:.0} %){change}",
                grouped(reuse.tokens),
                grouped(reuse.of),
                100.0 * reuse.share
            ));
        }
        session.extend(window.rebuilt.map(|rebuilt| format!("note: {rebuilt}")));
        Self {
            header: task.header(),
            kept: fitted.kept.len(),
            tokens: fitted.tokens_after,
            total: fitted.tokens_before,
            dropped,
            fitted: Some(fitted),
            overflow: None,
            shortfalls: &fitted.report.count_requirement_shortfalls,
            session,
        }
    }

    pub(crate) fn write(&self, output: &mut Output) {
        let (bold, quiet) = (style::HEADER, style::QUIET);
        let header = &self.header;
        output.note(format_args!(
            "{bold}kept {} of {}, {} of {} tokens{bold:#} ({}, {}, {}, policy {})",
            self.kept,
            counted(header.len, header.shape.unit()),
            grouped(self.tokens),
            grouped(self.total),
            shown(header.budget.window_limit(), header.budget),
            header.counted_by,
            header.shape,
            header.policy,
        ));
        let mut lines = self.fitted.map(changes).unwrap_or_default();
        for (reason, indices) in &self.dropped {
            let mut indices = indices.clone();
            indices.sort_unstable();
            let count = indices.len();
            lines.push(format!("dropped {count}, {reason}: {}", ranges(&indices)));
        }
        lines.extend(self.session.iter().cloned());
        for line in lines {
            output.note(format_args!("{quiet}  {line}{quiet:#}"));
        }
        if let Some(tokens) = self.overflow {
            output.note(format_args!(
                "  {} tokens over the budget; the policy accepts this",
                grouped(tokens)
            ));
        }
        for shortfall in self.shortfalls {
            output.note(format_args!(
                "  required {} of kind {}, found {}",
                shortfall.required_count, shortfall.kind, shortfall.satisfied_count
            ));
        }
        for warning in self.fitted.iter().flat_map(|fitted| &fitted.warnings) {
            output.note(format_args!("warning: {warning}"));
        }
        if let Some(unknown) = header.unknown_model {
            output.note(format_args!("note: {unknown}"));
        }
    }
}

/// Returns a line about shortened messages and one per marker.
fn changes(fitted: &Fitted<'_>) -> Vec<String> {
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
