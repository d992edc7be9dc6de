//! Scorers that know the question, against the step-by-step method of `oracle/relevance.rs`.
//!
//! `CUPEL_CASES` sets the number of cases of each property.

use std::sync::Arc;

use chrono::DateTime;
use cupel::*;
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;
use proptest::test_runner::{Config, TestRunner};

use crate::oracle::relevance::{Parameters, Turn, scores};

const WORDS: &[&str] = &[
    "key",
    "keys",
    "Keys",
    "shelf",
    "the",
    "a",
    "is",
    "not",
    "parseQuery",
    "HTTPServer",
    "snake_case",
    "src/main.rs",
    "1.12.3",
    "v2.0",
    "2019",
    "3rd",
    "seven",
    "twice",
    "Monday",
    "last",
    "evening",
    "even",
    "meeting",
    "discussed",
    "summarize",
    "who's",
    "don't",
    "Ada",
    "Ben",
    "Zoë",
    "naïve",
    "東京都",
    "データ",
    "한국어",
    "ไทย",
    "½",
    "—",
    ",",
    "?",
    "release",
    "releases",
    "released",
    "when",
    "did",
    "how",
    "many",
    "much",
    "opinion",
    "5.",
    "ﬁnd",
    "STRASSE",
    "x",
    "s",
    "0x1F",
    "\u{1f600}",
];

fn text(longest: usize) -> impl Strategy<Value = String> {
    vec(select(WORDS), 1..longest).prop_map(|words| words.join(" "))
}

fn turn() -> impl Strategy<Value = Turn> {
    let head = select(
        &[
            "",
            "",
            "Ada: ",
            "[9:30] Ben: ",
            "Zoë Key: ",
            "f({\"key\": ",
            ": ",
            "[x",
            "a:b: ",
        ][..],
    );
    let speaker = proptest::option::weighted(0.1, select(&["Ada", "released", ""][..]));
    let is_query = proptest::bool::weighted(0.05);
    (head, text(12), speaker, 0..3_usize, is_query).prop_map(
        |(head, text, speaker, session, is_query)| Turn {
            text: format!("{head}{text}"),
            speaker: speaker.map(str::to_owned),
            session: Some(session.to_string()),
            is_query,
        },
    )
}

#[derive(Debug, Clone)]
struct Case {
    turns: Vec<Turn>,
    query: Vec<(String, f64)>,
    near: (f64, f64),
    wide: (f64, f64, u32),
    sessions: bool,
    /// Whether each item is pinned and so takes no part.
    pinned: Vec<bool>,
    /// Whether the order is that of the times, which are reversed.
    is_timed: bool,
}

fn case() -> impl Strategy<Value = Case> {
    let query = vec((text(8), 0.1..3.0), 1..3);
    let near = (0.0..0.9, 0.0..0.9);
    let wide = (0.0..2.0, 0.5..1.0, 1..5_u32);
    let turns = vec((turn(), proptest::bool::weighted(0.1)), 1..30);
    (turns, query, near, wide, any::<bool>(), any::<bool>()).prop_map(
        |(turns, query, near, wide, sessions, is_timed)| {
            let (turns, pinned) = turns.into_iter().unzip();
            Case {
                turns,
                query,
                near,
                wide,
                sessions,
                pinned,
                is_timed,
            }
        },
    )
}

impl Case {
    fn items(&self) -> Vec<ContextItem> {
        let items =
            self.turns
                .iter()
                .zip(&self.pinned)
                .enumerate()
                .map(|(index, (turn, &pinned))| {
                    let mut item = ContextItem::builder(&*turn.text, 5)
                        .pinned(pinned)
                        .meta("cupel:session", turn.session.clone().unwrap_or_default());
                    if turn.is_query {
                        item = item.meta("cupel:query", "");
                    }
                    if let Some(speaker) = &turn.speaker {
                        item = item.meta("cupel:speaker", &**speaker);
                    }
                    if self.is_timed {
                        let time = 1_000 - i64::try_from(index).unwrap();
                        item = item.timestamp(DateTime::from_timestamp_nanos(time));
                    }
                    item.build().unwrap()
                });
        items.collect()
    }

    fn query(&self) -> Query {
        let texts = self.query.iter();
        texts.fold(Query::default(), |query, (text, weight)| {
            query.and(&**text, *weight)
        })
    }

