//! The windows of a chat at a range of budgets, for a policy with a replay.
//!
//! The cuts of a replay follow from the budget, rounded down to six significant bits. So budgets that are rounded to the
//! same number have the same cuts, and are evaluated together:
//!
//! ```text
//! budgets   1,984 .. 2,047    2,048 .. 2,111    ...    5,869 and above
//! cuts      of 1,984          of 2,048                 none: the chat fits
//! windows   one, if the cuts leave enough room; else the steps of the ladder behind them
//! ```
//!
//! There are 32 such ranges from a budget to its double. Each has candidates of its own, because a cut puts a shortened
//! message in the place of the one that was read. [`Forms`] gives all of them the same names: the views of one list of
//! candidates.

use std::ops::{ControlFlow, RangeInclusive};
use std::sync::Arc;

use cupel::{
    BudgetSweep, ContextBudget, ContextView, CupelError, Policy, SweepProgress, total_tokens,
};

use crate::candidates::{Candidates, SessionMemory};
use crate::chat::Chat;
use crate::fit::FitError;
use crate::marker::{Marker, Markers};
use crate::replay::{Cuts, rounded};
use crate::tokens::TokenCounter;
use crate::views::Replacement;

/// The windows of a chat at a range of budgets; see [`Chat::sweep`].
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ChatSweep {
    /// The windows. The tokens of a step include its markers.
    pub sweep: BudgetSweep,
    /// The messages, with every form that a window has as a view, and the request overhead.
    pub candidates: Candidates,
    /// The markers, from each budget on at which they change.
    pub markers: Vec<(i64, Vec<Marker>)>,
    /// The cuts, from each budget on at which they change; `None` where the chat fits or no window does.
    pub cuts: Vec<(i64, Option<Cuts>)>,
}

impl ChatSweep {
    /// Returns the markers of the window at a budget.
    pub fn markers_at(&self, budget: i64) -> &[Marker] {
        let after = self.markers.partition_point(|(from, _)| *from <= budget);
        after.checked_sub(1).map_or(&[], |at| &self.markers[at].1)
    }

    /// Returns the last message of the prefix that the window at a budget shares with the window of an earlier request
    /// of the same chat, byte for byte, and the tokens up to there, with the request overhead; `None` if they share no
    /// message.
    pub fn shared_prefix(&self, earlier: &Self, budget: i64) -> Option<(usize, i64)> {
        let overhead = &self.candidates[self.candidates.originals.len()..];
        let mut tokens = total_tokens(overhead);
        let mut shared = None;
        let mut before = earlier.written(budget).into_iter();
        for message in self.written(budget) {
            if before.next().as_ref() != Some(&message) {
                break;
            }
            tokens += message.tokens;
            shared = Some((message.index, tokens));
        }
        shared
    }

    /// Returns the messages of the window at a budget.
    fn written(&self, budget: i64) -> Vec<Written<'_>> {
        let len = self.candidates.originals.len();
        let kept = self.sweep.selection_at(budget).into_iter();
        let markers = self.markers_at(budget);
        let mut written = Vec::new();
        for index in kept.filter(|&index| index < len) {
            let own = markers.iter().filter(|marker| marker.before == index);
            let own = own.filter(|marker| marker.merged_into.is_none());
            written.extend(own.map(|marker| Written {
                index,
                text: &marker.json,
                tokens: marker.tokens,
                merged: None,
            }));
            let item = &self.candidates[index];
            let view = self.sweep.view_at(index, budget);
            let view = view.map(|view| &item.views()[view]);
            let mut merged = markers.iter().filter(|it| it.merged_into == Some(index));
            let merged = merged.next();
            written.push(Written {
                index,
                text: view.map_or(item.content(), ContextView::content),
                tokens: view.map_or(item.tokens(), ContextView::tokens)
                    + merged.map_or(0, |marker| marker.tokens),
                merged: merged.map(|marker| marker.text.as_str()),
            });
        }
        written
    }
}

