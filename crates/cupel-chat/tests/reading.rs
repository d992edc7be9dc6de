//! Parsing: the detected format, and errors.

use cupel_chat::{Chat, Shape};

use crate::characters::Characters;

fn check_shape(text: &str, shape: Shape) {
    let chat = Chat::parse(text, None);
    assert_eq!(chat.map(|chat| chat.shape()), Ok(shape), "{text}");
}

#[test]
fn formats_are_detected() {
    use Shape::{Anthropic, Items, LangChain, OpenAi, Responses};
    for (text, shape) in [
        ("[]", OpenAi),
        (r#"{"messages":[]}"#, OpenAi),
        (r#"[{"role":"user","content":"x"}]"#, OpenAi),
        (r#"{"role":"user","content":"x"}"#, OpenAi),
        (
            "{\"role\":\"user\",\"content\":\"x\"}\n{\"role\":\"assistant\",\"content\":\"y\"}\n",
            OpenAi,
        ),
        (r#"[{"role":"system","content":"x"}]"#, OpenAi),
        (r#"[{"role":"tool","content":"x"}]"#, OpenAi),
        (r#"[{"role":"assistant","tool_calls":[]}]"#, OpenAi),
        (
            r#"[{"role":"user","content":[{"type":"image_url","image_url":"x"}]}]"#,
            OpenAi,
        ),
        (
            r#"{"tools":[{"type":"function","function":{"name":"f"}}],"messages":[]}"#,
            OpenAi,
        ),
        (
            r#"{"model":"claude-sonnet-4","messages":[{"role":"user","content":"x"}]}"#,
            Anthropic,
        ),
        (
            r#"{"system":"x","messages":[{"role":"user","content":"x"}]}"#,
            Anthropic,
        ),
        (
            r#"{"tools":[{"name":"f","input_schema":{}}],"messages":[]}"#,
            Anthropic,
        ),
        (
            r#"[{"role":"user","content":[{"type":"tool_result","tool_use_id":"x"}]}]"#,
            Anthropic,
        ),
        (r#"{"input":[]}"#, Responses),
        (r#"{"input":"hello"}"#, Responses),
        (r#"{"type":"response.create","input":[]}"#, Responses),
        (
            r#"[{"type":"function_call","call_id":"x","name":"f","arguments":"{}"},{"role":"system","content":"x"}]"#,
            Responses,
        ),
        (
            r#"[{"type":"message","role":"user","content":"x"}]"#,
            Responses,
        ),
        (r#"[{"type":"human","data":{"content":"x"}}]"#, LangChain),
        (r#"[{"type":"human","content":"x"}]"#, LangChain),
        (
            r#"[{"lc":1,"type":"constructor","id":["HumanMessage"],"kwargs":{"content":"x"}}]"#,
            LangChain,
        ),
        (r#"{"items":[{"content":"x","tokens":1}]}"#, Items),
        (r#"[{"content":"x","tokens":1}]"#, Items),
        (
            "{\"content\":\"x\"}\n\n{\"content\":\"y\",\"tokens\":3}",
            Items,
        ),
        ("\u{feff}[{\"content\":\"x\"}]", Items),
    ] {
        check_shape(text, shape);
    }
}

/// Returns the end of the error for a document without a list.
fn lists() -> String {
    let error = Chat::parse("{}", None).unwrap_err().message;
    let (_, lists) = error.split_once("; ").unwrap();
    assert!(lists.starts_with("a chat has one array, `messages` (OpenAI Chat, "));
    assert!(lists.contains("`input` (OpenAI Responses)") && lists.ends_with(" or `items`"));
    lists.to_owned()
}

/// Checks the error with its position.
fn check_error(text: &str, shape: Option<Shape>, expected: &str) {
    match Chat::parse(text, shape) {
        Ok(chat) => panic!("{text} is read as {}", chat.shape()),
        Err(error) => assert_eq!(error.to_string(), expected, "{text}"),
    }
}

#[test]
fn invalid_chats_fail_with_position_and_fix() {
    let lists = lists();
    let empty = "line 1, column 1: the text is empty; a chat is a JSON document or one JSON object per line";
    let shapes = Shape::ALL.map(Shape::name).join(", ");
    for (text, expected) in [
        ("", empty.to_owned()),
        (" \n\t", empty.to_owned()),
        ("7", "line 1, column 1: a chat is a JSON object with a list of messages, a JSON array, or one JSON object per line, not a number".to_owned()),
        ("{", "line 1, column 1: incomplete JSON: EOF while parsing an object".to_owned()),
        ("{\"messages\": [\n  {\"role\": \"us", "line 2, column 14: incomplete JSON: EOF while parsing a string".to_owned()),
        ("{\"messages\": [\n  {\"role\" \"user\"}]}", "line 2, column 11: invalid JSON: expected `:`".to_owned()),
        ("{\"role\":\"user\",\"content\":\"é\"}\n{\"role\":}", "line 2, column 9: invalid JSON: expected value".to_owned()),
        ("{}", format!("line 1, column 1: the object is empty; {lists}")),
        ("\n {\"message\": []}", format!("line 2, column 2: the object has `message`; {lists}")),
        (r#"{"input":[],"messages":[]}"#, format!("line 1, column 1: the object has both `messages` and `input`; {lists}")),
        (r#"{"messages":[],"messages":[]}"#, "line 1, column 16, messages: duplicate key; remove one".to_owned()),
        (r#"{"messages":[],"model":"a","model":"b"}"#, "line 1, column 28, model: duplicate key; remove one".to_owned()),
        (r#"[{"role":"user","content":"a","content":"b"}]"#, "line 1, column 31, [0].content: duplicate key; remove one".to_owned()),
        (r#"{"custom_id":"a","body":{"messages":[{"role":"user","role":"user","content":"a"}]}}"#, "line 1, column 53, body.messages[0].role: duplicate key; remove one".to_owned()),
        ("{\"role\":\"user\",\"content\":\"a\"}\n{\"role\":\"user\",\"role\":\"user\"}", "line 2, column 16, role: duplicate key; remove one".to_owned()),
        (r#"{"messages":[{"role":"user","content":"cut \ud83d"}]}"#, r"line 1, column 44, messages[0]: unpaired surrogate `\ud83d`, half of a character; write the whole character or `\ufffd`".to_owned()),
        ("[{\"role\":\"user\",\n \"content\":\"x\",\"n\":1e999}]", "line 2, column 20, [0]: number out of range; write a number that a 64-bit float can hold".to_owned()),
        (r#"{"messages":{}}"#, "line 1, column 13, messages: must be an array".to_owned()),
        (r#"{"input":["hello"]}"#, "line 1, column 11, input[0]: must be an object, not a string".to_owned()),
        (r#"{"input":7}"#, "line 1, column 10, input: must be an array".to_owned()),
        ("[\n  1]", "line 2, column 3, [0]: must be an object, not a number".to_owned()),
        (r#"{"messages":[{"text":"x"}]}"#, format!("line 1, column 14, messages[0]: unknown message format: it has `text`; messages have `role` or `type`, items have `content`. If you know the format, name it: {shapes}")),
        ("{\"id\":1,\"messages\":[]}\n{\"id\":2,\"messages\":[]}", "line 1, column 1: 2 chats in one text; read them one by one".to_owned()),
        (
            r#"[{"role":"tool","tool_call_id":"x","content":""},{"role":"user","content":[{"type":"tool_result","tool_use_id":"x"}]}]"#,
            format!("line 1, column 1: the chat format is ambiguous: found the role `tool` in [0] (openai) and a content block of type `tool_result` in [1] (anthropic); name the format, one of {shapes}"),
        ),
        (
            r#"{"system":"x","messages":[{"role":"system","content":"x"}]}"#,
            format!("line 1, column 1, messages: the chat format is ambiguous: found the field `system` (anthropic) and the role `system` in messages[0] (openai); name the format, one of {shapes}"),
        ),
        (
            r#"[{"role":"user","content":"x"},{"content":"a","tokens":1}]"#,
            "line 1, column 32, [1]: messages and items are mixed: [0] is a message (it has `role`), [1] is an item (it has `content` without `role`); use messages only or items only".to_owned(),
        ),
        (
            "{\"content\":\"a\"}\n{\"type\":\"human\",\"content\":\"x\"}",
            "line 2, column 1, [1]: messages and items are mixed: [0] is an item (it has `content` without `role`), [1] is a message (it has the type `human`); use messages only or items only".to_owned(),
        ),
        (
            r#"{"items":[{"content":"a"},{"role":"tool","content":"x"}]}"#,
            "line 1, column 27, items[1]: messages and items are mixed: items[0] is an item (it has `content` without `role`), items[1] is a message (it has the role `tool`); use messages only or items only".to_owned(),
        ),
        (
            r#"{"items":[{"role":"user","content":"x"}]}"#,
            "line 1, column 11, items[0]: items[0] is a message (it has `role`) in `items`; rename the list to `messages`, or use items".to_owned(),
        ),
        (
            r#"{"system":"x","messages":[{"content":"x"}]}"#,
            format!("line 1, column 1, messages: the chat format is ambiguous: found the field `system` (anthropic) and `content` without `role` in messages[0] (items); name the format, one of {shapes}"),
        ),
        (r#"[{"role":"king","content":"x"}]"#, "line 1, column 2, [0].role: unknown role \"king\"; expected one of system, developer, user, assistant, tool, function".to_owned()),
        (r#"[{"role":"user","content":7}]"#, "line 1, column 2, [0].content: must be a string or an array of content blocks, not a number".to_owned()),
        (r#"[{"role":"user","content":[{"type":"text"}]}]"#, "line 1, column 2, [0].content[0].text: is missing; it must be a string".to_owned()),
        (r#"[{"role":"user","content":[{}]}]"#, "line 1, column 2, [0].content[0].type: is missing; it must be a string".to_owned()),
        (r#"[{"role":"user","content":[null]}]"#, "line 1, column 2, [0].content[0]: must be an object, not null".to_owned()),
        (r#"[{"role":"assistant","tool_calls":{}}]"#, "line 1, column 2, [0].tool_calls: must be an array, not an object".to_owned()),
        (r#"[{"role":"assistant","tool_calls":[{"function":{"name":"f"}}]}]"#, "line 1, column 2, [0].tool_calls[0].id: is missing; it must be a string".to_owned()),
        (r#"[{"role":"assistant","tool_calls":[{"id":"a","function":{}}]}]"#, "line 1, column 2, [0].tool_calls[0].function.name: is missing; it must be a string".to_owned()),
        (r#"{"input":[{"type":"function_call","name":"f"}]}"#, "line 1, column 11, input[0].call_id: is missing; it must be a string".to_owned()),
        (r#"{"input":[{"type":"function_call_output"}]}"#, "line 1, column 11, input[0].call_id: is missing; it must be a string".to_owned()),
        (r#"{"input":[{"content":"x"}]}"#, "line 1, column 11, input[0].role: is missing; it must be a string".to_owned()),
        (r#"[{"lc":1,"kwargs":{}}]"#, "line 1, column 2, [0].id: must be an array that ends with the name of a message class".to_owned()),
        (r#"[{"lc":1,"id":["Prompt"],"kwargs":{}}]"#, "line 1, column 2, [0].id: unknown message type \"Prompt\"; expected one of human, ai, system, tool, function, chat, remove".to_owned()),
        (r#"[{"type":"bot","content":"x"}]"#, format!("line 1, column 2, [0]: unknown message format: it has `content`, `type`; the nearest format is langchain; messages have `role` or `type`, items have `content`. If you know the format, name it: {shapes}")),
        (r#"[{"role":"user","parts":[]}]"#, "line 1, column 2, [0]: a message of the format openai without content: it has `parts`, `role`; it looks like gemini".to_owned()),
        (r#"[{"content":"","tokens":1}]"#, "line 1, column 2, [0]: content must be non-empty".to_owned()),
    ] {
        check_error(text, None, &expected);
    }
}

#[test]
fn a_given_format_is_not_detected() {
    let text = r#"[{"role":"user","content":"x"}]"#;
    for shape in [Shape::OpenAi, Shape::Anthropic, Shape::Responses] {
        assert_eq!(Chat::parse(text, Some(shape)).unwrap().shape(), shape);
    }
    check_error(
        text,
        Some(Shape::LangChain),
        "line 1, column 2, [0].type: is missing; it must be a string",
    );
    check_error(
        r#"{"messages":[{"role":"system","content":"x"}]}"#,
        Some(Shape::Anthropic),
        "line 1, column 14, messages[0].role: a system message must follow a user message and be the last or precede an assistant message; put a system prompt into the field `system` of the request",
    );
}

#[test]
fn malformed_input_does_not_panic() {
    let text = include_str!("examples/agent-session.json");
    for end in (0..text.len())
        .step_by(97)
        .filter(|end| text.is_char_boundary(*end))
    {
        assert!(Chat::parse(&text[..end], None).is_err(), "{end}");
    }
    let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    assert!(Chat::parse(&deep, None).is_err());
    let deep = format!(r#"[{{"role":"user","content":{deep}}}]"#);
    assert!(Chat::parse(&deep, None).is_err());
    for text in [
        "\0",
        "\u{feff}",
        "[[[]]]",
        "null",
        "\"x\"",
        "[{}]",
        "{\"messages\":[{}]}",
        "{\"messages\":null}",
    ] {
        assert!(Chat::parse(text, None).is_err(), "{text}");
    }
}

#[test]
fn a_message_knows_its_position() {
    let text = "{\n  \"messages\": [\n    {\"role\": \"user\", \"content\": \"é\"}, {\"role\": \"assistant\", \"content\": \"y\"}\n  ]\n}\n";
    let chat = Chat::parse(text, None).unwrap();
    let message = chat.message(1);
    assert_eq!((message.place().line, message.place().column), (3, 39));
    assert_eq!(message.json(), r#"{"role": "assistant", "content": "y"}"#);
    assert_eq!(
        (message.path().as_str(), message.label()),
        ("messages[1]", "assistant")
    );
    assert_eq!(
        chat.write(&[1]),
        "{\n  \"messages\": [ {\"role\": \"assistant\", \"content\": \"y\"}\n  ]\n}\n"
    );
}

#[test]
fn a_field_around_the_messages_may_hold_what_a_value_cannot() {
    for field in [
        r#""\ud800""#,
        "1e999",
        "-1e999",
        r#"{"a":["\udc00",1e999]}"#,
    ] {
        let request = format!(r#"{{"x":{field},"messages":[{{"role":"user","content":"hi"}}]}}"#);
        let text = format!(r#"{{"custom_id":{field},"body":{request}}}"#);
        for text in [request, text] {
            let chat = Chat::parse(&text, None).unwrap();
            assert_eq!(chat.shape(), Shape::OpenAi);
            assert_eq!(chat.write(&[0]), text);
        }
    }
    // The tokens of the tools count, though their text is not valid Unicode.
    let overhead = |name: &str| {
        let tool = format!(r#"{{"type":"function","function":{{"name":"{name}"}}}}"#);
        let text = format!(r#"{{"tools":[{tool}],"messages":[]}}"#);
        Chat::parse(&text, Some(Shape::OpenAi))
            .unwrap()
            .overhead(&Characters)
    };
    assert_eq!(overhead(r"\ud800"), overhead(r"\ufffd"));
    assert!(overhead(r"\ud800") > 10);
}

#[test]
fn a_limit_that_is_no_number_of_tokens_is_an_error_at_its_place() {
    let expected = "must be a whole number of tokens, at most 9223372036854775807";
    let fields = [
        (r#""max_tokens":@"#, "max_tokens"),
        (r#""max_completion_tokens":@"#, "max_completion_tokens"),
        (r#""max_output_tokens":@"#, "max_output_tokens"),
        (r#""maxOutputTokens":@"#, "maxOutputTokens"),
        (
            r#""generationConfig":{"maxOutputTokens":@}"#,
            "generationConfig.maxOutputTokens",
        ),
        (
            r#""inferenceConfig":{"maxTokens":@}"#,
            "inferenceConfig.maxTokens",
        ),
        (r#""options":{"num_predict":@}"#, "options.num_predict"),
        (r#""options":{"num_ctx":@}"#, "options.num_ctx"),
    ];
    for (field, path) in fields {
        let parse = |value: &str| {
            let field = field.replace('@', value);
            let text = format!(r#"{{{field},"messages":[{{"role":"user","content":"hi"}}]}}"#);
            let chat = Chat::parse(&text, Some(Shape::OpenAi));
            chat.map(|chat| chat.output_limit().or(chat.window_limit()))
        };
        let column = 2 + field.find('@').unwrap();
        for (value, was) in [
            ("99999999999999999999", ""),
            ("-99999999999999999999", ""),
            ("1e999", ""),
            ("1.5", ""),
            (r#""500""#, ", not a string"),
            ("true", ", not a boolean"),
            ("[500]", ", not an array"),
        ] {
            let error = parse(value).unwrap_err();
            let expected = format!("line 1, column {column}, {path}: {expected}{was}");
            assert_eq!(error.to_string(), expected);
            assert!(error.sentence().starts_with(&format!("`{path}` must be")));
        }
        for (value, limit) in [
            ("500", Some(500)),
            ("500.0", Some(500)),
            ("null", None),
            ("-1", None),
        ] {
            assert_eq!(
                parse(value).unwrap().map(|(_, limit)| limit),
                limit,
                "{field}"
            );
        }
    }
    let text = r#"{"custom_id":"a","body":{"max_tokens":"x","messages":[]}}"#;
    let error = Chat::parse(text, Some(Shape::OpenAi)).unwrap_err();
    assert_eq!((&*error.path, error.place.column), ("body.max_tokens", 39));
}
