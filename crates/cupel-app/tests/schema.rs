//! The schema of the answers: real answers are valid, and have every key that it lists.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use cupel::config::PolicyConfig;
use cupel::{
    ChronologicalPlacer, ContextBudget, ContextItem, CountRequirementShortfall, CupelError,
    ExclusionReason, Pipeline, ReflexiveScorer, Refusal, ScoredItem, ScoredRef, Selection, Slicer,
};
use cupel_app::{
    CounterName, ErrorAnswer, NamedPolicy, Options, Plain, Prepared, PreparedSession, ReadOptions,
    Scope, Session, Source, answers_schema, count, count_text, models, search,
};
use cupel_chat::FitState;
use jsonschema::Validator;
use serde::Serialize;
use serde_json::{Value, json};

/// The keys that the schema lists, and what real answers had there.
struct Schema {
    root: Value,
    validators: RefCell<BTreeMap<String, Validator>>,
    /// What was met: a pointer to a property, and `present`, `absent` or `null`.
    met: RefCell<BTreeSet<(String, &'static str)>>,
}

impl Schema {
    fn new() -> Self {
        Self {
            root: serde_json::from_str(answers_schema()).expect("the schema is JSON"),
            validators: RefCell::default(),
            met: RefCell::default(),
        }
    }

    /// Returns whether a value is valid under the schema at a pointer.
    fn is_valid(&self, pointer: &str, value: &Value) -> bool {
        self.errors(pointer, value).is_empty()
    }

    fn errors(&self, pointer: &str, value: &Value) -> Vec<String> {
        let mut validators = self.validators.borrow_mut();
        let validator = validators.entry(pointer.to_owned()).or_insert_with(|| {
            let definitions = &self.root["$defs"];
            let schema = json!({ "$ref": format!("#{pointer}"), "$defs": definitions });
            let options = jsonschema::options().should_validate_formats(true);
            options.build(&schema).expect("the schema is valid")
        });
        let errors = validator.iter_errors(value);
        errors
            .map(|error| format!("{}: {error}", error.instance_path()))
            .collect()
    }

    /// Checks an answer and remembers its keys.
    #[track_caller]
    fn check(&self, answer: &str, value: &impl Serialize) {
        // The bytes of the caller's chat need not be a value that `serde_json` holds.
        let text = serde_json::to_string(value).expect("an answer is JSON");
        let value: Value = serde_json::from_str(&text).expect("an answer is JSON");
        let pointer = format!("/$defs/{answer}");
        let errors = self.errors(&pointer, &value);
        assert!(errors.is_empty(), "{answer}: {errors:#?}\n{value:#}");
        self.walk(&pointer, &value);
    }

    /// Remembers the keys of a value that is valid under the schema at a pointer.
    fn walk(&self, pointer: &str, value: &Value) {
        let schema = self.root.pointer(pointer).expect("a schema");
        if let Some(target) = schema["$ref"].as_str() {
            self.walk(target.trim_start_matches('#'), value);
        }
        for key in ["anyOf", "oneOf"] {
            for branch in 0..schema[key].as_array().map_or(0, Vec::len) {
                let branch = format!("{pointer}/{key}/{branch}");
                if self.is_valid(&branch, value) {
                    self.walk(&branch, value);
                }
            }
        }
        for property in schema["properties"].as_object().into_iter().flatten() {
            let (name, _) = property;
            let pointer = format!("{pointer}/properties/{name}");
            let met = match &value[name] {
                Value::Null if value.get(name).is_none() => "absent",
                Value::Null => "null",
                inner => {
                    self.walk(&pointer, inner);
                    "present"
                }
            };
            self.met.borrow_mut().insert((pointer, met));
        }
        if schema["items"].is_object() {
            for inner in value.as_array().into_iter().flatten() {
                self.walk(&format!("{pointer}/items"), inner);
            }
        }
        if schema["additionalProperties"].is_object() {
            for (_, inner) in value.as_object().into_iter().flatten() {
                self.walk(&format!("{pointer}/additionalProperties"), inner);
            }
        }
    }

