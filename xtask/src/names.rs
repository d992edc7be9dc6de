//! Tests of the names that users install: the distribution on `PyPI`, and its extras.

#[cfg(test)]
mod tests {
    use crate::{files_below, read, read_toml, root};

    /// Returns the table `project` of the Python package.
    fn project() -> toml::Table {
        let manifest = read_toml(&root().join("bindings/python/pyproject.toml")).unwrap();
        manifest["project"].as_table().unwrap().clone()
    }

    /// `PyPI`'s `cupel` is another project: who installs `cupel[langchain]` gets that one.
    #[test]
    fn texts_name_our_distribution_and_its_extras() {
        let project = project();
        assert_eq!(project["name"].as_str(), Some("cupel-context"));
        let extras = project["optional-dependencies"].as_table().unwrap();
        let mut named = 0;
        for extension in ["md", "py", "pyi", "rs", "toml", "ipynb"] {
            for path in files_below(&root(), extension).unwrap() {
                let is_changelog = path.ends_with("CHANGELOG.md");
                if is_changelog || path.ends_with("xtask/src/names.rs") {
                    continue;
                }
                let text = read(&path).unwrap();
                for wrong in [
                    "`cupel[",
                    "\"cupel[",
                    "'cupel[",
                    "install cupel[",
                    "pip install cupel ",
                ] {
                    assert!(!text.contains(wrong), "{}: {wrong}", path.display());
                }
                for (_, rest) in text
                    .match_indices("cupel-context[")
                    .map(|(at, name)| text[at..].split_at(name.len()))
                {
                    let list = rest.split(']').next().unwrap_or_default();
                    for extra in list.split(',') {
                        named += 1;
                        assert!(extras.contains_key(extra), "{}: {extra}", path.display());
                    }
                }
            }
        }
        assert!(named >= 5, "{named} extras are named");
    }

    #[test]
    fn every_extra_is_in_the_instructions() {
        let text = read(&root().join("docs/install.md")).unwrap();
        for extra in project()["optional-dependencies"]
            .as_table()
            .unwrap()
            .keys()
        {
            assert!(
                text.contains(&format!("`{extra}`")),
                "docs/install.md: {extra}"
            );
        }
    }
}
