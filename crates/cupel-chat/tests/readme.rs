//! The code in the project's README.

#[test]
fn the_readme_shows_the_example() {
    let readme = include_str!("documents/README.md");
    let example = include_str!("../examples/fit.rs");
    let code = &example[example.find("use cupel").unwrap()..];
    assert!(readme.contains(&format!("```rust,ignore\n{code}```")));
}
