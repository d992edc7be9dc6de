//! The measures of the window of an agent's history: pure functions of the history and the window.
//!
//! `docs/agents.md` of the repository defines each measure. A [`Message`] is what the measures need of a message of
//! any provider, and a [`Window`] says where each message of a trimmed request comes from.

use std::collections::BTreeSet;

use serde_json::Value;

/// The least length of an argument value, in characters. Shorter ones, such as `2`, `USD` and `yes`, occur by
/// chance in almost every history, so that every window would contain them.
const MIN_VALUE: usize = 4;

/// The least length of a line of a call's arguments, in characters: shorter ones, such as `return None`, are in many
/// files.
const MIN_LINE: usize = 12;

/// The characters before a value that identify its place in a text. The key of `"user_id": "mia_3668"` with its
/// quotes and the colon has as many, and a cut a little before the value leaves so few.
const CONTEXT: usize = 12;

/// A message of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Message {
    /// Who wrote it.
    pub author: Author,
    /// The message as written.
    pub json: String,
    /// Its text; a tool call is `name(arguments)`.
    pub text: String,
    /// Its tokens.
    pub tokens: i64,
    /// The ids of its tool calls.
    pub calls: Vec<String>,
    /// The ids of the tool calls whose results it contains.
    pub results: Vec<String>,
}

/// Who wrote a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Author {
    /// The caller: instructions.
    System,
    /// The user: a user turn.
    User,
    /// The model.
    Assistant,
    /// Tool results and everything else.
    Other,
}

/// The messages of a window.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Window<'m> {
    /// Its messages in order.
    pub messages: &'m [Message],
    /// The position of each message in the history, ascending; `None` for a message that trimming added.
    pub origins: Vec<Option<usize>>,
}

impl Message {
    fn is_system(&self) -> bool {
        self.author == Author::System
    }
}

impl Window<'_> {
    fn with_origins(&self) -> impl Iterator<Item = (&Message, Option<usize>)> {
        self.messages.iter().zip(self.origins.iter().copied())
    }

    /// Returns the positions in the history of its messages, system messages aside.
    fn body(&self) -> impl Iterator<Item = usize> {
        let body = self.with_origins();
        body.filter(|(message, _)| !message.is_system())
            .filter_map(|(_, origin)| origin)
    }

    /// Returns its form of each message of the history; `None` for one that it does not have.
    fn forms(&self, history: &[Message]) -> Vec<Option<&Message>> {
        let mut forms = vec![None; history.len()];
        for (message, origin) in self.with_origins() {
            if let Some(form) = origin.and_then(|origin| forms.get_mut(origin)) {
                *form = Some(message);
            }
        }
        forms
    }
}

/// Returns the distinct values in the JSON arguments of a tool call: strings and numbers of at least
/// 4 characters. Arguments that are not JSON have none.
pub fn argument_values(arguments: &str) -> BTreeSet<String> {
    let mut values = BTreeSet::new();
    if let Ok(arguments) = serde_json::from_str(arguments) {
        visit_leaves("", &arguments, &mut |_, text| {
            if text.chars().count() >= MIN_VALUE {
                values.insert(text.to_owned());
            }
        });
    }
    values
}

/// Returns the distinct lines of the strings in the JSON arguments of a tool call that have several lines: what an
/// edit quotes. Lines of less than 12 characters occur by chance.
pub fn argument_lines(arguments: &str) -> BTreeSet<String> {
    let mut lines = BTreeSet::new();
    if let Ok(arguments) = serde_json::from_str(arguments) {
        visit_leaves("", &arguments, &mut |_, text| {
            if text.contains('\n') {
                let own = text.lines().map(str::trim);
                let own = own.filter(|line| line.chars().count() >= MIN_LINE);
                lines.extend(own.map(str::to_owned));
            }
        });
    }
    lines
}

/// Returns the values that occur in the history, system messages aside.
pub fn evidence(values: &BTreeSet<String>, history: &[Message]) -> Vec<String> {
    let occurs = |value: &&String| occurs(value, history);
    values.iter().filter(occurs).cloned().collect()
}

/// Returns the share of the evidence that occurs in the window; 1 without evidence.
pub fn grounding_recall(evidence: &[String], window: &Window<'_>) -> f64 {
    share(evidence, |value| occurs(value, window.messages))
}

