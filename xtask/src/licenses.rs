//! `cargo xtask licenses`: writes the notices of the crates and vocabularies in each artifact.
//!
//! An artifact is a program or an extension module, and contains the crates that its package depends on. Their
//! licenses ask for their texts to go with it. The texts come from the packages of the crates, as cargo unpacked
//! them. A test compares the files with what would be written.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::process::{self, cargo};
use crate::{entries, read, root};

/// The targets of the artifacts: what they depend on differs.
const TARGETS: [&str; 6] = [
    "aarch64-apple-darwin",
    "aarch64-unknown-linux-musl",
    "aarch64-unknown-linux-gnu",
    "x86_64-apple-darwin",
    "x86_64-pc-windows-msvc",
    "x86_64-unknown-linux-musl",
];

/// The packages of the artifacts: the manifest of the workspace, the package, and the folder of its notices.
pub(crate) const ARTIFACTS: [(&str, &str, &str); 3] = [
    ("Cargo.toml", "cupel-cli", "crates/cupel-cli/licenses"),
    (
        "bindings/python/Cargo.toml",
        "cupel-python",
        "bindings/python/licenses",
    ),
    (
        "bindings/python-vocabularies/Cargo.toml",
        "cupel-vocabularies",
        "bindings/python-vocabularies/licenses",
    ),
];

/// License files of the vocabularies: from the command, which has all, to the package that has some.
const COPIES: [(&str, &str); 3] = [
    ("LICENSE-OPENAI", "bindings/python/licenses"),
    ("LICENSE-OPENAI", "bindings/python-vocabularies/licenses"),
    (
        "vocabularies",
        "bindings/python-vocabularies/licenses/vocabularies",
    ),
];

pub(crate) fn write() -> Result<(), String> {
    for (path, text) in files()? {
        let fault = |error| format!("{}: {error}", path.display());
        if let Some(folder) = path.parent() {
            std::fs::create_dir_all(folder).map_err(fault)?;
        }
        std::fs::write(&path, text).map_err(fault)?;
        println!("{}", path.display());
    }
    Ok(())
}

/// Returns the generated files with their texts.
fn files() -> Result<Vec<(PathBuf, String)>, String> {
    let mut files = Vec::new();
    for (manifest, package, folder) in ARTIFACTS {
        let notices = notices(&root().join(manifest), package)?;
        files.push((root().join(folder).join("crates.txt"), notices));
    }
    for (name, folder) in COPIES {
        let from = root().join("crates/cupel-cli/licenses").join(name);
        let to = root().join(folder);
        let originals = if from.is_dir() {
            entries(&from)?
        } else {
            vec![from]
        };
        for original in originals {
            let name = original.file_name().unwrap_or_default();
            files.push((to.join(name), read(&original)?));
        }
    }
    Ok(files)
}

/// A crate of the registry that an artifact contains.
pub(crate) struct Crate {
    pub(crate) name: String,
    pub(crate) version: String,
    pub(crate) license: String,
    authors: String,
    texts: Vec<String>,
}

/// Returns the notices of the crates that a package depends on.
fn notices(manifest: &Path, package: &str) -> Result<String, String> {
    Ok(document(package, &contained(manifest, package)?))
}

/// Returns the crates of the registry that a package depends on, sorted.
pub(crate) fn contained(manifest: &Path, package: &str) -> Result<Vec<Crate>, String> {
    let manifest = manifest.display().to_string();
    let mut names = BTreeSet::new();
    for target in TARGETS {
        let line = format!(
            "tree --locked --manifest-path {manifest} --package {package} --edges normal --prefix none --target {target}"
        );
        let tree = process::output(&mut cargo(line.split(' ')))?;
        // `name v1.2.3 (proc-macro) (*)`: the last mark repeats a crate.
        names.extend(tree.lines().filter_map(|line| {
            let mut words = line.split(' ');
            Some((words.next()?.to_owned(), words.next()?[1..].to_owned()))
        }));
    }
    let platforms: String = TARGETS
        .map(|it| format!(" --filter-platform {it}"))
        .concat();
    let line =
        format!("metadata --locked --format-version 1 --manifest-path {manifest}{platforms}");
    let metadata = process::output(&mut cargo(line.split(' ')))?;
    let metadata: Value = serde_json::from_str(&metadata).map_err(|error| error.to_string())?;
    let mut crates = Vec::new();
    for it in metadata["packages"].as_array().into_iter().flatten() {
        let text = |key: &str| it[key].as_str().unwrap_or_default().to_owned();
        let is_ours = it["source"].is_null();
        if !is_ours && names.contains(&(text("name"), text("version"))) {
            crates.push(of_package(it)?);
        }
    }
    crates.sort_by_key(Crate::title);
    Ok(crates)
}

impl Crate {
    fn title(&self) -> String {
        format!("{} {}", self.name, self.version)
    }
}

fn of_package(package: &Value) -> Result<Crate, String> {
    let text = |key: &str| package[key].as_str().unwrap_or_default().to_owned();
    let manifest = text("manifest_path");
    let folder = Path::new(&manifest).parent().unwrap_or(Path::new(""));
    let license = text("license");
    let mut texts = Vec::new();
    for path in chosen(&license, license_files(folder)?) {
        texts.push(tidied(&read(&path)?));
    }
    let authors = package["authors"].as_array().into_iter().flatten();
    let authors: Vec<&str> = authors.filter_map(Value::as_str).collect();
    Ok(Crate {
        name: text("name"),
        version: text("version"),
        license,
        authors: authors.join(", "),
        texts,
    })
}

