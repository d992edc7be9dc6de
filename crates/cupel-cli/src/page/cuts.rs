//! The cuts of a replay, and what a prompt cache reads, as the page shows them.

use cupel_chat::{ChatSweep, Cuts};
use serde::Serialize;

use super::number::Int;

/// The cuts from a budget up to the next entry.
#[derive(Serialize)]
pub(super) struct CutsFrom {
    from: Int,
    /// `None` where the chat fits, or no window does.
    cuts: Option<CutsOfBudget>,
}

/// The cuts of the requests so far, at one budget.
#[derive(Serialize)]
struct CutsOfBudget {
    /// The tokens that a request may have, without what is never cut.
    budget: Int,
    requests: usize,
    /// How many requests follow without a cut.
    next_in: Int,
    /// The last message of the head, which stays the same at every cut; `None` if no message fits into the head.
    head: Option<usize>,
    /// Request, messages, tokens before and after each cut.
    made: Vec<(usize, usize, Int, Int)>,
    /// Some requests, with their tokens after a cut.
    tokens: Vec<(usize, Int)>,
}

/// The most requests that a chart shows. More would be closer than a line of it is wide.
const POINTS: usize = 120;

impl CutsFrom {
    pub(super) fn of(replayed: &ChatSweep) -> Vec<Self> {
        let entries = replayed.cuts.iter().map(|(from, cuts)| Self {
            from: Int(*from),
            cuts: cuts.as_ref().map(CutsOfBudget::new),
        });
        entries.collect()
    }
}

impl CutsOfBudget {
    fn new(cuts: &Cuts) -> Self {
        let made = cuts.made.iter();
        let made = made.map(|cut| {
            let (before, after) = (Int(cut.tokens_before), Int(cut.tokens_after));
            (cut.request, cut.messages, before, after)
        });
        let stride = cuts.requests.div_ceil(POINTS).max(1);
        let tokens = (1..).zip(cuts.tokens_by_request());
        let is_shown = |number: usize| {
            let is_cut = || cuts.made.iter().any(|cut| cut.request == number);
            (number - 1).is_multiple_of(stride) || number == cuts.requests || is_cut()
        };
        let tokens = tokens.filter(|(number, _)| is_shown(*number));
        Self {
            budget: Int(cuts.budget),
            requests: cuts.requests,
            next_in: Int(cuts.next_in),
            head: cuts.head().checked_sub(1),
            made: made.collect(),
            tokens: tokens
                .map(|(number, tokens)| (number, Int(*tokens)))
                .collect(),
        }
    }
}

/// The prefix that the window shares with the one of the previous request, from a budget up to the next entry.
#[derive(Serialize)]
pub(super) struct SharedFrom {
    from: Int,
    /// Its last message, and the tokens up to there; `None` if the windows differ from the start on.
    shared: Option<(usize, Int)>,
}

impl SharedFrom {
    pub(super) fn of(replayed: &ChatSweep, before: &ChatSweep) -> Vec<Self> {
        // Both windows change at steps of their own.
        let steps = replayed.sweep.steps.iter().chain(&before.sweep.steps);
        let mut budgets: Vec<i64> = steps.map(|step| step.from).collect();
        budgets.sort_unstable();
        budgets.dedup();
        let mut found: Vec<(i64, Option<(usize, i64)>)> = Vec::new();
        for from in budgets {
            let shared = replayed.shared_prefix(before, from);
            if found.last().is_none_or(|(_, last)| *last != shared) {
                found.push((from, shared));
            }
        }
        let found = found.into_iter().map(|(from, shared)| Self {
            from: Int(from),
            shared: shared.map(|(index, tokens)| (index, Int(tokens))),
        });
        found.collect()
    }
}
