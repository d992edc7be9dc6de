//! [`Candidates`]: the messages of a chat as items, with shorter views for a ladder.
//!
//! A policy selects items. What the chat requires of a message is in the metadata, the pin and the views of its
//! item:
//!
//! ```text
//! message                          item
//! 0 system                         pinned: outside of the ladder's budget
//! 1 user       the task            cupel:mandatory, never dropped
//! 2 assistant  calls x             cupel:group: kept or dropped with 3
//! 3 tool       result, 900 tokens  cupel:group, views of 400, 200, 100 tokens, ...
//! 4 user       last user turn      cupel:mandatory
//! request overhead                 pinned: tools and parameters cost tokens, too
//! ```
//!
//! Views are made by shortening and counting texts, which takes most of the time of a fit. With a
//! budget, only the views of states up to the first one that fits are made.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ops::Deref;
use std::sync::Arc;

use cupel::{
    ChatSettings, ContextBudget, ContextItem, ContextItemBuilder, ContextView, CupelError,
    LadderSlice, LadderStep, Policy, Retention, Shorten, ToolResults, total_tokens,
};

use crate::chat::Chat;
use crate::fit::FitError;
use crate::marker::Markers;
use crate::marks::{BOUND, LAST_USER_TURN, Landmarks, Mark, THINKING, is_task};
use crate::message::{ParsedMessage, Required, Role};
use crate::replay::{Cuts, History};
use crate::superseded::Treatments;
use crate::tokens::TokenCounter;
use crate::views::{MessageShortener, Replacement};

/// Everything in a request that costs tokens, as items for a policy: one item per message, then the request
/// overhead; see [`Chat::candidates_for`]. Dereferences to the items.
#[derive(Debug, Clone)]
pub struct Candidates {
    pub(crate) items: Vec<ContextItem>,
    /// The items of the messages as they were read.
    pub(crate) originals: Vec<ContextItem>,
    /// The text replacements of each message.
    pub(crate) replacements: Vec<Replacements>,
    /// The ladder of the policy, with the steps that its settings allow and the tokens of markers. Other slicers
    /// may be around it.
    pub(crate) ladder: Option<LadderSlice>,
    /// The tokens of all messages as they were read.
    pub(crate) tokens_before: i64,
    pub(crate) markers: Markers,
    /// Whether invalid messages are dropped even from a chat that fits.
    pub(crate) is_strict: bool,
    /// Why each message is never dropped.
    kept_because: Vec<Option<String>>,
    /// The messages with results that a newer one supersedes, each with the newer one.
    superseded_by: BTreeMap<usize, usize>,
    cuts: Option<Cuts>,
    /// Whether a cut of a replay dropped a message, by position; empty without cuts.
    dropped: Vec<bool>,
    /// The first message behind the head of a replay; `None` if the chat fits, and without a replay.
    pub(crate) head: Option<usize>,
    /// Whether the window gets cache breakpoints.
    pub(crate) sets_breakpoints: bool,
}

/// The text replacements of one message.
#[derive(Debug, Clone, Default)]
pub(crate) struct Replacements {
    /// The message's earlier shortened form, if a cut or the limit for tool results made
    /// one. The item stands for it, and views are shorter than it.
    pub(crate) base: Option<Base>,
    /// One replacement per view of the item.
    pub(crate) views: Vec<Arc<Replacement>>,
}

/// A shortened message: its item without marks and pins, and its texts.
#[derive(Debug, Clone)]
pub(crate) struct Base {
    item: ContextItem,
    pub(crate) replacement: Arc<Replacement>,
}

impl Base {
    pub(crate) fn new(
        original: &ContextItem,
        text: &str,
        replacement: Arc<Replacement>,
    ) -> Result<Self, FitError> {
        let item = original
            .to_builder()
            .view(ContextView::new(text, replacement.tokens))
            .mark(|marks| marks.level = Some(replacement.level))
            .build()
            .map_err(FitError::Policy)?;
        Ok(Self {
            // The item has one view.
            item: item.as_view(0).unwrap_or(item),
            replacement,
        })
    }
}

