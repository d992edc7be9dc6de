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

    /// Returns the lines of code below a directory that contain one of the words, as `file:line: text`.
    fn code_with(directory: &str, extension: &str, words: &[&str]) -> Vec<String> {
        let mut found = Vec::new();
        for path in files_below(&root().join(directory), extension).unwrap() {
            let text = read(&path).unwrap();
            let name = path.strip_prefix(root()).unwrap_or(&path).display();
            let code = text.lines().enumerate();
            let code = code.filter(|(_, line)| !line.trim_start().starts_with(['/', '#']));
            found.extend(
                code.filter(|(_, line)| words.iter().any(|word| line.contains(word)))
                    .map(|(number, line)| format!("{name}:{}: {}", number + 1, line.trim())),
            );
        }
        found
    }

    /// A server and a browser have no terminal, and one process serves many callers.
    #[test]
    fn the_layers_below_the_doors_know_no_environment() {
        let words = [
            "clap",
            "std::env",
            "std::fs",
            "std::path",
            "std::process",
            "thread_local!",
            "print!",
            "println!",
            "static mut",
        ];
        for directory in ["crates/cupel-app/src", "crates/cupel-eval/src"] {
            assert_eq!(code_with(directory, "rs", &words), Vec::<String>::new());
        }
    }

    /// A strategy answers questions by methods; its serialization is for documents alone.
    #[test]
    fn nobody_above_the_library_reads_the_serialization_of_a_strategy() {
        let words = ["to_config()", "ScorerConfig::", "SlicerConfig::"];
        for directory in [
            "crates/cupel-chat/src",
            "crates/cupel-app/src",
            "crates/cupel-eval/src",
            "crates/cupel-cli/src",
            "bindings/python/src",
        ] {
            assert_eq!(code_with(directory, "rs", &words), Vec::<String>::new());
        }
    }

    /// The Python package asks questions with values; it builds no command line.
    #[test]
    fn the_python_package_names_no_option_of_the_command() {
        let is_option = |line: &String| {
            let mut parts = line.split("--").skip(1);
            parts.any(|rest| rest.starts_with(|c: char| c.is_ascii_lowercase()))
        };
        for (directory, extension) in [
            ("bindings/python/src", "rs"),
            ("bindings/python/python", "py"),
        ] {
            let found = code_with(directory, extension, &["\"--", "'--", "`--"]);
            let found: Vec<String> = found.into_iter().filter(is_option).collect();
            assert_eq!(found, Vec::<String>::new());
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
