//! `cupel::slicer`: constructors, refusals, self-description and selections.

use std::collections::HashMap;

use cupel::{
    ContextBudget, ContextItem, ContextKind, CountConstrainedKnapsackSlice, CountQuotaEntry,
    CountQuotaSlice, CountRequirementShortfall, CupelError, GreedySlice, KnapsackSlice, Pipeline,
    QuotaConstraint, QuotaConstraintMode, QuotaEntry, QuotaPolicy, QuotaSlice, ReflexiveScorer,
    ScarcityBehavior, ScoredItem, Slicer, UShapedPlacer,
};

use super::{budget, contents, item, kind, of_kind, scored};

type Construction<T> = Result<T, CupelError>;
type Boxed = Box<dyn Slicer>;
type Counts = Vec<CountQuotaEntry>;

#[test]
fn slicer_constructors_have_their_signatures() {
    let _: fn(i64) -> Construction<KnapsackSlice> = KnapsackSlice::new;
    let _: fn() -> KnapsackSlice = KnapsackSlice::with_default_bucket_size;
    let _: fn(ContextKind, f64, f64) -> Construction<QuotaEntry> = QuotaEntry::new;
    let _: fn(&QuotaEntry) -> &ContextKind = QuotaEntry::kind;
    let _: fn(&QuotaEntry) -> f64 = QuotaEntry::require;
    let _: fn(&QuotaEntry) -> f64 = QuotaEntry::cap;
    let _: fn(Vec<QuotaEntry>, Boxed) -> Construction<QuotaSlice> = QuotaSlice::new;
    let _: fn(ContextKind, usize, usize) -> Construction<CountQuotaEntry> = CountQuotaEntry::new;
    let _: fn(&CountQuotaEntry) -> &ContextKind = CountQuotaEntry::kind;
    let _: fn(&CountQuotaEntry) -> usize = CountQuotaEntry::require_count;
    let _: fn(&CountQuotaEntry) -> usize = CountQuotaEntry::cap_count;
}

#[test]
fn count_slicers_have_their_signatures() {
    type Outer = CountQuotaSlice;
    type Packed = CountConstrainedKnapsackSlice;

    let _: fn(Counts, Boxed, ScarcityBehavior) -> Construction<Outer> = Outer::new;
    let _: fn(&Outer) -> &[CountQuotaEntry] = Outer::entries;
    let _: fn(&Outer) -> ScarcityBehavior = Outer::scarcity;
    let _: fn(Counts, KnapsackSlice, ScarcityBehavior) -> Construction<Packed> = Packed::new;
    let _: fn(&Packed) -> &[CountQuotaEntry] = Packed::entries;
    let _: fn(&Packed) -> ScarcityBehavior = Packed::scarcity;
}

#[test]
fn slicer_trait_methods_have_their_signatures() {
    type Slice<S> = fn(&S, &[ScoredItem], &ContextBudget) -> Result<Vec<ContextItem>, CupelError>;
    let _: Slice<GreedySlice> = Slicer::slice;
    let _: Slice<KnapsackSlice> = Slicer::slice;
    let _: Slice<QuotaSlice> = Slicer::slice;
    let _: Slice<CountQuotaSlice> = Slicer::slice;
    let _: Slice<CountConstrainedKnapsackSlice> = Slicer::slice;
    let _: fn(&GreedySlice) -> bool = Slicer::is_knapsack;
    let _: fn(&GreedySlice) -> bool = Slicer::is_quota;
    let _: fn(&GreedySlice) -> bool = Slicer::is_count_quota;
    let _: fn(&GreedySlice) -> HashMap<ContextKind, usize> = Slicer::count_cap_map;
    let _: fn(&QuotaSlice) -> Vec<QuotaConstraint> = QuotaPolicy::quota_constraints;
    let _: fn(&CountQuotaSlice) -> Vec<QuotaConstraint> = QuotaPolicy::quota_constraints;
    let _: fn(&CountConstrainedKnapsackSlice) -> Vec<QuotaConstraint> =
        QuotaPolicy::quota_constraints;
}

