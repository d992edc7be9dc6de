//! `cupel completions`

use clap::{Args, CommandFactory as _};
use clap_complete::Shell;

use crate::args::Cli;
use crate::failure::{Exit, Failure};
use crate::output::Output;

/// Write a shell completion script
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Completions {
    /// Shell
    #[arg(value_enum)]
    shell: Shell,
}

const EXAMPLES: &str = "\
Examples:
  cupel completions bash > ~/.local/share/bash-completion/completions/cupel
  cupel completions zsh > ~/.zfunc/_cupel
  cupel completions fish > ~/.config/fish/completions/cupel.fish";

impl Completions {
    pub(crate) fn run(self, output: &mut Output) -> Result<Exit, Failure> {
        let mut script = Vec::new();
        clap_complete::generate(self.shell, &mut Cli::command(), "cupel", &mut script);
        output.text(String::from_utf8_lossy(&script))?;
        Ok(Exit::Success)
    }
}
