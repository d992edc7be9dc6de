//! The examples and names of docs/policies.md.

use cupel::config::registry::{BUDGET, ITEM, POLICY, Record, Role};
use cupel::config::{Document, Format, presets};

const GUIDE: &str = include_str!("policies.md");

/// Returns the code blocks in a language.
fn blocks(language: &str) -> Vec<&'static str> {
    let opening = format!("```{language}\n");
    let parts = GUIDE.split(opening.as_str()).skip(1);
    parts
        .map(|part| part.split("```").next().unwrap())
        .collect()
}

#[test]
fn every_document_of_the_guide_is_valid() {
    for (language, format, count) in [
        ("json", Format::Json, 3),
        ("toml", Format::Toml, 4),
        ("yaml", Format::Yaml, 1),
    ] {
        let blocks = blocks(language);
        assert_eq!(blocks.len(), count, "{language}");
        for block in blocks {
            let document = Document::parse(block, format).unwrap();
            let read = if block.contains("\"items\"") {
                document.request().map(|_| ())
            } else {
                document.policy().map(|_| ())
            };
            assert_eq!(read, Ok(()), "{block}");
        }
    }
}

#[test]
fn the_guide_has_every_name() {
    let mentions = |name: &str| {
        let quoted = format!("`{name}`");
        assert!(GUIDE.contains(&quoted), "{quoted} is missing");
    };
    let all = |record: &Record| {
        for field in record.fields {
            mentions(field.name);
        }
    };
    for role in Role::ALL {
        for record in role.family().types {
            mentions(record.name);
            all(record);
        }
    }
    for record in [POLICY, ITEM, BUDGET] {
        all(&record);
    }
    for preset in presets() {
        mentions(preset.name());
    }
}
