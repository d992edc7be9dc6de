//! [`Config`]: what a configuration such as `cupel.toml` sets. One row of [`KEYS`] per key, and those of
//! [`CHAT_SETTINGS`]; the reader, the JSON Schema, the template and the list of values follow from the rows.
//!
//! What comes before what is in `precedence.rs`.

use std::collections::BTreeMap;

use cupel::config::registry::{
    self, COUNT, Field, Literal, Need, PERCENT, POSITIVE, Record, Shape,
};
use cupel::config::{
    CHAT_SETTINGS, ChatSetting, ChatValue, Document, Format, Preset, preset, record_schema,
};
use cupel::{ChatSettings, ContextKind, RawValue, Shorten};

use crate::argument::Argument;
use crate::budget::Amount;
use crate::counter::CounterName;
use crate::error::{Configured, Error, Fault, Place};
use crate::options::Options;
use crate::policy::NamedPolicy;
use crate::source::Source;

/// What a configuration sets: limits, a policy, a counter, and how a chat is trimmed.
///
/// [`Options::config`] holds it. A value of a configuration applies where neither the caller nor the input states one.
///
/// ```
/// use cupel_app::{Config, Options, Source};
///
/// let text = "budget = \"8k\"\npolicy = \"agent\"\n\n[chat]\nmax_result = 2000\n";
/// let config = Config::read(&Source::new("cupel.toml", text), &mut |_| Ok(None))?;
/// let options = Options { config: Some(config.into()), ..Options::default() };
/// let values = options.effective();
/// assert_eq!(values[0].value.as_deref(), Some("8k"));
///
/// let typo = Source::new("cupel.toml", "buget = 8000\n");
/// let error = Config::read(&typo, &mut |_| Ok(None)).unwrap_err();
/// assert_eq!(error.code(), Some("InvalidConfig"));
/// assert_eq!(error.place.unwrap().line, 1);
/// # Ok::<(), cupel_app::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Config {
    name: String,
    /// The values; [`Options::config`] of them is empty.
    pub(crate) options: Options,
    /// The preset that `policy` names. It applies to the inputs that it is for.
    pub(crate) preset: Option<&'static Preset>,
    /// The place of every value that is given.
    places: BTreeMap<Argument, Place>,
}

/// Returns the policy document of a path, which is relative to the configuration; `None` for a name that is no path
/// and no file.
pub type LoadPolicy<'l> = dyn FnMut(&str) -> Result<Option<Source>, Error> + 'l;

