//! The law checks: built-in strategies pass, and every violation is found.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use cupel::{
    ChoiceSlice, ChronologicalPlacer, CompositeScorer, ContextBudget, ContextItem, ContextKind,
    CountConstrainedKnapsackSlice, CountQuotaEntry, CountQuotaSlice, CupelError, DecayCurve,
    DecayScorer, DensitySlice, DiversitySlice, EmbeddingScorer, ExclusionReason, FrequencyScorer,
    FusionMethod, FusionScorer, GreedySlice, GroupSlice, KindScorer, KnapsackSlice, LadderSlice,
    LadderStep, MetadataKeyScorer, MetadataTrustScorer, NearDuplicateSlice, PlacementRule, Placer,
    PriorityScorer, ProductScorer, QuotaEntry, QuotaSlice, RankSlice, RecencyScorer,
    ReflexiveScorer, Refusal, ScaledScorer, ScarcityBehavior, ScoredItem, ScoredRef, Scorer,
    Selection, Similarity, Slicer, StrategyRole, TagComparison, TagScorer, UShapedPlacer,
};
use cupel_testing::fixture::{item, scored};
use cupel_testing::laws::{self, Law, check_placer, check_scorer, check_slicer};

// ---- scorers ----

/// Returns midnight of a day in January 2026.
macro_rules! day {
    ($day:literal) => {{
        let time = concat!("2026-01-", $day, "T00:00:00Z").parse().unwrap();
        let item = ContextItem::builder("x", 1)
            .timestamp(time)
            .build()
            .unwrap();
        item.timestamp().unwrap()
    }};
}

fn scorers() -> Result<Vec<Box<dyn Scorer>>, CupelError> {
    let weights = || [("urgent".to_owned(), 2.0), ("Work".to_owned(), 1.0)];
    let (now, week) = (day!("20"), day!("08") - day!("01"));
    let decay = |curve| DecayScorer::with_curve(now, curve);
    let composite = CompositeScorer::builder()
        .add(RecencyScorer, 0.3)
        .add(PriorityScorer, 0.2)
        .add(ScaledScorer::new(FrequencyScorer), 0.1)
        .build()?;
    let product = ProductScorer::new(vec![
        Box::new(ScaledScorer::new(RecencyScorer)),
        Box::new(MetadataKeyScorer::new("cupel:priority", "high", 1.5)?),
    ])?;
    let fusion = |method| {
        let entries: Vec<(Box<dyn Scorer>, f64)> = vec![
            (Box::new(RecencyScorer), 1.0),
            (Box::new(ReflexiveScorer), 2.0),
        ];
        FusionScorer::new(method, entries)
    };
    Ok(vec![
        Box::new(fusion(FusionMethod::Sum)?),
        Box::new(fusion(FusionMethod::ReciprocalRank)?),
        Box::new(fusion(FusionMethod::Shares)?),
        Box::new(EmbeddingScorer::new([0.5, 1.0])?),
        Box::new(RecencyScorer),
        Box::new(PriorityScorer),
        Box::new(KindScorer::with_default_weights()),
        Box::new(TagScorer::from_weights(weights(), TagComparison::Ordinal)?),
        Box::new(TagScorer::from_weights(
            weights(),
            TagComparison::IgnoreAsciiCase,
        )?),
        Box::new(FrequencyScorer),
        Box::new(ReflexiveScorer),
        Box::new(MetadataTrustScorer::new(0.25)?),
        Box::new(MetadataKeyScorer::new("cupel:priority", "high", 1.5)?),
        Box::new(decay(DecayCurve::exponential(week)?)?),
        Box::new(decay(DecayCurve::window(week)?)?),
        Box::new(decay(DecayCurve::step(vec![
            (week, 1.0),
            (week * 2, 0.5),
        ])?)?),
        Box::new(composite),
        Box::new(ScaledScorer::new(ScaledScorer::new(RecencyScorer))),
        Box::new(product),
    ])
}

// proves: SCORER-2
#[test]
fn every_scorer_keeps_the_laws() {
    for scorer in scorers().unwrap() {
        laws::scorer(&scorer);
        laws::scorer(&*scorer);
        laws::scorer(&Arc::<dyn Scorer>::from(scorer));
    }
}

