//! Groups of messages that are valid only together, and orphans.

use std::collections::HashMap;

use crate::Role;
use crate::message::ParsedMessage;
use crate::shape::{Binding, Shape};

/// The messages in groups: a disjoint-set forest (Tarjan 1975) whose roots are the first members.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Groups {
    /// The first message of each message's group.
    first: Vec<usize>,
    /// The members of each group in ascending order, at the position of its first message.
    members: Vec<Vec<usize>>,
    /// The reason why a message is never valid.
    own_orphans: Vec<Option<Orphan>>,
    /// The reason why a message's group is never valid.
    orphans: Vec<Option<Orphan>>,
    /// The results of calls that the provider stores.
    results_of_stored_calls: Vec<usize>,
}

/// Why a message is never part of a valid chat.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Orphan {
    Call,
    Result,
    Reasoning,
}

impl Orphan {
    pub(crate) const ALL: [Self; 3] = [Self::Call, Self::Result, Self::Reasoning];

    pub(crate) fn describe(self) -> &'static str {
        match self {
            Self::Call => "orphan: tool call without a result",
            Self::Result => "orphan: tool result without a call",
            Self::Reasoning => "orphan: reasoning without a following item",
        }
    }
}

impl Groups {
    /// Finds the groups. `continued` says that the provider stores earlier calls.
    pub(crate) fn new(shape: Shape, messages: &[ParsedMessage], continued: bool) -> Self {
        let mut groups = Self {
            first: (0..messages.len()).collect(),
            members: vec![Vec::new(); messages.len()],
            own_orphans: vec![None; messages.len()],
            orphans: Vec::new(),
            results_of_stored_calls: Vec::new(),
        };
        // Each call's message and whether it has a result; the latest call with each id.
        let mut calls: Vec<(usize, bool)> = Vec::new();
        let mut latest: HashMap<&str, usize> = HashMap::new();
        let mut links: HashMap<&str, usize> = HashMap::new();
        let mut reference = None;
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
                        calls[call].1 = true;
                        groups.join(calls[call].0, index);
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
                groups.own_orphans[index] = Some(Orphan::Result);
            }
            reference = Some(index).filter(|_| message.is_reference()).or(reference);
            groups.join_neighbors(shape, messages, index);
        }
        for (call, has_result) in calls {
            if !has_result {
                groups.own_orphans[call] = Some(Orphan::Call);
            }
        }
        groups.collect_members();
        groups
    }

    /// Joins a result, whose call is not in the chat, with the last reference before it, which may stand
    /// for the call. Without one the result is an orphan, unless the provider stores the calls.
    fn join_stored(&mut self, reference: Option<usize>, index: usize, continued: bool) {
        match reference {
            Some(reference) => self.join(reference, index),
            None if continued => self.results_of_stored_calls.push(index),
            None => self.own_orphans[index] = Some(Orphan::Result),
        }
    }

    /// Joins a message with the ones next to it that it is not valid without.
    fn join_neighbors(&mut self, shape: Shape, messages: &[ParsedMessage], index: usize) {
        let message = &messages[index];
        let next = messages.get(index + 1);
        let next_is_from_model = next.is_some_and(ParsedMessage::is_from_model);
        if message.precedes_next && !next_is_from_model {
            self.own_orphans[index] = Some(Orphan::Reasoning);
        }
        // A system message among Anthropic messages stays after its turn and before the answer.
        let is_bound = shape == Shape::Anthropic && message.role() == Role::System;
        let precedes = match shape.format().binding {
            Binding::Nothing => false,
            Binding::ModelItems => next_is_from_model,
            Binding::UntilUserTurn => next.is_some_and(|next| !next.is_user_turn()),
            Binding::Next => next.is_some_and(|next| next.role() != Role::System),
        };
        if (precedes && message.is_from_model()) || (is_bound && next_is_from_model) {
            self.join(index, index + 1);
        }
        if is_bound && index > 0 {
            self.join(index - 1, index);
        }
    }

    /// Returns the root of a message's tree, and compresses the path to it.
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
        let (a, b) = (self.find(a), self.find(b));
        self.first[a.max(b)] = a.min(b);
    }

    /// Lists the members of each group. A group with an orphan is an orphan.
    fn collect_members(&mut self) {
        self.orphans.clone_from(&self.own_orphans);
        for index in 0..self.first.len() {
            let first = self.find(index);
            self.members[first].push(index);
            self.orphans[first] = self.orphans[first].or(self.orphans[index]);
        }
        for index in 0..self.first.len() {
            self.orphans[index] = self.orphans[self.first[index]];
        }
    }

    /// Returns the first message of a message's group, which identifies the group.
    pub(crate) fn group(&self, index: usize) -> usize {
        self.first[index]
    }

    /// Returns the messages of a group in ascending order.
    pub(crate) fn members(&self, group: usize) -> &[usize] {
        &self.members[group]
    }

    /// Returns the messages of the same group.
    pub(crate) fn with(&self, index: usize) -> &[usize] {
        &self.members[self.first[index]]
    }

    /// Returns the results of calls that the provider stores.
    pub(crate) fn results_of_stored_calls(&self) -> &[usize] {
        &self.results_of_stored_calls
    }

    /// Returns why the message itself is an orphan.
    pub(crate) fn own_orphan(&self, index: usize) -> Option<Orphan> {
        self.own_orphans[index]
    }

    /// Returns why the message or one of its group is an orphan.
    pub(crate) fn orphan(&self, index: usize) -> Option<Orphan> {
        self.orphans[index]
    }
}
