//! What the reader makes of a file, and what it says about a faulty one.

use chrono::{DateTime, Utc};
use cupel_conformance::{
    Expected, ExpectedError, ExpectedOverflow, ExpectedRun, ExpectedSelection, Level, Problem,
    Vector,
    model::{Budget, Document, Field, Item, Shortfall, Task},
};
use serde_json::json;

fn parse(text: &str) -> Vector {
    Vector::parse("case.toml", text).unwrap_or_else(|error| panic!("{error}"))
}

/// Asserts that a file is refused with this message.
#[track_caller]
fn check_error(text: &str, message: &str) {
    let error = Vector::parse("case.toml", text).expect_err("the file is faulty");
    assert_eq!(error.to_string(), message);
}

/// A scoring case around the scorer's name and its `[config]`.
fn scoring(scorer: &str, config: &str) -> String {
    format!(
        r#"
        [test]
        name = "A case"
        stage = "scoring"
        scorer = "{scorer}"

        [config]
        {config}

        [[items]]
        content = "a"
        tokens = 1

        [[expected]]
        content = "a"
        score_approx = 1
        "#
    )
}

/// A scoring case of one item with these fields.
fn item_case(fields: &str) -> String {
    format!(
        r#"
        test = {{ name = "A case", stage = "scoring", scorer = "recency" }}
        expected = [{{ content = "a", score_approx = 0 }}]
        [[items]]
        content = "a"
        {fields}
        "#
    )
}

fn item(fields: &str) -> Item {
    match parse(&item_case(&format!("tokens = 1\n{fields}"))).task {
        Task::Score { mut items, .. } => items.remove(0),
        other => panic!("not a scoring task: {other:?}"),
    }
}

fn slicing(slicer: &str, config: &str) -> String {
    format!(
        r#"
        [test]
        name = "A case"
        stage = "slicing"
        slicer = "{slicer}"

        [budget]
        target_tokens = 100

        [expected]
        selected_contents = []

        [config]
        {config}
        "#
    )
}

fn pipeline(config: &str, rest: &str) -> String {
    format!(
        r#"
        {rest}
        [test]
        name = "A case"
        stage = "pipeline"

        [budget]
        max_tokens = 1000
        target_tokens = 100

        [config]
        {config}
        "#
    )
}

const RECENCY: &str = r#"scorers = [{ type = "recency", weight = 1.0 }]"#;

#[track_caller]
#[expect(clippy::needless_pass_by_value, reason = "a literal")]
fn check_scorer(name: &str, config: &str, expected: Document) {
    match parse(&scoring(name, config)).task {
        Task::Score { scorer, .. } => assert_eq!(scorer, expected),
        other => panic!("not a scoring task: {other:?}"),
    }
}

#[track_caller]
#[expect(clippy::needless_pass_by_value, reason = "a literal")]
fn check_slicer(name: &str, config: &str, expected: Document) {
    match parse(&slicing(name, config)).task {
        Task::Slice { slicer, .. } => assert_eq!(slicer, expected),
        other => panic!("not a slicing task: {other:?}"),
    }
}

#[track_caller]
#[expect(clippy::needless_pass_by_value, reason = "a literal")]
fn check_policy(config: &str, expected: Document) {
    match parse(&pipeline(config, "expected_output = []")).task {
        Task::Run { policy, .. } => assert_eq!(policy, expected),
        other => panic!("not a pipeline task: {other:?}"),
    }
}

fn ran(rest: &str) -> ExpectedRun {
    let items = r#"
        items = [{ id = "kept", content = "same", tokens = 1 }, { content = "same", tokens = 2 }]
    "#;
    match parse(&pipeline(RECENCY, &format!("{items}\n{rest}"))).expected {
        Expected::Ran(run) => run,
        other => panic!("not a run: {other:?}"),
    }
}

fn time(text: &str) -> DateTime<Utc> {
    text.parse().expect("a time in RFC 3339")
}

// proves: VEC-1, VEC-16
#[test]
fn the_stage_decides_which_task_is_read() {
    let placing = r#"
        test = { name = "A case", stage = "placing", placer = "u-shaped" }
        expected.ordered_contents = []
    "#;
    for (stage, text) in [
        ("scoring", scoring("recency", "")),
        ("slicing", slicing("greedy", "")),
        ("placing", placing.to_owned()),
        ("pipeline", pipeline(RECENCY, "")),
    ] {
        assert_eq!(parse(&text).stage(), stage);
    }
}

// proves: VEC-1, VEC-16
#[test]
fn an_unknown_stage_is_an_error() {
    check_error(
        "[test]\nname = 'A case'\nstage = 'sorting'",
        "case.toml: test.stage: unknown stage `sorting`, expected one of: scoring, slicing, placing, pipeline",
    );
}

