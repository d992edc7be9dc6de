//! Groups of messages that are valid only together, and messages that no provider accepts.
//!
//! Groups are the connected components of a graph with an edge for each rule of the provider: from
//! a call to its result, from reasoning to the item after it, between neighbors that a format
//! binds. They are found by union-find in one pass over the messages.
//!
//! ```text
//! 0 user        "compare a and b"
//! 1 assistant   calls x and y         1 - 3, 1 - 5: calls and results
//! 2 user        "and c"               group of its own
//! 3 tool        result of x
//! 4 assistant   calls z               no result: a defect, dropped before anything else
//! 5 tool        result of y           groups: {0} {1, 3, 5} {2} {4}
//! ```
//!
//! A group with a defect is invalid as a whole: its other members need the invalid one.
//!
//! A call at the end of the chat is pending: its result is still to come, such as after an approval. It is no
//! defect of its group, so a window can contain it.

use std::collections::{HashMap, HashSet};

use crate::Role;
use crate::message::ParsedMessage;
use crate::shape::{Binding, ResultPlace, Shape};

/// The messages in groups: a disjoint-set forest (Tarjan 1975) whose roots are the first members.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Groups {
    /// The first message of each message's group. While groups are found it is the parent in the
    /// forest; a parent is never after its child, so the root of a tree is its first member.
    first: Vec<usize>,
    /// The members of each group in ascending order, at the position of its first message.
    members: Vec<Vec<usize>>,
    /// The last message of the groups that begin at each message or before it.
    reach: Vec<usize>,
    /// The reason why a message is never valid.
    own_defects: Vec<Option<Defect>>,
    /// The reason why a message's group is never valid.
    defects: Vec<Option<Defect>>,
    /// The messages with pending calls, in ascending order.
    pending: Vec<usize>,
    /// The results of calls that the provider stores.
    results_of_stored_calls: Vec<usize>,
}

/// Why a message is never part of a valid chat.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Defect {
    CallWithoutResult,
    ResultWithoutCall,
    ReasoningWithoutItem,
    ResultOutOfPlace,
    DuplicateResult,
    RepeatedRole,
}

impl Defect {
    pub(crate) const ALL: [Self; 6] = [
        Self::CallWithoutResult,
        Self::ResultWithoutCall,
        Self::ReasoningWithoutItem,
        Self::ResultOutOfPlace,
        Self::DuplicateResult,
        Self::RepeatedRole,
    ];

    pub(crate) fn describe(self) -> &'static str {
        match self {
            Self::CallWithoutResult => "tool call without a result",
            Self::ResultWithoutCall => "tool result without a call",
            Self::ReasoningWithoutItem => "reasoning without a following item",
            Self::ResultOutOfPlace => "tool result not right after its call",
            Self::DuplicateResult => "second result of one tool call",
            Self::RepeatedRole => "same role as the message before",
        }
    }

    /// Returns how to fix it.
    pub(crate) fn fix(self) -> &'static str {
        match self {
            Self::CallWithoutResult => "add the result",
            Self::ResultWithoutCall => "add the call",
            Self::ReasoningWithoutItem => "add the item",
            Self::ResultOutOfPlace => "move the result to its call",
            Self::DuplicateResult => "remove one of the results",
            Self::RepeatedRole => "merge the two messages",
        }
    }
}

