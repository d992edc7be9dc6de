//! The errors of invalid documents.

use Format::{Json, Toml, Yaml};
use cupel::config::{Document, Format};

/// An invalid document, its error, and whether the schema refuses it too.
pub(super) struct Fault {
    pub(super) format: Format,
    pub(super) text: &'static str,
    pub(super) error: &'static str,
    pub(super) in_schema: bool,
}

const fn fault(format: Format, text: &'static str, error: &'static str) -> Fault {
    Fault {
        format,
        text,
        error,
        in_schema: true,
    }
}

/// A fault that a schema cannot express: syntax, or a rule across fields.
const fn beyond(format: Format, text: &'static str, error: &'static str) -> Fault {
    Fault {
        in_schema: false,
        ..fault(format, text, error)
    }
}

pub(super) const POLICIES: &[Fault] = &[
    fault(
        Json,
        r#"{"extends": "code_review"}"#,
        r#"line 1, column 13: extends: unknown preset "code_review"; did you mean "code-review"?"#,
    ),
    // Names that were removed.
    fault(
        Json,
        r#"{"extends": "session"}"#,
        r#"line 1, column 13: extends: the preset "session" was removed; use "agent", which keeps the prefix of a growing chat without a state"#,
    ),
    fault(
        Toml,
        "extends = \"agent\"\n[chat]\nstep = 500\n",
        r#"line 3, column 1: chat.step: the key "step" was removed; use replay, which cuts rarely, as the preset "agent" does"#,
    ),
    // How the results of a tool are treated.
    fault(
        Toml,
        "extends = \"agent\"\n[chat.tool_results]\ntodo_write = \"keeps\"\n",
        r#"line 3, column 14: chat.tool_results.todo_write: unknown value "keeps"; did you mean "keep"?"#,
    ),
    fault(
        Json,
        r#"{"extends": "agent", "chat": {"tool_results": {"wait": "off"}}}"#,
        r#"line 1, column 56: chat.tool_results.wait: unknown value "off"; expected one of never, by_path, shorten_first, keep"#,
    ),
    fault(
        Json,
        r#"{"extends": "agent", "chat": {"tool_results": ["wait"]}}"#,
        "line 1, column 47: chat.tool_results: expected an object, got an array",
    ),
    fault(
        Json,
        r#"{"scorer": {"type": "recency"}, "slicer": {"type": "ladder", "steps": [], "drop_to": 0.9}}"#,
        r#"line 1, column 75: slicer.drop_to: the key "drop_to" was removed; use replay, which cuts rarely, as the preset "agent" does"#,
    ),
    fault(
        Yaml,
        "name: mine\nextends: [rag]\n",
        "line 2, column 10: extends: expected a string, got an array",
    ),
    fault(
        Toml,
        "extends = \"rag\"\nversion = 0\n",
        "line 2, column 11: version: expected an integer of at least 1, got 0",
    ),
    // Not the format.
    beyond(
        Json,
        "",
        "line 1, column 1: the text is empty; expected a document",
    ),
    beyond(
        Json,
        "  \n",
        "line 1, column 1: the text is empty; expected a document",
    ),
    beyond(
        Yaml,
        "# nothing\n",
        "line 1, column 1: the text is empty; expected a document",
    ),
    beyond(
        Json,
        r#"{"scorer": {"type": "recency""#,
        "line 1, column 30: scorer: expected `,` or `}`, but the text ends",
    ),
    beyond(
        Json,
        r#"{"scorer": {"type": "rec"#,
        r#"line 1, column 21: scorer.type: unterminated string; close it with `"`"#,
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
        "line 1, column 49: scorer.tag_weights.a: invalid number; write it as -12, 0.5 or 1e6",
    ),
    beyond(
        Json,
        r#"{"scorer": {"type": "tag", "tag_weights": {"a": 1e999}}}"#,
        "line 1, column 49: scorer.tag_weights.a: number is too large",
    ),
    beyond(
        Json,
        r#"{"scorer": {"type": "tag", "tag_weights": {"a": NaN}}}"#,
        "line 1, column 49: scorer.tag_weights.a: expected a value, found `N`",
    ),
    beyond(
        Json,
        "{\"name\": \"a\u{1}b\"}",
        r"line 1, column 12: name: control character in a string; write it as \u0001",
    ),
    beyond(
        Json,
        r#"{"name": "a\x"}"#,
        r"line 1, column 12: name: unknown escape; write a backslash as `\\`",
    ),
    beyond(
        Json,
        r#"{"name": "\ud800"}"#,
        "line 1, column 11: name: unpaired surrogate",
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
        "line 2, column 1: more than one document; use one file each",
    ),
    beyond(
        Yaml,
        "scorer: !custom {type: recency}\n",
        "line 1, column 17: scorer: unknown tag !custom; remove it",
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
        r#"line 2, column 2: scorer: duplicate key "scorer"; remove one"#,
    ),
    beyond(
        Toml,
        "deduplication = true\ndeduplication = false\n",
        r#"line 2, column 1: duplicate key "deduplication"; remove one"#,
    ),
    beyond(
        Toml,
        "[scorer]\ntype = \"tag\"\ntag_weights = { a = 1, \"a\" = 2 }\n",
        r#"line 3, column 24: duplicate key "a"; remove one"#,
    ),
    beyond(
        Toml,
        "\u{feff}[scorer]\ntype = \"recency\"\n[scorer]\n",
        r#"line 3, column 2: duplicate key "scorer"; remove one"#,
    ),
    beyond(
        Yaml,
        "scorer:\n  type: kind\n  weights:\n    Memory: 1\n    Memory: 2\n",
        r#"line 5, column 5: scorer.weights.Memory: duplicate key "Memory"; remove one"#,
    ),
    beyond(
        Json,
        r#"{"scorer": {"type": "kind", "weights": {"Memory": 1, "MEMORY": 2}}}"#,
        r#"line 1, column 54: scorer.weights.MEMORY: duplicate kind "MEMORY" (case is ignored); remove one"#,
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
        r#"line 1, column 21: scorer.type: unknown scorer "bm25"; expected one of recency, priority, kind, tag, frequency, reflexive, composite, scaled, decay, metadata_trust, metadata_key, product, fusion, embedding, relevance, neighbor, conversation"#,
    ),
    fault(
        Toml,
        "[scorer]\ntype = \"recency\"\nweight = 2\n",
        r#"line 3, column 1: scorer.weight: unknown key "weight"; expected only type"#,
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
        r#"line 1, column 54: overflow_strategy: unknown value "Truncate"; did you mean "truncate"?"#,
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
        r#"line 1, column 12: scorer: missing field "type"; expected one of recency, priority, kind, tag, frequency, reflexive, composite, scaled, decay, metadata_trust, metadata_key, product, fusion, embedding, relevance, neighbor, conversation"#,
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
        r#"line 4, column 12: slicer.entries[0]: missing field "require_count"; add it: the least number, at most `cap_count`"#,
    ),
    // Types.
    fault(
        Json,
        "[]",
        "line 1, column 1: expected an object (policy), got an array",
    ),
    fault(
        Json,
        r#"{"scorer": "recency"}"#,
        r#"line 1, column 12: scorer: expected an object with a `type`, such as {"type": "recency"}, got the string "recency""#,
    ),
    fault(
        Json,
        r#"{"scorer": {"type": 3}}"#,
        "line 1, column 21: scorer.type: expected a string, got the number 3",
    ),
    fault(
        Json,
        r#"{"scorer": {"type": "recency"}, "deduplication": "yes"}"#,
        r#"line 1, column 50: deduplication: expected a boolean, got the string "yes""#,
    ),
    fault(
        Yaml,
        "scorer: {type: recency}\ndeduplication: no\n",
        r#"line 2, column 16: deduplication: expected a boolean, got the string "no""#,
    ),
    fault(
        Json,
        r#"{"scorer": {"type": "composite", "entries": {"type": "recency"}}}"#,
        "line 1, column 45: scorer.entries: expected an array, got an object",
    ),
    fault(
        Json,
        r#"{"scorer": {"type": "metadata_key", "key": "k", "value": 1, "boost": 2}}"#,
        "line 1, column 58: scorer.value: expected a string, got the number 1",
    ),
    fault(
        Json,
        r#"{"scorer": {"type": "recency"}, "name": null}"#,
        "line 1, column 41: name: expected a string, got null",
    ),
    fault(
        Toml,
        "[scorer]\ntype = \"kind\"\nweights = [1.0]\n",
        "line 3, column 11: scorer.weights: expected an object, got an array",
    ),
    fault(
        Yaml,
        "scorer: {type: tag, tag_weights: {a: \"1\"}}\n",
        r#"line 1, column 38: scorer.tag_weights.a: expected a number, got the string "1""#,
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
        "line 1, column 79: slicer.bucket_size: expected an integer of at least 1, got 0",
    ),
    fault(
        Json,
        r#"{"scorer": {"type": "recency"}, "slicer": {"type": "knapsack", "bucket_size": 1.5}}"#,
        "line 1, column 79: slicer.bucket_size: expected an integer, got 1.5",
    ),
    beyond(
        Json,
        r#"{"scorer": {"type": "recency"}, "slicer": {"type": "knapsack", "bucket_size": 9223372036854775808}}"#,
        "line 1, column 79: slicer.bucket_size: expected an integer from 1 to 9223372036854775807, got 9223372036854775808",
    ),
    fault(
        Json,
        r#"{"scorer": {"type": "recency"}, "slicer": {"type": "knapsack", "cell_limit": 1000}}"#,
        "line 1, column 78: slicer.cell_limit: expected an integer of at least 50000001, got 1000",
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
        "line 1, column 115: slicer.entries[0].require_count: expected an integer of at least 0, got -1",
    ),
    fault(
        Json,
        r#"{"scorer": {"type": "decay", "curve": {"type": "window", "max_age": "yesterday"}}}"#,
        r#"line 1, column 69: scorer.curve.max_age: expected a duration such as "24h", "1h30m", "500ms", a number of seconds or ISO 8601 ("PT24H"), got "yesterday""#,
    ),
    fault(
        Json,
        r#"{"scorer": {"type": "decay", "curve": {"type": "window", "max_age": true}}}"#,
        r#"line 1, column 69: scorer.curve.max_age: expected a duration such as "24h", "1h30m", "500ms", a number of seconds or ISO 8601 ("PT24H"), got true"#,
    ),
    beyond(
        Json,
        r#"{"scorer": {"type": "decay", "curve": {"type": "window", "max_age": "30m1h"}}}"#,
        r#"line 1, column 69: scorer.curve.max_age: expected a duration such as "24h", "1h30m", "500ms", a number of seconds or ISO 8601 ("PT24H"), got "30m1h""#,
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
        r#"line 1, column 48: scorer.reference_time: expected an RFC 3339 time with a zone, such as "2026-01-31T12:00:00Z", got "2026-01-01""#,
    ),
    fault(
        Json,
        r#"{"scorer": {"type": "recency"}, "version": 0}"#,
        "line 1, column 44: version: expected an integer of at least 1, got 0",
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
        "line 1, column 91: slicer.inner: count_quota does not accept a knapsack inside; use greedy, or count_constrained_knapsack instead of count_quota",
    ),
    beyond(
        Json,
        r#"{"scorer": {"type": "recency"}, "slicer": {"type": "knapsack", "cell_limit": 60000000, "memory_limit": 1000}}"#,
        "line 1, column 104: slicer.memory_limit: cell_limit and memory_limit exclude each other; remove one",
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
line 1, column 7: name: expected a string, got the number 5
line 2, column 1: colour: unknown key \"colour\"; expected one of $schema, extends, name, version, description, scorer, slicer, placer, deduplication, overflow_strategy, chat
line 3, column 16: placer.type: unknown placer \"random\"; expected one of chronological, u-shaped
line 4, column 39: slicer.bucket_size: expected an integer of at least 1, got 0
line 4, column 54: slicer.cell_limit: expected an integer, got the string \"many\"
line 4, column 60: slicer.size: unknown key \"size\"; expected one of type, bucket_size, cell_limit, memory_limit
line 5, column 16: deduplication: expected a boolean, got the string \"no\"
line 9, column 41: scorer.entries[0].weight: expected a finite number above 0, got 0
line 11, column 60: scorer.entries[2].scorer.curve.windows[0]: missing field \"max_age\"; add it: the age at which the window ends
line 11, column 68: scorer.entries[2].scorer.curve.windows[0].score: expected a number, got the string \"high\"
line 11, column 78: scorer.entries[2].wieght: unknown key \"wieght\"; did you mean \"weight\"?
line 12, column 20: overflow_strategy: unknown value \"explode\"; expected one of throw, truncate, proceed",
    ),
    // A field that is missing and a part that its constructor refuses.
    fault(
        Json,
        r#"{"slicer": {"type": "quota", "quotas": [{"kind": "A", "require": 60}, {"kind": "B", "require": 60}]}, "version": 0}"#,
        "\
line 1, column 1: missing field \"scorer\"; add it: how relevant an item is
line 1, column 40: slicer.quotas: sum of require percentages (120) must not exceed 100.0
line 1, column 114: version: expected an integer of at least 1, got 0",
    ),
    // A document that extends a preset needs no scorer.
    fault(
        Toml,
        "extends = \"rga\"\nslicer = { type = \"greedi\" }\n",
        "\
line 1, column 11: extends: unknown preset \"rga\"; did you mean \"rag\"?
line 2, column 19: slicer.type: unknown slicer \"greedi\"; did you mean \"greedy\"?",
    ),
    // A misspelled key is not a missing one too.
    fault(
        Toml,
        "[scorr]\ntype = \"recency\"\n[placer]\n",
        "\
line 1, column 2: scorr: unknown key \"scorr\"; did you mean \"scorer\"?
line 3, column 1: placer: missing field \"type\"; expected one of chronological, u-shaped",
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
        "line 1, column 1: expected an object (request), got the number 3",
    ),
    fault(
        Json,
        r#"[{"content": "a"}]"#,
        r#"line 1, column 2: [0]: missing field "tokens"; add it: the token count; items with a negative one are excluded"#,
    ),
    fault(
        Json,
        "{\"items\": [\n  {\"content\": \"a\", \"tokens\": 1},\n  {\"content\": \"b\", \"tokens\": \"2\"}\n]}",
        r#"line 3, column 30: items[1].tokens: expected an integer, got the string "2""#,
    ),
    fault(
        Json,
        r#"{"items": [{"content": "a", "tokens": 1.5}]}"#,
        "line 1, column 39: items[0].tokens: expected an integer, got 1.5",
    ),
    beyond(
        Json,
        r#"{"items": [{"content": "a", "tokens": 10000000000000000000}]}"#,
        "line 1, column 39: items[0].tokens: expected an integer from -9223372036854775808 to 9223372036854775807, got 10000000000000000000",
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
        "line 1, column 56: items[0].tags[1]: expected a string, got the number 2",
    ),
    fault(
        Json,
        r#"{"items": [{"content": "a", "tokens": 1, "timestamp": "soon"}]}"#,
        r#"line 1, column 55: items[0].timestamp: expected an RFC 3339 time with a zone, such as "2026-01-31T12:00:00Z", got "soon""#,
    ),
    fault(
        Json,
        r#"{"items": [{"content": "a", "tokens": 1, "originalTokens": 1, "original_tokens": 2}]}"#,
        r#"line 1, column 63: items[0].original_tokens: duplicate key "original_tokens", in both its spellings; remove one"#,
    ),
    fault(
        Json,
        r#"{"items": [{"content": "a", "tokens": 1, "future_relevance_hint": "high"}]}"#,
        r#"line 1, column 67: items[0].future_relevance_hint: expected a number, or one of "NaN", "inf", "-inf", got "high""#,
    ),
    fault(
        Yaml,
        "items: []\nbudget: {max_tokens: -5}\n",
        "line 2, column 22: budget.max_tokens: expected an integer of at least 0, got -5",
    ),
    fault(
        Yaml,
        "items: []\nbudget: {target_tokens: 5}\n",
        r#"line 2, column 9: budget: missing field "max_tokens"; add it: the hard limit: the model's context window"#,
    ),
    fault(
        Json,
        r#"{"items": [], "budget": 100}"#,
        "line 1, column 25: budget: expected an object (budget), got the number 100",
    ),
    beyond(
        Toml,
        "items = []\n[budget]\nmax_tokens = 10\ntarget_tokens = 20\n",
        "line 2, column 1: budget: target_tokens (20) must be <= max_tokens (10)",
    ),
    fault(
        Toml,
        "items = []\n[budget]\nmax_tokens = 10\n[budget.reserved_slots]\nMemory = -1\n",
        "line 5, column 10: budget.reserved_slots.Memory: expected an integer of at least 0, got -1",
    ),
    fault(
        Json,
        r#"{"items": [], "policy": "chatt"}"#,
        r#"line 1, column 25: policy: unknown preset "chatt"; did you mean "chat"?"#,
    ),
    fault(
        Json,
        r#"{"items": [], "policy": 3}"#,
        "line 1, column 25: policy: expected a policy or the name of a preset, got the number 3",
    ),
    fault(
        Json,
        "{\"items\": [],\n \"policy\": {\"scorer\": {\"type\": \"recencyy\"}}}",
        r#"line 2, column 32: policy.scorer.type: unknown scorer "recencyy"; did you mean "recency"?"#,
    ),
    beyond(
        Json,
        "{\"items\": [],\n \"policy\": {\"scorer\": {\"type\": \"recency\"}, \"slicer\": {\"type\": \"count_quota\", \"entries\": [], \"inner\": {\"type\": \"knapsack\"}}}}",
        "line 2, column 102: policy.slicer.inner: count_quota does not accept a knapsack inside; use greedy, or count_constrained_knapsack instead of count_quota",
    ),
];

