//! The cuts of a chat that grows, found by replaying it.
//!
//! A provider's prompt cache reuses the prefix that a request shares with an earlier one. A window that is chosen
//! anew for each request changes near its beginning each time, so that the cache misses. A session that stores its
//! cuts avoids that, but needs a state. The requests of the past are known without one, because each ended where an
//! answer of the model starts. So all cuts are made again, in order, and the state after the last one is used:
//!
//! ```text
//! budget 100      messages before the request          tokens   cut
//! request 1       0 user  1 call  2 result  |              60
//! request 2       0  1  2  3 call  4 result  |            120    result 2 shortened: 50 left
//! request 3       0  1  2' 3  4  5 call  6 result  |       90    none: starts with all that request 2 sent
//! ```
//!
//! A cut makes room for the next requests, so that they fit without a cut: for as many as fit above a share of the
//! budget, at the pace of the chat so far. The window is a pure
//! function of the messages, the request overhead, the budget, the policy and the counter: a caller that sends
//! everything again, several processes and a session with a state get the same bytes.
//!
//! Shortened forms are computed once per message and level. A request without a cut costs an addition per new
//! message, a cut a visit of the messages in its window.

use std::cell::OnceCell;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use cupel::{ChatSettings, ContextBudget, Retention, Shorten, ToolResults, total_tokens};

use crate::candidates::{Base, Candidates};
use crate::chat::Chat;
use crate::fit::FitError;
use crate::gaps::Gaps;
use crate::groups::Groups;
use crate::marks::{Landmarks, Mark};
use crate::superseded::Treatments;
use crate::tokens::TokenCounter;
use crate::views::{MessageShortener, Replacement};

/// The share of the budget for the head: the first messages, which stay the same at every cut. With a fifth a prompt cache
/// still reads that much after a cut, and the first results, which name what the whole session is about, stay. On
/// recorded runs of an airline agent at 1,000 tokens, 0.2 keeps 4 points more of the next call's arguments than 0.1.
const HEAD: f64 = 0.2;

/// The share of the budget that old tool results are shortened to. A lower mark makes cuts rarer: the bill
/// rises with the mark in all runs that were measured. On recorded sessions of a coding agent at 32,000 tokens, 0.45
/// keeps 0.7 points less of the lines that an edit quotes than 0.48, and 0.55 costs 8 % more for 1.1 points.
const RESULTS_TO: f64 = 0.48;

/// The share of the budget that old texts are shortened to. Texts are what people and the model said, so they give way
/// later and less than results. In conversations at 80 % of their size, 0.85 keeps 0.4 points more of the criterion
/// terms and costs 9 % more.
const TEXTS_TO: f64 = 0.75;

/// The share of the budget that messages are dropped to. Nothing is left of a dropped message, so a cut drops less than
/// it shortens. On recorded runs of an airline agent at 1,000 tokens, 0.75 keeps 1.1 points less of the next call's
/// arguments than 0.8 and costs 5 % less; 0.85 keeps 0.4 points more and costs 2 % more.
const DROP_TO: f64 = 0.8;

/// The share of the budget for the newest user turns, which are dropped after all other messages, and the limit for
/// those of the head. Without a limit a chat with long user turns keeps them all and cuts the newest answers at every
/// request.
const USER_TURNS: f64 = 0.4;

/// The levels of a limit that follows from the budget. Few levels, so that similar budgets give the same limit.
const LEVELS: [i64; 7] = [6400, 3200, 1600, 800, 400, 200, 100];

/// The levels of old tool results. They are many, and after some steps the model reads them again if it needs them,
/// so they are cut deeply at once: each extra level is one more cut.
const RESULT_LEVELS: [i64; 2] = [100, 60];

/// The levels of old answers, and after each those of the answer that the last user turn replies to. Answers are what
/// the user and the model agreed on, so they are cut late. `the second one` has no meaning without the newest answer:
/// it is cut step by step, and never shorter than the older ones. Cutting it to 100 only, and dropping older messages
/// instead, has 3 points less criterion recall at 40 % of a conversation.
const TEXT_LEVELS: [(i64, &[i64]); 3] = [(100, &[400, 200, 100]), (60, &[60]), (30, &[30])];

/// The level of a result that a newer one supersedes.
const SUPERSEDED_LEVEL: i64 = 100;