// proves: VEC-1
#[test]
fn name_and_stage_are_required() {
    check_error("", "case.toml: test: missing, expected a table");
    check_error(
        "[test]\nstage = 'scoring'",
        "case.toml: test.name: missing, expected a string",
    );
    check_error(
        "[test]\nname = 'A case'",
        "case.toml: test.stage: missing, expected the name of a stage",
    );
    check_error(
        "[test]\nname = 'A case'\nstage = 'placing'",
        "case.toml: test.placer: missing, expected the name of a placer",
    );
}

#[test]
fn what_is_not_toml_is_refused_with_the_file_name() {
    let error = Vector::parse("broken.toml", "[test").expect_err("not TOML");
    assert!(matches!(*error.problem, Problem::Toml(_)));
    assert!(
        error
            .to_string()
            .starts_with("broken.toml: not a TOML document: ")
    );
}

// proves: R133
#[test]
fn the_level_is_that_of_the_nearest_directory() {
    let text = scoring("recency", "");
    for (path, level) in [
        ("required/scoring/a.toml", Level::Required),
        ("/vectors/required/optional/scoring/a.toml", Level::Optional),
        (r"C:\vectors\extension\scoring\a.toml", Level::Extension),
        ("a.toml", Level::Other),
    ] {
        let vector = Vector::parse(path, &text).expect("a good file");
        assert_eq!(vector.level, level, "{path}");
    }
}

#[test]
fn the_facts_about_a_case_are_optional_lists() {
    let plain = parse(&scoring("recency", ""));
    assert_eq!(
        (plain.requirements, plain.rulings, plain.flags, plain.why),
        (vec![], vec![], vec![], String::new())
    );
    let full = parse(
        r#"
        expected = [{ content = "a", score_approx = 0 }]
        items = [{ content = "a", tokens = 1 }]
        [test]
        name = "A case"
        stage = "scoring"
        scorer = "recency"
        requirements = ["VEC-1"]
        rulings = ["R131"]
        flags = ["TieBreak"]
        why = "because"
        "#,
    );
    assert_eq!(
        (full.requirements, full.rulings, full.flags, full.why),
        (
            vec!["VEC-1".to_owned()],
            vec!["R131".to_owned()],
            vec!["TieBreak".to_owned()],
            "because".to_owned()
        )
    );
}

// proves: VEC-15
#[test]
fn unknown_fields_are_ignored_and_listed() {
    let vector = parse(
        r#"
        future = 1
        items = [{ content = "a", tokens = 1, color = "red" }]
        expected = [{ content = "a", score_approx = 0, why = "so" }]
        [test]
        name = "A case"
        stage = "scoring"
        scorer = "recency"
        author = "me"
        [config.unknown]
        nested = true
        "#,
    );
    assert_eq!(
        vector.ignored,
        [
            "config.unknown",
            "expected[0].why",
            "future",
            "items[0].color",
            "test.author"
        ]
    );
}

// proves: VEC-9, R132
#[test]
fn an_item_needs_only_content_and_tokens() {
    assert_eq!(
        item(""),
        Item {
            content: "a".to_owned(),
            tokens: 1,
            ..Item::default()
        }
    );
    check_error(
        &item_case(""),
        "case.toml: items[0].tokens: missing, expected an integer",
    );
}

// proves: VEC-9, VEC-14, R132
#[test]
fn an_item_may_have_every_field() {
    let text = r#"
        test = { name = "A case", stage = "scoring", scorer = "recency" }
        expected = [{ content = "twin", score_approx = 0 }]
        [[items]]
        id = "twin"
        content = "a"
        tokens = -9223372036854775808
        kind = "Document"
        source = "Tool"
        priority = 3
        tags = ["x", "x"]
        timestamp = 2024-06-15T12:00:00Z
        futureRelevanceHint = 1
        pinned = true
        originalTokens = 9223372036854775807
        metadata = { "cupel:trust" = "0.9" }
    "#;
    let Task::Score { items, .. } = parse(text).task else {
        panic!("not a scoring task");
    };
    assert_eq!(
        items,
        [Item {
            id: Some("twin".to_owned()),
            content: "a".to_owned(),
            tokens: i64::MIN,
            kind: Some("Document".to_owned()),
            source: Some("Tool".to_owned()),
            priority: Some(3),
            tags: vec!["x".to_owned(), "x".to_owned()],
            metadata: [("cupel:trust".to_owned(), "0.9".to_owned())].into(),
            timestamp: Some(time("2024-06-15T12:00:00Z")),
            future_relevance_hint: Some(1.0),
            pinned: true,
            original_tokens: Some(i64::MAX),
        }]
    );
}

