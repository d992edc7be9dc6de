//! Transcripts with questions and marked evidence, one per line.

use std::collections::BTreeMap;
use std::path::Path;

use chrono::DateTime;
use cupel::ContextItem;
use cupel::config::{Document, Format};
use cupel_chat::{Encoding, TokenCounter as _};
use rayon::prelude::*;
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::failure::Failure;
use cupel_app::Source;

/// The format of a line, for errors.
pub(super) const LINE: &str = "a line: {\"items\": [{\"content\": \"...\", \"tokens\": 12}], \
    \"questions\": [{\"query\": \"...\", \"evidence\": [0]}]}";

/// The metadata key of the session of an item.
const SESSION: &str = "cupel:session";

/// The transcripts of a file.
pub(super) struct Dataset {
    pub(super) name: String,
    pub(super) transcripts: Vec<Transcript>,
    /// The questions without evidence. They are not measured.
    pub(super) skipped: usize,
}

/// A transcript with its questions.
pub(super) struct Transcript {
    /// The line, from 1.
    pub(super) line: usize,
    pub(super) items: Vec<ContextItem>,
    pub(super) questions: Vec<Question>,
}

/// A question and the items that are needed to answer it.
#[derive(Debug, PartialEq)]
pub(super) struct Question {
    pub(super) query: String,
    /// Positions of items, ascending, at least one.
    pub(super) evidence: Vec<usize>,
}

impl Dataset {
    /// Reads a file. Blank lines are skipped.
    pub(super) fn read(path: &Path) -> Result<Self, Failure> {
        let source = crate::input::read(path)?;
        let lines: Vec<(usize, &str)> = (1..)
            .zip(source.text.lines())
            .filter(|(_, line)| !line.trim().is_empty())
            .collect();
        let transcripts: Vec<Result<_, _>> = lines
            .par_iter()
            .map(|&(line, text)| {
                Source::line(&source.name, line, text.into())
                    .map_err(Failure::from)
                    .and_then(|line| transcript(&line))
            })
            .collect();
        // The first error in the order of the lines, whatever thread found one first.
        let transcripts: Result<Vec<_>, _> = transcripts.into_iter().collect();
        let (transcripts, skipped): (Vec<_>, Vec<_>) = transcripts?.into_iter().unzip();
        let dataset = Self {
            name: source.name,
            transcripts,
            skipped: skipped.iter().sum(),
        };
        if dataset.questions() == 0 {
            return Err(Failure::input("no question has evidence")
                .in_file(&dataset.name)
                .help(LINE));
        }
        Ok(dataset)
    }

    /// Returns the number of questions with evidence.
    pub(super) fn questions(&self) -> usize {
        let questions = self.transcripts.iter();
        questions.map(|transcript| transcript.questions.len()).sum()
    }
}

/// Reads a transcript. Returns it with the number of its questions without evidence.
fn transcript(line: &Source) -> Result<(Transcript, usize), Failure> {
    #[derive(Deserialize)]
    struct Fields<'a> {
        #[serde(borrow)]
        items: Option<Vec<&'a RawValue>>,
        #[serde(borrow)]
        questions: Option<Vec<&'a RawValue>>,
    }
    let fields: Fields<'_> = serde_json::from_str(&line.text).map_err(|error| {
        let place = line.place(1, error.column().max(1), String::new());
        let message = error.to_string();
        let message = message.split(" at line ").next().unwrap_or_default();
        Failure::input(message).at(place).help(LINE)
    })?;
    let missing = |key: &str| {
        Failure::input(format!("missing `{key}`"))
            .at(line.whole())
            .help(LINE)
    };
    let raw = fields.items.ok_or_else(|| missing("items"))?;
    if raw.is_empty() {
        return Err(Failure::input("the transcript has no items")
            .at(line.place(1, 1, "items".to_owned()))
            .help(LINE));
    }
    let mut items = Vec::with_capacity(raw.len());
    for (index, raw) in raw.into_iter().enumerate() {
        items.push(item(line, raw, index)?);
    }
    if items
        .iter()
        .all(|item: &ContextItem| item.timestamp().is_none())
    {
        items = in_order(&items);
    }
    let mut questions = Vec::new();
    let mut skipped = 0;
    let raw = fields.questions.ok_or_else(|| missing("questions"))?;
    for (index, raw) in raw.into_iter().enumerate() {
        let question = question(raw, items.len()).map_err(|(field, message)| {
            let path = format!("questions[{index}]{field}");
            Failure::input(message)
                .at(line.place(1, column(line, raw), path))
                .help(LINE)
        })?;
        if question.evidence.is_empty() {
            skipped += 1;
        } else {
            questions.push(question);
        }
    }
    let transcript = Transcript {
        line: line.line.unwrap_or(1),
        items,
        questions,
    };
    Ok((transcript, skipped))
}

