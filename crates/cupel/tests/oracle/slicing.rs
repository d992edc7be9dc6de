//! The slicers.

use cupel_conformance::model::{Document, Failure, Shortfall};

use super::document::{
    CountEntry, Quota, counts, inner_slicer, integer, name_of, number, quotas, text, throws,
};
use super::numbers::{descending_positions, floor, floor_share, saturate};
use super::{Scored, failed, kind_of, same_kind};

/// The part of a `ContextBudget` that slicers read.
#[derive(Debug, Clone, Copy)]
pub(super) struct Limits {
    pub(super) max_tokens: i64,
    pub(super) target_tokens: i64,
}

/// What a slicer hands back: its selection and, beside it, what the report needs (R083).
#[derive(Debug, Default)]
pub(super) struct Sliced<'a> {
    /// The selection in emission order.
    pub(super) selected: Vec<Scored<'a>>,
    /// Requirements that were not met: a list per count slicer, from the outside in, each in the
    /// order of its entries.
    shortfalls: Vec<Vec<Shortfall>>,
    /// Items refused by a count cap, in the order they were refused (R082).
    pub(super) rejections: Vec<Rejection>,
}

impl Sliced<'_> {
    /// Returns the shortfalls in the order of the report: those of an outer slicer first.
    pub(super) fn shortfalls(&self) -> Vec<Shortfall> {
        self.shortfalls.concat()
    }
}

/// An item that a count cap refused.
#[derive(Debug)]
pub(super) struct Rejection {
    pub(super) index: usize,
    /// The cap of the entry.
    pub(super) cap: i64,
    /// How many items of the kind were selected at that moment.
    pub(super) count: i64,
}

type Outcome<'a> = Result<Sliced<'a>, Failure>;

/// `Slice(scoredItems, budget)` of a slicer.
pub(super) fn slice<'a>(slicer: &Document, scored: &[Scored<'a>], budget: Limits) -> Outcome<'a> {
    let bucket_size = integer(slicer, "bucket_size", DEFAULT_BUCKET_SIZE);
    match name_of(slicer) {
        "greedy" => Ok(only_selected(greedy_slice(scored, budget))),
        "rank" => Ok(only_selected(rank_slice(scored, budget))),
        "density" => match number(slicer, "exponent", 1.0) {
            0.0 => Ok(only_selected(rank_slice(scored, budget))),
            exponent => Ok(only_selected(density_slice(scored, budget, exponent))),
        },
        "knapsack" => knapsack_slice(scored, budget, bucket_size).map(only_selected),
        "quota" => quota_slice(scored, budget, &quotas(slicer), &inner_slicer(slicer)),
        "count_quota" => {
            let inner = inner_slicer(slicer);
            count_quota_slice(scored, budget, &counts(slicer), &inner, throws(slicer))
        }
        "count_constrained_knapsack" => {
            count_knapsack_cap(scored, budget, &counts(slicer), bucket_size, throws(slicer))
        }
        other => panic!("the oracle has no slicer {other}"),
    }
}

/// Tokens per bucket when none are configured (KNAP-1).
const DEFAULT_BUCKET_SIZE: i64 = 100;

/// The largest table the knapsack may fill (R064).
const MAX_TABLE_CELLS: i128 = 50_000_000;

fn only_selected(selected: Vec<Scored<'_>>) -> Sliced<'_> {
    Sliced {
        selected,
        ..Sliced::default()
    }
}

// GREEDY-SLICE(scoredItems, budget)
fn greedy_slice<'a>(scored: &[Scored<'a>], budget: Limits) -> Vec<Scored<'a>> {
    if scored.is_empty() || budget.target_tokens <= 0 {
        return Vec::new();
    }

    let mut densities = Vec::new();
    for entry in scored {
        if entry.item.tokens == 0 {
            densities.push(f64::MAX);
        } else {
            densities.push(entry.score / entry.item.tokens as f64);
        }
    }
    take_by_density(scored, budget, &densities)
}

// DENSITY-SLICE(scoredItems, budget, exponent), an addition: the tokens are raised to a power.
fn density_slice<'a>(scored: &[Scored<'a>], budget: Limits, exponent: f64) -> Vec<Scored<'a>> {
    if scored.is_empty() || budget.target_tokens <= 0 {
        return Vec::new();
    }
    let mut densities = Vec::new();
    for entry in scored {
        if entry.item.tokens == 0 {
            densities.push(f64::MAX);
        } else {
            densities.push(entry.score / (entry.item.tokens as f64).powf(exponent));
        }
    }
    take_by_density(scored, budget, &densities)
}