impl Groups {
    /// Finds the groups. `continued` says that the provider stores earlier calls.
    pub(crate) fn new(shape: Shape, messages: &[ParsedMessage], continued: bool) -> Self {
        let mut groups = Self {
            first: (0..messages.len()).collect(),
            members: vec![Vec::new(); messages.len()],
            reach: Vec::new(),
            own_defects: vec![None; messages.len()],
            defects: Vec::new(),
            pending: Vec::new(),
            results_of_stored_calls: Vec::new(),
        };
        // Each call's message and whether it has a result; the latest call with each id. Ids may be
        // used again: some programs count calls from 1 in every turn, and a result belongs to the
        // latest call with its id.
        let mut calls: Vec<(usize, bool)> = Vec::new();
        let mut latest: HashMap<&str, usize> = HashMap::new();
        let mut links: HashMap<&str, usize> = HashMap::new();
        let mut reference = None;
        // The last message that separates a call from results after it: a format may require
        // results right after the call, or before the next user turn.
        let mut separator = None;
        let format = shape.format();
        for (index, message) in messages.iter().enumerate() {
            // A message may contain the results of its own calls.
            for id in &message.calls {
                latest.insert(id, calls.len());
                if let Some(id) = &message.item_id {
                    latest.insert(id, calls.len());
                }
                calls.push((index, false));
            }
            for id in &message.results {
                match latest.get(id.as_str()) {
                    Some(&call) => {
                        let (called, has_result) = &mut calls[call];
                        // A transcript is not a request: its program sends one of the results.
                        if *has_result && format.transcript.is_none() {
                            groups.own_defects[index] = Some(Defect::DuplicateResult);
                        } else if separator > Some(*called) {
                            groups.own_defects[index] = Some(Defect::ResultOutOfPlace);
                        }
                        *has_result = true;
                        groups.join(*called, index);
                    }
                    None => groups.join_stored(reference, index, continued),
                }
            }
            for link in &message.links {
                match links.insert(&link.id, index) {
                    Some(other) => groups.join(other, index),
                    None if link.is_result => groups.join_stored(reference, index, continued),
                    None => {}
                }
            }
            let is_linked = !message.results.is_empty() || !message.links.is_empty();
            if message.role() == Role::Tool && !is_linked {
                groups.own_defects[index] = Some(Defect::ResultWithoutCall);
            }
            let separates = message.results.is_empty()
                && match format.result_place {
                    ResultPlace::Anywhere => false,
                    ResultPlace::BeforeUserTurn => message.is_user_turn(),
                    ResultPlace::AfterCall => true,
                };
            separator = Some(index).filter(|_| separates).or(separator);
            reference = Some(index).filter(|_| message.is_reference()).or(reference);
            groups.join_neighbors(shape, messages, index);
        }
        let open = start_of_open_step(messages);
        let newest: HashSet<usize> = latest.into_values().collect();
        let mut given_up = HashSet::new();
        for (number, (call, has_result)) in calls.into_iter().enumerate() {
            if has_result {
                continue;
            }
            groups.own_defects[call] = Some(Defect::CallWithoutResult);
            groups.pending.push(call);
            // A later call with its id would get the result.
            if call < open || separator > Some(call) || !newest.contains(&number) {
                given_up.insert(call);
            }
        }
        groups.pending.retain(|call| !given_up.contains(call));
        groups.pending.dedup();
        if format.rejects_repeated_roles {
            groups.find_repeated_roles(messages);
        }
        groups.collect_members();
        groups
    }

    /// Finds the messages of the same author as the one before, system messages aside.
    fn find_repeated_roles(&mut self, messages: &[ParsedMessage]) {
        let mut before = None;
        for (index, message) in messages.iter().enumerate() {
            if message.role() == Role::System {
                continue;
            }
            let is_from_model = message.is_from_model();
            if before.replace(is_from_model) == Some(is_from_model) {
                self.own_defects[index].get_or_insert(Defect::RepeatedRole);
            }
        }
    }

    /// Joins a result, whose call is not in the chat, with the last reference before it, which may stand
    /// for the call. Without one the result is invalid, unless the provider stores the calls.
    fn join_stored(&mut self, reference: Option<usize>, index: usize, continued: bool) {
        match reference {
            Some(reference) => self.join(reference, index),
            None if continued => self.results_of_stored_calls.push(index),
            None => self.own_defects[index] = Some(Defect::ResultWithoutCall),
        }
    }

