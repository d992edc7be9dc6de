//! `cupel models`

use clap::Args;
use cupel_chat::{Encoding, MODELS, MODELS_AS_OF, Model, TokenCounter as _};
use serde_json::{Value, json};

use crate::failure::{Exit, Failure};
use crate::output::{Output, columns, style};
use crate::text::{Table, grouped, left, right};

/// List the known models with their context windows
///
/// Each has its encoding, and the documentation that its figures are from.
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
            output.json(&models.iter().map(document).collect::<Vec<_>>())?;
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
            .any(|model| model.encoding == Some(Encoding::Llama3))
        {
            // The license of this vocabulary asks for these words where a product shows what it is built with.
            output.line("Built with Meta Llama 3.")?;
        }
        Ok(Exit::Success)
    }
}

fn table(models: &[Model]) -> Table {
    let mut table = Table::new(
        [left("model"), right("window"), left("tokens counted")],
        &[],
    );
    for model in models {
        table.row(vec![
            model.name.to_owned(),
            grouped(model.window),
            match model.encoding {
                Some(encoding) => format!("exactly, {encoding}"),
                None => "estimated".to_owned(),
            },
        ]);
    }
    table
}

fn document(model: &Model) -> Value {
    json!({
        "name": model.name,
        "window": model.window,
        "encoding": model.encoding.map(|encoding| encoding.name().to_owned()),
        "estimated": model.encoding.is_none(),
        "source": model.source,
        "as_of": MODELS_AS_OF,
    })
}