    /// Returns what answers must have for the schema to be exact: every key, no key if it is optional, and null if it
    /// may be null.
    fn expected(&self) -> BTreeSet<(String, &'static str)> {
        let mut expected = BTreeSet::new();
        let mut pointers = vec![(String::new(), &self.root)];
        while let Some((pointer, schema)) = pointers.pop() {
            let required = schema["required"].as_array();
            let required: Vec<&str> = required
                .into_iter()
                .flatten()
                .filter_map(Value::as_str)
                .collect();
            for (name, property) in schema["properties"].as_object().into_iter().flatten() {
                let at = format!("{pointer}/properties/{name}");
                expected.insert((at.clone(), "present"));
                if !required.contains(&name.as_str()) {
                    expected.insert((at.clone(), "absent"));
                }
                let is_null = |it: &Value| *it == "null" || it["type"] == "null";
                let types = ["type", "anyOf"].map(|key| property[key].as_array());
                if types.into_iter().flatten().flatten().any(is_null) {
                    expected.insert((at.clone(), "null"));
                }
            }
            for (key, inner) in schema.as_object().into_iter().flatten() {
                pointers.push((format!("{pointer}/{key}"), inner));
            }
            for (index, inner) in schema.as_array().into_iter().flatten().enumerate() {
                pointers.push((format!("{pointer}/{index}"), inner));
            }
        }
        expected
    }
}

/// The chats, items and requests of the examples.
fn examples() -> Vec<(String, String)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples");
    let mut files: Vec<PathBuf> = Vec::new();
    for folder in [root.clone(), root.join("shapes")] {
        let entries = std::fs::read_dir(folder).expect("the examples are there");
        files.extend(entries.map(|entry| entry.expect("an entry").path()));
    }
    files.retain(|file| file.extension().is_some_and(|it| it == "json"));
    files.sort();
    let read = |file: PathBuf| {
        let name = file.file_name().expect("a file").to_string_lossy();
        let text = std::fs::read_to_string(&file).expect("a text");
        (name.into_owned(), text)
    };
    files.into_iter().map(read).collect()
}

fn options(budget: &str) -> Options {
    let mut options = Options::default();
    options.budget.budget = Some(budget.into());
    options
}

fn preset(name: &str) -> NamedPolicy {
    NamedPolicy::find(name, |_| Ok::<_, cupel_app::Error>(None)).expect("a preset")
}

fn policy(document: &Value) -> NamedPolicy {
    let config: PolicyConfig = serde_json::from_value(document.clone()).expect("a policy");
    NamedPolicy::of_config("custom", &config).expect("a policy")
}

/// Asks every question about an input. Returns whether it has a window.
fn ask(schema: &Schema, name: &str, text: &str, options: &Options) -> bool {
    let source = || Source::new(name, text);
    let prepared = Prepared::new(source(), options, Scope::OneBudget);
    match prepared.and_then(|prepared| ask_prepared(schema, &prepared)) {
        Ok(()) => true,
        Err(error) => {
            schema.check("ErrorAnswer", &error.answer(&Plain));
            false
        }
    }
}

fn ask_prepared(schema: &Schema, prepared: &Prepared) -> Result<(), cupel_app::Error> {
    let fit = prepared.fit()?;
    let text = fit.text()?;
    schema.check("FitAnswer", &fit.answer());
    schema.check("FitAnswer", &fit.answer().with_chat(&text)?);
    schema.check("FitAnswer", &fit.answer().without_texts());
    schema.check("SelectAnswer", &fit.run.answer());
    schema.check("SelectAnswer", &fit.run.brief_answer());
    schema.check("ExplainAnswer", &prepared.explain()?);
    for index in 0..prepared.len() {
        schema.check("ExplainOneAnswer", &prepared.explain_item(index)?);
    }
    let slack = prepared.budget().max_tokens() / 2;
    if !prepared.pipeline().policy().slicer().is_quota() {
        schema.check("MarginalAnswer", &prepared.marginal(slack)?);
    }
    // A search that is stopped at once is inexact, and any other one complete.
    let mut go = |_| ControlFlow::Continue(());
    let mut stop = |_| ControlFlow::Break(());
    let to = Some(prepared.all_tokens().min(400));
    schema.check("SweepAnswer", &prepared.sweep(1, to, &mut go)?);
    schema.check("SweepAnswer", &prepared.sweep(1, None, &mut stop)?);
    let none = |answer| schema.check("MinBudgetAnswer", &answer);
    none(prepared.min_budget(None, to, &mut go)?);
    none(prepared.min_budget(Some(0), None, &mut stop)?);
    let policies = ["chat", "newest", "agent"].map(preset);
    schema.check("CompareAnswer", &prepared.compare(policies.into())?);
    Ok(())
}

