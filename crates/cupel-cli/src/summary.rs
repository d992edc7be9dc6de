//! The summary of a run on standard error.

use std::collections::BTreeMap;

use cupel::{CountRequirementShortfall, total_tokens};
use cupel_app::{Fit, Prepared, PreparedSession, Run, Setting};
use cupel_chat::{Fitted, SessionWindow, Shape};

use crate::budget::limits;
use crate::dialect::CommandLine;
use crate::output::{Output, style};
use crate::task::config_line;
use crate::text::{counted, escaped, excerpt, grouped, grouped_count};

/// The summary of one run.
pub(crate) struct Summary<'r> {
    setting: &'r Setting,
    shape: Shape,
    /// The number of messages or items.
    len: usize,
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
    /// Returns the summary of a window.
    pub(crate) fn of_fit(prepared: &'r Prepared, fit: &'r Fit<'r>) -> Self {
        Self::of_run(prepared, &fit.run, fit.fitted.as_ref())
    }

    /// Returns the summary of a run; `fitted` is the trimmed chat, if it is one.
    pub(crate) fn of_run(
        task: &'r Prepared,
        run: &'r Run<'r>,
        fitted: Option<&'r Fitted<'r>>,
    ) -> Self {
        let decisions = &run.decisions;
        let tokens = fitted.map_or(decisions.tokens_used(), |fitted| fitted.tokens_after);
        let mut dropped: BTreeMap<String, Vec<usize>> = BTreeMap::new();
        for index in decisions.excluded() {
            let reason = decisions.exclusion(index);
            let reason = reason.map(|reason| task.setting.dropped_because(&reason));
            let reason = reason.unwrap_or_default();
            dropped.entry(reason).or_default().push(index);
        }
        let window = decisions.window().iter();
        Self {
            setting: &task.setting,
            shape: task.shape(),
            len: task.len(),
            kept: window.filter(|index| **index < task.len()).count(),
            tokens,
            total: fitted.map_or(total_tokens(task.items()), |fitted| fitted.tokens_before),
            dropped,
            fitted,
            overflow: run.overflow.as_ref().map(|it| it.tokens_over_budget),
            shortfalls: decisions.shortfalls(),
            session: Vec::new(),
        }
    }

    /// Returns the summary of a window of a session.
    pub(crate) fn of_session(task: &'r PreparedSession, window: &'r SessionWindow<'r>) -> Self {
        let fitted = &window.fitted;
        let mut dropped: BTreeMap<String, Vec<usize>> = BTreeMap::new();
        for message in &fitted.dropped {
            let reason = task.setting.dropped_because(&message.reason);
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
            setting: &task.setting,
            shape: task.chat.shape(),
            len: task.chat.len(),
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

    /// Returns the first line: what is kept, in messages and tokens, and the budget.
    pub(crate) fn headline(&self) -> String {
        let budget = &self.setting.budget;
        let limits = limits(budget).filter(|_| self.setting.origin.is_none());
        let limits = limits.map_or_else(String::new, |limits| format!(": {limits}"));
        format!(
            "kept {} of {}, {} of {} tokens (budget {}{limits})",
            grouped_count(self.kept),
            counted(self.len, self.shape.unit()),
            grouped(self.tokens),
            grouped(self.total),
            grouped(budget.window_limit()),
        )
    }

    /// Returns how the input was read and counted, and with which policy it was run.
    pub(crate) fn settings(&self) -> String {
        let (counted_by, policy) = (self.setting.counted_by(), &self.setting.policy.name);
        format!("{}, {counted_by}, policy {policy}", self.shape)
    }

    /// Returns which configuration was used, and what of it.
    pub(crate) fn config(&self) -> Option<String> {
        self.setting.config.as_ref().map(config_line)
    }

    /// Returns how a budget that is stated nowhere was chosen.
    pub(crate) fn origin(&self) -> Option<String> {
        let origin = self.setting.origin.as_ref()?;
        Some(format!("budget: {}", origin.describe(&CommandLine)))
    }

    /// Returns the share of the budget that the window uses.
    pub(crate) fn usage(&self) -> (i64, i64) {
        (self.tokens, self.setting.budget.window_limit())
    }

    pub(crate) fn write(&self, output: &mut Output) {
        let (bold, quiet) = (style::HEADER, style::QUIET);
        output.note(format_args!("{bold}{}{bold:#}", escaped(&self.headline())));
        let mut lines: Vec<String> = self.origin().into_iter().collect();
        lines.extend(self.fitted.map(changes).unwrap_or_default());
        for (reason, indices) in &self.dropped {
            let mut indices = indices.clone();
            indices.sort_unstable();
            let count = grouped_count(indices.len());
            lines.push(format!("dropped {count}, {reason}: {}", ranges(&indices)));
        }
        lines.extend(self.fitted.and_then(room_left));
        lines.extend(self.session.iter().cloned());
        lines.extend(self.overflow.map(|tokens| {
            let tokens = grouped(tokens);
            format!("{tokens} tokens over the budget; the policy accepts this")
        }));
        lines.extend(self.shortfalls.iter().map(|shortfall| {
            format!(
                "required {} of kind {}, found {}",
                shortfall.required_count, shortfall.kind, shortfall.satisfied_count
            )
        }));
        lines.push(self.settings());
        lines.extend(self.config());
        for line in lines {
            let line = escaped(&line);
            output.note(format_args!("{quiet}  {line}{quiet:#}"));
        }
        self.write_warnings(output);
    }

    /// Writes what may be unexpected: options without effect, an estimated count.
    pub(crate) fn write_warnings(&self, output: &mut Output) {
        for notice in &self.setting.notices {
            output.warn(notice.message(&CommandLine));
        }
        for warning in self.fitted.iter().flat_map(|fitted| &fitted.warnings) {
            output.warn(warning);
        }
        if let Some(estimated) = &self.setting.estimated {
            output.warn(estimated);
        }
    }
}

/// Returns why a window that was cut is not full.
fn room_left(fitted: &Fitted<'_>) -> Option<String> {
    let cuts = fitted.cuts.as_ref().filter(|cuts| !cuts.made.is_empty())?;
    let requests = match cuts.next_in {
        0 => return None,
        1 => "about 1 more request reuses".to_owned(),
        count => format!("about {} more requests reuse", grouped(count)),
    };
    Some(format!(
        "cut so that {requests} the prefix; --policy single fills up"
    ))
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
            grouped_count(indices.len()),
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
pub(crate) fn ranges(indices: &[usize]) -> String {
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
