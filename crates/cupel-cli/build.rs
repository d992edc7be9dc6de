//! Tells the command what it is built from: the commit, the target and the features.
//!
//! The same source, target and features give the same values, so that a build can be reproduced. There is no date
//! unless `SOURCE_DATE_EPOCH` states one.

#![allow(clippy::print_stdout, reason = "cargo reads standard output")]

use std::env;
use std::path::Path;
use std::process::Command;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-env-changed=SOURCE_DATE_EPOCH");
    let manifest = variable("CARGO_MANIFEST_DIR");
    let manifest = Path::new(&manifest);
    let commit = of_package(manifest).or_else(|| of_checkout(manifest));
    let prefix = "CARGO_FEATURE_";
    let features = env::vars().filter_map(|(name, _)| Some(name.strip_prefix(prefix)?.to_owned()));
    let mut features: Vec<String> = features
        .filter(|name| name != "DEFAULT")
        .map(|name| name.to_lowercase().replace('_', "-"))
        .collect();
    features.sort();
    set("COMMIT", &commit.unwrap_or_default());
    set("TARGET", &variable("TARGET"));
    set("FEATURES", &features.join(", "));
    set("DATE_EPOCH", &variable("SOURCE_DATE_EPOCH"));
}

fn variable(name: &str) -> String {
    env::var(name).unwrap_or_default()
}

fn set(name: &str, value: &str) {
    println!("cargo::rustc-env=CUPEL_BUILD_{name}={value}");
}

/// Returns the commit that a package was made from: cargo writes it into the package.
fn of_package(manifest: &Path) -> Option<String> {
    let path = manifest.join(".cargo_vcs_info.json");
    let text = std::fs::read_to_string(path).ok()?;
    let (_, rest) = text.split_once("\"sha1\"")?;
    let commit = rest.split('"').nth(1)?;
    is_commit(commit).then(|| commit.to_owned())
}

/// Returns the commit of the checkout. A copy without `.git` has none, even inside of another repository.
fn of_checkout(manifest: &Path) -> Option<String> {
    let root = manifest.parent()?.parent()?;
    if !root.join(".git").exists() || !root.join("crates/cupel-cli/build.rs").exists() {
        return None;
    }
    let git = |arguments: &[&str]| {
        let mut git = Command::new("git");
        // A hook or another tool sets these for a repository of its own.
        git.env_remove("GIT_DIR").env_remove("GIT_WORK_TREE");
        let output = git.current_dir(root).args(arguments).output().ok()?;
        let text = String::from_utf8(output.stdout).ok()?;
        output.status.success().then(|| text.trim().to_owned())
    };
    // Every commit and checkout is written to the log.
    for file in ["HEAD", "logs/HEAD"] {
        let path = git(&["rev-parse", "--git-path", file]).map(|path| root.join(path));
        if let Some(path) = path.filter(|path| path.exists()) {
            println!("cargo::rerun-if-changed={}", path.display());
        }
    }
    git(&["rev-parse", "HEAD"]).filter(|commit| is_commit(commit))
}

fn is_commit(text: &str) -> bool {
    text.len() >= 40 && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}
