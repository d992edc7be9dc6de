//! What the constructors refuse, in the order items, budget, scorer, slicer.

use chrono::TimeDelta;
use cupel_conformance::model::{Budget, Document, Failure, Item, Task};

use super::document::{
    CountEntry, Quota, counts, duration, entries, flag, inner_slicer, integer, list, name_of,
    number, quotas, weights,
};
use super::relevance::Parameters;
use super::same_kind;

type Verdict = Result<(), Failure>;

/// Builds everything a task names; the first refusal is the answer.
pub(super) fn validate(task: &Task) -> Verdict {
    match task {
        Task::Score { scorer, items } => {
            validate_items(items)?;
            validate_scorer(scorer)
        }
        Task::Slice {
            slicer,
            budget,
            items,
        } => {
            validate_items(items.iter().map(|scored| &scored.item))?;
            validate_budget(budget)?;
            validate_slicer(slicer)
        }
        Task::Place { items, .. } => validate_items(items.iter().map(|scored| &scored.item)),
        Task::Run {
            policy,
            budget,
            items,
        } => {
            validate_items(items)?;
            validate_budget(budget)?;
            validate_scorer(&policy["scorer"])?;
            validate_slicer(&policy["slicer"])
        }
    }
}

fn refuse_if(wrong: bool, code: &str, message: &str) -> Verdict {
    if wrong {
        Err(Failure {
            at_construction: true,
            code: code.to_owned(),
            message: message.to_owned(),
        })
    } else {
        Ok(())
    }
}

fn scorer_rule(wrong: bool, message: &str) -> Verdict {
    refuse_if(wrong, "ScorerConfig", message)
}

fn slicer_rule(wrong: bool, message: &str) -> Verdict {
    refuse_if(wrong, "SlicerConfig", message)
}

// ContextItem, Constraints; ContextKind and ContextSource, Construction.
fn validate_items<'a>(items: impl IntoIterator<Item = &'a Item>) -> Verdict {
    for item in items {
        refuse_if(
            item.content.is_empty(),
            "EmptyContent",
            "content must not be empty",
        )?;
        if let Some(kind) = &item.kind {
            validate_kind(kind)?;
        }
        if let Some(source) = &item.source {
            refuse_if(
                source.trim().is_empty(),
                "EmptySource",
                "source must not be blank",
            )?;
        }
    }
    Ok(())
}

fn validate_kind(kind: &str) -> Verdict {
    refuse_if(
        kind.trim().is_empty(),
        "EmptyKind",
        "kind must not be blank",
    )
}

// ContextBudget, Validation Rules 1 to 7, in that order (R026).
fn validate_budget(budget: &Budget) -> Verdict {
    for (kind, _) in &budget.reserved_slots {
        validate_kind(kind)?;
    }
    let rule = |wrong, message: String| refuse_if(wrong, "InvalidBudget", &message);
    let (max, target) = (budget.max_tokens, budget.target_tokens);
    let (reserve, margin) = (
        budget.output_reserve,
        budget.estimation_safety_margin_percent,
    );
    rule(max < 0, format!("maxTokens {max} is negative"))?;
    rule(target < 0, format!("targetTokens {target} is negative"))?;
    rule(target > max, format!("targetTokens {target} exceeds {max}"))?;
    rule(reserve < 0, format!("outputReserve {reserve} is negative"))?;
    rule(
        reserve > max,
        format!("outputReserve {reserve} exceeds {max}"),
    )?;
    rule(
        !(0.0..=100.0).contains(&margin),
        format!("estimationSafetyMarginPercent {margin} is not a percentage"),
    )?;
    for tokens in reserved_slot_values(budget) {
        rule(tokens < 0, format!("reserved slot {tokens} is negative"))?;
    }
    Ok(())
}

/// The values of the `reservedSlots` map: of several pairs with equal kinds the last one is
/// the map's entry (BUDGET-10).
pub(super) fn reserved_slot_values(budget: &Budget) -> Vec<i64> {
    let pairs = &budget.reserved_slots;
    let mut values = Vec::new();
    for (position, (kind, tokens)) in pairs.iter().enumerate() {
        let replaced = pairs[position + 1..]
            .iter()
            .any(|(later, _)| same_kind(later, kind));
        if !replaced {
            values.push(*tokens);
        }
    }
    values
}

