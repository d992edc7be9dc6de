//! `cargo xtask browser`: the page of `cupel explain --html`, opened in Chromium.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::root;

/// Runs the browser test: types of the page's script, then everything the page does.
pub(crate) fn test() -> Result<(), String> {
    let pages = prepare()?;
    node(&["run", "--silent", "types"], &pages)?;
    node(&["run", "--silent", "test"], &pages)?;
    println!("screenshots are in {}", pages.display());
    Ok(())
}

/// Writes the picture of the documentation.
pub(crate) fn screenshot() -> Result<(), String> {
    let pages = prepare()?;
    let picture = root().join("docs/explain.png").display().to_string();
    node(&["run", "--silent", "screenshot", "--", &picture], &pages)
}

/// Chromium, the packages of the test, and the pages with what runs of the library say about them.
fn prepare() -> Result<PathBuf, String> {
    install_chromium()?;
    let pages = root().join("target/browser");
    std::fs::create_dir_all(&pages).map_err(|error| format!("{}: {error}", pages.display()))?;
    node(&["ci", "--no-audit", "--no-fund"], &pages)?;
    // Built with the features of the other tests, so that nothing is built twice.
    let test = "test --quiet --workspace --all-features --bin cupel the_browser_gets_its_pages";
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(test.split(' ')).env("CUPEL_PAGES", &pages);
    cargo.current_dir(root());
    succeed(&mut cargo, "the pages could not be written")?;
    Ok(pages)
}

fn node(arguments: &[&str], pages: &Path) -> Result<(), String> {
    let mut npm = Command::new("npm");
    npm.args(arguments).env("CUPEL_PAGES", pages);
    npm.current_dir(root().join("crates/cupel-cli/tests/browser"));
    succeed(
        &mut npm,
        "the browser test needs Node.js 20 or later with npm",
    )
}

/// Installs Debian's Chromium where there is none; `CHROMIUM` names another one.
fn install_chromium() -> Result<(), String> {
    if std::env::var_os("CHROMIUM").is_some() || Path::new("/usr/bin/chromium").exists() {
        return Ok(());
    }
    let hint = "Chromium is needed: install it (Debian: `apt-get install chromium`, as root), or name it in CHROMIUM";
    for arguments in ["update --quiet", "install --yes --quiet chromium"] {
        let mut apt = Command::new("apt-get");
        apt.args(arguments.split(' '))
            .env("DEBIAN_FRONTEND", "noninteractive");
        succeed(&mut apt, hint)?;
    }
    Ok(())
}

fn succeed(command: &mut Command, hint: &str) -> Result<(), String> {
    let line = format!("{command:?}");
    match command.status() {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(format!("{line}: {status}; {hint}")),
        Err(error) => Err(format!("{line}: {error}; {hint}")),
    }
}