/// A key at the top of a configuration.
struct Key {
    argument: Argument,
    /// The values that are accepted.
    shape: Shape,
    doc: &'static str,
    /// What holds without a value.
    default: &'static str,
    /// A value as TOML, for the template.
    example: &'static str,
    /// Reads the value into the options.
    read: fn(&mut Reader<'_, '_>, &Document<'_>) -> Result<(), Error>,
    /// Returns the value as a text, if it is given.
    shown: fn(&Options) -> Option<String>,
}

/// The arguments that a configuration sets. The others say what a single call asks for: a question, a position, a file.
/// None of these keys runs a command or names a file that is written, so that a configuration found above the working
/// directory changes windows and nothing else.
static KEYS: [Key; 9] = [
    Key {
        argument: Argument::Budget,
        shape: Shape::Amount(1),
        doc: "The token limit: 8000, \"8k\", or \"70%\" of the context window of the model.",
        default: "the model's window less the reserve",
        example: "\"8k\"",
        read: |it, part| it.amount(part, Argument::Budget, |options| &mut options.budget.budget),
        shown: |options| options.budget.budget.as_ref().map(ToString::to_string),
    },
    Key {
        argument: Argument::Target,
        shape: Shape::Amount(0),
        doc: "The tokens to aim for, at most the budget.",
        default: "the budget",
        example: "\"7k\"",
        read: |it, part| it.amount(part, Argument::Target, |options| &mut options.budget.target),
        shown: |options| options.budget.target.as_ref().map(ToString::to_string),
    },
    Key {
        argument: Argument::Reserve,
        shape: Shape::Amount(0),
        doc: "The tokens reserved for the answer of the model. A request that allows its answer more has more.",
        default: "4096, or none with a budget",
        example: "\"4k\"",
        read: |it, part| {
            it.amount(part, Argument::Reserve, |options| {
                &mut options.budget.reserve
            })
        },
        shown: |options| options.budget.reserve.as_ref().map(ToString::to_string),
    },
    Key {
        argument: Argument::Margin,
        shape: PERCENT,
        doc: "The safety margin for estimated counts, in percent of the budget that pinned items leave.",
        default: "0",
        example: "5",
        read: |it, part| {
            it.options.budget.margin = number(part);
            Ok(())
        },
        shown: |options| options.budget.margin.map(|margin| margin.to_string()),
    },
    Key {
        argument: Argument::Slot,
        shape: Shape::ByKind(&COUNT),
        doc: "Tokens reserved per kind of items.",
        default: "none",
        example: "{ Memory = 500 }",
        read: |it, part| {
            it.options.budget.slots = slots(part)?;
            Ok(())
        },
        shown: |options| {
            let slots = options.budget.slots.iter();
            let slots = slots.map(|(kind, tokens)| format!("{kind}={tokens}"));
            listed(slots)
        },
    },
    Key {
        argument: Argument::Model,
        shape: Shape::Label,
        doc: "The model of inputs that name none, for its context window and its encoding.",
        default: "none",
        example: "\"gpt-4o\"",
        read: |it, part| {
            it.options.budget.model = string(part);
            Ok(())
        },
        shown: |options| options.budget.model.clone(),
    },
    Key {
        argument: Argument::Policy,
        shape: Shape::PolicyOrPath,
        doc: "The policy: a preset (see `cupel policy list`), the path of a policy document, relative to this file, or a table with a policy. A preset applies to what it is for, chats or items.",
        default: "agent for chats, chat for items",
        example: "\"agent\"",
        read: |it, part| it.policy(part),
        shown: |options| options.policy.as_ref().map(|policy| policy.name.clone()),
    },
    Key {
        argument: Argument::Encoding,
        shape: Shape::Label,
        doc: "The encoding that counts tokens, such as o200k, or heuristic.",
        default: "the encoding of the model",
        example: "\"o200k\"",
        read: |it, part| {
            let name = string(part).unwrap_or_default();
            let counter = name.parse::<CounterName>();
            let counter = counter.map_err(|problem| Error::new(Fault::Encoding(problem)))?;
            it.options.counter.counter = Some(counter.counter());
            Ok(())
        },
        shown: |options| {
            let counter = options.counter.counter.as_ref();
            counter.map(|counter| counter.name().to_owned())
        },
    },
    Key {
        argument: Argument::Factor,
        shape: POSITIVE,
        doc: "The factor for counted tokens, for a provider that counts differently.",
        default: "1",
        example: "1.1",
        read: |it, part| {
            it.options.counter.factor = number(part);
            // A factor has an upper limit, too.
            it.options.counter.counter(None, None).map(drop)
        },
        shown: |options| options.counter.factor.map(|factor| factor.to_string()),
    },
];

/// The table of the settings for chats, as in a policy document.
const CHAT: &str = "chat";

/// The type of a configuration.
pub static CONFIG: Record = Record::new(
    "config",
    "What applies where neither the command line nor the input states something.",
    &FIELDS,
);

static FIELDS: [Field; KEYS.len() + 2] = {
    let schema = "The JSON Schema of this document, for editors.";
    let chat = "How a chat is trimmed, whatever the policy says; the table of a policy document.";
    let chat = Field::optional(CHAT, Shape::Record(&registry::CHAT), chat);
    let mut fields = [chat; KEYS.len() + 2];
    fields[0] = Field::optional("$schema", Shape::String, schema);
    // A `for` loop is not possible in a constant.
    let mut row = 0;
    while row < KEYS.len() {
        let key = &KEYS[row];
        fields[row + 1] = Field::optional(key.argument.name(), key.shape, key.doc);
        row += 1;
    }
    fields
};

/// Returns the JSON Schema (draft 2020-12) of a configuration: `schema/config.schema.json`.
///
/// ```
/// let schema: serde_json::Value = serde_json::from_str(&cupel_app::config_schema())?;
/// assert!(schema["$defs"]["config"]["properties"]["budget"].is_object());
/// # Ok::<(), serde_json::Error>(())
/// ```
pub fn config_schema() -> String {
    record_schema("Cupel configuration", &CONFIG)
}

impl Config {
    /// Reads a configuration. The extension of its name tells JSON and YAML apart; anything else is TOML.
    ///
    /// # Errors
    ///
    /// The first of the [`faults`](Self::faults).
    pub fn read(source: &Source, load: &mut LoadPolicy<'_>) -> Result<Self, Error> {
        let (config, faults) = Self::checked(source, load);
        faults.into_iter().next().map_or(Ok(config), Err)
    }

    /// Returns everything that is wrong with a configuration and the policy document that it names, each with its place
    /// and the code `InvalidConfig`.
    pub fn faults(source: &Source, load: &mut LoadPolicy<'_>) -> Vec<Error> {
        Self::checked(source, load).1
    }

