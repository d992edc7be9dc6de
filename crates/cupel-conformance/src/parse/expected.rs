//! Reads expectations.

use std::collections::BTreeMap;

use super::{
    labels::Labels,
    reader::{Fields, Node},
};
use crate::{
    error::{Problem, VectorError},
    model::{Field, Shortfall, Task},
    vector::{
        Expected, ExpectedEntry, ExpectedError, ExpectedOverflow, ExpectedRun, ExpectedScore,
        ExpectedSelection,
    },
};

/// Every error code of the format.
const CODES: [&str; 10] = [
    "EmptyContent",
    "EmptyKind",
    "EmptySource",
    "InvalidBudget",
    "PinnedExceedsBudget",
    "Overflow",
    "PipelineConfig",
    "ScorerConfig",
    "SlicerConfig",
    "TableTooLarge",
];

/// The type of a field of an exclusion reason.
#[derive(Clone, Copy)]
enum Holds {
    Integer,
    Text,
    /// The content of an item.
    Content,
}

/// The fields of exclusion reasons that can be compared.
const REASON_FIELDS: [(&str, Holds); 8] = [
    ("item_tokens", Holds::Integer),
    ("available_tokens", Holds::Integer),
    ("deduplicated_against", Holds::Content),
    ("tokens", Holds::Integer),
    ("displaced_by", Holds::Content),
    ("kind", Holds::Text),
    ("cap", Holds::Integer),
    ("count", Holds::Integer),
];

/// Reads the expectations of the file at `root`.
pub(super) fn expected(root: &Fields<'_>, task: &Task) -> Result<Expected, VectorError> {
    if let Some(error) = error(root)? {
        return Ok(Expected::Error(error));
    }
    let labels = Labels::of(task);
    let (expected, fields) = match task {
        Task::Score { .. } => (
            scores(root, &labels)?.map(Expected::Scores),
            "[[expected]], expect_error, expect_construction_error",
        ),
        Task::Slice { .. } => (
            selection(root, &labels)?.map(Expected::Selected),
            "selected_contents, emitted_contents, shortfall_count, cap_excluded_count, expect_error, \
             expect_construction_error",
        ),
        Task::Place { .. } => (
            placed(root, &labels)?.map(Expected::Placed),
            "ordered_contents, expect_error, expect_construction_error",
        ),
        Task::Run { .. } => (
            ran(root, &labels)?.map(Expected::Ran),
            "[[expected_output]], [expected.diagnostics], overflow, shortfall_count, cap_excluded_count, \
             expect_error, expect_construction_error",
        ),
    };
    expected
        .or_else(|| (task.item_count() == 0).then(|| empty_result(task)))
        .ok_or_else(|| root.error("expected", Problem::NoExpectation { fields }))
}

/// Returns the default expectation of a file without items (R136).
fn empty_result(task: &Task) -> Expected {
    match task {
        Task::Score { .. } => Expected::Scores(Vec::new()),
        Task::Slice { .. } => Expected::Selected(ExpectedSelection {
            selected: Some(Vec::new()),
            ..ExpectedSelection::default()
        }),
        Task::Place { .. } => Expected::Placed(Vec::new()),
        Task::Run { .. } => Expected::Ran(ExpectedRun {
            output: Some(Vec::new()),
            ..ExpectedRun::default()
        }),
    }
}

fn error(root: &Fields<'_>) -> Result<Option<ExpectedError>, VectorError> {
    const AT_CONSTRUCTION: &str = "expect_construction_error";
    let mut at_construction = root.optional(AT_CONSTRUCTION)?.unwrap_or(false);
    for key in ["test", "config", "expected"] {
        // `expected` is a list in scoring cases.
        if let Some(node) = root.get(key).filter(|node| node.value.is_table()) {
            let fields: Fields<'_> = node.read()?;
            at_construction |= fields.optional(AT_CONSTRUCTION)?.unwrap_or(false);
        }
    }
    let test: Fields<'_> = root.required("test")?;
    let error = ExpectedError {
        at_construction,
        code: test
            .get("expect_error")
            .map(|code| code.name("error code", &CODES.map(|code| (code, code))))
            .transpose()?
            .map(str::to_owned),
        contains: test.list("expect_error_contains")?,
    };
    Ok((error != ExpectedError::default()).then_some(error))
}

fn scores(
    root: &Fields<'_>,
    labels: &Labels<'_>,
) -> Result<Option<Vec<ExpectedScore>>, VectorError> {
    let Some(entries) = root.optional::<Vec<Fields<'_>>>("expected")? else {
        return Ok(None);
    };
    let scores: Vec<_> = entries
        .iter()
        .map(|entry| {
            Ok(ExpectedScore {
                label: labels.unique(&entry.get_required("content", "a string")?)?,
                score: entry.required("score_approx")?,
            })
        })
        .collect::<Result<_, VectorError>>()?;
    Ok((!scores.is_empty()).then_some(scores))
}

