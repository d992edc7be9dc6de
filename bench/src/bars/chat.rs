//! Bars 34, 35, 39 and 40: the turn of a session, shortening a large tool result, and fits without a state.

use cupel::ContextBudget;
use cupel_chat::{
    Chat, Encoding, Fitter, Shape, TokenCounter, default_policy, newest_policy, single_policy,
};
use serde_json::json;

use super::Session;
use crate::generator::Population;
use crate::measure::{alone, timed};
use crate::table::{Figure, Row, Unit, at_most};

pub(crate) fn rows(session: Session) -> Vec<Row> {
    vec![turns(), large_result(session), warm(), cold()]
}

/// A session of 1,000 messages: the task, then tool calls with their results.
fn messages() -> Vec<String> {
    session_of(&ours_texts(499))
}

/// A session with these results.
fn session_of(texts: &[String]) -> Vec<String> {
    let mut messages = vec![
        json!({"role": "system", "content": "Be helpful."}).to_string(),
        json!({"role": "user", "content": "Find out why the nightly build fails."}).to_string(),
    ];
    for (number, text) in texts.iter().enumerate() {
        let id = format!("call_{number}");
        let call = json!({"id": id, "type": "function",
            "function": {"name": "read", "arguments": format!("{{\"page\":{number}}}")}});
        let call = json!({"role": "assistant", "content": null, "tool_calls": [call]});
        let result = json!({"role": "tool", "tool_call_id": id, "content": text});
        messages.extend([call.to_string(), result.to_string()]);
    }
    messages
}

fn read(messages: &[String]) -> Result<Chat, &'static str> {
    Chat::parse(&format!("[{}]", messages.join(",")), Some(Shape::OpenAi))
        .map_err(|_| "the session is invalid")
}

/// One more step of a session without a state, after the process fitted the session before it.
fn warm() -> Row {
    let what = "fit without a state after one more step / (2 times its text counted + 10 ms), 1,000 messages";
    let row = Row::new(39, what).goal(at_most(1.0, 0.8));
    match warm_times() {
        Ok((ours, bar)) => row
            .peer(Figure::of(bar, Unit::Seconds))
            .ours(Figure::of(ours, Unit::Seconds))
            .measured(ours / bar, Unit::Times),
        Err(reason) => row.missed(reason),
    }
}

fn warm_times() -> Result<(f64, f64), &'static str> {
    let (counter, policy, messages) = (Encoding::O200k, default_policy(), messages());
    let budget = ContextBudget::with_target(60_000, 60_000).map_err(|_| "the budget is invalid")?;
    let (mut ours, mut new) = (Vec::new(), Vec::new());
    for end in (messages.len() - 20..=messages.len()).step_by(2) {
        let (seconds, window) = timed(|| {
            let chat = read(&messages[..end])?;
            chat.fit(&policy, &budget, &counter)
                .map(|_| ())
                .map_err(|_| "a fit failed")
        });
        window?;
        // The text is new for the counter if it is changed.
        let step: Vec<String> = messages[end - 2..end]
            .iter()
            .map(|it| it.replace("e", "u"))
            .collect();
        let step = read(&step)?;
        ours.push(seconds);
        new.push(timed(|| step.tokens(&counter)).0);
    }
    // The first fit reads a session that is new.
    Ok((median(&mut ours[1..]), 2.0 * median(&mut new) + 0.01))
}

fn median(times: &mut [f64]) -> f64 {
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}

/// The first fit of a session with many short results over the count of another one, both read from JSON.
fn cold() -> Row {
    let row = Row::new(
        40,
        "fit without a state, for the first time / counting, 10,000 messages with short results",
    )
    .goal(at_most(1.5, 1.2));
    match cold_times() {
        Ok((ours, theirs)) => row
            .peer(Figure::of(theirs, Unit::Seconds))
            .ours(Figure::of(ours, Unit::Seconds))
            .measured(ours / theirs, Unit::Times),
        Err(reason) => row.missed(reason),
    }
}