// The second half of GREEDY-SLICE.
fn take_by_density<'a>(
    scored: &[Scored<'a>],
    budget: Limits,
    densities: &[f64],
) -> Vec<Scored<'a>> {
    let mut remaining = i128::from(budget.target_tokens);
    let mut selected = Vec::new();
    for position in descending_positions(densities) {
        let tokens = i128::from(scored[position].item.tokens);
        if tokens == 0 {
            selected.push(scored[position]);
        } else if tokens <= remaining {
            selected.push(scored[position]);
            remaining -= tokens;
        }
    }
    selected
}

// RANK-SLICE(scoredItems, budget), an addition: in the order of the list while it fits.
fn rank_slice<'a>(scored: &[Scored<'a>], budget: Limits) -> Vec<Scored<'a>> {
    let mut selected = Vec::new();
    let mut used = 0;
    for entry in scored {
        let tokens = i128::from(entry.item.tokens);
        if budget.target_tokens > 0 && used + tokens <= i128::from(budget.target_tokens) {
            used += tokens;
            selected.push(*entry);
        }
    }
    selected
}

// KNAPSACK-SLICE(scoredItems, budget, bucketSize)
fn knapsack_slice<'a>(
    scored: &[Scored<'a>],
    budget: Limits,
    bucket_size: i64,
) -> Result<Vec<Scored<'a>>, Failure> {
    if scored.is_empty() || budget.target_tokens <= 0 {
        return Ok(Vec::new());
    }

    let mut zero_token_items = Vec::new();
    let mut candidates = Vec::new();
    for entry in scored {
        if entry.item.tokens == 0 {
            zero_token_items.push(*entry);
        } else if entry.item.tokens > 0 {
            candidates.push(*entry);
        }
    }
    if candidates.is_empty() {
        return Ok(zero_token_items);
    }

    let capacity = budget.target_tokens / bucket_size;
    if capacity == 0 {
        return Ok(zero_token_items);
    }
    refuse_large_table(candidates.len(), capacity)?;

    let mut values = Vec::new();
    let mut weights = Vec::new();
    for candidate in &candidates {
        values.push(knapsack_value(candidate.score));
        weights.push(table_index(ceil_division(
            candidate.item.tokens,
            bucket_size,
        )));
    }
    let keep = fill_keep_table(&values, &weights, table_index(capacity));

    let mut result = zero_token_items;
    let mut remaining_capacity = table_index(capacity);
    for i in (0..candidates.len()).rev() {
        if keep[i][remaining_capacity] {
            result.push(candidates[i]);
            remaining_capacity -= weights[i];
        }
    }
    Ok(result)
}

// KNAPSACK-SLICE, Step 2: max(0, floor(score * 10000)), within 64 bits (R010).
fn knapsack_value(score: f64) -> i128 {
    floor(score * 10_000.0).clamp(0, i128::from(i64::MAX))
}

// KNAPSACK-SLICE, Step 3: ceil(weight / bucketSize) of a positive weight.
fn ceil_division(weight: i64, bucket_size: i64) -> i64 {
    let whole_buckets = weight / bucket_size;
    if weight % bucket_size == 0 {
        whole_buckets
    } else {
        whole_buckets + 1
    }
}

/// A number of buckets, which is never negative, as a column of the table.
fn table_index(buckets: i64) -> usize {
    usize::try_from(buckets).unwrap_or(usize::MAX)
}

// KNAPSACK-SLICE, Step 4: the keep table.
fn fill_keep_table(values: &[i128], weights: &[usize], capacity: usize) -> Vec<Vec<bool>> {
    let mut dp: Vec<i128> = vec![0; capacity + 1];
    let mut keep = vec![vec![false; capacity + 1]; values.len()];
    for i in 0..values.len() {
        let dw = weights[i];
        for w in (dw..=capacity).rev() {
            let with_item = dp[w - dw] + values[i];
            if with_item > dp[w] {
                dp[w] = with_item;
                keep[i][w] = true;
            }
        }
    }
    keep
}

// R064: the table has one row per candidate and capacity + 1 columns.
fn refuse_large_table(candidates: usize, capacity: i64) -> Result<(), Failure> {
    let rows = i128::try_from(candidates).unwrap_or(i128::MAX);
    let cells = rows.saturating_mul(i128::from(capacity) + 1);
    if cells > MAX_TABLE_CELLS {
        return Err(failed(
            "TableTooLarge",
            format!("the knapsack table would have {cells} cells, more than {MAX_TABLE_CELLS}"),
        ));
    }
    Ok(())
}

