//! Bodies of the fuzz targets, one function each.
//!
//! A body panics when it finds a fault. `cargo xtask fuzz` runs the bodies under libFuzzer. A test
//! in `xtask` replays the inputs in `regressions/` on stable.

#[path = "../../crates/cupel/tests/adapter.rs"]
#[allow(dead_code, reason = "the tests of the library use more of it")]
mod adapter;
#[path = "../../crates/cupel/tests/arbitrary.rs"]
mod arbitrary;
#[path = "../../crates/cupel/tests/comparison.rs"]
mod comparison;
#[path = "../../crates/cupel/tests/oracle/mod.rs"]
mod oracle;

#[path = "../../crates/cupel-chat/src/shorten/mod.rs"]
mod shorten;
#[path = "../../crates/cupel-chat/tests/windows.rs"]
mod windows;

mod differential;
mod readers;

// For the shared file `shorten`.
use cupel_chat::TokenCounter;

/// A target: its name and its body.
pub type Target = (&'static str, fn(&[u8]));

/// All targets. Each has a file of the same name in `fuzz_targets/`.
pub const TARGETS: &[Target] = &[
    ("chat", readers::chat),
    ("jsonl", readers::jsonl),
    ("knapsack", differential::knapsack),
    ("policy", readers::policy),
    ("request", readers::request),
    ("run", differential::run),
    ("shorten", readers::shorten),
    ("state", readers::state),
    ("vector", readers::vector),
    ("windows", readers::windows),
    ("wire", readers::wire),
];

/// Runs the body of a target.
///
/// # Panics
///
/// Panics if the name is unknown or the body finds a fault.
pub fn fuzz(target: &str, data: &[u8]) {
    let body = TARGETS.iter().find(|(name, _)| *name == target);
    let (_, body) = body.unwrap_or_else(|| panic!("unknown target `{target}`"));
    body(data);
}