/// A slicer that refuses every item for a reason of its own, and meets no requirement.
struct Refusing(Vec<ExclusionReason>);

impl Slicer for Refusing {
    fn slice(&self, _: &[ScoredItem], _: &ContextBudget) -> Result<Vec<ContextItem>, CupelError> {
        Ok(Vec::new())
    }

    fn select(&self, ranked: &[ScoredRef<'_>], _: &ContextBudget) -> Result<Selection, CupelError> {
        let mut selection = Selection::keep(Vec::new());
        for (rank, reason) in (0..ranked.len()).zip(&self.0) {
            selection.refuse(rank, Refusal::Because(reason.clone()));
        }
        selection.fall_short(CountRequirementShortfall::new("Memory", 2, 1));
        Ok(selection)
    }
}

/// One item per reason that no policy gives for the other inputs.
fn refused() -> Prepared {
    let reasons = json!([
        {"reason": "ScoredTooLow", "score": 0.5, "threshold": f64::MAX},
        {"reason": "ScoredTooLow", "score": "NaN", "threshold": "inf"},
        {"reason": "QuotaCapExceeded", "kind": "Memory", "cap": 1, "actual": 2},
        {"reason": "QuotaRequireDisplaced", "displaced_by_kind": "Memory"},
        {"reason": "NegativeTokens", "tokens": -1},
        {"reason": "Filtered", "filter_name": "age"},
        {"reason": "CountCapExceeded", "kind": "Memory", "cap": 1, "count": 2},
        {"reason": "CountRequireCandidatesExhausted", "kind": "Memory"},
        {"reason": "GroupExcluded", "group_size": 2, "group_tokens": 9, "available_tokens": 3},
        {"reason": "NearDuplicate", "similar_to": "a", "similarity": 0.9},
        {"reason": "Redundant", "gain": 0.1, "similar_to": "a", "similarity": 0.9},
        {"reason": "Superseded", "superseded_by": "a"},
        {"reason": "TooBlue", "hue": {"degrees": 240}},
    ]);
    let reasons: Vec<ExclusionReason> = serde_json::from_value(reasons).expect("reasons");
    let items = (0..reasons.len()).map(|it| {
        let item = ContextItem::builder(format!("item {it}"), 3);
        item.future_relevance_hint(0.5).build().expect("an item")
    });
    let items = items.collect();
    let policy = Pipeline::new(ReflexiveScorer, Refusing(reasons), ChronologicalPlacer);
    let mut options = options("100");
    options.policy = Some(NamedPolicy::new("refusing", policy.policy().clone()));
    Prepared::from_items("items", items, &options, Scope::OneBudget).expect("a task")
}

/// Items with every optional field, with duplicates, views and pinned ones.
const ITEMS: &str = r#"[
  {"content": "rules", "tokens": 60, "pinned": true, "kind": "SystemPrompt"},
  {"content": "more rules", "tokens": 50, "pinned": true, "priority": 3, "tags": ["a"], "metadata": {"k": "v"}},
  {"content": "a note of some length", "tokens": 40, "kind": "Memory", "timestamp": "2026-01-02T03:04:05Z",
   "future_relevance_hint": 0.9, "views": [{"content": "a note", "tokens": 4, "level": 8, "value": 0.5}]},
  {"content": "same", "tokens": 10, "future_relevance_hint": 0.2},
  {"content": "same", "tokens": 10},
  {"content": "free", "tokens": 0},
  {"content": "broken", "tokens": -4},
  {"content": "large", "tokens": 300, "priority": 1}
]"#;

