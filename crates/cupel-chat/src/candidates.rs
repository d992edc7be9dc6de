//! [`Candidates`]: the messages of a chat as items, with shorter views for a ladder.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Deref;

use cupel::config::SlicerConfig;
use cupel::{
    ContextItem, ContextItemBuilder, ContextView, GroupSlice, LadderSlice, LadderStep, Policy,
    Shorten, total_tokens,
};

use crate::chat::Chat;
use crate::fit::FitError;
use crate::marker::Markers;
use crate::message::{ContentPart, ParsedMessage, Slot};
use crate::shape::Shape;
use crate::shorten::Shortener;
use crate::tokens::{TokenCounter, cost};

/// Everything in a request that costs tokens, as a policy wants it: one item per message, then the
/// request overhead; see [`Chat::candidates_for`]. Dereferences to the items.
#[derive(Debug, Clone)]
pub struct Candidates {
    pub(crate) items: Vec<ContextItem>,
    /// The text replacements of each message.
    pub(crate) replacements: Vec<Replacements>,
    /// The slicer of the policy, if it is a ladder.
    pub(crate) ladder: Option<LadderSlice>,
    /// The tokens of all messages as they were read.
    pub(crate) tokens_before: i64,
    pub(crate) markers: Markers,
    /// The messages that an earlier window of the same session dropped.
    pub(crate) dropped_before: BTreeSet<usize>,
}

/// The text replacements of one message.
#[derive(Debug, Clone, Default)]
pub(crate) struct Replacements {
    /// What the item itself stands for, if not for the message as it was read.
    pub(crate) base: Option<Replacement>,
    /// One replacement per view of the item.
    pub(crate) views: Vec<Replacement>,
}

/// Shorter texts for some strings of a message.
#[derive(Debug, Clone)]
pub(crate) struct Replacement {
    pub(crate) level: i64,
    pub(crate) tokens: i64,
    /// The path of each string and its new text.
    pub(crate) texts: Vec<(String, String)>,
}

impl Candidates {
    /// Returns the replacement of a message kept as `view`, if it is not kept as it was read.
    pub(crate) fn replacement(&self, index: usize, view: Option<usize>) -> Option<&Replacement> {
        let replacements = self.replacements.get(index)?;
        match view {
            Some(view) => replacements.views.get(view),
            None => replacements.base.as_ref(),
        }
    }
}

impl Deref for Candidates {
    type Target = [ContextItem];

    fn deref(&self) -> &[ContextItem] {
        &self.items
    }
}

/// What a session remembers of the messages of earlier windows.
#[derive(Debug, Clone, Default)]
pub(crate) struct Memory {
    /// The tokens of the first messages.
    pub(crate) tokens: Vec<i64>,
    /// The level that each message was shortened to.
    pub(crate) levels: Vec<Option<i64>>,
    pub(crate) dropped: BTreeSet<usize>,
    /// The texts and replacements of shortened messages, where they are known.
    pub(crate) shortened: BTreeMap<usize, (String, Replacement)>,
}

/// Returns the slicer of a policy, if it is a ladder, with the steps that its settings allow.
fn ladder_of(policy: &Policy) -> Option<LadderSlice> {
    let Ok(SlicerConfig::Ladder {
        mut steps,
        shorten_to,
        drop_to,
        ..
    }) = policy.slicer().to_config()
    else {
        return None;
    };
    let shorten = policy.chat().shorten;
    steps.retain(|step| match step {
        LadderStep::Shorten { mandatory, .. } => {
            shorten == Shorten::All || (shorten == Shorten::Old && !mandatory)
        }
        _ => true,
    });
    LadderSlice::new(steps).with_marks(shorten_to, drop_to).ok()
}

/// Returns the levels that a ladder may shorten an item to.
fn levels_of(ladder: &LadderSlice, item: &ContextItem) -> BTreeSet<i64> {
    let is_mandatory = item.metadata().contains_key(LadderSlice::MANDATORY);
    let is_kept = is_mandatory || item.metadata().contains_key(LadderSlice::KEEP);
    let levels = ladder.steps().iter().filter_map(|step| match step {
        LadderStep::Shorten {
            kind,
            mandatory,
            levels,
        } if kind == item.kind() && if *mandatory { is_kept } else { !is_mandatory } => {
            Some(levels)
        }
        _ => None,
    });
    levels.flatten().copied().collect()
}

