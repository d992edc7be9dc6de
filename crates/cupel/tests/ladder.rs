//! The slicer that shortens first and drops second.

use std::ops::ControlFlow;

use chrono::DateTime;
use cupel::slicer::{SweepVisitor, ViewChange};
use cupel::*;
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};

fn budget(tokens: i64) -> ContextBudget {
    ContextBudget::with_target(tokens, tokens).unwrap()
}

fn tool() -> ContextKind {
    ContextKind::tool_output()
}

/// A tool result with views `(level, tokens)`.
fn result(tokens: i64, views: &[(i64, i64)]) -> ContextItemBuilder {
    let views = views.iter().map(|&(level, tokens)| {
        ContextView::new(format!("view of level {level}"), tokens).with_level(level)
    });
    ContextItem::builder("result", tokens)
        .kind(tool())
        .views(views.collect())
}

/// A ladder without its shortcuts: it is asked at every budget.
struct OneByOne(LadderSlice);

impl Slicer for OneByOne {
    fn slice(
        &self,
        sorted: &[ScoredItem],
        budget: &ContextBudget,
    ) -> Result<Vec<ContextItem>, CupelError> {
        self.0.slice(sorted, budget)
    }

    fn select(
        &self,
        ranked: &[ScoredRef<'_>],
        budget: &ContextBudget,
    ) -> Result<Selection, CupelError> {
        self.0.select(ranked, budget)
    }
}

fn ranked(items: &[ContextItem]) -> Vec<ScoredItem> {
    let scores = (0..items.len()).map(|rank| 1.0 / (rank as f64 + 1.0));
    let items = items.iter().cloned();
    items
        .zip(scores)
        .map(|(item, score)| ScoredItem { item, score })
        .collect()
}

/// The kept ranks with their views.
fn select(
    slicer: &LadderSlice,
    ranked: &[ScoredItem],
    target: i64,
) -> Result<Vec<(usize, Option<usize>)>, CupelError> {
    let selection = slicer.select(&ScoredRef::from_list(ranked), &budget(target))?;
    let view_of = |rank: usize| {
        let mut views = selection.views().iter();
        views.find(|(shortened, _)| *shortened == rank).map(|v| v.1)
    };
    let kept = selection.kept().iter();
    Ok(kept.map(|&rank| (rank, view_of(rank))).collect())
}

/// Each row: the target, and for every rank the tokens it is kept with, or `None`.
fn check(slicer: &LadderSlice, items: &[ContextItem], rows: &[(i64, &[Option<i64>])]) {
    let ranked = ranked(items);
    for (target, expected) in rows {
        let mut kept = vec![None; items.len()];
        for (rank, view) in select(slicer, &ranked, *target).unwrap() {
            let item = &items[rank];
            kept[rank] = Some(view.map_or(item.tokens(), |view| item.views()[view].tokens()));
        }
        assert_eq!(kept, *expected, "target {target}");
    }
}

#[test]
fn a_level_caps_all_items_of_the_kind_at_once() {
    let items = [
        result(500, &[(400, 380), (100, 90)]).build().unwrap(),
        result(300, &[(400, 290), (100, 80)]).build().unwrap(),
        result(400, &[(400, 390), (100, 70)]).build().unwrap(),
        result(200, &[]).build().unwrap(),
        ContextItem::builder("message", 50)
            .view(ContextView::new("short", 5))
            .build()
            .unwrap(),
    ];
    let slicer = LadderSlice::new(vec![LadderStep::shorten(tool(), [400, 100])]);
    check(
        &slicer,
        &items,
        &[
            (
                1450,
                &[Some(500), Some(300), Some(400), Some(200), Some(50)],
            ),
            // The second item is below the cap as it is, and the third at the cap.
            (
                1449,
                &[Some(380), Some(300), Some(400), Some(200), Some(50)],
            ),
            (
                1330,
                &[Some(380), Some(300), Some(400), Some(200), Some(50)],
            ),
            (1329, &[Some(90), Some(80), Some(70), Some(200), Some(50)]),
            (490, &[Some(90), Some(80), Some(70), Some(200), Some(50)]),
        ],
    );
    assert_eq!(
        select(&slicer, &ranked(&items), 489).unwrap_err(),
        CupelError::MandatoryExceedsBudget {
            needed_tokens: 490,
            available: 489
        }
    );
}

#[test]
fn a_newer_result_of_the_same_call_caps_the_older_ones() {
    let of_call = |call: &str, seconds| {
        let item = result(100, &[(50, 50), (20, 20)]);
        let item = item.timestamp(DateTime::from_timestamp(seconds, 0).unwrap());
        item.meta(NearDuplicateSlice::CALL, call)
    };
    let items = [
        of_call("f", 2),
        of_call("f", 3),
        of_call("f", 1).meta(LadderSlice::MANDATORY, ""),
        of_call("g", 1),
        result(100, &[(50, 50), (20, 20)]),
        // Of one time: the later position is newer.
        of_call("h", 5),
        of_call("h", 5),
    ];
    let items = items.map(|item| item.build().unwrap());
    let levels = vec![50, 20];
    let slicer = LadderSlice::new(vec![LadderStep::Supersede { levels }]);
    let capped = |tokens| [tokens, 100, 100, 100, 100, tokens, 100].map(Some);
    check(
        &slicer,
        &items,
        &[
            (700, &capped(100)),
            (699, &capped(50)),
            (600, &capped(50)),
            (599, &capped(20)),
            (540, &capped(20)),
        ],
    );
    assert!(select(&slicer, &ranked(&items), 539).is_err());
}

#[test]
fn mandatory_items_are_capped_one_at_a_time_most_tokens_first() {
    let mandatory = |tokens, views: &[(i64, i64)]| {
        let item = result(tokens, views).meta(LadderSlice::MANDATORY, "");
        item.build().unwrap()
    };
    let items = [
        mandatory(500, &[(400, 380), (100, 90)]),
        mandatory(800, &[(400, 350), (100, 95)]),
        mandatory(500, &[(100, 70)]),
        result(10, &[(5, 5)]).build().unwrap(),
    ];
    let slicer = LadderSlice::new(vec![
        LadderStep::Drop,
        LadderStep::shorten_mandatory(tool(), [400, 100]),
    ]);
    check(
        &slicer,
        &items,
        &[
            (1810, &[Some(500), Some(800), Some(500), Some(10)]),
            (1809, &[Some(500), Some(800), Some(500), None]),
            (1799, &[Some(500), Some(350), Some(500), None]),
            // Ties in rank order.
            (1349, &[Some(380), Some(350), Some(500), None]),
            (1229, &[Some(380), Some(350), Some(70), None]),
            // At the next level the third item is at its smallest already.
            (799, &[Some(90), Some(350), Some(70), None]),
            (509, &[Some(90), Some(95), Some(70), None]),
            (255, &[Some(90), Some(95), Some(70), None]),
        ],
    );
    assert_eq!(
        select(&slicer, &ranked(&items), 254)
            .unwrap_err()
            .to_string(),
        "mandatory items need 255 tokens, 1 over the budget of 254"
    );
    assert!(select(&slicer, &ranked(&items), 0).is_err());
}

#[test]
fn groups_are_dropped_whole_by_the_rank_of_their_best_member() {
    let message = |tokens, group: Option<&str>| {
        let item = ContextItem::builder("message", tokens);
        match group {
            Some(group) => item.meta(GroupSlice::KEY, group),
            None => item,
        }
    };
    let items = [
        message(10, Some("a")).build().unwrap(),
        message(20, None).build().unwrap(),
        message(30, Some("b")).build().unwrap(),
        message(40, Some("a")).build().unwrap(),
        message(50, Some("c"))
            .meta(LadderSlice::MANDATORY, "task")
            .build()
            .unwrap(),
        message(60, Some("c")).build().unwrap(),
        message(70, Some("b")).build().unwrap(),
    ];
    let slicer = LadderSlice::new(vec![LadderStep::Drop]);
    let all = [10, 20, 30, 40, 50, 60, 70].map(Some);
    let without_b = [Some(10), Some(20), None, Some(40), Some(50), Some(60), None];
    let only_c = [None, None, None, None, Some(50), Some(60), None];
    let with_a = [Some(10), None, None, Some(40), Some(50), Some(60), None];
    check(
        &slicer,
        &items,
        &[
            (280, &all),
            (279, &without_b),
            (180, &without_b),
            (179, &with_a),
            (160, &with_a),
            (159, &only_c),
            (110, &only_c),
        ],
    );
    let marked = slicer.clone().with_marker_tokens(7);
    check(
        &marked,
        &items,
        &[
            (280, &all),
            (187, &without_b),
            (186, &with_a),
            (117, &only_c),
        ],
    );
    assert!(select(&marked, &ranked(&items), 116).is_err());

    let list = ranked(&items);
    let selection = marked
        .select(&ScoredRef::from_list(&list), &budget(170))
        .unwrap();
    let reasons: Vec<_> = selection.refusals().to_vec();
    // Without the group 180 of 170 tokens are used, and without the item 160 and the marker's 7.
    let group = ExclusionReason::RankedBelow {
        item_tokens: 100,
        blocking_tokens: 20,
        available_tokens: 3,
    };
    let single = ExclusionReason::BudgetExceeded {
        item_tokens: 20,
        available_tokens: 3,
    };
    assert_eq!(
        reasons,
        [
            (1, Refusal::Because(single)),
            (2, Refusal::Because(group.clone())),
            (6, Refusal::Because(group)),
        ]
    );
}

#[test]
fn marks_say_what_is_shortened_first_and_dropped_last() {
    let result = || result(100, &[(50, 50), (20, 20)]);
    let items = [
        result().build().unwrap(),
        result()
            .mark(|marks| marks.shorten_first = true)
            .build()
            .unwrap(),
        result()
            .mark(|marks| marks.retention = Retention::Late)
            .build()
            .unwrap(),
    ];
    let slicer = LadderSlice::new(vec![
        LadderStep::shorten(tool(), [50, 20]),
        LadderStep::Drop,
    ]);
    check(
        &slicer,
        &items,
        &[
            (299, &[Some(100), Some(50), Some(100)]),
            (249, &[Some(100), Some(20), Some(100)]),
            (219, &[Some(50), Some(20), Some(100)]),
            (169, &[Some(20), Some(20), Some(100)]),
            // The last is the lowest, and dropped last.
            (139, &[Some(20), None, Some(100)]),
            (119, &[None, None, Some(100)]),
            (99, &[None; 3]),
        ],
    );
}

#[test]
fn a_gradual_ladder_shortens_the_lowest_first_and_no_more_than_it_must() {
    let items: Vec<ContextItem> = (0..3)
        .map(|_| result(100, &[(50, 50), (20, 20)]).build().unwrap())
        .collect();
    let steps = vec![LadderStep::shorten(tool(), [50, 20]), LadderStep::Drop];
    // Ranks follow the order of the items.
    check(
        &LadderSlice::new(steps).with_gradual(true),
        &items,
        &[
            (300, &[Some(100); 3]),
            (299, &[Some(100), Some(100), Some(50)]),
            (249, &[Some(100), Some(50), Some(50)]),
            (199, &[Some(50); 3]),
            (149, &[Some(50), Some(50), Some(20)]),
            (60, &[Some(20); 3]),
            (59, &[Some(20), Some(20), None]),
        ],
    );
}

#[test]
fn a_mark_of_one_is_the_target_above_2_to_the_53() {
    // The nearest float is 2^53, which leaves no room for the view.
    let target = (1 << 53) + 1;
    let item = result(1 << 60, &[(1, target)]).build().unwrap();
    let slicer = LadderSlice::new(vec![LadderStep::shorten(tool(), [1]), LadderStep::Drop]);
    let rows: [(i64, &[Option<i64>]); 2] = [(target, &[Some(target)]), (target - 1, &[None])];
    check(&slicer, &[item], &rows);
}

#[test]
fn a_target_of_zero_keeps_nothing_but_free_mandatory_items() {
    let slicer = LadderSlice::new(vec![LadderStep::Drop]);
    let free = result(0, &[]).build().unwrap();
    let mandatory = free.to_builder().meta(LadderSlice::MANDATORY, "");
    let mandatory = mandatory.build().unwrap();
    let only_free = std::slice::from_ref(&free);
    check(&slicer, only_free, &[(0, &[None]), (1, &[Some(0)])]);
    check(&slicer, &[free, mandatory], &[(0, &[None, Some(0)])]);
    check(&slicer, &[], &[(0, &[]), (5, &[])]);
}

#[test]
fn a_run_names_shortened_and_dropped_items() {
    let call = |hint, group: &str| {
        ContextItem::builder(format!("call {group}"), 5)
            .future_relevance_hint(hint)
            .meta(GroupSlice::KEY, group)
    };
    let items = [
        call(0.1, "old").build().unwrap(),
        result(1310, &[(100, 96)])
            .future_relevance_hint(0.2)
            .meta(GroupSlice::KEY, "old")
            .build()
            .unwrap(),
        call(0.8, "new").build().unwrap(),
        result(700, &[(100, 99)])
            .future_relevance_hint(0.9)
            .meta(GroupSlice::KEY, "new")
            .build()
            .unwrap(),
    ];
    let slicer = LadderSlice::new(vec![LadderStep::shorten(tool(), [100]), LadderStep::Drop]);
    let policy = Policy::builder()
        .scorer(ReflexiveScorer)
        .slicer(slicer)
        .placer(ChronologicalPlacer)
        .deduplication(false)
        .build()
        .unwrap();
    let phrases = |tokens| {
        let decisions = policy.decide(&items, &budget(tokens)).unwrap();
        let phrase = |candidate| match decisions.inclusion(candidate) {
            Some(reason) => reason.phrase(),
            None => decisions.phrase(candidate).unwrap(),
        };
        (0..items.len()).map(phrase).collect::<Vec<_>>()
    };
    assert_eq!(
        phrases(205),
        [
            "selected by score",
            "shortened to 96 of 1,310 tokens",
            "selected by score",
            "shortened to 99 of 700 tokens",
        ]
    );
    assert_eq!(
        phrases(204),
        [
            "group of 2 too large: needs 101 of 100 left",
            "group of 2 too large: needs 101 of 100 left",
            "selected by score",
            "shortened to 99 of 700 tokens",
        ]
    );
}

/// A naive implementation of the documentation: every state is computed from scratch as a list of
/// what is kept of each rank.
mod oracle {
    use super::*;

