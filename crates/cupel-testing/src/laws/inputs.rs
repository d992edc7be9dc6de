//! The fixed inputs of the law checks.

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
            "equal items",
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

/// A named list of items as content, tokens and score.
type Row = (&'static str, &'static [(&'static str, i64, f64)]);

const ROWS: &[Row] = &[
    ("empty list", &[]),
    ("one item", &[("only", 10, 0.5)]),
    ("one zero-token item", &[("free", 0, 0.5)]),
    ("ties", &[("a", 3, 0.5), ("b", 3, 0.5), ("c", 3, 0.5)]),
    (
        "equal items",
        &[("twin", 3, 0.5), ("twin", 3, 0.5), ("other", 2, 0.5)],
    ),
    (
        "zero-token items among others",
        &[("free", 0, 1.0), ("paid", 8, 0.75), ("also free", 0, 0.0)],
    ),
    (
        "best item larger than all others",
        &[("large", 90, 0.9), ("b", 6, 0.5), ("c", 4, 0.25)],
    ),
    (
        "unusual scores",
        &[
            ("infinite", 2, f64::INFINITY),
            ("large", 2, 7.0),
            ("zero", 2, 0.0),
            ("negative zero", 2, -0.0),
            ("negative", 2, -1.0),
            ("NaN", 2, f64::NAN),
        ],
    ),
];

/// Lists for slicers, as a pipeline passes them: no negative token counts, highest score first.
pub(super) fn sorted() -> Vec<Case<Vec<ScoredItem>>> {
    let same = item("same", 4);
    let again = |score| ScoredItem {
        item: same.clone(),
        score,
    };
    let of_kind = |content: &str, name: &str, score| ScoredItem {
        item: build(ContextItem::builder(content, 5).kind(kind(name))),
        score,
    };
    let by_hint = |item: ContextItem| ScoredItem {
        score: item.future_relevance_hint().unwrap_or(0.0),
        item,
    };
    let mut many: Vec<ScoredItem> = many().into_iter().map(by_hint).collect();
    many.sort_by(|a, b| descending(a.score, b.score));
    let from_rows = ROWS.iter().map(|(name, items)| {
        let items = items.iter();
        case(
            name,
            items
                .map(|&(content, tokens, score)| scored(content, tokens, score))
                .collect(),
        )
    });
    let built = [
        case(
            "one item twice",
            vec![again(0.75), scored("other", 1, 0.5), again(0.25)],
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
        case("many items", many),
    ];
    from_rows.chain(built).collect()
}

/// Returns budgets around the tokens of a list: 1, half, one too few, all, and 10 more.
pub(super) fn budgets(sorted: &[ScoredItem]) -> Vec<ContextBudget> {
    let total: i64 = sorted.iter().map(|scored| scored.item.tokens()).sum();
    [1, total / 2, total - 1, total, total + 10]
        .into_iter()
        .filter(|target| *target > 0)
        .flat_map(|target| [target, 2 * target].map(|max| (max, target)))
        .map(|(max, target)| {
            ContextBudget::with_target(max, target).expect("the target is at most `max_tokens`")
        })
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

/// Returns forty items in which every field varies, and optional fields are sometimes absent.
fn many() -> Vec<ContextItem> {
    let kinds = ["Message", "memory", "Memory", "ToolOutput", "note"];
    let tags = ["urgent", "Work", "home", "work"];
    let one = |number: u8| {
        // Multiples of different primes keep the fields from varying in step.
        let vary = |prime: u16, below: u16| u16::from(number) * prime % 101 % below;
        // Five contents occur twice.
        let content = format!("item {}", number % 35);
        let mut item = ContextItem::builder(content, vary(7, 12).into());
        item = item.kind(kind(kinds[usize::from(vary(11, 5))]));
        if vary(13, 3) > 0 {
            item = item.priority(i64::from(vary(17, 5)) - 2);
        }
        for tag in 0..vary(19, 3) {
            item = item.tag(tags[usize::from(vary(23 + 6 * tag, 4))]);
        }
        if vary(31, 3) > 0 {
            item = item.future_relevance_hint(f64::from(vary(37, 9)) / 8.0);
        }
        if vary(41, 3) > 0 {
            item = item.meta("cupel:trust", (f64::from(vary(43, 9)) / 8.0).to_string());
        }
        build(at(item, vary(47, 30)))
    };
    (0..40).map(one).collect()
}

/// Sets a timestamp in January 2026, or none for day 0.
fn at(item: ContextItemBuilder, day: u16) -> ContextItemBuilder {
    if day == 0 {
        return item;
    }
    let time = format!("2026-01-{day:02}T12:00:00Z");
    item.timestamp(time.parse().expect("the day is in January"))
}

fn kind(name: &str) -> ContextKind {
    ContextKind::new(name).expect("the name is not empty")
}

fn build(item: ContextItemBuilder) -> ContextItem {
    item.build().expect("the content is not empty")
}
