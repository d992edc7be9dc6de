//! Transcripts with questions and marked evidence, one per line.

use std::borrow::Cow;
use std::fmt;

use chrono::DateTime;
use cupel::config::{ConfigError, Document, Format};
use cupel::{ContextItem, CupelError};
use cupel_chat::TokenCounter;
use serde::de::{Deserializer, MapAccess, Visitor};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;

use crate::bootstrap::SAMPLES;
use crate::parallel;

/// An example of a line, for errors and help.
pub const LINE_FORMAT: &str = "{\"items\": [{\"content\": \"...\", \"tokens\": 12}], \
    \"questions\": [{\"query\": \"...\", \"evidence\": [0]}]}";

/// The metadata key of the session of an item.
const SESSION: &str = "cupel:session";

/// Transcripts with questions.
#[derive(Debug, Clone, PartialEq)]
pub struct Dataset {
    name: String,
    transcripts: Vec<Transcript>,
    skipped: usize,
}

/// A transcript with its questions.
#[derive(Debug, Clone, PartialEq)]
pub struct Transcript {
    /// The line, from 1.
    pub line: usize,
    /// The items in order.
    pub items: Vec<ContextItem>,
    /// The questions.
    pub questions: Vec<Question>,
}

/// A question and the items that are needed to answer it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Question {
    query: String,
    evidence: Vec<usize>,
}

/// The size of a data set.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct DatasetSize {
    /// The name of the data set.
    #[serde(rename = "file")]
    pub name: String,
    /// The transcripts.
    pub transcripts: usize,
    /// The questions with evidence.
    pub questions: usize,
    /// The questions without evidence, which are not measured.
    pub skipped: usize,
    /// The bootstrap samples of an interval.
    pub samples: usize,
}

/// The error of reading a data set: what is wrong, and where.
#[derive(Debug, Clone, PartialEq)]
pub struct DatasetError {
    /// The line, from 1; 0 for the whole text.
    pub line: usize,
    /// The column in characters, from 1: of the value, or of the item or question that contains it.
    pub column: usize,
    /// The path of the value, such as `questions[0].evidence[1]`; empty for the whole line.
    pub path: String,
    /// What is wrong.
    pub problem: DatasetProblem,
}

/// What is wrong with a data set.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum DatasetProblem {
    /// A line is not JSON, or not an object with lists. The text is that of the JSON parser.
    #[error("{0}")]
    Json(String),
    /// A field is missing.
    #[error("missing `{0}`")]
    Missing(&'static str),
    /// A transcript has an empty list of items.
    #[error("the transcript has no items")]
    NoItems,
    /// An item is invalid.
    #[error("{}", .0.message())]
    Item(ConfigError),
    /// An item cannot have the metadata of its session.
    #[error(transparent)]
    Session(CupelError),
    /// The session of an item has another type.
    #[error("expected a string or a number")]
    SessionType,
    /// A question has another type.
    #[error("expected an object with `query` and `evidence`")]
    QuestionType,
    /// A query has another type.
    #[error("expected a string")]
    QueryType,
    /// A query is empty.
    #[error("the query is empty")]
    EmptyQuery,
    /// The evidence has another type.
    #[error("expected an array of positions of items")]
    EvidenceType,
    /// A position of evidence is not a number, or negative.
    #[error("expected the position of an item: a whole number from 0")]
    PositionType,
    /// A position of evidence is after the last item.
    #[error("{position} is out of range: positions start at 0, the last is {last}")]
    PositionOutOfRange {
        /// The position.
        position: usize,
        /// The position of the last item.
        last: usize,
    },
    /// No question has evidence, so that there is nothing to measure.
    #[error("no question has evidence")]
    NoEvidence,
}

impl DatasetProblem {
    /// Returns whether the structure of the line is wrong, so that [`LINE_FORMAT`] helps.
    pub fn is_about_structure(&self) -> bool {
        !matches!(self, Self::Item(_) | Self::Session(_) | Self::SessionType)
    }

    /// Returns the name that an unknown name in an item may stand for.
    pub fn suggestion(&self) -> Option<&str> {
        match self {
            Self::Item(error) => error.suggestion(),
            _ => None,
        }
    }
}