/// The constructor refuses with `SlicerConfig` and exactly this text.
#[track_caller]
fn check_refused<T>(result: Construction<T>, text: &str) {
    match result {
        Err(CupelError::SlicerConfig(payload)) => assert_eq!(payload, text),
        Err(other) => panic!("{other:?} instead of {text}"),
        Ok(_) => panic!("accepted instead of {text}"),
    }
}

// proves: KNAP-1, KNAP-2
#[test]
fn a_bucket_holds_at_least_one_token_and_by_default_a_hundred() {
    for size in [0, -1, i64::MIN] {
        check_refused(KnapsackSlice::new(size), "bucket_size must be > 0");
    }
    assert_eq!(
        KnapsackSlice::with_default_bucket_size(),
        KnapsackSlice::new(100).unwrap()
    );
    assert_ne!(
        KnapsackSlice::new(1).unwrap(),
        KnapsackSlice::new(100).unwrap()
    );
}

// proves: QUOTA-1, QUOTA-2
#[test]
fn quotas_are_percentages_in_order() {
    let of = |require, cap| QuotaEntry::new(kind("Memory"), require, cap);
    for (value, printed) in [(-1.0, "-1"), (100.5, "100.5"), (f64::NAN, "NaN")] {
        check_refused(
            of(value, 50.0),
            &format!("require ({printed}) must be in [0.0, 100.0]"),
        );
        check_refused(
            of(10.0, value),
            &format!("cap ({printed}) must be in [0.0, 100.0]"),
        );
    }
    check_refused(of(20.0, 10.5), "require (20) must be <= cap (10.5)");

    let entry = of(20.0, 20.0).unwrap();
    assert_eq!(entry.kind(), &ContextKind::memory());
    assert_eq!((entry.require(), entry.cap()), (20.0, 20.0));
    assert!(of(0.0, 0.0).is_ok());
    assert!(of(100.0, 100.0).is_ok());
}

fn quota(name: &str, require: f64, cap: f64) -> QuotaEntry {
    QuotaEntry::new(kind(name), require, cap).unwrap()
}

// proves: QUOTA-3
#[test]
fn requirements_share_a_hundred_percent() {
    let of = |second| {
        let quotas = vec![
            quota("Memory", 60.0, 100.0),
            quota("Document", second, 100.0),
        ];
        QuotaSlice::new(quotas, Box::new(GreedySlice))
    };
    check_refused(
        of(40.5),
        "sum of require percentages (100.5) must not exceed 100.0",
    );
    assert!(of(40.0).is_ok());
    assert!(QuotaSlice::new(Vec::new(), Box::new(GreedySlice)).is_ok());
}

// proves: CQ-1, CQ-2, CQ-3
#[test]
fn counts_are_in_order() {
    let of = |require, cap| CountQuotaEntry::new(kind("Tool \"x\""), require, cap);
    check_refused(
        of(2, 0),
        r#"kind "Tool \"x\"": cap_count is 0 but require_count is 2; a zero cap with a positive requirement can never be satisfied"#,
    );
    check_refused(
        of(3, 2),
        r#"kind "Tool \"x\"": require_count (3) must be <= cap_count (2)"#,
    );
    let entry = of(2, 2).unwrap();
    assert_eq!(entry.kind().as_str(), "Tool \"x\"");
    assert_eq!((entry.require_count(), entry.cap_count()), (2, 2));
    assert!(of(0, 0).is_ok());
    assert!(of(0, 1).is_ok());
}

fn count(name: &str, require: usize, cap: usize) -> CountQuotaEntry {
    CountQuotaEntry::new(kind(name), require, cap).unwrap()
}

fn counted(entries: Counts, scarcity: ScarcityBehavior) -> CountQuotaSlice {
    CountQuotaSlice::new(entries, Box::new(GreedySlice), scarcity).unwrap()
}

