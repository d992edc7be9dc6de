//! Python peers: bars 30 to 32. A script in a virtual environment measures their CPU time; our side is
//! measured here.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use cupel::Slicer as _;
use serde_json::{Value, json};

use super::Session;
use crate::generator::Population;
use crate::knapsack::{Class, value};
use crate::measure::{Timing, alone};
use crate::ours;
use crate::recipe::{BUDGET, Scoring};
use crate::table::{Figure, Row, Unit, at_least, at_most};

const PACKAGES: [&str; 4] = [
    "ortools==9.15.6755",
    "langchain-core==1.7.2",
    "llama-index-core==0.14.25",
    "haystack-ai==3.4.0",
];
/// The time limit of a solver, in seconds.
const LIMIT: u32 = 30;
const NUMBER: usize = 10_000;

/// The instances of bar 30. The times of the first two are compared; the others are to be solved within
/// the limit, which the peer exceeds.
const INSTANCES: [(Class, i64, Criterion); 4] = [
    (Class::Recency, 128_000, Criterion::Ratio),
    (Class::Recency, 1_000_000, Criterion::Ratio),
    (Class::Kind, 128_000, Criterion::Finish),
    (Class::Strong, 128_000, Criterion::Finish),
];

#[derive(Clone, Copy)]
enum Criterion {
    Ratio,
    Finish,
}

pub(crate) fn all(session: Session) -> Vec<Row> {
    if session.is_quick {
        return blank_rows()
            .into_iter()
            .map(|row| row.not_measured("takes the full run"))
            .collect();
    }
    match environment().and_then(|python| ask(&python)) {
        Ok(answers) => {
            let mut rows = knapsack_rows(session, &answers);
            rows.extend(window_rows(session, &answers));
            rows
        }
        Err(reason) => blank_rows()
            .into_iter()
            .map(|row| row.not_measured(reason.clone()))
            .collect(),
    }
}

fn blank_rows() -> Vec<Row> {
    let mut rows: Vec<Row> = INSTANCES
        .map(|(class, target, criterion)| knapsack_row(class, target, criterion))
        .into();
    rows.extend(PEERS.map(|(bar, name, _)| window_row(bar, name)));
    rows
}

fn knapsack_row(class: Class, target: i64, criterion: Criterion) -> Row {
    let target = crate::counts::short(usize::try_from(target).unwrap_or(0));
    let what = format!(
        "OR-tools branch & bound, {}, n=10k, C={target}",
        class.name()
    );
    let row = Row::new(30, what).checked("same optimum");
    match criterion {
        Criterion::Ratio => row.goal(at_least(50.0, 200.0)),
        Criterion::Finish => {
            let limit = f64::from(LIMIT);
            row.goal(at_most(limit, limit)).unit(Unit::Seconds)
        }
    }
}

fn knapsack_rows(session: Session, answers: &Value) -> Vec<Row> {
    INSTANCES
        .map(|(class, target, criterion)| {
            let row = knapsack_row(class, target, criterion);
            let instance = class.instance(NUMBER);
            let (list, budget) = (ours::scored(&instance), ours::budget(target));
            let slicer = ours::knapsack(1);
            let (timing, chosen) = alone(session.plan(), || slicer.slice(&list, &budget));
            let chosen = match chosen {
                Ok(chosen) => ours::positions(&chosen),
                Err(error) => return row.missed(error.to_string()),
            };
            let row = row.ours(timing.figure());
            let answer = &answers["knapsack"][format!("{}/{target}", class.name())];
            let Some(seconds) = answer["seconds"].as_f64() else {
                return row.not_measured(reason(answer));
            };
            let is_finished = answer["finished"] == true;
            let total: u64 = chosen.iter().map(|&rank| value(instance[rank].0)).sum();
            if is_finished && answer["value"].as_u64() != Some(total) {
                return row.missed(format!("the optimum is {}, not {total}", answer["value"]));
            }
            let row = row.peer(if is_finished {
                Figure::of(seconds, Unit::Seconds)
            } else {
                Figure::Words(format!("did not finish in {LIMIT} s"))
            });
            match criterion {
                Criterion::Finish => row.measured(timing.seconds, Unit::Seconds),
                Criterion::Ratio if is_finished => {
                    row.measured(seconds / timing.seconds, Unit::Times)
                }
                Criterion::Ratio => row.not_measured("the peer did not finish"),
            }
        })
        .into()
}

