//! Views: shorter forms of an item, from the builder to the report.

use cupel::slicer::slice_by_selection;
use cupel::*;

fn budget(tokens: i64) -> ContextBudget {
    ContextBudget::with_target(tokens, tokens).unwrap()
}

fn item(content: &str, tokens: i64, views: &[(&str, i64)]) -> ContextItem {
    let views = views.iter();
    ContextItem::builder(content, tokens)
        .views(
            views
                .map(|(text, tokens)| ContextView::new(*text, *tokens))
                .collect(),
        )
        .build()
        .unwrap()
}

/// A slicer that a function implements.
struct SelectBy<F>(F);

impl<F> Slicer for SelectBy<F>
where
    F: Fn(&[ScoredRef<'_>]) -> Selection + Send + Sync,
{
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
        Ok((self.0)(ranked))
    }
}

/// Keeps all items and shortens those of the given ranks.
fn shortening(views: &'static [(usize, usize)]) -> impl Slicer {
    SelectBy(move |ranked: &[ScoredRef<'_>]| {
        let mut selection = Selection::keep((0..ranked.len()).collect());
        for &(rank, view) in views {
            selection.shorten(rank, view);
        }
        selection
    })
}

fn pipeline(slicer: impl Slicer + 'static) -> Pipeline {
    Pipeline::new(ReflexiveScorer, slicer, ChronologicalPlacer)
}

#[test]
fn views_are_sorted_by_level_and_have_default_values() {
    let item = ContextItem::builder("full", 200)
        .view(ContextView::new("title", 10))
        .view(ContextView::new("extract", 50).with_level(100))
        .view(
            ContextView::new("nothing", 0)
                .with_level(60)
                .with_value(1.0),
        )
        .build()
        .unwrap();
    let views: Vec<_> = item
        .views()
        .iter()
        .map(|view| (view.content(), view.tokens(), view.level(), view.value()))
        .collect();
    assert_eq!(
        views,
        [
            ("extract", 50, 100, Some(0.25)),
            ("nothing", 0, 60, Some(1.0)),
            ("title", 10, 10, Some(0.05)),
        ]
    );
    assert_eq!(ContextView::new("alone", 5).value(), None);
    assert_eq!(item.to_builder().build().unwrap(), item);
    assert_ne!(item.to_builder().views(Vec::new()).build().unwrap(), item);
}

#[test]
fn an_invalid_view_is_refused_with_its_index() {
    let view = ContextView::new;
    let rows = [
        (view("", 1), "view 1: content must be non-empty"),
        (view("x", -1), "view 1: tokens (-1) must be >= 0"),
        (
            view("x", 40),
            "view 1: tokens (40) must be below the item's tokens (40)",
        ),
        (
            view("x", 1).with_value(1.5),
            "view 1: value (1.5) must be in [0.0, 1.0]",
        ),
        (
            view("x", 1).with_value(f64::NAN),
            "view 1: value (NaN) must be in [0.0, 1.0]",
        ),
        (
            view("x", 1).with_level(7),
            "two views have the level 7; give every view its own",
        ),
    ];
    for (second, expected) in rows {
        let builder = ContextItem::builder("full", 40)
            .view(view("first", 7))
            .view(second);
        let error = builder.build().unwrap_err();
        assert_eq!(error, CupelError::InvalidView(expected.to_owned()));
        assert_eq!(error.code(), "InvalidView");
    }
    assert!(
        ContextItem::builder("x", -5)
            .view(view("y", 0))
            .build()
            .is_err()
    );
}

#[test]
fn an_item_as_a_view_keeps_everything_but_content_and_tokens() {
    let item = ContextItem::builder("full", 200)
        .kind(ContextKind::tool_output())
        .priority(i64::MIN)
        .tag("ci")
        .meta("key", "value")
        .original_tokens(900)
        .view(ContextView::new("extract", 50))
        .build()
        .unwrap();
    let expected = ContextItem::builder("extract", 50)
        .kind(ContextKind::tool_output())
        .priority(i64::MIN)
        .tag("ci")
        .meta("key", "value")
        .original_tokens(200)
        .build()
        .unwrap();
    assert_eq!(item.as_view(0), Some(expected));
    assert_eq!(item.as_view(1), None);
}

#[test]
fn a_shortened_item_is_its_view_everywhere_in_a_run() {
    let items = [
        item("first", 1310, &[("first, shortened", 96)]),
        item("second", 30, &[("second, shortened", 10)]),
    ];
    let pipeline = pipeline(shortening(&[(0, 0)]));
    let decisions = pipeline.decide(&items, &budget(130)).unwrap();
    assert_eq!(decisions.window(), [0, 1]);
    assert_eq!((decisions.view(0), decisions.view(1)), (Some(0), None));
    assert_eq!(decisions.view(2), None);
    assert_eq!(decisions.item(0).content(), "first, shortened");
    assert!(decisions.item(1).is_same(&items[1]));
    assert_eq!((decisions.tokens_used(), decisions.tokens_left()), (126, 4));
    let reason = InclusionReason::Shortened {
        tokens: 96,
        original_tokens: 1310,
    };
    assert_eq!(decisions.inclusion(0), Some(reason));
    assert_eq!(reason.phrase(), "shortened to 96 of 1,310 tokens");

    let window = pipeline.run(&items, &budget(130)).unwrap();
    assert_eq!(window, [items[0].as_view(0).unwrap(), items[1].clone()]);

    let report = pipeline.dry_run(&items, &budget(130)).unwrap();
    assert_eq!(report.included[0].item.original_tokens(), Some(1310));
    assert_eq!(report.included[0].reason, reason);
    assert_eq!(report.total_tokens_considered, 1340);
    let mut collector = DiagnosticTraceCollector::new(TraceDetailLevel::Item);
    pipeline
        .run_traced(&items, &budget(130), &mut collector)
        .unwrap();
    assert_eq!(collector.into_report().included, report.included);
    assert!(!format!("{:?}", report.without_content()).contains("shortened,"));

    let explanation = pipeline.explain(&items, &budget(130), 0).unwrap();
    let text = explanation.to_string();
    assert!(text.contains("shortened to 96 of 1,310 tokens"), "{text}");
}

#[test]
fn a_report_without_content_has_no_content_of_views() {
    let items = [item("a", 100, &[("secret", 5)])];
    let report = pipeline(GreedySlice).dry_run(&items, &budget(10)).unwrap();
    assert!(format!("{report:?}").contains("secret"));
    assert!(!format!("{:?}", report.without_content()).contains("secret"));
}

#[test]
fn the_overflow_strategy_counts_the_tokens_of_views() {
    let items = [
        item("a", 100, &[("a, shortened", 60)]),
        item("b", 100, &[("b, shortened", 50)]),
    ];
    let run = |strategy| {
        let pipeline = Pipeline::builder()
            .scorer(ReflexiveScorer)
            .slicer(shortening(&[(0, 0), (1, 0)]))
            .placer(ChronologicalPlacer)
            .overflow_strategy(strategy)
            .build()
            .unwrap();
        let decisions = pipeline.decide(&items, &budget(109));
        decisions.map(|decisions| {
            let views = [0, 1].map(|candidate| decisions.view(candidate));
            (
                decisions.window().to_vec(),
                views,
                decisions.overflow(),
                decisions.exclusion(1),
            )
        })
    };
    assert_eq!(
        run(OverflowStrategy::Throw),
        Err(CupelError::Overflow {
            merged_tokens: 110,
            target_tokens: 109
        })
    );
    assert_eq!(
        run(OverflowStrategy::Proceed),
        Ok((vec![0, 1], [Some(0), Some(0)], Some(1), None))
    );
    let too_large = ExclusionReason::BudgetExceeded {
        item_tokens: 50,
        available_tokens: 49,
    };
    assert_eq!(
        run(OverflowStrategy::Truncate),
        Ok((vec![0], [Some(0), None], None, Some(too_large)))
    );
}

#[test]
fn a_view_that_does_not_exist_breaks_the_contract() {
    let items = [item("a", 100, &[("b", 5)]), item("c", 100, &[])];
    let run = |views: &'static [(usize, usize)]| {
        let error = pipeline(shortening(views)).run(&items, &budget(300));
        error.map(|window| window.len())
    };
    let violation = |position| {
        Err(CupelError::Contract {
            strategy: StrategyRole::Slicer,
            violation: ContractViolation::UnknownView { position },
        })
    };
    assert_eq!(run(&[(0, 0)]), Ok(2));
    assert_eq!(run(&[(0, 0), (1, 0)]), violation(1));
    assert_eq!(run(&[(0, 1)]), violation(0));
    assert_eq!(run(&[(0, 0), (0, 0)]), violation(1));
    assert_eq!(run(&[(2, 0)]), violation(0));
    let unkept = SelectBy(|_: &[ScoredRef<'_>]| {
        let mut selection = Selection::keep(vec![1]);
        selection.shorten(0, 0);
        selection
    });
    let error = pipeline(unkept).run(&items, &budget(300));
    assert_eq!(error.map(|window| window.len()), violation(0));
}

