//! `--check`: the counts against `limits.toml`.

use crate::counts::{Reach, allocation_rows, instruction_rows};
use crate::table::{Goal, Limit, Row, Verdict, render, summary};

/// Sections are bars, keys are rows, values are upper limits. The file is a subset of TOML, parsed here so
/// that the check depends on the library alone.
const LIMITS: &str = include_str!("../limits.toml");

pub(crate) fn run(is_wanted: impl Fn(u8) -> bool) -> Result<(), String> {
    let mut limits = parse(LIMITS)?;
    limits.retain(|limit| is_wanted(limit.bar));
    let mut rows = instruction_rows(Reach::Check);
    rows.extend(allocation_rows(Reach::Check));
    rows.retain(|row| row.bar.is_some_and(&is_wanted));
    for row in &mut rows {
        if let Verdict::NotMeasured(reason) = row.verdict() {
            return Err(format!(
                "bar {} cannot be checked: {reason}",
                row.bar.unwrap_or(0)
            ));
        }
        let own = |limit: &LimitLine| Some(limit.bar) == row.bar && limit.key == row.key;
        let Some(position) = limits.iter().position(own) else {
            return Err(format!(
                "limits.toml has no limit for bar {}: {}",
                row.bar.unwrap_or(0),
                row.key
            ));
        };
        let must = Limit::AtMost(limits.swap_remove(position).most);
        let aim = row.goal.map_or(must, |goal| goal.aim);
        row.goal = Some(Goal { must, aim });
    }
    rows.sort_by_key(|row| row.bar);
    println!("{}\n{}", render(&rows), summary(&rows));
    if let Some(limit) = limits.first() {
        return Err(format!(
            "limits.toml has a limit without a row: bar {}: {}",
            limit.bar, limit.key
        ));
    }
    let is_broken = |row: &&Row| matches!(row.verdict(), Verdict::Missed(_));
    match rows.iter().filter(is_broken).count() {
        0 => Ok(()),
        broken => Err(format!("{broken} limits are exceeded")),
    }
}

struct LimitLine {
    bar: u8,
    key: String,
    most: f64,
}

fn parse(text: &str) -> Result<Vec<LimitLine>, String> {
    let mut bar = None;
    let mut limits = Vec::new();
    for (number, line) in text.lines().enumerate() {
        let line = line.split('#').next().unwrap_or_default().trim();
        let fault = || {
            format!(
                "limits.toml:{}: expected `key = number` or `[barN]`, got `{line}`",
                number + 1
            )
        };
        if line.is_empty() {
            continue;
        }
        if let Some(section) = line.strip_prefix("[bar").and_then(|s| s.strip_suffix(']')) {
            bar = Some(section.parse().map_err(|_| fault())?);
            continue;
        }
        let (key, most) = line.split_once('=').ok_or_else(fault)?;
        limits.push(LimitLine {
            bar: bar.ok_or_else(fault)?,
            key: key.trim().to_owned(),
            most: most.trim().replace('_', "").parse().map_err(|_| fault())?,
        });
    }
    Ok(limits)
}
