//! Inputs that tell strategies apart: the same on every machine and in every run.

use cupel::{ContextBudget, ContextItem, ContextItemBuilder, ContextKind, ScoredItem};

use crate::check::descending;
use crate::fixture::{item, scored};

/// A named input.
pub(super) struct Case<T> {
    pub(super) name: &'static str,
    pub(super) input: T,
}

/// Lists of items for scorers.
pub(super) fn items() -> Vec<Case<Vec<ContextItem>>> {
    let same = full("same", 4);
    let tied = |content: &str| build(full(content, 1).to_builder().kind(kind("Message")));
    let hinted =
        |content: &str, hint| build(ContextItem::builder(content, 1).future_relevance_hint(hint));
    let of_kind = |content: &str, name: &str| {
        build(ContextItem::builder(content, 1).kind(kind(name)).tag(name))
    };
    vec![
        case("empty list", vec![]),
        case("one plain item", vec![item("plain", 1)]),
        case("one item with every field", vec![full("full", 1)]),
        case("ties", vec![tied("a"), tied("b"), tied("c")]),
        case(
            "twins",
            vec![full("twin", 3), full("twin", 3), item("other", 1)],
        ),
        case("one item twice", vec![same.clone(), item("other", 1), same]),
        case(
            "missing fields",
            vec![item("a", 1), full("b", 2), item("c", 3), full("d", 4)],
        ),
        case(
            "token counts of zero and below",
            vec![full("free", 0), full("negative", -5), full("paid", 5)],
        ),
        case(
            "unusual hints",
            vec![
                hinted("NaN", f64::NAN),
                hinted("infinite", f64::INFINITY),
                hinted("negative", -1.0),
                hinted("large", 7.0),
                hinted("zero", -0.0),
            ],
        ),
        case(
            "kinds and tags in several spellings",
            vec![
                of_kind("a", "Memory"),
                of_kind("b", "MEMORY"),
                of_kind("c", "note"),
            ],
        ),
        case("many items", many()),
    ]
}

/// Lists for slicers: no negative token counts, best score first, as a pipeline hands them over.
pub(super) fn sorted() -> Vec<Case<Vec<ScoredItem>>> {
    let same = item("same", 4);
    let twice = |score| ScoredItem {
        item: same.clone(),
        score,
    };
    let of_kind = |content: &str, name: &str, score| ScoredItem {
        item: build(ContextItem::builder(content, 5).kind(kind(name))),
        score,
    };
    let mut cases = vec![
        case("empty list", vec![]),
        case("one item", vec![scored("only", 10, 0.5)]),
        case("one free item", vec![scored("free", 0, 0.5)]),
        case(
            "ties",
            vec![
                scored("a", 3, 0.5),
                scored("b", 3, 0.5),
                scored("c", 3, 0.5),
            ],
        ),
        case(
            "twins",
            vec![
                scored("twin", 3, 0.5),
                scored("twin", 3, 0.5),
                scored("other", 2, 0.5),
            ],
        ),
        case(
            "one item twice",
            vec![twice(0.75), scored("other", 1, 0.5), twice(0.25)],
        ),
        case(
            "free items among others",
            vec![
                scored("free", 0, 1.0),
                scored("paid", 8, 0.75),
                scored("also free", 0, 0.0),
            ],
        ),
        case(
            "best item larger than all others",
            vec![
                scored("large", 90, 0.9),
                scored("b", 6, 0.5),
                scored("c", 4, 0.25),
            ],
        ),
        case(
            "unusual scores",
            vec![
                scored("infinite", 2, f64::INFINITY),
                scored("large", 2, 7.0),
                scored("zero", 2, 0.0),
                scored("negative zero", 2, -0.0),
                scored("negative", 2, -1.0),
                scored("NaN", 2, f64::NAN),
            ],
        ),
        case(
            "kinds in several spellings",
            vec![
                of_kind("a", "Memory", 0.9),
                of_kind("b", "MEMORY", 0.8),
                of_kind("c", "note", 0.7),
                of_kind("d", "Message", 0.6),
            ],
        ),
    ];
    let mut many: Vec<ScoredItem> = many()
        .into_iter()
        .map(|item| ScoredItem {
            score: item.future_relevance_hint().unwrap_or(0.0),
            item,
        })
        .collect();
    many.sort_by(|a, b| descending(a.score, b.score));
    cases.push(case("many items", many));
    cases
}