impl fmt::Display for DatasetError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.line > 0 {
            write!(f, "line {}, column {}", self.line, self.column)?;
            if !self.path.is_empty() {
                write!(f, ", {}", self.path)?;
            }
            f.write_str(": ")?;
        }
        write!(f, "{}", self.problem)?;
        match self.problem.suggestion() {
            Some(name) => write!(f, "; did you mean {name:?}?"),
            None => Ok(()),
        }
    }
}

impl std::error::Error for DatasetError {}

impl Question {
    /// Creates a question. The evidence is positions of items, in any order.
    pub fn new(query: impl Into<String>, mut evidence: Vec<usize>) -> Self {
        evidence.sort_unstable();
        evidence.dedup();
        let query = query.into();
        Self { query, evidence }
    }

    /// Returns the text.
    pub fn query(&self) -> &str {
        &self.query
    }

    /// Returns the positions of the evidence, ascending, each once.
    pub fn evidence(&self) -> &[usize] {
        &self.evidence
    }
}

impl Dataset {
    /// Reads one transcript per line. Blank lines are skipped. `name` names the data set in answers and errors;
    /// `counter` counts the tokens of items that do not state them.
    ///
    /// The position of an item is its time if no item has one, so that scorers by time follow the transcript. The
    /// field `session` of an item becomes the metadata `cupel:session`.
    ///
    /// # Errors
    ///
    /// The first fault in the order of the text; [`DatasetProblem::NoEvidence`] if no question has evidence.
    ///
    /// ```
    /// use cupel_chat::Encoding;
    /// use cupel_eval::Dataset;
    ///
    /// let line = r#"{"items": [{"content": "a", "tokens": 1}], "questions": [{"query": "b", "evidence": [1]}]}"#;
    /// let error = Dataset::parse("mine", line, &Encoding::O200k).unwrap_err();
    /// assert_eq!(
    ///     error.to_string(),
    ///     "line 1, column 58, questions[0].evidence[0]: 1 is out of range: positions start at 0, the last is 0"
    /// );
    /// ```
    pub fn parse(
        name: impl Into<String>,
        text: &str,
        counter: &dyn TokenCounter,
    ) -> Result<Self, DatasetError> {
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        let lines: Vec<Line<'_>> = (1..)
            .zip(text.lines())
            .map(|(number, text)| Line { number, text })
            .filter(|line| !line.text.trim().is_empty())
            .collect();
        let transcripts = parallel::map(&lines, |line| transcript(line, counter));
        // The first error in the order of the lines, not the one that a thread found first.
        let transcripts: Result<Vec<_>, _> = transcripts.into_iter().collect();
        let dataset = Self::new(name, transcripts?);
        if dataset.questions() == 0 {
            return Err(DatasetError {
                line: 0,
                column: 1,
                path: String::new(),
                problem: DatasetProblem::NoEvidence,
            });
        }
        Ok(dataset)
    }

    /// Creates a data set. Questions without evidence are left out.
    pub fn new(name: impl Into<String>, mut transcripts: Vec<Transcript>) -> Self {
        let mut skipped = 0;
        for transcript in &mut transcripts {
            let all = transcript.questions.len();
            transcript
                .questions
                .retain(|question| !question.evidence.is_empty());
            skipped += all - transcript.questions.len();
        }
        Self {
            name: name.into(),
            transcripts,
            skipped,
        }
    }

    /// Returns the name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the transcripts.
    pub fn transcripts(&self) -> &[Transcript] {
        &self.transcripts
    }

    /// Returns the number of questions with evidence.
    pub fn questions(&self) -> usize {
        let questions = self.transcripts.iter();
        questions.map(|transcript| transcript.questions.len()).sum()
    }

    /// Returns the size.
    pub fn size(&self) -> DatasetSize {
        DatasetSize {
            name: self.name.clone(),
            transcripts: self.transcripts.len(),
            questions: self.questions(),
            skipped: self.skipped,
            samples: SAMPLES,
        }
    }
}

/// A line of the text.
struct Line<'t> {
    /// From 1.
    number: usize,
    text: &'t str,
}

impl Line<'_> {
    fn error(
        &self,
        column: usize,
        path: impl Into<String>,
        problem: DatasetProblem,
    ) -> DatasetError {
        DatasetError {
            line: self.number,
            column,
            path: path.into(),
            problem,
        }
    }

    /// Returns the column of a value of the line, from 1.
    fn column(&self, value: &RawValue) -> usize {
        let offset = offset(self.text, value.get());
        self.text[..offset].chars().count() + 1
    }
}