    /// The expected scores of the items that take part; 0 for the others.
    fn expected(&self, parameters: Parameters) -> Vec<f64> {
        let mut places: Vec<usize> = (0..self.turns.len()).filter(|&i| !self.pinned[i]).collect();
        if self.is_timed {
            places.reverse();
        }
        let turns: Vec<Turn> = places.iter().map(|&i| self.turns[i].clone()).collect();
        let mut expected = vec![0.0; self.turns.len()];
        for (place, score) in places.iter().zip(scores(
            &turns,
            &self.query,
            Parameters {
                sessions: self.sessions,
                ..parameters
            },
        )) {
            expected[*place] = score;
        }
        expected
    }

    fn neighbor(&self, inner: impl Scorer + 'static) -> NeighborScorer {
        let (near, wide) = self.kernels();
        let scorer = NeighborScorer::new(inner).with_near(near).unwrap();
        scorer.with_wide(wide).unwrap().with_sessions(self.sessions)
    }

    fn kernels(&self) -> (NearKernel, WideKernel) {
        let (forward, backward) = self.near;
        let (weight, decay, power) = self.wide;
        (
            NearKernel { forward, backward },
            WideKernel {
                weight,
                decay,
                power,
            },
        )
    }
}

/// The scores of a run in which pinned items take no part.
fn run_scores(scorer: impl Scorer + 'static, items: &[ContextItem]) -> Vec<f64> {
    let policy = Policy::new(scorer, RankSlice, ChronologicalPlacer);
    let policy = policy.to_builder().deduplication(false).build().unwrap();
    let budget = ContextBudget::with_target(1_000_000, 1_000_000).unwrap();
    let decisions = policy.decide(items, &budget).unwrap();
    (0..items.len())
        .map(|index| {
            if items[index].pinned() {
                0.0
            } else {
                decisions.score(index)
            }
        })
        .collect()
}

fn assert_close(scores: &[f64], expected: &[f64]) -> Result<(), TestCaseError> {
    for (index, (score, expected)) in scores.iter().zip(expected).enumerate() {
        prop_assert!(
            (score - expected).abs() < 1e-9,
            "{index}: {score} instead of {expected}"
        );
    }
    Ok(())
}

/// The parts of every score add up to it, and its own score equals that of the batch.
fn check_parts(scorer: &dyn Scorer, items: &[ContextItem]) -> Result<(), TestCaseError> {
    let scores = scorer.score_all(items).unwrap();
    let parts = scorer.explain_all(items).unwrap();
    prop_assert_eq!(parts.len(), items.len());
    for (index, part) in parts.into_iter().enumerate() {
        prop_assert_eq!(part.score.to_bits(), scores[index].to_bits());
        prop_assert_eq!(
            scorer.score(&items[index], items).to_bits(),
            scores[index].to_bits()
        );
        let sum: f64 = part.parts.iter().map(|part| part.score).sum();
        prop_assert!(
            (sum - part.score).abs() < 1e-9,
            "{} is not {}: {:?}",
            sum,
            part.score,
            part
        );
    }
    Ok(())
}

fn check_cases<T: std::fmt::Debug>(
    cases: &impl Strategy<Value = T>,
    check: impl Fn(T) -> Result<(), TestCaseError>,
) {
    let config = Config {
        cases: cupel_conformance::testing::cases(500),
        failure_persistence: None,
        ..Config::default()
    };
    TestRunner::new(config).run(cases, check).unwrap();
}

const BM25: Parameters = Parameters {
    k1: 0.9,
    b: 0.5,
    near: None,
    wide: None,
    has_question_rules: false,
    sessions: false,
};

#[test]
fn relevance_equals_the_method() {
    let check = |(case, k1, b): (Case, f64, f64)| {
        let items = case.items();
        let scorer = || {
            RelevanceScorer::new(case.query())
                .with_parameters(k1, b)
                .unwrap()
        };
        assert_close(
            &run_scores(scorer(), &items),
            &case.expected(Parameters { k1, b, ..BM25 }),
        )?;
        check_parts(&scorer(), &items)
    };
    let cases = (case(), 0.0..2.0, 0.0..1.0);
    check_cases(&cases, check);
}

#[test]
fn neighbors_of_words_equal_the_method() {
    let check = |case: Case| {
        let items = case.items();
        let scorer = || case.neighbor(RelevanceScorer::new(case.query()));
        let (weight, decay, power) = case.wide;
        let parameters = Parameters {
            near: Some(case.near),
            wide: Some((weight, decay, i32::try_from(power).unwrap())),
            ..BM25
        };
        assert_close(&run_scores(scorer(), &items), &case.expected(parameters))?;
        check_parts(&scorer(), &items)
    };
    check_cases(&case(), check);
}

