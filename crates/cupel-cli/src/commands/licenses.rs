//! `cupel licenses`

use clap::Args;

use crate::failure::{Exit, Failure};
use crate::output::Output;

/// Print the licenses of the command and of all that it contains
///
/// The command is built from Rust crates and contains vocabularies of several providers. Llama 3, `DeepSeek` and Kimi K2
/// have licenses of their own.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Licenses {}

const EXAMPLES: &str = "\
Examples:
  cupel licenses | less
  cupel licenses > LICENSES.txt";

/// The texts in order. `cargo xtask licenses` writes the last one.
const TEXTS: &[&str] = &[
    include_str!("../../LICENSE"),
    "The vocabularies o200k_base and cl100k_base are those of OpenAI's tiktoken:\n\n",
    include_str!("../../licenses/LICENSE-OPENAI"),
    #[cfg(feature = "vocabularies")]
    include_str!("../../licenses/vocabularies/NOTICE"),
    #[cfg(feature = "vocabularies")]
    include_str!("../../licenses/vocabularies/LICENSE-LLAMA-3"),
    #[cfg(feature = "vocabularies")]
    include_str!("../../licenses/vocabularies/LICENSE-LLAMA-3.1"),
    #[cfg(feature = "vocabularies")]
    include_str!("../../licenses/vocabularies/LICENSE-DEEPSEEK"),
    #[cfg(feature = "vocabularies")]
    include_str!("../../licenses/vocabularies/LICENSE-KIMI-K2"),
    #[cfg(feature = "vocabularies")]
    include_str!("../../licenses/vocabularies/LICENSE-APACHE-2.0"),
    include_str!("../../licenses/crates.txt"),
];

impl Licenses {
    #[expect(clippy::unused_self, reason = "every command is run in this way")]
    pub(crate) fn run(self, output: &mut Output) -> Result<Exit, Failure> {
        for text in TEXTS {
            output.text(format_args!("{}\n\n", text.trim_end()))?;
        }
        Ok(Exit::Success)
    }
}