    /// For each rank: `None` if it is dropped, else its view or the item in full.
    pub(super) type State = Vec<Option<Option<usize>>>;

    /// Steps for candidates that are not mandatory leave it as it is.
    fn is_spared(items: &[ScoredItem], rank: usize) -> bool {
        let marks = items[rank].item.metadata();
        marks.contains_key("cupel:mandatory") || marks.contains_key("cupel:late")
    }

    /// One of its group is mandatory, or marked to be kept.
    pub(super) fn is_kept(items: &[ScoredItem], rank: usize) -> bool {
        is_marked(items, rank, "cupel:mandatory") || is_marked(items, rank, "cupel:keep")
    }

    fn is_marked(items: &[ScoredItem], rank: usize, key: &str) -> bool {
        let group = |rank: usize| items[rank].item.metadata().get("cupel:group");
        let marked = |rank: usize| items[rank].item.metadata().contains_key(key);
        let mates = (0..items.len()).filter(|&o| group(o).is_some() && group(o) == group(rank));
        marked(rank) || mates.into_iter().any(marked)
    }

    fn tokens_of(items: &[ScoredItem], state: &State, rank: usize) -> i64 {
        let item = &items[rank].item;
        match state[rank] {
            None => 0,
            Some(None) => item.tokens(),
            Some(Some(view)) => item.views()[view].tokens(),
        }
    }

