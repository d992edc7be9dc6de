//! Keyword arguments as [`Options`]: one row per option in [`ROWS`], those of [`CHAT_SETTINGS`], and the conversions
//! of values.

use std::collections::BTreeMap;
use std::sync::Arc;

use cupel::config::{CHAT_SETTINGS, ChatValue, removed};
use cupel::{ContextKind, Shorten, ToolResults};
use cupel_app::{
    Amount, Argument, Arguments, CounterName, Error, Fault as AppFault, Options, SUMMARY_TOKENS,
};
use cupel_chat::{BudgetProblem, Shape, parse_budget};
use pyo3::exceptions::PyTypeError;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyBytes, PyDict, PyFloat, PyInt, PyMapping, PyString};

use crate::counter::PyCounter;
use crate::dialect::keyword;
use crate::error::Fault;
use crate::json::{described, text};
use crate::{budget, callback, error, policy};

/// What a call asks for.
#[derive(Default)]
pub(crate) struct Asked {
    pub(crate) options: Options,
    pub(crate) arguments: Arguments,
    /// The counter of the caller, which is also that of the options.
    pub(crate) counter: Option<Arc<PyCounter>>,
    /// What summarizes dropped messages.
    pub(crate) summarize: Option<Py<PyAny>>,
}

impl Asked {
    /// Returns the error of a failed call: what a callable of the caller raised, if that ended it.
    pub(crate) fn error(&self, error: Error) -> PyErr {
        self.check().err().unwrap_or_else(|| error::raise(error))
    }

    /// Returns what the counter of the caller raised, if it did.
    pub(crate) fn check(&self) -> PyResult<()> {
        let counter = self.counter.as_ref();
        counter
            .and_then(|counter| counter.take_raised())
            .map_or(Ok(()), Err)
    }
}

