//! `cargo xtask wasm`: fits a chat on `wasm32-unknown-unknown`, which has no clock, no files and no
//! threads. Node.js executes the module; compiling alone would not show a call that panics.

use std::process::Command;

use crate::{process, root};

const TARGET: &str = "wasm32-unknown-unknown";

/// The chat and the budgets: everything fits, texts are shortened, messages are dropped.
const CHAT: &str = "examples/agent-session.json";
const BUDGETS: [&str; 3] = ["8000", "3600", "1500"];

/// Builds the module, and compares its answers with those of the command.
pub(crate) fn test() -> Result<(), String> {
    let mut rustup = Command::new("rustup");
    let hint = format!("install the target with `rustup target add {TARGET}`");
    process::run(rustup.args(["target", "add", TARGET]), &hint)?;
    let folder = root().join("xtask/wasm");
    let target = crate::target();
    let manifest = folder.join("Cargo.toml");
    let build = ["build", "--quiet", "--release", "--target", TARGET];
    let mut build = process::cargo(build);
    build.arg("--manifest-path").arg(manifest);
    build.env("CARGO_TARGET_DIR", &target);
    process::run(&mut build, "see the messages above")?;
    let module = target.join(TARGET).join("release/cupel_wasm_test.wasm");
    let command = process::built("--bin cupel", "debug/cupel")?;
    let chat = root().join(CHAT);
    for budget in BUDGETS {
        let mut node = Command::new("node");
        node.arg(folder.join("fit.mjs"));
        let answer = process::output(node.arg(&module).arg(&chat).arg(budget))?;
        let mut cupel = Command::new(&command);
        let cupel = cupel.args(["fit", "--json", "--budget", budget]).arg(&chat);
        let expected = process::output(cupel)?;
        if answer.trim() != expected.trim() {
            return Err(format!(
                "{CHAT} at {budget}: the module and the command give other answers\n{answer}\n{expected}"
            ));
        }
        println!("{CHAT} at {budget}: {} bytes, as the command", answer.len());
    }
    Ok(())
}
