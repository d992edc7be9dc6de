//! Tests of the runner with fake adapters.

use std::fs;

use cupel_conformance::{
    Adapter, Cause, Claim, Expected, KnownFailure, Level, Mismatch, Options, SUITE_VERSION,
    Summary, Unsupported, Vector, check, compare, load_dir,
    model::{
        Channel, Event, Excluded, Failure, Field, Included, Observation, Overflow, Report, Run,
        Selected, Shortfall, Task,
    },
    run,
};

/// An implementation that gives the answer it is told to give.
struct Fake<F>(&'static str, F);

impl<F: Fn(&Task) -> Result<Observation, Unsupported>> Adapter for Fake<F> {
    fn name(&self) -> &str {
        self.0
    }

    fn channels(&self, _task: &Task) -> &[Channel] {
        &[]
    }

    fn observe(&self, task: &Task) -> Result<Observation, Unsupported> {
        (self.1)(task)
    }
}

/// An adapter that declares these channels for every task.
struct Declaring<'a, A>(A, &'a [Channel]);

impl<A: Adapter> Adapter for Declaring<'_, A> {
    fn name(&self) -> &str {
        self.0.name()
    }

    fn channels(&self, _task: &Task) -> &[Channel] {
        self.1
    }

    fn observe(&self, task: &Task) -> Result<Observation, Unsupported> {
        self.0.observe(task)
    }
}

fn vector(text: &str) -> Vector {
    named("required/case.toml", text)
}

fn named(path: &str, text: &str) -> Vector {
    Vector::parse(path, text).unwrap_or_else(|error| panic!("{error}"))
}

/// A scoring case of one item, `a`, that expects this score.
fn scoring(score: &str) -> Vector {
    vector(&format!(
        "test = {{ name = 'A case', stage = 'scoring', scorer = 'recency' }}
         items = [{{ content = 'a', tokens = 1 }}]
         expected = [{{ content = 'a', score_approx = {score} }}]
         tolerance.score_epsilon = 0.25"
    ))
}

/// A slicing case of `a`, `b` and two items of content `twin`.
fn slicing(expected: &str) -> Vector {
    vector(&format!(
        "test = {{ name = 'A case', stage = 'slicing', slicer = 'greedy' }}
         budget.target_tokens = 10
         scored_items = [
             {{ content = 'a', tokens = 1, score = 1 }},
             {{ content = 'b', tokens = 1, score = 1 }},
             {{ id = 'first twin', content = 'twin', tokens = 1, score = 1 }},
             {{ id = 'second twin', content = 'twin', tokens = 1, score = 1 }},
         ]
         [expected]
         {expected}"
    ))
}

/// A pipeline case of `kept` (1 token) and `cut` (2 tokens).
fn pipeline(expected: &str) -> Vector {
    vector(&format!(
        "{expected}
         items = [{{ content = 'kept', tokens = 1 }}, {{ content = 'cut', tokens = 2 }}]
         [test]
         name = 'A case'
         stage = 'pipeline'
         [budget]
         target_tokens = 10
         [config]
         scorers = [{{ type = 'recency' }}]"
    ))
}

/// What a run of that case reports: `kept` is kept, `cut` is cut.
fn report() -> Report {
    Report {
        included: vec![Included {
            index: 0,
            score: 1.0,
            reason: "Scored".to_owned(),
        }],
        excluded: vec![excluded(1, 0.0)],
        total_candidates: 2,
        total_tokens_considered: 3,
        shortfalls: vec![],
        events: None,
    }
}

fn excluded(index: usize, score: f64) -> Excluded {
    Excluded {
        index,
        score,
        reason: "BudgetExceeded".to_owned(),
        fields: [("item_tokens".to_owned(), Field::Integer(2))].into(),
    }
}

fn ran(report: Report) -> Observation {
    Observation::Ran(Run {
        output: vec![0],
        report: Some(report),
        overflow: None,
    })
}

fn selected(kept: &[usize]) -> Observation {
    Observation::Selected(Selected {
        kept: kept.to_vec(),
        ..Selected::default()
    })
}

fn failed(at_construction: bool) -> Observation {
    Observation::Failed(Failure {
        at_construction,
        code: "ScorerConfig".to_owned(),
        message: "weight must be positive: -1".to_owned(),
    })
}

