//! The six stages and the report about them.

use std::collections::BTreeMap;

use cupel_conformance::model::{
    Budget, Document, Event, Excluded, Failure, Field, Included, Item, Overflow, Report, Run,
};

use super::construction::reserved_slot_values;
use super::document::{flag, text};
use super::numbers::{descending_positions, floor, saturate};
use super::scoring::score_item;
use super::slicing::{Limits, Sliced, slice};
use super::{Candidate, Scored, failed, kind_of, placing};

/// Runs Classify, Score, Deduplicate, Sort, Slice and Place over the candidates.
pub(super) fn run(policy: &Document, budget: &Budget, items: &[Candidate]) -> Result<Run, Failure> {
    let mut trace = Trace::default();

    let classified = classify(items, budget, &mut trace)?;
    let pinned = &classified.pinned;
    trace.stage_done("Classify", pinned.len() + classified.scoreable.len());

    let scored = score(&classified.scoreable, &policy["scorer"]);
    trace.stage_done("Score", scored.len());

    let deduped = deduplicate(&scored, flag(policy, "deduplication", true), &mut trace);
    trace.stage_done("Deduplicate", deduped.len());

    let sorted = sort(&deduped);

    let adjusted_budget = compute_effective_budget(budget, classified.pinned_tokens);
    let sliced = slice(&policy["slicer"], &sorted, adjusted_budget)?;
    let sliced_scored = reattach_scores(&sorted, &sliced);
    exclude_unselected(
        &sorted,
        &sliced,
        adjusted_budget,
        &classified,
        budget,
        &mut trace,
    );
    trace.stage_done("Slice", sliced_scored.len());

    let merged = merge(pinned, &sliced_scored);
    let limit = overflow_limit(budget);
    let merged_tokens = token_sum(&merged);
    let mut overflow = None;
    let mut accepted = merged;
    if merged_tokens > limit {
        match text(policy, "overflow_strategy") {
            "throw" => return Err(overflow_error(merged_tokens, limit)),
            "truncate" => accepted = truncate(&accepted, limit, pinned, &mut trace),
            "proceed" => {
                overflow = Some(notify_overflow(merged_tokens - limit, &accepted));
            }
            other => panic!("the oracle has no overflow strategy {other}"),
        }
    }
    let placed = placing::place(&policy["placer"], &accepted);
    trace.stage_done("Place", placed.len());

    Ok(Run {
        output: placed.iter().map(|entry| entry.index).collect(),
        report: Some(build_report(&placed, items, trace, &sliced)),
        overflow: Some(overflow),
    })
}

/// The events and exclusions of a run, in the order they happen.
#[derive(Default)]
struct Trace {
    events: Vec<Event>,
    excluded: Vec<Excluded>,
}

impl Trace {
    /// Notes an exclusion together with its item event (R100).
    fn exclude(&mut self, stage: &str, index: usize, score: f64, reason: Reason) {
        self.events.push(Event {
            stage: stage.to_owned(),
            item_count: 1,
            message: Some(format!("{}: ", reason.name)),
        });
        self.excluded.push(Excluded {
            index,
            score,
            reason: reason.name.to_owned(),
            fields: reason.fields,
        });
    }

    /// Notes that a stage is over and how many items left it (R094).
    fn stage_done(&mut self, stage: &str, item_count: usize) {
        self.events.push(Event {
            stage: stage.to_owned(),
            item_count,
            message: None,
        });
    }
}

/// An exclusion reason by its variant name and wire fields.
struct Reason {
    name: &'static str,
    fields: BTreeMap<String, Field>,
}

impl Reason {
    fn new<const N: usize>(name: &'static str, fields: [(&str, Field); N]) -> Self {
        Self {
            name,
            fields: fields
                .into_iter()
                .map(|(key, value)| (key.to_owned(), value))
                .collect(),
        }
    }