/// A message of a window, or a marker before it.
#[derive(PartialEq)]
struct Written<'s> {
    index: usize,
    text: &'s str,
    tokens: i64,
    /// The marker in its text.
    merged: Option<&'s str>,
}

impl Chat {
    /// Returns the windows at a range of budgets: those of [`fit`](Self::fit) for a policy with
    /// [`replay`](cupel::ChatSettings::replay).
    ///
    /// The budgets are `targets`; the other limit of `budget` changes by the same amount. If the replays of more than
    /// `samples` budgets differ, so many are made, and [`BudgetSweep::exact`] is `false`. The observer is told of
    /// the progress, and can stop the sweep.
    ///
    /// # Errors
    ///
    /// [`FitError`], as [`candidates_for`](Self::candidates_for), and [`CupelError::InvalidBudget`] for an empty range.
    ///
    /// ```
    /// use std::ops::ControlFlow;
    /// use cupel::ContextBudget;
    /// use cupel_chat::{Chat, Encoding, default_policy};
    ///
    /// let log = "a line of the log\\n".repeat(90);
    /// let chat = Chat::parse(&format!(r#"[
    ///   {{"role": "user", "content": "Why does the build fail?"}},
    ///   {{"role": "assistant", "tool_calls": [{{"id": "a", "function": {{"name": "log", "arguments": "1"}}}}]}},
    ///   {{"role": "tool", "tool_call_id": "a", "content": "{log}"}},
    ///   {{"role": "assistant", "tool_calls": [{{"id": "b", "function": {{"name": "log", "arguments": "2"}}}}]}},
    ///   {{"role": "tool", "tool_call_id": "b", "content": "no more lines"}}
    /// ]"#), None)?;
    /// let (policy, counter) = (default_policy(), Encoding::O200k);
    /// let budget = ContextBudget::with_target(200, 200)?;
    /// let go_on = &mut |_| ControlFlow::Continue(());
    /// let swept = chat.sweep(&policy, &budget, 0..=600, 1_000, &counter, go_on)?;
    /// assert!(swept.sweep.exact);
    /// assert_eq!(swept.sweep.selection_at(200).len(), 6); // with the request overhead
    /// assert!(swept.sweep.view_at(2, 200).is_some());
    /// assert_eq!(swept.sweep.view_at(2, 600), None);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn sweep(
        &self,
        policy: &Policy,
        budget: &ContextBudget,
        targets: RangeInclusive<i64>,
        samples: usize,
        counter: &dyn TokenCounter,
        observer: &mut dyn FnMut(SweepProgress) -> ControlFlow<()>,
    ) -> Result<ChatSweep, FitError> {
        let (first, last) = (*targets.start(), *targets.end());
        let gap = budget.max_tokens() - budget.target_tokens();
        if first < 0 || first > last || last.checked_add(gap).is_none() {
            return Err(FitError::Policy(CupelError::InvalidBudget(format!(
                "the swept targets ({first} to {last}) must start at 0 or above, and must not be empty"
            ))));
        }
        let plain = self.plain_candidates(policy, counter)?;
        let pins = self.pinned_by(&policy.chat().pin)?;
        let budgets = Budgets {
            budget,
            gap,
            pinned: self.pinned_tokens(&plain, &pins),
            whole: plain.tokens_before,
        };
        let mut windows = Windows {
            chat: self,
            policy,
            counter,
            budgets: &budgets,
            memory: SessionMemory {
                tokens: Vec::new(),
                originals: plain.originals.clone(),
            },
            forms: Forms((0..self.len()).map(|_| Vec::new()).collect()),
            plain: &plain,
            sweep: BudgetSweep::new(plain.len()),
            markers: Vec::new(),
            cuts: Vec::new(),
        };
        let mut ranges = windows.without_failures(&budgets.ranges(first, last))?;
        let is_sampled = ranges.len() > samples.max(1);
        if is_sampled {
            ranges = budgets.sampled(ranges, samples.max(1));
        }
        for (number, range) in ranges.iter().enumerate() {
            windows.add(range)?;
            // A skipped range has the window of the one before.
            let to = ranges.get(number + 1).map_or(last, |next| next.from - 1);
            if to > range.to {
                windows.sweep.extend_to(to);
            }
            if observer(SweepProgress::one_by_one(first, to, last)).is_break() {
                break;
            }
        }
        windows.finish(is_sampled)
    }

    /// Returns the messages as a chat that fits has them.
    fn plain_candidates(
        &self,
        policy: &Policy,
        counter: &dyn TokenCounter,
    ) -> Result<Candidates, FitError> {
        /// Far below the end of the range, so that sums do not reach it.
        const LARGEST: i64 = i64::MAX / 4;
        let budget = ContextBudget::with_target(LARGEST, LARGEST).map_err(FitError::Policy)?;
        self.candidates_for(policy, Some(&budget), counter)
    }

    /// Returns the chat as it was at the previous request: all before the last messages of the model. `None` if there
    /// was none.
    pub fn at_previous_request(&self) -> Option<Self> {
        let end = self.previous_request().filter(|&end| end > 0)?;
        let text = self.write(&(0..end).collect::<Vec<_>>());
        let shape = Some(self.shape);
        let at = self.parsed_at();
        let chat = if at.is_empty() {
            Self::parse(&text, shape)
        } else {
            Self::parse_at(&text, at, shape)
        };
        chat.ok()
    }
}