/// Asserts that an answer differs in exactly these ways, or in none.
#[track_caller]
fn check_case(vector: &Vector, observation: &Observation, mismatches: &[&str]) {
    let found = check(vector, observation).err().unwrap_or_default();
    let found: Vec<_> = found.iter().map(Mismatch::to_string).collect();
    assert_eq!(found, mismatches);
}

// proves: VEC-3, R138
#[test]
fn a_difference_of_exactly_epsilon_fails() {
    let score = |score| Observation::Scores(vec![score]);
    for within in [0.5, 0.74, 0.26, 0.75_f64.next_down(), 0.25_f64.next_up()] {
        check_case(&scoring("0.5"), &score(within), &[]);
    }
    for (outside, shown) in [(0.75, "0.75"), (0.25, "0.25"), (f64::NAN, "NaN")] {
        check_case(
            &scoring("0.5"),
            &score(outside),
            &[&format!(
                r#"score["a"]: expected 0.5 (less than 2.5e-1 away), got {shown}"#
            )],
        );
    }
}

// proves: VEC-17
#[test]
fn scores_in_reports_are_compared_by_the_tolerance_too() {
    let case = pipeline(
        "expected.diagnostics.included = [{ content = 'kept', score_approx = 1.0000000001, inclusion_reason = 'Scored' }]
         expected.diagnostics.excluded = [{ content = 'cut', score_approx = 0.1, exclusion_reason = 'BudgetExceeded' }]",
    );
    check_case(
        &case,
        &ran(report()),
        &[r#"excluded["cut"].score: expected 0.1 (less than 1e-9 away), got 0.0"#],
    );
}

#[test]
fn what_is_not_finite_is_expected_exactly() {
    let score = |score| Observation::Scores(vec![score]);
    check_case(&scoring("nan"), &score(f64::NAN), &[]);
    check_case(&scoring("nan"), &score(-f64::NAN), &[]);
    check_case(&scoring("inf"), &score(f64::INFINITY), &[]);
    check_case(
        &scoring("nan"),
        &score(1.0),
        &[r#"score["a"]: expected NaN, got 1.0"#],
    );
    check_case(
        &scoring("-inf"),
        &score(f64::INFINITY),
        &[r#"score["a"]: expected -inf, got inf"#],
    );
}

#[test]
fn every_item_has_a_score() {
    check_case(
        &scoring("0.5"),
        &Observation::Scores(vec![]),
        &["scores: expected 1 of them, got 0 of them"],
    );
}

// proves: VEC-5
#[test]
fn a_selection_is_compared_as_a_set() {
    let case = slicing("selected_contents = ['a', 'b']");
    check_case(&case, &selected(&[1, 0]), &[]);
    check_case(
        &case,
        &selected(&[0]),
        &[r#"selected: expected {"a", "b"}, got {"a"}"#],
    );
}

#[test]
fn emitted_items_are_compared_in_order() {
    let case = slicing("emitted_contents = ['a', 'b']");
    check_case(&case, &selected(&[0, 1]), &[]);
    check_case(
        &case,
        &selected(&[1, 0]),
        &[r#"emitted: expected ["a", "b"], got ["b", "a"]"#],
    );
}

#[test]
fn an_id_tells_twins_apart() {
    let case = slicing("selected_contents = ['second twin']");
    check_case(&case, &selected(&[3]), &[]);
    check_case(
        &case,
        &selected(&[2]),
        &[r#"selected: expected {"second twin"}, got {"first twin"}"#],
    );
}

// proves: VEC-18, R137
#[test]
fn counts_are_the_slicers_own() {
    let case = slicing("shortfall_count = 1\ncap_excluded_count = 2");
    let answer = |shortfalls, cap_rejected| {
        Observation::Selected(Selected {
            kept: vec![],
            shortfalls,
            cap_rejected,
        })
    };
    let shortfall = Shortfall {
        kind: "k".to_owned(),
        required_count: 2,
        satisfied_count: 1,
    };
    check_case(&case, &answer(Some(vec![shortfall]), Some(vec![0, 1])), &[]);
    check_case(
        &case,
        &answer(Some(vec![]), Some(vec![0])),
        &[
            "shortfall_count: expected 1, got 0",
            "cap_excluded_count: expected 2, got 1",
        ],
    );
}

// proves: VEC-18, R137
#[test]
fn counts_of_a_run_are_those_of_its_report() {
    let case = pipeline("expected = { shortfall_count = 0, cap_excluded_count = 1 }");
    check_case(
        &case,
        &ran(report()),
        &["cap_excluded_count: expected 1, got 0"],
    );
    let mut capped = report();
    capped.excluded[0].reason = "CountCapExceeded".to_owned();
    check_case(&case, &ran(capped), &[]);
}

// proves: VEC-7
#[test]
fn a_placement_is_compared_in_order() {
    let case = vector(
        "test = { name = 'A case', stage = 'placing', placer = 'u-shaped' }
         items = [{ content = 'a', tokens = 1, score = 0 }, { content = 'b', tokens = 1, score = 0 }]
         expected.ordered_contents = ['b', 'a']",
    );
    check_case(&case, &Observation::Placed(vec![1, 0]), &[]);
    check_case(
        &case,
        &Observation::Placed(vec![0, 1]),
        &[r#"order: expected ["b", "a"], got ["a", "b"]"#],
    );
    check_case(
        &case,
        &Observation::Placed(vec![1, 1, 7]),
        &[
            r#"order: expected ["b", "a"], got ["b", "b", "(no such item)"]"#,
            "order: expected positions below 2, the number of items, got position 7",
            r#"order: expected every item at most once, got "b" 2 times"#,
            r#"order: expected every item, got none of ["a"]"#,
        ],
    );
}

// proves: VEC-8
#[test]
fn a_window_is_compared_in_order() {
    let case = pipeline("expected_output = [{ content = 'cut' }, { content = 'kept' }]");
    let window = |output: &[usize]| {
        Observation::Ran(Run {
            output: output.to_vec(),
            ..Run::default()
        })
    };
    check_case(&case, &window(&[1, 0]), &[]);
    check_case(
        &case,
        &window(&[0, 1]),
        &[r#"output: expected ["cut", "kept"], got ["kept", "cut"]"#],
    );
}

// proves: VEC-10, VEC-11
#[test]
fn report_lines_are_compared_in_order_with_reason_and_fields() {
    let case = pipeline(
        "expected.diagnostics.included = [{ content = 'kept', score_approx = 1, inclusion_reason = 'Pinned' }]
         expected.diagnostics.excluded = [{ content = 'cut', score_approx = 0, exclusion_reason = 'NegativeTokens',
                                            item_tokens = 3, available_tokens = 1 }]",
    );
    check_case(
        &case,
        &ran(report()),
        &[
            r#"included["kept"].reason: expected Pinned, got Scored"#,
            r#"excluded["cut"].reason: expected NegativeTokens, got BudgetExceeded"#,
            r#"excluded["cut"].available_tokens: expected 1, got nothing"#,
            r#"excluded["cut"].item_tokens: expected 3, got 2"#,
        ],
    );
    check_case(
        &pipeline("expected.diagnostics.excluded = []"),
        &ran(report()),
        &[r#"excluded: expected [], got ["cut"]"#],
    );
}

// proves: VEC-12
#[test]
fn totals_are_compared_exactly() {
    let case = pipeline(
        "expected.diagnostics.summary = { total_candidates = 3, total_tokens_considered = 4 }",
    );
    check_case(
        &case,
        &ran(report()),
        &[
            "total_candidates: expected 3, got 2",
            "total_tokens_considered: expected 4, got 3",
        ],
    );
}

#[test]
fn events_are_told_apart_by_their_message() {
    let case = pipeline(
        "expected.diagnostics.stages = [{ stage = 'Slice', item_count = 1 }]
         expected.diagnostics.item_events = [{ stage = 'Slice', reason = 'BudgetExceeded' }]",
    );
    let event = |message: Option<&str>| Event {
        stage: "Slice".to_owned(),
        item_count: 1,
        message: message.map(str::to_owned),
    };
    let traced = |events| {
        ran(Report {
            events: Some(events),
            ..report()
        })
    };
    check_case(
        &case,
        &traced(vec![event(Some("BudgetExceeded: 2 of 1")), event(None)]),
        &[],
    );
    check_case(
        &case,
        &traced(vec![event(Some("BudgetExceeded"))]),
        &[
            r#"stages: expected [("Slice", 1)], got []"#,
            r#"item_events: expected [("Slice", "BudgetExceeded")], got [("Slice", "BudgetExceeded (no colon)")]"#,
        ],
    );
}

#[test]
fn an_overflow_is_compared_whole() {
    let none = pipeline("expected.overflow = false");
    let some =
        pipeline("expected.overflow = { tokens_over_budget = 2, contents = ['kept', 'cut'] }");
    let answer = |overflow| {
        Observation::Ran(Run {
            overflow: Some(overflow),
            ..Run::default()
        })
    };
    let overflow = |items: &[usize]| {
        Some(Overflow {
            tokens_over_budget: 2,
            items: items.to_vec(),
        })
    };
    check_case(&none, &answer(None), &[]);
    check_case(&some, &answer(overflow(&[0, 1])), &[]);
    check_case(
        &some,
        &answer(overflow(&[1, 0])),
        &[
            r#"overflow: expected 2 tokens over budget with ["kept", "cut"], got 2 tokens over budget with ["cut", "kept"]"#,
        ],
    );
    check_case(
        &none,
        &answer(overflow(&[0])),
        &[r#"overflow: expected none, got 2 tokens over budget with ["kept"]"#],
    );
}

/// A scoring case that expects an error in these words.
fn failing(expected: &str) -> Vector {
    vector(&format!(
        "[test]
         name = 'A case'
         stage = 'scoring'
         scorer = 'recency'
         {expected}"
    ))
}

#[test]
fn an_expected_error_may_come_at_any_time_with_its_code() {
    for at_construction in [true, false] {
        check_case(
            &failing("expect_error = 'ScorerConfig'"),
            &failed(at_construction),
            &[],
        );
    }
    check_case(
        &failing("expect_error = 'Overflow'\nexpect_error_contains = ['positive', 'zero']"),
        &failed(true),
        &[
            "error.code: expected Overflow, got ScorerConfig: weight must be positive: -1",
            r#"error.message: expected a text with "zero", got "weight must be positive: -1""#,
        ],
    );
}

#[test]
fn a_construction_error_must_come_before_anything_runs() {
    let case = failing("expect_construction_error = true");
    check_case(&case, &failed(true), &[]);
    check_case(
        &case,
        &failed(false),
        &[
            "error: expected an error at construction, got ScorerConfig while running: weight must be positive: -1",
        ],
    );
}

#[test]
fn success_and_failure_are_never_confused() {
    check_case(
        &failing("expect_error = 'Overflow'\nexpect_construction_error = true"),
        &Observation::Scores(vec![]),
        &["result: expected Overflow at construction, got scores []"],
    );
    check_case(
        &scoring("0.5"),
        &failed(false),
        &["result: expected scores, got ScorerConfig: weight must be positive: -1"],
    );
    check_case(
        &scoring("0.5"),
        &selected(&[0]),
        &[r#"result: expected scores, got a selection ["a"]"#],
    );
}

#[test]
fn a_selection_has_only_offered_items_each_once() {
    check_case(
        &slicing("selected_contents = ['a']"),
        &selected(&[0, 0]),
        &[r#"selected: expected every item at most once, got "a" 2 times"#],
    );
    check_case(
        &slicing("shortfall_count = 0"),
        &selected(&[4]),
        &["selected: expected positions below 4, the number of items, got position 4"],
    );
}

#[test]
fn a_report_is_consistent_with_the_window_and_itself() {
    let case = pipeline("expected_output = [{ content = 'kept' }]");
    check_case(&case, &ran(report()), &[]);

    let mut twice = report();
    twice.excluded[0].index = 0;
    twice.total_tokens_considered = 2;
    check_case(
        &case,
        &ran(twice),
        &[
            r#"included and excluded: expected every item at most once, got "kept" 2 times"#,
            r#"included and excluded: expected every item, got none of ["cut"]"#,
        ],
    );

    let mut empty = report();
    empty.included.clear();
    check_case(
        &case,
        &ran(empty),
        &[
            r#"included: expected the window ["kept"], got []"#,
            r#"included and excluded: expected every item, got none of ["kept"]"#,
            "total_candidates: expected 1, the length of both lists, got 2",
            "total_tokens_considered: expected 2, the sum over both lists, got 3",
        ],
    );
}

#[test]
fn excluded_scores_descend_with_nan_last() {
    let case = pipeline("expected_output = []");
    let answer = |scores: [f64; 2]| {
        Observation::Ran(Run {
            output: vec![],
            report: Some(Report {
                included: vec![],
                excluded: vec![excluded(0, scores[0]), excluded(1, scores[1])],
                ..report()
            }),
            overflow: None,
        })
    };
    for sorted in [
        [1.0, 0.0],
        [0.0, -0.0],
        [-0.0, 0.0],
        [f64::NEG_INFINITY, f64::NAN],
        [f64::NAN, -f64::NAN],
    ] {
        check_case(&case, &answer(sorted), &[]);
    }
    check_case(
        &case,
        &answer([f64::NAN, 0.0]),
        &[r#"excluded: expected scores descending, NaN last, got "kept" (NaN) before "cut" (0.0)"#],
    );
    check_case(
        &case,
        &answer([0.0, 1.0]),
        &[r#"excluded: expected scores descending, NaN last, got "kept" (0.0) before "cut" (1.0)"#],
    );
}

#[test]
fn a_token_sum_beyond_64_bits_is_not_compared() {
    let case = vector(
        "expected_output = []
         items = [{ content = 'a', tokens = 9223372036854775807 }, { content = 'b', tokens = 1 }]
         budget.target_tokens = 10
         config.scorers = [{ type = 'recency' }]
         test = { name = 'A case', stage = 'pipeline' }",
    );
    let answer = Observation::Ran(Run {
        report: Some(Report {
            included: vec![],
            excluded: vec![excluded(0, 0.0), excluded(1, 0.0)],
            total_tokens_considered: i64::MAX,
            ..report()
        }),
        ..Run::default()
    });
    check_case(&case, &answer, &[]);
}

#[test]
fn an_absent_channel_is_not_compared() {
    let window = Observation::Ran(Run {
        output: vec![0],
        ..Run::default()
    });
    let diagnostics = "expected.diagnostics.summary.total_candidates = 7";
    let compared = |case: &Vector, answer| compare(case, answer).compared;
    assert_eq!(compared(&pipeline(diagnostics), &window), [].into());
    let both = format!("expected_output = [{{ content = 'kept' }}]\n{diagnostics}");
    assert_eq!(
        compared(&pipeline(&both), &window),
        [(Channel::Window, 1)].into()
    );
    let case = slicing("shortfall_count = 1");
    assert_eq!(compared(&case, &selected(&[])), [].into());
}

/// Runs one scoring case, which expects 0.5, with this answer.
fn run_one(
    answer: impl Fn(&Task) -> Result<Observation, Unsupported>,
    options: &Options,
) -> Summary {
    run(&[scoring("0.5")], &[&Fake("fake", answer)], options)
}

/// Gives every task this one score.
fn answer(score: f64) -> impl Fn(&Task) -> Result<Observation, Unsupported> {
    move |_| Ok(Observation::Scores(vec![score]))
}

fn unsupported(_: &Task) -> Result<Observation, Unsupported> {
    Err(Unsupported("no recency here".to_owned()))
}

// proves: VEC-16
#[test]
fn failures_are_counted_and_listed_with_expected_and_got() {
    let summary = run_one(answer(1.0), &Options::default());
    assert!(!summary.is_success());
    assert_eq!(summary.tally("fake", Level::Required).failed, 1);
    assert_eq!(
        summary.to_string(),
        "required/case.toml [fake] score[\"a\"]: expected 0.5 (less than 2.5e-1 away), got 1.0\n\
         fake required: 0 passed, 1 failed\n"
    );
    let failure = &summary.failures[0];
    assert_eq!(
        (failure.path.as_str(), failure.name.as_str()),
        ("required/case.toml", "A case")
    );
}

#[test]
fn a_panic_fails_its_case_and_no_other() {
    let cases = [scoring("0.5"), slicing("selected_contents = []")];
    let fake = Fake("fake", |task: &Task| match task {
        Task::Score { .. } => panic!("index {} is out of bounds", 3),
        _ => Ok(selected(&[])),
    });
    let summary = run(&cases, &[&fake], &Options::default());
    let tally = summary.tally("fake", Level::Required);
    assert_eq!((tally.passed, tally.failed), (1, 1));
    assert_eq!(
        summary.failures[0].cause,
        Cause::Panic("index 3 is out of bounds".to_owned())
    );
    assert!(summary.to_string().starts_with(
        "required/case.toml [fake] expected an answer, got a panic: index 3 is out of bounds\n"
    ));
}

#[test]
fn undeclared_unsupported_cases_are_counted_and_do_not_fail() {
    let summary = run(
        &[scoring("0.5")],
        &[&Fake("one", answer(0.5)), &Fake("other", unsupported)],
        &Options::default(),
    );
    assert!(summary.is_success());
    assert_eq!(
        summary.to_string(),
        "one required: 1 passed, 0 failed\n\
         one is Cupel Conformant\n\
         other required: 0 passed, 0 failed, 1 unsupported\n\
         passed cases by channel     scores\n\
         one                              1\n\
         other                            -\n"
    );
}

#[test]
fn a_declared_channel_that_is_not_observed_fails() {
    use Channel::{Events, Overflow, Report, Scores, Selection, Shortfalls, Window};
    let scores = scoring("0.5");
    let any_error = failing("expect_error = 'ScorerConfig'");
    let choice = slicing("selected_contents = []\nshortfall_count = 0");
    let whole = pipeline(
        "expected_output = [{ content = 'kept' }]
         expected.diagnostics = { summary.total_candidates = 2, stages = [], item_events = [] }
         expected.overflow = false",
    );
    let window_only = Observation::Ran(Run {
        output: vec![0],
        ..Run::default()
    });
    let no_events = ran(report());
    let unsupported = || Err(Unsupported("not built".to_owned()));
    for (case, answer, declared, missing) in [
        (&scores, unsupported(), &[Scores][..], Some(Scores)),
        (&scores, unsupported(), &[Window], None),
        (&scores, unsupported(), &[], None),
        (&any_error, unsupported(), &[Scores], Some(Scores)),
        (&any_error, Ok(failed(false)), &[Scores], None),
        (&choice, Ok(selected(&[])), &[Selection], None),
        (
            &choice,
            Ok(selected(&[])),
            &[Selection, Shortfalls],
            Some(Shortfalls),
        ),
        (&whole, unsupported(), &[Window], Some(Window)),
        (&whole, Ok(window_only.clone()), &[Window], None),
        (
            &whole,
            Ok(window_only.clone()),
            &[Window, Report],
            Some(Report),
        ),
        (&whole, Ok(window_only), &[Overflow], Some(Overflow)),
        (&whole, Ok(no_events.clone()), &[Window, Report], None),
        (&whole, Ok(no_events), &[Report, Events], Some(Events)),
    ] {
        let fake = Declaring(Fake("fake", |_: &Task| answer.clone()), declared);
        let summary = run(std::slice::from_ref(case), &[&fake], &Options::default());
        let lacks = summary.failures.iter().map(|failed| match &failed.cause {
            Cause::Unsupported { channel, .. } => *channel,
            cause => panic!("{cause:?}"),
        });
        assert_eq!(lacks.collect::<Vec<_>>(), Vec::from_iter(missing));
    }
    let fake = Declaring(Fake("fake", |_: &Task| unsupported()), &[Scores]);
    let summary = run(&[scores], &[&fake], &Options::default());
    assert_eq!(
        summary.to_string(),
        "required/case.toml [fake] scores: declared, but not observed: not built\n\
         fake required: 0 passed, 1 failed\n"
    );
}

#[test]
fn the_table_counts_passed_cases_by_adapter_and_channel() {
    let cases = [
        scoring("0.5"),
        scoring("0.75"),
        slicing("selected_contents = []"),
    ];
    let both = Fake("both", |task: &Task| match task {
        Task::Score { .. } => Ok(Observation::Scores(vec![0.5])),
        _ => Ok(selected(&[])),
    });
    let slices = Fake(
        "a name that is longer than the title",
        |task: &Task| match task {
            Task::Slice { .. } => Ok(selected(&[])),
            _ => Err(Unsupported("only slices".to_owned())),
        },
    );
    let summary = run(&cases, &[&both, &slices], &Options::default());
    assert_eq!(summary.compared("both", Channel::Scores), 1);
    assert_eq!(summary.compared("both", Channel::Order), 0);
    let text = summary.to_string();
    let (_, table) = text.split_once("passed cases").expect("a table");
    assert_eq!(
        table,
        " by channel                  scores  selection\n\
         both                                          1          1\n\
         a name that is longer than the title          -          1\n"
    );
}

#[test]
fn channels_are_parsed_from_their_names() {
    for channel in Channel::ALL {
        assert_eq!(channel.to_string().parse(), Ok(channel));
    }
    let error = "Scores"
        .parse::<Channel>()
        .expect_err("names are lower case");
    let text = error.to_string();
    let (_, names) = text.split_once("expected one of ").expect("names");
    assert_eq!(
        names.split(", ").collect::<Vec<_>>(),
        Channel::ALL.map(Channel::name)
    );
}

#[test]
fn a_case_of_which_nothing_can_be_observed_is_unsupported() {
    let case = pipeline("expected.diagnostics.summary.total_candidates = 7");
    let fake = Fake("fake", |_: &Task| Ok(Observation::Ran(Run::default())));
    let summary = run(&[case], &[&fake], &Options::default());
    assert_eq!(summary.tally("fake", Level::Required).unsupported, 1);
}

#[test]
fn a_run_without_cases_is_not_a_success() {
    assert!(!run(&[], &[&Fake("fake", answer(0.5))], &Options::default()).is_success());
    assert!(!run_one(unsupported, &Options::default()).is_success());
}

fn known(adapter: &str, name: &str) -> Options {
    Options {
        known_failures: vec![KnownFailure {
            adapter: adapter.to_owned(),
            name: name.to_owned(),
            reason: "not built yet".to_owned(),
        }],
        ..Options::default()
    }
}

#[test]
fn a_known_failure_must_fail() {
    let options = known("fake", "A case");
    let failing = run_one(answer(1.0), &options);
    assert!(failing.is_success());
    assert_eq!(failing.tally("fake", Level::Required).known, 1);
    assert_eq!(
        failing.to_string(),
        "fake required: 0 passed, 0 failed, 1 known to fail\n"
    );

    let not_failing = Cause::NotFailing("not built yet".to_owned());
    let passing = run_one(answer(0.5), &options);
    assert!(!passing.is_success());
    assert_eq!(passing.failures[0].cause, not_failing);
    assert!(passing.to_string().starts_with(
        "required/case.toml [fake] listed as a known failure, but does not fail; \
         remove it from the list (its reason: not built yet)\n"
    ));
    assert_eq!(
        run_one(unsupported, &options).failures[0].cause,
        not_failing
    );
}

#[test]
fn a_known_failure_of_nothing_is_an_error() {
    for options in [known("fake", "Another case"), known("other", "A case")] {
        let summary = run_one(answer(0.5), &options);
        assert!(!summary.is_success());
        assert_eq!(summary.stale, options.known_failures);
        assert!(
            summary
                .to_string()
                .contains("no such case or adapter, remove it from the list")
        );
    }
}

#[test]
fn filters_go_by_name_requirement_and_flag() {
    let case = vector(
        "expected = [{ content = 'a', score_approx = 0 }]
         items = [{ content = 'a', tokens = 1 }]
         [test]
         name = 'The newest item wins'
         stage = 'scoring'
         scorer = 'recency'
         requirements = ['RECENCY-1', 'SCORE-12']
         flags = ['TieBreak']",
    );
    let name = |text: &str| Options {
        name: Some(text.to_owned()),
        ..Options::default()
    };
    let requirement = |text: &str| Options {
        requirement: Some(text.to_owned()),
        ..Options::default()
    };
    let flag = |text: &str| Options {
        flag: Some(text.to_owned()),
        ..Options::default()
    };
    for (options, selects) in [
        (Options::default(), true),
        (name("newest item"), true),
        (name("oldest"), false),
        (requirement("SCORE-12"), true),
        (requirement("SCORE-1"), false),
        (requirement("SCORE-*"), true),
        (requirement("SLICE-*"), false),
        (flag("TieBreak"), true),
        (flag("Tie"), false),
        (
            Options {
                name: Some("newest".to_owned()),
                ..flag("Rounding")
            },
            false,
        ),
    ] {
        assert_eq!(options.selects(&case), selects, "{options:?}");
    }
}

// proves: CONF-1, CONF-2
#[test]
fn a_claim_needs_every_case_of_its_level() {
    let text = "test = { name = 'A case', stage = 'scoring', scorer = 'recency' }
                items = [{ content = 'a', tokens = 1 }]
                expected = [{ content = 'a', score_approx = 0.5 }]";
    let required = || named("required/a.toml", text);
    let optional = || named("optional/a.toml", text);
    let elsewhere = || named("extension/a.toml", &text.replace("0.5", "0.6"));
    let failing = |path| named(path, &text.replace("0.5", "0.6"));
    for (cases, claim) in [
        (vec![required(), elsewhere()], Some(Claim::Conformant)),
        (vec![required(), optional()], Some(Claim::FullyConformant)),
        (
            vec![required(), optional(), failing("optional/b.toml")],
            Some(Claim::Conformant),
        ),
        (
            vec![required(), failing("required/b.toml"), optional()],
            None,
        ),
        (vec![optional()], None),
    ] {
        let summary = run(&cases, &[&Fake("fake", answer(0.5))], &Options::default());
        assert_eq!(summary.claim("fake"), claim, "{summary}");
    }
    let filtered = Options {
        name: Some("case".to_owned()),
        ..Options::default()
    };
    let summary = run(&[required()], &[&Fake("fake", answer(0.5))], &filtered);
    assert_eq!(summary.claim("fake"), None);
    assert_eq!(SUITE_VERSION, env!("CARGO_PKG_VERSION"));
}

#[test]
fn references_and_boxes_of_adapters_are_adapters() {
    let fake = Fake("fake", answer(0.5));
    let boxed: Box<dyn Adapter> = Box::new(&fake);
    let summary = run(&[scoring("0.5")], &[&boxed], &Options::default());
    assert_eq!(summary.tally("fake", Level::Required).passed, 1);
}

// proves: VEC-1, VEC-16
#[test]
fn a_directory_is_read_recursively_and_every_error_is_reported() {
    let root = std::path::PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("load_dir");
    let good = "test = { name = 'A case', stage = 'scoring', scorer = 'recency' }
                items = [{ content = 'a', tokens = 1 }]
                expected = [{ content = 'a', score_approx = 0.5 }]";
    let write = |path: &str, text: &str| {
        let path = root.join(path);
        fs::create_dir_all(path.parent().expect("a directory")).expect("can be made");
        fs::write(path, text).expect("can be written");
    };
    let _ = fs::remove_dir_all(&root);
    write("required/scoring/b.toml", good);
    write("optional/scoring/deep/a.toml", good);
    write("suite.toml", "[flags]");
    write("notes.md", "not a vector");

    let vectors = load_dir(&root).expect("every file is good");
    let levels: Vec<_> = vectors.iter().map(|vector| vector.level).collect();
    assert_eq!(levels, [Level::Optional, Level::Required]);
    assert!(matches!(vectors[0].expected, Expected::Scores(_)));

    write("required/scoring/a.toml", "[test");
    write(
        "required/scoring/c.toml",
        &good.replace("'scoring'", "'sorting'"),
    );
    let errors = load_dir(&root).expect_err("two files are faulty");
    assert_eq!(errors.0.len(), 2);
    let text = errors.to_string();
    assert!(text.contains("a.toml: not a TOML document"), "{text}");
    assert!(
        text.contains("c.toml: test.stage: unknown stage `sorting`"),
        "{text}"
    );

    let missing = load_dir(root.join("nowhere")).expect_err("no such directory");
    assert!(missing.to_string().contains("nowhere: cannot be read: "));
}
