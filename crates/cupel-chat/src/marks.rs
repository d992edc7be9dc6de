//! The messages that a ladder never drops, and why.
//!
//! They depend on where the chat ends. A replay asks for them at the end of every request that it cuts, so what is
//! known by length is found once, in [`Landmarks`]:
//!
//! ```text
//! length              1   2   3   4   5   6
//! message             user call result answer user call
//! last user turn      0   0   0   0   4   4
//! newest call         -   1   1   1   1   5
//! ```

use std::collections::{BTreeMap, BTreeSet};

use cupel::Retention;

use crate::chat::Chat;

/// How a message that a ladder never drops is retained, and why.
pub(crate) type Mark = (Retention, &'static str);

pub(crate) const TASK: &str = "task";
pub(crate) const LAST_USER_TURN: &str = "last user turn";
pub(crate) const NEWEST_STEP: &str = "newest step";
pub(crate) const THINKING: &str = "current turn with thinking";
pub(crate) const BOUND: &str = "part of a mandatory group";
const END: &str = "end of the chat";
const PENDING: &str = "pending call";

/// Returns whether a mark is that of the task.
pub(crate) fn is_task(mark: Option<Mark>) -> bool {
    mark.is_some_and(|(_, reason)| reason == TASK)
}

/// What the mandatory messages of a chat follow from, for any length of the chat.
pub(crate) struct Landmarks<'c> {
    chat: &'c Chat,
    keep_task: bool,
    /// The first user turn, and the last message that stands for everything before it.
    first_user: Option<usize>,
    compaction: Option<usize>,
    /// The messages that are mandatory by themselves. They are pinned, so a ladder does not choose them.
    always: BTreeSet<usize>,
    /// Whether a message is in a group with one of those.
    is_bound: Vec<bool>,
    /// The first message that a window can contain.
    start: usize,
    last_user: Newest,
    newest_call: Newest,
    newest_link: Newest,
}

/// By the length of a chat, the position of the newest message of some kind.
struct Newest(Vec<Option<usize>>);

impl Newest {
    fn new(len: usize, is_meant: impl Fn(usize) -> bool) -> Self {
        let mut newest = None;
        let after = (0..len).map(|index| {
            newest = Some(index).filter(|&index| is_meant(index)).or(newest);
            newest
        });
        Self(std::iter::once(None).chain(after).collect())
    }

    fn before(&self, len: usize) -> Option<usize> {
        self.0[len]
    }
}

impl<'c> Landmarks<'c> {
    pub(crate) fn new(chat: &'c Chat, keep_task: bool) -> Self {
        let start = chat.earliest_start();
        let is_valid = |index| is_valid(chat, start, index);
        let always = chat.always_kept();
        let mut is_bound = vec![false; chat.len()];
        for &index in &always {
            for &member in chat.groups.with(index) {
                is_bound[member] = true;
            }
        }
        let is_call = |index: usize| {
            let message = &chat.messages[index];
            // A reference may stand for the call of a result.
            !message.calls.is_empty() || (message.is_reference() && chat.has_results(index))
        };
        let has_link = |index: usize| !chat.messages[index].links.is_empty();
        Self {
            keep_task,
            first_user: chat.task(),
            compaction: chat.compaction(),
            start,
            last_user: Newest::new(chat.len(), |it| chat.messages[it].is_user_turn()),
            newest_call: Newest::new(chat.len(), |it| is_call(it) && is_valid(it)),
            newest_link: Newest::new(chat.len(), |it| has_link(it) && is_valid(it)),
            always,
            is_bound,
            chat,
        }
    }

    /// Returns the first user turn, which is the task.
    pub(crate) fn first_user(&self) -> Option<usize> {
        self.first_user
    }

    /// Returns the last user turn, if the chat ended after its first `len` messages.
    pub(crate) fn last_user(&self, len: usize) -> Option<usize> {
        self.last_user.before(len)
    }

    /// Returns whether a message is kept because it is in a group with one that is mandatory by itself.
    pub(crate) fn is_bound(&self, index: usize) -> bool {
        self.is_bound[index]
    }

