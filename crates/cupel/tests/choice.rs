//! The exact slicer over views: multiple-choice knapsack.

use cupel::*;
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};

fn budget(tokens: i64) -> ContextBudget {
    ContextBudget::with_target(tokens, tokens).unwrap()
}

/// A kept rank with its view, or `None` for the item in full.
type Kept = (usize, Option<usize>);

/// An item with a score and views `(tokens, value)`.
fn scored(score: f64, tokens: i64, views: &[(i64, f64)]) -> ScoredItem {
    let views = views.iter().enumerate().map(|(index, &(tokens, value))| {
        let view = ContextView::new(format!("view {index}"), tokens).with_value(value);
        view.with_level(-i64::try_from(index).unwrap())
    });
    let item = ContextItem::builder("item", tokens).views(views.collect());
    let item = item.build().unwrap();
    ScoredItem { item, score }
}

fn select(items: &[ScoredItem], target: i64) -> Vec<Kept> {
    let ranked = ScoredRef::from_list(items);
    let selection = ChoiceSlice::new().select(&ranked, &budget(target)).unwrap();
    let view_of = |rank: usize| {
        let mut views = selection.views().iter();
        views.find(|(shortened, _)| *shortened == rank).map(|v| v.1)
    };
    let kept = selection.kept().iter();
    kept.map(|&rank| (rank, view_of(rank))).collect()
}

#[test]
fn a_sweep_is_exact_at_any_range_and_finds_every_interval() {
    // With 10 tokens the first item fits in full, with 11 its view and the second item score more.
    let first = ContextItem::builder("first", 10).future_relevance_hint(1.0);
    let first = first.view(ContextView::new("view", 4).with_value(0.6));
    let second = ContextItem::builder("second", 7).future_relevance_hint(0.5);
    let items = [first.build().unwrap(), second.build().unwrap()];
    let pipeline = Pipeline::new(ReflexiveScorer, ChoiceSlice::new(), ChronologicalPlacer);
    let last = 1 << 40;
    let sweep = pipeline.sweep(&items, &budget(100), 0..=last).unwrap();
    assert!(sweep.exact);
    assert_eq!(sweep.items[0].intervals, [(4, last)]);
    assert_eq!(sweep.items[1].intervals, [(11, last)]);
    let views = sweep.items[0].views.iter();
    let views: Vec<_> = views.map(|it| (it.from, it.to, it.view)).collect();
    assert_eq!(views, [(4, 9, 0), (11, 16, 0)]);
    for at in [4, 10, 11, 17] {
        let one = pipeline.sweep(&items, &budget(100), at..=at).unwrap();
        assert_eq!(one.selection_at(at), sweep.selection_at(at), "{at}");
    }
}

#[test]
fn the_best_choice_by_hand() {
    // Passages with an extract of 80 % and a title of 10 % of the score.
    let passage = |score| scored(score, 100, &[(40, 0.8), (5, 0.1)]);
    let items = [passage(0.9), passage(0.8), passage(0.5)];
    let (full, extract, title) = (None, Some(0), Some(1));
    let rows: [(i64, &[Kept]); 8] = [
        (300, &[(0, full), (1, full), (2, full)]),
        (240, &[(0, full), (1, full), (2, extract)]),
        // 0.90 + 0.64 + 0.40, against 0.90 + 0.80 + 0.05.
        (239, &[(0, full), (1, extract), (2, extract)]),
        (179, &[(0, extract), (1, extract), (2, extract)]),
        (119, &[(0, extract), (1, extract), (2, title)]),
        (84, &[(0, extract), (1, extract)]),
        (44, &[(0, extract)]),
        (4, &[]),
    ];
    for (target, expected) in rows {
        assert_eq!(select(&items, target), expected, "target {target}");
    }
}

#[test]
fn ties_go_to_fewer_tokens_and_then_to_earlier_ranks_and_longer_forms() {
    // The same value with fewer tokens.
    let items = [scored(0.5, 10, &[]), scored(0.5, 9, &[])];
    assert_eq!(select(&items, 18), [(1, None)]);
    // The same value and tokens: the earlier rank.
    let items = [scored(0.5, 10, &[]), scored(0.5, 10, &[])];
    assert_eq!(select(&items, 19), [(0, None)]);
    // The same value and tokens in two ways: the first rank in full.
    let half = |score| scored(score, 10, &[(5, 0.5)]);
    let items = [half(0.4), half(0.4)];
    assert_eq!(select(&items, 10), [(0, None)]);
    // A view with the whole value and fewer tokens.
    let items = [scored(0.5, 10, &[(9, 1.0), (3, 1.0)])];
    assert_eq!(select(&items, 10), [(0, Some(1))]);
}

