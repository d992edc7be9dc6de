//! Every bad input ends with its exit status and a message that names the place and the fix.
//!
//! The messages as a whole stand in `snapshots/`; read them there.

use std::fmt::Write as _;

use crate::sandbox::Sandbox;

/// A bad input and what is said about it.
struct Case {
    /// What is wrong with it.
    name: &'static str,
    files: Vec<(&'static str, Vec<u8>)>,
    args: Vec<&'static str>,
    input: Vec<u8>,
    exit: i32,
    /// The place and the fix.
    says: [&'static str; 2],
}

fn case(name: &'static str, args: &[&'static str], exit: i32, says: [&'static str; 2]) -> Case {
    Case {
        name,
        files: Vec::new(),
        args: args.to_vec(),
        input: Vec::new(),
        exit,
        says,
    }
}

impl Case {
    fn file(mut self, name: &'static str, bytes: impl Into<Vec<u8>>) -> Self {
        self.files.push((name, bytes.into()));
        self
    }

    fn input(mut self, bytes: impl Into<Vec<u8>>) -> Self {
        self.input = bytes.into();
        self
    }
}

/// Items that cannot be read.
fn items(name: &'static str, text: &str, says: [&'static str; 2]) -> Case {
    let args = ["select", "items.json", "--budget", "100"];
    case(name, &args, 2, says).file("items.json", text)
}

/// A policy that cannot be read, as JSON.
fn policy(name: &'static str, text: &str, says: [&'static str; 2]) -> Case {
    case(name, &["policy", "check", "policy.json"], 2, says).file("policy.json", text)
}

const ITEMS: &str = r#"[
  {"content": "Be brief.", "tokens": 40, "pinned": true},
  {"content": "hello", "tokens": 20},
  {"content": "world", "tokens": 30}
]"#;

/// A command line over good items.
fn usage(name: &'static str, args: &[&'static str], exit: i32, says: [&'static str; 2]) -> Case {
    case(name, args, exit, says).file("items.json", ITEMS)
}

#[rustfmt::skip] // one case a line
fn files_and_streams() -> Vec<Case> {
    vec![
        case("a file that is not there", &["select", "nowhere.json", "--budget", "100"], 2, ["nowhere.json", "check the path"]),
        case("a directory", &["select", ".", "--budget", "100"], 2, ["cannot read .", "name a file"]),
        case("an empty file", &["select", "items.json", "--budget", "100"], 2, ["items.json", "JSON"])
            .file("items.json", ""),
        case("a file of white space", &["select", "items.json", "--budget", "100"], 2, ["items.json", "JSON"])
            .file("items.json", " \n\t\n"),
        case("nothing on standard input", &["select", "-", "--budget", "100"], 2, ["standard input", "JSON"]),
        case("bytes that are not UTF-8", &["select", "items.json", "--budget", "100"], 2, ["items.json:2:19", "UTF-8"])
            .file("items.json", b"[\n  {\"content\": \"caf\xe9\", \"tokens\": 1}]".to_vec()),
        case("UTF-16", &["select", "items.json", "--budget", "100"], 2, ["items.json:1:1", "iconv"])
            .file("items.json", b"\xff\xfe[\0]\0".to_vec()),
        case("a report into a directory that is not there", &["select", "items.json", "--budget", "100", "--report", "no/where.json"], 2, ["no/where.json", "create the directory"])
            .file("items.json", ITEMS),
        case("a report onto a directory", &["select", "items.json", "--budget", "100", "--report", "."], 2, ["cannot write .", "name a file"])
            .file("items.json", ITEMS),
        case("answers that would replace the requests", &["batch", "items.json", "./items.json"], 2, ["items.json", "another name"])
            .file("items.json", "[]\n"),
        case("a batch that is not there", &["batch", "nowhere.jsonl", "out.jsonl"], 2, ["nowhere.jsonl", "check the path"]),
    ]
}

