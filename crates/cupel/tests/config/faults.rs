//! What is wrong with a document, where, and what to do about it.

use Format::{Json, Toml, Yaml};
use cupel::config::{Document, Format};

/// A document, what is said about it, and whether the schema refuses it too: it knows nothing of
/// syntax and of what only constructors know.
pub(super) struct Fault {
    pub(super) format: Format,
    pub(super) text: &'static str,
    pub(super) said: &'static str,
    pub(super) in_schema: bool,
}

const fn fault(format: Format, text: &'static str, said: &'static str) -> Fault {
    Fault {
        format,
        text,
        said,
        in_schema: true,
    }
}

/// A fault that no schema can see.
const fn beyond(format: Format, text: &'static str, said: &'static str) -> Fault {
    Fault {
        in_schema: false,
        ..fault(format, text, said)
    }
}

pub(super) const POLICIES: &[Fault] = &[
    // Not the format.
    beyond(
        Json,
        "",
        "line 1, column 1: the text is empty; a document is expected",
    ),
    beyond(
        Json,
        "  \n",
        "line 1, column 1: the text is empty; a document is expected",
    ),
    beyond(
        Yaml,
        "# nothing\n",
        "line 1, column 1: the text is empty; a document is expected",
    ),
    beyond(
        Json,
        r#"{"scorer": {"type": "recency""#,
        "line 1, column 30: scorer: expected `,` or `}`, but the text ends",
    ),
    beyond(
        Json,
        r#"{"scorer": {"type": "rec"#,
        r#"line 1, column 21: scorer.type: the text ends within a string; close it with `"`"#,
    ),
    beyond(
        Json,
        "{\"scorer\": {\"type\": \"recency\"},\n}",
        "line 2, column 1: expected a key in double quotes, found `}`; remove the `,` before it",
    ),
    beyond(
        Json,
        "{'scorer': {}}",
        "line 1, column 2: expected a key in double quotes, found `'`",
    ),
    beyond(
        Json,
        r#"{"scorer": {"type": "recency"}} x"#,
        "line 1, column 33: expected the end of the document, found `x`",
    ),
    beyond(
        Json,
        r#"{"scorer": {"type": "tag", "tag_weights": {"a": 01}}}"#,
        "line 1, column 49: scorer.tag_weights.a: a number that JSON does not know; write it as -12, 0.5 or 1e6",
    ),
    beyond(
        Json,
        r#"{"scorer": {"type": "tag", "tag_weights": {"a": 1e999}}}"#,
        "line 1, column 49: scorer.tag_weights.a: a number that is too large",
    ),
    beyond(
        Json,
        r#"{"scorer": {"type": "tag", "tag_weights": {"a": NaN}}}"#,
        "line 1, column 49: scorer.tag_weights.a: expected a value, found `N`",
    ),
    beyond(
        Json,
        "{\"name\": \"a\u{1}b\"}",
        r"line 1, column 12: name: a control character within a string; write it as \u0001",
    ),
    beyond(
        Json,
        r#"{"name": "a\x"}"#,
        r"line 1, column 12: name: an unknown escape; write a backslash as `\\`",
    ),
    beyond(
        Json,
        r#"{"name": "\ud800"}"#,
        "line 1, column 11: name: half of a surrogate pair",
    ),
    beyond(
        Toml,
        "scorer = { type = \"recency\"",
        "line 1, column 28: unclosed inline table, expected `}`",
    ),
    beyond(
        Toml,
        "[scorer]\ntype = recency\n",
        "line 2, column 8: string values must be quoted, expected literal string",
    ),
    beyond(
        Yaml,
        "scorer: {type: recency\n",
        "line 1, column 9: scorer: unclosed bracket '{'",
    ),
    beyond(
        Yaml,
        "scorer:\n  type: recency\n type: greedy\n",
        "line 3, column 2: while parsing a block mapping, did not find expected key",
    ),
    beyond(
        Yaml,
        "scorer: {type: recency}\n---\nscorer: {type: recency}\n",
        "line 2, column 1: a second document; keep one in a file",
    ),
    beyond(
        Yaml,
        "scorer: !custom {type: recency}\n",
        "line 1, column 17: scorer: the tag !custom is not known; remove it",
    ),
    beyond(
        Yaml,
        "scorer: *unknown\n",
        "line 1, column 9: scorer: while parsing node, found unknown anchor",
    ),
    // Keys that stand twice.
    beyond(
        Json,
        "{\"scorer\": {\"type\": \"recency\"},\n \"scorer\": {\"type\": \"priority\"}}",
        r#"line 2, column 2: scorer: key "scorer" stands twice; remove one of them"#,
    ),
    beyond(
        Toml,
        "deduplication = true\ndeduplication = false\n",
        r#"line 2, column 1: key "deduplication" stands twice; remove one of them"#,
    ),
    beyond(
        Toml,
        "[scorer]\ntype = \"tag\"\ntag_weights = { a = 1, \"a\" = 2 }\n",
        r#"line 3, column 24: key "a" stands twice; remove one of them"#,
    ),
    beyond(
        Toml,
        "\u{feff}[scorer]\ntype = \"recency\"\n[scorer]\n",
        r#"line 3, column 2: key "scorer" stands twice; remove one of them"#,
    ),
    beyond(
        Yaml,
        "scorer:\n  type: kind\n  weights:\n    Memory: 1\n    Memory: 2\n",
        r#"line 5, column 5: scorer.weights.Memory: key "Memory" stands twice; remove one of them"#,
    ),
    beyond(
        Json,
        r#"{"scorer": {"type": "kind", "weights": {"Memory": 1, "MEMORY": 2}}}"#,
        r#"line 1, column 54: scorer.weights.MEMORY: kind "MEMORY" stands twice, case is ignored; remove one of them"#,
    ),
    // Keys and names that nobody knows.
    fault(
        Json,
        "{\n  \"scorer\": {\"type\": \"recency\"},\n  \"overflow\": \"throw\"\n}",
        r#"line 3, column 3: overflow: unknown key "overflow"; did you mean "overflow_strategy"?"#,
    ),
    fault(
        Json,
        r#"{"scorers": {"type": "recency"}}"#,
        r#"line 1, column 2: scorers: unknown key "scorers"; did you mean "scorer"?"#,
    ),
    fault(
        Json,
        r#"{"scorer": {"type": "recencyy"}}"#,
        r#"line 1, column 21: scorer.type: unknown scorer "recencyy"; did you mean "recency"?"#,
    ),
    fault(
        Json,
        r#"{"scorer": {"type": "bm25"}}"#,
        r#"line 1, column 21: scorer.type: unknown scorer "bm25"; known are recency, priority, kind, tag, frequency, reflexive, composite, scaled, decay, metadata_trust, metadata_key, product"#,
    ),
    fault(
        Toml,
        "[scorer]\ntype = \"recency\"\nweight = 2\n",
        r#"line 3, column 1: scorer.weight: unknown key "weight"; known are type"#,
    ),
    fault(
        Yaml,
        "scorer:\n  type: composite\n  entries:\n    - scorer: {type: recency}\n      wieght: 2\n",
        r#"line 5, column 7: scorer.entries[0].wieght: unknown key "wieght"; did you mean "weight"?"#,
    ),
    fault(
        Yaml,
        "scorer: {type: recency}\nplacer: {type: u_shaped}\n",
        r#"line 2, column 16: placer.type: unknown placer "u_shaped"; did you mean "u-shaped"?"#,
    ),
    fault(
        Json,
        r#"{"scorer": {"type": "recency"}, "overflow_strategy": "Truncate"}"#,
        r#"line 1, column 54: overflow_strategy: unknown choice "Truncate"; did you mean "truncate"?"#,
    ),
    fault(
        Toml,
        "scorer.type = \"recency\"\nslicer = { type = \"knapsack\", bucketSize = 1 }\n",
        r#"line 2, column 31: slicer.bucketSize: unknown key "bucketSize"; did you mean "bucket_size"?"#,
    ),
    // Fields that are missing.
    fault(
        Json,
        "{}",
        r#"line 1, column 1: missing field "scorer"; add it: how relevant an item is"#,
    ),
    fault(
        Toml,
        "",
        r#"line 1, column 1: missing field "scorer"; add it: how relevant an item is"#,
    ),
    fault(
        Json,
        r#"{"scorer": {"weights": {}}}"#,
        r#"line 1, column 12: scorer: missing field "type"; give one of recency, priority, kind, tag, frequency, reflexive, composite, scaled, decay, metadata_trust, metadata_key, product"#,
    ),
    fault(
        Json,
        r#"{"scorer": {"type": "composite", "entries": [{"weight": 1}]}}"#,
        r#"line 1, column 46: scorer.entries[0]: missing field "scorer"; add it: the scorer"#,
    ),
    fault(
        Yaml,
        "scorer:\n  type: decay\n  curve: {type: exponential}\n",
        r#"line 3, column 10: scorer.curve: missing field "half_life"; add it: the age at which the score is 0.5"#,
    ),
    fault(
        Toml,
        "scorer.type = \"recency\"\n[slicer]\ntype = \"count_quota\"\nentries = [{ kind = \"Memory\", cap_count = 2 }]\n",
        r#"line 4, column 12: slicer.entries[0]: missing field "require_count"; add it: the least number; at most `cap_count`"#,
    ),
    // Types.
    fault(
        Json,
        "[]",
        "line 1, column 1: expected a map (policy), got a list",
    ),
    fault(
        Json,
        r#"{"scorer": "recency"}"#,
        r#"line 1, column 12: scorer: expected a map with a `type`, as {"type": "recency"}, got the text "recency""#,
    ),
    fault(
        Json,
        r#"{"scorer": {"type": 3}}"#,
        "line 1, column 21: scorer.type: expected a text, got the number 3",
    ),
    fault(
        Json,
        r#"{"scorer": {"type": "recency"}, "deduplication": "yes"}"#,
        r#"line 1, column 50: deduplication: expected true or false, got the text "yes""#,
    ),
    fault(
        Yaml,
        "scorer: {type: recency}\ndeduplication: no\n",
        r#"line 2, column 16: deduplication: expected true or false, got the text "no""#,
    ),
    fault(
        Json,
        r#"{"scorer": {"type": "composite", "entries": {"type": "recency"}}}"#,
        "line 1, column 45: scorer.entries: expected a list, got a map",
    ),
    fault(
        Json,
        r#"{"scorer": {"type": "metadata_key", "key": "k", "value": 1, "boost": 2}}"#,
        "line 1, column 58: scorer.value: expected a text, got the number 1",
    ),
    fault(
        Json,
        r#"{"scorer": {"type": "recency"}, "name": null}"#,
        "line 1, column 41: name: expected a text, got null",
    ),
    fault(
        Toml,
        "[scorer]\ntype = \"kind\"\nweights = [1.0]\n",
        "line 3, column 11: scorer.weights: expected a map, got a list",
    ),
    fault(
        Yaml,
        "scorer: {type: tag, tag_weights: {a: \"1\"}}\n",
        r#"line 1, column 38: scorer.tag_weights.a: expected a number, got the text "1""#,
    ),
    // Ranges.
    fault(
        Json,
        r#"{"scorer": {"type": "composite", "entries": []}}"#,
        "line 1, column 45: scorer.entries: expected at least one entry, got none",
    ),
    fault(
        Json,
        r#"{"scorer": {"type": "composite", "entries": [{"scorer": {"type": "recency"}, "weight": 0}]}}"#,
        "line 1, column 88: scorer.entries[0].weight: expected a finite number above 0, got 0",
    ),
    fault(
        Json,
        r#"{"scorer": {"type": "tag", "tag_weights": {"a": -0.5}}}"#,
        "line 1, column 49: scorer.tag_weights.a: expected a finite number of at least 0, got -0.5",
    ),
    beyond(
        Toml,
        "[scorer]\ntype = \"tag\"\ntag_weights = { a = nan }\n",
        "line 3, column 21: scorer.tag_weights.a: expected a finite number of at least 0, got NaN",
    ),
    beyond(
        Yaml,
        "scorer:\n  type: metadata_key\n  key: k\n  value: v\n  boost: .inf\n",
        "line 5, column 10: scorer.boost: expected a finite number above 0, got inf",
    ),
    fault(
        Json,
        r#"{"scorer": {"type": "metadata_trust", "default_score": 1.5}}"#,
        "line 1, column 56: scorer.default_score: expected a number from 0 to 1, got 1.5",
    ),
    fault(
        Json,
        r#"{"scorer": {"type": "recency"}, "slicer": {"type": "knapsack", "bucket_size": 0}}"#,
        "line 1, column 79: slicer.bucket_size: expected a whole number of at least 1, got 0",
    ),
    fault(
        Json,
        r#"{"scorer": {"type": "recency"}, "slicer": {"type": "knapsack", "bucket_size": 1.5}}"#,
        "line 1, column 79: slicer.bucket_size: expected a whole number, got 1.5",
    ),
    beyond(
        Json,
        r#"{"scorer": {"type": "recency"}, "slicer": {"type": "knapsack", "bucket_size": 9223372036854775808}}"#,
        "line 1, column 79: slicer.bucket_size: expected a whole number from 1 to 9223372036854775807, got 9223372036854775808",
    ),
    fault(
        Json,
        r#"{"scorer": {"type": "recency"}, "slicer": {"type": "knapsack", "cell_limit": 1000}}"#,
        "line 1, column 78: slicer.cell_limit: expected a whole number of at least 50000001, got 1000",
    ),
    fault(
        Json,
        r#"{"scorer": {"type": "recency"}, "slicer": {"type": "quota", "quotas": [{"kind": "Memory", "cap": 101}]}}"#,
        "line 1, column 98: slicer.quotas[0].cap: expected a number from 0 to 100, got 101",
    ),
    fault(
        Json,
        r#"{"scorer": {"type": "recency"}, "slicer": {"type": "quota", "quotas": [{"kind": " "}]}}"#,
        "line 1, column 81: slicer.quotas[0].kind: a kind must not be blank",
    ),
    fault(
        Json,
        r#"{"scorer": {"type": "recency"}, "slicer": {"type": "count_quota", "entries": [{"kind": "Memory", "require_count": -1, "cap_count": 1}]}}"#,
        "line 1, column 115: slicer.entries[0].require_count: expected a whole number of at least 0, got -1",
    ),
    fault(
        Json,
        r#"{"scorer": {"type": "decay", "curve": {"type": "window", "max_age": "yesterday"}}}"#,
        r#"line 1, column 69: scorer.curve.max_age: expected a duration as "24h", "1h30m", "500ms", a number of seconds or ISO 8601 ("PT24H"), got "yesterday""#,
    ),
    fault(
        Json,
        r#"{"scorer": {"type": "decay", "curve": {"type": "window", "max_age": true}}}"#,
        r#"line 1, column 69: scorer.curve.max_age: expected a duration as "24h", "1h30m", "500ms", a number of seconds or ISO 8601 ("PT24H"), got true"#,
    ),
    beyond(
        Json,
        r#"{"scorer": {"type": "decay", "curve": {"type": "window", "max_age": "30m1h"}}}"#,
        r#"line 1, column 69: scorer.curve.max_age: expected a duration as "24h", "1h30m", "500ms", a number of seconds or ISO 8601 ("PT24H"), got "30m1h""#,
    ),
    beyond(
        Json,
        r#"{"scorer": {"type": "decay", "curve": {"type": "window", "max_age": "0s"}}}"#,
        "line 1, column 69: scorer.curve.max_age: max_age must be longer than 0",
    ),
    beyond(
        Json,
        r#"{"scorer": {"type": "decay", "curve": {"type": "exponential", "half_life": "0s"}}}"#,
        "line 1, column 76: scorer.curve.half_life: half_life must be longer than 0",
    ),
    beyond(
        Json,
        r#"{"scorer": {"type": "decay", "curve": {"type": "step", "windows": [{"max_age": 1, "score": 1}, {"max_age": 0, "score": 0}]}}}"#,
        "line 1, column 108: scorer.curve.windows[1].max_age: max_age must be longer than 0",
    ),
    fault(
        Json,
        r#"{"scorer": {"type": "decay", "reference_time": "2026-01-01", "curve": {"type": "window", "max_age": "1h"}}}"#,
        r#"line 1, column 48: scorer.reference_time: expected a time with a zone by RFC 3339, as "2026-01-31T12:00:00Z", got "2026-01-01""#,
    ),
    fault(
        Json,
        r#"{"scorer": {"type": "recency"}, "version": 0}"#,
        "line 1, column 44: version: expected a whole number of at least 1, got 0",
    ),
    // Parts that do not go together.
    beyond(
        Json,
        r#"{"scorer": {"type": "composite", "entries": [{"scorer": {"type": "recency"}, "weight": 1e308}, {"scorer": {"type": "priority"}, "weight": 1e308}]}}"#,
        "line 1, column 45: scorer.entries: the sum of the weights must be finite",
    ),
    beyond(
        Yaml,
        "scorer:\n  type: tag\n  ignore_case: true\n  tag_weights: {a: 1, A: 2}\n",
        "line 4, column 16: scorer.tag_weights: tag 'a' is listed twice; give every tag one weight",
    ),
    beyond(
        Toml,
        "scorer.type = \"recency\"\n[slicer]\ntype = \"quota\"\nquotas = [\n  { kind = \"Memory\", require = 60 },\n  { kind = \"Document\", require = 60 },\n]\n",
        "line 4, column 10: slicer.quotas: sum of require percentages (120) must not exceed 100.0",
    ),
    beyond(
        Json,
        r#"{"scorer": {"type": "recency"}, "slicer": {"type": "quota", "quotas": [{"kind": "Memory"}, {"kind": "memory"}]}}"#,
        "line 1, column 71: slicer.quotas: kind 'memory' is listed twice; give every kind one entry",
    ),
    beyond(
        Json,
        r#"{"scorer": {"type": "recency"}, "slicer": {"type": "quota", "quotas": [{"kind": "Memory", "require": 50, "cap": 40}]}}"#,
        "line 1, column 72: slicer.quotas[0]: require (50) must be <= cap (40)",
    ),
    beyond(
        Json,
        r#"{"scorer": {"type": "recency"}, "slicer": {"type": "count_quota", "entries": [], "inner": {"type": "knapsack"}}}"#,
        "line 1, column 91: slicer.inner: count_quota takes no knapsack inside; choose greedy, or count_constrained_knapsack in place of count_quota",
    ),
    beyond(
        Json,
        r#"{"scorer": {"type": "recency"}, "slicer": {"type": "knapsack", "cell_limit": 60000000, "memory_limit": 1000}}"#,
        "line 1, column 104: slicer.memory_limit: there is a cell_limit too; leave one of them out",
    ),
];

