//! The names of everything a document can hold, in one table.
//!
//! The reader's known keys, its suggestions, its ranges and defaults, the JSON Schema and the lists of the
//! command all come from here. A strategy is a row here, a variant of its configuration, an arm
//! where documents are read, and an arm where strategies are built.
//!
//! ```
//! use cupel::config::registry::{PLACERS, SCORERS};
//!
//! assert_eq!(PLACERS.names().collect::<Vec<_>>(), ["chronological", "u-shaped"]);
//! let decay = SCORERS.find("decay").unwrap();
//! assert_eq!(decay.fields[0].name, "curve");
//! ```

/// A choice between maps that say in `type` which one they are.
#[derive(Debug, Clone, Copy)]
pub struct Family {
    /// What one of them is called: `scorer`.
    pub name: &'static str,
    /// The types, in the order in which they are listed.
    pub types: &'static [Record],
}

impl Family {
    /// The names of its types.
    pub fn names(&self) -> impl Iterator<Item = &'static str> + use<> {
        self.types.iter().map(|record| record.name)
    }

    /// The type of this name.
    pub fn find(&self, name: &str) -> Option<&'static Record> {
        self.types.iter().find(|record| record.name == name)
    }
}

/// Which family.
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
}

impl Role {
    /// All families, in the order in which they are listed.
    pub const ALL: [Self; 4] = [Self::Scorer, Self::Slicer, Self::Placer, Self::Curve];

    /// The family.
    pub fn family(self) -> &'static Family {
        match self {
            Self::Scorer => &SCORERS,
            Self::Slicer => &SLICERS,
            Self::Placer => &PLACERS,
            Self::Curve => &CURVES,
        }
    }
}

/// A map with known keys.
#[derive(Debug, Clone, Copy)]
pub struct Record {
    /// The name: of a type in its family, or of the map itself.
    pub name: &'static str,
    /// What it is, in a line.
    pub doc: &'static str,
    /// Its fields, in the order in which they are written.
    pub fields: &'static [Field],
    /// Whether `null` stands for a field left out.
    pub nullable: bool,
}

/// A key and what belongs there.
#[derive(Debug, Clone, Copy)]
pub struct Field {
    /// The key.
    pub name: &'static str,
    /// Another spelling that is read.
    pub alias: Option<&'static str>,
    /// What belongs there.
    pub shape: Shape,
    /// What happens when it is left out.
    pub need: Need,
    /// What it means, in a line.
    pub doc: &'static str,
}

/// What happens when a field is left out.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Need {
    /// It must not be.
    Required,
    /// What its line says.
    Optional,
    /// It has this value.
    Default(Literal),
}