impl Candidates {
    /// Returns why a message is never dropped, such as `task`, `system message` or `pin 3-5`; `None` if it may
    /// be dropped.
    ///
    /// ```
    /// use cupel_chat::{Chat, Encoding, single_policy};
    ///
    /// let chat = Chat::parse(r#"[
    ///   {"role": "user", "content": "Hello!"},
    ///   {"role": "assistant", "content": "What can I do for you?"},
    ///   {"role": "user", "content": "What is 2 + 2?"}
    /// ]"#, None)?;
    /// let candidates = chat.candidates_for(&single_policy(), None, &Encoding::O200k)?;
    /// let reasons = [0, 1, 2].map(|index| candidates.kept_because(index));
    /// assert_eq!(reasons, [Some("task"), None, Some("last user turn")]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn kept_because(&self, index: usize) -> Option<&str> {
        self.kept_because.get(index)?.as_deref()
    }

    /// Returns the cuts of a chat that exceeds the budget, if the policy has
    /// [`replay`](cupel::ChatSettings::replay).
    pub fn cuts(&self) -> Option<&Cuts> {
        self.cuts.as_ref()
    }

    /// Returns the message with the newer result that supersedes those of a message, if there is one.
    pub fn superseded_by(&self, index: usize) -> Option<usize> {
        self.superseded_by.get(&index).copied()
    }

    /// Returns the tokens of a message as it was read; `None` for the request overhead. Its item has fewer if a cut or
    /// the limit for tool results shortened it.
    pub fn tokens_before(&self, index: usize) -> Option<i64> {
        self.originals.get(index).map(ContextItem::tokens)
    }

    /// Returns whether a window of these candidates may have [markers](Chat::markers_for).
    pub fn may_have_markers(&self) -> bool {
        let marker_tokens = self.ladder.as_ref().map_or(0, LadderSlice::marker_tokens);
        marker_tokens > 0 && self.markers != Markers::Off
    }

    /// Returns the replacement of a message kept as `view`, if it is not kept as it was read.
    pub(crate) fn replacement(&self, index: usize, view: Option<usize>) -> Option<&Replacement> {
        let replacements = self.replacements.get(index)?;
        match view {
            Some(view) => replacements.views.get(view).map(|it| &**it),
            None => replacements.base.as_ref().map(|base| &*base.replacement),
        }
    }
}

impl Deref for Candidates {
    type Target = [ContextItem];

    fn deref(&self) -> &[ContextItem] {
        &self.items
    }
}

/// What a session remembers of the messages, by position. The lists end where the history changed;
/// messages beyond their end are new.
#[derive(Debug, Clone, Default)]
pub(crate) struct SessionMemory {
    /// The tokens of the first messages.
    pub(crate) tokens: Vec<i64>,
    /// The items, where they are known.
    pub(crate) originals: Vec<ContextItem>,
}

/// Returns the ladder of a policy with the steps that its settings allow; it may be wrapped.
///
/// # Errors
///
/// [`CupelError::PipelineConfig`] if a slicer wraps the ladder and cannot take an adapted one in its place: the
/// settings and the markers of the chat would have no effect.
fn ladder_of(policy: &Policy) -> Result<Option<LadderSlice>, CupelError> {
    let slicer = policy.slicer();
    let Some(ladder) = slicer.ladder() else {
        return Ok(None);
    };
    let shorten = policy.chat().shorten;
    let is_allowed = |step: &&LadderStep| match step {
        LadderStep::Shorten { mandatory, .. } => {
            shorten == Shorten::All || (shorten == Shorten::Old && !mandatory)
        }
        LadderStep::Supersede { .. } => shorten != Shorten::Off,
        _ => true,
    };
    let steps = ladder.steps().iter().filter(is_allowed);
    let ladder = ladder.clone().with_steps(steps.cloned().collect());
    if slicer.with_ladder(ladder.clone()).is_none() {
        return Err(CupelError::PipelineConfig(format!(
            "a chat cannot adapt the LadderSlice inside of {}; implement `Slicer::with_ladder` for it",
            slicer.slicer_name()
        )));
    }
    Ok(Some(ladder))
}