fn packed(entries: Counts, scarcity: ScarcityBehavior) -> CountConstrainedKnapsackSlice {
    let knapsack = KnapsackSlice::new(1).unwrap();
    CountConstrainedKnapsackSlice::new(entries, knapsack, scarcity).unwrap()
}

// A kind has one entry in any case (R065).
//
// proves: R065
#[test]
fn a_kind_is_configured_once() {
    let twice = vec![quota("Memory", 0.0, 50.0), quota("MEMORY", 0.0, 60.0)];
    assert!(matches!(
        QuotaSlice::new(twice, Box::new(GreedySlice)),
        Err(CupelError::SlicerConfig(_))
    ));
    let twice = || vec![count("Memory", 0, 1), count("MEMORY", 0, 2)];
    assert!(matches!(
        CountQuotaSlice::new(twice(), Box::new(GreedySlice), ScarcityBehavior::Degrade),
        Err(CupelError::SlicerConfig(_))
    ));
    let knapsack = KnapsackSlice::with_default_bucket_size();
    assert!(matches!(
        CountConstrainedKnapsackSlice::new(twice(), knapsack, ScarcityBehavior::Degrade),
        Err(CupelError::SlicerConfig(_))
    ));
}

// The rest of the text recommends the slicer that exists (R086).
//
// proves: CQ-5, CQ-6, R086
#[test]
fn a_count_quota_refuses_a_knapsack_when_it_is_built() {
    for inner in [
        Box::new(KnapsackSlice::with_default_bucket_size()) as Box<dyn Slicer>,
        Box::new(Everything),
    ] {
        match CountQuotaSlice::new(Vec::new(), inner, ScarcityBehavior::Degrade) {
            Err(CupelError::SlicerConfig(text)) => assert!(
                text.starts_with(
                    "CountQuotaSlice does not support KnapsackSlice as the inner slicer in this version."
                ),
                "{text}"
            ),
            other => panic!("{other:?}"),
        }
    }
}

// proves: CQ-4
#[test]
fn scarcity_degrades_by_default() {
    // The enumeration is exhaustive and not comparable.
    fn name(behavior: ScarcityBehavior) -> &'static str {
        match behavior {
            ScarcityBehavior::Degrade => "Degrade",
            ScarcityBehavior::Throw => "Throw",
        }
    }

    assert_eq!(name(ScarcityBehavior::default()), "Degrade");
    assert_eq!(name(ScarcityBehavior::Throw), "Throw");
    let slicer = counted(Vec::new(), ScarcityBehavior::default());
    assert_eq!(name(slicer.scarcity()), "Degrade");
    let slicer = packed(Vec::new(), ScarcityBehavior::Throw);
    assert_eq!(name(slicer.scarcity()), "Throw");
}

/// A custom slicer with its own predicates.
struct Everything;

impl Slicer for Everything {
    fn slice(
        &self,
        sorted: &[ScoredItem],
        _budget: &ContextBudget,
    ) -> Result<Vec<ContextItem>, CupelError> {
        Ok(sorted.iter().map(|entry| entry.item.clone()).collect())
    }
    fn is_knapsack(&self) -> bool {
        true
    }
    fn is_quota(&self) -> bool {
        true
    }
    fn is_count_quota(&self) -> bool {
        true
    }
    fn count_cap_map(&self) -> HashMap<ContextKind, usize> {
        HashMap::from([(ContextKind::memory(), 3)])
    }
}

impl QuotaPolicy for Everything {
    fn quota_constraints(&self) -> Vec<QuotaConstraint> {
        vec![QuotaConstraint {
            kind: ContextKind::memory(),
            mode: QuotaConstraintMode::Count,
            require: 0.0,
            cap: 3.0,
        }]
    }
}

/// A custom slicer with the one required method.
struct Nothing;

