//! `cupel explain`

use std::path::PathBuf;

use clap::Args;
use cupel::{Decisions, Explanation, ScorePart};
use cupel_app::{ExplainOneAnswer, Prepared, Scope};

use crate::budget::limits;
use crate::failure::{Exit, Failure};
use crate::input::check_output;
use crate::output::{Output, columns, style};
use crate::page::{self, Date};
use crate::replace::write_file;
use crate::summary::Summary;
use crate::task::{TaskArgs, label_heading, position};
use crate::text::{
    Give, Table, bar, budget_ranges, escaped, excerpt, grouped, grouped_count, left, right, score,
    words, wrap,
};

/// Explain why each message is in or out
///
/// Lists the window first, in the order the model reads it, then the other messages or items, best score
/// first.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Explain {
    /// Explain one message in full, by position from 0
    #[arg(long, value_name = "K", value_parser = position)]
    item: Option<usize>,

    /// Write a self-contained web page for all budgets
    #[arg(long, value_name = "OUT", conflicts_with = "item")]
    html: Option<PathBuf>,

    /// Date in the footer of the page, such as 2026-11-16. Default: `SOURCE_DATE_EPOCH` if set,
    /// otherwise none, so that the same input gives the same page
    #[arg(long, hide_short_help = true, value_name = "DATE", value_parser = Date::parse, requires = "html")]
    date: Option<Date>,

    #[command(flatten)]
    task: TaskArgs,
}

const EXAMPLES: &str = "\
Examples:
  cupel explain chat.json --budget 8k
  cupel explain chat.json --budget 8k --item 7     # one message in full
  cupel explain chat.json --html why.html          # a page with a slider
  cupel explain request.json --json | jq '.candidates[] | select(.included)'";

impl Explain {
    pub(crate) fn run(self, output: &mut Output) -> Result<Exit, Failure> {
        check_output(self.task.file(), "--html", self.html.as_deref())?;
        let task = self.task.load(Scope::Budget)?;
        if let Some(index) = self.item {
            return one(&task, index, output);
        }
        if let Some(path) = &self.html {
            task.decide()?;
            let date = self.date.clone().or_else(Date::from_environment);
            write_file(path, &page::render(&task, date)?)?;
            output.note(format_args!("wrote {}", path.display()));
            return Ok(Exit::Success);
        }
        if output.is_json() {
            output.json(&task.explain()?)?;
        } else {
            table(&task, output)?;
        }
        Ok(Exit::Success)
    }
}

fn one(task: &Prepared, index: usize, output: &mut Output) -> Result<Exit, Failure> {
    let answer = task.explain_item(index)?;
    if output.is_json() {
        output.json(&answer)?;
    } else {
        write_one(task, &task.decide()?, &answer, output)?;
    }
    Ok(Exit::Success)
}

/// Writes the explanation of one message or item.
fn write_one(
    task: &Prepared,
    decisions: &Decisions<'_>,
    answer: &ExplainOneAnswer,
    output: &mut Output,
) -> Result<(), Failure> {
    const LABEL: usize = 12;
    let explanation = &answer.explanation;
    let Explanation { index, item, .. } = explanation;
    let bold = style::HEADER;
    let name = format!("{}, {} tokens", task.named(*index), grouped(item.tokens()));
    let name = escaped(&name);
    let text = excerpt(item.content(), columns() - 2);
    output.line(format_args!("{bold}{name}{bold:#}\n  {text}"))?;
    let mut rows: Vec<(&str, String)> = Vec::new();
    let why = task.why(decisions, *index);
    rows.push(match decisions.position(*index) {
        Some(position) => {
            let place = grouped_count(position + 1);
            ("in", format!("{why}; place {place} of the window"))
        }
        None => ("out", why),
    });
    rows.extend(
        task.cut_words(decisions, *index)
            .map(|words| ("cut", words)),
    );
    let used = grouped(explanation.tokens_used);
    let limit = grouped(task.budget().window_limit());
    let limits = limits(task.budget()).map_or_else(String::new, |limits| format!(" ({limits})"));
    rows.push(("window", format!("uses {used} of {limit}{limits}")));
    match (&answer.in_full[..], explanation.in_full_at) {
        ([], Some(budget)) => rows.push((
            "in full",
            format!("at a budget of {} or more", grouped(budget)),
        )),
        (ranges, _) => rows.extend(budgets_above(ranges).map(|budgets| ("in full", budgets))),
    }
    let included = budgets_above(&explanation.included_at);
    rows.extend(included.map(|budgets| ("included", budgets)));
    if let Some(rank) = explanation.rank {
        let (rank, ranked) = (grouped_count(rank + 1), grouped_count(explanation.ranked));
        rows.push(("rank", format!("{rank} of {ranked}")));
    }
    if !explanation.displaced_by.is_empty() {
        let (unit, displaced) = (task.shape().unit(), &explanation.displaced_by);
        let (s, are) = if displaced.len() == 1 {
            ("", "is")
        } else {
            ("s", "are")
        };
        rows.push((
            "instead",
            format!("{unit}{s} {} {are} kept", listed(displaced)),
        ));
    }
    match &explanation.parts {
        Some(parts) => score_rows(parts, 0, &mut rows),
        None => rows.push(("score", score(explanation.score))),
    }
    for (label, text) in rows {
        let line = format!("  {label:<10}{}", escaped(&text));
        for line in wrap(&line, columns(), LABEL) {
            output.line(line)?;
        }
    }
    write_neighbors(task, explanation, output)
}