    fn checked(source: &Source, load: &mut LoadPolicy<'_>) -> (Self, Vec<Error>) {
        let mut config = Self {
            name: source.name.clone(),
            options: Options::default(),
            preset: None,
            places: BTreeMap::new(),
        };
        let format = Format::of_path(&source.name).unwrap_or(Format::Toml);
        // A file without keys is valid in every format.
        if source.text.trim().is_empty() {
            return (config, Vec::new());
        }
        let document = match Document::parse(&source.text, format) {
            Ok(document) => document,
            Err(error) => return (config, vec![invalid(source.fault(error))]),
        };
        let mut faults: Vec<Error> = document
            .faults(&CONFIG)
            .into_iter()
            .map(|fault| source.fault(fault))
            .collect();
        let mut reader = Reader {
            name: &source.name,
            load,
            options: Options::default(),
            preset: None,
        };
        // The values that have the right type, so that every fault is found at once.
        let is_faulty = |faults: &[Error], path: &str| {
            let mut places = faults.iter().filter_map(|fault| fault.place.as_ref());
            places.any(|place| place.path == path || place.path.starts_with(&format!("{path}.")))
        };
        for key in &KEYS {
            let name = key.argument.name();
            let Some(part) = document.part(name) else {
                continue;
            };
            let place = place_of(source, &part, name);
            if !is_faulty(&faults, name) {
                let read = (key.read)(&mut reader, &part);
                faults.extend(read.err().map(|error| error.or_at(|| place.clone())));
            }
            config.places.insert(key.argument, place);
        }
        if let Some(part) = document.part(CHAT) {
            for setting in &CHAT_SETTINGS {
                let Some(value) = part.part(setting.name()) else {
                    continue;
                };
                let path = format!("{CHAT}.{}", setting.name());
                let place = place_of(source, &value, &path);
                config.places.insert(Argument::Chat(setting.name()), place);
            }
            if !is_faulty(&faults, CHAT)
                && let Ok(mut settings) = part.chat_settings()
            {
                for setting in CHAT_SETTINGS
                    .iter()
                    .filter(|it| part.part(it.name()).is_some())
                {
                    let value = (setting.value)(&mut settings);
                    reader.options.chat.value(setting).copy_from(value);
                }
            }
        }
        config.options = reader.options;
        config.preset = reader.preset;
        // What depends on several values is checked once each of them is right.
        if faults.is_empty() {
            faults.extend(config.conflicts());
        }
        faults.sort_by_key(|fault| fault.place.as_ref().map(|place| (place.line, place.column)));
        (config, faults.into_iter().map(invalid).collect())
    }

    /// Returns what no input can be run with: an amount above the budget, a setting that the policy does not follow.
    fn conflicts(&self) -> Vec<Error> {
        let mut faults = Vec::new();
        let budget = &self.options.budget;
        if let Some(max) = budget.budget.as_ref().and_then(Amount::absolute) {
            for (argument, amount) in [
                (Argument::Target, &budget.target),
                (Argument::Reserve, &budget.reserve),
            ] {
                let tokens = amount.as_ref().and_then(Amount::absolute);
                if let Some(tokens) = tokens.filter(|tokens| *tokens > max) {
                    faults.push(Error::new(Fault::AboveBudget(argument, tokens, max)));
                }
            }
        }
        // A preset for items is not used for chats.
        if self.preset.is_none_or(Preset::is_for_chats)
            && let Err(error) = self.options.chat_policy(NamedPolicy::for_chats)
        {
            faults.push(error);
        }
        let at_value = |error: Error| match error.argument().and_then(|it| self.place(it)) {
            Some(place) => error.at(place.clone()),
            None => error,
        };
        faults.into_iter().map(at_value).collect()
    }

    /// Returns the name: the path of a file as it is shown.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns whether it sets nothing.
    pub fn is_empty(&self) -> bool {
        self.places.is_empty()
    }

    /// Returns the place of a value, if it is given.
    pub fn place(&self, argument: Argument) -> Option<&Place> {
        self.places.get(&argument)
    }