/// The most tokens of a result in the head, as a share of the budget. Less than the head, so that the first result fits
/// beside its call.
const HEAD_RESULT: f64 = 0.15;

/// The significant bits of the budget that cuts are made by. Budgets that are rounded down to the same number have the
/// same cuts: steps are a 64th to a 32nd of the budget wide.
const BUDGET_BITS: u32 = 6;

/// A chat that does not fit, and what its cuts depend on.
pub(crate) struct History<'c> {
    pub(crate) chat: &'c Chat,
    /// The messages in full, and the request overhead.
    pub(crate) candidates: &'c Candidates,
    pub(crate) landmarks: &'c Landmarks<'c>,
    pub(crate) settings: &'c ChatSettings,
    pub(crate) pins: &'c BTreeSet<usize>,
    /// The results of calls that occur several times, with the calls.
    pub(crate) repeated: &'c [(usize, String)],
    pub(crate) treatments: &'c Treatments,
    /// The forms that the limit for tool results makes.
    pub(crate) forms: Vec<Option<Base>>,
}

/// The state after the last cut.
pub(crate) struct Replayed {
    /// The shortened messages.
    pub(crate) bases: Vec<Option<Base>>,
    pub(crate) dropped: Vec<bool>,
    /// Whether a form changed.
    pub(crate) is_cut: bool,
    pub(crate) cuts: Cuts,
    /// The tokens of the markers, if the messages fit with them.
    pub(crate) marker_tokens: Option<i64>,
}

/// The cuts of a chat that exceeds the budget, and when the next one comes.
///
/// Tokens are those of the messages that can be cut: without system messages, pinned ones and the request overhead.
#[derive(Debug, Clone, PartialEq, Eq, Default, serde::Serialize)]
#[non_exhaustive]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Cuts {
    /// The tokens that a request may have.
    pub budget: i64,
    /// The requests so far, this one included.
    pub requests: usize,
    /// The cuts, in order.
    pub made: Vec<Cut>,
    /// The tokens that a request added, on average.
    pub pace: i64,
    /// How many requests follow without a cut, if they add as many tokens.
    pub next_in: i64,
    /// The tokens of each request, after its cut if it has one.
    #[serde(skip)]
    by_request: Vec<i64>,
    /// The first message behind the head.
    #[serde(skip)]
    head: usize,
    /// The position in `made` of the cut that changed a message last, by message.
    #[serde(skip)]
    changed_by: Vec<Option<usize>>,
}

/// A cut: a request that exceeded the budget.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[non_exhaustive]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Cut {
    /// The number of the request, from 1.
    pub request: usize,
    /// The messages that the chat had.
    pub messages: usize,
    /// The tokens before the cut.
    pub tokens_before: i64,
    /// The tokens after the cut.
    pub tokens_after: i64,
    /// The tokens that the request may have, of messages that can be cut.
    pub budget: i64,
}

impl Cuts {
    /// Returns the cut that shortened or dropped a message, the last one of several.
    pub fn of(&self, index: usize) -> Option<&Cut> {
        let cut = self.changed_by.get(index).copied().flatten()?;
        self.made.get(cut)
    }

    /// Returns whether a message is shortened for this request alone, because it exceeds the budget with what is always
    /// kept.
    pub fn is_squeezed(&self, index: usize) -> bool {
        self.changed_by.get(index).copied().flatten() == Some(self.made.len())
    }

    /// Returns the tokens of each request so far, after its cut if it has one.
    pub fn tokens_by_request(&self) -> &[i64] {
        &self.by_request
    }

