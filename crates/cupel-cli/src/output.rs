//! Where the command writes: standard output for the answer, standard error for the rest.
//!
//! Data, such as a chat, is written byte for byte. Text for people is escaped: what comes from the input must not
//! control the terminal.

use std::fmt::{self, Write as _};
use std::io::{self, BufWriter, IsTerminal as _, Write as _};
use std::path::{Path, PathBuf};

use anstream::AutoStream;
use anstream::adapter::strip_str;
use serde::Serialize;
use terminal_size::{Height, Width, terminal_size_of};

use crate::failure::{Failure, Problem};
pub(crate) use crate::replace::write_file;
use crate::text::{Table, escaped, escaped_json, escaped_styled, excerpt, wrap};

/// The styles of the command.
pub(crate) mod style {
    use anstyle::{AnsiColor, Style};

    pub(crate) const ERROR: Style = AnsiColor::Red.on_default().bold();
    pub(crate) const WARNING: Style = AnsiColor::Yellow.on_default().bold();
    pub(crate) const HELP: Style = AnsiColor::Cyan.on_default().bold();
    pub(crate) const RULE: Style = AnsiColor::Blue.on_default();
    pub(crate) const IN: Style = AnsiColor::Green.on_default();
    pub(crate) const OUT: Style = AnsiColor::Red.on_default();
    pub(crate) const SHORTENED: Style = AnsiColor::Yellow.on_default();
    pub(crate) const MATCH: Style = AnsiColor::Red.on_default().bold();
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

/// The options of the command line that say how the command writes.
#[derive(Debug, Clone, Default)]
pub(crate) struct OutputOptions {
    pub(crate) color: Color,
    pub(crate) json: bool,
    pub(crate) quiet: bool,
    /// The file for the answer; standard output by default.
    pub(crate) file: Option<PathBuf>,
}

impl OutputOptions {
    /// Returns the options for answers and errors as JSON.
    pub(crate) fn json() -> Self {
        Self {
            color: Color::Never,
            json: true,
            ..Self::default()
        }
    }
}

/// Standard output and standard error.
pub(crate) struct Output {
    /// Text for people on standard output, without styles unless it is a terminal.
    out: BufWriter<AutoStream<io::Stdout>>,
    /// Data on standard output. The filter for styles drops control characters.
    data: BufWriter<io::Stdout>,
    err: AutoStream<io::Stderr>,
    json: bool,
    quiet: bool,
    /// The file for the answer, and the answer so far, if it does not go to standard output. A run that fails leaves
    /// the file as it is.
    answer: Option<(PathBuf, String)>,
    /// Whether the file has the answer.
    is_written: bool,
}

/// The width where nothing states one.
const DEFAULT_COLUMNS: usize = 80;
/// The least width that lines are made for.
const MIN_COLUMNS: usize = 40;

impl Output {
    pub(crate) fn new(options: OutputOptions) -> Self {
        let color = options.color;
        let file = options.file.filter(|path| path != Path::new("-"));
        Self {
            out: BufWriter::new(AutoStream::new(io::stdout(), color.into())),
            data: BufWriter::new(io::stdout()),
            err: AutoStream::new(io::stderr(), color.into()),
            json: options.json,
            quiet: options.quiet,
            answer: file.map(|path| (path, String::new())),
            is_written: false,
        }
    }

    /// Whether answers are JSON.
    pub(crate) fn is_json(&self) -> bool {
        self.json
    }

    /// Whether only errors are written to standard error.
    pub(crate) fn is_quiet(&self) -> bool {
        self.quiet
    }

    /// Returns the file for the answer, for a command that writes it itself.
    pub(crate) fn take_file(&mut self) -> Option<PathBuf> {
        self.answer.take().map(|(path, _)| path)
    }

    /// Whether the answer goes to a file.
    pub(crate) fn has_file(&self) -> bool {
        self.answer.is_some()
    }

    /// Writes a line of the answer for people.
    pub(crate) fn line(&mut self, text: impl fmt::Display) -> Result<(), Failure> {
        let text = text.to_string();
        let text = escaped_styled(&text);
        match &mut self.answer {
            Some((_, answer)) => {
                self.is_written = false;
                let _ = writeln!(answer, "{}", strip_str(&text));
                Ok(())
            }
            None => self.write_line(&text).map_err(|error| written(&error)),
        }
    }

    /// Writes a line of data.
    pub(crate) fn data_line(&mut self, text: impl fmt::Display) -> Result<(), Failure> {
        self.text(format_args!("{text}\n"))
    }

    /// Writes data as it is.
    pub(crate) fn text(&mut self, text: impl fmt::Display) -> Result<(), Failure> {
        match &mut self.answer {
            Some((_, answer)) => {
                self.is_written = false;
                let _ = write!(answer, "{text}");
                Ok(())
            }
            None => self
                .out
                .flush()
                .and_then(|()| write!(self.data, "{text}"))
                .map_err(|error| written(&error)),
        }
    }

    /// Writes a line to standard output, even if the answer goes to a file. A reader that stops early then loses
    /// only these lines.
    pub(crate) fn show(&mut self, text: impl fmt::Display) -> Result<(), Failure> {
        let text = text.to_string();
        match self.write_line(&escaped_styled(&text)) {
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe && self.has_file() => Ok(()),
            shown => shown.map_err(|error| written(&error)),
        }
    }

    /// Writes a line for people to standard output, after the data so far.
    fn write_line(&mut self, text: &str) -> io::Result<()> {
        self.data.flush()?;
        writeln!(self.out, "{text}")
    }

    /// Flushes standard output.
    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()?;
        self.data.flush()
    }

