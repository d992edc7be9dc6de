//! The command `cupel`: arguments, files, the terminal and exit codes around the questions of [`cupel_app`].

mod args;
mod budget;
mod chats;
mod commands;
mod config;
mod conformance;
mod counting;
mod dialect;
mod diff;
mod failure;
mod input;
mod output;
mod page;
mod progress;
mod replace;
mod session;
mod summary;
mod task;
mod text;
mod trimming;
mod version;

use std::ffi::OsString;
use std::panic::{AssertUnwindSafe, catch_unwind};

use self::args::Cli;
use self::failure::{Exit, Failure, Problem};
use self::output::{Output, OutputOptions};

/// Runs the command line, whose first argument is the name of the program, and returns the exit status.
pub fn main(arguments: impl IntoIterator<Item = OsString>) -> u8 {
    let arguments: Vec<OsString> = arguments.into_iter().collect();
    let cli = match Cli::parse(&arguments) {
        Ok(cli) => cli,
        Err(error) if error.use_stderr() && arguments.iter().any(|arg| arg == "--json") => {
            Output::new(OutputOptions::json()).problem(&Problem::usage(&error.to_string()));
            return Exit::Input as u8;
        }
        Err(error) if error.use_stderr() => {
            let text = error.render().ansi().to_string();
            Output::new(OutputOptions::default()).usage(&text);
            return Exit::Input as u8;
        }
        Err(help) => {
            let _ = help.print();
            return Exit::Success as u8;
        }
    };
    let mut output = Output::new(cli.output_options());
    let exit = guarded(&mut output, |output| {
        let exit = cli.command.run(output)?;
        output.finish()?;
        Ok(exit)
    });
    exit as u8
}

/// Renders the page of `cupel explain --html` for an input. `date` is for its footer, such as `2026-11-16`.
///
/// # Errors
///
/// Why the policy has no window at the budget of the input.
pub fn page(
    prepared: &cupel_app::Prepared,
    date: Option<&str>,
) -> Result<String, cupel_app::Error> {
    page::render(prepared, date.and_then(|date| page::Date::parse(date).ok()))
}

/// Runs the command and writes its error. A panic is an internal error.
fn guarded(output: &mut Output, run: impl FnOnce(&mut Output) -> Result<Exit, Failure>) -> Exit {
    let unwinding = catch_unwind(AssertUnwindSafe(|| run(output)));
    let result = unwinding.unwrap_or_else(|_| Err(Failure::internal("the command panicked")));
    match result {
        Ok(exit) => exit,
        Err(Failure::ClosedPipe) => Exit::Success,
        Err(Failure::Problem(problem)) => {
            output.problem(&problem);
            problem.exit
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_exits_with_3_and_a_closed_pipe_with_0() {
        let mut output = Output::new(OutputOptions::json());
        let panicking = guarded(&mut output, |_| panic!("on purpose"));
        assert_eq!(panicking as u8, 3);
        let closed = guarded(&mut output, |_| Err(Failure::ClosedPipe));
        assert_eq!(closed as u8, 0);
    }
}