// proves: R015
#[test]
fn metadata_other_than_strings_becomes_text() {
    let metadata = item("metadata = { a = 0.85, b = 3, c = true, d = 1.0, e = 'x' }").metadata;
    let values: Vec<_> = metadata.values().map(String::as_str).collect();
    assert_eq!(values, ["0.85", "3", "true", "1.0", "x"]);
}

// proves: VEC-14, R131
#[test]
fn times_may_leave_out_the_seconds_and_have_any_zone() {
    for (written, instant) in [
        ("2024-01-01T00:00Z", "2024-01-01T00:00:00Z"),
        ("2024-01-01T00:00:00Z", "2024-01-01T00:00:00Z"),
        ("2024-01-01T02:00+02:00", "2024-01-01T00:00:00Z"),
        ("2023-12-31T23:30:00.5-00:30", "2024-01-01T00:00:00.5Z"),
        (
            "2024-01-01 00:00:00.123456789Z",
            "2024-01-01T00:00:00.123456789Z",
        ),
    ] {
        assert_eq!(
            item(&format!("timestamp = {written}")).timestamp,
            Some(time(instant)),
            "{written}"
        );
    }
}

// proves: VEC-14, R019
#[test]
fn a_time_without_a_zone_is_an_error() {
    for (written, shown) in [
        ("2024-01-01T00:00:00", "2024-01-01T00:00:00"),
        ("2024-01-01", "2024-01-01"),
        ("12:00:00", "12:00:00"),
    ] {
        check_error(
            &item_case(&format!("tokens = 1\ntimestamp = {written}")),
            &format!(
                "case.toml: items[0].timestamp: expected a date-time with a zone, found one without: \
                 add `Z` or an offset to {shown}"
            ),
        );
    }
}

// proves: VEC-14
#[test]
fn a_wrong_type_names_the_place_and_both_types() {
    for (fields, message) in [
        (
            "tokens = '1'",
            "items[0].tokens: expected an integer, found a string",
        ),
        (
            "tokens = 1.0",
            "items[0].tokens: expected an integer, found a float",
        ),
        (
            "tokens = 1\nkind = 1",
            "items[0].kind: expected a string, found an integer",
        ),
        (
            "tokens = 1\npinned = 'no'",
            "items[0].pinned: expected a boolean, found a string",
        ),
        (
            "tokens = 1\ntags = 'x'",
            "items[0].tags: expected a list, found a string",
        ),
        (
            "tokens = 1\ntags = ['x', 2]",
            "items[0].tags[1]: expected a string, found an integer",
        ),
        (
            "tokens = 1\nmetadata = []",
            "items[0].metadata: expected a table, found a list",
        ),
        (
            "tokens = 1\nfutureRelevanceHint = true",
            "items[0].futureRelevanceHint: expected a number, found a boolean",
        ),
        (
            "tokens = 1\ntimestamp = '2024-01-01T00:00:00Z'",
            "items[0].timestamp: expected a date-time with a zone, found a string",
        ),
        (
            "tokens = 1\ntimestamp = {}",
            "items[0].timestamp: expected a date-time with a zone, found a table",
        ),
        (
            "tokens = 1\npriority = 2024-01-01",
            "items[0].priority: expected an integer, found a date-time",
        ),
    ] {
        check_error(&item_case(fields), &format!("case.toml: {message}"));
    }
    check_error(
        &format!(
            "scored_items = [{{ content = 'a', tokens = 1, score = 0 }}, {{ content = 'b', tokens = 1 }}]\n{}",
            slicing("greedy", "")
        ),
        "case.toml: scored_items[1].score: missing, expected a number",
    );
}

// proves: VEC-2, VEC-4, R132
#[test]
fn every_scorer_is_known_by_its_name() {
    for name in [
        "recency",
        "priority",
        "frequency",
        "reflexive",
        "kind",
        "metadata_trust",
    ] {
        check_scorer(name, "", json!({ "type": name }));
    }
    check_error(
        &scoring("magic", ""),
        "case.toml: test.scorer: unknown scorer `magic`, expected one of: recency, priority, kind, tag, \
         frequency, reflexive, composite, scaled, metadata_trust, decay, metadata_key",
    );
}

