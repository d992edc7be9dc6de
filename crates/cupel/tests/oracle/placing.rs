//! The placers.

use std::cmp::Ordering;

use cupel_conformance::model::Document;

use super::Scored;
use super::document::name_of;
use super::numbers::descending_positions;

/// `Place(items)` of a placer.
pub(super) fn place<'a>(placer: &Document, items: &[Scored<'a>]) -> Vec<Scored<'a>> {
    match name_of(placer) {
        "chronological" => chronological_place(items),
        "u-shaped" => u_shaped_place(items),
        other => panic!("the oracle has no placer {other}"),
    }
}

// CHRONOLOGICAL-PLACE(items)
fn chronological_place<'a>(items: &[Scored<'a>]) -> Vec<Scored<'a>> {
    let mut sortable: Vec<usize> = (0..items.len()).collect();
    sortable.sort_by(|&a, &b| chronological_compare(items, a, b));
    sortable.iter().map(|&position| items[position]).collect()
}

// CHRONOLOGICAL-COMPARE(a, b); the index is the position in the placer's input (R087).
fn chronological_compare(items: &[Scored], a: usize, b: usize) -> Ordering {
    match (items[a].item.timestamp, items[b].item.timestamp) {
        (Some(of_a), Some(of_b)) => of_a.cmp(&of_b).then(a.cmp(&b)),
        (Some(_), None) => Ordering::Less,
        (None, Some(_)) => Ordering::Greater,
        (None, None) => a.cmp(&b),
    }
}

// U-SHAPED-PLACE(items)
fn u_shaped_place<'a>(items: &[Scored<'a>]) -> Vec<Scored<'a>> {
    let scores: Vec<f64> = items.iter().map(|entry| entry.score).collect();
    let ranking = descending_positions(&scores);
    let mut result = items.to_vec();
    let mut left = 0;
    let mut places_free_up_to = items.len();
    for (rank, &position) in ranking.iter().enumerate() {
        if rank % 2 == 0 {
            result[left] = items[position];
            left += 1;
        } else {
            places_free_up_to -= 1;
            result[places_free_up_to] = items[position];
        }
    }
    result
}