/// The metadata of a message that a ladder never drops: [`LadderSlice::MANDATORY`] or
/// [`LadderSlice::KEEP`], and why.
type Mark = (&'static str, &'static str);

const TASK: &str = "task";
const LAST_USER_TURN: &str = "last user turn";
const NEWEST_STEP: &str = "newest step";

impl Chat {
    /// Returns everything in the request that costs tokens, as a policy wants it.
    ///
    /// As [`candidates`](Self::candidates), with the pins of the policy and its limit for tool results.
    /// For a policy with a [`LadderSlice`] the task, the last user turn and the newest step are
    /// mandatory instead of pinned. Messages offer shorter views if the chat exceeds `limit`, or always
    /// if that is `None`.
    ///
    /// # Errors
    ///
    /// [`FitError`] for an invalid pin and for a chat without the messages that its format requires.
    pub fn candidates_for(
        &self,
        policy: &Policy,
        limit: Option<i64>,
        counter: &dyn TokenCounter,
    ) -> Result<Candidates, FitError> {
        self.candidates_after(&Memory::default(), policy, limit, counter)
    }

    /// Returns the candidates of a session that remembers earlier windows.
    pub(crate) fn candidates_after(
        &self,
        memory: &Memory,
        policy: &Policy,
        limit: Option<i64>,
        counter: &dyn TokenCounter,
    ) -> Result<Candidates, FitError> {
        let settings = policy.chat();
        let items = self.counted_candidates(counter, &memory.tokens);
        let mut candidates = Candidates {
            replacements: vec![Replacements::default(); self.len()],
            ladder: ladder_of(policy),
            tokens_before: total_tokens(&items),
            markers: Markers::Off,
            dropped_before: memory.dropped.clone(),
            items,
        };
        let pins = self.pinned_by(&settings.pin)?;
        if let Some(ladder) = candidates.ladder.take() {
            candidates.markers = Markers::of(settings);
            let tokens = self.marker_tokens(&candidates.markers, counter);
            candidates.ladder = Some(ladder.with_marker_tokens(tokens));
            candidates.mark(self, settings.keep_task)?;
        }
        for &index in &pins {
            candidates.edit(index, |item| item.pinned(true))?;
        }
        for index in 0..self.len() {
            let remembered = memory.levels.get(index).copied().flatten();
            let limit = settings.max_result.filter(|_| self.has_result(index));
            let Some(level) = remembered.into_iter().chain(limit).min() else {
                continue;
            };
            let known = memory.shortened.get(&index);
            if let Some(known) = known.filter(|(_, known)| known.level == level) {
                candidates.replace(index, known.clone())?;
                continue;
            }
            let (tokens, is_task) = (candidates[index].tokens(), candidates.is_task(index));
            let shortened = self.shortened(index, tokens, &[level], is_task, counter);
            for shortened in shortened {
                candidates.replace(index, shortened)?;
            }
        }
        if limit.is_none_or(|limit| candidates.tokens() > limit) {
            candidates.offer_views(self, counter)?;
        }
        Ok(candidates)
    }

    /// Returns the mark of each message that a ladder never drops.
    fn mandatory_for_ladder(&self, keep_task: bool) -> Result<Vec<Option<Mark>>, FitError> {
        let mut marks = vec![None; self.len()];
        // Checks the rules of the format.
        self.mandatory()?;
        let user_turn = |index: &usize| self.messages[*index].is_user_turn();
        let start = self.earliest_start();
        let has_calls = |index: &usize| {
            let is_valid =
                self.groups.orphan(*index).is_none() && self.groups.group(*index) >= start;
            is_valid && !self.messages[*index].calls.is_empty()
        };
        let newest = (0..self.len()).rfind(has_calls);
        let last = (0..self.len()).rfind(user_turn);
        let task = (0..self.len()).find(|&index| keep_task && self.can_start(index));
        // A step that a user turn follows was answered already, so it is shortened like older ones.
        let key = if newest > last {
            LadderSlice::MANDATORY
        } else {
            LadderSlice::KEEP
        };
        let mandatory = [
            (newest, (key, NEWEST_STEP)),
            (last, (LadderSlice::MANDATORY, LAST_USER_TURN)),
            (task, (LadderSlice::MANDATORY, TASK)),
        ];
        for (index, mark) in mandatory {
            let group = index.map(|index| self.groups.members(self.groups.group(index)));
            for &member in group.into_iter().flatten() {
                marks[member] = Some(mark);
            }
        }
        Ok(marks)
    }

