//! The library does not depend on OpenTelemetry.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// Returns the packages of a lock file with their dependencies on any platform, with any feature,
/// including those of tests.
fn locked(text: &str) -> BTreeMap<&str, Vec<&str>> {
    let mut packages: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for package in text.split("[[package]]").skip(1) {
        let name = package
            .lines()
            .find_map(|line| line.strip_prefix("name = "));
        let name = name.expect("a package has a name").trim_matches('"');
        let names = package.lines().filter_map(|line| line.strip_prefix(" \""));
        // An entry is `"name",` or, where the name alone is ambiguous, `"name version",`.
        let names = names.filter_map(|entry| entry.split(['"', ' ']).next());
        packages.entry(name).or_default().extend(names);
    }
    packages
}

// proves: OTEL-3
#[test]
fn the_library_does_not_depend_on_opentelemetry() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(root.join("Cargo.lock")).unwrap();
    let packages = locked(&text);
    assert!(packages["cupel-otel"].contains(&"opentelemetry"));

    let mut reached = BTreeSet::new();
    let mut open = vec!["cupel"];
    while let Some(name) = open.pop() {
        if reached.insert(name) {
            open.extend(&packages[name]);
        }
    }
    assert!(reached.contains("chrono"));
    let telemetry: Vec<_> = reached
        .iter()
        .filter(|name| name.starts_with("opentelemetry") || **name == "cupel-otel")
        .collect();
    assert!(telemetry.is_empty(), "{telemetry:?}");
}
