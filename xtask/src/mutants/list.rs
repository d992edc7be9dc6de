//! The mutants that cargo-mutants lists.

use std::collections::BTreeMap;
use std::ops::Range;

use serde_json::Value;

use crate::process::{self, cargo};
use crate::{read, root};

/// A replacement in a source file.
#[derive(Clone, Default)]
pub(super) struct Mutant {
    /// Its number, from 1 on. 0 is the original.
    pub(super) id: u32,
    /// `path: description`, with a number if the file has several of it. Survives edits above it.
    pub(super) name: String,
    pub(super) file: String,
    pub(super) line: usize,
    /// The bytes that `replacement` replaces.
    pub(super) span: Range<usize>,
    pub(super) replacement: String,
    /// The bytes of the function with its documentation. `None` for a constant.
    pub(super) function: Option<Range<usize>>,
    /// Whether the function returns an opaque type, which every branch of a body shares.
    pub(super) is_opaque: bool,
}

impl Mutant {
    /// Returns whether the mutant can be switched at run time.
    pub(super) fn has_schemata(&self) -> bool {
        self.function.is_some() && !self.is_opaque
    }

    /// Returns the name with the line.
    pub(super) fn position(&self) -> String {
        let description = self.name.strip_prefix(&self.file).unwrap_or(&self.name);
        format!("{}:{}{description}", self.file, self.line)
    }

    /// Returns the directory of the file below `src`, or the file itself.
    pub(super) fn directory(&self) -> String {
        match self.file.split_once("/src/") {
            Some((package, path)) => match path.split_once('/') {
                Some((directory, _)) => format!("{package}/src/{directory}"),
                None => self.file.clone(),
            },
            None => self.file.clone(),
        }
    }
}

/// Lists all mutants.
pub(super) fn mutants() -> Result<Vec<Mutant>, String> {
    let json = process::output(&mut cargo(["mutants", "--list", "--json"]))?;
    parse(&json, |file| read(&root().join(file)))
}

fn parse(
    json: &str,
    source: impl Fn(&str) -> Result<String, String>,
) -> Result<Vec<Mutant>, String> {
    let list: Vec<Value> = serde_json::from_str(json).map_err(|error| error.to_string())?;
    let mut sources = BTreeMap::new();
    let mut counts = BTreeMap::new();
    let mut mutants = Vec::with_capacity(list.len());
    for (id, value) in (1..).zip(&list) {
        let text = |key: &str| value[key].as_str().unwrap_or_default().to_owned();
        let file = text("file");
        if !sources.contains_key(&file) {
            sources.insert(file.clone(), source(&file)?);
        }
        let source = &sources[&file];
        let function = &value["function"];
        // `path:line:column: description`
        let description = text("name");
        let description = description.splitn(4, ':').last().unwrap_or_default();
        let name = format!("{file}:{description}");
        let count = counts.entry(name.clone()).or_insert(0);
        *count += 1;
        mutants.push(Mutant {
            id,
            name: if *count == 1 {
                name
            } else {
                format!("{name} ({count})")
            },
            line: number(&value["span"]["start"]["line"]),
            span: bytes(source, &value["span"]),
            replacement: text("replacement"),
            function: (!function.is_null()).then(|| bytes(source, &function["span"])),
            is_opaque: function["return_type"]
                .as_str()
                .unwrap_or_default()
                .contains("impl "),
            file,
        });
    }
    Ok(mutants)
}

/// Converts lines and columns, which start at 1, to bytes.
fn bytes(source: &str, span: &Value) -> Range<usize> {
    let offset = |place: &Value| {
        let lines = source
            .split_inclusive('\n')
            .take(number(&place["line"]) - 1);
        let start: usize = lines.map(str::len).sum();
        let characters = source[start..].chars().take(number(&place["column"]) - 1);
        start + characters.map(char::len_utf8).sum::<usize>()
    };
    offset(&span["start"])..offset(&span["end"])
}

fn number(value: &Value) -> usize {
    let number = value
        .as_u64()
        .and_then(|number| usize::try_from(number).ok());
    number.unwrap_or(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_is_parsed() {
        let source = "const E: f64 = 1.0 - 2.0;\nfn f() -> impl Fn() {\n    'é'; g() + g()\n}\n";
        let place = |line: usize, from: usize, to: usize| serde_json::json!({"start": {"line": line, "column": from}, "end": {"line": line, "column": to}});
        let function = serde_json::json!({
            "return_type": "-> impl Fn()",
            "span": {"start": {"line": 2, "column": 1}, "end": {"line": 4, "column": 2}},
        });
        let json = serde_json::json!([
            {"file": "a.rs", "name": "a.rs:1:20: replace - with +", "span": place(1, 20, 21), "replacement": "+", "function": null},
            {"file": "a.rs", "name": "a.rs:3:14: replace + with -", "span": place(3, 14, 15), "replacement": "-", "function": function},
            {"file": "a.rs", "name": "a.rs:3:20: replace + with -", "span": place(3, 20, 21), "replacement": "-", "function": function},
        ]);
        let mutants = parse(&json.to_string(), |_| Ok(source.to_owned())).unwrap();
        let names: Vec<&str> = mutants.iter().map(|mutant| mutant.name.as_str()).collect();
        assert_eq!(
            names,
            [
                "a.rs: replace - with +",
                "a.rs: replace + with -",
                "a.rs: replace + with - (2)"
            ]
        );
        assert_eq!(&source[mutants[0].span.clone()], "-");
        assert_eq!(&source[mutants[1].span.clone()], "+");
        assert_eq!(mutants[0].function, None);
        assert!(source[mutants[1].function.clone().unwrap()].starts_with("fn f()"));
        assert!(source[mutants[1].function.clone().unwrap()].ends_with("\n}"));
        assert!(mutants[1].is_opaque);
        assert_eq!(mutants[1].position(), "a.rs:3: replace + with -");
    }
}
