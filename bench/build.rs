//! Tells the program which compiler built it.

use std::process::Command;

fn main() {
    let compiler = std::env::var("RUSTC").unwrap_or_else(|_| "rustc".to_owned());
    let output = Command::new(compiler).arg("--version").output();
    let version = output.map(|output| String::from_utf8_lossy(&output.stdout).trim().to_owned());
    println!(
        "cargo::rustc-env=BENCH_RUSTC={}",
        version.unwrap_or_else(|_| "unknown".to_owned())
    );
    println!("cargo::rerun-if-changed=build.rs");
}