    fn negative_tokens(item: &Item) -> Self {
        Self::new("NegativeTokens", [("tokens", Field::Integer(item.tokens))])
    }

    fn deduplicated(survivor: &Item) -> Self {
        let against = Field::Text(survivor.content.clone());
        Self::new("Deduplicated", [("deduplicated_against", against)])
    }

    fn budget_exceeded(item: &Item, available_tokens: i128) -> Self {
        Self::new(
            "BudgetExceeded",
            [
                ("item_tokens", Field::Integer(item.tokens)),
                (
                    "available_tokens",
                    Field::Integer(saturate(available_tokens)),
                ),
            ],
        )
    }

    fn pinned_override(displacing: &Item) -> Self {
        let by = Field::Text(displacing.content.clone());
        Self::new("PinnedOverride", [("displaced_by", by)])
    }

    fn count_cap_exceeded(item: &Item, cap: i64, count: i64) -> Self {
        Self::new(
            "CountCapExceeded",
            [
                ("kind", Field::Text(kind_of(item).to_owned())),
                ("cap", Field::Integer(cap)),
                ("count", Field::Integer(count)),
            ],
        )
    }
}

/// What Classify passes on.
struct Classified<'a> {
    pinned: Vec<Candidate<'a>>,
    scoreable: Vec<Candidate<'a>>,
    pinned_tokens: i128,
}

// CLASSIFY(items, budget)
fn classify<'a>(
    items: &[Candidate<'a>],
    budget: &Budget,
    trace: &mut Trace,
) -> Result<Classified<'a>, Failure> {
    let mut pinned = Vec::new();
    let mut scoreable = Vec::new();
    for candidate in items {
        if candidate.item.tokens < 0 {
            let reason = Reason::negative_tokens(candidate.item);
            trace.exclude("Classify", candidate.index, 0.0, reason);
            continue;
        }
        if candidate.item.pinned {
            pinned.push(*candidate);
        } else {
            scoreable.push(*candidate);
        }
    }

    let mut pinned_tokens = 0;
    for candidate in &pinned {
        pinned_tokens += i128::from(candidate.item.tokens);
    }
    let available_for_pinned = i128::from(budget.max_tokens) - i128::from(budget.output_reserve);
    if pinned_tokens > available_for_pinned {
        return Err(failed(
            "PinnedExceedsBudget",
            format!("pinned items take {pinned_tokens} tokens of {available_for_pinned}"),
        ));
    }

    Ok(Classified {
        pinned,
        scoreable,
        pinned_tokens,
    })
}

// SCORE(scoreable, scorer)
pub(super) fn score<'a>(scoreable: &[Candidate<'a>], scorer: &Document) -> Vec<Scored<'a>> {
    let mut list = Vec::new();
    for (position, candidate) in scoreable.iter().enumerate() {
        list.push(Scored {
            index: candidate.index,
            item: candidate.item,
            score: score_item(scorer, position, scoreable),
        });
    }
    list
}

// DEDUPLICATE(scored, enabled)
fn deduplicate<'a>(scored: &[Scored<'a>], enabled: bool, trace: &mut Trace) -> Vec<Scored<'a>> {
    if !enabled || scored.is_empty() {
        return scored.to_vec();
    }

    let mut best_by_content: BTreeMap<&str, usize> = BTreeMap::new();
    for (i, entry) in scored.iter().enumerate() {
        let best = best_by_content.entry(&entry.item.content).or_insert(i);
        if entry.score > scored[*best].score {
            *best = i;
        }
    }

    let mut deduped = Vec::new();
    for (i, entry) in scored.iter().enumerate() {
        let best = best_by_content[entry.item.content.as_str()];
        if best == i {
            deduped.push(*entry);
        } else {
            let reason = Reason::deduplicated(scored[best].item);
            trace.exclude("Deduplicate", entry.index, entry.score, reason);
        }
    }
    deduped
}