/// Returns the share of the evidence that occurs in an unchanged message, or in a shortened one at
/// the same place as in the original.
pub fn supported_recall(evidence: &[String], history: &[Message], window: &Window<'_>) -> f64 {
    share(evidence, |value| {
        window.with_origins().any(|(message, origin)| {
            let Some(original) = origin.and_then(|origin| history.get(origin)) else {
                return false;
            };
            !message.is_system()
                && message.text.contains(value)
                && (message.json == original.json
                    || has_same_place(value, &original.text, &message.text))
        })
    })
}

fn share(evidence: &[String], is_kept: impl Fn(&str) -> bool) -> f64 {
    if evidence.is_empty() {
        return 1.0;
    }
    let kept = evidence.iter().filter(|value| is_kept(value)).count();
    kept as f64 / evidence.len() as f64
}

fn occurs(value: &str, messages: &[Message]) -> bool {
    let has = |message: &Message| !message.is_system() && message.text.contains(value);
    messages.iter().any(has)
}

/// Returns whether a value occurs in both texts after the same 12 characters or under the same key.
fn has_same_place(value: &str, original: &str, shortened: &str) -> bool {
    let share_one = |of: fn(&str, &str) -> BTreeSet<String>| {
        !of(value, original).is_disjoint(&of(value, shortened))
    };
    share_one(contexts) || share_one(keys)
}

/// Returns the 12 characters before each occurrence of a value, fewer at the start of the text.
fn contexts(value: &str, text: &str) -> BTreeSet<String> {
    let context = |(at, _): (usize, &str)| {
        let start = text[..at].char_indices().rev().nth(CONTEXT - 1);
        text[start.map_or(0, |(start, _)| start)..at].to_owned()
    };
    text.match_indices(value).map(context).collect()
}

/// Returns the keys under which a value occurs in the JSON of a text.
fn keys(value: &str, text: &str) -> BTreeSet<String> {
    let mut keys = BTreeSet::new();
    let mut visit = |key: &str, text: &str| {
        if text.contains(value) {
            keys.insert(key.to_owned());
        }
    };
    match serde_json::from_str(text) {
        Ok(document) => visit_leaves_and_keys("", &document, &mut visit),
        // One JSON document per line, as many tools print. Lines of other text have no keys.
        Err(_) => {
            for document in text.lines().flat_map(serde_json::from_str) {
                visit_leaves_and_keys("", &document, &mut visit);
            }
        }
    }
    keys
}

/// Visits each string and number with its key. The elements of an array have the key of the array.
fn visit_leaves(key: &str, value: &Value, visit: &mut dyn FnMut(&str, &str)) {
    match value {
        Value::Object(fields) => {
            for (key, value) in fields {
                visit_leaves(key, value, visit);
            }
        }
        Value::Array(values) => {
            for value in values {
                visit_leaves(key, value, visit);
            }
        }
        Value::String(text) => visit(key, text),
        Value::Number(number) => visit(key, &number.to_string()),
        Value::Bool(_) | Value::Null => {}
    }
}

/// As [`visit_leaves`]; a key is also a value of the enclosing key, because identifiers are keys in
/// maps by id.
fn visit_leaves_and_keys(key: &str, value: &Value, visit: &mut dyn FnMut(&str, &str)) {
    match value {
        Value::Object(fields) => {
            for (inner, value) in fields {
                visit(key, inner);
                visit_leaves_and_keys(inner, value, visit);
            }
        }
        Value::Array(values) => {
            for value in values {
                visit_leaves_and_keys(key, value, visit);
            }
        }
        leaf => visit_leaves(key, leaf, visit),
    }
}

/// Returns the tokens of the messages, system messages aside.
pub fn body_tokens(messages: &[Message]) -> i64 {
    sum(body(messages))
}

/// Returns all but the system messages.
fn body(messages: &[Message]) -> impl Iterator<Item = &Message> {
    messages.iter().filter(|message| !message.is_system())
}

/// Returns the tokens of the longest common prefix of two requests, by whole messages.
pub fn shared_prefix(previous: &[Message], next: &[Message]) -> i64 {
    prefix(previous.iter(), next.iter())
}