/// A scorer from a function; `score_all` is the provided method.
struct ScoreBy<S>(S);

impl<S: Fn(&ContextItem) -> f64 + Send + Sync> Scorer for ScoreBy<S> {
    fn score(&self, item: &ContextItem, _all_items: &[ContextItem]) -> f64 {
        self.0(item)
    }
}

/// A scorer from two functions, `score` and `score_all`.
struct Score<S, B>(S, B);

impl<S, B> Scorer for Score<S, B>
where
    S: Fn(&ContextItem, &[ContextItem]) -> f64 + Send + Sync,
    B: Fn(&[ContextItem]) -> Result<Vec<f64>, CupelError> + Send + Sync,
{
    fn score(&self, item: &ContextItem, all_items: &[ContextItem]) -> f64 {
        self.0(item, all_items)
    }

    fn score_all(&self, items: &[ContextItem]) -> Result<Vec<f64>, CupelError> {
        self.1(items)
    }
}

fn tokens(item: &ContextItem, _all_items: &[ContextItem]) -> f64 {
    item.tokens() as f64
}

fn all_tokens(items: &[ContextItem]) -> Vec<f64> {
    items.iter().map(|item| item.tokens() as f64).collect()
}

/// The parts of a law check's panic message.
struct Violation {
    message: String,
    finding: String,
    input: String,
}

impl Violation {
    /// Asserts that the check panics for this role and law.
    fn of(role: StrategyRole, law: Law, check: impl FnOnce()) -> Self {
        let message = crate::panic_message(check);
        let rest = message.strip_prefix(&format!("{role} breaks {law}: "));
        let (finding, input) = rest
            .and_then(|rest| rest.split_once("; input: "))
            .unwrap_or_else(|| panic!("expected {role} to break {law}: {message}"));
        Self {
            finding: finding.to_owned(),
            input: input.to_owned(),
            message,
        }
    }
}

/// Returns a different number on every call.
fn counter() -> impl Fn() -> usize + Send + Sync {
    let count = AtomicUsize::new(0);
    move || count.fetch_add(1, Ordering::Relaxed)
}

fn scorer_breaks(law: Law, scorer: &dyn Scorer) -> Violation {
    Violation::of(StrategyRole::Scorer, law, || laws::scorer(scorer))
}

// proves: SCORER-2
#[test]
fn a_scorer_with_state_is_found() {
    let count = counter();
    let violation = scorer_breaks(
        Law::Repeatable,
        &ScoreBy(move |_: &ContextItem| count() as f64),
    );
    assert_eq!(
        violation.message,
        "scorer breaks Repeatable (the same input gives the same answer): \
         item 0 scores 0.0 with `score_all` and 1.0 with `score_all` again; \
         input: one plain item, 1 item: \"plain\" (1 tokens)"
    );

    // Only `score` depends on state.
    let count = counter();
    let violation = scorer_breaks(
        Law::Repeatable,
        &Score(
            move |_: &ContextItem, _: &[ContextItem]| count() as f64,
            |items: &[ContextItem]| Ok(all_tokens(items)),
        ),
    );
    assert_eq!(
        violation.finding,
        "item 0 scores 0.0 with `score` and 1.0 with `score` again"
    );
}

#[test]
fn a_batch_of_the_wrong_length_is_found() {
    let violation = scorer_breaks(
        Law::OneScorePerItem,
        &Score(tokens, |_: &[ContextItem]| Ok(vec![])),
    );
    assert_eq!(violation.finding, "0 scores for 1 items");
    let violation = scorer_breaks(
        Law::OneScorePerItem,
        &Score(tokens, |_: &[ContextItem]| Ok(vec![0.5])),
    );
    assert_eq!(violation.input, "empty list, no items");
}