#[test]
fn a_table_is_a_policy_document_and_is_passed_on() {
    let text = scoring("recency", "").replace(
        "scorer = \"recency\"",
        "scorer = { type = 'new', list = [1, 0.5, nan, -inf, true], at = 2024-01-01T02:00+02:00, inner = { a = 'b' } }",
    );
    let vector = parse(&text);
    let Task::Score { scorer, .. } = vector.task else {
        panic!("not a scoring task");
    };
    assert_eq!(
        scorer,
        json!({
            "type": "new",
            "list": [1, 0.5, "NaN", "-inf", true],
            "at": "2024-01-01T00:00:00+00:00",
            "inner": { "a": "b" },
        })
    );
    assert!(vector.ignored.is_empty(), "{:?}", vector.ignored);
    check_policy(
        "scorer = { type = 'a' }\nslicer = { type = 'b', c = 1 }\nplacer = { type = 'd' }",
        json!({
            "scorer": { "type": "a" },
            "slicer": { "type": "b", "c": 1 },
            "placer": { "type": "d" },
            "deduplication": true,
            "overflow_strategy": "throw",
        }),
    );
    check_error(
        &text.replace("+02:00", ""),
        "case.toml: test.scorer.at: expected a date-time with a zone, found one without: add `Z` or an \
         offset to 2024-01-01T02:00",
    );
}

// proves: VEC-4
#[test]
fn a_list_of_weights_becomes_an_object() {
    let weights = "weights = [{ kind = 'b', weight = 1 }, { kind = 'a', weight = inf }]";
    let expected = || json!({ "type": "kind", "weights": { "a": "inf", "b": 1 } });
    check_scorer("kind", weights, expected());
    check_scorer(
        "kind",
        &format!("use_default_weights = false\n{weights}"),
        expected(),
    );
    let switched = format!("use_default_weights = true\n{weights}");
    check_scorer("kind", &switched, json!({ "type": "kind" }));
    check_scorer(
        "kind",
        "weights = []",
        json!({ "type": "kind", "weights": {} }),
    );
    check_error(
        &scoring("kind", "use_default_weights = false"),
        "case.toml: config.weights: missing, expected a list",
    );
    check_scorer(
        "tag",
        "tag_weights = [{ tag = 't', weight = -1 }]",
        json!({ "type": "tag", "tag_weights": { "t": -1 } }),
    );
    check_error(
        &scoring(
            "tag",
            "tag_weights = [{ tag = 't', weight = 1 }, { tag = 't', weight = 2 }]",
        ),
        "case.toml: config.tag_weights[1].tag: duplicate \"t\"; remove one",
    );
}

// proves: VEC-4, R132
#[test]
fn children_find_their_fields_in_their_own_table_else_in_config() {
    let trust = |default_score: f64, weight: f64| {
        let scorer = json!({ "type": "metadata_trust", "default_score": default_score });
        json!({ "scorer": scorer, "weight": weight })
    };
    let recency = json!({ "scorer": { "type": "recency" }, "weight": 3.0 });
    let inner = json!({ "type": "composite", "entries": [recency] });
    for key in ["scorers", "children"] {
        check_scorer(
            "composite",
            &format!(
                "default_score = 0.1\n{key} = [
                    {{ type = 'metadata_trust', weight = 2, default_score = 0.9 }},
                    {{ type = 'metadata_trust' }},
                    {{ type = 'composite', {key} = [{{ type = 'recency', weight = 3 }}] }},
                ]"
            ),
            json!({
                "type": "composite",
                "entries": [trust(0.9, 2.0), trust(0.1, 1.0), { "scorer": inner, "weight": 1.0 }],
            }),
        );
    }
    check_error(
        &scoring("composite", "scorers = [{ type = 'composite' }]"),
        "case.toml: config.scorers[0].scorers: missing, expected a list of scorers",
    );
    check_error(
        &scoring("composite", "scorers = [{ weight = 1 }]"),
        "case.toml: config.scorers[0].type: missing, expected the name of a scorer",
    );
}

// proves: VEC-4
#[test]
fn an_inner_scorer_is_a_name_or_a_document() {
    let scaled = |inner| json!({ "type": "scaled", "inner": inner });
    check_scorer(
        "scaled",
        "inner_scorer = 'recency'",
        scaled(json!({ "type": "recency" })),
    );
    check_scorer(
        "scaled",
        "inner_scorer = 'metadata_trust'\ndefault_score = 0.2",
        scaled(json!({ "type": "metadata_trust", "default_score": 0.2 })),
    );
    check_scorer(
        "scaled",
        "inner_scorer = { type = 'scaled', inner = { type = 'priority' } }",
        scaled(scaled(json!({ "type": "priority" }))),
    );
    check_error(
        &scoring("scaled", "inner_scorer = 'scaled'"),
        "case.toml: config.inner_scorer: missing, expected the name of a scorer or a policy document",
    );
}

