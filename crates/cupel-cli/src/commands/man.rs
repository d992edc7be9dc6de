//! `cupel man`

use std::path::PathBuf;

use clap::{Args, CommandFactory as _};

use crate::args::Cli;
use crate::failure::{Exit, Failure};
use crate::output::Output;
use crate::replace::write_file;

/// Write the manual pages
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Man {
    /// Directory for the pages of all subcommands. Default: print the main page
    #[arg(value_name = "DIR")]
    directory: Option<PathBuf>,
}

const EXAMPLES: &str = "\
Examples:
  cupel man | man -l -                     show the main page
  cupel man ~/.local/share/man/man1        install all pages";

impl Man {
    pub(crate) fn run(self, output: &mut Output) -> Result<Exit, Failure> {
        let mut command = Cli::command();
        let Some(directory) = self.directory else {
            output.text(page(&command)?)?;
            return Ok(Exit::Success);
        };
        std::fs::create_dir_all(&directory)
            .map_err(|error| Failure::io("create", &directory, &error))?;
        // Gives subcommands their full names: `cupel-policy-list`.
        command.build();
        let mut pages = vec![command];
        while let Some(command) = pages.pop() {
            let name = command
                .get_display_name()
                .unwrap_or_else(|| command.get_name());
            let path = directory.join(format!("{name}.1"));
            write_file(&path, &page(&command)?)?;
            output.line(path.display())?;
            let subcommands = command.get_subcommands();
            pages.extend(subcommands.filter(|sub| sub.get_name() != "help").cloned());
        }
        Ok(Exit::Success)
    }
}

fn page(command: &clap::Command) -> Result<String, Failure> {
    let mut page = Vec::new();
    clap_mangen::Man::new(command.clone())
        .render(&mut page)
        .map_err(|error| Failure::internal(error.to_string()))?;
    Ok(String::from_utf8_lossy(&page).into_owned())
}
