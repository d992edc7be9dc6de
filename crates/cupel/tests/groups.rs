//! Groups: kept or dropped together, through every slicer.

use std::collections::BTreeSet;

use cupel::*;
use cupel_conformance::model::{Document, Failure, Task};
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use serde_json::json;

use crate::adapter::Surface;
use crate::analysis::written_search;
use crate::{adapter, arbitrary};

const SCORES: [GroupScore; 3] = [GroupScore::Max, GroupScore::Mean, GroupScore::Sum];

/// A random slicer with a budget and ranked items, and a group number or none for every item.
#[derive(Debug)]
struct Case {
    slicer: Document,
    budget: ContextBudget,
    ranked: Vec<ScoredItem>,
    groups: Vec<Option<u8>>,
}

fn check(default_cases: u32, check: impl Fn(&Case) -> Result<(), TestCaseError>) {
    let config = Config {
        cases: cupel_conformance::testing::cases(default_cases),
        failure_persistence: None,
        ..Config::default()
    };
    let groups = vec(option::weighted(0.7, 0_u8..4), 16);
    let cases = (arbitrary::slice(), groups).prop_filter_map("buildable", |(task, groups)| {
        let Task::Slice {
            slicer,
            budget,
            items,
        } = task
        else {
            return None;
        };
        build(&slicer).ok()?;
        let ranked = items.iter().map(adapter::scored_item);
        let mut ranked: Vec<ScoredItem> = ranked.collect::<Result<_, _>>().ok()?;
        ranked.retain(|scored| scored.item.tokens() >= 0);
        ranked.sort_by(|a, b| rank(a.score, b.score));
        Some(Case {
            slicer,
            budget: adapter::build_budget(&budget).ok()?,
            ranked,
            groups,
        })
    });
    TestRunner::new(config)
        .run(&cases, |case| check(&case))
        .unwrap_or_else(|error| panic!("{error}"));
}

/// The order of a ranking, NaN last.
fn rank(a: f64, b: f64) -> std::cmp::Ordering {
    b.partial_cmp(&a)
        .unwrap_or_else(|| a.is_nan().cmp(&b.is_nan()))
}

fn build(slicer: &Document) -> Result<Box<dyn Slicer>, Failure> {
    let policy = json!({ "scorer": { "type": "recency" }, "slicer": slicer });
    let config = Surface::Batch.config(&policy)?;
    Ok(config.slicer.build().expect("the policy is valid"))
}

impl Case {
    fn slicer(&self) -> Box<dyn Slicer> {
        build(&self.slicer).unwrap()
    }

    /// The items with their groups written into them.
    fn grouped(&self) -> Vec<ScoredItem> {
        let named = |(scored, group): (&ScoredItem, &Option<u8>)| match group {
            Some(group) => named(scored, &group.to_string()),
            None => scored.clone(),
        };
        self.ranked.iter().zip(&self.groups).map(named).collect()
    }
}

fn named(scored: &ScoredItem, group: &str) -> ScoredItem {
    let item = scored.item.to_builder().meta(GroupSlice::KEY, group);
    ScoredItem {
        item: item.build().unwrap(),
        score: scored.score,
    }
}

fn select(
    slicer: &dyn Slicer,
    ranked: &[ScoredItem],
    budget: &ContextBudget,
) -> Result<Selection, CupelError> {
    let ranked = ScoredRef::from_list(ranked);
    slicer.select(&ranked, budget)
}

/// Groups as the documentation has them: the members' ranks, best groups first, and the candidate
/// the inner slicer is to see.
fn by_hand(case: &Case, score: GroupScore) -> Vec<(Vec<usize>, ScoredItem)> {
    let mut groups: Vec<(Option<u8>, Vec<usize>)> = Vec::new();
    for rank in 0..case.ranked.len() {
        let name = case.groups[rank];
        match groups.iter_mut().find(|group| group.0 == name) {
            Some(group) if name.is_some() => group.1.push(rank),
            _ => groups.push((name, vec![rank])),
        }
    }
    let candidate = |(_, members): (_, Vec<usize>)| {
        let items = || members.iter().map(|&rank| &case.ranked[rank]);
        let mut kind = items().next().unwrap().item.clone();
        for scored in items() {
            if scored.item.tokens() > kind.tokens() {
                kind = scored.item.clone();
            }
        }
        let mut scores = items().map(|scored| scored.score);
        let first = scores.next().unwrap();
        let score = match score {
            GroupScore::Max => first,
            GroupScore::Sum => scores.fold(first, |sum, score| sum + score),
            GroupScore::Mean => scores.fold(first, |sum, score| sum + score) / items().len() as f64,
        };
        let tokens = items().map(|scored| scored.item.tokens()).sum();
        let item = ContextItem::builder("group", tokens).kind(kind.kind().clone());
        let item = item.build().unwrap();
        (members, ScoredItem { item, score })
    };
    let mut groups: Vec<_> = groups.into_iter().map(candidate).collect();
    groups.sort_by(|a, b| rank(a.1.score, b.1.score));
    groups
}

