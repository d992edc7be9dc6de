//! Mutant schemata (Untch, Offutt and Harrold 1993): all mutants of a function in one body, switched at
//! run time.
//!
//! A body becomes `match` over the active mutant with one arm per mutant; the last arm is the original.
//! Constants and functions that return an opaque type have no schemata; their mutants are built alone.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::ops::Range;

use super::list::Mutant;
use crate::{read, root};

pub(super) struct Schemata {
    files: BTreeMap<String, File>,
}

struct File {
    source: String,
    functions: Vec<Function>,
}

struct Function {
    /// Its number in the trace.
    id: usize,
    /// The bytes of the body, with its braces.
    body: Range<usize>,
    mutants: Vec<Mutant>,
}

/// The bytes of a rewritten file that belong to a function.
pub(super) struct Ranges {
    function: usize,
    bytes: Range<usize>,
    mutants: Vec<(u32, Range<usize>)>,
}

/// The part of a rewritten file that a compiler error is in.
pub(super) enum Place {
    Mutant(u32),
    /// The original of a function, or the switch.
    Function(usize),
}

impl Schemata {
    pub(super) fn new(mutants: &[Mutant]) -> Result<Self, String> {
        let mut files = BTreeMap::new();
        let mut functions = 0;
        for mutant in mutants {
            if !files.contains_key(&mutant.file) {
                let source = read(&root().join(&mutant.file))?;
                files.insert(
                    mutant.file.clone(),
                    File {
                        source,
                        functions: Vec::new(),
                    },
                );
            }
        }
        for (name, file) in &mut files {
            let mutants: Vec<&Mutant> = mutants
                .iter()
                .filter(|mutant| mutant.file == *name && !mutant.is_opaque)
                .collect();
            for span in outermost(mutants.iter().filter_map(|mutant| mutant.function.clone())) {
                let open = span.start + opening_brace(&file.source[span.clone()])?;
                let inside = mutants.iter().filter(|mutant| {
                    open < mutant.span.start
                        && mutant.span.end < span.end
                        && mutant.function.is_some()
                });
                file.functions.push(Function {
                    id: functions,
                    body: open..span.end,
                    mutants: inside.map(|mutant| (*mutant).clone()).collect(),
                });
                functions += 1;
            }
        }
        Ok(Self { files })
    }

    /// Returns the function whose schemata have the mutant.
    pub(super) fn function_of(&self, mutant: &Mutant) -> Option<usize> {
        let functions = self.files.get(&mutant.file)?.functions.iter();
        let mut functions =
            functions.filter(|function| function.mutants.iter().any(|other| other.id == mutant.id));
        functions.next().map(|function| function.id)
    }

    pub(super) fn files(&self) -> impl Iterator<Item = &str> {
        self.files.keys().map(String::as_str)
    }

    /// Removes mutants that do not compile, and functions that cannot be switched.
    pub(super) fn remove(&mut self, mutants: &BTreeSet<u32>, functions: &BTreeSet<usize>) {
        for file in self.files.values_mut() {
            file.functions
                .retain(|function| !functions.contains(&function.id));
            for function in &mut file.functions {
                function
                    .mutants
                    .retain(|mutant| !mutants.contains(&mutant.id));
            }
        }
    }

    /// Returns the source of a file.
    pub(super) fn original(&self, name: &str) -> &str {
        &self.files[name].source
    }

    /// Returns the source of a file with one mutant, which needs a build of its own.
    pub(super) fn with_mutant(&self, mutant: &Mutant) -> String {
        let source = self.original(&mutant.file);
        mutated(source, 0..source.len(), mutant)
    }

    /// Returns the rewritten source of a file.
    pub(super) fn source(&self, name: &str) -> (String, Vec<Ranges>) {
        let file = &self.files[name];
        let mut text = String::with_capacity(16 * file.source.len());
        let mut all = Vec::new();
        let mut at = 0;
        for function in &file.functions {
            text.push_str(&file.source[at..function.body.start]);
            let first = text.len();
            let id = function.id;
            let _ = writeln!(text, "{{ match crate::schemata::active({id}) {{");
            let mut ranges = Vec::new();
            for mutant in &function.mutants {
                let from = text.len();
                let body = mutated(&file.source, function.body.clone(), mutant);
                let _ = writeln!(text, "{} => {body}", mutant.id);
                ranges.push((mutant.id, from..text.len()));
            }
            text.push_str("_ => ");
            text.push_str(&file.source[function.body.clone()]);
            text.push_str("\n} }");
            all.push(Ranges {
                function: function.id,
                bytes: first..text.len(),
                mutants: ranges,
            });
            at = function.body.end;
        }
        text.push_str(&file.source[at..]);
        (text, all)
    }
}

impl Ranges {
    /// Returns the part of the file that has a byte.
    pub(super) fn find(all: &[Self], byte: usize) -> Option<Place> {
        let function = all.iter().find(|function| function.bytes.contains(&byte))?;
        let mut mutants = function.mutants.iter();
        let mutant = mutants.find(|(_, bytes)| bytes.contains(&byte));
        Some(
            mutant.map_or(Place::Function(function.function), |(id, _)| {
                Place::Mutant(*id)
            }),
        )
    }
}

/// The module that every crate with schemata gets. `CUPEL_MUTANT` is the active mutant; `trace` appends
/// the number of each function that is reached to the file `CUPEL_REACHED`.
pub(super) const MODULE: &str = r#"
mod schemata {
    use std::io::Write;
    use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

    const UNKNOWN: u32 = u32::MAX;
    const TRACE: u32 = u32::MAX - 1;
    static ACTIVE: AtomicU32 = AtomicU32::new(UNKNOWN);
    static REACHED: [AtomicBool; 1 << 14] = [const { AtomicBool::new(false) }; 1 << 14];