#[test]
fn items_without_value_or_tokens() {
    let items = [
        scored(f64::NAN, 5, &[(0, 0.5)]),
        scored(-1.0, 5, &[]),
        scored(0.0, 0, &[]),
        scored(0.0, 5, &[(1, 1.0)]),
    ];
    assert_eq!(select(&items, 100), [(0, Some(0)), (2, None)]);
    assert_eq!(select(&items, 0), []);
    assert_eq!(select(&[], 100), []);
}

#[test]
fn token_counts_at_the_end_of_the_range_do_not_overflow() {
    let items = [
        scored(1.0, i64::MAX, &[(i64::MAX - 1, 0.9)]),
        scored(0.5, i64::MAX, &[(1, 0.1)]),
        scored(f64::INFINITY, 3, &[]),
    ];
    // The infinite score saturates and outweighs the rest.
    assert_eq!(select(&items, i64::MAX), [(1, Some(0)), (2, None)]);
    assert_eq!(select(&items[..2], i64::MAX), [(0, None)]);
    assert_eq!(select(&items[..2], i64::MAX - 1), [(0, Some(0))]);
}

#[test]
fn too_many_states_are_an_error() {
    let items: Vec<_> = (0..12)
        .map(|n| scored(0.1 + f64::from(n).sqrt(), 1 << n, &[]))
        .collect();
    let ranked = ScoredRef::from_list(&items);
    let select = |limit: u64, target| {
        let slicer = ChoiceSlice::new().with_state_limit(limit).unwrap();
        slicer
            .select(&ranked, &budget(target))
            .map(|s| s.kept().len())
    };
    let error = select(100, 4_000).unwrap_err();
    assert_eq!(error, CupelError::TooManyStates { limit: 100 });
    assert_eq!(error.code(), "TooManyStates");
    assert_eq!(
        error.to_string(),
        "ChoiceSlice exceeds its limit of 100 states; offer fewer items or views, or raise the limit"
    );
    assert!(select(100, 2).is_ok());
    assert!(select(1 << 20, 4_000).is_ok());
    // A sweep that exceeds the limit tries budgets one by one.
    let limited = ChoiceSlice::new().with_state_limit(100).unwrap();
    assert!(limited.with_state_limit(0).is_err());
    let pipeline = pipeline(limited);
    let items: Vec<_> = items.into_iter().map(|scored| scored.item).collect();
    let sweep = pipeline.sweep(&items, &budget(0), 0..=4_000).unwrap();
    assert_eq!(sweep.steps[0].error, None);
}

#[cfg(feature = "serde")]
#[test]
fn a_document_has_the_limit_unless_it_is_the_default() {
    use cupel::config::SlicerConfig;

    let limited = ChoiceSlice::new().with_state_limit(7).unwrap();
    for (slicer, state_limit) in [(ChoiceSlice::new(), None), (limited, Some(7))] {
        let config = SlicerConfig::Choice { state_limit };
        assert_eq!(slicer.to_config().unwrap(), config);
        assert_eq!(config.build().unwrap().to_config().unwrap(), config);
    }
}

fn pipeline(slicer: impl Slicer + 'static) -> Pipeline {
    Pipeline::builder()
        .scorer(ReflexiveScorer)
        .slicer(slicer)
        .placer(ChronologicalPlacer)
        .deduplication(false)
        .build()
        .unwrap()
}

/// Tries all choices, preferred ones first, and keeps the first of the best.
fn brute_force(items: &[ScoredItem], target: i64) -> Vec<Kept> {
    #[expect(clippy::cast_possible_truncation, reason = "at most 10^9")]
    fn units(value: f64) -> i64 {
        let units = (value * 1e9).floor();
        if units > 0.0 { units as i64 } else { 0 }
    }
    fn extend(
        items: &[ScoredItem],
        kept: &mut Vec<Kept>,
        rank: usize,
        left: i64,
        value: i64,
        best: &mut Option<(i64, i64, Vec<Kept>)>,
    ) {
        let Some(ScoredItem { item, score }) = items.get(rank) else {
            let is_better = match best {
                Some((most, room, _)) => (value, left) > (*most, *room),
                None => true,
            };
            if is_better {
                *best = Some((value, left, kept.clone()));
            }
            return;
        };
        let full = (None, item.tokens(), 1.0);
        let views = item.views().iter().enumerate();
        let views = views.map(|(index, view)| (Some(index), view.tokens(), view.value().unwrap()));
        for (view, tokens, share) in std::iter::once(full).chain(views) {
            if tokens <= left {
                kept.push((rank, view));
                let value = value + units(score * share);
                extend(items, kept, rank + 1, left - tokens, value, best);
                kept.pop();
            }
        }
        extend(items, kept, rank + 1, left, value, best);
    }
    let mut best = None;
    extend(items, &mut Vec::new(), 0, target, 0, &mut best);
    best.unwrap().2
}

