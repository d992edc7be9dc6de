//! Parsing of budgets, and models by name.

use cupel_chat::{Chat, DefaultBudgetError, Encoding, MODELS, Model, Shape, parse_budget};

#[test]
fn budgets_parse() {
    for (text, tokens) in [
        ("1", 1),
        ("8000", 8_000),
        (" 8000 ", 8_000),
        ("200_000", 200_000),
        ("8k", 8_000),
        ("8K", 8_000),
        ("8 k", 8_000),
        ("128k", 128_000),
        ("1.5k", 1_500),
        ("0.001k", 1),
        ("1M", 1_000_000),
        ("1.047576M", 1_047_576),
        ("1000000000000", 1_000_000_000_000),
    ] {
        assert_eq!(parse_budget(text, None), Ok(tokens), "{text}");
    }
    for (text, tokens) in [
        ("70%", 89_600),
        ("100%", 128_000),
        ("0.1%", 128),
        ("12.5%", 16_000),
        ("33.3333%", 42_666),
    ] {
        assert_eq!(parse_budget(text, Some(128_000)), Ok(tokens), "{text}");
    }
}

#[test]
fn invalid_budgets_fail_with_the_reason() {
    for (text, problem) in [
        ("", "it is empty"),
        ("  ", "it is empty"),
        ("-5", "it is negative"),
        ("-5k", "it is negative"),
        ("0", "it leaves no tokens"),
        ("0k", "it leaves no tokens"),
        ("0.0001%", "it leaves no tokens"),
        ("1.5", "it is not a whole number of tokens"),
        ("1.0005k", "it is not a whole number of tokens"),
        ("1000000000001", "it is larger than any window"),
        ("1000000000000000000", "it is larger than any window"),
        (
            "99999999999999999999999999999999999999999999",
            "it is larger than any window",
        ),
        ("10000000M", "it is larger than any window"),
        ("k", "it is not a number"),
        ("%", "it is not a number"),
        ("1_", "it is not a number"),
        ("_1", "it is not a number"),
        ("1.", "it is not a number"),
        (".5k", "it is not a number"),
        ("1,000", "remove the comma"),
        ("1e3", "it is not a number"),
        ("+5", "it is not a number"),
        ("NaN", "it is not a number"),
        ("8g", "unknown unit; expected k, M or %"),
        ("8 tokens", "it is not a number"),
        ("८k", "it is not a number"),
        ("101%", "a share is at most 100%"),
        ("100.001%", "a share is at most 100%"),
    ] {
        let error = parse_budget(text, Some(100_000)).unwrap_err().to_string();
        let begin = format!("invalid budget `{text}`: {problem}; write tokens as");
        assert!(error.starts_with(&begin), "{error}");
    }
    let error = parse_budget("70%", None).unwrap_err().to_string();
    assert!(
        error.contains("a share needs a model whose window is known"),
        "{error}"
    );
}

#[test]
fn a_model_is_found_by_its_longest_name() {
    for (name, found) in [
        ("gpt-4o", "gpt-4o"),
        ("gpt-4o-2024-08-06", "gpt-4o"),
        ("GPT-4o-mini", "gpt-4o"),
        ("gpt-4", "gpt-4"),
        ("gpt-4-0613", "gpt-4"),
        ("gpt-4-turbo-preview", "gpt-4-turbo"),
        ("gpt-4-32k-0613", "gpt-4-32k"),
        ("gpt-4.1-nano", "gpt-4.1"),
        ("ft:gpt-4o:acme::x", "gpt-4o"),
        ("o1-mini", "o1-mini"),
        ("openai/o3-mini", "o3"),
        ("anthropic/claude-3-5-sonnet-20241022", "claude-3.5"),
        ("us.anthropic.claude-opus-4-6-v1:0", "claude-opus-4.6"),
        ("claude-opus-4-20250514", "claude-opus-4"),
        ("meta-llama/Llama-3.1-8B-Instruct", "llama-3.1"),
        ("qwen2.5:7b", "qwen2.5"),
        ("mistral-large-latest", "mistral-large"),
        ("mistral-large-2411", "mistral-large-2411"),
        ("claude-3.5-sonnet", "claude-3.5"),
        ("claude-sonnet-4-5-20250929", "claude-sonnet-4.5"),
        ("gpt-5.4-mini-2026-03-05", "gpt-5.4-mini"),
        ("gpt-5-mini", "gpt-5"),
    ] {
        assert_eq!(
            Model::find(name).map(|model| model.name),
            Ok(found),
            "{name}"
        );
    }
}