impl Slicer for Nothing {
    fn slice(
        &self,
        _sorted: &[ScoredItem],
        _budget: &ContextBudget,
    ) -> Result<Vec<ContextItem>, CupelError> {
        Err(CupelError::SlicerConfig("closed".to_string()))
    }
}

/// `is_knapsack`, `is_quota`, `is_count_quota` and the number of capped kinds.
fn predicates(slicer: &dyn Slicer) -> (bool, bool, bool, usize) {
    (
        slicer.is_knapsack(),
        slicer.is_quota(),
        slicer.is_count_quota(),
        slicer.count_cap_map().len(),
    )
}

#[test]
fn slicers_describe_themselves() {
    let entries = || vec![count("Memory", 1, 3), count("Document", 0, 2)];
    let quotas = QuotaSlice::new(vec![quota("Memory", 0.0, 50.0)], Box::new(GreedySlice)).unwrap();
    let counts = counted(entries(), ScarcityBehavior::Degrade);
    let packing = packed(entries(), ScarcityBehavior::Degrade);
    assert_eq!(predicates(&GreedySlice), (false, false, false, 0));
    assert_eq!(
        predicates(&KnapsackSlice::new(1).unwrap()),
        (true, false, false, 0)
    );
    assert_eq!(predicates(&quotas), (false, true, false, 0));
    assert_eq!(predicates(&counts), (false, false, true, 2));
    assert_eq!(predicates(&packing), (false, false, true, 2));
    assert_eq!(predicates(&Nothing), (false, false, false, 0));
    assert_eq!(predicates(&Everything), (true, true, true, 1));
    for caps in [counts.count_cap_map(), packing.count_cap_map()] {
        assert_eq!(caps.get(&kind("MEMORY")), Some(&3));
        assert_eq!(caps.get(&kind("document")), Some(&2));
    }
}

#[test]
fn constraints_are_listed_in_entry_order() {
    // Both types are exhaustive.
    fn parts(policy: &dyn QuotaPolicy) -> Vec<(String, &'static str, f64, f64)> {
        let constraints = policy.quota_constraints().into_iter();
        let parts = constraints.map(|constraint| {
            let QuotaConstraint {
                kind,
                mode,
                require,
                cap,
            } = constraint;
            let mode = match mode {
                QuotaConstraintMode::Percentage => "percent",
                QuotaConstraintMode::Count => "items",
            };
            (kind.to_string(), mode, require, cap)
        });
        parts.collect()
    }

    let quotas = vec![quota("Memory", 10.0, 50.0), quota("Document", 0.0, 25.5)];
    assert_eq!(
        parts(&QuotaSlice::new(quotas, Box::new(GreedySlice)).unwrap()),
        [
            ("Memory".to_string(), "percent", 10.0, 50.0),
            ("Document".to_string(), "percent", 0.0, 25.5),
        ]
    );
    let expected = [
        ("Memory".to_string(), "items", 1.0, 3.0),
        ("Document".to_string(), "items", 0.0, 2.0),
    ];
    let entries = || vec![count("Memory", 1, 3), count("Document", 0, 2)];
    assert_eq!(
        parts(&counted(entries(), ScarcityBehavior::Throw)),
        expected
    );
    assert_eq!(parts(&packed(entries(), ScarcityBehavior::Throw)), expected);
    assert_eq!(parts(&Everything).len(), 1);
}

#[test]
fn count_slicers_give_back_their_entries() {
    let entries = || vec![count("Memory", 1, 3), count("Document", 0, 2)];
    let read = |entries: &[CountQuotaEntry]| -> Vec<(String, usize, usize)> {
        let read = entries.iter().map(|entry| {
            let kind = entry.kind().to_string();
            (kind, entry.require_count(), entry.cap_count())
        });
        read.collect()
    };
    let expected = [("Memory".to_string(), 1, 3), ("Document".to_string(), 0, 2)];
    let counts = counted(entries(), ScarcityBehavior::Throw);
    assert_eq!(read(counts.entries()), expected);
    let packing = packed(entries(), ScarcityBehavior::Throw);
    assert_eq!(read(packing.clone().entries()), expected);
}