/// Reads a value into its field. The name is that of errors.
type Read = fn(&mut Asked, &Bound<'_, PyAny>, &str) -> PyResult<()>;

/// The arguments but the settings of chats. A later row takes precedence over an earlier one, such as `reserve=` over
/// that of a budget.
const ROWS: &[(Argument, Read)] = &[
    (Argument::Budget, |it, value, _| {
        it.options.budget = budget::limits(value)?;
        Ok(())
    }),
    (Argument::Target, |it, value, name| {
        set(&mut it.options.budget.target, amount(value, name))
    }),
    (Argument::Reserve, |it, value, name| {
        set(&mut it.options.budget.reserve, amount(value, name))
    }),
    (Argument::Margin, |it, value, name| {
        set(&mut it.options.budget.margin, number(value, name))
    }),
    (Argument::Slot, |it, value, name| {
        it.options.budget.slots = slots(value, name)?;
        Ok(())
    }),
    (Argument::Model, |it, value, name| {
        set(&mut it.options.budget.model, string(value, name))
    }),
    (Argument::Policy, |it, value, _| {
        set(&mut it.options.policy, policy::read(value))
    }),
    (Argument::Query, |it, value, name| {
        set(&mut it.options.query, string(value, name))
    }),
    (Argument::Shape, |it, value, name| {
        set(&mut it.options.read.shape, shape(value, name))
    }),
    (Argument::At, |it, value, name| {
        set(&mut it.options.read.at, string(value, name))
    }),
    (Argument::Encoding, |it, value, name| {
        let counter = counter_name(value, name).map(CounterName::counter);
        set(&mut it.options.counter.counter, counter)
    }),
    (Argument::Counter, |it, value, name| {
        if it.options.counter.counter.is_some() {
            let fault = AppFault::Exclude(Argument::Counter, Argument::Encoding);
            return Err(error::raise(Error::from(fault)));
        }
        let counter = PyCounter::read(value, name)?;
        it.counter = Some(Arc::clone(&counter));
        it.options.counter.counter = Some(counter);
        Ok(())
    }),
    (Argument::Summarize, |it, value, name| {
        if !value.is_callable() {
            return Err(unexpected(
                value,
                name,
                "a function from messages to a text",
            ));
        }
        it.summarize = Some(value.clone().unbind());
        it.options.summary_tokens = Some(SUMMARY_TOKENS);
        Ok(())
    }),
    (Argument::SummaryTokens, |it, value, name| {
        if it.summarize.is_none() {
            let fault = Fault::new(name, "has no effect without summarize");
            return Err(fault.help("add summarize=, or remove it").into());
        }
        set(&mut it.options.summary_tokens, tokens(value, name))
    }),
    (Argument::Factor, |it, value, name| {
        set(&mut it.options.counter.factor, number(value, name))
    }),
    (Argument::Item, |it, value, name| {
        set(&mut it.arguments.item, whole_number(value, name))
    }),
    (Argument::From, |it, value, name| {
        set(&mut it.arguments.from, tokens(value, name))
    }),
    (Argument::To, |it, value, name| {
        set(&mut it.arguments.to, tokens(value, name))
    }),
    (Argument::Ceiling, |it, value, name| {
        set(&mut it.arguments.ceiling, tokens(value, name))
    }),
    (Argument::Top, |it, value, name| {
        set(&mut it.arguments.top, whole_number(value, name))
    }),
    (Argument::Scorer, |it, value, name| {
        set(&mut it.arguments.scorer, string(value, name))
    }),
    (Argument::Policies, |it, value, _| {
        it.arguments.policies = policy::read_several(value)?;
        Ok(())
    }),
];

/// The rows that are options: a function with options takes each of them as a keyword argument. The other rows are
/// parameters of single functions.
fn is_option(argument: Argument) -> bool {
    !matches!(
        argument,
        Argument::Budget
            | Argument::Policy
            | Argument::Summarize
            | Argument::SummaryTokens
            | Argument::Item
            | Argument::From
            | Argument::To
            | Argument::Ceiling
            | Argument::Top
            | Argument::Scorer
            | Argument::Policies
    )
}

/// Reads the parameters of a function and the options that it passes on. `None` is one that is not given.
pub(crate) fn read(parameters: &Bound<'_, PyDict>, options: &Bound<'_, PyDict>) -> PyResult<Asked> {
    for name in options.keys() {
        let is = |keyword: &str| name.eq(keyword).unwrap_or(false);
        let mut known = ROWS.iter().map(|(argument, _)| *argument);
        let is_known = known.any(|argument| is_option(argument) && is(keyword(argument)));
        if !is_known && !CHAT_SETTINGS.iter().any(|setting| is(setting.name())) {
            let mut message = format!("unexpected keyword argument {}", name.repr()?);
            if let Some(instead) = removed("key", &name.str()?.to_string_lossy()) {
                message = format!("{message}: it was removed; {instead}");
            }
            return Err(PyTypeError::new_err(message));
        }
    }
    let given = |name: &str| -> PyResult<Option<Bound<'_, PyAny>>> {
        let value = match parameters.get_item(name)? {
            Some(value) => Some(value),
            None => options.get_item(name)?,
        };
        Ok(value.filter(|value| !value.is_none()))
    };
    let mut asked = Asked::default();
    for &(argument, read) in ROWS {
        let name = keyword(argument);
        if let Some(value) = given(name)? {
            read(&mut asked, &value, name)?;
        }
    }
    for setting in &CHAT_SETTINGS {
        let name = setting.name();
        let Some(given) = given(name)? else {
            continue;
        };
        match asked.options.chat.value(setting) {
            ChatValue::Switch(value) => *value = boolean(&given, name)?,
            ChatValue::Tokens(value) => *value = Some(at_least_one(&given, name)?),
            ChatValue::Text(value) => *value = Some(string(&given, name)?),
            ChatValue::Messages(value) => *value = pins(&given, name)?,
            ChatValue::Shorten(value) => *value = shorten(&given, name)?,
            ChatValue::Tools(value) => *value = tool_results(&given, name)?,
        }
    }
    Ok(asked)
}

/// Returns what to use instead of an option that was removed.
#[pyfunction]
pub(crate) fn instead_of(option: &str) -> Option<&'static str> {
    removed("key", option)
}

fn set<T>(field: &mut Option<T>, value: PyResult<T>) -> PyResult<()> {
    *field = Some(value?);
    Ok(())
}

/// Returns the error of a value of another type.
fn unexpected(value: &Bound<'_, PyAny>, name: &str, expected: &str) -> PyErr {
    let got = described(value);
    Fault::new(name, format!("expected {expected}, got {got}")).into()
}

