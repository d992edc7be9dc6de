//! Which messages belong together, and which belong nowhere.

use std::collections::HashMap;

use crate::shape::Shape;
use crate::turn::Turn;

/// The messages in groups that are valid only whole.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Threads {
    /// For every message the first message of its group.
    first: Vec<usize>,
    /// For every message that is the first of its group the whole group, ascending; else nothing.
    groups: Vec<Vec<usize>>,
    /// For every message why its group can never be valid, if so.
    orphans: Vec<Option<Orphan>>,
    /// The messages that answer calls the provider remembers.
    answers: Vec<usize>,
}

/// Why a message can never be part of a valid chat.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Orphan {
    Call,
    Result,
    Reasoning,
}

impl Orphan {
    pub(crate) fn describe(self) -> &'static str {
        match self {
            Self::Call => "orphan: a call without its result",
            Self::Result => "orphan: a result without its call",
            Self::Reasoning => "orphan: reasoning without what it leads to",
        }
    }
}

impl Threads {
    /// `continued` says that the provider remembers calls that are not here.
    pub(crate) fn new(shape: Shape, turns: &[Turn], continued: bool) -> Self {
        let mut threads = Self {
            first: (0..turns.len()).collect(),
            groups: vec![Vec::new(); turns.len()],
            orphans: vec![None; turns.len()],
            answers: Vec::new(),
        };
        // The calls so far, whether they are answered, and the latest of every id.
        let mut calls: Vec<(usize, bool)> = Vec::new();
        let mut latest: HashMap<&str, usize> = HashMap::new();
        for (index, turn) in turns.iter().enumerate() {
            for id in &turn.results {
                match latest.get(id.as_str()) {
                    Some(&call) => {
                        calls[call].1 = true;
                        threads.join(calls[call].0, index);
                    }
                    None if continued => threads.answers.push(index),
                    None => threads.orphans[index] = Some(Orphan::Result),
                }
            }
            if turn.role() == crate::Role::Tool && turn.results.is_empty() {
                threads.orphans[index] = Some(Orphan::Result);
            }
            for id in &turn.calls {
                latest.insert(id, calls.len());
                if let Some(id) = &turn.item_id {
                    latest.insert(id, calls.len());
                }
                calls.push((index, false));
            }
            let follower = turns.get(index + 1);
            let is_made = follower.is_some_and(Turn::is_made_by_model);
            if turn.leads && !is_made {
                threads.orphans[index] = Some(Orphan::Reasoning);
            }
            // Items a model made one after the other are one turn: a thought, its calls, its words.
            if shape == Shape::Responses && turn.is_made_by_model() && is_made {
                threads.join(index, index + 1);
            }
        }
        for (call, answered) in calls {
            if !answered {
                threads.orphans[call] = Some(Orphan::Call);
            }
        }
        threads.spread();
        threads
    }

    /// The first message of the group, with shorter paths on the way back.
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

    /// What holds for one message of a group holds for all.
    fn spread(&mut self) {
        for index in 0..self.first.len() {
            let first = self.find(index);
            self.groups[first].push(index);
            self.orphans[first] = self.orphans[first].or(self.orphans[index]);
        }
        for index in 0..self.first.len() {
            self.orphans[index] = self.orphans[self.first[index]];
        }
    }

    /// The first message of a message's group, which names the group.
    pub(crate) fn group(&self, index: usize) -> usize {
        self.first[index]
    }

    /// The messages of a group, ascending.
    pub(crate) fn members(&self, group: usize) -> &[usize] {
        &self.groups[group]
    }

    /// The messages that answer calls the provider remembers.
    pub(crate) fn answers(&self) -> &[usize] {
        &self.answers
    }

    pub(crate) fn orphan(&self, index: usize) -> Option<Orphan> {
        self.orphans[index]
    }
}