    /// Returns the first message behind the head, which stays the same at every cut.
    pub fn head(&self) -> usize {
        self.head
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    Full,
    /// Shortened to a level.
    Level(i64),
    Dropped,
}

impl History<'_> {
    /// Makes the cuts of all requests of the past and of this one.
    pub(crate) fn replay(
        self,
        budget: &ContextBudget,
        counter: &dyn TokenCounter,
    ) -> Result<Replayed, FitError> {
        let chat = self.chat;
        let mut replay = Replay::new(self, budget, counter);
        let is_from_model = |index: usize| chat.messages[index].is_from_model();
        let (mut grown, mut requests) = (0_i64, 0);
        for end in 1..=chat.len() {
            replay.push(end - 1);
            grown = grown.saturating_add(replay.tokens[end - 1]);
            // A request ended where an answer starts. An answer may be several messages.
            let is_request = end == chat.len() || (is_from_model(end) && !is_from_model(end - 1));
            if !is_request {
                continue;
            }
            requests += 1;
            replay.cuts.requests += 1;
            replay.cuts.pace = (grown / requests).max(1);
            if replay.total() > replay.budget {
                replay.cut(end);
            }
            let total = replay.total();
            replay.cuts.by_request.push(total);
        }
        replay.cuts.next_in = (replay.budget - replay.total()).max(0) / replay.cuts.pace;
        if replay.total() > replay.budget && replay.history.settings.shorten == Shorten::All {
            replay.squeeze();
        }
        replay.finish()
    }
}

/// A shortened message: its text and what it replaces.
type Shorter = (String, Arc<Replacement>);

/// A message as it was before it was dropped.
struct BeforeDrop {
    index: usize,
    form: Form,
    tokens: i64,
    changed_by: Option<usize>,
}

struct Replay<'c> {
    chat: &'c Chat,
    history: History<'c>,
    counter: &'c dyn TokenCounter,
    budget: i64,
    cuts: Cuts,
    /// Messages outside of the budget: pinned ones, and those that no window can contain.
    is_outside: Vec<bool>,
    /// Those of them that no window can contain.
    is_invalid: Vec<bool>,
    /// The first message that a window may start with. What is before it is dropped first: the marker in its place can
    /// be the start, and a window with a gap behind it is one that the provider rejects.
    start: usize,
    forms: Vec<Form>,
    /// The tokens of each message in its form; 0 for those outside of the budget.
    tokens: Vec<i64>,
    /// The tokens of the messages so far.
    kept: i64,
    /// The gaps between them, and their markers.
    gaps: Gaps<'c>,
    shorteners: Vec<OnceCell<MessageShortener<'c>>>,
    /// The shortened forms that were made, by message and level; `None` if a level makes none.
    known: HashMap<(usize, i64), Option<Shorter>>,
    /// Whether a form changed.
    is_cut: bool,
    seen: Seen<'c>,
    /// The units that the current cut dropped, in order, each with its messages.
    dropped: Vec<Vec<BeforeDrop>>,
}

/// What a cut needs to know of the messages before it. A cut adds the messages since the one before, so that it visits
/// the messages of a window, not those of the chat.
#[derive(Default)]
struct Seen<'c> {
    len: usize,
    /// The messages that are not dropped, in order.
    live: Vec<usize>,
    /// The message with the newest call of each tool.
    calls: HashMap<&'c str, usize>,
    /// How many of the repeated calls there are, and the newest result of each.
    repeated: usize,
    newest: HashMap<&'c str, usize>,
    /// The results that a newer one supersedes, in order.
    superseded: BTreeSet<usize>,
}

impl<'c> Replay<'c> {
    fn new(history: History<'c>, budget: &ContextBudget, counter: &'c dyn TokenCounter) -> Self {
        let (chat, candidates) = (history.chat, history.candidates);
        let filter = chat.ladder_filter(candidates);
        let is_invalid: Vec<bool> = (0..chat.len()).map(|it| filter(it).is_some()).collect();
        let mut is_outside = is_invalid.clone();
        for index in chat.always_kept().iter().chain(history.pins) {
            is_outside[*index] = true;
        }
        let start = if chat.shape.starts_on_user() {
            (0..chat.len()).find(|&index| chat.can_start(index))
        } else {
            Some(0)
        };
        let start = start.unwrap_or(chat.len());
        let pinned = chat.pinned_tokens(candidates, history.pins);
        let target = budget.effective(pinned).target_tokens();
        let tokens = (0..chat.len()).map(|index| match &history.forms[index] {
            _ if is_outside[index] => 0,
            Some(limited) => limited.replacement.tokens,
            None => candidates.originals[index].tokens(),
        });
        let forms = history.forms.iter().map(|limited| match limited {
            Some(limited) => Form::Level(limited.replacement.level),
            None => Form::Full,
        });
        let budget = rounded(target);
        Self {
            cuts: Cuts {
                budget,
                pace: 1,
                changed_by: vec![None; chat.len()],
                ..Cuts::default()
            },
            tokens: tokens.collect(),
            kept: 0,
            gaps: Gaps::new(chat, &candidates.markers, counter),
            forms: forms.collect(),
            shorteners: (0..chat.len()).map(|_| OnceCell::new()).collect(),
            known: HashMap::new(),
            is_cut: false,
            budget,
            is_outside,
            is_invalid,
            start,
            seen: Seen::default(),
            dropped: Vec::new(),
            chat,
            history,
            counter,
        }
    }

