//! Checks and generation, run as `cargo xtask`.
fn main() {}