    /// Returns the user turn that each message is dropped with. A window without the task must start on a
    /// user turn in some formats, so its turns are dropped as a whole there.
    fn turns(&self) -> Vec<Option<usize>> {
        let last = (0..self.len()).rfind(|&index| self.messages[index].is_user_turn());
        let last = last.map_or(0, |last| self.groups.group(last));
        let mut start = None;
        let starts: Vec<Option<usize>> = (0..self.len())
            .map(|index| {
                start = Some(index).filter(|&index| self.can_start(index)).or(start);
                start.filter(|&start| start < last)
            })
            .collect();
        let turn = |index| starts[self.groups.group(index)];
        (0..self.len()).map(turn).collect()
    }

    fn has_result(&self, index: usize) -> bool {
        let slots = &self.messages[index].slots;
        slots.iter().any(|slot| slot.result.is_some())
    }

    /// Returns the strings of a message that a shorter text may replace: those of its tool results; or
    /// all its texts, if it is the task or an assistant message of texts only.
    fn replaceable(&self, index: usize, is_task: bool) -> Vec<&Slot> {
        let message = &self.messages[index];
        if self.has_result(index) {
            let slots = message.slots.iter();
            return slots.filter(|slot| slot.result.is_some()).collect();
        }
        let is_alone = self.groups.members(self.groups.group(index)).len() == 1;
        let is_text_only = message.slots.len() == message.parts.len();
        if is_task || (message.is_from_model() && is_alone && is_text_only) {
            return message.slots.iter().collect();
        }
        Vec::new()
    }

    /// Returns a message shortened to each level at which it gets shorter: its text, and what to replace.
    ///
    /// `tokens` are those of the message as it was read. The strings of one tool result share a level.
    fn shortened(
        &self,
        index: usize,
        tokens: i64,
        levels: &[i64],
        is_task: bool,
        counter: &dyn TokenCounter,
    ) -> Vec<(String, Replacement)> {
        let message = &self.messages[index];
        let slots = self.replaceable(index, is_task);
        let texts: Vec<(&Slot, Shortener<'_>, i64)> = slots
            .iter()
            .filter_map(|&slot| match &message.parts[slot.part] {
                ContentPart::Text(text) => {
                    let own = if slots.len() == 1 && message.parts.len() == 1 {
                        // The rest of the message is its role.
                        tokens - cost::message(self.shape, &without_parts(message), counter)
                    } else {
                        counter.count(text)
                    };
                    Some((slot, Shortener::new(text), own))
                }
                _ => None,
            })
            .collect();
        let mut found = Vec::new();
        for &level in levels {
            let mut short = message.clone();
            let mut replacement = Replacement {
                level,
                tokens,
                texts: Vec::new(),
            };
            for (slot, shortener, own) in &texts {
                let sharing = texts
                    .iter()
                    .filter(|(other, ..)| other.result == slot.result);
                let sharing = i64::try_from(sharing.count()).unwrap_or(i64::MAX);
                let share = (level / sharing).max(LEAST_SHARE.min(level));
                if *own <= share {
                    continue;
                }
                let text = match slot.result {
                    Some(_) => shortener.result(share, counter),
                    None => shortener.prose(share, counter),
                };
                if let Some(text) = text {
                    replacement.tokens += counter.count(&text) - own;
                    short.parts[slot.part] = ContentPart::Text(text.clone());
                    replacement.texts.push((slot.path.clone(), text));
                }
            }
            if replacement.tokens < tokens {
                found.push((short.text(), replacement));
            }
        }
        found
    }
}

/// The lowest level of the answer that the last user turn replies to.
const LEAST_ANSWER: i64 = 60;

/// The fewest tokens of one of several strings of a tool result.
const LEAST_SHARE: i64 = 15;

fn without_parts(message: &ParsedMessage) -> ParsedMessage {
    ParsedMessage {
        role: message.role,
        label: message.label.clone(),
        named: message.named,
        ..ParsedMessage::default()
    }
}

impl Candidates {
    /// Returns the tokens of the messages that no earlier window dropped, and of the request overhead.
    pub(crate) fn tokens(&self) -> i64 {
        let is_kept = |(index, _): &(usize, &ContextItem)| !self.dropped_before.contains(index);
        let kept = self.items.iter().enumerate().filter(is_kept);
        total_tokens(kept.map(|(_, item)| item))
    }

