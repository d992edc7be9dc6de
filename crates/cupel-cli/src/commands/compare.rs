//! `cupel compare`

use clap::Args;
use serde_json::json;

use crate::counting::ChatArgs;
use crate::decision::Decision;
use crate::failure::{Exit, Failure};
use crate::output::{Output, style};
use crate::task::{InputArgs, NamedPolicy, Need, Task};
use crate::text::{counted, excerpt, grouped, width};

/// Show on which items policies disagree
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Compare {
    /// A policy: the name of a preset or a file; give two or more, or one beside the request's own
    #[arg(long, value_name = "NAME|FILE", required = true)]
    policy: Vec<String>,

    #[command(flatten)]
    input: InputArgs,

    #[command(flatten)]
    chat: ChatArgs,
}

const EXAMPLES: &str = "\
Examples:
  cupel compare items.json --budget 4000 --policy chat --policy rag
  cupel compare request.json --policy mine.toml --policy theirs.toml --json";

impl Compare {
    pub(crate) fn run(self, output: &mut Output) -> Result<Exit, Failure> {
        let task = Task::load(&self.input, &self.chat, None, Need::Budget)?;
        let named = self.policy.iter().map(|name| task.find_policy(name));
        let mut policies = named.collect::<Result<Vec<_>, _>>()?;
        if policies.len() == 1 && task.has_own_policy {
            policies.insert(0, task.policy.clone());
        }
        if policies.len() < 2 {
            return Err(Failure::input("there is only one policy to compare")
                .help("name two or more: --policy chat --policy rag"));
        }
        let decisions = policies.iter().map(|policy| task.decide_with(policy));
        let comparison = Comparison::new(&task, &policies, decisions.collect::<Result<_, _>>()?);
        if output.is_json() {
            output.json(&comparison.document())?;
        } else {
            comparison.table(output)?;
        }
        Ok(Exit::Success)
    }
}

/// What several policies make of the same items.
struct Comparison<'a> {
    task: &'a Task,
    policies: &'a [NamedPolicy],
    decisions: Vec<Decision>,
    /// The verdict of every policy on every item.
    is_in: Vec<Vec<bool>>,
    /// The items on which they disagree.
    swings: Vec<usize>,
}

impl<'a> Comparison<'a> {
    fn new(task: &'a Task, policies: &'a [NamedPolicy], decisions: Vec<Decision>) -> Self {
        let mut is_in = vec![vec![false; policies.len()]; task.items.len()];
        for (variant, decision) in decisions.iter().enumerate() {
            for selected in &decision.selected {
                is_in[selected.index][variant] = true;
            }
        }
        let disagree = |index: &usize| is_in[*index].iter().any(|other| *other != is_in[*index][0]);
        Self {
            swings: (0..task.items.len()).filter(disagree).collect(),
            task,
            policies,
            decisions,
            is_in,
        }
    }

    fn document(&self) -> serde_json::Value {
        let items = &self.task.items;
        let variants = self.policies.iter().zip(&self.decisions);
        let variants = variants.map(|(policy, decision)| {
            let selected = decision.selected.iter().map(|selected| selected.index);
            json!({
                "policy": policy.name,
                "selected": selected.collect::<Vec<_>>(),
                "tokens": decision.tokens(items),
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
        let items = &self.task.items;
        let names = self.policies.iter().map(|policy| excerpt(&policy.name, 24));
        let names: Vec<String> = names.collect();
        if !self.swings.is_empty() {
            let bold = style::HEADER;
            output.line(format_args!(
                "{bold}{}      #  tokens  content{bold:#}",
                names.join("  ")
            ))?;
        }
        for &index in &self.swings {
            for (name, included) in names.iter().zip(&self.is_in[index]) {
                let (style, verdict) = if *included {
                    (style::IN, "in ")
                } else {
                    (style::OUT, "out")
                };
                let padding = " ".repeat(width(name).max(3) - verdict.len());
                output.text(format_args!("{style}{verdict}{style:#}{padding}  "))?;
            }
            output.line(format_args!(
                "{index:>5}  {:>6}  {}",
                grouped(items[index].tokens()),
                excerpt(items[index].content(), 60)
            ))?;
        }
        output.finish()?;
        for (policy, decision) in self.policies.iter().zip(&self.decisions) {
            output.note(format_args!(
                "{}: {} of {}, {} tokens",
                policy.name,
                decision.selected.len(),
                counted(items.len(), "item"),
                grouped(decision.tokens(items))
            ));
        }
        output.note(match self.swings.len() {
            0 => "they agree on every item".to_owned(),
            swings => format!("they disagree on {}", counted(swings, "item")),
        });
        Ok(())
    }
}