/// One partition of `QUOTA-SLICE`: a kind with its items in input order.
struct Partition<'a> {
    kind: &'a str,
    items: Vec<Scored<'a>>,
    token_mass: i128,
}

// QUOTA-SLICE(scoredItems, budget, quotas, innerSlicer)
fn quota_slice<'a>(
    scored: &[Scored<'a>],
    budget: Limits,
    quotas: &[Quota],
    inner: &Document,
) -> Outcome<'a> {
    if scored.is_empty() || budget.target_tokens <= 0 {
        return Ok(Sliced::default());
    }

    let partitions = partition_by_kind(scored);
    let kind_budgets = distribute_budget(&partitions, budget.target_tokens, quotas);

    let mut all_selected = Sliced::default();
    let mut ran = Vec::new();
    for (partition, kind_budget) in partitions.iter().zip(kind_budgets) {
        if kind_budget <= 0 {
            continue;
        }
        let cap_percent = quota_of(quotas, partition.kind).map_or(100.0, |quota| quota.cap);
        let sub_budget = Limits {
            max_tokens: saturate(percent_of(cap_percent, budget.target_tokens)),
            target_tokens: saturate(kind_budget),
        };
        let own = restricted_to(inner, partition.kind); // R150
        let selected = slice(&own, &partition.items, sub_budget)?;
        all_selected.selected.extend(selected.selected);
        all_selected.rejections.extend(selected.rejections);
        ran.push((partition.kind, selected.shortfalls));
    }
    all_selected.shortfalls = shortfalls_of_partitions(inner, &ran)?;
    Ok(all_selected)
}

// R150: inside the partition of a kind only the entries of that kind apply, at any depth.
fn restricted_to(slicer: &Document, kind: &str) -> Document {
    let mut own = slicer.clone();
    if let Some(entries) = own["entries"].as_array_mut() {
        entries.retain(|entry| same_kind(text(entry, "kind"), kind));
    }
    if !own["inner"].is_null() {
        own["inner"] = restricted_to(&own["inner"], kind);
    }
    own
}

// R150: the shortfalls of every count slicer inside a quota, in the order of its entries. A
// required kind whose partition was not run has 0 items, or raises the error.
fn shortfalls_of_partitions(
    inner: &Document,
    ran: &[(&str, Vec<Vec<Shortfall>>)],
) -> Result<Vec<Vec<Shortfall>>, Failure> {
    let mut shortfalls = Vec::new();
    for (list, (slicer_name, entries, throws)) in count_slicers(inner).iter().enumerate() {
        let mut own = Vec::new();
        for entry in entries {
            if let Some((_, found)) = ran.iter().find(|(kind, _)| same_kind(kind, &entry.kind)) {
                own.extend(found.get(list).into_iter().flatten().cloned());
            } else if entry.require_count > 0 {
                if *throws {
                    return Err(scarcity_error(slicer_name, entry, 0));
                }
                own.push(shortfall(entry, 0));
            }
        }
        shortfalls.push(own);
    }
    Ok(shortfalls)
}

/// Returns the count slicers of a chain of slicers, from the outside in: name, entries, whether it
/// throws.
fn count_slicers(slicer: &Document) -> Vec<(&'static str, Vec<CountEntry>, bool)> {
    let inner = || count_slicers(&inner_slicer(slicer));
    match name_of(slicer) {
        "count_quota" => {
            let mut list = vec![("CountQuotaSlice", counts(slicer), throws(slicer))];
            list.extend(inner());
            list
        }
        "count_constrained_knapsack" => {
            vec![(
                "CountConstrainedKnapsackSlice",
                counts(slicer),
                throws(slicer),
            )]
        }
        "quota" => inner(),
        _ => Vec::new(),
    }
}

// QUOTA-SLICE, Phases 1 and 2; partitions in order of first appearance (R070).
fn partition_by_kind<'a>(scored: &[Scored<'a>]) -> Vec<Partition<'a>> {
    let mut partitions: Vec<Partition<'a>> = Vec::new();
    for entry in scored {
        let kind = kind_of(entry.item);
        let tokens = i128::from(entry.item.tokens);
        match partitions.iter_mut().find(|p| same_kind(p.kind, kind)) {
            Some(partition) => {
                partition.items.push(*entry);
                partition.token_mass += tokens;
            }
            None => partitions.push(Partition {
                kind,
                items: vec![*entry],
                token_mass: tokens,
            }),
        }
    }
    partitions
}