/// Returns the number of gaps that a window of the policy has room to mark. A policy by time cuts a
/// contiguous range; a policy by relevance keeps messages apart, so its windows have more gaps.
fn gaps_of(policy: &Policy) -> i64 {
    if policy.scorer().ranks_by_time() {
        // After the task and after the last user turn.
        2
    } else {
        // Relevant messages are apart.
        6
    }
}

impl Chat {
    /// Returns everything in the request that costs tokens, as items for a policy.
    ///
    /// As [`candidates`](Self::candidates), with the pins of the policy and its limit for tool results.
    /// For a policy with a [`LadderSlice`] the task, the last user turn and the newest step are
    /// mandatory instead of pinned, and messages offer shorter views. With a budget they offer only the
    /// views that it needs, which is less work, so that the candidates serve that budget alone. The window
    /// is the same as with the candidates for any budget.
    ///
    /// # Errors
    ///
    /// [`FitError`] for an invalid pin, and for a policy whose ladder a custom slicer wraps without
    /// [`Slicer::with_ladder`](cupel::Slicer::with_ladder).
    pub fn candidates_for(
        &self,
        policy: &Policy,
        budget: Option<&ContextBudget>,
        counter: &dyn TokenCounter,
    ) -> Result<Candidates, FitError> {
        self.candidates_after(&SessionMemory::default(), policy, budget, counter)
    }

    /// Returns the candidates of a session that remembers what was counted.
    pub(crate) fn candidates_after(
        &self,
        memory: &SessionMemory,
        policy: &Policy,
        budget: Option<&ContextBudget>,
        counter: &dyn TokenCounter,
    ) -> Result<Candidates, FitError> {
        let settings = policy.chat();
        let items = self.counted_candidates(counter, memory);
        let mut candidates = Candidates {
            replacements: vec![Replacements::default(); self.len()],
            ladder: ladder_of(policy).map_err(FitError::Policy)?,
            tokens_before: total_tokens(&items),
            markers: Markers::Off,
            is_strict: settings.strict,
            head: None,
            sets_breakpoints: settings.cache_breakpoints
                && self.shape.format().breakpoints.is_some(),
            kept_because: Vec::new(),
            superseded_by: BTreeMap::new(),
            cuts: None,
            dropped: Vec::new(),
            originals: items[..self.len()].to_vec(),
            items,
        };
        let keep_task = settings.keep_task || self.shape.format().alternates();
        let pins = self.pinned_by(&settings.pin)?;
        let landmarks = Landmarks::new(self, keep_task);
        let marks = match &candidates.ladder {
            Some(_) if self.shape.is_chat() => landmarks.all(),
            _ => vec![None; self.len()],
        };
        let treatments = self.treatments(settings);
        let mut bases =
            self.limited_results(settings, &marks, &treatments, &candidates, counter)?;
        let repeated = self.repeated_results(&treatments);
        if let Some(ladder) = candidates.ladder.take() {
            candidates.markers = Markers::of(settings);
            let tokens = self.marker_tokens(&candidates.markers, gaps_of(policy), &pins, counter);
            candidates.ladder = Some(ladder.with_marker_tokens(tokens));
            let budget = budget.filter(|_| settings.replay && self.shape.is_chat());
            if let Some(budget) = budget.filter(|it| candidates.tokens() > it.window_limit()) {
                let history = History {
                    chat: self,
                    candidates: &candidates,
                    landmarks: &landmarks,
                    settings,
                    pins: &pins,
                    repeated: &repeated,
                    treatments: &treatments,
                    forms: bases,
                };
                let state = history.replay(budget, counter)?;
                bases = state.bases;
                candidates.dropped = state.dropped;
                candidates.head = Some(state.cuts.head());
                candidates.cuts = Some(state.cuts);
                // The cuts left room for exactly these markers. If the messages do not fit, the ladder drops more of
                // them, and has to reserve room itself.
                if let (Some(tokens), Some(ladder)) = (state.marker_tokens, &mut candidates.ladder)
                {
                    *ladder = ladder.clone().with_marker_tokens(tokens);
                }
                // The chat was cut, so messages that the provider rejects are dropped even if the rest fits.
                candidates.is_strict |= state.is_cut;
            }
        }
        for (index, base) in bases.into_iter().enumerate() {
            if let Some(base) = base {
                candidates.replace(index, base);
            }
        }
        if candidates.ladder.is_some() {
            candidates.mark(self, &marks, &treatments, &landmarks)?;
        }
        candidates.kept_because = self.kept_because(&marks, &candidates, &settings.pin)?;
        let mut newest: HashMap<&str, usize> = HashMap::new();
        for (index, call) in repeated.iter().rev() {
            let newest = *newest.entry(call).or_insert(*index);
            if newest != *index {
                candidates.superseded_by.insert(*index, newest);
            }
        }
        for (index, call) in &repeated {
            candidates.edit(*index, |item| {
                item.mark(|marks| marks.call = Some(call.clone()))
            })?;
        }
        for index in pins {
            candidates.edit(index, |item| item.pinned(true))?;
        }
        if policy.needs_query()
            && let Some(question) = self.last_user_turn()
        {
            candidates.edit(question, |item| item.mark(|marks| marks.is_query = true))?;
        }
        candidates.offer_views(self, &marks, &repeated, budget, counter)?;
        // A window without a marker is better than none.
        if let Some(budget) = budget.filter(|_| settings.replay)
            && self.too_large(&candidates, budget, true).is_some()
        {
            let ladder = candidates.ladder.take();
            candidates.ladder = ladder.map(|ladder| ladder.with_marker_tokens(0));
            candidates.markers = Markers::Off;
        }
        Ok(candidates)
    }