    /// Adds the next message of the chat.
    fn push(&mut self, index: usize) {
        self.kept += self.tokens[index];
        if self.forms[index] != Form::Dropped && !self.is_invalid[index] {
            self.gaps.push(index);
        }
    }

    /// Returns the tokens of the messages so far, with the markers in their gaps.
    fn total(&self) -> i64 {
        self.kept + self.gaps.tokens()
    }

    /// Adds the messages before `end`, and leaves out those that were dropped.
    fn see(&mut self, end: usize) {
        let seen = &mut self.seen;
        let forms = &self.forms;
        seen.live.extend(seen.len..end);
        seen.live.retain(|&index| forms[index] != Form::Dropped);
        for index in seen.len..end {
            for call in self.chat.message(index).calls() {
                seen.calls.insert(call.name, index);
            }
        }
        while let Some((index, call)) = self.history.repeated.get(seen.repeated) {
            if *index >= end {
                break;
            }
            seen.repeated += 1;
            seen.superseded.extend(seen.newest.insert(call, *index));
        }
        seen.len = end;
    }

    /// Returns a share of the budget.
    fn share(&self, share: f64) -> i64 {
        #[expect(
            clippy::cast_possible_truncation,
            reason = "rounds down, and saturates"
        )]
        let tokens = (self.budget as f64 * share).floor() as i64;
        tokens.min(self.budget)
    }

    /// Returns the tokens that a cut goes down to, at least a share of the budget: room for as many requests of the
    /// chat's pace as fit above that share. Room for half a request would be cut for nothing. A chat that grows by
    /// more than the share leaves free is cut to the budget alone.
    fn mark(&self, share: f64) -> i64 {
        let room = self.budget - self.share(share);
        self.budget - room / self.cuts.pace * self.cuts.pace
    }

    /// Cuts the first `end` messages.
    fn cut(&mut self, end: usize) {
        let before = self.total();
        let chat = self.chat;
        let marks = self.history.landmarks.marks(end);
        // One result of the newest step may be larger than the budget. It is shortened for this request alone, as
        // far as it needs, and the history is not cut for it in this request.
        let level = at_most(self.budget / 2);
        let newest = marks.range(..end).map(|(&index, _)| index);
        let newest = newest.filter(|&index| chat.has_result(index));
        let saved: i64 = newest.map(|index| self.saved(index, level)).sum();
        if before - saved <= self.budget {
            return;
        }
        self.see(end);
        let plan = Plan::new(self, &marks, end);
        let limits = [RESULTS_TO, TEXTS_TO, DROP_TO].map(|share| self.mark(share));
        let [for_results, for_texts, for_drops] = limits;
        if self.history.settings.shorten != Shorten::Off {
            for &index in &plan.head_results {
                self.cap(index, plan.level);
            }
            let old = || plan.old.iter().copied();
            let superseded = &self.seen.superseded;
            let superseded: Vec<usize> = old().filter(|it| superseded.contains(it)).collect();
            for index in superseded {
                self.cap(index, SUPERSEDED_LEVEL);
            }
            let results: Vec<usize> = old().filter(|&it| chat.has_result(it)).collect();
            let is_first = |it: &usize| self.is_treated(*it, ToolResults::ShortenFirst);
            let first: Vec<usize> = results.iter().copied().filter(is_first).collect();
            self.cap_until(for_results, &first, &RESULT_LEVELS);
            self.cap_until(for_results, &results, &RESULT_LEVELS);
            let is_text =
                |index: &usize| chat.messages[*index].is_from_model() && !chat.has_result(*index);
            let texts = old().filter(is_text);
            let texts = texts.filter(|index| plan.answer != Some(*index));
            let texts: Vec<usize> = texts.collect();
            let answer = plan.answer.filter(|answer| plan.old.contains(answer));
            for (old, newest) in &TEXT_LEVELS {
                self.cap_until(for_texts, &texts, &[*old]);
                self.cap_until(for_texts, answer.as_slice(), newest);
            }
        }
        let units = plan.units;
        self.dropped.clear();
        self.drop_until(for_drops, &plan.first, &units, end);
        self.drop_until(for_drops, &plan.older_users, &units, end);
        // If that is not enough, also drops the newest calls of tools, then what the policy keeps, then the newest user
        // turns, down to the same mark, so that the next request needs no cut.
        if self.total() > self.budget {
            self.drop_until(for_drops, &plan.calls, &units, end);
            self.drop_until(for_drops, &plan.keep, &units, end);
            self.drop_until(for_drops, &plan.users, &units, end);
        }
        self.refill(for_drops, end);
        let total = self.total();
        if total < before {
            self.cuts.made.push(Cut {
                request: self.cuts.requests,
                messages: end,
                tokens_before: before,
                tokens_after: total,
                budget: self.budget,
            });
        }
    }

    /// Returns whether the policy treats the results of a message in a way of its own.
    fn is_treated(&self, index: usize, treatment: ToolResults) -> bool {
        self.history.treatments.of(index) == Some(treatment)
    }

    /// Shortens the results of the newest step for this request alone: the next one makes its cuts from the forms
    /// before. They give way before the history is dropped, down to half of the budget.
    fn squeeze(&mut self) {
        let marks = self.history.landmarks.marks(self.chat.len());
        let least = at_most(self.budget / 2);
        let newest = marks.into_keys().filter(|&it| self.chat.has_result(it));
        let newest: Vec<usize> = newest.collect();
        for level in LEVELS.into_iter().filter(|&level| level >= least) {
            self.cap_until(self.budget, &newest, &[level]);
        }
    }

    /// Shortens messages to one level after the other, until the total is at most `limit`.
    fn cap_until(&mut self, limit: i64, messages: &[usize], levels: &[i64]) {
        for &level in levels {
            for &index in messages {
                if self.total() <= limit {
                    return;
                }
                self.cap(index, level);
            }
        }
    }

    /// Shortens a message to a level.
    fn cap(&mut self, index: usize, level: i64) {
        let saved = self.saved(index, level);
        if saved > 0 {
            self.forms[index] = Form::Level(level);
            self.tokens[index] -= saved;
            self.kept -= saved;
            self.is_cut = true;
            self.cuts.changed_by[index] = Some(self.cuts.made.len());
        }
    }

    /// Returns the tokens that a level saves of a message; never below 0, so that a form only gets shorter.
    fn saved(&mut self, index: usize, level: i64) -> i64 {
        let own = match self.forms[index] {
            Form::Full => i64::MAX,
            Form::Level(level) => level,
            Form::Dropped => return 0,
        };
        // A message within the level has no longer text in it.
        if own <= level || self.tokens[index] <= level {
            return 0;
        }
        let tokens = self.shortened(index, level).map(|it| it.tokens);
        tokens.map_or(0, |tokens| (self.tokens[index] - tokens).max(0))
    }

    fn shortened(&mut self, index: usize, level: i64) -> Option<Arc<Replacement>> {
        let known = self.known.entry((index, level)).or_insert_with(|| {
            let shortener = self.shorteners[index].get_or_init(|| {
                let tokens = self.history.candidates.originals[index].tokens();
                self.chat.shortener(index, tokens, false, self.counter)
            });
            let shorter = shortener.shorten(level, self.counter);
            shorter.map(|(text, replacement)| (text, Arc::new(replacement)))
        });
        known.as_ref().map(|(_, replacement)| replacement.clone())
    }

    /// Drops units one after the other, until the total is at most `limit`.
    fn drop_until(&mut self, limit: i64, dropped: &[usize], units: &Units<'_>, end: usize) {
        for &unit in dropped {
            if self.total() <= limit {
                break;
            }
            self.drop(units.members(unit), end);
        }
    }

    /// Drops a unit, also its members that come later.
    fn drop(&mut self, unit: &[usize], end: usize) {
        let mut before = Vec::with_capacity(unit.len());
        for &index in unit {
            if index < end {
                self.gaps.remove(index);
                self.kept -= self.tokens[index];
            }
            let changed_by = self.cuts.changed_by[index].replace(self.cuts.made.len());
            before.push(BeforeDrop {
                index,
                form: std::mem::replace(&mut self.forms[index], Form::Dropped),
                tokens: std::mem::take(&mut self.tokens[index]),
                changed_by,
            });
            self.is_cut = true;
        }
        self.dropped.push(before);
    }

    /// Takes units back that this cut dropped and that fit after all: those with user turns first, each newest first.
    /// Oldest first, a short message goes before the long one that had to go:
    ///
    /// ```text
    /// limit 100   kept 60   dropped 20 user, 50 user   the 20 fit again: 80
    /// ```
    ///
    /// An answer `ok` between two user turns costs less than the marker in its place, and is back in any case.
    ///
    /// In conversations at 25 % of their size, this keeps 1.0 points more of the criterion terms for 1 % of the bill.
    fn refill(&mut self, limit: i64, end: usize) {
        let mut dropped = std::mem::take(&mut self.dropped);
        let is_user = |it: &BeforeDrop| self.chat.messages[it.index].is_user_turn();
        dropped.sort_by_key(|unit| (unit.iter().any(is_user), unit[0].index));
        // A message that is back saves at most the marker in its place.
        let marker = self.gaps.cost_of(self.chat.len());
        for unit in dropped.into_iter().rev() {
            let limit = limit.max(self.total());
            let known = unit.iter().filter(|it| it.index < end);
            let tokens: i64 = known.map(|it| it.tokens).sum();
            if self.total() + tokens - marker > limit || !self.can_be_back(unit[0].index) {
                continue;
            }
            for it in &unit {
                self.restore(it, end);
            }
            if self.total() > limit {
                let unit: Vec<usize> = unit.iter().map(|it| it.index).collect();
                self.drop(&unit, end);
            }
        }
    }

    /// Returns whether a window with a message that was dropped still has a valid start.
    fn can_be_back(&self, index: usize) -> bool {
        let is_behind_start = |it: usize| it >= self.start;
        !self.chat.shape.starts_on_user()
            || self.chat.can_start(index)
            || self.kept_before(index).is_some_and(is_behind_start)
    }

    /// Returns the kept message before a message of the window that was cut.
    fn kept_before(&self, index: usize) -> Option<usize> {
        let live = &self.seen.live;
        let at = live.partition_point(|&it| it < index);
        let is_kept = |it: &usize| self.forms[*it] != Form::Dropped && !self.is_invalid[*it];
        live[..at].iter().copied().rfind(is_kept)
    }

    fn restore(&mut self, before: &BeforeDrop, end: usize) {
        let index = before.index;
        self.forms[index] = before.form;
        self.tokens[index] = before.tokens;
        self.cuts.changed_by[index] = before.changed_by;
        if index < end {
            self.kept += before.tokens;
            let previous = self.kept_before(index);
            self.gaps.insert(index, previous);
        }
    }

    fn finish(mut self) -> Result<Replayed, FitError> {
        self.cuts.head = end_of_head(&mut self);
        let mut bases = Vec::with_capacity(self.forms.len());
        for (index, form) in self.forms.iter().enumerate() {
            let known = match form {
                Form::Level(level) => self.known.remove(&(index, *level)).flatten(),
                _ => None,
            };
            bases.push(match known {
                Some((text, replacement)) => Some(Base::new(
                    &self.history.candidates.originals[index],
                    &text,
                    replacement,
                )?),
                None if matches!(form, Form::Level(_)) => self.history.forms[index].take(),
                None => None,
            });
        }
        let marker_tokens = Some(self.gaps.tokens()).filter(|_| self.total() <= self.budget);
        let is_dropped = |form: &Form| *form == Form::Dropped;
        Ok(Replayed {
            bases,
            dropped: self.forms.iter().map(is_dropped).collect(),
            is_cut: self.is_cut,
            cuts: self.cuts,
            marker_tokens,
        })
    }
}

