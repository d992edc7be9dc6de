//! The scorers. Every procedure takes the list of all items and the position of the one that
//! is scored, so that "is item" is a comparison of positions (R007).

use chrono::{DateTime, TimeDelta, Utc};
use cupel_conformance::model::{Document, Item};

use super::document::{duration, entries, flag, list, name_of, number, text, weights};
use super::relevance::{self, Parameters, Turn};
use super::{Candidate, kind_of, same_kind};

/// `Score(item, allItems)` of a scorer.
pub(super) fn score_item(scorer: &Document, this: usize, all_items: &[Candidate]) -> f64 {
    let item = all_items[this].item;
    match name_of(scorer) {
        "recency" => recency_score(item, all_items),
        "priority" => priority_score(item, all_items),
        "kind" if scorer["weights"].is_null() => kind_score(item, &default_kind_weights()),
        "kind" => kind_score(item, &weights(scorer, "weights")),
        "tag" => {
            let ignore_case = flag(scorer, "ignore_case", false);
            tag_score(item, &weights(scorer, "tag_weights"), ignore_case)
        }
        "frequency" => frequency_score(this, all_items),
        "reflexive" => reflexive_score(item),
        "composite" => composite_score(&entries(scorer), this, all_items),
        "product" => product_score(list(scorer, "scorers"), this, all_items),
        "fusion" => {
            let (mut columns, mut weights) = (Vec::new(), Vec::new());
            for (child, weight) in entries(scorer) {
                let column = (0..all_items.len()).map(|at| score_item(child, at, all_items));
                columns.push(column.collect::<Vec<f64>>());
                weights.push(weight);
            }
            let k = number(scorer, "k", 60.0);
            match text(scorer, "method") {
                "" | "sum" => relative_sum(&columns, &weights, this),
                "reciprocal_rank" => reciprocal_rank(&columns, &weights, k, this),
                "shares" => share_of_tokens(&columns, &weights, this, all_items),
                other => panic!("the oracle has no fusion method {other}"),
            }
        }
        "relevance" | "conversation" => in_order(all_items, this, |turns, _| {
            relevance::scores(turns, &relevance::query(scorer), Parameters::of(scorer))
        }),
        "neighbor" => in_order(all_items, this, |turns, places| {
            let inner = &scorer["inner"];
            let parameters = Parameters::of(scorer);
            if name_of(inner) == "relevance" {
                let matching = Parameters::of(inner);
                let (k1, b) = (matching.k1, matching.b);
                let parameters = Parameters {
                    k1,
                    b,
                    ..parameters
                };
                return relevance::scores(turns, &relevance::query(inner), parameters);
            }
            let column = places.iter().map(|&at| score_item(inner, at, all_items));
            relevance::spread(turns, &[column.collect()], parameters)
        }),
        "scaled" => scaled_score(&scorer["inner"], this, all_items),
        "metadata_trust" => metadata_trust_score(item, number(scorer, "default_score", 0.5)),
        "decay" => {
            let now = text(scorer, "reference_time").parse().expect("a time");
            let null_timestamp_score = number(scorer, "null_timestamp_score", 0.5);
            decay_score(item, now, null_timestamp_score, &scorer["curve"])
        }
        "metadata_key" => {
            let (key, value) = (text(scorer, "key"), text(scorer, "value"));
            metadata_key_score(item, key, value, number(scorer, "boost", 0.0))
        }
        other => panic!("the oracle has no scorer {other}"),
    }
}

/// The score of an item among items in the order of their conversation: of time if all have one.
fn in_order(
    all_items: &[Candidate],
    this: usize,
    scores: impl FnOnce(&[Turn], &[usize]) -> Vec<f64>,
) -> f64 {
    let mut places: Vec<usize> = (0..all_items.len()).collect();
    if all_items.iter().all(|it| it.item.timestamp.is_some()) {
        places.sort_by_key(|&at| all_items[at].item.timestamp);
    }
    let turn = |&at: &usize| Turn::of(all_items[at].item);
    let turns: Vec<Turn> = places.iter().map(turn).collect();
    let scores = scores(&turns, &places);
    let own = places.iter().position(|&at| at == this).unwrap();
    scores[own]
}

// RECENCY-SCORE(item, allItems)
fn recency_score(item: &Item, all_items: &[Candidate]) -> f64 {
    let Some(own) = item.timestamp else {
        return 0.0;
    };
    let mut count_with_timestamp = 0_usize;
    let mut rank = 0_usize;
    for other in all_items {
        let Some(timestamp) = other.item.timestamp else {
            continue;
        };
        count_with_timestamp += 1;
        if timestamp < own {
            rank += 1;
        }
    }
    if count_with_timestamp <= 1 {
        return 1.0;
    }
    rank as f64 / (count_with_timestamp - 1) as f64
}