// proves: R132
#[test]
fn a_decay_has_seconds_and_needs_its_time() {
    let check = |curve: &str, expected: Document| {
        check_scorer(
            "decay",
            &format!("reference_time = 2024-01-01T00:00Z\ncurve = {curve}"),
            json!({
                "type": "decay",
                "reference_time": "2024-01-01T00:00:00+00:00",
                "curve": expected,
            }),
        );
    };
    check(
        "{ type = 'exponential', half_life_secs = 3600 }",
        json!({ "type": "exponential", "half_life": 3600 }),
    );
    check(
        "{ type = 'window', max_age_secs = 0.000000001 }",
        json!({ "type": "window", "max_age": 1e-9 }),
    );
    check(
        "{ type = 'step', windows = [{ max_age_secs = -1.5, score = 1 }] }",
        json!({ "type": "step", "windows": [{ "max_age": -1.5, "score": 1 }] }),
    );
    let decay = |rest: &str| scoring("decay", rest);
    check_error(
        &decay("curve = { type = 'window', max_age_secs = 1 }"),
        "case.toml: config.reference_time: missing, expected a value",
    );
    check_error(
        &decay("reference_time = 2024-01-01T00:00Z\ncurve = { type = 'line' }"),
        "case.toml: config.curve.type: unknown curve `line`, expected one of: exponential, window, step",
    );
}

// proves: R132
#[test]
fn a_metadata_key_has_key_value_and_boost() {
    check_scorer(
        "metadata_key",
        "key = 'k'\nvalue = 'v'\nboost = 2",
        json!({ "type": "metadata_key", "key": "k", "value": "v", "boost": 2 }),
    );
}

// proves: VEC-5, VEC-6, R132
#[test]
fn every_slicer_is_known_by_its_name() {
    check_slicer("greedy", "", json!({ "type": "greedy" }));
    check_slicer("knapsack", "", json!({ "type": "knapsack" }));
    check_slicer(
        "knapsack",
        "bucket_size = 1",
        json!({ "type": "knapsack", "bucket_size": 1 }),
    );
    check_slicer(
        "count_constrained_knapsack",
        "entries = [{ kind = 'a', require_count = -1, cap_count = 2 }]\nscarcity_behavior = 'throw'",
        json!({
            "type": "count_constrained_knapsack",
            "entries": [{ "kind": "a", "require_count": -1, "cap_count": 2 }],
            "scarcity": "throw",
        }),
    );
    check_error(
        &slicing("magic", ""),
        "case.toml: test.slicer: unknown slicer `magic`, expected one of: greedy, knapsack, quota, \
         count_quota, count_constrained_knapsack",
    );
}

// proves: VEC-6
#[test]
fn an_inner_slicer_is_a_name_or_a_document_and_may_be_left_out() {
    let quotas = "quotas = [{ kind = 'a' }]";
    let quota = || json!({ "type": "quota", "quotas": [{ "kind": "a" }] });
    check_slicer("quota", quotas, quota());
    for (rest, inner) in [
        (
            "inner_slicer = 'knapsack'\nbucket_size = 5",
            json!({ "type": "knapsack", "bucket_size": 5 }),
        ),
        (
            "inner_slicer = 'count_quota'\nentries = []",
            json!({ "type": "count_quota", "entries": [] }),
        ),
        (
            "inner_slicer = { type = 'count_quota', entries = [], inner = { type = 'rank' } }",
            json!({ "type": "count_quota", "entries": [], "inner": { "type": "rank" } }),
        ),
    ] {
        let mut expected = quota();
        expected["inner"] = inner;
        check_slicer("quota", &format!("{quotas}\n{rest}"), expected);
    }
}

// proves: VEC-5, R134
#[test]
fn the_ceiling_is_the_target_unless_it_is_given() {
    let budget = |fields: &str| {
        let text = slicing("greedy", "").replace("target_tokens = 100", fields);
        match parse(&text).task {
            Task::Slice { budget, .. } => budget,
            other => panic!("not a slicing task: {other:?}"),
        }
    };
    assert_eq!(
        budget("target_tokens = -5"),
        Budget {
            max_tokens: -5,
            target_tokens: -5,
            ..Budget::default()
        }
    );
    assert_eq!(
        budget(
            "target_tokens = 5\nmax_tokens = 6\noutput_reserve = 1\n\
             estimation_safety_margin_percent = 10\nreserved_slots = { Tool = 3 }"
        ),
        Budget {
            max_tokens: 6,
            target_tokens: 5,
            output_reserve: 1,
            reserved_slots: vec![("Tool".to_owned(), 3)],
            estimation_safety_margin_percent: 10.0,
        }
    );
    check_error(
        &slicing("greedy", "").replace("target_tokens = 100", ""),
        "case.toml: budget.target_tokens: missing, expected an integer",
    );
}

