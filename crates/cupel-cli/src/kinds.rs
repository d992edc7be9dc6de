//! Kinds that a budget or a policy names and no candidate has.

use std::collections::BTreeSet;

use cupel::config::nearest_name;
use cupel::{ContextBudget, ContextItem, ContextKind, Policy};

use crate::text::grouped;

/// The kinds of the specification. A policy for many inputs names them whether or not one has them.
const KNOWN: [&str; 5] = [
    ContextKind::MESSAGE,
    ContextKind::DOCUMENT,
    ContextKind::TOOL_OUTPUT,
    ContextKind::MEMORY,
    ContextKind::SYSTEM_PROMPT,
];

/// Returns a warning for each slot of the budget and each unknown kind of the policy's slicer that no
/// candidate has.
pub(crate) fn unused_kinds(
    items: &[ContextItem],
    budget: &ContextBudget,
    policy: &Policy,
    unit: &str,
) -> Vec<String> {
    let has = |kind: &ContextKind| items.iter().any(|item| item.kind() == kind);
    let present: BTreeSet<&str> = items.iter().map(|item| item.kind().as_str()).collect();
    let warning = |kind: &ContextKind, use_of_it: String| {
        let known = present.iter().copied().chain(KNOWN);
        let hint = nearest_name(kind.as_str(), known.collect::<BTreeSet<_>>());
        let hint = hint.map_or_else(String::new, |name| format!("; did you mean `{name}`?"));
        format!("no {unit} has the kind `{kind}`, {use_of_it}{hint}")
    };
    let mut slots: Vec<_> = budget.reserved_slots().iter().collect();
    slots.sort();
    let mut warnings = Vec::new();
    for (kind, tokens) in slots.into_iter().filter(|(kind, _)| !has(kind)) {
        let tokens = grouped(*tokens);
        warnings.push(warning(
            kind,
            format!("for which {tokens} tokens are reserved"),
        ));
    }
    let quotas: BTreeSet<ContextKind> = policy.slicer().kinds().into_iter().collect();
    for kind in quotas {
        let is_known = KNOWN
            .iter()
            .any(|known| known.eq_ignore_ascii_case(kind.as_str()));
        if !is_known && !has(&kind) {
            warnings.push(warning(&kind, "which has a quota".to_owned()));
        }
    }
    warnings
}
