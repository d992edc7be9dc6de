//! [`Chat::fit`]: trims a chat to a budget.

use std::collections::BTreeSet;
use std::fmt;
use std::ops::Range;

use cupel::{
    ContextBudget, CupelError, Decisions, DiagnosticTraceCollector, ExclusionReason, Policy,
    SelectionReport, TraceDetailLevel, total_tokens,
};

use crate::cache::CacheBreakpoint;
use crate::candidates::Candidates;
use crate::chat::Chat;
use crate::layout::Piece;
use crate::marker::Marker;
use crate::message::Role;
use crate::replay::Cuts;
use crate::shape::{Shape, Start};
use crate::splice::{put_value, replace_values};
use crate::tokens::TokenCounter;
use crate::warning::Warning;

/// A chat trimmed to a budget; see [`Chat::fit`].
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Fitted<'a> {
    pub(crate) chat: &'a Chat,
    /// The positions of the kept messages, in ascending order.
    pub kept: Vec<usize>,
    /// The dropped messages, in order.
    pub dropped: Vec<Dropped>,
    /// The kept messages with shortened texts, in order.
    pub shortened: Vec<Shortened>,
    /// The texts in the place of dropped messages, in order.
    pub markers: Vec<Marker>,
    /// What the provider may reject in the window, and lost cache breakpoints.
    pub warnings: Vec<Warning>,
    /// Where a breakpoint of the provider's prompt cache is worth one, in order; at most four.
    pub breakpoints: Vec<CacheBreakpoint>,
    /// Whether the window gets them.
    pub(crate) sets_breakpoints: bool,
    /// The score of every message.
    pub scores: Vec<f64>,
    /// The rank of every message, from 0; `None` for one that is mandatory or was not ranked.
    pub ranks: Vec<Option<usize>>,
    /// The tokens of the whole request before.
    pub tokens_before: i64,
    /// The tokens of the whole request after.
    pub tokens_after: i64,
    /// The cuts of all requests so far, for a policy with [`replay`](cupel::ChatSettings::replay) and a chat that
    /// exceeds the budget.
    pub cuts: Option<Cuts>,
    /// The report of the run. The request overhead is a pinned item of the kind `Request`; messages
    /// that no valid chat contains are excluded as `Filtered`.
    pub report: SelectionReport,
}

/// A dropped message.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
#[non_exhaustive]
pub struct Dropped {
    /// Its position.
    pub index: usize,
    /// Its role as written.
    pub role: String,
    /// Its tokens.
    pub tokens: i64,
    /// The reason.
    pub reason: ExclusionReason,
}

/// A kept message with shortened texts.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
#[non_exhaustive]
pub struct Shortened {
    /// Its position.
    pub index: usize,
    /// Its role as written.
    pub role: String,
    /// The most tokens that each of its shortened texts may have.
    pub level: i64,
    /// Its tokens.
    pub tokens: i64,
    /// Its tokens before.
    pub original_tokens: i64,
    /// The path of each shortened value in the message, such as `content[0].text`, and its new text: of
    /// a string the string, of any other value its JSON.
    pub texts: Vec<(String, String)>,
}

/// A message of a trimmed chat; see [`Fitted::messages`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FittedMessage<'f> {
    /// The message at this position, as it was read.
    Original(usize),
    /// A message with other texts: shortened, or with a marker in it.
    Changed {
        /// Its position.
        index: usize,
        /// The path of each changed value, such as `content[0].text`, and its new text: of a string the
        /// string, of any other value its JSON.
        texts: Vec<(&'f str, String)>,
    },
    /// A new message in the place of dropped ones.
    Marker {
        /// The position of the kept message that it precedes.
        before: usize,
        /// The message.
        json: &'f str,
    },
}

impl FittedMessage<'_> {
    /// Returns the position of the message, or of the kept one that a marker precedes.
    fn index(&self) -> usize {
        match self {
            Self::Original(index) | Self::Changed { index, .. } => *index,
            Self::Marker { before, .. } => *before,
        }
    }
}