    #[inline(always)]
    pub(crate) fn active(function: usize) -> u32 {
        let active = ACTIVE.load(Ordering::Relaxed);
        if active < TRACE { active } else { trace(active, function) }
    }

    fn trace(active: u32, function: usize) -> u32 {
        if active == UNKNOWN {
            let active = match std::env::var("CUPEL_MUTANT").as_deref() {
                Ok("trace") => TRACE,
                Ok(id) => id.parse().unwrap(),
                Err(_) => 0,
            };
            ACTIVE.store(active, Ordering::Relaxed);
            return self::active(function);
        }
        if !REACHED[function].load(Ordering::Relaxed) && !REACHED[function].swap(true, Ordering::Relaxed) {
            let path = std::env::var("CUPEL_REACHED").unwrap();
            let mut file = std::fs::OpenOptions::new().append(true).create(true).open(path).unwrap();
            writeln!(file, "{function}").unwrap();
        }
        0
    }
}
"#;

/// Returns the spans that no other span contains, in order.
fn outermost(spans: impl Iterator<Item = Range<usize>>) -> Vec<Range<usize>> {
    let mut spans: Vec<Range<usize>> = spans.collect();
    spans.sort_by_key(|span| (span.start, std::cmp::Reverse(span.end)));
    let mut end = 0;
    spans.retain(|span| {
        let is_outermost = span.end > end;
        end = end.max(span.end);
        is_outermost
    });
    spans
}

/// Returns the offset of the brace that opens the body of a function, after its attributes and comments.
fn opening_brace(function: &str) -> Result<usize, String> {
    let mut depth = 0_i32;
    let mut start = 0;
    for line in function.split_inclusive('\n') {
        let code = line.split("//").next().unwrap_or_default();
        for (offset, byte) in code.bytes().enumerate() {
            match byte {
                b'(' | b'[' => depth += 1,
                b')' | b']' => depth -= 1,
                b'{' if depth == 0 => return Ok(start + offset),
                _ => {}
            }
        }
        start += line.len();
    }
    Err(format!("no body: {function}"))
}

/// Returns a part of the source with the mutant in it.
fn mutated(source: &str, part: Range<usize>, mutant: &Mutant) -> String {
    let (before, after) = (part.start..mutant.span.start, mutant.span.end..part.end);
    format!(
        "{}{}{}",
        &source[before], mutant.replacement, &source[after]
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOURCE: &str = "const A: u8 = 1 + 2;\nfn f(a: [u8; 2]) -> u8 {\n    a[0] + a[1]\n}\n";

    fn mutant(id: u32, line: usize, replacement: &str) -> Mutant {
        let start = SOURCE.match_indices('+').nth(line).unwrap().0;
        let function = SOURCE.find("fn").unwrap()..SOURCE.len() - 1;
        Mutant {
            id,
            file: "a.rs".to_owned(),
            span: start..start + 1,
            replacement: replacement.to_owned(),
            function: (line == 1).then_some(function),
            ..Mutant::default()
        }
    }

    fn schemata() -> Schemata {
        let functions = vec![Function {
            id: 7,
            body: SOURCE.find('{').unwrap()..SOURCE.len() - 1,
            mutants: vec![mutant(2, 1, "-"), mutant(3, 1, "*")],
        }];
        let source = SOURCE.to_owned();
        Schemata {
            files: BTreeMap::from([("a.rs".to_owned(), File { source, functions })]),
        }
    }

    #[test]
    fn a_body_has_one_arm_per_mutant_and_the_original_last() {
        let (source, ranges) = schemata().source("a.rs");
        assert_eq!(
            source,
            "const A: u8 = 1 + 2;\nfn f(a: [u8; 2]) -> u8 { match crate::schemata::active(7) {\n\
             2 => {\n    a[0] - a[1]\n}\n3 => {\n    a[0] * a[1]\n}\n_ => {\n    a[0] + a[1]\n}\n} }\n"
        );
        let place = |text: &str| Ranges::find(&ranges, source.find(text).unwrap());
        assert!(place("const").is_none());
        assert!(matches!(place("match"), Some(Place::Function(7))));
        assert!(matches!(place("a[0] - "), Some(Place::Mutant(2))));
        assert!(matches!(place("a[0] * "), Some(Place::Mutant(3))));
        assert!(matches!(place("a[0] + "), Some(Place::Function(7))));
    }

    #[test]
    fn a_removed_mutant_has_no_arm() {
        let mut schemata = schemata();
        schemata.remove(&BTreeSet::from([3]), &BTreeSet::new());
        assert!(!schemata.source("a.rs").0.contains("3 =>"));
        assert_eq!(schemata.function_of(&mutant(2, 1, "-")), Some(7));
        assert_eq!(schemata.function_of(&mutant(3, 1, "*")), None);
        schemata.remove(&BTreeSet::new(), &BTreeSet::from([7]));
        assert_eq!(schemata.source("a.rs").0, SOURCE);
    }

    #[test]
    fn a_constant_is_mutated_in_a_build_of_its_own() {
        let source = schemata().with_mutant(&mutant(1, 0, "*"));
        assert_eq!(source, SOURCE.replace("1 + 2", "1 * 2"));
    }

    #[test]
    fn a_body_starts_after_comments_and_attributes() {
        let function = "/// Like { and (.\n#[must_use = \"{\"]\nfn f([a]: [u8; { 1 }]) -> u8 { a }";
        let body = opening_brace(function).map(|offset| &function[offset..]);
        assert_eq!(body, Ok("{ a }"));
    }

    #[test]
    fn the_outermost_spans_remain() {
        assert_eq!(
            outermost([4..6, 0..3, 1..2, 0..3, 3..8].into_iter()),
            [0..3, 3..8]
        );
    }
}
