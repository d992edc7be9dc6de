//! Conversations with the criterion of a good answer to their last turn, as weighted terms.
//!
//! A criterion is what people judged an answer by. Its terms are its content words, as far as they occur in earlier
//! messages: what the window must still hold. A term has the forms in which it occurs, and a weight, such as its
//! inverse document frequency:
//!
//! ```text
//! question of the last turn   Which of these venues should I book?
//! criterion                   Are the venues within a 5-minute walk of the headquarters?
//! terms                       headquarters 4.7   minute, minutes 3.3   walk, walking 1.9
//! window                      "... near the headquarters ... a walk of ..."
//! criterion recall            (4.7 + 1.9) / (4.7 + 3.3 + 1.9) = 0.67
//! ```

use std::collections::BTreeSet;
use std::fmt;

use cupel_chat::{Chat, Shape};
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::runs::{self, RunsError};

/// An example of a line, for errors and help.
pub const CONVERSATION_FORMAT: &str = "{\"messages\": [..., {\"role\": \"user\", \"content\": \"...\"}], \
    \"terms\": [{\"forms\": [\"walk\", \"walking\"], \"weight\": 1.9}]}";

/// The least length of a word of letters, in characters.
const MIN_WORD: usize = 3;

/// A conversation that ends on a user turn, and the terms of the criterion.
#[derive(Debug)]
pub struct Conversation {
    pub(crate) chat: Chat,
    pub(crate) terms: Vec<Term>,
}

/// A content word.
#[derive(Debug, Clone, PartialEq)]
pub struct Term {
    forms: Vec<String>,
    weight: f64,
}

impl Term {
    /// Creates a term. Each form is one of the [`words`] of some text.
    pub fn new(forms: Vec<String>, weight: f64) -> Self {
        Self { forms, weight }
    }
}

/// Returns the distinct words of a text in lower case: at least 3 ASCII letters, apostrophes and hyphens that start
/// with a letter, or ASCII digits, with `.`, `,` and `:` between them.
///
/// ```
/// use cupel_eval::words;
///
/// let words: Vec<String> = words("It's 5 to 12:30, at 1,200.50 a mother-in-law.").into_iter().collect();
/// assert_eq!(words, ["1,200.50", "12:30", "5", "it's", "mother-in-law"]);
/// ```
pub fn words(text: &str) -> BTreeSet<String> {
    let text = text.to_lowercase();
    let mut words = BTreeSet::new();
    let mut rest = &text[..];
    while let Some(first) = rest.chars().next() {
        let word = match first {
            'a'..='z' => {
                let word = prefix(rest, |c| c.is_ascii_lowercase() || matches!(c, '\'' | '-'));
                (word.len() >= MIN_WORD).then_some(word)
            }
            '0'..='9' => {
                let number = prefix(rest, |c| c.is_ascii_digit() || matches!(c, '.' | ',' | ':'));
                Some(number.trim_end_matches(|c: char| !c.is_ascii_digit()))
            }
            _ => None,
        };
        words.extend(word.map(str::to_owned));
        rest = &rest[word.map_or(first.len_utf8(), str::len)..];
    }
    words
}

/// Returns the longest prefix of such characters.
fn prefix(text: &str, is_part: impl Fn(char) -> bool) -> &str {
    let end = text.find(|c| !is_part(c));
    &text[..end.unwrap_or(text.len())]
}

/// Returns the share of the terms, by weight, of which a form is one of the words; 1 without terms.
///
/// ```
/// use std::collections::BTreeSet;
///
/// use cupel_eval::{Term, criterion_recall, words};
///
/// let terms = [
///     Term::new(vec!["walk".to_owned(), "walking".to_owned()], 3.0),
///     Term::new(vec!["minutes".to_owned()], 1.0),
/// ];
/// assert_eq!(criterion_recall(&terms, &words("Walking is fine.")), 0.75);
/// assert_eq!(criterion_recall(&terms, &BTreeSet::new()), 0.0);
/// ```
pub fn criterion_recall(terms: &[Term], words: &BTreeSet<String>) -> f64 {
    let is_kept = |term: &&Term| term.forms.iter().any(|form| words.contains(form));
    let weight =
        |terms: &mut dyn Iterator<Item = &Term>| terms.map(|term| term.weight).sum::<f64>();
    let all = weight(&mut terms.iter());
    if all > 0.0 {
        weight(&mut terms.iter().filter(is_kept)) / all
    } else {
        1.0
    }
}

/// The error of reading conversations: what is wrong, and where.
#[derive(Debug, Clone, PartialEq)]
pub enum ConversationError {
    /// A conversation is not a chat.
    Chat(RunsError),
    /// A conversation is a chat, but not one with a criterion.
    Criterion {
        /// The line, from 1.
        line: usize,
        /// The column in characters, from 1: of the term, or of the conversation.
        column: usize,
        /// The path of the value, such as `terms[0].weight`; empty for the whole conversation.
        path: String,
        /// What is wrong.
        problem: CriterionProblem,
    },
}

/// What is wrong with the criterion of a conversation.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CriterionProblem {
    /// The last message is not a user turn.
    #[error(
        "the last message is not a user turn; end each conversation on the turn that was judged"
    )]
    LastTurn,
    /// There are no terms.
    #[error("missing `terms`: expected an array of at least one term")]
    Missing,
    /// A term has another type.
    #[error("expected an object with `forms` and `weight`")]
    Term,
    /// The forms of a term have another type, or there are none.
    #[error("expected an array of at least one word")]
    Forms,
    /// A form is not one word in lower case, so that no text contains it.
    #[error("`{0}` is not one word in lower case: at least 3 letters, or digits")]
    Word(String),
    /// A weight has another type or range.
    #[error("expected a number above 0")]
    Weight,
}