fn check_conversation(case: &Case) -> Result<(), TestCaseError> {
    let items = case.items();
    let (near, wide) = case.kernels();
    let scorer = ConversationScorer::new(case.query());
    let scorer = scorer.with_neighbors(near, wide, case.sessions).unwrap();
    let (weight, decay, power) = case.wide;
    let parameters = Parameters {
        near: Some(case.near),
        wide: Some((weight, decay, i32::try_from(power).unwrap())),
        has_question_rules: true,
        ..BM25
    };
    assert_close(
        &run_scores(scorer.clone(), &items),
        &case.expected(parameters),
    )?;
    check_parts(&scorer, &items)
}

#[test]
fn conversation_equals_the_method() {
    check_cases(&case(), |case| check_conversation(&case));
}

/// Conversations that reach every rule, with each kernel on and off.
#[test]
fn conversations_by_hand_equal_the_method() {
    let name = |length: usize| format!("Ada {}: The key.", "x".repeat(length - 4));
    let (longest_name, longer_name) = (name(40), name(41));
    let times = [
        "The key of 1999.",
        "The key of 2999.",
        "The 22nd key.",
        "The best key.",
        "The th key.",
        "The key on Monday.",
        "Seven keys.",
    ];
    let speakers = [&*longest_name, &*longer_name, "Ben: The key.", "It rains."];
    // Stems of more than 15 bytes.
    let long_words = [
        "An electroencephalograph and otorhinolaryngology.",
        "Otorhinolaryngology without an electroencephalograph.",
        "It rains.",
        "Electroencephalographs.",
    ];
    let cyrillic = ["ПриветМир и ключ", "Мир", "Привет", "Ключ"];
    let conversations: [(&[&str], &str); 6] = [
        (&times, "When did I lose the key?"),
        (&times, "How many keys are there?"),
        (&times, "Summarize the discussion of the best key."),
        (&speakers, "Where is the key of Ada?"),
        (&long_words, "electroencephalograph otorhinolaryngology"),
        (&cyrillic, "мир"),
    ];
    for (texts, query) in conversations {
        for near in [(0.0, 0.0), (0.5, 0.0), (0.0, 0.5), (0.6, 0.4)] {
            for weight in [0.0, 0.5] {
                let turn = |text: &&str| Turn {
                    text: (*text).to_owned(),
                    speaker: None,
                    session: None,
                    is_query: false,
                };
                let case = Case {
                    turns: texts.iter().map(turn).collect(),
                    query: vec![(query.to_owned(), 1.0)],
                    near,
                    wide: (weight, 0.5, 2),
                    sessions: false,
                    pinned: vec![false; texts.len()],
                    is_timed: false,
                };
                if let Err(error) = check_conversation(&case) {
                    panic!("{query} {near:?} {weight}: {error}");
                }
            }
        }
    }
}

fn items_of<const N: usize>(texts: [&str; N]) -> [ContextItem; N] {
    texts.map(|text| ContextItem::builder(text, 1).build().unwrap())
}

#[test]
fn explanations_list_terms_boosts_and_the_wider_conversation() {
    let items = items_of([
        "Ada: Seven keys on Monday.",
        "Ben: I buy bread.",
        "It rains on Monday.",
    ]);
    let near = NearKernel {
        forward: 0.0,
        backward: 0.0,
    };
    let wide = WideKernel {
        weight: 0.5,
        decay: 0.5,
        power: 1,
    };
    let scorer = ConversationScorer::new("How many keys, and when did Ada buy them?");
    let scorer = scorer.with_neighbors(near, wide, false).unwrap();
    let explained = scorer.explain_all(&items).unwrap();
    let parts = explained.iter().map(|part| &part.parts);
    let names = parts.map(|parts| parts.iter().map(|part| &*part.scorer).collect());
    let names: Vec<Vec<&str>> = names.collect();
    assert_eq!(
        names,
        [
            &[
                "term \"keys\"",
                "term \"ada\"",
                "mentions a time",
                "mentions a number",
                "speaker is named in the query",
                "matches in the wider conversation",
            ][..],
            &["term \"buy\"", "matches in the wider conversation"],
            &["matches in the wider conversation"],
        ]
    );
    let scores = |item: usize| explained[item].parts.iter().map(|part| part.score);
    let (first, second) = (scores(0).collect::<Vec<_>>(), scores(1).collect::<Vec<_>>());
    let terms = first[0] + first[1];
    // The factors are 1.3, 1.3 and 1.5.
    let boosts = [0.3, 1.3 * 0.3, 1.3 * 1.3 * 0.5].map(|share| share * terms);
    assert_close(&first[2..5], &boosts).unwrap();
    // Each step of distance halves what a match adds to the wide sum.
    let match_share = second[0] / first[..5].iter().sum::<f64>();
    let sums = [
        1.0 + match_share / 2.0,
        match_share + 0.5,
        match_share / 2.0 + 0.25,
    ];
    let expected = sums.map(|sum| first[5] * sum / sums[0]);
    let found: Vec<f64> = (0..3).filter_map(|item| scores(item).next_back()).collect();
    assert_close(&found, &expected).unwrap();
}

