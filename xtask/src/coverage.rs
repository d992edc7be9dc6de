//! `cargo xtask coverage`: the vectors and tests that prove each requirement and ruling.
//!
//! Vectors name them in `requirements` and `rulings`. A test names them in a comment
//! `// proves: ID, ID` above its attribute. `spec/kept-otherwise.toml` explains those that no
//! vector or test can prove.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

use crate::{files_below, read, root};

pub(crate) fn write() -> Result<(), String> {
    let path = root().join("spec/coverage.md");
    let table = Coverage::collect()?.table();
    std::fs::write(&path, table).map_err(|error| format!("{}: {error}", path.display()))
}

/// A row of `spec/requirements.md`, or a ruling.
struct Row {
    id: String,
    level: String,
}

#[derive(Default)]
struct Proofs {
    vectors: Vec<String>,
    tests: Vec<String>,
    otherwise: Option<String>,
}

impl Proofs {
    fn is_empty(&self) -> bool {
        self.vectors.is_empty() && self.tests.is_empty() && self.otherwise.is_none()
    }
}

struct Coverage {
    requirements: Vec<Row>,
    rulings: Vec<Row>,
    proofs: BTreeMap<String, Proofs>,
}

impl Coverage {
    fn collect() -> Result<Self, String> {
        let spec = root().join("spec");
        let requirements = requirements(&read(&spec.join("requirements.md"))?);
        let rulings = rulings(&read(&spec.join("rulings.md"))?);
        let ids = requirements.iter().chain(&rulings);
        let mut proofs: BTreeMap<String, Proofs> =
            ids.map(|row| (row.id.clone(), Proofs::default())).collect();
        let mut prove = |id: &str, place: &str, by: &dyn Fn(&mut Proofs)| {
            proofs
                .get_mut(id)
                .map(by)
                .ok_or_else(|| format!("{place}: unknown requirement or ruling `{id}`"))
        };

        for vector in cupel_conformance::suite().map_err(|errors| errors.to_string())? {
            let name = vector.path.trim_end_matches(".toml");
            for id in vector.requirements.iter().chain(&vector.rulings) {
                prove(id, name, &|proofs| proofs.vectors.push(name.to_owned()))?;
            }
        }
        for directory in ["crates", "xtask"] {
            for path in files_below(&root().join(directory), "rs")? {
                for (test, ids) in claims(&read(&path)?, &path)? {
                    for id in ids {
                        prove(&id, &test, &|proofs| proofs.tests.push(test.clone()))?;
                    }
                }
            }
        }
        let otherwise: toml::Table = read(&spec.join("kept-otherwise.toml"))?
            .parse()
            .map_err(|error| format!("spec/kept-otherwise.toml: {error}"))?;
        for (id, how) in &otherwise {
            let how = how.as_str().unwrap_or_default();
            prove(id, "spec/kept-otherwise.toml", &|proofs| {
                proofs.otherwise = Some(how.to_owned());
            })?;
        }
        Ok(Self {
            requirements,
            rulings,
            proofs,
        })
    }

    fn table(&self) -> String {
        let mut text = String::from(
            "# Coverage\n\n\
             Which vector or test proves which requirement. Written by `cargo xtask coverage`; a test\n\
             fails when it is stale. Vectors are files below `crates/cupel-conformance/vectors`, tests\n\
             are functions.\n",
        );
        let sections = [
            ("Requirements", &self.requirements),
            ("Rulings", &self.rulings),
        ];
        for (title, rows) in sections {
            let proved = rows.iter().filter(|row| !self.proofs[&row.id].is_empty());
            let _ = write!(
                text,
                "\n## {title}\n\n{} of {} have a proof.\n\n| id | level | vectors | tests and other means |\n|---|---|---|---|\n",
                proved.count(),
                rows.len()
            );
            for row in rows {
                let proofs = &self.proofs[&row.id];
                let mut rest = proofs.tests.clone();
                rest.extend(proofs.otherwise.clone());
                let _ = writeln!(
                    text,
                    "| {} | {} | {} | {} |",
                    row.id,
                    row.level,
                    proofs.vectors.join(", "),
                    rest.join("; ")
                );
            }
        }
        text
    }
}