// proves: VEC-7
#[test]
fn every_placer_is_known_by_its_name() {
    let placing = |placer: &str| {
        format!(
            "test = {{ name = 'A case', stage = 'placing', placer = '{placer}' }}
             items = [{{ content = 'a', tokens = 1, score = nan }}]
             expected.ordered_contents = ['a']"
        )
    };
    for name in ["chronological", "u-shaped"] {
        let vector = parse(&placing(name));
        let Task::Place { placer, items } = vector.task else {
            panic!("not a placing task");
        };
        assert_eq!(placer, json!({ "type": name }));
        assert!(items[0].score.is_nan());
        assert_eq!(vector.expected, Expected::Placed(vec!["a".to_owned()]));
    }
    check_error(
        &placing("random"),
        "case.toml: test.placer: unknown placer `random`, expected one of: chronological, u-shaped",
    );
}

// proves: VEC-8, R135
#[test]
fn a_pipeline_has_the_defaults_of_the_specification() {
    check_policy(
        RECENCY,
        json!({
            "scorer": { "type": "recency" },
            "slicer": { "type": "greedy" },
            "placer": { "type": "chronological" },
            "deduplication": true,
            "overflow_strategy": "throw",
        }),
    );
    let Task::Run { budget, .. } = parse(&pipeline(RECENCY, "")).task else {
        panic!("not a pipeline task");
    };
    assert_eq!(budget.output_reserve, 0);
}

// proves: VEC-8
#[test]
fn a_pipeline_may_have_every_field() {
    check_policy(
        &format!(
            "{RECENCY}\nslicer = 'knapsack'\nbucket_size = 2\nplacer = 'u-shaped'\n\
             deduplication = false\noverflow_strategy = 'proceed'"
        ),
        json!({
            "scorer": { "type": "recency" },
            "slicer": { "type": "knapsack", "bucket_size": 2 },
            "placer": { "type": "u-shaped" },
            "deduplication": false,
            "overflow_strategy": "proceed",
        }),
    );
}

// proves: VEC-8
#[test]
fn one_scorer_of_positive_weight_stands_alone() {
    let check = |config: &str, expected: Document| {
        let Task::Run { policy, .. } = parse(&pipeline(config, "")).task else {
            panic!("not a pipeline task");
        };
        assert_eq!(policy["scorer"], expected, "{config}");
    };
    let composite = |entries: Document| json!({ "type": "composite", "entries": entries });
    let recency = || json!({ "type": "recency" });
    check("scorers = [{ type = 'recency', weight = 0.1 }]", recency());
    check("scorers = [{ type = 'recency', weight = inf }]", recency());
    for (weight, expected) in [("0", json!(0.0)), ("nan", json!("NaN"))] {
        check(
            &format!("scorers = [{{ type = 'recency', weight = {weight} }}]"),
            composite(json!([{ "scorer": recency(), "weight": expected }])),
        );
    }
    check(
        "scorers = [{ type = 'recency' }, { type = 'priority', weight = 2 }]",
        composite(json!([
            { "scorer": recency(), "weight": 1.0 },
            { "scorer": { "type": "priority" }, "weight": 2.0 },
        ])),
    );
    check("scorers = []", composite(json!([])));
    check_error(
        &pipeline("", ""),
        "case.toml: config.scorers: missing, expected a list of scorers",
    );
}

// proves: VEC-2, VEC-3
#[test]
fn the_tolerance_is_a_billionth_unless_it_is_given() {
    assert_eq!(parse(&scoring("recency", "")).epsilon, 1e-9);
    let text = format!(
        "{}\n[tolerance]\nscore_epsilon = 0.25",
        scoring("recency", "")
    );
    assert_eq!(parse(&text).epsilon, 0.25);
}

// proves: VEC-2
#[test]
fn a_score_is_expected_of_exactly_one_item() {
    let case = |label: &str| {
        format!(
            "test = {{ name = 'A case', stage = 'scoring', scorer = 'recency' }}
             items = [
                 {{ content = 'same', tokens = 1 }},
                 {{ content = 'same', tokens = 1 }},
                 {{ id = 'third', content = 'same', tokens = 1 }},
             ]
             expected = [{{ content = '{label}', score_approx = nan }}]"
        )
    };
    parse(&case("third"));
    check_error(
        &case("same"),
        r#"case.toml: expected[0].content: several items have this label, give each an `id`: "same""#,
    );
    check_error(
        &case("other"),
        r#"case.toml: expected[0].content: no such item, expected one of ["same", "same", "third"], found "other""#,
    );
}

// proves: VEC-5, VEC-18
#[test]
fn a_selection_names_labels_and_counts() {
    let text = slicing("greedy", "").replace(
        "selected_contents = []",
        "selected_contents = ['a', 'a']\nemitted_contents = ['a']\nshortfall_count = 1\ncap_excluded_count = 0",
    );
    let items = "scored_items = [{ content = 'a', tokens = 1, score = 1 }]";
    assert_eq!(
        parse(&format!("{items}\n{text}")).expected,
        Expected::Selected(ExpectedSelection {
            selected: Some(vec!["a".to_owned(), "a".to_owned()]),
            emitted: Some(vec!["a".to_owned()]),
            shortfall_count: Some(1),
            cap_excluded_count: Some(0),
        })
    );
    check_error(
        &text,
        r#"case.toml: expected.selected_contents[0]: no such item, expected one of [], found "a""#,
    );
    check_error(
        &slicing("greedy", "").replace("selected_contents = []", "shortfall_count = -1"),
        "case.toml: expected.shortfall_count: expected a count of zero or more, found -1",
    );
}

