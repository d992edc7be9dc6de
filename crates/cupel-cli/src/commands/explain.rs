//! `cupel explain`

use std::path::PathBuf;

use clap::Args;
use cupel::ContextItem;
use serde_json::json;

use crate::budget::margin;
use crate::counting::ChatArgs;
use crate::decision::Decision;
use crate::failure::{Exit, Failure};
use crate::output::{Output, columns, style, write_file};
use crate::page;
use crate::reason;
use crate::task::{InputArgs, Need, Origin, PolicyArg, Task, position};
use crate::text::{Table, bar, counted, excerpt, grouped, left, right, score};

/// Say why every candidate is in or out
///
/// The window comes first, in the order in which it is read, then everything else, best score
/// first.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Explain {
    #[command(flatten)]
    policy: PolicyArg,

    /// Explain one candidate: its position in the input, from 0
    #[arg(long, value_name = "K", value_parser = position)]
    item: Option<usize>,

    /// Write a page for a browser that shows all of it
    #[arg(long, value_name = "OUT", conflicts_with = "item")]
    html: Option<PathBuf>,

    #[command(flatten)]
    input: InputArgs,

    #[command(flatten)]
    chat: ChatArgs,
}

const EXAMPLES: &str = "\
Examples:
  cupel explain request.json
  cupel explain items.json --budget 4000 --policy rag --item 7
  cupel explain request.json --html why.html
  cupel explain items.json --budget 4000 --policy rag --json | jq '.candidates[] | select(.included)'";

impl Explain {
    pub(crate) fn run(self, output: &mut Output) -> Result<Exit, Failure> {
        let task = Task::load(&self.input, &self.chat, self.policy.name(), Need::Budget)?;
        if let Some(index) = self.item {
            return one(&task, index, output);
        }
        if let Some(path) = &self.html {
            let page = page::render(task.name(), &task.items, &task.budget, &task.pipeline())
                .map_err(|error| Failure::run(&error))?;
            write_file(path, &page)?;
            output.note(format_args!("wrote {}", path.display()));
        }
        let decision = task.decide()?;
        if output.is_json() {
            output.json(&document(&task, &decision))?;
        } else {
            table(&task, &decision, output)?;
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

fn document(task: &Task, decision: &Decision) -> serde_json::Value {
    let candidate = |index: usize, included: bool, score: f64, reason: serde_json::Value| {
        let item = &task.items[index];
        json!({
            "index": index,
            "included": included,
            "kind": item.kind(),
            "tokens": item.tokens(),
            "score": if score.is_finite() { json!(score) } else { json!(score.to_string()) },
            "reason": reason,
        })
    };
    let included = decision.included.iter();
    let included = included.map(|e| candidate(e.index, true, e.score, json!(e.reason)));
    let excluded = decision.excluded.iter();
    let excluded = excluded.map(|e| candidate(e.index, false, e.score, json!(e.reason)));
    json!({
        "policy": task.policy.name,
        "budget": task.budget,
        "tokens_used": decision.tokens(&task.items),
        "candidates": included.chain(excluded).collect::<Vec<_>>(),
    })
}

fn table(task: &Task, decision: &Decision, output: &mut Output) -> Result<(), Failure> {
    const BAR: usize = 10;
    let (target, items) = (task.budget.target_tokens(), &task.items);
    let used = decision.tokens(items);
    let bold = style::HEADER;
    let estimated = match &task.origin {
        Origin::Chat(_, counter) if counter.is_estimate() => {
            format!(", estimated by {}", counter.name())
        }
        _ => String::new(),
    };
    output.line(format_args!(
        "{bold}{} of {} tokens{bold:#} {} {} of {}, policy {}{}{estimated}",
        grouped(used),
        grouped(target),
        bar(used, target, 30),
        decision.selected.len(),
        counted(items.len(), "item"),
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
    let mut row = |verdict: &str, index: usize, points: f64, why: String| {
        let item: &ContextItem = &items[index];
        table.row(vec![
            verdict.to_owned(),
            index.to_string(),
            item.kind().to_string(),
            score(points),
            grouped(item.tokens()),
            bar(item.tokens(), target, BAR),
            why,
            excerpt(item.content(), room),
        ]);
    };
    for entry in &decision.included {
        row(
            "in",
            entry.index,
            entry.score,
            reason::of_inclusion(entry.reason).to_owned(),
        );
    }
    for entry in &decision.excluded {
        row(
            "out",
            entry.index,
            entry.score,
            reason::with_numbers(&entry.reason),
        );
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
