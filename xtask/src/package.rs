//! `cargo xtask package`: packs every crate, then builds and tests the packed crates.
//!
//! The packed crates form a workspace of their own below `target/package-test`. It contains nothing
//! but them, so a test that reads a file outside its package fails.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::process::{self, cargo};
use crate::{crates, read_toml, root, target, test};

pub(crate) fn run() -> Result<(), String> {
    pack()?;
    let workspace = workspace()?;
    let mut tests = cargo(["test", "--quiet", "--workspace", "--all-features"]);
    tests
        .arg("--manifest-path")
        .arg(workspace.join("Cargo.toml"));
    tests.arg("--target-dir").arg(target());
    tests.env("CUPEL_CASES", test::FEW_CASES);
    process::run(
        &mut tests,
        "a packed crate does not build or its tests fail",
    )
}

/// Packs every crate.
pub(crate) fn pack() -> Result<(), String> {
    let pack = "package --workspace --exclude xtask --no-verify --allow-dirty --quiet";
    process::run(&mut cargo(pack.split(' ')), "see the messages above")
}

/// Unpacks the packed crates into a workspace of nothing but them, and returns it.
pub(crate) fn workspace() -> Result<PathBuf, String> {
    let workspace = target().join("package-test");
    let fault = |error| format!("{}: {error}", workspace.display());
    if workspace.exists() {
        std::fs::remove_dir_all(&workspace).map_err(fault)?;
    }
    std::fs::create_dir_all(&workspace).map_err(fault)?;
    let manifest = unpack(&workspace)?;
    std::fs::write(workspace.join("Cargo.toml"), manifest).map_err(fault)?;
    // The versions of the dependencies, so that they are not built again.
    std::fs::copy(root().join("Cargo.lock"), workspace.join("Cargo.lock")).map_err(fault)?;
    Ok(workspace)
}

/// Returns the name of a packed crate: `cupel-1.3.0`.
pub(crate) fn packed(directory: &Path) -> Result<String, String> {
    let manifest = read_toml(&directory.join("Cargo.toml"))?;
    let field = |name: &str| manifest["package"][name].as_str().unwrap_or_default();
    Ok(format!("{}-{}", field("name"), field("version")))
}

/// Unpacks every crate and returns the manifest of their workspace.
fn unpack(workspace: &Path) -> Result<String, String> {
    let mut members = String::new();
    let mut patches = String::new();
    for directory in crates()? {
        let package = read_toml(&directory.join("Cargo.toml"))?;
        let field = |name: &str| package["package"][name].as_str().unwrap_or_default();
        let packed = packed(&directory)?;
        let mut tar = Command::new("tar");
        tar.arg("-xzf")
            .arg(target().join(format!("package/{packed}.crate")));
        process::run(tar.arg("-C").arg(workspace), "install tar")?;
        let _ = write!(members, "{packed:?}, ");
        let _ = writeln!(patches, "{} = {{ path = {packed:?} }}", field("name"));
    }
    let mut profiles = toml::Table::new();
    if let Some(profile) = read_toml(&root().join("Cargo.toml"))?.remove("profile") {
        profiles.insert("profile".to_owned(), profile);
    }
    Ok(format!(
        "[workspace]\nresolver = \"3\"\nmembers = [{members}]\n\n[patch.crates-io]\n{patches}\n{profiles}"
    ))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::{files_below, read};

    #[test]
    fn every_crate_packs_a_license_a_readme_and_all_of_its_tracked_files() {
        for directory in crates().unwrap() {
            let name = directory.file_name().unwrap().to_str().unwrap();
            let list = ["package", "--package", name, "--list", "--allow-dirty"];
            let list = process::output(&mut cargo(list)).unwrap();
            let packed: BTreeSet<&str> = list.lines().collect();
            for file in ["LICENSE", "README.md"] {
                assert!(packed.contains(file), "{name} packs no {file}");
            }
            let mut git = Command::new("git");
            let tracked = process::output(git.arg("ls-files").current_dir(&directory)).unwrap();
            for file in tracked
                .lines()
                .filter(|file| !directory.join(file).is_dir())
            {
                assert!(packed.contains(file), "{name} does not pack {file}");
            }
        }
    }

    #[test]
    fn no_crate_includes_a_file_outside_its_package() {
        for directory in crates().unwrap() {
            for path in files_below(&directory, "rs").unwrap() {
                let text = read(&path).unwrap();
                let below = path.strip_prefix(&directory).unwrap();
                let depth = below.components().count() - 1;
                let outside = format!("\"{}", "../".repeat(depth + 1));
                assert!(
                    !text.contains(&outside) && !text.contains("join(\"../"),
                    "{} names a file outside its package",
                    path.display()
                );
            }
        }
    }
}