#[test]
fn slicers_print_their_settings() {
    assert_eq!(format!("{GreedySlice:?}"), "GreedySlice");
    assert_eq!(
        format!("{:?}", KnapsackSlice::new(1).unwrap()),
        "KnapsackSlice { bucket_size: 1 }"
    );
    assert_eq!(
        format!("{:?}", counted(Vec::new(), ScarcityBehavior::Throw)),
        "CountQuotaSlice { entries: [], inner: GreedySlice, scarcity: Throw }"
    );
    assert_eq!(
        format!("{:?}", packed(Vec::new(), ScarcityBehavior::Degrade)),
        "CountConstrainedKnapsackSlice { entries: [], \
         knapsack: KnapsackSlice { bucket_size: 1 }, scarcity: Degrade }"
    );
}

/// The slicer keeps these items of a list sorted by score, given this target.
#[track_caller]
fn check_kept(slicer: &dyn Slicer, sorted: &[ScoredItem], target: i64, expected: &[&str]) {
    let kept = slicer.slice(sorted, &budget(1000, target)).unwrap();
    assert_eq!(contents(&kept), expected);
}

#[test]
fn greedy_takes_the_densest_first() {
    let sorted = [
        scored("large", 80, 0.9),
        scored("small", 10, 0.8),
        scored("twin", 10, 0.8),
        scored("free", 0, 0.1),
    ];
    check_kept(
        &GreedySlice,
        &sorted,
        100,
        &["free", "small", "twin", "large"],
    );
    check_kept(&GreedySlice, &sorted, 85, &["free", "small", "twin"]);
    check_kept(&GreedySlice, &sorted, 0, &[]);
    check_kept(&GreedySlice, &[], 100, &[]);
}

#[test]
fn knapsack_takes_the_best_total() {
    let sorted = [
        scored("large", 6, 0.9),
        scored("half", 5, 0.6),
        scored("rest", 5, 0.5),
        scored("free", 0, 0.1),
        scored("worthless", 1, 0.0),
    ];
    let knapsack = KnapsackSlice::new(1).unwrap();
    check_kept(&knapsack, &sorted, 10, &["free", "rest", "half"]);
    check_kept(&knapsack, &sorted, 0, &[]);
    let coarse = KnapsackSlice::with_default_bucket_size();
    check_kept(&coarse, &sorted, 99, &["free"]);
}

// The table has a column for capacity zero, which counts (R064).
//
// proves: KNAP-18, R064
#[test]
fn a_knapsack_refuses_a_table_of_more_than_fifty_million_cells() {
    let target = 50_000_000;
    let knapsack = KnapsackSlice::new(1).unwrap();
    let result = knapsack.slice(&[scored("one", 1, 0.5)], &budget(target, target));
    assert!(matches!(
        result,
        Err(CupelError::TableTooLarge {
            candidates: 1,
            capacity: 50_000_000,
            cells: 50_000_001,
        })
    ));
}

fn scored_kind(name: &str, content: &str, tokens: i64, score: f64) -> ScoredItem {
    ScoredItem {
        item: of_kind(name, content, tokens, 0.0),
        score,
    }
}

#[test]
fn a_quota_slice_shares_the_target_among_kinds() {
    let quotas = vec![quota("Memory", 50.0, 100.0), quota("Document", 0.0, 30.0)];
    let slicer = QuotaSlice::new(quotas, Box::new(GreedySlice)).unwrap();
    let sorted = [
        scored_kind("Document", "page 1", 20, 0.9),
        scored_kind("Document", "page 2", 20, 0.8),
        scored_kind("Memory", "fact", 50, 0.1),
    ];
    let kept = slicer.slice(&sorted, &budget(100, 100)).unwrap();
    let mut kept = contents(&kept);
    kept.sort_unstable();
    assert_eq!(kept, ["fact", "page 1"]);
}