fn validate_kernels(it: &Parameters) -> Verdict {
    let (Some((forward, backward)), Some((weight, decay, power))) = (it.near, it.wide) else {
        return Ok(());
    };
    let is_share = |share: &f64| (0.0..=1.0).contains(share);
    let are_shares = [forward, backward, decay].iter().all(is_share);
    scorer_rule(!are_shares, "shares must lie in 0 to 1")?;
    let is_weight = weight >= 0.0 && weight.is_finite();
    scorer_rule(!is_weight, "the weight must be non-negative and finite")?;
    scorer_rule(!(1..=16).contains(&power), "the power must lie in 1 to 16")
}

// Construction of every scorer; children before their parent.
fn validate_scorer(scorer: &Document) -> Verdict {
    let unit = |key: &str, default: f64, message: &str| {
        let number = number(scorer, key, default);
        scorer_rule(!(0.0..=1.0).contains(&number), message)
    };
    match name_of(scorer) {
        "kind" => validate_kind_weights(&weights(scorer, "weights")),
        "tag" => {
            let ignore_case = flag(scorer, "ignore_case", false);
            construct_tag_scorer(&weights(scorer, "tag_weights"), ignore_case)
        }
        "composite" => construct_composite(&entries(scorer)),
        "fusion" => {
            construct_composite(&entries(scorer))?;
            let k = number(scorer, "k", 60.0);
            scorer_rule(
                !(k >= 0.0 && k.is_finite()),
                "k must be non-negative and finite",
            )
        }
        "product" => construct_product(list(scorer, "scorers")),
        "relevance" | "conversation" => {
            let it = Parameters::of(scorer);
            let is_k1 = it.k1 >= 0.0 && it.k1.is_finite();
            scorer_rule(!is_k1, "k1 must be non-negative")?;
            scorer_rule(!(0.0..=1.0).contains(&it.b), "b must lie in 0 to 1")?;
            validate_kernels(&it)
        }
        "neighbor" => {
            validate_scorer(&scorer["inner"])?;
            validate_kernels(&Parameters::of(scorer))
        }
        "scaled" => validate_scorer(&scorer["inner"]),
        "metadata_trust" => unit("default_score", 0.5, "defaultScore must lie in 0.0 to 1.0"),
        "decay" => {
            validate_curve(&scorer["curve"])?;
            unit(
                "null_timestamp_score",
                0.5,
                "nullTimestampScore must lie in 0.0 to 1.0",
            )
        }
        "metadata_key" => {
            let boost = number(scorer, "boost", 0.0);
            scorer_rule(
                !(boost > 0.0 && boost.is_finite()),
                "boost must be positive and finite",
            )
        }
        _ => Ok(()),
    }
}

// VALIDATE-KIND-WEIGHTS(weights)
fn validate_kind_weights(weights: &[(String, f64)]) -> Verdict {
    for (kind, _) in weights {
        validate_kind(kind)?;
    }
    for (_, weight) in weights {
        scorer_rule(*weight < 0.0, "a kind weight must not be negative")?;
        scorer_rule(!weight.is_finite(), "a kind weight must be finite")?;
    }
    let kinds: Vec<&str> = weights.iter().map(|(kind, _)| kind.as_str()).collect();
    scorer_rule(has_pair(&kinds, same_kind), "a kind is weighted twice") // R058
}

// CONSTRUCT-TAG-SCORER(tagWeights)
fn construct_tag_scorer(weights: &[(String, f64)], ignore_case: bool) -> Verdict {
    let mut total_weight = 0.0;
    for (_, weight) in weights {
        scorer_rule(*weight < 0.0, "a tag weight must not be negative")?;
        scorer_rule(!weight.is_finite(), "a tag weight must be finite")?;
        total_weight += weight;
    }
    scorer_rule(!total_weight.is_finite(), "the tag weights overflow")?; // R050
    let tags: Vec<&str> = weights.iter().map(|(tag, _)| tag.as_str()).collect();
    let collide = |a: &str, b: &str| a == b || (ignore_case && a.eq_ignore_ascii_case(b));
    scorer_rule(has_pair(&tags, collide), "a tag is weighted twice") // R013
}

// CONSTRUCT-COMPOSITE(entries). Children are owned, so no cycle can exist (R059).
fn construct_composite(entries: &[(&Document, f64)]) -> Verdict {
    scorer_rule(entries.is_empty(), "a composite needs an entry")?;
    let mut total_weight = 0.0;
    for (scorer, weight) in entries {
        validate_scorer(scorer)?;
        scorer_rule(*weight <= 0.0, "a composite weight must be positive")?;
        scorer_rule(!weight.is_finite(), "a composite weight must be finite")?;
        total_weight += weight;
    }
    scorer_rule(!total_weight.is_finite(), "the composite weights overflow") // R050
}

