//! Selection from a stream: what is pulled, what is kept, when it stops.

use std::cell::Cell;
use std::pin::pin;
use std::rc::Rc;
use std::task::Poll;

use cupel::{ContextBudget, CupelError, GreedySlice, ScoredItem, Slicer, StreamSlice};
use futures_util::FutureExt;
use futures_util::stream::{self, Stream};

use super::{Random, budget, contents, owned, scored};

fn batches_of(size: usize) -> StreamSlice {
    StreamSlice::new(size).expect("not zero")
}

fn slice(
    slicer: StreamSlice,
    source: impl Stream<Item = ScoredItem>,
    budget: &ContextBudget,
) -> Vec<String> {
    let kept = slicer.slice(source, budget).now_or_never();
    owned(&contents(
        &kept.expect("the stream is ready").expect("nothing fails"),
    ))
}

/// A stream of the items that counts how often it is asked, and may not be asked after its end.
fn counted(items: Vec<ScoredItem>) -> (impl Stream<Item = ScoredItem>, Rc<Cell<usize>>) {
    let pulls = Rc::new(Cell::new(0));
    let counter = Rc::clone(&pulls);
    let mut items = items.into_iter().map(Some).chain([None]);
    let source = stream::poll_fn(move |_| {
        counter.set(counter.get() + 1);
        Poll::Ready(items.next().expect("the stream has ended"))
    });
    (source, pulls)
}

/// What is kept, and how often the stream was asked for it.
fn check(size: usize, target: i64, items: &[ScoredItem], kept: &[&str], pulls: usize) {
    let (source, counter) = counted(items.to_vec());
    assert_eq!(slice(batches_of(size), source, &budget(target)), kept);
    assert_eq!(counter.get(), pulls, "pulls");
}

// proves: SLICER-1, SLICER-2, SLICER-6, GREEDY-8
#[test]
fn the_choice_is_a_subset_of_the_stream_within_the_target() {
    let mut random = Random::new(21);
    for _ in 0..500 {
        let names: Vec<_> = (0..random.below(20))
            .map(|index| index.to_string())
            .collect();
        let items: Vec<_> = names
            .iter()
            .map(|name| {
                scored(
                    name,
                    random.pick(&[-3, 0, 1, 7, 40]),
                    random.pick(&[0.0, 0.5, f64::NAN]),
                )
            })
            .collect();
        let target = random.pick(&[0, 1, 50, 1_000]);
        let budget = ContextBudget::with_target(5_000, target).unwrap();
        let slicer = batches_of(1 + random.below(5));
        let kept = slicer.slice(stream::iter(items.clone()), &budget);
        let kept = kept.now_or_never().unwrap().unwrap();
        for (index, item) in kept.iter().enumerate() {
            assert!(items.iter().any(|offered| offered.item.is_same(item)));
            assert!(!kept[..index].iter().any(|other| other.is_same(item)));
            assert!(item.tokens() >= 0);
        }
        let total: i64 = kept.iter().map(cupel::ContextItem::tokens).sum();
        assert!(total <= target);
    }
}

#[test]
fn nothing_more_is_pulled_once_the_target_is_full() {
    let items = ["a", "b", "c", "d", "e", "f"].map(|name| scored(name, 10, 0.5));
    check(2, 30, &items, &["a", "b", "c"], 4);
    check(3, 30, &items, &["a", "b", "c"], 3);
    check(1, 10, &items, &["a"], 1);
    // A rest too small for anything is still a rest.
    check(2, 35, &items, &["a", "b", "c"], 7);
}

#[test]
fn a_target_of_zero_pulls_nothing() {
    check(4, 0, &[scored("free", 0, 0.9)], &[], 0);
}

#[test]
fn the_best_of_each_batch_come_first_and_batches_are_not_compared() {
    let items = [
        scored("low", 10, 0.1),
        scored("high", 10, 0.9),
        scored("best", 10, 1.0),
    ];
    check(1, 20, &items, &["low", "high"], 2);
    check(2, 20, &items, &["high", "low"], 2);
    check(3, 20, &items, &["best", "high"], 3);
    check(2, 10, &items, &["high"], 2);
}