// proves: VEC-10, VEC-13
#[test]
fn a_report_can_be_expected_in_parts() {
    assert_eq!(
        ran("expected.diagnostics.summary.total_candidates = 2"),
        ExpectedRun {
            total_candidates: Some(2),
            ..ExpectedRun::default()
        }
    );
    assert_eq!(
        ran("expected.diagnostics.excluded = []").excluded,
        Some(vec![])
    );
    let included = ran(
        "expected.diagnostics.included = [{ content = 'kept', score_approx = 1, inclusion_reason = 'Pinned' }]",
    )
    .included
    .expect("included is expected");
    assert_eq!(
        (included[0].label.as_str(), included[0].reason.as_str()),
        ("kept", "Pinned")
    );
}

// proves: VEC-11, R106, R132
#[test]
fn an_exclusion_may_name_any_reason_and_its_fields() {
    let excluded = ran("expected.diagnostics.excluded = [
            { content = 'same', score_approx = 0, exclusion_reason = 'QuotaCapExceeded', item_tokens = 1,
              available_tokens = 2, deduplicated_against = 'same', tokens = 3, displaced_by = 'same',
              kind = 'k', cap = 4, count = 5 },
        ]")
    .excluded
    .expect("excluded is expected");
    let text = |text: &str| Field::Text(text.to_owned());
    assert_eq!(
        excluded[0].fields,
        [
            ("item_tokens", Field::Integer(1)),
            ("available_tokens", Field::Integer(2)),
            ("deduplicated_against", text("same")),
            ("tokens", Field::Integer(3)),
            ("displaced_by", text("same")),
            ("kind", text("k")),
            ("cap", Field::Integer(4)),
            ("count", Field::Integer(5)),
        ]
        .map(|(name, field)| (name.to_owned(), field))
        .into()
    );
}

#[test]
fn a_reason_names_contents_where_an_entry_names_a_label() {
    let case = |label: &str, survivor: &str| {
        pipeline(
            RECENCY,
            &format!(
                "items = [{{ id = 'kept', content = 'same', tokens = 1 }}, {{ id = 'cut', content = 'same', tokens = 1 }}]
                 expected.diagnostics.excluded = [{{ content = '{label}', score_approx = 0,
                     exclusion_reason = 'Deduplicated', deduplicated_against = '{survivor}' }}]"
            ),
        )
    };
    parse(&case("cut", "same"));
    check_error(
        &case("same", "same"),
        r#"case.toml: expected.diagnostics.excluded[0].content: no such item, expected one of ["kept", "cut"], found "same""#,
    );
    check_error(
        &case("cut", "kept"),
        r#"case.toml: expected.diagnostics.excluded[0].deduplicated_against: no such item, expected one of ["same", "same"], found "kept""#,
    );
}

