//! `cupel compare`

use clap::Args;
use cupel::Decisions;
use serde_json::json;

use crate::failure::{Exit, Failure};
use crate::output::{Output, columns};
use crate::task::{Content, InputArgs, NamedPolicy, Task};
use crate::text::{Give, Table, counted, excerpt, grouped, grouped_count, left, right};
use crate::trimming::TrimmingArgs;

/// Show the messages on which policies disagree
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Compare {
    /// Preset or policy file; two or more, or one to compare with the request's
    #[arg(long, value_name = "NAME|FILE", required = true)]
    policy: Vec<String>,

    #[command(flatten)]
    input: InputArgs,

    #[command(flatten)]
    trimming: TrimmingArgs,
}

const EXAMPLES: &str = "\
Examples:
  cupel compare chat.json --budget 8k --policy agent --policy newest
  cupel compare items.json --budget 4k --policy chat --policy rag
  cupel compare request.json --policy mine.toml --policy theirs.toml --json";

impl Compare {
    pub(crate) fn run(self, output: &mut Output) -> Result<Exit, Failure> {
        let task = self.input.load_for_variants(&self.trimming)?;
        task.warn(output);
        let named = self.policy.iter();
        let named = named.map(|name| NamedPolicy::find(name)?.trimmed(&self.trimming));
        let mut policies = named.collect::<Result<Vec<_>, _>>()?;
        if policies.len() == 1 && task.has_own_policy {
            policies.insert(0, task.policy.clone());
        }
        if policies.len() < 2 {
            let others = match task.content {
                Content::Chat { .. } => "--policy agent --policy newest",
                Content::Items(_) => "--policy chat --policy rag",
            };
            return Err(Failure::input("there is only one policy to compare")
                .help(format!("name two or more: {others}")));
        }
        if let Some(warning) = self.input.unread_query(&policies)
            && output.has_warnings()
        {
            output.warn(warning);
        }
        let variants = policies.iter().map(|policy| task.variant(policy));
        let variants = variants.collect::<Result<Vec<_>, _>>()?;
        let decisions = variants.iter().map(|variant| task.decide_with(variant));
        let decisions = decisions.collect::<Result<Vec<_>, _>>()?;
        let tokens = variants.iter().zip(&decisions);
        let tokens = tokens.map(|(variant, decisions)| task.tokens_with(variant, decisions));
        let tokens = tokens.collect();
        let comparison = Comparison::new(&task, &policies, decisions, tokens);
        if output.is_json() {
            output.json(&comparison.document())?;
        } else {
            comparison.table(output)?;
        }
        Ok(Exit::Success)
    }
}

/// The decisions of several policies about the same items.
struct Comparison<'a> {
    task: &'a Task,
    policies: &'a [NamedPolicy],
    decisions: Vec<Decisions<'a>>,
    /// The tokens of each window.
    tokens: Vec<i64>,
    /// Whether an item is in, by item and policy.
    is_in: Vec<Vec<bool>>,
    /// The items on which they disagree.
    swings: Vec<usize>,
}

impl<'a> Comparison<'a> {
    fn new(
        task: &'a Task,
        policies: &'a [NamedPolicy],
        decisions: Vec<Decisions<'a>>,
        tokens: Vec<i64>,
    ) -> Self {
        let mut is_in = vec![vec![false; policies.len()]; task.len()];
        for (variant, decision) in decisions.iter().enumerate() {
            for &index in decision.window().iter().filter(|it| **it < task.len()) {
                is_in[index][variant] = true;
            }
        }
        let disagree = |index: &usize| is_in[*index].iter().any(|other| *other != is_in[*index][0]);
        Self {
            swings: (0..task.len()).filter(disagree).collect(),
            task,
            policies,
            decisions,
            tokens,
            is_in,
        }
    }

    fn document(&self) -> serde_json::Value {
        let items = &self.task.items;
        let variants = self.policies.iter().zip(&self.decisions).zip(&self.tokens);
        let variants = variants.map(|((policy, decision), tokens)| {
            json!({
                "policy": policy.name,
                "selected": decision.window().iter().filter(|it| **it < self.task.len()).collect::<Vec<_>>(),
                "tokens": tokens,
            })
        });
        let diffs = self.swings.iter().map(
            |&index| json!({ "index": index, "item": items[index], "included": self.is_in[index] }),
        );
        json!({
            "variants": variants.collect::<Vec<_>>(),
            "diffs": diffs.collect::<Vec<_>>(),
        })
    }

    fn table(&self, output: &mut Output) -> Result<(), Failure> {
        let (task, columns) = (self.task, columns());
        let unit = task.shape().unit();
        if !self.swings.is_empty() {
            let room = columns.saturating_sub(32) / self.policies.len();
            let room = room.saturating_sub(2).clamp(3, 24);
            let names = self.policies.iter();
            let mut headers: Vec<_> = names.map(|it| left(excerpt(&it.name, room))).collect();
            headers.extend([
                right("#"),
                left(task.label_heading()),
                right("tokens"),
                left("content"),
            ]);
            let mut table = Table::new(headers, GIVES);
            for &index in &self.swings {
                let item = &task.items[index];
                let verdicts = self.is_in[index].iter();
                let verdicts = verdicts.map(|is_in| if *is_in { "in" } else { "out" }.to_owned());
                let mut row: Vec<String> = verdicts.collect();
                row.extend([
                    index.to_string(),
                    task.label(index),
                    grouped(item.tokens()),
                    excerpt(item.content(), columns),
                ]);
                table.row(row);
            }
            output.table(&table)?;
        }
        output.finish()?;
        let variants = self.policies.iter().zip(&self.decisions).zip(&self.tokens);
        for ((policy, decision), tokens) in variants {
            let kept = decision.window().iter().filter(|it| **it < task.len());
            output.note(format_args!(
                "{}: kept {} of {}, {} tokens",
                policy.name,
                grouped_count(kept.count()),
                counted(task.len(), unit),
                grouped(*tokens)
            ));
        }
        output.note(match self.swings.len() {
            0 => format!("the policies agree on every {unit}"),
            swings => format!("the policies disagree on {}", counted(swings, unit)),
        });
        Ok(())
    }
}

/// The order in which columns make room.
const GIVES: &[Give] = &[
    Give::Cut("content", 16),
    Give::Omit("role"),
    Give::Omit("kind"),
    Give::Omit("content"),
];
