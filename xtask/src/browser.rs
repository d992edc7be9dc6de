//! `cargo xtask browser`: tests the page of `cupel explain --html` in Chromium.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::process;
use crate::root;

/// Checks the types of the page's script, then runs the browser test.
pub(crate) fn test() -> Result<(), String> {
    let pages = prepare()?;
    node(&["run", "--silent", "types"], &pages)?;
    node(&["run", "--silent", "test"], &pages)?;
    println!("screenshots are in {}", pages.display());
    Ok(())
}

/// Writes the screenshots of the documentation.
pub(crate) fn screenshots() -> Result<(), String> {
    let pages = prepare()?;
    let images = root().join("docs/images");
    std::fs::create_dir_all(&images).map_err(|error| format!("{}: {error}", images.display()))?;
    let images = images.display().to_string();
    node(&["run", "--silent", "screenshot", "--", &images], &pages)
}

/// Installs Chromium and the packages of the test. Writes the pages and the expected results.
fn prepare() -> Result<PathBuf, String> {
    install_chromium()?;
    let pages = crate::target().join("browser");
    std::fs::create_dir_all(&pages).map_err(|error| format!("{}: {error}", pages.display()))?;
    node(&["ci", "--no-audit", "--no-fund"], &pages)?;
    // The features of the other tests, so that nothing is built twice.
    let test = "test --quiet --workspace --all-features --lib pages_and_expectations_for_the_browser_are_written";
    let mut cargo = process::cargo(test.split(' '));
    process::run(
        cargo.env("CUPEL_PAGES", &pages),
        "the pages were not written",
    )?;
    Ok(pages)
}

fn node(arguments: &[&str], pages: &Path) -> Result<(), String> {
    let mut npm = Command::new("npm");
    npm.args(arguments).env("CUPEL_PAGES", pages);
    npm.current_dir(root().join("crates/cupel-cli/tests/browser"));
    process::run(&mut npm, "install Node.js 20 or later with npm")
}

/// Installs Debian's Chromium, unless it is present or `CHROMIUM` names another one.
fn install_chromium() -> Result<(), String> {
    let is_present =
        || std::env::var_os("CHROMIUM").is_some() || Path::new("/usr/bin/chromium").exists();
    let hint =
        "install it (Debian: `apt-get install chromium` as root), or set CHROMIUM to its path";
    process::install("chromium", is_present, hint)
}