/// A default.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Literal {
    /// A truth value.
    Bool(bool),
    /// A whole number.
    Integer(i64),
    /// A number.
    Number(f64),
    /// A text.
    Text(&'static str),
    /// A strategy without fields, by its `type`.
    Type(&'static str),
    /// An empty map.
    EmptyMap,
    /// An empty list.
    EmptyList,
}

/// What belongs somewhere.
#[derive(Debug, Clone, Copy)]
pub enum Shape {
    /// A text.
    Text,
    /// A text that is not blank.
    Label,
    /// A truth value.
    Bool,
    /// A finite number in a range.
    Number(Range),
    /// Any number; those that are not finite as the texts `NaN`, `inf`, `-inf` where there is no notation.
    AnyNumber,
    /// A whole number from the first to the second.
    Integer(i64, i64),
    /// A length of time.
    Duration,
    /// A point in time by RFC 3339.
    Time,
    /// One of these texts.
    Choice(&'static [&'static str]),
    /// A list, at least so long.
    List(&'static Shape, usize),
    /// A map from kinds, which are compared without regard to case.
    ByKind(&'static Shape),
    /// A map from any texts.
    ByText(&'static Shape),
    /// A map from any texts to anything.
    Metadata,
    /// A map with known keys.
    Record(&'static Record),
    /// A map with a `type`.
    Family(Role),
    /// A policy, or the name of a preset.
    Policy,
}

/// The numbers a field takes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Range {
    /// The least.
    pub min: f64,
    /// Whether the least itself is left out.
    pub above: bool,
    /// The largest.
    pub max: f64,
}

const POSITIVE: Shape = Shape::Number(Range {
    min: 0.0,
    above: true,
    max: f64::MAX,
});
const NOT_NEGATIVE: Shape = Shape::Number(Range {
    min: 0.0,
    above: false,
    max: f64::MAX,
});
const FINITE: Shape = Shape::Number(Range {
    min: f64::MIN,
    above: false,
    max: f64::MAX,
});
const UNIT: Shape = Shape::Number(Range {
    min: 0.0,
    above: false,
    max: 1.0,
});
const PERCENT: Shape = Shape::Number(Range {
    min: 0.0,
    above: false,
    max: 100.0,
});
const COUNT: Shape = Shape::Integer(0, i64::MAX);
const INTEGER: Shape = Shape::Integer(i64::MIN, i64::MAX);
const SCORER: Shape = Shape::Family(Role::Scorer);
const SLICER: Shape = Shape::Family(Role::Slicer);
const A_SCORER_ENTRY: &Shape = &Shape::Record(&SCORER_ENTRY);
const A_STEP_WINDOW: &Shape = &Shape::Record(&STEP_WINDOW);
const A_QUOTA: &Shape = &Shape::Record(&QUOTA);
const A_COUNT_ENTRY: &Shape = &Shape::Record(&COUNT_ENTRY);
/// A list of items.
pub(super) const ITEMS: Shape = Shape::List(&EACH_ITEM, 0);

const EACH_ITEM: Shape = Shape::Record(&ITEM);

const fn record(name: &'static str, doc: &'static str, fields: &'static [Field]) -> Record {
    Record {
        name,
        doc,
        fields,
        nullable: false,
    }
}

const fn field(name: &'static str, shape: Shape, need: Need, doc: &'static str) -> Field {
    Field {
        name,
        alias: None,
        shape,
        need,
        doc,
    }
}

const fn required(name: &'static str, shape: Shape, doc: &'static str) -> Field {
    field(name, shape, Need::Required, doc)
}

const fn optional(name: &'static str, shape: Shape, doc: &'static str) -> Field {
    field(name, shape, Need::Optional, doc)
}

const fn default(name: &'static str, shape: Shape, value: Literal, doc: &'static str) -> Field {
    field(name, shape, Need::Default(value), doc)
}

const fn or(alias: &'static str, field: Field) -> Field {
    Field {
        alias: Some(alias),
        ..field
    }
}

/// A policy document.
pub static POLICY: Record = record(
    "policy",
    "How to choose: a scorer, a slicer, a placer, and what to do about copies and overflow.",
    &[
        optional(
            "$schema",
            Shape::Text,
            "Where an editor finds the schema of this document.",
        ),
        optional("name", Shape::Label, "What the policy is called."),
        optional(
            "version",
            Shape::Integer(1, i64::MAX),
            "Counts the changes of the policy under its name.",
        ),
        optional("description", Shape::Text, "When to use the policy."),
        required("scorer", SCORER, "How relevant an item is."),
        default(
            "slicer",
            SLICER,
            Literal::Type("greedy"),
            "Which items stay within the budget.",
        ),
        default(
            "placer",
            Shape::Family(Role::Placer),
            Literal::Type("chronological"),
            "In what order the window is read.",
        ),
        default(
            "deduplication",
            Shape::Bool,
            Literal::Bool(true),
            "Whether of items with the same content only the best stays.",
        ),
        default(
            "overflow_strategy",
            Shape::Choice(&["throw", "truncate", "proceed"]),
            Literal::Text("throw"),
            "What happens when pinned and selected items exceed the target: fail, keep what still fits, keep everything.",
        ),
    ],
);

/// The scorers.
pub static SCORERS: Family = Family {
    name: "scorer",
    types: &[
        record(
            "recency",
            "By rank among the items with a timestamp, the newest 1.",
            &[],
        ),
        record(
            "priority",
            "By rank among the items with a priority, the highest 1.",
            &[],
        ),
        record(
            "kind",
            "By kind: its weight, 0 for a kind without one.",
            &[optional(
                "weights",
                Shape::ByKind(&NOT_NEGATIVE),
                "The weight of every kind. Left out: SystemPrompt 1, Memory 0.8, ToolOutput 0.6, Document 0.4, Message 0.2.",
            )],
        ),
        record(
            "tag",
            "By tags: the weight of an item's tags over the weight of all tags.",
            &[
                required(
                    "tag_weights",
                    Shape::ByText(&NOT_NEGATIVE),
                    "The weight of every tag.",
                ),
                default(
                    "ignore_case",
                    Shape::Bool,
                    Literal::Bool(false),
                    "Whether ASCII letters match in either case.",
                ),
            ],
        ),
        record(
            "frequency",
            "By the share of the other items with a tag in common.",
            &[],
        ),
        record("reflexive", "By the item's own future relevance hint.", &[]),
        record(
            "composite",
            "The weighted average of several scorers.",
            &[required(
                "entries",
                Shape::List(A_SCORER_ENTRY, 1),
                "The scorers with their weights, at least one.",
            )],
        ),
        record(
            "scaled",
            "Another scorer, stretched to 0 to 1 over all items.",
            &[required("inner", SCORER, "The scorer to stretch.")],
        ),
        record(
            "decay",
            "By age, on a curve.",
            &[
                required(
                    "curve",
                    Shape::Family(Role::Curve),
                    "How a score falls with age.",
                ),
                default(
                    "null_timestamp_score",
                    UNIT,
                    Literal::Number(0.5),
                    "The score of items without a timestamp.",
                ),
                optional(
                    "reference_time",
                    Shape::Time,
                    "The time from which ages are counted. Left out: the time of the run.",
                ),
            ],
        ),
        record(
            "metadata_trust",
            "By the number in the metadata `cupel:trust`.",
            &[default(
                "default_score",
                UNIT,
                Literal::Number(0.5),
                "The score of items without a usable number.",
            )],
        ),
        record(
            "metadata_key",
            "The boost where a metadata key has a value, 1 everywhere else.",
            &[
                required("key", Shape::Text, "The metadata key."),
                required("value", Shape::Text, "The value that earns the boost."),
                required(
                    "boost",
                    POSITIVE,
                    "The score on a match; a factor for `product`.",
                ),
            ],
        ),
        record(
            "product",
            "The product of several scorers.",
            &[required(
                "scorers",
                Shape::List(&SCORER, 1),
                "The factors, at least one.",
            )],
        ),
    ],
};

/// A scorer of a composite.
pub static SCORER_ENTRY: Record = record(
    "scorer_entry",
    "A scorer of a composite.",
    &[
        required("scorer", SCORER, "The scorer."),
        default(
            "weight",
            POSITIVE,
            Literal::Number(1.0),
            "Its weight, relative to the others.",
        ),
    ],
);

/// The curves of the decay scorer.
pub static CURVES: Family = Family {
    name: "curve",
    types: &[
        record(
            "exponential",
            "Halves with every half-life.",
            &[required(
                "half_life",
                Shape::Duration,
                "The age at which the score is 0.5.",
            )],
        ),
        record(
            "window",
            "1 while younger than an age, then 0.",
            &[required(
                "max_age",
                Shape::Duration,
                "The age at which the score becomes 0.",
            )],
        ),
        record(
            "step",
            "The score of the first window that is longer than the age, else of the last.",
            &[required(
                "windows",
                Shape::List(A_STEP_WINDOW, 1),
                "The windows in order, at least one.",
            )],
        ),
    ],
};

/// A window of a step curve.
pub static STEP_WINDOW: Record = record(
    "step_window",
    "A window of a step curve.",
    &[
        required(
            "max_age",
            Shape::Duration,
            "The age at which the window ends.",
        ),
        required("score", FINITE, "The score within it."),
    ],
);

/// The slicers.
pub static SLICERS: Family = Family {
    name: "slicer",
    types: &[
        record("greedy", "By score per token, best first.", &[]),
        record("rank", "By score, best first.", &[]),
        record(
            "knapsack",
            "The set with the highest total score.",
            &[BUCKET_SIZE, CELL_LIMIT, MEMORY_LIMIT],
        ),
        record(
            "quota",
            "Within percentage shares per kind, through an inner slicer.",
            &[
                required(
                    "quotas",
                    Shape::List(A_QUOTA, 0),
                    "The shares, a kind at most once, required shares at most 100 together.",
                ),
                INNER_SLICER,
            ],
        ),
        record(
            "count_quota",
            "With item counts per kind, through an inner slicer other than knapsack.",
            &[COUNT_ENTRIES, SCARCITY, INNER_SLICER],
        ),
        record(
            "count_constrained_knapsack",
            "With item counts per kind, through a knapsack.",
            &[
                COUNT_ENTRIES,
                SCARCITY,
                BUCKET_SIZE,
                CELL_LIMIT,
                MEMORY_LIMIT,
            ],
        ),
        record(
            "group",
            "Groups of items, named by the metadata `cupel:group`, as a whole, through an inner slicer.",
            &[
                default(
                    "score",
                    Shape::Choice(&["max", "mean", "sum"]),
                    Literal::Text("max"),
                    "What a group scores: as its best member, their mean, or their sum.",
                ),
                INNER_SLICER,
            ],
        ),
    ],
};

const BUCKET_SIZE: Field = default(
    "bucket_size",
    Shape::Integer(1, i64::MAX),
    Literal::Integer(100),
    "Tokens a bucket; 1 is exact.",
);
const CELL_LIMIT: Field = optional(
    "cell_limit",
    Shape::Integer(50_000_001, i64::MAX),
    "Accepts tables up to so many cells. Left out: 50,000,000.",
);
const MEMORY_LIMIT: Field = optional(
    "memory_limit",
    COUNT,
    "Accepts tables of any size that can be solved within so many bytes; instead of `cell_limit`.",
);
const INNER_SLICER: Field = default(
    "inner",
    SLICER,
    Literal::Type("greedy"),
    "The slicer that chooses within the limits.",
);
const COUNT_ENTRIES: Field = required(
    "entries",
    Shape::List(A_COUNT_ENTRY, 0),
    "The counts, a kind at most once.",
);
const SCARCITY: Field = default(
    "scarcity",
    Shape::Choice(&["degrade", "throw"]),
    Literal::Text("degrade"),
    "What happens when a kind has fewer candidates than it requires: take what is there, or fail.",
);

/// The share of a kind.
pub static QUOTA: Record = record(
    "quota_entry",
    "The share of the target a kind must and may have, in percent.",
    &[
        required("kind", Shape::Label, "The kind."),
        default(
            "require",
            PERCENT,
            Literal::Number(0.0),
            "The least share; at most `cap`.",
        ),
        default("cap", PERCENT, Literal::Number(100.0), "The largest share."),
    ],
);

/// The counts of a kind.
pub static COUNT_ENTRY: Record = record(
    "count_entry",
    "How many items of a kind there must and may be.",
    &[
        required("kind", Shape::Label, "The kind."),
        required(
            "require_count",
            COUNT,
            "The least number; at most `cap_count`.",
        ),
        required("cap_count", COUNT, "The largest number."),
    ],
);

/// The placers.
pub static PLACERS: Family = Family {
    name: "placer",
    types: &[
        record(
            "chronological",
            "Oldest first, items without a timestamp last.",
            &[],
        ),
        record(
            "u-shaped",
            "Best scores at both ends, worst in the middle.",
            &[],
        ),
    ],
};

/// A request document.
pub static REQUEST: Record = record(
    "request",
    "What to choose from, within what, and how.",
    &[
        optional(
            "$schema",
            Shape::Text,
            "Where an editor finds the schema of this document.",
        ),
        required("items", ITEMS, "The candidates."),
        optional("budget", Shape::Record(&BUDGET), "The limits."),
        optional(
            "policy",
            Shape::Policy,
            "A policy, or the name of a preset.",
        ),
    ],
);

/// A candidate.
pub static ITEM: Record = Record {
    nullable: true,
    ..record(
        "item",
        "A candidate: a message, a document, a tool's output, a memory.",
        &[
            required("content", Shape::Text, "The text, not empty."),
            required(
                "tokens",
                INTEGER,
                "Its tokens; negative ones are excluded by every run.",
            ),
            default(
                "kind",
                Shape::Label,
                Literal::Text("Message"),
                "What it is.",
            ),
            default(
                "source",
                Shape::Label,
                Literal::Text("Chat"),
                "Where it came from.",
            ),
            optional("priority", INTEGER, "The higher, the more important."),
            default(
                "tags",
                Shape::List(&Shape::Text, 0),
                Literal::EmptyList,
                "Tags.",
            ),
            default(
                "metadata",
                Shape::Metadata,
                Literal::EmptyMap,
                "Anything, kept as texts.",
            ),
            optional("timestamp", Shape::Time, "When it came about."),
            or(
                "futureRelevanceHint",
                optional(
                    "future_relevance_hint",
                    Shape::AnyNumber,
                    "The caller's own score, 0 to 1.",
                ),
            ),
            default(
                "pinned",
                Shape::Bool,
                Literal::Bool(false),
                "Whether it is included whatever it scores.",
            ),
            or(
                "originalTokens",
                optional(
                    "original_tokens",
                    INTEGER,
                    "Its tokens before it was shortened.",
                ),
            ),
        ],
    )
};

/// The limits of a run.
pub static BUDGET: Record = Record {
    nullable: true,
    ..record(
        "budget",
        "How many tokens a run may select.",
        &[
            or(
                "maxTokens",
                required("max_tokens", COUNT, "The hard ceiling: the model's window."),
            ),
            or(
                "targetTokens",
                optional(
                    "target_tokens",
                    COUNT,
                    "The soft goal, at most the ceiling. Left out: the ceiling.",
                ),
            ),
            or(
                "outputReserve",
                default(
                    "output_reserve",
                    COUNT,
                    Literal::Integer(0),
                    "Kept free for the model's answer, at most the ceiling.",
                ),
            ),
            or(
                "reservedSlots",
                default(
                    "reserved_slots",
                    Shape::ByKind(&COUNT),
                    Literal::EmptyMap,
                    "Tokens kept free per kind.",
                ),
            ),
            or(
                "estimationSafetyMarginPercent",
                default(
                    "estimation_safety_margin_percent",
                    PERCENT,
                    Literal::Number(0.0),
                    "Taken off the limits, for token counts that are estimates.",
                ),
            ),
        ],
    )
};