// PRIORITY-SCORE(item, allItems)
fn priority_score(item: &Item, all_items: &[Candidate]) -> f64 {
    let Some(own) = item.priority else {
        return 0.0;
    };
    let mut count_with_priority = 0_usize;
    let mut rank = 0_usize;
    for other in all_items {
        let Some(priority) = other.item.priority else {
            continue;
        };
        count_with_priority += 1;
        if priority < own {
            rank += 1;
        }
    }
    if count_with_priority <= 1 {
        return 1.0;
    }
    rank as f64 / (count_with_priority - 1) as f64
}

// KindScorer, Default Weights.
fn default_kind_weights() -> Vec<(String, f64)> {
    vec![
        ("SystemPrompt".to_owned(), 1.0),
        ("Memory".to_owned(), 0.8),
        ("ToolOutput".to_owned(), 0.6),
        ("Document".to_owned(), 0.4),
        ("Message".to_owned(), 0.2),
    ]
}

// KIND-SCORE(item, allItems, weights)
fn kind_score(item: &Item, weights: &[(String, f64)]) -> f64 {
    for (kind, weight) in weights {
        if same_kind(kind, kind_of(item)) {
            return *weight;
        }
    }
    0.0
}

// TAG-SCORE(item, allItems, tagWeights, totalWeight), totalWeight in configured order (R051).
fn tag_score(item: &Item, tag_weights: &[(String, f64)], ignore_case: bool) -> f64 {
    let mut total_weight = 0.0;
    for (_, weight) in tag_weights {
        total_weight += weight;
    }
    if total_weight == 0.0 || item.tags.is_empty() {
        return 0.0;
    }
    let mut matched_sum = 0.0;
    for tag in &item.tags {
        for (key, weight) in tag_weights {
            if key == tag || (ignore_case && key.eq_ignore_ascii_case(tag)) {
                matched_sum += weight;
            }
        }
    }
    let ratio = matched_sum / total_weight;
    if ratio > 1.0 { 1.0 } else { ratio }
}

// FREQUENCY-SCORE(item, allItems)
fn frequency_score(this: usize, all_items: &[Candidate]) -> f64 {
    let item = all_items[this].item;
    if item.tags.is_empty() || all_items.len() <= 1 {
        return 0.0;
    }
    let mut matching_items = 0_usize;
    for (position, other) in all_items.iter().enumerate() {
        if position == this {
            continue;
        }
        if other.item.tags.is_empty() {
            continue;
        }
        if shares_any_tag(&item.tags, &other.item.tags) {
            matching_items += 1;
        }
    }
    matching_items as f64 / (all_items.len() - 1) as f64
}

// SHARES-ANY-TAG(tagsA, tagsB)
fn shares_any_tag(tags_a: &[String], tags_b: &[String]) -> bool {
    for a in tags_a {
        for b in tags_b {
            if a.eq_ignore_ascii_case(b) {
                return true;
            }
        }
    }
    false
}

// REFLEXIVE-SCORE(item, allItems)
fn reflexive_score(item: &Item) -> f64 {
    let Some(value) = item.future_relevance_hint else {
        return 0.0;
    };
    if !value.is_finite() {
        return 0.0;
    }
    value.clamp(0.0, 1.0)
}

// COMPOSITE-SCORE(item, allItems, scorers, normalizedWeights), with the normalization of
// CONSTRUCT-COMPOSITE done on the spot.
fn composite_score(entries: &[(&Document, f64)], this: usize, all_items: &[Candidate]) -> f64 {
    let mut total_weight = 0.0;
    for (_, weight) in entries {
        total_weight += weight;
    }
    let mut result = 0.0;
    for (scorer, weight) in entries {
        let normalized_weight = weight / total_weight;
        result += score_item(scorer, this, all_items) * normalized_weight;
    }
    result
}

// R048: the product of the children's scores, children in order.
fn product_score(children: &[Document], this: usize, all_items: &[Candidate]) -> f64 {
    let mut result = 1.0;
    for child in children {
        result *= score_item(child, this, all_items);
    }
    result
}

// Fusion: the sum of weight * (score / maximum), over the sum of the weights. A score that is not
// above 0 counts as none.
fn relative_sum(columns: &[Vec<f64>], weights: &[f64], this: usize) -> f64 {
    let (mut sum, mut total) = (0.0, 0.0);
    for (column, weight) in columns.iter().zip(weights) {
        total += weight;
        let own = column[this];
        if own > 0.0 {
            let mut max = own;
            for &other in column {
                if other > max {
                    max = other;
                }
            }
            sum += weight * if own == max { 1.0 } else { own / max };
        }
    }
    sum / total
}

