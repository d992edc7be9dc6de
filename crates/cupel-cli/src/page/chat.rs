//! The messages of a chat as the page shows them.

use std::collections::HashMap;

use cupel::{BudgetSweep, ContextItem, ContextKind, Decisions, LadderSlice, LadderStep, Policy};
use cupel_app::for_each_window;
use cupel_chat::{Candidates, Chat, ChatSweep, Marker, Role, TokenCounter};
use serde::Serialize;

use super::lines::{Lines, lines_of};
use super::number::Int;

/// The chat that the candidates of a page are the messages of.
pub(crate) struct ChatPart<'a> {
    pub(super) chat: &'a Chat,
    candidates: &'a Candidates,
    counter: &'a dyn TokenCounter,
    /// The message and the number of each tool call, by its id; of several with one id, the last.
    calls: HashMap<&'a str, (usize, usize)>,
    /// The number of members of each group, at the position of its first message.
    group_sizes: Vec<usize>,
    /// The newest message with the results of the same calls, by each older one.
    superseded: HashMap<usize, usize>,
    /// The levels to which the policy's ladder shortens results that a newer one supersedes.
    supersede_levels: Vec<i64>,
}

/// What a page shows of a message or an item.
#[derive(Serialize)]
pub(super) struct MessageFields<'a> {
    /// The text without tool calls.
    text: String,
    /// The tool calls: name and arguments.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    calls: Vec<(&'a str, &'a str)>,
    /// The calls whose results it contains: message and number of the call.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    answers: Vec<(usize, usize)>,
    /// The first message of its group, if the group has several.
    #[serde(skip_serializing_if = "Option::is_none")]
    group: Option<usize>,
    /// Why it is never dropped.
    #[serde(skip_serializing_if = "Option::is_none")]
    pinned: Option<String>,
    /// The last line of the item's text that `text` does not have: the name of the tool.
    #[serde(skip)]
    name: Option<&'a str>,
}

/// The markers from a budget up to the next entry.
#[derive(Serialize)]
pub(super) struct MarkersFrom {
    from: Int,
    markers: Vec<Marker>,
}

impl MarkersFrom {
    /// Returns the markers of the windows of a replay.
    pub(super) fn of(replayed: &ChatSweep) -> Vec<Self> {
        let entries = replayed.markers.iter().map(|(from, markers)| Self {
            from: Int(*from),
            markers: markers.clone(),
        });
        entries.collect()
    }
}

impl<'a> ChatPart<'a> {
    pub(crate) fn new(
        chat: &'a Chat,
        candidates: &'a Candidates,
        counter: &'a dyn TokenCounter,
        policy: &Policy,
    ) -> Self {
        let messages = (0..chat.len()).map(|index| chat.message(index));
        let calls = messages.flat_map(|message| {
            let calls = message.calls().enumerate();
            calls.map(move |(number, call)| (call.id, (message.index(), number)))
        });
        let mut group_sizes = vec![0; chat.len()];
        for message in chat.messages() {
            group_sizes[message.group()] += 1;
        }
        Self {
            calls: calls.collect(),
            group_sizes,
            superseded: superseded(chat),
            supersede_levels: supersede_levels(policy),
            chat,
            candidates,
            counter,
        }
    }

    /// Returns the color of a message, which stands for its author, and its role as written.
    pub(super) fn role(&self, index: usize) -> (usize, String) {
        let message = self.chat.message(index);
        let label = message.label().to_owned();
        let is_result = *self.candidates[index].kind() == ContextKind::tool_output();
        match message.role() {
            Role::System => (0, label),
            Role::User if is_result => (3, format!("{label} (tool results)")),
            Role::User => (1, label),
            Role::Assistant => (2, label),
            Role::Tool => (3, label),
            _ => (4, label),
        }
    }