/// Parses the rows of the tables: `| ID-1 | LEVEL | text |`.
fn requirements(text: &str) -> Vec<Row> {
    let cells = text.lines().map(|line| line.split('|').map(str::trim));
    cells
        .filter_map(|mut cells| {
            let (_, id, level) = (cells.next()?, cells.next()?, cells.next()?);
            let (_, number) = id.rsplit_once('-')?;
            number.parse::<u32>().ok()?;
            Some(Row {
                id: id.to_owned(),
                level: level.to_owned(),
            })
        })
        .collect()
}

/// Parses the headings `### R001 ...`.
fn rulings(text: &str) -> Vec<Row> {
    let headings = text.lines().filter_map(|line| line.strip_prefix("### "));
    headings
        .filter_map(|heading| {
            let id = heading.split(' ').next()?;
            Some(Row {
                id: id.to_owned(),
                level: "ruling".to_owned(),
            })
        })
        .collect()
}

/// Returns the tests of a file with the identifiers in their `proves` comments.
fn claims(text: &str, path: &Path) -> Result<Vec<(String, Vec<String>)>, String> {
    let mut claims = Vec::new();
    let mut lines = text.lines().enumerate();
    while let Some((number, line)) = lines.next() {
        let Some(list) = line.trim_start().strip_prefix("// proves: ") else {
            continue;
        };
        let ids = list.split(", ").map(str::to_owned).collect();
        let mut after = lines.clone().map(|(_, line)| line.trim_start());
        let is_test = after
            .clone()
            .take(3)
            .any(|line| line.starts_with("#[test]"));
        let function = after.find_map(|line| line.strip_prefix("fn "));
        let name = function.and_then(|rest| rest.split('(').next());
        match name {
            Some(name) if is_test => claims.push((name.to_owned(), ids)),
            _ => {
                return Err(format!(
                    "{}:{}: a test must follow the `proves` comment",
                    path.display(),
                    number + 1
                ));
            }
        }
    }
    Ok(claims)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_fresh() {
        let written = read(&root().join("spec/coverage.md")).unwrap();
        let table = Coverage::collect().unwrap().table();
        assert!(
            written == table,
            "spec/coverage.md is stale; run `cargo xtask coverage`"
        );
    }

    fn unproved(coverage: &Coverage, rows: &[Row]) -> Vec<String> {
        let ids = rows.iter().map(|row| row.id.clone());
        ids.filter(|id| coverage.proofs[id].is_empty()).collect()
    }

    #[test]
    fn every_requirement_is_proved() {
        let coverage = Coverage::collect().unwrap();
        assert_eq!(coverage.requirements.len(), 565);
        assert_eq!(unproved(&coverage, &coverage.requirements), [""; 0]);
    }

    #[test]
    fn every_ruling_is_proved() {
        let coverage = Coverage::collect().unwrap();
        assert_eq!(coverage.rulings.len(), 150);
        assert_eq!(unproved(&coverage, &coverage.rulings), [""; 0]);
    }

    #[test]
    fn requirements_kept_otherwise_have_no_vector_or_test() {
        let coverage = Coverage::collect().unwrap();
        for (id, proofs) in &coverage.proofs {
            assert!(
                proofs.otherwise.is_none() || proofs.vectors.is_empty() && proofs.tests.is_empty(),
                "{id} has a proof; remove it from spec/kept-otherwise.toml"
            );
        }
    }

    #[test]
    fn a_claim_belongs_to_the_next_test() {
        let text = "    // proves: A-1, R002\n    #[test]\n    fn it_holds() {}\n";
        let claims = claims(text, Path::new("x.rs")).unwrap();
        assert_eq!(
            claims,
            [(
                "it_holds".to_owned(),
                vec!["A-1".to_owned(), "R002".to_owned()]
            )]
        );
    }

    #[test]
    fn a_claim_without_a_test_is_an_error() {
        let text = "// proves: A-1\nfn helper() {}\n";
        assert_eq!(
            super::claims(text, Path::new("x.rs")).unwrap_err(),
            "x.rs:1: a test must follow the `proves` comment"
        );
    }
}
