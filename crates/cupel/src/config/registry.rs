//! The names of everything a document can hold, in one table.
//!
//! The reader's keys, suggestions, ranges and defaults, the JSON Schema and the lists of the
//! command all come from here. The rows of the strategies are in `strategies.rs`.
//!
//! ```
//! use cupel::config::registry::{PLACERS, SCORERS};
//!
//! assert_eq!(PLACERS.names().collect::<Vec<_>>(), ["chronological", "u-shaped"]);
//! let decay = SCORERS.find("decay").unwrap();
//! assert_eq!(decay.fields[0].name, "curve");
//! ```

pub use super::query::QUERY_TEXT;
pub use super::relevance::{NEAR, QUESTION, WIDE};
use super::strategies::OVERFLOW;
pub use super::strategies::{
    COUNT_ENTRY, CURVES, LADDER_STEPS, PLACERS, QUOTA, SCORER_ENTRY, SCORERS, SLICERS, STEP_WINDOW,
};
use crate::pipeline::CHAT_SETTINGS;

/// A set of object types, told apart by the member `type`.
#[non_exhaustive]
#[derive(Debug, Clone, Copy)]
pub struct Family {
    /// The name of one of them: `scorer`.
    pub name: &'static str,
    /// The types, in the order of the documentation.
    pub types: &'static [Record],
}

impl Family {
    /// Returns the names of its types.
    pub fn names(&self) -> impl Iterator<Item = &'static str> + use<> {
        self.types.iter().map(|record| record.name)
    }

    /// Returns the type of this name.
    pub fn find(&self, name: &str) -> Option<&'static Record> {
        self.types.iter().find(|record| record.name == name)
    }
}

/// A family by name.
#[non_exhaustive]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// [`SCORERS`].
    Scorer,
    /// [`SLICERS`].
    Slicer,
    /// [`PLACERS`].
    Placer,
    /// [`CURVES`].
    Curve,
    /// [`LADDER_STEPS`].
    LadderStep,
}

impl Role {
    /// All families.
    pub const ALL: [Self; 5] = [
        Self::Scorer,
        Self::Slicer,
        Self::Placer,
        Self::Curve,
        Self::LadderStep,
    ];

    /// Returns the family.
    pub fn family(self) -> &'static Family {
        match self {
            Self::Scorer => &SCORERS,
            Self::Slicer => &SLICERS,
            Self::Placer => &PLACERS,
            Self::Curve => &CURVES,
            Self::LadderStep => &LADDER_STEPS,
        }
    }
}

/// An object with known keys.
#[non_exhaustive]
#[derive(Debug, Clone, Copy)]
pub struct Record {
    /// The name of the type in its family, or of the record itself.
    pub name: &'static str,
    /// A one-line description.
    pub doc: &'static str,
    /// The fields, in the order in which they are written.
    pub fields: &'static [Field],
    /// Whether `null` means that the field is left out.
    pub nullable: bool,
}

impl Record {
    /// Creates the type of an object with known keys, for [`Document::faults`](super::Document::faults)
    /// and [`record_schema`](super::record_schema).
    pub const fn new(name: &'static str, doc: &'static str, fields: &'static [Field]) -> Self {
        Self {
            name,
            doc,
            fields,
            nullable: false,
        }
    }
}

/// A member of an object.
#[non_exhaustive]
#[derive(Debug, Clone, Copy)]
pub struct Field {
    /// The key.
    pub name: &'static str,
    /// Another spelling that is accepted.
    pub alias: Option<&'static str>,
    /// The values that are accepted.
    pub shape: Shape,
    /// Whether the field may be left out.
    pub need: Need,
    /// A one-line description.
    pub doc: &'static str,
}