/// Keeps every item as its first view if it has one.
struct FirstViews;

impl Slicer for FirstViews {
    fn slice(
        &self,
        sorted: &[ScoredItem],
        _budget: &ContextBudget,
    ) -> Result<Vec<ContextItem>, CupelError> {
        let view = |item: &ContextItem| item.as_view(0).unwrap_or_else(|| item.clone());
        Ok(sorted.iter().map(|scored| view(&scored.item)).collect())
    }
}

#[test]
fn a_custom_slicer_may_return_views() {
    let twin = || item("a", 100, &[("same", 5)]);
    let items = [twin(), item("b", 50, &[]), twin()];
    let pipeline = Pipeline::builder()
        .scorer(ReflexiveScorer)
        .slicer(FirstViews)
        .placer(UShapedPlacer)
        .deduplication(false)
        .build()
        .unwrap();
    let decisions = pipeline.decide(&items, &budget(60)).unwrap();
    let views = [0, 1, 2].map(|candidate| decisions.view(candidate));
    assert_eq!(views, [Some(0), None, Some(0)]);
    assert_eq!(decisions.tokens_used(), 60);
}

#[test]
fn decorators_pass_views_on() {
    let items = [
        item("a", 100, &[("a, shortened", 30)]),
        item("b", 100, &[("b, shortened", 20)]),
    ];
    let grouped = |index: usize| {
        let item = items[index].to_builder();
        item.meta(GroupSlice::KEY, "pair").build().unwrap()
    };
    let single = item("c", 50, &[("c, shortened", 5)]);
    let counts = |cap| vec![CountQuotaEntry::new(ContextKind::message(), 0, cap).unwrap()];
    let count_quota = |cap| {
        let scarcity = ScarcityBehavior::Degrade;
        CountQuotaSlice::new(counts(cap), shortening(&[(0, 0), (1, 0)]), scarcity).unwrap()
    };
    let views = |slicer: Box<dyn Slicer>, items: &[ContextItem]| {
        let decisions = pipeline(slicer);
        let decisions = decisions.decide(items, &budget(300)).unwrap();
        let views: Vec<_> = (0..items.len()).map(|c| decisions.view(c)).collect();
        views
    };
    let both = shortening(&[(0, 0), (1, 0)]);
    let quota = QuotaSlice::new(Vec::new(), both).unwrap();
    assert_eq!(views(Box::new(quota), &items), [Some(0), Some(0)]);
    assert_eq!(views(Box::new(count_quota(2)), &items), [Some(0), Some(0)]);
    assert_eq!(views(Box::new(count_quota(1)), &items), [Some(0), None]);
    // A group of several has no views; a group of one has its member's.
    let mixed = [grouped(0), grouped(1), single];
    let group = GroupSlice::new(shortening(&[(1, 0)]));
    assert_eq!(views(Box::new(group), &mixed), [None, None, Some(0)]);
    let group = GroupSlice::new(shortening(&[(0, 0)]));
    let error = pipeline(group).run(&mixed, &budget(300)).unwrap_err();
    assert_eq!(error.code(), "Contract");
}

