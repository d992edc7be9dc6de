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

/// A decorator as a user writes it: `slice` and `inner`.
struct Decorator<S>(S);

impl<S: Slicer> Slicer for Decorator<S> {
    fn slice(
        &self,
        sorted: &[ScoredItem],
        budget: &ContextBudget,
    ) -> Result<Vec<ContextItem>, CupelError> {
        self.0.slice(sorted, budget)
    }

    fn inner(&self) -> Option<&dyn Slicer> {
        Some(&self.0)
    }
}

type Build = fn() -> Box<dyn Slicer>;

fn kind() -> ContextKind {
    ContextKind::message()
}

fn counts(cap: usize) -> Vec<CountQuotaEntry> {
    vec![CountQuotaEntry::new(kind(), 0, cap).unwrap()]
}

const BUILTINS: [(&str, Build); 12] = [
    ("GreedySlice", || Box::new(GreedySlice)),
    ("RankSlice", || Box::new(RankSlice)),
    ("DensitySlice", || Box::new(DensitySlice::new(0.5).unwrap())),
    ("DiversitySlice", || {
        Box::new(DiversitySlice::new(0.7, Similarity::Shingles).unwrap())
    }),
    ("KnapsackSlice", || Box::new(KnapsackSlice::new(1).unwrap())),
    ("QuotaSlice(GreedySlice)", || {
        Box::new(QuotaSlice::new(Vec::new(), GreedySlice).unwrap())
    }),
    ("CountQuotaSlice(GreedySlice)", || {
        let scarcity = ScarcityBehavior::Degrade;
        Box::new(CountQuotaSlice::new(counts(7), GreedySlice, scarcity).unwrap())
    }),
    ("CountConstrainedKnapsackSlice", || {
        let knapsack = KnapsackSlice::new(1).unwrap();
        let scarcity = ScarcityBehavior::Degrade;
        Box::new(CountConstrainedKnapsackSlice::new(counts(7), knapsack, scarcity).unwrap())
    }),
    ("GroupSlice(GreedySlice)", || {
        Box::new(GroupSlice::new(GreedySlice))
    }),
    ("NearDuplicateSlice(GreedySlice)", || {
        Box::new(NearDuplicateSlice::new(GreedySlice))
    }),
    ("LadderSlice", || {
        Box::new(LadderSlice::new(vec![LadderStep::Drop]))
    }),
    ("ChoiceSlice", || Box::new(ChoiceSlice::new())),
];

/// What a decorator adds to the slicer it wraps.
#[derive(Default)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "independent facts of a test table"
)]
struct Adds {
    name: Option<&'static str>,
    quota: bool,
    cap: Option<usize>,
    /// The choice is the inner slicer's own, for items without groups.
    is_transparent: bool,
    /// A document can name it.
    #[cfg_attr(
        not(feature = "serde"),
        expect(dead_code, reason = "read with the feature serde")
    )]
    is_data: bool,
    /// `sweep` keeps the inner slicer's shortcuts.
    keeps_shortcuts: bool,
}

type Wrap = fn(Box<dyn Slicer>) -> Option<Box<dyn Slicer>>;

fn decorators() -> Vec<(Wrap, Adds)> {
    let pointer = || Adds {
        is_transparent: true,
        is_data: true,
        keeps_shortcuts: true,
        ..Adds::default()
    };
    vec![
        (|inner| Some(Box::new(inner)), pointer()),
        (|inner| Some(Box::new(Arc::new(inner))), pointer()),
        (|inner| Some(Box::new(&*Box::leak(inner))), pointer()),
        (
            |inner| Some(Box::new(GroupSlice::new(inner))),
            Adds {
                name: Some("GroupSlice"),
                ..pointer()
            },
        ),
        (
            |inner| Some(Box::new(NearDuplicateSlice::new(inner))),
            Adds {
                name: Some("NearDuplicateSlice"),
                is_transparent: true,
                is_data: true,
                ..Adds::default()
            },
        ),
        (
            |inner| Some(Box::new(Decorator(inner))),
            Adds {
                name: Some("Decorator"),
                is_transparent: true,
                ..Adds::default()
            },
        ),
        (
            |inner| Some(Box::new(QuotaSlice::new(Vec::new(), inner).ok()?)),
            Adds {
                name: Some("QuotaSlice"),
                quota: true,
                is_data: true,
                ..Adds::default()
            },
        ),
        (
            |inner| {
                let slicer = CountQuotaSlice::new(counts(5), inner, ScarcityBehavior::Degrade);
                Some(Box::new(slicer.ok()?))
            },
            Adds {
                name: Some("CountQuotaSlice"),
                cap: Some(5),
                is_data: true,
                ..Adds::default()
            },
        ),
    ]
}