/// Policies with more than one fault.
const SEVERAL: &[Fault] = &[
    fault(
        Yaml,
        "\
name: 5
colour: red
placer: {type: random}
slicer: {type: knapsack, bucket_size: 0, cell_limit: many, size: 1}
deduplication: no
scorer:
  type: composite
  entries:
    - {scorer: {type: recency}, weight: 0}
    - {scorer: {type: priority}}
    - {scorer: {type: decay, curve: {type: step, windows: [{score: high}]}}, wieght: 2}
overflow_strategy: explode
",
        "\
line 1, column 7: name: expected a text, got the number 5
line 2, column 1: colour: unknown key \"colour\"; known are $schema, name, version, description, scorer, slicer, placer, deduplication, overflow_strategy
line 3, column 16: placer.type: unknown placer \"random\"; known are chronological, u-shaped
line 4, column 39: slicer.bucket_size: expected a whole number of at least 1, got 0
line 4, column 54: slicer.cell_limit: expected a whole number, got the text \"many\"
line 4, column 60: slicer.size: unknown key \"size\"; known are type, bucket_size, cell_limit, memory_limit
line 5, column 16: deduplication: expected true or false, got the text \"no\"
line 9, column 41: scorer.entries[0].weight: expected a finite number above 0, got 0
line 11, column 60: scorer.entries[2].scorer.curve.windows[0]: missing field \"max_age\"; add it: the age at which the window ends
line 11, column 68: scorer.entries[2].scorer.curve.windows[0].score: expected a number, got the text \"high\"
line 11, column 78: scorer.entries[2].wieght: unknown key \"wieght\"; did you mean \"weight\"?
line 12, column 20: overflow_strategy: unknown choice \"explode\"; known are throw, truncate, proceed",
    ),
    // A field that is missing and a part that its constructor refuses.
    fault(
        Json,
        r#"{"slicer": {"type": "quota", "quotas": [{"kind": "A", "require": 60}, {"kind": "B", "require": 60}]}, "version": 0}"#,
        "\
line 1, column 1: missing field \"scorer\"; add it: how relevant an item is
line 1, column 40: slicer.quotas: sum of require percentages (120) must not exceed 100.0
line 1, column 114: version: expected a whole number of at least 1, got 0",
    ),
    // A misspelt key is not a missing one too.
    fault(
        Toml,
        "[scorr]\ntype = \"recency\"\n[placer]\n",
        "\
line 1, column 2: scorr: unknown key \"scorr\"; did you mean \"scorer\"?
line 3, column 1: placer: missing field \"type\"; give one of chronological, u-shaped",
    ),
];