    /// Returns the forms of the tool results that exceed the limit for them.
    fn limited_results(
        &self,
        settings: &ChatSettings,
        marks: &[Option<Mark>],
        treatments: &Treatments,
        candidates: &Candidates,
        counter: &dyn TokenCounter,
    ) -> Result<Vec<Option<Base>>, FitError> {
        let mut bases = vec![None; self.len()];
        let Some(limit) = settings.max_result else {
            return Ok(bases);
        };
        for (index, mark) in marks.iter().enumerate() {
            // What is said of one tool comes before what is said of all.
            if !self.has_result(index) || treatments.of(index) == Some(ToolResults::Keep) {
                continue;
            }
            let original = &candidates.originals[index];
            let shortener = self.shortener(index, original.tokens(), is_task(*mark), counter);
            if let Some((text, replacement)) = shortener.shorten(limit, counter) {
                bases[index] = Some(Base::new(original, &text, replacement.into())?);
            }
        }
        Ok(bases)
    }

    /// Returns why each message is never dropped: its mark, its content or a pin.
    fn kept_because(
        &self,
        marks: &[Option<Mark>],
        items: &[ContextItem],
        pins: &[String],
    ) -> Result<Vec<Option<String>>, FitError> {
        let turn = self.last_user_turn().map(|last| self.groups.group(last));
        let content = |index: usize| {
            let message = &self.messages[index];
            match message.required {
                _ if !self.shape.is_chat() => "pinned in the input",
                _ if message.role() == Role::System => "system message",
                Some(Required::Compaction) => "compaction",
                Some(Required::Setting) => "setting",
                None if turn == Some(self.groups.group(index)) => LAST_USER_TURN,
                None if self.thinking_turn().contains(&index) => THINKING,
                None if self.opens(index) => "start of the chat",
                None => BOUND,
            }
        };
        let mut reasons: Vec<Option<String>> = (0..self.len())
            .map(|index| {
                let mark = marks[index].map(|(_, reason)| reason);
                let mark = mark.or_else(|| items[index].pinned().then(|| content(index)));
                mark.map(str::to_owned)
            })
            .collect();
        for pin in pins {
            for index in self.pinned_by(std::slice::from_ref(pin))? {
                reasons[index].get_or_insert_with(|| format!("pin {pin}"));
            }
        }
        Ok(reasons)
    }

    /// Returns whether a message or one of its group has a tool result.
    pub(crate) fn has_results(&self, index: usize) -> bool {
        let mut group = self.groups.with(index).iter();
        group.any(|&member| !self.messages[member].results.is_empty())
    }