/// Few different numbers, so that there are ties.
fn items() -> impl Strategy<Value = Vec<ScoredItem>> {
    let number = prop::sample::select(vec![0.0, 0.1, 0.25, 0.5, 0.7, 1.0]);
    let views = vec((0_i64..12, number.clone()), 0..3);
    let item = (number, 0_i64..14, views).prop_map(|(score, tokens, mut views)| {
        views.retain(|(view_tokens, _)| *view_tokens < tokens);
        scored(score, tokens, &views)
    });
    vec(item, 0..6)
}

/// The items with their scores as hints.
fn hinted(items: &[ScoredItem]) -> Vec<ContextItem> {
    let hinted = |scored: &ScoredItem| {
        let item = scored.item.to_builder();
        item.future_relevance_hint(scored.score).build().unwrap()
    };
    items.iter().map(hinted).collect()
}

fn run<T: std::fmt::Debug>(
    cases: impl Strategy<Value = T>,
    check: impl Fn(T) -> Result<(), TestCaseError>,
) {
    let config = Config {
        cases: 20 * cupel_conformance::testing::cases(100),
        failure_persistence: None,
        ..Config::default()
    };
    TestRunner::new(config)
        .run(&cases, check)
        .unwrap_or_else(|error| panic!("{error}"));
}

#[test]
fn the_choice_is_that_of_brute_force() {
    run((items(), 1_i64..60), |(items, target)| {
        prop_assert_eq!(select(&items, target), brute_force(&items, target));
        Ok(())
    });
}

#[test]
fn a_sweep_is_one_run_per_budget() {
    run((items(), 0_i64..30), |(items, first)| {
        let mut items = hinted(&items);
        let pinned = ContextItem::builder("pinned", 4).pinned(true);
        items.push(pinned.build().unwrap());
        let pipeline = pipeline(ChoiceSlice::new());
        let sweep = pipeline.sweep(&items, &budget(0), first..=60).unwrap();
        prop_assert!(sweep.exact);
        for target in first..=60 {
            let Ok(decisions) = pipeline.decide(&items, &budget(target)) else {
                prop_assert!(sweep.selection_at(target).is_empty());
                continue;
            };
            let mut window = decisions.window().to_vec();
            window.sort_unstable();
            prop_assert_eq!(sweep.selection_at(target), window, "at {}", target);
            let mut total = 0.0;
            for (candidate, item) in items.iter().enumerate() {
                let view = decisions.view(candidate);
                prop_assert_eq!(sweep.view_at(candidate, target), view, "at {}", target);
                if decisions.position(candidate).is_some() {
                    let value = view.map_or(1.0, |view| item.views()[view].value().unwrap());
                    total += decisions.score(candidate) * value;
                }
            }
            let mut steps = sweep.steps.iter();
            let step = steps.find(|step| (step.from..=step.to).contains(&target));
            let swept = step.unwrap().total_score;
            prop_assert!(
                (swept - total).abs() < 1e-9,
                "{swept} for {total} at {target}"
            );
        }
        Ok(())
    });
}

#[test]
fn explanations_agree_with_the_sweep() {
    run((items(), 0_i64..60), |(items, ceiling)| {
        let items = hinted(&items);
        let pipeline = pipeline(ChoiceSlice::new());
        let sweep = pipeline.sweep(&items, &budget(0), 0..=60).unwrap();
        for candidate in 0..items.len() {
            let why = pipeline
                .explain(&items, &budget(ceiling), candidate)
                .unwrap();
            if let Some(first) = why.in_full_at {
                let is_full = |at: i64| {
                    let is_in = sweep.selection_at(at).contains(&candidate);
                    is_in && sweep.view_at(candidate, at).is_none()
                };
                prop_assert_eq!((ceiling..=60).find(|at| is_full(*at)), Some(first));
            }
        }
        Ok(())
    });
}

#[test]
fn a_score_too_large_for_the_exact_sum_counts_with_the_value_of_its_view() {
    struct Huge;

    impl Scorer for Huge {
        fn score(&self, _item: &ContextItem, _all_items: &[ContextItem]) -> f64 {
            4e9
        }
    }

    let item = ContextItem::builder("item", 10).view(ContextView::new("view", 4).with_value(0.25));
    let pipeline = Pipeline::new(Huge, ChoiceSlice::new(), ChronologicalPlacer);
    let sweep = pipeline.sweep(&[item.build().unwrap()], &budget(0), 0..=10);
    let steps = sweep.unwrap().steps;
    let total = |at: i64| {
        steps
            .iter()
            .rfind(|step| step.from <= at)
            .map(|step| step.total_score)
    };
    let totals = [3, 4, 9, 10].map(total);
    assert_eq!(totals, [0.0, 1e9, 1e9, 4e9].map(Some));
}
