//! `cupel explain`

use std::path::PathBuf;

use clap::Args;
use cupel::Decisions;
use serde_json::json;

use crate::budget::margin;
use crate::failure::{Exit, Failure};
use crate::output::{Output, columns, style, write_file};
use crate::page::{Date, Subject};
use crate::task::{Need, Task, TaskArgs, position};
use crate::text::{Table, bar, counted, excerpt, grouped, left, right, score};

/// Explain why each candidate is in or out
///
/// Lists the window first, in the order the model reads it, then the other candidates, best score
/// first.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Explain {
    /// Explain one candidate in full: its position in the input, from 0
    #[arg(long, value_name = "K", value_parser = position)]
    item: Option<usize>,

    /// Write a self-contained web page that shows every budget
    #[arg(long, value_name = "OUT", conflicts_with = "item")]
    html: Option<PathBuf>,

    /// Date in the footer of the page, such as 2026-11-16. Default: `SOURCE_DATE_EPOCH` if set,
    /// otherwise none, so that the same input gives the same page
    #[arg(long, value_name = "DATE", value_parser = Date::parse, requires = "html")]
    date: Option<Date>,

    #[command(flatten)]
    task: TaskArgs,
}

const EXAMPLES: &str = "\
Examples:
  cupel explain request.json
  cupel explain items.json --budget 4000 --policy rag --item 7
  cupel explain request.json --html why.html
  cupel explain request.json --json | jq '.candidates[] | select(.included)'";

impl Explain {
    pub(crate) fn run(self, output: &mut Output) -> Result<Exit, Failure> {
        let task = self.task.load(Need::Budget)?;
        if let Some(index) = self.item {
            return one(&task, index, output);
        }
        let decisions = task.decide()?;
        if let Some(path) = &self.html {
            let date = self.date.clone().or_else(Date::from_environment);
            let pipeline = task.pipeline();
            write_file(path, &Subject::of_task(&task, &pipeline, date).render()?)?;
            output.note(format_args!("wrote {}", path.display()));
        }
        if output.is_json() {
            output.json(&document(&task, &decisions))?;
        } else {
            table(&task, &decisions, output)?;
            for warning in task.warnings(decisions.window()) {
                output.note(format_args!("warning: {warning}"));
            }
        }
        Ok(Exit::Success)
    }
}

fn one(task: &Task, index: usize, output: &mut Output) -> Result<Exit, Failure> {
    task.check_index(index)?;
    let explanation = task
        .pipeline()
        .explain(&task.items, &task.budget, index)
        .map_err(|error| Failure::run(&error))?;
    if output.is_json() {
        output.json(&explanation)?;
    } else {
        output.text(explanation)?;
    }
    Ok(Exit::Success)
}

fn document(task: &Task, decisions: &Decisions<'_>) -> serde_json::Value {
    let candidate = |index: usize| {
        let (item, score) = (decisions.item(index), decisions.score(index));
        let inclusion = decisions.inclusion(index);
        json!({
            "index": index,
            "included": inclusion.is_some(),
            "kind": item.kind(),
            "tokens": item.tokens(),
            "score": if score.is_finite() { json!(score) } else { json!(score.to_string()) },
            "reason": match inclusion {
                Some(reason) => json!(reason),
                None => json!(decisions.exclusion(index)),
            },
        })
    };
    let window = decisions.window().iter().copied();
    let candidates = window.chain(decisions.excluded()).map(candidate);
    json!({
        "policy": task.policy.name,
        "budget": task.budget,
        "tokens_used": decisions.tokens_used(),
        "candidates": candidates.collect::<Vec<_>>(),
        "warnings": task.warnings(decisions.window()),
    })
}

fn table(task: &Task, decisions: &Decisions<'_>, output: &mut Output) -> Result<(), Failure> {
    const BAR: usize = 10;
    let (limit, window) = (task.budget.window_limit(), decisions.window());
    let used = decisions.tokens_used();
    let bold = style::HEADER;
    let kept = window.iter().filter(|index| **index < task.len()).count();
    output.line(format_args!(
        "{bold}{} of {} tokens{bold:#} {} {kept} of {}, {}, policy {}{}",
        grouped(used),
        grouped(limit),
        bar(used, limit, 30),
        counted(task.len(), task.shape().unit()),
        task.counted_by(),
        task.policy.name,
        margin(&task.budget),
    ))?;
    output.line("")?;
    let mut table = Table::new(
        const {
            &[
                left(""),
                right("#"),
                left("kind"),
                right("score"),
                right("tokens"),
                left("of budget"),
                left("why"),
                left("content"),
            ]
        },
    );
    let room = columns().map_or(60, |columns| columns.saturating_sub(84).max(20));
    for index in window.iter().copied().chain(decisions.excluded()) {
        let item = decisions.item(index);
        let (verdict, why) = match decisions.inclusion(index) {
            Some(reason) => ("in", reason.phrase()),
            None => ("out", decisions.phrase(index).unwrap_or_default()),
        };
        table.row(vec![
            verdict.to_owned(),
            index.to_string(),
            item.kind().to_string(),
            score(decisions.score(index)),
            grouped(item.tokens()),
            bar(item.tokens(), limit, BAR),
            why,
            excerpt(item.content(), room),
        ]);
    }
    let mut lines = table.lines().into_iter();
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
    Ok(())
}
