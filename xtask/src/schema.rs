//! `cargo xtask schema`: writes the JSON Schemas of policies and requests.

use crate::root;

/// The file of a schema and the function that returns its text.
type Schema = (&'static str, fn() -> String);

const SCHEMAS: [Schema; 2] = [
    (
        "crates/cupel/schema/policy.schema.json",
        cupel::config::policy_schema,
    ),
    (
        "crates/cupel/schema/request.schema.json",
        cupel::config::request_schema,
    ),
];

pub(crate) fn write() -> Result<(), String> {
    for (file, text) in SCHEMAS {
        std::fs::write(root().join(file), text()).map_err(|error| format!("{file}: {error}"))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::SCHEMAS;
    use crate::{read, root};

    #[test]
    fn the_schema_files_are_current() {
        for (file, text) in SCHEMAS {
            let written = read(&root().join(file)).unwrap();
            assert!(
                written == text(),
                "{file} is stale; run `cargo xtask schema`"
            );
        }
    }
}
