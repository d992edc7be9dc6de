//! Rules for every vector in this crate.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::Path,
};

use cupel_conformance::{Level, SUITE_VERSION, Vector, flags, suite};
use toml::{Table, Value};

const LONGEST_NAME: usize = 100;

fn vectors() -> Vec<Vector> {
    suite().unwrap_or_else(|errors| panic!("{errors}"))
}

/// Asserts that no vector has anything to object to.
#[track_caller]
fn check_all(objections: impl Fn(&Vector) -> Vec<String>) {
    let found: Vec<_> = vectors()
        .iter()
        .flat_map(|vector| {
            objections(vector)
                .into_iter()
                .map(|objection| format!("{}: {objection}", vector.path))
        })
        .collect();
    assert!(found.is_empty(), "\n{}", found.join("\n"));
}

/// Returns the text of a document of the specification.
fn spec(file: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/spec")
        .join(file);
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The first word after `prefix` on every line that begins with it.
fn ids<'a>(document: &'a str, prefix: &'static str) -> BTreeSet<&'a str> {
    document
        .lines()
        .filter_map(|line| line.strip_prefix(prefix)?.split_whitespace().next())
        .collect()
}

// proves: VEC-1
#[test]
fn every_vector_can_be_read() {
    assert!(!vectors().is_empty());
}

#[test]
fn every_name_is_unique() {
    let mut paths: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for vector in vectors() {
        paths.entry(vector.name).or_default().push(vector.path);
    }
    paths.retain(|_, paths| paths.len() > 1);
    assert!(paths.is_empty(), "{paths:#?}");
}

#[test]
fn every_name_is_a_short_statement() {
    check_all(|vector| {
        let mut found = Vec::new();
        let length = vector.name.chars().count();
        if length == 0 || length > LONGEST_NAME {
            found.push(format!(
                "the name has {length} characters, 1 to {LONGEST_NAME} are allowed"
            ));
        }
        if vector.name.to_lowercase().contains("should") {
            found.push("the name says \"should\": say what is true".to_owned());
        }
        found
    });
}

#[test]
fn every_file_lies_under_its_level_and_stage() {
    check_all(|vector| {
        let mut directories = vector.path.split('/');
        let level = directories.next();
        let stage = directories.next();
        let known = Level::ALL
            .iter()
            .any(|known| *known != Level::Other && level == Some(known.name()));
        let mut found = Vec::new();
        if !known {
            found.push(format!("no level: {level:?}"));
        }
        if stage != Some(vector.stage()) {
            found.push(format!(
                "the stage is {:?}, the directory {stage:?}",
                vector.stage()
            ));
        }
        found
    });
}

#[test]
fn every_vector_says_why() {
    check_all(|vector| {
        if vector.why.trim().is_empty() {
            vec!["no why".to_owned()]
        } else {
            vec![]
        }
    });
}

#[test]
fn every_vector_names_known_requirements_and_rulings() {
    let (requirements, rulings) = (spec("requirements.md"), spec("rulings.md"));
    let requirements = ids(&requirements, "| ");
    let rulings = ids(&rulings, "### ");
    check_all(|vector| {
        let unknown_requirements = vector
            .requirements
            .iter()
            .filter(|id| !requirements.contains(id.as_str()) || !id.contains('-'))
            .map(|id| format!("unknown requirement: {id}"));
        let unknown_rulings = vector
            .rulings
            .iter()
            .filter(|id| !rulings.contains(id.as_str()))
            .map(|id| format!("unknown ruling: {id}"));
        let unproven = (vector.requirements.is_empty() && vector.rulings.is_empty())
            .then(|| "proves no requirement and no ruling".to_owned());
        unknown_requirements
            .chain(unknown_rulings)
            .chain(unproven)
            .collect()
    });
}

#[test]
fn every_flag_is_explained() {
    let explained = flags();
    assert!(explained.values().all(|text| !text.trim().is_empty()));
    check_all(|vector| {
        vector
            .flags
            .iter()
            .filter(|flag| !explained.contains_key(*flag))
            .map(|flag| format!("flag not explained in suite.toml: {flag}"))
            .collect()
    });
}

#[test]
fn every_explained_flag_is_used() {
    let used: BTreeSet<_> = vectors()
        .into_iter()
        .flat_map(|vector| vector.flags)
        .collect();
    let unused: Vec<_> = flags()
        .into_keys()
        .filter(|flag| !used.contains(flag))
        .collect();
    assert!(unused.is_empty(), "no vector has these flags: {unused:?}");
}

/// A misspelt field would be ignored like any unknown one, and its expectation with it.
#[test]
fn no_vector_has_a_field_the_reader_ignores() {
    check_all(|vector| {
        vector
            .ignored
            .iter()
            .map(|key| format!("ignored: {key}"))
            .collect()
    });
}

/// Fields that only readers of our format know.
const OURS: [&str; 10] = [
    "emitted_contents",
    "estimation_safety_margin_percent",
    "expect_error",
    "expect_error_contains",
    "id",
    "item_events",
    "overflow",
    "reserved_slots",
    "shortfalls",
    "stages",
];

/// Fields that only readers of our format know as tables: policy documents.
const OUR_TABLES: [&str; 5] = ["inner_scorer", "inner_slicer", "placer", "scorer", "slicer"];

#[test]
fn outside_extension_no_vector_depends_on_a_field_of_ours() {
    let vectors_directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("vectors");
    check_all(|vector| {
        if vector.level == Level::Extension {
            return vec![];
        }
        let text = fs::read_to_string(vectors_directory.join(&vector.path)).expect("is embedded");
        let mut document: Table = text.parse().expect("is embedded");
        strip(&mut document);
        match Vector::parse(&vector.path, &document.to_string()) {
            Err(error) => vec![format!("without our fields: {error}")],
            Ok(bare) if format!("{:?}", bare.task) != format!("{:?}", vector.task) => {
                vec!["without our fields the task is another".to_owned()]
            }
            Ok(_) => vec![],
        }
    });
}

/// Takes every field of ours out of a document, save from metadata.
fn strip(table: &mut Table) {
    table.retain(|key, value| {
        let ours = OURS.contains(&key) || (OUR_TABLES.contains(&key) && value.is_table());
        !ours
    });
    for (_, value) in table.iter_mut().filter(|(key, _)| *key != "metadata") {
        match value {
            Value::Table(table) => strip(table),
            Value::Array(values) => values
                .iter_mut()
                .filter_map(Value::as_table_mut)
                .for_each(strip),
            _ => {}
        }
    }
}

// proves: CONF-3
#[test]
fn the_readme_states_the_level_of_cupel_and_the_version_of_the_suite() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("README.md");
    let readme = fs::read_to_string(path).expect("the crate has a README");
    let claim = format!("`cupel` is *Cupel Fully Conformant* by suite {SUITE_VERSION}");
    assert!(readme.contains(&claim), "no {claim:?}");
}