#[rustfmt::skip] // one case a line
fn syntax() -> Vec<Case> {
    let deep = format!("{}{}", "[".repeat(300), "]".repeat(300));
    let long = format!(
        "[{{\"content\": \"{}\", \"tokens\": x}}]",
        "long ".repeat(300)
    );
    vec![
        items("a list cut off", "[\n  {\"content\": \"a\", \"tokens\": 1},\n  {\"content\": \"b\"", ["items.json:3:18", "expected `,` or `}`"]),
        items("a string cut off", "[{\"content\": \"a", ["items.json:1:14", "close it"]),
        items("a comma too many", "[\n  {\"content\": \"a\", \"tokens\": 1},\n]", ["items.json:3:1", "remove the `,`"]),
        items("single quotes", "[{'content': 'a', 'tokens': 1}]", ["items.json:1:3", "double quotes"]),
        items("a comment", "[\n  // the first\n  {\"content\": \"a\", \"tokens\": 1}\n]", ["items.json:2:3", "expected a value"]),
        items("a number that is none", "[{\"content\": \"a\", \"tokens\": 1, \"future_relevance_hint\": NaN}]", ["items.json:1:57", "expected a value"]),
        items("a number with a plus", "[{\"content\": \"a\", \"tokens\": +1}]", ["items.json:1:29", "expected a value"]),
        items("a number with a leading zero", "[{\"content\": \"a\", \"tokens\": 012}]", ["items.json:1:29", "write it as"]),
        items("a key twice", "[{\"content\": \"a\", \"tokens\": 1,\n  \"content\": \"b\"}]", ["items.json:2:3", "remove one"]),
        items("an unknown escape", "[{\"content\": \"C:\\dir\", \"tokens\": 1}]", ["items.json:1:17", "write a backslash"]),
        items("a line break in a string", "[{\"content\": \"one\ntwo\", \"tokens\": 1}]", ["items.json:1:18", "\\u000a"]),
        items("lists in lists in lists", &deep, ["items.json:1:129", "flatten"]),
        items("two documents", "[]\n[]", ["items.json:2:1", "the end of the document"]),
        items("a text alone", "\"hello\"", ["items.json:1:1", "expected"]),
        items("a mistake in a long line", &long, ["items.json:1:1528", "expected a value"]),
        items("a mark in front and a comma too many", "\u{feff}[1,]", ["items.json:1:4", "remove the `,`"]),
    ]
}