/// Returns the tokens of the longest common prefix, system messages aside.
pub fn shared_body(previous: &[Message], next: &[Message]) -> i64 {
    prefix(body(previous), body(next))
}

fn prefix<'m>(
    previous: impl Iterator<Item = &'m Message>,
    next: impl Iterator<Item = &'m Message>,
) -> i64 {
    let pairs = previous.zip(next);
    let equal = pairs.take_while(|(previous, next)| previous.json == next.json);
    sum(equal.map(|(message, _)| message))
}

/// Returns the tokens of messages. A counter of the caller may return any number, so the sum saturates.
pub(crate) fn sum<'m>(messages: impl Iterator<Item = &'m Message>) -> i64 {
    messages.fold(0, |sum, message| sum.saturating_add(message.tokens))
}

/// Returns whether a tool result has no earlier call, or a call no later result.
pub fn has_orphan(messages: &[Message]) -> bool {
    let mut calls: BTreeSet<&str> = BTreeSet::new();
    let mut unanswered: BTreeSet<&str> = BTreeSet::new();
    for message in messages {
        for result in &message.results {
            if !calls.contains(result.as_str()) {
                return true;
            }
            unanswered.remove(result.as_str());
        }
        for call in &message.calls {
            calls.insert(call);
            unanswered.insert(call);
        }
    }
    !unanswered.is_empty()
}

/// Returns whether messages are missing inside the window, or the newest ones. The first gap is none: it is behind the
/// head, the kept messages from the start of the history, which may be none. Neither is a gap beside the task (the
/// first user turn) or the last user turn, because these are kept wherever they are.
///
/// ```text
/// head, task among them   gap      newest step
/// 0 1 2 3                 - - -    7 8 9         no hole
/// 0 1 2 3                 - 5 -    7 8 9         a hole, unless 5 is the last user turn
/// ```
pub fn has_hole(history: &[Message], window: &Window<'_>) -> bool {
    let turns = user_turns(history);
    let is_gap = |from: usize, to: usize| {
        let between = history.get(from..to).unwrap_or_default();
        between.iter().any(|message| !message.is_system())
    };
    let is_turn = |at: usize| turns.contains(&Some(at));
    let mut gaps = 0;
    let mut is_inside = false;
    // The position after the last kept message.
    let mut next = 0;
    for at in window.body() {
        if is_gap(next, at) {
            let is_beside_turn = is_turn(at) || next.checked_sub(1).is_some_and(is_turn);
            is_inside |= gaps > 0 && !is_beside_turn;
            gaps += 1;
        }
        next = at + 1;
    }
    is_inside || is_gap(next, history.len())
}

/// Returns the positions of the first user turn, the task, and of the last one.
fn user_turns(history: &[Message]) -> [Option<usize>; 2] {
    let is_user = |message: &Message| message.author == Author::User;
    [
        history.iter().position(is_user),
        history.iter().rposition(is_user),
    ]
}

/// Returns the positions of the messages that the next answer needs: the task, the last user turn, the newest step and
/// pending calls.
///
/// The newest step is the last answer with calls, and their results, if no user turn follows it. A pending call is one
/// of the last answer without a result.
fn mandatory(history: &[Message]) -> BTreeSet<usize> {
    let turns = user_turns(history);
    let mut mandatory: BTreeSet<usize> = turns.into_iter().flatten().collect();
    let is_model = |at: usize| history[at].author == Author::Assistant;
    let Some(end) = (0..history.len()).rfind(|&at| is_model(at)) else {
        return mandatory;
    };
    let start = (0..end).rfind(|&at| !is_model(at)).map_or(0, |at| at + 1);
    let results = |id| (end..history.len()).filter(move |&at| history[at].results.contains(id));
    let is_newest = turns[1].is_none_or(|turn| turn < start);
    for (at, message) in history.iter().enumerate().take(end + 1).skip(start) {
        for call in &message.calls {
            let is_pending = results(call).next().is_none();
            if is_newest || is_pending {
                mandatory.insert(at);
                mandatory.extend(results(call));
            }
        }
    }
    mandatory
}