/// Returns the byte offset of a part of a text, both of which are slices of the same string.
fn offset(text: &str, part: &str) -> usize {
    part.as_ptr().addr() - text.as_ptr().addr()
}

/// Reads a transcript.
fn transcript(line: &Line<'_>, counter: &dyn TokenCounter) -> Result<Transcript, DatasetError> {
    // Items and questions stay text here, so that their errors have a column. Other fields, such as an id, are
    // ignored.
    #[derive(Deserialize)]
    struct Fields<'a> {
        #[serde(borrow)]
        items: Option<Vec<&'a RawValue>>,
        #[serde(borrow)]
        questions: Option<Vec<&'a RawValue>>,
    }
    let fields: Fields<'_> = serde_json::from_str(line.text).map_err(|error| {
        let message = error.to_string();
        let message = message.split(" at line ").next().unwrap_or_default();
        let problem = DatasetProblem::Json(message.to_owned());
        line.error(error.column().max(1), "", problem)
    })?;
    let missing = |key| line.error(1, "", DatasetProblem::Missing(key));
    let raw = fields.items.ok_or_else(|| missing("items"))?;
    if raw.is_empty() {
        return Err(line.error(1, "items", DatasetProblem::NoItems));
    }
    let mut items = Vec::with_capacity(raw.len());
    for (index, raw) in raw.into_iter().enumerate() {
        items.push(item(line, raw, index, counter)?);
    }
    if items.iter().all(|item| item.timestamp().is_none()) {
        items = in_order(&items);
    }
    let raw = fields.questions.ok_or_else(|| missing("questions"))?;
    let mut questions = Vec::with_capacity(raw.len());
    for (index, raw) in raw.into_iter().enumerate() {
        let question = question(raw, items.len()).map_err(|(field, problem)| {
            let path = format!("questions[{index}]{field}");
            line.error(line.column(raw), path, problem)
        })?;
        questions.push(question);
    }
    Ok(Transcript {
        line: line.number,
        items,
        questions,
    })
}

/// Reads an item. Its `session` becomes metadata.
fn item(
    line: &Line<'_>,
    raw: &RawValue,
    index: usize,
    counter: &dyn TokenCounter,
) -> Result<ContextItem, DatasetError> {
    let path = |field: &str| {
        let dot = if field.is_empty() { "" } else { "." };
        format!("items[{index}]{dot}{field}")
    };
    let (text, session) = without_session(raw.get());
    let item = Document::parse(&text, Format::Json)
        .and_then(|document| document.item_counted(&|text| counter.count(text)))
        .map_err(|error| {
            let within = error.position().map_or(0, |position| position.column - 1);
            let column = line.column(raw) + within;
            line.error(column, path(&error.path()), DatasetProblem::Item(error))
        })?;
    let at = |problem| line.error(line.column(raw), path("session"), problem);
    let session = match session {
        None | Some(Value::Null) => return Ok(item),
        Some(Value::String(session)) => session,
        Some(Value::Number(session)) => session.to_string(),
        Some(_) => return Err(at(DatasetProblem::SessionType)),
    };
    let item = item.to_builder().meta(SESSION, session).build();
    item.map_err(|error| at(DatasetProblem::Session(error)))
}

/// Returns the text of an item without its field `session`, and the value of that field. White space takes the
/// place of the field, so that every other field stays in its column.
///
/// ```text
/// {"content": "a", "session": 2, "tokens": 1}
/// {"content": "a",               "tokens": 1}
/// ```
fn without_session(item: &str) -> (Cow<'_, str>, Option<Value>) {
    let whole = || (Cow::Borrowed(item), None);
    if !item.contains("\"session\"") {
        return whole();
    }
    let Ok(Members(members)) = serde_json::from_str::<Members<'_>>(item) else {
        return whole();
    };
    let mut found = members.iter().filter(|(key, _)| *key == "session");
    // The reader of items refuses duplicate keys.
    let (Some((key, value)), None) = (found.next(), found.next()) else {
        return whole();
    };
    let mut start = offset(item, key) - 1;
    let mut end = offset(item, value.get()) + value.get().len();
    // One comma goes too: the one after the field, or the one before the last field.
    let after = item[end..].trim_start();
    if after.starts_with(',') {
        end = offset(item, after) + 1;
    } else if let Some(before) = item[..start].trim_end().strip_suffix(',') {
        start = before.len();
    }
    // Columns count characters, so each character becomes one space.
    let blank = " ".repeat(item[start..end].chars().count());
    let text = [&item[..start], &blank, &item[end..]].concat();
    (Cow::Owned(text), serde_json::from_str(value.get()).ok())
}