#[test]
fn a_batch_that_differs_from_single_scores_is_found() {
    let last_bit = Score(
        |item: &ContextItem, _: &[ContextItem]| item.tokens() as f64 * 0.1,
        |items: &[ContextItem]| {
            Ok(items
                .iter()
                .map(|item| item.tokens() as f64 / 10.0)
                .collect())
        },
    );
    scorer_breaks(Law::BatchEqualsSingle, &last_bit);

    let sign_of_zero = Score(
        |_: &ContextItem, _: &[ContextItem]| -0.0,
        |items: &[ContextItem]| Ok(vec![0.0; items.len()]),
    );
    let violation = scorer_breaks(Law::BatchEqualsSingle, &sign_of_zero);
    assert_eq!(
        violation.finding,
        "item 0 scores 0.0 with `score_all` and -0.0 with `score`"
    );

    // A rank by value fails only on equal items and on the same item twice.
    let by_value = Score(
        |item: &ContextItem, all: &[ContextItem]| {
            all.iter().position(|other| other == item).unwrap() as f64
        },
        |items: &[ContextItem]| Ok((0..items.len()).map(|rank| rank as f64).collect()),
    );
    let violation = scorer_breaks(Law::BatchEqualsSingle, &by_value);
    assert!(
        violation.input.starts_with("equal items, 3 items: "),
        "{}",
        violation.message
    );
}

#[test]
fn all_nan_scores_are_equal() {
    let scorer = Score(
        |_: &ContextItem, _: &[ContextItem]| -f64::NAN,
        |items: &[ContextItem]| Ok(vec![f64::NAN; items.len()]),
    );
    laws::scorer(&scorer);
}

#[test]
fn a_scorer_that_fails_is_found() {
    let failing = Score(tokens, |_: &[ContextItem]| Err(CupelError::CycleDetected));
    let violation = check_scorer(&failing, &[item("a", 1)]).unwrap_err();
    assert_eq!(
        violation.to_string(),
        "scorer breaks Answers (it returns a result, not an error): \
         `score_all` failed: cycle detected: scorer appears in its own dependency graph; \
         input: 1 item: \"a\" (1 tokens)"
    );
}

#[test]
fn a_long_input_is_truncated() {
    let items: Vec<ContextItem> = (0..9).map(|_| item("word ".repeat(9), 1)).collect();
    let short = Score(tokens, |_: &[ContextItem]| Ok(vec![]));
    let violation = check_scorer(&short, &items).unwrap_err();
    let shown = r#""word word word word word word word word "... (1 tokens)"#;
    assert_eq!(
        violation.input(),
        format!("9 items: {}...", format!("{shown}, ").repeat(8))
    );
}

// ---- slicers ----

fn kind(name: &str) -> ContextKind {
    ContextKind::new(name).unwrap()
}

fn slicers() -> Result<Vec<Box<dyn Slicer>>, CupelError> {
    let shares = || -> Result<_, CupelError> {
        Ok(vec![
            QuotaEntry::new(kind("memory"), 20.0, 40.0)?,
            QuotaEntry::new(kind("Message"), 0.0, 60.0)?,
            QuotaEntry::new(kind("absent"), 10.0, 100.0)?,
        ])
    };
    let counts = || -> Result<_, CupelError> {
        Ok(vec![
            CountQuotaEntry::new(kind("memory"), 2, 3)?,
            CountQuotaEntry::new(kind("Message"), 0, 1)?,
            CountQuotaEntry::new(kind("note"), 0, 0)?,
        ])
    };
    let mut slicers: Vec<Box<dyn Slicer>> = vec![
        Box::new(GreedySlice),
        Box::new(RankSlice),
        Box::new(DensitySlice::new(0.5)?),
        Box::new(DiversitySlice::new(0.7, Similarity::Shingles)?),
        Box::new(GroupSlice::new(GreedySlice)),
        Box::new(NearDuplicateSlice::new(RankSlice)),
        Box::new(LadderSlice::new(vec![LadderStep::Drop])),
        Box::new(ChoiceSlice::new()),
        Box::new(KnapsackSlice::new(1)?),
        Box::new(KnapsackSlice::new(7)?),
        Box::new(KnapsackSlice::default()),
        Box::new(KnapsackSlice::new(1)?.cell_limit(10)),
        Box::new(QuotaSlice::new(vec![], GreedySlice)?),
        Box::new(QuotaSlice::new(shares()?, GreedySlice)?),
        Box::new(QuotaSlice::new(shares()?, KnapsackSlice::new(1)?)?),
    ];
    for scarcity in [ScarcityBehavior::Degrade, ScarcityBehavior::Throw] {
        let counted = CountQuotaSlice::new(counts()?, GreedySlice, scarcity)?;
        slicers.push(Box::new(counted.clone()));
        slicers.push(Box::new(QuotaSlice::new(shares()?, counted)?));
        let within = QuotaSlice::new(shares()?, GreedySlice)?;
        slicers.push(Box::new(CountQuotaSlice::new(counts()?, within, scarcity)?));
        let knapsack = KnapsackSlice::new(1)?;
        slicers.push(Box::new(CountConstrainedKnapsackSlice::new(
            counts()?,
            knapsack,
            scarcity,
        )?));
    }
    Ok(slicers)
}

