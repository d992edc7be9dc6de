//! Why candidates are in or out, in a few words.

use std::collections::BTreeMap;

use cupel::{ExclusionReason, InclusionReason};

use crate::text::grouped;

/// Why it is in.
pub(crate) fn of_inclusion(reason: InclusionReason) -> &'static str {
    match reason {
        InclusionReason::Scored => "by its score",
        InclusionReason::Pinned => "pinned",
        InclusionReason::ZeroToken => "costs nothing",
        other => other.name(),
    }
}

/// Why it is out, in a few words and with the numbers.
pub(crate) fn with_numbers(reason: &ExclusionReason) -> String {
    match reason {
        ExclusionReason::BudgetExceeded {
            item_tokens,
            available_tokens,
        } => {
            // What is left may be another kind's.
            let verdict = if item_tokens > available_tokens {
                "no room"
            } else {
                "passed over"
            };
            format!("{verdict}, {} left", grouped(*available_tokens))
        }
        ExclusionReason::Deduplicated { .. } => "copy of another".to_owned(),
        ExclusionReason::PinnedOverride { .. } => "no room beside pinned".to_owned(),
        ExclusionReason::NegativeTokens { .. } => "negative tokens".to_owned(),
        ExclusionReason::GroupExcluded {
            group_size,
            group_tokens,
            available_tokens,
        } => format!(
            "its group of {group_size} needs {}, {} left",
            grouped(*group_tokens),
            grouped(*available_tokens)
        ),
        ExclusionReason::CountCapExceeded { cap, .. } => format!("only {cap} of its kind"),
        other => {
            let text = other.to_string();
            match text.split_once(": ") {
                Some((_, sentence)) => sentence.to_owned(),
                None => text,
            }
        }
    }
}

/// Why it is out, without the numbers that differ from one to the next.
fn without_numbers(reason: &ExclusionReason) -> String {
    match reason {
        ExclusionReason::BudgetExceeded { .. } => "no room".to_owned(),
        ExclusionReason::GroupExcluded { .. } => "no room for a call with its results".to_owned(),
        ExclusionReason::CountCapExceeded { kind, cap, .. } => format!("only {cap} of {kind}"),
        ExclusionReason::Filtered { filter_name } => filter_name.clone(),
        other => with_numbers(other),
    }
}

/// A line for every reason: how many, why, and which.
pub(crate) fn summary<'a>(
    dropped: impl Iterator<Item = (usize, &'a ExclusionReason)>,
) -> Vec<String> {
    let mut reasons: BTreeMap<String, Vec<usize>> = BTreeMap::new();
    for (index, reason) in dropped {
        reasons
            .entry(without_numbers(reason))
            .or_default()
            .push(index);
    }
    let lines = reasons.into_iter().map(|(reason, mut indices)| {
        indices.sort_unstable();
        format!("dropped {}, {reason}: {}", indices.len(), ranges(&indices))
    });
    lines.collect()
}

/// `1-3, 7` for 1, 2, 3 and 7; where there is much to tell, the beginning of it.
fn ranges(indices: &[usize]) -> String {
    const TOLD: usize = 10;
    let mut runs: Vec<(usize, usize)> = Vec::new();
    for &index in indices {
        match runs.last_mut() {
            Some((_, last)) if *last + 1 == index => *last = index,
            _ => runs.push((index, index)),
        }
    }
    let told = runs.iter().take(TOLD).map(|(first, last)| {
        if first == last {
            first.to_string()
        } else {
            format!("{first}-{last}")
        }
    });
    let told = told.collect::<Vec<_>>().join(", ");
    if runs.len() > TOLD {
        told + ", ..."
    } else {
        told
    }
}

#[cfg(test)]
mod tests {
    use super::ranges;

    #[test]
    fn neighbours_are_a_range() {
        assert_eq!(ranges(&[]), "");
        assert_eq!(ranges(&[1, 2, 3, 7, 9, 10]), "1-3, 7, 9-10");
        let odd: Vec<usize> = (0..30).map(|n| 2 * n + 1).collect();
        assert_eq!(ranges(&odd), "1, 3, 5, 7, 9, 11, 13, 15, 17, 19, ...");
    }
}