/// Budgets around the tokens of a list: next to nothing, half, one too few, all, and more.
pub(super) fn budgets(sorted: &[ScoredItem]) -> Vec<ContextBudget> {
    let total: i64 = sorted.iter().map(|scored| scored.item.tokens()).sum();
    [1, total / 2, total - 1, total, total + 10]
        .into_iter()
        .filter(|target| *target > 0)
        .flat_map(|target| [target, 2 * target].map(|max| (max, target)))
        .map(|(max, target)| ContextBudget::with_target(max, target).expect("target is below max"))
        .collect()
}

/// Lists for placers: pinned items first with the score 1.0, then the others by score.
pub(super) fn merged() -> Vec<Case<Vec<ScoredItem>>> {
    let mut cases = sorted();
    let pinned = |content: &str| ScoredItem {
        item: build(full(content, 5).to_builder().pinned(true)),
        score: 1.0,
    };
    cases.push(case("only pinned items", vec![pinned("a"), pinned("b")]));
    cases.push(case(
        "pinned items before better ones",
        vec![pinned("a"), scored("b", 1, 1.5), scored("c", 1, 1.0)],
    ));
    cases
}

fn case<T>(name: &'static str, input: T) -> Case<T> {
    Case { name, input }
}

/// An item with a value in every field.
fn full(content: &str, tokens: i64) -> ContextItem {
    build(
        ContextItem::builder(content, tokens)
            .kind(kind("Memory"))
            .priority(3)
            .tag("urgent")
            .tag("Work")
            .meta("cupel:trust", "0.5")
            .meta("cupel:priority", "high")
            .future_relevance_hint(0.5)
            .original_tokens(100),
    )
}

/// Forty items in which every field varies and is sometimes missing, from a fixed sequence.
fn many() -> Vec<ContextItem> {
    let mut state = 1_u64;
    let mut draw = |below: i64| {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        i64::try_from(state >> 33).unwrap_or(0) % below
    };
    let kinds = ["Message", "memory", "Memory", "ToolOutput", "note"];
    let tags = ["urgent", "Work", "home", "work"];
    let one = |number| {
        // Repeated contents: some of these items are twins in all but their fields.
        let content = format!("item {}", number % 35);
        let mut item = ContextItem::builder(content, draw(12));
        item = item.kind(kind(pick(&kinds, draw(5))));
        if draw(3) > 0 {
            item = item.priority(draw(5) - 2);
        }
        for _ in 0..draw(3) {
            item = item.tag(pick(&tags, draw(4)));
        }
        if draw(3) > 0 {
            item = item.future_relevance_hint(draw(9) as f64 / 8.0);
        }
        if draw(3) > 0 {
            item = item.meta("cupel:trust", (draw(9) as f64 / 8.0).to_string());
        }
        item = at(item, draw(30));
        build(item)
    };
    (0..40).map(one).collect()
}

/// Gives the item a time in January 2026; none on day 0.
fn at(item: ContextItemBuilder, day: i64) -> ContextItemBuilder {
    if day == 0 {
        return item;
    }
    let time = format!("2026-01-{day:02}T12:00:00Z");
    item.timestamp(time.parse().expect("the day is in January"))
}

fn pick<'a>(words: &[&'a str], index: i64) -> &'a str {
    words[usize::try_from(index).unwrap_or(0)]
}

fn kind(name: &str) -> ContextKind {
    ContextKind::new(name).expect("the name is not empty")
}

fn build(item: ContextItemBuilder) -> ContextItem {
    item.build().expect("the content is not empty")
}