/// Returns whether the window lacks a message that the next answer needs, in any form: the task (the first user turn),
/// the last user turn, the newest step (the last answer with its calls and their results, if no user turn follows), or
/// a call of the last answer that has no result yet.
pub fn lacks_mandatory(history: &[Message], window: &Window<'_>) -> bool {
    let kept: BTreeSet<usize> = window.body().collect();
    !mandatory(history).is_subset(&kept)
}

/// How a window continues the one before.
///
/// ```text
/// window of request 1    0  1  2                 request 2 may use the cached prefix 0 1 2
/// window of request 2    0  1  2  3  4           nothing changed
/// window of request 3    0  1' 2  3  4  5  6     a cut: message 1 became shorter
/// window of request 4    0  1' 3  4  5  6  7     a cut: message 2 was dropped
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Continuation {
    /// The window does not start with the one before byte for byte, although no message of that was dropped or
    /// shortened.
    pub is_broken: bool,
    /// A message that was dropped or shortened is back, or longer.
    pub is_longer: bool,
}

impl Continuation {
    /// Compares a window with the one before, which is of the first `before` messages of the history. System messages
    /// are aside.
    ///
    /// A window in which a message that the next answer needs is shortened, and that has another form in the next
    /// window, was a squeeze: the message alone exceeded the budget, and all of the window was for that request only.
    /// It is not compared.
    pub fn of(
        history: &[Message],
        before: usize,
        previous: &Window<'_>,
        next: &Window<'_>,
    ) -> Self {
        let before = history.get(..before).unwrap_or(history);
        let forms = previous.forms(history).into_iter().zip(next.forms(history));
        let forms: Vec<(Option<&Message>, Option<&Message>)> = forms.collect();
        let tokens = |form: Option<&Message>| form.map_or(0, |form| form.tokens);
        let is_squeezed = mandatory(before).into_iter().any(|at| {
            let (previous, next) = forms[at];
            let is_shorter = tokens(previous) < history[at].tokens;
            is_shorter && previous.map(|form| &form.json) != next.map(|form| &form.json)
        });
        let (mut is_cut, mut is_longer) = (false, false);
        for (original, (previous, next)) in before.iter().zip(&forms) {
            let (previous, next) = (tokens(*previous), tokens(*next));
            if !original.is_system() {
                is_cut |= next < previous;
                is_longer |= previous < original.tokens && next > previous;
            }
        }
        let mut rest = body(next.messages);
        let starts =
            body(previous.messages).all(|it| rest.next().is_some_and(|next| next.json == it.json));
        Self {
            is_broken: !starts && !is_cut && !is_squeezed,
            is_longer: is_longer && !is_squeezed,
        }
    }
}

/// The place of a message in the alternation of user and assistant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Part {
    User,
    /// An assistant message with tool calls, which continues the turn of the assistant.
    Calls,
    /// An assistant message without tool calls, which ends it.
    Answer,
}

impl Part {
    fn of(message: &Message) -> Option<Self> {
        match message.author {
            Author::User => Some(Self::User),
            Author::Assistant if message.calls.is_empty() => Some(Self::Answer),
            Author::Assistant => Some(Self::Calls),
            Author::System | Author::Other => None,
        }
    }

    /// Returns whether chat templates that check the roles accept the other part next.
    fn accepts(self, next: Self) -> bool {
        // After an answer comes a user turn; after a user turn or a call comes the assistant.
        (self == Self::Answer) == (next == Self::User)
    }
}

/// Returns whether trimming broke the alternation of user and assistant: the window does not start on
/// a user turn, or has two consecutive parts that do not alternate. What the history has as well does
/// not count.
pub fn breaks_alternation(history: &[Message], window: &Window<'_>) -> bool {
    let mut previous = None;
    for (message, origin) in window.with_origins() {
        let Some(part) = Part::of(message) else {
            continue;
        };
        // A break is not the trimming's fault if the two messages follow each other in the history, too.
        let is_new = match (previous, origin) {
            (None, Some(origin)) => !follows(history, None, origin),
            (Some((_, Some(before))), Some(origin)) => !follows(history, Some(before), origin),
            _ => true,
        };
        let alternates = match previous {
            None => part == Part::User,
            Some((before, _)) => Part::accepts(before, part),
        };
        if is_new && !alternates {
            return true;
        }
        previous = Some((part, origin));
    }
    false
}