fn policy_error(format: Format, text: &str) -> String {
    match Document::parse(text, format).and_then(|document| document.policy()) {
        Ok(_) => "accepted".to_owned(),
        Err(error) => error.to_string(),
    }
}

fn request_error(format: Format, text: &str) -> String {
    match Document::parse(text, format).and_then(|document| document.request()) {
        Ok(_) => "accepted".to_owned(),
        Err(error) => error.to_string(),
    }
}

#[track_caller]
fn check(faults: &[Fault], error: fn(Format, &str) -> String) {
    let wrong: Vec<String> = faults
        .iter()
        .filter_map(|fault| {
            let actual = error(fault.format, fault.text);
            let shown = format!("{:?} {}\n  {actual}\n", fault.format, fault.text);
            (actual != fault.error).then_some(shown)
        })
        .collect();
    assert!(wrong.is_empty(), "\n{}", wrong.concat());
}

#[test]
fn an_invalid_policy_gives_the_error_its_path_and_its_position() {
    check(POLICIES, policy_error);
}

/// All errors of a policy, one per line.
fn all_policy_errors(format: Format, text: &str) -> String {
    let faults = match Document::parse(text, format) {
        Ok(document) => document.policy_faults(),
        Err(error) => vec![error],
    };
    let error: Vec<String> = faults.iter().map(ToString::to_string).collect();
    error.join("\n")
}

