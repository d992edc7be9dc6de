//! The table as JSON, with a description of the machine.

use std::path::Path;

use serde_json::{Value, json};

use crate::table::{Figure, Limit, Row, Verdict};

/// Writes `results/latest.json` beside this crate's manifest.
pub(crate) fn write(is_quick: bool, sections: &[(&str, Vec<Row>)]) -> Result<(), String> {
    let sections = sections.iter().map(|(name, rows)| {
        let rows: Vec<Value> = rows.iter().map(row).collect();
        ((*name).to_owned(), Value::Array(rows))
    });
    let report = json!({
        "mode": if is_quick { "quick" } else { "full" },
        "machine": machine(),
        "versions": versions(),
        "tables": sections.collect::<serde_json::Map<_, _>>(),
    });
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("results");
    let fault = |error: std::io::Error| format!("bench/results: {error}");
    std::fs::create_dir_all(&directory).map_err(fault)?;
    std::fs::write(directory.join("latest.json"), format!("{report:#}\n")).map_err(fault)
}

/// Returns one line about the machine.
pub(crate) fn machine_line() -> String {
    let machine = machine();
    let text = |name: &str| machine[name].as_str().unwrap_or("unknown").to_owned();
    let memory = machine["memory_bytes"].as_f64().unwrap_or(0.0) / 1e9;
    format!(
        "{} cores, {}, {memory:.0} GB, {}",
        machine["cores"],
        text("cpu"),
        text("rustc")
    )
}

fn machine() -> Value {
    let cores = std::thread::available_parallelism().map_or(0, usize::from);
    let read = |path| std::fs::read_to_string(path).unwrap_or_default();
    let after = |text: &str, name: &str| {
        let line = text.lines().find(|line| line.starts_with(name));
        line.and_then(|line| Some(line.split_once(':')?.1.trim().to_owned()))
    };
    let memory = after(&read("/proc/meminfo"), "MemTotal");
    let memory = memory.and_then(|memory| memory.split(' ').next()?.parse::<u64>().ok());
    json!({
        "cores": cores,
        "cpu": after(&read("/proc/cpuinfo"), "model name"),
        "memory_bytes": memory.map(|kilobytes| kilobytes * 1024),
        "system": read("/proc/sys/kernel/osrelease").trim(),
        "rustc": env!("BENCH_RUSTC"),
    })
}

/// Returns the versions of the libraries, from the lock file.
fn versions() -> Value {
    let packages = include_str!("../Cargo.lock").split("[[package]]").skip(1);
    let field = |package: &str, name: &str| {
        let line = package.lines().find_map(|line| line.strip_prefix(name));
        line.map(|line| line.trim_matches([' ', '=', '"']).to_owned())
    };
    let mut versions = serde_json::Map::new();
    for package in packages {
        let (name, version) = (field(package, "name"), field(package, "version"));
        let (Some(name), Some(version)) = (name, version) else {
            continue;
        };
        let is_published = field(package, "source").is_some();
        let name = match (name.as_str(), is_published) {
            ("cupel", false) => "ours",
            ("cupel", true) => "cupel (published)",
            ("tiktoken", _) => "tiktoken",
            _ => continue,
        };
        versions.insert(name.to_owned(), Value::String(version));
    }
    Value::Object(versions)
}

fn row(row: &Row) -> Value {
    let limit = |limit: Limit| match limit {
        Limit::AtLeast(bound) => json!({ "at_least": bound }),
        Limit::AtMost(bound) => json!({ "at_most": bound }),
    };
    let (verdict, reason) = match row.verdict() {
        Verdict::Aim => ("aim", None),
        Verdict::Must => ("must", None),
        Verdict::Missed(reason) => ("missed", Some(reason)),
        Verdict::NotMeasured(reason) => ("not measured", Some(reason)),
        Verdict::Shown => ("shown", None),
    };
    json!({
        "bar": row.bar,
        "what": row.what,
        "peer": figure(&row.peer),
        "ours": figure(&row.ours),
        "ratio": row.measured,
        "ratio_unit": format!("{:?}", row.unit),
        "must": row.goal.map(|goal| limit(goal.must)),
        "aim": row.goal.map(|goal| limit(goal.aim)),
        "verdict": verdict,
        "reason": reason.filter(|reason| !reason.is_empty()),
        "checked": row.checked,
    })
}

fn figure(figure: &Figure) -> Value {
    match figure {
        Figure::Nothing => Value::Null,
        Figure::Value { value, unit, note } => {
            json!({ "value": value, "unit": format!("{unit:?}"), "note": note })
        }
        Figure::Words(words) => Value::String(words.clone()),
    }
}
