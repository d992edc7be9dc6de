//! The code in the project's README.

#[test]
fn the_readme_shows_the_example() {
    let readme = include_str!("documents/README.md");
    let example = include_str!("../examples/fit.rs");
    assert!(readme.contains(&format!("```rust,ignore\n{example}```")));
}