/// The messages that are kept or dropped together. A unit has the position of its first message.
enum Units<'c> {
    /// Calls with their results, and what else a format binds.
    Groups(&'c Groups),
    /// All messages of a turn, where a window must start on a user turn: the unit of each message, and the messages of
    /// each unit.
    Turns(Vec<usize>, HashMap<usize, Vec<usize>>),
}

impl<'c> Units<'c> {
    fn new(chat: &'c Chat, turns: Option<Vec<Option<usize>>>) -> Self {
        let Some(turns) = turns else {
            return Self::Groups(&chat.groups);
        };
        let units = turns.iter().enumerate();
        let units = units.map(|(index, turn)| turn.unwrap_or_else(|| chat.groups.group(index)));
        let units: Vec<usize> = units.collect();
        let mut members: HashMap<usize, Vec<usize>> = HashMap::new();
        for (index, &unit) in units.iter().enumerate() {
            members.entry(unit).or_default().push(index);
        }
        Self::Turns(units, members)
    }

    fn of(&self, index: usize) -> usize {
        match self {
            Self::Groups(groups) => groups.group(index),
            Self::Turns(units, _) => units[index],
        }
    }

    fn members(&self, unit: usize) -> &[usize] {
        match self {
            Self::Groups(groups) => groups.members(unit),
            Self::Turns(_, members) => members.get(&unit).map_or(&[], Vec::as_slice),
        }
    }
}