// DISTRIBUTE-BUDGET(partitions, candidateTokenMass, targetTokens, quotas): one budget per
// partition.
fn distribute_budget(partitions: &[Partition], target: i64, quotas: &[Quota]) -> Vec<i128> {
    let require_tokens =
        |kind: &str| quota_of(quotas, kind).map_or(0, |quota| percent_of(quota.require, target));
    let cap_tokens = |kind: &str| {
        quota_of(quotas, kind).map_or(i128::from(target), |quota| percent_of(quota.cap, target))
    };

    let mut total_required = 0;
    for quota in quotas {
        total_required += percent_of(quota.require, target);
    }
    let unassigned_budget = (i128::from(target) - total_required).max(0);

    let mut total_mass_for_distribution = 0;
    for partition in partitions {
        if cap_tokens(partition.kind) > require_tokens(partition.kind) {
            total_mass_for_distribution += partition.token_mass;
        }
    }

    let mut kind_budgets = Vec::new();
    for partition in partitions {
        let require = require_tokens(partition.kind);
        let cap = cap_tokens(partition.kind);
        let mut proportional = 0;
        if total_mass_for_distribution > 0 && cap > require {
            proportional = floor_share(
                unassigned_budget,
                partition.token_mass,
                total_mass_for_distribution,
            );
        }
        kind_budgets.push(require.saturating_add(proportional).min(cap));
    }
    kind_budgets
}

// floor(percent / 100.0 * targetTokens), in that order of evaluation (R067).
fn percent_of(percent: f64, target: i64) -> i128 {
    floor(percent / 100.0 * target as f64)
}

fn quota_of<'q>(quotas: &'q [Quota], kind: &str) -> Option<&'q Quota> {
    quotas.iter().find(|quota| same_kind(&quota.kind, kind))
}

// COUNT-QUOTA-SLICE(scoredItems, budget, entries, innerSlicer, scarcity)
fn count_quota_slice<'a>(
    scored: &[Scored<'a>],
    budget: Limits,
    entries: &[CountEntry],
    inner: &Document,
    throws: bool,
) -> Outcome<'a> {
    if scored.is_empty() || budget.target_tokens <= 0 {
        return Ok(Sliced::default());
    }
    let mut phase_1 = count_satisfy("CountQuotaSlice", scored, entries, throws)?;
    let (residual, residual_budget) = residual_after(&phase_1, scored, budget);
    let inner_sliced = slice(inner, &residual, residual_budget)?;

    let mut result = Sliced {
        selected: std::mem::take(&mut phase_1.committed),
        shortfalls: vec![std::mem::take(&mut phase_1.shortfalls)],
        rejections: Vec::new(),
    };
    result.shortfalls.extend(inner_sliced.shortfalls);
    result.rejections.extend(inner_sliced.rejections);
    enforce_caps(
        &mut result,
        &inner_sliced.selected,
        entries,
        phase_1.selected_count,
    );
    Ok(result)
}

// COUNT-KNAPSACK-CAP(scoredItems, budget, entries, knapsack, scarcity)
fn count_knapsack_cap<'a>(
    scored: &[Scored<'a>],
    budget: Limits,
    entries: &[CountEntry],
    bucket_size: i64,
    throws: bool,
) -> Outcome<'a> {
    if scored.is_empty() || budget.target_tokens <= 0 {
        return Ok(Sliced::default());
    }
    let mut phase_1 = count_satisfy("CountConstrainedKnapsackSlice", scored, entries, throws)?;
    let (residual, residual_budget) = residual_after(&phase_1, scored, budget);
    let knapsack_selected = knapsack_slice(&residual, residual_budget, bucket_size)?;
    let inner_selected = by_score_descending(&knapsack_selected); // D180, stable (R080)

    let mut result = Sliced {
        selected: std::mem::take(&mut phase_1.committed),
        shortfalls: vec![std::mem::take(&mut phase_1.shortfalls)],
        rejections: Vec::new(),
    };
    enforce_caps(
        &mut result,
        &inner_selected,
        entries,
        phase_1.selected_count,
    );
    Ok(result)
}

/// What Phase 1 of the count slicers leaves behind.
struct CountSatisfied<'a> {
    committed: Vec<Scored<'a>>,
    /// `selectedCount`, one number per entry.
    selected_count: Vec<i64>,
    pre_allocated_tokens: i128,
    shortfalls: Vec<Shortfall>,
}

