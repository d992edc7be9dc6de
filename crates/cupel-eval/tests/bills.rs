//! The bills of a tiny run, computed by hand.
//!
//! A message has 4 tokens and its words ("How to count tokens with tiktoken" in `OpenAI`'s cookbook, with a word as a
//! token), a request 3 more. At a budget of 30 the suffix drops the first message:
//!
//! ```text
//! tokens       25 user   5 assistant   5 user   5 assistant   5 user   5 assistant
//! second 0     ^         100           ^        500           ^
//! request 2    window: 10 tokens, all new; without trimming 35, of which 25 are cached
//! request 3    window: 20 tokens, 10 cached; without trimming 45, of which 35 are cached
//! ```

use cupel_chat::{Chat, TokenCounter};
use cupel_eval::{
    Billing, Method, Prices, ReplayMeasure, ReplayReport, parse_runs, replay, unobserved,
};
use serde_json::json;

/// Counts words.
pub(crate) struct Words;

impl TokenCounter for Words {
    fn count(&self, text: &str) -> i64 {
        i64::try_from(text.split_whitespace().count()).unwrap_or(i64::MAX)
    }

    fn name(&self) -> &'static str {
        "words"
    }

    fn is_estimate(&self) -> bool {
        false
    }
}

/// The run. The answers have no time.
fn run(times: [Option<i64>; 3]) -> Vec<Chat> {
    let mut messages = Vec::new();
    for (turn, time) in times.into_iter().enumerate() {
        let words = if turn == 0 { 21 } else { 1 };
        let mut user = json!({"role": "user", "content": vec!["word"; words].join(" ")});
        if let Some(time) = time {
            user["timestamp"] = json!(time);
        }
        messages.push(user);
        messages.push(json!({"role": "assistant", "content": "word"}));
    }
    let run = json!({"messages": messages}).to_string();
    parse_runs(&run, "", None).expect("a run")
}

fn replayed(runs: &[Chat], billing: Billing) -> ReplayReport {
    let report = replay(
        runs,
        &[Method::Suffix],
        &[30],
        &billing,
        &Words,
        &mut unobserved,
    );
    report.expect("a replay")
}

fn value(report: &ReplayReport, measure: ReplayMeasure) -> f64 {
    let estimate = report.results[0].estimates.get(measure);
    estimate.expect("a value").value
}

fn is_close(value: f64, expected: f64) {
    assert!((value - expected).abs() < 1e-12, "{value} {expected}");
}

#[test]
fn the_bill_of_the_body_has_no_prefix_and_no_price_of_writing() {
    let report = replayed(&run([None; 3]), Billing::default());
    assert_eq!((report.requests, report.results[0].trimmed), (3, 2));
    // 10 and 0.1 * 10 + 10, over 0.1 * 25 + 10 and 0.1 * 35 + 10.
    is_close(value(&report, ReplayMeasure::Bill), 21.0 / 26.0);
}

#[test]
fn the_full_bill_has_a_cached_prefix_and_the_price_of_writing() {
    let billing = |prices, prefix| Billing {
        prices,
        prefix,
        lifetime: None,
    };
    let bill = |billing| value(&replayed(&run([None; 3]), billing), ReplayMeasure::FullBill);
    // 0.1 * 100 + 1.25 * 10 and 0.1 * 110 + 1.25 * 10, over 0.1 * 125 + 1.25 * 10 and 0.1 * 135 + 1.25 * 10.
    let expected = (22.5 + 23.5) / (25.0 + 26.0);
    is_close(bill(billing(Prices::ANTHROPIC, Some(100))), expected);
    // The prefix of the run is the 3 tokens of a request.
    let expected = (12.8 + 13.8) / (15.3 + 16.3);
    is_close(bill(billing(Prices::ANTHROPIC, None)), expected);
    // Without a prefix and at these prices it is the bill of the body.
    is_close(bill(billing(Prices::OPENAI, Some(0))), 21.0 / 26.0);
    let prices = Prices {
        read: 0.5,
        write: 2.0,
    };
    // 20 and 5 + 20, over 12.5 + 20 and 17.5 + 20.
    is_close(bill(billing(prices, Some(0))), 45.0 / 70.0);
}

#[test]
fn an_expired_cache_has_nothing_but_the_prefix() {
    let billing = Billing {
        prices: Prices::ANTHROPIC,
        prefix: Some(100),
        lifetime: Some(300),
    };
    let report = replayed(&run([Some(0), Some(100), Some(500)]), billing);
    assert_eq!((report.timed, report.expired), (2, 1));
    // The third request comes 400 s after the second: 0.1 * 100 + 1.25 * 20 over 0.1 * 100 + 1.25 * 45.
    let expected = (22.5 + 35.0) / (25.0 + 66.25);
    is_close(value(&report, ReplayMeasure::FullBill), expected);
    is_close(value(&report, ReplayMeasure::Bill), 21.0 / 26.0);

    let untimed = replayed(&run([None; 3]), billing);
    assert_eq!((untimed.timed, untimed.expired), (0, 0));
    let expected = (22.5 + 23.5) / (25.0 + 26.0);
    is_close(value(&untimed, ReplayMeasure::FullBill), expected);
    // Without a time of its own, a request has that of the last message with one.
    let partly = replayed(&run([Some(0), None, Some(500)]), billing);
    assert_eq!((partly.timed, partly.expired), (2, 1));
}