    /// Groups a message with the neighbors that the provider requires beside it.
    fn join_neighbors(&mut self, shape: Shape, messages: &[ParsedMessage], index: usize) {
        let message = &messages[index];
        let next = messages.get(index + 1);
        let next_is_from_model = next.is_some_and(ParsedMessage::is_from_model);
        if message.precedes_next && !next_is_from_model {
            self.own_defects[index] = Some(Defect::ReasoningWithoutItem);
        }
        let is_bound = shape.format().binds_system && message.role() == Role::System;
        let precedes = match shape.format().binding {
            Binding::Nothing => false,
            Binding::ModelItems => next_is_from_model,
            Binding::UntilUserTurn => next.is_some_and(|next| !next.is_user_turn()),
            Binding::Next => next.is_some_and(|next| next.role() != Role::System),
        };
        // A compaction stands for all before it; a window can start on it. Reasoning is invalid without its next
        // item.
        let is_cut = !message.precedes_next && next.is_some_and(ParsedMessage::is_compaction);
        if (precedes && !is_cut && message.is_from_model()) || (is_bound && next_is_from_model) {
            self.join(index, index + 1);
        }
        if is_bound && index > 0 {
            self.join(index - 1, index);
        }
    }

    /// Returns the root of a message's tree, and compresses the path to it, so that later searches
    /// take one step.
    fn find(&mut self, index: usize) -> usize {
        let mut root = index;
        while self.first[root] != root {
            root = self.first[root];
        }
        let mut at = index;
        while self.first[at] != root {
            at = std::mem::replace(&mut self.first[at], root);
        }
        root
    }

    fn join(&mut self, a: usize, b: usize) {
        // The smaller root stays, not the larger tree's: the root must be the first member. Path
        // compression alone keeps the cost per operation logarithmic.
        let (a, b) = (self.find(a), self.find(b));
        self.first[a.max(b)] = a.min(b);
    }

    /// Lists the members of each group. A group with an invalid message is invalid.
    fn collect_members(&mut self) {
        self.defects.clone_from(&self.own_defects);
        for &index in &self.pending {
            self.defects[index] = None;
        }
        for index in 0..self.first.len() {
            let first = self.find(index);
            self.members[first].push(index);
            self.defects[first] = self.defects[first].or(self.defects[index]);
        }
        for index in 0..self.first.len() {
            self.defects[index] = self.defects[self.first[index]];
        }
        let mut reach = 0;
        for (members, defect) in self.members.iter().zip(&self.defects) {
            // No window has an invalid group.
            let last = members.last().filter(|_| defect.is_none());
            reach = last.map_or(reach, |&last| reach.max(last));
            self.reach.push(reach);
        }
        let defects = &self.defects;
        self.pending.retain(|&index| defects[index].is_none());
    }

    /// Returns the first message of a message's group, which identifies the group.
    pub(crate) fn group(&self, index: usize) -> usize {
        self.first[index]
    }

    /// Returns the messages of a group in ascending order.
    pub(crate) fn members(&self, group: usize) -> &[usize] {
        &self.members[group]
    }

    /// Returns whether a group that begins at a message or before it goes on at a later one, as a call does whose
    /// result comes late.
    pub(crate) fn goes_on(&self, before: usize, index: usize) -> bool {
        self.reach[before] >= index
    }

    /// Returns the messages of the same group.
    pub(crate) fn with(&self, index: usize) -> &[usize] {
        &self.members[self.first[index]]
    }

    /// Returns the messages at the end of the chat with calls whose results are still to come.
    pub(crate) fn pending(&self) -> &[usize] {
        &self.pending
    }

    /// Returns the results of calls that the provider stores.
    pub(crate) fn results_of_stored_calls(&self) -> &[usize] {
        &self.results_of_stored_calls
    }

    /// Returns why the message itself is invalid.
    pub(crate) fn own_defect(&self, index: usize) -> Option<Defect> {
        self.own_defects[index]
    }

    /// Returns why the message or one of its group is invalid.
    pub(crate) fn defect(&self, index: usize) -> Option<Defect> {
        self.defects[index]
    }
}

/// Returns where the last step starts, if nothing follows it: the messages of the model at the end of the chat, up to
/// the results of their calls that are there already.
fn start_of_open_step(messages: &[ParsedMessage]) -> usize {
    let is_result = |message: &ParsedMessage| {
        !message.is_from_model() && !message.is_user_turn() && !message.results.is_empty()
    };
    let end = messages.iter().rposition(|it| !is_result(it));
    let end = end.map_or(0, |end| end + 1);
    let before = messages[..end].iter().rposition(|it| !it.is_from_model());
    before.map_or(0, |before| before + 1)
}