pub(super) const REQUESTS: &[Fault] = &[
    fault(
        Json,
        "{}",
        r#"line 1, column 1: missing field "items"; add it: the candidates"#,
    ),
    fault(
        Json,
        "3",
        "line 1, column 1: expected a map (request), got the number 3",
    ),
    fault(
        Json,
        r#"[{"content": "a"}]"#,
        r#"line 1, column 2: [0]: missing field "tokens"; add it: its tokens; negative ones are excluded by every run"#,
    ),
    fault(
        Json,
        "{\"items\": [\n  {\"content\": \"a\", \"tokens\": 1},\n  {\"content\": \"b\", \"tokens\": \"2\"}\n]}",
        r#"line 3, column 30: items[1].tokens: expected a whole number, got the text "2""#,
    ),
    fault(
        Json,
        r#"{"items": [{"content": "a", "tokens": 1.5}]}"#,
        "line 1, column 39: items[0].tokens: expected a whole number, got 1.5",
    ),
    beyond(
        Json,
        r#"{"items": [{"content": "a", "tokens": 10000000000000000000}]}"#,
        "line 1, column 39: items[0].tokens: expected a whole number from -9223372036854775808 to 9223372036854775807, got 10000000000000000000",
    ),
    beyond(
        Json,
        r#"{"items": [{"content": "", "tokens": 1}]}"#,
        "line 1, column 24: items[0].content: content must be non-empty",
    ),
    fault(
        Json,
        r#"{"items": [{"content": "a", "tokens": 1, "kind": ""}]}"#,
        "line 1, column 50: items[0].kind: a kind must not be blank",
    ),
    fault(
        Json,
        r#"{"items": [{"content": "a", "tokens": 1, "tag": ["x"]}]}"#,
        r#"line 1, column 42: items[0].tag: unknown key "tag"; did you mean "tags"?"#,
    ),
    fault(
        Json,
        r#"{"items": [{"content": "a", "tokens": 1, "tags": ["x", 2]}]}"#,
        "line 1, column 56: items[0].tags[1]: expected a text, got the number 2",
    ),
    fault(
        Json,
        r#"{"items": [{"content": "a", "tokens": 1, "timestamp": "soon"}]}"#,
        r#"line 1, column 55: items[0].timestamp: expected a time with a zone by RFC 3339, as "2026-01-31T12:00:00Z", got "soon""#,
    ),
    fault(
        Json,
        r#"{"items": [{"content": "a", "tokens": 1, "originalTokens": 1, "original_tokens": 2}]}"#,
        r#"line 1, column 63: items[0].original_tokens: "original_tokens" stands in both its spellings; remove one of them"#,
    ),
    fault(
        Json,
        r#"{"items": [{"content": "a", "tokens": 1, "future_relevance_hint": "high"}]}"#,
        r#"line 1, column 67: items[0].future_relevance_hint: expected a number, or one of "NaN", "inf", "-inf", got "high""#,
    ),
    fault(
        Yaml,
        "items: []\nbudget: {max_tokens: -5}\n",
        "line 2, column 22: budget.max_tokens: expected a whole number of at least 0, got -5",
    ),
    fault(
        Yaml,
        "items: []\nbudget: {target_tokens: 5}\n",
        r#"line 2, column 9: budget: missing field "max_tokens"; add it: the hard ceiling: the model's window"#,
    ),
    fault(
        Json,
        r#"{"items": [], "budget": 100}"#,
        "line 1, column 25: budget: expected a map (budget), got the number 100",
    ),
    beyond(
        Toml,
        "items = []\n[budget]\nmax_tokens = 10\ntarget_tokens = 20\n",
        "line 2, column 1: budget: target_tokens (20) must be <= max_tokens (10)",
    ),
    fault(
        Toml,
        "items = []\n[budget]\nmax_tokens = 10\n[budget.reserved_slots]\nMemory = -1\n",
        "line 5, column 10: budget.reserved_slots.Memory: expected a whole number of at least 0, got -1",
    ),
    fault(
        Json,
        r#"{"items": [], "policy": "chatt"}"#,
        r#"line 1, column 25: policy: unknown preset "chatt"; did you mean "chat"?"#,
    ),
    fault(
        Json,
        r#"{"items": [], "policy": 3}"#,
        "line 1, column 25: policy: expected a policy, or the name of a preset, got the number 3",
    ),
    fault(
        Json,
        "{\"items\": [],\n \"policy\": {\"scorer\": {\"type\": \"recencyy\"}}}",
        r#"line 2, column 32: policy.scorer.type: unknown scorer "recencyy"; did you mean "recency"?"#,
    ),
    beyond(
        Json,
        "{\"items\": [],\n \"policy\": {\"scorer\": {\"type\": \"recency\"}, \"slicer\": {\"type\": \"count_quota\", \"entries\": [], \"inner\": {\"type\": \"knapsack\"}}}}",
        "line 2, column 102: policy.slicer.inner: count_quota takes no knapsack inside; choose greedy, or count_constrained_knapsack in place of count_quota",
    ),
];