// SORT(deduped)
fn sort<'a>(deduped: &[Scored<'a>]) -> Vec<Scored<'a>> {
    let keys: Vec<f64> = deduped.iter().map(|entry| entry.score).collect();
    let mut sorted = Vec::new();
    for position in descending_positions(&keys) {
        sorted.push(deduped[position]);
    }
    sorted
}

// COMPUTE-EFFECTIVE-BUDGET(budget, pinnedTokens)
fn compute_effective_budget(budget: &Budget, pinned_tokens: i128) -> Limits {
    let mut reserved_tokens = 0;
    for tokens in reserved_slot_values(budget) {
        reserved_tokens += i128::from(tokens);
    }
    let committed = pinned_tokens + reserved_tokens;
    let mut effective_max =
        (i128::from(budget.max_tokens) - i128::from(budget.output_reserve) - committed).max(0);
    let mut effective_target = (i128::from(budget.target_tokens) - committed).max(0);
    effective_target = effective_target.min(effective_max);

    if budget.estimation_safety_margin_percent > 0.0 {
        let multiplier = 1.0 - budget.estimation_safety_margin_percent / 100.0;
        effective_max = floor(effective_max as f64 * multiplier);
        effective_target = floor(effective_target as f64 * multiplier);
        effective_target = effective_target.min(effective_max);
    }

    Limits {
        max_tokens: saturate(effective_max),
        target_tokens: saturate(effective_target),
    }
}

// SLICE, Conformance Notes: the selected items with their scores, in Sort order (R034).
fn reattach_scores<'a>(sorted: &[Scored<'a>], sliced: &Sliced) -> Vec<Scored<'a>> {
    let mut sliced_scored = Vec::new();
    for entry in sorted {
        if is_selected(entry, sliced) {
            sliced_scored.push(*entry);
        }
    }
    sliced_scored
}

fn is_selected(entry: &Scored, sliced: &Sliced) -> bool {
    sliced.selected.iter().any(|s| s.index == entry.index)
}

/// Gives every item the slicer left out its reason, in Sort order (R103).
fn exclude_unselected(
    sorted: &[Scored],
    sliced: &Sliced,
    adjusted_budget: Limits,
    classified: &Classified,
    budget: &Budget,
    trace: &mut Trace,
) {
    let effective_target = i128::from(adjusted_budget.target_tokens);
    let target_without_pinned = compute_effective_budget(budget, 0).target_tokens;
    let available_tokens = effective_target - token_sum(&sliced.selected); // R042, R043
    let displacing = first_pinned_with_tokens(&classified.pinned);

    for entry in sorted {
        if is_selected(entry, sliced) {
            continue;
        }
        let rejection = sliced.rejections.iter().find(|r| r.index == entry.index);
        let tokens = entry.item.tokens;
        let only_pinned_in_the_way =
            i128::from(tokens) > effective_target && tokens <= target_without_pinned; // R040
        let reason = match (rejection, displacing) {
            (Some(rejection), _) => {
                Reason::count_cap_exceeded(entry.item, rejection.cap, rejection.count)
            }
            (None, Some(pinned)) if only_pinned_in_the_way => Reason::pinned_override(pinned),
            _ => Reason::budget_exceeded(entry.item, available_tokens),
        };
        trace.exclude("Slice", entry.index, entry.score, reason);
    }
}

/// The item a `PinnedOverride` names (R041).
fn first_pinned_with_tokens<'a>(pinned: &[Candidate<'a>]) -> Option<&'a Item> {
    pinned
        .iter()
        .map(|candidate| candidate.item)
        .find(|item| item.tokens > 0)
}

