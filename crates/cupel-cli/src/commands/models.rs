//! `cupel models`

use clap::Args;
use cupel_app::{CounterName, ModelAnswer};
use cupel_chat::{Encoding, MODELS, MODELS_AS_OF, Model};

use crate::failure::{Exit, Failure};
use crate::output::{Output, columns, style};
use crate::text::{Table, grouped, left, right};

/// List the known models with their context windows
///
/// Each has its encoding, and the documentation that its figures are from. `input` is the most that a request may
/// have, if that is less than the window.
///
/// Names with a date, a variant or a provider (`openai/gpt-4o-mini-2024-07-18`) are found too.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Models {
    /// Show the row that a model name is found by
    #[arg(value_name = "NAME")]
    name: Option<String>,
}

const EXAMPLES: &str = "\
Examples:
  cupel models
  cupel models claude-sonnet-4-5-20250929
  cupel models --json | jq -r '.[] | select(.window >= 1000000).name'";

impl Models {
    pub(crate) fn run(self, output: &mut Output) -> Result<Exit, Failure> {
        let found = self.name.as_deref().map(Model::find).transpose();
        let found = found.map_err(|error| Failure::input(error.to_string()))?;
        let models = found.map_or(MODELS, std::slice::from_ref);
        if output.is_json() {
            output.json(&models.iter().map(ModelAnswer::from).collect::<Vec<_>>())?;
            return Ok(Exit::Success);
        }
        for of_source in models.chunk_by(|a, b| a.source == b.source) {
            let bold = style::HEADER;
            output.line(format_args!("{bold}{}{bold:#}", of_source[0].source))?;
            for line in table(of_source).lines(columns() - 2) {
                output.line(format_args!("  {line}"))?;
            }
            output.line("")?;
        }
        output.wrapped(format_args!(
            "As of {MODELS_AS_OF}. For any other model, give --encoding and --budget."
        ))?;
        if models
            .iter()
            .any(|model| CounterName::of(model) == CounterName::Exact(Encoding::Llama3))
        {
            // The license of this vocabulary asks for these words where a product shows what it is built with.
            output.line("Built with Meta Llama 3.")?;
        }
        Ok(Exit::Success)
    }
}

fn table(models: &[Model]) -> Table {
    // Most providers accept a request of the whole window; their tables have no column for it.
    let has_limits = models.iter().any(|model| model.input_limit.is_some());
    let mut columns = vec![left("model"), right("window")];
    columns.extend(has_limits.then(|| right("input")));
    columns.push(left("tokens counted"));
    let mut table = Table::new(columns, &[]);
    for model in models {
        let mut row = vec![model.name.to_owned(), grouped(model.window)];
        row.extend(has_limits.then(|| model.input_limit.map(grouped).unwrap_or_default()));
        row.push(match CounterName::of(model) {
            CounterName::Exact(encoding) => format!("exactly, {encoding}"),
            CounterName::Heuristic => "estimated".to_owned(),
        });
        table.row(row);
    }
    table
}
