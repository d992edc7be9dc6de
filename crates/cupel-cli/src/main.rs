//! The command `cupel`: fits chats and items into a token budget, and explains why.

mod args;
mod budget;
mod chats;
mod classify;
mod commands;
mod conformance;
mod counting;
mod decision;
mod diff;
mod failure;
mod input;
mod kinds;
mod output;
mod page;
mod progress;
mod session;
mod summary;
mod task;
mod text;
mod trimming;
mod windows;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::ExitCode;

use self::args::Cli;
use self::failure::{Exit, Failure, Problem};
use self::output::{Output, OutputOptions};

fn main() -> ExitCode {
    let cli = match Cli::parse() {
        Ok(cli) => cli,
        Err(error) if error.use_stderr() && std::env::args_os().any(|arg| arg == "--json") => {
            Output::new(OutputOptions::json()).problem(&Problem::usage(&error.to_string()));
            return ExitCode::from(Exit::Input as u8);
        }
        Err(error) if error.use_stderr() => {
            let text = error.render().ansi().to_string();
            Output::new(OutputOptions::default()).usage(&text);
            return ExitCode::from(Exit::Input as u8);
        }
        Err(error) => error.exit(),
    };
    let mut output = Output::new(cli.output_options());
    let exit = guarded(&mut output, |output| {
        let exit = cli.command.run(output)?;
        output.finish()?;
        Ok(exit)
    });
    ExitCode::from(exit as u8)
}

/// Runs the command and writes its error. A panic is an internal error.
fn guarded(output: &mut Output, run: impl FnOnce(&mut Output) -> Result<Exit, Failure>) -> Exit {
    let unwinding = catch_unwind(AssertUnwindSafe(|| run(output)));
    let result = unwinding.unwrap_or_else(|_| Err(Failure::internal("the command panicked")));
    match result {
        Ok(exit) => exit,
        Err(Failure::ClosedPipe) => Exit::Success,
        Err(Failure::Told(problem)) => {
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
