//! The contract between the pipeline, slicers and decorators of slicers.

use std::sync::{Arc, Mutex};

use cupel::slicer::slice_by_selection;
use cupel::*;

/// A slicer that keeps nothing and records the positions it was offered.
#[derive(Clone, Default)]
struct Positions(Arc<Mutex<Vec<usize>>>);

impl Slicer for Positions {
    fn slice(
        &self,
        sorted: &[ScoredItem],
        budget: &ContextBudget,
    ) -> Result<Vec<ContextItem>, CupelError> {
        slice_by_selection(self, sorted, budget)
    }

    fn select(
        &self,
        ranked: &[ScoredRef<'_>],
        _budget: &ContextBudget,
    ) -> Result<Selection, CupelError> {
        let positions = ranked.iter().map(|scored| scored.position);
        self.0.lock().unwrap().extend(positions);
        Ok(Selection::default())
    }
}

fn item(content: &str, hint: f64, group: Option<&str>) -> ContextItem {
    let item = ContextItem::builder(content, 10).future_relevance_hint(hint);
    let item = match group {
        Some(group) => item.meta(GroupSlice::KEY, group),
        None => item,
    };
    item.build().unwrap()
}

fn budget(tokens: i64) -> ContextBudget {
    ContextBudget::with_target(tokens, tokens).unwrap()
}

#[test]
fn a_slicer_sees_the_positions_of_the_candidates() {
    let pinned = ContextItem::builder("pinned", 1).pinned(true);
    let items = [
        item("low", 0.1, Some("pair")),
        pinned.build().unwrap(),
        item("high", 0.9, None),
        item("copy", 0.5, None),
        item("copy", 0.6, None),
        item("best of the pair", 0.8, Some("pair")),
    ];
    let offered = |wrap: fn(Positions) -> Box<dyn Slicer>| {
        let slicer = Positions::default();
        let pipeline = Pipeline::new(ReflexiveScorer, wrap(slicer.clone()), ChronologicalPlacer);
        pipeline.run(&items, &budget(100)).unwrap();
        slicer.0.lock().unwrap().clone()
    };
    assert_eq!(offered(|slicer| Box::new(slicer)), [2, 5, 4, 0]);
    assert_eq!(
        offered(|slicer| Box::new(GroupSlice::new(slicer))),
        [2, 5, 4]
    );
    // Two kinds would be two lists; all items here are of one kind.
    let quota = |slicer| Box::new(QuotaSlice::new(Vec::new(), slicer).unwrap()) as _;
    assert_eq!(offered(quota), [2, 5, 4, 0]);
}

#[test]
fn outside_a_run_a_position_is_an_index() {
    let scored = |content: &str, score| ScoredItem {
        item: item(content, 0.0, None),
        score,
    };
    let slicer = Positions::default();
    let list = [scored("a", 0.9), scored("b", 0.8)];
    slicer.slice(&list, &budget(100)).unwrap();
    assert_eq!(*slicer.0.lock().unwrap(), [0, 1]);
}