    /// Returns the text and the replacement of a message shortened to a level.
    pub(crate) fn shortened(&self, index: usize, level: i64) -> Option<(String, Replacement)> {
        let Replacements { base, views } = &self.replacements[index];
        let item = &self.items[index];
        let view = views.iter().position(|view| view.level == level);
        match view {
            Some(view) => {
                let content = item.views()[view].content();
                Some((content.to_owned(), views[view].clone()))
            }
            None => Some((item.content().to_owned(), base.clone()?)),
        }
    }

    fn edit(
        &mut self,
        index: usize,
        edit: impl FnOnce(ContextItemBuilder) -> ContextItemBuilder,
    ) -> Result<(), FitError> {
        let builder = edit(self.items[index].to_builder());
        self.items[index] = builder.build().map_err(FitError::Policy)?;
        Ok(())
    }

    /// Marks the mandatory messages, which are no longer pinned so that a ladder may shorten them.
    fn mark(&mut self, chat: &Chat, keep_task: bool) -> Result<(), FitError> {
        if chat.shape == Shape::Items {
            return Ok(());
        }
        let by_turn = !keep_task && chat.shape.starts_on_user();
        let turns = if by_turn {
            chat.turns()
        } else {
            vec![None; chat.len()]
        };
        let always = chat.always_kept();
        for (index, mark) in chat
            .mandatory_for_ladder(keep_task)?
            .into_iter()
            .enumerate()
        {
            let turn = turns[index];
            self.edit(index, |mut item| {
                item = item.pinned(always.contains(&index));
                if let Some((key, reason)) = mark {
                    item = item.meta(key, reason);
                }
                match turn {
                    Some(turn) => item.meta(GroupSlice::KEY, format!("turn {turn}")),
                    None => item,
                }
            })?;
        }
        Ok(())
    }

    fn is_task(&self, index: usize) -> bool {
        let reason = self.items[index].metadata().get(LadderSlice::MANDATORY);
        reason.is_some_and(|reason| reason == TASK)
    }

    /// Replaces an item by a shorter view of its message.
    fn replace(
        &mut self,
        index: usize,
        (text, replacement): (String, Replacement),
    ) -> Result<(), FitError> {
        let view = ContextView::new(text, replacement.tokens);
        let level = replacement.level.to_string();
        self.edit(index, |item| {
            item.view(view).meta(LadderSlice::LEVEL, level)
        })?;
        if let Some(item) = self.items[index].as_view(0) {
            self.items[index] = item;
            self.replacements[index].base = Some(replacement);
        }
        Ok(())
    }

    /// Adds the views that the steps of the ladder may take.
    fn offer_views(&mut self, chat: &Chat, counter: &dyn TokenCounter) -> Result<(), FitError> {
        let Some(ladder) = self.ladder.clone().filter(|_| chat.shape != Shape::Items) else {
            return Ok(());
        };
        let last = (0..chat.len()).rfind(|&index| chat.messages[index].is_user_turn());
        for index in 0..chat.len() {
            let item = &self.items[index];
            if item.pinned() || self.dropped_before.contains(&index) {
                continue;
            }
            let base = self.replacements[index].base.as_ref();
            let above = base.map_or(i64::MAX, |base| base.level);
            let is_answer = last == Some(index + 1) && !chat.has_result(index);
            let least = if is_answer { LEAST_ANSWER } else { 0 };
            let levels = levels_of(&ladder, item);
            let levels: Vec<i64> = levels
                .into_iter()
                .rev()
                .filter(|level| *level < above && *level >= least)
                .collect();
            let full = item.original_tokens().unwrap_or(item.tokens());
            let mut tokens = item.tokens();
            let is_task = self.is_task(index);
            let mut views = Vec::new();
            for (text, replacement) in chat.shortened(index, full, &levels, is_task, counter) {
                if replacement.tokens < tokens {
                    tokens = replacement.tokens;
                    views.push(ContextView::new(text, tokens).with_level(replacement.level));
                    self.replacements[index].views.push(replacement);
                }
            }
            if !views.is_empty() {
                self.edit(index, |item| {
                    views.into_iter().fold(item, ContextItemBuilder::view)
                })?;
            }
        }
        Ok(())
    }
}