/// A tool call whose result is missing, a result without a call, and old results.
const CHAT: &str = r#"{"messages": [
  {"role": "system", "content": "You are a helpful assistant."},
  {"role": "user", "content": "Look at the log."},
  {"role": "assistant", "content": null, "tool_calls": [{"id": "c1", "type": "function", "function": {"name": "f", "arguments": "{}"}}]},
  {"role": "user", "content": "And now? Here is some more text, so that it is worth dropping, I would say."},
  {"role": "user", "content": "Then look again, with some more text, so that this is worth dropping as well."},
  {"role": "assistant", "content": "It is fine."},
  {"role": "user", "content": "What is 2 + 2?"}
]}"#;

fn ask_all(schema: &Schema) {
    for (name, text) in examples() {
        let windows = ["60", "300", "1k", "4k"].map(|it| ask(schema, &name, &text, &options(it)));
        assert!(windows.contains(&true), "{name}");
    }
    for budget in ["40", "70", "120", "2k"] {
        for document in [
            json!({"scorer": {"type": "reflexive"}, "overflow_strategy": "proceed"}),
            json!({"scorer": {"type": "composite", "entries": [
                {"scorer": {"type": "reflexive"}, "weight": 2}, {"scorer": {"type": "priority"}, "weight": 1}]},
                "slicer": {"type": "ladder", "steps": [{"type": "shorten", "kind": "Memory", "levels": [8]}, {"type": "drop"}]}}),
            json!({"scorer": {"type": "reflexive"}, "slicer": {"type": "choice"}, "overflow_strategy": "proceed"}),
        ] {
            let mut options = options(budget);
            options.policy = Some(policy(&document));
            ask(schema, "items.json", ITEMS, &options);
        }
        let mut options = options(budget);
        ask(schema, "chat.json", CHAT, &options);
        options.chat.give(&["marker"]).marker = Some("[{n} messages omitted]".to_owned());
        ask(schema, "chat.json", CHAT, &options);
    }
    // The pinned items exceed the target, which the policy accepts.
    let mut over = options("200");
    over.budget.target = Some(100.into());
    over.policy = Some(policy(
        &json!({"scorer": {"type": "reflexive"}, "overflow_strategy": "proceed"}),
    ));
    ask(schema, "items.json", ITEMS, &over);
    ask_prepared(schema, &refused()).expect("answers");
    // A file is read twice.
    let call =
        |id| json!({"id": id, "type": "function", "function": {"name": "read", "arguments": "{}"}});
    let file = "A line of the file.\n".repeat(60);
    let mut messages = vec![json!({"role": "user", "content": "Read it."})];
    for id in ["a", "b"] {
        messages.push(json!({"role": "assistant", "content": null, "tool_calls": [call(id)]}));
        messages.push(json!({"role": "tool", "tool_call_id": id, "content": file}));
    }
    let text = Value::from(messages).to_string();
    let mut once = options("500");
    once.policy = Some(preset("single"));
    let source = Source::new("chat.json", text);
    let prepared = Prepared::new(source, &once, Scope::OneBudget).expect("a chat");
    schema.check("ExplainAnswer", &prepared.explain().expect("a window"));
    schema.check("SelectAnswer", &refused().run().expect("a run").answer());
    for text in [
        "",
        "{",
        "[1]",
        "\u{feff}plain",
        "{\"items\": [{\"content\": 1}]}",
    ] {
        assert!(!ask(schema, "bad.json", text, &options("100")), "{text}");
    }
    let error = Prepared::new(
        Source::new("bad.json", "{"),
        &options("100"),
        Scope::OneBudget,
    );
    // As a door answers one of many requests.
    let error = ErrorAnswer {
        custom_id: Some(json!("request-7")),
        ..error.err().expect("an error").answer(&Plain)
    };
    schema.check("ErrorAnswer", &error);
    ask_sessions(schema);
    ask_others(schema);
}