    /// Returns the tokens of each state: those of the kept items, and a marker if it costs less than the
    /// dropped items did in the last state that has them.
    pub(super) fn sizes(slicer: &LadderSlice, items: &[ScoredItem], states: &[State]) -> Vec<i64> {
        let size = |index: usize| {
            let kept: i64 = (0..items.len())
                .map(|rank| tokens_of(items, &states[index], rank))
                .sum();
            let dropped: i64 = (0..items.len())
                .filter(|&rank| states[index][rank].is_none())
                .map(|rank| {
                    let before = states[..index].iter().rfind(|it| it[rank].is_some());
                    tokens_of(items, before.unwrap(), rank)
                })
                .sum();
            let marker = slicer.marker_tokens();
            kept + if dropped > marker { marker } else { 0 }
        };
        (0..states.len()).map(size).collect()
    }

    fn cap(items: &[ScoredItem], state: &mut State, rank: usize, level: i64) {
        let item = &items[rank].item;
        let own = match state[rank] {
            None => return,
            Some(None) => match item.metadata().get("cupel:level") {
                Some(level) => level.parse().unwrap(),
                None => item.tokens(),
            },
            Some(Some(view)) => item.views()[view].level(),
        };
        let fitting = (0..item.views().len()).filter(|&v| item.views()[v].level() <= level);
        if let Some(view) = fitting.max_by_key(|&v| item.views()[v].level())
            && own > level
        {
            state[rank] = Some(Some(view));
        }
    }