    pub(super) fn message(&self, index: usize, item: &ContextItem) -> MessageFields<'a> {
        let message = self.chat.message(index);
        let calls: Vec<(&str, &str)> = message
            .calls()
            .map(|call| (call.name, call.arguments))
            .collect();
        let answers = message.results().iter();
        let answers: Vec<(usize, usize)> = answers
            .filter_map(|id| self.calls.get(id.as_str()).copied())
            .collect();
        let text = without_calls(item.content(), &calls);
        let name = answers.first().and_then(|&(called, number)| {
            let call = self.chat.message(called).calls().nth(number)?;
            ends_with_line(&text, call.name).then_some(call.name)
        });
        MessageFields {
            text: without_last_line(&text, name).to_owned(),
            calls,
            answers,
            group: Some(message.group()).filter(|&group| self.group_sizes[group] > 1),
            pinned: self.candidates.kept_because(index).map(str::to_owned),
            name,
        }
    }

    /// Returns the other fields of a message.
    pub(super) fn facts(&self, index: usize, item: &ContextItem) -> Vec<(&'static str, String)> {
        let message = self.chat.message(index);
        let mut facts = vec![("position", message.path())];
        facts.extend(message.time().map(|time| ("time", time.to_rfc3339())));
        let original = item.original_tokens();
        facts.extend(original.map(|tokens| ("tokens before shortening", tokens.to_string())));
        facts
    }

    /// Returns which step of a ladder shortens a message to a level. A superseded result may be shortened further by
    /// the steps for all results.
    pub(super) fn step(&self, index: usize, level: i64) -> String {
        let is_result = *self.candidates[index].kind() == ContextKind::tool_output();
        let newer = self.superseded.get(&index);
        let newer = newer.filter(|_| self.supersede_levels.contains(&level));
        match (self.candidates.kept_because(index), newer) {
            (Some(kept), _) => format!("what is always kept ({kept})"),
            (None, Some(newer)) => format!("results of a repeated call (the newest is #{newer})"),
            (None, None) if is_result => "tool results".to_owned(),
            (None, None) => "texts".to_owned(),
        }
    }

    /// Returns the markers of the windows of a sweep and of the run at the given budget, where they
    /// change.
    pub(super) fn markers(
        &self,
        sweep: &BudgetSweep,
        target: i64,
        decisions: &Decisions<'_>,
    ) -> Vec<MarkersFrom> {
        let mut found: Vec<MarkersFrom> = Vec::new();
        let mut add = |from, markers: Vec<Marker>| {
            if found.last().map_or(&[][..], |last| &last.markers) != markers {
                let from = Int(from);
                found.push(MarkersFrom { from, markers });
            }
        };
        for_each_window(sweep, self.chat.len(), |step, kept| {
            let view = |index| sweep.view_at(index, step.from);
            add(step.from, self.markers_of(kept, view));
            if step.from < target && target <= step.to {
                let window = decisions.window().iter().copied();
                let mut kept: Vec<usize> =
                    window.filter(|&index| index < self.chat.len()).collect();
                kept.sort_unstable();
                let view = |index| decisions.view(index);
                add(target, self.markers_of(&kept, view));
            }
        });
        found
    }

    fn markers_of(&self, kept: &[usize], view: impl Fn(usize) -> Option<usize>) -> Vec<Marker> {
        self.chat
            .markers_for(self.candidates, kept, view, self.counter)
    }
}

fn supersede_levels(policy: &Policy) -> Vec<i64> {
    let steps = policy.slicer().ladder().map_or(&[][..], LadderSlice::steps);
    let levels = steps.iter().filter_map(|step| match step {
        LadderStep::Supersede { levels } => Some(&levels[..]),
        _ => None,
    });
    levels.flatten().copied().collect()
}

/// Returns the newest message with the results of the same calls, by each older one. Calls are the same if their
/// names and arguments are.
fn superseded(chat: &Chat) -> HashMap<usize, usize> {
    let mut called: HashMap<&str, (&str, &str)> = HashMap::new();
    let mut newest: HashMap<Vec<(&str, &str)>, usize> = HashMap::new();
    let mut results = Vec::new();
    for message in chat.messages() {
        for call in message.calls() {
            called.insert(call.id, (call.name, call.arguments));
        }
        let calls = message.results().iter();
        let calls: Option<Vec<_>> = calls.map(|id| called.get(id.as_str()).copied()).collect();
        let Some(calls) = calls.filter(|calls| !calls.is_empty()) else {
            continue;
        };
        let newest = newest.entry(calls.clone()).or_insert(message.index());
        if message.time() >= chat.message(*newest).time() {
            *newest = message.index();
        }
        results.push((message.index(), calls));
    }
    let newer = results
        .into_iter()
        .map(|(index, calls)| (index, newest[&calls]));
    newer.filter(|(index, newer)| index != newer).collect()
}

impl<'a> MessageFields<'a> {
    pub(super) fn of_item(item: &'a ContextItem) -> Self {
        Self {
            text: item.content().to_owned(),
            calls: Vec::new(),
            answers: Vec::new(),
            group: None,
            pinned: item.pinned().then(|| "pinned in the input".to_owned()),
            name: None,
        }
    }

    /// Returns a shorter form of the text.
    pub(super) fn lines_of_view(&self, text: &str) -> Vec<Lines> {
        lines_of(without_last_line(text, self.name), &self.text)
    }
}

/// Returns the text of a message without its tool calls, which it contains as `name(arguments)`.
fn without_calls(mut text: &str, calls: &[(&str, &str)]) -> String {
    let mut parts = Vec::new();
    for (name, arguments) in calls {
        let call = format!("{name}({arguments})");
        if let Some((before, after)) = text.split_once(&call) {
            parts.push(before.trim_end_matches('\n'));
            text = after.strip_prefix('\n').unwrap_or(after);
        }
    }
    parts.push(text);
    parts.retain(|part| !part.is_empty());
    parts.join("\n")
}

fn ends_with_line(text: &str, line: &str) -> bool {
    without_last_line(text, Some(line)).len() < text.len()
}

/// Returns a text without its last line, if it is the given one.
fn without_last_line<'t>(text: &'t str, line: Option<&str>) -> &'t str {
    let before = line.and_then(|line| text.strip_suffix(line));
    before
        .and_then(|before| before.strip_suffix('\n'))
        .unwrap_or(text)
}