// R048: the combinator beside CompositeScorer.
fn construct_product(children: &[Document]) -> Verdict {
    scorer_rule(children.is_empty(), "a product needs a child")?;
    for child in children {
        validate_scorer(child)?;
    }
    Ok(())
}

// DecayScorer, Curve Factories: the preconditions.
fn validate_curve(curve: &Document) -> Verdict {
    let positive = |table: &Document, key: &str, message: &str| {
        scorer_rule(duration(table, key) <= TimeDelta::zero(), message)
    };
    match name_of(curve) {
        "exponential" => positive(curve, "half_life", "halfLife must be positive"),
        "window" => positive(curve, "max_age", "maxAge must be positive"),
        _ => {
            let windows = list(curve, "windows");
            scorer_rule(windows.is_empty(), "a step curve needs a window")?;
            for window in windows {
                positive(window, "max_age", "maxAge must be positive")?;
                let score = number(window, "score", 0.0);
                scorer_rule(!score.is_finite(), "a window's score must be finite")?; // R054
            }
            Ok(())
        }
    }
}

// Construction of every slicer; entries one by one, then the inner slicer, then the whole.
fn validate_slicer(slicer: &Document) -> Verdict {
    let bucket_size = || {
        let size = integer(slicer, "bucket_size", 100);
        slicer_rule(size <= 0, "bucketSize must be positive") // KnapsackSlice, Bucket Size
    };
    match name_of(slicer) {
        "density" => {
            let exponent = number(slicer, "exponent", 0.0);
            slicer_rule(
                !(exponent >= 0.0 && exponent.is_finite()),
                "the exponent must be finite and not negative",
            )
        }
        "knapsack" => bucket_size(),
        "quota" => {
            for quota in &quotas(slicer) {
                validate_quota(quota)?;
            }
            validate_slicer(&inner_slicer(slicer))?;
            validate_quota_set(&quotas(slicer))
        }
        "count_quota" => {
            for entry in &counts(slicer) {
                validate_count_entry(entry)?;
            }
            let inner = inner_slicer(slicer);
            validate_slicer(&inner)?;
            slicer_rule(
                name_of(&inner) == "knapsack", // R079
                "CountQuotaSlice does not wrap KnapsackSlice",
            )?;
            validate_count_entry_set(&counts(slicer))
        }
        "count_constrained_knapsack" => {
            for entry in &counts(slicer) {
                validate_count_entry(entry)?;
            }
            bucket_size()?;
            validate_count_entry_set(&counts(slicer))
        }
        _ => Ok(()),
    }
}

// QuotaSlice, Configuration and Validation Rule 1.
fn validate_quota(quota: &Quota) -> Verdict {
    validate_kind(&quota.kind)?;
    let percentages = 0.0..=100.0;
    slicer_rule(
        !percentages.contains(&quota.require),
        "require must lie in 0.0 to 100.0",
    )?;
    slicer_rule(
        !percentages.contains(&quota.cap),
        "cap must lie in 0.0 to 100.0",
    )?;
    slicer_rule(quota.require > quota.cap, "require must not exceed cap")
}

// QuotaSlice, Validation Rule 2, on the sum in entry order (R066); one entry per kind (R065).
fn validate_quota_set(quotas: &[Quota]) -> Verdict {
    let mut sum = 0.0;
    for quota in quotas {
        sum += quota.require;
    }
    slicer_rule(sum > 100.0, "the require percentages exceed 100")?;
    let kinds: Vec<&str> = quotas.iter().map(|quota| quota.kind.as_str()).collect();
    slicer_rule(has_pair(&kinds, same_kind), "a kind has two quotas")
}

// CountQuotaEntry, Validation Rules 1 and 2; (0, 0) is legal (R075).
fn validate_count_entry(entry: &CountEntry) -> Verdict {
    validate_kind(&entry.kind)?;
    slicer_rule(entry.require_count < 0, "requireCount must not be negative")?;
    slicer_rule(entry.cap_count < 0, "capCount must not be negative")?;
    slicer_rule(
        entry.require_count > entry.cap_count,
        "requireCount must not exceed capCount",
    )
}

// One entry per kind (R065).
fn validate_count_entry_set(entries: &[CountEntry]) -> Verdict {
    let kinds: Vec<&str> = entries.iter().map(|entry| entry.kind.as_str()).collect();
    slicer_rule(has_pair(&kinds, same_kind), "a kind has two count entries")
}

/// Whether two of the texts are equal in the given sense.
fn has_pair(texts: &[&str], equal: impl Fn(&str, &str) -> bool) -> bool {
    for (position, first) in texts.iter().enumerate() {
        for second in &texts[position + 1..] {
            if equal(first, second) {
                return true;
            }
        }
    }
    false
}