/// Returns the budgets above the one of the run at which a message is included, in words.
fn budgets_above(ranges: &[(i64, i64)]) -> Option<String> {
    let (&(from, to), others) = ranges.split_last()?;
    let ranges = budget_ranges(ranges);
    if to == from && others.is_empty() {
        return Some(format!(
            "at a budget of {ranges}; larger ones were not tried"
        ));
    }
    Some(match others {
        [] => format!("at a budget of {} or more", grouped(from)),
        others => format!(
            "at a budget of {} or more, and at {}",
            grouped(from),
            budget_ranges(others)
        ),
    })
}

/// Lists positions, at most eight.
fn listed(indices: &[usize]) -> String {
    const SHOWN: usize = 8;
    let shown = indices.iter().take(SHOWN).map(usize::to_string);
    let shown = shown.collect::<Vec<_>>().join(", ");
    match indices.len().saturating_sub(SHOWN) {
        0 => shown,
        more => format!("{shown} and {} more", grouped_count(more)),
    }
}

/// Adds a row per part of a score, the parts of a part below it.
fn score_rows(part: &ScorePart, depth: usize, rows: &mut Vec<(&str, String)>) {
    let indent = " ".repeat(2 * depth);
    let mut text = format!("{indent}{} {}", score(part.score), words(&part.scorer));
    if let (Some(weight), Some(contribution)) = (part.weight, part.contribution) {
        let (weight, contribution) = (score(weight), score(contribution));
        text = format!("{text}, weight {weight}, adds {contribution}");
    }
    rows.push((if depth == 0 { "score" } else { "" }, text));
    for part in &part.parts {
        score_rows(part, depth + 1, rows);
    }
}

fn write_neighbors(
    task: &Prepared,
    explanation: &Explanation,
    output: &mut Output,
) -> Result<(), Failure> {
    if explanation.neighbors.is_empty() {
        return Ok(());
    }
    let mut table = Table::new(
        [
            right("rank"),
            left(""),
            right("#"),
            left(label_heading(task)),
            right("tokens"),
            right("score"),
            left("content"),
        ],
        GIVES,
    );
    for neighbor in &explanation.neighbors {
        let index = neighbor.index;
        table.row(vec![
            grouped_count(neighbor.rank + 1),
            if neighbor.included { "in" } else { "out" }.to_owned(),
            index.to_string(),
            task.label(index),
            grouped(neighbor.tokens),
            score(neighbor.score),
            excerpt(task.items()[index].content(), columns()),
        ]);
    }
    output.line("")?;
    output.table(&table)
}

/// The order in which columns make room. Why comes before the content, which the chat has, too: a reason with its
/// numbers has up to 44 columns ("shortened to 97 of 431 tokens; newest step").
const GIVES: &[Give] = &[
    Give::Cut("content", 24),
    Give::Omit("of budget"),
    Give::Omit("score"),
    Give::Cut("content", 8),
    Give::Cut("why", 36),
    Give::Omit("content"),
    Give::Cut("why", 16),
];

fn table(task: &Prepared, output: &mut Output) -> Result<(), Failure> {
    const BAR: usize = 10;
    let fit = task.fit()?;
    let summary = Summary::of_fit(task, &fit);
    let (decisions, bold, quiet) = (&fit.run.decisions, style::HEADER, style::QUIET);
    let (used, limit) = summary.usage();
    let headline = summary.headline();
    output.wrapped(format_args!("{bold}{}{bold:#}", escaped(&headline)))?;
    let share = bar(used, limit, columns().min(60) - 2);
    output.line(format_args!("  {share}"))?;
    let settings = summary.origin().into_iter().chain([summary.settings()]);
    for line in settings.chain(summary.config()) {
        let line = escaped(&line);
        output.wrapped(format_args!("{quiet}  {line}{quiet:#}"))?;
    }
    output.line("")?;
    let mut table = Table::new(
        [
            left(""),
            right("#"),
            left(label_heading(task)),
            right("tokens"),
            right("score"),
            left("of budget"),
            left("why"),
            left("content"),
        ],
        GIVES,
    );
    let window = decisions.window().iter().copied();
    for index in window.chain(decisions.excluded()) {
        if index >= task.len() {
            continue;
        }
        let item = decisions.item(index);
        let is_in = decisions.inclusion(index).is_some();
        table.row(vec![
            if is_in { "in" } else { "out" }.to_owned(),
            index.to_string(),
            task.label(index),
            grouped(item.tokens()),
            score(decisions.score(index)),
            bar(item.tokens(), limit, BAR),
            task.why(decisions, index),
            excerpt(item.content(), columns()),
        ]);
    }
    let mut lines = table.lines(columns()).into_iter();
    if let Some(header) = lines.next() {
        output.line(format_args!("{bold}{header}{bold:#}"))?;
    }
    for line in lines {
        let (verdict, rest) = line.split_at(3);
        let style = if verdict == "out" {
            style::OUT
        } else {
            style::IN
        };
        output.line(format_args!("{style}{verdict}{style:#}{rest}"))?;
    }
    if task.overhead() > 0 {
        let overhead = grouped(task.overhead());
        output.wrapped(format_args!(
            "{quiet}and the request overhead (tools, parameters): {overhead} tokens{quiet:#}"
        ))?;
    }
    output.finish()?;
    summary.write_warnings(output);
    Ok(())
}