#[test]
fn a_choice_of_groups_is_the_inner_slicers_choice_of_one_candidate_each() {
    check(4_000, |case| {
        for score in SCORES {
            let groups = by_hand(case, score);
            let candidates: Vec<_> = groups.iter().map(|(_, c)| c.clone()).collect();
            let expected = select(&case.slicer(), &candidates, &case.budget).map(|chosen| {
                let kept = chosen.kept().iter();
                kept.flat_map(|&group| groups[group].0.clone()).collect()
            });
            let slicer = GroupSlice::new(case.slicer()).with_score(score);
            let chosen = select(&slicer, &case.grouped(), &case.budget);
            let kept = chosen.map(|chosen| chosen.kept().to_vec());
            prop_assert_eq!(kept, expected, "{:?}", score);
        }
        Ok(())
    });
}

#[test]
fn groups_within_shares_and_counts_are_groups_around_them() {
    check(4_000, |case| {
        let around = GroupSlice::new(case.slicer());
        let mut within = case.slicer.clone();
        let mut innermost = &mut within;
        while !innermost["inner"].is_null() {
            innermost = &mut innermost["inner"];
        }
        *innermost = json!({ "type": "group", "inner": innermost.take() });
        let within = build(&within).unwrap();
        let items = case.grouped();
        prop_assert_eq!(
            select(&within, &items, &case.budget),
            select(&around, &items, &case.budget)
        );
        Ok(())
    });
}

#[test]
fn a_group_is_kept_whole_or_dropped_whole_and_says_why() {
    check(4_000, |case| {
        let slicer = GroupSlice::new(case.slicer());
        let Ok(chosen) = select(&slicer, &case.grouped(), &case.budget) else {
            return Ok(());
        };
        let kept: BTreeSet<usize> = chosen.kept().iter().copied().collect();
        for rank in 0..case.ranked.len() {
            let group = case.groups[rank];
            let members = (0..case.ranked.len())
                .filter(|&other| other == rank || group.is_some() && case.groups[other] == group);
            let members: Vec<usize> = members.collect();
            for other in &members {
                prop_assert_eq!(kept.contains(&rank), kept.contains(other));
            }
            let reason = chosen.refusals().iter().find(|refusal| refusal.0 == rank);
            if members.len() > 1 && !kept.contains(&rank) {
                match &reason.expect("a dropped group gives its reason").1 {
                    Refusal::Because(ExclusionReason::GroupExcluded {
                        group_size,
                        group_tokens,
                        ..
                    }) => {
                        let tokens = members.iter().map(|&rank| case.ranked[rank].item.tokens());
                        prop_assert_eq!(*group_size, members.len());
                        prop_assert_eq!(*group_tokens, tokens.sum::<i64>());
                    }
                    Refusal::Because(ExclusionReason::CountCapExceeded { .. }) => {}
                    other => prop_assert!(false, "{:?}", other),
                }
            }
        }
        Ok(())
    });
}

#[test]
fn where_every_group_has_one_item_everything_is_the_inner_slicers() {
    check(1_000, |case| {
        let single = |(rank, scored): (usize, &ScoredItem)| match rank % 3 {
            0 => scored.clone(),
            _ => named(scored, &rank.to_string()),
        };
        let single: Vec<ScoredItem> = case.ranked.iter().enumerate().map(single).collect();
        for score in SCORES {
            let grouping = GroupSlice::new(case.slicer()).with_score(score);
            prop_assert_eq!(
                select(&grouping, &single, &case.budget),
                select(&case.slicer(), &single, &case.budget)
            );
            let items: Vec<ContextItem> = single.iter().map(|s| s.item.clone()).collect();
            let whole = |slicer: Box<dyn Slicer>| {
                let pipeline = Pipeline::new(RecencyScorer, slicer, UShapedPlacer);
                let mut report = pipeline.dry_run(&items, &case.budget);
                if let Ok(report) = &mut report {
                    report.events.clear(); // they hold durations
                }
                let window = pipeline.run_indices(&items, &case.budget);
                let sweep = pipeline.sweep(&items, &case.budget, 0..=60);
                format!("{window:?} {report:?} {sweep:?}")
            };
            prop_assert_eq!(whole(Box::new(grouping)), whole(case.slicer()));
        }
        Ok(())
    });
}

