//! A copy of the repository with the mutants in it.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::UNIX_EPOCH;

use serde_json::Value;

use super::list::Mutant;
use super::runner::{Binary, Verdict};
use super::schemata::{MODULE, Place, Ranges, Schemata};
use super::{directory, write};
use crate::process::{self, cargo};
use crate::{read, root};

/// The crates with mutants. Their unit tests and integration tests run.
const CRATES: [&str; 2] = ["cupel", "cupel-chat"];

/// A mutant may do what the compiler denies.
const ALLOW: &str =
    "#![allow(warnings, arithmetic_overflow, unconditional_panic, overflowing_literals)]";

pub(super) struct Tree {
    root: PathBuf,
}

impl Tree {
    /// Copies the files that git knows or would add.
    pub(super) fn copy() -> Result<Self, String> {
        let tree = Self {
            root: directory().join("tree"),
        };
        let mut git = Command::new("git");
        git.args(["ls-files", "--cached", "--others", "--exclude-standard"]);
        let files = process::output(git.current_dir(root()))?;
        let list = directory().join("files.txt");
        if read(&list).is_ok_and(|before| before != files) {
            std::fs::remove_dir_all(&tree.root).map_err(|error| error.to_string())?;
        }
        std::fs::create_dir_all(&tree.root).map_err(|error| error.to_string())?;
        write(&list, &files)?;
        // Cargo builds only what changed since the last run.
        let mut copy = Command::new("cp");
        copy.args(["--archive", "--update", "--parents"])
            .args(files.lines().filter(|file| root().join(file).exists()));
        process::run(
            copy.arg(&tree.root).current_dir(root()),
            "it copies the repository",
        )?;
        for package in CRATES {
            let library = format!("crates/{package}/src/lib.rs");
            let source = read(&root().join(&library))?;
            write(
                &tree.root.join(library),
                &format!("{ALLOW}{source}{MODULE}"),
            )?;
        }
        Ok(tree)
    }

    /// Writes the schemata without the mutants that do not compile, and returns these.
    pub(super) fn check(
        &self,
        schemata: &mut Schemata,
        mutants: &[Mutant],
    ) -> Result<BTreeSet<u32>, String> {
        // The mutants of unchanged files that did not compile the last time.
        let list = directory().join("uncompilable.txt");
        let before = read(&list).unwrap_or_default();
        let before: BTreeSet<&str> = before.lines().collect();
        let mut keys = BTreeMap::new();
        for mutant in mutants {
            keys.insert(
                mutant.id,
                format!("{} {}", modified(&mutant.file)?, mutant.name),
            );
        }
        let known = keys.iter().filter(|(_, key)| before.contains(key.as_str()));
        let mut unviable: BTreeSet<u32> = known.map(|(id, _)| *id).collect();
        schemata.remove(&unviable, &BTreeSet::new());
        loop {
            let mut ranges = BTreeMap::new();
            for file in schemata.files() {
                let (source, ranges_of_file) = schemata.source(file);
                write(&self.root.join(file), &source)?;
                ranges.insert(file.to_owned(), ranges_of_file);
            }
            let (mut mutants, mut functions) = (BTreeSet::new(), BTreeSet::new());
            let (is_built, messages) = self.cargo("check", &["--keep-going", "--lib"])?;
            if is_built {
                let lines: Vec<&str> = unviable.iter().map(|id| keys[id].as_str()).collect();
                write(&list, &lines.join("\n"))?;
                return Ok(unviable);
            }
            for error in messages.iter().map(|message| &message["message"]) {
                if error["level"] != "error" {
                    continue;
                }
                for (file, byte) in positions(error) {
                    match ranges
                        .get(&file)
                        .and_then(|ranges| Ranges::find(ranges, byte))
                    {
                        Some(Place::Mutant(id)) => mutants.insert(id),
                        Some(Place::Function(id)) => functions.insert(id),
                        None => return Err(error["rendered"].to_string()),
                    };
                }
            }
            if mutants.is_empty() && functions.is_empty() {
                return Err("the schemata do not compile, without an error in them".into());
            }
            println!("{} mutants do not compile", mutants.len());
            schemata.remove(&mutants, &functions);
            unviable.extend(mutants);
        }
    }

    /// Builds the tests and returns their executables, each with the directory of its package; `None` if they do
    /// not compile.
    pub(super) fn build(&self) -> Result<Option<Vec<Binary>>, String> {
        let (is_built, messages) = self.cargo("test", &["--no-run", "--lib", "--test=suite"])?;
        let binary = |message: &Value| {
            let manifest = Path::new(message["manifest_path"].as_str()?);
            Some(Binary {
                path: message["executable"].as_str()?.into(),
                package: manifest.parent()?.to_owned(),
            })
        };
        let binaries = messages.iter().filter_map(binary);
        Ok(is_built.then(|| binaries.collect()))
    }

    /// Writes the files without schemata, which a build of one mutant does not need.
    pub(super) fn write_originals(&self, schemata: &Schemata) -> Result<(), String> {
        let mut files = schemata.files();
        files.try_for_each(|file| write(&self.root.join(file), schemata.original(file)))
    }

    /// Builds the tests with one mutant in the originals and runs `test`, or returns that it is unviable.
    pub(super) fn with_mutant(
        &self,
        schemata: &Schemata,
        mutant: &Mutant,
        test: impl FnOnce() -> Result<Verdict, String>,
    ) -> Result<Verdict, String> {
        let path = self.root.join(&mutant.file);
        write(&path, &schemata.with_mutant(mutant))?;
        let verdict = match self.build()? {
            Some(_) => test(),
            None => Ok(Verdict::Unviable),
        };
        write(&path, schemata.original(&mutant.file))?;
        verdict
    }

    fn cargo(&self, command: &str, arguments: &[&str]) -> Result<(bool, Vec<Value>), String> {
        let mut cargo = cargo([command, "--profile=mutants", "--all-features", "--quiet"]);
        cargo.args(CRATES.map(|package| format!("--package={package}")));
        cargo.arg("--message-format=json").args(arguments);
        cargo.env("CARGO_TARGET_DIR", directory().join("target"));
        let output = cargo.current_dir(&self.root).output();
        let output = output.map_err(|error| format!("cargo {command}: {error}"))?;
        let text = String::from_utf8_lossy(&output.stdout);
        let messages = text
            .lines()
            .filter_map(|line| serde_json::from_str(line).ok());
        Ok((output.status.success(), messages.collect()))
    }
}

/// Returns the time of the last change of a file, in nanoseconds.
fn modified(file: &str) -> Result<u128, String> {
    let time = std::fs::metadata(root().join(file)).and_then(|metadata| metadata.modified());
    let time = time.map_err(|error| format!("{file}: {error}"))?;
    Ok(time
        .duration_since(UNIX_EPOCH)
        .map_or(0, |time| time.as_nanos()))
}

/// Returns the files and bytes of an error, outside of macros of other crates.
fn positions(error: &Value) -> Vec<(String, usize)> {
    let spans = error["spans"].as_array().into_iter().flatten();
    let primary = spans.filter(|span| span["is_primary"] == true);
    let positions = primary.filter_map(|span| {
        let mut span = span;
        while span["expansion"].is_object() {
            span = &span["expansion"]["span"];
        }
        let byte = span["byte_start"]
            .as_u64()
            .and_then(|byte| usize::try_from(byte).ok());
        Some((span["file_name"].as_str()?.to_owned(), byte?))
    });
    positions.collect()
}
