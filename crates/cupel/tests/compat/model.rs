//! `cupel::model`: items, kinds, sources, budgets.

use std::cmp::Ordering;
use std::collections::{HashMap, HashSet};

use chrono::{DateTime, TimeZone, Utc};
use cupel::{
    ContextBudget, ContextItem, ContextItemBuilder, ContextKind, ContextSource, CupelError,
    OverflowStrategy, ParseContextKindError, Query, ScoredItem,
};

use super::{budget, check_text, hinted, item, kind};

fn noon() -> DateTime<Utc> {
    Utc.with_ymd_and_hms(2024, 6, 1, 12, 0, 0).unwrap()
}

#[test]
fn item_methods_have_their_signatures() {
    let _: fn(&ContextItem) -> &str = ContextItem::content;
    let _: fn(&ContextItem) -> i64 = ContextItem::tokens;
    let _: fn(&ContextItem) -> &ContextKind = ContextItem::kind;
    let _: fn(&ContextItem) -> &ContextSource = ContextItem::source;
    let _: fn(&ContextItem) -> Option<i64> = ContextItem::priority;
    let _: fn(&ContextItem) -> &[String] = ContextItem::tags;
    let _: fn(&ContextItem) -> &HashMap<String, String> = ContextItem::metadata;
    let _: fn(&ContextItem) -> Option<DateTime<Utc>> = ContextItem::timestamp;
    let _: fn(&ContextItem) -> Option<f64> = ContextItem::future_relevance_hint;
    let _: fn(&ContextItem) -> bool = ContextItem::pinned;
    let _: fn(&ContextItem) -> Option<i64> = ContextItem::original_tokens;
}