/// The members of a JSON object in order, duplicates too. Keys with escapes are left out.
struct Members<'a>(Vec<(&'a str, &'a RawValue)>);

impl<'de> Deserialize<'de> for Members<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Object;

        impl<'de> Visitor<'de> for Object {
            type Value = Members<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut members = Vec::new();
                while let Some((Key(key), value)) = map.next_entry::<Key<'de>, &RawValue>()? {
                    if let Cow::Borrowed(key) = key {
                        members.push((key, value));
                    }
                }
                Ok(Members(members))
            }
        }

        deserializer.deserialize_map(Object)
    }
}

/// A key, borrowed from the text unless it has escapes. Only a borrowed key has a place in the text.
#[derive(Deserialize)]
struct Key<'a>(#[serde(borrow)] Cow<'a, str>);

/// Returns the items with their positions as times.
fn in_order(items: &[ContextItem]) -> Vec<ContextItem> {
    let timed = (0..).zip(items).map(|(second, item)| {
        let time = DateTime::from_timestamp(second, 0).unwrap_or_default();
        item.to_builder().timestamp(time).build()
    });
    timed
        .collect::<Result<_, _>>()
        .expect("only the time changes")
}

/// Reads a question. An error has the path of the field in the question.
fn question(raw: &RawValue, items: usize) -> Result<Question, (String, DatasetProblem)> {
    let fail = |field: &str, problem| Err((field.to_owned(), problem));
    let Ok(Value::Object(fields)) = serde_json::from_str(raw.get()) else {
        return fail("", DatasetProblem::QuestionType);
    };
    let query = match fields.get("query") {
        Some(Value::String(query)) if !query.trim().is_empty() => query,
        Some(Value::String(_)) => return fail(".query", DatasetProblem::EmptyQuery),
        Some(_) => return fail(".query", DatasetProblem::QueryType),
        None => return fail("", DatasetProblem::Missing("query")),
    };
    let positions = match fields.get("evidence") {
        Some(Value::Array(positions)) => &positions[..],
        Some(Value::Null) | None => &[],
        Some(_) => return fail(".evidence", DatasetProblem::EvidenceType),
    };
    let mut evidence = Vec::with_capacity(positions.len());
    for (index, position) in positions.iter().enumerate() {
        let problem = match position.as_u64().and_then(|it| usize::try_from(it).ok()) {
            Some(position) if position < items => {
                evidence.push(position);
                continue;
            }
            Some(position) => DatasetProblem::PositionOutOfRange {
                position,
                last: items - 1,
            },
            None => DatasetProblem::PositionType,
        };
        return fail(&format!(".evidence[{index}]"), problem);
    }
    Ok(Question::new(query, evidence))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn white_space_takes_the_place_of_a_session() {
        let cases = [
            (r#"{"a": 1, "session": 2, "b": 3}"#, r#"{"a":1,"b":3}"#, "2"),
            (r#"{"session" : "ä" ,"b": 3}"#, r#"{"b":3}"#, r#""ä""#),
            (r#"{"a": 1, "session": [1]}"#, r#"{"a":1}"#, "[1]"),
            (r#"{"session": {"session": 1}}"#, "{}", r#"{"session": 1}"#),
        ];
        let column = |text: &str| text.find(r#""b""#).map(|end| text[..end].chars().count());
        for (item, rest, session) in cases {
            let (found, value) = without_session(item);
            assert_eq!(found.replace(' ', ""), rest);
            assert_eq!(found.chars().count(), item.chars().count(), "{item}");
            assert_eq!(column(&found), column(item), "{item}");
            assert_eq!(value, serde_json::from_str(session).ok(), "{item}");
        }
    }

    #[test]
    fn other_items_are_unchanged() {
        for item in [
            r#"{"a": "\"session\""}"#,
            r#"{"a": {"session": 1}}"#,
            r#"{"session": 1, "session": 2}"#,
            r#"["session"]"#,
        ] {
            assert_eq!(without_session(item), (Cow::Borrowed(item), None));
        }
    }
}