impl fmt::Display for ConversationError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Chat(error) => error.fmt(f),
            Self::Criterion {
                line,
                column,
                path,
                problem,
            } => {
                write!(f, "line {line}, column {column}")?;
                if !path.is_empty() {
                    write!(f, ", {path}")?;
                }
                write!(f, ": {problem}")
            }
        }
    }
}

impl std::error::Error for ConversationError {}

/// Reads conversations: one per line, or the elements of an array. Other fields of a conversation are ignored.
///
/// `at` is the JSON pointer (RFC 6901) of the chat in each conversation, empty if it is the chat; `terms` are beside
/// it. `shape` is the chat format, detected if it is `None`.
///
/// # Errors
///
/// The first conversation that is no chat, or has no valid criterion.
///
/// ```
/// use cupel_eval::parse_conversations;
///
/// let line = r#"{"messages": [{"role": "user", "content": "Hi"}], "terms": [{"forms": ["walk"], "weight": 0}]}"#;
/// let error = parse_conversations(line, "", None).unwrap_err();
/// assert_eq!(error.to_string(), "line 1, column 61, terms[0].weight: expected a number above 0");
/// ```
pub fn parse_conversations(
    text: &str,
    at: &str,
    shape: Option<Shape>,
) -> Result<Vec<Conversation>, ConversationError> {
    let chats = runs::parse_each(text, at, shape).map_err(ConversationError::Chat)?;
    let conversation = |(raw, chat): (&str, Chat)| {
        let conversation = conversation(raw, chat);
        conversation.map_err(|Invalid { at, path, problem }| {
            // The value is a slice of the text, so its address gives its place.
            let (line, column) = runs::place(text, at);
            ConversationError::Criterion {
                line,
                column,
                path,
                problem,
            }
        })
    };
    chats.into_iter().map(conversation).collect()
}

/// An invalid value.
struct Invalid<'t> {
    /// The text that starts at the value, or at what contains it.
    at: &'t str,
    path: String,
    problem: CriterionProblem,
}

fn conversation(raw: &str, chat: Chat) -> Result<Conversation, Invalid<'_>> {
    #[derive(Deserialize)]
    struct Fields<'t> {
        #[serde(borrow)]
        terms: Vec<&'t RawValue>,
    }

    let whole = |problem| Invalid {
        at: raw,
        path: String::new(),
        problem,
    };
    if !chat
        .messages()
        .last()
        .is_some_and(cupel_chat::Message::is_user_turn)
    {
        return Err(whole(CriterionProblem::LastTurn));
    }
    let fields = serde_json::from_str(raw.trim_start_matches('\u{feff}')).ok();
    let terms = fields.map(|Fields { terms }| terms);
    let terms = terms.filter(|terms| !terms.is_empty());
    let terms = terms.ok_or_else(|| whole(CriterionProblem::Missing))?;
    let terms = terms.into_iter().enumerate().map(|(index, raw)| {
        term(raw.get()).map_err(|(field, problem)| Invalid {
            at: raw.get(),
            path: format!("terms[{index}]{field}"),
            problem,
        })
    });
    let terms = terms.collect::<Result<_, _>>()?;
    Ok(Conversation { chat, terms })
}

/// Reads a term. An error has the path of the field in the term.
fn term(raw: &str) -> Result<Term, (String, CriterionProblem)> {
    let Ok(Value::Object(fields)) = serde_json::from_str(raw) else {
        return Err((String::new(), CriterionProblem::Term));
    };
    let weight = fields.get("weight").and_then(Value::as_f64);
    let weight = weight.filter(|weight| *weight > 0.0);
    let weight = weight.ok_or((".weight".to_owned(), CriterionProblem::Weight))?;
    let forms = fields.get("forms").and_then(Value::as_array);
    let forms = forms.filter(|forms| !forms.is_empty());
    let forms = forms.ok_or((".forms".to_owned(), CriterionProblem::Forms))?;
    let forms = forms.iter().enumerate().map(|(index, form)| {
        let path = || format!(".forms[{index}]");
        let form = form.as_str().ok_or((path(), CriterionProblem::Forms))?;
        if words(form) == BTreeSet::from([form.to_owned()]) {
            Ok(form.to_owned())
        } else {
            Err((path(), CriterionProblem::Word(form.to_owned())))
        }
    });
    Ok(Term::new(forms.collect::<Result<_, _>>()?, weight))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sorted(text: &str) -> Vec<String> {
        words(text).into_iter().collect()
    }

    /// The expression of the measure: `[A-Za-z][A-Za-z'-]{2,}|\d[\d.,:]*\d|\d`.
    #[test]
    fn words_have_three_letters_or_are_numbers() {
        assert_eq!(sorted("To be or not TO BE"), ["not"]);
        assert_eq!(
            sorted("don't re-do 'quoted' it-"),
            ["don't", "it-", "quoted'", "re-do"]
        );
        assert_eq!(
            sorted("At 9: 10:30, 3.5. v2 x86_64"),
            ["10:30", "2", "3.5", "64", "86", "9"]
        );
        assert_eq!(sorted("caf\u{e9}s na\u{ef}ve \u{c4}RZTE"), ["caf", "rzte"]);
        assert_eq!(sorted("1..2 3,,"), ["1..2", "3"]);
        assert_eq!(sorted(""), [] as [&str; 0]);
    }
}
