//! `cupel compare`

use clap::Args;
use cupel_app::{CompareAnswer, Prepared};

use crate::dialect::CommandLine;
use crate::failure::{Exit, Failure};
use crate::output::{Output, columns};
use crate::task::{InputArgs, find_policy, label_heading, warn};
use crate::text::{Give, Table, counted, excerpt, grouped, grouped_count, left, right};
use crate::trimming::TrimmingArgs;

/// Show the messages on which policies disagree
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Compare {
    /// Preset or policy file; two or more, or one to compare with that of the
    /// request or of cupel.toml
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
        warn(&task, output);
        let policies = self.policy.iter().map(|name| find_policy(name));
        let answer = task.compare(policies.collect::<Result<_, _>>()?)?;
        if output.is_json() {
            return output.json(&answer).map(|()| Exit::Success);
        }
        for notice in &answer.notices {
            output.warn(notice.message(&CommandLine));
        }
        write(&task, &answer, output)?;
        Ok(Exit::Success)
    }
}

/// Writes a table of what differs, then a line per policy.
fn write(task: &Prepared, answer: &CompareAnswer, output: &mut Output) -> Result<(), Failure> {
    let (columns, variants) = (columns(), &answer.variants);
    let unit = task.shape().unit();
    if !answer.diffs.is_empty() {
        let room = columns.saturating_sub(32) / variants.len();
        let room = room.saturating_sub(2).clamp(3, 24);
        let names = variants.iter();
        let mut headers: Vec<_> = names.map(|it| left(excerpt(&it.policy, room))).collect();
        headers.extend([
            right("#"),
            left(label_heading(task)),
            right("tokens"),
            left("content"),
        ]);
        let mut table = Table::new(headers, GIVES);
        for diff in &answer.diffs {
            let full = diff.item.tokens();
            let verdict = |tokens: &Option<i64>| match *tokens {
                None => "out".to_owned(),
                Some(tokens) if tokens == full => "in".to_owned(),
                Some(tokens) => grouped(tokens),
            };
            let mut row: Vec<String> = diff.tokens.iter().map(verdict).collect();
            row.extend([
                diff.index.to_string(),
                task.label(diff.index),
                grouped(full),
                excerpt(diff.item.content(), columns),
            ]);
            table.row(row);
        }
        output.table(&table)?;
    }
    output.finish()?;
    for variant in variants {
        let shortened = match variant.shortened.len() {
            0 => String::new(),
            count => format!(", {} of them shortened", grouped_count(count)),
        };
        output.note(format_args!(
            "{}: kept {} of {}{shortened}, {} tokens",
            variant.policy,
            grouped_count(variant.selected.len()),
            counted(task.len(), unit),
            grouped(variant.tokens)
        ));
    }
    output.note(match answer.diffs.len() {
        0 => format!("the policies agree on every {unit}"),
        differing => format!("the policies disagree on {}", counted(differing, unit)),
    });
    Ok(())
}

/// The order in which columns make room.
const GIVES: &[Give] = &[
    Give::Cut("content", 16),
    Give::Omit("role"),
    Give::Omit("kind"),
    Give::Omit("content"),
];