// Phase 1: Count-Satisfy, the same in both count slicers; entries in configured order (R074),
// also those whose kind has no candidate (R072), at any budget (R077).
fn count_satisfy<'a>(
    slicer_name: &str,
    scored: &[Scored<'a>],
    entries: &[CountEntry],
    throws: bool,
) -> Result<CountSatisfied<'a>, Failure> {
    let mut phase_1 = CountSatisfied {
        committed: Vec::new(),
        selected_count: vec![0; entries.len()],
        pre_allocated_tokens: 0,
        shortfalls: Vec::new(),
    };
    for (position, entry) in entries.iter().enumerate() {
        if entry.require_count <= 0 {
            continue;
        }
        let mut satisfied = 0_i64;
        for candidate in by_score_descending(&of_kind(scored, &entry.kind)) {
            if satisfied >= entry.require_count {
                break;
            }
            phase_1.committed.push(candidate);
            phase_1.pre_allocated_tokens += i128::from(candidate.item.tokens);
            satisfied += 1;
        }
        phase_1.selected_count[position] = satisfied;
        if satisfied < entry.require_count {
            if throws {
                return Err(scarcity_error(slicer_name, entry, satisfied));
            }
            phase_1.shortfalls.push(shortfall(entry, satisfied));
        }
    }
    Ok(phase_1)
}

// The exact text of CCK-5, under the name of the slicer that raises it (R078).
fn scarcity_error(slicer_name: &str, entry: &CountEntry, satisfied: i64) -> Failure {
    failed(
        "SlicerConfig",
        format!(
            "{slicer_name}: candidate pool for kind '{}' has {satisfied} items but RequireCount is {}.",
            entry.kind, entry.require_count
        ),
    )
}

// RECORD-SHORTFALL(kind, requiredCount, satisfied), neither count negative.
fn shortfall(entry: &CountEntry, satisfied: i64) -> Shortfall {
    Shortfall {
        kind: entry.kind.clone(),
        required_count: usize::try_from(entry.require_count).unwrap_or(usize::MAX),
        satisfied_count: usize::try_from(satisfied).unwrap_or(usize::MAX),
    }
}

fn of_kind<'a>(scored: &[Scored<'a>], kind: &str) -> Vec<Scored<'a>> {
    let mut partition = Vec::new();
    for entry in scored {
        if same_kind(kind_of(entry.item), kind) {
            partition.push(*entry);
        }
    }
    partition
}

// SORT(candidates, by score descending), stable.
fn by_score_descending<'a>(entries: &[Scored<'a>]) -> Vec<Scored<'a>> {
    let scores: Vec<f64> = entries.iter().map(|entry| entry.score).collect();
    let mut sorted = Vec::new();
    for position in descending_positions(&scores) {
        sorted.push(entries[position]);
    }
    sorted
}

// Phase 2: the residual candidates and their budget; maxTokens is passed through (R076).
fn residual_after<'a>(
    phase_1: &CountSatisfied<'a>,
    scored: &[Scored<'a>],
    budget: Limits,
) -> (Vec<Scored<'a>>, Limits) {
    let mut residual = Vec::new();
    for entry in scored {
        let committed = phase_1.committed.iter().any(|c| c.index == entry.index);
        if !committed {
            residual.push(*entry);
        }
    }
    let residual_target = (i128::from(budget.target_tokens) - phase_1.pre_allocated_tokens).max(0);
    let residual_budget = Limits {
        max_tokens: budget.max_tokens,
        target_tokens: saturate(residual_target.min(i128::from(budget.max_tokens))),
    };
    (residual, residual_budget)
}

// Phase 3: Cap Enforcement, the same in both count slicers; counts start where Phase 1 left
// them (D181).
fn enforce_caps<'a>(
    result: &mut Sliced<'a>,
    inner_selected: &[Scored<'a>],
    entries: &[CountEntry],
    mut selected_count: Vec<i64>,
) {
    for candidate in inner_selected {
        let kind = kind_of(candidate.item);
        let Some(position) = entries.iter().position(|e| same_kind(&e.kind, kind)) else {
            result.selected.push(*candidate);
            continue;
        };
        let count = selected_count[position];
        let cap = entries[position].cap_count;
        if count >= cap {
            result.rejections.push(Rejection {
                index: candidate.index,
                cap,
                count,
            });
        } else {
            result.selected.push(*candidate);
            selected_count[position] = count + 1;
        }
    }
}