fn cold_times() -> Result<(f64, f64), &'static str> {
    let (counter, policy) = (Encoding::O200k, default_policy());
    let budget = ContextBudget::with_target(60_000, 60_000).map_err(|_| "the budget is invalid")?;
    counter.count("the first count unpacks the vocabulary");
    let texts: Vec<String> = ours_texts(10_000)
        .iter()
        .map(|text| text.chars().take(450).collect())
        .collect();
    let [counted, fitted] = [&texts[..4_999], &texts[5_000..9_999]].map(session_of);
    let (theirs, read_and_counted) = timed(|| read(&counted).map(|chat| chat.tokens(&counter)));
    read_and_counted?;
    let (ours, window) = timed(|| {
        let chat = read(&fitted)?;
        chat.fit(&policy, &budget, &counter)
            .map(|_| ())
            .map_err(|_| "the fit failed")
    });
    window?;
    Ok((ours, theirs))
}

fn ours_texts(number: usize) -> Vec<String> {
    let items = crate::ours::items(&Population::new(number));
    items.iter().map(|item| item.content().to_owned()).collect()
}

/// All turns of a session with a state over the count of each turn's new messages and one run each.
fn turns() -> Row {
    let row = Row::new(
        34,
        "turns of a session / new text counted + run, 1,000 messages",
    )
    .goal(at_most(1.5, 1.5));
    let counter = Encoding::O200k;
    let messages = messages();
    let Ok(budget) = ContextBudget::with_target(60_000, 60_000) else {
        return row.missed("the budget is invalid");
    };
    let newest = newest_policy();
    let mut fitter = Fitter::new(default_policy());
    counter.count("the first count unpacks the vocabulary");
    let (mut ours, mut theirs) = (0.0, 0.0);
    for end in (4..=messages.len()).step_by(2) {
        let read =
            |range: &[String]| Chat::parse(&format!("[{}]", range.join(",")), Some(Shape::OpenAi));
        let (Ok(chat), Ok(new)) = (read(&messages[..end]), read(&messages[end - 2..end])) else {
            return row.missed("the session is invalid");
        };
        let (seconds, window) = timed(|| fitter.fit(&chat, &budget, &counter));
        if window.is_err() {
            return row.missed("a turn failed");
        }
        ours += seconds;
        let Ok(candidates) = chat.candidates_for(&newest, Some(&budget), &counter) else {
            return row.missed("the candidates are invalid");
        };
        theirs += timed(|| new.tokens(&counter)).0;
        theirs += timed(|| chat.fit_candidates(&newest, &budget, &candidates, &counter)).0;
    }
    row.peer(Figure::of(theirs, Unit::Seconds))
        .ours(Figure::of(ours, Unit::Seconds))
        .measured(ours / theirs, Unit::Times)
}

/// All views of a tool result of 1 MB over the count of its tokens.
fn large_result(session: Session) -> Row {
    let row = Row::new(
        35,
        "all shorter views of a result of 1 MB / counting its tokens",
    )
    .goal(at_most(1.0, 1.0));
    let mut text = String::new();
    for part in ours_texts(1_000).iter().cycle() {
        if text.len() > 1_000_000 {
            break;
        }
        text.push_str(part);
        text.push('\n');
    }
    let call =
        json!({"id": "a", "type": "function", "function": {"name": "read", "arguments": "{}"}});
    let newest =
        json!({"id": "b", "type": "function", "function": {"name": "read", "arguments": "{}"}});
    let messages = json!([
        {"role": "user", "content": "Read the log."},
        {"role": "assistant", "content": null, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "a", "content": text},
        {"role": "assistant", "content": null, "tool_calls": [newest]},
        {"role": "tool", "tool_call_id": "b", "content": "ok"},
    ]);
    let Ok(chat) = Chat::parse(&messages.to_string(), Some(Shape::OpenAi)) else {
        return row.missed("the chat is invalid");
    };
    let (counter, policy) = (Encoding::O200k, single_policy());
    let (counting, _) = alone(session.plan(), || chat.tokens(&counter));
    let (both, _) = alone(session.plan(), || {
        chat.candidates_for(&policy, None, &counter)
    });
    let views = (both.seconds - counting.seconds).max(0.0);
    row.peer(counting.figure())
        .ours(Figure::of(views, Unit::Seconds))
        .measured(views / counting.seconds, Unit::Times)
}