/// Returns whether no message of the user or the assistant is between two positions of the history.
fn follows(history: &[Message], before: Option<usize>, at: usize) -> bool {
    let from = before.map_or(0, |before| before + 1);
    let between = history.get(from..at).unwrap_or_default();
    between.iter().all(|message| Part::of(message).is_none())
}

#[cfg(test)]
mod tests {
    use super::*;

    const ARGUMENTS: &str = r#"{"reservation": "ZFA04Y", "refund_to": "gift_card_8190333",
        "amount": 1375, "flights": [{"number": "HAT199"}, "HAT045", "HAT045"], "agent": "staff_77",
        "note": "n/a", "count": 2, "confirmed": true, "coupon": null}"#;

    fn message(author: Author, text: &str) -> Message {
        Message {
            author,
            json: format!("{author:?} {text}"),
            text: text.to_owned(),
            tokens: 10,
            calls: Vec::new(),
            results: Vec::new(),
        }
    }

    fn call(id: &str, text: &str) -> Message {
        Message {
            calls: vec![id.to_owned()],
            ..message(Author::Assistant, text)
        }
    }

    fn result(id: &str, text: &str) -> Message {
        Message {
            results: vec![id.to_owned()],
            ..message(Author::Other, text)
        }
    }

    const RESERVATION: &str = r#"{"reservation": "ZFA04Y", "user": "mia_li_3668", "flights": [{"number": "HAT045"}, {"number": "HAT199"}], "price": 1375}"#;

    /// A run of ten messages; position 1 is the task, 9 the last user turn.
    fn history() -> Vec<Message> {
        use Author::{Assistant, System, User};
        vec![
            message(System, "You are staff_77, a booking agent."),
            message(User, "Please cancel reservation ZFA04Y."),
            call("c1", r#"get_reservation({"id": "ZFA04Y"})"#),
            result("c1", RESERVATION),
            message(Assistant, "Cancel the flights HAT045 and HAT199?"),
            message(User, "Yes. Which gift card gets the refund?"),
            call("c2", r#"get_user({"id": "mia_li_3668"})"#),
            result(
                "c2",
                r#"{"payment": {"gift_card_8190333": {"amount": 120}}}"#,
            ),
            message(Assistant, "The one that ends in 0333. Go on?"),
            message(User, "Yes, go on."),
        ]
    }

    fn window<'m>(messages: &'m [Message], origins: &[Option<usize>]) -> Window<'m> {
        assert_eq!(messages.len(), origins.len());
        Window {
            messages,
            origins: origins.to_vec(),
        }
    }

    /// Calls a measure with the window of these positions; `None` is an added assistant message.
    fn on<T>(positions: &[Option<usize>], measure: impl Fn(&[Message], &Window<'_>) -> T) -> T {
        let history = history();
        let marker = || message(Author::Assistant, "[2 earlier messages omitted, HAT199]");
        let kept = positions.iter();
        let kept = kept.map(|origin| origin.map_or_else(marker, |at| history[at].clone()));
        let kept: Vec<Message> = kept.collect();
        measure(&history, &window(&kept, positions))
    }

    fn at<const N: usize>(positions: [usize; N]) -> [Option<usize>; N] {
        positions.map(Some)
    }

    fn proof() -> Vec<String> {
        evidence(&argument_values(ARGUMENTS), &history())
    }

    #[test]
    fn values_are_distinct_strings_and_numbers_of_four_characters() {
        let values: Vec<String> = argument_values(ARGUMENTS).into_iter().collect();
        assert_eq!(
            values,
            [
                "1375",
                "HAT045",
                "HAT199",
                "ZFA04Y",
                "gift_card_8190333",
                "staff_77"
            ]
        );
        assert!(argument_values("not JSON").is_empty());
    }

    #[test]
    fn evidence_occurs_outside_the_system_messages() {
        assert_eq!(
            proof(),
            ["1375", "HAT045", "HAT199", "ZFA04Y", "gift_card_8190333"]
        );
    }

    #[test]
    fn grounding_recall_is_the_share_of_evidence_in_the_window() {
        let recall = |positions: &[Option<usize>]| {
            on(positions, |_, window| grounding_recall(&proof(), window))
        };
        assert_eq!(recall(&at([0, 1, 2, 3, 4, 5, 6, 7, 8, 9])), 1.0);
        assert_eq!(recall(&at([0, 5, 6, 7, 8, 9])), 0.2);
        assert_eq!(recall(&at([0, 4, 5, 8, 9])), 0.4);
        // An added message counts.
        assert_eq!(recall(&[Some(0), None, Some(9)]), 0.2);
    }

    #[test]
    fn supported_recall_ignores_added_messages() {
        let recall = |positions: &[Option<usize>]| {
            on(positions, |history, window| {
                supported_recall(&proof(), history, window)
            })
        };
        assert_eq!(recall(&at([0, 4, 5, 8, 9])), 0.4);
        assert_eq!(recall(&[Some(0), None, Some(9)]), 0.0);
    }

    /// The share of the evidence that a shortened result at position 3 keeps: grounded, supported.
    fn shortened(text: &str) -> (f64, f64) {
        let history = history();
        let kept = [result("c1", text)];
        let window = window(&kept, &[Some(3)]);
        (
            grounding_recall(&proof(), &window),
            supported_recall(&proof(), &history, &window),
        )
    }

    #[test]
    fn a_shortened_value_is_supported_under_its_key() {
        assert_eq!(
            shortened(r#"{"number":["HAT199"],"price":[1375]}"#),
            (0.4, 0.4)
        );
        assert_eq!(
            shortened(r#"{"ids":["HAT199"],"price":[1375]}"#),
            (0.4, 0.2)
        );
        assert_eq!(shortened("HAT199, 1375"), (0.4, 0.0));
        // One JSON document per line.
        assert_eq!(shortened("[cut]\n{\"number\":\"HAT199\"}"), (0.2, 0.2));
    }

    #[test]
    fn a_shortened_value_is_supported_after_its_12_characters() {
        assert_eq!(shortened(r#"{"reservation": "ZFA04Y", [cut]"#), (0.2, 0.2));
        assert_eq!(shortened(r#"ervation": "ZFA04Y"#), (0.2, 0.2));
        assert_eq!(shortened(r#"rvation": "ZFA04Y"#), (0.2, 0.0));
    }

    #[test]
    fn an_identifier_that_is_a_key_is_a_value_of_the_enclosing_key() {
        let history = history();
        let kept = [result("c2", r#"{"payment":["gift_card_8190333"]}"#)];
        let window = window(&kept, &[Some(7)]);
        assert_eq!(supported_recall(&proof(), &history, &window), 0.2);
    }

    #[test]
    fn the_prefix_ends_at_the_first_message_that_differs() {
        let previous = history();
        let mut next = history();
        assert_eq!(shared_prefix(&previous, &next), 100);
        assert_eq!(shared_body(&previous, &next), 90);
        next[4].json.push(' ');
        assert_eq!(shared_prefix(&previous, &next), 40);
        assert_eq!(shared_body(&previous, &next), 30);
        assert_eq!(shared_prefix(&previous, &next[1..]), 0);
        assert_eq!(shared_body(&previous, &next[1..]), 30);
        assert_eq!(body_tokens(&previous), 90);
    }

    #[test]
    fn a_call_and_its_result_are_orphans_without_each_other() {
        let orphan = |positions: &[usize]| {
            let history = history();
            let kept: Vec<Message> = positions.iter().map(|&at| history[at].clone()).collect();
            has_orphan(&kept)
        };
        assert!(!orphan(&[0, 1, 2, 3, 4, 5, 6, 7, 8, 9]));
        assert!(!orphan(&[0, 6, 7, 9]));
        assert!(orphan(&[0, 6, 9]));
        assert!(orphan(&[0, 7, 9]));
        assert!(orphan(&[0, 7, 6, 9]));
    }

    #[test]
    fn a_gap_behind_the_head_or_beside_a_mandatory_user_turn_is_no_hole() {
        let hole = |positions: &[Option<usize>]| on(positions, has_hole);
        assert!(!hole(&at([0, 1, 2, 3, 4, 5, 6, 7, 8, 9])));
        // The head is empty, the task, or three messages.
        assert!(!hole(&at([0, 5, 6, 7, 8, 9])));
        assert!(!hole(&at([0, 1, 6, 7, 8, 9])));
        assert!(!hole(&at([0, 1, 2, 3, 8, 9])));
        assert!(!hole(&[Some(0), Some(1), None, Some(9)]));
        // A second gap is beside the last user turn.
        assert!(!hole(&at([0, 4, 9])));
        assert!(!hole(&at([0, 1, 6, 7, 9])));
        // A second gap, a third one, and missing newest messages.
        assert!(hole(&at([0, 5, 8, 9])));
        assert!(hole(&at([0, 1, 2, 3, 5, 8, 9])));
        assert!(hole(&at([0, 1, 5, 8, 9])));
        assert!(hole(&at([0, 1, 2, 3, 4, 5])));
        assert!(hole(&at([0])));
    }

    /// The run with a greeting before the task, so that a gap at the start leaves the task alone.
    #[test]
    fn a_gap_beside_the_task_is_no_hole() {
        let mut history = history();
        history.insert(1, message(Author::Assistant, "Welcome!"));
        let hole = |positions: &[usize]| {
            let kept: Vec<Message> = positions.iter().map(|&at| history[at].clone()).collect();
            let origins: Vec<Option<usize>> = positions.iter().copied().map(Some).collect();
            has_hole(&history, &window(&kept, &origins))
        };
        assert!(!hole(&[0, 2, 7, 8, 9, 10]));
        assert!(hole(&[0, 3, 4, 7, 8, 9, 10]));
    }

    #[test]
    fn the_task_the_last_user_turn_and_the_newest_step_are_mandatory() {
        let history = history();
        let of = |len: usize| mandatory(&history[..len]).into_iter().collect::<Vec<_>>();
        // The last user turn was the answer to a step, and the newest message.
        assert_eq!(of(10), [1, 9]);
        assert_eq!(of(8), [1, 5, 6, 7]);
        assert_eq!(of(6), [1, 5]);
        assert_eq!(of(4), [1, 2, 3]);
        assert_eq!(of(2), [1]);
        assert_eq!(of(1), [] as [usize; 0]);
        let lacks = |positions: &[Option<usize>]| on(positions, lacks_mandatory);
        assert!(!lacks(&at([0, 1, 9])));
        assert!(!lacks(&[Some(0), Some(1), None, Some(9)]));
        assert!(lacks(&at([0, 1, 2, 3, 8])));
        assert!(lacks(&at([0, 5, 6, 7, 8, 9])));
    }

    /// Two calls of one answer are two messages, as in the Responses format; a user turn comes before the second
    /// result.
    #[test]
    fn a_pending_call_is_mandatory_and_an_answered_one_is_not() {
        let user = || message(Author::User, "Well?");
        let mut history = vec![user(), call("a", "first"), call("b", "second")];
        assert_eq!(mandatory(&history), BTreeSet::from([0, 1, 2]));
        history.push(result("a", "done"));
        assert_eq!(mandatory(&history), BTreeSet::from([0, 1, 2, 3]));
        history.push(user());
        assert_eq!(mandatory(&history), BTreeSet::from([0, 2, 4]));
        history.push(message(Author::Assistant, "One moment."));
        assert_eq!(mandatory(&history), BTreeSet::from([0, 4]));
    }

    /// A message in a form with other tokens than its original, which has 10.
    fn shorter(mut message: Message, tokens: i64) -> Message {
        message.tokens = tokens;
        message.json = format!("{tokens} of {}", message.json);
        message
    }

    /// Compares a window of the first 6 messages with one of all 10. A pair is a position and the tokens of its form.
    fn continuation(previous: &[(usize, i64)], next: &[(usize, i64)]) -> (bool, bool) {
        let history = history();
        let form = |&(at, tokens): &(usize, i64)| match tokens {
            10 => history[at].clone(),
            _ => shorter(history[at].clone(), tokens),
        };
        let of = |forms: &[(usize, i64)]| forms.iter().map(form).collect::<Vec<_>>();
        let origins =
            |forms: &[(usize, i64)]| forms.iter().map(|it| Some(it.0)).collect::<Vec<_>>();
        let (previous_messages, next_messages) = (of(previous), of(next));
        let next = window(&next_messages, &origins(next));
        let previous = window(&previous_messages, &origins(previous));
        let Continuation {
            is_broken,
            is_longer,
        } = Continuation::of(&history, 6, &previous, &next);
        (is_broken, is_longer)
    }

    #[test]
    fn a_prefix_is_broken_if_it_changes_without_a_cut() {
        let previous = [(0, 10), (1, 10), (2, 10), (3, 6), (4, 10), (5, 10)];
        // Nothing changed; only the system message did, which is aside.
        let mut next = [&previous[..], &[(6, 10), (7, 10), (9, 10)]].concat();
        assert_eq!(continuation(&previous, &next), (false, false));
        next[0].1 = 5;
        assert_eq!(continuation(&previous, &next), (false, false));
        // Cuts: a message is shorter, or dropped.
        next[3].1 = 4;
        assert_eq!(continuation(&previous, &next), (false, false));
        let dropped = [
            (0, 10),
            (1, 10),
            (4, 10),
            (5, 10),
            (6, 10),
            (7, 10),
            (9, 10),
        ];
        assert_eq!(continuation(&previous, &dropped), (false, false));
        // The same messages in another order.
        next[3].1 = 6;
        next.swap(4, 5);
        assert_eq!(continuation(&previous, &next), (true, false));
        assert_eq!(continuation(&[], &next), (false, false));
    }

    #[test]
    fn a_form_is_longer_if_a_shortened_or_dropped_message_is_back() {
        let next = [(1, 10), (2, 10), (3, 6), (4, 10), (5, 10), (9, 10)];
        // The result was shortened to 4, or dropped with its call.
        let shortened = [(1, 10), (2, 10), (3, 4), (4, 10), (5, 10)];
        assert_eq!(continuation(&shortened, &next), (true, true));
        let dropped = [(1, 10), (4, 10), (5, 10)];
        assert_eq!(continuation(&dropped, &next), (true, true));
        // Another message was cut at the same time.
        let next = [(1, 10), (2, 10), (3, 6), (4, 8), (5, 10), (9, 10)];
        assert_eq!(continuation(&shortened, &next), (false, true));
    }

    /// The last user turn of the earlier request, at position 5, was shortened for that request only.
    #[test]
    fn a_squeeze_is_not_compared_with_the_next_window() {
        let squeeze = [(1, 10), (2, 10), (3, 4), (4, 10), (5, 7)];
        let next = [(1, 10), (2, 10), (3, 6), (4, 10), (5, 10), (9, 10)];
        assert_eq!(continuation(&squeeze, &next), (false, false));
        // With the same form in the next window it is no squeeze.
        let next = [(1, 10), (2, 10), (3, 6), (4, 10), (5, 7), (9, 10)];
        assert_eq!(continuation(&squeeze, &next), (true, true));
    }

    #[test]
    fn trimming_must_not_break_the_alternation() {
        let breaks = |positions: &[Option<usize>]| on(positions, breaks_alternation);
        assert!(!breaks(&at([0, 1, 2, 3, 4, 5, 6, 7, 8, 9])));
        assert!(!breaks(&at([0, 1, 4, 5, 8, 9])));
        assert!(!breaks(&[Some(1), None, Some(9)]));
        // It starts on an answer, then on a call.
        assert!(breaks(&at([0, 4, 5, 8, 9])));
        assert!(breaks(&at([0, 6, 7, 8, 9])));
        // Two user turns, two answers, an answer before a call, a user turn after a call.
        assert!(breaks(&at([0, 1, 5, 6, 7, 8, 9])));
        assert!(breaks(&at([0, 1, 4, 8, 9])));
        assert!(breaks(&at([0, 1, 4, 6, 7, 8, 9])));
        assert!(breaks(&at([0, 1, 2, 3, 5, 8, 9])));
        // An added answer before a call.
        assert!(breaks(&[Some(1), None, Some(6), Some(7), Some(8), Some(9)]));
    }

    #[test]
    fn a_break_of_the_history_does_not_count() {
        let mut history = history();
        history.remove(8);
        let all: Vec<Option<usize>> = (0..history.len()).map(Some).collect();
        assert!(!breaks_alternation(&history, &window(&history, &all)));
        let kept = &history[4..];
        assert!(breaks_alternation(&history, &window(kept, &all[4..])));
    }
}