/// Reads a string.
pub(crate) fn string(value: &Bound<'_, PyAny>, name: &str) -> PyResult<String> {
    match value.cast::<PyString>() {
        Ok(value) => Ok(text(value, name)?.to_owned()),
        Err(_) => Err(unexpected(value, name, "a string")),
    }
}

fn boolean(value: &Bound<'_, PyAny>, name: &str) -> PyResult<bool> {
    match value.cast::<PyBool>() {
        Ok(value) => Ok(value.is_true()),
        Err(_) => {
            let message = format!("expected True or False, got {}", value.repr()?);
            Err(Fault::new(name, message).into())
        }
    }
}

fn number(value: &Bound<'_, PyAny>, name: &str) -> PyResult<f64> {
    let is_number = value.is_instance_of::<PyFloat>() || is_integer(value)?;
    match value.extract() {
        Ok(number) if is_number => Ok(number),
        _ => Err(unexpected(value, name, "a number")),
    }
}

/// Returns whether a value is an integer, also one of `NumPy`. A boolean is not, although `bool` is a subclass of `int`.
fn is_integer(value: &Bound<'_, PyAny>) -> PyResult<bool> {
    let is_integer = value.hasattr(intern!(value.py(), "__index__"))?;
    Ok(is_integer && !value.is_instance_of::<PyBool>())
}

/// Returns an integer of any size, or a string, as text.
pub(crate) fn number_or_text(value: &Bound<'_, PyAny>, name: &str) -> PyResult<String> {
    if let Ok(value) = value.cast::<PyString>() {
        return Ok(text(value, name)?.to_owned());
    }
    if is_integer(value)? {
        let number = value.call_method0(intern!(value.py(), "__index__"))?;
        // An enum of integers prints its name.
        let number = number.cast::<PyInt>()?.repr()?;
        return Ok(number.to_str()?.to_owned());
    }
    Err(unexpected(value, name, "a number or a string"))
}

/// Reads an amount of tokens, such as `8000`, `8k` or `50%`.
pub(crate) fn amount(value: &Bound<'_, PyAny>, name: &str) -> PyResult<Amount> {
    Ok(number_or_text(value, name)?.into())
}

/// Reads a number of tokens, such as `8000` or `8k`; 0 is valid.
fn tokens(value: &Bound<'_, PyAny>, name: &str) -> PyResult<i64> {
    let text = number_or_text(value, name)?;
    let problem = match parse_budget(&text, None) {
        Ok(tokens) => return Ok(tokens),
        Err(error) => error.problem(),
    };
    let problem = match problem {
        BudgetProblem::Zero => return Ok(0),
        BudgetProblem::UnknownWindow => "a percentage is not valid here".to_owned(),
        problem => problem.to_string(),
    };
    let message = format!("invalid number of tokens `{text}`: {problem}");
    let fault = Fault::new(name, message);
    Err(fault
        .help("write tokens as 8000, \"8k\" or \"1.5M\"")
        .into())
}

fn at_least_one(value: &Bound<'_, PyAny>, name: &str) -> PyResult<i64> {
    match tokens(value, name)? {
        0 => Err(Fault::new(name, "expected at least 1 token, got 0").into()),
        tokens => Ok(tokens),
    }
}

/// Reads a position or a count.
fn whole_number(value: &Bound<'_, PyAny>, name: &str) -> PyResult<usize> {
    match value.extract() {
        Ok(number) if is_integer(value)? => Ok(number),
        _ => {
            let message = format!("expected a whole number from 0, got {}", value.repr()?);
            Err(Fault::new(name, message).into())
        }
    }
}

fn slots(value: &Bound<'_, PyAny>, name: &str) -> PyResult<Vec<(ContextKind, i64)>> {
    let Ok(slots) = value.cast::<PyMapping>() else {
        return Err(unexpected(value, name, "a dict of kinds and tokens"));
    };
    let mut read = Vec::new();
    for entry in slots.items()?.iter() {
        let (kind, reserved): (Bound<'_, PyAny>, Bound<'_, PyAny>) = entry.extract()?;
        let kind = ContextKind::new(string(&kind, name)?);
        let kind = kind.map_err(|error| Fault::new(name, error.to_string()))?;
        read.push((kind, tokens(&reserved, name)?));
    }
    Ok(read)
}