    /// Returns a configuration as TOML with every key and its documentation. The given values are set, the others are
    /// comments with examples.
    ///
    /// ```
    /// use cupel_app::{Argument, Config};
    ///
    /// let text = Config::template(&[(Argument::Budget, "8k")]);
    /// assert!(text.contains("\nbudget = \"8k\"\n"));
    /// assert!(text.contains("\n#policy = \"agent\"\n"));
    /// ```
    pub fn template(values: &[(Argument, &str)]) -> String {
        let mut text = comment(
            "The configuration of cupel for this directory and those below it. `cupel config show` shows what applies, `cupel config check` finds mistakes. What the command line or a request states comes before this file, and what it leaves out has its default.",
        );
        text.push('\n');
        for key in &KEYS {
            let name = key.argument.name();
            let default = format!("Default: {}.", key.default);
            let given = values
                .iter()
                .find(|(argument, _)| *argument == key.argument);
            let line = match given {
                // A string of Rust in quotes may have escapes that TOML does not have; that of JSON has none.
                Some((_, value)) => format!("{name} = {}", serde_json::json!(value)),
                None => format!("#{name} = {}", key.example),
            };
            let parts = ["", &comment(key.doc), &comment(&default), &line];
            text.push_str(&parts.join("\n"));
            text.push('\n');
        }
        let about = "How a chat is trimmed, whatever the policy says. Default: as the policy says.";
        let heading = format!("[{CHAT}]");
        text.push_str(&["", &comment(about), &heading, ""].join("\n"));
        for setting in &CHAT_SETTINGS {
            let line = format!("#{} = {}", setting.name(), example(setting));
            text.push_str(&["", &comment(setting.field.doc), &line, ""].join("\n"));
        }
        text
    }
}

/// Marks an error as one of a configuration.
fn invalid(error: Error) -> Error {
    error.configured(Configured {
        name: None,
        arguments: Argument::all().collect(),
    })
}

fn place_of(source: &Source, part: &Document<'_>, path: &str) -> Place {
    let position = part.position();
    source.place(position.line, position.column, path.to_owned())
}

/// Returns a text as comments of at most 80 columns.
fn comment(text: &str) -> String {
    const COLUMNS: usize = 80;
    let mut lines = vec![String::from("#")];
    for word in text.split(' ') {
        let is_full = |line: &str| line.chars().count() + 1 + word.chars().count() > COLUMNS;
        match lines.last_mut().filter(|line| !is_full(line.as_str())) {
            Some(line) => line.extend([" ", word]),
            None => lines.push(format!("# {word}")),
        }
    }
    lines.join("\n")
}

/// Returns a value of a setting for chats, as TOML: its default, or one of its type.
fn example(setting: &ChatSetting) -> String {
    match (
        setting.field.need,
        (setting.value)(&mut ChatSettings::default()),
    ) {
        (Need::Default(Literal::Bool(value)), _) => value.to_string(),
        (_, ChatValue::Switch(_)) => "true".to_owned(),
        (_, ChatValue::Tokens(_)) => "2000".to_owned(),
        (_, ChatValue::Text(_)) => "\"[{n} earlier messages omitted]\"".to_owned(),
        (_, ChatValue::Messages(_)) => "[\"role:system\"]".to_owned(),
        (_, ChatValue::Shorten(_)) => format!("{:?}", Shorten::default().name()),
        (_, ChatValue::Tools(_)) => "{ todo_write = \"keep\" }".to_owned(),
    }
}

/// Reads values into options.
struct Reader<'r, 'l> {
    /// The name of the configuration.
    name: &'r str,
    load: &'r mut LoadPolicy<'l>,
    options: Options,
    preset: Option<&'static Preset>,
}

impl Reader<'_, '_> {
    fn amount(
        &mut self,
        part: &Document<'_>,
        argument: Argument,
        field: fn(&mut Options) -> &mut Option<Amount>,
    ) -> Result<(), Error> {
        let amount = match part.value() {
            RawValue::Text(text) => Amount::from(text),
            _ => Amount::from(number(part).unwrap_or_default().to_string()),
        };
        amount.check(argument)?;
        *field(&mut self.options) = Some(amount);
        Ok(())
    }