#[rustfmt::skip] // one case a line
fn candidates() -> Vec<Case> {
    vec![
        items("no content", r#"[{"tokens": 1}]"#, ["items.json:1:2", "content"]),
        items("an empty content", r#"[{"content": "", "tokens": 1}]"#, ["items.json:1:14", "non-empty"]),
        items("a content that is a number", r#"[{"content": 7, "tokens": 1}]"#, ["items.json:1:14", "expected a string"]),
        items("tokens as a text", r#"[{"content": "a", "tokens": "12"}]"#, ["items.json:1:29", "expected an integer"]),
        items("tokens with a fraction", r#"[{"content": "a", "tokens": 1.5}]"#, ["items.json:1:29", "an integer"]),
        items("more tokens than a number holds", r#"[{"content": "a", "tokens": 10000000000000000000}]"#, ["items.json:1:29", "9223372036854775807"]),
        items("a misspelt key", r#"[{"content": "a", "tokns": 1}]"#, ["items.json:1:19", "did you mean `tokens`?"]),
        items("a key of another program", r#"[{"content": "a", "tokens": 1, "embedding": [1]}]"#, ["items.json:1:32", "embedding"]),
        items("a blank kind", r#"[{"content": "a", "tokens": 1, "kind": "  "}]"#, ["items.json:1:40", "kind"]),
        items("a time without a zone", r#"[{"content": "a", "tokens": 1, "timestamp": "2026-03-02T09:00:00"}]"#, ["items.json:1:45", "zone"]),
        items("a time that is none", r#"[{"content": "a", "tokens": 1, "timestamp": "yesterday"}]"#, ["items.json:1:45", "2026"]),
        items("tags as a text", r#"[{"content": "a", "tokens": 1, "tags": "urgent"}]"#, ["items.json:1:40", "expected an array"]),
        items("a tag that is a number", r#"[{"content": "a", "tokens": 1, "tags": ["x", 5]}]"#, ["[0].tags[1]", "expected a string"]),
        items("pinned as a text", r#"[{"content": "a", "tokens": 1, "pinned": "yes"}]"#, ["items.json:1:42", "a boolean"]),
        items("a priority with a fraction", r#"[{"content": "a", "tokens": 1, "priority": 0.5}]"#, ["items.json:1:44", "an integer"]),
        items("an item that is a text", r#"["a"]"#, ["items.json:1:2", "expected"]),
        case("a bad item among lines", &["select", "items.jsonl", "--budget", "100"], 2, ["items.jsonl:3:19", "did you mean `tokens`?"])
            .file("items.jsonl", "{\"content\": \"a\", \"tokens\": 1}\n\n{\"content\": \"b\",  \"tokns\": 2}\n"),
        case("a line cut off", &["select", "items.jsonl", "--budget", "100"], 2, ["items.jsonl:2:29", "but the text ends"])
            .file("items.jsonl", "{\"content\": \"a\", \"tokens\": 1}\n{\"content\": \"b\", \"tokens\": 2\n"),
        case("items on standard input", &["select", "-", "--budget", "100"], 2, ["standard input:1:29", "expected an integer"])
            .input(r#"[{"content": "a", "tokens": "12"}]"#),
    ]
}

#[rustfmt::skip] // one case a line
fn budgets() -> Vec<Case> {
    let request = |name, budget: &str, says| {
        let text = format!("{{\n  \"items\": [],\n  \"budget\": {budget}\n}}");
        case(name, &["select", "request.json"], 2, says).file("request.json", text)
    };
    vec![
        usage("no budget", &["select", "items.json"], 2, ["missing budget", "--budget 8k"]),
        usage("a budget that is no number", &["select", "items.json", "--budget", "lots"], 2, ["--budget: invalid budget `lots`", "write tokens as"]),
        usage("a budget with a comma", &["select", "items.json", "--budget", "8,000"], 2, ["--budget: invalid budget `8,000`", "remove the comma"]),
        usage("a negative budget", &["select", "items.json", "--budget", "-5"], 2, ["--budget: invalid budget `-5`", "write tokens as"]),
        usage("a budget no number holds", &["select", "items.json", "--budget", "99999999999999999999"], 2, ["--budget: invalid budget `99999999999999999999`", "write tokens as"]),
        usage("a target above the budget", &["select", "items.json", "--budget", "100", "--target", "200"], 2, ["--target 200 exceeds the budget of 100", "lower --target"]),
        usage("a reserve above the budget", &["select", "items.json", "--budget", "100", "--reserve", "200"], 2, ["--reserve 200 exceeds the budget of 100", "lower --reserve"]),
        usage("a margin above 100 percent", &["select", "items.json", "--budget", "100", "--margin", "150"], 2, ["'150' for '--margin", "from 0 to 100"]),
        usage("a margin that is no number", &["select", "items.json", "--budget", "100", "--margin", "NaN"], 2, ["'NaN' for '--margin", "from 0 to 100"]),
        usage("a slot without tokens", &["select", "items.json", "--budget", "100", "--slot", "Memory"], 2, ["Memory", "KIND=TOKENS"]),
        usage("a slot without a kind", &["select", "items.json", "--budget", "100", "--slot", " =5"], 2, ["' =5' for '--slot", "kind must be"]),
        usage("a negative slot", &["select", "items.json", "--budget", "100", "--slot", "Memory=-5"], 2, ["'Memory=-5' for '--slot", "write tokens as"]),
        usage("pinned items above the budget", &["select", "items.json", "--budget", "30"], 1, ["pinned tokens (40)", "raise the budget by 10"]),
        usage("a budget of nothing", &["select", "items.json", "--budget", "0"], 2, ["--budget: invalid budget `0`", "it leaves no tokens"]),
        usage("a budget with an odd unit", &["select", "items.json", "--budget", "8kb"], 2, ["--budget: invalid budget `8kb`", "write tokens as"]),
        usage("a share of no model", &["select", "items.json", "--budget", "70%"], 2, ["--budget 70%: a percentage needs a model", "add --model"]),
        usage("a share of a model unheard of", &["select", "items.json", "--budget", "70%", "--model", "gtp-4o"], 2, ["gtp-4o", "did you mean \"gpt-4o\"?"]),
        usage("a share above 100 percent", &["select", "items.json", "--budget", "170%", "--model", "gpt-4o"], 2, ["--budget: invalid budget `170%`", "at most 100%"]),
        usage("a target that is no number", &["select", "items.json", "--budget", "100", "--target", "much"], 2, ["--target: invalid budget `much`", "write tokens as"]),
        case("a pinned item of 10^18 tokens", &["select", "items.json", "--budget", "100"], 1, ["1000000000000000000", "raise the budget by"])
            .file("items.json", r#"[{"content": "a", "tokens": 1000000000000000000, "pinned": true}]"#),
        case("required items above the budget", &["select", "items.json", "--budget", "45", "--policy", "both.json"], 1, ["exceed target tokens (45)", "truncate"])
            .file("items.json", ITEMS)
            .file("both.json", r#"{"scorer": {"type": "recency"}, "slicer": {"type": "count_quota", "entries": [{"kind": "Message", "require_count": 2, "cap_count": 9}]}}"#),
        case("a required count that cannot be met", &["select", "items.json", "--budget", "100", "--policy", "both.json"], 2, ["kind 'Tool' has 0 items", "\"scarcity\" to \"degrade\""])
            .file("items.json", ITEMS)
            .file("both.json", r#"{"scorer": {"type": "recency"}, "slicer": {"type": "count_quota", "scarcity": "throw", "entries": [{"kind": "Tool", "require_count": 2, "cap_count": 9}]}}"#),
        case("vectors of different lengths", &["select", "items.json", "--budget", "100", "--policy", "both.json"], 2, ["has 2 numbers", "give all items one length"])
            .file("items.json", r#"[{"content": "a", "tokens": 1, "metadata": {"cupel:vector": "1,2"}}, {"content": "b", "tokens": 1, "metadata": {"cupel:vector": "1"}}]"#)
            .file("both.json", r#"{"scorer": {"type": "reflexive"}, "slicer": {"type": "diversity", "similarity": "vectors"}}"#),
        case("a vector of another length than the query's", &["select", "items.json", "--budget", "100", "--policy", "both.json"], 2, ["it needs 3", "as the query has"])
            .file("items.json", r#"[{"content": "a", "tokens": 1, "metadata": {"cupel:vector": "1,2"}}]"#)
            .file("both.json", r#"{"scorer": {"type": "embedding", "vector": [1, 2, 3]}}"#),
        case("mandatory items above the budget", &["select", "items.json", "--budget", "5", "--policy", "both.json"], 1, ["4 over the budget of 5", "by 4 tokens"])
            .file("items.json", r#"[{"content": "a", "tokens": 9, "metadata": {"cupel:mandatory": ""}}]"#)
            .file("both.json", r#"{"scorer": {"type": "reflexive"}, "slicer": {"type": "ladder", "steps": [{"type": "drop"}]}}"#),
        request("a negative budget in a request", r#"{"max_tokens": -1}"#, ["request.json:3:28", "budget.max_tokens"]),
        request("a target above the budget in a request", r#"{"max_tokens": 1, "target_tokens": 2}"#, ["request.json:3:", "<= max_tokens (1)"]),
        request("a budget without a limit in a request", r#"{"target_tokens": 5}"#, ["request.json:3:13", "max_tokens"]),
        request("a misspelt key of a budget", r#"{"max_token": 5}"#, ["request.json:3:14", "did you mean `max_tokens`?"]),
        request("a budget in words in a request", r#""8k""#, ["request.json:3:13", "budget"]),
        case("items misspelt in a request", &["select", "request.json"], 2, ["request.json:1:2", "did you mean `items`?"])
            .file("request.json", r#"{"itmes": [], "budget": {"max_tokens": 5}}"#),
        case("a misspelt key of a request", &["select", "request.json"], 2, ["request.json:1:15", "did you mean `budget`?"])
            .file("request.json", r#"{"items": [], "buget": {"max_tokens": 5}}"#),
        case("a request whose policy is no preset", &["select", "request.json"], 2, ["request.json:1:54", "did you mean `rag`?"])
            .file("request.json", r#"{"items": [], "budget": {"max_tokens": 5}, "policy": "ragg"}"#),
    ]
}

#[rustfmt::skip] // one case a line
fn policies() -> Vec<Case> {
    let scorer =
        |name, scorer: &str, says| policy(name, &format!("{{\"scorer\": {scorer}}}"), says);
    let slicer = |name, slicer: &str, says| {
        policy(
            name,
            &format!("{{\"scorer\": {{\"type\": \"recency\"}},\n \"slicer\": {slicer}}}"),
            says,
        )
    };
    vec![
        usage("a preset misspelt", &["select", "items.json", "--budget", "100", "--policy", "chta"], 2, ["chta", "did you mean `chat`?"]),
        usage("a preset unheard of", &["select", "items.json", "--budget", "100", "--policy", "zzz"], 2, ["zzz", "cupel policy list"]),
        usage("a policy file that is not there", &["select", "items.json", "--budget", "100", "--policy", "./mine.toml"], 2, ["./mine.toml", "check the path"]),
        policy("a policy without a scorer", "{}", ["policy.json:1:1", "scorer"]),
        policy("a policy with three faults", "{\n  \"scorer\": {\"type\": \"recencyy\"},\n  \"slicer\": {\"type\": \"knapsack\", \"bucket_size\": 0},\n  \"placr\": 1\n}", ["policy.json:3:49", "did you mean `placer`?"]),
        policy("a policy that is a list", "[]", ["policy.json:1:1", "expected"]),
        policy("a misspelt key of a policy", "{\n  \"scorer\": {\"type\": \"recency\"},\n  \"placr\": {\"type\": \"u-shaped\"}\n}", ["policy.json:3:3", "did you mean `placer`?"]),
        scorer("a scorer misspelt", r#"{"type": "recencyy"}"#, ["policy.json:1:21", "did you mean `recency`?"]),
        scorer("a scorer without a type", r#"{"weights": {}}"#, ["policy.json:1:12", "type"]),
        scorer("a scorer that is a text", r#""recency""#, ["policy.json:1:12", "type"]),
        scorer("a field of another scorer", r#"{"type": "recency", "half_life": "1h"}"#, ["policy.json:1:32", "half_life"]),
        scorer("a composite of nothing", r#"{"type": "composite", "entries": []}"#, ["scorer", "at least"]),
        scorer("a weight of nothing", r#"{"type": "composite", "entries": [{"scorer": {"type": "recency"}, "weight": 0}]}"#, ["scorer.entries[0].weight", "above 0"]),
        scorer("a weight that is no number", r#"{"type": "composite", "entries": [{"scorer": {"type": "recency"}, "weight": "NaN"}]}"#, ["scorer.entries[0].weight", "expected a number"]),
        scorer("a kind with two weights", r#"{"type": "kind", "weights": {"Memory": 1, "memory": 2}}"#, ["scorer.weights", "memory"]),
        scorer("a duration unheard of", r#"{"type": "decay", "curve": {"type": "exponential", "half_life": "24 parsecs"}}"#, ["scorer.curve.half_life", "24h"]),
        scorer("a half-life of nothing", r#"{"type": "decay", "curve": {"type": "exponential", "half_life": 0}}"#, ["scorer.curve", "half"]),
        scorer("a trust above 1", r#"{"type": "metadata_trust", "default_score": 1.5}"#, ["scorer.default_score", "1"]),
        slicer("a slicer misspelt", r#"{"type": "knapsak"}"#, ["policy.json:2:21", "did you mean `knapsack`?"]),
        slicer("buckets of nothing", r#"{"type": "knapsack", "bucket_size": 0}"#, ["slicer.bucket_size", "1"]),
        slicer("a kind with two shares", r#"{"type": "quota", "quotas": [{"kind": "Memory", "cap": 5}, {"kind": "memory", "cap": 6}]}"#, ["slicer", "emory"]),
        slicer("shares above 100 percent", r#"{"type": "quota", "quotas": [{"kind": "A", "require": 60}, {"kind": "B", "require": 60}]}"#, ["slicer", "100"]),
        slicer("a share required above its cap", r#"{"type": "quota", "quotas": [{"kind": "A", "require": 60, "cap": 50}]}"#, ["slicer.quotas[0]", "cap"]),
        slicer("a count that is negative", r#"{"type": "count_quota", "entries": [{"kind": "A", "require_count": -1, "cap_count": 2}]}"#, ["slicer.entries[0].require_count", "0"]),
        slicer("counts around a knapsack", r#"{"type": "count_quota", "entries": [], "inner": {"type": "knapsack"}}"#, ["slicer.inner", "count_constrained_knapsack"]),
        policy("a placer unheard of", "{\"scorer\": {\"type\": \"recency\"}, \"placer\": {\"type\": \"random\"}}", ["policy.json:1:52", "chronological, u-shaped"]),
        policy("an overflow strategy unheard of", "{\"scorer\": {\"type\": \"recency\"}, \"overflow_strategy\": \"explode\"}", ["policy.json:1:54", "throw, truncate, proceed"]),
        case("a policy in broken TOML", &["policy", "check", "policy.toml"], 2, ["policy.toml:2:", "policy.toml"])
            .file("policy.toml", "[scorer]\ntype = recency\n"),
        case("a wrong type in TOML", &["policy", "check", "policy.toml"], 2, ["policy.toml:1:17", "a boolean"])
            .file("policy.toml", "deduplication = \"no\"\n[scorer]\ntype = \"recency\"\n"),
        case("a policy in broken YAML", &["policy", "check", "policy.yaml"], 2, ["policy.yaml:2:", "tab"])
            .file("policy.yaml", "scorer:\n\ttype: recency\n"),
        case("a key twice in TOML", &["policy", "check", "policy.toml"], 2, ["policy.toml:3:1", "remove one"])
            .file("policy.toml", "[scorer]\ntype = \"recency\"\ntype = \"priority\"\n"),
        case("a key twice in YAML", &["policy", "check", "policy.yaml"], 2, ["policy.yaml:3:1", "remove one"])
            .file("policy.yaml", "scorer: {type: recency}\ndeduplication: true\nscorer: {type: priority}\n"),
        case("a YAML no", &["policy", "check", "policy.yaml"], 2, ["policy.yaml:2:16", "a boolean"])
            .file("policy.yaml", "scorer: {type: recency}\ndeduplication: no\n"),
        case("a YAML weight that is no number", &["policy", "check", "policy.yaml"], 2, ["policy.yaml:1:71", "finite"])
            .file("policy.yaml", "scorer: {type: composite, entries: [{scorer: {type: recency}, weight: .nan}]}\n"),
        case("a policy to show unheard of", &["policy", "show", "rga"], 2, ["rga", "did you mean `rag`?"]),
    ]
}

#[rustfmt::skip] // one case a line
fn command_lines() -> Vec<Case> {
    vec![
        case("no command", &[], 2, ["Usage: cupel", "Examples:"]),
        case("a command unheard of", &["selct"], 2, ["selct", "select"]),
        usage("a flag unheard of", &["select", "items.json", "--bugdet", "5"], 2, ["--bugdet", "--budget"]),
        case("no file", &["select", "--budget", "5"], 2, ["FILE", "--help"]),
        case("an unknown color setting", &["policy", "list", "--color", "pink"], 2, ["pink", "auto, always, never"]),
        case("a shell unheard of", &["completions", "csh"], 2, ["csh", "bash"]),
        usage("an item that is not there", &["explain", "items.json", "--budget", "100", "--item", "99"], 2, ["--item 99", "the last is 2"]),
        usage("an item that is no number", &["explain", "items.json", "--budget", "100", "--item", "last"], 2, ["last", "a position: a whole number from 0"]),
        usage("an item that no budget selects", &["min-budget", "items.json", "--item", "2", "--ceiling", "10"], 1, ["item 2", "up to 10"]),
        usage("a negative slack", &["marginal", "items.json", "--budget", "100", "--slack", "-5"], 2, ["'-5' for '--slack", "write tokens as"]),
        usage("a slack that is a share", &["marginal", "items.json", "--budget", "100", "--slack", "10%"], 2, ["'10%' for '--slack", "a percentage is not valid here"]),
        usage("a slack above the budget", &["marginal", "items.json", "--budget", "100", "--slack", "500"], 2, ["--slack 500", "at most the budget, 100"]),
        usage("a report to standard output", &["select", "items.json", "--budget", "100", "--report", "-"], 2, ["standard output", "name a file"]),
        usage("items in a batch", &["batch", "items.json"], 2, ["items.json", "cupel select"]),
        case("requests in a selection", &["select", "requests.jsonl"], 2, ["requests.jsonl", "cupel batch"])
            .file("requests.jsonl", "{\"items\": []}\n{\"items\": []}\n"),
        usage("a slack under shares", &["marginal", "items.json", "--budget", "100", "--slack", "5", "--policy", "shares.json"], 2, ["quota", "cupel sweep"])
            .file("shares.json", r#"{"scorer": {"type": "recency"}, "slicer": {"type": "quota", "quotas": [{"kind": "Message", "cap": 50}]}}"#),
        usage("a sweep that ends before it begins", &["sweep", "items.json", "--from", "50", "--to", "10"], 2, ["--from 50 is greater than --to 10", "give the smaller"]),
        usage("a sweep to a share", &["sweep", "items.json", "--to", "50%"], 2, ["'50%' for '--to", "a percentage is not valid here"]),
        usage("a sweep from below nothing", &["sweep", "items.json", "--from", "-5"], 2, ["'-5' for '--from", "write tokens as"]),
        usage("one policy to compare", &["compare", "items.json", "--budget", "100", "--policy", "chat"], 2, ["only one policy", "--policy chat --policy rag"]),
        case("vectors that are not there", &["conform", "nowhere"], 2, ["nowhere", "FORMAT.md"]),
        case("vectors that cannot be read", &["conform", "."], 2, ["./bad.toml", "FORMAT.md"])
            .file("bad.toml", "[test]\nname = 5\n"),
        case("no vector selected", &["conform", "--name", "no such case"], 2, ["no case is selected", "--list"]),
        case("a program that is not there", &["conform", "--exec", "./no-such-program"], 2, ["./no-such-program", "--exec"]),
    ]
}

#[rustfmt::skip] // one case a line
fn chats() -> Vec<Case> {
    let chat = |name, text: &str, says| case(name, &["fit", "chat.json", "--budget", "8k"], 2, says).file("chat.json", text);
    let good = |name, args: &[&'static str], exit, says| case(name, args, exit, says).file("chat.json", CHAT);
    vec![
        chat("a chat cut off", "{\"messages\": [\n  {\"role\": \"user\", \"content\": \"hel", ["chat.json:2:31", "unterminated string"]),
        chat("a chat without messages", "{\"model\": \"gpt-4o\"}", ["chat.json:1:1", "messages"]),
        chat("messages that are no list", "{\"messages\": {}}", ["chat.json:1:14", "`messages` must be an array"]),
        chat("a message that is a text", "{\"messages\": [\"hello\"]}", ["chat.json:1:15", "messages[0]"]),
        chat("a message without content", r#"[{"role": "user", "content": "a"}, {"role": "assistant"}]"#, ["chat.json:1:36 ([1])", "it has `role`; expected one of content, tool_calls"]),
        case("a text file as the chat", &["fit", "README.md", "--budget", "8k"], 2, ["plain text", "chats and items are JSON"])
            .file("README.md", "# Title\n\nSome words: and more.\n\n---\n\n- a list\n"),
        case("a policy as the chat", &["fit", "mine.json", "--budget", "8k"], 2, ["mine.json", "--policy mine.json"])
            .file("mine.json", r#"{"scorer": {"type": "recency"}, "slicer": {"type": "greedy"}, "placer": {"type": "chronological"}}"#),
        good("a chat as the policy", &["policy", "check", "chat.json"], 2, ["this is a chat, not a policy", "cupel fit"]),
        good("one policy to compare on a chat", &["compare", "chat.json", "--budget", "8k", "--policy", "agent"], 2, ["only one policy", "--policy agent --policy newest"]),
        good("a misspelled encoding", &["fit", "chat.json", "--budget", "8k", "--encoding", "o200"], 2, ["o200", "did you mean o200k_base?"]),
        chat("a message of no known shape", "[{\"speaker\": \"Ann\", \"says\": \"hello\"}]", ["chat.json:1:2", "[0]"]),
        chat("a content that is a number in a chat", "{\"messages\": [\n  {\"role\": \"user\", \"content\": 7}\n]}", ["chat.json:2:3", "`messages[0].content` must be a string"]),
        chat("messages of two shapes", "[{\"role\": \"user\", \"content\": [{\"type\": \"tool_result\", \"tool_use_id\": \"a\", \"content\": \"x\"}]},\n {\"role\": \"tool\", \"tool_call_id\": \"b\", \"content\": \"y\"}]", ["chat.json", "--shape"]),
        chat("an item among messages", "[\n  {\"role\": \"user\", \"content\": \"hello\"},\n  {\"content\": \"a\", \"tokens\": 5}\n]", ["chat.json:3:3 ([1])", "messages only or items only"]),
        case("a message among lines of items", &["select", "items.jsonl", "--budget", "8k"], 2, ["items.jsonl:2:1 ([1])", "messages only or items only"])
            .file("items.jsonl", "{\"content\": \"a\", \"tokens\": 5}\n{\"role\": \"user\", \"content\": \"hello\"}\n"),
        case("a message among the items of a request", &["explain", "request.json"], 2, ["request.json:3:3 (items[1])", "messages only or items only"])
            .file("request.json", "{\"budget\": {\"max_tokens\": 9}, \"items\": [\n  {\"content\": \"a\", \"tokens\": 5},\n  {\"role\": \"user\", \"content\": \"hello\"}\n]}"),
        case("a shape that a message does not have", &["fit", "chat.json", "--budget", "8k", "--shape", "openai"], 2, ["chat.json:1:2 ([0].role)", "`[0].role` is missing"])
            .file("chat.json", r#"[{"content": "a"}]"#),
        case("items that cannot fit", &["fit", "items.json", "--budget", "10"], 1, ["pinned tokens (50)", "raise the budget by 40"])
            .file("items.json", r#"[{"content": "a", "tokens": 50, "pinned": true}]"#),
        chat("two lists of messages", "{\"messages\": [], \"input\": []}", ["chat.json:1:1", "has both"]),
        chat("a picture instead of a chat", "\u{fffd}PNG", ["chat.json:1:1", "chats and items are JSON"]),
        good("a chat that cannot fit", &["fit", "chat.json", "--budget", "12"], 1, ["message 2 (user", "raise the budget"]),
        good("a reserve that leaves no room", &["fit", "chat.json", "--budget", "60", "--reserve", "55"], 1, ["message 2 (user", "raise the budget"]),
        good("a chat without a budget", &["fit", "chat.json"], 2, ["missing budget", "--budget 8k"]),
        good("a shape unheard of", &["fit", "chat.json", "--budget", "8k", "--shape", "antropic"], 2, ["openai, openai-responses, anthropic", "similar value exists: 'anthropic'"]),
        good("a model to count with unheard of", &["count", "chat.json", "--model", "gtp-4o"], 2, ["gtp-4o", "did you mean \"gpt-4o\"?"]),
        good("an encoding unheard of", &["fit", "chat.json", "--budget", "8k", "--encoding", "o300k"], 2, ["o300k", "o200k_base, cl100k_base"]),
        good("a factor of nothing", &["fit", "chat.json", "--budget", "8k", "--factor", "0"], 2, ["--factor", "above 0"]),
        good("a factor that is no number", &["fit", "chat.json", "--budget", "8k", "--factor", "twice"], 2, ["twice", "--factor"]),
        good("a chat where items are asked for", &["select", "chat.json", "--budget", "8k"], 2, ["chat.json", "cupel fit"]),
        good("a preset unheard of for a chat", &["fit", "chat.json", "--budget", "8k", "--policy", "tooluse"], 2, ["tooluse", "did you mean `tool-use`?"]),
        case("a chat in which no user speaks", &["fit", "chat.json", "--budget", "8k", "--shape", "anthropic", "--strict"], 2, ["chat.json", "user turn"])
            .file("chat.json", r#"{"messages": [{"role": "assistant", "content": "hi"}]}"#),
        chat("a misspelt key of an item in a chat", r#"[{"content": "a", "tokns": 1}]"#, ["chat.json:1:19 ([0].tokns)", "did you mean `tokens`?"]),
        case("a bad item counted", &["count", "items.jsonl"], 2, ["items.jsonl:2:28 (tokens)", "an integer"])
            .file("items.jsonl", "{\"content\": \"a\"}\n{\"content\": \"b\", \"tokens\": 1.5}\n"),
        case("a request to fit with a budget in words", &["fit", "request.json"], 2, ["request.json:1:26 (budget)", "an object"])
            .file("request.json", r#"{"items": [], "budget":  "8k"}"#),
        case("a request to fit whose policy is no preset", &["fit", "request.json"], 2, ["request.json:1:54", "did you mean `rag`?"])
            .file("request.json", r#"{"items": [], "budget": {"max_tokens": 5}, "policy": "ragg"}"#),
        case("a share of the window of an unknown model", &["fit", "chat.json", "--budget", "70%"], 2, ["--budget 70%", "house-model-7b"])
            .file("chat.json", r#"{"model": "house-model-7b", "messages": [{"role": "user", "content": "hi"}]}"#),
        case("a text counted as a chat", &["count", "notes.txt"], 2, ["notes.txt:1:1", "--text"])
            .file("notes.txt", "just words\n"),
    ]
}

const CHAT: &str = r#"{"messages": [
  {"role": "user", "content": "A long story that nobody needs any more."},
  {"role": "assistant", "content": "I see."},
  {"role": "user", "content": "What is 2 + 2?"}
]}"#;

fn all() -> Vec<(&'static str, Vec<Case>)> {
    vec![
        ("files and streams", files_and_streams()),
        ("syntax", syntax()),
        ("candidates", candidates()),
        ("budgets", budgets()),
        ("policies", policies()),
        ("chats", chats()),
        ("command lines", command_lines()),
    ]
}

#[test]
fn every_bad_input_ends_with_its_status_and_names_place_and_fix() {
    let mut wrong = String::new();
    for (group, cases) in all() {
        let mut seen = String::new();
        for case in cases {
            let files = case.files.iter().map(|(name, bytes)| (*name, &bytes[..]));
            let ran =
                Sandbox::with(&files.collect::<Vec<_>>()).run_with_input(&case.args, &case.input);
            let _ = writeln!(
                seen,
                "## {}\n$ cupel {}\n{}",
                case.name,
                case.args.join(" "),
                ran.err
            );
            let missing: Vec<_> = case
                .says
                .iter()
                .filter(|text| !ran.err.contains(**text))
                .collect();
            if ran.exit != case.exit || !missing.is_empty() {
                let _ = writeln!(
                    wrong,
                    "{}: exit {}, does not say {missing:?}:\n{}",
                    case.name, ran.exit, ran.err
                );
            }
            if !ran.out.is_empty() {
                let _ = writeln!(wrong, "{}: answers {}", case.name, ran.out);
            }
        }
        insta::assert_snapshot!(group.replace(' ', "_"), seen);
    }
    assert!(wrong.is_empty(), "{wrong}");
}

#[test]
fn there_are_at_least_sixty_bad_inputs_and_each_has_a_name() {
    let mut names: Vec<_> = all()
        .into_iter()
        .flat_map(|(_, cases)| cases)
        .map(|case| case.name)
        .collect();
    let count = names.len();
    assert!(count >= 60, "{count}");
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), count);
}

#[test]
fn an_error_in_json_has_the_same_parts() {
    let sandbox = Sandbox::with(&[("items.json", br#"[{"content": "a", "tokns": 1}]"#)]);
    let ran = sandbox.run(&["select", "items.json", "--budget", "5", "--json"]);
    assert_eq!((ran.exit, &*ran.out), (2, ""));
    let error: serde_json::Value = serde_json::from_str(&ran.err).expect("the error is JSON");
    assert_eq!(
        error,
        serde_json::json!({ "error": {
            "message": "unknown key \"tokns\"",
            "exit_code": 2,
            "file": "items.json",
            "line": 1,
            "column": 19,
            "path": "[0].tokns",
            "help": "did you mean `tokens`?",
        } })
    );
}

#[test]
fn a_usage_error_is_json_if_asked_for() {
    let ran = Sandbox::new().run(&["select", "--json", "--bugdet", "5"]);
    assert_eq!((ran.exit, &*ran.out), (2, ""));
    let error: serde_json::Value = serde_json::from_str(&ran.err).expect("the error is JSON");
    assert_eq!(
        error["error"]["message"],
        "unexpected argument '--bugdet' found"
    );
    let help = error["error"]["help"].as_str().expect("help");
    assert!(help.contains("'--budget'"), "{help}");
}

#[test]
fn policy_check_in_json_lists_the_errors() {
    let sandbox = Sandbox::with(&[("bad.json", br#"{"scorer": {"type": "bm25"}, "version": 0}"#)]);
    let ran = sandbox.run(&["policy", "check", "rag", "bad.json", "--json"]);
    assert_eq!((ran.exit, &*ran.err), (2, ""));
    let answer: serde_json::Value = serde_json::from_str(&ran.out).expect("JSON");
    assert_eq!(answer[0], serde_json::json!({ "file": "rag", "ok": true }));
    let errors = answer[1]["errors"].as_array().expect("a list");
    let paths: Vec<_> = errors.iter().map(|error| &error["path"]).collect();
    assert_eq!(paths, ["scorer.type", "version"]);
}