/// What a cut may shorten and drop, in order.
struct Plan<'c> {
    units: Units<'c>,
    /// The messages that may be shortened: not mandatory, not in the head, not dropped.
    old: Vec<usize>,
    /// The units that are dropped first, then those with an older user turn, then those with the newest call of a tool,
    /// then those with a result that the policy keeps, then those with one of the newest user turns, each oldest first.
    first: Vec<usize>,
    older_users: Vec<usize>,
    calls: Vec<usize>,
    keep: Vec<usize>,
    users: Vec<usize>,
    /// The answer that the last user turn replies to.
    answer: Option<usize>,
    /// The results in the head, and their level.
    head_results: Vec<usize>,
    level: i64,
}

impl<'c> Plan<'c> {
    fn new(replay: &mut Replay<'c>, marks: &BTreeMap<usize, Mark>, end: usize) -> Self {
        let (chat, landmarks) = (replay.chat, replay.history.landmarks);
        let last = landmarks.last_user(end);
        let units = Units::new(chat, landmarks.turns(end));
        let level = at_most(replay.share(HEAD_RESULT));
        let head = head(replay, &units, end, level);
        let live = || replay.seen.live.iter().copied();
        let in_head = live().filter(|&index| units.of(index) < head);
        let is_kept = |index: usize| replay.is_treated(index, ToolResults::Keep);
        let head_results = in_head.filter(|&index| chat.has_result(index) && !is_kept(index));
        let head_results = head_results.collect();
        let is_mandatory = |index| matches!(marks.get(&index), Some((Retention::Mandatory, _)));
        let old = live().filter(|&index| {
            let is_spared = is_mandatory(index) || is_kept(index);
            units.of(index) >= head && !is_spared && !replay.is_outside[index]
        });
        let answer = last.and_then(|last| (0..last).rfind(|&index| chat.is_answer(index)));
        let is_free = |&index: &usize| {
            let is_dropped = replay.forms[index] == Form::Dropped;
            let is_marked = marks.contains_key(&index) || landmarks.is_bound(index);
            !is_marked && answer != Some(index) && !replay.is_outside[index] && !is_dropped
        };
        let calls: HashSet<usize> = replay.seen.calls.values().copied().collect();
        let newest_users = newest_users(replay);
        let is_user = |&index: &usize| chat.messages[index].is_user_turn();
        let [
            mut first,
            mut older_users,
            mut with_calls,
            mut keep,
            mut users,
        ] = [const { Vec::new() }; 5];
        for unit in live().filter(|&index| index >= head && units.of(index) == index) {
            let members = units.members(unit);
            if !members.iter().all(is_free) {
                continue;
            }
            if unit < replay.start {
                first.push(unit);
            } else if members.iter().any(|index| newest_users.contains(index)) {
                users.push(unit);
            } else if members.iter().any(|&index| is_kept(index)) {
                keep.push(unit);
            } else if members.iter().any(|index| calls.contains(index)) {
                with_calls.push(unit);
            } else if members.iter().any(is_user) {
                older_users.push(unit);
            } else {
                first.push(unit);
            }
        }
        Self {
            old: old.collect(),
            first,
            older_users,
            calls: with_calls,
            keep,
            users,
            answer,
            head_results,
            level,
            units,
        }
    }
}