#[cfg(feature = "serde")]
#[test]
fn the_list_of_builtins_is_complete() {
    let mut names: Vec<&str> = cupel::config::registry::SLICERS.names().collect();
    names.sort_unstable();
    let name = |(_, build): (&str, Build)| {
        let config = serde_json::to_value(build().to_config().unwrap()).unwrap();
        config["type"].as_str().unwrap().to_owned()
    };
    let mut listed: Vec<String> = BUILTINS.into_iter().map(name).collect();
    listed.sort();
    assert_eq!(listed, names);
}

/// Items of one kind, pairs of them in groups if asked for.
fn candidates(grouped: bool) -> Vec<ContextItem> {
    let item = |index: i64| {
        let tokens = 1 + index * 7919 % 400;
        let item = ContextItem::builder(format!("item {index}"), tokens)
            .future_relevance_hint((index * 31 % 97) as f64 / 97.0);
        let item = if grouped {
            item.meta(GroupSlice::KEY, (index / 2).to_string())
        } else {
            item
        };
        item.build().unwrap()
    };
    (0..40).map(item).collect()
}

fn pipeline(slicer: Box<dyn Slicer>) -> Pipeline {
    Pipeline::new(ReflexiveScorer, slicer, ChronologicalPlacer)
}

#[test]
fn no_decorator_loses_what_the_wrapped_slicer_says_and_can() {
    let items = candidates(false);
    for (builtin, build) in BUILTINS {
        for (index, (wrap, adds)) in decorators().into_iter().enumerate() {
            let plain = build();
            let name = adds.name;
            let context = format!("decorator {index} {name:?} around {builtin}");
            let Some(wrapped) = wrap(build()) else {
                let has_knapsack = plain.is_knapsack() && adds.cap.is_some();
                let limits_kinds = adds.quota || adds.cap.is_some();
                let has_ladder = plain.ladder().is_some() && limits_kinds;
                assert!(has_knapsack || has_ladder, "{context}");
                continue;
            };
            assert_eq!(
                wrapped.is_quota(),
                adds.quota || plain.is_quota(),
                "{context}"
            );
            let has_counts = adds.cap.is_some() || plain.is_count_quota();
            assert_eq!(wrapped.is_count_quota(), has_counts, "{context}");
            assert_eq!(
                wrapped.is_knapsack(),
                !adds.quota && plain.is_knapsack(),
                "{context}"
            );
            let cap = plain.count_cap_map().get(&kind()).copied();
            let cap = adds.cap.into_iter().chain(cap).min();
            assert_eq!(
                wrapped.count_cap_map().get(&kind()).copied(),
                cap,
                "{context}"
            );
            assert_eq!(wrapped.ladder(), plain.ladder(), "{context}");
            let kinds = adds.cap.map(|_| kind()).into_iter().chain(plain.kinds());
            assert_eq!(wrapped.kinds(), kinds.collect::<Vec<_>>(), "{context}");
            let reads_content = plain.reads_content() || name == Some("NearDuplicateSlice");
            assert_eq!(wrapped.reads_content(), reads_content, "{context}");
            let other = LadderSlice::new(Vec::new());
            let replaced = wrapped.with_ladder(other.clone());
            if name == Some("Decorator") {
                assert!(replaced.is_none(), "{context}");
            } else {
                assert_eq!(replaced.is_some(), plain.ladder().is_some(), "{context}");
                let replaced = replaced.as_ref().map(|slicer| slicer.ladder());
                assert!(replaced.is_none_or(|it| it == Some(&other)), "{context}");
            }
            let shown = match name {
                Some(name) => format!("{name}({builtin})"),
                None => builtin.to_owned(),
            };
            assert_eq!(format!("{wrapped:?}"), shown, "{context}");
            #[cfg(feature = "serde")]
            assert_eq!(wrapped.to_config().is_ok(), adds.is_data, "{context}");

            let (plain, wrapped) = (pipeline(plain), pipeline(wrapped));
            let sweep = |pipeline: &Pipeline| {
                let sweep = pipeline.sweep_sampled(&items, &budget(100), 0..=600, 2);
                sweep.unwrap()
            };
            let exact = sweep(&plain).exact && adds.keeps_shortcuts;
            assert_eq!(sweep(&wrapped).exact, exact, "{context}");
            if adds.is_transparent {
                for tokens in [0, 1, 300, 2_000] {
                    let run = |pipeline: &Pipeline| {
                        pipeline.run_indices(&items, &budget(tokens)).unwrap()
                    };
                    assert_eq!(run(&wrapped), run(&plain), "{context}");
                }
            }
        }
    }
}

#[test]
fn groups_stay_whole_through_every_decorator() {
    let items = candidates(true);
    for (index, (wrap, _)) in decorators().into_iter().enumerate() {
        for (outer, _) in decorators() {
            let slicer = wrap(Box::new(GroupSlice::new(GreedySlice))).and_then(outer);
            let pipeline = pipeline(slicer.expect("no knapsack takes part"));
            for tokens in [300, 2_000, 5_000] {
                let window = pipeline.run_indices(&items, &budget(tokens)).unwrap();
                assert!(!window.is_empty());
                for candidate in &window {
                    assert!(
                        window.contains(&(candidate ^ 1)),
                        "decorator {index}: {window:?}"
                    );
                }
            }
        }
    }
}

