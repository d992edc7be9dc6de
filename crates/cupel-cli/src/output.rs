//! Where the command writes: standard output for what was asked, standard error for the rest.

use std::fs::File;
use std::io::{self, BufWriter, IsTerminal as _, Write};
use std::path::Path;

use anstream::AutoStream;
use serde::Serialize;

use crate::failure::{Failure, Problem};

/// The styles of the command.
pub(crate) mod style {
    use anstyle::{AnsiColor, Style};

    pub(crate) const ERROR: Style = AnsiColor::Red.on_default().bold();
    pub(crate) const HELP: Style = AnsiColor::Cyan.on_default().bold();
    pub(crate) const RULE: Style = AnsiColor::Blue.on_default();
    pub(crate) const IN: Style = AnsiColor::Green.on_default();
    pub(crate) const OUT: Style = AnsiColor::Red.on_default();
    pub(crate) const HEADER: Style = Style::new().bold();
    pub(crate) const QUIET: Style = Style::new().dimmed();
}

/// When to use colors.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, clap::ValueEnum)]
pub(crate) enum Color {
    /// On terminals, unless `NO_COLOR` is set.
    #[default]
    Auto,
    /// Always.
    Always,
    /// Never.
    Never,
}

impl From<Color> for anstream::ColorChoice {
    fn from(color: Color) -> Self {
        match color {
            Color::Auto => Self::Auto,
            Color::Always => Self::Always,
            Color::Never => Self::Never,
        }
    }
}

/// Standard output and standard error.
pub(crate) struct Output {
    out: BufWriter<AutoStream<io::Stdout>>,
    err: AutoStream<io::Stderr>,
    json: bool,
}

impl Output {
    pub(crate) fn new(color: Color, json: bool) -> Self {
        Self {
            out: BufWriter::new(AutoStream::new(io::stdout(), color.into())),
            err: AutoStream::new(io::stderr(), color.into()),
            json,
        }
    }

    /// Whether answers are JSON.
    pub(crate) fn is_json(&self) -> bool {
        self.json
    }

    /// Writes a line of the answer.
    pub(crate) fn line(&mut self, text: impl std::fmt::Display) -> Result<(), Failure> {
        writeln!(self.out, "{text}").map_err(|error| written(&error))
    }

    /// Writes a part of the answer without a line end.
    pub(crate) fn text(&mut self, text: impl std::fmt::Display) -> Result<(), Failure> {
        write!(self.out, "{text}").map_err(|error| written(&error))
    }

    /// Writes the answer as JSON, indented on a terminal.
    pub(crate) fn json(&mut self, value: &impl Serialize) -> Result<(), Failure> {
        let text = if io::stdout().is_terminal() {
            serde_json::to_string_pretty(value)
        } else {
            serde_json::to_string(value)
        };
        self.line(text.map_err(|error| Failure::internal(error.to_string()))?)
    }

    /// Writes a line to standard error. A write error is ignored.
    pub(crate) fn note(&mut self, text: impl std::fmt::Display) {
        let _ = writeln!(self.err, "{text}");
    }

    /// Writes a progress text to standard error.
    pub(crate) fn note_part(&mut self, text: impl std::fmt::Display) {
        let _ = write!(self.err, "{text}").and_then(|()| self.err.flush());
    }

    /// Writes a problem, as JSON with `--json`.
    pub(crate) fn problem(&mut self, problem: &Problem) {
        let _ = self.out.flush();
        let _ = if self.json {
            writeln!(self.err, "{}", problem.json())
        } else {
            write!(self.err, "{problem}")
        };
    }

    /// Flushes standard output.
    pub(crate) fn finish(&mut self) -> Result<(), Failure> {
        self.out.flush().map_err(|error| written(&error))
    }
}

/// Returns the width of the terminal that standard output writes to.
pub(crate) fn columns() -> Option<usize> {
    let (width, _) = terminal_size::terminal_size_of(io::stdout())?;
    Some(width.0.into())
}

/// Writes a whole file.
pub(crate) fn write_file(path: &Path, text: &str) -> Result<(), Failure> {
    if path == Path::new("-") {
        return Err(
            Failure::input("`-` is standard output, which the answer uses")
                .help("name a file; ./- is a file named `-`"),
        );
    }
    File::create(path)
        .and_then(|mut file| file.write_all(text.as_bytes()))
        .map_err(|error| Failure::io("write", path, &error))
}

/// Returns the failure of a write to standard output.
pub(crate) fn written(error: &io::Error) -> Failure {
    if error.kind() == io::ErrorKind::BrokenPipe {
        Failure::ClosedPipe
    } else {
        Failure::io("write", Path::new("standard output"), error)
    }
}