impl Fitted<'_> {
    /// Returns the messages of the window in order, by their position in the input. A program that holds
    /// the messages as values of its own builds the window from them.
    ///
    /// ```
    /// use cupel::ContextBudget;
    /// use cupel_chat::{Chat, Encoding, FittedMessage, newest_policy};
    ///
    /// let chat = Chat::parse(r#"[
    ///   {"role": "user", "content": "Hello!"},
    ///   {"role": "assistant", "content": "Hello! What can I do for you today?"},
    ///   {"role": "user", "content": "What is 2 + 2?"}
    /// ]"#, None)?;
    /// let budget = ContextBudget::with_target(29, 29)?;
    /// let fitted = chat.fit(&newest_policy(), &budget, &Encoding::O200k)?;
    /// assert_eq!(fitted.messages(), [FittedMessage::Original(1), FittedMessage::Original(2)]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn messages(&self) -> Vec<FittedMessage<'_>> {
        let mut messages = Vec::with_capacity(self.kept.len() + self.markers.len());
        for &index in &self.kept {
            messages.extend(self.marker_before(index).map(|it| FittedMessage::Marker {
                before: index,
                json: &it.json,
            }));
            let texts = self.replaced(index);
            messages.push(match texts.len() {
                0 => FittedMessage::Original(index),
                _ => FittedMessage::Changed { index, texts },
            });
        }
        messages
    }

    /// Returns the request with the kept messages and the [`cache_marks`](Self::cache_marks). What is not changed is byte
    /// for byte as in the input.
    pub fn to_json(&self) -> String {
        let messages = self.messages();
        let layout = &self.chat.layout;
        let changed = messages.iter().map(|message| match message {
            FittedMessage::Changed { index, texts } => {
                let texts = texts.iter().map(|(path, text)| (*path, text.as_str()));
                Some(replace_values(layout.json(*index), texts))
            }
            _ => None,
        });
        let mut changed: Vec<Option<String>> = changed.collect();
        let marks = self.cache_marks();
        for mark in &marks {
            let Some(position) = mark.message else {
                continue;
            };
            let json = match (&changed[position], &messages[position]) {
                (Some(json), _) => json,
                (None, FittedMessage::Marker { json, .. }) => *json,
                (None, message) => layout.json(message.index()),
            };
            changed[position] = Some(put_value(json, &mark.path, &mark.json));
        }
        let pieces = messages.iter().zip(&changed);
        let pieces = pieces.map(|(message, changed)| match (message, changed) {
            (FittedMessage::Marker { before, json }, changed) => {
                Piece::Before(*before, changed.as_deref().unwrap_or(json))
            }
            (message, Some(changed)) => Piece::Replaced(message.index(), changed),
            (message, None) => Piece::Original(message.index()),
        });
        let text = layout.write(&pieces.collect::<Vec<_>>());
        let of_request = marks.iter().filter(|mark| mark.message.is_none());
        of_request.fold(text, |text, mark| put_value(&text, &mark.path, &mark.json))
    }
}

/// The error of trimming a chat.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum FitError {
    /// The mandatory messages exceed the budget.
    TooLarge {
        /// The chat format.
        shape: Shape,
        /// The tokens available to the request.
        available: i64,
        /// The tokens of the mandatory messages and the request overhead.
        needed: i64,
        /// The request overhead, with the marker for dropped messages.
        overhead: i64,
        /// The mandatory messages.
        messages: Vec<MandatoryMessage>,
    },
    /// A mandatory message belongs to a group that no provider accepts.
    InvalidMessage {
        /// Its position.
        index: usize,
        /// Its role as written.
        role: String,
        /// What is wrong with the group.
        problem: &'static str,
        /// How to fix it.
        fix: &'static str,
    },
    /// The format starts on a user message, and there is none to start on.
    NoUserTurn(Shape),
    /// A pin names no message of the chat.
    InvalidPin {
        /// The pin.
        pin: String,
        /// What is wrong with it.
        problem: String,
    },
    /// The policy failed.
    Policy(CupelError),
}

