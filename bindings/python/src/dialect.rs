//! The dialect of Python: `shorten=`, `budget="8k"`, `` `cupel.fit` ``.

use cupel_app::{Argument, Dialect, Question};

/// Writes arguments as keyword arguments and questions as functions of the package.
pub(crate) struct Python;

/// Returns the name of an argument in Python.
pub(crate) fn keyword(argument: Argument) -> &'static str {
    match argument {
        // `from` is a keyword of the language.
        Argument::From => "start",
        Argument::To => "stop",
        argument => argument.name(),
    }
}

/// Returns a value as a literal. Sentences group the digits of numbers: `1,234` is 1234 here.
fn literal(value: &str) -> String {
    let digits = value.replace(',', "");
    match digits.parse::<i64>() {
        Ok(_) => digits,
        Err(_) => serde_json::Value::from(value).to_string(),
    }
}

impl Dialect for Python {
    fn argument(&self, argument: Argument) -> String {
        format!("{}=", keyword(argument))
    }

    fn with_value(&self, argument: Argument, value: &str) -> String {
        format!("{}={}", keyword(argument), literal(value))
    }

    fn with_values(&self, argument: Argument, values: &[&str]) -> String {
        let values: Vec<String> = values.iter().map(|value| literal(value)).collect();
        format!("{}=[{}]", keyword(argument), values.join(", "))
    }

    fn question(&self, question: Question) -> String {
        match question {
            Question::Batch => "`cupel.select_batches`".to_owned(),
            Question::Presets => "`cupel.presets()`".to_owned(),
            question => format!("`cupel.{}`", question.name()),
        }
    }
}