/// Returns the first unit behind the head: the first units, up to a share of the budget, with their results shortened
/// to a level. The head depends on the messages, the pins and the budget alone, so that it is the same at every cut.
///
/// User turns have a limit of their own. Counted with the others they would fill the head of a conversation before
/// its first result: 5 points less of the next call's arguments for an airline agent at 1,000 tokens. Without a limit
/// a chat of long user turns and short answers would be all head, and no cut could change it. The task is not
/// counted, because it stays anyway.
fn head(replay: &mut Replay<'_>, units: &Units<'_>, end: usize, level: i64) -> usize {
    let task = replay.history.landmarks.first_user();
    let mut left = replay.share(HEAD);
    let mut left_for_users = replay.share(USER_TURNS);
    let mut fits = |unit: usize| {
        for &index in units.members(unit) {
            if replay.is_outside[index] || task == Some(index) {
                continue;
            }
            if index < replay.start {
                return false;
            }
            let full = replay.history.candidates.originals[index].tokens();
            let is_kept = replay.is_treated(index, ToolResults::Keep);
            let shorter = replay.chat.has_result(index) && full > level && !is_kept;
            let shorter = shorter.then(|| replay.shortened(index, level)).flatten();
            let tokens = shorter.map_or(full, |it| it.tokens.min(full));
            if replay.chat.messages[index].is_user_turn() {
                left_for_users -= tokens;
            } else {
                left -= tokens;
            }
        }
        left >= 0 && left_for_users >= 0
    };
    let mut starts = (0..end).filter(|&index| units.of(index) == index);
    starts.find(|&unit| !fits(unit)).unwrap_or(end)
}

