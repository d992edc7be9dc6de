//! `cupel eval criteria`

use std::path::PathBuf;

use clap::Args;
use cupel_eval::{
    CONVERSATION_FORMAT, ConversationError, CriteriaError, CriteriaMeasure, CriteriaReport,
    CriterionProblem, Share, criteria, parse_conversations,
};

use super::method::{MethodArgs, runs_failure};
use super::table::{self, Unit};
use super::{observed, stopped};
use crate::counting::ChatArgs;
use crate::failure::{Exit, Failure};
use crate::input;
use crate::output::{Output, style};
use crate::text::counted;

/// Measure what windows of conversations keep of a criterion
///
/// Each conversation ends on a user turn, and names the words of the criterion by which people
/// judged the answer to it. Trims the history before each answer to a share of the conversation, and
/// measures the last window: the share of those words, by weight, that it still contains, how full it
/// is, and the bill of all requests. docs/agents.md defines the measures. Every value has a 95 %
/// bootstrap interval over conversations.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Criteria {
    /// Conversations with terms, one per line; `-` reads standard input
    #[arg(value_name = "FILE")]
    file: PathBuf,

    /// Budgets, in percent of each conversation's tokens
    #[arg(
        long,
        value_name = "PERCENT",
        value_delimiter = ',',
        default_value = "80,60,40,25",
        allow_hyphen_values = true
    )]
    share: Vec<Share>,

    #[command(flatten)]
    method: MethodArgs,

    #[command(flatten)]
    chat: ChatArgs,
}

const EXAMPLES: &str = "\
Examples:
  cupel eval criteria conversations.jsonl
  cupel eval criteria conversations.jsonl --share 50 --policy suffix,mine.toml
  cupel eval criteria conversations.jsonl --json | jq '.results[].fill'

A line; a term has the forms in which its word occurs:
  {\"messages\": [..., {\"role\": \"user\", \"content\": \"...\"}],
   \"terms\": [{\"forms\": [\"walk\", \"walking\"], \"weight\": 1.9}, ...]}";

impl Criteria {
    pub(super) fn run(self, output: &mut Output) -> Result<Exit, Failure> {
        let methods = self.method.methods()?;
        let counter = self.chat.counter().counter(None, None)?;
        let source = input::read(&self.file)?;
        let args = &self.chat.read;
        let at = args.at.as_deref().unwrap_or_default();
        let conversations = parse_conversations(&source.text, at, args.shape);
        let conversations = conversations.map_err(|error| match error {
            ConversationError::Chat(error) => runs_failure(error, &source, &help()),
            ConversationError::Criterion {
                line,
                column,
                path,
                problem,
            } => {
                let failure = Failure::input(problem.to_string());
                let failure = failure.at(source.place(line, column, path));
                match problem {
                    CriterionProblem::Missing | CriterionProblem::Term => failure.help(help()),
                    _ => failure,
                }
            }
        })?;
        let report = observed(output, "conversation", |observe| {
            criteria(&conversations, &methods, &self.share, &*counter, observe)
        });
        let report = report.map_err(|error| match error {
            CriteriaError::Stopped(_) => stopped(),
            error => Failure::internal(error.to_string()).in_file(&source.name),
        })?;
        if output.is_json() {
            output.json(&report)?;
        } else {
            write(&report, output)?;
        }
        Ok(Exit::Success)
    }
}

/// Returns the format of the input, for errors.
fn help() -> String {
    format!("a line: {CONVERSATION_FORMAT}")
}

/// Writes a table per share.
fn write(report: &CriteriaReport, output: &mut Output) -> Result<(), Failure> {
    for rows in report.results.chunk_by(|a, b| a.share == b.share) {
        let bold = style::HEADER;
        let percent = rows[0].share.percent();
        output.line(format_args!(
            "{bold}{percent} % of each conversation{bold:#}"
        ))?;
        let columns: Vec<_> = rows
            .iter()
            .map(|row| (&*row.policy, &row.estimates))
            .collect();
        table::write_columns(&columns, row, output)?;
    }
    output.finish()?;
    output.note(format_args!(
        "{}, {}, counted by {}; [95 % bootstrap interval over conversations]",
        counted(report.conversations, "conversation"),
        counted(report.requests, "request"),
        report.counter,
    ));
    Ok(())
}

/// Returns the label and the unit of a measure.
fn row(measure: CriteriaMeasure) -> (&'static str, Unit) {
    match measure {
        CriteriaMeasure::Recall => ("criterion recall, %", Unit::Percent),
        CriteriaMeasure::Fill => ("fill, %", Unit::Percent),
        CriteriaMeasure::Bill => ("bill", Unit::Factor),
        CriteriaMeasure::Failed => ("failed, %", Unit::Percent),
    }
}