// proves: VEC-12, VEC-13
#[test]
fn summary_events_shortfalls_and_overflow_are_read() {
    let run = ran("
        expected.shortfall_count = 1
        expected.cap_excluded_count = 2
        expected.overflow = { tokens_over_budget = 3, contents = ['kept', 'same'] }
        expected.diagnostics.summary = { total_candidates = 2, total_tokens_considered = -3 }
        expected.diagnostics.shortfalls = [{ kind = 'k', required_count = 2, satisfied_count = 1 }]
        expected.diagnostics.stages = [{ stage = 'Classify', item_count = 2 }]
        expected.diagnostics.item_events = [{ stage = 'Slice', reason = 'BudgetExceeded' }]
    ");
    assert_eq!(
        run,
        ExpectedRun {
            total_candidates: Some(2),
            total_tokens_considered: Some(-3),
            shortfalls: Some(vec![Shortfall {
                kind: "k".to_owned(),
                required_count: 2,
                satisfied_count: 1,
            }]),
            shortfall_count: Some(1),
            cap_excluded_count: Some(2),
            stages: Some(vec![("Classify".to_owned(), 2)]),
            item_events: Some(vec![("Slice".to_owned(), "BudgetExceeded".to_owned())]),
            overflow: Some(Some(ExpectedOverflow {
                tokens_over_budget: 3,
                labels: vec!["kept".to_owned(), "same".to_owned()],
            })),
            ..ExpectedRun::default()
        }
    );
    assert_eq!(ran("expected.overflow = false").overflow, Some(None));
}

#[test]
fn an_expected_line_needs_all_its_fields() {
    for (rest, message) in [
        (
            "expected.diagnostics.included = [{ score_approx = 1, inclusion_reason = 'Scored' }]",
            "expected.diagnostics.included[0].content: missing, expected a string",
        ),
        (
            "expected.diagnostics.included = [{ content = 'a', inclusion_reason = 'Scored' }]",
            "expected.diagnostics.included[0].score_approx: missing, expected a number",
        ),
        (
            "expected.diagnostics.excluded = [{ content = 'a', score_approx = 1 }]",
            "expected.diagnostics.excluded[0].exclusion_reason: missing, expected a string",
        ),
        (
            "expected.overflow = { tokens_over_budget = 1 }",
            "expected.overflow.contents: missing, expected a list",
        ),
        (
            "expected.overflow = true",
            "expected.overflow: expected a table, found a boolean",
        ),
    ] {
        let rest = format!("items = [{{ content = 'a', tokens = 1 }}]\n{rest}");
        check_error(&pipeline(RECENCY, &rest), &format!("case.toml: {message}"));
    }
}

#[test]
fn a_case_without_any_expectation_is_an_error() {
    let item = "items = [{ content = 'a', tokens = 1, score = 1 }]";
    check_error(
        &format!("test = {{ name = 'A case', stage = 'placing', placer = 'u-shaped' }}\n{item}"),
        "case.toml: expected: nothing is expected, add one of: ordered_contents, expect_error, \
         expect_construction_error",
    );
    check_error(
        &pipeline(
            RECENCY,
            &format!("{item}\nexpect_construction_error = false"),
        ),
        "case.toml: expected: nothing is expected, add one of: [[expected_output]], [expected.diagnostics], \
         overflow, shortfall_count, cap_excluded_count, expect_error, expect_construction_error",
    );
}

// proves: R136
#[test]
fn a_case_without_items_and_expectation_expects_an_empty_result() {
    assert_eq!(
        parse(&pipeline(RECENCY, "")).expected,
        Expected::Ran(ExpectedRun {
            output: Some(vec![]),
            ..ExpectedRun::default()
        })
    );
    assert_eq!(
        parse(&slicing("greedy", "").replace("selected_contents = []", "")).expected,
        Expected::Selected(ExpectedSelection {
            selected: Some(vec![]),
            ..ExpectedSelection::default()
        })
    );
}

// proves: R132
#[test]
fn a_construction_error_may_be_expected_in_four_places() {
    let at_construction = Expected::Error(ExpectedError {
        at_construction: true,
        ..ExpectedError::default()
    });
    for place in ["test.", "config.", "expected.", ""] {
        let text = format!(
            "{place}expect_construction_error = true
             test.name = 'A case'
             test.stage = 'scoring'
             test.scorer = 'recency'"
        );
        assert_eq!(parse(&text).expected, at_construction, "{place}");
    }
}

#[test]
fn an_expected_error_has_a_known_code_and_texts() {
    let case = |code: &str| {
        format!(
            "[test]
             name = 'A case'
             stage = 'scoring'
             scorer = 'recency'
             expect_error = '{code}'
             expect_error_contains = ['weight', '-1']"
        )
    };
    assert_eq!(
        parse(&case("ScorerConfig")).expected,
        Expected::Error(ExpectedError {
            at_construction: false,
            code: Some("ScorerConfig".to_owned()),
            contains: vec!["weight".to_owned(), "-1".to_owned()],
        })
    );
    check_error(
        &case("Oops"),
        "case.toml: test.expect_error: unknown error code `Oops`, expected one of: EmptyContent, EmptyKind, \
         EmptySource, InvalidBudget, PinnedExceedsBudget, Overflow, PipelineConfig, ScorerConfig, \
         SlicerConfig, TableTooLarge",
    );
}

#[test]
fn the_format_document_lists_every_name() {
    let format = include_str!("../FORMAT.md");
    let decay = "reference_time = 2024-01-01T00:00Z\ncurve = { type = '?' }";
    for text in [
        scoring("recency", "").replace("stage = \"scoring\"", "stage = \"?\""),
        scoring("?", ""),
        scoring("decay", decay),
        slicing("?", ""),
        "test = { name = 'A case', stage = 'placing', placer = '?' }".to_owned(),
        scoring("recency", "").replace("[config]", "expect_error = '?'\n[config]"),
    ] {
        let error = Vector::parse("case.toml", &text).expect_err("an unknown name");
        let Problem::UnknownName { known, .. } = *error.problem else {
            panic!("not an unknown name: {error}");
        };
        for name in known {
            assert!(format.contains(&format!("`{name}`")), "{name}");
        }
    }
}