/// Returns the column of a value of the line, from 1.
fn column(line: &Source, value: &RawValue) -> usize {
    let offset = value.get().as_ptr() as usize - line.text.as_ptr() as usize;
    line.text[..offset].chars().count() + 1
}

/// Reads an item. Its `session` becomes metadata.
fn item(line: &Source, raw: &RawValue, index: usize) -> Result<ContextItem, Failure> {
    let text = raw.get();
    let mut session = None;
    let mut without_session = None;
    if text.contains("\"session\"")
        && let Ok(mut fields) = serde_json::from_str::<BTreeMap<String, Value>>(text)
    {
        session = fields.remove("session");
        without_session = serde_json::to_string(&fields).ok();
    }
    let place = |column: usize, path: &str| {
        let dot = if path.is_empty() { "" } else { "." };
        line.place(1, column, format!("items[{index}]{dot}{path}"))
    };
    let start = || column(line, raw);
    let item = Document::parse(without_session.as_deref().unwrap_or(text), Format::Json)
        .and_then(|document| document.item_counted(&|text| Encoding::O200k.count(text)))
        .map_err(|error| {
            let within = match (error.position(), &without_session) {
                (Some(position), None) => position.column - 1,
                _ => 0,
            };
            let failure =
                Failure::input(error.message()).at(place(start() + within, &error.path()));
            match error.suggestion() {
                Some(name) => failure.help(format!("did you mean `{name}`?")),
                None => failure,
            }
        })?;
    let session = match session {
        None | Some(Value::Null) => return Ok(item),
        Some(Value::String(session)) => session,
        Some(Value::Number(session)) => session.to_string(),
        Some(_) => {
            return Err(
                Failure::input("expected a string or a number").at(place(start(), "session"))
            );
        }
    };
    let item = item.to_builder().meta(SESSION, session).build();
    item.map_err(|error| Failure::internal(error.to_string()))
}

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

/// Reads a question. An error has the path of the field.
fn question(raw: &RawValue, items: usize) -> Result<Question, (String, String)> {
    let fail = |field: &str, message: &str| Err((field.to_owned(), message.to_owned()));
    let Ok(Value::Object(fields)) = serde_json::from_str(raw.get()) else {
        return fail("", "expected an object with `query` and `evidence`");
    };
    let query = match fields.get("query") {
        Some(Value::String(query)) if !query.trim().is_empty() => query.clone(),
        Some(Value::String(_)) => return fail(".query", "the query is empty"),
        Some(_) => return fail(".query", "expected a string"),
        None => return fail("", "missing `query`"),
    };
    let positions = match fields.get("evidence") {
        Some(Value::Array(positions)) => &positions[..],
        Some(Value::Null) | None => &[],
        Some(_) => return fail(".evidence", "expected an array of positions of items"),
    };
    let mut evidence = Vec::with_capacity(positions.len());
    for (index, position) in positions.iter().enumerate() {
        let field = format!(".evidence[{index}]");
        match position.as_u64().and_then(|it| usize::try_from(it).ok()) {
            Some(position) if position < items => evidence.push(position),
            Some(position) => {
                let last = items - 1;
                return Err((
                    field,
                    format!("{position} is out of range: positions start at 0, the last is {last}"),
                ));
            }
            None => {
                return fail(
                    &field,
                    "expected the position of an item: a whole number from 0",
                );
            }
        }
    }
    evidence.sort_unstable();
    evidence.dedup();
    Ok(Question { query, evidence })
}
