//! `cupel compare`

use clap::Args;
use cupel::Decisions;
use serde_json::json;

use crate::failure::{Exit, Failure};
use crate::output::{Output, style};
use crate::task::{InputArgs, NamedPolicy, Task};
use crate::text::{counted, excerpt, grouped, width};
use crate::trimming::TrimmingArgs;

/// Show the items on which policies disagree
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Compare {
    /// Policy: a preset or a file. Give two or more, or one to compare with the request's policy
    #[arg(long, value_name = "NAME|FILE", required = true)]
    policy: Vec<String>,

    #[command(flatten)]
    input: InputArgs,

    #[command(flatten)]
    trimming: TrimmingArgs,
}

const EXAMPLES: &str = "\
Examples:
  cupel compare items.json --budget 4000 --policy chat --policy rag
  cupel compare request.json --policy mine.toml --policy theirs.toml --json";

impl Compare {
    pub(crate) fn run(self, output: &mut Output) -> Result<Exit, Failure> {
        let task = self.input.load_without_policy(&self.trimming)?;
        let named = self.policy.iter();
        let named = named.map(|name| NamedPolicy::find(name)?.trimmed(&self.trimming));
        let mut policies = named.collect::<Result<Vec<_>, _>>()?;
        if policies.len() == 1 && task.has_own_policy {
            policies.insert(0, task.policy.clone());
        }
        if policies.len() < 2 {
            return Err(Failure::input("there is only one policy to compare")
                .help("name two or more: --policy chat --policy rag"));
        }
        let variants = policies.iter().map(|policy| task.variant(policy));
        let variants = variants.collect::<Result<Vec<_>, _>>()?;
        let decisions = variants.iter().map(|variant| task.decide_with(variant));
        let comparison = Comparison::new(&task, &policies, decisions.collect::<Result<_, _>>()?);
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
    /// Whether an item is in, by item and policy.
    is_in: Vec<Vec<bool>>,
    /// The items on which they disagree.
    swings: Vec<usize>,
}

impl<'a> Comparison<'a> {
    fn new(task: &'a Task, policies: &'a [NamedPolicy], decisions: Vec<Decisions<'a>>) -> Self {
        let mut is_in = vec![vec![false; policies.len()]; task.items.len()];
        for (variant, decision) in decisions.iter().enumerate() {
            for &index in decision.window() {
                is_in[index][variant] = true;
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
            json!({
                "policy": policy.name,
                "selected": decision.window(),
                "tokens": decision.tokens_used(),
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
                decision.window().len(),
                counted(items.len(), "item"),
                grouped(decision.tokens_used())
            ));
        }
        output.note(match self.swings.len() {
            0 => "the policies agree on every item".to_owned(),
            swings => format!("the policies disagree on {}", counted(swings, "item")),
        });
        Ok(())
    }
}