    pub(super) fn states(slicer: &LadderSlice, items: &[ScoredItem]) -> Vec<State> {
        let mut states = vec![vec![Some(None); items.len()]];
        for step in slicer.steps() {
            match step {
                LadderStep::Shorten {
                    kind,
                    mandatory,
                    levels,
                } => {
                    let is_first = |rank: usize| {
                        !*mandatory
                            && items[rank]
                                .item
                                .metadata()
                                .contains_key("cupel:shorten_first")
                    };
                    for first in [true, false] {
                        for &level in levels {
                            let meant = (0..items.len()).filter(|&rank| {
                                let is_meant = if *mandatory {
                                    is_kept(items, rank)
                                } else {
                                    !is_spared(items, rank)
                                };
                                items[rank].item.kind() == kind
                                    && is_meant
                                    && is_first(rank) == first
                            });
                            let mut meant: Vec<usize> = meant.collect();
                            let mut state = states.last().unwrap().clone();
                            let before = state.clone();
                            meant.sort_by_key(|&rank| -tokens_of(items, &before, rank));
                            if !*mandatory {
                                meant.sort_unstable_by(|a, b| b.cmp(a));
                            }
                            for rank in meant {
                                cap(items, &mut state, rank, level);
                                if *mandatory || slicer.is_gradual() {
                                    states.push(state.clone());
                                }
                            }
                            states.push(state);
                        }
                    }
                }
                LadderStep::Drop => {
                    for late in [false, true] {
                        for rank in (0..items.len()).rev() {
                            let group = items[rank].item.metadata().get("cupel:group");
                            let is_mate = |other: usize| {
                                let name = items[other].item.metadata().get("cupel:group");
                                other == rank || group.is_some() && name == group
                            };
                            let is_best = (0..rank).all(|better| !is_mate(better));
                            let is_late = is_marked(items, rank, "cupel:late");
                            if is_best && !is_kept(items, rank) && is_late == late {
                                let mut state = states.last().unwrap().clone();
                                for other in (0..items.len()).filter(|&other| is_mate(other)) {
                                    state[other] = None;
                                }
                                states.push(state);
                            }
                        }
                    }
                }
                LadderStep::Supersede { levels } => {
                    let call = |rank: usize| items[rank].item.metadata().get("cupel:call");
                    // The items have no timestamps, and their positions are their ranks.
                    let is_superseded = |&rank: &usize| {
                        let mut newer = rank + 1..items.len();
                        call(rank).is_some() && newer.any(|newer| call(newer) == call(rank))
                    };
                    for &level in levels {
                        let mut state = states.last().unwrap().clone();
                        for rank in (0..items.len()).rev().filter(is_superseded) {
                            if !is_spared(items, rank) {
                                cap(items, &mut state, rank, level);
                                if slicer.is_gradual() {
                                    states.push(state.clone());
                                }
                            }
                        }
                        states.push(state);
                    }
                }
                _ => unreachable!(),
            }
        }
        states
    }

