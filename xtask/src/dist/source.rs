//! Sources: the source distribution of the Python package with all crates, and the packed crates.

use std::path::{Path, PathBuf};
use std::process::Command;

use super::{
    BUDGET, CHAT, FAILED, agrees, copy, fresh, make_folder, only, tar, tools, untar, wheel, write,
};
use crate::{entries, package, process, root, target};

/// Lets cargo take the crates of the registry from the folder `vendor`.
const VENDORED: &str = "\
[source.crates-io]
replace-with = \"vendor\"

[source.vendor]
directory = \"vendor\"
";

/// Builds the source distribution and adds the crates of the registry, so that it builds without the network.
pub(super) fn build_sdist(folder: &Path) -> Result<Vec<PathBuf>, String> {
    let out = fresh("sdist-build")?;
    let mut maturin = Command::new(tools()?);
    maturin
        .args(["-m", "maturin", "sdist", "--quiet", "--out"])
        .arg(&out);
    maturin.current_dir(root().join("bindings/python"));
    process::run(&mut maturin, FAILED)?;
    let packed = entries(&out)?;
    let packed = only(&packed)?;
    let name = super::file_name(packed);
    let inside = name.trim_end_matches(".tar.gz");
    let unpacked = fresh("sdist-content")?;
    untar(packed, &unpacked)?;
    let top = unpacked.join(inside);
    let manifest = top.join("bindings/python/Cargo.toml");
    let mut vendor = process::cargo(["vendor", "--quiet", "--locked", "--versioned-dirs"]);
    vendor.arg("--manifest-path").arg(&manifest).arg("vendor");
    process::run(vendor.current_dir(&top), FAILED)?;
    make_folder(&top.join(".cargo"))?;
    write(&top.join(".cargo/config.toml"), VENDORED)?;
    let sdist = folder.join(&name);
    tar(&sdist, &unpacked, inside)?;
    Ok(vec![sdist])
}

/// Installs it with pip, with an empty cargo home and no network.
pub(super) fn check_sdist(files: &[PathBuf]) -> Result<&'static str, String> {
    let mut run = wheel::from_source(only(files)?)?;
    agrees(&process::output(&mut run)?)?;
    Ok("built by pip without a registry, installed into a new environment")
}

/// Packs the crates.
pub(super) fn build_crates(folder: &Path) -> Result<Vec<PathBuf>, String> {
    package::pack()?;
    let mut files = Vec::new();
    for directory in crate::crates()? {
        let packed = package::packed(&directory)?;
        let name = format!("{packed}.crate");
        copy(&target().join("package").join(&name), &folder.join(&name))?;
        files.push(folder.join(&name));
    }
    Ok(files)
}

/// Builds the command from the packed crates, in a workspace of nothing but them. `cargo xtask package` runs their
/// tests.
pub(super) fn check_crates(_: &[PathBuf]) -> Result<&'static str, String> {
    let workspace = package::workspace()?;
    let mut build = process::cargo(["build", "--quiet", "--package", "cupel-cli"]);
    build
        .arg("--manifest-path")
        .arg(workspace.join("Cargo.toml"));
    // Not the folder of the repository: the programs have the same name.
    let built = target().join("dist-check/crates");
    process::run(build.arg("--target-dir").arg(&built), FAILED)?;
    let mut run = Command::new(built.join("debug/cupel"));
    run.args(["fit", "--json", "--budget", BUDGET])
        .arg(root().join(CHAT));
    agrees(&process::output(&mut run)?)?;
    Ok("built from the packed crates alone")
}