/// A greedy and a knapsack pipeline of groups.
fn pipelines() -> [Pipeline; 2] {
    let slicers: [Box<dyn Slicer>; 2] = [
        Box::new(GroupSlice::new(GreedySlice)),
        Box::new(GroupSlice::new(KnapsackSlice::new(1).unwrap())),
    ];
    slicers.map(|slicer| {
        let policy = PolicyBuilder::new()
            .scorer(RecencyScorer)
            .slicer(slicer)
            .placer(ChronologicalPlacer)
            .overflow_strategy(OverflowStrategy::Proceed)
            .deduplication(false);
        policy.build().unwrap()
    })
}

#[test]
fn a_sweep_over_groups_equals_one_run_per_budget() {
    check(300, |case| {
        let items: Vec<ContextItem> = case.grouped().iter().map(|s| s.item.clone()).collect();
        for pipeline in pipelines() {
            let sweep = pipeline.sweep(&items, &budget(250), 0..=250).unwrap();
            prop_assert!(sweep.exact);
            for target in 0..=250 {
                if let Ok(mut window) = pipeline.run_indices(&items, &budget(target)) {
                    window.sort_unstable();
                    prop_assert_eq!(window, sweep.selection_at(target), "at {}", target);
                }
            }
        }
        Ok(())
    });
}

#[test]
fn a_search_among_groups_equals_the_written_bisection() {
    check(300, |case| {
        let items: Vec<ContextItem> = case.grouped().iter().map(|s| s.item.clone()).collect();
        for pipeline in pipelines() {
            for (index, item) in items.iter().enumerate() {
                let ceiling = i32::try_from(item.tokens() + 200).unwrap();
                let found = pipeline.find_min_budget_for(&items, &budget(1), item, ceiling);
                let expected = written_search(&pipeline, &items, index, ceiling.into());
                let found = found.map(|least| least.map(i64::from));
                prop_assert_eq!(found, expected, "item {}", index);
            }
        }
        Ok(())
    });
}

fn budget(tokens: i64) -> ContextBudget {
    ContextBudget::with_target(tokens, tokens).unwrap()
}

fn member(content: &str, tokens: i64, hint: f64, group: &str) -> ContextItemBuilder {
    ContextItem::builder(content, tokens)
        .future_relevance_hint(hint)
        .meta(GroupSlice::KEY, group)
}

fn run(items: &[ContextItemBuilder], slicer: impl Slicer + 'static, target: i64) -> Vec<String> {
    let items: Vec<ContextItem> = items.iter().map(|i| i.clone().build().unwrap()).collect();
    let pipeline = Pipeline::new(ReflexiveScorer, slicer, ChronologicalPlacer);
    let report = pipeline.dry_run(&items, &budget(target)).unwrap();
    let included = report.included.iter().map(|i| i.item.content().to_owned());
    let excluded = report.excluded.iter();
    let excluded = excluded.map(|out| format!("not {}: {}", out.item.content(), out.reason));
    included.chain(excluded).collect()
}

#[test]
fn a_group_that_does_not_fit_says_how_large_it_is() {
    let items = [
        member("call", 12, 0.1, "g"),
        member("one", 400, 0.9, "g"),
        member("two", 400, 0.2, "g"),
        member("alone", 900, 0.5, "h"),
        member("small", 40, 0.3, "i"),
    ];
    let group = "GroupExcluded: its group of 3 items (812 tokens) does not fit, 60 available";
    assert_eq!(
        run(&items, GroupSlice::new(GreedySlice), 100),
        [
            "small".to_owned(),
            format!("not one: {group}"),
            "not alone: BudgetExceeded: 900 tokens requested, 60 available".to_owned(),
            format!("not two: {group}"),
            format!("not call: {group}"),
        ]
    );
}

#[test]
fn a_group_has_the_best_the_mean_or_the_sum_of_its_scores() {
    // The groups have 12 tokens each, and one of them fits.
    let items = [
        member("a", 6, 0.9, "best"),
        member("b", 6, 0.1, "best"),
        member("c", 6, 0.7, "mean"),
        member("d", 6, 0.7, "mean"),
        member("e", 4, 0.6, "sum"),
        member("f", 4, 0.6, "sum"),
        member("g", 4, 0.6, "sum"),
    ];
    let rows = [
        (GroupScore::Max, vec!["a", "b"]),
        (GroupScore::Mean, vec!["c", "d"]),
        (GroupScore::Sum, vec!["e", "f", "g"]),
    ];
    for (score, expected) in rows {
        let groups = GroupSlice::new(GreedySlice).with_score(score);
        let shares = QuotaSlice::new(Vec::new(), groups.clone()).unwrap();
        let slicers: [Box<dyn Slicer>; 2] = [Box::new(groups), Box::new(shares)];
        for slicer in slicers {
            let window = run(&items, slicer, 12);
            assert_eq!(window[..expected.len()], expected, "{score:?}");
        }
    }
}