/// Returns the files of a package whose names are those of licenses and notices.
fn license_files(folder: &Path) -> Result<Vec<PathBuf>, String> {
    let mut files = entries(folder)?;
    files.retain(|path| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let name = name.to_uppercase();
        let starts = [
            "LICENSE",
            "LICENCE",
            "COPYING",
            "COPYRIGHT",
            "NOTICE",
            "UNLICENSE",
        ];
        path.is_file() && starts.iter().any(|start| name.starts_with(start))
    });
    Ok(files)
}

/// Returns the files of the license that is taken where a crate offers several: MIT, else all of them. Notices
/// belong to every license.
fn chosen(license: &str, files: Vec<PathBuf>) -> Vec<PathBuf> {
    let is_named = |path: &PathBuf, word: &str| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        name.to_uppercase().contains(word)
    };
    let is_choice = license.contains(" OR ") || license.contains('/');
    if !is_choice || !files.iter().any(|path| is_named(path, "MIT")) {
        return files;
    }
    let of_mit = |path: &PathBuf| {
        ["MIT", "NOTICE", "3RD"]
            .iter()
            .any(|word| is_named(path, word))
    };
    files.into_iter().filter(of_mit).collect()
}

/// Returns a text with the line breaks of this repository.
fn tidied(text: &str) -> String {
    let lines: Vec<&str> = text.lines().map(str::trim_end).collect();
    lines.join("\n").trim_matches('\n').to_owned()
}

fn document(package: &str, crates: &[Crate]) -> String {
    let mut text = format!(
        "The Rust crates in {package}, with their licenses. Written by `cargo xtask licenses`.\n\n"
    );
    for it in crates {
        let _ = writeln!(text, "{}: {}", it.title(), it.license);
    }
    let mut by_text: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for it in crates {
        for license in &it.texts {
            by_text.entry(license).or_default().push(it.title());
        }
    }
    let mut groups: Vec<_> = by_text.into_iter().collect();
    groups.sort_by(|a, b| a.1.cmp(&b.1));
    for (license, names) in groups {
        let rule = "-".repeat(80);
        let _ = writeln!(text, "\n{rule}\n{}\n{rule}\n\n{license}", names.join(", "));
    }
    let without: Vec<&Crate> = crates.iter().filter(|it| it.texts.is_empty()).collect();
    if !without.is_empty() {
        let _ = writeln!(
            text,
            "\n{}\nCrates whose packages have no license file; their manifests name authors and license:\n",
            "-".repeat(80)
        );
        for it in without {
            let _ = writeln!(text, "{}: {}; {}", it.title(), it.license, it.authors);
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_notices_are_those_of_the_locked_crates() {
        for (path, text) in files().unwrap() {
            let found = read(&path).unwrap_or_default();
            let is_current = found == text;
            assert!(is_current, "{}: run `cargo xtask licenses`", path.display());
        }
    }

    #[test]
    fn each_crate_is_listed_with_a_text_or_its_authors() {
        let text = read(&root().join("crates/cupel-cli/licenses/crates.txt")).unwrap();
        let mut listed = 0;
        for line in text.lines().skip(2).take_while(|line| !line.is_empty()) {
            let (name, license) = line.split_once(": ").unwrap();
            assert!(!license.is_empty(), "{name}");
            // Once in the list, once at its text.
            assert!(text.matches(name).count() > 1, "{name}");
            listed += 1;
        }
        assert!(listed > 40, "{listed} crates");
    }

    /// A vocabulary that a build embeds has its license and its attribution.
    #[test]
    fn each_embedded_vocabulary_is_in_the_notice() {
        let notice = read(&root().join("crates/cupel-cli/licenses/vocabularies/NOTICE")).unwrap();
        assert!(notice.contains("Built with Meta Llama 3."));
        let mut embedded = 0;
        for manifest in [
            "crates/cupel-chat/Cargo.toml",
            "bindings/python-vocabularies/Cargo.toml",
        ] {
            let manifest = read(&root().join(manifest)).unwrap();
            for (_, rest) in manifest
                .match_indices("vocab-")
                .map(|(at, it)| manifest[at..].split_at(it.len()))
            {
                let name = rest.split('"').next().unwrap();
                let section = notice.split(&format!("\n{name}: ")).nth(1);
                let section = section.unwrap_or_else(|| panic!("NOTICE has no {name}"));
                for file in section.lines().next().unwrap().split(", ") {
                    let path = format!("crates/cupel-cli/licenses/vocabularies/{file}");
                    assert!(root().join(path).exists(), "{file}");
                }
                embedded += 1;
            }
        }
        assert_eq!(embedded, 10);
    }

    #[test]
    fn one_of_several_licenses_is_taken_with_the_notices() {
        let files = ["LICENSE-APACHE", "LICENSE-MIT", "NOTICE"].map(PathBuf::from);
        let of = |license| chosen(license, files.to_vec());
        assert_eq!(of("MIT OR Apache-2.0"), files[1..]);
        assert_eq!(of("MIT AND Apache-2.0"), files);
    }
}