#[test]
fn an_unknown_model_is_an_error_with_the_nearest_name() {
    for (name, nearest) in [
        ("gpt4o", Some("gpt-4o")),
        ("cluade-3", Some("claude-3")),
        ("o200k", None),
        ("", None),
        ("my-own-model", None),
        ("gpt-4.7", Some("gpt-4.1")),
        ("claude-opus-4-9", Some("claude-opus-4")),
    ] {
        let error = Model::find(name).unwrap_err().to_string();
        let expected = nearest.map(|nearest| format!("(did you mean {nearest:?}?)"));
        match expected {
            Some(expected) => assert!(error.contains(&expected), "{error}"),
            None => assert!(!error.contains("did you mean"), "{error}"),
        }
        assert!(error.contains("give its encoding"), "{error}");
    }
}

/// The table of tiktoken-rs is independent of ours.
#[test]
fn encodings_of_models_equal_those_of_tiktoken_rs() {
    for model in MODELS {
        let Some(encoding) = model.encoding else {
            continue;
        };
        let theirs = tiktoken_rs::tokenizer::get_tokenizer(model.name);
        let Some(theirs) = theirs else { continue };
        let ours = match encoding {
            Encoding::O200k => "O200k",
            Encoding::Cl100k => "Cl100k",
            _ => continue,
        };
        assert!(
            format!("{theirs:?}").starts_with(ours),
            "{}: {theirs:?}",
            model.name
        );
    }
}

/// Returns the tokens, the window, the reserve and the fields of the default budget of a request.
fn derived(fields: &str) -> (i64, i64, i64, Option<&'static str>, Option<&'static str>) {
    let text = format!(r#"{{{fields}"messages":[{{"role":"user","content":"hi"}}]}}"#);
    let chat = Chat::parse(&text, Some(Shape::OpenAi)).unwrap();
    let budget = chat.default_budget(None).unwrap();
    (
        budget.tokens,
        budget.window,
        budget.reserve,
        budget.window_field,
        budget.reserve_field,
    )
}

#[test]
fn the_default_budget_follows_from_the_request_and_its_model() {
    let answer = Some("max_tokens");
    for (fields, expected) in [
        (
            r#""model":"gpt-4o","#,
            (123_904, 128_000, 4_096, None, None),
        ),
        (r#""model":"gpt-4","#, (6_144, 8_192, 2_048, None, None)),
        (
            r#""model":"gpt-4o","max_tokens":1000,"#,
            (123_904, 128_000, 4_096, None, None),
        ),
        (
            r#""model":"gpt-4o","max_tokens":4095,"#,
            (123_904, 128_000, 4_096, None, None),
        ),
        (
            r#""model":"gpt-4o","max_tokens":4097,"#,
            (123_903, 128_000, 4_097, None, answer),
        ),
        // A quarter of the window is less than 4,096.
        (
            r#""model":"gpt-4","max_tokens":2000,"#,
            (6_144, 8_192, 2_048, None, None),
        ),
        (
            r#""model":"gpt-4","max_tokens":2100,"#,
            (6_092, 8_192, 2_100, None, answer),
        ),
        // 400,000 less 4,096, but no more than 272,000 of input.
        (
            r#""model":"gpt-5","max_tokens":1000,"#,
            (272_000, 400_000, 4_096, None, None),
        ),
        (
            r#""model":"gpt-5","max_tokens":200000,"#,
            (200_000, 400_000, 200_000, None, answer),
        ),
        (
            r#""model":"mine","options":{"num_ctx":8000,"num_predict":-1},"#,
            (6_000, 8_000, 2_000, Some("options.num_ctx"), None),
        ),
    ] {
        assert_eq!(derived(fields), expected, "{fields}");
    }
    let error = |fields: &str, model: Option<&str>| {
        let text = format!(r#"{{{fields}"messages":[{{"role":"user","content":"hi"}}]}}"#);
        let chat = Chat::parse(&text, Some(Shape::OpenAi)).unwrap();
        chat.default_budget(model).unwrap_err()
    };
    assert_eq!(error("", None), DefaultBudgetError::NoModel);
    assert!(matches!(
        error("", Some("mine")),
        DefaultBudgetError::UnknownModel(_)
    ));
    let whole = r#""model":"gpt-4","max_tokens":8192,"#;
    let expected = DefaultBudgetError::NothingLeft {
        field: "max_tokens",
        reserve: 8_192,
        window: 8_192,
    };
    assert_eq!(error(whole, None), expected);
}