/// A mandatory message.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct MandatoryMessage {
    /// Its position.
    pub index: usize,
    /// Its role as written.
    pub role: String,
    /// Its tokens.
    pub tokens: i64,
}

impl fmt::Display for FitError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooLarge {
                shape,
                available,
                needed,
                overhead,
                messages,
            } => {
                let over = needed.saturating_sub(*available);
                let unit = shape.unit();
                write!(
                    f,
                    "mandatory {unit}s need {needed} tokens, {over} over the budget of {available}:"
                )?;
                for (position, message) in messages.iter().enumerate() {
                    let MandatoryMessage {
                        index,
                        role,
                        tokens,
                    } = message;
                    let comma = if position > 0 { "," } else { "" };
                    write!(f, "{comma} {unit} {index} ({role}, {tokens} tokens)")?;
                }
                if *overhead > 0 {
                    let comma = if messages.is_empty() { "" } else { "," };
                    write!(f, "{comma} request overhead ({overhead} tokens)")?;
                }
                f.write_str("; raise the budget or shorten these")
            }
            Self::InvalidMessage {
                index,
                role,
                problem,
                fix,
            } => write!(
                f,
                "message {index} ({role}) is mandatory, and its group is invalid: {problem}; {fix}"
            ),
            Self::NoUserTurn(shape) => {
                write!(
                    f,
                    "a chat in the format {shape} must start on a user turn, and no user turn can be kept"
                )
            }
            Self::InvalidPin { pin, problem } => write!(f, "invalid pin `{pin}`: {problem}"),
            Self::Policy(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for FitError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Policy(error) => Some(error),
            _ => None,
        }
    }
}

impl Chat {
    /// Returns the mandatory messages with their groups: those that are [always kept](Self::always_kept),
    /// the current turn with [thinking](Self::thinking_turn), the last user turn, pending calls, and, in a format
    /// that starts on a user turn, one before all of them.
    ///
    /// Fails if no part of the chat is a valid window. The whole chat may still be one.
    pub(crate) fn mandatory(&self) -> Result<BTreeSet<usize>, FitError> {
        let mut mandatory = self.always_kept();
        if !self.shape.is_chat() {
            return Ok(mandatory);
        }
        let last = self.last_user_turn();
        mandatory.extend(self.thinking_turn());
        mandatory.extend(last);
        mandatory.extend(self.groups.pending());
        let mut kept = BTreeSet::new();
        for index in mandatory {
            self.check_complete(index)?;
            kept.extend(self.groups.with(index));
        }
        let no_user_turn = FitError::NoUserTurn(self.shape);
        let starts = (0..self.len()).any(|index| self.can_start(index));
        if self.shape.format().start == Start::User && !self.is_empty() && !starts {
            return Err(no_user_turn);
        }
        let is_system = |index: &usize| self.messages[*index].role() == Role::System;
        let first = kept.iter().copied().find(|index| !is_system(index));
        let first = first.filter(|&index| self.shape.starts_on_user() && !self.opens(index));
        if let Some(first) = first.filter(|_| starts || last.is_some()) {
            let start = (0..first).rfind(|&index| self.can_start(index));
            kept.extend(self.groups.with(start.ok_or(no_user_turn)?));
        }
        Ok(kept)
    }

    /// Returns the messages that are mandatory by themselves: system messages, compactions and settings, and
    /// the results of calls that the provider stores.
    pub(crate) fn always_kept(&self) -> BTreeSet<usize> {
        let is_kept = |index: &usize| {
            let message = &self.messages[*index];
            message.role() == Role::System || message.required.is_some()
        };
        let mut kept: BTreeSet<usize> = (0..self.len()).filter(is_kept).collect();
        kept.extend(self.groups.results_of_stored_calls());
        kept
    }