/// The same conversation turn by turn: a first window, a longer history, one that changed, and another policy.
fn ask_sessions(schema: &Schema) {
    let messages: Value = serde_json::from_str(CHAT).expect("a chat");
    let messages = messages["messages"].as_array().expect("messages");
    let fit = |session: &mut Session, messages: &[Value], budget: &str, policy: &str| {
        let text = json!({ "messages": messages }).to_string();
        let mut options = options(budget);
        options.policy = Some(preset(policy));
        let task = PreparedSession::new(Source::new("chat.json", text), &options);
        let task = task.expect("a task");
        let window = task.fit(session).expect("a window");
        schema.check("FitAnswer", &task.answer(&window));
    };
    let mut session = Session::default();
    fit(&mut session, messages, "2k", "agent");
    fit(&mut session, messages, "2k", "agent");
    let mut changed = messages.clone();
    changed[3]["content"] = "Another text.".into();
    fit(&mut session, &changed, "2k", "agent");
    let state: FitState = session.state().clone();
    fit(&mut Session::resume(state), &changed, "2k", "newest");
}

fn ask_others(schema: &Schema) {
    let counters = CounterName::COMPARED.map(CounterName::counter);
    for (name, text) in examples() {
        let source = Source::new(&name, &*text);
        let counted = count(&source, &ReadOptions::default(), &counters);
        schema.check("CountAnswer", &counted.expect("counts"));
        for scorer in ["conversation", "relevance"] {
            let options = Options {
                policy: Some(cupel_app::scorer_named(scorer).expect("a scorer")),
                ..Options::default()
            };
            let found = search(&source, "the carrier of the file", 3, &options);
            schema.check("SearchAnswer", &found.expect("passages"));
        }
    }
    schema.check("CountAnswer", &count_text("a text", &counters));
    schema.check("ModelsAnswer", &models());
}

#[test]
fn answers_are_valid_and_have_every_key_of_the_schema() {
    let schema = Schema::new();
    ask_all(&schema);
    let expected = schema.expected();
    let missing: Vec<_> = expected.difference(&schema.met.borrow()).cloned().collect();
    assert!(
        missing.is_empty(),
        "no answer has what the schema lists: {missing:#?}"
    );
}

#[test]
fn every_key_has_a_description_for_readers_of_json() {
    let schema = Schema::new();
    let mut schemas = vec![&schema.root];
    let mut count = 0;
    while let Some(at) = schemas.pop() {
        for (name, property) in at["properties"].as_object().into_iter().flatten() {
            // `properties` may be the name of a property itself, which has no description then.
            let text = property["description"].as_str().unwrap_or_default();
            assert!(!text.is_empty(), "{name} has no description");
            count += 1;
        }
        if let Some(text) = at["description"].as_str() {
            for rust in ["None", "::", "](", "[`", "```"] {
                assert!(!text.contains(rust), "{text}");
            }
        }
        schemas.extend(at.as_object().into_iter().flat_map(|it| it.values()));
        schemas.extend(at.as_array().into_iter().flatten());
    }
    assert!(count > 100, "{count}");
}

#[test]
fn a_key_that_the_schema_does_not_list_is_refused() {
    let schema = Schema::new();
    let prepared = Prepared::new(
        Source::new("items.json", ITEMS),
        &options("200"),
        Scope::OneBudget,
    );
    let prepared = prepared.expect("a task");
    let fit = prepared.fit().expect("a window");
    let mut answer = serde_json::to_value(fit.answer()).expect("JSON");
    assert!(schema.is_valid("/$defs/FitAnswer", &answer));
    assert!(schema.is_valid("", &answer));
    let wrong: [(&str, Value); 4] = [
        ("/new", json!(1)),
        ("/dropped/0/new", json!(1)),
        ("/dropped/0/reason/new", json!(1)),
        ("/shape", json!("cobol")),
    ];
    for (pointer, value) in wrong {
        let mut answer = answer.clone();
        let (object, key) = pointer.rsplit_once('/').expect("a key");
        answer.pointer_mut(object).expect("an object")[key] = value;
        assert!(!schema.is_valid("/$defs/FitAnswer", &answer), "{pointer}");
    }
    answer.as_object_mut().expect("an object").remove("kept");
    assert!(!schema.is_valid("/$defs/FitAnswer", &answer));
}
