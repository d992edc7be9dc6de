//! Tests that ARCHITECTURE.md is true: its paths exist, and its steps for a preset are complete.

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use crate::{files_below, read, root};

    /// Returns the text between backticks that is a path: it has a slash and no spaces.
    fn paths(text: &str) -> Vec<&str> {
        let quoted = text.split('`').skip(1).step_by(2);
        quoted
            .filter(|path| path.contains('/') && !path.contains(char::is_whitespace))
            .collect()
    }

    /// Returns the section under a heading, up to the next heading.
    fn section<'a>(text: &'a str, heading: &str) -> &'a str {
        let (_, rest) = text
            .split_once(&format!("\n{heading}\n"))
            .unwrap_or_else(|| panic!("ARCHITECTURE.md has no heading {heading:?}"));
        rest.split("\n#").next().unwrap_or(rest)
    }

    #[test]
    fn every_path_in_the_architecture_exists() {
        let text = read(&root().join("ARCHITECTURE.md")).unwrap();
        let paths = paths(&text);
        assert!(paths.len() > 50, "{} paths", paths.len());
        for path in paths.into_iter().filter(|path| !path.contains("NAME")) {
            assert!(root().join(path).exists(), "ARCHITECTURE.md names {path}");
        }
    }

    #[test]
    fn every_recipe_exists() {
        let text = read(&root().join("ARCHITECTURE.md")).unwrap();
        for heading in [
            "### A scorer",
            "### A slicer or a decorator",
            "### A placer",
            "### An exclusion reason",
            "### A report field",
            "### A preset",
            "### A chat format (shape)",
            "### The token count of one content block type",
            "### A subcommand",
            "### An option for chats",
            "### Another argument of a question",
        ] {
            assert!(!paths(section(&text, heading)).is_empty(), "{heading}");
        }
    }

    /// Returns whether a text has a name in quotes, in backticks or as a word of a list.
    fn names(text: &str, name: &str) -> bool {
        let is_part = |c: char| c.is_alphanumeric() || c == '-' || c == '_';
        text.match_indices(name).any(|(at, _)| {
            let before = text[..at].chars().next_back();
            let after = text[at + name.len()..].chars().next();
            !before.is_some_and(is_part) && !after.is_some_and(is_part)
        })
    }

    #[test]
    fn the_steps_for_a_preset_are_those_that_every_preset_took() {
        let text = read(&root().join("ARCHITECTURE.md")).unwrap();
        let steps: BTreeSet<&str> = paths(section(&text, "### A preset")).into_iter().collect();
        let (own, lists): (Vec<&str>, Vec<&str>) =
            steps.into_iter().partition(|path| path.contains("NAME"));
        let [own] = own[..] else {
            panic!("the recipe has one file per preset: {own:?}");
        };

        // Each preset has its own file.
        let (directory, extension) = own.split_once("NAME.").unwrap();
        let presets = files_below(&root().join(directory), extension).unwrap();
        let presets: BTreeSet<String> = presets
            .iter()
            .map(|path| path.file_stem().unwrap().to_str().unwrap().to_owned())
            .collect();
        assert!(presets.len() > 3, "{presets:?}");

        // The files that name every preset, and so the next one, are those of the recipe.
        let mut found = BTreeSet::new();
        for extension in ["rs", "md", "json", "toml", "js", "html"] {
            for path in files_below(&root(), extension).unwrap() {
                let relative = path.strip_prefix(root()).unwrap().to_str().unwrap();
                let is_derived = relative == "CHANGELOG.md" || relative.contains("/tests/");
                let text = read(&path).unwrap_or_default();
                if !is_derived && presets.iter().all(|preset| names(&text, preset)) {
                    found.insert(relative.to_owned());
                }
            }
        }
        assert_eq!(found, lists.into_iter().map(str::to_owned).collect());
    }
}
