//! What the documents show is what the command prints.

use std::path::Path;

use crate::sandbox::Ran;

/// The command lines of a document, each with what it shows of the output.
fn shown(text: &str) -> Vec<(String, Vec<String>)> {
    let mut examples: Vec<(String, Vec<String>)> = Vec::new();
    let mut inside = false;
    for line in text.lines() {
        if line.starts_with("```") {
            inside = line == "```console";
        } else if let Some(command) = line.strip_prefix("$ cupel ").filter(|_| inside) {
            examples.push((command.to_owned(), Vec::new()));
        } else if let (true, Some((_, output))) = (inside, examples.last_mut()) {
            output.push(line.to_owned());
        }
    }
    examples
}

/// Whether the lines are those that are shown, where `...` stands for any number of them.
fn agrees(shown: &[String], lines: &[&str]) -> bool {
    match shown.split_first() {
        None => lines.is_empty(),
        Some((first, rest)) if first == "..." => {
            (0..=lines.len()).any(|skipped| agrees(rest, &lines[skipped..]))
        }
        Some((first, rest)) => lines
            .split_first()
            .is_some_and(|(line, lines)| line == first && agrees(rest, lines)),
    }
}

#[test]
fn every_example_of_the_guide_prints_what_it_shows() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut count = 0;
    for document in ["tests/documents/command.md", "tests/documents/README.md"] {
        let text = std::fs::read_to_string(root.join(document)).expect("the document is there");
        for (command, expected) in shown(&text) {
            count += 1;
            let ran = Ran::from(
                assert_cmd::Command::cargo_bin("cupel")
                    .expect("the command is built")
                    .current_dir(root)
                    .args(command.split(' '))
                    .output()
                    .expect("the command runs"),
            );
            let printed = format!("{}{}", ran.out, ran.err);
            let lines: Vec<&str> = printed.lines().collect();
            assert!(
                agrees(&expected, &lines),
                "{document}: {command}\n{printed}"
            );
        }
    }
    assert!(count > 10, "{count} examples");
}