/// The item with the largest match around `place`: itself, else one before, else one after; the nearest of several.
fn largest_around(matches: &[f64], place: usize, near: NearKernel) -> (usize, f64) {
    let mut largest = (place, matches[place]);
    let before = (0..place).rev().map(|source| (source, near.forward));
    let after = (place + 1..matches.len()).map(|source| (source, near.backward));
    for (source, decay) in before.chain(after) {
        let distance = i32::try_from(source.abs_diff(place)).unwrap();
        let faded = matches[source] * decay.powi(distance);
        if faded > largest.1 {
            largest = (source, faded);
        }
    }
    largest
}

/// All lists of five matches of 0, 1, 2 or 4. Powers of two are exact, and many are equal after they faded.
#[test]
fn explanations_name_the_item_that_a_match_is_from() {
    let off = WideKernel {
        weight: 0.0,
        decay: 0.0,
        power: 1,
    };
    for (forward, backward) in [(0.5, 0.5), (0.5, 0.25), (0.25, 1.0)] {
        let near = NearKernel { forward, backward };
        let scorer = NeighborScorer::new(Raw).with_near(near).unwrap();
        let scorer = scorer.with_wide(off).unwrap();
        for list in 0..4_usize.pow(5) {
            let matches: Vec<f64> = (0..5)
                .map(|place| [0.0, 1.0, 2.0, 4.0][list >> (2 * place) & 3])
                .collect();
            let items: Vec<ContextItem> = matches.iter().copied().map(hinted).collect();
            let top = matches.iter().copied().fold(0.0, f64::max);
            for (place, part) in scorer.explain_all(&items).unwrap().iter().enumerate() {
                let (source, largest) = largest_around(&matches, place, near);
                let name = match (source.abs_diff(place), source < place) {
                    (0, _) => "Raw".to_owned(),
                    (1, true) => "Raw, 1 item before".to_owned(),
                    (1, false) => "Raw, 1 item after".to_owned(),
                    (distance, true) => format!("Raw, {distance} items before"),
                    (distance, false) => format!("Raw, {distance} items after"),
                };
                let found: Vec<(&str, f64)> = part
                    .parts
                    .iter()
                    .map(|part| (&*part.scorer, part.score))
                    .collect();
                let expected = (largest > 0.0).then_some((&*name, largest / top));
                assert_eq!(
                    found,
                    Vec::from_iter(expected),
                    "{matches:?} {place} {near:?}"
                );
            }
        }
    }
}

#[test]
fn k1_sets_how_fast_repetitions_saturate() {
    let items = items_of(["key", "key key"]);
    // Without k1 a repetition adds nothing; the larger k1, the more it adds, up to as much as the first match.
    for (k1, expected) in [(0.0, 1.0), (1.0, 0.75), (1e200, 0.5)] {
        let scorer = RelevanceScorer::new("key").with_parameters(k1, 0.0);
        let scores = scorer.unwrap().score_all(&items).unwrap();
        assert_close(&scores, &[expected, 1.0]).unwrap();
    }
}

#[test]
fn scorers_show_their_parameters() {
    let shown = [
        (
            format!("{:?}", RelevanceScorer::new("key")),
            "RelevanceScorer { query: Some(",
        ),
        (
            format!("{:?}", NeighborScorer::new(ReflexiveScorer)),
            "NeighborScorer { inner: ReflexiveScorer, ",
        ),
        (
            format!("{:?}", ConversationScorer::without_query()),
            "ConversationScorer { query: None, ",
        ),
    ];
    for (text, start) in shown {
        assert!(text.starts_with(start), "{text}");
    }
}