#[test]
fn a_policy_with_one_error_gives_one_error() {
    check(POLICIES, all_policy_errors);
    assert_eq!(all_policy_errors(Toml, "scorer.type = \"recency\""), "");
}

#[test]
fn all_errors_of_a_policy_are_given_in_the_order_of_the_text() {
    check(SEVERAL, all_policy_errors);
}

#[test]
fn an_invalid_request_gives_the_error_its_path_and_its_position() {
    check(REQUESTS, request_error);
}

#[test]
fn deep_nesting_is_refused_without_recursion() {
    let deep = |open: &str, close: &str| open.repeat(100_000) + "1" + &close.repeat(100_000);
    let nested = |depth: usize| {
        let (open, close) = (r#"{"type": "scaled", "inner": "#, "}");
        let scorer = open.repeat(depth) + r#"{"type": "recency"}"# + &close.repeat(depth);
        format!("{{\"scorer\": {scorer}}}")
    };
    for (format, text, position) in [
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
        assert!(error.contains(position), "{format:?} {position} ...{shown}");
    }
    assert_eq!(policy_error(Json, &nested(126)), "accepted");
}

#[test]
fn expansion_of_aliases_is_limited() {
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
fn positions_count_characters_and_spans_count_bytes() {
    let text = "\u{feff}{\"name\": \"äöü\", \"nam\": 1}";
    let document = Document::parse(text, Json).unwrap();
    let error = document.policy().unwrap_err();
    let position = error.position().unwrap();
    assert_eq!((position.line, position.column), (1, 17));
    assert_eq!(&text[position.span.clone()], "\"nam\"");
}

#[test]
fn an_error_has_the_code_of_the_part_that_it_is_in() {
    let code = |text: &str| {
        let request = Document::parse(text, Json).and_then(|document| document.request());
        request.unwrap_err().code()
    };
    let policy = |part: &str| format!(r#"{{"items": [], "policy": {{{part}}}}}"#);
    assert_eq!(
        code(&policy(r#""scorer": {"type": "recncy"}"#)),
        Some("ScorerConfig")
    );
    let slicer = policy(r#""scorer": {"type": "recency"}, "slicer": {"type": "greddy"}"#);
    assert_eq!(code(&slicer), Some("SlicerConfig"));
    assert_eq!(
        code(r#"{"items": [], "budget": {"max": 9}}"#),
        Some("InvalidBudget")
    );
    // The code of the constructor.
    let budget = r#"{"items": [], "budget": {"max_tokens": 9, "target_tokens": 10}}"#;
    assert_eq!(code(budget), Some("InvalidBudget"));
    assert_eq!(
        code(r#"[{"content": "", "tokens": 1}]"#),
        Some("EmptyContent")
    );
    assert_eq!(code(r#"[{"content": "a", "tokens": "x"}]"#), None);
}
