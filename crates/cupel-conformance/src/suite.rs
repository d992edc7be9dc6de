//! The vectors in this crate, and vectors from anywhere else.

use std::{collections::BTreeMap, fs, path::Path};

use crate::{
    error::{Problem, VectorError, VectorErrors},
    vector::Vector,
};

/// Every embedded file: its path below `vectors/` and its content, sorted by path.
const FILES: &[(&str, &str)] = include!(concat!(env!("OUT_DIR"), "/vectors.rs"));

/// The file with data about the suite; not a case.
const SUITE_FILE: &str = "suite.toml";

/// The version of the embedded suite. State it with a claim of conformance.
pub const SUITE_VERSION: &str = env!("CARGO_PKG_VERSION");

/// Returns the embedded suite, sorted by path.
///
/// # Errors
///
/// Returns every invalid file. The released suite has none.
///
/// ```
/// let vectors = cupel_conformance::suite()?;
/// assert!(vectors.is_sorted_by_key(|vector| vector.path.clone()));
/// # Ok::<(), cupel_conformance::VectorErrors>(())
/// ```
pub fn suite() -> Result<Vec<Vector>, VectorErrors> {
    gather(
        FILES
            .iter()
            .map(|(path, text)| Vector::parse(path, text))
            .collect(),
    )
}

/// Returns the classes of bug the embedded suite catches: flag and explanation.
///
/// ```
/// assert!(cupel_conformance::flags().contains_key("TwinContent"));
/// ```
///
/// # Panics
///
/// Never in a release: the tests of this crate read the embedded table.
pub fn flags() -> BTreeMap<String, String> {
    let suite: toml::Table = include_str!("../vectors/suite.toml")
        .parse()
        .expect("vectors/suite.toml is TOML");
    let flags = suite["flags"]
        .as_table()
        .expect("vectors/suite.toml has a table `flags`");
    flags
        .iter()
        .map(|(flag, text)| {
            let text = text.as_str().expect("every flag is explained by a string");
            (flag.clone(), text.to_owned())
        })
        .collect()
}

/// Loads every vector in a directory and its subdirectories, sorted by path: all files ending in
/// `.toml` except `suite.toml`.
///
/// # Errors
///
/// Returns every directory that cannot be listed and every invalid file.
pub fn load_dir(path: impl AsRef<Path>) -> Result<Vec<Vector>, VectorErrors> {
    let mut read = Vec::new();
    load_into(path.as_ref(), &mut read);
    gather(read)
}

fn load_into(directory: &Path, read: &mut Vec<Result<Vector, VectorError>>) {
    let listed = fs::read_dir(directory).and_then(Iterator::collect::<Result<Vec<_>, _>>);
    let mut paths: Vec<_> = match listed {
        Ok(entries) => entries.iter().map(fs::DirEntry::path).collect(),
        Err(error) => return read.push(Err(io_error(directory, error))),
    };
    paths.sort();
    for path in paths {
        if path.is_dir() {
            load_into(&path, read);
        } else if path.extension().is_some_and(|end| end == "toml")
            && path.file_name().is_some_and(|name| name != SUITE_FILE)
        {
            read.push(match fs::read_to_string(&path) {
                Ok(text) => Vector::parse(&slashed(&path), &text),
                Err(error) => Err(io_error(&path, error)),
            });
        }
    }
}

fn io_error(path: &Path, error: std::io::Error) -> VectorError {
    VectorError {
        path: slashed(path),
        key: String::new(),
        problem: Box::new(Problem::Io(error)),
    }
}

fn slashed(path: &Path) -> String {
    path.to_string_lossy().replace('\\', "/")
}

fn gather(read: Vec<Result<Vector, VectorError>>) -> Result<Vec<Vector>, VectorErrors> {
    let mut vectors = Vec::with_capacity(read.len());
    let mut errors = Vec::new();
    for result in read {
        match result {
            Ok(vector) => vectors.push(vector),
            Err(error) => errors.push(error),
        }
    }
    if errors.is_empty() {
        Ok(vectors)
    } else {
        Err(VectorErrors(errors))
    }
}