/// Whether a field may be left out.
#[non_exhaustive]
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Need {
    /// It is required.
    Required,
    /// It is required unless this other field is given.
    RequiredUnless(&'static str),
    /// It may be left out; its description says what happens then.
    Optional,
    /// It defaults to this value.
    Default(Literal),
}

/// A default value.
#[non_exhaustive]
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Literal {
    /// A boolean.
    Bool(bool),
    /// An integer.
    Integer(i64),
    /// A number.
    Number(f64),
    /// A string.
    String(&'static str),
    /// A strategy without fields, by its `type`.
    Type(&'static str),
    /// An object of numbers.
    Weights(&'static [(&'static str, f64)]),
    /// An empty object.
    EmptyObject,
    /// An empty array.
    EmptyArray,
}

/// The values that a field accepts.
#[non_exhaustive]
#[derive(Debug, Clone, Copy)]
pub enum Shape {
    /// A string.
    String,
    /// A string that is not blank.
    Label,
    /// A boolean.
    Bool,
    /// A finite number in a range.
    Number(Range),
    /// Any number. `"NaN"`, `"inf"` and `"-inf"` are accepted for formats without a notation.
    AnyNumber,
    /// An integer from the first to the second.
    Integer(i64, i64),
    /// A duration.
    Duration,
    /// A point in time by RFC 3339.
    Time,
    /// One of these strings.
    Choice(&'static [&'static str]),
    /// An array with at least this many elements.
    Array(&'static Shape, usize),
    /// An object whose keys are kinds, compared without regard to case.
    ByKind(&'static Shape),
    /// An object with any keys.
    ByString(&'static Shape),
    /// An object with any keys and any values.
    Metadata,
    /// An object with known keys.
    Record(&'static Record),
    /// An object with a `type`.
    Family(Role),
    /// A string, or an array of texts with weights.
    Query,
    /// The name of a preset.
    Preset,
    /// A policy, or the name of a preset.
    Policy,
    /// A policy, the name of a preset, or the path of a policy document.
    PolicyOrPath,
    /// A number of tokens of at least this, or a string such as `8k` or `70%`.
    Amount(i64),
}

/// A range of numbers.
#[non_exhaustive]
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Range {
    /// The minimum.
    pub min: f64,
    /// Whether the minimum itself is out of range.
    pub exclusive: bool,
    /// The maximum, inclusive.
    pub max: f64,
}

const fn range(min: f64, exclusive: bool, max: f64) -> Shape {
    Shape::Number(Range {
        min,
        exclusive,
        max,
    })
}

/// A number above 0.
pub const POSITIVE: Shape = range(0.0, true, f64::MAX);
pub(super) const NOT_NEGATIVE: Shape = range(0.0, false, f64::MAX);
pub(super) const FINITE: Shape = range(f64::MIN, false, f64::MAX);
pub(super) const UNIT: Shape = range(0.0, false, 1.0);
pub(super) const SHARE: Shape = range(0.0, true, 1.0);
/// A number from 0 to 100.
pub const PERCENT: Shape = range(0.0, false, 100.0);
/// An integer of at least 0.
pub const COUNT: Shape = Shape::Integer(0, i64::MAX);
pub(crate) const TOKENS: Shape = Shape::Integer(1, i64::MAX);
const INTEGER: Shape = Shape::Integer(i64::MIN, i64::MAX);
pub(super) const ITEMS: Shape = Shape::Array(&EACH_ITEM, 0);
const EACH_ITEM: Shape = Shape::Record(&ITEM);
const EACH_VIEW: Shape = Shape::Record(&VIEW);

/// A field without its name and description.
#[derive(Clone, Copy)]
pub(crate) struct Spec {
    shape: Shape,
    need: Need,
}

pub(super) const fn required(shape: Shape) -> Spec {
    let need = Need::Required;
    Spec { shape, need }
}

pub(crate) const fn optional(shape: Shape) -> Spec {
    let need = Need::Optional;
    Spec { shape, need }
}

pub(crate) const fn default(shape: Shape, value: Literal) -> Spec {
    let need = Need::Default(value);
    Spec { shape, need }
}

impl Spec {
    pub(crate) const fn named(self, name: &'static str, doc: &'static str) -> Field {
        Field {
            name,
            alias: None,
            shape: self.shape,
            need: self.need,
            doc,
        }
    }
}

impl Field {
    /// Creates a field that may be left out; its description says what happens then.
    pub const fn optional(name: &'static str, shape: Shape, doc: &'static str) -> Self {
        optional(shape).named(name, doc)
    }

    const fn or(self, alias: &'static str) -> Self {
        Self {
            alias: Some(alias),
            ..self
        }
    }
}

/// A policy document.
pub static POLICY: Record = Record {
    name: "policy",
    doc: "How to choose: a scorer, a slicer, a placer, deduplication and overflow.",
    fields: &[
        optional(Shape::String).named("$schema", "The JSON Schema of this document, for editors."),
        optional(Shape::Preset).named(
            "extends",
            "The preset whose scorer, slicer, placer, deduplication and overflow strategy apply where this document has none.",
        ),
        optional(Shape::Label).named("name", "The name of the policy."),
        optional(Shape::Integer(1, i64::MAX)).named(
            "version",
            "The version of the policy under its name, counted from 1.",
        ),
        optional(Shape::String).named("description", "When to use the policy."),
        Spec {
            shape: Shape::Family(Role::Scorer),
            need: Need::RequiredUnless("extends"),
        }
        .named("scorer", "How relevant an item is."),
        default(Shape::Family(Role::Slicer), Literal::Type("greedy"))
            .named("slicer", "Which items fit into the budget."),
        default(Shape::Family(Role::Placer), Literal::Type("chronological"))
            .named("placer", "The order of the window."),
        default(Shape::Bool, Literal::Bool(true)).named(
            "deduplication",
            "Whether only the best of several items with the same content is kept.",
        ),
        default(OVERFLOW, Literal::String("throw")).named(
            "overflow_strategy",
            "If pinned and selected items exceed the target: fail, keep what still fits, keep everything.",
        ),
        default(Shape::Record(&CHAT), Literal::EmptyObject)
            .named("chat", "How a chat is treated; items ignore it."),
    ],
    nullable: false,
};

/// How a chat is treated. The fields are those of [`CHAT_SETTINGS`].
pub static CHAT: Record = Record {
    name: "chat",
    doc: "How a chat is treated.",
    fields: &{
        let mut fields = [CHAT_SETTINGS[0].field; CHAT_SETTINGS.len()];
        // A `for` loop is not possible in a constant.
        let mut row = 0;
        while row < fields.len() {
            fields[row] = CHAT_SETTINGS[row].field;
            row += 1;
        }
        fields
    },
    nullable: false,
};

/// A request document.
pub static REQUEST: Record = Record {
    name: "request",
    doc: "The candidates, the budget, the policy and the query of a run.",
    fields: &[
        optional(Shape::String).named("$schema", "The JSON Schema of this document, for editors."),
        required(ITEMS).named("items", "The candidates."),
        optional(Shape::Record(&BUDGET)).named("budget", "The limits."),
        optional(Shape::Policy).named("policy", "A policy, or the name of a preset."),
        optional(Shape::Label).named("query", "The question that the window is to answer."),
    ],
    nullable: false,
};

/// A candidate.
pub static ITEM: Record = Record {
    name: "item",
    doc: "A candidate: a message, a document, a tool's output, a memory.",
    fields: &[
        required(Shape::String).named("content", "The text, not empty."),
        required(INTEGER).named(
            "tokens",
            "The token count; items with a negative one are excluded.",
        ),
        default(Shape::Label, Literal::String("Message")).named("kind", "The kind of item."),
        default(Shape::Label, Literal::String("Chat")).named("source", "The origin of the item."),
        optional(INTEGER).named("priority", "The priority; higher is more important."),
        default(Shape::Array(&Shape::String, 0), Literal::EmptyArray).named("tags", "The tags."),
        default(Shape::Metadata, Literal::EmptyObject)
            .named("metadata", "Any values, kept as strings."),
        optional(Shape::Time).named("timestamp", "When the item was made or seen."),
        optional(Shape::AnyNumber)
            .named(
                "future_relevance_hint",
                "The caller's own score, by convention from 0 to 1.",
            )
            .or("futureRelevanceHint"),
        default(Shape::Bool, Literal::Bool(false)).named(
            "pinned",
            "Whether the item is always included, whatever its score.",
        ),
        optional(INTEGER)
            .named(
                "original_tokens",
                "The token count before the text was shortened.",
            )
            .or("originalTokens"),
        default(Shape::Array(&EACH_VIEW, 0), Literal::EmptyArray).named(
            "views",
            "Shorter forms of the item: each with its own level, and with fewer tokens than the item.",
        ),
    ],
    nullable: true,
};

/// A view of an item.
pub static VIEW: Record = Record {
    name: "view",
    doc: "A shorter form of an item: an extract, a title, a placeholder.",
    fields: &[
        required(Shape::String).named("content", "The text, not empty."),
        required(COUNT).named("tokens", "The token count, below the item's."),
        optional(INTEGER).named(
            "level",
            "The nominal size in tokens that the view was made for. Defaults to `tokens`.",
        ),
        optional(UNIT).named(
            "value",
            "The share of the item's score that the view keeps. Defaults to `tokens` divided by the item's tokens.",
        ),
    ],
    nullable: true,
};

/// The limits of a run.
pub static BUDGET: Record = Record {
    name: "budget",
    doc: "How many tokens a run may select.",
    fields: &[
        required(COUNT)
            .named("max_tokens", "The hard limit: the model's context window.")
            .or("maxTokens"),
        optional(COUNT)
            .named(
                "target_tokens",
                "The soft limit, at most `max_tokens`. Defaults to `max_tokens`.",
            )
            .or("targetTokens"),
        default(COUNT, Literal::Integer(0))
            .named(
                "output_reserve",
                "Tokens reserved for the model's answer, at most `max_tokens`.",
            )
            .or("outputReserve"),
        default(Shape::ByKind(&COUNT), Literal::EmptyObject)
            .named("reserved_slots", "Tokens reserved per kind.")
            .or("reservedSlots"),
        default(PERCENT, Literal::Number(0.0))
            .named(
                "estimation_safety_margin_percent",
                "The percentage subtracted from the limits if token counts are estimates.",
            )
            .or("estimationSafetyMarginPercent"),
    ],
    nullable: true,
};