#[test]
fn item_builder_methods_have_their_signatures() {
    type Builder = ContextItemBuilder;

    let _: fn(String, i64) -> Builder = Builder::new;
    let _: fn(&'static str, i64) -> Builder = Builder::new;
    let _: fn(Builder, ContextKind) -> Builder = Builder::kind;
    let _: fn(Builder, ContextSource) -> Builder = Builder::source;
    let _: fn(Builder, i64) -> Builder = Builder::priority;
    let _: fn(Builder, Vec<String>) -> Builder = Builder::tags;
    let _: fn(Builder, HashMap<String, String>) -> Builder = Builder::metadata;
    let _: fn(Builder, DateTime<Utc>) -> Builder = Builder::timestamp;
    let _: fn(Builder, f64) -> Builder = Builder::future_relevance_hint;
    let _: fn(Builder, bool) -> Builder = Builder::pinned;
    let _: fn(Builder, i64) -> Builder = Builder::original_tokens;
    let _: fn(Builder) -> Result<ContextItem, CupelError> = Builder::build;
}

// proves: ITEM-1, ITEM-2
#[test]
fn only_empty_content_is_refused() {
    check_text(
        ContextItemBuilder::new("", 1).build(),
        "content must be non-empty",
    );
    assert!(matches!(
        ContextItemBuilder::new(String::new(), 1).build(),
        Err(CupelError::EmptyContent)
    ));
    assert_eq!(item(" \n", 1).content(), " \n");
}

// proves: ITEM-3
#[test]
fn any_token_count_is_constructible() {
    for tokens in [i64::MIN, -1, 0, 1, i64::MAX] {
        assert_eq!(item("text", tokens).tokens(), tokens);
    }
}

// proves: ITEM-5, ITEM-6, ITEM-7, ITEM-8, ITEM-9, ITEM-10, ITEM-11, ITEM-12, ITEM-13
#[test]
fn what_is_not_set_has_its_default() {
    let item = item("text", 3);
    assert_eq!(item.kind().as_str(), "Message");
    assert_eq!(item.source().as_str(), "Chat");
    assert_eq!(item.priority(), None);
    assert!(item.tags().is_empty());
    assert!(item.metadata().is_empty());
    assert_eq!(item.timestamp(), None);
    assert_eq!(item.future_relevance_hint(), None);
    assert!(!item.pinned());
    assert_eq!(item.original_tokens(), None);
}

// proves: ITEM-7, ITEM-8, ITEM-9, ITEM-10, ITEM-11, ITEM-13
#[test]
fn what_is_set_is_read_back() {
    let metadata = HashMap::from([("origin".to_string(), "wiki".to_string())]);
    let item = ContextItemBuilder::new("text", 3)
        .kind(ContextKind::document())
        .source(ContextSource::new(ContextSource::RAG).unwrap())
        .priority(-4)
        .tags(vec!["b".to_string(), "a".to_string(), "b".to_string()])
        .metadata(metadata.clone())
        .timestamp(noon())
        .future_relevance_hint(1.75)
        .pinned(true)
        .original_tokens(9)
        .build()
        .unwrap();
    assert_eq!(item.content(), "text");
    assert_eq!(item.tokens(), 3);
    assert_eq!(item.kind(), &ContextKind::document());
    assert_eq!(item.source().as_str(), "Rag");
    assert_eq!(item.priority(), Some(-4));
    assert_eq!(item.tags(), ["b", "a", "b"]);
    assert_eq!(item.metadata(), &metadata);
    assert_eq!(item.timestamp(), Some(noon()));
    assert_eq!(item.future_relevance_hint(), Some(1.75));
    assert!(item.pinned());
    assert_eq!(item.original_tokens(), Some(9));
}

#[test]
fn the_last_call_of_a_setter_wins() {
    let item = ContextItemBuilder::new("text", 3)
        .priority(1)
        .priority(2)
        .tags(vec!["a".to_string()])
        .tags(vec!["b".to_string()])
        .pinned(true)
        .pinned(false)
        .build()
        .unwrap();
    assert_eq!(item.priority(), Some(2));
    assert_eq!(item.tags(), ["b"]);
    assert!(!item.pinned());
}

// proves: ITEM-11
#[test]
fn any_hint_is_constructible() {
    for hint in [f64::INFINITY, f64::NEG_INFINITY, -3.0, 2.0, -0.0] {
        assert_eq!(hinted("text", 1, hint).future_relevance_hint(), Some(hint));
    }
    let hint = hinted("text", 1, f64::NAN).future_relevance_hint();
    assert!(hint.is_some_and(f64::is_nan));
}

// proves: ITEM-17
#[test]
fn a_timestamp_is_an_instant_at_any_offset() {
    let here: DateTime<Utc> = "2024-06-01T14:00:00+02:00".parse().unwrap();
    let item = |instant| {
        ContextItemBuilder::new("text", 1)
            .timestamp(instant)
            .build()
            .unwrap()
    };
    assert_eq!(item(here), item(noon()));
}

#[test]
fn items_are_equal_field_by_field() {
    let of = |kind: ContextKind| ContextItemBuilder::new("text", 1).kind(kind).build();
    assert_eq!(of(kind("memory")).unwrap(), of(kind("MEMORY")).unwrap());
    assert_ne!(of(kind("memory")).unwrap(), of(kind("memo")).unwrap());
    assert_ne!(item("text", 1), item("text", 2));
    assert_ne!(item("text", 1), item("Text", 1));

    let without_number = hinted("text", 1, f64::NAN);
    assert_ne!(without_number, without_number.clone());
}

#[test]
fn kind_and_source_methods_have_their_signatures() {
    let _: fn(String) -> Result<ContextKind, CupelError> = ContextKind::new;
    let _: fn(&'static str) -> Result<ContextKind, CupelError> = ContextKind::new;
    let _: fn() -> ContextKind = ContextKind::message;
    let _: fn() -> ContextKind = ContextKind::system_prompt;
    let _: fn() -> ContextKind = ContextKind::document;
    let _: fn() -> ContextKind = ContextKind::tool_output;
    let _: fn() -> ContextKind = ContextKind::memory;
    let _: fn(&ContextKind) -> &str = ContextKind::as_str;
    let _: fn(&'static str) -> Result<ContextKind, ParseContextKindError> =
        <ContextKind as TryFrom<&str>>::try_from;

    let _: fn(String) -> Result<ContextSource, CupelError> = ContextSource::new;
    let _: fn(&'static str) -> Result<ContextSource, CupelError> = ContextSource::new;
    let _: fn(&ContextSource) -> &str = ContextSource::as_str;
}

// proves: ENUM-2, ENUM-8
#[test]
fn the_known_kinds_and_sources_have_their_spelling() {
    const KINDS: [&str; 5] = [
        ContextKind::MESSAGE,
        ContextKind::DOCUMENT,
        ContextKind::TOOL_OUTPUT,
        ContextKind::MEMORY,
        ContextKind::SYSTEM_PROMPT,
    ];
    const SOURCES: [&str; 3] = [ContextSource::CHAT, ContextSource::TOOL, ContextSource::RAG];

    assert_eq!(
        KINDS,
        [
            "Message",
            "Document",
            "ToolOutput",
            "Memory",
            "SystemPrompt"
        ]
    );
    let factories = [
        ContextKind::message(),
        ContextKind::document(),
        ContextKind::tool_output(),
        ContextKind::memory(),
        ContextKind::system_prompt(),
    ];
    for (text, kind) in KINDS.iter().zip(&factories) {
        assert_eq!(kind.as_str(), *text);
    }
    assert_eq!(SOURCES, ["Chat", "Tool", "Rag"]);
    assert_eq!(ContextKind::default().as_str(), "Message");
    assert_eq!(ContextSource::default().as_str(), "Chat");
}

// proves: ENUM-1, ENUM-7
#[test]
fn any_other_text_is_kept_as_it_is() {
    for text in ["x", " padded ", "Größe", "tool-output", "\u{1F980}"] {
        assert_eq!(ContextKind::new(text).unwrap().as_str(), text);
        assert_eq!(ContextKind::try_from(text).unwrap().as_str(), text);
        assert_eq!(ContextKind::new(text).unwrap().to_string(), text);
        assert_eq!(ContextSource::new(text).unwrap().as_str(), text);
        assert_eq!(ContextSource::new(text).unwrap().to_string(), text);
    }
}

// proves: ENUM-5, ENUM-6, ENUM-10
#[test]
fn empty_and_blank_kinds_and_sources_are_refused() {
    for text in ["", " ", "\t\r\n", "\u{2003}\u{a0}"] {
        assert!(matches!(ContextKind::new(text), Err(CupelError::EmptyKind)));
        assert!(matches!(
            ContextSource::new(text),
            Err(CupelError::EmptySource)
        ));
        let error: ParseContextKindError = ContextKind::try_from(text).unwrap_err();
        assert_eq!(error.to_string(), format!("invalid context kind: {text:?}"));
    }
    let parsed: Result<ContextKind, _> = "\t".try_into();
    assert_eq!(
        parsed.unwrap_err().to_string(),
        r#"invalid context kind: "\t""#
    );
}

// proves: ENUM-3, ENUM-9
#[test]
fn kinds_and_sources_fold_the_case_of_ascii_letters_only() {
    assert_eq!(kind("toolOUTPUT"), ContextKind::tool_output());
    assert_ne!(kind("É"), kind("é"));
    assert_ne!(kind("Message "), ContextKind::message());
    let kinds = HashSet::from([kind("Memory"), kind("MEMORY"), kind("É"), kind("é")]);
    assert_eq!(kinds.len(), 3);

    let source = |text| ContextSource::new(text).unwrap();
    assert_eq!(source("rAG"), source(ContextSource::RAG));
    assert_ne!(source("Ö"), source("ö"));
    let sources = HashSet::from([source("Chat"), source("CHAT"), source("Ö"), source("ö")]);
    assert_eq!(sources.len(), 3);
}

#[test]
fn kinds_and_sources_print_their_text_at_the_width_asked_for() {
    let (kind, source) = (kind("mEmory"), ContextSource::default());
    assert_eq!(
        format!("{kind}|{kind:>12}|{kind:*<9}"),
        "mEmory|      mEmory|mEmory***"
    );
    assert_eq!(format!("{source}|{source:>12}"), "Chat|        Chat");
    assert_eq!(format!("{kind:?}"), r#"ContextKind("mEmory")"#);
    assert_eq!(format!("{source:?}"), r#"ContextSource("Chat")"#);
}

// proves: ENUM-11, ENUM-12
#[test]
fn there_are_three_overflow_strategies_and_the_first_is_the_default() {
    fn name(strategy: OverflowStrategy) -> &'static str {
        match strategy {
            OverflowStrategy::Throw => "Throw",
            OverflowStrategy::Truncate => "Truncate",
            OverflowStrategy::Proceed => "Proceed",
            _ => "another",
        }
    }

    for strategy in [
        OverflowStrategy::Throw,
        OverflowStrategy::Truncate,
        OverflowStrategy::Proceed,
    ] {
        assert_eq!(format!("{strategy:?}"), name(strategy));
    }
    assert_eq!(OverflowStrategy::default(), OverflowStrategy::Throw);
}

// proves: ENUM-17
#[test]
fn a_scored_item_is_a_pair_with_any_score() {
    for score in [-1.0, 0.0, 7.5, f64::INFINITY] {
        let pair = ScoredItem {
            item: item("text", 1),
            score,
        };
        let ScoredItem { item, score: read } = pair.clone();
        assert_eq!(item, pair.item);
        assert_eq!(read, score);
    }
}

#[test]
fn budget_methods_have_their_signatures() {
    type Slots = HashMap<ContextKind, i64>;
    type Constructor = fn(i64, i64, i64, Slots, f64) -> Result<ContextBudget, CupelError>;

    let _: Constructor = ContextBudget::new;
    let _: fn(&ContextBudget) -> i64 = ContextBudget::max_tokens;
    let _: fn(&ContextBudget) -> i64 = ContextBudget::target_tokens;
    let _: fn(&ContextBudget) -> i64 = ContextBudget::output_reserve;
    let _: fn(&ContextBudget) -> &Slots = ContextBudget::reserved_slots;
    let _: fn(&ContextBudget) -> f64 = ContextBudget::estimation_safety_margin_percent;
    let _: fn(&ContextBudget) -> i64 = ContextBudget::total_reserved;
    let _: fn(&ContextBudget) -> i64 = ContextBudget::unreserved_capacity;
    let _: fn(&ContextBudget) -> bool = ContextBudget::has_capacity;
}

/// Budget numbers as the constructor takes them, with at most one reserved slot.
#[derive(Clone, Copy)]
struct Numbers {
    max: i64,
    target: i64,
    reserve: i64,
    slot: i64,
    margin: f64,
}

impl Numbers {
    /// Legal in every respect.
    const GOOD: Self = Self {
        max: 100,
        target: 80,
        reserve: 10,
        slot: 5,
        margin: 2.5,
    };

    fn build(self) -> Result<ContextBudget, CupelError> {
        let slots = HashMap::from([(ContextKind::memory(), self.slot)]);
        ContextBudget::new(self.max, self.target, self.reserve, slots, self.margin)
    }

    /// The constructor refuses the numbers with `invalid budget: ` and this text.
    #[track_caller]
    fn refused(self, text: &str) {
        match self.build() {
            Err(CupelError::InvalidBudget(payload)) => assert_eq!(payload, text),
            other => panic!("{other:?} instead of {text}"),
        }
        check_text(self.build(), &format!("invalid budget: {text}"));
    }
}

// proves: BUDGET-1, BUDGET-2, BUDGET-3, BUDGET-4, BUDGET-5, BUDGET-6, BUDGET-7, BUDGET-8
#[test]
fn each_budget_rule_has_its_text() {
    let good = Numbers::GOOD;
    Numbers { max: -1, ..good }.refused("max_tokens (-1) must be >= 0");
    Numbers { target: -2, ..good }.refused("target_tokens (-2) must be >= 0");
    Numbers {
        target: 101,
        ..good
    }
    .refused("target_tokens (101) must be <= max_tokens (100)");
    Numbers {
        reserve: -3,
        ..good
    }
    .refused("output_reserve (-3) must be >= 0");
    Numbers {
        reserve: 101,
        ..good
    }
    .refused("output_reserve (101) must be <= max_tokens (100)");
    Numbers { slot: -1, ..good }.refused("reserved slot count for kind 'Memory' must be >= 0");
}

// proves: BUDGET-6
#[test]
fn a_margin_outside_a_percentage_is_refused_and_printed_plainly() {
    for (margin, printed) in [
        (100.5, "100.5"),
        (-1.0, "-1"),
        (f64::NAN, "NaN"),
        (f64::INFINITY, "inf"),
        (f64::NEG_INFINITY, "-inf"),
    ] {
        Numbers {
            margin,
            ..Numbers::GOOD
        }
        .refused(&format!(
            "estimation_safety_margin_percent ({printed}) must be in [0.0, 100.0]"
        ));
    }
}

// proves: R026
#[test]
fn the_first_broken_budget_rule_is_the_one_reported() {
    let mut numbers = Numbers {
        max: -1,
        target: -1,
        reserve: -1,
        slot: -1,
        margin: f64::NAN,
    };
    numbers.refused("max_tokens (-1) must be >= 0");
    numbers.max = 10;
    numbers.refused("target_tokens (-1) must be >= 0");
    numbers.target = 11;
    numbers.refused("target_tokens (11) must be <= max_tokens (10)");
    numbers.target = 10;
    numbers.refused("output_reserve (-1) must be >= 0");
    numbers.reserve = 11;
    numbers.refused("output_reserve (11) must be <= max_tokens (10)");
    numbers.reserve = 10;
    numbers.refused("estimation_safety_margin_percent (NaN) must be in [0.0, 100.0]");
    numbers.margin = 100.0;
    numbers.refused("reserved slot count for kind 'Memory' must be >= 0");
    numbers.slot = 0;
    assert!(numbers.build().is_ok());
}

// proves: BUDGET-1, BUDGET-3, BUDGET-5, BUDGET-6, R021
#[test]
fn the_ends_of_every_range_are_legal() {
    let nothing = ContextBudget::new(0, 0, 0, HashMap::new(), 0.0).unwrap();
    assert_eq!(nothing, budget(0, 0));
    assert!(!nothing.has_capacity());

    for margin in [0.0, -0.0, 100.0] {
        let all = Numbers {
            max: 7,
            target: 7,
            reserve: 7,
            slot: 0,
            margin,
        };
        let all = all.build().unwrap();
        assert_eq!(all.max_tokens(), 7);
        assert_eq!(all.target_tokens(), 7);
        assert_eq!(all.output_reserve(), 7);
        assert_eq!(all.estimation_safety_margin_percent(), margin);
    }
}

// proves: BUDGET-8
#[test]
fn a_budget_gives_back_its_numbers_and_their_sums() {
    let slots = HashMap::from([(ContextKind::memory(), 30), (ContextKind::document(), 20)]);
    let of = |reserve| ContextBudget::new(100, 80, reserve, slots.clone(), 12.5).unwrap();

    let roomy = of(10);
    assert_eq!(roomy.reserved_slots(), &slots);
    assert_eq!(roomy.estimation_safety_margin_percent(), 12.5);
    assert_eq!(roomy.total_reserved(), 60);
    assert_eq!(roomy.unreserved_capacity(), 40);
    assert!(roomy.has_capacity());

    let full = of(50);
    assert_eq!(full.unreserved_capacity(), 0);
    assert!(!full.has_capacity());

    let overdrawn = of(70);
    assert_eq!(overdrawn.total_reserved(), 120);
    assert_eq!(overdrawn.unreserved_capacity(), -20);
    assert!(!overdrawn.has_capacity());
}

// proves: BUDGET-10, ENUM-4
#[test]
fn reserved_slots_are_found_under_any_case() {
    let slots = |name| HashMap::from([(kind(name), 30)]);
    let budget = ContextBudget::new(100, 80, 0, slots("memory"), 0.0).unwrap();
    assert_eq!(budget.reserved_slots().get(&kind("MEMORY")), Some(&30));
    assert_eq!(
        budget,
        ContextBudget::new(100, 80, 0, slots("MEMORY"), 0.0).unwrap()
    );
}

// proves: ENUM-9
#[test]
fn sources_have_their_names_and_order_ignoring_case() {
    let names = [
        (ContextSource::chat(), "Chat"),
        (ContextSource::tool(), "Tool"),
        (ContextSource::rag(), "Rag"),
        (ContextSource::from_static("Mail"), "Mail"),
    ];
    for (source, name) in names {
        assert_eq!(source.as_str(), name);
    }
    let upper = ContextSource::new("MAIL").unwrap();
    let mail = ContextSource::from_static("mail");
    assert_eq!(upper.partial_cmp(&mail), Some(Ordering::Equal));
    assert_eq!(
        upper.partial_cmp(&ContextSource::tool()),
        Some(Ordering::Less)
    );
}

#[test]
fn the_error_of_a_kind_has_its_input() {
    assert_eq!(ContextKind::try_from("\t").unwrap_err().input(), "\t");
}

#[test]
fn debug_output_names_the_fields() {
    let slots = HashMap::from([(kind("Memory"), 30)]);
    let budget = ContextBudget::new(100, 80, 10, slots, 12.5).unwrap();
    assert_eq!(
        format!("{budget:?}"),
        "ContextBudget { max_tokens: 100, target_tokens: 80, output_reserve: 10, \
         reserved_slots: {ContextKind(\"Memory\"): 30}, estimation_safety_margin_percent: 12.5 }"
    );
    let builder = ContextItemBuilder::new("some text", 3).priority(7);
    let text = format!("{builder:?}");
    assert!(text.starts_with("ContextItemBuilder {"), "{text}");
    assert!(text.contains("some text") && text.contains('7'), "{text}");
}

#[test]
fn a_query_has_the_texts_with_a_positive_finite_weight() {
    let query = Query::new("keys")
        .and("none", 0.0)
        .and("negative", -1.0)
        .and("infinite", f64::INFINITY)
        .and("unknown", f64::NAN)
        .and("doors", 0.5);
    let texts: Vec<_> = query.texts().collect();
    assert_eq!(texts, [("keys", 1.0), ("doors", 0.5)]);
    assert_eq!(query.text(), "keys\ndoors");
}
