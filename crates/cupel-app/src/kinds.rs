//! Kinds that a budget or a policy names and no candidate has.

use std::collections::BTreeSet;

use cupel::config::nearest_name;
use cupel::{ContextBudget, ContextItem, ContextKind, Policy};

use crate::notice::Notice;

/// The kinds of the specification. A policy for many inputs names them whether or not one has them.
const KNOWN: [&str; 5] = [
    ContextKind::MESSAGE,
    ContextKind::DOCUMENT,
    ContextKind::TOOL_OUTPUT,
    ContextKind::MEMORY,
    ContextKind::SYSTEM_PROMPT,
];

/// Returns a notice for each slot of the budget and each unknown kind of the policy's slicer that no
/// candidate has. `unit` is what a candidate is: `message` or `item`.
pub(crate) fn unused_kinds(
    items: &[ContextItem],
    budget: &ContextBudget,
    policy: &Policy,
    unit: &'static str,
) -> Vec<Notice> {
    let has = |kind: &ContextKind| items.iter().any(|item| item.kind() == kind);
    let present: BTreeSet<&str> = items.iter().map(|item| item.kind().as_str()).collect();
    let notice = |kind: &ContextKind, reserved| {
        let known = present.iter().copied().chain(KNOWN);
        let near = nearest_name(kind.as_str(), known.collect::<BTreeSet<_>>());
        Notice::UnusedKind {
            unit,
            kind: kind.clone(),
            reserved,
            near: near.map(str::to_owned),
        }
    };
    let mut slots: Vec<_> = budget.reserved_slots().iter().collect();
    slots.sort();
    let slots = slots.into_iter().filter(|(kind, _)| !has(kind));
    let mut notices: Vec<Notice> = slots
        .map(|(kind, tokens)| notice(kind, Some(*tokens)))
        .collect();
    // Known kinds are left out: a preset has quotas for kinds that one input need not have.
    let quotas: BTreeSet<ContextKind> = policy.slicer().kinds().into_iter().collect();
    for kind in quotas {
        let is_known = KNOWN
            .iter()
            .any(|known| known.eq_ignore_ascii_case(kind.as_str()));
        if !is_known && !has(&kind) {
            notices.push(notice(&kind, None));
        }
    }
    notices
}
