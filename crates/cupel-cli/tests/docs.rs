//! What the documents show is what the command prints.

use std::path::Path;

use serde_json::Value;

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

/// The list is that of `cupel --help`; `INSTA_UPDATE=always`, as for snapshots, writes it.
#[test]
fn the_guide_lists_the_subcommands() {
    let guide = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/documents/command.md");
    let text = std::fs::read_to_string(&guide).expect("the document is there");
    let help = crate::sandbox::Sandbox::new().run(&["--help"]).out;
    let between = |text: &str, from: &str, to: &str| {
        let start = text.find(from).expect("the list has a start");
        let end = text[start..].find(to).expect("the list has an end");
        text[start..start + end].trim_end().to_owned()
    };
    let (shown, listed) = (
        between(&text, "Everyday:", "```"),
        between(&help, "Everyday:", "Options:"),
    );
    if std::env::var("INSTA_UPDATE").is_ok_and(|update| update == "always") {
        std::fs::write(guide, text.replace(&shown, &listed)).expect("the document is written");
        return;
    }
    assert_eq!(shown, listed);
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
                    .env("CUPEL_CONFIG", "")
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

/// Returns the rows of the results in `docs/agents.md` for what `eval agent --json` printed: one per
/// budget and policy, in the order of the answers.
fn agent_rows(answers: &[Value]) -> Vec<String> {
    let results = |answer: &Value| answer["results"].as_array().unwrap().clone();
    let mut results: Vec<Value> = answers.iter().flat_map(results).collect();
    results.sort_by_key(|result| result["budget"].as_i64());
    let percent = |number: &Value| match format!("{:.1}", 100.0 * number.as_f64().unwrap()) {
        whole if whole == "100.0" => "100".to_owned(),
        text => text,
    };
    let mut last = None;
    let row = |result: &Value| {
        let value = |measure: &str| percent(&result[measure]["value"]);
        let recall = &result["grounding_recall"];
        let name = result["policy"].as_str().unwrap();
        let budget = result["budget"].as_i64();
        let first = match last.replace(budget) {
            before if before == Some(budget) => " ".to_owned(),
            _ => format!(" {} ({}) ", thousands(budget.unwrap()), result["steps"]),
        };
        format!(
            "|{first}| `{name}` | {} [{}, {}] | {} | {} | {} | {:.2} | {} | {} |",
            value("grounding_recall"),
            percent(&recall["low"]),
            percent(&recall["high"]),
            value("supported_recall"),
            value("body_reuse"),
            value("request_reuse"),
            result["cost"]["value"].as_f64().unwrap(),
            value("holes"),
            value("alternation_breaks"),
        )
    };
    results.iter().map(row).collect()
}

fn thousands(number: i64) -> String {
    match number {
        ..1_000 => number.to_string(),
        _ => format!("{},{:03}", number / 1_000, number % 1_000),
    }
}

/// Needs the recorded runs, which are not in the repository: `CUPEL_AGENT_RUNS` names their file.
#[test]
fn the_results_for_agents_are_those_that_the_command_prints() {
    let Some(runs) = std::env::var_os("CUPEL_AGENT_RUNS") else {
        return;
    };
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(root.join("tests/documents/agents.md")).unwrap();
    let commands = text.lines().filter(|line| line.contains(" sample.jsonl "));
    let answers: Vec<Value> = commands
        .map(|line| {
            let arguments = line.split(' ').skip(1).map(|argument| match argument {
                "sample.jsonl" => runs.clone(),
                argument => argument.into(),
            });
            let mut cupel = assert_cmd::Command::cargo_bin("cupel").unwrap();
            let output = cupel.args(arguments).arg("--json").output().unwrap();
            serde_json::from_slice(&output.stdout).unwrap()
        })
        .collect();
    let shown = text
        .lines()
        .filter(|line| line.contains("| `") && line.contains('['));
    let printed = agent_rows(&answers);
    assert!(
        shown.eq(printed.iter().map(String::as_str)),
        "the command prints\n{}",
        printed.join("\n")
    );
}
