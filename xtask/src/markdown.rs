//! Checks of Markdown, as tests: lines are wrapped, links lead somewhere.

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::path::PathBuf;

    use crate::{files_below, read, root};

    /// A terminal and a diff show this many columns on most screens.
    const COLUMNS: usize = 100;

    /// Copies of files that are maintained elsewhere. Wrapping them here would make every update
    /// a difference of all lines.
    const COPIES: [&str; 2] = ["spec/requirements.md", "spec/rulings.md"];

    /// Returns the numbers of the lines that are longer than [`COLUMNS`] and could be wrapped.
    ///
    /// Three things cannot be wrapped: a row of a table, a line of a fenced code block, and a link
    /// or URL, which contains no space. A link may exceed the line only if nothing follows it.
    fn unwrapped(text: &str) -> Vec<usize> {
        let mut long = Vec::new();
        // The fence that closes the block around the current line: as many backticks or tildes.
        let mut fence: Option<&str> = None;
        for (line, number) in text.lines().zip(1..) {
            let content = line.trim_start_matches([' ', '>']);
            if let Some(open) = fence {
                if content.trim_end() == open {
                    fence = None;
                }
                continue;
            }
            fence = opening(content);
            let is_table = content.starts_with('|');
            if fence.is_none() && !is_table && line.chars().count() > COLUMNS && !ends_in_link(line)
            {
                long.push(number);
            }
        }
        long
    }

    /// Returns the fence at the beginning of a line, without the language after it.
    fn opening(content: &str) -> Option<&str> {
        let mark = content.chars().next().filter(|&c| c == '`' || c == '~')?;
        let rest = content.trim_start_matches(mark);
        let fence = &content[..content.len() - rest.len()];
        // A code span such as ```` ```x``` ```` closes on its line and opens no block.
        (fence.len() >= 3 && !rest.contains(mark)).then_some(fence)
    }

    /// Returns whether everything beyond the last column belongs to one link or URL.
    fn ends_in_link(line: &str) -> bool {
        let word = line.split(' ').next_back().unwrap_or_default();
        let start = line.chars().count() - word.chars().count();
        start < COLUMNS && (word.contains("](") || word.contains("://"))
    }

    /// Returns every Markdown file once, whatever links to it, without the copies.
    fn documents() -> (PathBuf, BTreeSet<PathBuf>) {
        let root = root().canonicalize().unwrap();
        let files = files_below(&root, "md").unwrap();
        let mut files: BTreeSet<PathBuf> = files
            .iter()
            .map(|path| path.canonicalize().unwrap())
            .collect();
        for copy in COPIES {
            assert!(files.remove(&root.join(copy)), "no {copy}");
        }
        assert!(files.len() > 20, "{files:?}");
        (root, files)
    }

    /// Returns the targets of the links in a text, without those in code.
    fn links(text: &str) -> Vec<&str> {
        // Fences and code spans both start and end with backticks: every second part is code.
        let prose = text.split('`').step_by(2);
        prose
            .flat_map(|part| part.split("](").skip(1))
            .filter_map(|rest| Some(rest.split_once(')')?.0))
            .collect()
    }

    /// Returns the fragments that a text's headings define, as GitHub derives them.
    fn fragments(text: &str) -> BTreeSet<String> {
        let headings = text.lines().filter(|line| line.starts_with('#'));
        let fragment = |line: &str| {
            let title = line.trim_start_matches('#').trim().to_lowercase();
            let kept = title.replace(' ', "-");
            kept.chars()
                .filter(|&c| c.is_alphanumeric() || c == '-' || c == '_')
                .collect()
        };
        headings.map(fragment).collect()
    }

    #[test]
    fn markdown_is_wrapped() {
        let (root, files) = documents();
        let mut long = Vec::new();
        for path in files {
            let relative = path.strip_prefix(&root).unwrap_or(&path);
            for number in unwrapped(&read(&path).unwrap()) {
                long.push(format!("{}:{number}", relative.display()));
            }
        }
        assert!(
            long.is_empty(),
            "wrap these lines at {COLUMNS} columns:\n{}",
            long.join("\n")
        );
    }

    #[test]
    fn prose_is_wrapped_and_tables_code_and_links_are_not() {
        let word = "a ".repeat(60);
        let url = format!("https://docs.rs/{}", "a".repeat(100));
        for (text, expected) in [
            (format!("{}\n", "a".repeat(100)), vec![]),
            (format!("{}\n", "é".repeat(100)), vec![]),
            (format!("{}\n", "a".repeat(101)), vec![1]),
            (word.clone(), vec![1]),
            (format!("# {word}"), vec![1]),
            (format!("- {word}"), vec![1]),
            (format!("> {word}"), vec![1]),
            (format!("`code {word}`"), vec![1]),
            (format!("| {word} |"), vec![]),
            (format!("See {url}"), vec![]),
            (format!("- [the reference]({url}),"), vec![]),
            (format!("[reference]: {url}"), vec![]),
            (format!("See {url} and more"), vec![1]),
            (format!("{word}{url}"), vec![1]),
            (format!("```text\n{word}\n```\n{word}"), vec![4]),
            (format!("  ```\n  {word}\n  ```\n\n{word}"), vec![5]),
            (format!("````\n```\n{word}\n```\n````\n{word}"), vec![6]),
            (format!("~~~\n```\n{word}\n~~~\n{word}"), vec![5]),
            (format!("```x```\n{word}"), vec![2]),
            (format!("```\n{word}"), vec![]),
        ] {
            assert_eq!(unwrapped(&text), expected, "{text}");
        }
    }

    #[test]
    fn every_relative_link_leads_to_a_file_and_a_heading() {
        let (_, files) = documents();
        let mut count = 0;
        for path in files {
            let text = read(&path).unwrap();
            for link in links(&text) {
                if link.contains("://") {
                    continue;
                }
                count += 1;
                let (file, fragment) = link.split_once('#').unwrap_or((link, ""));
                let target = match file {
                    "" => path.clone(),
                    _ => path.parent().unwrap().join(file),
                };
                assert!(target.exists(), "{}: no {link}", path.display());
                if !fragment.is_empty() {
                    let defined = fragments(&read(&target).unwrap());
                    assert!(defined.contains(fragment), "{}: no {link}", path.display());
                }
            }
        }
        assert!(count > 50, "{count} links");
    }

    /// crates.io, docs.rs and `PyPI` show the README of a package without the repository around it.
    #[test]
    fn the_readme_of_a_package_has_no_relative_links() {
        let (root, files) = documents();
        let packages = ["crates", "bindings"].map(|folder| root.join(folder));
        let mut count = 0;
        for path in files {
            let in_package = packages.iter().any(|folder| path.starts_with(folder));
            if path.file_name().unwrap() != "README.md" || !in_package {
                continue;
            }
            count += 1;
            for link in links(&read(&path).unwrap()) {
                let is_absolute = link.starts_with("https://") || link.starts_with('#');
                assert!(is_absolute, "{}: {link}", path.display());
            }
        }
        assert!(count > 5, "{count} packages");
    }

    #[test]
    fn links_in_code_are_not_links() {
        let text = "See [a](b.md) and `[c](d.md)`.\n\n```md\n[e](f.md)\n```\n\n[g\nh](#i)\n";
        assert_eq!(links(text), ["b.md", "#i"]);
        let titles = "# Coming from `cupel` 1.2\n## Fit a chat: why?\n";
        let fragments: Vec<String> = fragments(titles).into_iter().collect();
        assert_eq!(fragments, ["coming-from-cupel-12", "fit-a-chat-why"]);
    }
}