fn shape(value: &Bound<'_, PyAny>, name: &str) -> PyResult<Shape> {
    let shape = string(value, name)?.parse::<Shape>();
    shape.map_err(|error| Fault::new(name, error.to_string()).into())
}

/// Reads the name of a token counter.
pub(crate) fn counter_name(value: &Bound<'_, PyAny>, name: &str) -> PyResult<CounterName> {
    let counter = string(value, name)?.parse::<CounterName>();
    counter.map_err(|error| Fault::new(name, error).into())
}

fn shorten(value: &Bound<'_, PyAny>, name: &str) -> PyResult<Shorten> {
    let given = string(value, name)?;
    Shorten::find(&given).ok_or_else(|| unknown(&given, name, Shorten::NAMES))
}

/// Reads how the results of tools are treated: a dict of names.
fn tool_results(value: &Bound<'_, PyAny>, name: &str) -> PyResult<BTreeMap<String, ToolResults>> {
    let Ok(tools) = value.cast::<PyMapping>() else {
        return Err(unexpected(value, name, "a dict of tools and names"));
    };
    let mut read = BTreeMap::new();
    for entry in tools.items()?.iter() {
        let (tool, how): (Bound<'_, PyAny>, Bound<'_, PyAny>) = entry.extract()?;
        let (tool, given) = (string(&tool, name)?, string(&how, name)?);
        let how =
            ToolResults::find(&given).ok_or_else(|| unknown(&given, name, ToolResults::NAMES))?;
        read.insert(tool, how);
    }
    Ok(read)
}

/// Returns the error of a name that is none of the known ones.
fn unknown(given: &str, name: &str, known: &[&str]) -> PyErr {
    let known = known.join(", ");
    let message = format!("unknown name `{given}`; expected one of {known}");
    Fault::new(name, message).into()
}

/// Reads messages: a position, a string such as `0,3-5,role:system`, or an iterable of them.
fn pins(value: &Bound<'_, PyAny>, name: &str) -> PyResult<Vec<String>> {
    let is_one = value.is_instance_of::<PyString>()
        || value.is_instance_of::<PyBytes>()
        || !value.hasattr(intern!(value.py(), "__iter__"))?;
    let given = if is_one {
        vec![value.clone()]
    } else {
        callback::run(|| value.try_iter()?.collect::<PyResult<_>>())?
    };
    let mut pins = Vec::new();
    for one in given {
        let one = number_or_text(&one, name)?;
        let parts = one.split(',').filter(|part| !part.is_empty());
        pins.extend(parts.map(str::to_owned));
    }
    Ok(pins)
}

/// Returns the elements of a list with one or more.
pub(crate) fn several<'py>(
    value: &Bound<'py, PyAny>,
    name: &str,
) -> PyResult<Vec<Bound<'py, PyAny>>> {
    let is_one = value.is_instance_of::<PyString>()
        || value.is_instance_of::<PyBytes>()
        || value.is_instance_of::<PyMapping>()
        || !value.hasattr(intern!(value.py(), "__iter__"))?;
    if is_one {
        return Err(unexpected(value, name, "a list"));
    }
    let given = callback::run(|| value.try_iter()?.collect::<PyResult<Vec<_>>>())?;
    if given.is_empty() {
        return Err(Fault::new(name, "expected one or more").into());
    }
    Ok(given)
}

/// Returns the counter of an encoding or of a model; that of `o200k_base` by default.
pub(crate) fn counter(
    model: Option<&str>,
    encoding: Option<&str>,
) -> PyResult<Arc<dyn cupel_chat::TokenCounter>> {
    let name = match (encoding, model) {
        (Some(name), _) => {
            let counter = name.parse::<CounterName>();
            counter.map_err(|error| Fault::new("encoding", error))?
        }
        (None, Some(name)) => {
            let model = cupel_chat::Model::find(name);
            CounterName::of(model.map_err(|error| Fault::new("model", error.to_string()))?)
        }
        (None, None) => CounterName::Exact(cupel_chat::Encoding::O200k),
    };
    Ok(name.counter())
}
