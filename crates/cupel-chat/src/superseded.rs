//! Results that a newer one makes redundant or wrong.
//!
//! A newer result of the same call, by name and arguments, supersedes an older one if both are equal, or if the call
//! reads a file that was written in between:
//!
//! ```text
//! read a.rs  x    read a.rs  x                      superseded: the same again
//! read a.rs  x    edit a.rs    read a.rs  y         superseded: x is no longer true
//! read a.rs  x    read a.rs  y                      not: nobody knows why they differ
//! next_page  x    next_page  y                      not: another page
//! ```
//!
//! The setting [`tool_results`](cupel::ChatSettings::tool_results) says more about single tools, see [`Treatments`].

use std::collections::{BTreeMap, HashMap};

use cupel::{ChatSettings, ToolResults};
use serde_json::Value;

use crate::chat::{Chat, ToolCall};

/// The words in the names of tools that write what another one reads.
const WRITES: [&str; 13] = [
    "append", "apply", "create", "delete", "edit", "insert", "move", "patch", "remove", "replace",
    "save", "update", "write",
];

/// The arguments that name what a tool reads or writes.
const PATHS: [&str; 7] = [
    "path",
    "file_path",
    "filename",
    "file",
    "uri",
    "url",
    "notebook_path",
];

/// Results of which the newest supersedes the others: by position, the name of the set.
pub(crate) type Repeated = Vec<(usize, String)>;

/// The results of one call, by name and arguments.
#[derive(Default)]
struct Results {
    /// The messages with one.
    messages: Vec<usize>,
    /// What each of the calls of such a message reads.
    paths: Vec<Vec<String>>,
    /// Whether the newest supersedes the others in any case.
    is_by_path: bool,
}

/// How the results of each message are treated, by position; empty if the policy has no setting for a tool.
#[derive(Debug, Default)]
pub(crate) struct Treatments(Vec<Option<ToolResults>>);

impl Treatments {
    pub(crate) fn of(&self, index: usize) -> Option<ToolResults> {
        self.0.get(index).copied().flatten()
    }
}

/// Returns how a message with the results of some calls is treated.
///
/// A message is shortened and dropped as a whole, so what spares one result spares the message, and what gives one up
/// is followed only if all of them have the same setting.
fn treatment(settings: &ChatSettings, calls: &[&ToolCall<'_>]) -> Option<ToolResults> {
    let of_calls = || calls.iter().map(|call| settings.results_of(call.name));
    let spares = [ToolResults::Keep, ToolResults::Never];
    let spared = spares
        .into_iter()
        .find(|it| of_calls().any(|of| of == Some(*it)));
    let first = of_calls().next().flatten();
    spared.or_else(|| first.filter(|_| of_calls().all(|of| of == first)))
}

impl Chat {
    /// Calls a function with each message that has results whose calls are known, and with these calls.
    fn for_each_result<'c>(&'c self, mut visit: impl FnMut(usize, &[&ToolCall<'c>])) {
        let mut called: HashMap<&str, ToolCall<'_>> = HashMap::new();
        for message in self.messages() {
            called.extend(message.calls().map(|call| (call.id, call)));
            let calls = message.results().iter().map(|id| called.get(&**id));
            let calls: Option<Vec<&ToolCall<'_>>> = calls.collect();
            if let Some(calls) = calls.filter(|calls| !calls.is_empty()) {
                visit(message.index(), &calls);
            }
        }
    }

    /// Returns how the results of each message are treated.
    pub(crate) fn treatments(&self, settings: &ChatSettings) -> Treatments {
        let mut treatments = Treatments::default();
        if !settings.tool_results.is_empty() {
            treatments.0 = vec![None; self.len()];
            self.for_each_result(|index, calls| treatments.0[index] = treatment(settings, calls));
        }
        treatments
    }

    /// Returns the messages with results of which a newer one supersedes the others.
    pub(crate) fn repeated_results(&self, treatments: &Treatments) -> Repeated {
        let mut results: BTreeMap<String, Results> = BTreeMap::new();
        self.for_each_result(|index, calls| {
            let treatment = treatments.of(index);
            if matches!(treatment, Some(ToolResults::Keep | ToolResults::Never)) {
                return;
            }
            let is_by_path = treatment == Some(ToolResults::ByPath);
            let name = |call: &&ToolCall<'_>| {
                let path = is_by_path.then(|| by_path(call)).flatten();
                path.unwrap_or_else(|| format!("{}({})", call.name, call.arguments))
            };
            let names: Vec<String> = calls.iter().map(name).collect();
            let results = results.entry(names.join("\n")).or_default();
            results.messages.push(index);
            results.is_by_path = is_by_path;
            // Most calls occur once, and their arguments are not read.
            if results.messages.len() == 2 && !is_by_path {
                results.paths = calls.iter().map(|call| paths(call.arguments)).collect();
            }
        });
        results.retain(|_, results| results.messages.len() > 1);
        if results.is_empty() {
            return Vec::new();
        }
        let writes = self.writes();
        let mut repeated = Vec::new();
        for (name, results) in &results {
            let Results {
                messages,
                paths,
                is_by_path,
            } = results;
            let mut sets: Vec<Vec<usize>> = Vec::new();
            for &message in messages {
                let set = sets.last_mut().filter(|set| {
                    let older = set[set.len() - 1];
                    *is_by_path
                        || self.messages[older].parts == self.messages[message].parts
                        || is_written(paths, &writes, older, message)
                });
                match set {
                    Some(set) => set.push(message),
                    None => sets.push(vec![message]),
                }
            }
            for (number, set) in sets.iter().enumerate().filter(|(_, set)| set.len() > 1) {
                let name = match number {
                    0 => name.clone(),
                    _ => format!("{name} {number}"),
                };
                repeated.extend(set.iter().map(|&message| (message, name.clone())));
            }
        }
        repeated.sort_unstable();
        repeated
    }

    /// Returns, by what they write, the messages with calls of tools that write.
    fn writes(&self) -> HashMap<String, Vec<usize>> {
        let mut writes: HashMap<String, Vec<usize>> = HashMap::new();
        for message in self.messages() {
            for call in message.calls() {
                let name = call.name.to_ascii_lowercase();
                if WRITES.iter().any(|word| name.contains(word)) {
                    for path in paths(call.arguments) {
                        writes.entry(path).or_default().push(message.index());
                    }
                }
            }
        }
        writes
    }
}

/// Returns the tool and the paths of a call, if it has one.
fn by_path(call: &ToolCall<'_>) -> Option<String> {
    let paths = paths(call.arguments);
    (!paths.is_empty()).then(|| format!("{} {}", call.name, paths.join("\n")))
}

/// Returns whether all that some calls read was written between two messages.
fn is_written(
    paths: &[Vec<String>],
    writes: &HashMap<String, Vec<usize>>,
    older: usize,
    newer: usize,
) -> bool {
    let is_between = |message: &usize| (older + 1..newer).contains(message);
    let is_written = |path: &String| {
        let writes = writes.get(path).into_iter().flatten();
        writes.copied().any(|message| is_between(&message))
    };
    paths.iter().all(|paths| paths.iter().any(is_written))
}

/// Returns the paths in the arguments of a call.
fn paths(arguments: &str) -> Vec<String> {
    let arguments: Value = serde_json::from_str(arguments).unwrap_or_default();
    let paths = PATHS.iter().filter_map(|name| arguments[*name].as_str());
    paths.map(str::to_owned).collect()
}