fn said_of_policy(format: Format, text: &str) -> String {
    match Document::parse(text, format).and_then(|document| document.policy()) {
        Ok(_) => "accepted".to_owned(),
        Err(error) => error.to_string(),
    }
}

fn said_of_request(format: Format, text: &str) -> String {
    match Document::parse(text, format).and_then(|document| document.request()) {
        Ok(_) => "accepted".to_owned(),
        Err(error) => error.to_string(),
    }
}

#[track_caller]
fn check(faults: &[Fault], said: fn(Format, &str) -> String) {
    let wrong: Vec<String> = faults
        .iter()
        .filter_map(|fault| {
            let heard = said(fault.format, fault.text);
            let shown = format!("{:?} {}\n  {heard}\n", fault.format, fault.text);
            (heard != fault.said).then_some(shown)
        })
        .collect();
    assert!(wrong.is_empty(), "\n{}", wrong.concat());
}

#[test]
fn a_bad_policy_is_told_where_it_is_bad_and_how_to_mend_it() {
    check(POLICIES, said_of_policy);
}

/// Everything that is said of a policy, a line each.
fn all_said_of_policy(format: Format, text: &str) -> String {
    let faults = match Document::parse(text, format) {
        Ok(document) => document.policy_faults(),
        Err(error) => vec![error],
    };
    let said: Vec<String> = faults.iter().map(ToString::to_string).collect();
    said.join("\n")
}

