//! The check that Markdown is wrapped, as a test.

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

    #[test]
    fn markdown_is_wrapped() {
        // A file and its links are one file.
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
}