/// Bar, display name, JSON pointer into the script's answer.
const PEERS: [(u8, &str, &str); 4] = [
    (31, "langchain trim_messages", "/trim_messages/list"),
    (
        31,
        "langchain trim_messages, counter per message",
        "/trim_messages/one",
    ),
    (
        32,
        "llama-index LongContextReorder",
        "/long_context_reorder",
    ),
    (32, "haystack LostInTheMiddleRanker", "/lost_in_the_middle"),
];

fn window_row(bar: u8, name: &str) -> Row {
    let ours = if bar == 31 {
        "composite run"
    } else {
        "composite, u-shaped run"
    };
    Row::new(bar, format!("{name} / {ours}, N=10k")).goal(at_least(5.0, 20.0))
}

fn window_rows(session: Session, answers: &Value) -> Vec<Row> {
    let items = ours::items(&Population::new(NUMBER));
    let budget = ours::budget(BUDGET);
    let time = |pipeline: cupel::Pipeline| -> Result<Timing, String> {
        let (timing, window) = alone(session.plan(), || pipeline.run(&items, &budget));
        window.map(|_| timing).map_err(|error| error.to_string())
    };
    let plain = time(ours::pipeline(Scoring::Composite));
    let u_shaped = time(ours::u_shaped_pipeline(Scoring::Composite));
    PEERS
        .map(|(bar, name, key)| {
            let row = window_row(bar, name);
            let timing = if bar == 31 { &plain } else { &u_shaped };
            let answer = answers.pointer(key).unwrap_or(&Value::Null);
            match (timing, answer["seconds"].as_f64()) {
                (Ok(timing), Some(seconds)) => row
                    .peer(Figure::of(seconds, Unit::Seconds))
                    .ours(timing.figure())
                    .measured(seconds / timing.seconds, Unit::Times),
                (Err(error), _) => row.missed(error.clone()),
                (_, None) => row.not_measured(reason(answer)),
            }
        })
        .into()
}

fn reason(answer: &Value) -> String {
    let reason = answer["error"].as_str();
    reason.unwrap_or("the script gave no answer").to_owned()
}

/// Returns the interpreter of a virtual environment with the packages; creates it if needed.
fn environment() -> Result<PathBuf, String> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("target/py");
    let python = directory.join("bin/python");
    let mark = directory.join("packages");
    let wanted = PACKAGES.join("\n");
    if std::fs::read_to_string(&mark).is_ok_and(|installed| installed == wanted) {
        return Ok(python);
    }
    eprintln!("  installing {} into bench/target/py", PACKAGES.join(", "));
    run(Command::new("python3").args(["-m", "venv"]).arg(&directory))?;
    run(Command::new(&python)
        .args(["-m", "pip", "install", "--quiet"])
        .args(PACKAGES))?;
    std::fs::write(&mark, wanted).map_err(|error| error.to_string())?;
    Ok(python)
}

fn run(command: &mut Command) -> Result<(), String> {
    let name = command.get_program().to_string_lossy().into_owned();
    let name = name.rsplit('/').next().unwrap_or_default().to_owned();
    let output = command.output();
    let output = output.map_err(|error| format!("{name}: {error}"))?;
    if output.status.success() {
        return Ok(());
    }
    let errors = String::from_utf8_lossy(&output.stderr);
    Err(format!(
        "{name}: {}",
        errors.lines().last().unwrap_or("it failed")
    ))
}

/// Sends the instances to the script and reads its answers.
fn ask(python: &Path) -> Result<Value, String> {
    let instances = INSTANCES.map(|(class, target, _)| {
        let instance = class.instance(NUMBER);
        json!({
            "name": format!("{}/{target}", class.name()),
            "capacity": target,
            "values": instance.iter().map(|(score, _)| value(*score)).collect::<Vec<_>>(),
            "weights": instance.iter().map(|(_, tokens)| tokens).collect::<Vec<_>>(),
        })
    });
    let candidates: Vec<_> = Population::new(NUMBER)
        .candidates()
        .map(|candidate| (candidate.tokens, candidate.content.len()))
        .collect();
    let question = json!({
        "limit": LIMIT,
        "knapsack": instances,
        "budget": BUDGET,
        "candidates": candidates,
    });
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("python/peers.py");
    let mut child = Command::new(python)
        .arg(script)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .map_err(|error| format!("python: {error}"))?;
    if let Some(mut stdin) = child.stdin.take() {
        let sent = stdin.write_all(question.to_string().as_bytes());
        sent.map_err(|error| format!("python: {error}"))?;
    }
    let output = child.wait_with_output();
    let output = output.map_err(|error| format!("python: {error}"))?;
    serde_json::from_slice(&output.stdout).map_err(|_| "the script gave no answer".to_owned())
}