// proves: SLICER-1, SLICER-2, SLICER-4
#[test]
fn every_slicer_keeps_the_laws() {
    for slicer in slicers().unwrap() {
        laws::slicer(&slicer);
        laws::slicer(&*slicer);
        laws::slicer(&Arc::<dyn Slicer>::from(slicer));
    }
}

/// A slicer from a function; `select` is the provided method.
struct SliceBy<S>(S);

impl<S> Slicer for SliceBy<S>
where
    S: Fn(&[ScoredItem], &ContextBudget) -> Result<Vec<ContextItem>, CupelError> + Send + Sync,
{
    fn slice(
        &self,
        sorted: &[ScoredItem],
        budget: &ContextBudget,
    ) -> Result<Vec<ContextItem>, CupelError> {
        self.0(sorted, budget)
    }
}

/// A slicer with `select` from a function and a greedy `slice`.
struct SelectBy<S>(S);

impl<S> Slicer for SelectBy<S>
where
    S: Fn(&[ScoredRef<'_>], &ContextBudget) -> Result<Selection, CupelError> + Send + Sync,
{
    fn slice(
        &self,
        sorted: &[ScoredItem],
        budget: &ContextBudget,
    ) -> Result<Vec<ContextItem>, CupelError> {
        GreedySlice.slice(sorted, budget)
    }

    fn select(
        &self,
        ranked: &[ScoredRef<'_>],
        budget: &ContextBudget,
    ) -> Result<Selection, CupelError> {
        self.0(ranked, budget)
    }
}

fn slicer_breaks(law: Law, slicer: &dyn Slicer) -> Violation {
    Violation::of(StrategyRole::Slicer, law, || laws::slicer(slicer))
}

// proves: SLICER-1
#[test]
fn a_slicer_that_invents_an_item_is_found() {
    let rebuilt = SliceBy(|sorted: &[ScoredItem], budget: &ContextBudget| {
        let kept = GreedySlice.slice(sorted, budget)?;
        kept.iter().map(|item| item.to_builder().build()).collect()
    });
    let violation = slicer_breaks(Law::Subset, &rebuilt);
    assert_eq!(
        violation.finding,
        "`slice` returned an item at position 0 that it did not receive"
    );

    let beyond = SelectBy(|ranked: &[ScoredRef<'_>], _: &ContextBudget| {
        Ok(Selection::keep(vec![ranked.len()]))
    });
    let violation = slicer_breaks(Law::Subset, &beyond);
    assert_eq!(
        violation.finding,
        "`select` returned an item at position 0 that it did not receive"
    );
}

// proves: SLICER-1
#[test]
fn a_slicer_that_keeps_an_item_twice_is_found() {
    let twice = SliceBy(|sorted: &[ScoredItem], budget: &ContextBudget| {
        let mut kept = GreedySlice.slice(sorted, budget)?;
        kept.extend(kept.first().cloned());
        Ok(kept)
    });
    let violation = slicer_breaks(Law::NoRepeats, &twice);
    assert_eq!(
        violation.finding,
        "`slice` returned an item again at position 1"
    );

    let twice = SelectBy(|ranked: &[ScoredRef<'_>], budget: &ContextBudget| {
        let mut selection = GreedySlice.select(ranked, budget)?;
        selection.extend(selection.kept().first().copied());
        Ok(selection)
    });
    let violation = slicer_breaks(Law::NoRepeats, &twice);
    assert_eq!(
        violation.finding,
        "`select` returned an item again at position 1"
    );
}

/// Keeps every item.
struct Everything {
    is_count_quota: bool,
}

impl Slicer for Everything {
    fn slice(
        &self,
        sorted: &[ScoredItem],
        budget: &ContextBudget,
    ) -> Result<Vec<ContextItem>, CupelError> {
        let offered = if budget.target_tokens() == 0 {
            &[]
        } else {
            sorted
        };
        Ok(offered.iter().map(|scored| scored.item.clone()).collect())
    }

    fn is_count_quota(&self) -> bool {
        self.is_count_quota
    }
}

// proves: SLICER-2
#[test]
fn a_slicer_that_exceeds_the_target_is_found_unless_it_counts() {
    laws::slicer(&Everything {
        is_count_quota: true,
    });
    let violation = slicer_breaks(
        Law::WithinTarget,
        &Everything {
            is_count_quota: false,
        },
    );
    assert_eq!(
        violation.message,
        "slicer breaks WithinTarget (the kept tokens are within the target): `slice` kept 10 tokens; \
         input: one item, target 1, 1 item: \"only\" (10 tokens, score 0.5)"
    );
    let selects = SelectBy(|ranked: &[ScoredRef<'_>], budget: &ContextBudget| {
        Everything {
            is_count_quota: false,
        }
        .select(ranked, budget)
    });
    let violation = slicer_breaks(Law::WithinTarget, &selects);
    assert_eq!(violation.finding, "`select` kept 10 tokens");
}

// proves: SLICER-4
#[test]
fn a_slicer_that_keeps_zero_token_items_on_a_target_of_zero_is_found() {
    let free = SliceBy(|sorted: &[ScoredItem], budget: &ContextBudget| {
        if budget.target_tokens() > 0 {
            return GreedySlice.slice(sorted, budget);
        }
        let free = sorted.iter().filter(|scored| scored.item.tokens() == 0);
        Ok(free.map(|scored| scored.item.clone()).collect())
    });
    let violation = slicer_breaks(Law::NothingFromNothing, &free);
    assert_eq!(violation.finding, "`slice` kept 1 items");
    assert!(
        violation
            .input
            .starts_with("one zero-token item, target 0, "),
        "{}",
        violation.message
    );
}

// proves: SLICER-4
#[test]
fn a_slicer_may_fail_but_not_on_an_empty_list_or_a_target_of_zero() {
    let failing = SliceBy(|sorted: &[ScoredItem], budget: &ContextBudget| {
        if sorted.is_empty() || budget.target_tokens() == 0 {
            return Ok(vec![]);
        }
        Err(CupelError::SlicerConfig("no".to_owned()))
    });
    laws::slicer(&failing);

    let always = SliceBy(|_: &[ScoredItem], _: &ContextBudget| {
        Err(CupelError::SlicerConfig("no".to_owned()))
    });
    let violation = slicer_breaks(Law::NothingFromNothing, &always);
    assert_eq!(
        violation.finding,
        "`slice` failed: invalid slicer configuration: no"
    );
    assert_eq!(violation.input, "empty list, target 1, no items");
}

// proves: SLICER-4
#[test]
fn every_list_is_also_checked_empty_and_with_a_target_of_zero() {
    let failing =
        |sorted: &[ScoredItem], budget: &ContextBudget| match (sorted, budget.target_tokens()) {
            ([], _) => Err(CupelError::SlicerConfig("empty".to_owned())),
            (_, 0) => Err(CupelError::SlicerConfig("no target".to_owned())),
            _ => Ok(vec![]),
        };
    let budget = ContextBudget::with_target(10, 10).unwrap();
    let violation = check_slicer(&SliceBy(failing), &[scored("a", 1, 0.5)], &budget).unwrap_err();
    assert_eq!(violation.law(), Law::NothingFromNothing);
    assert_eq!(violation.input(), "target 10, no items");

    let without_target = |sorted: &[ScoredItem], budget: &ContextBudget| match sorted {
        [] => Ok(vec![]),
        _ => failing(sorted, budget),
    };
    let violation =
        check_slicer(&SliceBy(without_target), &[scored("a", 1, 0.5)], &budget).unwrap_err();
    assert_eq!(violation.law(), Law::NothingFromNothing);
    assert_eq!(
        violation.input(),
        "target 0, 1 item: \"a\" (1 tokens, score 0.5)"
    );
}

/// Returns a different error from each method.
struct Undecided;

impl Slicer for Undecided {
    fn slice(
        &self,
        _sorted: &[ScoredItem],
        _budget: &ContextBudget,
    ) -> Result<Vec<ContextItem>, CupelError> {
        Err(CupelError::SlicerConfig("one".to_owned()))
    }

    fn select(
        &self,
        _ranked: &[ScoredRef<'_>],
        _budget: &ContextBudget,
    ) -> Result<Selection, CupelError> {
        Err(CupelError::SlicerConfig("two".to_owned()))
    }
}

#[test]
fn a_slicer_whose_methods_fail_differently_is_found() {
    let violation = slicer_breaks(Law::SelectEqualsSlice, &Undecided);
    assert_eq!(
        violation.finding,
        "`slice` failed: invalid slicer configuration: one, `select` failed: invalid slicer configuration: two"
    );
}

#[test]
fn a_slicer_whose_methods_disagree_is_found() {
    let nothing = SelectBy(|_: &[ScoredRef<'_>], _: &ContextBudget| Ok(Selection::default()));
    let violation = slicer_breaks(Law::SelectEqualsSlice, &nothing);
    assert_eq!(
        violation.finding,
        "`slice` kept ranks [0], `select` kept ranks []"
    );

    let twin = |ranked: &[ScoredRef<'_>], budget: &ContextBudget| {
        let chosen = GreedySlice.select(ranked, budget)?;
        let equal = |&rank: &usize| {
            let twin = (0..ranked.len()).find(|&other| {
                other != rank
                    && ranked[other].item == ranked[rank].item
                    && !chosen.kept().contains(&other)
            });
            twin.unwrap_or(rank)
        };
        Ok(Selection::keep(chosen.kept().iter().map(equal).collect()))
    };
    let violation = slicer_breaks(Law::SelectEqualsSlice, &SelectBy(twin));
    assert!(
        violation.input.starts_with("equal items, "),
        "{}",
        violation.message
    );

    let failing = SelectBy(|ranked: &[ScoredRef<'_>], budget: &ContextBudget| {
        if ranked.len() == 3 {
            return Err(CupelError::CycleDetected);
        }
        GreedySlice.select(ranked, budget)
    });
    let violation = slicer_breaks(Law::SelectEqualsSlice, &failing);
    assert_eq!(
        violation.finding,
        "`slice` kept ranks [], `select` failed: cycle detected: scorer appears in its own dependency graph"
    );
}

#[test]
fn the_order_of_the_kept_items_does_not_matter() {
    let reversed = SelectBy(|ranked: &[ScoredRef<'_>], budget: &ContextBudget| {
        let mut kept = GreedySlice.select(ranked, budget)?.kept().to_vec();
        kept.reverse();
        Ok(Selection::keep(kept))
    });
    laws::slicer(&reversed);
}

#[test]
fn a_slicer_with_state_is_found() {
    let count = counter();
    let alternating =
        SliceBy(
            move |sorted: &[ScoredItem], budget: &ContextBudget| match count() % 2 {
                0 => GreedySlice.slice(sorted, budget),
                _ => Ok(vec![]),
            },
        );
    let violation = slicer_breaks(Law::Repeatable, &alternating);
    assert_eq!(
        violation.finding,
        "the second call of `slice` gave a different answer"
    );

    // Only the notes depend on state.
    let count = counter();
    let remarking = SelectBy(move |ranked: &[ScoredRef<'_>], budget: &ContextBudget| {
        let mut selection = GreedySlice.select(ranked, budget)?;
        selection.refuse(
            0,
            Refusal::CountCap {
                cap: 0,
                count: count(),
            },
        );
        Ok(selection)
    });
    let violation = slicer_breaks(Law::Repeatable, &remarking);
    assert_eq!(
        violation.finding,
        "the second call of `select` gave a different answer"
    );
}

#[test]
fn nan_in_a_note_is_repeatable() {
    let remarking = SelectBy(|ranked: &[ScoredRef<'_>], budget: &ContextBudget| {
        let mut selection = GreedySlice.select(ranked, budget)?;
        let too_low = ExclusionReason::ScoredTooLow {
            score: f64::NAN,
            threshold: 0.5,
        };
        selection.refuse(0, Refusal::Because(too_low));
        Ok(selection)
    });
    laws::slicer(&remarking);
}

#[test]
fn an_item_offered_twice_may_be_kept_twice_and_by_either_rank() {
    let same = scored("same", 4, 0.5);
    let sorted = [same.clone(), same];
    let budget = |tokens| ContextBudget::with_target(tokens, tokens).unwrap();
    assert_eq!(check_slicer(&GreedySlice, &sorted, &budget(8)), Ok(()));

    let last = SelectBy(|ranked: &[ScoredRef<'_>], budget: &ContextBudget| {
        let chosen = GreedySlice.select(ranked, budget)?;
        let mirrored = chosen.kept().iter().map(|rank| ranked.len() - 1 - rank);
        Ok(Selection::keep(mirrored.collect()))
    });
    assert_eq!(check_slicer(&last, &sorted, &budget(4)), Ok(()));
}

// ---- placers ----

// proves: PLACER-1, PLACER-2
#[test]
fn every_placer_keeps_the_laws() {
    let placers: [Box<dyn Placer>; 2] = [Box::new(ChronologicalPlacer), Box::new(UShapedPlacer)];
    for placer in placers {
        laws::placer(&placer);
        laws::placer(&*placer);
        laws::placer(&Arc::<dyn Placer>::from(placer));
    }
}

/// A placer from two functions, `place` and `arrange`.
struct Place<P, A>(P, A);

impl<P, A> Placer for Place<P, A>
where
    P: Fn(&[ScoredItem]) -> Vec<ContextItem> + Send + Sync,
    A: Fn(&[ScoredRef<'_>]) -> Result<Vec<usize>, CupelError> + Send + Sync,
{
    fn place(&self, items: &[ScoredItem]) -> Vec<ContextItem> {
        self.0(items)
    }

    fn arrange(&self, items: &[ScoredRef<'_>]) -> Result<Vec<usize>, CupelError> {
        self.1(items)
    }
}

fn in_order(items: &[ScoredItem]) -> Vec<ContextItem> {
    items.iter().map(|scored| scored.item.clone()).collect()
}

fn order(items: &[ScoredRef<'_>]) -> Vec<usize> {
    (0..items.len()).collect()
}

fn placer_breaks(law: Law, placer: &dyn Placer) -> Violation {
    Violation::of(StrategyRole::Placer, law, || laws::placer(placer))
}

/// A function that breaks the law, and the finding.
type PlaceCase = (fn(&[ScoredItem]) -> Vec<ContextItem>, &'static str);
type ArrangeCase = (fn(&[ScoredRef<'_>]) -> Vec<usize>, &'static str);

// proves: PLACER-1
#[test]
fn a_placer_that_loses_repeats_or_invents_an_item_is_found() {
    let arrange = |items: &[ScoredRef<'_>]| Ok(order(items));
    let cases: [PlaceCase; 3] = [
        (
            |items| in_order(items).into_iter().skip(1).collect(),
            "`place` returned 0 of 1 items",
        ),
        (
            |items| {
                in_order(items)
                    .into_iter()
                    .cycle()
                    .take(2 * items.len())
                    .collect()
            },
            "`place` returned an item again at position 1",
        ),
        (
            |items| {
                in_order(items)
                    .iter()
                    .map(|item| item.to_builder().build().unwrap())
                    .collect()
            },
            "`place` returned an item at position 0 that it did not receive",
        ),
    ];
    for (place, finding) in cases {
        let violation = placer_breaks(Law::Permutation, &Place(place, arrange));
        assert_eq!(violation.finding, finding);
    }

    let cases: [ArrangeCase; 3] = [
        (
            |items| order(items).into_iter().skip(1).collect(),
            "`arrange` returned 0 of 1 items",
        ),
        (
            |items| vec![0; 2 * items.len()],
            "`arrange` returned an item again at position 1",
        ),
        (
            |items| vec![items.len()],
            "`arrange` returned an item at position 0 that it did not receive",
        ),
    ];
    for (arrange, finding) in cases {
        let arrange = move |items: &[ScoredRef<'_>]| Ok(arrange(items));
        let violation = placer_breaks(Law::Permutation, &Place(in_order, arrange));
        assert_eq!(violation.finding, finding);
    }
}

// proves: PLACER-2
#[test]
fn a_placer_with_state_is_found() {
    let count = counter();
    let turning = Place(
        move |items: &[ScoredItem]| {
            let mut placed = in_order(items);
            placed.rotate_left(count() % items.len().max(1));
            placed
        },
        |items: &[ScoredRef<'_>]| Ok(order(items)),
    );
    let violation = placer_breaks(Law::Repeatable, &turning);
    assert!(
        violation.finding.contains("from `place` and "),
        "{}",
        violation.message
    );

    let count = counter();
    let turning = Place(in_order, move |items: &[ScoredRef<'_>]| {
        let mut order = order(items);
        order.rotate_left(count() % items.len().max(1));
        Ok(order)
    });
    let violation = placer_breaks(Law::Repeatable, &turning);
    assert!(
        violation.finding.contains("from `arrange` and "),
        "{}",
        violation.message
    );
}

#[test]
fn a_placer_whose_methods_disagree_is_found() {
    let items = [scored("a", 1, 0.9), scored("b", 2, 0.8)];
    let backwards = Place(in_order, |items: &[ScoredRef<'_>]| {
        Ok(order(items).into_iter().rev().collect())
    });
    let violation = check_placer(&backwards, &items).unwrap_err();
    assert_eq!(
        violation.to_string(),
        "placer breaks ArrangeEqualsPlace (`arrange` gives the order that `place` gives): \
         position 0 is \"a\" from `place` and \"b\" from `arrange`; \
         input: 2 items: \"a\" (1 tokens, score 0.9), \"b\" (2 tokens, score 0.8)"
    );
    placer_breaks(Law::ArrangeEqualsPlace, &backwards);

    // Two positions of the same item are interchangeable.
    let same = scored("same", 1, 0.5);
    assert_eq!(check_placer(&backwards, &[same.clone(), same]), Ok(()));
}

#[test]
fn a_placer_whose_rule_fails_for_a_subset_is_found() {
    /// Reverses lists of odd length. No single rule gives that order for all subsets.
    struct OddReversed;
    impl Placer for OddReversed {
        fn place(&self, items: &[ScoredItem]) -> Vec<ContextItem> {
            let mut placed = in_order(items);
            if items.len() % 2 == 1 {
                placed.reverse();
            }
            placed
        }

        fn rule(&self, items: &[ScoredRef<'_>]) -> Option<PlacementRule> {
            let mut sequence = order(items);
            if items.len() % 2 == 1 {
                sequence.reverse();
            }
            Some(PlacementRule::in_sequence(sequence))
        }
    }
    /// Forgets the first item.
    struct Incomplete;
    impl Placer for Incomplete {
        fn place(&self, items: &[ScoredItem]) -> Vec<ContextItem> {
            in_order(items)
        }

        fn arrange(&self, items: &[ScoredRef<'_>]) -> Result<Vec<usize>, CupelError> {
            Ok(order(items))
        }

        fn rule(&self, items: &[ScoredRef<'_>]) -> Option<PlacementRule> {
            let sequence = order(items).into_iter().skip(1);
            Some(PlacementRule::in_sequence(sequence.collect()))
        }
    }
    let items = ["a", "b", "c"].map(|content| scored(content, 1, 0.5));
    let violation = check_placer(&OddReversed, &items).unwrap_err();
    assert_eq!(violation.law(), Law::RuleEqualsArrange);
    assert_eq!(
        violation.finding(),
        "position 0 is \"a\" from `arrange` and \"c\" from `rule`"
    );

    let violation = check_placer(&Incomplete, &items).unwrap_err();
    assert_eq!(violation.law(), Law::RuleEqualsArrange);
    assert_eq!(violation.finding(), "`rule` places 2 of 3 items");
}

#[test]
fn a_placer_that_fails_is_found() {
    let failing = Place(in_order, |_: &[ScoredRef<'_>]| {
        Err(CupelError::CycleDetected)
    });
    let violation = placer_breaks(Law::Answers, &failing);
    assert_eq!(
        violation.finding,
        "`arrange` failed: cycle detected: scorer appears in its own dependency graph"
    );
}