/// The most messages that the runs of one range go through, and the least number of runs. A ladder behind cuts is run at
/// each budget of its range.
const RUNS: usize = 1 << 20;
const LEAST_RUNS: usize = 16;

/// Budgets with the same cuts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Cause {
    /// The limits do not allow the reserve.
    Invalid,
    /// The mandatory messages do not fit.
    Failing,
    /// The chat is cut to this budget.
    Cut(i64),
    /// The chat fits.
    Whole,
}

/// Targets with the same cuts, first and last.
#[derive(Debug, Clone, Copy)]
struct Range {
    from: i64,
    to: i64,
    cause: Cause,
}

/// What the cuts at a budget depend on.
struct Budgets<'a> {
    budget: &'a ContextBudget,
    /// The difference of both limits.
    gap: i64,
    /// The tokens of the pinned messages and of the request overhead.
    pinned: i64,
    /// The tokens of the whole request.
    whole: i64,
}

impl Budgets<'_> {
    /// Returns the budget with a target.
    fn at(&self, target: i64) -> Result<ContextBudget, CupelError> {
        self.budget.with_limits(target + self.gap, target)
    }

    fn cause(&self, target: i64) -> Cause {
        match self.at(target) {
            Err(_) => Cause::Invalid,
            Ok(budget) if self.whole <= budget.window_limit() => Cause::Whole,
            Ok(budget) => Cause::Cut(rounded(budget.effective(self.pinned).target_tokens())),
        }
    }

    /// Returns the ranges between two targets, in order.
    fn ranges(&self, first: i64, last: i64) -> Vec<Range> {
        let mut ranges = Vec::new();
        let mut from = first;
        while from <= last {
            let cause = self.cause(from);
            // The cause changes with the target in one direction, so a bisection finds the end.
            let (mut low, mut high) = (from, last);
            while low < high {
                let middle = low + (high - low) / 2 + 1;
                if self.cause(middle) == cause {
                    low = middle;
                } else {
                    high = middle - 1;
                }
            }
            ranges.push(Range {
                from,
                to: low,
                cause,
            });
            if low == last {
                break;
            }
            from = low + 1;
        }
        ranges
    }

    /// Returns some of the ranges, at even distances; the first, the last and the one of the budget are among them.
    fn sampled(&self, ranges: Vec<Range>, samples: usize) -> Vec<Range> {
        let target = self.budget.target_tokens();
        let len = ranges.len();
        let is_sample = |(number, range): &(usize, Range)| {
            let is_even = number * samples / len != (number + 1) * samples / len;
            let has_target = (range.from..=range.to).contains(&target);
            is_even || has_target || *number == 0 || number + 1 == len
        };
        let ranges = ranges.into_iter().enumerate().filter(is_sample);
        ranges.map(|(_, range)| range).collect()
    }
}

