//! `cupel::placer`: the two built-in orders and a custom one.

use chrono::{TimeZone, Utc};
use cupel::{
    ChronologicalPlacer, ContextItem, ContextItemBuilder, Placer, ScoredItem, UShapedPlacer,
};

use super::{contents, scored};

#[test]
fn placer_methods_have_their_signatures() {
    let _: fn(&ChronologicalPlacer, &[ScoredItem]) -> Vec<ContextItem> = Placer::place;
    let _: fn(&UShapedPlacer, &[ScoredItem]) -> Vec<ContextItem> = Placer::place;
}

fn at_hour(content: &str, hour: u32) -> ScoredItem {
    let timestamp = Utc.with_ymd_and_hms(2024, 6, 1, hour, 0, 0).unwrap();
    let item = ContextItemBuilder::new(content, 1).timestamp(timestamp);
    ScoredItem {
        item: item.build().unwrap(),
        score: 0.5,
    }
}

/// The placer puts the items in this order.
#[track_caller]
fn check(placer: &dyn Placer, items: &[ScoredItem], expected: &[&str]) {
    assert_eq!(contents(&placer.place(items)), expected);
}

#[test]
fn chronological_goes_by_time_and_puts_the_untimed_last() {
    let items = [
        scored("untimed", 1, 0.9),
        at_hour("noon", 12),
        at_hour("dawn", 6),
        at_hour("noon again", 12),
        scored("untimed too", 1, 1.0),
    ];
    check(
        &ChronologicalPlacer,
        &items,
        &["dawn", "noon", "noon again", "untimed", "untimed too"],
    );
    check(&ChronologicalPlacer, &[], &[]);
}

#[test]
fn u_shape_puts_the_best_at_the_edges() {
    let falling = ["A", "B", "C", "D", "E"].map(|name| {
        let score = 1.0 / f64::from(name.as_bytes()[0]);
        scored(name, 1, score)
    });
    check(&UShapedPlacer, &falling, &["A", "C", "E", "D", "B"]);
    let equal = ["A", "B", "C", "D"].map(|name| scored(name, 1, 0.5));
    check(&UShapedPlacer, &equal, &["A", "C", "D", "B"]);
}

/// A custom placer with the one required method.
struct Reverse;

impl Placer for Reverse {
    fn place(&self, items: &[ScoredItem]) -> Vec<ContextItem> {
        items.iter().rev().map(|entry| entry.item.clone()).collect()
    }
}

#[test]
fn a_custom_placer_is_used_like_a_built_in_one() {
    let items = [scored("a", 1, 0.5), scored("b", 1, 0.5)];
    let placers: Vec<Box<dyn Placer>> = vec![
        Box::new(ChronologicalPlacer),
        Box::new(UShapedPlacer),
        Box::new(Reverse),
    ];
    let orders = [["a", "b"], ["a", "b"], ["b", "a"]];
    for (placer, order) in placers.iter().zip(orders) {
        check(placer.as_ref(), &items, &order);
    }
}