fn selection(
    root: &Fields<'_>,
    labels: &Labels<'_>,
) -> Result<Option<ExpectedSelection>, VectorError> {
    let Some(fields) = root.optional::<Fields<'_>>("expected")? else {
        return Ok(None);
    };
    let selection = ExpectedSelection {
        selected: labels.list(&fields, "selected_contents")?,
        emitted: labels.list(&fields, "emitted_contents")?,
        shortfall_count: fields.optional("shortfall_count")?,
        cap_excluded_count: fields.optional("cap_excluded_count")?,
    };
    Ok((selection != ExpectedSelection::default()).then_some(selection))
}

fn placed(root: &Fields<'_>, labels: &Labels<'_>) -> Result<Option<Vec<String>>, VectorError> {
    match root.optional::<Fields<'_>>("expected")? {
        Some(fields) => labels.list(&fields, "ordered_contents"),
        None => Ok(None),
    }
}

fn ran(root: &Fields<'_>, labels: &Labels<'_>) -> Result<Option<ExpectedRun>, VectorError> {
    let mut run = ExpectedRun {
        output: each(root, "expected_output", |entry| {
            labels.known(&entry.get_required("content", "a string")?)
        })?,
        ..ExpectedRun::default()
    };
    if let Some(fields) = root.optional::<Fields<'_>>("expected")? {
        run.shortfall_count = fields.optional("shortfall_count")?;
        run.cap_excluded_count = fields.optional("cap_excluded_count")?;
        run.overflow = fields
            .get("overflow")
            .map(|node| overflow(&node, labels))
            .transpose()?;
        if let Some(fields) = fields.optional("diagnostics")? {
            diagnostics(&fields, labels, &mut run)?;
        }
    }
    Ok((run != ExpectedRun::default()).then_some(run))
}

fn diagnostics(
    fields: &Fields<'_>,
    labels: &Labels<'_>,
    run: &mut ExpectedRun,
) -> Result<(), VectorError> {
    run.included = each(fields, "included", |entry| {
        report_entry(entry, labels, "inclusion_reason")
    })?;
    run.excluded = each(fields, "excluded", |entry| {
        let mut line = report_entry(entry, labels, "exclusion_reason")?;
        for (name, holds) in REASON_FIELDS {
            if let Some(node) = entry.get(name) {
                let field = match holds {
                    Holds::Integer => Field::Integer(node.read()?),
                    Holds::Text => Field::Text(node.read()?),
                    Holds::Content => Field::Text(labels.content(&node)?),
                };
                line.fields.insert(name.to_owned(), field);
            }
        }
        Ok(line)
    })?;
    if let Some(summary) = fields.optional::<Fields<'_>>("summary")? {
        run.total_candidates = summary.optional("total_candidates")?;
        run.total_tokens_considered = summary.optional("total_tokens_considered")?;
    }
    run.shortfalls = each(fields, "shortfalls", |entry| {
        Ok(Shortfall {
            kind: entry.required("kind")?,
            required_count: entry.required("required_count")?,
            satisfied_count: entry.required("satisfied_count")?,
        })
    })?;
    run.stages = each(fields, "stages", |entry| {
        Ok((entry.required("stage")?, entry.required("item_count")?))
    })?;
    run.item_events = each(fields, "item_events", |entry| {
        Ok((entry.required("stage")?, entry.required("reason")?))
    })?;
    Ok(())
}

fn report_entry(
    entry: &Fields<'_>,
    labels: &Labels<'_>,
    reason: &str,
) -> Result<ExpectedEntry, VectorError> {
    Ok(ExpectedEntry {
        label: labels.known(&entry.get_required("content", "a string")?)?,
        score: entry.required("score_approx")?,
        reason: entry.required(reason)?,
        fields: BTreeMap::new(),
    })
}

fn overflow(node: &Node<'_>, labels: &Labels<'_>) -> Result<Option<ExpectedOverflow>, VectorError> {
    if node.value.as_bool() == Some(false) {
        return Ok(None);
    }
    let fields: Fields<'_> = node.read()?;
    Ok(Some(ExpectedOverflow {
        tokens_over_budget: fields.required("tokens_over_budget")?,
        labels: labels
            .list(&fields, "contents")?
            .ok_or_else(|| fields.missing("contents", "a list"))?,
    }))
}

/// Reads a list of tables; `None` if the key is absent.
fn each<'a, T>(
    fields: &Fields<'a>,
    key: &str,
    read: impl FnMut(&Fields<'a>) -> Result<T, VectorError>,
) -> Result<Option<Vec<T>>, VectorError> {
    fields
        .optional::<Vec<Fields<'a>>>(key)?
        .map(|entries| entries.iter().map(read).collect())
        .transpose()
}