#[test]
fn a_sweep_with_many_steps_can_be_watched() {
    let items: Vec<ContextItem> = (0..5_000)
        .map(|number| ContextItem::builder(number.to_string(), 1).build().unwrap())
        .collect();
    let pipeline = pipeline(Box::new(GreedySlice));
    let mut seen = Vec::new();
    let sweep = pipeline.sweep_observed(&items, &budget(100), 0..=5_000, 40, |progress| {
        assert!(!progress.one_by_one);
        seen.push(progress.reached);
        std::ops::ControlFlow::Continue(())
    });
    assert_eq!(sweep.unwrap().steps.len(), 5_001);
    // The first 4,095 budgets are complete when the next step begins.
    assert_eq!(seen, [4_094]);
}

#[test]
fn slicers_and_scorers_tell_their_settings() {
    let quotas = vec![QuotaEntry::new(ContextKind::message(), 0.0, 50.0).unwrap()];
    let slicer = QuotaSlice::new(quotas, GreedySlice).unwrap();
    let kinds: Vec<_> = slicer.quotas().iter().map(QuotaEntry::kind).collect();
    assert_eq!(kinds, [&ContextKind::message()]);
    let groups = GroupSlice::new(GreedySlice).with_score(GroupScore::Mean);
    assert_eq!(groups.score(), GroupScore::Mean);
    let counts = CountQuotaSlice::new(counts(1), GreedySlice, ScarcityBehavior::Throw).unwrap();
    assert_eq!(counts.scarcity(), ScarcityBehavior::Throw);
    assert_eq!(ChoiceSlice::new().state_limit(), 50_000_000);
    let choice = ChoiceSlice::new().with_state_limit(7).unwrap();
    assert_eq!(choice.state_limit(), 7);
    let curve = DecayCurve::exponential(chrono::Duration::hours(1)).unwrap();
    let now: chrono::DateTime<chrono::Utc> = chrono::DateTime::UNIX_EPOCH;
    let scorer = DecayScorer::with_curve(now, curve).unwrap();
    assert!(format!("{scorer:?}").starts_with("DecayScorer { curve: "));
}

#[test]
fn a_sweep_can_be_watched_and_stopped() {
    use std::ops::ControlFlow;

    let items = candidates(false);
    let slicer = QuotaSlice::new(Vec::new(), GreedySlice).unwrap();
    let pipeline = pipeline(Box::new(slicer));
    let mut seen = Vec::new();
    let sweep = pipeline.sweep_observed(&items, &budget(100), 10..=49, 40, |progress| {
        seen.push((progress.reached, progress.one_by_one));
        assert_eq!((progress.first, progress.last), (10, 49));
        ControlFlow::Continue(())
    });
    assert_eq!(seen, (10..=49).map(|at| (at, true)).collect::<Vec<_>>());
    let sweep = sweep.unwrap();
    assert!(sweep.exact);
    let stop_at = |last: i64| {
        let sweep = pipeline.sweep_observed(&items, &budget(100), 10..=49, 40, |progress| {
            let share = (progress.reached - 10 + 1) as f64 / 40.0;
            assert_eq!(progress.fraction(), share);
            if progress.reached < last {
                ControlFlow::Continue(())
            } else {
                ControlFlow::Break(())
            }
        });
        sweep.unwrap()
    };
    for last in [10, 30, 49] {
        let stopped = stop_at(last);
        assert!(stopped.exact);
        assert_eq!(stopped.steps.last().unwrap().to, last);
        for budget in 10..=last {
            assert_eq!(stopped.selection_at(budget), sweep.selection_at(budget));
        }
        assert!(stopped.selection_at(last + 1).is_empty());
    }
}

#[test]
fn large_runs_are_tried_at_fewer_budgets() {
    let nested = |depth: usize| {
        let mut slicer: Box<dyn Slicer> = Box::new(GreedySlice);
        for _ in 0..depth {
            slicer = Box::new(QuotaSlice::new(Vec::new(), slicer).unwrap());
        }
        pipeline(slicer)
    };
    assert_eq!(nested(0).sweep_samples(0), Pipeline::SWEEP_SAMPLES);
    assert_eq!(nested(1).sweep_samples(10_000), Pipeline::SWEEP_SAMPLES);
    assert_eq!(nested(0).sweep_samples(1 << 17), 1 << 10);
    assert_eq!(nested(63).sweep_samples(1 << 11), 1 << 10);
    assert_eq!(nested(0).sweep_samples(usize::MAX), 64);
}
