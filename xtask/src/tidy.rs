//! Checks of the repository, as tests.

#[cfg(test)]
mod tests {
    use std::path::Path;

    use crate::{files_below, read, root};

    fn check_texts(extension: &str, forbidden: &[&str], except: &[&str]) {
        for path in files_below(&root(), extension).unwrap() {
            let relative = path.strip_prefix(root()).unwrap_or(&path);
            if except
                .iter()
                .any(|prefix| relative.starts_with(Path::new(prefix)))
            {
                continue;
            }
            let text = read(&path).unwrap();
            for (number, line) in text.lines().enumerate() {
                for word in forbidden {
                    assert!(
                        !line.contains(word),
                        "{}:{}: contains {word:?}",
                        relative.display(),
                        number + 1
                    );
                }
            }
        }
    }

    #[test]
    fn no_source_contains_a_to_do_marker() {
        for extension in ["rs", "py", "pyi"] {
            check_texts(
                extension,
                &["TODO", "FIXME", "XXX", "dbg!"],
                &["xtask/src/tidy.rs"],
            );
        }
    }

    #[test]
    fn no_file_contains_a_path_of_a_machine() {
        for extension in [
            "rs", "md", "toml", "json", "js", "mjs", "py", "pyi", "ipynb", "css", "html",
        ] {
            check_texts(
                extension,
                &["/work/", "/root/", "/home/"],
                &["xtask/src/tidy.rs"],
            );
        }
    }

    #[test]
    fn the_library_has_two_mandatory_dependencies() {
        let manifest = read(&root().join("crates/cupel/Cargo.toml")).unwrap();
        let manifest: toml::Table = manifest.parse().unwrap();
        let dependencies = manifest["dependencies"].as_table().unwrap();
        let is_optional = |value: &toml::Value| {
            value.get("optional").and_then(toml::Value::as_bool) == Some(true)
        };
        let always: Vec<_> = dependencies
            .iter()
            .filter(|(_, value)| !is_optional(value))
            .map(|(name, _)| name.as_str())
            .collect();
        assert_eq!(always, ["chrono", "thiserror"]);
        assert_eq!(manifest["features"]["default"].as_array().unwrap().len(), 0);
    }

    #[test]
    fn every_metadata_key_that_a_run_reads_is_documented() {
        let documented = read(&root().join("crates/cupel/src/model/item.rs")).unwrap();
        let mut keys = 0;
        for directory in ["crates/cupel/src", "crates/cupel-chat/src"] {
            for path in files_below(&root().join(directory), "rs").unwrap() {
                let text = read(&path).unwrap();
                let is_code = |line: &&str| !line.trim_start().starts_with("//");
                let literals = text.lines().filter(is_code).filter_map(|line| {
                    let (_, rest) = line.split_once("\"cupel:")?;
                    rest.split('"').next()
                });
                for key in literals {
                    keys += 1;
                    assert!(
                        documented.contains(&format!("`cupel:{key}`")),
                        "{}: `ContextItem::metadata` does not list cupel:{key}",
                        path.display()
                    );
                }
            }
        }
        assert!(keys > 9, "{keys} keys");
    }

    #[test]
    fn the_version_is_in_the_changelog() {
        let manifest = read(&root().join("crates/cupel/Cargo.toml")).unwrap();
        let manifest: toml::Table = manifest.parse().unwrap();
        let version = manifest["package"]["version"].as_str().unwrap();
        let changelog = read(&root().join("CHANGELOG.md")).unwrap();
        assert!(changelog.contains(&format!("## {version}")));
    }
}