#[test]
fn a_pinned_member_stays_and_the_rest_of_its_group_costs_its_own_tokens() {
    let items = [
        member("pinned", 60, 0.0, "g").pinned(true),
        member("a", 20, 0.5, "g"),
        member("b", 20, 0.5, "g"),
    ];
    let slicer = || GroupSlice::new(GreedySlice);
    assert_eq!(run(&items, slicer(), 100), ["pinned", "a", "b"]);
    let group = "GroupExcluded: its group of 2 items (40 tokens) does not fit, 39 available";
    assert_eq!(
        run(&items, slicer(), 99),
        [
            "pinned".to_owned(),
            format!("not a: {group}"),
            format!("not b: {group}")
        ]
    );
}

#[test]
fn a_group_counts_as_one_item_of_its_largest_members_kind() {
    let tool = |content: &str, hint, group: &str| {
        member(content, 30, hint, group).kind(ContextKind::tool_output())
    };
    let items = [
        member("call 1", 5, 0.9, "1"),
        tool("result 1", 0.8, "1"),
        member("call 2", 5, 0.7, "2"),
        tool("result 2", 0.6, "2"),
    ];
    let one = CountQuotaEntry::new(ContextKind::tool_output(), 0, 1).unwrap();
    let counts = |inner: GroupSlice| {
        CountQuotaSlice::new(vec![one.clone()], inner, ScarcityBehavior::Degrade).unwrap()
    };
    let cap = "CountCapExceeded: kind 'ToolOutput' has 1 items, may have 1";
    assert_eq!(
        run(&items, counts(GroupSlice::new(GreedySlice)), 1000),
        [
            "call 1".to_owned(),
            "result 1".to_owned(),
            format!("not call 2: {cap}"),
            format!("not result 2: {cap}"),
        ]
    );
}

#[test]
fn a_count_of_groups_that_falls_short_is_reported() {
    let items = [
        member("a", 5, 0.9, "1"),
        member("b", 5, 0.8, "1"),
        member("c", 5, 0.7, "2"),
    ];
    let items = items.map(|item| item.build().unwrap());
    let three = CountQuotaEntry::new(ContextKind::message(), 3, 5).unwrap();
    let counts = CountQuotaSlice::new(vec![three], GreedySlice, ScarcityBehavior::Degrade).unwrap();
    let pipeline = Pipeline::new(
        ReflexiveScorer,
        GroupSlice::new(counts),
        ChronologicalPlacer,
    );
    let report = pipeline.dry_run(&items, &budget(100)).unwrap();
    let shortfalls = report.count_requirement_shortfalls.iter();
    let counts = shortfalls.map(|it| (it.required_count, it.satisfied_count));
    assert_eq!(counts.collect::<Vec<_>>(), [(3, 2)]);
}

#[test]
fn a_sweep_over_groups_has_the_errors_of_the_inner_slicer() {
    let items = [member("a", 4, 0.9, "g"), member("b", 6, 0.1, "g")];
    let items = items.map(|item| item.build().unwrap());
    // Without steps, everything has to fit.
    let slicer = GroupSlice::new(LadderSlice::new(Vec::new()));
    let pipeline = Pipeline::new(ReflexiveScorer, slicer, ChronologicalPlacer);
    let sweep = pipeline.sweep(&items, &budget(0), 0..=12).unwrap();
    let steps = sweep.steps.iter();
    let steps = steps.map(|step| (step.from, step.to, step.included, step.error));
    assert_eq!(
        steps.collect::<Vec<_>>(),
        [(0, 9, 0, Some("MandatoryExceedsBudget")), (10, 12, 2, None)]
    );
}

#[test]
fn a_group_beyond_the_number_range_never_fits() {
    let items = [
        member("a", i64::MAX, 0.5, "g"),
        member("b", i64::MAX, 0.5, "g"),
        member("c", i64::MAX, 0.1, "h"),
    ];
    let max = i64::MAX;
    let group =
        format!("GroupExcluded: its group of 2 items ({max} tokens) does not fit, 0 available");
    for inner in [
        Box::new(GreedySlice) as Box<dyn Slicer>,
        Box::new(GroupSlice::new(GreedySlice)),
    ] {
        assert_eq!(
            run(&items, GroupSlice::new(inner), max),
            [
                "c".to_owned(),
                format!("not a: {group}"),
                format!("not b: {group}")
            ]
        );
    }
}

#[test]
fn an_explanation_says_how_much_room_a_group_lacks() {
    let items = [
        member("a", 30, 0.9, "g"),
        member("b", 30, 0.1, "g"),
        member("c", 50, 0.9, "h"),
    ];
    let items = items.map(|item| item.build().unwrap());
    let pipeline = Pipeline::new(
        ReflexiveScorer,
        GroupSlice::new(GreedySlice),
        ChronologicalPlacer,
    );
    let why = pipeline.explain(&items, &budget(100), 1).unwrap();
    assert_eq!(why.extra_tokens, Some(10));
}