#[test]
fn neighbors_of_other_scores_fade() {
    let items = [0.0, 0.0, 1.0, 0.0, 0.0].map(hinted);
    let scorer = NeighborScorer::new(ReflexiveScorer);
    let scorer = scorer
        .with_near(NearKernel {
            forward: 0.5,
            backward: 0.25,
        })
        .unwrap();
    let scorer = scorer
        .with_wide(WideKernel {
            weight: 0.0,
            decay: 0.0,
            power: 1,
        })
        .unwrap();
    assert_eq!(
        scorer.score_all(&items).unwrap(),
        [0.0625, 0.25, 1.0, 0.5, 0.25]
    );
    let part = scorer.explain(&items, 4).unwrap();
    assert_eq!(part.parts[0].scorer, "ReflexiveScorer, 2 items before");
}

#[test]
fn a_query_reaches_nested_scorers_and_leaves_others_alone() {
    let items = items_of(["red", "green", "blue"]);
    let nested = CompositeScorer::builder()
        .add(
            ScaledScorer::new(NeighborScorer::new(RelevanceScorer::without_query())),
            1.0,
        )
        .add(
            ProductScorer::new(vec![Box::new(RelevanceScorer::new("red"))]).unwrap(),
            1.0,
        )
        .build()
        .unwrap();
    let policy = Policy::new(nested, RankSlice, ChronologicalPlacer);
    assert!(policy.needs_query());
    let error = policy.scorer().score_all(&items).unwrap_err();
    let scorer = "RelevanceScorer";
    assert_eq!(error, CupelError::MissingQuery { scorer });
    assert!(error.to_string().contains("has no query"), "{error}");
    let asked = policy.with_query("blue");
    assert!(!asked.needs_query());
    let scores = asked.scorer().score_all(&items).unwrap();
    // "blue" spreads backward and is rescaled; "red" is the query of the other scorer.
    assert_eq!((scores[0], scores[2]), (0.5, 0.5));
    assert!(scores[1] > 0.0 && scores[1] < 0.5, "{scores:?}");
    assert!(!Policy::new(RecencyScorer, RankSlice, ChronologicalPlacer).needs_query());
}

#[test]
fn copies_for_other_queries_score_like_new_scorers() {
    let scorer = ConversationScorer::without_query();
    let lists = [
        ["the red door", "a green door"],
        ["a blue key", "the red key"],
    ]
    .map(items_of);
    for query in ["red", "key", "green door"] {
        for items in &lists {
            let copy: Arc<dyn Scorer> = scorer.with_query(&Query::from(query)).unwrap();
            let fresh = ConversationScorer::new(query);
            assert_eq!(
                copy.score_all(items).unwrap(),
                fresh.score_all(items).unwrap()
            );
        }
    }
}

#[test]
fn nothing_in_common_scores_nothing() {
    let items = ["a door", "", "— !"].map(|text| {
        let text = if text.is_empty() { " " } else { text };
        ContextItem::builder(text, 1).build().unwrap()
    });
    for query in ["key", "", "?"] {
        assert_eq!(
            ConversationScorer::new(query).score_all(&items).unwrap(),
            [0.0; 3]
        );
    }
    assert_eq!(
        RelevanceScorer::new("key").score_all(&[]).unwrap(),
        [0.0; 0]
    );
}

/// Stemmers must accept any lowercase text.
#[test]
fn any_text_in_any_language_is_scored() {
    let languages = Language::NAMES
        .iter()
        .map(|name| Language::from_name(name).unwrap());
    let languages: Vec<Language> = languages.collect();
    let check = |(texts, query, language): (Vec<String>, String, Language)| {
        let build = |text: &String| ContextItem::builder(&**text, 1).build();
        let items: Vec<ContextItem> = texts.iter().filter_map(|text| build(text).ok()).collect();
        let scorer = ConversationScorer::new(query).with_language(language);
        let scores = scorer.score_all(&items).unwrap();
        prop_assert!(scores.iter().all(|score| (0.0..=1.0).contains(score)));
        Ok(())
    };
    let texts = || prop_oneof![any::<String>(), text(6), "[а-яÀ-ÿء-ي]{1,12}"];
    let cases = (vec(texts(), 0..6), texts(), select(languages));
    check_cases(&cases, check);
}