#[test]
fn where_one_thing_is_wrong_one_fault_is_told() {
    check(POLICIES, all_said_of_policy);
    assert_eq!(all_said_of_policy(Toml, "scorer.type = \"recency\""), "");
}

#[test]
fn every_fault_of_a_policy_is_told_in_the_order_of_the_text() {
    check(SEVERAL, all_said_of_policy);
}

#[test]
fn a_bad_request_is_told_where_it_is_bad_and_how_to_mend_it() {
    check(REQUESTS, said_of_request);
}

#[test]
fn deep_nesting_is_refused_and_not_recursed_into() {
    let deep = |open: &str, close: &str| open.repeat(100_000) + "1" + &close.repeat(100_000);
    let nested = |depth: usize| {
        let (open, close) = (r#"{"type": "scaled", "inner": "#, "}");
        let scorer = open.repeat(depth) + r#"{"type": "recency"}"# + &close.repeat(depth);
        format!("{{\"scorer\": {scorer}}}")
    };
    for (format, text, said) in [
        (Json, deep("[", "]"), "line 1, column 129: "),
        (Json, deep("{\"a\":", "}"), "line 1, column 641: "),
        (Json, nested(127), "line 1, column 3568: "),
        (Yaml, deep("[", "]"), "line 1, column "),
        (Yaml, deep("- ", ""), "line 1, column "),
        (Toml, "a = ".to_owned() + &deep("[", "]"), "line 1, column "),
        (Toml, "a.".repeat(100_000) + "a = 1", "line 1, column "),
        (
            Toml,
            format!("[{}a]", "a.".repeat(100_000)),
            "line 1, column ",
        ),
    ] {
        let error = Document::parse(&text, format).unwrap_err().to_string();
        let shown = &error[error.len().saturating_sub(60)..];
        assert!(error.contains(said), "{format:?} {said} ...{shown}");
    }
    assert_eq!(said_of_policy(Json, &nested(126)), "accepted");
}

#[test]
fn aliases_cannot_blow_up() {
    let levels = (1..10).map(|level| {
        let before = format!("*a{}, ", level - 1);
        format!("a{level}: &a{level} [{}]\n", before.repeat(10))
    });
    let first = String::from("a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n");
    let text: String = std::iter::once(first).chain(levels).collect();
    let error = Document::parse(&text, Yaml).unwrap_err();
    assert!(error.message().contains("100000"), "{error}");
}

#[test]
fn a_position_is_counted_in_characters_and_its_span_in_bytes() {
    let text = "\u{feff}{\"name\": \"äöü\", \"nam\": 1}";
    let document = Document::parse(text, Json).unwrap();
    let error = document.policy().unwrap_err();
    let position = error.position().unwrap();
    assert_eq!((position.line, position.column), (1, 17));
    assert_eq!(&text[position.span.clone()], "\"nam\"");
}