    /// Returns the task: the first user turn that a window can start on, after the last compaction.
    pub(crate) fn task(&self) -> Option<usize> {
        let is_task = |&index: &usize| self.messages[index].is_user_turn() && self.can_start(index);
        (self.compaction().unwrap_or(0)..self.len()).find(is_task)
    }

    /// Returns the last message that stands for everything before it.
    pub(crate) fn compaction(&self) -> Option<usize> {
        self.messages.iter().rposition(ParsedMessage::is_compaction)
    }
}

/// The lowest level of the answer that the last user turn replies to. A turn such as
/// `the second one` is meaningless without the list that it refers to, so a few lines of the answer
/// stay.
const LEAST_ANSWER: i64 = 60;

impl Candidates {
    /// Returns the tokens of the messages that no cut dropped, and of the request overhead.
    pub(crate) fn tokens(&self) -> i64 {
        let is_kept = |(index, _): &(usize, &ContextItem)| !self.is_cut(*index);
        let kept = self.items.iter().enumerate().filter(is_kept);
        total_tokens(kept.map(|(_, item)| item))
    }

    /// Returns whether a cut of a replay dropped a message.
    pub(crate) fn is_cut(&self, index: usize) -> bool {
        self.dropped.get(index) == Some(&true)
    }

    /// Returns the tokens of a message, shortened as far as its ladder shortens it before it is dropped.
    pub(crate) fn least_tokens(&self, index: usize) -> i64 {
        let item = &self.items[index];
        let view = item.views().last();
        view.map_or(item.tokens(), ContextView::tokens)
    }

    /// Returns the tokens of the messages that a cut of a replay dropped.
    pub(crate) fn gap_tokens(&self) -> i64 {
        let dropped = (0..self.dropped.len()).filter(|&it| self.dropped[it]);
        dropped.map(|index| self.least_tokens(index)).sum()
    }

