//! `cupel policy`

use clap::{Args, Subcommand, ValueEnum};
use cupel::config::{Format, Preset, policy_schema, presets, request_schema};
use cupel_app::answers_schema;
use serde_json::{Value, json};

use crate::failure::{Exit, Failure};
use crate::input;
use crate::output::{Output, columns, style};
use crate::task::Named;
use crate::text::wrap;

/// List, show and check policies
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES, arg_required_else_help = true)]
pub(crate) struct Policy {
    #[command(subcommand)]
    action: Action,
}

const EXAMPLES: &str = "\
Examples:
  cupel policy list
  cupel policy show rag > mine.json           start from a preset
  cupel policy check mine.json
  cupel policy schema > policy.schema.json    for editors";

#[derive(Debug, Subcommand)]
enum Action {
    /// List the presets
    #[command(after_help = LIST_EXAMPLES)]
    List,
    /// Print a preset or a policy document
    Show(Show),
    /// Check policy documents
    Check(Check),
    /// Print the JSON Schema of policy or request documents, or of answers
    Schema(Schema),
}

const LIST_EXAMPLES: &str = "\
Examples:
  cupel policy list
  cupel policy list --json | jq -r '.[].name'";

#[derive(Debug, Args)]
#[command(after_help = SHOW_EXAMPLES)]
struct Show {
    /// Preset or policy file
    #[arg(value_name = "NAME|FILE")]
    policy: String,

    /// Output format
    #[arg(long, value_enum, value_name = "FORMAT", default_value = "json")]
    format: OutputFormat,
}

const SHOW_EXAMPLES: &str = "\
Examples:
  cupel policy show chat
  cupel policy show rag --format toml > mine.toml
  cupel policy show mine.toml --format yaml";

#[derive(Debug, Args)]
#[command(after_help = CHECK_EXAMPLES)]
struct Check {
    /// Policy files or presets; `-` reads standard input
    #[arg(value_name = "NAME|FILE", required = true)]
    policies: Vec<String>,
}

const CHECK_EXAMPLES: &str = "\
Examples:
  cupel policy check mine.toml
  cupel policy check policies/*.yaml";

#[derive(Debug, Args)]
#[command(after_help = SCHEMA_EXAMPLES)]
struct Schema {
    /// Print the schema of request documents
    #[arg(long)]
    request: bool,

    /// Print the schema of the answers with --json
    #[arg(long, conflicts_with = "request")]
    answers: bool,
}

const SCHEMA_EXAMPLES: &str = "\
Examples:
  cupel policy schema > policy.schema.json
  cupel policy schema --request > request.schema.json
  cupel policy schema --answers > answers.schema.json";

#[derive(Debug, Clone, Copy, ValueEnum)]
enum OutputFormat {
    Json,
    Toml,
    Yaml,
}

impl From<OutputFormat> for Format {
    fn from(format: OutputFormat) -> Self {
        match format {
            OutputFormat::Json => Self::Json,
            OutputFormat::Toml => Self::Toml,
            OutputFormat::Yaml => Self::Yaml,
        }
    }
}

impl Policy {
    pub(crate) fn run(self, output: &mut Output) -> Result<Exit, Failure> {
        match self.action {
            Action::List => list(output),
            Action::Show(show) => show.run(output),
            Action::Check(check) => check.run(output),
            Action::Schema(schema) => {
                let schema = if schema.answers {
                    answers_schema().to_owned()
                } else if schema.request {
                    request_schema()
                } else {
                    policy_schema()
                };
                output.text(schema)?;
                Ok(Exit::Success)
            }
        }
    }
}

fn list(output: &mut Output) -> Result<Exit, Failure> {
    if output.is_json() {
        let presets = presets().iter().map(Preset::config);
        output.json(&presets.collect::<Vec<_>>())?;
        return Ok(Exit::Success);
    }
    let bold = style::HEADER;
    for (title, for_chats) in [("For chats:", true), ("For items:", false)] {
        output.line(format_args!("{bold}{title}{bold:#}"))?;
        for preset in presets().iter().filter(|it| it.is_for_chats() == for_chats) {
            let (name, description) = (preset.name(), preset.description());
            let line = format!("  {bold}{name:<12}{bold:#}  {description}");
            for line in wrap(&line, columns(), 16) {
                output.line(line)?;
            }
        }
    }
    Ok(Exit::Success)
}

impl Show {
    fn run(self, output: &mut Output) -> Result<Exit, Failure> {
        let config = Named::find(&self.policy)?.config()?;
        let format = if output.is_json() {
            Format::Json
        } else {
            self.format.into()
        };
        let text = config
            .to_text(format)
            .map_err(|error| Failure::input(error.to_string()))?;
        output.text(text)?;
        Ok(Exit::Success)
    }
}

impl Check {
    /// Reports every error of every file.
    fn run(self, output: &mut Output) -> Result<Exit, Failure> {
        let mut exit = Exit::Success;
        let mut checked = Vec::new();
        for name in &self.policies {
            let named = match name.as_str() {
                "-" => input::read("-".as_ref()).map(Named::File),
                name => Named::find(name),
            };
            let faults = match named {
                Ok(Named::Preset(_)) => Vec::new(),
                Ok(Named::File(source)) => source
                    .policy_faults()
                    .into_iter()
                    .map(Failure::from)
                    .collect(),
                Err(failure) => vec![failure],
            };
            checked.push(report(name, faults, &mut exit, output)?);
        }
        if output.is_json() {
            output.json(&checked)?;
        }
        Ok(exit)
    }
}

/// Reports what is wrong with a document, or that it is valid. Returns its entry of the answer.
pub(super) fn report(
    name: &str,
    faults: Vec<Failure>,
    exit: &mut Exit,
    output: &mut Output,
) -> Result<Value, Failure> {
    let problems = faults.into_iter().map(Failure::into_problem);
    let problems = problems.collect::<Result<Vec<_>, _>>()?;
    let worst = problems.iter().map(|problem| problem.exit);
    *exit = worst.fold(*exit, Exit::max);
    let mut entry = json!({ "file": name, "ok": problems.is_empty() });
    match &problems[..] {
        [] if output.is_json() => {}
        [] => {
            let style = style::IN;
            output.line(format_args!("{name}: {style}ok{style:#}"))?;
        }
        _ if output.is_json() => {
            let errors = problems
                .iter()
                .map(|problem| problem.json()["error"].take());
            entry["errors"] = errors.collect();
        }
        _ => problems.iter().for_each(|problem| output.problem(problem)),
    }
    Ok(entry)
}