#[test]
fn invalid_parameters_are_refused() {
    let scorer = || ConversationScorer::new("x");
    let near = NearKernel {
        forward: 1.5,
        backward: 0.0,
    };
    let wide = |weight, power| WideKernel {
        weight,
        decay: 0.5,
        power,
    };
    let rules = QuestionRules::default();
    let errors = [
        RelevanceScorer::new("x")
            .with_parameters(-1.0, 0.5)
            .unwrap_err(),
        RelevanceScorer::new("x")
            .with_parameters(1.0, f64::NAN)
            .unwrap_err(),
        scorer()
            .with_neighbors(near, WideKernel::default(), false)
            .unwrap_err(),
        scorer()
            .with_neighbors(NearKernel::default(), wide(-0.1, 1), false)
            .unwrap_err(),
        scorer()
            .with_neighbors(NearKernel::default(), wide(0.1, 0), false)
            .unwrap_err(),
        scorer()
            .with_rules(QuestionRules {
                answer_boost: 0.0,
                ..rules
            })
            .unwrap_err(),
        scorer()
            .with_rules(QuestionRules {
                word_weight: f64::INFINITY,
                ..rules
            })
            .unwrap_err(),
    ];
    let texts = errors.map(|error| {
        error
            .to_string()
            .replace("invalid scorer configuration: ", "")
    });
    let expected = [
        "k1 must be non-negative",
        "b must be from 0 to 1",
        "near.forward must be from 0 to 1",
        "wide.weight must be non-negative",
        "wide.power must be from 1 to 16",
        "question.answer_boost must be positive and finite",
        "question.word_weight must be finite",
    ];
    assert_eq!(texts, expected);
}

/// The hint as it is.
struct Raw;

impl Scorer for Raw {
    fn score(&self, item: &ContextItem, _: &[ContextItem]) -> f64 {
        item.future_relevance_hint().unwrap()
    }
}

fn hinted(hint: f64) -> ContextItem {
    let item = ContextItem::builder("x", 1).future_relevance_hint(hint);
    item.build().unwrap()
}

#[test]
fn large_boosts_stay_in_range() {
    let items = items_of(["Ada: The key.", "Ben: The key, the key."]);
    let rules = QuestionRules {
        speaker_boost: 1e200,
        ..QuestionRules::default()
    };
    let scorer = ConversationScorer::new("the key of Ada").with_rules(rules);
    let scores = scorer.unwrap().score_all(&items).unwrap();
    assert_close(&scores, &[1.0, 0.0]).unwrap();
}

#[test]
fn large_weights_and_infinite_scores_stay_in_range() {
    let items: Vec<ContextItem> = (0..100)
        .map(|index| {
            ContextItem::builder(format!("key {index}"), 1)
                .build()
                .unwrap()
        })
        .collect();
    let query = Query::default().and("key 7", 1e308).and("key 8", 1e-308);
    let scores = RelevanceScorer::new(query).score_all(&items).unwrap();
    assert_eq!(scores[7], 1.0);
    let items = [f64::NAN, f64::INFINITY, -1.0, 0.5].map(hinted);
    let off = NearKernel {
        forward: 0.0,
        backward: 0.0,
    };
    for near in [NearKernel::default(), off] {
        let scorer = NeighborScorer::new(Raw).with_near(near).unwrap();
        let scores = scorer.score_all(&items).unwrap();
        assert_eq!(scores[1], 1.0);
        assert!(
            scores.iter().all(|score| (0.0..=1.0).contains(score)),
            "{scores:?}"
        );
    }
}

#[test]
fn of_a_query_as_long_as_a_file_the_rarest_terms_count() {
    for (common_words, expected) in [(127, "common0"), (200, "zyzzyva")] {
        let words = (0..common_words).map(|word| format!("common{word}"));
        let common = words.collect::<Vec<_>>().join(" ");
        let texts = (0..50).map(|index| match index {
            7 => format!("{common} zyzzyva"),
            _ => common.clone(),
        });
        let items = texts.map(|text| ContextItem::builder(text, 1).build().unwrap());
        let items: Vec<ContextItem> = items.collect();
        let part = RelevanceScorer::new(format!("{common} zyzzyva"))
            .explain(&items, 7)
            .unwrap();
        assert_eq!((part.score, part.parts.len()), (1.0, 128));
        // 128 terms keep the order of the query; of more than that the rarest is first.
        assert_eq!(part.parts[0].scorer, format!("term \"{expected}\""));
    }
}