    /// Writes a table as the answer, its header in bold.
    pub(crate) fn table(&mut self, table: &Table) -> Result<(), Failure> {
        let bold = style::HEADER;
        let mut lines = table.lines(columns()).into_iter();
        if let Some(header) = lines.next() {
            self.line(format_args!("{bold}{header}{bold:#}"))?;
        }
        lines.try_for_each(|line| self.line(line))
    }

    /// Writes a text of the answer in lines that fit.
    pub(crate) fn wrapped(&mut self, text: impl fmt::Display) -> Result<(), Failure> {
        let lines = wrap(&escaped_styled(&text.to_string()), columns(), INDENT);
        lines.into_iter().try_for_each(|line| self.line(line))
    }

    /// Writes a text of the answer in lines that fit a terminal; in a pipe it is one line.
    pub(crate) fn log(&mut self, text: &str) -> Result<(), Failure> {
        let columns = stated_columns(terminal_size_of(io::stdout()));
        let lines = wrap(text, columns.unwrap_or(usize::MAX), INDENT);
        lines.into_iter().try_for_each(|line| self.line(line))
    }

    /// Returns whether the answer goes to a terminal.
    pub(crate) fn is_on_terminal(&self) -> bool {
        self.answer.is_none() && io::stdout().is_terminal()
    }

    /// Writes the answer as JSON, indented on a terminal.
    pub(crate) fn json(&mut self, value: &impl Serialize) -> Result<(), Failure> {
        let text = if self.is_on_terminal() {
            serde_json::to_string_pretty(value).map(|text| escaped_json(&text).into_owned())
        } else {
            serde_json::to_string(value)
        };
        self.data_line(text.map_err(|error| Failure::internal(error.to_string()))?)
    }

    /// Writes a note to standard error in lines that fit. A write error is ignored.
    pub(crate) fn note(&mut self, text: impl fmt::Display) {
        if self.quiet {
            return;
        }
        let text = text.to_string();
        for line in wrap(&escaped_styled(&text), error_columns(), INDENT) {
            let _ = writeln!(self.err, "{line}");
        }
    }

    /// Writes a warning to standard error.
    pub(crate) fn warn(&mut self, text: impl fmt::Display) {
        let (text, warning) = (text.to_string(), style::WARNING);
        let text = escaped(&text);
        self.note(format_args!("{warning}warning{warning:#}: {text}"));
    }

    /// Writes a JSON value to standard error.
    pub(crate) fn note_json(&mut self, value: &serde_json::Value) {
        if !self.quiet {
            let _ = writeln!(self.err, "{}", escaped_json(&value.to_string()));
        }
    }

    /// Replaces the line of progress on standard error, which must be a terminal.
    pub(crate) fn progress(&mut self, text: &str) {
        let text = excerpt(text, error_columns() - 1);
        let _ = write!(self.err, "\r\u{1b}[K{text}").and_then(|()| self.err.flush());
    }

    /// Writes the fault of a command line in lines that fit a terminal.
    pub(crate) fn usage(&mut self, text: &str) {
        let columns = stated_columns(terminal_size_of(io::stderr())).unwrap_or(usize::MAX);
        for line in escaped_styled(text).lines() {
            for line in wrap(line, columns, INDENT) {
                let _ = writeln!(self.err, "{line}");
            }
        }
    }

    /// Writes a problem, as JSON with `--json`.
    pub(crate) fn problem(&mut self, problem: &Problem) {
        let _ = self.flush();
        let _ = if self.json {
            let json = problem.json().to_string();
            writeln!(self.err, "{}", escaped_json(&json))
        } else {
            // An error in a log is one line.
            let columns = stated_columns(terminal_size_of(io::stderr()));
            write!(self.err, "{}", escaped_problem(problem).text(columns))
        };
    }

    /// Flushes standard output and writes the file.
    pub(crate) fn finish(&mut self) -> Result<(), Failure> {
        if let (Some((path, answer)), false) = (&self.answer, self.is_written) {
            write_file(path, answer)?;
            self.is_written = true;
        }
        self.flush().map_err(|error| written(&error))
    }
}

/// Escapes the texts of a problem that may be from the input. The path and the source are shown as excerpts.
fn escaped_problem(problem: &Problem) -> Problem {
    let owned = |text: &String| escaped(text).into_owned();
    let mut problem = problem.clone();
    problem.message = owned(&problem.message);
    problem.help = problem.help.as_ref().map(owned);
    for detail in &mut problem.details {
        detail.what = owned(&detail.what);
    }
    if let Some(place) = &mut problem.place {
        place.file = owned(&place.file);
    }
    problem
}

/// The indentation of the second line of a text.
const INDENT: usize = 4;

/// Returns the width of the lines of the answer.
pub(crate) fn columns() -> usize {
    stated_columns(terminal_size_of(io::stdout())).unwrap_or(DEFAULT_COLUMNS)
}

/// Returns the width of the lines on standard error.
fn error_columns() -> usize {
    stated_columns(terminal_size_of(io::stderr())).unwrap_or(DEFAULT_COLUMNS)
}

/// Returns the width of a terminal, otherwise the one in `COLUMNS`.
fn stated_columns(terminal: Option<(Width, Height)>) -> Option<usize> {
    let columns = terminal.map(|(width, _)| width.0.into()).or_else(|| {
        let columns = std::env::var("COLUMNS").ok()?;
        columns.parse().ok()
    });
    columns.map(|columns: usize| columns.max(MIN_COLUMNS))
}

/// Returns the failure of a write to standard output.
pub(crate) fn written(error: &io::Error) -> Failure {
    if error.kind() == io::ErrorKind::BrokenPipe {
        Failure::ClosedPipe
    } else {
        Failure::io("write", Path::new("standard output"), error)
    }
}