    /// Replaces the views of a message.
    pub(crate) fn set_views(
        &mut self,
        index: usize,
        views: Vec<(ContextView, Arc<Replacement>)>,
    ) -> Result<(), FitError> {
        let (views, replacements) = views.into_iter().unzip();
        self.replacements[index].views = replacements;
        self.edit(index, |item| item.views(views))
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

    /// Marks the mandatory messages. They are marked instead of pinned, because a ladder does not shorten a pinned
    /// item.
    fn mark(
        &mut self,
        chat: &Chat,
        marks: &[Option<Mark>],
        treatments: &Treatments,
        landmarks: &Landmarks<'_>,
    ) -> Result<(), FitError> {
        if !chat.shape.is_chat() {
            return Ok(());
        }
        let turns = landmarks.turns(chat.len());
        let turns = turns.unwrap_or_else(|| vec![None; chat.len()]);
        let always = chat.always_kept();
        for (index, (mark, turn)) in marks.iter().zip(turns).enumerate() {
            let is_pinned = always.contains(&index);
            let treatment = treatments.of(index);
            let is_plain = mark.is_none() && turn.is_none() && treatment.is_none();
            if is_plain && self.items[index].pinned() == is_pinned {
                continue;
            }
            let retention = match (mark, treatment) {
                (None, Some(ToolResults::Keep)) => Retention::Late,
                (None, _) => Retention::Droppable,
                // It is not dropped, and what is kept is not shortened either.
                (Some((Retention::Kept, _)), Some(ToolResults::Keep)) => Retention::Mandatory,
                (Some((retention, _)), _) => *retention,
            };
            self.edit(index, |item| {
                item.pinned(is_pinned).mark(|marks| {
                    marks.retention = retention;
                    marks.shorten_first = treatment == Some(ToolResults::ShortenFirst);
                    // Takes precedence over the group of a call and its results.
                    marks.group = turn.map(|turn| format!("turn {turn}"));
                })
            })?;
        }
        Ok(())
    }

    /// Puts a shortened message in the place of the one that was read.
    fn replace(&mut self, index: usize, base: Base) {
        self.items[index] = base.item.clone();
        self.replacements[index].base = Some(base);
    }

    /// Adds the views that the ladder may take; with a budget, only those of the steps that it needs.
    ///
    /// The levels are tried in the order of the ladder, until a state before the first drop fits. The
    /// window is the same with a budget as without, because the ladder finds the same states up to that
    /// one: this loop and the ladder agree on which messages a step caps, and on the form of each at each cap.
    fn offer_views(
        &mut self,
        chat: &Chat,
        marks: &[Option<Mark>],
        repeated: &[(usize, String)],
        budget: Option<&ContextBudget>,
        counter: &dyn TokenCounter,
    ) -> Result<(), FitError> {
        let Some(ladder) = self.ladder.clone().filter(|_| chat.shape.is_chat()) else {
            return Ok(());
        };
        let limits = budget.map(|budget| self.ladder_limits(&ladder, budget));
        let mut total = self.tokens();
        if limits.is_some_and(|(whole, _)| total <= whole) {
            return Ok(());
        }
        let last = chat.last_user_turn();
        let filter = chat.ladder_filter(self);
        // The messages that the ladder chooses from. It is not given pinned and invalid ones.
        let is_open: Vec<bool> = (0..chat.len())
            .map(|index| !self.items[index].pinned() && filter(index).is_none())
            .collect();
        drop(filter);
        let is_superseded = self.superseded(repeated, &is_open);
        let is_kept = self.never_dropped();
        let mut offers: Vec<Option<ViewOffer<'_>>> = (0..chat.len())
            .map(|index| {
                let item = &self.items[index];
                let full = self.originals[index].tokens();
                let base = self.replacements[index].base.as_ref();
                let is_answer = last == Some(index + 1) && !chat.has_result(index);
                is_open[index].then(|| ViewOffer {
                    shortener: chat.shortener(index, full, is_task(marks[index]), counter),
                    is_spared: matches!(item.retention(), Retention::Late | Retention::Mandatory),
                    is_first: item.shorten_first(),
                    is_kept: is_kept[index],
                    tokens: item.tokens(),
                    level: base.map_or(item.tokens(), |base| base.replacement.level),
                    least: if is_answer { LEAST_ANSWER } else { 0 },
                    own_level: None,
                    views: Vec::new(),
                })
            })
            .collect();
        'steps: for step in ladder.steps() {
            let (kind, mandatory, levels) = match step {
                LadderStep::Shorten {
                    kind,
                    mandatory,
                    levels,
                } => (Some(kind), *mandatory, levels),
                LadderStep::Supersede { levels } => (None, false, levels),
                _ => continue,
            };
            // As the ladder does: what is marked to be shortened first goes through all levels before the rest.
            let has_first = kind.is_some() && !mandatory;
            let passes: &[bool] = if has_first { &[true, false] } else { &[false] };
            let passes = passes
                .iter()
                .flat_map(|first| levels.iter().map(move |it| (*first, *it)));
            for (first, level) in passes {
                for (index, offer) in offers.iter_mut().enumerate() {
                    let offer = offer.as_mut().filter(|it| it.is_meant(mandatory));
                    let Some(offer) = offer.filter(|it| (has_first && it.is_first) == first) else {
                        continue;
                    };
                    let is_listed = match kind {
                        Some(kind) => self.items[index].kind() == kind,
                        None => is_superseded[index],
                    };
                    if !is_listed || !(offer.least..offer.level).contains(&level) {
                        continue;
                    }
                    let tokens = offer.tokens;
                    if let Some(replacement) = offer.shorten(level, counter) {
                        total -= tokens - replacement.tokens;
                        self.replacements[index].views.push(replacement.into());
                    }
                }
                if !mandatory && limits.is_some_and(|(_, enough)| total <= enough) {
                    break 'steps;
                }
            }
        }
        for (index, offer) in offers.into_iter().enumerate() {
            let Some(offer) = offer.filter(|offer| !offer.views.is_empty()) else {
                continue;
            };
            self.edit(index, |item| {
                let item = match offer.own_level {
                    Some(level) => item.mark(|marks| marks.level = Some(level)),
                    None => item,
                };
                offer.views.into_iter().fold(item, ContextItemBuilder::view)
            })?;
        }
        Ok(())
    }