// PLACE(pinned, slicedScored, budget, overflowStrategy, placer), Step 1
fn merge<'a>(pinned: &[Candidate<'a>], sliced_scored: &[Scored<'a>]) -> Vec<Scored<'a>> {
    let mut merged = Vec::new();
    for candidate in pinned {
        merged.push(Scored {
            index: candidate.index,
            item: candidate.item,
            score: 1.0,
        });
    }
    for entry in sliced_scored {
        merged.push(*entry);
    }
    merged
}

/// The number of tokens above which a merged list overflows (R027).
fn overflow_limit(budget: &Budget) -> i128 {
    let ceiling = i128::from(budget.max_tokens) - i128::from(budget.output_reserve);
    i128::from(budget.target_tokens).min(ceiling)
}

fn token_sum(entries: &[Scored]) -> i128 {
    let mut sum = 0;
    for entry in entries {
        sum += i128::from(entry.item.tokens);
    }
    sum
}

// HANDLE-OVERFLOW(merged, targetTokens, strategy), Throw
fn overflow_error(merged_tokens: i128, limit: i128) -> Failure {
    failed(
        "Overflow",
        format!("selected items take {merged_tokens} tokens, more than {limit}"),
    )
}

// HANDLE-OVERFLOW(merged, targetTokens, strategy), Truncate
fn truncate<'a>(
    merged: &[Scored<'a>],
    limit: i128,
    pinned: &[Candidate<'a>],
    trace: &mut Trace,
) -> Vec<Scored<'a>> {
    let displacing = first_pinned_with_tokens(pinned);
    let mut kept = Vec::new();
    let mut current_tokens = 0;
    let mut kept_unpinned_tokens = 0;
    let mut dropped = Vec::new();
    for entry in merged {
        let tokens = i128::from(entry.item.tokens);
        if entry.item.pinned {
            kept.push(*entry);
            current_tokens += tokens;
        } else if current_tokens + tokens <= limit {
            kept.push(*entry);
            current_tokens += tokens;
            kept_unpinned_tokens += tokens;
        } else {
            let fits_without_pinned = kept_unpinned_tokens + tokens <= limit; // R038
            dropped.push((*entry, displacing.filter(|_| fits_without_pinned)));
        }
    }

    for (entry, displaced_by) in dropped {
        let reason = match displaced_by {
            Some(pinned) => Reason::pinned_override(pinned),
            None => Reason::budget_exceeded(entry.item, limit - current_tokens), // R045
        };
        trace.exclude("Place", entry.index, entry.score, reason);
    }
    kept
}

// HANDLE-OVERFLOW(merged, targetTokens, strategy), Proceed: NOTIFY-OVERFLOW (R047)
fn notify_overflow(tokens_over_budget: i128, merged: &[Scored]) -> Overflow {
    Overflow {
        tokens_over_budget: saturate(tokens_over_budget),
        items: merged.iter().map(|entry| entry.index).collect(),
    }
}

// BUILD-REPORT()
fn build_report(placed: &[Scored], items: &[Candidate], trace: Trace, sliced: &Sliced) -> Report {
    let mut included = Vec::new();
    for entry in placed {
        included.push(Included {
            index: entry.index,
            score: entry.score,
            reason: inclusion_reason(entry.item).to_owned(),
        });
    }

    let scores: Vec<f64> = trace.excluded.iter().map(|entry| entry.score).collect();
    let mut excluded = Vec::new();
    for position in descending_positions(&scores) {
        excluded.push(trace.excluded[position].clone());
    }

    let mut total_tokens = token_sum(placed);
    for entry in &excluded {
        total_tokens += i128::from(items[entry.index].item.tokens); // R096
    }

    Report {
        total_candidates: included.len() + excluded.len(),
        total_tokens_considered: saturate(total_tokens),
        included,
        excluded,
        shortfalls: sliced.shortfalls(),
        events: Some(trace.events),
    }
}

// InclusionReason: being pinned comes before being free (R093).
fn inclusion_reason(item: &Item) -> &'static str {
    if item.pinned {
        "Pinned"
    } else if item.tokens == 0 {
        "ZeroToken"
    } else {
        "Scored"
    }
}
