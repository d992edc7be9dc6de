//! Groups of messages that are valid only together, and orphans.

use std::collections::HashMap;

use crate::Role;
use crate::message::ParsedMessage;
use crate::shape::Shape;

/// The messages in groups: a disjoint-set forest (Tarjan 1975) whose roots are the first members.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Groups {
    /// The first message of each message's group.
    first: Vec<usize>,
    /// The members of each group in ascending order, at the position of its first message.
    members: Vec<Vec<usize>>,
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
            orphans: vec![None; messages.len()],
            results_of_stored_calls: Vec::new(),
        };
        // Each call's message and whether it has a result; the latest call with each id.
        let mut calls: Vec<(usize, bool)> = Vec::new();
        let mut latest: HashMap<&str, usize> = HashMap::new();
        for (index, message) in messages.iter().enumerate() {
            for id in &message.results {
                match latest.get(id.as_str()) {
                    Some(&call) => {
                        calls[call].1 = true;
                        groups.join(calls[call].0, index);
                    }
                    None if continued => groups.results_of_stored_calls.push(index),
                    None => groups.orphans[index] = Some(Orphan::Result),
                }
            }
            if message.role() == Role::Tool && message.results.is_empty() {
                groups.orphans[index] = Some(Orphan::Result);
            }
            for id in &message.calls {
                latest.insert(id, calls.len());
                if let Some(id) = &message.item_id {
                    latest.insert(id, calls.len());
                }
                calls.push((index, false));
            }
            let next_is_from_model = messages
                .get(index + 1)
                .is_some_and(ParsedMessage::is_from_model);
            if message.precedes_next && !next_is_from_model {
                groups.orphans[index] = Some(Orphan::Reasoning);
            }
            let is_grouped = shape.format().groups_model_items && message.is_from_model();
            if is_grouped && next_is_from_model {
                groups.join(index, index + 1);
            }
        }
        for (call, has_result) in calls {
            if !has_result {
                groups.orphans[call] = Some(Orphan::Call);
            }
        }
        groups.collect_members();
        groups
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

    /// Returns the results of calls that the provider stores.
    pub(crate) fn results_of_stored_calls(&self) -> &[usize] {
        &self.results_of_stored_calls
    }

    pub(crate) fn orphan(&self, index: usize) -> Option<Orphan> {
        self.orphans[index]
    }
}