#[test]
fn a_stream_is_not_asked_again_after_its_end() {
    let items = ["a", "b", "c", "d"].map(|name| scored(name, 10, 0.5));
    for (size, length) in [
        (1, 4),
        (2, 4),
        (3, 4),
        (4, 4),
        (5, 4),
        (32, 0),
        (usize::MAX, 4),
    ] {
        let names = ["a", "b", "c", "d"];
        check(size, 1_000, &items[..length], &names[..length], length + 1);
    }
}

#[test]
fn a_misfit_is_passed_over_and_smaller_items_still_get_their_chance() {
    let items = [
        scored("large", 99, 1.0),
        scored("small", 5, 0.01),
        scored("tiny", 1, 0.01),
    ];
    check(1, 10, &items, &["small", "tiny"], 4);
    check(3, 10, &items, &["tiny", "small"], 4);
}

// proves: SLICER-3, GREEDY-5
#[test]
fn free_items_are_kept_as_long_as_the_stream_is_read() {
    let items = [
        scored("full", 10, 0.5),
        scored("free", 0, 0.0),
        scored("too late", 0, 1.0),
    ];
    check(2, 10, &items, &["free", "full"], 2);
    check(1, 10, &items, &["full"], 1);
    check(1, 11, &items, &["full", "free", "too late"], 4);
}

#[test]
fn negative_counts_are_passed_over_and_fill_no_batch() {
    let items = [
        scored("negative", -5, 1.0),
        scored("a", 10, 0.1),
        scored("least", i64::MIN, 1.0),
        scored("b", 10, 0.9),
    ];
    check(2, 10, &items, &["b"], 4);
    check(2, 100, &items[..1], &[], 2);
}

#[test]
fn the_largest_counts_neither_wrap_nor_fit_twice() {
    let items = [
        scored("a", i64::MAX, 0.5),
        scored("b", i64::MAX, 0.4),
        scored("c", 1, 0.3),
    ];
    check(1, i64::MAX, &items, &["a"], 1);
    check(3, i64::MAX - 1, &items, &["c"], 4);
}

#[test]
fn one_batch_over_the_whole_stream_chooses_as_greedy_does() {
    let mut random = Random::new(22);
    for _ in 0..200 {
        let items: Vec<_> = (0..10)
            .map(|index: i32| {
                let name = index.to_string();
                scored(
                    &name,
                    random.pick(&[0, 1, 7, 40]),
                    random.pick(&[0.0, 0.3, 0.9, f64::NAN]),
                )
            })
            .collect();
        let budget = budget(random.pick(&[1, 20, 60]));
        let greedy = GreedySlice.slice(&items, &budget).unwrap();
        let streamed = slice(StreamSlice::default(), stream::iter(items.clone()), &budget);
        assert_eq!(streamed, contents(&greedy));
    }
}

#[test]
fn a_stream_that_is_not_ready_is_waited_for() {
    let mut waited = false;
    let mut items = vec![scored("a", 10, 0.5), scored("b", 10, 0.5)].into_iter();
    let source = stream::poll_fn(move |_| {
        // Pending before every item, and before the end.
        waited = !waited;
        if waited {
            Poll::Pending
        } else {
            Poll::Ready(items.next())
        }
    });
    let budget = budget(100);
    let slicer = batches_of(2);
    let mut future = pin!(slicer.slice(source, &budget));
    for _ in 0..3 {
        assert!(future.as_mut().now_or_never().is_none());
    }
    let kept = future.as_mut().now_or_never().unwrap().unwrap();
    assert_eq!(contents(&kept), ["a", "b"]);
}

#[test]
fn a_batch_holds_at_least_one_item() {
    let error = StreamSlice::new(0).unwrap_err();
    assert!(matches!(error, CupelError::SlicerConfig(_)));
    assert_eq!(StreamSlice::new(32), Ok(StreamSlice::default()));
}