#[test]
fn a_group_that_does_not_fit_has_the_room_that_views_leave() {
    let member = |content: &str| {
        let item = item(content, 200, &[]).to_builder();
        item.meta(GroupSlice::KEY, "pair").build().unwrap()
    };
    let items = [
        item("a", 100, &[("a, shortened", 30)]),
        member("b"),
        member("c"),
    ];
    let first_shortened = SelectBy(|_: &[ScoredRef<'_>]| {
        let mut selection = Selection::keep(vec![0]);
        selection.shorten(0, 0);
        selection
    });
    let pipeline = pipeline(GroupSlice::new(first_shortened));
    let decisions = pipeline.decide(&items, &budget(300)).unwrap();
    assert_eq!(decisions.window(), [0]);
    let reason = ExclusionReason::GroupExcluded {
        group_size: 2,
        group_tokens: 400,
        available_tokens: 270,
    };
    let report = decisions.to_report();
    assert!(
        report
            .excluded
            .iter()
            .all(|excluded| excluded.reason == reason),
        "{report:?}"
    );
}

#[test]
fn a_smaller_budget_that_shortens_an_item_does_not_lose_it() {
    let slicer = LadderOfOne;
    let items = [item("a", 100, &[("a, shortened", 30)]), item("b", 20, &[])];
    let lost = pipeline(slicer)
        .get_marginal_items(&items, &budget(120), 70)
        .unwrap();
    assert!(lost.is_empty(), "{lost:?}");
    let lost = pipeline(slicer)
        .get_marginal_items(&items, &budget(50), 30)
        .unwrap();
    assert_eq!(lost, [items[0].as_view(0).unwrap()]);
}