    /// Returns by position whether a newer result of the same call supersedes a message, as the ladder sees
    /// it: among the messages that it chooses from, by timestamp, then by position. The timestamps of a
    /// transcript may not ascend.
    fn superseded(&self, repeated: &[(usize, String)], is_open: &[bool]) -> Vec<bool> {
        let recency = |index: usize| (self.items[index].timestamp(), index);
        let open = || repeated.iter().filter(|(index, _)| is_open[*index]);
        let mut newest: HashMap<&str, usize> = HashMap::new();
        for (index, call) in open() {
            let newest = newest.entry(call).or_insert(*index);
            if recency(*index) > recency(*newest) {
                *newest = *index;
            }
        }
        let mut is_superseded = vec![false; is_open.len()];
        for (index, call) in open() {
            is_superseded[*index] = newest[call.as_str()] != *index;
        }
        is_superseded
    }

    /// Returns by position whether a message is never dropped: it is pinned or marked, or in a group with a
    /// marked one.
    pub(crate) fn never_dropped(&self) -> Vec<bool> {
        let messages = &self.items[..self.originals.len()];
        let is_marked = |item: &ContextItem| item.retention() >= Retention::Kept;
        let marked = messages.iter().filter(|item| is_marked(item));
        let marked: BTreeSet<&str> = marked.filter_map(ContextItem::group).collect();
        let is_kept = |item: &ContextItem| {
            let in_group = || item.group().is_some_and(|group| marked.contains(group));
            item.pinned() || is_marked(item) || in_group()
        };
        messages.iter().map(is_kept).collect()
    }

    /// Returns two limits on the tokens of the whole request: up to the first, the ladder keeps all messages as
    /// they are; at the second or below, a state certainly fits, so no further views are needed.
    fn ladder_limits(&self, ladder: &LadderSlice, budget: &ContextBudget) -> (i64, i64) {
        let pinned = total_tokens(self.items.iter().filter(|item| item.pinned()));
        let target = budget.effective(pinned).target_tokens();
        let marker = ladder.marker_tokens();
        // The gap of a cut has a marker in any case.
        let gap = if self.gap_tokens() > marker {
            marker
        } else {
            0
        };
        let whole = target.saturating_sub(gap).max(0);
        // The second limit assumes a marker.
        let enough = target.saturating_sub(marker).max(0);
        (whole.saturating_add(pinned), enough.saturating_add(pinned))
    }
}

/// A message that the ladder may shorten, with the views that were made so far.
struct ViewOffer<'c> {
    shortener: MessageShortener<'c>,
    /// Whether steps for mandatory messages shorten it only.
    is_spared: bool,
    is_first: bool,
    is_kept: bool,
    /// The tokens of the last view, or of the message without views.
    tokens: i64,
    /// The lowest level that was tried. Levels from there on are not tried again.
    level: i64,
    /// The lowest level that may be tried.
    least: i64,
    /// The lowest level at which the message cannot be shortened, if it has no view above that level.
    own_level: Option<i64>,
    views: Vec<ContextView>,
}

impl ViewOffer<'_> {
    /// Returns whether a step for mandatory messages, or for others, shortens the message.
    fn is_meant(&self, mandatory: bool) -> bool {
        if mandatory {
            self.is_kept
        } else {
            !self.is_spared
        }
    }

    /// Adds a view for a level that was not tried yet, if there is a shorter one. Returns its texts.
    ///
    /// If there is none, the last view has the level from now on. Example: a message of 105 tokens has a text
    /// of 99, so the level of 100 leaves it as it is, and the level of 60 shortens it. Without the new level
    /// a ladder that caps it at 100 would take the view of 60, the only one that is not above the cap.
    fn shorten(&mut self, level: i64, counter: &dyn TokenCounter) -> Option<Replacement> {
        self.level = level;
        let shorter = self.shortener.shorten(level, counter);
        let shorter = shorter.filter(|(_, replacement)| replacement.tokens < self.tokens);
        let Some((text, replacement)) = shorter else {
            match self.views.pop() {
                Some(view) => self.views.push(view.with_level(level)),
                None => self.own_level = Some(level),
            }
            return None;
        };
        self.tokens = replacement.tokens;
        let view = ContextView::new(text, replacement.tokens);
        self.views.push(view.with_level(level));
        Some(replacement)
    }
}