    /// Returns the messages that belong to the current turn of a request with thinking: all after the last user
    /// turn.
    pub(crate) fn thinking_turn(&self) -> Range<usize> {
        self.thinking_turn_before(self.len())
    }

    /// As [`thinking_turn`](Self::thinking_turn), if the chat ended after its first `len` messages.
    pub(crate) fn thinking_turn_before(&self, len: usize) -> Range<usize> {
        let is_thinking = self.shape.format().is_thinking;
        let turn = self.last_user_turn_before(len);
        let turn = turn.filter(|turn| is_thinking(&self.layout, &self.messages[turn + 1..len]));
        turn.map_or(len, |turn| turn + 1)..len
    }

    pub(crate) fn last_user_turn(&self) -> Option<usize> {
        self.last_user_turn_before(self.len())
    }

    pub(crate) fn last_user_turn_before(&self, len: usize) -> Option<usize> {
        (0..len).rfind(|&index| self.messages[index].is_user_turn())
    }

    /// Returns whether a message is a text of the model without calls.
    pub(crate) fn is_answer(&self, index: usize) -> bool {
        let message = &self.messages[index];
        message.is_from_model() && message.calls.is_empty() && !message.slots.is_empty()
    }

    /// Returns whether a message can be the first in a format that starts on a user turn: a user turn, or
    /// a compaction, which stands for one.
    pub(crate) fn opens(&self, index: usize) -> bool {
        self.messages[index].is_user_turn() || self.messages[index].is_compaction()
    }

    /// Returns whether a window can start on a message: one that [opens](Self::opens) a chat and is the first
    /// of its group.
    pub(crate) fn can_start(&self, index: usize) -> bool {
        self.opens(index)
            && self.groups.group(index) == index
            && self.groups.defect(index).is_none()
    }

    /// Fails for a message that no valid chat contains.
    pub(crate) fn check_complete(&self, index: usize) -> Result<(), FitError> {
        match self.groups.defect(index) {
            None => Ok(()),
            Some(defect) => Err(FitError::InvalidMessage {
                index,
                role: self.messages[index].label.clone(),
                problem: defect.describe(),
                fix: defect.fix(),
            }),
        }
    }

