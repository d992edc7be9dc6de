//! `cargo xtask clients`: parses fitted chats with the types of the providers' clients.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::{process, python, root};

/// The budgets of the fitted chats: from little more than the mandatory messages to everything.
const BUDGETS: [&str; 5] = ["700", "1000", "1500", "2500", "100000"];

/// Fits every chat in `examples/shapes` to every budget, and parses the results.
pub(crate) fn test() -> Result<(), String> {
    let target = crate::target().join("clients");
    let fitted = target.join("fitted");
    let python = python::environment(&target.join("python"), &folder().join("requirements.txt"))?;
    let node = target.join("node");
    let files = ["package.json", "package-lock.json", "check.mjs"];
    python::install_node(&folder(), &node, &files)?;
    fit(&fitted)?;
    let mut check = Command::new(python);
    check.arg(folder().join("check.py")).arg(&fitted);
    process::run(&mut check, "a client rejects a fitted chat")?;
    let mut check = Command::new("node");
    check.current_dir(&node).arg("check.mjs").arg(&fitted);
    process::run(&mut check, "a client rejects a fitted chat")
}

/// Returns the folder with the checks and the versions of the clients.
fn folder() -> PathBuf {
    root().join("crates/cupel-cli/tests/clients")
}

/// Writes each chat at each budget as `FORMAT.BUDGET.json`.
fn fit(fitted: &Path) -> Result<(), String> {
    create(fitted)?;
    let command = process::built("--bin cupel", "debug/cupel")?;
    let examples = root().join("examples/shapes");
    let files = std::fs::read_dir(&examples);
    let files = files.map_err(|error| format!("{}: {error}", examples.display()))?;
    for file in files {
        let path = file.map_err(|error| error.to_string())?.path();
        let name = path.file_stem().unwrap_or_default().to_string_lossy();
        for budget in BUDGETS {
            let mut cupel = Command::new(&command);
            cupel.args(["fit", "--budget", budget]).arg(&path);
            let output = process::output(&mut cupel)?;
            let result = fitted.join(format!("{name}.{budget}.json"));
            std::fs::write(&result, output)
                .map_err(|error| format!("{}: {error}", result.display()))?;
        }
    }
    Ok(())
}

fn create(folder: &Path) -> Result<(), String> {
    std::fs::create_dir_all(folder).map_err(|error| format!("{}: {error}", folder.display()))
}