// Fusion: reciprocal ranks, over those of an item that is first everywhere.
fn reciprocal_rank(columns: &[Vec<f64>], weights: &[f64], k: f64, this: usize) -> f64 {
    let (mut sum, mut total) = (0.0, 0.0);
    for (column, weight) in columns.iter().zip(weights) {
        total += weight;
        let own = column[this];
        if own > 0.0 {
            let better = column.iter().filter(|other| **other > own).count();
            sum += weight * ((k + 1.0) / (k + (better + 1) as f64));
        }
    }
    sum / total
}

// Fusion: every step searches the child with the fewest tokens per weight that still likes an item,
// then its best item.
fn share_of_tokens(
    columns: &[Vec<f64>],
    weights: &[f64],
    this: usize,
    all_items: &[Candidate],
) -> f64 {
    let count = all_items.len();
    let mut is_taken = vec![false; count];
    let mut tokens = vec![0_i128; columns.len()];
    for place in 0..count {
        let mut child = None;
        for (candidate, column) in columns.iter().enumerate() {
            let likes = |at: usize| !is_taken[at] && column[at] > 0.0;
            if !(0..count).any(likes) {
                continue;
            }
            let used = |child: usize| tokens[child] as f64 / weights[child];
            if child.is_none_or(|child| used(candidate) < used(child)) {
                child = Some(candidate);
            }
        }
        let Some(child) = child else { break };
        let mut best = None;
        for at in (0..count).filter(|&at| !is_taken[at] && columns[child][at] > 0.0) {
            if best.is_none_or(|best: usize| columns[child][at] > columns[child][best]) {
                best = Some(at);
            }
        }
        let Some(best) = best else { break };
        if best == this {
            return (count - place) as f64 / count as f64;
        }
        is_taken[best] = true;
        tokens[child] += i128::from(all_items[best].item.tokens.max(0));
    }
    0.0
}

// SCALED-SCORE(item, allItems, inner); a result that is not finite becomes 0.5 (R056).
fn scaled_score(inner: &Document, this: usize, all_items: &[Candidate]) -> f64 {
    if all_items.is_empty() {
        return 0.5;
    }
    let mut raw_score = f64::NAN;
    let mut min = f64::INFINITY;
    let mut max = f64::NEG_INFINITY;
    for position in 0..all_items.len() {
        let s = score_item(inner, position, all_items);
        if s < min {
            min = s;
        }
        if s > max {
            max = s;
        }
        if position == this {
            raw_score = s;
        }
    }
    if max == min {
        return 0.5;
    }
    let scaled = (raw_score - min) / (max - min);
    if scaled.is_finite() { scaled } else { 0.5 }
}

// METADATA-TRUST-SCORE(item, allItems, config)
fn metadata_trust_score(item: &Item, default_score: f64) -> f64 {
    let Some(raw) = item.metadata.get("cupel:trust") else {
        return default_score;
    };
    let Ok(value) = raw.parse::<f64>() else {
        return default_score;
    };
    if !value.is_finite() {
        return default_score;
    }
    value.clamp(0.0, 1.0)
}

// DECAY-SCORE(item, allItems, config)
fn decay_score(
    item: &Item,
    now: DateTime<Utc>,
    null_timestamp_score: f64,
    curve: &Document,
) -> f64 {
    let Some(timestamp) = item.timestamp else {
        return null_timestamp_score;
    };
    let mut age = now - timestamp;
    if age < TimeDelta::zero() {
        age = TimeDelta::zero();
    }
    match name_of(curve) {
        "exponential" => exponential_curve(age, duration(curve, "half_life")),
        "step" => step_curve(age, list(curve, "windows")),
        "window" => window_curve(age, duration(curve, "max_age")),
        other => panic!("the oracle has no curve {other}"),
    }
}

// EXPONENTIAL-CURVE(age, halfLife)
fn exponential_curve(age: TimeDelta, half_life: TimeDelta) -> f64 {
    2_f64.powf(-duration_to_seconds(age) / duration_to_seconds(half_life))
}

// duration_to_seconds, at the full resolution of the duration (R053).
fn duration_to_seconds(duration: TimeDelta) -> f64 {
    duration.num_seconds() as f64 + f64::from(duration.subsec_nanos()) / 1e9
}

// STEP-CURVE(age, windows)
fn step_curve(age: TimeDelta, windows: &[Document]) -> f64 {
    let mut score_of_last = 0.0;
    for window in windows {
        let score = number(window, "score", 0.0);
        if duration(window, "max_age") > age {
            return score;
        }
        score_of_last = score;
    }
    score_of_last
}

// WINDOW-CURVE(age, maxAge)
fn window_curve(age: TimeDelta, max_age: TimeDelta) -> f64 {
    if age < max_age {
        return 1.0;
    }
    0.0
}

// METADATA-KEY-SCORE(item, allItems, config)
fn metadata_key_score(item: &Item, key: &str, value: &str, boost: f64) -> f64 {
    let Some(raw) = item.metadata.get(key) else {
        return 1.0;
    };
    if raw != value {
        return 1.0;
    }
    boost
}