    /// Trims the chat to a budget. The result is a valid request for its provider.
    ///
    /// The budget is for the whole request: messages, tool definitions and the system prompt. The rules:
    ///
    /// - A chat that fits is not changed, unless [`max_result`](cupel::ChatSettings::max_result) or
    ///   [`strict`](cupel::ChatSettings::strict) asks for it. [`Fitted::warnings`] names what the
    ///   provider may reject.
    /// - System messages, compactions and the last user turn are mandatory. For a policy with a ladder, such as the
    ///   [`default_policy`](crate::default_policy), the first user turn and the last tool calls with their
    ///   results are mandatory, too. If the mandatory messages exceed the budget, the error names them.
    /// - A message with tool calls and all its tool results are kept or dropped together, as are reasoning
    ///   and the items after it.
    /// - A ladder shortens tool results and assistant texts. Other text, calls, arguments, thinking,
    ///   ids and signatures never change.
    /// - In a request that continues another (`previous_response_id`, `conversation`), the results of calls
    ///   that the provider stores are mandatory.
    /// - Of a chat that does not fit, messages that its provider rejects are dropped first and with their group:
    ///   a tool call without a result, a tool result without a call, twice or not right after its call,
    ///   reasoning without a following item, and two messages of one role in a row where roles must alternate.
    /// - If the format starts on a user turn, so does the window. An Anthropic window ends on a message of the
    ///   model only if the chat does, and with thinking it has the whole turn after the last user message.
    /// - The order is that of the input. The placer of the policy is not used.
    ///
    /// Items ([`Shape::Items`]) have no rules but pins and groups.
    ///
    /// # Errors
    ///
    /// [`FitError`].
    ///
    /// ```
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
    /// let budget = ContextBudget::with_target(200, 200)?;
    /// let fitted = chat.fit(&default_policy(), &budget, &Encoding::O200k)?;
    /// assert_eq!(fitted.kept, [0, 1, 2, 3, 4]);
    /// assert_eq!(fitted.shortened[0].index, 2);
    /// assert!(fitted.tokens_before > 500 && fitted.tokens_after <= 200);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn fit(
        &self,
        policy: &Policy,
        budget: &ContextBudget,
        counter: &dyn TokenCounter,
    ) -> Result<Fitted<'_>, FitError> {
        let candidates = self.candidates_for(policy, Some(budget), counter)?;
        self.fit_candidates(policy, budget, &candidates, counter)
    }

    /// Trims a chat whose [`candidates`](Self::candidates_for) are known; see [`fit`](Self::fit).
    ///
    /// Counting is most of the work. The candidates of one policy serve any number of budgets if they
    /// were made without a budget.
    ///
    /// # Errors
    ///
    /// [`FitError`].
    ///
    /// ```
    /// use cupel::ContextBudget;
    /// use cupel_chat::{Chat, Encoding, newest_policy};
    ///
    /// let chat = Chat::parse(r#"[
    ///   {"role": "user", "content": "Hello!"},
    ///   {"role": "assistant", "content": "Hello! What can I do for you today?"},
    ///   {"role": "user", "content": "What is 2 + 2?"}
    /// ]"#, None)?;
    /// let (policy, counter) = (newest_policy(), Encoding::O200k);
    /// let candidates = chat.candidates_for(&policy, None, &counter)?;
    /// for (tokens, kept) in [(21, &[0, 2][..]), (29, &[1, 2]), (35, &[0, 1, 2])] {
    ///     let budget = ContextBudget::with_target(tokens, tokens)?;
    ///     assert_eq!(chat.fit_candidates(&policy, &budget, &candidates, &counter)?.kept, kept);
    /// }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn fit_candidates(
        &self,
        policy: &Policy,
        budget: &ContextBudget,
        candidates: &Candidates,
        counter: &dyn TokenCounter,
    ) -> Result<Fitted<'_>, FitError> {
        self.check(candidates, budget)?;
        let mut collector = DiagnosticTraceCollector::new(TraceDetailLevel::Stage);
        let policy = self.policy_over(policy, candidates);
        let decisions = policy.decide_traced(candidates, budget, &mut collector);
        let decisions = decisions.map_err(|error| self.run_error(candidates, budget, error))?;
        let report = collector.into_report();
        Ok(self.fitted(candidates, &decisions, report, counter))
    }

    /// Returns the trimmed chat of a run of the chat's [`policy_over`](Self::policy_over) its
    /// candidates.
    pub fn fitted(
        &self,
        candidates: &Candidates,
        decisions: &Decisions<'_>,
        mut report: SelectionReport,
        counter: &dyn TokenCounter,
    ) -> Fitted<'_> {
        let window = decisions.window().iter().copied();
        let mut included: Vec<_> = window.zip(std::mem::take(&mut report.included)).collect();
        included.sort_unstable_by_key(|(position, _)| *position);
        let (mut kept, included): (Vec<usize>, Vec<_>) = included.into_iter().unzip();
        report.included = included;
        kept.retain(|&position| position < self.len());
        let dropped = self.messages.iter().enumerate();
        let dropped = dropped.filter_map(|(index, message)| {
            let reason = decisions.exclusion(index)?;
            Some(Dropped {
                index,
                role: message.label.clone(),
                tokens: candidates[index].tokens(),
                reason,
            })
        });
        let view = |index| decisions.view(index);
        let shortened = kept.iter();
        let shortened = shortened
            .filter_map(|&index| self.shortened(candidates, index, view(index)))
            .collect();
        let markers = self.markers_for(candidates, &kept, view, counter);
        let warnings = self.warnings(&kept);
        let marked = markers.iter().filter(|it| it.merged_into.is_none());
        let marked: Vec<usize> = marked.map(|marker| marker.before).collect();
        let breakpoints = self.breakpoints(candidates.head, &kept, &marked);
        let marker_tokens: i64 = markers.iter().map(|marker| marker.tokens).sum();
        Fitted {
            chat: self,
            scores: (0..self.len()).map(|it| decisions.score(it)).collect(),
            ranks: (0..self.len()).map(|it| decisions.rank(it)).collect(),
            cuts: candidates.cuts().cloned(),
            tokens_before: candidates.tokens_before,
            tokens_after: decisions.tokens_used().saturating_add(marker_tokens),
            dropped: dropped.collect(),
            shortened,
            markers,
            warnings,
            breakpoints,
            sets_breakpoints: candidates.sets_breakpoints,
            kept,
            report,
        }
    }

    /// Returns the changed form of a message in a window, shortened or with a merged marker; `None` if the window has
    /// it as it was read.
    pub(crate) fn shortened(
        &self,
        candidates: &Candidates,
        index: usize,
        view: Option<usize>,
    ) -> Option<Shortened> {
        let replacement = candidates.replacement(index, view)?;
        let item = &candidates[index];
        Some(Shortened {
            index,
            role: self.messages[index].label.clone(),
            level: replacement.level,
            tokens: replacement.tokens,
            original_tokens: item.original_tokens().unwrap_or(item.tokens()),
            texts: replacement.texts.clone(),
        })
    }

    /// Checks that the chat fits, or has the messages its format requires and that the mandatory ones fit.
    ///
    /// [`fit`](Self::fit) starts with this check; a run of the chat's [`policy`](Self::policy) does not.
    ///
    /// # Errors
    ///
    /// [`FitError`].
    pub fn check(&self, candidates: &Candidates, budget: &ContextBudget) -> Result<(), FitError> {
        let fits = candidates.tokens() <= budget.window_limit();
        if candidates.is_strict || !fits {
            self.mandatory()?;
        }
        if fits {
            return Ok(());
        }
        match self.too_large(candidates, budget, false) {
            None => Ok(()),
            // A run drops messages then, and may need room for a marker.
            Some(error) => Err(self.too_large(candidates, budget, true).unwrap_or(error)),
        }
    }

    /// Returns the error of a run as an error of the chat: if no window fits, it names the mandatory messages or
    /// what is missing.
    pub fn run_error(
        &self,
        candidates: &Candidates,
        budget: &ContextBudget,
        error: CupelError,
    ) -> FitError {
        match error {
            CupelError::MandatoryExceedsBudget { .. } => {
                let fault = self.mandatory().err();
                let fault = fault.or_else(|| self.too_large(candidates, budget, true));
                fault.unwrap_or(FitError::Policy(error))
            }
            error => FitError::Policy(error),
        }
    }

    /// Returns an error that lists the mandatory messages, shortened as far as possible, if they exceed the
    /// budget, together with the markers for the others if requested.
    pub(crate) fn too_large(
        &self,
        candidates: &Candidates,
        budget: &ContextBudget,
        with_markers: bool,
    ) -> Option<FitError> {
        let available = budget.window_limit();
        let request = &candidates[self.len()..];
        let is_mandatory = candidates.never_dropped();
        let marker = if with_markers {
            self.marker_room(candidates, |index| is_mandatory[index])
        } else {
            0
        };
        let mandatory = (0..self.len()).filter(|&index| is_mandatory[index]);
        let messages: Vec<MandatoryMessage> = mandatory
            .map(|index| MandatoryMessage {
                index,
                role: self.messages[index].label.clone(),
                tokens: candidates.least_tokens(index),
            })
            .collect();
        let overhead = total_tokens(request).saturating_add(marker);
        let tokens = messages.iter().map(|message| message.tokens);
        let needed = tokens.fold(overhead, i64::saturating_add);
        (needed > available).then_some(FitError::TooLarge {
            shape: self.shape,
            available,
            needed,
            overhead,
            messages,
        })
    }
}