#[test]
fn count_slices_commit_what_is_required_and_stop_at_the_cap() {
    let sorted = [
        scored_kind("Document", "page 1", 10, 0.9),
        scored_kind("Document", "page 2", 10, 0.8),
        scored_kind("memory", "fact", 60, 0.1),
        scored_kind("Document", "page 3", 10, 0.05),
    ];
    let entries = || vec![count("Memory", 1, 1), count("Document", 0, 2)];
    for slicer in [
        Box::new(counted(entries(), ScarcityBehavior::Throw)) as Box<dyn Slicer>,
        Box::new(packed(entries(), ScarcityBehavior::Throw)),
    ] {
        check_kept(slicer.as_ref(), &sorted, 100, &["fact", "page 1", "page 2"]);
    }
}

// Both texts follow one template, and a kind without candidates is too few as well (R072, R078).
//
// proves: CQ-12, CCK-4, CCK-5, R072, R078
#[test]
fn scarcity_throws_with_the_numbers() {
    let sorted = [scored_kind("Tool", "call", 1, 0.5)];
    let entries = |name| vec![count(name, 2, 3)];
    for (name, candidates) in [("tool", 1), ("Memory", 0)] {
        let tail = format!(
            "candidate pool for kind '{name}' has {candidates} items but RequireCount is 2."
        );
        check_refused(
            counted(entries(name), ScarcityBehavior::Throw).slice(&sorted, &budget(10, 10)),
            &format!("CountQuotaSlice: {tail}"),
        );
        check_refused(
            packed(entries(name), ScarcityBehavior::Throw).slice(&sorted, &budget(10, 10)),
            &format!("CountConstrainedKnapsackSlice: {tail}"),
        );
    }
}

// A shortfall reaches the report (R083), also of a kind without candidates (R072).
//
// proves: CQ-13, CQ-14, CCK-6, R072, R083
#[test]
fn scarcity_degrades_into_shortfalls() {
    let entries = || vec![count("Tool", 3, 4), count("Memory", 1, 1)];
    for slicer in [
        Box::new(counted(entries(), ScarcityBehavior::Degrade)) as Box<dyn Slicer>,
        Box::new(packed(entries(), ScarcityBehavior::Degrade)),
    ] {
        let pipeline = Pipeline::builder()
            .scorer(Box::new(ReflexiveScorer))
            .slicer(slicer)
            .placer(Box::new(UShapedPlacer))
            .build()
            .unwrap();
        let report = pipeline.dry_run(&[of_kind("Tool", "call", 1, 0.5)], &budget(10, 10));
        let shortfalls = report.unwrap().count_requirement_shortfalls;
        let read = shortfalls.iter().map(|shortfall| {
            let CountRequirementShortfall {
                kind,
                required_count,
                satisfied_count,
                ..
            } = shortfall;
            let _: &String = kind;
            (kind.as_str(), *required_count, *satisfied_count)
        });
        assert_eq!(
            read.collect::<Vec<(&str, usize, usize)>>(),
            [("Tool", 3, 1), ("Memory", 1, 0)]
        );
    }
}

// A pipeline uses the selection of a slicer unchanged.
//
// proves: PIPE-4
#[test]
fn the_selection_of_a_custom_slicer_is_used() {
    let with = |slicer: Box<dyn Slicer>| {
        Pipeline::builder()
            .scorer(Box::new(ReflexiveScorer))
            .slicer(slicer)
            .placer(Box::new(UShapedPlacer))
            .build()
            .unwrap()
    };
    let items = [item("a", 40), item("b", 60)];
    let kept = with(Box::new(Everything)).run(&items, &budget(100, 100));
    assert_eq!(contents(&kept.unwrap()), ["a", "b"]);
    let refused = with(Box::new(Nothing)).run(&items, &budget(100, 100));
    check_refused(refused, "closed");
}