    /// Returns, by position, the user turn whose turn a message is dropped with, if the chat ended after its first `len`
    /// messages; `None` if the message is not tied to a turn. Without any, there is no list.
    ///
    /// In some formats a window must start on a user turn. If the task is kept, it is that start, and only
    /// the turns before a compaction have to be dropped as a whole. Otherwise all turns before the last one do.
    pub(crate) fn turns(&self, len: usize) -> Option<Vec<Option<usize>>> {
        let chat = self.chat;
        if !chat.shape.starts_on_user() {
            return None;
        }
        let last = self.last_user(len);
        let end = if self.keep_task {
            self.compaction.min(last)
        } else {
            last
        };
        let end = chat.groups.group(end?);
        let mut start = None;
        let starts: Vec<Option<usize>> = (0..chat.len())
            .map(|index| {
                start = Some(index).filter(|&index| chat.can_start(index)).or(start);
                start.filter(|&start| start < end)
            })
            .collect();
        let turn = |index| {
            let group = chat.groups.group(index);
            starts[group].filter(|_| group <= end)
        };
        Some((0..chat.len()).map(turn).collect())
    }

    /// Returns the marks of the messages that the end of the chat makes mandatory, if it ended after its first `len`
    /// messages.
    pub(crate) fn marks(&self, len: usize) -> BTreeMap<usize, Mark> {
        let chat = self.chat;
        let last = self.last_user(len);
        // An approval, or a call that the provider executes, that no user turn follows.
        let open = self.newest_link.before(len).filter(|&it| Some(it) > last);
        let newest = self.newest_call.before(len).max(open);
        // The beginning of the requested answer (a prefill), or the last answer of a log.
        let end = len.checked_sub(1).filter(|&end| {
            let is_answer = Some(end) > last && chat.messages[end].is_from_model();
            is_answer && is_valid(chat, self.start, end)
        });
        // A step that a user turn follows was answered already, so it is shortened like older ones.
        let key = if newest > last {
            Retention::Mandatory
        } else {
            Retention::Kept
        };
        let task = self.first_user.filter(|&task| self.keep_task && task < len);
        let pending = chat.groups.pending().iter().filter(|&&it| it < len);
        let thinking = chat.thinking_turn_before(len);
        // Later ones replace earlier ones.
        let mut mandatory: Vec<(usize, Mark)> = thinking
            .map(|index| (index, (Retention::Kept, THINKING)))
            .collect();
        mandatory.extend(end.map(|index| (index, (Retention::Mandatory, END))));
        mandatory.extend(pending.map(|&index| (index, (Retention::Mandatory, PENDING))));
        mandatory.extend(newest.map(|index| (index, (key, NEWEST_STEP))));
        mandatory.extend(last.map(|index| (index, (Retention::Mandatory, LAST_USER_TURN))));
        mandatory.extend(task.map(|index| (index, (Retention::Mandatory, TASK))));
        let mut marks = BTreeMap::new();
        for (index, mark @ (_, reason)) in mandatory {
            for &member in chat.groups.with(index) {
                if self.always.contains(&member) {
                    continue;
                }
                if member == index || reason == NEWEST_STEP {
                    marks.insert(member, mark);
                } else {
                    // It is kept with its group, but shortened like messages that are not mandatory.
                    marks.entry(member).or_insert((Retention::Kept, reason));
                }
            }
        }
        marks
    }

    /// Returns the marks of all messages.
    pub(crate) fn all(&self) -> Vec<Option<Mark>> {
        let mut marks: Vec<Option<Mark>> = self
            .is_bound
            .iter()
            .map(|is_bound| is_bound.then_some((Retention::Kept, BOUND)))
            .collect();
        for (index, mark) in self.marks(self.chat.len()) {
            marks[index] = Some(mark);
        }
        for &index in &self.always {
            marks[index] = None;
        }
        marks
    }
}

fn is_valid(chat: &Chat, start: usize, index: usize) -> bool {
    chat.groups.defect(index).is_none() && chat.groups.group(index) >= start
}