/// Keeps both of two items, shortens the first, or drops it.
#[derive(Clone, Copy)]
struct LadderOfOne;

impl Slicer for LadderOfOne {
    fn slice(
        &self,
        sorted: &[ScoredItem],
        budget: &ContextBudget,
    ) -> Result<Vec<ContextItem>, CupelError> {
        let (a, b) = (&sorted[0].item, &sorted[1].item);
        Ok(match budget.target_tokens() {
            120.. => vec![a.clone(), b.clone()],
            50.. => vec![a.as_view(0).unwrap(), b.clone()],
            _ => vec![b.clone()],
        })
    }
}

#[cfg(feature = "serde")]
mod wire {
    use super::*;

    #[test]
    fn views_are_an_optional_field_of_an_item() {
        let plain = item("full", 40, &[]);
        let json = serde_json::to_string(&plain).unwrap();
        assert!(!json.contains("views"), "{json}");
        let json = r#"{"content":"full","tokens":40,"views":[{"content":"x","tokens":10},{"content":"y","tokens":9,"level":20,"value":0.5}]}"#;
        let read: ContextItem = serde_json::from_str(json).unwrap();
        let expected = ContextItem::builder("full", 40)
            .view(ContextView::new("y", 9).with_level(20).with_value(0.5))
            .view(ContextView::new("x", 10))
            .build()
            .unwrap();
        assert_eq!(read, expected);
        let written = serde_json::to_string(&read).unwrap();
        let views = r#""views":[{"content":"y","tokens":9,"level":20,"value":0.5},{"content":"x","tokens":10,"level":10,"value":0.25}]"#;
        assert!(written.ends_with(&format!("{views}}}")), "{written}");
        assert_eq!(serde_json::from_str::<ContextItem>(&written).unwrap(), read);
        for wrong in [
            r#"{"content":"x","tokens":40}"#,
            r#"{"content":"x","tokens":1,"size":2}"#,
            r#"{"content":"x"}"#,
        ] {
            let json = format!(r#"{{"content":"full","tokens":40,"views":[{wrong}]}}"#);
            assert!(
                serde_json::from_str::<ContextItem>(&json).is_err(),
                "{json}"
            );
        }
    }

    #[test]
    fn a_shortened_reason_has_its_numbers_on_the_wire() {
        let reason = InclusionReason::Shortened {
            tokens: 96,
            original_tokens: 1310,
        };
        let json = r#"{"reason":"Shortened","tokens":96,"original_tokens":1310}"#;
        assert_eq!(serde_json::to_string(&reason).unwrap(), json);
        assert_eq!(
            serde_json::from_str::<InclusionReason>(json).unwrap(),
            reason
        );
        let camel = r#"{"reason":"Shortened","tokens":96,"originalTokens":1310}"#;
        assert_eq!(
            serde_json::from_str::<InclusionReason>(camel).unwrap(),
            reason
        );
        for wrong in [
            r#"{"reason":"Shortened"}"#,
            r#"{"reason":"Shortened","tokens":"x","original_tokens":1}"#,
        ] {
            assert!(
                serde_json::from_str::<InclusionReason>(wrong).is_err(),
                "{wrong}"
            );
        }
    }
}

#[cfg(feature = "documents")]
#[test]
fn a_request_has_items_with_views() {
    use cupel::config::{Document, Format};

    let read = |views: &str| {
        let text = format!(r#"[{{"content":"full","tokens":40,"views":{views}}}]"#);
        let document = Document::parse(&text, Format::Json).unwrap();
        document.request().map_err(|error| error.to_string())
    };
    let request = read(r#"[{"content":"x","tokens":10,"level":16,"value":0.5}]"#).unwrap();
    let view = ContextView::new("x", 10).with_level(16).with_value(0.5);
    assert_eq!(request.items[0].views(), [view]);
    assert_eq!(
        read(r#"[{"content":"x","tokens":50}]"#).unwrap_err(),
        "line 1, column 40: [0].views: invalid view: view 0: tokens (50) must be below the item's tokens (40)"
    );
    assert_eq!(
        read(r#"[{"content":"x"}]"#).unwrap_err(),
        "line 1, column 41: [0].views[0]: missing field \"tokens\"; add it: the token count, below the item's"
    );
    assert!(read("null").unwrap().items[0].views().is_empty());
}