/// The windows so far.
struct Windows<'c> {
    chat: &'c Chat,
    policy: &'c Policy,
    counter: &'c dyn TokenCounter,
    budgets: &'c Budgets<'c>,
    memory: SessionMemory,
    plain: &'c Candidates,
    forms: Forms,
    sweep: BudgetSweep,
    markers: Vec<(i64, Vec<Marker>)>,
    cuts: Vec<(i64, Option<Cuts>)>,
}

impl Windows<'_> {
    /// Makes one range of those in which the mandatory messages do not fit. There are about 200 below 1,000 tokens, and
    /// a chat that does not fit is shortened as far as possible at each. What is mandatory does not depend on the
    /// budget, so a bisection finds the last one.
    fn without_failures(&self, ranges: &[Range]) -> Result<Vec<Range>, FitError> {
        let is_failing = |range: &Range| -> Result<bool, FitError> {
            let budget = self.budgets.at(range.to).map_err(FitError::Policy)?;
            let candidates = self.candidates(range.to)?;
            let pipeline = self.chat.policy_over(self.policy, &candidates);
            Ok(pipeline.decide(&candidates, &budget).is_err())
        };
        let valid = ranges.partition_point(|range| range.cause == Cause::Invalid);
        let (mut low, mut high) = (valid, ranges.len());
        while low < high {
            let middle = low + (high - low) / 2;
            if is_failing(&ranges[middle])? {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        let mut found = ranges[..valid].to_vec();
        if low > valid {
            found.push(Range {
                from: ranges[valid].from,
                to: ranges[low - 1].to,
                cause: Cause::Failing,
            });
        }
        found.extend_from_slice(&ranges[low..]);
        Ok(found)
    }

    /// Adds the windows of a range.
    fn add(&mut self, range: &Range) -> Result<(), FitError> {
        let Range { from, to, cause } = *range;
        if cause == Cause::Invalid {
            return self.add_part(from, to, self.plain);
        }
        let candidates = self.candidates(from)?;
        // A window with room to spare stays the same up to the next cut.
        let fits = |cuts: &Cuts| cuts.tokens_by_request().last() <= Some(&cuts.budget);
        let is_one = cause == Cause::Failing
            || (candidates.cuts().is_some_and(fits) && !self.lacks_markers(&candidates));
        if is_one {
            self.add_part(from, from, &candidates)?;
            self.sweep.extend_to(to);
            return Ok(());
        }
        // Without room for markers a window has none, and that depends on the budget before it is rounded.
        let end = if from < to && self.lacks_markers(&candidates) {
            self.last_without_markers(from, to)?
        } else {
            to
        };
        self.add_part(from, end, &candidates)?;
        if end < to {
            let candidates = self.candidates(end + 1)?;
            self.add_part(end + 1, to, &candidates)?;
        }
        Ok(())
    }

    /// Returns the candidates of a target. Those of the first target of a range serve all of it, because they have
    /// every view that a larger one needs.
    fn candidates(&self, target: i64) -> Result<Candidates, FitError> {
        let budget = self.budgets.at(target).map_err(FitError::Policy)?;
        self.chat
            .candidates_after(&self.memory, self.policy, Some(&budget), self.counter)
    }

    fn lacks_markers(&self, candidates: &Candidates) -> bool {
        candidates.markers == Markers::Off && self.plain.markers != Markers::Off
    }

    /// Returns the last target of a range without room for markers, if the first one has none.
    fn last_without_markers(&self, from: i64, to: i64) -> Result<i64, FitError> {
        if self.lacks_markers(&self.candidates(to)?) {
            return Ok(to);
        }
        let (mut low, mut high) = (from, to - 1);
        while low < high {
            let middle = low + (high - low) / 2 + 1;
            if self.lacks_markers(&self.candidates(middle)?) {
                low = middle;
            } else {
                high = middle - 1;
            }
        }
        Ok(low)
    }

    /// Adds the windows from one target to another, which have the same candidates.
    fn add_part(&mut self, from: i64, to: i64, candidates: &Candidates) -> Result<(), FitError> {
        let chat = self.chat;
        let pipeline = chat.policy_over(self.policy, candidates);
        let samples = (RUNS / chat.len().max(1)).max(LEAST_RUNS);
        let part = pipeline.sweep_sampled(candidates, self.budgets.budget, from..=to, samples);
        let mut part = part.map_err(FitError::Policy)?;
        for number in 0..part.steps.len() {
            let at = part.steps[number].from;
            let mut kept = part.selection_at(at);
            kept.retain(|&index| index < chat.len());
            let view = |index| part.view_at(index, at);
            let forms = &mut self.forms;
            let is_short = |index: &&usize| forms.of(candidates, **index, view(**index)).is_some();
            let shortened = kept.iter().filter(is_short).count();
            let markers = chat.markers_for(candidates, &kept, view, self.counter);
            let tokens: i64 = markers.iter().map(|marker| marker.tokens).sum();
            let step = &mut part.steps[number];
            step.shortened = shortened;
            if step.error.is_none() {
                step.tokens_used = step.tokens_used.saturating_add(tokens);
                push_change(&mut self.markers, at, markers);
            }
        }
        let has_window = part.steps.iter().any(|step| step.error.is_none());
        let cuts = candidates.cuts().filter(|_| has_window);
        push_change(&mut self.cuts, from, cuts.cloned());
        let forms = &mut self.forms;
        self.sweep
            .append(part, |index, view| forms.of(candidates, index, view));
        Ok(())
    }

    /// Makes the forms the views of one list of candidates.
    fn finish(mut self, is_sampled: bool) -> Result<ChatSweep, FitError> {
        let mut candidates = self.plain.clone();
        for (index, forms) in self.forms.0.into_iter().enumerate() {
            let mut order: Vec<usize> = (0..forms.len()).collect();
            order.sort_by_key(|&form| std::cmp::Reverse(forms[form].replacement.level));
            let mut last = i64::MAX;
            let views = order.iter().map(|&form| {
                let Form { text, replacement } = &forms[form];
                // A view of an item has a level of its own. The same level of two texts is rare: a ladder lowers that
                // of a text that it cannot shorten.
                last = replacement.level.min(last - 1);
                let view = ContextView::new(text.clone(), replacement.tokens);
                (view.with_level(last), replacement.clone())
            });
            candidates.set_views(index, views.collect())?;
            for it in &mut self.sweep.items[index].views {
                it.view = order.iter().position(|&form| form == it.view).unwrap_or(0);
            }
        }
        self.sweep.exact &= !is_sampled;
        Ok(ChatSweep {
            sweep: self.sweep,
            candidates,
            markers: self.markers,
            cuts: self.cuts,
        })
    }
}

/// Adds an entry if it differs from the last one.
fn push_change<T: PartialEq>(list: &mut Vec<(i64, T)>, from: i64, entry: T) {
    if list.last().is_none_or(|(_, last)| *last != entry) {
        list.push((from, entry));
    }
}

/// The shortened forms of each message that a window has. A form is the base of one candidate and a view of another.
struct Forms(Vec<Vec<Form>>);

struct Form {
    text: String,
    replacement: Arc<Replacement>,
}

impl Forms {
    /// Returns the number of a message's form, which is new or known; `None` if the message is as it was read, or as the
    /// limit for tool results made it.
    fn of(&mut self, candidates: &Candidates, index: usize, view: Option<usize>) -> Option<usize> {
        let replacements = candidates.replacements.get(index)?;
        let item = &candidates[index];
        let (text, replacement) = match view {
            Some(view) => (item.views()[view].content(), &replacements.views[view]),
            None => (item.content(), &replacements.base.as_ref()?.replacement),
        };
        let known = &mut self.0[index];
        let is_it =
            |form: &Form| form.replacement.tokens == replacement.tokens && form.text == text;
        Some(known.iter().position(is_it).unwrap_or_else(|| {
            known.push(Form {
                text: text.to_owned(),
                replacement: replacement.clone(),
            });
            known.len() - 1
        }))
    }
}
