//! The configuration: the file `cupel.toml`, how it is found, and the options that name another or none.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::Args;
use cupel_app::{Config, Error, Fault, Source};

use crate::failure::{Failure, plain};

/// The name of the file that is searched for.
pub(crate) const FILE: &str = "cupel.toml";

/// The variable that names the file instead.
pub(crate) const VARIABLE: &str = "CUPEL_CONFIG";

/// Which configuration is read.
#[derive(Debug, Default, Args)]
#[command(next_help_heading = "Configuration")]
pub(crate) struct ConfigArgs {
    /// Configuration file. Default: the nearest cupel.toml
    ///
    /// It is searched in the working directory and those above it; the environment variable `CUPEL_CONFIG` names
    /// another, and an empty one turns the search off. Options come before what a request states (its model, budget and
    /// policy), that before the file, and the file before the defaults. `cupel config` shows it.
    #[arg(long, hide_short_help = true, value_name = "FILE")]
    config: Option<PathBuf>,

    /// Read no configuration file
    #[arg(long, hide_short_help = true, conflicts_with = "config")]
    no_config: bool,
}

impl ConfigArgs {
    /// Reads the configuration, if there is one.
    pub(crate) fn load(&self) -> Result<Option<Arc<Config>>, Failure> {
        let Some(path) = self.path() else {
            return Ok(None);
        };
        let source = read(&path)?;
        let config = Config::read(&source, &mut |name| load_policy(&path, name))?;
        Ok(Some(Arc::new(config)))
    }

    /// Returns the path of the file.
    pub(crate) fn path(&self) -> Option<PathBuf> {
        if self.no_config {
            return None;
        }
        if let Some(path) = &self.config {
            return Some(path.clone());
        }
        match std::env::var_os(VARIABLE) {
            Some(path) if path.is_empty() => None,
            Some(path) => Some(path.into()),
            None => search(),
        }
    }
}

/// Returns the file in the working directory, or in the nearest one above that has it, relative to the working
/// directory: errors and summaries are the same wherever a checkout is.
fn search() -> Option<PathBuf> {
    candidates().find(|path| path.is_file())
}

/// Returns the file that would be read without the one in the working directory.
pub(crate) fn search_above() -> Option<PathBuf> {
    candidates().skip(1).find(|path| path.is_file())
}

/// Returns the paths that are tried: `cupel.toml`, `../cupel.toml` and so on, up to the root of the file system. A
/// directory of that name is none; a file that cannot be read is found, and an error.
fn candidates() -> impl Iterator<Item = PathBuf> {
    let directory = std::env::current_dir().unwrap_or_default();
    let depth = directory.ancestors().count();
    (0..depth).map(|above| {
        let up = std::iter::repeat_n("..", above);
        up.chain([FILE]).collect()
    })
}

/// Reads the file, which may be empty.
pub(crate) fn read(path: &Path) -> Result<Source, Failure> {
    let bytes = std::fs::read(path).map_err(|error| {
        let failure = Failure::io("read", path, &error);
        failure.help(format!(
            "check --config and {VARIABLE}, which name the configuration"
        ))
    })?;
    let name = path.display().to_string();
    match Source::from_bytes(name.clone(), bytes) {
        Err(error) if matches!(*error.fault, Fault::EmptyText { .. }) => Ok(Source::new(name, "")),
        source => Ok(source?),
    }
}

/// Reads the policy document that a configuration names. Its path is relative to the configuration. A name without a
/// directory and an extension is that of a file only if there is one.
pub(crate) fn load_policy(config: &Path, name: &str) -> Result<Option<Source>, Error> {
    let named = Path::new(name);
    let looks_like_a_file = named.components().count() > 1 || named.extension().is_some();
    let path = config.parent().unwrap_or(Path::new("")).join(named);
    if !looks_like_a_file && !path.exists() {
        return Ok(None);
    }
    let bytes = std::fs::read(&path).map_err(|error| {
        let problem = format!("cannot read {}: {}", path.display(), plain(&error));
        Error::new(Fault::PolicyFile(problem))
    })?;
    Source::from_bytes(path.display().to_string(), bytes).map(Some)
}