/// Returns the first message behind the head of the whole chat, which stays the same until the budget changes: after a
/// cut, a prompt cache still reads the messages before it.
fn end_of_head(replay: &mut Replay<'_>) -> usize {
    let end = replay.chat.len();
    let units = Units::new(replay.chat, replay.history.landmarks.turns(end));
    let level = at_most(replay.share(HEAD_RESULT));
    head(replay, &units, end, level)
}

/// Returns the newest user turns, up to a share of the budget.
fn newest_users(replay: &Replay<'_>) -> HashSet<usize> {
    let mut left = replay.share(USER_TURNS);
    let turns = replay.seen.live.iter().rev().copied();
    let turns = turns.filter(|&index| replay.chat.messages[index].is_user_turn());
    let fits = |index: &usize| {
        left -= replay.tokens[*index];
        left >= 0
    };
    turns.take_while(fits).collect()
}

/// Returns the largest level up to a limit, or the lowest one.
fn at_most(limit: i64) -> i64 {
    let mut levels = LEVELS.into_iter();
    levels
        .find(|&level| level <= limit)
        .unwrap_or(LEVELS[LEVELS.len() - 1])
}

impl Chat {
    /// Returns the tokens outside of the budget of a replay: of pinned messages and the request overhead.
    pub(crate) fn pinned_tokens(&self, candidates: &Candidates, pins: &BTreeSet<usize>) -> i64 {
        let mut pinned = self.always_kept();
        pinned.extend(pins);
        let overhead = total_tokens(&candidates[self.len()..]);
        let pinned = pinned.iter().map(|&index| &candidates.originals[index]);
        total_tokens(pinned).saturating_add(overhead)
    }
}

/// Rounds a budget down to its significant bits.
pub(crate) fn rounded(budget: i64) -> i64 {
    let bits = i64::BITS - budget.max(0).leading_zeros();
    let low = bits.saturating_sub(BUDGET_BITS);
    (budget >> low) << low
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_is_the_largest_level_up_to_it() {
        let limits = [9_000, 6_400, 6_399, 500, 100, 99, 0, -5];
        assert_eq!(
            limits.map(at_most),
            [6400, 6400, 3200, 400, 100, 100, 100, 100]
        );
    }

    #[test]
    fn a_budget_keeps_six_significant_bits() {
        let budgets = [0, 63, 64, 1_000, 1_007, 1_008, 32_000, -3];
        assert_eq!(
            budgets.map(rounded),
            [0, 63, 64, 992, 992, 1_008, 31_744, -3]
        );
    }
}