    /// The first state that fits a target.
    pub(super) fn choose(slicer: &LadderSlice, items: &[ScoredItem], target: i64) -> Option<State> {
        let states = states(slicer, items);
        let sizes = sizes(slicer, items, &states);
        if target == 0 {
            let last = states.last().unwrap();
            return (*sizes.last().unwrap() == 0).then(|| last.clone());
        }
        let first = sizes.iter().position(|size| *size <= target)?;
        Some(states[first].clone())
    }
}

#[derive(Debug)]
struct Case {
    slicer: LadderSlice,
    items: Vec<ScoredItem>,
}

fn kinds() -> impl Strategy<Value = ContextKind> {
    prop::sample::select(vec![tool(), ContextKind::message()])
}

fn steps() -> impl Strategy<Value = Vec<LadderStep>> {
    let shorten = (kinds(), any::<bool>(), vec(0_i64..40, 0..4));
    let shorten = shorten.prop_map(|(kind, mandatory, levels)| {
        if mandatory {
            LadderStep::shorten_mandatory(kind, levels)
        } else {
            LadderStep::shorten(kind, levels)
        }
    });
    let supersede = vec(0_i64..40, 1..3).prop_map(|levels| LadderStep::Supersede { levels });
    let step = prop_oneof![3 => shorten, 1 => supersede, 1 => Just(LadderStep::Drop)];
    vec(step, 0..6)
}

fn item() -> impl Strategy<Value = ContextItem> {
    let views = vec((0_i64..40, 0_i64..40), 0..4);
    let group = prop::option::weighted(0.4, 0_u8..3);
    let mark = prop::sample::select(vec![
        None,
        None,
        None,
        Some(LadderSlice::MANDATORY),
        Some(LadderSlice::KEEP),
        Some(LadderSlice::LATE),
        Some(LadderSlice::SHORTEN_FIRST),
    ]);
    let level = prop::option::weighted(0.2, 0_i64..40);
    let call = prop::option::weighted(0.4, 0_u8..2);
    (0_i64..50, kinds(), views, group, mark, level, call).prop_map(
        |(tokens, kind, views, group, mark, level, call)| {
            let mut item = ContextItem::builder("item", tokens).kind(kind);
            let mut levels = Vec::new();
            for (level, view_tokens) in views {
                if view_tokens < tokens && !levels.contains(&level) {
                    levels.push(level);
                    item = item.view(ContextView::new("view", view_tokens).with_level(level));
                }
            }
            if let Some(group) = group {
                item = item.meta(GroupSlice::KEY, group.to_string());
            }
            if let Some(call) = call {
                item = item.meta(NearDuplicateSlice::CALL, call.to_string());
            }
            if let Some(mark) = mark {
                item = item.meta(mark, "");
            }
            if let Some(level) = level {
                item = item.meta(LadderSlice::LEVEL, level.to_string());
            }
            item.build().unwrap()
        },
    )
}

fn cases() -> impl Strategy<Value = Case> {
    let items = vec(item(), 0..8);
    let drawn = (steps(), 0_i64..60, any::<bool>(), items);
    drawn.prop_map(|(steps, marker, gradual, items)| {
        let slicer = LadderSlice::new(steps).with_marker_tokens(marker);
        Case {
            slicer: slicer.with_gradual(gradual),
            items: ranked(&items),
        }
    })
}

fn run<T: std::fmt::Debug>(
    cases: impl Strategy<Value = T>,
    check: impl Fn(T) -> Result<(), TestCaseError>,
) {
    let config = Config {
        cases: cupel_conformance::testing::cases(2_000),
        failure_persistence: None,
        ..Config::default()
    };
    TestRunner::new(config)
        .run(&cases, check)
        .unwrap_or_else(|error| panic!("{error}"));
}

fn as_state(kept: &[(usize, Option<usize>)], items: usize) -> oracle::State {
    let mut state = vec![None; items];
    for &(rank, view) in kept {
        state[rank] = Some(view);
    }
    state
}

#[test]
fn the_choice_is_the_oracles() {
    run((cases(), 0_i64..300), |(case, target)| {
        let expected = oracle::choose(&case.slicer, &case.items, target);
        let chosen = select(&case.slicer, &case.items, target);
        match chosen {
            Ok(kept) => {
                let state = as_state(&kept, case.items.len());
                let states = oracle::states(&case.slicer, &case.items);
                let sizes = oracle::sizes(&case.slicer, &case.items, &states);
                let index = states.iter().position(|other| *other == state).unwrap();
                prop_assert!(sizes[index] <= target);
                for (rank, kept) in state.iter().enumerate() {
                    let must_stay = oracle::is_kept(&case.items, rank);
                    prop_assert!(kept.is_some() || !must_stay, "rank {}", rank);
                }
                prop_assert_eq!(Some(state), expected);
            }
            Err(CupelError::MandatoryExceedsBudget {
                needed_tokens,
                available,
            }) => {
                prop_assert_eq!(expected, None);
                prop_assert_eq!(available, target);
                let states = oracle::states(&case.slicer, &case.items);
                let sizes = oracle::sizes(&case.slicer, &case.items, &states);
                prop_assert_eq!(Some(needed_tokens), sizes.into_iter().min());
            }
            Err(error) => prop_assert!(false, "{}", error),
        }
        Ok(())
    });
}

#[test]
fn a_marker_costs_less_than_what_it_stands_for() {
    let least = |items: &[ContextItem], marker| {
        let slicer = LadderSlice::new(vec![LadderStep::Drop]).with_marker_tokens(marker);
        let list = ranked(items);
        let fits = |target: &i64| select(&slicer, &list, *target).is_ok();
        (0..200).find(fits).unwrap()
    };
    let old = result(6, &[]).build().unwrap();
    let kept = result(50, &[]).meta(LadderSlice::KEEP, "").build().unwrap();
    for (marker, needed) in [(0, 50), (5, 55), (6, 50), (13, 50)] {
        assert_eq!(
            least(&[kept.clone(), old.clone()], marker),
            needed,
            "{marker}"
        );
    }
}

#[test]
fn a_larger_budget_never_drops_or_shortens_what_a_smaller_one_keeps() {
    let targets = (0_i64..300, 0_i64..300);
    run((cases(), targets), |(case, (a, b))| {
        let kept = |target| select(&case.slicer, &case.items, target);
        if let Ok(small) = kept(a.min(b)) {
            let large = kept(a.max(b)).unwrap();
            for (rank, view) in small {
                let at_large = large.iter().find(|(other, _)| *other == rank);
                let Some((_, larger)) = at_large else {
                    return Err(TestCaseError::fail(format!("rank {rank} is dropped")));
                };
                // Views are sorted by level, largest first.
                let is_shorter = match (larger, view) {
                    (None, _) => false,
                    (Some(_), None) => true,
                    (Some(larger), Some(smaller)) => *larger > smaller,
                };
                prop_assert!(!is_shorter, "rank {} is shortened", rank);
            }
        }
        Ok(())
    });
}

/// Distinct items with hints in the order of the case, and a pinned one.
fn candidates(case: &Case) -> Vec<ContextItem> {
    let items = case.items.iter().enumerate().map(|(rank, scored)| {
        let item = scored.item.to_builder();
        let item = item.future_relevance_hint(scored.score);
        item.meta("rank", rank.to_string()).build().unwrap()
    });
    let pinned = ContextItem::builder("pinned", 6).pinned(true);
    items.chain([pinned.build().unwrap()]).collect()
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

/// Compares a sweep with one run per budget.
fn check_sweep(case: &Case, one_by_one: bool) -> Result<(), TestCaseError> {
    let budgets = ContextBudget::builder(90)
        .target_tokens(80)
        .output_reserve(14);
    let budgets = budgets.build().unwrap();
    let items = candidates(case);
    let pipeline = if one_by_one {
        pipeline(OneByOne(case.slicer.clone()))
    } else {
        pipeline(case.slicer.clone())
    };
    let sweep = pipeline.sweep(&items, &budgets, 0..=260).unwrap();
    prop_assert!(sweep.exact);
    let mut at = sweep.steps.iter();
    let mut step = at.next().unwrap();
    let mut windows = 0;
    let mut last = None;
    for target in 0..=260 {
        if target > step.to {
            step = at.next().unwrap();
        }
        let budget = ContextBudget::builder(target + 10)
            .target_tokens(target)
            .output_reserve(14)
            .build();
        let run = budget.and_then(|budget| pipeline.decide(&items, &budget));
        let window = match run {
            Err(error) => {
                prop_assert_eq!(step.error, Some(error.code()));
                prop_assert!(sweep.selection_at(target).is_empty());
                Err(error.code())
            }
            Ok(decisions) => {
                prop_assert_eq!(step.error, None, "at {}", target);
                let mut window = decisions.window().to_vec();
                window.sort_unstable();
                prop_assert_eq!(&sweep.selection_at(target), &window);
                let views: Vec<_> = (0..items.len()).map(|c| decisions.view(c)).collect();
                for (candidate, view) in views.iter().enumerate() {
                    prop_assert_eq!(sweep.view_at(candidate, target), *view);
                }
                prop_assert_eq!(step.tokens_used, decisions.tokens_used());
                prop_assert_eq!(step.included, window.len());
                prop_assert_eq!(step.shortened, views.iter().flatten().count());
                Ok((window, views))
            }
        };
        if last.as_ref() != Some(&window) {
            windows += 1;
            last = Some(window);
        }
    }
    // A step ends only where the window changes.
    prop_assert_eq!(sweep.steps.len(), windows);
    Ok(())
}

#[test]
fn a_sweep_is_one_run_per_budget() {
    run((cases(), any::<bool>()), |(case, one_by_one)| {
        check_sweep(&case, one_by_one)
    });
}

/// Collects the changes of a sweep: target, ranks and views.
#[derive(Default)]
struct Changes(Vec<(i64, Vec<usize>, Vec<ViewChange>)>);

impl SweepVisitor for Changes {
    fn change(&mut self, target: i64, ranks: &[usize], views: &[ViewChange]) -> ControlFlow<()> {
        self.0.push((target, ranks.to_vec(), views.to_vec()));
        ControlFlow::Continue(())
    }

    fn fail(&mut self, target: i64, error: CupelError) {
        panic!("{target}: {error}");
    }
}

#[test]
fn a_sweep_names_the_form_of_items_that_change_it() {
    let items = [
        result(100, &[(50, 50)]).build().unwrap(),
        result(30, &[]).build().unwrap(),
    ];
    let slicer = LadderSlice::new(vec![LadderStep::shorten(tool(), [50]), LadderStep::Drop]);
    let list = ranked(&items);
    let mut changes = Changes::default();
    let flow = slicer.sweep(&ScoredRef::from_list(&list), 1..=200, &mut changes);
    assert_eq!(flow, Some(ControlFlow::Continue(())));
    let expected = [
        (1, vec![], vec![]),
        (50, vec![0], vec![(0, Some(0))]),
        // In full: an item that enters is.
        (80, vec![1], vec![]),
        (130, vec![], vec![(0, None)]),
    ];
    assert_eq!(changes.0, expected);
}

#[test]
fn a_sweep_lists_the_budgets_of_every_form() {
    let items = [result(100, &[(50, 50), (20, 20)]).build().unwrap()];
    let levels = LadderStep::shorten(tool(), [50, 20]);
    let slicer = LadderSlice::new(vec![levels, LadderStep::Drop]);
    let one_by_one = OneByOne(slicer.clone());
    for pipeline in [pipeline(slicer), pipeline(one_by_one)] {
        let sweep = pipeline.sweep(&items, &budget(0), 0..=120).unwrap();
        assert!(sweep.exact);
        let item = &sweep.items[0];
        assert_eq!(item.intervals, [(20, 120)]);
        let forms = [(20, 49, Some(1)), (50, 99, Some(0)), (100, 120, None)];
        assert_eq!(item.forms(), forms);
        assert_eq!(
            sweep.intervals_csv(),
            "index,from,to,view\n0,20,49,1\n0,50,99,0\n0,100,120,\n"
        );
        let steps = sweep.steps.iter().map(|step| {
            let SweepStep { from, to, .. } = *step;
            (from, to, step.tokens_used, step.included, step.shortened)
        });
        let expected = [
            (0, 19, 0, 0, 0),
            (20, 49, 20, 1, 1),
            (50, 99, 50, 1, 1),
            (100, 120, 100, 1, 0),
        ];
        assert_eq!(steps.collect::<Vec<_>>(), expected);
        assert_eq!(sweep.min_budget(0), Some(20));
        assert_eq!(sweep.min_budget_in_full(0), Some(100));
    }
}

#[test]
fn an_explanation_of_a_shortened_item_says_where_it_is_in_full() {
    let item = |content: &str, hint, tokens| {
        let view = ContextView::new(format!("{content}, shortened"), 10);
        let item = result(tokens, &[]).view(view).future_relevance_hint(hint);
        item.meta("name", content).build().unwrap()
    };
    let items = [item("a", 0.9, 50), item("b", 0.5, 1_050)];
    let slicer = LadderSlice::new(vec![
        LadderStep::shorten(tool(), [1_000, 10]),
        LadderStep::Drop,
    ]);
    for one_by_one in [false, true] {
        let pipeline = if one_by_one {
            pipeline(OneByOne(slicer.clone()))
        } else {
            pipeline(slicer.clone())
        };
        let explain = |target, index| pipeline.explain(&items, &budget(target), index).unwrap();
        let full_at = |target, index| explain(target, index).in_full_at;
        assert_eq!(full_at(1_100, 1), None);
        assert_eq!(full_at(60, 1), Some(1_100));
        assert_eq!(full_at(20, 0), Some(60));
        assert_eq!(explain(19, 1).extra_tokens, Some(1));
        let text = explain(60, 1).to_string();
        assert!(text.contains("shortened to 10 of 1,050 tokens\n"), "{text}");
        assert!(text.contains("in full at a budget of 1,100\n"), "{text}");
        if !one_by_one {
            let least = pipeline.find_min_budget_for(&items, &budget(0), &items[1], 2_000);
            assert_eq!(least, Ok(Some(20)));
        }
    }
}

#[test]
fn the_interval_of_a_view_goes_on_while_other_items_change() {
    let item = |content: &str, hint| {
        let view = ContextView::new(format!("{content}, shortened"), 10);
        let item = ContextItem::builder(content, 50).kind(tool()).view(view);
        item.future_relevance_hint(hint).build().unwrap()
    };
    let items = [item("a", 0.9), item("b", 0.5), item("c", 0.1)];
    let slicer = LadderSlice::new(vec![LadderStep::shorten(tool(), [10]), LadderStep::Drop]);
    let swept = pipeline(slicer.clone()).sweep(&items, &budget(0), 0..=160);
    let one_by_one = pipeline(OneByOne(slicer)).sweep(&items, &budget(0), 0..=160);
    let csv = "index,from,to,view\n0,10,149,0\n0,150,160,\n1,20,149,0\n1,150,160,\n2,30,149,0\n2,150,160,\n";
    for sweep in [swept.unwrap(), one_by_one.unwrap()] {
        assert_eq!(sweep.intervals_csv(), csv);
    }
}