    fn policy(&mut self, part: &Document<'_>) -> Result<(), Error> {
        let policy = match string(part) {
            Some(name) => {
                self.preset = preset(&name).ok();
                NamedPolicy::find(&name, &mut self.load)?
            }
            // The faults of a policy are found before.
            None => {
                let config = part.policy_config();
                let config = config.map_err(|error| Error::new(Fault::Document(error)))?;
                let name = config.name.clone();
                let name = name.unwrap_or_else(|| format!("of {}", self.name));
                NamedPolicy::of_config(name, &config)?
            }
        };
        self.options.policy = Some(policy);
        Ok(())
    }
}

fn string(part: &Document<'_>) -> Option<String> {
    match part.value() {
        RawValue::Text(text) => Some(text),
        _ => None,
    }
}

fn number(part: &Document<'_>) -> Option<f64> {
    match part.value() {
        RawValue::Integer(number) => Some(number as f64),
        RawValue::Float(number) => Some(number),
        _ => None,
    }
}

fn slots(part: &Document<'_>) -> Result<Vec<(ContextKind, i64)>, Error> {
    let RawValue::Map(entries) = part.value() else {
        return Ok(Vec::new());
    };
    let slot = |(kind, _): (String, RawValue)| {
        #[expect(clippy::cast_possible_truncation, reason = "an integer in range")]
        let tokens = part
            .part(&kind)
            .and_then(|it| number(&it))
            .unwrap_or_default() as i64;
        Ok((ContextKind::new(kind)?, tokens))
    };
    entries.into_iter().map(slot).collect()
}

fn listed(texts: impl Iterator<Item = String>) -> Option<String> {
    let texts: Vec<String> = texts.collect();
    (!texts.is_empty()).then(|| texts.join(", "))
}

/// A value of the options, and where it is from.
#[derive(Debug, Clone, PartialEq)]
pub struct EffectiveValue {
    /// What it sets.
    pub argument: Argument,
    /// The value as a text; `None` for the default.
    pub value: Option<String>,
    /// What holds without a value.
    pub default: String,
    /// Where it is from.
    pub origin: ValueOrigin,
}

/// Where a value is from.
#[derive(Debug, Clone, PartialEq)]
pub enum ValueOrigin {
    /// The caller.
    Caller,
    /// The configuration.
    Config(Place),
    /// Nothing states it.
    Default,
}

impl Options {
    /// Returns every value that a configuration can set, as it holds for an input that states nothing.
    pub fn effective(&self) -> Vec<EffectiveValue> {
        let resolved = self.resolved(&crate::precedence::Stated::default());
        let origin = |argument: Argument, is_given: bool| match &self.config {
            Some(config) if resolved.used.contains(&argument) => {
                let place = config.place(argument).cloned();
                ValueOrigin::Config(place.unwrap_or_default())
            }
            _ if is_given => ValueOrigin::Caller,
            _ => ValueOrigin::Default,
        };
        let keys = KEYS.iter().map(|key| {
            let value = (key.shown)(&resolved.options);
            EffectiveValue {
                argument: key.argument,
                origin: origin(key.argument, value.is_some()),
                value,
                default: key.default.to_owned(),
            }
        });
        let mut settings = resolved.options.chat.settings.clone();
        let given: Vec<&str> = resolved
            .options
            .chat
            .given()
            .map(ChatSetting::name)
            .collect();
        let chat = CHAT_SETTINGS.iter().map(|setting| {
            let is_given = given.contains(&setting.name());
            let value = shown((setting.value)(&mut settings));
            let argument = Argument::Chat(setting.name());
            EffectiveValue {
                argument,
                value: is_given.then_some(value),
                default: "as the policy says".to_owned(),
                origin: origin(argument, is_given),
            }
        });
        keys.chain(chat).collect()
    }
}

/// Returns the value of a setting for chats as a text.
fn shown(value: ChatValue<'_>) -> String {
    match value {
        ChatValue::Switch(value) => value.to_string(),
        ChatValue::Tokens(value) => value.map_or_else(|| "none".to_owned(), |it| it.to_string()),
        ChatValue::Text(value) => value.clone().unwrap_or_default(),
        ChatValue::Messages(value) => value.join(","),
        ChatValue::Shorten(value) => value.name().to_owned(),
        ChatValue::Tools(value) => {
            let tools = value.iter();
            let tools = tools.map(|(tool, how)| format!("{tool}={}", how.name()));
            listed(tools).unwrap_or_default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a single call asks for: a question, a position, a file, a command, the input.
    const OF_ONE_CALL: [Argument; 15] = [
        Argument::Policies,
        Argument::Query,
        Argument::Shape,
        Argument::At,
        Argument::State,
        Argument::Counter,
        Argument::Summarize,
        Argument::SummaryTokens,
        Argument::Item,
        Argument::From,
        Argument::To,
        Argument::Ceiling,
        Argument::Slack,
        Argument::Scorer,
        Argument::Top,
    ];

    #[test]
    fn every_argument_is_a_key_or_of_one_call() {
        for argument in Argument::all() {
            let is_key = KEYS.iter().any(|key| key.argument == argument);
            let is_setting = matches!(argument, Argument::Chat(_));
            let is_of_one_call = OF_ONE_CALL.contains(&argument);
            assert_eq!(
                u8::from(is_key) + u8::from(is_setting) + u8::from(is_of_one_call),
                1,
                "{argument}: add a row to KEYS, or say that it is of one call"
            );
        }
    }
}
